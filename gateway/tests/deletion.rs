//! Deletion that is real: what goes, what is held, what remains on disk and in memory, and what a backup brings back.

use crate::common::*;
use crate::program::Home;
use base64::Engine;
use base64::engine::general_purpose::STANDARD_NO_PAD;
use oap_gateway::service::Deletions;
use serde_json::{Value, json};
use std::path::Path;
use std::time::Duration;

const DAY: Duration = Duration::from_secs(86_400);

async fn delete(world: &World, what: Value) -> Value {
    let answer = world.owner("POST", "/oap/data/delete", Some(&what)).await.ok();
    crate::protocol_schemas::compare("oap-deletion-receipt.schema.json", &answer["deletion_receipt"]);
    answer
}

fn dated(text: &str, day: u8, from: &str) -> Value {
    let mut item = note(text, &["all"]);
    item["provenance"] =
        json!({"captured_at": format!("2026-04-{day:02}T00:00:00Z"), "imported_from": from, "run": day});
    item
}

async fn left(world: &World) -> Vec<String> {
    let mut all = texts(&world.owner("GET", "/oap/owner/items", None).await.ok());
    all.sort();
    all
}

#[tokio::test]
async fn by_provenance_tag_and_time() {
    let world = World::new().await;
    let ids = world
        .capture(&[
            dated("a", 1, "chatgpt"),
            dated("b", 2, "chatgpt"),
            dated("c", 3, "claude"),
            dated("d", 4, "mem0"),
        ])
        .await;
    let answer = delete(
        &world,
        json!({"provenance_tags": ["imported_from=chatgpt"], "captured_before": "2026-04-02T00:00:00Z"}),
    )
    .await;
    assert_eq!(answer["cascade_report"]["erased"], json!([ids[0]]));
    assert_eq!(answer["deletion_receipt"]["scope"]["provenance_tags"], json!(["imported_from=chatgpt"]));
    delete(&world, json!({"provenance_tags": ["run=3"]})).await;
    assert_eq!(left(&world).await, ["b", "d"]);
    delete(&world, json!({"captured_after": "2026-04-04T00:00:00Z"})).await;
    assert_eq!(left(&world).await, ["b"]);
    // As receipts name it.
    let shown = world.owner("GET", &format!("/oap/owner/items/{}", ids[1]), None).await.ok();
    let tag = format!("{}@{}", ids[1], shown["chain"][0]["commitment"].as_str().unwrap());
    delete(&world, json!({"provenance_tags": [tag]})).await;
    assert!(left(&world).await.is_empty());
    for nothing in [
        json!({}),
        json!({"captured_after": "2026-04-04T00:00:00Z", "captured_before": "2026-04-03T00:00:00Z"}),
    ] {
        world.owner("POST", "/oap/data/delete", Some(&nothing)).await.refused(400, "invalid_input");
    }
}

/// The receipt says which versions are gone and what followed, to whoever has the owner's keys.
#[tokio::test]
async fn the_receipt_names_what_was_deleted() {
    let world = World::new().await;
    let ids = world.capture(&[note("source", &["s"]), note("other", &[])]).await;
    let mut made = note("made of it", &["m"]);
    made["derived_from"] = json!([ids[0]]);
    let made = world.capture(&[made]).await;
    let grantee = agent(2);
    world.issue(&world.draft(&grantee)).await;
    let shown = world.owner("GET", &format!("/oap/owner/items/{}", ids[0]), None).await.ok();
    let tag = format!("{}@{}", ids[0], shown["chain"][0]["commitment"].as_str().unwrap());
    let answer = delete(&world, json!({"labels": ["s"]})).await;
    let receipt = &answer["deletion_receipt"];
    let verified = oap_memory::deletion::verify(receipt, &world.document(), world.now()).unwrap();
    let scope = verified.receipt.scope;
    assert!(scope.items.contains(&tag) && scope.items.len() == 2, "{:?}", scope.items);
    assert_eq!(json!([scope.cascade.named, scope.cascade.derived]), json!([[ids[0]], made]));
    assert_eq!(scope.cascade.grants_shrunk.len(), 1);
    let log = world.owner("GET", "/oap/audit?chain=personal&from=0&limit=1000", None).await.ok();
    let chained =
        log["receipts"].as_array().unwrap().iter().find(|r| r["action_id"] == "memory.delete").unwrap();
    assert_eq!(chained["output_hash"], json!(verified.hash));
}

#[tokio::test]
async fn a_legal_hold_is_a_stated_exception() {
    let world = World::new().await;
    let ids = world.capture(&[note("evidence", &["all"]), note("the rest", &["all"])]).await;
    let hold = json!({"items": [ids[0]], "reason": "ongoing_dispute", "until": world.now().plus(10 * DAY)});
    world.owner("POST", "/oap/owner/holds", Some(&hold)).await.ok();
    let grantee = agent(2);
    let grant = world.issue(&world.draft(&grantee)).await;
    let token = world.token(&grantee, &grant).await;
    assert_eq!(texts(&world.query(&grantee, &token, &json!({})).await.ok()).len(), 2);

    let answer = delete(&world, json!({"all": true})).await;
    let report = &answer["cascade_report"];
    assert_eq!((&report["held"], &report["erased"]), (&json!([ids[0]]), &json!([ids[1]])));
    let exceptions = &answer["deletion_receipt"]["exceptions"];
    assert_eq!(exceptions, &json!([{"reason": "ongoing_dispute", "retention_until": "2026-05-11"}]));
    // Out of every view at once, kept for its owner.
    assert_eq!(texts(&world.query(&grantee, &token, &json!({})).await.ok()).len(), 0);
    let shown = world.owner("GET", &format!("/oap/owner/items/{}", ids[0]), None).await.ok();
    assert_eq!(
        (&shown["item"]["status"], &shown["item"]["content"]["text"]),
        (&json!("retracted"), &json!("evidence"))
    );
    // Neither expiry nor retention erases it, the end of the hold does.
    world.clock.advance(9 * DAY);
    Deletions(&world.gateway).sweep().await.unwrap();
    world.owner("GET", &format!("/oap/owner/items/{}", ids[0]), None).await.ok();
    world.clock.advance(DAY);
    Deletions(&world.gateway).sweep().await.unwrap();
    let shown = world.owner("GET", &format!("/oap/owner/items/{}", ids[0]), None).await.ok();
    assert_eq!(shown["item"]["status"], "erased");
    assert_eq!(world.owner("GET", "/oap/owner/holds", None).await.ok()["holds"], json!([]));
}

#[tokio::test]
async fn holds_are_checked_and_released() {
    let world = World::new().await;
    let ids = world.capture(&[note("kept", &[])]).await;
    let hold = |item: &str, until: i64| {
        let until = if until < 0 { world.now() } else { world.now().plus(DAY) };
        json!({"items": [item], "reason": "legal_hold", "until": until})
    };
    world.owner("POST", "/oap/owner/holds", Some(&hold(&ids[0], -1))).await.refused(400, "invalid_input");
    let nowhere = "mem_01HX2QFXR0Q4S8T9V3W7X2Y0Z1";
    world.owner("POST", "/oap/owner/holds", Some(&hold(nowhere, 1))).await.refused(404, "not_found");
    world.owner("POST", "/oap/owner/holds", Some(&hold(&ids[0], 1))).await.ok();
    world.owner("POST", "/oap/owner/holds/release", Some(&json!({"items": [ids[0]]}))).await.ok();
    // Nobody had asked for its deletion.
    assert_eq!(left(&world).await, ["kept"]);
    delete(&world, json!({"items": [ids[0]]})).await;
    assert!(left(&world).await.is_empty());
}

#[tokio::test]
async fn more_than_one_deletion_takes() {
    let world = World::new().await;
    let items: Vec<Value> = (0..1000).map(|n| note(&format!("n{n}"), &["all"])).collect();
    for _ in 0..11 {
        world.capture(&items).await;
    }
    let answer = delete(&world, json!({"all": true})).await;
    let report = &answer["cascade_report"];
    assert_eq!((report["erased"].as_array().unwrap().len(), &report["remaining"]), (10_000, &json!(1_000)));
    let answer = delete(&world, json!({"all": true})).await;
    assert_eq!(answer["cascade_report"]["remaining"], 0);
    assert!(left(&world).await.is_empty());
}

#[test]
fn what_expires_is_erased_within_the_hour() {
    // The sweep erases it as soon as it runs (`owner.rs`); the server runs it so often.
    assert!(oap_gateway::service::sweep::INTERVAL <= Duration::from_secs(3600));
}

#[tokio::test]
async fn the_doctor_finds_nothing_where_nothing_is_wrong() {
    let world = World::new().await;
    let ids = world.capture(&[note("one", &[]), note("two", &[])]).await;
    delete(&world, json!({"items": [ids[0]]})).await;
    let findings = world.job(&json!({"job": "doctor"})).await["findings"].clone();
    for finding in findings.as_array().unwrap() {
        assert_eq!(finding["wrong"], json!([]), "{finding}");
    }
}

/// One that was set before its every form was asked for: `null` restricts nothing there, which its owner should know.
#[tokio::test]
async fn the_doctor_names_contexts_that_could_not_be_set_today() {
    use oap_gateway::state::schema::CONTEXTS;
    let world = World::new().await;
    let said = async || {
        let findings = world.job(&json!({"job": "doctor"})).await["findings"].clone();
        let of_contexts = findings.as_array().unwrap().iter().find(|finding| finding["part"] == "contexts");
        of_contexts.map(|finding| finding["wrong"].clone())
    };
    let mut context = json!({"ccc_version": "1.0", "scope_id": "client-a", "security_clearance": null});
    let refused = world.owner("POST", "/oap/owner/contexts", Some(&context)).await;
    assert_eq!(refused.status, 400, "{}", refused.body);
    let (scope, bytes) = ("client-a".parse().unwrap(), context.to_string().into_bytes());
    world.gateway.commit(move |w| Ok(CONTEXTS.put(w.tx, &scope, &bytes)?)).await.unwrap();
    let wrong = said().await.unwrap();
    assert!(wrong[0].as_str().unwrap().starts_with("client-a: security_clearance"), "{wrong}");
    context["security_clearance"] = json!([]);
    world.owner("POST", "/oap/owner/contexts", Some(&context)).await.ok();
    assert_eq!(said().await, None);
}

const MARKER: &str = "quetzalcoatlus-northropi-4711";

/// How often the marker stands in bytes, in plain and as base64 has it at any of three offsets.
fn traces(bytes: &[u8]) -> usize {
    let mut forms = vec![MARKER.as_bytes().to_vec()];
    for lead in 0..3 {
        let encoded = STANDARD_NO_PAD.encode([vec![b'x'; lead], MARKER.as_bytes().to_vec()].concat());
        // Without the characters that its neighbours have a part in.
        let (start, end) = ([0, 2, 3][lead], encoded.len() - 2);
        forms.push(encoded.as_bytes()[start..end].to_vec());
    }
    forms.iter().map(|form| occurrences(bytes, form)).sum()
}

/// How often a text stands in bytes. From the byte at the end of where it could stand, the search goes on as far as that byte allows
/// (Horspool): most of a process's memory is not looked at.
fn occurrences(bytes: &[u8], text: &[u8]) -> usize {
    let last = text.len() - 1;
    let mut steps = [text.len(); 256];
    for (at, byte) in text[..last].iter().enumerate() {
        steps[usize::from(*byte)] = last - at;
    }
    let (mut found, mut end) = (0, last);
    while end < bytes.len() {
        found += usize::from(&bytes[end - last..=end] == text);
        end += steps[usize::from(bytes[end])];
    }
    found
}

#[test]
fn the_search_finds_every_occurrence() {
    assert_eq!(occurrences(b"abcabcab", b"abcab"), 2);
    assert_eq!(occurrences(b"aaaa", b"aa"), 3);
    assert_eq!(occurrences(b"xabcx", b"abc") + occurrences(b"abc", b"abc"), 2);
    assert_eq!(occurrences(b"", b"abc") + occurrences(b"ab", b"abc") + occurrences(b"abdabx", b"abc"), 0);
    let twice = format!("{MARKER}-{MARKER}{MARKER}");
    assert_eq!(occurrences(twice.as_bytes(), MARKER.as_bytes()), 3);
}

fn on_disk(folder: &Path) -> usize {
    let mut found = 0;
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        // The owner's socket is no file.
        found += match std::fs::symlink_metadata(&path).unwrap() {
            found if found.is_dir() => on_disk(&path),
            found if found.is_file() => traces(&std::fs::read(&path).unwrap()),
            _ => 0,
        };
    }
    found
}

/// What a process has in memory that it can write to: its heap, its stacks, its buffers.
fn in_memory(pid: u32) -> usize {
    use std::os::unix::fs::FileExt;
    let maps = std::fs::read_to_string(format!("/proc/{pid}/maps")).unwrap();
    let memory = std::fs::File::open(format!("/proc/{pid}/mem")).unwrap();
    let mut found = 0;
    for line in maps.lines().filter(|line| line.contains(" rw")) {
        let (start, end) = line.split(' ').next().unwrap().split_once('-').unwrap();
        let (start, end) = (u64::from_str_radix(start, 16).unwrap(), u64::from_str_radix(end, 16).unwrap());
        let mut bytes = vec![0; (end - start) as usize];
        if memory.read_exact_at(&mut bytes, start).is_ok() {
            found += traces(&bytes);
        }
    }
    found
}

/// After a deletion no byte of the marker is left, neither in the data folder nor in the memory of the server that
/// held, indexed, projected and served it; and what was stored before does not open with the vault as it is then.
#[test]
fn nothing_of_an_erased_item_is_left_on_disk_or_in_memory() {
    let (owner, grantee) = (Home::web(), Home::key());
    let server = owner.serve(&[]);
    let ca = owner.home().join("tls/cert.pem").to_string_lossy().into_owned();
    let item = format!("My favourite is {MARKER}, of them all");
    let written =
        owner.run(&["--json", "item", "add", "--kind", "preference", "--text", &item, "--label", "m"]).json();
    owner.run(&["item", "add", "--kind", "fact", "--text", "Something else", "--label", "m"]).ok();
    let did = grantee.run(&["--json", "config", "show"]).json();
    let did = did["did"]["value"].as_str().or(did["did"].as_str()).unwrap().to_owned();
    let grant = grantee.path("grant.json");
    owner
        .run(&[
            "grant",
            "issue",
            "--to",
            &did,
            "--purpose",
            "test",
            "--label",
            "m",
            "--until",
            "30d",
            "--trust-level",
            "4",
            "--out",
            &grant,
        ])
        .ok();
    let ask = |words: &str| {
        let arguments = [
            "--allow-local-dids",
            "--trust-ca",
            &ca,
            "--json",
            "query",
            &owner.origin(),
            "--grant",
            &grant,
            words,
        ];
        grantee.run(&arguments).ok()
    };
    assert!(ask("favourite").contains(MARKER));
    assert!(in_memory(server.id()) > 0, "the search finds what is there");
    assert_eq!(on_disk(&owner.home()), 0, "sealed at rest");
    let before = owner.path("before");
    copy(&owner.home().join("store"), Path::new(&before));

    owner
        .run(&[
            "delete",
            "--item",
            written["item_id"].as_str().unwrap_or_else(|| written["items"][0]["item_id"].as_str().unwrap()),
            "--yes",
        ])
        .ok();
    assert!(!ask("favourite").contains(MARKER));
    // Other requests come and go, so that buffers of the ones before are let go.
    for _ in 0..5 {
        ask("something");
    }
    assert_eq!(on_disk(&owner.home()), 0);
    assert_eq!(in_memory(server.id()), 0);
    server.stop();

    // The thief has the store as it was, and the vault as it is now.
    let key = std::fs::read_to_string(owner.path("key")).unwrap();
    let key = base64::engine::general_purpose::URL_SAFE_NO_PAD.decode(key.trim()).unwrap();
    let master = oap_store::Master::KeyFile(<[u8; 32]>::try_from(key).unwrap().into());
    let vault = oap_store::FileVault::open(&owner.home().join("vault"), &master).unwrap();
    let engine = oap_store::RedbEngine::open(Path::new(&before), &oap_store::Space::endless()).unwrap();
    let random = std::sync::Arc::new(oap_identity::random::Seeded::new(1));
    let store = oap_store::Store::open(engine, vault, random).unwrap();
    let versions: Vec<bool> =
        oap_gateway::state::schema::VERSIONS.scan(&store).map(|row| row.is_ok()).collect();
    assert_eq!(versions.iter().filter(|opens| **opens).count(), 1, "{versions:?}: the other item's alone");
}

fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let to = to.join(entry.file_name());
        if entry.path().is_dir() {
            copy(&entry.path(), &to)
        } else {
            std::fs::copy(entry.path(), to).map(drop).unwrap()
        }
    }
}

#[test]
fn a_restored_backup_does_not_bring_back_what_was_erased_since() {
    let owner = Home::web();
    let server = owner.serve(&[]);
    let add = |text: &str| {
        let written = owner.run(&["--json", "item", "add", "--kind", "fact", "--text", text]).json();
        written["item_id"]
            .as_str()
            .unwrap_or_else(|| written["items"][0]["item_id"].as_str().unwrap())
            .to_owned()
    };
    let (gone, _) = (add("erased later"), add("kept"));
    let folder = owner.path("backup");
    owner.run(&["backup", &folder]).ok();
    owner.run(&["backup", &folder]).failed(1, "File exists");
    owner.run(&["backup", &owner.path("none/backup")]).failed(1, "none/backup: No such file");
    add("written later");
    owner.run(&["delete", "--item", &gone, "--yes"]).ok();
    owner.run(&["doctor"]).ok();
    server.stop();

    let list = owner.home().join("erasures.jsonl").to_string_lossy().into_owned();
    let second = |name: &str, arguments: &[&str]| {
        let mut command = std::process::Command::new(crate::program::BINARY);
        command.args(["--home", &owner.path(name), "--json"]).args(arguments);
        Home::finish(command.stdin(std::process::Stdio::null()))
    };
    second("none", &["restore", &folder]).failed(2, "--erasures");
    let restored = second("new", &["restore", &folder, "--erasures", &list]).json();
    assert_eq!((&restored["erased_again"], &restored["sound"]), (&json!(1), &json!(true)), "{restored}");
    let items = second("new", &["item", "list"]).json();
    let texts: Vec<&str> =
        items["items"].as_array().unwrap().iter().map(|i| i["content"]["text"].as_str().unwrap()).collect();
    assert_eq!(texts, ["kept"]);
    second("new", &["audit", "verify"]).ok();
    second("new", &["restore", &folder, "--erasures", &list]).failed(1, "already");
    // Without the list, on purpose, it is there again: that is what the list is for.
    let restored = second("old", &["restore", &folder, "--without-erasures"]).json();
    assert_eq!((&restored["erased_again"], &restored["items"]), (&json!(0), &json!(2)));

    // A list or a backup that was changed is refused.
    let text = std::fs::read_to_string(&list).unwrap();
    let forged = owner.path("forged.jsonl");
    std::fs::write(&forged, text.replace(&gone, "mem_01HX2QFXR0Q4S8T9V3W7X2Y0Z1")).unwrap();
    second("forged", &["restore", &folder, "--erasures", &forged]).failed(4, "nothing was restored");
    assert!(!Path::new(&owner.path("forged")).join("vault").exists());
    let store = Path::new(&folder).join("store.bin");
    let mut bytes = std::fs::read(&store).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    std::fs::write(&store, bytes).unwrap();
    second("tampered", &["restore", &folder, "--erasures", &list]).failed(4, "hash differs");
}

#[test]
fn the_doctor_finds_what_is_wrong() {
    use oap_store::{Engine, Op};
    let home = Home::key();
    home.run(&["item", "add", "--kind", "fact", "--text", "one"]).ok();
    home.run(&["doctor"]).ok();
    for (table, part) in [
        (oap_gateway::state::schema::VERSIONS.number(), "items and their proofs"),
        (oap_gateway::state::schema::RECEIPTS.number(), "receipt chains"),
    ] {
        let engine =
            oap_store::RedbEngine::open(&home.home().join("store"), &oap_store::Space::endless()).unwrap();
        let (key, mut value) = engine.scan(&[table], &[table], false).next().unwrap().unwrap();
        let last = value.len() - 1;
        value[last] ^= 1;
        engine.apply(vec![Op::Put(key, value)]).unwrap();
        drop(engine);
        let ran = home.run(&["--json", "doctor"]);
        assert_eq!(ran.status, 4, "{}", ran.stdout);
        let report: Value = serde_json::from_str(&ran.stdout).unwrap();
        let wrong = |part: &str| {
            let findings = report["findings"].as_array().unwrap();
            let finding = findings.iter().find(|f| f["part"] == part).unwrap();
            !finding["wrong"].as_array().unwrap().is_empty() && !finding["fix"].as_str().unwrap().is_empty()
        };
        assert!(wrong(part) && wrong("store and vault"), "{report}");
    }
}

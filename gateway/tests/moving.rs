//! Moving house with the real program: vendors' exports in, bundles and other forms out.

use crate::program::*;
use serde_json::{Value, json};
use std::io::Write;
use std::path::{Path, PathBuf};
use zip::write::SimpleFileOptions;

fn exports() -> String {
    concat!(env!("CARGO_MANIFEST_DIR"), "/../examples/exports").to_owned()
}

/// The report of an import, whatever its exit status.
fn import(home: &Home, arguments: &[&str]) -> (i32, Value) {
    let ran = home.run(&[&["--json", "import"], arguments].concat());
    let report = serde_json::from_str(&ran.stdout).unwrap_or_else(|_| panic!("{ran:?}"));
    (ran.status, report)
}

fn did(home: &Home) -> String {
    read(home.home().join("did.json"))["id"].as_str().unwrap().to_owned()
}

#[test]
fn a_folder_of_every_format() {
    let home = Home::key();
    let (status, dry) = import(&home, &[&exports(), "--dry-run"]);
    assert_eq!((status, &dry["dry_run"]), (1, &json!(true)));
    assert!(!dry["samples"].as_array().unwrap().is_empty());
    let items = |home: &Home| {
        home.run(&["--json", "item", "list", "--limit", "100"]).json()["items"].as_array().unwrap().len()
    };
    assert_eq!(items(&home), 0);

    let (status, first) = import(&home, &[&exports(), "--label", "moved", "--scope", "old"]);
    assert_eq!(status, 1, "some records are broken on purpose");
    assert_eq!(first["imported"], dry["imported"]);
    assert_eq!(first["formats"].as_array().unwrap().len(), 13, "{}", first["formats"]);
    let refused = first["refused"].as_array().unwrap();
    assert!(
        refused
            .iter()
            .all(|r| !r["place"].as_str().unwrap().is_empty() && !r["reason"].as_str().unwrap().is_empty())
    );
    assert!(refused.iter().any(|r| r["place"] == "chatgpt/conversations.json[1]"), "{refused:?}");
    let count = first["imported"].as_u64().unwrap() as usize;
    assert_eq!(items(&home), count);
    let listed = home.run(&["--json", "item", "list", "--limit", "100"]).json();
    assert!(listed["items"].as_array().unwrap().iter().all(|item| {
        item["scope_id"] == "old" && item["labels"].as_array().unwrap().contains(&json!("moved"))
    }));

    let (_, again) = import(&home, &[&exports(), "--label", "moved", "--scope", "old"]);
    assert_eq!((&again["imported"], &again["updated"]), (&json!(0), &json!(0)));
    assert_eq!(again["unchanged"], first["imported"]);
    home.run(&["audit", "verify"]).ok();
    home.run(&["import", "--formats"]).ok();
    home.run(&["import", &exports(), "--from", "nonsense"]).failed(2, "must be one of");
    home.run(&["import", "/nowhere"]).failed(1, "/nowhere");
    let table = format!("{}/table/notes.csv", exports());
    let (_, mapped) = import(
        &home,
        &[&table, "--map", "text=body,captured_at=when,id=uuid", "--scope", "old", "--dry-run"],
    );
    // They are here already, and read in another way now.
    assert_eq!(mapped["updated"], 2);
    home.run(&["import", &table, "--map", "nonsense"]).failed(2, "member=column");
}

fn archive(path: &Path, entries: &[(&str, &[u8])]) {
    let mut writer = zip::ZipWriter::new(std::fs::File::create(path).unwrap());
    for (name, bytes) in entries {
        writer.start_file(*name, SimpleFileOptions::default()).unwrap();
        writer.write_all(bytes).unwrap();
    }
    writer.finish().unwrap();
}

#[test]
fn archives_are_read_as_they_come() {
    let home = Home::key();
    let chats = std::fs::read(format!("{}/chatgpt/conversations.json", exports())).unwrap();
    let memory = std::fs::read(format!("{}/chatgpt/memory.json", exports())).unwrap();
    let bomb = vec![b' '; 64 << 20];
    let path = PathBuf::from(home.path("export.zip"));
    archive(
        &path,
        &[
            ("conversations.json", &chats),
            ("memory.json", &memory),
            ("chat.html", b"<html>"),
            ("../../../escape.json", &chats),
            ("/etc/absolute.json", &chats),
            ("bomb.json", &bomb),
        ],
    );
    let (status, report) = import(&home, &[&path.to_string_lossy()]);
    assert_eq!((status, &report["imported"]), (1, &json!(8)), "{report}");
    let why = |place: &str| {
        let refused = report["refused"].as_array().unwrap();
        let found = refused.iter().find(|r| r["place"].as_str().unwrap().contains(place));
        found.unwrap_or_else(|| panic!("{place}: {report}"))["reason"].as_str().unwrap().to_owned()
    };
    assert!(why("escape").contains("leads out"));
    assert!(why("bomb").contains("unfolds"));
    assert_eq!(report["skipped"]["not of a format that is read here"], 1);
    assert!(!Path::new("/etc/absolute.json").exists());
    // A cut archive, and one that is none.
    let bytes = std::fs::read(&path).unwrap();
    std::fs::write(&path, &bytes[..bytes.len() / 2]).unwrap();
    home.run(&["import", &path.to_string_lossy()]).failed(1, "export.zip");
}

#[test]
fn bundles_compressed_encrypted_and_forged() {
    let (a, b) = (Home::key(), Home::key());
    import(&a, &[&format!("{}/claude", exports())]);
    let identity = age::x25519::Identity::generate();
    let key = a.path("age.key");
    use age::secrecy::ExposeSecret;
    std::fs::write(&key, identity.to_string().expose_secret()).unwrap();
    let recipient = identity.to_public().to_string();
    let sealed = a.path("memory.bundle");
    a.run(&["export", &sealed, "--zstd", "--to", &recipient, "--receipts", "--grants"]).ok();
    a.run(&["export", &sealed]).failed(2, "--force");
    a.run(&["export", &a.path("x"), "--to", "age1nonsense"]).failed(2, "--to: must be an age recipient");
    assert!(std::fs::read(&sealed).unwrap().starts_with(b"age-encryption.org"));
    a.run(&["verify", &sealed]).failed(1, "encrypted");
    let verified = a.run(&["--json", "verify", &sealed, "--identity", &key]).json();
    assert_eq!((&verified["verified"], &verified["items"]), (&json!(true), &json!(8)));
    assert!(verified["receipts"].as_u64().unwrap() > 8);

    let former = did(&a);
    b.run(&["import", &sealed, "--identity", &key]).failed(2, "--former-did");
    let (status, dry) = import(&b, &[&sealed, "--identity", &key, "--former-did", &former, "--dry-run"]);
    assert_eq!((status, &dry["imported"], &dry["bundle"]["whole"]), (0, &json!(8), &json!(true)));
    let (status, moved) = import(&b, &[&sealed, "--identity", &key, "--former-did", &former]);
    assert_eq!((status, &moved["imported"]), (0, &json!(8)));
    assert!(moved["bundle"]["migration_receipt"]["receipt_id"].is_string());
    let (_, again) = import(&b, &[&sealed, "--identity", &key, "--former-did", &former]);
    assert_eq!((&again["imported"], &again["unchanged"]), (&json!(0), &json!(8)));
    b.run(&["doctor"]).ok();

    // Forged in one line: nothing goes in. Where the owner says so, that line is refused and the rest is taken.
    let plain = a.path("plain.bundle");
    a.run(&["export", &plain]).ok();
    let forged = std::fs::read_to_string(&plain).unwrap().replace("launches in May", "launches in Jun");
    std::fs::write(a.path("forged.bundle"), forged).unwrap();
    let c = Home::key();
    let forged = a.path("forged.bundle");
    let what = |report: &Value| {
        let refused = report["refused"].as_array().unwrap().len();
        (report["imported"].clone(), refused, report["bundle"]["whole"].clone())
    };
    for (flag, imported, refused) in [(None, 0, 0), (Some("--dry-run"), 7, 1), (Some("--broken"), 7, 1)] {
        assert!(c.run(&["--json", "item", "list"]).json()["items"].as_array().unwrap().is_empty());
        let mut arguments = vec![forged.as_str(), "--former-did", &former];
        arguments.extend(flag);
        let (status, report) = import(&c, &arguments);
        assert_eq!((status, what(&report)), (4, (json!(imported), refused, json!(false))), "{flag:?}");
    }
    let (_, again) = import(&c, &[&plain, "--former-did", &former]);
    assert_eq!((&again["imported"], &again["unchanged"]), (&json!(1), &json!(7)));
    a.run(&["verify", &a.path("forged.bundle")]).failed(4, "another hash");
    // A selection, by label, kind and time.
    a.run(&["export", &a.path("some.bundle"), "--kind", "conversation_turn"]).ok();
    assert_eq!(a.run(&["--json", "verify", &a.path("some.bundle")]).json()["items"], 2);
    a.run(&["export", &a.path("none.bundle"), "--until", "2000-01-01"]).ok();
    assert_eq!(a.run(&["--json", "verify", &a.path("none.bundle")]).json()["items"], 0);
}

/// A compressed bundle whose end was cut off: what came before it goes in where its owner says so.
#[test]
fn what_is_left_of_a_cut_archive_is_taken_where_the_owner_says_so() {
    let (a, b) = (Home::key(), Home::key());
    let rows: String = (0..80).map(|n| format!("\"row {n}\"\n")).collect();
    std::fs::write(a.path("table.csv"), format!("body\n{rows}")).unwrap();
    let (status, _) = import(&a, &[&a.path("table.csv"), "--map", "text=body"]);
    assert_eq!(status, 0);
    let (sealed, former) = (a.path("memory.bundle"), did(&a));
    a.run(&["export", &sealed, "--zstd"]).ok();
    let bytes = std::fs::read(&sealed).unwrap();
    std::fs::write(&sealed, &bytes[..bytes.len() * 3 / 4]).unwrap();
    for (flag, some) in [(None, false), (Some("--dry-run"), true), (Some("--broken"), true)] {
        let mut arguments = vec![sealed.as_str(), "--former-did", &former];
        arguments.extend(flag);
        let (status, report) = import(&b, &arguments);
        let imported = report["imported"].as_u64().unwrap();
        assert_eq!((status, imported > 0 && imported < 80), (4, some), "{flag:?}: {report}");
        let why = report["bundle"]["why"].as_str().unwrap();
        assert!(why.contains("cannot be read to its end"), "{why}");
    }
}

/// Whoever has a key that was compromised seals what they like, as of when they like.
#[test]
fn a_trailer_by_a_key_that_was_compromised_seals_nothing() {
    let (a, b) = (Home::web(), Home::key());
    a.run(&["item", "add", "--kind", "fact", "--text", "Tea"]).ok();
    let (sealed, former) = (a.path("memory.bundle"), did(&a));
    a.run(&["export", &sealed]).ok();
    let document = a.path("now.json");
    // The document as it is published at that time, which a bundle of that time has.
    let publish = || {
        a.run(&["export", &a.path("another.bundle"), "--force"]).ok();
        let bundle = std::fs::read_to_string(a.path("another.bundle")).unwrap();
        let header: Value = serde_json::from_str(bundle.lines().next().unwrap()).unwrap();
        std::fs::write(&document, header["documents"][0].to_string()).unwrap();
    };
    publish();
    let arguments = [sealed.as_str(), "--former-did", &former, "--did-document", &document, "--dry-run"];
    let (status, report) = import(&b, &arguments);
    assert_eq!((status, &report["imported"], &report["bundle"]["whole"]), (0, &json!(1), &json!(true)));
    a.run(&["keys", "revoke", "key-1", "--yes"]).ok();
    publish();
    let (status, report) = import(&b, &arguments[..5]);
    assert_eq!((status, &report["imported"], &report["bundle"]["whole"]), (4, &json!(0), &json!(false)));
    assert!(report["bundle"]["why"].as_str().unwrap().contains("counts for nothing"), "{report}");
}

/// A file that somebody put in a bundle's place is not taken for another vendor's export.
#[test]
fn what_is_said_of_bundles_is_refused_of_anything_else() {
    let home = Home::key();
    let file = home.path("memory.bundle");
    std::fs::write(&file, "{\"text\": \"pay at once\"}\n{\"text\": \"tea\"}\n").unwrap();
    let own = did(&home);
    for said in [&["--former-did", own.as_str()][..], &["--broken"], &["--trust-bundle"]] {
        home.run(&[&["import", &file][..], said].concat()).failed(2, "for bundles");
    }
    assert!(home.run(&["--json", "item", "list"]).json()["items"].as_array().unwrap().is_empty());
}

#[test]
fn other_forms_are_written_and_read_back() {
    let home = Home::key();
    import(&home, &[&format!("{}/mcp/memory.jsonl", exports())]);
    for (form, name) in [
        ("mem0", "m.json"),
        ("mcp-memory", "g.jsonl"),
        ("jsonl", "i.jsonl"),
        ("rdf", "r.nq"),
        ("markdown", "notes"),
    ] {
        let done = home.run(&["--json", "export", &home.path(name), "--as", form]).json();
        assert_eq!(done["items"], 4, "{form}");
    }
    let mem0 = read(home.path("m.json"));
    assert_eq!(mem0["results"].as_array().unwrap().len(), 4);
    let quads = std::fs::read_to_string(home.path("r.nq")).unwrap();
    assert!(quads.lines().all(|line| line.ends_with(" .")) && quads.contains("prov#wasAttributedTo"));
    let notes = std::fs::read_dir(home.path("notes")).unwrap().count();
    assert_eq!(notes, 4);
    home.run(&["export", &home.path("z"), "--as", "word"]).failed(2, "must be one of");
    // What was written, another program of the kind reads: here, our own importers.
    for (name, format) in [("m.json", "mem0"), ("g.jsonl", "mcp-memory"), ("notes", "notes")] {
        let other = Home::key();
        let (status, report) = import(&other, &[&home.path(name)]);
        assert_eq!((status, report["formats"][0].as_str()), (0, Some(format)), "{report}");
        assert!(report["imported"].as_u64().unwrap() >= 4, "{report}");
    }
}

#[test]
fn a_grantee_takes_its_slice_along() {
    let granter = Home::web();
    let server = granter.serve(&[]);
    let mut grantee = Home::key();
    let authority = granter.home().join("tls/cert.pem").to_string_lossy().into_owned();
    grantee.flags = vec!["--trust-ca".into(), authority, "--allow-local-dids".into()];
    granter
        .run(&["item", "add", "--kind", "fact", "--text", "Write to bob@mail.example", "--label", "w"])
        .ok();
    let grant = granter.path("grant.json");
    let base = ["grant", "issue", "--to", &did(&grantee), "--purpose", "p", "--label", "w", "--until", "30d"];
    granter.run(&[&base[..], &["--trust-level", "2", "--allow-export", "--out", &grant]].concat()).ok();
    let slice = grantee.path("slice.bundle");
    grantee.run(&["query", &granter.origin(), "--grant", &grant, "--export", &slice]).ok();
    assert!(!std::fs::read_to_string(&slice).unwrap().contains("bob@mail"));
    let verified = grantee.run(&["--json", "verify", &slice]).json();
    assert_eq!((&verified["verified"], &verified["projected"]["trust_level"]), (&json!(true), &json!(2)));
    grantee.run(&["import", &slice, "--former-did", &did(&granter)]).failed(2, "somebody else's");
    server.stop();
}

#[test]
fn the_example_moves_house() {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../examples/migrate/run.sh");
    let ran = Home::finish(std::process::Command::new("sh").arg(script).env("OAP_MEMORY", BINARY));
    assert!(ran.status == 0 && ran.stdout.contains("both houses are sound"), "{ran:?}");
}

/// What the owner wrote in the former house is the owner's own in the new one, and no agent's.
#[test]
fn what_the_owner_wrote_stays_the_owners() {
    let (a, b) = (Home::key(), Home::key());
    a.run(&["item", "add", "--kind", "fact", "--text", "tea at four"]).ok();
    let bundle = a.path("memory.bundle");
    a.run(&["export", &bundle]).ok();
    let (status, moved) = import(&b, &[&bundle, "--former-did", &did(&a)]);
    assert_eq!((status, &moved["imported"]), (0, &json!(1)));
    let listed = b.run(&["--json", "item", "list"]).json();
    let item = listed["items"][0]["item_id"].as_str().unwrap();
    let shown = b.run(&["--json", "item", "show", item]).json();
    assert_eq!(shown["record"]["author"], did(&b), "{shown}");
    // So nobody is asked to read it first, as what an agent wrote would have to be.
    b.run(&["item", "confirm", item]).ok();
}

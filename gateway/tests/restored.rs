//! Restoring: all of it or nothing, what was ended since ended again, and every receipt chain says that it happened.

use crate::program::*;
use oap_gateway::client::{Caller, HomeClient};
use oap_gateway::service::restored::Unknown;
use oap_gateway::system::home;
use oap_gateway::system::restore::{Restore, Step};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, Stdio};

fn add(owner: &Home, text: &str) -> String {
    let written =
        owner.run(&["--json", "item", "add", "--kind", "fact", "--text", text, "--label", "m"]).json();
    let id = written["item_id"].as_str().or(written["items"][0]["item_id"].as_str());
    id.unwrap().to_owned()
}

fn at(home: &Path, arguments: &[&str]) -> Ran {
    let mut command = Command::new(BINARY);
    command.arg("--home").arg(home).arg("--json").args(arguments).env_remove("RUST_LOG");
    Home::finish(command.stdin(Stdio::null()))
}

fn copied(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let to = to.join(entry.file_name());
        if entry.path().is_dir() {
            copied(&entry.path(), &to);
        } else {
            std::fs::copy(entry.path(), to).unwrap();
        }
    }
}

fn texts(items: &Value) -> Vec<&str> {
    items["items"].as_array().unwrap().iter().map(|i| i["content"]["text"].as_str().unwrap()).collect()
}

/// The disk as it is after each step of a restore is what a kill there leaves. In none of them does anything open that holds what
/// was erased since, and a restore that is run again there comes to its end.
#[tokio::test(flavor = "multi_thread")]
async fn a_restore_that_is_killed_at_any_step_leaves_no_erased_item() {
    let owner = Home::key();
    let gone = add(&owner, "erased later");
    add(&owner, "kept");
    let backup = owner.path("backup");
    owner.run(&["backup", &backup]).ok();
    owner.run(&["delete", "--item", &gone, "--yes"]).ok();
    let list = owner.home().join("erasures.jsonl");

    oap_gateway::system::tls::install();
    let place = tempfile::tempdir().unwrap();
    let live = place.path().join("live");
    std::fs::create_dir(&live).unwrap();
    let mut steps = Vec::new();
    let what = Restore {
        backup: Path::new(&backup),
        list: Some(&list),
        unknown: Unknown::Revoke,
        unauthenticated: false,
    };
    let mut told = |step: Step| {
        copied(&live, &place.path().join(format!("{step:?}")));
        steps.push(step);
    };
    let restored = what.run(&home::Home::new(live.join("new")), &mut told).await.unwrap();
    assert_eq!(restored.replayed.erased, 1);
    assert_eq!(steps.len(), 8);
    for step in steps {
        let left = place.path().join(format!("{step:?}"));
        for name in ["new", "new.restoring"] {
            let ran = at(&left.join(name), &["item", "list"]);
            assert!(!ran.stdout.contains("erased later"), "{step:?} {name}");
            let is_done =
                name == "new" && step == Step::Named || name == "new.restoring" && step == Step::Finished;
            assert_eq!(ran.status == 0, is_done, "{step:?} {name}: {ran:?}");
            if !is_done && left.join(name).join("config.toml").exists() {
                assert!(ran.stderr.contains("half restored"), "{step:?} {name}: {ran:?}");
            }
        }
        let again = ["restore", &backup, "--erasures", &list.to_string_lossy()];
        match step {
            Step::Named => at(&left.join("new"), &again).failed(1, "already"),
            // Opened above, which finished it under the name that it had.
            Step::Finished => at(&left.join("new"), &again).failed(1, "in the way"),
            _ => {
                let restored = at(&left.join("new"), &again).json();
                assert_eq!(
                    (&restored["erased_again"], &restored["sound"]),
                    (&json!(1), &json!(true)),
                    "{step:?}"
                );
                assert_eq!(texts(&at(&left.join("new"), &["item", "list"]).json()), ["kept"], "{step:?}");
                assert!(!left.join("new.restoring").exists());
            }
        }
    }
    // A folder that is in use is not written over.
    let taken = place.path().join("taken");
    std::fs::create_dir(&taken).unwrap();
    std::fs::write(taken.join("diary.txt"), "mine").unwrap();
    let ran = at(&taken, &["restore", &backup, "--erasures", &list.to_string_lossy()]);
    ran.failed(1, "must not be there");
}

fn grant(owner: &Home, purpose: &str) -> String {
    let issued = owner
        .run(&[
            "--json",
            "grant",
            "issue",
            "--to",
            "did:key:z6MkhaXgBZDvotDkL5257faiztiGiC2QtKLGpbnnEGta2doK",
            "--purpose",
            purpose,
            "--label",
            "m",
            "--until",
            "30d",
            "--trust-level",
            "2",
        ])
        .json();
    issued["grant"]["grant_id"].as_str().or(issued["grant_id"].as_str()).unwrap().to_owned()
}

fn state(home: &Path, id: &str) -> String {
    let grants = at(home, &["grant", "list"]).json();
    let found = grants["grants"].as_array().unwrap().iter().find(|grant| grant["grant"]["grant_id"] == id);
    found.unwrap()["state"].as_str().unwrap().to_owned()
}

#[test]
fn a_restored_backup_revokes_again_what_was_revoked_since() {
    let owner = Home::web();
    add(&owner, "kept");
    let (gone, kept) = (grant(&owner, "revoked later"), grant(&owner, "kept"));
    let backup = owner.path("backup");
    owner.run(&["backup", &backup]).ok();
    owner.run(&["grant", "revoke", &gone]).ok();
    let list = owner.home().join("erasures.jsonl").to_string_lossy().into_owned();
    let place = tempfile::tempdir().unwrap();
    let home = |name: &str| place.path().join(name);

    let restored = at(&home("rotation"), &["restore", &backup, "--erasures", &list]).json();
    assert_eq!(restored["revoked_again"], json!({"grants": 1, "bridges": 0, "consents": 0, "keys": 0}));
    // The receipt of the revocation is none of the backup's.
    assert_eq!(
        (&restored["lost_receipts"], &restored["grants_paused"]),
        (&json!(1), &json!(true)),
        "{restored}"
    );
    assert_eq!(restored["warnings"].as_array().unwrap().len(), 1, "{restored}");
    assert_eq!(
        (state(&home("rotation"), &gone), state(&home("rotation"), &kept)),
        ("revoked".into(), "active".into())
    );
    at(&home("rotation"), &["audit", "verify"]).ok();

    // A key that was compromised since, and its successor, whose secret no backup has.
    owner.run(&["keys", "revoke", "key-1"]).ok();
    let restored = at(&home("keys"), &["restore", &backup, "--erasures", &list]).json();
    assert_eq!(restored["revoked_again"]["keys"], 1, "{restored}");
    assert!(restored["warnings"].to_string().contains("is lost"), "{restored}");
    let keys = at(&home("keys"), &["keys", "list"]).json();
    let keys: Vec<(&str, &str)> = keys["keys"]
        .as_array()
        .unwrap()
        .iter()
        .map(|key| (key["kid"].as_str().unwrap().split('#').nth(1).unwrap(), key["state"].as_str().unwrap()))
        .collect();
    assert_eq!(keys, [("key-3", "current"), ("key-1", "revoked")]);
    // It signed both grants.
    assert_eq!(state(&home("keys"), &kept), "revoked");

    // Without a list nobody knows: all are revoked, unless the owner says otherwise.
    let ran = at(&home("none"), &["restore", &backup, "--without-erasures"]);
    assert!(ran.stderr.contains("WARNING") && ran.stderr.contains("issue again"), "{}", ran.stderr);
    assert_eq!(ran.json()["revoked_again"]["grants"], 2);
    assert_eq!(state(&home("none"), &kept), "revoked");
    let ran = at(&home("keep"), &["restore", &backup, "--without-erasures", "--keep-grants"]);
    assert!(ran.stderr.contains("WARNING"), "{}", ran.stderr);
    ran.ok();
    assert_eq!(state(&home("keep"), &gone), "active");
}

/// Bridges and consents that were taken back, through the owner's requests.
#[tokio::test(flavor = "multi_thread")]
async fn bridges_and_consents_stay_taken_back() {
    oap_gateway::system::tls::install();
    let owner = Home::key();
    add(&owner, "kept");
    let (a, b) = (grant(&owner, "consent withdrawn"), grant(&owner, "consent given"));
    let none = std::collections::BTreeMap::new();
    let connect = || HomeClient::connect(home::Home::new(owner.home()), &none, Caller::default());
    let post = async |path: &str, body: Value| {
        let client = connect().await.unwrap();
        client.call("POST", path, &[], Some(&body)).await.unwrap()
    };
    let draft = json!({"from_scope": "work", "to_scope": "personal", "data_categories": ["m"], "valid_until": "2099-01-01T00:00:00Z"});
    let bridge = post("/oap/owner/bridges", draft).await;
    let bridge = bridge["bridge"]["bridge_id"].as_str().or(bridge["bridge_id"].as_str()).unwrap().to_owned();
    for id in [&a, &b] {
        post(&format!("/oap/owner/grants/{id}/consent"), json!({"given": true})).await;
    }
    let backup = owner.path("backup");
    owner.run(&["backup", &backup]).ok();
    post(&format!("/oap/owner/bridges/{bridge}/revoke"), json!({})).await;
    post(&format!("/oap/owner/grants/{a}/consent"), json!({"given": false})).await;
    let list = owner.home().join("erasures.jsonl").to_string_lossy().into_owned();
    let place = tempfile::tempdir().unwrap();
    let new = place.path().join("new");
    let restored = at(&new, &["restore", &backup, "--erasures", &list]).json();
    assert_eq!(
        restored["revoked_again"],
        json!({"grants": 0, "bridges": 1, "consents": 1, "keys": 0}),
        "{restored}"
    );
    assert_eq!(restored["warnings"].as_array().unwrap().len(), 1, "{restored}");
    assert_eq!(at(&new, &["bridge", "list"]).json()["bridges"][0]["state"], "revoked");
}

/// The tools of an agent, over standard input and output.
fn recalls(home: &Path, agent: &str) -> Ran {
    let mut command = Command::new(BINARY);
    command.arg("--home").arg(home).args(["mcp", "--agent", agent]).env_remove("RUST_LOG");
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let initialize = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "0"}}});
    let call = json!({"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {"name": "memory_recall", "arguments": {"query": "kept"}}});
    let mut input = child.stdin.take().unwrap();
    let mut output = BufReader::new(child.stdout.take().unwrap());
    let mut said = String::new();
    for line in [initialize, json!({"jsonrpc": "2.0", "method": "notifications/initialized"}), call] {
        // One that refused is gone.
        let _ = writeln!(input, "{line}");
        if line["id"].is_u64() {
            let _ = output.read_line(&mut said);
        }
    }
    drop(input);
    let left = child.wait_with_output().unwrap();
    let stderr = String::from_utf8(left.stderr).unwrap();
    Ran { status: left.status.code().unwrap_or(-1), stdout: said, stderr }
}

#[test]
fn an_agent_that_was_removed_since_stays_removed() {
    let owner = Home::key();
    add(&owner, "kept");
    for name in ["gone", "scout"] {
        owner.run(&["agent", "add", name]).ok();
    }
    let backup = owner.path("backup");
    owner.run(&["backup", &backup]).ok();
    owner.run(&["agent", "remove", "gone"]).ok();
    // Of the same name, and not in the backup.
    owner.run(&["agent", "add", "late"]).ok();
    owner.run(&["agent", "remove", "late"]).ok();
    let list = owner.home().join("erasures.jsonl").to_string_lossy().into_owned();
    let place = tempfile::tempdir().unwrap();
    let (new, none) = (place.path().join("new"), place.path().join("none"));
    let restored = at(&new, &["restore", &backup, "--erasures", &list]).json();
    assert_eq!(restored["agents_removed_again"], 1, "{restored}");
    let there = |home: &Path| -> Vec<String> {
        let list = at(home, &["agent", "list"]).json();
        let agents = list["agents"].as_array().unwrap().iter();
        let there = agents.filter(|agent| agent["removed_at"].is_null());
        there.map(|agent| agent["name"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(there(&new), ["scout"]);
    let gone = recalls(&new, "gone");
    assert!(!gone.stdout.contains("kept"), "{gone:?}");
    assert!(recalls(&new, "scout").ok().contains("kept"));
    // Its own list says it, too: whoever restores the same backup again with that one.
    let list = new.join("erasures.jsonl").to_string_lossy().into_owned();
    let again = at(&place.path().join("again"), &["restore", &backup, "--erasures", &list]).json();
    assert_eq!(again["agents_removed_again"], 1, "{again}");

    // Where no list says it the owner is told.
    let ran = at(&none, &["restore", &backup, "--without-erasures"]);
    assert!(ran.stderr.contains("agents that were removed since"), "{ran:?}");
    assert_eq!(there(&none), ["gone", "scout"]);
}

/// What an agent may do is what the backup has: its owner, who may have taken some of it since, is told.
#[test]
fn what_agents_may_do_after_a_restore_is_told() {
    let owner = Home::key();
    owner.run(&["agent", "add", "lead", "--permission", "admin", "--role", "coordinator"]).ok();
    owner.run(&["agent", "add", "scout", "--permission", "read"]).ok();
    owner.run(&["agent", "add", "gone"]).ok();
    owner.run(&["agent", "remove", "gone"]).ok();
    let backup = owner.path("backup");
    owner.run(&["backup", &backup]).ok();
    owner.run(&["agent", "set", "lead", "--permission", "read", "--role", "worker"]).ok();
    let list = owner.home().join("erasures.jsonl").to_string_lossy().into_owned();
    let place = tempfile::tempdir().unwrap();
    let restored = at(&place.path().join("new"), &["restore", &backup, "--erasures", &list]).json();
    let warnings = restored["warnings"].to_string();
    let told = "lead (memory.admin, coordinator), scout (memory.read, worker)";
    assert!(warnings.contains(told) && !warnings.contains("gone"), "{restored}");
}

/// A home of an earlier program, whose list tells of no agents: the next start adds them.
#[test]
fn a_list_is_completed_with_the_agents_that_were_removed() {
    let owner = Home::key();
    owner.run(&["agent", "add", "gone"]).ok();
    let backup = owner.path("backup");
    owner.run(&["backup", &backup]).ok();
    let list = owner.home().join("erasures.jsonl");
    let before = std::fs::read(&list).unwrap();
    owner.run(&["agent", "remove", "gone"]).ok();
    std::fs::write(&list, before).unwrap();
    owner.run(&["agent", "list"]).ok();
    let place = tempfile::tempdir().unwrap();
    let list = list.to_string_lossy().into_owned();
    let restored = at(&place.path().join("new"), &["restore", &backup, "--erasures", &list]).json();
    assert_eq!(restored["agents_removed_again"], 1, "{restored}");
}

/// The same place of a chain is signed twice after a restore: each chain says so, and how far it was known to have come.
#[test]
fn a_fork_of_a_receipt_chain_is_declared() {
    let owner = Home::key();
    add(&owner, "before");
    let backup = owner.path("backup");
    owner.run(&["backup", &backup]).ok();
    let gone = add(&owner, "after the backup");
    owner.run(&["delete", "--item", &gone, "--yes"]).ok();
    let list = owner.home().join("erasures.jsonl").to_string_lossy().into_owned();
    let lengths = |home: &Path| at(home, &["audit", "verify"]).json();
    let known = lengths(&owner.home());
    let place = tempfile::tempdir().unwrap();
    let new = place.path().join("new");
    let restored = at(&new, &["restore", &backup, "--erasures", &list]).json();
    assert_eq!(restored["chains"], 2, "{restored}");
    lengths(&new);
    let receipts = at(&new, &["audit", "--limit", "1000"]).json();
    let all = receipts["receipts"].as_array().unwrap();
    let said: Vec<&Value> = all.iter().filter(|r| r["action_id"] == "memory.restore_backup").collect();
    assert_eq!(said.len(), 2);
    let chain = known["chains"].as_array().unwrap().iter().find(|c| c["chain"] == "personal").unwrap();
    let personal = said.iter().find(|r| r["policy_decisions"][0]["known"]["tip"] == chain["tip"]).unwrap();
    let decision = &personal["policy_decisions"][0];
    assert_eq!(decision["known"]["length"], chain["length"]);
    assert!(decision["continued_from"]["length"].as_u64() < chain["length"].as_u64(), "{decision}");
    assert!(decision["continued_from"]["tip"].is_string());
}

/// Every file below a folder, by its name from there.
fn files(folder: &Path) -> std::collections::BTreeMap<String, Vec<u8>> {
    let mut found = std::collections::BTreeMap::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        if path.is_dir() {
            found.extend(files(&path).into_iter().map(|(below, bytes)| (format!("{name}/{below}"), bytes)));
        } else {
            found.insert(name, std::fs::read(&path).unwrap());
        }
    }
    found
}

/// The lines of a PEM file that are its key.
fn key_lines(pem: &[u8]) -> Vec<String> {
    let text = String::from_utf8(pem.to_vec()).unwrap();
    text.lines().filter(|line| !line.starts_with("-----")).map(str::to_owned).collect()
}

fn serve(home: &Path) -> Server {
    let mut command = Command::new(BINARY);
    command.arg("--home").arg(home).arg("serve").env_remove("RUST_LOG");
    Server::start(command)
}

/// Whoever copies the folder of a backup, without the master key, is not the owner, and cannot serve in the owner's name. After a
/// restore, the administrator of the time before is nobody.
#[test]
fn a_backup_holds_no_key_and_no_token() {
    let owner = Home::web();
    owner.serve(&[]).stop();
    let secret = |home: &Path, name: &str| read(home.join("admin.json"))[name].as_str().unwrap().to_owned();
    let tls = std::fs::read(owner.home().join("tls/key.pem")).unwrap();
    let mut secrets = key_lines(&tls);
    secrets.extend(["agent_key", "trust_token"].map(|name| secret(&owner.home(), name)));
    let former = std::fs::read(owner.home().join("admin.json")).unwrap();
    let backup = owner.path("backup");
    owner.run(&["backup", &backup]).ok();
    // The token that was good while the backup was made.
    secrets.push(secret(&owner.home(), "trust_token"));
    for (name, bytes) in files(Path::new(&backup)) {
        for secret in &secrets {
            let found = bytes.windows(secret.len()).any(|window| window == secret.as_bytes());
            assert!(!found, "{name} holds a secret");
        }
    }
    // As an earlier version of the program made it: with both in clear, and no hashes of them.
    let mut info = read(Path::new(&backup).join("backup.json"));
    info["format"] = json!("oap-memory-backup/1");
    info.as_object_mut().unwrap().retain(|member, _| member != "files" && member != "mac");
    let earlier = owner.path("earlier");
    copied(Path::new(&backup), Path::new(&earlier));
    write(Path::new(&earlier).join("backup.json"), &info);
    std::fs::write(Path::new(&earlier).join("admin.json"), &former).unwrap();
    std::fs::create_dir_all(Path::new(&earlier).join("tls")).unwrap();
    std::fs::write(Path::new(&earlier).join("tls/key.pem"), &tls).unwrap();

    let place = tempfile::tempdir().unwrap();
    for (name, from) in [("new", &backup), ("of-earlier", &earlier)] {
        let new = place.path().join(name);
        at(&new, &["restore", from, "--without-erasures", "--accept-unauthenticated"]).ok();
        assert!(!new.join("tls").exists(), "{name}");
        assert_ne!(secret(&new, "agent_key"), secret(&owner.home(), "agent_key"), "{name}");
        let server = serve(&new);
        assert_ne!(std::fs::read(new.join("tls/key.pem")).unwrap(), tls, "{name}");
        at(&new, &["item", "list"]).ok();
        let fresh = std::fs::read(new.join("admin.json")).unwrap();
        std::fs::write(new.join("admin.json"), &former).unwrap();
        at(&new, &["item", "list"]).failed(3, "trust token");
        std::fs::write(new.join("admin.json"), &fresh).unwrap();
        at(&new, &["item", "list"]).ok();
        server.stop();
    }
}

/// Whoever asks for the backup, and whatever becomes of them: the job makes all of it, and what it made is checked before anything is
/// restored.
#[tokio::test(flavor = "multi_thread")]
async fn a_backup_is_whole_when_its_job_is_done() {
    oap_gateway::system::tls::install();
    let owner = Home::key();
    add(&owner, "kept");
    let lists = owner.home().join("sanctions");
    std::fs::create_dir(&lists).unwrap();
    std::fs::write(lists.join("ofac.txt"), "did:web:sanctioned.example\n").unwrap();
    let none = std::collections::BTreeMap::new();
    let job = async |folder: &str| {
        let client =
            HomeClient::connect(home::Home::new(owner.home()), &none, Caller::default()).await.unwrap();
        let wanted = json!({"job": "backup", "folder": folder});
        let begun = client.call("POST", "/oap/owner/jobs", &[], Some(&wanted)).await.unwrap();
        let path = format!("/oap/owner/jobs/{}", begun["job_id"].as_str().unwrap());
        client.call("GET", &path, &[("wait", "20".to_owned())], None).await.unwrap()
    };
    let backup = owner.path("backup");
    let done = job(&backup).await;
    assert_eq!(done["state"], "done", "{done}");
    let place = tempfile::tempdir().unwrap();
    let restore = |name: &str| at(&place.path().join(name), &["restore", &backup, "--without-erasures"]);
    restore("whole").ok();
    assert_eq!(
        std::fs::read(place.path().join("whole/sanctions/ofac.txt")).unwrap(),
        std::fs::read(lists.join("ofac.txt")).unwrap()
    );
    // Each of its files is checked, and none is left out in silence.
    for name in ["config.toml", "did.json", "sanctions/ofac.txt"] {
        let path = Path::new(&backup).join(name);
        let bytes = std::fs::read(&path).unwrap();
        std::fs::write(&path, [&bytes[..], b"\n"].concat()).unwrap();
        restore("changed").failed(4, &format!("{name}: is not what was written"));
        std::fs::remove_file(&path).unwrap();
        restore("changed").failed(4, name);
        std::fs::write(&path, &bytes).unwrap();
    }
    // Nor does it name what is none of a backup's.
    let info = read(Path::new(&backup).join("backup.json"));
    for name in
        ["../outside", "/etc/passwd", "admin.json", "tls/key.pem", "profiles/../../x.toml", "store/x.txt"]
    {
        let mut forged = info.clone();
        forged["files"][name] = forged["vault"].clone();
        write(Path::new(&backup).join("backup.json"), &forged);
        restore("named").failed(4, "backup.json: files");
    }
    write(Path::new(&backup).join("backup.json"), &info);
    restore("again").ok();

    // What cannot be copied: no backup, rather than half of one.
    std::os::unix::fs::symlink("/nowhere/at/all", lists.join("un.txt")).unwrap();
    let half = owner.path("half");
    let failed = job(&half).await;
    assert_eq!(failed["state"], "failed", "{failed}");
    assert!(!Path::new(&half).exists());
}

/// The bytes of a pair in `store.bin` and where the next begins.
fn pair_end(store: &[u8], at: usize) -> usize {
    let length = |from: usize| u32::from_le_bytes(store[from..from + 4].try_into().unwrap()) as usize;
    at + 8 + length(at) + length(at + 4)
}

/// Whoever can write to the folder of a backup, and has no master key, makes the hashes fit what they changed. Nothing of it is
/// restored, and nothing of its configuration is used.
#[test]
fn a_backup_that_somebody_changed_is_not_restored() {
    let owner = Home::key();
    add(&owner, "kept");
    let hold = add(&owner, "held");
    owner.run(&["hold", "set", &hold, "--until", "2099-01-01"]).ok();
    let backup = owner.path("backup");
    owner.run(&["backup", &backup]).ok();
    let place = tempfile::tempdir().unwrap();
    let forged = |name: &str, change: &dyn Fn(&Path, &mut Value)| {
        let folder = place.path().join(format!("{name}.backup"));
        copied(Path::new(&backup), &folder);
        let mut info = read(folder.join("backup.json"));
        change(&folder, &mut info);
        write(folder.join("backup.json"), &info);
        folder.to_string_lossy().into_owned()
    };
    let hash = |path: &Path| json!(oap_identity::Hash::of(&std::fs::read(path).unwrap()));
    let steal = |folder: &Path, info: &mut Value| {
        let config = folder.join("config.toml");
        let text = std::fs::read_to_string(&config).unwrap();
        std::fs::write(&config, format!("{text}belief_threshold = 0.6\n")).unwrap();
        info["files"]["config.toml"] = hash(&config);
    };
    let drop_pair = |folder: &Path, info: &mut Value| {
        let path = folder.join("store.bin");
        let mut store = std::fs::read(&path).unwrap();
        // The hold is one row of table 27, in the clear as a number.
        let mut at = 0;
        while store[at + 8] != 27 {
            at = pair_end(&store, at);
        }
        store.drain(at..pair_end(&store, at));
        std::fs::write(&path, store).unwrap();
        info["pairs"] = json!(info["pairs"].as_u64().unwrap() - 1);
        info["store"] = hash(&path);
    };
    let earlier = |info: &mut Value, form: &str| {
        info["format"] = json!(form);
        info.as_object_mut().unwrap().remove("mac");
    };
    let cases = [
        ("config", forged("config", &steal), "mac"),
        ("pair", forged("pair", &drop_pair), "mac"),
        ("time", forged("time", &|_, info| info["at"] = json!("2026-01-01T00:00:00Z")), "mac"),
        ("bare", forged("bare", &|_, info| drop(info.as_object_mut().unwrap().remove("mac"))), "mac"),
        (
            "second",
            forged("second", &|folder, info| {
                steal(folder, info);
                earlier(info, "oap-memory-backup/2");
            }),
            "--accept-unauthenticated",
        ),
        (
            "first",
            forged("first", &|folder, info| {
                steal(folder, info);
                earlier(info, "oap-memory-backup/1");
                info.as_object_mut().unwrap().remove("files");
            }),
            "--accept-unauthenticated",
        ),
    ];
    for (name, folder, why) in &cases {
        let new = place.path().join(name);
        at(&new, &["restore", folder, "--without-erasures"]).failed(4, why);
        assert!(!new.exists() && !place.path().join(format!("{name}.restoring")).exists(), "{name}");
    }
    // The flag is for what has no MAC; one that does not fit stays refused.
    let flags = ["--without-erasures", "--accept-unauthenticated"];
    let (new, folder) = (place.path().join("flagged"), &cases[0].1);
    at(&new, &[&["restore", folder][..], &flags].concat()).failed(4, "mac");
    assert!(!new.exists());
    let ran = at(&new, &[&["restore", &cases[4].1][..], &flags].concat());
    assert!(ran.stderr.contains("WARNING: nothing shows that this backup"), "{}", ran.stderr);
    ran.ok();
    let whole = place.path().join("whole");
    let restored = at(&whole, &["restore", &backup, "--without-erasures"]).json();
    assert!(!restored["warnings"].to_string().contains("nothing shows"), "{restored}");
}

/// The master key of a backup does not lie beside it, where whoever made another backup would put another's.
#[test]
fn a_backup_does_not_bring_its_own_master_key() {
    let owner = Home::key();
    let backup = owner.path("backup");
    owner.run(&["backup", &backup]).ok();
    let key = Path::new(&backup).join("its.key");
    std::fs::copy(owner.path("key"), &key).unwrap();
    let mut command = Command::new(BINARY);
    let new = owner.path("new");
    command.args(["--home", &new, "restore", &backup, "--without-erasures"]);
    command.env("OAP_MEMORY_KEY_FILE", &key).env_remove("RUST_LOG");
    Home::finish(command.stdin(Stdio::null())).failed(1, "master key");
    assert!(!Path::new(&new).exists());
}

/// The master key is nobody's credential, by whatever name it is called.
#[test]
fn the_master_key_is_not_sent_to_the_endpoint_of_embeddings() {
    let owner = Home::key();
    let key = owner.path("key");
    let (link, hard, copy) = (owner.path("link"), owner.path("hard"), owner.path("copy"));
    std::os::unix::fs::symlink(&key, &link).unwrap();
    std::fs::hard_link(&key, &hard).unwrap();
    std::fs::copy(&key, &copy).unwrap();
    let config = owner.home().join("config.toml");
    let text = std::fs::read_to_string(&config).unwrap();
    for named in [&key, &link, &hard, &copy] {
        let more = format!(
            "embedding_url = \"http://127.0.0.1:9/\"\nembedding_model = \"m\"\nembedding_dimensions = 4\nembedding_key_file = {named:?}\n"
        );
        std::fs::write(&config, format!("{text}{more}")).unwrap();
        owner.run(&["item", "list"]).failed(1, "embedding_key_file");
    }
}

/// What was retracted since the backup is in no view, and what was to be erased at the end of a hold still is.
#[test]
fn what_was_withdrawn_since_the_backup_is_not_current_again() {
    let owner = Home::key();
    let (retracted, bulk) = (add(&owner, "retracted"), add(&owner, "retracted in bulk"));
    let (back, held) = (add(&owner, "retracted and restored"), add(&owner, "held and deleted"));
    let before = add(&owner, "retracted before");
    owner.run(&["item", "retract", &before]).ok();
    let backup = owner.path("backup");
    owner.run(&["backup", &backup]).ok();
    owner.run(&["item", "retract", &retracted]).ok();
    owner.run(&["item", "retract", &bulk, "--label", "m", "--yes"]).ok();
    owner.run(&["item", "retract", &back]).ok();
    owner.run(&["item", "restore", &back]).ok();
    owner.run(&["item", "restore", &before]).ok();
    owner.run(&["hold", "set", &held, "--until", "2098-01-01"]).ok();
    owner.run(&["delete", "--item", &held, "--yes"]).ok();
    owner.run(&["hold", "set", &held, "--until", "2099-01-01"]).ok();
    let list = owner.home().join("erasures.jsonl").to_string_lossy().into_owned();
    let place = tempfile::tempdir().unwrap();
    let new = place.path().join("new");
    let restored = at(&new, &["restore", &backup, "--erasures", &list]).json();
    assert_eq!(restored["withdrawn_again"], json!({"retracted": 2, "held": 1}), "{restored}");
    assert_eq!(texts(&at(&new, &["item", "list"]).json()), ["retracted and restored"]);
    let holds = at(&new, &["hold", "list"]).json();
    assert_eq!(holds["holds"][0]["erase_after"], true, "{holds}");
    assert!(holds["holds"][0]["until"].as_str().unwrap().starts_with("2099-01-01"), "{holds}");
    at(&new, &["hold", "release", &held]).ok();
    assert_eq!(at(&new, &["item", "show", &held]).json()["item"]["status"], "erased");
    // And once more, of the list that the new home has.
    let list = new.join("erasures.jsonl").to_string_lossy().into_owned();
    let again = place.path().join("again");
    let restored = at(&again, &["restore", &backup, "--erasures", &list]).json();
    assert_eq!(restored["withdrawn_again"], json!({"retracted": 2, "held": 0}), "{restored}");
    assert_eq!(restored["erased_again"], 1, "{restored}");
    assert_eq!(texts(&at(&again, &["item", "list"]).json()), ["retracted and restored"]);
}

/// What restricted an item since the backup is not in it. So no grant answers until the owner has looked, or has said beforehand that
/// they may.
#[test]
fn grants_answer_nobody_where_receipts_are_lost_until_the_owner_says_so() {
    let owner = Home::web();
    let item = add(&owner, "tea at four");
    let mut grantee = Home::empty();
    let key = grantee.path("my.key");
    let did = grantee.run(&["key", "new", "--out", &key]).ok().trim().to_owned();
    let file = grantee.path("grant.json");
    owner
        .run(&[
            "grant",
            "issue",
            "--to",
            &did,
            "--purpose",
            "tea",
            "--label",
            "m",
            "--until",
            "30d",
            "--trust-level",
            "2",
            "--out",
            &file,
        ])
        .ok();
    let backup = owner.path("backup");
    owner.run(&["backup", &backup]).ok();
    let list = owner.home().join("erasures.jsonl").to_string_lossy().into_owned();
    let place = tempfile::tempdir().unwrap();
    let mut ask = |home: &Path| {
        let authority = home.join("tls/cert.pem").to_string_lossy().into_owned();
        grantee.flags = vec!["--trust-ca".into(), authority, "--allow-local-dids".into()];
        grantee.run(&["query", "--key", &key, "--grant", &file, "tea", "--json"])
    };
    // Nothing but the backup's own receipt: nothing is lost.
    let same = place.path().join("same");
    let restored = at(&same, &["restore", &backup, "--erasures", &list]).json();
    assert_eq!((&restored["lost_receipts"], &restored["warnings"]), (&json!(0), &json!([])), "{restored}");

    owner.run(&["item", "relabel", &item, "--label", "private"]).ok();
    // The list is told of chains when a server stops.
    owner.serve(&[]).stop();
    let (new, kept) = (place.path().join("new"), place.path().join("kept"));
    let restored = at(&new, &["restore", &backup, "--erasures", &list]).json();
    assert_eq!(
        (&restored["lost_receipts"], &restored["grants_paused"]),
        (&json!(1), &json!(true)),
        "{restored}"
    );
    let server = serve(&new);
    ask(&new).failed(3, "lets grants answer again");
    let status = at(&new, &["status"]).json();
    assert!(status["findings"].to_string().contains("grant resume"), "{status}");
    at(&new, &["grant", "resume"]).ok();
    assert!(ask(&new).ok().contains("tea at four"));
    server.stop();
    let receipts = at(&new, &["audit", "--limit", "1000"]).json();
    assert!(receipts.to_string().contains("grants_resumed"), "{receipts}");

    let restored = at(&kept, &["restore", &backup, "--erasures", &list, "--keep-grants"]).json();
    assert_eq!(
        (&restored["lost_receipts"], &restored["grants_paused"]),
        (&json!(1), &json!(false)),
        "{restored}"
    );
    let server = serve(&kept);
    assert!(ask(&kept).ok().contains("tea at four"));
    server.stop();
}

/// A sanctions list counts as it is, without a restart.
#[test]
fn a_sanctions_list_is_read_anew() {
    let owner = Home::web();
    add(&owner, "tea at four");
    let grantee = Home::empty();
    let key = grantee.path("my.key");
    let did = grantee.run(&["key", "new", "--out", &key]).ok().trim().to_owned();
    let file = grantee.path("grant.json");
    owner
        .run(&[
            "grant",
            "issue",
            "--to",
            &did,
            "--purpose",
            "tea",
            "--label",
            "m",
            "--until",
            "30d",
            "--trust-level",
            "2",
            "--out",
            &file,
        ])
        .ok();
    let server = owner.serve(&[]);
    let authority = owner.home().join("tls/cert.pem").to_string_lossy().into_owned();
    let asks = || {
        let flags = ["--trust-ca", &authority, "--allow-local-dids", "--json"];
        grantee.run(&[&flags[..], &["query", "--key", &key, "--grant", &file, "tea"]].concat()).ok()
    };
    let context = owner.path("context.json");
    let rules = json!({"ccc_version": "1.0", "scope_id": "personal", "sanctions_screening": ["ofac"]});
    write(Path::new(&context), &rules);
    let lists = owner.home().join("sanctions");
    std::fs::create_dir(&lists).unwrap();
    for (listed, shown) in [("did:web:other.example", true), (did.as_str(), false)] {
        std::fs::write(lists.join("ofac.txt"), format!("{listed}\n")).unwrap();
        owner.run(&["ccc", "set", &context]).ok();
        assert_eq!(asks().contains("tea at four"), shown, "{listed}");
    }
    server.stop();
}

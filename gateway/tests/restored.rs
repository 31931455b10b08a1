//! Restoring: all of it or nothing, what was ended since ended again, and every receipt chain says that it happened.

mod program;

use oap_gateway::client::{Caller, HomeClient};
use oap_gateway::service::restored::Unknown;
use oap_gateway::system::home;
use oap_gateway::system::restore::{Restore, Step};
use program::*;
use serde_json::{Value, json};
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
    let what = Restore { backup: Path::new(&backup), list: Some(&list), unknown: Unknown::Revoke };
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
    assert_eq!(restored["warnings"], json!([]), "{restored}");
    assert_eq!(
        (state(&home("rotation"), &gone), state(&home("rotation"), &kept)),
        ("revoked".into(), "active".into())
    );
    at(&home("rotation"), &["audit", "verify"]).ok();

    // A key that was compromised since, and its successor, whose secret no backup has.
    owner.run(&["keys", "revoke", "key-1"]).ok();
    let restored = at(&home("keys"), &["restore", &backup, "--erasures", &list]).json();
    assert_eq!(restored["revoked_again"]["keys"], 1, "{restored}");
    assert!(restored["warnings"][0].as_str().unwrap().contains("is lost"), "{restored}");
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
    assert_eq!(restored["warnings"], json!([]));
    assert_eq!(at(&new, &["bridge", "list"]).json()["bridges"][0]["state"], "revoked");
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

//! `docs/openapi.json` is what the endpoints' types say, it is what the gateway serves, and what the gateway answers is as it says.

mod common;

use common::*;
use oap_gateway::api::{all, openapi};
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// `OAP_WRITE_DOCS=1` writes it anew.
#[test]
fn the_document_is_written_down() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/openapi.json");
    let document = format!("{}\n", serde_json::to_string_pretty(&openapi::document()).unwrap());
    if std::env::var_os("OAP_WRITE_DOCS").is_some() {
        std::fs::write(path, document).unwrap();
        return;
    }
    let written = std::fs::read_to_string(path).unwrap_or_default();
    assert!(written == document, "docs/openapi.json is out of date: run this test with OAP_WRITE_DOCS=1");
}

#[tokio::test]
async fn anybody_may_read_it() {
    let world = World::new().await;
    let served = world.raw("GET", openapi::PATH, &[], None).await.ok();
    assert_eq!(served, openapi::document());
}

/// That an answer is as the document says.
#[track_caller]
fn fits(document: &Value, method: &str, path: &str, answer: &Value) {
    let content = &document["paths"][path][method]["responses"]["200"]["content"];
    let mut schema = content["application/oap+json"]["schema"].clone();
    assert!(schema.is_object(), "{method} {path} is not there");
    schema["components"] = document["components"].clone();
    let validator = jsonschema::draft202012::new(&schema).unwrap();
    let wrong: Vec<String> =
        validator.iter_errors(answer).map(|e| format!("{}: {e}", e.instance_path())).collect();
    assert_eq!(wrong, [""; 0], "{method} {path}");
}

/// Every GET of the owner's, and the writes that make something to get.
#[tokio::test]
async fn answers_are_as_it_says() {
    let world = World::new().await;
    let document = openapi::document();
    let mut item = note("The site goes live on 1 June", &["website"]);
    item["content"]["structured"] = json!({"day": 1.5});
    let items = world.owner("POST", "/oap/owner/items", Some(&json!({"items": [item]}))).await.ok();
    fits(&document, "post", "/oap/owner/items", &items);
    let item = items["items"][0]["item_id"].as_str().unwrap().to_owned();
    let change = json!({"item": {"content": {"text": "8 June"}}});
    let written = world.owner("POST", &format!("/oap/owner/items/{item}/correct"), Some(&change)).await.ok();
    fits(&document, "post", "/oap/owner/items/{id}/correct", &written);
    let grant = world.issue(&world.draft(&agent(2))).await["grant_id"].as_str().unwrap().to_owned();
    world.ask(&agent(2), &world.draft(&agent(2)), &json!({})).await;
    let bridge = json!({"from_scope": "work", "to_scope": "personal", "data_categories": ["fact"],
        "valid_until": "2099-01-01T00:00:00Z"});
    let signed = world.owner("POST", "/oap/owner/bridges", Some(&bridge)).await.ok();
    fits(&document, "post", "/oap/owner/bridges", &signed);
    let hold = json!({"items": [item], "reason": "legal_hold", "until": "2099-01-01T00:00:00Z"});
    let held = world.owner("POST", "/oap/owner/holds", Some(&hold)).await.ok();
    fits(&document, "post", "/oap/owner/holds", &held);
    for (path, body) in [
        ("/oap/owner/grants/preview", world.draft(&agent(3))),
        ("/oap/owner/items/search", json!({"text": "June"})),
        ("/oap/owner/items/select", json!({"selection": {"all": true}})),
        ("/oap/owner/items/resolve", json!({"ids": [&item[..10]]})),
        ("/oap/owner/who", json!({"did": agent(2).did()})),
        ("/oap/owner/export/header", json!({})),
    ] {
        let answer = world.owner("POST", path, Some(&body)).await.ok();
        fits(&document, "post", path, &answer);
    }
    let receipts = world.owner("GET", "/oap/audit", None).await.ok();
    fits(&document, "get", "/oap/audit", &receipts);
    let decided = |receipt: &Value| receipt["policy_decisions"][0]["id"].as_str().map(str::to_owned);
    let asked = receipts["receipts"].as_array().unwrap().iter().find(|r| r["action_id"] == "memory.query");
    let decision = decided(asked.unwrap()).unwrap();

    let begun = world.owner("POST", "/oap/owner/jobs", Some(&json!({"job": "doctor"}))).await.body;
    let job = begun["job_id"].as_str().unwrap().to_owned();

    let mut seen = BTreeSet::new();
    for row in all().into_iter().filter(|row| row.method == "GET") {
        let part = match row.path.split_once('{').map(|(before, _)| before) {
            Some("/oap/owner/items/") => &item,
            Some("/oap/owner/grants/") => &grant,
            Some("/oap/owner/decisions/") => &decision,
            Some("/oap/owner/jobs/") => &job,
            Some(other) => panic!("what is at {other}?"),
            None => "",
        };
        let mut path = row.path.replace("{id}", part);
        if row.name == "ExplainItem" {
            path.push_str("?profile=oap.profile.projection.memory.v1&level=2");
        }
        let answer = world.owner("GET", &path, None).await.ok();
        fits(&document, "get", row.path, &answer);
        seen.insert(row.path);
    }
    assert!(seen.len() > 15, "{seen:?}");
}

/// Where the owner's endpoints are is said once: by their types.
#[test]
fn no_other_room_writes_an_owners_path() {
    let mut folders: Vec<_> = ["cli", "client"]
        .map(|room| std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("src").join(room))
        .into();
    let mut looked_at = 0;
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            let text = std::fs::read_to_string(&path).unwrap();
            let found =
                ["\"/oap/owner", "\"/oap/data", "\"/oap/audit"].into_iter().find(|of| text.contains(of));
            assert_eq!(found, None, "{}", path.display());
            looked_at += 1;
        }
    }
    assert!(looked_at > 50, "{looked_at}");
}

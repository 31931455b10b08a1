mod worlds;

use super::*;
use crate::world::Span;

const ITEM: &str = "mem_01KQHPHXG0A1AREXN59HZY6HH6";

fn at(text: &str) -> Timestamp {
    text.parse().unwrap()
}

/// The documents of `docs/bytes.md`, by the name of their block.
fn block(name: &str) -> Value {
    let page = include_str!("../../../../docs/bytes.md");
    let start = format!("```json {name}\n");
    let rest = page.split_once(&start).unwrap_or_else(|| panic!("no block {name}")).1;
    serde_json::from_str(rest.split_once("\n```").unwrap().0).unwrap()
}

/// The owner of `docs/bytes.md`: an item that was captured, then corrected, and a grant at level 2.
fn owner() -> Model {
    let manifest = json!({"belief_threshold": 0.5, "embedding_profiles": []});
    let mut model = Model::new("did:web:user.example".parse().unwrap(), &manifest, Vec::new());
    let draft = json!({"kind": "fact", "content": {"text": "Tea"}, "labels": ["tea", "home"],
        "provenance": {"captured_at": "2026-05-01T12:00:00.000Z"}});
    model.captured(ITEM, &draft, at("2026-05-01T12:00:00.000Z"), &Planted::default());
    let span = Span { class: "email".into(), start: 21, end: 34, text: "ann@b.example".into() };
    let planted = Planted { spans: [("/content/text".to_owned(), vec![span])].into(), ..Planted::default() };
    let changes = json!({"content": {"text": "Tea at ten, write to ann@b.example"}});
    model.corrected(ITEM, &changes, at("2026-05-01T12:00:01.000Z"), &planted);
    model.granted(&block("grant"));
    model
}

fn bytes_answer() -> (Model, String, Expected) {
    let model = owner();
    let id = block("grant")["grant_id"].as_str().unwrap().to_owned();
    let expected = model.query(&id, &block("query"), at("2026-05-01T12:00:04.000Z"), &Disclosed::default());
    (model, id, expected)
}

#[test]
fn the_answer_of_bytes_md_is_what_the_model_expects() {
    let (_, _, expected) = bytes_answer();
    let differences = expected.differences(200, &block("answer"));
    // "tea" is too short a word to be sure of; it may be found.
    assert!(differences.is_empty(), "{differences:#?}");
}

#[test]
fn every_leaf_of_the_answer_of_bytes_md_matters() {
    let (_, _, expected) = bytes_answer();
    let good = block("answer");
    // The values that are fresh or signed, which another check looks at.
    let fresh = ["/signature", "/next_cursor", "/response_id", "/receipt/receipt_id", "/receipt/timestamp"];
    let more = [
        "/receipt/previous_receipt_hash",
        "/receipt/signatures",
        "/receipt/tool_did",
        "/receipt/policy_decisions/0/id",
        "/receipt/policy_decisions/0/rules",
        "/receipt/policy_decisions/0/outcome",
        "/projection_applied/redacted_field_count",
    ];
    let mut looked = 0;
    for pointer in crate::world::leaves(&good).keys() {
        let integrity = pointer.starts_with("/items/0/integrity") && !pointer.ends_with("/event");
        if integrity || fresh.iter().chain(&more).any(|free| pointer.starts_with(free)) {
            continue;
        }
        let mut bad = good.clone();
        *bad.pointer_mut(pointer).unwrap() = json!("spoilt");
        assert!(!expected.differences(200, &bad).is_empty(), "{pointer}");
        looked += 1;
    }
    assert!(looked > 25, "{looked}");
    let mut more = good.clone();
    more["items"][0]["content"]["text"] = json!("Tea at ten, write to ann@b.example");
    assert!(!expected.differences(200, &more).is_empty());
    let mut more = good;
    more["items"][0]["sensitivity"] = json!("internal");
    assert!(!expected.differences(200, &more).is_empty());
}

#[test]
fn the_bundle_of_bytes_md_is_what_the_model_expects() {
    let page = include_str!("../../../../docs/bytes.md");
    let bundle = page.split_once("```jsonl bundle\n").unwrap().1.split_once("\n```").unwrap().0;
    let lines: Vec<Value> = bundle.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let (model, id, _) = bytes_answer();
    let expected = model.export(&id, at("2026-05-01T12:00:06.000Z"), &Disclosed::default());
    let differences = expected.differences(200, &lines);
    assert!(differences.is_empty(), "{differences:#?}");
    assert!(!expected.differences(200, &lines[..1]).is_empty());
}

fn sources(folder: &std::path::Path, found: &mut Vec<std::path::PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() { sources(&path, found) } else { found.push(path) }
    }
}

fn model_sources() -> Vec<(std::path::PathBuf, String)> {
    let mut files = Vec::new();
    sources(&std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("src/model"), &mut files);
    assert!(files.len() > 20, "{}", files.len());
    files.into_iter().map(|file| (file.clone(), std::fs::read_to_string(file).unwrap())).collect()
}

/// A rule that nothing notes would never be exercised.
#[test]
fn every_rule_is_noted_somewhere() {
    let is_code = |file: &std::path::Path| {
        let within = file.to_str().unwrap().rsplit("src/model/").next().unwrap();
        !["rule", "test"].iter().any(|part| within.contains(part))
    };
    let all = model_sources();
    let code: String = all.iter().filter(|(file, _)| is_code(file)).map(|(_, text)| text.as_str()).collect();
    let (mut name, mut looked) = (String::new(), 0);
    for (_, text) in
        all.iter().filter(|(file, _)| file.ends_with("rule/items.rs") || file.ends_with("rule/requests.rs"))
    {
        for line in text.lines().filter(|line| !line.trim_start().starts_with('#')) {
            if let Some(found) = line.strip_prefix("    ").and_then(|line| line.strip_suffix(" {")) {
                name = found.to_owned();
            } else if let Some((variant, _)) = line.trim().split_once(" = \"") {
                looked += 1;
                let by_text = ["SpanClass", "List", "Bound", "Corrected"].contains(&name.as_str());
                assert!(by_text || code.contains(&format!("{name}::{variant}")), "{name}::{variant}");
            }
        }
    }
    assert!(looked > 150, "{looked}");
}

/// The model knows the bytes and nothing of the product's rooms: a mistake of theirs would be its own.
#[test]
fn the_model_stands_apart_from_the_products_rooms() {
    let rooms = ["memory", "grants", "exchange", "store", "manifest", "client", "gateway", "formats"];
    for (file, text) in model_sources() {
        let named = rooms.into_iter().find(|room| text.contains(&format!("oap_{room}")));
        assert_eq!(named, None, "{}", file.display());
        for path in text.lines().filter_map(|line| line.trim_start().strip_prefix("use crate::")) {
            let ours = path.starts_with("model::") || path.starts_with("world::");
            assert!(ours, "{}: {path}", file.display());
        }
    }
}

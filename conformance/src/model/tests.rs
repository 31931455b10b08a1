use super::*;
use crate::world::Span;

const ITEM: &str = "mem_01KQHPHXG033Z5VBP3YV0FF0F3";

fn at(text: &str) -> Timestamp {
    text.parse().unwrap()
}

/// The documents of `docs/bytes.md`, by the name of their block.
fn block(name: &str) -> Value {
    let page = include_str!("../../../docs/bytes.md");
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
    let page = include_str!("../../../docs/bytes.md");
    let bundle = page.split_once("```jsonl bundle\n").unwrap().1.split_once("\n```").unwrap().0;
    let lines: Vec<Value> = bundle.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let (model, id, _) = bytes_answer();
    let expected = model.export(&id, at("2026-05-01T12:00:06.000Z"), &Disclosed::default());
    let differences = expected.differences(200, &lines);
    assert!(differences.is_empty(), "{differences:#?}");
    assert!(!expected.differences(200, &lines[..1]).is_empty());
}

/// A model with one item at level 1, and its grant.
fn small(grant: Value, item: Value) -> (Model, Timestamp) {
    let now = at("2026-05-01T12:00:00Z");
    let mut model = Model::new("did:web:user.example".parse().unwrap(), &json!({}), Vec::new());
    let mut draft = json!({"kind": "fact", "content": {"text": "cartographers"}});
    draft.as_object_mut().unwrap().extend(item.as_object().unwrap().clone());
    model.captured("mem_1", &draft, now, &Planted::default());
    let mut signed = json!({
        "grant_id": "mgr_1", "granter": "did:web:user.example#personal", "grantee": "did:web:b.example", "filter": {},
        "max_items": 5, "trust_level": 2, "redaction_profile": "oap.profile.projection.memory.v1",
        "issued_at": "2026-05-01T12:00:00.000Z", "expires_at": "2026-06-01T12:00:00.000Z",
    });
    signed.as_object_mut().unwrap().extend(grant.as_object().unwrap().clone());
    model.granted(&signed);
    (model, now)
}

fn items(model: &Model, query: &Value, now: Timestamp) -> Vec<String> {
    let expected = model.query("mgr_1", query, now, &Disclosed::default());
    expected.answer().unwrap().items.keys().cloned().collect()
}

#[test]
fn states_take_an_item_out_of_the_view_and_put_it_back() {
    let (mut model, now) = small(json!({}), json!({}));
    let seen = |model: &Model| items(model, &json!({}), now).len();
    assert_eq!(seen(&model), 1);
    model.retracted("mem_1", now);
    assert_eq!(seen(&model), 0);
    model.restored("mem_1", now);
    model.confirmed("mem_1", now);
    let expected = model.query("mgr_1", &json!({}), now, &Disclosed::default());
    let answer = expected.answer().unwrap();
    assert_eq!(answer.chain["mem_1"], ["capture", "retract", "restore", "confirm"]);
    assert_eq!(
        (&answer.items["mem_1"]["/epistemic"], &answer.items["mem_1"]["/version"]),
        (&json!("knowledge"), &json!(1))
    );
    let derived = json!({"kind": "summary", "content": {"text": "x"}, "derived_from": ["mem_1"]});
    model.captured("mem_2", &derived, now, &Planted::default());
    assert_eq!(seen(&model), 2);
    model.deleted(&["mem_1".to_owned()], now);
    assert_eq!(seen(&model), 0);
}

#[test]
fn refusals_of_a_grant_that_is_not_in_force() {
    let (mut model, now) = small(json!({"not_before": "2026-05-02T00:00:00.000Z"}), json!({}));
    let rule =
        |model: &Model, now: Timestamp| match model.query("mgr_1", &json!({}), now, &Disclosed::default()) {
            Expected::Refused { rule: Rule::Refusal(refusal), .. } => Some(refusal),
            _ => None,
        };
    use rule::Refusal;
    assert_eq!(rule(&model, now), Some(Refusal::Draft));
    assert_eq!(rule(&model, at("2026-05-02T00:00:00Z")), None);
    assert_eq!(rule(&model, at("2026-06-01T11:59:59.999Z")), None);
    assert_eq!(rule(&model, at("2026-06-01T12:00:00Z")), Some(Refusal::Expired));
    model.revoked("mgr_1", at("2026-05-03T00:00:00Z"));
    assert_eq!(rule(&model, at("2026-05-03T00:00:00Z")), Some(Refusal::Revoked));
}

#[test]
fn what_is_never_admitted() {
    for (grant, item, expected) in [
        (json!({}), json!({"sensitivity": "restricted"}), 0),
        (json!({"filter": {"sensitivities": ["restricted"]}}), json!({"sensitivity": "restricted"}), 1),
        (json!({}), json!({"exportable": false}), 0),
        (json!({"grantee": "did:web:user.example"}), json!({"exportable": false}), 1),
        (json!({}), json!({"scope_id": "work"}), 0),
        (json!({"filter": {"scopes": ["work"]}}), json!({"scope_id": "work"}), 0),
        (json!({"filter": {"scopes": ["personal"]}}), json!({}), 1),
        (json!({}), json!({"expires_at": "2026-05-01T12:00:00Z"}), 0),
    ] {
        let (model, now) = small(grant.clone(), item.clone());
        assert_eq!(items(&model, &json!({}), now).len(), expected, "{grant} {item}");
    }
}

#[test]
fn a_condition_on_what_is_hidden_admits_nothing() {
    let item = json!({"labels": ["l"], "provenance": {"confidence": 0.7}});
    for (level, query, expected) in [
        (0, json!({"labels_any": ["l"]}), 0),
        (1, json!({"labels_any": ["l"]}), 1),
        (3, json!({"min_confidence": 0.1}), 0),
        (4, json!({"min_confidence": 0.7}), 1),
        (4, json!({"min_confidence": 0.71}), 0),
        (0, json!({"kinds": ["fact"]}), 1),
        (0, json!({"kinds": []}), 0),
        (2, json!({"query": "cartographers"}), 1),
        (1, json!({"query": "cartographers"}), 0),
    ] {
        let (model, now) = small(json!({"trust_level": level}), item.clone());
        assert_eq!(items(&model, &query, now).len(), expected, "{level} {query}");
    }
}

#[test]
fn a_child_gets_what_every_grant_above_gives() {
    let (mut model, now) =
        small(json!({"delegable": {"max_depth": 2}, "max_items": 1}), json!({"labels": ["a"]}));
    model.captured("mem_2", &json!({"kind": "fact", "content": {"text": "x"}}), now, &Planted::default());
    let hash = model.grants["mgr_1"].hash.clone();
    let child = json!({
        "grant_id": "mgr_2", "granter": "did:web:user.example#personal", "grantee": "did:web:c.example", "parent": hash,
        "filter": {"labels_any": ["a"]}, "max_items": 1, "trust_level": 1,
        "redaction_profile": "oap.profile.projection.memory.v1",
        "issued_at": "2026-05-01T12:00:00.000Z", "expires_at": "2026-06-01T12:00:00.000Z",
    });
    model.granted(&child);
    let mut spent = Disclosed::default();
    let of = |model: &Model, id: &str, spent: &Disclosed| {
        model
            .query(id, &json!({}), now, spent)
            .answer()
            .map(|answer| answer.items.keys().cloned().collect::<Vec<_>>())
    };
    assert_eq!(of(&model, "mgr_2", &spent), Some(vec!["mem_1".to_owned()]));
    // What the child got counts against the parent.
    spent.answered(&model, "mgr_2", &json!({}), &json!({"items": [{"item_id": "mem_1"}]}));
    assert_eq!(of(&model, "mgr_1", &spent), Some(vec!["mem_1".to_owned()]));
    let receipt = model.query("mgr_2", &json!({}), now, &spent);
    assert_eq!(receipt.answer().unwrap().receipt.decision["delegation"], json!([hash]));
    model.revoked("mgr_1", now);
    assert_eq!(of(&model, "mgr_2", &spent), None);
}

#[test]
fn budgets_cost_more_for_what_was_had_before() {
    let (model, now) = small(json!({"budget": {"epsilon": 0.021}}), json!({}));
    let mut spent = Disclosed::default();
    let answer = json!({"items": [{"item_id": "mem_1"}]});
    assert!(model.query("mgr_1", &json!({}), now, &spent).answer().is_some());
    spent.answered(&model, "mgr_1", &json!({}), &answer);
    assert!(model.query("mgr_1", &json!({}), now, &spent).answer().is_some(), "0.01 and 0.011");
    spent.answered(&model, "mgr_1", &json!({}), &answer);
    let refused = model.query("mgr_1", &json!({}), now, &spent);
    assert!(matches!(refused, Expected::Refused { status: [429], .. }), "{refused:?}");
}

#[test]
fn a_rule_is_noted_where_it_alone_decides() {
    use rule::{List, ListCase};
    let (model, now) = small(json!({"filter": {"kinds": ["preference"], "labels_any": ["x"]}}), json!({}));
    assert!(items(&model, &json!({}), now).is_empty());
    let kinds = Rule::Filter(List::Kinds, ListCase::OneMiss);
    assert!(!model.decided().contains_key(&kinds), "labels_any was against it as well");
    let (model, now) = small(json!({"filter": {"kinds": ["preference"]}}), json!({}));
    assert!(items(&model, &json!({}), now).is_empty());
    assert_eq!(model.decided()[&kinds], 1);
}

/// The model knows the bytes and nothing of the product's rooms: a mistake of theirs would be its own.
#[test]
fn the_model_stands_apart_from_the_products_rooms() {
    fn sources(folder: &std::path::Path, found: &mut Vec<std::path::PathBuf>) {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() { sources(&path, found) } else { found.push(path) }
        }
    }
    let mut files = Vec::new();
    sources(&std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("src/model"), &mut files);
    assert!(files.len() > 20, "{}", files.len());
    let rooms = ["memory", "grants", "exchange", "store", "manifest", "client", "gateway", "formats"];
    for file in files {
        let text = std::fs::read_to_string(&file).unwrap();
        let named = rooms.into_iter().find(|room| text.contains(&format!("oap_{room}")));
        assert_eq!(named, None, "{}", file.display());
        for path in text.lines().filter_map(|line| line.trim_start().strip_prefix("use crate::")) {
            let ours = path.starts_with("model::") || path.starts_with("world::");
            assert!(ours, "{}: {path}", file.display());
        }
    }
}

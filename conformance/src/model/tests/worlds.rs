//! Small worlds, one rule each.

use super::*;

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

#[test]
fn gates_stand_before_items_of_other_scopes_and_of_what_is_owed() {
    let bridge = json!({"bridge_id": "brg_1", "from_scope": "work", "to_scope": "personal", "data_categories": ["l"],
        "issued_at": "2026-04-01T00:00:00.000Z", "valid_until": "2026-05-02T00:00:00.000Z"});
    let grant = json!({"filter": {"scopes": ["personal", "work"]}, "trust_level": 1});
    let item = json!({"scope_id": "work", "labels": ["l"], "subject_entity_id": "ent_ann"});
    let seen = |context: Value, bridge: Option<&Value>, now: &str, consent: bool| {
        let (mut model, _) = small(grant.clone(), item.clone());
        model.context(&context);
        bridge.iter().for_each(|bridge| model.bridged(bridge));
        if consent {
            model.consented("mgr_1");
        }
        items(&model, &json!({}), at(now)).len()
    };
    let none = json!({"scope_id": "none"});
    let day = "2026-05-01T12:00:00Z";
    assert_eq!(seen(none.clone(), None, day, false), 0);
    assert_eq!(seen(none.clone(), Some(&bridge), day, false), 1);
    assert_eq!(seen(none, Some(&bridge), "2026-05-02T00:00:00Z", false), 0);
    let nda = |kind: &str, party: &str, until: &str| json!({"type": kind, "counterparties": [party], "valid_from": "2026-01-01", "valid_until": until});
    for (context, plain, consented) in [
        (json!({"embargo_list": ["did:web:b.example"]}), 0, 0),
        (json!({"embargo_list": ["did:web:c.example"]}), 1, 1),
        (json!({"professional_codes": ["x"]}), 0, 1),
        (json!({"regulatory_classification": "trade_secret"}), 0, 1),
        (json!({"regulatory_classification": "banking_secrecy"}), 0, 0),
        (json!({"active_ndas": [nda("mutual", "did:web:c.example", "2026-05-01")]}), 0, 0),
        (json!({"active_ndas": [nda("mutual", "did:web:b.example", "2026-05-01")]}), 1, 1),
        (json!({"active_ndas": [nda("mutual", "did:web:c.example", "2026-04-30")]}), 1, 1),
        (json!({"active_ndas": [nda("one_way_outbound", "did:web:c.example", "2026-05-01")]}), 1, 1),
        (json!({"chinese_walls": [{"between": ["work", "did:web:b.example"]}]}), 0, 0),
        (json!({"insider_lists": [{"issuer": "ent_ann"}]}), 0, 1),
        (json!({"insider_lists": [{"issuer": "ent_bob"}]}), 1, 1),
    ] {
        let mut context = context;
        context["scope_id"] = json!("work");
        assert_eq!(seen(context.clone(), Some(&bridge), day, false), plain, "{context}");
        assert_eq!(seen(context.clone(), Some(&bridge), day, true), consented, "{context}");
    }
    let health = json!({"scope_id": "personal", "regulatory_classification": "medical_confidentiality"});
    for (level, subject, expected) in [(0, "ent_ann", 1), (1, "ent_ann", 0), (2, "", 1), (3, "", 0)] {
        let item = if subject.is_empty() { json!({}) } else { json!({"subject_entity_id": subject}) };
        let (mut model, now) = small(json!({"trust_level": level}), item);
        model.context(&health);
        assert_eq!(items(&model, &json!({}), now).len(), expected, "{level} {subject}");
    }
}

#[test]
fn each_audience_of_the_audit_log_sees_its_own() {
    let (model, _, expected) = bytes_answer();
    let answer = block("answer");
    assert!(expected.answer().is_some());
    let mut spent = Disclosed::default();
    let id = block("grant")["grant_id"].as_str().unwrap().to_owned();
    spent.answered(&model, &id, &block("query"), &answer);
    let (query, capture) = (answer["receipt"].clone(), block("receipt-capture"));
    let grantee = query["agent_did"].as_str().unwrap();
    let listing = |receipts: &[&Value]| json!({"receipts": receipts});
    let wrong = |reader, asked: Value, listing: Value| {
        model.audit_where(reader, &asked, &spent).differences(&listing).len()
    };
    assert_eq!(wrong(Reader::Grantee(grantee), json!({}), listing(&[&query])), 0);
    assert_eq!(wrong(Reader::Grantee(grantee), json!({}), listing(&[])), 1, "it must be there");
    assert_eq!(wrong(Reader::Grantee(grantee), json!({}), listing(&[&query, &capture])), 1);
    assert_eq!(
        wrong(Reader::Grantee(grantee), json!({"since": "2026-05-01T12:00:04.001Z"}), listing(&[&query])),
        1
    );
    assert_eq!(wrong(Reader::Grantee(grantee), json!({"grantee": "did:web:c.example"}), listing(&[])), 0);
    assert_eq!(wrong(Reader::Grantee(grantee), json!({"item_id": "mem_other"}), listing(&[])), 0);
    assert_eq!(wrong(Reader::Owner, json!({}), listing(&[&query, &capture])), 0);
    assert_eq!(wrong(Reader::Owner, json!({"item_id": ITEM, "limit": 1}), listing(&[&query])), 0);
    assert_eq!(wrong(Reader::Nobody, json!({}), listing(&[&query])), 1);
    assert_eq!(wrong(Reader::Nobody, json!({}), listing(&[&block("receipt-describe")])), 0);
}

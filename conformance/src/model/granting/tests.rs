use super::*;
use oap_identity::Hash;
use serde_json::json;

const FIRST: &str = "mgr_01KQHPHZEGM1WM4B469VB76N6E";

fn at(text: &str) -> Timestamp {
    text.parse().unwrap()
}

fn with(mut draft: Value, more: &Value) -> Value {
    draft.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    draft
}

fn model() -> Model {
    let manifest = json!({"memory_exchange": {
        "max_grant_size_items": 10, "max_grant_duration_days": 30,
        "supported_redaction_profiles": ["oap.profile.projection.memory.v1", "oap.profile.projection.full.v1"],
    }});
    Model::new("did:web:user.example".parse().unwrap(), &manifest, Vec::new())
}

fn draft() -> Value {
    json!({
        "grantee": "did:web:b.example", "purpose": "testing", "filter": {}, "max_items": 5, "trust_level": 2,
        "redaction_profile": "oap.profile.projection.memory.v1", "expires_at": "2026-05-11T00:00:00.000Z",
        "signature": "x",
    })
}

#[test]
fn a_draft_that_breaks_one_condition_alone() {
    let (model, now) = (model(), at("2026-05-01T00:00:00Z"));
    let long = vec!["x"; 257];
    for (more, expected) in [
        (json!({}), None),
        (json!({"max_items": 10}), None),
        (json!({"max_items": 11}), Some(Granting::MaxItemsAbove)),
        (json!({"max_items": 0}), Some(Granting::MaxItemsZero)),
        (json!({"expires_at": "2026-05-31T00:00:00.000Z"}), None),
        (json!({"expires_at": "2026-05-31T00:00:00.001Z"}), Some(Granting::DurationAbove)),
        (json!({"expires_at": "2026-05-01T00:00:00.000Z"}), Some(Granting::Ended)),
        (json!({"not_before": "2026-05-11T00:00:00.000Z"}), Some(Granting::Ended)),
        (json!({"not_before": "2026-05-02T00:00:00.000Z", "expires_at": "2026-06-01T00:00:00.000Z"}), None),
        (json!({"redaction_profile": "oap.profile.projection.x.v1"}), Some(Granting::UnknownProfile)),
        (json!({"redaction_profile": "oap.profile.projection.full.v1"}), Some(Granting::ProfileLevel)),
        (json!({"redaction_profile": "oap.profile.projection.full.v1", "trust_level": 4}), None),
        (json!({"revocable": false}), Some(Granting::Irrevocable)),
        (json!({"operations": []}), Some(Granting::NoOperations)),
        (json!({"purpose": " "}), Some(Granting::PurposeEmpty)),
        (json!({"purpose": "x".repeat(1001)}), Some(Granting::PurposeTooLong)),
        (json!({"purpose_codes": ["A"]}), Some(Granting::PurposeCodes)),
        (json!({"purpose_codes": vec!["a"; 17]}), Some(Granting::PurposeCodes)),
        (json!({"filter": {"labels_any": long}}), Some(Granting::FilterList)),
        (json!({"filter": {"colours": []}}), Some(Granting::UnknownFilterMember)),
        (json!({"colour": 1}), Some(Granting::UnknownMember)),
        (json!({"delegable": {"max_depth": 6}}), Some(Granting::Depth)),
        (json!({"delegable": {"max_depth": 5}}), None),
        (json!({"budget": {"queries": 0}}), Some(Granting::Budget)),
        (json!({"budget": {"epsilon": 0}}), Some(Granting::Budget)),
        (json!({"budget": {}}), Some(Granting::Budget)),
        (json!({"budget": null}), None),
        (json!({"trust_level": 5}), Some(Granting::Form)),
        (json!({"trust_level": 4}), None),
        (json!({"lawful_basis": "whim"}), Some(Granting::Form)),
        (json!({"filter": {"min_confidence": 1.001}}), Some(Granting::Form)),
        (json!({"filter": {"min_confidence": 1}}), None),
        (json!({"filter": {"kinds": ["rumour"]}}), Some(Granting::Form)),
        (json!({"grantee": "somebody"}), Some(Granting::Form)),
        (json!({"scope": "work"}), None),
        (json!({"scope": "work", "filter": {"scopes": ["personal"]}}), Some(Granting::FilterScopes)),
        (json!({"not_before": "today"}), Some(Granting::Form)),
    ] {
        let judged = model.issues(&with(draft(), &more), now);
        assert_eq!(judged.err(), expected.map(Rule::Granting), "{more}");
    }
    // Each alone: what breaks one of these breaks no other.
    for alone in [Granting::FilterScopes, Granting::UnknownFilterMember, Granting::Form] {
        assert!(model.decided().contains_key(&Rule::Granting(alone)), "{alone}");
    }
    assert!(model.decided().contains_key(&Rule::Permitted(Permitted::MaxItemsAt)));
    assert!(model.decided().contains_key(&Rule::Permitted(Permitted::DurationAt)));
}

#[test]
fn a_child_is_within_its_parent_member_by_member() {
    let (mut model, now) = (model(), at("2026-05-01T00:00:00Z"));
    let parent = with(
        draft(),
        &json!({
            "grant_id": FIRST, "granter": "did:web:user.example#personal", "issued_at": "2026-05-01T00:00:00.000Z",
            "delegable": {"max_depth": 2}, "purpose_codes": ["a", "b"], "budget": {"queries": 5},
            "filter": {"kinds": ["fact"], "labels_all": ["l"], "exclude_labels": [], "min_confidence": 0.5,
                "captured_after": "2026-01-01T00:00:00.000Z"},
        }),
    );
    model.granted(&parent);
    let filter = |more: Value| json!({"filter": with(parent["filter"].clone(), &more)});
    let child = with(
        parent.clone(),
        &json!({
            "grant_id": "mgr_01KQHPHZEGM1WM4B469VB76N6F", "parent": model.grants[FIRST].hash, "delegable": {"max_depth": 1},
        }),
    );
    for (more, expected) in [
        (json!({}), None),
        (json!({"delegable": {"max_depth": 2}}), Some(Granting::ChildDepth)),
        (json!({"granter": "did:web:user.example#work"}), Some(Granting::ChildGranter)),
        (json!({"max_items": 6}), Some(Granting::ChildMaxItems)),
        (json!({"expires_at": "2026-05-11T00:00:00.001Z"}), Some(Granting::ChildEnds)),
        (json!({"trust_level": 3}), Some(Granting::ChildLevel)),
        (json!({"lawful_basis": "contract"}), Some(Granting::ChildBasis)),
        (json!({"operations": ["query", "export"]}), Some(Granting::ChildOperations)),
        (json!({"embedding_access": true}), Some(Granting::ChildEmbeddings)),
        (json!({"bearer": true}), Some(Granting::ChildBearer)),
        (json!({"purpose_codes": ["a"]}), None),
        (json!({"purpose_codes": []}), Some(Granting::ChildPurposeCodes)),
        (json!({"budget": {}}), Some(Granting::Budget)),
        (json!({"budget": {"epsilon": 1}}), Some(Granting::ChildBudget)),
        (json!({"budget": {"queries": 5, "epsilon": 1}}), None),
        (json!({"status": {"status_list": {"idx": 1, "uri": "x"}}}), Some(Granting::ChildStatus)),
        (filter(json!({"kinds": ["fact", "summary"]})), Some(Granting::ChildKinds)),
        (filter(json!({"kinds": []})), None),
        (filter(json!({"labels_all": ["l", "m"]})), None),
        (filter(json!({"labels_all": ["m"]})), Some(Granting::ChildLabelsAll)),
        (filter(json!({"exclude_labels": ["x"]})), None),
        (filter(json!({"min_confidence": 0.4})), Some(Granting::ChildMinConfidence)),
        (filter(json!({"captured_after": "2025-01-01T00:00:00.000Z"})), Some(Granting::ChildCapturedAfter)),
        (filter(json!({"sensitivities": ["restricted"]})), Some(Granting::ChildSensitivities)),
        (filter(json!({"scopes": ["work"]})), Some(Granting::ChildScopes)),
        (json!({"parent": Hash::of(b"").to_string()}), Some(Granting::ChildParent)),
    ] {
        let judged = model.delegates(&with(child.clone(), &more), now);
        assert_eq!(judged.err(), expected.map(Rule::Granting), "{more}");
    }
    // A parent that admits nothing has no child that admits something.
    let mut nothing = parent.clone();
    nothing["filter"] = json!({"labels_all": []});
    model.granted(&nothing);
    let mut child = child;
    child["parent"] = json!(model.grants[FIRST].hash);
    child["filter"] = json!({"labels_all": ["l"]});
    assert_eq!(model.delegates(&child, now).err(), Some(Rule::Granting(Granting::ChildLabelsAll)));
}

fn cases(text: &str) -> Value {
    serde_json::from_str(text).unwrap()
}

/// Grants whose signature holds and whose content does not.
#[test]
fn the_portable_cases_of_grants_agree() {
    let cases = cases(include_str!("../../../cases/grants-signed-anew.json"));
    let cases = cases["cases"].as_array().unwrap();
    // What a signature tells, and members that a draft may not have, are told elsewhere.
    for case in cases.iter().filter(|case| case["id"] != "granter-another") {
        let grant = &case["input"];
        let mut broken = Vec::new();
        if shape::is_grant(grant) {
            let issued = time(&grant["issued_at"]).unwrap();
            broken = Model::new("did:web:user.example".parse().unwrap(), &json!({}), Vec::new())
                .broken(grant, issued, issued);
        } else {
            broken.push(Granting::ChildShape);
        }
        assert_eq!(json!(broken.is_empty()), case["valid"], "{}: {broken:?}", case["id"]);
    }
    assert!(cases.len() > 20);
}

/// The input of a case: its base with a JSON Patch of `add`, `remove` and `replace`.
fn patched(base: &Value, patch: &Value) -> Value {
    let mut document = base.clone();
    for step in patch.as_array().unwrap() {
        let (above, last) = step["path"].as_str().unwrap().rsplit_once('/').unwrap();
        match document.pointer_mut(above).unwrap() {
            Value::Object(members) if step["op"] == "remove" => drop(members.remove(last)),
            Value::Object(members) => drop(members.insert(last.to_owned(), step["value"].clone())),
            Value::Array(elements) => {
                let n = last.parse().unwrap();
                match step["op"].as_str().unwrap() {
                    "add" => elements.insert(n, step["value"].clone()),
                    "remove" => drop(elements.remove(n)),
                    _ => elements[n] = step["value"].clone(),
                }
            }
            other => panic!("{other}"),
        }
    }
    document
}

/// Grants that were made from others, signatures aside.
#[test]
fn the_portable_cases_of_delegations_agree() {
    let file = cases(include_str!("../../../cases/proof-delegations.json"));
    let now = at(file["now"].as_str().unwrap());
    let (mut held, mut broken) = (0, 0);
    for case in file["cases"].as_array().unwrap().iter().filter(|case| case["check"] != "grant.document") {
        let input = patched(&file["bases"][case["base"].as_str().unwrap()], &case["patch"]);
        let mut model = Model::new("did:web:user.example".parse().unwrap(), &json!({}), Vec::new());
        let mut all: Vec<&Value> = input["ancestors"].as_array().into_iter().flatten().collect();
        all.push(&input["grant"]);
        let mut stands = all[0]["parent"].is_null();
        model.granted(all[0]);
        for pair in all.windows(2) {
            // Each is made from the one above it, and from no other.
            let above = Grant::read(pair[0]);
            stands &= pair[1]["parent"] == above.hash && model.delegates(pair[1], now).is_ok();
            model.granted(pair[1]);
        }
        assert_eq!(json!(stands), case["valid"], "{}", case["id"]);
        if stands { held += 1 } else { broken += 1 }
    }
    assert!(held > 5 && broken > 30, "{held} {broken}");
}

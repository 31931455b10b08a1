use super::*;
use serde_json::json;

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
    ] {
        let judged = model.issues(&with(draft(), &more), now);
        assert_eq!(judged.err(), expected.map(Rule::Granting), "{more}");
    }
    assert!(model.decided().contains_key(&Rule::Granting(Granting::MaxItemsAt)));
    assert!(model.decided().contains_key(&Rule::Granting(Granting::DurationAt)));
}

#[test]
fn a_child_is_within_its_parent_member_by_member() {
    let (mut model, now) = (model(), at("2026-05-01T00:00:00Z"));
    let parent = with(
        draft(),
        &json!({
            "grant_id": "mgr_1", "granter": "did:web:user.example#personal", "issued_at": "2026-05-01T00:00:00.000Z",
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
            "grant_id": "mgr_2", "parent": model.grants["mgr_1"].hash, "delegable": {"max_depth": 1},
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
        (json!({"budget": {}}), Some(Granting::ChildBudget)),
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
        (json!({"parent": "sha256:0"}), Some(Granting::ChildParent)),
    ] {
        let judged = model.delegates(&with(child.clone(), &more), now);
        assert_eq!(judged.err(), expected.map(Rule::Granting), "{more}");
    }
    // A parent that admits nothing has no child that admits something.
    let mut nothing = parent.clone();
    nothing["filter"] = json!({"labels_all": []});
    model.granted(&nothing);
    let mut child = child;
    child["parent"] = json!(model.grants["mgr_1"].hash);
    child["filter"] = json!({"labels_all": ["l"]});
    assert_eq!(model.delegates(&child, now).err(), Some(Rule::Granting(Granting::ChildLabelsAll)));
}

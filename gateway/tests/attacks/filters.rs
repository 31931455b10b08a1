//! Conditions of a query on what is hidden, and tricks with their spelling.

use super::{Target, masked};
use crate::common::*;
use serde_json::{Value, json};

async fn alike(target: &Target, one: Value, other: Value) {
    let mut answers = Vec::new();
    for mut query in [one, other] {
        query["request_id"] = json!("01J9V8B7H1ZK4D2A0M9R8F0KQX");
        let mut answer = target.query(query).await;
        answer.body["receipt"]["input_hash"] = json!("");
        answers.push(masked(answer));
    }
    assert_eq!(answers[0], answers[1]);
}

#[tokio::test]
async fn probing_for_labels_outside_the_view() {
    let target = Target::at(2).await;
    for label in ["private", "deals", "never"] {
        alike(&target, json!({"labels_any": [label]}), json!({"labels_any": ["x".repeat(label.len())]}))
            .await;
    }
}

#[tokio::test]
async fn probing_for_labels_that_the_level_hides() {
    let target = Target::at(0).await;
    alike(&target, json!({"labels_any": ["shared"]}), json!({"labels_any": ["shores"]})).await;
    assert_eq!(target.query(json!({"labels_any": ["shared"]})).await.ok()["items"], json!([]));
}

#[tokio::test]
async fn confusable_letters_in_labels() {
    let target = Target::at(2).await;
    for label in
        ["shаred", "ｓｈａｒｅｄ", "SHARED", "shared ", "sha\u{200b}red", "share\u{0301}d", "never\u{0}"]
    {
        let found = target.find(json!({"labels_any": [label]})).await;
        assert!(found.is_empty(), "{label:?} {found:?}");
    }
}

/// An excluded label stays excluded, whatever else the item is labelled and however the query asks for it.
#[tokio::test]
async fn asking_for_the_excluded_label() {
    let target = Target::at(3).await;
    for query in [
        json!({"labels_any": ["never"]}),
        json!({"labels_any": ["shared", "never"]}),
        json!({"query": "never show the budget"}),
    ] {
        let found = target.find(query).await;
        assert!(!found.iter().any(|text| text.contains("Never")), "{found:?}");
    }
}

#[tokio::test]
async fn a_kind_outside_the_grant() {
    let target = Target::at(2).await;
    target
        .world
        .capture(&[json!({"kind": "summary", "content": {"text": "x"}, "labels": ["private"]})])
        .await;
    alike(&target, json!({"kinds": ["summary"]}), json!({"kinds": ["observation"]})).await;
}

#[tokio::test]
async fn a_kind_that_is_none() {
    let target = Target::at(2).await;
    for kind in ["FACT", "fact\u{0}", "*", "fаct", ""] {
        target.query(json!({"kinds": [kind]})).await.refused(400, "invalid_input");
    }
}

/// A confidence that the level hides cannot be found by halving the interval.
#[tokio::test]
async fn bisecting_a_hidden_confidence() {
    let target = Target::at(3).await;
    for least in [0.01, 0.5, 0.73, 0.74, 1.0] {
        let found = target.find(json!({"min_confidence": least})).await;
        assert!(found.is_empty(), "{least}: {found:?}");
    }
}

#[tokio::test]
async fn members_that_a_query_does_not_have() {
    let target = Target::at(2).await;
    for member in [
        "filter",
        "scopes",
        "trust_level",
        "redaction_profile",
        "labels_all",
        "subject_entity_ids",
        "captured_after",
    ] {
        let answer = target.query(json!({"query": "", member: 4})).await;
        let body = answer.refused(400, "invalid_input");
        assert!(body["message"].as_str().unwrap().contains(member), "{body}");
    }
}

#[tokio::test]
async fn a_member_twice() {
    let target = Target::at(2).await;
    let body = r#"{"labels_any": ["shared"], "labels_any": ["private"]}"#;
    let url = format!("{ORIGIN}/oap/memory/query");
    let request = oap_grants::dpop::Request { method: "POST", url: &url };
    let random = oap_identity::random::Seeded::new(77);
    let proof = oap_grants::dpop::prove(&target.grantee, request, &target.token, target.world.now(), &random)
        .unwrap();
    let request = axum::http::Request::builder()
        .method("POST")
        .uri("/oap/memory/query")
        .header("authorization", format!("DPoP {}", target.token))
        .header("dpop", proof)
        .header("content-type", "application/oap+json")
        .body(axum::body::Body::from(body))
        .unwrap();
    target.world.send(request).await.refused(400, "invalid_input");
}

#[tokio::test]
async fn more_than_a_hundred_at_once() {
    let target = Target::at(2).await;
    for most in [json!(0), json!(101), json!(-1), json!(65_536), json!(1e3), json!("all"), json!(1.5)] {
        target.query(json!({"max_results": most})).await.refused(400, "invalid_input");
    }
}

/// Narrowing a filter never adds an item; here for the conditions of a query.
#[tokio::test]
async fn a_narrower_query_that_shows_more() {
    let target = Target::at(2).await;
    let wide = ids(&target.query(json!({"query": "budget tea"})).await.ok());
    for narrower in [
        json!({"query": "budget tea", "kinds": ["fact"]}),
        json!({"query": "budget tea", "labels_any": ["shared"]}),
        json!({"query": "budget tea", "max_results": 1}),
    ] {
        let narrow = ids(&target.query(narrower).await.ok());
        assert!(narrow.iter().all(|id| wide.contains(id)));
    }
}

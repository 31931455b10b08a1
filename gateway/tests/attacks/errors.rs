//! Errors as oracles: "not in your view" and "does not exist" are the same answer.

use super::{Target, masked};
use crate::common::*;
use oap_identity::{GrantId, ItemId, ReceiptId, Timestamp, random::Seeded};
use serde_json::{Value, json};

fn nowhere() -> ItemId {
    ItemId::new(Timestamp::from_millis(START), &Seeded::new(5))
}

async fn alike(target: &Target, one: &str, other: &str) -> Value {
    let (one, other) = (masked(target.get(one).await), masked(target.get(other).await));
    assert_eq!(one, other);
    one.2
}

#[tokio::test]
async fn the_vector_of_an_item_outside() {
    let target = Target::at(2).await;
    let path = |id: &str| format!("/oap/memory/vec/{id}");
    alike(&target, &path(&target.outside), &path(&nowhere().to_string())).await;
    let mut draft = Target::draft(&target.world, 4);
    draft["embedding_access"] = json!(true);
    let grant = target.world.issue(&draft).await;
    let token = target.world.token(&target.grantee, &grant).await;
    let target = Target { token, ..target };
    alike(&target, &path(&target.outside), &path(&nowhere().to_string())).await;
}

#[tokio::test]
async fn the_owners_page_of_an_item() {
    let target = Target::at(2).await;
    let path = |id: &str| format!("/oap/owner/items/{id}");
    let body = alike(&target, &path(&target.outside), &path(&nowhere().to_string())).await;
    assert_eq!(body["error"], "auth_required");
    alike(&target, &path(&target.granted[0]), &path(&nowhere().to_string())).await;
}

#[tokio::test]
async fn the_audit_log_of_an_item_outside() {
    let target = Target::at(2).await;
    let path = |id: &str| format!("/oap/audit?item_id={id}");
    let body = alike(&target, &path(&target.outside), &path(&nowhere().to_string())).await;
    assert_eq!(body["receipts"], json!([]));
}

#[tokio::test]
async fn the_audit_log_of_another_grantee() {
    let target = Target::at(2).await;
    let other = agent(3);
    let mut draft = Target::draft(&target.world, 2);
    draft["grantee"] = json!(other.did());
    let grant = target.world.issue(&draft).await;
    let token = target.world.token(&other, &grant).await;
    target.world.query(&other, &token, &json!({})).await.ok();
    let path = |id: &str| format!("/oap/audit?grant_id={id}");
    let nowhere = GrantId::new(Timestamp::from_millis(START), &Seeded::new(5)).to_string();
    let body = alike(&target, &path(grant["grant_id"].as_str().unwrap()), &path(&nowhere)).await;
    assert_eq!(body["receipts"], json!([]));
    let path = format!("/oap/audit?grantee={}", other.did());
    assert_eq!(target.get(&path).await.ok()["receipts"], json!([]));
}

#[tokio::test]
async fn the_state_of_another_grantees_grant() {
    let target = Target::at(2).await;
    let mut draft = Target::draft(&target.world, 2);
    draft["grantee"] = json!(agent(3).did());
    let grant = target.world.issue(&draft).await;
    let nowhere = GrantId::new(Timestamp::from_millis(START), &Seeded::new(5)).to_string();
    let mut answers = Vec::new();
    for id in [grant["grant_id"].as_str().unwrap(), &nowhere] {
        let address = format!("{ORIGIN}/oap/memory/grant/{id}");
        let hash = oap_identity::Hash::of_canonical(&grant).unwrap();
        let now = target.world.now();
        let proof =
            oap_grants::exchange::prove(&target.grantee, &address, hash, now, &Seeded::new(9)).unwrap();
        let authorization = format!("OAP-Proof {proof}");
        let path = format!("/oap/memory/grant/{id}");
        answers
            .push(masked(target.world.raw("GET", &path, &[("authorization", &authorization)], None).await));
    }
    assert_eq!(answers[0], answers[1]);
    assert_eq!(answers[0].0, 404);
}

#[tokio::test]
async fn the_receipt_of_a_capture() {
    let target = Target::at(2).await;
    let listing = target.world.owner("GET", "/oap/audit", None).await.ok();
    let captures = listing["receipts"].as_array().unwrap();
    let capture = captures.iter().find(|r| r["action_id"] == "memory.capture").unwrap();
    let nowhere = ReceiptId::new(Timestamp::from_millis(START), &Seeded::new(5)).to_string();
    let mut answers = Vec::new();
    for id in [capture["receipt_id"].as_str().unwrap(), &nowhere] {
        let value = target.grantee.sign(b"anything");
        let ack = json!({
            "receipt_id": id, "signature": {"by": target.grantee.kid(), "alg": "EdDSA", "value": value},
        });
        answers.push(masked(target.world.raw("POST", "/oap/memory/ack", &[], Some(&ack)).await));
    }
    assert_eq!(answers[0], answers[1]);
    assert_eq!(answers[0].0, 404);
}

#[tokio::test]
async fn decisions_of_the_gates() {
    let target = Target::at(2).await;
    let answer = target.query(json!({})).await.ok();
    let id = answer["receipt"]["policy_decisions"][0]["id"].as_str().unwrap();
    let nowhere = oap_identity::DecisionId::new(Timestamp::from_millis(START), &Seeded::new(5));
    alike(&target, &format!("/oap/owner/decisions/{id}"), &format!("/oap/owner/decisions/{nowhere}")).await;
}

#[tokio::test]
async fn paths_in_another_spelling() {
    let target = Target::at(2).await;
    for path in [
        "/oap/memory/QUERY",
        "/oap//memory/query",
        "/oap/memory/query/",
        "/oap/memory/./query",
        "/metrics",
        "/oap/owner",
        "/oap/memory/vec/",
        "/.well-known/../oap/owner/items",
        "/oap/memory/export",
    ] {
        let answer = target.world.raw("GET", path, &[], None).await;
        assert!([404, 405].contains(&answer.status.as_u16()), "{path}: {}", answer.status);
    }
}

#[tokio::test]
async fn messages_that_quote_what_is_hidden() {
    let target = Target::at(2).await;
    for query in [
        json!({"query": "x".repeat(5000)}),
        json!({"kinds": ["zanzibar"]}),
        json!({"min_confidence": 2}),
        json!({"cursor": "AAAA"}),
        json!({"include_embeddings": true}),
        json!({"request_id": "zanzibar"}),
    ] {
        let answer = target.query(query).await;
        let message = answer.body["message"].as_str().unwrap();
        for hidden in ["bobby", "Xk29", "Wollongong", &target.outside, &target.token[..20], "/"] {
            assert!(!message.contains(hidden), "{message}");
        }
    }
}

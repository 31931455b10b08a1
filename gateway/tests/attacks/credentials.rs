//! Tokens, proofs and caches: what belongs to one grant is of no use under another.

use super::Target;
use crate::common::*;
use oap_grants::dpop;
use oap_identity::random::Seeded;
use serde_json::{Value, json};
use std::time::Duration;

async fn send(target: &Target, headers: &[(&str, &str)]) -> Answer {
    target.world.raw("POST", "/oap/memory/query", headers, Some(&json!({"query": ""}))).await
}

fn proof(target: &Target, token: &str, seed: u64) -> String {
    let url = format!("{ORIGIN}/oap/memory/query");
    let request = dpop::Request { method: "POST", url: &url };
    dpop::prove(&target.grantee, request, token, target.world.now(), &Seeded::new(seed)).unwrap()
}

async fn second_token(target: &Target, level: u8) -> String {
    let grant = target.world.issue(&Target::draft(&target.world, level)).await;
    target.world.token(&target.grantee, &grant).await
}

#[tokio::test]
async fn the_proof_of_one_grant_with_the_token_of_another() {
    let target = Target::at(2).await;
    let other = second_token(&target, 4).await;
    let proof = proof(&target, &target.token, 1);
    let answer = send(&target, &[("authorization", &format!("DPoP {other}")), ("dpop", &proof)]).await;
    answer.refused(401, "auth_required");
}

#[tokio::test]
async fn a_proof_twice() {
    let target = Target::at(2).await;
    let proof = proof(&target, &target.token, 1);
    let authorization = format!("DPoP {}", target.token);
    let headers = [("authorization", authorization.as_str()), ("dpop", proof.as_str())];
    send(&target, &headers).await.ok();
    send(&target, &headers).await.refused(401, "auth_required");
}

#[tokio::test]
async fn a_stolen_token() {
    let target = Target::at(2).await;
    let thief = agent(9);
    target.world.query(&thief, &target.token, &json!({})).await.refused(401, "auth_required");
    let bearer = format!("Bearer {}", target.token);
    send(&target, &[("authorization", &bearer)]).await.refused(401, "auth_required");
}

#[tokio::test]
async fn two_credentials_at_once() {
    let target = Target::at(2).await;
    let other = second_token(&target, 4).await;
    let (one, two) = (format!("DPoP {}", target.token), format!("DPoP {other}"));
    let proof = proof(&target, &target.token, 1);
    let headers =
        [("authorization", one.as_str()), ("authorization", two.as_str()), ("dpop", proof.as_str())];
    send(&target, &headers).await.refused(401, "auth_required");
    let headers = [("authorization", one.as_str()), ("dpop", proof.as_str()), ("dpop", proof.as_str())];
    send(&target, &headers).await.refused(401, "auth_required");
}

#[tokio::test]
async fn a_grantees_token_at_the_owners_door() {
    let target = Target::at(4).await;
    for (method, path) in [
        ("GET", "/oap/owner/items"),
        ("GET", "/oap/owner/grants"),
        ("GET", "/oap/owner/contexts"),
        ("GET", "/oap/owner/bridges"),
        ("POST", "/oap/owner/budgets/refill"),
        ("POST", "/oap/data/delete"),
        ("POST", "/oap/owner/jobs"),
    ] {
        let body = json!({});
        let body = (method == "POST").then_some(&body);
        let answer = target.world.as_agent(&target.grantee, &target.token, method, path, body).await;
        answer.refused(401, "auth_required");
    }
}

#[tokio::test]
async fn the_cached_view_of_a_wider_grant() {
    let target = Target::at(2).await;
    let wide = second_token(&target, 4).await;
    let answer = target.world.query(&target.grantee, &wide, &json!({"query": "zanzibar"})).await.ok();
    assert_eq!(ids(&answer).len(), 1, "level 4 sees it");
    assert!(target.find(json!({"query": "zanzibar"})).await.is_empty());
    let answer = target.query(json!({"query": ""})).await.ok();
    assert!(!answer.to_string().contains("zanzibar"));
}

#[tokio::test]
async fn the_cached_view_of_before_a_relabelling() {
    let target = Target::at(2).await;
    assert_eq!(target.find(json!({"query": ""})).await.len(), 2);
    let path = format!("/oap/owner/items/{}/relabel", target.granted[0]);
    target.world.owner("POST", &path, Some(&json!({"labels": ["private"]}))).await.ok();
    assert_eq!(target.find(json!({"query": ""})).await, ["Tea with the team at four"]);
}

#[tokio::test]
async fn the_cached_view_of_before_a_correction() {
    let target = Target::at(2).await;
    target.find(json!({"query": ""})).await;
    let path = format!("/oap/owner/items/{}/correct", target.granted[1]);
    let correction = json!({"item": {"content": {"text": "Coffee alone"}}});
    target.world.owner("POST", &path, Some(&correction)).await.ok();
    assert!(target.find(json!({"query": "tea"})).await.is_empty(), "what it said before");
}

#[tokio::test]
async fn the_cached_view_of_before_a_deletion() {
    let target = Target::at(2).await;
    target.find(json!({"query": ""})).await;
    let what = json!({"items": [target.granted[0]]});
    target.world.owner("POST", "/oap/data/delete", Some(&what)).await.ok();
    assert_eq!(target.find(json!({"query": ""})).await, ["Tea with the team at four"]);
}

/// Many tokens and grants do not add up to more than `max_items` of one grant.
#[tokio::test]
async fn many_tokens_for_one_grant() {
    let target = Target::at(2).await;
    let mut draft = Target::draft(&target.world, 2);
    draft["max_items"] = json!(1);
    let grant = target.world.issue(&draft).await;
    let mut seen = std::collections::BTreeSet::new();
    for query in ["", "tea", "budget", "team"] {
        let token = target.world.token(&target.grantee, &grant).await;
        let answer = target.world.query(&target.grantee, &token, &json!({"query": query})).await.ok();
        seen.extend(ids(&answer));
    }
    assert_eq!(seen.len(), 1);
}

/// Nothing that the grantee writes says what time it is.
#[tokio::test]
async fn a_proof_from_the_past() {
    let target = Target::at(2).await;
    let early = proof(&target, &target.token, 1);
    target.world.clock.advance(Duration::from_secs(31 * 86_400));
    let authorization = format!("DPoP {}", target.token);
    send(&target, &[("authorization", &authorization), ("dpop", &early)]).await.refused(401, "auth_required");
    target.world.exchange(&target.grantee, &target.grant).await.refused(403, "policy_block");
}

/// A child grant is never wider than its parent, field by field.
#[tokio::test]
async fn a_delegated_grant_with_more() {
    let target = Target::at(2).await;
    let mut draft = Target::draft(&target.world, 2);
    draft["delegable"] = json!({"max_depth": 1});
    let parent = target.world.issue(&draft).await;
    let third = agent(4);
    let child = |more: Value| {
        let mut child = parent.clone();
        let members = child.as_object_mut().unwrap();
        for gone in ["signature", "status", "delegable"] {
            members.remove(gone);
        }
        let id = oap_identity::GrantId::new(target.world.now(), &Seeded::new(more.to_string().len() as u64));
        child["grant_id"] = json!(id);
        child["grantee"] = json!(third.did());
        child["parent"] = json!(oap_identity::Hash::of_canonical(&parent).unwrap());
        for (name, value) in more.as_object().unwrap() {
            child[name] = value.clone();
        }
        oap_identity::signed::sign_document(&mut child, &target.grantee).unwrap();
        child
    };
    let accept = async |grant: &Value| target.world.exchange(&third, grant).await;
    for more in [
        json!({"trust_level": 3}),
        json!({"max_items": 501}),
        json!({"embedding_access": true}),
        json!({"bearer": true}),
        json!({"filter": {"labels_any": ["shared", "private"], "exclude_labels": ["never"]}}),
        json!({"filter": {"labels_any": ["shared"]}}),
        json!({"redaction_profile": "oap.profile.projection.full.v1"}),
        json!({"operations": ["query", "export"]}),
        json!({"expires_at": "2026-10-01T00:00:00Z"}),
    ] {
        accept(&child(more.clone())).await.refused(400, "invalid_input");
    }
    accept(&child(json!({}))).await.ok();
}

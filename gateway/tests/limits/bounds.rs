//! Bounds of what a grantee, or a stranger, sends: each is accepted, and one beyond is refused.

use crate::common::*;
use oap_exchange::query::MAX_QUERY;
use oap_gateway::http::invoke::{MAX_ASSERTIONS, MAX_ENVELOPE_TEXT};
use oap_grants::exchange::{self, MAX_CHAIN, MAX_JTI};
use oap_grants::grant::MAX_PURPOSE;
use oap_grants::limits::{MAX_BELOW, MAX_DEPTH, MAX_PURPOSE_CODE, MAX_PURPOSE_CODES};
use oap_identity::random::Seeded;
use oap_identity::signed::{MAX_JWT, sign_document, sign_jwt};
use oap_identity::{GrantId, Hash, Signer};
use oap_memory::answer::MAX_RESULTS;
use oap_memory::item::MAX_SHORT;
use serde_json::{Value, json};
use std::time::Duration;

/// A text of so many bytes.
fn text(bytes: usize) -> String {
    "a".repeat(bytes)
}

#[tokio::test]
async fn a_query() {
    let world = World::new().await;
    world.capture(&[note("tea", &[])]).await;
    let grant = world.issue(&world.draft(&agent(2))).await;
    let token = world.token(&agent(2), &grant).await;
    for (at, beyond) in [
        (json!({"query": text(MAX_QUERY)}), json!({"query": text(MAX_QUERY + 1)})),
        (json!({"max_results": MAX_RESULTS}), json!({"max_results": MAX_RESULTS + 1})),
        (json!({"max_results": 1}), json!({"max_results": 0})),
    ] {
        world.query(&agent(2), &token, &at).await.ok();
        world.query(&agent(2), &token, &beyond).await.refused(400, "invalid_input");
    }
}

#[tokio::test]
async fn an_envelope() {
    let world = World::new().await;
    let ask = async |member: &str, value: Value| {
        let mut envelope = json!({
            "oap_version": "1.0", "request_id": "01J9V8B7H1ZK4D2A0M9R8F0KQX", "timestamp": world.now(),
            "principal_did": "did:plc:somebody", "agent_did": "did:plc:an_agent",
            "action": "memory_describe", "input": {},
            "context": {"locale": "en", "currency": "EUR", "jurisdiction_user": "DE", "jurisdiction_agent": "DE"},
            "signature": {"alg": "EdDSA", "kid": "x", "value": "x"},
        });
        *envelope.pointer_mut(member).unwrap_or(&mut Value::Null) = value.clone();
        if let Some(name) = member.strip_prefix('/').filter(|name| !name.contains('/')) {
            envelope[name] = value;
        }
        world.raw("POST", "/oap/invoke", &[], Some(&envelope)).await.status.as_u16()
    };
    for member in ["/scope_id", "/consent_receipt", "/idempotency_key", "/context/locale", "/signature/value"]
    {
        assert_eq!(ask(member, json!(text(MAX_ENVELOPE_TEXT))).await, 200, "{member}");
        assert_eq!(ask(member, json!(text(MAX_ENVELOPE_TEXT + 1))).await, 400, "{member}");
    }
    // Two are the quotes.
    assert_eq!(ask("/policy_assertions", json!(text(MAX_ASSERTIONS - 2))).await, 200);
    assert_eq!(ask("/policy_assertions", json!(text(MAX_ASSERTIONS - 1))).await, 400);
}

#[tokio::test]
async fn a_draft_of_a_grant() {
    let world = World::new().await;
    let codes = |n: usize| (0..n).map(|i| format!("c{i}")).collect::<Vec<_>>();
    for (member, at, beyond) in [
        ("purpose", json!("ä".repeat(MAX_PURPOSE)), json!("ä".repeat(MAX_PURPOSE + 1))),
        ("purpose_codes", json!(codes(MAX_PURPOSE_CODES)), json!(codes(MAX_PURPOSE_CODES + 1))),
        ("purpose_codes", json!([text(MAX_PURPOSE_CODE)]), json!([text(MAX_PURPOSE_CODE + 1)])),
    ] {
        for (value, is_issued) in [(at, true), (beyond, false)] {
            let mut draft = world.draft(&agent(2));
            draft[member] = value;
            let answer = world.owner("POST", "/oap/owner/grants", Some(&draft)).await;
            assert_eq!(
                answer.status.as_u16(),
                if is_issued { 200 } else { 400 },
                "{member}: {}",
                answer.body
            );
        }
    }
}

#[tokio::test]
async fn an_element_of_a_filter() {
    let world = World::new().await;
    for list in ["labels_any", "labels_all", "exclude_labels", "subject_entity_ids"] {
        let draft = |element: &str| {
            let mut draft = world.draft(&agent(2));
            draft["filter"] = json!({list: [element]});
            draft
        };
        world.issue(&draft(&"ä".repeat(MAX_SHORT))).await;
        let long = draft(&"ä".repeat(MAX_SHORT + 1));
        let refusal =
            world.owner("POST", "/oap/owner/grants", Some(&long)).await.refused(400, "invalid_input");
        let told = format!("filter.{list}: an element has at most {MAX_SHORT} characters");
        assert_eq!(refusal["message"], told);
    }
}

/// A proof of an exchange with that `jti`.
fn proof(world: &World, grantee: &Signer, grant: &Value, jti: &str) -> String {
    let now = world.now().seconds();
    let claims = json!({
        "iss": grantee.did(), "sub": grantee.did(), "aud": format!("{ORIGIN}/oap/memory/grant"), "jti": jti,
        "iat": now, "exp": now + 60, "grant_hash": Hash::of_canonical(grant).unwrap(),
    });
    sign_jwt(grantee, exchange::TYP, &claims).unwrap()
}

#[tokio::test]
async fn a_proof() {
    let world = World::new().await;
    let grant = world.issue(&world.draft(&agent(2))).await;
    let exchange = async |jti: &str| {
        let proof = proof(&world, &agent(2), &grant, jti);
        world.raw("POST", "/oap/memory/grant", &[], Some(&json!({"grant": grant, "proof": proof}))).await
    };
    exchange(&text(MAX_JTI)).await.ok();
    exchange(&text(MAX_JTI + 1)).await.refused(401, "auth_required");
    exchange("").await.refused(401, "auth_required");
    exchange(&text(MAX_JWT)).await.refused(401, "auth_required");
}

/// A grant made from another by its grantee.
fn child(parent: &Value, delegator: &Signer, grantee: &Signer, seed: u64, depth: u8) -> Value {
    let mut child = parent.clone();
    let members = child.as_object_mut().unwrap();
    for made in ["signature", "delegable", "status"] {
        members.remove(made);
    }
    child["grant_id"] = json!(GrantId::new(START_OF_TESTS, &Seeded::new(seed)));
    child["grantee"] = json!(grantee.did());
    child["parent"] = json!(Hash::of_canonical(parent).unwrap());
    if depth > 0 {
        child["delegable"] = json!({"max_depth": depth});
    }
    sign_document(&mut child, delegator).unwrap();
    child
}

const START_OF_TESTS: oap_identity::Timestamp = oap_identity::Timestamp::from_seconds(1_777_636_800);

#[tokio::test]
async fn grants_below_one() {
    let world = World::new().await;
    let mut draft = world.draft(&agent(2));
    draft["delegable"] = json!({"max_depth": 1});
    let parent = world.issue(&draft).await;
    for n in 0..u64::from(MAX_BELOW) {
        if n % 50 == 49 {
            world.clock.advance(Duration::from_secs(60));
        }
        let grant = child(&parent, &agent(2), &agent(3), n, 0);
        world.exchange(&agent(3), &grant).await.ok();
    }
    world.clock.advance(Duration::from_secs(60));
    let one_more = child(&parent, &agent(2), &agent(3), 1_000, 0);
    let refusal = world.exchange(&agent(3), &one_more).await.refused(400, "invalid_input");
    assert!(refusal["message"].as_str().unwrap().contains("100"), "{refusal}");
    // One that was accepted before is none more.
    world.clock.advance(Duration::from_secs(1));
    world.exchange(&agent(3), &child(&parent, &agent(2), &agent(3), 0, 0)).await.ok();
}

#[tokio::test]
async fn a_chain_of_grants() {
    let world = World::new().await;
    let mut draft = world.draft(&agent(2));
    draft["delegable"] = json!({"max_depth": MAX_DEPTH + 1});
    world.owner("POST", "/oap/owner/grants", Some(&draft)).await.refused(400, "invalid_input");
    draft["delegable"] = json!({"max_depth": MAX_DEPTH});
    let mut chain = vec![world.issue(&draft).await];
    for depth in (0..MAX_DEPTH).rev() {
        let delegator = agent(u8::try_from(chain.len()).unwrap() + 1);
        let grantee = agent(u8::try_from(chain.len()).unwrap() + 2);
        let last = chain.last().unwrap();
        chain.push(child(last, &delegator, &grantee, 5_000 + chain.len() as u64, depth));
    }
    assert_eq!(chain.len(), MAX_CHAIN);
    let exchange = async |above: &[Value]| {
        let (last, grantee) = (chain.last().unwrap(), agent(u8::try_from(chain.len()).unwrap() + 1));
        let proof = proof(&world, &grantee, last, &format!("jti-{}", above.len()));
        let request = json!({"grant": last, "chain": above, "proof": proof});
        world.raw("POST", "/oap/memory/grant", &[], Some(&request)).await
    };
    let above: Vec<Value> = chain[..chain.len() - 1].to_vec();
    exchange(&above).await.ok();
    let longer: Vec<Value> = [chain[0].clone()].into_iter().chain(above.iter().cloned()).collect();
    exchange(&longer).await.refused(400, "invalid_input");
}

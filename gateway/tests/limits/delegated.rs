//! What a grant limits, and whom the gates judge, through grants that were made from it: a fresh did:key multiplies nothing
//! and hides nobody.

use crate::common::*;
use oap_exchange::ccc::SanctionsList;
use oap_exchange::gate::Sanctions;
use oap_gateway::state::keyring::StoredKeys;
use oap_gateway::state::refusals::{MAX_AUDITS, MAX_EXCHANGES, MAX_REFUSALS};
use oap_gateway::system::config::Config;
use oap_grants::grant::MAX_PURPOSE;
use oap_grants::limits::MAX_PURPOSE_CODES;
use oap_identity::random::Seeded;
use oap_identity::signed::sign_document;
use oap_identity::{GrantId, Hash, Signer, Timestamp};
use oap_store::Store;
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;

/// A draft of a grant that may be passed on once.
fn delegable(world: &World) -> Value {
    let mut draft = world.draft(&agent(2));
    draft["delegable"] = json!({"max_depth": 1});
    draft
}

/// A grant of agent 2, passed on to a fresh did:key, with these members.
fn child(parent: &Value, grantee: &Signer, more: &Value) -> Value {
    let mut child = parent.clone();
    let members = child.as_object_mut().unwrap();
    for made in ["signature", "delegable", "status"] {
        members.remove(made);
    }
    child["grant_id"] = json!(GrantId::new(
        Timestamp::from_millis(START),
        &Seeded::new(u64::from(
            grantee.did().as_str().bytes().fold(0_u32, |sum, byte| sum.wrapping_mul(31) + u32::from(byte))
        ))
    ));
    child["grantee"] = json!(grantee.did());
    child["parent"] = json!(Hash::of_canonical(parent).unwrap());
    for (name, value) in more.as_object().unwrap() {
        child[name] = value.clone();
    }
    sign_document(&mut child, &agent(2)).unwrap();
    child
}

#[tokio::test]
async fn a_budget_is_one_for_all() {
    let world = World::new().await;
    world.capture(&[note("tea", &[])]).await;
    let mut draft = delegable(&world);
    draft["budget"] = json!({"queries": 3});
    let parent = world.issue(&draft).await;
    let mut answered = 0;
    for seed in 10..15 {
        let grant = child(&parent, &agent(seed), &json!({}));
        let token = world.token(&agent(seed), &grant).await;
        answered += usize::from(world.query(&agent(seed), &token, &json!({})).await.status == 200);
    }
    assert_eq!(answered, 3);
    let token = world.token(&agent(2), &parent).await;
    world.query(&agent(2), &token, &json!({})).await.refused(429, "budget_exhausted");
}

#[tokio::test]
async fn an_account_pays_for_what_was_passed_on() {
    let world = World::with(1, Config { epsilon_per_grantee: 0.02, ..Config::default() }).await;
    world.capture(&[note("tea", &[])]).await;
    let parent = world.issue(&delegable(&world)).await;
    let mut answered = 0;
    for seed in 10..14 {
        let grant = child(&parent, &agent(seed), &json!({}));
        let token = world.token(&agent(seed), &grant).await;
        answered +=
            usize::from(world.query(&agent(seed), &token, &json!({"query": "nothing"})).await.status == 200);
    }
    // So many as the first grantee alone would have got.
    assert_eq!(answered, 2);
}

#[tokio::test]
async fn a_list_and_a_wall_stop_what_is_passed_on() {
    for (context, stops) in [
        (json!({"sanctions_screening": ["eu"]}), true),
        (json!({"chinese_walls": [{"between": ["personal", agent(2).did()], "reason": "competing"}]}), true),
        (json!({"chinese_walls": [{"between": ["personal", agent(9).did()], "reason": "competing"}]}), false),
    ] {
        let random = Arc::new(Seeded::new(1));
        let store = Store::in_memory(random.clone()).unwrap();
        let keys = StoredKeys::generate(&*random, Timestamp::from_millis(START));
        oap_gateway::Gateway::init(&store, &keys).await.unwrap();
        let lists = Sanctions::from([(SanctionsList::Eu, [agent(2).did().to_string()].into())]);
        let world = World::equipped(store, Config::default(), random, lists, None).await;
        world.capture(&[note("Tea at four", &["tea"])]).await;
        let mut context = context;
        context["ccc_version"] = json!("1.0");
        context["scope_id"] = json!("personal");
        world.owner("POST", "/oap/owner/contexts", Some(&context)).await.ok();
        let grant = child(&world.issue(&delegable(&world)).await, &agent(3), &json!({}));
        let token = world.token(&agent(3), &grant).await;
        let answer = world.query(&agent(3), &token, &json!({})).await.ok();
        assert_eq!(texts(&answer).is_empty(), stops, "{context}");
    }
}

#[tokio::test]
async fn a_grant_of_a_delegator_is_a_foreign_document() {
    let world = World::new().await;
    let parent = world.issue(&delegable(&world)).await;
    let other = world.issue(&world.draft(&agent(4))).await;
    let codes: Vec<String> = (0..=MAX_PURPOSE_CODES).map(|n| format!("c{n}")).collect();
    let place = json!({"status_list": {"idx": 0, "uri": format!("{ORIGIN}/oap/memory/status")}});
    let labels = json!({"labels_any": ["a".repeat(oap_memory::item::MAX_SHORT + 1)]});
    for wrong in [
        json!({"status": place}),
        json!({"purpose": "a".repeat(MAX_PURPOSE + 1)}),
        json!({"purpose_codes": codes}),
        json!({"filter": labels}),
        json!({"colour": "red"}),
    ] {
        world.exchange(&agent(3), &child(&parent, &agent(3), &wrong)).await.refused(400, "invalid_input");
    }
    // The id of another's grant meets nothing of it and tells nothing.
    let grant = child(&parent, &agent(3), &json!({"grant_id": other["grant_id"]}));
    world.exchange(&agent(3), &grant).await.ok();
    let listed = world.owner("GET", "/oap/owner/grants", None).await.ok();
    let with_id = listed["grants"].as_array().unwrap().iter();
    assert_eq!(with_id.filter(|info| info["grant"]["grant_id"] == other["grant_id"]).count(), 2);
    world.exchange(&agent(4), &other).await.ok();
    // Another document under an id that was taken, by the same delegator.
    let another = child(&parent, &agent(3), &json!({"grant_id": other["grant_id"], "purpose": "another"}));
    world.exchange(&agent(3), &another).await.refused(400, "invalid_input");
}

/// What is counted is counted for the first grant and all that was made from it.
#[tokio::test]
async fn refusals_are_counted_for_all() {
    let world = World::new().await;
    let parent = world.issue(&delegable(&world)).await;
    let mut tokens = Vec::new();
    for seed in 10..13 {
        let grant = child(&parent, &agent(seed), &json!({}));
        tokens.push((agent(seed), world.token(&agent(seed), &grant).await));
    }
    let path = format!("/oap/owner/grants/{}/revoke", parent["grant_id"].as_str().unwrap());
    world.owner("POST", &path, None).await.ok();
    let mut refused = 0;
    for (grantee, token) in tokens.iter().cycle().take(MAX_REFUSALS as usize * 2) {
        refused += u32::from(world.query(grantee, token, &json!({})).await.status == 403);
    }
    assert_eq!(refused, MAX_REFUSALS);
}

#[tokio::test]
async fn exchanges_and_questions_of_the_log() {
    let world = World::new().await;
    let parent = world.issue(&delegable(&world)).await;
    let other = world.issue(&world.draft(&agent(4))).await;
    let grants = [parent.clone(), child(&parent, &agent(3), &json!({}))];
    for n in 0..MAX_EXCHANGES as usize {
        world.exchange(&agent(2 + (n % 2) as u8), &grants[n % 2]).await.ok();
    }
    for (seed, grant) in (2..).zip(&grants) {
        world.exchange(&agent(seed), grant).await.refused(429, "rate_limited");
    }
    world.exchange(&agent(4), &other).await.ok();
    world.clock.advance(Duration::from_secs(60));
    let token = world.token(&agent(2), &parent).await;
    let ask = async || world.as_agent(&agent(2), &token, "GET", "/oap/audit", None).await;
    for _ in 0..MAX_AUDITS {
        ask().await.ok();
    }
    ask().await.refused(429, "rate_limited");
}

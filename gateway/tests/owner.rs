//! The owner's side: items and their history, keys, credentials, deletion, audit.

use crate::common::*;
use oap_gateway::Config;
use oap_gateway::api::Permission;
use oap_gateway::api::routes::{Access, ROUTES};
use oap_gateway::service::Deletions;
use oap_gateway::service::audit::MAX_LOOKED_AT;
use oap_identity::{DidDocument, Hash, Signer};
use oap_memory::receipt::Action;
use oap_memory::{evidence, receipt};
use serde_json::{Value, json};
use std::time::Duration;

const DAY: Duration = Duration::from_secs(86_400);

async fn event(world: &World, id: &str, event: &str, body: Value) -> Answer {
    world.owner("POST", &format!("/oap/owner/items/{id}/{event}"), Some(&body)).await
}

async fn show(world: &World, id: &str) -> Value {
    world.owner("GET", &format!("/oap/owner/items/{id}"), None).await.ok()
}

fn events(shown: &Value) -> Vec<&str> {
    shown["chain"].as_array().unwrap().iter().map(|link| link["event"].as_str().unwrap()).collect()
}

#[tokio::test]
async fn an_item_through_its_life() {
    let world = World::new().await;
    let id = &world.capture(&[note("The site goes live on 1 June", &["website"])]).await[0];
    let written = event(&world, id, "correct", json!({"item": {"content": {"text": "8 June"}}})).await.ok();
    assert_eq!(written["version"], 2);
    event(&world, id, "relabel", json!({"labels": ["website", "dates"]})).await.ok();
    event(&world, id, "confirm", json!({})).await.ok();
    event(&world, id, "retract", json!({})).await.ok();
    event(&world, id, "retract", json!({})).await.refused(409, "conflict");
    event(&world, id, "correct", json!({"item": {"kind": "summary"}})).await.refused(409, "conflict");
    event(&world, id, "restore", json!({})).await.ok();
    let shown = show(&world, id).await;
    assert_eq!(events(&shown), ["capture", "correct", "relabel", "confirm", "retract", "restore"]);
    assert_eq!(shown["item"]["content"]["text"], "8 June");
    assert_eq!(shown["item"]["labels"], json!(["dates", "website"]));
    assert_eq!(shown["item"]["status"], "current");
    assert_eq!(shown["superseded"].as_array().unwrap().len(), 2);
    assert_eq!(shown["superseded"][0]["content"]["text"], "The site goes live on 1 June");
    assert_eq!(shown["record"]["human_verified"], true);

    // A grantee gets the version in force, with the whole chain, and it holds.
    let answer = world.ask(&agent(2), &world.draft(&agent(2)), &json!({})).await;
    assert_eq!(texts(&answer), ["8 June"]);
    assert_eq!(answer["items"][0]["epistemic"], "knowledge");
    let verified = evidence::answer(&answer, &world.document()).unwrap();
    assert_eq!(verified.items[0].chain.links().len(), 6);
}

#[tokio::test]
async fn corrections_touch_what_they_name() {
    let world = World::new().await;
    let mut item = note("text", &["a"]);
    item["content"]["structured"] = json!({"x": 1, "y": 2});
    item["subject_entity_id"] = json!("ent_a");
    item["provenance"] = json!({"confidence": 0.5, "purpose_limitation": "advice"});
    let id = &world.capture(&[item]).await[0];
    let change = json!({"item": {"content": {"text": "new"}, "provenance": {"confidence": 0.75}}});
    event(&world, id, "correct", change).await.ok();
    let shown = show(&world, id).await;
    assert_eq!(shown["item"]["content"], json!({"text": "new", "structured": {"x": 1, "y": 2}}));
    assert_eq!(shown["item"]["provenance"]["purpose_limitation"], "advice");
    assert_eq!(shown["item"]["provenance"]["confidence"], 0.75);
    assert_eq!(shown["item"]["subject_entity_id"], "ent_a");
    event(&world, id, "correct", json!({"item": {"scope_id": "work"}})).await.refused(400, "invalid_input");
    event(&world, id, "correct", json!({"item": {"item_id": id}})).await.refused(400, "invalid_input");
    event(&world, id, "correct", json!({"item": {}, "version": 1})).await.refused(409, "conflict");
    event(&world, id, "correct", json!({"item": {}, "version": 2})).await.ok();
    event(&world, id, "explode", json!({})).await.refused(404, "not_found");
    event(&world, "mem_01HX2QFXR0Q4S8T9V3W7X2Y0Z1", "retract", json!({})).await.refused(404, "not_found");
}

#[tokio::test]
async fn a_write_is_all_or_nothing() {
    let world = World::new().await;
    let batch = json!({"items": [note("good", &[]), {"kind": "rumour", "content": {"text": "bad"}}]});
    let refusal = world.owner("POST", "/oap/owner/items", Some(&batch)).await.refused(400, "invalid_input");
    assert!(refusal["message"].as_str().unwrap().contains("kind"));
    let listed = world.owner("GET", "/oap/owner/items", None).await.ok();
    assert_eq!(listed["items"], json!([]));
    let log = world.owner("GET", "/oap/audit?chain=personal", None).await.ok();
    assert_eq!(log["receipts"], json!([]), "no receipt for what did not happen");
}

#[tokio::test]
async fn listing_filters_and_pages() {
    let world = World::new().await;
    for i in 0..5 {
        world.capture(&[note(&format!("n{i}"), &["a"])]).await;
        world.clock.advance(Duration::from_secs(1));
    }
    world.capture(&[note("other", &["b"])]).await;
    let page = world.owner("GET", "/oap/owner/items?label=a&limit=3", None).await.ok();
    assert_eq!(texts(&page), ["n4", "n3", "n2"]);
    let next = page["next"].as_str().unwrap();
    let rest = world.owner("GET", &format!("/oap/owner/items?label=a&before={next}"), None).await.ok();
    assert_eq!(texts(&rest), ["n1", "n0"]);
    assert_eq!(rest["next"], Value::Null);
    world.owner("GET", "/oap/owner/items?colour=red", None).await.refused(400, "invalid_input");
}

#[tokio::test]
async fn retention_erases_what_was_taken_back_and_replaced() {
    let world = World::with(1, Config { retention_days: 30, ..Config::default() }).await;
    let ids =
        world.capture(&[note("retracted", &[]), note("first version", &[]), note("expiring", &[])]).await;
    event(&world, &ids[0], "retract", json!({})).await.ok();
    event(&world, &ids[1], "correct", json!({"item": {"content": {"text": "second version"}}})).await.ok();
    event(&world, &ids[2], "correct", json!({"item": {"ttl_days": 1}})).await.ok();
    world.clock.advance(DAY);
    let swept = Deletions(&world.gateway).sweep().await.unwrap();
    assert_eq!((swept.expired, swept.erased, swept.trimmed), (1, 0, 0));
    let gone = show(&world, &ids[2]).await;
    assert_eq!(gone["item"], json!({"item_id": ids[2], "status": "erased"}));
    assert_eq!(events(&gone), ["capture", "correct", "expire"]);
    world.clock.advance(29 * DAY);
    let swept = Deletions(&world.gateway).sweep().await.unwrap();
    assert_eq!((swept.expired, swept.erased, swept.trimmed), (0, 1, 1));
    assert_eq!(show(&world, &ids[1]).await["superseded"], json!([]));
    assert_eq!(Deletions(&world.gateway).sweep().await.unwrap().erased, 0);
    world.chains_hold().await;
}

// --- keys ---

#[tokio::test]
async fn rotation_keeps_what_was_signed_and_ends_credentials() {
    let world = World::new().await;
    world.capture(&[note("before", &[])]).await;
    let grant = world.issue(&world.draft(&agent(2))).await;
    let before = world.document();
    let rotated = world.owner("POST", "/oap/owner/keys/rotate", Some(&json!({}))).await.ok();
    assert_eq!(rotated["keys"][0]["kid"], "did:web:user.example#key-2");
    assert_eq!(rotated["keys"][1]["state"], "retired");
    world.owner("GET", "/oap/owner/keys", None).await.refused(401, "auth_required");
    let admin = Signer::did_key(&[99; 32]).unwrap();
    let token = rotated["trust_token"].as_str().unwrap();
    world.as_agent(&admin, token, "GET", "/oap/owner/keys", None).await.ok();

    // The grant that the retired key signed holds; items of both keys verify with the new document.
    let items = json!({"items": [note("after", &[])]});
    world.as_agent(&admin, token, "POST", "/oap/owner/items", Some(&items)).await.ok();
    let access = world.token(&agent(2), &grant).await;
    let answer = world.query(&agent(2), &access, &json!({})).await.ok();
    assert_eq!(texts(&answer).len(), 2);
    let after = world.document();
    evidence::answer(&answer, &after).unwrap();
    assert!(evidence::answer(&answer, &before).is_err(), "the old document does not have the new key");
    world.job_as(&admin, token, &json!({"job": "verify_audit"})).await;

    // A signature that the retired key makes afterwards does not count.
    let mut late = answer["items"][0]["integrity"]["chain"][0].clone();
    late["at"] = json!(world.now().plus(DAY));
    let old = Signer::from_seed("did:web:user.example#key-1".parse().unwrap(), &[0; 32]).unwrap();
    oap_identity::signed::sign_document(&mut late, &old).unwrap();
    assert!(oap_memory::chain::verify(&[late], &after).is_err());
}

#[tokio::test]
async fn a_revoked_key_voids_its_grants() {
    let world = World::new().await;
    world.capture(&[note("tea", &[])]).await;
    let grant = world.issue(&world.draft(&agent(2))).await;
    let access = world.token(&agent(2), &grant).await;
    world.clock.advance(Duration::from_secs(1));
    let revoked = world.owner("POST", "/oap/owner/keys/key-1/revoke", Some(&json!({}))).await.ok();
    assert_eq!(revoked["keys"][1]["state"], "revoked");
    assert_eq!(revoked["keys"][0]["state"], "current");
    world.query(&agent(2), &access, &json!({})).await.refused(403, "policy_block");
    world.exchange(&agent(2), &grant).await.refused(403, "policy_block");
    let admin = Signer::did_key(&[99; 32]).unwrap();
    let token = revoked["trust_token"].as_str().unwrap();
    let info = world.as_agent(&admin, token, "GET", "/oap/owner/grants", None).await.ok();
    assert_eq!(info["grants"][0]["state"], "revoked");
    world
        .as_agent(&admin, token, "POST", "/oap/owner/keys/key-9/revoke", Some(&json!({})))
        .await
        .refused(404, "not_found");
    world.job_as(&admin, token, &json!({"job": "verify_audit"})).await;
}

// --- credentials ---

const PERMISSIONS: [Permission; 3] = [Permission::Read, Permission::Write, Permission::Admin];

#[tokio::test]
async fn every_route_lets_in_whom_its_row_names() {
    let world = World::new().await;
    let grant = world.issue(&world.draft(&agent(2))).await;
    let access = world.token(&agent(2), &grant).await;
    let token = |permission| world.gateway.trust_token(&agent(5), permission).unwrap();
    for route in ROUTES {
        let (method, path) = (route.method.as_str(), &route.at("x"));
        let body = (method == "POST").then(|| json!({}));
        let bare = async || world.raw(method, path, &[], body.as_ref()).await;
        let granted = async || world.as_agent(&agent(2), &access, method, path, body.as_ref()).await;
        let trusted = async |permission| {
            world.as_agent(&agent(5), &token(permission), method, path, body.as_ref()).await
        };
        match route.permission {
            Access::Owner(needed) => {
                bare().await.refused(401, "auth_required");
                // A grantee's token is no trust token.
                granted().await.refused(401, "auth_required");
                for permission in PERMISSIONS.into_iter().filter(|permission| *permission < needed) {
                    trusted(permission).await.refused(403, "policy_block");
                }
                // What the row says is enough; nothing is above the administrator.
                if needed < Permission::Admin {
                    let answer = trusted(needed).await;
                    assert!(![401, 403].contains(&answer.status.as_u16()), "{route:?}: {}", answer.body);
                }
            }
            Access::Grantee => {
                bare().await.refused(401, "auth_required");
                // The owner is no grantee.
                for permission in PERMISSIONS {
                    let refused = trusted(permission).await;
                    assert!([401, 403].contains(&refused.status.as_u16()), "{route:?}: {}", refused.body);
                }
                let answer = granted().await;
                assert_ne!(answer.status, 401, "{route:?}: {}", answer.body);
            }
            Access::Public => {
                let answer = bare().await;
                assert!(![401, 403].contains(&answer.status.as_u16()), "{route:?}: {}", answer.body);
            }
            Access::Agent => {
                bare().await.refused(401, "auth_required");
                // Neither a grantee nor the owner is an agent; at `/mcp` a grantee has tools of its own (`granted.rs`).
                if path == "/mcp" {
                    granted().await.refused(400, "invalid_input");
                } else {
                    granted().await.refused(401, "auth_required");
                }
                trusted(Permission::Admin).await.refused(401, "auth_required");
            }
            Access::Socket => drop(bare().await.refused(404, "not_found")),
        }
    }
    world.owner("GET", "/oap/owner/nothing", None).await.refused(404, "not_found");
}

#[tokio::test]
async fn permissions_include_those_below_them() {
    let world = World::new().await;
    let reader = agent(5);
    let token = world.gateway.trust_token(&reader, Permission::Read).unwrap();
    world.as_agent(&reader, &token, "GET", "/oap/owner/items", None).await.ok();
    let write = json!({"items": [note("x", &[])]});
    let refusal = world.as_agent(&reader, &token, "POST", "/oap/owner/items", Some(&write)).await;
    refusal.refused(403, "policy_block");
    let writer = world.gateway.trust_token(&reader, Permission::Write).unwrap();
    world.as_agent(&reader, &writer, "POST", "/oap/owner/items", Some(&write)).await.ok();
    world.as_agent(&reader, &writer, "GET", "/oap/owner/grants", None).await.refused(403, "policy_block");
    // The token is bound to its agent's key.
    world.as_agent(&agent(6), &token, "GET", "/oap/owner/items", None).await.refused(401, "auth_required");
    world.clock.advance(366 * DAY);
    world.as_agent(&reader, &token, "GET", "/oap/owner/items", None).await.refused(401, "auth_required");
}

// --- deletion ---

#[tokio::test]
async fn deletion_shrinks_grants_and_takes_along_what_was_made() {
    let world = World::new().await;
    let source = &world.capture(&[note("source", &["a"])]).await[0];
    let mut summary = note("summary of it", &["b"]);
    summary["derived_from"] = json!([source]);
    let summary = &world.capture(&[summary, note("unrelated", &["c"])]).await[0];
    let grant = world.issue(&world.draft(&agent(2))).await;
    let access = world.token(&agent(2), &grant).await;
    assert_eq!(texts(&world.query(&agent(2), &access, &json!({})).await.ok()).len(), 3);
    let request = json!({"labels": ["a"]});
    let done = world.owner("POST", "/oap/data/delete", Some(&request)).await.ok();
    let report = &done["cascade_report"];
    assert_eq!(report["erased"], json!([source]));
    assert_eq!(report["derived"], json!([summary]));
    assert_eq!(report["grants_shrunk"], json!([grant["grant_id"]]));
    assert_eq!(done["deletion_receipt"]["method"], "cryptographic_erasure");
    let answer = world.query(&agent(2), &access, &json!({})).await.ok();
    assert_eq!(texts(&answer), ["unrelated"]);
    assert_eq!(show(&world, source).await["item"]["status"], "erased");
    assert_eq!(events(&show(&world, source).await), ["capture", "erase"]);
    world.owner("POST", "/oap/data/delete", Some(&json!({}))).await.refused(400, "invalid_input");
    let missing = json!({"items": [source]});
    let again = world.owner("POST", "/oap/data/delete", Some(&missing)).await.ok();
    assert_eq!(again["cascade_report"]["not_found"], json!([source]));
    world.owner("POST", "/oap/data/delete", Some(&json!({"all": true}))).await.ok();
    assert_eq!(world.owner("GET", "/oap/owner/items", None).await.ok()["items"], json!([]));
    world.chains_hold().await;
}

// --- audit ---

fn signed_by_owner(receipt: &Value, document: &DidDocument) {
    receipt::verify(receipt, document).unwrap();
}

#[tokio::test]
async fn three_audiences_of_the_audit_log() {
    let world = World::new().await;
    world.capture(&[note("tea", &[])]).await;
    for grantee in [agent(2), agent(3)] {
        world.ask(&grantee, &world.draft(&grantee), &json!({})).await;
    }
    let all = world.owner("GET", "/oap/audit?limit=1000", None).await.ok();
    let all = all["receipts"].as_array().unwrap();
    assert!(all.len() >= 8, "{}", all.len());
    all.iter().for_each(|receipt| signed_by_owner(receipt, &world.document()));

    let grant = world.issue(&world.draft(&agent(2))).await;
    let access = world.token(&agent(2), &grant).await;
    let mine = world.as_agent(&agent(2), &access, "GET", "/oap/audit", None).await.ok();
    let mine = mine["receipts"].as_array().unwrap();
    assert_eq!(mine.len(), 3, "two exchanges and a query");
    assert!(mine.iter().all(|receipt| receipt["agent_did"] == json!(agent(2).did())));
    let other = format!("/oap/audit?grantee={}", agent(3).did());
    let none = world.as_agent(&agent(2), &access, "GET", &other, None).await.ok();
    assert_eq!(none["receipts"], json!([]));
    for limit in ["0", "1001", "18446744073709551615"] {
        let path = format!("/oap/audit?limit={limit}");
        for refused in [
            world.as_agent(&agent(2), &access, "GET", &path, None).await,
            world.owner("GET", &path, None).await,
            world.raw("GET", &path, &[], None).await,
        ] {
            let refusal = refused.refused(400, "invalid_input");
            assert!(
                refusal["message"].as_str().unwrap().starts_with("limit: must be 1 to 1000"),
                "{refusal}"
            );
        }
    }
    let one = world.as_agent(&agent(2), &access, "GET", "/oap/audit?limit=1", None).await.ok();
    assert_eq!(one["receipts"].as_array().unwrap().len(), 1);

    let public = world.raw("GET", "/oap/audit", &[], None).await.ok();
    let public = public["receipts"].as_array().unwrap();
    assert_eq!(public.len(), 1);
    assert_eq!(public[0]["action_id"], "memory.boot");
    for path in [format!("/oap/audit?principal_did={PRINCIPAL}"), "/oap/audit?chain=personal".to_owned()] {
        let answer = world.raw("GET", &path, &[], None).await.ok();
        assert!(answer["receipts"].as_array().unwrap().len() <= 1, "{path}");
    }
    // The chain as a whole, for the owner to verify.
    let chain = world.owner("GET", "/oap/audit?chain=personal&from=0&limit=1000", None).await.ok();
    let entries = chain["receipts"].as_array().unwrap().clone();
    let verified = receipt::verify_chain(entries.clone(), &world.document()).unwrap();
    assert_eq!(verified.length, entries.len() as u64);
}

/// Pages of the owner's log, each behind the one before, are the log: over chains, within one time, and whatever is asked for.
#[tokio::test]
async fn the_owners_log_goes_on_where_an_answer_ended() {
    let world = World::new().await;
    for number in 0..4 {
        let mut work = note(&format!("work {number}"), &[]);
        work["scope_id"] = json!("work");
        world.capture(&[note("tea", &[]), work]).await;
        if number % 2 == 1 {
            world.clock.advance(Duration::from_millis(1));
        }
        world.ask(&agent(2), &world.draft(&agent(2)), &json!({})).await;
    }
    let get = async |query: &str| world.owner("GET", &format!("/oap/audit?{query}"), None).await.ok();
    let id = |receipt: &Value| receipt["receipt_id"].as_str().unwrap().to_owned();
    for filter in ["", "&chain=work", "&grantee=did:web:none.example"] {
        let all = get(&format!("limit=1000{filter}")).await;
        assert!(all.get("next").is_none());
        let all: Vec<String> = all["receipts"].as_array().unwrap().iter().map(id).collect();
        assert!(filter.contains("grantee") || all.len() >= 4, "{filter}: {all:?}");
        for limit in [1, 3] {
            let (mut paged, mut query) = (Vec::new(), format!("limit={limit}{filter}"));
            loop {
                let page = get(&query).await;
                let receipts = page["receipts"].as_array().unwrap();
                assert!(receipts.len() <= limit, "{page}");
                paged.extend(receipts.iter().map(id));
                let Some(next) = page["next"].as_str() else { break };
                query = format!("limit={limit}{filter}&before={next}");
            }
            assert_eq!(paged, all, "{filter}");
        }
    }
    let unknown = "limit=1&before=rec_01JZZZZZZZZZZZZZZZZZZZZZZZ";
    world.owner("GET", &format!("/oap/audit?{unknown}"), None).await.refused(400, "invalid_input");
}

/// What a filter seldom admits does not make one request read the whole log.
#[tokio::test]
async fn one_question_of_the_owners_looks_at_a_bounded_part_of_the_log() {
    let world = World::new().await;
    let first = world.capture(&[note("tea", &[])]).await.remove(0);
    let gateway = world.gateway.clone();
    let written = world.gateway.commit(move |w| {
        (0..MAX_LOOKED_AT)
            .try_for_each(|_| w.receipt("personal", gateway.draft(Action::Attest, PRINCIPAL)).map(drop))
    });
    written.await.unwrap();
    let path = format!("/oap/audit?item_id={first}&limit=1");
    let page = world.owner("GET", &path, None).await.ok();
    assert_eq!(page["receipts"], json!([]), "it is further behind");
    let next = page["next"].as_str().unwrap();
    let page = world.owner("GET", &format!("{path}&before={next}"), None).await.ok();
    assert_eq!(page["receipts"].as_array().unwrap().len(), 1, "{page}");
}

#[tokio::test]
async fn a_cut_or_changed_chain_does_not_verify() {
    let world = World::new().await;
    world.capture(&[note("one", &[]), note("two", &[])]).await;
    let chain = world.owner("GET", "/oap/audit?chain=personal&from=0", None).await.ok();
    let entries = chain["receipts"].as_array().unwrap().clone();
    let document = world.document();
    let verify = |entries: Vec<Value>| receipt::verify_chain(entries, &document);
    assert!(verify(entries.clone()).is_ok());
    let without = |n: usize| {
        let mut cut = entries.clone();
        cut.remove(n);
        cut
    };
    for n in 0..entries.len() {
        assert!(verify(without(n)).is_err(), "entry {n} left out");
    }
    let last = entries.len() - 1;
    for n in 0..=last {
        let mut stripped = entries.clone();
        stripped[n]["signatures"] = json!([]);
        // The receipt after a head is signed, and names its hash.
        let is_bound = n % 2 == 1 && n != last;
        assert_eq!(verify(stripped).is_ok(), is_bound, "entry {n} without its signature");
    }
    let mut swapped = entries.clone();
    swapped.swap(0, 2);
    assert!(verify(swapped).is_err());
    let mut changed = entries.clone();
    changed[0]["timestamp"] = json!("2026-05-01T12:00:00.001Z");
    assert!(verify(changed).is_err());
    let mut foreign = entries;
    foreign[0]["principal_did"] = json!("did:web:other.example");
    assert!(verify(foreign).is_err());
}

/// However many receipts one commit makes, one head of each chain is signed for it: the last, before it is acknowledged.
#[tokio::test]
async fn a_head_is_signed_once_for_what_is_committed_together() {
    let world = World::new().await;
    for number in 1..=2 {
        world.capture(&[note("one", &[]), note("two", &[]), note("three", &[])]).await;
        let chain = world.owner("GET", "/oap/audit?chain=personal&from=0", None).await.ok();
        let entries = chain["receipts"].as_array().unwrap().clone();
        let heads: Vec<bool> =
            entries.iter().skip(1).step_by(2).map(|head| head["signatures"] != json!([])).collect();
        assert_eq!(heads.iter().filter(|signed| **signed).count(), number, "{heads:?}");
        assert_eq!(heads.last(), Some(&true));
        assert!(receipt::verify_chain(entries, &world.document()).is_ok());
    }
}

/// Consecutive receipts that a grantee can see are never neighbours in the chain: whether something that it may not
/// see came in between is not to be told from `previous_receipt_hash`.
#[tokio::test]
async fn receipts_do_not_tell_of_their_neighbours() {
    let world = World::new().await;
    world.capture(&[note("one", &[]), note("two", &[])]).await;
    let answer = world.ask(&agent(2), &world.draft(&agent(2)), &json!({})).await;
    let receipts: Vec<oap_memory::Receipt> = answer["items"]
        .as_array()
        .unwrap()
        .iter()
        .map(|item| &item["integrity"]["capture_receipt"])
        .chain([&answer["receipt"]])
        .map(|receipt| serde_json::from_value(receipt.clone()).unwrap())
        .collect();
    for a in &receipts {
        let hash = a.hash().unwrap().to_string();
        assert!(receipts.iter().all(|b| b.previous_receipt_hash != hash));
    }
}

/// A bearer token is whoever's has it: the log that it shows is its grant's. So it is for an own agent, whose DID is the owner's: not the
/// owner's captures, grants and holds.
#[tokio::test]
async fn a_token_that_may_be_stolen_shows_the_receipts_of_its_grant_alone() {
    let world = World::new().await;
    world.capture(&[note("tea", &[])]).await;
    let shown = async |headers: &[(&str, &str)]| {
        let answer = world.raw("GET", "/oap/audit", headers, None).await.ok();
        answer["receipts"].as_array().unwrap().clone()
    };
    let of = |receipts: &[Value], grant: &Value| {
        let hash = json!(Hash::of_canonical(grant).unwrap());
        receipts.iter().all(|receipt| receipt["policy_decisions"][0]["grant_hash"] == hash)
    };
    let owner = world.gateway.keys().current().clone();
    for grantee in [&*owner, &agent(2)] {
        let bound = world.issue(&world.draft(grantee)).await;
        let access = world.token(grantee, &bound).await;
        world.query(grantee, &access, &json!({})).await.ok();
        let mut draft = world.draft(grantee);
        draft["bearer"] = json!(true);
        let bearer = world.issue(&draft).await;
        let token = world.token(grantee, &bearer).await;
        let authorization = format!("Bearer {token}");
        let headers = [("authorization", authorization.as_str())];
        world.raw("POST", "/oap/memory/query", &headers, Some(&json!({}))).await.ok();
        let seen = shown(&headers).await;
        // An exchange and a query; the owner, who issued it, has the same DID as the owner's agent.
        let is_own = grantee.did() == owner.did();
        let number = if is_own { 3 } else { 2 };
        assert_eq!(seen.len(), number, "{seen:?}");
        assert!(of(&seen, &bearer), "{seen:?}");
        // Bound to a key: all that names the grantee, but for the owner's own agent, of whom everything of the owner's speaks.
        let mine = world.as_agent(grantee, &access, "GET", "/oap/audit", None).await.ok();
        let mine = mine["receipts"].as_array().unwrap();
        if is_own {
            assert!(mine.len() == number && of(mine, &bound), "{mine:?}");
        } else {
            assert_eq!(mine.len(), 4);
        }
    }
}

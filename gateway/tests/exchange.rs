//! The exchange through the gateway's handlers: what is answered, and every refusal.

use crate::common::*;
use oap_grants::{Grant, dpop};
use oap_identity::signed::sign_document;
use oap_memory::evidence;
use serde_json::{Value, json};
use std::time::Duration;

const DAY: Duration = Duration::from_secs(86_400);

#[tokio::test]
async fn an_answer_is_projected_ranked_proved_and_receipted() {
    let world = World::new().await;
    world
        .capture(&[
            note("Prefers tea; write to a@b.example", &["drinks"]),
            note("The tea shop opens at nine", &["drinks"]),
            note("Plays the cello", &["music"]),
        ])
        .await;
    let answer = world.ask(&agent(2), &world.draft(&agent(2)), &json!({"query": "tea"})).await;
    assert_eq!(texts(&answer).len(), 2);
    let first = &answer["items"][0];
    assert_eq!(first["relevance"], 1);
    assert_eq!(first["epistemic"], "belief");
    assert_eq!(answer["projection_applied"]["trust_level"], 3);
    assert_eq!(answer["projection_applied"]["profile"], "oap.profile.projection.memory.v1");
    assert_eq!(answer["projection_applied"]["lawful_basis"], "consent");
    assert!(answer["projection_applied"]["redacted_field_count"].is_u64());
    let verified = evidence::answer(&answer, &world.document()).unwrap();
    assert_eq!(verified.items.len(), 2);
    assert_eq!(verified.receipt.agent_did, agent(2).did().as_str());
    assert_eq!(verified.receipt.provenance_tags_out.len(), 2);
    let decision = &verified.receipt.policy_decisions[0].more;
    for fact in ["consumed_grant_id", "trust_level", "profile", "profile_hash", "lawful_basis", "scope_id"] {
        assert!(decision.contains_key(fact), "{fact}");
    }
}

#[tokio::test]
async fn an_empty_query_lists_by_capture_time_newest_first() {
    let world = World::new().await;
    let at = |text: &str, day: u32| {
        let mut item = note(text, &[]);
        item["provenance"] = json!({"captured_at": format!("2026-04-{day:02}T00:00:00Z")});
        item
    };
    world.capture(&[at("second", 2), at("third", 3), at("first", 1)]).await;
    let answer = world.ask(&agent(2), &world.draft(&agent(2)), &json!({})).await;
    assert_eq!(texts(&answer), ["third", "second", "first"]);
}

#[tokio::test]
async fn cursors_walk_through_everything_once() {
    let world = World::new().await;
    let items: Vec<Value> = (0..25).map(|i| note(&format!("note {i} about tea"), &[])).collect();
    let mut all = world.capture(&items).await;
    all.sort();
    let grant = world.issue(&world.draft(&agent(2))).await;
    let token = world.token(&agent(2), &grant).await;
    for query in ["", "tea"] {
        let (mut seen, mut cursor) = (Vec::new(), Value::Null);
        for page in 0.. {
            let mut asked = json!({"query": query, "max_results": 10});
            if !cursor.is_null() {
                asked["cursor"] = cursor.clone();
            }
            let answer = world.query(&agent(2), &token, &asked).await.ok();
            seen.extend(ids(&answer));
            cursor = answer["next_cursor"].clone();
            if cursor.is_null() {
                assert_eq!(page, 2);
                break;
            }
        }
        seen.sort();
        assert_eq!(seen, all, "query {query:?}");
    }
}

#[tokio::test]
async fn a_cursor_belongs_to_its_query_and_grant() {
    let world = World::new().await;
    let items: Vec<Value> = (0..5).map(|i| note(&format!("tea {i}"), &["a"])).collect();
    world.capture(&items).await;
    let grant = world.issue(&world.draft(&agent(2))).await;
    let token = world.token(&agent(2), &grant).await;
    let first = world.query(&agent(2), &token, &json!({"query": "tea", "max_results": 2})).await.ok();
    let cursor = first["next_cursor"].as_str().unwrap().to_owned();
    let with = |query: Value| {
        let mut query = query;
        query["cursor"] = json!(cursor);
        query
    };
    assert!(world.query(&agent(2), &token, &with(json!({"query": "tea"}))).await.status.is_success());
    for other in [json!({"query": "coffee"}), json!({"query": "tea", "labels_any": ["a"]})] {
        world.query(&agent(2), &token, &with(other)).await.refused(400, "invalid_input");
    }
    let second = world.issue(&world.draft(&agent(2))).await;
    let other_token = world.token(&agent(2), &second).await;
    world.query(&agent(2), &other_token, &with(json!({"query": "tea"}))).await.refused(400, "invalid_input");
    for tampered in [format!("A{}", &cursor[1..]), cursor[..20].to_owned(), String::new(), "=".into()] {
        let query = json!({"query": "tea", "cursor": tampered});
        world.query(&agent(2), &token, &query).await.refused(400, "invalid_input");
    }
}

// --- refusals ---

#[tokio::test]
async fn expired_and_not_yet_valid_grants() {
    let world = World::new().await;
    world.capture(&[note("tea", &[])]).await;
    let grant = world.issue(&world.draft(&agent(2))).await;
    let token = world.token(&agent(2), &grant).await;
    world.clock.advance(30 * DAY);
    world.exchange(&agent(2), &grant).await.refused(403, "policy_block");
    world.query(&agent(2), &token, &json!({})).await.refused(401, "auth_required");

    let mut later = world.draft(&agent(2));
    later["not_before"] = json!(world.now().plus(DAY));
    let early = world.issue(&later).await;
    let refusal = world.exchange(&agent(2), &early).await.refused(403, "policy_block");
    assert!(refusal["message"].as_str().unwrap().contains("draft"));
    world.clock.advance(DAY);
    world.token(&agent(2), &early).await;
}

#[tokio::test]
async fn a_grant_that_ends_during_a_tokens_life() {
    let world = World::new().await;
    world.capture(&[note("tea", &[])]).await;
    let mut draft = world.draft(&agent(2));
    draft["expires_at"] = json!(world.now().plus(Duration::from_secs(60)));
    let grant = world.issue(&draft).await;
    let token = world.token(&agent(2), &grant).await;
    world.clock.advance(Duration::from_secs(59));
    world.query(&agent(2), &token, &json!({})).await.ok();
    world.clock.advance(Duration::from_secs(1));
    world.query(&agent(2), &token, &json!({})).await.refused(401, "auth_required");
}

#[tokio::test]
async fn revocation_takes_effect_before_the_next_answer() {
    let world = World::new().await;
    world.capture(&[note("tea", &[])]).await;
    let grant = world.issue(&world.draft(&agent(2))).await;
    let token = world.token(&agent(2), &grant).await;
    world.query(&agent(2), &token, &json!({})).await.ok();
    let path = format!("/oap/owner/grants/{}/revoke", grant["grant_id"].as_str().unwrap());
    world.owner("POST", &path, Some(&json!({}))).await.ok();
    let refusal = world.query(&agent(2), &token, &json!({})).await.refused(403, "policy_block");
    assert_eq!(refusal["message"], "the grant is revoked");
    world.exchange(&agent(2), &grant).await.refused(403, "policy_block");
    world.owner("POST", &path, Some(&json!({}))).await.refused(409, "conflict");
}

#[tokio::test]
async fn every_refusal_of_a_valid_token_leaves_a_receipt() {
    let world = World::new().await;
    let grant = world.issue(&world.draft(&agent(2))).await;
    let token = world.token(&agent(2), &grant).await;
    let path = format!("/oap/owner/grants/{}/revoke", grant["grant_id"].as_str().unwrap());
    world.owner("POST", &path, Some(&json!({}))).await.ok();
    world.clock.advance(Duration::from_secs(1));
    world.query(&agent(2), &token, &json!({})).await.refused(403, "policy_block");
    let log = world.owner("GET", "/oap/audit", None).await.ok();
    let newest = &log["receipts"][0];
    assert_eq!(newest["action_id"], "memory.query");
    assert_eq!(newest["policy_decisions"][0]["outcome"], "block");
    assert_eq!(newest["policy_decisions"][0]["rules"], json!(["grant.revoked"]));
    assert_eq!(newest["agent_did"], json!(agent(2).did()));
}

#[tokio::test]
async fn other_audience_other_key_other_algorithm() {
    let world = World::new().await;
    let elsewhere = World::with(2, oap_gateway::Config::default()).await;
    let grant = elsewhere.issue(&elsewhere.draft(&agent(2))).await;
    // Another gateway's grant, and a token made under it.
    world.exchange(&agent(2), &grant).await.refused(400, "invalid_input");

    let grant = world.issue(&world.draft(&agent(2))).await;
    let token = world.token(&agent(2), &grant).await;
    world.query(&agent(3), &token, &json!({})).await.refused(401, "auth_required");
    let parts: Vec<&str> = token.split('.').collect();
    for alg in ["none", "HS256"] {
        use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD as B64};
        let kid = "did:web:user.example#key-1";
        let header = B64.encode(json!({"alg": alg, "typ": "oap-memory-grant+jwt", "kid": kid}).to_string());
        let forged = format!("{header}.{}.{}", parts[1], parts[2]);
        world.query(&agent(2), &forged, &json!({})).await.refused(401, "auth_required");
    }
}

#[tokio::test]
async fn a_proof_of_possession_is_for_one_request() {
    let world = World::new().await;
    world.capture(&[note("tea", &[])]).await;
    let grant = world.issue(&world.draft(&agent(2))).await;
    let token = world.token(&agent(2), &grant).await;
    let authorization = format!("DPoP {token}");
    let random = oap_identity::random::Seeded::new(77);
    let prove = |method, url: &str, at| {
        dpop::prove(&agent(2), dpop::Request { method, url }, &token, at, &random).unwrap()
    };
    let query = format!("{ORIGIN}/oap/memory/query");
    let send = async |proof: &str| {
        let headers = [("authorization", authorization.as_str()), ("dpop", proof)];
        world.raw("POST", "/oap/memory/query", &headers, Some(&json!({}))).await
    };
    let proof = prove("POST", &query, world.now());
    send(&proof).await.ok();
    send(&proof).await.refused(401, "auth_required"); // replayed
    send(&prove("GET", &query, world.now())).await.refused(401, "auth_required");
    send(&prove("POST", &format!("{ORIGIN}/oap/memory/grant"), world.now()))
        .await
        .refused(401, "auth_required");
    let old = world.now().minus(Duration::from_secs(301));
    send(&prove("POST", &query, old)).await.refused(401, "auth_required");
    // A stolen token without its key: no proof, or as a bearer.
    let bearer = format!("Bearer {token}");
    world
        .raw("POST", "/oap/memory/query", &[("authorization", &bearer)], Some(&json!({})))
        .await
        .refused(401, "auth_required");
    world
        .raw("POST", "/oap/memory/query", &[("authorization", &authorization)], Some(&json!({})))
        .await
        .refused(401, "auth_required");
    world.raw("POST", "/oap/memory/query", &[], Some(&json!({}))).await.refused(401, "auth_required");
}

#[tokio::test]
async fn a_bearer_where_the_owner_allowed_one() {
    let world = World::new().await;
    world.capture(&[note("tea", &[])]).await;
    let mut draft = world.draft(&agent(2));
    draft["bearer"] = json!(true);
    let grant = world.issue(&draft).await;
    let answer = world.exchange(&agent(2), &grant).await.ok();
    assert_eq!(answer["token_type"], "Bearer");
    let bearer = format!("Bearer {}", answer["memory_grant_jwt"].as_str().unwrap());
    let headers = [("authorization", bearer.as_str())];
    world.raw("POST", "/oap/memory/query", &headers, Some(&json!({}))).await.ok();
}

#[tokio::test]
async fn grants_that_are_not_issued() {
    let world = World::new().await;
    let refused = async |member: &str, patch: Value| {
        let mut draft = world.draft(&agent(2));
        for (name, value) in patch.as_object().unwrap() {
            draft[name] = value.clone();
        }
        let answer = world.owner("POST", "/oap/owner/grants", Some(&draft)).await;
        let message = answer.refused(400, "invalid_input")["message"].as_str().unwrap().to_owned();
        assert!(message.contains(member), "{member}: {message}");
        world.owner("POST", "/oap/owner/grants/preview", Some(&draft)).await.refused(400, "invalid_input");
    };
    let at = |days: u32| json!(world.now().plus(days * DAY));
    refused("max_items", json!({"max_items": 0})).await;
    refused("max_items", json!({"max_items": 10_001})).await;
    refused("expires_at", json!({"expires_at": world.now()})).await;
    refused("expires_at", json!({"expires_at": at(181)})).await;
    refused("expires_at", json!({"expires_at": at(3), "not_before": at(3)})).await;
    refused("redaction_profile", json!({"redaction_profile": "oap.profile.projection.none.v1"})).await;
    refused("trust_level", json!({"redaction_profile": "oap.profile.projection.full.v1"})).await;
    refused("trust level", json!({"trust_level": 5})).await;
    refused("purpose", json!({"purpose": " "})).await;
    refused("operations", json!({"operations": []})).await;
    refused("budget", json!({"budget": {}})).await;
    refused("budget", json!({"budget": {"queries": null}})).await;
    refused("colour", json!({"filter": {"colour": "red"}})).await;
    refused("colour", json!({"colour": "red"})).await;
    refused("captured_before", json!({"filter": {"captured_after": at(2), "captured_before": at(1)}})).await;
    refused("max_depth", json!({"delegable": {"max_depth": 6}})).await;
    let long: Vec<String> = (0..257).map(|i| i.to_string()).collect();
    refused("labels_any", json!({"filter": {"labels_any": long}})).await;
}

/// A grant with a filter field that this gateway does not know is refused even when its granter signed it.
#[tokio::test]
async fn an_unknown_filter_field_fails_closed() {
    let world = World::new().await;
    let grant = world.issue(&world.draft(&agent(2))).await;
    let mut changed = grant.clone();
    changed["filter"]["regions"] = json!(["eu"]);
    sign_document(&mut changed, world.gateway.keys().current()).unwrap();
    world.exchange(&agent(2), &changed).await.refused(400, "invalid_input");
    let typed: Result<Grant, _> = serde_json::from_value(changed);
    assert!(typed.is_err());
}

/// Signed by the granter, but never issued here.
#[tokio::test]
async fn a_grant_that_was_never_issued() {
    let world = World::new().await;
    let grant = world.issue(&world.draft(&agent(2))).await;
    let mut wider = grant.clone();
    wider["trust_level"] = json!(4);
    wider["grant_id"] = json!("mgr_01HX2QFXR0Q4S8T9V3W7X2Y0Z1");
    sign_document(&mut wider, world.gateway.keys().current()).unwrap();
    world.exchange(&agent(2), &wider).await.refused(400, "invalid_input");
    let mut unsigned = grant.clone();
    unsigned.as_object_mut().unwrap().remove("signature");
    world.exchange(&agent(2), &unsigned).await.refused(400, "invalid_input");
    world.exchange(&agent(3), &grant).await.refused(401, "auth_required");
}

#[tokio::test]
async fn at_most_max_items_are_ever_disclosed() {
    let world = World::new().await;
    let items: Vec<Value> = (0..10).map(|i| note(&format!("tea {i} word{i}"), &[])).collect();
    world.capture(&items).await;
    let mut draft = world.draft(&agent(2));
    draft["max_items"] = json!(4);
    let grant = world.issue(&draft).await;
    let token = world.token(&agent(2), &grant).await;
    let ask = async |query: Value| ids(&world.query(&agent(2), &token, &query).await.ok());
    let first = ask(json!({"query": "word1"})).await;
    assert_eq!(first.len(), 1);
    let listed = ask(json!({"max_results": 100})).await;
    assert_eq!(listed.len(), 4, "one known and three new ones");
    let all = ask(json!({"query": "tea", "max_results": 100})).await;
    assert_eq!(all.len(), 4, "only those that were disclosed");
    assert!(all.iter().all(|id| listed.contains(id)));
    assert_eq!(
        ask(json!({"query": "word7 word8 word9 word5"}))
            .await
            .iter()
            .filter(|id| !listed.contains(id))
            .count(),
        0
    );
    let info = world.owner("GET", "/oap/owner/grants", None).await.ok();
    assert_eq!(info["grants"][0]["disclosed"], 4);
}

#[tokio::test]
async fn the_cap_holds_under_concurrency() {
    let world = std::sync::Arc::new(World::new().await);
    let items: Vec<Value> = (0..40).map(|i| note(&format!("word{i}"), &[])).collect();
    world.capture(&items).await;
    let mut draft = world.draft(&agent(2));
    draft["max_items"] = json!(7);
    let grant = world.issue(&draft).await;
    let token = world.token(&agent(2), &grant).await;
    let tasks: Vec<_> = (0..40)
        .map(|i| {
            let (world, token) = (world.clone(), token.clone());
            tokio::spawn(async move {
                let answer = world.query(&agent(2), &token, &json!({"query": format!("word{i}")})).await;
                if answer.status == 409 { Vec::new() } else { ids(&answer.ok()) }
            })
        })
        .collect();
    let mut seen = std::collections::BTreeSet::new();
    for task in tasks {
        seen.extend(task.await.unwrap());
    }
    assert_eq!(seen.len(), 7);
}

#[tokio::test]
async fn embeddings_need_the_right_to_them() {
    let world = World::new().await;
    let mut item = note("tea", &[]);
    item["embedding"] = json!({"model": "m", "dimensions": 3, "vector_url": "https://user.example/v.bin"});
    world.capture(&[item]).await;
    let with = json!({"include_embeddings": true});
    let mut draft = world.draft(&agent(2));
    draft["trust_level"] = json!(4);
    let grant = world.issue(&draft).await;
    let token = world.token(&agent(2), &grant).await;
    let plain = world.query(&agent(2), &token, &json!({})).await.ok();
    assert!(plain["items"][0].get("embedding").is_none());
    assert!(!plain.to_string().contains("v.bin"));
    world.query(&agent(2), &token, &with).await.refused(403, "policy_block");

    draft["embedding_access"] = json!(true);
    let answer = world.ask(&agent(2), &draft, &with).await;
    assert_eq!(answer["items"][0]["embedding"]["dimensions"], 3);
    evidence::answer(&answer, &world.document()).unwrap();
    let answer = world.ask(&agent(2), &draft, &json!({})).await;
    assert!(answer["items"][0].get("embedding").is_none(), "not without asking");
    draft["trust_level"] = json!(3);
    let answer = world.ask(&agent(2), &draft, &with).await;
    assert!(answer["items"][0].get("embedding").is_none(), "hidden below level 4");
}

#[tokio::test]
async fn what_never_leaves() {
    let world = World::new().await;
    let with = |text: &str, patch: Value| {
        let mut item = note(text, &[]);
        for (name, value) in patch.as_object().unwrap() {
            item[name] = value.clone();
        }
        item
    };
    let ids = world
        .capture(&[
            with("other scope", json!({"scope_id": "work"})),
            with("restricted", json!({"sensitivity": "restricted"})),
            with("not exportable", json!({"exportable": false})),
            with("expired", json!({"expires_at": "2026-05-01T12:00:00Z"})),
            with("expires soon", json!({"expires_at": "2026-05-01T12:01:00Z"})),
            with("retracted", json!({})),
            with("visible", json!({"sensitivity": "confidential"})),
        ])
        .await;
    world.owner("POST", &format!("/oap/owner/items/{}/retract", ids[5]), Some(&json!({}))).await.ok();
    let sorted = |mut texts: Vec<String>| {
        texts.sort();
        texts
    };
    let grant = world.issue(&world.draft(&agent(2))).await;
    let token = world.token(&agent(2), &grant).await;
    let seen = world.query(&agent(2), &token, &json!({})).await.ok();
    assert_eq!(sorted(texts(&seen)), ["expires soon", "visible"]);
    world.clock.advance(Duration::from_secs(60));
    let seen = world.query(&agent(2), &token, &json!({})).await.ok();
    assert_eq!(texts(&seen), ["visible"], "an item expires at the instant, whatever is cached");

    let mut named = world.draft(&agent(2));
    named["filter"] = json!({"sensitivities": ["restricted"]});
    assert_eq!(texts(&world.ask(&agent(2), &named, &json!({})).await), ["restricted"]);
    let mut work = world.draft(&agent(2));
    work["scope"] = json!("work");
    assert_eq!(texts(&world.ask(&agent(2), &work, &json!({})).await), ["other scope"]);
}

/// A verifier refuses an answer with an item from the future, and all that stands beside it.
#[tokio::test]
async fn what_became_known_in_the_future_is_not_written() {
    let world = World::new().await;
    let at = |millis| {
        let mut item = note("tea", &[]);
        item["provenance"] = json!({"captured_at": world.now().plus(Duration::from_millis(millis))});
        item
    };
    let (last, late) = (at(300_000), at(300_001));
    let refused = |answer: Answer| {
        let message = answer.refused(400, "invalid_input")["message"].as_str().unwrap().to_owned();
        assert!(message.contains("provenance.captured_at"), "{message}");
    };
    refused(world.owner("POST", "/oap/owner/items", Some(&json!({"items": [last, late]}))).await);
    let id = &world.capture(&[last]).await[0];
    let path = format!("/oap/owner/items/{id}/correct");
    let correct = json!({"item": {"provenance": late["provenance"]}});
    refused(world.owner("POST", &path, Some(&correct)).await);
    // It keeps its own time, whatever the clock says by then.
    world.clock.set(world.now().minus(Duration::from_secs(600)));
    world.owner("POST", "/oap/owner/clock/accept", None).await.ok();
    world.owner("POST", &path, Some(&json!({"item": {"content": {"text": "coffee"}}}))).await.ok();
    let relabelled = json!({"labels": ["late"]});
    world.owner("POST", &format!("/oap/owner/items/{id}/relabel"), Some(&relabelled)).await.ok();
    refused(world.owner("POST", &path, Some(&correct)).await);
    world.clock.advance(Duration::from_millis(600_001));
    world.owner("POST", &path, Some(&correct)).await.ok();
}

#[tokio::test]
async fn a_purpose_must_be_one_that_the_grant_names() {
    let world = World::new().await;
    world.capture(&[note("tea", &[])]).await;
    let mut draft = world.draft(&agent(2));
    draft["purpose_codes"] = json!(["briefing"]);
    let grant = world.issue(&draft).await;
    let token = world.token(&agent(2), &grant).await;
    world.query(&agent(2), &token, &json!({"purpose": "briefing"})).await.ok();
    world.query(&agent(2), &token, &json!({})).await.ok();
    world.query(&agent(2), &token, &json!({"purpose": "marketing"})).await.refused(403, "policy_block");
}

#[tokio::test]
async fn malformed_queries_name_the_member() {
    let world = World::new().await;
    let grant = world.issue(&world.draft(&agent(2))).await;
    let token = world.token(&agent(2), &grant).await;
    for (query, member) in [
        (json!({"max_results": 0}), "max_results"),
        (json!({"max_results": 101}), "max_results"),
        (json!({"max_results": "ten"}), "invalid type"),
        (json!({"colour": "red"}), "colour"),
        (json!({"kinds": ["rumour"]}), "kinds[0]"),
        (json!({"min_confidence": 2}), "0 to 1"),
        (json!({"integrity": "none"}), "integrity"),
        (json!({"query": "x".repeat(5000)}), "query"),
        (json!({"request_id": "1"}), "Crockford"),
        (json!([]), "invalid type"),
    ] {
        let refusal = world.query(&agent(2), &token, &query).await.refused(400, "invalid_input");
        let message = refusal["message"].as_str().unwrap();
        assert!(message.contains(member), "{query}: {message}");
        assert!(refusal["request_id"].is_string());
    }
}

#[tokio::test]
async fn bodies_are_capped_and_typed() {
    let world = World::new().await;
    let big = json!({"query": "x".repeat(2 << 20)});
    let grant = world.issue(&world.draft(&agent(2))).await;
    let token = world.token(&agent(2), &grant).await;
    world.query(&agent(2), &token, &big).await.refused(413, "too_large");
    let request = axum::http::Request::post("/oap/memory/grant").header("content-type", "text/plain");
    let answer = world.send(request.body("{}".into()).unwrap()).await;
    answer.refused(400, "invalid_input");
    for body in [r#"{"a":1,"a":2}"#.to_owned(), "[".repeat(1000), "\u{0}".to_owned(), String::new()] {
        let request =
            axum::http::Request::post("/oap/memory/grant").header("content-type", "application/json");
        world.send(request.body(body.into()).unwrap()).await.refused(400, "invalid_input");
    }
    world.raw("GET", "/nothing", &[], None).await.refused(404, "not_found");
}

#[tokio::test]
async fn a_grants_state_is_for_its_grantee_alone() {
    let world = World::new().await;
    let grant = world.issue(&world.draft(&agent(2))).await;
    let id = grant["grant_id"].as_str().unwrap();
    let path = format!("/oap/memory/grant/{id}");
    let hash = oap_identity::Hash::of_canonical(&grant).unwrap();
    let ask = async |who: &oap_identity::Signer, path: &str| {
        let random = oap_identity::random::Seeded::new(world.now().millis() as u64);
        let url = format!("{ORIGIN}{path}");
        let proof = oap_grants::exchange::prove(who, &url, hash, world.now(), &random).unwrap();
        world.raw("GET", path, &[("authorization", &format!("OAP-Proof {proof}"))], None).await
    };
    assert_eq!(ask(&agent(2), &path).await.ok()["state"], "active");
    world.clock.advance(Duration::from_secs(1));
    let stranger = ask(&agent(3), &path).await.refused(404, "not_found");
    let unknown = ask(&agent(2), "/oap/memory/grant/mgr_01HX2QFXR0Q4S8T9V3W7X2Y0Z1").await;
    assert_eq!(stranger["message"], unknown.refused(404, "not_found")["message"]);
    world.raw("GET", &path, &[], None).await.refused(404, "not_found");
    world.clock.advance(Duration::from_secs(1));
    world.owner("POST", &format!("/oap/owner/grants/{id}/revoke"), Some(&json!({}))).await.ok();
    assert_eq!(ask(&agent(2), &path).await.ok()["state"], "revoked");
    // And anybody can check the published list.
    let place = grant["status"]["status_list"]["idx"].as_u64().unwrap() as u32;
    let list = world.raw("GET", "/oap/memory/status", &[], None).await;
    let list = String::from_utf8(list.bytes).unwrap();
    let address = format!("{ORIGIN}/oap/memory/status");
    let revoked = |place| {
        oap_grants::status::is_revoked(&list, place, &address, &world.document(), world.now()).unwrap()
    };
    assert!(revoked(place) && !revoked(place ^ 1));
}

/// A grant of agent 2, passed on to agent 3 for the label `a`.
fn passed_on(parent: &Value) -> Value {
    let mut child = parent.clone();
    let members = child.as_object_mut().unwrap();
    members.remove("signature");
    members.remove("delegable");
    members.remove("status");
    child["grant_id"] = json!("mgr_01HX2QFXR0Q4S8T9V3W7X2Y0Z1");
    child["grantee"] = json!(agent(3).did());
    child["parent"] = json!(oap_identity::Hash::of_canonical(parent).unwrap());
    child["filter"] = json!({"labels_any": ["a"]});
    sign_document(&mut child, &agent(2)).unwrap();
    child
}

#[tokio::test]
async fn a_chain_is_the_grants_above_and_no_others() {
    let world = World::new().await;
    let mut draft = world.draft(&agent(2));
    draft["delegable"] = json!({"max_depth": 1});
    let (parent, other) = (world.issue(&draft).await, world.issue(&draft).await);
    let child = passed_on(&parent);
    let refused = async |seed: u8, grant: &Value, above: &[&Value]| {
        let above: Vec<Value> = above.iter().map(|above| (*above).clone()).collect();
        let refusal = world.exchange_with(&agent(seed), grant, &above).await.refused(400, "invalid_input");
        assert!(refusal["message"].as_str().unwrap().starts_with("chain: "), "{refusal}");
    };
    for known in [false, true] {
        for above in
            [&[][..], &[&other], &[&parent, &parent], &[&child], &[&parent, &child], &[&other, &parent]]
        {
            refused(3, &child, above).await;
        }
        for above in [&[&parent][..], &[&other], &[&child], &[&parent, &child]] {
            refused(2, &parent, above).await;
        }
        if !known {
            world.exchange_with(&agent(3), &child, std::slice::from_ref(&parent)).await.ok();
            world.clock.advance(Duration::from_secs(60));
        }
    }
    world.exchange_with(&agent(3), &child, std::slice::from_ref(&parent)).await.ok();
    world.exchange_with(&agent(2), &parent, &[]).await.ok();
}

/// bytes.md 5.1: the decision of every receipt under a delegated grant names the grants above it.
#[tokio::test]
async fn the_refusal_of_a_delegated_grant_names_those_above() {
    let world = World::new().await;
    let mut draft = world.draft(&agent(2));
    draft["delegable"] = json!({"max_depth": 1});
    let parent = world.issue(&draft).await;
    let child = passed_on(&parent);
    let token = world.token(&agent(3), &child).await;
    world.as_agent(&agent(3), &token, "POST", "/oap/memory/export", None).await.refused(403, "policy_block");
    let path = format!("/oap/owner/grants/{}/revoke", parent["grant_id"].as_str().unwrap());
    world.owner("POST", &path, Some(&json!({}))).await.ok();
    world.query(&agent(3), &token, &json!({})).await.refused(403, "policy_block");
    world.exchange(&agent(3), &child).await.refused(403, "policy_block");
    world.exchange(&agent(2), &parent).await.refused(403, "policy_block");
    let log = world.owner("GET", "/oap/audit?limit=1000", None).await.ok();
    let decisions = log["receipts"].as_array().unwrap().iter().map(|receipt| &receipt["policy_decisions"][0]);
    let blocked: Vec<&Value> = decisions.filter(|decision| decision["outcome"] == "block").collect();
    assert_eq!(blocked.len(), 4);
    for decision in blocked {
        let above = if decision["consumed_grant_id"] == child["grant_id"] {
            json!([child["parent"]])
        } else {
            Value::Null
        };
        assert_eq!(decision["delegation"], above, "{decision}");
    }
}

#[tokio::test]
async fn delegated_grants_work_and_fall_with_their_parent() {
    let world = World::new().await;
    world.capture(&[note("tea", &["a"]), note("coffee", &["b"])]).await;
    let mut draft = world.draft(&agent(2));
    draft["delegable"] = json!({"max_depth": 1});
    let parent = world.issue(&draft).await;
    let child = passed_on(&parent);
    let token = world.token(&agent(3), &child).await;
    let answer = world.query(&agent(3), &token, &json!({})).await.ok();
    assert_eq!(texts(&answer), ["tea"]);
    let delegation = &answer["receipt"]["policy_decisions"][0]["delegation"];
    assert_eq!(*delegation, json!([child["parent"]]));

    let mut wider = child.clone();
    wider["grant_id"] = json!("mgr_01HX2QFXR0Q4S8T9V3W7X2Y0Z2");
    wider["trust_level"] = json!(4);
    sign_document(&mut wider, &agent(2)).unwrap();
    let refusal = world.exchange(&agent(3), &wider).await.refused(400, "invalid_input");
    assert!(refusal["message"].as_str().unwrap().contains("trust_level"));

    let path = format!("/oap/owner/grants/{}/revoke", parent["grant_id"].as_str().unwrap());
    world.owner("POST", &path, Some(&json!({}))).await.ok();
    world.query(&agent(3), &token, &json!({})).await.refused(403, "policy_block");
}

#[tokio::test]
async fn a_joint_receipt() {
    let world = World::new().await;
    world.capture(&[note("tea", &[])]).await;
    let answer = world.ask(&agent(2), &world.draft(&agent(2)), &json!({})).await;
    let receipt: oap_memory::Receipt = serde_json::from_value(answer["receipt"].clone()).unwrap();
    let sign = |signer: &oap_identity::Signer| {
        let value = signer.sign(&receipt.signed_bytes().unwrap());
        json!({"receipt_id": receipt.receipt_id,
               "signature": {"by": signer.kid(), "alg": "EdDSA", "value": value}})
    };
    world.raw("POST", "/oap/memory/ack", &[], Some(&sign(&agent(3)))).await.refused(404, "not_found");
    let mut forged = sign(&agent(2));
    forged["signature"]["value"] = sign(&agent(3))["signature"]["value"].clone();
    world.raw("POST", "/oap/memory/ack", &[], Some(&forged)).await.refused(404, "not_found");
    let joint = world.raw("POST", "/oap/memory/ack", &[], Some(&sign(&agent(2)))).await.ok();
    assert_eq!(joint["receipt"]["signatures"].as_array().unwrap().len(), 2);
    world.chains_hold().await;
}

#[tokio::test]
async fn a_spent_budget_is_429_until_the_owner_refills() {
    let world = World::new().await;
    world.capture(&[note("tea", &[]), note("coffee", &[])]).await;
    let grantee = agent(2);
    let mut draft = world.draft(&grantee);
    draft["budget"] = json!({"queries": 2});
    let grant = world.issue(&draft).await;
    let token = world.token(&grantee, &grant).await;
    let ask = async || world.query(&grantee, &token, &json!({"query": "tea"})).await;
    ask().await.ok();
    ask().await.ok();
    ask().await.refused(429, "budget_exhausted");
    // The refusal is in the log, and spends nothing.
    let log = world.owner("GET", "/oap/audit", None).await.ok();
    let refusals: Vec<&Value> = log["receipts"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|receipt| receipt["policy_decisions"][0]["rules"] == json!(["grant.budget"]))
        .collect();
    assert_eq!(refusals.len(), 1);
    let accounts = world.owner("GET", "/oap/owner/budgets", None).await.ok();
    assert_eq!(accounts["accounts"][0]["queries"], 2);
    // The second answer was of an item that was got before: a tenth dearer.
    assert_eq!(accounts["accounts"][0]["epsilon_spent"], json!(0.021));
    let refill = json!({"grantee": grantee.did(), "grant": grant["grant_id"]});
    world.owner("POST", "/oap/owner/budgets/refill", Some(&refill)).await.ok();
    ask().await.ok();
}

#[tokio::test]
async fn a_grantees_account_is_one_for_all_their_grants() {
    let world =
        World::with(1, oap_gateway::Config { epsilon_per_grantee: 0.02, ..oap_gateway::Config::default() })
            .await;
    world.capture(&[note("tea", &[])]).await;
    let draft = world.draft(&agent(2));
    world.ask(&agent(2), &draft, &json!({"query": "nothing"})).await;
    world.ask(&agent(2), &draft, &json!({"query": "nothing"})).await;
    let grant = world.issue(&draft).await;
    let token = world.token(&agent(2), &grant).await;
    world.query(&agent(2), &token, &json!({})).await.refused(429, "budget_exhausted");
    // Another grantee is not concerned.
    world.ask(&agent(3), &world.draft(&agent(3)), &json!({})).await;
}

/// The log is read under a grant in force, as everything is.
#[tokio::test]
async fn the_log_is_closed_to_a_grant_that_was_revoked() {
    let world = World::new().await;
    let grantee = agent(2);
    let grant = world.issue(&world.draft(&grantee)).await;
    let token = world.token(&grantee, &grant).await;
    let ask = async || world.as_agent(&grantee, &token, "GET", "/oap/audit", None).await;
    ask().await.ok();
    let id = grant["grant_id"].as_str().unwrap();
    world.owner("POST", &format!("/oap/owner/grants/{id}/revoke"), None).await.ok();
    ask().await.refused(403, "policy_block");
}

/// A grantee's receipts lie in the chains of several scopes; the newest come first, whichever chain they are in.
#[tokio::test]
async fn receipts_of_several_scopes_come_in_the_order_of_time() {
    let world = World::new().await;
    let grantee = agent(2);
    let mut tokens = Vec::new();
    for scope in ["personal", "work"] {
        let mut draft = world.draft(&grantee);
        draft["scope"] = json!(scope);
        let grant = world.issue(&draft).await;
        tokens.push((world.token(&grantee, &grant).await, grant));
    }
    for (token, _) in tokens.iter().cycle().take(6) {
        world.clock.advance(Duration::from_secs(1));
        world.query(&grantee, token, &json!({})).await.ok();
    }
    let times = |answer: &Value| -> Vec<String> {
        let receipts = answer["receipts"].as_array().unwrap().iter();
        receipts.map(|receipt| receipt["timestamp"].as_str().unwrap().to_owned()).collect()
    };
    let all = times(&world.as_agent(&grantee, &tokens[0].0, "GET", "/oap/audit", None).await.ok());
    let mut sorted = all.clone();
    sorted.sort_unstable_by(|a, b| b.cmp(a));
    assert_eq!(all, sorted);
    let last = times(&world.as_agent(&grantee, &tokens[0].0, "GET", "/oap/audit?limit=3", None).await.ok());
    assert_eq!(last, sorted[..3]);
}

/// Whoever is shown one grant's receipts alone finds them behind any number of others of the same DID.
#[tokio::test]
async fn receipts_of_other_grants_do_not_hide_those_of_ones_own() {
    use oap_gateway::service::audit::MAX_LOOKED_AT;
    use oap_memory::receipt::Action;
    let world = World::new().await;
    let grantee = agent(2);
    let mut draft = world.draft(&grantee);
    draft["bearer"] = json!(true);
    let grant = world.issue(&draft).await;
    let bearer = format!("Bearer {}", world.token(&grantee, &grant).await);
    let headers = [("authorization", bearer.as_str())];
    world.raw("POST", "/oap/memory/query", &headers, Some(&json!({}))).await.ok();
    let did = grantee.did().to_string();
    world
        .gateway
        .commit(move |w| {
            for _ in 0..=MAX_LOOKED_AT {
                let draft = w.gateway.draft(Action::Query, &did);
                w.receipt("work", draft)?;
            }
            Ok(())
        })
        .await
        .unwrap();
    let listing = world.raw("GET", "/oap/audit", &headers, None).await.ok();
    assert!(!listing["receipts"].as_array().unwrap().is_empty());
}

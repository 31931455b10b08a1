//! A message names the member and the fix and never quotes what was sent (protocol section 1): every route, with a
//! canary in every place of a request. And every refusal has a body, 405 too.

use crate::common::*;
use axum::body::Body;
use axum::http::Request;
use oap_gateway::api::routes::{Access, Name, ROUTES};
use oap_identity::{Hash, random::Seeded};
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// A token, a DID, a number, a text: what must not come back.
fn canaries() -> [Value; 4] {
    [
        json!("eyJhbGciOiJFZERTQSIsImNhbmFyeSI6MX0.eyJDYW5hcnkiOjF9.Q2FuYXJ5"),
        json!("did:web:canary-7f3a.invalid"),
        json!(31_415_926_535_u64),
        json!("Canary 7f3a, of the diary"),
    ]
}

const NEEDLES: [&str; 5] = ["eyJ", "canary", "Canary", "31415926535", "7f3a"];

fn quotes(text: &str) -> bool {
    NEEDLES.iter().any(|needle| text.contains(needle))
}

#[track_caller]
fn silent(answer: &Answer, what: &str) {
    if answer.status.as_u16() < 400 {
        return;
    }
    let text = String::from_utf8_lossy(&answer.bytes);
    assert!(!quotes(&text), "{what}: {text}");
    // The invocation envelope has its code one level deeper, as its schema has it.
    let code = answer.body["error"].as_str().or(answer.body["error"]["code"].as_str());
    assert!(code.is_some(), "{what}: {} {text}", answer.status);
    assert!(answer.body["request_id"].is_string(), "{what}: {text}");
}

/// A body that a route takes, or nearly; each of its leaves is replaced by a canary in turn.
async fn routes(world: &World) -> Vec<(&'static str, String, Value)> {
    let id = world.capture(&[note("Tea at nine", &["tea"])]).await.remove(0);
    let grantee = agent(7);
    let grant = world.issue(&world.draft(&grantee)).await;
    let grant_id = grant["grant_id"].as_str().unwrap().to_owned();
    let endpoint = format!("{ORIGIN}/oap/memory/grant");
    let hash = Hash::of_canonical(&grant).unwrap();
    let proof = oap_grants::exchange::prove(&grantee, &endpoint, hash, world.now(), &Seeded::new(4)).unwrap();
    let key = json!({"by": grantee.kid(), "alg": "EdDSA", "value": grantee.sign(b"x")});
    let item = json!({
        "kind": "fact", "content": {"text": "Tea", "structured": {"a": [1, {"b": true}]}}, "labels": ["x"],
        "scope_id": "personal", "ttl_days": 3, "exportable": true, "sensitivity": "internal",
        "provenance": {"confidence": 0.5, "captured_at": world.now()}, "derived_from": [id],
        "extensions": {"org.example": {"x": 1}}, "expires_at": world.now(), "subject_entity_id": "did:web:a.example",
    });
    let scout = json!({"name": "scout", "permission": "memory.write"});
    world.owner("POST", "/oap/owner/agents", Some(&scout)).await.ok();
    let call = |tool: &str, arguments: Value| json!({"tool": tool, "arguments": arguments});
    let learn = json!({
        "content": "Tea", "kind": "fact", "topic": "tea", "tags": ["x"], "confidence": 0.5, "level": "external",
        "source": {"type": "web", "ref": "x", "hash": hash}, "scope": "private", "sensitivity": "internal", "ttl_days": 3,
    });
    let recall = json!({"query": "tea", "topic": "t", "tags": ["x"], "kinds": ["fact"], "min_confidence": 0.5, "limit": 3, "max_age": "P1D", "near": [id],
        "peers": true, "deadline": 1});
    let mut draft = world.draft(&grantee);
    draft["filter"] = json!({
        "scopes": ["personal"], "kinds": ["fact"], "labels_any": ["x"], "min_confidence": 0.5,
        "captured_after": world.now(), "sensitivities": ["public"],
    });
    draft["delegable"] = json!({"max_depth": 1});
    draft["budget"] = json!({"queries": 1, "epsilon": 0.5});
    draft["operations"] = json!(["query"]);
    let hash = json!(Hash::of(b"x"));
    let bundle = "01KQHPHXG0FN6AMW9YQM51XCBE";
    let did = world.gateway.published().did.clone();
    let line = json!({"item": {"item_id": id, "integrity": {"chain": [], "capture_receipt": {}, "sd_jwt": "a.b.c~"}}});
    let envelope = json!({
        "oap_version": "1.0", "request_id": "01J9V8B7H1ZK4D2A0M9R8F0KQX", "timestamp": world.now(),
        "principal_did": PRINCIPAL, "agent_did": grantee.did(), "action": "memory_grant",
        "input": {"grant": grant, "proof": proof},
        "context": {"locale": "en-US", "currency": "EUR", "jurisdiction_user": "DE", "jurisdiction_agent": "DE"},
        "signature": {"alg": "EdDSA", "kid": grantee.kid(), "value": grantee.sign(b"x")},
    });
    let counts = json!({"items": 1, "grants": 0, "receipts": 0});
    let trailer = json!({
        "bundle_id": bundle, "counts": counts, "lines": 2, "hash": hash, "finished_at": world.now(),
    });
    let query = json!({
        "query": "tea", "max_results": 5, "include_embeddings": false, "kinds": ["fact"], "labels_any": ["x"],
        "min_confidence": 0.5, "cursor": "AAAA", "integrity": "full", "purpose": "x",
        "request_id": "01J9V8B7H1ZK4D2A0M9R8F0KQX",
    });
    let ask_id = "ask_01J9V8B7H1ZK4D2A0M9R8F0KQX";
    let ask = json!({
        "purpose": "x", "purpose_codes": ["x"], "filter": {"labels_any": ["x"]}, "max_items": 1, "expires_at": world.now(),
        "redaction_profile": "x", "trust_level": 1, "operations": ["query"], "budget": {"queries": 1}, "delegable": {"max_depth": 1},
    });
    let letter = json!({
        "oap": "1.0", "type": "access_request", "id": "ltr_01J9V8B7H1ZK4D2A0M9R8F0KQX", "from": grantee.did(), "to": PRINCIPAL,
        "issued_at": world.now(), "expires_at": world.now().plus(std::time::Duration::from_secs(60)),
        "body": {"request": ask_id, "ask": ask},
        "signature": {"alg": "EdDSA", "kid": grantee.kid(), "value": grantee.sign(b"x")},
    });
    let hash_of_x = Hash::of(b"x");
    let owner = |path: &str| format!("/oap/owner{path}");
    let bodies: Vec<(&'static str, String, Value)> = vec![
        ("POST", "/oap/memory/query".into(), query.clone()),
        (
            "POST",
            "/oap/memory/changes".into(),
            json!({"cursor": "0.journal.1", "request_id": "01J9V8B7H1ZK4D2A0M9R8F0KQX"}),
        ),
        (
            "POST",
            "/oap/memory/changes/items".into(),
            json!({"items": [id], "request_id": "01J9V8B7H1ZK4D2A0M9R8F0KQX"}),
        ),
        ("POST", "/oap/memory/grant".into(), json!({"grant": grant, "chain": [grant], "proof": proof})),
        ("POST", "/oap/memory/export".into(), json!({})),
        (
            "POST",
            "/oap/memory/ack".into(),
            json!({"receipt_id": format!("urn:oap:receipt:{bundle}"), "signature": key}),
        ),
        (
            "POST",
            "/oap/memory/subscribe".into(),
            json!({"subscription": "sub_01J9V8B7H1ZK4D2A0M9R8F0KQX", "window": 60, "push": {"url": "https://a.example/x"}}),
        ),
        ("POST", "/oap/invoke".into(), envelope),
        ("POST", "/oap/discover".into(), json!({"intent": "read memory"})),
        ("POST", "/oap/peer/letter".into(), letter),
        (
            "POST",
            "/oap/receipt/verify".into(),
            json!({"receipt_id": format!("urn:oap:receipt:{bundle}"), "signatures": [key]}),
        ),
        (
            "POST",
            "/oap/data/delete".into(),
            json!({
                "items": [id], "labels": ["none"], "subjects": ["none"], "scopes": ["none"],
                "provenance_tags": ["a=b"], "captured_after": world.now(), "captured_before": world.now(), "all": false,
            }),
        ),
        ("POST", owner("/items"), json!({"items": [item]})),
        ("POST", owner("/items"), item.clone()),
        ("POST", owner(&format!("/items/{id}/correct")), json!({"item": item, "version": 1})),
        ("POST", owner(&format!("/items/{id}/relabel")), json!({"labels": ["x"]})),
        ("POST", owner(&format!("/items/{id}/confirm")), json!({})),
        ("POST", owner(&format!("/items/{id}/reject")), json!({"version": 1, "into": id})),
        ("POST", owner("/items/resolve"), json!({"ids": ["mem_01HX"], "erased": false})),
        (
            "POST",
            owner("/items/search"),
            json!({"text": "tea", "kinds": ["fact"], "selection": {"labels": ["x"]}, "limit": 1}),
        ),
        (
            "POST",
            owner("/recall"),
            json!({"text": "tea", "kinds": ["fact"], "limit": 1, "deadline": 1, "own_only": false}),
        ),
        ("POST", owner("/items/select"), json!({"selection": {"items": [id]}, "current": true})),
        (
            "POST",
            owner("/items/relabel"),
            json!({"selection": {"items": [id]}, "labels": {"set": ["x"], "add": ["y"], "remove": ["z"]}}),
        ),
        ("POST", owner("/items/retract"), json!({"selection": {"items": [id]}})),
        ("POST", owner("/who"), json!({"did": grantee.did(), "before": id, "limit": 1})),
        ("POST", owner("/grants"), draft.clone()),
        ("POST", owner("/grants/preview"), draft.clone()),
        ("POST", owner(&format!("/grants/{grant_id}/consent")), json!({"given": true})),
        ("POST", owner("/keys/key-9/revoke"), json!({"since": world.now()})),
        ("POST", owner(&format!("/inbox/{ask_id}/approve")), draft.clone()),
        ("POST", owner(&format!("/inbox/{ask_id}/decline")), json!({"word": "x"})),
        ("POST", owner("/asked"), json!({"from": "did:web:a.example", "ask": ask})),
        ("POST", owner("/received"), json!({"grant": grant, "chain": [grant]})),
        ("POST", owner(&format!("/received/{hash_of_x}/delegate")), draft.clone()),
        (
            "POST",
            owner(&format!("/received/{hash_of_x}/answer")),
            json!({"items": 1, "receipt": {"receipt_id": "x"}}),
        ),
        ("POST", owner("/acks"), json!({"automatic": true, "grant": hash_of_x})),
        ("POST", owner(&format!("/received/{hash_of_x}/subscribe")), json!({"window": 60})),
        ("POST", owner("/budgets/refill"), json!({"grantee": grantee.did(), "grant": grant_id})),
        (
            "POST",
            owner("/policy"),
            json!({
                "types": {"session_summary": {"kept": true, "ttl_days": 30, "agents": [grantee.did()]}},
                "untyped": {"kept": true}, "decay": {"step": 5, "period_hours": 24, "least": 30},
            }),
        ),
        (
            "POST",
            owner("/contexts"),
            json!({
                "ccc_version": "1.0", "scope_id": "work", "nda_graph": [], "chinese_walls": [{"between": ["a", "b"]}],
                "regulatory_classification": "none", "embargoes": [], "sanctions_screening": [],
            }),
        ),
        (
            "POST",
            owner("/bridges"),
            json!({
                "from_scope": "work", "to_scope": "personal", "data_categories": ["x"], "valid_until": world.now(),
            }),
        ),
        (
            "POST",
            owner("/export/header"),
            json!({"labels": ["x"], "kinds": ["fact"], "captured_after": world.now()}),
        ),
        (
            "POST",
            owner("/export/page"),
            json!({"part": "items", "selection": {"labels": ["x"]}, "after": id}),
        ),
        ("POST", owner("/export/seal"), trailer),
        (
            "POST",
            owner("/import/bundle"),
            json!({
                "bundle_id": bundle, "principal": PRINCIPAL, "documents": [did], "items": [line], "dry_run": true,
            }),
        ),
        (
            "POST",
            owner("/import/records"),
            json!({"records": [{"source": "s", "item": item}], "dry_run": true}),
        ),
        (
            "POST",
            owner("/import/finish"),
            json!({
                "bundle_id": bundle, "principal": PRINCIPAL, "hash": hash, "counts": counts,
                "imported": 1, "unchanged": 0, "refused": 0,
            }),
        ),
        ("POST", owner("/holds"), json!({"items": [id], "reason": "litigation", "until": world.now()})),
        ("POST", owner("/holds/release"), json!({"items": [id]})),
        ("POST", owner("/jobs"), json!({"job": "backup", "folder": "relative"})),
        ("POST", owner("/prove"), json!({"endpoint": endpoint, "grant_hash": hash})),
        ("POST", owner("/prove"), json!({"method": "POST", "url": endpoint, "token": "t"})),
        ("POST", owner("/agents"), json!({"name": "editor", "permission": "memory.write"})),
        (
            "POST",
            owner("/agents"),
            json!({
                "name": "far", "permission": "memory.read", "role": "coordinator", "capacities": {"working": 1},
                "did": grantee.did(),
            }),
        ),
        (
            "POST",
            owner("/agents/scout/set"),
            json!({
                "permission": "memory.write", "role": "worker", "capacities": {"episodic": 5}, "pinned_namespaces": ["x"],
            }),
        ),
        ("POST", owner("/agents/scout/rotate"), json!({})),
        ("POST", owner("/agents/scout/call"), call("memory_learn", learn)),
        ("POST", owner("/agents/scout/call"), call("memory_recall", recall)),
        (
            "POST",
            owner("/agents/scout/call"),
            call("memory_query", json!({"agent": "owner", "since": world.now()})),
        ),
        (
            "POST",
            owner("/agents/scout/call"),
            call("memory_query", json!({"sparql": "ASK { ?fact a brain:Fact }"})),
        ),
        (
            "POST",
            owner("/agents/scout/call"),
            call("memory_explain", json!({"item_id": id, "as_of": world.now()})),
        ),
        ("POST", owner("/agents/scout/call"), call("memory_correct", json!({"item_id": id, "content": "x"}))),
        ("POST", owner("/agents/scout/call"), call("memory_forget", json!({"item_id": id}))),
        (
            "POST",
            owner("/agents/scout/call"),
            call("memory_diff", json!({"since": "2020-01-01T00:00:00Z", "as_of": world.now()})),
        ),
        ("POST", "/mcp".to_owned(), json!({"jsonrpc": "2.0", "id": 1, "method": "ping"})),
        ("POST", "/oap/agent/call".to_owned(), call("memory_status", json!({}))),
        ("POST", "/.well-known/brain/sparql".to_owned(), json!({"query": "ASK {}"})),
        ("POST", "/api/v1/memory".to_owned(), json!({"namespace": "n", "key": "k", "value": {"a": 1}})),
        ("POST", "/api/v1/memory/batch".to_owned(), json!({"entries": []})),
        (
            "POST",
            "/api/v1/intents".to_owned(),
            json!({"title": "x", "description": "y", "guardrails": {"denied_semantic_namespaces": ["x"]}}),
        ),
        (
            "POST",
            "/api/v1/tasks".to_owned(),
            json!({"intent_id": "intent_01J9V8B7H1ZK4D2A0M9R8F0KQX", "name": "x", "memory_policy": {"max_entries": 1}}),
        ),
        ("POST", owner("/agents/scout/remove"), json!({})),
        ("POST", owner("/oauth/clients"), json!({"name": "desk", "redirect_uris": ["http://127.0.0.1/cb"]})),
        ("POST", owner("/oauth/clients/desk/remove"), json!({})),
        (
            "POST",
            owner("/oauth/consents/ABCD-EFGH/approve"),
            json!({"agent": "scout", "permission": "memory.write"}),
        ),
        ("POST", owner("/oauth/consents/ABCD-EFGH/decline"), json!({})),
        ("POST", owner("/oauth/waiting/001122/decline"), json!({})),
        ("POST", owner("/oauth/given/00112233/end"), json!({})),
        ("POST", "/oauth/token".to_owned(), json!({"grant_type": "refresh_token"})),
        ("POST", "/oauth/revoke".to_owned(), json!({"token": "x"})),
        ("POST", owner("/peers"), json!({"peer": "did:key:z6Mk"})),
        ("POST", owner("/peers/find"), json!({"host": "x.localhost"})),
        ("POST", owner("/peers/show"), json!({"did": "did:web:x.localhost"})),
        ("POST", owner("/peers/check"), json!({"did": "did:web:x.localhost"})),
        ("POST", owner("/peers/accept"), json!({"did": "did:web:x.localhost", "seen": hash})),
        ("POST", owner("/peers/remove"), json!({"did": "did:web:x.localhost"})),
        ("POST", owner("/witnesses"), json!({"did": "did:web:x.localhost"})),
        ("POST", owner("/witnesses/remove"), json!({"did": "did:web:x.localhost"})),
        ("POST", owner("/witnessed"), json!({"did": "did:web:x.localhost"})),
        ("POST", owner("/witnessed/end"), json!({"did": "did:web:x.localhost"})),
        (
            "POST",
            owner("/peers/witnesses"),
            json!({"did": "did:web:x.localhost", "need": 1, "of": ["did:web:x.localhost"]}),
        ),
        ("POST", "/oap/witness/add-checkpoint".into(), json!({"old": 0})),
        ("POST", owner("/devices"), json!({"did": "did:web:x.localhost"})),
        ("POST", owner("/devices/confirm"), json!({"did": "did:web:x.localhost", "code": "1234-5678"})),
        ("POST", owner("/devices/show"), json!({"did": "did:web:x.localhost"})),
        ("POST", owner("/devices/remove"), json!({"did": "did:web:x.localhost"})),
        ("POST", owner("/devices/sync"), json!({"did": "did:web:x.localhost"})),
        ("POST", owner("/attest"), json!({"levels": ["L0"], "report": {"target": "x", "results": []}})),
        ("POST", owner("/witness"), json!({"receipt_id": "x", "signatures": []})),
        (
            "POST",
            owner("/incidents"),
            json!({
                "detected_at": world.now(), "severity": "low", "root_cause": "x", "mitigation": "x", "status": "open",
            }),
        ),
        // The last: what is taken of it ends the credential of all that would follow.
        ("POST", owner("/lockdown"), json!({"reason": "x"})),
    ];
    bodies
}

/// Paths with a part that the caller chose, and parameters.
fn places() -> Vec<(&'static str, String)> {
    let mut places = Vec::new();
    for canary in ["eyJhbGciOiJDYW5hcnkifQ", "did:web:canary-7f3a.invalid", "Canary7f3a"] {
        for (method, path) in [
            ("GET", "/{}"),
            ("GET", "/oap/memory/grant/{}"),
            ("GET", "/oap/memory/vec/{}"),
            ("GET", "/oap/memory/witnessed/{}"),
            ("GET", "/oap/witness/{}/checkpoint"),
            ("GET", "/oap/log/consistency?from={}&to=1"),
            ("GET", "/oap/memory/subscribe/{}/events"),
            ("POST", "/oap/memory/subscribe/{}/end"),
            ("POST", "/oap/peer/push/{}"),
            ("GET", "/oap/audit?since={}"),
            ("GET", "/oap/audit?grant_id={}"),
            ("GET", "/oap/audit?item_id={}"),
            ("GET", "/oap/audit?limit={}"),
            ("GET", "/oap/audit?{}=1"),
            ("GET", "/oap/audit?limit=1&limit={}"),
            ("GET", "/oap/owner/items?kind={}"),
            ("GET", "/oap/owner/items?scope={}"),
            ("GET", "/oap/owner/items?before={}"),
            ("GET", "/oap/owner/items?status={}"),
            ("GET", "/oap/owner/items?limit={}"),
            ("GET", "/oap/owner/items?{}=1"),
            ("GET", "/oap/owner/items/{}"),
            ("GET", "/oap/owner/items/{}/explain"),
            ("GET", "/oap/owner/items/{}/history"),
            ("POST", "/oap/owner/items/{}/correct"),
            ("POST", "/oap/owner/items/{}/reject"),
            ("GET", "/oap/owner/agents/{}"),
            ("GET", "/oap/owner/agents/{}/injected"),
            ("GET", "/oap/owner/agents/scout/injected?at={}"),
            ("GET", "/oap/owner/grants/{}"),
            ("POST", "/oap/owner/grants/{}/revoke"),
            ("POST", "/oap/owner/grants/{}/consent"),
            ("POST", "/oap/owner/keys/{}/revoke"),
            ("GET", "/oap/owner/inbox/{}"),
            ("POST", "/oap/owner/inbox/{}/approve"),
            ("POST", "/oap/owner/asked/{}/withdraw"),
            ("GET", "/oap/owner/received/{}"),
            ("POST", "/oap/owner/received/{}/check"),
            ("GET", "/oap/owner/acks?limit={}"),
            ("GET", "/oap/owner/acks/{}"),
            ("POST", "/oap/owner/acks/{}/give"),
            ("POST", "/oap/owner/received/{}/subscribe"),
            ("POST", "/oap/owner/subscriptions/{}/end"),
            ("POST", "/oap/owner/contexts/{}/remove"),
            ("POST", "/oap/owner/bridges/{}/revoke"),
            ("GET", "/oap/owner/deletions/{}"),
            ("GET", "/oap/owner/decisions/{}"),
            ("GET", "/oap/owner/oauth/consents/{}"),
            ("POST", "/oap/owner/oauth/consents/{}/approve"),
            ("POST", "/oap/owner/oauth/waiting/{}/decline"),
            ("POST", "/oap/owner/oauth/given/{}/end"),
            ("POST", "/oap/owner/oauth/clients/{}/remove"),
        ] {
            places.push((method, path.replace("{}", canary)));
        }
    }
    places
}

fn with(value: &Value, path: &[String], put: &Value) -> Value {
    let mut value = value.clone();
    let pointer: String = path.iter().map(|step| format!("/{step}")).collect();
    if let Some(place) = value.pointer_mut(&pointer) {
        *place = put.clone();
    }
    value
}

/// Every place of a value: itself, its members, its elements.
fn all(value: &Value, path: &mut Vec<String>, found: &mut Vec<Vec<String>>) {
    found.push(path.clone());
    let parts: Vec<(String, &Value)> = match value {
        Value::Object(members) => members.iter().map(|(name, v)| (name.replace('/', "~1"), v)).collect(),
        Value::Array(elements) => elements.iter().enumerate().map(|(n, v)| (n.to_string(), v)).collect(),
        _ => Vec::new(),
    };
    for (step, part) in parts {
        path.push(step);
        all(part, path, found);
        path.pop();
    }
}

/// The requests that carry a canary at each place of a body.
fn spoiled(body: &Value) -> Vec<Value> {
    let mut found = Vec::new();
    all(body, &mut Vec::new(), &mut found);
    let mut bodies = Vec::new();
    for place in found {
        for canary in canaries() {
            bodies.push(with(body, &place, &canary));
            bodies.push(with(body, &place, &json!([canary])));
            bodies.push(with(body, &place, &json!({"value": canary})));
        }
        let pointer: String = place.iter().map(|step| format!("/{step}")).collect();
        if let Some(Value::Object(members)) = body.pointer(&pointer) {
            let mut more = members.clone();
            more.insert("Canary7f3a".into(), canaries()[0].clone());
            bodies.push(with(body, &place, &Value::Object(more)));
        }
    }
    bodies
}

#[tokio::test]
async fn no_message_quotes_a_body() {
    let world = World::new().await;
    let grantee = agent(7);
    let draft = json!({"operations": ["query"], "max_items": 5});
    let mut whole = world.draft(&grantee);
    whole.as_object_mut().unwrap().extend(draft.as_object().unwrap().clone());
    let grant = world.issue(&whole).await;
    let token = world.token(&grantee, &grant).await;
    let (mut refused, mut quoted) = (0, BTreeSet::new());
    for (method, path, body) in routes(&world).await {
        for body in spoiled(&body) {
            let answer = if path.starts_with("/oap/owner") || path == "/oap/data/delete" {
                world.owner(method, &path, Some(&body)).await
            } else if path == "/oap/memory/query" {
                world.query(&grantee, &token, &body).await
            } else {
                world.raw(method, &path, &[], Some(&body)).await
            };
            // What became of each item of an import is a message too.
            let said = match answer.status.as_u16() {
                200 if path.contains("/import/") => answer.body["outcomes"].to_string(),
                400.. => {
                    refused += 1;
                    let message = &answer.body["message"];
                    assert!(
                        message.is_string() || answer.body["error"]["message"].is_string(),
                        "{path} {body}"
                    );
                    String::from_utf8_lossy(&answer.bytes).into_owned()
                }
                _ => continue,
            };
            if quotes(&said) {
                quoted.insert(format!("{path}: {said}"));
            }
        }
    }
    assert_eq!(quoted, BTreeSet::new());
    assert!(refused > 2000, "{refused}");
}

#[tokio::test]
async fn no_message_quotes_an_address_or_a_header() {
    let world = World::new().await;
    for (method, path) in places() {
        for body in [None, Some(json!({}))] {
            silent(&world.raw(method, &path, &[], body.as_ref()).await, &path);
            silent(&world.owner(method, &path, body.as_ref()).await, &path);
        }
    }
    for canary in canaries().iter().filter_map(Value::as_str) {
        for path in
            ["/oap/memory/query", "/oap/owner/items", "/oap/memory/grant", "/oap/invoke", "/oap/audit"]
        {
            for value in [canary.to_owned(), format!("DPoP {canary}"), format!("Bearer {canary}")] {
                for name in ["authorization", "dpop", "content-type", "oap-version", "oap-request-id"] {
                    let headers = [("authorization", "DPoP x"), (name, value.as_str())];
                    silent(&world.raw("POST", path, &headers[1..], Some(&json!({}))).await, path);
                    silent(&world.raw("GET", path, &headers, None).await, path);
                }
            }
        }
    }
    for text in [
        "eyJCanary",
        "{\"eyJ\":",
        "{\"a\":1}eyJ",
        "\"Canary\\ud800\"",
        "31415926535e999",
        "{\"Canary\":1,\"Canary\":2}",
    ] {
        for path in ["/oap/memory/grant", "/oap/invoke", "/oap/discover"] {
            let request =
                Request::builder().method("POST").uri(path).header("content-type", "application/json");
            let answer = world.send(request.body(Body::from(text)).unwrap()).await;
            assert_eq!(answer.status, 400, "{text}");
            silent(&answer, text);
        }
    }
}

/// Every route with a body has its bodies above.
#[tokio::test]
async fn every_route_with_a_body_is_tried() {
    let world = World::new().await;
    let tried: BTreeSet<String> = routes(&world).await.into_iter().map(|(_, path, _)| path).collect();
    // Their bodies are not read, or hold nothing but what another route's hold.
    let bare = [
        Name::ExportView,
        Name::RetractItem,
        Name::RestoreItem,
        Name::ResealItem,
        Name::RevokeGrant,
        Name::ResumeGrants,
        Name::RemoveContext,
        Name::RevokeBridge,
        Name::RotateKeys,
        Name::AskAgain,
        Name::WithdrawAsked,
        Name::CheckReceived,
        Name::EndSubscription,
        Name::SubscriptionOver,
        Name::Pushed,
        Name::RemoveReceived,
        Name::GiveAck,
        Name::AcceptClock,
        Name::LiftLockdown,
        Name::CancelJob,
        Name::Lock,
    ];
    for route in ROUTES.iter().filter(|route| route.method == "POST" && !bare.contains(&route.name)) {
        let is_it = |path: &String| {
            let (steps, here) = (route.path.split('/'), path.split('/'));
            steps.clone().count() == here.clone().count()
                && steps.zip(here).all(|(step, part)| step == part || step.starts_with('{'))
        };
        assert!(tried.iter().any(is_it), "{route:?}");
    }
}

#[tokio::test]
async fn another_method_is_refused_with_a_body() {
    let world = World::new().await;
    let reached = ROUTES.iter().filter(|route| route.permission != Access::Socket);
    for (listed, path) in reached.map(|route| (route.path, route.at("x"))) {
        for method in ["PUT", "PATCH", "DELETE"] {
            if ROUTES.iter().any(|route| (route.path, route.method.as_str()) == (listed, method)) {
                continue;
            }
            let answer = world.raw(method, &path, &[], None).await;
            assert_eq!(
                (answer.status.as_u16(), answer.body["error"].as_str()),
                (405, Some("method_not_allowed")),
                "{path}"
            );
            assert!(answer.body["message"].is_string() && answer.body["request_id"].is_string(), "{path}");
        }
    }
    let request = Request::builder().method("PUT").uri("/oap/memory/query").body(Body::empty()).unwrap();
    let response = tower::ServiceExt::oneshot(world.router.clone(), request).await.unwrap();
    assert_eq!(response.headers()["allow"], "POST");
    assert_eq!(response.headers()["content-type"], "application/oap+json");
}

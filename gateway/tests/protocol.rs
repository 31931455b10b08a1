//! The documents and endpoints of OAP-CORE: published documents, invoke, discover, incident, schemas.

use crate::common::*;
use crate::protocol_schemas::compare as valid;
use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD as B64};
use oap_identity::json as strict;
use oap_manifest::check;
use oap_memory::answer::envelope_bytes;
use oap_memory::receipt;
use serde_json::{Value, json};
use std::time::Duration;

#[tokio::test]
async fn published_documents_hold_together() {
    let world = World::new().await;
    let get = async |path: &str| {
        let answer = world.raw("GET", path, &[], None).await;
        assert_eq!(answer.bytes, world.raw("GET", path, &[], None).await.bytes, "{path} is deterministic");
        answer.ok()
    };
    let memory = get("/.well-known/oap-memory.json").await;
    let tool = get("/.well-known/oap-tool.json").await;
    let scopes = get("/.well-known/oap-scopes.json").await;
    let did = get("/.well-known/did.json").await;
    valid("oap-manifest.schema.json", &tool);
    let document = world.document();
    let endpoints = check::memory(&memory, &document, ORIGIN).unwrap();
    assert_eq!(endpoints.query, format!("{ORIGIN}/oap/memory/query"));
    check::tool(&tool, &memory, &document).unwrap();
    assert_eq!(memory["belief_threshold"], 0.5);
    assert_eq!(memory["memory_exchange"]["max_grant_duration_days"], 180);
    assert_eq!((&memory["scopes"], &scopes["scopes"]), (&json!([]), &json!([])));
    assert_eq!(did["id"], PRINCIPAL);
    assert_eq!(did["verificationMethod"][0]["id"], format!("{PRINCIPAL}#key-1"));
    assert_eq!(did["verificationMethod"][0]["controller"], PRINCIPAL);
    assert_eq!(did["keyAgreement"][0]["publicKeyJwk"]["crv"], "X25519");
    for service in ["OAPInvocationEndpoint", "OAPRevocationStatus", "OAPMemoryExchange"] {
        assert!(document.service(service).is_some(), "{service}");
    }
    for (name, member) in [
        ("invoke", "invoke"),
        ("audit", "audit"),
        ("data_delete", "data_delete"),
        ("incident", "incident"),
        ("discover", "discover"),
    ] {
        assert!(tool["endpoints"][member].is_string(), "{name}");
    }
    for path in ["/healthz", "/readyz"] {
        assert!(world.raw("GET", path, &[], None).await.status.is_success());
    }
}

#[tokio::test]
async fn every_receipt_is_valid_against_the_schema() {
    let world = World::new().await;
    let ids = world.capture(&[note("one", &[]), note("two", &[])]).await;
    for (event, body) in [
        ("confirm", json!({})),
        ("retract", json!({})),
        ("restore", json!({})),
        ("correct", json!({"item": {"labels": ["x"]}})),
        ("relabel", json!({"labels": []})),
    ] {
        world.owner("POST", &format!("/oap/owner/items/{}/{event}", ids[0]), Some(&body)).await.ok();
    }
    let grant = world.issue(&world.draft(&agent(2))).await;
    let token = world.token(&agent(2), &grant).await;
    let answer = world.query(&agent(2), &token, &json!({})).await.ok();
    let revoke = format!("/oap/owner/grants/{}/revoke", grant["grant_id"].as_str().unwrap());
    world.owner("POST", &revoke, Some(&json!({}))).await.ok();
    world.query(&agent(2), &token, &json!({})).await.refused(403, "policy_block");
    invoke(&world, &describe(&world)).await.ok();
    let deleted = world.owner("POST", "/oap/data/delete", Some(&json!({"items": [ids[1]]}))).await.ok();
    valid("oap-deletion-receipt.schema.json", &deleted["deletion_receipt"]);
    let incident = json!({"detected_at": "2026-05-01T11:00:00Z", "severity": "low", "root_cause": "a test",
        "mitigation": "none", "status": "resolved"});
    world.owner("POST", "/oap/owner/incidents", Some(&incident)).await.ok();
    let incidents = world.raw("GET", "/oap/incident", &[], None).await.ok();
    valid("oap-incident.schema.json", &incidents["incidents"][0]);
    valid("oap-receipt.schema.json", &answer["items"][0]["integrity"]["capture_receipt"]);
    let mut actions = std::collections::BTreeSet::new();
    for chain in ["personal", "@anonymous"] {
        let path = format!("/oap/audit?chain={chain}&from=0&limit=1000");
        let entries = world.owner("GET", &path, None).await.ok();
        for entry in entries["receipts"].as_array().unwrap() {
            let mut receipt = entry.clone();
            if entry["action_id"] == "memory.chain_head" && entry["signatures"] == json!([]) {
                // Between two receipts it is an entry of the owner's chain, and lacks this alone (docs/decisions.md).
                receipt["signatures"] = answer["receipt"]["signatures"].clone();
            }
            valid("oap-receipt.schema.json", &receipt);
            actions.insert(entry["action_id"].as_str().unwrap().to_owned());
        }
    }
    for action in [
        "memory.boot",
        "memory.capture",
        "memory.chain_head",
        "memory.confirm",
        "memory.correct",
        "memory.delete",
        "memory.describe",
        "memory.erase",
        "memory.exchange",
        "memory.grant",
        "memory.query",
        "memory.relabel",
        "memory.restore",
        "memory.retract",
        "memory.revoke",
        "incident.report",
    ] {
        assert!(actions.contains(action), "{action} leaves a receipt");
    }
}

// --- invoke ---

fn describe(world: &World) -> Value {
    json!({
        "oap_version": "1.0", "request_id": "01J9V8B7H1ZK4D2A0M9R8F0KQX", "timestamp": world.now(),
        "principal_did": "did:plc:test_principal", "agent_did": "did:assistnet:test_agent",
        "action": "memory_describe", "input": {},
        "context": {"locale": "en-US", "currency": "EUR", "jurisdiction_user": "DE", "jurisdiction_agent": "DE"},
        "signature": {"alg": "EdDSA", "kid": "probe", "value": "probe"},
    })
}

async fn invoke(world: &World, envelope: &Value) -> Answer {
    world.raw("POST", "/oap/invoke", &[], Some(envelope)).await
}

#[track_caller]
fn sealed(world: &World, answer: &Answer) {
    let mut schema_form = answer.body.clone();
    // The one member that a probe asks for and the schema does not have (requirements, C4).
    schema_form.as_object_mut().unwrap().remove("receipt_id");
    valid("oap-response-envelope.schema.json", &schema_form);
    let document = world.document();
    let kid = answer.body["signature"]["kid"].as_str().unwrap().parse().unwrap();
    let value = B64.decode(answer.body["signature"]["value"].as_str().unwrap()).unwrap();
    let bytes = envelope_bytes(&answer.body).unwrap();
    document.key(&kid).unwrap().verify(&bytes, &value, world.now()).unwrap();
}

#[tokio::test]
async fn the_free_read_action_is_for_anyone_and_receipted() {
    let world = World::new().await;
    for action in ["memory_describe", "memory.describe"] {
        let mut envelope = describe(&world);
        envelope["action"] = json!(action);
        let answer = invoke(&world, &envelope).await;
        sealed(&world, &answer);
        let body = answer.ok();
        assert_eq!(body["oap_version"], "1.0");
        assert_eq!(body["request_id"], "01J9V8B7H1ZK4D2A0M9R8F0KQX");
        assert_eq!(body["output"]["memory_exchange"]["supported"], true);
        let receipt_id = body["receipt_id"].as_str().unwrap();
        let path = "/oap/audit?principal_did=did:plc:test_principal";
        let listed = world.raw("GET", path, &[], None).await.ok();
        let listed = listed["receipts"].as_array().unwrap();
        let found = listed.iter().find(|r| r["receipt_id"] == receipt_id).unwrap();
        receipt::verify(found, &world.document()).unwrap();
        // An asserted, unproven DID is not written down.
        assert!(!found.to_string().contains("test_principal") && !found.to_string().contains("test_agent"));
    }
    let other = world.raw("GET", "/oap/audit?principal_did=did:plc:other", &[], None).await.ok();
    assert_eq!(other["receipts"], json!([]));

    // A limit counts what was asked for, however many came later.
    let mut another = describe(&world);
    another["principal_did"] = json!("did:plc:another");
    invoke(&world, &another).await.ok();
    let path = "/oap/audit?principal_did=did:plc:test_principal";
    let all = world.raw("GET", path, &[], None).await.ok();
    let last = world.raw("GET", &format!("{path}&limit=1"), &[], None).await.ok();
    assert_eq!(last["receipts"], json!([all["receipts"][1]]));
}

#[tokio::test]
async fn malformed_envelopes_and_unknown_actions() {
    let world = World::new().await;
    world
        .raw("POST", "/oap/invoke", &[], Some(&json!({"oap_version": "1.0"})))
        .await
        .refused(400, "invalid_input");
    // Looked up before the rest is checked: no timestamp, no context.
    let unknown = json!({"oap_version": "1.0", "request_id": "01J9V8B7H1ZK4D2A0M9R8F0KQX",
        "principal_did": "did:plc:test", "agent_did": "did:assistnet:test", "action": "no_such_action",
        "input": {}, "signature": {"alg": "EdDSA", "kid": "probe", "value": "probe"}});
    let answer = invoke(&world, &unknown).await;
    sealed(&world, &answer);
    assert_eq!(answer.status, 404);
    assert_eq!(answer.body["error"]["code"], "not_found");
    for (member, value) in [
        ("oap_version", json!("2.0")),
        ("request_id", json!("short")),
        ("timestamp", json!("2026-05-01T11:00:00Z")),
        ("timestamp", json!("yesterday")),
        ("principal_did", json!("nobody")),
        ("context", json!({})),
        (
            "context",
            json!({"locale": "en", "currency": "euro", "jurisdiction_user": "DE", "jurisdiction_agent": "DE"}),
        ),
        ("signature", json!("x")),
        ("colour", json!("red")),
        ("input", json!({"query": "x"})),
    ] {
        let mut envelope = describe(&world);
        envelope[member] = value;
        let answer = invoke(&world, &envelope).await;
        assert_eq!(
            (answer.status.as_u16(), &answer.body["status"]),
            (400, &json!("error")),
            "{member}: {}",
            answer.body
        );
    }
    for member in ["timestamp", "context", "signature", "principal_did", "agent_did", "input"] {
        let mut envelope = describe(&world);
        envelope.as_object_mut().unwrap().remove(member);
        assert_eq!(invoke(&world, &envelope).await.status, 400, "{member}");
    }
    let headers = [("oap-request-id", "01J9V8B7H1ZK4D2A0M9R8F0KQY")];
    let answer = world.raw("POST", "/oap/invoke", &headers, Some(&describe(&world))).await;
    assert_eq!(answer.status, 400);
}

#[tokio::test]
async fn a_signature_makes_somebody_or_nobody() {
    let world = World::new().await;
    let key = agent(7);
    let signed = |tamper: bool| {
        let mut envelope = describe(&world);
        envelope["agent_did"] = json!(key.did());
        let value = key.sign(&envelope_bytes(&envelope).unwrap());
        envelope["signature"] = json!({"alg": "EdDSA", "kid": key.kid(), "value": value});
        if tamper {
            envelope["principal_did"] = json!("did:plc:somebody_else");
        }
        envelope
    };
    invoke(&world, &signed(false)).await.ok();
    let newest = world.owner("GET", "/oap/audit?chain=@anonymous", None).await.ok();
    assert_eq!(newest["receipts"][0]["agent_did"], json!(key.did()));
    let answer = invoke(&world, &signed(true)).await;
    assert_eq!((answer.status.as_u16(), &answer.body["error"]["code"]), (401, &json!("auth_required")));
    // A key of somebody else than the agent proves nothing about the agent.
    let mut borrowed = signed(false);
    borrowed["agent_did"] = json!(agent(8).did());
    invoke(&world, &borrowed).await.ok();
    let newest = world.owner("GET", "/oap/audit?chain=@anonymous", None).await.ok();
    assert!(newest["receipts"][0]["agent_did"].as_str().unwrap().starts_with("hmac-sha256:"));
}

/// The signer of an envelope is a stranger's choice: nobody is asked for its document before a token is proved.
#[tokio::test]
async fn nobody_is_asked_for_a_strangers_document() {
    let world = World::with(1, oap_gateway::Config { allow_local_dids: true, ..Default::default() }).await;
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    listener.set_nonblocking(true).unwrap();
    let did = format!("did:web:localhost%3A{}", listener.local_addr().unwrap().port());
    let asked = || listener.accept().is_ok();
    for action in ["memory_describe", "memory_query", "memory_grant"] {
        let mut envelope = describe(&world);
        envelope["action"] = json!(action);
        envelope["agent_did"] = json!(did);
        envelope["signature"]["kid"] = json!(format!("{did}#key-1"));
        let status = invoke(&world, &envelope).await.status.as_u16();
        assert_eq!(status == 200, action == "memory_describe", "{action}: {status}");
        assert!(!asked(), "{action}");
    }
    let did = did.parse().unwrap();
    let (found, ()) = tokio::join!(world.gateway.document(&did), async {
        while !asked() {
            tokio::task::yield_now().await;
        }
    });
    assert!(found.is_err());
}

/// All anonymous callers together leave a bounded number of receipts, however many addresses they have.
#[tokio::test]
async fn anonymous_calls_leave_a_bounded_number_of_receipts() {
    use oap_gateway::state::refusals::MAX_ANONYMOUS_RECEIPTS;
    let world = World::new().await;
    for _ in 0..MAX_ANONYMOUS_RECEIPTS {
        invoke(&world, &describe(&world)).await.ok();
    }
    let one_more = invoke(&world, &describe(&world)).await;
    assert_eq!(one_more.body["error"]["code"], "rate_limited", "{}", one_more.body);
    world.clock.advance(Duration::from_secs(60));
    invoke(&world, &describe(&world)).await.ok();
}

/// An unverified envelope opens nothing but the free action (requirements, S1).
#[tokio::test]
async fn anonymous_callers_get_no_more() {
    let world = World::new().await;
    for (action, input) in [("memory_query", json!({})), ("memory.query", json!({"query": "x"}))] {
        let mut envelope = describe(&world);
        envelope["action"] = json!(action);
        envelope["input"] = input;
        let answer = invoke(&world, &envelope).await;
        assert_eq!((answer.status.as_u16(), &answer.body["error"]["code"]), (401, &json!("auth_required")));
    }
}

/// Protocol section 12: with the status and the challenge of section 1.
#[tokio::test]
async fn a_refusal_at_invoke_is_an_envelope() {
    let world = World::new().await;
    let mut envelope = describe(&world);
    for (action, status, code) in [("memory_query", 401, "auth_required"), ("nothing", 404, "not_found")] {
        envelope["action"] = json!(action);
        let request = axum::http::Request::post("/oap/invoke").header("content-type", "application/oap+json");
        let request = request.body(axum::body::Body::from(envelope.to_string())).unwrap();
        let response = tower::ServiceExt::oneshot(world.router.clone(), request).await.unwrap();
        assert_eq!(response.status().as_u16(), status);
        assert_eq!(response.headers().contains_key("www-authenticate"), status == 401);
        let bytes = axum::body::to_bytes(response.into_body(), 1 << 20).await.unwrap();
        let body: Value = serde_json::from_slice(&bytes).unwrap();
        assert_eq!((&body["status"], &body["error"]["code"]), (&json!("error"), &json!(code)), "{body}");
        assert!(body["signature"]["value"].is_string() && body.get("output").is_none(), "{body}");
    }
}

#[tokio::test]
async fn a_refusal_is_kept_by_nobody() {
    let world = World::new().await;
    for document in ["oap-memory.json", "oap-tool.json", "oap-scopes.json", "did.json"] {
        for (method, status, kept) in [("GET", 200, "max-age=60"), ("POST", 405, "no-store")] {
            let request = axum::http::Request::builder().method(method);
            let request = request.uri(format!("/.well-known/{document}")).body(axum::body::Body::empty());
            let response = tower::ServiceExt::oneshot(world.router.clone(), request.unwrap()).await.unwrap();
            assert_eq!(response.status().as_u16(), status);
            assert_eq!(response.headers()["cache-control"], kept, "{method} {document}");
        }
    }
}

#[tokio::test]
async fn grant_and_query_through_invoke() {
    let world = World::new().await;
    world.capture(&[note("tea", &[])]).await;
    let grant = world.issue(&world.draft(&agent(2))).await;
    let random = oap_identity::random::Seeded::new(5);
    let url = format!("{ORIGIN}/oap/invoke");
    let hash = oap_identity::Hash::of_canonical(&grant).unwrap();
    let proof = oap_grants::exchange::prove(&agent(2), &url, hash, world.now(), &random).unwrap();
    let mut envelope = describe(&world);
    envelope["action"] = json!("memory_grant");
    envelope["input"] = json!({"grant": grant, "proof": proof});
    let token =
        invoke(&world, &envelope).await.ok()["output"]["memory_grant_jwt"].as_str().unwrap().to_owned();
    envelope["action"] = json!("memory_query");
    envelope["input"] = json!({"query": "tea"});
    let answer = world.as_agent(&agent(2), &token, "POST", "/oap/invoke", Some(&envelope)).await;
    sealed(&world, &answer);
    let body = answer.ok();
    oap_memory::evidence::answer(&body["output"], &world.document()).unwrap();
    assert_eq!(body["receipt_id"], body["output"]["receipt"]["receipt_id"]);
}

/// An item as deep as is accepted can be listed, queried, called for, and verified.
#[tokio::test]
async fn the_deepest_item_in_every_document() {
    use oap_memory::size::MAX_DEPTH;
    let world = World::new().await;
    let item = |depth: usize| {
        let nested = (2..depth).fold(json!("x".repeat(1000)), |inner, _| json!({ "a": inner }));
        json!({"kind": "fact", "content": {"text": "tea", "structured": nested}})
    };
    let beyond = json!({"items": [item(MAX_DEPTH + 1)]});
    let refusal = world.owner("POST", "/oap/owner/items", Some(&beyond)).await.refused(400, "invalid_input");
    assert!(refusal.to_string().contains("levels deep"), "{refusal}");
    let id = world.capture(&[item(MAX_DEPTH)]).await.remove(0);
    let read = |answer: Answer| {
        assert_eq!(answer.status, 200);
        oap_identity::json::parse(&answer.bytes).unwrap()
    };
    read(world.owner("GET", "/oap/owner/items", None).await);
    let change = json!({"item": {"labels": ["corrected"]}});
    world.owner("POST", &format!("/oap/owner/items/{id}/correct"), Some(&change)).await.ok();
    read(world.owner("GET", &format!("/oap/owner/items/{id}"), None).await);
    let page = json!({"part": "items", "after": null});
    let page = world.owner("POST", "/oap/owner/export/page", Some(&page)).await;
    for line in page.bytes.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
        oap_identity::json::parse(line).unwrap();
    }
    let mut draft = world.draft(&agent(2));
    draft["trust_level"] = json!(4);
    let grant = world.issue(&draft).await;
    let token = world.token(&agent(2), &grant).await;
    let answer = read(world.query(&agent(2), &token, &json!({"query": "tea"})).await);
    oap_memory::evidence::answer(&answer, &world.document()).unwrap();
    let mut envelope = describe(&world);
    envelope["action"] = json!("memory_query");
    envelope["input"] = json!({"query": "tea"});
    let body = read(world.as_agent(&agent(2), &token, "POST", "/oap/invoke", Some(&envelope)).await);
    oap_memory::evidence::answer(&body["output"], &world.document()).unwrap();
}

#[tokio::test]
async fn a_long_intent_is_refused() {
    let world = World::new().await;
    let ask = async |length: usize| {
        world.raw("POST", "/oap/discover", &[], Some(&json!({"intent": "a".repeat(length)}))).await
    };
    ask(oap_gateway::http::discovery::MAX_INTENT).await.ok();
    let refusal = ask(oap_gateway::http::discovery::MAX_INTENT + 1).await.refused(400, "invalid_input");
    assert!(refusal.to_string().contains("intent"), "{refusal}");
}

#[tokio::test]
async fn discover_matches_intents() {
    let world = World::new().await;
    let ask = async |intent: &str| {
        let body = json!({"intent": intent, "principal_did": "did:plc:x", "constraints": {}});
        world.raw("POST", "/oap/discover", &[], Some(&body)).await.ok()["actions"].clone()
    };
    let found = ask("search the memory for context").await;
    assert_eq!(found[0]["action_id"], "memory_query");
    assert!(found[0]["confidence"].as_f64().unwrap() > 0.5);
    assert!(found[0]["estimated_cost"]["amount"].is_string());
    assert_eq!(ask("book a flight").await, json!([]));
    world.raw("POST", "/oap/discover", &[], Some(&json!({}))).await.refused(400, "invalid_input");
}

#[tokio::test]
async fn anonymous_calls_are_limited() {
    let config = oap_gateway::Config { anonymous_rpm: 3, ..Default::default() };
    let world = World::with(1, config).await;
    for _ in 0..3 {
        invoke(&world, &describe(&world)).await.ok();
    }
    invoke(&world, &describe(&world)).await.refused(429, "rate_limited");
    // Whoever has a credential is not held up by those without.
    world.owner("GET", "/oap/owner/items", None).await.ok();
}

/// Canonical bytes on the wire: the answer is its own canonical form.
#[tokio::test]
async fn answers_are_written_in_canonical_form() {
    let world = World::new().await;
    let mut item = note("tea \u{1F375} \"quoted\" \\ é", &["ü", "\u{10000}", "\u{ffff}"]);
    item["content"]["structured"] = json!({"b": 1.5, "a": [1, 0.001, 100000000000i64], "\u{e9}": null});
    item["extensions"] = json!({"example.app": {"z": 1, "a": {}}});
    world.capture(&[item]).await;
    let mut draft = world.draft(&agent(2));
    draft["trust_level"] = json!(4);
    let grant = world.issue(&draft).await;
    let token = world.token(&agent(2), &grant).await;
    let answer = world.query(&agent(2), &token, &json!({"query": "tea"})).await;
    assert_eq!(strict::canonical(&answer.body).unwrap(), answer.bytes);
    oap_memory::evidence::answer(&answer.clone().ok(), &world.document()).unwrap();
    world.clock.advance(Duration::from_secs(1));
}

/// The suite's manifest has exactly four things that the schema forbids, and is valid without them.
#[tokio::test]
async fn the_suites_manifest_differs_in_four_places() {
    let tool_manifest = oap_gateway::system::config::ToolManifest::Suite;
    let config = oap_gateway::Config { tool_manifest, ..oap_gateway::Config::default() };
    let world = World::with(1, config).await;
    let mut tool = world.raw("GET", "/.well-known/oap-tool.json", &[], None).await.ok();
    let memory = world.raw("GET", "/.well-known/oap-memory.json", &[], None).await.ok();
    check::tool(&tool, &memory, &world.document()).unwrap();
    let strict = World::new().await.raw("GET", "/.well-known/oap-tool.json", &[], None).await.ok();
    assert_eq!(tool["endpoints"]["audit"], "/oap/audit");
    assert_eq!(tool["endpoints"]["receipt_verify"], format!("{ORIGIN}/oap/receipt/verify"));
    tool["endpoints"]["audit"] = strict["endpoints"]["audit"].clone();
    tool["endpoints"].as_object_mut().unwrap().remove("receipt_verify").unwrap();
    assert!(tool.as_object_mut().unwrap().remove("accountability").is_some());
    assert!(tool.as_object_mut().unwrap().remove("sybil_resistance").is_some());
    assert_eq!(tool, strict);
}

/// A receipt is confirmed to whoever holds it, and nothing else is told about it.
#[tokio::test]
async fn only_whole_receipts_are_confirmed() {
    let world = World::new().await;
    let envelope = describe(&world);
    invoke(&world, &envelope).await.ok();
    let log = world.raw("GET", "/oap/audit", &[], None).await.ok();
    let receipt = log["receipts"].as_array().unwrap().last().unwrap().clone();
    let verify = async |receipt: &Value| world.raw("POST", "/oap/receipt/verify", &[], Some(receipt)).await;
    assert_eq!(verify(&receipt).await.ok()["receipt_id"], receipt["receipt_id"]);
    let changed = |change: &dyn Fn(&mut Value)| {
        let mut other = receipt.clone();
        change(&mut other);
        other
    };
    let unknown =
        verify(&changed(&|r| r["receipt_id"] = json!("urn:oap:receipt:01M7YSCNYMS8E27HX54GMC7CC3")))
            .await
            .refused(404, "not_found");
    for forged in [
        changed(&|r| r["agent_did"] = json!("did:web:attacker.example")),
        changed(&|r| r["more"] = json!(1)),
        changed(&|r| drop(r.as_object_mut().unwrap().remove("timestamp"))),
        changed(&|r| r["signatures"][0]["value"] = json!("AAAA")),
        changed(&|r| {
            let another = json!({"by": "did:web:attacker.example#key-1", "alg": "EdDSA", "value": "AAAA"});
            r["signatures"].as_array_mut().unwrap().push(another);
        }),
    ] {
        assert_eq!(
            verify(&forged).await.refused(404, "not_found")["message"],
            unknown["message"],
            "{forged}"
        );
    }
    for none in [
        changed(&|r| r["signatures"] = json!([])),
        changed(&|r| drop(r.as_object_mut().unwrap().remove("signatures"))),
        json!({"receipt_id": "forged-1", "signature": "AAAA"}),
        json!([]),
    ] {
        verify(&none).await.refused(400, "invalid_input");
    }
}

/// A candidate is served and not claimed; a receipt is both, until its time is over; a bad report changes nothing.
#[tokio::test]
async fn conformance_is_attested_and_published() {
    let tool_manifest = oap_gateway::system::config::ToolManifest::Suite;
    let config = oap_gateway::Config { tool_manifest, ..oap_gateway::Config::default() };
    let world = World::with(1, config).await;
    let get = async |path: &str| world.raw("GET", path, &[], None).await;
    let attest = async |body: Value| world.owner("POST", "/oap/owner/attest", Some(&body)).await;
    get("/oap-conformance-receipt.json").await.refused(404, "not_found");
    let candidate = attest(json!({"levels": ["L0"]})).await.ok();
    assert_eq!(get("/oap-conformance-receipt.json").await.ok(), candidate);
    assert!(get("/.well-known/oap-tool.json").await.ok().get("conformance").is_none());
    let mut report = json!({
        "suite": "oap-conformance-test-suite", "target": ORIGIN, "fixtures_hash": oap_identity::Hash::of(b""),
        "results": [{"name": "manifest-discovery", "file": "lifecycle.test.js", "passed": false}],
    });
    let refused = attest(json!({"levels": ["L0"], "report": report})).await.refused(400, "invalid_input");
    assert!(refused["message"].as_str().unwrap().contains("lifecycle.test.js"), "{refused}");
    assert_eq!(get("/oap-conformance-receipt.json").await.ok(), candidate);
    report["results"][0]["passed"] = json!(true);
    let receipt = attest(json!({"levels": ["L0"], "report": report})).await.ok();
    valid("oap-conformance-receipt.schema.json", &receipt);
    let previous = oap_identity::Hash::of_canonical(&candidate).unwrap();
    assert_eq!(receipt["previous_receipt_hash"], previous.to_string());
    assert_eq!(get("/oap-conformance-receipt.json").await.ok(), receipt);
    let tool = get("/.well-known/oap-tool.json").await.ok();
    assert_eq!(tool["conformance"]["claimed_levels"], json!(["L0"]));
    let memory = get("/.well-known/oap-memory.json").await.ok();
    check::tool(&tool, &memory, &world.document()).unwrap();
    let own = world.owner("POST", "/oap/owner/witness", Some(&receipt)).await;
    own.refused(409, "conflict");
    world
        .raw("POST", "/oap/owner/attest", &[], Some(&json!({"levels": ["L0"]})))
        .await
        .refused(401, "auth_required");
    world.clock.advance(Duration::from_secs(90 * 86_400));
    get("/oap-conformance-receipt.json").await.refused(404, "not_found");
}

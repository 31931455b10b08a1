//! `/mcp` under a grant: a grantee's agent has the view of its grant, and nothing else.

pub(crate) mod graphs;

use crate::common::*;
use crate::twins::*;
use oap_gateway::http::App;
use oap_gateway::http::front::Deadlines;
use oap_gateway::mcp::{MAX_GRANTED, Turns};
use oap_gateway::state::refusals::MAX_FAILED;
use oap_grants::dpop;
use oap_identity::random::Seeded;
use oap_identity::{Hash, Signer};
use proptest::prelude::*;
use serde_json::{Value, json};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

static PROOFS: AtomicU64 = AtomicU64::new(0);

/// A fresh proof for `/mcp`.
fn proof(world: &World, by: &Signer, token: &str) -> String {
    let url = world.gateway.url("/mcp");
    let target = dpop::Request { method: "POST", url: &url };
    let random = Seeded::new(5_000_000 + PROOFS.fetch_add(1, Ordering::SeqCst));
    dpop::prove(by, target, token, world.now(), &random).unwrap()
}

/// A message with a token and this proof.
async fn sent(world: &World, token: &str, proof: &str, message: &Value) -> Answer {
    let authorization = format!("DPoP {token}");
    let headers = [
        ("authorization", authorization.as_str()),
        ("dpop", proof),
        ("accept", "application/json, text/event-stream"),
        ("mcp-protocol-version", "2025-06-18"),
    ];
    world.raw("POST", "/mcp", &headers, Some(message)).await
}

fn request(method: &str, params: Value) -> Value {
    json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params})
}

/// A message of a grantee.
async fn says(world: &World, by: &Signer, token: &str, method: &str, params: Value) -> Answer {
    sent(world, token, &proof(world, by, token), &request(method, params)).await
}

/// A call of a tool.
pub(crate) async fn calls(world: &World, by: &Signer, token: &str, tool: &str, arguments: Value) -> Answer {
    says(world, by, token, "tools/call", json!({"name": tool, "arguments": arguments})).await
}

/// What a tool answers for programs.
#[track_caller]
fn told(answer: Answer) -> Value {
    let answer = answer.ok();
    assert!(answer["result"]["isError"] != true && answer["result"].is_object(), "{answer}");
    answer["result"]["structuredContent"].clone()
}

/// A grant of what has a label, and its token.
async fn granted(world: &World, grantee: &Signer, label: &str, more: Value) -> (Value, String) {
    let mut draft = world.draft(grantee);
    draft["filter"] = json!({"labels_any": [label]});
    for (name, value) in more.as_object().unwrap() {
        draft[name] = value.clone();
    }
    let grant = world.issue(&draft).await;
    let token = world.token(grantee, &grant).await;
    (grant, token)
}

/// The receipts of queries that name a grantee.
async fn queries(world: &World, grantee: &Signer) -> Vec<Value> {
    let path = format!("/oap/audit?grantee={}&limit=1000", grantee.did());
    let receipts = world.owner("GET", &path, None).await.ok()["receipts"].clone();
    let receipts = receipts.as_array().unwrap().clone();
    receipts.into_iter().filter(|receipt| receipt["action_id"] == "memory.query").collect()
}

#[tokio::test]
async fn three_tools_answer_as_the_query_endpoint_does() {
    let world = World::new().await;
    let shown =
        world.capture(&[note("tea </memory-item> is green", &["a"]), note("tea in Lisbon", &["a"])]).await;
    world.capture(&[note("tea is secret", &["b"])]).await;
    let grantee = agent(2);
    let (_, token) = granted(&world, &grantee, "a", json!({})).await;

    let hello = json!({"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}});
    let hello = says(&world, &grantee, &token, "initialize", hello).await.ok();
    let capabilities = hello["result"]["capabilities"].as_object().unwrap();
    assert_eq!(capabilities.keys().collect::<Vec<_>>(), ["tools"]);
    let tools = says(&world, &grantee, &token, "tools/list", json!({})).await.ok();
    let tools = tools["result"]["tools"].as_array().unwrap().clone();
    let names: Vec<&str> = tools.iter().map(|tool| tool["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["memory_recall", "memory_query", "memory_explain"]);
    for tool in &tools {
        assert!(tool["annotations"]["readOnlyHint"] == true && tool["title"].is_string(), "{tool}");
    }
    // Nothing of that is recorded as an answer, or costs anything.
    assert_eq!(queries(&world, &grantee).await.len(), 0);

    let mut over_http = world.query(&grantee, &token, &json!({"query": "tea"})).await.ok();
    let answer = calls(&world, &grantee, &token, "memory_recall", json!({"query": "tea"})).await;
    let text = answer.body["result"]["content"][0]["text"].as_str().unwrap().to_owned();
    assert_eq!(
        (text.matches("<memory-item ").count(), text.matches("</memory-item>").count()),
        (2, 2),
        "{text}"
    );
    let mut over_mcp = told(answer);
    assert_eq!(over_mcp["items"], over_http["items"]);
    // The schema that is listed is that of the answer.
    assert!(jsonschema::is_valid(&tools[0]["outputSchema"], &over_mcp));
    for answer in [&mut over_http, &mut over_mcp] {
        mask(answer);
        answer["request_id"] = json!("");
        // The request's own name is in it.
        blank(&mut answer["receipt"]["input_hash"]);
    }
    assert_eq!(over_mcp, over_http);

    let listed = told(calls(&world, &grantee, &token, "memory.query", json!({"max_results": 1})).await);
    assert_eq!(ids(&listed).len(), 1);
    let next = json!({"max_results": 1, "cursor": listed["next_cursor"]});
    let next = told(calls(&world, &grantee, &token, "memory_query", next).await);
    assert_ne!(ids(&next), ids(&listed));
    let one = told(calls(&world, &grantee, &token, "memory_explain", json!({"item_id": shown[1]})).await);
    assert_eq!(ids(&one), [shown[1].clone()]);
    assert!(one["items"][0]["integrity"]["chain"].is_array(), "{one}");
    // The receipt says which item was asked for, without a member that a query does not have.
    let hashed = json!({
        "query": "", "max_results": 1, "include_embeddings": false, "integrity": "full", "item_id": shown[1],
        "request_id": one["request_id"],
    });
    assert_eq!(one["receipt"]["input_hash"], Hash::of_canonical(&hashed).unwrap().to_string());
    // One over HTTP and four over MCP, each in the owner's log.
    assert_eq!(queries(&world, &grantee).await.len(), 5);
    world.chains_hold().await;
}

#[tokio::test]
async fn what_the_owners_agents_have_is_not_there() {
    let world = World::new().await;
    let shown = world.capture(&[note("tea", &["a"])]).await.remove(0);
    let grantee = agent(2);
    let (_, token) = granted(&world, &grantee, "a", json!({})).await;
    let never = calls(&world, &grantee, &token, "memory_of_all", json!({})).await;
    for tool in ["learn", "correct", "forget", "link", "diff", "status", "compact"] {
        for name in [format!("memory_{tool}"), format!("memory.{tool}")] {
            let arguments = json!({"item_id": shown, "content": "x", "since": "2026-01-01T00:00:00Z"});
            let refused = calls(&world, &grantee, &token, &name, arguments).await;
            assert_eq!((refused.status, &refused.bytes), (never.status, &never.bytes), "{name}");
            assert_eq!(refused.body["error"]["code"], -32602);
        }
        // Refusals are counted, and time lets go of them.
        world.clock.advance(Duration::from_secs(61));
    }
    for (method, params) in [
        ("resources/read", json!({"uri": "memory://status"})),
        ("resources/read", json!({"uri": format!("memory://facts/{shown}")})),
        ("prompts/get", json!({"name": "review"})),
    ] {
        let refused = says(&world, &grantee, &token, method, params).await;
        assert!(refused.body["error"]["message"].is_string() && !refused.body.to_string().contains("tea"));
    }
    for (method, member) in [("resources/list", "resources"), ("prompts/list", "prompts")] {
        let listed = says(&world, &grantee, &token, method, json!({})).await;
        assert!(listed.body["result"][member].as_array().is_none_or(Vec::is_empty), "{}", listed.body);
    }
    // Nothing was written, corrected or taken back.
    let items = world.owner("GET", "/oap/owner/items", None).await.ok();
    assert_eq!((items["items"].as_array().unwrap().len(), &items["items"][0]["version"]), (1, &json!(1)));
}

#[tokio::test]
async fn what_is_hidden_is_nowhere() {
    let world = World::new().await;
    world.capture(&[note("tea", &["project:x"])]).await;
    let hidden = world.capture(&[note("gin", &["project:y"]), note("rum", &["project:y"])]).await;
    world.owner("POST", "/oap/data/delete", Some(&json!({"items": [hidden[1]]}))).await.ok();
    let grantee = agent(2);
    let (_, token) = granted(&world, &grantee, "project:x", json!({})).await;
    let masked = |answer: Answer| {
        let length = answer.bytes.len();
        let mut body = answer.ok();
        mask(&mut body);
        let told = &mut body["result"]["structuredContent"];
        (told["request_id"], told["receipt"]["input_hash"]) = (json!(""), json!(""));
        // Texts of the answer are of the same length, whatever their fresh values.
        (length, body)
    };
    let never = "mem_01J9V8B7H1ZK4D2A0M9R8F0KQX";
    let nowhere = masked(calls(&world, &grantee, &token, "memory_explain", json!({"item_id": never})).await);
    assert_eq!(nowhere.1["result"]["structuredContent"]["items"], json!([]));
    for id in &hidden {
        let answer = masked(calls(&world, &grantee, &token, "memory_explain", json!({"item_id": id})).await);
        assert_eq!(answer, nowhere);
    }
    // A label is not asked for by its beginning, and an item by no part of its id.
    for labels in [["project:"], ["project"], ["project:y"], [""]] {
        let found =
            told(calls(&world, &grantee, &token, "memory_query", json!({"labels_any": labels})).await);
        assert_eq!(found["items"], json!([]), "{labels:?}");
    }
    let mut refusals = [never, &hidden[0]].map(|id| id[..12].to_owned()).to_vec();
    refusals.push("project:y".to_owned());
    let mut said = Vec::new();
    for id in refusals {
        said.push(calls(&world, &grantee, &token, "memory_explain", json!({"item_id": id})).await.bytes);
    }
    assert!(said.windows(2).all(|two| two[0] == two[1]));
    let found = told(calls(&world, &grantee, &token, "memory_recall", json!({"query": "gin rum"})).await);
    assert_eq!(found["items"], json!([]));
}

#[tokio::test]
async fn a_credential_is_good_once_for_its_grant_and_while_that_is_in_force() {
    let world = World::new().await;
    world.capture(&[note("tea", &["a"]), note("gin", &["b"])]).await;
    let (grantee, other) = (agent(2), agent(3));
    let (grant, token) = granted(&world, &grantee, "a", json!({})).await;
    let (_, others) = granted(&world, &other, "b", json!({})).await;
    let list = request("tools/call", json!({"name": "memory_query", "arguments": {}}));

    // A proof is good once: for an answer, and for what is none.
    let once = proof(&world, &grantee, &token);
    assert_eq!(texts(&told(sent(&world, &token, &once, &list).await)), ["tea"]);
    sent(&world, &token, &once, &list).await.refused(401, "auth_required");
    let once = proof(&world, &grantee, &token);
    sent(&world, &token, &once, &request("tools/list", json!({}))).await.ok();
    sent(&world, &token, &once, &list).await.refused(401, "auth_required");
    // Neither one of another address, nor another's, nor another token's, nor none.
    let url = world.gateway.url("/oap/memory/query");
    let target = dpop::Request { method: "POST", url: &url };
    let elsewhere = dpop::prove(&grantee, target, &token, world.now(), &Seeded::new(77)).unwrap();
    let wrong = [elsewhere, proof(&world, &other, &token), proof(&world, &grantee, &others), String::new()];
    for wrong in wrong {
        sent(&world, &token, &wrong, &list).await.refused(401, "auth_required");
    }
    sent(&world, &others, &proof(&world, &grantee, &others), &list).await.refused(401, "auth_required");
    // Another's token shows another's view.
    assert_eq!(texts(&told(sent(&world, &others, &proof(&world, &other, &others), &list).await)), ["gin"]);
    // With an agent's key beside it, it is nobody's.
    let (authorization, fresh) = (format!("DPoP {token}"), proof(&world, &grantee, &token));
    let both = [("authorization", authorization.as_str()), ("dpop", &fresh), ("x-api-key", "oapk_x")];
    world.raw("POST", "/mcp", &both, Some(&list)).await.refused(401, "auth_required");
    // A page in a browser is nobody's agent.
    let fresh = proof(&world, &grantee, &token);
    let page = [
        ("authorization", authorization.as_str()),
        ("dpop", &fresh),
        ("accept", "application/json, text/event-stream"),
        ("origin", "https://page.example"),
    ];
    assert_eq!(world.raw("POST", "/mcp", &page, Some(&list)).await.status, 403);
    // It is no agent's credential.
    let call = json!({"tool": "memory_query", "arguments": {}});
    let fresh = proof(&world, &grantee, &token);
    let headers = [("authorization", authorization.as_str()), ("dpop", fresh.as_str())];
    world.raw("POST", "/oap/agent/call", &headers, Some(&call)).await.refused(401, "auth_required");

    let path = format!("/oap/owner/grants/{}/revoke", grant["grant_id"].as_str().unwrap());
    world.owner("POST", &path, Some(&json!({}))).await.ok();
    let before = queries(&world, &grantee).await.len();
    let mcp = calls(&world, &grantee, &token, "memory_query", json!({})).await;
    let http = world.query(&grantee, &token, &json!({})).await;
    assert_eq!((http.status.as_u16(), mcp.status.as_u16()), (403, 200));
    let refused = &mcp.body["result"];
    assert_eq!((&refused["isError"], &refused["content"][0]["text"]), (&json!(true), &http.body["message"]));
    assert_eq!(refused["_meta"]["dev.oap-memory/code"], http.body["error"]);
    // Both refusals are in the owner's log.
    assert_eq!(queries(&world, &grantee).await.len(), before + 2);
}

/// A grantee with a token, and the turns of grants.
async fn with_turns() -> (World, Signer, String, Turns) {
    let mut world = World::new().await;
    world.capture(&[note("tea", &["a"])]).await;
    let grantee = agent(2);
    let (_, token) = granted(&world, &grantee, "a", json!({})).await;
    let long = Duration::from_secs(600);
    let deadlines = Deadlines { request: long, turn: long, ..Deadlines::default() };
    let app = App::within(world.gateway.clone(), deadlines);
    let turns = app.turns_of_grants();
    world.router = app.router();
    (world, grantee, token, turns)
}

/// A call takes several times the memory of its answer: beyond so many at once the next one waits, and has not begun.
#[tokio::test]
async fn beyond_the_turns_of_grants_a_call_waits() {
    let (world, grantee, token, turns) = with_turns().await;
    let mut taken = Vec::new();
    for _ in 0..MAX_GRANTED {
        taken.push(turns.take().await);
    }
    let mut waits = Box::pin(calls(&world, &grantee, &token, "memory_query", json!({})));
    let recorded = tokio::select! {
        biased;
        _ = &mut waits => None,
        recorded = queries(&world, &grantee) => Some(recorded.len()),
    };
    assert_eq!(recorded, Some(0));
    // What asks for no tool does not wait, and neither do the owner's agents and the query endpoint.
    says(&world, &grantee, &token, "tools/list", json!({})).await.ok();
    world.query(&grantee, &token, &json!({})).await.ok();
    taken.pop();
    assert_eq!(texts(&told(waits.await)), ["tea"]);
    assert!(turns.take().await.is_some());
}

/// Who waits in vain for what others have taken has not failed, however often: what else it asks for is answered.
#[tokio::test]
async fn who_waits_in_vain_for_a_turn_has_not_failed() {
    let (mut world, grantee, token, _) = with_turns().await;
    let (long, short) = (Duration::from_secs(600), Duration::from_millis(1));
    let deadlines = Deadlines { request: long, turn: short, ..Deadlines::default() };
    let app = App::within(world.gateway.clone(), deadlines);
    let turns = app.turns_of_grants();
    world.router = app.router();
    let mut taken = Vec::new();
    for _ in 0..MAX_GRANTED {
        taken.push(turns.take().await);
    }
    for _ in 0..=MAX_FAILED {
        calls(&world, &grantee, &token, "memory_query", json!({})).await.refused(503, "maintenance");
    }
    world.query(&grantee, &token, &json!({})).await.ok();
    taken.clear();
    assert_eq!(queries(&world, &grantee).await.len(), 1);
}

/// Who hangs up gives no turn back: what it asked for is worked on all the same.
#[tokio::test]
async fn a_call_keeps_its_turn_until_it_is_done() {
    let (world, grantee, token, turns) = with_turns().await;
    let mut taken = Vec::new();
    for _ in 1..MAX_GRANTED {
        taken.push(turns.take().await);
    }
    // Its receipt waits.
    world.clock.gate.close();
    let mut call = Box::pin(calls(&world, &grantee, &token, "memory_query", json!({})));
    while !world.clock.gate.waits() {
        assert!(tokio::time::timeout(Duration::from_millis(5), &mut call).await.is_err());
    }
    drop(call);
    assert!(tokio::time::timeout(Duration::from_millis(300), turns.take()).await.is_err());
    world.clock.gate.open();
    assert!(turns.take().await.is_some());
}

#[tokio::test]
async fn budgets_and_limits_are_those_of_the_query_endpoint() {
    let world = World::new().await;
    world.capture(&[note("tea", &["a"]), note("tea too", &["a"]), note("tea again", &["a"])]).await;
    let grantee = agent(2);
    let limits = json!({"budget": {"queries": 2}, "max_items": 2, "purpose_codes": ["support"]});
    let (_, token) = granted(&world, &grantee, "a", limits).await;
    let other = calls(&world, &grantee, &token, "memory_query", json!({"purpose": "gossip"})).await;
    assert_eq!(other.body["result"]["isError"], true, "{}", other.body);
    assert_eq!(texts(&told(calls(&world, &grantee, &token, "memory_query", json!({})).await)).len(), 2);
    assert_eq!(world.query(&grantee, &token, &json!({})).await.ok()["items"].as_array().unwrap().len(), 2);
    for tool in ["memory_query", "memory_explain"] {
        let arguments = if tool == "memory_query" {
            json!({})
        } else {
            json!({"item_id": "mem_01J9V8B7H1ZK4D2A0M9R8F0KQX"})
        };
        let spent = calls(&world, &grantee, &token, tool, arguments).await;
        assert_eq!(
            spent.body["result"]["_meta"]["dev.oap-memory/code"], "budget_exhausted",
            "{}",
            spent.body
        );
    }
    world.query(&grantee, &token, &json!({})).await.refused(429, "budget_exhausted");
    // What is refused too often is not judged any more, by whatever door.
    let mut ended = None;
    for number in 0..400 {
        let answer = calls(&world, &grantee, &token, "memory_status", json!({})).await;
        if answer.status == 429 {
            ended = Some(number);
            break;
        }
    }
    assert!(ended.is_some());
    world.query(&grantee, &token, &json!({})).await.refused(429, "rate_limited");
}

/// What has no receipt and costs nothing leaves a used proof: it is counted, under a grant that ended too.
#[tokio::test]
async fn what_asks_for_no_tool_is_bounded() {
    let world = World::new().await;
    let grantee = agent(2);
    let (grant, token) = granted(&world, &grantee, "a", json!({})).await;
    let path = format!("/oap/owner/grants/{}/revoke", grant["grant_id"].as_str().unwrap());
    world.owner("POST", &path, Some(&json!({}))).await.ok();
    let mut ended = None;
    for number in 0..400 {
        if says(&world, &grantee, &token, "tools/list", json!({})).await.status == 429 {
            ended = Some(number);
            break;
        }
    }
    assert!(ended.is_some());
}

/// A client is told both ways in: an agent's key, and the token of a grant.
#[tokio::test]
async fn a_refused_token_names_its_scheme() {
    let world = World::new().await;
    let grantee = agent(2);
    let (_, token) = granted(&world, &grantee, "a", json!({})).await;
    let request = axum::http::Request::post("/mcp").header("authorization", format!("DPoP {token}"));
    let request = request.body(axum::body::Body::from("{}")).unwrap();
    let response = tower::ServiceExt::oneshot(world.router.clone(), request).await.unwrap();
    assert_eq!(response.status(), 401);
    let told: Vec<_> = response.headers().get_all("www-authenticate").iter().collect();
    assert_eq!(told, ["Bearer", "DPoP algs=\"EdDSA\""]);
}

/// An item of the view, or one that is hidden from it.
fn words() -> impl Strategy<Value = String> {
    prop::collection::vec(prop::sample::select(&["tea", "gin", "lisbon", "budget"][..]), 1..4)
        .prop_map(|words| words.join(" "))
}

/// Everything that a grantee's agent is told, fresh values aside.
async fn observed(shown: &[String], hidden: &[(String, u8)], side: u64) -> Vec<(u16, usize, Value)> {
    let twin = Side::new().await;
    let world = &twin.world;
    let mut seen = Vec::new();
    for (number, text) in shown.iter().enumerate() {
        let mut item = note(text, &["a"]);
        item["provenance"] =
            json!({"captured_at": format!("2026-04-01T{number:02}:00:00Z"), "confidence": 0.9});
        seen.push(twin.capture(100 + number as u64, &item).await);
    }
    let mut secrets = Vec::new();
    for (number, (text, why)) in hidden.iter().enumerate() {
        let mut item = note(text, &["a"]);
        item["provenance"] =
            json!({"captured_at": format!("2026-04-02T{number:02}:00:00Z"), "confidence": 0.9});
        match why {
            0 => item["labels"] = json!(["b"]),
            1 => item["sensitivity"] = json!("restricted"),
            2 => item["exportable"] = json!(false),
            _ => item["scope_id"] = json!("work"),
        }
        secrets.push(twin.capture(10_000 * side + number as u64, &item).await);
    }
    twin.random.set(1);
    let grantee = agent(2);
    let (_, token) = granted(world, &grantee, "a", json!({"max_items": 3})).await;
    let never = "mem_01J9V8B7H1ZK4D2A0M9R8F0KQX".to_owned();
    let hidden_one = secrets.first().unwrap_or(&never);
    let mut asked = vec![
        ("tools/list", json!({})),
        ("tools/call", json!({"name": "memory_query", "arguments": {}})),
        ("tools/call", json!({"name": "memory_query", "arguments": {"labels_any": ["b"]}})),
        (
            "tools/call",
            json!({"name": "memory_query", "arguments": {"min_confidence": 0.95, "integrity": "chain"}}),
        ),
        ("tools/call", json!({"name": "memory_explain", "arguments": {"item_id": hidden_one}})),
        ("tools/call", json!({"name": "memory_forget", "arguments": {"item_id": hidden_one}})),
        ("tools/call", json!({"name": "memory_recall", "arguments": {"query": "tea", "max_results": 0}})),
    ];
    for word in ["tea", "gin", "lisbon budget"] {
        asked.push((
            "tools/call",
            json!({"name": "memory_recall", "arguments": {"query": word, "max_results": 2}}),
        ));
    }
    for item in &seen {
        asked.push(("tools/call", json!({"name": "memory_explain", "arguments": {"item_id": item}})));
    }
    for sparql in graphs::CURIOUS {
        asked.push(("tools/call", json!({"name": "memory_query", "arguments": {"sparql": sparql}})));
    }
    let mut told = Vec::new();
    for (method, params) in asked {
        let answer = says(world, &grantee, &token, method, params).await;
        let (status, length, mut body) = (answer.status.as_u16(), answer.bytes.len(), answer.body);
        graphs::as_text(&mut body);
        mask(&mut body);
        let structured = &mut body["result"]["structuredContent"];
        if structured.is_object() {
            structured["request_id"] = json!("");
            // The request's own name, and the item that it asked for, are in it.
            blank(&mut structured["receipt"]["input_hash"]);
        }
        told.push((status, length, body));
    }
    told
}

fn cases() -> u32 {
    std::env::var("OAP_CASES").ok().and_then(|n| n.parse().ok()).unwrap_or(24).min(400)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(), failure_persistence: None, ..ProptestConfig::default() })]

    /// *Non-interference* over MCP: two stores with the same view and whatever else, and the same is told.
    #[test]
    fn what_is_told_is_a_function_of_the_view(
        shown in prop::collection::vec(words(), 1..4),
        one in prop::collection::vec((words(), 0..4_u8), 0..4),
        two in prop::collection::vec((words(), 0..4_u8), 0..4),
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let (left, right) = runtime.block_on(async {
            (observed(&shown, &one, 1).await, observed(&shown, &two, 2).await)
        });
        prop_assert_eq!(left.len(), right.len());
        for (number, (l, r)) in left.iter().zip(&right).enumerate() {
            prop_assert!(l == r, "{}: {}", number, difference(&l.2, &r.2, String::new()));
        }
    }
}

/// The property would say nothing if nothing were told.
#[tokio::test]
async fn what_is_in_the_view_is_told() {
    let one = observed(&["tea".to_owned()], &[], 1).await;
    assert_ne!(one, observed(&["tea".to_owned(), "gin".to_owned()], &[], 1).await);
    assert_eq!(one[1].2["result"]["structuredContent"]["items"].as_array().unwrap().len(), 1);
    let graphed = one.iter().filter(|told| told.2["result"]["structuredContent"]["sparql"].is_string());
    assert_eq!(graphed.count(), graphs::CURIOUS.len());
}

/// Everything that the owner's agents are told.
async fn agents_are_told(world: &World, items: &[String]) -> Vec<Value> {
    let mut asked = vec![("boss", "memory_compact", json!({"min_confidence": 0.9}))];
    let everything = "SELECT ?s ?p ?o { ?s ?p ?o } ORDER BY ?s ?p ?o";
    for who in ["scout", "boss"] {
        asked.push((who, "memory_status", json!({})));
        asked.push((who, "memory_query", json!({"limit": 100})));
        asked.push((who, "memory_diff", json!({"since": "2026-01-01T00:00:00Z", "limit": 100})));
        asked.push((who, "memory_query", json!({"sparql": everything})));
        for word in ["tea", "gin", "lisbon budget"] {
            asked.push((who, "memory_recall", json!({"query": word})));
        }
        asked.extend(items.iter().map(|item| (who, "memory_explain", json!({"item_id": item}))));
    }
    let mut told = Vec::new();
    for (who, tool, arguments) in asked {
        let call = json!({"tool": tool, "arguments": arguments});
        let mut answer = world.owner("POST", &format!("/oap/owner/agents/{who}/call"), Some(&call)).await;
        if let Some(body) = answer.body.as_object_mut() {
            body.remove("request_id");
        }
        told.push(answer.body);
    }
    told
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases().min(24), failure_persistence: None, ..ProptestConfig::default() })]

    /// Whatever a grantee reads, over MCP or the query endpoint, the owner's agents are told the same as before, to the letter.
    #[test]
    fn no_read_of_a_grantees_changes_what_an_agent_sees(
        shown in prop::collection::vec(words(), 1..4),
        noted in prop::collection::vec((words(), prop::sample::select(&["private", "local", "shared"][..])), 0..4),
        reads in prop::collection::vec((0..4_u8, words()), 1..8),
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let world = World::new().await;
            for (name, permission) in [("scout", "memory.write"), ("boss", "memory.admin")] {
                let new = json!({"name": name, "permission": permission});
                world.owner("POST", "/oap/owner/agents", Some(&new)).await.ok();
            }
            let mut items = Vec::new();
            for text in &shown {
                world.clock.advance(Duration::from_millis(1));
                items.extend(world.capture(&[note(text, &["a"])]).await);
            }
            let learns = async |text: &str, scope: &str| {
                world.clock.advance(Duration::from_millis(1));
                let call = json!({"tool": "memory_learn", "arguments": {"content": text, "scope": scope, "tags": ["a"]}});
                let learned = world.owner("POST", "/oap/owner/agents/scout/call", Some(&call)).await.ok();
                learned["structured"]["item_id"].as_str().unwrap().to_owned()
            };
            for (text, scope) in &noted {
                items.push(learns(text, scope).await);
            }
            let grantee = agent(2);
            let (_, token) = granted(&world, &grantee, "a", json!({})).await;
            let before = agents_are_told(&world, &items).await;
            for (which, words) in &reads {
                let mut asked = match which {
                    0 => {
                        world.query(&grantee, &token, &json!({"query": words})).await.ok();
                        Vec::new()
                    }
                    1 => vec![("memory_recall", json!({"query": words}))],
                    2 => vec![("memory_query", json!({"sparql": "ASK { ?s ?p ?o }"}))],
                    _ => items.iter().map(|item| ("memory_explain", json!({"item_id": item}))).collect(),
                };
                for (tool, arguments) in asked.drain(..) {
                    calls(&world, &grantee, &token, tool, arguments).await;
                }
            }
            assert_eq!(agents_are_told(&world, &items).await, before);
            // It would say nothing if nothing were told.
            learns("tea again", "local").await;
            assert_ne!(agents_are_told(&world, &items).await, before);
        });
    }
}

//! Agents that work together (docs/openintent.md): roles and room, an agent's own key, tasks, what they let others read and for how long,
//! the events of entries, guardrails; and who tries to see more.

mod common;

#[path = "coordination/attacks.rs"]
mod attacks;

use axum::body::Body;
use axum::http::Request;
use common::*;
use oap_gateway::service::Deletions;
use oap_grants::dpop;
use oap_identity::Signer;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::time::Duration;

const AGENTS: &str = "/oap/owner/agents";
const NEVER_TASK: &str = "task_01J9V8B7H1ZK4D2A0M9R8F0KQX";
const NEVER_INTENT: &str = "intent_01J9V8B7H1ZK4D2A0M9R8F0KQX";

/// Agents, by name, and their keys.
struct Team {
    world: World,
    keys: BTreeMap<&'static str, String>,
}

impl Team {
    /// A coordinator named `lead`, and workers.
    async fn new(workers: &[&'static str]) -> Self {
        let world = World::new().await;
        let mut keys = BTreeMap::new();
        for (name, role) in
            [("lead", "coordinator")].into_iter().chain(workers.iter().map(|w| (*w, "worker")))
        {
            let new = json!({"name": name, "permission": "memory.write", "role": role});
            let made = world.owner("POST", AGENTS, Some(&new)).await.ok();
            assert_eq!((&made["role"], &made["own_key"]), (&json!(role), &json!(false)));
            keys.insert(name, made["api_key"].as_str().unwrap().to_owned());
        }
        Self { world, keys }
    }

    async fn sends(&self, who: &str, method: &str, path: &str, version: u64, body: Option<&Value>) -> Answer {
        let mut request = Request::builder().method(method).uri(format!("/api/v1{path}"));
        request = request.header("x-api-key", &self.keys[who]).header("if-match", version);
        if body.is_some() {
            request = request.header("content-type", "application/json");
        }
        // Of two changes of one moment nobody can say which is newer.
        self.world.clock.advance(Duration::from_millis(u64::from(method != "GET")));
        let body = body.map(Value::to_string).unwrap_or_default();
        self.world.send(request.body(Body::from(body)).unwrap()).await
    }

    async fn get(&self, who: &str, path: &str) -> Answer {
        self.sends(who, "GET", path, 1, None).await
    }

    async fn post(&self, who: &str, path: &str, body: Value) -> Answer {
        self.sends(who, "POST", path, 1, Some(&body)).await
    }

    async fn patch(&self, who: &str, path: &str, version: u64, body: Value) -> Answer {
        self.sends(who, "PATCH", path, version, Some(&body)).await
    }

    /// An intent of the coordinator's; its id.
    async fn intent(&self, guardrails: Value) -> String {
        id(&self.post("lead", "/intents", json!({"title": "Invoices", "guardrails": guardrails})).await.ok())
    }

    /// A task of it, for a worker; its id.
    async fn task(&self, intent: &str, who: &str, more: Value) -> String {
        let mut new = json!({"intent_id": intent, "name": "count", "assigned_agent": who});
        new.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        id(&self.post("lead", "/tasks", new).await.ok())
    }

    /// An entry of a worker's for a task; its id.
    async fn note(&self, who: &str, task: &str, key: &str, more: Value) -> String {
        let answer = self.post(who, "/memory", noted(task, key, &more)).await;
        id(&answer.ok())
    }

    /// How far a task is now.
    async fn gets(&self, who: &str, task: &str, status: &str) -> Value {
        let path = format!("/tasks/{task}");
        let version = self.get(who, &path).await.ok()["version"].as_u64().unwrap();
        self.patch(who, &path, version, json!({"status": status})).await.ok()
    }

    async fn set(&self, who: &str, change: Value) -> Answer {
        self.world.owner("POST", &format!("{AGENTS}/{who}/set"), Some(&change)).await
    }

    async fn erase(&self, item: &str) {
        self.world.owner("POST", "/oap/data/delete", Some(&json!({"items": [item]}))).await.ok();
    }

    /// The events of an intent or an agent, by name.
    async fn events(&self, who: &str, path: &str) -> Vec<(String, Value)> {
        let events = self.get(who, &format!("{path}/events?limit=1000")).await.ok();
        let named = |event: &Value| {
            // In both vocabularies.
            assert_eq!((&event["type"], &event["data"]), (&event["event_type"], &event["payload"]));
            assert_eq!(event["created_at"], event["timestamp"]);
            (event["type"].as_str().unwrap().to_owned(), event["data"].clone())
        };
        events.as_array().unwrap().iter().map(named).collect()
    }
}

fn id(made: &Value) -> String {
    made["id"].as_str().unwrap().to_owned()
}

fn noted(task: &str, key: &str, more: &Value) -> Value {
    let mut new = json!({"namespace": "job", "key": key, "value": {"of": key}, "scope": {"task_id": task}});
    new.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    new
}

fn names(events: &[(String, Value)]) -> Vec<&str> {
    events.iter().map(|(name, _)| name.as_str()).collect()
}

#[tokio::test]
async fn an_agent_has_the_room_that_the_owner_gives_it() {
    let team = Team::new(&["a"]).await;
    let set = team.set("a", json!({"capacities": {"working": 1, "episodic": 2}})).await.ok();
    assert_eq!(set["capacities"], json!({"working": 1, "episodic": 2, "semantic": 10_000}));
    team.note("a", "t", "w1", json!({})).await;
    let full =
        team.post("a", "/memory", noted("t", "w2", &json!({}))).await.refused(429, "capacity_exceeded");
    assert_eq!((&full["current_count"], &full["max_capacity"]), (&json!(1), &json!(1)));
    let first = team.note("a", "t", "e1", json!({"memory_type": "episodic"})).await;
    team.note("a", "t", "e2", json!({"memory_type": "episodic"})).await;
    team.note("a", "t", "e3", json!({"memory_type": "episodic"})).await;
    team.get("a", &format!("/memory/{first}")).await.refused(404, "not_found");
    let summary = team.get("a", "/agents/a/memory/summary").await.ok();
    assert_eq!((&summary["episodic"]["capacity"], &summary["working"]["capacity"]), (&json!(2), &json!(1)));
    // What stands in a namespace that is pinned counts, and is never evicted.
    team.set("a", json!({"pinned_namespaces": ["job"]})).await.ok();
    let all_pinned = team.post("a", "/memory", noted("t", "e4", &json!({"memory_type": "episodic"}))).await;
    all_pinned.refused(429, "capacity_exceeded");
    for wrong in [json!({"capacities": {"working": 0}}), json!({"capacities": {"semantic": 10_001}})] {
        let refused = team.set("a", wrong).await.refused(400, "invalid_input");
        assert!(refused["message"].as_str().unwrap().starts_with("capacities."), "{refused}");
    }
    // No agent sets its own, or anybody's.
    let change = json!({"role": "coordinator", "capacities": {"working": 100}});
    for header in
        [("x-api-key", team.keys["a"].clone()), ("authorization", format!("Bearer {}", team.keys["a"]))]
    {
        let headers = [(header.0, header.1.as_str())];
        let answer = team.world.raw("POST", &format!("{AGENTS}/a/set"), &headers, Some(&change)).await;
        answer.refused(401, "auth_required");
    }
    let shown = team.world.owner("GET", &format!("{AGENTS}/a"), None).await.ok();
    assert_eq!((&shown["role"], &shown["capacities"]["working"]), (&json!("worker"), &json!(1)));
    // What the owner takes away is gone with the next request.
    team.set("a", json!({"permission": "memory.read"})).await.ok();
    team.post("a", "/memory", noted("t", "w3", &json!({}))).await.refused(403, "policy_block");
}

/// A request as an agent makes it that holds its own key.
struct Held<'a> {
    world: &'a World,
    key: &'a Signer,
}

impl Held<'_> {
    fn proof(&self, method: &str, path: &str, token: Option<&str>) -> String {
        let url = format!("{ORIGIN}{path}");
        let target = dpop::Request { method, url: &url };
        let fresh = self.world.fresh();
        match token {
            Some(token) => dpop::prove(self.key, target, token, self.world.now(), &fresh).unwrap(),
            None => dpop::prove_key(self.key, target, self.world.now(), &fresh).unwrap(),
        }
    }

    async fn with(&self, path: &str, headers: &[(&str, &str)]) -> Answer {
        self.world.raw("GET", path, headers, None).await
    }
}

#[tokio::test]
async fn an_agent_that_holds_its_own_key_proves_it() {
    let world = World::new().await;
    let (key, thief) = (agent(41), agent(42));
    let held = Held { world: &world, key: &key };
    let new = json!({"name": "far", "permission": "memory.write", "did": key.did()});
    let made = world.owner("POST", AGENTS, Some(&new)).await.ok();
    assert_eq!((&made["did"], &made["own_key"]), (&json!(key.did()), &json!(true)));
    let token = made["api_key"].as_str().unwrap().to_owned();
    let path = "/api/v1/memory/namespaces";
    // By the key alone, and by the token that is bound to it.
    let alone = held.proof("GET", path, None);
    held.with(path, &[("dpop", &alone)]).await.ok();
    held.with(path, &[("dpop", &alone)]).await.refused(401, "auth_required");
    let (dpop, bearer) = (format!("DPoP {token}"), format!("Bearer {token}"));
    let bound = held.proof("GET", path, Some(&token));
    held.with(path, &[("authorization", &dpop), ("dpop", &bound)]).await.ok();
    held.with(path, &[("authorization", &dpop), ("dpop", &bound)]).await.refused(401, "auth_required");
    // Who stole the token is nobody: without the key, with another, with a proof that was for something else.
    let by_thief = Held { world: &world, key: &thief }.proof("GET", path, Some(&token));
    let for_no_token = held.proof("GET", path, None);
    let for_token = held.proof("GET", path, Some(&token));
    let elsewhere = held.proof("GET", "/api/v1/memory", Some(&token));
    let other_method = held.proof("POST", path, Some(&token));
    let unknown_key = Held { world: &world, key: &thief }.proof("GET", path, None);
    let other_token = format!("DPoP oapk_{}", "A".repeat(43));
    for headers in [
        vec![("authorization", bearer.as_str())],
        vec![("x-api-key", token.as_str())],
        vec![("authorization", bearer.as_str()), ("dpop", for_token.as_str())],
        vec![("x-api-key", token.as_str()), ("dpop", for_no_token.as_str())],
        vec![("authorization", dpop.as_str())],
        vec![("authorization", dpop.as_str()), ("dpop", by_thief.as_str())],
        vec![("authorization", dpop.as_str()), ("dpop", for_no_token.as_str())],
        vec![("authorization", dpop.as_str()), ("dpop", elsewhere.as_str())],
        vec![("authorization", dpop.as_str()), ("dpop", other_method.as_str())],
        vec![("authorization", other_token.as_str()), ("dpop", for_token.as_str())],
        vec![("dpop", for_token.as_str())],
        vec![("dpop", unknown_key.as_str())],
        vec![("dpop", for_no_token.as_str()), ("dpop", bound.as_str())],
    ] {
        let refused = held.with(path, &headers).await.refused(401, "auth_required");
        assert!(!refused.to_string().contains(&token[5..]), "{refused}");
    }
    // At each of its doors.
    let call = json!({"tool": "memory_status", "arguments": {}});
    let proof = held.proof("POST", "/oap/agent/call", None);
    let told = world.raw("POST", "/oap/agent/call", &[("dpop", &proof)], Some(&call)).await.ok();
    assert_eq!(told["structured"]["agent"], "far");
    let asked = json!({"jsonrpc": "2.0", "id": 1, "method": "ping"});
    let proof = held.proof("POST", "/mcp", Some(&token));
    let headers = [
        ("authorization", dpop.as_str()),
        ("dpop", proof.as_str()),
        ("accept", "application/json, text/event-stream"),
    ];
    world.raw("POST", "/mcp", &headers, Some(&asked)).await.ok();
    // It is an agent, and no owner.
    let proof = held.proof("GET", AGENTS, Some(&token));
    let owned = held.with(AGENTS, &[("authorization", &dpop), ("dpop", &proof)]).await;
    owned.refused(401, "auth_required");
    // A rotation ends the token; a removal ends the key.
    let rotated = world.owner("POST", &format!("{AGENTS}/far/rotate"), None).await.ok();
    let proof = held.proof("GET", path, Some(&token));
    held.with(path, &[("authorization", &dpop), ("dpop", &proof)]).await.refused(401, "auth_required");
    let token = rotated["api_key"].as_str().unwrap();
    let (dpop, proof) = (format!("DPoP {token}"), held.proof("GET", path, Some(token)));
    held.with(path, &[("authorization", &dpop), ("dpop", &proof)]).await.ok();
    world.owner("POST", &format!("{AGENTS}/far/remove"), None).await.ok();
    let proof = held.proof("GET", path, None);
    held.with(path, &[("dpop", &proof)]).await.refused(401, "auth_required");
    // Whose key it was, it stays: nobody else is what it wrote.
    let again = json!({"name": "near", "permission": "memory.write", "did": key.did()});
    world.owner("POST", AGENTS, Some(&again)).await.refused(409, "conflict");
    for did in ["did:web:a.example", "did:key:z6Mk"] {
        let wrong = json!({"name": "near", "permission": "memory.write", "did": did});
        let refused = world.owner("POST", AGENTS, Some(&wrong)).await.refused(400, "invalid_input");
        assert!(refused["message"].as_str().unwrap().starts_with("did: "), "{refused}");
    }
    // An API key of an agent whose key the gateway holds needs no proof, and no proof makes it one.
    let plain = json!({"name": "plain", "permission": "memory.read"});
    let plain = world.owner("POST", AGENTS, Some(&plain)).await.ok();
    let token = plain["api_key"].as_str().unwrap();
    let (dpop, proof) = (format!("DPoP {token}"), held.proof("GET", path, Some(token)));
    held.with(path, &[("authorization", &dpop), ("dpop", &proof)]).await.refused(401, "auth_required");
}

#[tokio::test]
async fn a_coordinator_reads_while_the_task_is_open_and_writes_nothing() {
    let team = Team::new(&["a", "b"]).await;
    let intent = team.intent(json!({})).await;
    let task = team.task(&intent, "a", json!({})).await;
    let work = team.note("a", &task, "progress", json!({"tags": ["x"]})).await;
    let hidden = team.note("a", &task, "secret", json!({"sensitivity": "restricted"})).await;
    let elsewhere = team.note("a", "another", "mine", json!({})).await;
    let learned = team.note("a", "none", "stripe", json!({"memory_type": "episodic"})).await;
    let strange = team.note("b", &task, "forged", json!({})).await;
    for item in [&work, &learned] {
        let path = format!("/memory/{item}");
        assert_eq!(team.get("lead", &path).await.ok(), team.get("a", &path).await.ok());
        team.patch("lead", &path, 1, json!({"value": {}})).await.refused(403, "policy_block");
        team.sends("lead", "DELETE", &path, 1, None).await.refused(403, "policy_block");
        team.get("b", &path).await.refused(404, "not_found");
    }
    // Not what its author keeps to itself, what was written for something else, nor what somebody writes who is not on the task.
    for item in [&hidden, &elsewhere, &strange] {
        let path = format!("/memory/{item}");
        team.get("lead", &path).await.refused(404, "not_found");
        team.patch("lead", &path, 1, json!({"value": {}})).await.refused(404, "not_found");
        team.sends("lead", "DELETE", &path, 1, None).await.refused(404, "not_found");
    }
    let found = team.get("lead", &format!("/memory?scope.task_id={task}&memory_type=working")).await.ok();
    assert_eq!((&found["total"], found["entries"][0]["key"].as_str()), (&json!(1), Some("progress")));
    let listed = team.get("lead", "/agents/a/memory").await.ok();
    assert_eq!(listed.as_array().unwrap().len(), 2, "{listed}");
    team.sends("lead", "DELETE", &format!("/memory/batch?scope.task_id={task}"), 1, None).await.ok();
    team.get("a", &format!("/memory/{work}")).await.ok();
    // Another's summary it is not told, nor the memory tools' side of it.
    team.get("lead", "/agents/a/memory/summary").await.refused(404, "not_found");
    let call = json!({"tool": "memory_query", "arguments": {}});
    let told = team.world.owner("POST", &format!("{AGENTS}/lead/call"), Some(&call)).await.ok();
    assert_eq!(told["structured"]["matched"], 0);
    // What it was given is in its receipts.
    let given = team.world.owner("GET", &format!("{AGENTS}/lead/injected?limit=100"), None).await.ok();
    let said = given.to_string();
    assert!(said.contains(&work) && !said.contains(&hidden) && !said.contains(&strange), "{given}");
    // Without the role it reads nothing, and with it again.
    team.set("lead", json!({"role": "worker"})).await.ok();
    team.get("lead", &format!("/memory/{work}")).await.refused(404, "not_found");
    team.set("lead", json!({"role": "coordinator"})).await.ok();
    team.get("lead", &format!("/memory/{work}")).await.ok();
    // The end of the task ends it.
    team.gets("a", &task, "completed").await;
    for item in [&work, &learned, &hidden] {
        team.get("lead", &format!("/memory/{item}")).await.refused(404, "not_found");
    }
    team.get("a", &format!("/memory/{work}")).await.refused(404, "not_found");
    team.get("a", &format!("/memory/{learned}")).await.ok();
    team.get("a", &format!("/memory/{elsewhere}")).await.ok();
    team.get("b", &format!("/memory/{strange}")).await.ok();
    team.world.chains_hold().await;
}

#[tokio::test]
async fn with_its_end_a_task_is_archived_once() {
    let team = Team::new(&["a"]).await;
    let intent = team.intent(json!({})).await;
    let task = team.task(&intent, "a", json!({})).await;
    let plain = team.note("a", &task, "plain", json!({"tags": ["z", "b"]})).await;
    let guarded = team.note("a", &task, "guarded", json!({"sensitivity": "confidential"})).await;
    let secret = team.note("a", &task, "secret", json!({"sensitivity": "restricted"})).await;
    let lesson = json!({"memory_type": "episodic", "ttl": "task_lifetime"});
    let lesson = team.note("a", &task, "lesson", lesson).await;
    team.gets("a", &task, "running").await;
    let done = team.gets("a", &task, "completed").await;
    assert_eq!((&done["status"], &done["requires_tools"]), (&json!("completed"), &json!([])));
    team.get("a", &format!("/memory/{lesson}")).await.refused(404, "not_found");
    // Over is over.
    let path = format!("/tasks/{task}");
    let over = team.patch("lead", &path, 3, json!({"status": "running"})).await.refused(409, "conflict");
    assert_eq!(over["current"]["status"], "completed");
    team.post("a", "/memory", noted(&task, "late", &json!({}))).await.refused(409, "conflict");
    let log = format!("/intents/{intent}");
    let events = team.events("lead", &log).await;
    let archived: Vec<&Value> =
        events.iter().filter(|(name, _)| name == "memory.archived").map(|(_, d)| d).collect();
    let [archive] = archived.as_slice() else { panic!("{events:?}") };
    assert_eq!(archive["entries_archived"], 2, "{archive}");
    let shown = |item: &str| {
        archive["snapshot"].as_array().unwrap().iter().find(|entry| entry["entry_id"] == item).cloned()
    };
    assert_eq!(
        shown(&plain).unwrap(),
        json!({"entry_id": plain, "namespace": "job", "key": "plain", "tags": ["z", "b"], "value": {"of": "plain"}})
    );
    let guard = shown(&guarded).unwrap();
    assert_eq!((&guard["value_redacted"], guard.get("value")), (&json!(true), None));
    assert!(guard["commitment"].is_string());
    assert_eq!(shown(&secret), None);
    assert!(!json!(events).to_string().contains("\"secret\""), "{events:?}");
    // Its author is told of all of them.
    let own = team.events("a", "/agents/a").await;
    let (_, own) = own.iter().find(|(name, _)| name == "memory.archived").unwrap();
    assert_eq!(own["entries_archived"], 3);
    // What was told has its receipt, and erasure reaches it.
    let given = team.world.owner("GET", &format!("{AGENTS}/lead/injected?limit=1"), None).await.ok();
    assert!(given.to_string().contains(&plain), "{given}");
    team.erase(&plain).await;
    let events = team.events("lead", &log).await;
    let text = json!(events).to_string();
    assert!(!text.contains("\"plain\"") && text.contains("\"erased\":true"), "{text}");
    // What is kept goes with the retention time.
    team.world.clock.advance(Duration::from_secs(31 * 86_400));
    Deletions(&team.world.gateway).sweep().await.unwrap();
    let text = team.get("a", "/agents/a/events").await.ok().to_string();
    assert!(!text.contains("guarded") && !text.contains("\"secret\""), "{text}");
    // So does the intent, with its tasks and its log.
    team.get("lead", &log).await.refused(404, "not_found");
    team.get("lead", &path).await.refused(404, "not_found");
    team.world.chains_hold().await;
}

#[tokio::test]
async fn without_an_archive_what_is_cleared_is_gone() {
    let team = Team::new(&["a"]).await;
    let intent = team.intent(json!({})).await;
    for status in ["failed", "completed"] {
        let task = team.task(&intent, "a", json!({"memory_policy": {"archive_on_completion": false}})).await;
        let item = team.note("a", &task, &format!("gone-{status}"), json!({})).await;
        team.gets("a", &task, status).await;
        team.get("a", &format!("/memory/{item}")).await.refused(404, "not_found");
        let owned = team.world.owner("GET", &format!("/oap/owner/items/{item}"), None).await;
        assert_eq!(owned.ok()["item"]["status"], "erased");
    }
    let task = team.task(&intent, "a", json!({"memory_policy": {"archive_on_completion": false}})).await;
    team.note("a", &task, "gone-cancelled", json!({})).await;
    team.gets("lead", &task, "cancelled").await;
    let text = team.get("lead", &format!("/intents/{intent}/events?limit=1000")).await.ok().to_string();
    assert!(
        !text.contains("gone-") && !text.contains("memory.archived") && text.contains("memory.deleted"),
        "{text}"
    );
    // An intent may ask for the archive.
    let strict = team.intent(json!({"memory_archive_required": true})).await;
    let new = json!({"intent_id": strict, "name": "x", "memory_policy": {"archive_on_completion": false}});
    let refused = team.post("lead", "/tasks", new).await.refused(422, "invalid_input");
    assert!(refused["message"].as_str().unwrap().contains("archive"), "{refused}");
    let task = team.task(&strict, "a", json!({})).await;
    let loosened = json!({"memory_policy": {"archive_on_completion": false}});
    team.patch("lead", &format!("/tasks/{task}"), 1, loosened).await.refused(422, "invalid_input");
}

#[tokio::test]
async fn who_takes_over_reads_on_and_writes_its_own() {
    let team = Team::new(&["a", "b", "c"]).await;
    let intent = team.intent(json!({})).await;
    let task = team.task(&intent, "a", json!({})).await;
    let first = team.note("a", &task, "progress", json!({})).await;
    let path = format!("/memory/{first}");
    team.get("b", &path).await.refused(404, "not_found");
    let taken = team.patch("lead", &format!("/tasks/{task}"), 1, json!({"assigned_agent": "b"})).await.ok();
    assert_eq!(taken["assigned_agent"], "b");
    let found = team.get("b", &format!("/memory?scope.task_id={task}&memory_type=working")).await.ok();
    assert_eq!(found["entries"][0]["id"], json!(first));
    team.patch("b", &path, 1, json!({"value": {}})).await.refused(403, "policy_block");
    team.sends("b", "DELETE", &path, 1, None).await.refused(403, "policy_block");
    // Its own copy has the same key; and the one before reads nothing of it.
    let second = team.note("b", &task, "progress", json!({"value": {"resumed_from": first}})).await;
    team.get("a", &format!("/memory/{second}")).await.refused(404, "not_found");
    team.get("a", &path).await.ok();
    team.get("c", &path).await.refused(404, "not_found");
    // The one before says no more how far it is.
    team.patch("a", &format!("/tasks/{task}"), 2, json!({"status": "completed"}))
        .await
        .refused(403, "policy_block");
    team.get("c", &format!("/tasks/{task}")).await.refused(404, "not_found");
    // A task below reads what stands above it, where its policy says so.
    let heir = json!({"parent_task_id": task, "memory_policy": {"inherit_from_parent": true}});
    let below = team.task(&intent, "c", heir).await;
    team.get("c", &path).await.ok();
    team.get("c", &format!("/memory/{second}")).await.ok();
    team.patch("c", &path, 1, json!({"value": {}})).await.refused(403, "policy_block");
    let other = team.task(&intent, "c", json!({"parent_task_id": below})).await;
    team.gets("c", &below, "completed").await;
    team.get("c", &path).await.refused(404, "not_found");
    team.get("c", &format!("/tasks/{other}")).await.ok();
    team.gets("b", &task, "failed").await;
    team.get("b", &path).await.refused(404, "not_found");
}

#[tokio::test]
async fn who_is_on_no_task_learns_nothing_of_it() {
    let team = Team::new(&["a", "b"]).await;
    let intent = team.intent(json!({"denied_semantic_namespaces": ["secret_plans"]})).await;
    let task = team.task(&intent, "a", json!({})).await;
    team.note("a", &task, "private-key", json!({"tags": ["private-tag"]})).await;
    let nothing = |answer: Answer| {
        let mut refused = answer.refused(404, "not_found");
        refused.as_object_mut().unwrap().remove("request_id");
        assert_eq!(refused, json!({"error": "not_found", "message": "nothing of that name here"}));
    };
    for intent in [intent.as_str(), NEVER_INTENT, "x"] {
        for path in [
            format!("/intents/{intent}"),
            format!("/intents/{intent}/events"),
            format!("/intents/{intent}/tasks"),
        ] {
            nothing(team.get("b", &path).await);
        }
    }
    for task in [task.as_str(), NEVER_TASK, "x"] {
        nothing(team.get("b", &format!("/tasks/{task}")).await);
        nothing(team.patch("b", &format!("/tasks/{task}"), 1, json!({"status": "completed"})).await);
    }
    for who in ["a", "nobody"] {
        nothing(team.get("b", &format!("/agents/{who}/events")).await);
        nothing(team.get("b", &format!("/agents/{who}/memory/job/private-key")).await);
        assert_eq!(team.get("b", &format!("/agents/{who}/memory/job")).await.ok(), json!([]));
    }
    for path in ["/agents/a/memory", &format!("/memory?scope.task_id={task}")] {
        let told = team.get("b", path).await.ok().to_string();
        assert!(!told.contains("private"), "{told}");
    }
    assert_eq!(team.get("b", "/memory/search?q=private").await.ok()["total"], 0);
    for intent in [intent.as_str(), NEVER_INTENT] {
        let new = json!({"intent_id": intent, "name": "x"});
        nothing(team.post("b", "/tasks", new).await);
    }
    // A task that one is not on is a name like any other: it binds nothing, and tells nothing.
    for task in [task.as_str(), NEVER_TASK] {
        let made =
            team.post("b", "/memory", noted(task, &format!("by-{}", &task[5..9]), &json!({}))).await.ok();
        assert_eq!(made["version"], 1);
    }
    team.gets("a", &task, "completed").await;
    let made = team.post("b", "/memory", noted(&task, "later", &json!({}))).await.ok();
    assert_eq!(made["version"], 1);
    assert_eq!(team.events("b", "/agents/b").await.len(), 3);
    // With a task of its own in the same intent it knows of that one, and of nothing that the other did.
    team.task(&intent, "b", json!({})).await;
    let events = team.events("b", &format!("/intents/{intent}")).await;
    assert_eq!(names(&events), ["task.created"], "{events:?}");
    let tasks = team.get("b", &format!("/intents/{intent}/tasks")).await.ok();
    assert_eq!(tasks.as_array().unwrap().len(), 1);
    // And no worker makes another work, or itself a coordinator.
    let mine = id(&team.post("b", "/intents", json!({"title": "mine"})).await.ok());
    for whom in ["a", "nobody"] {
        let new = json!({"intent_id": mine, "name": "x", "assigned_agent": whom});
        team.post("b", "/tasks", new).await.refused(403, "policy_block");
    }
    let own = json!({"intent_id": mine, "name": "x", "assigned_agent": "b"});
    let own = id(&team.post("b", "/tasks", own).await.ok());
    team.patch("b", &format!("/tasks/{own}"), 1, json!({"assigned_agent": "a"}))
        .await
        .refused(403, "policy_block");
    let held = id(&team.post("a", "/memory", noted(&own, "forged", &json!({}))).await.ok());
    team.get("b", &format!("/memory/{held}")).await.refused(404, "not_found");
    let lies = json!({"title": "x", "created_by": "lead"});
    team.post("b", "/intents", lies).await.refused(403, "policy_block");
}

#[tokio::test]
async fn a_task_and_an_intent_bind_who_works_on_them() {
    let team = Team::new(&["a"]).await;
    let rails = json!({
        "max_episodic_memory_per_agent": 2, "denied_semantic_namespaces": ["internal"], "max_working_memory_per_task": 3,
    });
    for key in ["e1", "e2"] {
        team.note("a", "none", key, json!({"memory_type": "episodic"})).await;
    }
    let intent = team.intent(rails).await;
    let shared =
        |namespace: &str| json!({"namespace": namespace, "key": "k", "value": {}, "memory_type": "semantic"});
    let policy = json!({"max_entries": 2, "max_total_size_kb": 1});
    let task = team.task(&intent, "a", json!({"memory_policy": policy})).await;
    let refused = team.post("a", "/memory", shared("internal")).await.refused(403, "guardrail_violation");
    assert!(refused["message"].as_str().unwrap().starts_with("denied_semantic_namespaces"), "{refused}");
    team.post("a", "/memory", shared("other")).await.ok();
    // It says so in the log, and evicts nothing.
    let log = format!("/intents/{intent}");
    assert!(names(&team.events("lead", &log).await).contains(&"governance.violation"));
    let full = team.post("a", "/memory", noted("none", "e3", &json!({"memory_type": "episodic"}))).await;
    let full = full.refused(429, "capacity_exceeded");
    assert_eq!((&full["current_count"], &full["max_capacity"]), (&json!(2), &json!(2)));
    let kept = team.get("a", "/memory?agent_id=a&memory_type=episodic").await.ok();
    assert_eq!(kept["total"], 2);
    let first = team.note("a", &task, "w1", json!({})).await;
    team.note("a", &task, "w2", json!({})).await;
    let full =
        team.post("a", "/memory", noted(&task, "w3", &json!({}))).await.refused(429, "capacity_exceeded");
    assert_eq!((&full["current_count"], &full["max_capacity"]), (&json!(2), &json!(2)));
    let large = json!({"value": {"x": "x".repeat(1100)}});
    let full = team.patch("a", &format!("/memory/{first}"), 1, large).await.refused(429, "capacity_exceeded");
    assert_eq!((&full["current_count"], &full["max_capacity"]), (&json!(1), &json!(1)));
    team.note("a", "free", "w4", json!({})).await;
    // The end of the task is the end of its rails.
    team.gets("a", &task, "completed").await;
    team.post("a", "/memory", shared("internal")).await.ok();
    team.note("a", "none", "e3", json!({"memory_type": "episodic"})).await;
}

#[tokio::test]
async fn an_agent_is_told_what_became_of_its_entries() {
    let team = Team::new(&["a"]).await;
    team.set("a", json!({"capacities": {"episodic": 1}})).await.ok();
    let made = team.note("a", "free", "shown-key", json!({"tags": ["shown-tag"]})).await;
    team.patch("a", &format!("/memory/{made}"), 1, json!({"value": {"n": "never-in-an-event"}})).await.ok();
    let events = team.events("a", "/agents/a").await;
    assert_eq!(names(&events), ["memory.created", "memory.updated"]);
    assert_eq!((&events[1].1["version"], &events[1].1["previous_version"]), (&json!(2), &json!(1)));
    assert_eq!((&events[0].1["key"], &events[0].1["tags"]), (&json!("shown-key"), &json!(["shown-tag"])));
    assert!(!json!(events).to_string().contains("never-in-an-event"));
    team.sends("a", "DELETE", &format!("/memory/{made}"), 1, None).await.ok();
    let events = team.events("a", "/agents/a").await;
    assert_eq!(names(&events), ["memory.created", "memory.updated", "memory.deleted"]);
    // Of what is gone nothing is told but that.
    let text = json!(events).to_string();
    assert!(!text.contains("shown-key") && !text.contains("shown-tag"), "{text}");
    team.note("a", "free", "e1", json!({"memory_type": "episodic"})).await;
    team.note("a", "free", "e2", json!({"memory_type": "episodic", "ttl": "duration:PT1H"})).await;
    team.world.clock.advance(Duration::from_secs(3601));
    Deletions(&team.world.gateway).sweep().await.unwrap();
    let events = team.events("a", "/agents/a").await;
    assert_eq!(names(&events)[3..], ["memory.created", "memory.evicted", "memory.created", "memory.expired"]);
    let expired = team.get("a", "/agents/a/events?event_type=memory.expired").await.ok();
    assert_eq!((expired.as_array().unwrap().len(), &expired[0]["actor"]), (1, &json!("owner")));
    let since = expired[0]["timestamp"].as_str().unwrap();
    assert_eq!(
        team.get("a", &format!("/agents/a/events?since={since}")).await.ok().as_array().unwrap().len(),
        1
    );
    let paged = team.get("a", "/agents/a/events?limit=1&offset=2").await.ok();
    assert_eq!((paged.as_array().unwrap().len(), &paged[0]["type"]), (1, &json!("memory.deleted")));
    team.get("a", "/agents/a/events?limit=0").await.refused(422, "invalid_input");
    team.get("a", "/agents/a/events?since=x").await.refused(422, "invalid_input");
    // What a memory tool or the owner does to an entry is told, too.
    let made = team.note("a", "free", "again", json!({})).await;
    let forget = json!({"tool": "memory_forget", "arguments": {"item_id": made}});
    team.world.owner("POST", &format!("{AGENTS}/a/call"), Some(&forget)).await.ok();
    let events = team.events("a", "/agents/a").await;
    let (name, data) = events.last().unwrap();
    assert_eq!((name.as_str(), &data["oap_event"]), ("memory.updated", &json!("retracted")));
    assert!(!json!(events).to_string().contains("\"again\""));
}

#[tokio::test]
async fn entries_are_put_and_got_by_their_place() {
    let team = Team::new(&["a", "b"]).await;
    let put = |who: &'static str, path: &'static str, body: Value| {
        let team = &team;
        async move { team.sends(who, "PUT", path, 1, Some(&body)).await }
    };
    let at = "/agents/a/memory/notes.x/k";
    team.get("a", at).await.refused(404, "not_found");
    let made = put("a", at, json!({"value": {"n": 1}, "memory_type": "episodic", "tags": ["t"]})).await.ok();
    assert_eq!(
        (&made["namespace"], &made["key"], &made["version"]),
        (&json!("notes.x"), &json!("k"), &json!(1))
    );
    assert_eq!(team.get("a", at).await.ok(), made);
    let again = put("a", at, json!({"value": {"n": 2}})).await.ok();
    assert_eq!(
        (&again["id"], &again["version"], &again["memory_type"]),
        (&made["id"], &json!(2), &json!("episodic"))
    );
    assert_eq!((&again["value"], &again["tags"]), (&json!({"n": 2}), &json!([])));
    assert_eq!(team.get("a", "/agents/a/memory/notes.x").await.ok(), json!([again]));
    assert_eq!(team.get("a", "/agents/a/memory/notes.*").await.ok(), json!([]));
    put("a", at, json!({"value": {}, "memory_type": "working"})).await.refused(422, "invalid_input");
    put("a", at, json!({"value": {}, "memory_type": "semantic"})).await.refused(422, "invalid_input");
    put("a", at, json!({"value": {}, "key": "other"})).await.refused(422, "invalid_input");
    put("a", at, json!({})).await.refused(422, "invalid_input");
    // Who names a version means that one.
    put("a", at, json!({"value": {}, "version": 1})).await.refused(409, "conflict");
    put("a", "/agents/a/memory/notes.x/other", json!({"value": {}, "version": 1}))
        .await
        .refused(409, "conflict");
    // Nobody but its author, and it is there for nobody else.
    put("b", at, json!({"value": {}})).await.refused(403, "policy_block");
    team.get("b", at).await.refused(404, "not_found");
    // By words, beside the filters.
    let found = team.get("a", "/memory/search?q=2").await.ok();
    assert!(found["total"].is_u64() && found["entries"].is_array(), "{found}");
    team.note("a", "free", "sea", json!({"value": {"text": "The lighthouse keeper"}})).await;
    let found = team.get("a", "/memory/search?q=lighthouse").await.ok();
    assert_eq!((&found["total"], &found["entries"][0]["key"]), (&json!(1), &json!("sea")));
    assert_eq!(team.get("b", "/memory/search?q=lighthouse").await.ok()["total"], 0);
    for wrong in ["", "?q=", "?q=x&limit=0"] {
        team.get("a", &format!("/memory/search{wrong}")).await.refused(422, "invalid_input");
    }
    let told = team.world.raw("GET", "/.well-known/openintent.json", &[], None).await.ok();
    assert!(told["capabilities"].as_array().unwrap().contains(&json!("memory.search")));
}

/// A batch says what an entry is bound to; what it does not name stays.
#[tokio::test]
async fn a_batch_replaces_the_scope_that_it_names() {
    let team = Team::new(&["a"]).await;
    team.note("a", "one", "k", json!({})).await;
    let batch = |version: u64, more: Value| {
        let mut entry = json!({"namespace": "job", "key": "k", "value": {}, "version": version});
        entry.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        json!({"entries": [entry]})
    };
    for (version, more, scope) in [
        (1, json!({}), json!({"task_id": "one"})),
        (
            2,
            json!({"scope": {"task_id": "two", "intent_id": "i"}}),
            json!({"task_id": "two", "intent_id": "i"}),
        ),
        (3, json!({"scope": {}}), json!({})),
    ] {
        let written = team.post("a", "/memory/batch", batch(version, more)).await.ok();
        assert_eq!(written["entries"][0]["scope"], scope);
    }
    let intent = team.intent(json!({})).await;
    let task = team.task(&intent, "a", json!({})).await;
    team.post("a", "/memory/batch", batch(4, json!({"scope": {"task_id": task}}))).await.ok();
    team.gets("a", &task, "completed").await;
    assert_eq!(team.get("a", "/memory?agent_id=a").await.ok()["total"], 0);
}

#[tokio::test]
async fn a_namespace_is_for_whom_its_permissions_name() {
    let team = Team::new(&["curator", "reader", "a"]).await;
    team.set("lead", json!({"permission": "memory.admin"})).await.ok();
    let shared = |key: &str| json!({"namespace": "policy", "key": key, "value": {"text": "approval above ten"}, "memory_type": "semantic"});
    let own = id(&team.post("a", "/memory", shared("own")).await.ok());
    let path = "/memory/namespaces/policy";
    let permissions = |default: &str| {
        json!({"permissions": {"default": default, "allow": [
            {"agent": "curator", "access": "write"}, {"agent": "reader", "access": "read"},
        ]}})
    };
    // Only who has memory.admin sets them.
    for who in ["a", "curator"] {
        team.patch(who, path, 1, permissions("none")).await.refused(403, "policy_block");
    }
    let recall = json!({"tool": "memory_recall", "arguments": {"query": "approval"}});
    let recalled = async |who: &str| {
        let told = team.world.owner("POST", &format!("{AGENTS}/{who}/call"), Some(&recall)).await.ok();
        told["structured"]["matched"].as_u64().unwrap()
    };
    assert_eq!((recalled("a").await, recalled("reader").await), (1, 1));
    let set = team.patch("lead", path, 1, permissions("none")).await.ok();
    assert_eq!((&set["namespace"], &set["permissions"]["default"]), (&json!("policy"), &json!("none")));
    assert_eq!(set["permissions"]["allow"].as_array().unwrap().len(), 2);
    // Who is not named sees nothing of it, by whatever door; its own neither.
    let entry = format!("/memory/{own}");
    team.get("a", &entry).await.refused(404, "not_found");
    team.patch("a", &entry, 1, json!({"value": {}})).await.refused(404, "not_found");
    team.sends("a", "DELETE", &entry, 1, None).await.refused(404, "not_found");
    team.get("a", path).await.refused(404, "not_found");
    assert_eq!(team.get("a", "/memory/namespaces").await.ok()["namespaces"], json!([]));
    assert_eq!(team.get("a", "/memory?memory_type=semantic").await.ok()["total"], 0);
    assert_eq!(team.get("a", "/memory/search?q=approval").await.ok()["total"], 0);
    assert_eq!((recalled("a").await, recalled("reader").await), (0, 1));
    team.post("a", "/memory", shared("more")).await.refused(403, "policy_block");
    let batch = json!({"entries": [shared("more")]});
    team.post("a", "/memory/batch", batch).await.refused(403, "policy_block");
    let events = json!(team.events("a", "/agents/a").await).to_string();
    assert!(!events.contains("policy"), "{events}");
    // Who reads reads, who curates changes what others wrote.
    team.get("reader", &entry).await.ok();
    team.patch("reader", &entry, 1, json!({"value": {}})).await.refused(403, "policy_block");
    team.post("reader", "/memory", shared("more")).await.refused(403, "policy_block");
    let changed =
        team.patch("curator", &entry, 1, json!({"value": {"text": "approval above five"}})).await.ok();
    assert_eq!((&changed["version"], &changed["agent_id"]), (&json!(2), &json!("curator")));
    team.post("curator", "/memory", shared("more")).await.ok();
    let shown = team.get("reader", path).await.ok();
    assert_eq!((&shown["access"], &shown["permissions"]["allow"]), (&json!("read"), &json!([])));
    // By default all read.
    team.patch("lead", path, 1, permissions("read")).await.ok();
    team.get("a", &entry).await.ok();
    assert_eq!(recalled("a").await, 2);
    team.post("a", "/memory", shared("again")).await.refused(403, "policy_block");
    team.patch("lead", path, 1, json!({"permissions": null})).await.ok();
    team.post("a", "/memory", shared("again")).await.ok();
    for (wrong, field) in [
        (json!({}), "permissions"),
        (json!({"permissions": {"default": "all"}}), "default"),
        (
            json!({"permissions": {"default": "read", "allow": [{"agent": "nobody", "access": "read"}]}}),
            "allow",
        ),
    ] {
        let refused = team.patch("lead", path, 1, wrong).await.refused(422, "invalid_input");
        assert!(refused["message"].as_str().unwrap().contains(field), "{refused}");
    }
}

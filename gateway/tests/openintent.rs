//! Entries (docs/openintent.md): OpenIntent's dialect of the owner's memory, by the rules of its RFC-0015; that it is one memory with
//! the tools'; and the property that an agent learns nothing of what another keeps to itself.

use crate::common::*;
use axum::body::Body;
use axum::http::Request;
use oap_agents::entry::{MAX_ENTRIES, MAX_EPISODIC, MAX_VALUE, MAX_WORKING};
use oap_identity::Timestamp;
use proptest::prelude::*;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::time::Duration;

const NEVER: &str = "mem_01J9V8B7H1ZK4D2A0M9R8F0KQX";

/// Agents, by name, and their keys.
struct Agents {
    world: World,
    keys: BTreeMap<&'static str, String>,
}

impl Agents {
    async fn of(world: World, agents: &[(&'static str, &str)]) -> Self {
        let mut keys = BTreeMap::new();
        for (name, permission) in agents {
            let new = json!({"name": name, "permission": permission});
            let made = world.owner("POST", "/oap/owner/agents", Some(&new)).await.ok();
            keys.insert(*name, made["api_key"].as_str().unwrap().to_owned());
        }
        Self { world, keys }
    }

    async fn new(agents: &[(&'static str, &str)]) -> Self {
        Self::of(World::new().await, agents).await
    }

    /// One writer.
    async fn scout() -> Self {
        Self::new(&[("scout", "memory.write")]).await
    }

    /// A request as an agent's client makes it, with the text of a body.
    async fn sends(
        &self,
        who: &str,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: Option<&str>,
    ) -> Answer {
        let mut request = Request::builder().method(method).uri(format!("/api/v1{path}"));
        request = request.header("x-api-key", &self.keys[who]);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        if body.is_some() {
            request = request.header("content-type", "application/json");
        }
        // Of two changes of one moment nobody can say which is newer.
        self.world.clock.advance(Duration::from_millis(u64::from(method != "GET")));
        self.world.send(request.body(Body::from(body.unwrap_or_default().to_owned())).unwrap()).await
    }

    async fn get(&self, who: &str, path: &str) -> Answer {
        self.sends(who, "GET", path, &[], None).await
    }

    async fn post(&self, who: &str, entry: &Value) -> Answer {
        self.sends(who, "POST", "/memory", &[], Some(&entry.to_string())).await
    }

    /// Writes an entry; it.
    async fn made(&self, who: &str, entry: Value) -> Value {
        self.post(who, &entry).await.ok()
    }

    async fn patch(&self, who: &str, id: &str, version: u64, change: &Value) -> Answer {
        let version = version.to_string();
        let headers = [("if-match", version.as_str())];
        self.sends(who, "PATCH", &format!("/memory/{id}"), &headers, Some(&change.to_string())).await
    }

    async fn delete(&self, who: &str, id: &str) -> Answer {
        self.sends(who, "DELETE", &format!("/memory/{id}"), &[], None).await
    }

    /// The keys of the entries of a query, and how many there are.
    async fn found(&self, who: &str, query: &str) -> (Vec<String>, u64) {
        let page = self.get(who, &format!("/memory?{query}")).await.ok();
        (keys(&page["entries"]), page["total"].as_u64().unwrap())
    }
}

fn keys(entries: &Value) -> Vec<String> {
    entries.as_array().unwrap().iter().map(|entry| entry["key"].as_str().unwrap().to_owned()).collect()
}

fn entry(tier: &str, namespace: &str, key: &str) -> Value {
    json!({"namespace": namespace, "key": key, "value": {"of": key}, "memory_type": tier})
}

fn id(entry: &Value) -> String {
    entry["id"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn an_entry_has_all_its_fields() {
    let agents = Agents::scout().await;
    let new = json!({
        "agent_id": "scout", "namespace": "invoice_processing", "key": "batch_progress",
        "value": {"total": 47, "completed": 23, "last_id": "inv_789", "errors": []}, "memory_type": "working",
        "scope": {"task_id": "task_1", "intent_id": "intent_1"}, "tags": ["invoices", "batch", "in-progress"],
        "ttl": "task_lifetime",
    });
    let made = agents.made("scout", new).await;
    assert!(made["id"].as_str().unwrap().starts_with("mem_"));
    let expected = json!({
        "id": made["id"], "agent_id": "scout", "namespace": "invoice_processing", "key": "batch_progress",
        "value": {"total": 47, "completed": 23, "last_id": "inv_789", "errors": []}, "memory_type": "working",
        "scope": {"task_id": "task_1", "intent_id": "intent_1"}, "tags": ["invoices", "batch", "in-progress"],
        "ttl": "task_lifetime", "pinned": false, "priority": "normal", "sensitivity": "internal", "curated_by": null,
        "version": 1, "created_at": made["created_at"], "updated_at": made["created_at"], "expires_at": null,
    });
    assert_eq!(made, expected);
    assert!(made["created_at"].as_str().unwrap().ends_with('Z'));
    assert_eq!(agents.get("scout", &format!("/memory/{}", id(&made))).await.ok(), expected);
    let listed = agents.get("scout", "/agents/scout/memory").await.ok();
    assert_eq!(listed, json!([expected]));
    // Who does not say a tier means the working one, and who does not say an agent itself.
    let plain = agents.made("scout", json!({"namespace": "n", "key": "k", "value": {}})).await;
    assert_eq!((&plain["memory_type"], &plain["agent_id"]), (&json!("working"), &json!("scout")));
    agents.world.chains_hold().await;
}

#[tokio::test]
async fn a_value_comes_back_as_it_was_sent() {
    let agents = Agents::scout().await;
    let values = [
        r#"{"z":1,"a":9007199254740993,"m":123456789012345678901234567890,"f":1.10,"e":-0.0,"x":1E400}"#,
        r#"{"é":"日本語 🦀","\u00e9\\":"\u0000\n","":[[],{},null,true]}"#,
        r#"{"_sd":["x"],"...":1,"status":"x","owner_did":"y","mail":"write to ann@example.com or call +49 30 1234567"}"#,
        "{ \"white\" : [ 1 ,\t2 ] }",
        "{}",
    ];
    for (number, value) in values.iter().enumerate() {
        for tier in ["working", "episodic", "semantic"] {
            // Working and episodic share their keys.
            let body = format!(
                r#"{{"namespace":"n","key":"{tier}{number}","memory_type":"{tier}","value":{value}}}"#
            );
            let made = agents.sends("scout", "POST", "/memory", &[], Some(&body)).await;
            let text = String::from_utf8(made.bytes.clone()).unwrap();
            assert!(text.contains(&format!("\"value\":{value},")), "{text}");
            let id = text.split('"').nth(3).unwrap();
            let shown = agents.get("scout", &format!("/memory/{id}")).await;
            assert_eq!(shown.bytes, made.bytes, "{tier} {value}");
        }
    }
    let changed = r#"{"value":{"b":18446744073709551616,"a":1}}"#;
    let made = agents.made("scout", entry("episodic", "n", "change")).await;
    let path = format!("/memory/{}", id(&made));
    agents.sends("scout", "PATCH", &path, &[("if-match", "1")], Some(changed)).await;
    let shown = agents.get("scout", &path).await;
    assert!(String::from_utf8(shown.bytes).unwrap().contains(r#""value":{"b":18446744073709551616,"a":1}"#));
    agents.world.chains_hold().await;
}

#[tokio::test]
async fn what_is_too_large_or_no_entry_is_refused_by_its_field() {
    let agents = Agents::scout().await;
    let large = |bytes: usize| json!({"namespace": "n", "key": "k", "value": {"a": "x".repeat(bytes - 8)}});
    let refused = agents.post("scout", &large(70 << 10)).await.refused(413, "too_large");
    assert!(refused["message"].as_str().unwrap().contains("attachment_id"), "{refused}");
    let refused = agents.post("scout", &large(MAX_VALUE + 1)).await.refused(413, "too_large");
    assert!(refused["message"].as_str().unwrap().starts_with("value"), "{refused}");
    let made = agents.made("scout", large(MAX_VALUE)).await;
    agents.delete("scout", &id(&made)).await.ok();
    for (body, field) in [
        (json!({"namespace": "n", "value": {}}), "key"),
        (json!({"namespace": "n", "key": "k"}), "value"),
        (json!({"namespace": "n", "key": "k", "value": [1]}), "value"),
        (json!({"namespace": "", "key": "k", "value": {}}), "namespace"),
        (json!({"namespace": "n", "key": "k", "value": {}, "memory_type": "magic"}), "memory_type"),
        (json!({"namespace": "n", "key": "k", "value": {}, "ttl": "task_lifetime"}), "scope.task_id"),
        (json!({"namespace": "n", "key": "k", "value": {}, "ttl": "soon"}), "ttl"),
        (
            json!({"namespace": "n", "key": "k", "value": {}, "expires_at": "2020-01-01T00:00:00Z"}),
            "expires_at",
        ),
        (json!({"namespace": "n", "key": "k", "value": {}, "pin": true}), "pin"),
        (json!({"namespace": "n", "key": "k", "value": {}, "tags": [""]}), "tags"),
        (
            json!({"namespace": "n", "key": "k", "value": {}, "memory_type": "semantic", "sensitivity": "restricted"}),
            "sensitivity",
        ),
    ] {
        let refused = agents.post("scout", &body).await.refused(422, "invalid_input");
        assert!(refused["message"].as_str().unwrap().contains(field), "{body}: {refused}");
    }
    for text in ["", "[]", "{", r#"{"namespace":"n","namespace":"n","key":"k","value":{}}"#] {
        agents.sends("scout", "POST", "/memory", &[], Some(text)).await.refused(400, "invalid_input");
    }
    for (parameters, field) in [
        ("memory_type=semantic&limit=0", "limit"),
        ("memory_type=semantic&limit=1001", "limit"),
        ("memory_type=magic", "memory_type"),
        ("memory_type=semantic&tag=x", "tag"),
        ("memory_type=semantic&updated_after=x", "updated_after"),
        // Working and episodic memory is somebody's.
        ("memory_type=working", "agent_id"),
        ("memory_type=episodic", "agent_id"),
        ("", "agent_id"),
    ] {
        let refused =
            agents.get("scout", &format!("/memory?{parameters}")).await.refused(422, "invalid_input");
        assert!(refused["message"].as_str().unwrap().contains(field), "{parameters}: {refused}");
    }
    let nothing = agents.sends("scout", "DELETE", "/memory/batch", &[], None).await;
    nothing.refused(422, "invalid_input");
}

#[tokio::test]
async fn a_key_is_unique_in_its_tier() {
    let agents = Agents::new(&[("a", "memory.write"), ("b", "memory.write")]).await;
    // Working and episodic: one an agent.
    let first = agents.made("a", entry("working", "n", "k")).await;
    for tier in ["working", "episodic"] {
        let refused = agents.post("a", &entry(tier, "n", "k")).await.refused(409, "conflict");
        assert_eq!((&refused["current_version"], &refused["current"]), (&json!(1), &first), "{tier}");
        assert!(refused["message"].is_string() && refused["request_id"].is_string());
    }
    agents.made("b", entry("episodic", "n", "k")).await;
    // Semantic: one for all.
    let shared = agents.made("a", entry("semantic", "n", "k")).await;
    let refused = agents.post("b", &entry("semantic", "n", "k")).await.refused(409, "conflict");
    assert_eq!(refused["current"], shared);
    // A key is free again when its entry is gone: erased, taken back, or over.
    agents.delete("a", &id(&first)).await.ok();
    let mut second = entry("working", "n", "k");
    second["ttl"] = json!("duration:PT1H");
    agents.made("a", second).await;
    agents.post("a", &entry("working", "n", "k")).await.refused(409, "conflict");
    agents.world.clock.advance(Duration::from_secs(3600));
    agents.made("a", entry("working", "n", "k")).await;
    let forget = json!({"tool": "memory_forget", "arguments": {"item_id": shared["id"]}});
    agents.world.owner("POST", "/oap/owner/agents/a/call", Some(&forget)).await.ok();
    let again = agents.made("b", entry("semantic", "n", "k")).await;
    assert_ne!(again["id"], shared["id"]);
    // What took its place stands in the way of its return.
    let restored =
        agents.world.owner("POST", &format!("/oap/owner/items/{}/restore", id(&shared)), None).await;
    restored.refused(409, "conflict");
    agents.delete("b", &id(&again)).await.ok();
    agents.world.owner("POST", &format!("/oap/owner/items/{}/restore", id(&shared)), None).await.ok();
    agents.world.chains_hold().await;
}

/// Many at once want one key: one gets it.
#[tokio::test]
async fn of_those_who_race_for_a_key_one_gets_it() {
    let agents = Agents::new(&[("a", "memory.write"), ("b", "memory.write")]).await;
    let all =
        (0..16).map(|n| agents.post(["a", "b"][n % 2], Box::leak(Box::new(entry("semantic", "n", "k")))));
    let answers = futures_all(all).await;
    let statuses: Vec<u16> = answers.iter().map(|answer| answer.status.as_u16()).collect();
    assert_eq!(statuses.iter().filter(|status| **status == 200).count(), 1, "{statuses:?}");
    assert_eq!(statuses.iter().filter(|status| **status == 409).count(), 15, "{statuses:?}");
    assert_eq!(agents.found("a", "memory_type=semantic").await.1, 1);
}

async fn futures_all<T>(all: impl Iterator<Item = impl Future<Output = T>>) -> Vec<T> {
    let mut waiting: Vec<_> = all.map(Box::pin).map(Some).collect();
    let mut done: Vec<Option<T>> = waiting.iter().map(|_| None).collect();
    std::future::poll_fn(|cx| {
        for (slot, out) in waiting.iter_mut().zip(&mut done) {
            if let Some(future) = slot
                && let std::task::Poll::Ready(value) = future.as_mut().poll(cx)
            {
                (*slot, *out) = (None, Some(value));
            }
        }
        if waiting.iter().all(Option::is_none) {
            std::task::Poll::Ready(())
        } else {
            std::task::Poll::Pending
        }
    })
    .await;
    done.into_iter().flatten().collect()
}

#[tokio::test]
async fn a_change_is_of_the_version_that_was_read() {
    let agents = Agents::scout().await;
    let mut new = entry("episodic", "learned", "stripe");
    new["tags"] = json!(["stripe"]);
    new["ttl"] = json!("duration:PT24H");
    let made = agents.made("scout", new).await;
    let (entry, path) = (id(&made), format!("/memory/{}", id(&made)));
    assert_eq!(made["expires_at"], json!(agents.world.now().plus(Duration::from_secs(86_400))));
    for headers in [&[][..], &[("if-match", "x")], &[("if-match", "*")], &[("if-match", "")]] {
        let refused = agents.sends("scout", "PATCH", &path, headers, Some("{}")).await;
        refused.refused(428, "precondition_required");
    }
    let changed =
        agents.patch("scout", &entry, 1, &json!({"value": {"n": 1}, "tags": ["b", "a"]})).await.ok();
    assert_eq!((&changed["version"], &changed["value"]), (&json!(2), &json!({"n": 1})));
    assert_eq!((&changed["tags"], &changed["created_at"]), (&json!(["b", "a"]), &made["created_at"]));
    assert_eq!(
        (&changed["updated_at"], &changed["expires_at"]),
        (&json!(agents.world.now()), &made["expires_at"])
    );
    assert_eq!(agents.get("scout", &path).await.ok(), changed);
    let stale = agents.patch("scout", &entry, 1, &json!({"value": {}})).await.refused(409, "conflict");
    assert_eq!((&stale["current_version"], &stale["current"]), (&json!(2), &changed));
    // What is not said stays; what is said to be nothing goes.
    let changed = agents.patch("scout", &entry, 2, &json!({"pinned": true, "priority": "high"})).await.ok();
    assert_eq!((&changed["pinned"], &changed["priority"]), (&json!(true), &json!("high")));
    assert_eq!((&changed["value"], &changed["ttl"]), (&json!({"n": 1}), &json!("duration:PT24H")));
    let changed = agents.patch("scout", &entry, 3, &json!({"ttl": null})).await.ok();
    assert_eq!((&changed["ttl"], &changed["expires_at"]), (&Value::Null, &Value::Null));
    // A time outranks a life, whichever is said later.
    let end = "2026-06-01T00:00:00.000Z";
    let changed = agents.patch("scout", &entry, 4, &json!({"expires_at": end})).await.ok();
    assert_eq!(changed["expires_at"], end);
    let changed = agents.patch("scout", &entry, 5, &json!({"ttl": "duration:PT1H"})).await.ok();
    assert_eq!((&changed["expires_at"], &changed["ttl"]), (&json!(end), &json!("duration:PT1H")));
    assert_eq!(changed["version"], 6);
    // What places an entry does not change.
    for field in ["namespace", "key", "memory_type", "agent_id", "scope"] {
        agents.patch("scout", &entry, 6, &json!({field: "x"})).await.refused(422, "invalid_input");
    }
    agents.patch("scout", NEVER, 1, &json!({})).await.refused(404, "not_found");
    agents.patch("scout", "none", 1, &json!({})).await.refused(404, "not_found");
    agents.world.chains_hold().await;
}

/// Of a scratch pad the version in force alone is kept; of the others each former one, for its retention time.
#[tokio::test]
async fn a_working_entry_has_no_past() {
    let agents = Agents::scout().await;
    for (tier, former) in [("working", 0), ("episodic", 3)] {
        let made = agents.made("scout", entry(tier, "n", tier)).await;
        for version in 1..4 {
            agents.patch("scout", &id(&made), version, &json!({"value": {"n": version}})).await.ok();
        }
        let explain = json!({"tool": "memory_explain", "arguments": {"item_id": made["id"]}});
        let told = agents.world.owner("POST", "/oap/owner/agents/scout/call", Some(&explain)).await.ok();
        let kept = told["structured"]["corrections"].as_array().unwrap().len();
        assert_eq!(kept, former, "{tier}");
        // Whichever way it is changed.
        let arguments = json!({"item_id": made["id"], "content": "{}"});
        let correct = json!({"tool": "memory_correct", "arguments": arguments});
        agents.world.owner("POST", "/oap/owner/agents/scout/call", Some(&correct)).await.ok();
        let told = agents.world.owner("POST", "/oap/owner/agents/scout/call", Some(&explain)).await.ok();
        let kept = told["structured"]["corrections"].as_array().unwrap().len();
        assert_eq!(kept, if former == 0 { 0 } else { former + 1 }, "{tier}");
    }
    agents.world.chains_hold().await;
}

#[tokio::test]
async fn queries_filter_order_and_page() {
    let agents = Agents::new(&[("a", "memory.write"), ("b", "memory.write")]).await;
    let facts = [
        ("working", "job.one", "w1", vec!["x"], Some("t1")),
        ("working", "job.two", "w2", vec!["x", "y"], Some("t2")),
        ("episodic", "learned", "e1", vec!["y"], None),
        ("episodic", "learned", "e2", vec!["x", "y", "z"], None),
        ("semantic", "policy", "s1", vec!["x"], None),
    ];
    for (tier, namespace, key, tags, task) in &facts {
        let mut new = entry(tier, namespace, key);
        new["tags"] = json!(tags);
        if let Some(task) = task {
            new["scope"] = json!({"task_id": task, "intent_id": "i"});
        }
        new["pinned"] = json!(*key == "e1");
        agents.made("a", new).await;
    }
    agents.made("b", entry("semantic", "policy", "s2")).await;
    agents.made("b", entry("episodic", "learned", "hidden")).await;
    for (query, expected) in [
        ("agent_id=a", vec!["s1", "e2", "e1", "w2", "w1"]),
        ("agent_id=a&memory_type=working", vec!["w2", "w1"]),
        ("agent_id=a&namespace=learned", vec!["e2", "e1"]),
        ("agent_id=a&namespace=job.*", vec!["w2", "w1"]),
        ("agent_id=a&namespace=job", vec![]),
        ("agent_id=a&namespace=*", vec!["s1", "e2", "e1", "w2", "w1"]),
        ("agent_id=a&key=e1", vec!["e1"]),
        ("agent_id=a&tags=x,y", vec!["e2", "w2"]),
        ("agent_id=a&tags_any=z,none", vec!["e2"]),
        ("agent_id=a&tags=y&tags_any=x,z", vec!["e2", "w2"]),
        ("scope.task_id=t1", vec!["w1"]),
        ("scope.task_id=t1&memory_type=working", vec!["w1"]),
        ("agent_id=a&scope.intent_id=i", vec!["w2", "w1"]),
        ("agent_id=a&pinned=true", vec!["e1"]),
        ("agent_id=a&pinned=false&memory_type=episodic", vec!["e2"]),
        ("memory_type=semantic", vec!["s2", "s1"]),
        ("memory_type=semantic&agent_id=b", vec!["s2"]),
        ("agent_id=b", vec!["s2"]),
        ("agent_id=nobody", vec![]),
    ] {
        let (found, total) = agents.found("a", query).await;
        assert_eq!(found, expected, "{query}");
        assert_eq!(total, expected.len() as u64, "{query}");
    }
    // A change brings an entry to the front.
    let page = agents.get("a", "/memory?agent_id=a&key=w1").await.ok();
    let before = agents.world.now();
    agents.patch("a", &id(&page["entries"][0]), 1, &json!({"tags": []})).await.ok();
    assert_eq!(agents.found("a", "agent_id=a").await.0[0], "w1");
    let since = format!("agent_id=a&updated_after={before}");
    assert_eq!(agents.found("a", &since).await.0, ["w1"]);
    let until = format!("agent_id=a&updated_before={}", agents.world.now());
    assert_eq!(agents.found("a", &until).await.1, 4);
    let page = agents.get("a", "/memory?agent_id=a&limit=2&offset=1").await.ok();
    assert_eq!((keys(&page["entries"]), &page["total"]), (vec!["s1".to_owned(), "e2".to_owned()], &json!(5)));
    assert_eq!((&page["limit"], &page["offset"]), (&json!(2), &json!(1)));
    assert_eq!(agents.found("a", "agent_id=a&offset=99").await, (vec![], 5));
    // The route of OpenIntent's clients answers the same, as an array.
    for (query, expected) in [
        ("namespace=learned", vec!["e2", "e1"]),
        ("memory_type=working&tags=y", vec!["w2"]),
        ("limit=1", vec!["w1"]),
    ] {
        let listed = agents.get("a", &format!("/agents/a/memory?{query}")).await.ok();
        assert_eq!(keys(&listed), expected, "{query}");
    }
    agents.world.chains_hold().await;
}

#[tokio::test]
async fn batches_are_written_all_or_none() {
    let agents = Agents::new(&[("a", "memory.write"), ("b", "memory.write")]).await;
    let send = async |entries: Value| {
        let body = json!({"entries": entries}).to_string();
        agents.sends("a", "POST", "/memory/batch", &[], Some(&body)).await
    };
    let first =
        send(json!([entry("working", "n", "a"), entry("episodic", "n", "b"), entry("semantic", "n", "a")]))
            .await
            .ok();
    assert_eq!(keys(&first["entries"]), ["a", "b", "a"]);
    // One that is there needs its version, and then is replaced.
    let mut newer = entry("working", "n", "a");
    newer["value"] = json!({"n": 2});
    let refused = send(json!([entry("working", "n", "c"), newer])).await.refused(409, "conflict");
    assert_eq!((&refused["index"], &refused["current"]), (&json!(1), &first["entries"][0]), "{refused}");
    assert!(refused["message"].as_str().unwrap().starts_with("entries[1]: "), "{refused}");
    assert_eq!(agents.found("a", "agent_id=a").await.1, 3);
    newer["version"] = json!(9);
    let refused = send(json!([entry("working", "n", "c"), newer])).await.refused(409, "conflict");
    assert_eq!((&refused["current_version"], &refused["current"]), (&json!(1), &first["entries"][0]));
    assert_eq!(refused["index"], 1);
    newer["version"] = json!(1);
    let second = send(json!([entry("working", "n", "c"), newer])).await.ok();
    assert_eq!(
        (&second["entries"][1]["version"], &second["entries"][1]["id"]),
        (&json!(2), &first["entries"][0]["id"])
    );
    // One that is not there, or that the agent may not see, is named alike: by its place, and nothing else.
    let gone = |key: &str| {
        let changed = json!({"namespace": "n", "key": key, "value": {}, "version": 1});
        json!([entry("working", "n", "x"), entry("working", "n", "y"), changed])
    };
    agents.made("b", entry("working", "n", "hidden")).await;
    let mut refused =
        [send(gone("never")).await, send(gone("hidden")).await].map(|answer| answer.refused(409, "conflict"));
    refused.iter_mut().for_each(|body| body["request_id"] = json!(""));
    assert_eq!((&refused[0]["index"], refused[0].get("current")), (&json!(2), None), "{refused:?}");
    assert_eq!(refused[0], refused[1]);
    for wrong in
        [json!([]), json!({}), json!([entry("working", "n", "d"), entry("episodic", "n", "d")]), json!([{}])]
    {
        send(wrong).await.refused(422, "invalid_input");
    }
    // Deleted is what the filter admits and the agent may erase.
    agents.made("b", entry("semantic", "n", "of b")).await;
    let path = "/memory/batch?namespace=n&tags=none";
    assert_eq!(agents.sends("a", "DELETE", path, &[], None).await.ok()["deleted"], 0);
    let deleted = agents.sends("a", "DELETE", "/memory/batch?namespace=n", &[], None).await.ok();
    assert_eq!((&deleted["deleted"], &deleted["remaining"]), (&json!(4), &json!(0)));
    assert_eq!(agents.found("a", "agent_id=a").await.1, 0);
    assert_eq!(agents.found("a", "memory_type=semantic").await.0, ["of b"]);
    agents.world.chains_hold().await;
}

/// As many as one answer may have; its receipt names them all.
#[tokio::test]
async fn a_thousand_entries_are_one_answer() {
    let agents = Agents::scout().await;
    let entries: Vec<Value> = (0..MAX_ENTRIES).map(|n| entry("episodic", "n", &format!("k{n}"))).collect();
    let body = json!({"entries": entries}).to_string();
    agents.sends("scout", "POST", "/memory/batch", &[], Some(&body)).await.ok();
    let page = agents.get("scout", "/memory?agent_id=scout&limit=1000").await.ok();
    assert_eq!(page["entries"].as_array().unwrap().len(), MAX_ENTRIES);
    let given = agents.world.owner("GET", "/oap/owner/agents/scout/injected", None).await.ok();
    assert_eq!(given["answers"][0]["items"].as_array().unwrap().len(), MAX_ENTRIES);
    let deleted = agents.sends("scout", "DELETE", "/memory/batch?agent_id=scout", &[], None).await.ok();
    assert_eq!(deleted["deleted"], json!(MAX_ENTRIES));
}

#[tokio::test]
async fn who_may_what() {
    let agents = Agents::new(&[
        ("reader", "memory.read"),
        ("a", "memory.write"),
        ("b", "memory.write"),
        ("chief", "memory.admin"),
    ])
    .await;
    let shared = agents.made("a", entry("semantic", "policy", "rule")).await;
    let own = agents.made("a", entry("episodic", "learned", "mine")).await;
    let pad = agents.made("a", entry("working", "job", "state")).await;
    assert_eq!(shared["curated_by"], "a");
    for who in ["reader", "b", "chief"] {
        // Semantic is for all; what is an agent's own is not there for another, whatever it may do.
        assert_eq!(agents.get(who, &format!("/memory/{}", id(&shared))).await.ok(), shared, "{who}");
        for hidden in [&own, &pad] {
            agents.get(who, &format!("/memory/{}", id(hidden))).await.refused(404, "not_found");
            if who != "reader" {
                agents.patch(who, &id(hidden), 1, &json!({"tags": []})).await.refused(404, "not_found");
                agents.delete(who, &id(hidden)).await.refused(404, "not_found");
            }
        }
        assert_eq!(agents.found(who, "agent_id=a").await.0, ["rule"], "{who}");
    }
    // With memory.read alone nothing is written, and nothing told of what is there.
    for target in [id(&shared), id(&own), NEVER.to_owned()] {
        agents.patch("reader", &target, 1, &json!({"tags": []})).await.refused(403, "policy_block");
        agents.delete("reader", &target).await.refused(403, "policy_block");
    }
    agents.post("reader", &entry("working", "n", "k")).await.refused(403, "policy_block");
    // A writer changes what it wrote; an administrator what it sees.
    agents.patch("b", &id(&shared), 1, &json!({"value": {}})).await.refused(403, "policy_block");
    agents.delete("b", &id(&shared)).await.refused(403, "policy_block");
    let changed = agents.patch("chief", &id(&shared), 1, &json!({"tags": ["checked"]})).await.ok();
    assert_eq!((&changed["agent_id"], &changed["curated_by"]), (&json!("a"), &json!("a")));
    let changed = agents.patch("chief", &id(&shared), 2, &json!({"value": {"n": 2}})).await.ok();
    assert_eq!((&changed["agent_id"], &changed["curated_by"]), (&json!("chief"), &json!("a")));
    // What the owner says is the owner's to erase.
    let correct = json!({"item": {"content": {"text": "{\"n\": 3}"}}});
    agents
        .world
        .owner("POST", &format!("/oap/owner/items/{}/correct", id(&shared)), Some(&correct))
        .await
        .ok();
    let shown = agents.get("b", &format!("/memory/{}", id(&shared))).await.ok();
    assert_eq!((&shown["value"], &shown["version"]), (&json!({"n": 3}), &json!(4)));
    agents.delete("chief", &id(&shared)).await.refused(403, "policy_block");
    agents.patch("b", &id(&shared), 4, &json!({"value": {}})).await.refused(403, "policy_block");
    // Nobody is somebody else.
    for (field, other) in [("agent_id", "b"), ("curated_by", "user_1")] {
        let mut new = entry("semantic", "policy", "other");
        new[field] = json!(other);
        let refused = agents.post("a", &new).await.refused(403, "policy_block");
        assert!(refused["message"].as_str().unwrap().contains(field), "{refused}");
    }
    let path = format!("/memory/{}", id(&own));
    agents.sends("a", "GET", &path, &[("x-agent-id", "b")], None).await.refused(403, "policy_block");
    agents.sends("a", "GET", &path, &[("x-agent-id", "a")], None).await.ok();
    agents.world.chains_hold().await;
}

#[tokio::test]
async fn a_key_that_ended_opens_nothing() {
    let agents = Agents::scout().await;
    agents.made("scout", entry("working", "n", "k")).await;
    agents.world.owner("POST", "/oap/owner/agents/scout/rotate", None).await.ok();
    for (method, path) in
        [("GET", "/memory?agent_id=scout"), ("POST", "/memory"), ("DELETE", "/memory/batch?namespace=n")]
    {
        agents.sends("scout", method, path, &[], None).await.refused(401, "auth_required");
    }
}

#[tokio::test]
async fn what_is_deleted_is_gone() {
    let agents = Agents::scout().await;
    let kept = agents.made("scout", entry("episodic", "n", "kept")).await;
    let made = agents.made("scout", entry("episodic", "n", "gone")).await;
    let deleted = agents.delete("scout", &id(&made)).await.ok();
    assert_eq!(deleted, json!({"status": "deleted", "entry_id": made["id"]}));
    for _ in 0..2 {
        agents.delete("scout", &id(&made)).await.refused(404, "not_found");
    }
    agents.get("scout", &format!("/memory/{}", id(&made))).await.refused(404, "not_found");
    assert_eq!(agents.found("scout", "agent_id=scout").await, (vec!["kept".to_owned()], 1));
    // The owner sees that it was erased, and that nothing of it is left.
    let history = agents.world.owner("GET", &format!("/oap/owner/items/{}", id(&made)), None).await;
    assert_eq!(
        history.body["record"]["status"].as_str().or(history.body["item"]["status"].as_str()),
        Some("erased"),
        "{}",
        history.body
    );
    // A hold keeps it.
    let hold = json!({"items": [kept["id"]], "reason": "legal_hold", "until": "2099-01-01T00:00:00Z"});
    agents.world.owner("POST", "/oap/owner/holds", Some(&hold)).await.ok();
    let refused = agents.delete("scout", &id(&kept)).await.refused(409, "conflict");
    // A client of OpenIntent takes any conflict with these letters for another one.
    assert!(!refused.to_string().to_lowercase().contains("lease"), "{refused}");
    agents.sends("scout", "DELETE", "/memory/batch?agent_id=scout", &[], None).await.refused(409, "conflict");
    agents.world.chains_hold().await;
}

/// OI-17, as far as a life is told by the clock: gone at once, and erased by the next sweep.
#[tokio::test]
async fn what_is_over_is_gone() {
    let agents = Agents::scout().await;
    let mut lives = entry("episodic", "n", "day");
    lives["ttl"] = json!("duration:P1D");
    let mut ends = entry("working", "n", "hour");
    ends["expires_at"] = json!("2026-05-01T13:00:00+00:00");
    // A time outranks a life.
    ends["ttl"] = json!("duration:P9D");
    let [lives, ends] = [agents.made("scout", lives).await, agents.made("scout", ends).await];
    assert_eq!(ends["expires_at"], "2026-05-01T13:00:00.000Z");
    agents.world.clock.set("2026-05-01T13:00:00.000Z".parse().unwrap());
    agents.get("scout", &format!("/memory/{}", id(&ends))).await.refused(404, "not_found");
    assert_eq!(agents.found("scout", "agent_id=scout").await, (vec!["day".to_owned()], 1));
    agents.world.clock.set("2026-05-03T00:00:00.000Z".parse().unwrap());
    agents.get("scout", &format!("/memory/{}", id(&lives))).await.refused(404, "not_found");
    let swept = oap_gateway::service::Deletions(&agents.world.gateway).sweep().await.unwrap();
    assert_eq!(swept.expired, 2);
}

/// One memory, two dialects.
#[tokio::test]
async fn entries_are_items_and_what_is_told_of_them_has_a_receipt() {
    let agents = Agents::new(&[("a", "memory.write"), ("b", "memory.write")]).await;
    let call = async |who: &str, tool: &str, arguments: Value| {
        let call = json!({"tool": tool, "arguments": arguments});
        agents.world.owner("POST", &format!("/oap/owner/agents/{who}/call"), Some(&call)).await
    };
    let mut new = entry("semantic", "policy", "charges");
    new["value"] = json!({"rule": "Charges above 10,000 need a manager"});
    let made = agents.made("a", new).await;
    agents.made("a", entry("episodic", "learned", "charges")).await;
    let recalled =
        call("b", "memory_recall", json!({"query": "manager charges"})).await.ok()["structured"].clone();
    assert_eq!((&recalled["matched"], &recalled["facts"][0]["item_id"]), (&json!(1), &made["id"]));
    assert_eq!(recalled["facts"][0]["level"], "agent_inferred");
    // What is corrected by a tool is another version of the entry at once.
    call("a", "memory_correct", json!({"item_id": made["id"], "content": "No manager is needed"})).await.ok();
    let shown = agents.get("b", &format!("/memory/{}", id(&made))).await.ok();
    assert_eq!((&shown["value"], &shown["version"]), (&json!({"text": "No manager is needed"}), &json!(2)));
    assert_eq!((&shown["tags"], &shown["curated_by"]), (&json!([]), &json!("a")));
    agents.patch("a", &id(&made), 1, &json!({"value": {}})).await.refused(409, "conflict");
    // What a tool taught has no key, and is no entry.
    let fact = call("a", "memory_learn", json!({"content": "tea is green"})).await.ok()["structured"].clone();
    agents
        .get("a", &format!("/memory/{}", fact["item_id"].as_str().unwrap()))
        .await
        .refused(404, "not_found");
    // No grantee sees an entry.
    let granted = agents.world.ask(&agent(2), &agents.world.draft(&agent(2)), &json!({})).await;
    assert_eq!(texts(&granted), [""; 0]);
    // The owner asks what b was given.
    let given = agents.world.owner("GET", "/oap/owner/agents/b/injected", None).await.ok();
    let answers = given["answers"].as_array().unwrap();
    let tools: Vec<&str> = answers.iter().map(|answer| answer["tool"].as_str().unwrap()).collect();
    assert_eq!(tools, ["openintent.show", "memory_recall"]);
    assert_eq!(
        (&answers[0]["items"][0]["item_id"], &answers[0]["items"][0]["version"]),
        (&made["id"], &json!(2))
    );
    assert_eq!(answers[0]["items"][0]["said"], "No manager is needed");
    // A conflict tells of an entry, and so is told with a receipt.
    agents.post("b", &entry("semantic", "policy", "charges")).await.refused(409, "conflict");
    let given = agents.world.owner("GET", "/oap/owner/agents/b/injected", None).await.ok();
    assert_eq!(given["answers"].as_array().unwrap().len(), 3);
    agents.world.chains_hold().await;
}

#[tokio::test]
async fn namespaces_and_the_summary() {
    let agents = Agents::new(&[("a", "memory.write"), ("b", "memory.read")]).await;
    let mut pad = entry("working", "job", "w");
    pad["scope"] = json!({"task_id": "t1"});
    pad["value"] = json!({"x": "y".repeat(1500)});
    agents.made("a", pad).await;
    let mut pinned = entry("episodic", "learned", "e");
    pinned["pinned"] = json!(true);
    let pinned = agents.made("a", pinned).await;
    agents.made("a", entry("semantic", "policy", "s1")).await;
    agents.made("a", entry("semantic", "policy", "s2")).await;
    agents.made("a", entry("semantic", "billing/é", "s")).await;
    for (who, access) in [("a", "write"), ("b", "read")] {
        let listed = agents.get(who, "/memory/namespaces").await.ok();
        let expected = |name: &str, count: u64| {
            json!({"namespace": name, "access": access, "entry_count": count,
            "permissions": {"default": "write", "allow": []}})
        };
        assert_eq!(listed, json!({"namespaces": [expected("billing/é", 1), expected("policy", 2)]}));
        assert_eq!(agents.get(who, "/memory/namespaces/policy").await.ok(), expected("policy", 2));
        assert_eq!(
            agents.get(who, "/memory/namespaces/billing%2F%C3%A9").await.ok(),
            expected("billing/é", 1)
        );
        // What holds nobody's semantic entries is no namespace; `learned` holds an episodic one.
        for none in ["learned", "never"] {
            agents.get(who, &format!("/memory/namespaces/{none}")).await.refused(404, "not_found");
        }
    }
    let summary = agents.get("a", "/agents/a/memory/summary").await.ok();
    assert_eq!(
        summary,
        json!({
            "agent_id": "a",
            "working": {"entry_count": 1, "total_size_kb": 2, "capacity": 1000, "tasks_with_memory": ["t1"]},
            "episodic": {"entry_count": 1, "total_size_kb": 1, "pinned_count": 1, "capacity": 1000,
                "oldest_entry": pinned["created_at"], "newest_entry": pinned["created_at"]},
            "semantic_namespaces_accessible": ["billing/é", "policy"],
        })
    );
    // One's own alone; another's is as nobody's.
    for other in ["a", "nobody"] {
        agents.get("b", &format!("/agents/{other}/memory/summary")).await.refused(404, "not_found");
    }
    let summary = agents.get("b", "/agents/b/memory/summary").await.ok();
    assert_eq!(
        (&summary["working"]["entry_count"], &summary["episodic"]["entry_count"]),
        (&json!(0), &json!(0))
    );
}

/// Fills an agent's episodic tier.
async fn fill(agents: &Agents, make: impl Fn(usize) -> Value) -> Vec<Value> {
    let entries: Vec<Value> = (0..MAX_EPISODIC).map(make).collect();
    let body = json!({"entries": entries}).to_string();
    let made = agents.sends("scout", "POST", "/memory/batch", &[], Some(&body)).await.ok();
    made["entries"].as_array().unwrap().clone()
}

/// OI-07, OI-09: the lowest priority first, then what its author looked at longest ago; and gone like what is deleted.
#[tokio::test]
async fn where_the_episodic_tier_is_full_what_is_worth_least_goes() {
    let agents = Agents::new(&[("scout", "memory.write"), ("other", "memory.admin")]).await;
    let made = fill(&agents, |n| {
        let mut new = entry("episodic", "n", &format!("k{n}"));
        new["priority"] = json!(["high", "normal", "low"][usize::from(n < 4) + usize::from(n < 2)]);
        new["pinned"] = json!(n == 0);
        new
    })
    .await;
    // k0 is low and pinned, k1 low, k2 and k3 normal. k2 is looked at, and k3 is not, whoever else tries.
    agents.world.clock.advance(Duration::from_secs(1));
    agents.get("scout", &format!("/memory/{}", id(&made[2]))).await.ok();
    agents.get("other", &format!("/memory/{}", id(&made[3]))).await.refused(404, "not_found");
    for gone in [1, 3, 2] {
        let mut newest = entry("episodic", "n", &format!("after k{gone}"));
        newest["priority"] = json!("high");
        agents.made("scout", newest).await;
        agents.get("scout", &format!("/memory/{}", id(&made[gone]))).await.refused(404, "not_found");
        let page = agents.get("scout", "/memory?agent_id=scout&limit=1").await.ok();
        assert_eq!(page["total"], json!(MAX_EPISODIC));
    }
    agents.get("scout", &format!("/memory/{}", id(&made[0]))).await.ok();
    // The other tiers, and another agent, have room of their own.
    agents.made("scout", entry("working", "n", "w")).await;
    agents.made("scout", entry("semantic", "n", "s")).await;
    agents.made("other", entry("episodic", "n", "k0")).await;
    let summary = agents.get("scout", "/agents/scout/memory/summary").await.ok();
    let episodic = &summary["episodic"];
    assert_eq!((&episodic["entry_count"], &episodic["capacity"]), (&json!(1000), &json!(1000)));
    agents.world.chains_hold().await;
}

/// A batch does not move an entry to another tier; and what the owner confirmed the owner alone erases.
#[tokio::test]
async fn what_an_entry_is_stays() {
    let agents = Agents::new(&[("scout", "memory.write"), ("boss", "memory.admin")]).await;
    agents.made("scout", entry("working", "n", "k")).await;
    let mut moved = entry("episodic", "n", "k");
    moved["version"] = json!(1);
    let batch = json!({"entries": [moved]}).to_string();
    let refused = agents.sends("scout", "POST", "/memory/batch", &[], Some(&batch)).await;
    assert!(refused.refused(422, "invalid_input")["message"].as_str().unwrap().contains("memory_type"));
    let made = agents.made("scout", entry("semantic", "n", "confirmed")).await;
    let path = format!("/oap/owner/items/{}/confirm", id(&made));
    agents.world.owner("POST", &path, Some(&json!({"version": 1}))).await.ok();
    for agent in ["scout", "boss"] {
        let path = format!("/memory/{}", id(&made));
        agents.sends(agent, "DELETE", &path, &[], None).await.refused(403, "policy_block");
    }
    let answer = agents
        .sends("boss", "DELETE", "/memory/batch?namespace=n&memory_type=semantic", &[], None)
        .await
        .ok();
    assert_eq!((&answer["deleted"], &answer["remaining"]), (&json!(0), &json!(0)), "{answer}");
}

/// What the owner sends back as it was shown is the owner's word, and not the agent's that signed it before.
#[tokio::test]
async fn what_the_owner_sends_back_is_no_agents_word() {
    let agents = Agents::new(&[("a", "memory.write"), ("boss", "memory.admin")]).await;
    let made = agents.made("a", entry("semantic", "n", "k")).await;
    let path = format!("/oap/owner/items/{}", id(&made));
    let shown = agents.world.owner("GET", &path, None).await.ok()["item"].clone();
    let signs = |item: &Value| item["extensions"].get("dev.oap-memory.agent").is_some();
    assert!(signs(&shown), "{shown}");
    let changes = json!({"content": {"text": r#"{"of":"the owner"}"#}, "extensions": shown["extensions"]});
    let changes = json!({"item": changes});
    agents.world.owner("POST", &format!("{path}/correct"), Some(&changes)).await.ok();
    let corrected = agents.world.owner("GET", &path, None).await.ok()["item"].clone();
    assert!(!signs(&corrected), "{corrected}");
    assert_eq!(
        corrected["extensions"]["dev.oap-memory.openintent"],
        shown["extensions"]["dev.oap-memory.openintent"]
    );
    let history = agents.world.owner("GET", &format!("{path}/history"), None).await.ok();
    assert!(history["events"][0]["by_agent"] == true && history["events"][1]["by_agent"].is_null());
    // Under other words it is still the owner's to erase.
    agents.patch("boss", &id(&made), 2, &json!({"value": {"of": "boss"}})).await.ok();
    agents.delete("boss", &id(&made)).await.refused(403, "policy_block");
    // And what the owner writes anew.
    let mut copy = note("tea", &[]);
    copy["extensions"] = shown["extensions"].clone();
    let copy = agents.world.capture(&[copy]).await.remove(0);
    let copy = agents.world.owner("GET", &format!("/oap/owner/items/{copy}"), None).await.ok();
    assert!(!signs(&copy["item"]), "{copy}");
}

/// Who deletes what it never read was given nothing of it.
#[tokio::test]
async fn what_an_agent_deletes_it_was_not_given() {
    let agents = Agents::new(&[("a", "memory.write"), ("b", "memory.admin")]).await;
    let made = agents.made("a", entry("semantic", "n", "one")).await;
    agents.made("a", entry("semantic", "n", "two")).await;
    agents.delete("b", &id(&made)).await.ok();
    let path = "/memory/batch?namespace=n&memory_type=semantic";
    assert_eq!(agents.sends("b", "DELETE", path, &[], None).await.ok()["deleted"], 1);
    let given = agents.world.owner("GET", "/oap/owner/agents/b/injected", None).await.ok();
    assert_eq!(given["answers"], json!([]));
    // The deletions are in the log all the same.
    let log = agents.world.owner("GET", "/oap/audit?chain=@agents&limit=1000", None).await.ok();
    assert_eq!(log.to_string().matches("openintent.delete").count(), 2, "{log}");
}

/// What the owner confirmed an agent does not erase by putting other words over it: not by itself, not by a filter, not by an end, and not
/// with what it writes after it.
#[tokio::test]
async fn what_the_owner_confirmed_is_not_erased_from_under_other_words() {
    let agents = Agents::new(&[("a", "memory.write")]).await;
    let room = json!({"capacities": {"episodic": 1}});
    agents.world.owner("POST", "/oap/owner/agents/a/set", Some(&room)).await.ok();
    for tier in ["semantic", "episodic"] {
        let made = agents.made("a", entry(tier, "n", tier)).await;
        let item = format!("/oap/owner/items/{}", id(&made));
        let confirm = json!({"version": 1});
        agents.world.owner("POST", &format!("{item}/confirm"), Some(&confirm)).await.ok();
        let changed = agents.patch("a", &id(&made), 1, &json!({"value": {"of": "another"}})).await.ok();
        let version = changed["version"].as_u64().unwrap();
        agents.delete("a", &id(&made)).await.refused(403, "policy_block");
        for end in [json!({"ttl": "duration:PT1S"}), json!({"expires_at": "2026-05-01T12:01:00Z"})] {
            agents.patch("a", &id(&made), version, &end).await.refused(403, "policy_block");
        }
        let deleted = agents.sends("a", "DELETE", "/memory/batch?namespace=n", &[], None).await.ok();
        assert_eq!(deleted["deleted"], 0, "{deleted}");
        let history = agents.world.owner("GET", &format!("{item}/history"), None).await.ok();
        assert_eq!(history["events"][0]["content"], "kept", "{history}");
    }
    agents.post("a", &entry("episodic", "n", "more")).await.refused(429, "capacity_exceeded");
}

/// Other tags make a version of the same words: what was confirmed of them holds when the first version is long gone.
#[tokio::test]
async fn what_was_confirmed_stays_so_under_other_tags() {
    let agents = Agents::new(&[("a", "memory.write")]).await;
    let made = agents.made("a", entry("semantic", "n", "k")).await;
    let confirm = json!({"version": 1});
    let item = format!("/oap/owner/items/{}", id(&made));
    agents.world.owner("POST", &format!("{item}/confirm"), Some(&confirm)).await.ok();
    let labels = json!({"labels": ["x"]});
    agents.world.owner("POST", &format!("{item}/relabel"), Some(&labels)).await.ok();
    agents.world.clock.advance(Duration::from_secs(40 * 86_400));
    oap_gateway::service::Deletions(&agents.world.gateway).sweep().await.unwrap();
    let shown = agents.world.owner("GET", &item, None).await.ok();
    let version = shown["item"]["version"].as_u64().unwrap();
    agents.patch("a", &id(&made), version, &json!({"value": {"of": "another"}})).await.ok();
    agents.delete("a", &id(&made)).await.refused(403, "policy_block");
}

/// Of the other tiers nothing goes for what is new; and what comes in batches is counted by entries.
#[tokio::test]
async fn a_scratch_pad_has_a_bound_and_so_have_batches() {
    let agents = Agents::scout().await;
    let batch = |round: usize, tier: &str| {
        let entries: Vec<Value> =
            (0..MAX_ENTRIES).map(|n| entry(tier, "n", &format!("k{}", round * MAX_ENTRIES + n))).collect();
        json!({"entries": entries}).to_string()
    };
    agents.sends("scout", "POST", "/memory/batch", &[], Some(&batch(0, "working"))).await.ok();
    let refused =
        agents.post("scout", &entry("working", "n", "more")).await.refused(429, "capacity_exceeded");
    assert_eq!((&refused["current_count"], &refused["max_capacity"]), (&json!(1000), &json!(1000)));
    agents.made("scout", entry("semantic", "n", "more")).await;
    let page = agents.get("scout", "/memory?agent_id=scout&memory_type=working&limit=1").await.ok();
    assert_eq!(page["total"], json!(MAX_WORKING));
    // Refused or not: whoever asks for so much is asked to wait.
    for allowed in [true, true, false] {
        let answer = agents.sends("scout", "POST", "/memory/batch", &[], Some(&batch(0, "working"))).await;
        let code = answer
            .refused(if allowed { 409 } else { 429 }, if allowed { "conflict" } else { "rate_limited" });
        assert!(code["message"].is_string());
    }
    agents.world.clock.advance(Duration::from_secs(60));
    let one = json!({"entries": [entry("semantic", "n", "one")]}).to_string();
    agents.sends("scout", "POST", "/memory/batch", &[], Some(&one)).await.ok();
}

/// OI-08, OI-26.
#[tokio::test]
async fn where_all_are_pinned_there_is_no_room() {
    let agents = Agents::scout().await;
    let made = fill(&agents, |n| {
        let mut new = entry("episodic", "n", &format!("k{n}"));
        new["pinned"] = json!(true);
        new
    })
    .await;
    let refused =
        agents.post("scout", &entry("episodic", "n", "more")).await.refused(429, "capacity_exceeded");
    assert_eq!((&refused["current_count"], &refused["max_capacity"]), (&json!(1000), &json!(1000)));
    assert!(refused["message"].is_string() && refused["request_id"].is_string());
    // What is there still changes; and what is no longer pinned makes room, unless it is held.
    agents.patch("scout", &id(&made[7]), 1, &json!({"pinned": false})).await.ok();
    let hold = json!({"items": [made[7]["id"]], "reason": "legal_hold", "until": "2099-01-01T00:00:00Z"});
    agents.world.owner("POST", "/oap/owner/holds", Some(&hold)).await.ok();
    agents.post("scout", &entry("episodic", "n", "more")).await.refused(429, "capacity_exceeded");
    let ended = json!({"items": [made[7]["id"]]});
    agents.world.owner("POST", "/oap/owner/holds/release", Some(&ended)).await.ok();
    agents.made("scout", entry("episodic", "n", "more")).await;
    agents.get("scout", &format!("/memory/{}", id(&made[7]))).await.refused(404, "not_found");
}

/// Entries outlive the process that wrote them.
#[tokio::test]
async fn entries_are_there_after_a_restart() {
    let (kept, world) = Kept::new().await;
    let agents = Agents::of(world, &[("scout", "memory.write")]).await;
    let made = agents.made("scout", entry("episodic", "n", "k")).await;
    let keys = agents.keys.clone();
    drop(agents);
    let agents = Agents { world: kept.open_at("2026-05-02T00:00:00.000Z".parse().unwrap()).await, keys };
    assert_eq!(agents.get("scout", &format!("/memory/{}", id(&made))).await.ok(), made);
    agents.post("scout", &entry("episodic", "n", "k")).await.refused(409, "conflict");
}

/// What an agent keeps to itself.
#[derive(Debug, Clone)]
struct Hidden {
    tier: &'static str,
    namespace: &'static str,
    key: &'static str,
    tags: Vec<&'static str>,
    pinned: bool,
    ends: bool,
    becomes: u8,
}

fn hidden() -> impl Strategy<Value = Hidden> {
    let tier = prop::sample::select(vec!["working", "episodic"]);
    let namespace = prop::sample::select(vec!["policy", "learned", "job"]);
    let key = prop::sample::select(vec!["k1", "k2", "k3", "k4"]);
    let tags = prop::collection::vec(prop::sample::select(vec!["x", "y"]), 0..3);
    (tier, namespace, key, tags, any::<bool>(), any::<bool>(), 0..4_u8).prop_map(
        |(tier, namespace, key, tags, pinned, ends, becomes)| Hidden {
            tier,
            namespace,
            key,
            tags,
            pinned,
            ends,
            becomes,
        },
    )
}

/// The ids, hashes and numbers that differ between any two gateways, each by the order in which it is met.
fn plain(text: &str, met: &mut BTreeMap<String, usize>) -> String {
    let (mut out, mut rest) = (String::new(), text);
    let begins = |text: &str| {
        ["mem_", "evt_", "\"request_id\":\""].iter().filter_map(|p| Some(text.find(p)? + p.len())).min()
    };
    while let Some(at) = begins(rest) {
        out.push_str(&rest[..at]);
        let end = rest[at..].find(|c: char| !c.is_ascii_alphanumeric()).map_or(rest.len(), |end| at + end);
        let next = met.len();
        out.push_str(&format!("#{}", *met.entry(rest[at..end].to_owned()).or_insert(next)));
        rest = &rest[end..];
    }
    out + rest
}

/// Everything that agent A is told, while B hides this.
async fn transcript(seed: u64, shown: &[(&'static str, &'static str)], hides: &[Hidden]) -> Vec<String> {
    let world = World::with(seed, oap_gateway::system::config::Config::default()).await;
    let agents = Agents::of(world, &[("a", "memory.admin"), ("b", "memory.admin")]).await;
    let mut mine = Vec::new();
    for (number, (tier, key)) in shown.iter().enumerate() {
        let who = if *tier == "semantic" { ["a", "b"][number % 2] } else { "a" };
        let answer = agents.post(who, &entry(tier, "policy", key)).await;
        mine.extend(answer.body["id"].as_str().map(str::to_owned));
    }
    let (mut said, mut met, mut secrets) = (Vec::new(), BTreeMap::new(), Vec::new());
    for round in 0..2_i64 {
        // What is hidden took its time.
        agents.world.clock.set(Timestamp::from_millis(START + 600_000 * (round + 1)));
        let mut told = Vec::new();
        for query in [
            "agent_id=a",
            "agent_id=b",
            "agent_id=b&memory_type=working",
            "memory_type=semantic",
            "scope.task_id=t",
            "agent_id=b&namespace=*",
            "agent_id=b&tags=x",
            "agent_id=b&pinned=true",
            "memory_type=semantic&limit=1&offset=1",
        ] {
            told.push(agents.get("a", &format!("/memory?{query}")).await);
        }
        for path in [
            "/agents/a/memory",
            "/agents/b/memory",
            "/agents/a/memory/summary",
            "/agents/b/memory/summary",
            "/memory/namespaces",
            "/memory/namespaces/policy",
            "/memory/namespaces/learned",
            "/memory/namespaces/job",
            "/agents/a/events",
            "/agents/b/events",
            "/agents/b/memory/learned",
            "/agents/b/memory/learned/k1",
            "/agents/a/memory/policy/k1",
            "/memory/search?q=k1",
            "/memory/search?q=x",
        ] {
            told.push(agents.get("a", path).await);
        }
        for id in &mine {
            told.push(agents.get("a", &format!("/memory/{id}")).await);
        }
        // What is there and hidden answers as what never was.
        for id in secrets.iter().map(String::as_str).chain([NEVER]) {
            let answers = [
                agents.get("a", &format!("/memory/{id}")).await,
                agents.patch("a", id, 1, &json!({"value": {}})).await,
                agents.delete("a", id).await,
            ];
            for answer in answers {
                let mut refused = answer.refused(404, "not_found");
                refused.as_object_mut().unwrap().remove("request_id");
                assert_eq!(refused, json!({"error": "not_found", "message": "nothing of that name here"}));
            }
        }
        // What B took of keys, A finds free; and it says itself what it finds taken.
        agents.world.clock.set(Timestamp::from_millis(START + 600_000 * (round + 1) + 300_000));
        for key in ["k1", "k2", "k3", "k4"] {
            for (tier, namespace) in [("working", "learned"), ("episodic", "job"), ("semantic", "policy")] {
                told.push(agents.post("a", &entry(tier, namespace, key)).await);
            }
        }
        told.push(agents.sends("a", "DELETE", "/memory/batch?namespace=job", &[], None).await);
        for answer in told {
            let text = String::from_utf8(answer.bytes).unwrap();
            said.push(format!("{} {}", answer.status, plain(&text, &mut met)));
        }
        if round == 0 {
            for hides in hides {
                let mut new = entry(hides.tier, hides.namespace, hides.key);
                new["tags"] = json!(hides.tags);
                new["pinned"] = json!(hides.pinned);
                new["scope"] = json!({"task_id": "t"});
                if hides.ends {
                    new["ttl"] = json!("duration:PT1M");
                }
                let answer = agents.post("b", &new).await;
                let Some(id) = answer.body["id"].as_str().map(str::to_owned) else { continue };
                match hides.becomes {
                    0 => drop(agents.patch("b", &id, 1, &json!({"value": {"n": 1}})).await.ok()),
                    1 => drop(agents.delete("b", &id).await.ok()),
                    2 => drop(agents.get("b", "/memory?agent_id=b").await.ok()),
                    _ => {}
                }
                secrets.push(id);
            }
        }
    }
    said
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 10, ..ProptestConfig::default() })]

    /// *Non-interference between agents*: whatever B keeps to itself, how much of it there is, which keys it takes and what becomes of
    /// it, A is told the same, fresh values aside.
    #[test]
    fn an_agent_learns_nothing_of_anothers_entries(
        shown in prop::collection::vec(
            (prop::sample::select(vec!["working", "episodic", "semantic"]), prop::sample::select(vec!["k1", "k2", "k3"])), 0..5),
        one in prop::collection::vec(hidden(), 0..5),
        two in prop::collection::vec(hidden(), 0..5),
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let [one, two] = [(1, one), (2, two)]
            .map(|(seed, hides)| runtime.block_on(transcript(seed, &shown, &hides)));
        prop_assert_eq!(one, two);
    }
}

/// The property would be red if there were nothing to tell: what is shared does differ.
#[tokio::test]
async fn what_is_shared_is_told() {
    let one = transcript(1, &[("semantic", "k1")], &[]).await;
    let two = transcript(2, &[("semantic", "k1"), ("semantic", "k2")], &[]).await;
    assert_ne!(one, two);
}

/// Every place of a value, with something else in it.
fn spoiled(value: &Value, with: &Value) -> Vec<Value> {
    let mut found = vec![with.clone(), json!([with]), json!({"Canary7f3a": with})];
    let mut each = |put: &dyn Fn(&mut Value) -> Option<&mut Value>, part: &Value| {
        for other in spoiled(part, with) {
            let mut whole = value.clone();
            if let Some(place) = put(&mut whole) {
                *place = other;
            }
            found.push(whole);
        }
    };
    match value {
        Value::Object(members) => {
            members.iter().for_each(|(name, part)| each(&|whole| whole.get_mut(name), part));
            let mut more = value.clone();
            more["Canary7f3a"] = with.clone();
            found.push(more);
        }
        Value::Array(elements) => {
            elements.iter().enumerate().for_each(|(n, part)| each(&|whole| whole.get_mut(n), part));
        }
        _ => {}
    }
    found
}

/// A message names the field and never quotes what was sent (protocol section 1).
#[tokio::test]
async fn no_refusal_quotes_what_was_sent() {
    let config = oap_gateway::system::config::Config::default();
    let agents = Agents::of(World::with(1, config).await, &[("scout", "memory.write")]).await;
    let whole = json!({
        "agent_id": "scout", "namespace": "n", "key": "k", "value": {"a": [1]}, "memory_type": "working",
        "scope": {"task_id": "t", "intent_id": "i"}, "tags": ["x"], "ttl": "task_lifetime", "pinned": true,
        "expires_at": "2027-01-01T00:00:00Z", "priority": "low", "sensitivity": "public", "curated_by": "scout", "version": 1,
    });
    let change = json!({"value": {"a": 1}, "tags": ["x"], "ttl": null, "expires_at": null, "pinned": true, "priority": "low"});
    let mut asked: Vec<(&str, String, String)> = Vec::new();
    for canary in [json!("eyJCanary7f3a"), json!("did:web:canary-7f3a.invalid"), json!(31_415_926_535_u64)] {
        let text = canary.as_str().unwrap_or("31415926535");
        for body in spoiled(&whole, &canary) {
            asked.push(("POST", "/memory".to_owned(), body.to_string()));
            asked.push(("POST", "/memory/batch".to_owned(), json!({"entries": [body]}).to_string()));
        }
        for body in spoiled(&change, &canary) {
            asked.push(("PATCH", format!("/memory/{NEVER}"), body.to_string()));
        }
        for path in [
            "/memory/{}",
            "/memory/namespaces/{}",
            "/agents/{}/memory/summary",
            "/memory?memory_type={}",
            "/memory?{}=1",
            "/memory?memory_type=semantic&limit={}",
            "/memory?memory_type=semantic&updated_after={}",
            "/memory?memory_type=semantic&pinned={}",
        ] {
            asked.push(("GET", path.replace("{}", text), String::new()));
        }
        for body in [
            text.to_owned(),
            format!("{{\"{text}\":"),
            format!("{{\"value\":{{\"{text}\":1,\"{text}\":2}}}}"),
        ] {
            asked.push(("POST", "/memory".to_owned(), body));
        }
    }
    let mut refused = 0;
    for (method, path, body) in asked {
        // An agent has so many requests a minute.
        agents.world.clock.advance(Duration::from_millis(200));
        let answer = agents.sends("scout", method, &path, &[("if-match", "1")], Some(&body)).await;
        if answer.status.as_u16() < 400 {
            continue;
        }
        refused += 1;
        let text = String::from_utf8_lossy(&answer.bytes).into_owned();
        // What stands in the way is the agent's own to see.
        let said = answer.body["message"].as_str().unwrap_or_else(|| panic!("{path}: {text}"));
        assert!(
            !["eyJ", "anary", "7f3a", "31415926535"].iter().any(|part| said.contains(part)),
            "{path} {body}: {said}"
        );
    }
    assert!(refused > 200, "{refused}");
}

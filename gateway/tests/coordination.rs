//! Agents that work together (docs/openintent.md): roles and room, an agent's own key, tasks, what they let others read and for how long,
//! the events of entries, guardrails; and who tries to see more.

mod attacks;
mod entries;
mod overtaken;
mod own_key;
mod tasks;
mod upkeep;

use crate::common::*;
use axum::body::Body;
use axum::http::Request;
use oap_grants::dpop;
use oap_identity::Signer;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::time::Duration;

const AGENTS: &str = "/oap/owner/agents";

/// Agents, by name, and their keys.
struct Team {
    world: World,
    keys: BTreeMap<&'static str, String>,
}

impl Team {
    /// A coordinator named `lead`, and workers.
    async fn new(workers: &[&'static str]) -> Self {
        Self::on(World::new().await, workers).await
    }

    async fn on(world: World, workers: &[&'static str]) -> Self {
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

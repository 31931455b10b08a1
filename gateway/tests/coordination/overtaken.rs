//! Writes of agents that something else overtakes between their plan and their commit.

use super::*;
use oap_gateway::state::schema::TERMS;
use oap_gateway::state::terms::Terms;
use oap_identity::Did;
use std::sync::mpsc::{Sender, channel};
use tokio::sync::oneshot;

/// Holds up the writer until something is sent.
async fn held_up(team: &Team) -> Sender<()> {
    let (go, wait) = channel();
    let (begun, begins) = oneshot::channel();
    let gateway = team.world.gateway.clone();
    tokio::spawn(async move {
        let waiting = gateway.commit(move |_| {
            let _ = begun.send(());
            let _ = wait.recv();
            Ok(())
        });
        waiting.await
    });
    begins.await.unwrap();
    go
}

/// What comes of a request that is planned while another waits for the writer, which comes first: the writer goes on when both wait
/// for it, so that the plan was made before.
pub async fn behind<T>(
    team: &Team,
    first: impl Future<Output = T>,
    second: impl Future<Output = Answer>,
) -> (T, Answer) {
    let go = held_up(team).await;
    let second = async {
        team.world.writes_wait(1).await;
        second.await
    };
    let release = async {
        team.world.writes_wait(2).await;
        go.send(()).unwrap();
    };
    let (first, second, ()) = tokio::join!(first, second, release);
    (first, second)
}

/// Each attempt at a batch is counted; and what is no working entry makes it no second one.
#[tokio::test]
async fn each_attempt_at_a_batch_is_counted() {
    let team = Team::new(&["b"]).await;
    let intent = team.intent(json!({})).await;
    let task = team.task(&intent, "b", json!({"memory_policy": {"max_entries": 100}})).await;
    let work = team.note("b", &task, "taken", json!({})).await;
    let lesson = team.note("b", "none", "lesson", json!({"memory_type": "episodic"})).await;
    let batch = |keys: Vec<String>| json!({"entries": keys.iter().map(|key| noted(&task, key, &json!({}))).collect::<Vec<_>>()});
    // What is refused at its first entry is counted, too: 2,993 of the 3,000 of a minute.
    for count in [1000, 1000, 993] {
        let keys = std::iter::once("taken".to_owned()).chain((1..count).map(|n| format!("k{n}")));
        team.post("b", "/memory/batch", batch(keys.collect())).await.refused(409, "conflict");
    }
    let three = |name: &str| batch((0..3).map(|n| format!("{name}{n}")).collect());
    let patch = |item: &str| {
        let path = format!("/memory/{item}");
        let team = &team;
        async move { team.patch("b", &path, 1, json!({"value": {"n": 2}})).await }
    };
    // Three more, once.
    let (patched, made) =
        behind(&team, patch(&lesson), team.post("b", "/memory/batch", three("beside"))).await;
    patched.ok();
    made.ok();
    // Where it is overtaken it is counted twice, and not refused for it: three and three of the four that are left.
    let (patched, made) =
        behind(&team, patch(&work), team.post("b", "/memory/batch", three("overtaken"))).await;
    patched.ok();
    made.ok();
    team.post("b", "/memory/batch", batch(vec!["later".to_owned()])).await.refused(429, "rate_limited");
}

pub async fn did(team: &Team, who: &str) -> Did {
    let known = team.world.owner("GET", AGENTS, None).await.ok();
    let known = known["agents"].as_array().unwrap().iter().find(|agent| agent["name"] == who).cloned();
    known.unwrap()["did"].as_str().unwrap().parse().unwrap()
}

/// Sets what the owner says of an agent, by the writer alone: a request of the owner's has a proof to store before.
async fn terms(team: &Team, who: Did, terms: Value) {
    let terms: Terms = serde_json::from_value(terms).unwrap();
    team.world.gateway.commit(move |w| Ok(TERMS.put(w.tx, &who, &terms)?)).await.unwrap();
}

/// What a write rests on is read again with its commit: the role behind a guardrail, and what the owner pins.
#[tokio::test]
async fn roles_and_pins_of_meanwhile_hold() {
    let team = Team::new(&["b"]).await;
    let intent = team.intent(json!({"denied_semantic_namespaces": ["plans"]})).await;
    team.task(&intent, "b", json!({})).await;
    team.set("lead", json!({"role": "worker"})).await.ok();
    let (lead, b) = (did(&team, "lead").await, did(&team, "b").await);
    let many = json!({"working": 1000, "episodic": 1000, "semantic": 1000});
    let leads = json!({"role": "coordinator", "capacities": many, "pinned_namespaces": []});
    let plan = json!({"namespace": "plans", "key": "k", "value": {}, "memory_type": "semantic"});
    let ((), refused) = behind(&team, terms(&team, lead, leads), team.post("b", "/memory", plan)).await;
    refused.refused(403, "guardrail_violation");
    team.set("b", json!({"capacities": {"episodic": 1}})).await.ok();
    let first = team.note("b", "none", "first", json!({"memory_type": "episodic"})).await;
    let one = json!({"working": 1000, "episodic": 1, "semantic": 1000});
    let pinned = json!({"role": "worker", "capacities": one, "pinned_namespaces": ["job"]});
    let second = noted("none", "second", &json!({"memory_type": "episodic"}));
    let ((), refused) = behind(&team, terms(&team, b, pinned), team.post("b", "/memory", second)).await;
    refused.refused(429, "capacity_exceeded");
    team.get("b", &format!("/memory/{first}")).await.ok();
}

//! The owner changes the write policy while calls of agents are under way: what they are answered and write is by what holds then.

use super::{held_up, queued};
use crate::common::*;
use oap_gateway::api::policy::{Change, Policy};
use oap_gateway::service::Policies;
use oap_gateway::state::owner::{Owner, mark::Admin};
use serde_json::{Value, json};
use std::time::Duration;

/// Sends an agent's request while a change of the policy waits before it.
async fn meanwhile(
    world: &World,
    owner: &Owner<Admin>,
    change: Value,
    key: &str,
    (path, body): (&str, Value),
) -> Answer {
    let go = held_up(&world.gateway).await;
    let (gateway, by) = (world.gateway.clone(), owner.clone());
    let change: Change = serde_json::from_value(change).unwrap();
    let set = queued(async move { Policies(&gateway).set(&by, change).await }).await;
    let release = async {
        world.writes_wait(2).await;
        go.send(()).unwrap();
    };
    let headers = [("x-api-key", key)];
    let (answer, ()) = tokio::join!(world.raw("POST", path, &headers, Some(&body)), release);
    let _: Policy = set.await.unwrap().unwrap();
    answer
}

/// An agent, its key, and a fact of its own.
async fn agent(world: &World) -> (String, Value) {
    let new = json!({"name": "scout", "permission": "memory.write"});
    let made = world.owner("POST", "/oap/owner/agents", Some(&new)).await.ok();
    let key = made["api_key"].as_str().unwrap().to_owned();
    let learn = json!({"tool": "memory_learn", "arguments": {"content": "The lake is deep"}});
    let learned = world.raw("POST", "/oap/agent/call", &[("x-api-key", &key)], Some(&learn)).await.ok();
    (key, learned["structured"]["item_id"].clone())
}

#[tokio::test]
async fn what_agents_may_write_is_read_again() {
    let world = World::new().await;
    let owner = world.proved().await;
    let (key, lake) = agent(&world).await;
    for (path, body) in [
        ("/oap/agent/call", json!({"tool": "memory_learn", "arguments": {"content": "late"}})),
        (
            "/oap/agent/call",
            json!({"tool": "memory_correct", "arguments": {"item_id": lake, "content": "late"}}),
        ),
        ("/api/v1/memory", json!({"namespace": "n", "key": "k", "value": {}, "memory_type": "episodic"})),
    ] {
        let never = json!({"untyped": {"kept": false}});
        meanwhile(&world, &owner, never, &key, (path, body)).await.refused(403, "policy_block");
        let again: Change = serde_json::from_value(json!({"untyped": {"kept": true}})).unwrap();
        Policies(&world.gateway).set(&owner, again).await.unwrap();
    }
    world.chains_hold().await;
}

#[tokio::test]
async fn how_an_answer_is_believed_is_read_again() {
    let world = World::new().await;
    let (key, _) = agent(&world).await;
    world.clock.advance(Duration::from_secs(3 * 86_400));
    let owner = world.proved().await;
    let asks = "SELECT ?sure WHERE { ?fact a brain:Fact ; brain:confidence ?sure }";
    for (tool, arguments, at) in [
        ("memory_query", json!({}), "/facts/0/confidence"),
        ("memory_query", json!({"sparql": asks}), "/sparql/results/bindings/0/sure/value"),
    ] {
        let body = json!({"tool": tool, "arguments": arguments});
        let off = json!({"decay": {"step": 0, "period_hours": 0, "least": 0}});
        let answer = meanwhile(&world, &owner, off, &key, ("/oap/agent/call", body)).await.ok();
        let sure = answer["structured"].pointer(at).unwrap();
        assert!(*sure == json!(0.6) || *sure == json!("0.6"), "{answer}");
        let on: Change =
            serde_json::from_value(json!({"decay": {"step": 5, "period_hours": 24, "least": 30}})).unwrap();
        Policies(&world.gateway).set(&owner, on).await.unwrap();
    }
}

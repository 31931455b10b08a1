//! Trails ADR-0051: recall by five parts, what was remembered at a time, what is usual for agents, and what they say again.

use crate::common::*;
mod again;
mod settings;
mod then;

use oap_gateway::system::config::Config;
use serde_json::{Value, json};
use std::time::Duration;

const HOUR: Duration = Duration::from_secs(3600);
const DAY: Duration = Duration::from_secs(86_400);
const NEVER: &str = "mem_01J9V8B7H1ZK4D2A0M9R8F0KQX";

/// A world with two agents that write and one that may change everything.
async fn agents(config: Config) -> World {
    let world = World::with(1, config).await;
    for (name, permission) in
        [("scout", "memory.write"), ("editor", "memory.write"), ("chief", "memory.admin")]
    {
        let new = json!({"name": name, "permission": permission});
        world.owner("POST", "/oap/owner/agents", Some(&new)).await.ok();
    }
    world
}

async fn uses(world: &World, agent: &str, tool: &str, arguments: Value) -> Answer {
    let call = json!({"tool": tool, "arguments": arguments});
    world.owner("POST", &format!("/oap/owner/agents/{agent}/call"), Some(&call)).await
}

async fn told(world: &World, agent: &str, tool: &str, arguments: Value) -> Value {
    uses(world, agent, tool, arguments).await.ok()["structured"].clone()
}

async fn learned(world: &World, agent: &str, arguments: Value) -> String {
    told(world, agent, "memory_learn", arguments).await["item_id"].as_str().unwrap().to_owned()
}

async fn link(world: &World, agent: &str, from: &str, to: &str) -> String {
    let link = json!({"item_id": from, "to": to, "relationship": "supports"});
    told(world, agent, "memory_link", link).await["link_id"].as_str().unwrap().to_owned()
}

fn facts(answer: &Value) -> Vec<Value> {
    answer["facts"].as_array().unwrap().clone()
}

fn contents(answer: &Value) -> Vec<String> {
    facts(answer).iter().map(|fact| fact["content"].as_str().unwrap().to_owned()).collect()
}

/// The newest receipt of what agents were given.
async fn last_receipt(world: &World) -> Value {
    let recorded = world.owner("GET", "/oap/audit?chain=@agents&limit=1000", None).await.ok();
    let receipts = recorded["receipts"].as_array().unwrap();
    let answers = |receipt: &&Value| receipt["policy_decisions"][0]["tool"].is_string();
    // The newest comes first.
    receipts.iter().find(answers).unwrap().clone()
}

/// The parts of a fact's score, and whether they sum to it.
fn parts(fact: &Value) -> [f64; 5] {
    let part = |name: &str| fact["score_parts"][name].as_f64().unwrap();
    let parts = [part("text"), part("topic"), part("recency"), part("confidence"), part("graph")];
    let sum: f64 = parts.iter().sum();
    assert!((sum - fact["score"].as_f64().unwrap()).abs() < 1e-9, "{fact}");
    assert!(parts.iter().all(|part| (0.0..=1.0).contains(part)), "{fact}");
    parts
}

#[tokio::test]
async fn recall_tells_the_five_parts_whose_sum_its_score_is() {
    let world = agents(Config::default()).await;
    let runs =
        learned(&world, "scout", json!({"content": "Trains to Lisbon run daily", "topic": "trains"})).await;
    let hills =
        learned(&world, "scout", json!({"content": "Lisbon has seven hills and many old trams"})).await;
    let pass = learned(&world, "scout", json!({"content": "Buy the green rail pass"})).await;
    let made = link(&world, "scout", &runs, &pass).await;

    let recalled = told(&world, "editor", "memory_recall", json!({"query": "Lisbon trains"})).await;
    let found = facts(&recalled);
    assert_eq!((found.len(), &recalled["matched"]), (2, &json!(2)), "{recalled}");
    assert_eq!((&found[0]["item_id"], &found[1]["item_id"]), (&json!(runs), &json!(hills)));
    let [text, topic, recency, confidence, graph] = parts(&found[0]);
    // The best match has all that words can give, and its topic is asked for by its word.
    assert!((text - 0.7).abs() < 1e-9 && (topic - 0.1).abs() < 1e-9, "{recalled}");
    assert!(recency > 0.049 && (confidence - 0.03).abs() < 1e-9 && graph == 0.0, "{recalled}");
    let [text, topic, ..] = parts(&found[1]);
    assert!(text < 0.7 && text > 0.0 && topic == 0.0, "{recalled}");

    // What is linked to what is named counts more, and is found without a word of the question.
    let near = json!({"query": "Lisbon trains", "near": [runs]});
    let recalled = told(&world, "editor", "memory_recall", near).await;
    let found = facts(&recalled);
    let green = found.iter().find(|fact| fact["item_id"] == json!(pass)).unwrap();
    let [text, _, _, _, graph] = parts(green);
    assert!(text == 0.0 && (graph - 0.05).abs() < 1e-9, "{recalled}");
    let own = found.iter().find(|fact| fact["item_id"] == json!(runs)).unwrap();
    assert!((parts(own)[4] - 0.1).abs() < 1e-9, "{recalled}");
    // The answer says by its receipt which links it told of.
    let receipt = last_receipt(&world).await;
    assert_eq!(receipt["policy_decisions"][0]["links"], json!([made]), "{receipt}");
    assert!(
        uses(&world, "editor", "memory_recall", json!({"query": "x", "near": ["mem_x"]})).await.status == 400
    );
    world.chains_hold().await;
}

/// What an agent does not see makes nothing near, and is as what never was.
#[tokio::test]
async fn what_is_hidden_makes_nothing_near() {
    let world = agents(Config::default()).await;
    let open = learned(&world, "scout", json!({"content": "The harbour is open"})).await;
    let far = learned(&world, "scout", json!({"content": "Nets are mended"})).await;
    let secret = learned(&world, "scout", json!({"content": "A hidden cove", "scope": "private"})).await;
    link(&world, "scout", &open, &secret).await;
    link(&world, "scout", &secret, &far).await;
    let asked = async |agent: &str, near: &str| {
        told(&world, agent, "memory_recall", json!({"query": "harbour", "near": [near]})).await
    };
    // Its author goes the whole way, somebody else no step of it.
    assert_eq!(contents(&asked("scout", &open).await).len(), 3);
    assert_eq!(contents(&asked("editor", &open).await), ["The harbour is open"]);
    assert_eq!(asked("editor", &secret).await, asked("editor", NEVER).await);
    // A link of an agent's that is gone leads nowhere.
    link(&world, "scout", &open, &far).await;
    assert_eq!(contents(&asked("editor", &open).await).len(), 2);
    world.owner("POST", "/oap/owner/agents/scout/remove", None).await.ok();
    assert_eq!(contents(&asked("editor", &open).await), ["The harbour is open"]);
}

#[tokio::test]
async fn recall_keeps_to_an_age_and_to_the_weights_of_the_owner() {
    let only_new = json!({"text": 0, "topic": 0, "recency": 1, "confidence": 0, "graph": 0});
    for (weights, first) in
        [(None, "Tea, tea and more tea"), (Some(only_new), "Somebody drinks tea in the afternoon at work")]
    {
        let usual = Config::default();
        let recall_weights =
            weights.map_or(usual.recall_weights, |weights| serde_json::from_value(weights).unwrap());
        let world = agents(Config { recall_weights, ..usual }).await;
        let tool = |content: &str| json!({"content": content, "level": "tool_verified"});
        learned(&world, "scout", tool("Tea, tea and more tea")).await;
        world.clock.advance(DAY);
        learned(&world, "scout", tool("Somebody drinks tea in the afternoon at work")).await;
        world.clock.advance(HOUR);
        let recalled = told(&world, "editor", "memory_recall", json!({"query": "tea"})).await;
        assert_eq!(contents(&recalled)[0], first, "{recalled}");
        for (age, count) in [("PT1H", 1), ("PT59M", 0), ("P1DT1H", 2), ("P1W", 2)] {
            let asked = json!({"query": "tea", "max_age": age});
            let recalled = told(&world, "editor", "memory_recall", asked).await;
            assert_eq!(recalled["matched"], json!(count), "{age}: {recalled}");
        }
        for age in ["P1M", "1D", "", "P0D", "-P1D"] {
            let refused =
                uses(&world, "editor", "memory_recall", json!({"query": "tea", "max_age": age})).await;
            assert!(refused.refused(400, "invalid_input")["message"].as_str().unwrap().contains("max_age"));
        }
    }
}

//! What becomes of what agents wrote as time goes by: decay, warnings, the end of each type; and the owner's policy.

use super::{DAY, agents, everything, learned, owner_item, uses};
use crate::common::*;
use oap_identity::Timestamp;
use serde_json::{Value, json};

/// Has scout learn something; its id.
async fn id_of(world: &World, arguments: Value) -> String {
    learned(world, arguments).await["structured"]["item_id"].as_str().unwrap().to_owned()
}

/// A fact as an agent is given it, if it is.
async fn fact(world: &World, agent: &str, id: &str) -> Option<Value> {
    let listed = uses(world, agent, "memory_query", json!({"limit": 100})).await.ok();
    let facts = listed["structured"]["facts"].as_array().unwrap().clone();
    facts.into_iter().find(|fact| fact["item_id"] == id)
}

async fn policy(world: &World, change: Value) -> Answer {
    world.owner("POST", "/oap/owner/policy", Some(&change)).await
}

#[tokio::test]
async fn what_an_agent_concluded_is_believed_less_from_day_to_day() {
    let world = agents().await;
    let lake = id_of(&world, json!({"content": "The lake is deep", "topic": "lakes"})).await;
    let checked = id_of(&world, json!({"content": "The lake is cold", "level": "tool_verified"})).await;
    let confirmed = id_of(&world, json!({"content": "The lake is green"})).await;
    let confirm = json!({"version": 1});
    world.owner("POST", &format!("/oap/owner/items/{confirmed}/confirm"), Some(&confirm)).await.ok();
    assert_eq!(fact(&world, "chief", &lake).await.unwrap()["confidence"], 0.6);
    // Other labels are no words: nothing begins anew with them.
    world.clock.advance(DAY * 2);
    let labels = json!({"labels": ["water"]});
    world.owner("POST", &format!("/oap/owner/items/{lake}/relabel"), Some(&labels)).await.ok();
    world.clock.advance(DAY);
    let recalled = uses(&world, "chief", "memory_recall", json!({"query": "deep"})).await.ok();
    assert_eq!(recalled["structured"]["facts"][0]["confidence"], 0.45);
    assert!(recalled["text"].as_str().unwrap().contains("confidence=\"0.45\""), "{recalled}");
    for (least, found) in [(0.45, 1), (0.46, 0)] {
        let asked = json!({"query": "deep", "min_confidence": least});
        let recalled = uses(&world, "chief", "memory_recall", asked).await.ok();
        assert_eq!(recalled["structured"]["facts"].as_array().unwrap().len(), found, "{least}");
    }
    world.clock.advance(DAY * 3);
    assert_eq!(fact(&world, "chief", &lake).await.unwrap()["confidence"], 0.3);
    // At a quarter it is believed no more: no agent is given it by whatever it asks.
    world.clock.advance(DAY);
    for agent in ["chief", "scout"] {
        assert!(fact(&world, agent, &lake).await.is_none(), "{agent}");
        let recalled = uses(&world, agent, "memory_recall", json!({"query": "deep"})).await.ok();
        assert_eq!(
            (&recalled["structured"]["matched"], &recalled["structured"]["facts"]),
            (&json!(0), &json!([]))
        );
    }
    uses(&world, "chief", "memory_explain", json!({"item_id": lake})).await.refused(404, "not_found");
    // Its author is told what became of it, and the owner has it as it was written: nothing of it was stored.
    let explained = uses(&world, "scout", "memory_explain", json!({"item_id": lake})).await.ok();
    assert_eq!(explained["structured"]["fact"]["confidence"], 0.25);
    let stored = owner_item(&world, &lake).await;
    assert_eq!(
        (&stored["item"]["status"], &stored["item"]["provenance"]["confidence"]),
        (&json!("current"), &json!(0.6))
    );
    let plan = uses(&world, "chief", "memory_compact", json!({})).await.ok();
    assert_eq!(plan["structured"]["going"], json!([{"item_id": lake, "because": "unsure"}]));
    // Nothing else decays.
    assert_eq!(fact(&world, "chief", &checked).await.unwrap()["confidence"], 0.9);
    assert_eq!(fact(&world, "chief", &confirmed).await.unwrap()["confidence"], 0.6);
    // Said again, it is believed again.
    let again = json!({"item_id": lake, "content": "The lake is deep, says the map"});
    uses(&world, "scout", "memory_correct", again).await.ok();
    assert_eq!(fact(&world, "chief", &lake).await.unwrap()["confidence"], 0.6);
    world.clock.advance(DAY * 7);
    assert!(fact(&world, "chief", &lake).await.is_none());
    // The owner says how it decays, and it holds for what there is.
    let slow = json!({"decay": {"step": 1, "period_hours": 24, "least": 30}});
    policy(&world, slow).await.ok();
    assert_eq!(fact(&world, "chief", &lake).await.unwrap()["confidence"], 0.53);
    let recalled = uses(&world, "chief", "memory_recall", json!({"query": "deep"})).await.ok();
    assert_eq!(recalled["structured"]["facts"][0]["item_id"], json!(lake));
    let off = json!({"decay": {"step": 0, "period_hours": 0, "least": 0}});
    policy(&world, off).await.ok();
    assert_eq!(fact(&world, "chief", &lake).await.unwrap()["confidence"], 0.6);
    world.chains_hold().await;
}

/// What was ranked before and is believed no more is ranked with by nobody: a corpus that followed is one that is made anew.
#[tokio::test]
async fn what_is_believed_no_more_is_in_no_ranking() {
    let world = agents().await;
    for n in 0..6 {
        id_of(&world, json!({"content": format!("the lake is deep, says diver {n}")})).await;
        world.clock.advance(DAY * 2);
    }
    let recalled = async || {
        // Scores are beside the best one: it is another word that makes one better.
        let asked = json!({"query": "deep lake diver 5"});
        uses(&world, "chief", "memory_recall", asked).await.ok()["structured"].clone()
    };
    for left in [3, 2, 1, 0] {
        let followed = recalled().await;
        world.gateway.corpora.clear();
        let anew = recalled().await;
        assert_eq!(followed["facts"].as_array().unwrap().len(), left, "{followed}");
        let scores = |answer: &Value| -> Vec<Value> {
            answer["facts"].as_array().unwrap().iter().map(|fact| fact["score"].clone()).collect()
        };
        assert_eq!(scores(&followed), scores(&anew));
        world.clock.advance(DAY * 2);
    }
}

#[tokio::test]
async fn what_is_old_and_unsure_has_a_warning() {
    let world = agents().await;
    let learn = |content: &str, level: &str, confidence: f64| json!({"content": content, "level": level, "confidence": confidence});
    let unsure = id_of(&world, learn("The lake is cold", "tool_verified", 0.75)).await;
    let sure = id_of(&world, learn("The lake is deep", "tool_verified", 0.8)).await;
    let outside = id_of(&world, learn("The lake is green", "external", 0.5)).await;
    let owners = world.capture(&[note("The lake is blue", &[])]).await.remove(0);
    let warned = async |id: &str| {
        let fact = fact(&world, "chief", id).await.unwrap();
        fact.get("stale_warning").is_some_and(|warning| warning == true)
    };
    world.clock.advance(DAY * 6);
    for id in [&unsure, &sure, &outside, &owners] {
        assert!(!warned(id).await, "{id}");
    }
    world.clock.advance(DAY);
    assert!(warned(&unsure).await && warned(&outside).await);
    assert!(!warned(&sure).await && !warned(&owners).await);
    let recalled = uses(&world, "chief", "memory_recall", json!({"query": "cold"})).await.ok();
    assert!(recalled["text"].as_str().unwrap().contains("stale_warning=\"true\""), "{recalled}");
    // What the owner confirmed needs none.
    world
        .owner("POST", &format!("/oap/owner/items/{outside}/confirm"), Some(&json!({"version": 1})))
        .await
        .ok();
    assert!(!warned(&outside).await);
}

#[tokio::test]
async fn each_type_has_its_end() {
    let world = agents().await;
    let ends = async |id: &str| {
        let fact = fact(&world, "chief", id).await.unwrap();
        let learned: Timestamp = fact["learned_at"].as_str().unwrap().parse().unwrap();
        let ends = fact.get("expires_at").map(|at| at.as_str().unwrap().parse::<Timestamp>().unwrap());
        ends.map(|ends| (ends.millis() - learned.millis()) / 86_400_000)
    };
    let learn = |content: &str, more: Value| {
        let mut learn = json!({"content": content, "level": "tool_verified"});
        learn.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        learn
    };
    let result = id_of(&world, learn("It rains", json!({"type": "tool_result_verified"}))).await;
    let summary = id_of(&world, learn("We planned", json!({"type": "session_summary"}))).await;
    let strategy = id_of(&world, learn("First the map", json!({"type": "task_completion_strategy"}))).await;
    let preference = id_of(&world, learn("Tea", json!({"type": "user_stated_preference"}))).await;
    let untyped = id_of(&world, learn("Coffee", json!({}))).await;
    let said = id_of(&world, learn("It snows", json!({"type": "tool_result_verified", "ttl_days": 3}))).await;
    for (id, days) in [
        (&result, Some(7)),
        (&summary, Some(30)),
        (&strategy, Some(90)),
        (&preference, None),
        (&untyped, None),
        (&said, Some(3)),
    ] {
        assert_eq!(ends(id).await, days, "{id}");
    }
    let shown = fact(&world, "chief", &summary).await.unwrap();
    // A summary is a conclusion, whatever it claims.
    assert_eq!((&shown["type"], &shown["level"]), (&json!("session_summary"), &json!("agent_inferred")));
    assert_eq!(fact(&world, "chief", &untyped).await.unwrap().get("type"), None);
    let raised = json!({"item_id": summary, "content": "We planned it", "level": "tool_verified"});
    uses(&world, "scout", "memory_correct", raised).await.refused(403, "policy_block");
    // By the owner's policy from then on; what was written keeps its end.
    let change = json!({"types": {"session_summary": {"kept": true, "ttl_days": 14}}});
    policy(&world, change).await.ok();
    let later = id_of(&world, learn("We booked", json!({"type": "session_summary"}))).await;
    assert_eq!((ends(&later).await, ends(&summary).await), (Some(14), Some(30)));
    world.clock.advance(DAY * 7);
    assert!(fact(&world, "chief", &result).await.is_none() && fact(&world, "chief", &said).await.is_none());
    assert!(!everything(&world, "chief", &untyped).await.contains("It rains"));
    assert!(fact(&world, "chief", &untyped).await.is_some());
    // What has an end is told until then, less and less sure; an agent's conclusion without one is believed no more.
    assert_eq!(fact(&world, "chief", &summary).await.unwrap()["confidence"], 0.25);
    assert!(fact(&world, "chief", &preference).await.is_none());
    assert!(fact(&world, "chief", &strategy).await.is_some());
    world.clock.advance(DAY * 83);
    assert!(fact(&world, "chief", &strategy).await.is_none());
}

#[tokio::test]
async fn what_no_rule_keeps_is_not_kept() {
    let world = agents().await;
    let learn = async |agent: &str, sort: Option<&str>| {
        let mut learn = json!({"content": "The lake is deep"});
        if let Some(sort) = sort {
            learn["type"] = json!(sort);
        }
        uses(&world, agent, "memory_learn", learn).await
    };
    for sort in
        ["gossip", "intermediate_reasoning", "failed_tool_call", "speculative_inference", "SESSION_SUMMARY"]
    {
        let refused = learn("scout", Some(sort)).await.refused(403, "policy_block");
        let message = refused["message"].as_str().unwrap();
        assert!(message.contains("type must be one of") || message.contains("is not kept"), "{message}");
    }
    assert_eq!(uses(&world, "chief", "memory_status", json!({})).await.ok()["structured"]["facts"], 0);
    // The owner lets one agent write what usually is not kept, and nobody what names no type.
    let known = world.owner("GET", "/oap/owner/agents", None).await.ok();
    let chief = known["agents"].as_array().unwrap().iter().find(|agent| agent["name"] == "chief").unwrap();
    let rule = json!({"kept": true, "ttl_days": 2, "agents": [chief["did"]]});
    let change = json!({"types": {"failed_tool_call": rule}, "untyped": {"kept": false}});
    let set = policy(&world, change).await.ok();
    assert_eq!(set["types"]["failed_tool_call"], rule);
    assert_eq!(
        (&set["types"]["session_summary"]["ttl_days"], &set["decay"]["step"]),
        (&json!(30), &json!(5))
    );
    assert_eq!(world.owner("GET", "/oap/owner/policy", None).await.ok(), set);
    learn("scout", Some("failed_tool_call")).await.refused(403, "policy_block");
    let id = learn("chief", Some("failed_tool_call")).await.ok()["structured"]["item_id"].clone();
    let fact = fact(&world, "scout", id.as_str().unwrap()).await.unwrap();
    assert!(fact["expires_at"].is_string(), "{fact}");
    learn("scout", None).await.refused(403, "policy_block");
    // An entry names no type; a scratch pad is not remembered.
    for (tier, status) in [("semantic", 403), ("episodic", 403), ("working", 200)] {
        let entry = json!({"namespace": "n", "key": tier, "memory_type": tier, "value": {"note": "deep"}});
        let answer = super::entry(&world, "pads", "POST", "/memory", Some(&entry)).await;
        assert_eq!(answer.status.as_u16(), status, "{tier}");
    }
    // The owner's own word is nobody's to refuse.
    world.capture(&[note("The lake is blue", &[])]).await;
    // A rule that is none changes nothing.
    for (wrong, named) in [
        (json!({"types": {"session_summary": {"kept": true, "ttl_days": 0}}}), "ttl_days"),
        (json!({"untyped": {"kept": true, "agents": vec![chief["did"].clone(); 65]}}), "agents"),
        (json!({"decay": {"step": 101, "period_hours": 24, "least": 30}}), "decay"),
        (json!({"decay": {"step": 1, "period_hours": 87_601, "least": 30}}), "period_hours"),
    ] {
        let refused = policy(&world, wrong).await.refused(400, "invalid_input");
        assert!(refused["message"].as_str().unwrap().contains(named), "{refused}");
    }
    policy(&world, json!({"types": {"gossip": {"kept": true}}})).await.refused(400, "invalid_input");
    assert_eq!(world.owner("GET", "/oap/owner/policy", None).await.ok(), set);
    // Who may not write a type any more does not correct it either.
    policy(&world, json!({"untyped": {"kept": true}})).await.ok();
    let own = learn("scout", None).await.ok()["structured"]["item_id"].clone();
    policy(&world, json!({"untyped": {"kept": true, "agents": []}})).await.ok();
    let change = json!({"item_id": own, "content": "The lake is shallow"});
    uses(&world, "scout", "memory_correct", change).await.refused(403, "policy_block");
    world.chains_hold().await;
}

/// Both dialects ask one index, and what is believed no more is in it no more, whichever asked first.
#[tokio::test]
async fn what_is_believed_no_more_is_ranked_with_by_nobody() {
    let mut scores = Vec::new();
    for searches in [false, true] {
        let world = agents().await;
        // An agent with a key, which asks in both.
        super::key_of(&world, "scout").await;
        id_of(&world, json!({"content": "The lake is deep"})).await;
        world.clock.advance(DAY * 6);
        id_of(&world, json!({"content": "The lake is cold", "level": "tool_verified"})).await;
        // Scores are beside the best one: what is ranked with shows in another's.
        let wide = "A cold, wide and quiet lake, a lake of many boats";
        id_of(&world, json!({"content": wide, "level": "tool_verified"})).await;
        if searches {
            super::entry(&world, "scout", "GET", "/memory/search?q=lake", None).await.ok();
        }
        world.clock.advance(DAY * 2);
        let recalled = uses(&world, "scout-key", "memory_recall", json!({"query": "cold lake"})).await.ok();
        let facts = recalled["structured"]["facts"].as_array().unwrap();
        let [one, other] = facts.as_slice() else { panic!("{recalled}") };
        assert!([one, other].iter().all(|fact| fact["content"] != "The lake is deep"), "{recalled}");
        scores.push([one, other].map(|fact| fact["score_parts"]["text"].clone()));
    }
    assert_eq!(scores[0], scores[1]);
}

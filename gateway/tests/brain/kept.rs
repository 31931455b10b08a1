//! What is kept of an agent's graph follows every change: it says what a graph says that is made anew.

use super::{learned, made, rows, uses};
use crate::common::*;
use proptest::prelude::*;
use serde_json::json;

/// All that an agent sees, and all that was.
const EVERYTHING: [&str; 2] = [
    "SELECT ?s ?p ?o { ?s ?p ?o } ORDER BY ?s ?p ?o",
    "SELECT ?g ?s ?p ?o { GRAPH ?g { ?s ?p ?o } } ORDER BY ?g ?s ?p ?o",
];

async fn everything(world: &World, key: &str) -> Vec<Vec<Vec<String>>> {
    let mut all = Vec::new();
    for query in EVERYTHING {
        all.push(rows(world, key, query).await);
    }
    all
}

/// After each step of a history, what is kept of each agent's graph says what one says that is made anew.
async fn follows(steps: Vec<(u8, usize, usize, usize)>) {
    let world = World::new().await;
    let keys = [made(&world, "editor").await, made(&world, "scout").await];
    let mut items = Vec::new();
    for (step, who, at, to) in steps {
        let key = &keys[who % keys.len()];
        let item = |at: usize| items.get(at % items.len().max(1)).cloned().unwrap_or_default();
        let (at, to): (String, String) = (item(at), item(to));
        // What may not be done is refused, and changes nothing.
        match step {
            0 | 1 => {
                let scope = if step == 0 { "local" } else { "private" };
                let text = format!("text {}", items.len());
                let source = json!({"type": "web", "ref": "https://page.example/"});
                let learn = json!({"content": text, "scope": scope, "topic": scope, "source": source});
                items.push(learned(&world, key, learn).await);
            }
            2 => {
                let correct = json!({"item_id": at, "content": format!("corrected {to}")});
                drop(uses(&world, key, "memory_correct", correct).await);
            }
            3 => drop(uses(&world, key, "memory_forget", json!({"item_id": at})).await),
            4 => {
                let link = json!({"item_id": at, "to": to, "relationship": "supports"});
                drop(uses(&world, key, "memory_link", link).await);
            }
            5 => drop(world.owner("POST", "/oap/data/delete", Some(&json!({"items": [at]}))).await),
            6 => drop(world.owner("POST", &format!("/oap/owner/items/{at}/restore"), None).await),
            _ => {
                let restrict =
                    json!({"item": {"content": {"text": "the owner's"}, "sensitivity": "restricted"}});
                drop(world.owner("POST", &format!("/oap/owner/items/{at}/correct"), Some(&restrict)).await);
            }
        }
        let both = async || [everything(&world, &keys[0]).await, everything(&world, &keys[1]).await];
        let kept = both().await;
        world.gateway.brains.clear();
        // These are kept in turn, for the next step to be seen by.
        assert_eq!(kept, both().await, "after step {step}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 12, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn what_is_kept_is_what_would_be_made_anew(
        steps in prop::collection::vec((0_u8..8, any::<usize>(), any::<usize>(), any::<usize>()), 1..14),
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(follows(steps));
    }
}

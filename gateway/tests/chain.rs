//! The property *chain* (protocol section 4.2): an item's log is append-only across whatever happens to the item,
//! its erasure included.

use crate::common::*;
use oap_gateway::service::deletion::DeleteRequest;
use oap_gateway::service::{Audit, Deletions, Items, Keys};
use oap_gateway::state::owner::{Owner, mark::Admin};
use oap_identity::ItemId;
use oap_memory::chain;
use oap_memory::chain::Event;
use proptest::prelude::*;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::time::Duration;

#[derive(Debug, Clone)]
enum Act {
    Capture,
    Correct(usize, String),
    Relabel(usize, String),
    Mark(usize, Event),
    Delete(usize),
    Rotate,
    Sweep,
}

fn act() -> impl Strategy<Value = Act> {
    let mark = prop::sample::select(&[Event::Retract, Event::Restore, Event::Confirm][..]);
    prop_oneof![
        2 => Just(Act::Capture),
        3 => (0..8usize, "[a-z ]{1,20}").prop_map(|(item, text)| Act::Correct(item, text)),
        1 => (0..8usize, "[a-z]{1,8}").prop_map(|(item, label)| Act::Relabel(item, label)),
        3 => (0..8usize, mark).prop_map(|(item, event)| Act::Mark(item, event)),
        1 => (0..8usize).prop_map(Act::Delete),
        1 => Just(Act::Rotate),
        1 => Just(Act::Sweep),
    ]
}

async fn run(acts: Vec<Act>) -> Result<(), TestCaseError> {
    let world = World::new().await;
    let gateway = &world.gateway;
    let mut owner = world.proved().await;
    let mut chains: BTreeMap<ItemId, Vec<Value>> = BTreeMap::new();
    let capture = async |owner: &Owner<Admin>| {
        Items(gateway).capture(owner, &[note("words", &[])]).await.unwrap().remove(0).item_id
    };
    let mut items = vec![capture(&owner).await];
    for act in acts {
        // A change that the item's state does not allow is refused, and is part of the property too.
        let item = |number: usize| items[number % items.len()];
        match act {
            Act::Capture => items.push(capture(&owner).await),
            Act::Correct(number, text) => {
                let changes = json!({"content": {"text": text}});
                let _ = Items(gateway).correct(&owner, item(number), changes, None, Event::Correct).await;
            }
            Act::Relabel(number, label) => {
                let changes = json!({"labels": [label]});
                let _ = Items(gateway).correct(&owner, item(number), changes, None, Event::Relabel).await;
            }
            Act::Mark(number, event) => drop(Items(gateway).mark(&owner, item(number), event).await),
            Act::Delete(number) => {
                let request = DeleteRequest { items: vec![item(number)], ..DeleteRequest::default() };
                Deletions(gateway).delete(&owner, request).await.unwrap();
            }
            Act::Rotate => {
                Keys(gateway).rotate_keys(&owner).await.unwrap();
                owner = world.proved().await;
            }
            Act::Sweep => {
                world.clock.advance(Duration::from_secs(40 * 86_400));
                Deletions(gateway).sweep().await.unwrap();
            }
        }
        let document = world.document();
        for id in &items {
            let shown = Items(gateway).item(&owner, *id).unwrap();
            let links: Vec<_> = shown.chain.into_iter().map(|link| link.into_whole()).collect();
            let before = chains.entry(*id).or_default();
            prop_assert!(links.starts_with(before), "{id}: links were changed or cut");
            let verified = chain::verify(&links, &document);
            prop_assert!(verified.is_ok(), "{id}: {verified:?}");
            *before = links;
        }
    }
    let verified = Audit(gateway).verify_audit(&owner, &Default::default());
    prop_assert!(verified.is_ok(), "{:?}", verified.err());
    Ok(())
}

#[test]
fn chains_are_append_only() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let config = ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() };
    let mut runner = proptest::test_runner::TestRunner::new(config);
    runner.run(&prop::collection::vec(act(), 1..24), |acts| runtime.block_on(run(acts))).unwrap();
}

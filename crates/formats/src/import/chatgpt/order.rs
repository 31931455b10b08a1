//! The order of a conversation's messages, and the times of those that have none.

use crate::import::time;
use oap_identity::Timestamp;
use serde_json::{Map, Value};
use std::collections::{BTreeMap, BTreeSet};

/// The nodes in the order in which they were said. One without a time comes just after the node above it, or else just
/// before the node below it; the map's own order means nothing.
pub(super) fn of(mapping: &Map<String, Value>) -> Vec<(&str, Option<Timestamp>)> {
    let nodes = downward(mapping);
    let own = |id: &str| time(&mapping[id]["message"]["create_time"]).map(Timestamp::millis);
    let parent = |id: &str| mapping[id]["parent"].as_str().filter(|parent| mapping.contains_key(*parent));
    // How early a node must be, for what is below it.
    let mut before: BTreeMap<&str, i64> = BTreeMap::new();
    for id in nodes.iter().rev().copied() {
        let latest = own(id).or_else(|| before.get(id).copied());
        if let (Some(latest), Some(parent)) = (latest, parent(id)) {
            let earliest = before.entry(parent).or_insert(i64::MAX);
            *earliest = (*earliest).min(latest.saturating_sub(1));
        }
    }
    let mut at: BTreeMap<&str, i64> = BTreeMap::new();
    for id in nodes.iter().copied() {
        let after = || parent(id).and_then(|parent| at.get(parent)).map(|time| time.saturating_add(1));
        if let Some(time) = own(id).or_else(after).or_else(|| before.get(id).copied()) {
            at.insert(id, time);
        }
    }
    let mut timed: Vec<(&str, Option<i64>)> = nodes.iter().map(|id| (*id, at.get(id).copied())).collect();
    timed.sort_by_key(|(_, time)| *time);
    timed.into_iter().map(|(id, time)| (id, time.map(Timestamp::from_millis))).collect()
}

/// Every node once, each after its parent. Nodes in a ring, which a forged tree may have, come last.
fn downward(mapping: &Map<String, Value>) -> Vec<&str> {
    let mut children: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    let mut nodes = Vec::with_capacity(mapping.len());
    for (id, node) in mapping {
        match node["parent"].as_str().filter(|parent| mapping.contains_key(*parent)) {
            Some(parent) => children.entry(parent).or_default().push(id),
            None => nodes.push(id.as_str()),
        }
    }
    let mut next = 0;
    while let Some(id) = nodes.get(next) {
        nodes.extend(children.remove(id).unwrap_or_default());
        next += 1;
    }
    let known: BTreeSet<&str> = nodes.iter().copied().collect();
    nodes.extend(mapping.keys().map(String::as_str).filter(|id| !known.contains(id)));
    nodes
}

//! Drafts of items: each member absent or there, each value at, just below and just above what decides.

use super::chance::Chance;
use super::text::{People, Text};
use super::{Planted, Setting, entity, leaves};
use oap_identity::Timestamp;
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// A draft, as `capture` takes it, and what it is known to hold.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Item {
    /// The draft. Items that it was made from are not in it.
    pub draft: Value,
    /// Spans and canaries.
    pub planted: Planted,
    /// The items that it was made from, by their numbers in the world: `derived_from` has their ids.
    pub derived_from: Vec<usize>,
}

/// What the items of a world have in common, so that filters have something to select.
#[derive(Debug, Clone, Default)]
pub(super) struct Common {
    /// The world's scope.
    pub(super) scope: String,
    /// Labels that several items have.
    pub(super) labels: Vec<String>,
    /// Subjects that several items have.
    pub(super) subjects: Vec<String>,
    /// Times at which filters begin and end.
    pub(super) times: [i64; 2],
    /// When items end whose end is near.
    pub(super) soon: Vec<Timestamp>,
    /// How sure the owner is, in items: thresholds and their neighbours.
    pub(super) confidences: Vec<f64>,
}

/// How far the days of life of an item are from its end of now.
const DAY: i64 = 86_400_000;

/// A contact that texts may name: it stays.
pub(super) fn contact(chance: &mut Chance, common: &Common, people: &mut People) -> Item {
    chance.take();
    let mut draft = json!({
        "kind": "fact", "scope_id": common.scope, "labels": [chance.of(&common.labels)],
        "content": {"structured": entity::contact(chance, Some(people))},
        "provenance": {"captured_at": chance.moment(common.times[0] - 2 * DAY, 86_400_000), "confidence": 1},
    });
    if chance.once_in(2) {
        draft["content"]["text"] = json!(format!("{} {}", chance.canary(), chance.canary()));
    }
    finished(chance, draft, Vec::new(), common)
}

/// Any item.
pub(super) fn make(chance: &mut Chance, setting: &Setting, common: &Common, people: &People) -> Item {
    chance.take();
    let mut draft = json!({"kind": chance.dealt("kind", &setting.kinds), "scope_id": common.scope});
    match chance.deal("scope", 16) {
        0 => draft["scope_id"] = json!(format!("x{}", chance.canary())),
        1 => drop(draft.as_object_mut().map(|members| members.remove("scope_id"))),
        _ => {}
    }
    let mut spans = Vec::new();
    // Text alone, structured content alone, both.
    let content = chance.deal("content", 5);
    if content != 1 {
        let text = Text::make(chance, people);
        draft["content"]["text"] = json!(text.text);
        spans = text.spans;
    }
    if content == 1 || content >= 3 {
        let form = chance.deal("form", entity::FORMS);
        draft["content"]["structured"] = entity::make(chance, form);
    }
    if chance.deal("subject", 3) > 0 {
        draft["subject_entity_id"] = match chance.once_in(2) {
            true => json!(chance.of(&common.subjects)),
            false => json!(format!("urn:entity:{}", chance.canary())),
        };
    }
    match chance.deal("labels", 5) {
        0 => {}
        1 => draft["labels"] = json!([]),
        2 => draft["labels"] = json!([chance.of(&common.labels)]),
        _ => {
            let mut labels = chance.some(&common.labels);
            labels.push(chance.canary());
            // One of them twice.
            labels.push(labels[0].clone());
            draft["labels"] = json!(labels);
        }
    }
    provenance(chance, setting, common, &mut draft);
    life(chance, setting, common, &mut draft);
    let sensitivities = ["public", "internal", "confidential", "restricted"];
    if let Some(sensitivity) = sensitivities.get(chance.deal("sensitivity", 6)) {
        draft["sensitivity"] = json!(sensitivity);
    }
    match chance.deal("exportable", 7) {
        0 => draft["exportable"] = json!(false),
        1 => draft["exportable"] = json!(true),
        _ => {}
    }
    if chance.deal("embedding", 4) == 0 {
        draft["embedding"] =
            json!({"model": chance.canary(), "dimensions": 3, "vector_url": chance.canary()});
    }
    if chance.deal("extensions", 3) == 0 {
        let (one, other) = (chance.canary(), chance.canary());
        draft["extensions"] = json!({
            format!("example.{one}"): {"trail": chance.canary(), "steps": [chance.canary(), chance.number()]},
            format!("did:web:{other}.example"): {chance.canary(): true},
        });
    }
    finished(chance, draft, spans, common)
}

fn provenance(chance: &mut Chance, setting: &Setting, common: &Common, draft: &mut Value) {
    let [after, before] = common.times;
    let between = after + 1 + chance.below(usize::try_from(before - after - 2).unwrap_or(0)) as i64;
    // The words of a turn may count for its neighbours in the conversation: no two are near each other.
    let turn = draft["kind"] == "conversation_turn";
    let slot = after + 1 + 3_600_000 * 2 * chance.deal("turn", 300) as i64;
    let dealt = chance.deal("captured", 10);
    let at = match dealt {
        _ if turn => Some(slot),
        0 => Some(after - 1),
        1 => Some(after),
        2 => Some(after + 1),
        3 => Some(before - 1),
        4 => Some(before),
        5 => Some(before + 1),
        6 => None,
        _ => Some(between),
    };
    let mut provenance = json!({});
    if let Some(at) = at {
        let at = Timestamp::from_millis(at.min(setting.now.millis()));
        // What lies at a bound of a filter may be another's time, too.
        if turn || dealt > 6 {
            chance.planted(at.to_string());
        }
        provenance["captured_at"] = json!(at);
    }
    if let Some(confidence) = common.confidences.get(chance.deal("confidence", common.confidences.len() + 2))
    {
        provenance["confidence"] = json!(confidence);
    }
    if chance.once_in(3) {
        provenance["channel"] = json!(chance.canary());
        provenance["tool"] = json!({"name": chance.canary(), "runs": [chance.canary(), chance.number()]});
    }
    if provenance.as_object().is_some_and(|members| !members.is_empty()) || chance.once_in(2) {
        draft["provenance"] = provenance;
    }
}

fn life(chance: &mut Chance, setting: &Setting, common: &Common, draft: &mut Value) {
    let now = setting.now.millis();
    let captured = draft["provenance"]["captured_at"].as_str().and_then(|at| at.parse().ok());
    let age = (now - captured.map_or(now, |at: Timestamp| at.millis())).max(0) / DAY;
    match chance.deal("life", 12) {
        0 => draft["expires_at"] = json!(Timestamp::from_millis(now - 1)),
        1 => draft["expires_at"] = json!(chance.moment(now + 400 * DAY, DAY.cast_unsigned())),
        // Its days are over, just over, or not yet.
        2 if captured.is_some() && age > 1 => draft["ttl_days"] = json!(1),
        3 if captured.is_some() && age > 0 => draft["ttl_days"] = json!(age),
        4 => draft["ttl_days"] = json!(age + 1),
        // The end that is said outranks the days.
        5 if captured.is_some() && age > 1 => {
            draft["ttl_days"] = json!(1);
            draft["expires_at"] = json!(chance.moment(now + DAY, DAY.cast_unsigned()));
        }
        6 => {
            draft["ttl_days"] = json!(36_500);
            draft["expires_at"] = json!(chance.moment(now - 120_000, 60_000));
        }
        n @ 7..=8 if !common.soon.is_empty() => {
            draft["expires_at"] = json!(common.soon[n % common.soon.len()]);
        }
        // The same by its days. No turn of a conversation: it would stand beside another.
        n @ 9..=10 if !common.soon.is_empty() && draft["kind"] != "conversation_turn" => {
            let days = 1 + chance.below(3);
            let end = common.soon[n % common.soon.len()];
            draft["ttl_days"] = json!(days);
            draft["provenance"]["captured_at"] =
                json!(Timestamp::from_millis(end.millis() - days as i64 * DAY));
        }
        _ => {}
    }
}

/// An item with what was planted in it.
pub(super) fn finished(chance: &mut Chance, draft: Value, spans: Vec<super::Span>, common: &Common) -> Item {
    let mut canaries = BTreeMap::new();
    let all: Vec<(String, String)> = leaves(&draft)
        .into_iter()
        .map(|(at, leaf)| (at, leaf.as_str().map_or_else(|| leaf.to_string(), str::to_lowercase)))
        .collect();
    let shared = common.labels.iter().chain(&common.subjects).cloned();
    for word in chance.take().into_iter().chain(shared) {
        let small = word.to_lowercase();
        let place = all.iter().find(|(_, leaf)| leaf.contains(&small));
        let place = place.or_else(|| all.iter().find(|(at, _)| at.contains(&small)));
        if let Some((at, _)) = place {
            canaries.insert(small, at.clone());
        }
    }
    let mut planted = Planted { canaries, ..Planted::default() };
    if !spans.is_empty() {
        planted.spans.insert("/content/text".to_owned(), spans);
    }
    Item { draft, planted, derived_from: Vec::new() }
}

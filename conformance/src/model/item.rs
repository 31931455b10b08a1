//! An item: what its owner wrote, in the form in which it is committed (protocol section 4).

use super::rule::{Corrected, Standing, Written};
use crate::world::{Planted, Span};
use oap_identity::{Timestamp, json};
use serde_json::{Map, Value};
use std::time::Duration;

/// A version of an item.
#[derive(Debug, Clone)]
pub(super) struct Version {
    /// All members of the wire form but those that are derived; `content.text` is whole.
    pub whole: Value,
    /// The spans of `content.text`.
    pub spans: Vec<Span>,
    /// What the gateway wrote into it.
    pub written: Vec<Written>,
}

impl Version {
    /// The entity type of the structured content.
    pub fn entity_type(&self) -> Option<&str> {
        self.whole.pointer("/content/structured/entity_type")?.as_str()
    }

    pub fn text(&self, pointer: &str) -> Option<&str> {
        self.whole.pointer(pointer)?.as_str()
    }

    pub fn texts(&self, member: &str) -> Vec<&str> {
        let list = self.whole[member].as_array().map(Vec::as_slice).unwrap_or_default();
        list.iter().filter_map(Value::as_str).collect()
    }

    pub fn captured_at(&self) -> Timestamp {
        time(&self.whole["provenance"]["captured_at"]).unwrap_or(Timestamp::from_millis(0))
    }

    pub fn confidence(&self) -> f64 {
        self.whole["provenance"]["confidence"].as_f64().unwrap_or(1.0)
    }

    /// From when on it is in no view, and whether by `ttl_days`.
    pub fn end(&self) -> Option<(Timestamp, bool)> {
        let by_ttl = self.whole["ttl_days"].as_u64().map(|days| {
            let life = Duration::from_secs(days.saturating_mul(86_400));
            (self.captured_at().plus(life), true)
        });
        time(&self.whole["expires_at"]).map(|end| (end, false)).or(by_ttl)
    }

    /// Whether it has not ended, and the rules that say so.
    pub fn lives(&self, at: Timestamp) -> (bool, Vec<Standing>) {
        let Some((end, by_ttl)) = self.end() else { return (true, Vec::new()) };
        let mut rules = vec![match (at.millis() - end.millis(), by_ttl) {
            (..-1, false) => Standing::BeforeEnd,
            (-1, false) => Standing::LastBeforeEnd,
            (0, false) => Standing::AtEnd,
            (1, false) => Standing::FirstAfterEnd,
            (_, false) => Standing::AfterEnd,
            (..-1, true) => Standing::BeforeTtl,
            (-1, true) => Standing::LastBeforeTtl,
            (0, true) => Standing::AtTtl,
            (1, true) => Standing::FirstAfterTtl,
            (_, true) => Standing::AfterTtl,
        }];
        if !by_ttl && !self.whole["ttl_days"].is_null() {
            rules.push(Standing::EndOutranksTtl);
        }
        (at < end, rules)
    }
}

/// Whether an item is there to be seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum State {
    Current,
    Retracted,
    Erased,
    DerivedErased,
}

/// An item and its history.
#[derive(Debug, Clone)]
pub(super) struct Item {
    /// The draft that the version in force is made of.
    pub draft: Value,
    /// The version in force.
    pub version: Version,
    /// The number of the link that committed it.
    pub committed: usize,
    /// The events of its chain.
    pub events: Vec<&'static str>,
    pub state: State,
    /// When the gateway captured it.
    pub at: Timestamp,
    /// The correction that made the version in force, if one did.
    pub correction: Option<Box<Correction>>,
}

/// A correction.
#[derive(Debug, Clone)]
pub(super) struct Correction {
    /// The members that it changed.
    pub members: Vec<Corrected>,
    /// The version before it.
    pub former: Version,
}

impl Correction {
    /// By the members that were sent.
    pub fn of(changes: &Value, former: Version) -> Self {
        let members = Corrected::ALL
            .iter()
            .copied()
            .filter(|member| member.pointers().iter().any(|pointer| changes.pointer(pointer).is_some()));
        Self { members: members.collect(), former }
    }
}

impl Item {
    pub fn is_confirmed(&self) -> bool {
        self.events.contains(&"confirm")
    }

    /// The rules that its history adds, where it is seen.
    pub fn history(&self) -> Vec<Standing> {
        let rule = |event: &&'static str| match *event {
            "correct" => Some(Standing::Corrected),
            "relabel" => Some(Standing::Relabelled),
            "confirm" => Some(Standing::Confirmed),
            "restore" => Some(Standing::Restored),
            _ => None,
        };
        let mut rules: Vec<Standing> = self.events.iter().filter_map(rule).collect();
        rules.dedup();
        if rules.is_empty() { vec![Standing::Current] } else { rules }
    }
}

/// A time of the wire.
pub(super) fn time(value: &Value) -> Option<Timestamp> {
    value.as_str()?.parse().ok()
}

/// A value with its numbers as the canonical form writes them.
pub(super) fn canonical(value: &Value) -> Value {
    let parsed = json::canonical(value).ok().and_then(|bytes| json::parse(&bytes).ok());
    parsed.unwrap_or_else(|| value.clone())
}

/// The version that a draft becomes: what the writer leaves out is written out, times and labels have one form.
pub(super) fn version(draft: &Value, default_scope: &str, at: Timestamp, planted: &Planted) -> Version {
    let mut written = Vec::new();
    let draft = canonical(draft);
    let mut whole: Map<String, Value> = draft.as_object().cloned().unwrap_or_default();
    whole.remove("owner_did");
    whole.retain(|_, value| !value.is_null());
    let mut default = |whole: &mut Map<String, Value>, name: &str, value: Value, rule: Written| {
        if !whole.contains_key(name) {
            written.push(rule);
            whole.insert(name.to_owned(), value);
        }
    };
    default(&mut whole, "scope_id", default_scope.into(), Written::DefaultScope);
    default(&mut whole, "exportable", true.into(), Written::DefaultExportable);
    default(&mut whole, "sensitivity", "internal".into(), Written::DefaultSensitivity);
    let mut provenance = whole.get("provenance").and_then(Value::as_object).cloned().unwrap_or_default();
    for name in ["captured_at", "confidence"] {
        if provenance.get(name).is_some_and(Value::is_null) {
            provenance.remove(name);
        }
    }
    default(&mut provenance, "captured_at", at.to_string().into(), Written::DefaultCapturedAt);
    default(&mut provenance, "confidence", 1.into(), Written::DefaultConfidence);
    for (members, name) in [(&mut provenance, "captured_at"), (&mut whole, "expires_at")] {
        if let Some(at) = members.get(name).and_then(time) {
            if members[name] != at.to_string() {
                written.push(Written::TimesToTheMillisecond);
            }
            members.insert(name.to_owned(), at.to_string().into());
        }
    }
    whole.insert("provenance".to_owned(), provenance.into());
    if let Some(Value::Array(labels)) = whole.get_mut("labels") {
        let before = labels.clone();
        labels.sort_by(|a, b| a.as_str().cmp(&b.as_str()));
        labels.dedup();
        if *labels != before {
            written.push(Written::LabelsSorted);
        }
    }
    for name in ["labels", "derived_from", "extensions"] {
        let empty = |value: &Value| {
            value.as_array().is_some_and(Vec::is_empty) || value.as_object().is_some_and(Map::is_empty)
        };
        if whole.get(name).is_some_and(empty) {
            whole.remove(name);
        }
    }
    if let Some(Value::Object(content)) = whole.get_mut("content") {
        content.retain(|_, value| !value.is_null());
        if let Some(Value::Object(structured)) = content.get_mut("structured")
            && count_participants(structured)
        {
            written.push(Written::ParticipantsCounted);
        }
    }
    let spans = planted.spans.get("/content/text").cloned().unwrap_or_default();
    Version { whole: whole.into(), spans, written }
}

/// A calendar event that does not say how many take part: the longer of its two lists does (protocol section 7).
fn count_participants(event: &mut Map<String, Value>) -> bool {
    let lists = ["participants", "participant_dids"];
    let longest = lists.iter().filter_map(|name| event.get(*name)?.as_array().map(Vec::len)).max();
    let Some(count) = longest else { return false };
    let counts = event.get("entity_type").and_then(Value::as_str) == Some("oap.entity.calendar_event")
        && !event.contains_key("participants_count");
    if counts {
        event.insert("participants_count".to_owned(), count.into());
    }
    counts
}

/// A draft with the members of a correction: those of `content` and `provenance` one by one, any other as a whole; `null`
/// takes a member away.
pub(super) fn corrected(draft: &Value, changes: &Value) -> Value {
    let mut draft = draft.clone();
    let empty = Map::new();
    for (name, value) in changes.as_object().unwrap_or(&empty) {
        let below = matches!(name.as_str(), "content" | "provenance");
        match (draft.get_mut(name), value) {
            (Some(Value::Object(members)), Value::Object(new)) if below => {
                members.extend(new.clone());
                members.retain(|_, value| !value.is_null());
            }
            _ => draft[name] = value.clone(),
        }
    }
    draft
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn at(text: &str) -> Timestamp {
        text.parse().unwrap()
    }

    #[test]
    fn what_the_writer_leaves_out_is_written_out() {
        let now = at("2026-05-01T12:00:00Z");
        let draft = json!({"kind": "fact", "content": {"text": "tea", "structured": null}, "labels": ["b", "a", "b"]});
        let version = version(&draft, "personal", now, &Planted::default());
        assert_eq!(
            version.whole,
            json!({
                "kind": "fact", "content": {"text": "tea"}, "labels": ["a", "b"], "scope_id": "personal",
                "exportable": true, "sensitivity": "internal",
                "provenance": {"captured_at": "2026-05-01T12:00:00.000Z", "confidence": 1},
            })
        );
        assert!(version.written.contains(&Written::LabelsSorted));
    }

    #[test]
    fn times_are_to_the_millisecond_and_participants_are_counted() {
        let draft = json!({
            "kind": "fact", "provenance": {"captured_at": "2026-01-01T00:00:00Z", "confidence": 0.50, "tag": "x"},
            "content": {"structured": {"entity_type": "oap.entity.calendar_event", "participant_dids": ["a", "b"]}},
        });
        let version = version(&draft, "personal", at("2026-05-01T12:00:00Z"), &Planted::default());
        assert_eq!(version.whole["provenance"]["captured_at"], "2026-01-01T00:00:00.000Z");
        assert_eq!(version.whole["content"]["structured"]["participants_count"], json!(2));
        assert_eq!(version.whole["provenance"]["confidence"].to_string(), "0.5");
    }

    #[test]
    fn an_item_ends_at_its_instant_and_expires_at_outranks_ttl_days() {
        let lives = |member: Value, now: &str| {
            let mut draft = json!({"kind": "fact", "content": {"text": "x"},
                "provenance": {"captured_at": "2026-05-01T00:00:00Z"}});
            draft.as_object_mut().unwrap().extend(member.as_object().unwrap().clone());
            version(&draft, "personal", at(now), &Planted::default()).lives(at(now)).0
        };
        assert!(lives(json!({}), "2099-01-01T00:00:00Z"));
        assert!(lives(json!({"ttl_days": 1}), "2026-05-01T23:59:59.999Z"));
        assert!(!lives(json!({"ttl_days": 1}), "2026-05-02T00:00:00Z"));
        let both = json!({"ttl_days": 1, "expires_at": "2026-06-01T00:00:00Z"});
        assert!(lives(both.clone(), "2026-05-31T23:59:59.999Z"));
        assert!(!lives(both, "2026-06-01T00:00:00Z"));
    }

    #[test]
    fn a_correction_replaces_the_members_that_it_names() {
        let draft =
            json!({"kind": "fact", "content": {"text": "a", "structured": {"x": 1}}, "labels": ["l"]});
        let after = corrected(&draft, &json!({"content": {"text": "b", "structured": null}, "labels": null}));
        assert_eq!(after, json!({"kind": "fact", "content": {"text": "b"}, "labels": null}));
    }
}

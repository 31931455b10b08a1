//! Items, filters and queries at random: every member absent and there, each bound at, below and above.

use oap_conformance::world::{Planted, Span};
use oap_identity::Timestamp;
use serde_json::{Map, Value, json};

/// Texts that one detector alone finds, whole.
const SPANS: [(&str, &str); 5] = [
    ("email", "ann@b.example"),
    ("phone", "+49 30 901820"),
    ("secret", "AKIAIOSFODNN7EXAMPLE"),
    ("iban", "DE89370400440532013000"),
    ("ip", "192.0.2.7"),
];
/// Words that stand in texts, in labels, and in structured content.
pub const WORDS: [&str; 4] = ["cartographers", "bicycle", "lanternfish", "meadow"];
pub const PROFILES: [&str; 6] = ["memory", "contact", "calendar_event", "task", "full", "own"];
const KINDS: [&str; 6] =
    ["fact", "preference", "conversation_turn", "summary", "observation", "document_reference"];
const SENSITIVITIES: [&str; 4] = ["public", "internal", "confidential", "restricted"];
const CONFIDENCES: [f64; 6] = [0.0, 0.499, 0.5, 0.501, 0.999, 1.0];
const DAY: i64 = 86_400_000;

/// A profile of the owner's own.
pub const OWN: &str = r#"
name = "oap.profile.projection.own.v1"
description = "Labels of facts, then the text with addresses, then all."
[[level]]
fields = [{ path = "labels", when = ["kind=fact"], unless = ["sensitivity=public"] }]
text = "hidden"
[[level]]
fields = ["provenance", "content.structured.names"]
[[level]]
text = { spans = ["email", "ip"] }
[[level]]
fields = ["content.structured.channels[type=email].value"]
[[level]]
fields = ["*"]
text = "full"
"#;

/// Random choices of a seed.
pub struct Dice(u64);

impl Dice {
    pub fn new(seed: u64) -> Self {
        let mut dice = Self(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1);
        for _ in 0..16 {
            dice.below(2);
        }
        dice
    }

    pub fn below(&mut self, end: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 % end as u64).unwrap()
    }

    pub fn one<T: Clone>(&mut self, all: &[T]) -> T {
        all[self.below(all.len())].clone()
    }

    fn some(&mut self, all: &[&str]) -> Vec<String> {
        all.iter().filter(|_| self.below(2) == 0).map(|s| (*s).to_owned()).collect()
    }

    /// Members of an object, each there or not.
    fn members(&mut self, all: &Value) -> Map<String, Value> {
        let all = all.as_object().unwrap();
        all.iter().filter(|_| self.below(3) > 0).map(|(name, value)| (name.clone(), value.clone())).collect()
    }
}

fn near(at: Timestamp, by: i64) -> Value {
    json!(Timestamp::from_millis(at.millis() + by))
}

/// A draft of an item, and its spans.
pub fn item(dice: &mut Dice, now: Timestamp) -> (Value, Planted) {
    let times = [near(now, -DAY), near(now, -DAY - 1), near(now, -9 * DAY), json!("2026-04-01T00:00:00Z")];
    let provenance = json!({
        "captured_at": dice.one(&times), "confidence": dice.one(&CONFIDENCES), "channel": "chat",
    });
    let ends = [near(now, 0), near(now, 1), near(now, -1), near(now, DAY)];
    let provenance = dice.members(&provenance);
    let all = json!({
        "labels": dice.some(&["c", "b", "a", "meadow"]), "subject_entity_id": dice.one(&["ent_ann", "watchmaker"]),
        "provenance": provenance, "sensitivity": dice.one(&SENSITIVITIES), "exportable": dice.below(4) > 0,
        "extensions": {"example.org": {"x": [1, 2.50]}}, "embedding": {"model": "m"},
        "scope_id": if dice.below(8) == 0 { "work" } else { "personal" },
    });
    let mut item = dice.members(&all);
    if dice.below(3) == 0 {
        item.insert("ttl_days".to_owned(), json!(dice.one(&[1, 2, 30])));
    }
    if dice.below(4) == 0 {
        item.insert("expires_at".to_owned(), dice.one(&ends));
    }
    item.insert("kind".to_owned(), json!(dice.one(&KINDS)));
    let structured = structured(dice);
    let (mut planted, mut content) = (Planted::default(), Map::new());
    if structured.is_none() || dice.below(2) == 0 {
        let (text, spans) = text(dice);
        content.insert("text".to_owned(), json!(text));
        planted.spans.insert("/content/text".to_owned(), spans);
    }
    content.extend(structured.map(|structured| ("structured".to_owned(), structured)));
    item.insert("content".to_owned(), content.into());
    (item.into(), planted)
}

fn text(dice: &mut Dice) -> (String, Vec<Span>) {
    let (mut text, mut spans) = (String::new(), Vec::new());
    for _ in 0..=dice.below(4) {
        if !text.is_empty() {
            text.push(' ');
        }
        if dice.below(2) == 0 {
            text.push_str(dice.one(&WORDS));
        } else {
            let (class, said) = dice.one(&SPANS);
            let start = text.len();
            text.push_str(said);
            spans.push(Span { class: class.to_owned(), start, end: text.len(), text: said.to_owned() });
            text.push_str(" then");
        }
    }
    (text, spans)
}

fn structured(dice: &mut Dice) -> Option<Value> {
    let channel = |kind: &str, primary: bool| json!({"type": kind, "primary": primary, "value": "x1"});
    let (members, entity) = match dice.below(5) {
        0 => return None,
        1 => (
            json!({
                "names": dice.members(&json!({"given": "Zoltan", "family": "meadow", "nickname": "Zo"})),
                "affiliations": [{"role": "clerk", "since": 2}, {"organization_id": "org_1", "role": "smith"}, {"since": 3}],
                "channels": [channel("phone", true), channel("email", false), channel("email", true)],
                "languages": ["de", "en"], "addresses": [{"city": "Ulm"}], "social": ["s"], "skills": [], "notes": "lanternfish",
            }),
            "contact",
        ),
        2 => (
            json!({
                "start": "2026-05-02T08:00:00Z", "end": "2026-05-02T09:00:00Z", "title": "bicycle",
                "transparency": dice.one(&["busy", "free"]), "visibility": dice.one(&["public", "private", "confidential"]),
                "private": dice.below(3) == 0, "participant_dids": ["did:web:c.example", "did:web:d.example"],
                "participants": ["x"], "location_general": "Ulm", "location_precise": "Gate 3",
            }),
            "calendar_event",
        ),
        3 => (
            json!({
                "status": "open", "title": "meadow", "due_at": "2026-06-01T00:00:00Z", "priority": 2,
                "assignee_dids": ["did:web:c.example"], "description": "lanternfish", "linked_entities": ["urn:x"],
            }),
            "task",
        ),
        _ => (json!({"status": 1, "names": {"given": "Zoe"}, "depth": [{"a": []}, true, null]}), "place"),
    };
    let mut members = dice.members(&members);
    if entity != "place" || dice.below(2) == 0 {
        members.insert("entity_type".to_owned(), json!(format!("oap.entity.{entity}")));
    }
    (!members.is_empty()).then(|| members.into())
}

/// A filter of a grant.
pub fn filter(dice: &mut Dice, now: Timestamp) -> Value {
    let mut filter = Map::new();
    for _ in 0..dice.below(3) {
        let (name, value) = match dice.below(10) {
            0 => ("kinds", json!(dice.some(&KINDS))),
            1 => ("labels_any", json!(dice.some(&["a", "b", "z"]))),
            2 => ("labels_all", json!(dice.some(&["a", "b", "z"]))),
            3 => ("exclude_labels", json!(dice.some(&["a", "c", "z"]))),
            4 => ("subject_entity_ids", json!(dice.some(&["ent_ann", "ent_eve"]))),
            5 => ("sensitivities", json!(dice.some(&SENSITIVITIES))),
            6 => ("scopes", json!(dice.some(&["personal", "work"]))),
            7 => ("captured_after", dice.one(&[near(now, -DAY), near(now, -9 * DAY + 1)])),
            8 => ("captured_before", dice.one(&[near(now, -DAY), near(now, -DAY + 1)])),
            _ => ("min_confidence", json!(dice.one(&CONFIDENCES))),
        };
        filter.insert(name.to_owned(), value);
    }
    filter.into()
}

/// What is asked under a grant.
pub fn query(dice: &mut Dice) -> Value {
    let mut query = Map::new();
    if dice.below(3) > 0 {
        query.insert("max_results".to_owned(), json!(dice.one(&[1, 2, 3, 100])));
    }
    for _ in 0..dice.below(3) {
        let (name, value) = match dice.below(6) {
            0 => (
                "query",
                json!(dice.one(&["cartographers", "bicycle", "lanternfish", "meadow", "watchmaker"])),
            ),
            1 => ("kinds", json!(dice.some(&KINDS))),
            2 => ("labels_any", json!(dice.some(&["a", "b", "z"]))),
            3 => ("min_confidence", json!(dice.one(&CONFIDENCES))),
            4 => ("integrity", json!("chain")),
            _ => ("include_embeddings", json!(true)),
        };
        query.insert(name.to_owned(), value);
    }
    query.into()
}

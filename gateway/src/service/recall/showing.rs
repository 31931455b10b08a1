//! What is handed on of an item of somebody else's, once it is proved.

use super::Wanted;
use oap_agents::Level;
use oap_agents::foreign::{Foreign, Via, plain};
use oap_memory::Kind;
use oap_memory::evidence::VerifiedItem;
use oap_memory::item::Confidence;
use oap_soundness::guard::{Verdict, examine_all};
use serde_json::{Map, Value};

/// What becomes of an item.
pub(super) enum Shown {
    /// It is handed on; it says so many bytes.
    Is(Box<Foreign>, usize),
    /// It reads as an order to whoever reads it.
    Stopped,
    /// It is none of what was asked for, or says nothing.
    Not,
}

/// Judges a visible item of a checked answer.
pub(super) fn show(item: &Value, verified: &VerifiedItem, via: &Via, wanted: &Wanted) -> Shown {
    let content = |name: &str| item.get("content").and_then(|content| content.get(name));
    let text = content("text").and_then(Value::as_str);
    let structured: Option<Map<String, Value>> = content("structured").and_then(Value::as_object).cloned();
    let structured_text =
        structured.as_ref().and_then(|map| serde_json::to_string(map).ok()).unwrap_or_default();
    let labels = item.get("labels").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    let labels: Vec<&str> = labels.iter().filter_map(Value::as_str).collect();
    let kind = item.get("kind").and_then(Value::as_str).and_then(|kind| kind.parse::<Kind>().ok());
    let provenance = |name: &str| item.get("provenance").and_then(|provenance| provenance.get(name));
    let claimed = provenance("confidence")
        .and_then(|claimed| serde_json::from_value::<Confidence>(claimed.clone()).ok());
    let confidence = Level::External.confidence(claimed);
    let Some(kind) = kind.filter(|kind| wanted.kinds.is_empty() || wanted.kinds.contains(kind)) else {
        return Shown::Not;
    };
    let says_something = text.is_some_and(|text| !text.trim().is_empty()) || structured.is_some();
    let is_wanted = says_something
        && wanted.labels.iter().all(|label| labels.contains(&label.as_str()))
        && wanted.least.is_none_or(|least| confidence >= least);
    if !is_wanted {
        return Shown::Not;
    }
    let beside = labels.join(" ");
    let findings = examine_all([text.unwrap_or_default(), &structured_text, &beside]);
    if findings.verdict(Level::External) == Verdict::Quarantined {
        return Shown::Stopped;
    }
    let bytes = text.map_or(0, str::len) + structured_text.len() + beside.len();
    let foreign = Foreign {
        place: 0,
        item_id: verified.item_id,
        commitment: verified.chain.last().commitment,
        kind,
        content: text.map(plain),
        structured,
        tags: labels.into_iter().map(plain).collect(),
        shown_by: vec![via.clone()],
        level: Level::External,
        confidence,
        learned_at: provenance("captured_at").and_then(Value::as_str).and_then(|at| at.parse().ok()),
    };
    Shown::Is(Box::new(foreign), bytes)
}

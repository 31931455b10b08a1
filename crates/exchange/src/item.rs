//! One item as its grantee sees it.

use crate::slice::{Model, ViewError};
use oap_identity::json::{self, JsonError, canonical_text};
use oap_identity::{Hash, ItemId, Timestamp};
use oap_memory::epistemic::{self, Epistemic};
use oap_memory::project::project;
use oap_memory::record::{Head, Whole};
use oap_memory::{Confidence, Kind, Profile, TrustLevel};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

/// One item of a view: what its grantee sees of it, written out.
#[derive(Debug, Clone)]
pub struct ViewItem {
    pub(crate) id: ItemId,
    pub(crate) seq: u32,
    pub(crate) commitment: Hash,
    pub(crate) kind: Option<Kind>,
    pub(crate) labels: Vec<String>,
    pub(crate) confidence: Option<Confidence>,
    pub(crate) captured_at: Timestamp,
    /// The members before `integrity`, between it and `relevance`, and after, in canonical order.
    pub(crate) members: [Box<str>; 3],
    /// `"capture_receipt":…,"chain":…`.
    pub(crate) chain: Box<str>,
    pub(crate) sd_jwt: Box<str>,
}

#[allow(missing_docs, reason = "the names say it")]
impl ViewItem {
    #[must_use]
    pub const fn id(&self) -> ItemId {
        self.id
    }

    /// The number of the last link of its chain: what is shown of it is in force until another follows.
    #[must_use]
    pub const fn last_link(&self) -> u32 {
        self.seq
    }

    /// About so many bytes of an answer.
    #[must_use]
    pub fn size(&self) -> usize {
        self.members.iter().map(|members| members.len()).sum::<usize>() + self.chain.len() + self.sd_jwt.len()
    }

    /// The commitment of the version in force.
    #[must_use]
    pub const fn commitment(&self) -> Hash {
        self.commitment
    }

    /// The kind, where the profile shows it.
    #[must_use]
    pub const fn kind(&self) -> Option<Kind> {
        self.kind
    }

    /// The item as its grantee sees it, without proof and relevance.
    ///
    /// # Errors
    /// Never in practice: the members were written by this module.
    pub fn visible(&self) -> Result<Value, JsonError> {
        let parts: Vec<&str> = self.members.iter().map(|part| &**part).filter(|p| !p.is_empty()).collect();
        json::parse(format!("{{{}}}", parts.join(",")).as_bytes())
    }
}

impl ViewItem {
    /// The item as its grantee sees it, with its proof, as it stands in a bundle.
    ///
    /// # Errors
    /// Never in practice: the members were written by this module.
    pub(crate) fn proved(&self) -> Result<Value, JsonError> {
        let mut item = self.visible()?;
        item["integrity"] =
            json::parse(format!(r#"{{{},"sd_jwt":"{}"}}"#, self.chain, self.sd_jwt).as_bytes())?;
        Ok(item)
    }

    /// Adds where the item's vector is. `embedding_ref` sorts between `content` and `epistemic`, all before
    /// `integrity`.
    pub(crate) fn refer(&mut self, model: &Model) -> Result<(), JsonError> {
        let reference = json!({
            "model": model.name, "dimensions": model.dimensions,
            "vector_url": format!("{}{}", model.url, self.id),
        });
        let before = json::parse(format!("{{{}}}", self.members[0]).as_bytes())?;
        let mut members: BTreeMap<String, Value> =
            before.as_object().cloned().unwrap_or_default().into_iter().collect();
        members.insert("embedding_ref".to_owned(), reference);
        let all = canonical_text(&members)?;
        self.members[0] = all[1..all.len() - 1].into();
        Ok(())
    }

    pub(crate) fn bytes(&self) -> usize {
        self.members.iter().map(|part| part.len()).sum::<usize>() + self.chain.len() + self.sd_jwt.len() + 200
    }
}

/// How items are shown under one grant.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Showing<'a> {
    pub(crate) profile: &'a Profile,
    pub(crate) level: TrustLevel,
    pub(crate) embeddings: bool,
    pub(crate) belief_threshold: Confidence,
}

/// What a grantee sees of an item: written out, and as text to match.
pub(crate) fn show<E>(head: &Head, whole: &Whole, by: Showing) -> Result<(ViewItem, String), ViewError<E>> {
    let wrong = |e| ViewError::Commitment(head.item_id, e);
    let projected = project(&whole.committed, by.profile, by.level, by.embeddings).map_err(wrong)?;
    let visible = projected.item();
    let attitude = epistemic::classify(head.confidence, head.meta.human_verified, by.belief_threshold);
    let item = ViewItem {
        id: head.item_id,
        seq: head.seq,
        commitment: whole.committed.commitment(),
        kind: visible.get("kind").and_then(Value::as_str).and_then(|kind| kind.parse().ok()),
        labels: strings(visible.get("labels")),
        confidence: visible
            .get("provenance")
            .and_then(|p| p.get("confidence"))
            .and_then(Value::as_f64)
            .and_then(|c| c.try_into().ok()),
        captured_at: visible
            .get("provenance")
            .and_then(|p| p.get("captured_at"))
            .and_then(Value::as_str)
            .and_then(|at| at.parse().ok())
            .unwrap_or(Timestamp::from_millis(0)),
        members: members(visible, attitude)?,
        chain: chain(whole),
        sd_jwt: projected.sd_jwt(&whole.committed).into(),
    };
    Ok((item, visible_text(visible)))
}

fn strings(value: Option<&Value>) -> Vec<String> {
    let texts = value.and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    texts.iter().filter_map(|v| v.as_str().map(str::to_owned)).collect()
}

/// The item's members in canonical order, in three parts: `integrity` and `relevance` go between them.
fn members(visible: &Map<String, Value>, attitude: Epistemic) -> Result<[Box<str>; 3], JsonError> {
    let attitude = Value::from(attitude.as_str());
    let mut all: BTreeMap<&str, &Value> =
        visible.iter().map(|(name, value)| (name.as_str(), value)).collect();
    all.insert("epistemic", &attitude);
    let mut parts = [String::new(), String::new(), String::new()];
    for (name, value) in all {
        let part = match name {
            n if n < "integrity" => &mut parts[0],
            n if n < "relevance" => &mut parts[1],
            _ => &mut parts[2],
        };
        if !part.is_empty() {
            part.push(',');
        }
        part.push_str(&canonical_text(&name)?);
        part.push(':');
        part.push_str(&canonical_text(value)?);
    }
    Ok(parts.map(String::into_boxed_str))
}

fn chain(whole: &Whole) -> Box<str> {
    format!(r#""capture_receipt":{},"chain":[{}]"#, whole.capture_receipt, whole.chain.join(",")).into()
}

/// Everything visible as a string: text, labels, subject, structured leaves (protocol section 0).
#[must_use]
pub fn visible_text(visible: &Map<String, Value>) -> String {
    let mut text = String::new();
    for name in ["content", "labels", "subject_entity_id"] {
        if let Some(value) = visible.get(name) {
            leaves(value, &mut text);
        }
    }
    text
}

fn leaves(value: &Value, text: &mut String) {
    match value {
        Value::String(leaf) => {
            text.push_str(leaf);
            text.push('\n');
        }
        Value::Number(leaf) => {
            text.push_str(&leaf.to_string());
            text.push('\n');
        }
        Value::Array(values) => values.iter().for_each(|v| leaves(v, text)),
        Value::Object(map) => map.values().for_each(|v| leaves(v, text)),
        Value::Bool(_) | Value::Null => {}
    }
}

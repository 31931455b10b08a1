//! One item as its grantee sees it, written out.

use crate::setting::Model;
use oap_identity::json::{self, JsonError, canonical_text};
use oap_identity::{Hash, ItemId};
use oap_memory::commitment::CommitmentError;
use oap_memory::epistemic::Epistemic;
use oap_memory::project::Projected;
use oap_memory::record::ItemRecord;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

/// One item of a view or a preview, written out.
#[derive(Debug, Clone)]
pub struct ViewItem {
    id: ItemId,
    commitment: Hash,
    /// The members before `embedding_ref`, between it and `integrity`, between that and `relevance`, and after, in
    /// canonical order.
    members: [Box<str>; 4],
    /// `"capture_receipt":…,"chain":…`.
    chain: Box<str>,
    sd_jwt: Box<str>,
}

impl ViewItem {
    /// Writes an item out as it was projected.
    pub(crate) fn write(
        id: ItemId,
        attitude: Epistemic,
        projected: &Projected,
        whole: &ItemRecord,
    ) -> Result<Self, CommitmentError> {
        Ok(Self {
            id,
            commitment: whole.committed.commitment(),
            members: members(projected.item(), attitude)?,
            chain: chain(whole),
            sd_jwt: projected.sd_jwt(&whole.committed)?.into(),
        })
    }

    /// The item.
    #[must_use]
    pub const fn id(&self) -> ItemId {
        self.id
    }

    /// The commitment of the version in force.
    #[must_use]
    pub const fn commitment(&self) -> Hash {
        self.commitment
    }

    /// About so many bytes of an answer, and of memory.
    #[must_use]
    pub(crate) fn size(&self) -> usize {
        self.members.iter().map(|members| members.len()).sum::<usize>() + self.chain.len() + self.sd_jwt.len()
    }

    /// The item as its grantee sees it, without proof and relevance.
    ///
    /// # Errors
    /// Never in practice: the members were written by this module.
    pub fn visible(&self) -> Result<Value, JsonError> {
        let parts: Vec<&str> = self.members.iter().map(|part| &**part).filter(|p| !p.is_empty()).collect();
        json::parse(format!("{{{}}}", parts.join(",")).as_bytes())
    }

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

    /// Adds where the item's vector is.
    pub(crate) fn refer(&mut self, to: &Reference) -> Result<(), JsonError> {
        let mut before = String::from(std::mem::take(&mut self.members[0]));
        put(&mut before, &to.member(self.id)?);
        self.members[0] = before.into();
        Ok(())
    }

    /// The item as it stands in an answer, in canonical form: with where its vector is, if it is shown, with the SD-JWT,
    /// if it is asked for.
    pub(crate) fn answer(&self, vector: Option<&str>, sd_jwt: bool, relevance: f64, out: &mut String) {
        let [before, between, after, last] = &self.members;
        let start = out.len() + 1;
        out.push('{');
        let mut member = |text: &[&str]| {
            if text.iter().any(|part| !part.is_empty()) {
                if out.len() > start {
                    out.push(',');
                }
                text.iter().for_each(|part| out.push_str(part));
            }
        };
        member(&[before]);
        member(&[vector.unwrap_or_default()]);
        member(&[between]);
        match sd_jwt {
            true => member(&[r#""integrity":{"#, &self.chain, r#","sd_jwt":""#, &self.sd_jwt, r#""}"#]),
            false => member(&[r#""integrity":{"#, &self.chain, "}"]),
        }
        member(&[after]);
        // Four decimals: short enough to be written alike by every number formatter.
        member(&[r#""relevance":"#, &relevance.to_string()]);
        member(&[last]);
        out.push('}');
    }
}

fn put(members: &mut String, member: &str) {
    if !members.is_empty() {
        members.push(',');
    }
    members.push_str(member);
}

/// Where the vectors of items are served, and of which model they are.
#[derive(Debug, Clone)]
pub(crate) struct Reference {
    model: String,
    dimensions: usize,
    url: String,
}

impl Reference {
    pub(crate) fn to(model: &Model) -> Self {
        Self { model: model.name.to_owned(), dimensions: model.dimensions, url: model.url.to_owned() }
    }

    /// `"embedding_ref":…` of an item.
    pub(crate) fn member(&self, item: ItemId) -> Result<String, JsonError> {
        let reference = json!({
            "model": self.model, "dimensions": self.dimensions, "vector_url": format!("{}{item}", self.url),
        });
        Ok(format!(r#""{EMBEDDING_REF}":{}"#, canonical_text(&reference)?))
    }
}

const EMBEDDING_REF: &str = "embedding_ref";

/// The item's members in canonical order, in four parts: `embedding_ref`, `integrity` and `relevance` go between them.
fn members(visible: &Map<String, Value>, attitude: Epistemic) -> Result<[Box<str>; 4], JsonError> {
    let attitude = Value::from(attitude.as_str());
    let mut all: BTreeMap<&str, &Value> =
        visible.iter().map(|(name, value)| (name.as_str(), value)).collect();
    all.insert("epistemic", &attitude);
    let mut parts = [const { String::new() }; 4];
    for (name, value) in all {
        let part = match name {
            n if n < EMBEDDING_REF => &mut parts[0],
            n if n < "integrity" => &mut parts[1],
            n if n < "relevance" => &mut parts[2],
            _ => &mut parts[3],
        };
        put(part, &format!("{}:{}", canonical_text(&name)?, canonical_text(value)?));
    }
    Ok(parts.map(String::into_boxed_str))
}

fn chain(whole: &ItemRecord) -> Box<str> {
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

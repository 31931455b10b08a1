//! Tables: what CSV and JSON Lines have in common, with a mapping of their columns.

use super::{Draft, Reach, Sink, refused, skipped, time};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::str::FromStr;

pub(super) const ABOUT: &str = "columns become members as the mapping says (text, kind, label, subject, captured_at, confidence, \
    scope, id); columns that it does not name become structured content; commas, semicolons, tabs or bars separate columns; without an id a row is told apart by what it says";

/// Which column stands for which member.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Mapping(BTreeMap<String, String>);

/// The members that a column can stand for, and the names that are taken for them where no mapping says so.
const MEMBERS: [(&str, &[&str]); 8] = [
    ("text", &["text", "content", "memory", "body", "note"]),
    ("kind", &["kind"]),
    ("label", &["label", "labels", "tags"]),
    ("subject", &["subject", "subject_entity_id"]),
    ("captured_at", &["captured_at", "created_at", "date", "time", "timestamp"]),
    ("confidence", &["confidence"]),
    ("scope", &["scope", "scope_id"]),
    ("id", &["id", "uuid"]),
];

/// Why a text is no mapping.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum MappingError {
    /// A part without `=`.
    #[error("{0:?}: is no member=column")]
    Pair(String),
    /// No member that a column can stand for.
    #[error("{0:?}: must be one of {list}", list = MEMBERS.map(|(known, _)| known).join(", "))]
    Member(String),
}

/// Reads `text=body,label=tags`.
impl FromStr for Mapping {
    type Err = MappingError;

    fn from_str(text: &str) -> Result<Self, MappingError> {
        let mut mapping = BTreeMap::new();
        for pair in text.split(',').filter(|pair| !pair.trim().is_empty()) {
            let (member, column) = pair.split_once('=').ok_or_else(|| MappingError::Pair(pair.to_owned()))?;
            if !MEMBERS.iter().any(|(known, _)| *known == member.trim()) {
                return Err(MappingError::Member(member.to_owned()));
            }
            mapping.insert(member.trim().to_owned(), column.trim().to_owned());
        }
        Ok(Self(mapping))
    }
}

impl Mapping {
    /// The column for a member in a row.
    fn column<'a>(&'a self, member: &str, row: &Map<String, Value>) -> Option<&'a str> {
        if let Some(column) = self.0.get(member) {
            return Some(column);
        }
        let names = MEMBERS.iter().find(|(known, _)| *known == member).map(|(_, names)| *names)?;
        names.iter().copied().find(|name| row.contains_key(*name))
    }
}

/// One row; `from` is the name of its format.
pub(super) fn one(
    from: &str,
    mut row: Map<String, Value>,
    mapping: &Mapping,
    place: String,
    sink: Sink,
) -> ControlFlow<()> {
    if row.is_empty() {
        return sink(skipped(place, "an empty row"));
    }
    let says = oap_identity::Hash::of_canonical(&row).map(|hash| hash.to_string()).unwrap_or_default();
    let mut take = |member: &str| {
        let column = mapping.column(member, &row)?.to_owned();
        row.remove(&column)
    };
    let said = take("text");
    let (kind, labels, subject) = (take("kind"), take("label"), take("subject"));
    let (at, confidence, scope, id) = (take("captured_at"), take("confidence"), take("scope"), take("id"));
    let as_text = |value: &Option<Value>| match value {
        Some(Value::String(text)) => text.trim().to_owned(),
        Some(other) => other.to_string(),
        None => String::new(),
    };
    // It has a number or a label, and says nothing.
    if row.is_empty() && as_text(&said).is_empty() {
        return sink(skipped(place, "an empty row"));
    }
    let kind = if kind.is_some() { as_text(&kind) } else { "fact".to_owned() };
    let mut draft =
        Draft::new(&kind, &as_text(&said), from).structured(row).subject(Some(&as_text(&subject)));
    if let Some(at) = &at {
        match time(at) {
            Some(at) => draft = draft.at(Some(at)),
            None => return sink(refused(place, format!("captured_at: {at} is no time"))),
        }
    }
    if confidence.is_some() {
        match as_text(&confidence).parse::<f64>() {
            Ok(confidence) => draft = draft.confidence(confidence),
            Err(_) => return sink(refused(place, "confidence: must be a number from 0 to 1")),
        }
    }
    if scope.is_some() {
        draft.item["scope_id"] = json!(as_text(&scope));
    }
    match &labels {
        Some(Value::Array(all)) => {
            for label in all.iter().filter_map(Value::as_str) {
                draft = draft.label(label);
            }
        }
        labels => {
            for label in as_text(&labels.clone()).split([';', ',']) {
                draft = draft.label(label);
            }
        }
    }
    let source = match &id {
        Some(_) => format!("{from}:{}", as_text(&id)),
        None => format!("{from}:{says}"),
    };
    draft = draft.tag("row", id.as_ref()).reach(if id.is_some() { Reach::File } else { Reach::World });
    draft.send(source, place, sink)
}

//! A profile of the owner's own: a TOML document of five levels, maybe with five more for one entity type.

use super::path::{Place, places, reads};
use super::{Condition, Rule, TextRule};
use crate::model::item::Version;
use oap_identity::Hash;
use serde_json::Value;

/// A profile document.
#[derive(Debug, Clone)]
pub(in crate::model) struct Document {
    pub name: String,
    /// SHA-256 of the canonical form of the document.
    pub hash: String,
    /// The document as JSON.
    toml: Value,
}

impl Document {
    /// Reads a document; `None` where it is no TOML or has no name.
    pub fn read(text: &str) -> Option<Self> {
        let toml: Value = serde_json::to_value(toml::from_str::<toml::Value>(text).ok()?).ok()?;
        let hash = Hash::of_canonical(&toml).ok()?.to_string();
        Some(Self { name: toml["name"].as_str()?.to_owned(), hash, toml })
    }

    /// The lowest level at which a grant may name it.
    pub fn minimum_level(&self) -> u64 {
        self.toml["minimum_level"].as_u64().unwrap_or(0)
    }

    /// `redacted_field_count` at a level (protocol section 6): of each of its tables the entries of the levels above, and one where it hides text.
    pub fn redacted(&self, level: u8) -> u64 {
        let tables = [&self.toml["level"], &self.toml["entity"]["level"]];
        let count = |levels: &Vec<Value>| {
            let above = levels.iter().skip(usize::from(level) + 1);
            let entries: usize = above.filter_map(|rules| rules["fields"].as_array()).map(Vec::len).sum();
            let mut said =
                levels.iter().take(usize::from(level) + 1).filter(|rules| !rules["text"].is_null());
            entries + usize::from(said.next_back().is_none_or(|rules| rules["text"] == "hidden"))
        };
        tables.into_iter().filter_map(Value::as_array).map(|levels| count(levels) as u64).sum()
    }

    /// The places that a level shows, and how it shows the text.
    pub(super) fn shows(
        &self,
        version: &Version,
        level: u8,
        decided: &mut Vec<Rule>,
    ) -> (Vec<Place>, TextRule) {
        let (mut shown, mut text) = (Vec::new(), TextRule::Hidden);
        let entity = &self.toml["entity"];
        let is_of = entity["type"].is_string() && entity["type"].as_str() == version.entity_type();
        let levels = if is_of { &entity["level"] } else { &self.toml["level"] };
        if is_of {
            decided.push(Rule::Condition(Condition::OwnEntity));
        }
        for rules in levels.as_array().into_iter().flatten().take(usize::from(level) + 1) {
            for field in rules["fields"].as_array().into_iter().flatten() {
                let path = field.as_str().or_else(|| field["path"].as_str()).unwrap_or_default();
                let (found, holds) = (places(path, &version.whole), holds(field, &version.whole));
                if !found.is_empty() && field.is_object() {
                    let rule = if holds { Condition::OwnHolds } else { Condition::OwnFails };
                    decided.push(Rule::Condition(rule));
                }
                if path.contains('[') && !found.is_empty() {
                    decided.push(Rule::Condition(Condition::OwnElements));
                }
                if holds {
                    shown.extend(found);
                }
            }
            match &rules["text"] {
                Value::String(word) if word == "full" => text = TextRule::Full,
                Value::String(_) => text = TextRule::Hidden,
                Value::Object(spans) => {
                    let classes = spans.get("spans").and_then(Value::as_array).into_iter().flatten();
                    text = TextRule::Spans(classes.filter_map(|c| c.as_str().map(str::to_owned)).collect());
                }
                _ => {}
            }
        }
        (shown, text)
    }
}

/// Whether all conditions of `when` hold and none of `unless`: a condition is `<path>=<value>` of the whole item.
fn holds(field: &Value, whole: &Value) -> bool {
    let condition = |condition: &Value| {
        let (path, wanted) = condition.as_str().and_then(|text| text.split_once('=')).unwrap_or_default();
        let value = path.trim().split('.').try_fold(whole, |value, name| value.get(name));
        value.is_some_and(|value| reads(value, wanted.trim()))
    };
    let list = |name: &str| field[name].as_array().map(Vec::as_slice).unwrap_or_default();
    list("when").iter().all(condition) && !list("unless").iter().any(condition)
}

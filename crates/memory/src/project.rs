//! Projection: choosing which of a version's disclosures a grantee gets (protocol section 7).
//!
//! What is chosen is part of what was captured, in its order, and any SD-JWT library can check it. The visible
//! item is put together from the chosen disclosures alone, by the code that the receiver uses.

use crate::commitment::{self, CommitmentError, Committed};
use crate::profile::{Profile, TextRule, TrustLevel, is_shown};
use crate::record::Status;
use crate::sd_jwt::Disclosure;
use crate::tree::{self, Step};
use serde_json::{Map, Value};

/// A version as one profile and level show it.
#[derive(Debug, Clone)]
pub struct Projected<'a> {
    chosen: Vec<&'a Disclosure>,
    item: Map<String, Value>,
}

impl<'a> Projected<'a> {
    /// The visible item, in its wire form.
    #[must_use]
    pub const fn item(&self) -> &Map<String, Value> {
        &self.item
    }

    /// The SD-JWT with the chosen disclosures.
    #[must_use]
    pub fn sd_jwt(&self, committed: &Committed) -> String {
        committed.present(self.chosen.iter().copied())
    }

    /// The chosen disclosures.
    #[must_use]
    pub fn chosen(&self) -> &[&'a Disclosure] {
        &self.chosen
    }
}

/// Projects a version. The embedding is left out unless asked for, whatever the profile says.
///
/// # Errors
/// [`CommitmentError`] when the stored version is not what was committed.
pub fn project<'a>(
    committed: &'a Committed,
    profile: &Profile,
    level: TrustLevel,
    embedding: bool,
) -> Result<Projected<'a>, CommitmentError> {
    let full = Value::Object(committed.claims(committed.disclosures().iter())?);
    let table = profile.table(&full);
    let shown = table.shown(level, &full);
    let text = table.text(level);
    let mut chosen = Vec::new();
    for disclosure in committed.disclosures() {
        let steps = disclosure.path().steps();
        let visible = match place(steps) {
            Place::Text => *text != TextRule::Hidden,
            Place::Span => shows_span(text, &full, disclosure),
            Place::Embedding => embedding && is_shown(steps, &shown),
            // The container of the text, when nothing else in it is shown.
            Place::Content => is_shown(steps, &shown) || (*text != TextRule::Hidden && has_text(&full)),
            Place::Other => is_shown(steps, &shown),
        };
        if visible {
            chosen.push(disclosure);
        }
    }
    let claims = committed.claims(chosen.iter().copied())?;
    let mut item = commitment::wire(&claims)?;
    // Nothing else is in a view.
    item.insert("status".to_owned(), Status::Current.as_str().into());
    Ok(Projected { item, chosen })
}

enum Place {
    /// `content`.
    Content,
    /// `content.text` and its segments.
    Text,
    /// What a span says: `content.text[i].v`.
    Span,
    /// `embedding` and below.
    Embedding,
    /// Anything else.
    Other,
}

fn place(steps: &[Step]) -> Place {
    let member = |i: usize, name: &str| matches!(steps.get(i), Some(Step::Member(m)) if m == name);
    match steps.len() {
        1 if member(0, "content") => Place::Content,
        _ if member(0, "embedding") => Place::Embedding,
        4.. if member(0, "content") && member(1, "text") => Place::Span,
        _ if member(0, "content") && member(1, "text") => Place::Text,
        _ => Place::Other,
    }
}

fn has_text(full: &Value) -> bool {
    full.pointer("/content/text").is_some()
}

fn shows_span(text: &TextRule, full: &Value, disclosure: &Disclosure) -> bool {
    let class = tree::at(full, disclosure.path()).and(full.pointer("/content/text")).and_then(|segments| {
        match disclosure.path().steps() {
            [_, _, Step::Element(i), _] => segments.get(*i as usize)?.get("t")?.as_str()?.parse().ok(),
            _ => None,
        }
    });
    class.is_some_and(|class| text.shows(class))
}

/// What one rule of a profile did to an item.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
pub struct Explained {
    /// The level that adds the rule.
    pub level: u8,
    /// The field path with its conditions, or `text`.
    pub rule: String,
    /// What it showed: places, classes of spans, or why nothing.
    pub effect: String,
}

/// What each rule of a profile does to a version at a level, in the profile's order; the text rule comes last.
///
/// # Errors
/// [`CommitmentError`] when the stored version is not what was committed.
pub fn explain(
    committed: &Committed,
    profile: &Profile,
    level: TrustLevel,
) -> Result<Vec<Explained>, CommitmentError> {
    let full = Value::Object(committed.claims(committed.disclosures().iter())?);
    let table = profile.table(&full);
    let mut rules: Vec<Explained> = table
        .fields(TrustLevel::INNER_CIRCLE)
        .map(|(at, field)| {
            let places = field.places(&full);
            let effect = if at > level {
                format!("hidden: needs level {}", at.get())
            } else if !field.is_met(&full) {
                "hidden: its condition says so".to_owned()
            } else if places.is_empty() {
                "nothing there".to_owned()
            } else {
                let all: Vec<String> = places
                    .iter()
                    .map(|p| if p.steps().is_empty() { "everything".into() } else { p.to_string() })
                    .collect();
                format!("shows {}", all.join(", "))
            };
            Explained { level: at.get(), rule: format!("{}{}", field.as_str(), field.conditions()), effect }
        })
        .collect();
    let text = table.text(level);
    let segments =
        full.pointer("/content/text").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    let classes: Vec<crate::detect::SpanClass> =
        segments.iter().filter_map(|s| s.get("t")?.as_str()?.parse().ok()).collect();
    let of = |shown: bool| {
        let names: std::collections::BTreeSet<&str> =
            classes.iter().filter(|class| text.shows(**class) == shown).map(|class| class.as_str()).collect();
        if names.is_empty() { "none".to_owned() } else { names.into_iter().collect::<Vec<_>>().join(", ") }
    };
    let effect = match text {
        _ if segments.is_empty() => "nothing there".to_owned(),
        TextRule::Hidden => "hidden".to_owned(),
        _ => format!("shown; spans shown: {}; spans hidden: {}", of(true), of(false)),
    };
    rules.push(Explained { level: level.get(), rule: "text".to_owned(), effect });
    Ok(rules)
}

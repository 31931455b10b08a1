//! Projection: choosing which of a version's disclosures a grantee gets (protocol section 7).
//!
//! What is chosen is part of what was captured, in its order, and any SD-JWT library can check it. The visible item is what the
//! receiver puts together of the chosen disclosures (a test of every profile and level holds it).

use crate::commitment::{self, CommitmentError, Committed};
use crate::profile::{Profile, TextRule, TrustLevel, is_shown};
use crate::record::Status;
use crate::sd_jwt::Disclosure;
use crate::tree::{Path, Step};
use serde_json::{Map, Value};

/// A version as one profile and level show it.
#[derive(Debug, Clone)]
pub struct Projected {
    choice: Choice,
    item: Map<String, Value>,
}

/// What is shown of a version, place by place.
#[derive(Debug, Clone)]
struct Choice {
    /// All its claims.
    full: Value,
    shown: Vec<Path>,
    text: TextRule,
    embedding: bool,
}

impl Choice {
    fn of(full: Value, profile: &Profile, level: TrustLevel, embedding: bool) -> Self {
        let table = profile.table(&full);
        let (shown, text) = (table.shown(level, &full), table.text(level).clone());
        Self { shown, text, embedding, full }
    }

    /// Whether what stands at a place that is concealed is shown.
    fn shows(&self, steps: &[Step]) -> bool {
        match place(steps) {
            Place::Text => self.text != TextRule::Hidden,
            Place::Span => self.shows_span(steps),
            Place::Embedding => self.embedding && is_shown(steps, &self.shown),
            // The container of the text, when nothing else in it is shown.
            Place::Content => {
                is_shown(steps, &self.shown) || (self.text != TextRule::Hidden && self.has_text())
            }
            Place::Other => is_shown(steps, &self.shown),
        }
    }

    fn has_text(&self) -> bool {
        self.full.pointer("/content/text").is_some()
    }

    fn shows_span(&self, steps: &[Step]) -> bool {
        let [_, _, Step::Element(segment), _] = steps else { return false };
        let segment = self.full.pointer("/content/text").and_then(|text| text.get(*segment as usize));
        let class = segment.and_then(|segment| segment.get("t")?.as_str()?.parse().ok());
        class.is_some_and(|class| self.text.shows(class))
    }
}

impl Projected {
    /// The visible item, in its wire form.
    #[must_use]
    pub const fn item(&self) -> &Map<String, Value> {
        &self.item
    }

    /// The SD-JWT of the version with the chosen disclosures.
    ///
    /// # Errors
    /// [`CommitmentError`] when what is stored is not what was committed.
    pub fn sd_jwt(&self, committed: &Committed) -> Result<String, CommitmentError> {
        committed.present(self.chosen(committed)?)
    }

    /// The chosen disclosures of the version.
    ///
    /// # Errors
    /// As [`Projected::sd_jwt`].
    pub fn chosen<'a>(
        &'a self,
        committed: &'a Committed,
    ) -> Result<impl Iterator<Item = &'a Disclosure>, CommitmentError> {
        let all = committed.disclosures()?.iter();
        Ok(all.filter(|disclosure| self.choice.shows(disclosure.path().steps())))
    }
}

/// Projects a version. The embedding is left out unless asked for, whatever the profile says.
///
/// # Errors
/// [`CommitmentError`] when the stored version is not what was committed.
pub fn project(
    committed: &Committed,
    profile: &Profile,
    level: TrustLevel,
    embedding: bool,
) -> Result<Projected, CommitmentError> {
    let choice = Choice::of(Value::Object(committed.claims()?), profile, level, embedding);
    let shown = commitment::shown(&choice.full, |steps| choice.shows(steps));
    let mut item = commitment::wire(&shown)?;
    // Nothing else is in a view.
    item.insert("status".to_owned(), Status::Current.as_str().into());
    Ok(Projected { choice, item })
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
    let full = Value::Object(committed.claims()?);
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

//! Profiles: the tables of the protocol, and the owner's own documents (protocol section 7).

mod document;
mod joined;
mod path;
pub mod table;

use super::Rule;
use super::item::Version;
use super::rule::{Condition, SpanClass, SpanPlace};
use crate::world::Span;
pub(super) use document::Document;
pub use joined::Joined;
use path::{Place, places};
use serde_json::{Map, Value};
use table::{Cell, Column, Table, Text};

/// How text is shown, whoever says so.
#[derive(Debug, Clone, PartialEq, Eq)]
enum TextRule {
    Hidden,
    Spans(Vec<String>),
    Full,
}

impl TextRule {
    /// Whether spans of a class are shown.
    fn shows(&self, class: &str) -> bool {
        match self {
            Self::Hidden => false,
            Self::Spans(classes) => classes.iter().any(|shown| shown == class),
            Self::Full => true,
        }
    }
}

impl From<Text> for TextRule {
    fn from(text: Text) -> Self {
        match text {
            Text::Hidden => Self::Hidden,
            Text::Full => Self::Full,
            Text::Spans(classes) => Self::Spans(classes.iter().map(|class| class.to_string()).collect()),
        }
    }
}

/// What a profile shows of a version, and the rules that decided it.
#[derive(Debug, Clone)]
pub(super) struct Shown {
    /// The members that are shown.
    pub item: Map<String, Value>,
    /// The rules.
    pub rules: Vec<Rule>,
    /// The text, where it has so many spans that some of them may be joined, and is shown without some.
    pub joined: Option<Joined>,
}

/// A version as a profile shows it at a level; `embedding` says whether one was asked for and is granted. `None`: no such profile.
pub(super) fn project(
    version: &Version,
    own: &[Document],
    profile: &str,
    level: u8,
    embedding: bool,
) -> Option<Shown> {
    let mut rules = Vec::new();
    let (shown, text) = match Table::of(profile, version.entity_type()) {
        Some(table) => {
            note_cells(table, level, version, &mut rules);
            (by_table(table, level, &version.whole, &mut rules), table.text(level).into())
        }
        None => {
            rules.push(Rule::Condition(Condition::OwnProfile));
            own.iter().find(|document| document.name == profile)?.shows(version, level, &mut rules)
        }
    };
    let mut item =
        path::only(&version.whole, &shown).and_then(|item| item.as_object().cloned()).unwrap_or_default();
    if !embedding {
        item.remove("embedding");
    }
    let whole = version.text("/content/text");
    let joined = whole.filter(|_| matches!(text, TextRule::Spans(_)));
    let joined = joined.and_then(|whole| Joined::of(whole, &version.spans, |class| text.shows(class)));
    if joined.is_some() {
        rules.push(Rule::Condition(Condition::SpansJoined));
    }
    let content = item.get_mut("content").and_then(Value::as_object_mut);
    match (whole.filter(|_| text != TextRule::Hidden), content) {
        (Some(whole), Some(content)) => {
            drop(content.insert("text".to_owned(), masked(whole, version, &text).into()))
        }
        (Some(whole), None) => {
            let content = Map::from_iter([("text".to_owned(), masked(whole, version, &text).into())]);
            item.insert("content".to_owned(), content.into());
        }
        (None, Some(content)) => drop(content.remove("text")),
        (None, None) => {}
    }
    Some(Shown { item, rules, joined })
}

/// A text with its spans hidden, but those of the classes that are shown.
fn masked(text: &str, version: &Version, rule: &TextRule) -> String {
    let (mut out, mut done) = (String::new(), 0);
    for span in &version.spans {
        out.push_str(text.get(done..span.start).unwrap_or_default());
        let said = text.get(span.start..span.end).unwrap_or_default();
        if rule.shows(&span.class) {
            out.push_str(said);
        } else {
            out.push_str(&format!("[{}]", span.class));
        }
        done = span.end;
    }
    out.push_str(text.get(done..).unwrap_or_default());
    out
}

/// The places that a table shows at a level.
fn by_table(table: Table, level: u8, whole: &Value, rules: &mut Vec<Rule>) -> Vec<Place> {
    if level >= 4 {
        return vec![Vec::new()];
    }
    let fields = table.fields().into_iter().filter(|field| field.from <= level);
    fields
        .filter(|field| condition(table, field.path, whole, rules))
        .flat_map(|field| places(field.path, whole))
        .collect()
}

/// Whether the condition of a field holds, where it has one.
fn condition(table: Table, path: &str, whole: &Value, rules: &mut Vec<Rule>) -> bool {
    let member = |name: &str| whole.pointer("/content/structured").and_then(|event| event.get(name));
    let (holds, rule) = match (table, path) {
        (Table::CalendarEvent, "content.structured.transparency") => match member("transparency") {
            None => return true,
            Some(value) if value == "busy" => (true, Condition::TransparencyBusy),
            Some(_) => (false, Condition::TransparencyOther),
        },
        (Table::CalendarEvent, "content.structured.title") => {
            if member("title").is_none() {
                return true;
            }
            let reads =
                |name: &str, wanted: &str| member(name).is_some_and(|value| path::reads(value, wanted));
            if reads("visibility", "private") {
                (false, Condition::TitleVisibilityPrivate)
            } else if reads("visibility", "confidential") {
                (false, Condition::TitleVisibilityConfidential)
            } else if reads("private", "true") {
                (false, Condition::TitlePrivate)
            } else if whole["sensitivity"] == "restricted" {
                (false, Condition::TitleRestricted)
            } else {
                (true, Condition::TitleShown)
            }
        }
        _ => return true,
    };
    rules.push(Rule::Condition(rule));
    holds
}

/// The cells of a table that say something of a version.
fn note_cells(table: Table, level: u8, version: &Version, rules: &mut Vec<Rule>) {
    let mut cell = |column| rules.push(Rule::Cell(Cell { table, level, column }));
    for field in table.fields() {
        if is_there(field.path, &version.whole) {
            cell(Column::Field(field.path));
        }
    }
    if version.text("/content/text").is_some() {
        cell(Column::Text);
    }
    for span in &version.spans {
        if let Some(class) = SpanClass::ALL.iter().find(|class| class.as_str() == span.class) {
            cell(Column::Span(*class));
        }
    }
    let is_entity = matches!(table, Table::Contact | Table::CalendarEvent | Table::Task);
    let is_other = matches!(table, Table::ContactOther | Table::CalendarOther | Table::TaskOther);
    if is_other && version.entity_type().is_some() {
        rules.push(Rule::Condition(Condition::OtherEntity));
    }
    if table.text(level) != Text::Hidden && !is_entity {
        rules.extend(span_places(version));
    }
    if table == Table::Contact && level == 2 {
        rules.extend(channels(&version.whole).into_iter().map(Rule::Condition));
    }
}

fn is_there(path: &str, whole: &Value) -> bool {
    if path == "provenance.*" {
        let tags = whole["provenance"].as_object();
        let own = ["captured_at", "confidence", "source_receipt"];
        return tags.is_some_and(|tags| tags.keys().any(|tag| !own.contains(&tag.as_str())));
    }
    !places(path, whole).is_empty()
}

/// Where each span of the text stands.
fn span_places(version: &Version) -> Vec<Rule> {
    let text = version.text("/content/text").unwrap_or_default();
    // Nothing but a separator is between them.
    let beside = |one: &Span, next: &Span| {
        text.get(one.end..next.start).is_some_and(|gap| !gap.contains(char::is_alphanumeric))
    };
    let mut rules = Vec::new();
    for (n, span) in version.spans.iter().enumerate() {
        let Some(class) = SpanClass::ALL.iter().find(|class| class.as_str() == span.class) else { continue };
        let mut places = vec![match (span.start == 0, span.end == text.len()) {
            (true, true) => SpanPlace::Whole,
            (true, _) => SpanPlace::Start,
            (_, true) => SpanPlace::End,
            _ => SpanPlace::Middle,
        }];
        let before = n.checked_sub(1).and_then(|n| version.spans.get(n));
        let before = before.filter(|before| beside(before, span));
        let next = version.spans.get(n + 1).filter(|next| beside(span, next));
        places.extend(before.into_iter().chain(next).map(|neighbour| {
            if neighbour.class == span.class { SpanPlace::BesideSame } else { SpanPlace::BesideOther }
        }));
        rules.extend(places.into_iter().map(|place| Rule::SpanPlace(*class, place)));
    }
    rules
}

/// What level 2 says of a contact's channels.
fn channels(whole: &Value) -> Vec<Condition> {
    let channels = whole.pointer("/content/structured/channels").and_then(Value::as_array);
    let said = |channel: &Value| {
        let (email, primary) = (channel["type"] == "email", channel["primary"] == true);
        match (email, primary) {
            (true, true) => Some(Condition::ChannelPrimaryEmail),
            (true, false) => Some(Condition::ChannelOtherEmail),
            (false, true) => Some(Condition::ChannelOtherPrimary),
            (false, false) => None,
        }
    };
    let mut said: Vec<Condition> = channels.into_iter().flatten().filter_map(said).collect();
    let primary = |said: &Condition| *said == Condition::ChannelPrimaryEmail;
    if let Some(first) = said.iter().position(primary)
        && first > 0
    {
        said.push(Condition::ElementsCloseUp);
    }
    said
}

#[cfg(test)]
mod tests;

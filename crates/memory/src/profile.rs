//! Projection profiles: what each trust level shows, as documents (RFC 0007, protocol section 7).
//!
//! A profile is a TOML file. Levels 0 to 4 are cumulative: each adds fields to the one below. Whether an item's
//! text is shown, and with which classes of spans, is said per level; a level without a text rule keeps the one
//! below. A profile may have a table of its own for one entity type; other items follow the general table.
//!
//! ```toml
//! name = "oap.profile.projection.contact.v1"
//! description = "…"
//! [entity]
//! type = "oap.entity.contact"
//! [[entity.level]]            # five of these: levels 0 to 4
//! fields = ["content.structured.names.given", "content.structured.channels[type=email,primary=true]"]
//! text = "hidden"             # "hidden", "full", or { spans = ["iban"] }: text with only these spans shown
//! [[level]]                   # five of these: items of any other kind
//! fields = ["kind"]
//! text = "hidden"
//! ```
//!
//! A field may have conditions: `{ path = "content.structured.title", unless = ["content.structured.private=true"] }`
//! is shown unless one of them holds, `when = [...]` only if all of them do. A condition reads the whole item.
//!
//! A field path names members from the item's root, steps separated by dots. `a[]` is every element of `a`,
//! `a[x=1,y=true]` those elements whose members have these values, `*` everything.

use crate::detect::SpanClass;
use crate::form::CONCEALED;
use crate::item::NotOneOf;
use crate::tree::{Path, Step};
use oap_identity::{Hash, json};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeSet;

/// How far a grantee is trusted: 0 stranger, 1 acquaintance, 2 known, 3 trusted, 4 inner circle (RFC 0007
/// section 3.2).
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, schemars::JsonSchema,
)]
#[serde(try_from = "u8", into = "u8")]
pub struct TrustLevel(#[schemars(range(min = 0, max = 4))] u8);

#[allow(missing_docs, reason = "the names say it")]
impl TrustLevel {
    /// 0, the level of whoever is not known better.
    pub const STRANGER: Self = Self(0);
    /// 4, as the principal themselves.
    pub const INNER_CIRCLE: Self = Self(4);

    #[must_use]
    pub const fn get(self) -> u8 {
        self.0
    }

    /// All five.
    pub fn all() -> impl Iterator<Item = Self> {
        (0..=4).map(Self)
    }

    /// What the level is called.
    #[must_use]
    pub const fn name(self) -> &'static str {
        ["stranger", "acquaintance", "known", "trusted", "inner circle"][self.0 as usize]
    }
}

/// Not a trust level.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a trust level is 0 to 4")]
pub struct NotTrustLevel;

impl TryFrom<u8> for TrustLevel {
    type Error = NotTrustLevel;
    fn try_from(level: u8) -> Result<Self, NotTrustLevel> {
        if level <= 4 { Ok(Self(level)) } else { Err(NotTrustLevel) }
    }
}

impl From<TrustLevel> for u8 {
    fn from(level: TrustLevel) -> Self {
        level.0
    }
}

/// The start of every profile name.
pub const NAME_PREFIX: &str = "oap.profile.projection.";

/// Why a profile was refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ProfileError {
    /// Not TOML of the expected shape; the text gives line and column.
    #[error("{0}")]
    Toml(String),
    /// A name that is not `oap.profile.projection.<x>.v<n>`.
    #[error("name {0:?} must be {NAME_PREFIX}<x>.v<n>")]
    Name(String),
    /// Not five levels.
    #[error("line {line}: {table} needs five levels, 0 to 4, and has {found}")]
    #[allow(missing_docs, reason = "the names say it")]
    Levels {
        /// The line of the table.
        line: usize,
        table: String,
        /// How many there are.
        found: usize,
    },
    /// A field path that cannot be read.
    #[error("line {line}: {path:?} is not a field path: {why}")]
    #[allow(missing_docs, reason = "the names say it")]
    Path {
        line: usize,
        path: String,
        /// What is wrong with it.
        why: &'static str,
    },
    /// A text rule that cannot be read.
    #[error("line {line}: text must be \"hidden\", \"full\" or {{ spans = [classes] }}: {why}")]
    #[allow(missing_docs, reason = "the names say it")]
    Text {
        line: usize,
        /// What is wrong with it.
        why: TextRuleError,
    },
    /// A level that shows less text than the one below.
    #[error("line {line}: level {level} shows less text than level {}", level - 1)]
    #[allow(missing_docs, reason = "the names say it")]
    Shrinks { line: usize, level: usize },
    /// Level 0 without a text rule.
    #[error("line {line}: level 0 needs a text rule")]
    #[allow(missing_docs, reason = "the names say it")]
    NoText { line: usize },
    /// Two profiles of one name.
    #[error("a profile named {0:?} is already there")]
    Duplicate(String),
}

/// What is wrong with a text rule.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TextRuleError {
    /// A table without spans.
    #[error("no spans")]
    NoSpans,
    /// A class of spans that is no text.
    #[error("a class is text")]
    NotText,
    /// No class of spans.
    #[error(transparent)]
    Class(#[from] NotOneOf),
    /// The class of what a joined span is.
    #[error("text = \"full\" shows mixed spans")]
    Mixed,
    /// Something else, as TOML has it.
    #[error("not {0}")]
    Other(String),
}

/// Whether and how an item's text is shown.
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names say it")]
pub enum TextRule {
    /// Not at all.
    Hidden,
    /// With only these classes of spans shown; the others read `[class]`.
    Spans(BTreeSet<SpanClass>),
    Full,
}

impl TextRule {
    /// Whether this shows everything that the other shows.
    fn covers(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Full, _) | (_, Self::Hidden) => true,
            (Self::Spans(more), Self::Spans(fewer)) => fewer.is_subset(more),
            _ => false,
        }
    }

    /// Whether spans of that class are shown.
    #[must_use]
    pub fn shows(&self, class: SpanClass) -> bool {
        match self {
            Self::Hidden => false,
            Self::Spans(classes) => classes.contains(&class),
            Self::Full => true,
        }
    }
}

impl std::fmt::Display for TextRule {
    fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
        match self {
            Self::Hidden => f.write_str("hidden"),
            Self::Full => f.write_str("full"),
            Self::Spans(classes) if classes.is_empty() => f.write_str("every personal span hidden"),
            Self::Spans(classes) => {
                let names: Vec<&str> = classes.iter().map(|class| class.as_str()).collect();
                write!(f, "only these spans shown: {}", names.join(", "))
            }
        }
    }
}

/// A place, or several, in an item.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct FieldPath {
    text: String,
    steps: Vec<FieldStep>,
    when: Vec<Condition>,
    unless: Vec<Condition>,
}

/// `<path>=<value>`: whether a member has that value, as JSON writes it, strings without quotes.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Condition {
    path: Vec<String>,
    value: String,
}

impl Condition {
    fn parse(text: &str) -> Result<Self, &'static str> {
        let (path, value) = text.split_once('=').ok_or("a condition is path=value")?;
        let path = path.trim();
        FieldPath::parse(path)?;
        if path.contains('[') {
            return Err("a condition names one member");
        }
        Ok(Self { path: path.split('.').map(str::to_owned).collect(), value: value.trim().to_owned() })
    }

    fn holds(&self, item: &Value) -> bool {
        let member = self.path.iter().try_fold(item, |value, name| value.get(name));
        member.is_some_and(|member| is_value(member, &self.value))
    }
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum FieldStep {
    Member(String),
    Elements(Vec<(String, String)>),
}

impl FieldPath {
    fn parse(text: &str) -> Result<Self, &'static str> {
        let mut steps = Vec::new();
        if text != "*" {
            for step in text.split('.') {
                let (name, selector) = match step.split_once('[') {
                    Some((name, rest)) => (name, Some(rest.strip_suffix(']').ok_or("a [ without its ]")?)),
                    None => (step, None),
                };
                if name.is_empty() {
                    return Err("an empty step");
                }
                steps.push(FieldStep::Member(name.to_owned()));
                if let Some(selector) = selector {
                    steps.push(FieldStep::Elements(conditions(selector)?));
                }
            }
            match &steps[0] {
                // A path begins with a member that an item can have at its root.
                FieldStep::Member(root) if CONCEALED.contains(&root.as_str()) => {}
                _ => return Err("items have no such member"),
            }
            if text == "content" || text.starts_with("content.text") {
                return Err("text is shown by the text rule");
            }
        }
        Ok(Self { text: text.to_owned(), steps, when: Vec::new(), unless: Vec::new() })
    }

    fn read(value: &toml::Value) -> Result<Self, (String, &'static str)> {
        if let toml::Value::String(path) = value {
            return Self::parse(path).map_err(|why| (path.clone(), why));
        }
        let shape = |why| (value.to_string(), why);
        let table = value.as_table().ok_or_else(|| shape("a field is a path, or { path, when, unless }"))?;
        if table.keys().any(|key| !["path", "when", "unless"].contains(&key.as_str())) {
            return Err(shape("a field has path, when and unless"));
        }
        let path =
            table.get("path").and_then(toml::Value::as_str).ok_or_else(|| shape("a field needs a path"))?;
        let mut field = Self::parse(path).map_err(shape)?;
        let conditions = |name: &str| {
            let list = match table.get(name) {
                None => return Ok(Vec::new()),
                Some(list) => list.as_array().ok_or_else(|| shape("conditions are a list"))?,
            };
            let read = |c: &toml::Value| Condition::parse(c.as_str().unwrap_or_default()).map_err(shape);
            list.iter().map(read).collect::<Result<Vec<_>, _>>()
        };
        field.when = conditions("when")?;
        field.unless = conditions("unless")?;
        Ok(field)
    }

    /// The conditions of the field, as people read them; empty if there are none.
    #[must_use]
    pub fn conditions(&self) -> String {
        let list = |word: &str, conditions: &[Condition]| {
            let all = conditions.iter().map(|c| format!("{}={}", c.path.join("."), c.value));
            let all: Vec<String> = all.collect();
            if all.is_empty() { String::new() } else { format!(" {word} {}", all.join(", ")) }
        };
        format!("{}{}", list("when", &self.when), list("unless", &self.unless))
    }

    /// Whether the field can be in an entity of that type: `false` for a member that the type does not have.
    fn is_known(&self, entity: &str) -> bool {
        let Some((_, members)) = ENTITIES.iter().find(|(name, _)| *name == entity) else { return true };
        match self.steps.as_slice() {
            [FieldStep::Member(a), FieldStep::Member(b), FieldStep::Member(member), ..]
                if a == "content" && b == "structured" =>
            {
                COMMON.contains(&member.as_str()) || members.contains(&member.as_str())
            }
            _ => true,
        }
    }

    /// The path as it was written.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Whether the field's conditions hold for this item.
    pub(crate) fn is_met(&self, item: &Value) -> bool {
        self.when.iter().all(|c| c.holds(item)) && !self.unless.iter().any(|c| c.holds(item))
    }

    /// The places in this item that the path names.
    pub(crate) fn places(&self, item: &Value) -> Vec<Path> {
        if !self.is_met(item) {
            return Vec::new();
        }
        let mut places = vec![(Path::default(), item)];
        for step in &self.steps {
            places = places
                .into_iter()
                .flat_map(|(path, value)| match step {
                    FieldStep::Member(name) => {
                        value.get(name).map(|v| (path.member(name), v)).into_iter().collect::<Vec<_>>()
                    }
                    FieldStep::Elements(conditions) => {
                        let elements = value.as_array().map(Vec::as_slice).unwrap_or_default();
                        let chosen = elements.iter().enumerate().filter(|(_, e)| fits(e, conditions));
                        chosen.map(|(i, e)| (path.element(i), e)).collect()
                    }
                })
                .collect();
        }
        places.into_iter().map(|(path, _)| path).collect()
    }
}

fn conditions(selector: &str) -> Result<Vec<(String, String)>, &'static str> {
    if selector.is_empty() {
        return Ok(Vec::new());
    }
    selector
        .split(',')
        .map(|condition| match condition.split_once('=') {
            Some((name, value)) if !name.trim().is_empty() => {
                Ok((name.trim().to_owned(), value.trim().to_owned()))
            }
            _ => Err("a selector is [] or [name=value,…]"),
        })
        .collect()
}

fn fits(element: &Value, conditions: &[(String, String)]) -> bool {
    conditions.iter().all(|(name, wanted)| element.get(name).is_some_and(|value| is_value(value, wanted)))
}

fn is_value(value: &Value, wanted: &str) -> bool {
    match value {
        Value::String(text) => text == wanted,
        Value::Bool(flag) => wanted == if *flag { "true" } else { "false" },
        Value::Number(number) => number.as_str() == wanted,
        Value::Null | Value::Array(_) | Value::Object(_) => false,
    }
}

/// The members that every canonical entity has (RFC 0005 section 3.3).
const COMMON: [&str; 9] = [
    "entity_type",
    "entity_version",
    "id",
    "owner_did",
    "created_at",
    "updated_at",
    "external_ids",
    "labels",
    "extensions",
];

/// The members of the entities that RFC 0007 has profiles for. A path to another member is a mistake.
const ENTITIES: [(&str, &[&str]); 3] = [
    (
        "oap.entity.contact",
        &[
            "names",
            "affiliations",
            "channels",
            "languages",
            "addresses",
            "social",
            "skills",
            "birthday",
            "notes",
            "photo",
        ],
    ),
    (
        "oap.entity.calendar_event",
        &[
            "start",
            "end",
            "transparency",
            "title",
            "visibility",
            "private",
            "participants",
            "participants_count",
            "participant_dids",
            "location_general",
            "location_precise",
            "description",
            "attachments",
            "recurrence",
            "status",
            "all_day",
            "timezone",
        ],
    ),
    (
        "oap.entity.task",
        &[
            "status",
            "title",
            "due_at",
            "priority",
            "assignee_dids",
            "description",
            "linked_entities",
            "parent",
            "completed_at",
            "project",
        ],
    ),
];

/// What one level adds, and what its text rule is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Level {
    fields: Vec<FieldPath>,
    text: TextRule,
}

/// Five levels.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Table(Vec<Level>);

impl Table {
    /// The fields that a level shows, with the level that adds each.
    pub fn fields(&self, level: TrustLevel) -> impl Iterator<Item = (TrustLevel, &FieldPath)> {
        TrustLevel::all()
            .zip(&self.0)
            .take_while(move |(at, _)| *at <= level)
            .flat_map(|(at, rules)| rules.fields.iter().map(move |field| (at, field)))
    }

    /// The text rule of a level.
    #[must_use]
    pub fn text(&self, level: TrustLevel) -> &TextRule {
        &self.0[usize::from(level.get())].text
    }

    /// The places of an item that a level shows; everything below such a place is shown.
    #[must_use]
    pub fn shown(&self, level: TrustLevel, item: &Value) -> Vec<Path> {
        let mut places: Vec<Path> = self.fields(level).flat_map(|(_, field)| field.places(item)).collect();
        // The capture receipt is always shown: possession rests on it (RFC 0010 A.3, P1).
        places.push(Path::of(&["provenance", "source_receipt"]));
        places
    }
}

/// What each trust level sees of an item, path by path; read from its document, which its hash names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Profile {
    name: String,
    description: String,
    minimum_level: TrustLevel,
    entity: Option<(String, Table)>,
    general: Table,
    hash: Hash,
}

impl Profile {
    /// Reads a profile.
    ///
    /// # Errors
    /// [`ProfileError`], with the line.
    pub fn parse(text: &str) -> Result<Self, ProfileError> {
        let document: ProfileToml = toml::from_str(text).map_err(|e| {
            let line = e.span().map_or(1, |span| line_of(text, span.start));
            ProfileError::Toml(format!("line {line}: {}", e.message()))
        })?;
        let suffix = document.name.strip_prefix(NAME_PREFIX).and_then(|rest| rest.rsplit_once(".v"));
        let named = |part: &str| {
            !part.is_empty()
                && part.bytes().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == b'_')
        };
        if !suffix.is_some_and(|(x, n)| named(x) && n.parse::<u16>().is_ok()) {
            return Err(ProfileError::Name(document.name));
        }
        let entity = match &document.entity {
            Some(entity) => Some((entity.kind.clone(), table(&entity.level, &entity.kind, text)?)),
            None => None,
        };
        let general = table(&document.level, "the profile", text)?;
        let value: Value = toml::from_str::<toml::Value>(text)
            .ok()
            .and_then(|value| serde_json::to_value(value).ok())
            .ok_or_else(|| ProfileError::Toml("a value that JSON cannot say".into()))?;
        let bytes = json::canonical(&value).map_err(|e| ProfileError::Toml(e.to_string()))?;
        Ok(Self {
            name: document.name,
            description: document.description,
            minimum_level: document.minimum_level,
            entity,
            general,
            hash: Hash::of(&bytes),
        })
    }

    /// The profiles that every gateway has: `memory.v1`, `full.v1` and those of RFC 0007.
    ///
    /// # Panics
    /// Never: the documents are part of the program, and a test reads them.
    #[must_use]
    pub fn built_in() -> Vec<Self> {
        BUILT_IN
            .iter()
            .map(|text| Self::parse(text).unwrap_or_else(|e| unreachable!("a built-in profile: {e}")))
            .collect()
    }

    /// The name, `oap.profile.projection.<x>.v<n>`.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// What it is for.
    #[must_use]
    pub fn description(&self) -> &str {
        &self.description
    }

    /// The hash of the RFC 8785 form of the document: what receipts name, so that a profile that was changed
    /// under its name is told apart.
    #[must_use]
    pub const fn hash(&self) -> Hash {
        self.hash
    }

    /// The lowest trust level at which a grant may name the profile.
    #[must_use]
    pub const fn minimum_level(&self) -> TrustLevel {
        self.minimum_level
    }

    /// The entity type that the profile has a table for.
    #[must_use]
    pub fn entity_type(&self) -> Option<&str> {
        self.entity.as_ref().map(|(kind, _)| kind.as_str())
    }

    /// The table for that entity type.
    #[must_use]
    pub fn entity_table(&self) -> Option<&Table> {
        self.entity.as_ref().map(|(_, table)| table)
    }

    /// The table for everything else.
    #[must_use]
    pub const fn general_table(&self) -> &Table {
        &self.general
    }

    /// The table that an item falls under.
    #[must_use]
    pub fn table(&self, item: &Value) -> &Table {
        let kind = item.pointer("/content/structured/entity_type").and_then(Value::as_str);
        match &self.entity {
            Some((entity, table)) if kind == Some(entity) => table,
            _ => &self.general,
        }
    }

    /// Whether what it shows at a level identifies nobody but through the item's subject: no structured content, no
    /// free text with a personal span.
    #[must_use]
    pub fn is_anonymous(&self, level: TrustLevel) -> bool {
        const HARMLESS: [&str; 6] = [
            "kind",
            "labels",
            "subject_entity_id",
            "sensitivity",
            "provenance.captured_at",
            "provenance.confidence",
        ];
        let text = self.general.text(level);
        self.entity.is_none()
            && self.general.fields(level).all(|(_, field)| HARMLESS.contains(&field.as_str()))
            && SpanClass::ALL.iter().all(|class| !text.shows(*class))
    }

    /// Whether it shows embeddings, of whatever item.
    #[must_use]
    pub fn shows_embedding(&self, level: TrustLevel) -> bool {
        let shows = |table: &Table| {
            table.fields(level).any(|(_, field)| ["embedding", "*"].contains(&field.as_str()))
        };
        self.entity.iter().map(|(_, table)| table).chain([&self.general]).all(shows)
    }

    /// Whether it shows whom an item is about.
    #[must_use]
    pub fn shows_subject(&self, level: TrustLevel) -> bool {
        self.general.fields(level).any(|(_, field)| ["subject_entity_id", "*"].contains(&field.as_str()))
    }

    /// How many of its fields the profile withholds at a level: a property of the profile, never of an item,
    /// so that it does not tell which of them an item has.
    #[must_use]
    pub fn redacted_field_count(&self, level: TrustLevel) -> usize {
        let tables = self.entity.iter().map(|(_, table)| table).chain([&self.general]);
        let withheld = |table: &Table| {
            let all = table.fields(TrustLevel::INNER_CIRCLE).count();
            let text = usize::from(*table.text(level) == TextRule::Hidden);
            all - table.fields(level).count() + text
        };
        tables.map(withheld).sum()
    }
}

const BUILT_IN: [&str; 5] = [
    include_str!("../profiles/memory.v1.toml"),
    include_str!("../profiles/full.v1.toml"),
    include_str!("../profiles/contact.v1.toml"),
    include_str!("../profiles/calendar_event.v1.toml"),
    include_str!("../profiles/task.v1.toml"),
];

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ProfileToml {
    name: String,
    description: String,
    #[serde(default = "stranger")]
    minimum_level: TrustLevel,
    entity: Option<EntityToml>,
    level: Vec<toml::Spanned<LevelToml>>,
}

fn stranger() -> TrustLevel {
    TrustLevel::STRANGER
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct EntityToml {
    #[serde(rename = "type")]
    kind: String,
    level: Vec<toml::Spanned<LevelToml>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct LevelToml {
    #[serde(default)]
    fields: Vec<toml::Spanned<toml::Value>>,
    text: Option<toml::Spanned<toml::Value>>,
}

fn line_of(text: &str, offset: usize) -> usize {
    text.bytes().take(offset).filter(|c| *c == b'\n').count() + 1
}

fn table(levels: &[toml::Spanned<LevelToml>], name: &str, text: &str) -> Result<Table, ProfileError> {
    let first = levels.first().map_or(1, |level| line_of(text, level.span().start));
    if levels.len() != 5 {
        return Err(ProfileError::Levels { line: first, table: name.to_owned(), found: levels.len() });
    }
    let mut read: Vec<Level> = Vec::with_capacity(5);
    for (number, level) in levels.iter().enumerate() {
        let line = line_of(text, level.span().start);
        let level = level.get_ref();
        let mut fields = Vec::new();
        for field in &level.fields {
            let at = line_of(text, field.span().start);
            let refused = |(path, why)| ProfileError::Path { line: at, path, why };
            let field = FieldPath::read(field.get_ref()).map_err(refused)?;
            if !field.is_known(name) {
                return Err(refused((field.text, "the entity has no such member")));
            }
            fields.push(field);
        }
        let below = read.last().map(|level| &level.text);
        let rule = match (&level.text, below) {
            (Some(rule), _) => text_rule(rule.get_ref())
                .map_err(|why| ProfileError::Text { line: line_of(text, rule.span().start), why })?,
            (None, Some(below)) => below.clone(),
            (None, None) => return Err(ProfileError::NoText { line }),
        };
        if below.is_some_and(|below| !rule.covers(below)) {
            return Err(ProfileError::Shrinks { line, level: number });
        }
        read.push(Level { fields, text: rule });
    }
    Ok(Table(read))
}

fn text_rule(value: &toml::Value) -> Result<TextRule, TextRuleError> {
    match value {
        toml::Value::String(text) if text == "hidden" => Ok(TextRule::Hidden),
        toml::Value::String(text) if text == "full" => Ok(TextRule::Full),
        toml::Value::Table(table) if table.len() == 1 => {
            let spans = table.get("spans").and_then(toml::Value::as_array).ok_or(TextRuleError::NoSpans)?;
            let class = |v: &toml::Value| match v.as_str().ok_or(TextRuleError::NotText)?.parse()? {
                SpanClass::Mixed => Err(TextRuleError::Mixed),
                class => Ok(class),
            };
            Ok(TextRule::Spans(spans.iter().map(class).collect::<Result<_, _>>()?))
        }
        other => Err(TextRuleError::Other(other.to_string())),
    }
}

/// Whether a place is shown, when `shown` places are: it is one of them, below one, or on the way to one.
#[must_use]
pub fn is_shown(place: &[Step], shown: &[Path]) -> bool {
    shown.iter().any(|path| {
        let (a, b) = (path.steps(), place);
        let common = a.len().min(b.len());
        a[..common] == b[..common]
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn level(n: u8) -> TrustLevel {
        n.try_into().unwrap()
    }

    #[test]
    fn built_in_profiles_are_valid() {
        let names: Vec<String> = Profile::built_in().iter().map(|p| p.name().to_owned()).collect();
        assert!(names.contains(&"oap.profile.projection.contact.v1".to_owned()));
        assert_eq!(names.len(), BUILT_IN.len());
    }

    #[test]
    fn selectors_choose_elements() {
        let item = json!({"content": {"structured": {"channels": [
            {"type": "email", "primary": true}, {"type": "email", "primary": false}, {"type": "phone", "primary": true},
        ]}}});
        let places = |text: &str| {
            let places = FieldPath::parse(text).unwrap().places(&item);
            places.iter().map(ToString::to_string).collect::<Vec<_>>()
        };
        assert_eq!(
            places("content.structured.channels[type=email,primary=true]"),
            ["content.structured.channels[0]"]
        );
        assert_eq!(places("content.structured.channels[type=email].primary").len(), 2);
        assert_eq!(places("content.structured.channels[].type").len(), 3);
        assert_eq!(places("content.structured.channels"), ["content.structured.channels"]);
        assert_eq!(places("content.structured.nothing"), [""; 0]);
        assert_eq!(places("*"), [""]);
    }

    fn with(patch: &str) -> Result<Profile, ProfileError> {
        let level0 = "[[level]]\nfields = [\"kind\"]\ntext = \"hidden\"\n";
        let rest = "[[level]]\n".repeat(2);
        let text =
            format!("name = \"oap.profile.projection.x.v1\"\ndescription = \"\"\n{level0}{patch}\n{rest}");
        Profile::parse(&text)
    }

    #[test]
    fn refusals_have_the_line() {
        assert!(with("[[level]]\ntext = \"full\"\n[[level]]").is_ok());
        for (patch, expected) in [
            ("[[level]]", "line 3: the profile needs five levels, 0 to 4, and has 4"),
            ("[[level]]\nfields = [\"colour\"]\n[[level]]", "line 7: \"colour\""),
            ("[[level]]\nfields = [\"labels[\"]\n[[level]]", "line 7"),
            ("[[level]]\nfields = [\"content.text\"]\n[[level]]", "line 7"),
            ("[[level]]\nfields = [\"content\"]\n[[level]]", "line 7"),
            ("[[level]]\ntext = \"some\"\n[[level]]", "line 7"),
            ("[[level]]\ntext = { spans = [\"rumour\"] }\n[[level]]", "line 7"),
            (
                "[[level]]\ntext = \"full\"\n[[level]]\ntext = \"hidden\"",
                "level 2 shows less text than level 1",
            ),
            ("[[level]]\nbackground = 1\n[[level]]", "line 7"),
        ] {
            let message = with(patch).unwrap_err().to_string();
            assert!(message.contains(expected), "{patch}: {message}");
        }
        let untexted = "name = \"oap.profile.projection.x.v1\"\ndescription = \"\"\n".to_owned()
            + &"[[level]]\n".repeat(5);
        assert!(matches!(Profile::parse(&untexted), Err(ProfileError::NoText { .. })));
        let misnamed = "name = \"x\"\ndescription = \"\"\nlevel = []";
        assert!(matches!(Profile::parse(misnamed), Err(ProfileError::Name(_))));
    }

    #[test]
    fn a_hash_names_the_document_not_its_spelling() {
        let one = with("[[level]]\ntext = \"full\"\n[[level]]").unwrap();
        let same = with("# a remark\n[[level]]\n  text = 'full'\n[[level]]").unwrap();
        let other = with("[[level]]\ntext = \"hidden\"\n[[level]]").unwrap();
        assert_eq!(one.hash(), same.hash());
        assert_ne!(one.hash(), other.hash());
    }

    #[test]
    fn withheld_fields_are_counted_by_profile() {
        let profile = &Profile::built_in()[0];
        let counts: Vec<usize> = TrustLevel::all().map(|l| profile.redacted_field_count(l)).collect();
        assert_eq!(counts, [4, 2, 1, 1, 0]);
        assert_eq!(level(3).name(), "trusted");
    }

    #[test]
    fn conditions_decide_on_the_whole_item() {
        let profile = Profile::built_in().into_iter().find(|p| p.name().contains("calendar")).unwrap();
        let event = |more: Value| {
            let mut item = json!({"content": {"structured": {
                "entity_type": "oap.entity.calendar_event", "title": "Dentist", "transparency": "busy",
            }}});
            item["content"]["structured"].as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            let shown = profile.table(&item).shown(level(2), &item);
            shown.iter().map(ToString::to_string).collect::<Vec<_>>()
        };
        let (title, busy) =
            ("content.structured.title".to_owned(), "content.structured.transparency".to_owned());
        assert!(event(json!({})).contains(&title));
        for private in [
            json!({"visibility": "private"}),
            json!({"private": true}),
            json!({"visibility": "confidential"}),
        ] {
            assert!(!event(private).contains(&title));
        }
        assert!(event(json!({})).contains(&busy));
        assert!(!event(json!({"transparency": "free"})).contains(&busy));
    }

    #[test]
    fn unknown_members_are_refused_with_their_line() {
        let text = BUILT_IN[3];
        for (from, to, why) in [
            ("structured.start\"", "structured.begin\"", "no such member"),
            ("visibility=private", "visibility private", "path=value"),
            ("unless = [", "until = [", "path, when and unless"),
            ("\"kind\",", "\"kin\",", "no such member"),
        ] {
            let refusal = Profile::parse(&text.replacen(from, to, 1)).unwrap_err().to_string();
            assert!(refusal.starts_with("line ") && refusal.contains(why), "{refusal}");
        }
    }
}

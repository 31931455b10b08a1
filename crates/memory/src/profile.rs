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

mod document;
mod entities;
mod field;
mod level;
mod text_rule;

pub use field::{FieldPath, FieldPathError, is_shown};
pub use level::{NotTrustLevel, TrustLevel};
pub use text_rule::{TextRule, TextRuleError};

use crate::detect::SpanClass;
use crate::tree::Path;
use document::{ProfileToml, line_of, table};
use oap_identity::{Hash, json};
use serde_json::Value;
use std::sync::Arc;

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
        why: FieldPathError,
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

/// What one level adds, and what its text rule is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Level {
    fields: Vec<FieldPath>,
    text: TextRule,
}

/// Five levels.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Table(Arc<[Level]>);

impl Table {
    /// The fields that a level shows, with the level that adds each.
    pub fn fields(&self, level: TrustLevel) -> impl Iterator<Item = (TrustLevel, &FieldPath)> {
        TrustLevel::all()
            .zip(self.0.iter())
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
        // One name for one version: neither `+1` nor `01`.
        let version = |n: &str| n.parse::<u16>().is_ok_and(|number| number.to_string() == n);
        if !suffix.is_some_and(|(x, n)| named(x) && version(n)) {
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
    }

    #[test]
    fn a_name_has_its_form() {
        let named = |name: &str| {
            let levels = "[[level]]\ntext = \"hidden\"\n".to_owned() + &"[[level]]\n".repeat(4);
            Profile::parse(&format!("name = \"{name}\"\ndescription = \"\"\n{levels}"))
        };
        for rest in ["x.v1", "two_words.v2", "_.v0", "3.v65535"] {
            let name = format!("{NAME_PREFIX}{rest}");
            assert_eq!(named(&name).unwrap().name(), name);
        }
        for rest in [
            "", ".v1", "x", "x.v", "x.vone", "x.v65536", "X.v1", "x-y.v1", "xY.v1", "x.y.v1", "x.v1.",
            "x.v+1", "x.v01", "x.v-0", ".vone",
        ] {
            let name = format!("{NAME_PREFIX}{rest}");
            assert_eq!(named(&name), Err(ProfileError::Name(name)));
        }
        assert_eq!(named("x.v1"), Err(ProfileError::Name("x.v1".into())));
    }

    /// A profile whose lowest level has these fields, with no text at any.
    fn showing(fields: &[&str]) -> Profile {
        let rest = "[[level]]\n".repeat(4);
        Profile::parse(&format!(
            "name = \"oap.profile.projection.x.v1\"\ndescription = \"\"\n[[level]]\nfields = {fields:?}\ntext = \"hidden\"\n{rest}"
        ))
        .unwrap()
    }

    #[test]
    fn one_field_that_identifies_is_enough() {
        assert!(showing(&["kind", "labels", "subject_entity_id"]).is_anonymous(level(0)));
        assert!(showing(&[]).is_anonymous(level(0)));
        for field in ["provenance.source", "provenance", "content.structured", "embedding", "*"] {
            assert!(!showing(&["kind", field]).is_anonymous(level(0)), "{field}");
            assert!(!showing(&[field]).is_anonymous(level(0)), "{field}");
        }
    }

    #[test]
    fn a_field_among_others_is_shown() {
        for fields in [&["embedding"][..], &["kind", "embedding"], &["*"], &["kind", "*"]] {
            assert!(showing(fields).shows_embedding(level(0)), "{fields:?}");
        }
        for fields in [&["subject_entity_id"][..], &["kind", "subject_entity_id"], &["*"], &["kind", "*"]] {
            assert!(showing(fields).shows_subject(level(0)), "{fields:?}");
        }
        for fields in [&[][..], &["kind"], &["kind", "labels"]] {
            assert!(!showing(fields).shows_embedding(level(0)), "{fields:?}");
            assert!(!showing(fields).shows_subject(level(0)), "{fields:?}");
        }
    }

    #[test]
    fn a_profile_says_which_entity_it_has_a_table_for() {
        let of = |name: &str| Profile::built_in().into_iter().find(|p| p.name().contains(name)).unwrap();
        let task = of("task");
        assert_eq!(task.entity_type(), Some("oap.entity.task"));
        assert_ne!(task.entity_table(), Some(task.general_table()));
        let item = json!({"content": {"structured": {"entity_type": "oap.entity.task"}}});
        assert_eq!(task.entity_table(), Some(task.table(&item)));
        let memory = of("memory");
        assert_eq!((memory.entity_type(), memory.entity_table()), (None, None));
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
    fn conditions_are_told() {
        let profile = Profile::built_in().into_iter().find(|p| p.name().contains("calendar")).unwrap();
        let item = json!({"content": {"structured": {"entity_type": "oap.entity.calendar_event"}}});
        let table = profile.table(&item);
        let of = |path: &str| {
            let (_, field) = table.fields(level(2)).find(|(_, field)| field.as_str() == path).unwrap();
            field.conditions()
        };
        assert_eq!(of("content.structured.transparency"), " when content.structured.transparency=busy");
        assert!(
            of("content.structured.title").starts_with(" unless content.structured.visibility=private, ")
        );
        assert_eq!(of("content.structured.start"), "");
    }

    /// Of a profile with a table for an entity, only where both show them: an item's type is not asked first.
    #[test]
    fn embeddings_are_shown_where_every_table_shows_them() {
        let shows = |entity: &str, general: &str| {
            let levels = |name: &str, field: &str| {
                let first = format!("[[{name}]]\nfields = [\"{field}\"]\ntext = \"hidden\"\n");
                first + &format!("[[{name}]]\n").repeat(4)
            };
            let text = format!(
                "name = \"oap.profile.projection.x.v1\"\ndescription = \"\"\n[entity]\ntype = \"oap.entity.task\"\n{}{}",
                levels("entity.level", entity),
                levels("level", general),
            );
            Profile::parse(&text).unwrap().shows_embedding(level(0))
        };
        assert!(shows("embedding", "*"));
        assert!(!shows("embedding", "kind"));
        assert!(!shows("kind", "embedding"));
        assert!(!shows("kind", "kind"));
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

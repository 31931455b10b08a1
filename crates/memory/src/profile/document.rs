//! A profile's document: its TOML, and how its tables are read.

use super::field::{FieldPath, FieldPathError};
use super::level::TrustLevel;
use super::text_rule::TextRule;
use super::{Level, ProfileError, Table};
use serde::Deserialize;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ProfileToml {
    pub(super) name: String,
    pub(super) description: String,
    #[serde(default = "stranger")]
    pub(super) minimum_level: TrustLevel,
    pub(super) entity: Option<EntityToml>,
    pub(super) level: Vec<toml::Spanned<LevelToml>>,
}

fn stranger() -> TrustLevel {
    TrustLevel::STRANGER
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct EntityToml {
    #[serde(rename = "type")]
    pub(super) kind: String,
    pub(super) level: Vec<toml::Spanned<LevelToml>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct LevelToml {
    #[serde(default)]
    fields: Vec<toml::Spanned<toml::Value>>,
    text: Option<toml::Spanned<toml::Value>>,
}

pub(super) fn line_of(text: &str, offset: usize) -> usize {
    text.bytes().take(offset).filter(|c| *c == b'\n').count() + 1
}

/// The five levels of a table; `name` is what messages call it.
pub(super) fn table(
    levels: &[toml::Spanned<LevelToml>],
    name: &str,
    text: &str,
) -> Result<Table, ProfileError> {
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
                return Err(refused((field.as_str().to_owned(), FieldPathError::EntityMember)));
            }
            fields.push(field);
        }
        let below = read.last().map(|level| &level.text);
        let rule = match (&level.text, below) {
            (Some(rule), _) => TextRule::read(rule.get_ref())
                .map_err(|why| ProfileError::Text { line: line_of(text, rule.span().start), why })?,
            (None, Some(below)) => below.clone(),
            (None, None) => return Err(ProfileError::NoText { line }),
        };
        if below.is_some_and(|below| !rule.covers(below)) {
            return Err(ProfileError::Shrinks { line, level: number });
        }
        read.push(Level { fields, text: rule });
    }
    Ok(Table(read.into()))
}

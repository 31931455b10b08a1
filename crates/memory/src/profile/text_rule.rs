//! Whether and how an item's text is shown.

use crate::detect::SpanClass;
use crate::item::NotOneOf;
use std::collections::BTreeSet;

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
    /// Reads a rule of a profile.
    pub(super) fn read(value: &toml::Value) -> Result<Self, TextRuleError> {
        match value {
            toml::Value::String(text) if text == "hidden" => Ok(Self::Hidden),
            toml::Value::String(text) if text == "full" => Ok(Self::Full),
            toml::Value::Table(table) if table.len() == 1 => {
                let spans =
                    table.get("spans").and_then(toml::Value::as_array).ok_or(TextRuleError::NoSpans)?;
                let class = |v: &toml::Value| match v.as_str().ok_or(TextRuleError::NotText)?.parse()? {
                    SpanClass::Mixed => Err(TextRuleError::Mixed),
                    class => Ok(class),
                };
                Ok(Self::Spans(spans.iter().map(class).collect::<Result<_, _>>()?))
            }
            other => Err(TextRuleError::Other(other.to_string())),
        }
    }

    /// Whether this shows everything that the other shows.
    pub(super) fn covers(&self, other: &Self) -> bool {
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

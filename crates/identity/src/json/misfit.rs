//! What is told of a value that does not have a type's shape.

use serde::de::{Expected, Unexpected};
use std::fmt;

/// Why a value does not have a type's shape. It says where and what is expected, and never what was there: messages
/// reach logs and strangers, and a value may be a token.
#[derive(Debug)]
pub(super) struct Misfit {
    place: String,
    what: String,
}

impl Misfit {
    pub(super) fn at(self, member: Option<&str>) -> Self {
        match member {
            Some(member) => self.within(member),
            None => self,
        }
    }

    pub(super) fn within(mut self, step: &str) -> Self {
        let dot = if self.place.is_empty() || self.place.starts_with('[') { "" } else { "." };
        self.place = format!("{step}{dot}{}", self.place);
        self
    }
}

impl fmt::Display for Misfit {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        if !self.place.is_empty() {
            write!(f, "{}: ", self.place)?;
        }
        f.write_str(&self.what)
    }
}

impl std::error::Error for Misfit {}

impl serde::de::Error for Misfit {
    fn custom<T: fmt::Display>(what: T) -> Self {
        Self { place: String::new(), what: what.to_string() }
    }

    fn invalid_type(found: Unexpected, expected: &dyn Expected) -> Self {
        Self::custom(format_args!("invalid type: {}, expected {expected}", kind(&found)))
    }

    fn invalid_value(_found: Unexpected, expected: &dyn Expected) -> Self {
        Self::custom(format_args!("invalid value, expected {expected}"))
    }

    fn missing_field(field: &'static str) -> Self {
        Self { place: field.to_owned(), what: "is required".to_owned() }
    }

    fn unknown_variant(_found: &str, expected: &'static [&'static str]) -> Self {
        Self::custom(format_args!("must be one of {}", expected.join(", ")))
    }

    fn unknown_field(found: &str, expected: &'static [&'static str]) -> Self {
        Self::custom(format_args!("unknown member{}; the members are {}", quoted(found), expected.join(", ")))
    }
}

fn kind(found: &Unexpected) -> &'static str {
    match found {
        Unexpected::Bool(_) => "a boolean",
        Unexpected::Unsigned(_) | Unexpected::Signed(_) | Unexpected::Float(_) => "a number",
        Unexpected::Char(_) | Unexpected::Str(_) | Unexpected::Bytes(_) => "text",
        Unexpected::Unit | Unexpected::Option => "null",
        Unexpected::Seq => "an array",
        Unexpected::Map => "an object",
        _ => "something else",
    }
}

/// Longest member name that a message shows, in bytes.
pub const MAX_SHOWN_NAME: usize = 32;

/// A foreign member name as a message may show it: ` "name"` where it has the form of the wire's own names (lower-case
/// letters and `_`, at most [`MAX_SHOWN_NAME`]), which no key, token or id has; else nothing.
#[must_use]
pub fn quoted(name: &str) -> String {
    let shown = (1..=MAX_SHOWN_NAME).contains(&name.len())
        && name.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_');
    if shown { format!(" {name:?}") } else { String::new() }
}

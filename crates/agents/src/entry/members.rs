//! The members of an entry, apart: the text of its `value` as it came, and the rest.

use super::{EntryError, Opaque};
use oap_identity::json::{self, JsonError};
use serde::Deserialize;
use serde::de::{Deserializer, Error as _, MapAccess, Visitor};
use serde_json::value::RawValue;
use serde_json::{Map, Value};
use std::collections::BTreeSet;
use std::fmt;

/// The member whose text is kept.
pub(super) const VALUE: &str = "value";

/// The members of an object, each as it stands in the text.
pub(super) struct Members<'a>(pub Vec<(String, &'a RawValue)>);

impl<'de: 'a, 'a> Deserialize<'de> for Members<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Each;
        impl<'de> Visitor<'de> for Each {
            type Value = Members<'de>;

            fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let (mut members, mut names) = (Vec::new(), BTreeSet::new());
                while let Some((name, value)) = map.next_entry::<String, &RawValue>()? {
                    if !names.insert(name.clone()) {
                        return Err(A::Error::custom("a member twice"));
                    }
                    members.push((name, value));
                }
                Ok(Members(members))
            }
        }
        deserializer.deserialize_map(Each)
    }
}

/// What is no JSON, by its place and not by its words.
pub(super) fn unreadable(error: &serde_json::Error) -> EntryError {
    let at = format!("not an object, or a member twice, at line {} column {}", error.line(), error.column());
    EntryError::NotJson(JsonError::Invalid(at))
}

/// An object's members and, apart from them, the text of its `value`.
///
/// # Errors
/// [`EntryError::Shape`].
pub(super) fn parts(text: &[u8]) -> Result<(Map<String, Value>, Option<Opaque>), EntryError> {
    let Members(members) = serde_json::from_slice(text).map_err(|error| unreadable(&error))?;
    let (mut others, mut value) = (Map::new(), None);
    for (name, raw) in members {
        match name.as_str() {
            VALUE if raw.get() == "null" => {}
            VALUE => value = Some(Opaque::read(raw.get())?),
            _ => drop(others.insert(name, json::parse(raw.get().as_bytes())?)),
        }
    }
    Ok((others, value))
}

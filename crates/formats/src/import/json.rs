//! Elements of large JSON documents one by one: what is held in memory is one of them, of at most [`MAX_ELEMENT`] bytes.

use super::bounded::Bounded;
use super::{File, MAX_ELEMENT, Sink, refused};
use oap_identity::json::{max_nodes, parse_foreign};
use serde::de::{DeserializeSeed, Deserializer, Error as _, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::Value;
use serde_json::value::RawValue;
use std::cell::Cell;
use std::fmt;
use std::io::BufReader;
use std::ops::ControlFlow;

/// What takes elements: the list that they stand in (empty for the document itself), their number, and the element.
type Take<'a> = &'a mut dyn FnMut(&str, usize, Result<Value, ElementError>) -> ControlFlow<()>;

/// Why an element is left out.
#[derive(Debug, thiserror::Error)]
enum ElementError {
    /// More values than texts of its length are read with.
    #[error("too many values for its length")]
    ManyValues,
    /// Not JSON.
    #[error(transparent)]
    Json(#[from] serde_json::Error),
}

/// Calls `take` for each element of the document if it is an array; if it is an object, for each element of the members
/// that are arrays and named in `lists`, and for the object itself without them, last.
fn elements(file: &mut File, lists: &[&str], take: Take) -> Result<(), serde_json::Error> {
    let mut stopped = false;
    let left = Cell::new(MAX_ELEMENT);
    let bytes = Bounded::new(&mut *file.bytes, MAX_ELEMENT, &left);
    let mut reader = serde_json::Deserializer::from_reader(BufReader::new(bytes));
    let seed = Document { lists, walk: Walk { take, stopped: &mut stopped, left: &left } };
    let read = seed.deserialize(&mut reader);
    match read {
        _ if stopped => Ok(()),
        Ok(()) => reader.end(),
        Err(error) => Err(error),
    }
}

/// The same, with what is wrong told to the sink.
pub(super) fn each(
    mut file: File,
    lists: &[&str],
    sink: Sink,
    mut take: impl FnMut(&str, usize, Value, Sink) -> ControlFlow<()>,
) {
    let name = file.name.to_owned();
    let read = elements(&mut file, lists, &mut |list, number, value| match value {
        Ok(value) => take(list, number, value, sink),
        Err(reason) => sink(refused(format!("{name}[{number}]"), reason.to_string())),
    });
    if let Err(reason) = read {
        let _ = sink(refused(name, format!("{reason}; what came before it was read")));
    }
}

/// Hands over element by element.
struct Walk<'t> {
    take: Take<'t>,
    stopped: &'t mut bool,
    /// What the element under way may still take, in bytes.
    left: &'t Cell<usize>,
}

impl Walk<'_> {
    /// Hands over an element; whether to go on.
    fn hand(&mut self, list: &str, number: usize, raw: &RawValue) -> bool {
        *self.stopped = (self.take)(list, number, value(raw)).is_break();
        self.left.set(MAX_ELEMENT);
        !*self.stopped
    }
}

/// An element, of no more values than its length allows.
fn value(raw: &RawValue) -> Result<Value, ElementError> {
    let text = raw.get();
    if nodes(text) > max_nodes(text.len()) {
        return Err(ElementError::ManyValues);
    }
    Ok(parse_foreign(text)?)
}

/// At least as many as a JSON text has values.
fn nodes(text: &str) -> usize {
    let (mut nodes, mut quoted, mut escaped) = (1, false, false);
    for byte in text.bytes() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' => escaped = quoted,
            b'"' => quoted = !quoted,
            b',' | b'[' | b'{' if !quoted => nodes += 1,
            _ => {}
        }
    }
    nodes
}

struct Document<'a, 't> {
    lists: &'a [&'a str],
    walk: Walk<'t>,
}

impl<'de> DeserializeSeed<'de> for Document<'_, '_> {
    type Value = ();
    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Document<'_, '_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str("an object or an array")
    }

    fn visit_seq<A: SeqAccess<'de>>(mut self, seq: A) -> Result<(), A::Error> {
        List { name: "", walk: &mut self.walk }.visit_seq(seq)
    }

    fn visit_map<A: MapAccess<'de>>(mut self, mut map: A) -> Result<(), A::Error> {
        let mut rest = serde_json::Map::new();
        while let Some(name) = map.next_key::<String>()? {
            if self.lists.contains(&name.as_str()) {
                let before = self.walk.left.get();
                map.next_value_seed(List { name: &name, walk: &mut self.walk })?;
                if *self.walk.stopped {
                    return Ok(());
                }
                // What is held of the document itself counts on.
                self.walk.left.set(before);
            } else {
                let raw: Box<RawValue> = map.next_value()?;
                rest.insert(name, value(&raw).map_err(A::Error::custom)?);
            }
        }
        *self.walk.stopped = (self.walk.take)("", 0, Ok(Value::Object(rest))).is_break();
        Ok(())
    }
}

struct List<'a, 't, 'w> {
    name: &'a str,
    walk: &'w mut Walk<'t>,
}

impl<'de> DeserializeSeed<'de> for List<'_, '_, '_> {
    type Value = ();
    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for List<'_, '_, '_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str("an array")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<(), A::Error> {
        let mut number = 0;
        while let Some(element) = seq.next_element::<Box<RawValue>>()? {
            if !self.walk.hand(self.name, number, &element) {
                return Ok(());
            }
            number += 1;
        }
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        // A list that is written as an object: its values.
        let mut number = 0;
        while let Some((_, element)) = map.next_entry::<IgnoredAny, Box<RawValue>>()? {
            if !self.walk.hand(self.name, number, &element) {
                return Ok(());
            }
            number += 1;
        }
        Ok(())
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_none<E>(self) -> Result<(), E> {
        Ok(())
    }
}

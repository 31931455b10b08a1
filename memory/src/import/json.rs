//! Elements of large JSON documents one by one: what is held in memory is one of them.

use super::{File, Sink, refused};
use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::Value;
use std::fmt;
use std::io::{BufReader, Read};
use std::ops::ControlFlow;

/// What takes elements: the list that they stand in (empty for the document itself), their number, and the element.
pub(super) type Take<'a> = &'a mut dyn FnMut(&str, usize, Value) -> ControlFlow<()>;

/// Calls `take` for each element of the document if it is an array; if it is an object, for each element of the members
/// that are arrays and named in `lists`, and for the object itself without them, last.
pub(super) fn elements(file: &mut File, lists: &[&str], take: Take) -> Result<(), String> {
    let mut stopped = false;
    let mut reader = serde_json::Deserializer::from_reader(BufReader::new(&mut *file.bytes as &mut dyn Read));
    let seed = Document { lists, take, stopped: &mut stopped };
    let read = seed.deserialize(&mut reader);
    match read {
        _ if stopped => Ok(()),
        Ok(()) => reader.end().map_err(|e| e.to_string()),
        Err(error) => Err(error.to_string()),
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
    let read = elements(&mut file, lists, &mut |list, number, value| take(list, number, value, sink));
    if let Err(reason) = read {
        let _ = sink(refused(name, format!("{reason}; what came before it was read")));
    }
}

struct Document<'a, 't> {
    lists: &'a [&'a str],
    take: Take<'t>,
    stopped: &'a mut bool,
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

    fn visit_seq<A: SeqAccess<'de>>(self, seq: A) -> Result<(), A::Error> {
        walk("", seq, self.take, self.stopped)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let mut rest = serde_json::Map::new();
        while let Some(name) = map.next_key::<String>()? {
            if self.lists.contains(&name.as_str()) {
                map.next_value_seed(List { name: &name, take: self.take, stopped: self.stopped })?;
                if *self.stopped {
                    return Ok(());
                }
            } else {
                rest.insert(name, map.next_value()?);
            }
        }
        *self.stopped = (self.take)("", 0, Value::Object(rest)).is_break();
        Ok(())
    }
}

struct List<'a, 't> {
    name: &'a str,
    take: Take<'t>,
    stopped: &'a mut bool,
}

impl<'de> DeserializeSeed<'de> for List<'_, '_> {
    type Value = ();
    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for List<'_, '_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str("an array")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, seq: A) -> Result<(), A::Error> {
        walk(self.name, seq, self.take, self.stopped)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        // A list that is written as an object: its values.
        let mut number = 0;
        while let Some((_, value)) = map.next_entry::<IgnoredAny, Value>()? {
            if (self.take)(self.name, number, value).is_break() {
                *self.stopped = true;
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

fn walk<'de, A: SeqAccess<'de>>(
    list: &str,
    mut seq: A,
    take: Take,
    stopped: &mut bool,
) -> Result<(), A::Error> {
    let mut number = 0;
    while let Some(value) = seq.next_element::<Value>()? {
        if take(list, number, value).is_break() {
            *stopped = true;
            return Ok(());
        }
        number += 1;
    }
    Ok(())
}

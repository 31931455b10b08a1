//! Foreign documents within bounds: bytes as they are read, values as they are built.

use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};
use std::cell::Cell;
use std::fmt;
use std::io::{self, Read};

/// A reader that ends with an error when more than `left` bytes are read before somebody sets it anew.
pub(super) struct Bounded<'a> {
    bytes: &'a mut dyn Read,
    most: usize,
    left: &'a Cell<usize>,
}

impl<'a> Bounded<'a> {
    /// A reader; `most` is for the message.
    pub(super) const fn new(bytes: &'a mut dyn Read, most: usize, left: &'a Cell<usize>) -> Self {
        Self { bytes, most, left }
    }
}

impl Read for Bounded<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let Some(left) = self.left.get().checked_sub(1) else {
            return Err(io::Error::other(format!("a single record is larger than {} bytes", self.most)));
        };
        let room = buffer.len().min(left + 1);
        let read = self.bytes.read(buffer.get_mut(..room).unwrap_or_default())?;
        self.left.set(self.left.get() - read);
        Ok(read)
    }
}

/// What a YAML document, whose aliases may stand for more than was written, may still take.
pub(super) struct Budget {
    nodes: usize,
    /// Bytes of text.
    bytes: usize,
    depth: usize,
}

impl Budget {
    /// Of a document whose values and text together are so large.
    pub(super) const fn new(bytes: usize, depth: usize) -> Self {
        Self { nodes: bytes, bytes, depth }
    }

    /// Reads a document.
    pub(super) fn read<'de, D: Deserializer<'de>>(mut self, deserializer: D) -> Result<Value, D::Error> {
        self.seed().deserialize(deserializer)
    }

    /// What reads a value of the document.
    pub(super) const fn seed(&mut self) -> Seed<'_> {
        let depth = self.depth;
        Seed { left: self, depth }
    }

    fn text<E: Error>(&mut self, text: &str) -> Result<String, E> {
        self.bytes = self.bytes.checked_sub(text.len()).ok_or_else(|| E::custom("more text than is read"))?;
        Ok(text.to_owned())
    }
}

/// Reads one value.
pub(super) struct Seed<'b> {
    left: &'b mut Budget,
    depth: usize,
}

impl Seed<'_> {
    fn below<E: Error>(&mut self) -> Result<Seed<'_>, E> {
        let depth = self.depth.checked_sub(1).ok_or_else(|| E::custom("nested too deeply"))?;
        Ok(Seed { left: &mut *self.left, depth })
    }
}

impl<'de> DeserializeSeed<'de> for Seed<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        let nodes = self.left.nodes.checked_sub(1);
        self.left.nodes = nodes.ok_or_else(|| D::Error::custom("too many values for its size"))?;
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Seed<'_> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    // A document of nothing.
    fn visit_none<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(Value::from(value))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(Value::from(value))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        Ok(Number::from_f64(value).map_or(Value::Null, Value::Number))
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Value, E> {
        self.left.text(text).map(Value::String)
    }

    fn visit_seq<A: SeqAccess<'de>>(mut self, mut seq: A) -> Result<Value, A::Error> {
        let mut elements = Vec::new();
        while let Some(element) = seq.next_element_seed(self.below()?)? {
            elements.push(element);
        }
        Ok(Value::Array(elements))
    }

    fn visit_map<A: MapAccess<'de>>(mut self, mut map: A) -> Result<Value, A::Error> {
        let mut members = Map::new();
        while let Some(name) = map.next_key::<String>()? {
            let name = self.left.text(&name)?;
            members.insert(name, map.next_value_seed(self.below()?)?);
        }
        Ok(Value::Object(members))
    }
}

//! The value of an entry: an object, kept as the text that came.

use super::{EntryError, MAX_VALUE, Must, refused};
use oap_identity::json::MAX_DEPTH;
use serde::de::{DeserializeSeed, Deserializer, Error as _, MapAccess, SeqAccess, Visitor};
use serde::{Serialize, Serializer};
use serde_json::value::RawValue;
use std::collections::BTreeSet;
use std::fmt;

/// A JSON object as text, at most [`MAX_VALUE`] bytes of it, that all readers understand alike.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Opaque(String);

impl Opaque {
    /// Takes over a value as it stands in a text.
    ///
    /// # Errors
    /// [`EntryError`], naming `value`.
    pub fn read(text: &str) -> Result<Self, EntryError> {
        if !text.starts_with('{') {
            return refused("value", Must::Object);
        }
        if text.len() > MAX_VALUE {
            return Err(EntryError::TooLarge);
        }
        if texts_of(text).is_ok() { Ok(Self(text.to_owned())) } else { refused("value", Must::Sound) }
    }

    /// The text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The texts in it, members' names among them: as they are read, whatever their escapes. `None` where it cannot be read.
    #[must_use]
    pub fn texts(&self) -> Option<String> {
        texts_of(&self.0).ok()
    }

    /// An object with one text, for what was written in another dialect.
    #[must_use]
    pub fn of_text(text: &str) -> Self {
        Self(serde_json::json!({"text": text}).to_string())
    }

    /// An object that stands elsewhere as one.
    #[must_use]
    pub fn of_object(object: &serde_json::Map<String, serde_json::Value>) -> Self {
        Self(serde_json::Value::Object(object.clone()).to_string())
    }
}

impl Serialize for Opaque {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let raw: &RawValue =
            serde_json::from_str(&self.0).map_err(<S::Error as serde::ser::Error>::custom)?;
        raw.serialize(serializer)
    }
}

/// The texts in a JSON text that all readers understand alike. It is never read into a [`serde_json::Value`], to which some names of
/// members mean something else.
fn texts_of(text: &str) -> serde_json::Result<String> {
    let mut texts = String::new();
    let mut reader = serde_json::Deserializer::from_str(text);
    Sound { depth: 0, is_named: false, texts: &mut texts }.deserialize(&mut reader)?;
    reader.end()?;
    Ok(texts)
}

/// A value that stands so deep, and of which the texts alone are kept.
struct Sound<'t> {
    depth: usize,
    /// Whether the name of a member stands before it.
    is_named: bool,
    texts: &'t mut String,
}

impl Sound<'_> {
    fn below<E: serde::de::Error>(&mut self, is_named: bool) -> Result<Sound<'_>, E> {
        if self.depth < MAX_DEPTH {
            Ok(Sound { depth: self.depth + 1, is_named, texts: &mut *self.texts })
        } else {
            Err(E::custom("too deep"))
        }
    }

    /// What is no text ends the line of its name.
    fn end_name(&mut self) {
        if self.is_named {
            self.texts.push('\n');
        }
    }
}

impl<'de> DeserializeSeed<'de> for Sound<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Sound<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E>(mut self) -> Result<(), E> {
        self.end_name();
        Ok(())
    }

    fn visit_bool<E>(mut self, _: bool) -> Result<(), E> {
        self.end_name();
        Ok(())
    }

    fn visit_str<E>(self, text: &str) -> Result<(), E> {
        if self.is_named {
            self.texts.push_str(": ");
        }
        self.texts.push_str(text);
        self.texts.push('\n');
        Ok(())
    }

    fn visit_u64<E>(mut self, _: u64) -> Result<(), E> {
        self.end_name();
        Ok(())
    }

    fn visit_i64<E>(mut self, _: i64) -> Result<(), E> {
        self.end_name();
        Ok(())
    }

    fn visit_f64<E>(mut self, _: f64) -> Result<(), E> {
        self.end_name();
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(mut self, mut seq: A) -> Result<(), A::Error> {
        self.end_name();
        while seq.next_element_seed(self.below::<A::Error>(false)?)?.is_some() {}
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(mut self, mut map: A) -> Result<(), A::Error> {
        self.end_name();
        let mut names = BTreeSet::new();
        while let Some(name) = map.next_key_seed(Name)? {
            // A number, which `serde_json` hands over as an object with one member of a name of its own.
            let Some(name) = name else { return map.next_value::<String>().map(drop) };
            self.texts.push_str(&name);
            if !names.insert(name) {
                return Err(A::Error::custom("twice"));
            }
            map.next_value_seed(self.below::<A::Error>(true)?)?;
        }
        Ok(())
    }
}

/// The name of a member; `None` is the one that `serde_json` gives a number.
struct Name;

impl<'de> DeserializeSeed<'de> for Name {
    type Value = Option<String>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        // Names that stand in the text come as bytes, its own name as a string: so foreign text cannot pass for it.
        deserializer.deserialize_bytes(self)
    }
}

impl Visitor<'_> for Name {
    type Value = Option<String>;

    fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str("a member name")
    }

    fn visit_bytes<E: serde::de::Error>(self, name: &[u8]) -> Result<Self::Value, E> {
        std::str::from_utf8(name).map(|name| Some(name.to_owned())).map_err(|_| E::custom("no text"))
    }

    fn visit_str<E>(self, _token: &str) -> Result<Self::Value, E> {
        Ok(None)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_comes_is_kept_to_the_byte() {
        for text in [
            "{}",
            r#"{"z":1,"a":9007199254740993,"m":123456789012345678901234567890,"f":1.10,"e":-0.0,"x":1E400}"#,
            "{ \"white\" :\t[ ] ,\n\"u\": \"\\u00e9 é 🦀\" }",
            r#"{"_sd":[],"...":null,"$serde_json::private::Number":"1","a":{"a":{"a":[[]]}}}"#,
        ] {
            let value = Opaque::read(text).unwrap_or_else(|e| panic!("{text}: {e}"));
            assert_eq!(value.as_str(), text);
            assert_eq!(serde_json::to_string(&value).unwrap(), text);
        }
    }

    #[test]
    fn texts_are_told_as_they_are_read() {
        for (value, texts) in [
            (
                r#"{"note":["\u0069gnore",1,{"a":null,"\u0062":"c"}],"n":1.50,"z":true}"#,
                "note\nignore\na\nb: c\nn\nz\n",
            ),
            (
                r#"{"$serde_json::private::Number":"-","a":"\u0062"}"#,
                "$serde_json::private::Number: -\na: b\n",
            ),
            (
                r#"{"x":{"$serde_json::private::RawValue":"{"},"a":"\u0062"}"#,
                "x\n$serde_json::private::RawValue: {\na: b\n",
            ),
            ("{}", ""),
        ] {
            assert_eq!(Opaque::read(value).unwrap().texts().as_deref(), Some(texts), "{value}");
        }
        assert_eq!(Opaque::of_text("\u{1}\"").texts().as_deref(), Some("text: \u{1}\"\n"));
    }

    #[test]
    fn what_two_readers_understand_differently_is_refused() {
        let deep = |levels: usize| format!("{{\"a\":{}{}}}", "[".repeat(levels), "]".repeat(levels));
        assert!(Opaque::read(&deep(MAX_DEPTH - 1)).is_ok());
        for text in [
            &deep(MAX_DEPTH),
            r#"{"a":1,"a":2}"#,
            r#"{"a":{"b":1,"b":1}}"#,
            r#"{"a":"\ud800"}"#,
            r#"{"\ud800":1}"#,
        ] {
            assert_eq!(Opaque::read(text), refused("value", Must::Sound), "{text}");
        }
        for text in ["[]", "1", "null", "\"x\""] {
            assert_eq!(Opaque::read(text), refused("value", Must::Object), "{text}");
        }
        let large = |bytes: usize| format!("{{\"a\":\"{}\"}}", "x".repeat(bytes - 8));
        assert!(Opaque::read(&large(MAX_VALUE)).is_ok());
        assert_eq!(Opaque::read(&large(MAX_VALUE + 1)), Err(EntryError::TooLarge));
    }
}

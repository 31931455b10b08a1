//! A value as serde reads it: an object where the type has members, and nothing else.

use super::misfit::Misfit;
use serde::de::value::MapAccessDeserializer;
use serde::de::{
    DeserializeSeed, Deserializer, Error as _, IntoDeserializer, MapAccess, SeqAccess, Unexpected, Visitor,
};
use serde::forward_to_deserialize_any;
use serde_json::{Map, Value};

/// A value whose objects are objects.
pub(super) struct Strict(pub(super) Value);

pub(super) struct StrictMembers {
    rest: serde_json::map::IntoIter,
    known: &'static [&'static str],
    pub(super) at: Option<&'static str>,
    pub(super) value: Option<Value>,
}

impl StrictMembers {
    pub(super) fn of(members: Map<String, Value>, known: &'static [&'static str]) -> Self {
        Self { rest: members.into_iter(), known, at: None, value: None }
    }
}

impl<'de> MapAccess<'de> for StrictMembers {
    type Error = Misfit;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, Misfit> {
        let Some((name, value)) = self.rest.next() else { return Ok(None) };
        self.at = self.known.iter().copied().find(|known| *known == name);
        self.value = Some(value);
        seed.deserialize(name.into_deserializer()).map(Some)
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, Misfit> {
        let value = self.value.take().unwrap_or_default();
        seed.deserialize(Strict(value)).map_err(|e| e.at(self.at))
    }
}

struct StrictElements {
    rest: std::iter::Enumerate<std::vec::IntoIter<Value>>,
}

impl<'de> SeqAccess<'de> for StrictElements {
    type Error = Misfit;

    fn next_element_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<Option<T::Value>, Misfit> {
        let Some((index, value)) = self.rest.next() else { return Ok(None) };
        seed.deserialize(Strict(value)).map(Some).map_err(|e| e.within(&format!("[{index}]")))
    }
}

impl Strict {
    fn members<'de, V: Visitor<'de>>(
        members: Map<String, Value>,
        known: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Misfit> {
        let mut members = StrictMembers::of(members, known);
        let read = visitor.visit_map(&mut members)?;
        if members.rest.next().is_some() { Err(Misfit::custom("too many members")) } else { Ok(read) }
    }
}

impl<'de> Deserializer<'de> for Strict {
    type Error = Misfit;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Misfit> {
        match self.0 {
            Value::Array(values) => {
                let mut elements = StrictElements { rest: values.into_iter().enumerate() };
                let read = visitor.visit_seq(&mut elements)?;
                if elements.rest.next().is_some() {
                    return Err(Misfit::custom("too many elements"));
                }
                Ok(read)
            }
            Value::Object(members) => Self::members(members, &[], visitor),
            Value::Null => visitor.visit_unit(),
            Value::Bool(value) => visitor.visit_bool(value),
            Value::String(text) => visitor.visit_string(text),
            Value::Number(number) => match (number.as_u64(), number.as_i64(), number.as_f64()) {
                (Some(number), _, _) => visitor.visit_u64(number),
                (_, Some(number), _) => visitor.visit_i64(number),
                (_, _, Some(number)) => visitor.visit_f64(number),
                _ => Err(Misfit::custom("a number that is too large")),
            },
        }
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        known: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Misfit> {
        match self.0 {
            Value::Object(members) => Self::members(members, known, visitor),
            other => Err(Misfit::invalid_type(unexpected(&other), &"an object")),
        }
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Misfit> {
        if self.0.is_null() { visitor.visit_none() } else { visitor.visit_some(self) }
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        visitor: V,
    ) -> Result<V::Value, Misfit> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _name: &'static str,
        _variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Misfit> {
        match self.0 {
            Value::String(text) => visitor.visit_enum(text.into_deserializer()),
            Value::Object(members) if members.len() == 1 => {
                visitor.visit_enum(MapAccessDeserializer::new(StrictMembers::of(members, &[])))
            }
            other => Err(Misfit::invalid_type(unexpected(&other), &"text")),
        }
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf unit unit_struct seq
        tuple tuple_struct map identifier ignored_any
    }
}

fn unexpected(value: &Value) -> Unexpected<'_> {
    match value {
        Value::Null => Unexpected::Unit,
        Value::Bool(value) => Unexpected::Bool(*value),
        Value::Number(_) => Unexpected::Float(0.0),
        Value::String(text) => Unexpected::Str(text),
        Value::Array(_) => Unexpected::Seq,
        Value::Object(_) => Unexpected::Map,
    }
}

#[cfg(test)]
mod tests {
    use crate::json::{from_parameters, parse_as};

    #[test]
    fn an_array_is_no_object() {
        #[derive(Debug, PartialEq, serde::Deserialize)]
        struct Inner {
            a: Option<u8>,
        }
        #[derive(Debug, PartialEq, serde::Deserialize)]
        struct Outer {
            inner: Inner,
            list: Vec<Inner>,
        }
        let read = |text: &str| parse_as::<Outer>(text.as_bytes());
        let inner = |a| Inner { a };
        assert_eq!(
            read(r#"{"inner":{"a":1},"list":[{}]}"#),
            Ok(Outer { inner: inner(Some(1)), list: vec![inner(None)] })
        );
        for text in [r#"[{"a":1},[]]"#, r#"{"inner":[1],"list":[]}"#, r#"{"inner":{},"list":[[1]]}"#] {
            assert!(read(text).is_err(), "{text}");
        }
    }

    #[test]
    fn errors_say_where_and_what_and_never_what_was_there() {
        #[derive(Debug, serde::Deserialize)]
        #[serde(deny_unknown_fields)]
        #[expect(dead_code, reason = "read to be refused")]
        struct Inner {
            count: u8,
            kind: Option<Kind>,
        }
        #[derive(Debug, serde::Deserialize)]
        #[serde(rename_all = "lowercase")]
        enum Kind {
            One,
        }
        #[derive(Debug, serde::Deserialize)]
        #[expect(dead_code, reason = "read to be refused")]
        struct Outer {
            list: Vec<Inner>,
        }
        let why = |text: &str| parse_as::<Outer>(text.as_bytes()).unwrap_err().to_string();
        for (text, expected) in [
            (r#"{"list":"Canary1"}"#, "list: invalid type: text, expected a sequence"),
            (r#"{"list":[{"count":"Canary1"}]}"#, "list[0].count: invalid type: text, expected u8"),
            (r#"{"list":[{"count":31415}]}"#, "list[0].count: invalid value, expected u8"),
            (r#"{"list":[{"count":1,"kind":"Canary1"}]}"#, "list[0].kind: must be one of one"),
            (
                r#"{"list":[{"count":1,"more":1}]}"#,
                "list[0]: unknown member \"more\"; the members are count, kind",
            ),
            (r#"{"list":[{"count":1,"Canary1":1}]}"#, "list[0]: unknown member; the members are count, kind"),
            (r#"{"list":[{"kind":null}]}"#, "list[0].count: is required"),
            (r#"{"list":[[31415]]}"#, "list[0]: invalid type: an array, expected an object"),
            (r#"{"Canary1":1,"Canary1":2}"#, "duplicate member"),
            (r#"{"list":31415926535897932384626}"#, "an integer is outside"),
        ] {
            let why = why(text);
            assert!(why.contains(expected), "{text}: {why}");
            assert!(!why.contains("Canary1") && !why.contains("31415"), "{text}: {why}");
        }
        let parameters = |name: &str, value: &str| {
            from_parameters::<Inner>([(name.to_owned(), value.to_owned())]).map_err(|e| e.to_string())
        };
        assert_eq!(parameters("count", "7").unwrap().count, 7);
        assert!(parameters("count", "Canary1").unwrap_err().ends_with("count: must be a number in range"));
        assert!(!parameters("Canary1", "1").unwrap_err().contains("Canary1"));
    }
}

//! JSON as the wire allows it (protocol section 1): strict reading, RFC 8785 writing.
//!
//! [`parse`] is the only way in for foreign bytes. It refuses what two readers could understand
//! differently: duplicate member names, lone surrogates, numbers that a double cannot hold exactly,
//! nesting beyond [`MAX_DEPTH`].

use serde::de::value::{MapDeserializer, SeqDeserializer};
use serde::de::{
    DeserializeOwned, DeserializeSeed, Deserializer, Error as _, IntoDeserializer, MapAccess, SeqAccess,
    Visitor,
};
use serde::forward_to_deserialize_any;
use serde_json::value::RawValue;
use serde_json::{Map, Number, Value};
use std::fmt;

/// Deepest nesting of arrays and objects that is read.
pub const MAX_DEPTH: usize = 64;

/// The largest integer that every JSON reader agrees on: 2^53 - 1 (RFC 7493 section 2.2).
const MAX_EXACT_INTEGER: i64 = 9_007_199_254_740_991;

/// Why bytes are not JSON that the wire allows.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum JsonError {
    /// Not JSON, or one of the refusals of this module; the text says which and where.
    #[error("not acceptable JSON: {0}")]
    Invalid(String),
    /// A value that has no JSON form, such as a not-a-number.
    #[error("no canonical form: {0}")]
    NotCanonical(String),
}

/// Reads one JSON text.
///
/// # Errors
/// [`JsonError::Invalid`] for anything but a single well-formed text within the module's limits.
pub fn parse(bytes: &[u8]) -> Result<Value, JsonError> {
    let raw: &RawValue = serde_json::from_slice(bytes).map_err(invalid)?;
    read(raw, 0)
}

/// Reads one JSON text into a wire type, through [`parse`].
///
/// # Errors
/// As [`parse`], and when the value does not have the type's shape; the message names the member.
pub fn parse_as<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, JsonError> {
    from_value(parse(bytes)?)
}

/// Reads a wire type from a value. An array where an object belongs is refused: `serde` alone would take its
/// elements for the members in order.
///
/// # Errors
/// When the value does not have the type's shape; the message names the member.
pub fn from_value<T: DeserializeOwned>(value: Value) -> Result<T, JsonError> {
    T::deserialize(Strict(value)).map_err(invalid)
}

/// The RFC 8785 bytes of a value.
///
/// # Errors
/// [`JsonError::NotCanonical`] when the value holds a number that JSON cannot say.
pub fn canonical<T: serde::Serialize>(value: &T) -> Result<Vec<u8>, JsonError> {
    serde_json_canonicalizer::to_vec(value).map_err(|e| JsonError::NotCanonical(e.to_string()))
}

fn invalid(error: serde_json::Error) -> JsonError {
    JsonError::Invalid(error.to_string())
}

fn refuse<T>(why: impl Into<String>) -> Result<T, JsonError> {
    Err(JsonError::Invalid(why.into()))
}

/// One value from its own text. Working on the raw text keeps numbers as they were written and keeps
/// `serde_json`'s private number token out of reach of foreign member names.
fn read(raw: &RawValue, depth: usize) -> Result<Value, JsonError> {
    let text = raw.get();
    match text.as_bytes().first() {
        Some(b'{' | b'[') if depth == MAX_DEPTH => refuse(format!("nested deeper than {MAX_DEPTH} levels")),
        Some(b'{') => {
            let members: Vec<(String, &RawValue)> = shallow(text, Members)?;
            let mut object = Map::new();
            for (name, value) in members {
                if name.starts_with("$serde_json::") {
                    return refuse(format!("member name {name:?} is reserved"));
                }
                let value = read(value, depth + 1)?;
                if object.insert(name.clone(), value).is_some() {
                    return refuse(format!("duplicate member {name:?}"));
                }
            }
            Ok(Value::Object(object))
        }
        Some(b'[') => {
            let elements: Vec<&RawValue> = shallow(text, Elements)?;
            elements.into_iter().map(|e| read(e, depth + 1)).collect::<Result<_, _>>().map(Value::Array)
        }
        Some(b'-' | b'0'..=b'9') => number(text).map(Value::Number),
        _ => serde_json::from_str(text).map_err(invalid),
    }
}

fn shallow<'a, S: DeserializeSeed<'a>>(text: &'a str, seed: S) -> Result<S::Value, JsonError> {
    let mut reader = serde_json::Deserializer::from_str(text);
    seed.deserialize(&mut reader).map_err(invalid)
}

/// A number in the one form that equals its canonical form, so that equal values compare equal.
fn number(text: &str) -> Result<Number, JsonError> {
    if !text.contains(['.', 'e', 'E']) {
        return match text.parse::<i64>() {
            Ok(n) if n.unsigned_abs() <= MAX_EXACT_INTEGER.unsigned_abs() => Ok(Number::from(n)),
            _ => refuse(format!("integer {text} is outside ±(2^53-1); write it as a string")),
        };
    }
    let value: f64 = text.parse().map_err(|_| JsonError::Invalid(format!("number {text}")))?;
    if value.fract() == 0.0 && value.abs() <= MAX_EXACT_INTEGER as f64 {
        return Ok(Number::from(value as i64));
    }
    // The canonical form of these is an integer that would not be read.
    if value.fract() == 0.0 && value.abs() < 1e21 {
        return refuse(format!("number {text} is outside ±(2^53-1); write it as a string"));
    }
    Number::from_f64(value)
        .ok_or_else(|| JsonError::Invalid(format!("number {text} is too large for a double")))
}

/// A value whose objects are objects.
struct Strict(Value);

impl<'de> Deserializer<'de> for Strict {
    type Error = serde_json::Error;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Self::Error> {
        match self.0 {
            Value::Array(values) => {
                let mut elements = SeqDeserializer::new(values.into_iter().map(Strict));
                let read = visitor.visit_seq(&mut elements)?;
                elements.end()?;
                Ok(read)
            }
            Value::Object(members) => {
                let mut members =
                    MapDeserializer::new(members.into_iter().map(|(name, value)| (name, Strict(value))));
                let read = visitor.visit_map(&mut members)?;
                members.end()?;
                Ok(read)
            }
            leaf => leaf.deserialize_any(visitor),
        }
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        _members: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Self::Error> {
        match self.0 {
            Value::Object(_) => self.deserialize_any(visitor),
            other => Err(Self::Error::custom(format!("invalid type: expected an object, not {other}"))),
        }
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Self::Error> {
        if self.0.is_null() { visitor.visit_none() } else { visitor.visit_some(self) }
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        visitor: V,
    ) -> Result<V::Value, Self::Error> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        name: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Self::Error> {
        self.0.deserialize_enum(name, variants, visitor)
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf unit unit_struct seq
        tuple tuple_struct map identifier ignored_any
    }
}

impl IntoDeserializer<'_, serde_json::Error> for Strict {
    type Deserializer = Self;
    fn into_deserializer(self) -> Self {
        self
    }
}

struct Members;

impl<'de> DeserializeSeed<'de> for Members {
    type Value = Vec<(String, &'de RawValue)>;
    fn deserialize<D: Deserializer<'de>>(self, d: D) -> Result<Self::Value, D::Error> {
        d.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for Members {
    type Value = Vec<(String, &'de RawValue)>;
    fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str("an object")
    }
    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut members = Vec::new();
        while let Some(member) = map.next_entry()? {
            members.push(member);
        }
        Ok(members)
    }
}

struct Elements;

impl<'de> DeserializeSeed<'de> for Elements {
    type Value = Vec<&'de RawValue>;
    fn deserialize<D: Deserializer<'de>>(self, d: D) -> Result<Self::Value, D::Error> {
        d.deserialize_seq(self)
    }
}

impl<'de> Visitor<'de> for Elements {
    type Value = Vec<&'de RawValue>;
    fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str("an array")
    }
    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Self::Value, A::Error> {
        let mut elements = Vec::new();
        while let Some(element) = seq.next_element()? {
            elements.push(element);
        }
        if elements.len() > u32::MAX as usize {
            return Err(A::Error::custom("array too long"));
        }
        Ok(elements)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn canon(text: &str) -> String {
        String::from_utf8(canonical(&parse(text.as_bytes()).unwrap()).unwrap()).unwrap()
    }

    #[test]
    fn what_is_read_can_be_written_and_read_again() {
        for text in ["222222222222222222220.0", "1e20", "-1e16", "9007199254740992.0"] {
            assert!(parse(text.as_bytes()).is_err(), "{text}");
        }
        for text in ["1e21", "1e30", "9007199254740991.0", "1e-7", "-0.0", "4.50"] {
            let bytes = canonical(&parse(text.as_bytes()).unwrap()).unwrap();
            assert_eq!(canonical(&parse(&bytes).unwrap()).unwrap(), bytes, "{text}");
        }
    }

    #[test]
    fn duplicate_members_are_refused_at_any_depth() {
        assert!(parse(br#"{"a":1,"a":2}"#).is_err());
        assert!(parse(br#"{"x":[{"a":1,"\u0061":2}]}"#).is_err());
    }

    #[test]
    fn lone_surrogates_are_refused() {
        assert!(parse(br#""\ud800""#).is_err());
        assert!(parse(br#"{"\udc00":1}"#).is_err());
        assert_eq!(parse(br#""\ud83d\ude00""#).unwrap(), json!("\u{1F600}"));
    }

    #[test]
    fn integers_that_collide_in_a_double_are_refused() {
        assert!(parse(b"9007199254740991").is_ok());
        for n in ["9007199254740992", "9007199254740993", "-9007199254740992", "123456789012345678901"] {
            assert!(parse(n.as_bytes()).is_err(), "{n}");
        }
    }

    #[test]
    fn not_numbers_are_refused() {
        for n in ["NaN", "Infinity", "-Infinity", "1e999", "01", "1.", ".5", "+1", "0x10", "-"] {
            assert!(parse(n.as_bytes()).is_err(), "{n}");
        }
    }

    #[test]
    fn equal_numbers_have_one_form() {
        assert_eq!(parse(b"1.0").unwrap(), parse(b"1").unwrap());
        assert_eq!(parse(b"-0.0").unwrap(), parse(b"0").unwrap());
        assert_eq!(canon("[1.0,1e2,-0,0.92,1E30]"), "[1,100,0,0.92,1e+30]");
    }

    #[test]
    fn the_private_number_token_is_not_a_number() {
        assert!(parse(br#"{"$serde_json::private::Number":"1"}"#).is_err());
    }

    #[test]
    fn canonicalization_keeps_every_member() {
        let text = r#"{"b":{"z":1,"\u0000":2,"\ufb33":3,"\ud83d\ude02":4,"":5},"a":[{"k":null}]}"#;
        assert_eq!(
            canon(text),
            "{\"a\":[{\"k\":null}],\"b\":{\"\":5,\"\\u0000\":2,\"z\":1,\"\u{1F602}\":4,\"\u{fb33}\":3}}"
        );
    }

    #[test]
    fn depth_is_capped() {
        let at = |n: usize| format!("{}{}", "[".repeat(n), "]".repeat(n));
        assert!(parse(at(MAX_DEPTH).as_bytes()).is_ok());
        assert!(parse(at(MAX_DEPTH + 1).as_bytes()).is_err());
        assert!(parse(at(200_000).as_bytes()).is_err());
    }

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
    fn one_text_only() {
        assert!(parse(b"{} {}").is_err());
        assert!(parse(b"").is_err());
        assert!(parse(b"\xff").is_err());
    }
}

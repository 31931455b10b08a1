//! JSON as the wire allows it (protocol section 1): strict reading, RFC 8785 writing.
//!
//! [`parse`] is the only way in for foreign bytes. It refuses what two readers could understand
//! differently: duplicate member names, lone surrogates, numbers that a double cannot hold exactly,
//! nesting beyond [`MAX_DEPTH`]. It reads each byte once, and refuses a text whose values would take
//! many times its size in memory. No error of this module quotes what was read, but for member names that have the
//! form of the wire's own.

mod canonical;
mod misfit;
mod parameters;
mod strict;

pub use misfit::{MAX_SHOWN_NAME, quoted};

use misfit::Misfit;
use parameters::Parameters;
use serde::de::{DeserializeOwned, DeserializeSeed, Deserializer, Error as _, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};
use std::fmt;
use strict::Strict;

/// Deepest nesting of arrays and objects that is read.
pub const MAX_DEPTH: usize = 64;
/// Values (members, elements, and the text itself) that a text of any length may have.
pub const FREE_NODES: usize = 1 << 16;
/// Beyond [`FREE_NODES`], a text has at most one value for so many of its bytes. A value takes 32 bytes in memory, an
/// object some 600 more, and `{"a":0}` is 7 bytes.
pub const BYTES_PER_NODE: usize = 16;

/// The largest integer that every JSON reader agrees on: 2^53 - 1 (RFC 7493 section 2.2).
const MAX_EXACT_INTEGER: i64 = 9_007_199_254_740_991;

/// Why bytes are not JSON that the wire allows.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum JsonError {
    /// Not JSON, or one of the refusals of this module; the text says which and where.
    #[error("not acceptable JSON: {0}")]
    Invalid(String),
    /// JSON, and not of the shape that is expected: the text names the member and what it must be.
    #[error("{0}")]
    Shape(String),
    /// A value that has no JSON form, such as a not-a-number.
    #[error("no canonical form: {0}")]
    NotCanonical(String),
}

/// Reads one JSON text.
///
/// # Errors
/// [`JsonError::Invalid`] for anything but a single well-formed text within the module's limits.
pub fn parse(bytes: &[u8]) -> Result<Value, JsonError> {
    let mut reader = serde_json::Deserializer::from_slice(bytes);
    let node = Node { left: &mut max_nodes(bytes.len()), depth: 0, of: Of::Wire };
    let value = node.deserialize(&mut reader).map_err(invalid)?;
    reader.end().map_err(invalid)?;
    Ok(value)
}

/// Reads what another program wrote, for importers: as `serde_json` does (the last of several members of one name, numbers as they are
/// written, 128 levels), but for the names that `serde_json` itself gives a meaning: by them a text has as many levels as it likes.
///
/// # Errors
/// What `serde_json` says.
pub fn parse_foreign(text: &str) -> Result<Value, serde_json::Error> {
    let mut reader = serde_json::Deserializer::from_str(text);
    let node = Node { left: &mut max_nodes(text.len()), depth: 0, of: Of::Foreign };
    let value = node.deserialize(&mut reader)?;
    reader.end()?;
    Ok(value)
}

/// Most values of a text of that length, in bytes.
#[must_use]
pub const fn max_nodes(length: usize) -> usize {
    FREE_NODES + length / BYTES_PER_NODE
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
    T::deserialize(Strict(value)).map_err(|e| JsonError::Shape(e.to_string()))
}

/// Reads a wire type from the parameters of an address, each given once. A number is written as JSON writes it.
///
/// # Errors
/// As [`from_value`].
pub fn from_parameters<T: DeserializeOwned>(
    parameters: impl IntoIterator<Item = (String, String)>,
) -> Result<T, JsonError> {
    let mut members = Map::new();
    for (name, text) in parameters {
        if members.contains_key(&name) {
            return Err(JsonError::Shape(format!("duplicate parameter{}", quoted(&name))));
        }
        members.insert(name, Value::String(text));
    }
    T::deserialize(Parameters(members)).map_err(|e: Misfit| JsonError::Shape(e.to_string()))
}

/// The RFC 8785 bytes of a value.
///
/// # Errors
/// [`JsonError::NotCanonical`] when the value holds a number that JSON cannot say, two members of one name, a member name that is no
/// text, or JSON that is written already.
pub fn canonical<T: serde::Serialize>(value: &T) -> Result<Vec<u8>, JsonError> {
    canonical::to_vec(value).map_err(|e| JsonError::NotCanonical(e.to_string()))
}

/// The same as text.
///
/// # Errors
/// As [`canonical`].
pub fn canonical_text<T: serde::Serialize>(value: &T) -> Result<String, JsonError> {
    String::from_utf8(canonical(value)?).map_err(|e| JsonError::NotCanonical(e.to_string()))
}

fn invalid(error: serde_json::Error) -> JsonError {
    JsonError::Invalid(error.to_string())
}

/// Whose JSON is read.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Of {
    /// The wire's.
    Wire,
    /// Another program's ([`parse_foreign`]).
    Foreign,
}

/// One value, and how deep it stands.
struct Node<'r> {
    /// How many values may still come.
    left: &'r mut usize,
    depth: usize,
    of: Of,
}

impl Of {
    fn number<E: serde::de::Error>(self, text: &str) -> Result<Value, E> {
        let read = match self {
            Self::Wire => number(text).map_err(E::custom),
            Self::Foreign => text.parse().map_err(E::custom),
        };
        read.map(Value::Number)
    }
}

impl Node<'_> {
    fn below(&mut self) -> Node<'_> {
        Node { left: &mut *self.left, depth: self.depth + 1, of: self.of }
    }

    fn check_depth<E: serde::de::Error>(&self) -> Result<(), E> {
        // What is foreign has the bound of `serde_json` alone, 128.
        if self.depth < MAX_DEPTH || self.of == Of::Foreign {
            Ok(())
        } else {
            Err(E::custom(format_args!("nested deeper than {MAX_DEPTH} levels")))
        }
    }
}

impl<'de> DeserializeSeed<'de> for Node<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        *self.left = self.left.checked_sub(1).ok_or_else(|| {
            D::Error::custom(format_args!(
                "too many values for its length: at most {FREE_NODES}, and one for each {BYTES_PER_NODE} bytes"
            ))
        })?;
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Node<'_> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_str<E>(self, text: &str) -> Result<Value, E> {
        Ok(Value::String(text.to_owned()))
    }

    // All other numbers, and these beyond 64 bits, come as objects: see [`Key`].
    fn visit_u64<E: serde::de::Error>(self, value: u64) -> Result<Value, E> {
        self.of.number(&value.to_string())
    }

    fn visit_i64<E: serde::de::Error>(self, value: i64) -> Result<Value, E> {
        self.of.number(&value.to_string())
    }

    fn visit_seq<A: SeqAccess<'de>>(mut self, mut seq: A) -> Result<Value, A::Error> {
        self.check_depth()?;
        let mut elements = Vec::new();
        while let Some(element) = seq.next_element_seed(self.below())? {
            elements.push(element);
        }
        Ok(Value::Array(elements))
    }

    fn visit_map<A: MapAccess<'de>>(mut self, mut map: A) -> Result<Value, A::Error> {
        let mut members = Map::new();
        while let Some(key) = map.next_key_seed(KeySeed)? {
            let name = match key {
                Key::Number => {
                    let text: String = map.next_value()?;
                    return self.of.number(&text);
                }
                Key::Name(name) => name,
            };
            self.check_depth()?;
            // `serde_json` gives these names a meaning.
            if name.starts_with("$serde_json::") {
                return Err(A::Error::custom("a member name is reserved"));
            }
            if self.of == Of::Wire && members.contains_key(&name) {
                return Err(A::Error::custom(format_args!("duplicate member{}", quoted(&name))));
            }
            members.insert(name, map.next_value_seed(self.below())?);
        }
        self.check_depth()?;
        Ok(Value::Object(members))
    }
}

/// The name of a member; or the sign that what is read is a number, which `serde_json` (with `arbitrary_precision`) hands
/// over as it is written, in an object with one member of a name of its own.
enum Key {
    Name(String),
    Number,
}

impl<'de> DeserializeSeed<'de> for KeySeed {
    type Value = Key;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Key, D::Error> {
        // Names that stand in the text come as bytes, its own name as a string: so foreign text cannot pass for it.
        deserializer.deserialize_bytes(self)
    }
}

/// Reads a [`Key`].
struct KeySeed;

impl Visitor<'_> for KeySeed {
    type Value = Key;

    fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str("a member name")
    }

    fn visit_bytes<E: serde::de::Error>(self, name: &[u8]) -> Result<Key, E> {
        // Lone surrogates come as bytes that are no UTF-8.
        let name = std::str::from_utf8(name).map_err(|_| E::custom("a member name with a lone surrogate"))?;
        Ok(Key::Name(name.to_owned()))
    }

    fn visit_str<E>(self, _token: &str) -> Result<Key, E> {
        Ok(Key::Number)
    }
}

/// Why a number has no form that all readers agree on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
enum NumberError {
    #[error("an integer is outside ±(2^53-1); write it as a string")]
    Integer,
    /// Its canonical form is an integer that would not be read.
    #[error("a number is outside ±(2^53-1); write it as a string")]
    Whole,
    #[error("a number too large for a double")]
    TooLarge,
    #[error("not a number")]
    None,
}

/// A number in the one form that equals its canonical form, so that equal values compare equal.
fn number(text: &str) -> Result<Number, NumberError> {
    if !text.contains(['.', 'e', 'E']) {
        return match text.parse::<i64>() {
            Ok(n) if n.unsigned_abs() <= MAX_EXACT_INTEGER.unsigned_abs() => Ok(Number::from(n)),
            _ => Err(NumberError::Integer),
        };
    }
    let value: f64 = text.parse().map_err(|_| NumberError::None)?;
    if value.fract() == 0.0 && value.abs() <= MAX_EXACT_INTEGER as f64 {
        return Ok(Number::from(value as i64));
    }
    if value.fract() == 0.0 && value.abs() < 1e21 {
        return Err(NumberError::Whole);
    }
    Number::from_f64(value).ok_or(NumberError::TooLarge)
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
    fn one_text_only() {
        assert!(parse(b"{} {}").is_err());
        assert!(parse(b"").is_err());
        assert!(parse(b"\xff").is_err());
    }

    #[test]
    fn numbers_are_read_as_they_were_written() {
        // What `serde_json` would have rounded or read as something else stands beside strings full of numbers.
        let text = r#"{"1":"-2\"3","a\\":[0.1,{"7e1":1e21}],"b":-12.50e-1,"c":["\\\\",9007199254740991]}"#;
        let value = parse(text.as_bytes()).unwrap();
        assert_eq!(value["a\\"], json!([0.1, {"7e1": 1e21}]));
        assert_eq!((&value["b"], &value["c"][1]), (&json!(-1.25), &json!(9_007_199_254_740_991_i64)));
    }

    #[test]
    fn refusals_hold_no_content() {
        for text in [r#"{"pin":12345678901234567890}"#, "[9007199254740993.0]"] {
            let message = parse(text.as_bytes()).unwrap_err().to_string();
            assert!(message.contains("2^53") && !message.contains("123456") && !message.contains("900719"));
        }
    }

    #[test]
    fn what_is_foreign_is_read_as_it_is_written() {
        for text in [
            r#"{"a":1,"b":[12345678901234567890,1.50,-0,1e400],"a":{"":null}}"#,
            &format!("{}{}", "[".repeat(127), "]".repeat(127)),
            "\"\\ud83d\\ude00\"",
        ] {
            assert_eq!(parse_foreign(text).unwrap(), serde_json::from_str::<Value>(text).unwrap(), "{text}");
        }
        for text in [&*format!("{}{}", "[".repeat(129), "]".repeat(129)), "{} {}", "", r#""\ud800""#, "01"] {
            assert!(parse_foreign(text).is_err() && serde_json::from_str::<Value>(text).is_err(), "{text}");
        }
    }

    /// Raw JSON within raw JSON: `serde_json` alone counts its levels anew each time, and a text of some megabytes overflows the stack.
    #[test]
    fn a_foreign_text_has_no_more_levels_than_it_shows() {
        for name in ["$serde_json::private::RawValue", "\\u0024serde_json::private::RawValue"] {
            let text = format!(r#"[{{"{name}":"[]"}}]"#);
            assert!(parse_foreign(&text).is_err() && serde_json::from_str::<Value>(&text).is_ok());
        }
    }

    /// Elements of three bytes each.
    fn dense(elements: usize) -> String {
        format!("[{}[]]", "[],".repeat(elements - 1))
    }

    #[test]
    fn values_are_counted() {
        // The array itself is one of them.
        let most = (FREE_NODES - 1) * BYTES_PER_NODE / (BYTES_PER_NODE - 3);
        let at = |elements: usize| elements < max_nodes(dense(elements).len());
        assert!(at(most) && !at(most + BYTES_PER_NODE), "the bound is near");
        assert!(parse(dense(most).as_bytes()).is_ok());
        let message = parse(dense(most + BYTES_PER_NODE).as_bytes()).unwrap_err().to_string();
        assert!(message.contains("too many values"), "{message}");
        // Longer values leave room for more of them.
        let long = format!("[{}0]", "\"0123456789abc\",".repeat(2 * FREE_NODES));
        assert!(parse(long.as_bytes()).is_ok());
    }

    #[test]
    fn depth_costs_nothing() {
        // The same bytes, one level and as many levels as there may be: reading a level again would show as 60 times.
        let body = "\"0123456789abcdef\",".repeat(20_000);
        let at = |depth: usize| format!("{}{body}0{}", "[".repeat(depth), "]".repeat(depth));
        let took = |text: &str| {
            let once = || {
                #[expect(clippy::disallowed_methods, reason = "this measures")]
                let start = std::time::Instant::now();
                parse(text.as_bytes()).unwrap();
                start.elapsed()
            };
            (0..5).map(|_| once()).min().unwrap()
        };
        let (flat, deep) = (at(1), at(MAX_DEPTH));
        assert!((0..5).any(|_| took(&deep) < took(&flat) * 4), "reading takes longer the deeper it is");
    }
}

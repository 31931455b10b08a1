//! The RFC 8785 form of whatever serializes, in one pass over one buffer.
//!
//! A member is written where it comes. Where an object ends, its members are put in order if they are not in order yet. The library
//! `serde_json_canonicalizer` takes several allocations for each member (`docs/decisions.md`); the tests hold this writer against it.

use serde::Serialize;
use serde::ser::{
    Error as _, SerializeMap, SerializeSeq, SerializeStruct, SerializeStructVariant, SerializeTuple,
    SerializeTupleStruct, SerializeTupleVariant, Serializer,
};
use serde_json::Error;
use std::fmt::{self, Display, Write as _};

/// How `serde_json` says that a struct is a number as it was written, or text that is JSON already.
const NUMBER: &str = "$serde_json::private::Number";
const RAW: &str = "$serde_json::private::RawValue";
/// The integers that are written as they are: a double holds each of them.
const MAX_EXACT: u64 = 1 << 53;
/// Digits that an exact integer may have, whatever they are.
const EXACT_DIGITS: usize = 15;

/// The RFC 8785 bytes of a value.
///
/// # Errors
/// Two members of one name, a number that JSON cannot say, a member name that is none, raw JSON.
pub(super) fn to_vec<T: Serialize + ?Sized>(value: &T) -> Result<Vec<u8>, Error> {
    let mut writer = Writer { out: Vec::with_capacity(256), members: Vec::new() };
    value.serialize(&mut writer)?;
    Ok(writer.out)
}

/// A member of an object that is being written: where it begins, where its name ends, and where it ends.
#[derive(Clone, Copy)]
struct Member {
    start: usize,
    name_end: usize,
    end: usize,
}

struct Writer {
    out: Vec<u8>,
    /// The members so far of the objects that are open, those of the innermost last.
    members: Vec<Member>,
}

impl Writer {
    fn integer(&mut self, is_negative: bool, size: u64) {
        if size > MAX_EXACT {
            let size = size as f64;
            return self.double(if is_negative { -size } else { size });
        }
        let mut digits = [0; 20];
        let (mut at, mut left) = (digits.len(), size);
        loop {
            at -= 1;
            digits[at] = b'0' + (left % 10) as u8;
            left /= 10;
            if left == 0 {
                break;
            }
        }
        if is_negative && size > 0 {
            self.out.push(b'-');
        }
        self.out.extend(&digits[at..]);
    }

    /// A finite number.
    fn double(&mut self, number: f64) {
        self.out.extend(ryu_js::Buffer::new().format_finite(number).as_bytes());
    }

    fn number(&mut self, number: f64) -> Result<(), Error> {
        if !number.is_finite() {
            return Err(Error::custom("a number that is none, or infinite"));
        }
        self.double(number);
        Ok(())
    }

    /// Writes a number of which the text was written as a string from `start` on.
    fn number_again(&mut self, start: usize) -> Result<(), Error> {
        let text = self.out.get(start + 1..self.out.len() - 1).unwrap_or_default();
        let digits = text.strip_prefix(b"-").unwrap_or(text);
        let is_canonical = (1..=EXACT_DIGITS).contains(&digits.len())
            && digits.iter().all(u8::is_ascii_digit)
            && (digits[0] != b'0' || text == b"0");
        if is_canonical {
            self.out.remove(start);
            self.out.pop();
            return Ok(());
        }
        let text = std::str::from_utf8(text).map_err(Error::custom)?;
        let number = text.parse::<f64>().map_err(|_| Error::custom("a number that is none"))?;
        self.out.truncate(start);
        self.number(number)
    }

    fn text(&mut self, text: &str) {
        self.out.push(b'"');
        self.escaped(text);
        self.out.push(b'"');
    }

    /// Text as RFC 8785 section 3.2.2.2 has it.
    fn escaped(&mut self, text: &str) {
        const HEX: [u8; 16] = *b"0123456789abcdef";
        let mut left = text.as_bytes();
        while let Some(at) = left.iter().position(|byte| *byte < 0x20 || matches!(byte, b'"' | b'\\')) {
            let (plain, tail) = left.split_at(at);
            self.out.extend(plain);
            let byte = tail[0];
            let short = match byte {
                0x08 => b'b',
                b'\t' => b't',
                b'\n' => b'n',
                0x0c => b'f',
                b'\r' => b'r',
                b'"' | b'\\' => byte,
                _ => 0,
            };
            if short == 0 {
                let (high, low) = (HEX[usize::from(byte >> 4)], HEX[usize::from(byte & 15)]);
                self.out.extend([b'\\', b'u', b'0', b'0', high, low]);
            } else {
                self.out.extend([b'\\', short]);
            }
            left = &tail[1..];
        }
        self.out.extend(left);
    }

    fn begin_object(&mut self) -> Compound<'_> {
        self.out.push(b'{');
        let (start, first) = (self.out.len(), self.members.len());
        Compound { of: self, kind: Kind::Object { start, first }, in_variant: false }
    }

    fn begin_array(&mut self) -> Compound<'_> {
        self.out.push(b'[');
        let start = self.out.len();
        Compound { of: self, kind: Kind::Array { start }, in_variant: false }
    }

    /// What is in an object with one member.
    fn begin_variant(&mut self, name: &str) {
        self.out.push(b'{');
        self.text(name);
        self.out.push(b':');
    }

    /// Puts the members of an object in the order of their names, by UTF-16 code units (section 3.2.3).
    fn in_order(&mut self, start: usize, first: usize) -> Result<(), Error> {
        let Self { out, members } = self;
        let of = &mut members[first..];
        if of.iter().any(|member| member.end == member.name_end) {
            return Err(Error::custom("a name without a value"));
        }
        let name = |member: &Member| &out[member.start + 1..member.name_end - 1];
        let is_plain = |name: &[u8]| name.iter().all(|byte| byte.is_ascii() && *byte != b'\\');
        let sorted = if of.iter().all(|member| is_plain(name(member))) {
            if of.is_sorted_by(|a, b| name(a) < name(b)) {
                return Ok(());
            }
            of.sort_by(|a, b| name(a).cmp(name(b)));
            of.is_sorted_by(|a, b| name(a) < name(b))
        } else {
            let read = |member: &Member| -> Result<(Vec<u16>, Member), Error> {
                let name: String = serde_json::from_slice(&out[member.start..member.name_end])?;
                Ok((name.encode_utf16().collect(), *member))
            };
            let mut named = of.iter().map(read).collect::<Result<Vec<_>, _>>()?;
            named.sort_by(|(a, _), (b, _)| a.cmp(b));
            of.iter_mut().zip(&named).for_each(|(place, (_, member))| *place = *member);
            named.is_sorted_by(|(a, _), (b, _)| a < b)
        };
        if !sorted {
            return Err(Error::custom("two members of one name"));
        }
        let mut ordered = Vec::with_capacity(out.len() - start);
        for member in &*of {
            if !ordered.is_empty() {
                ordered.push(b',');
            }
            ordered.extend(&out[member.start..member.end]);
        }
        out.truncate(start);
        out.append(&mut ordered);
        Ok(())
    }
}

/// Text that is written as it is formatted.
struct Formatted<'a>(&'a mut Writer);

impl fmt::Write for Formatted<'_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.0.escaped(text);
        Ok(())
    }
}

macro_rules! integers {
    ($($method:ident $type:ty;)+) => {
        $(#[allow(unused_comparisons, reason = "some have no sign")]
        fn $method(self, value: $type) -> Result<(), Error> {
            self.integer(value < 0, value.abs_diff(0).into());
            Ok(())
        })+
    };
}

impl<'a> Serializer for &'a mut Writer {
    type Ok = ();
    type Error = Error;
    type SerializeSeq = Compound<'a>;
    type SerializeTuple = Compound<'a>;
    type SerializeTupleStruct = Compound<'a>;
    type SerializeTupleVariant = Compound<'a>;
    type SerializeMap = Compound<'a>;
    type SerializeStruct = Compound<'a>;
    type SerializeStructVariant = Compound<'a>;

    integers! {
        serialize_i8 i8;
        serialize_i16 i16;
        serialize_i32 i32;
        serialize_i64 i64;
        serialize_u8 u8;
        serialize_u16 u16;
        serialize_u32 u32;
        serialize_u64 u64;
    }

    fn serialize_bool(self, value: bool) -> Result<(), Error> {
        self.out.extend(if value { b"true".as_slice() } else { b"false" });
        Ok(())
    }

    fn serialize_f32(self, value: f32) -> Result<(), Error> {
        self.number(value.into())
    }

    fn serialize_f64(self, value: f64) -> Result<(), Error> {
        self.number(value)
    }

    fn serialize_char(self, value: char) -> Result<(), Error> {
        self.serialize_str(value.encode_utf8(&mut [0; 4]))
    }

    fn serialize_str(self, value: &str) -> Result<(), Error> {
        self.text(value);
        Ok(())
    }

    fn serialize_bytes(self, value: &[u8]) -> Result<(), Error> {
        self.collect_seq(value)
    }

    fn serialize_none(self) -> Result<(), Error> {
        self.serialize_unit()
    }

    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Result<(), Error> {
        value.serialize(self)
    }

    fn serialize_unit(self) -> Result<(), Error> {
        self.out.extend(b"null");
        Ok(())
    }

    fn serialize_unit_struct(self, _: &'static str) -> Result<(), Error> {
        self.serialize_unit()
    }

    fn serialize_unit_variant(self, _: &'static str, _: u32, variant: &'static str) -> Result<(), Error> {
        self.serialize_str(variant)
    }

    fn serialize_newtype_struct<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        value: &T,
    ) -> Result<(), Error> {
        value.serialize(self)
    }

    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        value: &T,
    ) -> Result<(), Error> {
        self.begin_variant(variant);
        value.serialize(&mut *self)?;
        self.out.push(b'}');
        Ok(())
    }

    fn serialize_seq(self, _: Option<usize>) -> Result<Compound<'a>, Error> {
        Ok(self.begin_array())
    }

    fn serialize_tuple(self, _: usize) -> Result<Compound<'a>, Error> {
        Ok(self.begin_array())
    }

    fn serialize_tuple_struct(self, _: &'static str, _: usize) -> Result<Compound<'a>, Error> {
        Ok(self.begin_array())
    }

    fn serialize_tuple_variant(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        _: usize,
    ) -> Result<Compound<'a>, Error> {
        self.begin_variant(variant);
        Ok(Compound { in_variant: true, ..self.begin_array() })
    }

    fn serialize_map(self, _: Option<usize>) -> Result<Compound<'a>, Error> {
        Ok(self.begin_object())
    }

    fn serialize_struct(self, name: &'static str, _: usize) -> Result<Compound<'a>, Error> {
        match name {
            NUMBER => Ok(Compound { of: self, kind: Kind::Number, in_variant: false }),
            RAW => Err(Error::custom("raw JSON")),
            _ => Ok(self.begin_object()),
        }
    }

    fn serialize_struct_variant(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        _: usize,
    ) -> Result<Compound<'a>, Error> {
        self.begin_variant(variant);
        Ok(Compound { in_variant: true, ..self.begin_object() })
    }

    fn collect_str<T: Display + ?Sized>(self, value: &T) -> Result<(), Error> {
        self.out.push(b'"');
        write!(Formatted(&mut *self), "{value}").map_err(Error::custom)?;
        self.out.push(b'"');
        Ok(())
    }
}

/// What has parts and is open.
struct Compound<'a> {
    of: &'a mut Writer,
    kind: Kind,
    /// Whether it is the one member of an object.
    in_variant: bool,
}

enum Kind {
    /// Where its elements begin.
    Array { start: usize },
    /// Where its members begin in the text, and among the members.
    Object { start: usize, first: usize },
    /// A number as it was written.
    Number,
}

impl Compound<'_> {
    fn element<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Error> {
        if matches!(self.kind, Kind::Array { start } if self.of.out.len() > start) {
            self.of.out.push(b',');
        }
        value.serialize(&mut *self.of)
    }

    fn name<T: Serialize + ?Sized>(&mut self, name: &T) -> Result<(), Error> {
        let of = &mut *self.of;
        if matches!(self.kind, Kind::Object { first, .. } if of.members.len() > first) {
            of.out.push(b',');
        }
        let start = of.out.len();
        name.serialize(&mut *of)?;
        match of.out.get(start) {
            Some(b'"') => {}
            // Numbers as names are text.
            Some(byte) if byte.is_ascii_digit() || *byte == b'-' => {
                of.out.insert(start, b'"');
                of.out.push(b'"');
            }
            _ => return Err(Error::custom("a member name must be text")),
        }
        let name_end = of.out.len();
        of.out.push(b':');
        of.members.push(Member { start, name_end, end: name_end });
        Ok(())
    }

    fn value<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Error> {
        value.serialize(&mut *self.of)?;
        let end = self.of.out.len();
        if let Some(member) = self.of.members.last_mut() {
            member.end = end;
        }
        Ok(())
    }

    fn field<T: Serialize + ?Sized>(&mut self, name: &'static str, value: &T) -> Result<(), Error> {
        if matches!(self.kind, Kind::Number) {
            let start = self.of.out.len();
            value.serialize(&mut *self.of)?;
            return self.of.number_again(start);
        }
        self.name(name)?;
        self.value(value)
    }

    fn close(self) -> Result<(), Error> {
        let of = self.of;
        match self.kind {
            Kind::Array { .. } => of.out.push(b']'),
            Kind::Object { start, first } => {
                of.in_order(start, first)?;
                of.members.truncate(first);
                of.out.push(b'}');
            }
            Kind::Number => {}
        }
        if self.in_variant {
            of.out.push(b'}');
        }
        Ok(())
    }
}

macro_rules! compounds {
    ($($trait:ident: $method:ident ($($name:ident: $type:ty)?) $part:ident;)+) => {
        $(impl $trait for Compound<'_> {
            type Ok = ();
            type Error = Error;
            fn $method<T: Serialize + ?Sized>(&mut self, $($name: $type,)? value: &T) -> Result<(), Error> {
                self.$part($($name,)? value)
            }
            fn end(self) -> Result<(), Error> {
                self.close()
            }
        })+
    };
}

compounds! {
    SerializeSeq: serialize_element() element;
    SerializeTuple: serialize_element() element;
    SerializeTupleStruct: serialize_field() element;
    SerializeTupleVariant: serialize_field() element;
    SerializeStruct: serialize_field(name: &'static str) field;
    SerializeStructVariant: serialize_field(name: &'static str) field;
}

impl SerializeMap for Compound<'_> {
    type Ok = ();
    type Error = Error;

    fn serialize_key<T: Serialize + ?Sized>(&mut self, key: &T) -> Result<(), Error> {
        self.name(key)
    }

    fn serialize_value<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Error> {
        self.value(value)
    }

    fn end(self) -> Result<(), Error> {
        self.close()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::{Map, Number, Value};
    use std::collections::BTreeMap;

    /// Names and texts with what is escaped, what sorts otherwise in UTF-16, and neighbours of both.
    fn text() -> impl Strategy<Value = String> {
        let characters = prop::sample::select(vec![
            'a',
            'b',
            'B',
            '_',
            '0',
            ' ',
            '"',
            '\\',
            '/',
            '\u{0}',
            '\u{8}',
            '\t',
            '\n',
            '\u{b}',
            '\u{c}',
            '\r',
            '\u{1f}',
            '\u{7f}',
            'é',
            '\u{7ff}',
            '\u{d7ff}',
            '\u{e000}',
            '\u{fb33}',
            '\u{ffff}',
            '\u{10000}',
            '😂',
            '\u{10ffff}',
        ]);
        prop::collection::vec(characters, 0..6).prop_map(String::from_iter)
    }

    fn number() -> impl Strategy<Value = Number> {
        prop_oneof![
            any::<i64>().prop_map(Number::from),
            any::<u64>().prop_map(Number::from),
            (-1000_i64..1000).prop_map(Number::from),
            any::<f64>().prop_filter_map("finite", Number::from_f64),
            prop::sample::select(vec![
                "0",
                "-0",
                "0.0",
                "-0.0",
                "1e0",
                "1E400",
                "1e-400",
                "999999999999999",
                "1000000000000000",
                "9007199254740992",
                "9007199254740993",
                "123456789012345678901234567890",
                "1e21",
                "1e-7",
                "0.000001",
                "100.0",
                "5e-324",
            ])
            .prop_map(|text| serde_json::from_str(text).unwrap()),
        ]
    }

    fn value() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::Bool),
            number().prop_map(Value::Number),
            text().prop_map(Value::String),
        ];
        leaf.prop_recursive(4, 40, 6, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..5).prop_map(Value::Array),
                prop::collection::vec((text(), inner), 0..6)
                    .prop_map(|members| Value::Object(Map::from_iter(members))),
            ]
        })
    }

    /// An object whose members come in the order that they are listed in.
    struct Listed(Vec<(String, Value)>);

    impl Serialize for Listed {
        fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
            serializer.collect_map(self.0.iter().map(|(name, value)| (name, value)))
        }
    }

    fn theirs<T: Serialize>(value: &T) -> Result<Vec<u8>, Error> {
        serde_json_canonicalizer::to_vec(value)
    }

    fn as_they_say<T: Serialize>(value: &T) {
        let (ours, theirs) = (to_vec(value), theirs(value));
        match (&ours, &theirs) {
            (Ok(ours), Ok(theirs)) => {
                assert_eq!(String::from_utf8_lossy(ours), String::from_utf8_lossy(theirs));
            }
            _ => assert!(ours.is_err() && theirs.is_err(), "{ours:?} {theirs:?}"),
        }
    }

    proptest! {
        #[test]
        fn what_the_library_writes(value in value()) {
            as_they_say(&value);
        }

        #[test]
        fn whatever_order_members_come_in(members in prop::collection::vec((text(), value()), 0..8)) {
            as_they_say(&Listed(members.clone()));
            as_they_say(&vec![Listed(members.clone()), Listed(members.clone())]);
            as_they_say(&BTreeMap::from([("b", Listed(members.clone())), ("a", Listed(members))]));
        }
    }

    #[derive(Serialize)]
    enum Variant {
        Unit,
        New(u8),
        Tuple(u8, Option<char>),
        Struct { b: i8, a: [u16; 2] },
    }

    #[derive(Serialize)]
    struct Fields<'a> {
        #[serde(rename = "é")]
        accent: Variant,
        z: (i32, f32),
        a: Unit,
        #[serde(with = "serde_bytes_like")]
        bytes: &'a [u8],
        #[serde(flatten)]
        more: BTreeMap<String, Variant>,
        ids: BTreeMap<i32, New>,
    }

    #[derive(Serialize)]
    struct Unit;

    #[derive(Serialize)]
    struct New(#[serde(serialize_with = "shown")] u64);

    /// A name that is written as it is formatted, as ids are.
    #[derive(PartialEq, Eq, PartialOrd, Ord)]
    struct Shown(&'static str);

    impl Serialize for Shown {
        fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
            serializer.collect_str(self.0)
        }
    }

    /// A map whose names have no values.
    struct NameAlone([&'static str; 2]);

    impl Serialize for NameAlone {
        fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
            let mut map = serializer.serialize_map(None)?;
            self.0.iter().try_for_each(|name| map.serialize_key(name))?;
            map.end()
        }
    }

    fn shown<S: Serializer>(number: &u64, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&format_args!("\"{number}\"\n"))
    }

    mod serde_bytes_like {
        pub(super) fn serialize<S: serde::Serializer>(
            bytes: &[u8],
            serializer: S,
        ) -> Result<S::Ok, S::Error> {
            serializer.serialize_bytes(bytes)
        }
    }

    #[test]
    fn every_shape_of_serde() {
        let more = [("m", Variant::Unit), ("B", Variant::New(0)), ("\u{1}", Variant::Tuple(1, None))];
        let fields = Fields {
            accent: Variant::Struct { b: i8::MIN, a: [u16::MAX, 0] },
            z: (i32::MIN, 0.1),
            a: Unit,
            bytes: &[0, 255],
            more: more.into_iter().map(|(name, variant)| (name.to_owned(), variant)).collect(),
            ids: [(-3, New(7)), (20, New(u64::MAX)), (3, New(0))].into(),
        };
        as_they_say(&fields);
        as_they_say(&Variant::Tuple(9, Some('"')));
        as_they_say(&(u64::MAX, i64::MIN, (1_u64 << 53) + 1, 1_u64 << 53));
        as_they_say(&(0.1_f64, -0.0_f64, 1e21_f64, f64::MIN_POSITIVE, 1.0e-7_f32, f32::MAX));
        as_they_say(&BTreeMap::from([(Shown("é\n"), 1), (Shown("a"), 2)]));
        as_they_say(&BTreeMap::from([('b', Variant::Unit), ('"', Variant::New(1))]));
    }

    #[test]
    fn what_has_no_form_is_refused_wherever_it_stands() {
        assert!(to_vec(&f64::NAN).is_err() && to_vec(&vec![f32::INFINITY]).is_err());
        assert!(to_vec(&BTreeMap::from([("a", f64::NEG_INFINITY)])).is_err());
        let twice = |name: &str| Listed(vec![(name.to_owned(), Value::Null), (name.to_owned(), Value::Null)]);
        assert!(to_vec(&twice("a")).is_err() && to_vec(&twice("é\n")).is_err());
        let raw: &serde_json::value::RawValue = serde_json::from_str("{}").unwrap();
        assert!(to_vec(raw).is_err());
        assert!(to_vec(&BTreeMap::from([(Some(vec![1]), 1)])).is_err());
        assert!(to_vec(&BTreeMap::from([(true, 1)])).is_err() && to_vec(&BTreeMap::from([((), 1)])).is_err());
        assert!(to_vec(&NameAlone(["b", "a"])).is_err() && to_vec(&NameAlone(["a", "b"])).is_err());
    }
}

//! The parameters of an address as serde reads them.

use super::misfit::Misfit;
use super::strict::StrictMembers;
use serde::de::{DeserializeSeed, Deserializer, Error as _, IntoDeserializer, MapAccess, Visitor};
use serde::forward_to_deserialize_any;
use serde_json::{Map, Value};

/// Members whose values are texts; a type that asks for a number gets the number that the text says.
pub(super) struct Parameters(pub(super) Map<String, Value>);

struct Parameter(String);

macro_rules! numbers {
    ($($method:ident $visit:ident $type:ty;)+) => {
        $(fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Misfit> {
            match self.0.parse::<$type>() {
                Ok(number) => visitor.$visit(number),
                Err(_) => Err(Misfit::custom("must be a number in range")),
            }
        })+
    };
}

impl<'de> Deserializer<'de> for Parameter {
    type Error = Misfit;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Misfit> {
        visitor.visit_string(self.0)
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Misfit> {
        visitor.visit_some(self)
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
        visitor.visit_enum(self.0.into_deserializer())
    }

    numbers! {
        deserialize_u8 visit_u8 u8;
        deserialize_u16 visit_u16 u16;
        deserialize_u32 visit_u32 u32;
        deserialize_u64 visit_u64 u64;
        deserialize_i64 visit_i64 i64;
        deserialize_bool visit_bool bool;
    }

    forward_to_deserialize_any! {
        i8 i16 i32 i128 u128 f32 f64 char str string bytes byte_buf unit unit_struct seq
        tuple tuple_struct map struct identifier ignored_any
    }
}

impl<'de> Deserializer<'de> for Parameters {
    type Error = Misfit;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Misfit> {
        visitor.visit_map(ParameterMembers(StrictMembers::of(self.0, &[])))
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        known: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Misfit> {
        visitor.visit_map(ParameterMembers(StrictMembers::of(self.0, known)))
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf unit unit_struct seq
        tuple tuple_struct map identifier ignored_any option newtype_struct enum
    }
}

struct ParameterMembers(StrictMembers);

impl<'de> MapAccess<'de> for ParameterMembers {
    type Error = Misfit;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, Misfit> {
        self.0.next_key_seed(seed)
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, Misfit> {
        let text = match self.0.value.take() {
            Some(Value::String(text)) => text,
            _ => String::new(),
        };
        seed.deserialize(Parameter(text)).map_err(|e| e.at(self.0.at))
    }
}

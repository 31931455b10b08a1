//! Documents that are handed on as they are, and read in part.

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::de::{DeserializeOwned, Error as _};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Map, Value, json};
use std::borrow::Cow;
use std::marker::PhantomData;
use std::ops::Deref;

/// A JSON document, whole as it came, and what is read of it as `T`. It is written as it came: a signed one keeps its bytes' meaning, and
/// members that `T` does not know stay.
#[derive(Debug, Clone, PartialEq)]
pub struct Document<T> {
    whole: Value,
    read: T,
}

impl<T: DeserializeOwned> Document<T> {
    /// Reads a document.
    ///
    /// # Errors
    /// What serde says of a document that is no `T`.
    pub fn read(whole: Value) -> Result<Self, serde_json::Error> {
        Ok(Self { read: T::deserialize(&whole)?, whole })
    }
}

#[allow(missing_docs, reason = "the names say it")]
impl<T> Document<T> {
    /// A document that was read.
    pub const fn of(whole: Value, read: T) -> Self {
        Self { whole, read }
    }

    pub const fn whole(&self) -> &Value {
        &self.whole
    }

    /// The document alone.
    pub fn into_whole(self) -> Value {
        self.whole
    }
}

impl<T> Deref for Document<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.read
    }
}

impl<T> Serialize for Document<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.whole.serialize(serializer)
    }
}

impl<'de, T: DeserializeOwned> Deserialize<'de> for Document<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Self::read(Value::deserialize(deserializer)?).map_err(D::Error::custom)
    }
}

/// A JSON document of the form of `T`, as it is sent. Nothing of it is read yet: who receives it reads it, and says what is wrong with it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(transparent, bound = "")]
pub struct Submitted<T> {
    whole: Value,
    #[serde(skip)]
    form: PhantomData<fn() -> T>,
}

impl<T> From<Value> for Submitted<T> {
    fn from(whole: Value) -> Self {
        Self { whole, form: PhantomData }
    }
}

#[allow(missing_docs, reason = "the names say it")]
impl<T> Submitted<T> {
    pub const fn whole(&self) -> &Value {
        &self.whole
    }

    pub fn into_whole(self) -> Value {
        self.whole
    }
}

/// The schema of what holds a document of the form of `T` is that of `T`.
macro_rules! schema_of_its_form {
    ($($name:ident)+) => {$(
        impl<T: JsonSchema> JsonSchema for $name<T> {
            fn inline_schema() -> bool {
                T::inline_schema()
            }

            fn schema_name() -> Cow<'static, str> {
                T::schema_name()
            }

            fn schema_id() -> Cow<'static, str> {
                T::schema_id()
            }

            fn json_schema(generator: &mut SchemaGenerator) -> Schema {
                T::json_schema(generator)
            }
        }
    )+};
}

schema_of_its_form!(Document Submitted);

/// What is read of a signed document: its members but for `signature`, which is not checked here.
#[derive(Debug, Clone, PartialEq)]
pub struct Signed<T>(T);

impl<T> From<T> for Signed<T> {
    fn from(read: T) -> Self {
        Self(read)
    }
}

impl<T> Deref for Signed<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}

impl<'de, T: DeserializeOwned> Deserialize<'de> for Signed<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut members = Map::deserialize(deserializer)?;
        members.remove(SIGNATURE);
        T::deserialize(Value::Object(members)).map(Self).map_err(D::Error::custom)
    }
}

impl<T: JsonSchema> JsonSchema for Signed<T> {
    fn schema_name() -> Cow<'static, str> {
        format!("Signed{}", T::schema_name()).into()
    }

    fn schema_id() -> Cow<'static, str> {
        format!("{}::Signed<{}>", module_path!(), T::schema_id()).into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let mut schema = T::json_schema(generator);
        if let Some(members) = schema.get_mut("properties").and_then(Value::as_object_mut) {
            let signature = json!({"type": "string", "description": "The signature of the members beside it: a JWS without its payload."});
            members.insert(SIGNATURE.to_owned(), signature);
        }
        schema
    }
}

const SIGNATURE: &str = "signature";

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, Deserialize)]
    struct Read {
        a: u32,
    }

    #[test]
    fn what_is_not_read_is_kept() {
        let whole = json!({"a": 1, "b": [1.50, null]});
        let document: Document<Read> = serde_json::from_value(whole.clone()).unwrap();
        assert_eq!(document.a, 1);
        assert_eq!(serde_json::to_value(&document).unwrap(), whole);
        assert!(serde_json::from_value::<Document<Read>>(json!({"a": "x"})).is_err());
    }
}

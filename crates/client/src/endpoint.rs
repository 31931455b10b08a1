//! An endpoint as a type: where it is, who may enter, what goes in and what comes out. The types themselves are their gateway's.

use crate::permission::mark::Mark;
use crate::place::Place;
use oap_identity::outgoing::Method;
use schemars::JsonSchema;
use serde::Serialize;
use serde::de::DeserializeOwned;

/// The media type of bodies and answers that do not name another.
pub const MEDIA_TYPE: &str = "application/oap+json";

/// One endpoint of the owner's.
pub trait Endpoint: 'static {
    /// The operation's name, such as `ListItems`.
    const NAME: &'static str;
    /// What it does, as `openapi.json` says it.
    const ABOUT: &'static str;
    /// The HTTP method that it is asked with.
    const METHOD: Method;
    /// The path; the part of it that varies is in braces and is read as [`Endpoint::Place`].
    const PATH: &'static str;
    /// The media type of the answer.
    const MEDIA_TYPE: &'static str = MEDIA_TYPE;
    /// The status of an answer that is no refusal.
    const STATUS: u16 = 200;
    /// The least permission of a trust token.
    type Needs: Mark;
    /// The part of the path that varies; `()` for none.
    type Place: Place;
    /// The parameters of the address; `()` for none.
    type Query: Serialize + DeserializeOwned + JsonSchema + 'static;
    /// The body; `()` for none.
    type Body: Serialize + DeserializeOwned + JsonSchema + 'static;
    /// The body of the answer when it is no error.
    type Answer: Serialize + DeserializeOwned + JsonSchema;
}

/// The path of an endpoint at a place.
pub fn path<E: Endpoint>(place: &E::Place) -> String {
    match (E::PATH.split_once('{'), place.text()) {
        (Some((before, after)), Some(part)) => {
            let rest = after.split_once('}').map_or("", |(_, rest)| rest);
            format!("{before}{part}{rest}")
        }
        _ => E::PATH.to_owned(),
    }
}

/// The parameters of an address; a member that is `null` is left out.
///
/// # Errors
/// What serde says of a value that is no flat object; none in practice.
pub fn parameters<Q: Serialize>(query: &Q) -> Result<Vec<(String, String)>, serde_json::Error> {
    let members = match serde_json::to_value(query)? {
        serde_json::Value::Object(members) => members,
        _ => serde_json::Map::new(),
    };
    let written = members.into_iter().filter_map(|(name, value)| match value {
        serde_json::Value::Null => None,
        serde_json::Value::String(text) => Some((name, text)),
        other => Some((name, other.to_string())),
    });
    Ok(written.collect())
}

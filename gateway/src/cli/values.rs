//! What flags and arguments take: each parsed once, before anything is opened, by the project's own parsers.
//!
//! Types with a parser of their own ([`ScopeId`](oap_identity::ScopeId), [`ItemId`](oap_identity::ItemId),
//! [`When`](super::when::When)) are named as the argument's type; the functions here are for the others. Those with few
//! values tell them to the help and to completions.

use crate::api::holds::HoldReason;
use crate::state::commits::{AGENTS, ANONYMOUS};
use crate::system::address::is_loopback;
use age::x25519::Recipient;
use clap::builder::{PossibleValue, PossibleValuesParser, StringValueParser, TypedValueParser};
use clap::{Arg, Command};
use oap_exchange::query::MAX_CURSOR;
use oap_formats::export::Form;
use oap_formats::import::Format;
use oap_grants::LawfulBasis;
use oap_grants::limits::MAX_PURPOSE_CODE;
use oap_identity::did::DidError;
use oap_identity::json::JsonError;
use oap_identity::method::MethodError;
use oap_identity::{Did, ItemId, ScopeId};
use oap_memory::item::{Confidence, Kind, NotConfidence, NotShort, Sensitivity, short_text};
use oap_memory::profile::{NAME_PREFIX, NotTrustLevel};
use oap_memory::{Status, TrustLevel};
use serde_json::{Map, Value};
use std::ffi::OsStr;
use std::fmt;
use std::str::FromStr;
use url::Url;

/// Longest name of an origin, in bytes.
const MAX_NAME: usize = 128;

/// Why a text is not the value that a flag takes. It is told after the flag's name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum ValueError {
    /// Not a DID.
    #[error(transparent)]
    Did(#[from] DidError),
    /// A DID whose document cannot be found here.
    #[error(transparent)]
    Method(#[from] MethodError),
    /// Not a chain of receipts.
    #[error("must be a scope, {ANONYMOUS}, or {AGENTS}")]
    Chain,
    /// Not where a gateway is.
    #[error("must be a URL such as https://memory.example or https://localhost:8443")]
    Url,
    /// Another machine without TLS.
    #[error("must be https:// (http:// is for this machine alone)")]
    PlainHttp,
    /// Not a number.
    #[error("must be a number from 0 to 1")]
    Number,
    /// A number that is no confidence.
    #[error(transparent)]
    Confidence(#[from] NotConfidence),
    /// Not JSON.
    #[error(transparent)]
    Json(#[from] JsonError),
    /// JSON of another sort.
    #[error("must be a JSON object")]
    Object,
    /// Not a provenance tag.
    #[error("must be NAME=VALUE, such as imported_from=chatgpt")]
    Tag,
    /// Not the name of an origin.
    #[error("must be 1 to {MAX_NAME} bytes without control characters")]
    Name,
    /// Not somebody to encrypt to.
    #[error("must be an age recipient, age1…: {0}")]
    Recipient(&'static str),
    /// Not a cursor.
    #[error("must be what an answer says after --cursor, at most {MAX_CURSOR} bytes")]
    Cursor,
    /// Nobody.
    #[error("must be a DID, or the name of an agent of yours")]
    Whom,
    /// Not a code of a purpose.
    #[error("must be a code of 1 to {MAX_PURPOSE_CODE} characters a-z 0-9 _ . -")]
    PurposeCode,
}

/// A DID.
pub(super) fn did(text: &str) -> Result<Did, DidError> {
    text.parse()
}

/// A provenance tag: a member of an item's provenance and its value, or the tag of a version, `mem_…@sha256:…`.
pub(super) fn tag(text: &str) -> Result<String, ValueError> {
    let member = text.split_once('=').is_some_and(|(name, _)| !name.is_empty());
    let version = text.split_once('@').is_some_and(|(item, _)| item.parse::<ItemId>().is_ok());
    if member || version { Ok(text.to_owned()) } else { Err(ValueError::Tag) }
}

/// What somebody calls the account, vault or table that an import comes from.
pub(super) fn origin_name(text: &str) -> Result<String, ValueError> {
    let fits = (1..=MAX_NAME).contains(&text.len()) && !text.contains(char::is_control);
    if fits { Ok(text.to_owned()) } else { Err(ValueError::Name) }
}

/// Somebody to encrypt to.
pub(super) fn recipient(text: &str) -> Result<Recipient, ValueError> {
    text.parse().map_err(ValueError::Recipient)
}

/// Where an answer of some gateway ended. Its form is that gateway's.
pub(super) fn cursor(text: &str) -> Result<String, ValueError> {
    let fits = (1..=MAX_CURSOR).contains(&text.len()) && text.bytes().all(|c| c.is_ascii_graphic());
    if fits { Ok(text.to_owned()) } else { Err(ValueError::Cursor) }
}

/// The code of a purpose.
pub(super) fn purpose_code(text: &str) -> Result<String, ValueError> {
    let plain = |c: u8| c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, b'_' | b'.' | b'-');
    let fits = (1..=MAX_PURPOSE_CODE).contains(&text.len()) && text.bytes().all(plain);
    if fits { Ok(text.to_owned()) } else { Err(ValueError::PurposeCode) }
}

/// A DID that a grant can be made out to: one whose document can be found here.
pub(super) fn grantee(text: &str) -> Result<Did, ValueError> {
    let did = did(text)?;
    did.check_method()?;
    Ok(did)
}

/// A chain of receipts: a scope's, that of anonymous calls, or that of what the owner's agents were given.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum ChainName {
    /// Of a scope.
    Scope(ScopeId),
    /// Of anonymous calls.
    Anonymous,
    /// Of what the owner's agents were given.
    Agents,
}

impl FromStr for ChainName {
    type Err = ValueError;

    fn from_str(text: &str) -> Result<Self, ValueError> {
        if text == ANONYMOUS {
            return Ok(Self::Anonymous);
        }
        if text == AGENTS {
            return Ok(Self::Agents);
        }
        text.parse().map(Self::Scope).map_err(|_| ValueError::Chain)
    }
}

impl fmt::Display for ChainName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Scope(scope) => scope.fmt(f),
            Self::Anonymous => f.write_str(ANONYMOUS),
            Self::Agents => f.write_str(AGENTS),
        }
    }
}

/// The DID of something that is made: `did:key`, whose key is its DID, or one of one's own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum NewDid {
    /// Made of the key.
    Key,
    /// One that has a name.
    Named(Did),
}

impl NewDid {
    /// The DID, where it does not follow from the key.
    pub(super) fn did(self) -> Option<Did> {
        match self {
            Self::Key => None,
            Self::Named(did) => Some(did),
        }
    }
}

impl FromStr for NewDid {
    type Err = DidError;

    fn from_str(text: &str) -> Result<Self, DidError> {
        if text == "did:key" { Ok(Self::Key) } else { did(text).map(Self::Named) }
    }
}

/// A label, a subject, a purpose's code: a short text without control characters.
pub(super) fn short(text: &str) -> Result<String, NotShort> {
    short_text(text)
}

/// Where a gateway is: https, or http on this machine. Without a slash at its end.
pub(super) fn url(text: &str) -> Result<String, ValueError> {
    let url = Url::parse(text).map_err(|_| ValueError::Url)?;
    if url.host().is_none() || url.query().is_some() || url.fragment().is_some() || !url.username().is_empty()
    {
        return Err(ValueError::Url);
    }
    match url.scheme() {
        "https" => Ok(text.trim_end_matches('/').to_owned()),
        "http" if is_loopback(&url) => Ok(text.trim_end_matches('/').to_owned()),
        "http" => Err(ValueError::PlainHttp),
        _ => Err(ValueError::Url),
    }
}

/// How sure, 0 to 1.
pub(super) fn confidence(text: &str) -> Result<Confidence, ValueError> {
    let number: f64 = text.parse().map_err(|_| ValueError::Number)?;
    Ok(Confidence::try_from(number)?)
}

/// One of few values.
fn one_of<T: Copy + Send + Sync + 'static>(
    all: &'static [T],
    name: fn(T) -> &'static str,
) -> impl TypedValueParser<Value = T> {
    let names = all.iter().map(move |value| PossibleValue::new(name(*value)));
    PossibleValuesParser::new(names).try_map(move |text| {
        all.iter().copied().find(|value| name(*value) == text).ok_or("is none of the possible values")
    })
}

/// A JSON object.
pub(super) fn object(text: &str) -> Result<Map<String, Value>, ValueError> {
    match oap_identity::json::parse(text.as_bytes())? {
        Value::Object(members) => Ok(members),
        _ => Err(ValueError::Object),
    }
}

/// A state in which items are listed.
pub(super) fn listed() -> impl TypedValueParser<Value = Status> {
    one_of(&[Status::Current, Status::Retracted], Status::as_str)
}

/// A kind of item.
pub(super) fn kind() -> impl TypedValueParser<Value = Kind> {
    one_of(Kind::ALL, Kind::as_str)
}

/// A sensitivity.
pub(super) fn sensitivity() -> impl TypedValueParser<Value = Sensitivity> {
    one_of(Sensitivity::ALL, Sensitivity::as_str)
}

/// A lawful basis.
pub(super) fn lawful_basis() -> impl TypedValueParser<Value = LawfulBasis> {
    one_of(LawfulBasis::ALL, LawfulBasis::as_str)
}

/// The reason of a hold.
pub(super) fn hold_reason() -> impl TypedValueParser<Value = HoldReason> {
    one_of(HoldReason::ALL, HoldReason::as_str)
}

/// A format that is imported.
pub(super) fn import_format() -> impl TypedValueParser<Value = Format> {
    one_of(Format::ALL, Format::as_str)
}

/// A form that is exported.
pub(super) fn export_form() -> impl TypedValueParser<Value = Form> {
    one_of(Form::ALL, Form::as_str)
}

/// The trust levels as they are typed.
const LEVELS: [&str; 5] = ["0", "1", "2", "3", "4"];

/// A trust level.
pub(super) fn level() -> impl TypedValueParser<Value = TrustLevel> {
    let levels = TrustLevel::all().zip(LEVELS).map(|(l, number)| PossibleValue::new(number).help(l.name()));
    PossibleValuesParser::new(levels).try_map(|text| {
        let number: u8 = text.parse().map_err(|_| NotTrustLevel)?;
        TrustLevel::try_from(number)
    })
}

/// The profiles that every gateway has, without their prefix.
const PROFILES: [&str; 5] = ["memory.v1", "full.v1", "contact.v1", "calendar_event.v1", "task.v1"];

/// A projection profile, with or without its prefix. Profiles of one's own are names too: only the gateway knows them.
#[derive(Clone)]
pub(super) struct ProfileName;

impl TypedValueParser for ProfileName {
    type Value = String;

    fn parse_ref(&self, command: &Command, arg: Option<&Arg>, value: &OsStr) -> Result<String, clap::Error> {
        let named = |text: String| {
            let text = short_text(&text)?;
            Ok::<_, NotShort>(if text.starts_with(NAME_PREFIX) {
                text
            } else {
                format!("{NAME_PREFIX}{text}")
            })
        };
        StringValueParser::new().try_map(named).parse_ref(command, arg, value)
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        Some(Box::new(PROFILES.map(PossibleValue::new).into_iter()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_are_of_gateways() {
        assert_eq!(url("https://memory.example/").as_deref(), Ok("https://memory.example"));
        assert_eq!(url("https://localhost:8443").as_deref(), Ok("https://localhost:8443"));
        assert_eq!(url("http://127.0.0.1:80").as_deref(), Ok("http://127.0.0.1:80"));
        for text in [
            "memory.example",
            "ftp://a.example",
            "http://a.example",
            "https://u@a.example",
            "https://a.example?x",
            "",
        ] {
            assert!(url(text).unwrap_err().to_string().starts_with("must be"), "{text}");
        }
    }

    #[test]
    fn names_tags_codes_and_cursors_have_a_form() {
        assert!(tag("imported_from=chatgpt").is_ok() && tag("origin=").is_ok());
        assert!(tag(&format!("{}@sha256:x", ItemId::from_bytes([1; 16]))).is_ok());
        assert!([tag("chatgpt"), tag("=x"), tag("mem_1@x")].iter().all(Result::is_err));
        assert!(origin_name("second account").is_ok() && purpose_code("web.design-2").is_ok());
        assert!(origin_name("").is_err() && origin_name("a\n").is_err());
        assert!(purpose_code("Web").is_err() && purpose_code(&"a".repeat(MAX_PURPOSE_CODE + 1)).is_err());
        assert!(cursor("a.b/c=").is_ok() && cursor("a b").is_err() && cursor("").is_err());
        assert!(recipient("age1x").unwrap_err().to_string().starts_with("must be an age recipient"));
    }

    #[test]
    fn grantees_can_be_found() {
        assert!(grantee("did:web:contractor.example").is_ok());
        for text in
            ["did:key:z6Mkj54rW9", "did:wbe:a.example", "did:web:localhost:8444", "contractor.example"]
        {
            assert!(grantee(text).is_err(), "{text}");
        }
    }

    #[test]
    fn what_is_offered_is_what_there_is() {
        let built_in = oap_memory::Profile::built_in();
        let names: Vec<&str> = built_in.iter().map(|p| p.name().trim_start_matches(NAME_PREFIX)).collect();
        assert_eq!(names, PROFILES);
        assert_eq!(TrustLevel::all().count(), LEVELS.len());
    }
}

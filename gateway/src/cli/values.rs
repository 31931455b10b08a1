//! What flags and arguments take: each parsed once, before anything is opened, by the project's own parsers.
//!
//! Types with a parser of their own ([`ScopeId`](oap_identity::ScopeId), [`ItemId`](oap_identity::ItemId),
//! [`When`](super::when::When)) are named as the argument's type; the functions here are for the others. Those with few
//! values tell them to the help and to completions.

use crate::api::holds::HoldReason;
use crate::state::commits::ANONYMOUS;
use crate::system::address::is_loopback;
use clap::builder::{PossibleValue, PossibleValuesParser, StringValueParser, TypedValueParser};
use clap::{Arg, Command};
use oap_formats::export::Form;
use oap_formats::import::Format;
use oap_grants::LawfulBasis;
use oap_identity::{Did, ScopeId};
use oap_memory::item::{Confidence, Kind, Sensitivity, short_text};
use oap_memory::profile::NAME_PREFIX;
use oap_memory::{Status, TrustLevel};
use serde_json::{Map, Value};
use std::ffi::OsStr;
use std::fmt;
use std::str::FromStr;
use url::Url;

/// A DID.
pub(super) fn did(text: &str) -> Result<Did, String> {
    text.parse().map_err(|e: oap_identity::did::DidError| e.to_string())
}

/// A DID that a grant can be made out to: one whose document can be found here.
pub(super) fn grantee(text: &str) -> Result<Did, String> {
    let did = did(text)?;
    did.check_method().map_err(|e| e.to_string())?;
    Ok(did)
}

/// A chain of receipts: a scope's, or that of anonymous calls.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum ChainName {
    /// Of a scope.
    Scope(ScopeId),
    /// Of anonymous calls.
    Anonymous,
}

impl FromStr for ChainName {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text == ANONYMOUS {
            return Ok(Self::Anonymous);
        }
        let wrong = || format!("must be a scope, or {ANONYMOUS}");
        text.parse().map(Self::Scope).map_err(|_| wrong())
    }
}

impl fmt::Display for ChainName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Scope(scope) => scope.fmt(f),
            Self::Anonymous => f.write_str(ANONYMOUS),
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
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text == "did:key" { Ok(Self::Key) } else { did(text).map(Self::Named) }
    }
}

/// A label, a subject, a purpose's code: a short text without control characters.
pub(super) fn short(text: &str) -> Result<String, String> {
    short_text(text)
}

/// Where a gateway is: https, or http on this machine. Without a slash at its end.
pub(super) fn url(text: &str) -> Result<String, String> {
    let wrong = || "must be a URL such as https://memory.example or https://localhost:8443".to_owned();
    let url = Url::parse(text).map_err(|_| wrong())?;
    if url.host().is_none() || url.query().is_some() || url.fragment().is_some() || !url.username().is_empty()
    {
        return Err(wrong());
    }
    match url.scheme() {
        "https" => Ok(text.trim_end_matches('/').to_owned()),
        "http" if is_loopback(&url) => Ok(text.trim_end_matches('/').to_owned()),
        "http" => Err("must be https:// (http:// is for this machine alone)".to_owned()),
        _ => Err(wrong()),
    }
}

/// How sure, 0 to 1.
pub(super) fn confidence(text: &str) -> Result<Confidence, String> {
    let number: f64 = text.parse().map_err(|_| "must be a number from 0 to 1".to_owned())?;
    Confidence::try_from(number)
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
pub(super) fn object(text: &str) -> Result<Map<String, Value>, String> {
    match oap_identity::json::parse(text.as_bytes()).map_err(|e| e.to_string())? {
        Value::Object(members) => Ok(members),
        _ => Err("must be a JSON object".to_owned()),
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
        let number: u8 = text.parse().map_err(|_| "a trust level is 0 to 4".to_owned())?;
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
            Ok::<_, String>(if text.starts_with(NAME_PREFIX) { text } else { format!("{NAME_PREFIX}{text}") })
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
            assert!(url(text).unwrap_err().starts_with("must be"), "{text}");
        }
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

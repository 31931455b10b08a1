//! What the memory tools take: read strictly, each value within its bounds, before anything is done.

mod reading;
mod writing;

pub use reading::{Diff, Explain, Query, Recall, Status};
pub use writing::{Compact, Correct, Forget, Learn, Link, LinkEnd};

use oap_identity::json::{self, JsonError};
use oap_identity::{Hash, Timestamp};
use oap_memory::Kind;
use oap_memory::item::{MAX_SHORT, MAX_TTL_DAYS, NotShort, short_text};
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// Most tags of one call.
pub const MAX_TAGS: usize = 32;
/// Most kinds of one call.
pub const MAX_KINDS: usize = 6;
/// Longest name of a source, in characters: of its type, or of what it refers to.
pub const MAX_SOURCE: usize = 1024;
/// Longest name of a relationship, in characters.
pub const MAX_RELATIONSHIP: usize = 64;
/// Longest address elsewhere that an item is linked to, in characters.
pub const MAX_IRI: usize = 1024;
/// Longest key of a call that can be repeated, in characters.
pub const MAX_IDEMPOTENCY_KEY: usize = 128;
/// Most facts of one answer.
pub const MAX_FACTS: usize = 100;
/// Most items that a recall names as near.
pub const MAX_NEAR: usize = 16;
/// Longest SPARQL query of `memory_query`, in bytes.
pub const MAX_SPARQL: usize = 16 << 10;
/// Facts of an answer where the caller does not say.
pub const USUAL_FACTS: usize = 10;

/// Why arguments were refused. The text names the field and what it must be, and never repeats what was given.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ArgumentError {
    /// Not of the tool's shape.
    #[error("{0}")]
    Shape(#[from] JsonError),
    /// A field out of its bounds.
    #[error("{0}: {1}")]
    Field(&'static str, Must),
}

/// What a field must be.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Must {
    /// Text of some length.
    #[error("must have words, at most {0} bytes")]
    Words(usize),
    /// Short text.
    #[error(transparent)]
    Short(#[from] NotShort),
    /// A name of a source.
    #[error("must have 1 to {MAX_SOURCE} characters and no control characters")]
    Source,
    /// A name of something.
    #[error("must have 1 to {0} characters and no control characters")]
    Name(usize),
    /// The name of a relationship.
    #[error("must have 1 to {MAX_RELATIONSHIP} characters A-Z a-z 0-9 _ . : -")]
    Relationship,
    /// What an item is linked to.
    #[error("must be an item's id (mem_...) or an absolute IRI of at most {MAX_IRI} characters")]
    End,
    /// Not the item itself.
    #[error("must be another item than item_id")]
    Another,
    /// Not so many.
    #[error("at most {0}")]
    AtMost(usize),
    /// A label that the gateway gives.
    #[error("must not have {}, which the gateway gives and the owner takes away", crate::quarantine::LABEL)]
    Reserved,
    /// A number of facts.
    #[error("must be 1 to {MAX_FACTS}")]
    Facts,
    /// A time to wait.
    #[error("must be 1 to {} seconds", oap_federation::verdict::MAX_DEADLINE.as_secs())]
    Seconds,
    /// A life in days.
    #[error("must be 1 to {MAX_TTL_DAYS} days")]
    Days,
    /// What only the owner may say.
    #[error(
        "must not be user_stated: what the owner states, the owner writes (`oap-memory item add`, or `item confirm`)"
    )]
    Claimed,
    /// What nothing else stands beside.
    #[error("must be given alone, but for as_of: say the rest in the query")]
    Alone,
    /// What stands beside a SPARQL query alone.
    #[error("must stand beside sparql, or memory_recall takes it")]
    BesideSparql,
    /// Times in the wrong order.
    #[error("must be later than since")]
    Order,
    /// A time beyond the one that is looked back from.
    #[error("must be as_of at the latest")]
    NotBeyond,
    /// A time that is not there yet.
    #[error("must not lie ahead")]
    NotAhead,
}

fn refused<T>(field: &'static str, must: impl Into<Must>) -> Result<T, ArgumentError> {
    Err(ArgumentError::Field(field, must.into()))
}

/// The arguments of a tool.
pub trait Arguments: DeserializeOwned + JsonSchema {
    /// Checks what the types do not.
    ///
    /// # Errors
    /// [`ArgumentError::Field`].
    fn check(&self) -> Result<(), ArgumentError>;

    /// Reads them.
    ///
    /// # Errors
    /// [`ArgumentError`].
    fn read(arguments: Map<String, Value>) -> Result<Self, ArgumentError> {
        let read: Self = json::from_value(Value::Object(arguments))?;
        read.check()?;
        Ok(read)
    }
}

/// Where something comes from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Source {
    /// What sort of source: conversation, tool, document, web, mail.
    #[serde(rename = "type")]
    #[schemars(length(min = 1, max = MAX_SOURCE))]
    pub sort: String,
    /// Which one: a title, an address, the name of a tool.
    #[serde(default, rename = "ref", skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = MAX_SOURCE))]
    pub reference: Option<String>,
    /// The hash of what stood there: sha256: and 64 hexadecimal digits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hash: Option<Hash>,
}

/// The label of a topic.
#[must_use]
pub fn topic_label(topic: &str) -> String {
    format!("{TOPIC}{topic}")
}

/// The topic of a label that is one's.
#[must_use]
pub fn topic_of(label: &str) -> Option<&str> {
    label.strip_prefix(TOPIC)
}

/// How the label of a topic begins.
const TOPIC: &str = "topic:";
/// Longest topic, in characters: with what stands before it, a label.
pub const MAX_TOPIC: usize = MAX_SHORT - TOPIC.len();

pub(crate) fn words(field: &'static str, text: &str, most: usize) -> Result<(), ArgumentError> {
    if text.trim().is_empty() || text.len() > most { refused(field, Must::Words(most)) } else { Ok(()) }
}

pub(crate) fn check_numbers(field: &'static str, number: usize, most: usize) -> Result<(), ArgumentError> {
    if number > most { refused(field, Must::AtMost(most)) } else { Ok(()) }
}

fn name(field: &'static str, text: &str, most: usize) -> Result<(), ArgumentError> {
    let fits = (1..=most).contains(&text.chars().count()) && !text.contains(char::is_control);
    if fits { Ok(()) } else { refused(field, Must::Name(most)) }
}

fn source(source: Option<&Source>) -> Result<(), ArgumentError> {
    let Some(source) = source else { return Ok(()) };
    for (field, text) in [("source.type", Some(&source.sort)), ("source.ref", source.reference.as_ref())] {
        let fits = text.is_none_or(|text| {
            (1..=MAX_SOURCE).contains(&text.chars().count()) && !text.contains(char::is_control)
        });
        if !fits {
            return refused(field, Must::Source);
        }
    }
    Ok(())
}

fn topic_and_tags(topic: Option<&str>, tags: &[String]) -> Result<(), ArgumentError> {
    if let Some(topic) = topic {
        let fits = !topic.is_empty() && short_text(&topic_label(topic)).is_ok();
        if !fits {
            return refused("topic", NotShort);
        }
    }
    if tags.len() > MAX_TAGS {
        return refused("tags", Must::AtMost(MAX_TAGS));
    }
    match tags.iter().find_map(|tag| short_text(tag).err()) {
        Some(not_short) => refused("tags", not_short),
        None => Ok(()),
    }
}

fn kinds_and_limit(kinds: &[Kind], limit: Option<usize>) -> Result<(), ArgumentError> {
    if kinds.len() > MAX_KINDS {
        return refused("kinds", Must::AtMost(MAX_KINDS));
    }
    match limit {
        Some(limit) if !(1..=MAX_FACTS).contains(&limit) => refused("limit", Must::Facts),
        _ => Ok(()),
    }
}

fn order(
    since: Option<Timestamp>,
    until: Option<Timestamp>,
    as_of: Option<Timestamp>,
) -> Result<(), ArgumentError> {
    match (since, until, as_of) {
        (Some(since), Some(until), _) if until <= since => refused("until", Must::Order),
        (_, Some(until), Some(as_of)) if until > as_of => refused("until", Must::NotBeyond),
        (Some(since), _, Some(as_of)) if as_of <= since => refused("as_of", Must::Order),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::level::Level;
    use oap_exchange::query::MAX_QUERY;
    use oap_memory::item::MAX_TEXT;
    use serde_json::json;

    /// Reads arguments. What is refused for what a schema can say, the tool's own schema refuses; what is taken, it takes.
    fn read<T: Arguments>(arguments: Value) -> Result<T, ArgumentError> {
        let schema = schemars::generate::SchemaSettings::draft2020_12().into_generator();
        let schema = Value::from(schema.into_root_schema_for::<T>());
        let fits = jsonschema::is_valid(&schema, &arguments);
        let Value::Object(arguments) = arguments else { unreachable!("arguments are an object") };
        let read = T::read(arguments);
        match &read {
            Ok(_) => assert!(fits),
            // Blanks, control characters, digits of a hash, and times that are compared.
            Err(ArgumentError::Field(
                _,
                Must::Words(_)
                | Must::Order
                | Must::NotBeyond
                | Must::Alone
                | Must::Short(_)
                | Must::End
                | Must::Another
                | Must::Reserved,
            )) => {}
            Err(ArgumentError::Shape(_)) => {}
            Err(refused) => assert!(!fits, "{refused}"),
        }
        read
    }

    #[test]
    fn what_is_refused_names_the_field_and_not_what_was_given() {
        let secret = "hunter2";
        let long = |length: usize| secret.repeat(length / secret.len() + 1);
        let learn = |more: Value| {
            let mut arguments = json!({"content": "x"});
            for (name, value) in more.as_object().unwrap() {
                arguments[name] = value.clone();
            }
            read::<Learn>(arguments).unwrap_err()
        };
        let recall = |more: Value| read::<Recall>(more).unwrap_err();
        let item = "mem_01HX2QFXR0Q4S8T9V3W7X2Y0Z1";
        let link = |more: Value| {
            let mut arguments = json!({"item_id": item, "to": "urn:x", "relationship": "supports"});
            for (name, value) in more.as_object().unwrap() {
                arguments[name] = value.clone();
            }
            read::<Link>(arguments).unwrap_err()
        };
        for (refused, field) in [
            (learn(json!({"content": long(MAX_TEXT)})), "content"),
            (learn(json!({"content": " \n"})), "content"),
            (learn(json!({"content": 7})), "content"),
            (learn(json!({"kind": secret})), "kind"),
            (learn(json!({"topic": long(MAX_TOPIC)})), "topic"),
            (learn(json!({"topic": ""})), "topic"),
            (learn(json!({"tags": ["a\u{7}"]})), "tags"),
            (learn(json!({"tags": vec!["a"; MAX_TAGS + 1]})), "tags"),
            (learn(json!({"tags": ["a", "oap:quarantined"]})), "tags"),
            (learn(json!({"confidence": 1.1})), "confidence"),
            (learn(json!({"level": "user_stated"})), "level"),
            (learn(json!({"source": {"type": ""}})), "source.type"),
            (learn(json!({"source": {"type": "web", "ref": long(MAX_SOURCE)}})), "source.ref"),
            (learn(json!({"source": {"type": "web", "hash": secret}})), "source"),
            (learn(json!({"scope": "public"})), "scope"),
            (learn(json!({"ttl_days": 0})), "ttl_days"),
            (learn(json!({"type": ""})), "type"),
            (learn(json!({"type": long(MAX_SHORT)})), "type"),
            (learn(json!({"agent_did": secret})), "agent_did"),
            (learn(json!({"idempotency_key": ""})), "idempotency_key"),
            (learn(json!({"idempotency_key": long(MAX_IDEMPOTENCY_KEY)})), "idempotency_key"),
            (link(json!({"to": secret})), "to"),
            (link(json!({"to": "1x:hunter2"})), "to"),
            (link(json!({"to": "https://a b"})), "to"),
            (link(json!({"to": item})), "to"),
            (link(json!({"to": format!("x:{}", "a".repeat(MAX_IRI))})), "to"),
            (link(json!({"relationship": ""})), "relationship"),
            (link(json!({"relationship": "requires x (says owner, 2026-11-23) |"})), "relationship"),
            (link(json!({"relationship": "a\u{2028}b"})), "relationship"),
            (link(json!({"to": "urn:a\u{202e}b"})), "to"),
            (link(json!({"relationship": long(MAX_RELATIONSHIP)})), "relationship"),
            (link(json!({"source": {"type": ""}})), "source.type"),
            (read::<Compact>(json!({"plan": secret})).unwrap_err(), "plan"),
            (read::<Compact>(json!({"dry_run": true})).unwrap_err(), "dry_run"),
            (recall(json!({})), "query: is required"),
            (recall(json!({"query": long(MAX_QUERY)})), "query"),
            (recall(json!({"query": "x", "limit": 0})), "limit"),
            (recall(json!({"query": "x", "limit": MAX_FACTS + 1})), "limit"),
            (recall(json!({"query": "x", "limit": -1})), "limit"),
            (recall(json!({"query": "x", "kinds": vec!["fact"; MAX_KINDS + 1]})), "kinds"),
            (read::<Query>(json!({"agent": ""})).unwrap_err(), "agent"),
            (
                read::<Query>(json!({"since": "2026-01-02T00:00:00Z", "until": "2026-01-01T00:00:00Z"}))
                    .unwrap_err(),
                "until",
            ),
            (read::<Explain>(json!({"item_id": secret})).unwrap_err(), "item_id"),
            (read::<Explain>(json!({"item_id": item, "as_of": secret})).unwrap_err(), "as_of"),
            (recall(json!({"query": "x", "max_age": secret})), "max_age"),
            (recall(json!({"query": "x", "max_age": "P1M"})), "max_age"),
            (recall(json!({"query": "x", "near": vec![item; MAX_NEAR + 1]})), "near"),
            (read::<Query>(json!({"sparql": "ASK {}", "topic": "x"})).unwrap_err(), "sparql"),
            (
                read::<Query>(json!({"until": "2026-01-02T00:00:00Z", "as_of": "2026-01-01T00:00:00Z"}))
                    .unwrap_err(),
                "until",
            ),
            (
                read::<Diff>(json!({"since": "2026-01-02T00:00:00Z", "as_of": "2026-01-02T00:00:00Z"}))
                    .unwrap_err(),
                "as_of",
            ),
            (read::<Diff>(json!({})).unwrap_err(), "since"),
        ] {
            let text = refused.to_string();
            assert!(text.contains(field), "{field}: {text}");
            assert!(!text.contains(secret), "{field}: {text}");
        }
    }

    #[test]
    fn at_its_bound_everything_is_taken() {
        let content = "x".repeat(MAX_TEXT);
        let topic = "t".repeat(MAX_TOPIC);
        let tags = vec!["x".repeat(MAX_SHORT); MAX_TAGS];
        let source = json!({"type": "s".repeat(MAX_SOURCE), "ref": "r".repeat(MAX_SOURCE)});
        let arguments = json!({"content": content, "topic": topic, "tags": tags, "source": source,
            "confidence": 1, "ttl_days": MAX_TTL_DAYS});
        let learn: Learn = read(arguments).unwrap();
        assert_eq!(topic_of(&topic_label(&topic)), Some(topic.as_str()));
        assert_eq!(learn.level(), Level::AgentInferred);
        read::<Recall>(json!({"query": "q".repeat(MAX_QUERY), "limit": MAX_FACTS, "min_confidence": 0.5}))
            .unwrap();
        read::<Recall>(json!({"query": "q", "max_age": "P36500D",
            "near": vec!["mem_01HX2QFXR0Q4S8T9V3W7X2Y0Z1"; MAX_NEAR]}))
        .unwrap();
        read::<Query>(json!({})).unwrap();
        let then = "2026-01-02T00:00:00Z";
        read::<Query>(json!({"sparql": "ASK {}", "as_of": then})).unwrap();
        read::<Query>(json!({"until": then, "as_of": then})).unwrap();
        let iri = format!("x:{}", "a".repeat(MAX_IRI - 2));
        let link = json!({"item_id": "mem_01HX2QFXR0Q4S8T9V3W7X2Y0Z1", "to": iri, "relationship": "r".repeat(MAX_RELATIONSHIP)});
        assert_eq!(read::<Link>(link).unwrap().end(), Ok(LinkEnd::Iri(iri)));
    }
}

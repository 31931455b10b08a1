//! What the memory tools take: read strictly, each value within its bounds, before anything is done.

use crate::level::Level;
use oap_exchange::query::MAX_QUERY;
use oap_identity::json::{self, JsonError};
use oap_identity::{Hash, ItemId, Timestamp};
use oap_memory::Kind;
use oap_memory::item::{Confidence, MAX_SHORT, MAX_TEXT, MAX_TTL_DAYS, NotShort, Sensitivity, short_text};
use oap_memory::record::Visibility;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

/// Most tags of one call.
pub const MAX_TAGS: usize = 32;
/// Most kinds of one call.
pub const MAX_KINDS: usize = 6;
/// Longest name of a source, in characters: of its type, or of what it refers to.
pub const MAX_SOURCE: usize = 1024;
/// Most facts of one answer.
pub const MAX_FACTS: usize = 100;
/// Facts of an answer where the caller does not say.
pub const USUAL_FACTS: usize = 10;

/// Why arguments were refused. The text names the field and what it must be, and never repeats what was given.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ArgumentError {
    /// Not of the tool's shape.
    #[error("arguments: {0}")]
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
    /// Not so many.
    #[error("at most {0}")]
    AtMost(usize),
    /// A number of facts.
    #[error("must be 1 to {MAX_FACTS}")]
    Facts,
    /// A life in days.
    #[error("must be 1 to {MAX_TTL_DAYS} days")]
    Days,
    /// What only the owner may say.
    #[error(
        "must not be user_stated: what the owner states, the owner writes (`oap-memory item add`, or `item confirm`)"
    )]
    Claimed,
    /// Times in the wrong order.
    #[error("must be later than since")]
    Order,
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

/// What `memory_learn` takes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Learn {
    /// What is to be remembered, in a sentence or a few that stand for themselves.
    #[schemars(length(min = 1, max = MAX_TEXT))]
    pub content: String,
    /// What sort of memory it is; fact if absent.
    #[serde(default)]
    pub kind: Option<Kind>,
    /// What it is about, in a word.
    #[serde(default)]
    #[schemars(length(min = 1, max = MAX_TOPIC))]
    pub topic: Option<String>,
    /// Further labels.
    #[serde(default)]
    #[schemars(length(max = MAX_TAGS), inner(length(min = 1, max = MAX_SHORT)))]
    pub tags: Vec<String>,
    /// How sure it is, 0 to 1. What is more than its level allows is cut to that.
    #[serde(default)]
    pub confidence: Option<Confidence>,
    /// Whose word it is: tool_verified, agent_inferred, recalled or external; agent_inferred if absent.
    #[serde(default)]
    #[schemars(schema_with = "claimable")]
    pub level: Option<Level>,
    /// Where it comes from.
    #[serde(default)]
    pub source: Option<Source>,
    /// Who may see it: private (this agent alone), local (the owner's agents) or shared (a grant may reach it); local if absent.
    #[serde(default)]
    pub scope: Option<Visibility>,
    /// How much harm disclosure would do; what is restricted this agent alone sees again. internal if absent.
    #[serde(default)]
    pub sensitivity: Option<Sensitivity>,
    /// After how many days it is erased; never if absent.
    #[serde(default)]
    #[schemars(range(min = 1, max = MAX_TTL_DAYS))]
    pub ttl_days: Option<u32>,
}

impl Learn {
    /// The level that it claims.
    #[must_use]
    pub fn level(&self) -> Level {
        self.level.unwrap_or(Level::AgentInferred)
    }
}

impl Arguments for Learn {
    fn check(&self) -> Result<(), ArgumentError> {
        words("content", &self.content, MAX_TEXT)?;
        topic_and_tags(self.topic.as_deref(), &self.tags)?;
        if !self.level().can_be_claimed() {
            return refused("level", Must::Claimed);
        }
        source(self.source.as_ref())?;
        match self.ttl_days {
            Some(days) if !(1..=MAX_TTL_DAYS).contains(&days) => refused("ttl_days", Must::Days),
            _ => Ok(()),
        }
    }
}

/// What `memory_recall` takes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Recall {
    /// The words that are looked for, or a question.
    #[schemars(length(min = 1, max = MAX_QUERY))]
    pub query: String,
    /// Only about this topic.
    #[serde(default)]
    #[schemars(length(min = 1, max = MAX_TOPIC))]
    pub topic: Option<String>,
    /// Only with all of these labels.
    #[serde(default)]
    #[schemars(length(max = MAX_TAGS), inner(length(min = 1, max = MAX_SHORT)))]
    pub tags: Vec<String>,
    /// Only of these kinds.
    #[serde(default)]
    #[schemars(length(max = MAX_KINDS))]
    pub kinds: Vec<Kind>,
    /// Only at least so sure, 0 to 1.
    #[serde(default)]
    pub min_confidence: Option<Confidence>,
    /// At most so many facts, 1 to 100; 10 if absent.
    #[serde(default)]
    #[schemars(range(min = 1, max = MAX_FACTS))]
    pub limit: Option<usize>,
}

impl Arguments for Recall {
    fn check(&self) -> Result<(), ArgumentError> {
        words("query", &self.query, MAX_QUERY)?;
        topic_and_tags(self.topic.as_deref(), &self.tags)?;
        kinds_and_limit(&self.kinds, self.limit)
    }
}

/// What `memory_query` takes.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Query {
    /// Only about this topic.
    #[serde(default)]
    #[schemars(length(min = 1, max = MAX_TOPIC))]
    pub topic: Option<String>,
    /// Only with all of these labels.
    #[serde(default)]
    #[schemars(length(max = MAX_TAGS), inner(length(min = 1, max = MAX_SHORT)))]
    pub tags: Vec<String>,
    /// Only of these kinds.
    #[serde(default)]
    #[schemars(length(max = MAX_KINDS))]
    pub kinds: Vec<Kind>,
    /// Only what this agent wrote: a name or a DID as facts have it under agent; owner for what the owner wrote.
    #[serde(default)]
    #[schemars(length(min = 1, max = MAX_SOURCE))]
    pub agent: Option<String>,
    /// Only of this type of source.
    #[serde(default)]
    #[schemars(length(min = 1, max = MAX_SOURCE))]
    pub source: Option<String>,
    /// Only at least so sure, 0 to 1.
    #[serde(default)]
    pub min_confidence: Option<Confidence>,
    /// Only what waits for the owner's confirmation, if true; only what does not, if false.
    #[serde(default)]
    pub needs_verification: Option<bool>,
    /// Only known at or after this time (RFC 3339).
    #[serde(default)]
    pub since: Option<Timestamp>,
    /// Only known before this time (RFC 3339).
    #[serde(default)]
    pub until: Option<Timestamp>,
    /// Only older than this item: what the answer before gave as next.
    #[serde(default)]
    pub before: Option<ItemId>,
    /// At most so many facts, 1 to 100; 10 if absent.
    #[serde(default)]
    #[schemars(range(min = 1, max = MAX_FACTS))]
    pub limit: Option<usize>,
}

impl Arguments for Query {
    fn check(&self) -> Result<(), ArgumentError> {
        topic_and_tags(self.topic.as_deref(), &self.tags)?;
        kinds_and_limit(&self.kinds, self.limit)?;
        for (field, text) in [("agent", &self.agent), ("source", &self.source)] {
            if text.as_ref().is_some_and(|text| text.is_empty() || text.chars().count() > MAX_SOURCE) {
                return refused(field, Must::Source);
            }
        }
        order(self.since, self.until)
    }
}

/// What `memory_explain` takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Explain {
    /// The item.
    pub item_id: ItemId,
}

impl Arguments for Explain {
    fn check(&self) -> Result<(), ArgumentError> {
        Ok(())
    }
}

/// What `memory_correct` takes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Correct {
    /// The item.
    pub item_id: ItemId,
    /// What it is to say in place of what it says.
    #[schemars(length(min = 1, max = MAX_TEXT))]
    pub content: String,
    /// How sure that is, 0 to 1. What is more than its level allows is cut to that.
    #[serde(default)]
    pub confidence: Option<Confidence>,
    /// Whose word it is: tool_verified, agent_inferred, recalled or external; agent_inferred if absent.
    #[serde(default)]
    #[schemars(schema_with = "claimable")]
    pub level: Option<Level>,
    /// Where that comes from. Where the former words came from says nothing of these.
    #[serde(default)]
    pub source: Option<Source>,
    /// The version that is corrected; whichever is in force if absent.
    #[serde(default)]
    pub version: Option<u32>,
}

impl Correct {
    /// The level that it claims.
    #[must_use]
    pub fn level(&self) -> Level {
        self.level.unwrap_or(Level::AgentInferred)
    }
}

impl Arguments for Correct {
    fn check(&self) -> Result<(), ArgumentError> {
        words("content", &self.content, MAX_TEXT)?;
        source(self.source.as_ref())?;
        if self.level().can_be_claimed() { Ok(()) } else { refused("level", Must::Claimed) }
    }
}

/// What `memory_forget` takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Forget {
    /// The item.
    pub item_id: ItemId,
}

impl Arguments for Forget {
    fn check(&self) -> Result<(), ArgumentError> {
        Ok(())
    }
}

/// What `memory_diff` takes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Diff {
    /// From this time on (RFC 3339).
    pub since: Timestamp,
    /// Before this time (RFC 3339); now if absent.
    #[serde(default)]
    pub until: Option<Timestamp>,
    /// Only about this topic.
    #[serde(default)]
    #[schemars(length(min = 1, max = MAX_TOPIC))]
    pub topic: Option<String>,
    /// At most so many facts of each sort, 1 to 100; 10 if absent.
    #[serde(default)]
    #[schemars(range(min = 1, max = MAX_FACTS))]
    pub limit: Option<usize>,
}

impl Arguments for Diff {
    fn check(&self) -> Result<(), ArgumentError> {
        topic_and_tags(self.topic.as_deref(), &[])?;
        kinds_and_limit(&[], self.limit)?;
        order(Some(self.since), self.until)
    }
}

/// What `memory_status` takes: nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Status {}

impl Arguments for Status {
    fn check(&self) -> Result<(), ArgumentError> {
        Ok(())
    }
}

/// The levels that an agent may claim.
fn claimable(_: &mut SchemaGenerator) -> Schema {
    let levels = Level::ALL.iter().copied().filter(|level| level.can_be_claimed()).map(|level| json!(level));
    let levels: Vec<Value> = levels.chain([Value::Null]).collect();
    json_schema!({"type": ["string", "null"], "enum": levels})
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

fn words(field: &'static str, text: &str, most: usize) -> Result<(), ArgumentError> {
    if text.trim().is_empty() || text.len() > most { refused(field, Must::Words(most)) } else { Ok(()) }
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

fn order(since: Option<Timestamp>, until: Option<Timestamp>) -> Result<(), ArgumentError> {
    match (since, until) {
        (Some(since), Some(until)) if until <= since => refused("until", Must::Order),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
            Err(ArgumentError::Field(_, Must::Words(_) | Must::Order | Must::Short(_))) => {}
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
        for (refused, field) in [
            (learn(json!({"content": long(MAX_TEXT)})), "content"),
            (learn(json!({"content": " \n"})), "content"),
            (learn(json!({"content": 7})), "content"),
            (learn(json!({"kind": secret})), "kind"),
            (learn(json!({"topic": long(MAX_TOPIC)})), "topic"),
            (learn(json!({"topic": ""})), "topic"),
            (learn(json!({"tags": ["a\u{7}"]})), "tags"),
            (learn(json!({"tags": vec!["a"; MAX_TAGS + 1]})), "tags"),
            (learn(json!({"confidence": 1.1})), "confidence"),
            (learn(json!({"level": "user_stated"})), "level"),
            (learn(json!({"source": {"type": ""}})), "source.type"),
            (learn(json!({"source": {"type": "web", "ref": long(MAX_SOURCE)}})), "source.ref"),
            (learn(json!({"source": {"type": "web", "hash": secret}})), "source"),
            (learn(json!({"scope": "public"})), "scope"),
            (learn(json!({"ttl_days": 0})), "ttl_days"),
            (learn(json!({"agent_did": secret})), "agent_did"),
            (recall(json!({})), "query"),
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
        read::<Query>(json!({})).unwrap();
    }
}

//! What the tools that write take.

use super::{
    ArgumentError, Arguments, MAX_IDEMPOTENCY_KEY, MAX_IRI, MAX_RELATIONSHIP, MAX_TAGS, MAX_TOPIC, Must,
    Source, name, refused, source, topic_and_tags, words,
};
use crate::block::turns;
use crate::level::Level;
use crate::quarantine;
use crate::staleness::Staleness;
use oap_identity::{Hash, ItemId};
use oap_memory::Kind;
use oap_memory::item::{Confidence, MAX_SHORT, MAX_TEXT, MAX_TTL_DAYS, Sensitivity};
use oap_memory::record::Visibility;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

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
    /// What sort of observation it is: user_stated_preference, tool_result_verified, task_completion_strategy or session_summary. The owner says which are kept, and for how long; a sort that is none of those known is not kept.
    #[serde(default, rename = "type", skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = MAX_SHORT))]
    pub sort: Option<String>,
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
    /// After how many days it is erased; if absent, as the owner has it for its type, or never.
    #[serde(default)]
    #[schemars(range(min = 1, max = MAX_TTL_DAYS))]
    pub ttl_days: Option<u32>,
    /// How long it can be relied on: stable, weekly, daily, hourly or volatile. After that it is marked as stale, and a compaction takes it back. It is never stale if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub staleness: Option<Staleness>,
    /// Names this call, so that it can be repeated: the same call again with the same key is answered as it was first, and writes nothing, as long as what it wrote is kept. Of no other meaning; put nothing of the content in it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = MAX_IDEMPOTENCY_KEY))]
    pub idempotency_key: Option<String>,
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
        if self.tags.iter().any(|tag| tag == quarantine::LABEL) {
            return refused("tags", Must::Reserved);
        }
        if !self.level().can_be_claimed() {
            return refused("level", Must::Claimed);
        }
        source(self.source.as_ref())?;
        if let Some(sort) = &self.sort {
            name("type", sort, MAX_SHORT)?;
        }
        if let Some(key) = &self.idempotency_key {
            name("idempotency_key", key, MAX_IDEMPOTENCY_KEY)?;
        }
        match self.ttl_days {
            Some(days) if !(1..=MAX_TTL_DAYS).contains(&days) => refused("ttl_days", Must::Days),
            _ => Ok(()),
        }
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
    /// Why, in a sentence: memory_explain tells it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = MAX_SHORT))]
    pub reason: Option<String>,
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
        self.reason.iter().try_for_each(|reason| name("reason", reason, MAX_SHORT))?;
        if self.level().can_be_claimed() { Ok(()) } else { refused("level", Must::Claimed) }
    }
}

/// What `memory_link` takes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Link {
    /// The item that the link is of: one that you wrote.
    pub item_id: ItemId,
    /// What it is linked to: the id of another item that you may see, or an address elsewhere (an absolute IRI, such as https://example.org/x).
    #[schemars(length(min = 1, max = MAX_IRI))]
    pub to: String,
    /// How the one relates to the other: causes, requires, contradicts, supports, related_to, or a word of your own, of letters, digits, _ . : and -.
    #[schemars(length(min = 1, max = MAX_RELATIONSHIP), regex(pattern = "^[A-Za-z0-9_.:-]+$"))]
    pub relationship: String,
    /// Where it comes from that they relate so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<Source>,
}

/// What an item is linked to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LinkEnd {
    /// Another item.
    Item(ItemId),
    /// An address elsewhere. Nothing fetches it.
    Iri(String),
}

impl LinkEnd {
    /// Reads an end: an item's id, or an absolute IRI.
    #[must_use]
    pub fn read(text: &str) -> Option<Self> {
        if let Ok(item) = text.parse() {
            return Some(Self::Item(item));
        }
        let (scheme, rest) = text.split_once(':')?;
        let mut letters = scheme.chars();
        let is_scheme = letters.next().is_some_and(|first| first.is_ascii_alphabetic())
            && letters.all(|c| c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.'));
        let is_address =
            |c: char| !c.is_control() && !c.is_whitespace() && !turns(c) && !"<>\"{}|\\^`".contains(c);
        let fits =
            is_scheme && !rest.is_empty() && rest.chars().all(is_address) && text.chars().count() <= MAX_IRI;
        fits.then(|| Self::Iri(text.to_owned()))
    }
}

impl Link {
    /// What the item is linked to.
    ///
    /// # Errors
    /// [`ArgumentError::Field`].
    pub fn end(&self) -> Result<LinkEnd, ArgumentError> {
        match LinkEnd::read(&self.to) {
            Some(LinkEnd::Item(item)) if item == self.item_id => refused("to", Must::Another),
            Some(end) => Ok(end),
            None => refused("to", Must::End),
        }
    }
}

impl Arguments for Link {
    fn check(&self) -> Result<(), ArgumentError> {
        self.end()?;
        let plain = |c: u8| c.is_ascii_alphanumeric() || matches!(c, b'_' | b'.' | b':' | b'-');
        let fits = (1..=MAX_RELATIONSHIP).contains(&self.relationship.len());
        if !fits || !self.relationship.bytes().all(plain) {
            return refused("relationship", Must::Relationship);
        }
        source(self.source.as_ref())
    }
}

/// What `memory_forget` takes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Forget {
    /// The item.
    pub item_id: ItemId,
    /// Why, in a sentence: memory_explain tells it as long as the item is kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = MAX_SHORT))]
    pub reason: Option<String>,
}

impl Arguments for Forget {
    fn check(&self) -> Result<(), ArgumentError> {
        self.reason.iter().try_for_each(|reason| name("reason", reason, MAX_SHORT))
    }
}

/// What `memory_compact` takes. Without a plan it says what would go, and changes nothing.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Compact {
    /// The plan to carry out: what the same call without it answered. Where the memory changed since, nothing is done.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plan: Option<Hash>,
    /// What is less sure goes, 0 to 1; 0.3 if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub min_confidence: Option<Confidence>,
}

impl Arguments for Compact {
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

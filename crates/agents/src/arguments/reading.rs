//! What the tools that change nothing take.

use super::{
    ArgumentError, Arguments, MAX_FACTS, MAX_KINDS, MAX_NEAR, MAX_SOURCE, MAX_SPARQL, MAX_TAGS, MAX_TOPIC,
    Must, check_numbers, kinds_and_limit, order, refused, topic_and_tags, words,
};
use crate::age::Age;
use oap_exchange::query::MAX_QUERY;
use oap_federation::verdict::{MAX_DEADLINE, USUAL_DEADLINE};
use oap_identity::{ItemId, Timestamp};
use oap_memory::Kind;
use oap_memory::item::{Confidence, MAX_SHORT};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::time::Duration;

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
    /// Only what became known so long ago or less, as an ISO 8601 duration of weeks, days, hours, minutes or seconds: P7D, PT12H.
    #[serde(default)]
    pub max_age: Option<Age>,
    /// Items, by their item_id: what is linked to them counts more, and is found without matching words, too.
    #[serde(default)]
    #[schemars(length(max = MAX_NEAR))]
    pub near: Vec<ItemId>,
    /// At most so many facts, 1 to 100; 10 if absent.
    #[serde(default)]
    #[schemars(range(min = 1, max = MAX_FACTS))]
    pub limit: Option<usize>,
    /// Whether the memories of others are asked too, who granted the owner to read them. They are sent the words.
    #[serde(default)]
    pub peers: bool,
    /// How long these are waited for at most, in seconds, 1 to 25; 5 if absent.
    #[serde(default)]
    #[schemars(range(min = 1, max = MAX_DEADLINE.as_secs()))]
    pub deadline: Option<u64>,
}

impl Recall {
    /// How long the memories of others are waited for.
    #[must_use]
    pub fn waits(&self) -> Duration {
        self.deadline.map_or(USUAL_DEADLINE, Duration::from_secs)
    }
}

impl Arguments for Recall {
    fn check(&self) -> Result<(), ArgumentError> {
        words("query", &self.query, MAX_QUERY)?;
        if self.deadline.is_some_and(|seconds| !(1..=MAX_DEADLINE.as_secs()).contains(&seconds)) {
            return refused("deadline", Must::Seconds);
        }
        check_numbers("near", self.near.len(), MAX_NEAR)?;
        topic_and_tags(self.topic.as_deref(), &self.tags)?;
        kinds_and_limit(&self.kinds, self.limit)
    }
}

/// What `memory_query` takes.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Query {
    /// A SELECT or ASK of SPARQL 1.1 over what you see as a graph of facts with their sources, corrections and links (prefixes brain:, prov:,
    /// rel: and oap: are there); given alone, but for as_of.
    #[serde(default)]
    #[schemars(length(min = 1, max = MAX_SPARQL))]
    pub sparql: Option<String>,
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
    /// What was remembered at this time (RFC 3339), as far as you may see it now and it is kept; what is remembered now if absent.
    #[serde(default)]
    pub as_of: Option<Timestamp>,
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
        if let Some(sparql) = &self.sparql {
            words("sparql", sparql, MAX_SPARQL)?;
            let alone = Self { sparql: Some(sparql.clone()), as_of: self.as_of, ..Self::default() };
            return if *self == alone { Ok(()) } else { refused("sparql", Must::Alone) };
        }
        topic_and_tags(self.topic.as_deref(), &self.tags)?;
        kinds_and_limit(&self.kinds, self.limit)?;
        for (field, text) in [("agent", &self.agent), ("source", &self.source)] {
            if text.as_ref().is_some_and(|text| text.is_empty() || text.chars().count() > MAX_SOURCE) {
                return refused(field, Must::Source);
            }
        }
        order(self.since, self.until, self.as_of)
    }
}

/// What `memory_explain` takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Explain {
    /// The item.
    pub item_id: ItemId,
    /// As it was remembered at this time (RFC 3339), as far as you may see it now and it is kept; as it is now if absent.
    #[serde(default)]
    pub as_of: Option<Timestamp>,
}

impl Arguments for Explain {
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
    /// Before this time (RFC 3339); as_of, or now, if absent.
    #[serde(default)]
    pub until: Option<Timestamp>,
    /// As it was remembered at this time (RFC 3339), as far as you may see it now and it is kept; as it is now if absent.
    #[serde(default)]
    pub as_of: Option<Timestamp>,
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
        order(Some(self.since), self.until, self.as_of)
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

//! What the memory tools answer. The names are those of Trails' guide where it has any.

use crate::arguments::Source;
use crate::foreign::FromPeers;
use crate::level::Level;
use crate::scoring::ScoreParts;
use crate::staleness::Staleness;
use oap_identity::{Hash, ItemId, ReceiptId, Timestamp};
use oap_memory::Kind;
use oap_memory::chain::Event;
use oap_memory::record::Visibility;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// Most topics that a status names.
pub const MAX_TOPICS: usize = 100;

/// Most links that one agent makes that begin at one item, and that end there.
pub const MAX_LINKS: usize = 64;
/// Most links that an answer tells of one item, in each direction: the newest of each author in turn.
pub const MAX_LINKS_TOLD: usize = 20;
/// Most items that one compaction takes away.
pub const MAX_COMPACTED: usize = 500;

/// A link between two items, or from an item to an address elsewhere. It is told where both are seen.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Linked {
    /// The receipt that recorded it.
    pub link_id: ReceiptId,
    /// The item that it is of.
    pub item_id: ItemId,
    /// The other item, or an address elsewhere.
    pub to: String,
    /// How the one relates to the other.
    pub relationship: String,
    /// Who says so: owner, an agent's name, or a DID.
    pub agent: String,
    /// Where that comes from, as its writer says.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source: Option<Source>,
    /// Since when.
    pub linked_at: Timestamp,
}

/// Why something is taken away.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Because {
    /// Its time is over: it is erased.
    Expired,
    /// Another one says the same: it is taken back.
    Duplicate,
    /// It is not sure enough: it is taken back.
    Unsure,
    /// It can be relied on no more, as its writer said: it is taken back.
    Stale,
}

/// An item that goes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Going {
    /// The item.
    pub item_id: ItemId,
    /// Why.
    pub because: Because,
    /// The one that says the same, and stays.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub same_as: Option<ItemId>,
}

/// What `memory_compact` answers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Compacted {
    /// Whether nothing was changed: what goes is what would go.
    pub dry_run: bool,
    /// What to give as plan, so that exactly this is done; absent where it was, or where nothing goes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub plan: Option<Hash>,
    /// What goes: 500 at most.
    pub going: Vec<Going>,
    /// Whether there is more, for another call.
    pub more: bool,
    /// The receipt that names what went.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub receipt_id: Option<ReceiptId>,
}

/// An item, as an agent is given it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[allow(missing_docs, reason = "the names say it")]
pub struct Fact {
    pub item_id: ItemId,
    /// Its version, from 1.
    pub version: u32,
    /// The commitment of that version.
    pub commitment: Hash,
    pub kind: Kind,
    /// What sort of observation it is, as its writer says.
    #[serde(default, rename = "type", skip_serializing_if = "Option::is_none")]
    pub sort: Option<String>,
    /// What it says.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub content: Option<String>,
    /// What it says, for machines.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub structured: Option<Map<String, Value>>,
    /// What it is about.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub topic: Option<String>,
    pub tags: Vec<String>,
    /// Who wrote it: owner, an agent's name, or a DID.
    pub agent: String,
    /// Where it comes from, as its writer says.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source: Option<Source>,
    /// Whose word it is.
    pub level: Level,
    /// How sure it is now, 0 to 1: what an agent concluded and the owner did not confirm is believed less from day to day.
    pub confidence: f64,
    /// Whether the owner confirmed it.
    pub human_verified: bool,
    /// Whether it waits for the owner's confirmation.
    pub needs_verification: bool,
    /// Who may see it.
    pub scope: Visibility,
    /// When it became known.
    pub learned_at: Timestamp,
    /// When it is erased.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<Timestamp>,
    /// How long it can be relied on, as its writer says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub staleness: Option<Staleness>,
    /// Whether that time is past: ask again before it is used. Absent if not.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub stale: bool,
    /// Whether it is older than 7 days, less sure than 0.8 and not confirmed: check it before it is relied on. Absent if not.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub stale_warning: bool,
    /// How well it answers what was looked for, 0 to 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub score: Option<f64>,
    /// What each part adds to that: their sum is the score.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub score_parts: Option<ScoreParts>,
    /// How it relates to what else this agent may see, and what relates to it: where it is explained.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub links: Vec<Linked>,
}

/// What `memory_learn` answers.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[allow(missing_docs, reason = "the names say it")]
pub struct Learned {
    pub item_id: ItemId,
    pub version: u32,
    pub commitment: Hash,
    /// Whose word it is.
    pub level: Level,
    /// How sure it is now, after the cut at its level.
    pub confidence: f64,
    /// Whether it waits for the owner's confirmation, and reaches no grantee before.
    pub needs_verification: bool,
    /// Whether it reads as an order, so that no agent is given it before the owner accepts it; absent if not.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub quarantined: bool,
    /// Who may see it.
    pub scope: Visibility,
    /// The item in which this agent concluded the same before, from no other source: it is believed as since then. To say it again renews
    /// nothing, unless another source says it. Absent if there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub said_before: Option<ItemId>,
    /// What there is to know beside: more facts are kept than the owner wants to keep. Absent if nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub warning: Option<String>,
    /// Whether the same call was made before: then this is the answer of that time, and nothing was written now; absent if not.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub repeated: bool,
}

/// What `memory_recall` answers.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Recalled {
    /// The facts, the best match first.
    pub facts: Vec<Fact>,
    /// How many match, of those that this agent may see.
    pub matched: usize,
    /// What other memories show, where they were asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from_peers: Option<FromPeers>,
}

/// What `memory_query` answers.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Queried {
    /// The facts, the newest first.
    pub facts: Vec<Fact>,
    /// How many match, of those that this agent may see; on a later page, those that are left.
    pub matched: usize,
    /// What to give as before for the next page; absent where this is the last one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next: Option<ItemId>,
    /// The time that was looked back to; absent where it was now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub as_of: Option<Timestamp>,
    /// How many of the items that this agent sees now said something else then that is not kept, or not told. What was erased since is not
    /// counted. Absent if none.
    #[serde(default, skip_serializing_if = "is_none")]
    pub not_kept: usize,
    /// What a SPARQL query answers, as application/sparql-results+json has it: its rows are counted as matched, and yes as one. Absent without
    /// sparql.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sparql: Option<Map<String, Value>>,
}

/// One thing that happened to an item.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[allow(missing_docs, reason = "the names say it")]
pub struct Step {
    /// Its number in the item's chain, from 0.
    pub seq: u32,
    /// What happened.
    pub event: Event,
    pub at: Timestamp,
    /// The commitment that was in force then.
    pub commitment: Hash,
}

/// A version that was replaced and is still kept.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[allow(missing_docs, reason = "the names say it")]
pub struct Replaced {
    pub version: u32,
    /// What it said.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub content: Option<String>,
    /// Who wrote it: owner, an agent's name, or a DID. Absent where that is not known any more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// Why it was put in the place of what was said before, as who wrote it says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// When it was replaced.
    pub replaced_at: Timestamp,
}

/// What `memory_explain` answers.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Explained {
    /// The item as it is now; what was taken back is explained to its author alone.
    pub fact: Fact,
    /// When it was taken back.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retracted_at: Option<Timestamp>,
    /// Why it was corrected or taken back, as who did that says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// What happened to it last, the first thing first: 100 at most.
    pub chain: Vec<Step>,
    /// What it said before, as far as that is kept and has room, the newest first: 100 at most.
    pub corrections: Vec<Replaced>,
    /// The items that it was made from, of those that this agent may see.
    pub derived_from: Vec<ItemId>,
    /// The time that was looked back to; absent where it was now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub as_of: Option<Timestamp>,
    /// Whether its chain is longer, more former versions are kept, or more links are there to be told.
    pub more: bool,
}

/// What `memory_correct` answers.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[allow(missing_docs, reason = "the names say it")]
pub struct Corrected {
    pub item_id: ItemId,
    /// The version now in force.
    pub version: u32,
    pub commitment: Hash,
    /// Whose word it is.
    pub level: Level,
    /// How sure it is now, after the cut at its level.
    pub confidence: f64,
    /// Whether it waits for the owner's confirmation, and reaches no grantee before.
    pub needs_verification: bool,
    /// Whether this agent concluded the same before, from no other source: it is believed as since then; absent if not.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub said_before: bool,
}

/// What `memory_forget` answers.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[allow(missing_docs, reason = "the names say it")]
pub struct Forgotten {
    pub item_id: ItemId,
    pub retracted_at: Timestamp,
    /// Until when the owner can put it back.
    pub erase_after: Timestamp,
}

/// What `memory_diff` answers.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[allow(missing_docs, reason = "the names say it")]
pub struct Differs {
    pub since: Timestamp,
    pub until: Timestamp,
    /// What was written in that time and stands, the newest first.
    pub learned: Vec<Fact>,
    /// What is older, and got the version in force in that time, the newest first.
    pub corrected: Vec<Fact>,
    /// What this agent wrote and was taken back in that time.
    pub retracted: Vec<ItemId>,
    /// Whether there is more than the limit let in.
    pub more: bool,
    /// The time that was looked back to; absent where it was now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub as_of: Option<Timestamp>,
    /// How many of the items that this agent sees now said something else then that is not kept, or not told. What was erased since is not
    /// counted. Absent if none.
    #[serde(default, skip_serializing_if = "is_none")]
    pub not_kept: usize,
}

/// Whether a number says nothing.
const fn is_none(number: &usize) -> bool {
    *number == 0
}

/// What `memory_status` answers.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[allow(missing_docs, reason = "the names say it")]
pub struct State {
    /// The agent's name.
    pub agent: String,
    pub did: String,
    /// What it may do: memory.read, memory.write or memory.admin, each with those before it.
    pub permission: String,
    /// How many facts it may see.
    pub facts: usize,
    /// How many of them it wrote.
    pub own: usize,
    /// How many of them wait for the owner's confirmation.
    pub needs_verification: usize,
    /// How many are about each topic: those with the most, 100 at most.
    pub topics: BTreeMap<String, usize>,
    /// How many each kind has.
    pub kinds: BTreeMap<String, usize>,
    /// How many each wrote.
    pub agents: BTreeMap<String, usize>,
    /// What the memory is called.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub brain: Option<String>,
    /// How many facts the owner wants to keep at most. More are kept all the same.
    #[serde(default)]
    pub max_facts: usize,
    /// Whether there are more than that, of those that this agent may see; absent if not.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub over_limit: bool,
    /// How many items that this agent wrote were taken back and are kept still.
    #[serde(default)]
    pub retracted: usize,
    /// How many facts are how sure now: ten numbers, from below 0.1 to 0.9 and more.
    #[serde(default)]
    pub confidence_histogram: Vec<usize>,
}

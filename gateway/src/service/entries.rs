//! Entries: OpenIntent's dialect of the owner's memory, for the owner's agents (docs/openintent.md).
//!
//! An entry is an item whose record has a namespace and a key. It is written, corrected, seen and erased by the rules of the memory
//! tools, and what an agent is given of it has a receipt in the chain `@agents`, as theirs has.

mod binding;
mod capacity;
mod ending;
mod erasing;
pub mod events;
mod forgetting;
mod placed;
mod planning;
mod reading;
mod sharing;
mod tasks;
mod writing;

pub(crate) use binding::may_correct;
pub(crate) use erasing::{DELETE, holds_owners_word, owner_decided, said_in};

use crate::error::Conflict;
use crate::service::tools::looking::Looking;
use crate::state::agents::Agent;
use crate::state::gateway::Gateway;
use crate::state::owner::mark::Mark;
use oap_agents::entry::{Context, Entry, Opaque};
use oap_identity::{Did, Timestamp};
use oap_memory::record::{Head, Tier};
use serde_json::{Map, Value};
use std::sync::Arc;

/// What became of a change.
#[derive(Debug)]
pub enum Changed {
    /// It is durable; what is answered, in JSON.
    Done(Vec<u8>),
    /// Nothing was changed: the agent has as many episodic entries as it may, and none of them may go.
    Full(Full),
    /// Nothing was changed; what stands in the way, as far as its asker may see it; of a batch, which of its entries that is in the
    /// way of, from 0.
    Conflict(Conflict, Option<Current>, Option<usize>),
}

/// A tier that has no room (RFC-0015 9.4).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Full {
    /// How many entries there are.
    pub current_count: usize,
    /// How many there may be.
    pub max_capacity: usize,
    /// Of what.
    pub of: &'static str,
    /// Who says how many.
    pub by: SetBy,
}

/// Who says how many entries there may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SetBy {
    /// The owner, of a tier.
    Owner(Tier),
    /// The task, or the intent that it is of.
    Task,
    /// A guardrail of an intent.
    Guardrail,
}

impl SetBy {
    /// What an agent can do, and who can do more.
    #[must_use]
    pub const fn way_out(self) -> &'static str {
        match self {
            Self::Owner(Tier::Working) => {
                "delete one; the owner sets how many (`agent set NAME --working N`)"
            }
            Self::Owner(Tier::Episodic) => {
                "delete one, or take the pin of one away; the owner sets how many (`agent set NAME --episodic N`)"
            }
            Self::Owner(Tier::Semantic) => {
                "delete one; the owner sets how many (`agent set NAME --semantic N`)"
            }
            Self::Task => {
                "delete one, or say less; the memory_policy of the task and the guardrails of its intent set how much"
            }
            Self::Guardrail => "delete one; the guardrails of the intent set how many",
        }
    }
}

/// An entry as it is now.
#[derive(Debug)]
pub struct Current {
    /// Its version.
    pub version: u32,
    /// The entry, in JSON.
    pub entry: Vec<u8>,
}

/// Whether an entry is in force and an agent may see it. What has no key is none.
fn is_seen<P: Mark>(agent: &Agent<P>, head: &Head, now: Timestamp) -> bool {
    head.meta.namespace.is_some() && head.meta.key.is_some() && head.is_live(now) && agent.sight().sees(head)
}

/// Whether an entry stands in the way of another with its namespace and key (RFC-0015 1.2), as far as an agent may see: what is hidden
/// from it takes no key from it, or a refusal would tell that it is there.
fn is_rival<P: Mark>(agent: &Agent<P>, head: &Head, tier: Tier, now: Timestamp) -> bool {
    let is_shared = tier == Tier::Semantic;
    is_seen(agent, head, now)
        && (head.meta.tier == Tier::Semantic) == is_shared
        && (is_shared || agent.sight().has(head))
}

/// The entries of an agent that nobody took back, whatever their tier; some may have ended.
fn entries_now(gateway: &Gateway, author: &Did) -> Vec<Arc<Head>> {
    Tier::ALL.iter().flat_map(|tier| gateway.heads.own(author, *tier)).collect()
}

/// What an item says, as the value of an entry: what was written in another dialect stands in an object with its text.
fn value_of(item: &Map<String, Value>) -> Opaque {
    let content = |member: &str| item.get("content")?.get(member);
    match (content("text").and_then(Value::as_str), content("structured").and_then(Value::as_object)) {
        (Some(text), _) => Opaque::read(text).unwrap_or_else(|_| Opaque::of_text(text)),
        (None, Some(structured)) => Opaque::of_object(structured),
        (None, None) => Opaque::of_object(&Map::new()),
    }
}

/// An item as an entry.
fn entry_of(looking: &Looking<'_>, head: &Head, item: &Map<String, Value>, updated_at: Timestamp) -> Entry {
    let context = Context::of(item);
    Entry {
        id: head.item_id,
        agent_id: looking.name(&head.meta.author),
        namespace: head.meta.namespace.as_deref().cloned().unwrap_or_default(),
        key: head.meta.key.as_deref().cloned().unwrap_or_default(),
        value: value_of(item),
        memory_type: head.meta.tier,
        tags: context.tags(&head.labels),
        scope: context.scope,
        ttl: context.ttl,
        pinned: context.pinned,
        priority: context.priority,
        sensitivity: head.sensitivity,
        curated_by: context.curated_by.as_ref().map(|did| looking.name(did)),
        version: head.version_seq.saturating_add(1),
        created_at: head.captured_at,
        updated_at,
        expires_at: head.end_of_life,
    }
}

//! What an entry has beside the members of its item and its record: it stands in the item's `extensions`, committed with it.

use super::{EntryError, refused};
use oap_identity::Did;
use oap_memory::closed_enum;
use oap_memory::item::short_text;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// Under what name of an item's `extensions` it stands.
pub const EXTENSION: &str = "dev.oap-memory.openintent";

closed_enum! {
    /// How much an episodic entry is worth keeping when others must go (RFC-0015 2.2).
    #[derive(Default)]
    Priority {
        /// Goes first.
        Low = "low",
        /// Goes next.
        #[default]
        Normal = "normal",
        /// Goes last.
        High = "high",
    }
}

/// The context that an entry is bound to (RFC-0015 1.1).
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Scope {
    /// A task.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task_id: Option<String>,
    /// An intent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub intent_id: Option<String>,
}

impl Scope {
    /// Checks what the types do not.
    ///
    /// # Errors
    /// [`EntryError::Field`].
    pub fn check(&self) -> Result<(), EntryError> {
        let named = [("scope.task_id", &self.task_id), ("scope.intent_id", &self.intent_id)];
        named.into_iter().try_for_each(|(field, id)| match id.as_deref().map(short_text) {
            Some(Err(error)) => refused(field, error),
            _ => Ok(()),
        })
    }
}

/// Most bytes of tags whose order is kept.
const MAX_ORDER: usize = 8 << 10;

/// What the dialect keeps of its own.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Context {
    /// What it is bound to.
    #[serde(default)]
    pub scope: Scope,
    /// How long it lives, as it was written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ttl: Option<String>,
    /// Whether its end was given as a time, which outranks `ttl`.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub ends: bool,
    /// Whether it is never evicted.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub pinned: bool,
    /// How much it is worth keeping.
    #[serde(default)]
    pub priority: Priority,
    /// The agent that brought a semantic entry in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub curated_by: Option<Did>,
    /// The tags in the order in which they were given: an item's labels are sorted, each once.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tags: Vec<String>,
}

impl Context {
    /// Of an item with everything shown. An item that was written in another dialect has none of its own.
    #[must_use]
    pub fn of(item: &Map<String, Value>) -> Self {
        let found = item.get("extensions").and_then(|all| all.get(EXTENSION));
        found.and_then(|found| serde_json::from_value(found.clone()).ok()).unwrap_or_default()
    }

    /// Remembers in which order tags were given, where that says more than the labels do and has room.
    pub fn keep_order(&mut self, tags: &[String]) {
        let says_more = !tags.is_sorted_by(|a, b| a < b);
        let has_room = tags.iter().map(String::len).sum::<usize>() <= MAX_ORDER;
        self.tags = if says_more && has_room { tags.to_vec() } else { Vec::new() };
    }

    /// The tags of an item with these labels: as they were given, where they are still those.
    #[must_use]
    pub fn tags(&self, labels: &[String]) -> Vec<String> {
        let mut sorted = self.tags.clone();
        sorted.sort_unstable();
        sorted.dedup();
        if sorted == labels { self.tags.clone() } else { labels.to_vec() }
    }
}

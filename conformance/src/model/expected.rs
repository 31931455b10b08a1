//! What a request must be answered with.

use super::profile::Joined;
use super::{Refers, Rule};
use oap_identity::Timestamp;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// What comes back from a request.
#[derive(Debug, Clone, PartialEq)]
#[allow(missing_docs, reason = "the names say it")]
pub enum Expected {
    Refused {
        /// The codes of `error`, one of which it must have (protocol section 1).
        codes: &'static [&'static str],
        /// The statuses, one of which it must have. Several where the protocol leaves open who notices first: a token ends with
        /// its grant.
        status: &'static [u16],
        /// What it rests on.
        rule: Rule,
    },
    Answer(Box<ExpectedAnswer>),
}

impl ExpectedAnswer {
    /// All that may be shown of its items, as text.
    #[must_use]
    pub fn may_hold(&self) -> String {
        let mut text = serde_json::to_string(&self.items).unwrap_or_default();
        for form in self.free.values().flat_map(BTreeMap::values) {
            if let Form::Joined(joined) = form {
                text.push_str(&joined.most());
            }
        }
        text
    }
}

impl Expected {
    /// The answer, where there is one.
    #[must_use]
    pub fn answer(&self) -> Option<&ExpectedAnswer> {
        match self {
            Self::Answer(answer) => Some(answer),
            Self::Refused { .. } => None,
        }
    }
}

/// The leaves of an item as it is shown, by their JSON pointers in it: everything that is no container, and containers that are
/// empty. An array closes up over elements that are hidden.
pub type Leaves = BTreeMap<String, Value>;

/// What an answer to a query must be.
#[derive(Debug, Clone, Default, PartialEq)]
#[allow(missing_docs, reason = "the names say it")]
pub struct ExpectedAnswer {
    /// The items that may be in it, and every leaf that is shown of each with its value, but those of `free`; without
    /// `integrity` and `relevance`.
    pub items: BTreeMap<String, Leaves>,
    /// Those of `items` that must be in it: all, unless ranking leaves it open.
    pub certain: BTreeSet<String>,
    /// Those that must be in it where it says that there is no more: pages together are the whole.
    pub at_end: BTreeSet<String>,
    /// Leaves that are shown with a value that the model cannot know.
    pub free: BTreeMap<String, BTreeMap<String, Form>>,
    /// The order: groups one after the other, any order within one. Empty where the order follows from `relevance` alone.
    pub order: Vec<Vec<String>>,
    /// Whether `next_cursor` is there; `None` where ranking leaves it open.
    pub more: Option<bool>,
    /// Most items in it.
    pub most: usize,
    /// Of the grant and each grant above it: the items that were disclosed under it, and how many others may be.
    pub rooms: Vec<(BTreeSet<String>, usize)>,
    /// The events of each item's chain, from its capture on (protocol section 4.2).
    pub chain: BTreeMap<String, Vec<&'static str>>,
    /// Whether each item has its SD-JWT.
    pub sd_jwt: bool,
    /// Whether it lists instead of searching: every `relevance` is 1.
    pub listing: bool,
    /// Whether the best that is found is in it, so that the first `relevance` is 1.
    pub has_best: bool,
    /// `projection_applied`, but for `redacted_field_count`.
    pub projection_applied: BTreeMap<String, Value>,
    /// `redacted_field_count`, where the profile is known.
    pub redacted_field_count: Option<u64>,
    pub receipt: ExpectedReceipt,
    /// The id of the key that signs answer and receipt, where it is known.
    pub signed_by: Option<String>,
    /// What `embedding_ref` of each item must be; none has it where absent.
    pub refers: Option<Refers>,
}

/// What a leaf must be whose value the model cannot know.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Form {
    /// The id of a receipt in its short form, the one of the item's first link.
    Receipt,
    /// A time near this one: the gateway's clock when it was captured.
    Near(Timestamp),
    /// A text with very many spans, of which some may be joined.
    Joined(Box<Joined>),
}

/// What the receipt of an answer must say.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ExpectedReceipt {
    /// `action_id`.
    pub action: &'static str,
    /// `agent_did`.
    pub agent: String,
    /// `principal_did`.
    pub principal: String,
    /// Members of `policy_decisions[0]` with their values.
    pub decision: BTreeMap<String, Value>,
    /// The query as it was read, without `request_id`: what `input_hash` is of. `None` where there is none.
    pub input: Option<Value>,
}

/// What an export must be.
#[derive(Debug, Clone, PartialEq)]
#[allow(missing_docs, reason = "the names say it")]
pub enum ExpectedExport {
    /// A refusal; as in [`Expected::Refused`].
    Refused {
        codes: &'static [&'static str],
        status: &'static [u16],
        /// What it rests on.
        rule: Rule,
    },
    /// A bundle, whose items are as in an answer: `order` is by item id, `more` is false, and there is no `relevance`.
    Bundle(Box<ExpectedAnswer>),
}

/// What a reader of the audit log must see, whatever else is there.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ExpectedAudit {
    /// The only `agent_did` that may be in it; `None`: anybody's.
    pub agent: Option<String>,
    /// The only grant that may be in it; `None`: any.
    pub grant: Option<String>,
    /// The item that each receipt must name; `None`: any or none.
    pub item: Option<String>,
    /// From when on.
    pub since: Option<Timestamp>,
    /// Receipts that must be in it, by their ids, with their times where they are known: unless it is full, and then those that are newer than its last.
    pub must: BTreeMap<String, Option<Timestamp>>,
    /// Receipts that must be in it, each by its action, its `output_hash` and, where they are known, its tags; unless it is full.
    pub unnamed: Vec<Value>,
    /// Ids of grants that may be named; `None`: any.
    pub grants: Option<BTreeSet<String>>,
    /// Ids of items that may be named; `None`: any.
    pub items: Option<BTreeSet<String>>,
    /// Whether newest comes first.
    pub newest_first: bool,
    /// Most receipts.
    pub most: usize,
}

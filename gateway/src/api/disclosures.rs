//! To whom what was shown: an item's history, and a grantee's.

use super::agents::AgentName;
use super::endpoints;
use oap_grants::GrantState;
use oap_identity::{Did, GrantId, ItemId, ReceiptId, Timestamp};
use oap_memory::chain::Event;
use oap_memory::{Kind, Status, TrustLevel};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

endpoints! {
    /// Every version of an item with what it changed, and to whom which version was shown.
    ItemHistory: GET "/oap/owner/items/{id}/history" at(ItemId) needs Admin answers(History);
    /// What somebody was granted, and everything that they were ever shown.
    Who: POST "/oap/owner/who" needs Admin body(WhoQuery) answers(Grantee);
}

/// An item's history.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[allow(missing_docs, reason = "the names say it")]
pub struct History {
    /// Whether all receipts were looked at.
    pub complete: bool,
    /// To whom it was shown.
    pub disclosed: Vec<ShownTo>,
    /// Which of the owner's agents were given it; for what, `agents/{agent}/injected` tells.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub given: Vec<GivenTo>,
    /// What happened to it, the first one first.
    pub events: Vec<HistoryEvent>,
    pub item_id: ItemId,
    /// Where it stands.
    pub status: Status,
}

/// One link of an item's chain, and what it changed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[allow(missing_docs, reason = "the names say it")]
pub struct HistoryEvent {
    /// Who signed it.
    pub actor: Did,
    pub at: Timestamp,
    /// Whether an agent of the owner's wrote what the version says, where that is kept. Who gave it other labels is not told apart.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub by_agent: bool,
    /// Which agent, by its name; absent where it is not known any more, or was never an agent of this gateway's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<AgentName>,
    /// The same, by its DID.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent_did: Option<Did>,
    /// What a new version changed of the one before, where both are kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub changes: Option<Changes>,
    /// Whether what a new version says is kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub content: Option<Kept>,
    /// What happened.
    pub event: Event,
    pub receipt: ReceiptId,
    /// The number of the link, from 0.
    pub seq: u32,
    /// The version in force after it.
    pub version: u32,
}

/// Whether something is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum Kept {
    /// It is.
    #[serde(rename = "kept")]
    Kept,
    /// It was, once.
    #[serde(rename = "not kept any more")]
    Gone,
}

/// What one version changed of another.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Changes {
    /// Labels that came.
    pub labels_added: BTreeSet<String>,
    /// Labels that went.
    pub labels_removed: BTreeSet<String>,
    /// The names of other members that changed.
    pub other: BTreeSet<String>,
    /// The text, where it changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<TextChange>,
}

/// A text before and after.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TextChange {
    /// After; null where there is none.
    pub after: Option<String>,
    /// Before; null where there was none.
    pub before: Option<String>,
}

/// How often a version was shown to somebody.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ShownTo {
    /// The first time.
    pub first: Timestamp,
    /// To whom.
    pub grantee: Did,
    /// The last time.
    pub last: Timestamp,
    /// At which levels and by which profiles.
    pub seen_at: BTreeSet<DisclosedAs>,
    /// How often.
    pub times: u64,
    /// The version; null where it is not known any more.
    pub version: Option<u32>,
}

/// How often a version was given to an agent of the owner's.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[allow(missing_docs, reason = "the names say it")]
pub struct GivenTo {
    /// Its name.
    pub agent: AgentName,
    pub did: Did,
    /// The first time.
    pub first: Timestamp,
    /// The last time.
    pub last: Timestamp,
    /// How often.
    pub times: u64,
    /// The version; null where it is not known any more.
    pub version: Option<u32>,
}

/// Whom to look up.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[allow(missing_docs, reason = "the names say it")]
pub struct WhoQuery {
    pub did: Did,
    /// Only items older than this one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<ItemId>,
    /// At most so many items and grants, 1 to [`MAX_PAGE`](crate::service::who::MAX_PAGE); 50 if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<usize>,
}

/// What somebody was granted and shown.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[allow(missing_docs, reason = "the names say it")]
pub struct Grantee {
    /// Whether all receipts were looked at.
    pub complete: bool,
    pub did: Did,
    /// Grants to them, newest first.
    pub grants: Vec<GrantLine>,
    /// How many grants there are.
    pub grants_count: usize,
    /// Their last query.
    pub last_query: Option<LastQuery>,
    /// When they were refused last.
    pub last_refusal: Option<Timestamp>,
    /// What to give as `before` for the next page; null where this is the last one.
    pub next: Option<ItemId>,
    /// How many queries they were answered.
    pub queries: u64,
    /// How many receipts were looked at.
    pub receipts: usize,
    /// How many refusals the receipts tell.
    pub refusals: u64,
    /// What they were shown, newest items first.
    pub shown: Vec<ShownItem>,
    /// How many items they were shown.
    pub shown_count: usize,
}

/// A grant in one line.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[allow(missing_docs, reason = "the names say it")]
pub struct GrantLine {
    /// Whether a grantee made it.
    pub delegated: bool,
    /// How many distinct items were disclosed.
    pub disclosed: usize,
    /// Until when it holds.
    pub expires_at: Timestamp,
    pub grant_id: GrantId,
    /// How many distinct items it can ever disclose.
    pub max_items: u32,
    /// The projection profile.
    pub profile: String,
    /// What for.
    pub purpose: String,
    /// When it was revoked.
    pub revoked_at: Option<Timestamp>,
    /// Where it stands.
    pub state: GrantState,
    /// The trust level.
    pub trust_level: TrustLevel,
}

/// A query that was answered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[allow(missing_docs, reason = "the names say it")]
pub struct LastQuery {
    pub at: Timestamp,
    /// Under which grant.
    pub grant_id: Option<GrantId>,
    /// How many items it showed.
    pub items: usize,
    pub receipt_id: ReceiptId,
}

/// An item that somebody was shown.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[allow(missing_docs, reason = "the names say it")]
pub struct ShownItem {
    /// When it became known; absent of an erased one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub captured_at: Option<Timestamp>,
    /// The first time that it was shown.
    pub first: Timestamp,
    /// The beginning of what it says now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gist: Option<String>,
    pub item_id: ItemId,
    /// What sort of memory it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<Kind>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub labels: Option<Vec<String>>,
    /// The last time that it was shown.
    pub last: Timestamp,
    /// At which levels and by which profiles.
    pub seen_at: BTreeSet<DisclosedAs>,
    /// Where it stands.
    pub status: Status,
    /// How often it was shown.
    pub times: u64,
}

/// How often something was shown.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Times {
    /// How often.
    pub times: u64,
    /// The first time.
    pub first: Timestamp,
    /// The last time.
    pub last: Timestamp,
    /// At which levels and by which profiles.
    pub seen_at: BTreeSet<DisclosedAs>,
}

/// How something was shown.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[allow(missing_docs, reason = "the names say it")]
pub struct DisclosedAs {
    /// The trust level.
    pub level: u64,
    pub profile: String,
}

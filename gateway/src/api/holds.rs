//! Legal holds.

use super::endpoints;
pub use oap_memory::deletion::HoldReason;

use oap_identity::{ItemId, Timestamp};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

endpoints! {
    /// Every hold.
    ListHolds: GET "/oap/owner/holds" needs Admin answers(Holds);
    /// Puts items under a hold.
    SetHolds: POST "/oap/owner/holds" needs Admin body(HoldRequest) answers(Held);
    /// Ends holds; what waited for that is erased.
    ReleaseHolds: POST "/oap/owner/holds/release" needs Admin body(Release) answers(Released);
}

/// An item under a hold.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[allow(missing_docs, reason = "the names say it")]
pub struct HeldItem {
    pub item_id: ItemId,
    /// Why it is held.
    pub reason: HoldReason,
    /// Until when.
    pub until: Timestamp,
}

/// Every hold.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Holds {
    /// One an item.
    pub holds: Vec<HoldInfo>,
}

/// An item under a hold, and what becomes of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[allow(missing_docs, reason = "the names say it")]
pub struct HoldInfo {
    /// Whether its deletion was asked for meanwhile.
    pub erase_after: bool,
    pub item_id: ItemId,
    /// Why it is held.
    pub reason: HoldReason,
    /// Until when.
    pub until: Timestamp,
}

/// What to hold.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[allow(missing_docs, reason = "the names say it")]
pub struct HoldRequest {
    /// These items.
    pub items: Vec<ItemId>,
    pub reason: HoldReason,
    /// Until when.
    pub until: Timestamp,
}

/// How many items were put under a hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Held {
    /// How many.
    pub held: usize,
}

/// Which holds to end.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Release {
    /// Of these items.
    pub items: Vec<ItemId>,
}

/// How many holds ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Released {
    /// How many.
    pub released: usize,
}

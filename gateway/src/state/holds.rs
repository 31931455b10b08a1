//! Holds, as they are stored.

use crate::api::holds::HoldReason;
use oap_identity::Timestamp;
use serde::{Deserialize, Serialize};

/// Why an item must not be erased.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[allow(missing_docs, reason = "the names say it")]
pub struct Hold {
    pub reason: HoldReason,
    /// Until when.
    pub until: Timestamp,
    /// Whether its deletion was asked for meanwhile.
    pub erase_after: bool,
}

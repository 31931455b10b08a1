//! Holds, as they are stored.

use crate::api::holds::HoldReason;
use oap_identity::Timestamp;
use serde::{Deserialize, Serialize};

/// A hold.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hold {
    /// Why.
    pub reason: HoldReason,
    /// Until when.
    pub until: Timestamp,
    /// Whether its deletion was asked for meanwhile.
    pub erase_after: bool,
}

//! Lockdown: every grant and credential ended at once, and nobody but the owner answered (OAP-CORE 22.3).

use super::endpoints;
use oap_identity::{ReceiptId, Timestamp};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

endpoints! {
    /// Ends every grant and credential but a fresh one of the caller's, and answers nobody but the owner until that is lifted.
    LockDown: POST "/oap/owner/lockdown" needs Admin body(LockdownOrder) answers(LockedDown);
    /// The last lockdown, whether it lasts or was lifted.
    ShowLockdown: GET "/oap/owner/lockdown" needs Admin answers(LockdownState);
    /// Lets the gateway answer again. Nothing that was ended comes back.
    LiftLockdown: POST "/oap/owner/lockdown/lift" needs Admin answers(LockdownState);
}

/// How the gateway is locked down.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LockdownOrder {
    /// Why, in the owner's words: 1 to 256 characters, without control characters. It is told to the owner alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// A lockdown.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Lockdown {
    /// Since when.
    pub since: Timestamp,
    /// When it was lifted; none while it lasts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lifted_at: Option<Timestamp>,
    /// Why, in the owner's words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The receipt of it.
    pub receipt_id: ReceiptId,
    /// How many grants were not revoked before.
    pub grants: u32,
    /// How many of the owner's agents had an API key.
    pub agents: u32,
    /// How many clients of OAuth had an approval.
    pub clients: u32,
    /// How many of the grants have no receipt of their revocation yet. They count no more, and the gateway goes on by itself.
    pub left: usize,
}

/// How the gateway stands.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LockdownState {
    /// Whether nobody but the owner is answered.
    pub locked_down: bool,
    /// The last lockdown, where there was one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last: Option<Lockdown>,
}

/// A gateway that was locked down, and the caller's new credential.
#[derive(Clone, Serialize, Deserialize, JsonSchema)]
pub struct LockedDown {
    /// How it stands.
    pub lockdown: Lockdown,
    /// The trust token that takes the place of the caller's, which the lockdown ended with all others.
    pub trust_token: String,
}

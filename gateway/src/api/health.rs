//! Where a gateway stands, what is wrong with it, its clock; what a backup says of itself.

use super::endpoints;
use super::lockdown::Lockdown;
use oap_identity::{Did, GrantId, Hash, Timestamp};
use oap_memory::closed_enum;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::net::SocketAddr;

endpoints! {
    /// Where the gateway stands: counts and ends alone, never content.
    ShowStatus: GET "/oap/owner/status" needs Admin answers(Status);
    /// What the clock says, and the latest time known.
    ShowClock: GET "/oap/owner/clock" needs Admin answers(ClockInfo);
    /// Goes by the clock from now on.
    AcceptClock: POST "/oap/owner/clock/accept" needs Admin answers(ClockInfo);
}

/// Where a gateway stands: counts and ends alone, never content.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "GatewayStatus")]
#[allow(missing_docs, reason = "the names say it")]
pub struct Status {
    /// Whose memory it is.
    pub principal: Did,
    /// Where it is reached.
    pub origin: String,
    /// Where it listens, while it serves.
    pub listen: SocketAddr,
    pub items: Items,
    pub grants: Grants,
    /// The lockdown, while one lasts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lockdown: Option<Lockdown>,
    /// The last query of a grantee, where there was one.
    pub last_query: Option<LastQuery>,
    /// What `doctor` would warn of without looking at every item.
    pub findings: Vec<Finding>,
}

/// How many items there are.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "ItemCounts")]
pub struct Items {
    /// Of each kind, those in force.
    pub kinds: BTreeMap<String, usize>,
    /// Those in force, all together.
    pub live: usize,
    /// Taken back, until they are erased.
    pub retracted: usize,
    /// At the end of their life, until they are erased.
    pub expired: usize,
    /// Under a legal hold; they count above too.
    pub held: usize,
    /// Those in force that wait for the owner's confirmation.
    #[serde(default)]
    pub waiting: usize,
}

/// How the grants stand.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "GrantCounts")]
pub struct Grants {
    /// How many there are in each state.
    pub states: BTreeMap<String, usize>,
    /// The active one that ends next.
    pub next: Option<Ending>,
}

/// An active grant and its end.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[allow(missing_docs, reason = "the names say it")]
pub struct Ending {
    pub grant_id: GrantId,
    pub expires_at: Timestamp,
}

/// A query, as its receipt has it.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "LatestQuery")]
#[allow(missing_docs, reason = "the names say it")]
pub struct LastQuery {
    pub at: Timestamp,
    /// Who asked.
    pub agent: String,
    /// How many items were shown.
    pub items: usize,
}

/// What was looked at.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Findings {
    /// One a part of the gateway.
    pub findings: Vec<Finding>,
}

/// One thing that was looked at.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[allow(missing_docs, reason = "the names say it")]
pub struct Finding {
    pub part: Cow<'static, str>,
    /// How much of it.
    pub looked_at: usize,
    /// What is wrong; empty when all is well.
    pub wrong: Vec<String>,
    /// What will end or run out soon.
    pub soon: Vec<String>,
    /// What to do then.
    pub fix: Cow<'static, str>,
    /// What else is known of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

/// `backup.json`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[allow(missing_docs, reason = "the names say it")]
pub struct BackupInfo {
    /// The name and version of its form.
    pub format: String,
    pub principal: Did,
    pub at: Timestamp,
    /// Items at that time.
    pub items: usize,
    /// Pairs in `store.bin`.
    pub pairs: u64,
    /// The hash of `store.bin`.
    pub store: Hash,
    /// The hash of `vault`.
    pub vault: Hash,
    /// The hashes of the home's files that went along, by their names in it.
    #[serde(default)]
    pub files: BTreeMap<String, Hash>,
    /// An HMAC-SHA256 in base64url over the canonical form of the rest, under a key of the gateway's. Backups of earlier versions have none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mac: Option<String>,
}

closed_enum! {
    /// Where the clock stands to the latest time that is known.
    #[allow(missing_docs, reason = "the names say it")]
    Standing {
        Believed = "believed",
        /// Behind by more than the skew that is forgiven.
        Behind = "behind",
        /// Ahead by more than [`MAX_LEAP`](crate::state::clock::MAX_LEAP).
        Ahead = "ahead",
    }
}

/// What the owner is told of the clock.
#[derive(Debug, Clone, Copy, Serialize, Deserialize, JsonSchema)]
pub struct ClockInfo {
    /// What the clock says.
    pub clock: Timestamp,
    /// The latest time that the gateway acted at.
    pub mark: Timestamp,
    /// Whether it is believed.
    pub standing: Standing,
}

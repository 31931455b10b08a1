//! The audit log.

use super::{Document, endpoints};
use oap_identity::{GrantId, Hash, ItemId, ReceiptId, Timestamp};
use oap_memory::receipt::Receipt;
use oap_memory::{TrustLevel, closed_enum};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

endpoints! {
    /// Receipts, newest first. The owner sees all; a grantee those that name it; anybody else those of anonymous calls.
    Audit: GET "/oap/audit" needs Admin query(AuditQuery) answers(Receipts);
    /// The chains of receipts, and where each ends.
    ListChains: GET "/oap/owner/audit/chains" needs Admin answers(Chains);
}

/// What to list.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AuditQuery {
    /// Only at or after this time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since: Option<Timestamp>,
    /// Only of this agent (owner).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub grantee: Option<String>,
    /// Only under this grant.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub grant_id: Option<GrantId>,
    /// Only about this item.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub item_id: Option<ItemId>,
    /// Only of anonymous calls that claimed this principal (public).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub principal_did: Option<String>,
    /// At most so many, 1 to 1000; 100 if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<usize>,
    /// Only of this chain: a scope, `@anonymous`, or `@agents` (owner).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub chain: Option<String>,
    /// Only those behind this receipt, in the order of the list (owner).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<ReceiptId>,
    /// The chain's entries from this number on, oldest first, heads included (owner, with `chain`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<u64>,
}

/// A page of the audit log.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[allow(missing_docs, reason = "the names say it")]
pub struct Receipts {
    pub receipts: Vec<Document<Receipt>>,
    /// What to give as `before` for what is behind; absent at the end (owner). One answer looks at a bounded number of receipts: it may have
    /// less than `limit`, or nothing, and go on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<ReceiptId>,
}

/// Chains of receipts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Chains {
    /// One a scope, one of anonymous calls, and one of what the owner's agents were given.
    pub chains: Vec<ChainInfo>,
}

/// A chain and where it ends.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ChainInfo {
    /// Its name: a scope, `@anonymous`, or `@agents`.
    pub chain: String,
    /// Its entries, heads included.
    pub length: u64,
    /// The hash of its last entry.
    pub tip: Option<Hash>,
    /// The time of its last entry.
    pub at: Timestamp,
}

/// What is read of a memorization audit. The document has its method and its numbers, too.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Memorization {
    /// What each artefact tells.
    pub artefacts: Vec<Artefact>,
    /// Whether all of them passed.
    pub status: MemorizationStatus,
}

closed_enum! {
    /// Whether an audit was passed.
    MemorizationStatus {
        /// No artefact exposes a canary.
        Passed = "passed",
        /// One does.
        Failed = "failed",
    }
}

/// What one artefact tells of the canaries.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[allow(missing_docs, reason = "the names say it")]
pub struct Artefact {
    pub artefact: String,
    /// Under which profile.
    pub profile: String,
    /// At which trust level.
    pub trust_level: TrustLevel,
    /// How many canaries were looked for.
    pub canaries: usize,
    /// What it tells of one on average, in bits.
    pub mean_exposure_bits: f64,
    /// The most that counts as nothing, in bits.
    pub bound_bits: f64,
    /// Whether it is below that.
    pub passed: bool,
}

//! The audit log.

use super::{Document, endpoints};
use oap_identity::{GrantId, Hash, ItemId, Timestamp};
use oap_memory::TrustLevel;
use oap_memory::receipt::Receipt;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

endpoints! {
    /// Receipts, newest first. The owner sees all; a grantee those that name it; anybody else those of anonymous calls.
    Audit: GET "/oap/audit" needs Admin query(AuditQuery) answers(Receipts);
    /// The chains of receipts, and where each ends.
    ListChains: GET "/oap/owner/audit/chains" needs Admin answers(Chains);
    /// Plants canaries in a throw-away copy, and measures what the derived artefacts tell of them.
    AuditMemorization: POST "/oap/owner/audit/memorization" needs Admin answers(Document<Memorization>);
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
    /// Only of this chain: a scope, or `@anonymous` (owner).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub chain: Option<String>,
    /// The chain's entries from this number on, oldest first, heads included (owner, with `chain`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<u64>,
}

/// A page of the audit log.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[allow(missing_docs, reason = "the names say it")]
pub struct Receipts {
    pub receipts: Vec<Document<Receipt>>,
}

/// Chains of receipts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Chains {
    /// One a scope, and one of anonymous calls.
    pub chains: Vec<ChainInfo>,
}

/// A chain and where it ends.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ChainInfo {
    /// Its name: a scope, or `@anonymous`.
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

/// Whether an audit was passed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum MemorizationStatus {
    /// No artefact exposes a canary.
    Passed,
    /// One does.
    Failed,
}

impl MemorizationStatus {
    /// The text on the wire.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Passed => "passed",
            Self::Failed => "failed",
        }
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

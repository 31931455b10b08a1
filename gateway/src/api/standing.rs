//! How a gateway stands to others: Conformance Receipts, incidents, profiles, and proofs as somebody else's grantee.

use super::document::Submitted;
use super::{Document, endpoints};
use oap_conformance::receipt::{ConformanceReceipt, SuiteReport};
use oap_identity::ids::IncidentId;
use oap_identity::{Did, Hash, Timestamp};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

endpoints! {
    /// Signs a Conformance Receipt of what a run of the protocol's suite showed, and publishes it.
    Attest: POST "/oap/owner/attest" needs Admin body(AttestRequest) answers(Document<ConformanceReceipt>);
    /// Signs another gateway's Conformance Receipt as its witness.
    Witness: POST "/oap/owner/witness" needs Admin body(Submitted<ConformanceReceipt>) answers(Document<ConformanceReceipt>);
    /// Publishes an incident report of `oap-incident.schema.json`.
    ReportIncident: POST "/oap/owner/incidents" needs Admin body(IncidentReport) answers(Incident);
    /// Proves, as a grantee of somebody else, control of the DID or possession of the key.
    Prove: POST "/oap/owner/prove" needs Admin body(ProofRequest) answers(Proof);
    /// The projection profiles that grants can name.
    ListProfiles: GET "/oap/owner/profiles" needs Read answers(Profiles);
}

/// What is to be attested.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AttestRequest {
    /// `L0`, `L1`, `L1-NC`.
    pub levels: Vec<String>,
    /// The suite's report; none for a candidate.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub report: Option<Submitted<SuiteReport>>,
}

/// What an incident was, as its owner reports it (`oap-incident.schema.json`).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[allow(missing_docs, reason = "the names say it")]
pub struct IncidentReport {
    /// When it was noticed.
    pub detected_at: Timestamp,
    /// When it was over.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resolved_at: Option<Timestamp>,
    pub severity: Severity,
    /// What was affected: actions, regions, principals, classes of data.
    #[serde(default)]
    pub scope: Option<Map<String, Value>>,
    /// Why it came about.
    pub root_cause: String,
    /// What was done at once.
    pub mitigation: String,
    /// What was done for good.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub remediation: Option<String>,
    /// Who was told, when and how.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub notification: Option<Map<String, Value>>,
    pub status: IncidentStatus,
}

/// How bad an incident is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[allow(missing_docs, reason = "the names say it")]
pub enum Severity {
    Low,
    Medium,
    High,
    Critical,
}

/// How an incident stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[allow(missing_docs, reason = "the names say it")]
pub enum IncidentStatus {
    Open,
    Mitigated,
    Resolved,
    PostMortemPublished,
}

/// An incident as it is published.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Incident {
    /// Its id.
    pub incident_id: IncidentId,
    /// Whose gateway it is.
    pub tool_did: Did,
    /// When it was published.
    pub disclosed_at: Timestamp,
    /// What its owner reports.
    #[serde(flatten)]
    pub report: IncidentReport,
}

/// What the principal proves as a grantee of somebody else: control of its DID to a grant endpoint, or possession of its key to a query
/// endpoint.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged, deny_unknown_fields)]
pub enum ProofRequest {
    /// Control of the DID (protocol section 5.1).
    #[allow(missing_docs, reason = "the names say it")]
    Grant {
        /// The grant endpoint.
        endpoint: String,
        grant_hash: Hash,
    },
    /// Possession of the key that a token is bound to (RFC 9449).
    #[allow(missing_docs, reason = "the names say it")]
    Request {
        /// The request's method.
        method: String,
        /// The request's address.
        url: String,
        token: String,
    },
}

/// What was asked for.
#[derive(Clone, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Proof {
    /// A proof of control, for a grant.
    Proof(String),
    /// A proof of possession, for a request.
    Dpop(String),
}

impl Proof {
    /// As text.
    #[must_use]
    pub fn into_string(self) -> String {
        match self {
            Self::Proof(proof) | Self::Dpop(proof) => proof,
        }
    }
}

/// Projection profiles.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Profiles {
    /// The built-in ones, then the owner's own.
    pub profiles: Vec<ProfileInfo>,
}

/// A projection profile.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[allow(missing_docs, reason = "the names say it")]
pub struct ProfileInfo {
    /// What it is for.
    pub description: String,
    /// What each level adds of items about its entity; null where it is for none.
    pub entity: Option<Vec<LevelInfo>>,
    /// The sort of entity that it is for.
    pub entity_type: Option<String>,
    pub hash: Hash,
    /// What each level adds of any other item.
    pub levels: Vec<LevelInfo>,
    /// The least trust level that it can be used at.
    pub minimum_level: u8,
    /// Its whole name.
    pub name: String,
}

/// What a level adds to those below it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LevelInfo {
    /// Field paths with their conditions.
    pub adds: Vec<String>,
    /// What becomes of the text.
    pub text: String,
}

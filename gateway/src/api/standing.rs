//! How a gateway stands to others: Conformance Receipts, incidents, profiles, and proofs as somebody else's grantee.

use super::endpoints;
use oap_identity::Hash;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

endpoints! {
    /// Signs a Conformance Receipt of what a run of the protocol's suite showed, and publishes it.
    Attest: POST "/oap/owner/attest" needs Admin body(AttestRequest) answers(Value);
    /// Signs another gateway's Conformance Receipt as its witness.
    Witness: POST "/oap/owner/witness" needs Admin body(Value) answers(Value);
    /// Publishes an incident report of `oap-incident.schema.json`.
    ReportIncident: POST "/oap/owner/incidents" needs Admin body(Value) answers(Value);
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
    pub report: Option<Value>,
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

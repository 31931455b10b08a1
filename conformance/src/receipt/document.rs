//! The documents that a Conformance Receipt is made of: the suite's report, and the receipt itself.

use oap_identity::{Did, Hash, Timestamp};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The report of a run of the protocol's suite (`OAP_REPORT=json`), as far as it is read.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
pub struct SuiteReport {
    #[serde(rename = "suite")]
    _suite: SuiteName,
    /// Where the gateway was reached.
    pub(super) target: String,
    /// The hash of the suite's fixtures.
    pub(super) fixtures_hash: Hash,
    pub(super) results: Vec<ProbeResult>,
}

/// What one probe of the suite found. A member that is missing makes it count for nothing.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize, JsonSchema)]
#[serde(default)]
pub struct ProbeResult {
    /// The probe.
    pub(super) name: String,
    /// The file that it stands in.
    pub(super) file: String,
    /// Whether the gateway did what it should.
    pub(super) passed: bool,
}

/// The one suite whose reports are attested.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum SuiteName {
    /// The protocol's own.
    #[serde(rename = "oap-conformance-test-suite")]
    Protocol,
}

/// A Conformance Receipt (RFC 0019 section 7, `oap-conformance-receipt.schema.json`). One of another implementation may have more
/// members; they are covered by the signatures.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[allow(missing_docs, reason = "the names say it")]
pub struct ConformanceReceipt {
    /// `urn:oap:conformance:` and an id.
    pub receipt_id: String,
    #[serde(rename = "type")]
    pub kind: ConformanceType,
    /// When it was made.
    pub timestamp: Timestamp,
    pub implementation: Implementation,
    pub suite: Suite,
    pub target: Target,
    /// `L0` to `L5`, with or without `-NC`.
    pub claimed_levels: Vec<String>,
    #[serde(default)]
    pub profile: ReceiptProfile,
    pub results_summary: Summary,
    /// The hash of the suite's fixtures.
    pub fixtures_hash: Hash,
    /// The hash of the report.
    pub results_hash: Hash,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attestor: Option<Attestor>,
    pub validity: Validity,
    /// The hash of the receipt before this one, or `genesis`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub previous_receipt_hash: Option<String>,
    /// Of non-commercial levels: what pays for the gateway.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revenue: Option<Revenue>,
    /// The implementation's; each covers all members but `signatures` and `peer_witnesses`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub signatures: Vec<Signature>,
    /// The witnesses'; each covers all members but `peer_witnesses`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub peer_witnesses: Vec<PeerWitness>,
}

/// `conformance`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ConformanceType {
    /// A Conformance Receipt.
    Conformance,
}

/// The program that was examined.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[allow(missing_docs, reason = "the names say it")]
pub struct Implementation {
    /// Who runs it, and signs.
    pub did: Did,
    pub name: String,
    pub version: String,
}

/// The suite that it was examined with.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[allow(missing_docs, reason = "the names say it")]
pub struct Suite {
    pub name: SuiteName,
    pub version: String,
    /// The version of the specification.
    pub spec_version: String,
}

/// Where it was examined.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Target {
    /// Its address.
    pub uri: String,
    /// The hash of its tool manifest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub manifest_hash: Option<String>,
}

/// Whether the levels are those of a gateway that takes money.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ReceiptProfile {
    /// It may.
    #[default]
    Standard,
    /// It does not: the profile of levels that end in `-NC`.
    NonCommercial,
}

/// How many probes there were.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Summary {
    /// All.
    pub total: u64,
    /// Those that passed, and those that did not apply.
    pub passed: u64,
    /// The others.
    pub failed: u64,
    /// Those that did not apply.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub skipped: Option<u64>,
}

/// Who says so.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Attestor {
    /// The attestor.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub did: Option<Did>,
    /// How they know, such as `self`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub method: Option<String>,
}

/// When it holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Validity {
    /// From when on.
    pub not_before: Timestamp,
    /// Until when.
    pub not_after: Timestamp,
}

/// What pays for a gateway.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Revenue {
    /// Such as `self-hosted`.
    pub source: String,
}

/// A signature of the implementation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Signature {
    /// The key.
    pub by: String,
    /// `EdDSA`.
    pub alg: String,
    /// The signature, in base64url.
    pub value: String,
}

/// A witness's signature.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PeerWitness {
    /// The witness.
    pub witness_did: Did,
    /// Where the witness's own receipt is.
    pub witness_receipt_uri: String,
    /// `EdDSA`.
    pub alg: String,
    /// The signature, in base64url.
    pub signature: String,
    /// When it was made.
    pub witnessed_at: Timestamp,
}

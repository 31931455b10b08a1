//! Acknowledgements of answers, and which order of mutual knowledge they prove.

use super::access::LetterState;
use super::endpoints;
use oap_identity::{Did, Hash, ReceiptId, Timestamp};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

endpoints! {
    /// Answers that were acknowledged or can be, newest first, and whether this gateway acknowledges by itself.
    ListAcks: GET "/oap/owner/acks" needs Admin query(AckQuery) answers(AckList);
    /// Lets this gateway acknowledge by itself, or not any more.
    SetAcks: POST "/oap/owner/acks" needs Admin body(AckSetting) answers(AckSettings);
    /// What was acknowledged of the answer of a receipt, with everything that was signed.
    ShowAck: GET "/oap/owner/acks/{hash}" at(Hash) needs Admin answers(AckProof);
    /// Signs the next acknowledgement of it, and sends it.
    GiveAck: POST "/oap/owner/acks/{hash}/give" at(Hash) needs Admin answers(AckProof);
}

/// What to list.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AckQuery {
    /// At most so many, 1 to 1000; 100 if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<usize>,
}

/// Whether this gateway acknowledges by itself.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AckSetting {
    /// Whether it does.
    pub automatic: bool,
    /// Under this grant alone, by the hash of its document; absent: under all that nothing is said of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub grant: Option<Hash>,
}

/// What the owner said of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AckSettings {
    /// Under all grants that nothing is said of.
    pub automatic: bool,
    /// Grants that something is said of.
    pub grants: Vec<AckOfGrant>,
}

/// What the owner said of one grant.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[allow(missing_docs, reason = "the names say it")]
pub struct AckOfGrant {
    pub grant: Hash,
    pub automatic: bool,
}

/// Answers that were acknowledged, or can be.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct AckList {
    /// What the owner said of acknowledging by itself.
    pub settings: AckSettings,
    /// Newest first.
    pub answers: Vec<AckInfo>,
}

/// What was acknowledged of an answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[allow(missing_docs, reason = "the names say it")]
pub struct AckInfo {
    /// The receipt of the answer, by its hash.
    pub receipt_hash: Hash,
    pub receipt_id: ReceiptId,
    pub granter: Did,
    pub grantee: Did,
    /// The grant, by the hash of its document.
    pub grant: Hash,
    /// When the answer came, or its first acknowledgement.
    pub since: Timestamp,
    /// How many signatures stand over it: the grantee's under the receipt, and each over the one before.
    pub acknowledgements: usize,
    /// The order of mutual knowledge that is proved here: that it was given is known to both, that this is known to both, and so on, so many
    /// times. 0: nobody but the granter is known to know. It is never common knowledge (RFC 0010 A.8).
    pub order: usize,
    /// Whether the next signature is this owner's to give.
    pub yours: bool,
    /// Where the last letter of this gateway's about it stands.
    pub letter: Option<LetterState>,
}

/// The same with what proves it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AckProof {
    /// What it comes to.
    pub answer: AckInfo,
    /// The receipt.
    pub receipt: Value,
    /// What was signed, the first one first: a signature of the receipt, then statements.
    pub signed: Vec<Value>,
}

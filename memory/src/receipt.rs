//! Receipts and their chains (OAP-CORE 19, protocol section 8).
//!
//! Every receipt is followed in its chain by a *head*: a receipt of the chain itself that says how long the
//! chain is. A head does two things. It makes a cut tail visible: a chain must end with one, and the newest one
//! can be asked for. And it stands between any two receipts that a counterparty may see, so that the
//! `previous_receipt_hash` of one never tells whether something that they may not see came before it.

use crate::item::closed_enum;
use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use oap_identity::json::{self, JsonError};
use oap_identity::random::Random;
use oap_identity::signed::SignedError;
use oap_identity::{DecisionId, Did, Documents, Hash, ItemId, Kid, ReceiptId, Signer, Timestamp};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

/// The `action_id` of a head.
pub const HEAD: &str = "memory.chain_head";
/// The first `previous_receipt_hash` of a chain.
pub const GENESIS: &str = "genesis";

closed_enum! {
    /// The receipt types in use here (of `oap-receipt.schema.json`).
    ReceiptType {
        /// Something was done for a caller.
        Invocation = "invocation",
        /// A grant was given or taken back.
        Consent = "consent",
        /// Memory was deleted.
        Deletion = "deletion",
        /// Something went wrong.
        Incident = "incident",
        /// Everything was revoked.
        KillSwitch = "kill_switch",
    }
}

closed_enum! {
    /// The outcome of a policy decision (OAP-CORE 18.3).
    Outcome {
        /// Go ahead.
        Allow = "allow",
        /// Go ahead within limits.
        AllowWithConditions = "allow_with_conditions",
        /// Ask the principal first.
        RequireConsent = "require_consent",
        /// Only without what identifies.
        RequireAnonymization = "require_anonymization",
        /// No.
        Block = "block",
    }
}

/// A decision in a receipt: the one open place of its schema, where trust level, profile, lawful basis, grant
/// and scope go (protocol section 12).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Decision {
    /// The decision.
    pub id: DecisionId,
    /// Its outcome.
    pub outcome: Outcome,
    /// The rules that it rests on.
    pub rules: Vec<String>,
    /// What else it says.
    #[serde(flatten)]
    pub more: Map<String, Value>,
}

/// A signature of a receipt.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReceiptSignature {
    /// The key: `<did>#<key>`.
    pub by: Kid,
    /// EdDSA.
    pub alg: String,
    /// base64url of the signature over the hashed bytes ([`Receipt::signed_bytes`]).
    pub value: String,
}

/// A receipt of `oap-receipt.schema.json`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Receipt {
    /// The receipt.
    pub receipt_id: ReceiptId,
    /// Its type.
    #[serde(rename = "type")]
    pub kind: ReceiptType,
    /// When it was made.
    pub timestamp: Timestamp,
    /// In whose chain it stands.
    pub principal_did: Did,
    /// Who acted.
    pub agent_did: String,
    /// The gateway.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool_did: Option<Did>,
    /// What was done.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub action_id: Option<String>,
    /// The hash of what came in.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub input_hash: Option<Hash>,
    /// The hash of what went out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output_hash: Option<Hash>,
    /// The decisions.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub policy_decisions: Vec<Decision>,
    /// What was disclosed or captured: `<item_id>@<commitment>`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub provenance_tags_out: Vec<String>,
    /// `genesis`, or the hash of the receipt before.
    pub previous_receipt_hash: String,
    /// The principal's signature first; a grantee's countersignature may follow.
    #[serde(default)]
    pub signatures: Vec<ReceiptSignature>,
}

/// Why a receipt or a chain of them was refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ReceiptError {
    /// Not a receipt.
    #[error("receipt {0} is malformed: {1}")]
    Malformed(usize, String),
    /// It follows something else.
    #[error("receipt {0} does not follow the one before it")]
    Broken(usize),
    /// A time earlier than that of the receipt before.
    #[error("receipt {0} is older than the one before it")]
    Time(usize),
    /// No signature of the principal.
    #[error("receipt {0} is not signed by its principal")]
    Unsigned(usize),
    /// A signature of the principal that does not count.
    #[error("receipt {0}: {1}")]
    Signature(usize, SignedError),
    /// Receipts and heads do not take turns, or a head says another length.
    #[error("receipt {0}: every receipt is followed by a head that says the length")]
    Head(usize),
    /// The chain does not end with a head.
    #[error("the chain does not end with a head: its tail was cut")]
    Cut,
    /// A receipt of another principal or chain.
    #[error("receipt {0} belongs to another chain")]
    OtherChain(usize),
    /// No canonical form.
    #[error(transparent)]
    Json(#[from] JsonError),
}

impl Receipt {
    /// The bytes that are hashed and signed: the RFC 8785 form without `signatures` and `anchors`.
    ///
    /// # Errors
    /// When a decision holds a value without canonical form.
    pub fn signed_bytes(&self) -> Result<Vec<u8>, JsonError> {
        let mut value = serde_json::to_value(self).map_err(|e| JsonError::NotCanonical(e.to_string()))?;
        if let Some(members) = value.as_object_mut() {
            members.remove("signatures");
        }
        json::canonical(&value)
    }

    /// The hash that the next receipt names.
    ///
    /// # Errors
    /// As [`Receipt::signed_bytes`].
    pub fn hash(&self) -> Result<Hash, JsonError> {
        Ok(Hash::of(&self.signed_bytes()?))
    }

    /// Signs it, in place of the signatures that it has. Returns its hash.
    ///
    /// # Errors
    /// As [`Receipt::signed_bytes`].
    pub fn sign(&mut self, signer: &Signer) -> Result<Hash, JsonError> {
        let bytes = self.signed_bytes()?;
        self.signatures = vec![ReceiptSignature {
            by: signer.kid().clone(),
            alg: "EdDSA".to_owned(),
            value: signer.sign(&bytes),
        }];
        Ok(Hash::of(&bytes))
    }

    /// The head that follows this receipt: the `length`-th entry of the chain is the one before the head.
    #[must_use]
    pub fn head(&self, hash: Hash, chain: &str, length: u64, random: &dyn Random) -> Self {
        let decision = Decision {
            id: DecisionId::new(self.timestamp, random),
            outcome: Outcome::Allow,
            rules: vec!["chain.head".to_owned()],
            more: Map::from_iter([("chain".to_owned(), json!(chain)), ("length".to_owned(), json!(length))]),
        };
        Self {
            receipt_id: ReceiptId::new(self.timestamp, random),
            kind: ReceiptType::Invocation,
            timestamp: self.timestamp,
            principal_did: self.principal_did.clone(),
            agent_did: self.principal_did.to_string(),
            tool_did: self.tool_did.clone(),
            action_id: Some(HEAD.to_owned()),
            input_hash: None,
            output_hash: None,
            policy_decisions: vec![decision],
            provenance_tags_out: Vec::new(),
            previous_receipt_hash: hash.to_string(),
            signatures: Vec::new(),
        }
    }

    /// Whether it is a head, and the length that it states.
    #[must_use]
    pub fn head_length(&self) -> Option<u64> {
        if self.action_id.as_deref() != Some(HEAD) {
            return None;
        }
        self.policy_decisions.first()?.more.get("length")?.as_u64()
    }
}

/// How a receipt names a version of an item.
#[must_use]
pub fn item_tag(item: ItemId, commitment: Hash) -> String {
    format!("{item}@{commitment}")
}

fn signed_bytes(receipt: &Value) -> Result<Vec<u8>, JsonError> {
    let mut unsigned = receipt.clone();
    if let Some(members) = unsigned.as_object_mut() {
        members.remove("signatures");
        members.remove("anchors");
    }
    json::canonical(&unsigned)
}

/// Reads a receipt and checks its principal's signature. The whole JSON that was received is what is checked,
/// members unknown here included.
///
/// # Errors
/// [`ReceiptError`].
pub fn verify(receipt: &Value, documents: &dyn Documents) -> Result<(Receipt, Hash), ReceiptError> {
    verify_at(receipt, documents, 0)
}

fn verify_at(
    value: &Value,
    documents: &dyn Documents,
    index: usize,
) -> Result<(Receipt, Hash), ReceiptError> {
    let receipt: Receipt =
        json::from_value(value.clone()).map_err(|e| ReceiptError::Malformed(index, e.to_string()))?;
    let document = documents.document(&receipt.principal_did).ok_or(ReceiptError::OtherChain(index))?;
    let bytes = signed_bytes(value)?;
    let signature = receipt
        .signatures
        .iter()
        .find(|s| s.by.did() == document.id() && s.alg == "EdDSA")
        .ok_or(ReceiptError::Unsigned(index))?;
    let refused = |e| ReceiptError::Signature(index, e);
    let key = document.key(&signature.by).ok_or(refused(SignedError::OtherKey))?;
    let value = URL_SAFE_NO_PAD.decode(&signature.value).map_err(|_| refused(SignedError::Malformed))?;
    key.verify(&bytes, &value, receipt.timestamp).map_err(refused)?;
    Ok((receipt, Hash::of(&bytes)))
}

/// The action of the entry by which the owner sets the clock right: the only one that may be older than the one before it.
pub const CLOCK_ACCEPTED: &str = "memory.clock_accept";

/// A chain whose every entry was checked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VerifiedReceipts {
    /// Entries, heads included.
    pub length: u64,
    /// The hash of the last entry, which is a head.
    pub tip: Hash,
    /// When it was made.
    pub at: Timestamp,
}

/// Checks a whole chain, from `genesis` to its last head.
///
/// # Errors
/// [`ReceiptError`], with the number of the offending entry.
pub fn verify_chain(
    entries: impl IntoIterator<Item = Value>,
    documents: &dyn Documents,
) -> Result<VerifiedReceipts, ReceiptError> {
    let mut previous = GENESIS.to_owned();
    let mut state: Option<VerifiedReceipts> = None;
    let mut name: Option<Value> = None;
    let mut principal = None;
    for (index, entry) in entries.into_iter().enumerate() {
        let (receipt, hash) = verify_at(&entry, documents, index)?;
        if *principal.get_or_insert_with(|| receipt.principal_did.clone()) != receipt.principal_did {
            return Err(ReceiptError::OtherChain(index));
        }
        if receipt.previous_receipt_hash != previous {
            return Err(ReceiptError::Broken(index));
        }
        let is_corrected = receipt.action_id.as_deref() == Some(CLOCK_ACCEPTED);
        if state.as_ref().is_some_and(|before| before.at > receipt.timestamp) && !is_corrected {
            return Err(ReceiptError::Time(index));
        }
        let head = receipt.head_length();
        let expected = (index % 2 == 1).then_some(index as u64);
        if head != expected {
            return Err(ReceiptError::Head(index));
        }
        if head.is_some() {
            let chain = receipt.policy_decisions.first().and_then(|d| d.more.get("chain")).cloned();
            if name.is_some() && name != chain {
                return Err(ReceiptError::OtherChain(index));
            }
            name = chain;
        }
        previous = hash.to_string();
        state = Some(VerifiedReceipts { length: index as u64 + 1, tip: hash, at: receipt.timestamp });
    }
    match state {
        Some(verified) if verified.length % 2 == 0 => Ok(verified),
        // A chain has its boot entry at least.
        Some(_) | None => Err(ReceiptError::Cut),
    }
}

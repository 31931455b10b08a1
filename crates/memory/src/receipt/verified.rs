//! One receipt, checked: its members, its signatures, and what its action says of it.

use super::{GENESIS, Receipt, ReceiptError, ReceiptSignature, content};
use crate::unchecked::Unchecked;
use oap_identity::json::{self, JsonError, quoted};
use oap_identity::signed::SignedError;
use oap_identity::time::MAX_SKEW;
use oap_identity::{DidDocument, Documents, Hash, Kid, Timestamp};
use serde::Deserialize;
use serde_json::Value;
use std::collections::BTreeSet;

fn signed_bytes(receipt: &Value) -> Result<Vec<u8>, JsonError> {
    let mut unsigned = receipt.clone();
    if let Some(members) = unsigned.as_object_mut() {
        members.remove("signatures");
        members.remove("anchors");
    }
    json::canonical(&unsigned)
}

/// The members of `oap-receipt.schema.json`; a receipt has no others.
const MEMBERS: [&str; 24] = [
    "receipt_id",
    "type",
    "timestamp",
    "principal_did",
    "agent_did",
    "tool_did",
    "action_id",
    "action_version",
    "input_hash",
    "output_hash",
    "model_version",
    "cost",
    "policy_decisions",
    "provenance_tags_in",
    "provenance_tags_out",
    "consumption_proof",
    "citations",
    "commerce_primitive",
    "irreversibility",
    "escalation",
    "zkp",
    "previous_receipt_hash",
    "anchors",
    "signatures",
];
/// Members that no gateway of this protocol writes, and whose content is not judged.
const UNJUDGED: [&str; 10] = [
    "action_version",
    "model_version",
    "cost",
    "provenance_tags_in",
    "consumption_proof",
    "citations",
    "commerce_primitive",
    "irreversibility",
    "escalation",
    "zkp",
];
/// Most signatures of a receipt that are read: the principal's and the agent's.
const MAX_SIGNATURES: usize = 2;

/// A receipt whose signatures were checked. Only [`verify`] makes one.
#[derive(Debug, Clone)]
pub struct VerifiedReceipt {
    /// What it says.
    pub receipt: Receipt,
    /// The hash that the next receipt names.
    pub hash: Hash,
    /// The agent's key, where the agent countersigned and its document was at hand.
    pub countersigned: Option<Kid>,
    /// What no document at hand covers.
    pub unchecked: Vec<Unchecked>,
}

impl VerifiedReceipt {
    /// The same, where it is not from the future.
    ///
    /// # Errors
    /// [`ReceiptError::Future`].
    pub fn as_of(self, now: Timestamp) -> Result<Self, ReceiptError> {
        match self.receipt.timestamp {
            at if at > now.plus(MAX_SKEW) => Err(ReceiptError::Future(0, at)),
            _ => Ok(self),
        }
    }
}

/// Reads a receipt, checks every one of its signatures, and judges what it says by its action. The whole JSON that was
/// received is what is checked.
///
/// # Errors
/// [`ReceiptError`].
pub fn verify(receipt: &Value, documents: &dyn Documents) -> Result<VerifiedReceipt, ReceiptError> {
    verify_at(receipt, documents, 0, false)
}

pub(super) fn verify_at(
    value: &Value,
    documents: &dyn Documents,
    index: usize,
    may_be_unsigned: bool,
) -> Result<VerifiedReceipt, ReceiptError> {
    let receipt: Receipt =
        json::from_value(value.clone()).map_err(|e| ReceiptError::Malformed(index, e.to_string()))?;
    let mut members = value.as_object().into_iter().flat_map(|members| members.keys());
    if let Some(name) = members.find(|name| !MEMBERS.contains(&name.as_str())) {
        return Err(ReceiptError::UnknownMember(index, quoted(name)));
    }
    if receipt.previous_receipt_hash != GENESIS && receipt.previous_receipt_hash.parse::<Hash>().is_err() {
        return Err(ReceiptError::Previous(index));
    }
    if receipt.signatures.len() > MAX_SIGNATURES {
        return Err(ReceiptError::Signatures(index));
    }
    let document = documents.document(&receipt.principal_did).ok_or(ReceiptError::OtherChain(index))?;
    let bytes = signed_bytes(value)?;
    let mut signers = BTreeSet::new();
    let mut countersigned = None;
    let mut unchecked = Vec::new();
    for signature in &receipt.signatures {
        let by = signature.by.did();
        if !signers.insert(by) {
            return Err(ReceiptError::RepeatedSigner(index, by.clone()));
        }
        if signature.alg != "EdDSA" {
            return Err(ReceiptError::Algorithm(index));
        }
        if *by == receipt.principal_did {
            let since = holds(signature, document, &bytes, receipt.timestamp)
                .map_err(|e| ReceiptError::Signature(index, e))?;
            unchecked.extend(dated(signature, since));
        } else if by.as_str() != receipt.agent_did {
            return Err(ReceiptError::Stranger(index, by.clone()));
        } else if let Some(document) = documents.document(by) {
            let since = holds(signature, document, &bytes, receipt.timestamp)
                .map_err(|e| ReceiptError::Countersignature(index, e))?;
            unchecked.extend(dated(signature, since));
            countersigned = Some(signature.by.clone());
        } else {
            unchecked.push(Unchecked::Countersignature { receipt: receipt.receipt_id, by: by.clone() });
        }
    }
    let is_unsigned = may_be_unsigned && receipt.signatures.is_empty() && receipt.head_length().is_some();
    if !signers.contains(&receipt.principal_did) && !is_unsigned {
        return Err(ReceiptError::Unsigned(index));
    }
    if receipt.signatures.len() == 1 && receipt.agent_did != receipt.principal_did.as_str() {
        unchecked.push(Unchecked::Agents(1));
    }
    unchecked.extend(content::check(&receipt, index)?);
    let unjudged: Vec<&str> = UNJUDGED.into_iter().filter(|name| value.get(name).is_some()).collect();
    if !unjudged.is_empty() {
        unchecked.push(Unchecked::Members { receipt: receipt.receipt_id, members: unjudged.join(", ") });
    }
    if let Some(anchors) = value.get("anchors") {
        check_anchors(anchors).ok_or(ReceiptError::Anchors(index))?;
        unchecked.push(Unchecked::Anchors(receipt.receipt_id));
    }
    let hash = Hash::of(&bytes);
    Ok(VerifiedReceipt { receipt, hash, countersigned, unchecked })
}

fn dated(signature: &ReceiptSignature, since: Option<Timestamp>) -> Option<Unchecked> {
    Some(Unchecked::DatedByCompromisedKey { kid: signature.by.clone(), since: since? })
}

/// That a signature counts; since when its key is compromised, where it was later.
fn holds(
    signature: &ReceiptSignature,
    document: &DidDocument,
    bytes: &[u8],
    at: Timestamp,
) -> Result<Option<Timestamp>, SignedError> {
    Ok(signature.verify(bytes, document, at)?.revoked_at())
}

/// That anchors have the shape of the schema; what they say is not checked.
fn check_anchors(anchors: &Value) -> Option<()> {
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Anchor {
        #[serde(default, rename = "log_id")]
        _log_id: Option<String>,
        #[serde(default, rename = "log_index")]
        _log_index: Option<i64>,
        #[serde(default, rename = "inclusion_proof")]
        _inclusion_proof: Option<String>,
    }
    json::from_value::<Vec<Anchor>>(anchors.clone()).ok().map(drop)
}

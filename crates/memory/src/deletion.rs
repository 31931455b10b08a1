//! The Deletion Receipt (OAP-CORE 17.3, `oap-deletion-receipt.schema.json`): what a gateway says that it destroyed.
//!
//! The schema is closed but for `scope`, which carries (+) `items`, the versions whose keys were destroyed, each
//! `<item_id>@<commitment>` as receipts name them, and (+) `cascade`, what followed. The commitments are salted: a reader
//! who never had an item learns nothing of it.

use crate::receipt::read_tag;
use crate::unchecked::Unchecked;
use oap_identity::json::{self, JsonError};
use oap_identity::signed::SignedError;
use oap_identity::time::MAX_SKEW;
use oap_identity::{
    DeletionId, DetachedSignature, Did, Documents, GrantId, Hash, ItemId, ScopeId, Signer, Timestamp,
};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeSet;

/// A Deletion Receipt, without its signature.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[allow(missing_docs, reason = "the names say it")]
pub struct DeletionReceipt {
    pub receipt_id: DeletionId,
    /// The gateway that deleted.
    pub tool_did: Did,
    /// Whose memory it was.
    pub principal_did: Did,
    /// The scope, where the deletion was of one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scope_id: Option<ScopeId>,
    /// When it was asked for.
    pub request_received_at: Timestamp,
    /// When the keys were gone.
    pub completed_at: Timestamp,
    pub method: Method,
    pub scope: DeletionScope,
    /// What was kept, and why.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub exceptions: Vec<Exception>,
}

crate::item::closed_enum! {
    /// How something was deleted.
    Method {
        /// Its keys were destroyed.
        CryptographicErasure = "cryptographic_erasure",
        /// It was overwritten.
        PhysicalOverwrite = "physical_overwrite",
        /// It was taken out.
        LogicalPurge = "logical_purge",
        /// It was marked.
        Tombstone = "tombstone",
    }
}

/// What was deleted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DeletionScope {
    /// `memory_item`.
    #[serde(default)]
    pub data_classes: Vec<String>,
    /// The provenance tags that the request named.
    #[serde(default)]
    pub provenance_tags: Vec<String>,
    /// Others that were told.
    #[serde(default)]
    pub subprocessors_propagated_to: Vec<String>,
    /// The versions in force whose keys were destroyed, `<item_id>@<commitment>`, ascending.
    pub items: Vec<String>,
    /// What followed.
    pub cascade: Cascade,
}

/// What followed a deletion.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Cascade {
    /// The items that the request selected.
    pub named: Vec<ItemId>,
    /// The items that were made from them.
    pub derived: Vec<ItemId>,
    /// Items under a legal hold: out of every view, and kept.
    pub held: Vec<ItemId>,
    /// Named items that were not there.
    pub not_found: Vec<ItemId>,
    /// The grants whose slice became smaller.
    pub grants_shrunk: Vec<GrantId>,
    /// Selected items that are still here: ask again.
    pub remaining: u64,
}

crate::item::closed_enum! {
    /// Why an item is kept (`oap-deletion-receipt.schema.json`).
    HoldReason {
        /// A court or an authority asks for it.
        LegalHold = "legal_hold",
        /// A law says how long it is kept.
        RegulatoryRetention = "regulatory_retention",
        /// It is evidence in a dispute.
        OngoingDispute = "ongoing_dispute",
    }
}

/// What was kept.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[allow(missing_docs, reason = "the names say it")]
pub struct Exception {
    pub reason: HoldReason,
    /// Until which day, `2026-05-11`.
    pub retention_until: String,
}

crate::reasons! {
    /// Why a Deletion Receipt was refused.
    #[allow(missing_docs, reason = "the names say it")]
    DeletionError {
        /// A member that is missing, unknown or of the wrong shape; the text names it.
        #[error("{0}")]
        Malformed(String) = "deletion.malformed",
        /// No signature of the three members.
        #[error("signature: must be alg, kid and value")]
        Unsigned = "deletion.unsigned",
        /// Another gateway than the principal's.
        #[error("tool_did: must be the principal")]
        Tool = "deletion.tool",
        /// Signed by another.
        #[error("signature: it is by another than tool_did")]
        Signer = "deletion.signer",
        #[error("signature: {0}")]
        Signature(SignedError) = "deletion.signature",
        /// Done before it was asked for.
        #[error("completed_at: is earlier than request_received_at")]
        Times = "deletion.times",
        /// From the future.
        #[error("completed_at: is in the future")]
        Future = "deletion.future",
        /// A tag that is no `<item_id>@<commitment>`, or tags that do not ascend.
        #[error("scope.items: must be <item_id>@<commitment>, ascending")]
        Items = "deletion.items",
        /// The cascade names other items.
        #[error("scope.cascade: named and derived must be the items of scope.items, each once")]
        Cascade = "deletion.cascade",
        /// Something was kept without a reason.
        #[error("exceptions: what is held needs one")]
        Exceptions = "deletion.exceptions",
        /// No day.
        #[error("retention_until: must be a day, such as 2026-05-11")]
        Until = "deletion.until",
        /// No canonical form.
        #[error("{0}")]
        Json(#[from] JsonError) = "deletion.json",
    }
}

/// A Deletion Receipt whose signature and content were checked. Only [`verify`] makes one.
#[derive(Debug, Clone)]
pub struct VerifiedDeletion {
    /// What it says.
    pub receipt: DeletionReceipt,
    /// The hash of the whole, signature included: `output_hash` of the receipt of type `deletion` in the gateway's chain.
    pub hash: Hash,
    /// What was not checked.
    pub unchecked: Vec<Unchecked>,
}

impl DeletionReceipt {
    /// The document, signed.
    ///
    /// # Errors
    /// When it has no canonical form.
    pub fn sign(&self, signer: &Signer) -> Result<Value, JsonError> {
        let mut document = serde_json::to_value(self).map_err(|e| JsonError::NotCanonical(e.to_string()))?;
        let signature = DetachedSignature::sign(&json::canonical(&document)?, signer);
        document["signature"] = serde_json::json!(signature);
        Ok(document)
    }
}

/// Whether a document is meant as a Deletion Receipt.
#[must_use]
pub fn is_deletion(document: &Value) -> bool {
    document["receipt_id"].as_str().is_some_and(|id| id.parse::<DeletionId>().is_ok())
}

/// Checks a Deletion Receipt.
///
/// # Errors
/// [`DeletionError`].
pub fn verify(
    document: &Value,
    documents: &dyn Documents,
    now: Timestamp,
) -> Result<VerifiedDeletion, DeletionError> {
    let mut unsigned = document.clone();
    let signature = unsigned.as_object_mut().and_then(|members| members.remove("signature"));
    let bytes = json::canonical(&unsigned)?;
    let receipt: DeletionReceipt =
        json::from_value(unsigned).map_err(|e| DeletionError::Malformed(e.to_string()))?;
    let signature: DetachedSignature =
        json::from_value(signature.unwrap_or_default()).map_err(|_| DeletionError::Unsigned)?;
    if receipt.tool_did != receipt.principal_did {
        return Err(DeletionError::Tool);
    }
    if *signature.kid.did() != receipt.tool_did {
        return Err(DeletionError::Signer);
    }
    signature.verify(&bytes, documents, receipt.completed_at).map_err(DeletionError::Signature)?;
    if receipt.completed_at < receipt.request_received_at {
        return Err(DeletionError::Times);
    }
    if receipt.completed_at > now.plus(MAX_SKEW) {
        return Err(DeletionError::Future);
    }
    check_scope(&receipt)?;
    let hash = Hash::of_canonical(document)?;
    let mut unchecked = vec![Unchecked::Absence];
    let since = documents.key_of(&signature.kid).and_then(|key| key.revoked_at());
    unchecked.extend(since.map(|since| Unchecked::DatedByCompromisedKey { kid: signature.kid, since }));
    Ok(VerifiedDeletion { receipt, hash, unchecked })
}

fn check_scope(receipt: &DeletionReceipt) -> Result<(), DeletionError> {
    let scope = &receipt.scope;
    let mut deleted = BTreeSet::new();
    let mut before = "";
    for tag in &scope.items {
        let (item, _) = read_tag(tag).ok_or(DeletionError::Items)?;
        if tag.as_str() <= before || !deleted.insert(item) {
            return Err(DeletionError::Items);
        }
        before = tag;
    }
    let cascade = &scope.cascade;
    let told: BTreeSet<ItemId> = cascade.named.iter().chain(&cascade.derived).copied().collect();
    if told != deleted || cascade.named.len() + cascade.derived.len() != deleted.len() {
        return Err(DeletionError::Cascade);
    }
    if cascade.held.iter().any(|item| deleted.contains(item)) {
        return Err(DeletionError::Cascade);
    }
    if !cascade.held.is_empty() && receipt.exceptions.is_empty() {
        return Err(DeletionError::Exceptions);
    }
    let is_day = |day: &str| format!("{day}T00:00:00Z").parse::<Timestamp>().is_ok();
    if receipt.exceptions.iter().any(|kept| !is_day(&kept.retention_until)) {
        return Err(DeletionError::Until);
    }
    Ok(())
}

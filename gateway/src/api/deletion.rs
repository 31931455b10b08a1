//! Deletion (OAP-CORE 17.3).

use super::selections::Selection;
use super::{Document, endpoints};
use oap_identity::{DeletionId, GrantId, ItemId};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

endpoints! {
    /// Erases what a selection selects, and what was made of it, for good.
    Delete: POST "/oap/data/delete" needs Admin body(Selection) answers(Deleted);
}

/// What a deletion did.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Deleted {
    /// The receipt of `oap-deletion-receipt.schema.json`, signed.
    pub deletion_receipt: Document<DeletionNote>,
    /// What was erased, and what followed it.
    pub cascade_report: CascadeReport,
}

/// What is read of a deletion receipt.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[allow(missing_docs, reason = "the names say it")]
pub struct DeletionNote {
    pub receipt_id: DeletionId,
}

/// What was erased.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CascadeReport {
    /// The items that the request named.
    pub erased: Vec<ItemId>,
    /// The items that were made from them.
    pub derived: Vec<ItemId>,
    /// The grants whose slice became smaller.
    pub grants_shrunk: Vec<GrantId>,
    /// Items that the request selects, or that follow one, and that are still here: more than one deletion takes; ask again.
    #[serde(default)]
    pub remaining: usize,
    /// Items under a legal hold: taken out of every view now, erased when the hold ends.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub held: Vec<ItemId>,
    /// Named items that were not there: never, or erased before.
    pub not_found: Vec<ItemId>,
}

//! Deletion (OAP-CORE 17.3).

use super::access::Failure;
use super::selections::Selection;
use super::{Document, endpoints};
use oap_identity::{DeletionId, Did, GrantId, ItemId, Timestamp};
use oap_memory::closed_enum;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeSet;

endpoints! {
    /// Erases what a selection selects, and what was made of it, for good.
    Delete: POST "/oap/data/delete" needs Admin body(Selection) answers(Deleted);
    /// Who was shown something of a deletion, and what they said when they were told.
    ReportDeletion: GET "/oap/owner/deletions/{deletion}" at(DeletionId) needs Admin answers(DeletionReport);
}

/// What a deletion did.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Deleted {
    /// The receipt of `oap-deletion-receipt.schema.json`, signed.
    pub deletion_receipt: Document<DeletionNote>,
    /// What was erased, and what followed it.
    pub cascade_report: CascadeReport,
}

/// What a deletion in steps did.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct DeletedInSteps {
    /// The signed receipt of each step, in their order.
    pub deletion_receipts: Vec<Document<DeletionNote>>,
    /// What all steps did, each item and grant once; `remaining` is what the last step left.
    pub cascade_report: CascadeReport,
}

impl DeletedInSteps {
    /// Adds what came after.
    pub fn add(&mut self, receipts: impl IntoIterator<Item = Document<DeletionNote>>, report: CascadeReport) {
        self.deletion_receipts.extend(receipts);
        let all = &mut self.cascade_report;
        join(&mut all.erased, report.erased);
        join(&mut all.derived, report.derived);
        join(&mut all.grants_shrunk, report.grants_shrunk);
        join(&mut all.held, report.held);
        join(&mut all.not_found, report.not_found);
        join(&mut all.told, report.told);
        all.remaining = report.remaining;
    }
}

/// Adds what is not there yet.
fn join<T: Ord + Clone>(all: &mut Vec<T>, more: Vec<T>) {
    let known: BTreeSet<T> = if more.is_empty() { BTreeSet::new() } else { all.iter().cloned().collect() };
    all.extend(more.into_iter().filter(|one| !known.contains(one)));
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
    /// The grantees who were shown something of it, and whose gateways are told.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub told: Vec<Did>,
}

closed_enum! {
    /// What a grantee said to a deletion.
    ToldState {
        /// It is told, for the first time or again.
        Waiting = "waiting",
        /// Its signed Deletion Receipt says that it has none of the items.
        Confirmed = "confirmed",
        /// It answered, and did not confirm it.
        Refused = "refused",
        /// It did not answer for as long as it was tried, or there was no room to tell it.
        Unreachable = "unreachable",
        /// It has no gateway that could answer.
        Unprovable = "unprovable",
    }
}

/// How far a deletion came at those who were shown something of it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct DeletionReport {
    /// The deletion, by the id of its receipt.
    pub deletion: DeletionId,
    /// By grantee; of one who was shown much, in several parts. None where nobody was shown anything.
    pub grantees: Vec<ToldGrantee>,
}

/// What a grantee was told of a deletion.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[allow(missing_docs, reason = "the names say it")]
pub struct ToldGrantee {
    pub grantee: Did,
    /// What they were shown of it.
    pub items: Vec<ItemId>,
    pub state: ToldState,
    /// Since when it is so.
    pub since: Timestamp,
    /// How often it was tried, while it waits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attempts: Option<u32>,
    /// Why the last attempt came to nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<Failure>,
    /// What the grantee's gateway signed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deletion_receipt: Option<Value>,
}

//! Deletion (OAP-CORE 17.3, protocol section 8): content keys are destroyed, links stay.

use crate::error::Error;
use crate::gateway::Gateway;
use crate::ledger::chain_of;
use crate::service::holds::{Hold, HoldReason};
use crate::service::items::whole;
use crate::tables;
use oap_identity::{DeletionId, Hash, ItemId, ScopeId, Timestamp, json};
use oap_memory::Head;
use oap_memory::chain::Event;
use oap_memory::receipt::{ReceiptType, item_tag};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Most items that one deletion erases; the report says how many remain.
pub const MAX_DELETED: usize = 10_000;

/// What to delete: every item that one of the lists names, or all.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DeleteRequest {
    /// These items.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub items: Vec<ItemId>,
    /// Items with one of these labels.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub labels: Vec<String>,
    /// Items about one of these subjects.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub subjects: Vec<String>,
    /// Items of one of these scopes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub scopes: Vec<ScopeId>,
    /// Items with one of these provenance tags: `<member>=<value>` of their provenance, such as
    /// `imported_from=chatgpt`, or `<item_id>@<commitment>` as receipts name them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub provenance_tags: Vec<String>,
    /// Items captured at or after this time; with other conditions, of those only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub captured_after: Option<Timestamp>,
    /// Items captured before this time; with other conditions, of those only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub captured_before: Option<Timestamp>,
    /// Everything.
    #[serde(default)]
    pub all: bool,
}

/// What a deletion did.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Deleted {
    /// The receipt of `oap-deletion-receipt.schema.json`, signed.
    pub deletion_receipt: Value,
    /// What was erased, and what followed it.
    pub cascade_report: CascadeReport,
}

/// What was erased.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct CascadeReport {
    /// The items that the request named.
    pub erased: Vec<ItemId>,
    /// The items that were made from them.
    pub derived: Vec<ItemId>,
    /// The grants whose slice became smaller.
    pub grants_shrunk: Vec<oap_identity::GrantId>,
    /// Items that the request selects and that are still here: more than one deletion takes; ask again.
    #[serde(default)]
    pub remaining: usize,
    /// Items under a legal hold: taken out of every view now, erased when the hold ends.
    #[serde(default)]
    pub held: Vec<ItemId>,
    /// Named items that were not there.
    pub not_found: Vec<ItemId>,
}

impl Gateway {
    /// Erases items and everything that was made from them. When this returns their keys are overwritten.
    ///
    /// # Errors
    /// [`Error::Member`] for a request that names nothing.
    pub async fn delete(self: &Arc<Self>, request: DeleteRequest) -> Result<Deleted, Error> {
        let received = self.clock.now();
        let mut report = self.select(&request)?;
        let holds = self.holds()?;
        let all: Vec<ItemId> = report.erased.iter().chain(&report.derived).copied().collect();
        let (held, doomed): (Vec<ItemId>, Vec<ItemId>) =
            all.iter().partition(|item| holds.contains_key(item));
        let exceptions: Vec<Hold> = held.iter().filter_map(|item| holds.get(item).cloned()).collect();
        report.erased.retain(|item| !holds.contains_key(item));
        report.derived.retain(|item| !holds.contains_key(item));
        report.held.clone_from(&held);
        report.grants_shrunk = self.shrunk(&all);
        let gateway = self.clone();
        let stored = self
            .commit(move |w| {
                w.tx.use_reserve();
                let mut by_scope: BTreeMap<ScopeId, Vec<String>> = BTreeMap::new();
                for item in &doomed {
                    let (_, head) = tables::head(w.tx, *item)?;
                    w.erase(*item, Event::Erase)?;
                    by_scope.entry(head.scope_id).or_default().push(item.to_string());
                }
                for item in &held {
                    w.await_end(*item)?;
                }
                let receipt = deletion_receipt(w, received, &request, &exceptions)?;
                let hash = Hash::of_canonical(&receipt)?;
                let scopes: Vec<ScopeId> = if by_scope.is_empty() {
                    vec![gateway.config.default_scope.clone()]
                } else {
                    by_scope.into_keys().collect()
                };
                for scope in scopes {
                    let agent = gateway.principal.as_str();
                    let mut draft = gateway.draft(ReceiptType::Deletion, "memory.delete", agent);
                    draft.rules = vec!["principal".to_owned()];
                    draft.more.insert("deletion_receipt".into(), receipt["receipt_id"].clone());
                    draft.output_hash = Some(hash);
                    w.receipt(&chain_of(&scope), draft)?;
                }
                Ok(receipt)
            })
            .await?;
        if let Some(embeddings) = &self.embeddings {
            embeddings.clear();
        }
        metrics::counter!("oap_items_erased_total")
            .increment((report.erased.len() + report.derived.len()) as u64);
        Ok(Deleted { deletion_receipt: stored.into_inner(), cascade_report: report })
    }

    fn select(&self, request: &DeleteRequest) -> Result<CascadeReport, Error> {
        let unnamed = request.items.is_empty()
            && request.labels.is_empty()
            && request.subjects.is_empty()
            && request.scopes.is_empty()
            && request.provenance_tags.is_empty();
        let timed = request.captured_after.is_some() || request.captured_before.is_some();
        if unnamed && !timed && !request.all {
            let fix = "name items, labels, subjects, scopes, provenance tags or times, or say all";
            return Err(Error::Member("items", fix.into()));
        }
        if request.captured_after.zip(request.captured_before).is_some_and(|(after, before)| before <= after)
        {
            return Err(Error::Member("captured_before", "must be later than captured_after".into()));
        }
        let heads = self.catalog.all();
        let named: BTreeSet<ItemId> = request.items.iter().copied().collect();
        let mut erased: BTreeSet<ItemId> = heads
            .iter()
            .filter(|head| {
                request.captured_after.is_none_or(|after| head.captured_at >= after)
                    && request.captured_before.is_none_or(|before| head.captured_at < before)
            })
            .filter(|head| {
                request.all
                    || (unnamed && timed)
                    || named.contains(&head.item_id)
                    || head.labels.iter().any(|label| request.labels.contains(label))
                    || head.subject_entity_id.as_ref().is_some_and(|s| request.subjects.contains(s))
                    || request.scopes.contains(&head.scope_id)
                    || self.is_tagged(head, &request.provenance_tags)
            })
            .map(|head| head.item_id)
            .collect();
        let mut remaining = 0;
        if let Some(first) = erased.iter().nth(MAX_DELETED).copied() {
            remaining = erased.split_off(&first).len();
        }
        // What was made from an erased item follows it, and what was made from that.
        let mut gone = erased.clone();
        loop {
            let before = gone.len();
            for head in &heads {
                if head.derived_from.iter().any(|source| gone.contains(source)) {
                    gone.insert(head.item_id);
                }
            }
            if gone.len() == before {
                break;
            }
        }
        Ok(CascadeReport {
            not_found: named.difference(&gone).copied().collect(),
            derived: gone.difference(&erased).copied().collect(),
            erased: erased.into_iter().collect(),
            grants_shrunk: Vec::new(),
            held: Vec::new(),
            remaining,
        })
    }

    /// Whether an item has one of these provenance tags.
    fn is_tagged(&self, head: &Head, tags: &[String]) -> bool {
        if tags.is_empty() {
            return false;
        }
        let Ok(committed) = tables::version(&self.store, head.item_id, head.version_seq) else {
            return false;
        };
        let own = item_tag(head.item_id, committed.commitment());
        let Ok(item) = whole(&committed) else { return false };
        let provenance = item.get("provenance");
        tags.iter().any(|tag| {
            *tag == own
                || tag.split_once('=').is_some_and(|(member, value)| {
                    match provenance.and_then(|p| p.get(member)) {
                        Some(Value::String(text)) => text == value,
                        Some(other) => {
                            serde_json::from_str::<Value>(value).is_ok_and(|value| value == *other)
                        }
                        None => false,
                    }
                })
        })
    }

    /// The active grants that admit one of the items.
    fn shrunk(&self, items: &[ItemId]) -> Vec<oap_identity::GrantId> {
        let now = self.clock.now();
        let heads: Vec<_> = items.iter().filter_map(|item| self.catalog.get(*item)).collect();
        let keys = self.keys();
        self.shelf
            .all()
            .iter()
            .map(|shelved| &shelved.record)
            .filter(|record| {
                record.state(keys.document(), now) == oap_grants::GrantState::Active && {
                    let grant = record.grant.grant();
                    let own_agent = grant.grantee == self.principal;
                    heads.iter().any(|head| grant.filter.admits(head, &grant.granter.scope, own_agent, now))
                }
            })
            .map(|record| record.grant.grant().grant_id)
            .collect()
    }
}

fn deletion_receipt(
    w: &crate::ledger::Writing,
    received: Timestamp,
    request: &DeleteRequest,
    exceptions: &[Hold],
) -> Result<Value, Error> {
    let gateway = w.gateway;
    let mut receipt = json!({
        "receipt_id": DeletionId::new(w.now, &*gateway.random),
        "tool_did": gateway.principal,
        "principal_did": gateway.principal,
        "request_received_at": received,
        "completed_at": w.now.max(received),
        "method": "cryptographic_erasure",
        "scope": {
            "data_classes": ["memory_item"],
            "provenance_tags": request.provenance_tags,
            "subprocessors_propagated_to": [],
        },
    });
    if !exceptions.is_empty() {
        let stated = exceptions.iter().map(|hold| (hold.reason, hold.until.date()));
        let stated: BTreeSet<(HoldReason, String)> = stated.collect();
        let stated = stated.iter().map(|(reason, until)| json!({"reason": reason, "retention_until": until}));
        receipt["exceptions"] = Value::Array(stated.collect());
    }
    let signer = w.keys.current();
    let value = signer.sign(&json::canonical(&receipt)?);
    receipt["signature"] = json!({"alg": "EdDSA", "kid": signer.kid(), "value": value});
    Ok(receipt)
}

//! Deletion (OAP-CORE 17.3, protocol section 8): content keys are destroyed, links stay.

use crate::error::Error;
use crate::gateway::Gateway;
use crate::ledger::chain_of;
use oap_identity::{DeletionId, Hash, ItemId, ScopeId, Timestamp, json};
use oap_memory::chain::Event;
use oap_memory::receipt::ReceiptType;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Most items of one deletion.
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
    /// Named items that were not there.
    pub not_found: Vec<ItemId>,
}

impl Gateway {
    /// Erases items and everything that was made from them. When this returns their keys are overwritten.
    ///
    /// # Errors
    /// [`Error::Member`] for a request that names nothing or more than [`MAX_DELETED`] items.
    pub async fn delete(self: &Arc<Self>, request: DeleteRequest) -> Result<Deleted, Error> {
        let received = self.clock.now();
        let mut report = self.select(&request)?;
        let doomed: Vec<ItemId> = report.erased.iter().chain(&report.derived).copied().collect();
        if doomed.len() > MAX_DELETED {
            return Err(Error::Member("items", format!("at most {MAX_DELETED} at once; delete in parts")));
        }
        report.grants_shrunk = self.shrunk(&doomed);
        let gateway = self.clone();
        let stored = self
            .commit(move |w| {
                let mut by_scope: BTreeMap<ScopeId, Vec<String>> = BTreeMap::new();
                for item in &doomed {
                    let (_, head) = crate::tables::head(w.tx, *item)?;
                    w.erase(*item, Event::Erase)?;
                    by_scope.entry(head.scope_id).or_default().push(item.to_string());
                }
                let receipt = deletion_receipt(w, received)?;
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
        let empty = request.items.is_empty()
            && request.labels.is_empty()
            && request.subjects.is_empty()
            && request.scopes.is_empty();
        if empty && !request.all {
            return Err(Error::Member("items", "name items, labels, subjects or scopes, or say all".into()));
        }
        let heads = self.catalog.all();
        let named: BTreeSet<ItemId> = request.items.iter().copied().collect();
        let erased: BTreeSet<ItemId> = heads
            .iter()
            .filter(|head| {
                request.all
                    || named.contains(&head.item_id)
                    || head.labels.iter().any(|label| request.labels.contains(label))
                    || head.subject_entity_id.as_ref().is_some_and(|s| request.subjects.contains(s))
                    || request.scopes.contains(&head.scope_id)
            })
            .map(|head| head.item_id)
            .collect();
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
            .filter(|(record, _)| {
                record.state(keys.document(), now) == oap_grants::GrantState::Active && {
                    let grant = record.grant.grant();
                    let own_agent = grant.grantee == self.principal;
                    heads.iter().any(|head| grant.filter.admits(head, &grant.granter.scope, own_agent, now))
                }
            })
            .map(|(record, _)| record.grant.grant().grant_id)
            .collect()
    }
}

fn deletion_receipt(w: &crate::ledger::Writing, received: Timestamp) -> Result<Value, Error> {
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
            "provenance_tags": [],
            "subprocessors_propagated_to": [],
        },
    });
    let signer = w.keys.current();
    let value = signer.sign(&json::canonical(&receipt)?);
    receipt["signature"] = json!({"alg": "EdDSA", "kid": signer.kid(), "value": value});
    Ok(receipt)
}

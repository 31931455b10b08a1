//! Deletion (OAP-CORE 17.3, protocol section 8): content keys are destroyed, links stay.

use crate::api::Document;
pub use crate::api::deletion::{CascadeReport, Deleted};
use crate::error::Error;
use crate::service::Deletions;
use crate::service::deletion_plan::DeletionPlan;
use crate::service::holds::Hold;
use crate::service::selection::Tagged;
use crate::state::commits::chain_of;
use crate::state::owner::Owner;
use crate::state::owner::mark::{Admin, Permits};
use crate::state::schema;
use oap_identity::{DeletionId, Hash, ScopeId, Timestamp};
use oap_memory::Head;
use oap_memory::chain::Event;
use oap_memory::deletion::{Cascade, DeletionReceipt, DeletionScope, Exception, HoldReason, Method};
use oap_memory::receipt::{Action, item_tag};
use serde_json::Value;
use std::collections::BTreeSet;
use std::sync::Arc;

/// Most items that one deletion erases or sets aside under a hold, what follows them included; the report says how many remain.
pub const MAX_DELETED: usize = 10_000;

/// What to delete.
pub use crate::service::selection::Selection as DeleteRequest;

impl Deletions<'_> {
    /// Erases items and everything that was made from them. When this returns their keys are overwritten.
    ///
    /// What is erased is selected in the transaction that erases it; an item that another deletion took meanwhile counts as gone.
    /// A deletion of items that are gone is recorded and says so, so that one that is sent twice is answered twice.
    ///
    /// # Errors
    /// [`Error::Member`] for a request that names nothing; [`Error::NothingMatched`] where nothing is selected and no named item is
    /// gone: nothing is signed or recorded then.
    pub async fn delete(
        self,
        owner: &Owner<impl Permits<Admin>>,
        request: DeleteRequest,
    ) -> Result<Deleted, Error> {
        let received = self.0.clock.now();
        request.check()?;
        let tagged = Tagged::look(self.0, &request).await?;
        let gateway = self.0.clone();
        let stored = self
            .0
            .commit_as(owner, move |w| {
                w.tx.use_reserve();
                let plan = w.deletion_plan(&request, &tagged)?;
                if plan.is_empty() {
                    return Err(Error::NothingMatched);
                }
                let mut by_scope: BTreeSet<ScopeId> = BTreeSet::new();
                let mut gone = Vec::with_capacity(plan.order.len());
                for item in &plan.order {
                    let (_, head) = schema::head(w.tx, *item)?;
                    gone.push(item_tag(*item, w.erase(*item, Event::Erase)?.commitment));
                    by_scope.insert((*head.scope_id).clone());
                }
                for item in plan.held.keys() {
                    w.await_end(*item)?;
                }
                let held: Vec<Hold> = plan.held.values().cloned().collect();
                let report = Deletions(&gateway).report(plan);
                let receipt = deletion_receipt(w, received, &request, gone, &report, &held)?;
                let hash = Hash::of_canonical(&receipt)?;
                if by_scope.is_empty() {
                    by_scope.insert(gateway.config.default_scope.clone());
                }
                for scope in by_scope {
                    let agent = gateway.principal.as_str();
                    let mut draft = gateway.draft(Action::Delete, agent);
                    draft.rules = vec!["principal".to_owned()];
                    draft.more.insert("deletion_receipt".into(), receipt["receipt_id"].clone());
                    draft.output_hash = Some(hash);
                    w.receipt(&chain_of(&scope), draft)?;
                }
                Ok((receipt, report))
            })
            .await?;
        let (deletion_receipt, cascade_report) = stored;
        metrics::counter!("oap_items_erased_total")
            .increment((cascade_report.erased.len() + cascade_report.derived.len()) as u64);
        Ok(Deleted { deletion_receipt: Document::read(deletion_receipt)?, cascade_report })
    }

    fn report(self, plan: DeletionPlan) -> CascadeReport {
        CascadeReport {
            grants_shrunk: self.shrunk(&plan.heads),
            erased: plan.erased.into_iter().collect(),
            derived: plan.derived.into_iter().collect(),
            held: plan.held.into_keys().collect(),
            not_found: plan.not_found,
            remaining: plan.remaining,
        }
    }

    /// The active grants that admit one of the items.
    pub(crate) fn shrunk(self, heads: &[Arc<Head>]) -> Vec<oap_identity::GrantId> {
        let now = self.0.clock.now();
        let keys = self.0.keys();
        self.0
            .grant_book
            .all()
            .iter()
            .map(|entry| &entry.record)
            .filter(|record| {
                record.state(keys.document(), now) == oap_grants::GrantState::Active && {
                    let grant = record.grant.grant();
                    let own_agent = grant.grantee == self.0.principal;
                    heads.iter().any(|head| grant.filter.admits(head, &grant.granter.scope, own_agent, now))
                }
            })
            .map(|record| record.grant.grant().grant_id)
            .collect()
    }
}

/// What was destroyed, with what followed, signed.
fn deletion_receipt(
    w: &crate::state::commits::Writing,
    received: Timestamp,
    request: &DeleteRequest,
    mut gone: Vec<String>,
    report: &CascadeReport,
    exceptions: &[Hold],
) -> Result<Value, Error> {
    let gateway = w.gateway;
    gone.sort_unstable();
    let kept: BTreeSet<(HoldReason, String)> =
        exceptions.iter().map(|hold| (hold.reason, hold.until.date())).collect();
    let receipt = DeletionReceipt {
        receipt_id: DeletionId::new(w.now, &*gateway.random),
        tool_did: gateway.principal.clone(),
        principal_did: gateway.principal.clone(),
        scope_id: None,
        request_received_at: received,
        completed_at: w.now.max(received),
        method: Method::CryptographicErasure,
        scope: DeletionScope {
            data_classes: vec!["memory_item".to_owned()],
            provenance_tags: request.provenance_tags.clone(),
            subprocessors_propagated_to: Vec::new(),
            items: gone,
            cascade: Cascade {
                named: report.erased.clone(),
                derived: report.derived.clone(),
                held: report.held.clone(),
                not_found: report.not_found.clone(),
                grants_shrunk: report.grants_shrunk.clone(),
                remaining: report.remaining as u64,
            },
        },
        exceptions: kept
            .into_iter()
            .map(|(reason, retention_until)| Exception { reason, retention_until })
            .collect(),
    };
    Ok(receipt.sign(w.keys.current())?)
}

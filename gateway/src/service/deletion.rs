//! Deletion (OAP-CORE 17.3, protocol section 8): content keys are destroyed, links stay.

use crate::api::Document;
pub use crate::api::deletion::{CascadeReport, Deleted, DeletionReport, ToldGrantee};
use crate::error::Error;
use crate::service::deletion_plan::DeletionPlan;
use crate::service::holds::Hold;
use crate::service::selection::Tagged;
use crate::service::who::MAX_RECEIPTS;
use crate::service::{Audit, Deletions, notices};
use crate::state::commits::{Writing, chain_of};
use crate::state::deletion_notices::{self, StoredDeletionNotice, ToldState};
use crate::state::owner::mark::{Admin, Permits};
use crate::state::owner::{Acting, Owner};
use crate::state::schema::{self, DELETIONS, LETTERS, RECEIPTS_OF};
use oap_identity::{DeletionId, Hash, ScopeId, Timestamp, json};
use oap_memory::Head;
use oap_memory::chain::Event;
use oap_memory::deletion::{Cascade, DeletionReceipt, DeletionScope, Exception, HoldReason, Method};
use oap_memory::receipt::{Action, item_tag};
use oap_store::Range;
use serde_json::Value;
use std::collections::BTreeSet;
use std::sync::Arc;

/// Most items that one request erases or sets aside under a hold, what follows them included; the report says how many remain.
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
        self.delete_while(owner.into(), request, |_| Ok(())).await
    }

    /// The same, for whoever acts, where `may` says so in the transaction that erases.
    ///
    /// # Errors
    /// As [`Deletions::delete`], and those of `may`: nothing is erased then.
    pub(crate) async fn delete_while(
        self,
        acting: Acting,
        request: DeleteRequest,
        may: impl FnOnce(&Writing<'_, '_>) -> Result<(), Error> + Send + 'static,
    ) -> Result<Deleted, Error> {
        let received = self.0.clock.now();
        request.check()?;
        let tagged = Arc::new(Tagged::look(self.0, &request).await?);
        self.erase(acting, request, tagged, received, MAX_DELETED, may).await
    }

    /// Erases at most so many items of a request that was received then, in one transaction.
    ///
    /// # Errors
    /// As [`Self::delete_while`].
    pub(crate) async fn erase(
        self,
        acting: Acting,
        request: DeleteRequest,
        tagged: Arc<Tagged>,
        received: Timestamp,
        most: usize,
        may: impl FnOnce(&Writing<'_, '_>) -> Result<(), Error> + Send + 'static,
    ) -> Result<Deleted, Error> {
        let gateway = self.0.clone();
        let stored = self
            .0
            .commit_for(acting, move |w| {
                w.tx.use_reserve();
                may(w)?;
                let plan = w.deletion_plan(&request, &tagged, most)?;
                if plan.is_empty() {
                    return Err(Error::NothingMatched);
                }
                let mut by_scope: BTreeSet<ScopeId> = BTreeSet::new();
                let shown = notices::shown_to(w, &plan.order)?;
                let mut gone = Vec::with_capacity(plan.order.len());
                for item in &plan.order {
                    let (_, head) = schema::head(w.tx, *item)?;
                    gone.push(item_tag(*item, w.erase(*item, Event::Erase)?.commitment));
                    by_scope.insert((*head.scope_id).clone());
                }
                // What waits for its end already is written no second time, however many steps come by it.
                for (item, _) in plan.held.iter().filter(|(_, hold)| !hold.erase_after) {
                    w.await_end(*item)?;
                }
                let held: Vec<Hold> = plan.held.values().cloned().collect();
                let id = DeletionId::new(w.now, &*gateway.random);
                DELETIONS.put(w.tx, &id, &w.now)?;
                let told = notices::tell_deleted(w, id, shown)?;
                let mut report = Deletions(&gateway).report(plan);
                report.told = told.into_iter().collect();
                let receipt = deletion_receipt(w, id, received, &request, gone, &report, &held)?;
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
            told: Vec::new(),
        }
    }

    /// Who was told of a deletion, and what they said.
    ///
    /// # Errors
    /// [`Error::NoDeletion`]; [`Error::Store`], [`Error::Corrupt`].
    pub fn told(self, _: &Owner<impl Permits<Admin>>, deletion: DeletionId) -> Result<DeletionReport, Error> {
        let rows = deletion_notices::of(&self.0.store, deletion)?;
        if rows.is_empty() && !self.was(deletion)? {
            return Err(Error::NoDeletion);
        }
        let mut grantees = Vec::new();
        for row in rows {
            let StoredDeletionNotice { to, items, state, since, letter, receipt } = row;
            let waiting = letter.map(|letter| LETTERS.get(&self.0.store, &letter)).transpose()?.flatten();
            let waiting = waiting.filter(|_| state == ToldState::Waiting);
            grantees.push(ToldGrantee {
                grantee: to,
                items,
                state,
                since,
                attempts: waiting.as_ref().map(|letter| letter.attempts),
                failure: waiting.and_then(|letter| letter.failure),
                deletion_receipt: receipt.map(|receipt| json::parse(receipt.as_bytes())).transpose()?,
            });
        }
        Ok(DeletionReport { deletion, grantees })
    }

    /// Whether there was a deletion: of those before they were noted, the owner's newest receipts say it.
    fn was(self, deletion: DeletionId) -> Result<bool, Error> {
        let store = &self.0.store;
        if DELETIONS.get(store, &deletion)?.is_some() {
            return Ok(true);
        }
        let own = Range::under(&schema::agent(self.0.principal.as_str())).descending();
        for key in RECEIPTS_OF.keys(store, own).take(MAX_RECEIPTS) {
            let (_, place) = key?;
            let receipt = Audit(self.0).receipt_at(place)?;
            let is_it = receipt.policy_decisions.iter().any(|decision| {
                // What a granter's notice was answered with is no deletion of the owner's.
                !decision.more.contains_key("granter_deletion")
                    && decision.more.get("deletion_receipt").is_some_and(|id| *id == *deletion.to_string())
            });
            if is_it {
                return Ok(true);
            }
        }
        Ok(false)
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
    w: &Writing,
    id: DeletionId,
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
        receipt_id: id,
        tool_did: gateway.principal.clone(),
        principal_did: gateway.principal.clone(),
        scope_id: None,
        request_received_at: received,
        completed_at: w.now.max(received),
        method: Method::CryptographicErasure,
        scope: DeletionScope {
            data_classes: vec!["memory_item".to_owned()],
            provenance_tags: request.provenance_tags.clone(),
            subprocessors_propagated_to: report.told.iter().map(ToString::to_string).collect(),
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

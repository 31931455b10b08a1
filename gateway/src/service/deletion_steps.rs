//! A deletion of many items, in steps: each is a transaction of its own, with its own Deletion Receipt and notices.
//!
//! What is selected is settled when it begins, by id: what comes later stays, unless the owner named its id or it is made from what is
//! deleted. Each step reads again, in its transaction, what of those ids is there and still fits.

use crate::api::deletion::DeletedInSteps;
use crate::api::jobs::JobResult;
use crate::error::Error;
use crate::service::deletion::DeleteRequest;
use crate::service::deletion_plan::Heads;
use crate::service::selection::Tagged;
use crate::service::{Deletions, LongWork, Selections};
use crate::state::gateway::blocking;
use crate::state::jobs::Progress;
use crate::state::owner::Owner;
use crate::state::owner::mark::{Admin, Permits};
use oap_identity::{ItemId, Timestamp};
use std::collections::BTreeSet;
use std::sync::Arc;

/// Most items that one step of a job erases or sets aside under a hold, what follows them included.
pub const MAX_STEP: usize = 1_000;
/// Most steps of one job, and so most Deletion Receipts of its result; the report says how many items remain.
pub const MAX_STEPS: usize = 100;

/// A deletion that has begun.
#[derive(Debug)]
pub struct Deleting {
    request: DeleteRequest,
    tagged: Arc<Tagged>,
    /// What is selected and not erased. Never sent as a selection when it is empty: that would select everything.
    open: BTreeSet<ItemId>,
    received: Timestamp,
    /// Most items of one step.
    at_a_time: usize,
    done: DeletedInSteps,
}

impl Deletions<'_> {
    /// Settles what a deletion is of: the ids that are named, or those of what is selected now.
    ///
    /// # Errors
    /// [`Error::Member`] for a request that names nothing; [`Error::NothingMatched`] where nothing is selected; [`Error::Store`].
    pub async fn begin(
        self,
        _: &Owner<impl Permits<Admin>>,
        mut request: DeleteRequest,
        at_a_time: usize,
    ) -> Result<Deleting, Error> {
        let received = self.0.clock.now();
        request.check()?;
        let mut open: BTreeSet<ItemId> = std::mem::take(&mut request.items).into_iter().collect();
        if open.is_empty() {
            let (gateway, selection) = (self.0.clone(), request.clone());
            open = blocking(move || {
                let heads: Heads = gateway.heads.all().into_iter().map(|head| (head.item_id, head)).collect();
                Selections(&gateway).chosen(&heads, &selection, false)
            })
            .await?;
        }
        if open.is_empty() {
            return Err(Error::NothingMatched);
        }
        let tagged = Arc::new(Tagged::look(self.0, &of_ids(&request, &open)).await?);
        Ok(Deleting { request, tagged, open, received, at_a_time, done: DeletedInSteps::default() })
    }
}

/// The same selectors, of these items alone.
fn of_ids(request: &DeleteRequest, items: &BTreeSet<ItemId>) -> DeleteRequest {
    DeleteRequest { items: items.iter().copied().collect(), all: false, ..request.clone() }
}

impl Deleting {
    /// Erases some of what is left, as [`Deletions::delete`] does; whether there is more to erase.
    ///
    /// # Errors
    /// [`Error::NothingMatched`] where the first step finds nothing any more; [`Error::Owner`], [`Error::Store`].
    pub async fn step(
        &mut self,
        deletions: Deletions<'_>,
        owner: &Owner<impl Permits<Admin>>,
    ) -> Result<bool, Error> {
        if self.open.is_empty() {
            return Ok(false);
        }
        let request = of_ids(&self.request, &self.open);
        let (tagged, received, most) = (self.tagged.clone(), self.received, self.at_a_time);
        let step = deletions.erase(owner.into(), request, tagged, received, most, |_| Ok(())).await;
        let step = match step {
            // What is left was deleted by others, or has changed and does not fit any more.
            Err(Error::NothingMatched) if !self.done.deletion_receipts.is_empty() => {
                self.done.cascade_report.remaining = 0;
                return Ok(false);
            }
            step => step?,
        };
        let report = &step.cascade_report;
        let goes_on = report.remaining > 0;
        // What is held stays: what was made from it is erased now.
        for item in report.erased.iter().chain(&report.derived).chain(&report.not_found) {
            self.open.remove(item);
        }
        self.done.add([step.deletion_receipt], step.cascade_report);
        Ok(goes_on)
    }

    /// How many items are selected and not erased.
    #[must_use]
    pub fn open(&self) -> usize {
        self.open.len()
    }

    /// What the steps did so far.
    #[must_use]
    pub const fn done(&self) -> &DeletedInSteps {
        &self.done
    }
}

impl LongWork<'_> {
    /// Deletes in steps, at most [`MAX_STEPS`] of [`MAX_STEP`] items. What the steps did is told where it does not come to its end.
    ///
    /// # Errors
    /// As [`Deletions::delete`]; [`Error::Cancelled`] between two steps.
    pub(crate) async fn delete_in_steps(
        self,
        owner: &Owner<impl Permits<Admin>>,
        request: DeleteRequest,
        progress: &Progress,
    ) -> Result<JobResult, Error> {
        let mut deleting = Deletions(self.0).begin(owner, request, MAX_STEP).await?;
        progress.expect(deleting.open());
        let ended = self.steps(owner, &mut deleting, progress).await;
        let is_begun = !deleting.done.deletion_receipts.is_empty();
        let done = JobResult::Delete(deleting.done);
        if let Err(error) = ended {
            if is_begun {
                progress.so_far(done);
            }
            return Err(error);
        }
        Ok(done)
    }

    async fn steps(
        self,
        owner: &Owner<impl Permits<Admin>>,
        deleting: &mut Deleting,
        progress: &Progress,
    ) -> Result<(), Error> {
        let (mut counted, mut expected) = (0, deleting.open());
        for _ in 0..MAX_STEPS {
            // Asked before each: one that is cancelled during its last has done all.
            progress.go_on()?;
            let goes_on = deleting.step(Deletions(self.0), owner).await?;
            let report = &deleting.done.cascade_report;
            let taken = report.erased.len() + report.derived.len() + report.held.len();
            let more = (taken + report.remaining).saturating_sub(expected);
            progress.expect(more);
            progress.count_more(taken - counted);
            (counted, expected) = (taken, expected + more);
            if !goes_on {
                break;
            }
        }
        Ok(())
    }
}

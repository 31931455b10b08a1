//! The long work that can be asked for as a job: it takes longer than a request may.

use crate::api::audit::Chains;
use crate::api::health::Findings;
use crate::api::items::AllResealed;
pub use crate::api::jobs::JobRequest;
use crate::api::jobs::JobResult;
use crate::api::keys::SignedAgain;
use crate::error::Error;
use crate::service::{Audit, Backups, Health, Items, Keys, LongWork, Memorization};
use crate::state::gateway::blocking;
use crate::state::jobs::{Job, JobKind, Jobs, Progress};
use crate::state::owner::mark::{Admin, Permits};
use crate::state::owner::{Acting, Owner};
use crate::system::tasks::joined;
use std::sync::Arc;

impl JobRequest {
    const fn kind(&self) -> JobKind {
        match self {
            Self::Doctor {} => JobKind::Doctor,
            Self::Backup { .. } => JobKind::Backup,
            Self::VerifyAudit {} => JobKind::VerifyAudit,
            Self::Reseal {} => JobKind::Reseal,
            Self::ResealItems {} => JobKind::ResealItems,
            Self::AuditMemorization {} => JobKind::AuditMemorization,
            Self::Delete(_) => JobKind::Delete,
        }
    }
}

impl<'a> LongWork<'a> {
    /// The running jobs, and those that ended.
    #[must_use]
    pub fn jobs(self, _: &Owner<impl Permits<Admin>>) -> &'a Jobs {
        &self.0.jobs
    }

    /// Begins a job and leaves it to itself. The owner's authority is judged now: from here on a rotation of keys or a cancellation
    /// ends it.
    ///
    /// # Errors
    /// [`Error::JobRuns`], [`Error::ManyJobs`], [`Error::Owner`], [`Error::Unavailable`].
    pub fn start_job(
        self,
        owner: &Owner<impl Permits<Admin>>,
        request: JobRequest,
    ) -> Result<Arc<Job>, Error> {
        let job = self.0.jobs.begin(request.kind(), owner.key(), self.0.clock.now(), &*self.0.random)?;
        // Asked once a rotation or a lockdown would find the job.
        let acting = Acting::from(owner);
        let may = acting.still_may(&self.0.keys(), self.0.clock.raw());
        if let Err(ended) = may.and_then(|()| acting.stands(&self.0.store)) {
            job.end(Err(Error::Cancelled), self.0.clock.now());
            return Err(ended);
        }
        let (gateway, owner, progress) = (self.0.clone(), owner.clone().for_job(), job.progress());
        let work = tokio::spawn(async move { LongWork(&gateway).work(owner, request, progress).await });
        let begun = job.clone();
        let gateway = self.0.clone();
        tokio::spawn(async move {
            let outcome = joined(work).await;
            if let Err(error) = &outcome {
                tracing::warn!(%error, "a job ended without a result");
            }
            begun.end(outcome, gateway.clock.now());
        });
        Ok(job)
    }

    async fn work(
        self,
        owner: Owner<impl Permits<Admin>>,
        request: JobRequest,
        progress: Progress,
    ) -> Result<JobResult, Error> {
        match request {
            JobRequest::Doctor {} => {
                let gateway = self.0.clone();
                let findings = blocking(move || Health(&gateway).examine(&owner, &progress)).await?;
                Ok(JobResult::Doctor(Findings { findings }))
            }
            JobRequest::Backup { folder } => {
                Ok(JobResult::Backup(Backups(self.0).backup(&owner, folder, &progress).await?))
            }
            JobRequest::VerifyAudit {} => {
                let gateway = self.0.clone();
                let chains = blocking(move || Audit(&gateway).verify_audit(&owner, &progress)).await?;
                Ok(JobResult::VerifyAudit(Chains { chains }))
            }
            JobRequest::Reseal {} => Ok(JobResult::Reseal(self.reseal_all_held(&owner, &progress).await?)),
            JobRequest::ResealItems {} => {
                let mut done = AllResealed::default();
                let ended = Items(self.0).reseal_all(&owner, &progress, &mut done).await;
                if ended.is_err() {
                    progress.so_far(JobResult::ResealItems(done.clone()));
                }
                ended.map(|()| JobResult::ResealItems(done))
            }
            JobRequest::AuditMemorization {} => {
                let report = Memorization(self.0).audit_memorization(&owner, &progress).await?;
                Ok(JobResult::AuditMemorization(report))
            }
            JobRequest::Delete(request) => self.delete_in_steps(&owner, request, &progress).await,
        }
    }

    /// Signs receipts anew, then reseals the items that are held back.
    async fn reseal_all_held(
        self,
        owner: &Owner<impl Permits<Admin>>,
        progress: &Progress,
    ) -> Result<SignedAgain, Error> {
        let (mut signed_anew, mut from) = (SignedAgain::default(), None);
        loop {
            progress.go_on()?;
            let signed = Keys(self.0).sign_receipts_anew(owner, from).await?;
            signed_anew.receipts += signed.signed;
            progress.so_far(JobResult::Reseal(signed_anew.clone()));
            progress.count();
            from = signed.next;
            if from.is_none() {
                break;
            }
        }
        let held = Keys(self.0).held_back(owner).await?;
        progress.expect(held.items.len());
        for item in held.items {
            // Asked before each: one that is cancelled during its last has done all.
            progress.go_on()?;
            match Keys(self.0).reseal_held(owner, item, held.at).await {
                Ok(written) => signed_anew.items += usize::from(written.is_some()),
                // Erased meanwhile, or not written here.
                Err(Error::NotFound | Error::Conflict(_)) => signed_anew.stays(item),
                Err(error) => return Err(error),
            }
            progress.so_far(JobResult::Reseal(signed_anew.clone()));
            progress.count();
        }
        Ok(signed_anew)
    }
}

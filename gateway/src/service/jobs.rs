//! The long work that can be asked for as a job: it takes longer than a request may.

use crate::api::audit::Chains;
use crate::api::health::Findings;
pub use crate::api::jobs::JobRequest;
use crate::api::jobs::JobResult;
use crate::api::keys::SignedAgain;
use crate::error::Error;
use crate::service::{Audit, Backups, Health, Keys, LongWork};
use crate::state::gateway::blocking;
use crate::state::jobs::{Job, JobKind, Jobs, Progress};
use crate::state::owner::Owner;
use crate::state::owner::mark::{Admin, Permits};
use oap_identity::ItemId;
use std::sync::Arc;

impl JobRequest {
    const fn kind(&self) -> JobKind {
        match self {
            Self::Doctor {} => JobKind::Doctor,
            Self::Backup { .. } => JobKind::Backup,
            Self::VerifyAudit {} => JobKind::VerifyAudit,
            Self::Reseal {} => JobKind::Reseal,
        }
    }
}

impl<'a> LongWork<'a> {
    /// The jobs.
    #[must_use]
    pub fn jobs(self, _: &Owner<impl Permits<Admin>>) -> &'a Jobs {
        &self.0.jobs
    }

    /// Begins a job and leaves it to itself. What it commits is committed while the owner's credential holds.
    ///
    /// # Errors
    /// [`Error::JobRuns`], [`Error::ManyJobs`].
    pub fn start_job(
        self,
        owner: &Owner<impl Permits<Admin>>,
        request: JobRequest,
    ) -> Result<Arc<Job>, Error> {
        let job = self.0.jobs.begin(request.kind(), self.0.clock.now(), &*self.0.random)?;
        let (gateway, owner, progress) = (self.0.clone(), owner.clone(), job.progress());
        let work = tokio::spawn(async move { LongWork(&gateway).work(owner, request, progress).await });
        let begun = job.clone();
        let gateway = self.0.clone();
        tokio::spawn(async move {
            let outcome = work.await.unwrap_or(Err(Error::Panicked));
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
        }
    }

    /// Signs receipts anew, then reseals the items that are held back.
    async fn reseal_all_held(
        self,
        owner: &Owner<impl Permits<Admin>>,
        progress: &Progress,
    ) -> Result<SignedAgain, Error> {
        let (mut receipts, mut from) = (0, None);
        loop {
            let signed = Keys(self.0).sign_receipts_anew(owner, from).await?;
            receipts += signed.signed;
            progress.step()?;
            from = signed.next;
            if from.is_none() {
                break;
            }
        }
        let held = Keys(self.0).held_back(owner).await?;
        progress.expect(held.items.len());
        let (mut items, mut left): (usize, Vec<ItemId>) = (0, Vec::new());
        for item in held.items {
            match Keys(self.0).reseal_held(owner, item, held.at).await {
                Ok(written) => items += usize::from(written.is_some()),
                // Erased meanwhile, or not written here.
                Err(Error::NotFound | Error::Conflict(_)) => left.push(item),
                Err(error) => return Err(error),
            }
            progress.step()?;
        }
        Ok(SignedAgain { receipts, items, left })
    }
}

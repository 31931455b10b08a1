//! What happens by itself: expired items are erased, retracted and replaced content goes after its retention
//! time, used proofs are forgotten.

use crate::error::Error;
use crate::service::{Asks, Deletions, Entries, Letters};
use crate::state::gateway::blocking;
use crate::state::schema::{self, PROOFS};
use crate::state::tips;
use oap_identity::{ItemId, Timestamp};
use oap_memory::chain::Event;
use oap_memory::record::{Head, Status};
use oap_store::StoreError;
use std::sync::Arc;
use std::time::Duration;

/// How often the server sweeps.
pub const INTERVAL: Duration = Duration::from_secs(60);
/// How often the list of erasures is told how far the receipt chains have come, where nothing else is told to it.
const TELL_CHAINS: Duration = Duration::from_secs(3600);
/// Most items of one transaction.
const BATCH: usize = 500;

/// What one sweep did.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Swept {
    /// Items whose life had ended.
    pub expired: usize,
    /// Retracted items whose retention time was over.
    pub erased: usize,
    /// Items that lost replaced versions.
    pub trimmed: usize,
    /// Proofs that were forgotten.
    pub proofs: usize,
}

impl Deletions<'_> {
    /// Sweeps once.
    ///
    /// # Errors
    /// [`Error::Store`], [`Error::Corrupt`].
    pub async fn sweep(self) -> Result<Swept, Error> {
        // What is due by a clock that is not believed may not be due at all.
        self.0.clock.believe()?;
        let now = self.0.clock.now();
        let kept = Duration::from_secs(u64::from(self.0.config.retention_days) * 86_400);
        let mut swept = Swept::default();
        self.end_holds().await?;
        let holds = self.holds()?;
        let heads: Vec<Arc<Head>> =
            self.0.heads.all().into_iter().filter(|head| !holds.contains_key(&head.item_id)).collect();
        let has_expired = |head: &Head, now| head.end_of_life.is_some_and(|end| end <= now);
        let is_over = move |head: &Head, now| {
            head.status == Status::Retracted && head.ended_at.is_some_and(|at| at.plus(kept) <= now)
        };
        let expired: Vec<ItemId> = ids(&heads, |head| has_expired(head, now));
        let retracted: Vec<ItemId> = ids(&heads, |head| is_over(head, now));
        let replaced: Vec<ItemId> = ids(&heads, |head| has_old_version(head, kept, now));
        for batch in expired.chunks(BATCH) {
            swept.expired += self.erase_all(batch.to_vec(), Event::Expire, has_expired).await?;
        }
        for batch in retracted.chunks(BATCH) {
            swept.erased += self.erase_all(batch.to_vec(), Event::Erase, is_over).await?;
        }
        for batch in replaced.chunks(BATCH) {
            swept.trimmed += self.trim_versions(batch.to_vec(), kept).await?;
        }
        // The rest is done whether this can be or not.
        if let Err(error) = Entries(self.0).end_orphans().await {
            tracing::error!(%error, "tasks that nobody leads could not be ended");
        }
        if let Err(error) = Entries(self.0).forget_intents(kept).await {
            tracing::error!(%error, "intents that are over could not be forgotten");
        }
        if let Err(error) = Letters(self.0).forget().await {
            tracing::error!(%error, "letters that are over could not be forgotten");
        }
        if let Err(error) = tips::forget(self.0).await {
            tracing::error!(%error, "what was seen of logs could not be forgotten");
        }
        if let Err(error) = Asks(self.0).sweep().await {
            tracing::error!(%error, "requests that are over could not be forgotten");
        }
        let gateway = self.0.clone();
        if blocking(move || Ok(gateway.read_sanctions())).await? {
            self.0.commit_own(|w| w.obligations_changed()).await?;
        }
        self.keep_watch().await?;
        let proofs = self.0.used_proofs.forget(now);
        swept.proofs = proofs.len();
        for batch in proofs.chunks(BATCH) {
            let batch = batch.to_vec();
            self.0
                .commit_own(move |w| {
                    batch.iter().for_each(|key| PROOFS.delete(w.tx, key));
                    Ok(())
                })
                .await?;
        }
        Ok(swept)
    }

    /// Keeps the clock's mark and the ends of the receipt chains from growing old while nothing else keeps them.
    async fn keep_watch(self) -> Result<(), Error> {
        if self.0.clock.is_kept_old() {
            self.0.commit_own(|_| Ok(())).await?;
        }
        let told = self.0.erasures.as_ref().and_then(|list| list.told_at());
        if told.is_none_or(|at| at.plus(TELL_CHAINS) <= self.0.clock.now()) {
            self.0.tell_chains();
        }
        Ok(())
    }

    /// Erases those of the items that are due when they are erased: not corrected, restored, held or erased meanwhile.
    async fn erase_all(
        self,
        items: Vec<ItemId>,
        event: Event,
        is_due: impl Fn(&Head, Timestamp) -> bool + Send + 'static,
    ) -> Result<usize, Error> {
        let erased = self
            .0
            .commit_own(move |w| {
                let mut erased = 0;
                for item in items {
                    let head = match schema::head(w.tx, item) {
                        Ok((_, head)) => head,
                        Err(Error::NotFound) => continue,
                        Err(error) => return Err(error),
                    };
                    if is_due(&head, w.now) && !w.is_held(item)? {
                        w.erase(item, event)?;
                        erased += 1;
                    }
                }
                Ok(erased)
            })
            .await?;
        Ok(erased)
    }

    async fn trim_versions(self, items: Vec<ItemId>, kept: Duration) -> Result<usize, Error> {
        let trimmed = self
            .0
            .commit_own(move |w| {
                let mut trimmed = 0;
                for item in items {
                    let now = w.now;
                    match w.trim(item, |at| at.plus(kept) <= now) {
                        Ok(dropped) => trimmed += dropped,
                        Err(Error::NotFound | Error::Store(StoreError::Erased)) => {}
                        Err(error) => return Err(error),
                    }
                }
                Ok(trimmed)
            })
            .await?;
        Ok(trimmed)
    }
}

fn ids(heads: &[Arc<Head>], wanted: impl Fn(&Head) -> bool) -> Vec<ItemId> {
    heads.iter().filter(|head| wanted(head)).map(|head| head.item_id).collect()
}

fn has_old_version(head: &Head, kept: Duration, now: Timestamp) -> bool {
    head.replaced.iter().any(|(_, at)| at.plus(kept) <= now)
}

//! What the store of an earlier version lacks is brought forward when a gateway opens it: in place, step by step.
//!
//! A step that was broken off is begun again at the next opening, and finds done what it had done. What is done is written
//! down, and `doctor` says it. A store that was brought forward is none of the earlier version any more: where that could not
//! read it, [`oap_store::SCHEMA`] grows with the step.

use crate::error::Error;
use crate::state::gateway::Gateway;
use crate::state::grant_book::Usage;
use crate::state::schema::{DISCLOSED, FORWARD, PLACES, USAGE};
use oap_grants::GrantRecord;
use oap_identity::Timestamp;
use oap_store::{SCHEMA, StoreError};
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use strum::{EnumIter, IntoEnumIterator, IntoStaticStr};

/// A step, in the order in which they are done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, EnumIter, IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
enum Step {
    /// Sources of imported items stand under a keyed hash, and no longer under that of what they said.
    Sources,
    /// What was used of a grant is counted, and found by its place in the status list.
    GrantUsage,
    /// Batches go into journals beside the database, and versions are stored as what they were made of: opening the store
    /// raised its schema.
    #[strum(serialize = "schema_3")]
    Schema,
}

/// A step that was done.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Forward {
    /// When.
    pub at: Timestamp,
    /// How many rows it changed; none in a store that lacked nothing.
    pub changed: u64,
}

impl Gateway {
    /// Brings a store forward: the steps that were not done yet.
    ///
    /// # Errors
    /// [`Error::Store`], [`Error::Corrupt`].
    pub(crate) async fn bring_forward(self: &Arc<Self>) -> Result<(), Error> {
        for step in Step::iter() {
            let name: &str = step.into();
            if FORWARD.get(&self.store, &name.to_owned())?.is_some() {
                continue;
            }
            let changed = match step {
                Step::Sources => self.convert_sources().await?,
                Step::GrantUsage => self.count_grants().await?,
                Step::Schema => u64::from(self.store.found_schema() < SCHEMA),
            };
            if changed > 0 {
                tracing::info!(step = name, changed, "the store of an earlier version was brought forward");
            }
            let done = Forward { at: self.clock.now(), changed };
            let put = move |tx: &mut oap_store::Tx| FORWARD.put(tx, &name.to_owned(), &done);
            match self.store.transact(put).await {
                // A store opens on a full disk: the step finds nothing to do the next time.
                Ok(()) | Err(StoreError::Full { .. }) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    /// Counts what grants that are stored already have used, and notes their places in the status list: for stores in
    /// which an earlier version kept neither.
    ///
    /// # Errors
    /// [`Error::Store`], [`Error::Corrupt`].
    async fn count_grants(self: &Arc<Self>) -> Result<u64, Error> {
        let mut uncounted = Vec::new();
        for entry in self.grant_book.all() {
            if USAGE.get(&self.store, &entry.key)?.is_none() {
                uncounted.push(entry);
            }
        }
        if uncounted.is_empty() {
            return Ok(0);
        }
        let changed = uncounted.len() as u64;
        let gateway = self.clone();
        self.commit_own(move |w| {
            for entry in &uncounted {
                if !USAGE.contains(w.tx, &entry.key)? {
                    USAGE.put(w.tx, &entry.key, &Usage::default())?;
                }
                if let (false, Some(place)) = (entry.delegated, place(&entry.record)) {
                    PLACES.put(w.tx, &place, &entry.key)?;
                }
            }
            for entry in &uncounted {
                let chain = gateway.grant_book.chain(entry.record.grant.hash());
                for above in chain.iter().skip(1) {
                    let mut usage = w.usage(above.key)?;
                    usage.below += 1;
                    USAGE.put(w.tx, &above.key, &usage)?;
                }
                for above in &chain {
                    let mut usage = w.usage(above.key)?;
                    for item in entry.items() {
                        let place = (above.key, item);
                        if above.key == entry.key || !DISCLOSED.contains(w.tx, &place)? {
                            DISCLOSED.put(w.tx, &place, &())?;
                            usage.disclosed += 1;
                        }
                    }
                    USAGE.put(w.tx, &above.key, &usage)?;
                }
            }
            Ok(())
        })
        .await?;
        self.grant_book.reload(&self.store)?;
        Ok(changed)
    }
}

fn place(record: &GrantRecord) -> Option<u32> {
    record.grant.grant().status.as_ref().map(|status| status.status_list.idx)
}

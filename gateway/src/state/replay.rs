//! The proofs that were used: in memory for the next question, in the store for the next start.

use crate::error::Error;
use crate::state::gateway::Gateway;
use crate::state::schema::PROOFS;
use oap_grants::Replay;
use oap_grants::exchange::ProofError;
use oap_identity::Timestamp;
use oap_store::{Store, StoreError};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

pub use oap_grants::freshness::REMEMBERED;

/// Used proofs, and until when they are remembered.
#[derive(Debug, Default)]
pub struct UsedProofs(Mutex<BTreeMap<[u8; 32], Timestamp>>);

impl UsedProofs {
    /// Reads the proofs of a store.
    ///
    /// # Errors
    /// [`Error::Store`], [`Error::Corrupt`].
    pub fn load(store: &Store) -> Result<Self, Error> {
        let mut proofs = BTreeMap::new();
        for row in PROOFS.scan(store) {
            let (key, until) = row?;
            proofs.insert(key, until);
        }
        Ok(Self(Mutex::new(proofs)))
    }

    /// Whether a proof was used.
    #[must_use]
    pub fn is_used(&self, key: &[u8; 32]) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).contains_key(key)
    }

    /// Forgets what need not be remembered any more; returns it.
    pub fn forget(&self, now: Timestamp) -> Vec<[u8; 32]> {
        let mut proofs = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let over: Vec<[u8; 32]> = proofs.iter().filter(|(_, until)| **until < now).map(|(k, _)| *k).collect();
        for key in &over {
            proofs.remove(key);
        }
        over
    }
}

impl Gateway {
    /// Remembers a proof, in memory and in the store.
    pub(crate) async fn use_proof(self: &Arc<Self>, key: [u8; 32]) -> Result<(), Error> {
        if !self.used_proofs.first_use(key, self.clock.now()) {
            return Err(ProofError::Replayed.into());
        }
        self.remember_proof(key).await
    }

    /// The same for the owner, who reads and erases on a full disk, too: from the reserve, and in memory alone when even that
    /// is used up.
    pub(crate) async fn use_owner_proof(self: &Arc<Self>, key: [u8; 32]) -> Result<(), Error> {
        // Whether it is fresh is judged by the clock as it is. Where that stands ahead and the owner accepts it, the proof is fresh for as
        // long after that time.
        let at = self.clock.now().max(self.clock.raw());
        if !self.used_proofs.first_use(key, at) {
            return Err(ProofError::Replayed.into());
        }
        let kept = self.remember_owner_proof(key, at).await;
        match kept {
            Err(Error::Store(StoreError::Full { missing })) => {
                tracing::warn!(missing, "the disk is full: the owner's proof is remembered until a restart");
                Ok(())
            }
            kept => kept,
        }
    }

    /// Remembers in the store that a proof was used.
    ///
    /// # Errors
    /// [`Error::Store`].
    pub(crate) async fn remember_proof(self: &Arc<Self>, key: [u8; 32]) -> Result<(), Error> {
        self.commit(move |w| Ok(PROOFS.put(w.tx, &key, &w.now.plus(REMEMBERED))?)).await?;
        Ok(())
    }

    /// The same for the owner's that was used at a time, from the reserve of a full disk.
    ///
    /// # Errors
    /// [`Error::Store`](crate::Error::Store).
    async fn remember_owner_proof(self: &Arc<Self>, key: [u8; 32], at: Timestamp) -> Result<(), Error> {
        self.commit_own(move |w| {
            w.tx.use_reserve();
            Ok(PROOFS.put(w.tx, &key, &w.now.max(at).plus(REMEMBERED))?)
        })
        .await?;
        Ok(())
    }
}

impl Replay for UsedProofs {
    fn first_use(&self, key: [u8; 32], now: Timestamp) -> bool {
        let mut proofs = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        proofs.insert(key, now.plus(REMEMBERED)).is_none()
    }
}

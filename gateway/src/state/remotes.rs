//! Gateways that are asked under the grants of the wallet: who is being asked, and the tokens that they gave, for as long as these hold.

use crate::error::{Error, Unavailable};
use lru::LruCache;
use oap_client::Remote;
use oap_client::grantee::Ticket;
use oap_identity::{Hash, Timestamp};
use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Tokens of others that are kept at once, in memory alone; the one that was not used for longest is forgotten.
pub const MAX_SESSIONS: NonZeroUsize = NonZeroUsize::new(256).expect("not zero");
/// Recalls that ask others at once, of the owner and all agents together; beyond it the caller is told to try again.
pub const MAX_RECALLS: usize = 4;

/// A gateway whose documents were checked, and the token that it gave for a grant.
pub(crate) struct Session {
    pub(crate) remote: Remote,
    pub(crate) ticket: Arc<Ticket>,
    /// Until when the token is used.
    pub(crate) until: Timestamp,
}

/// Who is asked, and with what.
pub(crate) struct Remotes {
    sessions: Mutex<LruCache<Hash, Arc<Session>>>,
    turns: Arc<Semaphore>,
}

impl Default for Remotes {
    fn default() -> Self {
        Self {
            sessions: Mutex::new(LruCache::new(MAX_SESSIONS)),
            turns: Arc::new(Semaphore::new(MAX_RECALLS)),
        }
    }
}

impl Remotes {
    /// A turn to ask others, which lasts until it is dropped.
    ///
    /// # Errors
    /// [`Unavailable::Recalls`]: nobody waits for one.
    pub(crate) fn turn(&self) -> Result<OwnedSemaphorePermit, Error> {
        self.turns.clone().try_acquire_owned().map_err(|_| Error::Unavailable(Unavailable::Recalls))
    }

    /// The session of a grant, by the grant's hash.
    pub(crate) fn session(&self, grant: &Hash, now: Timestamp) -> Option<Arc<Session>> {
        self.sessions().get(grant).filter(|session| now < session.until).cloned()
    }

    /// Keeps a session.
    pub(crate) fn keep(&self, grant: Hash, session: Arc<Session>) {
        self.sessions().put(grant, session);
    }

    /// Forgets the session of a grant.
    pub(crate) fn forget(&self, grant: &Hash) {
        self.sessions().pop(grant);
    }

    fn sessions(&self) -> MutexGuard<'_, LruCache<Hash, Arc<Session>>> {
        self.sessions.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nobody_waits_for_a_turn() {
        let remotes = Remotes::default();
        let turns: Vec<_> = (0..MAX_RECALLS).map(|_| remotes.turn().unwrap()).collect();
        assert!(matches!(remotes.turn(), Err(Error::Unavailable(Unavailable::Recalls))));
        drop(turns);
        assert!(remotes.turn().is_ok());
    }
}

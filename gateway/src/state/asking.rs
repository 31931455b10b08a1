//! The turns of what reads everything that an agent sees, SPARQL queries and those of a time that is over: a few at once, and of one agent one,
//! so that none of them has all. SPARQL queries of grantees have turns of their own.

use crate::error::{Error, Unavailable};
use oap_identity::{Did, Hash};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// SPARQL queries and looks back that are evaluated at once, of all agents together, and of one agent one; and as many SPARQL queries of all
/// grantees together.
pub const MAX_ASKING: usize = 2;
/// Longest time that a query waits for its turn.
pub const MAX_WAIT: Duration = Duration::from_secs(10);

/// A turn, which lasts until it is dropped: those of whoever asks, and one of all.
pub(crate) type Turn = Vec<OwnedSemaphorePermit>;

/// The turns of SPARQL queries and of looks back, of agents or of grantees.
#[derive(Debug)]
pub(crate) struct Asking {
    all: Arc<Semaphore>,
    /// Those of who asks or waits.
    own: Mutex<HashMap<Hash, Weak<Semaphore>>>,
}

impl Default for Asking {
    fn default() -> Self {
        Self { all: Arc::new(Semaphore::new(MAX_ASKING)), own: Mutex::default() }
    }
}

impl Asking {
    /// Waits for a turn of an agent.
    ///
    /// # Errors
    /// [`Error::Unavailable`] after [`MAX_WAIT`].
    pub async fn take(&self, agent: &Did) -> Result<Turn, Error> {
        self.turn(&[named(agent)]).await
    }

    /// Waits for a turn of a grantee: with more grantees under a grant it has no more of them, nor with more grants. `first` is the hash of
    /// the first grant above.
    ///
    /// # Errors
    /// As [`Asking::take`].
    pub async fn take_granted(&self, first: Hash, grantee: &Did) -> Result<Turn, Error> {
        self.turn(&[first, named(grantee)]).await
    }

    async fn turn(&self, of: &[Hash]) -> Result<Turn, Error> {
        let turn = async {
            let mut turn = Vec::with_capacity(of.len() + 1);
            // In this order always, so that no two wait for each other.
            for own in of {
                turn.push(self.own(*own).acquire_owned().await?);
            }
            turn.push(self.all.clone().acquire_owned().await?);
            Ok::<_, tokio::sync::AcquireError>(turn)
        };
        match tokio::time::timeout(MAX_WAIT, turn).await {
            Ok(Ok(turn)) => Ok(turn),
            Ok(Err(_)) | Err(_) => Err(Error::Unavailable(Unavailable::Asking)),
        }
    }

    fn own(&self, of: Hash) -> Arc<Semaphore> {
        let mut known = self.own.lock().unwrap_or_else(PoisonError::into_inner);
        known.retain(|_, turns| turns.strong_count() > 0);
        let own = known.get(&of).and_then(Weak::upgrade);
        own.unwrap_or_else(|| {
            let own = Arc::new(Semaphore::new(1));
            known.insert(of, Arc::downgrade(&own));
            own
        })
    }
}

/// What the turns of a DID are kept by.
fn named(did: &Did) -> Hash {
    Hash::of(did.as_str().as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn an_agent_has_one_turn_and_no_agent_waits_for_it_but_itself() {
        let asking = Asking::default();
        let did = |name: &str| -> Did { format!("did:web:{name}.example").parse().unwrap() };
        let waits = async |agent: &str| {
            let agent = did(agent);
            tokio::time::timeout(Duration::from_millis(50), asking.take(&agent)).await.is_err()
        };
        let first = asking.take(&did("a")).await.unwrap();
        assert!(waits("a").await && !waits("b").await);
        let second = asking.take(&did("b")).await.unwrap();
        assert!(waits("c").await);
        drop(first);
        assert!(!waits("a").await && !waits("c").await);
        drop(second);
        // Of who does not ask nothing is kept.
        drop(asking.own(named(&did("c"))));
        assert_eq!(asking.own.lock().unwrap().len(), 1);
    }

    #[tokio::test]
    async fn no_grantee_has_all_the_turns() {
        let asking = Asking::default();
        let waits = async |first: &str, of: &str| {
            let of: Did = format!("did:web:{of}.example").parse().unwrap();
            let turn = asking.take_granted(Hash::of(first.as_bytes()), &of);
            tokio::time::timeout(Duration::from_millis(50), turn).await.is_err()
        };
        let a: Did = "did:web:a.example".parse().unwrap();
        let taken = asking.take_granted(Hash::of(b"one"), &a).await.unwrap();
        // Neither with more grantees under its grant, nor with more grants.
        assert!(waits("one", "b").await && waits("two", "a").await);
        assert!(!waits("two", "b").await);
        drop(taken);
        assert!(!waits("one", "b").await && !waits("two", "a").await);
    }
}

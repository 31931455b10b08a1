//! The turns of SPARQL queries: a few at once, and of one agent one, so that none of them has all.

use crate::error::{Error, Unavailable};
use oap_identity::Did;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// SPARQL queries that are evaluated at once, of all agents together; of one agent one.
pub const MAX_ASKING: usize = 2;
/// Longest time that a query waits for its turn.
pub const MAX_WAIT: Duration = Duration::from_secs(10);

/// A turn, which lasts until it is dropped: one of the agent's own, and one of all.
pub(crate) type Turn = [OwnedSemaphorePermit; 2];

/// The turns of SPARQL queries.
#[derive(Debug)]
pub(crate) struct Asking {
    all: Arc<Semaphore>,
    /// Those of the agents that ask or wait.
    own: Mutex<HashMap<Did, Weak<Semaphore>>>,
}

impl Default for Asking {
    fn default() -> Self {
        Self { all: Arc::new(Semaphore::new(MAX_ASKING)), own: Mutex::default() }
    }
}

impl Asking {
    /// Waits for a turn.
    ///
    /// # Errors
    /// [`Error::Unavailable`] after [`MAX_WAIT`].
    pub async fn take(&self, agent: &Did) -> Result<Turn, Error> {
        let turn = async {
            let own = self.own(agent).acquire_owned().await?;
            Ok::<_, tokio::sync::AcquireError>([own, self.all.clone().acquire_owned().await?])
        };
        match tokio::time::timeout(MAX_WAIT, turn).await {
            Ok(Ok(turn)) => Ok(turn),
            Ok(Err(_)) | Err(_) => Err(Error::Unavailable(Unavailable::Asking)),
        }
    }

    fn own(&self, agent: &Did) -> Arc<Semaphore> {
        let mut known = self.own.lock().unwrap_or_else(PoisonError::into_inner);
        known.retain(|_, turns| turns.strong_count() > 0);
        let own = known.get(agent).and_then(Weak::upgrade);
        own.unwrap_or_else(|| {
            let own = Arc::new(Semaphore::new(1));
            known.insert(agent.clone(), Arc::downgrade(&own));
            own
        })
    }
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
        drop(asking.own(&did("c")));
        assert_eq!(asking.own.lock().unwrap().len(), 1);
    }
}

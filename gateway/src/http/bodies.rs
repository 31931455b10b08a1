//! Memory for bodies: a bound on the sum of all that are being read or worked on.

use crate::Error;
use std::sync::Arc;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Most bytes of all bodies together of callers whose credential was not checked. Beyond it: 503.
pub const MAX_ANONYMOUS_BODIES: usize = 16 << 20;
/// Most bytes of all bodies together of callers with a credential. Beyond it: 503.
pub const MAX_BODIES: usize = 160 << 20;

/// Whose share a body is taken from: nobody without a credential can use up what callers with one need.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Payer {
    Anonymous,
    Known,
}

/// What is left for bodies.
#[derive(Debug, Clone)]
pub(super) struct Bodies {
    anonymous: Arc<Semaphore>,
    known: Arc<Semaphore>,
}

impl Default for Bodies {
    fn default() -> Self {
        let share = |bytes| Arc::new(Semaphore::new(bytes));
        Self { anonymous: share(MAX_ANONYMOUS_BODIES), known: share(MAX_BODIES) }
    }
}

impl Bodies {
    /// A body of which nothing was read yet.
    pub(super) fn begin(&self, payer: Payer) -> Held {
        let share = match payer {
            Payer::Anonymous => &self.anonymous,
            Payer::Known => &self.known,
        };
        Held { share: share.clone(), paid: None }
    }
}

/// What one body takes, given back with the value.
pub(super) struct Held {
    share: Arc<Semaphore>,
    paid: Option<OwnedSemaphorePermit>,
}

impl Held {
    /// Takes so many bytes more.
    ///
    /// # Errors
    /// [`Error::Busy`] when they are not there.
    pub(super) fn pay(&mut self, bytes: usize) -> Result<(), Error> {
        let bytes = u32::try_from(bytes).map_err(|_| Error::Busy)?;
        let more = self.share.clone().try_acquire_many_owned(bytes).map_err(|_| Error::Busy)?;
        match &mut self.paid {
            Some(paid) => paid.merge(more),
            None => self.paid = Some(more),
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sum_is_bounded_and_given_back() {
        let bodies = Bodies::default();
        let mut first = bodies.begin(Payer::Anonymous);
        first.pay(MAX_ANONYMOUS_BODIES - 1).unwrap();
        let mut second = bodies.begin(Payer::Anonymous);
        second.pay(1).unwrap();
        assert!(matches!(second.pay(1), Err(Error::Busy)));
        bodies.begin(Payer::Known).pay(MAX_BODIES).unwrap();
        drop(first);
        second.pay(MAX_ANONYMOUS_BODIES - 1).unwrap();
    }
}

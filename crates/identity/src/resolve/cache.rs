//! What was resolved, for a while: success 10 minutes, failure 30 seconds, at most 1,024 of both.

use super::ResolveError;
use crate::did::Did;
use crate::document::DidDocument;
use crate::time::Timestamp;
use lru::LruCache;
use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

const SUCCESS: Duration = Duration::from_secs(600);
const FAILURE: Duration = Duration::from_secs(30);
const CAPACITY: NonZeroUsize = NonZeroUsize::new(1024).expect("not zero");

type Answer = Result<Arc<DidDocument>, ResolveError>;

/// How long an answer is kept.
const fn life(answer: &Answer) -> Duration {
    if answer.is_ok() { SUCCESS } else { FAILURE }
}

pub(super) struct Cache(Mutex<LruCache<Did, (Timestamp, Answer)>>);

impl Default for Cache {
    fn default() -> Self {
        Self(Mutex::new(LruCache::new(CAPACITY)))
    }
}

impl Cache {
    pub(super) fn get(&self, did: &Did, now: Timestamp) -> Option<Answer> {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (until, answer) = known.get(did)?;
        // What a clock that stood ahead has put in is not good until that time comes again.
        (now < *until && *until <= now.plus(life(answer))).then(|| answer.clone())
    }

    /// How long ago what is known of a DID was found out.
    pub(super) fn age(&self, did: &Did, now: Timestamp) -> Option<Duration> {
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (until, answer) = known.peek(did)?;
        let left = u64::try_from(until.millis().checked_sub(now.millis())?).ok()?;
        life(answer).checked_sub(Duration::from_millis(left))
    }

    pub(super) fn remove(&self, did: &Did) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).pop(did);
    }

    pub(super) fn put(&self, did: Did, answer: Answer, now: Timestamp) {
        let until = now.plus(life(&answer));
        self.0.lock().unwrap_or_else(PoisonError::into_inner).put(did, (until, answer));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The attack: a key that was revoked stays good for whoever's clock was a year ahead when it was read.
    #[test]
    fn nothing_is_kept_longer_than_its_time_by_whatever_clock() {
        let (did, cache): (Did, _) = ("did:web:peer.example".parse().unwrap(), Cache::default());
        let now = Timestamp::from_seconds(1_777_636_800);
        let document = Arc::new(DidDocument::new(did.clone(), Vec::new()));
        for (answer, life) in [(Ok(document), SUCCESS), (Err(ResolveError::Identifier), FAILURE)] {
            cache.put(did.clone(), answer, now);
            let (last, over) = (now.plus(life).minus(Duration::from_millis(1)), now.plus(life));
            assert!(cache.get(&did, now).is_some() && cache.get(&did, last).is_some());
            assert!(cache.get(&did, over).is_none());
            let second = Duration::from_secs(1);
            assert_eq!(cache.age(&did, now), Some(Duration::ZERO));
            assert_eq!(cache.age(&did, now.plus(second)), Some(second));
            assert_eq!(
                (cache.age(&did, now.minus(second)), cache.age(&did, over.plus(second))),
                (None, None)
            );
            // The clock that it was read by stood ahead, and was set right.
            assert!(cache.get(&did, now.minus(Duration::from_millis(1))).is_none());
            assert!(cache.get(&did, now.minus(Duration::from_secs(86_400 * 365))).is_none());
        }
    }
}

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
        (now < *until).then(|| answer.clone())
    }

    pub(super) fn put(&self, did: Did, answer: Answer, now: Timestamp) {
        let until = now.plus(if answer.is_ok() { SUCCESS } else { FAILURE });
        self.0.lock().unwrap_or_else(PoisonError::into_inner).put(did, (until, answer));
    }
}

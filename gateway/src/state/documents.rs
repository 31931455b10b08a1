//! The metadata documents of clients that were fetched, for a while: a client that is asked for again costs no request.

use crate::oauth::{Client, DocumentError, DocumentUrl};
use lru::LruCache;
use oap_identity::Timestamp;
use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::{Semaphore, SemaphorePermit};

/// Documents that are remembered at once; the one that was not asked for longest is forgotten.
pub const MAX_DOCUMENTS: NonZeroUsize = NonZeroUsize::new(64).expect("not zero");
/// Documents that are fetched at once; beyond it the client is told to try again.
pub const MAX_FETCHING: usize = 4;
/// Documents that are fetched in a minute, for all callers together; beyond it the client is told to try again.
pub const MAX_FETCHED: u32 = 60;
/// How long a document counts.
const KEPT: Duration = Duration::from_secs(600);
/// How long a failure counts.
const FAILED: Duration = Duration::from_secs(30);

type Read = Result<Arc<Client>, DocumentError>;

/// What was fetched.
pub struct Documents {
    known: Mutex<LruCache<DocumentUrl, (Timestamp, Read)>>,
    /// The running minute, and how many were fetched in it.
    minute: Mutex<(i64, u32)>,
    fetching: Semaphore,
}

impl Default for Documents {
    fn default() -> Self {
        Self {
            known: Mutex::new(LruCache::new(MAX_DOCUMENTS)),
            minute: Mutex::default(),
            fetching: Semaphore::new(MAX_FETCHING),
        }
    }
}

impl Documents {
    /// What is known of a client.
    pub(crate) fn get(&self, url: &DocumentUrl, now: Timestamp) -> Option<Read> {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let (until, read) = known.get(url)?;
        (now < *until).then(|| read.clone())
    }

    /// Remembers what came of a fetch.
    pub(crate) fn put(&self, url: DocumentUrl, read: Read, now: Timestamp) {
        let until = now.plus(if read.is_ok() { KEPT } else { FAILED });
        self.known.lock().unwrap_or_else(PoisonError::into_inner).put(url, (until, read));
    }

    /// A place to fetch one, where there is one.
    pub(crate) fn place(&self, now: Timestamp) -> Option<SemaphorePermit<'_>> {
        let place = self.fetching.try_acquire().ok()?;
        let mut minute = self.minute.lock().unwrap_or_else(PoisonError::into_inner);
        let number = now.seconds().div_euclid(60);
        if minute.0 != number {
            *minute = (number, 0);
        }
        if minute.1 >= MAX_FETCHED {
            return None;
        }
        minute.1 += 1;
        Some(place)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn so_many_are_fetched() {
        let (documents, now) = (Documents::default(), Timestamp::from_seconds(1_777_636_800));
        let places: Vec<_> = (0..MAX_FETCHING).map(|_| documents.place(now).unwrap()).collect();
        assert!(documents.place(now).is_none());
        drop(places);
        for _ in MAX_FETCHING..MAX_FETCHED as usize {
            assert!(documents.place(now).is_some());
        }
        assert!(documents.place(now).is_none());
        assert!(documents.place(now.plus(Duration::from_secs(60))).is_some());
    }

    #[test]
    fn failures_are_forgotten_soon() {
        let (documents, now) = (Documents::default(), Timestamp::from_seconds(1_777_636_800));
        let url: DocumentUrl = "https://app.example/c".parse().unwrap();
        documents.put(url.clone(), Err(DocumentError::Unreachable), now);
        assert_eq!(documents.get(&url, now), Some(Err(DocumentError::Unreachable)));
        assert_eq!(documents.get(&url, now.plus(FAILED)), None);
    }
}

//! did:webvh over the guarded client of did:web: the log, and the list of its witnesses where the log asks for it.
//!
//! What is remembered in memory of each DID is the last version that was proved. So whoever takes over a host and shows a beginning of the log, from before
//! a key was taken out, or another end of it, is not believed by a process that saw more. Of the DIDs that its caller holds on to, that version is written
//! down before the document is given ([`KeepTips`]): no other process believes less, and no other DIDs drive it out.

use super::web::{GuardedWeb, describe};
use crate::did::Did;
use crate::outgoing::{Allowance, StatusCode};
use crate::webvh::{History, LogError};
use lru::LruCache;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::future::Future;
use std::num::NonZeroUsize;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use url::Url;

/// The list of what witnesses signed, beside the log.
pub(super) const WITNESSES: &str = "did-witness.json";
/// DIDs whose last version is remembered, beside those that are held on to; those that were asked for longest ago go first.
pub const MAX_TIPS: NonZeroUsize = NonZeroUsize::new(1024).expect("not zero");
/// Time for a file, name and connection included.
const TIME: Duration = Duration::from_secs(5);

/// What is at an address of a did:webvh; or why it is not.
pub(super) async fn fetch(web: &GuardedWeb, url: &Url, bytes: usize) -> Result<Vec<u8>, String> {
    let answer = web.get_unless(url, None, Allowance { bytes, time: TIME }).await;
    let answer = answer.map_err(|error| describe(&error, web.client()).to_owned())?;
    match answer.status {
        StatusCode::OK => Ok(answer.body),
        status => Err(format!("the host answered {status}")),
    }
}

/// Checks signatures beside what others wait for: a log may have hundreds.
pub(super) async fn beside<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, LogError> + Send + 'static,
) -> Result<T, LogError> {
    // Work that was broken off proves nothing.
    tokio::task::spawn_blocking(work).await.unwrap_or(Err(LogError::Panicked))
}

/// A version of the log of a DID that was proved.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tip {
    /// Its number, from 1 on.
    pub number: usize,
    /// Its id, which holds all versions before it.
    pub id: String,
}

/// A version could not be written down.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NotKept;

/// A version on its way to where it is kept.
pub type Keeping<'a> = Pin<Box<dyn Future<Output = Result<(), NotKept>> + Send + 'a>>;

/// Where the versions are written down of the DIDs that are held on to.
pub trait KeepTips: Send + Sync {
    /// Writes down a version that was proved of a DID, where it has no later one. It is durable when this returns.
    fn keep<'a>(&'a self, did: &'a Did, tip: &'a Tip) -> Keeping<'a>;
}

/// The last version of each DID that was proved.
pub(super) struct Tips {
    known: Mutex<Known>,
    keeper: Mutex<Option<Arc<dyn KeepTips>>>,
}

struct Known {
    lately: LruCache<Did, Tip>,
    /// Of those that are held on to, what is written down; none where no version was seen yet.
    held: BTreeMap<Did, Option<Tip>>,
}

impl Default for Tips {
    fn default() -> Self {
        let known = Known { lately: LruCache::new(MAX_TIPS), held: BTreeMap::new() };
        Self { known: Mutex::new(known), keeper: Mutex::default() }
    }
}

impl Tips {
    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Has versions written down there from now on.
    pub(super) fn keep_with(&self, keeper: Arc<dyn KeepTips>) {
        *self.keeper.lock().unwrap_or_else(PoisonError::into_inner) = Some(keeper);
    }

    /// Remembers the last version of a history, which must have the one that is remembered; it, where it is still to be kept.
    pub(super) fn remember(&self, did: &Did, history: &History) -> Result<Option<Tip>, LogError> {
        let mut known = self.known();
        let Known { lately, held } = &mut *known;
        let held = held.get(did);
        let mut seen = lately.get(did).into_iter().chain(held.and_then(Option::as_ref));
        if !seen.all(|tip| history.has(tip.number, &tip.id)) {
            return Err(LogError::Rewritten);
        }
        let tip = Tip { number: history.length(), id: history.tip().to_owned() };
        lately.put(did.clone(), tip.clone());
        let is_new = held.is_some_and(|held| held.as_ref() != Some(&tip));
        Ok(is_new.then_some(tip))
    }

    /// Keeps a version of a DID that is held on to.
    pub(super) async fn keep(&self, did: &Did, tip: Tip) -> Result<(), NotKept> {
        let keeper = self.keeper.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if let Some(keeper) = keeper {
            keeper.keep(did, &tip).await?;
        }
        if let Some(held) = self.known().held.get_mut(did) {
            later(held, tip);
        }
        Ok(())
    }

    pub(super) fn hold(&self, did: Did, tip: Option<Tip>) {
        let mut known = self.known();
        let held = known.held.entry(did).or_default();
        if let Some(tip) = tip {
            later(held, tip);
        }
    }

    pub(super) fn let_go(&self, did: &Did) {
        self.known().held.remove(did);
    }

    pub(super) fn of(&self, did: &Did) -> Option<Tip> {
        let known = self.known();
        let (lately, held) = (known.lately.peek(did), known.held.get(did).and_then(Option::as_ref));
        lately.into_iter().chain(held).max_by_key(|tip| tip.number).cloned()
    }
}

/// Takes a version in the place of an earlier one.
fn later(held: &mut Option<Tip>, tip: Tip) {
    if held.as_ref().is_none_or(|held| held.number < tip.number) {
        *held = Some(tip);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_panic_is_no_fault_of_the_log() {
        let broken = beside(|| -> Result<(), LogError> { panic!("here") }).await;
        assert_eq!(broken.unwrap_err().to_string(), LogError::Panicked.to_string());
    }
}

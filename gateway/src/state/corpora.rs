//! What each of the owner's agents may see, by words, in memory: made at an agent's first question, and then it follows.
//!
//! A change takes an item's words out at once; what the item says then is taken over before the next answer.

use crate::error::Error;
use lru::LruCache;
use oap_exchange::Corpus;
use oap_exchange::rank::Document;
use oap_identity::{Did, ItemId, Timestamp};
use oap_memory::Kind;
use oap_memory::text::Language;
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// How much memory they take together, in bytes, about: beyond it those are let go that were not asked for longest.
pub const MAX_CORPORA_BYTES: usize = 256 << 20;
/// Most changes that one notes; after more it is made anew.
const MAX_CHANGED: usize = 10_000;

/// The corpora of the owner's agents, of whom there is a bounded number.
pub struct Corpora(Mutex<LruCache<Did, Arc<Kept>>>);

#[derive(Debug, Default)]
struct Kept {
    /// One at a time brings it up to date.
    making: Mutex<()>,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    corpus: Option<Corpus>,
    /// What changed since the last of it was read: it is not in the corpus.
    changed: BTreeSet<ItemId>,
    /// Whether that was more than is noted.
    overflown: bool,
}

/// What an item says that an agent sees.
pub(crate) struct Said {
    pub(crate) text: String,
    pub(crate) kind: Kind,
    pub(crate) captured_at: Timestamp,
    pub(crate) end: Option<Timestamp>,
}

fn lock<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}

fn insert(corpus: &mut Corpus, item: ItemId, said: &Said) {
    let Said { text, kind, captured_at, end } = said;
    corpus.insert(&Document { item, text, kind: *kind, captured_at: *captured_at }, *end);
}

impl Kept {
    /// Takes an item's words out.
    fn changed(&self, item: ItemId) {
        let mut state = lock(&self.state);
        if let Some(corpus) = &mut state.corpus {
            corpus.remove(item);
        }
        if state.changed.len() < MAX_CHANGED {
            state.changed.insert(item);
        } else {
            *state = State { overflown: true, ..State::default() };
        }
    }

    /// Makes it of everything that is seen. What changes meanwhile stays out.
    fn make(&self, seen: &Seen<'_>) -> Result<(), Error> {
        *lock(&self.state) = State::default();
        let mut made = Corpus::new(seen.language);
        for item in (seen.everything)() {
            if let Some(said) = (seen.read)(item)? {
                insert(&mut made, item, &said);
            }
        }
        let mut state = lock(&self.state);
        if !state.overflown {
            state.changed.iter().for_each(|item| made.remove(*item));
            state.corpus = Some(made);
        }
        Ok(())
    }

    /// Takes over what changed. What changes again meanwhile stays out.
    fn follow(&self, seen: &Seen<'_>) -> Result<(), Error> {
        let changed = std::mem::take(&mut lock(&self.state).changed);
        let read = changed.iter().map(|item| Ok((*item, (seen.read)(*item)?)));
        let read: Vec<(ItemId, Option<Said>)> = match read.collect() {
            Ok(read) => read,
            Err(error) => {
                *lock(&self.state) = State::default();
                return Err(error);
            }
        };
        let mut state = lock(&self.state);
        let State { corpus: Some(corpus), changed, .. } = &mut *state else { return Ok(()) };
        for (item, said) in read {
            if let Some(said) = said.filter(|_| !changed.contains(&item)) {
                insert(corpus, item, &said);
            }
        }
        Ok(())
    }
}

/// How an agent sees the memory.
pub(crate) struct Seen<'a> {
    /// Everything that it sees.
    pub(crate) everything: &'a dyn Fn() -> Vec<ItemId>,
    /// What an item says, where the agent sees it.
    pub(crate) read: &'a dyn Fn(ItemId) -> Result<Option<Said>, Error>,
    pub(crate) language: Language,
    pub(crate) now: Timestamp,
}

impl Default for Corpora {
    fn default() -> Self {
        Self(Mutex::new(LruCache::unbounded()))
    }
}

impl Corpora {
    /// Tells every corpus of an item's change.
    pub(crate) fn changed(&self, item: ItemId) {
        let kept: Vec<Arc<Kept>> = lock(&self.0).iter().map(|(_, kept)| kept.clone()).collect();
        kept.iter().for_each(|kept| kept.changed(item));
    }

    /// Forgets them all.
    pub fn clear(&self) {
        lock(&self.0).clear();
    }

    /// What a query finds of what an agent sees: the best first.
    ///
    /// # Errors
    /// [`Error::Overtaken`] when what it sees changes faster than it is read; [`Error::Store`], [`Error::Corrupt`].
    pub(crate) fn find(
        &self,
        agent: &Did,
        query: &str,
        seen: &Seen<'_>,
    ) -> Result<Vec<(ItemId, f32)>, Error> {
        let kept = lock(&self.0).get_or_insert(agent.clone(), Arc::default).clone();
        {
            let _turn = lock(&kept.making);
            let is_made = lock(&kept.state).corpus.is_some();
            if !is_made {
                kept.make(seen)?;
                self.trim();
            }
            kept.follow(seen)?;
        }
        let mut state = lock(&kept.state);
        let corpus = state.corpus.as_mut().ok_or(Error::Overtaken)?;
        corpus.expire(seen.now);
        Ok(corpus.find(query))
    }

    /// Lets go of those that were not asked for longest, until the rest fits.
    fn trim(&self) {
        let mut all = lock(&self.0);
        let size = |kept: &Arc<Kept>| lock(&kept.state).corpus.as_ref().map_or(0, Corpus::bytes);
        let mut bytes: usize = all.iter().map(|(_, kept)| size(kept)).sum();
        while all.len() > 1 && bytes > MAX_CORPORA_BYTES {
            bytes = bytes.saturating_sub(all.pop_lru().map_or(0, |(_, kept)| size(&kept)));
        }
    }
}

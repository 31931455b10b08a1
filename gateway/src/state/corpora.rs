//! What each of the owner's agents may see, by words, in memory: made at an agent's first question, and then it follows.
//!
//! A change takes an item's words out at once; what the item says then is taken over before the next answer.

use crate::error::{Error, Unavailable};
use lru::LruCache;
use oap_exchange::Corpus;
use oap_exchange::rank::Document;
use oap_identity::{Did, ItemId, Timestamp};
use oap_memory::Kind;
use oap_memory::text::Language;
use oap_soundness::trust::Decay;
use std::cmp::Ordering;
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// How much memory they take together, in bytes, about: beyond it those are let go that were not asked for longest.
pub const MAX_CORPORA_BYTES: usize = 256 << 20;
/// Most changes that one notes; after more it is made anew.
const MAX_CHANGED: usize = 10_000;

/// The corpora of the owner's agents, of whom there is a bounded number: of each at most two, by whether its view changes all. By the
/// same agent's key and its clients both are asked for in turn.
pub struct Corpora(Mutex<LruCache<(Did, bool), Arc<Kept>>>);

#[derive(Debug, Default)]
struct Kept {
    /// How often permissions of namespaces had been changed before it was made; after more it is made anew.
    times: u64,
    /// How what it holds is believed: what ends when.
    decay: Decay,
    /// One at a time brings it up to date.
    making: Mutex<()>,
    state: Mutex<State>,
    /// Changes that whoever holds the state takes over: the store's writer, which tells of them, never waits for a ranking.
    told: Mutex<BTreeSet<ItemId>>,
    bytes: AtomicUsize,
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

impl State {
    /// Takes an item's words out.
    fn changed(&mut self, item: ItemId) {
        if let Some(corpus) = &mut self.corpus {
            corpus.remove(item);
        }
        if self.changed.len() < MAX_CHANGED {
            self.changed.insert(item);
        } else {
            *self = Self { overflown: true, ..Self::default() };
        }
    }
}

impl Kept {
    /// Takes an item's words out: now, or when whoever holds the state is done with it.
    fn changed(&self, item: ItemId) {
        lock(&self.told).insert(item);
        self.settle();
    }

    /// Takes over what was told, unless somebody holds the state, who does it.
    fn settle(&self) {
        while !lock(&self.told).is_empty() {
            let Ok(mut state) = self.state.try_lock() else { return };
            let told = std::mem::take(&mut *lock(&self.told));
            told.into_iter().for_each(|item| state.changed(item));
        }
    }

    /// Works on the state as it is by all that was told.
    fn with<T>(&self, work: impl FnOnce(&mut State) -> T) -> T {
        let done = {
            let mut state = lock(&self.state);
            let told = std::mem::take(&mut *lock(&self.told));
            told.into_iter().for_each(|item| state.changed(item));
            let done = work(&mut state);
            self.bytes.store(state.corpus.as_ref().map_or(0, Corpus::bytes), Relaxed);
            done
        };
        self.settle();
        done
    }

    /// Makes it of everything that is seen. What changes meanwhile stays out.
    fn make(&self, view: &AgentView<'_>) -> Result<(), Error> {
        self.with(|state| *state = State::default());
        let mut made = Corpus::new(view.language);
        for item in (view.everything)() {
            if let Some(said) = (view.read)(item)? {
                insert(&mut made, item, &said);
            }
        }
        self.with(|state| {
            if !state.overflown {
                state.changed.iter().for_each(|item| made.remove(*item));
                state.corpus = Some(made);
            }
        });
        Ok(())
    }

    /// Takes over what changed. What changes again meanwhile stays out.
    fn follow(&self, view: &AgentView<'_>) -> Result<(), Error> {
        let changed = self.with(|state| std::mem::take(&mut state.changed));
        let read = changed.iter().map(|item| Ok((*item, (view.read)(*item)?)));
        let read: Vec<(ItemId, Option<Said>)> = match read.collect() {
            Ok(read) => read,
            Err(error) => {
                self.with(|state| *state = State::default());
                return Err(error);
            }
        };
        self.with(|state| {
            let State { corpus: Some(corpus), changed, .. } = state else { return };
            for (item, said) in read {
                if let Some(said) = said.filter(|_| !changed.contains(&item)) {
                    insert(corpus, item, &said);
                }
            }
        });
        Ok(())
    }
}

/// How an agent sees the memory.
pub(crate) struct AgentView<'a> {
    /// What its view rests on, beside what is remembered: whether it changes all, and how often permissions of namespaces were changed.
    pub(crate) by: (bool, u64),
    /// How it is believed.
    pub(crate) decay: Decay,
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

    /// Forgets those of an agent, which was removed.
    pub(crate) fn remove(&self, agent: &Did) {
        let mut all = lock(&self.0);
        for changes_all in [false, true] {
            all.pop(&(agent.clone(), changes_all));
        }
    }

    /// Forgets them all.
    pub fn clear(&self) {
        lock(&self.0).clear();
    }

    /// What a query finds of what an agent sees: the best first.
    ///
    /// # Errors
    /// [`Error::Overtaken`] when what it sees changes faster than it is read; [`Error::Unavailable`] where permissions of namespaces were
    /// changed since; [`Error::Store`], [`Error::Corrupt`].
    pub(crate) fn find(
        &self,
        agent: &Did,
        query: &str,
        view: &AgentView<'_>,
    ) -> Result<Vec<(ItemId, f32)>, Error> {
        let (changes_all, times) = view.by;
        let place = (agent.clone(), changes_all);
        let kept = {
            let mut all = lock(&self.0);
            match all.peek(&place).map(|kept| (kept.times.cmp(&times), kept.decay)) {
                Some((Ordering::Less, _)) => drop(all.pop(&place)),
                // It commits nothing, and takes nothing away from those who do.
                Some((Ordering::Greater, _)) => return Err(Error::Unavailable(Unavailable::Permissions)),
                Some((Ordering::Equal, by)) if by != view.decay => drop(all.pop(&place)),
                Some((Ordering::Equal, _)) | None => {}
            }
            let new = || Arc::new(Kept { times, decay: view.decay, ..Kept::default() });
            all.get_or_insert(place.clone(), new).clone()
        };
        {
            let _turn = lock(&kept.making);
            if !kept.with(|state| state.corpus.is_some()) {
                kept.make(view)?;
            }
            kept.follow(view)?;
            self.trim();
        }
        // One that was let go meanwhile hears of no change.
        if !lock(&self.0).peek(&place).is_some_and(|there| Arc::ptr_eq(there, &kept)) {
            return Err(Error::Overtaken);
        }
        kept.with(|state| {
            let corpus = state.corpus.as_mut().ok_or(Error::Overtaken)?;
            corpus.expire(view.now);
            Ok(corpus.find(query))
        })
    }

    /// Lets go of those that were not asked for longest, until the rest fits.
    fn trim(&self) {
        let mut all = lock(&self.0);
        let size = |kept: &Arc<Kept>| kept.bytes.load(Relaxed);
        let mut bytes: usize = all.iter().map(|(_, kept)| size(kept)).sum();
        while all.len() > 1 && bytes > MAX_CORPORA_BYTES {
            bytes = bytes.saturating_sub(all.pop_lru().map_or(0, |(_, kept)| size(&kept)));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;

    /// Finds by a view that sees nothing; each time that its corpus is made is counted.
    fn finds(corpora: &Corpora, by: (bool, u64), made: &Cell<usize>) -> Result<(), Error> {
        finds_by(corpora, by, Decay::default(), made)
    }

    fn finds_by(corpora: &Corpora, by: (bool, u64), decay: Decay, made: &Cell<usize>) -> Result<(), Error> {
        let agent = "did:web:scout.example".parse().unwrap();
        let everything = || {
            made.set(made.get() + 1);
            Vec::<ItemId>::new()
        };
        let read = |_: ItemId| Ok::<_, Error>(None);
        let (language, now) = (Language::English, Timestamp::from_millis(0));
        let view = AgentView { by, decay, everything: &everything, read: &read, language, now };
        corpora.find(&agent, "tea", &view).map(drop)
    }

    #[test]
    fn views_in_turn_leave_each_other_theirs() {
        let (corpora, made) = (Corpora::default(), Cell::new(0));
        for _ in 0..3 {
            for changes_all in [false, true] {
                finds(&corpora, (changes_all, 1), &made).unwrap();
            }
        }
        assert_eq!(made.get(), 2);
        corpora.remove(&"did:web:scout.example".parse().unwrap());
        assert!(lock(&corpora.0).is_empty());
    }

    /// Whoever looked by another decay may have left out what is believed, or ranked with what is not.
    #[test]
    fn what_was_made_by_another_decay_is_made_anew() {
        let (corpora, made) = (Corpora::default(), Cell::new(0));
        for (decay, times) in [(Decay::NONE, 1), (Decay::NONE, 1), (Decay::default(), 2), (Decay::NONE, 3)] {
            finds_by(&corpora, (false, 1), decay, &made).unwrap();
            assert_eq!(made.get(), times);
        }
    }

    #[test]
    fn a_view_of_before_takes_none_away() {
        let (corpora, made) = (Corpora::default(), Cell::new(0));
        for times in [1, 2] {
            finds(&corpora, (false, times), &made).unwrap();
        }
        let before = finds(&corpora, (false, 1), &made);
        assert!(matches!(before, Err(Error::Unavailable(Unavailable::Permissions))));
        finds(&corpora, (false, 2), &made).unwrap();
        assert_eq!(made.get(), 2);
    }
}

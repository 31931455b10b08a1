//! What the owner's agents concluded, by its words, in memory: made at an agent's first conclusion, and then it follows (docs/soundness.md).
//!
//! It holds nothing of what they say but a hash under a key that the process drew, and finds candidates: who asks compares the words.

use crate::error::Error;
use oap_identity::{Did, ItemId};
use std::collections::hash_map::RandomState;
use std::collections::{BTreeSet, HashMap, HashSet};
use std::hash::BuildHasher;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Most changes that are noted; after more everything is read anew.
pub const MAX_CHANGED: usize = 10_000;

/// The conclusions of the owner's agents.
#[derive(Debug, Default)]
pub(crate) struct Concluded {
    hasher: RandomState,
    /// One at a time reads.
    reading: Mutex<()>,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// The hash of agent and words that an item is found under.
    of: HashMap<ItemId, u64>,
    by: HashMap<u64, BTreeSet<ItemId>>,
    /// The agents whose conclusions were all read.
    whole: HashSet<Did>,
    /// What changed since it was read.
    changed: BTreeSet<ItemId>,
    /// How often everything was thrown away.
    cleared: u64,
}

impl State {
    fn remove(&mut self, item: ItemId) {
        let Some(hash) = self.of.remove(&item) else { return };
        if let Some(items) = self.by.get_mut(&hash) {
            items.remove(&item);
            if items.is_empty() {
                self.by.remove(&hash);
            }
        }
    }

    fn insert(&mut self, item: ItemId, hash: u64) {
        self.remove(item);
        self.of.insert(item, hash);
        self.by.entry(hash).or_default().insert(item);
    }

    fn clear(&mut self) {
        *self = Self { cleared: self.cleared.wrapping_add(1), ..Self::default() };
    }
}

/// Who concluded something, and in what words.
pub(crate) type Said = (Did, String);

impl Concluded {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes an item out that changed.
    pub(crate) fn changed(&self, item: ItemId) {
        let mut state = self.state();
        if state.whole.is_empty() {
            return;
        }
        state.remove(item);
        if state.changed.len() < MAX_CHANGED {
            state.changed.insert(item);
        } else {
            state.clear();
        }
    }

    /// Forgets everything.
    pub(crate) fn clear(&self) {
        self.state().clear();
    }

    /// Items in which an agent may have concluded something in these words. `own` are all that it wrote, `read` says who concluded an item
    /// and in what words, where an agent did.
    ///
    /// # Errors
    /// [`Error::Overtaken`] where everything was thrown away meanwhile; those of `read`.
    pub(crate) fn find(
        &self,
        agent: &Did,
        words: &str,
        own: impl FnOnce() -> Vec<ItemId>,
        read: impl Fn(ItemId) -> Result<Option<Said>, Error>,
    ) -> Result<Vec<ItemId>, Error> {
        let _turn = self.reading.lock().unwrap_or_else(PoisonError::into_inner);
        let (to_read, cleared) = {
            let mut state = self.state();
            // From here on its changes are noted.
            let is_new = state.whole.insert(agent.clone());
            let mut to_read: BTreeSet<ItemId> = std::mem::take(&mut state.changed);
            let cleared = state.cleared;
            drop(state);
            if is_new {
                to_read.extend(own());
            }
            (to_read, cleared)
        };
        let mut found = Vec::new();
        for item in to_read {
            match read(item) {
                Ok(said) => found.extend(said.map(|said| (item, self.hasher.hash_one(&said)))),
                Err(error) => {
                    self.clear();
                    return Err(error);
                }
            }
        }
        let mut state = self.state();
        if state.cleared != cleared {
            return Err(Error::Overtaken);
        }
        for (item, hash) in found {
            // What changed again meanwhile is read the next time.
            if !state.changed.contains(&item) {
                state.insert(item, hash);
            }
        }
        let hash = self.hasher.hash_one(&(agent.clone(), words.to_owned()));
        Ok(state.by.get(&hash).map(|items| items.iter().copied().collect()).unwrap_or_default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::RefCell;
    use std::collections::BTreeMap;

    #[test]
    fn it_follows_what_changes() {
        let concluded = Concluded::default();
        let (one, other): (Did, Did) =
            ("did:web:a.example".parse().unwrap(), "did:web:b.example".parse().unwrap());
        let item = |n: u8| ItemId::from_bytes([n; 16]);
        let there: RefCell<BTreeMap<ItemId, Said>> = RefCell::default();
        let reads = RefCell::new(0);
        let find = |agent: &Did, words: &str| {
            let own = || {
                there.borrow().iter().filter(|(_, said)| said.0 == *agent).map(|(item, _)| *item).collect()
            };
            let read = |item: ItemId| {
                *reads.borrow_mut() += 1;
                Ok(there.borrow().get(&item).cloned())
            };
            concluded.find(agent, words, own, read).unwrap()
        };
        let set = |n: u8, said: Option<(&Did, &str)>| {
            match said {
                Some((did, words)) => there.borrow_mut().insert(item(n), (did.clone(), words.to_owned())),
                None => there.borrow_mut().remove(&item(n)),
            };
            concluded.changed(item(n));
        };
        set(1, Some((&one, "deep")));
        assert_eq!(find(&one, "deep"), [item(1)]);
        assert!(find(&other, "deep").is_empty());
        let read = *reads.borrow();
        assert_eq!(find(&one, "deep"), [item(1)]);
        assert_eq!(*reads.borrow(), read, "nothing changed, and nothing is read");
        set(2, Some((&one, "deep")));
        set(3, Some((&other, "deep")));
        assert_eq!(find(&one, "deep"), [item(1), item(2)]);
        assert_eq!(find(&other, "deep"), [item(3)]);
        set(1, Some((&one, "cold")));
        set(2, None);
        assert_eq!((find(&one, "deep"), find(&one, "cold")), (vec![], vec![item(1)]));
        // Thrown away, it is made anew.
        concluded.clear();
        assert_eq!(find(&one, "cold"), [item(1)]);
        for n in 0..=MAX_CHANGED as u128 {
            concluded.changed(ItemId::from_bytes((n << 64).to_be_bytes()));
        }
        assert_eq!(find(&one, "cold"), [item(1)]);
    }

    #[test]
    fn an_error_leaves_nothing_half_read() {
        let concluded = Concluded::default();
        let one: Did = "did:web:a.example".parse().unwrap();
        let item = ItemId::from_bytes([1; 16]);
        let read = |_: ItemId| Err(Error::NotFound);
        assert!(concluded.find(&one, "deep", || vec![item], read).is_err());
        let read = |_: ItemId| Ok(Some((one.clone(), "deep".to_owned())));
        assert_eq!(concluded.find(&one, "deep", || vec![item], read).unwrap(), [item]);
    }
}

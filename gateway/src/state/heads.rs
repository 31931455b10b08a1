//! What selection needs of every item, in memory.

use crate::error::Error;
use crate::state::commits::Writing;
use crate::state::schema::{HEADS, PEOPLE};
use oap_identity::ItemId;
use oap_memory::Head;
use oap_memory::detect::People;
use oap_store::{Store, StoreError};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};

/// The heads of all items that are not erased.
#[derive(Debug, Default)]
pub struct Heads {
    heads: RwLock<BTreeMap<ItemId, Arc<Head>>>,
    people: Mutex<PeopleCache>,
}

/// The contacts' people, made when they are asked for: never on the writer's thread, which tells of a change.
#[derive(Debug, Default)]
struct PeopleCache {
    changes: u64,
    made: Option<Arc<Contacts>>,
}

/// The people of the owner's contacts, as text is cut with them.
#[derive(Debug, Clone, Default)]
#[allow(missing_docs, reason = "the names say it")]
pub struct Contacts {
    /// How often they had changed: what was cut with others is cut anew before it is stored.
    pub changes: u64,
    pub people: Arc<People>,
}

impl Heads {
    /// Reads the heads of a store.
    ///
    /// # Errors
    /// [`Error::Store`], [`Error::Corrupt`].
    pub fn load(store: &Store) -> Result<Self, Error> {
        let mut heads = BTreeMap::new();
        for row in HEADS.scan(store) {
            match row {
                Ok((item, head)) => drop(heads.insert(item, Arc::new(head))),
                // Destroyed by a sweep that finished a deletion after a crash; the sweep of items clears the rest.
                Err(StoreError::Erased) => {}
                Err(error) => return Err(error.into()),
            }
        }
        let changes = PEOPLE.get(store)?;
        let people = Mutex::new(PeopleCache { changes, made: None });
        Ok(Self { heads: RwLock::new(heads), people })
    }

    /// The head of an item.
    #[must_use]
    pub fn get(&self, item: ItemId) -> Option<Arc<Head>> {
        self.heads.read().unwrap_or_else(PoisonError::into_inner).get(&item).cloned()
    }

    /// Every head, in the order of ids.
    #[must_use]
    pub fn all(&self) -> Vec<Arc<Head>> {
        self.heads.read().unwrap_or_else(PoisonError::into_inner).values().cloned().collect()
    }

    /// The items from one id to another, at most so many.
    #[must_use]
    pub fn between(&self, first: ItemId, last: ItemId, most: usize) -> Vec<ItemId> {
        let heads = self.heads.read().unwrap_or_else(PoisonError::into_inner);
        heads.range(first..=last).take(most).map(|(item, _)| *item).collect()
    }

    /// Puts a head, or takes one out; returns what was there.
    pub fn set(&self, item: ItemId, head: Option<Arc<Head>>) -> Option<Arc<Head>> {
        let mut heads = self.heads.write().unwrap_or_else(PoisonError::into_inner);
        match head {
            Some(head) => heads.insert(item, head),
            None => heads.remove(&item),
        }
    }

    /// The people of the owner's contacts.
    #[must_use]
    pub fn people(&self) -> Arc<Contacts> {
        // The count first: a change meanwhile makes it too low, never too high.
        let changes = {
            let known = self.cached();
            if let Some(made) = &known.made {
                return made.clone();
            }
            known.changes
        };
        let heads = self.all();
        let words = heads.iter().flat_map(|head| &head.people).map(String::as_str);
        let made = Arc::new(Contacts { changes, people: Arc::new(People::new(words)) });
        let mut known = self.cached();
        if known.changes == changes {
            known.made = Some(made.clone());
        }
        made
    }

    fn cached(&self) -> MutexGuard<'_, PeopleCache> {
        self.people.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Those, and these.
    #[must_use]
    pub fn people_and(&self, words: &[String]) -> Arc<Contacts> {
        let known = self.people();
        if words.is_empty() {
            return known;
        }
        let heads = self.all();
        let all = heads.iter().flat_map(|head| &head.people).chain(words);
        Arc::new(Contacts { changes: known.changes, people: Arc::new(People::new(all.map(String::as_str))) })
    }

    /// Forgets the people that were made, once the contacts have changed so often.
    pub fn contacts_changed(&self, changes: u64) {
        *self.cached() = PeopleCache { changes, made: None };
    }

    /// How many items there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.heads.read().unwrap_or_else(PoisonError::into_inner).len()
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl Writing<'_, '_> {
    /// Counts a change of the owner's contacts, and has the heads take them over.
    pub(crate) fn count_contacts(&mut self) -> Result<(), Error> {
        let count = PEOPLE.count(self.tx)?;
        let gateway = self.gateway.clone();
        self.tx.on_commit(move || gateway.heads.contacts_changed(count + 1));
        Ok(())
    }
}

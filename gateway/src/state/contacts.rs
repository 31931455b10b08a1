//! The names of the owner's contacts, as texts are cut with them.

use crate::error::Error;
use crate::state::commits::Writing;
use crate::state::heads::Heads;
use crate::state::schema::PEOPLE;
use oap_memory::detect::People;
use oap_store::Store;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The people of the owner's contacts at one time.
#[derive(Debug, Clone, Default)]
pub struct Contacts {
    /// How often they had changed: what was cut with others is cut anew before it is stored.
    pub changes: u64,
    /// Names, addresses and numbers of those people.
    pub people: Arc<People>,
}

/// The contacts' people, made when they are asked for: never on the writer's thread, which tells of a change.
#[derive(Debug, Default)]
pub struct ContactNames(Mutex<Cache>);

#[derive(Debug, Default)]
struct Cache {
    changes: u64,
    made: Option<Arc<Contacts>>,
}

impl ContactNames {
    /// Reads how often they changed.
    ///
    /// # Errors
    /// [`Error::Store`].
    pub fn load(store: &Store) -> Result<Self, Error> {
        Ok(Self(Mutex::new(Cache { changes: PEOPLE.get(store)?, made: None })))
    }

    /// The people of the contacts among these items.
    #[must_use]
    pub fn of(&self, heads: &Heads) -> Arc<Contacts> {
        // The count first: a change meanwhile makes it too low, never too high.
        let changes = {
            let known = self.cached();
            if let Some(made) = &known.made {
                return made.clone();
            }
            known.changes
        };
        let heads = heads.peopled();
        let words = heads.iter().flat_map(|head| head.few.people()).map(String::as_str);
        let made = Arc::new(Contacts { changes, people: Arc::new(People::new(words)) });
        let mut known = self.cached();
        if known.changes == changes {
            known.made = Some(made.clone());
        }
        made
    }

    /// Those, and these.
    #[must_use]
    pub fn of_and(&self, heads: &Heads, words: &[String]) -> Arc<Contacts> {
        let known = self.of(heads);
        if words.is_empty() {
            return known;
        }
        let heads = heads.peopled();
        let all = heads.iter().flat_map(|head| head.few.people()).chain(words);
        Arc::new(Contacts { changes: known.changes, people: Arc::new(People::new(all.map(String::as_str))) })
    }

    /// Forgets the people that were made, once the contacts have changed so often.
    fn changed(&self, changes: u64) {
        *self.cached() = Cache { changes, made: None };
    }

    fn cached(&self) -> MutexGuard<'_, Cache> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Writing<'_, '_> {
    /// Counts a change of the owner's contacts, and has their names made anew.
    pub(crate) fn count_contacts(&mut self) -> Result<(), Error> {
        let count = PEOPLE.count(self.tx)?;
        let gateway = self.gateway.clone();
        self.tx.on_commit(move || gateway.contact_names.changed(count + 1));
        Ok(())
    }
}

//! What selection needs of every item, in memory.

use crate::error::Error;
use crate::state::schema::HEADS;
use oap_identity::ItemId;
use oap_memory::Head;
use oap_store::{Store, StoreError};
use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError, RwLock};

/// The heads of all items that are not erased.
#[derive(Debug, Default)]
pub struct Heads {
    heads: RwLock<BTreeMap<ItemId, Arc<Head>>>,
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
        Ok(Self { heads: RwLock::new(heads) })
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

    /// How many items there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.heads.read().unwrap_or_else(PoisonError::into_inner).len()
    }

    /// Whether there are no items.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

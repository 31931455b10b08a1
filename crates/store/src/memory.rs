//! An engine without a disk, for tests.

use crate::StoreError;
use crate::engine::{Engine, Op, Pairs};
use std::collections::BTreeMap;
use std::sync::{PoisonError, RwLock};

/// A map in memory. Nothing is durable.
#[derive(Debug, Default)]
pub struct MemoryEngine(RwLock<BTreeMap<Vec<u8>, Vec<u8>>>);

impl Engine for MemoryEngine {
    fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>, StoreError> {
        Ok(self.0.read().unwrap_or_else(PoisonError::into_inner).get(key).cloned())
    }

    fn scan<'a>(&'a self, prefix: &[u8], from: &[u8], descending: bool) -> Pairs<'a> {
        let map = self.0.read().unwrap_or_else(PoisonError::into_inner);
        let begins = |(key, _): &(&Vec<u8>, &Vec<u8>)| key.starts_with(prefix);
        let owned = |(key, value): (&Vec<u8>, &Vec<u8>)| Ok((key.clone(), value.clone()));
        let found: Vec<_> = if descending {
            map.range(..=from.to_vec()).rev().take_while(begins).map(owned).collect()
        } else {
            map.range(from.to_vec()..).take_while(begins).map(owned).collect()
        };
        Box::new(found.into_iter())
    }

    fn apply(&self, batch: Vec<Op>) -> Result<(), StoreError> {
        let mut map = self.0.write().unwrap_or_else(PoisonError::into_inner);
        for op in batch {
            match op {
                Op::Put(key, value) => map.insert(key, value),
                Op::Delete(key) => map.remove(&key),
            };
        }
        Ok(())
    }
}

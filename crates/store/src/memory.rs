//! An engine without a disk, for tests.

use crate::StoreError;
use crate::engine::{Engine, Op, OwnedPairs, Pairs};
use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::{Arc, PoisonError, RwLock};

type Map = BTreeMap<Vec<u8>, Vec<u8>>;

/// A map in memory. Nothing is durable. A batch that meets a snapshot copies the map.
#[derive(Debug, Default)]
pub struct MemoryEngine(RwLock<Arc<Map>>);

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
        let map = Arc::make_mut(&mut map);
        for op in batch {
            match op {
                Op::Put(key, value) => map.insert(key, value),
                Op::Delete(key) => map.remove(&key),
            };
        }
        Ok(())
    }

    fn snapshot(&self) -> Result<OwnedPairs, StoreError> {
        let map = self.0.read().unwrap_or_else(PoisonError::into_inner).clone();
        let mut last: Option<Vec<u8>> = None;
        Ok(Box::new(std::iter::from_fn(move || {
            let from = last.as_ref().map_or(Bound::Unbounded, Bound::Excluded);
            let (key, value) = map.range::<Vec<u8>, _>((from, Bound::Unbounded)).next()?;
            let pair = (key.clone(), value.clone());
            last = Some(pair.0.clone());
            Some(Ok(pair))
        })))
    }
}

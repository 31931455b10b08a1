//! What a database has to offer.

use crate::StoreError;
use std::sync::Arc;

/// One change of a batch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Op {
    /// Write a value, over whatever is there.
    Put(Vec<u8>, Vec<u8>),
    /// Remove a value, if it is there.
    Delete(Vec<u8>),
}

/// Pairs of key and value in the order of keys.
pub type Pairs<'a> = Box<dyn Iterator<Item = Result<(Vec<u8>, Vec<u8>), StoreError>> + 'a>;

/// The same, of their own: whoever reads them holds nothing of the engine up.
pub type OwnedPairs = Box<dyn Iterator<Item = Result<(Vec<u8>, Vec<u8>), StoreError>> + Send>;

/// An ordered map of bytes with atomic, durable batches.
///
/// One writer calls [`Engine::apply`]; any number of readers call the rest, at any time. A reader sees a batch
/// whole or not at all.
pub trait Engine: Send + Sync + 'static {
    /// The value of a key.
    ///
    /// # Errors
    /// [`StoreError::Engine`].
    fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>, StoreError>;

    /// Everything whose key begins so, in the order of keys, ascending from `from` on or descending from there.
    /// `from` begins with the prefix.
    fn scan<'a>(&'a self, prefix: &[u8], from: &[u8], descending: bool) -> Pairs<'a>;

    /// Applies a batch: all of it or nothing, and on disk before it returns. A batch may be seen by readers
    /// before it is durable, but is never acknowledged before.
    ///
    /// # Errors
    /// [`StoreError::Full`] when the disk is full: the batch is not there, and the next may be.
    /// [`StoreError::Engine`]; then nobody knows whether the batch is there, and the store takes no more.
    fn apply(&self, batch: Vec<Op>) -> Result<(), StoreError>;

    /// Everything as it stands now, in the order of keys. Batches that are applied while it is read do not change it, and do
    /// not wait for its end.
    ///
    /// An engine that has nothing better copies it all into memory.
    ///
    /// # Errors
    /// [`StoreError::Engine`].
    fn snapshot(&self) -> Result<OwnedPairs, StoreError> {
        let all: Vec<_> = self.scan(&[], &[], false).collect();
        Ok(Box::new(all.into_iter()))
    }

    /// Its name, as the configuration has it.
    fn name(&self) -> &'static str {
        "memory"
    }

    /// Bytes that a batch takes on disk at most, from its operations and the bytes of their keys and values.
    fn room(&self, operations: usize, bytes: usize) -> u64 {
        let _ = (operations, bytes);
        0
    }

    /// Bytes that batches which were applied may still take on disk.
    fn owed(&self) -> u64 {
        0
    }

    /// Takes what is owed.
    ///
    /// # Errors
    /// As [`Engine::apply`]. Whatever was applied is there.
    fn settle(&self) -> Result<(), StoreError> {
        Ok(())
    }

    /// Whether a disk that is full during [`Engine::apply`] leaves the engine as it was before.
    fn survives_full(&self) -> bool {
        true
    }
}

impl<E: Engine + ?Sized> Engine for Arc<E> {
    fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>, StoreError> {
        (**self).get(key)
    }
    fn scan<'a>(&'a self, prefix: &[u8], from: &[u8], descending: bool) -> Pairs<'a> {
        (**self).scan(prefix, from, descending)
    }
    fn apply(&self, batch: Vec<Op>) -> Result<(), StoreError> {
        (**self).apply(batch)
    }
    fn snapshot(&self) -> Result<OwnedPairs, StoreError> {
        (**self).snapshot()
    }
    fn name(&self) -> &'static str {
        (**self).name()
    }
    fn room(&self, operations: usize, bytes: usize) -> u64 {
        (**self).room(operations, bytes)
    }
    fn owed(&self) -> u64 {
        (**self).owed()
    }
    fn settle(&self) -> Result<(), StoreError> {
        (**self).settle()
    }
    fn survives_full(&self) -> bool {
        (**self).survives_full()
    }
}

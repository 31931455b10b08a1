//! The engine on disk: sled 0.34.

use crate::StoreError;
use crate::engine::{Engine, Op, Pairs};
use sled::{Batch, Db};
use std::path::Path;

/// Memory for sled's page cache, in bytes.
const CACHE: u64 = 32 << 20;

/// A sled database.
#[derive(Debug)]
pub struct SledEngine(Db);

impl SledEngine {
    /// Opens or creates the database in a folder.
    ///
    /// # Errors
    /// [`StoreError::Locked`] when another process has it open, [`StoreError::Engine`].
    pub fn open(path: &Path) -> Result<Self, StoreError> {
        // Flushed by hand after each batch; never in the background.
        let config = sled::Config::new().path(path).cache_capacity(CACHE).flush_every_ms(None);
        config.open().map(Self).map_err(|e| match &e {
            sled::Error::Io(io) if io.kind() == std::io::ErrorKind::WouldBlock => StoreError::Locked,
            // sled wraps the failed lock in an error of its own.
            _ if e.to_string().contains("could not acquire lock") => StoreError::Locked,
            _ => failed(&e),
        })
    }
}

fn failed(error: &sled::Error) -> StoreError {
    StoreError::Engine(error.to_string())
}

impl Engine for SledEngine {
    fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>, StoreError> {
        Ok(self.0.get(key).map_err(|e| failed(&e))?.map(|value| value.to_vec()))
    }

    fn scan<'a>(&'a self, prefix: &[u8], from: &[u8], descending: bool) -> Pairs<'a> {
        let prefix = prefix.to_vec();
        let owned = move |pair: Result<(sled::IVec, sled::IVec), sled::Error>| match pair {
            Ok((key, value)) => Ok((key.to_vec(), value.to_vec())),
            Err(e) => Err(failed(&e)),
        };
        let begins = move |pair: &Result<(Vec<u8>, Vec<u8>), StoreError>| {
            pair.as_ref().map_or(true, |(key, _)| key.starts_with(&prefix))
        };
        if descending {
            Box::new(self.0.range(..=from).rev().map(owned).take_while(begins))
        } else {
            Box::new(self.0.range(from..).map(owned).take_while(begins))
        }
    }

    fn apply(&self, batch: Vec<Op>) -> Result<(), StoreError> {
        let mut all = Batch::default();
        for op in batch {
            match op {
                Op::Put(key, value) => all.insert(key, value),
                Op::Delete(key) => all.remove(key),
            }
        }
        self.0.apply_batch(all).map_err(|e| failed(&e))?;
        self.0.flush().map(drop).map_err(|e| failed(&e))
    }
}

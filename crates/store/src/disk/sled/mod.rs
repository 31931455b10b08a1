//! sled 0.34, for homes that were made with it or ask for it.

mod snapshot;

use super::{EngineKind, lock};
use crate::engine::{Engine, Op, OwnedPairs, Pairs};
use crate::{EngineError, StoreError};
use sled::{Batch, Db};
use snapshot::Snapshots;
use std::fs::File;
use std::io::ErrorKind;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Memory for sled's page cache, in bytes.
const CACHE: u64 = 32 << 20;
/// How often sled's own lock is asked for once ours is held, and the time between: its threads keep it a little longer than
/// the database that was dropped.
const ATTEMPTS: usize = 400;
const PAUSE: Duration = Duration::from_millis(5);

/// What a batch takes on disk beside its values, in bytes: sled writes whole nodes, and takes segments of 512 KiB.
const PER_OP: u64 = 16 << 10;
const PER_BATCH: u64 = 4 << 20;

/// A sled database, and the lock that says at once whether somebody else has it open.
#[derive(Debug)]
pub struct SledEngine {
    /// There until the engine is dropped.
    db: Option<Db>,
    /// Whether a write failed: then sled's own end would wait for a write that never comes.
    broken: AtomicBool,
    snapshots: Snapshots,
    #[expect(dead_code, reason = "held, and let go after the database")]
    lock: File,
}

impl Drop for SledEngine {
    fn drop(&mut self) {
        if self.broken.load(Ordering::Acquire) {
            std::mem::forget(self.db.take());
        }
    }
}

impl SledEngine {
    /// Opens or creates the database in a folder.
    ///
    /// # Errors
    /// [`StoreError::Locked`] when somebody else has it open, [`StoreError::Engine`].
    pub fn open(path: &Path) -> Result<Self, StoreError> {
        let lock = lock(path)?;
        // Flushed by hand after each batch; never in the background.
        let config = sled::Config::new().path(path).cache_capacity(CACHE).flush_every_ms(None);
        for _ in 0..ATTEMPTS {
            match config.open() {
                Ok(db) => {
                    let snapshots = Snapshots::default();
                    return Ok(Self { db: Some(db), broken: AtomicBool::new(false), snapshots, lock });
                }
                // sled wraps the failed lock in an error of its own, which nothing but its text tells from others of the sort.
                Err(sled::Error::Io(e))
                    if e.kind() == ErrorKind::Other && e.to_string().contains("could not acquire lock") =>
                {
                    std::thread::sleep(PAUSE);
                }
                Err(e) => return Err(failed(&e)),
            }
        }
        Err(StoreError::Locked)
    }

    fn db(&self) -> Result<&Db, StoreError> {
        self.db.as_ref().ok_or(StoreError::Stopped)
    }
}

fn failed(error: &sled::Error) -> StoreError {
    EngineError::Sled(error.clone()).into()
}

impl Engine for SledEngine {
    fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>, StoreError> {
        Ok(self.db()?.get(key).map_err(|e| failed(&e))?.map(|value| value.to_vec()))
    }

    fn scan<'a>(&'a self, prefix: &[u8], from: &[u8], descending: bool) -> Pairs<'a> {
        let db = match self.db() {
            Ok(db) => db,
            Err(error) => return Box::new(std::iter::once(Err(error))),
        };
        let prefix = prefix.to_vec();
        let owned = move |pair: Result<(sled::IVec, sled::IVec), sled::Error>| match pair {
            Ok((key, value)) => Ok((key.to_vec(), value.to_vec())),
            Err(e) => Err(failed(&e)),
        };
        let begins = move |pair: &Result<(Vec<u8>, Vec<u8>), StoreError>| {
            pair.as_ref().map_or(true, |(key, _)| key.starts_with(&prefix))
        };
        if descending {
            Box::new(db.range(..=from).rev().map(owned).take_while(begins))
        } else {
            Box::new(db.range(from..).map(owned).take_while(begins))
        }
    }

    fn apply(&self, batch: Vec<Op>) -> Result<(), StoreError> {
        let mut all = Batch::default();
        for op in &batch {
            match op {
                Op::Put(key, value) => all.insert(key.as_slice(), value.as_slice()),
                Op::Delete(key) => all.remove(key.as_slice()),
            }
        }
        let db = self.db()?;
        let done = self.snapshots.apply(db, &batch, || db.apply_batch(all)).and_then(|()| db.flush());
        done.map(drop).map_err(|e| {
            self.broken.store(true, Ordering::Release);
            failed(&e)
        })
    }

    fn snapshot(&self) -> Result<OwnedPairs, StoreError> {
        Ok(Box::new(self.snapshots.begin(self.db()?)))
    }

    fn name(&self) -> &'static str {
        EngineKind::Sled.name()
    }

    fn room(&self, operations: usize, bytes: usize) -> u64 {
        PER_BATCH + operations as u64 * PER_OP + 8 * bytes as u64
    }

    fn survives_full(&self) -> bool {
        false
    }
}

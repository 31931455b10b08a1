//! The engine on disk: sled 0.34.

use crate::StoreError;
use crate::engine::{Engine, Op, Pairs};
use sled::{Batch, Db};
use std::fs::{DirBuilder, File, Permissions, TryLockError};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::Path;
use std::time::Duration;

/// Memory for sled's page cache, in bytes.
const CACHE: u64 = 32 << 20;
/// How often sled's own lock is asked for once ours is held, and the time between: its threads keep it a little longer than
/// the database that was dropped.
const ATTEMPTS: usize = 400;
const PAUSE: Duration = Duration::from_millis(5);

/// A sled database, and the lock that says at once whether somebody else has it open.
#[derive(Debug)]
pub struct SledEngine(Db, #[expect(dead_code, reason = "held, and let go after the database")] File);

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
                    keep_private(path).map_err(|e| StoreError::Engine(e.to_string()))?;
                    return Ok(Self(db, lock));
                }
                // sled wraps the failed lock in an error of its own.
                Err(e) if e.to_string().contains("could not acquire lock") => std::thread::sleep(PAUSE),
                Err(e) => return Err(failed(&e)),
            }
        }
        Err(StoreError::Locked)
    }
}

fn lock(path: &Path) -> Result<File, StoreError> {
    let failed = |e: std::io::Error| StoreError::Engine(format!("{}: {e}", path.display()));
    DirBuilder::new().recursive(true).mode(0o700).create(path).map_err(failed)?;
    let lock = File::options().write(true).create(true).truncate(false).mode(0o600).open(path.join("lock"));
    let lock = lock.map_err(failed)?;
    match lock.try_lock() {
        Ok(()) => Ok(lock),
        Err(TryLockError::WouldBlock) => Err(StoreError::Locked),
        Err(TryLockError::Error(e)) => Err(failed(e)),
    }
}

/// Takes the folder and everything in it from the eyes of others: sled makes its files as the umask allows.
fn keep_private(path: &Path) -> std::io::Result<()> {
    std::fs::set_permissions(path, Permissions::from_mode(0o700))?;
    for entry in std::fs::read_dir(path)? {
        let entry = entry?;
        let kind = entry.file_type()?;
        if kind.is_dir() {
            keep_private(&entry.path())?;
        } else if kind.is_file() {
            std::fs::set_permissions(entry.path(), Permissions::from_mode(0o600))?;
        }
    }
    Ok(())
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

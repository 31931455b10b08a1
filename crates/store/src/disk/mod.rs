//! Engines on disk, and which of them a folder holds.

mod redb;
mod sled;

pub use self::redb::RedbEngine;
pub use self::sled::SledEngine;

use crate::{Engine, EngineError, Space, StoreError};
use std::fs::{DirBuilder, File, Permissions, TryLockError};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::Path;
use std::sync::Arc;

/// The engines on disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq, strum::IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
pub enum EngineKind {
    /// redb: one file, copy on write. Survives a full disk.
    Redb,
    /// sled: a log. A disk that fills during a commit stops it; see `docs/decisions.md`.
    Sled,
}

impl EngineKind {
    /// Which engine's files a folder holds, if any.
    #[must_use]
    pub fn of(folder: &Path) -> Option<Self> {
        if folder.join(redb::FILE).exists() {
            Some(Self::Redb)
        } else if folder.join("db").exists() || folder.join("conf").exists() {
            Some(Self::Sled)
        } else {
            None
        }
    }

    /// Its name, as the configuration has it.
    #[must_use]
    pub fn name(self) -> &'static str {
        self.into()
    }

    /// Opens the engine whose files the folder holds; an empty folder becomes one of this kind.
    ///
    /// # Errors
    /// [`StoreError::Locked`] when somebody else has it open, [`StoreError::Full`], [`StoreError::Engine`].
    pub fn open(self, folder: &Path, space: &Arc<Space>) -> Result<Arc<dyn Engine>, StoreError> {
        let engine: Arc<dyn Engine> = match Self::of(folder).unwrap_or(self) {
            Self::Redb => Arc::new(RedbEngine::open(folder, space)?),
            Self::Sled => Arc::new(SledEngine::open(folder)?),
        };
        keep_private(folder).map_err(|e| EngineError::File(Arc::new(e)))?;
        Ok(engine)
    }
}

/// Takes the folder and everything in it from the eyes of others: engines make their files as the umask allows.
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

/// Takes the lock that says at once whether somebody else has the folder open.
fn lock(folder: &Path) -> Result<File, StoreError> {
    let failed = |e: std::io::Error| EngineError::Folder { folder: folder.to_owned(), error: Arc::new(e) };
    DirBuilder::new().recursive(true).mode(0o700).create(folder).map_err(failed)?;
    let lock = File::options().write(true).create(true).truncate(false).mode(0o600).open(folder.join("lock"));
    let lock = lock.map_err(failed)?;
    match lock.try_lock() {
        Ok(()) => Ok(lock),
        Err(TryLockError::WouldBlock) => Err(StoreError::Locked),
        Err(TryLockError::Error(e)) => Err(failed(e).into()),
    }
}

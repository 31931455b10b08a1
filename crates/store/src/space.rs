//! Free space: what is checked before a write, and the reserve that is given back for what must be finished.
//!
//! The reserve is a file of real blocks. An ordinary transaction is admitted only while the reserve is whole, or can be made
//! whole, and what the transaction may take is free beside it. The reserve is given back for a commit that meets a disk that
//! somebody else filled after the check, for erasures, and for revocations; afterwards as much as there is goes back into it.

use crate::{EngineError, StoreError};
use rustix::fs::{FallocateFlags, fallocate, fstatvfs};
use std::fmt::Debug;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

/// The largest reserve, in bytes.
pub const MAX_RESERVE: u64 = 16 << 20;
/// The smallest reserve, in bytes.
pub const MIN_RESERVE: u64 = 1 << 20;
/// The reserve is this part of the file system, within its bounds.
pub const RESERVE_SHARE: u64 = 16;
/// What stays free for files beside the store when the reserve is filled on a full disk, in bytes.
pub const BESIDE: u64 = 64 << 10;
/// The reserve's file in the home.
const FILE: &str = "reserve";

/// A file system, and the file that holds the reserve.
pub trait Disk: Debug + Send + Sync {
    /// Bytes of the file system.
    ///
    /// # Errors
    /// What the system says.
    fn total(&self) -> io::Result<u64>;

    /// Bytes that this process may still write, the reserve's not among them.
    ///
    /// # Errors
    /// What the system says.
    fn free(&self) -> io::Result<u64>;

    /// Bytes that the reserve holds.
    ///
    /// # Errors
    /// What the system says.
    fn held(&self) -> io::Result<u64>;

    /// Makes the reserve hold this many bytes.
    ///
    /// # Errors
    /// What the system says; then the reserve holds what it held, or less.
    fn hold(&self, bytes: u64) -> io::Result<()>;
}

/// The file system of a folder.
#[derive(Debug)]
struct Folder(File);

impl Folder {
    fn open(folder: &Path) -> io::Result<Self> {
        let options = || OpenOptions::new().read(true).write(true).mode(0o600).to_owned();
        options().create(true).truncate(false).open(folder.join(FILE)).map(Self)
    }
}

impl Disk for Folder {
    fn total(&self) -> io::Result<u64> {
        let found = fstatvfs(&self.0)?;
        Ok(found.f_blocks.saturating_mul(found.f_frsize))
    }

    fn free(&self) -> io::Result<u64> {
        let found = fstatvfs(&self.0)?;
        Ok(found.f_bavail.saturating_mul(found.f_frsize))
    }

    fn held(&self) -> io::Result<u64> {
        let found = self.0.metadata()?;
        Ok(found.len().min(found.blocks().saturating_mul(512)))
    }

    fn hold(&self, bytes: u64) -> io::Result<()> {
        let held = self.held()?;
        if bytes <= held {
            return self.0.set_len(bytes);
        }
        match fallocate(&self.0, FallocateFlags::empty(), held, bytes - held) {
            Err(rustix::io::Errno::OPNOTSUPP | rustix::io::Errno::NOSYS) => {
                // A file system that cannot reserve: written out.
                let zeros = vec![0; 1 << 16];
                let mut at = held;
                while at < bytes {
                    let length = usize::try_from(bytes - at).unwrap_or(usize::MAX).min(zeros.len());
                    self.0.write_all_at(&zeros[..length], at)?;
                    at += length as u64;
                }
                self.0.sync_data()
            }
            done => Ok(done?),
        }
    }
}

/// The free space of a store.
#[derive(Debug)]
pub struct Space {
    disk: Option<Box<dyn Disk>>,
    /// Bytes that the reserve is to hold.
    goal: u64,
    /// Held while the reserve changes.
    changing: Mutex<()>,
}

/// Whether an error says that the disk, or the quota, is full.
pub(crate) fn is_full(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded)
}

fn failed(error: io::Error) -> StoreError {
    EngineError::Space(Arc::new(error)).into()
}

impl Space {
    /// The space of a home, with the reserve in it. The store fills it when it opens.
    ///
    /// # Errors
    /// [`StoreError::Engine`] when the system tells nothing of the folder.
    pub fn of(home: &Path) -> Result<Arc<Self>, StoreError> {
        Self::on(Folder::open(home).map_err(failed)?)
    }

    /// The space of a disk.
    ///
    /// # Errors
    /// [`StoreError::Engine`] when the disk tells nothing.
    pub fn on(disk: impl Disk + 'static) -> Result<Arc<Self>, StoreError> {
        let goal = (disk.total().map_err(failed)? / RESERVE_SHARE).clamp(MIN_RESERVE, MAX_RESERVE);
        Ok(Arc::new(Self { disk: Some(Box::new(disk)), goal, changing: Mutex::default() }))
    }

    /// Space without end, for stores in memory and for tests.
    #[must_use]
    pub fn endless() -> Arc<Self> {
        Arc::new(Self { disk: None, goal: 0, changing: Mutex::default() })
    }

    /// Bytes that the reserve is to hold; none where space has no end.
    #[must_use]
    pub fn goal(&self) -> Option<u64> {
        self.disk.as_ref().map(|_| self.goal)
    }

    /// Bytes that are missing before a transaction that may take so many is admitted.
    ///
    /// # Errors
    /// [`StoreError::Engine`] when the disk tells nothing: nothing is written blindly.
    pub fn missing(&self, bytes: u64) -> Result<u64, StoreError> {
        let Some(disk) = &self.disk else { return Ok(0) };
        let there = disk.free().map_err(failed)?.saturating_add(disk.held().map_err(failed)?);
        Ok(self.goal.saturating_add(BESIDE).saturating_add(bytes).saturating_sub(there))
    }

    /// Admits an ordinary transaction that may take so many bytes, and makes the reserve whole.
    ///
    /// # Errors
    /// [`StoreError::Full`].
    pub fn admit(&self, bytes: u64) -> Result<(), StoreError> {
        match self.missing(bytes)? {
            0 => {
                self.refill();
                Ok(())
            }
            missing => Err(StoreError::Full { missing }),
        }
    }

    /// Bytes that are free with the reserve given back.
    ///
    /// # Errors
    /// [`StoreError::Engine`].
    pub fn at_most(&self) -> Result<u64, StoreError> {
        let Some(disk) = &self.disk else { return Ok(u64::MAX) };
        Ok(disk.free().map_err(failed)?.saturating_add(disk.held().map_err(failed)?))
    }

    /// Gives the reserve back. Whether there was anything to give.
    pub fn give_back(&self) -> bool {
        let Some(disk) = &self.disk else { return false };
        let _changing = self.changing.lock().unwrap_or_else(PoisonError::into_inner);
        disk.held().is_ok_and(|held| held > 0) && disk.hold(0).is_ok()
    }

    /// Gives the reserve back when less than it is free: before something that must be finished.
    pub fn make_room(&self) {
        let short = |disk: &dyn Disk| disk.free().is_ok_and(|free| free < self.goal);
        if self.disk.as_deref().is_some_and(short) {
            self.give_back();
        }
    }

    /// Fills the reserve, as far as there is room.
    pub fn refill(&self) {
        let Some(disk) = &self.disk else { return };
        let _changing = self.changing.lock().unwrap_or_else(PoisonError::into_inner);
        let Ok(held) = disk.held() else { return };
        if held >= self.goal {
            return;
        }
        let Ok(free) = disk.free() else { return };
        let reach = self.goal.min(held.saturating_add(free.saturating_sub(BESIDE)));
        // Whole blocks, so that what is held is what was asked for.
        let reach = reach / 4096 * 4096;
        if reach > held {
            let _ = disk.hold(reach);
        }
    }

    /// Runs something that writes a file beside the store and must be finished: once more with the reserve given back, if the
    /// disk was full.
    ///
    /// # Errors
    /// What it says.
    pub fn finish<T>(&self, mut run: impl FnMut() -> io::Result<T>) -> io::Result<T> {
        match run() {
            Err(error) if is_full(&error) && self.give_back() => {
                let done = run();
                self.refill();
                done
            }
            done => done,
        }
    }

    /// Bytes that are free, where that is known.
    #[must_use]
    pub fn free(&self) -> Option<u64> {
        self.disk.as_ref()?.free().ok()
    }
}

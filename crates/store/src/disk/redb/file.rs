//! The file under redb: space is taken in chunks that are written before they are used, and from the reserve when the disk is
//! full.
//!
//! A chunk that is written out once costs the file system one change of its metadata; pages written into holes cost one each,
//! and a sync waits for it.

use crate::space::{Space, is_full};
use redb::StorageBackend;
use rustix::fs::{SeekFrom, seek};
use std::collections::BTreeSet;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// How much is taken from the file system at once, in bytes.
const CHUNK: u64 = 512 << 10;
/// With less than this free nothing is taken ahead, in bytes.
const SHORT: u64 = 16 * CHUNK;
/// How much longer the file may be than redb asks, in bytes: it asks for less and for more by turns.
const SURPLUS: u64 = 4 << 20;

/// What went wrong with a file.
#[derive(Debug, Default)]
pub(super) struct Trouble {
    /// A write found no space, with the reserve given back.
    pub(super) full: AtomicBool,
    /// Something else failed.
    pub(super) other: AtomicBool,
}

impl Trouble {
    fn any(&self) -> bool {
        self.full.load(Ordering::Acquire) || self.other.load(Ordering::Acquire)
    }
}

/// The file, and what is known of it.
#[derive(Debug)]
pub(super) struct SpacedFile {
    file: File,
    space: Arc<Space>,
    extent: Mutex<Extent>,
    trouble: Arc<Trouble>,
}

#[derive(Debug)]
struct Extent {
    /// Bytes that redb asked for.
    length: u64,
    /// Bytes of the file.
    physical: u64,
    /// Chunks without a block.
    holes: BTreeSet<u64>,
}

impl SpacedFile {
    pub(super) fn new(file: File, space: Arc<Space>, trouble: Arc<Trouble>) -> io::Result<Self> {
        let physical = file.metadata()?.len();
        let extent = Extent { length: physical, physical, holes: holes(&file, physical) };
        Ok(Self { file, space, extent: Mutex::new(extent), trouble })
    }

    fn extent(&self) -> std::sync::MutexGuard<'_, Extent> {
        self.extent.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Does it, and once more with the reserve given back: a commit that began is finished.
    fn finish<T>(&self, mut run: impl FnMut() -> io::Result<T>) -> io::Result<T> {
        let mut done = run();
        if done.as_ref().err().is_some_and(is_full) && self.space.give_back() {
            done = run();
        }
        match &done {
            Err(error) if is_full(error) => self.trouble.full.store(true, Ordering::Release),
            Err(_) => self.trouble.other.store(true, Ordering::Release),
            Ok(_) => {}
        }
        done
    }

    /// Writes zeros to the chunks that a write touches first. Best effort: what fails here fails in the write, or not at all.
    fn fill(&self, offset: u64, length: u64) {
        let (first, last) = (offset / CHUNK, offset.saturating_add(length.max(1) - 1) / CHUNK);
        let mut extent = self.extent();
        if extent.holes.range(first..=last).next().is_none()
            || self.space.free().is_some_and(|free| free < SHORT)
        {
            return;
        }
        let touched: Vec<u64> = extent.holes.range(first..=last).copied().collect();
        for chunk in touched {
            extent.holes.remove(&chunk);
            let start = chunk * CHUNK;
            let end = (start + CHUNK).min(extent.physical);
            let size = usize::try_from(end.saturating_sub(start)).unwrap_or_default();
            let _ = self.file.write_all_at(&vec![0; size], start);
        }
    }
}

/// The chunks of a file that have no block at all; none where the file system does not say.
fn holes(file: &File, length: u64) -> BTreeSet<u64> {
    let mut holes: BTreeSet<u64> = (0..length.div_ceil(CHUNK)).collect();
    let mut at = 0;
    while at < length {
        let data = match seek(file, SeekFrom::Data(at)) {
            Ok(data) => data,
            // Nothing but a hole from here on.
            Err(rustix::io::Errno::NXIO) => return holes,
            Err(_) => return BTreeSet::new(),
        };
        let Ok(end) = seek(file, SeekFrom::Hole(data)) else { return BTreeSet::new() };
        holes.retain(|chunk| chunk * CHUNK >= end || (chunk + 1) * CHUNK <= data);
        at = end.max(at + 1);
    }
    holes
}

impl StorageBackend for SpacedFile {
    fn len(&self) -> io::Result<u64> {
        Ok(self.extent().length)
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        self.file.read_exact_at(out, offset)
    }

    fn set_len(&self, length: u64) -> io::Result<()> {
        let mut extent = self.extent();
        if length > extent.physical {
            self.finish(|| self.file.set_len(length))?;
            let before = extent.physical.div_ceil(CHUNK);
            extent.holes.extend(before..length.div_ceil(CHUNK));
            extent.physical = length;
        } else if extent.physical - length > SURPLUS {
            self.file.set_len(length)?;
            extent.holes.split_off(&length.div_ceil(CHUNK));
            extent.physical = length;
        }
        if length > extent.length {
            // What was given up and kept reads as zeros again.
            let kept = extent.physical.min(length);
            let mut at = extent.length;
            while at < kept {
                let chunk = at / CHUNK;
                let end = ((chunk + 1) * CHUNK).min(kept);
                if !extent.holes.contains(&chunk) {
                    let size = usize::try_from(end - at).unwrap_or_default();
                    self.finish(|| self.file.write_all_at(&vec![0; size], at))?;
                }
                at = end;
            }
        }
        extent.length = length;
        Ok(())
    }

    fn sync_data(&self) -> io::Result<()> {
        // Never once more: what a failed sync left unwritten, the next may call clean.
        self.file.sync_data().inspect_err(|_| self.trouble.other.store(true, Ordering::Release))
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        self.fill(offset, data.len() as u64);
        self.finish(|| self.file.write_all_at(data, offset))
    }

    fn close(&self) -> io::Result<()> {
        let extent = self.extent();
        // After trouble the file may be somebody else's already, who opened it anew.
        if extent.physical > extent.length && !self.trouble.any() {
            return self.file.set_len(extent.length);
        }
        Ok(())
    }
}

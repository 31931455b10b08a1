//! The database's file. One whose disk was full is opened anew.

use super::file::{SpacedFile, Trouble};
use crate::engine::{OwnedPairs, Pairs};
use crate::space::{Space, is_full};
use crate::{EngineError, StoreError};
use redb::{Database, DatabaseError, ReadableDatabase, StorageError, TableDefinition};
use std::fs::File;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

/// Memory for redb's page cache, in bytes.
const CACHE: usize = 32 << 20;
/// The one table of pairs: the store's own tables are the first bytes of its keys.
const PAIRS: TableDefinition<&[u8], &[u8]> = TableDefinition::new("pairs");
/// The number of the last batch that the database has, by [`LAST`]: batches after it stand in journals.
const BATCHES: TableDefinition<&str, u64> = TableDefinition::new("batches");
const LAST: &str = "last";
/// What a batch takes at least, in bytes.
pub(super) const PER_BATCH: u64 = 256 << 10;

/// The database, as it was opened last.
#[derive(Debug)]
pub(super) struct Base {
    path: PathBuf,
    space: Arc<Space>,
    open: RwLock<Arc<Opened>>,
}

type Pages = redb::ReadOnlyTable<&'static [u8], &'static [u8]>;

/// What single values are read from.
enum Current {
    /// Whoever reads next opens it.
    Closed,
    /// The table as the last commit left it.
    Open(Arc<Pages>),
    /// A commit is under way. Everybody opens the table for themselves: nobody reads what was before once somebody has read what is
    /// committed, and no pages of before are held on to.
    Committing,
}

struct Opened {
    /// Let go of before the database.
    current: RwLock<Current>,
    database: Database,
    trouble: Arc<Trouble>,
    /// Whether the file is another's by now, which does not know of what is read here: pages may be written over.
    superseded: AtomicBool,
}

impl std::fmt::Debug for Opened {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Opened").field("trouble", &self.trouble).finish_non_exhaustive()
    }
}

fn failed(error: impl Into<redb::Error>) -> StoreError {
    EngineError::Redb(Arc::new(error.into())).into()
}

impl Opened {
    fn open(path: &Path, space: &Arc<Space>) -> Result<Self, StoreError> {
        let trouble = Arc::new(Trouble::default());
        let file = File::options().read(true).write(true).create(true).truncate(false).mode(0o600).open(path);
        let file = file.and_then(|file| SpacedFile::new(file, space.clone(), trouble.clone()));
        let file = file.map_err(|e| EngineError::File(Arc::new(e)))?;
        let mut builder = Database::builder();
        builder.set_cache_size(CACHE);
        let database = builder.create_with_backend(file).map_err(|error| match error {
            DatabaseError::Storage(StorageError::Io(error)) if is_full(&error) => {
                StoreError::Full { missing: space.missing(PER_BATCH).unwrap_or(PER_BATCH) }
            }
            error => failed(error),
        })?;
        let current = RwLock::new(Current::Closed);
        let opened = Self { current, database, trouble, superseded: AtomicBool::new(false) };
        if !opened.has_table()? {
            opened.write([].into_iter(), 0).map_err(|error| {
                match opened.trouble.full.load(Ordering::Acquire) {
                    true => StoreError::Full { missing: space.missing(PER_BATCH).unwrap_or(PER_BATCH) },
                    false => error,
                }
            })?;
        }
        Ok(opened)
    }

    fn has_table(&self) -> Result<bool, StoreError> {
        let reading = self.database.begin_read().map_err(failed)?;
        match reading.open_table(PAIRS) {
            Ok(_) => Ok(true),
            Err(redb::TableError::TableDoesNotExist(_)) => Ok(false),
            Err(error) => Err(failed(error)),
        }
    }

    /// The number of the last batch that it has; 0 where none was numbered.
    fn last(&self) -> Result<u64, StoreError> {
        let reading = self.database.begin_read().map_err(failed)?;
        match reading.open_table(BATCHES) {
            Ok(table) => Ok(table.get(LAST).map_err(failed)?.map_or(0, |last| last.value())),
            Err(redb::TableError::TableDoesNotExist(_)) => Ok(0),
            Err(error) => Err(failed(error)),
        }
    }

    fn table(&self) -> Result<Pages, StoreError> {
        self.database.begin_read().map_err(failed)?.open_table(PAIRS).map_err(failed)
    }

    /// The same, opened once for every commit.
    fn current(&self) -> Result<Arc<Pages>, StoreError> {
        match &*self.current.read().unwrap_or_else(PoisonError::into_inner) {
            Current::Open(table) => return Ok(table.clone()),
            Current::Committing => return Ok(Arc::new(self.table()?)),
            Current::Closed => {}
        }
        let mut current = self.current.write().unwrap_or_else(PoisonError::into_inner);
        if let Current::Open(table) = &*current {
            return Ok(table.clone());
        }
        let table = Arc::new(self.table()?);
        if matches!(*current, Current::Closed) {
            *current = Current::Open(table.clone());
        }
        Ok(table)
    }

    /// What was read, where its pages cannot have been written over before: asked once it was copied.
    fn still<T>(&self, read: T) -> Result<T, StoreError> {
        if self.superseded.load(Ordering::Acquire) { Err(EngineError::Superseded.into()) } else { Ok(read) }
    }

    fn set_current(&self, current: Current) {
        *self.current.write().unwrap_or_else(PoisonError::into_inner) = current;
    }

    fn write<'a>(
        &self,
        pairs: impl Iterator<Item = (&'a [u8], Option<&'a [u8]>)>,
        last: u64,
    ) -> Result<(), StoreError> {
        let mut writing = self.database.begin_write().map_err(failed)?;
        // Two phases: the pages first, then the one write that makes them count. With the state of the allocator, so that
        // opening after a crash reads nothing else.
        writing.set_quick_repair(true);
        {
            let mut table = writing.open_table(PAIRS).map_err(failed)?;
            for (key, value) in pairs {
                match value {
                    Some(value) => drop(table.insert(key, value).map_err(failed)?),
                    None => drop(table.remove(key).map_err(failed)?),
                }
            }
        }
        writing.open_table(BATCHES).map_err(failed)?.insert(LAST, last).map_err(failed)?;
        self.set_current(Current::Committing);
        let committed = writing.commit().map_err(failed);
        self.set_current(Current::Closed);
        committed
    }
}

impl Base {
    /// Opens or creates the database. One that was killed is recovered; that needs no space.
    ///
    /// # Errors
    /// [`StoreError::Full`] when a new one finds no space, [`StoreError::Engine`].
    pub(super) fn open(path: PathBuf, space: Arc<Space>) -> Result<Self, StoreError> {
        let open = RwLock::new(Arc::new(Opened::open(&path, &space)?));
        Ok(Self { path, space, open })
    }

    fn opened(&self) -> Arc<Opened> {
        self.open.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The number of the last batch that it has; 0 where none was numbered.
    ///
    /// # Errors
    /// [`StoreError::Engine`].
    pub(super) fn last(&self) -> Result<u64, StoreError> {
        self.opened().last()
    }

    /// Writes pairs, a later one over an earlier one of its key, and removes those without a value: all of them or none, and on disk
    /// before it returns. `last` is the number of the last batch among them.
    ///
    /// # Errors
    /// [`StoreError::Full`]: the database is what it was before. [`StoreError::Engine`]: nobody knows.
    pub(super) fn write<'a>(
        &self,
        pairs: impl Iterator<Item = (&'a [u8], Option<&'a [u8]>)>,
        last: u64,
    ) -> Result<(), StoreError> {
        let opened = self.opened();
        opened.trouble.full.store(false, Ordering::Release);
        let Err(error) = opened.write(pairs, last) else { return Ok(()) };
        if !opened.trouble.full.load(Ordering::Acquire) || opened.trouble.other.load(Ordering::Acquire) {
            return Err(error);
        }
        // What was there before is there: open it, and let go of the one that takes no more. Whoever reads waits for that.
        let missing = self.space.missing(PER_BATCH)?.max(1);
        let mut open = self.open.write().unwrap_or_else(PoisonError::into_inner);
        opened.superseded.store(true, Ordering::Release);
        *open = Arc::new(Opened::open(&self.path, &self.space)?);
        Err(StoreError::Full { missing })
    }

    /// The value of a key.
    ///
    /// # Errors
    /// [`StoreError::Engine`].
    pub(super) fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>, StoreError> {
        let read = |opened: &Opened| {
            let value = opened.current()?.get(key).map_err(failed)?.map(|value| value.value().to_vec());
            opened.still(value)
        };
        // What was opened anew meanwhile is read anew, once.
        match read(&self.opened()) {
            Err(StoreError::Engine(EngineError::Superseded)) => read(&self.opened()),
            value => value,
        }
    }

    /// As [`crate::Engine::scan`]. What is committed after it was called is not in it; where the database is opened anew meanwhile, it ends
    /// with [`EngineError::Superseded`].
    pub(super) fn scan<'a>(&self, prefix: &[u8], from: &[u8], descending: bool) -> Pairs<'a> {
        let opened = self.opened();
        let range = opened.table().and_then(|table| {
            let range = if descending {
                table.range_owned::<&[u8]>(..=from)
            } else {
                table.range_owned::<&[u8]>(from..)
            };
            range.map_err(failed)
        });
        let range = match range {
            Ok(range) => range,
            Err(error) => return Box::new(std::iter::once(Err(error))),
        };
        let prefix = prefix.to_vec();
        let owned =
            |(key, value): (redb::OwnedAccessGuard<&'static [u8]>, redb::OwnedAccessGuard<&'static [u8]>)| {
                (key.value().to_vec(), value.value().to_vec())
            };
        let begins = move |pair: &Result<(Vec<u8>, Vec<u8>), StoreError>| {
            pair.as_ref().map_or(true, |(key, _)| key.starts_with(&prefix))
        };
        // The database goes with the iterator: it must not close while it is read.
        let read = move |pair: Result<_, StorageError>| opened.still(pair.map(owned))?.map_err(failed);
        if descending {
            Box::new(range.rev().map(read).take_while(begins))
        } else {
            Box::new(range.map(read).take_while(begins))
        }
    }

    /// Everything as it stands now, in the order of keys.
    ///
    /// # Errors
    /// [`StoreError::Engine`].
    pub(super) fn snapshot(&self) -> Result<OwnedPairs, StoreError> {
        let opened = self.opened();
        // The range keeps its read transaction, and that the pages that it reads.
        let pairs = opened.table()?.range_owned::<&[u8]>(..).map_err(failed)?;
        Ok(Box::new(pairs.map(move |pair| {
            let pair = pair.map(|(key, value)| (key.value().to_vec(), value.value().to_vec()));
            opened.still(pair)?.map_err(failed)
        })))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_reads_is_told_once_pages_may_be_written_over() {
        let folder = tempfile::tempdir().unwrap();
        let base = Base::open(folder.path().join("database"), Space::endless()).unwrap();
        let keys = [[0], [1], [2]];
        base.write(keys.iter().map(|key| (key.as_slice(), Some(key.as_slice()))), 1).unwrap();
        let superseded = || Some(Err(EngineError::Superseded.into()));
        let mut snapshot = base.snapshot().unwrap();
        let (mut up, mut down) = (base.scan(&[], &[], false), base.scan(&[], &[9], true));
        assert_eq!(snapshot.next(), Some(Ok((vec![0], vec![0]))));
        assert_eq!((up.next(), down.next()), (Some(Ok((vec![0], vec![0]))), Some(Ok((vec![2], vec![2])))));
        assert_eq!(base.get(&[1]), Ok(Some(vec![1])));
        // As after a disk that was full.
        base.opened().superseded.store(true, Ordering::Release);
        assert_eq!((snapshot.next(), up.next(), down.next()), (superseded(), superseded(), superseded()));
        // One that was not opened anew is read no more.
        assert_eq!(base.get(&[1]), Err(EngineError::Superseded.into()));
    }
}

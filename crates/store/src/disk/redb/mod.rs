//! The engine on disk: redb, one file that is copied on write, and journals before it.
//!
//! A commit of redb writes every page on the way to every value anew, and syncs twice. So a batch goes into a journal
//! first ([`journal`]), with one sync, and is read from memory ([`recent`]) until many of them are written to the database
//! together ([`database`]), beside whoever writes and reads. A batch that is large goes to the database at once.
//!
//! A commit of the database is written beside what is there and becomes valid with one write into the file's first block, which is
//! there since the file was made. So a disk that fills during a commit leaves what was there before: the database is opened anew, and
//! what was acknowledged stands in the journals. A store that is closed leaves them empty.

mod database;
mod file;
mod journal;
mod recent;

use crate::disk::{EngineKind, lock};
use crate::engine::{Engine, Op, OwnedPairs, Pairs};
use crate::space::Space;
use crate::{EngineError, StoreError};
use database::{Base, PER_BATCH};
use journal::{Journals, Record, encode};
use recent::{Layer, Merged, Recent};
use std::fs::File;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::thread::JoinHandle;

/// The database's file in the store's folder.
pub(super) const FILE: &str = "store.redb";
/// What a batch takes on disk beside its values: the pages on the way to each, in bytes an operation.
const PER_OP: u64 = 8 << 10;
/// The largest journal, in bytes; there are two. On a small disk each is a quarter of the reserve.
const MAX_JOURNAL: u64 = 4 << 20;

/// A redb database with its journals, and the lock that says at once whether somebody else has it open.
#[derive(Debug)]
pub struct RedbEngine {
    shared: Arc<Shared>,
    journals: Mutex<Journals>,
    settler: Option<JoinHandle<()>>,
    #[expect(dead_code, reason = "held, and let go after the database")]
    lock: File,
}

#[derive(Debug)]
struct Shared {
    base: Base,
    recent: RwLock<Recent>,
    work: Mutex<Work>,
    changed: Condvar,
    space: Arc<Space>,
}

/// What the thread does that writes layers to the database.
#[derive(Debug)]
enum Work {
    /// Nothing.
    None,
    /// It is to write the layer that is settling, or does.
    Settling,
    /// That layer could not be written. It is tried again when its place is needed.
    Failed(StoreError),
    /// It is to end.
    Ended,
}

impl Shared {
    fn recent(&self) -> RwLockReadGuard<'_, Recent> {
        self.recent.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn recent_mut(&self) -> RwLockWriteGuard<'_, Recent> {
        self.recent.write().unwrap_or_else(PoisonError::into_inner)
    }

    fn work(&self) -> MutexGuard<'_, Work> {
        self.work.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Writes the layer that is settling to the database, where there is one.
    fn settle(&self) -> Result<(), StoreError> {
        let Some(layer) = self.recent().settling.clone() else { return Ok(()) };
        self.base.write(layer.pairs(), layer.last)?;
        self.recent_mut().settling = None;
        Ok(())
    }

    /// Writes layers to the database when it is told to, until it is told to end.
    fn settle_each(&self) {
        let mut work = self.work();
        loop {
            match *work {
                Work::Ended => return,
                Work::None | Work::Failed(_) => {
                    work = self.changed.wait(work).unwrap_or_else(PoisonError::into_inner);
                }
                Work::Settling => {
                    drop(work);
                    let settled = catch_unwind(AssertUnwindSafe(|| self.settle()));
                    let settled = settled.unwrap_or(Err(StoreError::Panicked));
                    work = self.work();
                    if matches!(*work, Work::Settling) {
                        *work = settled.map_or_else(Work::Failed, |()| Work::None);
                    }
                    self.changed.notify_all();
                }
            }
        }
    }

    /// Has the thread write the layer that is settling.
    fn begin(&self) {
        *self.work() = Work::Settling;
        self.changed.notify_all();
    }

    /// Waits until no layer is settling. One that could not be written is tried once more.
    ///
    /// # Errors
    /// [`StoreError::Full`]: it is where it was. [`StoreError::Engine`].
    fn settled(&self) -> Result<(), StoreError> {
        let mut again = true;
        let mut work = self.work();
        loop {
            match &*work {
                Work::None | Work::Ended => return Ok(()),
                Work::Failed(StoreError::Full { .. }) if again => {
                    again = false;
                    *work = Work::Settling;
                    self.changed.notify_all();
                }
                Work::Failed(error) => return Err(error.clone()),
                Work::Settling => work = self.changed.wait(work).unwrap_or_else(PoisonError::into_inner),
            }
        }
    }
}

impl RedbEngine {
    /// Opens or creates the database in a folder. One that was killed is recovered; that needs no space.
    ///
    /// # Errors
    /// [`StoreError::Locked`] when somebody else has it open, [`StoreError::Full`] when a new one finds no space,
    /// [`StoreError::Engine`].
    pub fn open(folder: &Path, space: &Arc<Space>) -> Result<Self, StoreError> {
        let lock = lock(folder)?;
        let base = Base::open(folder.join(FILE), space.clone())?;
        // So that the name of a new file is durable, too.
        let synced = File::open(folder).and_then(|folder| folder.sync_all());
        synced.map_err(|e| EngineError::File(Arc::new(e)))?;
        let last = base.last()?;
        let capacity = space.goal().map_or(MAX_JOURNAL, |goal| (goal / 4).min(MAX_JOURNAL));
        let (journals, [older, newer]) = Journals::open(folder, capacity, last)?;
        let layer = |records: Vec<Record>, last: u64| {
            let mut layer = Layer::after(last);
            for Record { number, batch } in records {
                layer.take(batch, number);
            }
            layer
        };
        let settling = (!older.is_empty()).then(|| Arc::new(layer(older, last)));
        let open = layer(newer, settling.as_ref().map_or(last, |layer| layer.last));
        let work = if settling.is_some() { Work::Settling } else { Work::None };
        let shared = Arc::new(Shared {
            base,
            recent: RwLock::new(Recent { open, settling }),
            work: Mutex::new(work),
            changed: Condvar::new(),
            space: space.clone(),
        });
        let settler = std::thread::Builder::new().name("store-settler".into()).spawn({
            let shared = shared.clone();
            move || shared.settle_each()
        });
        let settler = Some(settler.map_err(|e| EngineError::Writer(Arc::new(e)))?);
        Ok(Self { shared, journals: Mutex::new(journals), settler, lock })
    }

    fn journals(&self) -> MutexGuard<'_, Journals> {
        self.journals.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Writes everything that only the journals have to the database.
    fn settle_all(&self, journals: &mut Journals) -> Result<(), StoreError> {
        self.shared.settled()?;
        let recent = self.shared.recent();
        let last = recent.open.last;
        if !recent.open.is_empty() {
            self.shared.base.write(recent.open.pairs(), last)?;
            drop(recent);
            self.shared.recent_mut().open = Layer::after(last);
        }
        journals.restart();
        Ok(())
    }

    /// Writes a batch to the database at once, behind everything before it.
    fn write(&self, journals: &mut Journals, batch: &[Op], number: u64) -> Result<(), StoreError> {
        // In a commit of its own: no layer is left that hides a part of it.
        self.settle_all(journals)?;
        let pairs = batch.iter().map(|op| match op {
            Op::Put(key, value) => (key.as_slice(), Some(value.as_slice())),
            Op::Delete(key) => (key.as_slice(), None),
        });
        self.shared.base.write(pairs, number)?;
        self.shared.recent_mut().open.last = number;
        Ok(())
    }

    /// Makes room for a record of so many bytes; whether it has any.
    fn make_room(&self, journals: &mut Journals, length: usize) -> Result<bool, StoreError> {
        if !journals.takes(length) {
            return Ok(false);
        }
        if !journals.fits(length) {
            self.shared.settled()?;
            let mut recent = self.shared.recent_mut();
            let open = Layer::after(recent.open.last);
            recent.settling = Some(Arc::new(std::mem::replace(&mut recent.open, open)));
            drop(recent);
            journals.turn();
            self.shared.begin();
        }
        // A journal is made where there is room for it; without one the database takes every batch.
        Ok(journals.is_made()
            || (self.shared.space.missing(journals.capacity())? == 0 && journals.make().is_ok()))
    }
}

impl Drop for RedbEngine {
    fn drop(&mut self) {
        // What does not fit stays in the journals.
        let _ = self.settle_all(&mut self.journals());
        *self.shared.work() = Work::Ended;
        self.shared.changed.notify_all();
        if let Some(settler) = self.settler.take() {
            let _ = settler.join();
        }
    }
}

impl Engine for RedbEngine {
    fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>, StoreError> {
        if let Some(value) = self.shared.recent().get(key) {
            return Ok(value);
        }
        // What a layer had and has no more, the database had before.
        self.shared.base.get(key)
    }

    fn scan<'a>(&'a self, prefix: &[u8], from: &[u8], descending: bool) -> Pairs<'a> {
        // No layer goes while the database is opened under it.
        let recent = self.shared.recent();
        let older = self.shared.base.scan(prefix, from, descending);
        Box::new(Merged::new(older, recent.scan(prefix, from, descending), descending))
    }

    fn apply(&self, batch: Vec<Op>) -> Result<(), StoreError> {
        if batch.is_empty() {
            return Ok(());
        }
        let mut journals = self.journals();
        let number = self.shared.recent().open.last + 1;
        let record = encode(number, &batch);
        if !self.make_room(&mut journals, record.len())? {
            return self.write(&mut journals, &batch, number);
        }
        journals.append(&record)?;
        self.shared.recent_mut().open.take(batch, number);
        Ok(())
    }

    fn snapshot(&self) -> Result<OwnedPairs, StoreError> {
        // What is being written is waited for: the rest is copied. What does not fit is copied, too.
        let _ = self.shared.settled();
        let recent = self.shared.recent();
        Ok(Merged::owned(self.shared.base.snapshot()?, recent.all()))
    }

    fn name(&self) -> &'static str {
        EngineKind::Redb.name()
    }

    fn room(&self, operations: usize, bytes: usize) -> u64 {
        PER_BATCH + operations as u64 * PER_OP + 2 * bytes as u64
    }

    fn owed(&self) -> u64 {
        match self.shared.recent().size() {
            (0, _) => 0,
            (keys, bytes) => self.room(keys, bytes),
        }
    }

    fn settle(&self) -> Result<(), StoreError> {
        self.settle_all(&mut self.journals())
    }

    fn survives_full(&self) -> bool {
        true
    }
}

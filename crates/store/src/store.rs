//! Transactions: one writer, group commit.
//!
//! Transactions run one after the other on the writer's thread and see what those before them wrote, so that a
//! precondition that was checked holds at the commit. Those that wait while a batch is written go into the next
//! batch together. A transaction whose writes the disk may not hold is refused before anything of it is written.
//! What a batch needs once, such as a signature over all of it, is written when its last transaction has run.
//! Order of one batch: batch applied and flushed, with keys that the vault has already, destroyed keys overwritten and synced,
//! hooks run, everybody answered.
//!
//! A transaction that panics is one caller's failure: what it wrote is dropped, and the writer goes on.
//!
//! After a crash between two of these steps, opening the store finishes the work: a key whose slot the batches
//! do not mark as in use is overwritten, be it one that was never used or one that was just to be destroyed.

mod tx;
mod writer;

pub use tx::Tx;

use crate::engine::{Engine, Op, OwnedPairs};
use crate::seal;
use crate::space::Space;
use crate::vault::{FileVault, Slot, Vault};
use crate::{EngineError, StoreError};
use oap_identity::Random;
use rayon::iter::{IntoParallelIterator, ParallelIterator};
use std::collections::BTreeSet;
use std::iter;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;
use tokio::sync::oneshot;

/// The version of what is stored: one that a program of before could not read is another.
///
/// 1: as the first. 2: heads of receipt chains that more comes after have no signature. 3: what was written last may stand in
/// journals beside the database.
pub const SCHEMA: u32 = 3;
/// The earliest version that is brought forward when a store is opened.
pub const OLDEST_SCHEMA: u32 = 1;
/// Most bytes of keys and sealed values that [`Tx::at_last`] may write.
pub const MAX_LAST: usize = 16 << 10;
/// How much longer a value may become by [`crate::Table::put_later`], in bytes.
pub const MAX_LATER: usize = 1 << 10;

/// How many rows are opened at once where all of a table are read.
const SCANNED_AT_ONCE: usize = 4096;

/// How long the end of a store waits for its writer: an engine may never return from a disk that failed.
const END: Duration = Duration::from_secs(10);

/// Tables 0 and 1 are the store's own and in the clear: the schema version, the revision, and the slots in use.
/// Every other table is sealed; its number is the first byte of its keys.
const SCHEMA_KEY: [u8; 2] = [0, 0];
const REVISION_KEY: [u8; 2] = [0, 1];
const SLOTS: u8 = 1;

/// A store: an engine, a vault, and the one thread that writes.
pub struct Store {
    shared: Arc<Shared>,
    found_schema: u32,
    jobs: Mutex<Option<Sender<Job>>>,
    writer: Mutex<Option<(JoinHandle<()>, Receiver<()>)>>,
}

struct Shared {
    engine: Box<dyn Engine>,
    vault: Box<dyn Vault>,
    space: Arc<Space>,
    random: Arc<dyn Random>,
    revision: AtomicU64,
    stopped: AtomicBool,
    /// How many wait for the writer.
    waiting: Arc<AtomicUsize>,
}

type Answer = Box<dyn FnOnce(Result<(), StoreError>) + Send>;
type Run = Box<dyn FnOnce(&mut Tx) -> (bool, Answer) + Send>;

/// A transaction that waits for the writer.
struct Job {
    run: Run,
    /// Whether it must see what all those before it wrote in the engine itself: it begins a batch.
    first: bool,
    waits: Waits,
}

/// Counts as one that waits for the writer, as long as it is there.
struct Waits(Arc<AtomicUsize>);

impl Waits {
    fn new(waiting: &Arc<AtomicUsize>) -> Self {
        waiting.fetch_add(1, Ordering::AcqRel);
        Self(waiting.clone())
    }
}

impl Drop for Waits {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::AcqRel);
    }
}

type Hook = Box<dyn FnOnce() + Send>;
type Last = Box<dyn FnOnce(&mut Tx) -> Result<(), StoreError> + Send>;

/// Everything that a store holds, as of one commit.
pub struct Snapshot {
    /// Every pair as it is stored, sealed, in the order of keys.
    pub pairs: OwnedPairs,
    /// The vault's file, of no use without the master key.
    pub vault: Vec<u8>,
}

impl Store {
    /// Opens a store: checks the schema, finishes what a crash left undone, starts the writer.
    ///
    /// # Errors
    /// [`StoreError::Schema`] for a store of another version, and what engine and vault report.
    pub fn open(engine: impl Engine, vault: impl Vault, random: Arc<dyn Random>) -> Result<Self, StoreError> {
        Self::open_in(Space::endless(), engine, vault, random)
    }

    /// The same, in a space that has an end. On a full disk a store opens, and answers reads.
    ///
    /// # Errors
    /// As [`Store::open`].
    pub fn open_in(
        space: Arc<Space>,
        engine: impl Engine,
        vault: impl Vault,
        random: Arc<dyn Random>,
    ) -> Result<Self, StoreError> {
        let found_schema = check_schema(&engine)?;
        let revision =
            engine.get(&REVISION_KEY)?.and_then(|v| v.try_into().ok()).map_or(0, u64::from_le_bytes);
        sweep(&engine, &vault)?;
        space.refill();
        let shared = Arc::new(Shared {
            engine: Box::new(engine),
            vault: Box::new(vault),
            space,
            random,
            revision: AtomicU64::new(revision),
            stopped: AtomicBool::new(false),
            waiting: Arc::default(),
        });
        let (jobs, queue) = channel();
        let (ended, end) = channel();
        let writer = std::thread::Builder::new().name("store-writer".into());
        let writer = writer
            .spawn({
                let shared = shared.clone();
                move || {
                    writer::write(&shared, &queue);
                    drop(shared);
                    let _ = ended.send(());
                }
            })
            .map_err(|e| EngineError::Writer(Arc::new(e)))?;
        Ok(Self {
            shared,
            found_schema,
            jobs: Mutex::new(Some(jobs)),
            writer: Mutex::new(Some((writer, end))),
        })
    }

    /// A store in memory, for tests.
    ///
    /// # Errors
    /// None in practice.
    pub fn in_memory(random: Arc<dyn Random>) -> Result<Self, StoreError> {
        let vault = FileVault::in_memory(&*random)?;
        Self::open(crate::MemoryEngine::default(), vault, random)
    }

    /// Runs a transaction. Whatever it returns is returned once it is durable; an error takes back what it wrote.
    ///
    /// # Errors
    /// The transaction's own, or that of the store.
    pub async fn transact<T, E>(
        &self,
        run: impl FnOnce(&mut Tx) -> Result<T, E> + Send + 'static,
    ) -> Result<T, E>
    where
        T: Send + 'static,
        E: From<StoreError> + Send + 'static,
    {
        self.queue(false, run).await
    }

    async fn queue<T, E>(
        &self,
        first: bool,
        run: impl FnOnce(&mut Tx) -> Result<T, E> + Send + 'static,
    ) -> Result<T, E>
    where
        T: Send + 'static,
        E: From<StoreError> + Send + 'static,
    {
        let (send, receive) = oneshot::channel();
        let run: Run = Box::new(move |tx| match run(tx) {
            Ok(value) => {
                let answer = |applied: Result<(), StoreError>| {
                    let _ = send.send(applied.map(|()| value).map_err(E::from));
                };
                (true, Box::new(answer) as Answer)
            }
            Err(error) => (false, Box::new(move |_| drop(send.send(Err(error)))) as Answer),
        });
        if !self.send(run, first) {
            return Err(StoreError::Stopped.into());
        }
        // A writer that stops drops what still waits; one that caught a panic drops that transaction alone.
        receive.await.unwrap_or_else(|_| {
            Err(if self.is_stopped() { StoreError::Stopped } else { StoreError::Panicked }.into())
        })
    }

    /// Whether the writer will come to it.
    fn send(&self, run: Run, first: bool) -> bool {
        let jobs = self.jobs.lock().unwrap_or_else(PoisonError::into_inner);
        jobs.as_ref().is_some_and(|jobs| {
            let waits = Waits::new(&self.shared.waiting);
            jobs.send(Job { run, first, waits }).is_ok()
        })
    }

    /// A value as it was last committed, and the slot of its key.
    pub(crate) fn get_with_slot(&self, table: u8, key: &[u8]) -> Result<Option<(Slot, Vec<u8>)>, StoreError> {
        let place = place(table, key);
        self.shared.engine.get(&place)?.map(|stored| self.shared.unseal(&place, &stored)).transpose()
    }

    /// The values of a table whose keys begin so, in the order of keys, from `from` on. Keys come without the
    /// table's byte; `from` is `None` for the first, or the last when descending.
    pub(crate) fn scan<'a>(
        &'a self,
        table: u8,
        prefix: &[u8],
        from: Option<&[u8]>,
        descending: bool,
    ) -> impl Iterator<Item = Result<(Vec<u8>, Vec<u8>), StoreError>> + use<'a> {
        let prefix = place(table, prefix);
        let from = match (from, descending) {
            (Some(from), _) => place(table, from),
            (None, false) => prefix.clone(),
            (None, true) => [prefix.as_slice(), &[0xff; 40]].concat(),
        };
        self.shared.engine.scan(&prefix, &from, descending).map(|pair| {
            let (key, stored) = pair?;
            let (_, plain) = self.shared.unseal(&key, &stored)?;
            Ok((key[1..].to_vec(), plain))
        })
    }

    /// What is made of every row of a table on all cores, in the order of keys.
    pub(crate) fn scan_on_all_cores<'a, T: Send, F>(
        &'a self,
        table: u8,
        make: F,
    ) -> impl Iterator<Item = T> + use<'a, T, F>
    where
        F: Fn(Result<(Vec<u8>, Vec<u8>), StoreError>) -> T + Sync,
    {
        let mut pairs = self.shared.engine.scan(&[table], &[table], false);
        let chunks = iter::from_fn(move || {
            let chunk: Vec<_> = pairs.by_ref().take(SCANNED_AT_ONCE).collect();
            let open = |pair: Result<(Vec<u8>, Vec<u8>), StoreError>| {
                let (key, stored) = pair?;
                let (_, plain) = self.shared.unseal(&key, &stored)?;
                Ok((key[1..].to_vec(), plain))
            };
            let made: Vec<T> = chunk.into_par_iter().map(|pair| make(open(pair))).collect();
            (!made.is_empty()).then_some(made)
        });
        chunks.flatten()
    }

    /// The schema that it had when it was opened: an earlier one than [`SCHEMA`] where an earlier program made it.
    #[must_use]
    pub const fn found_schema(&self) -> u32 {
        self.found_schema
    }

    /// How many batches were committed, ever.
    #[must_use]
    pub fn revision(&self) -> u64 {
        self.shared.revision.load(Ordering::Acquire)
    }

    /// How many transactions wait for the writer, snapshots among them. One that runs does not wait any more, even where
    /// its batch is not written yet.
    #[must_use]
    pub fn waiting(&self) -> usize {
        self.shared.waiting.load(Ordering::Acquire)
    }

    /// Everything as of one commit, and what `mark` says at that point of the order of commits. The writer goes on while it is
    /// read.
    ///
    /// # Errors
    /// [`StoreError::Engine`], [`StoreError::Vault`].
    pub async fn snapshot<T: Send + 'static>(
        &self,
        mark: impl FnOnce() -> T + Send + 'static,
    ) -> Result<(Snapshot, T), StoreError> {
        self.queue(true, move |tx: &mut Tx| {
            let shared = tx.shared;
            let snapshot = Snapshot { pairs: shared.engine.snapshot()?, vault: shared.vault.image()? };
            Ok::<_, StoreError>((snapshot, mark()))
        })
        .await
    }

    /// What does not open: tables whose value is not what was written, and slots that hold a key which nothing marks,
    /// or none which something marks. All as of one commit; what was changed while it was looked at is looked at again.
    /// `step` is called for each pair and may end it. Waits for the writer.
    ///
    /// # Errors
    /// [`StoreError::Engine`], and those of `step`.
    pub fn examine<E: From<StoreError>>(
        &self,
        mut step: impl FnMut() -> Result<(), E>,
    ) -> Result<Vec<String>, E> {
        let (pairs, used) = self.marked()?;
        let mut wrong = Vec::new();
        let mut marked = BTreeSet::new();
        for found in pairs {
            step()?;
            let (key, value) = found?;
            match key.first() {
                Some(&SLOTS) => {
                    marked.extend(key[1..].first_chunk::<4>().map(|slot| Slot::from_be_bytes(*slot)));
                }
                Some(table) if *table > SLOTS => {
                    if let Some(error) = self.shared.fault(&key, value)? {
                        wrong.push(format!("a value of table {table}: {error}"));
                    }
                }
                _ => {}
            }
        }
        wrong
            .extend(used.difference(&marked).map(|slot| format!("vault slot {slot} holds a key of nothing")));
        wrong.extend(marked.difference(&used).map(|slot| format!("vault slot {slot} has lost its key")));
        Ok(wrong)
    }

    /// Every pair and the slots that hold a key, as of one commit.
    fn marked(&self) -> Result<(OwnedPairs, BTreeSet<Slot>), StoreError> {
        type Marked = Result<(OwnedPairs, BTreeSet<Slot>), StoreError>;
        let look = |shared: &Shared| -> Marked {
            Ok((shared.engine.snapshot()?, shared.vault.used().into_iter().collect()))
        };
        let (send, receive) = channel();
        let run: Run = Box::new(move |tx| {
            drop(send.send(look(tx.shared)));
            (false, Box::new(|_| {}) as Answer)
        });
        if self.send(run, true)
            && let Ok(marked) = receive.recv()
        {
            return marked;
        }
        // The writer has stopped: nothing changes any more.
        look(&self.shared)
    }

    /// The engine's name.
    #[must_use]
    pub fn engine(&self) -> &'static str {
        self.shared.engine.name()
    }

    /// The space that the store writes into.
    #[must_use]
    pub fn space(&self) -> &Arc<Space> {
        &self.shared.space
    }

    /// Whether a commit failed, so that nothing more is taken.
    #[must_use]
    pub fn is_stopped(&self) -> bool {
        self.shared.stopped.load(Ordering::Acquire)
    }
}

impl Drop for Store {
    /// Waits for what was sent to be written, but not for ever.
    fn drop(&mut self) {
        self.jobs.lock().unwrap_or_else(PoisonError::into_inner).take();
        let writer = self.writer.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some((writer, end)) = writer
            && end.recv_timeout(END) != Err(RecvTimeoutError::Timeout)
        {
            let _ = writer.join();
        }
    }
}

fn place(table: u8, key: &[u8]) -> Vec<u8> {
    [&[table], key].concat()
}

/// The schema that a store had, which it has no longer where that is an earlier one.
fn check_schema(engine: &impl Engine) -> Result<u32, StoreError> {
    let found = match engine.get(&SCHEMA_KEY)? {
        Some(stored) => stored.try_into().map_or(0, u32::from_le_bytes),
        None if engine.scan(&[], &[], false).next().is_some() => 0,
        None => {
            write_schema(engine)?;
            SCHEMA
        }
    };
    match found {
        SCHEMA => {}
        // From here on the program that wrote it refuses it.
        OLDEST_SCHEMA..SCHEMA => write_schema(engine)?,
        _ => return Err(StoreError::Schema { found, known: SCHEMA }),
    }
    Ok(found)
}

fn write_schema(engine: &impl Engine) -> Result<(), StoreError> {
    engine.apply(vec![Op::Put(SCHEMA_KEY.to_vec(), SCHEMA.to_le_bytes().to_vec())])?;
    // Where a program of before looks for it.
    engine.settle()
}

/// Overwrites every key whose slot is not marked as in use.
fn sweep(engine: &impl Engine, vault: &impl Vault) -> Result<(), StoreError> {
    // Sorted, as their keys are.
    let mut marked = Vec::new();
    for pair in engine.scan(&[SLOTS], &[SLOTS], false) {
        let (key, _) = pair?;
        marked.extend(key[1..].first_chunk::<4>().map(|slot| Slot::from_be_bytes(*slot)));
    }
    let is_orphan = |slot: &Slot| marked.binary_search(slot).is_err();
    let orphans: Vec<Slot> = vault.used().into_iter().filter(is_orphan).collect();
    if orphans.is_empty() { Ok(()) } else { vault.wipe(&orphans) }
}

fn slot_mark(slot: Slot) -> Vec<u8> {
    [&[SLOTS], slot.to_be_bytes().as_slice()].concat()
}

/// A stored value: the slot of its key, little-endian, and the sealed bytes.
fn slot_of(stored: &[u8]) -> Option<Slot> {
    stored.first_chunk::<4>().map(|slot| Slot::from_le_bytes(*slot))
}

impl Shared {
    fn unseal(&self, place: &[u8], stored: &[u8]) -> Result<(Slot, Vec<u8>), StoreError> {
        let slot = slot_of(stored).ok_or(StoreError::Tampered)?;
        let key = self.vault.key(slot)?;
        Ok((slot, seal::open(&key, place, &stored[4..])?))
    }

    /// Why a value that was read a while ago does not open, where it is still the one that is stored.
    fn fault(&self, place: &[u8], mut stored: Vec<u8>) -> Result<Option<StoreError>, StoreError> {
        loop {
            let Err(error) = self.unseal(place, &stored) else { return Ok(None) };
            // A batch goes before the keys that it destroys: whatever was erased meanwhile is not there any more.
            match self.engine.get(place)? {
                None => return Ok(None),
                Some(now) if now == stored => return Ok(Some(error)),
                Some(now) => stored = now,
            }
        }
    }
}

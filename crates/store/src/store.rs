//! Transactions: one writer, group commit.
//!
//! Transactions run one after the other on the writer's thread and see what those before them wrote, so that a
//! precondition that was checked holds at the commit. Those that wait while a batch is written go into the next
//! batch together. A transaction whose writes the disk may not hold is refused before anything of it is written.
//! What a batch needs once, such as a signature over all of it, is written when its last transaction has run.
//! Order of one batch: new keys synced to the vault, batch applied and flushed, destroyed keys
//! overwritten and synced, hooks run, everybody answered.
//!
//! A transaction that panics is one caller's failure: what it wrote is dropped, and the writer goes on.
//!
//! After a crash between two of these steps, opening the store finishes the work: a key whose slot the batches
//! do not mark as in use is overwritten, be it one that was never used or one that was just to be destroyed.

use crate::engine::{Engine, Op, OwnedPairs};
use crate::seal;
use crate::space::Space;
use crate::vault::{ContentKey, FileVault, Slot, Vault};
use crate::{EngineError, StoreError};
use oap_identity::Random;
use std::collections::{BTreeMap, BTreeSet};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;
use tokio::sync::oneshot;

/// The version of what is stored: one that a program of before could not read is another.
///
/// 1: as the first. 2: heads of receipt chains that more comes after have no signature.
pub const SCHEMA: u32 = 2;
/// The earliest version that is brought forward when a store is opened.
pub const OLDEST_SCHEMA: u32 = 1;
/// Most transactions of one batch.
const MAX_GROUP: usize = 512;
/// Most bytes of keys and sealed values that [`Tx::at_last`] may write.
pub const MAX_LAST: usize = 16 << 10;

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
}

type Answer = Box<dyn FnOnce(Result<(), StoreError>) + Send>;
type Run = Box<dyn FnOnce(&mut Tx) -> (bool, Answer) + Send>;

/// A transaction that waits for the writer.
struct Job {
    run: Run,
    /// Whether it must see what all those before it wrote in the engine itself: it begins a batch.
    first: bool,
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
        check_schema(&engine)?;
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
        });
        let (jobs, queue) = channel();
        let (ended, end) = channel();
        let writer = std::thread::Builder::new().name("store-writer".into());
        let writer = writer
            .spawn({
                let shared = shared.clone();
                move || {
                    write(&shared, &queue);
                    drop(shared);
                    let _ = ended.send(());
                }
            })
            .map_err(|e| EngineError::Writer(Arc::new(e)))?;
        Ok(Self { shared, jobs: Mutex::new(Some(jobs)), writer: Mutex::new(Some((writer, end))) })
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
        if !self.send(Job { run, first }) {
            return Err(StoreError::Stopped.into());
        }
        // A writer that stops drops what still waits; one that caught a panic drops that transaction alone.
        receive.await.unwrap_or_else(|_| {
            Err(if self.is_stopped() { StoreError::Stopped } else { StoreError::Panicked }.into())
        })
    }

    /// Whether the writer will come to it.
    fn send(&self, job: Job) -> bool {
        let jobs = self.jobs.lock().unwrap_or_else(PoisonError::into_inner);
        jobs.as_ref().is_some_and(|jobs| jobs.send(job).is_ok())
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

    /// How many batches were committed, ever.
    #[must_use]
    pub fn revision(&self) -> u64 {
        self.shared.revision.load(Ordering::Acquire)
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
        if self.send(Job { run, first: true })
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

fn check_schema(engine: &impl Engine) -> Result<(), StoreError> {
    match engine.get(&SCHEMA_KEY)? {
        Some(stored) => {
            let found = stored.try_into().map_or(0, u32::from_le_bytes);
            match found {
                SCHEMA => Ok(()),
                // From here on the program that wrote it refuses it.
                OLDEST_SCHEMA..SCHEMA => engine.apply(vec![schema()]),
                _ => Err(StoreError::Schema { found, known: SCHEMA }),
            }
        }
        None if engine.scan(&[], &[], false).next().is_some() => {
            Err(StoreError::Schema { found: 0, known: SCHEMA })
        }
        None => engine.apply(vec![schema()]),
    }
}

fn schema() -> Op {
    Op::Put(SCHEMA_KEY.to_vec(), SCHEMA.to_le_bytes().to_vec())
}

/// Overwrites every key whose slot is not marked as in use.
fn sweep(engine: &impl Engine, vault: &impl Vault) -> Result<(), StoreError> {
    let mut marked = BTreeSet::new();
    for pair in engine.scan(&[SLOTS], &[SLOTS], false) {
        let (key, _) = pair?;
        marked.extend(key[1..].first_chunk::<4>().map(|slot| Slot::from_be_bytes(*slot)));
    }
    let orphans: Vec<Slot> = vault.used().into_iter().filter(|slot| !marked.contains(slot)).collect();
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

/// Says that the writer is gone, however it went.
struct Stops<'a>(&'a Shared);

impl Drop for Stops<'_> {
    fn drop(&mut self) {
        self.0.stopped.store(true, Ordering::Release);
    }
}

fn write(shared: &Shared, queue: &Receiver<Job>) {
    let stops = Stops(shared);
    let mut group = Group::default();
    let mut waiting = None;
    while let Some(first) = waiting.take().or_else(|| queue.recv().ok()) {
        let mut answers = Vec::new();
        answers.extend(run(shared, &mut group, first));
        let mut taken = 1;
        while taken < MAX_GROUP
            && let Ok(next) = queue.try_recv()
        {
            if next.first {
                waiting = Some(next);
                break;
            }
            answers.extend(run(shared, &mut group, next));
            taken += 1;
        }
        let applied = commit(shared, std::mem::take(&mut group));
        // A disk that was full left everything as it was.
        let goes_on = matches!(applied, Ok(Hooks::Ran) | Err(StoreError::Full { .. }));
        if !goes_on {
            shared.stopped.store(true, Ordering::Release);
        }
        for (answer, admitted) in answers {
            answer(admitted.and_then(|()| applied.clone().map(drop)));
        }
        if !goes_on {
            return;
        }
    }
    drop(stops);
}

/// What became of the hooks of a batch that is durable.
#[derive(Debug, Clone, Copy)]
enum Hooks {
    Ran,
    /// One panicked: what is in memory may lag behind the store for good, so that the writer stops.
    Panicked,
}

/// What the transactions of one batch wrote.
#[derive(Default)]
struct Group {
    writes: BTreeMap<Vec<u8>, Option<Vec<u8>>>,
    /// Slots of keys that are new with it.
    allocated: Vec<Slot>,
    /// Slots of keys of transactions that came to nothing.
    orphans: Vec<Slot>,
    wiped: Vec<Slot>,
    /// What is written when the last transaction of the batch has run, by name.
    last: BTreeMap<String, Last>,
    hooks: Vec<Hook>,
    /// Bytes that it may take on disk.
    room: u64,
    /// Whether it may take them from the reserve.
    urgent: bool,
}

impl Group {
    /// The bytes of its keys and values.
    fn bytes(&self) -> usize {
        self.writes.iter().map(|(key, value)| key.len() + value.as_ref().map_or(0, Vec::len)).sum()
    }
}

/// Runs one transaction, and says whether it is admitted; `None` when it panicked, and nobody waits for it any more.
fn run(shared: &Shared, group: &mut Group, job: Job) -> Option<(Answer, Result<(), StoreError>)> {
    let mut tx = Tx { shared, group, own: Group::default(), allocated: BTreeMap::new() };
    let ran = catch_unwind(AssertUnwindSafe(|| (job.run)(&mut tx)));
    let Tx { own, allocated, .. } = tx;
    let (admitted, answer) = match ran {
        Ok((true, answer)) => (admit(shared, group, &own).map(Some), Some(answer)),
        Ok((false, answer)) => (Ok(None), Some(answer)),
        Err(_) => (Ok(None), None),
    };
    if let Ok(Some(room)) = admitted {
        group.writes.extend(own.writes);
        group.allocated.extend(allocated.into_keys());
        group.wiped.extend(own.wiped);
        group.last.extend(own.last);
        group.hooks.extend(own.hooks);
        group.room += room;
    } else {
        // Keys of a transaction that came to nothing: overwritten with the batch.
        group.orphans.extend(allocated.into_keys());
    }
    group.urgent |= own.urgent;
    answer.map(|answer| (answer, admitted.map(drop)))
}

/// Whether the disk may hold what a transaction writes, and the bytes that it may take.
fn admit(shared: &Shared, group: &Group, own: &Group) -> Result<u64, StoreError> {
    if own.writes.is_empty() {
        return Ok(0);
    }
    let last = own.last.keys().filter(|name| !group.last.contains_key(*name)).count();
    let room = shared.engine.room(own.writes.len() + last, own.bytes() + last * MAX_LAST);
    if own.urgent {
        // The reserve is given back already. An engine that survives a full disk may try.
        let there = shared.space.at_most()?;
        if !shared.engine.survives_full() && there < group.room + room {
            return Err(StoreError::Full { missing: group.room + room - there });
        }
    } else {
        shared.space.admit(group.room + room)?;
    }
    Ok(room)
}

/// Runs what is written when the last transaction of a batch has run. Its room was counted with those that asked for it.
fn finish(shared: &Shared, group: &mut Group) -> Result<(), StoreError> {
    for last in std::mem::take(&mut group.last).into_values() {
        let mut tx = Tx { shared, group, own: Group::default(), allocated: BTreeMap::new() };
        let ran = catch_unwind(AssertUnwindSafe(|| last(&mut tx)));
        let own = tx.own;
        ran.unwrap_or(Err(StoreError::Panicked))?;
        if own.bytes() > MAX_LAST {
            return Err(EngineError::TooLarge.into());
        }
        group.writes.extend(own.writes);
    }
    Ok(())
}

/// Applies and flushes what a batch writes.
fn apply(shared: &Shared, group: &mut Group) -> Result<(), StoreError> {
    if !group.allocated.is_empty() {
        shared.vault.sync()?;
    }
    if group.writes.is_empty() {
        return Ok(());
    }
    let revision = shared.revision.load(Ordering::Acquire) + 1;
    let mut batch: Vec<Op> = std::mem::take(&mut group.writes)
        .into_iter()
        .map(|(key, value)| match value {
            Some(value) => Op::Put(key, value),
            None => Op::Delete(key),
        })
        .collect();
    batch.push(Op::Put(REVISION_KEY.to_vec(), revision.to_le_bytes().to_vec()));
    shared.engine.apply(batch)?;
    shared.revision.store(revision, Ordering::Release);
    Ok(())
}

fn commit(shared: &Shared, mut group: Group) -> Result<Hooks, StoreError> {
    match finish(shared, &mut group).and_then(|()| apply(shared, &mut group)) {
        Ok(()) => {}
        Err(full @ StoreError::Full { .. }) => {
            // Nothing of the batch is there: its keys open nothing, and what it would have erased stays.
            wipe(shared, &[group.allocated, group.orphans].concat())?;
            shared.space.refill();
            return Err(full);
        }
        Err(error) => return Err(error),
    }
    wipe(shared, &[group.wiped, group.orphans].concat())?;
    let mut hooks = Hooks::Ran;
    for hook in group.hooks {
        if catch_unwind(AssertUnwindSafe(hook)).is_err() {
            hooks = Hooks::Panicked;
        }
    }
    if group.urgent {
        shared.space.refill();
    }
    Ok(hooks)
}

fn wipe(shared: &Shared, slots: &[Slot]) -> Result<(), StoreError> {
    if slots.is_empty() { Ok(()) } else { shared.vault.wipe(slots) }
}

/// A running transaction.
pub struct Tx<'a> {
    shared: &'a Shared,
    group: &'a Group,
    own: Group,
    allocated: BTreeMap<Slot, ContentKey>,
}

impl Tx<'_> {
    /// Whether a value is there after everything before. Nothing is unsealed.
    ///
    /// # Errors
    /// [`StoreError::Engine`].
    pub(crate) fn contains(&self, table: u8, key: &[u8]) -> Result<bool, StoreError> {
        let place = place(table, key);
        let pending = self.own.writes.get(&place).or_else(|| self.group.writes.get(&place));
        match pending {
            Some(stored) => Ok(stored.is_some()),
            None => Ok(self.shared.engine.get(&place)?.is_some()),
        }
    }

    /// A value and the slot of its key.
    ///
    /// # Errors
    /// As [`Store::get`].
    pub(crate) fn get_with_slot(&self, table: u8, key: &[u8]) -> Result<Option<(Slot, Vec<u8>)>, StoreError> {
        let place = place(table, key);
        let pending = self.own.writes.get(&place).or_else(|| self.group.writes.get(&place));
        let stored = match pending {
            Some(stored) => stored.clone(),
            None => self.shared.engine.get(&place)?,
        };
        stored.map(|stored| self.shared.unseal(&place, &stored)).transpose()
    }

    /// The keys of a table that this transaction, or one before it in the same batch, has written or removed: what the
    /// engine does not show yet.
    pub(crate) fn written(&self, table: u8) -> BTreeSet<Vec<u8>> {
        let of = |group: &Group| -> Vec<Vec<u8>> {
            let from = group.writes.range(vec![table]..);
            let keys = from.map(|(key, _)| key).take_while(|key| key.first() == Some(&table));
            keys.filter_map(|key| key.get(1..).map(<[u8]>::to_vec)).collect()
        };
        of(self.group).into_iter().chain(of(&self.own)).collect()
    }

    /// Writes a value sealed with the key in a slot.
    ///
    /// # Errors
    /// [`StoreError::Erased`] when the slot is empty.
    pub(crate) fn put_in(
        &mut self,
        slot: Slot,
        table: u8,
        key: &[u8],
        plain: &[u8],
    ) -> Result<(), StoreError> {
        let place = place(table, key);
        let fresh = self.allocated.get(&slot).cloned();
        let content_key = fresh.map_or_else(|| self.shared.vault.key(slot), Ok)?;
        let sealed = seal::seal(&content_key, &place, plain, &*self.shared.random)?;
        let stored = [slot.to_le_bytes().as_slice(), &sealed].concat();
        self.own.writes.insert(place, Some(stored));
        Ok(())
    }

    /// Removes a value, if it is there.
    pub(crate) fn delete(&mut self, table: u8, key: &[u8]) {
        self.own.writes.insert(place(table, key), None);
    }

    /// A fresh content key, and its slot.
    ///
    /// # Errors
    /// [`StoreError::Vault`].
    pub fn new_slot(&mut self) -> Result<Slot, StoreError> {
        let allocated = self.shared.vault.allocate(&*self.shared.random);
        let (slot, key) = allocated.map_err(|error| match error {
            StoreError::Full { missing } => {
                StoreError::Full { missing: self.shared.space.missing(missing).unwrap_or(missing) }
            }
            error => error,
        })?;
        self.allocated.insert(slot, key);
        self.own.writes.insert(slot_mark(slot), Some(Vec::new()));
        Ok(slot)
    }

    /// Destroys the key in a slot with this transaction: overwritten and synced before it is acknowledged.
    pub fn wipe(&mut self, slot: Slot) {
        self.own.writes.insert(slot_mark(slot), None);
        self.own.wiped.push(slot);
    }

    /// Lets this transaction take what the reserve holds: an erasure, a revocation. To be called before it writes.
    pub fn use_reserve(&mut self) {
        self.own.urgent = true;
        self.shared.space.make_room();
    }

    /// Runs something when the last transaction of this batch has run, in place of what an earlier one of the batch asked for
    /// under the same name. It writes at most [`MAX_LAST`] bytes, under keys that are there. The batch is durable with it, or
    /// not at all: where it fails, the store stops.
    pub fn at_last(
        &mut self,
        name: &str,
        last: impl FnOnce(&mut Tx) -> Result<(), StoreError> + Send + 'static,
    ) {
        self.own.last.insert(name.to_owned(), Box::new(last));
    }

    /// Runs something once the transaction is durable and before anybody is told.
    pub fn on_commit(&mut self, hook: impl FnOnce() + Send + 'static) {
        self.own.hooks.push(Box::new(hook));
    }
}

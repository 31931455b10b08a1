//! The writer: runs transactions one after the other, and writes those that wait as one batch.

use super::tx::Tx;
use super::{Answer, Hook, Job, Last, MAX_LAST, MAX_LATER, REVISION_KEY, Shared};
use crate::engine::Op;
use crate::seal;
use crate::vault::{ContentKey, Slot};
use crate::{EngineError, StoreError};
use rayon::prelude::*;
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::Receiver;

/// Most transactions of one batch.
const MAX_GROUP: usize = 512;
/// Fewest values of a batch that other cores are asked to seal: of an answer's there are fewer.
const MANY: usize = 64;
/// Fewest values that one core takes at once.
const MIN_SHARE: usize = 16;

/// Says that the writer is gone, however it went.
struct Stops<'a>(&'a Shared);

impl Drop for Stops<'_> {
    fn drop(&mut self) {
        self.0.stopped.store(true, Ordering::Release);
    }
}

/// Writes what is queued, batch by batch, until nobody queues any more, or a batch fails.
pub(super) fn write(shared: &Shared, queue: &Receiver<Job>) {
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

/// A value that waits for its batch. It is sealed when that is written: what is written twice in a batch, once.
pub(super) enum Waiting {
    /// The mark of a slot.
    Mark,
    Open {
        slot: Slot,
        key: ContentKey,
        nonce: [u8; 24],
        plain: Vec<u8>,
        /// What is made of it first, beside the transactions.
        later: Option<Later>,
        /// What it is stored as.
        finish: fn(Vec<u8>) -> Vec<u8>,
    },
}

/// What makes a value of what a transaction wrote, at most [`MAX_LATER`] bytes longer.
pub(super) type Later = Arc<dyn Fn(&[u8]) -> Vec<u8> + Send + Sync>;

impl Waiting {
    /// Most bytes that it is stored as.
    fn len(&self) -> usize {
        match self {
            Self::Mark => 0,
            Self::Open { plain, later, .. } => {
                let more = if later.is_some() { MAX_LATER } else { 0 };
                size_of::<Slot>() + seal::OVERHEAD + plain.len() + more
            }
        }
    }

    /// What the engine keeps of it.
    fn stored(self, place: &[u8]) -> Result<Vec<u8>, StoreError> {
        let Self::Open { slot, key, nonce, plain, later, finish } = self else { return Ok(Vec::new()) };
        let plain = match later {
            Some(later) => later(&plain),
            None => plain,
        };
        let sealed = seal::seal_with(&key, nonce, place, &finish(plain))?;
        Ok([slot.to_le_bytes().as_slice(), &sealed].concat())
    }
}

/// What the transactions of one batch wrote.
#[derive(Default)]
pub(super) struct Group {
    pub(super) writes: BTreeMap<Vec<u8>, Option<Waiting>>,
    /// Slots of keys that are new with it.
    pub(super) allocated: Vec<Slot>,
    /// Slots of keys of transactions that came to nothing.
    pub(super) orphans: Vec<Slot>,
    pub(super) wiped: Vec<Slot>,
    /// What is written when the last transaction of the batch has run, by name.
    pub(super) last: BTreeMap<String, Last>,
    pub(super) hooks: Vec<Hook>,
    /// Bytes that it may take on disk.
    pub(super) room: u64,
    /// Whether it may take them from the reserve.
    pub(super) urgent: bool,
}

impl Group {
    /// The bytes of its keys and values.
    fn bytes(&self) -> usize {
        self.writes.iter().map(|(key, value)| key.len() + value.as_ref().map_or(0, Waiting::len)).sum()
    }
}

/// Runs one transaction, and says whether it is admitted; `None` when it panicked, and nobody waits for it any more.
fn run(shared: &Shared, group: &mut Group, job: Job) -> Option<(Answer, Result<(), StoreError>)> {
    let Job { run, waits, .. } = job;
    drop(waits);
    let mut tx = Tx { shared, group, own: Group::default(), allocated: BTreeMap::new() };
    let ran = catch_unwind(AssertUnwindSafe(|| run(&mut tx)));
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
        return Ok(room);
    }
    let admitted = shared.space.admit(shared.engine.owed() + group.room + room);
    if matches!(admitted, Err(StoreError::Full { .. })) && shared.engine.owed() > 0 {
        // What is owed takes less than it may.
        shared.engine.settle()?;
        shared.space.admit(group.room + room)?;
    } else {
        admitted?;
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

/// What a batch writes, sealed: on all cores where it is much.
fn sealed(writes: BTreeMap<Vec<u8>, Option<Waiting>>) -> Result<Vec<Op>, StoreError> {
    let op = |(place, value): (Vec<u8>, Option<Waiting>)| match value {
        Some(value) => value.stored(&place).map(|stored| Op::Put(place, stored)),
        None => Ok(Op::Delete(place)),
    };
    if writes.len() < MANY {
        return writes.into_iter().map(op).collect();
    }
    let writes: Vec<_> = writes.into_iter().collect();
    writes.into_par_iter().with_min_len(MIN_SHARE).map(op).collect()
}

/// Applies and flushes what a batch writes.
fn apply(shared: &Shared, group: &mut Group) -> Result<(), StoreError> {
    if group.writes.is_empty() {
        return Ok(());
    }
    let revision = shared.revision.load(Ordering::Acquire) + 1;
    let mut batch = sealed(std::mem::take(&mut group.writes))?;
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

//! Snapshots of sled, which has none: a batch first keeps the former values of what it changes, for every snapshot that is not
//! past it.
//!
//! Pieces are read, and batches applied, one after the other under one lock; between two pieces nothing waits. What is kept in
//! memory is a piece, and what was changed beyond it since the snapshot was taken.

use super::failed;
use crate::StoreError;
use crate::engine::Op;
use sled::{Db, IVec};
use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Most pairs of a piece.
const PIECE: usize = 1_000;
/// Bytes of keys and values after which a piece ends.
const PIECE_BYTES: usize = 1 << 20;

type Pair = (Vec<u8>, Vec<u8>);
type Pairs = BTreeMap<Vec<u8>, Vec<u8>>;

/// The snapshots that are being read.
#[derive(Debug, Clone, Default)]
pub(super) struct Snapshots(Arc<Mutex<Open>>);

#[derive(Debug, Default)]
struct Open {
    /// How many were begun, ever.
    begun: u64,
    readers: BTreeMap<u64, Reader>,
}

/// How far one is.
#[derive(Debug, Default)]
struct Reader {
    /// The last key of the last piece.
    after: Option<Vec<u8>>,
    /// Keys beyond that which batches changed, and what they had; `None` for nothing.
    before: BTreeMap<Vec<u8>, Option<IVec>>,
}

impl Reader {
    fn begins(&self) -> Bound<&Vec<u8>> {
        self.after.as_ref().map_or(Bound::Unbounded, Bound::Excluded)
    }

    /// Keeps what a batch is about to change.
    fn keep(&mut self, db: &Db, batch: &[Op]) -> Result<(), sled::Error> {
        for op in batch {
            let (Op::Put(key, _) | Op::Delete(key)) = op;
            let is_read = self.after.as_ref().is_some_and(|after| key <= after);
            if !is_read && !self.before.contains_key(key) {
                self.before.insert(key.clone(), db.get(key)?);
            }
        }
        Ok(())
    }

    /// The next piece as it was, and whether it is the last.
    fn piece(&mut self, db: &Db) -> Result<(Pairs, bool), sled::Error> {
        let (mut piece, mut bytes, mut is_last) = (BTreeMap::new(), 0, true);
        for pair in db.range::<Vec<u8>, _>((self.begins().cloned(), Bound::Unbounded)) {
            let (key, value) = pair?;
            bytes += key.len() + value.len();
            piece.insert(key.to_vec(), value.to_vec());
            if piece.len() == PIECE || bytes > PIECE_BYTES {
                is_last = false;
                break;
            }
        }
        let changed = match piece.last_key_value() {
            Some((last, _)) if !is_last => {
                let mut beyond = self.before.split_off(last);
                let of_last = beyond.remove_entry(last);
                self.after = Some(last.clone());
                let mut changed = std::mem::replace(&mut self.before, beyond);
                changed.extend(of_last);
                changed
            }
            _ => std::mem::take(&mut self.before),
        };
        for (key, before) in changed {
            match before {
                Some(value) => drop(piece.insert(key, value.to_vec())),
                None => drop(piece.remove(&key)),
            }
        }
        Ok((piece, is_last))
    }
}

impl Snapshots {
    fn open(&self) -> MutexGuard<'_, Open> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Applies a batch while no piece is read.
    pub(super) fn apply<T>(
        &self,
        db: &Db,
        batch: &[Op],
        apply: impl FnOnce() -> Result<T, sled::Error>,
    ) -> Result<T, sled::Error> {
        let mut open = self.open();
        for reader in open.readers.values_mut() {
            reader.keep(db, batch)?;
        }
        apply()
    }

    /// Begins one.
    pub(super) fn begin(&self, db: &Db) -> Snapshot {
        let mut open = self.open();
        open.begun += 1;
        let number = open.begun;
        open.readers.insert(number, Reader::default());
        let piece = BTreeMap::new().into_iter();
        Snapshot { db: db.clone(), snapshots: self.clone(), number, piece, is_over: false }
    }
}

/// One snapshot.
pub(super) struct Snapshot {
    db: Db,
    snapshots: Snapshots,
    number: u64,
    piece: std::collections::btree_map::IntoIter<Vec<u8>, Vec<u8>>,
    is_over: bool,
}

impl Drop for Snapshot {
    fn drop(&mut self) {
        self.snapshots.open().readers.remove(&self.number);
    }
}

impl Iterator for Snapshot {
    type Item = Result<Pair, StoreError>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Some(pair) = self.piece.next() {
                return Some(Ok(pair));
            }
            if self.is_over {
                return None;
            }
            let read =
                self.snapshots.open().readers.get_mut(&self.number).map(|reader| reader.piece(&self.db));
            match read {
                Some(Ok((piece, is_last))) => {
                    (self.piece, self.is_over) = (piece.into_iter(), is_last);
                }
                Some(Err(error)) => {
                    self.is_over = true;
                    return Some(Err(failed(&error)));
                }
                None => self.is_over = true,
            }
        }
    }
}

//! What was written last, in memory over the database.

use crate::StoreError;
use crate::engine::{Op, OwnedPairs};
use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::Arc;

/// What batches wrote that the database does not have: values by key, none where one was removed.
#[derive(Debug, Default)]
pub(super) struct Layer {
    pairs: BTreeMap<Vec<u8>, Option<Vec<u8>>>,
    bytes: usize,
    /// The number of the last of these batches.
    pub(super) last: u64,
}

impl Layer {
    /// An empty one, behind the batch of that number.
    pub(super) fn after(last: u64) -> Self {
        Self { last, ..Self::default() }
    }

    /// Takes a batch over.
    pub(super) fn take(&mut self, batch: Vec<Op>, number: u64) {
        for op in batch {
            let (key, value) = match op {
                Op::Put(key, value) => (key, Some(value)),
                Op::Delete(key) => (key, None),
            };
            self.bytes += key.len() + value.as_ref().map_or(0, Vec::len);
            self.pairs.insert(key, value);
        }
        self.last = number;
    }

    pub(super) fn pairs(&self) -> impl Iterator<Item = (&[u8], Option<&[u8]>)> {
        self.pairs.iter().map(|(key, value)| (key.as_slice(), value.as_deref()))
    }

    pub(super) fn is_empty(&self) -> bool {
        self.pairs.is_empty()
    }

    /// How many keys it has, and the bytes of all that was written.
    pub(super) fn size(&self) -> (usize, usize) {
        (self.pairs.len(), self.bytes)
    }
}

/// The layers over the database. A key's newest value counts.
#[derive(Debug, Default)]
pub(super) struct Recent {
    /// What is written to.
    pub(super) open: Layer,
    /// What is being written to the database, or was and did not fit.
    pub(super) settling: Option<Arc<Layer>>,
}

/// Newer pairs, in the order in which they are read; none where a value was removed.
type Newer = std::vec::IntoIter<(Vec<u8>, Option<Vec<u8>>)>;

impl Recent {
    fn layers(&self) -> impl Iterator<Item = &Layer> {
        self.settling.iter().map(|layer| &**layer).chain([&self.open])
    }

    /// What a key has here: `Some(None)` where its value was removed.
    pub(super) fn get(&self, key: &[u8]) -> Option<Option<Vec<u8>>> {
        self.open.pairs.get(key).or_else(|| self.settling.as_ref()?.pairs.get(key)).cloned()
    }

    /// Everything whose key begins so, from `from` on.
    pub(super) fn scan(&self, prefix: &[u8], from: &[u8], descending: bool) -> Newer {
        let mut found = BTreeMap::new();
        for layer in self.layers() {
            let range = match descending {
                true => (Bound::Unbounded, Bound::Included(from)),
                false => (Bound::Included(from), Bound::Unbounded),
            };
            let range = layer.pairs.range::<[u8], _>(range);
            let pair = |(key, value): (&Vec<u8>, &Option<Vec<u8>>)| (key.clone(), value.clone());
            let begins = |(key, _): &(&Vec<u8>, _)| key.starts_with(prefix);
            match descending {
                true => found.extend(range.rev().take_while(begins).map(pair)),
                false => found.extend(range.take_while(begins).map(pair)),
            }
        }
        let mut found: Vec<_> = found.into_iter().collect();
        if descending {
            found.reverse();
        }
        found.into_iter()
    }

    /// Everything, in the order of keys.
    pub(super) fn all(&self) -> Newer {
        self.scan(&[], &[], false)
    }

    /// How many keys its layers have, and the bytes of all that was written.
    pub(super) fn size(&self) -> (usize, usize) {
        self.layers().map(Layer::size).fold((0, 0), |all, size| (all.0 + size.0, all.1 + size.1))
    }
}

/// Pairs of the database with newer ones in their places.
pub(super) struct Merged<I: Iterator> {
    older: std::iter::Peekable<I>,
    newer: std::iter::Peekable<Newer>,
    descending: bool,
}

impl<I: Iterator<Item = Result<(Vec<u8>, Vec<u8>), StoreError>>> Merged<I> {
    pub(super) fn new(older: I, newer: Newer, descending: bool) -> Self {
        Self { older: older.peekable(), newer: newer.peekable(), descending }
    }
}

impl Merged<OwnedPairs> {
    pub(super) fn owned(older: OwnedPairs, newer: Newer) -> OwnedPairs {
        Box::new(Self::new(older, newer, false))
    }
}

impl<I: Iterator<Item = Result<(Vec<u8>, Vec<u8>), StoreError>>> Iterator for Merged<I> {
    type Item = Result<(Vec<u8>, Vec<u8>), StoreError>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let order = match (self.older.peek(), self.newer.peek()) {
                (Some(Err(_)), _) | (_, None) => return self.older.next(),
                (None, Some(_)) => Ordering::Greater,
                (Some(Ok((older, _))), Some((newer, _))) if self.descending => newer.cmp(older),
                (Some(Ok((older, _))), Some((newer, _))) => older.cmp(newer),
            };
            match order {
                Ordering::Less => return self.older.next(),
                Ordering::Equal => drop(self.older.next()),
                Ordering::Greater => {}
            }
            if let Some((key, Some(value))) = self.newer.next() {
                return Some(Ok((key, value)));
            }
        }
    }
}

//! Tables with types: what is under a number, by what key, and in which form.
//!
//! | type | where | what |
//! |---|---|---|
//! | [`Table`] | number, key of one byte at least | rows of one type by keys of one type |
//! | [`Single`] | number, no key | one value |
//! | [`Counter`] | number, no key | a number that only grows |
//!
//! A number may be that of a table and of a counter: the two never meet, for a table neither reads nor writes the empty
//! key.

use crate::store::{Store, Tx};
use crate::{Key, Slot, StoreError};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::borrow::Cow;
use std::collections::BTreeSet;
use std::marker::PhantomData;
use std::sync::Arc;

/// How the values of a table are written.
pub trait Codec<V> {
    /// The bytes of a value.
    ///
    /// # Errors
    /// For a value that has none; none in practice.
    fn encode(value: &V) -> Result<Cow<'_, [u8]>, postcard::Error>;

    /// What the bytes of a value are stored as, never longer than they are: made when they are sealed, beside the transaction.
    /// [`Codec::decode`] reads both.
    #[must_use]
    fn finish(bytes: Vec<u8>) -> Vec<u8> {
        bytes
    }

    /// The value of bytes.
    ///
    /// # Errors
    /// For bytes that are none.
    fn decode(bytes: Vec<u8>) -> Result<V, postcard::Error>;
}

/// The compact form of a type with `serde` (postcard). A type may get members at its end: of a row that was written before they came each
/// reads as zeros do (`None`, `false`, 0, an empty text or list, the first variant), and a program of before refuses the row that has
/// them. A row is sealed: a short one is an old one, and none that was cut.
#[derive(Debug)]
pub enum Compact {}

/// How many bytes of new members a row of before stands for at most.
const PADDING: usize = 32;

/// A value of bytes that may lack its last members, as [`Compact`] has it.
///
/// # Errors
/// For bytes that are none, or go on behind the value.
pub fn padded<V: DeserializeOwned>(bytes: &[u8]) -> Result<V, postcard::Error> {
    match postcard::take_from_bytes(bytes) {
        Ok((value, [])) => return Ok(value),
        Ok(_) => return Err(postcard::Error::DeserializeBadEncoding),
        Err(postcard::Error::DeserializeUnexpectedEnd) => {}
        Err(error) => return Err(error),
    }
    postcard::take_from_bytes(&[bytes, &[0; PADDING]].concat()).map(|(value, _)| value)
}

impl<V: Serialize + DeserializeOwned> Codec<V> for Compact {
    fn encode(value: &V) -> Result<Cow<'_, [u8]>, postcard::Error> {
        postcard::to_stdvec(value).map(Cow::Owned)
    }

    fn decode(bytes: Vec<u8>) -> Result<V, postcard::Error> {
        padded(&bytes)
    }
}

/// Bytes as they are: documents in canonical form, keys that are wiped.
#[derive(Debug)]
pub enum Raw {}

impl<V: AsRef<[u8]> + From<Vec<u8>>> Codec<V> for Raw {
    fn encode(value: &V) -> Result<Cow<'_, [u8]>, postcard::Error> {
        Ok(Cow::Borrowed(value.as_ref()))
    }

    fn decode(bytes: Vec<u8>) -> Result<V, postcard::Error> {
        Ok(bytes.into())
    }
}

/// The key of a row of another table.
#[derive(Debug)]
pub enum AsKey {}

impl<V: Key> Codec<V> for AsKey {
    fn encode(value: &V) -> Result<Cow<'_, [u8]>, postcard::Error> {
        Ok(Cow::Owned(value.to_key()))
    }

    fn decode(bytes: Vec<u8>) -> Result<V, postcard::Error> {
        V::from_key(&bytes).ok_or(postcard::Error::DeserializeBadEncoding)
    }
}

/// Where rows are read: in a [`Store`] as they were last committed, in a [`Tx`] as they stand after everything before.
pub trait Rows: sealed::Rows {}

impl Rows for Store {}
impl Rows for Tx<'_> {}

mod sealed {
    use super::{Slot, Store, StoreError, Tx};

    pub trait Rows {
        /// The bytes of a value and the slot of its key.
        fn row(&self, table: u8, key: &[u8]) -> Result<Option<(Slot, Vec<u8>)>, StoreError>;
    }

    impl Rows for Store {
        fn row(&self, table: u8, key: &[u8]) -> Result<Option<(Slot, Vec<u8>)>, StoreError> {
            self.get_with_slot(table, key)
        }
    }

    impl Rows for Tx<'_> {
        fn row(&self, table: u8, key: &[u8]) -> Result<Option<(Slot, Vec<u8>)>, StoreError> {
            self.get_with_slot(table, key)
        }
    }
}

/// The first number that a table may have: those before it are the store's own.
const FIRST: u8 = 2;

const fn checked(number: u8) -> u8 {
    assert!(number >= FIRST, "the store's own tables are no others'");
    number
}

/// Rows of one type, by keys of one type, in the order of the keys' bytes.
pub struct Table<K, V, C = Compact> {
    number: u8,
    types: PhantomData<fn(K) -> (V, C)>,
}

impl<K, V, C> Clone for Table<K, V, C> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<K, V, C> Copy for Table<K, V, C> {}

impl<K, V, C> Table<K, V, C> {
    /// The table of a number, from 2 on.
    #[must_use]
    pub const fn new(number: u8) -> Self {
        Self { number: checked(number), types: PhantomData }
    }

    /// Its number: the first byte of its keys in the engine.
    #[must_use]
    pub const fn number(&self) -> u8 {
        self.number
    }
}

impl<K: Key, V, C: Codec<V>> Table<K, V, C> {
    /// A value.
    ///
    /// # Errors
    /// [`StoreError::Erased`] when its key was destroyed; [`StoreError::Value`] when it is none of the table's type;
    /// [`StoreError::Tampered`], [`StoreError::Engine`].
    pub fn get(&self, rows: &impl Rows, key: &K) -> Result<Option<V>, StoreError> {
        Ok(self.get_with_slot(rows, key)?.map(|(_, value)| value))
    }

    /// A value and the slot that it is sealed with.
    ///
    /// # Errors
    /// As [`Table::get`].
    pub fn get_with_slot(&self, rows: &impl Rows, key: &K) -> Result<Option<(Slot, V)>, StoreError> {
        let row = rows.row(self.number, &self.key(key)?)?;
        row.map(|(slot, bytes)| Ok((slot, self.decode(bytes)?))).transpose()
    }

    /// Whether a value is there. Nothing is unsealed.
    ///
    /// # Errors
    /// [`StoreError::Engine`].
    pub fn contains(&self, tx: &Tx, key: &K) -> Result<bool, StoreError> {
        tx.contains(self.number, &self.key(key)?)
    }

    /// Writes a value sealed with the store's key.
    ///
    /// # Errors
    /// [`StoreError::Key`] for the empty key; of vault or seal.
    pub fn put(&self, tx: &mut Tx, key: &K, value: &V) -> Result<(), StoreError> {
        self.put_in(tx, 0, key, value)
    }

    /// Writes a value sealed with the key in a slot.
    ///
    /// # Errors
    /// As [`Table::put`]; [`StoreError::Erased`] when the slot is empty.
    pub fn put_in(&self, tx: &mut Tx, slot: Slot, key: &K, value: &V) -> Result<(), StoreError> {
        let bytes = C::encode(value).map_err(|error| self.unreadable(error))?;
        tx.put_in(slot, self.number, &self.key(key)?, bytes.into_owned(), None, C::finish)
    }

    /// Writes a value of which `later` makes what is stored, when the batch is written: on all cores, beside the transactions. Whoever reads
    /// it before gets what it makes, too. It makes at most [`crate::MAX_LATER`] bytes more.
    ///
    /// # Errors
    /// As [`Table::put`].
    pub fn put_later(
        &self,
        tx: &mut Tx,
        key: &K,
        value: &V,
        later: impl Fn(&[u8]) -> Vec<u8> + Send + Sync + 'static,
    ) -> Result<(), StoreError> {
        let bytes = C::encode(value).map_err(|error| self.unreadable(error))?;
        tx.put_in(0, self.number, &self.key(key)?, bytes.into_owned(), Some(Arc::new(later)), C::finish)
    }

    /// A value as it is written, for a transaction that comes later.
    ///
    /// # Errors
    /// [`StoreError::Value`] for a value that has no form; none in practice.
    pub fn encode(&self, value: &V) -> Result<Encoded<V>, StoreError> {
        let bytes = C::encode(value).map_err(|error| self.unreadable(error))?;
        Ok(Encoded { table: self.number, bytes: bytes.into_owned(), of: PhantomData })
    }

    /// Writes a value that was encoded before, sealed with the key in a slot.
    ///
    /// # Errors
    /// As [`Table::put_in`]; [`StoreError::Key`] for a value of another table.
    pub fn put_encoded_in(
        &self,
        tx: &mut Tx,
        slot: Slot,
        key: &K,
        value: Encoded<V>,
    ) -> Result<(), StoreError> {
        if value.table != self.number {
            return Err(StoreError::Key { table: self.number });
        }
        tx.put_in(slot, self.number, &self.key(key)?, value.bytes, None, C::finish)
    }

    /// Removes a value, if it is there.
    pub fn delete(&self, tx: &mut Tx, key: &K) {
        // No row has the empty key.
        if let Ok(key) = self.key(key) {
            tx.delete(self.number, &key);
        }
    }

    /// The keys that this transaction, or one before it in the same batch, has written or removed: what
    /// [`Table::scan`] does not show yet.
    #[must_use]
    pub fn written(&self, tx: &Tx) -> BTreeSet<K>
    where
        K: Ord,
    {
        // The empty key is the place of a counter.
        let written = tx.written(self.number);
        written.iter().filter(|key| !key.is_empty()).filter_map(|key| K::from_key(key)).collect()
    }

    /// All rows as they were last committed, in the order of keys.
    pub fn scan<'a>(
        &self,
        store: &'a Store,
    ) -> impl Iterator<Item = Result<(K, V), StoreError>> + use<'a, K, V, C> {
        self.range(store, Range::all())
    }

    /// The same, opened and decoded on all cores.
    pub fn scan_on_all_cores<'a>(
        &self,
        store: &'a Store,
    ) -> impl Iterator<Item = Result<(K, V), StoreError>> + use<'a, K, V, C>
    where
        K: Send + 'a,
        V: Send + 'a,
        C: 'a,
    {
        let table = *self;
        let decoded =
            move |row| Some(table.row(row)?.and_then(|(key, bytes)| Ok((key, table.decode(bytes)?))));
        store.scan_on_all_cores(self.number, decoded).flatten()
    }

    /// Some of the rows as they were last committed. A row that cannot be read is an error in its place, and the rows
    /// after it follow.
    pub fn range<'a>(
        &self,
        store: &'a Store,
        range: Range<K>,
    ) -> impl Iterator<Item = Result<(K, V), StoreError>> + use<'a, K, V, C> {
        let table = *self;
        self.rows(store, range).map(move |row| row.and_then(|(key, bytes)| Ok((key, table.decode(bytes)?))))
    }

    /// The keys alone, of rows that open.
    pub fn keys<'a>(
        &self,
        store: &'a Store,
        range: Range<K>,
    ) -> impl Iterator<Item = Result<K, StoreError>> + use<'a, K, V, C> {
        self.rows(store, range).map(|row| row.map(|(key, _)| key))
    }

    fn rows<'a>(
        &self,
        store: &'a Store,
        range: Range<K>,
    ) -> impl Iterator<Item = Result<(K, Vec<u8>), StoreError>> + use<'a, K, V, C> {
        let table = *self;
        let Range { prefix, from, descending, .. } = range;
        let rows = store.scan(self.number, &prefix, from.as_deref(), descending);
        rows.filter_map(move |row| table.row(row))
    }

    /// A row by its key; nothing in the place of a counter.
    fn row(&self, row: Result<(Vec<u8>, Vec<u8>), StoreError>) -> Option<Result<(K, Vec<u8>), StoreError>> {
        match row {
            Ok((key, _)) if key.is_empty() => None,
            Ok((key, bytes)) => {
                let key = K::from_key(&key).ok_or(StoreError::Key { table: self.number });
                Some(key.map(|key| (key, bytes)))
            }
            Err(error) => Some(Err(error)),
        }
    }

    fn key(&self, key: &K) -> Result<Vec<u8>, StoreError> {
        let bytes = key.to_key();
        if bytes.is_empty() { Err(StoreError::Key { table: self.number }) } else { Ok(bytes) }
    }

    fn decode(&self, bytes: Vec<u8>) -> Result<V, StoreError> {
        C::decode(bytes).map_err(|error| self.unreadable(error))
    }

    const fn unreadable(&self, reason: postcard::Error) -> StoreError {
        StoreError::Value { table: self.number, reason }
    }
}

/// A value as a table writes it. [`Table::encode`] alone makes one.
#[derive(Debug, Clone)]
pub struct Encoded<V> {
    table: u8,
    bytes: Vec<u8>,
    of: PhantomData<fn() -> V>,
}

/// Which rows of a table, and in which order.
#[derive(Debug, Clone)]
pub struct Range<K> {
    prefix: Vec<u8>,
    from: Option<Vec<u8>>,
    descending: bool,
    of: PhantomData<fn(K)>,
}

impl<K: Key> Range<K> {
    /// Every row, in the order of keys.
    #[must_use]
    pub const fn all() -> Self {
        Self { prefix: Vec::new(), from: None, descending: false, of: PhantomData }
    }

    /// The rows whose keys begin with this part.
    #[must_use]
    pub fn under<P: Key>(part: &P) -> Self
    where
        K: Under<P>,
    {
        Self { prefix: part.to_key(), ..Self::all() }
    }

    /// From this key on, which is in the range.
    #[must_use]
    pub fn from(self, key: &K) -> Self {
        Self { from: Some(key.to_key()), ..self }
    }

    /// The last first.
    #[must_use]
    pub fn descending(self) -> Self {
        Self { descending: true, ..self }
    }
}

/// A key that begins with another.
pub trait Under<P> {}

impl<A, B> Under<A> for (A, B) {}
impl<A, B, C> Under<A> for (A, B, C) {}

/// One value under a number of its own.
pub struct Single<V, C = Compact> {
    number: u8,
    types: PhantomData<fn() -> (V, C)>,
}

impl<V, C> Clone for Single<V, C> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<V, C> Copy for Single<V, C> {}

#[allow(missing_docs, reason = "the names say it")]
impl<V, C: Codec<V>> Single<V, C> {
    /// The value under a number, from 2 on.
    #[must_use]
    pub const fn new(number: u8) -> Self {
        Self { number: checked(number), types: PhantomData }
    }

    #[must_use]
    pub const fn number(&self) -> u8 {
        self.number
    }

    /// The value.
    ///
    /// # Errors
    /// As [`Table::get`].
    pub fn get(&self, rows: &impl Rows) -> Result<Option<V>, StoreError> {
        let row = rows.row(self.number, &[])?;
        row.map(|(_, bytes)| C::decode(bytes).map_err(|error| self.unreadable(error))).transpose()
    }

    /// Writes the value sealed with the store's key.
    ///
    /// # Errors
    /// As [`Table::put`].
    pub fn put(&self, tx: &mut Tx, value: &V) -> Result<(), StoreError> {
        let bytes = C::encode(value).map_err(|error| self.unreadable(error))?;
        tx.put_in(0, self.number, &[], bytes.into_owned(), None, C::finish)
    }

    const fn unreadable(&self, reason: postcard::Error) -> StoreError {
        StoreError::Value { table: self.number, reason }
    }
}

/// A number that only grows, beside the rows of a table or alone.
#[derive(Clone, Copy)]
pub struct Counter(Single<u64>);

#[allow(missing_docs, reason = "the names say it")]
impl Counter {
    /// The counter of a number, from 2 on.
    #[must_use]
    pub const fn new(number: u8) -> Self {
        Self(Single { number: checked(number), types: PhantomData })
    }

    #[must_use]
    pub const fn number(&self) -> u8 {
        self.0.number
    }

    /// Where it stands; 0 at first.
    ///
    /// # Errors
    /// As [`Table::get`].
    pub fn get(&self, rows: &impl Rows) -> Result<u64, StoreError> {
        Ok(self.0.get(rows)?.unwrap_or(0))
    }

    /// Counts one more; where it stood before.
    ///
    /// # Errors
    /// As [`Table::get`] and [`Table::put`].
    pub fn count(&self, tx: &mut Tx) -> Result<u64, StoreError> {
        let before = self.get(tx)?;
        self.0.put(tx, &before.saturating_add(1))?;
        Ok(before)
    }
}

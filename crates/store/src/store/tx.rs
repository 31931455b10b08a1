//! A running transaction: what it sees and what it writes.

use super::writer::{Group, Later, Waiting};
use super::{Shared, place, slot_mark};
use crate::StoreError;
use crate::vault::{ContentKey, Slot};
use oap_identity::random;
use std::collections::{BTreeMap, BTreeSet};

/// A running transaction.
pub struct Tx<'a> {
    pub(super) shared: &'a Shared,
    pub(super) group: &'a Group,
    pub(super) own: Group,
    pub(super) allocated: BTreeMap<Slot, ContentKey>,
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
            Some(Some(Waiting::Open { slot, plain, later, .. })) => {
                let plain = later.as_ref().map_or_else(|| plain.clone(), |later| later(plain));
                return Ok(Some((*slot, plain)));
            }
            Some(Some(Waiting::Mark)) => Some(Vec::new()),
            Some(None) => None,
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

    /// Writes a value sealed with the key in a slot, as `finish` makes it of what `later` makes of it.
    ///
    /// # Errors
    /// [`StoreError::Erased`] when the slot is empty.
    pub(crate) fn put_in(
        &mut self,
        slot: Slot,
        table: u8,
        key: &[u8],
        plain: Vec<u8>,
        later: Option<Later>,
        finish: fn(Vec<u8>) -> Vec<u8>,
    ) -> Result<(), StoreError> {
        let place = place(table, key);
        let fresh = self.allocated.get(&slot).cloned();
        let key = fresh.map_or_else(|| self.shared.vault.key(slot), Ok)?;
        let nonce = random::bytes(&*self.shared.random);
        self.own.writes.insert(place, Some(Waiting::Open { slot, key, nonce, plain, later, finish }));
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
        self.own.writes.insert(slot_mark(slot), Some(Waiting::Mark));
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
    /// under the same name. It writes at most [`crate::MAX_LAST`] bytes, under keys that are there. The batch is durable with it, or
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

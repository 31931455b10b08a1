//! What others are shown of the own log: the checkpoint, that it goes on, and to a grantee that a receipt of its is in it.

use crate::error::{Corrupt, Error};
use crate::service::Witnesses;
use crate::service::query::Caller;
use crate::state::gateway::Gateway;
use crate::state::schema::{
    CHECKPOINT, LOG, LOG_ENTRIES, LOG_INNER, LOG_NODES, LOG_SEEDS, LOG_STRETCHES, RECEIPT_PLACES, RECEIPTS,
};
use oap_identity::{Hash, ReceiptId, json};
use oap_memory::Receipt;
use oap_memory::log::checkpoint::Checkpoint;
use oap_memory::log::inclusion::{Inclusion, Known};
use oap_memory::log::merkle;
use oap_memory::log::note::Note;
use oap_memory::log::tick::{self, Below, Subtree, last_of};
use oap_store::Range;
use serde_json::{Value, json};

impl Witnesses<'_> {
    /// The published checkpoint, with the signatures of witnesses.
    ///
    /// # Errors
    /// [`Error::NotFound`] where there is none.
    pub fn checkpoint(self) -> Result<Vec<u8>, Error> {
        CHECKPOINT.get(&self.0.store)?.ok_or(Error::NotFound)
    }

    /// The proof that the log goes on from one size to another.
    ///
    /// # Errors
    /// [`Error::NotFound`] where it has no such sizes.
    pub fn consistency(self, from: u64, to: u64) -> Result<Vec<Hash>, Error> {
        let size = LOG.get(&self.0.store)?.ok_or(Error::NotFound)?.size;
        if from > to || to > size {
            return Err(Error::NotFound);
        }
        merkle::consistency(from, to, |place| node(self.0, place))
    }

    /// The way from a receipt of the caller's, of an answer under the grant that its token is for, to the published checkpoint. One that is not
    /// there yet, and one that is none of the caller's, are the same.
    ///
    /// # Errors
    /// [`Error::NotFound`].
    pub fn inclusion(self, caller: &Caller, receipt_id: ReceiptId) -> Result<Inclusion, Error> {
        let store = &self.0.store;
        let place = RECEIPT_PLACES.get(store, &receipt_id)?.ok_or(Error::NotFound)?;
        let document: Value = json::parse(&RECEIPTS.get(store, &place)?.ok_or(Error::NotFound)?)?;
        let receipt: Receipt = json::from_value(document.clone())?;
        let of_grant = receipt.policy_decisions.first().and_then(|decision| decision.more.get("grant_hash"));
        if receipt.agent_did != caller.grantee().as_str() || of_grant != Some(&json!(caller.grant_hash())) {
            return Err(Error::NotFound);
        }
        let receipt = Known::of(&document).ok_or(Error::NotFound)?;
        let note = Note::parse(&self.checkpoint()?).map_err(|_| Corrupt::Log)?;
        let size = Checkpoint::read(note.text()).map_err(|_| Corrupt::Log)?.size;
        let before = Range::under(&place.0).from(&place).descending();
        let stretch = LOG_STRETCHES.range(store, before).next().transpose()?;
        let stretch = stretch.map(|(_, stretch)| stretch).filter(|stretch| place.1 < stretch.end);
        let tick = stretch.map(|stretch| stretch.tick).filter(|tick| *tick < size).ok_or(Error::NotFound)?;
        let slot = tick::slot(&receipt.previous);
        if LOG_ENTRIES.get(store, &(tick, slot))? != Some(receipt.hash) {
            return Err(Error::NotFound);
        }
        let seed = LOG_SEEDS.get(store, &tick)?.ok_or(Corrupt::Log)?;
        Ok(Inclusion {
            checkpoint: note.to_string(),
            tick,
            siblings: tick::path(&seed, slot, |subtree| below(self.0, tick, subtree))?,
            path: merkle::inclusion(tick, size, |place| node(self.0, place))?,
        })
    }
}

/// What stands in a subtree below a leaf of the own log: two rows are looked at, however many there are.
fn below(gateway: &Gateway, tick: u64, subtree: Subtree) -> Result<Below, Error> {
    let (depth, first) = subtree;
    if let Some(hash) = LOG_INNER.get(&gateway.store, &(tick, depth, first))? {
        return Ok(Below::More(hash));
    }
    let from = Range::under(&tick).from(&(tick, first));
    Ok(match LOG_ENTRIES.range(&gateway.store, from).next().transpose()? {
        Some(((_, slot), receipt)) if slot <= last_of(subtree) => Below::One(slot, receipt),
        _ => Below::Nothing,
    })
}

/// A node of the own log.
pub(super) fn node(gateway: &Gateway, place: merkle::Place) -> Result<Hash, Error> {
    LOG_NODES.get(&gateway.store, &place)?.ok_or(Error::Corrupt(Corrupt::Log))
}

//! What is where in the store.

use crate::error::Error;
use crate::state::grant_book::GrantKey;
use oap_identity::{ItemId, ReceiptId};
use oap_memory::commitment::Committed;
use oap_memory::record::Head;
use oap_store::{Store, Table, Tx};
use serde::Serialize;
use serde::de::DeserializeOwned;
use sha2::{Digest, Sha256};

/// The principal's keys: one value.
pub const KEYS: Table = Table(2);
/// Heads of items, by item; sealed with the key of the version in force.
pub const HEADS: Table = Table(3);
/// Versions of items, by item and link number; each sealed with its own key.
pub const VERSIONS: Table = Table(4);
/// Links of items, by item and number, in canonical form. They stay when an item is erased.
pub const LINKS: Table = Table(5);
/// Grants, by their key.
pub const GRANTS: Table = Table(6);
/// When a grant was revoked, by its key. Apart from the grant, so that a commit can ask for it cheaply.
pub const REVOKED: Table = Table(7);
/// The items disclosed under a grant and those made from it, by the grant's key and item.
pub const DISCLOSED: Table = Table(8);
/// What was used of a grant, by its key.
pub const USAGE: Table = Table(30);
/// The keys of the grants, by their places in the status list.
pub const PLACES: Table = Table(31);
/// How often the people of the owner's contacts changed: one value.
pub const PEOPLE: Table = Table(29);
/// The state of a receipt chain, by name.
pub const CHAINS: Table = Table(10);
/// Receipts in canonical form, by number of chain and number in it.
pub const RECEIPTS: Table = Table(11);
/// Where a receipt is, by id.
pub const RECEIPT_PLACES: Table = Table(12);
/// Where the receipts of an agent are, by hash of the agent, chain and number.
pub const RECEIPTS_OF: Table = Table(13);
/// Proofs that were used, until when they are remembered.
pub const PROOFS: Table = Table(14);
/// Incident reports, by id.
pub const INCIDENTS: Table = Table(15);
/// The contexts of scopes (OAP-CORE 18.2), by scope; the empty name counts changes of contexts, bridges and consent.
pub const CONTEXTS: Table = Table(19);
/// Bridges between scopes, by id, and when each was taken back.
pub const BRIDGES: Table = Table(20);
/// The grants that the owner consented to in spite of a context, by their key.
pub const CONSENTS: Table = Table(21);
/// What the gates decided, by decision.
pub const DECISIONS: Table = Table(22);
/// The result of the last memorization audit: one value.
pub const MEMORIZATION: Table = Table(23);
/// Capture receipts of items that came from another house, by id, in canonical form.
pub const FOREIGN_RECEIPTS: Table = Table(24);
/// DID documents of former houses, by DID, as the owner trusted them.
pub const FORMER: Table = Table(26);
/// What was imported from elsewhere and erased since: its id, by the keyed hash of where it came from; never of what it
/// said.
pub const SOURCES: Table = Table(25);
/// The items of a list whose records have no ids, such as a note's lines, in order, by the keyed hash of
/// what it is told apart by. Their ids alone: some may be erased.
pub const LISTS: Table = Table(32);
/// When the owner took a consent back, by grant.
pub const WITHDRAWN: Table = Table(40);
/// The latest time that a commit was made at: one value.
pub const CLOCK: Table = Table(41);
/// What an imported item came from and what it said, by item; sealed with the key of the version in force.
pub const SAID: Table = Table(42);
/// Legal holds, by item.
pub const HOLDS: Table = Table(27);
/// The last Conformance Receipt: one value.
pub const CONFORMANCE: Table = Table(28);
/// What grantees spent, by hash of the grantee.
pub const BUDGETS: Table = Table(17);
/// What was spent of a grant's own budget, by its hash.
pub const SPENT: Table = Table(18);
/// The last link of an erased item, by item.
pub const TOMBSTONES: Table = Table(16);

/// The key of a numbered entry of an item.
#[must_use]
pub fn entry(item: ItemId, seq: u32) -> Vec<u8> {
    [item.to_bytes().as_slice(), &seq.to_be_bytes()].concat()
}

/// The key of a disclosed item.
#[must_use]
pub fn disclosed(grant: GrantKey, item: ItemId) -> Vec<u8> {
    [*grant.bytes(), item.to_bytes()].concat()
}

/// The key of a receipt.
#[must_use]
pub fn receipt(chain: u32, seq: u64) -> Vec<u8> {
    [chain.to_be_bytes().as_slice(), &seq.to_be_bytes()].concat()
}

/// The key of an id.
#[must_use]
pub fn receipt_id(id: ReceiptId) -> [u8; 16] {
    id.to_bytes()
}

/// What the receipts of an agent are found by.
#[must_use]
pub fn agent(did: &str) -> [u8; 16] {
    let hash: [u8; 32] = Sha256::digest(did).into();
    let mut key = [0; 16];
    key.copy_from_slice(&hash[..16]);
    key
}

/// Reads a value in the compact form.
///
/// # Errors
/// [`Error::Corrupt`] when the bytes are not one.
pub fn decode<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, Error> {
    Ok(postcard::from_bytes(bytes)?)
}

/// Writes a value in the compact form.
///
/// # Errors
/// [`Error::Corrupt`] for a value without one; none in practice.
pub fn encode<T: Serialize>(value: &T) -> Result<Vec<u8>, Error> {
    Ok(postcard::to_stdvec(value)?)
}

/// A version of an item, as last committed.
///
/// # Errors
/// [`Error::NotFound`] when it is not there any more.
pub fn version(store: &Store, item: ItemId, seq: u32) -> Result<Committed, Error> {
    decode(&store.get(VERSIONS, &entry(item, seq))?.ok_or(Error::NotFound)?)
}

/// The head of an item, as it stands in a transaction, with the slot of its key.
///
/// # Errors
/// [`Error::NotFound`] when there is none.
pub fn head(tx: &Tx, item: ItemId) -> Result<(u32, Head), Error> {
    let (slot, bytes) = tx.get_with_slot(HEADS, &item.to_bytes())?.ok_or(Error::NotFound)?;
    Ok((slot, decode(&bytes)?))
}

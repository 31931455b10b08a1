//! The grants that the gateway issued or accepted, in memory. A cache of the store: what a commit rests on is read
//! again in its transaction ([`Standing`]).

use crate::error::{Conflict, Corrupt, Error};
use crate::state::commits::Writing;
use crate::state::schema::{DISCLOSED, GRANTS, PLACES, REVOKED, USAGE};
use oap_exchange::allowance::{Allowance, Disclosed};
use oap_grants::grant::UnverifiedGrant;
use oap_grants::{Grant, GrantRecord, SignedGrant};
use oap_identity::{Did, DidDocument, GrantId, Hash, ItemId, Timestamp, VerificationKey};
use oap_store::{Key, Range, Store};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, PoisonError, RwLock};
use tokio::sync::Mutex;

/// A grant as it is stored: the document as text, and the key that its signature was checked with.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[allow(missing_docs, reason = "the names say it")]
pub struct StoredGrant {
    pub document: String,
    /// The public key of the signer, as it was when the grant was issued or accepted.
    pub signer: [u8; 32],
    /// Whether it was delegated to its grantee by another grantee.
    pub delegated: bool,
    /// When it was issued or accepted here.
    pub accepted_at: Timestamp,
}

impl StoredGrant {
    /// A grant that is about to be stored.
    #[must_use]
    pub fn new(grant: &SignedGrant, signer: [u8; 32], delegated: bool, now: Timestamp) -> Self {
        Self { document: grant.document().to_string(), signer, delegated, accepted_at: now }
    }

    /// Reads the grant back, and checks its signature again with the key that it was accepted under.
    fn verify(&self) -> Result<SignedGrant, Error> {
        let document = oap_identity::json::parse(self.document.as_bytes())?;
        let unverified = UnverifiedGrant::parse(document)?;
        let kid = unverified.kid()?;
        let public = oap_identity::jwk::PublicKey::from_bytes(&self.signer).map_err(Corrupt::GrantKey)?;
        let did: Did = kid.did().clone();
        let document = DidDocument::new(did, vec![VerificationKey::new(kid, public)]);
        Ok(unverified.verify(&document, self.accepted_at)?)
    }
}

/// What a grant is stored under. For one that the gateway issued it is the id, which the gateway chose. For a
/// delegated one it is the hash of its parent and the id: the delegator chose the id, and must neither meet another's
/// grant with it nor learn that there is one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct GrantKey([u8; 16]);

#[allow(missing_docs, reason = "the names say it")]
impl GrantKey {
    /// The key of a grant.
    #[must_use]
    pub fn of(grant: &Grant) -> Self {
        let id = grant.grant_id;
        let Some(parent) = grant.parent else { return Self(id.to_bytes()) };
        let digest = Sha256::new().chain_update(parent.as_bytes()).chain_update(id.to_bytes()).finalize();
        let mut key = [0; 16];
        key.copy_from_slice(&digest[..16]);
        Self(key)
    }

    #[must_use]
    pub const fn bytes(&self) -> &[u8; 16] {
        &self.0
    }

    /// The same bytes, in the form in which the list of erasures names a grant.
    #[must_use]
    pub const fn id(self) -> GrantId {
        GrantId::from_bytes(self.0)
    }

    /// The key that the list of erasures names so.
    #[must_use]
    pub fn named(id: GrantId) -> Self {
        Self(id.to_bytes())
    }
}

impl Key for GrantKey {
    fn write(&self, to: &mut Vec<u8>) {
        self.0.write(to);
    }

    fn read(from: &mut &[u8]) -> Option<Self> {
        Key::read(from).map(Self)
    }
}

/// What was used of a grant, by itself and by all that were made from it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Usage {
    /// Distinct items that were disclosed.
    pub disclosed: u32,
    /// Grants that were made from it, at whatever depth.
    pub below: u32,
}

/// A grant in the grant book.
#[derive(Debug, Clone)]
pub struct GrantEntry {
    /// The grant, and when it was taken back.
    pub record: GrantRecord,
    /// What it is stored under.
    pub key: GrantKey,
    /// Whether it was delegated by a grantee.
    pub delegated: bool,
    /// Its place in the status list.
    pub place: Option<u32>,
    disclosed: Arc<Disclosed>,
    disclosing: Arc<Mutex<()>>,
}

impl GrantEntry {
    /// A grant that is new.
    #[must_use]
    pub fn new(grant: Arc<SignedGrant>, delegated: bool, place: Option<u32>) -> Self {
        Self {
            key: GrantKey::of(grant.grant()),
            disclosed: Arc::new(Disclosed::new(grant.grant().max_items as usize, [])),
            record: GrantRecord { grant, revoked_at: None },
            delegated,
            place,
            disclosing: Arc::default(),
        }
    }

    /// How many distinct items were disclosed under it and those made from it.
    #[must_use]
    pub fn disclosed(&self) -> usize {
        self.disclosed.count()
    }

    /// Whether an item is among them.
    pub(crate) fn has_disclosed(&self, item: ItemId) -> bool {
        self.disclosed.contains(item)
    }

    /// Those items.
    pub(crate) fn items(&self) -> impl Iterator<Item = ItemId> {
        self.disclosed.items()
    }
}

/// All grants, and what was disclosed under each.
#[derive(Debug, Default)]
pub struct StoredGrants(RwLock<Grants>);

#[derive(Debug, Default)]
struct Grants {
    by_key: BTreeMap<GrantKey, GrantEntry>,
    by_hash: BTreeMap<Hash, GrantKey>,
    by_id: BTreeMap<GrantId, Vec<GrantKey>>,
}

impl Grants {
    fn of(&self, hash: Hash) -> Option<&GrantEntry> {
        self.by_key.get(self.by_hash.get(&hash)?)
    }

    /// A grant and those that it was made from, itself first.
    fn chain(&self, hash: Hash) -> Vec<&GrantEntry> {
        let mut chain = Vec::new();
        let mut next = Some(hash);
        while let Some(grant) = next.and_then(|hash| self.of(hash)) {
            chain.push(grant);
            next = grant.record.grant.grant().parent;
        }
        chain
    }
}

impl StoredGrants {
    /// Reads the grants of a store.
    ///
    /// # Errors
    /// [`Error::Store`], [`Error::Corrupt`].
    pub fn load(store: &Store) -> Result<Self, Error> {
        let mut places = BTreeMap::new();
        for row in PLACES.scan(store) {
            let (place, key) = row?;
            places.insert(key, place);
        }
        let book = Self::default();
        for row in GRANTS.scan(store) {
            let (key, stored) = row?;
            let grant = Arc::new(stored.verify()?);
            let revoked_at = REVOKED.get(store, &key)?;
            let mut items = Vec::new();
            for disclosed in DISCLOSED.keys(store, Range::under(&key)) {
                items.push(disclosed?.1);
            }
            let max_items = grant.grant().max_items as usize;
            book.put(GrantEntry {
                key,
                disclosed: Arc::new(Disclosed::new(max_items, items)),
                record: GrantRecord { grant: grant.clone(), revoked_at },
                ..GrantEntry::new(grant, stored.delegated, places.get(&key).copied())
            });
        }
        Ok(book)
    }

    /// Reads the grants anew.
    ///
    /// # Errors
    /// As [`GrantBook::load`].
    pub(crate) fn reload(&self, store: &Store) -> Result<(), Error> {
        let read = Self::load(store)?.0.into_inner().unwrap_or_else(PoisonError::into_inner);
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = read;
        Ok(())
    }

    /// Puts a new grant in the grant book. One that is there stays as it is.
    pub fn put(&self, new: GrantEntry) {
        let mut grants = self.0.write().unwrap_or_else(PoisonError::into_inner);
        let (key, grant) = (new.key, &new.record.grant);
        if grants.by_key.contains_key(&key) {
            return;
        }
        let (id, hash) = (grant.grant().grant_id, grant.hash());
        grants.by_hash.insert(hash, key);
        grants.by_id.entry(id).or_default().push(key);
        grants.by_key.insert(key, new);
    }

    /// Marks a grant as revoked.
    pub fn revoke(&self, key: GrantKey, at: Timestamp) {
        let mut grants = self.0.write().unwrap_or_else(PoisonError::into_inner);
        if let Some(entry) = grants.by_key.get_mut(&key) {
            entry.record.revoked_at.get_or_insert(at);
        }
    }

    /// Remembers what was disclosed under a grant.
    pub fn disclose(&self, key: GrantKey, items: &[ItemId]) {
        let mut grants = self.0.write().unwrap_or_else(PoisonError::into_inner);
        if let Some(entry) = grants.by_key.get_mut(&key) {
            Arc::make_mut(&mut entry.disclosed).extend(items.iter().copied());
        }
    }

    /// What may still be disclosed under a grant.
    #[must_use]
    pub fn allowance(&self, grant: Hash) -> Allowance {
        let grants = self.0.read().unwrap_or_else(PoisonError::into_inner);
        Allowance::new(grants.chain(grant).iter().map(|entry| entry.disclosed.clone()).collect())
    }

    /// The lock that an answer holds up to its receipt when it discloses items for the first time, so that each
    /// counts those of the one before: one for all grants that were made from the same.
    #[must_use]
    pub fn disclosing(&self, grant: Hash) -> Arc<Mutex<()>> {
        let grants = self.0.read().unwrap_or_else(PoisonError::into_inner);
        grants.chain(grant).last().map(|first| first.disclosing.clone()).unwrap_or_default()
    }

    /// The hash of the first grant of a chain: what everything under it is counted by. Of an unknown grant its own.
    #[must_use]
    pub fn first(&self, grant: Hash) -> Hash {
        let grants = self.0.read().unwrap_or_else(PoisonError::into_inner);
        grants.chain(grant).last().map_or(grant, |first| first.record.grant.hash())
    }

    /// Every grant, oldest first.
    #[must_use]
    pub fn all(&self) -> Vec<GrantEntry> {
        let grants = self.0.read().unwrap_or_else(PoisonError::into_inner);
        grants.by_id.values().flatten().filter_map(|key| grants.by_key.get(key).cloned()).collect()
    }

    /// The grants of an id: the gateway's own first, then those to which a delegator gave the same.
    #[must_use]
    pub fn by_id(&self, id: GrantId) -> Vec<GrantEntry> {
        let grants = self.0.read().unwrap_or_else(PoisonError::into_inner);
        let keys = grants.by_id.get(&id).map(Vec::as_slice).unwrap_or_default();
        let mut found: Vec<GrantEntry> =
            keys.iter().filter_map(|key| grants.by_key.get(key).cloned()).collect();
        found.sort_by_key(|entry| entry.delegated);
        found
    }

    /// The one grant that an owner means by an id.
    ///
    /// # Errors
    /// [`Error::NotFound`]; [`Error::Conflict`] where only delegators gave it, to several grants.
    pub fn one(&self, id: GrantId) -> Result<GrantEntry, Error> {
        let mut found = self.by_id(id).into_iter();
        let first = found.next().ok_or(Error::NotFound)?;
        if first.delegated && found.next().is_some() {
            return Err(Error::Conflict(Conflict::SeveralDelegated));
        }
        Ok(first)
    }

    /// The grant of a hash.
    #[must_use]
    pub fn entry(&self, grant: Hash) -> Option<GrantEntry> {
        let grants = self.0.read().unwrap_or_else(PoisonError::into_inner);
        grants.of(grant).cloned()
    }

    /// The grants in force that were made from one, at whatever depth.
    #[must_use]
    pub fn below(&self, grant: Hash) -> Vec<GrantEntry> {
        let grants = self.0.read().unwrap_or_else(PoisonError::into_inner);
        let is_below = |entry: &&GrantEntry| {
            let above = grants.chain(entry.record.grant.hash());
            above.iter().skip(1).any(|above| above.record.grant.hash() == grant)
        };
        let in_force = |entry: &&GrantEntry| entry.delegated && entry.record.revoked_at.is_none();
        grants.by_key.values().filter(in_force).filter(is_below).cloned().collect()
    }

    /// A grant and those that it was made from, itself first; none for an unknown one.
    #[must_use]
    pub fn chain(&self, grant: Hash) -> Vec<GrantEntry> {
        let grants = self.0.read().unwrap_or_else(PoisonError::into_inner);
        grants.chain(grant).into_iter().cloned().collect()
    }
}

impl oap_grants::GrantBook for StoredGrants {
    fn by_hash(&self, hash: Hash) -> Option<GrantRecord> {
        let grants = self.0.read().unwrap_or_else(PoisonError::into_inner);
        grants.of(hash).map(|entry| entry.record.clone())
    }
}

/// A grant and those that it was made from, as they stand in a transaction: only what is stored there, and whether it
/// was taken back. The documents come from the grant book, where they are found by their hash and cannot differ.
pub struct Standing {
    /// The grants, first the one that was asked for.
    pub chain: Vec<GrantEntry>,
}

impl oap_grants::GrantBook for Standing {
    fn by_hash(&self, hash: Hash) -> Option<GrantRecord> {
        self.chain.iter().map(|entry| &entry.record).find(|record| record.grant.hash() == hash).cloned()
    }
}

impl Writing<'_, '_> {
    /// How a grant and those that it was made from stand here.
    ///
    /// # Errors
    /// [`Error::Store`], [`Error::Corrupt`].
    pub fn standing(&self, mut chain: Vec<GrantEntry>) -> Result<Standing, Error> {
        let mut stored = Vec::with_capacity(chain.len());
        for mut entry in chain.drain(..) {
            if !GRANTS.contains(self.tx, &entry.key)? {
                continue;
            }
            entry.record.revoked_at = REVOKED.get(self.tx, &entry.key)?;
            stored.push(entry);
        }
        Ok(Standing { chain: stored })
    }

    /// What was used of a grant.
    ///
    /// # Errors
    /// [`Error::Store`], [`Error::Corrupt`].
    pub fn usage(&self, key: GrantKey) -> Result<Usage, Error> {
        Ok(USAGE.get(self.tx, &key)?.unwrap_or_default())
    }

    /// Counts items as disclosed under every grant of a chain, where they are not yet. How many of them were disclosed under
    /// each of them before.
    ///
    /// # Errors
    /// [`Error::Overtaken`] when another answer has used up the room since.
    pub fn disclose(&mut self, standing: &Standing, items: &[ItemId]) -> Result<usize, Error> {
        let mut fresh = BTreeSet::new();
        for entry in &standing.chain {
            let key = entry.key;
            let mut newly = Vec::new();
            for item in items {
                if !DISCLOSED.contains(self.tx, &(key, *item))? {
                    newly.push(*item);
                }
            }
            if newly.is_empty() {
                continue;
            }
            fresh.extend(newly.iter().copied());
            let mut usage = self.usage(key)?;
            usage.disclosed = usage.disclosed.saturating_add(u32::try_from(newly.len()).unwrap_or(u32::MAX));
            if usage.disclosed > entry.record.grant.grant().max_items {
                return Err(Error::Overtaken);
            }
            USAGE.put(self.tx, &key, &usage)?;
            for item in &newly {
                DISCLOSED.put(self.tx, &(key, *item), &())?;
            }
            let gateway = self.gateway.clone();
            self.tx.on_commit(move || gateway.grant_book.disclose(key, &newly));
        }
        Ok(items.len() - fresh.len())
    }
}

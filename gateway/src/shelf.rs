//! The grants that the gateway issued or accepted, in memory.

use crate::error::Error;
use crate::tables::{DISCLOSED, GRANTS, REVOKED, decode};
use oap_grants::grant::UnverifiedGrant;
use oap_grants::{GrantBook, GrantRecord, SignedGrant};
use oap_identity::{Did, DidDocument, GrantId, Hash, ItemId, Timestamp, VerificationKey};
use oap_memory::view::Disclosed;
use oap_store::Store;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError, RwLock};
use tokio::sync::Mutex;

/// A grant as it is stored: the document as text, and the key that its signature was checked with.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct StoredGrant {
    /// The document.
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
        let corrupt = |e: String| Error::Corrupt(format!("a grant: {e}"));
        let document = oap_identity::json::parse(self.document.as_bytes())?;
        let unverified = UnverifiedGrant::parse(document)?;
        let kid = unverified.kid()?;
        let public =
            oap_identity::jwk::PublicKey::from_bytes(&self.signer).map_err(|e| corrupt(e.to_string()))?;
        let did: Did = kid.did().clone();
        let document = DidDocument::new(did, vec![VerificationKey::new(kid, public)]);
        Ok(unverified.verify(&document, self.accepted_at)?)
    }
}

/// A grant on the shelf.
#[derive(Debug, Clone)]
struct Shelved {
    record: GrantRecord,
    delegated: bool,
    disclosed: Arc<Disclosed>,
    disclosing: Arc<Mutex<()>>,
}

/// All grants, and what was disclosed under each.
#[derive(Debug, Default)]
pub struct Shelf(RwLock<Grants>);

#[derive(Debug, Default)]
struct Grants {
    by_id: BTreeMap<GrantId, Shelved>,
    by_hash: BTreeMap<Hash, GrantId>,
}

impl Shelf {
    /// Reads the grants of a store.
    ///
    /// # Errors
    /// [`Error::Store`], [`Error::Corrupt`].
    pub fn load(store: &Store) -> Result<Self, Error> {
        let shelf = Self::default();
        for pair in store.scan(GRANTS, &[], None, false) {
            let (_, bytes) = pair?;
            let stored: StoredGrant = decode(&bytes)?;
            let grant = Arc::new(stored.verify()?);
            let id = grant.grant().grant_id;
            let revoked = store.get(REVOKED, &id.to_bytes())?;
            let revoked_at = revoked.map(|bytes| decode::<Timestamp>(&bytes)).transpose()?;
            let mut items = Vec::new();
            for pair in store.scan(DISCLOSED, &id.to_bytes(), None, false) {
                let (key, _) = pair?;
                items.extend(key[16..].first_chunk::<16>().map(|bytes| ItemId::from_bytes(*bytes)));
            }
            shelf.put(grant.clone(), stored.delegated);
            shelf.disclose(id, &items);
            if let Some(at) = revoked_at {
                shelf.revoke(id, at);
            }
        }
        Ok(shelf)
    }

    /// Puts a new grant on the shelf.
    pub fn put(&self, grant: Arc<SignedGrant>, delegated: bool) {
        let mut grants = self.0.write().unwrap_or_else(PoisonError::into_inner);
        let (id, hash) = (grant.grant().grant_id, grant.hash());
        let disclosed = Arc::new(Disclosed::new(grant.grant().max_items as usize, []));
        let record = GrantRecord { grant, revoked_at: None };
        grants.by_id.insert(id, Shelved { record, delegated, disclosed, disclosing: Arc::default() });
        grants.by_hash.insert(hash, id);
    }

    /// Marks a grant as revoked.
    pub fn revoke(&self, id: GrantId, at: Timestamp) {
        let mut grants = self.0.write().unwrap_or_else(PoisonError::into_inner);
        if let Some(shelved) = grants.by_id.get_mut(&id) {
            shelved.record.revoked_at.get_or_insert(at);
        }
    }

    /// Remembers what was disclosed under a grant.
    pub fn disclose(&self, id: GrantId, items: &[ItemId]) {
        let mut grants = self.0.write().unwrap_or_else(PoisonError::into_inner);
        if let Some(shelved) = grants.by_id.get_mut(&id) {
            Arc::make_mut(&mut shelved.disclosed).extend(items.iter().copied());
        }
    }

    /// What was disclosed under a grant.
    #[must_use]
    pub fn disclosed(&self, id: GrantId) -> Arc<Disclosed> {
        let grants = self.0.read().unwrap_or_else(PoisonError::into_inner);
        grants.by_id.get(&id).map(|shelved| shelved.disclosed.clone()).unwrap_or_default()
    }

    /// The lock that an answer holds from its computation to its receipt when it discloses items for the first
    /// time, so that each counts those of the one before. `None` for an unknown grant.
    #[must_use]
    pub fn disclosing(&self, id: GrantId) -> Option<Arc<Mutex<()>>> {
        let grants = self.0.read().unwrap_or_else(PoisonError::into_inner);
        grants.by_id.get(&id).map(|shelved| shelved.disclosing.clone())
    }

    /// Every grant, oldest first, and whether it was delegated.
    #[must_use]
    pub fn all(&self) -> Vec<(GrantRecord, bool)> {
        let grants = self.0.read().unwrap_or_else(PoisonError::into_inner);
        grants.by_id.values().map(|shelved| (shelved.record.clone(), shelved.delegated)).collect()
    }
}

impl GrantBook for Shelf {
    fn by_id(&self, id: GrantId) -> Option<GrantRecord> {
        let grants = self.0.read().unwrap_or_else(PoisonError::into_inner);
        grants.by_id.get(&id).map(|shelved| shelved.record.clone())
    }

    fn by_hash(&self, hash: Hash) -> Option<GrantRecord> {
        let grants = self.0.read().unwrap_or_else(PoisonError::into_inner);
        let id = grants.by_hash.get(&hash)?;
        grants.by_id.get(id).map(|shelved| shelved.record.clone())
    }
}

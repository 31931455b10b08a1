//! The principal's keys: current, retired, revoked (protocol section 2).

pub use crate::api::keys::KeyInfo;
use crate::error::{Conflict, Corrupt, Error};
use crate::state::erasures::KeyState;
use hmac::{Hmac, Mac};
use oap_identity::document::{self, DidDocument};
use oap_identity::{AgreementKey, Did, Random, Signer, Timestamp, VerificationKey};
use oap_manifest::handover::Handover;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use sha2::Sha256;
use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;
use zeroize::{Zeroize, ZeroizeOnDrop, Zeroizing};

/// The keys as they are stored, sealed.
#[derive(Clone, Serialize, Deserialize, Zeroize, ZeroizeOnDrop)]
pub struct StoredKeys {
    agreement: [u8; 32],
    /// Keys the hash of asserted, unproven DIDs; what else is keyed of it is derived from it first.
    pseudonym: [u8; 32],
    /// Keys the seal of cursors, and nothing else.
    cursor: [u8; 32],
    keys: Vec<StoredKey>,
}

#[derive(Clone, Serialize, Deserialize, Zeroize, ZeroizeOnDrop)]
struct StoredKey {
    fragment: String,
    seed: [u8; 32],
    #[zeroize(skip)]
    created_at: Timestamp,
    #[zeroize(skip)]
    retired_at: Option<Timestamp>,
    #[zeroize(skip)]
    revoked_at: Option<Timestamp>,
}

/// The keys in use.
pub struct Keyring {
    stored: StoredKeys,
    encoded: Zeroizing<Vec<u8>>,
    did: Did,
    current: Arc<Signer>,
    agreement: AgreementKey,
    document: DidDocument,
    verification: Vec<VerificationKey>,
}

impl StoredKeys {
    /// Fresh keys for a did:web.
    #[must_use]
    pub fn generate(random: &dyn Random, now: Timestamp) -> Self {
        Self::with_key("key-1".to_owned(), *Signer::seed(random), random, now)
    }

    /// Fresh keys whose signing key is a did:key, and that DID.
    ///
    /// # Errors
    /// [`Error::Corrupt`] when `ssi` refuses the key; none in practice.
    pub fn generate_did_key(random: &dyn Random, now: Timestamp) -> Result<(Did, Self), Error> {
        let seed = Signer::seed(random);
        let signer = Signer::did_key(&seed).map_err(Corrupt::Key)?;
        let fragment = signer.kid().fragment().to_owned();
        Ok((signer.did().clone(), Self::with_key(fragment, *seed, random, now)))
    }

    /// The keys as they are stored.
    ///
    /// # Errors
    /// [`Error::Corrupt`]; none in practice.
    pub fn encode(&self) -> Result<Zeroizing<Vec<u8>>, Error> {
        Ok(Zeroizing::new(postcard::to_stdvec(self)?))
    }

    fn with_key(fragment: String, seed: [u8; 32], random: &dyn Random, now: Timestamp) -> Self {
        let bytes = || oap_identity::random::bytes::<32>(random);
        let key = StoredKey { fragment, seed, created_at: now, retired_at: None, revoked_at: None };
        Self { agreement: bytes(), pseudonym: bytes(), cursor: bytes(), keys: vec![key] }
    }
}

impl Keyring {
    /// The keys of a principal as they are stored.
    ///
    /// # Errors
    /// As [`Keyring::new`]; [`Error::Corrupt`] for bytes that are no keys.
    pub fn read(did: &Did, stored: &[u8]) -> Result<Self, Error> {
        Self::new(did, postcard::from_bytes(stored)?)
    }

    /// The keys of a principal.
    ///
    /// # Errors
    /// [`Error::Corrupt`] when the stored keys are not those of the DID.
    pub fn new(did: &Did, stored: StoredKeys) -> Result<Self, Error> {
        let mut verification = Vec::new();
        let mut current = None;
        // Newest first: the DID document's first key is the one in use.
        for key in stored.keys.iter().rev() {
            let kid = did.key(&key.fragment).map_err(Corrupt::KeyName)?;
            let signer = Signer::from_seed(kid.clone(), &key.seed).map_err(Corrupt::Key)?;
            let mut public = VerificationKey::new(kid, *signer.public());
            if let Some(at) = key.retired_at {
                public = public.retired(at);
            }
            if let Some(at) = key.revoked_at {
                public = public.revoked(at);
            }
            if key.retired_at.is_none() && key.revoked_at.is_none() {
                current.get_or_insert_with(|| Arc::new(signer));
            }
            verification.push(public);
        }
        let encoded = stored.encode()?;
        Ok(Self {
            encoded,
            agreement: AgreementKey::from_secret(stored.agreement),
            document: DidDocument::new(did.clone(), verification.clone()),
            current: current.ok_or(Corrupt::NoKeyInUse)?,
            did: did.clone(),
            verification,
            stored,
        })
    }

    /// The key that signs.
    #[must_use]
    pub const fn current(&self) -> &Arc<Signer> {
        &self.current
    }

    /// The principal's keys as others see them.
    #[must_use]
    pub const fn document(&self) -> &DidDocument {
        &self.document
    }

    /// The DID document that is published for an origin.
    #[must_use]
    pub fn did_json(&self, origin: &str) -> Value {
        document::publish(&self.did, &self.verification, &self.agreement, origin)
    }

    /// What keys the hash of asserted DIDs.
    #[must_use]
    pub const fn pseudonym_key(&self) -> &[u8; 32] {
        &self.stored.pseudonym
    }

    /// What keys the list of erasures: of a secret that no rotation changes, so that every backup can check the list.
    #[must_use]
    pub fn list_key(&self) -> Zeroizing<[u8; 32]> {
        self.derived(b"oap-memory/list-of-erasures/2")
    }

    /// What keys the MAC of a backup: of a secret that no rotation changes, and that is sealed in every backup.
    #[must_use]
    pub fn backup_key(&self) -> Zeroizing<[u8; 32]> {
        self.derived(b"oap-memory/backup/3")
    }

    /// What keys the hash of where imported records come from.
    #[must_use]
    pub fn source_key(&self) -> Zeroizing<[u8; 32]> {
        self.derived(b"oap-memory/source-of-import/1")
    }

    fn derived(&self, purpose: &[u8]) -> Zeroizing<[u8; 32]> {
        let mut mac = <Hmac<Sha256> as Mac>::new_from_slice(&self.stored.pseudonym)
            .unwrap_or_else(|_| unreachable!("HMAC takes a key of any length"));
        mac.update(purpose);
        Zeroizing::new(mac.finalize().into_bytes().into())
    }

    /// Where every key stands, oldest first.
    #[must_use]
    pub fn states(&self) -> Vec<KeyState> {
        let state = |key: &StoredKey| KeyState { fragment: key.fragment.clone(), revoked_at: key.revoked_at };
        self.stored.keys.iter().map(state).collect()
    }

    /// What keys the seal of cursors.
    #[must_use]
    pub const fn cursor_key(&self) -> &[u8; 32] {
        &self.stored.cursor
    }

    /// The keys as they are to be stored.
    #[must_use]
    pub const fn encoded(&self) -> &Zeroizing<Vec<u8>> {
        &self.encoded
    }

    /// Whether these are the same keys, each as it stands.
    pub(crate) fn are(&self, others: &Self) -> bool {
        self.is_stored_as(&others.encoded)
    }

    /// Whether these are the keys that are stored so.
    pub(crate) fn is_stored_as(&self, stored: &[u8]) -> bool {
        *self.encoded == *stored
    }

    /// The same keys with a new one in use; the former is retired at that time, which must be later than
    /// anything that it signed.
    ///
    /// # Errors
    /// [`Error::Conflict`] for a did:key, which is its one key.
    pub fn rotated(&self, now: Timestamp, random: &dyn Random) -> Result<Self, Error> {
        self.rotated_past(&[], now, random)
    }

    /// The same, where these keys are known of as well: the new one has the name of none of them.
    ///
    /// # Errors
    /// As [`Keyring::rotated`].
    pub fn rotated_past(
        &self,
        known: &[KeyState],
        now: Timestamp,
        random: &dyn Random,
    ) -> Result<Self, Error> {
        if self.did.method() == "key" {
            return Err(Error::Conflict(Conflict::DidKeyRotation));
        }
        let mut stored = self.stored.clone();
        let names = stored.keys.iter().map(|key| &key.fragment).chain(known.iter().map(|key| &key.fragment));
        let numbers = names.filter_map(|name| name.strip_prefix("key-")?.parse::<u32>().ok());
        let latest = numbers.max().unwrap_or(0);
        for key in stored.keys.iter_mut().filter(|k| k.retired_at.is_none() && k.revoked_at.is_none()) {
            key.retired_at = Some(now);
        }
        stored.keys.push(StoredKey {
            fragment: format!("key-{}", latest + 1),
            seed: *Signer::seed(random),
            created_at: now,
            retired_at: None,
            revoked_at: None,
        });
        Self::new(&self.did, stored)
    }

    /// The same keys with one marked as compromised since a time; a new one takes its place if it was in use.
    ///
    /// # Errors
    /// [`Error::NotFound`] for an unknown key, [`Error::Conflict`] as [`Keyring::rotated`].
    pub fn revoked(
        &self,
        fragment: &str,
        since: Timestamp,
        now: Timestamp,
        random: &dyn Random,
    ) -> Result<Self, Error> {
        if !self.stored.keys.iter().any(|key| key.fragment == fragment) {
            return Err(Error::NotFound);
        }
        let in_use = self.current.kid().fragment() == fragment;
        let mut stored = if in_use { self.rotated(now, random)?.stored.clone() } else { self.stored.clone() };
        for key in stored.keys.iter_mut().filter(|key| key.fragment == fragment) {
            key.revoked_at = Some(since);
        }
        Self::new(&self.did, stored)
    }

    /// What each retired key says of its successor, oldest first, as of the moment before it was retired. A compromised key says
    /// nothing any more.
    ///
    /// # Errors
    /// [`Error::Corrupt`], [`Error::Signed`]; none in practice.
    pub fn handovers(&self) -> Result<Vec<Value>, Error> {
        let mut said = Vec::new();
        // Both oldest first, key by key.
        let public: Vec<&VerificationKey> = self.verification.iter().rev().collect();
        for (former, next) in self.stored.keys.iter().zip(public.into_iter().skip(1)) {
            if let (Some(retired_at), None) = (former.retired_at, former.revoked_at) {
                let kid = self.did.key(&former.fragment).map_err(Corrupt::KeyName)?;
                let signer = Signer::from_seed(kid, &former.seed).map_err(Corrupt::Key)?;
                said.push(Handover::sign(&signer, next, retired_at.minus(Duration::from_millis(1)))?);
            }
        }
        Ok(said)
    }

    /// Every key, newest first.
    #[must_use]
    pub fn list(&self) -> Vec<KeyInfo> {
        let times: Vec<Timestamp> = self.stored.keys.iter().rev().map(|key| key.created_at).collect();
        self.verification
            .iter()
            .zip(times)
            .map(|(key, created_at)| KeyInfo {
                kid: key.kid().clone(),
                thumbprint: key.public().thumbprint(),
                created_at,
                retired_at: key.retired_at(),
                revoked_at: key.revoked_at(),
                state: Cow::Borrowed(match (key.revoked_at(), key.retired_at()) {
                    (Some(_), _) => "revoked",
                    (_, Some(_)) => "retired",
                    _ => "current",
                }),
            })
            .collect()
    }
}

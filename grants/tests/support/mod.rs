//! Parties and grants, for tests.

#![allow(dead_code, reason = "each test binary uses its part")]

use oap_grants::grant::Delegable;
use oap_grants::{Grant, GrantBook, GrantRecord, LawfulBasis, Operation, Replay, SignedGrant};
use oap_identity::random::Seeded;
use oap_identity::{Did, DidDocument, GrantId, Hash, Signer, Timestamp, VerificationKey};
use oap_memory::Filter;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};
use std::time::Duration;

pub const AUDIENCE: &str = "https://user.example";
pub const QUERY: &str = "https://user.example/oap/memory/query";
pub const ENDPOINT: &str = "https://user.example/oap/memory/grant";

/// 2026-05-01T12:00:00Z
pub fn now() -> Timestamp {
    Timestamp::from_seconds(1_777_636_800)
}

pub fn later(seconds: u64) -> Timestamp {
    now().plus(Duration::from_secs(seconds))
}

pub fn random() -> Seeded {
    Seeded::new(42)
}

/// The principal whose memory it is.
pub fn owner() -> Signer {
    Signer::from_seed("did:web:user.example#key-1".parse().unwrap(), &[1; 32]).unwrap()
}

/// Grantees: did:key of a seed.
pub fn agent(seed: u8) -> Signer {
    Signer::did_key(&[seed; 32]).unwrap()
}

pub fn document(signer: &Signer) -> DidDocument {
    let key = VerificationKey::new(signer.kid().clone(), *signer.public());
    DidDocument::new(signer.did().clone(), vec![key])
}

pub fn grant_to(grantee: &Did) -> Grant {
    Grant {
        version: 1,
        grant_id: GrantId::new(now(), &Seeded::new(grantee.as_str().len() as u64)),
        granter: "did:web:user.example#personal".parse().unwrap(),
        grantee: grantee.clone(),
        purpose: "Brief the contractor".to_owned(),
        purpose_codes: Vec::new(),
        filter: Filter::default(),
        max_items: 500,
        issued_at: now(),
        not_before: None,
        expires_at: later(86_400),
        revocable: true,
        redaction_profile: "oap.profile.projection.memory.v1".to_owned(),
        trust_level: 2.try_into().unwrap(),
        lawful_basis: LawfulBasis::Consent,
        operations: BTreeSet::from([Operation::Query]),
        embedding_access: false,
        delegable: None,
        parent: None,
        budget: None,
        bearer: false,
        status: None,
    }
}

pub fn delegable(grantee: &Did, max_depth: u8) -> Grant {
    Grant { delegable: Some(Delegable { max_depth }), ..grant_to(grantee) }
}

#[derive(Default)]
pub struct Book(pub BTreeMap<GrantId, GrantRecord>);

impl Book {
    pub fn with(grants: impl IntoIterator<Item = SignedGrant>) -> Self {
        let record = |grant: SignedGrant| GrantRecord { grant: Arc::new(grant), revoked_at: None };
        Self(grants.into_iter().map(|g| (g.grant().grant_id, record(g))).collect())
    }

    pub fn revoke(&mut self, id: GrantId) {
        self.0.get_mut(&id).unwrap().revoked_at = Some(now());
    }
}

impl GrantBook for Book {
    fn by_hash(&self, hash: Hash) -> Option<GrantRecord> {
        self.0.values().find(|r| r.grant.hash() == hash).cloned()
    }
}

#[derive(Default)]
pub struct UsedProofs(Mutex<BTreeSet<[u8; 32]>>);

impl Replay for UsedProofs {
    fn first_use(&self, key: [u8; 32], _now: Timestamp) -> bool {
        self.0.lock().unwrap().insert(key)
    }
}

//! A grant as its grantee presents it, and what a gateway has beside it, for tests.

#![allow(dead_code, reason = "each test binary uses its part")]

#[path = "../../../memory/tests/support/mod.rs"]
mod memory;

pub use memory::*;
use oap_exchange::gate::Obligations;
use oap_exchange::{Allowance, Answer, Found, Preview, Setting, Version, View, ViewError, WrittenItems};
use oap_grants::dpop::Request;
use oap_grants::verify::{Presented, authenticate, verify};
use oap_grants::{
    CheckedTokens, Grant, GrantBook, GrantRecord, LawfulBasis, Operation, Replay, SignedGrant, VerifiedGrant,
    token,
};
use oap_identity::{Did, GrantId, Hash, Signer, Timestamp};
use oap_memory::record::ItemRecord;
use oap_memory::text::Language;
use oap_memory::{Confidence, Filter, Head, Profile, TrustLevel};
use std::collections::BTreeSet;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

const AUDIENCE: &str = "https://user.example";

pub fn grantee() -> Did {
    Signer::did_key(&[9; 32]).unwrap().did().clone()
}

pub fn grant(filter: &Filter, profile: &str, level: TrustLevel) -> Grant {
    Grant {
        version: 1,
        grant_id: GrantId::new(now(), &oap_identity::random::Seeded::new(3)),
        granter: "did:web:user.example#personal".parse().unwrap(),
        grantee: grantee(),
        purpose: "Brief the contractor".to_owned(),
        purpose_codes: Vec::new(),
        filter: filter.clone(),
        max_items: 1000,
        issued_at: now(),
        not_before: None,
        expires_at: now().plus(Duration::from_secs(86_400)),
        revocable: true,
        redaction_profile: profile.to_owned(),
        trust_level: level,
        lawful_basis: LawfulBasis::Consent,
        operations: BTreeSet::from([Operation::Query]),
        embedding_access: false,
        delegable: None,
        parent: None,
        budget: None,
        bearer: true,
        status: None,
    }
}

struct Book(Arc<SignedGrant>);

impl GrantBook for Book {
    fn by_hash(&self, hash: Hash) -> Option<GrantRecord> {
        (self.0.hash() == hash).then(|| GrantRecord { grant: self.0.clone(), revoked_at: None })
    }
}

struct Unseen;

impl Replay for Unseen {
    fn first_use(&self, _: [u8; 32], _: Timestamp) -> bool {
        true
    }
}

/// The grant, signed by its owner and presented by its grantee.
pub fn presented(owner: &Owner, grant: Grant) -> VerifiedGrant {
    let signed = Arc::new(SignedGrant::sign(grant, &owner.signer).unwrap());
    let (token, _) = token::mint(&signed, None, AUDIENCE, &owner.signer, now(), &owner.random).unwrap();
    let presented = Presented {
        authorization: &[&format!("Bearer {token}")],
        dpop: &[],
        request: Request { method: "POST", url: "https://user.example/oap/memory/query" },
    };
    let caller =
        authenticate(&presented, &CheckedTokens::default(), &owner.document(), AUDIENCE, &Unseen, now())
            .unwrap();
    verify(&caller, Operation::Query, &Book(signed), &owner.document(), now()).unwrap()
}

pub fn setting(profiles: &[Profile]) -> Setting<'_> {
    Setting {
        profiles,
        obligations: Obligations::default(),
        consented: false,
        embeddings: false,
        model: None,
        belief_threshold: Confidence::try_from(0.5).unwrap(),
        language: Language::English,
        now: now(),
    }
}

fn load(items: &[(Head, ItemRecord)]) -> impl Fn(&Head) -> Result<Option<ItemRecord>, Infallible> {
    |head| Ok(items.iter().find(|(known, _)| known.item_id == head.item_id).map(|(_, whole)| whole.clone()))
}

pub fn view(
    items: &[(Head, ItemRecord)],
    grant: &VerifiedGrant,
    profiles: &[Profile],
) -> Result<View, ViewError<Infallible>> {
    let heads = items.iter().map(|(head, _)| head);
    View::build(grant, &Allowance::unused(1000), &setting(profiles), heads, load(items))
}

pub fn preview(items: &[(Head, ItemRecord)], grant: &Grant, profiles: &[Profile]) -> Preview {
    let heads = items.iter().map(|(head, _)| head);
    Preview::build(grant, &setting(profiles), heads, load(items)).unwrap()
}

/// The answer to what was found, every item written out anew.
pub fn write_out(found: Found, items: &[(Head, ItemRecord)]) -> Answer {
    let whole = |version: Version| items.iter().find(|(head, _)| Version::of(head) == version);
    let load = |version| Ok::<_, Infallible>(whole(version).map(|(_, whole)| whole.clone()));
    found.load(&WrittenItems::default(), load).unwrap().unwrap()
}

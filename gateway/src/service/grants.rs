//! Grants: previewed, issued, exchanged for tokens, taken back (protocol section 5).

mod exchange;
mod preview;

pub use crate::api::grants::{GrantDraft, GrantInfo, Preview, PreviewItem};

use crate::api::Document;
use crate::api::standing::ProfileInfo;
use crate::error::{Conflict, Error, MemberError};
use crate::service::devices::pairing;
use crate::service::{Gates, Grants, notices};
use crate::state::commits::{Writing, chain_of, until_it_holds};
use crate::state::grant_book::{GrantEntry, GrantKey, StoredGrant, Usage};
use crate::state::obligations;
use crate::state::owner::Owner;
use crate::state::owner::mark::{Admin, Permits, Read};
use crate::state::schema::{GRANTS, PLACES, REVOKED, USAGE};
use oap_grants::grant::{StatusIndex, StatusRef};
use oap_grants::verify::{Refused, live};
use oap_grants::{Grant, GrantRecord, GrantState, SignedGrant, status};
use oap_identity::{Did, GrantId, Hash, ScopedDid};
use oap_manifest::path;
use oap_memory::receipt::Action;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;

fn check_method(grantee: &Did) -> Result<(), Error> {
    grantee.check_method().map_err(|e| Error::Member("grantee", MemberError::Method(e)))
}

impl Grants<'_> {
    /// Signs and stores a grant.
    ///
    /// # Errors
    /// [`Error::Limit`], naming the member.
    pub async fn issue(
        self,
        owner: &Owner<impl Permits<Admin>>,
        draft: GrantDraft,
    ) -> Result<SignedGrant, Error> {
        let issued = until_it_holds(|| self.issue_once(owner, draft.clone())).await?;
        metrics::counter!("oap_grants_issued_total").increment(1);
        Ok(issued)
    }

    async fn issue_once(
        self,
        owner: &Owner<impl Permits<Admin>>,
        draft: GrantDraft,
    ) -> Result<SignedGrant, Error> {
        let (obligations, grant) = self.grant_of(draft)?;
        self.0.commit_as(owner, move |w| w.issue(obligations, grant)).await
    }

    /// Finds the document of a grantee to be, so that nobody is given a grant who could never use it.
    ///
    /// # Errors
    /// [`Error::Member`]: what failed, and how to issue the grant all the same.
    pub async fn resolve_grantee(self, _: &Owner<impl Permits<Admin>>, grantee: &Did) -> Result<(), Error> {
        check_method(grantee)?;
        let resolved = self.0.document(grantee).await;
        resolved.map(drop).map_err(|e| Error::Member("grantee", MemberError::Unresolved(Box::new(e))))
    }

    /// The grant that a draft asks for, without its place in the status list; and the revision of what
    /// the owner owed when its scopes were looked at.
    pub(in crate::service) fn grant_of(self, draft: GrantDraft) -> Result<(u64, Grant), Error> {
        check_method(&draft.grantee)?;
        let now = self.0.clock.now();
        let obligations = self.0.obligations_revision()?;
        let scope = draft.scope.unwrap_or_else(|| self.0.config.default_scope.clone());
        let grant = Grant {
            version: 1,
            grant_id: GrantId::new(now, &*self.0.random),
            granter: ScopedDid { principal: self.0.principal.clone(), scope },
            grantee: draft.grantee,
            purpose: draft.purpose,
            purpose_codes: draft.purpose_codes,
            filter: draft.filter,
            max_items: draft.max_items,
            issued_at: now,
            not_before: draft.not_before,
            expires_at: draft.expires_at,
            revocable: true,
            redaction_profile: draft.redaction_profile,
            trust_level: draft.trust_level,
            lawful_basis: draft.lawful_basis,
            operations: draft.operations,
            embedding_access: draft.embedding_access,
            delegable: draft.delegable,
            parent: None,
            budget: draft.budget,
            bearer: draft.bearer,
            status: None,
        };
        let profile = self.0.profile(&grant.redaction_profile);
        self.0.config.limits().check(&grant, &self.0.principal, profile, now)?;
        Gates(self.0).check_scopes(&grant.filter, &grant.granter.scope, now)?;
        Ok((obligations, grant))
    }

    /// Takes a grant back. It takes effect before the next answer leaves. Where a delegator gave its id to grants of
    /// their own, those are taken back too.
    ///
    /// # Errors
    /// [`Error::NotFound`]; [`Error::Conflict`] when it was taken back before.
    pub async fn revoke(self, owner: &Owner<impl Permits<Admin>>, id: GrantId) -> Result<GrantInfo, Error> {
        let found = self.0.grant_book.by_id(id);
        if found.is_empty() {
            return Err(Error::NotFound);
        }
        until_it_holds(|| {
            let found = found.clone();
            self.0.commit_as(owner, move |w| w.take_back(&found))
        })
        .await?;
        metrics::counter!("oap_grants_revoked_total").increment(1);
        self.grant_info(owner, id)
    }

    /// A grant as its owner sees it.
    ///
    /// # Errors
    /// [`Error::NotFound`].
    pub fn grant_info(self, _: &Owner<impl Permits<Admin>>, id: GrantId) -> Result<GrantInfo, Error> {
        self.0.grant_book.by_id(id).first().map(|entry| self.info(entry)).ok_or(Error::NotFound)
    }

    /// Every grant, newest first.
    #[must_use]
    pub fn grant_list(self, _: &Owner<impl Permits<Admin>>) -> Vec<GrantInfo> {
        self.0.grant_book.all().iter().rev().map(|entry| self.info(entry)).collect()
    }

    /// The projection profiles that grants can name.
    #[must_use]
    pub fn profile_list(self, _: &Owner<impl Permits<Read>>) -> Vec<ProfileInfo> {
        self.0.profiles().iter().map(ProfileInfo::of).collect()
    }

    fn info(self, entry: &GrantEntry) -> GrantInfo {
        let record = &entry.record;
        GrantInfo {
            grant: Document::of(record.grant.document().clone(), record.grant.grant().clone().into()),
            hash: record.grant.hash(),
            state: self.state(record),
            revoked_at: record.revoked_at,
            disclosed: entry.disclosed(),
            delegated: entry.delegated,
        }
    }

    /// Where a grant stands, with everything that it was made from. During a lockdown none stands.
    pub(crate) fn state(self, record: &GrantRecord) -> GrantState {
        if self.0.is_locked_down() {
            return GrantState::Revoked;
        }
        match live(record, &self.0.grant_book, self.0.keys().document(), self.0.clock.now()) {
            Ok(_) => GrantState::Active,
            Err(Refused::Inactive(state) | Refused::Ancestor(state)) => state,
            Err(_) => GrantState::Revoked,
        }
    }

    /// The signed list of revoked grants.
    ///
    /// # Errors
    /// [`Error::Signed`]; none in practice.
    pub fn status_list(self) -> Result<String, Error> {
        self.0.clock.believe()?;
        let all = self.0.grant_book.all();
        let revoked = all
            .iter()
            .filter(|entry| self.state(&entry.record) == GrantState::Revoked)
            .filter_map(|entry| entry.place);
        let address = self.0.url(path::STATUS);
        Ok(status::publish(revoked, &address, self.0.keys().current(), self.0.clock.now())?)
    }
}

impl Writing<'_, '_> {
    /// Takes the grants of an id back, as the owner says. A device whose grant is among them is none any more.
    fn take_back(&mut self, found: &[GrantEntry]) -> Result<(), Error> {
        self.tx.use_reserve();
        let mut revoked = Vec::new();
        for entry in found {
            revoked.extend(self.revoke_grant(entry, &["principal"])?.then_some(entry));
        }
        if revoked.is_empty() {
            return Err(Error::Conflict(Conflict::GrantRevoked));
        }
        // What was made from them is void with them.
        let book = &self.gateway.grant_book;
        let below = revoked.iter().flat_map(|entry| book.below(entry.record.grant.hash()));
        let mut below: BTreeMap<GrantKey, GrantEntry> = below.map(|entry| (entry.key, entry)).collect();
        for entry in &revoked {
            below.remove(&entry.key);
        }
        notices::tell_revoked(self, revoked.iter().copied().chain(below.values()))?;
        for entry in revoked {
            let signed = &entry.record.grant;
            pairing::given_revoked(self, &signed.grant().grantee, signed.hash())?;
        }
        Ok(())
    }

    /// Takes a grant back, by these rules; whether it was not before.
    ///
    /// # Errors
    /// [`Error::Store`], [`Error::Json`].
    pub(crate) fn revoke_grant(&mut self, entry: &GrantEntry, rules: &[&str]) -> Result<bool, Error> {
        let (key, gateway) = (entry.key, self.gateway.clone());
        if REVOKED.contains(self.tx, &key)? {
            return Ok(false);
        }
        let signed = &entry.record.grant;
        let mut receipt = gateway.draft(Action::Revoke, gateway.principal.as_str());
        receipt.rules = rules.iter().map(|rule| (*rule).to_owned()).collect();
        receipt.more = facts(signed.grant(), signed.hash(), &[]);
        self.receipt(&chain_of(&signed.grant().granter.scope), receipt)?;
        REVOKED.put(self.tx, &key, &self.now)?;
        self.ended.grants.push(key.id());
        let now = self.now;
        self.tx.on_commit(move || gateway.grant_book.revoke(key, now));
        Ok(true)
    }

    /// Signs and stores a grant that was checked when the owner's obligations were of that revision, with its receipt.
    ///
    /// # Errors
    /// [`Error::Overtaken`] where they have changed; [`Conflict::StatusListFull`].
    pub(in crate::service) fn issue(
        &mut self,
        obligations: u64,
        mut grant: Grant,
    ) -> Result<SignedGrant, Error> {
        self.gives_access()?;
        // The bridges to the scopes that it names.
        if obligations::revision(self.tx)? != obligations {
            return Err(Error::Overtaken);
        }
        let gateway = self.gateway.clone();
        let idx = self.free_place()?;
        let uri = gateway.url(path::STATUS);
        grant.status = Some(StatusRef { status_list: StatusIndex { idx, uri } });
        let signed = SignedGrant::sign(grant, self.keys.current())?;
        let mut receipt = gateway.draft(Action::Grant, gateway.principal.as_str());
        receipt.rules = vec!["principal".to_owned()];
        receipt.more = facts(signed.grant(), signed.hash(), &[]);
        receipt.output_hash = Some(signed.hash());
        self.receipt(&chain_of(&signed.grant().granter.scope), receipt)?;
        let signer = *self.keys.current().public().as_bytes();
        self.put_grant(GrantEntry::new(Arc::new(signed.clone()), false, Some(idx)), signer)?;
        Ok(signed)
    }

    /// Stores a grant that is new, and puts it in the grant book once it is durable.
    fn put_grant(&mut self, entry: GrantEntry, signer: [u8; 32]) -> Result<(), Error> {
        let key = entry.key;
        let stored = StoredGrant::new(&entry.record.grant, signer, entry.delegated, self.now);
        GRANTS.put(self.tx, &key, &stored)?;
        USAGE.put(self.tx, &key, &Usage::default())?;
        if let Some(place) = entry.place {
            PLACES.put(self.tx, &place, &key)?;
        }
        let gateway = self.gateway.clone();
        self.tx.on_commit(move || gateway.grant_book.put(entry));
        Ok(())
    }

    /// A place in the status list that no grant has.
    fn free_place(&self) -> Result<u32, Error> {
        let mut failed = None;
        let taken = |place: u32| {
            PLACES.contains(self.tx, &place).unwrap_or_else(|error| {
                failed = Some(error);
                false
            })
        };
        let place = status::choose(taken, &*self.gateway.random);
        failed.map_or(Ok(()), Err)?;
        place.ok_or(Error::Conflict(Conflict::StatusListFull))
    }
}

/// What receipts say of a grant (protocol section 12).
pub(crate) fn facts(grant: &Grant, hash: Hash, ancestors: &[Hash]) -> Map<String, Value> {
    let mut facts = Map::from_iter([
        ("consumed_grant_id".to_owned(), json!(grant.grant_id)),
        ("grant_hash".to_owned(), json!(hash)),
        ("scope_id".to_owned(), json!(grant.granter.scope)),
        ("trust_level".to_owned(), json!(grant.trust_level)),
        ("profile".to_owned(), json!(grant.redaction_profile)),
        ("lawful_basis".to_owned(), json!(grant.lawful_basis)),
    ]);
    if !ancestors.is_empty() {
        facts.insert("delegation".to_owned(), json!(ancestors));
    }
    facts
}

/// The hashes of the grants above the first of a chain, first one first.
pub(crate) fn above(chain: &[GrantEntry]) -> Vec<Hash> {
    chain.iter().skip(1).rev().map(|above| above.record.grant.hash()).collect()
}

/// The rule that a refusal rests on, for receipts and metrics.
pub(crate) const fn rule(refused: &Refused) -> &'static str {
    match refused {
        Refused::UnknownGrant | Refused::Mismatch => "grant.unknown",
        Refused::Inactive(GrantState::Expired) => "grant.expired",
        Refused::Inactive(GrantState::Draft) => "grant.not_yet_valid",
        Refused::Inactive(_) => "grant.revoked",
        Refused::Ancestor(_) => "grant.ancestor",
        Refused::Token => "grant.token",
        Refused::Bearer => "grant.bearer",
        Refused::Operation(_) => "grant.operation",
        Refused::Purpose => "grant.purpose",
        Refused::Embeddings => "grant.embedding_access",
        Refused::Budget => "grant.budget",
        Refused::Profile(_) => "grant.profile",
    }
}

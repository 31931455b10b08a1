//! Grants: previewed, issued, exchanged for tokens, taken back (protocol section 5).

use crate::api::Document;
pub use crate::api::grants::{GrantDraft, GrantInfo, Preview, PreviewItem};
use crate::api::standing::ProfileInfo;
use crate::error::{Conflict, Error, MemberError};
use crate::service::gates::Decided;
use crate::service::{Gates, Grants, Items};
use crate::state::commits::{Writing, chain_of, until_it_holds};
use crate::state::gateway::blocking;
use crate::state::grant_book::{GrantEntry, StoredGrant, Usage};
use crate::state::obligations;
use crate::state::owner::Owner;
use crate::state::owner::mark::{Admin, Permits, Read};
use crate::state::refusals::Counted;
use crate::state::schema::{GRANTS, PLACES, REVOKED, USAGE};
use oap_exchange::gate::Report;
use oap_grants::exchange::{ExchangeRequest, ExchangeResponse, MAX_CHAIN, UnverifiedProof};
use oap_grants::grant::{GrantError, StatusIndex, StatusRef, UnverifiedGrant};
use oap_grants::limits::MAX_BELOW;
use oap_grants::verify::{DelegationError, Refused, delegate, live};
use oap_grants::{Grant, GrantBook, GrantRecord, GrantState, SignedGrant, status, token};
use oap_identity::{Did, GrantId, Hash, ScopedDid};
use oap_manifest::path;
use oap_memory::item::Kind;
use oap_memory::receipt::{Action, Outcome};
use oap_memory::{Filter, TrustLevel};
use oap_store::StoreError;
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

fn check_method(grantee: &Did) -> Result<(), Error> {
    grantee.check_method().map_err(|e| Error::Member("grantee", MemberError::Method(e)))
}

/// Items shown whole in a preview.
const PREVIEWED: usize = 100;

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
        let gateway = self.0.clone();
        let stored = self
            .0
            .commit_as(owner, move |w| {
                // The bridges to the scopes that it names.
                if obligations::revision(w.tx)? != obligations {
                    return Err(Error::Overtaken);
                }
                let mut grant = grant;
                let idx = w.free_place()?;
                let uri = gateway.url(path::STATUS);
                grant.status = Some(StatusRef { status_list: StatusIndex { idx, uri } });
                let signed = SignedGrant::sign(grant, w.keys.current())?;
                let mut receipt = gateway.draft(Action::Grant, gateway.principal.as_str());
                receipt.rules = vec!["principal".to_owned()];
                receipt.more = facts(signed.grant(), signed.hash(), &[]);
                receipt.output_hash = Some(signed.hash());
                w.receipt(&chain_of(&signed.grant().granter.scope), receipt)?;
                let signer = *w.keys.current().public().as_bytes();
                w.put_grant(GrantEntry::new(Arc::new(signed.clone()), false, Some(idx)), signer)?;
                Ok(signed)
            })
            .await?;
        Ok(stored)
    }

    /// What a grant would show, were it issued now.
    ///
    /// # Errors
    /// [`Error::Limit`], naming the member.
    pub async fn preview(self, _: &Owner<impl Permits<Admin>>, draft: GrantDraft) -> Result<Preview, Error> {
        let (_, grant) = self.grant_of(draft)?;
        let gateway = self.0.clone();
        blocking(move || Grants(&gateway).preview_of(&grant)).await
    }

    fn preview_of(self, grant: &Grant) -> Result<Preview, Error> {
        let own_agent = grant.grantee == self.0.principal;
        let (shown, report) = self.0.would_show(grant)?;
        let mut preview = Preview {
            selected: shown.items().len(),
            max_items: grant.max_items,
            kinds: BTreeMap::new(),
            items: Vec::new(),
            hidden: BTreeMap::new(),
            withheld: report.withheld,
            rules: report.rules.iter().map(|(rule, n)| (rule.as_str().to_owned(), *n)).collect(),
            warnings: Vec::new(),
        };
        for item in shown.items().iter().rev() {
            let Some(head) = self.0.heads.get(item.id()) else { continue };
            *preview.kinds.entry(head.kind.as_str().to_owned()).or_default() += 1;
            let visible = item.visible()?;
            let hidden = hidden_places(&Items(self.0).owner_item(&head)?, &visible);
            for place in &hidden {
                *preview.hidden.entry(place.clone()).or_default() += 1;
            }
            if preview.items.len() < PREVIEWED {
                preview.items.push(PreviewItem { visible, hidden });
            }
        }
        let turns = preview.kinds.contains_key(Kind::ConversationTurn.as_str());
        preview.warnings = warnings(grant, &report, preview.selected, own_agent, turns);
        Ok(preview)
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
    fn grant_of(self, draft: GrantDraft) -> Result<(u64, Grant), Error> {
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
        let gateway = self.0.clone();
        self.0
            .commit_as(owner, move |w| {
                w.tx.use_reserve();
                let mut taken_back = 0;
                for GrantEntry { record, key, .. } in found {
                    if REVOKED.contains(w.tx, &key)? {
                        continue;
                    }
                    taken_back += 1;
                    let grant = record.grant.grant();
                    let mut receipt = gateway.draft(Action::Revoke, gateway.principal.as_str());
                    receipt.rules = vec!["principal".to_owned()];
                    receipt.more = facts(grant, record.grant.hash(), &[]);
                    w.receipt(&chain_of(&grant.granter.scope), receipt)?;
                    REVOKED.put(w.tx, &key, &w.now)?;
                    w.ended.grants.push(key.id());
                    let (now, gateway) = (w.now, gateway.clone());
                    w.tx.on_commit(move || gateway.grant_book.revoke(key, now));
                }
                if taken_back == 0 {
                    return Err(Error::Conflict(Conflict::GrantRevoked));
                }
                Ok(())
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

    /// Where a grant stands, with everything that it was made from.
    pub(crate) fn state(self, record: &GrantRecord) -> GrantState {
        match live(record, &self.0.grant_book, self.0.keys().document(), self.0.clock.now()) {
            Ok(_) => GrantState::Active,
            Err(Refused::Inactive(state) | Refused::Ancestor(state)) => state,
            Err(_) => GrantState::Revoked,
        }
    }

    /// The state of a grant, for its grantee alone.
    ///
    /// # Errors
    /// [`Error::NotFound`] for an unknown grant and for a stranger: the same answer.
    pub async fn grant_state(self, id: GrantId, proof: &str) -> Result<GrantState, Error> {
        self.0.clock.believe()?;
        let address = format!("{}/{id}", self.0.url(path::GRANT));
        let unverified = UnverifiedProof::parse(proof).map_err(|_| Error::NotFound)?;
        let found = self.0.grant_book.by_id(id);
        // Nothing is fetched for a stranger: only for one who says what the grantee would say.
        let asked_at = self.0.clock.now();
        let theirs = |entry: &GrantEntry| {
            let grant = &entry.record.grant;
            unverified.plausible(&grant.grant().grantee, &address, grant.hash(), asked_at).is_ok()
        };
        let found: Vec<GrantEntry> = found.into_iter().filter(theirs).collect();
        let grantee = &found.first().ok_or(Error::NotFound)?.record.grant.grant().grantee;
        let grantee = self.0.document(grantee).await.map_err(|_| Error::NotFound)?;
        let now = self.0.clock.now();
        for GrantEntry { record, .. } in &found {
            if let Ok(proof) = unverified.verify(&grantee, &address, record.grant.hash(), now) {
                self.0.use_proof(proof.replay_key).await.map_err(|error| match error {
                    // No room for the proof: what is said of the grant must not depend on it.
                    full @ Error::Store(StoreError::Full { .. }) => full,
                    _ => Error::NotFound,
                })?;
                // What was found before the document was fetched may have been taken back since.
                let record = self.0.grant_book.by_hash(record.grant.hash()).ok_or(Error::NotFound)?;
                return Ok(self.state(&record));
            }
        }
        Err(Error::NotFound)
    }

    /// Exchanges a grant for a token (protocol section 5.1), accepting delegated grants on the way. Nothing of a
    /// delegated grant is looked at before the signature of its delegator, and nothing is stored before the proof of
    /// its grantee.
    ///
    /// # Errors
    /// [`Error::Grant`], [`Error::Delegation`], [`Error::Proof`], [`Error::Resolve`]; [`Error::Refused`] with a
    /// receipt when the grant is not in force.
    pub async fn exchange(self, request: ExchangeRequest, endpoint: &str) -> Result<ExchangeResponse, Error> {
        self.0.clock.believe()?;
        let proof = UnverifiedProof::parse(&request.proof)?;
        let hash = Hash::of_canonical(&request.grant)?;
        let (mut chain, unknown) = self.presented(request.grant, request.chain)?;
        let last = unknown.last().map(UnverifiedGrant::unverified);
        let grantee = match (last, chain.first()) {
            (Some(grant), _) => grant.grantee.clone(),
            (None, Some(entry)) => entry.record.grant.grant().grantee.clone(),
            (None, None) => return Err(unknown_grant()),
        };
        // What costs nothing comes before what a stranger can have fetched.
        proof.plausible(&grantee, endpoint, hash, self.0.clock.now())?;
        let mut delegated = Vec::with_capacity(unknown.len());
        for child in unknown {
            let parent = chain.first().ok_or_else(unknown_grant)?.record.grant.clone();
            let delegator = self.0.document(&parent.grant().grantee).await?;
            let signer = child.kid()?;
            let child = delegate(&parent, child, &delegator, &self.0.config.limits(), self.0.clock.now())?;
            let signer = *delegator.key(&signer).ok_or(Error::NotFound)?.public().as_bytes();
            let child = GrantEntry::new(Arc::new(child), true, None);
            delegated.push((child.clone(), signer));
            chain.insert(0, child);
        }
        let grantee = self.0.document(&grantee).await?;
        let grant = chain.first().ok_or_else(unknown_grant)?.record.grant.clone();
        let proof = proof.verify(&grantee, endpoint, grant.hash(), self.0.clock.now())?;
        let above = above(&chain);
        let first = above.first().copied().unwrap_or(hash);
        if !self.0.refusals.admit(Counted::Exchange, first, self.0.clock.now()) {
            return Err(Error::RateLimited);
        }
        self.0.use_proof(proof.replay_key).await?;
        let exchanged = self.exchange_once(chain.clone(), delegated, proof.jkt).await;
        let (response, accepted) = match exchanged {
            Err(Error::Judged(refused)) => {
                // Its signatures and its grantee's proof hold, whether it was accepted or not.
                let record = GrantRecord { grant, revoked_at: None };
                return Err(self.refuse(&record, &above, Action::Exchange, refused).await?);
            }
            exchanged => exchanged?,
        };
        metrics::counter!("oap_grants_delegated_total").increment(accepted);
        metrics::counter!("oap_tokens_issued_total").increment(1);
        Ok(response)
    }

    /// A grant and those that it was made from: what is known here, and what is not yet, in the order in which they
    /// were made. What is presented follows one from the other; nothing else of the unknown ones is checked.
    fn presented(
        self,
        grant: Value,
        above: Vec<Value>,
    ) -> Result<(Vec<GrantEntry>, Vec<UnverifiedGrant>), Error> {
        if above.len() >= MAX_CHAIN {
            return Err(Error::Member("chain", MemberError::TooMany { most: MAX_CHAIN - 1, of: "grants" }));
        }
        let (mut known, mut unknown, mut last) = (Vec::new(), Vec::new(), None);
        for document in above.into_iter().chain([grant]) {
            // The same for a grant that is known here: what has to be presented does not tell what is.
            if document.get("parent").and_then(Value::as_str) != last.as_deref() {
                return Err(Error::Member("chain", MemberError::Chain));
            }
            let hash = Hash::of_canonical(&document)?;
            last = Some(hash.to_string());
            let chain = self.0.grant_book.chain(hash);
            if !chain.is_empty() {
                known = chain;
                continue;
            }
            // A grant without parent that is not in the grant book was never issued here, whatever its signature says.
            if known.is_empty() {
                return Err(unknown_grant());
            }
            unknown.push(UnverifiedGrant::parse(document)?);
        }
        Ok((known, unknown))
    }

    /// Stores the delegated grants that are new, and makes the token, with one transaction in which the whole chain is
    /// judged again. How many were new comes along.
    async fn exchange_once(
        self,
        chain: Vec<GrantEntry>,
        delegated: Vec<(GrantEntry, [u8; 32])>,
        jkt: String,
    ) -> Result<(ExchangeResponse, u64), Error> {
        let gateway = self.0.clone();
        let stored = self
            .0
            .commit(move |w| {
                let (mut chain, mut accepted) = (chain, 0);
                for (child, signer) in delegated {
                    let Some(at) = chain.iter().position(|known| known.key == child.key) else { continue };
                    if let Some(place) = w.accept(child, signer, chain[at + 1..].to_vec())? {
                        chain[at].place = Some(place);
                        accepted += 1;
                    }
                }
                let grant = chain.first().ok_or_else(unknown_grant)?.record.grant.clone();
                let place = chain[0].place.filter(|_| grant.grant().status.is_none());
                let standing = w.standing(chain)?;
                let record = standing.by_hash(grant.hash()).ok_or(Error::Judged(Refused::UnknownGrant))?;
                let ancestors = live(&record, &standing, w.keys.document(), w.now).map_err(Error::Judged)?;
                let document = grant.grant();
                let mut receipt = gateway.draft(Action::Exchange, document.grantee.as_str());
                receipt.rules = vec!["grant.active".to_owned(), "grantee.proof".to_owned()];
                let ancestors: Vec<Hash> = ancestors.iter().map(|grant| grant.hash()).collect();
                receipt.more = facts(document, grant.hash(), &ancestors);
                let receipt = w.receipt(&chain_of(&document.granter.scope), receipt)?;
                let jkt = (!document.bearer).then_some(jkt);
                let key = w.keys.current();
                let (jwt, expires_in) =
                    token::mint(&grant, jkt, &gateway.origin, key, w.now, &*gateway.random)?;
                let uri = gateway.url(path::STATUS);
                let response = ExchangeResponse {
                    memory_grant_jwt: jwt,
                    expires_in,
                    token_type: if document.bearer { "Bearer" } else { "DPoP" }.to_owned(),
                    receipt_id: receipt.receipt_id.to_string(),
                    status: place.map(|idx| StatusRef { status_list: StatusIndex { idx, uri } }),
                };
                Ok((response, accepted))
            })
            .await?;
        Ok(stored)
    }

    /// Records that a valid credential was refused, counted under the first grant of its chain; the error to answer with.
    /// The grants above it are named as in every receipt under it, first one first.
    pub(crate) async fn refuse(
        self,
        record: &GrantRecord,
        above: &[Hash],
        action: Action,
        refused: Refused,
    ) -> Result<Error, Error> {
        let grant = record.grant.grant();
        let first = above.first().copied().unwrap_or(record.grant.hash());
        if !self.0.refusals.admit(Counted::Refusal, first, self.0.clock.now()) {
            return Ok(Error::RateLimited);
        }
        let mut receipt = self.0.draft(action, grant.grantee.as_str());
        receipt.outcome = Outcome::Block;
        receipt.rules = vec![rule(&refused).to_owned()];
        receipt.more = facts(grant, record.grant.hash(), above);
        let decision = receipt.decision;
        let chain = chain_of(&grant.granter.scope);
        let decided = Decided::refused(rule(&refused), grant, self.0.clock.now());
        self.0
            .commit(move |w| {
                w.decided(decision, &decided)?;
                w.receipt(&chain, receipt)?;
                Ok(())
            })
            .await?;
        metrics::counter!("oap_refusals_total", "rule" => rule(&refused)).increment(1);
        Ok(Error::Refused(refused, decision))
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

    /// Accepts a delegated grant whose signature and proof were checked: under grants that are in force here, and
    /// counted under each. Its place in the status list; `None` when it was accepted before.
    fn accept(
        &mut self,
        mut child: GrantEntry,
        signer: [u8; 32],
        above: Vec<GrantEntry>,
    ) -> Result<Option<u32>, Error> {
        let grant = child.record.grant.clone();
        if let Some(stored) = GRANTS.get(self.tx, &child.key)? {
            let written = grant.document().to_string();
            return if stored.document == written { Ok(None) } else { Err(DelegationError::Taken.into()) };
        }
        let parent = grant.grant().parent.ok_or_else(unknown_grant)?;
        let standing = self.standing(above)?;
        let record = standing.by_hash(parent).ok_or(Error::Judged(Refused::UnknownGrant))?;
        // What is in force above is said of the grant above, as at the exchange.
        let judged =
            live(&record, &standing, self.keys.document(), self.now).map_err(|refused| match refused {
                Refused::Inactive(state) => Error::Judged(Refused::Ancestor(state)),
                refused => Error::Judged(refused),
            })?;
        for counted in &standing.chain {
            let mut usage = self.usage(counted.key)?;
            usage.below += 1;
            if usage.below > MAX_BELOW {
                return Err(DelegationError::TooMany.into());
            }
            USAGE.put(self.tx, &counted.key, &usage)?;
        }
        let gateway = self.gateway.clone();
        let delegator = record.grant.grant().grantee.as_str();
        let mut receipt = gateway.draft(Action::Delegate, delegator);
        receipt.rules = vec!["grant.delegable".to_owned(), "grant.attenuated".to_owned()];
        let ancestors: Vec<Hash> = judged.iter().map(|grant| grant.hash()).chain([parent]).collect();
        receipt.more = facts(grant.grant(), grant.hash(), &ancestors);
        self.receipt(&chain_of(&grant.grant().granter.scope), receipt)?;
        child.place = Some(self.free_place()?);
        let place = child.place;
        self.put_grant(child, signer)?;
        Ok(place)
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

/// The grant is none that the gateway issued, nor one that was made from such a one.
fn unknown_grant() -> Error {
    GrantError::Malformed("the grant is not known here".to_owned()).into()
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

/// `turns`: whether a turn of a conversation is selected.
fn warnings(grant: &Grant, report: &Report, selected: usize, own_agent: bool, turns: bool) -> Vec<String> {
    let mut warnings = Vec::new();
    let mut warn = |text: &str| warnings.push(text.to_owned());
    if selected == 0 && report.withheld == 0 {
        warn("No item is selected: check scope, kinds and labels.");
    }
    let asks_for = |outcome: Outcome| report.rules.keys().any(|rule| rule.outcome() == outcome);
    if report.withheld > 0 {
        warn("Some items are withheld by a gate: see the rules.");
    }
    if asks_for(Outcome::RequireConsent) || asks_for(Outcome::RequireAnonymization) {
        warn("A confidentiality context asks for your consent: `grant consent` once the grant is issued.");
    }
    let everything = grant.filter == Filter::default();
    if everything && !own_agent {
        warn("The filter selects everything in the scope.");
    }
    if grant.trust_level == TrustLevel::INNER_CIRCLE && !own_agent {
        warn("Trust level 4 shows whole items, as you see them yourself.");
    }
    if grant.bearer {
        warn("A bearer token can be used by whoever has it.");
    }
    if turns && grant.trust_level.get() >= 2 {
        warn("Conversation turns are included: what others said to you is shown too.");
    }
    warnings
}

/// The places of an item that a view of it does not have. Elements of arrays count as one place.
fn hidden_places(whole: &Value, visible: &Value) -> Vec<String> {
    let mut hidden = BTreeSet::new();
    walk(whole, Some(visible), &mut String::new(), &mut hidden);
    hidden.into_iter().collect()
}

fn walk(whole: &Value, visible: Option<&Value>, path: &mut String, hidden: &mut BTreeSet<String>) {
    match (whole, visible) {
        (Value::Object(members), visible) => {
            for (name, value) in members {
                let length = path.len();
                if !path.is_empty() {
                    path.push('.');
                }
                path.push_str(name);
                walk(value, visible.and_then(|v| v.get(name)), path, hidden);
                path.truncate(length);
            }
        }
        (Value::Array(elements), Some(Value::Array(shown))) if elements.len() == shown.len() => {
            let length = path.len();
            path.push_str("[]");
            for (element, shown) in elements.iter().zip(shown) {
                walk(element, Some(shown), path, hidden);
            }
            path.truncate(length);
        }
        (whole, Some(visible)) if whole == visible => {}
        _ => {
            hidden.insert(path.clone());
        }
    }
}

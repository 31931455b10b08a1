//! From grant to token (protocol section 5.1), and what a grantee is told of a grant.

use super::{above, facts, rule};
use crate::error::{Error, MemberError};
use crate::service::Grants;
use crate::service::gates::Decided;
use crate::service::letters::FRESH;
use crate::state::commits::{Writing, chain_of, until_it_holds};
use crate::state::grant_book::GrantEntry;
use crate::state::refusals::{Counted, Refusals};
use crate::state::schema::{GRANTS, USAGE};
use oap_grants::exchange::{ExchangeRequest, ExchangeResponse, MAX_CHAIN, UnverifiedProof};
use oap_grants::grant::{GrantError, StatusIndex, StatusRef, UnverifiedGrant};
use oap_grants::limits::MAX_BELOW;
use oap_grants::verify::{DelegationError, Refused, delegate, live};
use oap_grants::{GrantBook, GrantRecord, GrantState, token};
use oap_identity::{GrantId, Hash};
use oap_manifest::path;
use oap_memory::receipt::{Action, Outcome};
use oap_store::StoreError;
use serde_json::Value;
use std::sync::Arc;

impl Grants<'_> {
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
        self.0.grants_answer()?;
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
            let signer = child.kid()?;
            let delegator = self.0.document_with(&parent.grant().grantee, &signer, FRESH).await?;
            let child = delegate(&parent, child, &delegator, &self.0.config.limits(), self.0.clock.now())?;
            let signer = *delegator.key(&signer).ok_or(Error::NotFound)?.public().as_bytes();
            let child = GrantEntry::new(Arc::new(child), true, None);
            delegated.push((child.clone(), signer));
            chain.insert(0, child);
        }
        let grantee = self.0.document_with(&grantee, proof.kid(), FRESH).await?;
        let grant = chain.first().ok_or_else(unknown_grant)?.record.grant.clone();
        let proof = proof.verify(&grantee, endpoint, grant.hash(), self.0.clock.now())?;
        let above = above(&chain);
        let first = above.first().copied().unwrap_or(hash);
        let now = self.0.clock.now();
        if !self.0.refusals.admit(Counted::Exchange, first, now) {
            return Err(Error::RateLimited(Refusals::anew(now)));
        }
        self.0.use_proof(proof.replay_key).await?;
        let exchanged =
            until_it_holds(|| self.exchange_once(chain.clone(), delegated.clone(), proof.jkt.clone())).await;
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
        mut delegated: Vec<(GrantEntry, [u8; 32])>,
        jkt: String,
    ) -> Result<(ExchangeResponse, u64), Error> {
        let gateway = self.0.clone();
        // What another exchange has stored meanwhile is in the grant book by now, with its place.
        let stored = |entry: &GrantEntry| gateway.grant_book.entry(entry.record.grant.hash());
        let known = |entry: GrantEntry| stored(&entry).unwrap_or(entry);
        let chain: Vec<GrantEntry> = chain.into_iter().map(known).collect();
        delegated.retain(|(child, _)| stored(child).is_none());
        let stored = self
            .0
            .commit(move |w| {
                let (mut chain, mut accepted) = (chain, 0);
                for (child, signer) in delegated {
                    let Some(at) = chain.iter().position(|known| known.key == child.key) else { continue };
                    chain[at].place = Some(w.accept(child, signer, chain[at + 1..].to_vec())?);
                    accepted += 1;
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
        let now = self.0.clock.now();
        if !self.0.refusals.admit(Counted::Refusal, first, now) {
            return Ok(Error::RateLimited(Refusals::anew(now)));
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
}

impl Writing<'_, '_> {
    /// Accepts a delegated grant whose signature and proof were checked: under grants that are in force here, and
    /// counted under each. Its place in the status list.
    ///
    /// # Errors
    /// [`Error::Overtaken`] when it was accepted meanwhile; [`DelegationError::Taken`] when another one was, under its key.
    fn accept(
        &mut self,
        mut child: GrantEntry,
        signer: [u8; 32],
        above: Vec<GrantEntry>,
    ) -> Result<u32, Error> {
        let grant = child.record.grant.clone();
        if let Some(stored) = GRANTS.get(self.tx, &child.key)? {
            let written = grant.document().to_string();
            return Err(if stored.document == written {
                Error::Overtaken
            } else {
                DelegationError::Taken.into()
            });
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
        let place = self.free_place()?;
        child.place = Some(place);
        self.put_grant(child, signer)?;
        Ok(place)
    }
}

/// The grant is none that the gateway issued, nor one that was made from such a one.
fn unknown_grant() -> Error {
    GrantError::Unknown.into()
}

//! What this owner asks others for, and the grants that others gave (protocol section 13.3).

mod checking;

use crate::api::Document;
use crate::api::access::{
    AnswerNote, AskedInfo, AskedList, NewAsked, ReadingInfo, ReceivedInfo, ReceivedList,
};
use crate::api::document::Signed;
use crate::error::{Conflict, Error, MemberError};
use crate::service::{Wallet, acks};
use crate::state::commits::Writing;
use crate::state::outbox::{self, LetterState};
use crate::state::owner::Owner;
use crate::state::owner::mark::{Admin, Permits};
use crate::state::schema::{ASKED, LETTERS, OWED, WALLET, WALLET_ABOVE};
use crate::state::wallet::{self as rows, StoredAsked, StoredReceived};
use oap_federation::ask::{AccessRequest, AccessStatus, AccessWithdrawal, AskState};
use oap_federation::letter::LetterError;
use oap_federation::reply::{LetterResult, Reason, Reply};
use oap_federation::{Content, Outcome};
use oap_grants::evidence::TermsError;
use oap_grants::exchange::MAX_CHAIN;
use oap_grants::grant::{StatusIndex, UnverifiedGrant};
use oap_grants::{Grant, GrantState, SignedGrant, evidence};
use oap_identity::signed::UnverifiedSignature;
use oap_identity::{AskId, Did, DidDocument, Hash, json};
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

/// A granter tells that a request is over.
pub(crate) fn told(
    w: &mut Writing<'_, '_>,
    from: &Did,
    status: &AccessStatus,
) -> Result<LetterResult, Error> {
    let Some(mut asked) = ASKED.get(w.tx, &status.request)?.filter(|asked| asked.to == *from) else {
        return Ok(LetterResult::refused(Reason::NotAsked));
    };
    // A yes is a grant, and nothing else; and a request waits until it is over.
    let over = matches!(status.state, AskState::Declined | AskState::Expired);
    if over && asked.state == AskState::Pending {
        asked.word.clone_from(&status.word);
        asked.heard_at = Some(w.now);
        rows::end_asked(w, status.request, asked, status.state)?;
    }
    Ok(LetterResult::taken())
}

/// A granter hands over a grant: it is taken where this owner asked that granter for it, once for a request.
pub(crate) fn delivered(
    w: &mut Writing<'_, '_>,
    from: &Did,
    request: Option<AskId>,
    grant: Option<&SignedGrant>,
) -> Result<LetterResult, Error> {
    let Some(grant) = grant.filter(|grant| grant.grant().grantee == w.gateway.principal) else {
        return Ok(LetterResult::refused(Reason::GrantNotSound));
    };
    let asked = match request {
        Some(request) => {
            ASKED.get(w.tx, &request)?.filter(|asked| asked.to == *from).map(|asked| (request, asked))
        }
        None => None,
    };
    if WALLET.contains(w.tx, &grant.hash())? {
        // The same was asked for twice, and one grant answers both.
        if let Some((id, asked)) = asked.filter(|(_, asked)| asked.state == AskState::Pending) {
            approved(w, id, asked, grant)?;
        }
        return Ok(LetterResult::taken());
    }
    let (id, asked) = match asked {
        Some((id, asked)) if asked.state == AskState::Pending => (id, asked),
        // It was taken when it came first. That it is in the wallet no more is the owner's doing.
        Some((_, asked)) if asked.grant == Some(grant.hash()) => return Ok(LetterResult::taken()),
        _ => return Ok(LetterResult::refused(Reason::NotAsked)),
    };
    match approved(w, id, asked, grant) {
        Err(Error::Conflict(Conflict::WalletFull)) => {
            Ok(LetterResult { outcome: Outcome::Later, ..LetterResult::refused(Reason::Full) })
        }
        taken => taken.map(|()| LetterResult::taken()),
    }
}

fn approved(
    w: &mut Writing<'_, '_>,
    id: AskId,
    mut asked: StoredAsked,
    grant: &SignedGrant,
) -> Result<(), Error> {
    rows::put(w, grant, Some(id))?;
    (asked.grant, asked.heard_at) = (Some(grant.hash()), Some(w.now));
    rows::end_asked(w, id, asked, AskState::Approved)
}

/// A granter's gateway answered a request of this owner's.
pub(crate) fn answered(
    w: &mut Writing<'_, '_>,
    from: &Did,
    id: AskId,
    reply: &Reply,
    grant: Option<&SignedGrant>,
) -> Result<(), Error> {
    let Some(mut asked) = ASKED.get(w.tx, &id)?.filter(|asked| asked.to == *from) else { return Ok(()) };
    asked.heard_at = Some(w.now);
    let state = match (&reply.access, reply.outcome) {
        (Some(access), Outcome::Taken) => access.state,
        (None, Outcome::Taken) | (_, Outcome::Later) => AskState::Pending,
        (_, Outcome::Refused) if reply.reason == Some(Reason::Over) => AskState::Expired,
        (_, Outcome::Refused) => AskState::Declined,
    };
    // Only the first answer: a grant that was taken and removed since does not come back.
    let waits = asked.state == AskState::Pending;
    let grant = grant.filter(|grant| waits && grant.grant().grantee == w.gateway.principal);
    if let (AskState::Approved, Some(grant)) = (state, grant) {
        return match approved(w, id, asked.clone(), grant) {
            // It is asked for again once there is room.
            Err(Error::Conflict(Conflict::WalletFull)) => Ok(ASKED.put(w.tx, &id, &asked)?),
            taken => taken,
        };
    }
    if asked.state == AskState::Pending && matches!(state, AskState::Declined | AskState::Expired) {
        asked.word = reply.access.as_ref().and_then(|access| access.word.clone());
        return rows::end_asked(w, id, asked, state);
    }
    Ok(ASKED.put(w.tx, &id, &asked)?)
}

/// Where the state of a grant is published: at its own place, or, for one that was passed on, at that of the first grant above it.
fn place_of(grant: &Grant, above: &[Value]) -> Result<Option<StatusIndex>, Error> {
    let first = match above.first() {
        Some(first) => UnverifiedGrant::parse(first.clone())?.unverified().status.clone(),
        None => grant.status.clone(),
    };
    Ok(first.map(|status| status.status_list))
}

/// A grant that was verified, as it is handed on.
pub(in crate::service) fn signed(document: Value) -> Result<Document<Signed<Grant>>, Error> {
    let grant = UnverifiedGrant::parse(document.clone())?.unverified().clone();
    Ok(Document::of(document, grant.into()))
}

impl Wallet<'_> {
    /// Asks somebody for access: the letter waits in the outbox when this returns.
    ///
    /// # Errors
    /// [`Error::Member`], [`Error::Letter`]; [`Conflict::ManyAsked`], [`Conflict::OutboxFull`].
    pub async fn request(
        self,
        owner: &Owner<impl Permits<Admin>>,
        new: NewAsked,
    ) -> Result<AskedInfo, Error> {
        let NewAsked { from: to, ask } = new;
        to.check_method().map_err(|e| Error::Member("from", MemberError::Method(e)))?;
        if to == self.0.principal {
            return Err(LetterError::Own.into());
        }
        if ask.expires_at <= self.0.clock.now() {
            return Err(Error::Member("ask.expires_at", MemberError::Passed));
        }
        let asked = move |w: &mut Writing<'_, '_>| {
            rows::make_room(w)?;
            let id = AskId::new(w.now, &*w.gateway.random);
            let text = json::canonical_text(&ask)?;
            let request = Box::new(AccessRequest { request: id, ask });
            let letter = outbox::put(w, &to, &Content::AccessRequest(request))?;
            let asked = StoredAsked {
                to,
                ask: text,
                made_at: w.now,
                state: AskState::Pending,
                over_at: None,
                word: None,
                grant: None,
                letter,
                heard_at: None,
            };
            ASKED.put(w.tx, &id, &asked)?;
            Ok(id)
        };
        let id = self.0.commit_as(owner, asked).await?;
        self.asked(owner, id)
    }

    /// What this owner asked others for, newest first.
    ///
    /// # Errors
    /// [`Error::Store`], [`Error::Corrupt`].
    pub fn all_asked(self, _: &Owner<impl Permits<Admin>>) -> Result<AskedList, Error> {
        let mut asked = Vec::new();
        for row in ASKED.scan(&self.0.store) {
            let (id, stored) = row?;
            asked.push(self.asked_info(id, stored)?);
        }
        asked.reverse();
        Ok(AskedList { asked })
    }

    /// One of them.
    ///
    /// # Errors
    /// [`Error::NotFound`].
    pub fn asked(self, _: &Owner<impl Permits<Admin>>, id: AskId) -> Result<AskedInfo, Error> {
        let stored = ASKED.get(&self.0.store, &id)?.ok_or(Error::NotFound)?;
        self.asked_info(id, stored)
    }

    fn asked_info(self, id: AskId, stored: StoredAsked) -> Result<AskedInfo, Error> {
        let letter = LETTERS.get(&self.0.store, &stored.letter)?;
        Ok(AskedInfo {
            request: id,
            to: stored.to.clone(),
            ask: stored.ask()?,
            made_at: stored.made_at,
            state: stored.stands(self.0.clock.now())?,
            over_at: stored.over_at,
            heard_at: stored.heard_at,
            word: stored.word,
            grant: stored.grant,
            letter: letter.as_ref().map(|letter| letter.state),
            failure: letter.and_then(|letter| letter.failure),
        })
    }

    /// Asks the granter's gateway once more where a request stands. It answers with the grant where one was signed for it.
    ///
    /// # Errors
    /// [`Error::NotFound`]; [`Conflict::AskOver`], [`Conflict::OutboxFull`].
    pub async fn ask_again(self, owner: &Owner<impl Permits<Admin>>, id: AskId) -> Result<AskedInfo, Error> {
        let again = move |w: &mut Writing<'_, '_>| {
            let mut asked = ASKED.get(w.tx, &id)?.ok_or(Error::NotFound)?;
            if asked.state != AskState::Pending {
                return Err(Error::Conflict(Conflict::AskOver));
            }
            // One that still waits is sent anyway.
            if outbox::waiting(w, asked.letter)?.is_none() {
                let request = Box::new(AccessRequest { request: id, ask: asked.ask()? });
                asked.letter = outbox::put(w, &asked.to, &Content::AccessRequest(request))?;
                ASKED.put(w.tx, &id, &asked)?;
            }
            Ok(())
        };
        self.0.commit_as(owner, again).await?;
        self.asked(owner, id)
    }

    /// Takes a request back. Its granter is told; a grant that is on its way is not taken.
    ///
    /// # Errors
    /// [`Error::NotFound`]; [`Conflict::AskOver`], [`Conflict::OutboxFull`].
    pub async fn withdraw(self, owner: &Owner<impl Permits<Admin>>, id: AskId) -> Result<AskedInfo, Error> {
        let withdrawn = move |w: &mut Writing<'_, '_>| {
            let asked = ASKED.get(w.tx, &id)?.ok_or(Error::NotFound)?;
            if asked.state != AskState::Pending {
                return Err(Error::Conflict(Conflict::AskOver));
            }
            // It may be under way, so its receiver is told in any case, after it.
            if let Some(letter) = outbox::waiting(w, asked.letter)? {
                outbox::end(w, asked.letter, letter, LetterState::GivenUp)?;
            }
            outbox::put(w, &asked.to, &Content::AccessWithdrawal(AccessWithdrawal { request: id }))?;
            rows::end_asked(w, id, asked, AskState::Withdrawn)
        };
        self.0.commit_as(owner, withdrawn).await?;
        self.asked(owner, id)
    }

    /// The grants of others, newest first.
    ///
    /// # Errors
    /// [`Error::Store`], [`Error::Corrupt`].
    pub fn received(self, _: &Owner<impl Permits<Admin>>) -> Result<ReceivedList, Error> {
        let mut received = Vec::new();
        for row in WALLET.scan(&self.0.store) {
            let (hash, stored) = row?;
            received.push(self.received_info(hash, &stored)?);
        }
        received.sort_by_key(|info| std::cmp::Reverse(info.received_at));
        Ok(ReceivedList { received })
    }

    /// One of them.
    ///
    /// # Errors
    /// [`Error::NotFound`].
    pub fn show(self, _: &Owner<impl Permits<Admin>>, hash: Hash) -> Result<ReceivedInfo, Error> {
        let stored = WALLET.get(&self.0.store, &hash)?.ok_or(Error::NotFound)?;
        self.received_info(hash, &stored)
    }

    fn received_info(self, hash: Hash, stored: &StoredReceived) -> Result<ReceivedInfo, Error> {
        let (document, grant) = stored.document()?;
        let now = self.0.clock.now();
        let state = match stored.revoked_at {
            Some(_) => GrantState::Revoked,
            None if grant.expires_at <= now => GrantState::Expired,
            None if now < grant.begins() => GrantState::Draft,
            None => GrantState::Active,
        };
        let above = rows::above(&self.0.store, &hash)?;
        let place = place_of(&grant, &above)?.map(|place| place.uri);
        let reading = ReadingInfo {
            answers: stored.reading.answers,
            items: stored.reading.items,
            last_at: stored.reading.last_at,
        };
        Ok(ReceivedInfo {
            hash,
            granter: stored.granter.clone(),
            place,
            state,
            revoked_at: stored.revoked_at,
            received_at: stored.received_at,
            request: stored.request,
            checked_at: stored.checked_at,
            reading,
            above: above.into_iter().map(signed).collect::<Result<_, _>>()?,
            grant: Document::of(document, grant.into()),
        })
    }

    /// Takes a grant that was handed over as a file, with those that it was made from, first one first. It is verified whole, as one
    /// that comes in a letter.
    ///
    /// # Errors
    /// [`Error::Grant`], [`Error::Resolve`], [`Error::Member`]; [`Conflict::WalletFull`].
    pub async fn add(
        self,
        owner: &Owner<impl Permits<Admin>>,
        document: Value,
        above: Vec<Value>,
    ) -> Result<ReceivedInfo, Error> {
        if above.len() >= MAX_CHAIN {
            return Err(Error::Member("chain", MemberError::TooMany { most: MAX_CHAIN - 1, of: "grants" }));
        }
        let malformed = || Error::Member("grant", MemberError::NotGrant);
        // Who signed each of them: the granter the first one, the grantee of each the next.
        let first = above.first().unwrap_or(&document);
        let mut signers = vec![oap_client::locate::granter(first).map_err(|_| malformed())?];
        for above in &above {
            let delegator = above.get("grantee").and_then(Value::as_str).and_then(|did| did.parse().ok());
            signers.push(delegator.ok_or_else(malformed)?);
        }
        let mut known = BTreeMap::new();
        for (signer, grant) in signers.into_iter().zip(above.iter().chain([&document])) {
            let signed_by = self.signer_of(grant, &signer).await?;
            known.insert(signer, signed_by);
        }
        let terms = evidence::grant(&document, &above, &known, self.0.clock.now());
        let terms = terms.map_err(|error| match error {
            TermsError::NoParent | TermsError::Parent => Error::Member("chain", MemberError::Chain),
            error => Error::Member("grant", MemberError::Terms(error)),
        })?;
        let grant = terms.grant;
        if grant.grant().grantee != self.0.principal {
            return Err(Error::Member("grant", MemberError::OtherGrantee));
        }
        let hash = grant.hash();
        let kept = move |w: &mut Writing<'_, '_>| {
            rows::put(w, &grant, None)?;
            rows::put_above(w, hash, &above)
        };
        self.0.commit_as(owner, kept).await?;
        self.show(owner, hash)
    }

    /// The document of who should have signed a grant, with the key that it names: that may be newer than what is remembered, and the owner is here to
    /// ask for it.
    async fn signer_of(self, grant: &Value, signer: &Did) -> Result<Arc<DidDocument>, Error> {
        match UnverifiedSignature::of(grant) {
            Ok(signature) => self.0.document_with(signer, signature.kid(), Duration::ZERO).await,
            Err(_) => self.0.document(signer).await,
        }
    }

    /// Removes a grant from the wallet. Its granter is not told, and what was read under it is read.
    ///
    /// # Errors
    /// [`Error::NotFound`].
    pub async fn remove(self, owner: &Owner<impl Permits<Admin>>, hash: Hash) -> Result<(), Error> {
        let removed = move |w: &mut Writing<'_, '_>| {
            if !WALLET.contains(w.tx, &hash)? {
                return Err(Error::NotFound);
            }
            WALLET.delete(w.tx, &hash);
            WALLET_ABOVE.delete(w.tx, &hash);
            OWED.delete(w.tx, &hash);
            Ok(())
        };
        self.0.commit_as(owner, removed).await
    }

    /// Notes that an answer under a grant came and held.
    ///
    /// # Errors
    /// [`Error::NotFound`]; [`Error::Member`] for what is no receipt of it; [`Error::Resolve`].
    pub async fn note_answer(
        self,
        owner: &Owner<impl Permits<Admin>>,
        hash: Hash,
        note: AnswerNote,
    ) -> Result<(), Error> {
        let AnswerNote { items, receipt } = note;
        let granter = WALLET.get(&self.0.store, &hash)?.ok_or(Error::NotFound)?.granter;
        let receipt = match receipt {
            Some(receipt) => {
                let granter = self.0.document(&granter).await?;
                let receipt = acks::of_answer(self.0, &receipt, &granter, hash);
                Some(receipt.ok_or(Error::Member("receipt", MemberError::NotAnswered))?)
            }
            None => None,
        };
        let noted = move |w: &mut Writing<'_, '_>| {
            let mut received = WALLET.get(w.tx, &hash)?.ok_or(Error::NotFound)?;
            received.reading.answers = received.reading.answers.saturating_add(1);
            received.reading.items = received.reading.items.saturating_add(u64::from(items));
            received.reading.last_at = Some(w.now);
            WALLET.put(w.tx, &hash, &received)?;
            match receipt.filter(|_| received.revoked_at.is_none()) {
                Some(receipt) => acks::got(w, hash, &receipt),
                None => Ok(()),
            }
        };
        self.0.commit_as(owner, noted).await
    }
}

//! Acknowledgements of answers (protocol section 8.1; RFC 0010 A.7.1, A.8): kept, taken, given, by themselves where the owner lets them.
//!
//! What this gateway countersigns is the receipt of an answer that it got and verified itself: [`got`] alone begins a chain of somebody else's receipt.

use crate::api::acks::{AckInfo, AckList, AckOfGrant, AckProof, AckQuery, AckSetting, AckSettings};
use crate::error::{Conflict, Error, MemberError};
use crate::service::notices::may_have_a_gateway;
use crate::service::{Acks, Audit};
use crate::state::acks::{self, StoredAck};
use crate::state::commits::Writing;
use crate::state::gateway::Gateway;
use crate::state::outbox::{self, LetterState};
use crate::state::owner::Owner;
use crate::state::owner::mark::{Admin, Permits};
use crate::state::schema::{ACKS, LETTERS, RECEIPT_PLACES, RECEIPTS, REVOKED, WALLET};
use oap_federation::Content;
use oap_federation::ack::{
    AUTOMATIC, AckError, Acknowledgement, Chain, Countersignature, Taken, VerifiedLink,
};
use oap_federation::content::ContentError;
use oap_federation::letter::LetterError;
use oap_federation::reply::{LetterResult, Reason};
use oap_identity::{Did, DidDocument, Hash, Timestamp, json};
use oap_memory::receipt::{self, Action, Outcome, Receipt};
use serde_json::Value;
use std::cmp::Reverse;
use std::sync::Arc;

/// Answers of a list whose caller does not say.
const USUAL: usize = 100;
/// Most answers of one list.
pub const MAX_LISTED: usize = 1_000;

/// The acknowledgement that a letter carries, checked beside the writer against its sender's document. `None` where it is not theirs, or of nothing
/// that this gateway gave.
pub(crate) fn sound(
    gateway: &Arc<Gateway>,
    content: &Content,
    sender: &DidDocument,
    now: Timestamp,
) -> Option<VerifiedLink> {
    let verified = match content {
        Content::Countersignature(signed) => {
            let receipt = Audit(gateway).receipt(signed.receipt).ok()?;
            signed.verify(&receipt, sender)
        }
        Content::Acknowledgement(acknowledgement) => acknowledgement.verify(sender, now),
        _ => return None,
    };
    verified.inspect_err(|error| tracing::info!(%error, "an acknowledgement does not hold")).ok()
}

/// The grant of a receipt of this gateway's, where it is of an answer that was given: of a query that was not refused.
fn given(receipt: &Receipt) -> Option<Hash> {
    let decision = receipt.policy_decisions.first().filter(|decision| decision.outcome == Outcome::Allow)?;
    let is_answer =
        receipt.action_id.as_deref() == Some(Action::Query.as_str()) && receipt.output_hash.is_some();
    let grant = decision.more.get("grant_hash").and_then(Value::as_str)?;
    grant.parse().ok().filter(|_| is_answer)
}

/// Whether a grant of this owner's, and each that it was made from, is here and was not revoked.
fn stands(w: &Writing<'_, '_>, grant: Hash) -> Result<bool, Error> {
    let chain = w.gateway.grant_book.chain(grant);
    for entry in &chain {
        if REVOKED.contains(w.tx, &entry.key)? {
            return Ok(false);
        }
    }
    Ok(!chain.is_empty())
}

/// A grantee countersigned the receipt of an answer of this gateway's.
pub(crate) fn countersigned(
    w: &mut Writing<'_, '_>,
    from: &Did,
    signed: &Countersignature,
    link: Option<&VerifiedLink>,
) -> Result<LetterResult, Error> {
    let unknown = || Ok(LetterResult::refused(Reason::Unknown));
    let (Some(link), Some(place)) = (link, RECEIPT_PLACES.get(w.tx, &signed.receipt)?) else {
        return unknown();
    };
    let Some(bytes) = RECEIPTS.get(w.tx, &place)? else { return unknown() };
    let mut receipt: Receipt = serde_json::from_slice(&bytes)?;
    let Some(grant) = given(&receipt).filter(|_| receipt.agent_did == from.as_str()) else {
        return unknown();
    };
    if !stands(w, grant)? {
        return Ok(LetterResult::refused(Reason::Over));
    }
    // Whoever countersigned by the other door did so with the same bytes, or with a key of another time.
    let known = receipt.signatures.iter().find(|known| known.by.did() == from).cloned();
    if known.as_ref().is_some_and(|known| *known != signed.signature) {
        return Ok(LetterResult::refused(Reason::NotNext));
    }
    let mut stored = match ACKS.get(w.tx, &signed.receipt_hash)? {
        Some(stored) => stored,
        None => {
            let (granter, grantee) = (w.gateway.principal.clone(), from.clone());
            let chain = Chain::new(signed.receipt, signed.receipt_hash, granter, grantee);
            let (peer, since) = (from.clone(), w.now);
            let stored = StoredAck { chain, peer, grant, since, receipt: None, letter: None };
            if !w.keep_ack(&stored)? {
                return Ok(LetterResult::refused(Reason::Full));
            }
            stored
        }
    };
    let taken = take(w, &mut stored, link)?;
    if taken == Taken::Next && known.is_none() {
        receipt.signatures.push(signed.signature.clone());
        RECEIPTS.put(w.tx, &place, &json::canonical(&receipt)?)?;
    }
    Ok(said(taken))
}

/// Somebody signed over what this gateway signed last.
pub(crate) fn acknowledged(
    w: &mut Writing<'_, '_>,
    from: &Did,
    link: Option<&VerifiedLink>,
) -> Result<LetterResult, Error> {
    let Some(link) = link else { return Ok(LetterResult::refused(Reason::Unknown)) };
    let stored = ACKS.get(w.tx, &link.receipt_hash())?.filter(|stored| stored.peer == *from);
    let Some(mut stored) = stored else { return Ok(LetterResult::refused(Reason::Unknown)) };
    if !holds(w, &stored)? {
        return Ok(LetterResult::refused(Reason::Over));
    }
    Ok(said(take(w, &mut stored, link)?))
}

/// Whether the grant of an answer still holds, as far as is known here.
fn holds(w: &Writing<'_, '_>, stored: &StoredAck) -> Result<bool, Error> {
    if stored.chain.granter == w.gateway.principal {
        return stands(w, stored.grant);
    }
    Ok(WALLET.get(w.tx, &stored.grant)?.is_some_and(|received| received.revoked_at.is_none()))
}

fn said(taken: Taken) -> LetterResult {
    match taken {
        Taken::Next | Taken::Before => LetterResult::taken(),
        Taken::DoesNotFollow => LetterResult::refused(Reason::NotNext),
    }
}

/// Takes a link, and goes on by itself where the owner lets it.
fn take(w: &mut Writing<'_, '_>, stored: &mut StoredAck, link: &VerifiedLink) -> Result<Taken, Error> {
    let taken = stored.chain.take(link, w.now);
    if taken == Taken::Next {
        ACKS.put(w.tx, &stored.chain.receipt_hash, stored)?;
        by_itself(w, stored)?;
    }
    Ok(taken)
}

/// Signs the next link, where it is this owner's to give, few enough stand, the owner lets the gateway do so, and there is room for the letter.
fn by_itself(w: &mut Writing<'_, '_>, stored: &mut StoredAck) -> Result<(), Error> {
    let is_near = stored.chain.links().len() < AUTOMATIC && stored.chain.is_turn_of(&w.gateway.principal);
    let goes = is_near
        && acks::is_automatic(w.tx, Some(stored.grant))?
        && may_have_a_gateway(&stored.peer)
        && outbox::has_room(w, &stored.peer)?;
    if goes { sign(w, stored) } else { Ok(()) }
}

/// Signs the next link and puts the letter that carries it into the outbox: one transaction, so that each is signed and sent once.
fn sign(w: &mut Writing<'_, '_>, stored: &mut StoredAck) -> Result<(), Error> {
    let keys = w.keys.clone();
    let content = match (stored.chain.links().is_empty(), &stored.receipt) {
        (true, Some(receipt)) => {
            let receipt: Receipt = json::parse_as(receipt.as_bytes())?;
            let signed = stored.chain.countersign(&receipt, keys.current(), w.now).map_err(refused)?;
            Content::Countersignature(Box::new(signed))
        }
        _ => Content::Acknowledgement(stored.chain.sign_next(keys.current(), w.now).map_err(refused)?),
    };
    stored.letter = Some(outbox::put(w, &stored.peer, &content)?);
    Ok(ACKS.put(w.tx, &stored.chain.receipt_hash, stored)?)
}

fn refused(error: AckError) -> Error {
    LetterError::from(ContentError::from(error)).into()
}

/// Sends the last link once more, where it is this owner's and no letter with it waits or arrived. Whoever has it already takes it as the same.
fn send_again(w: &mut Writing<'_, '_>, stored: &mut StoredAck) -> Result<(), Error> {
    let number = stored.chain.links().len();
    let is_own = *stored.chain.whose(number) == w.gateway.principal;
    let Some(last) = stored.chain.links().last().filter(|_| is_own) else {
        return Err(Error::Conflict(Conflict::NotYourTurn));
    };
    let letter = match stored.letter {
        Some(letter) => LETTERS.get(w.tx, &letter)?,
        None => None,
    };
    if letter.is_some_and(|letter| matches!(letter.state, LetterState::Waiting | LetterState::Delivered)) {
        return Err(Error::Conflict(Conflict::NotYourTurn));
    }
    let content = if number == 1 {
        let signature = json::parse_as(last.document.as_bytes())?;
        let (receipt, receipt_hash) = (stored.chain.receipt, stored.chain.receipt_hash);
        Content::Countersignature(Box::new(Countersignature { receipt, receipt_hash, signature }))
    } else {
        Content::Acknowledgement(Acknowledgement { acknowledgement: json::parse(last.document.as_bytes())? })
    };
    stored.letter = Some(outbox::put(w, &stored.peer, &content)?);
    Ok(ACKS.put(w.tx, &stored.chain.receipt_hash, stored)?)
}

/// The receipt of an answer under a grant in the wallet that another program of the owner's got, where it holds: signed by the granter, made out to this
/// principal, of a query under that grant.
pub(crate) fn of_answer(
    gateway: &Gateway,
    document: &Value,
    granter: &DidDocument,
    grant: Hash,
) -> Option<Receipt> {
    let verified = receipt::verify(document, granter).ok()?.as_of(gateway.clock.now()).ok()?;
    let receipt = verified.receipt;
    let is_ours = receipt.agent_did == gateway.principal.as_str() && receipt.principal_did == *granter.id();
    (is_ours && given(&receipt) == Some(grant)).then_some(receipt)
}

/// An answer of somebody else's that this gateway got, and whose receipt it verified: kept, so that it can be countersigned, and countersigned where the
/// owner lets the gateway do so. The grant is in the wallet and holds, as the transaction read.
///
/// # Errors
/// [`Error::Store`].
pub(crate) fn got(w: &mut Writing<'_, '_>, grant: Hash, receipt: &Receipt) -> Result<(), Error> {
    let hash = receipt.hash()?;
    if ACKS.contains(w.tx, &hash)? {
        return Ok(());
    }
    let (granter, grantee) = (receipt.principal_did.clone(), w.gateway.principal.clone());
    let mut stored = StoredAck {
        chain: Chain::new(receipt.receipt_id, hash, granter.clone(), grantee),
        peer: granter,
        grant,
        since: w.now,
        receipt: Some(json::canonical_text(receipt)?),
        letter: None,
    };
    if w.keep_ack(&stored)? { by_itself(w, &mut stored) } else { Ok(()) }
}

impl Acks<'_> {
    /// Answers that were acknowledged or can be, newest first.
    ///
    /// # Errors
    /// [`Error::Member`], [`Error::Store`], [`Error::Corrupt`].
    pub fn list(self, owner: &Owner<impl Permits<Admin>>, query: &AckQuery) -> Result<AckList, Error> {
        let limit = query.limit.unwrap_or(USUAL);
        if !(1..=MAX_LISTED).contains(&limit) {
            return Err(Error::Member("limit", MemberError::Number { most: MAX_LISTED, of: "answers" }));
        }
        let mut answers = Vec::new();
        for row in ACKS.scan(&self.0.store) {
            answers.push(self.info(&row?.1)?);
        }
        answers.sort_by_key(|info| (Reverse(info.since), info.receipt_hash));
        answers.truncate(limit);
        Ok(AckList { settings: self.settings(owner)?, answers })
    }

    /// What the owner said of acknowledging by itself.
    fn settings(self, _: &Owner<impl Permits<Admin>>) -> Result<AckSettings, Error> {
        let said = acks::said(&self.0.store)?.into_iter();
        let grants = said.map(|(grant, automatic)| AckOfGrant { grant, automatic }).collect();
        Ok(AckSettings { automatic: acks::is_automatic(&self.0.store, None)?, grants })
    }

    /// Lets this gateway acknowledge by itself, or not any more: under one grant, given or received, or under all that nothing is said of. What came before is
    /// acknowledged where the owner asks for it.
    ///
    /// # Errors
    /// [`Error::NotFound`] for a grant that is neither given nor received here.
    pub async fn set(
        self,
        owner: &Owner<impl Permits<Admin>>,
        new: AckSetting,
    ) -> Result<AckSettings, Error> {
        let set = move |w: &mut Writing<'_, '_>| {
            if let Some(grant) = new.grant {
                let is_given = !w.gateway.grant_book.chain(grant).is_empty();
                if !is_given && !WALLET.contains(w.tx, &grant)? {
                    return Err(Error::NotFound);
                }
            }
            w.set_ack(new.grant, new.automatic)
        };
        self.0.commit_as(owner, set).await?;
        self.settings(owner)
    }

    /// What was acknowledged of an answer, with everything that was signed.
    ///
    /// # Errors
    /// [`Error::NotFound`].
    pub fn show(self, _: &Owner<impl Permits<Admin>>, hash: Hash) -> Result<AckProof, Error> {
        let stored = ACKS.get(&self.0.store, &hash)?.ok_or(Error::NotFound)?;
        let receipt = match &stored.receipt {
            Some(receipt) => json::parse(receipt.as_bytes())?,
            None => serde_json::to_value(Audit(self.0).receipt(stored.chain.receipt)?)?,
        };
        let signed = stored.chain.links().iter().map(|link| json::parse(link.document.as_bytes()));
        let signed = signed.collect::<Result<_, _>>()?;
        Ok(AckProof { answer: self.info(&stored)?, receipt, signed })
    }

    /// Signs the next acknowledgement of an answer, and sends it; the last one once more, where it was given up or refused.
    ///
    /// # Errors
    /// [`Error::NotFound`]; [`Conflict::NotYourTurn`], [`Conflict::AckOver`], [`Conflict::OutboxFull`].
    pub async fn give(self, owner: &Owner<impl Permits<Admin>>, hash: Hash) -> Result<AckProof, Error> {
        let give = move |w: &mut Writing<'_, '_>| {
            let mut stored = ACKS.get(w.tx, &hash)?.ok_or(Error::NotFound)?;
            if !holds(w, &stored)? {
                return Err(Error::Conflict(Conflict::AckOver));
            }
            if stored.chain.is_turn_of(&w.gateway.principal) {
                sign(w, &mut stored)
            } else {
                send_again(w, &mut stored)
            }
        };
        self.0.commit_as(owner, give).await?;
        self.show(owner, hash)
    }

    fn info(self, stored: &StoredAck) -> Result<AckInfo, Error> {
        let me = &self.0.principal;
        let letter = match stored.letter {
            Some(letter) => LETTERS.get(&self.0.store, &letter)?.map(|letter| letter.state),
            None => None,
        };
        let chain = &stored.chain;
        Ok(AckInfo {
            receipt_hash: chain.receipt_hash,
            receipt_id: chain.receipt,
            granter: chain.granter.clone(),
            grantee: chain.grantee.clone(),
            grant: stored.grant,
            since: stored.since,
            acknowledgements: chain.links().len(),
            order: chain.order(me),
            yours: chain.is_turn_of(me),
            letter,
        })
    }
}

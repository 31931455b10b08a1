//! What other gateways push is taken (protocol section 17.3): its head is proved before its body is read, its answer as one that was asked
//! for. Bodies are not kept: this gateway keeps nothing of what it is shown but numbers, and says that there is something new.

use crate::error::Error;
use crate::service::letters::FRESH;
use crate::service::{Subscriptions, acks};
use crate::state::commits::Writing;
use crate::state::gateway::blocking;
use crate::state::keyring::Keyring;
use crate::state::lies::{self, AnswerEvidence as Seen, PeerIncident as Told};
use crate::state::listening::{self, StoredListening};
use crate::state::refusals::{Counted, Refusals};
use crate::state::replay::REMEMBERED;
use crate::state::schema::{LISTENING, PROOFS, WALLET};
use crate::state::wallet::{self, StoredReceived};
use axum::body::Bytes;
use oap_client::ClientError;
use oap_client::grantee::{CheckedAnswer, documents_of, terms_of};
use oap_federation::push::{Asked, Push, PushError, PushReply, REPLY_TAG, Taken, listing};
use oap_federation::verdict::Lie;
use oap_grants::Replay;
use oap_grants::grant::Operation;
use oap_identity::http_signature::{Covered, SignedHeaders, UnverifiedMessage, VerifiedMessage, sign};
use oap_identity::{DidDocument, Hash, ItemId, SubscriptionId, Timestamp, json};
use oap_memory::receipt::Receipt;
use std::collections::BTreeMap;
use std::sync::Arc;

/// A push whose head its granter signed, now, and for the first time; its body is not read.
pub(crate) struct Proved {
    id: SubscriptionId,
    listening: StoredListening,
    granter: Arc<DidDocument>,
    message: VerifiedMessage,
    /// As its signature covers it.
    target: String,
}

/// A push whose answer was proved, before it has its effect.
struct Believed {
    push: Push,
    /// The hashes of the chains of its items.
    shown: BTreeMap<ItemId, Hash>,
    /// The receipt of its answer.
    receipt: Receipt,
}

/// Whether pushes under a grant of the wallet are taken at a time.
pub(super) fn is_live(received: &StoredReceived, now: Timestamp) -> Result<bool, Error> {
    if received.revoked_at.is_some() {
        return Ok(false);
    }
    let (_, grant) = received.document()?;
    let allows = |operation| grant.operations.contains(&operation);
    let allowed = allows(Operation::Subscribe) && allows(Operation::Query);
    Ok(allowed && grant.begins() <= now && now < grant.expires_at)
}

impl Subscriptions<'_> {
    /// Proves who sends a push, by its head alone. Whoever names a subscription that is not here is answered as who signs it wrongly.
    ///
    /// # Errors
    /// [`Error::Pusher`]; [`Error::RateLimited`] for a granter who pushes more often than any subscription has ticks.
    pub(crate) async fn prove(
        self,
        id: SubscriptionId,
        unverified: UnverifiedMessage,
        target: &str,
    ) -> Result<Proved, Error> {
        self.0.clock.believe()?;
        let listening = LISTENING.get(&self.0.store, &id)?;
        let listening =
            listening.filter(|row| row.granter == *unverified.kid().did()).ok_or(Error::Pusher)?;
        // As of a letter's sender: the key may be newer than what is remembered.
        let granter = self.0.document_with(&listening.granter, unverified.kid(), FRESH).await;
        let granter = granter.map_err(|_| Error::Pusher)?;
        let (covered, now) = (Covered::Request { method: "POST", target }, self.0.clock.now());
        let message = unverified.verify(covered, &granter, now).map_err(|_| Error::Pusher)?;
        if !self.0.used_proofs.first_use(message.replay_key(), now) {
            return Err(Error::Pusher);
        }
        if !self.0.refusals.admit(Counted::Push, Hash::of(id.to_string().as_bytes()), now) {
            return Err(Error::RateLimited(Refusals::anew(now)));
        }
        Ok(Proved { id, listening, granter, message, target: target.to_owned() })
    }

    /// Takes a push whose sender is proved; the reply, and the headers that sign it. It has its effect once: a lower number than that of
    /// the last one has none.
    ///
    /// # Errors
    /// [`Error::Digest`], [`Error::Push`], [`Error::Unproved`].
    pub(crate) async fn take(self, proved: Proved, body: Bytes) -> Result<(Vec<u8>, SignedHeaders), Error> {
        proved.message.covers(&body)?;
        let evidence = Seen::of(&body);
        let push = blocking(move || Ok(Push::parse(&body)?)).await?;
        if push.subscription != proved.id {
            return Err(PushError::Other.into());
        }
        let believed = match self.judge(&proved, push).await? {
            Judged::Holds(believed) => believed,
            Judged::Ends => return self.write(&proved, None).await,
            Judged::Elsewhere => return Err(Error::Unproved),
            Judged::Fails(error) => {
                self.tell(&proved, &error, evidence).await?;
                return Err(Error::Unproved);
            }
        };
        self.write(&proved, Some(believed)).await
    }

    /// Checks the answer of a push as that of a query.
    async fn judge(self, proved: &Proved, push: Push) -> Result<Judged, Error> {
        let now = self.0.clock.now();
        let received = WALLET.get(&self.0.store, &proved.listening.grant)?;
        let Some(received) = received else { return Ok(Judged::Ends) };
        if proved.listening.ended_at.is_some() || !is_live(&received, now)? {
            return Ok(Judged::Ends);
        }
        let (document, _) = received.document()?;
        // The signature does not say to whom it was sent. What was answered to somebody else is no lie to this owner, whoever brings it.
        if push.answer["receipt"]["agent_did"] != self.0.principal.as_str() {
            return Ok(Judged::Elsewhere);
        }
        let above = wallet::above(&self.0.store, &proved.listening.grant)?;
        let terms = match terms_of(&document, &above, &proved.granter, &self.0.resolver, now).await {
            Ok(terms) => terms,
            // The granter's key that signed it is compromised: the grant is void.
            Err(ClientError::Terms(_)) => return Ok(Judged::Ends),
            // Who passed it on is out of reach: it may hold.
            Err(error) => return Ok(Judged::Fails(error)),
        };
        let documents = match documents_of(&push.answer, &proved.granter, &self.0.resolver).await {
            Ok(documents) => documents,
            Err(error) => return Ok(Judged::Fails(error)),
        };
        let grantee = self.0.principal.clone();
        blocking(move || {
            let Push { subscription, sequence, after, ref changes, more, .. } = push;
            let request_id = push.answer["request_id"].as_str().and_then(|id| id.parse().ok());
            let Some(request_id) = request_id else {
                return Ok(Judged::Fails(ClientError::Mismatch("it has no request_id")));
            };
            let query = listing(request_id);
            let asked = Asked { subscription, sequence, after, changes, more, query: &query }.hash()?;
            let checked = CheckedAnswer::of(push.answer.clone(), &documents, &grantee);
            let receipt = match checked.and_then(|checked| checked.of_input(asked, &terms, now)) {
                Ok(checked) => checked.verified.receipt,
                Err(error) => return Ok(Judged::Fails(error)),
            };
            let mut shown = BTreeMap::new();
            for item in push.answer["items"].as_array().map(Vec::as_slice).unwrap_or_default() {
                let id: Option<ItemId> = item["item_id"].as_str().and_then(|id| id.parse().ok());
                if let Some(id) = id {
                    shown.insert(id, Hash::of_canonical(&item["integrity"]["chain"])?);
                }
            }
            Ok(Judged::Holds(Box::new(Believed { push, shown, receipt })))
        })
        .await
    }

    /// Writes down that a granter signed what does not hold.
    async fn tell(self, proved: &Proved, error: &ClientError, evidence: Option<Seen>) -> Result<(), Error> {
        let (lie, check) = match error {
            ClientError::Evidence(error) => (Lie::Proof, Some(error.id().to_owned())),
            ClientError::Terms(error) => (Lie::Terms, Some(error.id().to_owned())),
            ClientError::Mismatch(_) => (Lie::OtherAnswer, None),
            // A house that an item came through is out of reach: nobody's lie.
            _ => return Ok(()),
        };
        let told = Told {
            peer: proved.listening.granter.clone(),
            grant: proved.listening.grant,
            lie,
            check,
            says: error.to_string(),
            answer: evidence,
        };
        self.0.commit(move |w| lies::note(w, vec![told])).await
    }

    /// One transaction: the push has its effect, or had it before, or has none; the signed reply. Without a push the subscription is over.
    async fn write(
        self,
        proved: &Proved,
        believed: Option<Box<Believed>>,
    ) -> Result<(Vec<u8>, SignedHeaders), Error> {
        let (id, replay) = (proved.id, proved.message.replay_key());
        let written = move |w: &mut Writing<'_, '_>| {
            PROOFS.put(w.tx, &replay, &w.now.plus(REMEMBERED))?;
            let (outcome, sequence) = match believed {
                Some(believed) => effect(w, id, &believed)?,
                None => (Taken::Over, listening::end_with_grant(w, id)?.sequence),
            };
            Ok((PushReply { subscription: id, sequence, outcome }, w.keys.clone()))
        };
        let (reply, keys): (PushReply, Arc<Keyring>) = self.0.commit(written).await?;
        metrics::counter!("oap_pushes_taken_total", "outcome" => reply.outcome.as_str()).increment(1);
        let body = json::canonical(&reply)?;
        let covered = Covered::Answer { status: 200, method: "POST", target: &proved.target };
        let nonce = proved.message.nonce();
        let headers = sign(covered, &body, nonce, REPLY_TAG, keys.current(), self.0.clock.now());
        Ok((body, headers))
    }
}

/// What checking a push came to.
enum Judged {
    Holds(Box<Believed>),
    /// The subscription is over, or its grant is.
    Ends,
    /// It was answered to somebody else.
    Elsewhere,
    Fails(ClientError),
}

/// The effect of a push: it is counted once, and acknowledged as every answer is.
fn effect(w: &mut Writing<'_, '_>, id: SubscriptionId, believed: &Believed) -> Result<(Taken, u64), Error> {
    let mut row = LISTENING.get(w.tx, &id)?.ok_or(Error::NotFound)?;
    let received = WALLET.get(w.tx, &row.grant)?;
    let now = w.now;
    let received =
        received.map(|received| Ok::<_, Error>((is_live(&received, now)?, received))).transpose()?;
    let Some((true, mut received)) = received.filter(|_| row.ended_at.is_none()) else {
        return Ok((Taken::Over, listening::end_with_grant(w, id)?.sequence));
    };
    let push = &believed.push;
    if push.sequence <= row.sequence {
        return Ok((Taken::Behind, row.sequence));
    }
    row.count(push, &believed.shown, now);
    let items = u64::try_from(believed.shown.len()).unwrap_or(u64::MAX);
    received.reading.answers = received.reading.answers.saturating_add(1);
    received.reading.items = received.reading.items.saturating_add(items);
    received.reading.last_at = Some(now);
    WALLET.put(w.tx, &row.grant, &received)?;
    LISTENING.put(w.tx, &id, &row)?;
    acks::got(w, row.grant, &believed.receipt)?;
    Ok((Taken::Yes, push.sequence))
}

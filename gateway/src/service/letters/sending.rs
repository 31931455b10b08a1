//! Letters are sent: signed anew for each attempt, to where the receiver's own documents say, and believed to have arrived once the
//! receiver signed that.

use super::{FRESH, dispatch, sound};
use crate::error::Error;
use crate::service::Letters;
use crate::service::devices::pairing;
use crate::service::turns::{TURN, by_turns};
use crate::state::commits::Writing;
use crate::state::grant_book::GrantKey;
use crate::state::outbox::{self, Failure, LetterState, StoredLetter};
use crate::state::schema::{DEVICES, LETTERS, REVOKED};
use oap_federation::letter::MAX_LIFE;
use oap_federation::reply::{MAX_REPLY, Reply, UnverifiedReply};
use oap_federation::{Content, Letter, LetterKind, Outcome, SignedLetter};
use oap_grants::SignedGrant;
use oap_grants::grant::UnverifiedGrant;
use oap_identity::document::MEMORY_EXCHANGE;
use oap_identity::outgoing::{Allowance, StatusCode};
use oap_identity::signed::UnverifiedSignature;
use oap_identity::{Did, DidDocument, LetterId, Timestamp, json};
use oap_manifest::check::{self, Endpoints};
use oap_manifest::path;
use oap_memory::deletion;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

/// Most letters of one pass over those that are due.
pub const PASS: usize = 256;
/// Most of them to one gateway: the next pass waits for the slowest.
pub const PASS_EACH: usize = 16;
/// Time for a letter and its reply.
pub const REPLY_TIME: Duration = Duration::from_secs(20);
/// What a memory manifest may take.
const MANIFEST: Allowance = Allowance { bytes: 256 << 10, time: Duration::from_secs(5) };
/// What a reply may take.
const REPLY: Allowance = Allowance { bytes: MAX_REPLY, time: REPLY_TIME };

impl Letters<'_> {
    /// Sends what is due, once; how many letters were tried. Of letters to one gateway the first that comes to nothing puts off the others.
    ///
    /// # Errors
    /// [`Error::Store`], [`Error::Corrupt`].
    pub async fn send_due(self) -> Result<usize, Error> {
        // What is due by a clock that is not believed may not be due at all.
        if self.0.clock.believe().is_err() {
            return Ok(0);
        }
        let due = outbox::all_due(&self.0.store, self.0.clock.now(), PASS, PASS_EACH)?;
        let mut by_receiver: BTreeMap<Did, Vec<LetterId>> = BTreeMap::new();
        for (id, letter) in due {
            by_receiver.entry(letter.to).or_default().push(id);
        }
        let to_one = |letters| {
            let gateway = self.0.clone();
            async move { Letters(&gateway).send_all(letters).await }
        };
        by_turns(by_receiver, to_one).await
    }

    /// Sends letters to one gateway, one after the other; how many were tried. What one of them breaks on holds up no other.
    async fn send_all(self, letters: Vec<LetterId>) -> Result<usize, Error> {
        let (mut failed, mut broken, mut tried, begun) = (None, None, 0, Instant::now());
        // Found with the first of them that is sent: for one turn it is where it was.
        let mut place = None;
        for id in letters {
            // What came to nothing puts off the rest, which costs no time.
            if failed.is_none() && begun.elapsed() >= TURN {
                break;
            }
            tried += 1;
            match self.send(id, failed, &mut place).await {
                // A gateway that has no room for one letter may have it for another.
                Ok(failure) => failed = failure.filter(|failure| *failure != Failure::Later),
                Err(error) => {
                    tracing::error!(%id, %error, "a letter could not be sent");
                    broken = Some(error);
                }
            }
        }
        broken.map_or(Ok(tried), Err)
    }

    /// Sends a letter, unless another to the same gateway just failed; why it came to nothing. `place` is where that takes letters, once it
    /// is known.
    async fn send(
        self,
        id: LetterId,
        failed: Option<Failure>,
        place: &mut Option<String>,
    ) -> Result<Option<Failure>, Error> {
        let Some(letter) = LETTERS.get(&self.0.store, &id)? else { return Ok(None) };
        if letter.state != LetterState::Waiting {
            return Ok(None);
        }
        // Its receiver may have been told already that the grant is void.
        if self.is_void(&letter)? {
            let ended = move |w: &mut Writing<'_, '_>| {
                let Some(letter) = outbox::waiting(w, id)? else { return Ok(()) };
                outbox::end(w, id, letter, LetterState::GivenUp)
            };
            self.0.commit_own(ended).await?;
            return Ok(failed);
        }
        let attempt = match failed {
            Some(failure) => Err(failure),
            None => self.attempt(id, &letter, place).await?,
        };
        let failure = attempt.as_ref().err().copied();
        if let Some(failure) = failure {
            tracing::info!(%id, kind = letter.kind.as_str(), failure = failure.as_str(), "a letter did not arrive");
        }
        self.0
            .commit_own(move |w| {
                // It may have been taken back meanwhile.
                let Some(letter) = outbox::waiting(w, id)? else { return Ok(()) };
                let (reply, grant) = match attempt {
                    Ok(replied) => replied,
                    Err(failure) => {
                        if outbox::put_off(w, id, letter.clone(), failure)? {
                            let letter = StoredLetter { failure: Some(failure), ..letter };
                            dispatch::given_up(w, id, &letter)?;
                        }
                        return Ok(());
                    }
                };
                dispatch::settled(w, id, &letter, &reply, grant.as_ref())?;
                let state = if reply.outcome == Outcome::Taken {
                    LetterState::Delivered
                } else {
                    LetterState::Refused
                };
                outbox::end(w, id, letter, state)
            })
            .await?;
        Ok(failure)
    }

    /// Whether a letter hands over a grant that was revoked, or is of a pairing that is over.
    fn is_void(self, letter: &StoredLetter) -> Result<bool, Error> {
        if letter.kind == LetterKind::DevicePairing {
            let Content::DevicePairing(step) = letter.content()? else { return Ok(false) };
            let device = DEVICES.get(&self.0.store, &letter.to)?;
            return Ok(pairing::is_stale(device.as_ref(), &self.0.principal, &letter.to, &step));
        }
        if letter.kind != LetterKind::GrantDelivery {
            return Ok(false);
        }
        let Content::GrantDelivery(delivery) = letter.content()? else { return Ok(false) };
        let grant = UnverifiedGrant::parse(delivery.grant)?;
        Ok(REVOKED.get(&self.0.store, &GrantKey::named(grant.unverified().grant_id))?.is_some())
    }

    /// One attempt: the verified reply, with the grant in it where that holds; or why there is none.
    async fn attempt(
        self,
        id: LetterId,
        letter: &StoredLetter,
        place: &mut Option<String>,
    ) -> Result<Result<(Reply, Option<SignedGrant>), Failure>, Error> {
        let now = self.0.clock.now();
        let signed = Letter {
            id,
            from: self.0.principal.clone(),
            to: letter.to.clone(),
            issued_at: now,
            expires_at: now.plus(MAX_LIFE),
            content: letter.content()?,
        };
        let signed = SignedLetter::sign(&signed, self.0.keys().current())?;
        let url = match place {
            Some(url) => url,
            None => match self.place(&letter.to).await {
                Ok(url) => place.insert(url),
                Err(failure) => return Ok(Err(failure)),
            },
        };
        let sent = self.0.resolver.post(url, crate::api::MEDIA_TYPE, signed.bytes().to_vec(), REPLY).await;
        let Ok(answer) = sent else { return Ok(Err(Failure::Unreachable)) };
        if answer.status != StatusCode::OK {
            return Ok(Err(Failure::NoReply));
        }
        let unbelieved = |why: &dyn std::fmt::Display| {
            tracing::info!(%id, %why, "a reply is not believed");
            Ok(Err(Failure::NoReply))
        };
        let reply = match UnverifiedReply::parse(&answer.body) {
            Ok(reply) => reply,
            Err(error) => return unbelieved(&error),
        };
        // Its key may be newer than what is remembered of its owner.
        let receiver = match self.0.document_with(&letter.to, reply.kid(), FRESH).await {
            Ok(receiver) => receiver,
            Err(error) => return unbelieved(&error),
        };
        let now = self.0.clock.now();
        Ok(match reply.verify(signed.hash(), &receiver, now) {
            Ok(reply) if reply.outcome == Outcome::Later => Err(Failure::Later),
            // What is kept as a proof is one.
            Ok(reply) if !receipt_holds(&reply, &receiver, now) => Err(Failure::NoReply),
            Ok(reply) => {
                let grant = reply.access.as_ref().and_then(|access| access.grant.as_ref());
                let grant = grant.and_then(|grant| sound(grant, &receiver, now));
                Ok((reply, grant))
            }
            Err(error) => return unbelieved(&error),
        })
    }

    /// Where somebody's gateway takes letters, as their own documents say.
    async fn place(self, to: &Did) -> Result<String, Failure> {
        self.gateway_of(to).await?.endpoints.peer.ok_or(Failure::NoPlace)
    }

    /// Where somebody's gateway is, as their own documents say now.
    pub(crate) async fn gateway_of(self, to: &Did) -> Result<Found, Failure> {
        let known = self.0.document(to).await.map_err(|_| Failure::NoDocument)?;
        let address = known.service(MEMORY_EXCHANGE).ok_or(Failure::NoPlace)?;
        let origin = address.strip_suffix(path::MEMORY_MANIFEST).ok_or(Failure::NoPlace)?;
        let manifest = self.0.resolver.get(address, MANIFEST).await.map_err(|_| Failure::Unreachable)?;
        if manifest.status != StatusCode::OK {
            return Err(Failure::Unreachable);
        }
        let manifest = json::parse(&manifest.body).map_err(|_| Failure::NotSound)?;
        // As of a reply.
        let signature = UnverifiedSignature::of(&manifest).map_err(|_| Failure::NotSound)?;
        let document = self.0.document_with(to, signature.kid(), FRESH).await;
        let document = document.map_err(|_| Failure::NoDocument)?;
        // Where it is somewhere else by now, the next attempt goes there.
        if document.service(MEMORY_EXCHANGE) != Some(address) {
            return Err(Failure::NotSound);
        }
        let endpoints = check::memory(&manifest, &document, origin).map_err(|_| Failure::NotSound)?;
        let origin = origin.to_owned();
        Ok(Found { document, origin, endpoints })
    }
}

/// Somebody's gateway, by what they publish.
pub(crate) struct Found {
    pub(crate) document: Arc<DidDocument>,
    pub(crate) origin: String,
    endpoints: Endpoints,
}

/// Whether the Deletion Receipt in a reply, where there is one, is its receiver's and holds.
fn receipt_holds(reply: &Reply, receiver: &DidDocument, now: Timestamp) -> bool {
    let receipt = reply.deletion_receipt.as_ref();
    receipt.is_none_or(|receipt| deletion::verify(receipt, receiver, now).is_ok())
}

//! Letters between gateways (protocol section 13): taken in and answered here, sent in [`sending`], each type at its place by [`dispatch`].

pub(crate) mod dispatch;
mod sending;

pub use sending::{PASS, PASS_EACH, REPLY_TIME};

use crate::api::access::{LetterInfo, LetterList};
use crate::error::{Error, MemberError};
use crate::service::{Letters, acks};
use crate::state::commits::{Writing, until_it_holds};
use crate::state::heard::{HeardLetter, heard_key};
use crate::state::keyring::Keyring;
use crate::state::outbox::LetterState;
use crate::state::owner::Owner;
use crate::state::owner::mark::{Admin, Permits};
use crate::state::refusals::Counted;
use crate::state::schema::{CONFIRMED, HEARD, LETTERS};
use crate::system::address::site;
use oap_federation::ack::VerifiedLink;
use oap_federation::letter::ReadLetter;
use oap_federation::reply::{LetterResult, Reason, Reply};
use oap_federation::{Outcome, UnverifiedLetter};
use oap_grants::{SignedGrant, evidence};
use oap_identity::json;
use oap_identity::{DidDocument, LetterId, Timestamp};
use serde_json::Value;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

/// How long a letter that is over is kept for the owner.
const KEPT: Duration = Duration::from_secs(90 * 86_400);
/// How long nobody is asked again for a document that does not have the key of a letter, a proof or a push.
pub const FRESH: Duration = Duration::from_secs(60);
/// Most letters that one transaction forgets.
const BATCH: usize = 500;

/// A letter whose sender is proved, with what of it was checked beside the writer.
pub(crate) struct Arrived {
    pub(crate) letter: ReadLetter,
    /// From where it came.
    pub(crate) network: IpAddr,
    /// The grant of a delivery, where its granter is the sender and it holds.
    pub(crate) grant: Option<SignedGrant>,
    /// The acknowledgement, where it is its sender's and holds.
    pub(crate) link: Option<VerifiedLink>,
}

/// A grant that a granter's gateway handed over, where it is theirs and holds.
fn sound(grant: &Value, granter: &DidDocument, now: Timestamp) -> Option<SignedGrant> {
    let terms = evidence::grant(grant, &[], granter, now).ok()?;
    (terms.grant.grant().granter.principal == *granter.id()).then_some(terms.grant)
}

impl Letters<'_> {
    /// Takes a letter whose shape was checked; the signed reply. What costs nothing comes before what a stranger can have fetched,
    /// and a signature is made for nobody whose own does not hold.
    ///
    /// # Errors
    /// [`Error::Letter`], [`Error::Member`], [`Error::Busy`], [`Error::RateLimited`]; [`Error::Sender`] for everybody who is not proved.
    pub async fn receive(self, letter: UnverifiedLetter, network: IpAddr) -> Result<Vec<u8>, Error> {
        self.0.clock.believe()?;
        letter.check(&self.0.principal, self.0.clock.now())?;
        letter.from().check_method().map_err(|e| Error::Member("from", MemberError::Method(e)))?;
        if self.0.heard.is_full() {
            return Err(Error::Busy);
        }
        let sender = {
            let _place = self.0.proving.place(network).ok_or(Error::Busy)?;
            let found = self.0.document_with(letter.from(), letter.kid(), FRESH).await;
            found.map_err(|_| Error::Sender)?
        };
        let now = self.0.clock.now();
        let letter = letter.verify(&sender, now).map_err(|_| Error::Sender)?;
        // Only now: whoever is not proved would learn whether this gateway knows the DID that they name.
        if !self.0.heard.has_room(&letter.letter().from, network) {
            return Err(Error::Busy);
        }
        self.0.refusals.charge(Counted::Letter, &letter.letter().from, 1, now)?;
        let grant = dispatch::grant(&letter.letter().content).and_then(|grant| sound(grant, &sender, now));
        let link = acks::sound(self.0, &letter.letter().content, &sender, now);
        let arrived = Arc::new(Arrived { letter, network, grant, link });
        let (reply, keys) = until_it_holds(|| self.take(arrived.clone())).await?;
        let kind = arrived.letter.letter().content.kind().as_str();
        metrics::counter!("oap_letters_taken_total", "type" => kind, "outcome" => reply.outcome.as_str())
            .increment(1);
        reply.sign(keys.current()).map_err(|error| {
            tracing::error!(%error, "a reply cannot be written");
            Error::Panicked
        })
    }

    /// One transaction: the letter has its effect, or had it before.
    async fn take(self, arrived: Arc<Arrived>) -> Result<(Reply, Arc<Keyring>), Error> {
        let taken = move |w: &mut Writing<'_, '_>| {
            let letter = &arrived.letter;
            let from = &letter.letter().from;
            let key = heard_key(from, letter.letter().id);
            let reply = |said: LetterResult, w: &Writing<'_, '_>| {
                Reply::new(said, letter.hash(), w.gateway.principal.clone(), w.now)
            };
            if let Some(heard) = HEARD.get(w.tx, &key)?.filter(|heard| heard.until > w.now) {
                if heard.says != letter.says() {
                    return Ok((reply(LetterResult::refused(Reason::OtherLetter), w), w.keys.clone()));
                }
                let mut before: Reply = json::parse_as(heard.reply.as_bytes())?;
                // The same letter has the same reply; one that was signed anew has one of its own.
                (before.to, before.at) = (letter.hash(), heard.at);
                return Ok((before, w.keys.clone()));
            }
            let reply = reply(dispatch::take(w, &arrived)?, w);
            // What is to come again later is not remembered: it had no effect.
            if reply.outcome != Outcome::Later {
                let stranger = (!w.gateway.heard.knows(from)).then(|| site(arrived.network));
                let until = letter.until();
                let heard = HeardLetter {
                    letter: letter.hash(),
                    says: letter.says(),
                    until,
                    at: w.now,
                    reply: json::canonical_text(&reply)?,
                    stranger,
                };
                HEARD.put(w.tx, &key, &heard)?;
                let gateway = w.gateway.clone();
                w.tx.on_commit(move || gateway.heard.note(key, until, stranger));
            }
            Ok((reply, w.keys.clone()))
        };
        self.0.commit(taken).await
    }

    /// The letters to other gateways, newest first.
    ///
    /// # Errors
    /// [`Error::Store`], [`Error::Corrupt`].
    pub fn list(self, _: &Owner<impl Permits<Admin>>) -> Result<LetterList, Error> {
        let mut letters = Vec::new();
        for row in LETTERS.scan(&self.0.store) {
            let (id, letter) = row?;
            letters.push(LetterInfo {
                letter: id,
                to: letter.to,
                kind: letter.kind,
                state: letter.state,
                made_at: letter.made_at,
                attempts: letter.attempts,
                next_at: (letter.state == LetterState::Waiting).then_some(letter.next_at),
                failure: letter.failure,
                over_at: letter.over_at,
            });
        }
        letters.reverse();
        Ok(LetterList { letters })
    }

    /// Forgets letters that cannot come again, those of the outbox that were over long enough, and what was signed to notices that are
    /// not sent any more; how many.
    ///
    /// # Errors
    /// [`Error::Store`].
    pub(crate) async fn forget(self) -> Result<usize, Error> {
        let mut forgotten = 0;
        loop {
            let over = self.0.heard.forget(self.0.clock.now(), BATCH);
            if over.is_empty() {
                break;
            }
            forgotten += over.len();
            self.0
                .commit_own(move |w| {
                    for key in &over {
                        // A letter of this name may have been taken anew.
                        if HEARD.get(w.tx, key)?.is_some_and(|heard| heard.until <= w.now) {
                            HEARD.delete(w.tx, key);
                        }
                    }
                    Ok(())
                })
                .await?;
        }
        let now = self.0.clock.now();
        let mut over: Vec<LetterId> = Vec::new();
        for row in LETTERS.scan(&self.0.store) {
            let (id, letter) = row?;
            if letter.over_at.is_some_and(|at| at.plus(KEPT) <= now) {
                over.push(id);
            }
        }
        forgotten += over.len();
        for batch in over.chunks(BATCH) {
            let batch = batch.to_vec();
            self.0
                .commit_own(move |w| {
                    batch.iter().for_each(|id| LETTERS.delete(w.tx, id));
                    Ok(())
                })
                .await?;
        }
        let over = self.0.confirmed.over(&self.0.store, now)?;
        forgotten += over.len();
        for batch in over.chunks(BATCH) {
            let batch = batch.to_vec();
            self.0
                .commit_own(move |w| {
                    batch.iter().for_each(|key| CONFIRMED.delete(w.tx, key));
                    Ok(())
                })
                .await?;
        }
        Ok(forgotten)
    }
}

//! What becomes of a view is pushed at the subscription's own ticks, whatever happens between them: a tick at which nothing became of it
//! leaves no request, no row and no receipt.

use crate::api::MEDIA_TYPE;
use crate::error::{Error, Unavailable};
use crate::service::query::{Caller, Made, Pushing};
use crate::service::{Exchange, Letters, Subscriptions};
use crate::state::commits::Writing;
use crate::state::outbox::Failure;
use crate::state::schema::SUBSCRIPTIONS;
use crate::state::subscriptions::{self as rows, EndedBy, PushFailure, SubscriptionKey};
use oap_federation::push::{MAX_REPLY, PushReply, PushTo, REPLY_TAG, TAG, Taken};
use oap_grants::verify::Refused;
use oap_identity::http_signature::{Covered, Headers, Nonce, UnverifiedMessage, sign};
use oap_identity::origin::Origin;
use oap_identity::outgoing::{Allowance, Answer, Method, Request, StatusCode};
use oap_identity::{Did, DidDocument, json};
use std::sync::Arc;
use std::time::Duration;
use tokio::task::JoinSet;

/// Most subscriptions of one pass over those whose tick has come.
pub const PASS: usize = 256;
/// Time for a push and its reply.
pub const REPLY_TIME: Duration = Duration::from_secs(20);
/// The highest number from which a sender goes on because its receiver says so: JSON has numbers for all pushes behind it.
const MAX_BEHIND: u64 = 1 << 52;
/// What a reply may take.
const REPLY: Allowance = Allowance { bytes: MAX_REPLY, time: REPLY_TIME };

/// Where a push goes.
struct Place {
    document: Arc<DidDocument>,
    url: String,
    /// As its signature covers it.
    target: String,
}

/// What became of a push.
#[derive(Debug, PartialEq, Eq)]
enum Outcome {
    Taken,
    /// The grantee's gateway took pushes up to this one before.
    Behind(u64),
    Over,
}

/// What a reply says became of the push of a number; none where it says what cannot be.
fn outcome(reply: PushReply, sent: u64) -> Option<Outcome> {
    match reply.outcome {
        Taken::Yes if reply.sequence == sent => Some(Outcome::Taken),
        Taken::Behind if (sent..=MAX_BEHIND).contains(&reply.sequence) => {
            Some(Outcome::Behind(reply.sequence))
        }
        Taken::Over => Some(Outcome::Over),
        Taken::Yes | Taken::Behind => None,
    }
}

impl Subscriptions<'_> {
    /// Pushes what is due, once; how many subscriptions had their tick. It comes back when all of them are done.
    ///
    /// # Errors
    /// [`Error::Store`], [`Error::Corrupt`].
    pub async fn push_due(self) -> Result<usize, Error> {
        // What is due by a clock that is not believed may not be due at all.
        if self.0.clock.believe().is_err() {
            return Ok(0);
        }
        let due = self.0.subscriptions.due(self.0.clock.now(), PASS);
        let count = due.len();
        let mut pushing = JoinSet::new();
        for key in due {
            let gateway = self.0.clone();
            pushing.spawn(async move {
                // Never closed.
                let _place = gateway.subscriptions.places.clone().acquire_owned().await;
                let pushed = Subscriptions(&gateway).push(key).await;
                // Its next tick is planned whatever became of this one.
                let planned = Subscriptions(&gateway).plan(key);
                pushed.and(planned)
            });
        }
        // What one breaks on holds up no other.
        let mut done = Ok(count);
        while let Some(pushed) = pushing.join_next().await {
            if let Err(error) = pushed.unwrap_or(Err(Error::Panicked)) {
                tracing::error!(%error, "a push could not be made");
                done = Err(error);
            }
        }
        done
    }

    fn plan(self, key: SubscriptionKey) -> Result<(), Error> {
        let row = SUBSCRIPTIONS.get(&self.0.store, &key)?;
        if let Some(row) = row.filter(|row| row.ended.is_none()) {
            self.0.subscriptions.plan(key, row.tick(self.0.clock.now()));
        }
        Ok(())
    }

    /// The tick of one.
    async fn push(self, key: SubscriptionKey) -> Result<(), Error> {
        let turn = self.0.subscriptions.turn(key);
        let _one_by_one = turn.hold().await;
        let row = SUBSCRIPTIONS.get(&self.0.store, &key)?.filter(|row| row.ended.is_none());
        let Some(row) = row else { return Ok(()) };
        let Some(url) = row.url.clone() else { return Ok(()) };
        let caller = Caller::of_subscription(&row.subscriber()?, self.0);
        let pushing = Pushing { caller: &caller, key, turn: &turn, underway: &[] };
        match Exchange(self.0).has_news(pushing).await {
            Ok(true) => {}
            Ok(false) => return Ok(()),
            Err(error) => return self.refused(key, error).await,
        }
        // Before anything is disclosed or paid for: who is not there is not answered.
        let place = match self.place(&row.grantee, url).await {
            Ok(place) => place,
            Err(failure) => return self.put_off(key, failure, 0).await,
        };
        let made = match Exchange(self.0).push(pushing).await {
            Ok(Some(made)) => made,
            // It went as it had come.
            Ok(None) => return Ok(()),
            Err(error) => return self.refused(key, error).await,
        };
        let sequence = made.sent.sequence;
        match self.deliver(key, &place, made).await {
            Ok(Outcome::Taken) => self.settle(move |w| rows::acknowledge(w, key, sequence)).await,
            Ok(Outcome::Behind(last)) => {
                // Nothing that it has is sure any more.
                turn.remember(None);
                self.put_off(key, PushFailure::Behind, last).await
            }
            Ok(Outcome::Over) => self.settle(move |w| rows::end(w, key, EndedBy::Grantee)).await,
            Err(failure) => self.put_off(key, failure, 0).await,
        }
    }

    /// Writes down what became of one that may be over by now.
    pub(super) async fn settle(
        self,
        write: impl FnOnce(&mut Writing<'_, '_>) -> Result<(), Error> + Send + 'static,
    ) -> Result<(), Error> {
        match self.0.commit_own(write).await {
            Err(Error::NotFound) => Ok(()),
            settled => settled,
        }
    }

    async fn put_off(self, key: SubscriptionKey, failure: PushFailure, at_least: u64) -> Result<(), Error> {
        tracing::info!(subscription = %key.1, failure = failure.as_str(), "a push did not arrive");
        self.settle(move |w| rows::put_off(w, key, failure, at_least)).await
    }

    /// What a push is refused for: its subscription ends with its grant, and waits where the grant may answer again.
    async fn refused(self, key: SubscriptionKey, error: Error) -> Result<(), Error> {
        match error {
            Error::Refused(Refused::Budget | Refused::Profile(_), _) => {
                self.put_off(key, PushFailure::Refused, 0).await
            }
            Error::Refused(..) | Error::Unauthenticated(_) => {
                self.settle(move |w| rows::end(w, key, EndedBy::Grant)).await
            }
            // Nobody is answered now; the next tick asks again.
            Error::NotFound
            | Error::LockedDown
            | Error::Unavailable(Unavailable::Clock | Unavailable::Restored) => Ok(()),
            error => Err(error),
        }
    }

    /// Where pushes of a subscription go now: what was so when it was made may not be any more.
    async fn place(self, grantee: &Did, url: String) -> Result<Place, PushFailure> {
        let found = Letters(self.0).gateway_of(grantee).await.map_err(|failure| match failure {
            Failure::NoDocument => PushFailure::NoDocument,
            Failure::Unreachable => PushFailure::Unreachable,
            Failure::NoPlace | Failure::NotSound | Failure::NoReply | Failure::Later => PushFailure::NoPlace,
        })?;
        let origin: Origin = found.origin.parse().map_err(|_| PushFailure::NoPlace)?;
        let to = PushTo { url };
        let target = to.target(origin.as_str()).map_err(|_| PushFailure::NoPlace)?;
        Ok(Place { document: found.document, url: to.url, target })
    }

    /// Sends a push, and believes the reply that its receiver signed to this very request.
    async fn deliver(self, key: SubscriptionKey, place: &Place, made: Made) -> Result<Outcome, PushFailure> {
        let (nonce, keys) = (Nonce::new(&*self.0.random), self.0.keys());
        let covered = Covered::Request { method: "POST", target: &place.target };
        let signed = sign(covered, &made.bytes, &nonce, TAG, keys.current(), self.0.clock.now());
        let headers = signed.named().into_iter().chain([("Content-Type", MEDIA_TYPE)]).collect();
        let request = Request { method: Method::POST, url: &place.url, headers, body: Some(made.bytes) };
        let sent = self.0.resolver.client().send(request, REPLY).await;
        let answer = sent.map_err(|_| PushFailure::Unreachable)?;
        let reply = self.believed(&answer, place, &nonce).ok_or(PushFailure::NoReply)?;
        if reply.subscription != key.1 {
            return Err(PushFailure::NoReply);
        }
        outcome(reply, made.sent.sequence).ok_or(PushFailure::NoReply)
    }

    /// A reply that the receiver signed to the request of that nonce.
    fn believed(self, answer: &Answer, place: &Place, nonce: &Nonce) -> Option<PushReply> {
        if answer.status != StatusCode::OK {
            return None;
        }
        let values = |wanted: &str| -> Vec<&str> {
            let named = answer.headers.iter().filter(|(name, _)| name == wanted);
            named.map(|(_, value)| value.as_str()).collect()
        };
        let (digest, input, signature) =
            (values("content-digest"), values("signature-input"), values("signature"));
        let headers = Headers { digest: &digest, input: &input, signature: &signature };
        let covered = Covered::Answer { status: 200, method: "POST", target: &place.target };
        let checked = UnverifiedMessage::answer(headers, REPLY_TAG).and_then(|message| {
            let message = message.verify(covered, &place.document, self.0.clock.now())?;
            message.answers(nonce)?;
            message.covers(&answer.body)
        });
        if let Err(error) = checked {
            tracing::info!(%error, "a reply to a push is not believed");
            return None;
        }
        json::parse_as(&answer.body).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use oap_identity::SubscriptionId;

    /// The attack: a receiver says that it took the last number that JSON has, and no push can be made any more.
    #[test]
    fn what_a_receiver_says_cannot_use_up_the_numbers() {
        let said = |taken, sequence| {
            let subscription = SubscriptionId::from_bytes([1; 16]);
            outcome(PushReply { subscription, sequence, outcome: taken }, 3)
        };
        assert_eq!(said(Taken::Yes, 3), Some(Outcome::Taken));
        assert_eq!([said(Taken::Yes, 2), said(Taken::Yes, 4), said(Taken::Behind, 2)], [None, None, None]);
        assert_eq!(said(Taken::Behind, 3), Some(Outcome::Behind(3)));
        assert_eq!(said(Taken::Behind, MAX_BEHIND), Some(Outcome::Behind(MAX_BEHIND)));
        for many in [MAX_BEHIND + 1, (1 << 53) - 1, u64::MAX] {
            assert_eq!(said(Taken::Behind, many), None);
        }
        assert_eq!(said(Taken::Over, 0), Some(Outcome::Over));
    }
}

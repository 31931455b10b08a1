//! A subscription read as server-sent events: each event is a push, made as every push is, and `Last-Event-ID` acknowledges what came.

use crate::error::{Error, Unavailable};
use crate::service::query::{Caller, Pushing};
use crate::service::{Exchange, Subscriptions};
use crate::state::gateway::Gateway;
use crate::state::schema::SUBSCRIPTIONS;
use crate::state::subscriptions::{self as rows, MAX_EVENTS, Place, SubscriptionKey};
use axum::body::Bytes;
use oap_exchange::changes::Sent;
use oap_identity::SubscriptionId;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc::{Receiver, Sender, channel};
use tokio::time::{Instant, MissedTickBehavior, interval_at};

/// What stands at a tick at which there is nothing to tell: the reader knows that the stream is there.
const NOTHING: &[u8] = b":\n\n";

/// Who reads a subscription, and what of it.
struct Reader {
    gateway: Arc<Gateway>,
    caller: Caller,
    key: SubscriptionKey,
    place: Place,
    window: Duration,
}

impl Subscriptions<'_> {
    /// Reads a subscription that has no address to be pushed to, from what came up to `last` on. The first event is what is missing now; a
    /// later one is told at a tick of the stream. The stream ends with the token, with the grant, at once when somebody else reads or the
    /// subscription is over, and after [`MAX_EVENTS`] events, so that its reader says what came.
    ///
    /// # Errors
    /// [`Error::Refused`] with a receipt; [`Error::NotFound`]; [`Unavailable::Streams`].
    pub(crate) async fn read(
        self,
        caller: &Caller,
        id: SubscriptionId,
        last: u64,
    ) -> Result<Receiver<Bytes>, Error> {
        Exchange(self.0).judge_subscription(caller).await?;
        let key = (caller.grant_hash(), id);
        let row = SUBSCRIPTIONS.get(&self.0.store, &key)?;
        let row = row.filter(|row| row.ended.is_none() && row.url.is_none()).ok_or(Error::NotFound)?;
        let place = self.0.subscriptions.reads(key, caller.first());
        let place = place.ok_or(Error::Unavailable(Unavailable::Streams))?;
        let turn = self.0.subscriptions.turn(key);
        let _one_by_one = turn.hold().await;
        self.0.commit(move |w| rows::acknowledge(w, key, last)).await?;
        let reader =
            Reader { gateway: self.0.clone(), caller: caller.clone(), key, place, window: row.window() };
        let (send, events) = channel(1);
        tokio::spawn(reader.tell(send));
        Ok(events)
    }
}

impl Reader {
    async fn tell(mut self, send: Sender<Bytes>) {
        let mut ticks = interval_at(Instant::now() + self.window, self.window);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Skip);
        let mut underway: Vec<Sent> = Vec::new();
        while underway.len() < MAX_EVENTS {
            let event = match self.next(&mut underway).await {
                Ok(Some(event)) => event,
                Ok(None) => Bytes::from_static(NOTHING),
                Err(error) => {
                    tracing::info!(subscription = %self.key.1, %error, "a stream of events ends");
                    return;
                }
            };
            // Who does not read what was sent keeps no place by that.
            tokio::select! {
                sent = send.send(event) => if sent.is_err() { return },
                () = self.place.lost() => return,
            }
            tokio::select! {
                _ = ticks.tick() => {}
                () = send.closed() => return,
                () = self.place.lost() => return,
            }
        }
    }

    /// The next event; none where nothing became of the view.
    async fn next(&mut self, underway: &mut Vec<Sent>) -> Result<Option<Bytes>, Error> {
        // A subscription that is over has no turns any more.
        if !self.place.is_held() {
            return Err(Error::NotFound);
        }
        let turn = self.gateway.subscriptions.turn(self.key);
        let _one_by_one = turn.hold().await;
        if !self.place.is_held() {
            return Err(Error::NotFound);
        }
        let pushing = Pushing { caller: &self.caller, key: self.key, turn: &turn, underway };
        let made = match Exchange(&self.gateway).push(pushing).await {
            Ok(Some(made)) => made,
            Ok(None) => return Ok(None),
            Err(error) => return Err(error),
        };
        let mut event = format!("id: {}\nevent: push\ndata: ", made.sent.sequence).into_bytes();
        event.extend(made.bytes);
        event.extend_from_slice(b"\n\n");
        underway.push(made.sent);
        Ok(Some(event.into()))
    }
}

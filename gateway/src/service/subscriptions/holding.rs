//! Subscriptions of the owner's own: asked for at the granters' gateways, and ended there.

use super::taking;
use crate::api::subscriptions::{HeldSubscription, Subscribing, SubscriptionEnd};
use crate::error::{Conflict, Error};
use crate::service::Subscriptions;
use crate::service::recall::Grant;
use crate::service::recall::asking::{OwnKey, session};
use crate::service::turns::{TURN, by_turns};
use crate::state::commits::Writing;
use crate::state::erasures::Unsubscribed;
use crate::state::listening::{self, ASKED_AGAIN, ASKED_EVERY, HeldEnd, StoredListening};
use crate::state::owner::Owner;
use crate::state::owner::mark::{Admin, Permits};
use crate::state::schema::{LISTENING, WALLET};
use crate::state::wallet;
use oap_client::ClientError;
use oap_federation::push::{NewSubscription, PushTo};
use oap_identity::{Did, Hash, SubscriptionId, Timestamp};
use oap_manifest::path;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use tokio::time::Instant;

impl Subscriptions<'_> {
    /// Subscribes to what a received grant shows; its pushes come to this gateway. Where the granter's gateway cannot be reached, it is asked
    /// again later.
    ///
    /// # Errors
    /// [`Error::NotFound`], [`Error::Subscription`]; [`Conflict::NoSubscription`], [`Conflict::SubscriptionRefused`],
    /// [`Conflict::ManySubscriptions`].
    pub async fn subscribe(
        self,
        owner: &Owner<impl Permits<Admin>>,
        hash: Hash,
        how: Subscribing,
    ) -> Result<HeldSubscription, Error> {
        let received = WALLET.get(&self.0.store, &hash)?.ok_or(Error::NotFound)?;
        if !taking::is_live(&received, self.0.clock.now())? {
            return Err(Error::Conflict(Conflict::NoSubscription));
        }
        let id = SubscriptionId::new(self.0.clock.now(), &*self.0.random);
        self.wanted(id, how.window).check()?;
        let row = StoredListening {
            grant: hash,
            granter: received.granter,
            window: how.window,
            made_at: self.0.clock.now(),
            begun_at: None,
            sequence: 0,
            heard_at: None,
            came: 0,
            changed: 0,
            left: 0,
            unsettled: Vec::new(),
            ended_at: None,
        };
        // Before the granter knows of it: the first push may come at once.
        let put = move |w: &mut Writing<'_, '_>| {
            if !is_held(w, hash)? {
                return Err(Error::Conflict(Conflict::NoSubscription));
            }
            listening::put(w, id, &row)
        };
        self.0.commit_as(owner, put).await?;
        self.ask(id).await?;
        self.held_info(id, LISTENING.get(&self.0.store, &id)?.ok_or(Error::NotFound)?)
    }

    /// What the granter of a subscription is asked for.
    fn wanted(self, id: SubscriptionId, window: u32) -> NewSubscription {
        let url = self.0.url(&format!("{}/{id}", path::PUSH));
        NewSubscription { subscription: id, window, push: Some(PushTo { url }) }
    }

    /// Asks the granters' gateways again that could not be reached, once each, and those of which nothing was heard for
    /// [`ASKED_EVERY`]: a granter that ends a subscription does not say so by itself. Ends what is under a grant that is over. How many
    /// subscriptions that were.
    ///
    /// # Errors
    /// [`Error::Store`], [`Error::Corrupt`].
    pub async fn ask_again(self) -> Result<usize, Error> {
        let (mut over, mut waiting): (_, BTreeMap<Did, Vec<SubscriptionId>>) = (Vec::new(), BTreeMap::new());
        let (mut live, now) = (BTreeSet::new(), self.0.clock.now());
        for row in LISTENING.scan(&self.0.store) {
            let (id, row) = row?;
            if row.ended_at.is_some() {
                continue;
            }
            live.insert(id);
            let is_doubted = row.is_silent(now) && self.0.asked_whether.is_due(&id, now);
            if !self.holds(&row)? {
                over.push((id, row.grant));
            } else if row.begun_at.is_none() || is_doubted {
                waiting.entry(row.granter).or_default().push(id);
            }
        }
        self.0.asked_whether.retain(|id| live.contains(id));
        let ended = over.len();
        for (id, grant) in over {
            self.settle(move |w| end_if_over(w, id, grant)).await?;
        }
        let of_one = |ids| {
            let gateway = self.0.clone();
            async move { Subscriptions(&gateway).ask_all(ids).await }
        };
        Ok(ended + by_turns(waiting, of_one).await?)
    }

    /// Asks one granter's gateway for these, one after the other, until its turn is over; how many it was asked for. One that cannot be had
    /// does not keep the next from being asked for, which may be under another grant.
    async fn ask_all(self, ids: Vec<SubscriptionId>) -> Result<usize, Error> {
        let (mut asked, begun) = (0, Instant::now());
        for id in ids {
            if begun.elapsed() >= TURN {
                break;
            }
            asked += 1;
            match self.ask(id).await {
                Ok(()) | Err(Error::Conflict(_)) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(asked)
    }

    /// Whether the grant of a subscription is in the wallet and in force.
    fn holds(self, row: &StoredListening) -> Result<bool, Error> {
        let received = WALLET.get(&self.0.store, &row.grant)?;
        received.map_or(Ok(false), |received| taking::is_live(&received, self.0.clock.now()))
    }

    /// Asks the granter's gateway for a subscription. One that it refuses is over, as one whose grant is; one that cannot be asked for
    /// waits. That it is asked for twice changes nothing there; so one that was made is asked for again to learn whether it stands. It is
    /// over where its granter has it no more, and goes on whatever else is answered: what is refused for a while is not over.
    async fn ask(self, id: SubscriptionId) -> Result<(), Error> {
        let row = LISTENING.get(&self.0.store, &id)?.filter(|row| row.ended_at.is_none());
        let Some(row) = row else { return Ok(()) };
        let received = WALLET.get(&self.0.store, &row.grant)?;
        let now = self.0.clock.now();
        let live = received.map(|received| Ok::<_, Error>((taking::is_live(&received, now)?, received)));
        let Some((true, received)) = live.transpose()? else {
            return self.0.commit_own(move |w| end_if_over(w, id, row.grant)).await;
        };
        let (document, _) = received.document()?;
        let above = wallet::above(&self.0.store, &row.grant)?;
        let grant = Grant { hash: row.grant, granter: row.granter, document, above };
        let body = serde_json::to_value(self.wanted(id, row.window))?;
        let called = self.call(&grant, path::SUBSCRIBE, &body).await;
        if let Some(begun_at) = row.begun_at {
            let again = if called == Called::Unreachable { ASKED_AGAIN } else { ASKED_EVERY };
            self.0.asked_whether.put_off(id, now, again);
            // Made by this very question: it was not there any more, and its owner may have ended it.
            let is_anew = matches!(called, Called::Done(Some(at)) if at > begun_at.plus(ASKED_EVERY / 2));
            if is_anew {
                // Where that does not arrive, its next push is told that it is over.
                self.call(&grant, &format!("{}/{id}/end", path::SUBSCRIBE), &json!({})).await;
            }
            if is_anew || called == Called::Gone {
                self.0.commit_own(move |w| listening::end(w, id, HeldEnd::Ended).map(drop)).await?;
            }
            return Ok(());
        }
        match called {
            Called::Done(_) => {
                let begun = move |w: &mut Writing<'_, '_>| {
                    let Some(mut row) = LISTENING.get(w.tx, &id)? else { return Ok(()) };
                    row.begun_at.get_or_insert(w.now);
                    Ok(LISTENING.put(w.tx, &id, &row)?)
                };
                self.0.commit_own(begun).await
            }
            Called::Gone | Called::Refused => {
                self.0.commit_own(move |w| listening::end(w, id, HeldEnd::Refused).map(drop)).await?;
                Err(Error::Conflict(Conflict::SubscriptionRefused))
            }
            Called::Unreachable => Ok(()),
        }
    }

    /// Ends a subscription of the owner's, here in any case, and at its granter's where that can be reached.
    pub(super) async fn end_own(
        self,
        owner: &Owner<impl Permits<Admin>>,
        id: SubscriptionId,
    ) -> Result<SubscriptionEnd, Error> {
        let ended = move |w: &mut Writing<'_, '_>| {
            w.ended.subscriptions.push(Unsubscribed { subscription: id, grant: None });
            listening::end(w, id, HeldEnd::Owner)
        };
        let row = self.0.commit_as(owner, ended).await?;
        let received = WALLET.get(&self.0.store, &row.grant)?;
        let told = match received {
            Some(received) => {
                let (document, _) = received.document()?;
                let above = wallet::above(&self.0.store, &row.grant)?;
                let grant = Grant { hash: row.grant, granter: row.granter, document, above };
                let at = format!("{}/{id}/end", path::SUBSCRIBE);
                matches!(self.call(&grant, &at, &json!({})).await, Called::Done(_))
            }
            None => false,
        };
        Ok(SubscriptionEnd { subscription: id, told })
    }

    /// Asks the gateway of a grant for something, as its grantee, for no longer than its [`TURN`].
    async fn call(self, grant: &Grant, at: &str, body: &Value) -> Called {
        tokio::time::timeout(TURN, self.call_with_token(grant, at, body)).await.unwrap_or(Called::Unreachable)
    }

    /// With a new token where the one that is known may not be taken any more.
    async fn call_with_token(self, grant: &Grant, at: &str, body: &Value) -> Called {
        let had_token = self.0.remotes.session(&grant.hash, self.0.clock.now()).is_some();
        let mut called = self.call_once(grant, at, body).await;
        if had_token && matches!(called, Err(ClientError::Refused { status: 401, .. })) {
            self.0.remotes.forget(&grant.hash);
            called = self.call_once(grant, at, body).await;
        }
        match called {
            Ok(called) => called,
            Err(error) => {
                tracing::info!(%error, "a granter's gateway did not do what it was asked for");
                match error {
                    // There is room again in a minute.
                    ClientError::Refused { status: 429, .. } => Called::Unreachable,
                    // Said by the gateway itself, and not by what stands before it.
                    ClientError::Refused { status: 404 | 409, code, .. } if is_of_gateway(&code) => {
                        Called::Gone
                    }
                    ClientError::Refused { status: 400..=499, .. } => Called::Refused,
                    _ => Called::Unreachable,
                }
            }
        }
    }

    async fn call_once(self, grant: &Grant, at: &str, body: &Value) -> Result<Called, ClientError> {
        let session = match session(self.0, grant).await {
            Ok(session) => session,
            Err(error) => {
                tracing::info!(%error, "a granter's gateway is not to be had");
                return Ok(Called::Unreachable);
            }
        };
        let said = session.remote.resume(session.ticket.clone()).call(&OwnKey(self.0), at, body).await?;
        Ok(Called::Done(said["begun_at"].as_str().and_then(|time| time.parse().ok())))
    }
}

/// Whether a grant is in the wallet and in force in a transaction.
fn is_held(w: &Writing<'_, '_>, grant: Hash) -> Result<bool, Error> {
    let received = WALLET.get(w.tx, &grant)?;
    received.map_or(Ok(false), |received| taking::is_live(&received, w.now))
}

/// Ends what is under a grant that is over, unless that was received again meanwhile.
fn end_if_over(w: &mut Writing<'_, '_>, id: SubscriptionId, grant: Hash) -> Result<(), Error> {
    if is_held(w, grant)? { Ok(()) } else { listening::end_with_grant(w, id).map(drop) }
}

/// Whether a gateway refuses with this code what it does not have, or has otherwise.
fn is_of_gateway(code: &str) -> bool {
    matches!(code, "not_found" | "conflict")
}

/// What came of asking another gateway for something.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Called {
    /// With when what is there began, where that is said.
    Done(Option<Timestamp>),
    /// It is not there any more, or is something else there.
    Gone,
    Refused,
    /// It may be done later.
    Unreachable,
}

//! Subscriptions (protocol section 17): grantees are told what becomes of their views, and the owner of those that others granted.
//!
//! At the granter's: made and ended here, pushed in [`pushing`], read as events in [`reading`]. At the grantee's: asked for in [`holding`],
//! and what is pushed is taken in [`taking`].

mod holding;
mod pushing;
pub(crate) mod reading;
mod taking;

pub use pushing::{PASS, REPLY_TIME};

use crate::api::subscriptions::{GivenSubscription, HeldSubscription, SubscriptionEnd, SubscriptionList};
use crate::error::{Error, Unavailable};
use crate::service::query::Caller;
use crate::service::{Exchange, Letters, Subscriptions};
use crate::state::commits::Writing;
use crate::state::listening::StoredListening;
use crate::state::outbox::Failure;
use crate::state::owner::Owner;
use crate::state::owner::mark::{Admin, Permits};
use crate::state::schema::{LISTENING, LISTENING_ENDS, SUBSCRIPTIONS};
use crate::state::subscriptions::{self as rows, EndedBy, StoredSubscription, SubscriptionKey};
use oap_federation::push::{NewSubscription, PushTo, SubscriptionError};
use oap_grants::GrantBook;
use oap_grants::verify::{Unauthenticated, live};
use oap_identity::origin::Origin;
use oap_identity::{Did, SubscriptionId};
use oap_store::Range;
use serde_json::{Value, json};

impl Subscriptions<'_> {
    /// A grantee subscribes to what its grant shows. Where it is to be pushed, the address must be at the grantee's own gateway.
    ///
    /// # Errors
    /// [`Error::Subscription`]; [`Error::Refused`] with a receipt; [`Error::Unauthenticated`] for a bearer token; [`Unavailable::NotReached`];
    /// [`Conflict::ManySubscriptions`](crate::error::Conflict::ManySubscriptions).
    pub(crate) async fn begin(self, caller: &Caller, new: NewSubscription) -> Result<Value, Error> {
        new.check()?;
        Exchange(self.0).judge_subscription(caller).await?;
        let subscriber = caller.subscriber().ok_or(Unauthenticated::Scheme)?;
        if let Some(push) = &new.push {
            self.target(caller.grantee(), push).await?;
        }
        let key = (caller.grant_hash(), new.subscription);
        let grantee = caller.grantee().clone();
        let chain = self.0.grant_book.chain(key.0);
        let row = self
            .0
            .commit(move |w| {
                // The grant may have ended while the address was looked up.
                let standing = w.standing(chain)?;
                let record = standing.by_hash(key.0).ok_or(Error::NotFound)?;
                live(&record, &standing, w.keys.document(), w.now).map_err(Error::Judged)?;
                let url = new.push.map(|push| push.url);
                rows::begin(w, key, StoredSubscription::new(&subscriber, grantee, new.window, url, w.now)?)
            })
            .await?;
        Ok(json!({
            "subscription": key.1, "window": row.window, "begun_at": row.begun_at, "sequence": row.sequence,
        }))
    }

    /// What a request to an address covers as its target, where it is at the gateway that a grantee's own documents name.
    async fn target(self, grantee: &Did, push: &PushTo) -> Result<String, Error> {
        let found = Letters(self.0).gateway_of(grantee).await.map_err(|failure| match failure {
            // It may be there in a while: no answer to this question.
            Failure::NoDocument | Failure::Unreachable => Error::Unavailable(Unavailable::NotReached),
            _ => SubscriptionError::Stranger.into(),
        })?;
        let origin: Origin = found.origin.parse().map_err(|_| SubscriptionError::Stranger)?;
        Ok(push.target(origin.as_str())?)
    }

    /// Ends those whose grant is over, whether or not anybody reads them or their tick comes; how many they were.
    ///
    /// # Errors
    /// [`Error::Store`], [`Error::Corrupt`].
    pub async fn end_over(self) -> Result<usize, Error> {
        // What is over by a clock that is not believed may not be over at all.
        if self.0.clock.believe().is_err() {
            return Ok(0);
        }
        let mut over = Vec::new();
        for row in SUBSCRIPTIONS.scan(&self.0.store) {
            let (key, row) = row?;
            if row.ended.is_none()
                && Exchange(self.0).is_over(&Caller::of_subscription(&row.subscriber()?, self.0))
            {
                over.push(key);
            }
        }
        for key in &over {
            let key = *key;
            self.settle(move |w| rows::end(w, key, EndedBy::Grant)).await?;
        }
        Ok(over.len())
    }

    /// A grantee ends a subscription of its own.
    ///
    /// # Errors
    /// [`Error::NotFound`].
    pub(crate) async fn end_by_grantee(self, caller: &Caller, id: SubscriptionId) -> Result<Value, Error> {
        let key = (caller.grant_hash(), id);
        self.0.commit(move |w| rows::end(w, key, EndedBy::Grantee)).await?;
        Ok(json!({"subscription": id}))
    }

    /// All subscriptions, the newest first.
    ///
    /// # Errors
    /// [`Error::Store`].
    pub fn list(self, _: &Owner<impl Permits<Admin>>) -> Result<SubscriptionList, Error> {
        let (mut given, mut held) = (Vec::new(), Vec::new());
        for row in SUBSCRIPTIONS.scan(&self.0.store) {
            let (key, row) = row?;
            // Of a grant that is not here any more nothing is told.
            if let Some(entry) = self.0.grant_book.entry(key.0) {
                given.push(info(key, row, entry.record.grant.grant().grant_id));
            }
        }
        for row in LISTENING.scan(&self.0.store) {
            let (id, row) = row?;
            held.push(self.held_info(id, row)?);
        }
        given.sort_by_key(|info: &GivenSubscription| std::cmp::Reverse((info.begun_at, info.subscription)));
        held.sort_by_key(|info: &HeldSubscription| std::cmp::Reverse((info.made_at, info.subscription)));
        Ok(SubscriptionList { given, held })
    }

    fn held_info(
        self,
        subscription: SubscriptionId,
        row: StoredListening,
    ) -> Result<HeldSubscription, Error> {
        Ok(HeldSubscription {
            subscription,
            grant: row.grant,
            granter: row.granter,
            window: row.window,
            made_at: row.made_at,
            begun_at: row.begun_at,
            sequence: row.sequence,
            heard_at: row.heard_at,
            came: row.came,
            changed: row.changed,
            left: row.left,
            ended_by: LISTENING_ENDS.get(&self.0.store, &subscription)?,
            ended_at: row.ended_at,
        })
    }

    /// Ends a subscription: a grantee's, or one of the owner's own. A grantee may have given its own the name of another: all of that name are over.
    ///
    /// # Errors
    /// [`Error::NotFound`].
    pub async fn end(
        self,
        owner: &Owner<impl Permits<Admin>>,
        id: SubscriptionId,
    ) -> Result<SubscriptionEnd, Error> {
        let given = self.end_given(owner, id).await;
        if LISTENING.get(&self.0.store, &id)?.is_none() {
            return given.map(|()| SubscriptionEnd { subscription: id, told: false });
        }
        match given {
            Ok(()) | Err(Error::NotFound) => self.end_own(owner, id).await,
            Err(error) => Err(error),
        }
    }

    /// Ends those of grantees that have a name.
    async fn end_given(self, owner: &Owner<impl Permits<Admin>>, id: SubscriptionId) -> Result<(), Error> {
        let keys = SUBSCRIPTIONS.keys(&self.0.store, Range::all());
        let mut keys: Vec<SubscriptionKey> = keys.collect::<Result<_, _>>()?;
        keys.retain(|(_, name)| *name == id);
        let ended = move |w: &mut Writing<'_, '_>| {
            let mut done = Err(Error::NotFound);
            for key in keys {
                match rows::end(w, key, EndedBy::Granter) {
                    Err(Error::NotFound) => {}
                    ended => done = Ok(ended?),
                }
            }
            done
        };
        self.0.commit_as(owner, ended).await
    }
}

fn info(key: SubscriptionKey, row: StoredSubscription, grant_id: oap_identity::GrantId) -> GivenSubscription {
    let (ended_by, ended_at) = row.ended.unzip();
    GivenSubscription {
        subscription: key.1,
        grant_id,
        grant: key.0,
        grantee: row.grantee,
        window: row.window,
        url: row.url,
        begun_at: row.begun_at,
        sequence: row.sequence,
        acknowledged_at: row.acknowledged_at,
        attempts: row.attempts,
        failure: row.failure,
        ended_by,
        ended_at,
    }
}

//! A push is an answer: judged, projected, receipted, counted and paid for as one, by the same steps. What it lists is what became of the
//! view since its subscriber last said what it has.

use super::{Caller, Exchange};
use crate::error::Error;
use crate::service::Budgets;
use crate::state::commits::{Writing, until_it_holds};
use crate::state::living::ViewBasis;
use crate::state::schema::SUBSCRIPTIONS;
use crate::state::subscriptions::{self, SubscriptionKey, Turn};
use crate::state::views::why;
use oap_exchange::Query;
use oap_exchange::changes::{Delta, Has, Holdings, Look, Sent, find_changes};
use oap_exchange::respond::Frame;
use oap_federation::push::{Asked, Changes, MAX_ITEMS_BYTES, Push, listing};
use oap_grants::verify::{Refused, verify};
use oap_grants::{Operation, VerifiedGrant};
use oap_identity::{ItemId, RequestId};
use oap_memory::receipt::Action;
use serde_json::json;

/// What a push is made for.
#[derive(Clone, Copy)]
pub(crate) struct Pushing<'a> {
    pub(crate) caller: &'a Caller,
    pub(crate) key: SubscriptionKey,
    /// Its turn, which the caller holds.
    pub(crate) turn: &'a Turn,
    /// What was sent and is on its way: as if it were there.
    pub(crate) underway: &'a [Sent],
}

/// A push that is recorded, and may leave.
pub(crate) struct Made {
    pub(crate) bytes: Vec<u8>,
    pub(crate) sent: Sent,
}

impl Exchange<'_> {
    /// Judges the grant of a subscription, as for any answer; a refusal leaves a receipt. A push is the answer to a query, so that its
    /// grant allows both.
    ///
    /// # Errors
    /// [`Error::Refused`].
    pub(crate) async fn judge_subscription(self, caller: &Caller) -> Result<VerifiedGrant, Error> {
        let grant = self.judge(caller, Operation::Subscribe, Action::Query).await?;
        if !grant.grant().operations.contains(&Operation::Query) {
            return Err(self
                .refuse_caller(caller, Action::Query, Refused::Operation(Operation::Query))
                .await?);
        }
        if let Err(refused) = self.allowed(&grant, &Query::default()) {
            return Err(self.refuse_caller(caller, Action::Query, refused).await?);
        }
        Ok(grant)
    }

    /// Whether a subscription's grant is over, or the key that signed its token is compromised. Nothing is recorded.
    pub(crate) fn is_over(self, caller: &Caller) -> bool {
        let (keys, now) = (self.0.keys(), self.0.clock.now());
        let caller = &caller.authenticated;
        verify(caller, Operation::Subscribe, &self.0.grant_book, keys.document(), now).is_err()
            || caller.still(keys.document(), now).is_err()
    }

    /// Whether there is anything to push. Nothing is recorded.
    ///
    /// # Errors
    /// As [`Exchange::push`].
    pub(crate) async fn has_news(self, pushing: Pushing<'_>) -> Result<bool, Error> {
        let grant = self.judge_subscription(pushing.caller).await?;
        let query = Query::default();
        until_it_holds(|| async {
            let (delta, ..) = self.changes(&grant, &pushing, &query).await?;
            Ok(!delta.is_empty())
        })
        .await
    }

    /// Makes the next push of a subscription; none where nothing became of the view.
    ///
    /// # Errors
    /// [`Error::Refused`] with a receipt; [`Error::NotFound`] for one that is over.
    pub(crate) async fn push(self, pushing: Pushing<'_>) -> Result<Option<Made>, Error> {
        let grant = self.judge_subscription(pushing.caller).await?;
        let request_id = RequestId::new(self.0.clock.now(), &*self.0.random);
        let query = listing(request_id);
        until_it_holds(|| async {
            match self.try_push(&grant, &pushing, &query, false).await? {
                Tried::Done(made) => return Ok(made),
                Tried::Discloses => {}
            }
            let disclosing = self.0.grant_book.disclosing(grant.hash());
            let _one_by_one = disclosing.lock().await;
            match self.try_push(&grant, &pushing, &query, true).await? {
                Tried::Done(made) => Ok(made),
                Tried::Discloses => Err(Error::Overtaken),
            }
        })
        .await
    }

    /// What became of the view, and what the subscriber has of the items that were looked at: those that may differ since the last look.
    async fn changes(
        self,
        grant: &VerifiedGrant,
        pushing: &Pushing<'_>,
        query: &Query,
    ) -> Result<(Delta, ViewBasis, Holdings), Error> {
        let Pushing { key, turn, underway, .. } = *pushing;
        let before = self.0.grant_book.allowance(grant.hash());
        let built = self.0.view(grant, false, &before).await?;
        let compared = turn.compared();
        let look = built.look(|view| Look::after(view, compared.as_ref()));
        let said = match look.items() {
            Some(items) => subscriptions::holdings_of(&self.0.store, key, items)?,
            None => subscriptions::holdings(&self.0.store, key)?,
        };
        let mut has = said.clone();
        underway.iter().for_each(|sent| sent.arrives(&mut has));
        let ((delta, compared), basis) = built.find(|view| {
            let delta = find_changes(view, &before, query, &has, &look, MAX_ITEMS_BYTES);
            // By what it said that it has: what is on its way may not come.
            (delta, look.compare(view, &said))
        });
        turn.remember(compared);
        Ok((delta, basis, has))
    }

    async fn try_push(
        self,
        grant: &VerifiedGrant,
        pushing: &Pushing<'_>,
        query: &Query,
        may_disclose: bool,
    ) -> Result<Tried, Error> {
        let (delta, basis, has) = self.changes(grant, pushing, query).await?;
        if delta.is_empty() {
            return Ok(Tried::Done(None));
        }
        if delta.found.discloses() && !may_disclose {
            return Ok(Tried::Discloses);
        }
        if Budgets(self.0).is_spent(grant)? {
            return Err(self.refuse_caller(pushing.caller, Action::Query, Refused::Budget).await?);
        }
        let row = SUBSCRIPTIONS.get(&self.0.store, &pushing.key)?.ok_or(Error::NotFound)?;
        let Delta { found, left, more_left } = delta;
        let answer = found.load(&self.0.views.written, |version| self.0.load(version)).map_err(why)?;
        let answer = match answer {
            Some(answer) => answer,
            None => return self.overtaken().await,
        };
        let more = more_left || answer.next().is_some();
        let had = |item: &ItemId| has.get(item).is_some_and(Has::is_sure);
        let (changed, came) = answer.items().partition(had);
        let changes = Changes { came, changed, left };
        let sequence = row.sequence.saturating_add(1);
        let (subscription, after) = (pushing.key.1, row.acknowledged);
        let asked = Asked { subscription, sequence, after, changes: &changes, more, query };
        let response_id = RequestId::new(self.0.clock.now(), &*self.0.random);
        let request_id = query.request_id.clone().ok_or(Error::Overtaken)?;
        let unsent = answer.write(Frame { request_id, response_id, next_cursor: None });
        let sent = Sent::of(sequence, unsent.shown(), &changes.left);
        let mut draft = self.answer_draft(Action::Query, &basis, &unsent);
        draft.rules = ["grant.active", "grant.filter", "projection.profile"].map(str::to_owned).to_vec();
        draft.more.insert("subscription".to_owned(), json!(pushing.key.1));
        draft.more.insert("sequence".to_owned(), json!(sequence));
        draft.input_hash = Some(asked.hash()?);
        let mut underway = pushing.underway.to_vec();
        underway.push(sent.clone());
        let key = pushing.key;
        let note = move |w: &mut Writing<'_, '_>| subscriptions::sends(w, key, underway);
        let answer =
            self.send_noting(pushing.caller, basis, Operation::Subscribe, draft, unsent, note).await?;
        metrics::counter!("oap_pushes_made_total").increment(1);
        Ok(Tried::Done(Some(Made { bytes: Push::write(&asked, &answer)?, sent })))
    }
}

/// What came of making a push.
enum Tried {
    /// It was made, or there is nothing to tell.
    Done(Option<Made>),
    /// It would disclose items for the first time, and may not.
    Discloses,
}

//! Subscriptions of grantees to the changes of their views (protocol section 17): what each was sent, and what it said that it has.
//!
//! Of an item a grantee has what it acknowledged. What was sent and not acknowledged it may have or not: it is sent again, and named as
//! gone where it went. So each push says all that is missing, whatever became of those before it, and none has to be sent twice as it was.

mod schedule;

pub use schedule::Schedule;
pub(crate) use schedule::{Place, Turn};

use crate::error::{Conflict, Error};
use crate::state::commits::Writing;
use crate::state::erasures::Unsubscribed;
use crate::state::schema::{HOLDINGS, LISTENING, LISTENING_ENDS, SUBSCRIPTIONS};
use oap_exchange::changes::{self, Holdings, Sent};
use oap_federation::push::{MAX_WINDOW, tick_after};
use oap_federation::retry;
use oap_grants::verify::Subscriber;
use oap_identity::{Did, Hash, ItemId, SubscriptionId, Timestamp, json};
use oap_store::{Range, Rows, Store};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::time::Duration;

pub use crate::api::subscriptions::{EndedBy, HeldEnd, PushFailure};

/// Most subscriptions of one grant.
pub const MAX_PER_GRANT: usize = 4;
/// Most of one grant and those made from it: whoever passes a grant on gets no more room by that.
pub const MAX_PER_FIRST: usize = 40;
/// Most subscriptions of all grants together.
pub const MAX_SUBSCRIPTIONS: usize = 1_000;
/// Most events of one stream: then its reader says what came, and goes on.
pub const MAX_EVENTS: usize = 16;
/// Most streams of events at once.
pub const MAX_STREAMS: usize = 64;
/// Those of them that are of one grant and those made from it.
pub const MAX_STREAMS_PER_FIRST: usize = 8;
/// Pushes that are made and sent at once.
pub const MAX_AT_ONCE: usize = 64;
/// Longest wait between two attempts to push, beside the subscription's own window.
pub const LONGEST_WAIT: Duration = retry::LONGEST;

/// A subscription, by the hash of its grant and the name that its grantee gave it.
pub type SubscriptionKey = (Hash, SubscriptionId);

/// A subscription, as it is stored.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoredSubscription {
    /// Who subscribed, in JSON.
    subscriber: String,
    pub(crate) grantee: Did,
    /// Seconds between two ticks.
    pub(crate) window: u32,
    /// Where pushes go; none where the grantee reads events.
    pub(crate) url: Option<String>,
    /// When it was made: from there its ticks are counted.
    pub(crate) begun_at: Timestamp,
    /// The number of the last push.
    pub(crate) sequence: u64,
    /// The number of the last one that came.
    pub(crate) acknowledged: u64,
    /// What was sent and is on its way.
    pub(crate) underway: Vec<Sent>,
    /// When a push last was acknowledged.
    pub(crate) acknowledged_at: Option<Timestamp>,
    /// Attempts in vain since then.
    pub(crate) attempts: u32,
    /// Since when they are.
    pub(crate) failing_since: Option<Timestamp>,
    pub(crate) failure: Option<PushFailure>,
    /// From when on it is tried again.
    not_before: Timestamp,
    /// Why it is over, and since when.
    pub(crate) ended: Option<(EndedBy, Timestamp)>,
}

impl StoredSubscription {
    pub(crate) fn new(
        subscriber: &Subscriber,
        grantee: Did,
        window: u32,
        url: Option<String>,
        now: Timestamp,
    ) -> Result<Self, Error> {
        Ok(Self {
            subscriber: json::canonical_text(subscriber)?,
            grantee,
            window,
            url,
            begun_at: now,
            sequence: 0,
            acknowledged: 0,
            underway: Vec::new(),
            acknowledged_at: None,
            attempts: 0,
            failing_since: None,
            failure: None,
            not_before: now,
            ended: None,
        })
    }

    /// Who subscribed.
    pub(crate) fn subscriber(&self) -> Result<Subscriber, Error> {
        Ok(json::parse_as(self.subscriber.as_bytes())?)
    }

    pub(crate) fn window(&self) -> Duration {
        Duration::from_secs(u64::from(self.window)).min(MAX_WINDOW)
    }

    /// Its next tick after a time: by its own beginning and window, and how often its receiver did not answer.
    pub(crate) fn tick(&self, now: Timestamp) -> Timestamp {
        // It waits no longer than that, but for what a clock put off that stood ahead.
        let is_put_off = self.not_before <= now.plus(self.wait());
        // A tick that falls on the end of a wait is one.
        let waited = if is_put_off { self.not_before.minus(Duration::from_millis(1)) } else { now };
        tick_after(self.begun_at, self.window(), now.max(waited))
    }

    /// How long it waits after so many attempts in vain.
    fn wait(&self) -> Duration {
        let Some(doublings) = self.attempts.checked_sub(1) else { return Duration::ZERO };
        let doubled = 1_u32.checked_shl(doublings).unwrap_or(u32::MAX);
        self.window().saturating_mul(doubled).min(LONGEST_WAIT)
    }
}

/// What a subscriber has, by item.
///
/// # Errors
/// [`Error::Store`].
pub(crate) fn holdings(store: &Store, key: SubscriptionKey) -> Result<Holdings, Error> {
    let mut has = Holdings::new();
    for row in HOLDINGS.range(store, Range::under(&key)) {
        let ((_, item), of) = row?;
        has.insert(item, of);
    }
    Ok(has)
}

/// What a subscriber has of some items.
///
/// # Errors
/// [`Error::Store`].
pub(crate) fn holdings_of(
    rows: &impl Rows,
    key: SubscriptionKey,
    items: &BTreeSet<ItemId>,
) -> Result<Holdings, Error> {
    let mut has = Holdings::new();
    for item in items {
        if let Some(of) = HOLDINGS.get(rows, &(key, *item))? {
            has.insert(*item, of);
        }
    }
    Ok(has)
}

/// Writes down what a subscriber has of some items.
fn keep(
    w: &mut Writing<'_, '_>,
    key: SubscriptionKey,
    items: &BTreeSet<ItemId>,
    has: &Holdings,
) -> Result<(), Error> {
    for item in items {
        match has.get(item) {
            Some(of) => HOLDINGS.put(w.tx, &(key, *item), of)?,
            None => HOLDINGS.delete(w.tx, &(key, *item)),
        }
    }
    Ok(())
}

/// A subscription as it stands in a transaction, where it is not over.
///
/// # Errors
/// [`Error::NotFound`].
pub(crate) fn live(w: &Writing<'_, '_>, key: SubscriptionKey) -> Result<StoredSubscription, Error> {
    SUBSCRIPTIONS.get(w.tx, &key)?.filter(|row| row.ended.is_none()).ok_or(Error::NotFound)
}

/// Takes a subscription in. The same again changes nothing.
///
/// # Errors
/// [`Conflict::OtherSubscription`], [`Conflict::ManySubscriptions`].
pub(crate) fn begin(
    w: &mut Writing<'_, '_>,
    key: SubscriptionKey,
    new: StoredSubscription,
) -> Result<StoredSubscription, Error> {
    if let Some(row) = SUBSCRIPTIONS.get(w.tx, &key)? {
        let is_same = row.ended.is_none()
            && (row.window, &row.url, &row.grantee) == (new.window, &new.url, &new.grantee);
        return if is_same { Ok(row) } else { Err(Error::Conflict(Conflict::OtherSubscription)) };
    }
    let mut keys: BTreeSet<SubscriptionKey> =
        SUBSCRIPTIONS.keys(&w.gateway.store, Range::all()).collect::<Result<_, _>>()?;
    // Those of earlier transactions of the batch.
    keys.extend(SUBSCRIPTIONS.written(w.tx));
    let first = w.gateway.grant_book.first(key.0);
    let mut room = Room::default();
    for other in keys {
        let Some(row) = SUBSCRIPTIONS.get(w.tx, &other)? else { continue };
        let kin = if other.0 == key.0 {
            Kin::Same
        } else if w.gateway.grant_book.first(other.0) == first {
            Kin::SameFirst
        } else {
            Kin::None
        };
        room.count(kin, row.ended.map(|(_, at)| at), other);
    }
    if let Some(oldest) = room.made()? {
        SUBSCRIPTIONS.delete(w.tx, &oldest);
    }
    SUBSCRIPTIONS.put(w.tx, &key, &new)?;
    if new.url.is_some() {
        let (gateway, at) = (w.gateway.clone(), new.tick(w.now));
        w.tx.on_commit(move || gateway.subscriptions.plan(key, at));
    }
    Ok(new)
}

/// How the grant of another subscription is related to that of a new one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Kin {
    /// It is the same.
    Same,
    /// Both were made from one.
    SameFirst,
    None,
}

/// How much room there is for a new subscription.
#[derive(Debug, Default)]
struct Room {
    of_grant: usize,
    of_first: usize,
    all: usize,
    /// Those that are over.
    ended: Vec<(Kin, Timestamp, SubscriptionKey)>,
}

impl Room {
    fn count(&mut self, kin: Kin, ended: Option<Timestamp>, key: SubscriptionKey) {
        self.all += 1;
        self.of_first += usize::from(kin <= Kin::SameFirst);
        self.of_grant += usize::from(kin == Kin::Same);
        self.ended.extend(ended.map(|at| (kin, at, key)));
    }

    /// Which one goes, where there is none otherwise: one that is over, of the same grant first, the oldest first.
    fn made(mut self) -> Result<Option<SubscriptionKey>, Error> {
        let nearest = if self.of_grant >= MAX_PER_GRANT {
            Kin::Same
        } else if self.of_first >= MAX_PER_FIRST {
            Kin::SameFirst
        } else if self.all >= MAX_SUBSCRIPTIONS {
            Kin::None
        } else {
            return Ok(None);
        };
        self.ended.sort_unstable();
        let (.., oldest) = self
            .ended
            .first()
            .filter(|(kin, ..)| *kin <= nearest)
            .ok_or(Error::Conflict(Conflict::ManySubscriptions))?;
        Ok(Some(*oldest))
    }
}

/// Notes what a push sends, in the transaction of its receipt: its subscriber may have it from here on.
pub(crate) fn sends(w: &mut Writing<'_, '_>, key: SubscriptionKey, underway: Vec<Sent>) -> Result<(), Error> {
    let mut row = live(w, key)?;
    let Some(sent) = underway.last().filter(|sent| sent.sequence == row.sequence.saturating_add(1)) else {
        return Err(Error::Overtaken);
    };
    let named: BTreeSet<ItemId> = sent.named().collect();
    let mut has = holdings_of(w.tx, key, &named)?;
    sent.leaves(&mut has);
    keep(w, key, &named, &has)?;
    row.sequence = sent.sequence;
    row.underway = underway;
    Ok(SUBSCRIPTIONS.put(w.tx, &key, &row)?)
}

/// A subscriber said that every push up to this one came. What was sent after it may have come or not.
pub(crate) fn acknowledge(w: &mut Writing<'_, '_>, key: SubscriptionKey, sequence: u64) -> Result<(), Error> {
    let mut row = live(w, key)?;
    let underway = std::mem::take(&mut row.underway);
    let named: BTreeSet<ItemId> = underway.iter().flat_map(Sent::named).collect();
    let mut has = holdings_of(w.tx, key, &named)?;
    changes::acknowledge(&mut has, &underway, sequence);
    keep(w, key, &named, &has)?;
    if let Some(last) = underway.iter().rfind(|sent| sent.sequence <= sequence) {
        row.acknowledged = last.sequence;
        row.acknowledged_at = Some(w.now);
        (row.attempts, row.failing_since, row.failure) = (0, None, None);
        row.not_before = w.now;
    }
    Ok(SUBSCRIPTIONS.put(w.tx, &key, &row)?)
}

/// An attempt came to nothing: it is made again at a later tick, or has been for as long as anything is.
pub(crate) fn put_off(
    w: &mut Writing<'_, '_>,
    key: SubscriptionKey,
    failure: PushFailure,
    at_least: u64,
) -> Result<(), Error> {
    let mut row = live(w, key)?;
    let since = *row.failing_since.get_or_insert(w.now);
    if since.plus(retry::TRIED_FOR) <= w.now {
        return end(w, key, EndedBy::Silence);
    }
    row.attempts = row.attempts.saturating_add(1);
    row.failure = Some(failure);
    if failure == PushFailure::Behind {
        // It took what is not known here to have been sent, as after a restored backup: nothing that it has is sure.
        for (item, of) in holdings(&w.gateway.store, key)? {
            HOLDINGS.put(w.tx, &(key, item), &of.doubted())?;
        }
        row.sequence = row.sequence.max(at_least);
    }
    row.underway.clear();
    row.not_before = w.now.plus(row.wait());
    Ok(SUBSCRIPTIONS.put(w.tx, &key, &row)?)
}

/// The subscriptions that the owner ended, as far as they are kept.
///
/// # Errors
/// [`Error::Store`].
pub(crate) fn ended_by_owner(store: &Store) -> Result<Vec<Unsubscribed>, Error> {
    let mut ended = Vec::new();
    for row in SUBSCRIPTIONS.scan(store) {
        let ((grant, subscription), row) = row?;
        if row.ended.is_some_and(|(by, _)| by == EndedBy::Granter) {
            ended.push(Unsubscribed { subscription, grant: Some(grant) });
        }
    }
    for row in LISTENING.scan(store) {
        let (subscription, row) = row?;
        // Without a reason it is of before there were any.
        let by = LISTENING_ENDS.get(store, &subscription)?.unwrap_or(HeldEnd::Owner);
        if row.ended_at.is_some() && by == HeldEnd::Owner {
            ended.push(Unsubscribed { subscription, grant: None });
        }
    }
    Ok(ended)
}

/// Ends a subscription; what its subscriber has is forgotten. What its owner ended comes back with no backup.
pub(crate) fn end(w: &mut Writing<'_, '_>, key: SubscriptionKey, by: EndedBy) -> Result<(), Error> {
    let mut row = live(w, key)?;
    row.ended = Some((by, w.now));
    if by == EndedBy::Granter {
        w.ended.subscriptions.push(Unsubscribed { subscription: key.1, grant: Some(key.0) });
    }
    row.underway.clear();
    let gateway = w.gateway.clone();
    let mut has: BTreeSet<ItemId> = holdings(&gateway.store, key)?.into_keys().collect();
    has.extend(HOLDINGS.written(w.tx).into_iter().filter(|(of, _)| *of == key).map(|(_, item)| item));
    for item in has {
        HOLDINGS.delete(w.tx, &(key, item));
    }
    SUBSCRIPTIONS.put(w.tx, &key, &row)?;
    w.tx.on_commit(move || gateway.subscriptions.forget(key));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(n: u8) -> SubscriptionKey {
        (Hash::from_bytes([n; 32]), SubscriptionId::from_bytes([n; 16]))
    }

    /// What is over makes room: nearest first, and never for another's bound.
    #[test]
    fn room_is_made_by_what_is_over() {
        let at = Timestamp::from_millis;
        let room = |of: &[(Kin, usize)], ended: &[(Kin, i64, u8)]| {
            let mut room = Room::default();
            for (kin, count) in of {
                (0..*count).for_each(|_| room.count(*kin, None, key(0)));
            }
            ended.iter().for_each(|(kin, time, n)| room.count(*kin, Some(at(*time)), key(*n)));
            room.made().ok()
        };
        let (same, kin, none) = (Kin::Same, Kin::SameFirst, Kin::None);
        assert_eq!(room(&[(same, MAX_PER_GRANT - 1)], &[]), Some(None));
        assert_eq!(room(&[(same, MAX_PER_GRANT)], &[(kin, 1, 1), (none, 1, 2)]), None);
        assert_eq!(room(&[(same, MAX_PER_GRANT - 1)], &[(same, 2, 1), (none, 1, 2)]), Some(Some(key(1))));
        assert_eq!(room(&[(kin, MAX_PER_FIRST - 1)], &[]), Some(None));
        assert_eq!(room(&[(kin, MAX_PER_FIRST)], &[(none, 1, 2)]), None);
        assert_eq!(
            room(&[(kin, MAX_PER_FIRST)], &[(kin, 3, 1), (kin, 2, 3), (none, 1, 2)]),
            Some(Some(key(3)))
        );
        assert_eq!(room(&[(none, MAX_SUBSCRIPTIONS)], &[]), None);
        assert_eq!(room(&[(none, MAX_SUBSCRIPTIONS)], &[(none, 1, 2)]), Some(Some(key(2))));
    }
}

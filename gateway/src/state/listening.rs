//! Subscriptions of this owner's to the memory of others: what was taken of their pushes (protocol section 17).

use crate::error::{Conflict, Error};
use crate::state::commits::Writing;
use crate::state::put_off::is_recent;
use crate::state::schema::{LISTENING, LISTENING_ENDS, WALLET};
use oap_federation::push::Push;
use oap_identity::{Did, Hash, ItemId, SubscriptionId, Timestamp};
use oap_store::Range;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

pub use crate::api::subscriptions::HeldEnd;

/// Most subscriptions of the owner's own, those that are over included; the oldest of these makes room.
pub const MAX_LISTENING: usize = 1_000;

/// Most items that are remembered of pushes whose reply may have been lost.
pub const MAX_UNSETTLED: usize = 1_000;

/// After how long in which nothing was heard of a subscription its granter's gateway is asked whether it stands, and how often.
pub const ASKED_EVERY: Duration = Duration::from_secs(86_400);

/// When it is asked again where it did not answer.
pub const ASKED_AGAIN: Duration = Duration::from_secs(3600);

/// A subscription of this owner's, as it is stored.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct StoredListening {
    /// The hash of the grant.
    pub(crate) grant: Hash,
    pub(crate) granter: Did,
    pub(crate) window: u32,
    pub(crate) made_at: Timestamp,
    /// When its granter's gateway took it; none where that is asked still.
    pub(crate) begun_at: Option<Timestamp>,
    /// The number of the last push that was taken: only a higher one is.
    pub(crate) sequence: u64,
    pub(crate) heard_at: Option<Timestamp>,
    /// Items that came, in all pushes together.
    pub(crate) came: u64,
    /// Those that changed.
    pub(crate) changed: u64,
    /// Those that left.
    pub(crate) left: u64,
    /// What was taken that the granter may not know of, the newest last: each item with the hash of its chain, none where it left. It is
    /// sent again, and counted once.
    pub(crate) unsettled: Vec<(ItemId, Option<Hash>)>,
    /// Since when it is over.
    pub(crate) ended_at: Option<Timestamp>,
}

impl StoredListening {
    /// Whether its granter's gateway was not heard of for so long that it is asked whether the subscription stands.
    pub(crate) fn is_silent(&self, now: Timestamp) -> bool {
        let heard = [self.begun_at, self.heard_at];
        !heard.into_iter().flatten().any(|at| is_recent(at, ASKED_EVERY, now))
    }

    /// Counts what a push says became of items. `shown` has the hashes of the chains of those that came or changed.
    pub(crate) fn count(&mut self, push: &Push, shown: &BTreeMap<ItemId, Hash>, now: Timestamp) {
        if push.after >= self.sequence {
            self.unsettled.clear();
        }
        let came = push.changes.came.iter().chain(&push.changes.changed);
        let came = came.map(|item| (*item, shown.get(item).copied()));
        for (item, state) in came.chain(push.changes.left.iter().map(|item| (*item, None))) {
            let before = self.unsettled.iter().position(|(known, _)| *known == item);
            let before = before.map(|place| self.unsettled.remove(place).1);
            let count = match (before, state) {
                (Some(before), state) if before == state => None,
                (_, None) => Some(&mut self.left),
                (Some(Some(_)), Some(_)) => Some(&mut self.changed),
                _ if push.changes.changed.contains(&item) => Some(&mut self.changed),
                _ => Some(&mut self.came),
            };
            if let Some(count) = count {
                *count = count.saturating_add(1);
            }
            self.unsettled.push((item, state));
        }
        let too_many = self.unsettled.len().saturating_sub(MAX_UNSETTLED);
        self.unsettled.drain(..too_many);
        self.sequence = push.sequence;
        self.heard_at = Some(now);
    }
}

/// Puts a new subscription down.
///
/// # Errors
/// [`Conflict::ManySubscriptions`].
pub(crate) fn put(w: &mut Writing<'_, '_>, id: SubscriptionId, new: &StoredListening) -> Result<(), Error> {
    let mut ids: BTreeSet<SubscriptionId> =
        LISTENING.keys(&w.gateway.store, Range::all()).collect::<Result<_, _>>()?;
    // Those of earlier transactions of the batch.
    ids.extend(LISTENING.written(w.tx));
    let (mut all, mut oldest) = (0, None);
    for id in ids {
        let Some(row) = LISTENING.get(w.tx, &id)? else { continue };
        all += 1;
        if let Some(at) = row.ended_at {
            oldest = Some(oldest.map_or((at, id), |oldest| (at, id).min(oldest)));
        }
    }
    if all >= MAX_LISTENING {
        let (_, oldest) = oldest.ok_or(Error::Conflict(Conflict::ManySubscriptions))?;
        LISTENING.delete(w.tx, &oldest);
        LISTENING_ENDS.delete(w.tx, &oldest);
    }
    Ok(LISTENING.put(w.tx, &id, new)?)
}

/// Ends one, where it is not over.
pub(crate) fn end(
    w: &mut Writing<'_, '_>,
    id: SubscriptionId,
    by: HeldEnd,
) -> Result<StoredListening, Error> {
    let mut row = LISTENING.get(w.tx, &id)?.ok_or(Error::NotFound)?;
    if row.ended_at.is_none() {
        row.ended_at = Some(w.now);
        LISTENING.put(w.tx, &id, &row)?;
        LISTENING_ENDS.put(w.tx, &id, &by)?;
    }
    Ok(row)
}

/// Ends one under whose grant nothing is taken, where it is not over; why, is what the wallet says of that grant.
pub(crate) fn end_with_grant(w: &mut Writing<'_, '_>, id: SubscriptionId) -> Result<StoredListening, Error> {
    let row = LISTENING.get(w.tx, &id)?.ok_or(Error::NotFound)?;
    let by = match WALLET.get(w.tx, &row.grant)? {
        None => HeldEnd::Removed,
        Some(received) if received.revoked_at.is_some() => HeldEnd::Revoked,
        Some(received) if received.document()?.1.expires_at <= w.now => HeldEnd::Expired,
        Some(_) => HeldEnd::Void,
    };
    end(w, id, by)
}

#[cfg(test)]
mod tests {
    use super::*;
    use oap_federation::push::Changes;
    use serde_json::Value;

    fn item(n: u8) -> ItemId {
        ItemId::from_bytes([n; 16])
    }

    fn push(sequence: u64, after: u64, came: &[u8], changed: &[u8], left: &[u8]) -> Push {
        let ids = |of: &[u8]| of.iter().map(|n| item(*n)).collect();
        Push {
            oap: "1.0".to_owned(),
            kind: "push".to_owned(),
            subscription: SubscriptionId::from_bytes([1; 16]),
            sequence,
            after,
            changes: Changes { came: ids(came), changed: ids(changed), left: ids(left) },
            more: false,
            answer: Value::Null,
        }
    }

    /// A push whose reply was lost is made again, and what it says is counted once.
    #[test]
    fn what_is_sent_again_is_counted_once() {
        let at = Timestamp::from_millis(1);
        let mut row = StoredListening {
            grant: Hash::of(b"grant"),
            granter: "did:web:a.example".parse().unwrap(),
            window: 60,
            made_at: at,
            begun_at: None,
            sequence: 0,
            heard_at: None,
            came: 0,
            changed: 0,
            left: 0,
            unsettled: Vec::new(),
            ended_at: None,
        };
        let chain = |n: u8, state: u8| (item(n), Hash::of(&[n, state]));
        let mut take = |push: Push, shown: &[(ItemId, Hash)]| {
            row.count(&push, &shown.iter().copied().collect(), at);
            (row.sequence, row.came, row.changed, row.left)
        };
        assert_eq!(take(push(1, 0, &[1, 2], &[], &[]), &[chain(1, 0), chain(2, 0)]), (1, 2, 0, 0));
        // The reply was lost: the same again with what came since, and one of them changed.
        let again = take(push(2, 0, &[1, 2, 3], &[], &[]), &[chain(1, 0), chain(2, 1), chain(3, 0)]);
        assert_eq!(again, (2, 3, 1, 0));
        // Known to have come: what it says of them now is new.
        assert_eq!(take(push(3, 2, &[], &[1], &[2]), &[chain(1, 0)]), (3, 3, 2, 1));
        assert_eq!(take(push(4, 2, &[], &[1], &[2]), &[chain(1, 0)]), (4, 3, 2, 1));
    }
}

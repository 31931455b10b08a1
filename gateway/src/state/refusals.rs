//! How much callers may leave behind in a minute.
//!
//! A grantee, or anybody without a token, could otherwise fill the owner's disk or use up the machine. What is counted is counted
//! for all the grants that were made from one by delegation together, under the hash of the first: a grantee who makes a hundred
//! others has no more than one. What is beyond a bound is answered 429 and leaves nothing.

use crate::error::Error;
use oap_identity::{Did, Hash, Timestamp};
use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// Most refusals under one grant that leave a receipt, per minute. Beyond it: 429 without a receipt.
pub const MAX_REFUSALS: u32 = 30;
/// Most requests under one grant that fail, per minute; each leaves a used proof. Beyond it: 429, and the proof is not used.
pub const MAX_FAILED: u32 = 300;
/// Most exchanges of one grant, and those made from it, for a token, per minute. Beyond it: 429 without a receipt.
pub const MAX_EXCHANGES: u32 = 60;
/// Most questions of the log under one grant, per minute. Beyond it: 429.
pub const MAX_AUDITS: u32 = 60;
/// Most requests of one of the owner's agents, per minute. Beyond it: 429 without a receipt.
pub const MAX_AGENT_REQUESTS: u32 = 600;
/// Most entries that one of the owner's agents writes in batches, per minute. Beyond it: 429 without a receipt.
pub const MAX_AGENT_ENTRIES: u32 = 3000;
/// Most receipts that all anonymous callers together leave, per minute. Beyond it: 429 without a receipt.
pub const MAX_ANONYMOUS_RECEIPTS: u32 = 600;
/// Most letters of one DID that are taken, per minute. Beyond it: 429.
pub const MAX_LETTERS: u32 = 60;
/// Most pushes of one subscription of the owner's whose granter is proved, per minute; six are as many as there can be. Beyond it: 429.
pub const MAX_PUSHES: u32 = 30;
const MINUTE: i64 = 60;

/// What is counted under a grant, or under an agent of the owner's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[allow(missing_docs, reason = "the names say it")]
pub enum Counted {
    /// A refusal that leaves a receipt.
    Refusal,
    /// A request that failed.
    Failed,
    Exchange,
    /// A question of the log.
    Audit,
    /// A request of an agent of the owner's, counted under the hash of its DID.
    Agent,
    /// An entry of a batch, counted as a request of an agent is; once more where it was begun anew.
    Entry,
    /// A letter of another gateway's, counted under the hash of its sender's DID.
    Letter,
    /// A push of another gateway's, counted under the hash of the name of its subscription.
    Push,
}

impl Counted {
    const fn most(self) -> u32 {
        match self {
            Self::Refusal => MAX_REFUSALS,
            Self::Failed => MAX_FAILED,
            Self::Exchange => MAX_EXCHANGES,
            Self::Audit => MAX_AUDITS,
            Self::Agent => MAX_AGENT_REQUESTS,
            Self::Entry => MAX_AGENT_ENTRIES,
            Self::Letter => MAX_LETTERS,
            Self::Push => MAX_PUSHES,
        }
    }
}

/// What was counted in the running minute.
#[derive(Debug, Default)]
pub struct Refusals(Mutex<Minute>);

#[derive(Debug, Default)]
struct Minute {
    number: i64,
    grants: BTreeMap<(Hash, Counted), u32>,
    anonymous: u32,
}

impl Refusals {
    /// Counts one more under a first grant, and says whether it is within the bound.
    pub fn admit(&self, what: Counted, first: Hash, now: Timestamp) -> bool {
        self.admit_all(what, first, 1, now)
    }

    /// Counts so many more, and says whether all of them are within the bound.
    pub fn admit_all(&self, what: Counted, first: Hash, more: usize, now: Timestamp) -> bool {
        self.within(now, |minute| {
            let count = minute.grants.entry((first, what)).or_default();
            *count = count.saturating_add(u32::try_from(more).unwrap_or(u32::MAX));
            *count <= what.most()
        })
    }

    /// Counts so many more of something that an agent does.
    ///
    /// # Errors
    /// [`Error::RateLimited`].
    pub(crate) fn charge(
        &self,
        what: Counted,
        agent: &Did,
        count: usize,
        now: Timestamp,
    ) -> Result<(), Error> {
        let is_within = self.admit_all(what, Hash::of(agent.as_str().as_bytes()), count, now);
        if is_within { Ok(()) } else { Err(Error::RateLimited(Self::anew(now))) }
    }

    /// Whether one more would be within the bound.
    pub fn has_room(&self, what: Counted, first: Hash, now: Timestamp) -> bool {
        self.within(now, |minute| minute.grants.get(&(first, what)).is_none_or(|count| *count < what.most()))
    }

    /// Whether one more call of an anonymous caller leaves a receipt.
    pub fn admit_anonymous(&self, now: Timestamp) -> bool {
        self.within(now, |minute| {
            minute.anonymous = minute.anonymous.saturating_add(1);
            minute.anonymous <= MAX_ANONYMOUS_RECEIPTS
        })
    }

    /// How long until everything is counted anew.
    #[must_use]
    pub fn anew(now: Timestamp) -> Duration {
        let minute = MINUTE * 1000;
        Duration::from_millis(u64::try_from(minute - now.millis().rem_euclid(minute)).unwrap_or_default())
    }

    fn within<T>(&self, now: Timestamp, count: impl FnOnce(&mut Minute) -> T) -> T {
        let mut minute = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let number = now.seconds().div_euclid(MINUTE);
        if minute.number != number {
            *minute = Minute { number, ..Minute::default() };
        }
        count(&mut minute)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_grant_has_its_own_minute() {
        let (refusals, now) = (Refusals::default(), Timestamp::from_seconds(1_777_636_800));
        let (one, other) = (Hash::of(b"one"), Hash::of(b"other"));
        for what in [
            Counted::Refusal,
            Counted::Failed,
            Counted::Exchange,
            Counted::Audit,
            Counted::Agent,
            Counted::Entry,
            Counted::Letter,
            Counted::Push,
        ] {
            assert!(
                (0..what.most())
                    .all(|_| { refusals.has_room(what, one, now) && refusals.admit(what, one, now) })
            );
            assert!(!refusals.has_room(what, one, now) && !refusals.admit(what, one, now));
            assert!(refusals.has_room(what, other, now) && refusals.admit(what, other, now));
        }
        let (middle, later) = (now.plus(Duration::from_millis(59_999)), now.plus(Refusals::anew(now)));
        assert!(!refusals.has_room(Counted::Failed, one, middle));
        assert_eq!(Refusals::anew(middle), Duration::from_millis(1));
        assert!(refusals.has_room(Counted::Failed, one, later));
    }

    #[test]
    fn anonymous_callers_share_a_minute() {
        let (refusals, now) = (Refusals::default(), Timestamp::from_seconds(1_777_636_800));
        assert!((0..MAX_ANONYMOUS_RECEIPTS).all(|_| refusals.admit_anonymous(now)));
        assert!(!refusals.admit_anonymous(now));
        assert!(refusals.admit_anonymous(now.plus(Duration::from_secs(60))));
    }
}

//! How much a caller who gets nothing may leave behind.
//!
//! A grantee with a token that is good for nothing any more, or anybody without one, could otherwise fill the owner's
//! disk. The first [`MAX_REFUSALS`] refusals of a grantee leave a receipt each in a minute; those after them are answered
//! 429 and leave none. After [`MAX_FAILED`] requests that failed, whatever for, a grantee's proofs are not even looked
//! up. What anonymous callers may ask for leaves at most [`MAX_ANONYMOUS_RECEIPTS`] receipts.

use oap_identity::{Did, Timestamp};
use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

/// Most refusals of one grantee that leave a receipt, per minute. Beyond it: 429 without a receipt.
pub const MAX_REFUSALS: u32 = 30;
/// Most requests of one grantee that fail, per minute; each leaves a used proof. Beyond it: 429, and the proof is not used.
pub const MAX_FAILED: u32 = 300;
/// Most receipts that all anonymous callers together leave, per minute. Beyond it: 429 without a receipt.
pub const MAX_ANONYMOUS_RECEIPTS: u32 = 600;
const MINUTE: i64 = 60;

/// What was counted in the running minute.
#[derive(Debug, Default)]
pub struct Refusals(Mutex<Minute>);

#[derive(Debug, Default)]
struct Minute {
    number: i64,
    grantees: BTreeMap<Did, Counts>,
    anonymous: u32,
}

#[derive(Debug, Default)]
struct Counts {
    refused: u32,
    failed: u32,
}

impl Refusals {
    /// Whether one more refusal of a grantee leaves a receipt.
    pub fn admit(&self, grantee: &Did, now: Timestamp) -> bool {
        self.within(now, |minute| {
            let refused = &mut minute.grantees.entry(grantee.clone()).or_default().refused;
            *refused = refused.saturating_add(1);
            *refused <= MAX_REFUSALS
        })
    }

    /// Counts a grantee's request that failed.
    pub fn failed(&self, grantee: &Did, now: Timestamp) {
        self.within(now, |minute| {
            let failed = &mut minute.grantees.entry(grantee.clone()).or_default().failed;
            *failed = failed.saturating_add(1);
        });
    }

    /// Whether a grantee may present one more proof.
    pub fn may_try(&self, grantee: &Did, now: Timestamp) -> bool {
        self.within(now, |minute| {
            minute.grantees.get(grantee).is_none_or(|counts| counts.failed < MAX_FAILED)
        })
    }

    /// Whether one more call of an anonymous caller leaves a receipt.
    pub fn admit_anonymous(&self, now: Timestamp) -> bool {
        self.within(now, |minute| {
            minute.anonymous = minute.anonymous.saturating_add(1);
            minute.anonymous <= MAX_ANONYMOUS_RECEIPTS
        })
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
    use std::time::Duration;

    #[test]
    fn each_grantee_has_its_own_minute() {
        let (refusals, now) = (Refusals::default(), Timestamp::from_seconds(1_777_636_800));
        let (one, other): (Did, Did) =
            ("did:web:one.example".parse().unwrap(), "did:web:other.example".parse().unwrap());
        assert!((0..MAX_REFUSALS).all(|_| refusals.admit(&one, now)));
        assert!(!refusals.admit(&one, now));
        assert!(refusals.admit(&other, now));
        assert!(refusals.admit(&one, now.plus(Duration::from_secs(60))));
        let now = now.plus(Duration::from_secs(120));
        (0..MAX_FAILED).for_each(|_| {
            assert!(refusals.may_try(&one, now));
            refusals.failed(&one, now);
        });
        assert!(!refusals.may_try(&one, now) && refusals.may_try(&other, now));
        assert!(refusals.may_try(&one, now.plus(Duration::from_secs(60))));
    }

    #[test]
    fn anonymous_callers_share_a_minute() {
        let (refusals, now) = (Refusals::default(), Timestamp::from_seconds(1_777_636_800));
        assert!((0..MAX_ANONYMOUS_RECEIPTS).all(|_| refusals.admit_anonymous(now)));
        assert!(!refusals.admit_anonymous(now));
        assert!(refusals.admit_anonymous(now.plus(Duration::from_secs(60))));
    }
}

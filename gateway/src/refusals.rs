//! How many refusals of a grantee leave a receipt.
//!
//! A grantee with a token that is good for nothing any more could otherwise fill the owner's disk. The first
//! [`MAX_REFUSALS`] of a minute leave one each; those after them are answered 429 and leave none.

use oap_identity::{Did, Timestamp};
use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

/// Most refusals of one grantee that leave a receipt, per minute. Beyond it: 429 without a receipt.
pub const MAX_REFUSALS: u32 = 30;
const MINUTE: i64 = 60;

/// The refusals of the running minute, by grantee.
#[derive(Debug, Default)]
pub struct Refusals(Mutex<Minute>);

#[derive(Debug, Default)]
struct Minute {
    number: i64,
    counts: BTreeMap<Did, u32>,
}

impl Refusals {
    /// Whether one more refusal of a grantee leaves a receipt.
    pub fn admit(&self, grantee: &Did, now: Timestamp) -> bool {
        let mut minute = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let number = now.seconds().div_euclid(MINUTE);
        if minute.number != number {
            *minute = Minute { number, counts: BTreeMap::new() };
        }
        let count = minute.counts.entry(grantee.clone()).or_default();
        *count = count.saturating_add(1);
        *count <= MAX_REFUSALS
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
    }
}

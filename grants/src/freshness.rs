//! When a proof is fresh: the one rule for its check, and for how long its use must be remembered.

use oap_identity::Timestamp;
use oap_identity::time::MAX_SKEW;
use std::time::Duration;

/// The seconds in which a proof is fresh, first and last included: from its making to its end, with the clocks of both sides
/// apart by [`MAX_SKEW`] either way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Freshness {
    first: i64,
    last: i64,
}

impl Freshness {
    /// Of a proof that was made at `iat` and ends at `exp`, in seconds since 1970; `None` where its life is longer than
    /// `most` seconds, or negative.
    #[must_use]
    pub const fn of(iat: i64, exp: i64, most: i64) -> Option<Self> {
        let skew = MAX_SKEW.as_secs().cast_signed();
        match exp.checked_sub(iat) {
            Some(life) if 0 <= life && life <= most => {
                Some(Self { first: iat.saturating_sub(skew), last: exp.saturating_add(skew) })
            }
            _ => None,
        }
    }

    /// Whether a time is within it.
    #[must_use]
    pub const fn contains(self, now: Timestamp) -> bool {
        self.first <= now.seconds() && now.seconds() <= self.last
    }
}

/// Whether a time lies within what a proof says of itself: from `nbf` on, and before `exp`, in seconds since 1970, with the
/// clocks of both sides apart by [`MAX_SKEW`] either way. What is not said does not restrict.
#[must_use]
pub const fn holds(nbf: Option<i64>, exp: Option<i64>, now: Timestamp) -> bool {
    let (skew, now) = (MAX_SKEW.as_secs().cast_signed(), now.seconds());
    let begun = match nbf {
        Some(nbf) => nbf.saturating_sub(skew) <= now,
        None => true,
    };
    let lasts = match exp {
        Some(exp) => now < exp.saturating_add(skew),
        None => true,
    };
    begun && lasts
}

/// For how long a proof may stay fresh whose life is `life` seconds at most, from the first moment to the end of the last
/// second: as long as its use must be remembered.
#[must_use]
pub const fn longest(life: i64) -> Duration {
    Duration::from_secs(2 * MAX_SKEW.as_secs() + life.cast_unsigned() + 1)
}

/// How long the use of any proof is remembered.
pub const REMEMBERED: Duration = longest(crate::exchange::MAX_LIFE);

// A DPoP proof has no end of its own: it is fresh around its making alone.
const _: () = assert!(REMEMBERED.as_secs() >= longest(0).as_secs());

#[cfg(test)]
mod tests {
    use super::*;

    /// Whatever the life of a proof is: used at its first fresh moment, it is remembered at its last.
    #[test]
    fn no_proof_is_fresh_after_it_is_forgotten() {
        for life in [0, 1, 59, crate::exchange::MAX_LIFE] {
            let fresh = Freshness::of(1_000_000, 1_000_000 + life, crate::exchange::MAX_LIFE).unwrap();
            let moments = || (998_000_000..1_002_000_000).step_by(999).map(Timestamp::from_millis);
            let first = moments().find(|at| fresh.contains(*at)).unwrap();
            let last = moments().filter(|at| fresh.contains(*at)).last().unwrap();
            assert!(last.millis() - first.millis() < i64::try_from(longest(life).as_millis()).unwrap());
            assert!(last < first.plus(REMEMBERED));
        }
    }

    #[test]
    fn a_life_is_bounded() {
        assert_eq!(Freshness::of(100, 161, 60), None);
        assert_eq!(Freshness::of(100, 99, 60), None);
        assert_eq!(Freshness::of(i64::MIN, i64::MAX, 60), None);
        assert!(Freshness::of(i64::MAX, i64::MAX, 60).is_some());
    }
}

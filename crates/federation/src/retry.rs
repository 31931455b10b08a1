//! When a letter that did not arrive is sent again: later each time, and not with everybody else.

use oap_identity::random::{self, Random};
use std::time::Duration;

/// The wait after the first attempt.
pub const FIRST: Duration = Duration::from_secs(1);
/// The longest wait between two attempts.
pub const LONGEST: Duration = Duration::from_secs(6 * 3600);
/// How long a letter is tried.
pub const TRIED_FOR: Duration = Duration::from_secs(30 * 86_400);

/// How long to wait after so many attempts: twice as long each time, from [`FIRST`] to [`LONGEST`], and of that a random part
/// between half and all.
#[must_use]
pub fn wait(attempts: u32, random: &dyn Random) -> Duration {
    let doubled = 1_u32.checked_shl(attempts.saturating_sub(1)).unwrap_or(u32::MAX);
    let whole = FIRST.saturating_mul(doubled).min(LONGEST);
    let part = u32::from(u16::from_be_bytes(random::bytes::<2>(random)));
    whole / 2 + (whole / 2).saturating_mul(part) / u32::from(u16::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use oap_identity::random::Seeded;

    #[test]
    fn waits_grow_within_their_bounds() {
        let random = Seeded::new(1);
        for attempts in 0..200 {
            let wait = wait(attempts, &random);
            let whole = Duration::from_secs(1_u64 << attempts.saturating_sub(1).min(20)).min(LONGEST);
            assert!(wait >= whole / 2 && wait <= whole, "{attempts}: {wait:?}");
        }
    }
}

//! When a peer is looked at again: when what it published may not be kept any longer, within bounds; after a failure sooner at
//! first, and later each time.

use std::time::Duration;

/// The shortest time between two looks at a peer, whatever it says.
pub const SHORTEST: Duration = Duration::from_secs(60);
/// The longest time between two looks at a peer, whatever it says.
pub const LONGEST: Duration = Duration::from_secs(86_400);
/// The time until the next look at a peer that says nothing.
pub const USUAL: Duration = Duration::from_secs(3600);

/// The time until the next look at a peer whose documents may be kept so long; `None` where it does not say.
#[must_use]
pub fn after(kept: Option<Duration>) -> Duration {
    kept.unwrap_or(USUAL).clamp(SHORTEST, LONGEST)
}

/// The time until the next look at a peer that was looked at in vain so many times: a minute, then twice as long each time, up
/// to a day.
#[must_use]
pub fn after_failures(times: u32) -> Duration {
    let doubled = 1_u32.checked_shl(times.saturating_sub(1)).unwrap_or(u32::MAX);
    SHORTEST.saturating_mul(doubled).min(LONGEST)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn looks_are_within_their_bounds() {
        let seconds = |kept: Option<u64>| after(kept.map(Duration::from_secs)).as_secs();
        assert_eq!([None, Some(0), Some(59), Some(600)].map(seconds), [3600, 60, 60, 600]);
        assert_eq!([Some(86_400), Some(86_401), Some(u64::from(u32::MAX))].map(seconds), [86_400; 3]);
        let failures = |times| after_failures(times).as_secs();
        assert_eq!(
            [0, 1, 2, 3, 11, 12, 33, u32::MAX].map(failures),
            [60, 60, 120, 240, 61_440, 86_400, 86_400, 86_400]
        );
    }
}

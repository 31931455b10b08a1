//! What is done again after a while, and until when each is put off: in memory alone.

use oap_identity::Timestamp;
use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Until when each thing is put off, by its name.
pub(crate) struct PutOff<K> {
    until: Mutex<BTreeMap<K, Timestamp>>,
    /// Until when all is put off that was not done since the start: who starts often asks nobody the more.
    first: Timestamp,
    /// The longest that anything is put off.
    longest: Duration,
}

impl<K: Ord> PutOff<K> {
    pub(crate) const fn new(longest: Duration, first: Timestamp) -> Self {
        Self { until: Mutex::new(BTreeMap::new()), first, longest }
    }

    /// Whether a thing may be done by now. What a clock that stood ahead has put off is due by the one that is right.
    pub(crate) fn is_due(&self, name: &K, now: Timestamp) -> bool {
        let until = self.until().get(name).copied().unwrap_or(self.first);
        until <= now || until > now.plus(self.longest)
    }

    /// Puts a thing off for a while, at most the longest.
    pub(crate) fn put_off(&self, name: K, now: Timestamp, by: Duration) {
        self.until().insert(name, now.plus(by.min(self.longest)));
    }

    /// Forgets what is not to be done any more.
    pub(crate) fn retain(&self, is_there: impl Fn(&K) -> bool) {
        self.until().retain(|name, _| is_there(name));
    }

    fn until(&self) -> MutexGuard<'_, BTreeMap<K, Timestamp>> {
        self.until.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether something was so lately: within a while before now. What a clock wrote down that stood ahead is not.
pub(crate) fn is_recent(at: Timestamp, within: Duration, now: Timestamp) -> bool {
    at <= now && now < at.plus(within)
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: Duration = Duration::from_secs(3600);

    #[test]
    fn a_thing_is_put_off_for_as_long_as_was_said() {
        let (now, of) =
            (Timestamp::from_seconds(1_000_000), PutOff::new(HOUR, Timestamp::from_seconds(1_000_000)));
        assert!(of.is_due(&1, now));
        of.put_off(1, now, HOUR / 2);
        assert!(of.is_due(&2, now) && !of.is_due(&1, now));
        let later = now.plus(HOUR / 2);
        assert!(!of.is_due(&1, later.minus(Duration::from_millis(1))) && of.is_due(&1, later));
        of.put_off(1, now, 2 * HOUR);
        assert!(!of.is_due(&1, later) && of.is_due(&1, now.plus(HOUR)));
        of.retain(|name| *name != 1);
        assert!(of.is_due(&1, later));
    }

    #[test]
    fn what_was_not_done_since_the_start_is_put_off() {
        let now = Timestamp::from_seconds(1_000_000);
        let of = PutOff::new(HOUR, now.plus(HOUR / 2));
        assert!(!of.is_due(&1, now) && of.is_due(&1, now.plus(HOUR / 2)));
    }

    /// The clock stood a day ahead, and was set right.
    #[test]
    fn a_clock_that_stood_ahead_puts_nothing_off() {
        let (now, of) =
            (Timestamp::from_seconds(1_000_000), PutOff::new(HOUR, Timestamp::from_seconds(1_000_000)));
        let ahead = now.plus(24 * HOUR);
        of.put_off(1, ahead, HOUR);
        assert!(!of.is_due(&1, ahead) && of.is_due(&1, now));
        assert!(!is_recent(ahead, HOUR, now));
        assert!(is_recent(now, HOUR, now) && !is_recent(now, HOUR, now.plus(HOUR)));
    }
}

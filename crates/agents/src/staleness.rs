//! After how long something is worth asking about again (Trails ADR-0051 6).

use crate::level::EXTENSION;
use oap_identity::Timestamp;
use oap_memory::closed_enum;
use serde_json::{Map, Value};
use std::time::Duration;

closed_enum! {
    /// How long what an item says can be relied on. It hides nothing: what is stale is marked, until a compaction takes it back.
    Staleness {
        /// Always.
        Stable = "stable",
        /// For a week.
        Weekly = "weekly",
        /// For a day.
        Daily = "daily",
        /// For an hour.
        Hourly = "hourly",
        /// Not at all beyond what is going on.
        Volatile = "volatile",
    }
}

impl Staleness {
    /// What an item's writer said of it.
    #[must_use]
    pub fn of(item: &Map<String, Value>) -> Option<Self> {
        item.get("extensions")?.get(EXTENSION)?.get("staleness")?.as_str()?.parse().ok()
    }

    /// Whether what was said then is stale now.
    #[must_use]
    pub fn is_past(self, said: Timestamp, now: Timestamp) -> bool {
        let age = match self {
            Self::Stable => return false,
            Self::Weekly => Duration::from_secs(7 * 86_400),
            Self::Daily => Duration::from_secs(86_400),
            Self::Hourly => Duration::from_secs(3600),
            Self::Volatile => Duration::ZERO,
        };
        said.plus(age) <= now
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_age_is_past_when_it_is_reached() {
        let said = Timestamp::from_millis(1_000_000);
        let ages = [(Staleness::Weekly, 604_800), (Staleness::Daily, 86_400), (Staleness::Hourly, 3600)];
        for (staleness, seconds) in ages {
            let end = said.plus(Duration::from_secs(seconds));
            assert!(
                staleness.is_past(said, end) && !staleness.is_past(said, end.minus(Duration::from_millis(1)))
            );
        }
        assert!(Staleness::Volatile.is_past(said, said));
        assert!(!Staleness::Stable.is_past(said, said.plus(Duration::from_secs(1 << 40))));
    }
}

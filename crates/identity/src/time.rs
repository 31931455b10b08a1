//! Points in time, and the clock as an argument.

use chrono::{DateTime, SecondsFormat, Utc};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error as _};
use std::fmt;
use std::num::NonZeroI64;
use std::str::FromStr;
use std::time::Duration;

/// The clock skew that is forgiven, in either direction (protocol section 1, OAP-CORE 28.3).
pub const MAX_SKEW: Duration = Duration::from_secs(5 * 60);

/// Where "now" comes from. Only the gateway's own clock decides what is live.
pub trait Clock: Send + Sync {
    /// The present moment.
    fn now(&self) -> Timestamp;
}

/// A point in time: milliseconds since 1970, UTC. Written as RFC 3339 with `Z` and three decimals.
///
/// Years 1 to 9999; anything else is a parse error. An `Option<Timestamp>` takes no more memory than a `Timestamp`.
// Milliseconds since year 1, and one: never zero.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp(NonZeroI64);

/// The text is not an RFC 3339 time in UTC.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("a time is RFC 3339 in UTC with Z, such as 2026-06-30T23:59:59Z")]
pub struct TimeError;

/// 0001-01-01T00:00:00.000Z
const MIN: i64 = -62_135_596_800_000;
/// 9999-12-31T23:59:59.999Z
const MAX: i64 = 253_402_300_799_999;

impl Timestamp {
    /// A time from milliseconds since 1970, clamped to the years 1 to 9999.
    #[must_use]
    pub const fn from_millis(millis: i64) -> Self {
        let millis = if millis < MIN {
            MIN
        } else if millis > MAX {
            MAX
        } else {
            millis
        };
        match NonZeroI64::new(millis - MIN + 1) {
            Some(since_year_one) => Self(since_year_one),
            None => Self(NonZeroI64::MIN),
        }
    }

    /// A time from whole seconds since 1970, as JWT claims have it.
    #[must_use]
    pub const fn from_seconds(seconds: i64) -> Self {
        Self::from_millis(seconds.saturating_mul(1000))
    }

    /// Milliseconds since 1970.
    #[must_use]
    pub const fn millis(self) -> i64 {
        self.0.get() - 1 + MIN
    }

    /// Whole seconds since 1970, rounded down.
    #[must_use]
    pub const fn seconds(self) -> i64 {
        self.millis().div_euclid(1000)
    }

    /// A time of RFC 3339 with any offset, as people and other programs write it; what is finer than milliseconds is cut
    /// off. On the wire there is one form alone: the one of [`FromStr`].
    #[must_use]
    pub fn with_offset(text: &str) -> Option<Self> {
        let millis = DateTime::parse_from_rfc3339(text).ok()?.timestamp_millis();
        (MIN..=MAX).contains(&millis).then(|| Self::from_millis(millis))
    }

    /// This time and so much later.
    #[must_use]
    pub fn plus(self, by: Duration) -> Self {
        Self::from_millis(self.millis().saturating_add(i64::try_from(by.as_millis()).unwrap_or(i64::MAX)))
    }

    /// This time and so much earlier.
    #[must_use]
    pub fn minus(self, by: Duration) -> Self {
        Self::from_millis(self.millis().saturating_sub(i64::try_from(by.as_millis()).unwrap_or(i64::MAX)))
    }

    /// The first moment of the next day, UTC.
    #[must_use]
    pub fn next_day(self) -> Self {
        const DAY: i64 = 86_400_000;
        Self::from_millis((self.millis().div_euclid(DAY) + 1).saturating_mul(DAY))
    }

    /// The calendar date, `YYYY-MM-DD`.
    #[must_use]
    pub fn date(self) -> String {
        self.to_string()[..10].to_owned()
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let time = DateTime::<Utc>::from_timestamp_millis(self.millis()).unwrap_or_default();
        f.write_str(&time.to_rfc3339_opts(SecondsFormat::Millis, true))
    }
}

impl fmt::Debug for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for Timestamp {
    type Err = TimeError;
    fn from_str(text: &str) -> Result<Self, TimeError> {
        if !text.ends_with('Z') || text.as_bytes().get(10) != Some(&b'T') {
            return Err(TimeError);
        }
        let time = DateTime::parse_from_rfc3339(text).map_err(|_| TimeError)?;
        let millis = time.timestamp_millis();
        if (MIN..=MAX).contains(&millis) { Ok(Self::from_millis(millis)) } else { Err(TimeError) }
    }
}

impl Serialize for Timestamp {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        if s.is_human_readable() { s.collect_str(self) } else { self.millis().serialize(s) }
    }
}

impl<'de> Deserialize<'de> for Timestamp {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        if d.is_human_readable() {
            String::deserialize(d)?.parse().map_err(D::Error::custom)
        } else {
            i64::deserialize(d).map(Self::from_millis)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rfc_3339_in_utc_and_nothing_else() {
        let at: Timestamp = "2026-06-30T23:59:59Z".parse().unwrap();
        assert_eq!(at.to_string(), "2026-06-30T23:59:59.000Z");
        assert_eq!("2026-06-30T23:59:59.1239Z".parse::<Timestamp>().unwrap().millis() % 1000, 123);
        for text in [
            "2026-06-30T23:59:59+00:00",
            "2026-06-30 23:59:59Z",
            "2026-02-30T00:00:00Z",
            "2026-06-30",
            "",
            "+12026-06-30T23:59:59Z",
            "2026-06-30t23:59:59z",
        ] {
            assert!(text.parse::<Timestamp>().is_err(), "{text}");
        }
    }

    #[test]
    fn any_offset_is_read_where_it_is_asked_for() {
        let at = |text| Timestamp::with_offset(text).map(|at| at.to_string());
        assert_eq!(at("2026-06-30T14:00:00.25+02:00").as_deref(), Some("2026-06-30T12:00:00.250Z"));
        assert_eq!(at("2026-06-30T12:00:00Z").as_deref(), Some("2026-06-30T12:00:00.000Z"));
        for text in
            ["", "2026-06-30", "2026-06-30T12:00:00", "0001-01-01T00:00:00+01:00", "12026-06-30T12:00:00Z"]
        {
            assert_eq!(at(text), None, "{text}");
        }
    }

    #[test]
    fn arithmetic_stays_in_range() {
        let end = Timestamp::from_millis(i64::MAX);
        assert_eq!(end.plus(Duration::MAX), end);
        assert_eq!(end.to_string(), "9999-12-31T23:59:59.999Z");
        assert_eq!(end.minus(Duration::MAX).to_string(), "0001-01-01T00:00:00.000Z");
        assert_eq!([MIN, -1, 0, 1, MAX].map(|at| Timestamp::from_millis(at).millis()), [MIN, -1, 0, 1, MAX]);
        assert_eq!(size_of::<Option<Timestamp>>(), 8);
    }
}

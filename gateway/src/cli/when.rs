//! Times as they are typed: one grammar for every flag of every command. What a span or a date means is said by the flag.

use crate::system::clock::SystemClock;
use oap_identity::{Clock, Timestamp};
use std::str::FromStr;
use std::time::Duration;

/// The grammar, for the help of the whole program.
pub(super) const GRAMMAR: &str = "Times: 30d, 2w, 1h, 15m or 90s are counted from now, into the past by filters (--since 2w, --until 2w) and into
the future where something is to end (a grant's --until 30d). A date such as 2026-06-30 is a whole day, in UTC: an --until
or an --at includes it, every other flag means its first moment. Or an RFC 3339 time with any offset: 2026-06-30T14:00:00+02:00.";

/// Longest span, in days: a hundred years.
pub(super) const MAX_SPAN_DAYS: u64 = 36_500;
/// Characters of a wrong value that a message repeats, at most.
const MAX_SHOWN: usize = 60;

/// A time as it was typed, before anybody says whether it is a beginning or an end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum When {
    /// An RFC 3339 time.
    At(Timestamp),
    /// A date: its first moment, in UTC.
    Day(Timestamp),
    /// So long from now, or before it.
    Span(Duration),
}

/// A span, such as `15m`: 90s, 15m, 1h, 30d or 2w, at most [`MAX_SPAN_DAYS`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Span(pub(super) Duration);

/// Why a text is no time.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum WhenError {
    /// None of the forms.
    #[error("{0:?} is not a time; use 30d, 2w, 1h, 15m, 2026-06-30 or an RFC 3339 time")]
    Form(String),
    /// A span of more than a hundred years.
    #[error("{0:?} is too long; a span has at most {MAX_SPAN_DAYS}d")]
    Long(String),
    /// Not a number and a unit.
    #[error("{0:?} is not a span; use 90s, 15m, 1h, 30d or 2w")]
    Span(String),
}

fn shown(text: &str) -> String {
    text.chars().take(MAX_SHOWN).collect()
}

impl FromStr for Span {
    type Err = WhenError;
    fn from_str(text: &str) -> Result<Self, WhenError> {
        let wrong = || WhenError::Span(shown(text));
        let unit = text.chars().next_back().ok_or_else(wrong)?;
        let seconds: u64 = match unit {
            's' => 1,
            'm' => 60,
            'h' => 3600,
            'd' => 86_400,
            'w' => 7 * 86_400,
            _ => return Err(wrong()),
        };
        let number = text.strip_suffix(unit).unwrap_or_default();
        if number.is_empty() || !number.bytes().all(|c| c.is_ascii_digit()) {
            return Err(wrong());
        }
        let long = || WhenError::Long(shown(text));
        let number: u64 = number.parse().map_err(|_| long())?;
        let whole = number.checked_mul(seconds).ok_or_else(long)?;
        if whole > MAX_SPAN_DAYS * 86_400 { Err(long()) } else { Ok(Self(Duration::from_secs(whole))) }
    }
}

impl FromStr for When {
    type Err = WhenError;
    fn from_str(text: &str) -> Result<Self, WhenError> {
        match text.parse() {
            Ok(Span(span)) => return Ok(Self::Span(span)),
            Err(long @ WhenError::Long(_)) => return Err(long),
            Err(_) => {}
        }
        if let Some(at) = Timestamp::with_offset(text) {
            return Ok(Self::At(at));
        }
        let day = (text.len() == 10).then(|| Timestamp::with_offset(&format!("{text}T00:00:00Z"))).flatten();
        day.map(Self::Day).ok_or_else(|| WhenError::Form(shown(text)))
    }
}

impl When {
    /// Where something of the past begins, itself included: `--since`. A date's first moment; a span before now.
    pub(super) fn since(self, now: Timestamp) -> Timestamp {
        match self {
            Self::At(at) | Self::Day(at) => at,
            Self::Span(span) => now.minus(span),
        }
    }

    /// Where something of the past ends, itself excluded: a filter's `--until`. The whole day is meant; a span before now.
    pub(super) fn until(self, now: Timestamp) -> Timestamp {
        match self {
            Self::At(at) => at,
            Self::Day(first) => first.next_day(),
            Self::Span(span) => now.minus(span),
        }
    }

    /// From when on something holds: `--from`. A date's first moment; a span after now.
    pub(super) fn starts(self, now: Timestamp) -> Timestamp {
        match self {
            Self::At(at) | Self::Day(at) => at,
            Self::Span(span) => now.plus(span),
        }
    }

    /// When something ends: the `--until` of a grant, a bridge, a hold. A date's last second; a span after now.
    pub(super) fn ends(self, now: Timestamp) -> Timestamp {
        match self {
            Self::At(at) => at,
            // As people write an end: 23:59:59 of that day.
            Self::Day(first) => first.next_day().minus(Duration::from_secs(1)),
            Self::Span(span) => now.plus(span),
        }
    }
}

/// The present, for commands.
pub(super) fn now() -> Timestamp {
    SystemClock.now()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> Timestamp {
        text.parse().unwrap()
    }

    fn now() -> Timestamp {
        at("2026-06-15T12:00:00Z")
    }

    fn when(text: &str) -> When {
        text.parse().unwrap()
    }

    #[test]
    fn spans_go_where_the_flag_points() {
        for (text, back, ahead) in [
            ("30d", "2026-05-16T12:00:00Z", "2026-07-15T12:00:00Z"),
            ("2w", "2026-06-01T12:00:00Z", "2026-06-29T12:00:00Z"),
            ("1h", "2026-06-15T11:00:00Z", "2026-06-15T13:00:00Z"),
            ("15m", "2026-06-15T11:45:00Z", "2026-06-15T12:15:00Z"),
            ("90s", "2026-06-15T11:58:30Z", "2026-06-15T12:01:30Z"),
            ("0d", "2026-06-15T12:00:00Z", "2026-06-15T12:00:00Z"),
        ] {
            let when = when(text);
            assert_eq!((when.since(now()), when.until(now())), (at(back), at(back)), "{text}");
            assert_eq!((when.starts(now()), when.ends(now())), (at(ahead), at(ahead)), "{text}");
        }
    }

    #[test]
    fn a_date_is_a_whole_day() {
        let when = when("2026-06-30");
        assert_eq!(when.since(now()), at("2026-06-30T00:00:00Z"));
        assert_eq!(when.starts(now()), at("2026-06-30T00:00:00Z"));
        assert_eq!(when.until(now()), at("2026-07-01T00:00:00Z"));
        assert_eq!(when.ends(now()), at("2026-06-30T23:59:59Z"));
    }

    #[test]
    fn rfc_3339_with_offsets_and_fractions() {
        for (text, utc) in [
            ("2026-06-30T14:00:00+02:00", "2026-06-30T12:00:00Z"),
            ("2026-06-30T14:00:00.250-01:30", "2026-06-30T15:30:00.250Z"),
            ("2026-06-30T23:59:59.1239Z", "2026-06-30T23:59:59.123Z"),
        ] {
            for meant in [When::since, When::until, When::starts, When::ends] {
                assert_eq!(meant(when(text), now()), at(utc), "{text}");
            }
        }
    }

    #[test]
    fn what_is_no_time_is_told_with_the_forms() {
        for text in [
            "",
            "tomorow",
            "d",
            "1",
            "-1d",
            "+1d",
            "1.5h",
            "1y",
            "1µ",
            "30 d",
            "2026-02-30",
            "2026-6-30",
            "2026-06",
            "20260630",
            "+12026-06-30",
            "2026-06-30T12:00:00",
            "2026-06-30T25:00:00Z",
            "0000-01-01",
            "２d",
        ] {
            let error = text.parse::<When>().unwrap_err();
            assert_eq!(error, WhenError::Form(text.to_owned()));
            assert!(error.to_string().contains("use 30d, 2w, 1h, 15m, 2026-06-30"), "{error}");
        }
        for text in ["36501d", "99999999999999999999999d", "18446744073709551615w"] {
            assert!(matches!(text.parse::<When>(), Err(WhenError::Long(_))), "{text}");
        }
        assert!("x".repeat(5000).parse::<When>().unwrap_err().to_string().len() < 200);
        assert!(
            !"\u{1b}[31m\u{202e}".parse::<When>().unwrap_err().to_string().contains(['\u{1b}', '\u{202e}'])
        );
    }
}

//! A length of time, as ISO 8601 writes it: `P7D`, `PT12H`, `P1DT6H`, `P2W`.

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::str::FromStr;
use std::time::Duration;

/// Longest text of one, in bytes.
pub const MAX_AGE_TEXT: usize = 32;
/// Longest one, in days: a hundred years.
pub const MAX_AGE_DAYS: u64 = 36_500;
/// What one looks like.
const PATTERN: &str = "^P([0-9]+W|([0-9]+D)?(T([0-9]+H)?([0-9]+M)?([0-9]+S)?)?)$";

/// How old something may be: weeks, or days, hours, minutes and seconds; not nothing. A month and a year have no length of their own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Age(Duration);

/// Text that is no age.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "must be an ISO 8601 duration of weeks, days, hours, minutes or seconds, such as P7D or PT12H, more than nothing and at most {MAX_AGE_DAYS} days"
)]
pub struct NotAge;

impl Age {
    /// How long it is.
    #[must_use]
    pub const fn duration(self) -> Duration {
        self.0
    }
}

impl FromStr for Age {
    type Err = NotAge;

    fn from_str(text: &str) -> Result<Self, NotAge> {
        if text.len() > MAX_AGE_TEXT {
            return Err(NotAge);
        }
        let rest = text.strip_prefix('P').ok_or(NotAge)?;
        let (date, time) = match rest.split_once('T') {
            Some((date, time)) if !time.is_empty() => (date, time),
            Some(_) => return Err(NotAge),
            None => (rest, ""),
        };
        let date = parts(date, &[('W', 7 * 86_400), ('D', 86_400)])?;
        let time = parts(time, &[('H', 3600), ('M', 60), ('S', 1)])?;
        // Weeks stand alone.
        if rest.contains('W') && (rest.contains('D') || rest.contains('T')) {
            return Err(NotAge);
        }
        let seconds = date.checked_add(time).ok_or(NotAge)?;
        if (1..=MAX_AGE_DAYS * 86_400).contains(&seconds) {
            Ok(Self(Duration::from_secs(seconds)))
        } else {
            Err(NotAge)
        }
    }
}

/// The seconds of numbers with their units, in the order of these.
fn parts(text: &str, units: &[(char, u64)]) -> Result<u64, NotAge> {
    let (mut rest, mut sum) = (text, 0_u64);
    for (unit, seconds) in units {
        let Some((number, after)) = rest.split_once(*unit) else { continue };
        if number.is_empty() || !number.bytes().all(|c| c.is_ascii_digit()) {
            return Err(NotAge);
        }
        let number: u64 = number.parse().map_err(|_| NotAge)?;
        sum = number.checked_mul(*seconds).and_then(|more| sum.checked_add(more)).ok_or(NotAge)?;
        rest = after;
    }
    if rest.is_empty() { Ok(sum) } else { Err(NotAge) }
}

impl TryFrom<String> for Age {
    type Error = NotAge;

    fn try_from(text: String) -> Result<Self, NotAge> {
        text.parse()
    }
}

impl From<Age> for String {
    fn from(age: Age) -> Self {
        format!("PT{}S", age.0.as_secs())
    }
}

impl JsonSchema for Age {
    fn schema_name() -> Cow<'static, str> {
        "Age".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({"type": "string", "pattern": PATTERN, "maxLength": MAX_AGE_TEXT})
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn seconds(text: &str) -> Option<u64> {
        text.parse::<Age>().ok().map(|age| age.duration().as_secs())
    }

    #[test]
    fn ages_are_read_or_refused() {
        for (text, length) in [
            ("P7D", 604_800),
            ("P2W", 1_209_600),
            ("PT12H", 43_200),
            ("PT1M", 60),
            ("P1DT6H", 108_000),
            ("PT1H2M3S", 3723),
            ("P36500D", MAX_AGE_DAYS * 86_400),
        ] {
            assert_eq!(seconds(text), Some(length), "{text}");
            let age: Age = text.parse().unwrap();
            assert_eq!(String::from(age).parse(), Ok(age));
        }
        for text in [
            "",
            "P",
            "PT",
            "P1",
            "7D",
            "p7d",
            "P0D",
            "PT0S",
            "P1M",
            "P1Y",
            "P1DT",
            "P-1D",
            "P1.5D",
            "P1D2W",
            "P1W2D",
            "P1WT1H",
            "PT1S1H",
            "PT1H1H",
            "P 7D",
            "P7D ",
            "P+7D",
            "P36501D",
            "P99999999999999999999D",
            "P18446744073709551615W",
            "P٧D",
            "P000000000000000000000000000000007D",
        ] {
            assert_eq!(seconds(text), None, "{text}");
        }
    }

    proptest! {
        #[test]
        fn no_text_panics(text in "P?[0-9WDTHMS.]{0,40}|.{0,40}") {
            if let Ok(age) = text.parse::<Age>() {
                prop_assert!(age.duration().as_secs() > 0);
            }
        }
    }
}

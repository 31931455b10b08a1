//! How long an entry lives (RFC-0015 1.1).

use super::{EntryError, Must, refused};
use oap_memory::item::MAX_TTL_DAYS;
use std::time::Duration;

/// How long an entry lives, as its writer says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ttl {
    /// As long as its task.
    Task,
    /// So long from when that was said.
    For(Duration),
}

/// Longest form of a life, in bytes.
const MAX_WRITTEN: usize = 64;

/// The units of a duration, in the order in which they stand: the letter, seconds, and whether it stands after `T`.
const UNITS: [(char, u64, bool); 5] =
    [('W', 604_800, false), ('D', 86_400, false), ('H', 3600, true), ('M', 60, true), ('S', 1, true)];

impl Ttl {
    /// Reads `task_lifetime`, or `duration:` and a duration.
    ///
    /// # Errors
    /// [`EntryError::Field`], naming `ttl`.
    pub fn read(text: &str) -> Result<Self, EntryError> {
        if text.len() > MAX_WRITTEN {
            return refused("ttl", Must::Ttl);
        }
        if text == "task_lifetime" {
            return Ok(Self::Task);
        }
        let given = text.strip_prefix("duration:").and_then(duration);
        let longest = Duration::from_secs(u64::from(MAX_TTL_DAYS) * 86_400);
        match given.filter(|given| !given.is_zero() && *given <= longest) {
            Some(given) => Ok(Self::For(given)),
            None => refused("ttl", Must::Ttl),
        }
    }
}

/// A duration of ISO 8601 without years and months, whose length depends on the calendar.
fn duration(text: &str) -> Option<Duration> {
    let text = text.strip_prefix('P')?;
    let (days, hours) = text.split_once('T').map_or((text, None), |(days, hours)| (days, Some(hours)));
    if hours.is_some_and(str::is_empty) || (days.is_empty() && hours.is_none()) {
        return None;
    }
    let (mut rest, mut after_t, mut seconds) = (days, false, 0_u64);
    for (letter, unit, is_after) in UNITS {
        if is_after && !after_t {
            if !rest.is_empty() {
                return None;
            }
            (rest, after_t) = (hours.unwrap_or_default(), true);
        }
        let Some((number, left)) = rest.split_once(letter) else { continue };
        if number.is_empty() || !number.bytes().all(|byte| byte.is_ascii_digit()) {
            return None;
        }
        seconds = seconds.checked_add(number.parse::<u64>().ok()?.checked_mul(unit)?)?;
        rest = left;
    }
    rest.is_empty().then(|| Duration::from_secs(seconds))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations() {
        for (text, seconds) in [
            ("PT24H", 86_400),
            ("P1D", 86_400),
            ("P2W", 1_209_600),
            ("P1W1DT1H1M1S", 694_861),
            ("PT90M", 5400),
            ("PT1S", 1),
        ] {
            let expected = Ttl::For(Duration::from_secs(seconds));
            assert_eq!(Ttl::read(&format!("duration:{text}")), Ok(expected), "{text}");
        }
        assert_eq!(Ttl::read("task_lifetime"), Ok(Ttl::Task));
        for wrong in [
            "",
            "P1D",
            "duration:",
            "duration:P",
            "duration:PT",
            "duration:P1",
            "duration:P1Y",
            "duration:P1M",
            "duration:PT1H1H",
            "duration:P1DT",
            "duration:PT0S",
            "duration:P-1D",
            "duration:P1H",
            "duration:PT1D",
            "duration:PT1S1H",
            "duration:P36501D",
            "duration:P99999999999999999999D",
            "duration:PT1.5H",
            "forever",
            "duration:P 1D",
            "duration:P1D ",
        ] {
            assert_eq!(Ttl::read(wrong), refused("ttl", Must::Ttl), "{wrong}");
        }
    }
}

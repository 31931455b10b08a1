//! How long an answer may be kept, and by what it is asked for again (RFC 9110 section 8.8.3, RFC 9111 section 5).

use super::Answer;
use crate::time::Timestamp;
use chrono::DateTime;
use std::time::Duration;

/// Longest entity tag that is remembered, in bytes.
pub const MAX_ETAG: usize = 256;

impl Answer {
    /// The values of a header, in the order in which they came.
    fn all<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a str> {
        self.headers.iter().filter(move |(named, _)| named == name).map(|(_, value)| value.as_str())
    }

    /// Its entity tag, to be sent back as it is; `None` for none, and for one that is malformed or longer than [`MAX_ETAG`].
    #[must_use]
    pub fn etag(&self) -> Option<&str> {
        let tag = self.all("etag").next()?;
        let opaque = tag.strip_prefix("W/").unwrap_or(tag).strip_prefix('"')?.strip_suffix('"')?;
        let is_plain = opaque.bytes().all(|c| c == 0x21 || (0x23..=0x7e).contains(&c));
        (tag.len() <= MAX_ETAG && is_plain).then_some(tag)
    }

    /// How long its sender lets it be kept: `Cache-Control`, else `Expires`. Zero where it must not be kept or has expired;
    /// `None` where nothing is said. What is said may be any length of time: the caller bounds it.
    #[must_use]
    pub fn fresh_for(&self, now: Timestamp) -> Option<Duration> {
        let directives = || self.all("cache-control").flat_map(|value| value.split(',')).map(str::trim);
        let is = |one: &str, name: &str| one.eq_ignore_ascii_case(name);
        if directives().any(|one| is(one, "no-store") || is(one, "no-cache")) {
            return Some(Duration::ZERO);
        }
        let age = directives().find_map(|one| {
            let (name, value) = one.split_once('=')?;
            let digits = value.trim().trim_matches('"');
            let is_number = !digits.is_empty() && digits.bytes().all(|c| c.is_ascii_digit());
            // A number that no machine counts to is as long as anything.
            (is(name.trim(), "max-age") && is_number).then(|| digits.parse().unwrap_or(u64::from(u32::MAX)))
        });
        if let Some(seconds) = age {
            return Some(Duration::from_secs(seconds));
        }
        let expires = self.all("expires").next()?;
        // A date that cannot be read is one that has passed.
        let end = DateTime::parse_from_rfc2822(expires).map_or(now.millis(), |end| end.timestamp_millis());
        Some(Duration::from_millis(u64::try_from(end.saturating_sub(now.millis())).unwrap_or(0)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::outgoing::StatusCode;

    const NOON: Timestamp = Timestamp::from_seconds(1_777_636_800);

    fn answer(headers: &[(&str, &str)]) -> Answer {
        let headers = headers.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        Answer { status: StatusCode::OK, headers, body: Vec::new() }
    }

    #[test]
    fn how_long_an_answer_is_kept() {
        let seconds = |headers: &[(&str, &str)]| answer(headers).fresh_for(NOON).map(|time| time.as_secs());
        assert_eq!(seconds(&[]), None);
        assert_eq!(seconds(&[("cache-control", "public, Max-Age=90")]), Some(90));
        assert_eq!(seconds(&[("cache-control", "max-age=\"90\"")]), Some(90));
        assert_eq!(seconds(&[("cache-control", "max-age=90"), ("cache-control", "no-store")]), Some(0));
        assert_eq!(
            seconds(&[("cache-control", "max-age=99999999999999999999999")]),
            Some(u64::from(u32::MAX))
        );
        let expires = ("expires", "Fri, 01 May 2026 12:01:00 GMT");
        assert_eq!(seconds(&[expires]), Some(60));
        assert_eq!(seconds(&[("cache-control", "max-age=5"), expires]), Some(5));
        assert_eq!(seconds(&[("cache-control", "max-age=-1"), expires]), Some(60));
        assert_eq!(seconds(&[("expires", "0")]), Some(0));
        assert_eq!(seconds(&[("expires", "Fri, 01 May 2026 11:00:00 GMT")]), Some(0));
    }

    #[test]
    fn an_entity_tag_is_sent_back_as_it_is_or_not_at_all() {
        let tag = |value: &str| answer(&[("etag", value)]).etag().map(str::to_owned);
        for good in ["\"a\"", "W/\"a-1\"", "\"\""] {
            assert_eq!(tag(good).as_deref(), Some(good));
        }
        for bad in ["a", "\"a", "\"a\"b\"", "\"a\r\nX: y\"", "\"ä\"", "w/\"a\""] {
            assert_eq!(tag(bad), None, "{bad}");
        }
        assert_eq!(tag(&format!("\"{}\"", "x".repeat(MAX_ETAG - 1))), None);
        assert!(tag(&format!("\"{}\"", "x".repeat(MAX_ETAG - 2))).is_some());
    }
}

//! IP addresses of both versions.

use std::net::{Ipv4Addr, Ipv6Addr};
use std::ops::Range;
use std::sync::LazyLock;

static V4: LazyLock<regex::Regex> = LazyLock::new(|| super::pattern(r"\b[0-9]{1,3}(?:\.[0-9]{1,3}){3}\b"));
static V6: LazyLock<regex::Regex> = LazyLock::new(|| {
    super::pattern(r"[0-9A-Fa-f]{0,4}(?::[0-9A-Fa-f]{0,4}){2,7}(?:[0-9]{1,3}(?:\.[0-9]{1,3}){3})?")
});
/// What stands before four numbers that are no address.
static VERSION: LazyLock<regex::Regex> = LazyLock::new(|| {
    super::pattern(
        r"(?i)(?:\b(?:version|release|build|firmware|driver|kernel|rev(?:ision)?|ver|section|clause|chapter|abschnitt|kapitel|ziffer)\.?\s*|\bv|§\s*)$",
    )
});

/// Bytes before four numbers in which such a word is looked for.
const BEFORE: usize = 64;

pub(super) fn find(text: &str) -> Vec<Range<usize>> {
    let v4 = V4.find_iter(text).filter(|m| {
        let (before, after) = super::around(text, &m.range());
        let longer = before.ends_with(['.', '-'])
            || after.strip_prefix('.').is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()));
        let near = before.get(before.floor_char_boundary(before.len().saturating_sub(BEFORE))..);
        m.as_str().parse::<Ipv4Addr>().is_ok() && !longer && !VERSION.is_match(near.unwrap_or_default())
    });
    let v6 = V6.find_iter(text).filter_map(|m| {
        let near = |c: Option<char>| c.is_some_and(|c| c.is_alphanumeric() || c == ':');
        let (before, after) = super::around(text, &m.range());
        let alone = !near(before.chars().next_back()) && !near(after.chars().next());
        let said = without_colon(m.as_str());
        let valid = said.len() > 4 && said.parse::<Ipv6Addr>().is_ok();
        (alone && valid).then(|| m.start()..m.start() + said.len())
    });
    v4.map(|m| m.range()).chain(v6).collect()
}

/// Without the colon of the sentence behind it.
fn without_colon(candidate: &str) -> &str {
    candidate.strip_suffix(':').filter(|rest| !rest.ends_with(':')).unwrap_or(candidate)
}

//! IP addresses of both versions.

use std::net::{Ipv4Addr, Ipv6Addr};
use std::ops::Range;
use std::sync::LazyLock;

static V4: LazyLock<regex::Regex> = LazyLock::new(|| super::pattern(r"\b\d{1,3}(?:\.\d{1,3}){3}\b"));
static V6: LazyLock<regex::Regex> = LazyLock::new(|| {
    super::pattern(r"[0-9A-Fa-f]{0,4}(?::[0-9A-Fa-f]{0,4}){2,7}(?:\d{1,3}(?:\.\d{1,3}){3})?")
});
/// What stands before four numbers that are no address.
static VERSION: LazyLock<regex::Regex> = LazyLock::new(|| {
    super::pattern(
        r"(?i)(?:\b(?:version|release|build|firmware|driver|kernel|rev(?:ision)?|ver|section|clause|chapter|abschnitt|kapitel|ziffer)\.?\s*|\bv|§\s*)$",
    )
});

pub(super) fn find(text: &str) -> Vec<Range<usize>> {
    let v4 = V4.find_iter(text).filter(|m| {
        let (before, after) = (&text[..m.start()], &text[m.end()..]);
        let longer = before.ends_with(['.', '-'])
            || (after.starts_with('.') && after[1..].starts_with(|c: char| c.is_ascii_digit()));
        m.as_str().parse::<Ipv4Addr>().is_ok() && !longer && !VERSION.is_match(before)
    });
    let v6 = V6.find_iter(text).filter(|m| {
        let near = |c: Option<char>| c.is_some_and(|c| c.is_alphanumeric() || c == ':');
        let alone = !near(text[..m.start()].chars().next_back()) && !near(text[m.end()..].chars().next());
        alone && m.as_str().len() > 4 && m.as_str().parse::<Ipv6Addr>().is_ok()
    });
    v4.map(|m| m.range()).chain(v6.map(|m| m.range())).collect()
}

//! International bank account numbers: a country's form and a valid checksum.

use std::ops::Range;
use std::sync::LazyLock;

static PATTERN: LazyLock<regex::Regex> =
    LazyLock::new(|| super::pattern(r"(?i)\b[A-Z]{2}[0-9]{2}(?:[ -]?[A-Z0-9]){11,30}\b"));

pub(super) fn find(text: &str) -> Vec<Range<usize>> {
    PATTERN
        .find_iter(text)
        .filter_map(|m| valid_prefix(m.as_str()).map(|n| m.start()..m.start() + n))
        .collect()
}

/// The longest valid number at the start of a candidate: the words after it may look like part of it.
fn valid_prefix(candidate: &str) -> Option<usize> {
    let mut ends: Vec<usize> = candidate.char_indices().filter(|(_, c)| *c == ' ').map(|(i, _)| i).collect();
    ends.push(candidate.len());
    ends.into_iter().rev().find(|end| {
        let said = candidate.get(..*end).unwrap_or_default();
        let compact: String = said.chars().filter(char::is_ascii_alphanumeric).collect();
        compact.to_ascii_uppercase().parse::<iban::Iban>().is_ok()
    })
}

//! International bank account numbers: a country's form and a valid checksum.

use super::overlap::{at_each_group, is_separator, longest_start};
use std::ops::Range;
use std::sync::LazyLock;

static PATTERN: LazyLock<regex::Regex> =
    LazyLock::new(|| super::pattern(r"(?i)\b[A-Z]{2}[0-9]{2}(?:[ -]?[A-Z0-9]){11,30}\b"));

pub(super) fn find(text: &str) -> Vec<Range<usize>> {
    // The words after a number may look like part of it.
    at_each_group(&PATTERN, text, is_separator)
        .filter_map(|candidate| longest_start(text, &candidate, |said| is_iban(said)))
        .collect()
}

fn is_iban(candidate: &str) -> bool {
    let compact: String = candidate.chars().filter(char::is_ascii_alphanumeric).collect();
    compact.to_ascii_uppercase().parse::<iban::Iban>().is_ok()
}

//! Payment card numbers: a known issuer's range and length, and the Luhn check.

use super::overlap::{at_each_group, is_separator, longest_start};
use card_validate::Validate;
use std::ops::Range;
use std::sync::LazyLock;

static PATTERN: LazyLock<regex::Regex> =
    LazyLock::new(|| super::pattern(r"\b[0-9]{4}(?:[ -]?[0-9]{2,6}){2,4}\b"));

pub(super) fn find(text: &str) -> Vec<Range<usize>> {
    at_each_group(&PATTERN, text, is_separator)
        .filter_map(|candidate| longest_start(text, &candidate, |said| is_card(said)))
        .collect()
}

fn is_card(candidate: &str) -> bool {
    let digits: String = candidate.chars().filter(char::is_ascii_digit).collect();
    (13..=19).contains(&digits.len()) && Validate::from(&digits).is_ok()
}

//! Telephone numbers: written like one, and possible in a numbering plan.

use super::overlap::{at_each_group, is_separator, longest_start};
use phonenumber::country::Id;
use std::ops::Range;
use std::sync::LazyLock;

/// Plans tried for numbers without a country code.
const HOME: [Id; 3] = [Id::DE, Id::US, Id::GB];

/// `+` or `00` and a country; or a national number that begins with 0 or an area in brackets; or the American
/// groups of three, three and four.
static PATTERN: LazyLock<regex::Regex> = LazyLock::new(|| {
    super::pattern(
        r"(?x)
        (?:\+|\b00)[1-9][0-9\ ()/.-]{6,18}[0-9]
        | \(0[0-9]{1,5}\)[\ /-]?[0-9][0-9\ /-]{3,12}[0-9]
        | \b0[1-9][0-9]{0,4}[\ /-][0-9][0-9\ /-]{3,12}[0-9]
        | (?:\([2-9][0-9]{2}\)\ ?|\b[2-9][0-9]{2}[-.])[2-9][0-9]{2}[-.][0-9]{4}\b
        ",
    )
});

/// What looks like a number and is a date.
static DATE: LazyLock<regex::Regex> =
    LazyLock::new(|| super::pattern(r"^[0-9]{1,2}([./-])[0-9]{1,2}[./-](?:19|20)?[0-9]{2}$"));

/// Fewest digits of a candidate.
const MIN_DIGITS: usize = 6;

/// Most candidates of a text that are looked up in the numbering plans; all others count as numbers. A look-up takes some
/// ten microseconds.
pub const MAX_NUMBERS: usize = 1024;

pub(super) fn find(text: &str) -> Vec<Range<usize>> {
    let mut looked_up = 0;
    let mut is_number = |candidate: &str| {
        looked_up += 1;
        looked_up > MAX_NUMBERS || is_number(candidate)
    };
    let mut is_said = |said: &&str| {
        let digits = said.bytes().filter(u8::is_ascii_digit).count();
        digits >= MIN_DIGITS && !DATE.is_match(said) && is_number(said)
    };
    at_each_group(&PATTERN, text, is_separator)
        .filter_map(|candidate| longest_start(text, &candidate, &mut is_said))
        .collect()
}

fn is_number(candidate: &str) -> bool {
    let international = match candidate.strip_prefix("00") {
        Some(rest) => format!("+{rest}"),
        None => candidate.to_owned(),
    };
    let valid = |country: Option<Id>| {
        phonenumber::parse(country, &international).is_ok_and(|number| phonenumber::is_valid(&number))
    };
    if international.starts_with('+') { valid(None) } else { HOME.iter().any(|home| valid(Some(*home))) }
}

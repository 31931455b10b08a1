//! Telephone numbers: written like one, and possible in a numbering plan.

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

/// Most candidates of a text that are looked up in the numbering plans; all others count as numbers. A look-up takes some
/// ten microseconds.
pub const MAX_NUMBERS: usize = 1024;

pub(super) fn find(text: &str) -> Vec<Range<usize>> {
    let mut looked_up = 0;
    let mut is_number = |candidate: &str| {
        looked_up += 1;
        looked_up > MAX_NUMBERS || is_number(candidate)
    };
    PATTERN
        .find_iter(text)
        .filter(|m| !DATE.is_match(m.as_str()) && is_number(m.as_str()))
        .map(|m| m.range())
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

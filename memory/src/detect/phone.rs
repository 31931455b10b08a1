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
        (?:\+|\b00)[1-9][\d\ ()/.-]{6,18}\d
        | \(0\d{1,5}\)[\ /-]?\d[\d\ /-]{3,12}\d
        | \b0[1-9]\d{0,4}[\ /-]\d[\d\ /-]{3,12}\d
        | (?:\([2-9]\d{2}\)\ ?|\b[2-9]\d{2}[-.])[2-9]\d{2}[-.]\d{4}\b
        ",
    )
});

/// What looks like a number and is a date.
static DATE: LazyLock<regex::Regex> =
    LazyLock::new(|| super::pattern(r"^\d{1,2}([./-])\d{1,2}[./-](?:19|20)?\d{2}$"));

pub(super) fn find(text: &str) -> Vec<Range<usize>> {
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

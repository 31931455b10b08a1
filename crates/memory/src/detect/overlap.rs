//! Candidates that overlap. A pattern that reads on as far as it can takes in what stands beside a span, and a search that
//! goes on behind a match misses the span that begins in it. So a search goes on at the next group of the match, and
//! every part of a match that ends with a group is a candidate.

use regex::Regex;
use std::ops::Range;

/// The match at each place of a text where a group begins: the next search begins behind the first character of the match for
/// which `is_gap` holds, or at its end. A match has a bounded number of gaps, so the work stays linear.
pub(super) fn at_each_group<'t>(
    pattern: &'t Regex,
    text: &'t str,
    is_gap: fn(char) -> bool,
) -> impl Iterator<Item = Range<usize>> + 't {
    let mut at = 0;
    std::iter::from_fn(move || {
        let found = pattern.find_at(text, at)?;
        at = next(&found.range(), found.as_str(), is_gap);
        Some(found.range())
    })
}

fn next(range: &Range<usize>, said: &str, is_gap: fn(char) -> bool) -> usize {
    let gap = said.char_indices().find(|(_, c)| is_gap(*c));
    gap.map_or(range.end, |(place, gap)| range.start + place + gap.len_utf8())
}

/// What stands between groups of letters and digits.
pub(super) fn is_separator(c: char) -> bool {
    !c.is_alphanumeric()
}

/// The parts of a candidate from its start to the end of a group, longest first.
pub(super) fn starts(candidate: &str) -> impl Iterator<Item = &str> {
    let ends = candidate.char_indices().filter(|(_, c)| is_separator(*c)).map(|(place, _)| place);
    let mut ends: Vec<usize> = ends.chain([candidate.len()]).collect();
    ends.reverse();
    ends.into_iter()
        .filter_map(|end| candidate.get(..end))
        .filter(|start| start.ends_with(char::is_alphanumeric))
}

/// The longest such part that is what a detector looks for, in the place of the candidate.
pub(super) fn longest_start(
    text: &str,
    candidate: &Range<usize>,
    is: impl FnMut(&&str) -> bool,
) -> Option<Range<usize>> {
    let start = starts(text.get(candidate.clone())?).find(is)?;
    Some(candidate.start..candidate.start + start.len())
}

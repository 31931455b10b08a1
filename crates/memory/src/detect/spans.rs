//! What the detectors propose, as spans that follow each other.

use super::SpanClass;
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::ops::Range;

/// A span of a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Span {
    pub(super) class: SpanClass,
    pub(super) range: Range<usize>,
}

/// Settles overlaps: what several spans share goes to the class that is hidden longest, what is left of the others stays
/// hidden beside it. In the order of the text, none of them empty.
pub(super) fn settle(text: &str, mut found: Vec<Span>) -> Vec<Span> {
    found.retain(|span| span.range.start < span.range.end);
    name_people(&mut found);
    found.sort_by_key(|span| (span.class.rank(), Reverse(span.range.len()), span.range.start));
    // By start; they never overlap.
    let mut kept: BTreeMap<usize, (usize, SpanClass)> = BTreeMap::new();
    for Span { class, range } in found {
        for free in gaps(&kept, &range) {
            let free = trimmed(text, &free, &range);
            if free.start < free.end {
                kept.insert(free.start, (free.end, class));
            }
        }
    }
    let mut spans: Vec<Span> =
        kept.into_iter().map(|(start, (end, class))| Span { class, range: start..end }).collect();
    spans.dedup_by(|next, span| {
        // Given and family name are one span; so are parts of one class that touch.
        let people = next.class == SpanClass::ThirdParty;
        let between = text.get(span.range.end..next.range.start);
        let touch =
            between.is_some_and(|between| between.is_empty() || people && matches!(between, " " | "-"));
        let one = touch && next.class == span.class;
        if one {
            span.range.end = next.range.end;
        }
        one
    });
    spans
}

/// A span about people that holds or shares a third-party span is one itself.
fn name_people(found: &mut [Span]) {
    let mut people: Vec<Range<usize>> = (found.iter().filter(|span| span.class == SpanClass::ThirdParty))
        .map(|span| span.range.clone())
        .collect();
    people.sort_unstable_by_key(|range| range.start);
    people.dedup_by(|next, range| {
        let one = next.start < range.end;
        if one {
            range.end = range.end.max(next.end);
        }
        one
    });
    for span in found.iter_mut().filter(|span| span.class.about_people()) {
        let after = people.partition_point(|range| range.end <= span.range.start);
        if people.get(after).is_some_and(|range| range.start < span.range.end) {
            span.class = SpanClass::ThirdParty;
        }
    }
}

/// The parts of a range that nobody has yet.
fn gaps(kept: &BTreeMap<usize, (usize, SpanClass)>, range: &Range<usize>) -> Vec<Range<usize>> {
    let mut gaps = Vec::new();
    let mut at = range.start;
    if let Some((_, (end, _))) = kept.range(..range.start).next_back() {
        at = at.max(*end);
    }
    for (start, (end, _)) in kept.range(range.clone()) {
        gaps.push(at..*start);
        at = *end;
    }
    gaps.push(at..range.end);
    gaps.retain(|gap| gap.start < gap.end);
    gaps
}

/// A gap of a range without the space and the commas where it was cut.
fn trimmed(text: &str, gap: &Range<usize>, range: &Range<usize>) -> Range<usize> {
    let is_space = |c: char| c.is_whitespace() || c == ',';
    let mut said = text.get(gap.clone()).unwrap_or_default();
    let mut start = gap.start;
    if gap.start > range.start {
        said = said.trim_start_matches(is_space);
        start = gap.end - said.len();
    }
    if gap.end < range.end {
        said = said.trim_end_matches(is_space);
    }
    start..start + said.len()
}

/// At most so many spans: those nearest to each other become one. Hides more than before, never less.
pub(super) fn bounded(mut spans: Vec<Span>, most: usize) -> Vec<Span> {
    let Some(too_many) = spans.len().checked_sub(most.max(1)).filter(|n| *n > 0) else { return spans };
    let ends: Vec<usize> = spans.iter().map(|span| span.range.end).collect();
    let mut gaps: Vec<(usize, usize)> = (spans.iter().skip(1).zip(&ends))
        .map(|(next, end)| (next.range.start.saturating_sub(*end), next.range.start))
        .collect();
    gaps.sort_unstable();
    let mut joined: Vec<usize> = gaps.into_iter().take(too_many).map(|(_, start)| start).collect();
    joined.sort_unstable();
    spans.dedup_by(|next, span| {
        let one = joined.binary_search(&next.range.start).is_ok();
        if one {
            span.range.end = next.range.end;
            span.class = if span.class == next.class { span.class } else { SpanClass::Mixed };
        }
        one
    });
    spans
}

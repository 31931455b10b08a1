//! What the detectors propose, as spans that follow each other.

use super::{Found, SpanClass};
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::ops::Range;

/// A span of a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Span {
    pub(super) class: SpanClass,
    pub(super) range: Range<usize>,
}

/// Settles overlaps: the stronger class wins, then the longer span. In the order of the text, none of them empty.
pub(super) fn settle(text: &str, mut found: Vec<Found>) -> Vec<Span> {
    found.retain(|span| span.range.start < span.range.end);
    found.sort_by_key(|span| (span.by, Reverse(span.range.len()), span.range.start));
    // By start; they never overlap.
    let mut kept: BTreeMap<usize, (usize, SpanClass)> = BTreeMap::new();
    for span in found {
        let before_its_end = kept.range_mut(..span.range.end).rev();
        let mut free = true;
        for (_, (_, other)) in before_its_end.take_while(|(_, (end, _))| *end > span.range.start) {
            free = false;
            if span.class == SpanClass::ThirdParty && other.about_people() {
                *other = SpanClass::ThirdParty;
            }
        }
        if free {
            kept.insert(span.range.start, (span.range.end, span.class));
        }
    }
    let mut spans: Vec<Span> =
        kept.into_iter().map(|(start, (end, class))| Span { class, range: start..end }).collect();
    spans.dedup_by(|next, name| {
        // Given and family name are one span.
        let people = next.class == SpanClass::ThirdParty && name.class == SpanClass::ThirdParty;
        let one = people && matches!(text.get(name.range.end..next.range.start), Some(" " | "-"));
        if one {
            name.range.end = next.range.end;
        }
        one
    });
    spans
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

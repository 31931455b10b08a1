//! The bounds of this room, as rows that `docs/limits.md` is generated from.

use crate::{MAX_WRITTEN, answer, bridge, changes, query, rank, slice};
pub use oap_identity::limits::Limit;

const fn row(name: &'static str, value: usize, unit: &'static str, applies_to: &'static str) -> Limit {
    Limit { name, value: value as u64, unit, applies_to }
}

/// Each row has the constant that is enforced.
pub const LIMITS: &[Limit] = &[
    row("query::MAX_QUERY", query::MAX_QUERY, "bytes", "the words of a query"),
    row("query::MAX_CURSOR", query::MAX_CURSOR, "bytes", "the cursor of a query"),
    row(
        "rank::MAX_DATES",
        rank::MAX_DATES,
        "dates",
        "the years, months and days of a query that items are found by; what it names more are words alone",
    ),
    row(
        "answer::MAX_ANSWER",
        answer::MAX_ANSWER,
        "bytes",
        "the items of an answer, unless it is one; the rest is behind its cursor",
    ),
    row(
        "MAX_WRITTEN",
        MAX_WRITTEN,
        "bytes",
        "memory for the items that were written out for answers, of all views: 10,000 of some 6 KB",
    ),
    row(
        "slice::MAX_RECENT",
        slice::MAX_RECENT,
        "changes",
        "those of a view that are remembered for its subscriptions; one that was looked at before them is looked at whole",
    ),
    row(
        "changes::MAX_DIFFERING",
        changes::MAX_DIFFERING,
        "items",
        "those of a view that are remembered as not being with a subscriber; where more are, its next tick looks at all items",
    ),
    row("bridge::MAX_CATEGORIES", bridge::MAX_CATEGORIES, "categories", "a Cross Scope Bridge"),
];

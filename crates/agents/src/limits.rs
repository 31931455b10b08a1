//! The bounds of this room, as rows that `docs/limits.md` is generated from.

use crate::{answers, arguments};
pub use oap_identity::limits::Limit;

const fn row(name: &'static str, value: usize, unit: &'static str, applies_to: &'static str) -> Limit {
    Limit { name, value: value as u64, unit, applies_to }
}

/// Each row has the constant that is enforced.
pub const LIMITS: &[Limit] = &[
    row("arguments::MAX_TAGS", arguments::MAX_TAGS, "tags", "a call of a memory tool"),
    row("arguments::MAX_KINDS", arguments::MAX_KINDS, "kinds", "a call of a memory tool"),
    row("arguments::MAX_TOPIC", arguments::MAX_TOPIC, "characters", "a topic"),
    row("arguments::MAX_SOURCE", arguments::MAX_SOURCE, "characters", "the type and the ref of a source"),
    row("arguments::MAX_FACTS", arguments::MAX_FACTS, "facts", "the answer of a memory tool"),
    row("answers::MAX_TOPICS", answers::MAX_TOPICS, "topics", "what memory_status names"),
];

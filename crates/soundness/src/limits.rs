//! The bounds of this room, as rows that `docs/limits.md` is generated from.

use crate::{alike, guard, kept};
pub use oap_identity::limits::Limit;

const fn row(name: &'static str, value: usize, unit: &'static str, applies_to: &'static str) -> Limit {
    Limit { name, value: value as u64, unit, applies_to }
}

/// Each row has the constant that is enforced.
pub const LIMITS: &[Limit] = &[
    row(
        "guard::MAX_JUDGED",
        guard::MAX_JUDGED,
        "bytes",
        "a text that the guard judges; a longer one is stopped",
    ),
    row("guard::MAX_FINDINGS", guard::MAX_FINDINGS, "findings", "a text; the most severe ones"),
    row(
        "guard::MAX_CUES",
        guard::MAX_CUES,
        "phrases",
        "a text that the guard judges; one with more is stopped",
    ),
    row(
        "guard::MAX_BLOBS",
        guard::MAX_BLOBS,
        "encoded stretches",
        "a text that the guard judges; one with more is stopped",
    ),
    row("guard::MAX_BLOB", guard::MAX_BLOB, "bytes", "an encoded stretch, from its beginning"),
    row("alike::MAX_SKETCH", alike::MAX_SKETCH, "hashes", "what of a text is compared"),
    row("alike::MAX_WORDS", alike::MAX_WORDS, "words", "a text that is compared, from its beginning"),
    row("alike::MAX_COMPARED", alike::MAX_COMPARED, "records", "those that one is compared with"),
    row("kept::MAX_NAMED", kept::MAX_NAMED, "agents", "a rule of the write policy"),
    row("kept::MAX_PERIOD", kept::MAX_PERIOD as usize, "hours", "a period of the decay of confidence"),
];

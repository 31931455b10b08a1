//! The bounds of this room, as rows that `docs/limits.md` is generated from.

use crate::{card, handover};
pub use oap_identity::limits::Limit;

const fn row(name: &'static str, value: usize, unit: &'static str, applies_to: &'static str) -> Limit {
    Limit { name, value: value as u64, unit, applies_to }
}

/// Each row has the constant that is enforced.
pub const LIMITS: &[Limit] = &[
    row("card::MAX_CARD", card::MAX_CARD, "bytes", "an agent card; beyond it there is none"),
    row(
        "card::MAX_PARTS",
        card::MAX_PARTS,
        "parts",
        "extensions, and signatures, of an agent card; of more none is looked at",
    ),
    row(
        "handover::MAX_HANDOVERS",
        handover::MAX_HANDOVERS,
        "handovers",
        "a list of handovers; a longer one is not believed, and of our own the newest are published",
    ),
];

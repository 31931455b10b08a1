//! What answers have cost, as it is stored.

use serde::{Deserialize, Serialize};

/// Millionths of ε in an ε.
pub(crate) const UNIT: f64 = 1e6;

/// What was spent.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[allow(missing_docs, reason = "the names say it")]
pub struct Spent {
    pub queries: u64,
    /// Millionths of ε.
    pub micros: u64,
}

impl Spent {
    /// With an answer more, of this cost.
    pub(crate) fn plus(self, cost: u64) -> Self {
        Self { queries: self.queries + 1, micros: self.micros.saturating_add(cost) }
    }

    /// Whether it is beyond a number of answers or an ε.
    pub(crate) fn exceeds(self, queries: Option<u64>, epsilon: Option<f64>) -> bool {
        queries.is_some_and(|most| self.queries > most)
            || epsilon.is_some_and(|most| self.micros as f64 > (most * UNIT).round())
    }
}

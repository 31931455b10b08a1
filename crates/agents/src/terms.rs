//! What the owner says of an agent beside its permission: its role, and how many entries it may have (docs/openintent.md).

use crate::entry::{MAX_EPISODIC, MAX_SEMANTIC, MAX_WORKING};
use oap_memory::closed_enum;
use oap_memory::record::Tier;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Most entries of a tier that an owner may let an agent have.
pub const MAX_CAPACITY: u32 = 10_000;
/// Most namespaces whose episodic entries are never evicted.
pub const MAX_PINNED_NAMESPACES: usize = 64;

closed_enum! {
    /// What an agent is to the owner's other agents (RFC-0015 2.1).
    #[derive(Default)]
    Role {
        /// It works by itself, and on tasks that it is assigned to.
        #[default]
        Worker = "worker",
        /// It also gives tasks to others, and reads what they write for them, as long as these are open.
        Coordinator = "coordinator",
    }
}

/// How many entries an agent may have in force, by tier.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Capacities {
    /// Working entries; beyond it 429.
    pub working: u32,
    /// Episodic entries; beyond it the one that is worth least is evicted, or 429 where none may go.
    pub episodic: u32,
    /// Semantic entries that the agent wrote; beyond it 429.
    pub semantic: u32,
}

impl Default for Capacities {
    fn default() -> Self {
        let number = |of: usize| u32::try_from(of).unwrap_or(MAX_CAPACITY);
        Self { working: number(MAX_WORKING), episodic: number(MAX_EPISODIC), semantic: number(MAX_SEMANTIC) }
    }
}

impl Capacities {
    /// How many entries of a tier.
    #[must_use]
    pub fn of(self, tier: Tier) -> usize {
        let number = match tier {
            Tier::Working => self.working,
            Tier::Episodic => self.episodic,
            Tier::Semantic => self.semantic,
        };
        usize::try_from(number).unwrap_or(usize::MAX)
    }

    /// These, with what a change says.
    #[must_use]
    pub fn changed(self, change: CapacityChange) -> Self {
        Self {
            working: change.working.unwrap_or(self.working),
            episodic: change.episodic.unwrap_or(self.episodic),
            semantic: change.semantic.unwrap_or(self.semantic),
        }
    }
}

/// Capacities to set. What is absent stays.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[allow(missing_docs, reason = "the names say it")]
pub struct CapacityChange {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 10_000))]
    pub working: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 10_000))]
    pub episodic: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 10_000))]
    pub semantic: Option<u32>,
}

impl CapacityChange {
    /// Whether it changes nothing.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// The first member that is not 1 to [`MAX_CAPACITY`].
    #[must_use]
    pub fn out_of_bounds(&self) -> Option<&'static str> {
        let given = [
            ("capacities.working", self.working),
            ("capacities.episodic", self.episodic),
            ("capacities.semantic", self.semantic),
        ];
        let is_out = |number: Option<u32>| number.is_some_and(|number| !(1..=MAX_CAPACITY).contains(&number));
        given.into_iter().find(|(_, number)| is_out(*number)).map(|(name, _)| name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_changes_what_it_names() {
        let usual = Capacities::default();
        assert_eq!((usual.of(Tier::Working), usual.of(Tier::Episodic)), (MAX_WORKING, MAX_EPISODIC));
        assert_eq!(usual.of(Tier::Semantic), MAX_SEMANTIC);
        let change = CapacityChange { episodic: Some(200), ..CapacityChange::default() };
        assert_eq!(usual.changed(change), Capacities { episodic: 200, ..usual });
        assert_eq!(change.out_of_bounds(), None);
        for number in [0, MAX_CAPACITY + 1] {
            let change = CapacityChange { semantic: Some(number), ..CapacityChange::default() };
            assert_eq!(change.out_of_bounds(), Some("capacities.semantic"));
        }
    }
}

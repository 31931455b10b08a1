//! What the owner lets agents write, by sort of observation: the write policy (ML-07, ML-08, ML-13).
//!
//! A sort without a rule of the owner's has its usual one. What no rule keeps is denied, and a sort that nobody knows is.

use crate::policy::{Observation, Why};
use crate::trust::Decay;
use oap_identity::Did;
use oap_memory::item::MAX_TTL_DAYS;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Most agents that a rule names.
pub const MAX_NAMED: usize = 64;
/// Longest period of decay, in hours: ten years.
pub const MAX_PERIOD: u32 = 87_600;

/// What holds for a sort of observation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Rule {
    /// Whether it is kept at all.
    pub kept: bool,
    /// After how many days it is erased where its writer does not say; never if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = MAX_TTL_DAYS))]
    pub ttl_days: Option<u32>,
    /// The agents that may write it, by DID: 64 at most; every agent that may write if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = MAX_NAMED))]
    pub agents: Option<Vec<Did>>,
}

impl Rule {
    /// The rule of a sort of which the owner said nothing; of none, where a writer names no sort.
    #[must_use]
    pub const fn usual(sort: Option<Observation>) -> Self {
        match sort {
            // It is a fact that the agent was asked to remember.
            None => Self { kept: true, ttl_days: None, agents: None },
            Some(sort) => Self { kept: sort.is_kept(), ttl_days: sort.ttl_days(), agents: None },
        }
    }
}

/// The whole policy.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Policy {
    /// The owner's rules, by sort; a sort that is not there has its usual rule.
    #[serde(default)]
    pub types: BTreeMap<Observation, Rule>,
    /// The rule of what names no sort; the usual one if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub untyped: Option<Rule>,
    /// How the confidence of what agents concluded decays.
    #[serde(default)]
    pub decay: Decay,
}

/// Why a policy is none. The texts name the member, and how it must be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NotPolicy {
    /// An end that is none.
    #[error("ttl_days: must be 1 to {MAX_TTL_DAYS}")]
    Days,
    /// Too many agents.
    #[error("agents: at most {MAX_NAMED}")]
    Agents,
    /// What is counted in hundredths.
    #[error("decay: step and least must be 0 to 100 hundredths")]
    Hundredths,
    /// A period that is too long.
    #[error("decay.period_hours: must be 0 (no decay) to {MAX_PERIOD}")]
    Period,
}

impl Policy {
    /// The rule of a sort, or of what names none.
    #[must_use]
    pub fn rule(&self, sort: Option<Observation>) -> Rule {
        let own = match sort {
            None => self.untyped.as_ref(),
            Some(sort) => self.types.get(&sort),
        };
        own.cloned().unwrap_or_else(|| Rule::usual(sort))
    }

    /// The rule by which an agent may write that sort.
    ///
    /// # Errors
    /// [`Why::SortNotKept`], [`Why::UntypedNotKept`], [`Why::NotForAgent`].
    pub fn admits(&self, sort: Option<Observation>, author: &Did) -> Result<Rule, Why> {
        let rule = self.rule(sort);
        match (&rule.agents, sort) {
            _ if !rule.kept => Err(sort.map_or(Why::UntypedNotKept, Why::SortNotKept)),
            (Some(agents), _) if !agents.contains(author) => Err(Why::NotForAgent),
            _ => Ok(rule),
        }
    }

    /// With every rule spelled out, the usual ones too.
    #[must_use]
    pub fn spelled_out(&self) -> Self {
        let types = Observation::ALL.iter().map(|sort| (*sort, self.rule(Some(*sort)))).collect();
        Self { types, untyped: Some(self.rule(None)), decay: self.decay }
    }

    /// With what a change names in its place.
    #[must_use]
    pub fn changed(&self, change: Change) -> Self {
        let Change { types, untyped, decay } = change;
        let mut policy = self.clone();
        policy.types.extend(types);
        policy.untyped = untyped.or(policy.untyped);
        policy.decay = decay.unwrap_or(policy.decay);
        policy
    }

    /// Checks its bounds.
    ///
    /// # Errors
    /// [`NotPolicy`].
    pub fn check(&self) -> Result<(), NotPolicy> {
        for rule in self.types.values().chain(&self.untyped) {
            if rule.ttl_days.is_some_and(|days| !(1..=MAX_TTL_DAYS).contains(&days)) {
                return Err(NotPolicy::Days);
            }
            if rule.agents.as_ref().is_some_and(|agents| agents.len() > MAX_NAMED) {
                return Err(NotPolicy::Agents);
            }
        }
        if self.decay.step > 100 || self.decay.least > 100 {
            return Err(NotPolicy::Hundredths);
        }
        if self.decay.period_hours > MAX_PERIOD { Err(NotPolicy::Period) } else { Ok(()) }
    }
}

/// What the owner changes of a policy: what is named stands in the place of what was there, all else stays.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Change {
    /// Rules of sorts.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub types: BTreeMap<Observation, Rule>,
    /// The rule of what names no sort.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub untyped: Option<Rule>,
    /// How confidence decays.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decay: Option<Decay>,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn did(name: &str) -> Did {
        format!("did:web:{name}.example").parse().unwrap()
    }

    #[test]
    fn what_the_owner_does_not_say_is_as_usual() {
        let policy = Policy::default();
        for sort in Observation::ALL {
            let rule = policy.rule(Some(*sort));
            assert_eq!((rule.kept, rule.ttl_days), (sort.is_kept(), sort.ttl_days()), "{sort}");
            assert_eq!(policy.admits(Some(*sort), &did("a")).is_ok(), sort.is_kept(), "{sort}");
        }
        assert_eq!(policy.admits(None, &did("a")), Ok(Rule::usual(None)));
        assert_eq!(policy.spelled_out().types.len(), Observation::ALL.len());
        assert_eq!(policy.spelled_out().spelled_out(), policy.spelled_out());
    }

    #[test]
    fn a_rule_says_who_may_write() {
        let sort = Observation::SessionSummary;
        let rule = Rule { kept: true, ttl_days: Some(2), agents: Some(vec![did("a")]) };
        let never = Rule { kept: false, ..Rule::usual(None) };
        let change = Change { types: [(sort, rule.clone())].into(), untyped: Some(never), decay: None };
        let policy = Policy::default().changed(change);
        assert_eq!(policy.admits(Some(sort), &did("a")), Ok(rule));
        assert_eq!(policy.admits(Some(sort), &did("b")), Err(Why::NotForAgent));
        assert_eq!(policy.admits(None, &did("a")), Err(Why::UntypedNotKept));
        // What a change does not name stays.
        let later = policy
            .changed(Change { decay: Some(Decay { step: 1, ..Decay::default() }), ..Change::default() });
        assert_eq!((&later.types, &later.untyped, later.decay.step), (&policy.types, &policy.untyped, 1));
    }

    #[test]
    fn bounds_hold() {
        let with = |rule: Rule| Policy { untyped: Some(rule), ..Policy::default() };
        let usual = Rule::usual(None);
        assert_eq!(with(Rule { ttl_days: Some(0), ..usual.clone() }).check(), Err(NotPolicy::Days));
        assert_eq!(
            with(Rule { ttl_days: Some(MAX_TTL_DAYS + 1), ..usual.clone() }).check(),
            Err(NotPolicy::Days)
        );
        assert_eq!(with(Rule { ttl_days: Some(MAX_TTL_DAYS), ..usual.clone() }).check(), Ok(()));
        let many = |count: usize| Rule { agents: Some(vec![did("a"); count]), ..usual.clone() };
        assert_eq!(with(many(MAX_NAMED)).check(), Ok(()));
        assert_eq!(with(many(MAX_NAMED + 1)).check(), Err(NotPolicy::Agents));
        let decays = |decay: Decay| Policy { decay, ..Policy::default() }.check();
        assert_eq!(decays(Decay { step: 101, ..Decay::default() }), Err(NotPolicy::Hundredths));
        assert_eq!(decays(Decay { least: 101, ..Decay::default() }), Err(NotPolicy::Hundredths));
        assert_eq!(
            decays(Decay { period_hours: MAX_PERIOD + 1, ..Decay::default() }),
            Err(NotPolicy::Period)
        );
        assert_eq!(decays(Decay::default()), Ok(()));
    }

    /// As it is stored and answered.
    #[test]
    fn it_reads_as_it_was_written() {
        let policy = Policy::default().spelled_out();
        let text = serde_json::to_string(&policy).unwrap();
        assert_eq!(serde_json::from_str::<Policy>(&text).unwrap(), policy);
        assert_eq!(serde_json::from_str::<Policy>("{}").unwrap(), Policy::default());
        assert!(serde_json::from_str::<Policy>(r#"{"types": {"gossip": {"kept": true}}}"#).is_err());
    }
}

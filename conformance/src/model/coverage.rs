//! Which rules decided something, and which never did.

use super::Rule;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// How often each rule decided something.
#[derive(Debug, Default)]
pub(super) struct Decided(Mutex<BTreeMap<Rule, u64>>);

impl Clone for Decided {
    fn clone(&self) -> Self {
        Self(Mutex::new(self.counts()))
    }
}

impl Decided {
    fn locked(&self) -> MutexGuard<'_, BTreeMap<Rule, u64>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn note(&self, rule: Rule) {
        *self.locked().entry(rule).or_default() += 1;
    }

    pub(super) fn counts(&self) -> BTreeMap<Rule, u64> {
        self.locked().clone()
    }
}

/// The rules that never decided anything.
#[must_use]
pub fn undecided(decided: &BTreeMap<Rule, u64>) -> BTreeSet<Rule> {
    Rule::all().into_iter().filter(|rule| !decided.contains_key(rule)).collect()
}

/// The report: how many rules decided something, and each that never did, one a line.
#[must_use]
pub fn report(decided: &BTreeMap<Rule, u64>) -> String {
    let (all, never) = (Rule::all().len(), undecided(decided));
    let mut text = format!("{} of {all} rules of the model decided something\n", all - never.len());
    for rule in never {
        let _ = writeln!(text, "never: {rule}");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::rule::{Epistemic, Standing};

    #[test]
    fn what_never_decided_is_listed_by_its_words() {
        let decided = Decided::default();
        decided.note(Rule::Standing(Standing::Current));
        decided.note(Rule::Standing(Standing::Current));
        let counts = decided.counts();
        assert_eq!(counts[&Rule::Standing(Standing::Current)], 2);
        let text = report(&counts);
        assert!(text.starts_with(&format!("1 of {} ", Rule::all().len())), "{text}");
        assert!(text.contains(&format!("never: {}", Rule::Epistemic(Epistemic::At))));
        assert!(!text.contains(&Rule::Standing(Standing::Current).to_string()));
    }

    #[test]
    fn rules_are_listed_once_and_tell_apart() {
        let all = Rule::all();
        assert_eq!(all.iter().collect::<BTreeSet<_>>().len(), all.len());
        assert_eq!(all.iter().map(ToString::to_string).collect::<BTreeSet<_>>().len(), all.len());
    }
}

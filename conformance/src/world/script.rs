//! Histories as scripts: JSON Lines that carry all of the world that their steps name, so that nobody needs its maker to live through them.

use super::history::{History, Step};
use super::{CONTACTS, Grant, Item, Planted, World};
use oap_identity::Timestamp;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// The first line of a script.
#[derive(Serialize, Deserialize)]
struct Head {
    /// The world's seed, which is a name here: nothing is made from it.
    world: u64,
    scope: String,
    at: Timestamp,
}

/// An item of the world, by its number.
#[derive(Serialize, Deserialize)]
struct ItemLine {
    item: usize,
    draft: Value,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    derived_from: Vec<usize>,
    planted: Planted,
}

/// A grant of the world, by its number.
#[derive(Serialize, Deserialize)]
struct GrantLine {
    grant: usize,
    grantee: usize,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    parent: Option<usize>,
    draft: Value,
    queries: Vec<Value>,
}

/// Why a script was not read.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the names say it")]
pub enum ScriptError {
    /// Nothing in it.
    #[error("the script is empty")]
    Empty,
    /// A line that is no world, item, grant or step.
    #[error("line {line}: {why}")]
    Line { line: usize, why: serde_json::Error },
    /// A number that is too high.
    #[error("line {line}: items, grants and grantees have numbers below {END}")]
    Number { line: usize },
    /// A number that stands for nothing.
    #[error("there is no {what} {number} in the script")]
    Missing { what: &'static str, number: usize },
    /// Too many steps.
    #[error("more than {MAX_STEPS} steps")]
    Steps,
}

/// Longest script that is read, in steps.
const MAX_STEPS: usize = 1_000;
/// The end of the numbers of items, grants and grantees.
const END: usize = 200;

impl History {
    /// As a script: JSON Lines, the world first, with the items and grants that steps name.
    #[must_use]
    pub fn script(&self) -> String {
        let world = &self.world;
        let (items, grants) = self.named();
        let line = |line: serde_json::Result<String>| line.map(|line| line + "\n").unwrap_or_default();
        let head = Head { world: world.seed, scope: world.scope.clone(), at: self.at };
        let mut script = line(serde_json::to_string(&head));
        for (item, Item { draft, planted, derived_from }) in world.items().cloned().enumerate() {
            if items.contains(&item) {
                script += &line(serde_json::to_string(&ItemLine { item, draft, derived_from, planted }));
            }
        }
        for (grant, Grant { grantee, parent, draft, queries }) in world.grants.iter().cloned().enumerate() {
            if grants.contains(&grant) {
                let grant = GrantLine { grant, grantee, parent, draft, queries };
                script += &line(serde_json::to_string(&grant));
            }
        }
        script.extend(self.steps.iter().map(|step| line(serde_json::to_string(step))));
        script
    }

    /// Reads a script. Its steps name nothing that is not in it.
    ///
    /// # Errors
    /// [`ScriptError`].
    pub fn parse(script: &str) -> Result<Self, ScriptError> {
        let mut lines = script.lines().map(str::trim).zip(1..).filter(|(text, _)| !text.is_empty());
        let (head, line) = lines.next().ok_or(ScriptError::Empty)?;
        let Head { world: seed, scope, at } = read(head, line)?;
        let (mut items, mut grants, mut steps) = (BTreeMap::new(), BTreeMap::new(), Vec::new());
        for (text, line) in lines {
            let members: Value = read(text, line)?;
            let is_low =
                |number: usize| if number < END { Ok(()) } else { Err(ScriptError::Number { line }) };
            if members.get("step").is_some() {
                steps.push(read::<Step>(text, line)?);
            } else if members.get("item").is_some() {
                let ItemLine { item, draft, derived_from, planted } = read(text, line)?;
                is_low(item)?;
                items.insert(item, Item { draft, planted, derived_from });
            } else {
                let GrantLine { grant, grantee, parent, draft, queries } = read(text, line)?;
                is_low(grant.max(grantee))?;
                grants.insert(grant, Grant { grantee, parent, draft, queries });
            }
            if steps.len() > MAX_STEPS {
                return Err(ScriptError::Steps);
            }
        }
        let there: [BTreeSet<usize>; 2] = [items.keys().copied().collect(), grants.keys().copied().collect()];
        let world = World { seed, scope, batches: vec![numbered(items)], grants: numbered(grants) };
        let history = Self { world, at, steps };
        let (items, grants) = history.named();
        for ((what, named), there) in [("item", items), ("grant", grants)].into_iter().zip(&there) {
            if let Some(number) = named.difference(there).next() {
                return Err(ScriptError::Missing { what, number: *number });
            }
        }
        for step in &history.steps {
            let Step::Query { grant, query } = *step else { continue };
            if history.world.grants.get(grant).is_none_or(|grant| query >= grant.queries.len()) {
                return Err(ScriptError::Missing { what: "query", number: query });
            }
        }
        Ok(history)
    }

    /// The items and the grants that steps name, and the contacts, which are there before the first one.
    fn named(&self) -> (BTreeSet<usize>, BTreeSet<usize>) {
        let items = self.steps.iter().flat_map(|step| step.names().0).flatten();
        ((0..CONTACTS).chain(items).collect(), self.steps.iter().filter_map(|step| step.names().1).collect())
    }
}

fn read<T: DeserializeOwned>(text: &str, line: usize) -> Result<T, ScriptError> {
    serde_json::from_str(text).map_err(|why| ScriptError::Line { line, why })
}

/// All up to the last one, so that each has its number; what the script does not have, and no step names, is empty.
fn numbered<T: Default>(mut read: BTreeMap<usize, T>) -> Vec<T> {
    let end = read.last_key_value().map_or(0, |(last, _)| last + 1);
    (0..end).map(|number| read.remove(&number).unwrap_or_default()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::world::Setting;
    use serde_json::json;

    fn history(seed: u64) -> History {
        History::new(seed, 60, &Setting::of(&json!({}), Timestamp::from_millis(1_777_636_800_000)))
    }

    /// All of a history that its steps name.
    fn told(history: &History) -> impl PartialEq + std::fmt::Debug {
        let (items, grants) = history.named();
        let world = &history.world;
        let items: Vec<_> = world.items().enumerate().filter(|(n, _)| items.contains(n)).collect();
        let granted: Vec<_> = world.grants.iter().enumerate().filter(|(n, _)| grants.contains(n)).collect();
        (&world.scope, history.at, &history.steps, items, granted)
    }

    #[test]
    fn a_script_reads_back_to_the_history_whatever_its_seed() {
        for seed in 0..50 {
            let mut history = history(seed);
            // Whole, and short as one that was shortened.
            for length in [history.steps.len(), 7] {
                history.steps.truncate(length);
                let script = history.script();
                let read = History::parse(&script).unwrap();
                assert_eq!(told(&read), told(&history), "{seed}");
                assert_eq!(read.script(), script, "{seed}");
                let (was, is) = (format!("{{\"world\":{seed},"), "{\"world\":1000000,");
                assert!(script.starts_with(&was), "{seed}");
                let read = History::parse(&script.replacen(&was, is, 1)).unwrap();
                assert_eq!(read.world.seed, 1_000_000);
                assert_eq!(told(&read), told(&history), "{seed}");
            }
        }
    }

    #[test]
    fn a_script_without_what_its_steps_name_is_refused() {
        let script = history(1).script();
        for (missing, begins) in [("item", "{\"item\":0,"), ("grant", "{\"grant\":1,")] {
            let lines = script.lines().filter(|line| !line.starts_with(begins));
            let refused = History::parse(&lines.collect::<Vec<_>>().join("\n")).unwrap_err();
            assert!(matches!(refused, ScriptError::Missing { what, .. } if what == missing), "{refused}");
        }
        let asked = script.clone() + "{\"step\":\"query\",\"grant\":0,\"query\":4}";
        assert!(matches!(History::parse(&asked), Err(ScriptError::Missing { what: "query", number: 4 })));
        let far = script + "{\"item\":200,\"draft\":{},\"planted\":{\"spans\":{},\"canaries\":{}}}";
        assert!(matches!(History::parse(&far), Err(ScriptError::Number { .. })));
        assert!(matches!(History::parse("\n"), Err(ScriptError::Empty)));
        let by_seed = "{\"world\":7,\"items\":16,\"queries\":4}";
        assert!(matches!(History::parse(by_seed), Err(ScriptError::Line { line: 1, .. })));
    }
}

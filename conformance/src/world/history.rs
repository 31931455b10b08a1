//! Histories: what owner and grantees of a world do, step by step, in random order; and histories as scripts.

use super::chance::Chance;
use super::{CONTACTS, Setting, Size, World};
use serde::{Deserialize, Serialize};

/// A step. Items, grants and queries are those of the world, by their numbers. A step whose item or grant is not there is left out.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "step")]
#[allow(missing_docs, reason = "the names say it")]
pub enum Step {
    /// The owner captures an item.
    Capture { item: usize },
    /// The owner corrects an item.
    Correct {
        item: usize,
        /// The item whose content it gets.
        like: usize,
    },
    /// The owner gives an item other labels.
    Relabel {
        item: usize,
        /// The item whose labels it gets.
        like: usize,
    },
    /// The owner confirms an item.
    Confirm { item: usize },
    /// The owner takes an item back.
    Retract { item: usize },
    /// The owner puts an item back.
    Restore { item: usize },
    /// The owner deletes an item.
    Delete { item: usize },
    /// The owner issues a grant, or a grantee makes one of its own, and it is exchanged.
    Grant { grant: usize },
    /// The owner revokes a grant.
    Revoke { grant: usize },
    /// A grantee asks.
    Query { grant: usize, query: usize },
    /// A grantee asks for what is behind the last cursor that it got.
    Page { grant: usize },
    /// A grantee takes its export.
    Export { grant: usize },
    /// A grantee reads the log.
    Audit { grant: usize },
    /// A grantee countersigns the receipt of the last answer that it got.
    Ack { grant: usize },
    /// A grantee asks for vectors: of what it had, and of what it had not.
    Vectors { grant: usize },
    /// The owner puts a new signing key into use.
    Rotate,
    /// A grantee exchanges its grant once more.
    Exchange { grant: usize },
    /// Time passes.
    Wait {
        /// How long, in milliseconds.
        millis: u64,
    },
}

/// A world and what happens in it. Its contacts are there from the beginning: texts are read by them.
#[derive(Debug, Clone, PartialEq)]
#[allow(missing_docs, reason = "the names say it")]
pub struct History {
    /// The world's seed.
    pub seed: u64,
    /// The world's size.
    pub size: Size,
    pub steps: Vec<Step>,
}

/// The first line of a script.
#[derive(Serialize, Deserialize)]
struct Head {
    world: u64,
    items: usize,
    queries: usize,
}

/// Why a script was not read.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the names say it")]
pub enum ScriptError {
    /// Nothing in it.
    #[error("the script is empty")]
    Empty,
    /// A line that is no world or step.
    #[error("line {line}: {why}")]
    Line { line: usize, why: serde_json::Error },
    /// A world that is too large.
    #[error("line {line}: a world has at most {MAX_SIZE} items and queries")]
    World { line: usize },
    /// Too many steps.
    #[error("more than {MAX_STEPS} steps")]
    Steps,
}

/// Longest script that is read, in steps.
pub const MAX_STEPS: usize = 1_000;
/// Largest world of a script, in items or queries.
const MAX_SIZE: usize = 200;

impl History {
    /// The history of a seed.
    #[must_use]
    pub fn new(seed: u64, length: usize, setting: &Setting) -> Self {
        let size = Size { items: 16, queries: 4 };
        let world = World::new(seed, setting, size);
        // Apart from the draws of the world itself.
        let mut chance = Chance::new(!seed);
        let mut steps: Vec<Step> = (CONTACTS..CONTACTS + 3).map(|item| Step::Capture { item }).collect();
        steps.extend((0..2).map(|grant| Step::Grant { grant }));
        let (items, grants) = (world.items().count(), world.grants.len());
        let (mut captured, mut granted, mut waits) = (CONTACTS + 3, 2, 0);
        while steps.len() < length {
            let item = CONTACTS + chance.below(captured - CONTACTS);
            let like = CONTACTS + chance.below(items - CONTACTS);
            let grant = chance.below(granted);
            steps.push(match chance.deal("step", 26) {
                0..3 if captured < items => {
                    captured += 1;
                    Step::Capture { item: captured - 1 }
                }
                3..6 if granted < grants => {
                    granted += 1;
                    Step::Grant { grant: granted - 1 }
                }
                6 | 7 => Step::Correct { item, like },
                8 => Step::Relabel { item, like },
                9 => Step::Confirm { item },
                10 => Step::Retract { item },
                11 => Step::Restore { item },
                12 => Step::Delete { item },
                13 if granted > 3 => Step::Revoke { grant },
                14 | 15 => Step::Page { grant },
                16 => Step::Export { grant },
                17 => Step::Audit { grant },
                18 => Step::Ack { grant },
                19 if waits < 3 => {
                    waits += 1;
                    Step::Wait { millis: 1_500 }
                }
                _ => Step::Query { grant, query: chance.below(size.queries) },
            });
        }
        later(seed, granted, &mut steps);
        Self { seed, size, steps }
    }

    /// As a script: JSON Lines, the world first.
    #[must_use]
    pub fn script(&self) -> String {
        let head = Head { world: self.seed, items: self.size.items, queries: self.size.queries };
        let lines =
            std::iter::once(serde_json::to_string(&head)).chain(self.steps.iter().map(serde_json::to_string));
        lines.flatten().map(|line| line + "\n").collect()
    }

    /// Reads a script.
    ///
    /// # Errors
    /// [`ScriptError`].
    pub fn parse(script: &str) -> Result<Self, ScriptError> {
        let mut lines = script.lines().map(str::trim).zip(1..).filter(|(line, _)| !line.is_empty());
        let wrong = |line: usize, why: serde_json::Error| ScriptError::Line { line, why };
        let (head, line) = lines.next().ok_or(ScriptError::Empty)?;
        let head: Head = serde_json::from_str(head).map_err(|e| wrong(line, e))?;
        if head.items > MAX_SIZE || head.queries > MAX_SIZE {
            return Err(ScriptError::World { line });
        }
        let mut steps = Vec::new();
        for (line, number) in lines {
            if steps.len() == MAX_STEPS {
                return Err(ScriptError::Steps);
            }
            steps.push(serde_json::from_str(line).map_err(|e| wrong(number, e))?);
        }
        Ok(Self { seed: head.world, size: Size { items: head.items, queries: head.queries }, steps })
    }
}

/// Most rotations of keys in a history: each leaves a key in the DID document for good.
const ROTATIONS: usize = 2;

/// Puts rotations of the keys into a history, exchanges behind them, and questions for vectors. They are drawn apart, so that the rest of it
/// stays what it was.
fn later(seed: u64, grants: usize, steps: &mut Vec<Step>) {
    let mut chance = Chance::new(seed.rotate_left(32) ^ !0);
    for _ in 0..=chance.below(ROTATIONS) {
        let mut at = steps.len() / 4 + chance.below(steps.len() / 2);
        steps.insert(at.min(steps.len()), Step::Rotate);
        for _ in 0..3 {
            at += 1 + chance.below(steps.len().saturating_sub(at));
            steps.insert(at.min(steps.len()), Step::Exchange { grant: chance.below(grants) });
        }
    }
    for grant in 0..grants {
        let at = steps.len() / 2 + chance.below(steps.len() / 2 + 1);
        steps.insert(at.min(steps.len()), Step::Vectors { grant });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use oap_identity::Timestamp;
    use serde_json::json;

    #[test]
    fn every_history_rotates_keys_and_reads_back_from_its_script() {
        let setting = Setting::of(&json!({}), Timestamp::from_millis(1_777_636_800_000));
        for seed in 0..50 {
            let history = History::new(seed, 60, &setting);
            let of = |what: fn(&Step) -> bool| history.steps.iter().filter(|step| what(step)).count();
            let rotations = of(|step| *step == Step::Rotate);
            assert!((1..=ROTATIONS).contains(&rotations), "{rotations}");
            assert_eq!(of(|step| matches!(step, Step::Exchange { .. })), 3 * rotations);
            assert!(of(|step| matches!(step, Step::Vectors { .. })) > 0);
            assert_eq!(History::parse(&history.script()).ok().as_ref(), Some(&history));
        }
    }
}

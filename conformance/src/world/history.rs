//! Histories: what owner and grantees of a world do, step by step, in random order; and histories as scripts.

use super::chance::Chance;
use super::{CONTACTS, Setting, Size, World};
use serde::{Deserialize, Serialize};

/// A step. Items, grants and queries are those of the world, by their numbers. A step whose item or grant is not there is left out.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "step")]
pub enum Step {
    /// The owner captures an item.
    Capture {
        /// The item.
        item: usize,
    },
    /// The owner corrects an item.
    Correct {
        /// The item.
        item: usize,
        /// The item whose content it gets.
        like: usize,
    },
    /// The owner gives an item other labels.
    Relabel {
        /// The item.
        item: usize,
        /// The item whose labels it gets.
        like: usize,
    },
    /// The owner confirms an item.
    Confirm {
        /// The item.
        item: usize,
    },
    /// The owner takes an item back.
    Retract {
        /// The item.
        item: usize,
    },
    /// The owner puts an item back.
    Restore {
        /// The item.
        item: usize,
    },
    /// The owner deletes an item.
    Delete {
        /// The item.
        item: usize,
    },
    /// The owner issues a grant, or a grantee makes one of its own, and it is exchanged.
    Grant {
        /// The grant.
        grant: usize,
    },
    /// The owner revokes a grant.
    Revoke {
        /// The grant.
        grant: usize,
    },
    /// A grantee asks.
    Query {
        /// The grant.
        grant: usize,
        /// The query.
        query: usize,
    },
    /// A grantee asks for what is behind the last cursor that it got.
    Page {
        /// The grant.
        grant: usize,
    },
    /// A grantee takes its export.
    Export {
        /// The grant.
        grant: usize,
    },
    /// A grantee reads the log.
    Audit {
        /// The grant.
        grant: usize,
    },
    /// A grantee countersigns the receipt of the last answer that it got.
    Ack {
        /// The grant.
        grant: usize,
    },
    /// Time passes.
    Wait {
        /// How long, in milliseconds.
        millis: u64,
    },
}

/// A world and what happens in it. Its contacts are there from the beginning: texts are read by them.
#[derive(Debug, Clone, PartialEq)]
pub struct History {
    /// The world's seed.
    pub seed: u64,
    /// The world's size.
    pub size: Size,
    /// The steps.
    pub steps: Vec<Step>,
}

/// The first line of a script.
#[derive(Serialize, Deserialize)]
struct Head {
    world: u64,
    items: usize,
    queries: usize,
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
    /// The line, and why it is none; more than [`MAX_STEPS`] of them.
    pub fn parse(script: &str) -> Result<Self, String> {
        let mut lines = script.lines().map(str::trim).zip(1..).filter(|(line, _)| !line.is_empty());
        let wrong = |number: usize, why: serde_json::Error| format!("line {number}: {why}");
        let (head, number) = lines.next().ok_or("the script is empty")?;
        let head: Head = serde_json::from_str(head).map_err(|e| wrong(number, e))?;
        if head.items > MAX_SIZE || head.queries > MAX_SIZE {
            return Err(format!("line 1: a world has at most {MAX_SIZE} items and queries"));
        }
        let mut steps = Vec::new();
        for (line, number) in lines {
            if steps.len() == MAX_STEPS {
                return Err(format!("more than {MAX_STEPS} steps"));
            }
            steps.push(serde_json::from_str(line).map_err(|e| wrong(number, e))?);
        }
        Ok(Self { seed: head.world, size: Size { items: head.items, queries: head.queries }, steps })
    }
}

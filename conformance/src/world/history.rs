//! Histories: what owner and grantees of a world do, step by step, in random order.

use super::chance::Chance;
use super::owed::Owed;
use super::{CONTACTS, Setting, Size, World, renamed};
use oap_identity::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// A step. Items, grants and queries are those of the world, by their numbers. What cannot be done as things stand is left out.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "step")]
#[allow(missing_docs, reason = "the names say it")]
pub enum Step {
    /// The owner captures an item.
    Capture { item: usize },
    /// The owner corrects an item.
    Correct {
        item: usize,
        /// The item that it becomes like.
        like: usize,
        /// In which member.
        #[serde(default)]
        what: Corrected,
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
    /// The owner sets the context of a scope.
    Context {
        /// A document of `oap-ccc.schema.json`, where [`FIRST_GRANTEE`](super::gated::FIRST_GRANTEE) stands for a grantee.
        context: Value,
        /// The grant whose grantee that is.
        grant: usize,
    },
    /// The owner signs a bridge from the world's second scope to its first one.
    Bridge {
        /// The item whose labels and kind it carries.
        like: usize,
    },
    /// The owner takes the last bridge back.
    Unbridge,
    /// The owner consents to a grant.
    Consent { grant: usize },
    /// A grantee exchanges its grant once more.
    Exchange { grant: usize },
    /// The state of a grant is asked for by its grantee, or by another.
    State {
        grant: usize,
        #[serde(default)]
        by_another: bool,
    },
    /// Time passes.
    Wait {
        /// How long, in milliseconds.
        millis: u64,
    },
}

/// What a correction changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[allow(missing_docs, reason = "the names say it")]
pub enum Corrected {
    #[default]
    Content,
    Kind,
    Labels,
    Subject,
    Sensitivity,
    Confidence,
    CapturedAt,
    /// `expires_at` and `ttl_days`.
    End,
    Exportable,
    Extensions,
    Embedding,
}

impl Corrected {
    const ALL: [Self; 11] = [
        Self::Content,
        Self::Kind,
        Self::Labels,
        Self::Subject,
        Self::Sensitivity,
        Self::Confidence,
        Self::CapturedAt,
        Self::End,
        Self::Exportable,
        Self::Extensions,
        Self::Embedding,
    ];

    /// What makes a draft like another one: the members that change, as `correct` takes them. `None` where nothing can: words of a turn
    /// may count for its neighbours in the conversation, so none comes near another.
    #[must_use]
    pub fn changes(self, draft: &Value, like: &Value) -> Option<Value> {
        let is_turn = |draft: &Value| draft["kind"] == "conversation_turn";
        let member = |name: &str| Some(json!({name: like[name]}));
        match self {
            // What the other does not have is taken away: the spans are those of the other alone.
            Self::Content => {
                let content = &like["content"];
                Some(json!({"content": {"text": content["text"], "structured": content["structured"]}}))
            }
            Self::Kind if is_turn(like) => None,
            Self::Kind => member("kind"),
            Self::Labels => member("labels"),
            Self::Subject => member("subject_entity_id"),
            Self::Sensitivity => member("sensitivity"),
            Self::Confidence => Some(json!({"provenance": {"confidence": like["provenance"]["confidence"]}})),
            Self::CapturedAt => {
                let at = like["provenance"]["captured_at"].as_str()?;
                let apart = !is_turn(draft) && !is_turn(like);
                apart.then(|| json!({"provenance": {"captured_at": at}}))
            }
            Self::End => Some(json!({"expires_at": like["expires_at"], "ttl_days": like["ttl_days"]})),
            Self::Exportable => member("exportable"),
            Self::Extensions => member("extensions"),
            Self::Embedding => member("embedding"),
        }
    }
}

impl Step {
    /// Whether grantees may see something else after it: its owner did something, or time went by, in which items end.
    #[must_use]
    pub const fn changes_views(&self) -> bool {
        match self {
            Self::Capture { .. }
            | Self::Correct { .. }
            | Self::Relabel { .. }
            | Self::Confirm { .. }
            | Self::Retract { .. }
            | Self::Restore { .. }
            | Self::Delete { .. }
            | Self::Grant { .. }
            | Self::Revoke { .. }
            | Self::Rotate
            | Self::Context { .. }
            | Self::Bridge { .. }
            | Self::Unbridge
            | Self::Consent { .. }
            | Self::Wait { .. } => true,
            Self::Query { .. }
            | Self::Page { .. }
            | Self::Export { .. }
            | Self::Audit { .. }
            | Self::Ack { .. }
            | Self::Vectors { .. }
            | Self::Exchange { .. }
            | Self::State { .. } => false,
        }
    }

    /// The items and the grant that it names.
    pub(super) const fn names(&self) -> ([Option<usize>; 2], Option<usize>) {
        match *self {
            Self::Capture { item }
            | Self::Confirm { item }
            | Self::Retract { item }
            | Self::Restore { item }
            | Self::Delete { item } => ([Some(item), None], None),
            Self::Correct { item, like, .. } | Self::Relabel { item, like } => {
                ([Some(item), Some(like)], None)
            }
            Self::Bridge { like } => ([None, Some(like)], None),
            Self::Grant { grant }
            | Self::Revoke { grant }
            | Self::Query { grant, .. }
            | Self::Page { grant }
            | Self::Export { grant }
            | Self::Audit { grant }
            | Self::Ack { grant }
            | Self::Vectors { grant }
            | Self::Context { grant, .. }
            | Self::Consent { grant }
            | Self::Exchange { grant }
            | Self::State { grant, .. } => ([None, None], Some(grant)),
            Self::Rotate | Self::Unbridge | Self::Wait { .. } => ([None, None], None),
        }
    }
}

/// A world and what happens in it. Its contacts are there from the beginning: texts are read by them.
#[derive(Debug, Clone, PartialEq)]
pub struct History {
    /// Some of its items are in a second scope.
    pub world: World,
    /// When the world was made: its times are as far from now as they were from then.
    pub at: Timestamp,
    /// What happens, in this order.
    pub steps: Vec<Step>,
}

impl History {
    /// The history of a seed.
    #[must_use]
    pub fn new(seed: u64, length: usize, setting: &Setting) -> Self {
        let size = Size { items: 16, queries: 4 };
        let world = World::new(seed, setting, size);
        // Apart from the draws of the world itself.
        let mut chance = Chance::new(!seed);
        let mut steps: Vec<Step> = (CONTACTS..CONTACTS + 3).map(|item| Step::Capture { item }).collect();
        // The first grant is over two scopes: it is refused without a bridge.
        steps.push(Step::Bridge { like: CONTACTS + 1 });
        steps.extend((0..2).map(|grant| Step::Grant { grant }));
        let (items, grants) = (world.items().count(), world.grants.len());
        let (mut captured, mut granted, mut waits) = (CONTACTS + 3, 2, 0);
        let mut retracted: Vec<usize> = Vec::new();
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
                6 | 7 => Step::Correct { item, like, what: chance.dealt("corrected", &Corrected::ALL) },
                8 => Step::Relabel { item, like },
                9 => Step::Confirm { item },
                10 => {
                    retracted.push(item);
                    Step::Retract { item }
                }
                11 => Step::Restore { item: retracted.pop().unwrap_or(item) },
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
                20 => {
                    // What is owed ends now and then.
                    let owed =
                        if chance.once_in(2) { Owed::Nothing } else { chance.dealt("owed", &Owed::ALL) };
                    context(&world, (chance.once_in(3), owed), like, grant)
                }
                21 if chance.once_in(2) => Step::Unbridge,
                21 => Step::Bridge { like },
                22 => Step::Consent { grant },
                _ => Step::Query { grant, query: chance.below(size.queries) },
            });
        }
        later(seed, granted, &world, &mut steps);
        // A gateway without a profile of ours has no grants.
        steps.retain(|step| step.names().1.is_none_or(|grant| grant < grants));
        Self { world: world.across(setting), at: setting.now, steps }
    }

    /// The same history in another scope and at another time, so that it can be lived once more.
    #[must_use]
    pub fn again(&self, scope: &str, now: Timestamp) -> Self {
        let world = self.world.in_scope(scope).moved(now.millis() - self.at.millis());
        let steps = self.steps.iter().cloned().map(|step| match step {
            Step::Context { context, grant } => {
                Step::Context { context: renamed(&context, &self.world.scope, scope), grant }
            }
            step => step,
        });
        Self { world, at: now, steps: steps.collect() }
    }
}

/// Most rotations of keys in a history: each leaves a key in the DID document for good.
const ROTATIONS: usize = 2;

/// The owner comes to owe something in the world's scope, or in the one beside it: about the grantee of a grant, and what an item's label, or
/// kind, covers.
fn context(world: &World, (beside, owed): (bool, Owed), like: usize, grant: usize) -> Step {
    let scope = if beside { world.beside() } else { world.scope.clone() };
    let item = world.items().nth(like).map_or(&Value::Null, |item| &item.draft);
    let label = item["labels"][0].as_str().or_else(|| item["kind"].as_str()).unwrap_or_default();
    Step::Context { context: owed.context(&scope, label), grant }
}

/// An item that nothing of its own keeps out of a view.
fn plain(world: &World) -> usize {
    let is_plain = |draft: &Value| {
        draft["scope_id"] == world.scope
            && draft["exportable"] != false
            && draft["sensitivity"] != "restricted"
            && ["expires_at", "ttl_days"].iter().all(|end| draft[end].is_null())
    };
    let mut items = world.items().enumerate().skip(CONTACTS);
    items.find(|(_, item)| is_plain(&item.draft)).map_or(CONTACTS, |(number, _)| number)
}

/// A correction of an item in a member that another one has otherwise, where there is one.
fn correction(world: &World, item: usize, what: Corrected) -> Step {
    let draft = world.items().nth(item).map_or(&Value::Null, |item| &item.draft);
    let now = what.changes(draft, draft);
    let other = world.items().position(|like| {
        what.changes(draft, &like.draft).is_some_and(|changes| Some(&changes) != now.as_ref())
    });
    Step::Correct { item, like: other.unwrap_or(item), what }
}

/// Puts rotations of the keys into a history, exchanges behind them, questions for vectors, an item that comes and goes, and something owed that a
/// consent lifts. They are drawn apart, so that the rest of it stays what it was.
fn later(seed: u64, grants: usize, world: &World, steps: &mut Vec<Step>) {
    let mut chance = Chance::new(seed.rotate_left(32) ^ !0);
    for _ in 0..=chance.below(ROTATIONS) {
        let mut at = steps.len() / 4 + chance.below(steps.len() / 2);
        steps.insert(at.min(steps.len()), Step::Rotate);
        for _ in 0..3 {
            at += 1 + chance.below(steps.len().saturating_sub(at));
            steps.insert(at.min(steps.len()), Step::Exchange { grant: chance.below(grants) });
        }
    }
    // A grant is passed on, and that one is passed on; each shows what it may, until the first one is taken back.
    let last = world.grants.len().saturating_sub(1);
    let chain: Vec<usize> = {
        let above = |grant: &usize| world.grants.get(*grant).and_then(|grant| grant.parent);
        let mut chain: Vec<usize> = std::iter::successors(Some(last), above).collect();
        chain.reverse();
        chain
    };
    let mut at = steps.len() / 4;
    let asked = |chance: &mut Chance, grant: usize| Step::Query { grant, query: chance.below(2) };
    let mut passed_on: Vec<Step> = chain.iter().map(|grant| Step::Grant { grant: *grant }).collect();
    for grant in chain.iter().rev() {
        passed_on.push(asked(&mut chance, *grant));
        passed_on.push(Step::Export { grant: *grant });
    }
    passed_on.extend(chain.first().map(|grant| Step::Revoke { grant: *grant }));
    for grant in &chain {
        passed_on.push(asked(&mut chance, *grant));
        passed_on.push(Step::State { grant: *grant, by_another: false });
    }
    for step in passed_on {
        steps.insert(at.min(steps.len()), step);
        at += 1 + chance.below(4);
    }
    // Of a grant that was taken back, of one that was made from it, and of any.
    let revoked = steps.iter().enumerate().rev().find_map(|(at, step)| match step {
        Step::Revoke { grant } => Some((at, *grant)),
        _ => None,
    });
    let made = |above: usize| world.grants.iter().position(|grant| grant.parent == Some(above));
    if let Some((at, grant)) = revoked {
        let of = made(grant).filter(|made| *made < grants).unwrap_or(grant);
        steps.insert(at + 1, Step::State { grant: of, by_another: false });
    }
    for by_another in [false, true] {
        let at = steps.len() / 2 + chance.below(steps.len() / 2);
        steps.insert(at, Step::State { grant: chance.below(grants), by_another });
    }
    for grant in 0..grants {
        let at = steps.len() / 2 + chance.below(steps.len() / 2 + 1);
        steps.insert(at.min(steps.len()), Step::Vectors { grant });
    }
    // An item comes, becomes another, and goes.
    let plain = plain(world);
    let mut at = steps.len() / 3;
    let out = [Corrected::Sensitivity, Corrected::Exportable, Corrected::Labels, Corrected::Confidence];
    let out = chance.of(&out);
    for step in [
        Step::Capture { item: plain },
        correction(world, plain, Corrected::Kind),
        Step::Retract { item: plain },
        Step::Restore { item: plain },
        Step::Relabel { item: plain, like: CONTACTS },
        correction(world, plain, out),
    ] {
        steps.insert(at.min(steps.len()), step);
        at += 1 + chance.below(steps.len() / 6);
    }
    // What needs consent, the consent, and its end: each a while after the other, before a grant that is there from the beginning on.
    let owed = chance.of(&[Owed::ProfessionalCode, Owed::TradeSecret, Owed::Health]);
    let (grant, like) = (chance.below(2), CONTACTS);
    let context = |owed| context(world, (false, owed), like, grant);
    let mut at = steps.len() / 4 + chance.below(steps.len() / 4);
    for step in [context(owed), Step::Consent { grant }, context(Owed::Nothing)] {
        steps.insert(at.min(steps.len()), step);
        at += 2 + chance.below(6);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn setting(now: Timestamp) -> Setting {
        let soon = vec![now.plus(Duration::from_millis(2_200)), now.plus(Duration::from_millis(3_700))];
        Setting { soon, ..Setting::of(&json!({}), now) }
    }

    #[test]
    fn every_history_rotates_keys_and_owes_something() {
        let setting = setting(Timestamp::from_millis(1_777_636_800_000));
        for seed in 0..50 {
            let history = History::new(seed, 60, &setting);
            let of = |what: fn(&Step) -> bool| history.steps.iter().filter(|step| what(step)).count();
            let rotations = of(|step| *step == Step::Rotate);
            assert!((1..=ROTATIONS).contains(&rotations), "{rotations}");
            assert_eq!(of(|step| matches!(step, Step::Exchange { .. })), 3 * rotations);
            assert!(of(|step| matches!(step, Step::Vectors { .. })) > 0);
            assert!(of(|step| matches!(step, Step::Context { .. })) > 1);
            assert!(of(|step| matches!(step, Step::Consent { .. })) > 0);
        }
    }

    #[test]
    fn a_history_at_another_time_is_the_one_that_is_made_then() {
        let now = Timestamp::from_millis(1_777_636_800_000);
        for seed in 0..50 {
            let history = History::new(seed, 60, &setting(now));
            let scope = &history.world.scope;
            for millis in [8_640_000_123, -8_640_000_123] {
                let then = Timestamp::from_millis(now.millis() + millis);
                assert_eq!(history.again(scope, then), History::new(seed, 60, &setting(then)), "{seed}");
            }
            let other = history.again("w-another", now);
            assert!(!format!("{other:?}").contains(scope), "{seed}");
            assert_eq!(other.again(scope, now), history, "{seed}");
        }
    }
}

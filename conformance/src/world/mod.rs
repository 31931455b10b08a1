//! Worlds: what an owner may have captured and granted and what grantees may ask, made from a seed.
//!
//! A world covers its space and not examples of it: what is chosen among few values is dealt from a deck, so that none is left
//! out for long, and worlds of successive seeds have successive levels and filters. In every place of every item stands
//! a *canary*, a word that stands nowhere else: an answer that carries one which its grantee may not see has a
//! leak, wherever it stands and however it is written ([`Canaries`]).
//!
//! Nothing here knows what a gateway may show.

mod bounds;
mod cases;
mod chance;
mod entity;
pub mod gated;
mod grant;
mod history;
mod item;
mod owed;
mod own;
mod planted;
mod query;
mod script;
mod search;
mod text;
mod twin;
mod whole;

pub use bounds::DEEPEST;
pub use chance::WORD;
pub use grant::Grant;
pub use history::{Corrected, History, Step};
pub use item::Item;
pub use own::{OWN, read_profile};
pub use planted::{Planted, Span, leaves};
pub use script::ScriptError;
pub use search::{Canaries, Found};
pub use text::{CLASSES, VOCABULARY};

use chance::Chance;
use item::Common;
use oap_identity::Timestamp;
use serde_json::{Value, json};
use text::People;

/// What a world is made for: the gateway's manifest and clock.
#[derive(Debug, Clone, PartialEq)]
pub struct Setting {
    /// The gateway's clock.
    pub now: Timestamp,
    /// Where belief begins, 0 to 1.
    pub belief_threshold: f64,
    /// Kinds that it holds.
    pub kinds: Vec<String>,
    /// Its redaction profiles.
    pub profiles: Vec<String>,
    /// Longest life of a grant, in days.
    pub max_days: u64,
    /// Most items of a grant.
    pub max_items: u64,
    /// Times at which some items end, for a run that waits for them.
    pub soon: Vec<Timestamp>,
}

impl Setting {
    /// From a memory manifest; what it does not say is as the protocol has it.
    #[must_use]
    pub fn of(manifest: &Value, now: Timestamp) -> Self {
        let texts = |list: &Value| -> Vec<String> {
            list.as_array().into_iter().flatten().filter_map(|t| t.as_str().map(str::to_owned)).collect()
        };
        let limits = &manifest["memory_exchange"];
        let mut kinds = texts(&manifest["kinds_supported"]);
        if kinds.is_empty() {
            kinds = vec!["fact".to_owned()];
        }
        Self {
            now,
            belief_threshold: manifest["belief_threshold"].as_f64().unwrap_or(0.5),
            kinds,
            profiles: texts(&limits["supported_redaction_profiles"]),
            max_days: limits["max_grant_duration_days"].as_u64().unwrap_or(30),
            max_items: limits["max_grant_size_items"].as_u64().unwrap_or(50),
            soon: Vec::new(),
        }
    }

    fn has_profile(&self, name: &str) -> bool {
        self.profiles.is_empty() || self.profiles.contains(&whole_name(name))
    }

    /// The profile of grants that are not about profiles, `x` of `oap.profile.projection.x.v1`; `None` where it has none of [`GENERAL`].
    fn general(&self) -> Option<&'static str> {
        GENERAL.into_iter().find(|name| self.has_profile(name))
    }
}

/// Profiles of every trust level under which whatever is no entity of theirs is shown alike (protocol section 7), `x` of
/// `oap.profile.projection.x.v1`: those that grants name first.
pub const GENERAL: [&str; 4] = ["memory", "contact", "calendar_event", "task"];

/// The whole name of a profile of the protocol.
#[must_use]
pub fn whole_name(name: &str) -> String {
    format!("oap.profile.projection.{name}.v1")
}

/// Contacts that texts of a world name: its first items.
pub const CONTACTS: usize = 2;

/// The times of an item's draft.
const ITEM_TIMES: [&str; 2] = ["/expires_at", "/provenance/captured_at"];
/// The times of a grant's draft.
const GRANT_TIMES: [&str; 4] =
    ["/not_before", "/expires_at", "/filter/captured_after", "/filter/captured_before"];

/// A value with another scope in it.
fn renamed(value: &Value, scope: &str, to: &str) -> Value {
    serde_json::from_str(&value.to_string().replace(scope, to)).unwrap_or_default()
}

/// How large a world is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names say it")]
pub struct Size {
    pub items: usize,
    /// Queries under each grant.
    pub queries: usize,
}

impl Default for Size {
    fn default() -> Self {
        Self { items: 40, queries: 9 }
    }
}

/// A world.
#[derive(Debug, Clone, PartialEq)]
pub struct World {
    /// Its seed.
    pub seed: u64,
    /// The scope that most of its items and all of its grants have, and nothing else.
    pub scope: String,
    /// Its items, in the order in which they are captured: contacts that texts name, others, what was made from those.
    pub batches: Vec<Vec<Item>>,
    /// Its grants. One that is made from another follows it.
    pub grants: Vec<Grant>,
}

impl World {
    /// The world of a seed.
    #[must_use]
    pub fn new(seed: u64, setting: &Setting, size: Size) -> Self {
        const DAY: i64 = 86_400_000;
        let mut chance = Chance::new(seed);
        let now = setting.now.millis();
        let threshold = setting.belief_threshold;
        let near = [threshold - 0.001, threshold, threshold + 0.001, 0.0, 1.0, 0.999];
        let common = Common {
            scope: format!("w{}", chance.canary()),
            labels: (0..4).map(|_| chance.canary()).collect(),
            subjects: (0..3).map(|_| format!("urn:entity:{}", chance.canary())).collect(),
            times: [now - 40 * DAY, now - 10 * DAY],
            soon: setting.soon.clone(),
            confidences: near.into_iter().filter(|c| (0.0..=1.0).contains(c)).collect(),
        };
        let mut people = People::default();
        let contacts: Vec<Item> =
            (0..CONTACTS).map(|_| item::contact(&mut chance, &common, &mut people)).collect();
        let count = size.items.max(6);
        let made: Vec<Item> =
            (0..count - 4).map(|_| item::make(&mut chance, setting, &common, &people)).collect();
        let later = (0..2).map(|_| {
            let mut item = item::make(&mut chance, setting, &common, &people);
            item.derived_from =
                vec![CONTACTS + chance.below(made.len()), CONTACTS + chance.below(made.len())];
            item.derived_from.dedup();
            item
        });
        let later = later.collect();
        let batches = vec![contacts, made, later];
        let mut grants = grant::all(&mut chance, seed, setting, &common);
        let items: Vec<&Item> = batches.iter().flatten().collect();
        for grant in &mut grants {
            grant.queries = query::all(&mut chance, setting, &common, &items, size.queries);
        }
        Self { seed, scope: common.scope, batches, grants }
    }

    /// The same world in another scope, so that it can be had twice on one gateway.
    #[must_use]
    pub fn in_scope(&self, scope: &str) -> Self {
        let other = |value: &Value| renamed(value, &self.scope, scope);
        let mut world = self.clone();
        world.scope = scope.to_owned();
        world.batches.iter_mut().flatten().for_each(|item| item.draft = other(&item.draft));
        world.grants.iter_mut().for_each(|grant| grant.draft = other(&grant.draft));
        world
    }

    /// The same world so many milliseconds later: when items and grants begin and end, when items became known and what filters say of that.
    /// Days that content tells of stay.
    fn moved(mut self, millis: i64) -> Self {
        let moved = |time: &str| -> Option<String> {
            let time: Timestamp = time.to_uppercase().parse().ok()?;
            Some(Timestamp::from_millis(time.millis().saturating_add(millis)).to_string())
        };
        let draft = |draft: &mut Value, times: &[&str]| {
            for at in times {
                if let Some(time) = draft.pointer_mut(at)
                    && let Some(moved) = time.as_str().and_then(moved)
                {
                    *time = json!(moved);
                }
            }
        };
        for item in self.batches.iter_mut().flatten() {
            draft(&mut item.draft, &ITEM_TIMES);
            let canaries = std::mem::take(&mut item.planted.canaries).into_iter();
            let canaries = canaries.map(|(word, at)| {
                let time = ITEM_TIMES.contains(&at.as_str()).then(|| moved(&word)).flatten();
                (time.map_or(word, |time| time.to_lowercase()), at)
            });
            item.planted.canaries = canaries.collect();
        }
        self.grants.iter_mut().for_each(|grant| draft(&mut grant.draft, &GRANT_TIMES));
        self
    }

    /// The name of its second scope, where it has one.
    #[must_use]
    pub fn beside(&self) -> String {
        format!("{}-b", self.scope)
    }

    /// The same world with some of its items in a second scope, and its first grant over all that is in both.
    fn across(mut self, setting: &Setting) -> Self {
        let beside = self.beside();
        for (number, item) in self.batches.iter_mut().flatten().enumerate().skip(CONTACTS) {
            if number % 3 == 0 && item.draft["scope_id"] == self.scope {
                item.draft["scope_id"] = json!(beside);
            }
        }
        if let Some(first) = self.grants.first_mut() {
            first.draft["filter"] = json!({"scopes": [self.scope, beside]});
            first.draft["max_items"] = json!(setting.max_items.min(100));
            first.draft.as_object_mut().map(|members| members.remove("budget"));
        }
        self
    }

    /// Every item, in the order of their numbers.
    pub fn items(&self) -> impl Iterator<Item = &Item> {
        self.batches.iter().flatten()
    }
}

//! A small world whose grants begin and end while they are looked at, and one that is passed on as far as it can be.

use super::chance::Chance;
use super::grant::Grant;
use super::item::{self, Common, Item};
use super::text::VOCABULARY;
use super::{Setting, World, whole_name};
use oap_identity::Timestamp;
use serde_json::{Value, json};
use std::time::Duration;

/// How deep a grant can be passed on.
pub const DEEPEST: usize = 5;

impl World {
    /// Grants at their bounds: the first begins and ends at these times, and the second is made from it; the fourth is made from the third,
    /// which holds for a day; the fifth is for whoever has its token.
    #[must_use]
    pub fn brief(seed: u64, setting: &Setting, [begins, ends]: [Timestamp; 2]) -> Self {
        let mut drafted = drafted(setting);
        drafted["delegable"] = json!({"max_depth": 1});
        let (mut first, mut bearer) = (drafted.clone(), drafted.clone());
        (first["not_before"], first["expires_at"], bearer["bearer"]) =
            (json!(begins), json!(ends), json!(true));
        let own = |draft| (None, draft);
        let made = |parent| (Some(parent), json!({}));
        small(seed, setting, vec![own(first), made(0), own(drafted), made(2), own(bearer)])
    }

    /// A grant and those that are made from each other below it, as many as can be.
    #[must_use]
    pub fn deep(seed: u64, setting: &Setting) -> Self {
        let delegable = |depth: usize| json!({"max_depth": depth});
        let mut first = drafted(setting);
        first["delegable"] = delegable(DEEPEST);
        let below = (1..=DEEPEST).map(|number| match DEEPEST - number {
            0 => (Some(number - 1), json!({})),
            depth => (Some(number - 1), json!({"delegable": delegable(depth)})),
        });
        small(seed, setting, std::iter::once((None, first)).chain(below).collect())
    }
}

/// A grant of a day over everything.
fn drafted(setting: &Setting) -> Value {
    let (profile, level) = setting.general().map_or(("full", 4), |name| (name, 2));
    json!({
        "purpose": "a look at bounds", "expires_at": setting.now.plus(Duration::from_secs(86_400 - 600)),
        "max_items": setting.max_items.min(20), "trust_level": level, "operations": ["query", "export"],
        "redaction_profile": whole_name(profile),
    })
}

/// A world of three items, with a grantee of its own for each grant.
fn small(seed: u64, setting: &Setting, grants: Vec<(Option<usize>, Value)>) -> World {
    let mut chance = Chance::new(seed);
    let scope = format!("w{}", chance.canary());
    let common = Common { scope: scope.clone(), ..Common::default() };
    let item = |minute: i64, chance: &mut Chance| -> Item {
        chance.take();
        let at = chance.moment(setting.now.millis() - 86_400_000 + minute * 60_000, 60_000);
        let draft = json!({
            "kind": setting.kinds.first(), "scope_id": common.scope, "labels": [chance.canary()],
            "content": {"text": format!("{} {}", chance.of(&VOCABULARY), chance.canary())},
            "provenance": {"captured_at": at, "confidence": 1},
        });
        item::finished(chance, draft, Vec::new(), &common)
    };
    let items = (0..3).map(|minute| item(minute, &mut chance)).collect();
    let grants = grants.into_iter().enumerate().map(|(grantee, (parent, mut draft))| {
        if parent.is_none() {
            draft["scope"] = json!(scope);
        }
        Grant { grantee, parent, draft, queries: vec![json!({"integrity": "chain"})] }
    });
    World { seed, scope: scope.clone(), batches: vec![items], grants: grants.collect() }
}

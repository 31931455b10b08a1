//! Profiles of the owner's own, as the probes want them, and worlds that look at each of their levels.

use super::{Setting, World};
use serde_json::{Value, json};
use std::time::Duration;

/// The documents (TOML).
pub const OWN: [&str; 2] = [
    include_str!("../../profiles/probe_contact.v1.toml"),
    include_str!("../../profiles/probe_event.v1.toml"),
];

/// A document as JSON; null where it is none.
#[must_use]
pub fn read_profile(text: &str) -> Value {
    let document = toml::from_str::<toml::Value>(text).ok();
    document.and_then(|document| serde_json::to_value(document).ok()).unwrap_or_default()
}

impl World {
    /// The items of [`World::whole`] that have every member, under a grant of every level of each of these profiles.
    #[must_use]
    pub fn of_own_profiles(seed: u64, setting: &Setting) -> Self {
        let mut world = Self::with_everything(seed, setting);
        for document in OWN.map(read_profile) {
            let least = document["minimum_level"].as_u64().unwrap_or(0);
            for level in least..=4 {
                let draft = json!({
                    "scope": world.scope, "purpose": "a look at profiles of one's own",
                    "filter": {"sensitivities": ["internal", "restricted"]},
                    "expires_at": setting.now.plus(Duration::from_secs(86_400 - 600)),
                    "max_items": setting.max_items.min(100), "redaction_profile": document["name"], "trust_level": level,
                });
                // Some levels hide the kind: nothing is admitted by it then.
                let by_kind = json!({"kinds": ["fact"], "max_results": 100, "integrity": "chain"});
                let queries = vec![json!({"query": "", "max_results": 100}), by_kind];
                let grantee = world.grants.len();
                world.grants.push(super::Grant { grantee, parent: None, draft, queries });
            }
        }
        world
    }
}

//! Drafts of grants: every level of every profile, every member of a filter alone and with others, and grants made from them.

use super::chance::Chance;
use super::item::Common;
use super::{Setting, whole_name};
use oap_identity::Timestamp;
use serde_json::{Value, json};
use std::time::Duration;

/// A grant of a world.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Grant {
    /// Which of the world's grantees has it; several may be one's.
    pub grantee: usize,
    /// The grant that it is made from by that grant's grantee; its owner issues it where there is none.
    pub parent: Option<usize>,
    /// The draft, without `grantee`. Of a grant that is made from another: the members that differ from that one's.
    pub draft: Value,
    /// What its grantee asks under it, in this order.
    pub queries: Vec<Value>,
}

impl Grant {
    /// Whether its owner issues it without naming a scope.
    #[must_use]
    pub fn is_unscoped(&self) -> bool {
        self.parent.is_none() && self.draft["scope"].is_null()
    }
}

/// Levels of profiles: all of the general ones, and the one at which everything is shown.
pub(super) const SHOWN: [(&str, u8); 21] = [
    ("memory", 0),
    ("contact", 1),
    ("calendar_event", 2),
    ("task", 3),
    ("memory", 2),
    ("contact", 3),
    ("calendar_event", 1),
    ("full", 4),
    ("memory", 3),
    ("contact", 0),
    ("task", 1),
    ("calendar_event", 3),
    ("memory", 4),
    ("contact", 2),
    ("task", 2),
    ("calendar_event", 0),
    ("memory", 1),
    ("contact", 4),
    ("task", 0),
    ("calendar_event", 4),
    ("task", 4),
];

const FIELDS: [&str; 10] = [
    "labels_any",
    "captured_after",
    "kinds",
    "sensitivities",
    "min_confidence",
    "exclude_labels",
    "subject_entity_ids",
    "captured_before",
    "labels_all",
    "scopes",
];

const SENSITIVITIES: [&str; 4] = ["public", "internal", "confidential", "restricted"];

/// Grants that the owner issues in a world.
const ISSUED: usize = 7;

/// The grants of a world, without queries. Worlds of successive seeds have successive levels and fields.
pub(super) fn all(chance: &mut Chance, seed: u64, setting: &Setting, common: &Common) -> Vec<Grant> {
    let turn = usize::try_from(seed % 1_000_003).unwrap_or(0);
    let known: Vec<(&str, u8)> = SHOWN.into_iter().filter(|(name, _)| setting.has_profile(name)).collect();
    if known.is_empty() {
        return Vec::new();
    }
    let mut grants: Vec<Grant> = (0..ISSUED)
        .map(|n| {
            let number = turn * ISSUED + n;
            let (profile, level) = known[number % known.len()];
            let mut draft = issued(chance, setting, common, n);
            draft["redaction_profile"] = json!(whole_name(profile));
            draft["trust_level"] = json!(level);
            let mut filter = json!({});
            let more = [0, 0, 1, 2][chance.deal("fields", 4)];
            if n > 0 {
                let (name, shape) = (FIELDS[number % FIELDS.len()], number / FIELDS.len() % SHAPES);
                field(chance, setting, common, (name, shape), &mut filter);
            }
            for extra in 0..more {
                // With the first one each pair of fields comes in its turn.
                let paired = FIELDS
                    [(number % FIELDS.len() + 1 + number / FIELDS.len() % (FIELDS.len() - 1)) % FIELDS.len()];
                let name = if extra == 0 && n > 0 { paired } else { chance.dealt("field", &FIELDS) };
                let shape = chance.deal(name, SHAPES);
                field(chance, setting, common, (name, shape), &mut filter);
            }
            if !filter.as_object().is_some_and(|fields| fields.is_empty()) || chance.once_in(2) {
                draft["filter"] = filter;
            }
            Grant { grantee: [0, 1, 2, 0, 1, 3, 4][n], parent: None, draft, queries: Vec::new() }
        })
        .collect();
    // One grantee has the same items at two levels.
    grants[3].draft["filter"] = grants[0].draft["filter"].clone();
    if grants[3].draft["filter"].is_null() {
        grants[3].draft.as_object_mut().map(|members| members.remove("filter"));
    }
    delegated(chance, setting, common, &mut grants);
    grants
}

/// Everything of a draft but profile, level and filter.
fn issued(chance: &mut Chance, setting: &Setting, common: &Common, number: usize) -> Value {
    let days = 1 + chance.below(usize::try_from(setting.max_days.min(30)).unwrap_or(1));
    let mut draft = json!({
        "scope": common.scope, "purpose": chance.of(&["planning of a journey", "help with letters", "a diary"]),
        // A little earlier than the longest life: clocks differ.
        "expires_at": setting.now.plus(Duration::from_secs(86_400 * days as u64 - 600)),
        "max_items": setting.max_items.min(100),
    });
    match chance.deal("max_items", 5) {
        0 => draft["max_items"] = json!(1),
        1 => draft["max_items"] = json!(3.min(setting.max_items)),
        _ => {}
    }
    match chance.deal("members", ISSUED) {
        0 => draft["operations"] = json!(["query", "export"]),
        1 => {
            draft["operations"] = json!(["query", "export"]);
            draft["embedding_access"] = json!(true);
        }
        2 => draft["embedding_access"] = json!(true),
        3 => draft["purpose_codes"] = json!(["travel", "diary"]),
        4 => draft["lawful_basis"] = json!("contract"),
        5 => draft["budget"] = json!({"queries": 4}),
        _ => {}
    }
    if number + 1 == ISSUED {
        draft["delegable"] = json!({"max_depth": 2});
        draft["max_items"] = json!(5.min(setting.max_items));
        draft["operations"] = json!(["query", "export"]);
    }
    draft
}

/// How many shapes a list of a filter has.
const SHAPES: usize = 6;

/// A field of a filter, and its shape where it is a list: empty, one value, several, one that nothing has.
fn field(
    chance: &mut Chance,
    setting: &Setting,
    common: &Common,
    (name, shape): (&'static str, usize),
    filter: &mut Value,
) {
    let at = |millis: i64| json!(Timestamp::from_millis(millis));
    match name {
        "captured_after" => filter[name] = at(common.times[0]),
        "captured_before" => filter[name] = at(common.times[1]),
        "min_confidence" => filter[name] = json!(chance.dealt("min_confidence", &common.confidences)),
        // Another scope than the grant's own needs a bridge.
        "scopes" if chance.once_in(6) => filter[name] = json!([]),
        "scopes" => filter[name] = json!([common.scope]),
        _ => {
            let mut values: Vec<String> = match name {
                "kinds" => setting.kinds.clone(),
                "sensitivities" => SENSITIVITIES.map(str::to_owned).to_vec(),
                "subject_entity_ids" => common.subjects.clone(),
                _ => common.labels.clone(),
            };
            match shape {
                0 => values.clear(),
                1 | 2 => values = vec![chance.of(&values)],
                3 if !["kinds", "sensitivities"].contains(&name) => values.push("nobody-has-it".to_owned()),
                _ => {
                    let left_out = chance.below(values.len());
                    values.remove(left_out);
                }
            }
            filter[name] = json!(values);
        }
    }
}

/// What the grantee of the last grant makes of it, and the third party of that.
fn delegated(chance: &mut Chance, setting: &Setting, common: &Common, grants: &mut Vec<Grant>) {
    let mut parent = grants.len() - 1;
    let mut filter = grants[parent].draft["filter"].clone();
    let mut level = grants[parent].draft["trust_level"].as_u64().unwrap_or(0);
    let lowest = if grants[parent].draft["redaction_profile"].as_str().is_some_and(|p| p.contains("full")) {
        4
    } else {
        0
    };
    for grantee in [5, 6] {
        if filter.is_null() {
            filter = json!({});
        }
        // Narrower by a field that the grant above does not have; one that it has stays.
        let name = chance.dealt(
            "narrower",
            &["labels_any", "kinds", "min_confidence", "exclude_labels", "captured_after"],
        );
        if filter[name].is_null() {
            let shape = chance.deal(name, SHAPES);
            field(chance, setting, common, (name, shape), &mut filter);
        }
        if let Some(fields) = filter.as_object_mut() {
            fields.retain(|_, value| !value.is_null());
        }
        level = level.saturating_sub(chance.below(2) as u64).max(lowest);
        let mut draft = json!({"filter": filter, "trust_level": level, "operations": ["query"], "max_items": 4.min(setting.max_items)});
        if grantee == 5 {
            draft["delegable"] = json!({"max_depth": 1});
        }
        grants.push(Grant { grantee, parent: Some(parent), draft, queries: Vec::new() });
        parent = grants.len() - 1;
    }
}

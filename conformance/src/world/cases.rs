//! Each case of each field of a filter: items that differ in one member, and grants whose filter has one field.

use super::Setting;
use super::chance::Chance;
use super::item::{self, Common, Item};
use super::text::VOCABULARY;
use oap_identity::Timestamp;
use serde_json::{Value, json};

const DAY: i64 = 86_400_000;
/// A confidence that decides, away from 0 and 1.
const SURE: f64 = 0.5;

/// What the items of these cases have, each in a list of its own.
pub(super) struct Cases {
    common: Common,
    kinds: Vec<String>,
    /// A scope that one of the items has.
    other: String,
    /// The label of what names no scope.
    pub(super) unscoped: String,
}

impl Cases {
    pub(super) fn new(chance: &mut Chance, setting: &Setting, scope: &str) -> Self {
        let now = setting.now.millis();
        let common = Common {
            scope: scope.to_owned(),
            labels: (0..4).map(|_| chance.canary()).collect(),
            subjects: (0..3).map(|_| format!("urn:entity:{}", chance.canary())).collect(),
            times: [now - 40 * DAY, now - 10 * DAY],
            ..Common::default()
        };
        let other = format!("x{}", chance.canary());
        Self { unscoped: common.labels[3].clone(), common, kinds: setting.kinds.clone(), other }
    }

    /// A label that two of the items have, and one that another has.
    pub(super) fn apart(&self) -> [&str; 2] {
        [&self.common.labels[0], &self.common.labels[2]]
    }

    /// The items: one for each value that decides, everything else alike.
    pub(super) fn items(&self, chance: &mut Chance) -> Vec<Item> {
        let [a, b, c] = [0, 1, 2].map(|n| &self.common.labels[n]);
        let [after, before] = self.common.times;
        let mut changes = vec![json!({"scope_id": self.other})];
        changes.push(json!({"scope_id": null, "labels": [self.unscoped]}));
        changes.extend(
            [json!([a]), json!([b]), json!([a, b]), json!([c])].map(|labels| json!({"labels": labels})),
        );
        changes.extend(self.common.subjects.iter().map(|subject| json!({"subject_entity_id": subject})));
        changes.extend(self.kinds.iter().map(|kind| json!({"kind": kind})));
        changes.extend(["public", "internal", "confidential"].map(|s| json!({"sensitivity": s})));
        for bound in [after, before] {
            let near = [-DAY, -1, 0, 1, DAY].map(|step| Timestamp::from_millis(bound + step));
            changes.extend(near.map(|at| json!({"provenance": {"captured_at": at, "confidence": 1}})));
        }
        let at = Timestamp::from_millis(after + 15 * DAY);
        let near = [SURE - 0.2, SURE - 0.001, SURE, SURE + 0.001, SURE + 0.2];
        changes.extend(near.map(|sure| json!({"provenance": {"captured_at": at, "confidence": sure}})));
        changes.iter().zip(1..).map(|(change, minute)| self.item(chance, change, minute)).collect()
    }

    fn item(&self, chance: &mut Chance, change: &Value, minute: i64) -> Item {
        chance.take();
        let at = Timestamp::from_millis(self.common.times[0] + 20 * DAY + minute * 60_000);
        let mut draft = json!({
            "kind": self.kinds.first(), "scope_id": self.common.scope,
            "content": {"text": format!("{} {}", chance.of(&VOCABULARY), chance.canary())},
            "provenance": {"captured_at": at, "confidence": 1},
        });
        for (name, value) in change.as_object().into_iter().flatten() {
            draft[name] = value.clone();
        }
        draft.as_object_mut().into_iter().for_each(|members| members.retain(|_, value| !value.is_null()));
        item::finished(chance, draft, Vec::new(), &self.common)
    }

    /// The filters: each list empty, of one and of many elements, each bound.
    pub(super) fn filters(&self) -> Vec<Value> {
        let firsts = |all: &[String], count: usize| all.iter().take(count).cloned().collect::<Vec<_>>();
        let (labels, subjects) = (&self.common.labels, &self.common.subjects);
        let sensitivities = ["internal", "confidential"].map(str::to_owned);
        let mut filters = Vec::new();
        for (name, all) in [
            ("labels_any", labels.as_slice()),
            ("labels_all", labels),
            ("exclude_labels", labels),
            ("subject_entity_ids", subjects),
            ("kinds", &self.kinds),
            ("sensitivities", &sensitivities),
        ] {
            filters.extend([0, 1, 2].map(|count| json!({name: firsts(all, count)})));
        }
        // More than one needs a bridge.
        filters.extend([json!([]), json!([self.common.scope])].map(|scopes| json!({"scopes": scopes})));
        let [after, before] = self.common.times.map(Timestamp::from_millis);
        filters.extend([json!({"captured_after": after}), json!({"captured_before": before})]);
        filters.push(json!({"min_confidence": SURE}));
        filters
    }
}

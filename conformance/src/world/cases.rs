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
/// A word that some of the items have in common, so long that every gateway must find it.
const COMMON: &str = "lighthouse";

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
            labels: (0..9).map(|_| chance.canary()).collect(),
            subjects: (0..3).map(|_| format!("urn:entity:{}", chance.canary())).collect(),
            times: [now - 40 * DAY, now - 10 * DAY],
            ..Common::default()
        };
        let other = format!("x{}", chance.canary());
        Self { unscoped: common.labels[3].clone(), common, kinds: setting.kinds.clone(), other }
    }

    /// The place among the items of two that have a subject each, of one of another kind, of one that is less sure than the filter asks, of one
    /// that is surer, of one that may not be exported, and of one that has ended.
    pub(super) fn apart_in(&self) -> [usize; 7] {
        // Before them: two of other scopes, four with labels; three subjects, the kinds, three sensitivities, ten times, five confidences.
        let (subjects, kinds) = (6, self.kinds.len());
        let unsure = subjects + 3 + kinds + 3 + 10;
        let kind = subjects + 3 + kinds.saturating_sub(1);
        [subjects, subjects + 1, kind, unsure, unsure + 4, unsure + 5, unsure + 6]
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
        // What others become like: in no view.
        changes.push(json!({"exportable": false}));
        changes.push(json!({"expires_at": Timestamp::from_millis(before + 10 * DAY - 60_000)}));
        changes.extend(self.of_every_field());
        changes.extend(self.of_one_word());
        changes.iter().zip(1..).map(|(change, minute)| self.item(chance, change, minute)).collect()
    }

    /// A filter with every field.
    pub(super) fn every_field(&self) -> Value {
        let [any, all, excluded] = [4, 5, 6].map(|n| &self.common.labels[n]);
        let [after, before] = self.common.times.map(Timestamp::from_millis);
        json!({
            "scopes": [self.common.scope], "subject_entity_ids": [self.common.subjects[0]],
            "kinds": [self.kinds.first()], "labels_any": [any], "labels_all": [all],
            "exclude_labels": [excluded], "sensitivities": ["internal", "confidential"],
            "captured_after": after, "captured_before": before, "min_confidence": SURE,
        })
    }

    /// What that filter admits, and for each of its fields what that one alone is against.
    fn of_every_field(&self) -> Vec<Value> {
        let [any, all, excluded] = [4, 5, 6].map(|n| &self.common.labels[n]);
        let [after, before] = self.common.times;
        let captured =
            |at: i64, sure: f64| json!({"captured_at": Timestamp::from_millis(at), "confidence": sure});
        let base = json!({
            "labels": [any, all], "subject_entity_id": self.common.subjects[0],
            "provenance": captured(after + DAY, 1.0),
        });
        let others = [
            json!({}),
            json!({"scope_id": self.other}),
            json!({"subject_entity_id": null}),
            json!({"kind": self.kinds.last()}),
            json!({"labels": [all]}),
            json!({"labels": [any]}),
            json!({"labels": [any, all, excluded]}),
            json!({"sensitivity": "public"}),
            json!({"provenance": captured(after - 1, 1.0)}),
            json!({"provenance": captured(before, 1.0)}),
            json!({"provenance": captured(after + DAY, SURE - 0.001)}),
        ];
        let with = |other: &Value| {
            let mut change = base.clone();
            for (name, value) in other.as_object().into_iter().flatten() {
                change[name] = value.clone();
            }
            change
        };
        others.iter().map(with).collect()
    }

    /// The label of five items that have a word in common, the one of the last of them, and the word. In that one it stands among many others, so
    /// that it is found behind them.
    pub(super) fn found_last(&self) -> [&str; 3] {
        [&self.common.labels[7], &self.common.labels[8], COMMON]
    }

    fn of_one_word(&self) -> Vec<Value> {
        let [all, last, word] = self.found_last();
        let mut items = vec![json!({"labels": [all], "content": {"text": word}}); 4];
        let text = format!("{word} {}", VOCABULARY.join(" "));
        items.push(json!({"labels": [all, last], "content": {"text": text}}));
        items
    }

    fn item(&self, chance: &mut Chance, change: &Value, minute: i64) -> Item {
        chance.take();
        let at = chance.moment(self.common.times[0] + 20 * DAY + minute * 60_000, 60_000);
        let mut draft = json!({
            "kind": self.kinds.first(), "scope_id": self.common.scope,
            "content": {"text": format!("{} {}", chance.of(&VOCABULARY), chance.canary())},
            "provenance": {"captured_at": at, "confidence": 1},
        });
        for (name, value) in change.as_object().into_iter().flatten() {
            // A text of its own has a canary as well.
            match value["text"].as_str() {
                Some(text) => draft["content"]["text"] = json!(format!("{text} {}", chance.canary())),
                None => draft[name] = value.clone(),
            }
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

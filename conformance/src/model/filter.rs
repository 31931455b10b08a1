//! A grant's filter (protocol section 5): members are AND-ed, elements OR-ed, those of `labels_all` AND-ed; an absent member
//! does not restrict; an empty list admits nothing, but that an empty `exclude_labels` excludes nothing.

use super::Rule;
use super::grant::texts;
use super::item::{Version, time};
use super::rule::{Bound, BoundCase, List, ListCase};
use oap_identity::Timestamp;
use serde_json::Value;
use std::cmp::Ordering;
use std::collections::BTreeMap;

/// A step that counts as the least, in milliseconds.
const NEAR_TIME: i64 = 1000;
/// A step of confidence that counts as the least.
const NEAR_CONFIDENCE: f64 = 0.01;

/// A filter.
#[derive(Debug, Clone, Default)]
pub(super) struct Filter {
    pub lists: BTreeMap<List, Vec<String>>,
    pub after: Option<Timestamp>,
    pub before: Option<Timestamp>,
    pub min_confidence: Option<f64>,
}

/// What one rule says of an item, and whether that lets it through.
pub(super) type Verdict = (Rule, bool);

impl Filter {
    pub fn read(filter: &Value) -> Self {
        let lists = List::ALL.iter().filter_map(|list| Some((*list, texts(&filter[list.as_str()])?)));
        Self {
            lists: lists.collect(),
            after: time(&filter["captured_after"]),
            before: time(&filter["captured_before"]),
            min_confidence: filter["min_confidence"].as_f64(),
        }
    }

    pub fn list(&self, list: List) -> Option<&Vec<String>> {
        self.lists.get(&list)
    }

    /// What every member says of an item.
    pub fn judge(&self, version: &Version) -> Vec<Verdict> {
        let mut verdicts: Vec<Verdict> =
            List::ALL.iter().map(|list| self.judge_list(*list, version)).collect();
        let at = version.captured_at();
        let millis = |bound: Timestamp| at.millis().saturating_sub(bound.millis());
        let time_case = |bound: Option<Timestamp>| match bound.map(millis) {
            None => BoundCase::Absent,
            Some(by) => case(by.cmp(&0), by.abs() <= NEAR_TIME),
        };
        let sure = version.confidence();
        let confidence_case = match self.min_confidence {
            None => BoundCase::Absent,
            Some(least) => case(sure.total_cmp(&least), (sure - least).abs() <= NEAR_CONFIDENCE),
        };
        verdicts.extend([
            (
                Rule::FilterBound(Bound::CapturedAfter, time_case(self.after)),
                self.after.is_none_or(|b| at >= b),
            ),
            (
                Rule::FilterBound(Bound::CapturedBefore, time_case(self.before)),
                self.before.is_none_or(|b| at < b),
            ),
            (
                Rule::FilterBound(Bound::MinConfidence, confidence_case),
                self.min_confidence.is_none_or(|least| sure >= least),
            ),
        ]);
        verdicts
    }

    fn judge_list(&self, list: List, version: &Version) -> Verdict {
        let has: Vec<&str> = match list {
            List::Scopes => version.text("/scope_id").into_iter().collect(),
            List::SubjectEntityIds => version.text("/subject_entity_id").into_iter().collect(),
            List::Kinds => version.text("/kind").into_iter().collect(),
            List::Sensitivities => version.text("/sensitivity").into_iter().collect(),
            List::LabelsAny | List::LabelsAll | List::ExcludeLabels => version.texts("labels"),
        };
        let Some(wanted) = self.list(list) else { return (Rule::Filter(list, ListCase::Absent), true) };
        let hits: Vec<bool> = wanted.iter().map(|element| has.contains(&element.as_str())).collect();
        let (any, all) = (hits.contains(&true), !hits.contains(&false));
        let case = match (hits.as_slice(), any, all) {
            ([], ..) => ListCase::Empty,
            _ if has.is_empty() => ListCase::Without,
            ([true], ..) => ListCase::OneHit,
            ([false], ..) => ListCase::OneMiss,
            (_, _, true) => ListCase::ManyAll,
            ([true, ..], ..) => ListCase::ManyFirst,
            (_, true, _) => ListCase::ManyLater,
            _ => ListCase::ManyMiss,
        };
        let admits = match list {
            List::ExcludeLabels => !any,
            List::LabelsAll => !wanted.is_empty() && all,
            _ => any,
        };
        (Rule::Filter(list, case), admits)
    }
}

fn case(order: Ordering, near: bool) -> BoundCase {
    match (order, near) {
        (Ordering::Equal, _) => BoundCase::At,
        (Ordering::Less, true) => BoundCase::JustBelow,
        (Ordering::Less, false) => BoundCase::Below,
        (Ordering::Greater, true) => BoundCase::JustAbove,
        (Ordering::Greater, false) => BoundCase::Above,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::item;
    use crate::world::Planted;
    use serde_json::json;

    fn admits(filter: &Value, item: &Value) -> bool {
        let mut draft = json!({"kind": "fact", "content": {"text": "x"}});
        draft.as_object_mut().unwrap().extend(item.as_object().unwrap().clone());
        let at = "2026-05-01T12:00:00Z".parse().unwrap();
        let version = item::version(&draft, "personal", at, &Planted::default());
        Filter::read(filter).judge(&version).iter().all(|(_, admits)| *admits)
    }

    #[test]
    fn lists_are_or_ed_members_and_ed_and_empty_ones_admit_nothing() {
        let ab = json!({"labels": ["a", "b"]});
        for (filter, expected) in [
            (json!({}), true),
            (json!({"labels_any": []}), false),
            (json!({"labels_any": ["a"]}), true),
            (json!({"labels_any": ["x", "b"]}), true),
            (json!({"labels_any": ["x"]}), false),
            (json!({"labels_all": []}), false),
            (json!({"labels_all": ["a", "b"]}), true),
            (json!({"labels_all": ["a", "x"]}), false),
            (json!({"exclude_labels": []}), true),
            (json!({"exclude_labels": ["x", "b"]}), false),
            (json!({"exclude_labels": ["x"]}), true),
            (json!({"kinds": []}), false),
            (json!({"kinds": ["preference", "fact"]}), true),
            (json!({"kinds": ["preference"]}), false),
            (json!({"labels_any": ["a"], "kinds": ["preference"]}), false),
            (json!({"subject_entity_ids": ["ent_ann"]}), false),
            (json!({"scopes": ["work"]}), false),
            (json!({"scopes": ["work", "personal"]}), true),
            (json!({"sensitivities": ["internal"]}), true),
            (json!({"sensitivities": ["public"]}), false),
        ] {
            assert_eq!(admits(&filter, &ab), expected, "{filter}");
        }
        assert!(!admits(&json!({"labels_any": ["a"]}), &json!({})));
        assert!(admits(&json!({"exclude_labels": ["a"]}), &json!({})));
        let ann = json!({"subject_entity_id": "ent_ann"});
        assert!(admits(&json!({"subject_entity_ids": ["ent_bob", "ent_ann"]}), &ann));
    }

    #[test]
    fn captured_after_includes_its_instant_and_captured_before_does_not() {
        let item = json!({"provenance": {"captured_at": "2026-04-01T00:00:00Z", "confidence": 0.5}});
        for (filter, expected) in [
            (json!({"captured_after": "2026-04-01T00:00:00.000Z"}), true),
            (json!({"captured_after": "2026-04-01T00:00:00.001Z"}), false),
            (json!({"captured_before": "2026-04-01T00:00:00.000Z"}), false),
            (json!({"captured_before": "2026-04-01T00:00:00.001Z"}), true),
            (json!({"min_confidence": 0.5}), true),
            (json!({"min_confidence": 0.51}), false),
            (json!({"min_confidence": 0.49}), true),
        ] {
            assert_eq!(admits(&filter, &item), expected, "{filter}");
        }
        assert!(admits(&json!({"min_confidence": 1}), &json!({})), "1 if absent");
    }
}

//! What a grant selects (RFC 0010 section 3.4, protocol section 5).
//!
//! Fields are AND-ed; the elements of a list are OR-ed, those of `labels_all` AND-ed; an absent field does not
//! restrict; an empty list admits nothing; an unknown field makes the filter invalid.

use crate::item::MAX_SHORT;
use crate::item::{Confidence, Kind, Sensitivity};
use crate::record::{Head, Tier, Visibility};
use oap_identity::{ScopeId, Timestamp};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Most elements of a list in a filter.
pub const MAX_LIST: usize = 256;

/// A grant's filter.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Filter {
    /// Only of these scopes. A grant without it means the scope of its granter.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scopes: Option<Vec<ScopeId>>,
    /// Only about these subjects.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subject_entity_ids: Option<Vec<String>>,
    /// Only of these kinds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kinds: Option<Vec<Kind>>,
    /// Only with one of these labels.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub labels_any: Option<Vec<String>>,
    /// Only with all of these labels.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub labels_all: Option<Vec<String>>,
    /// Never with one of these labels.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exclude_labels: Option<Vec<String>>,
    /// Only captured at or after this time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub captured_after: Option<Timestamp>,
    /// Only captured before this time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub captured_before: Option<Timestamp>,
    /// Only at least this sure.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub min_confidence: Option<Confidence>,
    /// Only of these sensitivities. Without it, all but `restricted`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sensitivities: Option<Vec<Sensitivity>>,
}

/// What is known of an item that a filter is asked about. What is hidden is `None`, and decides nothing, but that an empty
/// list admits nothing.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
#[allow(missing_docs, reason = "the names say it")]
pub struct Shown<'a> {
    pub scope_id: Option<&'a str>,
    pub kind: Option<Kind>,
    /// Its subject; `Some(None)` where it has none.
    pub subject_entity_id: Option<Option<&'a str>>,
    pub labels: Option<&'a [String]>,
    /// When it became known.
    pub captured_at: Option<Timestamp>,
    /// How sure the owner is.
    pub confidence: Option<Confidence>,
    /// How much harm disclosure would do.
    pub sensitivity: Option<Sensitivity>,
    /// Whether it may leave.
    pub exportable: Option<bool>,
}

impl<'a> Shown<'a> {
    /// The whole item.
    fn of(head: &'a Head) -> Self {
        Self {
            scope_id: Some(head.scope_id.as_str()),
            kind: Some(head.kind),
            subject_entity_id: Some(head.subject_entity_id.as_ref().map(|subject| subject.as_str())),
            labels: Some(&head.labels),
            captured_at: Some(head.captured_at),
            confidence: Some(head.confidence),
            sensitivity: Some(head.sensitivity),
            exportable: Some(head.exportable),
        }
    }

    /// A whole item as its owner is shown it. A member that has not its form decides nothing.
    #[must_use]
    pub fn of_item(item: &'a Value, labels: &'a [String]) -> Self {
        Self {
            scope_id: item["scope_id"].as_str(),
            kind: read(&item["kind"]),
            subject_entity_id: Some(item["subject_entity_id"].as_str()),
            labels: Some(labels),
            captured_at: read(&item["provenance"]["captured_at"]),
            confidence: read(&item["confidence"]),
            sensitivity: read(&item["sensitivity"]),
            exportable: item["exportable"].as_bool(),
        }
    }
}

fn read<T: DeserializeOwned>(member: &Value) -> Option<T> {
    T::deserialize(member).ok()
}

/// What of an item speaks against it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs, reason = "each variant says what its message says")]
pub enum NotAdmitted {
    #[error("its kind")]
    Kind,
    #[error("its labels, of which it has none")]
    NoLabel,
    #[error("its labels, of which it lacks one")]
    LacksLabel,
    #[error("its labels, of which one is excluded")]
    ExcludedLabel,
    #[error("its scope")]
    Scope,
    #[error("its subject")]
    Subject,
    #[error("its time, which is too early")]
    TooEarly,
    #[error("its time, which is too late")]
    TooLate,
    #[error("its confidence")]
    Confidence,
    #[error("its sensitivity")]
    Sensitivity,
    #[error("its sensitivity, which is restricted and not named")]
    Restricted,
    #[error("exportable, which is false")]
    NotExportable,
}

/// Whether a list is there and lacks a member; of a hidden one, whether it lacks everything.
fn lacks<T, M>(list: &Option<Vec<T>>, member: Option<M>, has: impl Fn(&[T], M) -> bool) -> bool {
    list.as_ref().is_some_and(|list| match member {
        Some(member) => !has(list, member),
        None => list.is_empty(),
    })
}

impl Filter {
    /// Whether the filter admits an item, for a grantee who is one of the owner's own agents or not.
    ///
    /// Never admitted: items that are not current, expired ones, those of the working tier, those that wait for
    /// confirmation or are not shared; `restricted` ones unless named; to others, ones that may not leave.
    #[must_use]
    pub fn admits(&self, head: &Head, default_scope: &ScopeId, own_agent: bool, now: Timestamp) -> bool {
        head.is_live(now)
            && head.meta.tier != Tier::Working
            && head.meta.visibility == Visibility::Shared
            && !head.meta.needs_verification
            && self.check(&Shown::of(head), default_scope, own_agent).is_ok()
    }

    /// Whether the filter admits what is known of an item: the gateway asks of whole items, a receiver of what it sees.
    ///
    /// # Errors
    /// [`NotAdmitted`].
    pub fn check(
        &self,
        shown: &Shown<'_>,
        default_scope: &ScopeId,
        own_agent: bool,
    ) -> Result<(), NotAdmitted> {
        if lacks(&self.kinds, shown.kind, |kinds, kind| kinds.contains(&kind)) {
            return Err(NotAdmitted::Kind);
        }
        if lacks(&self.labels_any, shown.labels, |any, labels| any.iter().any(|l| labels.contains(l))) {
            return Err(NotAdmitted::NoLabel);
        }
        if lacks(&self.labels_all, shown.labels, |all, labels| {
            !all.is_empty() && all.iter().all(|l| labels.contains(l))
        }) {
            return Err(NotAdmitted::LacksLabel);
        }
        let excluded = |label: &String| self.exclude_labels.as_ref().is_some_and(|out| out.contains(label));
        if shown.labels.is_some_and(|labels| labels.iter().any(excluded)) {
            return Err(NotAdmitted::ExcludedLabel);
        }
        let own_scope = |scope: &str| self.scopes.is_some() || scope == default_scope.as_str();
        if lacks(&self.scopes, shown.scope_id, |all, scope| all.iter().any(|s| s.as_str() == scope))
            || !shown.scope_id.is_none_or(own_scope)
        {
            return Err(NotAdmitted::Scope);
        }
        if lacks(&self.subject_entity_ids, shown.subject_entity_id, |all, subject| {
            subject.is_some_and(|subject| all.iter().any(|s| s == subject))
        }) {
            return Err(NotAdmitted::Subject);
        }
        if shown.captured_at.is_some_and(|at| self.captured_after.is_some_and(|after| at < after)) {
            return Err(NotAdmitted::TooEarly);
        }
        if shown.captured_at.is_some_and(|at| self.captured_before.is_some_and(|before| at >= before)) {
            return Err(NotAdmitted::TooLate);
        }
        if shown.confidence.is_some_and(|sure| self.min_confidence.is_some_and(|least| sure < least)) {
            return Err(NotAdmitted::Confidence);
        }
        if lacks(&self.sensitivities, shown.sensitivity, |all, sensitivity| all.contains(&sensitivity)) {
            return Err(NotAdmitted::Sensitivity);
        }
        if self.sensitivities.is_none() && shown.sensitivity == Some(Sensitivity::Restricted) {
            return Err(NotAdmitted::Restricted);
        }
        if shown.exportable == Some(false) && !own_agent {
            return Err(NotAdmitted::NotExportable);
        }
        Ok(())
    }

    /// The name of a list that is longer than [`MAX_LIST`], if there is one.
    #[must_use]
    pub fn too_long(&self) -> Option<&'static str> {
        let texts = self.texts().map(|(name, list)| (name, list.map_or(0, <[String]>::len)));
        let others = [
            ("scopes", self.scopes.as_ref().map_or(0, Vec::len)),
            ("kinds", self.kinds.as_ref().map_or(0, Vec::len)),
            ("sensitivities", self.sensitivities.as_ref().map_or(0, Vec::len)),
        ];
        texts.into_iter().chain(others).find(|(_, length)| *length > MAX_LIST).map(|(name, _)| name)
    }

    /// The name of a list with an entry longer than a label or subject can be, [`MAX_SHORT`], if there is one.
    #[must_use]
    pub fn entry_too_long(&self) -> Option<&'static str> {
        let is_long = |entry: &String| entry.chars().count() > MAX_SHORT;
        self.texts()
            .into_iter()
            .find(|(_, list)| list.unwrap_or_default().iter().any(is_long))
            .map(|(name, _)| name)
    }

    fn texts(&self) -> [(&'static str, Option<&[String]>); 4] {
        [
            ("subject_entity_ids", self.subject_entity_ids.as_deref()),
            ("labels_any", self.labels_any.as_deref()),
            ("labels_all", self.labels_all.as_deref()),
            ("exclude_labels", self.exclude_labels.as_deref()),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(filter: Value, shown: &Shown<'_>) -> Result<(), NotAdmitted> {
        let filter: Filter = serde_json::from_value(filter).unwrap();
        filter.check(shown, &"personal".parse().unwrap(), false)
    }

    #[test]
    fn an_entry_has_as_many_characters_as_a_label() {
        let named = |count: usize| {
            let filter: Filter =
                serde_json::from_value(serde_json::json!({"labels_all": ["ö".repeat(count)]})).unwrap();
            filter.entry_too_long()
        };
        assert_eq!(named(MAX_SHORT), None);
        assert_eq!(named(MAX_SHORT + 1), Some("labels_all"));
    }

    #[test]
    fn what_is_hidden_decides_nothing_and_an_empty_list_admits_nothing() {
        let hidden = Shown::default();
        let lists = ["kinds", "labels_any", "labels_all", "scopes", "subject_entity_ids", "sensitivities"];
        for list in lists {
            assert!(check(serde_json::json!({list: []}), &hidden).is_err(), "{list}");
        }
        let filled = serde_json::json!({
            "kinds": ["fact"], "labels_any": ["a"], "labels_all": ["a"], "exclude_labels": ["b"], "scopes": ["work"],
            "subject_entity_ids": ["ent_ann"], "sensitivities": ["public"], "min_confidence": 0.5,
            "captured_after": "2026-05-01T00:00:00.000Z", "captured_before": "2026-05-02T00:00:00.000Z",
        });
        assert_eq!(check(filled, &hidden), Ok(()));
        assert_eq!(check(serde_json::json!({"exclude_labels": []}), &hidden), Ok(()));
    }

    #[test]
    fn what_may_not_leave_and_restricted_items_need_more_than_an_empty_filter() {
        let restricted = Shown { sensitivity: Some(Sensitivity::Restricted), ..Shown::default() };
        assert!(check(serde_json::json!({}), &restricted).is_err());
        assert!(check(serde_json::json!({"sensitivities": ["public"]}), &restricted).is_err());
        assert_eq!(check(serde_json::json!({"sensitivities": ["restricted"]}), &restricted), Ok(()));
        let kept = Shown { exportable: Some(false), ..Shown::default() };
        assert!(check(serde_json::json!({}), &kept).is_err());
        assert_eq!(Filter::default().check(&kept, &"personal".parse().unwrap(), true), Ok(()));
        let bare = Shown { subject_entity_id: Some(None), ..Shown::default() };
        assert!(check(serde_json::json!({"subject_entity_ids": ["ent_ann"]}), &bare).is_err());
    }
}

//! What a grant selects (RFC 0010 section 3.4, protocol section 5).
//!
//! Fields are AND-ed; the elements of a list are OR-ed, those of `labels_all` AND-ed; an absent field does not
//! restrict; an empty list admits nothing; an unknown field makes the filter invalid.

use crate::item::MAX_SHORT;
use crate::item::{Confidence, Kind, Sensitivity};
use crate::record::{Head, Tier, Visibility};
use oap_identity::{ScopeId, Timestamp};
use serde::{Deserialize, Serialize};

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

impl Filter {
    /// Whether the filter admits an item, for a grantee who is one of the owner's own agents or not.
    ///
    /// Never admitted: items that are not current, expired ones, those of the working tier, those that wait for
    /// confirmation or are not shared; `restricted` ones unless named; to others, ones that may not leave.
    #[must_use]
    pub fn admits(&self, head: &Head, default_scope: &ScopeId, own_agent: bool, now: Timestamp) -> bool {
        self.admits_standing(head, own_agent, now)
            && match &self.scopes {
                Some(scopes) => scopes.contains(&head.scope_id),
                None => head.scope_id == *default_scope,
            }
            && self.kinds.as_ref().is_none_or(|kinds| kinds.contains(&head.kind))
            && self.subject_entity_ids.as_ref().is_none_or(|subjects| {
                head.subject_entity_id.as_ref().is_some_and(|subject| subjects.contains(subject))
            })
            && self.admits_labels(&head.labels)
            && self.captured_after.is_none_or(|after| head.captured_at >= after)
            && self.captured_before.is_none_or(|before| head.captured_at < before)
            && self.min_confidence.is_none_or(|least| head.confidence >= least)
    }

    fn admits_standing(&self, head: &Head, own_agent: bool, now: Timestamp) -> bool {
        let sensitivity = match &self.sensitivities {
            Some(named) => named.contains(&head.sensitivity),
            None => head.sensitivity != Sensitivity::Restricted,
        };
        head.is_live(now)
            && head.meta.tier != Tier::Working
            && head.meta.visibility == Visibility::Shared
            && !head.meta.needs_verification
            && (head.exportable || own_agent)
            && sensitivity
    }

    fn admits_labels(&self, labels: &[String]) -> bool {
        self.labels_any.as_ref().is_none_or(|any| any.iter().any(|l| labels.contains(l)))
            && self
                .labels_all
                .as_ref()
                .is_none_or(|all| !all.is_empty() && all.iter().all(|l| labels.contains(l)))
            && self.exclude_labels.as_ref().is_none_or(|out| !out.iter().any(|l| labels.contains(l)))
    }

    /// The name of a list that is longer than [`MAX_LIST`], or has an entry longer than a label or subject can be, if
    /// there is one.
    #[must_use]
    pub fn too_long(&self) -> Option<&'static str> {
        let length = |list: &Option<Vec<String>>| {
            let list = list.as_deref().unwrap_or_default();
            let fits = list.iter().all(|entry| entry.chars().count() <= MAX_SHORT);
            if fits { list.len() } else { usize::MAX }
        };
        [
            ("subject_entity_ids", length(&self.subject_entity_ids)),
            ("labels_any", length(&self.labels_any)),
            ("labels_all", length(&self.labels_all)),
            ("exclude_labels", length(&self.exclude_labels)),
            ("scopes", self.scopes.as_ref().map_or(0, Vec::len)),
            ("kinds", self.kinds.as_ref().map_or(0, Vec::len)),
            ("sensitivities", self.sensitivities.as_ref().map_or(0, Vec::len)),
        ]
        .into_iter()
        .find(|(_, length)| *length > MAX_LIST)
        .map(|(name, _)| name)
    }
}

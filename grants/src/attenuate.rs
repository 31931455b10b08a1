//! A delegated grant is narrower than the one it was made from, field by field (protocol section 5.2).
//!
//! What is not decidably narrower is refused.

use crate::grant::{Budget, Grant};
use oap_identity::ScopeId;
use oap_memory::item::Sensitivity;
use oap_memory::{Filter, Kind};

/// The member in which a child is wider than its parent, or not comparable with it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{}: {}", .0, why(.0))]
pub struct Wider(pub &'static str);

fn why(member: &str) -> &'static str {
    match member {
        "parent" => "the grant may not be passed on, or no further",
        "filter.labels_any" => {
            "a delegated grant must be within the one that it was made from: of its labels fewer; what more an item must have is labels_all"
        }
        _ => "a delegated grant must be within the one that it was made from",
    }
}

/// Checks that `child` gives nothing that `parent` does not give.
///
/// # Errors
/// [`Wider`], naming the member.
pub fn check(parent: &Grant, child: &Grant) -> Result<(), Wider> {
    let within = |ok: bool, member: &'static str| if ok { Ok(()) } else { Err(Wider(member)) };
    let depth = parent.delegable.map_or(0, |d| d.max_depth);
    within(depth > 0, "parent")?;
    within(child.delegable.is_none_or(|d| d.max_depth < depth), "delegable")?;
    within(child.granter == parent.granter, "granter")?;
    within(child.max_items <= parent.max_items, "max_items")?;
    within(child.begins() >= parent.begins(), "not_before")?;
    within(child.expires_at <= parent.expires_at, "expires_at")?;
    within(child.redaction_profile == parent.redaction_profile, "redaction_profile")?;
    within(child.trust_level <= parent.trust_level, "trust_level")?;
    within(child.lawful_basis == parent.lawful_basis, "lawful_basis")?;
    within(child.operations.is_subset(&parent.operations), "operations")?;
    within(parent.embedding_access || !child.embedding_access, "embedding_access")?;
    within(parent.bearer || !child.bearer, "bearer")?;
    within(codes_within(&parent.purpose_codes, &child.purpose_codes), "purpose_codes")?;
    within(budget_within(parent.budget, child.budget), "budget")?;
    filter(&parent.filter, &child.filter, &parent.granter.scope)
}

fn codes_within(parent: &[String], child: &[String]) -> bool {
    parent.is_empty() || (!child.is_empty() && child.iter().all(|code| parent.contains(code)))
}

fn budget_within(parent: Option<Budget>, child: Option<Budget>) -> bool {
    let parent = parent.unwrap_or_default();
    let child = child.unwrap_or_default();
    let queries = parent.queries.is_none_or(|most| child.queries.is_some_and(|n| n <= most));
    let epsilon = parent.epsilon.is_none_or(|most| child.epsilon.is_some_and(|e| e <= most));
    queries && epsilon
}

fn filter(parent: &Filter, child: &Filter, scope: &ScopeId) -> Result<(), Wider> {
    let within = |ok: bool, member: &'static str| if ok { Ok(()) } else { Err(Wider(member)) };
    let default = vec![scope.clone()];
    let scopes = |f: &Filter| f.scopes.clone().unwrap_or_else(|| default.clone());
    within(subset(&scopes(child), &scopes(parent)), "filter.scopes")?;
    within(narrowed(&parent.subject_entity_ids, &child.subject_entity_ids), "filter.subject_entity_ids")?;
    within(narrowed::<Kind>(&parent.kinds, &child.kinds), "filter.kinds")?;
    within(narrowed(&parent.labels_any, &child.labels_any), "filter.labels_any")?;
    within(required(&parent.labels_all, &child.labels_all), "filter.labels_all")?;
    within(extended(&parent.exclude_labels, &child.exclude_labels), "filter.exclude_labels")?;
    let after = |least| child.captured_after.is_some_and(|t| t >= least);
    within(parent.captured_after.is_none_or(after), "filter.captured_after")?;
    let before = |most| child.captured_before.is_some_and(|t| t <= most);
    within(parent.captured_before.is_none_or(before), "filter.captured_before")?;
    let confident = |least| child.min_confidence.is_some_and(|c| c >= least);
    within(parent.min_confidence.is_none_or(confident), "filter.min_confidence")?;
    let admitted = |f: &Filter| {
        f.sensitivities
            .clone()
            .unwrap_or_else(|| vec![Sensitivity::Public, Sensitivity::Internal, Sensitivity::Confidential])
    };
    within(subset(&admitted(child), &admitted(parent)), "filter.sensitivities")
}

fn subset<T: PartialEq>(child: &[T], parent: &[T]) -> bool {
    child.iter().all(|v| parent.contains(v))
}

/// A list whose elements are OR-ed: fewer is narrower, absent does not restrict.
fn narrowed<T: PartialEq>(parent: &Option<Vec<T>>, child: &Option<Vec<T>>) -> bool {
    match (parent, child) {
        (None, _) => true,
        (Some(parent), Some(child)) => subset(child, parent),
        (Some(_), None) => false,
    }
}

/// A list whose every element restricts: more is narrower.
fn extended<T: PartialEq>(parent: &Option<Vec<T>>, child: &Option<Vec<T>>) -> bool {
    match (parent, child) {
        (None, _) => true,
        (Some(parent), Some(child)) => subset(parent, child),
        (Some(_), None) => false,
    }
}

/// Labels that an item must have. An empty list admits nothing: an empty one alone is within it.
fn required(parent: &Option<Vec<String>>, child: &Option<Vec<String>>) -> bool {
    let is_nothing = |list: &Option<Vec<String>>| list.as_ref().is_some_and(Vec::is_empty);
    extended(parent, child) && (!is_nothing(parent) || is_nothing(child))
}

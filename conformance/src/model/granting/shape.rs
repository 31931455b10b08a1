//! Whether a document is a grant at all, or a draft of one (protocol section 5): each member is of its type, words are of their closed lists,
//! and a grant has every member that is required. A reader that does not understand a member refuses the grant.

use crate::model::grant::texts;
use crate::model::item::time;
use crate::model::rule::List;
use oap_identity::{Did, GrantId, Hash, ScopedDid};
use serde_json::Value;

const KINDS: [&str; 6] =
    ["fact", "preference", "conversation_turn", "summary", "observation", "document_reference"];
const SENSITIVITIES: [&str; 4] = ["public", "internal", "confidential", "restricted"];
const OPERATIONS: [&str; 3] = ["query", "export", "subscribe"];
const BASES: [&str; 6] =
    ["consent", "contract", "legal_obligation", "vital_interests", "public_task", "legitimate_interests"];

/// What every signed grant has.
const REQUIRED: [&str; 10] = [
    "grant_id",
    "granter",
    "grantee",
    "purpose",
    "filter",
    "max_items",
    "issued_at",
    "expires_at",
    "redaction_profile",
    "signature",
];

/// Whether a signed grant has its form, its signature aside.
pub(super) fn is_grant(grant: &Value) -> bool {
    REQUIRED.iter().all(|name| grant.get(name).is_some()) && is_formed(grant)
}

/// Whether each member of a grant or a draft is of its form. What else there is, and what is missing, is not looked at.
pub(super) fn is_formed(grant: &Value) -> bool {
    let is = |name: &str, fits: &dyn Fn(&Value) -> bool| grant.get(name).is_none_or(fits);
    let flag = |value: &Value| value.is_boolean();
    let whole = |value: &Value, most: u64| value.as_u64().is_some_and(|n| n <= most);
    let at = |value: &Value| time(value).is_some();
    let of = |list: &Value, known: &[&str]| list_of(list, &|text| known.contains(&text));
    is("version", &|v| *v == 1)
        && is("grant_id", &|v| v.as_str().is_some_and(|id| id.parse::<GrantId>().is_ok()))
        && is("granter", &|v| v.as_str().is_some_and(|did| did.parse::<ScopedDid>().is_ok()))
        && is("grantee", &|v| v.as_str().is_some_and(|did| did.parse::<Did>().is_ok()))
        && is("purpose", &Value::is_string)
        && is("purpose_codes", &|v| list_of(v, &|_| true))
        && is("filter", &is_filter)
        && is("max_items", &|v| whole(v, u64::from(u32::MAX)))
        && is("issued_at", &at)
        && is("not_before", &|v| v.is_null() || at(v))
        && is("expires_at", &at)
        && is("revocable", &flag)
        && is("redaction_profile", &Value::is_string)
        && is("trust_level", &|v| whole(v, 4))
        && is("lawful_basis", &|v| v.as_str().is_some_and(|basis| BASES.contains(&basis)))
        && is("operations", &|v| of(v, &OPERATIONS))
        && is("embedding_access", &flag)
        && is("bearer", &flag)
        && is("delegable", &|v| v.is_null() || only(v, &["max_depth"]) && whole(&v["max_depth"], 255))
        && is("parent", &|v| v.is_null() || v.as_str().is_some_and(|hash| hash.parse::<Hash>().is_ok()))
        && is("budget", &|v| v.is_null() || is_budget(v))
        && is("signature", &Value::is_string)
}

fn is_filter(filter: &Value) -> bool {
    filter.as_object().into_iter().flatten().all(|(name, value)| {
        if value.is_null() {
            return true;
        }
        match name.as_str() {
            "kinds" => list_of(value, &|text| KINDS.contains(&text)),
            "sensitivities" => list_of(value, &|text| SENSITIVITIES.contains(&text)),
            "captured_after" | "captured_before" => time(value).is_some(),
            "min_confidence" => value.as_f64().is_some_and(|sure| (0.0..=1.0).contains(&sure)),
            name => List::ALL.iter().any(|list| list.as_str() == name) && list_of(value, &|_| true),
        }
    }) && filter.is_object()
}

fn is_budget(budget: &Value) -> bool {
    only(budget, &["queries", "epsilon"])
        && (budget["queries"].is_null() || budget["queries"].is_u64())
        && (budget["epsilon"].is_null() || budget["epsilon"].is_number())
}

fn only(value: &Value, members: &[&str]) -> bool {
    value.as_object().is_some_and(|all| all.keys().all(|name| members.contains(&name.as_str())))
}

fn list_of(value: &Value, fits: &dyn Fn(&str) -> bool) -> bool {
    let length = value.as_array().map(Vec::len);
    texts(value).is_some_and(|texts| Some(texts.len()) == length && texts.iter().all(|text| fits(text)))
}

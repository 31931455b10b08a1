//! A grant as the model reads it (protocol section 5).

use super::filter::Filter;
use super::item::time;
use oap_identity::{Hash, Timestamp};
use serde_json::Value;

/// A grant, and when it was taken back.
#[derive(Debug, Clone)]
pub(super) struct Grant {
    pub id: String,
    pub hash: String,
    pub granter: String,
    /// The scope of `granter`.
    pub scope: String,
    pub grantee: String,
    pub filter: Filter,
    pub max_items: usize,
    pub begins: Option<Timestamp>,
    pub ends: Option<Timestamp>,
    pub profile: String,
    pub level: u8,
    pub lawful_basis: String,
    pub operations: Vec<String>,
    pub embedding_access: bool,
    pub purpose_codes: Vec<String>,
    pub queries: Option<u64>,
    pub epsilon: Option<f64>,
    pub parent: Option<String>,
    pub bearer: bool,
    /// `delegable.max_depth`, 0 where it is not delegable.
    pub depth: u64,
    /// Whether it names its place in the status list.
    pub has_place: bool,
    pub revoked: Option<Timestamp>,
}

/// The texts of a list.
pub(super) fn texts(value: &Value) -> Option<Vec<String>> {
    Some(value.as_array()?.iter().filter_map(|text| text.as_str().map(str::to_owned)).collect())
}

impl Grant {
    /// Reads a signed grant, with the values of members that are absent.
    pub fn read(grant: &Value) -> Self {
        let text = |name: &str| grant[name].as_str().unwrap_or_default().to_owned();
        let (granter, scope) = split(&text("granter"));
        Self {
            id: text("grant_id"),
            hash: Hash::of_canonical(grant).map(|hash| hash.to_string()).unwrap_or_default(),
            granter,
            scope,
            grantee: text("grantee"),
            filter: Filter::read(&grant["filter"]),
            max_items: grant["max_items"].as_u64().and_then(|n| n.try_into().ok()).unwrap_or(0),
            begins: time(&grant["not_before"]).or_else(|| time(&grant["issued_at"])),
            ends: time(&grant["expires_at"]),
            profile: text("redaction_profile"),
            level: grant["trust_level"].as_u64().and_then(|n| n.try_into().ok()).unwrap_or(0),
            lawful_basis: grant["lawful_basis"].as_str().unwrap_or("consent").to_owned(),
            operations: texts(&grant["operations"]).unwrap_or_else(|| vec!["query".to_owned()]),
            embedding_access: grant["embedding_access"].as_bool().unwrap_or(false),
            purpose_codes: texts(&grant["purpose_codes"]).unwrap_or_default(),
            queries: grant["budget"]["queries"].as_u64(),
            epsilon: grant["budget"]["epsilon"].as_f64(),
            parent: grant["parent"].as_str().map(str::to_owned),
            bearer: grant["bearer"].as_bool().unwrap_or(false),
            depth: grant["delegable"]["max_depth"].as_u64().unwrap_or(0),
            has_place: grant["status"].is_object(),
            revoked: None,
        }
    }
}

/// A DID and its scope.
fn split(granter: &str) -> (String, String) {
    let (did, scope) = granter.split_once('#').unwrap_or((granter, ""));
    (did.to_owned(), scope.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_a_grant_leaves_out_has_a_value() {
        let grant = Grant::read(&json!({
            "grant_id": "mgr_1", "granter": "did:web:user.example#personal", "grantee": "did:web:b.example", "filter": {},
            "max_items": 3, "issued_at": "2026-05-01T00:00:00Z", "expires_at": "2026-06-01T00:00:00Z",
        }));
        assert_eq!((grant.granter.as_str(), grant.scope.as_str()), ("did:web:user.example", "personal"));
        assert_eq!((grant.level, grant.operations.as_slice()), (0, ["query".to_owned()].as_slice()));
        assert_eq!(grant.begins.map(|at| at.to_string()).as_deref(), Some("2026-05-01T00:00:00.000Z"));
        assert_eq!((grant.lawful_basis.as_str(), grant.embedding_access), ("consent", false));
    }
}

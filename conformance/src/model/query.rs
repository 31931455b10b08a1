//! A query as it is read, and what refuses it before anything is looked at (protocol section 6, bytes 4.5).

use super::grant::texts;
use super::item::canonical;
use super::rule::Refusal;
use serde_json::{Map, Value, json};

/// Most items of an answer.
pub(super) const MAX_RESULTS: u64 = 100;
/// Items of an answer whose query does not say.
pub(super) const DEFAULT_RESULTS: usize = 20;
const MAX_QUERY: usize = 4096;
const MAX_LIST: usize = 256;
const MAX_LABEL: usize = 256;
const MAX_CURSOR: usize = 256;
const MAX_PURPOSE: usize = 64;

const MEMBERS: [&str; 10] = [
    "query",
    "max_results",
    "include_embeddings",
    "kinds",
    "labels_any",
    "min_confidence",
    "cursor",
    "integrity",
    "purpose",
    "request_id",
];

const KINDS: [&str; 6] =
    ["fact", "preference", "conversation_turn", "summary", "observation", "document_reference"];

/// A query.
#[derive(Debug, Clone, Default)]
pub(super) struct Query {
    pub text: String,
    pub max_results: Option<usize>,
    pub include_embeddings: bool,
    pub kinds: Option<Vec<String>>,
    pub labels_any: Option<Vec<String>>,
    pub min_confidence: Option<f64>,
    pub cursor: Option<String>,
    pub chain_only: bool,
    pub purpose: Option<String>,
    /// As it was read: what is hashed, but for `request_id` where the gateway makes it.
    pub read: Value,
}

impl Query {
    /// Whether it has conditions beside its words.
    pub const fn has_conditions(&self) -> bool {
        self.kinds.is_some() || self.labels_any.is_some() || self.min_confidence.is_some()
    }

    /// Reads a query.
    pub fn read(query: &Value) -> Result<Self, Refusal> {
        let members = query.as_object().ok_or(Refusal::QueryShape)?;
        if members.keys().any(|name| !MEMBERS.contains(&name.as_str())) {
            return Err(Refusal::QueryUnknownMember);
        }
        let written = ["query", "include_embeddings", "integrity"];
        if written.iter().any(|name| members.get(*name).is_some_and(Value::is_null)) {
            return Err(Refusal::QueryNull);
        }
        let member = |name: &str| members.get(name).filter(|value| !value.is_null());
        let text = |name: &str| member(name).map(|v| v.as_str().ok_or(Refusal::QueryShape)).transpose();
        let list = |name: &str| {
            let texts = |value: &Value| {
                let all = value.as_array().is_some_and(|list| list.iter().all(Value::is_string));
                texts(value).filter(|_| all).ok_or(Refusal::QueryShape)
            };
            member(name).map(texts).transpose()
        };
        let include_embeddings =
            member("include_embeddings").map_or(Ok(false), |v| v.as_bool().ok_or(Refusal::QueryShape))?;
        let max_results = match member("max_results").map(Value::as_u64) {
            None => None,
            Some(Some(0)) => return Err(Refusal::MaxResultsZero),
            Some(Some(n)) if n > MAX_RESULTS => return Err(Refusal::MaxResultsAbove),
            Some(Some(n)) => usize::try_from(n).ok(),
            Some(None) => return Err(Refusal::QueryShape),
        };
        let min_confidence = match member("min_confidence").map(Value::as_f64) {
            None => None,
            Some(Some(sure)) if (0.0..=1.0).contains(&sure) => Some(sure),
            Some(Some(_)) => return Err(Refusal::ConfidenceRange),
            Some(None) => return Err(Refusal::QueryShape),
        };
        let (kinds, labels_any) = (list("kinds")?, list("labels_any")?);
        if kinds.iter().flatten().any(|kind| !KINDS.contains(&kind.as_str())) {
            return Err(Refusal::UnknownKind);
        }
        if kinds.iter().chain(&labels_any).any(|list| list.len() > MAX_LIST) {
            return Err(Refusal::ListTooLong);
        }
        if labels_any.iter().flatten().any(|label| label.len() > MAX_LABEL) {
            return Err(Refusal::LabelTooLong);
        }
        let chain_only = match text("integrity")? {
            None | Some("full") => false,
            Some("chain") => true,
            Some(_) => return Err(Refusal::IntegrityUnknown),
        };
        let id =
            |id: &str| id.len() == 26 && id.bytes().all(|c| b"0123456789ABCDEFGHJKMNPQRSTVWXYZ".contains(&c));
        if !text("request_id")?.is_none_or(id) {
            return Err(Refusal::RequestId);
        }
        let bounded = |name: &str, most: usize, refusal: Refusal| match text(name)? {
            Some(text) if text.len() > most => Err(refusal),
            text => Ok(text.map(str::to_owned)),
        };
        Ok(Self {
            text: bounded("query", MAX_QUERY, Refusal::QueryTooLong)?.unwrap_or_default(),
            max_results,
            include_embeddings,
            kinds,
            labels_any,
            min_confidence,
            cursor: bounded("cursor", MAX_CURSOR, Refusal::CursorTooLong)?,
            chain_only,
            purpose: bounded("purpose", MAX_PURPOSE, Refusal::PurposeTooLong)?,
            read: read(members),
        })
    }

    /// What a cursor is bound to: everything but itself, the number of results, the proof asked for and the request's name.
    pub fn binding(&self) -> String {
        let mut bound = self.read.clone();
        if let Some(members) = bound.as_object_mut() {
            members.retain(|name, _| {
                !["cursor", "max_results", "integrity", "request_id"].contains(&name.as_str())
            });
        }
        bound.to_string()
    }

    /// Whether it lists the newest instead of searching.
    pub fn is_listing(&self) -> bool {
        self.text.trim().is_empty()
    }
}

/// The query as it was read: three members written out, those that are `null` left out.
fn read(members: &Map<String, Value>) -> Value {
    let mut read = json!({"query": "", "include_embeddings": false, "integrity": "full"});
    if let Some(into) = read.as_object_mut() {
        into.extend(members.iter().filter(|(_, v)| !v.is_null()).map(|(name, v)| (name.clone(), v.clone())));
    }
    canonical(&read)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(query: &Value) -> Option<Refusal> {
        Query::read(query).err()
    }

    #[test]
    fn the_bounds_of_bytes_4_5() {
        let long = |n: usize| "x".repeat(n);
        for (query, expected) in [
            (json!({}), None),
            (json!([]), Some(Refusal::QueryShape)),
            (json!({"colour": 1}), Some(Refusal::QueryUnknownMember)),
            (json!({"query": null}), Some(Refusal::QueryNull)),
            (json!({"kinds": null, "max_results": null}), None),
            (json!({"max_results": 1}), None),
            (json!({"max_results": 100}), None),
            (json!({"max_results": 0}), Some(Refusal::MaxResultsZero)),
            (json!({"max_results": 101}), Some(Refusal::MaxResultsAbove)),
            (json!({"query": long(4096)}), None),
            (json!({"query": long(4097)}), Some(Refusal::QueryTooLong)),
            (json!({"labels_any": vec!["x"; 256]}), None),
            (json!({"labels_any": vec!["x"; 257]}), Some(Refusal::ListTooLong)),
            (json!({"labels_any": [long(257)]}), Some(Refusal::LabelTooLong)),
            (json!({"kinds": ["rumour"]}), Some(Refusal::UnknownKind)),
            (json!({"min_confidence": 1.01}), Some(Refusal::ConfidenceRange)),
            (json!({"cursor": long(257)}), Some(Refusal::CursorTooLong)),
            (json!({"integrity": "none"}), Some(Refusal::IntegrityUnknown)),
            (json!({"purpose": long(65)}), Some(Refusal::PurposeTooLong)),
            (json!({"request_id": "01J9V8B7H1ZK4D2A0M9R8F0KQX"}), None),
            (json!({"request_id": "01J9V8B7H1ZK4D2A0M9R8F0KQI"}), Some(Refusal::RequestId)),
        ] {
            assert_eq!(refused(&query), expected, "{query}");
        }
    }

    #[test]
    fn the_query_of_bytes_4_is_read_as_it_says() {
        let query = json!({"max_results": 5, "query": "tea", "request_id": "01J9V8B7H1ZK4D2A0M9R8F0KQX", "kinds": null});
        let read = Query::read(&query).unwrap().read;
        assert_eq!(
            oap_identity::Hash::of_canonical(&read).unwrap().to_string(),
            "sha256:f46caa23613e68b4dd703a23c727a0fbd459453e1133f8e9967275e0870f484d"
        );
    }

    #[test]
    fn a_cursor_is_bound_to_what_is_asked() {
        let binding = |query: Value| Query::read(&query).unwrap().binding();
        let asked = binding(json!({"query": "tea", "max_results": 2}));
        assert_eq!(asked, binding(json!({"query": "tea", "cursor": "x", "integrity": "chain"})));
        assert_ne!(asked, binding(json!({"query": "tee"})));
        assert_ne!(asked, binding(json!({"query": "tea", "kinds": []})));
    }
}

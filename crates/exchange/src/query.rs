//! A query (RFC 0010 section 3.5): what a grantee asks.

pub use oap_grants::limits::MAX_PURPOSE_CODE;
use oap_identity::json::JsonError;
use oap_identity::{Hash, ItemId, RequestId};
use oap_memory::answer::MAX_RESULTS;
use oap_memory::filter::MAX_LIST;
use oap_memory::item::{Confidence, Kind, MAX_SHORT};
use serde::{Deserialize, Serialize};

/// Items of an answer whose query does not say.
pub const DEFAULT_RESULTS: u16 = 20;
/// Longest query text, in bytes.
pub const MAX_QUERY: usize = 4096;
/// Longest cursor, in bytes.
pub const MAX_CURSOR: usize = 256;

/// How much proof comes with each item.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Integrity {
    /// SD-JWT, chain and capture receipt.
    #[default]
    Full,
    /// Chain and capture receipt.
    Chain,
}

/// A query (RFC 0010 section 3.5) as it stands on the wire.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Query {
    /// The question; empty lists the newest.
    #[serde(default)]
    pub query: String,
    /// 1 to 100, 20 if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_results: Option<u16>,
    /// Whether embeddings are asked for; needs the right to.
    #[serde(default)]
    pub include_embeddings: bool,
    /// Only of these kinds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kinds: Option<Vec<Kind>>,
    /// Only with one of these labels.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub labels_any: Option<Vec<String>>,
    /// Only at least this sure.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub min_confidence: Option<Confidence>,
    /// Where the answer before ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cursor: Option<String>,
    /// How much proof.
    #[serde(default)]
    pub integrity: Integrity,
    /// The purpose, one of those that the grant names.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub purpose: Option<String>,
    /// The caller's name for the request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request_id: Option<RequestId>,
}

/// What the `input_hash` of a receipt covers where items are asked for by name: the names, and the rest of the query.
#[derive(Debug, Clone, Serialize)]
pub struct NamedItems<'a> {
    /// The items.
    pub items: &'a [ItemId],
    /// The query.
    #[serde(flatten)]
    pub query: &'a Query,
}

impl Query {
    /// The listing that a request for named items is.
    #[must_use]
    pub fn naming(request_id: RequestId) -> Self {
        Self { max_results: Some(MAX_RESULTS), request_id: Some(request_id), ..Self::default() }
    }
}

/// Why a query was refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum QueryError {
    /// `max_results` out of range.
    #[error("max_results: must be from 1 to {MAX_RESULTS}")]
    MaxResults,
    /// The text is too long.
    #[error("query: at most {MAX_QUERY} bytes")]
    TooLong,
    /// A list is too long.
    #[error("{0}: at most {MAX_LIST} elements")]
    List(&'static str),
    /// A text is too long.
    #[error("{0}: at most {1} bytes")]
    Text(&'static str, usize),
}

impl Query {
    /// Checks what the types do not.
    ///
    /// # Errors
    /// [`QueryError`].
    pub fn check(&self) -> Result<(), QueryError> {
        if self.max_results.is_some_and(|n| n == 0 || n > MAX_RESULTS) {
            return Err(QueryError::MaxResults);
        }
        if self.query.len() > MAX_QUERY {
            return Err(QueryError::TooLong);
        }
        if self.labels_any.as_ref().is_some_and(|l| l.len() > MAX_LIST) {
            return Err(QueryError::List("labels_any"));
        }
        if self.kinds.as_ref().is_some_and(|l| l.len() > MAX_LIST) {
            return Err(QueryError::List("kinds"));
        }
        if self.labels_any.iter().flatten().any(|label| label.len() > MAX_SHORT) {
            return Err(QueryError::Text("labels_any", MAX_SHORT));
        }
        if self.purpose.as_ref().is_some_and(|purpose| purpose.len() > MAX_PURPOSE_CODE) {
            return Err(QueryError::Text("purpose", MAX_PURPOSE_CODE));
        }
        if self.cursor.as_ref().is_some_and(|cursor| cursor.len() > MAX_CURSOR) {
            return Err(QueryError::Text("cursor", MAX_CURSOR));
        }
        Ok(())
    }

    /// Whether it lists the newest instead of searching.
    #[must_use]
    pub fn is_listing(&self) -> bool {
        self.query.trim().is_empty()
    }

    /// Whether it asks for something of an item beside its text.
    pub(crate) const fn narrows(&self) -> bool {
        self.kinds.is_some() || self.labels_any.is_some() || self.min_confidence.is_some()
    }

    /// The hash that binds a cursor to its query: of everything but the cursor, the number of results, the proof
    /// asked for and the request's name.
    ///
    /// # Errors
    /// Never in practice: a query has a canonical form.
    pub fn binding(&self) -> Result<Hash, JsonError> {
        let mut bound = self.clone();
        bound.cursor = None;
        bound.max_results = None;
        bound.request_id = None;
        bound.integrity = Integrity::Full;
        Hash::of_canonical(&bound)
    }
}

//! The answer to a query: a function of the view and the request, and of nothing else (protocol section 6).

use crate::filter::MAX_LIST;
use crate::item::{Confidence, Kind, MAX_SHORT};
use crate::profile::TrustLevel;
use crate::receipt::{Receipt, item_tag};
use crate::vector::{Vector, fuse};
use crate::view::{Allowance, View, ViewItem, text};
use oap_identity::json::{self, JsonError};
use oap_identity::{Hash, ItemId, RequestId, Signer, Timestamp};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::cmp::Reverse;

/// Most bytes of the items of one answer; the rest is behind its cursor. One item is always answered with.
pub const MAX_ANSWER: usize = 16 << 20;
/// Most items of one answer.
pub const MAX_RESULTS: u16 = 100;
/// Items of an answer whose query does not say.
pub const DEFAULT_RESULTS: u16 = 20;
/// Longest query text, in bytes.
pub const MAX_QUERY: usize = 4096;
/// Longest purpose of a query, in bytes: that of a purpose code of a grant.
pub const MAX_PURPOSE_CODE: usize = 64;
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

/// Where an answer ended: what came last.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Position {
    /// The rank of the last item: its score, or its capture time for a listing.
    pub rank: Rank,
    /// The last item.
    pub item: ItemId,
}

/// What items are ordered by, best first.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Rank {
    /// The score of a query.
    Score(f32),
    /// The capture time of a listing.
    Captured(Timestamp),
}

impl Rank {
    /// A key that sorts best first.
    fn key(self) -> Reverse<i64> {
        Reverse(match self {
            // Scores are never negative, and the bits of such floats sort as they do.
            Self::Score(score) => i64::from(score.to_bits()),
            Self::Captured(at) => at.millis(),
        })
    }
}

/// An item of an answer.
#[derive(Debug, Clone, Copy)]
struct Found<'v> {
    item: &'v ViewItem,
    relevance: f64,
}

/// What a query finds in a view.
#[derive(Debug, Clone)]
pub struct Answer<'v> {
    found: Vec<Found<'v>>,
    next: Option<Position>,
    newly_disclosed: Vec<ItemId>,
    integrity: Integrity,
}

/// Answers a query from a view. `after` is the position of the query's cursor.
///
/// `meaning` is the vector of the query's text, where the view has vectors: then both rankings are fused.
///
/// Ties break by item id. At most as many items that were never disclosed are shown as the
/// grant has left, and every grant that it was made from.
#[must_use]
pub fn answer<'v>(
    view: &'v View,
    allowance: &Allowance,
    query: &Query,
    meaning: Option<&Vector>,
    after: Option<Position>,
) -> Answer<'v> {
    let mut ranked = rank(view, query, meaning);
    let best = ranked.first().map_or(0.0, |(rank, _)| match rank {
        Rank::Score(score) => f64::from(*score),
        Rank::Captured(_) => 0.0,
    });
    if let Some(after) = after {
        let place = (after.rank.key(), after.item);
        ranked.retain(|(rank, item)| (rank.key(), item.id) > place);
    }
    let mut room = allowance.room();
    let mut newly_disclosed = Vec::new();
    let mut found = Vec::new();
    let mut next = None;
    let limit = usize::from(query.max_results.unwrap_or(DEFAULT_RESULTS));
    let mut last = None;
    let mut bytes = 0;
    for (rank, item) in ranked {
        if !room.take(item.id) {
            continue;
        }
        bytes += item.size();
        if found.len() == limit || (bytes > MAX_ANSWER && !found.is_empty()) {
            next = last;
            break;
        }
        if !allowance.contains(item.id) {
            newly_disclosed.push(item.id);
        }
        let relevance = match rank {
            Rank::Score(score) => (f64::from(score) / best * 10_000.0).round() / 10_000.0,
            Rank::Captured(_) => 1.0,
        };
        last = Some(Position { rank, item: item.id });
        found.push(Found { item, relevance });
    }
    Answer { found, next, newly_disclosed, integrity: query.integrity }
}

/// The items that a query admits, best first. A condition on a member that is hidden admits nothing.
fn rank<'v>(view: &'v View, query: &Query, meaning: Option<&Vector>) -> Vec<(Rank, &'v ViewItem)> {
    let admitted = view.items().iter().enumerate().filter(|(_, item)| admits(query, item));
    let mut ranked: Vec<(Rank, &ViewItem)> = if query.is_listing() {
        admitted.map(|(_, item)| (Rank::Captured(item.captured_at), item)).collect()
    } else {
        let words = view.index().score(&query.query);
        match meaning.filter(|_| !view.vectors().is_empty()) {
            None => admitted
                .filter(|(number, _)| words[*number] > 0.0)
                .map(|(number, item)| (Rank::Score(words[number]), item))
                .collect(),
            Some(meaning) => {
                let admitted: Vec<_> = admitted.map(|(number, item)| (number, item.id)).collect();
                let nearness: Vec<f32> = view.vectors().iter().map(|v| v.cosine(meaning)).collect();
                let fused = fuse(&admitted, &words, &nearness);
                fused.into_iter().map(|(number, score)| (Rank::Score(score), &view.items()[number])).collect()
            }
        }
    };
    ranked.sort_by_key(|(rank, item)| (rank.key(), item.id));
    ranked
}

fn admits(query: &Query, item: &ViewItem) -> bool {
    query.kinds.as_ref().is_none_or(|kinds| item.kind.is_some_and(|kind| kinds.contains(&kind)))
        && query.labels_any.as_ref().is_none_or(|any| any.iter().any(|label| item.labels.contains(label)))
        && query.min_confidence.is_none_or(|least| item.confidence.is_some_and(|c| c >= least))
}

/// What the whole answer says beside its items.
#[derive(Debug, Clone)]
pub struct Frame<'a> {
    /// The caller's name for the request, or the gateway's.
    pub request_id: &'a RequestId,
    /// The gateway's name for the answer; fresh, so that it salts the output hash.
    pub response_id: &'a RequestId,
    /// The trust level applied.
    pub level: TrustLevel,
    /// The profile applied.
    pub profile: &'a str,
    /// The profile's count of withheld fields at that level.
    pub redacted_field_count: usize,
    /// The lawful basis.
    pub lawful_basis: &'a str,
    /// Where to go on, as the caller gets it.
    pub next_cursor: Option<String>,
}

impl<'v> Answer<'v> {
    /// The items found, in order.
    pub fn items(&self) -> impl ExactSizeIterator<Item = &'v ViewItem> {
        self.found.iter().map(|found| found.item)
    }

    /// The items that were never disclosed under the grant before.
    #[must_use]
    pub fn newly_disclosed(&self) -> &[ItemId] {
        &self.newly_disclosed
    }

    /// Where the next answer begins, if there is more.
    #[must_use]
    pub const fn next(&self) -> Option<Position> {
        self.next
    }

    /// The items as receipts name them.
    #[must_use]
    pub fn tags(&self) -> Vec<String> {
        self.items().map(|item| item_tag(item.id, item.commitment)).collect()
    }

    /// The items as they stand in the answer, in canonical form.
    #[must_use]
    pub fn items_json(&self) -> String {
        let mut out = String::from("[");
        for (number, found) in self.found.iter().enumerate() {
            if number > 0 {
                out.push(',');
            }
            write_item(found, self.integrity, &mut out);
        }
        out.push(']');
        out
    }
}

fn write_item(found: &Found, integrity: Integrity, out: &mut String) {
    let [before, between, after] = &found.item.members;
    out.push('{');
    out.push_str(before);
    out.push_str(r#","integrity":{"#);
    out.push_str(&found.item.chain);
    if integrity == Integrity::Full {
        out.push_str(r#","sd_jwt":""#);
        out.push_str(&found.item.sd_jwt);
        out.push('"');
    }
    out.push_str("},");
    out.push_str(between);
    out.push_str(r#","relevance":"#);
    // Four decimals: short enough to be written alike by every number formatter.
    out.push_str(&found.relevance.to_string());
    out.push(',');
    out.push_str(after);
    out.push('}');
}

/// The hash in the receipt: of `response_id` and the items (protocol section 8).
#[must_use]
pub fn output_hash(items_json: &str, response_id: &RequestId) -> Hash {
    Hash::of(format!(r#"{{"items":{items_json},"response_id":"{response_id}"}}"#).as_bytes())
}

/// The whole answer, signed: bytes in canonical form. It takes the receipt as it was stored, so that there is no
/// answer without one.
///
/// # Errors
/// When the receipt has no canonical form.
pub fn respond(
    items_json: &str,
    frame: &Frame,
    receipt: &Receipt,
    signer: &Signer,
) -> Result<String, JsonError> {
    let projection = json!({
        "trust_level": frame.level, "profile": frame.profile,
        "redacted_field_count": frame.redacted_field_count, "lawful_basis": frame.lawful_basis,
    });
    let mut frame_json = String::with_capacity(2048);
    frame_json.push_str(r#""next_cursor":"#);
    frame_json.push_str(&text(&frame.next_cursor)?);
    frame_json.push_str(r#","projection_applied":"#);
    frame_json.push_str(&text(&projection)?);
    frame_json.push_str(r#","receipt":"#);
    frame_json.push_str(&text(receipt)?);
    let (request, response) = (frame.request_id, frame.response_id);
    frame_json.push_str(&format!(r#","request_id":"{request}","response_id":"{response}""#));
    let signed = format!("{{{frame_json}}}");
    let signature = json!({"alg": "EdDSA", "kid": signer.kid(), "value": signer.sign(signed.as_bytes())});
    let signature = text(&signature)?;
    Ok(format!(r#"{{"items":{items_json},{frame_json},"signature":{signature}}}"#))
}

/// The bytes that an answer's `signature` signs (protocol section 6): its canonical form without `items` and `signature`.
/// The receipt in it binds the items.
///
/// # Errors
/// When the answer has no canonical form.
pub fn answer_bytes(answer: &Value) -> Result<Vec<u8>, JsonError> {
    let mut unsigned = answer.clone();
    if let Some(members) = unsigned.as_object_mut() {
        members.remove("items");
    }
    envelope_bytes(&unsigned)
}

/// The bytes that an envelope's `signature` object signs: its canonical form without `signature`.
///
/// # Errors
/// When the envelope has no canonical form.
pub fn envelope_bytes(envelope: &Value) -> Result<Vec<u8>, JsonError> {
    let mut unsigned = envelope.clone();
    if let Some(members) = unsigned.as_object_mut() {
        members.remove("signature");
    }
    json::canonical(&unsigned)
}

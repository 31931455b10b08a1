//! Documents of a gateway, what reads them, and every way in which one of them is spoiled.

use super::common::*;
use super::formula::Blocks;
use oap_exchange::Query;
use oap_grants::exchange::ExchangeRequest;
use oap_grants::grant::UnverifiedGrant;
use oap_grants::token::TokenClaims;
use oap_identity::json as strict;
use oap_identity::signed::UnverifiedSignature;
use oap_memory::bundle::Line;
use oap_memory::deletion::DeletionReceipt;
use oap_memory::item::{Body, Defaults};
use oap_memory::{Link, Receipt};
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// What reads a document in the program.
pub type Reader = fn(&Value) -> bool;

fn signed(value: &Value) -> bool {
    UnverifiedSignature::of(value).is_ok()
}

fn reads_grant(value: &Value) -> bool {
    signed(value) && UnverifiedGrant::parse(value.clone()).is_ok()
}

fn reads_link(value: &Value) -> bool {
    signed(value) && strict::from_value::<Link>(value.clone()).is_ok()
}

fn reads_query(value: &Value) -> bool {
    strict::from_value::<Query>(value.clone()).is_ok_and(|query| query.check().is_ok())
}

fn reads_deletion(value: &Value) -> bool {
    let mut unsigned = value.clone();
    let signature = unsigned.as_object_mut().and_then(|members| members.remove("signature"));
    signature.is_some_and(|s| s.is_object()) && strict::from_value::<DeletionReceipt>(unsigned).is_ok()
}

fn reads_item(value: &Value) -> bool {
    let (principal, scope) = (PRINCIPAL.parse().unwrap(), "personal".parse().unwrap());
    let now = "2026-05-01T12:00:00Z".parse().unwrap();
    Body::parse(value, &Defaults { principal: &principal, scope: &scope, now }).is_ok()
}

/// A document of a gateway, with its schema.
pub struct Case {
    /// Its schema.
    pub schema: &'static str,
    /// It.
    pub document: Value,
    /// What reads it, where a type of ours does.
    pub reads: Option<Reader>,
    /// Places where anything may stand (beginnings of JSON Pointers).
    open: &'static [&'static str],
    /// Members that may be missing, by their names.
    optional: &'static [&'static str],
}

/// In receipts: decisions are the one open place of the protocol's schema.
const DECISIONS: &str = "/policy_decisions/0";
const OF_RECEIPT: [&str; 6] =
    ["tool_did", "action_id", "input_hash", "output_hash", "policy_decisions", "provenance_tags_out"];

/// The documents of the story of `docs/bytes.md`, and `more`.
pub fn cases(blocks: &Blocks, more: BTreeMap<&'static str, Value>) -> Vec<Case> {
    let block = |name: &str| strict::parse(blocks[name].as_bytes()).unwrap();
    let case = |schema, document, reads, open, optional| Case { schema, document, reads, open, optional };
    let answer = block("answer");
    let item = answer["items"][0].clone();
    let link = item["integrity"]["chain"][1].clone();
    let grant_optional: &'static [&'static str] = &[
        "version",
        "revocable",
        "trust_level",
        "lawful_basis",
        "operations",
        "embedding_access",
        "delegable",
        "bearer",
        "status",
        "labels_any",
        "parent",
    ];
    let mut all = vec![
        case(
            "query",
            block("query"),
            Some(reads_query as Reader),
            &[],
            &["query", "max_results", "request_id"],
        ),
        case(
            "query",
            block("query-as-read"),
            Some(reads_query),
            &[],
            &["query", "max_results", "request_id", "include_embeddings", "integrity"],
        ),
        case("link", link, Some(reads_link), &[], &[]),
        case("grant", block("grant"), Some(reads_grant), &[], grant_optional),
        case("grant", block("child-grant"), Some(reads_grant), &[], grant_optional),
        case(
            "deletion-receipt",
            block("deletion-receipt"),
            Some(reads_deletion),
            &[],
            &["data_classes", "provenance_tags", "subprocessors_propagated_to"],
        ),
        case(
            "grant-token-claims",
            block("token-payload"),
            Some(|v| strict::from_value::<TokenClaims>(v.clone()).is_ok()),
            &[],
            &["cnf"],
        ),
        case(
            "grant-exchange-request",
            more["exchange"].clone(),
            Some(|v| strict::from_value::<ExchangeRequest>(v.clone()).is_ok()),
            &["/grant"],
            &[],
        ),
        case(
            "item-written",
            more["written"].clone(),
            Some(reads_item),
            &["/content", "/provenance"],
            &["labels", "provenance"],
        ),
        case(
            "item",
            item,
            None,
            &["/provenance", "/integrity/capture_receipt/policy_decisions/0", "/content/structured"],
            &[
                "kind",
                "content",
                "text",
                "structured",
                "labels",
                "relevance",
                "epistemic",
                "sd_jwt",
                "tool_did",
                "action_id",
                "output_hash",
                "policy_decisions",
                "provenance_tags_out",
            ],
        ),
        case("answer", answer, None, &["/items/0", "/receipt/policy_decisions/0"], &OF_RECEIPT),
        case("grant-exchange-response", block("exchange-response"), None, &[], &[]),
        case("grant-state", block("state-response"), None, &[], &[]),
        case("ack", block("ack"), None, &[], &[]),
        case("ack-response", block("ack-response"), None, &["/receipt/policy_decisions/0"], &OF_RECEIPT),
        case("bridge", block("bridge"), None, &[], &[]),
        case(
            "memory-manifest",
            block("memory-manifest"),
            None,
            &["/confidentiality/memorization_audit"],
            &["peer", "checkpoint", "witness"],
        ),
        case("scopes", more["scopes"].clone(), None, &[], &[]),
        case("did-document", block("did-document"), None, &[], &[]),
        case("did-document", block("did-document-rotated"), None, &[], &["expires", "revoked"]),
        case("grant-proof-claims", block("grant-proof-payload"), None, &[""], &["grant_hash"]),
        case("dpop-proof-claims", block("dpop-proof-payload"), None, &[""], &[]),
        case("status-list-claims", block("status-list-payload"), None, &[], &[]),
        case("commitment-claims", block("sd-jwt-payload"), None, &[], &[]),
        case("error", more["error"].clone(), None, &[], &[]),
    ];
    for name in blocks.keys().filter(|name| name.starts_with("receipt-")) {
        let reads: Reader = |value| strict::from_value::<Receipt>(value.clone()).is_ok();
        all.push(case("receipt", block(name), Some(reads), &[DECISIONS], &OF_RECEIPT));
    }
    for line in blocks["bundle"].lines() {
        let line = strict::parse(line.as_bytes()).unwrap();
        let reads: Reader = |value| strict::from_value::<Line>(value.clone()).is_ok();
        all.push(case("bundle-line", line, Some(reads), &["/documents", "/item"], &["projected"]));
    }
    all
}

/// Every place of an object or a leaf, as a JSON Pointer.
fn places(value: &Value, at: &str, found: &mut Vec<String>) {
    found.push(at.to_owned());
    match value {
        Value::Object(members) => members.iter().for_each(|(name, value)| {
            places(value, &format!("{at}/{}", name.replace('~', "~0").replace('/', "~1")), found);
        }),
        Value::Array(values) => {
            values.iter().enumerate().for_each(|(n, value)| places(value, &format!("{at}/{n}"), found));
        }
        _ => {}
    }
}

/// What is done to a document, each once: a foreign member in every object, every member taken away, every leaf of another type.
/// With each: whether it stands in an open place, or is the loss of an optional member.
pub fn spoiled(case: &Case) -> Vec<(String, Value, bool)> {
    let mut found = Vec::new();
    places(&case.document, "", &mut found);
    let is_open = |place: &str| case.open.iter().any(|open| place.starts_with(open));
    let mut all = Vec::new();
    for place in found {
        let at = case.document.pointer(&place).unwrap();
        if at.is_object() {
            let mut more = case.document.clone();
            more.pointer_mut(&place).unwrap()["colour"] = json!("red");
            all.push((format!("{place}: a foreign member"), more, is_open(&place)));
        }
        if !place.is_empty() && !at.is_object() && !at.is_array() {
            let mut other = case.document.clone();
            *other.pointer_mut(&place).unwrap() = json!({"colour": ["red"]});
            all.push((format!("{place}: of another type"), other, is_open(&place)));
        }
        let Some((parent, name)) = place.rsplit_once('/') else { continue };
        let mut less = case.document.clone();
        if let Some(members) = less.pointer_mut(parent).and_then(Value::as_object_mut) {
            members.remove(name);
            let optional = case.optional.contains(&name) || is_open(parent) && is_open(&place);
            all.push((format!("{place}: missing"), less, optional));
        }
    }
    all
}

/// Documents that the story does not have.
pub async fn of_a_gateway() -> BTreeMap<&'static str, Value> {
    let world = World::new().await;
    let grant = world.issue(&world.draft(&agent(2))).await;
    let hash = oap_identity::Hash::of_canonical(&grant).unwrap();
    let endpoint = format!("{ORIGIN}/oap/memory/grant");
    let random = oap_identity::random::Seeded::new(5);
    let proof = oap_grants::exchange::prove(&agent(2), &endpoint, hash, world.now(), &random).unwrap();
    let error = world.raw("POST", "/oap/memory/query", &[], Some(&json!({}))).await;
    assert_eq!(error.status, 401);
    let written =
        json!({"kind": "fact", "content": {"text": "x"}, "labels": ["a"], "provenance": {"confidence": 0.5}});
    world.capture(std::slice::from_ref(&written)).await;
    BTreeMap::from([
        ("exchange", json!({"grant": grant, "proof": proof})),
        ("error", error.body),
        ("scopes", world.gateway.published().scopes.clone()),
        ("written", written),
    ])
}

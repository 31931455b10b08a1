//! `schemas/`: a JSON Schema (2020-12) of every document on the wire, generated from our own types.
//!
//! What a gateway makes is valid; what is spoiled in any of its closed places is not; and what a schema takes, our readers can
//! read. `OAP_WRITE_DOCS=1` writes the files anew.

mod documents;
mod parts;

use super::common::*;
use super::formula::Blocks;
use super::maker;
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
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../schemas")
}

/// The names of the parts that a schema refers to, in itself.
fn referred(value: &Value, found: &mut BTreeSet<String>) {
    match value {
        Value::Object(members) => {
            if let Some(name) = members.get("$ref").and_then(Value::as_str) {
                found.insert(name.trim_start_matches("#/$defs/").to_owned());
            }
            members.values().for_each(|value| referred(value, found));
        }
        Value::Array(values) => values.iter().for_each(|value| referred(value, found)),
        _ => {}
    }
}

/// A schema that stands for itself: with its parts, theirs, and so on.
fn whole(name: &str, title: &str, root: Value) -> Value {
    let all = parts::all();
    let mut wanted = BTreeSet::new();
    referred(&root, &mut wanted);
    let mut defs = Map::new();
    while let Some(name) = wanted.pop_first() {
        if !defs.contains_key(&name) {
            let part = all.get(&name).unwrap_or_else(|| panic!("there is no part {name}")).clone();
            referred(&part, &mut wanted);
            defs.insert(name, part);
        }
    }
    let mut schema = json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": format!("urn:oap-memory-gateway:schema:{name}:1"),
        "title": title,
    });
    let members = schema.as_object_mut().unwrap();
    members.extend(root.as_object().unwrap().clone());
    members.insert("$defs".to_owned(), Value::Object(defs));
    schema
}

fn generated() -> BTreeMap<String, Value> {
    let all = documents::all().into_iter();
    all.map(|(name, title, root)| (name.to_owned(), whole(name, title, root))).collect()
}

#[test]
fn the_files_are_what_is_generated() {
    let mut names = BTreeSet::from(["README.md".to_owned()]);
    for (name, schema) in generated() {
        let file = format!("{name}.schema.json");
        // Members in one order, whatever order the crates of this build keep them in.
        let sorted = strict::parse(&strict::canonical(&schema).unwrap()).unwrap();
        let text = serde_json::to_string_pretty(&sorted).unwrap() + "\n";
        let path = folder().join(&file);
        if std::env::var_os("OAP_WRITE_DOCS").is_some() {
            std::fs::write(&path, &text).unwrap();
        }
        let written = std::fs::read_to_string(&path).unwrap_or_default();
        assert!(written == text, "{file}: OAP_WRITE_DOCS=1 writes it anew");
        let page = std::fs::read_to_string(folder().join("README.md")).unwrap();
        assert!(page.contains(&format!("`{file}`")), "schemas/README.md names {file}");
        names.insert(file);
    }
    let there =
        std::fs::read_dir(folder()).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    assert_eq!(there.collect::<BTreeSet<_>>(), names);
}

/// What reads a document in the program.
type Reader = fn(&Value) -> bool;

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
struct Case {
    schema: &'static str,
    document: Value,
    /// What reads it, where a type of ours does.
    reads: Option<Reader>,
    /// Places where anything may stand (beginnings of JSON Pointers).
    open: &'static [&'static str],
    /// Members that may be missing, by their names.
    optional: &'static [&'static str],
}

/// In receipts: decisions are the one open place of the protocol's schema.
const DECISIONS: &str = "/policy_decisions/0";
const OF_RECEIPT: [&str; 6] =
    ["tool_did", "action_id", "input_hash", "output_hash", "policy_decisions", "provenance_tags_out"];

fn cases(blocks: &Blocks, more: BTreeMap<&'static str, Value>) -> Vec<Case> {
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
            &[],
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
fn spoiled(case: &Case) -> Vec<(String, Value, bool)> {
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

async fn of_a_gateway() -> BTreeMap<&'static str, Value> {
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

#[tokio::test]
async fn what_a_gateway_makes_is_valid_and_what_is_spoiled_is_not() {
    let schemas = generated();
    let validators: BTreeMap<&str, jsonschema::Validator> = schemas
        .iter()
        .map(|(name, schema)| (name.as_str(), jsonschema::validator_for(schema).unwrap()))
        .collect();
    let cases = cases(&maker::blocks().await, of_a_gateway().await);
    let mut wrong = Vec::new();
    let mut used = BTreeSet::new();
    let mut refused = 0;
    for case in &cases {
        let validator = &validators[case.schema];
        used.insert(case.schema);
        let errors: Vec<String> =
            validator.iter_errors(&case.document).map(|e| format!("{}: {e}", e.instance_path())).collect();
        assert!(errors.is_empty(), "{}: {errors:?}: {}", case.schema, case.document);
        assert!(case.reads.is_none_or(|reads| reads(&case.document)), "{}: {}", case.schema, case.document);
        for (what, document, may_stand) in spoiled(case) {
            let valid = validator.is_valid(&document);
            refused += usize::from(!valid);
            if valid && !may_stand {
                wrong.push(format!("{} takes {what}", case.schema));
            }
            if valid && case.reads.is_some_and(|reads| !reads(&document)) {
                wrong.push(format!("{} takes what is not read: {what}", case.schema));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(refused > 1000, "{refused}");
    assert_eq!(used, validators.keys().copied().collect(), "a schema that nothing is compared with");
}

/// Each refusal that a stranger can provoke has the form of an error, and one of its codes.
#[tokio::test]
async fn refusals_are_errors_of_the_schema() {
    let world = World::new().await;
    let validator = jsonschema::validator_for(&generated()["error"]).unwrap();
    for (method, path, code) in [
        ("POST", "/oap/memory/grant", "invalid_input"),
        ("POST", "/oap/memory/query", "auth_required"),
        ("GET", "/oap/memory/grant/x", "not_found"),
        ("PUT", "/oap/memory/query", "method_not_allowed"),
        ("GET", "/nowhere", "not_found"),
    ] {
        let body = (method == "POST").then(|| json!({}));
        let answer = world.raw(method, path, &[], body.as_ref()).await;
        assert_eq!(answer.body["error"], code, "{path}");
        assert!(validator.is_valid(&answer.body), "{}", answer.body);
    }
}

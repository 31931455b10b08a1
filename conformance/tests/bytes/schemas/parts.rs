//! What several documents are made of: the `$defs` of the schemas. Closed lists and bounds are those of our own types.

use oap_grants::grant::LawfulBasis;
use oap_identity::did::MAX_DID;
use oap_memory::chain::{Event, MAX_LINKS};
use oap_memory::epistemic::Epistemic;
use oap_memory::item::{Kind, MAX_LABELS, MAX_SHORT, MAX_TEXT, MAX_TTL_DAYS, Sensitivity};
use oap_memory::receipt::{Action, Outcome, ReceiptType};
use oap_memory::record::{Status, Tier, Visibility};
use serde_json::{Map, Value, json};

const ULID: &str = "[0-7][0-9A-HJKMNP-TV-Z]{25}";
const DID: &str = "did:[a-z0-9]+:[A-Za-z0-9._:%-]+";
const HASH: &str = "sha256:[0-9a-f]{64}";
const BASE64: &str = "[A-Za-z0-9_-]+";

/// An object of these members and no others.
pub fn closed(required: &[&str], members: Value) -> Value {
    json!({"type": "object", "required": required, "additionalProperties": false, "properties": members})
}

/// An object of these members, and whatever else.
pub fn open(required: &[&str], members: Value) -> Value {
    json!({"type": "object", "required": required, "properties": members})
}

/// The part of a name.
pub fn part(name: &str) -> Value {
    json!({"$ref": format!("#/$defs/{name}")})
}

/// A list of such parts.
pub fn list(of: Value) -> Value {
    json!({"type": "array", "items": of})
}

/// One of the texts of a closed list.
pub fn one_of(texts: impl IntoIterator<Item = &'static str>) -> Value {
    json!({"enum": texts.into_iter().collect::<Vec<_>>()})
}

fn pattern(pattern: String) -> Value {
    json!({"type": "string", "pattern": format!("^(?:{pattern})$")})
}

fn text(most: usize) -> Value {
    json!({"type": "string", "maxLength": most})
}

/// Every part, by name.
pub fn all() -> Map<String, Value> {
    let mut parts = Map::new();
    for some in [simple(), words(), of_items(), of_receipts()] {
        let Value::Object(some) = some else { unreachable!() };
        parts.extend(some);
    }
    parts
}

fn simple() -> Value {
    let id = |prefix: &str| pattern(format!("{prefix}{ULID}"));
    json!({
        "item_id": id("mem_"), "grant_id": id("mgr_"), "receipt_id": id("urn:oap:receipt:"),
        "short_receipt_id": id("rec_"), "deletion_id": id("urn:oap:deletion:"), "decision_id": id("pol_"),
        "bundle_id": id("bdl_"), "bridge_id": id("brg_"),
        "request_id": pattern("[0-9A-HJKMNP-TV-Z]{26}".to_owned()),
        "did": {"type": "string", "pattern": format!("^{DID}$"), "maxLength": MAX_DID},
        "scoped_did": pattern(format!("{DID}#[A-Za-z0-9._~-]{{1,64}}")),
        "kid": pattern(format!("{DID}#[A-Za-z0-9._~-]+")),
        "scope": {"type": "string", "pattern": "^[A-Za-z0-9._~-]{1,64}$", "not": {"pattern": "^key-"}},
        "hash": pattern(HASH.to_owned()),
        "previous": pattern(format!("genesis|{HASH}")),
        "tag": pattern(format!("mem_{ULID}@{HASH}")),
        "time": pattern(r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]+)?Z".to_owned()),
        "day": pattern("[0-9]{4}-[0-9]{2}-[0-9]{2}".to_owned()),
        "seconds": {"type": "integer"},
        "count": {"type": "integer", "minimum": 0},
        "url": pattern("https?://[^ ]+".to_owned()),
        "base64url": pattern(BASE64.to_owned()),
        "jws_detached": pattern(format!(r"{BASE64}\.\.[A-Za-z0-9_-]{{86}}")),
        "jwt": pattern(format!(r"{BASE64}\.{BASE64}\.[A-Za-z0-9_-]{{86}}")),
        "sd_jwt": pattern(format!(r"{BASE64}\.{BASE64}\.[A-Za-z0-9_-]{{86}}~({BASE64}~)*")),
        "profile_name": pattern(r"oap\.profile\.projection\..+\.v[0-9]+".to_owned()),
        "label": {"type": "string", "minLength": 1, "maxLength": MAX_SHORT},
        "confidence": {"type": "number", "minimum": 0, "maximum": 1},
        "trust_level": {"type": "integer", "minimum": 0, "maximum": 4},
    })
}

fn words() -> Value {
    json!({
        "kind": one_of(Kind::ALL.iter().map(|v| v.as_str())),
        "sensitivity": one_of(Sensitivity::ALL.iter().map(|v| v.as_str())),
        "status": one_of(Status::ALL.iter().map(|v| v.as_str())),
        "event": one_of(Event::ALL.iter().map(|v| v.as_str())),
        "epistemic": one_of(Epistemic::ALL.iter().map(|v| v.as_str())),
        "outcome": one_of(Outcome::ALL.iter().map(|v| v.as_str())),
        "lawful_basis": one_of(LawfulBasis::ALL.iter().map(|v| v.as_str())),
    })
}

/// The members that an item's owner writes.
pub fn written() -> Map<String, Value> {
    let members = json!({
        "scope_id": part("scope"), "kind": part("kind"),
        "subject_entity_id": {"type": "string", "minLength": 1, "maxLength": MAX_SHORT},
        "content": closed(&[], json!({"text": text(MAX_TEXT), "structured": {"type": "object"}})),
        "embedding": {"type": "object"},
        "labels": {"type": "array", "items": part("label"), "maxItems": MAX_LABELS},
        "ttl_days": {"type": "integer", "minimum": 1, "maximum": MAX_TTL_DAYS},
        "expires_at": part("time"), "exportable": {"type": "boolean"}, "sensitivity": part("sensitivity"),
        "derived_from": list(part("item_id")), "extensions": {"type": "object"},
    });
    let Value::Object(members) = members else { unreachable!() };
    members
}

fn of_items() -> Value {
    let mut item = written();
    let more = json!({
        "item_id": part("item_id"), "owner_did": part("did"),
        "version": {"type": "integer", "minimum": 1}, "status": part("status"),
        "provenance": open(&["source_receipt"], json!({
            "source_receipt": part("short_receipt_id"), "captured_at": part("time"), "confidence": part("confidence"),
        })),
        "relevance": {"type": "number", "minimum": 0, "maximum": 1}, "epistemic": part("epistemic"),
        "embedding_ref": closed(&["model", "dimensions", "vector_url"], json!({
            "model": {"type": "string"}, "dimensions": part("count"), "vector_url": part("url"),
        })),
        "integrity": closed(&["chain", "capture_receipt"], json!({
            "sd_jwt": part("sd_jwt"), "capture_receipt": part("receipt"),
            "chain": {"type": "array", "items": part("link"), "minItems": 1, "maxItems": MAX_LINKS},
        })),
    });
    let Value::Object(more) = more else { unreachable!() };
    item.extend(more);
    json!({
        "item": closed(
            &["item_id", "owner_did", "version", "status", "provenance", "integrity"], Value::Object(item),
        ),
        "link": closed(
            &["item_id", "seq", "event", "at", "actor", "commitment", "prev", "receipt", "signature"],
            json!({
                "item_id": part("item_id"), "seq": part("count"), "event": part("event"), "at": part("time"),
                "actor": part("did"), "commitment": part("hash"), "prev": part("previous"),
                "receipt": part("receipt_id"), "signature": part("jws_detached"),
            }),
        ),
        "record": closed(
            &["author", "tier", "visibility", "human_verified", "needs_verification", "namespace", "key"],
            json!({
                "author": part("did"), "tier": one_of(Tier::ALL.iter().map(|v| v.as_str())),
                "visibility": one_of(Visibility::ALL.iter().map(|v| v.as_str())),
                "human_verified": {"type": "boolean"}, "needs_verification": {"type": "boolean"},
                "namespace": {"type": ["string", "null"]}, "key": {"type": ["string", "null"]},
                "private_to": part("did"),
            }),
        ),
    })
}

fn of_receipts() -> Value {
    let signature = |by: &str| {
        closed(
            &[by, "alg", "value"],
            json!({
                by: part("kid"), "alg": {"const": "EdDSA"},
                "value": {"type": "string", "pattern": "^[A-Za-z0-9_-]{86}$"},
            }),
        )
    };
    let signed = json!({"properties": {"signatures": {"minItems": 1}}});
    // One that another receipt of its group follows stands without a signature (protocol section 8).
    let is_head = json!({"properties": {"action_id": {"const": Action::ChainHead.as_str()}}, "required": ["action_id"]});
    let mut receipt = closed(
        &[
            "receipt_id",
            "type",
            "timestamp",
            "principal_did",
            "agent_did",
            "previous_receipt_hash",
            "signatures",
        ],
        json!({
            "receipt_id": part("receipt_id"), "type": one_of(ReceiptType::ALL.iter().map(|v| v.as_str())),
            "timestamp": part("time"), "principal_did": part("did"),
            "agent_did": {"anyOf": [part("did"), pattern("hmac-sha256:[A-Za-z0-9_-]{43}".to_owned())]},
            "tool_did": part("did"), "action_id": {"type": "string"}, "input_hash": part("hash"),
            "output_hash": part("hash"), "policy_decisions": list(part("decision")),
            "provenance_tags_out": list(part("tag")), "previous_receipt_hash": part("previous"),
            "anchors": list(closed(&[], json!({
                "log_id": {"type": "string"}, "log_index": {"type": "integer"}, "inclusion_proof": {"type": "string"},
            }))),
            "signatures": {"type": "array", "items": part("receipt_signature"), "maxItems": 2},
        }),
    );
    receipt["if"] = is_head;
    receipt["else"] = signed;
    json!({
        "envelope_signature": signature("kid"),
        "receipt_signature": signature("by"),
        "decision": open(&["id", "outcome", "rules"], json!({
            "id": part("decision_id"), "outcome": part("outcome"), "rules": list(json!({"type": "string"})),
            "consumed_grant_id": part("grant_id"), "grant_hash": part("hash"), "scope_id": part("scope"),
            "trust_level": part("trust_level"), "profile": part("profile_name"), "profile_hash": part("hash"),
            "lawful_basis": part("lawful_basis"), "delegation": list(part("hash")), "purpose": {"type": "string"},
            "chain": {"type": "string"}, "length": part("count"),
        })),
        "receipt": receipt,
    })
}

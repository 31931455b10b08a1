//! The documents on the wire, one schema each.

use super::parts::{closed, list, one_of, open, part, written};
use super::tokens;
use oap_exchange::query::{MAX_CURSOR, MAX_QUERY};
use oap_grants::grant::MAX_PURPOSE;
use oap_grants::limits::{MAX_DEPTH, MAX_PURPOSE_CODE, MAX_PURPOSE_CODES};
use oap_memory::answer::MAX_RESULTS;
use oap_memory::bundle::FORMAT;
use oap_memory::deletion::{HoldReason, Method};
use oap_memory::filter::MAX_LIST;
use serde_json::{Value, json};

/// A schema: the file's name without its ending, what it is of, and the schema without its parts.
pub type Schema = (&'static str, &'static str, Value);

/// Every schema that is published.
pub fn all() -> Vec<Schema> {
    let mut all = vec![
        ("item", "A memory item as it is returned, with its proofs (section 4)", part("item")),
        ("item-written", "A memory item as its owner writes it (section 4)", item_written()),
        ("link", "A link of an item's chain (section 4.2)", part("link")),
        ("receipt", "A receipt as this gateway writes it (section 8)", part("receipt")),
        ("deletion-receipt", "A Deletion Receipt (section 8)", deletion_receipt()),
        ("grant", "A signed grant (section 5)", grant()),
        ("bridge", "A signed Cross Scope Bridge (section 7)", bridge()),
        ("query", "A query (section 6)", query()),
        ("answer", "The answer to a query (section 6)", answer()),
        ("error", "What a refused request is answered (section 1)", error()),
        ("memory-manifest", "The memory manifest (section 3)", memory_manifest()),
        ("scopes", "The scope manifest (section 3)", scopes()),
        ("did-document", "The DID document as this gateway publishes it (section 2)", did_document()),
        ("bundle-line", "One line of a bundle, oap-memory-bundle/1 (section 8)", bundle_line()),
    ];
    all.extend(tokens::exchange());
    all.extend(tokens::claims());
    all
}

fn item_written() -> Value {
    let mut members = written();
    members.insert("owner_did".to_owned(), part("did"));
    // One of the two, and not empty.
    members["content"]["anyOf"] = json!([
        {"required": ["text"], "properties": {"text": {"minLength": 1}}},
        {"required": ["structured"], "properties": {"structured": {"minProperties": 1}}},
    ]);
    let provenance = json!({"captured_at": part("time"), "confidence": part("confidence")});
    let mut provenance = open(&[], provenance);
    provenance["not"] = json!({"required": ["source_receipt"]});
    members.insert("provenance".to_owned(), provenance);
    closed(&["kind", "content"], Value::Object(members))
}

fn deletion_receipt() -> Value {
    let items = || list(part("item_id"));
    closed(
        &[
            "receipt_id",
            "tool_did",
            "principal_did",
            "request_received_at",
            "completed_at",
            "method",
            "scope",
            "signature",
        ],
        json!({
            "receipt_id": part("deletion_id"), "tool_did": part("did"), "principal_did": part("did"),
            "scope_id": part("scope"), "request_received_at": part("time"), "completed_at": part("time"),
            "method": one_of(Method::ALL.iter().map(|v| v.as_str())),
            "scope": closed(&["items", "cascade"], json!({
                "data_classes": list(json!({"type": "string"})), "provenance_tags": list(json!({"type": "string"})),
                "subprocessors_propagated_to": list(json!({"type": "string"})), "items": list(part("tag")),
                "cascade": closed(
                    &["named", "derived", "held", "not_found", "grants_shrunk", "remaining"],
                    json!({
                        "named": items(), "derived": items(), "held": items(), "not_found": items(),
                        "grants_shrunk": list(part("grant_id")), "remaining": part("count"),
                    }),
                ),
            })),
            "exceptions": list(closed(&["reason", "retention_until"], json!({
                "reason": one_of(HoldReason::ALL.iter().map(|v| v.as_str())), "retention_until": part("day"),
            }))),
            "signature": part("envelope_signature"),
        }),
    )
}

fn bounded(of: Value) -> Value {
    json!({"type": "array", "items": of, "maxItems": MAX_LIST})
}

pub fn status() -> Value {
    closed(
        &["status_list"],
        json!({
            "status_list": closed(&["idx", "uri"], json!({"idx": part("count"), "uri": {"type": "string"}})),
        }),
    )
}

fn grant() -> Value {
    let yes = || json!({"type": "boolean"});
    closed(
        &[
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
        ],
        json!({
            "version": {"const": 1}, "grant_id": part("grant_id"), "granter": part("scoped_did"), "grantee": part("did"),
            "purpose": {"type": "string", "minLength": 1, "maxLength": MAX_PURPOSE},
            "purpose_codes": {
                "type": "array", "maxItems": MAX_PURPOSE_CODES,
                "items": {"type": "string", "pattern": "^[a-z0-9_.-]+$", "maxLength": MAX_PURPOSE_CODE},
            },
            "filter": closed(&[], json!({
                "scopes": bounded(part("scope")), "subject_entity_ids": bounded(json!({"type": "string"})),
                "kinds": bounded(part("kind")), "labels_any": bounded(json!({"type": "string"})),
                "labels_all": bounded(json!({"type": "string"})), "exclude_labels": bounded(json!({"type": "string"})),
                "captured_after": part("time"), "captured_before": part("time"),
                "min_confidence": part("confidence"), "sensitivities": bounded(part("sensitivity")),
            })),
            "max_items": {"type": "integer", "minimum": 1}, "issued_at": part("time"), "not_before": part("time"),
            "expires_at": part("time"), "revocable": {"const": true}, "redaction_profile": part("profile_name"),
            "trust_level": part("trust_level"), "lawful_basis": part("lawful_basis"),
            "operations": {
                "type": "array", "items": {"enum": ["query", "export", "subscribe"]}, "minItems": 1, "uniqueItems": true,
            },
            "embedding_access": yes(),
            "delegable": closed(&["max_depth"], json!({
                "max_depth": {"type": "integer", "minimum": 1, "maximum": MAX_DEPTH},
            })),
            "parent": part("hash"),
            "budget": closed(&[], json!({
                "queries": {"type": "integer", "minimum": 1}, "epsilon": {"type": "number", "exclusiveMinimum": 0},
            })),
            "bearer": yes(), "status": status(), "signature": part("jws_detached"),
        }),
    )
}

fn bridge() -> Value {
    let members = [
        "bridge_id",
        "principal",
        "from_scope",
        "to_scope",
        "data_categories",
        "issued_at",
        "valid_until",
        "revocable",
        "signature",
    ];
    closed(
        &members,
        json!({
            "bridge_id": part("bridge_id"), "principal": part("did"), "from_scope": part("scope"), "to_scope": part("scope"),
            "data_categories": {"type": "array", "items": {"type": "string"}, "minItems": 1},
            "issued_at": part("time"), "valid_until": part("time"), "revocable": {"const": true},
            "signature": part("jws_detached"),
        }),
    )
}

fn query() -> Value {
    let or_null = |of: Value| json!({"anyOf": [of, {"type": "null"}]});
    closed(
        &[],
        json!({
            "query": {"type": "string", "maxLength": MAX_QUERY},
            "max_results": or_null(json!({"type": "integer", "minimum": 1, "maximum": MAX_RESULTS})),
            "include_embeddings": {"type": "boolean"}, "kinds": or_null(bounded(part("kind"))),
            "labels_any": or_null(bounded(json!({"type": "string"}))), "min_confidence": or_null(part("confidence")),
            "cursor": or_null(json!({"type": "string", "maxLength": MAX_CURSOR})), "integrity": {"enum": ["full", "chain"]},
            "purpose": or_null(json!({"type": "string", "maxLength": MAX_PURPOSE_CODE})),
            "request_id": or_null(part("request_id")),
        }),
    )
}

fn answer() -> Value {
    let members =
        ["request_id", "response_id", "items", "projection_applied", "next_cursor", "receipt", "signature"];
    closed(
        &members,
        json!({
            "request_id": part("request_id"), "response_id": part("request_id"),
            "items": {
                "type": "array", "maxItems": MAX_RESULTS,
                "items": {"allOf": [part("item"), {"required": ["relevance", "epistemic"]}]},
            },
            "projection_applied": closed(&["trust_level", "profile", "redacted_field_count", "lawful_basis"], json!({
                "trust_level": part("trust_level"), "profile": part("profile_name"),
                "redacted_field_count": part("count"), "lawful_basis": part("lawful_basis"),
            })),
            "next_cursor": {"type": ["string", "null"], "maxLength": MAX_CURSOR},
            "receipt": part("receipt"), "signature": part("envelope_signature"),
        }),
    )
}

/// The codes of `gateway/src/http/error.rs`.
const CODES: [&str; 12] = [
    "invalid_input",
    "auth_required",
    "policy_block",
    "not_found",
    "method_not_allowed",
    "conflict",
    "too_large",
    "rate_limited",
    "budget_exhausted",
    "internal_error",
    "maintenance",
    "storage_full",
];

fn error() -> Value {
    closed(
        &["error", "message", "request_id"],
        json!({
            "error": one_of(CODES), "message": {"type": "string"}, "request_id": part("request_id"),
        }),
    )
}

fn memory_manifest() -> Value {
    let profiles = || list(part("profile_name"));
    closed(
        &[
            "principal",
            "scopes",
            "embedding_profiles",
            "kinds_supported",
            "endpoints",
            "max_grant_size_items",
            "belief_threshold",
            "memory_exchange",
            "projections",
            "confidentiality",
            "formats",
            "tool_manifest",
            "published_at",
            "signature",
        ],
        json!({
            "principal": part("did"), "scopes": list(part("scope")),
            "embedding_profiles": list(closed(&["model", "dimensions"], json!({
                "model": {"type": "string"}, "dimensions": part("count"),
            }))),
            "kinds_supported": list(part("kind")),
            "endpoints": closed(&["query", "grant", "export", "revocation"], json!({
                "query": part("url"), "grant": part("url"), "export": part("url"), "revocation": part("url"),
                "peer": part("url"), "checkpoint": part("url"), "witness": part("url"),
            })),
            "max_grant_size_items": part("count"), "belief_threshold": part("confidence"),
            "memory_exchange": closed(
                &["supported", "max_grant_duration_days", "max_grant_size_items", "supported_redaction_profiles"],
                json!({
                    "supported": {"const": true}, "max_grant_duration_days": part("count"),
                    "max_grant_size_items": part("count"), "supported_redaction_profiles": profiles(),
                }),
            ),
            "projections": closed(
                &["supported", "default_trust_level_for_unknown_did", "supported_profiles", "trust_evidence_accepted"],
                json!({
                    "supported": {"const": true}, "default_trust_level_for_unknown_did": part("trust_level"),
                    "supported_profiles": profiles(), "trust_evidence_accepted": list(json!({"type": "string"})),
                }),
            ),
            "confidentiality": closed(&["memorization_audit"], json!({
                "memorization_audit": open(&["status"], json!({"status": {"enum": ["not_performed", "passed", "failed"]}})),
            })),
            "formats": list(json!({"type": "string"})),
            "tool_manifest": closed(&["uri", "hash"], json!({"uri": part("url"), "hash": part("hash")})),
            "published_at": part("time"), "signature": part("jws_detached"),
        }),
    )
}

fn scopes() -> Value {
    closed(
        &["principal", "scopes", "published_at", "signature"],
        json!({
            "principal": part("did"), "scopes": list(closed(&["id"], json!({"id": part("scope")}))),
            "published_at": part("time"), "signature": part("jws_detached"),
        }),
    )
}

fn did_document() -> Value {
    let key = |curve: &str| {
        closed(
            &["id", "type", "controller", "publicKeyJwk"],
            json!({
                "id": part("kid"), "type": {"const": "JsonWebKey2020"}, "controller": part("did"),
                "publicKeyJwk": closed(&["kty", "crv", "x"], json!({
                    "kty": {"const": "OKP"}, "crv": {"const": curve}, "x": {"type": "string", "pattern": "^[A-Za-z0-9_-]{43}$"},
                })),
                "expires": part("time"), "revoked": part("time"),
            }),
        )
    };
    let members = [
        "@context",
        "id",
        "verificationMethod",
        "authentication",
        "assertionMethod",
        "keyAgreement",
        "service",
    ];
    closed(
        &members,
        json!({
            "@context": list(part("url")), "id": part("did"),
            "verificationMethod": {"type": "array", "items": key("Ed25519"), "minItems": 1},
            "authentication": list(part("kid")), "assertionMethod": list(part("kid")), "keyAgreement": list(key("X25519")),
            "service": list(closed(&["id", "type", "serviceEndpoint"], json!({
                "id": part("kid"), "serviceEndpoint": part("url"),
                "type": {"enum": ["OAPInvocationEndpoint", "OAPRevocationStatus", "OAPMemoryExchange"]},
            }))),
        }),
    )
}

fn bundle_line() -> Value {
    let line = |name: &str, required: &[&str], mut members: Value| {
        members["type"] = json!({"const": name});
        closed(&[&["type"], required].concat(), members)
    };
    let header = line(
        "header",
        &["format", "bundle_id", "principal", "scopes", "created_at", "items", "documents"],
        json!({
            "format": {"const": FORMAT}, "bundle_id": part("bundle_id"), "principal": part("did"),
            "scopes": list(part("scope")), "created_at": part("time"), "items": part("count"),
            "projected": closed(&["grant_id", "profile", "trust_level", "grantee"], json!({
                "grant_id": part("grant_id"), "profile": part("profile_name"), "trust_level": part("trust_level"),
                "grantee": part("did"),
            })),
            "documents": list(open(&["id"], json!({"id": part("did")}))),
        }),
    );
    let item = line(
        "item",
        &["item"],
        json!({
            "item": {"allOf": [part("item"), {"properties": {"integrity": {"required": ["sd_jwt"]}}}]},
            "record": part("record"), "superseded": list(part("sd_jwt")),
        }),
    );
    let trailer = line(
        "trailer",
        &["bundle_id", "counts", "lines", "hash", "finished_at", "signature"],
        json!({
            "bundle_id": part("bundle_id"), "lines": part("count"), "hash": part("hash"), "finished_at": part("time"),
            "counts": closed(&["items", "grants", "receipts"], json!({
                "items": part("count"), "grants": part("count"), "receipts": part("count"),
            })),
            "signature": part("jws_detached"),
        }),
    );
    let lines = [
        header,
        item,
        line(
            "grant",
            &["grant"],
            json!({"grant": open(&["grant_id", "signature"], json!({"grant_id": part("grant_id")}))}),
        ),
        line("receipt", &["receipt"], json!({"receipt": part("receipt")})),
        trailer,
    ];
    json!({"type": "object", "oneOf": lines})
}

//! From a grant to a token and back to a joint receipt: requests, answers, and the claims of every JWT.

use super::documents::{Schema, status};
use super::parts::{closed, open, part};
use oap_grants::exchange::{MAX_CHAIN, MAX_JTI};
use oap_memory::form::CLEAR;
use oap_memory::sd_jwt::ROOT_DIGESTS;
use serde_json::json;

/// The exchange, the state of a grant, the countersignature.
pub fn exchange() -> [Schema; 5] {
    let grant = || open(&["grant_id", "signature"], json!({"grant_id": part("grant_id")}));
    let request = closed(
        &["grant", "proof"],
        json!({
            "grant": grant(), "proof": part("jwt"),
            "chain": {"type": "array", "items": grant(), "maxItems": MAX_CHAIN - 1},
        }),
    );
    let response = closed(
        &["memory_grant_jwt", "expires_in", "token_type", "receipt_id"],
        json!({
            "memory_grant_jwt": part("jwt"), "expires_in": part("count"), "token_type": {"enum": ["DPoP", "Bearer"]},
            "receipt_id": part("receipt_id"), "status": status(),
        }),
    );
    let state = closed(
        &["grant_id", "state"],
        json!({
            "grant_id": part("grant_id"), "state": {"enum": ["draft", "active", "expired", "revoked"]},
        }),
    );
    let ack = closed(
        &["receipt_id", "signature"],
        json!({
            "receipt_id": part("receipt_id"), "signature": part("receipt_signature"),
        }),
    );
    let joint = closed(&["receipt"], json!({"receipt": part("receipt")}));
    [
        ("grant-exchange-request", "A grant is exchanged for a token (section 5.1)", request),
        ("grant-exchange-response", "The token (section 5.1)", response),
        ("grant-state", "The state of a grant (section 5.1)", state),
        ("ack", "A grantee's countersignature (section 8)", ack),
        ("ack-response", "The joint receipt (section 8)", joint),
    ]
}

/// The claims of JWTs.
pub fn claims() -> [Schema; 5] {
    let jti = || json!({"type": "string", "minLength": 1, "maxLength": MAX_JTI});
    let proof = open(
        &["iss", "sub", "aud", "jti", "iat", "exp"],
        json!({
            "iss": part("did"), "sub": part("did"), "aud": part("url"), "jti": jti(), "iat": part("seconds"),
            "exp": part("seconds"), "grant_hash": part("hash"),
        }),
    );
    let dpop = open(
        &["jti", "htm", "htu", "iat", "ath"],
        json!({
            "jti": jti(), "htm": {"type": "string"}, "htu": part("url"), "iat": part("seconds"), "ath": part("base64url"),
        }),
    );
    let token = closed(
        &["iss", "sub", "aud", "iat", "nbf", "exp", "jti", "grant_id", "grant_hash", "oap_scope"],
        json!({
            "iss": part("did"), "sub": part("did"), "aud": part("url"), "iat": part("seconds"), "nbf": part("seconds"),
            "exp": part("seconds"), "jti": jti(), "grant_id": part("grant_id"), "grant_hash": part("hash"),
            "oap_scope": part("scope"), "cnf": closed(&["jkt"], json!({"jkt": part("base64url")})),
        }),
    );
    let list_claims = closed(
        &["iss", "sub", "iat", "exp", "ttl", "status_list"],
        json!({
            "iss": part("did"), "sub": part("url"), "iat": part("seconds"), "exp": part("seconds"), "ttl": part("seconds"),
            "status_list": closed(&["bits", "lst"], json!({"bits": {"const": 1}, "lst": part("base64url")})),
        }),
    );
    let mut sd_jwt = json!({
        "iss": part("did"), "iat": part("seconds"), "item_id": part("item_id"), "seq": part("count"),
        "event": part("event"), "prev": part("previous"), "receipt": part("short_receipt_id"),
        "_sd_alg": {"const": "sha-256"},
    });
    sd_jwt["_sd"] = json!({
        "type": "array", "items": {"type": "string", "pattern": "^[A-Za-z0-9_-]{43}$"},
        "minItems": ROOT_DIGESTS,
    });
    let sd_jwt = closed(&[&CLEAR[..], &["_sd", "_sd_alg"]].concat(), sd_jwt);
    [
        (
            "grant-proof-claims",
            "The claims of a grantee's proof, typ oap-grant-proof+jwt (section 5.1)",
            proof,
        ),
        ("dpop-proof-claims", "The claims of a DPoP proof (section 5.1)", dpop),
        ("grant-token-claims", "The claims of a token, typ oap-memory-grant+jwt (section 5.1)", token),
        ("status-list-claims", "The claims of the status list (section 5)", list_claims),
        ("commitment-claims", "The claims of an item's SD-JWT, disclosures aside (section 4.1)", sd_jwt),
    ]
}

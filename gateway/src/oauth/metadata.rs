//! What the gateway says of itself to clients: as a resource (RFC 9728), and as what issues the tokens for it (RFC 8414).

use super::{AUTHORIZE, RESOURCE, RESOURCE_METADATA, REVOKE, TOKEN, USUAL, scopes};
use oap_client::Permission;
use serde_json::{Value, json};

fn list(permission: Permission) -> Vec<String> {
    scopes(permission).split(' ').map(ToOwned::to_owned).collect()
}

/// The protected resource: `/mcp` of the gateway at `origin`.
#[must_use]
pub fn resource(origin: &str) -> Value {
    json!({
        "resource": format!("{origin}{RESOURCE}"),
        "resource_name": "OAP memory",
        "authorization_servers": [origin],
        "scopes_supported": list(USUAL),
        "bearer_methods_supported": ["header"],
        "dpop_signing_alg_values_supported": ["EdDSA"],
    })
}

/// The authorization server, whose issuer is `origin`.
#[must_use]
pub fn server(origin: &str) -> Value {
    json!({
        "issuer": origin,
        "authorization_endpoint": format!("{origin}{AUTHORIZE}"),
        "token_endpoint": format!("{origin}{TOKEN}"),
        "revocation_endpoint": format!("{origin}{REVOKE}"),
        "scopes_supported": list(Permission::Admin),
        "response_types_supported": ["code"],
        "response_modes_supported": ["query"],
        "grant_types_supported": ["authorization_code", "refresh_token"],
        "token_endpoint_auth_methods_supported": ["none"],
        "revocation_endpoint_auth_methods_supported": ["none"],
        "code_challenge_methods_supported": ["S256"],
        "dpop_signing_alg_values_supported": ["EdDSA"],
        "authorization_response_iss_parameter_supported": true,
        "client_id_metadata_document_supported": true,
    })
}

/// What a request to `/mcp` without a token that counts is told (RFC 6750 section 3, RFC 9449 section 7.1, RFC 9728 section 5.1), for a
/// scheme. `error` is the code, where a credential of that scheme came along.
#[must_use]
pub fn challenge(scheme: &str, origin: &str, error: Option<&str>, needed: Permission) -> String {
    let error = error.map(|code| format!("error=\"{code}\", ")).unwrap_or_default();
    let scope = scopes(needed);
    format!("{scheme} {error}resource_metadata=\"{origin}{RESOURCE_METADATA}\", scope=\"{scope}\"")
}

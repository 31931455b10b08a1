//! did:jwk: a DID that is its own key, as a JSON Web Key in base64url. Pure.

use super::ResolveError;
use crate::did::Did;
use crate::document::{DidDocument, VerificationKey};
use crate::json;
use crate::jwk::PublicKey;
use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};

/// The Ed25519 key that a did:jwk is; `None` for a key of another kind, a private one, or no JWK.
pub(crate) fn key(did: &Did) -> Option<PublicKey> {
    let encoded = did.as_str().strip_prefix("did:jwk:")?;
    let jwk = json::parse(&URL_SAFE_NO_PAD.decode(encoded).ok()?).ok()?;
    PublicKey::from_jwk(&jwk).ok()
}

/// The document of a did:jwk: its one key, `#0`.
pub(super) fn document(did: &Did) -> Result<DidDocument, ResolveError> {
    let public = key(did).ok_or(ResolveError::Identifier)?;
    let kid = did.key("0").map_err(|_| ResolveError::Identifier)?;
    Ok(DidDocument::new(did.clone(), vec![VerificationKey::new(kid, public)]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn did(jwk: &Value) -> Did {
        format!("did:jwk:{}", URL_SAFE_NO_PAD.encode(jwk.to_string())).parse().unwrap()
    }

    /// The key of RFC 8037 appendix A.
    #[test]
    fn the_key_is_in_the_did() {
        let jwk = json!({"kty": "OKP", "crv": "Ed25519", "x": "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"});
        let did = did(&jwk);
        let document = document(&did).unwrap();
        let kid = format!("{did}#0").parse().unwrap();
        assert_eq!(
            document.key(&kid).unwrap().public().thumbprint(),
            "kPrK_qmxVWaYVA9wwBF6Iuo3vVzz7TxHCTwXBygrS4k"
        );
        assert_eq!(document.id(), &did);
    }

    #[test]
    fn what_is_no_such_key_has_no_document() {
        let x = "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo";
        for jwk in [
            json!({"kty": "OKP", "crv": "Ed25519", "x": x, "d": x}),
            json!({"kty": "OKP", "crv": "X25519", "x": x}),
            json!({"kty": "EC", "crv": "P-256", "x": x, "y": x}),
            json!([]),
        ] {
            assert_eq!(document(&did(&jwk)), Err(ResolveError::Identifier), "{jwk}");
        }
        for text in ["did:jwk:e30", "did:jwk:AA", "did:jwk:a", "did:jwk:%7B%7D"] {
            assert_eq!(document(&text.parse().unwrap()), Err(ResolveError::Identifier), "{text}");
        }
    }
}

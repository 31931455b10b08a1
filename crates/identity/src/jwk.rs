//! Public keys as JSON Web Keys (RFC 8037) and their thumbprints (RFC 7638).

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use ed25519_dalek::{Signature, VerifyingKey};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

/// Why a key or a signature was refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum KeyError {
    /// Not an `OKP` key on the curve that was asked for, or not a point of it.
    #[error("the key is not an Ed25519 public key in JWK form")]
    NotEd25519,
    /// A private key where a public one belongs (RFC 9449 section 4.3, check 7).
    #[error("the key carries its private part")]
    Private,
    /// The signature does not verify.
    #[error("the signature does not verify")]
    BadSignature,
}

/// An Ed25519 public key. Small-order points are refused.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct PublicKey(VerifyingKey);

impl PublicKey {
    /// A key from its 32 bytes.
    ///
    /// # Errors
    /// [`KeyError::NotEd25519`] when the bytes are no point, or one that verifies forged signatures.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, KeyError> {
        let bytes = bytes.try_into().map_err(|_| KeyError::NotEd25519)?;
        let key = VerifyingKey::from_bytes(bytes).map_err(|_| KeyError::NotEd25519)?;
        if key.is_weak() { Err(KeyError::NotEd25519) } else { Ok(Self(key)) }
    }

    /// A key from a JWK: `kty` OKP, `crv` Ed25519, `x`; `use` and `alg`, if there, must fit signatures.
    ///
    /// # Errors
    /// [`KeyError::Private`] when the JWK has a `d`; [`KeyError::NotEd25519`] for anything else.
    pub fn from_jwk(jwk: &Value) -> Result<Self, KeyError> {
        if jwk.get("d").is_some() {
            return Err(KeyError::Private);
        }
        let fits = |member: &str, value: &str| jwk.get(member).is_none_or(|v| v == value);
        let verifies = jwk
            .get("key_ops")
            .is_none_or(|ops| ops.as_array().is_some_and(|ops| ops.iter().any(|op| op == "verify")));
        if jwk["kty"] != "OKP" || jwk["crv"] != "Ed25519" || !fits("use", "sig") || !verifies {
            return Err(KeyError::NotEd25519);
        }
        if !fits("alg", "EdDSA") && !fits("alg", "Ed25519") {
            return Err(KeyError::NotEd25519);
        }
        let x = jwk["x"].as_str().ok_or(KeyError::NotEd25519)?;
        Self::from_bytes(&URL_SAFE_NO_PAD.decode(x).map_err(|_| KeyError::NotEd25519)?)
    }

    /// The JWK: `crv`, `kty`, `x`.
    #[must_use]
    pub fn jwk(&self) -> Value {
        json!({"crv": "Ed25519", "kty": "OKP", "x": URL_SAFE_NO_PAD.encode(self.0.as_bytes())})
    }

    /// The RFC 7638 thumbprint, base64url: the `jkt` of a sender-constrained token.
    #[must_use]
    pub fn thumbprint(&self) -> String {
        let x = URL_SAFE_NO_PAD.encode(self.0.as_bytes());
        let members = format!(r#"{{"crv":"Ed25519","kty":"OKP","x":"{x}"}}"#);
        URL_SAFE_NO_PAD.encode(Sha256::digest(members))
    }

    /// The 32 bytes.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8; 32] {
        self.0.as_bytes()
    }

    /// Checks a signature, strictly: one encoding per signature, no small-order points.
    ///
    /// # Errors
    /// [`KeyError::BadSignature`].
    pub fn verify(&self, message: &[u8], signature: &[u8]) -> Result<(), KeyError> {
        let signature = Signature::from_slice(signature).map_err(|_| KeyError::BadSignature)?;
        self.0.verify_strict(message, &signature).map_err(|_| KeyError::BadSignature)
    }
}

impl std::fmt::Debug for PublicKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Ed25519({})", self.thumbprint())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RFC 8037 appendix A: the key, its thumbprint.
    #[test]
    fn rfc_8037_key_and_thumbprint() {
        let jwk = json!({"kty": "OKP", "crv": "Ed25519", "x": "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"});
        let key = PublicKey::from_jwk(&jwk).unwrap();
        assert_eq!(key.thumbprint(), "kPrK_qmxVWaYVA9wwBF6Iuo3vVzz7TxHCTwXBygrS4k");
        assert_eq!(PublicKey::from_jwk(&key.jwk()), Ok(key));
    }

    #[test]
    fn other_keys_are_refused() {
        let x = "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo";
        let bad = [
            (json!({"kty": "OKP", "crv": "Ed25519", "x": x, "d": x}), KeyError::Private),
            (json!({"kty": "OKP", "crv": "X25519", "x": x}), KeyError::NotEd25519),
            (json!({"kty": "oct", "k": x}), KeyError::NotEd25519),
            (json!({"kty": "OKP", "crv": "Ed25519", "x": x, "use": "enc"}), KeyError::NotEd25519),
            (json!({"kty": "OKP", "crv": "Ed25519", "x": x, "key_ops": ["sign"]}), KeyError::NotEd25519),
            (json!({"kty": "OKP", "crv": "Ed25519", "x": x, "alg": "HS256"}), KeyError::NotEd25519),
            (json!({"kty": "OKP", "crv": "Ed25519", "x": format!("{x}=")}), KeyError::NotEd25519),
            (json!({"kty": "OKP", "crv": "Ed25519", "x": "AQ"}), KeyError::NotEd25519),
            (json!("key"), KeyError::NotEd25519),
        ];
        for (jwk, error) in bad {
            assert_eq!(PublicKey::from_jwk(&jwk), Err(error), "{jwk}");
        }
        // The identity point, which verifies anything.
        let mut small = [0; 32];
        small[0] = 1;
        assert!(PublicKey::from_bytes(&small).is_err());
    }
}

//! The principal's own keys: one that signs, one for key agreement (protocol section 2).

use crate::did::{Did, Kid};
use crate::jwk::{KeyError, PublicKey};
use crate::random::{self, Random};
use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use did_method_key::DIDKey;
use ed25519_dalek::{Signer as _, SigningKey};
use serde_json::{Value, json};
use ssi_jwk::JWK;
use x25519_dalek::StaticSecret;
use zeroize::Zeroizing;

/// An Ed25519 signing key and the key id under which its public half is published.
///
/// Does not print; wiped when dropped.
pub struct Signer {
    kid: Kid,
    secret: SigningKey,
    public: PublicKey,
}

impl Signer {
    /// The key of a 32-byte seed, published as `kid`.
    ///
    /// # Errors
    /// [`KeyError::NotEd25519`] for a seed without a usable key (none is known).
    pub fn from_seed(kid: Kid, seed: &[u8; 32]) -> Result<Self, KeyError> {
        let secret = SigningKey::from_bytes(seed);
        let public = PublicKey::from_bytes(secret.verifying_key().as_bytes())?;
        Ok(Self { kid, secret, public })
    }

    /// A key that is its own DID: `did:key:z…#z…`.
    ///
    /// # Errors
    /// As [`Signer::from_seed`].
    pub fn did_key(seed: &[u8; 32]) -> Result<Self, KeyError> {
        let public = PublicKey::from_bytes(SigningKey::from_bytes(seed).verifying_key().as_bytes())?;
        Self::from_seed(did_key(&public)?, seed)
    }

    /// A fresh seed.
    #[must_use]
    pub fn seed(random: &dyn Random) -> Zeroizing<[u8; 32]> {
        Zeroizing::new(random::bytes(random))
    }

    /// The key id.
    #[must_use]
    pub const fn kid(&self) -> &Kid {
        &self.kid
    }

    /// The DID of the key id.
    #[must_use]
    pub const fn did(&self) -> &Did {
        self.kid.did()
    }

    /// The public half.
    #[must_use]
    pub const fn public(&self) -> &PublicKey {
        &self.public
    }

    /// Signs bytes; base64url of the 64 bytes.
    #[must_use]
    pub fn sign(&self, message: &[u8]) -> String {
        URL_SAFE_NO_PAD.encode(self.signature(message))
    }

    /// Signs bytes; the 64 bytes.
    #[must_use]
    pub fn signature(&self, message: &[u8]) -> [u8; 64] {
        self.secret.sign(message).to_bytes()
    }
}

impl std::fmt::Debug for Signer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Signer({})", self.kid)
    }
}

/// The key id of the did:key that is this public key.
///
/// # Errors
/// [`KeyError::NotEd25519`] when `ssi` refuses the key.
pub fn did_key(public: &PublicKey) -> Result<Kid, KeyError> {
    let jwk: JWK = serde_json::from_value(public.jwk()).map_err(|_| KeyError::NotEd25519)?;
    let url = DIDKey::generate_url(&jwk).map_err(|_| KeyError::NotEd25519)?;
    url.as_str().parse().map_err(|_| KeyError::NotEd25519)
}

/// An X25519 key for key agreement, published in the DID document.
#[derive(Clone)]
pub struct AgreementKey(StaticSecret);

impl AgreementKey {
    /// The key of a 32-byte secret.
    #[must_use]
    pub fn from_secret(secret: [u8; 32]) -> Self {
        Self(StaticSecret::from(secret))
    }

    /// The public half, 32 bytes.
    #[must_use]
    pub fn public(&self) -> [u8; 32] {
        x25519_dalek::PublicKey::from(&self.0).to_bytes()
    }

    /// The public half as a JWK.
    #[must_use]
    pub fn jwk(&self) -> Value {
        json!({"crv": "X25519", "kty": "OKP", "x": URL_SAFE_NO_PAD.encode(self.public())})
    }
}

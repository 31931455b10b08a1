//! Ed25519 under `jsonwebtoken`, and nothing else.
//!
//! `jsonwebtoken` asks a provider for an algorithm by name. This one knows EdDSA alone, so that `none`,
//! HMAC with a public key, or any other confusion fails before a key is looked at. It verifies strictly
//! (no small-order keys, one encoding per signature), the same way as every other signature here.

use ed25519_dalek::pkcs8::DecodePrivateKey;
use ed25519_dalek::{Signature, SigningKey, VerifyingKey};
use jsonwebtoken::crypto::{CryptoProvider, JwtSigner, JwtVerifier, KeyUtils};
use jsonwebtoken::errors::{ErrorKind, Result};
use jsonwebtoken::{Algorithm, DecodingKey, EncodingKey};
use signature::{Error, Signer, Verifier};
use std::sync::Once;

/// Makes EdDSA the algorithm of `jsonwebtoken` in this process. Cheap to call again.
pub(crate) fn install() {
    static PROVIDER: CryptoProvider =
        CryptoProvider { signer_factory, verifier_factory, key_utils: KeyUtils::new_unimplemented() };
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        // Another provider can only be there if the program installed one before; it would have to be EdDSA too.
        let _ = PROVIDER.install_default();
    });
}

fn signer_factory(algorithm: &Algorithm, key: &EncodingKey) -> Result<Box<dyn JwtSigner>> {
    eddsa(algorithm)?;
    let key = SigningKey::from_pkcs8_der(key.as_bytes()).map_err(|_| ErrorKind::InvalidEddsaKey)?;
    Ok(Box::new(Signs(key)))
}

fn verifier_factory(algorithm: &Algorithm, key: &DecodingKey) -> Result<Box<dyn JwtVerifier>> {
    eddsa(algorithm)?;
    let key = key.try_get_as_bytes()?.try_into().map_err(|_| ErrorKind::InvalidEddsaKey)?;
    let key = VerifyingKey::from_bytes(key).map_err(|_| ErrorKind::InvalidEddsaKey)?;
    Ok(Box::new(Verifies(key)))
}

fn eddsa(algorithm: &Algorithm) -> Result<()> {
    match algorithm {
        Algorithm::EdDSA => Ok(()),
        _ => Err(ErrorKind::InvalidAlgorithm.into()),
    }
}

struct Signs(SigningKey);

impl Signer<Vec<u8>> for Signs {
    fn try_sign(&self, message: &[u8]) -> std::result::Result<Vec<u8>, Error> {
        Ok(self.0.sign(message).to_bytes().to_vec())
    }
}

impl JwtSigner for Signs {
    fn algorithm(&self) -> Algorithm {
        Algorithm::EdDSA
    }
}

struct Verifies(VerifyingKey);

impl Verifier<Vec<u8>> for Verifies {
    fn verify(&self, message: &[u8], signature: &Vec<u8>) -> std::result::Result<(), Error> {
        self.0.verify_strict(message, &Signature::from_slice(signature)?)
    }
}

impl JwtVerifier for Verifies {
    fn algorithm(&self) -> Algorithm {
        Algorithm::EdDSA
    }
}

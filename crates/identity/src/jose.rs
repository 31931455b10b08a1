//! Ed25519 under `jsonwebtoken`, and nothing else.
//!
//! `jsonwebtoken` asks a provider for an algorithm by name. This one knows EdDSA alone, so that `none`,
//! HMAC with a public key, or any other confusion fails before a key is looked at. It verifies strictly
//! (no small-order keys, one encoding per signature), the same way as every other signature here.

use ed25519_dalek::{Signature, VerifyingKey};
use jsonwebtoken::crypto::{CryptoProvider, JwtSigner, JwtVerifier, KeyUtils};
use jsonwebtoken::errors::{ErrorKind, Result};
use jsonwebtoken::{Algorithm, DecodingKey, EncodingKey};
use signature::{Error, Verifier};
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

/// Keys that sign are never the library's: see [`crate::signed::UnsignedJwt`].
fn signer_factory(_: &Algorithm, _: &EncodingKey) -> Result<Box<dyn JwtSigner>> {
    Err(ErrorKind::InvalidAlgorithm.into())
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

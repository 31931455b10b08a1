//! A signature that stands beside what it covers: `{"alg", "kid", "value"}` (protocol section 3).

use crate::did::Kid;
use crate::document::{Documents, VerificationKey};
use crate::key::Signer;
use crate::signed::SignedError;
use crate::time::Timestamp;
use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use serde::{Deserialize, Serialize};

/// The one algorithm.
const ALGORITHM: &str = "EdDSA";

/// A signature over the RFC 8785 bytes of what it stands beside. Not verified.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DetachedSignature {
    /// `EdDSA`.
    pub alg: String,
    /// The key that made it.
    pub kid: Kid,
    /// Base64url of the 64 bytes.
    pub value: String,
}

impl DetachedSignature {
    /// Signs bytes.
    #[must_use]
    pub fn sign(bytes: &[u8], signer: &Signer) -> Self {
        Self { alg: ALGORITHM.to_owned(), kid: signer.kid().clone(), value: signer.sign(bytes) }
    }

    /// Whether its algorithm is the one that is verified here.
    #[must_use]
    pub fn is_eddsa(&self) -> bool {
        self.alg == ALGORITHM
    }

    /// Checks it with the key that it names, as that stood at the time of signing; the key. Whose key it may be is the
    /// caller's to say, before.
    ///
    /// # Errors
    /// [`SignedError::Algorithm`], [`SignedError::OtherKey`] for a key of no document, [`SignedError::Malformed`],
    /// [`SignedError::Retired`], [`SignedError::Revoked`], [`SignedError::BadSignature`].
    pub fn verify<'k>(
        &self,
        bytes: &[u8],
        documents: &'k dyn Documents,
        signed_at: Timestamp,
    ) -> Result<&'k VerificationKey, SignedError> {
        if !self.is_eddsa() {
            return Err(SignedError::Algorithm);
        }
        let key = documents.key_of(&self.kid).ok_or(SignedError::OtherKey)?;
        let value = URL_SAFE_NO_PAD.decode(&self.value).map_err(|_| SignedError::Malformed)?;
        key.verify(bytes, &value, signed_at)?;
        Ok(key)
    }
}

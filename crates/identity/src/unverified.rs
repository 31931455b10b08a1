//! A signed document of a known type, read before its signature is checked.

use crate::did::Kid;
use crate::document::Documents;
use crate::json::{self, JsonError};
use crate::signed::{SignedError, UnverifiedSignature};
use crate::time::Timestamp;
use serde::de::DeserializeOwned;
use serde_json::Value;

/// A document with its `signature` member, and what it says without it. Not verified.
#[derive(Debug, Clone)]
pub struct UnverifiedDocument<T> {
    document: Value,
    content: T,
}

impl<T: DeserializeOwned> UnverifiedDocument<T> {
    /// Reads what a document says.
    ///
    /// # Errors
    /// [`JsonError`], naming the member.
    pub fn parse(document: Value) -> Result<Self, JsonError> {
        let mut unsigned = document.clone();
        if let Some(members) = unsigned.as_object_mut() {
            members.remove("signature");
        }
        let content = json::from_value(unsigned)?;
        Ok(Self { document, content })
    }
}

impl<T> UnverifiedDocument<T> {
    /// What it says, whoever signed it: to find out who should have, and for nothing else.
    #[must_use]
    pub const fn unverified(&self) -> &T {
        &self.content
    }

    /// The key that its signature names.
    ///
    /// # Errors
    /// As [`UnverifiedSignature::of`].
    pub fn kid(&self) -> Result<Kid, SignedError> {
        Ok(UnverifiedSignature::of(&self.document)?.kid().clone())
    }

    /// Checks the signature with the key that it names, as that stood at the time of signing: the document, and what it
    /// says. Whose key it may be is the caller's to say, before.
    ///
    /// # Errors
    /// As [`UnverifiedSignature::of`] and [`UnverifiedSignature::verify`]; [`SignedError::OtherKey`] for a key of no
    /// document.
    pub fn verify(self, documents: &dyn Documents, signed_at: Timestamp) -> Result<(Value, T), SignedError> {
        let signature = UnverifiedSignature::of(&self.document)?;
        let key = documents.key_of(signature.kid()).ok_or(SignedError::OtherKey)?;
        signature.verify(key, signed_at)?;
        Ok((self.document, self.content))
    }
}

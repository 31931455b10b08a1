//! Sealing of one value: XChaCha20-Poly1305 with a random nonce, bound to where the value stands.

use crate::{EngineError, StoreError};
use chacha20poly1305::aead::{Aead, KeyInit, Payload};
use chacha20poly1305::{XChaCha20Poly1305, XNonce};
use oap_identity::random::{self, Random};

/// Bytes that sealing adds: nonce and tag.
pub const OVERHEAD: usize = 24 + 16;

/// Seals bytes: the nonce, and the sealed bytes with their tag. `place` is not in them, and has to be given again.
///
/// # Errors
/// [`EngineError::TooLarge`] beyond 256 GiB.
pub fn seal(key: &[u8; 32], place: &[u8], plain: &[u8], random: &dyn Random) -> Result<Vec<u8>, StoreError> {
    seal_with(key, random::bytes(random), place, plain)
}

/// The same with this nonce, which no other value under the key has.
pub(crate) fn seal_with(
    key: &[u8; 32],
    nonce: [u8; 24],
    place: &[u8],
    plain: &[u8],
) -> Result<Vec<u8>, StoreError> {
    let sealed = XChaCha20Poly1305::new(key.into())
        .encrypt(XNonce::from_slice(&nonce), Payload { msg: plain, aad: place })
        .map_err(|_| EngineError::TooLarge)?;
    Ok([nonce.as_slice(), &sealed].concat())
}

/// Opens what was sealed with this key, for this place.
///
/// # Errors
/// [`StoreError::Tampered`].
pub fn open(key: &[u8; 32], place: &[u8], sealed: &[u8]) -> Result<Vec<u8>, StoreError> {
    let (nonce, sealed) = sealed.split_at_checked(24).ok_or(StoreError::Tampered)?;
    XChaCha20Poly1305::new(key.into())
        .decrypt(XNonce::from_slice(nonce), Payload { msg: sealed, aad: place })
        .map_err(|_| StoreError::Tampered)
}

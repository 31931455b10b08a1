//! The secrets of OAuth: codes and tokens, of which the gateway keeps hashes alone, and the challenge that a code is bound to.
//!
//! A token names the approval that it is of, and has 32 random bytes more. The name is in tokens and nowhere else, so whoever has one
//! has seen a token.

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use oap_identity::{Hash, Random, random};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use zeroize::Zeroizing;

/// How an access token begins.
pub const ACCESS_PREFIX: &str = "oapt_";
/// How a refresh token begins.
pub const REFRESH_PREFIX: &str = "oapr_";
/// Bytes of a token behind its beginning, in base64url: 64 characters.
const TOKEN: usize = 16 + 32;
/// Shortest verifier of PKCE, in characters (RFC 7636 section 4.1).
const MIN_VERIFIER: usize = 43;
/// Longest verifier of PKCE, in characters.
pub const MAX_VERIFIER: usize = 128;

/// What an approval is found by. It does not print.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct ApprovalKey(pub(crate) [u8; 16]);

impl std::fmt::Debug for ApprovalKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("ApprovalKey")
    }
}

impl ApprovalKey {
    /// A fresh one.
    pub(crate) fn new(random: &dyn Random) -> Self {
        Self(random::bytes(random))
    }
}

/// A token as its client has it, and what the gateway keeps of it. It does not print.
pub struct Secret {
    /// The text, told once.
    pub text: Zeroizing<String>,
    /// What is kept.
    pub hash: Hash,
}

impl Secret {
    /// A fresh token of an approval.
    pub(crate) fn token(prefix: &str, of: ApprovalKey, random: &dyn Random) -> Self {
        let mut bytes: Zeroizing<[u8; TOKEN]> = Zeroizing::new([0; TOKEN]);
        let secret: Zeroizing<[u8; 32]> = Zeroizing::new(random::bytes(random));
        bytes[..16].copy_from_slice(&of.0);
        bytes[16..].copy_from_slice(&*secret);
        Self::of(Zeroizing::new(format!("{prefix}{}", URL_SAFE_NO_PAD.encode(*bytes))))
    }

    /// A fresh secret that names nothing: a code, or the address of a page.
    pub(crate) fn plain(random: &dyn Random) -> Self {
        let secret: Zeroizing<[u8; 32]> = Zeroizing::new(random::bytes(random));
        Self::of(Zeroizing::new(URL_SAFE_NO_PAD.encode(*secret)))
    }

    fn of(text: Zeroizing<String>) -> Self {
        let hash = Hash::of(text.as_bytes());
        Self { text, hash }
    }
}

/// The approval that a token names, and the token's hash; `None` for what is no such token.
#[must_use]
pub fn read(prefix: &str, token: &str) -> Option<(ApprovalKey, Hash)> {
    let text = token.strip_prefix(prefix).filter(|text| text.len() == TOKEN / 3 * 4)?;
    let bytes = Zeroizing::new(URL_SAFE_NO_PAD.decode(text).ok()?);
    Some((ApprovalKey(*bytes.first_chunk()?), Hash::of(token.as_bytes())))
}

/// A challenge of PKCE with S256: the SHA-256 of the verifier.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Challenge([u8; 32]);

impl Challenge {
    /// Reads one; `None` for what is not the base64url of 32 bytes.
    #[must_use]
    pub fn read(text: &str) -> Option<Self> {
        let bytes = URL_SAFE_NO_PAD.decode(text).ok().filter(|_| text.len() == 43)?;
        bytes.try_into().ok().map(Self)
    }

    /// Whether it is of this verifier, which is 43 to 128 unreserved characters.
    #[must_use]
    pub fn is_of(self, verifier: &str) -> bool {
        let unreserved = |c: u8| c.is_ascii_alphanumeric() || b"-._~".contains(&c);
        (MIN_VERIFIER..=MAX_VERIFIER).contains(&verifier.len())
            && verifier.bytes().all(unreserved)
            && <[u8; 32]>::from(Sha256::digest(verifier)) == self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use oap_identity::random::Seeded;

    #[test]
    fn a_token_names_its_approval() {
        let random = Seeded::new(1);
        let key = ApprovalKey::new(&random);
        let token = Secret::token(ACCESS_PREFIX, key, &random);
        assert_eq!(token.text.len(), ACCESS_PREFIX.len() + 64);
        assert_eq!(read(ACCESS_PREFIX, &token.text), Some((key, token.hash)));
        assert_eq!(read(REFRESH_PREFIX, &token.text), None);
        for wrong in ["", "oapt_", &token.text[..68], &format!("{}x", *token.text), "oapt_\u{e9}"] {
            assert_eq!(read(ACCESS_PREFIX, wrong), None);
        }
        assert_eq!(format!("{key:?}"), "ApprovalKey");
    }

    /// RFC 7636 appendix B.
    #[test]
    fn the_verifier_of_the_standard() {
        let challenge = Challenge::read("E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM").unwrap();
        let verifier = "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk";
        assert!(challenge.is_of(verifier));
        assert!(!challenge.is_of(&verifier.replace('d', "e")) && !challenge.is_of(""));
        // The challenge itself is no verifier, as it would be with the method `plain`.
        assert!(!challenge.is_of("E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM"));
        let short = "a".repeat(42);
        assert!(!Challenge(Sha256::digest(&short).into()).is_of(&short));
        let long = "a".repeat(MAX_VERIFIER + 1);
        assert!(!Challenge(Sha256::digest(&long).into()).is_of(&long));
        for wrong in ["", "short", &"A".repeat(44), "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw+cM"] {
            assert_eq!(Challenge::read(wrong), None, "{wrong}");
        }
    }
}

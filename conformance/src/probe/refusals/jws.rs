//! A JWS that is made part by part, so that one part alone can be wrong.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use oap_identity::{Hash, Signer};
use serde_json::Value;

/// Whose key signs, and how.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Seal {
    /// The key that must.
    Own,
    /// Another one.
    Stranger,
    /// An HMAC under the public key that must verify (RFC 8725 2.1).
    Hmac,
    /// None: the last part is empty.
    Empty,
    /// The right one, with one bit changed.
    Changed,
}

/// A JWS as it is about to be made.
#[derive(Debug, Clone)]
pub(super) struct Jws {
    pub(super) header: Value,
    pub(super) claims: Value,
    /// What becomes of the text of the header and of that of the claims before it is signed.
    pub(super) header_text: fn(String) -> String,
    pub(super) claims_text: fn(String) -> String,
    pub(super) seal: Seal,
    /// What becomes of it at last.
    pub(super) finish: fn(String) -> String,
    /// How often it is sent in one request.
    pub(super) copies: usize,
}

impl Jws {
    pub(super) const fn new(header: Value, claims: Value) -> Self {
        Self {
            header,
            claims,
            header_text: |text| text,
            claims_text: |text| text,
            seal: Seal::Own,
            finish: |text| text,
            copies: 1,
        }
    }

    /// The text, signed with one of two keys.
    pub(super) fn made(&self, own: &Signer, stranger: &Signer) -> String {
        let part =
            |value: &Value, text: fn(String) -> String| URL_SAFE_NO_PAD.encode(text(value.to_string()));
        let (header, claims) = (part(&self.header, self.header_text), part(&self.claims, self.claims_text));
        let signed = format!("{header}.{claims}");
        let signature = match self.seal {
            Seal::Own => own.sign(signed.as_bytes()),
            Seal::Stranger => stranger.sign(signed.as_bytes()),
            Seal::Changed => changed(&own.sign(signed.as_bytes())),
            Seal::Empty => String::new(),
            Seal::Hmac => URL_SAFE_NO_PAD.encode(hmac(own.public().as_bytes(), signed.as_bytes())),
        };
        (self.finish)(format!("{signed}.{signature}"))
    }
}

/// A part of a JWS.
pub(super) fn part(value: &Value) -> String {
    URL_SAFE_NO_PAD.encode(value.to_string())
}

/// An object whose first member stands twice.
pub(super) fn doubled(text: String) -> String {
    match text.split_once(',') {
        Some((first, rest)) => format!("{first},{},{rest}", first.trim_start_matches('{')),
        None => text,
    }
}

/// A part of a JWS, read; null where it is none.
pub(in super::super) fn read(jws: &str, number: usize) -> Value {
    let part = jws.split('.').nth(number).unwrap_or_default();
    serde_json::from_slice(&URL_SAFE_NO_PAD.decode(part).unwrap_or_default()).unwrap_or_default()
}

/// A signature that is another. The last character of 64 bytes in base64url holds two bits of them; the first holds six.
pub(super) fn changed(signature: &str) -> String {
    let other = if signature.starts_with('A') { "B" } else { "A" };
    format!("{other}{}", signature.get(1..).unwrap_or_default())
}

/// HMAC-SHA-256 (RFC 2104) under a key of at most 64 bytes.
pub(super) fn hmac(key: &[u8], message: &[u8]) -> [u8; 32] {
    let padded =
        |with: u8| -> Vec<u8> { (0..64).map(|place| key.get(place).copied().unwrap_or(0) ^ with).collect() };
    let inner = Hash::of(&[padded(0x36).as_slice(), message].concat());
    *Hash::of(&[padded(0x5c).as_slice(), inner.as_bytes()].concat()).as_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_member_stands_twice() {
        assert_eq!(doubled(r#"{"a":1,"b":2}"#.to_owned()), r#"{"a":1,"a":1,"b":2}"#);
    }

    /// RFC 4231, test case 2.
    #[test]
    fn the_hmac_is_that_of_the_rfc() {
        let mac = hmac(b"Jefe", b"what do ya want for nothing?");
        assert_eq!(mac[..4], [0x5b, 0xdc, 0xc1, 0x46]);
    }
}

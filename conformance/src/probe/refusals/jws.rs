//! A JWS that is made part by part, so that one part alone can be wrong.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use oap_identity::{Hash, Signer};
use serde_json::{Value, json};

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
    /// The right one, with S + L in place of S.
    Lifted,
    /// One that holds under [`neutral`], whatever is signed.
    Neutral,
}

/// A JWS as it is about to be made.
#[derive(Debug, Clone)]
pub(super) struct Jws {
    pub(super) header: Value,
    pub(super) claims: Value,
    /// What becomes of the text of the header and of that of the claims before it is signed.
    pub(super) header_text: fn(String) -> Vec<u8>,
    pub(super) claims_text: fn(String) -> Vec<u8>,
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
            header_text: String::into_bytes,
            claims_text: String::into_bytes,
            seal: Seal::Own,
            finish: |text| text,
            copies: 1,
        }
    }

    /// The text, signed with one of two keys.
    pub(super) fn made(&self, own: &Signer, stranger: &Signer) -> String {
        let part =
            |value: &Value, text: fn(String) -> Vec<u8>| URL_SAFE_NO_PAD.encode(text(value.to_string()));
        let (header, claims) = (part(&self.header, self.header_text), part(&self.claims, self.claims_text));
        let signed = format!("{header}.{claims}");
        let signature = match self.seal {
            Seal::Own => own.sign(signed.as_bytes()),
            Seal::Stranger => stranger.sign(signed.as_bytes()),
            Seal::Changed => changed(&own.sign(signed.as_bytes())),
            Seal::Lifted => lifted(&own.sign(signed.as_bytes())),
            Seal::Neutral => of_neutral(),
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

/// The same text in UTF-16, least byte first.
pub(super) fn utf_16(text: String) -> Vec<u8> {
    text.encode_utf16().flat_map(u16::to_le_bytes).collect()
}

/// The same text in ISO 8859-1.
pub(super) fn latin_1(text: String) -> Vec<u8> {
    text.chars().map(|c| u8::try_from(c).unwrap_or(b'?')).collect()
}

/// A part of a JWS, read; null where it is none.
pub(in super::super) fn read(jws: &str, number: usize) -> Value {
    let part = jws.split('.').nth(number).unwrap_or_default();
    serde_json::from_slice(&URL_SAFE_NO_PAD.decode(part).unwrap_or_default()).unwrap_or_default()
}

/// Changes a signature where it stands: by itself, or as the last part of a JWS.
pub(in super::super) fn resign(place: &mut Value, change: fn(&str) -> String) {
    let text = place.as_str().unwrap_or_default();
    *place = json!(match text.rsplit_once('.') {
        Some((signed, signature)) => format!("{signed}.{}", change(signature)),
        None => change(text),
    });
}

/// A signature that is another. The last character of 64 bytes in base64url holds two bits of them; the first holds six.
pub(super) fn changed(signature: &str) -> String {
    let other = if signature.starts_with('A') { "B" } else { "A" };
    format!("{other}{}", signature.get(1..).unwrap_or_default())
}

/// The order of the base point (RFC 8032 5.1: L), least byte first.
const ORDER: [u8; 32] = [
    0xed, 0xd3, 0xf5, 0x5c, 0x1a, 0x63, 0x12, 0x58, 0xd6, 0x9c, 0xf7, 0xa2, 0xde, 0xf9, 0xde, 0x14, 0, 0, 0,
    0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x10,
];

/// A signature with S + L in place of S: the equation holds as before, and it is another text (RFC 8032 5.1.7).
pub(in super::super) fn lifted(signature: &str) -> String {
    let mut bytes = URL_SAFE_NO_PAD.decode(signature).unwrap_or_default();
    let mut carry = 0;
    for (byte, more) in bytes.iter_mut().skip(32).zip(ORDER) {
        let [low, high] = (u16::from(*byte) + u16::from(more) + u16::from(carry)).to_le_bytes();
        (*byte, carry) = (low, high);
    }
    URL_SAFE_NO_PAD.encode(bytes)
}

/// 1, least byte first: as a scalar, and as the neutral point, which is of small order.
const ONE: [u8; 32] =
    [1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];

/// The neutral point as a public key.
pub(super) fn neutral() -> Value {
    json!({"crv": "Ed25519", "kty": "OKP", "x": URL_SAFE_NO_PAD.encode(ONE)})
}

/// The did:key of that key.
pub(super) const NEUTRAL: &str = "did:key:z6MkeXATEjyXENzBXBxgC5EHk2JE5aqd7qMGGtDpLUH1e2Sj";

/// The base point as R and 1 as S: S times the base point is R, and the key adds nothing to it.
fn of_neutral() -> String {
    let mut base = [0x66; 32];
    if let Some(first) = base.first_mut() {
        *first = 0x58;
    }
    URL_SAFE_NO_PAD.encode([base, ONE].concat())
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

    #[test]
    fn a_text_is_written_in_other_encodings() {
        assert_eq!(utf_16("é{".to_owned()), [0xe9, 0, b'{', 0]);
        assert_eq!(latin_1("é{".to_owned()), [0xe9, b'{']);
    }

    #[test]
    fn a_lifted_signature_is_another_text_of_the_same() {
        let zero = URL_SAFE_NO_PAD.encode([0; 64]);
        let order = URL_SAFE_NO_PAD.encode([[0; 32], ORDER].concat());
        assert_eq!(lifted(&zero), order);
        let signer = Signer::did_key(&[7; 32]).unwrap();
        let bytes = |text: &str| URL_SAFE_NO_PAD.decode(text).unwrap();
        let signature = signer.sign(b"words");
        assert!(signer.public().verify(b"words", &bytes(&signature)).is_ok());
        assert!(signer.public().verify(b"words", &bytes(&lifted(&signature))).is_err());
        assert_eq!(bytes(&lifted(&signature))[..32], bytes(&signature)[..32]);
    }

    /// RFC 4231, test case 2.
    #[test]
    fn the_hmac_is_that_of_the_rfc() {
        let mac = hmac(b"Jefe", b"what do ya want for nothing?");
        assert_eq!(mac[..4], [0x5b, 0xdc, 0xc1, 0x46]);
    }
}

//! `GET /.well-known/oap-key-handovers.json`: what each key said of its successor (protocol section 2).
//!
//! A DID document says which keys there are, and nobody signs it. Whoever pinned a key learns here that the key itself names
//! the next one. The list is not signed; each handover in it is, by the former key.

use oap_identity::jwk::PublicKey;
use oap_identity::signed::{SignedError, UnverifiedSignature, sign_document};
use oap_identity::{Did, Kid, Signer, Timestamp, UnverifiedDocument, VerificationKey, json};
use serde::Deserialize;
use serde_json::{Value, json};

/// `type` of a handover.
const TYPE: &str = "key_handover";
/// Most handovers of a list that are read, and most that are published: the newest.
pub const MAX_HANDOVERS: usize = 64;

/// Why a list of handovers is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum HandoverError {
    /// Not JSON of the expected shape.
    #[error(transparent)]
    Json(#[from] json::JsonError),
    /// One without a readable signature.
    #[error(transparent)]
    Signature(#[from] SignedError),
    /// More than are read.
    #[error("more than {MAX_HANDOVERS} handovers")]
    Many,
    /// One that is of somebody else, or no handover.
    #[error("a handover is of another principal, of another type, or of a key that cannot be used")]
    Other,
}

/// What a former key signs.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct Terms {
    #[serde(rename = "type")]
    kind: String,
    principal: Did,
    kid: Kid,
    jwk: Value,
    issued_at: Timestamp,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct List {
    principal: Did,
    handovers: Vec<Value>,
}

/// What a key says of its successor. Not verified: see [`Handover::holds`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Handover {
    document: Value,
    by: Kid,
    kid: Kid,
    public: PublicKey,
    issued_at: Timestamp,
}

impl Handover {
    /// Signs that `next` follows `former`, at a time at which `former` was still in use.
    ///
    /// # Errors
    /// [`SignedError`] when a value has no canonical form; none in practice.
    pub fn sign(former: &Signer, next: &VerificationKey, issued_at: Timestamp) -> Result<Value, SignedError> {
        let mut document = json!({
            "type": TYPE, "principal": former.did(), "kid": next.kid(), "jwk": next.public().jwk(),
            "issued_at": issued_at,
        });
        sign_document(&mut document, former)?;
        Ok(document)
    }

    /// Reads one handover.
    ///
    /// # Errors
    /// [`HandoverError`].
    pub fn read(document: Value) -> Result<Self, HandoverError> {
        let unverified = UnverifiedDocument::<Terms>::parse(document.clone())?;
        let by = unverified.kid()?;
        let Terms { kind, principal, kid, jwk, issued_at } = unverified.unverified().clone();
        let public = PublicKey::from_jwk(&jwk).map_err(|_| HandoverError::Other)?;
        if kind != TYPE || *by.did() != principal || *kid.did() != principal || by == kid {
            return Err(HandoverError::Other);
        }
        Ok(Self { document, by, kid, public, issued_at })
    }

    /// The key that signed, as the signature names it.
    #[must_use]
    pub const fn by(&self) -> &Kid {
        &self.by
    }

    /// The successor's id.
    #[must_use]
    pub const fn kid(&self) -> &Kid {
        &self.kid
    }

    /// The successor.
    #[must_use]
    pub const fn public(&self) -> &PublicKey {
        &self.public
    }

    /// Whether that key signed it, at a time at which its signatures counted.
    #[must_use]
    pub fn holds(&self, by: &VerificationKey) -> bool {
        UnverifiedSignature::of(&self.document)
            .is_ok_and(|signature| signature.verify(by, self.issued_at).is_ok())
    }
}

/// The list that a principal publishes, oldest first; of more than [`MAX_HANDOVERS`] the newest.
#[must_use]
pub fn list(principal: &Did, handovers: &[Value]) -> Value {
    let newest = &handovers[handovers.len().saturating_sub(MAX_HANDOVERS)..];
    json!({"principal": principal, "handovers": newest})
}

/// Reads a principal's list.
///
/// # Errors
/// [`HandoverError`].
pub fn read(bytes: &[u8], principal: &Did) -> Result<Vec<Handover>, HandoverError> {
    let list: List = json::parse_as(bytes)?;
    if list.handovers.len() > MAX_HANDOVERS {
        return Err(HandoverError::Many);
    }
    if list.principal != *principal {
        return Err(HandoverError::Other);
    }
    list.handovers
        .into_iter()
        .map(|document| {
            let handover = Handover::read(document)?;
            if handover.by.did() == principal { Ok(handover) } else { Err(HandoverError::Other) }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn signer(number: u8) -> Signer {
        Signer::from_seed(format!("did:web:user.example#key-{number}").parse().unwrap(), &[number; 32])
            .unwrap()
    }

    fn key(number: u8) -> VerificationKey {
        let signer = signer(number);
        VerificationKey::new(signer.kid().clone(), *signer.public())
    }

    const NOON: Timestamp = Timestamp::from_seconds(1_777_636_800);

    #[test]
    fn a_key_names_its_successor() {
        let document = Handover::sign(&signer(1), &key(2), NOON).unwrap();
        let did: Did = "did:web:user.example".parse().unwrap();
        let bytes = list(&did, std::slice::from_ref(&document)).to_string();
        let read = read(bytes.as_bytes(), &did).unwrap();
        assert_eq!(
            (read[0].by(), read[0].kid(), read[0].public()),
            (key(1).kid(), key(2).kid(), key(2).public())
        );
        assert!(read[0].holds(&key(1)));
        // By no other key, by none that was retired then, and not after a change.
        assert!(!read[0].holds(&key(2)) && !read[0].holds(&key(1).retired(NOON)));
        let mut changed = document;
        changed["jwk"] = key(3).public().jwk();
        assert!(!Handover::read(changed).unwrap().holds(&key(1)));
    }

    #[test]
    fn what_is_no_handover_is_refused() {
        let did: Did = "did:web:user.example".parse().unwrap();
        let good = Handover::sign(&signer(1), &key(2), NOON).unwrap();
        for (member, value) in [
            ("type", json!("grant")),
            ("principal", json!("did:web:other.example")),
            ("kid", json!("did:web:other.example#key-2")),
            ("kid", json!("did:web:user.example#key-1")),
            ("jwk", json!({"kty": "oct", "k": "AA"})),
            ("issued_at", json!("yesterday")),
            ("more", json!(1)),
            ("signature", json!("x")),
        ] {
            let mut bad = good.clone();
            bad[member] = value;
            assert!(read(list(&did, &[bad]).to_string().as_bytes(), &did).is_err(), "{member}");
        }
        assert!(read(list(&"did:web:b.example".parse().unwrap(), &[]).to_string().as_bytes(), &did).is_err());
        let many = json!({"principal": did, "handovers": vec![good.clone(); MAX_HANDOVERS + 1]});
        assert_eq!(read(many.to_string().as_bytes(), &did), Err(HandoverError::Many));
        let published = list(&did, &vec![good; MAX_HANDOVERS + 1]);
        assert_eq!(published["handovers"].as_array().unwrap().len(), MAX_HANDOVERS);
    }
}

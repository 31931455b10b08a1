//! The DID documents of former houses. A house's own bundle says what its keys are; a bundle of another one may add what
//! it knows of that house, and takes nothing back: no key, and no mark that a key is retired or compromised.

use crate::error::{Error, MemberError};
use oap_identity::document::of_keys;
use oap_identity::{Did, DidDocument, Timestamp, VerificationKey};
use serde_json::Value;

/// Most signing keys that are kept of a former house that did not come itself.
pub const MAX_KEYS: usize = 64;

/// The DID that a document names.
///
/// # Errors
/// [`Error::Member`].
pub fn did_of(document: &Value) -> Result<Did, Error> {
    let did = document["id"].as_str().and_then(|did| did.parse().ok());
    did.ok_or(Error::Member("documents", MemberError::NoId))
}

/// Reads a document.
///
/// # Errors
/// [`Error::Member`].
pub fn read(document: &Value, did: &Did) -> Result<DidDocument, Error> {
    DidDocument::parse(document.to_string().as_bytes(), did)
        .map_err(|why| Error::Member("documents", why.into()))
}

/// What is kept of a house that another one's bundle brings a document of: every key, with the earliest marks.
///
/// # Errors
/// [`Error::Member`] where a key has other key material than is known here, and beyond [`MAX_KEYS`].
pub fn join(kept: &Value, brought: &Value) -> Result<Value, Error> {
    let did = did_of(brought)?;
    let (known, other) = (read(kept, &did)?, read(brought, &did)?);
    let mut keys: Vec<VerificationKey> =
        other.keys().iter().filter(|key| known.key(key.kid()).is_none()).cloned().collect();
    for key in known.keys() {
        keys.push(match other.key(key.kid()) {
            Some(other) if other.public() != key.public() => {
                return Err(Error::Member("documents", MemberError::OtherKey(did)));
            }
            Some(other) => marked_as(key, other),
            None => key.clone(),
        });
    }
    if keys == known.keys() {
        return Ok(kept.clone());
    }
    if keys.len() > MAX_KEYS {
        return Err(Error::Member("documents", MemberError::ManyKeys(did)));
    }
    let mut joined = of_keys(&did, &keys);
    if let Some(service) = kept.get("service") {
        joined["service"] = service.clone();
    }
    Ok(joined)
}

/// The key with the earlier of each mark.
fn marked_as(key: &VerificationKey, other: &VerificationKey) -> VerificationKey {
    let earliest = |a: Option<Timestamp>, b: Option<Timestamp>| a.into_iter().chain(b).min();
    let mut marked = VerificationKey::new(key.kid().clone(), *key.public());
    if let Some(at) = earliest(key.retired_at(), other.retired_at()) {
        marked = marked.retired(at);
    }
    if let Some(at) = earliest(key.revoked_at(), other.revoked_at()) {
        marked = marked.revoked(at);
    }
    marked
}

#[cfg(test)]
mod tests {
    use super::*;
    use oap_identity::Signer;
    use serde_json::json;

    const HOUSE: &str = "did:web:house.example";

    fn key(name: &str, seed: u8) -> VerificationKey {
        let signer = Signer::from_seed(format!("{HOUSE}#{name}").parse().unwrap(), &[seed; 32]).unwrap();
        VerificationKey::new(signer.kid().clone(), *signer.public())
    }

    fn document(keys: &[VerificationKey]) -> Value {
        of_keys(&HOUSE.parse().unwrap(), keys)
    }

    fn keys(document: &Value) -> Vec<VerificationKey> {
        read(document, &HOUSE.parse().unwrap()).unwrap().keys().to_vec()
    }

    #[test]
    fn nothing_is_taken_back() {
        let at = Timestamp::from_seconds;
        let mut kept = document(&[key("1", 1).retired(at(5)).revoked(at(9)), key("2", 2)]);
        kept["service"] = json!([{"type": "x"}]);
        for (brought, expected) in [
            (vec![], keys(&kept)),
            (vec![key("1", 1)], keys(&kept)),
            (vec![key("1", 1).revoked(at(20)), key("2", 2)], keys(&kept)),
            (vec![key("1", 1).revoked(at(3))], vec![key("1", 1).retired(at(5)).revoked(at(3)), key("2", 2)]),
            (vec![key("2", 2).retired(at(4))], vec![keys(&kept)[0].clone(), key("2", 2).retired(at(4))]),
            (vec![key("3", 3)], [vec![key("3", 3)], keys(&kept)].concat()),
        ] {
            let joined = join(&kept, &document(&brought)).unwrap();
            assert_eq!(keys(&joined), expected);
            assert_eq!(joined["service"], kept["service"]);
            assert_eq!(join(&kept, &joined).unwrap(), joined);
        }
    }

    #[test]
    fn other_key_material_is_refused() {
        let refused =
            |brought: &[VerificationKey]| join(&document(&[key("1", 1)]), &document(brought)).is_err();
        assert!(refused(&[key("1", 7)]));
        let many = |count: usize| (0..count).map(|n| key(&format!("n{n}"), 2)).collect::<Vec<_>>();
        assert!(!refused(&many(MAX_KEYS - 1)));
        assert!(refused(&many(MAX_KEYS)));
    }
}

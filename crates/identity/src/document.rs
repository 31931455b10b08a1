//! DID documents: what is read of a foreign one, and the one that a principal publishes (protocol section 2).
//!
//! A retired key stays in the document with `expires`, the time of its retirement; a compromised one is marked
//! `revoked`. Both names are those of W3C Controlled Identifiers 1.0, section 2.2.

use crate::did::{Did, Kid};
use crate::json::{self, JsonError};
use crate::jwk::PublicKey;
use crate::key::AgreementKey;
use crate::signed::SignedError;
use crate::time::Timestamp;
use crate::webvh::LogError;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Why a document was refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DocumentError {
    /// Not JSON that the wire allows.
    #[error(transparent)]
    Json(#[from] JsonError),
    /// `id` is not the DID that was asked for.
    #[error("the document's id is not the DID that was asked for")]
    OtherId(Did),
    /// A verification method appears twice.
    #[error("a verification method appears twice")]
    DuplicateKey(Kid),
    /// A member has the wrong shape.
    #[error("member {0:?} has the wrong shape")]
    Shape(&'static str),
    /// The log of a did:webvh does not prove it.
    #[error(transparent)]
    Log(#[from] LogError),
}

/// A public key of a DID document, with the time of its retirement or revocation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VerificationKey {
    kid: Kid,
    public: PublicKey,
    since: Option<Timestamp>,
    expires: Option<Timestamp>,
    revoked: Option<Timestamp>,
}

impl VerificationKey {
    /// A key in force.
    #[must_use]
    pub const fn new(kid: Kid, public: PublicKey) -> Self {
        Self { kid, public, since: None, expires: None, revoked: None }
    }

    /// The same key, listed since that time: what says that it signed it before does not count.
    #[must_use]
    pub const fn since(mut self, at: Timestamp) -> Self {
        self.since = Some(at);
        self
    }

    /// The same key with nothing known of when it was listed first.
    #[must_use]
    pub const fn whenever(mut self) -> Self {
        self.since = None;
        self
    }

    /// The same key, retired at that time: what it signed before stays valid.
    #[must_use]
    pub const fn retired(mut self, at: Timestamp) -> Self {
        self.expires = Some(at);
        self
    }

    /// The same key, compromised since that time: what it signed from then on is void. Grants ask for more: one
    /// that a compromised key signed is void whenever it says it was signed.
    #[must_use]
    pub const fn revoked(mut self, at: Timestamp) -> Self {
        self.revoked = Some(at);
        self
    }

    /// The key id.
    #[must_use]
    pub const fn kid(&self) -> &Kid {
        &self.kid
    }

    /// The public key.
    #[must_use]
    pub const fn public(&self) -> &PublicKey {
        &self.public
    }

    /// Since when the key is listed, where its document has a history (did:webvh).
    #[must_use]
    pub const fn good_since(&self) -> Option<Timestamp> {
        self.since
    }

    /// When the key was retired, if it was.
    #[must_use]
    pub const fn retired_at(&self) -> Option<Timestamp> {
        self.expires
    }

    /// When the key was revoked, if it was.
    #[must_use]
    pub const fn revoked_at(&self) -> Option<Timestamp> {
        self.revoked
    }

    /// Whether a signature made at that time counts.
    ///
    /// # Errors
    /// [`SignedError::Revoked`] from the time of compromise on, [`SignedError::Retired`] from retirement on, [`SignedError::NotYet`] before it
    /// was listed.
    pub fn usable_at(&self, signed_at: Timestamp) -> Result<(), SignedError> {
        match (self.revoked, self.expires, self.since) {
            (Some(at), ..) if at <= signed_at => Err(SignedError::Revoked(at)),
            (_, Some(at), _) if at <= signed_at => Err(SignedError::Retired(at)),
            (.., Some(at)) if signed_at < at => Err(SignedError::NotYet(at)),
            _ => Ok(()),
        }
    }

    /// Checks a signature made at that time.
    ///
    /// # Errors
    /// As [`VerificationKey::usable_at`], and [`SignedError::BadSignature`].
    pub fn verify(&self, message: &[u8], signature: &[u8], signed_at: Timestamp) -> Result<(), SignedError> {
        self.usable_at(signed_at)?;
        Ok(self.public.verify(message, signature)?)
    }
}

/// What is read of a DID document: its Ed25519 keys and the endpoints of its services.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DidDocument {
    id: Did,
    keys: Vec<VerificationKey>,
    services: Vec<(String, String)>,
}

#[allow(missing_docs, reason = "the names say it")]
impl DidDocument {
    /// A document of these keys, for DIDs that need no resolving.
    #[must_use]
    pub const fn new(id: Did, keys: Vec<VerificationKey>) -> Self {
        Self { id, keys, services: Vec::new() }
    }

    /// Reads the document that was fetched for a DID.
    ///
    /// Verification methods of other kinds, or of another controller, are skipped. Where the document lists
    /// `assertionMethod` or `authentication`, only keys listed in one of them are kept.
    ///
    /// # Errors
    /// [`DocumentError`]; `id` must be the DID that was asked for.
    pub fn parse(bytes: &[u8], asked: &Did) -> Result<Self, DocumentError> {
        Self::of_value(&json::parse(bytes)?, asked)
    }

    /// The same of a document that was read before.
    ///
    /// # Errors
    /// As [`DidDocument::parse`].
    pub fn of_value(document: &Value, asked: &Did) -> Result<Self, DocumentError> {
        if document["id"] != asked.as_str() {
            return Err(DocumentError::OtherId(asked.clone()));
        }
        let listed = listed(document, asked);
        let mut keys: Vec<VerificationKey> = Vec::new();
        for method in array(document, "verificationMethod")? {
            let Some(key) = verification_key(method, asked)? else { continue };
            if listed.as_ref().is_some_and(|kids| !kids.contains(key.kid())) {
                continue;
            }
            if keys.iter().any(|k| k.kid() == key.kid()) {
                return Err(DocumentError::DuplicateKey(key.kid().clone()));
            }
            keys.push(key);
        }
        let mut services = Vec::new();
        for service in array(document, "service")? {
            if let (Some(kind), Some(url)) = (service["type"].as_str(), service["serviceEndpoint"].as_str()) {
                services.push((kind.to_owned(), url.to_owned()));
            }
        }
        Ok(Self { id: asked.clone(), keys, services })
    }

    #[must_use]
    pub const fn id(&self) -> &Did {
        &self.id
    }

    /// The keys, in the document's order.
    #[must_use]
    pub fn keys(&self) -> &[VerificationKey] {
        &self.keys
    }

    /// The key of that id.
    #[must_use]
    pub fn key(&self, kid: &Kid) -> Option<&VerificationKey> {
        self.keys.iter().find(|k| k.kid() == kid)
    }

    /// The key of that id, where it was good at a time: listed, and neither retired nor revoked. A document without a history (of any method but
    /// did:webvh) does not say since when it lists a key.
    #[must_use]
    pub fn key_at(&self, kid: &Kid, at: Timestamp) -> Option<&VerificationKey> {
        self.key(kid).filter(|key| key.usable_at(at).is_ok())
    }

    /// The same document with other keys.
    pub(crate) fn with_keys(self, keys: Vec<VerificationKey>) -> Self {
        Self { keys, ..self }
    }

    /// Whether another document has the same keys in the same states, in whatever order.
    #[must_use]
    pub fn has_keys_of(&self, other: &Self) -> bool {
        self.keys.len() == other.keys.len()
            && self.keys.iter().all(|key| other.key(key.kid()).is_some_and(|known| known == key))
    }

    /// The endpoint of the first service of that type.
    #[must_use]
    pub fn service(&self, kind: &str) -> Option<&str> {
        self.services.iter().find(|(k, _)| k == kind).map(|(_, url)| url.as_str())
    }
}

/// The DID documents that a receiver has: an item that changed house carries signatures of more than one principal.
pub trait Documents {
    /// The document of a DID.
    fn document(&self, did: &Did) -> Option<&DidDocument>;

    /// The key of that id, whosever it is.
    fn key_of(&self, kid: &Kid) -> Option<&VerificationKey> {
        self.document(kid.did())?.key(kid)
    }
}

impl Documents for DidDocument {
    fn document(&self, did: &Did) -> Option<&DidDocument> {
        (self.id == *did).then_some(self)
    }
}

impl Documents for BTreeMap<Did, Arc<DidDocument>> {
    fn document(&self, did: &Did) -> Option<&DidDocument> {
        self.get(did).map(|document| &**document)
    }
}

impl<D: Documents + ?Sized> Documents for Arc<D> {
    fn document(&self, did: &Did) -> Option<&DidDocument> {
        (**self).document(did)
    }
}

fn array<'a>(document: &'a Value, name: &'static str) -> Result<&'a [Value], DocumentError> {
    match document.get(name) {
        None => Ok(&[]),
        Some(Value::Array(values)) => Ok(values),
        Some(_) => Err(DocumentError::Shape(name)),
    }
}

fn absolute(reference: &str, did: &Did) -> Option<Kid> {
    if reference.starts_with('#') { format!("{did}{reference}").parse().ok() } else { reference.parse().ok() }
}

/// The keys that may sign, where the document says which.
fn listed(document: &Value, did: &Did) -> Option<Vec<Kid>> {
    let lists: Vec<&Vec<Value>> =
        ["assertionMethod", "authentication"].iter().filter_map(|name| document[name].as_array()).collect();
    if lists.is_empty() {
        return None;
    }
    let kids = lists.into_iter().flatten().filter_map(|v| absolute(v.as_str().or(v["id"].as_str())?, did));
    Some(kids.collect())
}

fn verification_key(method: &Value, did: &Did) -> Result<Option<VerificationKey>, DocumentError> {
    let Some(kid) = method["id"].as_str().and_then(|id| absolute(id, did)) else { return Ok(None) };
    let controlled = method.get("controller").is_none_or(|c| c == did.as_str());
    let public = match method["type"].as_str() {
        Some("JsonWebKey2020" | "JsonWebKey") => PublicKey::from_jwk(&method["publicKeyJwk"]).ok(),
        Some("Ed25519VerificationKey2020" | "Multikey") => {
            method["publicKeyMultibase"].as_str().and_then(multibase_key)
        }
        _ => None,
    };
    let (Some(public), true, true) = (public, controlled, kid.did() == did) else { return Ok(None) };
    let time = |name: &'static str| match method.get(name) {
        None => Ok(None),
        Some(v) => v.as_str().and_then(|t| t.parse().ok()).map(Some).ok_or(DocumentError::Shape(name)),
    };
    let (expires, revoked) = (time("expires")?, time("revoked")?);
    Ok(Some(VerificationKey { kid, public, since: None, expires, revoked }))
}

/// An Ed25519 key in multibase form: `z`, base58btc of 0xed 0x01 and the 32 bytes.
pub(crate) fn multibase_key(text: &str) -> Option<PublicKey> {
    let (base, bytes) = multibase::decode(text).ok()?;
    match bytes.split_first_chunk::<2>() {
        Some(([0xed, 0x01], key)) if base == multibase::Base::Base58Btc => PublicKey::from_bytes(key).ok(),
        _ => None,
    }
}

/// The document of one who has keys and no gateway: Ed25519 keys, newest first.
#[must_use]
pub fn of_keys(id: &Did, keys: &[VerificationKey]) -> Value {
    let methods: Vec<Value> = keys
        .iter()
        .map(|key| {
            let mut method = json!({
                "id": key.kid(), "type": "JsonWebKey2020", "controller": id, "publicKeyJwk": key.public().jwk(),
            });
            if let Some(at) = key.expires {
                method["expires"] = json!(at);
            }
            if let Some(at) = key.revoked {
                method["revoked"] = json!(at);
            }
            method
        })
        .collect();
    let kids: Vec<&Kid> = keys.iter().map(VerificationKey::kid).collect();
    json!({
        "@context": ["https://www.w3.org/ns/did/v1", "https://w3id.org/security/suites/jws-2020/v1"],
        "id": id,
        "verificationMethod": methods,
        "assertionMethod": kids,
        "authentication": kids,
    })
}

/// The service whose endpoint is the address of a principal's memory manifest.
pub const MEMORY_EXCHANGE: &str = "OAPMemoryExchange";

/// The document that a principal publishes at `/.well-known/did.json` (OAP-CORE 5.1): Ed25519 keys, newest
/// first, the key agreement key, and the three services.
#[must_use]
pub fn publish(id: &Did, keys: &[VerificationKey], agreement: &AgreementKey, origin: &str) -> Value {
    let mut document = of_keys(id, keys);
    document["keyAgreement"] = json!([{
        "id": format!("{id}#agree-1"), "type": "JsonWebKey2020", "controller": id,
        "publicKeyJwk": agreement.jwk(),
    }]);
    document["service"] = json!([
        service(id, "OAPInvocationEndpoint", &format!("{origin}/oap/invoke")),
        service(id, "OAPRevocationStatus", &format!("{origin}/oap/memory/status")),
        service(id, MEMORY_EXCHANGE, &format!("{origin}/.well-known/oap-memory.json")),
    ]);
    document
}

fn service(id: &Did, kind: &str, url: &str) -> Value {
    json!({"id": format!("{id}#{kind}"), "type": kind, "serviceEndpoint": url})
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Signer;

    #[test]
    fn keys_are_compared_by_id_and_not_by_order() {
        let key = |number: u8| {
            let kid = format!("did:web:user.example#key-{number}").parse().unwrap();
            let signer = Signer::from_seed(kid, &[number; 32]).unwrap();
            VerificationKey::new(signer.kid().clone(), *signer.public())
        };
        let document = |keys| DidDocument::new("did:web:user.example".parse().unwrap(), keys);
        let both = document(vec![key(1), key(2)]);
        assert!(both.has_keys_of(&document(vec![key(2), key(1)])));
        let revoked = key(2).revoked("2026-05-01T00:00:00.000Z".parse().unwrap());
        for other in [vec![key(1)], vec![key(1), key(3)], vec![key(1), key(2), key(3)], vec![key(1), revoked]]
        {
            assert!(!both.has_keys_of(&document(other.clone())) && !document(other).has_keys_of(&both));
        }
    }
}

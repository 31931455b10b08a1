//! `GET /.well-known/agent-card.json`: the card by which agents of the A2A protocol find a gateway.
//!
//! A gateway does not speak A2A: the card's one interface is bound to the extension [`EXTENSION`], whose parameters say whose
//! gateway it is and where its own documents are. The card has the members of A2A 1.0, and beside them those that readers of
//! 0.3 need. It is signed as A2A says: a JWS over the RFC 8785 form of the card without `signatures`, no member of which has a
//! default value.

use crate::{Publication, path};
use oap_identity::signed::{SignedError, UnverifiedSignature, sign_document};
use oap_identity::{Did, DidDocument, Signer, Timestamp};
use serde_json::{Map, Value, json};

/// The extension whose parameters name the gateway's documents.
pub const EXTENSION: &str = "urn:oap-memory-gateway:a2a:manifests:1";
/// Largest card that is read, in bytes.
pub const MAX_CARD: usize = 64 * 1024;
/// Most extensions, and most signatures, of a card that are looked at.
pub const MAX_PARTS: usize = 32;

const MEDIA_TYPE: &str = "application/oap+json";

/// The card, signed.
///
/// # Errors
/// [`SignedError`] when a value has no canonical form; none in practice.
pub fn build(publication: &Publication, signer: &Signer) -> Result<Value, SignedError> {
    let url = publication.url(path::INVOKE);
    let mut card = json!({
        "protocolVersion": "0.3.0",
        "name": "OAP memory gateway",
        "description": "One principal's memory gateway after OAP RFC 0010. It shows slices of memory to those who were granted them. It speaks OAP, not A2A: the extension says where its documents are.",
        "version": publication.version,
        "url": url,
        "preferredTransport": EXTENSION,
        "supportedInterfaces": [{"url": url, "protocolBinding": EXTENSION, "protocolVersion": "1.0"}],
        "capabilities": {"extensions": [{
            "uri": EXTENSION,
            "description": "Where the signed manifests of this gateway are, and whose they are",
            "required": true,
            "params": {
                "principal": publication.principal,
                "memory_manifest": publication.url(path::MEMORY_MANIFEST),
                "tool_manifest": publication.url(path::TOOL_MANIFEST),
            },
        }]},
        "defaultInputModes": [MEDIA_TYPE],
        "defaultOutputModes": [MEDIA_TYPE],
        "skills": [{
            "id": "memory_query",
            "name": "Granted memory",
            "description": "Answers questions from the slice of memory that a signed grant shows, each item with its proof",
            "tags": ["memory", "oap"],
        }],
    });
    if !publication.publisher.is_empty() {
        card["provider"] = json!({"organization": publication.publisher, "url": publication.origin});
    }
    sign_document(&mut card, signer)?;
    // A compact JWS with detached payload, header..signature, in the form of two members.
    let compact = card.as_object_mut().and_then(|members| members.remove("signature")).unwrap_or_default();
    let (protected, signature) = compact.as_str().and_then(|text| text.split_once("..")).unwrap_or_default();
    card["signatures"] = json!([{"protected": protected, "signature": signature}]);
    Ok(card)
}

/// Why a card was refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CardError {
    /// It does not name a memory gateway.
    #[error("the agent card has no readable extension {EXTENSION}")]
    NoExtension,
    /// A member that the signature cannot cover.
    #[error("the agent card has a member \"signature\", which no signature covers")]
    Uncovered,
    /// No signature by a key of the principal's that is in force.
    #[error("no key of the principal that it names signed the agent card")]
    Unsigned,
}

/// A card that names a memory gateway. Not verified: whoever wrote it names whom they like.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnverifiedCard {
    card: Map<String, Value>,
    signatures: Vec<Value>,
    principal: Did,
    memory_manifest: String,
}

impl UnverifiedCard {
    /// Reads a card.
    ///
    /// # Errors
    /// [`CardError::NoExtension`], [`CardError::Uncovered`].
    pub fn read(card: Value) -> Result<Self, CardError> {
        let Value::Object(mut card) = card else { return Err(CardError::NoExtension) };
        if card.contains_key("signature") {
            return Err(CardError::Uncovered);
        }
        let parts = |value: Option<Value>| match value {
            Some(Value::Array(parts)) if parts.len() <= MAX_PARTS => parts,
            _ => Vec::new(),
        };
        let signatures = parts(card.remove("signatures"));
        let extensions = parts(card.get("capabilities").map(|of| of["extensions"].clone()));
        let named = extensions.into_iter().find(|extension| extension["uri"] == EXTENSION);
        let params = &named.ok_or(CardError::NoExtension)?["params"];
        let text = |member: &str| params[member].as_str().ok_or(CardError::NoExtension);
        let principal = text("principal")?.parse().map_err(|_| CardError::NoExtension)?;
        let memory_manifest = text("memory_manifest")?.to_owned();
        Ok(Self { card, signatures, principal, memory_manifest })
    }

    /// Whose gateway it says that it is.
    #[must_use]
    pub const fn principal(&self) -> &Did {
        &self.principal
    }

    /// Where it says that the memory manifest is.
    #[must_use]
    pub fn memory_manifest(&self) -> &str {
        &self.memory_manifest
    }

    /// Checks that a key of the principal's that is in force signed the card.
    ///
    /// # Errors
    /// [`CardError::Unsigned`].
    pub fn verify(&self, document: &DidDocument, now: Timestamp) -> Result<(), CardError> {
        let is_signed = *document.id() == self.principal
            && self.signatures.iter().any(|signature| self.is_by(signature, document, now));
        if is_signed { Ok(()) } else { Err(CardError::Unsigned) }
    }

    fn is_by(&self, signature: &Value, document: &DidDocument, now: Timestamp) -> bool {
        let (Some(header), Some(value)) = (signature["protected"].as_str(), signature["signature"].as_str())
        else {
            return false;
        };
        let mut card = self.card.clone();
        card.insert("signature".to_owned(), Value::String(format!("{header}..{value}")));
        let card = Value::Object(card);
        let Ok(signature) = UnverifiedSignature::of(&card) else { return false };
        document.key(signature.kid()).is_some_and(|key| signature.verify(key, now).is_ok())
    }
}

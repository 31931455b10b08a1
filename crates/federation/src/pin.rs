//! What is remembered of a peer: its keys, its endpoints, what it claims, and the hashes of what it published (protocol section 15).
//!
//! [`CheckedDocuments::read`] alone makes a pin, of documents that hold together: the memory manifest is signed by a key of the DID
//! document, and names the tool manifest by its hash.

use oap_identity::document::MEMORY_EXCHANGE;
use oap_identity::json::{self, JsonError};
use oap_identity::jwk::PublicKey;
use oap_identity::origin::Origin;
use oap_identity::signed::UnverifiedSignature;
use oap_identity::{Did, DidDocument, Hash, Kid, Timestamp, VerificationKey};
use oap_manifest::check::{self, ManifestError};
use oap_manifest::handover::Handover;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// Largest memory manifest, and largest list of handovers, of a peer, in bytes.
pub const MAX_MANIFEST: usize = 64 * 1024;
/// Largest tool manifest of a peer, in bytes.
pub const MAX_TOOL: usize = 256 * 1024;
/// Most keys of a peer.
pub const MAX_KEYS: usize = 64;
/// Most endpoints that each manifest of a peer names.
pub const MAX_ENDPOINTS: usize = 32;
/// Longest name or address of an endpoint, in bytes.
pub const MAX_ENDPOINT: usize = 1024;
/// Most conformance levels that a peer claims.
pub const MAX_CLAIMS: usize = 32;
/// Longest name of a conformance level, in bytes.
pub const MAX_CLAIM: usize = 64;
/// How far a peer's clock may be ahead.
pub const SKEW: Duration = Duration::from_secs(300);

/// Why what a peer publishes is not believed. No text quotes it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PaperError {
    /// Not JSON that the wire allows.
    #[error("{0}: {1}")]
    Json(&'static str, JsonError),
    /// A manifest that does not hold.
    #[error(transparent)]
    Manifest(#[from] ManifestError),
    /// A manifest from later than now.
    #[error("the memory manifest says that it is from later than now: one of the two clocks is wrong")]
    Future,
    /// More than is kept of a peer.
    #[error("it names more than {1} {0}")]
    Many(&'static str, usize),
    /// A text that is longer than is kept, or not made of visible ASCII characters.
    #[error("{0}: must be visible ASCII characters, at most {1}")]
    Text(&'static str, usize),
}

/// A key as it stood when it was pinned.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "KeyRow", into = "KeyRow")]
pub struct PinnedKey(VerificationKey);

/// The stored form of a key.
#[derive(Serialize, Deserialize)]
struct KeyRow {
    kid: Kid,
    public: [u8; 32],
    retired_at: Option<Timestamp>,
    revoked_at: Option<Timestamp>,
}

/// Bytes that are no key.
#[derive(Debug, thiserror::Error)]
#[error("not an Ed25519 key")]
struct NoKey;

impl TryFrom<KeyRow> for PinnedKey {
    type Error = NoKey;
    fn try_from(row: KeyRow) -> Result<Self, NoKey> {
        let public = PublicKey::from_bytes(&row.public).map_err(|_| NoKey)?;
        let mut key = VerificationKey::new(row.kid, public);
        if let Some(at) = row.retired_at {
            key = key.retired(at);
        }
        if let Some(at) = row.revoked_at {
            key = key.revoked(at);
        }
        Ok(Self(key))
    }
}

impl From<PinnedKey> for KeyRow {
    fn from(PinnedKey(key): PinnedKey) -> Self {
        Self {
            kid: key.kid().clone(),
            public: *key.public().as_bytes(),
            retired_at: key.retired_at(),
            revoked_at: key.revoked_at(),
        }
    }
}

impl PinnedKey {
    /// The key.
    #[must_use]
    pub const fn key(&self) -> &VerificationKey {
        &self.0
    }

    /// Whether it is neither retired nor revoked.
    #[must_use]
    pub const fn is_in_force(&self) -> bool {
        self.0.retired_at().is_none() && self.0.revoked_at().is_none()
    }
}

impl From<VerificationKey> for PinnedKey {
    fn from(key: VerificationKey) -> Self {
        // Of a pin it counts what ends, and nothing is signed anew by it.
        Self(key.whenever())
    }
}

/// Hashes of what a peer published: of the DID document and the tool manifest, as their bytes came; of the memory manifest, what it says
/// and which key signed it. Each start of a gateway signs the same anew: when it did is in [`Pin::published_at`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[allow(missing_docs, reason = "the names say it")]
pub struct Digests {
    pub document: Hash,
    pub memory: Hash,
    pub tool: Hash,
}

/// What is remembered of a peer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[allow(missing_docs, reason = "the names say it")]
pub struct Pin {
    pub did: Did,
    /// Where its gateway is.
    pub origin: Origin,
    /// Its keys, in the order of its document.
    pub keys: Vec<PinnedKey>,
    /// Addresses by what is asked for there: `memory_manifest`, those of the memory manifest by their names, those of the tool
    /// manifest as `tool.NAME`.
    pub endpoints: BTreeMap<String, String>,
    /// The conformance levels that it claims.
    pub claims: BTreeSet<String>,
    pub digests: Digests,
    /// When it published its memory manifest, by its own word.
    pub published_at: Timestamp,
}

impl Pin {
    /// The key of that id.
    #[must_use]
    pub fn key(&self, kid: &Kid) -> Option<&PinnedKey> {
        self.keys.iter().find(|key| key.0.kid() == kid)
    }

    /// By what the owner says which state is meant.
    ///
    /// # Errors
    /// [`JsonError`]; none in practice.
    pub fn hash(&self) -> Result<Hash, JsonError> {
        Hash::of_canonical(self)
    }
}

/// What a peer publishes, as it came.
#[derive(Debug, Clone, Copy)]
#[allow(missing_docs, reason = "the names say it")]
pub struct Papers<'a> {
    pub document: &'a DidDocument,
    /// The hash of the document's bytes; of a DID that is its own key, of the DID.
    pub document_hash: Hash,
    /// Where the memory manifest was read.
    pub origin: &'a Origin,
    pub memory: &'a [u8],
    pub tool: &'a [u8],
}

/// What a peer publishes now, and that it holds together.
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names say it")]
pub struct CheckedDocuments {
    /// As it would be pinned.
    pub pin: Pin,
    /// The key that signed the memory manifest.
    pub signed_by: Kid,
    /// What its keys said of their successors. Not verified.
    pub handovers: Vec<Handover>,
}

impl CheckedDocuments {
    /// Reads what a peer publishes, and checks that it holds together. The handovers are read apart: they are asked for where a
    /// key is new.
    ///
    /// # Errors
    /// [`PaperError`].
    pub fn read(papers: &Papers, now: Timestamp) -> Result<Self, PaperError> {
        let parse = |name: &'static str, bytes| json::parse(bytes).map_err(|e| PaperError::Json(name, e));
        let (memory, tool) = (parse("oap-memory.json", papers.memory)?, parse("oap-tool.json", papers.tool)?);
        let (document, origin) = (papers.document, papers.origin);
        check::memory(&memory, document, origin.as_str())?;
        // A DID that is its own key has a document without services.
        if document.service(MEMORY_EXCHANGE).is_some() {
            check::tool(&tool, &memory, document)?;
        } else {
            check::tool_of(&tool, &memory, document.id())?;
        }
        let missing = |member| ManifestError::Member { document: "oap-memory.json", member };
        let published_at = memory["published_at"].as_str().and_then(|text| text.parse().ok());
        let published_at: Timestamp = published_at.ok_or(missing("published_at"))?;
        if published_at > now.plus(SKEW) {
            return Err(PaperError::Future);
        }
        let signature =
            UnverifiedSignature::of(&memory).map_err(|e| ManifestError::Signature("oap-memory.json", e))?;
        if document.keys().len() > MAX_KEYS {
            return Err(PaperError::Many("keys", MAX_KEYS));
        }
        let pin = Pin {
            did: document.id().clone(),
            origin: origin.clone(),
            keys: document.keys().iter().cloned().map(PinnedKey).collect(),
            endpoints: endpoints(&memory, &tool, origin)?,
            claims: claims(&tool)?,
            digests: Digests {
                document: papers.document_hash,
                memory: said(&memory, signature.kid())?,
                tool: Hash::of(papers.tool),
            },
            published_at,
        };
        Ok(Self { pin, signed_by: signature.kid().clone(), handovers: Vec::new() })
    }

    /// The same, with what its keys said of their successors.
    #[must_use]
    pub fn with(mut self, handovers: Vec<Handover>) -> Self {
        self.handovers = handovers;
        self
    }
}

/// The hash of what a memory manifest says, and of the key that signed it, whenever that was.
fn said(memory: &Value, signed_by: &Kid) -> Result<Hash, PaperError> {
    let mut says = memory.clone();
    if let Some(members) = says.as_object_mut() {
        members.remove("published_at");
        members.remove("signature");
    }
    Hash::of_canonical(&(signed_by, says)).map_err(|e| PaperError::Json("oap-memory.json", e))
}

/// A text that is kept and shown.
fn plain(member: &'static str, text: &str, most: usize) -> Result<String, PaperError> {
    let is_plain = text.bytes().all(|c| c.is_ascii_graphic());
    if is_plain && text.len() <= most { Ok(text.to_owned()) } else { Err(PaperError::Text(member, most)) }
}

/// Every address that the two manifests name; those of the memory manifest are of its origin.
fn endpoints(memory: &Value, tool: &Value, origin: &Origin) -> Result<BTreeMap<String, String>, PaperError> {
    let manifest = format!("{origin}{}", oap_manifest::path::MEMORY_MANIFEST);
    let mut found = BTreeMap::from([("memory_manifest".to_owned(), manifest)]);
    for (prefix, manifest, is_memory) in [("", memory, true), ("tool.", tool, false)] {
        let named = manifest["endpoints"].as_object().map(|named| named.iter()).into_iter().flatten();
        for (count, (name, url)) in named.enumerate() {
            if count >= MAX_ENDPOINTS {
                return Err(PaperError::Many("endpoints", MAX_ENDPOINTS));
            }
            let name = format!("{prefix}{}", plain("endpoints", name, MAX_ENDPOINT)?);
            let url = if is_memory {
                here("endpoints", url, origin)?
            } else {
                let text = url.as_str().map(str::to_owned).unwrap_or_else(|| url.to_string());
                plain("endpoints", &text, MAX_ENDPOINT)?
            };
            found.insert(name, url);
        }
    }
    Ok(found)
}

/// An address of the manifest's own origin.
fn here(member: &'static str, url: &Value, origin: &Origin) -> Result<String, PaperError> {
    let text = url.as_str().unwrap_or_default();
    if !check::is_here(text, origin.as_str()) {
        return Err(ManifestError::Endpoint(member).into());
    }
    plain(member, text, MAX_ENDPOINT)
}

fn claims(tool: &Value) -> Result<BTreeSet<String>, PaperError> {
    let Some(claimed) = tool.pointer("/conformance/claimed_levels") else { return Ok(BTreeSet::new()) };
    let shape = || ManifestError::Member { document: "oap-tool.json", member: "conformance" };
    let claimed = claimed.as_array().ok_or_else(shape)?;
    if claimed.len() > MAX_CLAIMS {
        return Err(PaperError::Many("conformance levels", MAX_CLAIMS));
    }
    claimed
        .iter()
        .map(|level| plain("claimed_levels", level.as_str().ok_or_else(shape)?, MAX_CLAIM))
        .collect()
}

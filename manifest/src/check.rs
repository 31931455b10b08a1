//! Whether what a gateway publishes holds together: for a grantee before it sends anything, and for probes.

use crate::path;
use oap_identity::signed::{SignedError, UnverifiedSignature};
use oap_identity::{Did, DidDocument, Hash, Timestamp};
use serde_json::Value;
use url::Url;

/// Why a gateway's documents were refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs, reason = "the names say it")]
pub enum ManifestError {
    /// A member that is missing or of the wrong shape.
    #[error("{document}: member {member:?} is missing or has the wrong shape")]
    Member { document: &'static str, member: &'static str },
    #[error("{0}: {1}")]
    Signature(&'static str, SignedError),
    /// Two documents that contradict each other.
    #[error("{0} and {1} disagree on {2}")]
    Disagree(&'static str, &'static str, &'static str),
    /// An endpoint somewhere else, or over plain http.
    #[error("endpoint {0:?} is not an https address of the manifest's own host")]
    Endpoint(&'static str),
}

const MEMORY: &str = "oap-memory.json";
const TOOL: &str = "oap-tool.json";

/// Where a gateway takes requests, from a manifest that was checked. Only [`memory`] makes one.
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(missing_docs, reason = "each is named after what is asked for there")]
pub struct Endpoints {
    pub principal: Did,
    pub query: String,
    /// From grant to token.
    pub grant: String,
    pub export: String,
    /// The status list, where published.
    pub revocation: Option<String>,
    /// Where letters of other gateways are taken, where published.
    pub peer: Option<String>,
    /// Where its log's checkpoint is, where published.
    pub checkpoint: Option<String>,
}

/// Checks a memory manifest that was fetched from `origin` against its principal's document.
///
/// # Errors
/// [`ManifestError`].
pub fn memory(manifest: &Value, document: &DidDocument, origin: &str) -> Result<Endpoints, ManifestError> {
    let missing = |member| ManifestError::Member { document: MEMORY, member };
    let text =
        |pointer: &str, member| manifest.pointer(pointer).and_then(Value::as_str).ok_or(missing(member));
    let principal: Did = text("/principal", "principal")?.parse().map_err(|_| missing("principal"))?;
    if principal != *document.id() {
        return Err(ManifestError::Disagree(MEMORY, "did.json", "the principal"));
    }
    let published: Timestamp =
        text("/published_at", "published_at")?.parse().map_err(|_| missing("published_at"))?;
    let refused = |e| ManifestError::Signature(MEMORY, e);
    let signature = UnverifiedSignature::of(manifest).map_err(refused)?;
    let key = document.key(signature.kid()).ok_or(refused(SignedError::OtherKey))?;
    signature.verify(key, published).map_err(refused)?;
    let endpoint = |member: &'static str| {
        let url = text(&format!("/endpoints/{member}"), "endpoints")?;
        if is_here(url, origin) { Ok(url.to_owned()) } else { Err(ManifestError::Endpoint(member)) }
    };
    Ok(Endpoints {
        query: endpoint("query")?,
        grant: endpoint("grant")?,
        export: endpoint("export")?,
        revocation: manifest.pointer("/endpoints/revocation").map(|_| endpoint("revocation")).transpose()?,
        peer: manifest.pointer("/endpoints/peer").map(|_| endpoint("peer")).transpose()?,
        checkpoint: manifest.pointer("/endpoints/checkpoint").map(|_| endpoint("checkpoint")).transpose()?,
        principal,
    })
}

/// Whether an address is of an origin: an endpoint belongs to the origin that its manifest came from, which cannot send tokens
/// elsewhere.
#[must_use]
pub fn is_here(url: &str, origin: &str) -> bool {
    let (Ok(url), Ok(origin)) = (Url::parse(url), Url::parse(origin)) else { return false };
    url.origin() == origin.origin() && url.username().is_empty() && url.password().is_none()
}

/// Checks that tool manifest, memory manifest and DID document say the same.
///
/// # Errors
/// [`ManifestError`].
pub fn tool(tool: &Value, memory: &Value, document: &DidDocument) -> Result<(), ManifestError> {
    tool_of(tool, memory, document.id())?;
    let invoke = tool["endpoints"]["invoke"].as_str();
    if invoke.is_none() || invoke != document.service("OAPInvocationEndpoint") {
        return Err(ManifestError::Disagree(TOOL, "did.json", "the invocation endpoint"));
    }
    let revocation = memory["endpoints"]["revocation"].as_str();
    if revocation.is_none() || revocation != document.service("OAPRevocationStatus") {
        return Err(ManifestError::Disagree(MEMORY, "did.json", "the revocation endpoint"));
    }
    match document.service("OAPMemoryExchange") {
        Some(url) if url.ends_with(path::MEMORY_MANIFEST) => Ok(()),
        _ => Err(ManifestError::Disagree(MEMORY, "did.json", "the memory manifest's address")),
    }
}

/// Checks that tool manifest and memory manifest say the same, of a principal whose DID is its own key: no document names
/// endpoints.
///
/// # Errors
/// [`ManifestError`].
pub fn tool_of(tool: &Value, memory: &Value, principal: &Did) -> Result<(), ManifestError> {
    if tool["tool"]["did"] != principal.as_str() {
        return Err(ManifestError::Disagree(TOOL, "did.json", "the DID"));
    }
    let hash = Hash::of_canonical(tool)
        .map_err(|_| ManifestError::Member { document: TOOL, member: "oap_version" })?;
    if memory["tool_manifest"]["hash"] != hash.to_string() {
        return Err(ManifestError::Disagree(TOOL, MEMORY, "the tool manifest's hash"));
    }
    if tool["memory_exchange"] != memory["memory_exchange"] {
        return Err(ManifestError::Disagree(TOOL, MEMORY, "memory_exchange"));
    }
    if tool["projections"] != memory["projections"] {
        return Err(ManifestError::Disagree(TOOL, MEMORY, "projections"));
    }
    Ok(())
}

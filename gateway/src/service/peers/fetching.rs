//! What a peer publishes, fetched: every address is a stranger's choice, so every request is guarded and bounded.

use crate::api::peers::{Host, Through};
use crate::error::{Disbelief, PeerError};
use crate::state::gateway::Gateway;
use crate::state::peers::{Copies, Copy};
use oap_federation::pin::{CheckedDocuments, MAX_MANIFEST, MAX_TOOL, PaperError, Papers, Pin};
use oap_identity::document::MEMORY_EXCHANGE;
use oap_identity::origin::Origin;
use oap_identity::outgoing::{Allowance, Answer, SendError, StatusCode};
use oap_identity::resolve::web::MAX_DOCUMENT;
use oap_identity::webvh::MAX_LOG;
use oap_identity::{Did, DidDocument, Hash, json};
use oap_manifest::card::{MAX_CARD, UnverifiedCard};
use oap_manifest::handover::{self, Handover};
use oap_manifest::{check, path};
use std::time::Duration;

/// What each document may take, name and connection included.
pub const DOCUMENT_TIME: Duration = Duration::from_secs(5);

/// What a peer publishes, read and found to hold together.
pub(super) struct Found {
    pub(super) seen: CheckedDocuments,
    pub(super) copies: Copies,
    /// Whether one of them was sent, and not said to be as before.
    pub(super) is_new: bool,
    /// How long the first of its documents to expire may be kept; `None` where none says.
    pub(super) kept: Option<Duration>,
}

/// What leads to the memory manifest of a DID that is its own key.
#[derive(Clone, Copy)]
pub(super) enum Way<'a> {
    /// Nothing but the DID document.
    Document,
    /// Where it was before, or where it was found.
    Known(&'a Origin),
}

/// One document, with how long it may be kept.
struct Got {
    copy: Copy,
    is_new: bool,
    kept: Option<Duration>,
}

/// Reads what a DID's gateway publishes, and checks that it holds together. What was read before is not sent again where it did
/// not change.
pub(super) async fn papers(
    gateway: &Gateway,
    did: &Did,
    way: Way<'_>,
    copies: Option<&Copies>,
) -> Result<Found, PeerError> {
    let (document, hash, got) = document(gateway, did, copies).await?;
    let manifest = match (document.service(MEMORY_EXCHANGE), way) {
        (Some(url), _) => url.to_owned(),
        // The document of any other DID could say so, and does not, or not any more.
        (None, Way::Known(origin)) if did.document_url().is_none() && did.log_url().is_none() => {
            format!("{origin}{}", path::MEMORY_MANIFEST)
        }
        (None, _) => return Err(Disbelief::NoPlace.into()),
    };
    let origin: Option<Origin> = manifest.strip_suffix(path::MEMORY_MANIFEST).and_then(|at| at.parse().ok());
    let origin = origin.ok_or(Disbelief::Place("oap-memory.json"))?;
    let memory = get(gateway, "oap-memory.json", &manifest, copies.map(|c| &c.memory), MAX_MANIFEST).await?;
    let read = json::parse(&memory.copy.bytes);
    let read = read.map_err(|e| Disbelief::Papers(PaperError::Json("oap-memory.json", e)))?;
    let uri = read["tool_manifest"]["uri"].as_str().filter(|uri| check::is_here(uri, origin.as_str()));
    let uri = uri.ok_or(Disbelief::Place("oap-tool.json"))?;
    let tool = get(gateway, "oap-tool.json", uri, copies.map(|c| &c.tool), MAX_TOOL).await?;
    let papers = Papers {
        document: &document,
        document_hash: hash,
        origin: &origin,
        memory: &memory.copy.bytes,
        tool: &tool.copy.bytes,
    };
    let seen = CheckedDocuments::read(&papers, gateway.clock.now()).map_err(Disbelief::Papers)?;
    let kept = [got.as_ref().and_then(|got| got.kept), memory.kept, tool.kept].into_iter().flatten().min();
    let is_new = got.as_ref().is_some_and(|got| got.is_new) || memory.is_new || tool.is_new;
    let copies = Copies { document: got.map(|got| got.copy), memory: memory.copy, tool: tool.copy };
    Ok(Found { seen, copies, is_new, kept })
}

/// The DID document as it is now: no cache stands between.
async fn document(
    gateway: &Gateway,
    did: &Did,
    copies: Option<&Copies>,
) -> Result<(DidDocument, Hash, Option<Got>), PeerError> {
    let known = copies.and_then(|copies| copies.document.as_ref());
    if let Some(url) = did.log_url() {
        let got = get(gateway, "did.jsonl", url.as_str(), known, MAX_LOG).await?;
        let document =
            gateway.resolver.of_log(did, got.copy.bytes.clone()).await.map_err(Disbelief::Resolve)?;
        return Ok((document, Hash::of(&got.copy.bytes), Some(got)));
    }
    let Some(url) = did.document_url() else {
        // A DID that is its own key: nobody is asked.
        let document = gateway.resolver.resolve(did).await.map_err(Disbelief::Resolve)?;
        return Ok(((*document).clone(), Hash::of(did.as_str().as_bytes()), None));
    };
    let got = get(gateway, "did.json", url.as_str(), known, MAX_DOCUMENT).await?;
    let document = DidDocument::parse(&got.copy.bytes, did).map_err(Disbelief::Document)?;
    Ok((document, Hash::of(&got.copy.bytes), Some(got)))
}

/// What the keys of a peer said of their successors.
pub(super) async fn handovers(gateway: &Gateway, pin: &Pin) -> Result<Vec<Handover>, PeerError> {
    let url = format!("{}{}", pin.origin, path::HANDOVERS);
    let got = get(gateway, "oap-key-handovers.json", &url, None, MAX_MANIFEST).await?;
    Ok(handover::read(&got.copy.bytes, &pin.did).map_err(Disbelief::Handovers)?)
}

/// What the gateway of a host publishes: found through its agent card, or its memory manifest at the usual place. The principal
/// itself must say that its gateway is there: whoever has the host may name anybody.
pub(super) async fn at_host(gateway: &Gateway, host: &Host) -> Result<(Through, Found), PeerError> {
    let card = get(gateway, "agent-card.json", &host.url(path::AGENT_CARD), None, MAX_CARD).await;
    let card = match card {
        Ok(got) => json::parse(&got.copy.bytes).ok().and_then(|card| UnverifiedCard::read(card).ok()),
        // Nobody is there, or what is there is not to be read.
        Err(error @ PeerError::Disbelieved(_)) => return Err(error),
        Err(PeerError::Unreachable(..)) => None,
    };
    let (through, principal, manifest) = match &card {
        Some(card) => (Through::AgentCard, card.principal().clone(), card.memory_manifest().to_owned()),
        None => {
            let url = host.url(path::MEMORY_MANIFEST);
            let got = get(gateway, "oap-memory.json", &url, None, MAX_MANIFEST).await?;
            let read = json::parse(&got.copy.bytes);
            let read = read.map_err(|e| Disbelief::Papers(PaperError::Json("oap-memory.json", e)))?;
            let named = read["principal"].as_str().and_then(|did| did.parse().ok());
            (Through::MemoryManifest, named.ok_or(Disbelief::NoPlace)?, url)
        }
    };
    let origin: Option<Origin> = manifest.strip_suffix(path::MEMORY_MANIFEST).and_then(|at| at.parse().ok());
    let origin = origin.ok_or(Disbelief::Place("agent-card.json"))?;
    let found = papers(gateway, &principal, Way::Known(&origin), None).await?;
    if !host.has(&format!("{}/", found.seen.pin.origin)) {
        return Err(Disbelief::OtherGateway.into());
    }
    if let Some(card) = card {
        let (document, ..) = document(gateway, &principal, Some(&found.copies)).await?;
        card.verify(&document, gateway.clock.now()).map_err(Disbelief::Card)?;
    }
    Ok((through, found))
}

/// A document: what is there now, or what was there before where it says that nothing changed.
async fn get(
    gateway: &Gateway,
    name: &'static str,
    url: &str,
    known: Option<&Copy>,
    bytes: usize,
) -> Result<Got, PeerError> {
    let known = known.filter(|copy| copy.url == url && copy.etag.is_some());
    let etag = known.and_then(|copy| copy.etag.as_deref());
    let allowed = Allowance { bytes, time: DOCUMENT_TIME };
    let answer = gateway.resolver.get_unless(url, etag, allowed).await;
    let answer = answer.map_err(|error| not_sent(gateway, name, &error, bytes))?;
    let kept = answer.fresh_for(gateway.clock.now());
    match answer.status {
        StatusCode::OK => {
            let etag = answer.etag().map(str::to_owned);
            let Answer { body: bytes, .. } = answer;
            Ok(Got { copy: Copy { url: url.to_owned(), etag, bytes }, is_new: true, kept })
        }
        StatusCode::NOT_MODIFIED => {
            let copy = known.cloned().ok_or(Disbelief::NotModified(name))?;
            Ok(Got { copy, is_new: false, kept })
        }
        status => Err(PeerError::Unreachable(name, format!("the host answered {}", status.as_u16()))),
    }
}

/// Why there is no answer.
fn not_sent(gateway: &Gateway, name: &'static str, error: &SendError, most: usize) -> PeerError {
    let why = match error {
        SendError::TooLarge(_) => return Disbelief::TooLarge(name, most).into(),
        SendError::Url(_) => return Disbelief::Place(name).into(),
        SendError::NotPublic => "loopback is not a public address, or the address is not https".to_owned(),
        _ if error.is_timeout() => "no answer within five seconds".to_owned(),
        _ if error.untrusted().is_some() => {
            "the host's certificate is not trusted: it is expired, of another name, or of an unknown authority".to_owned()
        }
        _ if error.is_connect() && gateway.config.allow_local_dids => "the host is not reachable".to_owned(),
        _ if error.is_connect() => "the host is not reachable over https at a public address".to_owned(),
        _ => "the answer broke off".to_owned(),
    };
    PeerError::Unreachable(name, why)
}

//! Why a peer could not be read, or is not believed.

use oap_federation::pin::PaperError;
use oap_identity::document::DocumentError;
use oap_identity::resolve::ResolveError;
use oap_manifest::card::CardError;
use oap_manifest::handover::HandoverError;

/// Why there is nothing to pin of a peer. No text quotes what it sent.
#[derive(Debug, thiserror::Error)]
pub enum PeerError {
    /// It did not answer as it must.
    #[error("{0}: {1}")]
    Unreachable(&'static str, String),
    /// It answered, and what it says does not hold.
    #[error(transparent)]
    Disbelieved(#[from] Disbelief),
}

/// Why what a peer shows is not believed.
#[derive(Debug, thiserror::Error)]
pub enum Disbelief {
    /// Its DID document.
    #[error("did.json: {0}")]
    Document(#[from] DocumentError),
    /// A DID without a document.
    #[error(transparent)]
    Resolve(#[from] ResolveError),
    /// Its manifests.
    #[error(transparent)]
    Papers(#[from] PaperError),
    /// What its keys said of their successors.
    #[error("oap-key-handovers.json: {0}")]
    Handovers(#[from] HandoverError),
    /// Its agent card.
    #[error(transparent)]
    Card(#[from] CardError),
    /// A document that does not say where its gateway is.
    #[error(
        "its DID document names no memory gateway (OAPMemoryExchange): ask its owner for the DID of the gateway"
    )]
    NoPlace,
    /// An address that is none.
    #[error("{0}: an address is not https at the place of the memory manifest")]
    Place(&'static str),
    /// More bytes than are read.
    #[error("{0}: larger than {1} bytes")]
    TooLarge(&'static str, usize),
    /// "Not modified" to a question that named nothing.
    #[error("{0}: it says that nothing changed since something that was never read")]
    NotModified(&'static str),
    /// A host that speaks for somebody who does not say that it does.
    #[error("the principal whose gateway the host says it is names another gateway")]
    OtherGateway,
}

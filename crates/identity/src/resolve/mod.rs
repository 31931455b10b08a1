//! From a DID to its document, behind `ssi`'s resolver trait (protocol section 2).
//!
//! did:key is pure. did:web is a request that a stranger chose: see [`web`] and [`crate::outgoing`].

mod cache;
pub mod web;

pub use crate::outgoing::WebPolicy;

use crate::did::Did;
use crate::document::{DidDocument, DocumentError};
use crate::outgoing::{Allowance, Answer, SendError};
use crate::time::Clock;
use cache::Cache;
use did_method_key::DIDKey;
use ssi_dids_core::resolution::{Error as SsiError, Options};
use ssi_dids_core::{DID, DIDResolver};
use std::sync::Arc;
pub use web::GuardedWeb;

/// Why a DID gave no document.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ResolveError {
    /// Not a method that is resolved here.
    #[error("the DID method is not resolved here: use did:web or did:key")]
    Method(String),
    /// The identifier itself is not one of its method.
    #[error("the DID is not a valid identifier of its method")]
    Identifier,
    /// No document: the host did not answer as it must.
    #[error("the DID has no document: {1}")]
    Unreachable(Did, String),
    /// A document that was refused.
    #[error("the document of the DID was refused: {1}")]
    Document(Did, DocumentError),
}

impl ResolveError {
    /// The DID that has no document here: for who asked for it. A stranger is not told what they sent.
    #[must_use]
    pub const fn did(&self) -> Option<&Did> {
        match self {
            Self::Unreachable(did, _) | Self::Document(did, _) => Some(did),
            Self::Method(_) | Self::Identifier => None,
        }
    }
}

/// The one way to foreign documents: did:key and did:web, with success and failure cached.
pub struct Resolver {
    methods: (DIDKey, GuardedWeb),
    cache: Cache,
    clock: Arc<dyn Clock>,
}

impl Resolver {
    /// A resolver with that policy for did:web.
    #[must_use]
    pub fn new(web: GuardedWeb, clock: Arc<dyn Clock>) -> Self {
        Self { methods: (DIDKey, web), cache: Cache::default(), clock }
    }

    /// What is at another address that a stranger chose, fetched as did:web is. Nothing is remembered.
    ///
    /// # Errors
    /// [`SendError`].
    pub async fn get(&self, url: &str, allowed: Allowance) -> Result<Answer, SendError> {
        self.methods.1.get(url, allowed).await
    }

    /// The document of a DID.
    ///
    /// # Errors
    /// [`ResolveError`]; did:web failures are remembered for 30 seconds.
    pub async fn resolve(&self, did: &Did) -> Result<Arc<DidDocument>, ResolveError> {
        if let Some(known) = self.cache.get(did, self.clock.now()) {
            return known;
        }
        let found = self.fetch(did).await.map(Arc::new);
        self.cache.put(did.clone(), found.clone(), self.clock.now());
        found
    }

    /// The document of a DID, where nobody has to be asked: did:key, and what was resolved lately.
    pub async fn at_hand(&self, did: &Did) -> Option<Arc<DidDocument>> {
        if did.method() == "key" {
            return self.resolve(did).await.ok();
        }
        self.cache.get(did, self.clock.now())?.ok()
    }

    async fn fetch(&self, did: &Did) -> Result<DidDocument, ResolveError> {
        let id = DID::new(did.as_str().as_bytes()).map_err(|_| ResolveError::Identifier)?;
        let output = self.methods.resolve_representation(id, Options::default()).await;
        let output = output.map_err(|e| match e {
            SsiError::MethodNotSupported(method) => ResolveError::Method(method),
            SsiError::InvalidMethodSpecificId(_) => ResolveError::Identifier,
            SsiError::Internal(why) => ResolveError::Unreachable(did.clone(), why),
            e => ResolveError::Unreachable(did.clone(), e.to_string()),
        })?;
        DidDocument::parse(&output.document, did).map_err(|e| ResolveError::Document(did.clone(), e))
    }
}

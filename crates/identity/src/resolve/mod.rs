//! From a DID to its document, behind `ssi`'s resolver trait (protocol section 2).
//!
//! did:key and did:jwk are pure. did:web and did:webvh are requests that a stranger chose: see [`web`], [`webvh`] and [`crate::outgoing`].

mod cache;
pub(crate) mod jwk;
pub mod web;
pub mod webvh;

pub use crate::outgoing::WebPolicy;

use crate::did::Did;
use crate::document::{DidDocument, DocumentError};
use crate::outgoing::{Allowance, Answer, HttpClient, SendError};
use crate::time::Clock;
use crate::webvh::{Log, LogError, MAX_LOG, MAX_WITNESS_FILE};
use cache::Cache;
use did_method_key::DIDKey;
use ssi_dids_core::resolution::{Error as SsiError, Options};
use ssi_dids_core::{DID, DIDResolver};
use std::sync::Arc;
use std::time::Duration;
pub use web::GuardedWeb;
use webvh::Tips;
pub use webvh::{KeepTips, Keeping, NotKept, Tip};

/// Why a version that was read is not believed.
const NOT_KEPT: &str = "how far its log was seen could not be written down";

/// Why a DID gave no document.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ResolveError {
    /// Not a method that is resolved here.
    #[error("the DID method is not resolved here: use did:web, did:webvh, did:key or did:jwk")]
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

/// The one way to foreign documents: did:key, did:jwk, did:web and did:webvh, with success and failure cached.
pub struct Resolver {
    methods: (DIDKey, GuardedWeb),
    cache: Cache,
    tips: Tips,
    clock: Arc<dyn Clock>,
}

impl Resolver {
    /// A resolver with that policy for did:web.
    #[must_use]
    pub fn new(web: GuardedWeb, clock: Arc<dyn Clock>) -> Self {
        Self { methods: (DIDKey, web), cache: Cache::default(), tips: Tips::default(), clock }
    }

    /// What is at another address that a stranger chose, fetched as did:web is. Nothing is remembered.
    ///
    /// # Errors
    /// [`SendError`].
    pub async fn get(&self, url: &str, allowed: Allowance) -> Result<Answer, SendError> {
        self.methods.1.get(url, allowed).await
    }

    /// What is at an address that a stranger chose, unless it still is what had that entity tag: then the answer is 304. Of a
    /// loopback name that does not speak TLS, over plain http.
    ///
    /// # Errors
    /// [`SendError`].
    pub async fn get_unless(
        &self,
        url: &str,
        etag: Option<&str>,
        allowed: Allowance,
    ) -> Result<Answer, SendError> {
        self.methods.1.get_unless(&url.parse()?, etag, allowed).await
    }

    /// What is answered to a body that is sent to an address that a stranger chose, within the same bounds.
    ///
    /// # Errors
    /// [`SendError`].
    pub async fn post(
        &self,
        url: &str,
        media_type: &str,
        body: Vec<u8>,
        allowed: Allowance,
    ) -> Result<Answer, SendError> {
        self.methods.1.post(url, media_type, body, allowed).await
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

    /// The document of a DID, asked for anew, where what is at hand is older than `age`. Where nobody answers, what is at hand stays.
    pub async fn newer(&self, did: &Did, age: Duration) -> Option<Arc<DidDocument>> {
        if self.cache.age(did, self.clock.now()).is_some_and(|known| known < age) {
            return None;
        }
        let found = self.fetch(did).await.map(Arc::new).ok()?;
        self.cache.put(did.clone(), Ok(found.clone()), self.clock.now());
        Some(found)
    }

    /// The document of a DID, where nobody has to be asked: did:key, did:jwk, and what was resolved lately.
    pub async fn at_hand(&self, did: &Did) -> Option<Arc<DidDocument>> {
        if matches!(did.method(), "key" | "jwk") {
            return self.resolve(did).await.ok();
        }
        self.cache.get(did, self.clock.now())?.ok()
    }

    /// Takes no notice any more of what is known of a DID: the next one who asks has it resolved anew.
    pub fn forget(&self, did: &Did) {
        self.cache.remove(did);
    }

    /// Holds on to how far the log of a DID was seen: a version that comes after it is kept by what [`Resolver::keep_with`] was given
    /// before it is believed, and none that does not go on from it is. `tip` is what is kept already.
    pub fn hold(&self, did: Did, tip: Option<Tip>) {
        self.tips.hold(did, tip);
    }

    /// Ends that. What was seen lately is remembered all the same.
    pub fn let_go(&self, did: &Did) {
        self.tips.let_go(did);
    }

    /// How far the log of a DID was seen, as far as that is remembered.
    #[must_use]
    pub fn tip(&self, did: &Did) -> Option<Tip> {
        self.tips.of(did)
    }

    /// Has the versions of DIDs that are held on to kept there.
    pub fn keep_with(&self, keeper: Arc<dyn KeepTips>) {
        self.tips.keep_with(keeper);
    }

    /// The client for addresses that a stranger chose.
    #[must_use]
    pub const fn client(&self) -> &HttpClient {
        self.methods.1.client()
    }

    /// The document that a log of a did:webvh proves which was fetched from [`Did::log_url`]. Where the log asks for witnesses, their list is fetched
    /// as well. A log that does not continue the last one that was read of this DID is refused.
    ///
    /// # Errors
    /// [`ResolveError::Document`], [`ResolveError::Unreachable`].
    pub async fn of_log(&self, did: &Did, log: Vec<u8>) -> Result<DidDocument, ResolveError> {
        let refused = |error: LogError| ResolveError::Document(did.clone(), error.into());
        let (asked, now) = (did.clone(), self.clock.now());
        let log = webvh::beside(move || Log::read(&log, &asked, now)).await.map_err(refused)?;
        let url =
            did.log_url().filter(|_| log.is_witnessed()).and_then(|url| url.join(webvh::WITNESSES).ok());
        let witnesses = match url {
            Some(url) => Some(webvh::fetch(&self.methods.1, &url, MAX_WITNESS_FILE).await),
            None => None,
        };
        let witnesses = witnesses.transpose().map_err(|why| ResolveError::Unreachable(did.clone(), why))?;
        let history = webvh::beside(move || log.proven(witnesses.as_deref())).await.map_err(refused)?;
        if let Some(tip) = self.tips.remember(did, &history).map_err(refused)? {
            let not_kept = |_| ResolveError::Unreachable(did.clone(), NOT_KEPT.to_owned());
            self.tips.keep(did, tip).await.map_err(not_kept)?;
        }
        Ok(history.document().clone())
    }

    async fn fetch(&self, did: &Did) -> Result<DidDocument, ResolveError> {
        if did.method() == "jwk" {
            return jwk::document(did);
        }
        if let Some(url) = did.log_url() {
            let log = webvh::fetch(&self.methods.1, &url, MAX_LOG).await;
            let log = log.map_err(|why| ResolveError::Unreachable(did.clone(), why))?;
            return self.of_log(did, log).await;
        }
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

//! did:web over a guarded client.
//!
//! The DID was chosen by a stranger, so the request is too. https only; no redirects; no proxy; 64 KiB; five
//! seconds in all; and only public addresses: the name is resolved once, every address is checked, and the
//! connection goes to one of the checked addresses ([`crate::outgoing`]). `ssi`'s own did:web does none of this.

use crate::did::Did;
use crate::outgoing::public::is_loopback_name;
use crate::outgoing::{
    Allowance, Answer, HttpClient, Method, Outgoing, OutgoingError, Request, SendError, StatusCode, WebPolicy,
};
use ssi_dids_core::DIDMethod;
use ssi_dids_core::document::{Metadata as DocumentMetadata, representation::MediaType};
use ssi_dids_core::resolution::{DIDMethodResolver, Error, Metadata, Options, Output};
use std::time::Duration;
use url::Url;

/// Largest document that is read, in bytes.
pub const MAX_DOCUMENT: usize = 64 * 1024;
/// What a document may take; the time is for name, connection and document together.
const DOCUMENT: Allowance = Allowance { bytes: MAX_DOCUMENT, time: Duration::from_secs(5) };

/// Resolves did:web, and reads other documents of foreign gateways, within the limits of this module.
pub struct GuardedWeb {
    client: HttpClient,
}

impl GuardedWeb {
    /// A client with that policy, trusting the system's authorities and these.
    ///
    /// # Errors
    /// When an authority is not a certificate in DER, or no TLS backend is installed.
    pub fn new(policy: WebPolicy, authorities: &[Vec<u8>]) -> Result<Self, OutgoingError> {
        let outgoing = Outgoing::default().trusting(authorities.iter().map(Vec::as_slice))?;
        Ok(Self { client: outgoing.guarded(policy)? })
    }

    /// What is at an address that a stranger chose, within the limits of this module, and those of the caller.
    ///
    /// # Errors
    /// [`SendError`].
    pub async fn get(&self, url: &str, allowed: Allowance) -> Result<Answer, SendError> {
        self.client.send(Request::get(url), allowed).await
    }

    /// The same, unless it still is what had that entity tag: then the answer is 304. Of a loopback name that does not speak TLS,
    /// over plain http.
    ///
    /// # Errors
    /// [`SendError`].
    pub async fn get_unless(
        &self,
        url: &Url,
        etag: Option<&str>,
        allowed: Allowance,
    ) -> Result<Answer, SendError> {
        let answer = self.ask(url, etag, allowed).await;
        let is_plain = is_loopback_name(url.host_str().unwrap_or_default())
            && answer.as_ref().is_err_and(|error| error.is_connect() && error.untrusted().is_none());
        let mut plain = url.clone();
        // Development: a gateway that serves plain http on loopback. One with a certificate serves https.
        if is_plain && url.scheme() == "https" && plain.set_scheme("http").is_ok() {
            return self.ask(&plain, etag, allowed).await;
        }
        answer
    }

    async fn ask(&self, url: &Url, etag: Option<&str>, allowed: Allowance) -> Result<Answer, SendError> {
        let headers = etag.map(|etag| ("if-none-match", etag)).into_iter().collect();
        self.client.send(Request { headers, ..Request::get(url.as_str()) }, allowed).await
    }

    /// What is answered to a body that is sent to an address that a stranger chose.
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
        let headers = vec![("Content-Type", media_type)];
        let request = Request { method: Method::POST, url, headers, body: Some(body) };
        self.client.send(request, allowed).await
    }

    /// The client that it asks with, held to its policy.
    #[must_use]
    pub const fn client(&self) -> &HttpClient {
        &self.client
    }

    async fn document(&self, did: &Did) -> Result<Vec<u8>, Error> {
        let url = did.document_url().ok_or_else(|| Error::InvalidMethodSpecificId(did.to_string()))?;
        let answer = self.get_unless(&url, None, DOCUMENT).await;
        let answer = answer.map_err(|error| Error::internal(describe(&error, &self.client)))?;
        match answer.status {
            StatusCode::OK => Ok(answer.body),
            StatusCode::NOT_FOUND => Err(Error::NotFound),
            status => Err(Error::internal(format!("the host answered {status}"))),
        }
    }
}

/// Why, without the address that was refused or reached: the caller may be a stranger who maps our network.
pub(super) fn describe(error: &SendError, client: &HttpClient) -> &'static str {
    match error {
        // A did:web has a name, never an address in figures.
        SendError::NotPublic => "loopback is not a public address",
        SendError::TooLarge(_) => "the document is larger than is read",
        _ if error.is_timeout() => "no answer within five seconds",
        _ if error.untrusted().is_some() => {
            "the host's certificate is not trusted: it is expired, of another name, or of an unknown authority"
        }
        _ if error.is_connect() && client.goes_to_local() => "the host is not reachable",
        _ if error.is_connect() => "the host is not reachable over https at a public address",
        _ => "the answer broke off",
    }
}

impl DIDMethod for GuardedWeb {
    const DID_METHOD_NAME: &'static str = "web";
}

impl DIDMethodResolver for GuardedWeb {
    async fn resolve_method_representation<'a>(
        &'a self,
        id: &'a str,
        _options: Options,
    ) -> Result<Output<Vec<u8>>, Error> {
        let did: Did =
            format!("did:web:{id}").parse().map_err(|_| Error::InvalidMethodSpecificId(id.to_owned()))?;
        let document = self.document(&did).await?;
        let metadata = Metadata::from_content_type(Some(MediaType::Json.to_string()));
        Ok(Output::new(document, DocumentMetadata::default(), metadata))
    }
}

//! did:web over a guarded client.
//!
//! The DID was chosen by a stranger, so the request is too. https only; no redirects; no proxy; 64 KiB; five
//! seconds in all; and only public addresses: the name is resolved once, every address is checked, and the
//! connection goes to one of the checked addresses ([`crate::outgoing`]). `ssi`'s own did:web does none of this.

use crate::did::Did;
use crate::outgoing::public::is_loopback_name;
use crate::outgoing::{
    Allowance, Answer, HttpClient, Outgoing, OutgoingError, Request, SendError, StatusCode, WebPolicy,
};
use ssi_dids_core::DIDMethod;
use ssi_dids_core::document::{Metadata as DocumentMetadata, representation::MediaType};
use ssi_dids_core::resolution::{DIDMethodResolver, Error, Metadata, Options, Output};
use std::time::Duration;

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

    async fn document(&self, did: &Did) -> Result<Vec<u8>, Error> {
        let url = did.document_url().ok_or_else(|| Error::InvalidMethodSpecificId(did.to_string()))?;
        let mut answer = self.client.send(Request::get(url.as_str()), DOCUMENT).await;
        if is_loopback_name(url.host_str().unwrap_or_default())
            && answer.as_ref().is_err_and(|error| error.is_connect() && error.untrusted().is_none())
        {
            // Development: a gateway that serves plain http on loopback. One with a certificate serves https.
            let mut plain = url;
            if plain.set_scheme("http").is_ok() {
                answer = self.client.send(Request::get(plain.as_str()), DOCUMENT).await;
            }
        }
        let answer = answer.map_err(|error| Error::internal(describe(&error)))?;
        match answer.status {
            StatusCode::OK => Ok(answer.body),
            StatusCode::NOT_FOUND => Err(Error::NotFound),
            status => Err(Error::internal(format!("the host answered {status}"))),
        }
    }
}

/// Why, without the address that was refused or reached: the caller may be a stranger who maps our network.
fn describe(error: &SendError) -> &'static str {
    match error {
        // A did:web has a name, never an address in figures.
        SendError::NotPublic => "loopback is not a public address",
        SendError::TooLarge(_) => "the document is larger than 64 KiB",
        _ if error.is_timeout() => "no answer within five seconds",
        _ if error.untrusted().is_some() => {
            "the host's certificate is not trusted: it is expired, of another name, or of an unknown authority"
        }
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

//! Requests to gateways, and how much of an answer is read for how long: the one who answers may be hostile.

use crate::endpoint::MEDIA_TYPE;
use crate::error::ClientError;
use oap_identity::outgoing::{Allowance, HttpClient, Method, Request};
use std::time::Duration;

/// Time for request and answer together.
pub const WHOLE: Duration = Duration::from_secs(120);
/// Time for a call of the owner's to the own gateway: a chunk of an import, or an export, may take long.
pub const WHOLE_OWN: Duration = Duration::from_secs(86_400);
/// Time for a bundle.
pub const WHOLE_BUNDLE: Duration = Duration::from_secs(900);
/// Largest answer, in bytes.
pub const MAX_ANSWER: usize = 64 << 20;
/// Largest bundle, in bytes.
pub const MAX_BUNDLE: usize = 512 << 20;

/// What JSON may take.
pub const ANSWER: Allowance = Allowance { bytes: MAX_ANSWER, time: WHOLE };
/// What may take what the own gateway answers its owner.
pub const OWN: Allowance = Allowance { bytes: MAX_BUNDLE, time: WHOLE_OWN };
/// What a bundle may take.
pub const BUNDLE: Allowance = Allowance { bytes: MAX_BUNDLE, time: WHOLE_BUNDLE };

/// A request. It does not print: it holds a credential.
#[derive(Default)]
#[allow(missing_docs, reason = "the names say it")]
pub struct Ask<'a> {
    pub method: &'a str,
    pub url: &'a str,
    /// The credential, if there is one.
    pub authorization: &'a str,
    /// The proof for it.
    pub proof: &'a str,
    pub body: Option<String>,
}

/// Sends a request; the status and the body of the answer.
///
/// # Errors
/// [`ClientError::Unreachable`], also for an answer that takes too long; [`ClientError::Malformed`] for one that is too
/// large.
pub async fn send(
    client: &HttpClient,
    ask: Ask<'_>,
    allowed: Allowance,
) -> Result<(u16, Vec<u8>), ClientError> {
    let url = ask.url;
    let method = Method::from_bytes(ask.method.as_bytes())
        .map_err(|e| ClientError::Unreachable(url.to_owned(), e.to_string()))?;
    let content = ask.body.is_some().then_some(("Content-Type", MEDIA_TYPE));
    let credential = [("Authorization", ask.authorization), ("DPoP", ask.proof)];
    let headers = credential.into_iter().filter(|(_, value)| !value.is_empty()).chain(content).collect();
    let request = Request { method, url, headers, body: ask.body.map(String::into_bytes) };
    let answer = client.send(request, allowed).await.map_err(|e| ClientError::of_send(url, &e))?;
    Ok((answer.status.as_u16(), answer.body))
}

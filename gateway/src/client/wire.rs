//! Requests to other gateways, and how much of an answer is read for how long: the one who answers may be hostile.

use super::ClientError;
use std::time::Duration;

/// Time for request and answer together.
pub const WHOLE: Duration = Duration::from_secs(120);
/// Time for a call of the owner's to the own gateway: a copy of everything may take as long as it does.
pub const WHOLE_OWN: Duration = Duration::from_secs(86_400);
/// Time for a bundle.
pub const WHOLE_BUNDLE: Duration = Duration::from_secs(900);
/// Largest answer, in bytes.
pub const MAX_ANSWER: usize = 64 << 20;
/// Largest bundle, in bytes.
pub const MAX_BUNDLE: usize = 512 << 20;

/// What an answer may take.
#[derive(Debug, Clone, Copy)]
pub struct Allowance {
    /// Bytes of its body.
    pub bytes: usize,
    /// Time for all of it.
    pub time: Duration,
}

impl Allowance {
    /// For JSON.
    pub const ANSWER: Self = Self { bytes: MAX_ANSWER, time: WHOLE };
    /// For what the own gateway answers its owner.
    pub const OWN: Self = Self { bytes: MAX_BUNDLE, time: WHOLE_OWN };
    /// For a bundle.
    pub const BUNDLE: Self = Self { bytes: MAX_BUNDLE, time: WHOLE_BUNDLE };
}

/// A request.
#[derive(Debug, Default)]
pub struct Ask<'a> {
    /// Its method.
    pub method: &'a str,
    /// Its address.
    pub url: &'a str,
    /// The credential, if there is one.
    pub authorization: &'a str,
    /// The proof for it.
    pub proof: &'a str,
    /// JSON.
    pub body: Option<String>,
}

/// Sends a request; the status and the body of the answer.
///
/// # Errors
/// [`ClientError::Unreachable`], also for an answer that takes too long; [`ClientError::Malformed`] for one that is too
/// large.
pub async fn send(
    client: &reqwest::Client,
    ask: Ask<'_>,
    allowed: Allowance,
) -> Result<(u16, Vec<u8>), ClientError> {
    let url = ask.url;
    let unreachable = |e: reqwest::Error| ClientError::Unreachable(url.to_owned(), root_cause(&e));
    let method = reqwest::Method::from_bytes(ask.method.as_bytes())
        .map_err(|e| ClientError::Unreachable(url.to_owned(), e.to_string()))?;
    let mut request = client.request(method, url).timeout(allowed.time);
    if !ask.authorization.is_empty() {
        request = request.header("Authorization", ask.authorization);
    }
    if !ask.proof.is_empty() {
        request = request.header("DPoP", ask.proof);
    }
    if let Some(body) = ask.body {
        request = request.header("Content-Type", crate::api::MEDIA_TYPE).body(body);
    }
    let response = request.send().await.map_err(unreachable)?;
    let status = response.status().as_u16();
    let body = body(response, allowed.bytes).await.map_err(unreachable)?;
    let too_large =
        || ClientError::Malformed(url.to_owned(), format!("it is larger than {} bytes", allowed.bytes));
    Ok((status, body.ok_or_else(too_large)?))
}

/// The body of an answer; `None` when it is larger than so many bytes.
///
/// # Errors
/// What ends the answer early.
pub async fn body(mut response: reqwest::Response, most: usize) -> Result<Option<Vec<u8>>, reqwest::Error> {
    let mut body = Vec::new();
    while let Some(chunk) = response.chunk().await? {
        if chunk.len() > most - body.len() {
            return Ok(None);
        }
        body.extend_from_slice(&chunk);
    }
    Ok(Some(body))
}

fn root_cause(error: &dyn std::error::Error) -> String {
    let mut cause = error;
    while let Some(deeper) = cause.source() {
        cause = deeper;
    }
    cause.to_string()
}

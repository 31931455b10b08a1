//! Requests to others: the one place where HTTP clients are made.
//!
//! No client follows redirects or takes a proxy from the environment; none says who it is. Every answer has a bound in bytes and in
//! time ([`Allowance`]). Where a stranger chose the address, the client is held to a [`WebPolicy`]. TLS is that of the process:
//! whoever runs it installs `rustls`' provider first.

mod kept;
pub mod public;

pub use kept::MAX_ETAG;
pub use public::WebPolicy;
pub use reqwest::{Method, StatusCode};

use public::CheckedNames;
use reqwest::header::{AUTHORIZATION, HeaderValue};
use reqwest::{Certificate, Client, ClientBuilder, redirect, tls};
use rustls::CertificateError;
use std::error::Error;
use std::io;
use std::path::Path;
use std::time::Duration;
use url::Url;

/// Time to connect, TLS included.
pub const CONNECT: Duration = Duration::from_secs(10);
/// Time without a byte of the answer.
pub const SILENCE: Duration = Duration::from_secs(45);

/// How long a connection that nobody uses is kept: for less long than servers do, so that nothing is sent on one that they have closed.
const IDLE: Duration = Duration::from_secs(1);

/// Why there is no client: an authority that is no certificate, or a process without a TLS provider.
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
pub struct OutgoingError(#[from] reqwest::Error);

/// Whom a client trusts: the system's authorities, and those that are named.
#[derive(Debug, Clone, Default)]
pub struct Outgoing {
    authorities: Vec<Certificate>,
    newest_tls: Option<tls::Version>,
}

impl Outgoing {
    /// Trusts these authorities, too. Each is a certificate in DER.
    ///
    /// # Errors
    /// [`OutgoingError`] for something else.
    pub fn trusting<'a>(
        mut self,
        authorities: impl IntoIterator<Item = &'a [u8]>,
    ) -> Result<Self, OutgoingError> {
        for der in authorities {
            self.authorities.push(Certificate::from_der(der)?);
        }
        Ok(self)
    }

    /// Speaks TLS 1.2 and nothing newer, as a probe does that must be refused.
    #[must_use]
    pub const fn old_tls(mut self) -> Self {
        self.newest_tls = Some(tls::Version::TLS_1_2);
        self
    }

    /// A client for addresses that a stranger chose: every one is checked before it is connected to.
    ///
    /// # Errors
    /// [`OutgoingError`].
    pub fn guarded(self, policy: WebPolicy) -> Result<HttpClient, OutgoingError> {
        self.client(Some(policy))
    }

    /// A client for addresses that the user typed or configured: it goes wherever it is sent.
    ///
    /// # Errors
    /// [`OutgoingError`].
    pub fn unguarded(self) -> Result<HttpClient, OutgoingError> {
        self.client(None)
    }

    fn client(self, policy: Option<WebPolicy>) -> Result<HttpClient, OutgoingError> {
        let mut client =
            bare().connect_timeout(CONNECT).read_timeout(SILENCE).tls_certs_merge(self.authorities);
        if let Some(policy) = policy {
            client =
                client.https_only(policy == WebPolicy::Public).dns_resolver(CheckedNames::of_system(policy));
        }
        if let Some(version) = self.newest_tls {
            client = client.tls_version_max(version);
        }
        Ok(HttpClient { client: client.build()?, policy })
    }
}

/// What all clients have in common.
fn bare() -> ClientBuilder {
    Client::builder().no_proxy().redirect(redirect::Policy::none()).pool_idle_timeout(IDLE)
}

/// How much of an answer is read, and how long it is waited for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Allowance {
    /// Bytes of its body.
    pub bytes: usize,
    /// Time for all of it, name and connection included.
    pub time: Duration,
}

/// A request. It does not print: a header may be a credential.
#[derive(Clone)]
#[allow(missing_docs, reason = "the names say it")]
pub struct Request<'a> {
    pub method: Method,
    pub url: &'a str,
    /// Its headers; one may be there more than once.
    pub headers: Vec<(&'a str, &'a str)>,
    pub body: Option<Vec<u8>>,
}

impl<'a> Request<'a> {
    /// A request for what is there.
    #[must_use]
    pub const fn get(url: &'a str) -> Self {
        Self { method: Method::GET, url, headers: Vec::new(), body: None }
    }
}

/// An answer, whole.
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names say it")]
pub struct Answer {
    pub status: StatusCode,
    /// Its headers; their names are in small letters, and what is not UTF-8 in their values is replaced.
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
}

/// Why there is no answer. No text holds the address.
#[derive(Debug, thiserror::Error)]
pub enum SendError {
    /// Not an address.
    #[error("not a URL: {0}")]
    Url(#[from] url::ParseError),
    /// Where a stranger may not lead us.
    #[error("not https at a public address")]
    NotPublic,
    /// The request could not be sent, or the answer broke off.
    #[error(transparent)]
    Failed(reqwest::Error),
    /// More than was allowed for.
    #[error("larger than {0} bytes")]
    TooLarge(usize),
}

impl SendError {
    /// Whether nothing came in time.
    #[must_use]
    pub fn is_timeout(&self) -> bool {
        matches!(self, Self::Failed(error) if error.is_timeout())
    }

    /// Whether nobody was there.
    #[must_use]
    pub fn is_connect(&self) -> bool {
        matches!(self, Self::Failed(error) if error.is_connect())
    }

    /// Why the host is not trusted, if that is it.
    #[must_use]
    pub fn untrusted(&self) -> Option<Untrusted> {
        self.causes().find_map(of_tls).and_then(|error| match error {
            rustls::Error::InvalidCertificate(CertificateError::UnknownIssuer) => Some(Untrusted::Authority),
            rustls::Error::InvalidCertificate(_) => Some(Untrusted::Certificate),
            _ => None,
        })
    }

    /// Each layer below, from the outermost to the innermost.
    fn causes(&self) -> impl Iterator<Item = &(dyn Error + 'static)> {
        let first: Option<&(dyn Error + 'static)> = self.source();
        std::iter::successors(first, |cause| {
            let cause: &(dyn Error + 'static) = *cause;
            cause.source()
        })
    }

    /// What the innermost layer says.
    #[must_use]
    pub fn root_cause(&self) -> String {
        self.causes().last().map_or_else(|| self.to_string(), ToString::to_string)
    }
}

/// Why a host is not trusted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Untrusted {
    /// An authority that is not known here signed its certificate.
    Authority,
    /// Its certificate is expired, of another name, or broken.
    Certificate,
}

/// What `rustls` says in a layer: its errors travel inside those of I/O, which pass over them when they are asked for their source.
fn of_tls<'e>(error: &'e (dyn Error + 'static)) -> Option<&'e rustls::Error> {
    match error.downcast_ref::<io::Error>() {
        Some(error) => of_tls(error.get_ref()?),
        None => error.downcast_ref(),
    }
}

/// A client with the bounds of this module.
#[derive(Debug, Clone)]
pub struct HttpClient {
    client: Client,
    policy: Option<WebPolicy>,
}

impl HttpClient {
    /// A client of whoever listens at a Unix socket; the host of an address does not matter to it.
    ///
    /// # Errors
    /// [`OutgoingError`] in a process without a TLS provider.
    pub fn of_socket(path: &Path) -> Result<Self, OutgoingError> {
        Ok(Self { client: bare().unix_socket(path.to_owned()).build()?, policy: None })
    }

    /// Whether it goes to addresses of this machine and of private networks, too.
    #[must_use]
    pub fn goes_to_local(&self) -> bool {
        self.policy == Some(WebPolicy::AllowLocal)
    }

    /// Sends a request, and reads the answer as far as it is allowed.
    ///
    /// # Errors
    /// [`SendError`].
    pub async fn send(&self, request: Request<'_>, allowed: Allowance) -> Result<Answer, SendError> {
        self.send_until(request, allowed, |_| false).await
    }

    /// The same, with the body read until it is enough: for answers that go on.
    ///
    /// # Errors
    /// [`SendError`].
    pub async fn send_until(
        &self,
        request: Request<'_>,
        allowed: Allowance,
        is_enough: fn(&[u8]) -> bool,
    ) -> Result<Answer, SendError> {
        let url: Url = request.url.parse()?;
        if self.policy.is_some_and(|policy| !policy.allows(&url)) {
            return Err(SendError::NotPublic);
        }
        let mut made = self.client.request(request.method, url).timeout(allowed.time);
        for (name, value) in request.headers {
            made = match HeaderValue::from_str(value) {
                Ok(mut value) => {
                    value.set_sensitive(name.eq_ignore_ascii_case(AUTHORIZATION.as_str()));
                    made.header(name, value)
                }
                // The client says what is wrong with it.
                Err(_) => made.header(name, value),
            };
        }
        if let Some(body) = request.body {
            made = made.body(body);
        }
        let failed = |error: reqwest::Error| SendError::Failed(error.without_url());
        let mut response = made.send().await.map_err(failed)?;
        let headers = response.headers().iter();
        let headers = headers
            .map(|(name, value)| (name.to_string(), String::from_utf8_lossy(value.as_bytes()).into_owned()))
            .collect();
        let mut body = Vec::new();
        while let Some(chunk) = response.chunk().await.map_err(failed)? {
            if chunk.len() > allowed.bytes - body.len() {
                return Err(SendError::TooLarge(allowed.bytes));
            }
            body.extend_from_slice(&chunk);
            if is_enough(&body) {
                break;
            }
        }
        Ok(Answer { status: response.status(), headers, body })
    }
}

//! Reading requests: media type, credentials, body, the caller's address.
//!
//! A handler is given the head alone. The body is read when it asks for it, within what the credential that was checked
//! by then allows: next to nothing without one.

use super::bodies::{Held, Payer};
use super::{App, RequestName, forwarded};
use crate::Error;
use crate::api::MEDIA_TYPE;
use crate::error::{Corrupt, MemberError};
use crate::http::front::{Seat, network};
use crate::state::gateway::blocking;
use crate::state::owner::{Acting, Owner, mark::Mark};
use axum::body::{Body, Bytes, HttpBody};
use axum::extract::{ConnectInfo, FromRequest, FromRequestParts, Path, Request};
use axum::http::{HeaderMap, header, request::Parts};
use axum::response::{IntoResponse, Response};
use governor::clock::{Clock as _, DefaultClock};
use oap_federation::push::MAX_PUSH;
use oap_grants::dpop;
use oap_identity::{RequestId, json};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::future::poll_fn;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use url::form_urlencoded;

/// Largest body of a caller whose credential was not checked, in bytes. A larger one is answered 413.
pub const MAX_ANONYMOUS_BODY: usize = 128 << 10;
/// Largest chunk of an import, in bytes, whatever the limit of the owner's other bodies is. A larger one is answered 413.
pub const MAX_IMPORT: usize = 32 << 20;
/// Largest body that is parsed on an async worker, in bytes; larger ones are parsed beside them.
const INLINE_JSON: usize = 64 << 10;

/// Whether something of a request's body was left unread: its connection cannot serve another request.
#[derive(Debug, Clone)]
pub(super) struct Unread(Arc<AtomicBool>);

impl Unread {
    pub(super) fn of(body: &Body) -> Self {
        Self(Arc::new(AtomicBool::new(!body.is_end_stream())))
    }

    pub(super) fn get(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// Who sends a request, as far as that was checked.
#[derive(Debug, Clone)]
pub(super) enum Sender {
    /// Nobody yet.
    Anonymous,
    /// A grantee with a token and its proof.
    Grantee,
    /// One of the owner's agents with a trust token and its proof.
    Owner(Acting),
    /// One of the owner's own agents, with its API key.
    Agent,
    /// Another gateway, whose signature covers the head.
    Gateway,
}

/// A request whose body is not read yet.
pub struct Incoming {
    app: App,
    parts: Parts,
    body: Option<Body>,
    name: RequestId,
    sender: Sender,
    /// What the body takes of the memory for bodies, until the request is done.
    held: Option<Held>,
    /// Whether the body is a chunk of an import.
    is_import: bool,
}

impl FromRequest<App> for Incoming {
    type Rejection = Error;

    async fn from_request(request: Request, app: &App) -> Result<Self, Error> {
        let (parts, body) = request.into_parts();
        let name = parts.extensions.get::<RequestName>().map(|name| name.0.clone());
        let name = name.ok_or(Corrupt::NoRequestName)?;
        // A credential that was asked for before the body was checked before it.
        let sender = parts.extensions.get().cloned().unwrap_or(Sender::Anonymous);
        Ok(Self { app: app.clone(), parts, body: Some(body), name, sender, held: None, is_import: false })
    }
}

impl Incoming {
    /// The body as JSON.
    ///
    /// # Errors
    /// [`Error::Member`] for another media type, [`Error::Json`], [`Error::TooLarge`], [`Error::Slow`],
    /// [`Error::Busy`].
    pub async fn json(&mut self) -> Result<Value, Error> {
        let body = self.read().await?;
        aside(body, |body| Ok(json::parse(body)?)).await
    }

    /// The body as a wire type.
    ///
    /// # Errors
    /// As [`Incoming::json`].
    pub async fn json_as<T: DeserializeOwned + Send + 'static>(&mut self) -> Result<T, Error> {
        let body = self.read().await?;
        aside(body, |body| Ok(json::parse_as(body)?)).await
    }

    /// The body as JSON whose parts are read one by one.
    ///
    /// # Errors
    /// As [`Incoming::json`], and those of `parse`.
    pub async fn json_with<T: Send + 'static>(
        &mut self,
        parse: impl FnOnce(&[u8]) -> Result<T, Error> + Send + 'static,
    ) -> Result<T, Error> {
        let body = self.read().await?;
        aside(body, parse).await
    }

    /// Says that the body is a chunk of an import: [`MAX_IMPORT`] is its bound, where the sender is the owner.
    pub(super) const fn takes_an_import(&mut self) {
        self.is_import = true;
    }

    /// The part of the path that varies.
    ///
    /// # Errors
    /// [`Error::NotFound`] for what is no text.
    pub(super) async fn place(&mut self) -> Result<String, Error> {
        let found = Path::<String>::from_request_parts(&mut self.parts, &self.app).await;
        found.map(|Path(part)| part).map_err(|_| Error::NotFound)
    }

    /// The parts of the path that vary, of so many.
    ///
    /// # Errors
    /// [`Error::NotFound`] for what is no text.
    pub(super) async fn places<const N: usize>(&mut self) -> Result<[String; N], Error> {
        let found = Path::<Vec<String>>::from_request_parts(&mut self.parts, &self.app).await;
        let parts = found.map(|Path(parts)| parts).map_err(|_| Error::NotFound)?;
        parts.try_into().map_err(|_| Error::NotFound)
    }

    /// Says that the sender's token was checked.
    pub(super) fn sent_by(&mut self, sender: Sender) {
        self.sender = sender;
    }

    /// Checks that the owner sends it, where that depends on what else the head says.
    pub(super) async fn owner<P: Mark>(&mut self) -> Result<Owner<P>, Error> {
        let owner = Owner::from_request_parts(&mut self.parts, &self.app).await?;
        self.sender = Sender::Owner(Acting::from(&owner));
        Ok(owner)
    }

    /// Most bytes of the body.
    fn limit(&self) -> usize {
        let configured = self.app.gateway.config.max_body_bytes;
        match self.sender {
            Sender::Anonymous => configured.min(MAX_ANONYMOUS_BODY),
            Sender::Owner(_) if self.is_import => configured.max(MAX_IMPORT),
            Sender::Gateway => MAX_PUSH,
            Sender::Grantee | Sender::Owner(_) | Sender::Agent => configured,
        }
    }

    /// The body of JSON, once.
    async fn read(&mut self) -> Result<Bytes, Error> {
        self.check_media_type()?;
        self.read_any().await
    }

    /// The fields of a form; `None` where it is no form, or longer than that.
    ///
    /// # Errors
    /// As [`Incoming::json`].
    pub(super) async fn form(&mut self, most: usize) -> Result<Option<Vec<(String, String)>>, Error> {
        if !self.media_type().eq_ignore_ascii_case("application/x-www-form-urlencoded") {
            return Ok(None);
        }
        let body = self.read_any().await?;
        let fields = || form_urlencoded::parse(&body).into_owned().collect();
        Ok((body.len() <= most).then(fields))
    }

    /// The body, once, whatever it is.
    async fn read_any(&mut self) -> Result<Bytes, Error> {
        let limit = self.limit();
        let body = self.body.take().ok_or(Corrupt::BodyReadTwice)?;
        let payer = match self.sender {
            Sender::Anonymous => Payer::Anonymous,
            Sender::Grantee | Sender::Owner(_) | Sender::Agent | Sender::Gateway => Payer::Known,
        };
        let held = self.held.insert(self.app.bodies.begin(payer));
        // Whoever is not known and does not send what was announced holds no place that another wants.
        let seat = self.parts.extensions.get::<Seat>().filter(|_| payer == Payer::Anonymous).cloned();
        seat.iter().for_each(Seat::wait);
        let collected = tokio::time::timeout(self.app.deadlines.body, collect(body, limit, held)).await;
        seat.iter().for_each(Seat::work);
        let body = collected.map_err(|_| Error::Slow)??;
        if let Some(unread) = self.parts.extensions.get::<Unread>() {
            unread.0.store(false, Ordering::Relaxed);
        }
        if let Sender::Owner(acting) = &self.sender {
            // It may have taken long: what the head had may have ended.
            acting.still_may(&self.app.gateway.keys(), self.app.gateway.clock.raw())?;
            acting.stands(&self.app.gateway.store)?;
        }
        Ok(body)
    }

    /// The body as it came.
    ///
    /// # Errors
    /// As [`Incoming::json`].
    pub(super) async fn bytes(&mut self) -> Result<Bytes, Error> {
        self.read().await
    }

    /// The body as it came, whatever its type, of at most so many bytes.
    ///
    /// # Errors
    /// As [`Incoming::json`], but for the media type.
    pub(super) async fn any_bytes(&mut self, most: usize) -> Result<Bytes, Error> {
        let body = self.read_any().await?;
        if body.len() > most { Err(Error::TooLarge(most)) } else { Ok(body) }
    }

    /// Path and query of the address, as they came.
    pub(super) fn raw_target(&self) -> &str {
        self.parts.uri.path_and_query().map_or("/", |target| target.as_str())
    }

    /// What stands behind the `?` of the address, as it came.
    pub(super) fn raw_parameters(&self) -> &str {
        self.parts.uri.query().unwrap_or_default()
    }

    /// The media type that is given, without its parameters.
    fn media_type(&self) -> &str {
        let given = self.parts.headers.get(header::CONTENT_TYPE).and_then(|v| v.to_str().ok());
        given.unwrap_or_default().split(';').next().unwrap_or_default().trim()
    }

    fn check_media_type(&self) -> Result<(), Error> {
        let essence = self.media_type();
        if essence.eq_ignore_ascii_case(MEDIA_TYPE) || essence.eq_ignore_ascii_case("application/json") {
            return Ok(());
        }
        Err(Error::Member("content-type", MemberError::MediaType))
    }

    /// The query of the address as a wire type.
    ///
    /// # Errors
    /// [`Error::Member`], naming the parameter.
    pub fn query<T: DeserializeOwned>(&self) -> Result<T, Error> {
        json::from_parameters(self.parameters()?).map_err(|e| Error::Member("query", e.into()))
    }

    /// The parameters of the address, as they were given.
    ///
    /// # Errors
    /// [`Error::Member`].
    pub fn parameters(&self) -> Result<Vec<(String, String)>, Error> {
        let parameters = axum::extract::Query::<Vec<(String, String)>>::try_from_uri(&self.parts.uri);
        parameters.map(|found| found.0).map_err(|_| Error::Member("query", MemberError::Parameters))
    }

    /// The request's name.
    #[must_use]
    pub const fn name(&self) -> &RequestId {
        &self.name
    }

    /// The values of a header.
    #[must_use]
    pub fn header(&self, name: &str) -> Vec<String> {
        values(&self.parts.headers, name)
    }

    /// Every header.
    pub(super) const fn headers(&self) -> &HeaderMap {
        &self.parts.headers
    }

    /// The method and the address as the gateway publishes it, whatever the caller's `Host` says.
    #[must_use]
    pub fn target(&self) -> (String, String) {
        target(&self.parts, &self.app)
    }

    /// What every handler is given.
    pub(super) const fn app(&self) -> &App {
        &self.app
    }

    /// Takes one from what the caller's address may do without a credential.
    ///
    /// # Errors
    /// [`Error::RateLimited`].
    pub fn rate_limit(&self) -> Result<(), Error> {
        let room = self.app.anonymous.check_key(&self.network());
        room.map_err(|full| Error::RateLimited(full.wait_time_from(DefaultClock::default().now())))
    }

    /// The address of whoever is connected: the caller's, or a proxy's.
    pub(super) fn peer(&self) -> Option<IpAddr> {
        self.parts.extensions.get::<ConnectInfo<SocketAddr>>().map(|info| info.0.ip())
    }

    /// The network of the caller: an IPv4 address, or an IPv6 /64.
    pub(super) fn network(&self) -> IpAddr {
        let trusted = &self.app.gateway.config.trusted_proxies;
        let caller = self.peer().map(|peer| forwarded::client(peer, &self.parts.headers, trusted));
        caller.map_or(IpAddr::V6(Ipv6Addr::UNSPECIFIED), network)
    }
}

/// Reads a body that is at most so long; every byte that is kept is paid for first.
async fn collect(mut body: Body, limit: usize, held: &mut Held) -> Result<Bytes, Error> {
    if body.size_hint().lower() > limit as u64 {
        return Err(Error::TooLarge(limit));
    }
    let mut read = Vec::new();
    while let Some(frame) = poll_fn(|cx| Pin::new(&mut body).poll_frame(cx)).await {
        let frame = frame.map_err(|_| Error::Member("body", MemberError::BrokeOff))?;
        let Ok(chunk) = frame.into_data() else { continue };
        if chunk.len() > limit - read.len() {
            return Err(Error::TooLarge(limit));
        }
        held.pay(chunk.len())?;
        read.extend_from_slice(&chunk);
    }
    Ok(read.into())
}

/// Parses a body: a large one beside the async workers, so that it holds up nobody else.
async fn aside<T: Send + 'static>(
    body: Bytes,
    parse: impl FnOnce(&[u8]) -> Result<T, Error> + Send + 'static,
) -> Result<T, Error> {
    if body.len() <= INLINE_JSON {
        return parse(&body);
    }
    blocking(move || parse(&body)).await
}

/// The method and the address as the gateway publishes it, whatever the caller's `Host` says.
pub(super) fn target(parts: &Parts, app: &App) -> (String, String) {
    (parts.method.to_string(), app.gateway.url(parts.uri.path()))
}

/// The values of a header.
pub(super) fn values(headers: &HeaderMap, name: &str) -> Vec<String> {
    headers.get_all(name).iter().map(|v| String::from_utf8_lossy(v.as_bytes()).into_owned()).collect()
}

/// Calls something with what the caller presented.
pub(super) fn presented<T>(request: &Incoming, then: impl FnOnce(&oap_grants::verify::Presented) -> T) -> T {
    let (authorization, dpop) = (request.header("authorization"), request.header("dpop"));
    let authorization: Vec<&str> = authorization.iter().map(String::as_str).collect();
    let dpop: Vec<&str> = dpop.iter().map(String::as_str).collect();
    let (method, url) = request.target();
    then(&oap_grants::verify::Presented {
        authorization: &authorization,
        dpop: &dpop,
        request: dpop::Request { method: &method, url: &url },
    })
}

/// A body in the gateway's media type.
pub struct Oap<T>(pub T);

impl<T: Serialize> IntoResponse for Oap<T> {
    fn into_response(self) -> Response {
        match serde_json::to_vec(&self.0) {
            Ok(body) => ([(header::CONTENT_TYPE, MEDIA_TYPE)], body).into_response(),
            Err(error) => Error::from(error).into_response(),
        }
    }
}

/// Bytes that are in the gateway's media type already.
#[must_use]
pub fn oap_bytes(body: Vec<u8>) -> Response {
    ([(header::CONTENT_TYPE, MEDIA_TYPE)], body).into_response()
}

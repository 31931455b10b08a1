//! Reading requests: body, media type, credentials, the caller's address.

use super::{App, RequestName, forwarded};
use crate::Error;
use axum::body::Bytes;
use axum::extract::{ConnectInfo, FromRequest, OriginalUri, Request};
use axum::http::{HeaderMap, header, request::Parts};
use axum::response::{IntoResponse, Response};
use oap_grants::dpop;
use oap_identity::{RequestId, json};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};

/// The media type in and out; `application/json` is accepted.
pub const MEDIA_TYPE: &str = "application/oap+json";

/// Largest chunk of an import, in bytes, whatever the limit of other bodies is.
pub const MAX_IMPORT: usize = 32 << 20;

/// A request whose body was read within the limit.
pub struct Incoming {
    parts: Parts,
    body: Bytes,
    name: RequestId,
}

impl FromRequest<App> for Incoming {
    type Rejection = Error;

    async fn from_request(request: Request, app: &App) -> Result<Self, Error> {
        let (parts, body) = request.into_parts();
        let import =
            parts.uri.path().starts_with("/oap/owner/import/") || parts.uri.path().starts_with("/import/");
        let limit = app.gateway.config.max_body_bytes.max(if import { MAX_IMPORT } else { 0 });
        let body = axum::body::to_bytes(body, limit).await.map_err(|_| Error::TooLarge(limit))?;
        let name = parts.extensions.get::<RequestName>().map(|name| name.0.clone());
        let name = name.ok_or_else(|| Error::Corrupt("a request without name".into()))?;
        Ok(Self { parts, body, name })
    }
}

impl Incoming {
    /// The body as JSON.
    ///
    /// # Errors
    /// [`Error::Member`] for another media type, [`Error::Json`].
    pub fn json(&self) -> Result<Value, Error> {
        self.check_media_type()?;
        Ok(json::parse(&self.body)?)
    }

    /// The body as a wire type.
    ///
    /// # Errors
    /// As [`Incoming::json`].
    pub fn json_as<T: DeserializeOwned>(&self) -> Result<T, Error> {
        self.check_media_type()?;
        Ok(json::parse_as(&self.body)?)
    }

    /// The bytes of the body, which says that it is JSON; for what reads its parts one by one.
    ///
    /// # Errors
    /// [`Error::Member`] for another media type.
    pub fn json_bytes(&self) -> Result<&[u8], Error> {
        self.check_media_type()?;
        Ok(&self.body)
    }

    fn check_media_type(&self) -> Result<(), Error> {
        let given = self.parts.headers.get(header::CONTENT_TYPE).and_then(|v| v.to_str().ok());
        let essence = given.unwrap_or_default().split(';').next().unwrap_or_default().trim();
        if essence.eq_ignore_ascii_case(MEDIA_TYPE) || essence.eq_ignore_ascii_case("application/json") {
            return Ok(());
        }
        Err(Error::Member("content-type", format!("must be {MEDIA_TYPE} or application/json")))
    }

    /// The query of the address as a wire type.
    ///
    /// # Errors
    /// [`Error::Member`], naming the parameter.
    pub fn query<T: DeserializeOwned>(&self) -> Result<T, Error> {
        axum::extract::Query::try_from_uri(&self.parts.uri)
            .map(|query| query.0)
            .map_err(|e| Error::Member("query", e.to_string()))
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

    /// The method and the address as the gateway publishes it, whatever the caller's `Host` says.
    #[must_use]
    pub fn target(&self, app: &App) -> (String, String) {
        // Nested routers see the rest of the path; the proof is for the whole of it.
        let original = self.parts.extensions.get::<OriginalUri>().map_or(&self.parts.uri, |uri| &uri.0);
        (self.parts.method.to_string(), app.gateway.url(original.path()))
    }

    /// Takes one from what the caller's address may do without a credential.
    ///
    /// # Errors
    /// [`Error::RateLimited`].
    pub fn limit(&self, app: &App) -> Result<(), Error> {
        let peer = self.parts.extensions.get::<ConnectInfo<SocketAddr>>().map(|info| info.0.ip());
        let trusted = &app.gateway.config.trusted_proxies;
        let caller = peer.map(|peer| forwarded::client(peer, &self.parts.headers, trusted));
        let address = caller.map_or(IpAddr::V6(Ipv6Addr::UNSPECIFIED), network);
        app.anonymous.check_key(&address).map_err(|_| Error::RateLimited)
    }
}

/// An address as far as it tells callers apart: IPv6 by its /64.
fn network(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(v6) => {
            let [a, b, c, d, ..] = v6.segments();
            IpAddr::V6(Ipv6Addr::new(a, b, c, d, 0, 0, 0, 0))
        }
        v4 => v4,
    }
}

fn values(headers: &HeaderMap, name: &str) -> Vec<String> {
    headers.get_all(name).iter().map(|v| String::from_utf8_lossy(v.as_bytes()).into_owned()).collect()
}

/// Calls something with what the caller presented.
pub(super) fn presented<T>(
    request: &Incoming,
    app: &App,
    then: impl FnOnce(&oap_grants::verify::Presented) -> T,
) -> T {
    let (authorization, dpop) = (request.header("authorization"), request.header("dpop"));
    let authorization: Vec<&str> = authorization.iter().map(String::as_str).collect();
    let dpop: Vec<&str> = dpop.iter().map(String::as_str).collect();
    let (method, url) = request.target(app);
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

//! HTTP: bytes in, typed requests to the services, bytes out.

pub mod bodies;
pub mod brain;
mod coordination;
mod credential;
mod devices;
pub mod discovery;
mod door;
pub mod error;
pub mod exchange;
pub mod forwarded;
pub mod front;
pub mod invoke;
pub mod jobs;
mod letters;
mod mcp;
mod mcp_grant;
mod oauth;
mod openintent;
mod own_key;
mod owner;
pub mod request;
mod resource;
mod routes;
mod subscriptions;
mod witnesses;

use crate::api::routes::{Access, ROUTES};
use crate::http::front::Deadlines;
use crate::mcp::Turns;
use crate::state::gateway::Gateway;
use axum::extract::{DefaultBodyLimit, State};
use axum::http::{HeaderValue, Method, StatusCode, header};
use axum::middleware;
use axum::response::{IntoResponse, Response};
use axum::{Json, Router};
use bodies::Bodies;
use governor::clock::DefaultClock;
use governor::state::keyed::DashMapStateStore;
use governor::{Quota, RateLimiter};
use oap_identity::RequestId;
use serde_json::json;
use std::any::Any;
use std::net::IpAddr;
use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Notify;
use tower_http::catch_panic::CatchPanicLayer;
use tower_http::timeout::TimeoutLayer;

/// The scheme of tokens that are bound to a key.
const DPOP: &str = "DPoP algs=\"EdDSA\"";

/// What every handler is given.
#[derive(Clone)]
#[allow(missing_docs, reason = "the names say it")]
pub struct App {
    pub gateway: Arc<Gateway>,
    deadlines: Deadlines,
    bodies: Bodies,
    /// The turns of calls of memory tools.
    turns: Turns,
    /// The turns of calls under grants.
    granted: mcp_grant::GrantTurns,
    anonymous: Arc<RateLimiter<IpAddr, DashMapStateStore<IpAddr>, DefaultClock>>,
    /// Told when the owner ends the process over its socket; `None` where that is not what ends it.
    lock: Option<Arc<Notify>>,
}

impl App {
    /// Handlers for a gateway.
    #[must_use]
    pub fn new(gateway: Arc<Gateway>) -> Self {
        Self::within(gateway, Deadlines::default())
    }

    /// The same, with other deadlines.
    #[must_use]
    pub fn within(gateway: Arc<Gateway>, deadlines: Deadlines) -> Self {
        let rpm = NonZeroU32::new(gateway.config.anonymous_rpm).unwrap_or(NonZeroU32::MIN);
        let anonymous = Arc::new(RateLimiter::keyed(Quota::per_minute(rpm)));
        let (turns, granted) = (Turns::default(), mcp_grant::GrantTurns::default());
        Self { gateway, deadlines, bodies: Bodies::default(), turns, granted, anonymous, lock: None }
    }

    /// The turns of calls under grants.
    #[must_use]
    pub fn turns_of_grants(&self) -> Turns {
        self.granted.all()
    }

    /// Forgets the addresses that have not called lately.
    pub fn forget_addresses(&self) {
        self.anonymous.retain_recent();
        self.anonymous.shrink_to_fit();
    }

    /// The same, whose owner's socket can end the process: `lock` is told.
    #[must_use]
    pub fn with_lock(self, lock: Arc<Notify>) -> Self {
        Self { lock: Some(lock), ..self }
    }

    /// Every route of the gateway that everybody can reach.
    pub fn router(self) -> Router {
        let timeout = self.deadlines.request;
        self.finished(routes::public(), Some(timeout))
    }

    /// The routes of the owner's own socket: a chunk of an import may take as long as it does.
    pub fn owner_router(self) -> Router {
        let routes = routes::socket(self.lock.is_some());
        self.finished(routes, None)
    }

    /// These routes, each answer made in time, named, logged and written out.
    fn finished(self, routes: Router<Self>, timeout: Option<Duration>) -> Router {
        let routes = routes.fallback(not_found).layer(CatchPanicLayer::custom(panicked));
        let late = |time| TimeoutLayer::with_status_code(StatusCode::GATEWAY_TIMEOUT, time);
        let routes = match timeout {
            Some(time) => routes.layer(late(time)),
            None => routes,
        };
        routes
            // Outermost, so that every refusal has a body, whoever made it.
            .layer(middleware::from_fn_with_state(self.clone(), finish))
            // The handlers read bodies themselves, once they know the sender.
            .layer(DefaultBodyLimit::disable())
            .with_state(self)
    }
}

/// The name under which a request is logged and answered.
#[derive(Debug, Clone)]
pub struct RequestName(pub RequestId);

async fn not_found() -> Response {
    crate::Error::NotFound.into_response()
}

/// A panic is one request's failure. What it says is not told: it may hold content.
fn panicked(_: Box<dyn Any + Send>) -> Response {
    crate::Error::Panicked.into_response()
}

/// Names the request, logs it, and writes out what a handler refused.
async fn finish(
    State(app): State<App>,
    mut request: axum::extract::Request,
    next: middleware::Next,
) -> Response {
    let given = request.headers().get("oap-request-id").and_then(|v| v.to_str().ok()?.parse().ok());
    let clock = &app.gateway.clock;
    let name = given.unwrap_or_else(|| RequestId::new(clock.now(), &*app.gateway.random));
    request.extensions_mut().insert(RequestName(name.clone()));
    let route = request
        .extensions()
        .get::<axum::extract::MatchedPath>()
        .map_or("unknown", |path| path.as_str())
        .to_owned();
    let (method, began) = (known(request.method()), clock.now());
    // What is under it and is no public document is one caller's.
    let well_known = route.starts_with("/.well-known/")
        && ROUTES.iter().any(|listed| listed.path == route && listed.permission == Access::Public);
    let unread = request::Unread::of(request.body());
    request.extensions_mut().insert(unread.clone());
    // Asked again once there is an answer: what no transaction records does not leave during a lockdown either.
    let is_shut = || app.gateway.is_locked_down() && !stays_in_lockdown(method, &route);
    let mut response =
        if is_shut() { crate::Error::LockedDown.into_response() } else { next.run(request).await };
    if is_shut() {
        response = crate::Error::LockedDown.into_response();
    }
    let refusal = response.extensions_mut().remove::<error::Refusal>();
    if let Some(refusal) = refusal.or_else(|| error::Refusal::of_bare(&response)) {
        let owner = ROUTES.iter().any(|listed| listed.path == route && listed.is_the_owners());
        let message = refusal.for_owner.filter(|_| owner).unwrap_or(refusal.message);
        let body = json!({"error": refusal.code, "message": message, "request_id": name});
        let headers = std::mem::take(response.headers_mut());
        response = (refusal.status, headers, Json(body)).into_response();
        set(&mut response, header::CONTENT_TYPE, crate::api::MEDIA_TYPE);
    }
    set(&mut response, header::X_CONTENT_TYPE_OPTIONS, "nosniff");
    let says_how = response.headers().contains_key(header::WWW_AUTHENTICATE);
    if response.status() == StatusCode::UNAUTHORIZED && !says_how {
        let agent = ROUTES.iter().any(|listed| listed.path == route && listed.permission == Access::Agent);
        set(&mut response, header::WWW_AUTHENTICATE, if agent { "Bearer" } else { DPOP });
        // Agents have keys there, and grantees have tokens.
        if route == crate::oauth::RESOURCE {
            response.headers_mut().append(header::WWW_AUTHENTICATE, HeaderValue::from_static(DPOP));
        }
    }
    // A refusal may end at any moment: nobody is to keep it.
    let is_there = response.status().is_success() || response.status() == StatusCode::NOT_MODIFIED;
    let kept = well_known && is_there;
    set(&mut response, header::CACHE_CONTROL, if kept { "max-age=60" } else { "no-store" });
    if unread.get() {
        // The server closes the connection after this answer, for the rest of the body stands in the way of the next request.
        set(&mut response, header::CONNECTION, "close");
    }
    let millis = clock.now().millis() - began.millis();
    let status = response.status().as_u16();
    metrics::histogram!("oap_request_seconds", "route" => route.clone()).record(millis as f64 / 1000.0);
    metrics::counter!("oap_requests_total", "route" => route.clone(), "status" => status.to_string())
        .increment(1);
    tracing::info!(request_id = %name, method, route, status, millis, "request");
    response
}

/// Whether a route is served during a lockdown. What is no route is not.
fn stays_in_lockdown(method: &str, path: &str) -> bool {
    let method = if method == "HEAD" { "GET" } else { method };
    ROUTES.iter().any(|route| route.path == path && route.method == method && route.stays_in_lockdown())
}

/// A method as it is logged: a caller can name one as long as it likes.
fn known(method: &Method) -> &'static str {
    let known = ["GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS"];
    known.into_iter().find(|name| method == name).unwrap_or("other")
}

fn set(response: &mut Response, name: header::HeaderName, value: &'static str) {
    response.headers_mut().insert(name, HeaderValue::from_static(value));
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::body::Body;
    use axum::http::Request;
    use axum::routing::get;
    use tower::ServiceExt;

    /// A panic in a handler is an answer of that request, and says nothing of what panicked.
    #[tokio::test]
    #[expect(clippy::panic, reason = "the panic is what is tested")]
    async fn a_panic_is_one_requests_failure() {
        async fn broken() -> Response {
            panic!("content of an item");
        }
        let router = Router::new().route("/", get(broken)).layer(CatchPanicLayer::custom(panicked));
        let request = || Request::get("/").body(Body::empty()).unwrap();
        for _ in 0..2 {
            let mut response = router.clone().oneshot(request()).await.unwrap();
            assert_eq!(response.status(), StatusCode::INTERNAL_SERVER_ERROR);
            let refusal = response.extensions_mut().remove::<error::Refusal>().unwrap();
            assert!(!refusal.message.contains("content"));
        }
    }
}

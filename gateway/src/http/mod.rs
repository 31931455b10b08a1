//! HTTP: bytes in, typed requests to the services, bytes out.

pub mod discovery;
pub mod error;
pub mod exchange;
pub mod forwarded;
pub mod invoke;
pub mod owner;
pub mod request;

use crate::gateway::Gateway;
use axum::extract::{DefaultBodyLimit, State};
use axum::http::{HeaderValue, header};
use axum::middleware;
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use governor::clock::DefaultClock;
use governor::state::keyed::DashMapStateStore;
use governor::{Quota, RateLimiter};
use oap_identity::RequestId;
use oap_manifest::path;
use serde_json::json;
use std::net::IpAddr;
use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;
use tower_http::catch_panic::CatchPanicLayer;
use tower_http::timeout::TimeoutLayer;

/// Longest time for one request.
const TIMEOUT: Duration = Duration::from_secs(30);

/// What every handler is given.
#[derive(Clone)]
pub struct App {
    /// The gateway.
    pub gateway: Arc<Gateway>,
    anonymous: Arc<RateLimiter<IpAddr, DashMapStateStore<IpAddr>, DefaultClock>>,
}

impl App {
    /// Handlers for a gateway.
    #[must_use]
    pub fn new(gateway: Arc<Gateway>) -> Self {
        let rpm = NonZeroU32::new(gateway.config.anonymous_rpm).unwrap_or(NonZeroU32::MIN);
        Self { gateway, anonymous: Arc::new(RateLimiter::keyed(Quota::per_minute(rpm))) }
    }

    /// Forgets the addresses that have not called lately.
    pub fn forget_addresses(&self) {
        self.anonymous.retain_recent();
        self.anonymous.shrink_to_fit();
    }

    /// Every route of the gateway.
    pub fn router(self) -> Router {
        let routes = Router::new()
            .route(path::MEMORY_MANIFEST, get(discovery::memory))
            .route(path::TOOL_MANIFEST, get(discovery::tool))
            .route(path::SCOPES, get(discovery::scopes))
            .route(path::DID, get(discovery::did))
            .route(path::QUERY, post(exchange::query))
            .route(path::GRANT, post(exchange::grant))
            .route("/oap/memory/grant/{id}", get(exchange::grant_state))
            .route(path::EXPORT, post(exchange::export))
            .route("/oap/memory/vec/{id}", get(exchange::vector))
            .route(path::ACK, post(exchange::ack))
            .route(path::STATUS, get(exchange::status))
            .route(path::INVOKE, post(invoke::invoke))
            .route(path::DISCOVER, post(discovery::discover))
            .route(path::INCIDENT, get(discovery::incidents))
            .route(path::CONFORMANCE, get(discovery::conformance))
            .route(path::RECEIPT_VERIFY, post(discovery::receipt_verify));
        let timeout = TimeoutLayer::with_status_code(axum::http::StatusCode::GATEWAY_TIMEOUT, TIMEOUT);
        self.finished(routes).layer(timeout)
    }

    /// The owner's routes alone, for the owner's own socket: a copy of everything may take as long as it does.
    pub fn owner_router(self) -> Router {
        self.finished(Router::new())
    }

    /// These routes and the owner's, each answer named, logged and written out.
    fn finished(self, routes: Router<Self>) -> Router {
        routes
            .route(path::AUDIT, get(owner::audit))
            .route(path::DATA_DELETE, post(owner::delete))
            .nest("/oap/owner", owner::routes())
            .route("/healthz", get(|| async { "ok\n" }))
            .route("/readyz", get(discovery::ready))
            .fallback(not_found)
            .layer(middleware::from_fn_with_state(self.clone(), finish))
            .layer(CatchPanicLayer::new())
            // The handlers read bodies themselves, with the configured limit.
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
    let (method, began) = (request.method().clone(), clock.now());
    let well_known = route.starts_with("/.well-known/");
    let mut response = next.run(request).await;
    if let Some(refusal) = response.extensions_mut().remove::<error::Refusal>() {
        let body = json!({"error": refusal.code, "message": refusal.message, "request_id": name});
        let headers = std::mem::take(response.headers_mut());
        response = (refusal.status, headers, Json(body)).into_response();
        set(&mut response, header::CONTENT_TYPE, request::MEDIA_TYPE);
    }
    set(&mut response, header::X_CONTENT_TYPE_OPTIONS, "nosniff");
    set(&mut response, header::CACHE_CONTROL, if well_known { "max-age=60" } else { "no-store" });
    let millis = clock.now().millis() - began.millis();
    let status = response.status().as_u16();
    metrics::histogram!("oap_request_seconds", "route" => route.clone()).record(millis as f64 / 1000.0);
    metrics::counter!("oap_requests_total", "route" => route.clone(), "status" => status.to_string())
        .increment(1);
    tracing::info!(request_id = %name, %method, route, status, millis, "request");
    response
}

fn set(response: &mut Response, name: header::HeaderName, value: &'static str) {
    response.headers_mut().insert(name, HeaderValue::from_static(value));
}

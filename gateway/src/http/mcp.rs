//! `/mcp`: the memory tools over streamable HTTP, for an agent with its API key, a client with an access token of OAuth, and a
//! grantee's agent under its grant ([`mcp_grant`]).
//!
//! No sessions are kept: each request stands for itself and is answered as JSON, in every revision of the protocol. Pages in a browser are
//! nobody's agent: what has an `Origin` is refused, unless the owner listed it.

use super::error::Refusal;
use super::mcp_grant;
use super::request::{Incoming, Sender};
use super::{App, oauth, own_key, resource};
use crate::Error;
use crate::api::agents::{ToolAnswer, ToolCall};
use crate::error::{Corrupt, MemberError};
use crate::mcp::{CallError, Caller, MAX_MESSAGE, Server};
use crate::service::Tools;
use crate::state::agents::Agent;
use crate::state::gateway::Gateway;
use crate::state::owner::mark::Read;
use crate::state::refusals::Counted;
use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::{HeaderMap, HeaderValue, Request, StatusCode, header};
use axum::response::Response;
use rmcp::ServerHandler;
use rmcp::model::ClientJsonRpcMessage;
use rmcp::transport::streamable_http_server::session::never::NeverSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use serde::Deserialize;
use serde_json::Value;
use std::sync::Arc;

/// An agent that calls by its API key, or a client that calls as one.
struct ByKey {
    gateway: Arc<Gateway>,
    agent: Agent<Read>,
}

impl Caller for ByKey {
    async fn call(&self, call: ToolCall) -> Result<ToolAnswer, CallError> {
        let answer = Tools(&self.gateway).call(&self.agent, call).await;
        answer.map_err(|error| refused(&error))
    }
}

/// A refusal of the gateway, as a tool tells it.
pub(super) fn refused(error: &Error) -> CallError {
    let Refusal { code, message, .. } = Refusal::from(error);
    CallError::Refused { code: code.to_owned(), message }
}

/// Which agent a request is from: its key is checked before its body is read.
pub(super) async fn agent(request: &mut Incoming) -> Result<Agent<Read>, Error> {
    if own_key::is_presented(request) {
        return own_key::agent(request).await;
    }
    let (authorization, key) = (request.header("authorization"), request.header("x-api-key"));
    match request.app().gateway.agent_by_key(&authorization, &key) {
        Ok(agent) => {
            request.sent_by(Sender::Agent);
            has_room(&request.app().gateway, &agent)?;
            Ok(agent)
        }
        Err(error) => {
            // Whoever tries keys is nobody.
            request.rate_limit()?;
            Err(error)
        }
    }
}

/// Counts one more request of an agent.
///
/// # Errors
/// [`Error::RateLimited`].
pub(super) fn has_room(gateway: &Gateway, agent: &Agent<Read>) -> Result<(), Error> {
    gateway.refusals.charge(Counted::Agent, agent.did(), 1, gateway.clock.now())
}

/// `POST /mcp`.
pub(super) async fn mcp(State(app): State<App>, mut request: Incoming) -> Result<Response, Error> {
    resource::comes_from_a_program(&request)?;
    if mcp_grant::presents_grant(&request) {
        return mcp_grant::mcp(&app, request).await;
    }
    let who = match resource::who(&mut request).await {
        Ok(who) => who,
        Err(error) => return Ok(oauth::unauthorized(&app, error, &request)),
    };
    let (headers, body, message) = message(&mut request).await?;
    if let Some(refused) = resource::asks_for_more(&app, &who, &message) {
        return Ok(refused);
    }
    let caller = Arc::new(ByKey { gateway: app.gateway.clone(), agent: who.agent });
    let turns = app.turns.clone();
    serve(&app, headers, body, move || Server::new(caller.clone(), turns.clone())).await
}

/// The head and the body of a request, which is one message, and that message.
///
/// # Errors
/// [`Error::Member`], [`Error::TooLarge`], [`Error::Json`].
pub(super) async fn message(request: &mut Incoming) -> Result<(HeaderMap, Bytes, Value), Error> {
    let (headers, body) = (request.headers().clone(), request.bytes().await?);
    if body.len() > MAX_MESSAGE {
        return Err(Error::TooLarge(MAX_MESSAGE));
    }
    // What is no message is refused like any other body: the transport would repeat it, and call it another media type.
    let message = oap_identity::json::parse(&body)?;
    if !message.is_object() {
        return Err(Error::Member("body", MemberError::OneMessage));
    }
    ClientJsonRpcMessage::deserialize(&message)
        .map_err(|_| Error::Member("body", MemberError::OneMessage))?;
    Ok((headers, body, message))
}

/// What a server answers to a message.
pub(super) async fn serve<S: ServerHandler + Send + 'static>(
    app: &App,
    mut headers: HeaderMap,
    body: Bytes,
    server: impl Fn() -> S + Send + Sync + 'static,
) -> Result<Response, Error> {
    let config = StreamableHttpServerConfig::default()
        .with_legacy_session_mode(false)
        .with_json_response(true)
        // Judged above.
        .disable_allowed_hosts()
        .with_max_request_body_bytes(MAX_MESSAGE);
    let service =
        StreamableHttpService::new(move || Ok(server()), Arc::<NeverSessionManager>::default(), config);
    // The gateway's own name, whatever the caller's `Host` says.
    headers.remove(header::HOST);
    // Judged above, by the owner's list.
    headers.remove(header::ORIGIN);
    // One form is read, by whichever of its names.
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    let inner = Request::post(app.gateway.url("/mcp")).body(Body::from(body));
    let mut inner = inner.map_err(|_| Corrupt::NoRequestName)?;
    *inner.headers_mut() = headers;
    let mut response = service.handle(inner).await.map(Body::new);
    let is_json = response.headers().get(header::CONTENT_TYPE).is_some_and(|kind| kind == "application/json");
    // The transport's own words may repeat a header.
    if response.status() == StatusCode::BAD_REQUEST && !is_json {
        return Err(Error::Member("headers", MemberError::McpHeaders));
    }
    if let Some(refusal) = refusal(response.status()) {
        response.extensions_mut().insert(refusal);
    }
    Ok(response)
}

/// What the transport refuses by a status, in words.
fn refusal(status: StatusCode) -> Option<Refusal> {
    let (code, message) = match status {
        StatusCode::NOT_ACCEPTABLE => {
            ("invalid_input", "Accept: must name application/json and text/event-stream")
        }
        _ => return None,
    };
    Some(Refusal { status, code, message: message.to_owned(), for_owner: None })
}

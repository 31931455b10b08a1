//! `/mcp` under a grant: the token of a grantee with its proof, and the view of the grant, as of `POST /oap/memory/query`.
//!
//! It is the way of a query ([`Exchange::query`]) and no other: the same proof of possession, the same judgement of the grant, the
//! same budgets and receipts, the same answer to the letter. One message is one request with a proof of its own.

use super::App;
use super::credential::{Became, as_grantee_in};
use super::mcp::{message, refused, serve};
use super::request::{Incoming, presented};
use crate::Error;
use crate::api::agents::ToolAnswer;
use crate::mcp::{CallError, Granted, ViewCaller};
use crate::service::Exchange;
use crate::service::query::Caller;
use crate::state::gateway::Gateway;
use axum::body::{Body, to_bytes};
use axum::response::Response;
use oap_agents::Tool;
use oap_agents::viewed::{self, Asked};
use oap_grants::token::TYP;
use oap_identity::RequestId;
use oap_identity::signed::UnverifiedJwt;
use serde_json::{Map, Value};
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::OwnedSemaphorePermit;

/// Most bytes of an answer: that of a query, for programs, and beside it a text that is short ([`viewed::text`]).
const MAX_ANSWER: usize = 2 * oap_exchange::answer::MAX_ANSWER;

/// Whether a request carries the token of a grant, and nothing of an agent's: by its `typ`, before anything is checked.
pub(super) fn presents_grant(request: &Incoming) -> bool {
    let is_grants = presented(request, |presented| {
        let [authorization] = presented.authorization else { return false };
        let Some((_, token)) = authorization.split_once(' ') else { return false };
        UnverifiedJwt::parse(token.trim(), TYP).is_ok()
    });
    is_grants && request.header("x-api-key").is_empty()
}

/// A grantee whose token and proof were checked.
struct ByGrant {
    gateway: Arc<Gateway>,
    caller: Caller,
    /// The request's own name.
    name: RequestId,
    became: Mutex<Became>,
    /// Its turn, where it calls a tool: until the call is done, whether anybody waits for its answer still or not.
    _turn: Option<OwnedSemaphorePermit>,
}

impl ByGrant {
    fn note(&self, became: Became) {
        *self.became.lock().unwrap_or_else(PoisonError::into_inner) = became;
    }

    fn became(&self) -> Became {
        *self.became.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn ask(&self, tool: Tool, arguments: Map<String, Value>) -> Result<ToolAnswer, Error> {
        let Asked { mut query, only } = Asked::read(tool, arguments).ok_or(Error::NotFound)??;
        query.request_id = Some(self.name.clone());
        let exchange = Exchange(&self.gateway);
        let answer = match only {
            None => exchange.query(&self.caller, query).await?,
            Some(item) => exchange.explain(&self.caller, query, item).await?,
        };
        let structured: Map<String, Value> = serde_json::from_slice(&answer)?;
        // It may be large, and is there once more.
        drop(answer);
        let text = viewed::text(&structured);
        Ok(ToolAnswer { structured, text })
    }
}

impl ViewCaller for ByGrant {
    async fn call(&self, tool: Tool, arguments: Map<String, Value>) -> Result<ToolAnswer, CallError> {
        let answer = self.ask(tool, arguments).await;
        self.note(if answer.is_ok() { Became::Answered } else { Became::Unrecorded });
        answer.map_err(|error| refused(&error))
    }
}

/// What a grantee's agent is answered.
pub(super) async fn mcp(app: &App, mut request: Incoming) -> Result<Response, Error> {
    as_grantee_in(&mut request, async |request, caller| {
        let (headers, body, asked) = message(request).await?;
        // What asks for no tool is small, and does not wait.
        let calls = asked.get("method").and_then(Value::as_str) == Some("tools/call");
        drop(asked);
        let turn = if calls { app.granted.take().await } else { None };
        let by = Arc::new(ByGrant {
            gateway: app.gateway.clone(),
            caller: caller.clone(),
            name: request.name().clone(),
            became: Mutex::new(Became::Unrecorded),
            _turn: turn,
        });
        let server = by.clone();
        let response = serve(app, headers, body, move || Granted(server.clone())).await?;
        // What the answer holds is decided with its last byte, and not before.
        let (head, body) = response.into_parts();
        let body = to_bytes(body, MAX_ANSWER).await.map_err(|_| Error::TooLarge(MAX_ANSWER))?;
        let became = if head.status.is_success() { by.became() } else { Became::Unrecorded };
        Ok((Response::from_parts(head, Body::from(body)), became))
    })
    .await
}

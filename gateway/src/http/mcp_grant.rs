//! `/mcp` under a grant: the token of a grantee with its proof, and the view of the grant, as of `POST /oap/memory/query`.
//!
//! It is the way of a query ([`Exchange::query`]) and no other: the same proof of possession, the same judgement of the grant, the
//! same budgets and receipts, the same answer to the letter. One message is one request with a proof of its own.

use super::App;
use super::credential::{RequestOutcome, as_grantee_in};
use super::mcp::{message, refused, serve};
use super::request::{Incoming, presented};
use crate::Error;
use crate::api::agents::ToolAnswer;
use crate::error::Unavailable;
use crate::mcp::{CallError, Granted, Turns, ViewCaller};
use crate::service::Exchange;
use crate::service::query::Caller;
use crate::state::gateway::Gateway;
use axum::body::{Body, to_bytes};
use axum::response::{IntoResponse, Response};
use oap_agents::Tool;
use oap_agents::viewed::{self, Asked, Of};
use oap_grants::token::TYP;
use oap_identity::signed::UnverifiedJwt;
use oap_identity::{Did, Hash, RequestId};
use serde_json::{Map, Value};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Most bytes of an answer: that of a query, for programs, and beside it a text that is short ([`viewed::text`]).
const MAX_ANSWER: usize = 2 * oap_exchange::answer::MAX_ANSWER;

/// Most calls under one grant, and those made from it, and most of one grantee, that are worked on at once; their others wait.
const MOST_OF_ONE: usize = 2;

/// A turn: one of its grant's own, one of its grantee's, and one of all.
type Turn = [OwnedSemaphorePermit; 3];

/// The turns of calls under grants ([`Turns::of_grants`]), of which no grantee has all.
#[derive(Debug, Clone)]
pub(super) struct GrantTurns {
    all: Turns,
    /// Those of each grant that has calls, by the hash of the first above it, and of each grantee, by the hash of its DID.
    own: Arc<Mutex<HashMap<Hash, Weak<Semaphore>>>>,
}

impl Default for GrantTurns {
    fn default() -> Self {
        Self { all: Turns::of_grants(), own: Arc::default() }
    }
}

impl GrantTurns {
    /// The turns of all.
    pub(super) fn all(&self) -> Turns {
        self.all.clone()
    }

    /// Waits for a turn, which lasts until it is dropped.
    async fn take(&self, first: Hash, grantee: &Did) -> Option<Turn> {
        let of_grant = self.own(first).acquire_owned().await.ok()?;
        let of_grantee = self.own(Hash::of(grantee.as_str().as_bytes())).acquire_owned().await.ok()?;
        Some([of_grant, of_grantee, self.all.take().await?])
    }

    fn own(&self, first: Hash) -> Arc<Semaphore> {
        let mut known = self.own.lock().unwrap_or_else(PoisonError::into_inner);
        known.retain(|_, turns| turns.strong_count() > 0);
        let own = known.get(&first).and_then(Weak::upgrade);
        own.unwrap_or_else(|| {
            let own = Arc::new(Semaphore::new(MOST_OF_ONE));
            known.insert(first, Arc::downgrade(&own));
            own
        })
    }
}

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
    became: Mutex<RequestOutcome>,
    /// Its turn, where it calls a tool: until the call is done, whether anybody waits for its answer still or not.
    _turn: Option<Turn>,
}

impl ByGrant {
    fn note(&self, became: RequestOutcome) {
        *self.became.lock().unwrap_or_else(PoisonError::into_inner) = became;
    }

    fn became(&self) -> RequestOutcome {
        *self.became.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn ask(&self, tool: Tool, arguments: Map<String, Value>) -> Result<ToolAnswer, Error> {
        let Asked { mut query, of } = Asked::read(tool, arguments).ok_or(Error::NotFound)??;
        query.request_id = Some(self.name.clone());
        let exchange = Exchange(&self.gateway);
        // The bytes may be many, and are there once more: they are let go where they were read.
        let structured: Map<String, Value> = match of {
            Of::View => serde_json::from_slice(&exchange.query(&self.caller, query).await?)?,
            Of::Item(item) => serde_json::from_slice(&exchange.explain(&self.caller, query, item).await?)?,
            Of::Graph(sparql) => exchange.graphed(&self.caller, query, sparql).await?,
        };
        let text = viewed::text(&structured);
        Ok(ToolAnswer { structured, text })
    }
}

impl ViewCaller for ByGrant {
    async fn call(&self, tool: Tool, arguments: Map<String, Value>) -> Result<ToolAnswer, CallError> {
        let answer = self.ask(tool, arguments).await;
        self.note(match &answer {
            Ok(_) => RequestOutcome::Answered,
            Err(Error::Unavailable(Unavailable::Asking)) => RequestOutcome::Waited,
            // A graph that was not asked to its end has a receipt, and counts with what failed all the same: it took the most work.
            Err(_) => RequestOutcome::Unrecorded,
        });
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
        let turn = if calls {
            let turn = app.granted.take(caller.first(), caller.grantee());
            match tokio::time::timeout(app.deadlines.turn, turn).await {
                Ok(turn) => turn,
                Err(_) => return Ok((Error::Busy.into_response(), RequestOutcome::Waited)),
            }
        } else {
            None
        };
        let by = Arc::new(ByGrant {
            gateway: app.gateway.clone(),
            caller: caller.clone(),
            name: request.name().clone(),
            became: Mutex::new(RequestOutcome::Unrecorded),
            _turn: turn,
        });
        let server = by.clone();
        let response = serve(app, headers, body, move || Granted(server.clone())).await?;
        // What the answer holds is decided with its last byte, and not before.
        let (head, body) = response.into_parts();
        let body = to_bytes(body, MAX_ANSWER).await.map_err(|_| Error::TooLarge(MAX_ANSWER))?;
        let became = if head.status.is_success() { by.became() } else { RequestOutcome::Unrecorded };
        Ok((Response::from_parts(head, Body::from(body)), became))
    })
    .await
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mcp::MAX_GRANTED;
    use std::time::Duration;

    #[tokio::test]
    async fn no_grantee_has_all_the_turns() {
        let turns = GrantTurns::default();
        let did = |name: &str| -> Did { format!("did:web:{name}.example").parse().unwrap() };
        let waits = async |first: &str, of: &str| {
            let of = did(of);
            let turn = turns.take(Hash::of(first.as_bytes()), &of);
            tokio::time::timeout(Duration::from_millis(50), turn).await.is_err()
        };
        let one = Hash::of(b"one");
        let mut taken = vec![turns.take(one, &did("a")).await, turns.take(one, &did("b")).await];
        // Neither with more grantees under its grant, nor with more grants.
        assert!(taken.iter().all(Option::is_some) && waits("one", "c").await);
        taken.push(turns.take(Hash::of(b"two"), &did("a")).await);
        assert!(waits("three", "a").await);
        while taken.len() < MAX_GRANTED {
            taken.push(turns.take(Hash::of(b"four"), &did("d")).await);
        }
        // Nobody has one more than there are.
        assert!(waits("five", "e").await);
        taken.remove(0);
        assert!(!waits("one", "a").await && !waits("five", "e").await);
        taken.clear();
        // Of who has no calls nothing is kept.
        drop(turns.own(one));
        assert_eq!(turns.own.lock().unwrap().len(), 1);
    }
}

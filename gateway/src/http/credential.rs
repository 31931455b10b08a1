//! Credentials, checked from the head of a request alone. Only then may its body be large.

use super::App;
use super::request::{Incoming, Sender, presented, target, values};
use crate::Error;
use crate::service::Exchange;
use crate::service::query::Caller;
use crate::state::gateway::Gateway;
use crate::state::owner::{Acting, Owner, mark::Mark};
use crate::state::refusals::Counted;
use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use oap_grants::dpop;
use oap_identity::Hash;
use std::sync::Arc;

/// The owner's credential, checked from the head of the request, before its body is read.
impl<P: Mark> FromRequestParts<App> for Owner<P> {
    type Rejection = Error;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, Error> {
        let (method, url) = target(parts, app);
        let target = dpop::Request { method: &method, url: &url };
        let (authorization, proofs) =
            (values(&parts.headers, "authorization"), values(&parts.headers, "dpop"));
        let owner = app.gateway.owner::<P>(&authorization, &proofs, target).await?;
        parts.extensions.insert(Sender::Owner(Acting::from(&owner)));
        Ok(owner)
    }
}

/// What became of a grantee's request, where its answer says so itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RequestOutcome {
    /// It is answered: its proof was stored with the answer's receipt.
    Answered,
    /// It waited in vain for what others have taken, and did nothing. It is not counted with those that failed.
    Waited,
    /// It has no receipt: it was refused, or it asked for nothing that has one. It is counted with those that failed, for it leaves
    /// a used proof as they do.
    Unrecorded,
}

/// What a grantee is answered. Its proof is remembered in the store whatever that is: with the answer where there is one,
/// by itself where the request was refused.
pub(super) async fn as_grantee<T>(
    request: &mut Incoming,
    work: impl AsyncFnOnce(&mut Incoming, &Caller) -> Result<T, Error>,
) -> Result<T, Error> {
    let answered = as_grantee_in(request, async |request, caller| {
        work(request, caller).await.map(|answer| (answer, RequestOutcome::Answered))
    });
    answered.await
}

/// The same for answers of which some have no receipt.
pub(super) async fn as_grantee_in<T>(
    request: &mut Incoming,
    work: impl AsyncFnOnce(&mut Incoming, &Caller) -> Result<(T, RequestOutcome), Error>,
) -> Result<T, Error> {
    let app = request.app().clone();
    let caller = presented(request, |presented| Exchange(&app.gateway).caller(presented))?;
    request.sent_by(Sender::Grantee);
    let mut unanswered =
        Unanswered { gateway: app.gateway.clone(), proof: caller.proof(), first: Some(caller.first()) };
    let answered = work(request, &caller).await;
    let proof = unanswered.proof.take();
    let became = answered.as_ref().map_or(RequestOutcome::Unrecorded, |(_, became)| *became);
    if became != RequestOutcome::Answered {
        if became == RequestOutcome::Unrecorded {
            unanswered.count();
        }
        if let Some(proof) = proof {
            app.gateway.remember_proof(proof).await?;
        }
    }
    unanswered.first = None;
    answered.map(|(answer, _)| answer)
}

/// A request that has no answer yet, and its proof, which is in memory alone. When the request is given up, it is counted as
/// failed and its proof is stored all the same.
struct Unanswered {
    gateway: Arc<Gateway>,
    proof: Option<[u8; 32]>,
    first: Option<Hash>,
}

impl Unanswered {
    /// Counts it as failed, once.
    fn count(&mut self) {
        if let Some(first) = self.first.take() {
            self.gateway.refusals.admit(Counted::Failed, first, self.gateway.clock.now());
        }
    }
}

impl Drop for Unanswered {
    fn drop(&mut self) {
        self.count();
        let (Some(proof), Ok(runtime)) = (self.proof.take(), tokio::runtime::Handle::try_current()) else {
            return;
        };
        let gateway = self.gateway.clone();
        runtime.spawn(async move {
            if let Err(error) = gateway.remember_proof(proof).await {
                tracing::error!(%error, "a proof that was used cannot be stored");
            }
        });
    }
}

//! Witnesses: C2SP tlog-witness, and what is shown of the own log (protocol section 16).

use super::App;
use super::credential::as_grantee;
use super::request::{Incoming, Oap};
use crate::Error;
use crate::service::witnesses::Answered;
use crate::service::{Exchange, Witnesses};
use crate::state::gateway::blocking;
use crate::state::refusals::{Counted, Refusals};
use axum::extract::{Path, State};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use oap_identity::Hash;
use oap_memory::log::submission::MAX_SUBMISSION;
use serde::{Deserialize, Serialize};

fn text(body: impl IntoResponse) -> Response {
    ([(header::CONTENT_TYPE, "text/plain; charset=utf-8")], body).into_response()
}

/// `POST /oap/witness/add-checkpoint`: signs a checkpoint of another's log.
pub async fn add_checkpoint(State(app): State<App>, mut request: Incoming) -> Result<Response, Error> {
    request.rate_limit()?;
    let body = request.any_bytes(MAX_SUBMISSION).await?;
    Ok(match Witnesses(&app.gateway).add_checkpoint(&body).await? {
        Answered::Signed(lines) => text(lines),
        Answered::Conflict(size) => {
            let media_type = [(header::CONTENT_TYPE, "text/x.tlog.size")];
            (StatusCode::CONFLICT, media_type, format!("{size}\n")).into_response()
        }
    })
}

/// `GET /oap/witness/{origin}/checkpoint`: what this witness signed last of a log.
pub async fn last_of(
    State(app): State<App>,
    Path(origin): Path<String>,
    request: Incoming,
) -> Result<Response, Error> {
    request.rate_limit()?;
    let note = blocking(move || Witnesses(&app.gateway).last_of(&origin)).await?;
    Ok(text(note))
}

/// `GET /.well-known/oap-checkpoint`: the own log, with the signatures of its witnesses.
pub async fn checkpoint(State(app): State<App>, request: Incoming) -> Result<Response, Error> {
    request.rate_limit()?;
    Ok(text(Witnesses(&app.gateway).checkpoint()?))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Sizes {
    from: u64,
    to: u64,
}

#[derive(Serialize)]
struct Consistency {
    proof: Vec<Hash>,
}

/// `GET /oap/log/consistency`: that the own log goes on from one size to another.
pub async fn consistency(State(app): State<App>, request: Incoming) -> Result<Response, Error> {
    request.rate_limit()?;
    let Sizes { from, to } = request.query()?;
    let proof = blocking(move || Witnesses(&app.gateway).consistency(from, to)).await?;
    Ok(Oap(Consistency { proof }).into_response())
}

/// `GET /oap/memory/witnessed/{receipt_id}`: the way from a receipt of a grantee's to the checkpoint.
pub async fn witnessed(
    State(app): State<App>,
    Path(id): Path<String>,
    mut request: Incoming,
) -> Result<Response, Error> {
    let answer = as_grantee(&mut request, async |_, caller| {
        let now = app.gateway.clock.now();
        if !app.gateway.refusals.admit(Counted::Audit, caller.first(), now) {
            return Err(Error::RateLimited(Refusals::anew(now)));
        }
        let id = id.parse().map_err(|_| Error::NotFound)?;
        Exchange(&app.gateway).in_force(caller).await?;
        Exchange(&app.gateway).keep_proof(caller).await?;
        let (gateway, caller) = (app.gateway.clone(), caller.clone());
        blocking(move || Witnesses(&gateway).inclusion(&caller, id)).await
    });
    let answer = answer.await?;
    // A lockdown may have begun meanwhile, and no transaction says so here.
    app.gateway.is_open()?;
    Ok(Oap(answer).into_response())
}

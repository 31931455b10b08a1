//! The gateway itself: where it stands, its clock, what it attests.

use crate::Error;
use crate::http::App;
use crate::http::request::{Incoming, Oap};
use crate::service::conformance::AttestRequest;
use crate::service::{Attestations, Health};
use crate::state::gateway::blocking;
use crate::state::owner::Owner;
use crate::state::owner::mark::Admin;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use serde_json::json;

pub(in crate::http) async fn status(owner: Owner<Admin>, State(app): State<App>) -> Result<Response, Error> {
    let gateway = app.gateway.clone();
    Ok(Oap(json!(blocking(move || Health(&gateway).status(&owner)).await?)).into_response())
}

pub(in crate::http) async fn clock(owner: Owner<Admin>, State(app): State<App>) -> Result<Response, Error> {
    Ok(Oap(json!(app.gateway.clock_info(&owner))).into_response())
}

pub(in crate::http) async fn accept_clock(
    owner: Owner<Admin>,
    State(app): State<App>,
) -> Result<Response, Error> {
    Ok(Oap(json!(app.gateway.accept_clock(&owner).await?)).into_response())
}

pub(in crate::http) async fn attest(
    owner: Owner<Admin>,
    State(app): State<App>,
    mut request: Incoming,
) -> Result<Response, Error> {
    let what: AttestRequest = request.json_as().await?;
    Ok(Oap(Attestations(&app.gateway).attest(&owner, what).await?).into_response())
}

pub(in crate::http) async fn witness(
    owner: Owner<Admin>,
    State(app): State<App>,
    mut request: Incoming,
) -> Result<Response, Error> {
    Ok(Oap(Attestations(&app.gateway).witness(&owner, request.json().await?)?).into_response())
}

/// Ends the process that has the home open. Whoever may write to the socket may do that: no proof is asked for.
pub(in crate::http) async fn lock(State(app): State<App>) -> Result<Response, Error> {
    let lock = app.lock.as_ref().ok_or(Error::NotFound)?;
    lock.notify_one();
    Ok(Oap(json!({"locked": true})).into_response())
}

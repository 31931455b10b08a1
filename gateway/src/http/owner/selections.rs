//! Many items at once: found, counted, changed.

use crate::Error;
use crate::http::App;
use crate::http::request::{Incoming, Oap};
use crate::service::{Items, Selections};
use crate::state::gateway::blocking;
use crate::state::owner::Owner;
use crate::state::owner::mark::{Admin, Read, Write};
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use serde_json::json;

pub(in crate::http) async fn resolve(
    owner: Owner<Read>,
    State(app): State<App>,
    mut request: Incoming,
) -> Result<Response, Error> {
    let (gateway, wanted) = (app.gateway.clone(), request.json_as().await?);
    let resolved = blocking(move || Items(&gateway).resolve(&owner, &wanted)).await?;
    Ok(Oap(json!({"resolved": resolved})).into_response())
}

pub(in crate::http) async fn search(
    owner: Owner<Read>,
    State(app): State<App>,
    mut request: Incoming,
) -> Result<Response, Error> {
    let (gateway, wanted) = (app.gateway.clone(), request.json_as().await?);
    Ok(Oap(blocking(move || Items(&gateway).search(&owner, &wanted)).await?).into_response())
}

/// What a change would take: it names holds and counts grants, so it is the administrator's.
pub(in crate::http) async fn select(
    owner: Owner<Admin>,
    State(app): State<App>,
    mut request: Incoming,
) -> Result<Response, Error> {
    let (gateway, wanted) = (app.gateway.clone(), request.json_as().await?);
    Ok(Oap(blocking(move || Selections(&gateway).select(&owner, &wanted)).await?).into_response())
}

pub(in crate::http) async fn relabel(
    owner: Owner<Write>,
    State(app): State<App>,
    mut request: Incoming,
) -> Result<Response, Error> {
    Ok(Oap(Selections(&app.gateway).relabel_all(&owner, request.json_as().await?).await?).into_response())
}

pub(in crate::http) async fn retract(
    owner: Owner<Write>,
    State(app): State<App>,
    mut request: Incoming,
) -> Result<Response, Error> {
    Ok(Oap(Selections(&app.gateway).retract_all(&owner, request.json_as().await?).await?).into_response())
}

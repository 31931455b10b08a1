//! The owner's questions about their items, and changes of many at once.

use super::App;
use super::request::{Incoming, Oap};
use crate::Error;
use crate::state::gateway::blocking;
use crate::state::owner::Owner;
use crate::state::owner::mark::{Admin, Read, Write};
use axum::Router;
use axum::extract::{Path, State};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use serde_json::json;

/// The routes below `/oap/owner`.
pub fn routes() -> Router<App> {
    Router::new()
        .route("/items/resolve", post(resolve))
        .route("/items/search", post(search))
        .route("/items/select", post(select))
        .route("/items/relabel", post(relabel))
        .route("/items/retract", post(retract))
        .route("/items/{id}/history", get(history))
        .route("/who", post(who))
}

async fn resolve(_: Owner<Read>, State(app): State<App>, mut request: Incoming) -> Result<Response, Error> {
    let (gateway, wanted) = (app.gateway.clone(), request.json_as().await?);
    let resolved = blocking(move || gateway.resolve(&wanted)).await?;
    Ok(Oap(json!({"resolved": resolved})).into_response())
}

async fn search(_: Owner<Read>, State(app): State<App>, mut request: Incoming) -> Result<Response, Error> {
    let (gateway, wanted) = (app.gateway.clone(), request.json_as().await?);
    Ok(Oap(blocking(move || gateway.search(&wanted)).await?).into_response())
}

/// What a change would take: it names holds and counts grants, so it is the administrator's.
async fn select(_: Owner<Admin>, State(app): State<App>, mut request: Incoming) -> Result<Response, Error> {
    let (gateway, wanted) = (app.gateway.clone(), request.json_as().await?);
    Ok(Oap(blocking(move || gateway.select(&wanted)).await?).into_response())
}

async fn relabel(_: Owner<Write>, State(app): State<App>, mut request: Incoming) -> Result<Response, Error> {
    Ok(Oap(app.gateway.relabel_all(request.json_as().await?).await?).into_response())
}

async fn retract(_: Owner<Write>, State(app): State<App>, mut request: Incoming) -> Result<Response, Error> {
    Ok(Oap(app.gateway.retract_all(request.json_as().await?).await?).into_response())
}

async fn history(_: Owner<Admin>, State(app): State<App>, Path(id): Path<String>) -> Result<Response, Error> {
    let item = id.parse().map_err(|_| Error::NotFound)?;
    let gateway = app.gateway.clone();
    Ok(Oap(blocking(move || gateway.history(item)).await?).into_response())
}

async fn who(_: Owner<Admin>, State(app): State<App>, mut request: Incoming) -> Result<Response, Error> {
    let (gateway, wanted) = (app.gateway.clone(), request.json_as().await?);
    Ok(Oap(blocking(move || gateway.who(&wanted)).await?).into_response())
}

//! The owner's questions about their items, and changes of many at once.

use super::App;
use super::credential::agent;
use super::request::{Incoming, Oap};
use crate::Error;
use crate::service::owner::Permission;
use crate::state::gateway::blocking;
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

async fn resolve(State(app): State<App>, mut request: Incoming) -> Result<Response, Error> {
    agent(&mut request, Permission::Read).await?;
    let (gateway, wanted) = (app.gateway.clone(), request.json_as().await?);
    let resolved = blocking(move || gateway.resolve(&wanted)).await?;
    Ok(Oap(json!({"resolved": resolved})).into_response())
}

async fn search(State(app): State<App>, mut request: Incoming) -> Result<Response, Error> {
    agent(&mut request, Permission::Read).await?;
    let (gateway, wanted) = (app.gateway.clone(), request.json_as().await?);
    Ok(Oap(blocking(move || gateway.search(&wanted)).await?).into_response())
}

/// What a change would take: it names holds and counts grants, so it is the administrator's.
async fn select(State(app): State<App>, mut request: Incoming) -> Result<Response, Error> {
    agent(&mut request, Permission::Admin).await?;
    let (gateway, wanted) = (app.gateway.clone(), request.json_as().await?);
    Ok(Oap(blocking(move || gateway.select(&wanted)).await?).into_response())
}

async fn relabel(State(app): State<App>, mut request: Incoming) -> Result<Response, Error> {
    agent(&mut request, Permission::Write).await?;
    Ok(Oap(app.gateway.relabel_all(request.json_as().await?).await?).into_response())
}

async fn retract(State(app): State<App>, mut request: Incoming) -> Result<Response, Error> {
    agent(&mut request, Permission::Write).await?;
    Ok(Oap(app.gateway.retract_all(request.json_as().await?).await?).into_response())
}

async fn history(
    State(app): State<App>,
    Path(id): Path<String>,
    mut request: Incoming,
) -> Result<Response, Error> {
    agent(&mut request, Permission::Admin).await?;
    let item = id.parse().map_err(|_| Error::NotFound)?;
    let gateway = app.gateway.clone();
    Ok(Oap(blocking(move || gateway.history(item)).await?).into_response())
}

async fn who(State(app): State<App>, mut request: Incoming) -> Result<Response, Error> {
    agent(&mut request, Permission::Admin).await?;
    let (gateway, wanted) = (app.gateway.clone(), request.json_as().await?);
    Ok(Oap(blocking(move || gateway.who(&wanted)).await?).into_response())
}

//! Client Confidentiality Contexts, and the bridges between scopes.

use crate::Error;
use crate::http::App;
use crate::http::request::{Incoming, Oap};
use crate::service::Gates;
use crate::state::owner::Owner;
use crate::state::owner::mark::Admin;
use axum::extract::{Path, State};
use axum::response::{IntoResponse, Response};
use serde_json::json;

pub(in crate::http) async fn list_contexts(
    owner: Owner<Admin>,
    State(app): State<App>,
) -> Result<Response, Error> {
    let contexts = Gates(&app.gateway).context_list(&owner)?;
    Ok(Oap(json!({"contexts": contexts})).into_response())
}

pub(in crate::http) async fn set_context(
    owner: Owner<Admin>,
    State(app): State<App>,
    mut request: Incoming,
) -> Result<Response, Error> {
    Gates(&app.gateway).set_context(&owner, request.json().await?).await?;
    Ok(Oap(json!({})).into_response())
}

pub(in crate::http) async fn remove_context(
    owner: Owner<Admin>,
    State(app): State<App>,
    Path(scope): Path<String>,
) -> Result<Response, Error> {
    Gates(&app.gateway).remove_context(&owner, scope.parse().map_err(|_| Error::NotFound)?).await?;
    Ok(Oap(json!({})).into_response())
}

pub(in crate::http) async fn list_bridges(
    owner: Owner<Admin>,
    State(app): State<App>,
) -> Result<Response, Error> {
    Ok(Oap(json!({"bridges": Gates(&app.gateway).bridge_list(&owner)?})).into_response())
}

pub(in crate::http) async fn issue_bridge(
    owner: Owner<Admin>,
    State(app): State<App>,
    mut request: Incoming,
) -> Result<Response, Error> {
    Ok(Oap(Gates(&app.gateway).issue_bridge(&owner, request.json_as().await?).await?).into_response())
}

pub(in crate::http) async fn revoke_bridge(
    owner: Owner<Admin>,
    State(app): State<App>,
    Path(id): Path<String>,
) -> Result<Response, Error> {
    Gates(&app.gateway).revoke_bridge(&owner, id.parse().map_err(|_| Error::NotFound)?).await?;
    Ok(Oap(json!({})).into_response())
}

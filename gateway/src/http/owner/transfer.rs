//! What is carried out and in: bundles, records, backups.

use crate::Error;
use crate::http::App;
use crate::http::request::{Incoming, Oap};
use crate::service::import::{BundleChunk, RecordChunk};
use crate::service::{Backups, Exports, Imports};
use crate::state::gateway::blocking;
use crate::state::jobs::Progress;
use crate::state::owner::Owner;
use crate::state::owner::mark::Admin;
use axum::extract::State;
use axum::http::header;
use axum::response::{IntoResponse, Response};
use serde::Deserialize;
use serde_json::json;

pub(in crate::http) async fn export_header(
    owner: Owner<Admin>,
    State(app): State<App>,
    mut request: Incoming,
) -> Result<Response, Error> {
    let (gateway, selection) = (app.gateway.clone(), request.json_as().await?);
    let header = blocking(move || Exports(&gateway).export_header(&owner, &selection)).await?;
    Ok(Oap(header).into_response())
}

/// The cursor of the next page, and how many items were held back, as a JSON line; then the page's lines.
pub(in crate::http) async fn export_page(
    owner: Owner<Admin>,
    State(app): State<App>,
    mut request: Incoming,
) -> Result<Response, Error> {
    let (gateway, wanted) = (app.gateway.clone(), request.json_as().await?);
    let page = blocking(move || Exports(&gateway).export_page(&owner, &wanted)).await?;
    let mut bytes = json!({"next": page.next, "held_back": page.held_back}).to_string().into_bytes();
    bytes.push(b'\n');
    bytes.extend(page.lines);
    Ok(([(header::CONTENT_TYPE, "application/jsonl")], bytes).into_response())
}

pub(in crate::http) async fn export_seal(
    owner: Owner<Admin>,
    State(app): State<App>,
    mut request: Incoming,
) -> Result<Response, Error> {
    Ok(Oap(Exports(&app.gateway).export_seal(&owner, request.json_as().await?).await?).into_response())
}

pub(in crate::http) async fn import_bundle(
    owner: Owner<Admin>,
    State(app): State<App>,
    mut request: Incoming,
) -> Result<Response, Error> {
    let chunk = request.json_with(|body| Ok(BundleChunk::parse(body)?)).await?;
    Ok(Oap(json!({"fates": Imports(&app.gateway).import_bundle(&owner, chunk).await?})).into_response())
}

pub(in crate::http) async fn import_records(
    owner: Owner<Admin>,
    State(app): State<App>,
    mut request: Incoming,
) -> Result<Response, Error> {
    let chunk = request.json_with(|body| Ok(RecordChunk::parse(body)?)).await?;
    Ok(Oap(json!({"fates": Imports(&app.gateway).import_records(&owner, chunk).await?})).into_response())
}

pub(in crate::http) async fn import_finish(
    owner: Owner<Admin>,
    State(app): State<App>,
    mut request: Incoming,
) -> Result<Response, Error> {
    Ok(Oap(json!({"receipt": Imports(&app.gateway).import_finish(&owner, request.json_as().await?).await?}))
        .into_response())
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Backup {
    folder: std::path::PathBuf,
}

pub(in crate::http) async fn backup(
    owner: Owner<Admin>,
    State(app): State<App>,
    mut request: Incoming,
) -> Result<Response, Error> {
    let Backup { folder } = request.json_as().await?;
    Ok(Oap(Backups(&app.gateway).backup(&owner, folder, &Progress::default()).await?).into_response())
}

//! Signing keys.

use crate::Error;
use crate::http::App;
use crate::http::request::{Incoming, Oap};
use crate::service::Keys;
use crate::state::owner::Owner;
use crate::state::owner::mark::Admin;
use axum::extract::{Path, State};
use axum::response::{IntoResponse, Response};
use oap_identity::Timestamp;
use serde::Deserialize;
use serde_json::json;

pub(in crate::http) async fn list_keys(
    owner: Owner<Admin>,
    State(app): State<App>,
) -> Result<Response, Error> {
    Ok(Oap(json!({"keys": Keys(&app.gateway).key_list(&owner)})).into_response())
}

pub(in crate::http) async fn rotate_keys(
    owner: Owner<Admin>,
    State(app): State<App>,
) -> Result<Response, Error> {
    Ok(Oap(Keys(&app.gateway).rotate_keys(&owner).await?).into_response())
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Compromise {
    /// Since when the key is not to be trusted; now if absent.
    #[serde(default)]
    since: Option<Timestamp>,
}

pub(in crate::http) async fn revoke_key(
    owner: Owner<Admin>,
    State(app): State<App>,
    Path(fragment): Path<String>,
    mut request: Incoming,
) -> Result<Response, Error> {
    let Compromise { since } = request.json_as().await?;
    Ok(Oap(Keys(&app.gateway).revoke_key(&owner, fragment, since).await?).into_response())
}

pub(in crate::http) async fn prove(
    owner: Owner<Admin>,
    State(app): State<App>,
    mut request: Incoming,
) -> Result<Response, Error> {
    Ok(Oap(Keys(&app.gateway).prove(&owner, request.json_as().await?)?).into_response())
}

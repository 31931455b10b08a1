//! Who was shown what.

use crate::Error;
use crate::http::App;
use crate::http::request::{Incoming, Oap};
use crate::service::{Audit, Gates, Items};
use crate::state::gateway::blocking;
use crate::state::owner::Owner;
use crate::state::owner::mark::Admin;
use axum::extract::{Path, State};
use axum::response::{IntoResponse, Response};

pub(in crate::http) async fn history(
    owner: Owner<Admin>,
    State(app): State<App>,
    Path(id): Path<String>,
) -> Result<Response, Error> {
    let item = id.parse().map_err(|_| Error::NotFound)?;
    let gateway = app.gateway.clone();
    Ok(Oap(blocking(move || Items(&gateway).history(&owner, item)).await?).into_response())
}

pub(in crate::http) async fn who(
    owner: Owner<Admin>,
    State(app): State<App>,
    mut request: Incoming,
) -> Result<Response, Error> {
    let (gateway, wanted) = (app.gateway.clone(), request.json_as().await?);
    Ok(Oap(blocking(move || Audit(&gateway).who(&owner, &wanted)).await?).into_response())
}

pub(in crate::http) async fn decision(
    owner: Owner<Admin>,
    State(app): State<App>,
    Path(id): Path<String>,
) -> Result<Response, Error> {
    Ok(Oap(Gates(&app.gateway).decision(&owner, id.parse().map_err(|_| Error::NotFound)?)?).into_response())
}

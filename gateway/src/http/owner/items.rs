//! Items: written, read, listed, corrected, taken back and put back.

use crate::Error;
use crate::error::MemberError;
use crate::http::App;
use crate::http::request::{Incoming, Oap};
use crate::service::Items;
use crate::service::items::ListQuery;
use crate::state::owner::Owner;
use crate::state::owner::mark::{Read, Write};
use axum::extract::{Path, State};
use axum::response::{IntoResponse, Response};
use oap_identity::{ItemId, Timestamp};
use oap_memory::chain::Event;
use serde::Deserialize;
use serde_json::{Value, json};

fn item_id(text: &str) -> Result<ItemId, Error> {
    text.parse().map_err(|_| Error::NotFound)
}

pub(in crate::http) async fn write_items(
    owner: Owner<Write>,
    State(app): State<App>,
    mut request: Incoming,
) -> Result<Response, Error> {
    let mut body = request.json().await?;
    let items = match body.get_mut("items").map(Value::take) {
        Some(Value::Array(items)) => items,
        Some(_) => return Err(Error::Member("items", MemberError::NotArray)),
        None => vec![body],
    };
    let written = Items(&app.gateway).capture(&owner, &items).await?;
    Ok(Oap(json!({"items": written})).into_response())
}

pub(in crate::http) async fn list_items(
    owner: Owner<Read>,
    State(app): State<App>,
    request: Incoming,
) -> Result<Response, Error> {
    let wanted: ListQuery = request.query()?;
    let (items, next) = Items(&app.gateway).list(&owner, &wanted)?;
    Ok(Oap(json!({"items": items, "next": next})).into_response())
}

pub(in crate::http) async fn read_item(
    owner: Owner<Read>,
    State(app): State<App>,
    Path(id): Path<String>,
) -> Result<Response, Error> {
    Ok(Oap(Items(&app.gateway).item(&owner, item_id(&id)?)?).into_response())
}

pub(in crate::http) async fn explain_item(
    owner: Owner<Read>,
    State(app): State<App>,
    Path(id): Path<String>,
    request: Incoming,
) -> Result<Response, Error> {
    Ok(Oap(Items(&app.gateway).explain(&owner, item_id(&id)?, &request.query()?)?).into_response())
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Correction {
    /// The members that change.
    item: Value,
    /// The version that is corrected; whichever is in force if absent.
    #[serde(default)]
    version: Option<u32>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Relabelling {
    labels: Vec<String>,
}

/// How an item is resealed: where its text would be cut in another way, unless `always`.
#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Resealing {
    dry_run: bool,
    always: bool,
    /// When the job began that this is part of; now if absent.
    at: Option<Timestamp>,
}

pub(in crate::http) async fn correct_item(
    owner: Owner<Write>,
    State(app): State<App>,
    Path(id): Path<String>,
    mut request: Incoming,
) -> Result<Response, Error> {
    let id = item_id(&id)?;
    let Correction { item, version } = request.json_as().await?;
    Ok(Oap(Items(&app.gateway).correct(&owner, id, item, version, Event::Correct).await?).into_response())
}

pub(in crate::http) async fn relabel_item(
    owner: Owner<Write>,
    State(app): State<App>,
    Path(id): Path<String>,
    mut request: Incoming,
) -> Result<Response, Error> {
    let id = item_id(&id)?;
    let Relabelling { labels } = request.json_as().await?;
    let changes = json!({"labels": labels});
    Ok(Oap(Items(&app.gateway).correct(&owner, id, changes, None, Event::Relabel).await?).into_response())
}

pub(in crate::http) async fn retract_item(
    owner: Owner<Write>,
    State(app): State<App>,
    Path(id): Path<String>,
) -> Result<Response, Error> {
    Ok(Oap(Items(&app.gateway).mark(&owner, item_id(&id)?, Event::Retract).await?).into_response())
}

pub(in crate::http) async fn restore_item(
    owner: Owner<Write>,
    State(app): State<App>,
    Path(id): Path<String>,
) -> Result<Response, Error> {
    Ok(Oap(Items(&app.gateway).mark(&owner, item_id(&id)?, Event::Restore).await?).into_response())
}

pub(in crate::http) async fn confirm_item(
    owner: Owner<Write>,
    State(app): State<App>,
    Path(id): Path<String>,
) -> Result<Response, Error> {
    Ok(Oap(Items(&app.gateway).mark(&owner, item_id(&id)?, Event::Confirm).await?).into_response())
}

pub(in crate::http) async fn reseal_item(
    owner: Owner<Write>,
    State(app): State<App>,
    Path(id): Path<String>,
    mut request: Incoming,
) -> Result<Response, Error> {
    let id = item_id(&id)?;
    let Resealing { dry_run, always, at } = request.json_as().await?;
    let answer = if dry_run {
        json!({"would_reseal": Items(&app.gateway).would_reseal(&owner, id).await?})
    } else {
        json!({"resealed": Items(&app.gateway).reseal(&owner, id, always, at).await?})
    };
    Ok(Oap(answer).into_response())
}

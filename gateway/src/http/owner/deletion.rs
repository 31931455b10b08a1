//! Deletion, and the holds that stand in its way.

use crate::Error;
use crate::http::App;
use crate::http::request::{Incoming, Oap};
use crate::service::Deletions;
use crate::service::deletion::DeleteRequest;
use crate::state::owner::Owner;
use crate::state::owner::mark::Admin;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use oap_identity::ItemId;
use serde::Deserialize;
use serde_json::{Value, json};

/// `POST /oap/data/delete`: OAP-CORE 17.3.
pub(in crate::http) async fn delete(
    owner: Owner<Admin>,
    State(app): State<App>,
    mut request: Incoming,
) -> Result<Response, Error> {
    let what: DeleteRequest = request.json_as().await?;
    Ok(Oap(Deletions(&app.gateway).delete(&owner, what).await?).into_response())
}

pub(in crate::http) async fn list_holds(
    owner: Owner<Admin>,
    State(app): State<App>,
) -> Result<Response, Error> {
    let holds: Vec<Value> = Deletions(&app
        .gateway)
        .hold_list(&owner)?
        .into_iter()
        .map(|(item, hold)| {
            json!({"item_id": item, "reason": hold.reason, "until": hold.until, "erase_after": hold.erase_after})
        })
        .collect();
    Ok(Oap(json!({"holds": holds})).into_response())
}

pub(in crate::http) async fn set_hold(
    owner: Owner<Admin>,
    State(app): State<App>,
    mut request: Incoming,
) -> Result<Response, Error> {
    Ok(Oap(json!({"held": Deletions(&app.gateway).hold(&owner, request.json_as().await?).await?}))
        .into_response())
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Release {
    items: Vec<ItemId>,
}

pub(in crate::http) async fn release_holds(
    owner: Owner<Admin>,
    State(app): State<App>,
    mut request: Incoming,
) -> Result<Response, Error> {
    let Release { items } = request.json_as().await?;
    Ok(Oap(json!({"released": Deletions(&app.gateway).release(&owner, items).await?})).into_response())
}

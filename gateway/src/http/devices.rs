//! What the owner's other devices ask, each with the token of the grant that it was given (protocol section 18).

use super::App;
use super::credential::as_grantee;
use super::request::{Incoming, oap_bytes};
use crate::Error;
use crate::service::Devices;
use axum::extract::State;
use axum::response::Response;

/// `POST /oap/memory/changes`: what changed since.
pub async fn changes(State(app): State<App>, mut request: Incoming) -> Result<Response, Error> {
    let answer = as_grantee(&mut request, async |request, caller| {
        Devices(&app.gateway).tell(caller, request.json_as().await?).await
    });
    answer.await.map(oap_bytes)
}

/// `POST /oap/memory/changes/items`: what these items say.
pub async fn changed(State(app): State<App>, mut request: Incoming) -> Result<Response, Error> {
    let answer = as_grantee(&mut request, async |request, caller| {
        Devices(&app.gateway).tell_named(caller, request.json_as().await?).await
    });
    answer.await.map(oap_bytes)
}

//! `POST /oap/peer/letter`: the one door for other gateways (protocol section 13).

use super::App;
use super::request::{Incoming, oap_bytes};
use crate::Error;
use crate::service::Letters;
use axum::extract::State;
use axum::response::Response;
use oap_federation::UnverifiedLetter;

/// Takes a letter, and answers with a signed reply. Nothing of it is looked at beyond its shape before its sender is proved, and
/// whoever is not is answered alike.
pub async fn letter(State(app): State<App>, mut request: Incoming) -> Result<Response, Error> {
    request.rate_limit()?;
    let network = request.network();
    let body = request.bytes().await?;
    let letter = UnverifiedLetter::parse(&body)?;
    drop(body);
    Letters(&app.gateway).receive(letter, network).await.map(oap_bytes)
}

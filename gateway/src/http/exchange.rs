//! The endpoints of the memory exchange (RFC 0010 section 3, protocol sections 5 and 6).

use super::App;
use super::credential::as_grantee;
use super::request::{Incoming, Oap, oap_bytes};
use crate::Error;
use crate::service::{Audit, Exchange, Exports, Grants};
use crate::state::gateway::blocking;
use axum::extract::{Path, State};
use axum::http::header;
use axum::response::{IntoResponse, Response};
use oap_exchange::Query;
use oap_grants::exchange::ExchangeRequest;
use oap_grants::status;
use oap_identity::{GrantId, ReceiptId};
use oap_manifest::path;
use oap_memory::receipt::ReceiptSignature;
use serde::Deserialize;
use serde_json::json;

/// `POST /oap/memory/query`: RFC 0010 section 3.5.
pub async fn query(State(app): State<App>, mut request: Incoming) -> Result<Response, Error> {
    let answer = as_grantee(&mut request, async |request, caller| {
        let mut query: Query = request.json_as().await?;
        query.request_id.get_or_insert_with(|| request.name().clone());
        Exchange(&app.gateway).query(caller, query).await
    });
    answer.await.map(oap_bytes)
}

/// `GET /oap/memory/vec/{item_id}`: the vector of an item's projected text, for grants with `embedding_access`.
pub async fn vector(
    State(app): State<App>,
    Path(id): Path<String>,
    mut request: Incoming,
) -> Result<Response, Error> {
    let bytes = as_grantee(&mut request, async |_, caller| {
        let id = id.parse().map_err(|_| Error::NotFound)?;
        Exchange(&app.gateway).vector(caller, id).await
    });
    let bytes = bytes.await?;
    Ok(([(header::CONTENT_TYPE, "application/octet-stream")], bytes).into_response())
}

/// `POST /oap/memory/export`: the grantee's whole view as a bundle, for grants with `operations: ["export"]`.
pub async fn export(State(app): State<App>, mut request: Incoming) -> Result<Response, Error> {
    let bytes =
        as_grantee(&mut request, async |_, caller| Exports(&app.gateway).export_view(caller).await).await?;
    Ok(([(header::CONTENT_TYPE, "application/jsonl")], bytes).into_response())
}

/// `POST /oap/memory/grant`: protocol section 5.1.
pub async fn grant(State(app): State<App>, mut request: Incoming) -> Result<Response, Error> {
    request.rate_limit()?;
    let body: ExchangeRequest = request.json_as().await?;
    let answer = Grants(&app.gateway).exchange(body, &app.gateway.url(path::GRANT)).await?;
    Ok(Oap(answer).into_response())
}

/// `GET /oap/memory/grant/{grant_id}`: the state of a grant, for its grantee alone. The grantee sends a proof as
/// for the exchange, made for this address, as `Authorization: OAP-Proof <jwt>`.
pub async fn grant_state(
    State(app): State<App>,
    Path(id): Path<String>,
    request: Incoming,
) -> Result<Response, Error> {
    request.rate_limit()?;
    let id: GrantId = id.parse().map_err(|_| Error::NotFound)?;
    let authorization = request.header("authorization");
    let [authorization] = authorization.as_slice() else { return Err(Error::NotFound) };
    let proof = authorization.strip_prefix("OAP-Proof ").ok_or(Error::NotFound)?;
    let state = Grants(&app.gateway).grant_state(id, proof.trim()).await?;
    Ok(Oap(json!({"grant_id": id, "state": state.as_str()})).into_response())
}

/// `GET /oap/memory/status`: the Token Status List of all grants.
pub async fn status(State(app): State<App>, request: Incoming) -> Result<Response, Error> {
    request.rate_limit()?;
    let list = blocking(move || Grants(&app.gateway).status_list()).await?;
    Ok(([(header::CONTENT_TYPE, format!("application/{}", status::TYP))], list).into_response())
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Ack {
    receipt_id: ReceiptId,
    signature: ReceiptSignature,
}

/// `POST /oap/memory/ack`: the grantee's countersignature under a receipt that names it (protocol section 8).
pub async fn ack(State(app): State<App>, mut request: Incoming) -> Result<Response, Error> {
    request.rate_limit()?;
    let ack: Ack = request.json_as().await?;
    let receipt = Audit(&app.gateway).countersign(ack.receipt_id, ack.signature).await?;
    Ok(Oap(json!({"receipt": receipt})).into_response())
}

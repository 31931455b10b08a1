//! `/.well-known/brain/sparql`: the query side of the SPARQL 1.1 Protocol, for the owner's agents (docs/brain.md).
//!
//! NOT COMPILED, and no module of the gateway yet: docs/brain.md, "What the gateway still needs", says what makes it one.

use super::App;
use super::mcp;
use super::request::Incoming;
use crate::Error;
use crate::service::Tools;
use crate::service::tools::asking::SparqlRequest;
use axum::extract::State;
use axum::http::header;
use axum::response::{IntoResponse, Response};

/// `GET` and `POST /.well-known/brain/sparql`.
pub(super) async fn sparql(State(app): State<App>, mut request: Incoming) -> Result<Response, Error> {
    let agent = mcp::agent(&mut request).await?;
    let (method, endpoint) = request.target();
    // To be added to `Incoming`: the part behind the `?` as it came, and the body whatever its type (`read_any`).
    let parameters = request.raw_parameters().to_owned();
    let content_type = request.header("content-type").into_iter().next();
    let accept = request.header("accept");
    let accept = (!accept.is_empty()).then(|| accept.join(", "));
    let body = if method == "POST" { request.any_bytes().await?.to_vec() } else { Vec::new() };
    let asked = SparqlRequest { method, parameters, content_type, accept, body, endpoint };
    let answer = Tools(&app.gateway).sparql(&agent, asked).await?;
    let headers = [
        (header::CONTENT_TYPE, answer.media_type),
        (header::VARY, "Accept"),
        (header::CACHE_CONTROL, "no-store"),
    ];
    Ok((headers, answer.body).into_response())
}

//! `/.well-known/brain/sparql`: the query side of the SPARQL 1.1 Protocol, for the owner's agents (docs/brain.md).

use super::App;
use super::mcp;
use super::request::Incoming;
use crate::Error;
use crate::service::Tools;
use crate::service::tools::asking::{SparqlAnswer, SparqlRequest};
use axum::extract::State;
use axum::http::header;
use axum::response::{IntoResponse, Response};

/// Largest body, in bytes: a query of the longest, each byte of it percent-encoded, and the graphs that are chosen beside it.
pub const MAX_BODY: usize = 4 * oap_brain::bounds::MAX_QUERY;

/// `GET` and `POST /.well-known/brain/sparql`.
pub(super) async fn sparql(State(app): State<App>, mut request: Incoming) -> Result<Response, Error> {
    let agent = mcp::agent(&mut request).await?;
    let (method, endpoint) = request.target();
    let parameters = request.raw_parameters().to_owned();
    // Two of them are none that can be read.
    let content_type = Some(request.header("content-type").join(", ")).filter(|given| !given.is_empty());
    let accept = Some(request.header("accept").join(", ")).filter(|given| !given.is_empty());
    let body = if method == "POST" { request.any_bytes(MAX_BODY).await?.to_vec() } else { Vec::new() };
    let asked = SparqlRequest { method, parameters, content_type, accept, body, endpoint };
    let SparqlAnswer { media_type, body } = Tools(&app.gateway).sparql(&agent, asked).await?;
    Ok(([(header::CONTENT_TYPE, media_type), (header::VARY, "Accept")], body).into_response())
}

//! What anybody may read: the published documents, health, actions by intent, incidents.

use super::App;
use super::request::{Incoming, Oap};
use crate::Error;
use crate::api::MEDIA_TYPE;
use crate::api::openapi;
use crate::error::MemberError;
use crate::service::{Attestations, Audit, Incidents};
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use oap_identity::Hash;
use oap_manifest::actions::Action;
use oap_memory::text::{Language, terms};
use serde::Deserialize;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::sync::LazyLock;

/// `GET /.well-known/oap-memory.json`
pub async fn memory(State(app): State<App>, headers: HeaderMap) -> Response {
    published(&headers, MEDIA_TYPE, &app.gateway.published().memory)
}

/// `GET /.well-known/oap-tool.json`
pub async fn tool(State(app): State<App>, headers: HeaderMap) -> Response {
    published(&headers, MEDIA_TYPE, &app.gateway.published().tool)
}

/// `GET /.well-known/oap-scopes.json`
pub async fn scopes(State(app): State<App>, headers: HeaderMap) -> Response {
    published(&headers, MEDIA_TYPE, &app.gateway.published().scopes)
}

/// `GET /.well-known/did.json`
pub async fn did(State(app): State<App>, headers: HeaderMap) -> Response {
    published(&headers, MEDIA_TYPE, &app.gateway.published().did)
}

/// `GET /.well-known/oap-key-handovers.json`
pub async fn handovers(State(app): State<App>, headers: HeaderMap) -> Response {
    published(&headers, MEDIA_TYPE, &app.gateway.published().handovers)
}

/// `GET /.well-known/agent-card.json`: the card of the A2A protocol.
pub async fn agent_card(State(app): State<App>, headers: HeaderMap) -> Response {
    published(&headers, "application/json", &app.gateway.published().card)
}

/// A published document; 304 for whoever names it by its entity tag (RFC 9110 section 13.1.2).
fn published(headers: &HeaderMap, media_type: &'static str, document: &Value) -> Response {
    let body = match serde_json::to_vec(document) {
        Ok(body) => body,
        Err(error) => return Error::from(error).into_response(),
    };
    let etag = format!("\"{}\"", Hash::of(&body));
    let named = headers.get_all(header::IF_NONE_MATCH).iter().filter_map(|value| value.to_str().ok());
    let is_known = named.flat_map(|value| value.split(',')).any(|tag| {
        let tag = tag.trim();
        tag == "*" || tag.strip_prefix("W/").unwrap_or(tag) == etag
    });
    let etag = [(header::ETAG, etag)];
    if is_known {
        return (StatusCode::NOT_MODIFIED, etag).into_response();
    }
    (etag, [(header::CONTENT_TYPE, media_type)], body).into_response()
}

/// `GET /oap/openapi.json`: the owner's endpoints, for whoever writes a client. It says nothing of this gateway.
pub async fn openapi() -> Response {
    static DOCUMENT: LazyLock<String> = LazyLock::new(|| openapi::document().to_string());
    ([(header::CONTENT_TYPE, "application/json")], DOCUMENT.as_str()).into_response()
}

/// `GET /readyz`: whether commits are taken.
pub async fn ready(State(app): State<App>) -> Response {
    if app.gateway.store.is_stopped() {
        return (StatusCode::SERVICE_UNAVAILABLE, "the store stopped\n").into_response();
    }
    "ready\n".into_response()
}

/// Longest intent, in bytes.
pub const MAX_INTENT: usize = 512;

#[derive(Deserialize)]
struct Intent {
    intent: String,
}

/// `POST /oap/discover`: actions by intent (OAP-CORE 14). Ranked by shared words and by nothing else.
pub async fn discover(mut request: Incoming) -> Result<Response, Error> {
    request.rate_limit()?;
    let Intent { intent } = request.json_as().await?;
    if intent.len() > MAX_INTENT {
        return Err(Error::Member("intent", MemberError::TooLong(MAX_INTENT)));
    }
    let asked = words(&intent);
    let mut matches: Vec<(f64, Value)> = Action::ALL
        .into_iter()
        .map(|action| {
            let known: BTreeSet<String> = action.intents().iter().flat_map(|word| words(word)).collect();
            let shared = asked.intersection(&known).count();
            let confidence = shared as f64 / asked.len().max(1) as f64;
            let found = json!({
                "action_id": action.id(),
                "confidence": confidence,
                "estimated_cost": {"amount": "0", "currency": "EUR"},
            });
            (confidence, found)
        })
        .filter(|(confidence, _)| *confidence > 0.0)
        .collect();
    matches.sort_by(|(a, _), (b, _)| b.total_cmp(a));
    let actions: Vec<Value> = matches.into_iter().map(|(_, found)| found).collect();
    Ok(Oap(json!({"actions": actions})).into_response())
}

fn words(text: &str) -> BTreeSet<String> {
    terms(text, Language::English).into_iter().filter(|term| !term.stop).map(|term| term.text).collect()
}

/// `GET /oap/incident`: the reports that the owner published (OAP-CORE 22.2).
pub async fn incidents(State(app): State<App>, request: Incoming) -> Result<Response, Error> {
    request.rate_limit()?;
    Ok(Oap(json!({"incidents": Incidents(&app.gateway).incidents()?})).into_response())
}

/// `POST /oap/receipt/verify`: whether a receipt that somebody holds is one of this gateway's.
pub async fn receipt_verify(State(app): State<App>, mut request: Incoming) -> Result<Response, Error> {
    request.rate_limit()?;
    let id = Audit(&app.gateway).verify_receipt(&request.json().await?)?;
    Ok(Oap(json!({"receipt_id": id, "valid": true})).into_response())
}

/// `GET /oap-conformance-receipt.json`: while one is in force.
pub async fn conformance(State(app): State<App>) -> Result<Response, Error> {
    Ok(Oap(Attestations(&app.gateway).conformance()?).into_response())
}

//! The audit log, the audit of memorization, and incidents.

use crate::Error;
use crate::http::App;
use crate::http::credential::as_grantee;
use crate::http::request::{Incoming, Oap, presented};
use crate::service::audit::AuditQuery;
use crate::service::{Audit, Exchange, Incidents, Memorization};
use crate::state::gateway::{Gateway, blocking};
use crate::state::jobs::Progress;
use crate::state::owner::Owner;
use crate::state::owner::mark::Admin;
use crate::state::refusals::Counted;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};

/// `GET /oap/audit`: the owner sees everything, a grantee the receipts that name it, anybody else those of
/// anonymous calls (protocol section 8).
pub(in crate::http) async fn audit(State(app): State<App>, mut request: Incoming) -> Result<Response, Error> {
    let query: AuditQuery = request.query()?;
    let credential = !request.header("authorization").is_empty();
    let receipts = if !credential {
        request.rate_limit()?;
        Audit(&app.gateway).audit_public(&query)?
    } else if presented(&request, Gateway::presents_trust_token) {
        let owner = request.owner::<Admin>().await?;
        let gateway = app.gateway.clone();
        blocking(move || Audit(&gateway).audit_owner(&owner, &query)).await?
    } else {
        as_grantee(&mut request, async |_, caller| {
            if !app.gateway.refusals.admit(Counted::Audit, caller.first(), app.gateway.clock.now()) {
                return Err(Error::RateLimited);
            }
            Exchange(&app.gateway).keep_proof(caller).await?;
            let (gateway, grantee) = (app.gateway.clone(), caller.grantee().clone());
            blocking(move || Audit(&gateway).audit_grantee(&grantee, &query)).await
        })
        .await?
    };
    Ok(Oap(json!({"receipts": receipts})).into_response())
}

pub(in crate::http) async fn list_chains(
    owner: Owner<Admin>,
    State(app): State<App>,
) -> Result<Response, Error> {
    Ok(Oap(json!({"chains": Audit(&app.gateway).chain_list(&owner)?})).into_response())
}

pub(in crate::http) async fn verify_audit(
    owner: Owner<Admin>,
    State(app): State<App>,
) -> Result<Response, Error> {
    let gateway = app.gateway.clone();
    let verified = blocking(move || Audit(&gateway).verify_audit(&owner, &Progress::default())).await?;
    let chains: Vec<Value> = verified
        .into_iter()
        .map(|(chain, v)| json!({"chain": chain, "length": v.length, "tip": v.tip, "at": v.at}))
        .collect();
    Ok(Oap(json!({"chains": chains})).into_response())
}

pub(in crate::http) async fn audit_memorization(
    owner: Owner<Admin>,
    State(app): State<App>,
) -> Result<Response, Error> {
    Ok(Oap(Memorization(&app.gateway).audit_memorization(&owner).await?).into_response())
}

pub(in crate::http) async fn report_incident(
    owner: Owner<Admin>,
    State(app): State<App>,
    mut request: Incoming,
) -> Result<Response, Error> {
    Ok(Oap(Incidents(&app.gateway).report_incident(&owner, request.json().await?).await?).into_response())
}

//! Grants: tried, issued, listed, taken back; consent, and what they spend.

use crate::Error;
use crate::http::App;
use crate::http::request::{Incoming, Oap};
use crate::service::grants::GrantDraft;
use crate::service::{Budgets, Gates, Grants};
use crate::state::owner::Owner;
use crate::state::owner::mark::{Admin, Read};
use axum::extract::{Path, State};
use axum::response::{IntoResponse, Response};
use oap_identity::GrantId;
use oap_memory::{Profile, TrustLevel};
use serde::Deserialize;
use serde_json::{Value, json};

fn grant_id(text: &str) -> Result<GrantId, Error> {
    text.parse().map_err(|_| Error::NotFound)
}

pub(in crate::http) async fn preview_grant(
    owner: Owner<Admin>,
    State(app): State<App>,
    mut request: Incoming,
) -> Result<Response, Error> {
    let draft: GrantDraft = request.json_as().await?;
    Ok(Oap(Grants(&app.gateway).preview(&owner, draft).await?).into_response())
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Issuing {
    /// Whether to issue without looking whether the grantee's DID has a document.
    #[serde(default)]
    offline: bool,
}

pub(in crate::http) async fn issue_grant(
    owner: Owner<Admin>,
    State(app): State<App>,
    mut request: Incoming,
) -> Result<Response, Error> {
    let Issuing { offline } = request.query()?;
    let draft: GrantDraft = request.json_as().await?;
    if !offline {
        Grants(&app.gateway).resolve_grantee(&owner, &draft.grantee).await?;
    }
    let signed = Grants(&app.gateway).issue(&owner, draft).await?;
    Ok(Oap(Grants(&app.gateway).grant_info(&owner, signed.grant().grant_id)?).into_response())
}

pub(in crate::http) async fn list_grants(
    owner: Owner<Admin>,
    State(app): State<App>,
) -> Result<Response, Error> {
    Ok(Oap(json!({"grants": Grants(&app.gateway).grant_list(&owner)})).into_response())
}

pub(in crate::http) async fn show_grant(
    owner: Owner<Admin>,
    State(app): State<App>,
    Path(id): Path<String>,
) -> Result<Response, Error> {
    Ok(Oap(Grants(&app.gateway).grant_info(&owner, grant_id(&id)?)?).into_response())
}

pub(in crate::http) async fn revoke_grant(
    owner: Owner<Admin>,
    State(app): State<App>,
    Path(id): Path<String>,
) -> Result<Response, Error> {
    Ok(Oap(Grants(&app.gateway).revoke(&owner, grant_id(&id)?).await?).into_response())
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Consent {
    given: bool,
}

pub(in crate::http) async fn consent(
    owner: Owner<Admin>,
    State(app): State<App>,
    Path(id): Path<String>,
    mut request: Incoming,
) -> Result<Response, Error> {
    let Consent { given } = request.json_as().await?;
    Gates(&app.gateway).consent(&owner, grant_id(&id)?, given).await?;
    Ok(Oap(json!({})).into_response())
}

pub(in crate::http) async fn list_budgets(
    owner: Owner<Admin>,
    State(app): State<App>,
) -> Result<Response, Error> {
    let accounts = Budgets(&app.gateway).accounts(&owner)?;
    let spent: f64 = accounts.iter().map(|account| account.epsilon_spent).sum();
    Ok(Oap(json!({"accounts": accounts, "epsilon_spent": spent})).into_response())
}

pub(in crate::http) async fn refill_budget(
    owner: Owner<Admin>,
    State(app): State<App>,
    mut request: Incoming,
) -> Result<Response, Error> {
    Budgets(&app.gateway).refill(&owner, request.json_as().await?).await?;
    Ok(Oap(json!({})).into_response())
}

pub(in crate::http) async fn list_profiles(
    _: Owner<Read>,
    State(app): State<App>,
) -> Result<Response, Error> {
    let profiles: Vec<Value> = app.gateway.profiles().iter().map(describe_profile).collect();
    Ok(Oap(json!({"profiles": profiles})).into_response())
}

fn describe_profile(profile: &Profile) -> Value {
    let levels = |table: &oap_memory::profile::Table| -> Vec<Value> {
        let fields = |level: TrustLevel| {
            let added = table.fields(level).filter(move |(at, _)| *at == level);
            added.map(|(_, field)| format!("{}{}", field.as_str(), field.conditions())).collect::<Vec<_>>()
        };
        TrustLevel::all()
            .map(|level| json!({"adds": fields(level), "text": table.text(level).to_string()}))
            .collect()
    };
    json!({
        "name": profile.name(), "description": profile.description(), "hash": profile.hash(),
        "minimum_level": profile.minimum_level(), "entity_type": profile.entity_type(),
        "entity": profile.entity_table().map(levels), "levels": levels(profile.general_table()),
    })
}

//! The owner's side: items, grants, keys, incidents, audit, deletion. Every request carries a trust token and a
//! DPoP proof (protocol section 10).

use super::App;
use super::credential::as_grantee;
use super::request::{Incoming, Oap, presented};
use crate::Error;
use crate::error::MemberError;
use crate::service::audit::AuditQuery;
use crate::service::conformance::AttestRequest;
use crate::service::deletion::DeleteRequest;
use crate::service::grants::GrantDraft;
use crate::service::import::{BundleChunk, RecordChunk};
use crate::service::items::ListQuery;
use crate::state::gateway::{Gateway, blocking};
use crate::state::jobs::Progress;
use crate::state::owner::Owner;
use crate::state::owner::mark::{Admin, Read, Write};
use crate::state::refusals::Counted;
use axum::Router;
use axum::extract::{Path, State};
use axum::http::header;
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use oap_grants::{dpop, exchange};
use oap_identity::{GrantId, Hash, ItemId, Timestamp};
use oap_memory::chain::Event;
use oap_memory::{Profile, TrustLevel};
use serde::Deserialize;
use serde_json::{Value, json};

/// The routes below `/oap/owner`.
pub fn routes() -> Router<App> {
    Router::new()
        .route("/items", get(list_items).post(write_items))
        .route("/items/{id}", get(read_item))
        .route("/items/{id}/{event}", post(change_item))
        .route("/items/{id}/explain", get(explain_item))
        .route("/profiles", get(list_profiles))
        .route("/grants", get(list_grants).post(issue_grant))
        .route("/grants/preview", post(preview_grant))
        .route("/grants/{id}", get(show_grant))
        .route("/grants/{id}/revoke", post(revoke_grant))
        .route("/keys", get(list_keys))
        .route("/keys/rotate", post(rotate_keys))
        .route("/keys/{fragment}/revoke", post(revoke_key))
        .route("/keys/held-back", get(held_back))
        .route("/keys/reseal", post(reseal_held))
        .route("/keys/receipts", post(sign_receipts_anew))
        .route("/budgets", get(list_budgets))
        .route("/budgets/refill", post(refill_budget))
        .route("/contexts", get(list_contexts).post(set_context))
        .route("/contexts/{scope}/remove", post(remove_context))
        .route("/bridges", get(list_bridges).post(issue_bridge))
        .route("/bridges/{id}/revoke", post(revoke_bridge))
        .route("/grants/{id}/consent", post(consent))
        .route("/decisions/{id}", get(decision))
        .route("/export/header", post(export_header))
        .route("/export/page", post(export_page))
        .route("/export/seal", post(export_seal))
        .route("/import/bundle", post(import_bundle))
        .route("/import/records", post(import_records))
        .route("/import/finish", post(import_finish))
        .route("/holds", get(list_holds).post(set_hold))
        .route("/holds/release", post(release_holds))
        .route("/backup", post(backup))
        .route("/clock", get(clock))
        .route("/clock/accept", post(accept_clock))
        .route("/doctor", get(doctor))
        .route("/status", get(status))
        .route("/prove", post(prove))
        .route("/attest", post(attest))
        .route("/witness", post(witness))
        .route("/incidents", post(report_incident))
        .route("/audit/memorization", post(audit_memorization))
        .route("/audit/chains", get(list_chains))
        .route("/audit/verify", get(verify_audit))
        .merge(super::items::routes())
        .merge(super::jobs::routes())
}

fn item_id(text: &str) -> Result<ItemId, Error> {
    text.parse().map_err(|_| Error::NotFound)
}

fn grant_id(text: &str) -> Result<GrantId, Error> {
    text.parse().map_err(|_| Error::NotFound)
}

async fn write_items(
    _: Owner<Write>,
    State(app): State<App>,
    mut request: Incoming,
) -> Result<Response, Error> {
    let mut body = request.json().await?;
    let items = match body.get_mut("items").map(Value::take) {
        Some(Value::Array(items)) => items,
        Some(_) => return Err(Error::Member("items", MemberError::NotArray)),
        None => vec![body],
    };
    let written = app.gateway.capture(&items).await?;
    Ok(Oap(json!({"items": written})).into_response())
}

async fn list_items(_: Owner<Read>, State(app): State<App>, request: Incoming) -> Result<Response, Error> {
    let wanted: ListQuery = request.query()?;
    let (items, next) = app.gateway.list(&wanted)?;
    Ok(Oap(json!({"items": items, "next": next})).into_response())
}

async fn read_item(
    _: Owner<Read>,
    State(app): State<App>,
    Path(id): Path<String>,
) -> Result<Response, Error> {
    Ok(Oap(app.gateway.item(item_id(&id)?)?).into_response())
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

async fn explain_item(
    _: Owner<Read>,
    State(app): State<App>,
    Path(id): Path<String>,
    request: Incoming,
) -> Result<Response, Error> {
    Ok(Oap(app.gateway.explain(item_id(&id)?, &request.query()?)?).into_response())
}

async fn list_budgets(_: Owner<Admin>, State(app): State<App>) -> Result<Response, Error> {
    let accounts = app.gateway.accounts()?;
    let spent: f64 = accounts.iter().map(|account| account.epsilon_spent).sum();
    Ok(Oap(json!({"accounts": accounts, "epsilon_spent": spent})).into_response())
}

async fn refill_budget(
    _: Owner<Admin>,
    State(app): State<App>,
    mut request: Incoming,
) -> Result<Response, Error> {
    app.gateway.refill(request.json_as().await?).await?;
    Ok(Oap(json!({})).into_response())
}

async fn export_header(
    _: Owner<Admin>,
    State(app): State<App>,
    mut request: Incoming,
) -> Result<Response, Error> {
    Ok(Oap(app.gateway.export_header(&request.json_as().await?)?).into_response())
}

/// The cursor of the next page, and how many items were held back, as a JSON line; then the page's lines.
async fn export_page(
    _: Owner<Admin>,
    State(app): State<App>,
    mut request: Incoming,
) -> Result<Response, Error> {
    let (gateway, wanted) = (app.gateway.clone(), request.json_as().await?);
    let page = blocking(move || gateway.export_page(&wanted)).await?;
    let mut bytes = json!({"next": page.next, "held_back": page.held_back}).to_string().into_bytes();
    bytes.push(b'\n');
    bytes.extend(page.lines);
    Ok(([(header::CONTENT_TYPE, "application/jsonl")], bytes).into_response())
}

async fn export_seal(
    _: Owner<Admin>,
    State(app): State<App>,
    mut request: Incoming,
) -> Result<Response, Error> {
    Ok(Oap(app.gateway.export_seal(request.json_as().await?).await?).into_response())
}

async fn import_bundle(
    _: Owner<Admin>,
    State(app): State<App>,
    mut request: Incoming,
) -> Result<Response, Error> {
    let chunk = request.json_with(|body| Ok(BundleChunk::parse(body)?)).await?;
    Ok(Oap(json!({"fates": app.gateway.import_bundle(chunk).await?})).into_response())
}

async fn import_records(
    _: Owner<Admin>,
    State(app): State<App>,
    mut request: Incoming,
) -> Result<Response, Error> {
    let chunk = request.json_with(|body| Ok(RecordChunk::parse(body)?)).await?;
    Ok(Oap(json!({"fates": app.gateway.import_records(chunk).await?})).into_response())
}

async fn import_finish(
    _: Owner<Admin>,
    State(app): State<App>,
    mut request: Incoming,
) -> Result<Response, Error> {
    Ok(Oap(json!({"receipt": app.gateway.import_finish(request.json_as().await?).await?})).into_response())
}

async fn list_holds(_: Owner<Admin>, State(app): State<App>) -> Result<Response, Error> {
    let holds: Vec<Value> = app
        .gateway
        .holds()?
        .into_iter()
        .map(|(item, hold)| {
            json!({"item_id": item, "reason": hold.reason, "until": hold.until, "erase_after": hold.erase_after})
        })
        .collect();
    Ok(Oap(json!({"holds": holds})).into_response())
}

async fn set_hold(_: Owner<Admin>, State(app): State<App>, mut request: Incoming) -> Result<Response, Error> {
    Ok(Oap(json!({"held": app.gateway.hold(request.json_as().await?).await?})).into_response())
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Release {
    items: Vec<ItemId>,
}

async fn release_holds(
    _: Owner<Admin>,
    State(app): State<App>,
    mut request: Incoming,
) -> Result<Response, Error> {
    let Release { items } = request.json_as().await?;
    Ok(Oap(json!({"released": app.gateway.release(items).await?})).into_response())
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Backup {
    folder: std::path::PathBuf,
}

async fn backup(_: Owner<Admin>, State(app): State<App>, mut request: Incoming) -> Result<Response, Error> {
    let Backup { folder } = request.json_as().await?;
    Ok(Oap(app.gateway.backup(folder, &Progress::default()).await?).into_response())
}

async fn doctor(_: Owner<Admin>, State(app): State<App>) -> Result<Response, Error> {
    let gateway = app.gateway.clone();
    let findings = blocking(move || gateway.examine(&Progress::default())).await?;
    Ok(Oap(json!({"findings": findings})).into_response())
}

async fn status(_: Owner<Admin>, State(app): State<App>) -> Result<Response, Error> {
    let gateway = app.gateway.clone();
    Ok(Oap(json!(blocking(move || gateway.status()).await?)).into_response())
}

async fn list_contexts(_: Owner<Admin>, State(app): State<App>) -> Result<Response, Error> {
    let contexts: Vec<Value> = app.gateway.contexts()?.into_values().map(|(_, document)| document).collect();
    Ok(Oap(json!({"contexts": contexts})).into_response())
}

async fn set_context(
    _: Owner<Admin>,
    State(app): State<App>,
    mut request: Incoming,
) -> Result<Response, Error> {
    app.gateway.set_context(request.json().await?).await?;
    Ok(Oap(json!({})).into_response())
}

async fn remove_context(
    _: Owner<Admin>,
    State(app): State<App>,
    Path(scope): Path<String>,
) -> Result<Response, Error> {
    app.gateway.remove_context(scope.parse().map_err(|_| Error::NotFound)?).await?;
    Ok(Oap(json!({})).into_response())
}

async fn list_bridges(_: Owner<Admin>, State(app): State<App>) -> Result<Response, Error> {
    Ok(Oap(json!({"bridges": app.gateway.bridge_list()?})).into_response())
}

async fn issue_bridge(
    _: Owner<Admin>,
    State(app): State<App>,
    mut request: Incoming,
) -> Result<Response, Error> {
    Ok(Oap(app.gateway.issue_bridge(request.json_as().await?).await?).into_response())
}

async fn revoke_bridge(
    _: Owner<Admin>,
    State(app): State<App>,
    Path(id): Path<String>,
) -> Result<Response, Error> {
    app.gateway.revoke_bridge(id.parse().map_err(|_| Error::NotFound)?).await?;
    Ok(Oap(json!({})).into_response())
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Consent {
    given: bool,
}

async fn consent(
    _: Owner<Admin>,
    State(app): State<App>,
    Path(id): Path<String>,
    mut request: Incoming,
) -> Result<Response, Error> {
    let Consent { given } = request.json_as().await?;
    app.gateway.consent(grant_id(&id)?, given).await?;
    Ok(Oap(json!({})).into_response())
}

async fn decision(
    _: Owner<Admin>,
    State(app): State<App>,
    Path(id): Path<String>,
) -> Result<Response, Error> {
    Ok(Oap(app.gateway.decision(id.parse().map_err(|_| Error::NotFound)?)?).into_response())
}

async fn list_profiles(_: Owner<Read>, State(app): State<App>) -> Result<Response, Error> {
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

/// How an item is resealed: where its text would be cut in another way, unless `always`.
#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Resealing {
    dry_run: bool,
    always: bool,
    /// When the job began that this is part of; now if absent.
    at: Option<Timestamp>,
}

async fn change_item(
    _: Owner<Write>,
    State(app): State<App>,
    Path((id, event)): Path<(String, String)>,
    mut request: Incoming,
) -> Result<Response, Error> {
    let id = item_id(&id)?;
    let written = match event.as_str() {
        "correct" => {
            let Correction { item, version } = request.json_as().await?;
            app.gateway.correct(id, item, version, Event::Correct).await?
        }
        "relabel" => {
            let Relabelling { labels } = request.json_as().await?;
            app.gateway.correct(id, json!({"labels": labels}), None, Event::Relabel).await?
        }
        "retract" => app.gateway.mark(id, Event::Retract).await?,
        "restore" => app.gateway.mark(id, Event::Restore).await?,
        "reseal" => {
            let Resealing { dry_run, always, at } = request.json_as().await?;
            let answer = if dry_run {
                json!({"would_reseal": app.gateway.would_reseal(id).await?})
            } else {
                json!({"resealed": app.gateway.reseal(id, always, at).await?})
            };
            return Ok(Oap(answer).into_response());
        }
        "confirm" => app.gateway.mark(id, Event::Confirm).await?,
        _ => return Err(Error::NotFound),
    };
    Ok(Oap(written).into_response())
}

async fn preview_grant(
    _: Owner<Admin>,
    State(app): State<App>,
    mut request: Incoming,
) -> Result<Response, Error> {
    let draft: GrantDraft = request.json_as().await?;
    Ok(Oap(app.gateway.preview(draft).await?).into_response())
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Issuing {
    /// Whether to issue without looking whether the grantee's DID has a document.
    #[serde(default)]
    offline: bool,
}

async fn issue_grant(
    _: Owner<Admin>,
    State(app): State<App>,
    mut request: Incoming,
) -> Result<Response, Error> {
    let Issuing { offline } = request.query()?;
    let draft: GrantDraft = request.json_as().await?;
    if !offline {
        app.gateway.resolve_grantee(&draft.grantee).await?;
    }
    let signed = app.gateway.issue(draft).await?;
    Ok(Oap(app.gateway.grant_info(signed.grant().grant_id)?).into_response())
}

async fn list_grants(_: Owner<Admin>, State(app): State<App>) -> Result<Response, Error> {
    Ok(Oap(json!({"grants": app.gateway.grant_list()})).into_response())
}

async fn show_grant(
    _: Owner<Admin>,
    State(app): State<App>,
    Path(id): Path<String>,
) -> Result<Response, Error> {
    Ok(Oap(app.gateway.grant_info(grant_id(&id)?)?).into_response())
}

async fn revoke_grant(
    _: Owner<Admin>,
    State(app): State<App>,
    Path(id): Path<String>,
) -> Result<Response, Error> {
    Ok(Oap(app.gateway.revoke(grant_id(&id)?).await?).into_response())
}

async fn list_keys(_: Owner<Admin>, State(app): State<App>) -> Result<Response, Error> {
    Ok(Oap(json!({"keys": app.gateway.keys().list()})).into_response())
}

/// After a change of keys the caller's own token has ended: the answer carries its successor.
fn with_token(gateway: &Gateway, owner: &Owner<Admin>, keys: Value) -> Result<Response, Error> {
    let token = gateway.renew_token(owner)?;
    Ok(Oap(json!({"keys": keys, "trust_token": token})).into_response())
}

async fn rotate_keys(owner: Owner<Admin>, State(app): State<App>) -> Result<Response, Error> {
    let keys = app.gateway.rotate_keys().await?;
    with_token(&app.gateway, &owner, json!(keys))
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Compromise {
    /// Since when the key is not to be trusted; now if absent.
    #[serde(default)]
    since: Option<Timestamp>,
}

async fn revoke_key(
    owner: Owner<Admin>,
    State(app): State<App>,
    Path(fragment): Path<String>,
    mut request: Incoming,
) -> Result<Response, Error> {
    let Compromise { since } = request.json_as().await?;
    let keys = app.gateway.revoke_key(fragment, since).await?;
    with_token(&app.gateway, &owner, json!(keys))
}

async fn held_back(_: Owner<Admin>, State(app): State<App>) -> Result<Response, Error> {
    Ok(Oap(app.gateway.held_back().await?).into_response())
}

/// An item that is held back, and the time of the job.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Held {
    item: ItemId,
    at: Timestamp,
}

async fn reseal_held(
    _: Owner<Admin>,
    State(app): State<App>,
    mut request: Incoming,
) -> Result<Response, Error> {
    let Held { item, at } = request.json_as().await?;
    Ok(Oap(json!({"resealed": app.gateway.reseal_held(item, at).await?})).into_response())
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct From {
    /// The `next` of the answer before.
    from: Option<String>,
}

async fn sign_receipts_anew(
    _: Owner<Admin>,
    State(app): State<App>,
    mut request: Incoming,
) -> Result<Response, Error> {
    let From { from } = request.json_as().await?;
    Ok(Oap(app.gateway.sign_receipts_anew(from).await?).into_response())
}

/// What the principal proves as a grantee of somebody else: control of its DID to a grant endpoint, or possession
/// of its key to a query endpoint.
#[derive(Deserialize)]
#[serde(untagged, deny_unknown_fields)]
enum Prove {
    Grant { endpoint: String, grant_hash: Hash },
    Request { method: String, url: String, token: String },
}

async fn prove(_: Owner<Admin>, State(app): State<App>, mut request: Incoming) -> Result<Response, Error> {
    let (keys, now) = (app.gateway.keys(), app.gateway.clock.now());
    let random = &*app.gateway.random;
    let proof = match request.json_as().await? {
        Prove::Grant { endpoint, grant_hash } => {
            let proof = exchange::prove(keys.current(), &endpoint, grant_hash, now, random)?;
            json!({"proof": proof})
        }
        Prove::Request { method, url, token } => {
            let target = dpop::Request { method: &method, url: &url };
            json!({"dpop": dpop::prove(keys.current(), target, &token, now, random)?})
        }
    };
    Ok(Oap(proof).into_response())
}

async fn report_incident(
    _: Owner<Admin>,
    State(app): State<App>,
    mut request: Incoming,
) -> Result<Response, Error> {
    Ok(Oap(app.gateway.report_incident(request.json().await?).await?).into_response())
}

async fn audit_memorization(_: Owner<Admin>, State(app): State<App>) -> Result<Response, Error> {
    Ok(Oap(app.gateway.audit_memorization().await?).into_response())
}

async fn attest(_: Owner<Admin>, State(app): State<App>, mut request: Incoming) -> Result<Response, Error> {
    let what: AttestRequest = request.json_as().await?;
    Ok(Oap(app.gateway.attest(what).await?).into_response())
}

async fn witness(_: Owner<Admin>, State(app): State<App>, mut request: Incoming) -> Result<Response, Error> {
    Ok(Oap(app.gateway.witness(request.json().await?)?).into_response())
}

async fn list_chains(_: Owner<Admin>, State(app): State<App>) -> Result<Response, Error> {
    Ok(Oap(json!({"chains": app.gateway.chain_list()?})).into_response())
}

async fn verify_audit(_: Owner<Admin>, State(app): State<App>) -> Result<Response, Error> {
    let gateway = app.gateway.clone();
    let verified = blocking(move || gateway.verify_audit(&Progress::default())).await?;
    let chains: Vec<Value> = verified
        .into_iter()
        .map(|(chain, v)| json!({"chain": chain, "length": v.length, "tip": v.tip, "at": v.at}))
        .collect();
    Ok(Oap(json!({"chains": chains})).into_response())
}

async fn clock(_: Owner<Admin>, State(app): State<App>) -> Result<Response, Error> {
    Ok(Oap(json!(app.gateway.clock_info())).into_response())
}

async fn accept_clock(_: Owner<Admin>, State(app): State<App>) -> Result<Response, Error> {
    Ok(Oap(json!(app.gateway.accept_clock().await?)).into_response())
}

/// `POST /oap/data/delete`: OAP-CORE 17.3.
pub async fn delete(
    _: Owner<Admin>,
    State(app): State<App>,
    mut request: Incoming,
) -> Result<Response, Error> {
    let what: DeleteRequest = request.json_as().await?;
    Ok(Oap(app.gateway.delete(what).await?).into_response())
}

/// `GET /oap/audit`: the owner sees everything, a grantee the receipts that name it, anybody else those of
/// anonymous calls (protocol section 8).
pub async fn audit(State(app): State<App>, mut request: Incoming) -> Result<Response, Error> {
    let query: AuditQuery = request.query()?;
    let credential = !request.header("authorization").is_empty();
    let receipts = if !credential {
        request.rate_limit()?;
        app.gateway.audit_public(&query)?
    } else if presented(&request, Gateway::presents_trust_token) {
        request.owner::<Admin>().await?;
        app.gateway.audit_owner(&query)?
    } else {
        as_grantee(&mut request, async |_, caller| {
            if !app.gateway.refusals.admit(Counted::Audit, caller.first(), app.gateway.clock.now()) {
                return Err(Error::RateLimited);
            }
            app.gateway.keep_proof(caller).await?;
            let (gateway, grantee) = (app.gateway.clone(), caller.grantee().clone());
            blocking(move || gateway.audit_grantee(&grantee, &query)).await
        })
        .await?
    };
    Ok(Oap(json!({"receipts": receipts})).into_response())
}

//! The owner's jobs: begun, looked at, waited for, cancelled.

use super::App;
use super::error::Refusal;
use super::request::{Incoming, Oap};
use crate::Error;
use crate::service::LongWork;
use crate::service::jobs::JobRequest;
use crate::state::jobs::{Job, JobError, JobReport};
use crate::state::owner::mark::Admin;
use crate::state::owner::{Acting, Owner};
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use oap_identity::JobId;
use serde::Deserialize;
use serde_json::json;
use std::time::Duration;

/// Longest time that one request waits for the end of a job: well within the time of a request.
pub const MAX_WAIT: Duration = Duration::from_secs(20);

fn explain(error: &Error) -> JobError {
    let refusal = Refusal::from(error);
    let message = refusal.for_owner.unwrap_or(refusal.message);
    JobError { status: refusal.status.as_u16(), code: refusal.code.to_owned(), message }
}

fn report(job: &Job) -> JobReport {
    job.report(explain)
}

fn job_id(text: &str) -> Result<JobId, Error> {
    text.parse().map_err(|_| Error::NotFound)
}

pub(super) async fn list(owner: Owner<Admin>, State(app): State<App>) -> Result<Response, Error> {
    let jobs: Vec<JobReport> =
        LongWork(&app.gateway).jobs(&owner).list().iter().map(|job| job.brief(explain)).collect();
    Ok(Oap(json!({"jobs": jobs})).into_response())
}

pub(super) async fn begin(
    owner: Owner<Admin>,
    State(app): State<App>,
    mut request: Incoming,
) -> Result<Response, Error> {
    let wanted: JobRequest = request.json_as().await?;
    let job = LongWork(&app.gateway).start_job(&owner, wanted)?;
    Ok((StatusCode::ACCEPTED, Oap(json!(report(&job)))).into_response())
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Wait {
    /// Seconds to wait for the end of the job, 0 if absent.
    #[serde(default)]
    wait: u16,
}

pub(super) async fn show(
    owner: Owner<Admin>,
    State(app): State<App>,
    Path(id): Path<String>,
    request: Incoming,
) -> Result<Response, Error> {
    let job = LongWork(&app.gateway).jobs(&owner).get(job_id(&id)?)?;
    let Wait { wait } = request.query()?;
    let most = Duration::from_secs(u64::from(wait)).min(MAX_WAIT);
    // Over or not, it is told how the job stands.
    drop(tokio::time::timeout(most, job.wait()).await);
    // The credential may have ended meanwhile, and what comes out is its owner's alone.
    Acting::from(&owner).still_may(&app.gateway.keys(), app.gateway.clock.raw())?;
    Ok(Oap(json!(report(&job))).into_response())
}

pub(super) async fn cancel(
    owner: Owner<Admin>,
    State(app): State<App>,
    Path(id): Path<String>,
) -> Result<Response, Error> {
    let job = LongWork(&app.gateway).jobs(&owner).cancel(job_id(&id)?)?;
    Ok(Oap(json!(report(&job))).into_response())
}

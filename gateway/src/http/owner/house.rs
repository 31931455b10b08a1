//! The gateway itself: where it stands, its clock, its backup, what it attests.

use crate::Error;
use crate::api::health::{AcceptClock, Backup, Doctor, Findings, ShowClock, ShowStatus};
use crate::api::lock::Locked;
use crate::api::standing::{Attest, ReportIncident, Witness};
use crate::http::App;
use crate::http::door::{Answer, Call};
use crate::http::request::Oap;
use crate::service::{Attestations, Backups, Health, Incidents};
use crate::state::gateway::blocking;
use crate::state::jobs::Progress;
use axum::extract::State;

pub(in crate::http) async fn status(call: Call<ShowStatus>) -> Answer<ShowStatus> {
    blocking(move || Health(&call.gateway).status(&call.owner)).await
}

pub(in crate::http) async fn doctor(call: Call<Doctor>) -> Answer<Doctor> {
    let examine = move || Health(&call.gateway).examine(&call.owner, &Progress::default());
    Ok(Findings { findings: blocking(examine).await? })
}

pub(in crate::http) async fn clock(call: Call<ShowClock>) -> Answer<ShowClock> {
    Ok(call.gateway.clock_info(&call.owner))
}

pub(in crate::http) async fn accept_clock(call: Call<AcceptClock>) -> Answer<AcceptClock> {
    call.gateway.accept_clock(&call.owner).await
}

pub(in crate::http) async fn backup(call: Call<Backup>) -> Answer<Backup> {
    Backups(&call.gateway).backup(&call.owner, call.body.folder, &Progress::default()).await
}

pub(in crate::http) async fn attest(call: Call<Attest>) -> Answer<Attest> {
    Attestations(&call.gateway).attest(&call.owner, call.body).await
}

pub(in crate::http) async fn witness(call: Call<Witness>) -> Answer<Witness> {
    Attestations(&call.gateway).witness(&call.owner, call.body)
}

pub(in crate::http) async fn report_incident(call: Call<ReportIncident>) -> Answer<ReportIncident> {
    Incidents(&call.gateway).report_incident(&call.owner, call.body).await
}

/// Ends the process that has the home open. Whoever may write to the socket may do that: no proof is asked for.
pub(in crate::http) async fn lock(State(app): State<App>) -> Result<Oap<Locked>, Error> {
    let lock = app.lock.as_ref().ok_or(Error::NotFound)?;
    lock.notify_one();
    Ok(Oap(Locked { locked: true }))
}

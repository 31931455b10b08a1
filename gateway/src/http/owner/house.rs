//! The gateway itself: where it stands, its clock, what it attests.

use crate::Error;
use crate::api::health::{AcceptClock, ShowClock, ShowStatus};
use crate::api::lock::Locked;
use crate::api::lockdown::{LiftLockdown, LockDown, ShowLockdown};
use crate::api::standing::{Attest, ReportIncident, Witness};
use crate::http::App;
use crate::http::door::{Answer, Call};
use crate::http::request::Oap;
use crate::service::{Attestations, Health, Incidents, Lockdowns};
use crate::state::gateway::blocking;
use axum::extract::State;

pub(in crate::http) async fn status(call: Call<ShowStatus>) -> Answer<ShowStatus> {
    blocking(move || Health(&call.gateway).status(&call.owner)).await
}

pub(in crate::http) async fn clock(call: Call<ShowClock>) -> Answer<ShowClock> {
    Ok(call.gateway.clock_info(&call.owner))
}

pub(in crate::http) async fn accept_clock(call: Call<AcceptClock>) -> Answer<AcceptClock> {
    call.gateway.accept_clock(&call.owner).await
}

pub(in crate::http) async fn lock_down(call: Call<LockDown>) -> Answer<LockDown> {
    Lockdowns(&call.gateway).begin(&call.owner, call.body).await
}

pub(in crate::http) async fn show_lockdown(call: Call<ShowLockdown>) -> Answer<ShowLockdown> {
    Lockdowns(&call.gateway).show(&call.owner)
}

pub(in crate::http) async fn lift_lockdown(call: Call<LiftLockdown>) -> Answer<LiftLockdown> {
    Lockdowns(&call.gateway).lift(&call.owner).await
}

pub(in crate::http) async fn attest(call: Call<Attest>) -> Answer<Attest> {
    Attestations(&call.gateway).attest(&call.owner, call.body).await
}

pub(in crate::http) async fn witness(call: Call<Witness>) -> Answer<Witness> {
    Attestations(&call.gateway).witness(&call.owner, call.body.into_whole())
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

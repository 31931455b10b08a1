//! The owner's jobs: begun, looked at, waited for, cancelled.

use super::door::{Answer, Call};
use super::error::Refusal;
use crate::Error;
use crate::api::jobs::{BeginJob, CancelJob, Jobs, ListJobs, RefusedMember, ShowJob};
use crate::service::LongWork;
use crate::state::jobs::{Job, JobError, JobReport};
use crate::state::owner::Acting;
use std::time::Duration;

/// Longest time that one request waits for the end of a job: well within the time of a request.
pub const MAX_WAIT: Duration = Duration::from_secs(20);

fn explain(error: &Error) -> JobError {
    let refusal = Refusal::from(error);
    let message = refusal.for_owner.unwrap_or(refusal.message);
    let member = match error {
        Error::Member(name, why) => Some(RefusedMember { name: (*name).to_owned(), why: why.to_string() }),
        _ => None,
    };
    JobError { status: refusal.status.as_u16(), code: refusal.code.to_owned(), message, member }
}

fn report(job: &Job) -> JobReport {
    job.report(explain)
}

pub(super) async fn list(call: Call<ListJobs>) -> Answer<ListJobs> {
    let jobs = LongWork(&call.gateway).jobs(&call.owner).list();
    Ok(Jobs { jobs: jobs.iter().map(|job| job.brief(explain)).collect() })
}

pub(super) async fn begin(call: Call<BeginJob>) -> Answer<BeginJob> {
    Ok(report(&*LongWork(&call.gateway).start_job(&call.owner, call.body)?))
}

pub(super) async fn show(call: Call<ShowJob>) -> Answer<ShowJob> {
    let job = LongWork(&call.gateway).jobs(&call.owner).get(call.place)?;
    let most = Duration::from_secs(u64::from(call.query.wait)).min(MAX_WAIT);
    // Over or not, it is told how the job stands.
    drop(tokio::time::timeout(most, job.wait()).await);
    // The credential may have ended meanwhile, and what comes out is its owner's alone.
    let acting = Acting::from(&call.owner);
    acting.still_may(&call.gateway.keys(), call.gateway.clock.raw())?;
    acting.stands(&call.gateway.store)?;
    Ok(report(&job))
}

pub(super) async fn cancel(call: Call<CancelJob>) -> Answer<CancelJob> {
    Ok(report(&*LongWork(&call.gateway).jobs(&call.owner).cancel(call.place)?))
}

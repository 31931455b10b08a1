//! `oap-memory job`, and the commands that are jobs of the gateway's: begun, followed to their end, cancelled by Ctrl-C.

use super::reference::JobRef;
use super::{CliError, Global, audit, backup, delete, item, keys, output};
use crate::api::Document;
use crate::api::audit::{Chains, Memorization};
use crate::api::deletion::DeletedInSteps;
use crate::api::health::{BackupInfo, Findings};
use crate::api::items::AllResealed;
use crate::api::jobs as api;
use crate::api::jobs::{JobError, JobKind, JobReport, JobRequest, JobResult, JobState, Jobs, Wait};
use crate::api::keys::SignedAgain;
use crate::http::jobs::MAX_WAIT;
use indicatif::{ProgressBar, ProgressStyle};
use oap_client::{ClientError, OwnerClient};
use oap_identity::JobId;
use std::io;
use std::time::Duration;
use tokio::signal::unix::{SignalKind, signal};

/// Look at long work of a running gateway, and cancel it
#[derive(clap::Subcommand)]
#[command(after_help = "Examples:
  oap-memory job list
  oap-memory job show job_01...
  oap-memory job cancel job_01...

`doctor`, `backup`, `audit verify`, `audit memorization`, `item reseal --all`, `keys reseal`, the signing anew of `keys revoke` and
`delete` of more than 1000 items are jobs of the gateway that serves the home: they go on when the command that began them is
killed, and Ctrl-C cancels them. One of a kind runs at a time. A gateway remembers the last 50 that ended (4 that deleted),
until it stops.")]
pub(super) enum Job {
    /// List jobs, the last begun one first
    List,
    /// Show how far a job is, or what came out
    Show {
        /// The job, by its id or the beginning of it
        #[arg(value_name = "JOB")]
        id: JobRef,
    },
    /// End a job before it is done
    Cancel {
        /// The job, by its id or the beginning of it
        #[arg(value_name = "JOB")]
        id: JobRef,
    },
}

impl Job {
    pub(super) async fn run(self, global: &Global) -> Result<(), CliError> {
        let owner = global.owner().await?;
        let report = match self {
            Self::List => {
                output::print(global.json, &owner.get::<api::ListJobs>((), &()).await?, table);
                return Ok(());
            }
            Self::Show { id } => {
                let id = id.resolve(&owner).await?;
                owner.get::<api::ShowJob>(id, &Wait::default()).await?
            }
            Self::Cancel { id } => {
                let id = id.resolve(&owner).await?;
                owner.send::<api::CancelJob>(id, &()).await?
            }
        };
        output::print(global.json, &report, shown);
        Ok(())
    }
}

pub(super) fn table(jobs: &Jobs) -> String {
    output::table(&["job", "what", "state", "steps", "began", "ended"], jobs.jobs.iter().map(row))
}

fn row(job: &JobReport) -> Vec<String> {
    let (what, state): (&str, &str) = (job.job.into(), job.state.into());
    vec![
        job.job_id.to_string(),
        what.to_owned(),
        state.to_owned(),
        format!("{}/{}", job.done, job.expected),
        job.began.to_string(),
        output::or_none(job.ended),
    ]
}

fn shown(job: &JobReport) -> String {
    let mut text = table(&Jobs { jobs: vec![job.clone()] });
    if let Some(error) = &job.error {
        text.push_str(&format!("\n{}", error.message));
    }
    if let Some(result) = job.result.as_ref().or(job.so_far.as_ref()) {
        let result = match result {
            JobResult::Doctor(findings) => backup::report(&findings.findings),
            JobResult::Backup(info) => format!("{} items\n{}", info.items, info.store),
            JobResult::VerifyAudit(chains) => audit::chains(chains),
            JobResult::Reseal(signed) => keys::text(signed),
            JobResult::ResealItems(done) => item::all_resealed(done),
            JobResult::AuditMemorization(report) => audit::memorization(report),
            JobResult::Delete(deleted) => delete::in_steps(deleted),
        };
        text.push_str(&format!("\n{result}"));
    }
    text
}

/// Why a job gave no result.
#[derive(Debug, thiserror::Error)]
pub(super) enum JobStopped {
    /// The gateway refused to begin it.
    #[error(transparent)]
    Client(#[from] ClientError),
    /// It failed.
    #[error("{}", .0.message)]
    Failed(JobError),
    /// Somebody cancelled it.
    #[error("{0} was cancelled: {left}", left = left_behind(*.1))]
    Cancelled(JobId, JobKind),
    /// It ended with what another sort of job ends with.
    #[error("{0} ended with another result than was asked for")]
    OtherResult(JobId),
    /// Ctrl-C cannot be heard.
    #[error("signals: {0}")]
    Signals(io::Error),
}

/// What a cancelled job leaves behind.
const fn left_behind(kind: JobKind) -> &'static str {
    match kind {
        JobKind::Doctor | JobKind::VerifyAudit => "it only looks, so nothing has changed",
        JobKind::Backup => "its folder is gone again",
        JobKind::Reseal => "what is signed anew stays so, and `oap-memory keys reseal` does the rest",
        JobKind::ResealItems => {
            "what has a version more keeps it, and `oap-memory item reseal --all` begins anew"
        }
        JobKind::AuditMemorization => "the manifest declares what it did before",
        JobKind::Delete => {
            "what is erased stays so, `oap-memory job show` has its receipts, and the same command deletes the rest"
        }
    }
}

impl From<JobStopped> for CliError {
    fn from(stopped: JobStopped) -> Self {
        match stopped {
            JobStopped::Client(error) => error.into(),
            // As the request would have been refused.
            JobStopped::Failed(JobError { status, code, message, .. }) => {
                ClientError::Refused { own: true, status, code, message }.into()
            }
            stopped => Self::Job(stopped),
        }
    }
}

/// Begins a job and follows it to its end, of which `of` takes the result. Ctrl-C cancels it.
///
/// How far it is shows on a terminal, and unless it is to be `quiet`, standard error says that it is cancelled. The gateway is asked again when the job ended, or as often as the screen is worth it.
pub(super) async fn follow<T>(
    owner: &OwnerClient,
    quiet: bool,
    request: &JobRequest,
    of: impl FnOnce(JobResult) -> Option<T>,
) -> Result<T, JobStopped> {
    result(watch(owner, quiet, request).await?, of)
}

/// What came out of a job that ended.
pub(super) fn result<T>(report: JobReport, of: impl FnOnce(JobResult) -> Option<T>) -> Result<T, JobStopped> {
    let id = report.job_id;
    match (report.state, report.result, report.error) {
        (_, Some(result), _) => of(result).ok_or(JobStopped::OtherResult(id)),
        (JobState::Cancelled, ..) => Err(JobStopped::Cancelled(id, report.job)),
        (_, None, Some(error)) => Err(JobStopped::Failed(error)),
        (_, None, None) => Err(JobStopped::OtherResult(id)),
    }
}

/// Begins a job and follows it to its end, whatever that is, as [`follow`] does.
pub(super) async fn watch(
    owner: &OwnerClient,
    quiet: bool,
    request: &JobRequest,
) -> Result<JobReport, JobStopped> {
    // Before the job begins: from here on Ctrl-C does not leave it to itself.
    let mut interrupt = signal(SignalKind::interrupt()).map_err(JobStopped::Signals)?;
    let mut report = owner.send::<api::BeginJob>((), request).await?;
    let (id, progress) = (report.job_id, bar());
    let wait = if progress.is_hidden() { MAX_WAIT } else { LOOK };
    let wait = Wait { wait: u16::try_from(wait.as_secs()).unwrap_or(u16::MAX) };
    while report.state == JobState::Running {
        progress.set_length(report.expected);
        progress.set_position(report.done);
        let asked = async { owner.get::<api::ShowJob>(id, &wait).await };
        report = tokio::select! {
            answer = asked => answer?,
            _ = interrupt.recv() => {
                if !quiet {
                    progress.suspend(|| eprintln!("oap-memory: cancelling {id}"));
                }
                owner.send::<api::CancelJob>(id, &()).await?
            }
        };
    }
    progress.finish_and_clear();
    Ok(report)
}

/// What `doctor` found.
pub(super) fn doctor(result: JobResult) -> Option<Findings> {
    if let JobResult::Doctor(findings) = result { Some(findings) } else { None }
}

/// What a backup says of itself.
pub(super) fn backup(result: JobResult) -> Option<BackupInfo> {
    if let JobResult::Backup(info) = result { Some(info) } else { None }
}

/// The chains that hold.
pub(super) fn verify_audit(result: JobResult) -> Option<Chains> {
    if let JobResult::VerifyAudit(chains) = result { Some(chains) } else { None }
}

/// What was signed anew.
pub(super) fn reseal(result: JobResult) -> Option<SignedAgain> {
    if let JobResult::Reseal(signed) = result { Some(signed) } else { None }
}

/// The items that have a version more.
pub(super) fn reseal_items(result: JobResult) -> Option<AllResealed> {
    if let JobResult::ResealItems(done) = result { Some(done) } else { None }
}

/// What the artefacts tell of canaries.
pub(super) fn audit_memorization(result: JobResult) -> Option<Document<Memorization>> {
    if let JobResult::AuditMemorization(report) = result { Some(report) } else { None }
}

/// What was erased in steps.
pub(super) fn deletion(result: JobResult) -> Option<DeletedInSteps> {
    if let JobResult::Delete(deleted) = result { Some(deleted) } else { None }
}

/// How long the gateway is given where somebody looks on.
const LOOK: Duration = Duration::from_secs(1);

/// How far a job is, on a terminal alone.
fn bar() -> ProgressBar {
    let bar = ProgressBar::new(0);
    let style = ProgressStyle::with_template("{spinner} {human_pos} of {human_len} steps, {elapsed}");
    bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_spinner()));
    bar.enable_steady_tick(Duration::from_millis(200));
    bar
}

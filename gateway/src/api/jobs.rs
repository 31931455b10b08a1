//! Long work: begun, looked at, waited for, cancelled.

use super::audit::{Chains, Memorization};
use super::deletion::DeletedInSteps;
use super::health::{BackupInfo, Findings};
use super::items::AllResealed;
use super::keys::SignedAgain;
use super::selections::Selection;
use super::{Document, endpoints};
use oap_identity::{JobId, Timestamp};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

endpoints! {
    /// The jobs that are under way, and the last ones that ended, without their results.
    ListJobs: GET "/oap/owner/jobs" needs Admin answers(Jobs);
    /// Begins a job: work that takes longer than a request may.
    BeginJob: POST "/oap/owner/jobs" needs Admin body(JobRequest) answers(JobReport) status 202;
    /// A job, once it ended or the time to wait is over.
    ShowJob: GET "/oap/owner/jobs/{id}" at(JobId) needs Admin query(Wait) answers(JobReport);
    /// Cancels a job.
    CancelJob: POST "/oap/owner/jobs/{id}/cancel" at(JobId) needs Admin answers(JobReport);
}

/// What is to be done.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "job", rename_all = "snake_case", deny_unknown_fields)]
pub enum JobRequest {
    /// Looks at everything that is stored, and says what is wrong and what to do.
    Doctor {},
    /// Copies everything into a folder of the gateway's machine that must not be there.
    Backup {
        /// An absolute path.
        folder: PathBuf,
    },
    /// Verifies every receipt of every chain.
    VerifyAudit {},
    /// Signs anew what a compromised key signed and this gateway wrote.
    Reseal {},
    /// Cuts the text of every current item anew, or of none where nothing would change.
    ResealItems {},
    /// Plants canaries in a throw-away copy, measures what the derived artefacts tell of them, and declares the result.
    AuditMemorization {},
    /// Erases what a selection selects now, and what was made of it, for good, in steps of at most 1000 items.
    Delete(Selection),
}

/// What came out of a job, by what it does.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum JobResult {
    /// What was looked at.
    Doctor(Findings),
    /// `backup.json`.
    Backup(BackupInfo),
    /// The chains, each of which holds.
    VerifyAudit(Chains),
    /// What was signed anew.
    Reseal(SignedAgain),
    /// The items that have a version more.
    ResealItems(AllResealed),
    /// What was erased.
    Delete(DeletedInSteps),
    /// What the artefacts tell.
    AuditMemorization(Document<Memorization>),
}

/// All jobs since the gateway was opened.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct Jobs {
    /// The last begun one first.
    pub jobs: Vec<JobReport>,
}

/// How long to wait for a job.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Wait {
    /// Seconds to wait for the end of the job, 0 if absent.
    #[serde(default)]
    pub wait: u16,
}

/// What a job does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema, strum::IntoStaticStr)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum JobKind {
    /// Looks at everything that is stored.
    Doctor,
    /// Copies everything into a folder.
    Backup,
    /// Verifies every receipt chain.
    VerifyAudit,
    /// Signs anew what a compromised key signed.
    Reseal,
    /// Cuts the text of every item anew.
    ResealItems,
    /// Measures what derived artefacts tell of planted canaries.
    AuditMemorization,
    /// Erases items, in steps.
    Delete,
}

/// How a job stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema, strum::IntoStaticStr)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum JobState {
    /// It is under way.
    Running,
    /// It has a result.
    Done,
    /// It has an error.
    Failed,
    /// It was cancelled before it was done.
    Cancelled,
}

/// Why a job failed: as a request would have been answered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct JobError {
    /// The HTTP status.
    pub status: u16,
    /// The code of OAP-CORE Appendix B.
    pub code: String,
    /// What to do.
    pub message: String,
    /// The member of what was asked for that cannot be, where it is that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub member: Option<RefusedMember>,
}

/// A refused member of a request: its name and the reason, which the message says in one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RefusedMember {
    /// Its name.
    pub name: String,
    /// What is wrong with it.
    pub why: String,
}

/// A job as its owner sees it.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[allow(missing_docs, reason = "the names say it")]
pub struct JobReport {
    pub job_id: JobId,
    /// What it does.
    pub job: JobKind,
    /// How it stands.
    pub state: JobState,
    /// Steps done.
    pub done: u64,
    /// Steps expected as far as is known by now; 0 while nothing is known.
    pub expected: u64,
    /// When it began.
    pub began: Timestamp,
    /// When it ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended: Option<Timestamp>,
    /// What came out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result: Option<JobResult>,
    /// Of one that was cancelled or failed: the result that it would have had there, where it had committed something.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub so_far: Option<JobResult>,
    /// Why nothing did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<JobError>,
}

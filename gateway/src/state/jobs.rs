//! Long work of the owner's side, done beside the requests: it has an id, says how far it is, can be cancelled, and keeps its result
//! until others have ended after it. Jobs are in memory: a restart forgets them, and what a job committed stays.

pub use crate::api::jobs::{JobError, JobKind, JobReport, JobResult, JobState};
use crate::error::{Error, Unavailable};
use oap_identity::{JobId, Kid, Random, Timestamp};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::watch;

/// Jobs that run at once. Each kind runs once at a time.
pub const MAX_RUNNING: usize = 4;
/// Jobs that ended and whose result is kept, the newest.
pub const MAX_ENDED: usize = 50;
/// Deletions among them: their receipts name every item.
pub const MAX_ENDED_DELETIONS: usize = 4;

/// How far a piece of work is, as the work itself tells. Clones tell of the same work.
#[derive(Debug, Clone, Default)]
pub struct Progress(Arc<Steps>);

#[derive(Debug, Default)]
struct Steps {
    done: AtomicU64,
    expected: AtomicU64,
    cancelled: AtomicBool,
    so_far: Mutex<Option<JobResult>>,
}

impl Progress {
    /// Expects so many steps more.
    pub fn expect(&self, steps: usize) {
        self.0.expected.fetch_add(steps as u64, Ordering::Relaxed);
    }

    /// Tells that a step is done, where the work was not cancelled meanwhile.
    ///
    /// # Errors
    /// [`Error::Cancelled`].
    pub fn step(&self) -> Result<(), Error> {
        self.count();
        self.go_on()
    }

    /// Tells that a step is done, whatever is to become of the work.
    pub fn count(&self) {
        self.count_more(1);
    }

    /// Tells that so many steps more are done, whatever is to become of the work.
    pub fn count_more(&self, steps: usize) {
        self.0.done.fetch_add(steps as u64, Ordering::Relaxed);
    }

    /// That the work was not cancelled, where there is no step to count.
    ///
    /// # Errors
    /// [`Error::Cancelled`].
    pub fn go_on(&self) -> Result<(), Error> {
        if self.is_cancelled() { Err(Error::Cancelled) } else { Ok(()) }
    }

    /// Keeps what the result would be if the work ended here: it is told where the work does not come to its end.
    pub fn so_far(&self, result: JobResult) {
        *self.0.so_far.lock().unwrap_or_else(PoisonError::into_inner) = Some(result);
    }

    /// Whether the work is to end before it is done.
    #[must_use]
    pub fn is_cancelled(&self) -> bool {
        self.0.cancelled.load(Ordering::Relaxed)
    }

    fn cancel(&self) {
        self.0.cancelled.store(true, Ordering::Relaxed);
    }
}

/// What came of a job, and when.
#[derive(Debug)]
struct Ended {
    at: Timestamp,
    outcome: Result<JobResult, Error>,
}

/// One job.
#[derive(Debug)]
pub struct Job {
    id: JobId,
    kind: JobKind,
    /// The key that signed the credential which began it.
    by: Kid,
    began: Timestamp,
    progress: Progress,
    ended: watch::Sender<Option<Ended>>,
}

#[allow(missing_docs, reason = "the names say it")]
impl Job {
    #[must_use]
    pub const fn id(&self) -> JobId {
        self.id
    }

    /// What the work tells how far it is with.
    #[must_use]
    pub fn progress(&self) -> Progress {
        self.progress.clone()
    }

    /// Keeps what came out.
    pub fn end(&self, outcome: Result<JobResult, Error>, at: Timestamp) {
        self.ended.send_replace(Some(Ended { at, outcome }));
    }

    /// Waits for its end.
    pub async fn wait(&self) {
        // The sender is this job's own.
        drop(self.ended.subscribe().wait_for(Option::is_some).await);
    }

    /// How it stands, with what came out. `explain` says an error as a response says it.
    #[must_use]
    pub fn report(&self, explain: impl FnOnce(&Error) -> JobError) -> JobReport {
        let brief = self.brief(explain);
        let ended = self.ended.borrow();
        let (result, so_far) = match ended.as_ref().map(|ended| &ended.outcome) {
            None => (None, None),
            Some(Ok(result)) => (Some(result.clone()), None),
            Some(Err(_)) => {
                (None, self.progress.0.so_far.lock().unwrap_or_else(PoisonError::into_inner).clone())
            }
        };
        JobReport { result, so_far, ..brief }
    }

    /// How it stands.
    #[must_use]
    pub fn brief(&self, explain: impl FnOnce(&Error) -> JobError) -> JobReport {
        let ended = self.ended.borrow();
        let (state, error) = match ended.as_ref().map(|ended| &ended.outcome) {
            None => (JobState::Running, None),
            Some(Ok(_)) => (JobState::Done, None),
            Some(Err(Error::Cancelled)) => (JobState::Cancelled, None),
            Some(Err(error)) => (JobState::Failed, Some(explain(error))),
        };
        JobReport {
            job_id: self.id,
            job: self.kind,
            state,
            done: self.progress.0.done.load(Ordering::Relaxed),
            expected: self.progress.0.expected.load(Ordering::Relaxed),
            began: self.began,
            ended: ended.as_ref().map(|ended| ended.at),
            result: None,
            so_far: None,
            error,
        }
    }

    fn is_running(&self) -> bool {
        self.ended.borrow().is_none()
    }
}

/// Forgets so many of the oldest jobs that ended, of those that are meant.
fn forget(all: &mut Vec<Arc<Job>>, mut surplus: usize, is_meant: impl Fn(&Job) -> bool) {
    all.retain(|job| {
        let goes = surplus > 0 && !job.is_running() && is_meant(job);
        surplus -= usize::from(goes);
        !goes
    });
}

/// The jobs of a gateway.
#[derive(Debug, Default)]
pub struct Jobs(Mutex<Known>);

#[derive(Debug, Default)]
struct Known {
    /// In the order of their beginning.
    all: Vec<Arc<Job>>,
    /// Whether no more may begin.
    closed: bool,
}

impl Jobs {
    fn known(&self) -> MutexGuard<'_, Known> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A new job, by a credential that this key signed.
    ///
    /// # Errors
    /// [`Error::JobRuns`] while one of the kind is under way; [`Error::ManyJobs`] while [`MAX_RUNNING`] are;
    /// [`Error::Unavailable`] once the process stops.
    pub fn begin(
        &self,
        kind: JobKind,
        by: &Kid,
        now: Timestamp,
        random: &dyn Random,
    ) -> Result<Arc<Job>, Error> {
        let mut known = self.known();
        if known.closed {
            return Err(Error::Unavailable(Unavailable::Stopping));
        }
        let all = &mut known.all;
        let running: Vec<&Arc<Job>> = all.iter().filter(|job| job.is_running()).collect();
        if let Some(job) = running.iter().find(|job| job.kind == kind) {
            return Err(Error::JobRuns(job.id));
        }
        if running.len() >= MAX_RUNNING {
            return Err(Error::ManyJobs);
        }
        let surplus = (all.len() + 1 - running.len()).saturating_sub(MAX_ENDED);
        forget(all, surplus, |_| true);
        if kind == JobKind::Delete {
            let deletions = all.iter().filter(|job| job.kind == kind).count();
            forget(all, (deletions + 1).saturating_sub(MAX_ENDED_DELETIONS), |job| job.kind == kind);
        }
        let id = JobId::new(now, random);
        let (sender, _) = watch::channel(None);
        let progress = Progress::default();
        let job = Arc::new(Job { id, kind, by: by.clone(), began: now, progress, ended: sender });
        all.push(job.clone());
        Ok(job)
    }

    /// A job.
    ///
    /// # Errors
    /// [`Error::NotFound`].
    pub fn get(&self, id: JobId) -> Result<Arc<Job>, Error> {
        self.known().all.iter().find(|job| job.id == id).cloned().ok_or(Error::NotFound)
    }

    /// Every job that is known, newest first.
    #[must_use]
    pub fn list(&self) -> Vec<Arc<Job>> {
        self.known().all.iter().rev().cloned().collect()
    }

    /// Asks every job to end before it is done, and lets none begin: the process stops.
    pub fn close(&self) {
        let mut known = self.known();
        known.closed = true;
        known.all.iter().for_each(|job| job.progress.cancel());
    }

    /// Waits until no job is under way.
    pub async fn ended(&self) {
        let all = self.known().all.clone();
        for job in all {
            job.wait().await;
        }
    }

    /// Asks every job to end: by whatever they began, it has ended.
    pub fn cancel_all(&self) {
        self.known().all.iter().for_each(|job| job.progress.cancel());
    }

    /// Asks the jobs to end that began by credentials of other keys: those have ended.
    pub fn cancel_all_but_by(&self, key: &Kid) {
        self.known().all.iter().filter(|job| job.by != *key).for_each(|job| job.progress.cancel());
    }

    /// Asks a job to end before it is done. One that has ended stays as it is.
    ///
    /// # Errors
    /// [`Error::NotFound`].
    pub fn cancel(&self, id: JobId) -> Result<Arc<Job>, Error> {
        let job = self.get(id)?;
        job.progress.cancel();
        Ok(job)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::health::Findings;
    use crate::api::keys::SignedAgain;
    use crate::system::clock::SystemRandom;

    fn key(number: u32) -> Kid {
        format!("did:web:user.example#key-{number}").parse().unwrap()
    }

    fn begin(jobs: &Jobs, kind: JobKind, at: i64) -> Result<Arc<Job>, Error> {
        jobs.begin(kind, &key(1), Timestamp::from_millis(at), &SystemRandom)
    }

    /// What a doctor said who found nothing to look at.
    fn nothing() -> JobResult {
        JobResult::Doctor(Findings { findings: Vec::new() })
    }

    fn explained(error: &Error) -> JobError {
        JobError { status: 500, code: "internal_error".into(), message: error.to_string(), member: None }
    }

    #[test]
    fn a_kind_runs_once_at_a_time_and_its_end_makes_room() {
        let jobs = Jobs::default();
        let first = begin(&jobs, JobKind::Doctor, 1).unwrap();
        assert!(matches!(begin(&jobs, JobKind::Doctor, 2), Err(Error::JobRuns(id)) if id == first.id));
        assert!(begin(&jobs, JobKind::Backup, 2).is_ok());
        first.end(Ok(nothing()), Timestamp::from_millis(3));
        assert!(begin(&jobs, JobKind::Doctor, 4).is_ok());
        assert_eq!(jobs.list().len(), 3);
    }

    #[test]
    fn work_that_is_cancelled_learns_it_at_its_next_step() {
        let jobs = Jobs::default();
        let job = begin(&jobs, JobKind::Doctor, 1).unwrap();
        job.progress().expect(7);
        job.progress().step().unwrap();
        jobs.cancel(job.id).unwrap();
        assert_eq!(job.report(explained).state, JobState::Running);
        let stopped = job.progress().step();
        assert!(matches!(stopped, Err(Error::Cancelled)));
        job.end(stopped.map(|()| nothing()), Timestamp::from_millis(2));
        let report = job.report(explained);
        assert_eq!((report.state, report.done, report.expected), (JobState::Cancelled, 2, 7));
    }

    #[test]
    fn what_ended_early_tells_what_it_did() {
        let jobs = Jobs::default();
        let signed = |items| JobResult::Reseal(SignedAgain { items, ..SignedAgain::default() });
        for outcome in [Err(Error::Cancelled), Err(Error::NotFound), Ok(signed(3))] {
            let is_done = outcome.is_ok();
            let job = begin(&jobs, JobKind::Reseal, 1).unwrap();
            job.progress().so_far(signed(2));
            assert_eq!(job.report(explained).so_far, None, "it is under way");
            job.end(outcome, Timestamp::from_millis(2));
            let report = job.report(explained);
            assert_eq!(report.so_far, (!is_done).then(|| signed(2)));
            assert_eq!(report.result, is_done.then(|| signed(3)));
            let brief = job.brief(explained);
            assert_eq!((brief.state, brief.result, brief.so_far), (report.state, None, None));
        }
    }

    #[test]
    fn results_of_many_jobs_are_forgotten_oldest_first_and_what_runs_is_not() {
        let jobs = Jobs::default();
        let running = begin(&jobs, JobKind::Backup, 0).unwrap();
        let mut last = None;
        for at in 1..=2 * MAX_ENDED as i64 {
            let job = begin(&jobs, JobKind::Doctor, at).unwrap();
            job.end(Err(Error::NotFound), Timestamp::from_millis(at));
            last = Some(job.id);
        }
        assert!(jobs.list().len() <= MAX_ENDED + 1);
        assert!(jobs.get(running.id).is_ok() && jobs.get(last.unwrap()).is_ok());
        assert_eq!(jobs.get(last.unwrap()).unwrap().report(explained).error.unwrap().status, 500);
    }

    #[test]
    fn results_of_deletions_are_forgotten_sooner_than_those_of_others() {
        let jobs = Jobs::default();
        let doctor = begin(&jobs, JobKind::Doctor, 0).unwrap();
        doctor.end(Ok(nothing()), Timestamp::from_millis(0));
        let mut all = Vec::new();
        for at in 1..=2 * MAX_ENDED_DELETIONS as i64 {
            let job = begin(&jobs, JobKind::Delete, at).unwrap();
            job.end(Err(Error::NotFound), Timestamp::from_millis(at));
            all.push(job.id);
        }
        let kept: Vec<JobId> = jobs.list().iter().rev().map(|job| job.id).collect();
        let newest = &all[all.len() - MAX_ENDED_DELETIONS..];
        assert_eq!(kept, [&[doctor.id], newest].concat());
    }

    #[tokio::test]
    async fn whoever_waits_learns_of_the_end_whenever_they_begin_to() {
        let jobs = Jobs::default();
        let job = begin(&jobs, JobKind::Doctor, 0).unwrap();
        let waits = tokio::spawn({
            let job = job.clone();
            async move { job.wait().await }
        });
        job.end(Ok(nothing()), Timestamp::from_millis(9));
        waits.await.unwrap();
        job.wait().await;
        let report = job.report(explained);
        assert_eq!((report.state, report.result), (JobState::Done, Some(nothing())));
    }

    #[tokio::test]
    async fn a_process_that_stops_begins_none_and_waits_for_those_that_are_under_way() {
        let jobs = Jobs::default();
        let job = begin(&jobs, JobKind::Backup, 0).unwrap();
        begin(&jobs, JobKind::Doctor, 0).unwrap().end(Err(Error::NotFound), Timestamp::from_millis(1));
        jobs.close();
        assert!(job.progress().is_cancelled());
        assert!(matches!(begin(&jobs, JobKind::Doctor, 2), Err(Error::Unavailable(_))));
        let mut ended = Box::pin(jobs.ended());
        let mut look = std::task::Context::from_waker(std::task::Waker::noop());
        assert!(ended.as_mut().poll(&mut look).is_pending());
        job.end(Err(Error::Cancelled), Timestamp::from_millis(3));
        ended.await;
    }

    #[test]
    fn the_end_of_a_key_cancels_what_was_begun_by_it() {
        let jobs = Jobs::default();
        let job = begin(&jobs, JobKind::Backup, 0).unwrap();
        jobs.cancel_all_but_by(&key(1));
        assert!(!job.progress().is_cancelled());
        jobs.cancel_all_but_by(&key(2));
        assert!(job.progress().is_cancelled());
    }
}

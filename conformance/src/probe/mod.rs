//! Probes: what a gateway does, asked from outside over HTTP (RFC 0019).
//!
//! A run takes the probes in an order of its own and fresh DIDs each time (RFC 0019 section 10), both from a seed, and
//! is bounded in requests and time. Those that wait for an end are made beside the others. Probes that need the owner's side ask for it through [`Setup`], a small interface
//! that any implementation can offer.

mod abreast;
pub mod context;
mod declared;
mod drafted;
mod forms;
mod judged;
mod parts;
mod probes;
pub mod refusals;
pub mod report;
pub mod requirements;
pub mod wire;
mod worlds;

pub use context::Context;
pub use report::{Outcome, Report, Severity, Verdict};
pub use wire::{Forbidden, Reply, Request, Setup, SetupError, Wire, WireError};

use crate::world::{History, ScriptError};
use oap_identity::random::{Seeded, bytes};
use oap_identity::{Clock, Random};
use std::collections::BTreeMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// A probe on its way.
pub type Running<'a> = Pin<Box<dyn Future<Output = Result<(), Failed>> + Send + 'a>>;

/// Why a probe did not pass.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Failed {
    /// The gateway did something else than it must.
    Wrong(String),
    /// A fault of the gateway: whatever was asked, that is no answer.
    Fault(String),
    /// The probe could not be made.
    Skipped(String),
    /// The gateway does not offer what is probed.
    NotDeclared(String),
    /// The owner's side has no command for what is probed.
    NotCovered(String),
}

/// One probe.
pub struct Probe {
    /// Its id.
    pub id: &'static str,
    /// The requirements that it checks, ids of [`requirements::ALL`].
    pub checks: &'static [&'static str],
    /// How bad a failure is.
    pub severity: Severity,
    /// Whether it needs the owner's side.
    pub needs_setup: bool,
    /// Whether most of its time is waited for; such a probe is made beside the others where time that passes costs some.
    waits: bool,
    run: for<'a> fn(&'a Context<'a>) -> Running<'a>,
}

/// Every probe.
#[must_use]
pub fn all() -> Vec<Probe> {
    probes::all()
}

/// How a run is bounded.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// Most requests.
    pub requests: usize,
    /// Longest time; what is under way then is finished.
    pub time: Duration,
    /// Worlds that are made; without any, the probes that make some are skipped.
    pub worlds: u64,
    /// The only probe that is made; all where absent.
    pub only: Option<&'static str>,
    /// Whether every condition is brought to every door, whatever time that takes; where the clock can be set they are anyway.
    pub every_door: bool,
}

impl Default for Limits {
    fn default() -> Self {
        Self { requests: 20_000, time: Duration::from_secs(600), worlds: 2, only: None, every_door: false }
    }
}

/// A gateway of two that are to be told apart.
#[derive(Clone, Copy)]
pub struct Side<'a> {
    /// The way to it.
    pub wire: &'a dyn Wire,
    /// Its owner's side.
    pub setup: &'a dyn Setup,
    /// Its clock.
    pub clock: &'a dyn Clock,
}

/// What the probe `paired-fillings` does, with the twin in a gateway of its own: what a gateway computes over all that it has differs too. The
/// two are of one principal with the same keys, at one origin, and their clocks agree.
///
/// # Errors
/// What tells them apart; [`Failed::Skipped`] where the run is over.
pub async fn pairs(origin: &str, sides: [Side<'_>; 2], seed: u64, limits: Limits) -> Result<(), Failed> {
    let [first, second] = [seed, seed].map(Seeded::new);
    let [one, other] = sides;
    let mut one = Context::new(origin, one.wire, Some(one.setup), one.clock, &first, limits);
    let mut other = Context::new(origin, other.wire, Some(other.setup), other.clock, &second, limits);
    one.learn().await;
    other.learn().await;
    probes::pairs([&one, &other]).await
}

/// Replays a history that a run printed; the gateway need not be as it was.
///
/// # Errors
/// [`ScriptError`] for a script that cannot be read. What the gateway does wrong is in the report.
pub async fn replay(
    origin: &str,
    wire: &dyn Wire,
    setup: &dyn Setup,
    clock: &dyn Clock,
    random: &dyn Random,
    limits: Limits,
    script: &str,
) -> Result<Report, ScriptError> {
    let history = History::parse(script)?;
    let mut context = Context::new(origin, wire, Some(setup), clock, random, limits);
    context.learn().await;
    let lived = async {
        let manifest = context.get("/.well-known/oap-memory.json").await?;
        worlds::live(&context, &manifest, &history).await
    };
    let (lived, judged) = judged::counted(Box::pin(lived)).await;
    let fault = matches!(lived, Err(Failed::Fault(_)));
    let outcome = Outcome::of(lived);
    let (sent, got, _) = context.last();
    let id = "histories".to_owned();
    let result = report::Result {
        id,
        checks: Vec::new(),
        severity: Severity::Critical,
        outcome,
        fault,
        judged,
        requests: context.requests(),
        sent,
        got,
    };
    Ok(Report {
        gateway: origin.to_owned(),
        at: clock.now(),
        requests: context.requests(),
        ended: context.ended(),
        requirements: report::Looked::of(std::slice::from_ref(&result)),
        results: vec![result],
        rules: context.coverage(),
    })
}

/// Runs probes against a gateway. `told` hears of each as it ends; the report has them in the order of the run.
pub async fn run(
    origin: &str,
    wire: &dyn Wire,
    setup: Option<&dyn Setup>,
    clock: &dyn Clock,
    random: &dyn Random,
    limits: Limits,
    told: &mut (dyn FnMut(&report::Result) + Send),
) -> Report {
    let mut probes = all();
    probes.retain(|probe| limits.only.is_none_or(|only| only == probe.id));
    // Fisher and Yates.
    for last in (1..probes.len()).rev() {
        let number = u64::from_le_bytes(bytes(random));
        probes.swap(last, usize::try_from(number % (last as u64 + 1)).unwrap_or(0));
    }
    // A lockdown ends the grants of all others. What every reply must have is judged once all of them came.
    probes.sort_by_key(|probe| probes::LAST.iter().position(|last| *last == probe.id));
    let mut context = Context::new(origin, wire, setup, clock, random, limits);
    context.learn().await;
    // Where the clock is set waiting costs nothing.
    let is_abreast = !wire.sets_clock();
    let (told, ended) = (Mutex::new(told), Mutex::new(BTreeMap::new()));
    let end = |place: usize, result: report::Result| {
        let mut told = told.lock().unwrap_or_else(PoisonError::into_inner);
        (*told)(&result);
        drop(told);
        ended.lock().unwrap_or_else(PoisonError::into_inner).insert(place, result);
    };
    let (last, probes): (Vec<_>, Vec<_>) =
        probes.into_iter().enumerate().partition(|(_, probe)| probes::LAST.contains(&probe.id));
    let (waiting, others): (Vec<_>, Vec<_>) =
        probes.into_iter().partition(|(_, probe)| is_abreast && probe.waits);
    let drawn: Vec<_> = waiting.iter().map(|_| Seeded::new(u64::from_le_bytes(bytes(random)))).collect();
    let beside: Vec<_> = drawn.iter().map(|random| context.beside(random)).collect();
    let mut running: Vec<abreast::Running<'_>> = Vec::new();
    for (context, one) in beside.iter().zip(waiting) {
        running.push(Box::pin(make(context, vec![one], &end)));
    }
    running.push(Box::pin(make(&context, others, &end)));
    abreast::all(running).await;
    make(&context, last, &end).await;
    let ended = ended.into_inner().unwrap_or_else(PoisonError::into_inner);
    let results: Vec<report::Result> = ended.into_values().collect();
    Report {
        gateway: origin.to_owned(),
        at: clock.now(),
        requests: context.requests(),
        ended: context.ended(),
        requirements: report::Looked::of(&results),
        results,
        rules: context.coverage(),
    }
}

/// Makes probes one after the other, and hands over each result with the probe's place in the run.
async fn make(
    context: &Context<'_>,
    probes: Vec<(usize, Probe)>,
    end: &(dyn Fn(usize, report::Result) + Sync),
) {
    for (place, probe) in probes {
        context.begin();
        let (done, judged) = if probe.needs_setup && !context.has_setup() {
            (Err(Failed::Skipped("needs the owner's side: give a credential or --setup".to_owned())), 0)
        } else {
            judged::counted((probe.run)(context)).await
        };
        let fault = matches!(done, Err(Failed::Fault(_)));
        let outcome = Outcome::of(done);
        let (sent, got, requests) = context.last();
        let checks = probe.checks.iter().map(|&id| id.to_owned()).collect();
        let (id, severity) = (probe.id.to_owned(), probe.severity);
        end(place, report::Result { id, checks, severity, outcome, fault, judged, requests, sent, got });
        // Nonsense in between: what a gateway remembers of it must not change what it says to others.
        context.nonsense().await;
    }
}

//! The probes against the real gateway in memory: the honest one fails none, whatever the seed.

#[path = "../../gateway/tests/common/mod.rs"]
mod common;
mod support;

use common::*;
use oap_conformance::probe::refusals::Condition;
use oap_conformance::probe::report::Rules;
use oap_conformance::probe::wire::Pending;
use oap_conformance::probe::{
    self, Forbidden, Limits, Outcome, Reply, Report, Request, Setup, SetupError, Side, Verdict, Wire,
};
use oap_identity::random::Seeded;
use oap_identity::{Clock, Random, Timestamp};
use oap_store::Store;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use support::inside::{Behind, Inside, ONLY, equipment, probed, run, with_log, with_model};
use support::late::Late;

/// Rules that no run can exercise, or that need what no owner's side here sets, each with the reason.
const NEVER: &[(&str, &str)] = &[
    ("refused: a grant above is at or after its expires_at", "a child never outlives the grant above it"),
    ("query: a grant above is at or after its expires_at", "as above"),
    ("reach: exportable is false, to the owner: admitted", "the owner has no grant of its own"),
    ("reach: the filter of a grant above does not admit it", "a child is within the filter above it"),
    (
        "answer: the account of a grantee over all its grants is spent",
        "it takes 10,000 answers: `a_gateway_with_small_accounts_passes`",
    ),
];

/// Probes of a log with witnesses, which these gateways do not have: `a_gateway_with_a_log_passes`.
const OF_LOGS: [&str; 2] = ["own-log", "witnessed-receipts"];

/// Seeds that come to every rule but those.
const SEEDS: u64 = 5;
/// Which of them is asked of a gateway with a model of embeddings, and what is not asked of one.
const MODEL: u64 = 4;
const BY_WORDS: [&str; 2] = ["ranking-by-formula", "turns-in-context"];

/// Which conditions must be brought to which doors: those whose names begin so, but for some. It stands here and not in the suite, so that a door, or
/// a condition at one, that the suite loses is missed.
struct AtDoors {
    doors: &'static [&'static str],
    conditions: &'static [&'static str],
    but_for: &'static [&'static str],
}

/// What is particular of bearer tokens, each at one door.
const OF_BEARER: [&str; 2] = [
    "bearer token: a grant with bearer gives a token without cnf, of token_type Bearer",
    "bearer token: it reads the receipts of its own grant alone",
];
/// A grant that is over.
const OVER: [&str; 3] = [
    "query: a grant at or after its expires_at",
    "query: a revoked grant",
    "query: a grant above is revoked",
];
const FOR_QUERIES: &str = "query: a query under a grant without the operation";
const FOR_EXPORTS: &str = "query: an export under a grant without the operation";
const EMBEDDINGS: &str = "query: include_embeddings under a grant without embedding_access";
const ABOVE_ENDED: &str = "query: a grant above is at or after its expires_at";
const BUDGETS: [&str; 3] = [
    "query: the grant's budget of queries is spent",
    "query: the grant's budget of epsilon is spent",
    "query: the budget of a grant above is spent",
];

const AT_DOORS: &[AtDoors] = &[
    AtDoors {
        doors: &[
            "query",
            "export",
            "vector",
            "memory.query",
            "subscribe",
            "end of a subscription",
            "events",
            "witnessed receipt",
            "changes",
            "changed items",
            "mcp",
        ],
        conditions: &["token: ", "proof: "],
        but_for: &[],
    },
    AtDoors { doors: &["log"], conditions: &["token: ", "proof: "], but_for: &["token: there is one"] },
    AtDoors {
        doors: &[
            "query",
            "export",
            "vector",
            "memory.query",
            "end of a subscription",
            "events",
            "witnessed receipt",
            "changes",
            "changed items",
            "mcp",
        ],
        conditions: &["bearer token: "],
        but_for: &OF_BEARER,
    },
    AtDoors {
        doors: &["log"],
        conditions: &["bearer token: "],
        but_for: &["bearer token: there is one", OF_BEARER[0]],
    },
    AtDoors { doors: &["exchange"], conditions: &[OF_BEARER[0]], but_for: &[] },
    AtDoors {
        doors: &["query", "memory.query"],
        conditions: &["query: "],
        but_for: &[ABOVE_ENDED, FOR_EXPORTS],
    },
    AtDoors {
        doors: &["mcp"],
        conditions: &["query: "],
        // Its tools take neither.
        but_for: &[
            ABOVE_ENDED,
            FOR_EXPORTS,
            EMBEDDINGS,
            "query: request_id: not 26 characters of the alphabet",
        ],
    },
    AtDoors { doors: &["export", "vector", "memory_explain"], conditions: &BUDGETS, but_for: &[] },
    AtDoors {
        doors: &[
            "export",
            "vector",
            "log",
            "subscribe",
            "events",
            "witnessed receipt",
            "exchange",
            "state of a grant",
            "memory.grant",
            "memory_explain",
        ],
        conditions: &OVER,
        but_for: &[],
    },
    AtDoors { doors: &["export"], conditions: &[FOR_EXPORTS], but_for: &[] },
    AtDoors { doors: &["vector", "subscribe", "memory_explain"], conditions: &[FOR_QUERIES], but_for: &[] },
    AtDoors { doors: &["vector"], conditions: &[EMBEDDINGS], but_for: &[] },
    AtDoors {
        doors: &["exchange", "state of a grant", "memory.grant"],
        conditions: &["grantee's proof: "],
        but_for: &[],
    },
    AtDoors {
        doors: &["exchange", "memory.grant"],
        conditions: &[
            "grant: ",
            "granting: a child ",
            "granting: an unknown member",
            "granting: expires_at: not later",
            "granting: purpose_codes: more",
            "granting: budget: ",
            "granting: delegable.max_depth: ",
            "granting: filter: ",
            "granting: max_items: 0",
            "granting: operations: ",
            "granting: purpose: ",
            "granting: revocable: ",
        ],
        but_for: &[NUMBER],
    },
    AtDoors { doors: &["exchange"], conditions: &[NUMBER], but_for: &[] },
    AtDoors { doors: &["issue"], conditions: &["granting: "], but_for: &CHILDREN },
    AtDoors {
        doors: &[
            "memory.describe",
            "memory_describe",
            "memory.query",
            "memory_query",
            "memory.grant",
            "memory_grant",
        ],
        conditions: &["envelope: "],
        but_for: &[],
    },
    AtDoors { doors: &["acknowledgement in a letter"], conditions: &["acknowledgement: "], but_for: &[] },
    AtDoors { doors: &["countersignature"], conditions: &["countersignature: "], but_for: &[] },
    AtDoors { doors: &["log"], conditions: &["log: "], but_for: &[] },
    AtDoors { doors: &["deletion"], conditions: &["deletion: "], but_for: &[] },
    AtDoors { doors: &["receipts"], conditions: &["receipt: "], but_for: &[] },
];

/// A hundred exchanges are enough at one door.
const NUMBER: &str = "granting: a child when 100 were made from the first grant";

/// How the names of conditions on a child begin, which no draft of the owner's can break.
const CHILDREN: [&str; 1] = ["granting: a child "];

/// What must be brought where, as door and condition.
fn at_doors() -> BTreeSet<(String, String)> {
    let all: Vec<String> = Condition::all().iter().map(ToString::to_string).collect();
    let mut must = BTreeSet::new();
    for AtDoors { doors, conditions, but_for } in AT_DOORS {
        for named in *conditions {
            let begins = |condition: &&String| condition.starts_with(named);
            assert!(all.iter().any(|condition| begins(&condition)), "{named} is no condition");
            let is_left = |condition: &&String| but_for.iter().any(|but| condition.starts_with(but));
            for condition in all.iter().filter(begins).filter(|condition| !is_left(condition)) {
                must.extend(doors.iter().map(|door| ((*door).to_owned(), condition.clone())));
            }
        }
    }
    must
}

/// What one gateway has exercised over some seeds.
#[derive(Default)]
struct Exercised(Rules);

impl Exercised {
    fn and(&mut self, report: &Report) {
        for (rule, times) in &report.rules.decided {
            *self.0.decided.entry(rule.clone()).or_default() += times;
        }
        for (door, conditions) in &report.rules.at_doors {
            let at_door = self.0.at_doors.entry(door.clone()).or_default();
            for (condition, times) in conditions {
                *at_door.entry(condition.clone()).or_default() += times;
            }
        }
    }

    /// Rules that were not, but could have been.
    fn missing(&self) -> Vec<String> {
        let unreached = |rule: &String| NEVER.iter().any(|(never, _)| rule == never);
        self.0.never().into_iter().filter(|rule| !unreached(rule)).collect()
    }

    /// Conditions that were not brought to a door to which they must be.
    fn not_brought(&self) -> Vec<(String, String)> {
        let brought = |(door, condition): &(String, String)| {
            self.0.at_doors.get(door).is_some_and(|at_door| at_door.contains_key(condition))
        };
        at_doors().into_iter().filter(|one| !brought(one)).collect()
    }
}

/// The probes of a seed, all of which pass.
async fn passed(seed: u64) -> Report {
    // Some gateways have a model of embeddings.
    let world = match seed % SEEDS {
        MODEL => with_model(seed + 1).await,
        _ => probed(seed + 1, oap_gateway::Config::default(), equipment()).await,
    };
    let report = run(&world, seed, true).await;
    assert!(report.failures().is_empty(), "seed {seed}:\n{}", report.text());
    if ONLY.is_some() {
        assert_eq!(report.results.len(), 1, "OAP_PROBE_ONLY is the id of a probe");
        let result = &report.results[0];
        assert!(
            !matches!(result.outcome, Outcome::Skipped(_)),
            "seed {seed}:\nSKIPPED {}: {:?}",
            result.id,
            result.outcome
        );
        return report;
    }
    let skipped: Vec<_> = report
        .results
        .iter()
        .filter(|r| matches!(r.outcome, Outcome::Skipped(_) | Outcome::NotDeclared(_)))
        .filter(|r| !OF_LOGS.contains(&r.id.as_str()))
        .filter(|r| seed % SEEDS != MODEL || !BY_WORDS.contains(&r.id.as_str()))
        .map(|r| (&r.id, &r.outcome, &r.sent))
        .collect();
    assert!(skipped.is_empty(), "seed {seed}: {skipped:?}");
    assert_eq!(report.verdict(), Verdict::Passed);
    looked_at(&report);
    report
}

#[test]
fn the_honest_gateway_fails_no_probe() {
    // CI asks for more.
    let seeds = std::env::var("OAP_PROBE_SEEDS").ok().and_then(|n| n.parse().ok()).unwrap_or(SEEDS);
    let first = std::env::var("OAP_PROBE_FROM").ok().and_then(|n| n.parse().ok()).unwrap_or(0);
    let (next, exercised) = (AtomicU64::new(first), Mutex::new(Exercised::default()));
    let work = || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        loop {
            let seed = next.fetch_add(1, Ordering::Relaxed);
            if seed >= first + seeds {
                break;
            }
            let report = runtime.block_on(passed(seed));
            exercised.lock().unwrap().and(&report);
            println!("seed {seed}: {} requests", report.requests);
        }
    };
    // A gateway each: they know nothing of each other.
    let workers = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        for _ in 1..workers.min(usize::try_from(seeds).unwrap_or(1)) {
            scope.spawn(work);
        }
        work();
    });
    // Fewer need not come to everything.
    if seeds < SEEDS {
        return;
    }
    let exercised = exercised.into_inner().unwrap();
    let (missing, not_brought) = (exercised.missing(), exercised.not_brought());
    assert!(missing.is_empty(), "{} rules were never exercised: {missing:#?}", missing.len());
    assert!(not_brought.is_empty(), "{} were never brought: {not_brought:#?}", not_brought.len());
}

/// What a manifest declares is what is asked of it: an honest gateway with other limits and profiles passes. (One with other paths:
/// `tests/witness.rs`.)
#[tokio::test]
async fn a_gateway_with_other_limits_passes() {
    let config = oap_gateway::Config {
        belief_threshold: 0.8.try_into().unwrap(),
        max_grant_items: 6,
        max_grant_days: 1,
        ..oap_gateway::Config::default()
    };
    let mut equipment = equipment();
    let few = ["probe_contact.v1", "probe_event.v1", "calendar_event.v1", "full.v1"];
    equipment.profiles.retain(|profile| few.iter().any(|name| profile.name().ends_with(name)));
    let world = probed(3, config, equipment).await;
    let report = run(&world, 3, true).await;
    assert_eq!(report.verdict(), Verdict::Passed, "{}", report.text());
    let left: Vec<_> = report.results.iter().filter(|result| result.outcome != Outcome::Passed).collect();
    let left: Vec<_> = left.into_iter().map(|result| result.id.as_str()).collect();
    assert_eq!(left.iter().filter(|id| !OF_LOGS.contains(id)).count(), 0, "{left:?}");
}

/// A log has witnesses, and nothing was begun before.
#[tokio::test]
async fn a_gateway_with_a_log_passes() {
    for only in OF_LOGS {
        let random: Arc<dyn Random> = Arc::new(Seeded::new(1));
        let world = with_log(Store::in_memory(random.clone()).unwrap(), random).await;
        let (inside, random) = (Inside(&world), Seeded::new(3));
        let limits = Limits { only: Some(only), ..Limits::default() };
        let report =
            probe::run(ORIGIN, &inside, Some(&inside), &*world.clock, &random, limits, &mut |_| {}).await;
        assert_eq!(report.results[0].outcome, Outcome::Passed, "{}", report.text());
    }
}

/// The gateway behind a bound on requests without a credential, as it counts them by its clock, and with a fault.
struct Bounded<'a> {
    inside: Inside<'a>,
    a_minute: usize,
    window: Mutex<(Timestamp, usize)>,
    refused: Mutex<usize>,
    /// Where nothing comes back but a fault.
    broken: &'static str,
}

impl<'a> Bounded<'a> {
    fn new(world: &'a World, a_minute: usize, broken: &'static str) -> Self {
        let window = Mutex::new((world.clock.now(), 0));
        Self { inside: Inside(world), a_minute, window, refused: Mutex::new(0), broken }
    }

    async fn run(&self, only: Option<&'static str>) -> Report {
        let (random, clock) = (Seeded::new(2), &*self.inside.0.clock);
        // A minute is waited for again and again.
        let time = Duration::from_secs(86_400);
        let limits = Limits { worlds: 1, only, time, ..Limits::default() };
        probe::run(ORIGIN, self, Some(&self.inside), clock, &random, limits, &mut |_| {}).await
    }
}

fn refusal(status: u16, code: &str) -> Reply {
    let headers = [
        ("content-type", "application/oap+json"),
        ("x-content-type-options", "nosniff"),
        ("cache-control", "no-store"),
    ];
    let again = (status == 429).then_some(("retry-after", "60"));
    let headers = headers.into_iter().chain(again);
    let headers = headers.map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
    let body = json!({"error": code, "message": "later", "request_id": "01J9V8B7H1ZK4D2A0M9R8F0KQX"});
    Reply { status, headers, bytes: body.to_string().into_bytes() }
}

impl Wire for Bounded<'_> {
    fn send(&self, request: Request) -> Pending<'_, Reply> {
        if request.path == self.broken {
            return Box::pin(std::future::ready(Ok(refusal(500, "internal_error"))));
        }
        if !request.headers.iter().any(|(name, _)| name == "authorization") {
            let (now, mut window) = (self.inside.0.clock.now(), self.window.lock().unwrap());
            if now >= window.0.plus(Duration::from_secs(60)) {
                *window = (now, 0);
            }
            window.1 += 1;
            if window.1 > self.a_minute {
                *self.refused.lock().unwrap() += 1;
                return Box::pin(std::future::ready(Ok(refusal(429, "rate_limited"))));
            }
        }
        self.inside.send(request)
    }

    fn first_event(&self, request: Request) -> Pending<'_, Reply> {
        self.inside.first_event(request)
    }

    fn wait(&self, time: Duration) -> Pending<'_, ()> {
        self.inside.wait(time)
    }

    fn sets_clock(&self) -> bool {
        true
    }

    fn forbidden(&self, way: Forbidden, request: Request) -> Pending<'_, Option<Reply>> {
        self.inside.forbidden(way, request)
    }
}

#[tokio::test]
async fn a_gateway_that_is_asked_too_often_is_waited_for() {
    let world = World::new().await;
    let bounded = Bounded::new(&world, 15, "");
    let report = bounded.run(None).await;
    assert_eq!(report.verdict(), Verdict::Passed, "{}", report.text());
    assert!(*bounded.refused.lock().unwrap() > 5);
    // Nor is one given up that says so each second for a while: others took what an address may do.
    let said = AtomicU64::new(0);
    let busy = |_: &Request, reply: Reply| match said.fetch_add(1, Ordering::Relaxed) {
        0..10 => {
            let mut refused = refusal(429, "rate_limited");
            refused.headers.retain(|(name, _)| name != "retry-after");
            refused.headers.push(("retry-after".to_owned(), "1".to_owned()));
            refused
        }
        _ => reply,
    };
    let front = Behind::of(&world, busy);
    let (random, limits) = (
        Seeded::new(2),
        Limits { only: Some("did-document"), time: Duration::from_secs(3_600), ..Limits::default() },
    );
    let report = probe::run(ORIGIN, &front, None, &*world.clock, &random, limits, &mut |_| {}).await;
    assert_eq!(report.verdict(), Verdict::Passed, "{}", report.text());
    // One that never answers is not waited for without end, and did not pass.
    let began = world.clock.now();
    let report = Bounded::new(&world, 0, "").run(Some("did-document")).await;
    assert_eq!(report.verdict(), Verdict::Incomplete, "{}", report.text());
    // Three minutes for each request, to the second.
    let (waited, each) = (world.clock.now().millis() - began.millis(), 3 * 61_000);
    assert!(waited > 0 && waited % each == 0, "{waited}");
    // Nor beyond the end of the run.
    let began = world.clock.now();
    let limits = Limits { only: Some("did-document"), time: Duration::from_secs(90), ..Limits::default() };
    let bounded = Bounded::new(&world, 0, "");
    let report = probe::run(ORIGIN, &bounded, None, &*world.clock, &random, limits, &mut |_| {}).await;
    assert_eq!(report.verdict(), Verdict::Incomplete, "{}", report.text());
    assert_eq!(world.clock.now().millis() - began.millis(), 90_000);
}

/// The gateway on a wire on which time costs some, as over HTTP.
struct Slow<'a>(Inside<'a>);

impl Wire for Slow<'_> {
    fn send(&self, request: Request) -> Pending<'_, Reply> {
        self.0.send(request)
    }

    fn first_event(&self, request: Request) -> Pending<'_, Reply> {
        self.0.first_event(request)
    }

    fn wait(&self, time: Duration) -> Pending<'_, ()> {
        self.0.wait(time)
    }

    fn forbidden(&self, way: Forbidden, request: Request) -> Pending<'_, Option<Reply>> {
        self.0.forbidden(way, request)
    }
}

/// Where time costs some each condition is brought to some door, and something of each kind to each: all of it would be too much to ask.
#[tokio::test]
async fn a_run_whose_time_costs_some_asks_at_every_door() {
    let world = World::new().await;
    let (slow, random) = (Slow(Inside(&world)), Seeded::new(5));
    let limits = Limits { worlds: 1, ..Limits::default() };
    let report = probe::run(ORIGIN, &slow, Some(&slow.0), &*world.clock, &random, limits, &mut |_| {}).await;
    assert_eq!(report.verdict(), Verdict::Passed, "{}", report.text());
    println!("{} requests", report.requests);
    let never = report.rules.never();
    // A token's end takes ten minutes.
    let kinds = ["token: ", "bearer token: ", "proof: ", "grantee's proof: ", "envelope: "];
    let by_ways = [
        ("query: ", ["query", "memory.query", "mcp"]),
        ("granting: ", ["exchange", "memory.grant", "issue"]),
    ];
    for (kind, doors) in by_ways {
        for door in doors {
            let brought = report.rules.at_doors.get(door).into_iter().flat_map(BTreeMap::keys);
            assert!(brought.filter(|brought| brought.starts_with(kind)).count() > 5, "{kind}at {door}");
        }
    }
    for condition in Condition::all().iter().map(ToString::to_string) {
        let is_dealt = kinds.iter().any(|kind| condition.starts_with(kind));
        assert!(
            !is_dealt || condition.ends_with("it has not ended") || !never.contains(&condition),
            "{condition}"
        );
    }
    for (door, condition) in at_doors() {
        let Some(kind) = kinds.iter().find(|kind| condition.starts_with(*kind)) else { continue };
        let at_door = report.rules.at_doors.get(&door).unwrap_or_else(|| panic!("{door}"));
        assert!(at_door.keys().any(|brought| brought.starts_with(kind)), "{kind}at {door}");
    }
}

/// A gateway that is busy when a path is first asked for with a proof, and longer than any proof holds.
struct Busy<'a> {
    inside: Inside<'a>,
    path: &'static str,
    was: Mutex<bool>,
}

impl Wire for Busy<'_> {
    fn send(&self, request: Request) -> Pending<'_, Reply> {
        let is_proved = request.headers.iter().any(|(name, _)| name == "dpop");
        let mut was = self.was.lock().unwrap();
        if is_proved && request.path == self.path && !*was {
            *was = true;
            return Box::pin(std::future::ready(Ok(refusal(503, "maintenance"))));
        }
        self.inside.send(request)
    }

    fn first_event(&self, request: Request) -> Pending<'_, Reply> {
        self.inside.first_event(request)
    }

    fn wait(&self, time: Duration) -> Pending<'_, ()> {
        // For what is busy a minute is waited. A proof and an envelope hold for five, a token for ten.
        let is_busy = time == Duration::from_secs(61);
        self.inside.wait(if is_busy { Duration::from_secs(301) } else { time })
    }

    fn sets_clock(&self) -> bool {
        true
    }

    fn forbidden(&self, way: Forbidden, request: Request) -> Pending<'_, Option<Reply>> {
        self.inside.forbidden(way, request)
    }
}

/// What is bound to a time (a proof, an envelope) is made anew once the wait is over: the one of before is refused by then, and that
/// is no fault of the gateway's.
#[tokio::test]
async fn a_request_that_was_waited_for_is_of_its_own_time() {
    // Of each the first request there is one with nothing wrong, bound to a time.
    for (only, path) in [
        ("refused-proofs", "/oap/memory/export"),
        ("refused-proofs", "/oap/invoke"),
        ("refused-tokens", "/oap/memory/export"),
        ("proof-replayed", "/oap/memory/query"),
        ("refused-actions", "/oap/invoke"),
    ] {
        let world = World::new().await;
        let busy = Busy { inside: Inside(&world), path, was: Mutex::default() };
        let random = Seeded::new(2);
        let time = Duration::from_secs(86_400);
        let limits = Limits { worlds: 1, only: Some(only), time, ..Limits::default() };
        let report =
            probe::run(ORIGIN, &busy, Some(&busy.inside), &*world.clock, &random, limits, &mut |_| {}).await;
        assert_eq!(report.verdict(), Verdict::Passed, "{only}, {path}: {}", report.text());
        assert!(*busy.was.lock().unwrap(), "{only}: {path}");
    }
}

#[tokio::test]
async fn a_fault_of_the_gateway_is_a_failure() {
    let world = World::new().await;
    let report = Bounded::new(&world, 1000, "/oap/memory/export").run(Some("export")).await;
    assert_eq!(report.verdict(), Verdict::Failed);
    assert!(report.text().contains("a fault of the gateway, status 500"), "{}", report.text());
    assert_eq!(report.faults(), report.failures().len(), "{}", report.text());
}

#[tokio::test]
async fn without_the_owners_side_the_public_probes_are_made() {
    let world = World::new().await;
    let report = run(&world, 1, false).await;
    assert!(report.failures().is_empty(), "{}", report.text());
    let passed = report.results.iter().filter(|r| r.outcome == Outcome::Passed).count();
    assert!(passed >= 9 && passed < report.results.len());
}

/// The owner's side, but for one command, of which it says this.
struct Refusing<'a>(Inside<'a>, &'static str, fn(String) -> SetupError);

impl Setup for Refusing<'_> {
    fn call(&self, command: Value) -> Pending<'_, Value, SetupError> {
        if command["do"] == self.1 {
            return Box::pin(std::future::ready(Err((self.2)("not here".to_owned()))));
        }
        self.0.call(command)
    }

    fn may_lock_down(&self) -> bool {
        true
    }
}

/// What a gateway cannot do has not passed, whether its owner's side refuses the command or says that there is none.
#[tokio::test]
async fn a_command_that_there_must_be_and_is_not_makes_the_run_incomplete() {
    for (command, only, said) in [
        ("relabel", "every-table", SetupError::Refused as Kind),
        ("confirm", "every-table", SetupError::Lacks),
        ("retract", "every-table", SetupError::Refused),
        ("restore", "every-table", SetupError::Lacks),
        ("delete", "every-table", SetupError::Refused),
        ("rotate", "histories", SetupError::Refused),
        ("rotate", "histories", SetupError::Lacks),
        ("context", "gates", SetupError::Lacks),
    ] {
        let report = run_without(command, said, only).await;
        assert_eq!(report.verdict(), Verdict::Incomplete, "{command}: {}", report.text());
    }
}

/// What the owner's side says of a command.
type Kind = fn(String) -> SetupError;

/// One probe of a gateway of which the owner's side says this of one command.
async fn run_without(command: &'static str, said: Kind, only: &'static str) -> Report {
    let world = probed(3, oap_gateway::Config::default(), equipment()).await;
    let (wire, setup) = (Inside(&world), Refusing(Inside(&world), command, said));
    let limits = Limits { worlds: 1, only: Some(only), ..Limits::default() };
    probe::run(ORIGIN, &wire, Some(&setup), &*world.clock, &Seeded::new(2), limits, &mut |_| {}).await
}

/// What the owner's side says that it has no command for is not covered: it has not passed, and the report says so. A refusal says nothing of the
/// kind: what is permitted and refused is no run that passed.
#[tokio::test]
async fn a_command_that_there_need_not_be_is_not_covered() {
    for (command, only, requirement) in [
        ("profile", "own-profiles", None),
        ("profile", "refused-profiles", None),
        ("sanctions", "sanctions", None),
        ("audit", "owners-log", Some("ST-02")),
        ("audit", "whole-chain", Some("CO-23")),
        ("lockdown", "lockdown", Some("CO-30")),
        ("delete_selected", "deletions-by-selection", None),
    ] {
        let refused = run_without(command, SetupError::Refused, only).await;
        assert_ne!(refused.verdict(), Verdict::Passed, "{command}: {}", refused.text());
        let report = run_without(command, SetupError::Lacks, only).await;
        assert!(matches!(&report.results[0].outcome, Outcome::NotCovered(why) if why.contains("not here")));
        assert_eq!((report.verdict(), report.not_covered()), (Verdict::Passed, 1));
        assert!(report.text().contains(&format!("NOT COVERED {only}: ")), "{}", report.text());
        let named = report.requirements.not_covered;
        assert!(requirement.is_none_or(|id| named.contains(id)), "{named:?}");
    }
}

/// The owner's side, but for the log of one item, which it does not give, for this.
struct Withholding<'a>(Inside<'a>, fn(String) -> SetupError);

impl Setup for Withholding<'_> {
    fn call(&self, command: Value) -> Pending<'_, Value, SetupError> {
        if command["asked"]["item_id"].is_string() {
            return Box::pin(std::future::ready(Err((self.1)("not here".to_owned()))));
        }
        self.0.call(command)
    }
}

/// What was done once there is a command for: where it is not done again nothing passed, and a fault of the gateway fails.
#[tokio::test]
async fn a_command_that_was_done_once_is_covered() {
    let kinds = [
        (SetupError::Refused as Kind, Verdict::Incomplete),
        (SetupError::Lacks as Kind, Verdict::Incomplete),
        (SetupError::Fault as Kind, Verdict::Failed),
    ];
    for (kind, verdict) in kinds {
        let world = probed(3, oap_gateway::Config::default(), equipment()).await;
        let (wire, setup) = (Inside(&world), Withholding(Inside(&world), kind));
        let limits = Limits { worlds: 1, only: Some("owners-log"), ..Limits::default() };
        let random = Seeded::new(2);
        let report =
            probe::run(ORIGIN, &wire, Some(&setup), &*world.clock, &random, limits, &mut |_| {}).await;
        assert_eq!(report.verdict(), verdict, "{}", report.text());
    }
}

/// The gateway behind a proxy that says a number with each reply.
struct Numbered<'a> {
    inside: Inside<'a>,
    number: AtomicU64,
    /// What is counted: such commands to the owner's side, or else the replies.
    of: Option<&'static str>,
}

impl<'a> Numbered<'a> {
    fn of(world: &'a World, of: Option<&'static str>) -> Self {
        Self { inside: Inside(world), number: AtomicU64::new(0), of }
    }
}

impl Wire for Numbered<'_> {
    fn send(&self, request: Request) -> Pending<'_, Reply> {
        Box::pin(async move {
            let number = self.number.fetch_add(u64::from(self.of.is_none()), Ordering::Relaxed);
            let mut reply = self.inside.send(request).await?;
            reply.headers.push(("x-number".to_owned(), number.to_string()));
            Ok(reply)
        })
    }

    fn first_event(&self, request: Request) -> Pending<'_, Reply> {
        self.inside.first_event(request)
    }

    fn wait(&self, time: Duration) -> Pending<'_, ()> {
        self.inside.wait(time)
    }

    fn sets_clock(&self) -> bool {
        true
    }

    fn forbidden(&self, way: Forbidden, request: Request) -> Pending<'_, Option<Reply>> {
        self.inside.forbidden(way, request)
    }
}

impl Setup for Numbered<'_> {
    fn call(&self, command: Value) -> Pending<'_, Value, SetupError> {
        if self.of.is_some_and(|of| command["do"] == of) {
            let items = command["items"].as_array().map_or(1, Vec::len);
            self.number.fetch_add(items as u64, Ordering::Relaxed);
        }
        self.inside.call(command)
    }
}

/// Worlds of 21 successive seeds have a grant of every level of every profile: all of them are compared.
#[tokio::test]
async fn every_level_of_every_profile_is_compared_with_its_twin() {
    for world in [World::new().await, with_model(5).await] {
        let limits = Limits { worlds: 21, only: Some("paired-fillings"), ..Limits::default() };
        let (inside, random) = (Inside(&world), Seeded::new(4));
        let report =
            probe::run(ORIGIN, &inside, Some(&inside), &*world.clock, &random, limits, &mut |_| {}).await;
        assert_eq!(report.verdict(), Verdict::Passed, "{}", report.text());
    }
}

/// What differs in two replies to the same grantee tells no two fillings apart.
#[tokio::test]
async fn a_gateway_behind_a_proxy_passes() {
    let world = World::new().await;
    let wire = Numbered::of(&world, None);
    let limits = Limits { worlds: 1, only: Some("paired-fillings"), ..Limits::default() };
    let random = Seeded::new(2);
    let report = probe::run(ORIGIN, &wire, Some(&wire), &*world.clock, &random, limits, &mut |_| {}).await;
    assert_eq!(report.verdict(), Verdict::Passed, "{}", report.text());
}

/// Two gateways of one seed and one clock, one with worlds and one with their twins: nothing that a grantee or anybody is told tells them apart.
#[tokio::test]
async fn two_gateways_that_differ_in_what_is_hidden_tell_the_same() {
    let limits = Limits { worlds: 2, ..Limits::default() };
    for seed in 0..4 {
        let worlds = [two_alike().await, two_alike().await];
        let [one, other] = worlds.each_ref().map(Inside);
        let sides =
            [&one, &other].map(|inside| Side { wire: inside, setup: inside, clock: &*inside.0.clock });
        assert_eq!(probe::pairs(ORIGIN, sides, seed, limits).await, Ok(()), "seed {seed}");
        assert_eq!(worlds[0].now(), worlds[1].now(), "seed {seed}: one was waited for");
    }
}

/// One of two gateways with the same keys.
async fn two_alike() -> World {
    probed(9, oap_gateway::Config::default(), equipment()).await
}

/// What a gateway computes over all that it has is the same for two fillings of one, and tells two gateways apart.
#[tokio::test]
async fn what_is_counted_over_a_whole_gateway_is_found_by_two() {
    let limits = Limits { worlds: 2, only: Some("paired-fillings"), ..Limits::default() };
    let (world, random) = (two_alike().await, Seeded::new(2));
    let alone = Numbered::of(&world, Some("capture"));
    let report = probe::run(ORIGIN, &alone, Some(&alone), &*world.clock, &random, limits, &mut |_| {}).await;
    assert_eq!(report.verdict(), Verdict::Passed, "{}", report.text());

    // Of what becomes of hidden items on one side alone, too.
    for what in ["capture", "correct", "delete", "grant"] {
        let worlds = [two_alike().await, two_alike().await];
        let [one, other] = worlds.each_ref().map(|world| Numbered::of(world, Some(what)));
        let sides = [&one, &other].map(|side| Side { wire: side, setup: side, clock: &*side.inside.0.clock });
        let found = probe::pairs(ORIGIN, sides, 2, limits).await;
        let is_found = matches!(&found, Err(probe::Failed::Wrong(why)) if why.contains("x-number"));
        assert!(is_found, "{what}: {found:?}");
    }
}

/// Nor need a grant be for more than one item.
#[tokio::test]
async fn a_gateway_whose_grants_are_for_one_item_passes() {
    for only in ["deletion", "salted-digests", "max-items", "events", "every-table"] {
        let config = oap_gateway::Config { max_grant_items: 1, ..oap_gateway::Config::default() };
        let world = probed(3, config, equipment()).await;
        let (inside, random) = (Inside(&world), Seeded::new(3));
        let limits = Limits { worlds: 1, only: Some(only), ..Limits::default() };
        let report =
            probe::run(ORIGIN, &inside, Some(&inside), &*world.clock, &random, limits, &mut |_| {}).await;
        assert_eq!(report.verdict(), Verdict::Passed, "{}", report.text());
    }
}

/// The owner's side of a gateway that gives no tokens that are bound to no key.
struct Bound<'a>(Inside<'a>);

impl Setup for Bound<'_> {
    fn call(&self, command: Value) -> Pending<'_, Value, SetupError> {
        if command["draft"]["bearer"] == true {
            return Box::pin(std::future::ready(Err(SetupError::Refused("not here".to_owned()))));
        }
        self.0.call(command)
    }
}

/// Whoever gives no bearer tokens need not: it passes, and what is particular of them is not declared.
#[tokio::test]
async fn a_gateway_without_bearer_tokens_passes() {
    let world = probed(3, oap_gateway::Config::default(), equipment()).await;
    let (wire, setup) = (Inside(&world), Bound(Inside(&world)));
    let (random, limits) = (Seeded::new(2), Limits { worlds: 1, ..Limits::default() });
    let report = probe::run(ORIGIN, &wire, Some(&setup), &*world.clock, &random, limits, &mut |_| {}).await;
    assert_eq!(report.verdict(), Verdict::Passed, "{}", report.text());
    for (id, passes) in
        [("refused-bearer-tokens", false), ("subscriptions", true), ("worlds-over-time", true)]
    {
        let result = report.results.iter().find(|result| result.id == id).unwrap();
        let is_declared = !matches!(result.outcome, Outcome::NotDeclared(_));
        assert_eq!(is_declared, passes, "{id}: {}", report.text());
    }
}

/// How much a grantee may spend is its owner's setting: with less than a hundred ε the answers that are refused then are as they must be.
#[tokio::test]
async fn a_gateway_with_small_accounts_passes() {
    let config = oap_gateway::Config { epsilon_per_grantee: 0.1, ..oap_gateway::Config::default() };
    let world = probed(3, config, equipment()).await;
    let inside = Inside(&world);
    let (random, limits) = (Seeded::new(2), Limits { worlds: 2, only: Some("worlds"), ..Limits::default() });
    let report =
        probe::run(ORIGIN, &inside, Some(&inside), &*world.clock, &random, limits, &mut |_| {}).await;
    assert_eq!(report.verdict(), Verdict::Passed, "{}", report.text());
    let rule = "answer: the account of a grantee over all its grants is spent";
    assert!(report.rules.decided.contains_key(rule), "{}", report.text());
}

/// The owner's side, where one command says that it was done and was not.
struct Forgetting<'a>(Inside<'a>, &'static str);

impl Setup for Forgetting<'_> {
    fn call(&self, command: Value) -> Pending<'_, Value, SetupError> {
        if command["do"] == self.1 {
            return Box::pin(std::future::ready(Ok(json!({}))));
        }
        self.0.call(command)
    }
}

/// Histories that once showed a fault are kept in `conformance/cases/histories`, each under the name of the command that was forgotten: the
/// honest gateway lives through them, and where that command is forgotten again they show it. `OAP_WRITE_CASES=1` looks for them anew.
#[tokio::test]
async fn histories_that_showed_a_fault_are_kept_and_replayed() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/cases/histories");
    for command in ["retract", "restore", "delete", "relabel", "correct", "revoke"] {
        let path = format!("{folder}/{command}.jsonl");
        if std::env::var_os("OAP_WRITE_CASES").is_some() {
            let world = World::new().await;
            let (wire, setup) = (Inside(&world), Forgetting(Inside(&world), command));
            let limits = Limits { worlds: 20, only: Some("histories"), ..Limits::default() };
            let random = Seeded::new(2);
            let report =
                probe::run(ORIGIN, &wire, Some(&setup), &*world.clock, &random, limits, &mut |_| {}).await;
            let text = report.text();
            let (_, script) = text.split_once("(probe --replay FILE):\n").unwrap();
            let script: Vec<&str> = script.lines().take_while(|line| line.starts_with('{')).collect();
            std::fs::create_dir_all(folder).unwrap();
            std::fs::write(&path, script.join("\n") + "\n").unwrap();
        }
        let script = std::fs::read_to_string(&path).unwrap();
        for (is_forgotten, verdict) in [(false, Verdict::Passed), (true, Verdict::Failed)] {
            let world = World::new().await;
            let wire = Inside(&world);
            let (honest, forgetting) = (Inside(&world), Forgetting(Inside(&world), command));
            let setup: &dyn Setup = if is_forgotten { &forgetting } else { &honest };
            let (random, limits) = (Seeded::new(2), Limits::default());
            let replayed =
                probe::replay(ORIGIN, &wire, setup, &*world.clock, &random, limits, &script).await.unwrap();
            assert_eq!(replayed.verdict(), verdict, "{command}: {}", replayed.text());
        }
    }
}

#[tokio::test]
async fn orders_differ_with_the_seed_and_repeat_with_it() {
    let world = World::new().await;
    let order =
        async |seed| run(&world, seed, false).await.results.into_iter().map(|r| r.id).collect::<Vec<_>>();
    assert_eq!(order(1).await, order(1).await);
    assert_ne!(order(1).await, order(2).await);
}

#[tokio::test]
async fn a_run_is_bounded() {
    let run = async |limits| {
        // A seed is run once against a gateway: it would find the items and proofs of the first time.
        let world = World::new().await;
        let inside = Inside(&world);
        let random = Seeded::new(1);
        probe::run(ORIGIN, &inside, Some(&inside), &*world.clock, &random, limits, &mut |_| {}).await
    };
    let report = run(Limits { requests: 10, ..Limits::default() }).await;
    assert_eq!(report.requests, 10);
    assert!(report.failures().is_empty(), "{}", report.text());
    // Eleven seconds are waited for in one of the probes; no request is sent after five.
    let report = run(Limits { time: Duration::from_secs(5), ..Limits::default() }).await;
    assert!(report.failures().is_empty(), "{}", report.text());
    let late =
        |r: &&probe::report::Result| matches!(&r.outcome, Outcome::Skipped(why) if why.contains("time"));
    assert!(report.results.iter().filter(late).count() > 0);
}

#[test]
fn what_is_never_exercised_is_a_rule() {
    let all: BTreeSet<String> = Rules::all();
    for (never, _) in NEVER.iter() {
        assert!(all.contains(*never), "{never}");
    }
}

/// What a run says of requirements: all that can be seen from outside decided something, and each probe did.
fn looked_at(report: &Report) {
    let never = report.requirements.never();
    assert!(never.is_empty(), "{never:?}");
    // What a log shows, which they do not have.
    assert_eq!(report.requirements.not_declared, BTreeSet::from(["FE-13".to_owned()]));
    let passed = report.results.iter().filter(|result| result.outcome == Outcome::Passed);
    let blind: Vec<&str> =
        passed.filter(|result| result.judged == 0).map(|result| result.id.as_str()).collect();
    assert!(blind.is_empty(), "they passed and judged nothing: {blind:?}");
}

/// `docs/probes.md` has every requirement. `OAP_WRITE_PROBES=1` writes its table anew.
#[test]
fn the_page_has_every_requirement() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/probes.md");
    let (begin, end) = ("<!-- requirements -->\n", "<!-- end of requirements -->\n");
    let page = std::fs::read_to_string(path).unwrap();
    let (head, rest) = page.split_once(begin).unwrap();
    let (_, tail) = rest.split_once(end).unwrap();
    let now = format!("{head}{begin}{}{end}{tail}", probe::requirements::page());
    if std::env::var_os("OAP_WRITE_PROBES").is_some() {
        std::fs::write(path, &now).unwrap();
    }
    let written = std::fs::read_to_string(path).unwrap();
    assert!(written == now, "docs/probes.md is out of date: run this test with OAP_WRITE_PROBES=1");
}

/// The requirements that the protocol's own text has for a gateway are all in the table.
#[test]
fn no_requirement_is_forgotten() {
    let ids = include_str!("requirements.txt").lines().skip(1).flat_map(|line| line.split(' '));
    let missing: Vec<&str> = ids.filter(|id| probe::requirements::of(id).is_none()).collect();
    assert!(missing.is_empty(), "{missing:?}");
}

/// Every requirement that can be seen from outside has a probe, and no probe checks what is none.
#[test]
fn coverage_is_whole() {
    let probes = probe::all();
    for requirement in probe::requirements::ALL {
        let covered = probes.iter().any(|p| p.checks.contains(&requirement.id));
        assert_eq!(covered, requirement.unseen.is_none(), "{}", requirement.id);
    }
    for probe in &probes {
        assert!(probe.checks.iter().all(|id| probe::requirements::of(id).is_some()), "{}", probe.id);
    }
    let ids: BTreeSet<_> = probes.iter().map(|p| p.id).collect();
    assert_eq!(ids.len(), probes.len());
}

/// Where a draft that may not be is refused, at issue or at its exchange, the protocol leaves open, and of bearer tokens whether there are any.
#[tokio::test]
async fn a_gateway_that_refuses_at_the_exchange_passes() {
    let none: fn(&Value) -> bool = |_| false;
    let bearer: fn(&Value) -> bool = |draft| draft["bearer"] == true;
    for (only, also, is_offered) in [
        (None, none, true),
        (Some("subscriptions"), bearer, true),
        (Some("worlds-over-time"), bearer, true),
        // What is particular of bearer tokens is not declared then.
        (Some("refused-bearer-tokens"), bearer, false),
    ] {
        let world = probed(3, oap_gateway::Config::default(), equipment()).await;
        let late = Late::of(&world, also);
        let limits = Limits { worlds: 1, only, ..Limits::default() };
        let random = Seeded::new(2);
        let report =
            probe::run(ORIGIN, &late.wire(), Some(&late), &*world.clock, &random, limits, &mut |_| {}).await;
        assert_eq!(report.verdict(), Verdict::Passed, "{only:?}: {}", report.text());
        let is_declared = !matches!(report.results[0].outcome, Outcome::NotDeclared(_));
        assert!(only.is_none() || is_declared == is_offered, "{only:?}: {}", report.text());
        let statuses: Vec<u16> = late.exchanges().concat();
        assert!(!statuses.is_empty(), "{only:?}: nothing was refused at its exchange");
        assert!(statuses.iter().all(|status| [400, 401, 403].contains(status)), "{only:?}: {statuses:?}");
        assert!(only.is_some() || statuses.contains(&403), "nothing was early");
    }
}

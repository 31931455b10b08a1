//! `oap-memory probe`

mod program;
mod standing;

use super::fixture::{self, Asked, NotAsked};
use super::output::OutFile;
use super::{CliError, Global, output, values};
use crate::client::HomeClient;
use crate::system::clock::{SystemClock, SystemRandom};
use crate::system::config::Config;
use crate::system::home::{Home, HomeError};
use crate::system::outgoing;
use oap_client::{ClientError, wire};
use oap_conformance::probe::report::Counts;
use oap_conformance::probe::wire::Pending;
use oap_conformance::probe::{
    self, Forbidden, Limits, Outcome, Reply, Request, Setup, SetupError, Verdict, Wire, WireError,
    requirements,
};
use oap_identity::outgoing::{
    Allowance, Answer as HttpAnswer, HttpClient, Method, Request as HttpRequest, SendError,
};
use oap_identity::random::Seeded;
use oap_identity::{Clock, Did, Random, random};
use program::Program;
use serde::Serialize;
use serde_json::{Value, json};
use standing::Standing;
use std::io::IsTerminal;
use std::path::PathBuf;
use std::time::Duration;

/// What one request may take.
const ALLOWED: Allowance = Allowance { bytes: wire::MAX_ANSWER, time: Duration::from_secs(20) };

/// Check whether a gateway does what RFC 0010 says
#[derive(clap::Args)]
#[command(after_help = "Examples:
  oap-memory probe https://memory.example                     (what anybody can see)
  oap-memory --home ~/.oap-memory probe https://localhost:8443 --own --trust-ca ca.pem
  oap-memory probe https://memory.example --setup ./fixture.py --junit report.xml
  oap-memory probe --list

Most probes put items in and issue grants: on a gateway of your own with --own, on any other through --setup, a program that
reads commands as JSON Lines and answers each with one line (docs/probes.md). Probes leave their items, contexts and bridges of
scopes of their own, and grants, one of which holds as long as a grant may, and they rotate the gateway's keys: use one made for it.
`oap-memory delete --provenance made_by=oap-memory-probe` takes the items away. With --own nothing is written unless the gateway
at URL is that of this home, by its DID. Exit status 1 where nothing is reached (2 with --own), 4 when a probe fails, 5 when none does and some
were not made (but for what an owner's side need have no command for, which the last line counts as NOT COVERED): without --own or --setup only what anybody can see is probed.")]
pub(super) struct Probe {
    /// Where the gateway is
    #[arg(value_name = "URL", required_unless_present = "list", value_parser = values::url)]
    gateway: Option<String>,
    /// The gateway is that of this home: use its credential for the owner's side
    #[arg(long, conflicts_with = "setup")]
    own: bool,
    /// A program that does the owner's side
    #[arg(long, value_name = "PROGRAM")]
    setup: Option<PathBuf>,
    /// The seed of order, DIDs and words, to repeat a run on a fresh gateway; a new one if absent
    #[arg(long)]
    seed: Option<u64>,
    /// Worlds that are made: items, grants and questions from a seed, of each of which it is known what must be answered
    #[arg(long, value_name = "N", default_value_t = Limits::default().worlds)]
    worlds: u64,
    /// Most requests of the run
    #[arg(long, default_value_t = Limits::default().requests)]
    max_requests: usize,
    /// Longest time of the run, in seconds
    #[arg(long, default_value_t = 600)]
    max_seconds: u64,
    /// Bring every condition to every door, with larger --max-seconds and --max-requests: else some doors of each are drawn by the seed
    #[arg(long)]
    every_door: bool,
    /// Replay a history that a failed run printed, and make no probes; needs the owner's side
    #[arg(long, value_name = "FILE", conflicts_with_all = ["worlds", "list"])]
    replay: Option<PathBuf>,
    /// Write the report as JUnit XML too
    #[arg(long, value_name = "FILE")]
    junit: Option<PathBuf>,
    /// List the requirements and the probes that check them
    #[arg(long)]
    list: bool,
}

impl Probe {
    pub(super) async fn run(self, global: &Global) -> Result<(), CliError> {
        if self.list {
            list(global);
            return Ok(());
        }
        let origin = self.gateway.clone().unwrap_or_default();
        let home = global.home();
        let config = Config::load(home.path(), &global.flags())?;
        let wire = Http::to(&origin, &config, &home)?;
        let program = self.setup.as_deref().map(Program::start).transpose()?;
        let owner = if self.own {
            // Before the home is opened, and long before anything is written into it.
            is_own(&wire, &config.principal(home.path())?).await?;
            Some(Own(tokio::sync::Mutex::new(global.owner().await?)))
        } else {
            reached(&wire).await?;
            None
        };
        let standing = match &program {
            Some(program) => Standing::of(&wire, program).await,
            None => None,
        };
        let (way, clock): (&dyn Wire, &dyn Clock) = match &standing {
            Some(standing) => (standing, standing),
            None => (&wire, &SystemClock),
        };
        let setup = owner.as_ref().map(|o| o as &dyn Setup).or(program.as_ref().map(|p| p as &dyn Setup));
        let junit = self.junit.as_deref().map(OutFile::create).transpose()?;
        let seed = self.seed.unwrap_or_else(|| u64::from_le_bytes(random::bytes(&SystemRandom)));
        let random: Box<dyn Random> = Box::new(Seeded::new(seed));
        let limits = Limits {
            requests: self.max_requests,
            time: Duration::from_secs(self.max_seconds),
            worlds: self.worlds,
            only: None,
            every_door: self.every_door,
        };
        let progress = !global.json && std::io::stderr().is_terminal();
        let mut told = |result: &probe::report::Result| {
            if progress {
                let mark = match result.outcome {
                    Outcome::Passed => "ok",
                    Outcome::Failed(_) => "FAILED",
                    Outcome::Skipped(_) => "skipped",
                    Outcome::NotDeclared(_) | Outcome::NotCovered(_) => "-",
                };
                eprintln!("{mark:<8}{}", result.id);
            }
        };
        let report = match &self.replay {
            None => probe::run(&origin, way, setup, clock, &*random, limits, &mut told).await,
            Some(file) => {
                let failed = |e: String| CliError::File(file.clone(), e);
                let script = std::fs::read_to_string(file).map_err(|e| failed(e.to_string()))?;
                let setup =
                    setup.ok_or_else(|| CliError::Other("--replay: needs --own or --setup".to_owned()))?;
                let replayed = probe::replay(&origin, way, setup, clock, &*random, limits, &script);
                replayed.await.map_err(|e| failed(e.to_string()))?
            }
        };
        if let Some(file) = junit {
            file.write(report.junit().as_bytes())?;
        }
        let made = Made {
            report: &report,
            seed,
            verdict: report.verdict(),
            counts: report.counts(),
            sets_clock: way.sets_clock(),
        };
        output::print(global.json, &made, |made| {
            let set = if made.sets_clock {
                "its clock was set: bounds were asked to the millisecond\n"
            } else {
                ""
            };
            format!("{}{set}seed {seed}", report.text())
        });
        // It may have broken before the first probe, too.
        if let Some((path, why)) = self.setup.zip(program.as_ref().and_then(Program::broke)) {
            return Err(CliError::File(path, why));
        }
        match report.verdict() {
            Verdict::Passed => Ok(()),
            Verdict::Incomplete => Err(CliError::Incomplete(format!(
                "{} of {} probes were not made",
                report.skipped(),
                report.results.len()
            ))),
            Verdict::Failed => Err(CliError::Proof(format!("{} probe(s) failed", report.failures().len()))),
        }
    }
}

/// What the gateway says at the address of its DID document, whatever it is. A gateway that is not reached was not probed.
async fn reached(wire: &Http) -> Result<Option<Reply>, CliError> {
    let url = format!("{}{}", wire.origin, oap_manifest::path::DID);
    match wire.client.send(HttpRequest::get(&url), ALLOWED).await {
        Ok(answer) => Ok(Some(reply(answer))),
        Err(SendError::TooLarge(_)) => Ok(None),
        Err(error) => {
            let why = CliError::Client(ClientError::of_send(&url, &error)).advised();
            Err(CliError::Other(format!("not reached: {why}")))
        }
    }
}

/// That the gateway there is that of a home: what the probes have its owner write goes into that home.
async fn is_own(wire: &Http, own: &Did) -> Result<(), CliError> {
    let refused = |why: String| {
        CliError::Usage(format!("--own: {why}; this home is that of {own}, and nothing was written into it"))
    };
    let reply = reached(wire).await.map_err(|error| refused(error.to_string()))?;
    let document = reply.filter(|reply| reply.status == 200).map(|reply| reply.json());
    let there = document.as_ref().and_then(|document| document["id"].as_str());
    match there {
        Some(there) if there == own.as_str() => Ok(()),
        Some(there) => Err(refused(format!("{} is the gateway of {there}", wire.origin))),
        None => Err(refused(format!("{} shows no DID document", wire.origin))),
    }
}

/// A run, and what it can be repeated with.
#[derive(Serialize)]
struct Made<'a> {
    #[serde(flatten)]
    report: &'a probe::report::Report,
    seed: u64,
    verdict: Verdict,
    counts: Counts,
    /// Whether its clock was set: only then bounds are asked to the millisecond.
    sets_clock: bool,
}

/// A requirement, and the probes that check it.
#[derive(Serialize)]
struct Row {
    id: &'static str,
    source: &'static str,
    text: &'static str,
    probes: Vec<&'static str>,
    /// Why none can.
    not_checkable: Option<&'static str>,
}

fn list(global: &Global) {
    let probes = probe::all();
    let rows: Vec<Row> = requirements::ALL
        .iter()
        .map(|requirement| Row {
            id: requirement.id,
            source: requirement.source,
            text: requirement.text,
            probes: probes.iter().filter(|p| p.checks.contains(&requirement.id)).map(|p| p.id).collect(),
            not_checkable: requirement.unseen,
        })
        .collect();
    output::print(global.json, &json!({"requirements": rows}), |_| {
        let cells = rows.iter().map(|row| {
            let by = || row.probes.join(", ");
            let how = row.not_checkable.map_or_else(by, |why| format!("not checkable: {why}"));
            vec![row.id.to_owned(), row.source.to_owned(), row.text.to_owned(), how]
        });
        output::wrapped(&["id", "source", "requirement", "probes"], cells)
    });
}

/// A gateway over HTTP.
pub(super) struct Http {
    client: HttpClient,
    old_tls: HttpClient,
    origin: String,
}

impl Http {
    pub(super) fn to(origin: &str, config: &Config, home: &Home) -> Result<Self, CliError> {
        let outgoing = outgoing::of_home(config, home)?;
        Ok(Self {
            client: outgoing.clone().unguarded().map_err(HomeError::from)?,
            old_tls: outgoing.old_tls().unguarded().map_err(HomeError::from)?,
            origin: origin.to_owned(),
        })
    }
}

async fn ask(client: &HttpClient, origin: &str, request: Request) -> Result<Reply, WireError> {
    ask_until(client, origin, request, |_| false).await
}

/// Asks, and reads what is answered until it is enough.
async fn ask_until(
    client: &HttpClient,
    origin: &str,
    request: Request,
    is_enough: fn(&[u8]) -> bool,
) -> Result<Reply, WireError> {
    let url = format!("{origin}{}", request.path);
    let unanswered = |e: &dyn std::fmt::Display| WireError::Unanswered(e.to_string());
    let method = Method::from_bytes(request.method.as_bytes()).map_err(|e| unanswered(&e))?;
    let headers = request.headers.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
    let request = HttpRequest { method, url: &url, headers, body: request.body };
    let answer = client.send_until(request, ALLOWED, is_enough).await.map_err(|e| match e {
        SendError::TooLarge(_) => WireError::TooLarge,
        e => unanswered(&ClientError::of_send(&url, &e)),
    })?;
    Ok(reply(answer))
}

fn reply(answer: HttpAnswer) -> Reply {
    Reply { status: answer.status.as_u16(), headers: answer.headers, bytes: answer.body }
}

impl Wire for Http {
    fn send(&self, request: Request) -> Pending<'_, Reply> {
        Box::pin(ask(&self.client, &self.origin, request))
    }

    fn first_event(&self, request: Request) -> Pending<'_, Reply> {
        Box::pin(ask_until(&self.client, &self.origin, request, |body| {
            body.windows(2).any(|two| two == b"\n\n")
        }))
    }

    fn wait(&self, time: Duration) -> Pending<'_, ()> {
        Box::pin(async move {
            tokio::time::sleep(time).await;
            Ok(())
        })
    }

    fn forbidden(&self, way: Forbidden, request: Request) -> Pending<'_, Option<Reply>> {
        Box::pin(async move {
            let Some(rest) = self.origin.strip_prefix("https://") else {
                // What is asked for by http must not answer, unless it is on this machine.
                return match is_loopback(&self.origin) {
                    true => Ok(None),
                    false => self.send(request).await.map(Some),
                };
            };
            let (client, origin) = match way {
                Forbidden::Plain => (&self.client, format!("http://{rest}")),
                Forbidden::OldTls => (&self.old_tls, self.origin.clone()),
            };
            ask(client, &origin, request).await.map(Some)
        })
    }
}

fn is_loopback(origin: &str) -> bool {
    match url::Url::parse(origin).as_ref().map(url::Url::host) {
        Ok(Some(url::Host::Domain(name))) => name == "localhost",
        Ok(Some(url::Host::Ipv4(address))) => address.is_loopback(),
        Ok(Some(url::Host::Ipv6(address))) => address.is_loopback(),
        _ => false,
    }
}

impl From<NotAsked> for SetupError {
    fn from(why: NotAsked) -> Self {
        match why {
            NotAsked::Unknown(_) => Self::Broken(why.to_string()),
            NotAsked::None(_) => Self::Lacks(why.to_string()),
        }
    }
}

/// The owner's side of a gateway of one's own. It is not locked down for a probe: that would end its grants.
struct Own(tokio::sync::Mutex<HomeClient>);

impl Setup for Own {
    fn call(&self, command: Value) -> Pending<'_, Value, SetupError> {
        Box::pin(async move {
            let asked = fixture::request(&command).map_err(SetupError::from)?;
            let mut client = self.0.lock().await;
            let answered = match &asked {
                Asked::Post { path, body } => client.call("POST", path, &[], Some(body)).await,
                Asked::Get { path, query } => {
                    let query: Vec<(&str, String)> =
                        query.iter().map(|(name, value)| (name.as_str(), value.clone())).collect();
                    client.call("GET", path, &query, None).await
                }
            };
            let done = answered.map_err(|e| match e {
                // What is busy did not look at it.
                ClientError::Refused { status: 503, .. } => SetupError::Broken(e.to_string()),
                ClientError::Refused { status: 500.., .. } => SetupError::Fault(e.to_string()),
                ClientError::Refused { .. } => SetupError::Refused(e.to_string()),
                e => SetupError::Broken(e.to_string()),
            })?;
            // A rotation ends the credential, and brings the next.
            if let Some(token) = done["trust_token"].as_str() {
                client.renew(token);
            }
            fixture::answer(&command, done).map_err(SetupError::Lacks)
        })
    }
}

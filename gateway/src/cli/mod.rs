//! The command line.

mod agent;
mod audit;
mod backup;
mod budget;
mod bulk;
mod clients;
mod clock;
mod completions;
mod config;
mod confirm;
mod conformance;
mod delete;
mod demo;
mod device;
mod examples;
mod export;
pub mod fixture;
mod gates;
mod grant;
mod help;
mod history;
mod hold;
mod ids;
mod import;
mod init;
mod item;
mod job;
mod keys;
mod lockdown;
mod man;
mod mcp;
mod names;
mod outbox;
mod output;
mod peer;
mod policy;
mod probe;
mod profile;
mod proved;
mod query;
mod recall;
mod reference;
mod refusal;
mod review;
mod screen;
#[cfg(test)]
mod screens;
mod search;
mod selectors;
mod serve;
mod status;
mod table;
mod trust;
mod unlock;
mod usage;
mod values;
mod verify;
mod when;
mod who;
mod witness;
mod workflow;

use crate::client::{Caller, HomeClient};
use crate::system::config::ConfigError;
use crate::system::home::{Home, HomeError};
use crate::system::lock::{Held, HomeLock, PATIENCE, Wait};
use crate::system::tasks::Panicked;
use crate::system::trails::Place;
use clap::{Args, FromArgMatches, Parser, Subcommand};
use oap_client::ClientError;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use tokio::runtime::Runtime;

const EXAMPLES: &str = "Examples:
  oap-memory init --did did:web:memory.example.org --key-file /etc/oap/master.key
  oap-memory serve --listen 0.0.0.0:443
  oap-memory item add --kind preference --text \"Prefers meetings on Tuesday mornings\" \\
      --label scheduling
  oap-memory grant preview --to did:web:contractor.example --purpose \"Website redesign\" --label website \\
      --until 30d --trust-level 2
  oap-memory demo";

const STATUS: &str = "Exit status: 0 done, 1 failed, 2 wrong usage, 3 refused by a gateway, 4 a proof does not hold, 5 not all was probed.";

/// A principal's memory gateway after OAP RFC 0010: it holds what your assistant knows of you, and shows signed
/// slices of it to those whom you grant them.
#[derive(Parser)]
#[command(name = "oap-memory", version, propagate_version = true, max_term_width = 100)]
#[command(after_help = format!("{EXAMPLES}\n\n{}\n\n{STATUS}", when::GRAMMAR))]
struct Cli {
    #[command(flatten)]
    global: Global,
    #[command(subcommand)]
    command: Command,
}

#[derive(Args)]
struct Global {
    /// The gateway's folder, or a trails.toml that names it [default: ~/.oap-memory]
    #[arg(long, global = true, env = "OAP_MEMORY_HOME", value_name = "DIR", value_parser = config::place())]
    home: Option<Place>,
    /// Print JSON instead of tables
    #[arg(long, global = true)]
    json: bool,
    /// A further authority (PEM) that outgoing connections trust
    #[arg(long, global = true, value_name = "FILE")]
    trust_ca: Option<PathBuf>,
    /// Resolve did:web on private addresses and plain-http loopback, for development
    #[arg(long, global = true)]
    allow_local_dids: bool,
    /// The command's name, such as `item add`, for those who wait for it.
    #[arg(skip)]
    command: String,
    #[arg(skip)]
    kept: Kept,
}

/// The lock of a home that this process holds until it ends: its threads may work on what they have of the home until then.
#[derive(Clone, Default)]
struct Kept(Arc<OnceLock<HomeLock>>);

/// How long the end of a process waits for blocking work that nobody waits for any more.
const END: Duration = Duration::from_secs(2);

#[derive(Subcommand)]
enum Command {
    /// Make a gateway: keys, vault, store, configuration, credential
    Init(init::Init),
    /// Run the gateway
    Serve(serve::Serve),
    /// Ask for the passphrase once, and not again for a while
    Unlock(unlock::Unlock),
    /// End `unlock` before its time
    Lock(unlock::Lock),
    /// Write, read and correct memory items
    #[command(subcommand)]
    Item(item::Item),
    /// See what your agents wrote that waits for you, and decide
    Review(review::Review),
    /// See and set what your agents may write, for how long it is kept, and how it is believed
    #[command(subcommand)]
    Policy(policy::Policy),
    /// Your own agents: assistants that share your memory
    #[command(subcommand)]
    Agent(agent::Agent),
    /// Workflows of OpenIntent: what they say of your agents' memory
    #[command(subcommand)]
    Workflow(workflow::Workflow),
    /// Serve your memory to an assistant (Model Context Protocol), and connect one
    #[command(alias = "server")]
    Mcp(mcp::Mcp),
    /// Search your own memory
    Search(search::Search),
    /// Search your own memory and those that you were granted to read, at once
    Recall(recall::Recall),
    /// See what other gateways said that is not so
    Incidents(recall::IncidentsCommand),
    /// Show what somebody was granted, and everything that they were ever shown
    Who(who::Who),
    /// Preview, issue and revoke grants
    #[command(subcommand)]
    Grant(grant::Grant),
    /// Other gateways: pin their keys and addresses, and see what changes
    #[command(subcommand)]
    Peer(peer::Peer),
    /// Witnesses: who signs your log, and whose log you sign
    #[command(subcommand)]
    Witness(witness::Witness),
    /// Your other gateways: keep them in step
    #[command(subcommand)]
    Device(device::Device),
    /// Query another gateway as a grantee
    Query(query::Query),
    /// Check an answer or an item offline
    Verify(verify::Verify),
    /// Check whether a gateway does what RFC 0010 says
    Probe(probe::Probe),
    /// Sign, check and witness Conformance Receipts
    #[command(subcommand)]
    Conformance(conformance::Conformance),
    /// List, check and explain projection profiles
    #[command(subcommand)]
    Profile(profile::Profile),
    /// See and refill what grantees may still ask
    #[command(subcommand)]
    Budget(budget::Budget),
    /// Say what a scope owes to others: embargoes, NDAs, walls, secrecy
    #[command(subcommand)]
    Ccc(gates::Ccc),
    /// Let some of one scope be shown under another
    #[command(subcommand)]
    Bridge(gates::Bridge),
    /// Read and verify the audit log
    Audit(audit::Audit),
    /// List, rotate and revoke signing keys
    #[command(subcommand)]
    Keys(keys::Keys),
    /// Make a key to ask with, without a gateway
    #[command(subcommand)]
    Key(keys::Key),
    /// Take your memory along: as a bundle, or in a form that other programs read
    Export(export::Export),
    /// Bring memory in: a bundle, or another vendor's export
    Import(Box<import::Import>),
    /// Destroy memory for good
    Delete(Box<delete::Delete>),
    /// Legal holds: the one reason for which deletion waits
    #[command(subcommand)]
    Hold(hold::Hold),
    /// Copy everything while the gateway serves
    Backup(backup::Backup),
    /// Make a gateway from a backup
    Restore(backup::Restore),
    /// Look at everything, and say what is wrong and what to do
    Doctor(backup::Doctor),
    /// Where this gateway stands, on one screen
    Status(status::Status),
    /// End every grant and credential at once, and answer nobody but you
    Lockdown(lockdown::Lockdown),
    /// Look at long work of a running gateway, and cancel it
    #[command(subcommand)]
    Job(job::Job),
    /// See whether the clock is believed, and accept it
    #[command(subcommand)]
    Clock(clock::Clock),
    /// Show the configuration and where each value comes from
    #[command(subcommand)]
    Config(config::ConfigCommand),
    /// Show the whole story on a throw-away pair of gateways
    Demo(demo::Demo),
    /// Print shell completions
    Completions(completions::Completions),
    /// Write the manual pages
    #[command(after_help = "Examples:
  oap-memory man --out ./man1
  man ./man1/oap-memory-grant-issue.1")]
    Man {
        /// The folder
        #[arg(long, value_name = "DIR")]
        out: PathBuf,
    },
}

/// Why a command failed.
#[derive(Debug, thiserror::Error)]
enum CliError {
    /// A gateway or its client.
    #[error(transparent)]
    Client(ClientError),
    /// The home.
    #[error(transparent)]
    Home(#[from] HomeError),
    /// The configuration.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// An argument that does not fit; the text says what it must be.
    #[error("{0}")]
    Usage(String),
    /// A proof.
    #[error("does not hold: {0}")]
    Proof(String),
    /// A run that did not do all that it is to do.
    #[error("incomplete: {0}")]
    Incomplete(String),
    /// A file of the caller's.
    #[error("{0}: {1}")]
    File(PathBuf, String),
    /// A job without a result.
    #[error(transparent)]
    Job(job::JobStopped),
    /// Everything else.
    #[error("{0}")]
    Other(String),
}

impl From<Panicked> for CliError {
    fn from(panicked: Panicked) -> Self {
        Self::Home(crate::Error::from(panicked).into())
    }
}

impl CliError {
    /// Says it on standard error: for people, or as one JSON object.
    fn tell(&self, json: bool) {
        let text = self.advised();
        if json {
            eprintln!("{}", screen::plain_json(&json!({"error": text, "status": self.status()}).to_string()));
        } else {
            eprintln!("oap-memory: {}", screen::plain(&text));
        }
    }

    fn status(&self) -> u8 {
        match self {
            Self::Usage(_) => 2,
            // The own gateway's disk, not its judgement.
            Self::Client(ClientError::Refused { own: true, status: 507, .. }) => 1,
            Self::Client(ClientError::Refused { .. }) => 3,
            Self::Client(
                ClientError::Evidence(_)
                | ClientError::Terms(_)
                | ClientError::Manifest(..)
                | ClientError::OtherGateway(..),
            )
            | Self::Proof(_) => 4,
            Self::Incomplete(_) => 5,
            _ => 1,
        }
    }
}

impl Global {
    fn home(&self) -> Home {
        let default = || std::env::home_dir().unwrap_or_default().join(".oap-memory");
        Home::new(self.home.as_ref().map_or_else(default, |place| place.folder.clone()))
    }

    /// The flags that are settings.
    fn flags(&self) -> BTreeMap<String, Value> {
        let mut flags = self.home.as_ref().map(Place::flags).unwrap_or_default();
        if let Some(path) = &self.trust_ca {
            flags.insert("trust_ca".to_owned(), json!(path));
        }
        if self.allow_local_dids {
            flags.insert("allow_local_dids".to_owned(), json!(true));
        }
        flags
    }

    async fn owner(&self) -> Result<HomeClient, CliError> {
        let word = |held: &Held| self.waiting(held);
        let caller = Caller { command: &self.command, patience: PATIENCE, word: &word };
        Ok(HomeClient::connect(self.home(), &self.flags(), caller).await?)
    }

    /// Holds the home's lock until the process has ended.
    fn keep(&self, lock: HomeLock) {
        // A process has one home.
        drop(self.kept.0.set(lock));
    }

    fn waiting(&self, held: &Held) {
        if !self.json {
            eprintln!("oap-memory: waiting for {held} to end");
        }
    }

    /// The home's lock, once whoever has it is done.
    async fn lock(&self) -> Result<HomeLock, CliError> {
        let home = self.home();
        crate::Config::load(home.path(), &self.flags())?.principal(home.path())?;
        let word = |held: &Held| self.waiting(held);
        let mut wait = Wait::new(PATIENCE, &word);
        loop {
            match home.lock(&self.command)? {
                Ok(lock) => return Ok(lock),
                Err(held) => wait.a_moment(held).await.map_err(HomeError::Held)?,
            }
        }
    }
}

/// Runs the command line.
#[must_use]
pub fn main() -> ExitCode {
    let parsed = examples::folded(help::command()).try_get_matches().and_then(|matches| {
        let mut cli = Cli::from_arg_matches(&matches)?;
        cli.global.command = usage::command_name(&matches);
        Ok(cli)
    });
    let cli = match parsed {
        Ok(cli) => cli,
        Err(error) => return usage::refuse(&error),
    };
    screen::look();
    crate::system::tls::install();
    let runtime = match Runtime::new() {
        Ok(runtime) => runtime,
        Err(error) => {
            eprintln!("oap-memory: {error}");
            return ExitCode::FAILURE;
        }
    };
    let json = cli.global.json;
    let kept = cli.global.kept.clone();
    match to_its_end(runtime, kept, run(cli)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            error.tell(json);
            ExitCode::from(error.status())
        }
    }
}

/// Runs a command, and ends its threads. A lock that was kept is let go of by the system alone, when there is no process any more that
/// could have something of the home in its memory.
fn to_its_end<T>(runtime: Runtime, kept: Kept, command: impl Future<Output = T>) -> T {
    let done = runtime.block_on(command);
    runtime.shutdown_timeout(END);
    std::mem::forget(kept);
    done
}

async fn run(cli: Cli) -> Result<(), CliError> {
    let global = cli.global;
    match cli.command {
        Command::Init(command) => command.run(&global).await,
        Command::Serve(command) => command.run(&global).await,
        Command::Unlock(command) => command.run(&global).await,
        Command::Lock(command) => command.run(&global).await,
        Command::Item(command) => command.run(&global).await,
        Command::Review(command) => command.run(&global).await,
        Command::Policy(command) => command.run(&global).await,
        Command::Agent(command) => command.run(&global).await,
        Command::Workflow(command) => command.run(&global).await,
        Command::Mcp(command) => command.run(&global).await,
        Command::Search(command) => command.run(&global).await,
        Command::Recall(command) => command.run(&global).await,
        Command::Incidents(command) => command.run(&global).await,
        Command::Who(command) => command.run(&global).await,
        Command::Grant(command) => command.run(&global).await,
        Command::Peer(command) => command.run(&global).await,
        Command::Witness(command) => command.run(&global).await,
        Command::Device(command) => command.run(&global).await,
        Command::Query(command) => command.run(&global).await,
        Command::Verify(command) => command.run(&global).await,
        Command::Probe(command) => command.run(&global).await,
        Command::Conformance(command) => command.run(&global).await,
        Command::Profile(command) => command.run(&global).await,
        Command::Budget(command) => command.run(&global).await,
        Command::Ccc(command) => command.run(&global).await,
        Command::Bridge(command) => command.run(&global).await,
        Command::Audit(command) => command.run(&global).await,
        Command::Keys(command) => command.run(&global).await,
        Command::Key(command) => command.run(&global),
        Command::Export(command) => command.run(&global).await,
        Command::Import(command) => command.run(&global).await,
        Command::Delete(command) => command.run(&global).await,
        Command::Hold(command) => command.run(&global).await,
        Command::Backup(command) => command.run(&global).await,
        Command::Restore(command) => command.run(&global).await,
        Command::Doctor(command) => command.run(&global).await,
        Command::Status(command) => command.run(&global).await,
        Command::Lockdown(command) => command.run(&global).await,
        Command::Job(command) => command.run(&global).await,
        Command::Clock(command) => command.run(&global).await,
        Command::Config(command) => command.run(&global),
        Command::Demo(command) => command.run(&global).await,
        Command::Man { out } => man::run(&global, &out),
        Command::Completions(shell) => completions::print(shell),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::channel;

    #[test]
    fn the_lock_outlasts_the_threads_that_a_command_left() {
        let folder = tempfile::tempdir().unwrap();
        let home = folder.path().to_owned();
        let is_free = move || HomeLock::take(&home, "lock").unwrap().is_ok();
        let (kept, looks) = (Kept::default(), is_free.clone());
        let (go, gone) = channel::<()>();
        let (tell, told) = channel();
        let (lock, at) = (kept.clone(), folder.path().to_owned());
        to_its_end(Runtime::new().unwrap(), kept, async move {
            drop(lock.0.set(HomeLock::take(&at, "unlock").unwrap().unwrap()));
            tokio::task::spawn_blocking(move || {
                // Until the command has ended.
                let _ = gone.recv();
                tell.send(looks()).unwrap();
            });
            drop(go);
        });
        assert!(!told.recv().unwrap());
        assert!(!is_free());
    }
}

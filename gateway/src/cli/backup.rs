//! `oap-memory backup`, `restore` and `doctor`

use super::job::{JobStopped, follow};
use super::{CliError, Global, job, output};
use crate::api::health::Finding;
use crate::api::jobs::{JobError, JobRequest, RefusedMember};
use crate::service::backup::FOLDER;
use crate::service::restored::Unknown;
use crate::system::clock::SystemClock;
use crate::system::config::Config;
use crate::system::outlook;
use crate::system::restore::{self, RestoreError, Restored};
use serde_json::json;
use std::path::{Path, PathBuf};

/// Copy everything while the gateway serves
#[derive(clap::Args)]
#[command(after_help = "Examples:
  oap-memory backup /backup/2026-11-21

The folder must not be there; the gateway that has the home open makes it. It holds the store as it is sealed, the vault, and in
clear what is no secret: config.toml, did.json, profiles and sanctions lists. The master key is not in it: keep that elsewhere.
Nor are the administrator's credential and the self-made certificate: a restore makes new ones. Reading and writing go on
meanwhile. Ctrl-C cancels it, and the folder is gone again.")]
pub(super) struct Backup {
    /// The folder to make
    folder: PathBuf,
}

impl From<RestoreError> for CliError {
    fn from(error: RestoreError) -> Self {
        match error {
            RestoreError::Home(error) => Self::Home(error),
            RestoreError::Backup(_) | RestoreError::List(_) => Self::Proof(error.to_string()),
            RestoreError::File { .. } | RestoreError::Place(..) => Self::Other(error.to_string()),
        }
    }
}

fn failed(path: &Path) -> impl Fn(std::io::Error) -> CliError + '_ {
    |e| CliError::File(path.to_owned(), e.to_string())
}

impl Backup {
    pub(super) async fn run(self, global: &Global) -> Result<(), CliError> {
        let folder = std::path::absolute(&self.folder).map_err(failed(&self.folder))?;
        let owner = global.owner().await?;
        let request = JobRequest::Backup { folder: folder.clone() };
        let answer = follow(&owner, global.json, &request, job::backup).await;
        let answer = answer.map_err(|stopped| match stopped {
            JobStopped::Failed(JobError { member: Some(RefusedMember { name, why }), .. })
                if name == FOLDER =>
            {
                let fix = if folder.exists() { "; name a new folder" } else { "" };
                CliError::File(self.folder.clone(), format!("{why}{fix}"))
            }
            stopped => stopped.into(),
        })?;
        output::print(global.json, &answer, |a| {
            format!("{} items in {}\n{}", a.items, folder.display(), a.store)
        });
        Ok(())
    }
}

/// Make a gateway from a backup
#[derive(clap::Args)]
#[command(after_help = "Examples:
  oap-memory --home /new/home restore /backup/2026-11-21 --erasures /old/home/erasures.jsonl

Everything is checked first: that this gateway wrote the backup, by a MAC, all files against their hashes, and the gateway as
`doctor` does. What was erased since the backup is erased again, what was retracted since is retracted again, what was revoked
since is revoked again, agents that were removed since are removed again, and subscriptions that you ended since are ended again,
as the list of erasures says; without the list it would come back, so it must be named, or left out on purpose. Grants, bridges
and consents that no list tells of are then revoked, all of them, unless you say --keep-grants. Where the list knows of receipts
that the backup does not have, corrections and restrictions may be among what is lost: no grant answers then until you have
looked and said `grant resume`, or unless you say --keep-grants. The administrator's credential is new: every trust token of the
time before has ended. The API keys of all agents end, and `agent rotate` makes new ones; agents on this machine
(`mcp --agent NAME`) go on, unless removed since. The home appears when all of this is done, or not at all.")]
pub(super) struct Restore {
    /// The backup's folder
    folder: PathBuf,
    /// The list of erasures of the gateway that was backed up
    #[arg(long, value_name = "FILE", required_unless_present = "without_erasures")]
    erasures: Option<PathBuf>,
    /// There is no such list: let come back what was erased since
    #[arg(long, conflicts_with = "erasures")]
    without_erasures: bool,
    /// Keep grants, bridges and consents in force where no list says what was revoked since, and let grants answer by what the
    /// backup has where receipts since are lost
    #[arg(long)]
    keep_grants: bool,
    /// Take a backup of an earlier version, which has no MAC: whoever could write to its folder decides what is restored,
    /// the configuration too
    #[arg(long)]
    accept_unauthenticated: bool,
}

impl Restore {
    pub(super) async fn run(self, global: &Global) -> Result<(), CliError> {
        let home = global.home();
        let what = restore::Restore {
            backup: &self.folder,
            list: self.erasures.as_deref(),
            unknown: if self.keep_grants { Unknown::Keep } else { Unknown::Revoke },
            unauthenticated: self.accept_unauthenticated,
        };
        let Restored { backup, replayed, findings } = what.run(&home, &mut |_| {}).await?;
        let sound = findings.iter().all(|finding| finding.wrong.is_empty());
        let items = backup.items.saturating_sub(replayed.erased);
        let done = json!({
            "home": home.path(), "principal": backup.principal, "backup_of": backup.at,
            "items": items, "erased_again": replayed.erased,
            "revoked_again": {
                "grants": replayed.grants, "bridges": replayed.bridges, "consents": replayed.consents,
                "keys": replayed.keys,
            },
            "agents_removed_again": replayed.agents,
            "subscriptions_ended_again": replayed.subscriptions,
            "withdrawn_again": { "retracted": replayed.retracted, "held": replayed.waiting },
            "lost_receipts": replayed.lost_receipts, "grants_paused": replayed.grants_paused,
            "chains": replayed.chains, "warnings": replayed.warnings, "sound": sound, "findings": findings,
        });
        for warning in &replayed.warnings {
            eprintln!("oap-memory: WARNING: {warning}");
        }
        output::print(global.json, &done, |_| {
            format!(
                "{} items of {} as of {}, {} erased again, {} grant(s), {} bridge(s), {} consent(s) and {} key(s) revoked again, {} agent(s) removed again, {} subscription(s) ended again, {} item(s) retracted again\n{}",
                items,
                backup.principal,
                backup.at,
                replayed.erased,
                replayed.grants,
                replayed.bridges,
                replayed.consents,
                replayed.keys,
                replayed.agents,
                replayed.subscriptions,
                replayed.retracted,
                report(&findings)
            )
        });
        if sound { Ok(()) } else { Err(CliError::Proof("the restored gateway is not sound".to_owned())) }
    }
}

/// Look at everything, and say what is wrong and what to do
#[derive(clap::Args)]
#[command(after_help = "Examples:
  oap-memory doctor

Looks at the store and the vault, every receipt chain, every item with its chain and proof, and the indexes. Exit status 4 when
something is wrong. Warns of grants, given and received, that end within 14 days, of a certificate that ends within 30, and of a disk with less
than 1 GiB to spare; a warning is no failure.")]
pub(super) struct Doctor {}

impl Doctor {
    pub(super) async fn run(self, global: &Global) -> Result<(), CliError> {
        let home = global.home();
        let config = Config::load(home.path(), &global.flags())?;
        let owner = global.owner().await?;
        let mut answer = follow(&owner, global.json, &JobRequest::Doctor {}, job::doctor).await?;
        answer.findings.extend(outlook::of_home(&config, &home, &SystemClock));
        output::print(global.json, &answer, |answer| report(&answer.findings));
        if answer.findings.iter().all(|finding| finding.wrong.is_empty()) {
            Ok(())
        } else {
            Err(CliError::Proof("something is wrong with this gateway; see above".to_owned()))
        }
    }
}

pub(super) fn report(findings: &[Finding]) -> String {
    let mut text = String::new();
    for Finding { part, looked_at, wrong, soon, fix, note } in findings {
        let state = match (wrong.is_empty(), soon.is_empty()) {
            (false, _) => "WRONG",
            (true, false) => "soon",
            (true, true) => "well",
        };
        let note = note.as_ref().map(|note| format!(", {note}")).unwrap_or_default();
        text.push_str(&format!("{state:<6} {part} ({looked_at}{note})\n"));
        for line in wrong.iter().chain(soon) {
            text.push_str(&format!("       {line}\n"));
        }
        if state != "well" {
            text.push_str(&format!("       to do: {fix}\n"));
        }
    }
    text
}

//! `oap-memory backup`, `restore` and `doctor`

use super::{CliError, Global, output};
use crate::ambient::SystemClock;
use crate::config::Config;
use crate::home::{ERASURES, HomeError};
use crate::outlook;
use crate::service::{backup, erasures};
use oap_store::SledEngine;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Copy everything while the gateway serves
#[derive(clap::Args)]
#[command(after_help = "Examples:
  oap-memory backup /backup/2026-11-21

The folder must not be there. It holds the store as it is sealed, the vault, configuration and credential, and nothing that is
readable without the master key, which is not in it: keep that elsewhere. Writing waits while the copy is made.")]
pub(super) struct Backup {
    /// The folder to make
    folder: PathBuf,
}

/// What of a home is copied beside store and vault.
const FILES: [&str; 3] = ["config.toml", "admin.json", "did.json"];
const FOLDERS: [&str; 3] = ["profiles", "sanctions", "tls"];

fn failed(path: &Path) -> impl Fn(std::io::Error) -> CliError + '_ {
    |e| CliError::File(path.to_owned(), e.to_string())
}

impl Backup {
    pub(super) async fn run(self, global: &Global) -> Result<(), CliError> {
        let folder = std::path::absolute(&self.folder).map_err(failed(&self.folder))?;
        let mut owner = global.owner().await?;
        let body = json!({"folder": folder});
        let answer = owner.call("POST", "/oap/owner/backup", &[], Some(&body)).await?;
        copy(global.home().path(), &folder)?;
        output::print(global.json, &answer, |a| {
            format!(
                "{} items in {}\n{}",
                output::text(a, "/items"),
                folder.display(),
                output::text(a, "/store")
            )
        });
        Ok(())
    }
}

/// Copies what stands beside store and vault.
fn copy(from: &Path, to: &Path) -> Result<(), CliError> {
    for name in FILES {
        if from.join(name).exists() {
            std::fs::copy(from.join(name), to.join(name)).map_err(failed(to))?;
        }
    }
    for name in FOLDERS {
        let Ok(entries) = std::fs::read_dir(from.join(name)) else { continue };
        std::fs::create_dir_all(to.join(name)).map_err(failed(to))?;
        for entry in entries {
            let entry = entry.map_err(failed(from))?;
            std::fs::copy(entry.path(), to.join(name).join(entry.file_name())).map_err(failed(to))?;
        }
    }
    Ok(())
}

/// Make a gateway from a backup
#[derive(clap::Args)]
#[command(after_help = "Examples:
  oap-memory --home /new/home restore /backup/2026-11-21 --erasures /old/home/erasures.jsonl

Everything is checked first: the files against their hashes, and the gateway as `doctor` does. What was erased since the
backup is erased again, as the list of erasures says; without the list it would come back, so it must be named, or
left out on purpose.")]
pub(super) struct Restore {
    /// The backup's folder
    folder: PathBuf,
    /// The list of erasures of the gateway that was backed up
    #[arg(long, value_name = "FILE", required_unless_present = "without_erasures")]
    erasures: Option<PathBuf>,
    /// There is no such list: let come back what was erased since
    #[arg(long, conflicts_with = "erasures")]
    without_erasures: bool,
}

impl Restore {
    pub(super) async fn run(self, global: &Global) -> Result<(), CliError> {
        let home = global.home();
        let target = home.path();
        if target.join("vault").exists() || target.join("store").exists() {
            return Err(CliError::Home(HomeError::Exists(target.to_owned())));
        }
        let info = backup::check(&self.folder).map_err(CliError::Proof)?;
        if let Some(list) = self.erasures.as_ref().filter(|list| !list.exists()) {
            return Err(CliError::File(list.clone(), "there is no such list".to_owned()));
        }
        use std::os::unix::fs::DirBuilderExt;
        let mut maker = std::fs::DirBuilder::new();
        maker.recursive(true).mode(0o700).create(target).map_err(failed(target))?;
        let _lock = home.lock("restore")?.map_err(HomeError::Held)?;
        copy(&self.folder, target)?;
        std::fs::copy(self.folder.join("vault"), target.join("vault")).map_err(failed(target))?;
        {
            let engine = SledEngine::open(&target.join("store")).map_err(HomeError::from)?;
            backup::fill(&self.folder, &info, &engine).map_err(CliError::Proof)?;
        }
        // The list that the configuration names is another gateway's by now.
        let flags = BTreeMap::from([("erasures".to_owned(), json!(target.join(ERASURES)))]);
        let gateway = home.open(&flags).await?;
        let mut erased = 0;
        if let Some(list) = &self.erasures {
            match erasures::read(list, gateway.keys().document()) {
                Ok(listed) => erased = gateway.replay(&listed).await.map_err(HomeError::from)?,
                Err(why) => {
                    // Nothing is left that would answer with what was erased.
                    drop(gateway);
                    let _ = std::fs::remove_dir_all(target.join("store"));
                    let _ = std::fs::remove_file(target.join("vault"));
                    return Err(CliError::Proof(format!(
                        "the list of erasures: {why}; nothing was restored"
                    )));
                }
            }
        }
        let findings = gateway.examine().map_err(HomeError::from)?;
        home.renew_admin(&gateway)?;
        let sound = findings.iter().all(|finding| finding.wrong.is_empty());
        let done = json!({
            "home": target, "principal": info.principal, "backup_of": info.at, "items": info.items - erased.min(info.items),
            "erased_again": erased, "sound": sound, "findings": findings,
        });
        output::print(global.json, &done, |done| {
            format!(
                "{} items of {} as of {}, {} erased again\n{}",
                output::text(done, "/items"),
                info.principal,
                info.at,
                erased,
                report(done)
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
something is wrong. Warns of grants that end within 14 days, of a certificate that ends within 30, and of a disk with less
than 1 GiB to spare; a warning is no failure.")]
pub(super) struct Doctor {}

impl Doctor {
    pub(super) async fn run(self, global: &Global) -> Result<(), CliError> {
        let home = global.home();
        let config = Config::load(home.path(), &global.flags())?;
        let mut answer = global.owner().await?.call("GET", "/oap/owner/doctor", &[], None).await?;
        let beside = outlook::of_home(&config, &home, &SystemClock);
        if let Some(findings) = answer["findings"].as_array_mut() {
            findings.extend(beside.iter().map(|finding| json!(finding)));
        }
        output::print(global.json, &answer, report);
        let findings = answer["findings"].as_array().cloned().unwrap_or_default();
        let wrong = findings.iter().filter(|f| f["wrong"].as_array().is_some_and(|w| !w.is_empty())).count();
        match wrong {
            0 => Ok(()),
            _ => Err(CliError::Proof("something is wrong with this gateway; see above".to_owned())),
        }
    }
}

fn report(answer: &Value) -> String {
    let mut text = String::new();
    for finding in answer["findings"].as_array().into_iter().flatten() {
        let wrong = finding["wrong"].as_array().cloned().unwrap_or_default();
        let soon = finding["soon"].as_array().cloned().unwrap_or_default();
        let state = match (wrong.is_empty(), soon.is_empty()) {
            (false, _) => "WRONG",
            (true, false) => "soon",
            (true, true) => "well",
        };
        text.push_str(&format!("{state:<6} {} ({})\n", output::text(finding, "/part"), finding["looked_at"]));
        for line in wrong.iter().chain(&soon) {
            text.push_str(&format!("       {}\n", line.as_str().unwrap_or_default()));
        }
        if state != "well" {
            text.push_str(&format!("       to do: {}\n", output::text(finding, "/fix")));
        }
    }
    text
}

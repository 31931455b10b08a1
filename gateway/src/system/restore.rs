//! A gateway made of a backup: all of it, with everything that was ended since ended again, or nothing.
//!
//! It is built in a folder beside the home's place, `<home>.restoring`, which holds the file `restoring` until it is done: a home with that
//! file does not open. Only when what was erased since is erased there and everything is synced does the folder get the home's name. A run
//! that was killed leaves nothing under that name; the next run clears the folder and begins anew.

use crate::error::ListError;
use crate::service::backup::{self, BackupError, BackupInfo};
use crate::service::doctor::Finding;
use crate::service::restored::{Replayed, Unknown};
use crate::service::{Backups, Health, carried};
use crate::state::clock::Standing;
use crate::state::erasures::{self, Listed};
use crate::state::gateway::Gateway;
use crate::state::jobs::Progress;
use crate::system::clock::SystemRandom;
use crate::system::config::Opening;
use crate::system::files;
use crate::system::home::{ERASURES, Home, HomeError};
use oap_identity::Signer;
use oap_store::{EngineKind, Space};
use serde::Serialize;
use serde_json::json;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Write};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

/// The file that says that a home is not whole.
pub const MARKER: &str = "restoring";
/// What it says while that is so.
const UNFINISHED: &str = "unfinished\n";
/// What it says when nothing is left to do but to take the file away.
const FINISHED: &str = "finished\n";

/// Why nothing was restored.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the names say it")]
pub enum RestoreError {
    /// The home, or the gateway in it.
    #[error(transparent)]
    Home(#[from] HomeError),
    #[error("{path}: {error}")]
    File {
        path: PathBuf,
        /// What the system says.
        error: io::Error,
    },
    /// The backup is not what it should be.
    #[error("{0}; nothing was restored")]
    Backup(#[from] BackupError),
    /// The list of what was ended since is not what it should be.
    #[error("the list of erasures: {0}; nothing was restored")]
    List(#[from] ListError),
    /// The place is taken.
    #[error("{0}: {1}")]
    Place(PathBuf, &'static str),
}

impl From<crate::Error> for RestoreError {
    fn from(error: crate::Error) -> Self {
        Self::Home(error.into())
    }
}

/// How far a restore has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Step {
    /// The folder beside is there, and marked.
    Marked,
    /// Configuration and vault are copied.
    Copied,
    /// The store is filled.
    Filled,
    /// The gateway opened in the folder beside.
    Opened,
    /// What was ended since is ended again.
    Replayed,
    /// Everything was looked at and is on disk.
    Synced,
    /// The marker says that nothing is left to do.
    Finished,
    /// The folder has the home's name.
    Named,
}

/// What to restore.
#[derive(Debug, Clone)]
pub struct Restore<'a> {
    /// The backup's folder.
    pub backup: &'a Path,
    /// The list of what was ended since; `None` for none.
    pub list: Option<&'a Path>,
    /// What to do with grants that no list tells of.
    pub unknown: Unknown,
    /// Whether a backup of an earlier version is taken, which nothing protects from being changed.
    pub unauthenticated: bool,
}

/// What was restored.
#[derive(Debug, Clone, Serialize)]
pub struct Restored {
    /// What the backup says of itself.
    pub backup: BackupInfo,
    /// What was ended again.
    pub replayed: Replayed,
    /// What the doctor says.
    pub findings: Vec<Finding>,
}

impl Restore<'_> {
    /// Restores into a home that is not there. `told` is called after each step.
    ///
    /// # Errors
    /// [`RestoreError`]; the home is not there then.
    pub async fn run(
        &self,
        home: &Home,
        told: &mut (dyn FnMut(Step) + Send),
    ) -> Result<Restored, RestoreError> {
        let target = home.path();
        if target.join("vault").exists() || target.join("store").exists() {
            return Err(HomeError::Exists(target.to_owned()).into());
        }
        if std::fs::read_dir(target).is_ok_and(|mut entries| entries.next().is_some()) {
            return Err(RestoreError::Place(
                target.to_owned(),
                "must not be there, or be empty: restore to another folder and move it",
            ));
        }
        let info = backup::check(self.backup, self.unauthenticated)?;
        if let Some(list) = self.list.filter(|list| !list.exists()) {
            return Err(RestoreError::Place(list.to_owned(), "there is no such list"));
        }
        let mut name = target.file_name().unwrap_or_default().to_os_string();
        name.push(".restoring");
        let stage = target.with_file_name(name);
        let lock = begin(&stage)?;
        told(Step::Marked);
        match self.build(&stage, &info, told).await {
            Ok((replayed, findings)) => {
                finish(&stage, target, told)?;
                drop(lock);
                Ok(Restored { backup: info, replayed, findings })
            }
            Err(error) => {
                clear(&stage)?;
                Err(error)
            }
        }
    }

    async fn build(
        &self,
        stage: &Path,
        info: &BackupInfo,
        told: &mut (dyn FnMut(Step) + Send),
    ) -> Result<(Replayed, Vec<Finding>), RestoreError> {
        carried::restore(self.backup, stage, &info.files)?;
        let vault = stage.join("vault");
        files::copy(&self.backup.join("vault"), &vault).map_err(failed(&vault))?;
        // What goes on from here is what was copied: whoever can write to the backup's folder may do so while it is read.
        backup::check_copied(stage, info)?;
        told(Step::Copied);
        let opening = Opening::load(stage).map_err(HomeError::from)?;
        self.is_apart(opening.key_file.as_deref())?;
        {
            let space = Space::of(stage).map_err(HomeError::from)?;
            let engine = EngineKind::from(opening.engine).open(&stage.join("store"), &space);
            backup::fill(self.backup, info, &engine.map_err(HomeError::from)?)?;
        }
        told(Step::Filled);
        let home = Home::new(stage.to_owned());
        // The list that the configuration names is another gateway's by now.
        let path = stage.join(ERASURES);
        let flags = BTreeMap::from([("erasures".to_owned(), json!(path))]);
        let store = home.open_store(&opening)?;
        let keys = Gateway::stored_keys(&store, &info.principal)?;
        // Until here whoever can write to the folder may have written all of it.
        backup::authenticate(info, &keys)?;
        Gateway::end_tokens(&store, &SystemRandom).await?;
        let mut listed = Listed::default();
        if let Some(list) = self.list {
            listed = erasures::read(list, &keys)?;
            files::copy(list, &path).map_err(failed(&path))?;
        }
        let gateway = home.assemble(store, &flags).await?;
        told(Step::Opened);
        // A backup may be old: whoever restores it sees the clock. One that is behind what is known stays unbelieved.
        let known = listed.at.unwrap_or(info.at).max(info.at);
        let mut clock = gateway.clock.info();
        if clock.standing == Standing::Ahead && clock.clock >= known {
            clock = gateway.go_by_clock().await?;
        }
        let mut replayed = Backups(&gateway).end_again(&listed, info.at, self.unknown).await?;
        if clock.clock.plus(oap_identity::time::MAX_SKEW) < known {
            replayed.warnings.push(format!(
                "the clock says {} and the backup or the list is of {known}: set the clock right",
                clock.clock
            ));
        }
        if info.mac.is_none() {
            replayed.warnings.push(
                "nothing shows that this backup is what was written: look at its config.toml, contexts, holds and grants before you serve it"
                    .to_owned(),
            );
        }
        let findings = Health(&gateway).findings(&Progress::default())?;
        // The backup has no credential, and whoever had one when it was made is nobody here.
        home.write_admin(&gateway, &Signer::seed(&SystemRandom))?;
        drop(gateway);
        told(Step::Replayed);
        Ok((replayed, findings))
    }

    /// That the master key does not come with the backup: whoever wrote it there would have chosen it, and all that it opens.
    fn is_apart(&self, key_file: Option<&Path>) -> Result<(), RestoreError> {
        let Some(key_file) = key_file else { return Ok(()) };
        let real = |path: &Path| std::fs::canonicalize(path).map_err(failed(path));
        if real(key_file)?.starts_with(real(self.backup)?) {
            return Err(RestoreError::Place(
                key_file.to_owned(),
                "the master key must not lie in the folder of the backup: keep it elsewhere",
            ));
        }
        Ok(())
    }
}

impl Home {
    /// That no restore stopped half-way here. One that had nothing left to do is finished.
    ///
    /// # Errors
    /// [`HomeError::HalfRestored`].
    pub(crate) fn is_whole(&self) -> Result<(), HomeError> {
        let marker = self.file(MARKER);
        match std::fs::read_to_string(&marker) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            Ok(text) if text == FINISHED => {
                std::fs::remove_file(&marker).map_err(|error| HomeError::File { path: marker, error })
            }
            _ => Err(HomeError::HalfRestored(self.path().to_owned())),
        }
    }
}

/// Makes the folder beside, cleared of what a killed run left; the lock is held until all is done.
fn begin(stage: &Path) -> Result<File, RestoreError> {
    let marker = stage.join(MARKER);
    if stage.exists() {
        let is_empty = std::fs::read_dir(stage).map_err(failed(stage))?.next().is_none();
        if !is_empty && !marker.exists() {
            return Err(RestoreError::Place(
                stage.to_owned(),
                "is in the way and is none of a restore: move it",
            ));
        }
        if marker.exists() {
            drop(lock(&marker)?);
        }
        clear(stage)?;
    }
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(stage).map_err(failed(stage))?;
    write_marker(&marker, UNFINISHED)?;
    lock(&marker)
}

fn lock(marker: &Path) -> Result<File, RestoreError> {
    let file = File::open(marker).map_err(failed(marker))?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(std::fs::TryLockError::WouldBlock) => {
            Err(RestoreError::Place(marker.to_owned(), "another restore is at work"))
        }
        Err(std::fs::TryLockError::Error(error)) => {
            Err(RestoreError::File { path: marker.to_owned(), error })
        }
    }
}

/// Writes over the marker where it stands, so that the lock on it stays.
fn write_marker(marker: &Path, text: &str) -> Result<(), RestoreError> {
    let file = File::options().write(true).create(true).truncate(true).open(marker);
    let written = file.and_then(|mut file| file.write_all(text.as_bytes()).and_then(|()| file.sync_all()));
    written.map_err(failed(marker))?;
    sync(marker.parent().unwrap_or(Path::new(".")))
}

/// Removes the folder beside, its marker last, so that what is left of it is always known for what it is.
fn clear(stage: &Path) -> Result<(), RestoreError> {
    for entry in std::fs::read_dir(stage).map_err(failed(stage))? {
        let path = entry.map_err(failed(stage))?.path();
        if path.file_name().is_some_and(|name| name == MARKER) {
            continue;
        }
        let is_folder = std::fs::symlink_metadata(&path).map_err(failed(&path))?.is_dir();
        let removed = if is_folder { std::fs::remove_dir_all(&path) } else { std::fs::remove_file(&path) };
        removed.map_err(failed(&path))?;
    }
    let marker = stage.join(MARKER);
    if marker.exists() {
        std::fs::remove_file(&marker).map_err(failed(&marker))?;
    }
    std::fs::remove_dir(stage).map_err(failed(stage))
}

fn finish(stage: &Path, target: &Path, told: &mut (dyn FnMut(Step) + Send)) -> Result<(), RestoreError> {
    sync_all(stage)?;
    told(Step::Synced);
    write_marker(&stage.join(MARKER), FINISHED)?;
    told(Step::Finished);
    std::fs::rename(stage, target).map_err(failed(target))?;
    if let Some(parent) = target.parent().filter(|parent| !parent.as_os_str().is_empty()) {
        sync(parent)?;
    }
    told(Step::Named);
    Ok(Home::new(target.to_owned()).is_whole()?)
}

/// Waits until every file of a folder is on disk.
fn sync_all(folder: &Path) -> Result<(), RestoreError> {
    for entry in std::fs::read_dir(folder).map_err(failed(folder))? {
        let path = entry.map_err(failed(folder))?.path();
        if path.is_dir() { sync_all(&path)? } else { sync(&path)? }
    }
    sync(folder)
}

fn sync(path: &Path) -> Result<(), RestoreError> {
    files::sync(path).map_err(failed(path))
}

fn failed(path: &Path) -> impl Fn(io::Error) -> RestoreError + '_ {
    |error| RestoreError::File { path: path.to_owned(), error }
}

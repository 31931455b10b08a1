//! Backups: a consistent copy while the gateway serves, and what is in one.
//!
//! A backup is a folder with `store.bin` (every pair of the store as it is sealed, each with its lengths), `vault`, and
//! `backup.json` (what, when, hashes). Nothing in it is readable without the master key, which is not in it.

pub use crate::api::health::BackupInfo;
use crate::error::{Error, MemberError};
use crate::service::Backups;
use crate::state::commits::chain_of;
use crate::state::gateway::blocking;
use crate::state::jobs::Progress;
use crate::state::owner::Owner;
use crate::state::owner::mark::{Admin, Permits};
use crate::system::files;
use oap_identity::{Did, Hash, Timestamp};
use oap_memory::receipt::Action;
use oap_store::{Engine, Op, Snapshot, StoreError};
use serde_json::json;
use sha2::{Digest, Sha256};
use std::fs::File;
use std::io::{self, BufReader, BufWriter, Read, Write};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

/// The form that is written and read here.
pub const FORMAT: &str = "oap-memory-backup/1";
/// Pairs of one batch when a store is filled again, and their bytes.
const BATCH: usize = 10_000;
const BATCH_BYTES: usize = 32 << 20;
/// Longest key and value, in bytes.
const MAX_PART: u32 = 64 << 20;

/// A folder that is being written: gone with whoever writes it, unless it is whole.
struct Unfinished(Option<PathBuf>);

impl Unfinished {
    fn begin(folder: PathBuf) -> io::Result<Self> {
        std::fs::DirBuilder::new().mode(0o700).create(&folder)?;
        Ok(Self(Some(folder)))
    }

    fn path(&self) -> &Path {
        self.0.as_deref().unwrap_or(Path::new(""))
    }

    fn keep(mut self) {
        self.0 = None;
    }
}

impl Drop for Unfinished {
    fn drop(&mut self) {
        let Some(folder) = self.0.take() else { return };
        // Half of one would stand in the way of the next.
        if let Err(error) = std::fs::remove_dir_all(folder) {
            tracing::warn!(%error, "half a backup cannot be removed");
        }
    }
}

/// `store.bin`, as it is written.
struct Pairs {
    file: BufWriter<File>,
    hash: Sha256,
    count: u64,
}

impl Pairs {
    fn put(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.hash.update(bytes);
        self.file.write_all(bytes)
    }

    fn pair(&mut self, key: &[u8], value: &[u8]) -> io::Result<()> {
        for part in [key, value] {
            self.put(&u32::try_from(part.len()).unwrap_or(u32::MAX).to_le_bytes())?;
        }
        self.put(key)?;
        self.count += 1;
        self.put(value)
    }
}

fn refused(error: io::Error) -> Error {
    Error::Member("folder", error.into())
}

/// What the backup is of: said at the point of the order of commits at which the snapshot was taken.
struct Of {
    principal: Did,
    at: Timestamp,
    items: usize,
}

/// Writes the files of a backup, the one that makes it one last.
fn write(folder: &Path, snapshot: Snapshot, of: Of, progress: &Progress) -> Result<BackupInfo, Error> {
    let file = files::create(&folder.join("store.bin")).map_err(refused)?;
    let mut pairs = Pairs { file: BufWriter::with_capacity(1 << 20, file), hash: Sha256::new(), count: 0 };
    for pair in snapshot.pairs {
        progress.step()?;
        let (key, value) = pair?;
        pairs.pair(&key, &value).map_err(refused)?;
    }
    pairs.file.flush().map_err(refused)?;
    pairs.file.get_ref().sync_all().map_err(refused)?;
    let keep = |name: &str, bytes: &[u8]| {
        let mut file = files::create(&folder.join(name))?;
        file.write_all(bytes).and_then(|()| file.sync_all())
    };
    keep("vault", &snapshot.vault).map_err(refused)?;
    let info = BackupInfo {
        format: FORMAT.to_owned(),
        principal: of.principal,
        at: of.at,
        items: of.items,
        pairs: pairs.count,
        store: Hash::from_bytes(pairs.hash.finalize().into()),
        vault: Hash::of(&snapshot.vault),
    };
    keep("backup.json", &serde_json::to_vec_pretty(&info)?).map_err(refused)?;
    Ok(info)
}

impl Backups<'_> {
    /// Writes a backup into a folder that must not be there, all of it as of one commit. Reading and writing go on meanwhile. What
    /// does not come to its end leaves nothing.
    ///
    /// # Errors
    /// [`Error::Member`] for a folder that is there or cannot be made; [`Error::Store`]; [`Error::Cancelled`].
    pub async fn backup(
        self,
        owner: &Owner<impl Permits<Admin>>,
        folder: PathBuf,
        progress: &Progress,
    ) -> Result<BackupInfo, Error> {
        if !folder.is_absolute() {
            return Err(Error::Member("folder", MemberError::RelativePath));
        }
        let folder = Unfinished::begin(folder).map_err(refused)?;
        let gateway = self.0.clone();
        let of = move || Of {
            principal: gateway.principal.clone(),
            at: gateway.clock.now(),
            items: gateway.heads.len(),
        };
        let (snapshot, of) = self.0.store.snapshot(of).await?;
        let told = progress.clone();
        // The folder goes along: where nobody waits any more, it goes with what is written.
        let written = move || Ok((write(folder.path(), snapshot, of, &told)?, folder));
        let (info, folder) = blocking(written).await?;
        progress.go_on()?;
        let (gateway, hash, pairs) = (self.0.clone(), info.store, info.pairs);
        self.0
            .commit_as(owner, move |w| {
                // A full disk is when one makes a backup.
                w.tx.use_reserve();
                let mut draft = gateway.draft(Action::Backup, gateway.principal.as_str());
                draft.rules = vec!["principal".to_owned()];
                draft.more.insert("pairs".to_owned(), json!(pairs));
                draft.output_hash = Some(hash);
                w.receipt(&chain_of(&gateway.config.default_scope), draft)?;
                Ok(())
            })
            .await?;
        folder.keep();
        // So that the list is never older than the backup.
        self.0.tell_chains();
        Ok(info)
    }
}

/// What is wrong with a backup.
#[derive(Debug, thiserror::Error)]
pub enum BackupError {
    /// One of its files cannot be read.
    #[error("{0}: {1}")]
    File(&'static str, io::Error),
    /// What it says of itself is not of the expected shape.
    #[error("backup.json: {0}")]
    Json(serde_json::Error),
    /// Written by another version of the program.
    #[error("backup.json: format {0:?}; this program reads {FORMAT:?}")]
    Format(String),
    /// One of its files was changed.
    #[error("{0}: is not what was written: its hash differs")]
    Hash(&'static str),
    /// The store does not take it.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Reads what a backup says of itself, and checks that its files are those.
///
/// # Errors
/// What is wrong with it.
pub fn check(folder: &Path) -> Result<BackupInfo, BackupError> {
    let text = std::fs::read(folder.join("backup.json")).map_err(|e| BackupError::File("backup.json", e))?;
    let info: BackupInfo = serde_json::from_slice(&text).map_err(BackupError::Json)?;
    if info.format != FORMAT {
        return Err(BackupError::Format(info.format));
    }
    let hash = |name: &str| -> io::Result<Hash> {
        let mut hash = Sha256::new();
        io::copy(&mut BufReader::new(File::open(folder.join(name))?), &mut hash)?;
        Ok(Hash::from_bytes(hash.finalize().into()))
    };
    for (name, expected) in [("store.bin", info.store), ("vault", info.vault)] {
        let found = hash(name).map_err(|e| BackupError::File(name, e))?;
        if found != expected {
            return Err(BackupError::Hash(name));
        }
    }
    Ok(info)
}

/// Fills an empty store from a checked backup.
///
/// # Errors
/// What is wrong with it.
pub fn fill(folder: &Path, info: &BackupInfo, engine: &impl Engine) -> Result<(), BackupError> {
    let failed = |e| BackupError::File("store.bin", e);
    let file = File::open(folder.join("store.bin")).map_err(failed)?;
    let mut reader = BufReader::with_capacity(1 << 20, file);
    let (mut batch, mut size) = (Vec::new(), 0);
    for _ in 0..info.pairs {
        let (key, value) = pair(&mut reader).map_err(failed)?;
        size += key.len() + value.len();
        batch.push(Op::Put(key, value));
        if batch.len() == BATCH || size > BATCH_BYTES {
            engine.apply(std::mem::take(&mut batch))?;
            size = 0;
        }
    }
    Ok(engine.apply(batch)?)
}

fn pair(reader: &mut impl Read) -> io::Result<(Vec<u8>, Vec<u8>)> {
    let mut lengths = [0; 8];
    reader.read_exact(&mut lengths)?;
    let length =
        |at: usize| u32::from_le_bytes([lengths[at], lengths[at + 1], lengths[at + 2], lengths[at + 3]]);
    if length(0) > MAX_PART || length(4) > MAX_PART {
        return Err(io::Error::other("a length that none is"));
    }
    let mut key = vec![0; length(0) as usize];
    let mut value = vec![0; length(4) as usize];
    reader.read_exact(&mut key)?;
    reader.read_exact(&mut value)?;
    Ok((key, value))
}

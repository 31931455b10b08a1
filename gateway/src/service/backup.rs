//! Backups: a consistent copy while the gateway serves, and what is in one.
//!
//! A backup is a folder with `store.bin` (every pair of the store as it is sealed, each with its lengths), `vault`, what of the home is
//! no secret ([`carried`]), and `backup.json` (what, when, the hash of each file, and a MAC over all of that), which is written last and makes
//! it one. No memory, key or token in it is readable without the master key, which is not in it; and nobody without it can change the folder
//! so that it is restored.

pub use crate::api::health::BackupInfo;
use crate::error::{Error, MemberError};
use crate::service::{Backups, carried};
use crate::state::commits::chain_of;
use crate::state::erasures::authenticator;
use crate::state::gateway::blocking;
use crate::state::jobs::Progress;
use crate::state::keyring::Keyring;
use crate::state::owner::Owner;
use crate::state::owner::mark::{Admin, Permits};
use crate::system::files;
use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use hmac::Mac;
use oap_identity::json::canonical;
use oap_identity::{Did, Hash, Timestamp};
use oap_memory::receipt::Action;
use oap_store::{Engine, Op, Snapshot, StoreError};
use serde_json::json;
use sha2::{Digest, Sha256};
use std::fs::File;
use std::io::{self, BufReader, BufWriter, Read, Write};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use zeroize::Zeroizing;

/// The member that names where a backup is to be made.
pub const FOLDER: &str = "folder";
/// The form that is written and read here.
pub const FORMAT: &str = "oap-memory-backup/3";
/// A form of earlier versions: without a MAC, so that its hashes show no more than that nothing was damaged.
const WITHOUT_MAC: &str = "oap-memory-backup/2";
/// The first form: without hashes of what was taken along of the home, too. The credential and the private key that it holds in clear are
/// left where they are.
const WITHOUT_HASHES: &str = "oap-memory-backup/1";
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
    Error::Member(FOLDER, error.into())
}

/// What the backup is of: said at the point of the order of commits at which the snapshot was taken.
struct Of {
    principal: Did,
    at: Timestamp,
    items: usize,
    /// What keys its MAC.
    key: Zeroizing<[u8; 32]>,
}

/// Writes the files of a backup, the one that makes it one last, and waits until all of them are on disk under their names.
fn write(
    folder: &Path,
    home: Option<&Path>,
    snapshot: Snapshot,
    of: Of,
    progress: &Progress,
) -> Result<BackupInfo, Error> {
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
    let files = home.map(|home| carried::take_along(home, folder)).transpose().map_err(refused)?;
    let mut info = BackupInfo {
        format: FORMAT.to_owned(),
        principal: of.principal,
        at: of.at,
        items: of.items,
        pairs: pairs.count,
        store: Hash::from_bytes(pairs.hash.finalize().into()),
        vault: Hash::of(&snapshot.vault),
        files: files.unwrap_or_default(),
        mac: None,
    };
    let mac = authenticator(&of.key, &canonical(&info)?).finalize().into_bytes();
    info.mac = Some(URL_SAFE_NO_PAD.encode(mac));
    keep("backup.json", &serde_json::to_vec_pretty(&info)?).map_err(refused)?;
    files::sync(folder).map_err(refused)?;
    if let Some(parent) = folder.parent() {
        files::sync(parent).map_err(refused)?;
    }
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
            return Err(Error::Member(FOLDER, MemberError::RelativePath));
        }
        let folder = Unfinished::begin(folder).map_err(refused)?;
        let gateway = self.0.clone();
        let of = move || Of {
            principal: gateway.principal.clone(),
            at: gateway.clock.now(),
            items: gateway.heads.len(),
            key: gateway.keys().backup_key(),
        };
        let (snapshot, of) = self.0.store.snapshot(of).await?;
        let (told, home) = (progress.clone(), self.0.clone());
        // The folder goes along: where nobody waits any more, it goes with what is written.
        let written = move || {
            let home = home.home.as_ref().map(|home| home.folder());
            Ok((write(folder.path(), home, snapshot, of, &told)?, folder))
        };
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
    File(String, io::Error),
    /// What it says of itself is not of the expected shape.
    #[error("backup.json: {0}")]
    Json(serde_json::Error),
    /// Written by another version of the program.
    #[error("backup.json: format {0:?}; this program reads {FORMAT:?}")]
    Format(String),
    /// One of its files was changed.
    #[error("{0}: is not what was written: its hash differs")]
    Hash(String),
    /// Nothing says who wrote it.
    #[error(
        "backup.json: has no mac: an earlier version of the program made this backup, or somebody changed it. Make a new one where you \
         still can; --accept-unauthenticated restores it all the same, and with it whatever was put in"
    )]
    NoMac,
    /// Somebody else wrote it, or changed it.
    #[error("backup.json: is not what this gateway wrote: its mac does not hold")]
    Mac,
    /// It names a file that is none of a backup's, or too many.
    #[error("backup.json: files: names what is none of a backup's")]
    Files,
    /// The store does not take it.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Reads what a backup says of itself, and checks that its files are those that it names. Who wrote it, only its own keys can say:
/// [`authenticate`].
///
/// # Errors
/// What is wrong with it; [`BackupError::NoMac`] for one of an earlier version, where such a one is not accepted.
pub fn check(folder: &Path, accepts_no_mac: bool) -> Result<BackupInfo, BackupError> {
    let failed = |name: &str, error| BackupError::File(name.to_owned(), error);
    let text = std::fs::read(folder.join("backup.json")).map_err(|e| failed("backup.json", e))?;
    let mut info: BackupInfo = serde_json::from_slice(&text).map_err(BackupError::Json)?;
    match info.format.as_str() {
        FORMAT if info.mac.is_none() => return Err(BackupError::Mac),
        FORMAT => {}
        WITHOUT_MAC | WITHOUT_HASHES if !accepts_no_mac => return Err(BackupError::NoMac),
        WITHOUT_MAC => info.mac = None,
        WITHOUT_HASHES => (info.mac, info.files) = (None, carried::found(folder)?),
        _ => return Err(BackupError::Format(info.format)),
    }
    carried::check(folder, &info.files)?;
    is_what_it_was(folder, "store.bin", info.store)?;
    is_what_it_was(folder, "vault", info.vault)?;
    Ok(info)
}

/// Checks what was copied of a backup against what it says of itself.
///
/// # Errors
/// [`BackupError::Hash`], [`BackupError::File`].
pub(crate) fn check_copied(stage: &Path, info: &BackupInfo) -> Result<(), BackupError> {
    carried::check(stage, &info.files)?;
    is_what_it_was(stage, "vault", info.vault)
}

fn is_what_it_was(folder: &Path, name: &str, expected: Hash) -> Result<(), BackupError> {
    let failed = |error| BackupError::File(name.to_owned(), error);
    if carried::hash(&folder.join(name)).map_err(failed)? == expected {
        Ok(())
    } else {
        Err(BackupError::Hash(name.to_owned()))
    }
}

/// Checks that the gateway whose keys these are wrote what a backup says of itself. One of an earlier version cannot say.
///
/// # Errors
/// [`BackupError::Mac`].
pub fn authenticate(info: &BackupInfo, keys: &Keyring) -> Result<(), BackupError> {
    let Some(mac) = &info.mac else { return Ok(()) };
    let text = canonical(&BackupInfo { mac: None, ..info.clone() }).map_err(|_| BackupError::Mac)?;
    let given = URL_SAFE_NO_PAD.decode(mac).unwrap_or_default();
    authenticator(&keys.backup_key(), &text).verify_slice(&given).map_err(|_| BackupError::Mac)
}

/// Fills an empty store from a checked backup; its bytes are held against their hash once more, as they are read.
///
/// # Errors
/// What is wrong with it.
pub fn fill(folder: &Path, info: &BackupInfo, engine: &impl Engine) -> Result<(), BackupError> {
    let failed = |e| BackupError::File("store.bin".to_owned(), e);
    let file = File::open(folder.join("store.bin")).map_err(failed)?;
    let mut reader = Hashing(BufReader::with_capacity(1 << 20, file), Sha256::new());
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
    io::copy(&mut reader, &mut io::sink()).map_err(failed)?;
    if Hash::from_bytes(reader.1.finalize().into()) != info.store {
        return Err(BackupError::Hash("store.bin".to_owned()));
    }
    Ok(engine.apply(batch)?)
}

/// A reader that hashes what is read.
struct Hashing<R>(R, Sha256);

impl<R: Read> Read for Hashing<R> {
    fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        let length = self.0.read(to)?;
        self.1.update(to.get(..length).unwrap_or_default());
        Ok(length)
    }
}

fn pair(reader: &mut impl Read) -> io::Result<(Vec<u8>, Vec<u8>)> {
    let mut lengths = [0; 8];
    reader.read_exact(&mut lengths)?;
    let length =
        |at: usize| u32::from_le_bytes([lengths[at], lengths[at + 1], lengths[at + 2], lengths[at + 3]]);
    if length(0) > MAX_PART || length(4) > MAX_PART {
        return Err(io::Error::other("a part that is longer than any"));
    }
    let mut key = vec![0; length(0) as usize];
    let mut value = vec![0; length(4) as usize];
    reader.read_exact(&mut key)?;
    reader.read_exact(&mut value)?;
    Ok((key, value))
}

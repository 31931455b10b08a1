//! A gateway's home: a folder with configuration, vault, store and the administrator's credential.
//!
//! | file | what | readable by |
//! |---|---|---|
//! | `config.toml` | configuration | owner |
//! | `vault` | content keys, sealed under the master key | owner |
//! | `store/` | everything else, sealed | owner |
//! | `lock` | who has the home open | owner |
//! | `owner.sock` | the owner's way to a running gateway | owner |
//! | `reserve` | blocks that are given back on a full disk, for what must be finished | owner |
//! | `admin.json` | the administrator's key and trust token | owner |
//! | `did.json` | a copy of the published DID document | owner |
//! | `tls/` | the self-made certificate and its key | owner |
//! | `erasures.jsonl` | what was erased and revoked: replayed when a backup is restored | owner |
//! | `restoring` | only while a restore is under way: such a home does not open | owner |
//! | `sanctions/` | sanctions lists | owner |
//! | `profiles/` | projection profiles of the owner's own | owner |

mod admin;
mod master;

pub use admin::AdminCredential;
pub use master::{PASSPHRASE, master, passphrase};

use crate::embedding::{EmbeddingModel, RemoteModel};
use crate::error::Error;
use crate::state::gateway::{Gateway, Parts};
use crate::state::keyring::StoredKeys;
use crate::state::own_home::OwnHome;
use crate::system::clock::{SystemClock, SystemRandom};
use crate::system::config::{Config, ConfigError, EngineSetting, Opening};
use crate::system::files;
use crate::system::lock::{Held, HomeLock};
use admin::ADMIN;
use master::{master_of, new_key_file, new_passphrase};
use oap_exchange::ccc::SanctionsList;
use oap_exchange::gate::Sanctions;
use oap_identity::outgoing::OutgoingError;
use oap_identity::resolve::{GuardedWeb, Resolver, WebPolicy};
use oap_identity::{Clock, Did, Signer};
use oap_memory::Profile;
use oap_memory::profile::ProfileError;
use oap_store::{EngineKind, FileVault, Master, Space, Store, StoreError};
use rustls_pki_types::CertificateDer;
use rustls_pki_types::pem::PemObject;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use zeroize::Zeroizing;

/// The list of erasures in a home.
pub const ERASURES: &str = "erasures.jsonl";

/// Why a home could not be made or opened.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the names say it")]
pub enum HomeError {
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// There is a gateway already.
    #[error("there is a gateway in {0} already")]
    Exists(PathBuf),
    /// A restore that did not finish.
    #[error("{0} is half restored: run `oap-memory restore` again, or remove the folder")]
    HalfRestored(PathBuf),
    #[error("{path}: {error}")]
    File {
        path: PathBuf,
        /// What the system says.
        error: std::io::Error,
    },
    /// A file that is not what it should be.
    #[error("{0}: {1}")]
    Malformed(PathBuf, String),
    /// No way to the master key.
    #[error("no master key: set key_file, or OAP_MEMORY_PASSPHRASE, or run in a terminal to be asked")]
    NoMaster,
    /// Two passphrases that differ.
    #[error("the two passphrases differ")]
    Passphrases,
    /// A passphrase of nothing.
    #[error("an empty passphrase protects nothing: choose one, or say --key-file")]
    EmptyPassphrase,
    /// Somebody else has the home open.
    #[error("the gateway is in use by {0}: wait for it to end, or end it, and try again")]
    Held(Held),
    /// A profile of the owner's own.
    #[error("{0}: {1}")]
    Profile(PathBuf, ProfileError),
    /// The store or the vault.
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(transparent)]
    Gateway(#[from] Error),
    /// The client for outgoing requests.
    #[error("the client for outgoing requests: {0}")]
    Client(#[from] OutgoingError),
}

impl HomeError {
    /// Whether a file found no space.
    fn is_full(&self) -> bool {
        use std::io::ErrorKind::{QuotaExceeded, StorageFull};
        matches!(self, Self::File { error, .. } if matches!(error.kind(), StorageFull | QuotaExceeded))
    }
}

/// What a new gateway is made with.
pub struct Init {
    /// A did:web, or `None` for a fresh did:key.
    pub did: Option<Did>,
    /// Settings to write to `config.toml` beside the DID.
    pub settings: BTreeMap<String, Value>,
    /// The file for a fresh master key; a passphrase is asked for if absent.
    pub key_file: Option<PathBuf>,
}

/// A folder with a gateway.
#[derive(Debug, Clone)]
pub struct Home(PathBuf);

impl Home {
    /// The home in a folder.
    #[must_use]
    pub const fn new(folder: PathBuf) -> Self {
        Self(folder)
    }

    /// Where it is.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// A file of the home.
    #[must_use]
    pub fn file(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    /// Takes the home's lock, or says who has it. Whoever opens the home has it first.
    ///
    /// # Errors
    /// [`HomeError::File`].
    pub fn lock(&self, command: &str) -> Result<Result<HomeLock, Held>, HomeError> {
        HomeLock::take(&self.0, command).map_err(|e| file_error(&self.file(crate::system::lock::NAME), e))
    }

    /// Makes a gateway: keys, vault, store, configuration, credential, DID document. Where that fails, what it made is gone again.
    ///
    /// # Errors
    /// [`HomeError`]; [`HomeError::Exists`] rather than touching one that is there.
    pub async fn init(&self, init: Init) -> Result<Did, HomeError> {
        self.is_free()?;
        // Before anything is made: whoever thinks better of it at the question leaves nothing.
        let passphrase = match init.key_file {
            Some(_) => None,
            None => Some(new_passphrase()?),
        };
        let is_new = !self.0.exists();
        files::create_folder(&self.0).map_err(|e| file_error(&self.0, e))?;
        self.tighten()?;
        let _lock = self.lock("init")?.map_err(HomeError::Held)?;
        // Somebody else may have made one since, and nobody does from here on.
        self.is_free()?;
        let before = if is_new { BTreeSet::new() } else { self.entries()? };
        let made = self.make(init, passphrase).await;
        if made.is_err() {
            self.unmake(&before, is_new);
        }
        made
    }

    /// That there is no gateway.
    fn is_free(&self) -> Result<(), HomeError> {
        let is_there = self.file("config.toml").exists() || self.file("vault").exists();
        if is_there { Err(HomeError::Exists(self.0.clone())) } else { Ok(()) }
    }

    /// What is in the folder.
    fn entries(&self) -> Result<BTreeSet<OsString>, HomeError> {
        let entries = std::fs::read_dir(&self.0)
            .and_then(|entries| entries.map(|entry| Ok(entry?.file_name())).collect::<std::io::Result<_>>());
        entries.map_err(|e| file_error(&self.0, e))
    }

    /// Takes away what was not in the folder before, and the folder where it is new. Its lock is held. What stays is no gateway that opens.
    fn unmake(&self, before: &BTreeSet<OsString>, is_new: bool) {
        for name in self.entries().unwrap_or_default().difference(before) {
            let path = self.0.join(name);
            let removed = match path.is_dir() {
                true => std::fs::remove_dir_all(&path),
                false => std::fs::remove_file(&path),
            };
            if let Err(error) = removed {
                tracing::warn!(%error, "what an init made that failed is still there");
            }
        }
        if is_new {
            // Somebody may have put something else there since.
            drop(std::fs::remove_dir(&self.0));
        }
    }

    async fn make(&self, init: Init, passphrase: Option<Master>) -> Result<Did, HomeError> {
        let config_file = self.file("config.toml");
        let now = SystemClock.now();
        let (did, keys) = match init.did {
            Some(did) => (did, StoredKeys::generate(&SystemRandom, now)),
            None => StoredKeys::generate_did_key(&SystemRandom, now)?,
        };
        let master = match &init.key_file {
            Some(path) => new_key_file(path)?,
            None => passphrase.ok_or(HomeError::NoMaster)?,
        };
        FileVault::create(&self.file("vault"), &master, &SystemRandom)?;
        let mut settings = init.settings;
        settings.insert("did".to_owned(), Value::String(did.to_string()));
        if let Some(path) = &init.key_file {
            let path = std::path::absolute(path).map_err(|e| file_error(path, e))?;
            settings.insert("key_file".to_owned(), Value::String(path.to_string_lossy().into_owned()));
        }
        let text = toml::to_string(&settings).map_err(|e| malformed(&config_file, &e))?;
        write_private(&config_file, text.as_bytes())?;
        let store = self.store_with(&BTreeMap::new(), |_| Ok(master))?;
        Gateway::init(&store, &keys).await?;
        let gateway = self.assemble(store, &BTreeMap::new()).await?;
        self.write_admin(&gateway, &Signer::seed(&SystemRandom))?;
        let document = self.file("did.json");
        let text = serde_json::to_string_pretty(&gateway.published().did).map_err(Error::from)?;
        write_private(&document, (text + "\n").as_bytes())?;
        Ok(did)
    }

    /// Takes the folder from the eyes of others, and says so.
    fn tighten(&self) -> Result<(), HomeError> {
        if files::tighten_folder(&self.0).map_err(|e| file_error(&self.0, e))? {
            let said = "others could look into the gateway's folder; it is yours alone now";
            tracing::warn!("{said}");
            if !tracing::dispatcher::has_been_set() {
                let _ = writeln!(std::io::stderr(), "warning: {said}");
            }
        }
        Ok(())
    }

    /// Opens the gateway. Flags outrank environment and configuration file.
    ///
    /// # Errors
    /// [`HomeError`]; [`StoreError::Locked`] within when somebody else has it open.
    pub async fn open(&self, flags: &BTreeMap<String, Value>) -> Result<Arc<Gateway>, HomeError> {
        self.open_with(flags, master).await
    }

    /// The same, with the master key from elsewhere than the configuration says.
    ///
    /// # Errors
    /// As [`Home::open`].
    pub async fn open_with(
        &self,
        flags: &BTreeMap<String, Value>,
        master: impl FnOnce(&Config) -> Result<Master, HomeError>,
    ) -> Result<Arc<Gateway>, HomeError> {
        self.is_whole()?;
        let store = self.store_with(flags, master)?;
        self.assemble(store, flags).await
    }

    /// Opens the store alone, by as little of the configuration as that takes.
    ///
    /// # Errors
    /// [`HomeError`]; [`StoreError::Locked`] within when somebody else has it open.
    pub(crate) fn open_store(&self, opening: &Opening) -> Result<Store, HomeError> {
        self.store_of(opening.engine, || master_of(opening.key_file.as_deref()))
    }

    fn store_with(
        &self,
        flags: &BTreeMap<String, Value>,
        master: impl FnOnce(&Config) -> Result<Master, HomeError>,
    ) -> Result<Store, HomeError> {
        let config = Config::load(&self.0, flags)?;
        config.principal(&self.0)?;
        self.store_of(config.engine, || master(&config))
    }

    fn store_of(
        &self,
        engine: EngineSetting,
        master: impl FnOnce() -> Result<Master, HomeError>,
    ) -> Result<Store, HomeError> {
        self.tighten()?;
        let space = Space::of(&self.0)?;
        // The lock first: nobody is asked for a passphrase in vain.
        let engine = EngineKind::from(engine).open(&self.file("store"), &space)?;
        let vault = FileVault::open(&self.file("vault"), &master()?)?;
        let store = Store::open_in(space, engine, vault, Arc::new(SystemRandom))?;
        let missing = store.space().missing(0)?;
        if missing > 0 {
            tracing::warn!(missing, "the disk is full: nothing is taken but erasures and revocations");
        }
        Ok(store)
    }

    /// The gateway of an open store.
    ///
    /// # Errors
    /// [`HomeError`].
    pub(crate) async fn assemble(
        &self,
        store: Store,
        flags: &BTreeMap<String, Value>,
    ) -> Result<Arc<Gateway>, HomeError> {
        let config = Config::load(&self.0, flags)?;
        let principal = config.principal(&self.0)?;
        let clock = Arc::new(SystemClock);
        let resolver = Arc::new(resolver(&config, clock.clone())?);
        let profiles = self.profiles()?;
        let sanctions = self.sanctions()?;
        let embeddings = self.embeddings(&config)?;
        let random = Arc::new(SystemRandom);
        let erasures = Some(config.erasures.clone().unwrap_or_else(|| self.file(ERASURES)));
        let parts = Parts {
            config,
            principal,
            store,
            clock,
            random,
            resolver,
            profiles,
            sanctions,
            embeddings,
            erasures,
            home: Some(Box::new(self.clone())),
        };
        Ok(Gateway::open(parts).await?)
    }

    /// The built-in profiles and those under `profiles/`.
    ///
    /// # Errors
    /// [`HomeError::Profile`], with file and line.
    pub fn profiles(&self) -> Result<Vec<Profile>, HomeError> {
        let mut profiles = Profile::built_in();
        let folder = self.file("profiles");
        let Ok(entries) = std::fs::read_dir(&folder) else { return Ok(profiles) };
        let mut files: Vec<PathBuf> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
        files.sort();
        for path in files.into_iter().filter(|path| path.extension().is_some_and(|e| e == "toml")) {
            let text = std::fs::read_to_string(&path).map_err(|e| file_error(&path, e))?;
            let profile = Profile::parse(&text).map_err(|e| HomeError::Profile(path.clone(), e))?;
            if profiles.iter().any(|known| known.name() == profile.name()) {
                let name = profile.name().to_owned();
                return Err(HomeError::Profile(path, ProfileError::Duplicate(name)));
            }
            profiles.push(profile);
        }
        Ok(profiles)
    }

    /// The sanctions lists under `sanctions/`: `ofac.txt`, `eu.txt`, `un.txt`, `uk_ofsi.txt`, one DID a line, `#` begins
    /// a comment. A list that a context asks for and that is not there lets nothing pass.
    ///
    /// # Errors
    /// [`HomeError::File`].
    pub fn sanctions(&self) -> Result<Sanctions, HomeError> {
        let mut lists = Sanctions::new();
        for list in SanctionsList::ALL {
            let path = self.file(&format!("sanctions/{list}.txt"));
            if path.exists() {
                let text = std::fs::read_to_string(&path).map_err(|e| file_error(&path, e))?;
                let lines = text.lines().map(|line| line.split(" #").next().unwrap_or_default().trim());
                let entries = lines.filter(|line| !line.is_empty() && !line.starts_with('#'));
                lists.insert(*list, entries.map(str::to_owned).collect());
            }
        }
        Ok(lists)
    }

    /// The model of embeddings that a configuration asks for.
    ///
    /// # Errors
    /// [`HomeError`].
    fn embeddings(&self, config: &Config) -> Result<Option<Box<dyn EmbeddingModel>>, HomeError> {
        #[cfg(feature = "local-model")]
        if let Some(folder) = &config.embedding_dir {
            let name = config.embedding_model.as_deref().unwrap_or("local");
            let model = crate::embedding::LocalModel::load(folder, name)
                .map_err(|e| HomeError::Malformed(folder.clone(), e.to_string()))?;
            return Ok(Some(Box::new(model)));
        }
        let Some(url) = &config.embedding_url else { return Ok(None) };
        let key = match &config.embedding_key_file {
            Some(path) => {
                let text = std::fs::read_to_string(path).map_err(|e| file_error(path, e))?;
                let text = Zeroizing::new(text.trim().to_owned());
                // By what it says, so that a link or a copy of it is no way around.
                let master = config.key_file.as_deref().and_then(|path| std::fs::read_to_string(path).ok());
                if master.map(Zeroizing::new).is_some_and(|master| master.trim() == &**text) {
                    return Err(ConfigError::Contradiction(
                        "embedding_key_file holds the master key: name the file of the endpoint's own key",
                    )
                    .into());
                }
                Some(text)
            }
            None => None,
        };
        let client = crate::system::outgoing::of_home(config, self)?.unguarded()?;
        Ok(Some(Box::new(RemoteModel::new(config, url.clone(), key, client)?)))
    }
}

impl OwnHome for Home {
    fn folder(&self) -> &Path {
        &self.0
    }

    fn sanctions(&self) -> std::io::Result<Sanctions> {
        Self::sanctions(self).map_err(std::io::Error::other)
    }

    fn credential_ended(&self, gateway: &Gateway) {
        // While a home is made or restored there is no credential yet.
        if !self.file(ADMIN).exists() {
            return;
        }
        if let Err(error) = self.renew_admin(gateway) {
            tracing::error!(%error, "the administrator's credential ended, and its successor cannot be written");
        }
    }
}

/// The way to foreign DID documents that a configuration asks for.
///
/// # Errors
/// [`HomeError::File`] or [`HomeError::Malformed`] for `trust_ca`, [`HomeError::Client`].
pub fn resolver(config: &Config, clock: Arc<dyn Clock>) -> Result<Resolver, HomeError> {
    let authorities = config.trust_ca.as_deref().map(read_certificates).transpose()?.unwrap_or_default();
    Ok(Resolver::new(GuardedWeb::new(web_policy(config), &authorities)?, clock))
}

/// Where requests may go whose address a stranger chose.
#[must_use]
pub const fn web_policy(config: &Config) -> WebPolicy {
    if config.allow_local_dids { WebPolicy::AllowLocal } else { WebPolicy::Public }
}

/// The certificates of a PEM file, in DER.
///
/// # Errors
/// [`HomeError::File`], [`HomeError::Malformed`].
pub fn read_certificates(path: &Path) -> Result<Vec<Vec<u8>>, HomeError> {
    let text = std::fs::read(path).map_err(|e| file_error(path, e))?;
    CertificateDer::pem_slice_iter(&text)
        .map(|der| der.map(|der| der.to_vec()).map_err(|e| malformed(path, &e)))
        .collect()
}

fn file_error(path: &Path, error: std::io::Error) -> HomeError {
    HomeError::File { path: path.to_owned(), error }
}

fn malformed(path: &Path, error: &dyn std::fmt::Display) -> HomeError {
    HomeError::Malformed(path.to_owned(), error.to_string())
}

/// Writes a file that its owner alone can read, in one step.
///
/// # Errors
/// [`HomeError::File`].
pub fn write_private(path: &Path, bytes: &[u8]) -> Result<(), HomeError> {
    files::write(path, bytes).map_err(|e| file_error(path, e))
}

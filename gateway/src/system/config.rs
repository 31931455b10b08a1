//! Configuration: defaults, then `config.toml`, then `OAP_MEMORY_*` variables, then flags; the later wins.
//! Unknown keys are errors.

use crate::system::address::{self, CallerOrigin, Network, Origin};
use crate::system::trails::{BrainIri, BrainName, MAX_BRAIN_FACTS, Trails, TrailsError};
use figment::providers::{Env, Format, Serialized, Toml};
use figment::{Figment, Profile};
use oap_agents::scoring::Weights;
use oap_agents::staleness::Staleness;
use oap_grants::Limits;
use oap_identity::{Did, ScopeId};
use oap_memory::Confidence;
use oap_memory::record::Visibility;
use oap_memory::text::Language;
use oap_store::EngineKind;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use url::Url;

/// The environment variables' prefix: `OAP_MEMORY_LISTEN` sets `listen`.
pub const ENV_PREFIX: &str = "OAP_MEMORY_";

/// How words are brought to a common form.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LanguageSetting {
    /// English stemming, other languages by whole words.
    English,
    /// Every language by whole words.
    Neutral,
}

impl From<LanguageSetting> for Language {
    fn from(setting: LanguageSetting) -> Self {
        match setting {
            LanguageSetting::English => Self::English,
            LanguageSetting::Neutral => Self::Neutral,
        }
    }
}

/// Whom the tool manifest is made for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ToolManifest {
    /// Its published schema.
    Strict,
    /// The protocol's own test suite, which asks for members that the schema forbids.
    Suite,
}

/// How logs are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LogFormat {
    /// For people.
    Text,
    /// One JSON object a line.
    Json,
}

/// What a new home's store is made with; a store that is there keeps its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[allow(missing_docs, reason = "the names say it")]
pub enum EngineSetting {
    /// One file, copied on write; survives a full disk.
    Redb,
    Sled,
}

impl From<EngineSetting> for EngineKind {
    fn from(setting: EngineSetting) -> Self {
        match setting {
            EngineSetting::Redb => Self::Redb,
            EngineSetting::Sled => Self::Sled,
        }
    }
}

/// Everything that can be set.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// The principal's DID; `init` writes it.
    pub did: Option<Did>,
    /// Where the gateway is reached from outside, without a trailing slash. Derived from a did:web if absent.
    pub origin: Option<Origin>,
    /// Where it listens.
    pub listen: SocketAddr,
    /// Where Prometheus metrics are served, on loopback; off if absent.
    pub metrics_listen: Option<SocketAddr>,
    /// Reverse proxies whose `X-Forwarded-For` or `Forwarded` says who calls: addresses and networks.
    pub trusted_proxies: Vec<Network>,
    /// Values of `Origin` with which `/mcp` is called besides none: of programs that send one, such as `vscode-file://vscode-app`.
    pub mcp_origins: Vec<CallerOrigin>,
    /// Further names by which `/mcp` is called, such as `nas.local`.
    pub mcp_hosts: Vec<String>,
    /// The certificate chain (PEM). Self-made under the home if absent.
    pub tls_cert: Option<PathBuf>,
    /// The certificate's key (PEM).
    pub tls_key: Option<PathBuf>,
    /// Serve plain http. Refused but on loopback.
    pub plain_http: bool,
    /// The file with the master key of the vault; a passphrase is asked for if absent.
    pub key_file: Option<PathBuf>,
    /// A further authority (PEM) that outgoing connections trust.
    pub trust_ca: Option<PathBuf>,
    /// Resolve did:web on private addresses and plain-http loopback: for development.
    pub allow_local_dids: bool,
    /// The scope of what names none.
    pub default_scope: ScopeId,
    /// The scopes that the public documents show.
    pub public_scopes: Vec<ScopeId>,
    /// Most items of a grant.
    pub max_grant_items: u32,
    /// Longest duration of a grant, in days.
    pub max_grant_days: u32,
    /// How much all answers to one grantee may cost, in ε as `service::budget` accounts for it, until refilled.
    pub epsilon_per_grantee: f64,
    /// The threshold of belief (RFC 0010 A.2), 0 to 1.
    pub belief_threshold: Confidence,
    /// Days for which retracted and replaced content is kept; 0 destroys it at once.
    pub retention_days: u32,
    /// Where the signed list of erasures is kept; in the home if absent. Best on another disk than the backups.
    pub erasures: Option<PathBuf>,
    /// How words are matched.
    pub language: LanguageSetting,
    /// A `trails.toml` whose settings are read under those of `config.toml`; a relative path is one in the home.
    pub trails: Option<PathBuf>,
    /// What the memory is called.
    pub brain_name: Option<BrainName>,
    /// What the IRIs of facts begin with in the graph of docs/brain.md; `urn:oap:item:` and the id if absent.
    pub brain_iri: Option<BrainIri>,
    /// Who may see what an agent learns that does not say it.
    pub brain_scope: Visibility,
    /// How long what an agent learns can be relied on that does not say it; for good if absent.
    pub brain_staleness: Option<Staleness>,
    /// Whether a gateway that starts takes away what is of no use, as each agent that may.
    pub brain_compact_on_start: bool,
    /// How many facts are to be kept at most. More are kept all the same, and whoever writes them is told.
    pub brain_max_facts: usize,
    /// What each part of a recall by the owner's agents counts; together 1.
    pub recall_weights: Weights,
    /// An OpenAI-compatible endpoint for embeddings of projected text, such as `http://127.0.0.1:11434/v1/embeddings`.
    /// Without one, and without `embedding_dir`, matching is by words alone.
    pub embedding_url: Option<Url>,
    /// The model there, or the name under which a local one is declared.
    pub embedding_model: Option<String>,
    /// How many dimensions its vectors have.
    pub embedding_dimensions: Option<u32>,
    /// The file with the endpoint's key.
    pub embedding_key_file: Option<PathBuf>,
    /// The directory of a sentence-transformer that is run in this process; needs the feature `local-model`.
    pub embedding_dir: Option<PathBuf>,
    /// Largest request body, in bytes.
    pub max_body_bytes: usize,
    /// Requests without a credential, per minute and address.
    pub anonymous_rpm: u32,
    /// Memory for views, in bytes.
    pub view_cache_bytes: usize,
    /// The name of the publisher.
    pub publisher: String,
    /// Where to complain.
    pub contact_email: Option<String>,
    /// ISO 3166 country code; `ZZ` is unknown.
    pub jurisdiction: String,
    /// Whom the tool manifest is made for.
    pub tool_manifest: ToolManifest,
    /// The engine of a new home's store, or of one that is restored.
    pub engine: EngineSetting,
    /// How logs are written.
    pub log_format: LogFormat,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            did: None,
            origin: None,
            listen: SocketAddr::from(([127, 0, 0, 1], 8443)),
            metrics_listen: None,
            trusted_proxies: Vec::new(),
            mcp_origins: Vec::new(),
            mcp_hosts: Vec::new(),
            tls_cert: None,
            tls_key: None,
            plain_http: false,
            key_file: None,
            trust_ca: None,
            allow_local_dids: false,
            default_scope: "personal".parse().unwrap_or_else(|_| unreachable!("a constant scope")),
            public_scopes: Vec::new(),
            max_grant_items: 10_000,
            max_grant_days: 180,
            epsilon_per_grantee: 100.0,
            belief_threshold: 0.5.try_into().unwrap_or(Confidence::CERTAIN),
            retention_days: 30,
            erasures: None,
            language: LanguageSetting::English,
            trails: None,
            brain_name: None,
            brain_iri: None,
            brain_scope: Visibility::Local,
            brain_staleness: None,
            brain_compact_on_start: false,
            brain_max_facts: 100_000,
            recall_weights: Weights::default(),
            embedding_url: None,
            embedding_model: None,
            embedding_dimensions: None,
            embedding_key_file: None,
            embedding_dir: None,
            max_body_bytes: 1 << 20,
            anonymous_rpm: 600,
            view_cache_bytes: 256 << 20,
            publisher: "self-hosted".to_owned(),
            contact_email: None,
            jurisdiction: "ZZ".to_owned(),
            tool_manifest: ToolManifest::Strict,
            engine: EngineSetting::Redb,
            log_format: LogFormat::Text,
        }
    }
}

/// What opens a store: all that is read of a configuration which nobody has vouched for yet.
#[derive(Debug, Clone, Deserialize)]
pub struct Opening {
    /// What the store is made with.
    pub engine: EngineSetting,
    /// The file with the master key of the vault; a passphrase is asked for if absent.
    #[serde(default)]
    pub key_file: Option<PathBuf>,
}

impl Opening {
    /// Reads it of a home, whatever else stands there.
    ///
    /// # Errors
    /// [`ConfigError`].
    pub fn load(home: &Path) -> Result<Self, ConfigError> {
        Ok(layers(home, &BTreeMap::new(), None).extract().map_err(Box::new)?)
    }
}

/// Why the configuration was refused; the text names key and origin.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// A value that does not fit, or an unknown key.
    #[error("configuration: {0}")]
    Figment(#[from] Box<figment::Error>),
    /// No DID.
    #[error("there is no gateway in {0}: run `oap-memory init --did …` first")]
    NotInitialized(PathBuf),
    /// A `trails.toml` that is none.
    #[error(transparent)]
    Trails(#[from] TrailsError),
    /// A value that contradicts another.
    #[error("configuration: {0}")]
    Contradiction(&'static str),
}

/// The layers under the flags, for values and for where each came from.
///
/// # Errors
/// [`ConfigError`] of the `trails.toml` that one of them names.
pub fn figment(home: &Path, flags: &BTreeMap<String, serde_json::Value>) -> Result<Figment, ConfigError> {
    let own = layers(home, flags, None);
    let named: Option<PathBuf> = own.extract_inner("trails").map_err(Box::new)?;
    let Some(named) = named else { return Ok(own) };
    Ok(layers(home, flags, Some(Trails::read(&home.join(named))?)))
}

fn layers(home: &Path, flags: &BTreeMap<String, serde_json::Value>, trails: Option<Trails>) -> Figment {
    let defaults = Figment::new().merge(Serialized::defaults(Config::default()));
    let under = match trails {
        Some(trails) => defaults.merge(trails),
        None => defaults,
    };
    under
        .merge(Toml::file(home.join("config.toml")))
        .merge(Env::prefixed(ENV_PREFIX).ignore(&["home", "passphrase"]))
        .merge(Serialized::from(flags, Profile::Default))
}

impl Config {
    /// Reads the configuration of a home.
    ///
    /// # Errors
    /// [`ConfigError`].
    pub fn load(home: &Path, flags: &BTreeMap<String, serde_json::Value>) -> Result<Self, ConfigError> {
        let config: Self = figment(home, flags)?.extract().map_err(Box::new)?;
        config.check()?;
        Ok(config)
    }

    fn check(&self) -> Result<(), ConfigError> {
        if self.plain_http && !self.listen.ip().is_loopback() {
            return Err(ConfigError::Contradiction("plain_http is for loopback addresses only"));
        }
        if self.metrics_listen.is_some_and(|address| !address.ip().is_loopback()) {
            return Err(ConfigError::Contradiction("metrics_listen must be a loopback address"));
        }
        if self.tls_cert.is_some() != self.tls_key.is_some() {
            return Err(ConfigError::Contradiction("tls_cert and tls_key come together"));
        }
        if self.jurisdiction.len() != 2 || !self.jurisdiction.bytes().all(|c| c.is_ascii_uppercase()) {
            return Err(ConfigError::Contradiction("jurisdiction is two capital letters"));
        }
        if self.max_grant_items == 0 || !(1..=365).contains(&self.max_grant_days) {
            return Err(ConfigError::Contradiction(
                "max_grant_items must be positive, max_grant_days from 1 to 365",
            ));
        }
        if self.embedding_url.is_some() && self.embedding_dir.is_some() {
            return Err(ConfigError::Contradiction("embedding_url and embedding_dir exclude each other"));
        }
        if self.embedding_dir.is_some() && cfg!(not(feature = "local-model")) {
            return Err(ConfigError::Contradiction(
                "embedding_dir needs a program that was built with --features local-model",
            ));
        }
        if !(1..=MAX_BRAIN_FACTS).contains(&self.brain_max_facts) {
            return Err(ConfigError::Contradiction("brain_max_facts is 1 to 10000000"));
        }
        if self.anonymous_rpm == 0 {
            return Err(ConfigError::Contradiction("anonymous_rpm must be positive"));
        }
        Ok(())
    }

    /// The `trails.toml` that is named, if one is.
    ///
    /// # Errors
    /// [`ConfigError::Trails`].
    pub fn trails_file(&self, home: &Path) -> Result<Option<Trails>, ConfigError> {
        Ok(self.trails.as_ref().map(|named| Trails::read(&home.join(named))).transpose()?)
    }

    /// The principal.
    ///
    /// # Errors
    /// [`ConfigError::NotInitialized`].
    pub fn principal(&self, home: &Path) -> Result<Did, ConfigError> {
        self.did.clone().ok_or_else(|| ConfigError::NotInitialized(home.to_owned()))
    }

    /// Where the gateway is reached: `origin`, else that of its did:web, else where it listens. http only where that is
    /// loopback: plain http on loopback behind a proxy is reached over https.
    #[must_use]
    pub fn origin(&self) -> String {
        let scheme = if self.plain_http { "http" } else { "https" };
        if let Some(origin) = &self.origin {
            return origin.to_string();
        }
        let Some(url) = self.did.as_ref().and_then(Did::document_url) else {
            return format!("{scheme}://{}", self.listen);
        };
        let origin = url.origin().ascii_serialization();
        if address::is_loopback(&url) { origin.replacen("https", scheme, 1) } else { origin }
    }

    /// The limits that the manifest declares.
    #[must_use]
    pub const fn limits(&self) -> Limits {
        Limits { max_items: self.max_grant_items, max_duration_days: self.max_grant_days }
    }

    /// Where to complain.
    #[must_use]
    pub fn contact_email(&self) -> String {
        self.contact_email.clone().unwrap_or_else(|| {
            let origin = self.origin();
            let host = origin.split("://").nth(1).unwrap_or("localhost");
            format!("owner@{}", host.split(':').next().unwrap_or("localhost"))
        })
    }
}

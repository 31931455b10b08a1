//! `trails.toml`: the configuration of a Trails brain (ADR-0051 8), read as a layer under `config.toml`. docs/brain.md has its keys.
//!
//! It is read where the owner names it, in `config.toml` or as the place of the home, and never because it lies where a program was started.

use figment::providers::Serialized;
use figment::value::{Dict, Map};
use figment::{Metadata, Profile, Provider};
use oap_agents::arguments::LinkEnd;
use oap_agents::staleness::Staleness;
use oap_memory::closed_enum;
use oap_memory::record::Visibility;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fmt;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Component, Path, PathBuf};

/// What the file is called.
pub const FILE: &str = "trails.toml";
/// Largest file, in bytes.
pub const MAX_FILE: u64 = 64 << 10;
/// Longest name of a brain, in characters; of a backend, too.
pub const MAX_BRAIN_NAME: usize = 128;
/// Longest beginning of the IRIs of facts, in characters.
pub const MAX_BRAIN_IRI: usize = 256;
/// Most facts that an owner may want to keep.
pub const MAX_BRAIN_FACTS: usize = 10_000_000;

/// The backend that Trails has.
const OXIGRAPH: &str = "oxigraph";

/// Why a `trails.toml` was refused. The text names the file, the key and the fix.
#[derive(Debug, thiserror::Error)]
pub enum TrailsError {
    /// It cannot be read.
    #[error("{0}: {1}; bring it there, or take `trails` out of config.toml")]
    File(PathBuf, io::Error),
    /// Not a file, or too large.
    #[error("{0}: must be a file of at most {MAX_FILE} bytes")]
    Size(PathBuf),
    /// Not what one holds.
    #[error(
        "{file}, line {line}: {what}; correct it or take it out: [project], [graph] and [brain] have the keys of Trails' ADR-0051, everything else is set in config.toml"
    )]
    Shape {
        /// The file.
        file: PathBuf,
        /// Where, from 1.
        line: usize,
        /// What the reader says: a key, and what may stand there.
        what: String,
    },
    /// A value that does not fit.
    #[error("{0}: {1} {2}")]
    Value(PathBuf, &'static str, Must),
    /// No place for the memory.
    #[error(
        "{0}: graph.path is needed where the file stands for the home: say where the memory is, such as \".trails/brain.db\""
    )]
    NoPath(PathBuf),
}

/// What a value must be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Must {
    /// A name.
    #[error("must have 1 to {MAX_BRAIN_NAME} characters and no control characters")]
    Name,
    /// The beginning of IRIs.
    #[error("must be an absolute IRI of at most {MAX_BRAIN_IRI} characters that ends with /, # or :")]
    Iri,
    /// What is kept.
    #[error("must be \"persistent\": this memory is kept, and one that is not kept is none")]
    Persistent,
    /// A folder beside the file.
    #[error("must lie in the folder of the file, without ..: say --home DIR for any other place")]
    Within,
    /// A number of facts.
    #[error("must be 1 to {MAX_BRAIN_FACTS}")]
    Facts,
}

/// What a memory is called: 1 to [`MAX_BRAIN_NAME`] characters on one line.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct BrainName(String);

impl TryFrom<String> for BrainName {
    type Error = Must;

    fn try_from(text: String) -> Result<Self, Must> {
        let fits = (1..=MAX_BRAIN_NAME).contains(&text.chars().count()) && !text.contains(char::is_control);
        if fits { Ok(Self(text)) } else { Err(Must::Name) }
    }
}

impl From<BrainName> for String {
    fn from(name: BrainName) -> Self {
        name.0
    }
}

impl fmt::Display for BrainName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// What the IRIs of facts begin with: an absolute IRI that ends with `/`, `#` or `:`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct BrainIri(String);

impl BrainIri {
    /// The IRI of a fact.
    #[must_use]
    pub fn fact(&self, item: impl fmt::Display) -> String {
        format!("{}fact/{item}", self.0)
    }
}

impl TryFrom<String> for BrainIri {
    type Error = Must;

    fn try_from(text: String) -> Result<Self, Must> {
        let ends = text.ends_with(['/', '#', ':']);
        let fits = ends && text.chars().count() <= MAX_BRAIN_IRI;
        match LinkEnd::read(&text) {
            Some(LinkEnd::Iri(iri)) if fits => Ok(Self(iri)),
            _ => Err(Must::Iri),
        }
    }
}

impl From<BrainIri> for String {
    fn from(iri: BrainIri) -> Self {
        iri.0
    }
}

/// The file as it is written.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    #[serde(default)]
    project: Project,
    #[serde(default)]
    graph: Graph,
    #[serde(default)]
    brain: Brain,
}

#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
struct Project {
    name: Option<String>,
    base_iri: Option<String>,
}

#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
struct Graph {
    backend: Option<String>,
    mode: Option<String>,
    path: Option<PathBuf>,
}

#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
struct Brain {
    default_scope: Option<Visibility>,
    default_staleness: Option<Staleness>,
    compact_on_startup: Option<bool>,
    max_facts: Option<usize>,
}

/// A `trails.toml` that was read: each of its values fits.
#[derive(Debug, Clone, PartialEq)]
pub struct Trails {
    file: PathBuf,
    written: Written,
    name: Option<BrainName>,
    iri: Option<BrainIri>,
}

closed_enum! {
    /// A key of the file.
    Key {
        /// What the memory is called.
        Name = "project.name",
        /// What the IRIs of facts begin with.
        BaseIri = "project.base_iri",
        /// What Trails keeps its graph in.
        Backend = "graph.backend",
        /// Whether it is kept.
        Mode = "graph.mode",
        /// Where it is kept.
        Path = "graph.path",
        /// Who may see what an agent learns that does not say it.
        DefaultScope = "brain.default_scope",
        /// How long that can be relied on.
        DefaultStaleness = "brain.default_staleness",
        /// Whether a start takes away what is of no use.
        CompactOnStartup = "brain.compact_on_startup",
        /// How many facts are to be kept.
        MaxFacts = "brain.max_facts",
    }
}

impl Key {
    /// The setting of `config.toml` that goes before it, where there is one.
    #[must_use]
    pub const fn setting(self) -> Option<&'static str> {
        match self {
            Self::Name => Some("brain_name"),
            Self::BaseIri => Some("brain_iri"),
            Self::Backend | Self::Mode | Self::Path => None,
            Self::DefaultScope => Some("brain_scope"),
            Self::DefaultStaleness => Some("brain_staleness"),
            Self::CompactOnStartup => Some("brain_compact_on_start"),
            Self::MaxFacts => Some("brain_max_facts"),
        }
    }
}

impl Trails {
    /// Reads a file.
    ///
    /// # Errors
    /// [`TrailsError`].
    pub fn read(file: &Path) -> Result<Self, TrailsError> {
        let failed = |error| TrailsError::File(file.to_owned(), error);
        // What is no file could be waited for without an end.
        if !std::fs::metadata(file).map_err(failed)?.is_file() {
            return Err(TrailsError::Size(file.to_owned()));
        }
        let mut bytes = Vec::new();
        File::open(file).map_err(failed)?.take(MAX_FILE + 1).read_to_end(&mut bytes).map_err(failed)?;
        if bytes.len() as u64 > MAX_FILE {
            return Err(TrailsError::Size(file.to_owned()));
        }
        let text = String::from_utf8(bytes)
            .map_err(|_| failed(io::Error::new(io::ErrorKind::InvalidData, "must be UTF-8")))?;
        Self::of(file, &text)
    }

    fn of(file: &Path, text: &str) -> Result<Self, TrailsError> {
        let written: Written = toml::from_str(text).map_err(|error| {
            let before = error.span().and_then(|span| text.get(..span.start)).unwrap_or_default();
            let line = before.bytes().filter(|byte| *byte == b'\n').count() + 1;
            TrailsError::Shape { file: file.to_owned(), line, what: error.message().to_owned() }
        })?;
        let value = |key: Key, must| TrailsError::Value(file.to_owned(), key.as_str(), must);
        let name = written.project.name.clone().map(BrainName::try_from).transpose();
        let name = name.map_err(|must| value(Key::Name, must))?;
        let iri = written.project.base_iri.clone().map(BrainIri::try_from).transpose();
        let iri = iri.map_err(|must| value(Key::BaseIri, must))?;
        if let Some(backend) = &written.graph.backend {
            BrainName::try_from(backend.clone()).map_err(|must| value(Key::Backend, must))?;
        }
        if written.graph.mode.as_ref().is_some_and(|mode| mode != "persistent") {
            return Err(value(Key::Mode, Must::Persistent));
        }
        let is_within = |path: &PathBuf| {
            let mut parts = path.components();
            let named = path.components().any(|part| matches!(part, Component::Normal(_)));
            named && parts.all(|part| matches!(part, Component::Normal(_) | Component::CurDir))
        };
        if written.graph.path.as_ref().is_some_and(|path| !is_within(path)) {
            return Err(value(Key::Path, Must::Within));
        }
        if written.brain.max_facts.is_some_and(|facts| !(1..=MAX_BRAIN_FACTS).contains(&facts)) {
            return Err(value(Key::MaxFacts, Must::Facts));
        }
        Ok(Self { file: file.to_owned(), written, name, iri })
    }

    /// Where it was read.
    #[must_use]
    pub fn file(&self) -> &Path {
        &self.file
    }

    /// The folder of the memory, which lies in that of the file; `None` where it names none.
    #[must_use]
    pub fn folder(&self) -> Option<PathBuf> {
        let path = self.written.graph.path.as_ref()?;
        Some(self.file.parent().unwrap_or(Path::new("")).join(path))
    }

    /// What it sets, by key.
    #[must_use]
    pub fn values(&self) -> Vec<(Key, Value)> {
        let Written { graph, brain, .. } = &self.written;
        let all = [
            (Key::Name, self.name.as_ref().map(|name| json!(name))),
            (Key::BaseIri, self.iri.as_ref().map(|iri| json!(iri))),
            (Key::Backend, graph.backend.as_ref().map(|backend| json!(backend))),
            (Key::Mode, graph.mode.as_ref().map(|mode| json!(mode))),
            (Key::Path, graph.path.as_ref().map(|path| json!(path))),
            (Key::DefaultScope, brain.default_scope.map(|scope| json!(scope))),
            (Key::DefaultStaleness, brain.default_staleness.map(|staleness| json!(staleness))),
            (Key::CompactOnStartup, brain.compact_on_startup.map(|compacts| json!(compacts))),
            (Key::MaxFacts, brain.max_facts.map(|facts| json!(facts))),
        ];
        all.into_iter().filter_map(|(key, value)| Some((key, value?))).collect()
    }

    /// What is passed over, in sentences.
    #[must_use]
    pub fn warnings(&self) -> Vec<String> {
        let backend = self.written.graph.backend.as_ref().filter(|backend| *backend != OXIGRAPH);
        let file = self.file.display();
        let passed_over = |_: &String| {
            format!(
                "{file}: graph.backend is passed over: the memory is in this gateway's own store, whatever the backend is called"
            )
        };
        backend.map(passed_over).into_iter().collect()
    }
}

impl Provider for Trails {
    fn metadata(&self) -> Metadata {
        Metadata::named(FILE)
    }

    fn data(&self) -> Result<Map<Profile, Dict>, figment::Error> {
        let settings =
            self.values().into_iter().filter_map(|(key, value)| Some((key.setting()?, plain(value))));
        let settings: BTreeMap<&str, figment::value::Value> = settings.collect();
        Serialized::from(settings, Profile::Default).data()
    }
}

/// A setting as the configuration holds it. A number of JSON is written as a map there, for it keeps its digits.
fn plain(value: Value) -> figment::value::Value {
    match value {
        Value::Bool(whether) => whether.into(),
        Value::String(text) => text.into(),
        other => other.as_u64().map_or_else(|| other.to_string().into(), Into::into),
    }
}

/// Where a home is: a folder, or a `trails.toml` that names one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// The folder.
    pub folder: PathBuf,
    /// The file that named it, absolute.
    pub trails: Option<PathBuf>,
}

impl Place {
    /// The home at a path.
    ///
    /// # Errors
    /// [`TrailsError`] of a `trails.toml`; [`TrailsError::NoPath`] where it names no folder.
    pub fn at(path: PathBuf) -> Result<Self, TrailsError> {
        if path.file_name() != Some(OsStr::new(FILE)) || path.is_dir() {
            return Ok(Self { folder: path, trails: None });
        }
        let file = std::path::absolute(&path).map_err(|error| TrailsError::File(path, error))?;
        let folder = Trails::read(&file)?.folder().ok_or_else(|| TrailsError::NoPath(file.clone()))?;
        Ok(Self { folder, trails: Some(file) })
    }

    /// The setting that names the file, where there is one.
    #[must_use]
    pub fn flags(&self) -> BTreeMap<String, Value> {
        self.trails.iter().map(|file| ("trails".to_owned(), json!(file))).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The ADR's file, to the letter.
    const ADR: &str = r#"
[project]
name = "my-brain"
base_iri = "https://trails.dev/brain/my-project/"
[graph]
backend = "oxigraph"
mode = "persistent"
path = ".trails/brain.db"
[brain]
default_scope = "local" # local | shared | private
default_staleness = "weekly" # stable | weekly | daily | hourly | volatile
compact_on_startup = false # run compaction when server starts
max_facts = 100000 # soft limit, warns when exceeded
"#;

    fn read(text: &str) -> Result<Trails, TrailsError> {
        Trails::of(Path::new("/brains/trails.toml"), text)
    }

    #[test]
    fn the_adrs_own_file_is_read_to_the_letter() {
        let trails = read(ADR).unwrap();
        assert_eq!(trails.values().len(), Key::ALL.len());
        assert_eq!(trails.folder(), Some(PathBuf::from("/brains/.trails/brain.db")));
        assert!(trails.warnings().is_empty());
        let config: crate::Config = figment::Figment::new()
            .merge(Serialized::defaults(crate::Config::default()))
            .merge(trails)
            .extract()
            .unwrap();
        assert_eq!(config.brain_name.unwrap().to_string(), "my-brain");
        assert_eq!(config.brain_iri.unwrap().fact("x"), "https://trails.dev/brain/my-project/fact/x");
        assert_eq!(
            (config.brain_scope, config.brain_staleness),
            (Visibility::Local, Some(Staleness::Weekly))
        );
        assert_eq!((config.brain_compact_on_start, config.brain_max_facts), (false, 100_000));
        // Nothing is needed.
        assert!(read("").unwrap().values().is_empty());
    }

    #[test]
    fn what_does_not_fit_is_named_with_its_place_and_the_fix() {
        let long = "x".repeat(MAX_BRAIN_NAME + 1);
        for (text, names) in [
            ("[project]\nnames = \"x\"".to_owned(), vec!["names", "line 2", "base_iri", "config.toml"]),
            ("[brain]\n\nretention = \"P0D\"".to_owned(), vec!["retention", "line 3", "max_facts"]),
            ("[mcp]\ntool_names = \"dotted\"".to_owned(), vec!["mcp", "project"]),
            ("[brain]\ndefault_scope = \"public\"".to_owned(), vec!["line 2", "public", "private"]),
            ("[brain]\nmax_facts = 0".to_owned(), vec!["brain.max_facts", "must be 1 to"]),
            ("[brain]\nmax_facts = -1".to_owned(), vec!["line 2"]),
            ("[brain]\nmax_facts = 10000001".to_owned(), vec!["brain.max_facts"]),
            ("[brain]\ncompact_on_startup = 1".to_owned(), vec!["line 2"]),
            ("[graph]\nmode = \"memory\"".to_owned(), vec!["graph.mode", "persistent"]),
            ("[graph]\nbackend = \"\"".to_owned(), vec!["graph.backend"]),
            (format!("[project]\nname = \"{long}\""), vec!["project.name", "characters"]),
            ("[project]\nname = \"a\\nb\"".to_owned(), vec!["project.name"]),
            ("[project]\nbase_iri = \"my-project/\"".to_owned(), vec!["project.base_iri", "absolute IRI"]),
            (
                "[project]\nbase_iri = \"https://x.example/brain\"".to_owned(),
                vec!["project.base_iri", "ends with"],
            ),
            ("[project".to_owned(), vec!["line 1"]),
            ("[brain]\nmax_facts = 1\nmax_facts = 2".to_owned(), vec!["line 3", "duplicate key"]),
        ] {
            let refused = read(&text).unwrap_err().to_string();
            for name in names.iter().chain(&["/brains/trails.toml"]) {
                assert!(refused.contains(name), "{text}: {refused}");
            }
        }
    }

    /// A file of somebody else's does not reach out of its folder.
    #[test]
    fn the_memory_lies_beside_the_file() {
        for path in ["/home/me/.oap-memory", "../other", "a/../../b", "", "."] {
            let refused = read(&format!("[graph]\npath = \"{path}\"")).unwrap_err().to_string();
            assert!(refused.contains("graph.path"), "{path}: {refused}");
        }
        for path in ["brain.db", "./a/b"] {
            assert!(read(&format!("[graph]\npath = \"{path}\"")).is_ok(), "{path}");
        }
    }

    #[test]
    fn another_backend_is_passed_over_with_a_word() {
        let warned = read("[graph]\nbackend = \"rocksdb\"").unwrap().warnings();
        assert!(warned.len() == 1 && warned[0].contains("graph.backend"), "{warned:?}");
    }

    #[test]
    fn a_home_is_a_folder_or_a_file_that_names_one() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join(FILE);
        assert_eq!(Place::at(folder.path().to_owned()).unwrap().folder, folder.path());
        assert!(matches!(Place::at(file.clone()), Err(TrailsError::File(..))));
        std::fs::write(&file, "").unwrap();
        assert!(matches!(Place::at(file.clone()), Err(TrailsError::NoPath(_))));
        std::fs::write(&file, ADR).unwrap();
        let place = Place::at(file.clone()).unwrap();
        assert_eq!(place.folder, folder.path().join(".trails/brain.db"));
        assert_eq!(place.flags().get("trails"), Some(&json!(file)));
        std::fs::write(&file, " ".repeat(usize::try_from(MAX_FILE).unwrap() + 1)).unwrap();
        assert!(matches!(Place::at(file.clone()), Err(TrailsError::Size(_))));
        std::fs::remove_file(&file).unwrap();
        std::fs::create_dir(&file).unwrap();
        assert!(matches!(Trails::read(&file), Err(TrailsError::Size(_))));
        assert_eq!(Place::at(file.clone()).unwrap().folder, file);
    }

    proptest! {
        #[test]
        fn no_text_panics(text in "(?s).{0,200}|\\[(project|graph|brain)\\]\n[a-z_]{1,12} = .{0,40}") {
            let _ = read(&text);
        }
    }
}

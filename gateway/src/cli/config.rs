//! `oap-memory config`

use super::{CliError, Global, output};
use crate::system::config::{self, Config};
use crate::system::trails::{self, Place};
use clap::builder::{PathBufValueParser, TypedValueParser};
use figment::Figment;
use serde::Serialize;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::path::PathBuf;

/// How `--home` is read.
pub(super) fn place() -> impl TypedValueParser<Value = Place> {
    PathBufValueParser::new().try_map(Place::at)
}

/// Show the configuration and where each value comes from
#[derive(clap::Subcommand)]
#[command(after_help = "Examples:
  oap-memory config show
  oap-memory config show --json
  oap-memory config trails")]
pub(super) enum ConfigCommand {
    /// Show every value with its origin: default, file, environment or flag
    Show,
    /// Show what a trails.toml sets, and what of it is in force
    #[command(after_help = "Examples:
  oap-memory config trails
  oap-memory config trails --json

The file is the one that `trails` in config.toml names, or --home. config.toml, variables and flags go before it. A
trails.toml that merely lies where this is started is never read.")]
    Trails,
}

/// What a `trails.toml` sets, and what of it is in force.
#[derive(Serialize)]
struct InForce {
    file: PathBuf,
    /// Its keys, with what each sets.
    keys: BTreeMap<&'static str, KeyInForce>,
    /// What is passed over, in sentences.
    warnings: Vec<String>,
}

#[derive(Serialize)]
struct KeyInForce {
    /// What the file says.
    value: Value,
    /// The setting that it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    setting: Option<&'static str>,
    /// What holds.
    in_force: Value,
    /// Where that comes from.
    from: String,
}

/// The configuration as it holds, and where each value comes from.
struct Shown {
    config: Config,
    values: Map<String, Value>,
    layers: Figment,
    flags: BTreeMap<String, Value>,
}

impl Shown {
    fn of(global: &Global) -> Result<Self, CliError> {
        let (home, flags) = (global.home(), global.flags());
        let config = Config::load(home.path(), &flags)?;
        let layers = config::figment(home.path(), &flags)?;
        let Value::Object(values) = serde_json::to_value(&config)
            .map_err(crate::Error::from)
            .map_err(|e| CliError::Other(e.to_string()))?
        else {
            return Err(CliError::Other("the configuration is no object".to_owned()));
        };
        Ok(Self { config, values, layers, flags })
    }

    /// Where a value comes from.
    fn origin(&self, name: &str) -> String {
        match self.layers.find_metadata(name) {
            _ if self.flags.contains_key(name) => "flag".to_owned(),
            Some(metadata) if metadata.name.contains("environment") => "environment".to_owned(),
            Some(metadata) if metadata.name == trails::FILE => trails::FILE.to_owned(),
            Some(metadata) if metadata.name.contains("TOML") => "config.toml".to_owned(),
            _ => "default".to_owned(),
        }
    }
}

/// A value as a cell has it.
fn cell(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

impl ConfigCommand {
    pub(super) fn run(self, global: &Global) -> Result<(), CliError> {
        let shown = Shown::of(global)?;
        match self {
            Self::Show => {
                let values = shown.values.iter();
                let values: Map<String, Value> = values
                    .map(|(name, value)| (name.clone(), json!({"value": value, "from": shown.origin(name)})))
                    .collect();
                output::print(global.json, &Value::Object(values), |_| {
                    let rows = shown.values.iter();
                    let rows = rows.map(|(name, value)| vec![name.clone(), cell(value), shown.origin(name)]);
                    output::wrapped(&["setting", "value", "from"], rows)
                });
            }
            Self::Trails => output::print(global.json, &in_force(global, &shown)?, people),
        }
        Ok(())
    }
}

/// What the `trails.toml` that the configuration names sets, and what of it holds.
fn in_force(global: &Global, shown: &Shown) -> Result<InForce, CliError> {
    let home = global.home();
    let trails = shown.config.trails_file(home.path())?.ok_or_else(|| {
        CliError::Usage(
            "no trails.toml is read: name it in config.toml (trails = \"/path/to/trails.toml\"), or say --home /path/to/trails.toml"
                .to_owned(),
        )
    })?;
    let keys = trails.values().into_iter().map(|(key, value)| {
        let setting = key.setting();
        let (in_force, from) = match (setting, key) {
            (Some(name), _) => (shown.values.get(name).cloned().unwrap_or_default(), shown.origin(name)),
            (None, trails::Key::Path) => (json!(home.path()), "home".to_owned()),
            // A store of this gateway's own, which is kept.
            (None, trails::Key::Backend) => {
                (shown.values.get("engine").cloned().unwrap_or_default(), shown.origin("engine"))
            }
            (None, _) => (value.clone(), trails::FILE.to_owned()),
        };
        (key.as_str(), KeyInForce { value, setting, in_force, from })
    });
    Ok(InForce { file: trails.file().to_owned(), keys: keys.collect(), warnings: trails.warnings() })
}

fn people(shown: &InForce) -> String {
    let rows = shown
        .keys
        .iter()
        .map(|(key, of)| vec![(*key).to_owned(), cell(&of.value), cell(&of.in_force), of.from.clone()]);
    let mut text = format!("{}\n", shown.file.display());
    text.push_str(&output::wrapped(&["key", "value", "in force", "from"], rows));
    for warning in &shown.warnings {
        text.push_str(&format!("\n{warning}"));
    }
    text
}

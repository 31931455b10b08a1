//! `oap-memory config`

use super::{CliError, Global, output};
use crate::system::config::{self, Config};
use serde_json::{Value, json};

/// Show the configuration and where each value comes from
#[derive(clap::Subcommand)]
#[command(after_help = "Examples:
  oap-memory config show
  oap-memory config show --json")]
pub(super) enum ConfigCommand {
    /// Show every value with its origin: default, file, environment or flag
    Show,
}

impl ConfigCommand {
    pub(super) fn run(self, global: &Global) -> Result<(), CliError> {
        let Self::Show = self;
        let (home, flags) = (global.home(), global.flags());
        let config = Config::load(home.path(), &flags)?;
        let figment = config::figment(home.path(), &flags);
        let Value::Object(values) = serde_json::to_value(&config)
            .map_err(crate::Error::from)
            .map_err(|e| CliError::Other(e.to_string()))?
        else {
            return Err(CliError::Other("the configuration is no object".to_owned()));
        };
        let origin = |name: &str| {
            let flag = flags.contains_key(name);
            match figment.find_metadata(name) {
                _ if flag => "flag".to_owned(),
                Some(metadata) if metadata.name.contains("environment") => "environment".to_owned(),
                Some(metadata) if metadata.name.contains("TOML") => "config.toml".to_owned(),
                _ => "default".to_owned(),
            }
        };
        let shown: serde_json::Map<String, Value> = values
            .iter()
            .map(|(name, value)| (name.clone(), json!({"value": value, "from": origin(name)})))
            .collect();
        output::print(global.json, &Value::Object(shown), |_| {
            let rows = values.iter().map(|(name, value)| {
                let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
                vec![name.clone(), if value.is_null() { String::new() } else { text }, origin(name)]
            });
            output::wrapped(&["setting", "value", "from"], rows)
        });
        Ok(())
    }
}

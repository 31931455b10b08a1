//! `oap-memory profile`

use super::{CliError, Global, ids, output, values};
use crate::service::prefix::ItemPrefix;
use oap_memory::{Profile as Document, TrustLevel};
use serde_json::{Value, json};
use std::path::PathBuf;

/// List, check and explain projection profiles
#[derive(clap::Subcommand)]
#[command(after_help = "Examples:
  oap-memory profile list
  oap-memory profile show contact.v1
  oap-memory profile check ./mine.toml
  oap-memory profile explain mem_01... --profile memory.v1 --level 2

A profile of your own is a TOML file in the home's `profiles/` folder; `profile check` says line and reason of what is
wrong with it. Profiles are read at start.")]
pub(super) enum Profile {
    /// List the profiles that grants can name
    List,
    /// Show what each level adds
    Show {
        /// The profile; the prefix oap.profile.projection. may be left out
        #[arg(value_parser = values::ProfileName)]
        name: String,
    },
    /// Check a profile document
    Check {
        /// The file
        file: PathBuf,
    },
    /// Show what each rule does to an item
    Explain {
        /// The item, by its id or the beginning of it
        item: ItemPrefix,
        /// The profile
        #[arg(long, default_value = "memory.v1", value_parser = values::ProfileName)]
        profile: String,
        /// The trust level
        #[arg(long, value_name = "0..4", value_parser = values::level())]
        level: TrustLevel,
    },
}

impl Profile {
    pub(super) async fn run(self, global: &Global) -> Result<(), CliError> {
        match self {
            Self::Check { file } => {
                let bytes = output::read(&file)?;
                let refused = |why: String| CliError::File(file.clone(), why);
                let text = std::str::from_utf8(&bytes).map_err(|e| refused(e.to_string()))?;
                let profile = Document::parse(text).map_err(|e| refused(e.to_string()))?;
                let done = json!({"name": profile.name(), "hash": profile.hash()});
                output::print(global.json, &done, |_| {
                    format!("{} is a profile: {}", profile.name(), profile.hash())
                });
            }
            Self::List => {
                let answer = global.owner().await?.call("GET", "/oap/owner/profiles", &[], None).await?;
                output::print(global.json, &answer, |a| {
                    let profiles = a["profiles"].as_array().cloned().unwrap_or_default();
                    let row = |p: &Value| {
                        ["/name", "/entity_type", "/description"].map(|m| output::text(p, m)).to_vec()
                    };
                    output::wrapped(&["profile", "entity", "description"], profiles.iter().map(row))
                });
            }
            Self::Show { name } => {
                let answer = global.owner().await?.call("GET", "/oap/owner/profiles", &[], None).await?;
                let profiles = answer["profiles"].as_array().cloned().unwrap_or_default();
                let profile = profiles.into_iter().find(|p| p["name"] == *name);
                let profile = profile
                    .ok_or_else(|| CliError::Usage(format!("{name}: no such profile; see `profile list`")))?;
                output::print(global.json, &profile, show);
            }
            Self::Explain { item, profile, level } => {
                let query = [("profile", profile), ("level", level.get().to_string())];
                let mut owner = global.owner().await?;
                let item = ids::one(&owner, &item).await?;
                let path = format!("/oap/owner/items/{item}/explain");
                let answer = owner.call("GET", &path, &query, None).await?;
                output::print(global.json, &answer, |a| {
                    let rules = a["rules"].as_array().cloned().unwrap_or_default();
                    let row = |r: &Value| ["/level", "/rule", "/effect"].map(|m| output::text(r, m)).to_vec();
                    let table = output::wrapped(&["level", "rule", "what it did"], rules.iter().map(row));
                    format!("{table}\n\nwhat is shown\n{}", output::pretty(&a["visible"]))
                });
            }
        }
        Ok(())
    }
}

fn show(profile: &Value) -> String {
    let levels = |of: &Value| {
        let levels = of.as_array().cloned().unwrap_or_default();
        let rows = levels.iter().enumerate().map(|(number, level)| {
            let adds: Vec<&str> =
                level["adds"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
            vec![number.to_string(), adds.join("\n"), output::text(level, "/text")]
        });
        output::wrapped(&["level", "adds", "text"], rows)
    };
    let mut text = format!("{}\n{}\n", output::text(profile, "/name"), output::text(profile, "/description"));
    if profile["entity"].is_array() {
        text.push_str(&format!(
            "\n{}\n{}\n",
            output::text(profile, "/entity_type"),
            levels(&profile["entity"])
        ));
        text.push_str("\nany other item\n");
    }
    text + &levels(&profile["levels"])
}

//! `oap-memory profile`

use super::{CliError, Global, ids, output, values};
use crate::api::items::{ExplainItem, ExplainQuery};
use crate::api::prefix::ItemPrefix;
use crate::api::standing::{LevelInfo, ListProfiles, ProfileInfo};
use oap_memory::{Profile as Document, TrustLevel};
use serde_json::json;
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
                let answer = global.owner().await?.get::<ListProfiles>((), &()).await?;
                output::print(global.json, &answer, |answer| {
                    let rows = answer.profiles.iter().map(|profile| {
                        let entity = output::or_none(profile.entity_type.as_ref());
                        vec![profile.name.clone(), entity, profile.description.clone()]
                    });
                    output::wrapped(&["profile", "entity", "description"], rows)
                });
            }
            Self::Show { name } => {
                let profiles = global.owner().await?.get::<ListProfiles>((), &()).await?.profiles;
                let profile = profiles.into_iter().find(|profile| profile.name == *name);
                let profile = profile
                    .ok_or_else(|| CliError::Usage(format!("{name}: no such profile; see `profile list`")))?;
                output::print(global.json, &profile, show);
            }
            Self::Explain { item, profile, level } => {
                let owner = global.owner().await?;
                let item = ids::one(&owner, &item).await?;
                let answer = owner.get::<ExplainItem>(item, &ExplainQuery { profile, level }).await?;
                output::print(global.json, &answer, |a| {
                    let rows = a
                        .rules
                        .iter()
                        .map(|rule| vec![rule.level.to_string(), rule.rule.clone(), rule.effect.clone()]);
                    let table = output::wrapped(&["level", "rule", "what it did"], rows);
                    format!("{table}\n\nwhat is shown\n{}", output::pretty(&a.visible))
                });
            }
        }
        Ok(())
    }
}

fn show(profile: &ProfileInfo) -> String {
    let levels = |levels: &[LevelInfo]| {
        let rows = levels
            .iter()
            .enumerate()
            .map(|(number, level)| vec![number.to_string(), level.adds.join("\n"), level.text.clone()]);
        output::wrapped(&["level", "adds", "text"], rows)
    };
    let mut text = format!("{}\n{}\n", profile.name, profile.description);
    if let Some(entity) = &profile.entity {
        let of = output::or_none(profile.entity_type.as_ref());
        text.push_str(&format!("\n{of}\n{}\n", levels(entity)));
        text.push_str("\nany other item\n");
    }
    text + &levels(&profile.levels)
}

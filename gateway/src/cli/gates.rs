//! `oap-memory ccc` and `oap-memory bridge`

use super::when::{self, When};
use super::{CliError, Global, output, values};
use crate::api::gates as api;
use crate::api::gates::{BridgeDraft, Bridges};
use oap_identity::{BridgeId, ScopeId};
use std::path::PathBuf;

/// Say what a scope owes to others: embargoes, NDAs, walls, secrecy
#[derive(clap::Subcommand)]
#[command(after_help = "Examples:
  oap-memory ccc set ./client-a.json
  oap-memory ccc show
  oap-memory ccc remove client-a

A context is a JSON document of OAP-CORE 18.2 (`oap-ccc.schema.json`) that names its `scope_id`. Its rules stand before
every grant: what they block is in no answer. Sanctions lists are files `sanctions/ofac.txt` (eu, un, uk_ofsi) in the
gateway's folder, one DID a line, read anew by `ccc set` and within a minute of a change; a list that is asked for and not there blocks.")]
pub(super) enum Ccc {
    /// Set the context of the scope that the document names
    Set {
        /// The document
        file: PathBuf,
    },
    /// Show every context
    Show,
    /// Take the context of a scope away
    Remove {
        /// The scope
        scope: ScopeId,
    },
}

impl Ccc {
    pub(super) async fn run(self, global: &Global) -> Result<(), CliError> {
        match self {
            Self::Set { file } => {
                let document = output::read_json(&file)?;
                let answer = global.owner().await?.send::<api::SetContext>((), &document.into()).await?;
                output::print(global.json, &answer, |_| "the context holds from now on".to_owned());
            }
            Self::Show => {
                let answer = global.owner().await?.get::<api::ListContexts>((), &()).await?;
                output::print(global.json, &answer, |a| {
                    serde_json::to_string_pretty(&a.contexts).unwrap_or_default()
                });
            }
            Self::Remove { scope } => {
                let answer = global.owner().await?.send::<api::RemoveContext>(scope.clone(), &()).await?;
                output::print(global.json, &answer, |_| format!("{scope} has no context now"));
            }
        }
        Ok(())
    }
}

/// Let some of one scope be shown under another
#[derive(clap::Subcommand)]
#[command(after_help = "Examples:
  oap-memory bridge issue --from work --to personal --category scheduling --until 90d
  oap-memory bridge list
  oap-memory bridge revoke brg_01...")]
pub(super) enum Bridge {
    /// Sign a bridge
    Issue {
        /// The scope of the items
        #[arg(long, value_name = "SCOPE")]
        from: ScopeId,
        /// The scope of the grants that may show them
        #[arg(long, value_name = "SCOPE")]
        to: ScopeId,
        /// A label or kind that may pass; may be given several times
        #[arg(long, required = true, value_parser = values::short)]
        category: Vec<String>,
        /// Until when
        #[arg(long, value_name = "TIME")]
        until: When,
    },
    /// List bridges
    List,
    /// Take a bridge back; it takes effect before the next answer
    Revoke {
        /// The bridge
        id: BridgeId,
    },
}

impl Bridge {
    pub(super) async fn run(self, global: &Global) -> Result<(), CliError> {
        match self {
            Self::Issue { from, to, category, until } => {
                let draft = BridgeDraft {
                    from_scope: from,
                    to_scope: to,
                    data_categories: category,
                    valid_until: until.ends(when::now()),
                };
                let answer = global.owner().await?.send::<api::IssueBridge>((), &draft).await?;
                output::print(global.json, &answer, |bridge| {
                    let BridgeDraft { from_scope: from, to_scope: to, valid_until: until, .. } = &draft;
                    format!("{} leads from {from} to {to} until {until}", bridge.bridge_id)
                });
            }
            Self::List => {
                let answer = global.owner().await?.get::<api::ListBridges>((), &()).await?;
                output::print(global.json, &answer, table);
            }
            Self::Revoke { id } => {
                let answer = global.owner().await?.send::<api::RevokeBridge>(id, &()).await?;
                output::print(global.json, &answer, |_| format!("{id} is revoked"));
            }
        }
        Ok(())
    }
}

pub(super) fn table(answer: &Bridges) -> String {
    let rows = answer.bridges.iter().map(|info| {
        let bridge = &info.bridge;
        vec![
            bridge.bridge_id.to_string(),
            info.state.to_string(),
            bridge.from_scope.to_string(),
            bridge.to_scope.to_string(),
            bridge.data_categories.join(", "),
            bridge.valid_until.to_string(),
        ]
    });
    output::table(&["bridge", "state", "from", "to", "categories", "until"], rows)
}

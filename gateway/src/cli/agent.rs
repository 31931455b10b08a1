//! `oap-memory agent`

use super::clients::{Client, Consent};
use super::mcp::install::still_starts;
use super::{CliError, Global, output};
use crate::api::agents as api;
use crate::api::agents::{AgentInfo, AgentName, AgentRef, KeyedAgent, NewAgent};
use crate::api::permission::Permission;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use oap_client::ClientError;

/// Your own agents: assistants that share your memory, each with a name, a permission and a key of its own
#[derive(clap::Subcommand)]
#[command(after_help = "Examples:
  oap-memory agent add scout
  oap-memory agent add editor --permission admin
  oap-memory agent list
  oap-memory agent show scout
  oap-memory agent rotate scout
  oap-memory agent remove scout

An agent sees your memory but for what is private to another agent and what is restricted. With read it recalls; with write
it learns, and corrects and takes back what it wrote; with admin also what you and others wrote. It never reaches your own
commands: no grants, no deletion, no keys. `mcp install` connects an assistant; the API key is for agents that call over
HTTP: MCP at /mcp, or POST /oap/agent/call.")]
pub(super) enum Agent {
    /// Make an agent; prints its API key, this once
    Add {
        /// Its name: a-z 0-9 _ -
        name: AgentName,
        /// What it may do; each permission includes those before it
        #[arg(long, default_value = "write", value_parser = permission())]
        permission: Permission,
    },
    /// List your agents, with those that were removed
    List,
    /// Show an agent
    Show {
        /// Its name, or its DID
        #[arg(value_name = "NAME")]
        agent: AgentRef,
    },
    /// Give an agent another API key, printed this once; the one before ends at once
    Rotate {
        /// Its name, or its DID
        #[arg(value_name = "NAME")]
        agent: AgentRef,
    },
    /// End an agent and its API key at once; what it wrote stays
    Remove {
        /// Its name, or its DID
        #[arg(value_name = "NAME")]
        agent: AgentRef,
    },
    /// Clients that ask in a browser (OAuth): say yes or no, take a yes back
    #[command(subcommand)]
    Consent(Consent),
    /// Clients without a metadata document: add them by name
    #[command(subcommand)]
    Client(Client),
}

/// The permissions, as flags have them.
const PERMISSIONS: [(&str, Permission); 3] =
    [("read", Permission::Read), ("write", Permission::Write), ("admin", Permission::Admin)];

pub(super) fn permission() -> impl TypedValueParser<Value = Permission> {
    let of = |text: String| PERMISSIONS.into_iter().find(|(name, _)| *name == text).map(|(_, p)| p);
    PossibleValuesParser::new(PERMISSIONS.map(|(name, _)| name))
        .try_map(move |text| of(text).ok_or("read, write or admin"))
}

/// A permission, as flags have it.
pub(super) fn word(permission: Permission) -> &'static str {
    PERMISSIONS.into_iter().find(|(_, known)| *known == permission).map_or("", |(name, _)| name)
}

impl Agent {
    pub(super) async fn run(self, global: &Global) -> Result<(), CliError> {
        let owner = match self {
            Self::Consent(consent) => return consent.run(global).await,
            Self::Client(client) => return client.run(global).await,
            _ => global.owner().await?,
        };
        match self {
            Self::Consent(_) | Self::Client(_) => {}
            Self::Add { name, permission } => {
                let new = NewAgent { name, permission };
                let made = owner.send::<api::AddAgent>((), &new).await?;
                output::print(global.json, &made, keyed);
            }
            Self::List => {
                let list = owner.get::<api::ListAgents>((), &()).await?;
                output::print(global.json, &list, |list| table(&list.agents));
            }
            Self::Show { agent } => {
                let info = owner.get::<api::ShowAgent>(agent.clone(), &()).await.map_err(named(&agent))?;
                output::print(global.json, &info, |info| table(std::slice::from_ref(info)));
            }
            Self::Rotate { agent } => {
                let made = owner.send::<api::RotateAgent>(agent.clone(), &()).await.map_err(named(&agent))?;
                output::print(global.json, &made, keyed);
            }
            Self::Remove { agent } => {
                let info = owner.send::<api::RemoveAgent>(agent.clone(), &()).await.map_err(named(&agent))?;
                let starts = still_starts(global.home().path(), &info.name.to_string());
                output::print(global.json, &info, |info| {
                    let mut text = format!("{} is removed; what it wrote stays", info.name);
                    for file in starts {
                        text.push_str(&format!(
                            "\n{} still starts it: take the server oap-memory out there",
                            file.display()
                        ));
                    }
                    text
                });
            }
        }
        Ok(())
    }
}

/// Says of whom it is that nobody is there.
pub(super) fn named(agent: &AgentRef) -> impl Fn(ClientError) -> CliError {
    let agent = agent.to_string();
    move |error| match error {
        ClientError::Refused { status: 404, .. } => {
            CliError::Other(format!("{agent}: no agent of this name; `oap-memory agent list` shows them"))
        }
        error => error.into(),
    }
}

fn keyed(made: &KeyedAgent) -> String {
    let KeyedAgent { agent: AgentInfo { name, did, permission, .. }, api_key } = made;
    let permission = word(*permission);
    format!(
        "{name} may {permission}, as {did}\nAPI key, shown this once:\n{api_key}\nAn assistant on this machine needs no key: `oap-memory mcp install`"
    )
}

pub(super) fn table(agents: &[AgentInfo]) -> String {
    let rows = agents.iter().map(|agent| {
        let state =
            agent.removed_at.map_or_else(|| word(agent.permission).to_owned(), |_| "removed".to_owned());
        vec![
            agent.name.to_string(),
            state,
            agent.created_at.to_string(),
            output::or_none(agent.key_since),
            agent.did.to_string(),
        ]
    });
    output::table(&["name", "may", "made", "key since", "did"], rows)
}

//! `oap-memory agent`

use super::clients::{Client, Consent};
use super::mcp::install::still_starts;
use super::{CliError, Global, output, screen, values};
use crate::api::agents as api;
use crate::api::agents::{AgentChange, AgentInfo, AgentName, AgentRef, KeyedAgent, NewAgent};
use crate::api::permission::Permission;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use oap_agents::terms::{CapacityChange, MAX_CAPACITY, Role};
use oap_client::ClientError;
use oap_identity::Did;
use oap_memory::record::Tier;

/// Your own agents: assistants that share your memory, each with a name, a permission and a key of its own
#[derive(clap::Subcommand)]
#[command(after_help = "Examples:
  oap-memory agent add scout
  oap-memory agent add editor --permission admin
  oap-memory agent add lead --role coordinator --episodic 200
  oap-memory agent add far --did did:key:z6Mk...
  oap-memory agent set scout --permission read --working 50
  oap-memory agent set scout --pin learned_patterns
  oap-memory agent list
  oap-memory agent show scout
  oap-memory agent rotate scout
  oap-memory agent remove scout

An agent sees your memory but for what is private to another agent and what is restricted. With read it recalls; with write
it learns, and corrects and takes back what it wrote; with admin also what you and others wrote. It never reaches your own
commands: no grants, no deletion, no keys. A coordinator gives tasks to others over OpenIntent's dialect, and reads what they
write for these as long as they are open. `mcp install` connects an assistant; the API key is for agents that call over
HTTP: MCP at /mcp, or POST /oap/agent/call.")]
pub(super) enum Agent {
    /// Make an agent; prints its API key, this once
    Add {
        /// Its name: a-z 0-9 _ -
        name: AgentName,
        /// What it may do; each permission includes those before it
        #[arg(long, default_value = "write", value_parser = permission())]
        permission: Permission,
        /// What it is to your other agents
        #[arg(long, default_value = "worker", value_parser = role())]
        role: Role,
        #[command(flatten)]
        room: Room,
        /// The did:key of a key that the agent holds itself; what it presents counts with a proof by that key alone (DPoP)
        #[arg(long, value_parser = values::did)]
        did: Option<Did>,
    },
    /// Set what an agent may do, what it is to the others, and how many entries it may have
    Set {
        /// Its name, or its DID
        #[arg(value_name = "NAME")]
        agent: AgentRef,
        /// What it may do; each permission includes those before it
        #[arg(long, value_parser = permission())]
        permission: Option<Permission>,
        /// What it is to your other agents
        #[arg(long, value_parser = role())]
        role: Option<Role>,
        #[command(flatten)]
        room: Room,
        /// A namespace whose episodic entries are never evicted, beside those that are pinned; may be given several times, 64 at most
        #[arg(long, value_name = "NAMESPACE", value_parser = values::short)]
        pin: Vec<String>,
        /// A namespace that is pinned no more; may be given several times
        #[arg(long, value_name = "NAMESPACE", value_parser = values::short)]
        unpin: Vec<String>,
    },
    /// List your agents, with those that were removed
    List,
    /// Show an agent
    Show {
        /// Its name, or its DID
        #[arg(value_name = "NAME")]
        agent: AgentRef,
    },
    /// Give an agent another API key, printed this once; the one before ends at once. Where an agent holds its own key and that was
    /// stolen, remove the agent: who has the key needs no API key
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

/// How many entries an agent may have
#[derive(clap::Args)]
pub(super) struct Room {
    /// Most working entries, 1 to 10000; 1000 if never said
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = clap::value_parser!(u32).range(1..=i64::from(MAX_CAPACITY)))]
    working: Option<u32>,
    /// Most episodic entries, 1 to 10000; beyond it what is worth least goes; 1000 if never said
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = clap::value_parser!(u32).range(1..=i64::from(MAX_CAPACITY)))]
    episodic: Option<u32>,
    /// Most semantic entries of its own, 1 to 10000; 10000 if never said
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = clap::value_parser!(u32).range(1..=i64::from(MAX_CAPACITY)))]
    semantic: Option<u32>,
}

impl From<Room> for CapacityChange {
    fn from(Room { working, episodic, semantic }: Room) -> Self {
        Self { working, episodic, semantic }
    }
}

fn role() -> impl TypedValueParser<Value = Role> {
    PossibleValuesParser::new(Role::ALL.iter().map(|role| role.as_str())).try_map(|text| text.parse::<Role>())
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
            Self::Add { name, permission, role, room, did } => {
                let new = NewAgent { name, permission, role, capacities: room.into(), did };
                let made = owner.send::<api::AddAgent>((), &new).await?;
                output::print(global.json, &made, keyed);
            }
            Self::Set { agent, permission, role, room, pin, unpin } => {
                let mut change =
                    AgentChange { permission, role, capacities: room.into(), ..AgentChange::default() };
                if !(pin.is_empty() && unpin.is_empty()) {
                    let info =
                        owner.get::<api::ShowAgent>(agent.clone(), &()).await.map_err(named(&agent))?;
                    change.pinned_namespaces = Some(pinned(info.pinned_namespaces, &pin, &unpin)?);
                }
                if change == AgentChange::default() {
                    return Err(CliError::Usage(
                        "name what to set: --permission, --role, --working, --episodic, --semantic, --pin, --unpin"
                            .to_owned(),
                    ));
                }
                let info =
                    owner.send::<api::SetAgent>(agent.clone(), &change).await.map_err(named(&agent))?;
                output::print(global.json, &info, shown);
            }
            Self::List => {
                let list = owner.get::<api::ListAgents>((), &()).await?;
                output::print(global.json, &list, |list| table(&list.agents));
            }
            Self::Show { agent } => {
                let info = owner.get::<api::ShowAgent>(agent.clone(), &()).await.map_err(named(&agent))?;
                output::print(global.json, &info, shown);
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

/// The namespaces that are pinned from now on.
fn pinned(there: Vec<String>, pin: &[String], unpin: &[String]) -> Result<Vec<String>, CliError> {
    if let Some(unknown) = unpin.iter().find(|name| !there.contains(name)) {
        return Err(CliError::Usage(format!(
            "--unpin: {unknown} is not pinned; `agent show` lists those that are"
        )));
    }
    let mut names: Vec<String> = there.into_iter().filter(|name| !unpin.contains(name)).collect();
    for name in pin {
        if !names.contains(name) {
            names.push(name.clone());
        }
    }
    Ok(names)
}

/// An agent with everything that its owner set, for people.
fn shown(info: &AgentInfo) -> String {
    let room = info.capacities;
    let pinned = match info.pinned_namespaces.as_slice() {
        [] => "none".to_owned(),
        names => screen::line(&names.join(", ")),
    };
    let key = match (info.own_key, info.removed_at) {
        (_, Some(_)) => "ended",
        (true, None) => "its own, which it proves with each request (DPoP)",
        (false, None) => "an API key",
    };
    let mut text = table(std::slice::from_ref(info));
    text.push_str(&format!(
        "\n\nentries at most    working {}, episodic {}, semantic {}\npinned namespaces  {pinned}\nkey                {key}",
        room.of(Tier::Working),
        room.of(Tier::Episodic),
        room.of(Tier::Semantic),
    ));
    text
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
    let KeyedAgent { agent: AgentInfo { name, did, permission, own_key, .. }, api_key } = made;
    let permission = word(*permission);
    if *own_key {
        return format!(
            "{name} may {permission}, as {did}\nIt proves its own key with each request (DPoP), with this token or without one; shown this once:\n{api_key}"
        );
    }
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
            agent.role.to_string(),
            agent.created_at.to_string(),
            output::or_none(agent.key_since),
            agent.did.to_string(),
        ]
    });
    output::table(&["name", "may", "role", "made", "key since", "did"], rows)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pin_is_set_and_ended_by_its_name() {
        let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
        let there = names(&["a", "b"]);
        assert_eq!(pinned(there.clone(), &names(&["c", "a"]), &names(&["b"])).unwrap(), names(&["a", "c"]));
        assert_eq!(pinned(names(&["a"]), &[], &names(&["a"])).unwrap(), names(&[]));
        assert!(pinned(there, &[], &names(&["x"])).unwrap_err().to_string().contains("--unpin"));
    }
}

//! The names of the owner's own agents, for people in place of their DIDs, and for programs beside them.

use super::values::ValueError;
use super::{CliError, values};
use crate::api::agents::{AgentInfo, AgentName, ListAgents};
use oap_client::OwnerClient;
use oap_identity::Did;
use serde::Serialize;
use std::collections::BTreeMap;
use std::str::FromStr;

/// The agents that there are and were, by DID.
#[derive(Debug, Default)]
pub(super) struct Names(BTreeMap<String, String>);

/// An answer, and the names of the agents in it.
#[derive(Serialize)]
pub(super) struct Named<'a, T> {
    #[serde(flatten)]
    pub answer: &'a T,
    /// By DID.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub agents: BTreeMap<String, String>,
}

impl Names {
    pub(super) async fn of(owner: &OwnerClient) -> Result<Self, CliError> {
        Ok(Self::from(owner.get::<ListAgents>((), &()).await?.agents.as_slice()))
    }

    /// The name of an agent, or the DID of anybody else.
    pub(super) fn who(&self, did: &Did) -> String {
        self.of_text(did.as_str())
    }

    /// The same, of a DID in a document.
    pub(super) fn of_text(&self, did: &str) -> String {
        self.0.get(did).cloned().unwrap_or_else(|| did.to_owned())
    }

    /// An answer with the names of those of its agents that are the owner's.
    pub(super) fn beside<'a, T>(
        &self,
        answer: &'a T,
        dids: impl IntoIterator<Item = &'a str>,
    ) -> Named<'a, T> {
        let named = |did: &str| Some((did.to_owned(), self.0.get(did)?.clone()));
        Named { answer, agents: dids.into_iter().filter_map(named).collect() }
    }
}

impl From<&[AgentInfo]> for Names {
    /// One that was removed may have had the name of another.
    fn from(agents: &[AgentInfo]) -> Self {
        let name = |agent: &AgentInfo| match agent.removed_at {
            None => agent.name.to_string(),
            Some(_) => format!("{} (removed)", agent.name),
        };
        Self(agents.iter().map(|agent| (agent.did.to_string(), name(agent))).collect())
    }
}

/// Somebody by a DID, or one of the owner's agents by its name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Whom {
    Did(Did),
    /// The agent in force, else the last one that had the name.
    Name(AgentName),
}

impl FromStr for Whom {
    type Err = ValueError;

    fn from_str(text: &str) -> Result<Self, ValueError> {
        match text.parse() {
            Ok(name) => Ok(Self::Name(name)),
            Err(_) if text.starts_with("did:") => values::grantee(text).map(Self::Did),
            Err(_) => Err(ValueError::Whom),
        }
    }
}

impl Whom {
    /// Who it is, and which of the owner's agents, if it is one.
    pub(super) async fn find(self, owner: &OwnerClient) -> Result<(Did, Option<AgentInfo>), CliError> {
        let agents = owner.get::<ListAgents>((), &()).await?.agents;
        match self {
            Self::Did(did) => {
                let agent = agents.into_iter().find(|agent| agent.did == did);
                Ok((did, agent))
            }
            Self::Name(name) => {
                let named = agents.into_iter().filter(|agent| agent.name == name);
                let agent = named.max_by_key(|agent| (agent.removed_at.is_none(), agent.created_at));
                let nobody = || {
                    CliError::Other(format!(
                        "{name}: no agent of this name; `oap-memory agent list` shows them"
                    ))
                };
                let agent = agent.ok_or_else(nobody)?;
                Ok((agent.did.clone(), Some(agent)))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn somebody_is_a_did_or_an_agents_name() {
        assert!(matches!("scout".parse(), Ok(Whom::Name(_))));
        assert!(matches!("did:web:contractor.example".parse(), Ok(Whom::Did(_))));
        for text in ["Scout Two", "", "did:wbe:a.example", "contractor.example"] {
            assert!(text.parse::<Whom>().is_err(), "{text}");
        }
    }
}

//! The owner's own agents: made, listed, ended, used, and what each was given.

use super::endpoints;
use super::permission::Permission;
use super::place::Place;
use oap_agents::Tool;
use oap_agents::foreign::Via;
use oap_agents::terms::{Capacities, CapacityChange, Role};
use oap_identity::{Did, GrantId, Hash, ItemId, ReceiptId, Timestamp};
use schemars::JsonSchema;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value};
use std::fmt;
use std::ops::Deref;
use std::str::FromStr;
use strum::VariantNames;

endpoints! {
    /// The owner's agents, oldest first, with those that were removed.
    ListAgents: GET "/oap/owner/agents" needs Admin answers(AgentList);
    /// Makes an agent with a DID of its own. The answer has its API key, which is told this once.
    AddAgent: POST "/oap/owner/agents" needs Admin body(NewAgent) answers(KeyedAgent);
    /// An agent.
    ShowAgent: GET "/oap/owner/agents/{agent}" at(AgentRef) needs Admin answers(AgentInfo);
    /// Sets what an agent may do, what it is to others, and how many entries it may have.
    SetAgent: POST "/oap/owner/agents/{agent}/set" at(AgentRef) needs Admin body(AgentChange) answers(AgentInfo);
    /// Gives an agent another API key, which is told this once; the one before ends.
    RotateAgent: POST "/oap/owner/agents/{agent}/rotate" at(AgentRef) needs Admin answers(KeyedAgent);
    /// Ends an agent and its API key. What it wrote stays.
    RemoveAgent: POST "/oap/owner/agents/{agent}/remove" at(AgentRef) needs Admin answers(AgentInfo);
    /// Uses a memory tool as an agent, with no more than that agent may do.
    CallTool: POST "/oap/owner/agents/{agent}/call" at(AgentRef) needs Admin body(ToolCall) answers(ToolAnswer);
    /// What an agent was given until a time, the last answer first.
    Injected: GET "/oap/owner/agents/{agent}/injected" at(AgentRef) needs Admin query(InjectedQuery) answers(InjectedList);
}

/// Longest name of an agent, in characters.
pub const MAX_AGENT_NAME: usize = 64;

/// The name of an agent: 1 to 64 characters `a-z`, `0-9`, `_`, `-`, beginning with a letter or digit.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "String", into = "String")]
pub struct AgentName(#[schemars(regex(pattern = "^[a-z0-9][a-z0-9_-]{0,63}$"))] String);

/// Not the name of an agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NotAgentName {
    /// Too short, too long, or of other characters.
    #[error("must be 1 to {MAX_AGENT_NAME} characters a-z 0-9 _ -, the first one a letter or digit")]
    Shape,
    /// One that says something else where an agent's name stands.
    #[error("the name is reserved: facts say by it that they are the owner's own word; choose another")]
    Reserved,
}

/// The names that say something else where an agent's name stands.
const TAKEN: [&str; 1] = ["owner"];

impl Deref for AgentName {
    type Target = str;

    fn deref(&self) -> &str {
        &self.0
    }
}

impl FromStr for AgentName {
    type Err = NotAgentName;

    fn from_str(text: &str) -> Result<Self, NotAgentName> {
        let plain = |c: u8| c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, b'_' | b'-');
        let fits = (1..=MAX_AGENT_NAME).contains(&text.len())
            && text.bytes().all(plain)
            && !text.starts_with(['_', '-']);
        match fits {
            true if TAKEN.contains(&text) => Err(NotAgentName::Reserved),
            true => Ok(Self(text.to_owned())),
            false => Err(NotAgentName::Shape),
        }
    }
}

impl TryFrom<String> for AgentName {
    type Error = NotAgentName;

    fn try_from(text: String) -> Result<Self, NotAgentName> {
        text.parse()
    }
}

impl From<AgentName> for String {
    fn from(name: AgentName) -> Self {
        name.0
    }
}

impl fmt::Display for AgentName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// An agent by its name, or by its DID, which a removed one keeps for itself alone.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "String", into = "String")]
#[schemars(with = "String")]
pub enum AgentRef {
    /// By name: the one in force, else the last one that had it.
    Name(AgentName),
    /// By DID.
    Did(Did),
}

/// Neither the name nor the DID of an agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("must be an agent's name or its DID")]
pub struct NotAgentRef;

impl FromStr for AgentRef {
    type Err = NotAgentRef;

    fn from_str(text: &str) -> Result<Self, NotAgentRef> {
        let name = || text.parse().map(Self::Name).map_err(|_| NotAgentRef);
        text.parse().map(Self::Did).or_else(|_| name())
    }
}

impl TryFrom<String> for AgentRef {
    type Error = NotAgentRef;

    fn try_from(text: String) -> Result<Self, NotAgentRef> {
        text.parse()
    }
}

impl From<AgentRef> for String {
    fn from(agent: AgentRef) -> Self {
        agent.to_string()
    }
}

impl fmt::Display for AgentRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Name(name) => name.fmt(f),
            Self::Did(did) => did.fmt(f),
        }
    }
}

impl Place for AgentRef {
    fn text(&self) -> Option<String> {
        Some(self.to_string())
    }

    fn parse(text: Option<&str>) -> Option<Self> {
        text?.parse().ok()
    }
}

/// An agent to make.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NewAgent {
    /// Its name.
    pub name: AgentName,
    /// What it may do; each permission includes those before it.
    pub permission: Permission,
    /// What it is to the other agents.
    #[serde(default, skip_serializing_if = "is_usual")]
    pub role: Role,
    /// How many entries it may have; what is absent is as usual.
    #[serde(default, skip_serializing_if = "CapacityChange::is_empty")]
    pub capacities: CapacityChange,
    /// The did:key of a key that the agent holds itself; what it presents counts with a proof by that key alone. Else one is made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub did: Option<Did>,
}

fn is_usual(role: &Role) -> bool {
    *role == Role::default()
}

impl NewAgent {
    /// One that is as usual but for its permission.
    #[must_use]
    pub fn new(name: AgentName, permission: Permission) -> Self {
        Self { name, permission, role: Role::default(), capacities: CapacityChange::default(), did: None }
    }
}

/// What to set of an agent. What is absent stays.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AgentChange {
    /// What it may do; each permission includes those before it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub permission: Option<Permission>,
    /// What it is to the other agents.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub role: Option<Role>,
    /// How many entries it may have.
    #[serde(default, skip_serializing_if = "CapacityChange::is_empty")]
    pub capacities: CapacityChange,
    /// The namespaces whose episodic entries are never evicted, at most 64.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pinned_namespaces: Option<Vec<String>>,
}

/// An agent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[allow(missing_docs, reason = "the names say it")]
pub struct AgentInfo {
    pub name: AgentName,
    pub did: Did,
    /// What it may do; each permission includes those before it.
    pub permission: Permission,
    /// What it is to the other agents.
    pub role: Role,
    /// How many entries it may have.
    pub capacities: Capacities,
    /// The namespaces whose episodic entries are never evicted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub pinned_namespaces: Vec<String>,
    /// Whether it holds its key itself: what it presents counts with a proof by that key alone.
    pub own_key: bool,
    pub created_at: Timestamp,
    /// When it got the API key that it has.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key_since: Option<Timestamp>,
    /// When it was removed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub removed_at: Option<Timestamp>,
}

/// The owner's agents.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AgentList {
    /// Oldest first.
    pub agents: Vec<AgentInfo>,
}

/// An agent and its new API key.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct KeyedAgent {
    /// The agent.
    #[serde(flatten)]
    pub agent: AgentInfo,
    /// The key, told this once: the gateway keeps its hash alone.
    pub api_key: String,
}

/// A call of a memory tool.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ToolCall {
    /// Which one; with dots in place of underscores too, as RFCs name them.
    #[serde(deserialize_with = "by_name")]
    pub tool: Tool,
    /// Its arguments, as the tool's schema says.
    #[serde(default)]
    pub arguments: Map<String, Value>,
}

fn by_name<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Tool, D::Error> {
    let name = String::deserialize(deserializer)?;
    Tool::of(&name).ok_or_else(|| D::Error::unknown_variant(&name, Tool::VARIANTS))
}

/// What a memory tool answers.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ToolAnswer {
    /// For programs, as the tool's schema says.
    pub structured: Map<String, Value>,
    /// For models: each item in a block of its own, with source and level.
    pub text: String,
}

/// Most answers that one question for what an agent was given is told of.
pub const MAX_INJECTED: usize = 1000;

/// Until when, and how much.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct InjectedQuery {
    /// Until this time; now if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at: Option<Timestamp>,
    /// Only at or after this time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since: Option<Timestamp>,
    /// At most so many answers, 1 to 1000; 20 if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<usize>,
}

/// An item in an answer that an agent was given.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[allow(missing_docs, reason = "the names say it")]
pub struct Handed {
    pub item_id: ItemId,
    /// Of the version that it was given.
    pub commitment: Hash,
    /// That version, where the item's chain still says which one it was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<u32>,
    /// What that version said, as far as it is kept: the beginning, in a line.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub said: Option<String>,
}

/// An answer that an agent was given, as its receipt says.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[allow(missing_docs, reason = "the names say it")]
pub struct InjectedAnswer {
    pub receipt_id: ReceiptId,
    pub at: Timestamp,
    /// By which tool.
    pub tool: String,
    /// What was in it.
    pub items: Vec<Handed>,
    /// The links that it told of, each by the receipt that recorded it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub links: Vec<ReceiptId>,
    /// What of other principals was in it. What they say is not kept here.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub foreign: Vec<HandedForeign>,
}

/// An item of somebody else's in an answer that an agent was given.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[allow(missing_docs, reason = "the names say it")]
pub struct HandedForeign {
    pub item_id: ItemId,
    /// Of the version that it was given.
    pub commitment: Hash,
    /// Whose memory showed it, under which grant.
    pub shown_by: Vec<Via>,
}

/// What an agent was given.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[allow(missing_docs, reason = "the names say it")]
pub struct InjectedList {
    pub agent: AgentInfo,
    /// The answers, the last one first.
    pub answers: Vec<InjectedAnswer>,
    /// The grants that something of other principals was shown under, as far as the wallet has them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub grants: Vec<ShownUnder>,
    /// Whether there are earlier ones that the limit left out.
    pub more: bool,
}

/// A grant of somebody's, in words.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[allow(missing_docs, reason = "the names say it")]
pub struct ShownUnder {
    /// The hash of its document.
    pub grant: Hash,
    pub grant_id: GrantId,
    pub granter: Did,
    /// What for, in its granter's words.
    pub purpose: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_plain_and_a_did_is_none() {
        for name in ["a", "claude-desktop", "0_x", &"a".repeat(MAX_AGENT_NAME)] {
            assert_eq!(name.parse::<AgentName>().unwrap().to_string(), name);
            assert!(matches!(name.parse(), Ok(AgentRef::Name(_))), "{name}");
        }
        for name in ["", "A", "a b", "-a", "_a", "a/b", "owner", "é", &"a".repeat(MAX_AGENT_NAME + 1)] {
            assert!(name.parse::<AgentName>().is_err(), "{name}");
        }
        assert!("owner".parse::<AgentName>().unwrap_err().to_string().contains("reserved"));
        assert!(matches!("did:key:z6Mk".parse(), Ok(AgentRef::Did(_))));
        assert!("did:key:a/b".parse::<AgentRef>().is_err());
    }
}

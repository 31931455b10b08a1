//! `oap-memory workflow`: the memory of an OpenIntent workflow (RFC-0015 section 7), for the owner's own agents.
//!
//! What it says of memory is applied to agents that are there: their room, and the namespaces that are never evicted from. Its plan is not
//! run here, and no agent is made: both are said.

use super::agent::{named, table};
use super::{CliError, Global, output};
use crate::api::agents::{AgentChange, AgentInfo, AgentName, AgentRef, SetAgent, ShowAgent};
use oap_agents::terms::{CapacityChange, MAX_CAPACITY};
use serde::Deserialize;
use serde::de::IgnoredAny;
use std::collections::BTreeMap;
use std::io::Read;
use std::path::{Path, PathBuf};

/// Largest file that is read, in bytes.
const MAX_WORKFLOW: u64 = 256 << 10;

/// What a file is like.
const FORM: &str = "Examples:
  oap-memory workflow apply quarterly.yaml

The file, as far as it is read (capacities are 1 to 10000; `pinned_namespaces` are set as a whole, and [] ends all pins):
  memory:
    episodic_memory: {capacity_per_agent: 500}
  agents:
    scout:
      episodic_memory: {capacity: 50, pinned_namespaces: [learned]}

The agents must be there (`agent add`). Tasks are made by a coordinator, over OpenIntent's dialect.";

/// Workflows of OpenIntent: what they say of your agents' memory
#[derive(clap::Subcommand)]
#[command(after_help = FORM)]
pub(super) enum Workflow {
    /// Set the room of the agents that a workflow names, and what is never evicted
    #[command(after_help = FORM)]
    Apply {
        /// The workflow, in YAML
        file: PathBuf,
    },
}

/// A workflow, as far as memory needs it. What else it says is for whoever runs it.
#[derive(Debug, Deserialize)]
struct Document {
    #[serde(default)]
    memory: Memory,
    #[serde(default)]
    agents: BTreeMap<AgentName, Member>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Memory {
    /// Nothing is to be made for them: a namespace is there with its first entry.
    #[serde(rename = "semantic_namespaces")]
    _semantic_namespaces: Option<Vec<String>>,
    /// Policies of tasks: for whoever makes them.
    #[serde(rename = "working_memory")]
    _working_memory: Option<IgnoredAny>,
    #[serde(default)]
    episodic_memory: Episodic,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Episodic {
    capacity_per_agent: Option<u32>,
    /// Read, so that another is refused.
    #[serde(rename = "eviction_policy")]
    _eviction_policy: Option<Policy>,
}

/// The one that there is.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Policy {
    Lru,
}

#[derive(Debug, Default, Deserialize)]
struct Member {
    episodic_memory: Option<OfAgent>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct OfAgent {
    capacity: Option<u32>,
    pinned_namespaces: Option<Vec<String>>,
}

/// What to set of each agent.
fn read(file: &Path, text: &str) -> Result<Vec<(AgentName, AgentChange)>, CliError> {
    let wrong = |why: String| CliError::File(file.to_owned(), why);
    let form = "; `oap-memory workflow apply --help` shows the form of the file";
    let document: Document =
        serde_yaml_ng::from_str(text).map_err(|error| wrong(format!("{error}{form}")))?;
    let Episodic { capacity_per_agent, .. } = document.memory.episodic_memory;
    let mut changes = Vec::new();
    for (name, member) in document.agents {
        let OfAgent { capacity, pinned_namespaces } = member.episodic_memory.unwrap_or_default();
        let episodic = capacity.or(capacity_per_agent);
        if episodic.is_some_and(|capacity| !(1..=MAX_CAPACITY).contains(&capacity)) {
            return Err(wrong(format!("agents.{name}: a capacity must be 1 to {MAX_CAPACITY}")));
        }
        let capacities = CapacityChange { episodic, ..CapacityChange::default() };
        changes.push((name, AgentChange { capacities, pinned_namespaces, ..AgentChange::default() }));
    }
    if changes.is_empty() { Err(wrong("agents: none is named".to_owned())) } else { Ok(changes) }
}

impl Workflow {
    pub(super) async fn run(self, global: &Global) -> Result<(), CliError> {
        let Self::Apply { file } = self;
        let mut text = String::new();
        let unread = |error: std::io::Error| CliError::File(file.clone(), error.to_string());
        let opened = std::fs::File::open(&file).map_err(unread)?;
        let bytes = opened.take(MAX_WORKFLOW + 1).read_to_string(&mut text).map_err(unread)?;
        if bytes as u64 > MAX_WORKFLOW {
            return Err(CliError::File(file.clone(), format!("is larger than {MAX_WORKFLOW} bytes")));
        }
        let changes = read(&file, &text)?;
        let owner = global.owner().await?;
        // All of them are there, or nothing is set.
        for (name, _) in &changes {
            let agent = AgentRef::Name(name.clone());
            let info = owner.get::<ShowAgent>(agent.clone(), &()).await.map_err(named(&agent))?;
            if info.removed_at.is_some() {
                return Err(CliError::Other(format!(
                    "{name} was removed; `oap-memory agent add` makes another"
                )));
            }
        }
        let mut set: Vec<AgentInfo> = Vec::new();
        for (name, change) in &changes {
            let agent = AgentRef::Name(name.clone());
            set.push(owner.send::<SetAgent>(agent.clone(), change).await.map_err(named(&agent))?);
        }
        output::print(global.json, &set, |set| table(set));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RFC: &str = r"
name: quarterly-compliance
version: '1.0'
memory:
  semantic_namespaces: [company_policies, compliance_rules]
  working_memory:
    archive_on_completion: true
    max_entries_per_task: 50
  episodic_memory:
    capacity_per_agent: 500
    eviction_policy: lru
agents:
  billing-agent:
    capabilities: [billing, invoicing]
    permissions: private
    episodic_memory:
      capacity: 200
      pinned_namespaces: [learned_patterns]
  data-agent:
    capabilities: [data-analysis, sql]
plan:
  - task: gather-financial-data
    agent: data-agent
";

    #[test]
    fn the_rfcs_own_example_is_read() {
        let changes = read(Path::new("f"), RFC).unwrap();
        let [(billing, one), (data, two)] = changes.as_slice() else { panic!("{changes:?}") };
        assert_eq!((&**billing, one.capacities.episodic), ("billing-agent", Some(200)));
        assert_eq!(one.pinned_namespaces.as_deref(), Some(&["learned_patterns".to_owned()][..]));
        assert_eq!(
            (&**data, two.capacities.episodic, &two.pinned_namespaces),
            ("data-agent", Some(500), &None)
        );
    }

    #[test]
    fn the_example_of_the_help_is_read() {
        let example = FORM.lines().skip_while(|line| !line.starts_with("  memory:"));
        let example: Vec<&str> = example.take_while(|line| line.starts_with("  ")).collect();
        let changes = read(Path::new("f"), &example.join("\n")).unwrap();
        let [(scout, change)] = changes.as_slice() else { panic!("{changes:?}") };
        assert_eq!((&**scout, change.capacities.episodic), ("scout", Some(50)));
        assert_eq!(change.pinned_namespaces.as_deref(), Some(&["learned".to_owned()][..]));
        let list = read(Path::new("f"), "agents:\n  - id: scout").unwrap_err().to_string();
        assert!(list.contains("--help"), "{list}");
    }

    #[test]
    fn what_cannot_be_done_is_refused() {
        for (text, names) in [
            ("agents: {}", "agents"),
            ("agents: {a: {episodic_memory: {capacity: 0}}}", "capacity"),
            ("agents: {a: {episodic_memory: {capacity: 10001}}}", "capacity"),
            ("agents: {a: {episodic_memory: {size: 1}}}", "size"),
            ("agents: {A B: {}}", "agents"),
            ("memory: {episodic_memory: {eviction_policy: random}}\nagents: {a: {}}", "random"),
            ("memory: {magic: 1}\nagents: {a: {}}", "magic"),
            ("[", "f"),
        ] {
            let error = read(Path::new("f"), text).unwrap_err().to_string();
            assert!(error.contains(names), "{text}: {error}");
        }
    }
}

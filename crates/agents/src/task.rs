//! Intents and tasks, as far as memory needs them (RFC-0015 6.5, 6.6, 8): read strictly, and who may do what with them.

use crate::entry::{EntryError, MAX_ENTRIES, Must, refused};
use oap_identity::json;
use oap_identity::{IntentId, TaskId};
use oap_memory::closed_enum;
use oap_memory::item::short_text;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// Longest description of an intent or a task, in bytes.
pub const MAX_DESCRIPTION: usize = 4096;
/// Most agents that one task is ever assigned to.
pub const MAX_ASSIGNED: usize = 8;
/// Most namespaces in a list of a guardrail.
pub const MAX_NAMESPACES: usize = 64;
/// Most that the values of the working entries of a task may take together, in units of 1,024 bytes.
pub const MAX_TASK_KB: u32 = 65_536;

closed_enum! {
    /// How far a task is (OpenIntent RFC-0012).
    #[derive(Default)]
    TaskStatus {
        /// Nobody began it.
        #[default]
        Pending = "pending",
        /// It could begin.
        Ready = "ready",
        /// Its agent took it.
        Claimed = "claimed",
        /// Its agent works on it.
        Running = "running",
        /// It waits for something.
        Blocked = "blocked",
        /// It is done.
        Completed = "completed",
        /// It was given up.
        Failed = "failed",
        /// Its coordinator took it back.
        Cancelled = "cancelled",
        /// It was not needed.
        Skipped = "skipped",
    }
}

impl TaskStatus {
    /// Whether a task that is so far is over for good.
    #[must_use]
    pub const fn is_over(self) -> bool {
        matches!(self, Self::Completed | Self::Failed | Self::Cancelled | Self::Skipped)
    }

    /// Whether the agent that a task is assigned to may say so itself.
    #[must_use]
    pub const fn is_workers(self) -> bool {
        matches!(self, Self::Claimed | Self::Running | Self::Blocked | Self::Completed | Self::Failed)
    }

    /// The name of the event that says so.
    #[must_use]
    pub const fn event(self) -> &'static str {
        match self {
            Self::Pending => "task.created",
            Self::Ready => "task.ready",
            Self::Claimed => "task.claimed",
            Self::Running => "task.started",
            Self::Blocked => "task.blocked",
            Self::Completed => "task.completed",
            Self::Failed => "task.failed",
            Self::Cancelled => "task.cancelled",
            Self::Skipped => "task.skipped",
        }
    }
}

/// How working memory behaves for a task (RFC-0015 6.5).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MemoryPolicy {
    /// Whether what is cleared at the end is shown in the intent's log.
    #[serde(default = "yes")]
    pub archive_on_completion: bool,
    /// Whether who works on it reads the working entries of the task above it.
    #[serde(default)]
    pub inherit_from_parent: bool,
    /// Most working entries of each agent for it.
    #[serde(default)]
    pub max_entries: Option<u32>,
    /// Most that their values take together, of each agent, in units of 1,024 bytes.
    #[serde(default)]
    pub max_total_size_kb: Option<u32>,
}

const fn yes() -> bool {
    true
}

impl Default for MemoryPolicy {
    fn default() -> Self {
        Self {
            archive_on_completion: true,
            inherit_from_parent: false,
            max_entries: None,
            max_total_size_kb: None,
        }
    }
}

impl MemoryPolicy {
    fn check(&self) -> Result<(), EntryError> {
        let most = u32::try_from(MAX_ENTRIES).unwrap_or(u32::MAX);
        if self.max_entries.is_some_and(|number| !(1..=most).contains(&number)) {
            return refused("memory_policy.max_entries", Must::Number);
        }
        if self.max_total_size_kb.is_some_and(|number| !(1..=MAX_TASK_KB).contains(&number)) {
            return refused("memory_policy.max_total_size_kb", Must::Kilobytes);
        }
        Ok(())
    }
}

/// What a coordinator binds the agents of an intent to while they work on it (RFC-0015 6.6). It refuses, and never evicts.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Guardrails {
    /// Most working entries of an agent for a task.
    #[serde(default)]
    pub max_working_memory_per_task: Option<u32>,
    /// Beyond so many episodic entries an agent writes no new one.
    #[serde(default)]
    pub max_episodic_memory_per_agent: Option<u32>,
    /// The namespaces that semantic entries may be written in; any if absent.
    #[serde(default)]
    pub allowed_semantic_namespaces: Option<Vec<String>>,
    /// The namespaces that none may be written in.
    #[serde(default)]
    pub denied_semantic_namespaces: Vec<String>,
    /// Whether every task archives what it clears.
    #[serde(default)]
    pub memory_archive_required: bool,
}

impl Guardrails {
    fn check(&self) -> Result<(), EntryError> {
        let is_out = |number: Option<u32>| number.is_some_and(|number| number > crate::terms::MAX_CAPACITY);
        if is_out(self.max_working_memory_per_task) {
            return refused("guardrails.max_working_memory_per_task", Must::Capacity);
        }
        if is_out(self.max_episodic_memory_per_agent) {
            return refused("guardrails.max_episodic_memory_per_agent", Must::Capacity);
        }
        let lists = [
            ("guardrails.allowed_semantic_namespaces", self.allowed_semantic_namespaces.as_deref()),
            ("guardrails.denied_semantic_namespaces", Some(self.denied_semantic_namespaces.as_slice())),
        ];
        for (field, names) in lists {
            let names = names.unwrap_or_default();
            if names.len() > MAX_NAMESPACES {
                return refused(field, Must::Namespaces);
            }
            names.iter().try_for_each(|name| match short_text(name) {
                Ok(_) => Ok(()),
                Err(error) => refused(field, error),
            })?;
        }
        Ok(())
    }

    /// Whether a semantic entry may be written in a namespace.
    #[must_use]
    pub fn admits(&self, namespace: &str) -> bool {
        let is_named = |names: &[String]| names.iter().any(|name| name == namespace);
        !is_named(&self.denied_semantic_namespaces)
            && self.allowed_semantic_namespaces.as_deref().is_none_or(is_named)
    }
}

/// An intent to make.
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names say it")]
pub struct NewIntent {
    pub title: String,
    pub description: String,
    /// Who makes it, as it says itself.
    pub created_by: Option<String>,
    pub guardrails: Guardrails,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct GivenIntent {
    title: Option<String>,
    description: Option<String>,
    created_by: Option<String>,
    guardrails: Option<Guardrails>,
    // The client of OpenIntent sends both, empty. What they could say is not kept here.
    constraints: Option<Map<String, Value>>,
    state: Option<Map<String, Value>>,
}

impl NewIntent {
    /// Reads an intent to make.
    ///
    /// # Errors
    /// [`EntryError`], naming the field.
    pub fn read(text: &[u8]) -> Result<Self, EntryError> {
        let given: GivenIntent = json::from_value(object(text)?)?;
        for (field, said) in [("constraints", given.constraints), ("state", given.state)] {
            if said.is_some_and(|said| !said.is_empty()) {
                return refused(field, Must::Empty);
            }
        }
        let guardrails = given.guardrails.unwrap_or_default();
        guardrails.check()?;
        let title = given.title.ok_or(EntryError::Field("title", Must::Required))?;
        let title = short_text(&title).or_else(|error| refused("title", error))?;
        Ok(Self {
            title,
            description: described(given.description)?,
            created_by: given.created_by,
            guardrails,
        })
    }
}

/// A task to make.
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names say it")]
pub struct NewTask {
    pub intent_id: IntentId,
    pub name: String,
    pub description: String,
    pub assigned_agent: Option<String>,
    pub parent_task_id: Option<TaskId>,
    pub memory_policy: MemoryPolicy,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct GivenTask {
    intent_id: Option<String>,
    name: Option<String>,
    description: Option<String>,
    assigned_agent: Option<String>,
    parent_task_id: Option<String>,
    memory_policy: Option<MemoryPolicy>,
}

impl NewTask {
    /// Reads a task to make. An intent or a parent that is none by its form alone is told as one that is not there is.
    ///
    /// # Errors
    /// [`EntryError`], naming the field.
    pub fn read(text: &[u8]) -> Result<Self, EntryError> {
        let given: GivenTask = json::from_value(object(text)?)?;
        let intent = given.intent_id.ok_or(EntryError::Field("intent_id", Must::Required))?;
        let memory_policy = given.memory_policy.unwrap_or_default();
        memory_policy.check()?;
        let name = given.name.ok_or(EntryError::Field("name", Must::Required))?;
        let parent =
            given.parent_task_id.map(|id| id.parse().or_else(|_| refused("parent_task_id", Must::There)));
        Ok(Self {
            intent_id: intent.parse().or_else(|_| refused("intent_id", Must::There))?,
            name: short_text(&name).or_else(|error| refused("name", error))?,
            description: described(given.description)?,
            assigned_agent: given.assigned_agent,
            parent_task_id: parent.transpose()?,
            memory_policy,
        })
    }
}

/// What to change of a task. What is absent stays.
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names say it")]
pub struct TaskChange {
    pub status: Option<TaskStatus>,
    pub assigned_agent: Option<String>,
    pub memory_policy: Option<MemoryPolicy>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct GivenChange {
    status: Option<TaskStatus>,
    assigned_agent: Option<String>,
    memory_policy: Option<MemoryPolicy>,
}

impl TaskChange {
    /// Reads a change.
    ///
    /// # Errors
    /// [`EntryError`], naming the field.
    pub fn read(text: &[u8]) -> Result<Self, EntryError> {
        let GivenChange { status, assigned_agent, memory_policy } = json::from_value(object(text)?)?;
        memory_policy.iter().try_for_each(MemoryPolicy::check)?;
        Ok(Self { status, assigned_agent, memory_policy })
    }

    /// Whether the agent that a task is assigned to may make it; its coordinator may make any.
    #[must_use]
    pub fn is_workers(&self) -> bool {
        self.assigned_agent.is_none()
            && self.memory_policy.is_none()
            && self.status.is_none_or(TaskStatus::is_workers)
    }
}

fn object(text: &[u8]) -> Result<Value, EntryError> {
    match json::parse(text) {
        Ok(value @ Value::Object(_)) => Ok(value),
        Ok(_) => Err(EntryError::NotJson(json::JsonError::Invalid("not an object".to_owned()))),
        Err(error) => Err(EntryError::NotJson(error)),
    }
}

fn described(text: Option<String>) -> Result<String, EntryError> {
    let text = text.unwrap_or_default();
    if text.len() > MAX_DESCRIPTION { refused("description", Must::Description) } else { Ok(text) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_intent_is_read_as_the_client_sends_it() {
        let read = NewIntent::read(
            br#"{"title":"t","description":"","constraints":{},"state":{},"created_by":"scout"}"#,
        );
        assert_eq!(read.unwrap().guardrails, Guardrails::default());
        for (text, field) in [
            (r#"{}"#, "title"),
            (r#"{"title":""}"#, "title"),
            (r#"{"title":"t","state":{"a":1}}"#, "state"),
            (r#"{"title":"t","governance_policy":{}}"#, "governance_policy"),
            (r#"{"title":"t","guardrails":{"max_everything":1}}"#, "max_everything"),
            (r#"{"title":"t","guardrails":{"denied_semantic_namespaces":[""]}}"#, "denied"),
            (r#"{"title":"t","guardrails":{"max_episodic_memory_per_agent":10001}}"#, "max_episodic"),
        ] {
            let error = NewIntent::read(text.as_bytes()).unwrap_err().to_string();
            assert!(error.contains(field), "{text}: {error}");
        }
    }

    #[test]
    fn a_task_is_read_strictly() {
        let intent = IntentId::from_bytes([1; 16]);
        let read =
            |more: &str| NewTask::read(format!(r#"{{"intent_id":"{intent}","name":"n"{more}}}"#).as_bytes());
        assert_eq!(read("").unwrap().memory_policy, MemoryPolicy::default());
        let policy = read(r#","memory_policy":{"inherit_from_parent":true,"max_entries":null}"#)
            .unwrap()
            .memory_policy;
        assert!(policy.archive_on_completion && policy.inherit_from_parent);
        for (more, field) in [
            (r#","memory_policy":{"max_entries":0}"#, "max_entries"),
            (r#","memory_policy":{"max_total_size_kb":0}"#, "max_total_size_kb"),
            (r#","parent_task_id":"x""#, "parent_task_id"),
            (r#","status":"completed""#, "status"),
        ] {
            let error = read(more).unwrap_err().to_string();
            assert!(error.contains(field), "{more}: {error}");
        }
        assert!(
            NewTask::read(br#"{"intent_id":"x","name":"n"}"#).unwrap_err().to_string().contains("intent_id")
        );
    }

    #[test]
    fn a_worker_says_how_far_it_is_and_no_more() {
        let change = |text: &str| TaskChange::read(text.as_bytes()).unwrap();
        for status in TaskStatus::ALL {
            let said = change(&format!(r#"{{"status":"{status}"}}"#));
            assert_eq!(said.is_workers(), status.is_workers(), "{status}");
        }
        assert!(!change(r#"{"status":"running","assigned_agent":"me"}"#).is_workers());
        assert!(!change(r#"{"memory_policy":{}}"#).is_workers());
        let over: Vec<_> =
            TaskStatus::ALL.iter().filter(|status| status.is_over()).map(|s| s.as_str()).collect();
        assert_eq!(over, ["completed", "failed", "cancelled", "skipped"]);
    }

    #[test]
    fn guardrails_name_namespaces() {
        let rails = |allowed: Option<&[&str]>, denied: &[&str]| Guardrails {
            allowed_semantic_namespaces: allowed.map(|names| names.iter().map(|n| (*n).to_owned()).collect()),
            denied_semantic_namespaces: denied.iter().map(|n| (*n).to_owned()).collect(),
            ..Guardrails::default()
        };
        assert!(rails(None, &["a"]).admits("b") && !rails(None, &["a"]).admits("a"));
        assert!(rails(Some(&["a"]), &[]).admits("a") && !rails(Some(&["a"]), &[]).admits("b"));
        assert!(!rails(Some(&["a"]), &["a"]).admits("a") && !rails(Some(&[]), &[]).admits("a"));
    }
}

//! Intents and tasks, and what they let an agent read of another's entries (docs/openintent.md).
//!
//! A task is open until it is completed, failed, cancelled or skipped. While it is open its coordinator reads the working entries that
//! were written for it and the episodic ones of the agent that works on it; that agent reads what those before it wrote for it. All of
//! this rests on the coordinator's role, as it is when something is read. Nobody writes by this, and what is `restricted` stays its
//! author's.

use crate::error::Error;
use crate::state::schema::{self, AGENTS, AgentKey, INTENTS, TASKS, TASKS_OF};
use crate::state::terms::terms;
use oap_agents::task::{Guardrails, MemoryPolicy, TaskStatus};
use oap_agents::terms::Role;
use oap_identity::{Did, IntentId, TaskId, Timestamp};
use oap_memory::item::Sensitivity;
use oap_memory::record::{Head, Tier};
use oap_store::{Range, Rows, Store, Tx};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// Most intents of one coordinator that are kept.
pub const MAX_INTENTS: usize = 200;
/// Most tasks of an intent.
pub const MAX_TASKS: usize = 500;
/// Most open tasks that an agent coordinates. So many of one coordinator's may be assigned to another, and they take nothing of what that
/// one coordinates itself, or others give it.
pub const MAX_OPEN: usize = 100;
/// Most working entries of an agent that are kept once they were archived; beyond it the first ones are erased before their time.
pub const MAX_ARCHIVED: usize = 5000;

/// An intent as it is stored.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoredIntent {
    pub(crate) title: String,
    pub(crate) description: String,
    /// Who made it.
    pub(crate) coordinator: Did,
    pub(crate) guardrails: Guardrails,
    pub(crate) created_at: Timestamp,
    /// How many of its tasks are open.
    pub(crate) open: u32,
    /// When a task of it was last made or changed.
    pub(crate) touched_at: Timestamp,
}

/// A task as it is stored.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoredTask {
    pub(crate) intent: IntentId,
    pub(crate) name: String,
    pub(crate) description: String,
    pub(crate) coordinator: Did,
    /// Whom it is assigned to.
    pub(crate) assigned: Option<Did>,
    /// Whom it is or was assigned to, the first one first.
    pub(crate) agents: Vec<Did>,
    pub(crate) parent: Option<TaskId>,
    pub(crate) policy: MemoryPolicy,
    pub(crate) status: TaskStatus,
    /// From 1; each change makes it more.
    pub(crate) version: u32,
    pub(crate) created_at: Timestamp,
    pub(crate) updated_at: Timestamp,
}

impl StoredTask {
    /// Whether it is under way still.
    pub(crate) const fn is_open(&self) -> bool {
        !self.status.is_over()
    }

    /// Whether an agent may know of it.
    pub(crate) fn is_known_to(&self, agent: &Did) -> bool {
        self.coordinator == *agent || self.agents.contains(agent)
    }

    /// Whether an agent coordinates it or is assigned to it.
    pub(crate) fn is_of(&self, agent: &Did) -> bool {
        self.coordinator == *agent || self.assigned.as_ref() == Some(agent)
    }

    /// Whether another than this agent is or was on it.
    pub(crate) fn has_others(&self, than: &Did) -> bool {
        self.agents.iter().any(|agent| agent != than)
    }
}

/// Whether an agent coordinates for others: it is there, and has the role.
pub(crate) fn leads(rows: &impl Rows, agent: &Did) -> Result<bool, Error> {
    let is_there = AGENTS.get(rows, agent)?.is_some_and(|agent| agent.is_there());
    Ok(is_there && terms(rows, agent)?.role == Role::Coordinator)
}

/// Whether nobody is left who may end a task as its coordinator: that one was removed, or others are or were on it and it has the role no
/// more.
pub(crate) fn is_orphan(rows: &impl Rows, task: &StoredTask) -> Result<bool, Error> {
    let by = &task.coordinator;
    let is_there = AGENTS.get(rows, by)?.is_some_and(|agent| agent.is_there());
    Ok(!is_there || (task.has_others(by) && !leads(rows, by)?))
}

/// The open tasks that an agent coordinates or is assigned to, as last committed.
pub(crate) fn tasks_of(store: &Store, agent: &Did) -> Result<Vec<(TaskId, StoredTask)>, Error> {
    let mut found = Vec::new();
    for key in TASKS_OF.keys(store, Range::under(&schema::agent(agent.as_str()))) {
        let (_, id) = key?;
        found.extend(TASKS.get(store, &id)?.map(|task| (id, task)));
    }
    Ok(found)
}

/// The same, as they stand in a transaction.
pub(crate) fn tasks_in(tx: &Tx, store: &Store, agent: &Did) -> Result<Vec<(TaskId, StoredTask)>, Error> {
    let agent: AgentKey = schema::agent(agent.as_str());
    let written = TASKS_OF.written(tx);
    let mut ids = BTreeSet::new();
    for key in TASKS_OF.keys(store, Range::under(&agent)) {
        let (_, id) = key?;
        if !written.contains(&(agent, id)) || TASKS_OF.contains(tx, &(agent, id))? {
            ids.insert(id);
        }
    }
    for (whose, id) in written {
        if whose == agent && TASKS_OF.contains(tx, &(whose, id))? {
            ids.insert(id);
        }
    }
    let mut found = Vec::new();
    for id in ids {
        found.extend(TASKS.get(tx, &id)?.map(|task| (id, task)));
    }
    Ok(found)
}

/// A task by the text that an entry names it by, where an agent is on it. Any other text is a name that says nothing here.
pub(crate) fn task_named(
    rows: &impl Rows,
    name: Option<&str>,
    agent: &Did,
) -> Result<Option<(TaskId, StoredTask)>, Error> {
    let Some(id) = name.and_then(|name| name.parse::<TaskId>().ok()) else { return Ok(None) };
    let task = TASKS.get(rows, &id)?.filter(|task| task.agents.contains(agent));
    Ok(task.map(|task| (id, task)))
}

/// What an agent reads of others' entries, by its open tasks.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Reach {
    /// What it rests on: who coordinates for others and who does not, and the tasks as they were.
    leads: BTreeMap<Did, bool>,
    tasks: Vec<(TaskId, u32)>,
    /// Whose working entries, by the task that they were written for.
    working: BTreeMap<TaskId, BTreeSet<Did>>,
    /// Whose episodic entries.
    episodic: BTreeSet<Did>,
}

impl Reach {
    /// That of an agent, as rows have its tasks.
    pub(crate) fn of(rows: &impl Rows, tasks: &[(TaskId, StoredTask)], agent: &Did) -> Result<Self, Error> {
        let mut reach = Self::default();
        reach.note(rows, agent)?;
        for (id, task) in tasks.iter().filter(|(_, task)| task.is_open()) {
            let coordinates = task.coordinator == *agent;
            let works = task.assigned.as_ref() == Some(agent);
            // Who has no role lets nobody read what others wrote, itself neither.
            if !(coordinates || works) || !reach.note(rows, &task.coordinator)? {
                continue;
            }
            reach.tasks.push((*id, task.version));
            reach.working.entry(*id).or_default().extend(task.agents.iter().cloned());
            if coordinates {
                reach.episodic.extend(task.assigned.clone());
            }
            if let (true, true, Some(above)) = (works, task.policy.inherit_from_parent, task.parent)
                && let Some(parent) = TASKS.get(rows, &above)?.filter(StoredTask::is_open)
                && parent.coordinator == task.coordinator
            {
                reach.tasks.push((above, parent.version));
                reach.working.entry(above).or_default().extend(parent.agents);
            }
        }
        Ok(reach)
    }

    /// Whether an agent coordinates for others; from here on it rests on that.
    pub(crate) fn note(&mut self, rows: &impl Rows, agent: &Did) -> Result<bool, Error> {
        if let Some(known) = self.leads.get(agent) {
            return Ok(*known);
        }
        let leads = leads(rows, agent)?;
        self.leads.insert(agent.clone(), leads);
        Ok(leads)
    }

    /// Rests on a task as it is, too.
    pub(crate) fn lean_on(&mut self, id: TaskId, version: u32) {
        self.tasks.push((id, version));
    }

    /// Whether it may read an entry of another's, as far as the head says; of a working one the task is to be asked for as well.
    pub(crate) fn may_hold(&self, head: &Head) -> bool {
        let author = &*head.meta.author;
        // What the guard marked stays with its author until the owner accepts it.
        head.sensitivity != Sensitivity::Restricted
            && !head.meta.needs_verification
            && match head.meta.tier {
                Tier::Working => self.working.values().any(|authors| authors.contains(author)),
                Tier::Episodic => self.episodic.contains(author),
                Tier::Semantic => false,
            }
    }

    /// Whether it reads the working entries that somebody wrote for a task.
    pub(crate) fn holds(&self, task: Option<&str>, author: &Did) -> bool {
        let task = task.and_then(|task| task.parse::<TaskId>().ok());
        task.and_then(|task| self.working.get(&task)).is_some_and(|authors| authors.contains(author))
    }

    /// That what it rests on is so still.
    ///
    /// # Errors
    /// [`Error::Overtaken`].
    pub(crate) fn stands(&self, rows: &impl Rows) -> Result<(), Error> {
        for (agent, did_lead) in &self.leads {
            if leads(rows, agent)? != *did_lead {
                return Err(Error::Overtaken);
            }
        }
        for (id, version) in &self.tasks {
            if TASKS.get(rows, id)?.is_none_or(|task| task.version != *version) {
                return Err(Error::Overtaken);
            }
        }
        Ok(())
    }
}

/// The guardrails that bind an agent: those of the intents of the open tasks that it is assigned to.
pub(crate) fn guardrails(
    rows: &impl Rows,
    tasks: &[(TaskId, StoredTask)],
    agent: &Did,
) -> Result<Vec<(IntentId, Guardrails)>, Error> {
    let on = tasks.iter().filter(|(_, task)| task.is_open() && task.assigned.as_ref() == Some(agent));
    let intents: BTreeSet<IntentId> = on.map(|(_, task)| task.intent).collect();
    let mut found = Vec::new();
    for id in intents {
        let Some(intent) = INTENTS.get(rows, &id)? else { continue };
        // Who has no role any more binds nobody else.
        if intent.coordinator == *agent || leads(rows, &intent.coordinator)? {
            found.push((id, intent.guardrails));
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::state::agents::StoredAgent;
    use crate::state::owner::Permission;
    use oap_identity::random::Seeded;
    use std::sync::Arc;

    impl Reach {
        fn is_empty(&self) -> bool {
            self.working.is_empty() && self.episodic.is_empty()
        }
    }

    fn did(name: &str) -> Did {
        format!("did:web:{name}.example").parse().unwrap()
    }

    fn task(assigned: &str, agents: &[&str], status: TaskStatus) -> StoredTask {
        let at = Timestamp::from_millis(0);
        StoredTask {
            intent: IntentId::from_bytes([9; 16]),
            name: "t".to_owned(),
            description: String::new(),
            coordinator: did("lead"),
            assigned: Some(did(assigned)),
            agents: agents.iter().map(|name| did(name)).collect(),
            parent: None,
            policy: MemoryPolicy::default(),
            status,
            version: 1,
            created_at: at,
            updated_at: at,
        }
    }

    /// Who reads what by a task, as it is open or over; without the role nobody reads another's by coordinating.
    #[tokio::test]
    async fn reach_ends_with_the_task_and_the_role() {
        let store = Store::in_memory(Arc::new(Seeded::new(1))).unwrap();
        let id = TaskId::from_bytes([1; 16]);
        let text = id.to_string();
        let reach =
            |who: &str, task: &StoredTask| Reach::of(&store, &[(id, task.clone())], &did(who)).unwrap();
        let open = task("b", &["a", "b"], TaskStatus::Running);
        // No role, no reach: neither for the coordinator, nor for whom it gave the task to.
        assert!(reach("lead", &open).is_empty() && reach("b", &open).is_empty());
        let terms = crate::state::terms::Terms { role: Role::Coordinator, ..Default::default() };
        store.transact(move |tx| schema::TERMS.put(tx, &did("lead"), &terms)).await.unwrap();
        // Nor where it is not there.
        assert!(reach("lead", &open).is_empty() && reach("b", &open).is_empty());
        let at = Timestamp::from_millis(0);
        let lead = StoredAgent::with_own_key("lead".parse().unwrap(), Permission::Write, at);
        store.transact(move |tx| AGENTS.put(tx, &did("lead"), &lead)).await.unwrap();
        let of_b = reach("b", &open);
        assert!(of_b.holds(Some(&text), &did("a")) && !of_b.holds(Some("task_x"), &did("a")));
        assert!(!of_b.holds(None, &did("a")) && !of_b.holds(Some(&text), &did("c")));
        // Who had it before reads nothing of who has it now.
        assert!(reach("a", &open).is_empty());
        let of_lead = reach("lead", &open);
        assert!(of_lead.holds(Some(&text), &did("a")) && of_lead.episodic == BTreeSet::from([did("b")]));
        for over in TaskStatus::ALL.iter().filter(|status| status.is_over()) {
            let over = task("b", &["a", "b"], *over);
            assert!(reach("lead", &over).is_empty() && reach("b", &over).is_empty());
        }
    }
}

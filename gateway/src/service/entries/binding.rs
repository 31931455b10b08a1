//! What the tasks of an agent bind its writes to: how much a task takes, that it is open, and the guardrails of its intent.
//!
//! What is counted is the agent's own alone, so that no refusal tells what others have. A guardrail refuses; it never evicts.

use super::capacity::News;
use super::planning::{Step, Stop};
use super::{Full, is_seen, value_of};
use crate::error::{Conflict, Error};
use crate::service::items::{InForce, whole};
use crate::service::tools::looking::Looking;
use crate::state::agents::Agent;
use crate::state::commits::Writing;
use crate::state::events::{StoredEvent, What};
use crate::state::gateway::Gateway;
use crate::state::owner::mark::Write;
use crate::state::schema::{self, TASKS};
use crate::state::tasks::{StoredTask, guardrails, task_named, tasks_in, tasks_of};
use oap_agents::entry::{Context, MAX_ENTRIES, Opaque};
use oap_agents::namespaces::Access;
use oap_agents::task::Guardrails;
use oap_identity::{IntentId, ItemId, TaskId};
use oap_memory::record::{Head, Tier};
use std::collections::{BTreeMap, BTreeSet};

/// What a write was found to be within, to be read again with its commit.
#[derive(Debug, Default)]
pub(super) struct Bound {
    tasks: BTreeSet<(TaskId, u32)>,
    /// Those that the entries name: the agent may have been taken off one of them.
    named: BTreeSet<(TaskId, u32)>,
    /// The guardrails of their intents, which end with the role of who coordinates those.
    rails: Vec<(IntentId, Guardrails)>,
    /// The agent's working entries that nobody took back, each with its last link, where they were counted.
    working: Option<BTreeSet<(ItemId, u32)>>,
    /// Its episodic ones, where they were counted. What becomes of each says nothing of how many there are.
    episodic: Option<BTreeSet<ItemId>>,
}

/// What is written for a task.
struct ForTask<'a> {
    steps: Vec<&'a Step>,
    /// How many entries it takes of an agent.
    entries: usize,
    kilobytes: Option<usize>,
}

impl ForTask<'_> {
    fn of(task: &StoredTask, rails: &[(IntentId, Guardrails)]) -> Self {
        let rail = rails.iter().find(|(intent, _)| *intent == task.intent);
        let most = rail.and_then(|(_, rails)| rails.max_working_memory_per_task);
        let number = |most: u32| usize::try_from(most).ok();
        // Its end takes all of them back in one transaction: no guardrail makes them more than a task takes by itself.
        let said = [task.policy.max_entries, most].into_iter().flatten().filter_map(number);
        Self {
            steps: Vec::new(),
            entries: said.min().unwrap_or(MAX_ENTRIES).min(MAX_ENTRIES),
            kilobytes: task.policy.max_total_size_kb.and_then(number),
        }
    }

    /// What of the task is full with these writes; `sizes` are those of the agent's entries for it.
    fn full(&self, mut sizes: BTreeMap<ItemId, usize>) -> Option<Full> {
        let (count, size) = (sizes.len(), sizes.values().sum::<usize>());
        for step in &self.steps {
            sizes.insert(step.entry.id, step.entry.value.as_str().len());
        }
        let max_capacity = self.entries;
        if sizes.len() > count && sizes.len() > max_capacity {
            return Some(Full { current_count: count, max_capacity, of: "working entries of the task" });
        }
        let after: usize = sizes.values().sum();
        let max_capacity = self.kilobytes.filter(|most| after > size && after.div_ceil(1024) > *most)?;
        let of = "units of 1,024 bytes of working entries of the task";
        Some(Full { current_count: size.div_ceil(1024), max_capacity, of })
    }
}

impl Looking<'_> {
    /// That these writes are within what the agent's tasks bind it to; or what stands in the way.
    pub(super) fn bind(
        &self,
        agent: &Agent<Write>,
        steps: &[Step],
        news: &News,
    ) -> Result<Result<Bound, Stop>, Error> {
        let store = &self.gateway.store;
        let tasks = tasks_of(store, agent.did())?;
        let rails = guardrails(store, &tasks, agent.did())?;
        let mut bound = Bound { tasks: versions(&tasks), rails: rails.clone(), ..Bound::default() };
        let mut by_task: BTreeMap<String, ForTask<'_>> = BTreeMap::new();
        for step in steps {
            let entry = &step.entry;
            let is_pad = entry.memory_type == Tier::Working;
            if entry.memory_type == Tier::Semantic
                && let Some((intent, rail)) = refuses(&rails, &entry.namespace)
            {
                return Ok(Err(Stop::Rail(intent, rail)));
            }
            let named = task_named(store, entry.scope.task_id.as_deref(), agent.did())?;
            let Some((id, task)) = named else { continue };
            bound.named.insert((id, task.version));
            // What is to end with a task that is over would never end.
            let ends_with_it = entry.ttl.as_deref() == Some("task_lifetime") && step.sets_end;
            if !task.is_open() && (is_pad || ends_with_it) {
                return Ok(Err(Stop::Over));
            }
            if is_pad {
                if task.assigned.as_ref() != Some(agent.did()) {
                    return Ok(Err(Stop::Taken));
                }
                by_task.entry(id.to_string()).or_insert_with(|| ForTask::of(&task, &rails)).steps.push(step);
            }
        }
        let more = news.get(&Tier::Episodic).copied().unwrap_or_default();
        let most = rails.iter().filter_map(|(_, rails)| rails.max_episodic_memory_per_agent).min();
        if let Some(most) = most.filter(|_| more > 0) {
            let own = self.gateway.heads.own(agent.did(), Tier::Episodic);
            bound.episodic = Some(own.iter().map(|head| head.item_id).collect());
            let current_count = own.iter().filter(|head| is_seen(agent, head, self.now)).count();
            let max_capacity = usize::try_from(most).unwrap_or(usize::MAX);
            if current_count + more > max_capacity {
                let of = "episodic entries under a guardrail of an intent";
                return Ok(Err(Stop::Full(Full { current_count, max_capacity, of })));
            }
        }
        if by_task.is_empty() {
            return Ok(Ok(bound));
        }
        let mut own = self.gateway.heads.own(agent.did(), Tier::Working);
        bound.working = Some(own.iter().map(|head| (head.item_id, head.seq)).collect());
        own.retain(|head| is_seen(agent, head, self.now));
        let is_free = |of: &ForTask<'_>| of.entries == MAX_ENTRIES && of.kilobytes.is_none();
        if by_task.values().all(is_free) && own.len() + steps.len() <= MAX_ENTRIES {
            return Ok(Ok(bound));
        }
        // Each entry is opened once, however many tasks are named.
        let mut sizes: BTreeMap<String, BTreeMap<ItemId, usize>> = BTreeMap::new();
        for head in own {
            let Some(seen) = self.seen(head)? else { continue };
            let task = Context::of(&seen.whole).scope.task_id.filter(|name| by_task.contains_key(name));
            if let Some(name) = task {
                let size = value_of(&seen.whole).as_str().len();
                sizes.entry(name).or_default().insert(seen.head.item_id, size);
            }
        }
        for (name, of) in by_task {
            if let Some(full) = of.full(sizes.remove(&name).unwrap_or_default()) {
                return Ok(Err(Stop::Full(full)));
            }
        }
        Ok(Ok(bound))
    }
}

/// That what an agent's tasks bind it to lets it correct an item by a memory tool, as by the entry's own door. What is no entry is bound
/// by nothing.
///
/// # Errors
/// [`Error::Guardrail`], [`Error::Conflict`].
pub(crate) fn may_correct(
    gateway: &Gateway,
    agent: &Agent<Write>,
    before: &InForce,
    text: &str,
) -> Result<(), Error> {
    let meta = &before.head.meta;
    let (Some(namespace), Some(_)) = (&meta.namespace, &meta.key) else { return Ok(()) };
    let store = &gateway.store;
    match meta.tier {
        Tier::Episodic => Ok(()),
        Tier::Semantic => {
            let rails = guardrails(store, &tasks_of(store, agent.did())?, agent.did())?;
            refuses(&rails, namespace).map_or(Ok(()), |(_, rail)| Err(Error::Guardrail(rail)))
        }
        Tier::Working => {
            let said = whole(&before.committed)?;
            let name = Context::of(&said).scope.task_id;
            let Some((_, task)) = task_named(store, name.as_deref(), agent.did())? else { return Ok(()) };
            let value = Opaque::read(text).unwrap_or_else(|_| Opaque::of_text(text));
            let is_more = value.as_str().len() > value_of(&said).as_str().len();
            if !task.is_open() {
                Err(Error::Conflict(Conflict::TaskOver))
            } else if task.assigned.as_ref() != Some(agent.did()) {
                Err(Error::Conflict(Conflict::TaskTaken))
            } else if task.policy.max_total_size_kb.is_some() && is_more {
                Err(Error::Conflict(Conflict::TaskSize))
            } else {
                Ok(())
            }
        }
    }
}

impl Writing<'_, '_> {
    /// That the guardrails which bind an agent and the permissions of namespaces let it link an item, or to it: what it says of a semantic
    /// entry stands in that one's namespace.
    ///
    /// # Errors
    /// [`Error::Guardrail`], [`Error::NamespaceAccess`].
    pub(crate) fn may_link(&self, agent: &Agent<Write>, head: &Head) -> Result<(), Error> {
        let meta = &head.meta;
        let (Tier::Semantic, Some(namespace), Some(_)) = (meta.tier, &meta.namespace, &meta.key) else {
            return Ok(());
        };
        if agent.sight().access(namespace) < Access::Write {
            return Err(Error::NamespaceAccess);
        }
        let tasks = tasks_in(self.tx, &self.gateway.store, agent.did())?;
        let rails = guardrails(self.tx, &tasks, agent.did())?;
        refuses(&rails, namespace).map_or(Ok(()), |(_, rail)| Err(Error::Guardrail(rail)))
    }
}

fn versions(tasks: &[(TaskId, StoredTask)]) -> BTreeSet<(TaskId, u32)> {
    tasks.iter().map(|(id, task)| (*id, task.version)).collect()
}

/// The first guardrail that refuses a semantic entry of a namespace.
fn refuses(rails: &[(IntentId, Guardrails)], namespace: &str) -> Option<(IntentId, &'static str)> {
    let (intent, rails) = rails.iter().find(|(_, rails)| !rails.admits(namespace))?;
    let is_denied = rails.denied_semantic_namespaces.iter().any(|name| name == namespace);
    Some((*intent, if is_denied { "denied_semantic_namespaces" } else { "allowed_semantic_namespaces" }))
}

impl Writing<'_, '_> {
    /// That what an agent's writes are bound to is as it was when they were prepared.
    pub(super) fn stays_bound(&self, agent: &Agent<Write>, bound: &Bound) -> Result<(), Error> {
        let tasks = tasks_in(self.tx, &self.gateway.store, agent.did())?;
        let own = |tier| self.entries_of(&[agent.did().clone()], &[tier]);
        let working = bound.working.as_ref().map(|_| own(Tier::Working)).transpose()?;
        let episodic = bound.episodic.as_ref().map(|_| own(Tier::Episodic)).transpose()?;
        let episodic: Option<BTreeSet<ItemId>> =
            episodic.map(|there| there.into_iter().map(|(item, _)| item).collect());
        for (id, version) in &bound.named {
            if TASKS.get(self.tx, id)?.is_none_or(|task| task.version != *version) {
                return Err(Error::Overtaken);
            }
        }
        let is_same = versions(&tasks) == bound.tasks
            && guardrails(self.tx, &tasks, agent.did())? == bound.rails
            && working == bound.working
            && episodic == bound.episodic;
        if is_same { Ok(()) } else { Err(Error::Overtaken) }
    }

    /// Notes in the log of an intent that a guardrail refused a write.
    pub(super) fn tell_of_refusal(
        &mut self,
        intent: IntentId,
        rail: &str,
        agent: &Agent<Write>,
    ) -> Result<(), Error> {
        let event = StoredEvent {
            what: What::Refused(rail.to_owned()),
            at: self.now,
            agent: agent.did().clone(),
            actor: self.actor.clone(),
            task: None,
            intent: Some(intent),
        };
        self.tell_log(intent, &event)?;
        self.tell(schema::agent(agent.did().as_str()), &event)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use oap_agents::task::{MemoryPolicy, TaskStatus};
    use oap_identity::{Did, Timestamp};

    /// What a policy and a guardrail say bounds a task, each further; neither gives it more than a task takes by itself.
    #[test]
    fn no_guardrail_lifts_the_bound_of_a_task() {
        let (lead, at): (Did, _) = ("did:web:lead.example".parse().unwrap(), Timestamp::from_millis(0));
        let intent = IntentId::from_bytes([9; 16]);
        let entries = |policy: Option<u32>, rail: Option<u32>| {
            let task = StoredTask {
                intent,
                name: "t".to_owned(),
                description: String::new(),
                coordinator: lead.clone(),
                assigned: None,
                agents: Vec::new(),
                parent: None,
                policy: MemoryPolicy { max_entries: policy, ..MemoryPolicy::default() },
                status: TaskStatus::Running,
                version: 1,
                created_at: at,
                updated_at: at,
            };
            let rails = Guardrails { max_working_memory_per_task: rail, ..Guardrails::default() };
            ForTask::of(&task, &[(intent, rails)]).entries
        };
        assert_eq!((entries(None, None), entries(None, Some(10_000))), (MAX_ENTRIES, MAX_ENTRIES));
        assert_eq!((entries(Some(5), Some(10_000)), entries(Some(5), Some(3))), (5, 3));
    }
}

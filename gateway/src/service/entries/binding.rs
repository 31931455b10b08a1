//! What the tasks of an agent bind its writes to: how much a task takes, that it is open, and the guardrails of its intent.
//!
//! What is counted is the agent's own alone, so that no refusal tells what others have. A guardrail refuses; it never evicts.

use super::capacity::News;
use super::writing::{Step, Stop};
use super::{Full, is_seen, value_of};
use crate::error::Error;
use crate::service::tools::looking::Looking;
use crate::state::agents::Agent;
use crate::state::commits::Writing;
use crate::state::events::{StoredEvent, What};
use crate::state::owner::mark::Write;
use crate::state::schema::{self, INTENTS};
use crate::state::tasks::{StoredTask, guardrails, task_named, tasks_in, tasks_of};
use oap_agents::entry::{Context, MAX_ENTRIES};
use oap_agents::task::Guardrails;
use oap_identity::{IntentId, ItemId, TaskId};
use oap_memory::record::Tier;
use std::collections::{BTreeMap, BTreeSet};

/// What a write was found to be within, to be read again with its commit.
#[derive(Debug, Default)]
pub(super) struct Bound {
    tasks: BTreeSet<(TaskId, u32)>,
    /// The agent's entries, each with its last link, where they were counted.
    own: Option<BTreeSet<(ItemId, u32)>>,
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
        let mut bound = Bound { tasks: versions(&tasks), own: None };
        let mut by_task: BTreeMap<TaskId, (StoredTask, Vec<&Step>)> = BTreeMap::new();
        for step in steps {
            let entry = &step.entry;
            match entry.memory_type {
                Tier::Semantic => {
                    if let Some((intent, rail)) = refuses(&rails, &entry.namespace) {
                        return Ok(Err(Stop::Rail(intent, rail)));
                    }
                }
                Tier::Working => {
                    let named = task_named(store, entry.scope.task_id.as_deref(), agent.did())?;
                    let Some((id, task)) = named else { continue };
                    if !task.is_open() {
                        return Ok(Err(Stop::Over));
                    }
                    by_task.entry(id).or_insert_with(|| (task, Vec::new())).1.push(step);
                }
                Tier::Episodic => {}
            }
        }
        let more = news.get(&Tier::Episodic).copied().unwrap_or_default();
        let most = rails.iter().filter_map(|(_, rails)| rails.max_episodic_memory_per_agent).min();
        if by_task.is_empty() && (more == 0 || most.is_none()) {
            return Ok(Ok(bound));
        }
        let own: Vec<_> =
            self.gateway.heads.keyed().into_iter().filter(|head| *head.meta.author == *agent.did()).collect();
        bound.own = Some(own.iter().map(|head| (head.item_id, head.seq)).collect());
        if let Some(most) = most.filter(|_| more > 0) {
            let is_one =
                |head: &oap_memory::Head| head.meta.tier == Tier::Episodic && is_seen(agent, head, self.now);
            let current_count = own.iter().filter(|head| is_one(head)).count();
            let max_capacity = usize::try_from(most).unwrap_or(usize::MAX);
            if current_count + more > max_capacity {
                let of = "episodic entries under a guardrail of an intent";
                return Ok(Err(Stop::Full(Full { current_count, max_capacity, of })));
            }
        }
        for (id, (task, steps)) in by_task {
            let mut sizes: BTreeMap<ItemId, usize> = BTreeMap::new();
            let name = id.to_string();
            for head in &own {
                if head.meta.tier != Tier::Working || !is_seen(agent, head, self.now) {
                    continue;
                }
                let Some(seen) = self.seen(head.clone())? else { continue };
                if Context::of(&seen.whole).scope.task_id.as_deref() == Some(&name) {
                    sizes.insert(head.item_id, value_of(&seen.whole).as_str().len());
                }
            }
            let (count, size) = (sizes.len(), sizes.values().sum::<usize>());
            for step in steps {
                sizes.insert(step.entry.id, step.entry.value.as_str().len());
            }
            let rails = INTENTS.get(store, &task.intent)?.map(|intent| intent.guardrails).unwrap_or_default();
            let most =
                [task.policy.max_entries, rails.max_working_memory_per_task].into_iter().flatten().min();
            let max_capacity = most.and_then(|most| usize::try_from(most).ok()).unwrap_or(MAX_ENTRIES);
            if sizes.len() > count && sizes.len() > max_capacity {
                let of = "working entries of the task";
                return Ok(Err(Stop::Full(Full { current_count: count, max_capacity, of })));
            }
            let kilobytes = task.policy.max_total_size_kb.and_then(|most| usize::try_from(most).ok());
            let after: usize = sizes.values().sum();
            if let Some(max_capacity) = kilobytes.filter(|most| after > size && after.div_ceil(1024) > *most)
            {
                let of = "units of 1,024 bytes of working entries of the task";
                return Ok(Err(Stop::Full(Full { current_count: size.div_ceil(1024), max_capacity, of })));
            }
        }
        Ok(Ok(bound))
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
        let own = bound.own.as_ref().map(|_| self.entries_of(&[agent.did().clone()])).transpose()?;
        if versions(&tasks) == bound.tasks && own == bound.own { Ok(()) } else { Err(Error::Overtaken) }
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

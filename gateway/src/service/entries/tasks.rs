//! Intents and tasks of the owner's agents (docs/openintent.md): made, shown, changed.

use super::ending::Ending;
use super::{Changed, Current};
use crate::error::{Conflict, Error};
use crate::service::Entries;
use crate::service::Tools;
use crate::state::agents::{self, Agent};
use crate::state::commits::{self, Writing, until_it_holds};
use crate::state::events::{StoredEvent, What};
use crate::state::gateway::{Gateway, blocking};
use crate::state::owner::mark::{Read, Write};
use crate::state::schema::{self, AGENTS, INTENTS, INTENTS_OF, TASKS, TASKS_IN, TASKS_OF};
use crate::state::tasks::{MAX_INTENTS, MAX_OPEN, MAX_TASKS, StoredIntent, StoredTask, leads, tasks_in};
use oap_agents::entry::{EntryError, Must};
use oap_agents::task::{MAX_ASSIGNED, NewIntent, NewTask, TaskChange, TaskStatus};
use oap_identity::{Did, Hash, IntentId, ItemId, TaskId};
use oap_memory::record::{Status, Tier};
use oap_store::{Key, Range, Store, Table, Under};
use serde_json::{Value, json};
use std::collections::BTreeSet;

impl Entries<'_> {
    /// Makes an intent, which the agent coordinates.
    ///
    /// # Errors
    /// [`Error::NotSelf`], [`Error::Permission`], [`Error::Conflict`].
    pub async fn make_intent(self, agent: &Agent<Read>, new: NewIntent) -> Result<Vec<u8>, Error> {
        let writer = agent.permitted::<Write>()?;
        if new.created_by.as_ref().is_some_and(|said| !agent.is(said)) {
            return Err(Error::NotSelf("created_by"));
        }
        let by = agent.did().clone();
        let (id, intent) = self
            .0
            .commit_for(writer.acting(), move |w| {
                let whose = schema::agent(by.as_str());
                let known = w.under(INTENTS_OF, &whose, |(of, _)| *of == whose)?;
                if known.len() >= MAX_INTENTS {
                    return Err(Error::Conflict(Conflict::ManyTasks));
                }
                let id = IntentId::new(w.now, &*w.gateway.random);
                let NewIntent { title, description, guardrails, .. } = new;
                let intent = StoredIntent {
                    title,
                    description,
                    coordinator: by,
                    guardrails,
                    created_at: w.now,
                    open: 0,
                    touched_at: w.now,
                };
                INTENTS.put(w.tx, &id, &intent)?;
                INTENTS_OF.put(w.tx, &(whose, id), &())?;
                Ok((id, intent))
            })
            .await?;
        Ok(serde_json::to_vec(&intent_json(self.0, id, &intent)?)?)
    }

    /// An intent that the agent coordinates, or has or had a task of.
    ///
    /// # Errors
    /// [`Error::NotFound`].
    pub async fn intent(self, agent: &Agent<Read>, id: IntentId) -> Result<Vec<u8>, Error> {
        let input = Hash::of_canonical(&json!([id]))?;
        let told = self.read(agent, "openintent.intent", input, move |looking| {
            let (intent, _) = known_intent(looking.gateway, id, looking.agent.did())?;
            Ok(((), intent_json(looking.gateway, id, &intent)?))
        });
        Ok(told.await?.1)
    }

    /// The tasks of an intent that the agent may know of, the first one first.
    ///
    /// # Errors
    /// [`Error::NotFound`].
    pub async fn tasks(
        self,
        agent: &Agent<Read>,
        id: IntentId,
        status: Option<TaskStatus>,
        (offset, limit): (usize, usize),
    ) -> Result<Vec<u8>, Error> {
        let input = Hash::of_canonical(&json!([id, status, offset, limit]))?;
        let told = self.read(agent, "openintent.tasks", input, move |looking| {
            let (gateway, did) = (looking.gateway, looking.agent.did());
            let (_, tasks) = known_intent(gateway, id, did)?;
            let wanted = tasks.iter().filter(|(_, task)| {
                task.is_known_to(did) && status.is_none_or(|status| task.status == status)
            });
            let page = wanted.skip(offset).take(limit);
            let shown = page.map(|(id, task)| task_json(gateway, *id, task));
            Ok(((), shown.collect::<Result<Vec<Value>, Error>>()?))
        });
        Ok(told.await?.1)
    }

    /// A task that the agent may know of.
    ///
    /// # Errors
    /// [`Error::NotFound`].
    pub async fn task(self, agent: &Agent<Read>, id: TaskId) -> Result<Vec<u8>, Error> {
        Ok(self.task_now(agent, id).await?.entry)
    }

    async fn task_now(self, agent: &Agent<Read>, id: TaskId) -> Result<Current, Error> {
        let input = Hash::of_canonical(&json!([id]))?;
        let told = self.read(agent, "openintent.task", input, move |looking| {
            let task = TASKS.get(&looking.gateway.store, &id)?;
            let task = task.filter(|task| task.is_known_to(looking.agent.did())).ok_or(Error::NotFound)?;
            looking.reach.lean_on(id, task.version);
            Ok((task.version, task_json(looking.gateway, id, &task)?))
        });
        let (version, entry) = told.await?;
        Ok(Current { version, entry })
    }

    /// Makes a task of an intent that the agent coordinates. To assign it to another takes the role of a coordinator.
    ///
    /// # Errors
    /// [`Error::NotFound`], [`Error::NotItsCoordinator`], [`Error::NoCoordinator`], [`Error::Entry`], [`Error::Conflict`].
    pub async fn make_task(self, agent: &Agent<Read>, new: NewTask) -> Result<Vec<u8>, Error> {
        let writer = agent.permitted::<Write>()?;
        let by = agent.did().clone();
        let (gateway, intent, knower) = (self.0.clone(), new.intent_id, by.clone());
        blocking(move || known_intent(&gateway, intent, &knower).map(drop)).await?;
        let assigned = self.meant(agent, new.assigned_agent.clone()).await?;
        let (id, task) = self
            .0
            .commit_for(writer.acting(), move |w| {
                let intent = INTENTS.get(w.tx, &new.intent_id)?.ok_or(Error::NotFound)?;
                if intent.coordinator != by {
                    return Err(Error::NotItsCoordinator);
                }
                w.may_be_given(assigned.as_ref())?;
                if intent.guardrails.memory_archive_required && !new.memory_policy.archive_on_completion {
                    return Err(field("memory_policy.archive_on_completion", Must::Archive));
                }
                let parent = new.parent_task_id.map(|id| TASKS.get(w.tx, &id)).transpose()?;
                if parent.is_some_and(|task| task.is_none_or(|task| task.intent != new.intent_id)) {
                    return Err(field("parent_task_id", Must::There));
                }
                let known = w.under(TASKS_IN, &new.intent_id, |(of, _)| *of == new.intent_id)?;
                if known.len() >= MAX_TASKS {
                    return Err(Error::Conflict(Conflict::ManyTasks));
                }
                let id = TaskId::new(w.now, &*w.gateway.random);
                let task = StoredTask {
                    intent: new.intent_id,
                    name: new.name,
                    description: new.description,
                    coordinator: by.clone(),
                    agents: assigned.iter().cloned().collect(),
                    assigned,
                    parent: new.parent_task_id,
                    policy: new.memory_policy,
                    status: TaskStatus::Pending,
                    version: 1,
                    created_at: w.now,
                    updated_at: w.now,
                };
                w.may_coordinate(&by, &task)?;
                TASKS_IN.put(w.tx, &(task.intent, id), &())?;
                w.put_task(id, &task)?;
                w.tell_of_task(id, &task)?;
                Ok((id, task))
            })
            .await?;
        Ok(serde_json::to_vec(&task_json(self.0, id, &task)?)?)
    }

    /// Changes a version of a task. With its end, what was written for it is archived or cleared.
    ///
    /// # Errors
    /// As [`Entries::make_task`]; [`Error::Conflict`] where it is over.
    pub async fn change_task(
        self,
        agent: &Agent<Read>,
        id: TaskId,
        version: u32,
        change: TaskChange,
    ) -> Result<Changed, Error> {
        let writer = agent.permitted::<Write>()?;
        until_it_holds(|| async {
            let (by, change) = (agent.did().clone(), change.clone());
            let gateway = self.0.clone();
            let found = blocking(move || Ok(TASKS.get(&gateway.store, &id)?)).await?;
            let task = found.filter(|task| task.is_known_to(&by)).ok_or(Error::NotFound)?;
            let is_workers = task.assigned.as_ref() == Some(&by) && change.is_workers();
            if task.coordinator != by && !is_workers {
                return Err(Error::NotItsCoordinator);
            }
            let way = (task.version != version).then_some(Conflict::NewerTask);
            if let Some(conflict) = way.or((!task.is_open()).then_some(Conflict::TaskOver)) {
                return Ok(Changed::Conflict(conflict, Some(self.task_now(agent, id).await?), None));
            }
            let assigned = self.meant(agent, change.assigned_agent.clone()).await?;
            let policy = change.memory_policy.unwrap_or(task.policy);
            let ending = match change.status.filter(|status| status.is_over()) {
                None => None,
                Some(_) => {
                    let task = task.clone();
                    let look = Tools(self.0).look(agent, move |looking| {
                        Ending::of(looking.gateway, id, &StoredTask { policy, ..task }, looking.now)
                    });
                    Some(look.await?)
                }
            };
            // What is answered is the words of others, too.
            let input = Hash::of_canonical(&json!([id]))?;
            let receipt = Tools(self.0).handing(agent, "openintent.task", input, Vec::new())?;
            let changed = self
                .0
                .commit_for(writer.acting(), move |w| {
                    let mut task = TASKS.get(w.tx, &id)?.ok_or(Error::NotFound)?;
                    if task.version != version {
                        return Err(Error::Overtaken);
                    }
                    let before = task.clone();
                    if let Some(assigned) = assigned {
                        w.may_be_given(Some(&assigned))?;
                        if !task.agents.contains(&assigned) {
                            if task.agents.len() >= MAX_ASSIGNED {
                                return Err(field("assigned_agent", Must::Assigned));
                            }
                            task.agents.push(assigned.clone());
                        }
                        task.assigned = Some(assigned);
                    }
                    task.policy = policy;
                    if !is_workers {
                        w.may_coordinate(&by, &task)?;
                    }
                    let rails = INTENTS.get(w.tx, &task.intent)?.ok_or(Error::NotFound)?.guardrails;
                    if rails.memory_archive_required && !policy.archive_on_completion {
                        return Err(field("memory_policy.archive_on_completion", Must::Archive));
                    }
                    let loosens = before.policy.archive_on_completion && !policy.archive_on_completion;
                    if loosens && before.has_others(&by) {
                        return Err(field("memory_policy.archive_on_completion", Must::Promised));
                    }
                    task.status = change.status.unwrap_or(task.status);
                    task.version = task.version.saturating_add(1);
                    task.updated_at = w.now;
                    if let Some(ending) = ending {
                        w.end_entries(id, &before, &ending)?;
                    }
                    w.put_task(id, &task)?;
                    if task.status != before.status {
                        w.tell_of_task(id, &task)?;
                    }
                    w.receipt(commits::AGENTS, receipt)?;
                    Ok(task)
                })
                .await?;
            Ok(Changed::Done(serde_json::to_vec(&task_json(self.0, id, &changed)?)?))
        })
        .await
    }

    /// Whom an agent names to assign a task to, where it may.
    async fn meant(self, agent: &Agent<Read>, name: Option<String>) -> Result<Option<Did>, Error> {
        let (gateway, agent) = (self.0.clone(), agent.clone());
        blocking(move || {
            let entries = Entries(&gateway);
            entries.may_assign(agent.did(), name.as_deref(), &agent)?;
            entries.named(name.as_deref(), &agent)
        })
        .await
    }

    /// That an agent may assign a task to whom it names, before it is told whether they are there.
    fn may_assign(self, by: &Did, name: Option<&str>, agent: &Agent<Read>) -> Result<(), Error> {
        let is_another = name.is_some_and(|name| !agent.is(name));
        if is_another && !leads(&self.0.store, by)? {
            return Err(Error::NoCoordinator);
        }
        Ok(())
    }

    /// An agent in force, by its name or its DID.
    fn named(self, name: Option<&str>, agent: &Agent<Read>) -> Result<Option<Did>, Error> {
        let Some(name) = name else { return Ok(None) };
        if agent.is(name) {
            return Ok(Some(agent.did().clone()));
        }
        let nobody = || field("assigned_agent", Must::Agent);
        match agents::find(&self.0.store, &name.parse().map_err(|_| nobody())?) {
            Ok((did, found)) if found.is_there() => Ok(Some(did)),
            Ok(_) | Err(Error::NotFound) => Err(nobody()),
            Err(error) => Err(error),
        }
    }
}

const fn field(name: &'static str, must: Must) -> Error {
    Error::Entry(EntryError::Field(name, must))
}

/// An intent that an agent may know of, and its tasks.
pub(super) fn known_intent(
    gateway: &Gateway,
    id: IntentId,
    agent: &Did,
) -> Result<(StoredIntent, Vec<(TaskId, StoredTask)>), Error> {
    let intent = INTENTS.get(&gateway.store, &id)?.ok_or(Error::NotFound)?;
    let tasks = tasks_of_intent(&gateway.store, id)?;
    let is_known = intent.coordinator == *agent || tasks.iter().any(|(_, task)| task.is_known_to(agent));
    if is_known { Ok((intent, tasks)) } else { Err(Error::NotFound) }
}

fn tasks_of_intent(store: &Store, id: IntentId) -> Result<Vec<(TaskId, StoredTask)>, Error> {
    let mut tasks = Vec::new();
    for key in TASKS_IN.keys(store, Range::under(&id)) {
        let (_, task) = key?;
        tasks.extend(TASKS.get(store, &task)?.map(|found| (task, found)));
    }
    Ok(tasks)
}

/// Who somebody is, as agents have it.
pub(super) fn name_of(gateway: &Gateway, did: &Did) -> Result<String, Error> {
    Ok(AGENTS.get(&gateway.store, did)?.map_or_else(|| did.to_string(), |agent| agent.name.to_string()))
}

fn intent_json(gateway: &Gateway, id: IntentId, intent: &StoredIntent) -> Result<Value, Error> {
    Ok(json!({
        "id": id, "title": intent.title, "description": intent.description, "version": 1, "status": "active",
        "state": {}, "constraints": {}, "parent_intent_id": null, "depends_on": [],
        "created_by": name_of(gateway, &intent.coordinator)?, "guardrails": intent.guardrails,
        "created_at": intent.created_at, "updated_at": intent.created_at,
    }))
}

fn task_json(gateway: &Gateway, id: TaskId, task: &StoredTask) -> Result<Value, Error> {
    let assigned = task.assigned.as_ref().map(|did| name_of(gateway, did)).transpose()?;
    let over = (!task.is_open()).then_some(task.updated_at);
    Ok(json!({
        "id": id, "intent_id": task.intent, "name": task.name, "description": task.description,
        "version": task.version, "status": task.status, "assigned_agent": assigned,
        "coordinator": name_of(gateway, &task.coordinator)?, "parent_task_id": task.parent,
        "memory_policy": task.policy, "requires_tools": [], "created_at": task.created_at,
        "updated_at": task.updated_at, "completed_at": over,
    }))
}

impl Writing<'_, '_> {
    /// The keys of an index under its first part, as they stand in this transaction.
    pub(super) fn under<P: Key, B: Key>(
        &self,
        table: Table<(P, B), ()>,
        part: &P,
        is_under: impl Fn(&(P, B)) -> bool,
    ) -> Result<BTreeSet<(P, B)>, Error>
    where
        (P, B): Under<P> + Ord,
    {
        let mut keys: BTreeSet<(P, B)> =
            table.keys(&self.gateway.store, Range::under(part)).collect::<Result<_, _>>()?;
        for key in table.written(self.tx) {
            if !is_under(&key) {
                continue;
            }
            if table.contains(self.tx, &key)? {
                keys.insert(key)
            } else {
                keys.remove(&key)
            };
        }
        Ok(keys)
    }

    /// That an agent may coordinate a task as it is then: where others are or were on it, or it reads what others wrote, that takes the
    /// role.
    fn may_coordinate(&self, by: &Did, task: &StoredTask) -> Result<(), Error> {
        let above = task.parent.filter(|_| task.policy.inherit_from_parent);
        let above = above.map(|id| TASKS.get(self.tx, &id)).transpose()?.flatten();
        let is_for_others = task.has_others(by) || above.is_some_and(|above| above.has_others(by));
        if is_for_others && !leads(self.tx, by)? { Err(Error::NoCoordinator) } else { Ok(()) }
    }

    /// That a task may be given to an agent, as that stands now.
    fn may_be_given(&self, to: Option<&Did>) -> Result<(), Error> {
        let Some(to) = to else { return Ok(()) };
        let is_there = AGENTS.get(self.tx, to)?.is_some_and(|agent| agent.is_there());
        if is_there { Ok(()) } else { Err(field("assigned_agent", Must::Agent)) }
    }

    /// Stores a task, where its coordinator and whom it is assigned to find it as long as it is open. What each of them asks costs what
    /// these are: one agent coordinates so many at once, and no more. Nobody has less room by what others give it.
    pub(super) fn put_task(&mut self, id: TaskId, task: &StoredTask) -> Result<(), Error> {
        let was_open = TASKS.get(self.tx, &id)?.is_some_and(|before| before.is_open());
        if let Some(mut intent) = INTENTS.get(self.tx, &task.intent)? {
            intent.open = intent.open.saturating_sub(u32::from(was_open)) + u32::from(task.is_open());
            intent.touched_at = self.now;
            INTENTS.put(self.tx, &task.intent, &intent)?;
        }
        TASKS.put(self.tx, &id, task)?;
        for agent in task.agents.iter().chain([&task.coordinator]) {
            let whose = schema::agent(agent.as_str());
            if !task.is_open() || !task.is_of(agent) {
                TASKS_OF.delete(self.tx, &(whose, id));
            } else if !TASKS_OF.contains(self.tx, &(whose, id))? {
                if task.coordinator == *agent {
                    let mut open = tasks_in(self.tx, &self.gateway.store, agent)?;
                    open.retain(|(_, other)| other.coordinator == *agent);
                    if open.len() >= MAX_OPEN {
                        return Err(Error::Conflict(Conflict::ManyOpenTasks));
                    }
                }
                TASKS_OF.put(self.tx, &(whose, id), &())?;
            }
        }
        Ok(())
    }

    pub(super) fn tell_of_task(&mut self, id: TaskId, task: &StoredTask) -> Result<(), Error> {
        let event = StoredEvent {
            what: What::Task(task.status),
            at: self.now,
            agent: task.coordinator.clone(),
            actor: self.actor.clone(),
            task: Some(id),
            intent: Some(task.intent),
        };
        self.tell_log(task.intent, &event)
    }

    /// Every entry of these agents in these tiers that nobody took back, and its last link, as it stands in this transaction.
    pub(super) fn entries_of(
        &self,
        agents: &[Did],
        tiers: &[Tier],
    ) -> Result<BTreeSet<(ItemId, u32)>, Error> {
        let batch = self.heads_of_batch()?;
        let places = agents.iter().flat_map(|agent| tiers.iter().map(move |tier| (agent, *tier)));
        let stored = places.flat_map(|(agent, tier)| self.gateway.heads.own(agent, tier));
        let stored = stored.filter(|head| !batch.contains_key(&head.item_id));
        let written = batch.values().flatten().filter(|head| {
            let meta = &head.meta;
            let is_entry = head.status == Status::Current && meta.namespace.is_some() && meta.key.is_some();
            is_entry && agents.contains(&meta.author) && tiers.contains(&meta.tier)
        });
        Ok(stored.chain(written.cloned()).map(|head| (head.item_id, head.seq)).collect())
    }
}

//! What becomes of entries when the task ends that they were written for.

use super::entries_now;
use super::erasing::holds_owners_word;
use crate::error::Error;
use crate::service::Entries;
use crate::state::agents;
use crate::state::commits::{Writing, until_it_holds};
use crate::state::events::{Archived, StoredEvent, What, context_of};
use crate::state::gateway::{Gateway, blocking};
use crate::state::schema::{self, TASKS, TASKS_OF, VERSIONS};
use crate::state::tasks::{MAX_ARCHIVED, StoredTask, is_orphan, leads};
use oap_agents::entry::MAX_ENTRIES;
use oap_agents::task::TaskStatus;
use oap_identity::{Did, ItemId, TaskId, Timestamp};
use oap_memory::chain::Event;
use oap_memory::record::{Head, Status, Tier};
use oap_store::{Range, StoreError};
use std::collections::BTreeSet;
use std::sync::Arc;

/// What becomes of the entries that were written for a task, when it ends.
#[derive(Debug, Default)]
pub(super) struct Ending {
    /// What its agents had when that was looked at: every entry that nobody took back, and its last link.
    seen: BTreeSet<(ItemId, u32)>,
    /// Working entries that are shown in the intent's log and nowhere else.
    archived: Vec<Arc<Head>>,
    /// Working entries that are erased.
    cleared: Vec<Arc<Head>>,
    /// Others that live as long as the task.
    expired: Vec<Arc<Head>>,
}

impl Ending {
    pub(super) fn of(
        gateway: &Arc<Gateway>,
        id: TaskId,
        task: &StoredTask,
        now: Timestamp,
    ) -> Result<Self, Error> {
        let name = id.to_string();
        let mut ending = Self::default();
        for head in task.agents.iter().flat_map(|agent| entries_now(gateway, agent)) {
            ending.seen.insert((head.item_id, head.seq));
            if !head.is_live(now) {
                continue;
            }
            let version = match schema::version(&gateway.store, head.item_id, head.version_seq) {
                Ok(version) => version,
                Err(Error::NotFound | Error::Store(StoreError::Erased)) => return Err(Error::Overtaken),
                Err(error) => return Err(error),
            };
            let context = context_of(&version)?;
            if context.scope.task_id.as_deref() != Some(name.as_str()) {
                continue;
            }
            if head.meta.tier == Tier::Working && task.policy.archive_on_completion {
                ending.archived.push(head);
            } else if head.meta.tier == Tier::Working {
                ending.cleared.push(head);
            } else if context.ttl.as_deref() == Some("task_lifetime") && !context.ends {
                ending.expired.push(head);
            }
        }
        // As the intent's log shows them: by their places.
        ending
            .archived
            .sort_by_cached_key(|head| (head.meta.namespace.clone(), head.meta.key.clone(), head.item_id));
        Ok(ending)
    }
}

impl Entries<'_> {
    /// Ends the open tasks whose coordinators were removed, or lost the role for them, which nobody else can end. How many.
    ///
    /// # Errors
    /// [`Error::Store`], [`Error::Corrupt`].
    pub(crate) async fn end_orphans(self) -> Result<usize, Error> {
        let gateway = self.0.clone();
        let orphans = blocking(move || {
            let mut found = Vec::new();
            for (did, _) in agents::all(&gateway.store)? {
                // What cannot be read is looked at again with the end, which says so.
                if leads(&gateway.store, &did).unwrap_or(false) {
                    continue;
                }
                for key in TASKS_OF.keys(&gateway.store, Range::under(&schema::agent(did.as_str()))) {
                    match key.and_then(|(_, id)| Ok((id, TASKS.get(&gateway.store, &id)?))) {
                        Ok((id, Some(task))) if task.coordinator == did => {
                            found.extend(is_orphan(&gateway.store, &task).unwrap_or(true).then_some(id));
                        }
                        Ok(_) => {}
                        Err(error) => tracing::error!(%error, agent = %did, "a task cannot be read"),
                    }
                }
            }
            Ok(found)
        })
        .await?;
        let mut count = 0;
        for id in orphans {
            // One that cannot be ended keeps none of the others open.
            match until_it_holds(|| self.end_orphan(id)).await {
                Ok(()) => count += 1,
                Err(error) => tracing::error!(%error, task = %id, "a task that nobody leads stays open"),
            }
        }
        Ok(count)
    }

    async fn end_orphan(self, id: TaskId) -> Result<(), Error> {
        let gateway = self.0.clone();
        let looked = blocking(move || {
            let Some(task) = TASKS.get(&gateway.store, &id)?.filter(StoredTask::is_open) else {
                return Ok(None);
            };
            let ending = Ending::of(&gateway, id, &task, gateway.clock.now())?;
            Ok(Some((task, ending)))
        })
        .await?;
        let Some((before, ending)) = looked else { return Ok(()) };
        self.0
            .commit_own(move |w| {
                let Some(mut task) = TASKS.get(w.tx, &id)? else { return Ok(()) };
                if task.version != before.version {
                    return Err(Error::Overtaken);
                }
                if !is_orphan(w.tx, &task)? {
                    return Ok(());
                }
                task.status = TaskStatus::Cancelled;
                task.version = task.version.saturating_add(1);
                task.updated_at = w.now;
                w.end_entries(id, &before, &ending)?;
                w.put_task(id, &task)?;
                w.tell_of_task(id, &task)
            })
            .await
    }
}

impl Writing<'_, '_> {
    /// That what a task ends is what was looked at. What its agents write elsewhere meanwhile keeps nobody from ending it.
    fn ends_as_seen(&self, name: &str, task: &StoredTask, ending: &Ending) -> Result<(), Error> {
        let there = self.entries_of(&task.agents, Tier::ALL)?;
        let mut ended = ending.archived.iter().chain(&ending.cleared).chain(&ending.expired);
        if !ended.all(|head| there.contains(&(head.item_id, head.seq))) {
            return Err(Error::Overtaken);
        }
        let changed: Vec<ItemId> = there.difference(&ending.seen).map(|(item, _)| *item).collect();
        if changed.len() > MAX_ENTRIES {
            return Err(Error::Overtaken);
        }
        for item in changed {
            let (_, head) = schema::head(self.tx, item)?;
            if !head.is_live(self.now) {
                continue;
            }
            let version = VERSIONS.get(self.tx, &(item, head.version_seq))?.ok_or(Error::Overtaken)?;
            if context_of(&version)?.scope.task_id.as_deref() == Some(name) {
                return Err(Error::Overtaken);
            }
        }
        Ok(())
    }

    /// Ends what was written for a task. What is the owner's word, or a legal hold keeps, is taken back in place of being erased.
    pub(super) fn end_entries(
        &mut self,
        id: TaskId,
        task: &StoredTask,
        ending: &Ending,
    ) -> Result<(), Error> {
        self.ends_as_seen(&id.to_string(), task, ending)?;
        for (heads, event) in [(&ending.cleared, Event::Erase), (&ending.expired, Event::Expire)] {
            for head in heads {
                if self.is_held(head.item_id)? || holds_owners_word(self.tx, self.gateway, head)? {
                    self.mark(head.item_id, Event::Retract)?;
                } else {
                    self.erase_for_agent(head.item_id, event)?;
                }
            }
        }
        if ending.archived.is_empty() {
            return Ok(());
        }
        for agent in &task.agents {
            let more = ending.archived.iter().filter(|head| *head.meta.author == *agent).count();
            self.trim_archive(agent, more)?;
        }
        // They are told of once, all together.
        self.quiet = true;
        for head in &ending.archived {
            self.mark(head.item_id, Event::Retract)?;
        }
        self.quiet = false;
        let archived: Vec<Archived> = ending.archived.iter().map(|head| Archived::of(head)).collect();
        let event = |agent: Did, items, w: &Self| StoredEvent {
            what: What::Archive(items),
            at: w.now,
            agent,
            actor: w.actor.clone(),
            task: Some(id),
            intent: Some(task.intent),
        };
        for agent in &task.agents {
            let own: Vec<Archived> = archived.iter().filter(|of| of.author == *agent).cloned().collect();
            if !own.is_empty() {
                let event = event(agent.clone(), own, self);
                self.tell(schema::agent(agent.as_str()), &event)?;
            }
        }
        let event = event(task.coordinator.clone(), archived, self);
        self.tell_log(task.intent, &event)
    }

    /// Erases what was archived first of an agent's, where with so many more there are more than are kept.
    fn trim_archive(&mut self, agent: &Did, more: usize) -> Result<(), Error> {
        if more == 0 {
            return Ok(());
        }
        let mut kept = self.gateway.heads.keyed();
        kept.retain(|head| {
            head.status == Status::Retracted && head.meta.tier == Tier::Working && *head.meta.author == *agent
        });
        let beyond = (kept.len() + more).saturating_sub(MAX_ARCHIVED);
        kept.sort_by_key(|head| (head.ended_at, head.item_id));
        for head in kept.into_iter().take(beyond) {
            // As it stands in this transaction.
            let (_, head) = match schema::head(self.tx, head.item_id) {
                Err(Error::NotFound) => continue,
                found => found?,
            };
            let stays = self.is_held(head.item_id)? || holds_owners_word(self.tx, self.gateway, &head)?;
            if head.status == Status::Retracted && !stays {
                self.erase_for_agent(head.item_id, Event::Erase)?;
            }
        }
        Ok(())
    }
}

//! Entries, written.
//!
//! Versions are prepared beside the writer; the transaction that stores them reads again what they rest on.

use super::planning::{Asked, Plan, Step, Stop, To, news, plan};
use super::{Changed, Current, is_rival, is_seen};
use crate::error::{Conflict, Error, Unavailable};
use crate::service::{Entries, Tools};
use crate::state::agents::Agent;
use crate::state::commits::{AGENTS, Writing, until_it_holds};
use crate::state::owner::Permission;
use crate::state::owner::mark::{Read, Write};
use crate::state::refusals::Counted;
use oap_agents::entry::{Change, Entry, New};
use oap_identity::{Hash, ItemId, Timestamp};
use oap_memory::receipt::item_tag;
use oap_memory::record::{Head, Meta};
use serde::Serialize;
use serde_json::json;
use std::sync::Arc;

/// What is answered where one entry was asked for, or several.
#[derive(Serialize)]
#[serde(untagged)]
enum Answer<'a> {
    One(&'a Entry),
    Batch { entries: Vec<&'a Entry> },
}

/// How often a batch is begun anew, when other writes overtake it.
const MAX_ATTEMPTS: u32 = 8;

impl Entries<'_> {
    /// Writes an entry whose author is the agent.
    ///
    /// # Errors
    /// [`Error::Entry`] naming the field; [`Error::Permission`]; [`Error::NotSelf`].
    pub async fn create(self, agent: &Agent<Read>, new: New) -> Result<Changed, Error> {
        let new = New { version: None, ..new };
        // What was not there is handed to nobody, and has no receipt of that.
        let input = Hash::of(b"");
        self.write(agent, "openintent.create", Some(input), vec![Asked::New(new)], false).await
    }

    /// Writes several, all or none. One that is there is replaced where its version is named.
    ///
    /// # Errors
    /// As [`Entries::create`].
    pub async fn write_all(
        self,
        agent: &Agent<Read>,
        input: Hash,
        entries: Vec<New>,
    ) -> Result<Changed, Error> {
        let asked = entries.into_iter().map(Asked::New).collect();
        self.write(agent, "openintent.batch", Some(input), asked, true).await
    }

    /// Changes a version of an entry.
    ///
    /// # Errors
    /// As [`Entries::create`]; [`Error::NotFound`] of one that the agent may not see, as of one that is not there.
    pub async fn change(
        self,
        agent: &Agent<Read>,
        input: Hash,
        item: ItemId,
        version: u32,
        change: Change,
    ) -> Result<Changed, Error> {
        let changed = self.write(
            agent,
            "openintent.update",
            Some(input),
            vec![Asked::Change(item, version, change)],
            false,
        );
        match changed.await {
            Err(error) => Err(self.why(agent, item, error).await?),
            done => done,
        }
    }

    pub(super) async fn put_one(
        self,
        agent: &Agent<Read>,
        new: New,
        says_tier: bool,
    ) -> Result<Changed, Error> {
        self.write(agent, "openintent.put", None, vec![Asked::Put(new, says_tier)], false).await
    }

    /// Why an entry is not changed: one that a task lets the agent read is not as if it was not there.
    pub(super) async fn why(self, agent: &Agent<Read>, item: ItemId, error: Error) -> Result<Error, Error> {
        if !matches!(error, Error::NotFound) {
            return Ok(error);
        }
        let reads = Tools(self.0).look(agent, move |mut looking| {
            looking.with_reach()?;
            let head = looking.gateway.heads.get(item);
            head.map_or(Ok(false), |head| looking.may_read(&head))
        });
        Ok(if reads.await? { Error::NotItsAuthor } else { error })
    }

    async fn write(
        self,
        agent: &Agent<Read>,
        tool: &'static str,
        input: Option<Hash>,
        asked: Vec<Asked>,
        is_batch: bool,
    ) -> Result<Changed, Error> {
        let writer = agent.permitted::<Write>()?;
        let asked = Arc::new(asked);
        let mut attempts = 0_u32;
        let written = until_it_holds(|| {
            attempts = attempts.saturating_add(1);
            let (attempt, writer, asked) = (attempts, &writer, asked.clone());
            async move {
                // An agent that overtakes itself does not have the work done for nothing.
                if is_batch && attempt > MAX_ATTEMPTS {
                    return Err(Error::Unavailable(Unavailable::Overtaken));
                }
                // An attempt is the work of all of them, and those after it are counted as one more. They refuse nothing: it may be
                // others who make them many.
                if is_batch && attempt <= 2 {
                    let now = self.0.clock.now();
                    let charged = self.0.refusals.charge(Counted::Entry, agent.did(), asked.len(), now);
                    if attempt == 1 {
                        charged?;
                    }
                }
                let (gateway, looker) = (self.0.clone(), agent.clone());
                let planned = Tools(self.0).look(agent, move |_| plan(&gateway, &looker, &asked));
                match planned.await? {
                    Ok(plan) => self.store(writer, tool, input, plan, is_batch).await.map(Ok),
                    Err(stop) => Ok(Err(stop)),
                }
            }
        });
        match written.await? {
            Ok(answer) => {
                metrics::counter!("oap_tool_calls_total", "tool" => tool).increment(1);
                Ok(Changed::Done(answer))
            }
            Err(Stop::Conflict(conflict, item, index)) => {
                let current = match item {
                    Some(item) => self.current(agent, item).await?,
                    None => None,
                };
                Ok(Changed::Conflict(conflict, current, is_batch.then_some(index)))
            }
            Err(Stop::Full(full)) => Ok(Changed::Full(full)),
            Err(Stop::Over) => Ok(Changed::Conflict(Conflict::TaskOver, None, None)),
            Err(Stop::Taken) => Ok(Changed::Conflict(Conflict::TaskTaken, None, None)),
            Err(Stop::Rail(intent, rail)) => {
                let by = writer.clone();
                self.0.commit_for(writer.acting(), move |w| w.tell_of_refusal(intent, rail, &by)).await?;
                Err(Error::Guardrail(rail))
            }
        }
    }

    /// What is in the way, if it still is.
    async fn current(self, agent: &Agent<Read>, item: ItemId) -> Result<Option<Current>, Error> {
        match self.show(agent, item).await {
            Ok(current) => Ok(Some(current)),
            Err(Error::NotFound) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Stores what was prepared, all or none. What is answered of entries that were there has a receipt: the agent may not have
    /// read them.
    async fn store(
        self,
        agent: &Agent<Write>,
        tool: &'static str,
        input: Option<Hash>,
        plan: Plan,
        is_batch: bool,
    ) -> Result<Vec<u8>, Error> {
        let Plan { steps, victims, bound } = plan;
        let entries = steps.iter().map(|step| &step.entry);
        let answer = match (is_batch, steps.first()) {
            (false, Some(step)) => serde_json::to_vec(&Answer::One(&step.entry))?,
            _ => serde_json::to_vec(&Answer::Batch { entries: entries.collect() })?,
        };
        let known = steps.iter().filter(|step| matches!(step.to, To::Change(_)));
        let tags: Vec<String> =
            known.map(|step| item_tag(step.prepared.link.item_id, step.prepared.link.commitment)).collect();
        // What is written without a version is known by what it is then: the hash of a name would tell it to whoever guesses.
        let changed = steps.first().map(|step| (step.entry.id, step.entry.version));
        let input = input.map_or_else(|| Hash::of_canonical(&json!(changed)), Ok)?;
        let receipt =
            (!tags.is_empty()).then(|| Tools(self.0).handing(agent, tool, input, tags)).transpose()?;
        let looker = agent.clone();
        self.0
            .commit_for(agent.acting(), move |w| {
                w.stays_bound(&looker, &bound)?;
                w.check_keys(&looker, &steps)?;
                w.make_room(&looker, &victims, &news(&steps))?;
                // By one agent, and without a sort: what holds for one of them holds for all.
                if let Some(admitted) = steps.iter().find_map(|step| step.admitted.as_ref()) {
                    admitted.holds(w.tx)?;
                }
                for Step { prepared, to, entry, .. } in steps {
                    let event = prepared.link.event;
                    match to {
                        To::New(record) => w.store_capture_as(prepared, record).map(drop)?,
                        To::Change(by) => {
                            w.store_version_as(prepared, event, by)?;
                            w.looked_at(entry.id, looker.did())?;
                        }
                    }
                }
                if let Some(receipt) = receipt {
                    w.receipt(AGENTS, receipt)?;
                }
                Ok(())
            })
            .await?;
        Ok(answer)
    }
}

/// Whether an agent may change an entry. One that it may not see is not there.
pub(super) fn may_change(agent: &Agent<Write>, head: &Head, now: Timestamp) -> Result<(), Error> {
    if !is_seen(agent, head, now) {
        return Err(Error::NotFound);
    }
    let may = agent.sight().may_change(head);
    if may { Ok(()) } else { Err(Error::Permission(Permission::Admin.as_str())) }
}

impl Writing<'_, '_> {
    /// That no new entry has the key of another, as it stands in this transaction, before it writes any.
    fn check_keys(&self, agent: &Agent<Write>, steps: &[Step]) -> Result<(), Error> {
        let news: Vec<&Meta> = steps
            .iter()
            .filter_map(|step| match &step.to {
                To::New(meta) => Some(meta),
                To::Change(_) => None,
            })
            .collect();
        if news.is_empty() {
            return Ok(());
        }
        let latest = self.heads_of_batch()?;
        for meta in news {
            let (Some(namespace), Some(key)) = (&meta.namespace, &meta.key) else { continue };
            let stored = self.gateway.heads.at(namespace, key);
            let stored = stored.into_iter().filter(|head| !latest.contains_key(&head.item_id));
            let pending = latest.values().flatten().cloned();
            let is_there = stored.chain(pending).any(|head| {
                (head.meta.namespace.as_ref(), head.meta.key.as_ref()) == (Some(namespace), Some(key))
                    && is_rival(agent, &head, meta.tier, self.now)
            });
            if is_there {
                return Err(Error::Overtaken);
            }
        }
        Ok(())
    }
}

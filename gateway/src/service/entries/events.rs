//! What became of entries, told to agents: each its own, and of an intent what it may know.
//!
//! What an event shows of an entry is read when it is asked for. Of another's entry it is shown while the reader may read that entry;
//! what was archived is shown to the coordinator of the intent, to the agent that the task was assigned to last, and to its author.

use super::tasks::known_intent;
use super::{is_seen, value_of};
use crate::error::Error;
use crate::service::Entries;
use crate::service::tools::looking::Looking;
use crate::state::agents::Agent;
use crate::state::events::{Happened, StoredEvent, What};
use crate::state::owner::mark::Read;
use crate::state::schema::{self, EVENTS};
use crate::state::tasks::{Reach, StoredTask, tasks_of};
use oap_agents::entry::{Context, MAX_VALUES};
use oap_identity::{Did, Hash, IntentId, ItemId, TaskId, Timestamp};
use oap_memory::Head;
use oap_memory::item::Sensitivity;
use oap_memory::record::{Status, Tier};
use oap_store::Range;
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Which events are asked for: the oldest first.
#[derive(Debug, Clone)]
#[allow(missing_docs, reason = "the names say it")]
pub struct Wanted {
    pub name: Option<String>,
    /// At this time or after it.
    pub since: Option<Timestamp>,
    pub limit: usize,
    pub offset: usize,
}

/// An agent that reads a log.
struct Reader<'a> {
    did: &'a Did,
    /// Whether it coordinates the intent, and has the role for it.
    coordinates: bool,
    tasks: BTreeMap<TaskId, StoredTask>,
}

impl Reader<'_> {
    /// Whether it may know of a task at all.
    fn knows(&self, task: Option<TaskId>) -> bool {
        task.and_then(|task| self.tasks.get(&task)).is_some_and(|task| task.is_known_to(self.did))
    }

    /// Whether it is told of what another did for a task.
    fn follows(&self, task: Option<TaskId>) -> bool {
        let assigned = task.and_then(|task| self.tasks.get(&task)).and_then(|task| task.assigned.as_ref());
        self.coordinates || assigned == Some(self.did)
    }

    /// Whether an event is for it at all.
    fn is_told(&self, event: &StoredEvent) -> bool {
        let is_own = event.agent == *self.did;
        match &event.what {
            What::Task(_) => self.knows(event.task),
            What::Refused(_) => is_own || self.coordinates,
            What::Entry { restricted, .. } => is_own || (!restricted && self.follows(event.task)),
            What::Archive(items) => {
                self.follows(event.task) || items.iter().any(|(_, author, _)| author == self.did)
            }
        }
    }
}

/// What an answer tells of entries.
#[derive(Default)]
struct Told {
    items: BTreeSet<ItemId>,
    bytes: usize,
}

/// How many bytes it takes to say where an entry is and how it is tagged.
fn place_of(head: &Head) -> usize {
    let named = head.meta.namespace.as_deref().map_or(0, String::len);
    named
        + head.meta.key.as_deref().map_or(0, String::len)
        + head.labels.iter().map(String::len).sum::<usize>()
}

impl Entries<'_> {
    /// What became of an agent's entries; its own alone.
    ///
    /// # Errors
    /// [`Error::NotFound`] for another than itself.
    pub async fn events(
        self,
        agent: &Agent<Read>,
        of: &str,
        input: Hash,
        wanted: Wanted,
    ) -> Result<Vec<u8>, Error> {
        if !agent.is(of) {
            return Err(Error::NotFound);
        }
        let stream = schema::agent(agent.did().as_str());
        let told = self.read(agent, "openintent.events", input, move |looking| {
            let did = looking.agent.did().clone();
            let reader = Reader { did: &did, coordinates: false, tasks: BTreeMap::new() };
            Ok(((), looking.events(stream, &reader, &wanted)?))
        });
        Ok(told.await?.1)
    }

    /// The log of an intent, as far as the agent may know it.
    ///
    /// # Errors
    /// [`Error::NotFound`] of one that it neither coordinates nor has or had a task of.
    pub async fn log(
        self,
        agent: &Agent<Read>,
        id: IntentId,
        input: Hash,
        wanted: Wanted,
    ) -> Result<Vec<u8>, Error> {
        let told = self.read(agent, "openintent.log", input, move |looking| {
            let did = looking.agent.did().clone();
            let (intent, tasks) = known_intent(looking.gateway, id, &did)?;
            let coordinates = intent.coordinator == did && looking.reach.leads(&did);
            let reader = Reader { did: &did, coordinates, tasks: tasks.into_iter().collect() };
            looking.lean_on(&reader.tasks);
            Ok(((), looking.events(id.to_bytes(), &reader, &wanted)?))
        });
        Ok(told.await?.1)
    }
}

impl Looking<'_> {
    fn events(
        &mut self,
        stream: [u8; 16],
        reader: &Reader<'_>,
        wanted: &Wanted,
    ) -> Result<Vec<Value>, Error> {
        let gateway = self.gateway;
        let (mut shown, mut told, mut left) = (Vec::new(), Told::default(), wanted.offset);
        for row in EVENTS.range(&gateway.store, Range::under(&stream)) {
            let (_, event) = row?;
            let is_asked = wanted.since.is_none_or(|since| event.at >= since)
                && wanted.name.as_deref().is_none_or(|name| event.what.name() == name);
            if !is_asked || !reader.is_told(&event) {
                continue;
            }
            if left > 0 {
                left -= 1;
                continue;
            }
            let data = self.payload(&event, reader, &mut told)?;
            shown.push(self.event_json(stream, &event, data)?);
            // What is left is asked for with an offset.
            if shown.len() == wanted.limit || told.bytes > MAX_VALUES {
                break;
            }
        }
        Ok(shown)
    }

    /// In both vocabularies: that of RFC-0015 5.2, and that of OpenIntent's client.
    fn event_json(&self, stream: [u8; 16], event: &StoredEvent, data: Value) -> Result<Value, Error> {
        let name = event.what.name();
        // Of what is told, and never of its place among what is not.
        let id = Hash::of_canonical(&json!([
            stream,
            event.at,
            name,
            event.task,
            data.get("entry_id"),
            data.get("version")
        ]))?;
        let id: String = id.to_string().chars().skip_while(|c| *c != ':').skip(1).take(26).collect();
        let agent = self.name(&event.agent);
        let actor = event.actor.as_ref().map_or_else(|| "owner".to_owned(), |actor| self.name(actor));
        Ok(json!({
            "id": format!("evt_{id}"), "event_type": name, "type": name, "intent_id": event.intent,
            "task_id": event.task, "agent_id": agent, "actor": actor, "payload": data, "data": data,
            "created_at": event.at, "timestamp": event.at,
        }))
    }

    /// What an event says to its reader, who is told of it.
    fn payload(&mut self, event: &StoredEvent, reader: &Reader<'_>, told: &mut Told) -> Result<Value, Error> {
        match &event.what {
            What::Task(status) => Ok(json!({"task_id": event.task, "status": status})),
            What::Refused(rail) => Ok(json!({"guardrail": rail})),
            What::Entry { happened, item, tier, version, previous, oap, .. } => {
                let mut data = Map::new();
                data.insert("entry_id".to_owned(), json!(item));
                data.insert("memory_type".to_owned(), json!(tier));
                data.insert("version".to_owned(), json!(version));
                if let Some(previous) = previous {
                    data.insert("previous_version".to_owned(), json!(previous));
                }
                if let Some(oap) = oap {
                    data.insert("oap_event".to_owned(), json!(oap));
                }
                let is_there = !matches!(happened, Happened::Deleted | Happened::Evicted | Happened::Expired);
                if is_there {
                    data.extend(self.details(*item, told)?);
                }
                Ok(Value::Object(data))
            }
            What::Archive(items) => {
                let follows = reader.follows(event.task);
                let mut snapshot = Vec::new();
                for (item, author, restricted) in items {
                    let is_own = author == reader.did;
                    if is_own || (follows && !restricted) {
                        snapshot.push(self.archived(*item, is_own, told)?);
                    }
                }
                Ok(json!({"entries_archived": snapshot.len(), "snapshot": snapshot}))
            }
        }
    }

    /// Where an entry is and how it is tagged, while the reader may read it.
    fn details(&mut self, item: ItemId, told: &mut Told) -> Result<Map<String, Value>, Error> {
        let mut details = Map::new();
        let Some(head) = self.gateway.heads.get(item) else { return Ok(details) };
        if !self.may_read(&head)? {
            return Ok(details);
        }
        let Some(seen) = self.seen(head.clone())? else { return Ok(details) };
        if told.items.insert(item) {
            self.count(&seen);
        }
        told.bytes += place_of(&head);
        details.insert("namespace".to_owned(), json!(head.meta.namespace));
        details.insert("key".to_owned(), json!(head.meta.key));
        details.insert("tags".to_owned(), json!(Context::of(&seen.whole).tags(&head.labels)));
        Ok(details)
    }

    /// An entry as it was archived, as long as it is kept. Of one that was put back, others see nothing.
    fn archived(&mut self, item: ItemId, is_own: bool, told: &mut Told) -> Result<Value, Error> {
        let gone = json!({"entry_id": item, "erased": true});
        let kept = self.gateway.heads.get(item).filter(|head| {
            let is_over = head.end_of_life.is_some_and(|end| end <= self.now);
            let is_shown =
                head.status == Status::Retracted || (is_own && is_seen(self.agent, head, self.now));
            is_shown && !is_over && (is_own || head.sensitivity != Sensitivity::Restricted)
        });
        let Some(head) = kept else { return Ok(gone) };
        let Some(seen) = self.seen(head.clone())? else { return Ok(gone) };
        let size = place_of(&head) + value_of(&seen.whole).as_str().len();
        if told.bytes > 0 && told.bytes + size > MAX_VALUES {
            return Ok(json!({"entry_id": item, "left_out": true}));
        }
        told.bytes += size;
        if told.items.insert(item) {
            self.count(&seen);
        }
        let mut shown = json!({
            "entry_id": item, "namespace": head.meta.namespace, "key": head.meta.key,
            "tags": Context::of(&seen.whole).tags(&head.labels),
        });
        if matches!(head.sensitivity, Sensitivity::Public | Sensitivity::Internal) {
            shown["value"] = serde_json::from_str(value_of(&seen.whole).as_str())?;
        } else {
            shown["value_redacted"] = json!(true);
            shown["commitment"] = json!(seen.commitment());
        }
        Ok(shown)
    }

    /// Whether the agent may read an entry: its own, one that is shared, or one that a task lets it read.
    pub(super) fn may_read(&mut self, head: &Arc<Head>) -> Result<bool, Error> {
        if is_seen(self.agent, head, self.now) {
            return Ok(true);
        }
        let is_entry = head.meta.namespace.is_some() && head.meta.key.is_some() && head.is_live(self.now);
        if !is_entry || !self.reach.may_hold(head) {
            return Ok(false);
        }
        if head.meta.tier == Tier::Episodic {
            return Ok(true);
        }
        let Some(seen) = self.seen(head.clone())? else { return Ok(false) };
        let context = Context::of(&seen.whole);
        Ok(self.reach.holds(context.scope.task_id.as_deref(), &head.meta.author))
    }

    /// Takes over what the agent may read by its tasks.
    pub(super) fn with_reach(&mut self) -> Result<(), Error> {
        let tasks = tasks_of(&self.gateway.store, self.agent.did())?;
        self.reach = Reach::of(&self.gateway.store, &tasks, self.agent.did())?;
        Ok(())
    }

    /// Notes that the answer rests on these tasks as they are.
    fn lean_on(&mut self, tasks: &BTreeMap<TaskId, StoredTask>) {
        for (id, task) in tasks {
            self.reach.lean_on(*id, task.version);
        }
    }
}

//! What became of entries, told to agents: each its own, and of an intent what it may know.
//!
//! What an event shows of an entry is read when it is asked for. Of another's entry it is shown while the reader may read that entry;
//! what was archived is shown to the coordinator of the intent and to the agent that the task was assigned to last, as long as the
//! coordinator has its role, and to its author. A value is opaque here, too: it is shown as the text that it is.

use super::tasks::known_intent;
use super::{is_seen, value_of};
use crate::error::Error;
use crate::service::Entries;
use crate::service::tools::looking::Looking;
use crate::state::agents::Agent;
use crate::state::events::{
    Archived, Happened, MAX_LOOKED_AT, Marked, StoredEvent, Stream, What, first_since, is_sealed, streams,
};
use crate::state::owner::mark::Read;
use crate::state::schema::{self, EVENTS};
use crate::state::tasks::{Reach, StoredTask, tasks_of};
use oap_agents::entry::{Context, EntryError, MAX_ENTRIES, MAX_VALUES, Must, Opaque};
use oap_agents::task::TaskStatus;
use oap_identity::{Did, Hash, IntentId, ItemId, TaskId, Timestamp};
use oap_memory::Head;
use oap_memory::item::Sensitivity;
use oap_memory::record::{Status, Tier};
use oap_store::Range;
use serde::Serialize;
use serde_json::json;
use serde_json::value::{RawValue, to_raw_value};
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

/// An event in both vocabularies: that of RFC-0015 5.2, and that of OpenIntent's client.
#[derive(Debug, Serialize)]
struct Shown {
    id: String,
    event_type: &'static str,
    #[serde(rename = "type")]
    name: &'static str,
    intent_id: Option<IntentId>,
    task_id: Option<TaskId>,
    agent_id: String,
    actor: String,
    payload: Box<RawValue>,
    data: Box<RawValue>,
    created_at: Timestamp,
    timestamp: Timestamp,
}

/// What an event says.
#[derive(Debug, Serialize)]
#[serde(untagged)]
enum Payload {
    Task {
        task_id: Option<TaskId>,
        status: TaskStatus,
    },
    Refused {
        guardrail: String,
    },
    Entry {
        entry_id: ItemId,
        memory_type: Tier,
        version: u32,
        #[serde(skip_serializing_if = "Option::is_none")]
        previous_version: Option<u32>,
        #[serde(skip_serializing_if = "Option::is_none")]
        oap_event: Option<Marked>,
        #[serde(skip_serializing_if = "Option::is_none")]
        namespace: Option<String>,
        #[serde(skip_serializing_if = "Option::is_none")]
        key: Option<String>,
        #[serde(skip_serializing_if = "Option::is_none")]
        tags: Option<Vec<String>>,
    },
    Archive {
        entries_archived: usize,
        snapshot: Vec<Snapshot>,
    },
}

/// An entry of an archive.
#[derive(Debug, Serialize)]
#[serde(untagged)]
enum Snapshot {
    /// It is not kept any more, or is something else by now.
    Gone { entry_id: ItemId, erased: bool },
    /// The answer has no room for it.
    LeftOut { entry_id: ItemId, left_out: bool },
    Kept {
        entry_id: ItemId,
        namespace: String,
        key: String,
        tags: Vec<String>,
        #[serde(skip_serializing_if = "Option::is_none")]
        value: Option<Opaque>,
        #[serde(skip_serializing_if = "Option::is_none")]
        value_redacted: Option<bool>,
        #[serde(skip_serializing_if = "Option::is_none")]
        commitment: Option<Hash>,
    },
}

/// An agent that reads a log.
struct Reader<'a> {
    did: &'a Did,
    /// Whether it coordinates the intent.
    coordinates: bool,
    /// Whether who coordinates the intent has the role for it: without it nobody is told of what others did.
    is_led: bool,
    tasks: BTreeMap<TaskId, StoredTask>,
}

impl Reader<'_> {
    /// Whether it may know of a task at all.
    fn knows(&self, task: Option<TaskId>) -> bool {
        task.and_then(|task| self.tasks.get(&task)).is_some_and(|task| task.is_known_to(self.did))
    }

    fn leads(&self) -> bool {
        self.coordinates && self.is_led
    }

    /// Whether it is told of what another did for a task.
    fn follows(&self, task: Option<TaskId>) -> bool {
        let assigned = task.and_then(|task| self.tasks.get(&task)).and_then(|task| task.assigned.as_ref());
        self.leads() || (self.is_led && assigned == Some(self.did))
    }

    /// Whether an archived entry is for it.
    fn is_shown(&self, task: Option<TaskId>, of: &Archived) -> bool {
        of.author == *self.did || (!of.is_sealed && self.follows(task))
    }

    /// Whether anything may be for it in a part of the log that is of what an agent did.
    fn reads(&self, of: &str, agent: &Did) -> bool {
        if agent == self.did || self.leads() {
            return true;
        }
        let is_before_it =
            |task: &StoredTask| task.assigned.as_ref() == Some(self.did) && task.agents.contains(agent);
        match of {
            "refusals" => false,
            "entries" => self.is_led && self.tasks.values().any(is_before_it),
            _ => true,
        }
    }

    /// How much of an event is for it: of an archive so many entries, of any other it or nothing.
    fn told_of(&self, event: &StoredEvent) -> usize {
        let is_own = event.agent == *self.did;
        let is_told = match &event.what {
            What::Task(_) => self.knows(event.task),
            What::Refused(_) => is_own || self.leads(),
            // What an agent remembers beyond the task its coordinator reads alone.
            What::Entry { restricted, tier: Tier::Episodic, .. } => is_own || (!restricted && self.leads()),
            What::Entry { restricted, .. } => is_own || (!restricted && self.follows(event.task)),
            What::Archive(items) => {
                return items.iter().filter(|of| self.is_shown(event.task, of)).count();
            }
        };
        usize::from(is_told)
    }
}

/// An entry and how it is tagged.
type Tagged = (Arc<Head>, Vec<String>);

/// What an answer tells of entries.
#[derive(Default)]
struct AnswerTally {
    items: BTreeSet<ItemId>,
    bytes: usize,
    /// How many events were looked at; of an archive each entry that is told of. What is not told of makes nothing more of it.
    looked_at: usize,
    /// How many archived entries were opened for it.
    opened: usize,
    /// Whether something was left out.
    is_full: bool,
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
            let reader = Reader { did: &did, coordinates: false, is_led: false, tasks: BTreeMap::new() };
            Ok(((), looking.events(vec![(stream, None)], &reader, &wanted)?))
        });
        Ok(told.await?.1)
    }

    /// The log of an intent, as far as the agent may know it.
    ///
    /// # Errors
    /// [`Error::NotFound`] of one that it neither coordinates nor has or had a task of; [`Error::Entry`] where more events than one
    /// answer looks through are none that is asked for.
    pub async fn log(
        self,
        agent: &Agent<Read>,
        id: IntentId,
        input: Hash,
        wanted: Wanted,
    ) -> Result<Vec<u8>, Error> {
        let told = self.read(agent, "openintent.log", input, move |looking| {
            let (gateway, did) = (looking.gateway, looking.agent.did().clone());
            let (intent, tasks) = known_intent(gateway, id, &did)?;
            let is_led = looking.reach.note(&gateway.store, &intent.coordinator)?;
            let coordinates = intent.coordinator == did;
            let reader = Reader { did: &did, coordinates, is_led, tasks: tasks.into_iter().collect() };
            looking.lean_on(&reader.tasks);
            // Of what it does not know it is told nothing.
            let known = reader.tasks.iter().filter(|(_, task)| task.is_known_to(&did));
            // What was archived of a task was so when it ended, since when it is as it is.
            let is_asked = |at: Timestamp| wanted.since.is_none_or(|since| at >= since);
            let ended = known.clone().filter(|(_, task)| !task.is_open() && is_asked(task.updated_at));
            let ended = ended.map(|(id, task)| (*id, Some(task.updated_at)));
            let agents = known.flat_map(|(_, task)| &task.agents).chain([&intent.coordinator]);
            let is_read = |of: &str, agent: &Did| reader.reads(of, agent);
            let streams = streams(id, ended, agents, wanted.name.as_deref(), is_read);
            Ok(((), looking.events(streams, &reader, &wanted)?))
        });
        Ok(told.await?.1)
    }
}

impl Looking<'_> {
    /// The events of some streams together.
    fn events(
        &mut self,
        mut streams: Vec<Stream>,
        reader: &Reader<'_>,
        wanted: &Wanted,
    ) -> Result<Vec<Shown>, Error> {
        let gateway = self.gateway;
        let (mut shown, mut tally, mut left) = (Vec::new(), AnswerTally::default(), wanted.offset);
        let open = |(stream, at): Stream| {
            let since = wanted.since.filter(|_| at.is_none());
            let first = since.map(|since| first_since(&gateway.store, stream, since)).transpose()?;
            let range = Range::under(&stream).from(&(stream, first.unwrap_or(0)));
            Ok::<_, Error>(EVENTS.range(&gateway.store, range).peekable())
        };
        // What is known to be later is opened when its time has come: an archive is large, and there may be one of each task.
        streams.sort_by_key(|(_, at)| *at);
        let (mut parts, mut waiting) = (Vec::new(), streams.into_iter().peekable());
        while let Some(stream) = waiting.next_if(|(_, at)| at.is_none()) {
            parts.push(open(stream)?);
        }
        loop {
            let mut oldest: Option<(Timestamp, usize)> = None;
            for (number, part) in parts.iter_mut().enumerate() {
                let at = match part.peek() {
                    None => continue,
                    Some(Ok((_, event))) => event.at,
                    Some(Err(_)) => Timestamp::from_millis(0),
                };
                if oldest.is_none_or(|(least, _)| at < least) {
                    oldest = Some((at, number));
                }
            }
            let is_due = |at: Option<Timestamp>| oldest.is_none_or(|(least, _)| at <= Some(least));
            if let Some(stream) = waiting.next_if(|(_, at)| is_due(*at)) {
                // Before what else was at that time: the state that ended the task.
                parts.insert(0, open(stream)?);
                continue;
            }
            let Some(row) = oldest.and_then(|(_, number)| parts.get_mut(number)?.next()) else { break };
            if tally.looked_at >= MAX_LOOKED_AT && shown.is_empty() {
                return Err(Error::Entry(EntryError::Field("since", Must::Later)));
            }
            if tally.looked_at >= MAX_LOOKED_AT {
                break;
            }
            let (_, event) = row?;
            let share = reader.told_of(&event);
            tally.looked_at += share.max(1);
            let is_asked = wanted.since.is_none_or(|since| event.at >= since)
                && wanted.name.as_deref().is_none_or(|name| event.what.name() == name);
            if !is_asked || share == 0 {
                continue;
            }
            if left > 0 {
                left -= 1;
                continue;
            }
            let payload = self.payload(&event, reader, &mut tally)?;
            shown.push(self.event(&event, &payload)?);
            // What is left is asked for with an offset.
            if shown.len() == wanted.limit || tally.is_full || tally.bytes > MAX_VALUES {
                break;
            }
        }
        Ok(shown)
    }

    fn event(&self, event: &StoredEvent, payload: &Payload) -> Result<Shown, Error> {
        let name = event.what.name();
        let (entry, version) = match &event.what {
            What::Entry { item, version, .. } => (Some(item), Some(version)),
            _ => (None, None),
        };
        // Of what is told, and never of its place among what is not.
        let id = Hash::of_canonical(&json!([
            event.intent,
            event.agent,
            event.actor,
            event.at,
            name,
            event.task,
            entry,
            version
        ]))?;
        let id: String = id.to_string().chars().skip_while(|c| *c != ':').skip(1).take(26).collect();
        let payload = to_raw_value(payload)?;
        Ok(Shown {
            id: format!("evt_{id}"),
            event_type: name,
            name,
            intent_id: event.intent,
            task_id: event.task,
            agent_id: self.name(&event.agent),
            actor: event.actor.as_ref().map_or_else(|| "owner".to_owned(), |actor| self.name(actor)),
            data: payload.clone(),
            payload,
            created_at: event.at,
            timestamp: event.at,
        })
    }

    /// What an event says to its reader, who is told of it.
    fn payload(
        &mut self,
        event: &StoredEvent,
        reader: &Reader<'_>,
        tally: &mut AnswerTally,
    ) -> Result<Payload, Error> {
        match &event.what {
            What::Task(status) => Ok(Payload::Task { task_id: event.task, status: *status }),
            What::Refused(rail) => Ok(Payload::Refused { guardrail: rail.clone() }),
            What::Entry { happened, item, tier, version, previous, oap, .. } => {
                let is_gone = matches!(happened, Happened::Deleted | Happened::Evicted | Happened::Expired);
                let seen = if is_gone { None } else { self.details(*item, tally)? };
                let (namespace, key, tags) = match seen {
                    None => (None, None, None),
                    Some((head, tags)) => {
                        let namespace = head.meta.namespace.as_deref().cloned();
                        (namespace, head.meta.key.as_deref().cloned(), Some(tags))
                    }
                };
                Ok(Payload::Entry {
                    entry_id: *item,
                    memory_type: *tier,
                    version: *version,
                    previous_version: *previous,
                    oap_event: *oap,
                    namespace,
                    key,
                    tags,
                })
            }
            What::Archive(items) => {
                let mut snapshot = Vec::new();
                for of in items.iter().filter(|of| reader.is_shown(event.task, of)) {
                    snapshot.push(self.archived(of, of.author == *reader.did, tally)?);
                }
                Ok(Payload::Archive { entries_archived: snapshot.len(), snapshot })
            }
        }
    }

    /// An entry, for where it is, and how it is tagged, while the reader may read it.
    fn details(&mut self, item: ItemId, tally: &mut AnswerTally) -> Result<Option<Tagged>, Error> {
        let Some(head) = self.gateway.heads.get(item) else { return Ok(None) };
        if !self.may_read(&head)? {
            return Ok(None);
        }
        let Some(seen) = self.seen(head.clone())? else { return Ok(None) };
        if tally.items.insert(item) {
            self.count(&seen);
        }
        tally.bytes += place_of(&head);
        let tags = Context::of(&seen.whole).tags(&head.labels);
        Ok(Some((head, tags)))
    }

    /// An entry as it was archived, as long as it is kept. Of one that was put back, or that says something else by now, others see
    /// nothing.
    fn archived(&mut self, of: &Archived, is_own: bool, tally: &mut AnswerTally) -> Result<Snapshot, Error> {
        let entry_id = of.item;
        let (gone, left_out) =
            (Snapshot::Gone { entry_id, erased: true }, Snapshot::LeftOut { entry_id, left_out: true });
        let kept = self.gateway.heads.get(entry_id).filter(|head| {
            let is_over = head.end_of_life.is_some_and(|end| end <= self.now);
            let is_same = head.status == Status::Retracted
                && head.version_seq == of.version
                && *head.meta.author == of.author;
            let is_shown = is_same || (is_own && is_seen(self.agent, head, self.now));
            is_shown && !is_over && (is_own || !is_sealed(head))
        });
        let Some(head) = kept else { return Ok(gone) };
        if tally.is_full || tally.opened >= MAX_ENTRIES {
            tally.is_full = true;
            return Ok(left_out);
        }
        tally.opened += 1;
        let Some(seen) = self.seen(head.clone())? else { return Ok(gone) };
        let value = value_of(&seen.whole);
        let size = place_of(&head) + value.as_str().len();
        if tally.bytes > 0 && tally.bytes + size > MAX_VALUES {
            tally.is_full = true;
            return Ok(left_out);
        }
        tally.bytes += size;
        if tally.items.insert(entry_id) {
            self.count(&seen);
        }
        let is_open = matches!(head.sensitivity, Sensitivity::Public | Sensitivity::Internal);
        Ok(Snapshot::Kept {
            entry_id,
            namespace: head.meta.namespace.as_deref().cloned().unwrap_or_default(),
            key: head.meta.key.as_deref().cloned().unwrap_or_default(),
            tags: Context::of(&seen.whole).tags(&head.labels),
            value: is_open.then_some(value),
            value_redacted: (!is_open).then_some(true),
            commitment: (!is_open).then(|| seen.commitment()),
        })
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

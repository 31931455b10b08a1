//! What became of entries (RFC-0015 5), for the agents whose they are and for the intents that they belong to.
//!
//! An event names entries by their ids, and holds nothing that they say: what it shows of one is read when it is asked for, so that
//! nothing of what is erased stays here.

use crate::error::Error;
use crate::state::commits::Writing;
use crate::state::schema::{self, EVENTS, STREAMS, VERSIONS, whole};
use crate::state::tasks::task_named;
use oap_agents::entry::Context;
use oap_agents::task::TaskStatus;
use oap_identity::{Did, IntentId, ItemId, TaskId, Timestamp};
use oap_memory::closed_enum;
use oap_memory::commitment::Committed;
use oap_memory::item::Sensitivity;
use oap_memory::record::{Head, Tier};
use oap_store::{Store, StoreError};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// Most events that are kept of an agent, and of an intent; beyond it the oldest goes.
pub const MAX_EVENTS: u64 = 10_000;

/// Most events that one answer looks through; of an archive each entry counts that its reader is told of.
pub const MAX_LOOKED_AT: usize = 50_000;

/// The name of the event of a write that a guardrail refused.
const REFUSED: &str = "governance.violation";

closed_enum! {
    /// What became of an entry.
    Happened {
        /// It was written.
        Created = "memory.created",
        /// What it says, its tags, or where it stands changed.
        Updated = "memory.updated",
        /// It was erased.
        Deleted = "memory.deleted",
        /// A task ended, and the working entries that were written for it with it.
        Archived = "memory.archived",
        /// It went to make room.
        Evicted = "memory.evicted",
        /// Its life ended.
        Expired = "memory.expired",
    }
}

/// An event as it is stored.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoredEvent {
    pub(crate) what: What,
    pub(crate) at: Timestamp,
    /// Whose entries; of a task, its coordinator.
    pub(crate) agent: Did,
    /// Who did it; none where the owner or the house did.
    pub(crate) actor: Option<Did>,
    pub(crate) task: Option<TaskId>,
    pub(crate) intent: Option<IntentId>,
}

/// What an event is of.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum What {
    /// An entry.
    #[allow(missing_docs, reason = "the names say it")]
    Entry {
        happened: Happened,
        item: ItemId,
        tier: Tier,
        version: u32,
        /// The version before, where there was one.
        previous: Option<u32>,
        /// What the OAP side calls it, where that says more.
        oap: Option<Marked>,
        /// Whether its author alone knows of it.
        restricted: bool,
    },
    /// The working entries of a task.
    Archive(Vec<Archived>),
    /// A task that got so far.
    Task(TaskStatus),
    /// A write that a guardrail refused, by its name.
    Refused(String),
}

/// A working entry as it was archived.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Archived {
    pub(crate) item: ItemId,
    pub(crate) author: Did,
    /// Whether its author alone knows of it.
    pub(crate) is_sealed: bool,
    /// The link whose version was in force. What the entry says later is not shown.
    pub(crate) version: u32,
}

impl Archived {
    pub(crate) fn of(head: &Head) -> Self {
        Self {
            item: head.item_id,
            author: (*head.meta.author).clone(),
            is_sealed: is_sealed(head),
            version: head.version_seq,
        }
    }
}

/// Whether nobody but its author is told of an entry: it is restricted, or the guard marked it and the owner did not accept it.
pub(crate) fn is_sealed(head: &Head) -> bool {
    let is_marked = head.meta.tier != Tier::Semantic && head.meta.needs_verification;
    head.sensitivity == Sensitivity::Restricted || is_marked
}

closed_enum! {
    /// Where an entry was put that is kept.
    Marked {
        /// It was taken back, and is kept for the retention time.
        Retracted = "retracted",
        /// It was put back.
        Restored = "restored",
    }
}

impl What {
    /// Its name in the dialect.
    pub(crate) fn name(&self) -> &'static str {
        match self {
            Self::Entry { happened, .. } => happened.as_str(),
            Self::Archive(_) => Happened::Archived.as_str(),
            Self::Task(status) => status.event(),
            Self::Refused(_) => REFUSED,
        }
    }

    /// Whether something is the name of an event.
    pub(crate) fn is_name(name: &str) -> bool {
        name == REFUSED
            || Happened::ALL.iter().any(|happened| happened.as_str() == name)
            || TaskStatus::ALL.iter().any(|status| status.event() == name)
    }
}

/// A part of an intent's log.
fn part(intent: IntentId, of: &str) -> [u8; 16] {
    schema::agent(&format!("{intent} {of}"))
}

/// What was archived of a task, in its intent's log.
fn archives_of(intent: IntentId, task: TaskId) -> [u8; 16] {
    part(intent, &format!("archives {task}"))
}

/// Whether events of a name may stand in a part of an intent's log.
fn is_in(of: &str, name: &str) -> bool {
    match of {
        "archives" => name == Happened::Archived.as_str(),
        "tasks" => name.starts_with("task."),
        "refusals" => name == REFUSED,
        _ => name.starts_with("memory.") && name != Happened::Archived.as_str(),
    }
}

/// A stream, and when the first event in it was, where that is known.
pub(crate) type Stream = ([u8; 16], Option<Timestamp>);

/// The streams of an intent's log that may hold events of a name, or of any. What is many takes in them no place from what is not: what
/// was archived of each task, states of tasks by the house, and of each agent, its coordinator among them, the states that it said, what
/// guardrails refused it and what became of its entries; of these last two those that are read.
pub(crate) fn streams<'a>(
    intent: IntentId,
    tasks: impl Iterator<Item = (TaskId, Option<Timestamp>)>,
    agents: impl Iterator<Item = &'a Did>,
    name: Option<&str>,
    is_read: impl Fn(&str, &Did) -> bool,
) -> Vec<Stream> {
    let agents: BTreeSet<&Did> = agents.collect();
    let parts = |all: &[&'static str]| -> Vec<&'static str> {
        all.iter().copied().filter(|of| name.is_none_or(|name| is_in(of, name))).collect()
    };
    // Archives of all tasks are in one stream where an earlier version wrote them.
    let mut streams: Vec<Stream> =
        parts(&["archives", "tasks"]).into_iter().map(|of| (part(intent, of), None)).collect();
    let own = parts(&["tasks", "refusals", "entries"]);
    for agent in agents {
        let read = own.iter().filter(|of| is_read(of, agent));
        streams.extend(read.map(|of| (part(intent, &format!("{of} {agent}")), None)));
    }
    if name.is_none_or(|name| is_in("archives", name)) {
        streams.extend(tasks.map(|(task, at)| (archives_of(intent, task), at)));
    }
    streams
}

/// The number of the first event of a stream at a time or after it: in a stream times do not fall. What went meanwhile was before it.
pub(crate) fn first_since(store: &Store, stream: [u8; 16], since: Timestamp) -> Result<u64, Error> {
    let mut end = STREAMS.get(store, &stream)?.unwrap_or(0);
    let mut first = end.saturating_sub(MAX_EVENTS);
    while first < end {
        let middle = first + (end - first) / 2;
        if EVENTS.get(store, &(stream, middle))?.is_none_or(|event| event.at < since) {
            first = middle + 1;
        } else {
            end = middle;
        }
    }
    Ok(first)
}

/// The stream of an intent's log in which an event stands.
fn stream_of(intent: IntentId, event: &StoredEvent) -> [u8; 16] {
    match (&event.what, &event.actor) {
        // By task: who knows of one reads nothing of the others.
        (What::Archive(_), _) => {
            event.task.map_or_else(|| part(intent, "archives"), |task| archives_of(intent, task))
        }
        // By who said it: nobody pushes out what another did.
        (What::Task(_), Some(actor)) => part(intent, &format!("tasks {actor}")),
        (What::Task(_), None) => part(intent, "tasks"),
        (What::Refused(_), _) => part(intent, &format!("refusals {}", event.agent)),
        (What::Entry { .. }, _) => part(intent, &format!("entries {}", event.agent)),
    }
}

impl Writing<'_, '_> {
    /// Notes what became of an item, where it is an entry: in the stream of whose it is or was, and in the log of the intent whose task it
    /// names. The owner has no stream.
    pub(crate) fn tell_of(
        &mut self,
        happened: Happened,
        head: &Head,
        whose: &Did,
        context: &Context,
        previous: Option<u32>,
        oap: Option<Marked>,
    ) -> Result<(), Error> {
        if head.meta.key.is_none() || self.quiet || *whose == self.gateway.principal {
            return Ok(());
        }
        let agent = whose.clone();
        let task = task_named(self.tx, context.scope.task_id.as_deref(), &agent)?;
        // In the log of an intent stands what its open tasks let others read, and nothing else.
        let is_logged = task.as_ref().is_some_and(|(_, task)| {
            let is_read = match head.meta.tier {
                Tier::Working => true,
                Tier::Episodic => task.assigned.as_ref() == Some(&agent),
                Tier::Semantic => false,
            };
            is_read && task.is_open()
        });
        let what = What::Entry {
            happened,
            item: head.item_id,
            tier: head.meta.tier,
            version: head.version_seq.saturating_add(1),
            previous,
            oap,
            restricted: is_sealed(head),
        };
        let (task, intent) = task.map(|(id, task)| (id, task.intent)).unzip();
        let event = StoredEvent { what, at: self.now, agent, actor: self.actor.clone(), task, intent };
        if let Some(intent) = intent.filter(|_| is_logged) {
            self.tell_log(intent, &event)?;
        }
        self.tell(schema::agent(event.agent.as_str()), &event)
    }

    /// The same of an item whose version in force is still there.
    pub(crate) fn tell_of_stored(
        &mut self,
        happened: Happened,
        head: &Head,
        oap: Option<Marked>,
    ) -> Result<(), Error> {
        if head.meta.key.is_none() || self.quiet {
            return Ok(());
        }
        let context = match VERSIONS.get(self.tx, &(head.item_id, head.version_seq)) {
            Ok(Some(version)) => context_of(&version)?,
            Ok(None) | Err(StoreError::Erased) => Context::default(),
            Err(error) => return Err(error.into()),
        };
        self.tell_of(happened, head, &head.meta.author, &context, None, oap)
    }

    /// Appends an event to the log of an intent.
    pub(crate) fn tell_log(&mut self, intent: IntentId, event: &StoredEvent) -> Result<(), Error> {
        self.tell(stream_of(intent, event), event)
    }

    /// Appends an event to a stream.
    pub(crate) fn tell(&mut self, stream: [u8; 16], event: &StoredEvent) -> Result<(), Error> {
        let number = STREAMS.get(self.tx, &stream)?.unwrap_or(0);
        EVENTS.put(self.tx, &(stream, number), event)?;
        if let Some(oldest) = number.checked_sub(MAX_EVENTS) {
            EVENTS.delete(self.tx, &(stream, oldest));
        }
        Ok(STREAMS.put(self.tx, &stream, &number.saturating_add(1))?)
    }
}

/// What an entry's version says of its context.
pub(crate) fn context_of(version: &Committed) -> Result<Context, Error> {
    Ok(Context::of(&whole(version)?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use oap_identity::random::Seeded;
    use std::sync::Arc;

    /// Each event stands where the log is read, and no agent writes where what another did stands.
    #[test]
    fn no_agent_pushes_out_what_another_did() {
        let did = |name: &str| -> Did { format!("did:web:{name}.example").parse().unwrap() };
        let (lead, b, d) = (did("lead"), did("b"), did("d"));
        let (intent, task) = (IntentId::from_bytes([9; 16]), TaskId::from_bytes([8; 16]));
        let at = |what: What, agent: &Did, actor: Option<&Did>| {
            let event = StoredEvent {
                what,
                at: Timestamp::from_millis(0),
                agent: agent.clone(),
                actor: actor.cloned(),
                task: Some(task),
                intent: Some(intent),
            };
            stream_of(intent, &event)
        };
        let said = |status, actor| at(What::Task(status), &lead, actor);
        let refused = |agent| at(What::Refused("rail".to_owned()), agent, Some(agent));
        let places = [
            said(TaskStatus::Pending, Some(&lead)),
            said(TaskStatus::Running, Some(&b)),
            said(TaskStatus::Completed, Some(&d)),
            said(TaskStatus::Cancelled, None),
            at(What::Archive(Vec::new()), &lead, Some(&b)),
            refused(&b),
            refused(&d),
        ];
        let ended = || [(task, Some(Timestamp::from_millis(5)))].into_iter();
        let read = streams(intent, ended(), [&lead, &b, &d].into_iter(), None, |_, _| true);
        assert!(places.iter().all(|place| read.iter().any(|(stream, _)| stream == place)));
        assert_eq!(BTreeSet::from(places).len(), places.len());
        assert_eq!(said(TaskStatus::Claimed, Some(&b)), said(TaskStatus::Running, Some(&b)));
        // By a name those are read that may hold it.
        let of = |name: &str| -> Vec<[u8; 16]> {
            let read = streams(intent, ended(), [&b].into_iter(), Some(name), |_, _| true);
            read.into_iter().map(|(stream, _)| stream).collect()
        };
        assert!(["task.started", "memory.archived", REFUSED].into_iter().all(What::is_name));
        assert!(!What::is_name("zzz"));
        assert_eq!(
            of("task.started"),
            [said(TaskStatus::Cancelled, None), said(TaskStatus::Running, Some(&b))]
        );
        // What was archived, in the stream of an earlier version too.
        let archive = at(What::Archive(Vec::new()), &lead, None);
        assert_eq!(of("memory.archived"), [part(intent, "archives"), archive]);
        // Of a task that is not asked for nothing is read, nor of what an agent did that is none of the reader's.
        let other = TaskId::from_bytes([7; 16]);
        let elsewhere = [(other, None)].into_iter();
        let own = |of: &str, agent: &Did| of == "tasks" || *agent == b;
        let read = streams(intent, elsewhere, [&b, &d].into_iter(), None, own);
        let reads = |place: [u8; 16]| read.iter().any(|(stream, _)| *stream == place);
        assert!(reads(archives_of(intent, other)) && !reads(archive));
        assert!(reads(refused(&b)) && !reads(refused(&d)) && reads(said(TaskStatus::Completed, Some(&d))));
        assert_eq!(of(REFUSED), [refused(&b)]);
        assert_eq!((of("memory.updated").len(), of("zzz").len()), (1, 0));
    }

    /// A time is found among the numbers of a stream, wherever it stands, and where the first ones went.
    #[tokio::test]
    async fn a_time_is_found_in_a_stream() {
        let store = Store::in_memory(Arc::new(Seeded::new(1))).unwrap();
        let (stream, did) = ([7; 16], "did:web:b.example".parse::<Did>().unwrap());
        // Two of each time, from the tenth number on; the first ones are not kept any more.
        let row = move |number: u64| StoredEvent {
            what: What::Refused("rail".to_owned()),
            at: Timestamp::from_millis(i64::try_from(number / 2).unwrap()),
            agent: did.clone(),
            actor: None,
            task: None,
            intent: None,
        };
        store
            .transact(move |tx| {
                for number in 10..30 {
                    EVENTS.put(tx, &(stream, number), &row(number))?;
                }
                STREAMS.put(tx, &stream, &30)
            })
            .await
            .unwrap();
        let first = |millis| first_since(&store, stream, Timestamp::from_millis(millis)).unwrap();
        assert_eq!([0, 5, 6, 14, 15].map(first), [10, 10, 12, 28, 30]);
        assert_eq!(first_since(&store, [8; 16], Timestamp::from_millis(0)).unwrap(), 0);
    }
}

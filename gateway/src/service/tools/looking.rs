//! What an agent sees of its owner's memory, and what of it an answer shows.

use super::finding::Ranked;
use super::{MAX_HANDED, Shown};
use crate::error::Error;
use crate::service::entries::said_in;
use crate::service::items::whole;
use crate::state::agents::{self, Agent};
use crate::state::edges::EdgePlace;
use crate::state::gateway::Gateway;
use crate::state::owner::mark::Read;
use crate::state::policy::policy;
use crate::state::schema;
use crate::state::tasks::Reach;
use oap_agents::Level;
use oap_agents::answers::{Fact, Linked};
use oap_agents::arguments::{Source, topic_label, topic_of};
use oap_agents::level::EXTENSION;
use oap_agents::quarantine;
use oap_agents::scoring::ScoreParts;
use oap_agents::staleness::Staleness;
use oap_identity::{Did, Hash, ItemId, Timestamp};
use oap_memory::item::{Confidence, Sensitivity};
use oap_memory::receipt::item_tag;
use oap_memory::{Head, Kind};
use oap_soundness::kept::Policy;
use oap_store::StoreError;
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Who wrote what the owner wrote, as facts have it.
const OWNER: &str = "owner";

/// Bytes of a link that are nobody's words: its ids, who says it and since when, for programs and as text.
const AROUND_LINK: usize = 400;

/// Most bytes of the links of an answer: a room of their own, so that they take none of what items say.
const ROOM_FOR_LINKS: usize = 32 << 10;

/// An agent that looks, and what it was shown so far.
pub(crate) struct Looking<'a> {
    pub gateway: &'a Arc<Gateway>,
    pub agent: &'a Agent<Read>,
    pub now: Timestamp,
    /// What the owner lets agents write, and how it is believed.
    pub policy: Policy,
    /// What it may read of others' entries by its tasks; where nothing asks for that, nothing.
    pub reach: Reach,
    names: BTreeMap<Did, String>,
    shown: Shown,
    /// Bytes of what the items that were shown say.
    said: usize,
    /// Bytes of what the links say that were told.
    linked: usize,
}

/// An item that an agent may see, with everything shown.
pub(crate) struct VisibleItem {
    pub head: Arc<Head>,
    pub whole: Map<String, Value>,
    commitment: Hash,
    /// How long it can be relied on, and whether that is past.
    staleness: Option<(Staleness, bool)>,
}

impl VisibleItem {
    /// An item as it was, or is; how long it can be relied on with whether that was past.
    pub(super) fn new(
        head: Arc<Head>,
        whole: Map<String, Value>,
        commitment: Hash,
        staleness: Option<(Staleness, bool)>,
    ) -> Self {
        Self { head, whole, commitment, staleness }
    }

    pub fn content(&self, member: &str) -> Option<&Value> {
        self.whole.get("content")?.get(member)
    }

    /// The commitment of the version in force.
    pub const fn commitment(&self) -> Hash {
        self.commitment
    }

    /// How long it can be relied on, as its writer said.
    pub fn staleness(&self) -> Option<Staleness> {
        self.staleness.map(|(staleness, _)| staleness)
    }

    /// Whether it can be relied on no more, as its writer said.
    pub fn is_stale(&self) -> bool {
        self.staleness.is_some_and(|(_, is_past)| is_past)
    }

    /// Its text.
    pub fn text(&self) -> Option<&str> {
        self.content("text")?.as_str()
    }

    /// What sort of observation its writer says that it is.
    pub fn sort(&self) -> Option<String> {
        self.whole.get("extensions")?.get(EXTENSION)?.get("type")?.as_str().map(str::to_owned)
    }

    /// What its writer says of where it comes from.
    pub fn source(&self) -> Option<Source> {
        let source = self.whole.get("extensions")?.get(EXTENSION)?.get("source")?;
        serde_json::from_value(source.clone()).ok()
    }
}

/// The commitment of a former version, and what it says.
pub(crate) type Former = (Hash, Map<String, Value>);

/// What is asked of items, as far as their heads say it.
pub(crate) struct Wanted {
    labels: Vec<String>,
    kinds: Vec<Kind>,
    least: Option<Confidence>,
}

impl Wanted {
    pub fn new(topic: Option<&str>, tags: &[String], kinds: &[Kind], least: Option<Confidence>) -> Self {
        let labels = topic.map(topic_label).into_iter().chain(tags.iter().cloned()).collect();
        Self { labels, kinds: kinds.to_vec(), least }
    }

    /// Whether a head is of what is asked for, by how sure it is for the one who looks, now.
    pub fn admits(&self, head: &Head, looking: &Looking<'_>) -> bool {
        self.labels.iter().all(|label| head.labels.contains(label))
            && (self.kinds.is_empty() || self.kinds.contains(&head.kind))
            && self.least.is_none_or(|least| looking.confidence(head) >= least.get())
    }
}

impl<'a> Looking<'a> {
    pub fn new(gateway: &'a Arc<Gateway>, agent: &'a Agent<Read>) -> Result<Self, Error> {
        let known = agents::all(&gateway.store)?;
        let names = known.into_iter().map(|(did, agent)| (did, agent.name.to_string()));
        let owner = (gateway.principal.clone(), OWNER.to_owned());
        Ok(Self {
            gateway,
            agent,
            now: gateway.clock.now(),
            policy: policy(&gateway.store)?,
            reach: Reach::default(),
            names: names.chain([owner]).collect(),
            shown: Shown::default(),
            said: 0,
            linked: 0,
        })
    }

    /// What was shown.
    pub fn handed(self) -> Shown {
        Shown { reach: Some(self.reach), decay: Some(self.policy.decay), ..self.shown }
    }

    /// Whether the agent may see an item, it is in force, and it is believed still.
    pub fn is_seen(&self, head: &Head) -> bool {
        head.is_live(self.now) && self.agent.sight().sees(head) && !self.is_gone(head)
    }

    /// Every item that the agent may see and that is in force, oldest first. What is not among them does not exist for it.
    pub fn all(&self) -> Vec<Arc<Head>> {
        let mut heads = self.gateway.heads.all();
        heads.retain(|head| self.is_seen(head));
        heads
    }

    /// An item that the agent may see, in whatever state; what is believed no more, its author alone.
    ///
    /// # Errors
    /// [`Error::NotFound`] of any other.
    pub fn one(&self, item: ItemId) -> Result<VisibleItem, Error> {
        let sight = self.agent.sight();
        let may = |head: &Arc<Head>| sight.sees(head) && (sight.wrote(head) || !self.is_gone(head));
        let head = self.gateway.heads.get(item).filter(may);
        self.seen(head.ok_or(Error::NotFound)?)?.ok_or(Error::NotFound)
    }

    /// An item with its version in force; `None` where it was erased since its head was read.
    pub fn seen(&self, head: Arc<Head>) -> Result<Option<VisibleItem>, Error> {
        match schema::version(&self.gateway.store, head.item_id, head.version_seq) {
            Ok(version) => {
                let whole = whole(&version)?;
                let staleness = match Staleness::of(&whole) {
                    None => None,
                    Some(staleness) => {
                        let said = said_in(&self.gateway.store, head.item_id, head.version_seq)?;
                        let is_past = said.is_some_and(|link| staleness.is_past(link.at, self.now));
                        Some((staleness, is_past))
                    }
                };
                Ok(Some(VisibleItem { whole, commitment: version.commitment(), head, staleness }))
            }
            Err(Error::NotFound | Error::Store(StoreError::Erased)) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// A former version, and what it says; `None` where it is not kept, or told to no agent: of what was restricted nothing says whose it
    /// was, and what the guard stopped was nobody's to read.
    pub fn former(&self, head: &Head, seq: u32) -> Result<Option<Former>, Error> {
        let version = match schema::version(&self.gateway.store, head.item_id, seq) {
            Ok(version) => version,
            Err(Error::NotFound | Error::Store(StoreError::Erased)) => return Ok(None),
            Err(error) => return Err(error),
        };
        let says = whole(&version)?;
        let restricted =
            says.get("sensitivity").and_then(Value::as_str) == Some(Sensitivity::Restricted.as_str());
        let mut labels = says.get("labels").and_then(Value::as_array).into_iter().flatten();
        let stopped = labels.any(|label| label == quarantine::LABEL);
        Ok((!restricted && !stopped).then(|| (version.commitment(), says)))
    }

    /// Who wrote an item, as facts have it.
    pub fn author(&self, head: &Head) -> String {
        self.name(&head.meta.author)
    }

    /// Who somebody is, as facts have it.
    pub fn name(&self, did: &Did) -> String {
        self.names.get(did).cloned().unwrap_or_else(|| did.to_string())
    }

    /// Whether what an item says fits into the answer. The first one always does.
    pub fn has_room(&self, seen: &VisibleItem) -> bool {
        self.has_room_for(size(seen))
    }

    /// Whether so many bytes of what an item says fit into the answer.
    pub fn has_room_for(&self, bytes: usize) -> bool {
        self.shown.items.is_empty() || self.said + bytes <= MAX_HANDED
    }

    /// Shows what an item said at a time: the answer holds until `ends`.
    pub(super) fn count_then(&mut self, seen: &VisibleItem, ends: Option<Timestamp>) {
        let (head, shown) = (&seen.head, &mut self.shown);
        shown.items.push((head.item_id, head.seq));
        shown.tags.push(item_tag(head.item_id, seen.commitment));
        shown.ends = shown.ends.into_iter().chain(ends).min();
        self.said += size(seen);
    }

    /// Counts an item as part of the answer and of its receipt.
    pub fn count(&mut self, seen: &VisibleItem) {
        let (head, shown) = (&seen.head, &mut self.shown);
        shown.items.push((head.item_id, head.seq));
        shown.tags.push(item_tag(head.item_id, seen.commitment));
        shown.ends = shown.ends.into_iter().chain(head.end_of_life).min();
    }

    /// Shows an item, found or listed: from here on it is part of the answer and of its receipt.
    pub fn show(&mut self, seen: &VisibleItem, found: Option<&Ranked>) -> Fact {
        self.count(seen);
        self.said += size(seen);
        let trust = self.trust_of(seen).ok();
        // The answer is true until then.
        let gone_at = trust.and_then(|trust| trust.gone_at).filter(|at| *at > self.now);
        self.shown.ends = self.shown.ends.into_iter().chain(gone_at).min();
        if let Some(way) = found.and_then(Ranked::way) {
            self.rest_on(&way.links, &way.through, way.ends);
        }
        let parts = found.map(|found| found.parts);
        let confidence = self.confidence(&seen.head);
        let fact = self.fact(seen, confidence, trust.is_some_and(|trust| trust.is_stale));
        Fact { score: parts.map(ScoreParts::score), score_parts: parts, ..fact }
    }

    /// What an answer rests on beside what it shows: links, and the items at their ends.
    fn rest_on(&mut self, links: &[EdgePlace], items: &[(ItemId, u32)], ends: Option<Timestamp>) {
        for link in links {
            if !self.shown.links.contains(link) {
                self.shown.links.push(*link);
            }
        }
        for item in items {
            if !self.shown.named.contains(item) {
                self.shown.named.push(*item);
            }
        }
        self.shown.ends = self.shown.ends.into_iter().chain(ends).min();
    }

    /// An item as an agent is given it that is so sure of it.
    pub(super) fn fact(&self, seen: &VisibleItem, confidence: f64, stale_warning: bool) -> Fact {
        let head = &seen.head;
        let (topics, tags): (Vec<&String>, Vec<&String>) =
            head.labels.iter().partition(|label| topic_of(label).is_some());
        Fact {
            item_id: head.item_id,
            version: head.version_seq + 1,
            commitment: seen.commitment,
            kind: head.kind,
            sort: seen.sort(),
            content: seen.text().map(str::to_owned),
            structured: seen.content("structured").and_then(Value::as_object).cloned(),
            topic: topics.first().and_then(|label| topic_of(label)).map(str::to_owned),
            tags: tags.into_iter().cloned().collect(),
            agent: self.author(head),
            source: seen.source(),
            level: Level::of(&seen.whole, *head.meta.author == self.gateway.principal),
            confidence,
            human_verified: head.meta.human_verified,
            needs_verification: head.meta.needs_verification,
            scope: head.meta.visibility,
            learned_at: head.captured_at,
            expires_at: head.end_of_life,
            staleness: seen.staleness(),
            stale: seen.is_stale(),
            stale_warning,
            score: None,
            score_parts: None,
            links: Vec::new(),
        }
    }

    /// How many bytes a link says, where they fit into the answer.
    pub fn room_for_link(&self, link: &Linked) -> Option<usize> {
        let source = link
            .source
            .as_ref()
            .map_or(0, |source| source.sort.len() + source.reference.as_ref().map_or(0, String::len));
        let bytes = link.to.len() + link.relationship.len() + source + AROUND_LINK;
        (self.linked + bytes <= ROOM_FOR_LINKS).then_some(bytes)
    }

    /// Tells of a link that says so many bytes: the answer rests on it and on the item at its other end.
    pub fn tell_link(&mut self, place: EdgePlace, other: Option<&Head>, bytes: usize) {
        self.linked += bytes;
        self.shown.links.push(place);
        if let Some(head) = other {
            self.shown.named.push((head.item_id, head.seq));
            self.shown.ends = self.shown.ends.into_iter().chain(head.end_of_life).min();
        }
    }

    /// Shows a former version of an item that is shown; it says so many bytes.
    pub fn show_former(&mut self, item: ItemId, commitment: Hash, bytes: usize) {
        self.shown.tags.push(item_tag(item, commitment));
        self.said += bytes;
    }
}

/// Why a version was put in the place of another, as its writer says: an agent, for the owner gives no reason.
pub(super) fn reason_of(says: &Map<String, Value>, is_owners: bool) -> Option<String> {
    let reason = says.get("extensions")?.get(EXTENSION)?.get("reason")?.as_str()?;
    (!is_owners).then(|| reason.to_owned())
}

/// How many bytes what an item says takes.
fn size(seen: &VisibleItem) -> usize {
    let structured = seen.content("structured").map_or(0, |value| value.to_string().len());
    seen.text().map_or(0, str::len) + structured
}

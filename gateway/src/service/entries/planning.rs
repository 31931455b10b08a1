//! Entries that are to be written, prepared: each version concealed and signed beside the writer, with what stands in its way.

use super::binding::Bound;
use super::capacity::{News, Victim};
use super::erasing::{holds_owners_word, is_owners_word};
use super::writing::may_change;
use super::{Full, entry_of, is_rival};
use crate::error::{Conflict, Error};
use crate::service::Items;
use crate::service::items::{Author, InForce, Prepared, whole};
use crate::service::tools::judging::{said as claim, stopped};
use crate::service::tools::looking::Looking;
use crate::state::agents::Agent;
use crate::state::contacts::Contacts;
use crate::state::gateway::Gateway;
use crate::state::owner::mark::{Read, Write};
use crate::state::policy::Admitted;
use oap_agents::Level;
use oap_agents::entry::EXTENSION as OPENINTENT;
use oap_agents::entry::{Change, Context, Entry, EntryError, Must, New, Opaque, Scope, Ttl, check_together};
use oap_agents::level::{EXTENSION, waits};
use oap_agents::namespaces::Access;
use oap_agents::quarantine;
use oap_identity::{IntentId, ItemId, Timestamp};
use oap_memory::Kind;
use oap_memory::chain::Event;
use oap_memory::record::{Head, Meta, Tier, Visibility};
use oap_soundness::guard::{Kind as Found, examine_all};
use serde_json::{Map, Value, json};
use std::sync::Arc;

/// What is to be written.
#[derive(Debug, Clone)]
pub(super) enum Asked {
    /// An entry, as one or as part of a batch.
    New(New),
    /// A change of the version of one that is there.
    Change(ItemId, u32, Change),
    /// An entry in the place of whatever of the agent's is there, and whether its tier is said.
    Put(New, bool),
}

/// A version that is about to be stored, and the entry that it makes.
pub(super) struct Step {
    pub prepared: Prepared,
    pub to: To,
    pub entry: Entry,
    /// Whether it says anew with what the entry ends: it makes one, or changes that and names no time.
    pub sets_end: bool,
    /// What the owner's policy let the agent write, where it was asked.
    pub admitted: Option<Admitted>,
}

/// What a version is of.
pub(super) enum To {
    New(Meta),
    /// An entry that is there; its author is another one where what it says changes.
    Change(Option<Author>),
}

/// What is to be stored.
pub(super) struct Plan {
    pub steps: Vec<Step>,
    /// What goes to make room for it.
    pub victims: Vec<Victim>,
    /// What the agent's tasks bind it to.
    pub bound: Bound,
}

/// What stands in the way.
pub(super) enum Stop {
    /// An entry that the asker may see, or that is not there; and which of those that are asked for it is in the way of, from 0.
    Conflict(Conflict, Option<ItemId>, usize),
    Full(Full),
    /// A task that it was to be written for is over.
    Over,
    /// A task that it was to be written for was given to another agent.
    Taken,
    /// A guardrail of an intent, by its name.
    Rail(IntentId, &'static str),
}

/// How many of the versions are new entries, by tier.
pub(super) fn news(steps: &[Step]) -> News {
    let mut news = News::new();
    for step in steps {
        if let To::New(record) = &step.to {
            *news.entry(record.tier).or_default() += 1;
        }
    }
    news
}

/// Prepares what is asked; or says what stands in its way.
pub(super) fn plan(
    gateway: &Arc<Gateway>,
    agent: &Agent<Read>,
    asked: &[Asked],
) -> Result<Result<Plan, Stop>, Error> {
    let writer = agent.permitted()?;
    let planning = Planning {
        gateway,
        agent: &writer,
        looking: Looking::new(gateway, agent)?,
        contacts: gateway.contact_names.of(&gateway.heads),
        now: gateway.clock.now(),
    };
    let mut steps = Vec::with_capacity(asked.len());
    for (index, asked) in asked.iter().enumerate() {
        let step = match asked {
            Asked::New(new) => planning.write(new)?,
            Asked::Change(item, version, change) => planning.change(*item, *version, change)?,
            Asked::Put(new, says_tier) => planning.put(new, *says_tier)?,
        };
        match step {
            Ok(step) => steps.push(step),
            Err(Stop::Conflict(conflict, item, _)) => return Ok(Err(Stop::Conflict(conflict, item, index))),
            Err(stop) => return Ok(Err(stop)),
        }
    }
    let changed = steps.iter().filter(|step| matches!(step.to, To::Change(_))).map(|step| step.entry.id);
    let bound = match planning.looking.bind(&writer, &steps, &news(&steps))? {
        Ok(bound) => bound,
        Err(stop) => return Ok(Err(stop)),
    };
    match planning.looking.victims(&writer, &news(&steps), &changed.collect())? {
        Ok(victims) => Ok(Ok(Plan { steps, victims, bound })),
        Err(full) => Ok(Err(Stop::Full(full))),
    }
}

/// For what the guard stops what an agent writes into an entry: its value, and the words beside it.
fn judged(value: &Opaque, tags: &[String], at: [Option<&String>; 2], scope: &Scope) -> Vec<Found> {
    // What is not read as its readers read it is not judged by what it looks like.
    let Some(said) = value.texts() else { return vec![Found::Unjudged] };
    let scope = [scope.task_id.as_ref(), scope.intent_id.as_ref()];
    let beside = tags.iter().chain(at.into_iter().chain(scope).flatten());
    let beside = beside.map(String::as_str).collect::<Vec<_>>().join(" ");
    // As it is read, and as it was written: what is a tool's call is one by its syntax.
    stopped(&examine_all([said.as_str(), value.as_str(), &beside]), Level::AgentInferred)
}

/// Whose word an entry counts as that was stopped for this.
const fn level_of(kinds: &[Found]) -> Level {
    if kinds.is_empty() { Level::AgentInferred } else { Level::External }
}

/// An agent that writes.
struct Planning<'a> {
    gateway: &'a Arc<Gateway>,
    agent: &'a Agent<Write>,
    looking: Looking<'a>,
    contacts: Arc<Contacts>,
    now: Timestamp,
}

impl Planning<'_> {
    /// That a new entry says nothing else of its writer than who it is.
    fn is_self(&self, new: &New) -> Result<(), Error> {
        for (field, said) in [("agent_id", &new.agent_id), ("curated_by", &new.curated_by)] {
            if said.as_ref().is_some_and(|said| !self.agent.is(said)) {
                return Err(Error::NotSelf(field));
            }
        }
        Ok(())
    }

    fn put(&self, new: &New, says_tier: bool) -> Result<Result<Step, Stop>, Error> {
        self.is_self(new)?;
        if new.tier == Tier::Semantic {
            return Err(Error::Entry(EntryError::Field("memory_type", Must::Own)));
        }
        let is_there = |head: &Arc<Head>| is_rival(self.agent, head, new.tier, self.now);
        match self.gateway.heads.at(&new.namespace, &new.key).into_iter().find(is_there) {
            Some(head) if says_tier && head.meta.tier != new.tier => {
                Err(Error::Entry(EntryError::Field("memory_type", Must::Kept)))
            }
            Some(head) => {
                let version = new.version.unwrap_or_else(|| head.version_seq.saturating_add(1));
                match self.change(head.item_id, version, &Change::of(new.clone()))? {
                    Err(Stop::Conflict(Conflict::NewerVersion(_), ..)) if new.version.is_none() => {
                        Err(Error::Overtaken)
                    }
                    done => Ok(done),
                }
            }
            None if new.version.is_some() => Err(Error::Conflict(Conflict::EntryGone)),
            None => self.capture(new).map(Ok),
        }
    }

    fn write(&self, new: &New) -> Result<Result<Step, Stop>, Error> {
        self.is_self(new)?;
        let is_there = |head: &Arc<Head>| is_rival(self.agent, head, new.tier, self.now);
        let there = self.gateway.heads.at(&new.namespace, &new.key).into_iter().find(is_there);
        match (there, new.version) {
            (Some(head), Some(_)) if head.meta.tier != new.tier => {
                Err(Error::Entry(EntryError::Field("memory_type", Must::Kept)))
            }
            (Some(head), Some(version)) => self.change(head.item_id, version, &Change::of(new.clone())),
            (Some(head), None) => Ok(Err(Stop::Conflict(Conflict::EntryKey, Some(head.item_id), 0))),
            (None, Some(_)) => Ok(Err(Stop::Conflict(Conflict::EntryGone, None, 0))),
            (None, None) => self.capture(new).map(Ok),
        }
    }

    fn capture(&self, new: &New) -> Result<Step, Error> {
        let is_shared = new.tier == Tier::Semantic;
        if is_shared && self.agent.sight().access(&new.namespace) < Access::Write {
            return Err(Error::NamespaceAccess);
        }
        let admitted = self.may_remember(new.tier)?;
        let visibility = if is_shared { Visibility::Local } else { Visibility::Private };
        let scope = new.scope.clone().unwrap_or_default();
        let kinds = judged(&new.value, &new.tags, [Some(&new.namespace), Some(&new.key)], &scope);
        let level = level_of(&kinds);
        let confidence = level.most();
        let mut labels = new.tags.clone();
        // An entry that nobody but its author sees is a scratch pad: it is marked, and not taken from it.
        quarantine::mark(&mut labels, is_shared && !kinds.is_empty());
        let mut context = Context {
            scope,
            ttl: new.ttl.as_ref().map(|(text, _)| text.clone()),
            ends: new.expires_at.is_some(),
            pinned: new.pinned,
            priority: new.priority,
            curated_by: is_shared.then(|| self.agent.did().clone()),
            tags: Vec::new(),
        };
        context.keep_order(&new.tags);
        let mut item = json!({
            "kind": if is_shared { Kind::Fact } else { Kind::Observation },
            "content": {"text": new.value.as_str()},
            "labels": labels,
            "provenance": {"confidence": confidence},
            "exportable": is_shared,
            "extensions": {EXTENSION: claim(level, None, &kinds), OPENINTENT: context},
        });
        if let Some(sensitivity) = new.sensitivity {
            item["sensitivity"] = json!(sensitivity);
        }
        if let Some(end) = self.end(new.expires_at, new.ttl.as_ref().map(|(_, ttl)| *ttl))? {
            item["expires_at"] = json!(end);
        }
        let record = Meta {
            author: Arc::new(self.agent.did().clone()),
            tier: new.tier,
            visibility,
            human_verified: false,
            // What nobody else sees waits for nobody.
            needs_verification: !kinds.is_empty() || (is_shared && waits(confidence, visibility)),
            namespace: Some(Arc::new(new.namespace.clone())),
            key: Some(Box::new(new.key.clone())),
            private_to: None,
        };
        let items = Items(self.gateway);
        let prepared = items.prepare_capture(items.parse_new(&item, self.now)?, &self.contacts, self.now)?;
        let head = Head::new(prepared.link.item_id, prepared.body(), record.clone());
        let entry = entry_of(&self.looking, &head, &whole(prepared.committed())?, head.captured_at);
        Ok(Step { prepared, to: To::New(record), entry, sets_end: true, admitted })
    }

    /// That the owner lets the agent remember what names no sort of observation, as no entry does. A scratch pad is not remembered.
    fn may_remember(&self, tier: Tier) -> Result<Option<Admitted>, Error> {
        if tier == Tier::Working {
            return Ok(None);
        }
        self.looking.policy.admits(None, self.agent.did()).map_err(Error::NotKept)?;
        Ok(Some(Admitted { author: self.agent.did().clone(), sort: None }))
    }

    /// When an entry ends, if it does.
    fn end(&self, expires_at: Option<Timestamp>, ttl: Option<Ttl>) -> Result<Option<Timestamp>, Error> {
        if expires_at.is_some_and(|end| end <= self.now) {
            return Err(Error::Entry(EntryError::Field("expires_at", Must::Passed)));
        }
        Ok(expires_at.or(match ttl {
            Some(Ttl::For(life)) => Some(self.now.plus(life)),
            Some(Ttl::Task) | None => None,
        }))
    }

    fn change(&self, item: ItemId, version: u32, change: &Change) -> Result<Result<Step, Stop>, Error> {
        let items = Items(self.gateway);
        let before = items.in_force(item)?;
        may_change(self.agent, &before.head, self.now)?;
        let there = before.head.version_seq.saturating_add(1);
        if version != there {
            return Ok(Err(Stop::Conflict(Conflict::NewerVersion(there), Some(item), 0)));
        }
        let admitted = match change.value {
            Some(_) => self.may_remember(before.head.meta.tier)?,
            None => None,
        };
        let outlives = change.ttl.is_some() || change.expires_at.is_some() || change.sensitivity.is_some();
        let relabels = change.value.is_none() && change.tags.is_some();
        if (outlives && holds_owners_word(&self.gateway.store, self.gateway, &before.head)?)
            || (relabels && is_owners_word(self.gateway, &before.head))
        {
            return Err(Error::OwnersWord);
        }
        // What the entry says then, as a whole: nothing hides in a part that was there before.
        let said = whole(&before.committed)?;
        let (former, scope) = (super::value_of(&said), Context::of(&said).scope);
        let meta = &before.head.meta;
        let kinds = judged(
            change.value.as_ref().unwrap_or(&former),
            change.tags.as_deref().unwrap_or(&before.head.labels),
            [meta.namespace.as_deref(), meta.key.as_deref()],
            change.scope.as_ref().unwrap_or(&scope),
        );
        // What others see does not go because a page says so.
        if !kinds.is_empty() && before.head.meta.visibility != Visibility::Private {
            return Err(Error::Guarded(kinds));
        }
        let (changes, event) = self.changes(&before, change, &kinds)?;
        let body = items.corrected(&before, &said, &changes)?;
        let prepared = items.prepare_version(&before, body, event, &self.contacts)?;
        let mut head = before.head;
        head.take(prepared.body());
        head.version_seq = prepared.link.seq;
        // Tags that read as an order mark the entry, too: a task may let others read it.
        let by = (event == Event::Correct || !kinds.is_empty()).then(|| {
            let is_shared = head.meta.visibility != Visibility::Private;
            let waits =
                !kinds.is_empty() || (is_shared && waits(level_of(&kinds).most(), head.meta.visibility));
            Author { did: self.agent.did().clone(), needs_verification: waits, admitted: None }
        });
        if let Some(by) = &by {
            head.write_as(by.did.clone(), &self.gateway.principal);
        }
        let entry = entry_of(&self.looking, &head, &whole(prepared.committed())?, prepared.link.at);
        let says_end = change.ttl.is_some() || change.expires_at.is_some() || change.scope.is_some();
        let sets_end = says_end && entry.expires_at.is_none();
        Ok(Ok(Step { prepared, to: To::Change(by), entry, sets_end, admitted }))
    }

    /// What changes of an item. Where what it says does not, neither does whose word it is.
    fn changes(&self, before: &InForce, change: &Change, kinds: &[Found]) -> Result<(Value, Event), Error> {
        let said = whole(&before.committed)?;
        let mut context = Context::of(&said);
        let mut changes = Map::new();
        if let Some(tags) = &change.tags {
            // The mark of what was stopped is the gateway's to give.
            let mut tags = tags.clone();
            quarantine::mark(&mut tags, false);
            changes.insert("labels".to_owned(), json!(tags));
            context.keep_order(&tags);
        }
        if let Some(sensitivity) = change.sensitivity {
            changes.insert("sensitivity".to_owned(), json!(sensitivity));
        }
        if let Some(scope) = &change.scope {
            context.scope = scope.clone();
        }
        context.pinned = change.pinned.unwrap_or(context.pinned);
        context.priority = change.priority.unwrap_or(context.priority);
        if change.ttl.is_some() || change.expires_at.is_some() {
            let kept = before.head.end_of_life.filter(|_| context.ends);
            let expires_at = change.expires_at.unwrap_or(kept);
            if let Some(ttl) = &change.ttl {
                context.ttl = ttl.as_ref().map(|(text, _)| text.clone());
            }
            context.ends = expires_at.is_some();
            let ttl = context.ttl.as_deref().map(Ttl::read).transpose()?;
            changes.insert("expires_at".to_owned(), json!(self.end(expires_at, ttl)?));
            changes.insert("ttl_days".to_owned(), Value::Null);
        }
        let ttl = context.ttl.as_deref().map(Ttl::read).transpose()?;
        check_together(before.head.meta.tier, change.sensitivity, ttl, &context.scope)?;
        let mut extensions = said.get("extensions").and_then(Value::as_object).cloned().unwrap_or_default();
        extensions.insert(OPENINTENT.to_owned(), json!(context));
        let mut event = Event::Relabel;
        if let Some(value) = &change.value {
            event = Event::Correct;
            if let (None, Some(labels)) = (&change.tags, quarantine::lifted(&before.head.labels)) {
                changes.insert("labels".to_owned(), json!(labels));
            }
            extensions.insert(EXTENSION.to_owned(), claim(level_of(kinds), None, kinds));
            changes.insert("content".to_owned(), json!({"text": value.as_str(), "structured": null}));
            changes.insert("embedding".to_owned(), Value::Null);
            // Where the former words came from says nothing of these; when the entry was made stays.
            let provenance = said.get("provenance").and_then(Value::as_object);
            let mut provenance: Map<String, Value> =
                provenance.into_iter().flat_map(Map::keys).map(|name| (name.clone(), Value::Null)).collect();
            provenance.remove("captured_at");
            provenance.insert("confidence".to_owned(), json!(level_of(kinds).most()));
            changes.insert("provenance".to_owned(), Value::Object(provenance));
        }
        changes.insert("extensions".to_owned(), Value::Object(extensions));
        Ok((Value::Object(changes), event))
    }
}

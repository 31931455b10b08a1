//! Entries, written.
//!
//! Versions are concealed and signed beside the writer; the transaction that stores them reads again what they rest on.

use super::binding::Bound;
use super::capacity::{News, Victim};
use super::erasing::{holds_owners_word, is_owners_word};
use super::{Changed, Current, Full, entry_of, is_rival, is_seen};
use crate::error::{Conflict, Error};
use crate::service::items::{Author, InForce, Prepared, whole};
use crate::service::tools::judging::{said as claim, stopped, texts};
use crate::service::tools::looking::Looking;
use crate::service::{Entries, Items, Tools};
use crate::state::agents::Agent;
use crate::state::commits::{AGENTS, Writing, until_it_holds};
use crate::state::contacts::Contacts;
use crate::state::gateway::Gateway;
use crate::state::owner::Permission;
use crate::state::owner::mark::{Read, Write};
use oap_agents::Level;
use oap_agents::entry::EXTENSION as OPENINTENT;
use oap_agents::entry::{Change, Context, Entry, EntryError, Must, New, Opaque, Ttl, check_together};
use oap_agents::level::{EXTENSION, waits};
use oap_agents::namespaces::Access;
use oap_agents::quarantine;
use oap_identity::{Hash, IntentId, ItemId, Timestamp};
use oap_memory::Kind;
use oap_memory::chain::Event;
use oap_memory::receipt::item_tag;
use oap_memory::record::{Head, Meta, Tier, Visibility};
use oap_soundness::guard::{Kind as Found, examine_all};
use serde::Serialize;
use serde_json::{Map, Value, json};
use std::sync::Arc;

/// What is to be written.
#[derive(Debug, Clone)]
enum Asked {
    /// An entry, as one or as part of a batch.
    New(New),
    /// A change of the version of one that is there.
    Change(ItemId, u32, Change),
    /// An entry in the place of whatever of the agent's is there, and whether its tier is said.
    Put(New, bool),
}

/// A version that is about to be stored, and the entry that it makes.
pub(super) struct Step {
    prepared: Prepared,
    to: To,
    pub(super) entry: Entry,
}

impl Step {
    /// Whether it makes an entry.
    pub(super) const fn is_new(&self) -> bool {
        matches!(self.to, To::New(_))
    }
}

/// What a version is of.
enum To {
    New(Meta),
    /// An entry that is there; its author is another one where what it says changes.
    Change(Option<Author>),
}

/// What is to be stored.
struct Plan {
    steps: Vec<Step>,
    /// What goes to make room for it.
    victims: Vec<Victim>,
    /// What the agent's tasks bind it to.
    bound: Bound,
}

/// What stands in the way.
pub(super) enum Stop {
    /// An entry that the asker may see.
    Conflict(Conflict, ItemId),
    Full(Full),
    /// A task that it was to be written for is over.
    Over,
    /// A task that it was to be written for was given to another agent.
    Taken,
    /// A guardrail of an intent, by its name.
    Rail(IntentId, &'static str),
}

/// What is answered where one entry was asked for, or several.
#[derive(Serialize)]
#[serde(untagged)]
enum Answer<'a> {
    One(&'a Entry),
    Batch { entries: Vec<&'a Entry> },
}

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
        let written = until_it_holds(|| async {
            let (gateway, looker, asked) = (self.0.clone(), agent.clone(), asked.clone());
            let planned = Tools(self.0).look(agent, move |_| plan(&gateway, &looker, &asked));
            match planned.await? {
                Ok(plan) => self.store(&writer, tool, input, plan, is_batch).await.map(Ok),
                Err(stop) => Ok(Err(stop)),
            }
        });
        match written.await? {
            Ok(answer) => {
                metrics::counter!("oap_tool_calls_total", "tool" => tool).increment(1);
                Ok(Changed::Done(answer))
            }
            Err(Stop::Conflict(conflict, item)) => {
                Ok(Changed::Conflict(conflict, self.current(agent, item).await?))
            }
            Err(Stop::Full(full)) => Ok(Changed::Full(full)),
            Err(Stop::Over) => Ok(Changed::Conflict(Conflict::TaskOver, None)),
            Err(Stop::Taken) => Ok(Changed::Conflict(Conflict::TaskTaken, None)),
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
                for Step { prepared, to, entry } in steps {
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

/// How many of the versions are new entries, by tier.
fn news(steps: &[Step]) -> News {
    let mut news = News::new();
    for step in steps {
        if let To::New(record) = &step.to {
            *news.entry(record.tier).or_default() += 1;
        }
    }
    news
}

/// Prepares what is asked; or says what stands in its way.
fn plan(gateway: &Arc<Gateway>, agent: &Agent<Read>, asked: &[Asked]) -> Result<Result<Plan, Stop>, Error> {
    let writer = agent.permitted()?;
    let planning = Planning {
        gateway,
        agent: &writer,
        looking: Looking::new(gateway, agent)?,
        contacts: gateway.contact_names.of(&gateway.heads),
        now: gateway.clock.now(),
    };
    let mut steps = Vec::with_capacity(asked.len());
    for asked in asked {
        let step = match asked {
            Asked::New(new) => planning.write(new)?,
            Asked::Change(item, version, change) => planning.change(*item, *version, change)?,
            Asked::Put(new, says_tier) => planning.put(new, *says_tier)?,
        };
        match step {
            Ok(step) => steps.push(step),
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

/// For what the guard stops what an agent writes into an entry.
fn judged(value: &Opaque, beside: &[String]) -> Vec<Found> {
    // As it is read, and as it was written: what is a tool's call is one by its syntax.
    let (said, beside) = (texts(value.as_str()), beside.join(" "));
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
                    Err(Stop::Conflict(Conflict::NewerVersion, _)) if new.version.is_none() => {
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
            (Some(head), None) => Ok(Err(Stop::Conflict(Conflict::EntryKey, head.item_id))),
            (None, Some(_)) => Err(Error::Conflict(Conflict::EntryGone)),
            (None, None) => self.capture(new).map(Ok),
        }
    }

    fn capture(&self, new: &New) -> Result<Step, Error> {
        let is_shared = new.tier == Tier::Semantic;
        if is_shared && self.agent.sight().access(&new.namespace) < Access::Write {
            return Err(Error::NamespaceAccess);
        }
        let visibility = if is_shared { Visibility::Local } else { Visibility::Private };
        let beside: Vec<String> = new.tags.iter().chain([&new.namespace, &new.key]).cloned().collect();
        let kinds = judged(&new.value, &beside);
        let level = level_of(&kinds);
        let confidence = level.most();
        let mut labels = new.tags.clone();
        // An entry that nobody but its author sees is a scratch pad: it is marked, and not taken from it.
        quarantine::mark(&mut labels, is_shared && !kinds.is_empty());
        let mut context = Context {
            scope: new.scope.clone().unwrap_or_default(),
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
        };
        let items = Items(self.gateway);
        let prepared = items.prepare_capture(items.parse_item(&item, self.now)?, &self.contacts, self.now)?;
        let head = Head::new(prepared.link.item_id, prepared.body(), record.clone());
        let entry = entry_of(&self.looking, &head, &whole(prepared.committed())?, head.captured_at);
        Ok(Step { prepared, to: To::New(record), entry })
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
        if version != before.head.version_seq.saturating_add(1) {
            return Ok(Err(Stop::Conflict(Conflict::NewerVersion, item)));
        }
        let outlives = change.ttl.is_some() || change.expires_at.is_some() || change.sensitivity.is_some();
        let relabels = change.value.is_none() && change.tags.is_some();
        if (outlives && holds_owners_word(&self.gateway.store, self.gateway, &before.head)?)
            || (relabels && is_owners_word(self.gateway, &before.head))
        {
            return Err(Error::OwnersWord);
        }
        // What the entry says then, as a whole: nothing hides in a part that was there before.
        let former = super::value_of(&whole(&before.committed)?);
        let meta = &before.head.meta;
        let tags = change.tags.as_deref().unwrap_or(&before.head.labels).iter().cloned();
        let at = [meta.namespace.as_deref().cloned(), meta.key.as_deref().cloned()];
        let beside: Vec<String> = tags.chain(at.into_iter().flatten()).collect();
        let kinds = judged(change.value.as_ref().unwrap_or(&former), &beside);
        // What others see does not go because a page says so.
        if !kinds.is_empty() && before.head.meta.visibility != Visibility::Private {
            return Err(Error::Guarded(kinds));
        }
        let (changes, event) = self.changes(&before, change, &kinds)?;
        let body = items.corrected(&before, &whole(&before.committed)?, &changes)?;
        let prepared = items.prepare_version(&before, body, event, &self.contacts)?;
        let mut head = before.head;
        head.take(prepared.body());
        head.version_seq = prepared.link.seq;
        // Tags that read as an order mark the entry, too: a task may let others read it.
        let by = (event == Event::Correct || !kinds.is_empty()).then(|| {
            let is_shared = head.meta.visibility != Visibility::Private;
            let waits =
                !kinds.is_empty() || (is_shared && waits(level_of(&kinds).most(), head.meta.visibility));
            Author { did: self.agent.did().clone(), needs_verification: waits }
        });
        if let Some(by) = &by {
            head.meta.author = Arc::new(by.did.clone());
        }
        let entry = entry_of(&self.looking, &head, &whole(prepared.committed())?, prepared.link.at);
        Ok(Ok(Step { prepared, to: To::Change(by), entry }))
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

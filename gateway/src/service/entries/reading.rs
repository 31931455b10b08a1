//! Entries, read.

use super::{Current, entry_of, is_seen};
use crate::error::Error;
use crate::service::tools::looking::{Looking, VisibleItem};
use crate::service::{Entries, Tools};
use crate::state::agents::Agent;
use crate::state::commits::until_it_holds;

use crate::state::owner::mark::Read;
use crate::state::schema::LINKS;
use crate::state::terms::terms;
use oap_agents::entry::{
    Context, Entry, EpisodicCount, Filter, MAX_VALUES, Match, Namespace, Page, Summary, TierCount,
    WorkingCount,
};
use oap_identity::{Hash, ItemId, Timestamp};
use oap_memory::chain::Link;
use oap_memory::record::{Head, Tier};
use serde::Serialize;
use std::collections::BTreeSet;
use std::sync::Arc;

impl Entries<'_> {
    /// An entry.
    ///
    /// # Errors
    /// [`Error::NotFound`] of one that the agent may not see, as of one that is not there.
    pub async fn show(self, agent: &Agent<Read>, item: ItemId) -> Result<Current, Error> {
        let input = Hash::of(item.to_string().as_bytes());
        self.read(agent, "openintent.show", input, move |looking| {
            let entry = looking.entry(item)?;
            Ok((entry.version, entry))
        })
        .await
        .map(|(version, entry)| Current { version, entry })
    }

    /// The entries that a filter admits, with how many there are.
    ///
    /// # Errors
    /// [`Error::Store`], [`Error::Corrupt`].
    pub async fn query(self, agent: &Agent<Read>, input: Hash, filter: Filter) -> Result<Vec<u8>, Error> {
        let filter = Arc::new(filter);
        let told =
            self.read(agent, "openintent.query", input, move |looking| Ok(((), looking.page(&filter)?)));
        Ok(told.await?.1)
    }

    /// The same, without the page that they stand on.
    ///
    /// # Errors
    /// As [`Entries::query`].
    pub async fn list(self, agent: &Agent<Read>, input: Hash, filter: Filter) -> Result<Vec<u8>, Error> {
        let filter = Arc::new(filter);
        let told = self
            .read(agent, "openintent.list", input, move |looking| Ok(((), looking.page(&filter)?.entries)));
        Ok(told.await?.1)
    }

    /// The namespaces of the semantic entries that the agent may see.
    ///
    /// # Errors
    /// As [`Entries::query`].
    pub async fn namespaces(self, agent: &Agent<Read>) -> Result<Vec<u8>, Error> {
        #[derive(Serialize)]
        struct Namespaces {
            namespaces: Vec<Namespace>,
        }
        let told = self.read(agent, "openintent.namespaces", Hash::of(b""), |looking| {
            Ok(((), Namespaces { namespaces: looking.namespaces()? }))
        });
        Ok(told.await?.1)
    }

    /// One of them.
    ///
    /// # Errors
    /// [`Error::NotFound`] of one without an entry that the agent may see.
    pub async fn namespace(self, agent: &Agent<Read>, name: String) -> Result<Vec<u8>, Error> {
        let input = Hash::of_canonical(&name.len())?;
        let told = self.read(agent, "openintent.namespace", input, move |looking| {
            let found = looking.namespaces()?.into_iter().find(|found| found.namespace == name);
            Ok(((), found.ok_or(Error::NotFound)?))
        });
        Ok(told.await?.1)
    }

    /// What an agent has; its own alone.
    ///
    /// # Errors
    /// [`Error::NotFound`] for another than itself.
    pub async fn summary(self, agent: &Agent<Read>, of: &str) -> Result<Vec<u8>, Error> {
        if !agent.is(of) {
            return Err(Error::NotFound);
        }
        let input = Hash::of(of.as_bytes());
        let told = self.read(agent, "openintent.summary", input, |looking| Ok(((), looking.summary()?)));
        Ok(told.await?.1)
    }

    /// What is answered to a question, in JSON; its receipt is durable.
    pub(super) async fn read<K: Send + 'static, T: Serialize>(
        self,
        agent: &Agent<Read>,
        tool: &'static str,
        input: Hash,
        look: impl Fn(&mut Looking<'_>) -> Result<(K, T), Error> + Clone + Send + Sync + 'static,
    ) -> Result<(K, Vec<u8>), Error> {
        self.read_of(agent, tool, move |_| Ok(input), look).await
    }

    /// The same, where what was asked is known by what was found.
    pub(super) async fn read_of<K: Send + 'static, T: Serialize>(
        self,
        agent: &Agent<Read>,
        tool: &'static str,
        input: impl Fn(&K) -> Result<Hash, Error> + Send + Sync,
        look: impl Fn(&mut Looking<'_>) -> Result<(K, T), Error> + Clone + Send + Sync + 'static,
    ) -> Result<(K, Vec<u8>), Error> {
        until_it_holds(|| async {
            let look = look.clone();
            let looked = Tools(self.0).look(agent, move |mut looking| {
                looking.with_reach()?;
                let (kept, answer) = look(&mut looking)?;
                Ok((kept, serde_json::to_vec(&answer)?, looking.handed()))
            });
            let (kept, answer, shown) = looked.await?;
            let input = input(&kept)?;
            Tools(self.0).hand(agent, tool, input, shown).await?;
            metrics::counter!("oap_tool_calls_total", "tool" => tool).increment(1);
            Ok((kept, answer))
        })
        .await
    }
}

impl Looking<'_> {
    /// Every entry that is in force and that the agent may see by itself.
    pub(super) fn entries(&self) -> Vec<Arc<Head>> {
        let mut heads = self.gateway.heads.keyed();
        heads.retain(|head| is_seen(self.agent, head, self.now));
        heads
    }

    /// An entry, shown.
    fn entry(&mut self, item: ItemId) -> Result<Entry, Error> {
        let head = self.gateway.heads.get(item).ok_or(Error::NotFound)?;
        if !self.may_read(&head)? {
            return Err(Error::NotFound);
        }
        let seen = self.seen(head)?.ok_or(Error::NotFound)?;
        self.show_entry(&seen)
    }

    pub(super) fn show_entry(&mut self, seen: &VisibleItem) -> Result<Entry, Error> {
        self.count(seen);
        Ok(entry_of(self, &seen.head, &seen.whole, self.updated_at(&seen.head)?))
    }

    /// When an entry got the version in force.
    pub(super) fn updated_at(&self, head: &Head) -> Result<Timestamp, Error> {
        if head.version_seq == 0 {
            return Ok(head.captured_at);
        }
        let link =
            LINKS.get(&self.gateway.store, &(head.item_id, head.version_seq))?.ok_or(Error::NotFound)?;
        Ok(serde_json::from_slice::<Link>(&link)?.at)
    }

    /// The entries that are asked for: the one that was changed last first.
    pub(super) fn matching(&mut self, of: &Match) -> Result<Vec<Arc<Head>>, Error> {
        let mut found = Vec::new();
        for head in self.gateway.heads.keyed() {
            let meta = &head.meta;
            // What a head says comes first: to read whose task an entry is of opens it.
            let fits = head.is_live(self.now)
                && of.tier.is_none_or(|tier| meta.tier == tier)
                && meta.namespace.as_ref().is_some_and(|namespace| of.admits_namespace(namespace))
                && of.key.as_ref().is_none_or(|key| meta.key.as_deref() == Some(key))
                && of.agent_id.as_ref().is_none_or(|agent| self.is_by(&head, agent))
                && of.admits_labels(&head.labels);
            if !fits || !self.may_read(&head)? {
                continue;
            }
            let at = self.updated_at(&head)?;
            if of.updated_after.is_some_and(|after| at <= after)
                || of.updated_before.is_some_and(|before| at >= before)
            {
                continue;
            }
            // A head does not say the context. Else what is not shown is not opened.
            if of.looks_inside() {
                let Some(seen) = self.seen(head.clone())? else { continue };
                if !admits_context(of, &Context::of(&seen.whole)) {
                    continue;
                }
            }
            found.push((at, head));
        }
        found.sort_by(|a, b| b.0.cmp(&a.0).then(b.1.item_id.cmp(&a.1.item_id)));
        Ok(found.into_iter().map(|(_, head)| head).collect())
    }

    pub(super) fn is_by(&self, head: &Head, agent: &str) -> bool {
        let whose = head.meta.whose();
        whose.as_str() == agent || self.name(whose) == agent
    }

    pub(super) fn page(&mut self, filter: &Filter) -> Result<Page, Error> {
        let found = self.matching(&filter.of)?;
        let (mut entries, mut bytes): (Vec<Entry>, usize) = (Vec::new(), 0);
        for head in found.iter().skip(filter.offset) {
            if entries.len() == filter.limit {
                break;
            }
            let Some(seen) = self.seen(head.clone())? else { continue };
            let size = super::value_of(&seen.whole).as_str().len();
            if !entries.is_empty() && bytes + size > MAX_VALUES {
                break;
            }
            bytes += size;
            entries.push(self.show_entry(&seen)?);
        }
        Ok(Page { entries, total: found.len(), limit: filter.limit, offset: filter.offset })
    }

    fn summary(&self) -> Result<Summary, Error> {
        let (mut working, mut episodic) = (WorkingCount::default(), EpisodicCount::default());
        let (mut tasks, mut namespaces) = (BTreeSet::new(), BTreeSet::new());
        let (mut working_bytes, mut episodic_bytes) = (0, 0);
        for head in self.entries() {
            if head.meta.tier == Tier::Semantic {
                namespaces.extend(head.meta.namespace.as_deref().cloned());
                continue;
            }
            let Some(seen) = self.seen(head.clone())? else { continue };
            let (bytes, context) = (super::value_of(&seen.whole).as_str().len(), Context::of(&seen.whole));
            if head.meta.tier == Tier::Working {
                working.count.entry_count += 1;
                working_bytes += bytes;
                tasks.extend(context.scope.task_id);
                continue;
            }
            episodic.count.entry_count += 1;
            episodic.pinned_count += usize::from(context.pinned);
            episodic_bytes += bytes;
            let at = head.captured_at;
            episodic.oldest_entry = episodic.oldest_entry.into_iter().chain([at]).min();
            episodic.newest_entry = episodic.newest_entry.into_iter().chain([at]).max();
        }
        let kilobytes =
            |bytes: usize, count: TierCount| TierCount { total_size_kb: bytes.div_ceil(1024), ..count };
        working.count = kilobytes(working_bytes, working.count);
        episodic.count = kilobytes(episodic_bytes, episodic.count);
        let capacities = terms(&self.gateway.store, self.agent.did())?.capacities;
        working.capacity = capacities.of(Tier::Working);
        episodic.capacity = capacities.of(Tier::Episodic);
        working.tasks_with_memory = tasks.into_iter().collect();
        Ok(Summary {
            agent_id: self.agent.name().to_string(),
            working,
            episodic,
            semantic_namespaces_accessible: namespaces.into_iter().collect(),
        })
    }
}

fn admits_context(of: &Match, context: &Context) -> bool {
    let same = |wanted: &Option<String>, is: &Option<String>| wanted.is_none() || wanted == is;
    same(&of.scope.task_id, &context.scope.task_id)
        && same(&of.scope.intent_id, &context.scope.intent_id)
        && of.pinned.is_none_or(|pinned| context.pinned == pinned)
}

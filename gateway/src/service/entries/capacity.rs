//! The room of the tiers. Where the episodic one is full (RFC-0015 2.2), what is worth least goes, and is erased; in the others nothing
//! goes that its agent did not delete.
//!
//! What an entry is worth: its priority, and then when its author looked at it last. Nobody else's look counts, so that nobody's tells.

use super::Full;
use super::erasing::holds_owners_word;
use crate::error::Error;
use crate::service::tools::looking::Looking;
use crate::state::agents::Agent;
use crate::state::commits::Writing;
use crate::state::owner::mark::Write;
use crate::state::schema::{ACCESSED, HEADS, HOLDS};
use crate::state::terms::terms;
use oap_agents::entry::Context;
use oap_identity::{Did, ItemId, Timestamp};
use oap_memory::record::{Head, Tier};
use oap_store::StoreError;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// What a tier is full of.
const OF_TIER: &str = "entries of this tier";

/// An entry that goes, and the last link that it has.
pub(super) type Victim = (ItemId, u32);

/// How many entries are new, by tier.
pub(super) type News = BTreeMap<Tier, usize>;

/// Whether an entry takes room of its author's. One that a namespace hides from its author does, and one that the guard stopped: what waits
/// for the owner has a bound too.
fn is_own(author: &Did, head: &Head, tier: Tier, now: Timestamp) -> bool {
    let is_entry = head.meta.namespace.is_some() && head.meta.key.is_some();
    is_entry && head.meta.tier == tier && *head.meta.author == *author && head.is_live(now)
}

impl Looking<'_> {
    /// What goes so that an agent may write so many entries more. What it changes at once stays.
    pub(super) fn victims(
        &self,
        agent: &Agent<Write>,
        news: &News,
        changed: &BTreeSet<ItemId>,
    ) -> Result<Result<Vec<Victim>, Full>, Error> {
        if news.is_empty() {
            return Ok(Ok(Vec::new()));
        }
        let heads = &self.gateway.heads;
        let terms = terms(&self.gateway.store, agent.did())?;
        for (&tier, &more) in news {
            let current_count = heads.count_own(agent.did(), tier, self.now);
            let max_capacity = terms.capacities.of(tier);
            if tier != Tier::Episodic && current_count + more > max_capacity {
                return Ok(Err(Full { current_count, max_capacity, of: OF_TIER }));
            }
        }
        let more = news.get(&Tier::Episodic).copied().unwrap_or_default();
        let current_count = heads.count_own(agent.did(), Tier::Episodic, self.now);
        let max_capacity = terms.capacities.of(Tier::Episodic);
        if more == 0 || current_count + more <= max_capacity {
            return Ok(Ok(Vec::new()));
        }
        let mut own = heads.own(agent.did(), Tier::Episodic);
        own.retain(|head| is_own(agent.did(), head, Tier::Episodic, self.now));
        let current_count = own.len();
        // What goes makes room for what comes. Where the owner lowered the number, nothing goes that nobody chose.
        if current_count > max_capacity {
            return Ok(Err(Full { current_count, max_capacity, of: OF_TIER }));
        }
        let beyond = (current_count + more).saturating_sub(max_capacity);
        let mut candidates = Vec::new();
        for head in own.into_iter().filter(|head| !changed.contains(&head.item_id)) {
            let is_held = HOLDS.get(&self.gateway.store, &head.item_id)?.is_some();
            let Some(seen) = self.seen(head.clone())? else { continue };
            let context = Context::of(&seen.whole);
            let is_pinned = context.pinned || terms.pins(&head);
            if !is_held && !is_pinned {
                let looked = ACCESSED.get(&self.gateway.store, &head.item_id)?;
                let worth = (context.priority, looked.unwrap_or(head.captured_at), head.item_id);
                candidates.push((worth, head));
            }
        }
        candidates.sort_unstable_by_key(|(worth, _)| *worth);
        let mut victims = Vec::new();
        for (_, head) in candidates {
            if victims.len() == beyond {
                break;
            }
            // What is the owner's word goes with nothing that an agent writes.
            if !holds_owners_word(&self.gateway.store, self.gateway, &head)? {
                victims.push((head.item_id, head.seq));
            }
        }
        if victims.len() < beyond {
            return Ok(Err(Full { current_count, max_capacity, of: OF_TIER }));
        }
        Ok(Ok(victims))
    }
}

impl Writing<'_, '_> {
    /// The heads that are not yet where the others are: what was written before in the same batch.
    pub(super) fn heads_of_batch(&self) -> Result<BTreeMap<ItemId, Option<Arc<Head>>>, Error> {
        let mut heads = BTreeMap::new();
        for item in HEADS.written(self.tx) {
            let head = match HEADS.get(self.tx, &item) {
                Ok(head) => head.map(Arc::new),
                Err(StoreError::Erased) => None,
                Err(error) => return Err(error.into()),
            };
            heads.insert(item, head);
        }
        Ok(heads)
    }

    /// Erases what goes, and makes sure that so many entries more have room.
    pub(super) fn make_room(
        &mut self,
        agent: &Agent<Write>,
        victims: &[Victim],
        news: &News,
    ) -> Result<(), Error> {
        if news.is_empty() {
            return Ok(());
        }
        let terms = terms(self.tx, agent.did())?;
        for (item, seq) in victims {
            self.ends_with(*item, *seq)?;
            if self.is_held(*item)? || HEADS.get(self.tx, item)?.is_some_and(|head| terms.pins(&head)) {
                return Err(Error::Overtaken);
            }
            self.evict(*item)?;
        }
        let batch = self.heads_of_batch()?;
        // What the batch changed counts as it is now, and not as it was.
        let before: Vec<Arc<Head>> = batch.keys().filter_map(|item| self.gateway.heads.get(*item)).collect();
        let is_full = news.iter().any(|(&tier, &more)| {
            let own = |head: &&Arc<Head>| is_own(agent.did(), head, tier, self.now);
            let stored = self.gateway.heads.count_own(agent.did(), tier, self.now);
            let there = stored.saturating_sub(before.iter().filter(own).count());
            there + batch.values().flatten().filter(own).count() + more > terms.capacities.of(tier)
        });
        if is_full { Err(Error::Overtaken) } else { Ok(()) }
    }

    /// Remembers that an agent looked at an item, where it is an episodic entry of its own.
    pub(crate) fn looked_at(&mut self, item: ItemId, by: &Did) -> Result<(), Error> {
        let head = self.gateway.heads.get(item);
        let is_own = head.is_some_and(|head| {
            head.meta.tier == Tier::Episodic && head.meta.key.is_some() && *head.meta.author == *by
        });
        if is_own { Ok(ACCESSED.put(self.tx, &item, &self.now)?) } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use oap_agents::quarantine;
    use oap_memory::item::{Body, Defaults};
    use oap_memory::record::Meta;
    use serde_json::json;

    #[test]
    fn what_the_guard_stopped_takes_room_of_its_authors() {
        let (author, other): (Did, Did) =
            ("did:web:a.example".parse().unwrap(), "did:web:b.example".parse().unwrap());
        let (scope, now) = ("personal".parse().unwrap(), Timestamp::from_millis(0));
        let item = json!({"kind": "fact", "content": {"text": "x"}, "labels": [quarantine::LABEL]});
        let body = Body::parse(&item, &Defaults { principal: &author, scope: &scope, now }).unwrap();
        let meta = Meta {
            tier: Tier::Semantic,
            namespace: Some(Arc::new("plans".to_owned())),
            key: Some(Box::new("trip".to_owned())),
            needs_verification: true,
            ..Meta::owner(author.clone(), false)
        };
        let head = Head::new(ItemId::from_bytes([0; 16]), &body, meta);
        assert!(quarantine::is_quarantined(&head));
        assert!(is_own(&author, &head, Tier::Semantic, now));
        assert!(!is_own(&author, &head, Tier::Working, now) && !is_own(&other, &head, Tier::Semantic, now));
        let mut fact = head;
        fact.meta.key = None;
        assert!(!is_own(&author, &fact, Tier::Semantic, now));
    }
}

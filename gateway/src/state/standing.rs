//! How many entries each agent has in each tier, without a walk over all that there are.

use oap_identity::{Did, ItemId, Timestamp};
use oap_memory::record::{Head, Status, Tier};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

/// The entries that are in force but for their ends, by author and tier.
#[derive(Debug, Default)]
pub(super) struct Standing(HashMap<Arc<Did>, BTreeMap<Tier, Entries>>);

#[derive(Debug, Default)]
struct Entries {
    items: BTreeSet<ItemId>,
    /// Those that end, by their ends.
    ends: BTreeSet<(Timestamp, ItemId)>,
}

/// Whether a head is an entry that is in force, if it has not ended.
fn counts(head: &Head) -> bool {
    head.status == Status::Current && head.meta.namespace.is_some() && head.meta.key.is_some()
}

impl Standing {
    /// Takes in a head that is there from now on.
    pub fn enter(&mut self, head: &Head) {
        if counts(head) {
            let tiers = self.0.entry(head.meta.author.clone()).or_default();
            let entries = tiers.entry(head.meta.tier).or_default();
            entries.items.insert(head.item_id);
            entries.ends.extend(head.end_of_life.map(|end| (end, head.item_id)));
        }
    }

    /// Takes out a head that was there.
    pub fn leave(&mut self, head: &Head) {
        if !counts(head) {
            return;
        }
        let Some(tiers) = self.0.get_mut(&head.meta.author) else { return };
        if let Some(entries) = tiers.get_mut(&head.meta.tier) {
            entries.items.remove(&head.item_id);
            if let Some(end) = head.end_of_life {
                entries.ends.remove(&(end, head.item_id));
            }
            if entries.items.is_empty() {
                tiers.remove(&head.meta.tier);
            }
        }
        if tiers.is_empty() {
            self.0.remove(&head.meta.author);
        }
    }

    /// How many are in force at that time. The work is that of the ones that have ended and are not swept away yet.
    pub fn count(&self, author: &Did, tier: Tier, now: Timestamp) -> usize {
        let Some(entries) = self.entries(author, tier) else { return 0 };
        entries.items.len() - entries.ends.iter().take_while(|(end, _)| *end <= now).count()
    }

    /// Their items, the ended ones too.
    pub fn items(&self, author: &Did, tier: Tier) -> impl Iterator<Item = ItemId> {
        self.entries(author, tier).into_iter().flat_map(|entries| entries.items.iter().copied())
    }

    fn entries(&self, author: &Did, tier: Tier) -> Option<&Entries> {
        self.0.get(author)?.get(&tier)
    }
}

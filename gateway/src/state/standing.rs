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

    /// Whether nothing is counted.
    #[cfg(test)]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use crate::state::heads::Heads;
    use oap_identity::{Did, ItemId, Timestamp};
    use oap_memory::item::{Body, Defaults};
    use oap_memory::record::{Head, Meta, Status, Tier};
    use proptest::prelude::*;
    use serde_json::json;
    use std::sync::Arc;

    fn author(n: u8) -> Did {
        format!("did:web:a{n}.example").parse().unwrap()
    }

    fn head(item: ItemId, by: u8, tier: Tier, status: Status, end: Option<u8>, keyed: bool) -> Head {
        let (principal, scope) = (author(9), "personal".parse().unwrap());
        let defaults = Defaults { principal: &principal, scope: &scope, now: Timestamp::from_seconds(0) };
        let body = Body::parse(&json!({"kind": "fact", "content": {"text": "x"}}), &defaults).unwrap();
        let mut meta = Meta { tier, ..Meta::owner(author(by), false) };
        if keyed {
            (meta.namespace, meta.key) = (Some(Arc::new("n".to_owned())), Some(Box::new("k".to_owned())));
        }
        let mut head = Head::new(item, &body, meta);
        head.status = status;
        head.end_of_life = end.map(|end| Timestamp::from_seconds(i64::from(end)));
        head
    }

    proptest! {
        /// Whatever is put, changed and taken out: what is counted is what a walk over all of them counts.
        #[test]
        fn the_count_is_that_of_a_walk(
            steps in prop::collection::vec(
                (0..6_u8, 0..3_u8, 0..3_usize, any::<bool>(), prop::option::of(0..6_u8), any::<bool>(), 0..4_u8),
                0..60,
            ),
            now in 0..7_i64,
        ) {
            let heads = Heads::default();
            for (item, by, tier, current, end, keyed, removes) in steps {
                let item = ItemId::from_bytes([item; 16]);
                let status = if current { Status::Current } else { Status::Retracted };
                let put = (removes > 0).then(|| head(item, by, Tier::ALL[tier], status, end, keyed));
                heads.set(item, put);
            }
            let now = Timestamp::from_seconds(now);
            for by in 0..3 {
                for tier in Tier::ALL {
                    let mut own = heads.keyed();
                    own.retain(|head| *head.meta.author == author(by) && head.meta.tier == *tier && head.is_live(now));
                    prop_assert_eq!(heads.count_own(&author(by), *tier, now), own.len());
                    let mut listed = heads.own(&author(by), *tier);
                    listed.retain(|head| head.is_live(now));
                    let ids = |heads: &[Arc<Head>]| {
                        heads.iter().map(|head| head.item_id).collect::<std::collections::BTreeSet<_>>()
                    };
                    prop_assert_eq!(ids(&listed), ids(&own));
                }
            }
            for head in heads.all() {
                heads.set(head.item_id, None);
            }
            prop_assert!(heads.counts_nothing());
        }
    }
}

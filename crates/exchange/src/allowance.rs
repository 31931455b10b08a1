//! What may still be disclosed under a grant (protocol section 5).

use imbl::OrdSet;
use oap_identity::ItemId;
use std::sync::Arc;

/// The distinct items that were ever disclosed under a grant. The first `max_items` are remembered; after that
/// only those come back (protocol section 5). A copy of it costs the same however many they are.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Disclosed {
    items: OrdSet<ItemId>,
    max_items: usize,
}

impl Disclosed {
    /// What is remembered of a grant for so many items.
    #[must_use]
    pub fn new(max_items: usize, items: impl IntoIterator<Item = ItemId>) -> Self {
        Self { items: items.into_iter().collect(), max_items }
    }

    /// Whether the item was disclosed before.
    #[must_use]
    pub fn contains(&self, item: ItemId) -> bool {
        self.items.contains(&item)
    }

    /// Those items.
    pub fn items(&self) -> impl Iterator<Item = ItemId> {
        self.items.iter().copied()
    }

    /// How many were.
    #[must_use]
    pub fn count(&self) -> usize {
        self.items.len()
    }

    /// How many others may be.
    #[must_use]
    pub fn remaining(&self) -> usize {
        self.max_items.saturating_sub(self.items.len())
    }

    /// Remembers items.
    pub fn extend(&mut self, items: impl IntoIterator<Item = ItemId>) {
        self.items.extend(items);
    }
}

/// What may still be disclosed under a grant: what it gives itself, and what every grant gives that it was made from.
/// An item counts under each of them.
#[derive(Debug, Clone, Default)]
pub struct Allowance(Vec<Arc<Disclosed>>);

impl Allowance {
    /// Of a grant and of those that it was made from, in any order that is always the same.
    #[must_use]
    pub fn new(grants: Vec<Arc<Disclosed>>) -> Self {
        Self(grants)
    }

    /// Of a grant that was made from no other, and under which nothing was disclosed.
    #[must_use]
    pub fn unused(max_items: usize) -> Self {
        Self(vec![Arc::new(Disclosed::new(max_items, []))])
    }

    /// Whether the item was disclosed before, under every one of the grants.
    #[must_use]
    pub fn contains(&self, item: ItemId) -> bool {
        self.0.iter().all(|grant| grant.contains(item))
    }

    /// Whether the item may be shown: disclosed before, or room is left.
    pub(crate) fn admits(&self, item: ItemId) -> bool {
        self.0.iter().all(|grant| grant.remaining() > 0 || grant.contains(item))
    }

    /// Which of the grants have no more to give, in their order.
    #[must_use]
    pub fn exhausted(&self) -> Vec<bool> {
        self.0.iter().map(|grant| grant.remaining() == 0).collect()
    }

    /// The room that is left, to be taken item by item.
    #[must_use]
    pub fn room(&self) -> Room<'_> {
        Room { allowance: self, left: self.0.iter().map(|grant| grant.remaining()).collect() }
    }
}

/// The room of an [`Allowance`] while an answer is put together.
#[derive(Debug)]
pub struct Room<'a> {
    allowance: &'a Allowance,
    left: Vec<usize>,
}

impl Room<'_> {
    /// Whether there is room for so many items, whichever they are.
    pub(crate) fn is_left_for(&self, items: usize) -> bool {
        self.left.iter().all(|left| *left >= items)
    }

    /// Takes room for an item under every grant that has not disclosed it yet; `false`, and nothing taken, where one
    /// has none left.
    pub fn take(&mut self, item: ItemId) -> bool {
        let fresh: Vec<bool> = self.allowance.0.iter().map(|grant| !grant.contains(item)).collect();
        if self.left.iter().zip(&fresh).any(|(left, fresh)| *fresh && *left == 0) {
            return false;
        }
        for (left, fresh) in self.left.iter_mut().zip(fresh) {
            *left -= usize::from(fresh);
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use oap_identity::Timestamp;
    use oap_identity::random::Seeded;

    fn item(seed: u64) -> ItemId {
        ItemId::new(Timestamp::from_seconds(1), &Seeded::new(seed))
    }

    fn grant(max_items: usize, had: &[u64]) -> Arc<Disclosed> {
        Arc::new(Disclosed::new(max_items, had.iter().map(|seed| item(*seed))))
    }

    #[test]
    fn an_item_was_disclosed_where_every_grant_of_a_chain_disclosed_it() {
        let chain = Allowance::new(vec![grant(9, &[1, 2]), grant(9, &[2, 3])]);
        assert!(chain.contains(item(2)));
        for one in [1, 3, 4] {
            assert!(!chain.contains(item(one)), "{one}");
        }
    }

    #[test]
    fn room_is_what_every_grant_of_a_chain_has_left() {
        let chain = Allowance::new(vec![grant(4, &[1]), grant(2, &[])]);
        for (items, is_left) in [(0, true), (2, true), (3, false), (4, false)] {
            assert_eq!(chain.room().is_left_for(items), is_left, "{items}");
        }
    }

    #[test]
    fn each_grant_that_has_nothing_more_to_give_is_told() {
        let chain = Allowance::new(vec![grant(2, &[1, 2]), grant(3, &[1, 2]), grant(0, &[])]);
        assert_eq!(chain.exhausted(), [true, false, true]);
        assert_eq!(Allowance::unused(1).exhausted(), [false]);
    }
}

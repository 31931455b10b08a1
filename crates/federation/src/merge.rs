//! One list out of several: what the own memory and those of others found to the same words.
//!
//! A score is of one view alone: the best of a view of ten items and the best of a view of ten thousand may have the same one, and whoever
//! answers chooses the scores. So nothing is compared across lists but ranks, and the merge is fair by house and not by answer:
//!
//! - In each round every house gives its next item; the houses go in the order in which they are named. One that has nothing more is passed.
//! - A house with several lists (grants of one granter) gives from them in turn: more lists are no more turns.
//! - The order of each list is kept.
//! - An item that several show is there once, by its commitment, at the first place that it gets, and names all lists that show it. It
//!   costs the others no turn.
//! - What a house's items say has a share of the bytes, the same for each; an item beyond it is passed over, and costs no turn.

use oap_identity::Hash;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// An item in a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Offer<T> {
    /// Its commitment: what tells it from any other, wherever it is shown.
    pub is: Hash,
    /// How many bytes of its house's share it takes.
    pub bytes: usize,
    /// The item.
    pub item: T,
}

/// What one source offers, the best first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct List<H, T> {
    /// Whose it is. Lists of one house share its turns.
    pub house: H,
    /// Its items.
    pub offers: Vec<Offer<T>>,
}

/// How much the merged list has at most.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Most {
    /// Items.
    pub items: usize,
    /// Bytes of all houses together; each may take the same part of them.
    pub bytes: usize,
}

/// An item of the merged list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Taken<T> {
    /// The item, as the first list that gave it has it.
    pub item: T,
    /// The lists that show it, by their numbers: first the one that gave it, then the others in their order.
    pub lists: Vec<usize>,
}

/// The merged list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Merged<T> {
    /// Its items, in order.
    pub taken: Vec<Taken<T>>,
    /// Of each list, how many of its distinct items are not there.
    pub left: Vec<usize>,
}

/// A house and where it stands.
struct House {
    lists: Vec<usize>,
    /// Which of its lists is next.
    next: usize,
    bytes: usize,
}

/// What is left of the lists.
struct Rest<T> {
    queues: Vec<VecDeque<Offer<T>>>,
    seen: BTreeSet<Hash>,
    share: usize,
}

impl<T> Rest<T> {
    /// The next item that a house gives, and the list that it is of.
    fn next(&mut self, house: &mut House) -> Option<(usize, Offer<T>)> {
        let lists = house.lists.len();
        for step in 0..lists {
            let place = (house.next + step) % lists;
            let list = *house.lists.get(place)?;
            while let Some(offer) = self.queues.get_mut(list)?.pop_front() {
                let fits = offer.bytes <= self.share.saturating_sub(house.bytes);
                if !fits || !self.seen.insert(offer.is) {
                    continue;
                }
                house.bytes += offer.bytes;
                house.next = (place + 1) % lists;
                return Some((list, offer));
            }
        }
        None
    }
}

/// Merges lists, as this module says.
#[must_use]
pub fn merge<H: PartialEq, T>(lists: Vec<List<H, T>>, most: Most) -> Merged<T> {
    let mut names: Vec<H> = Vec::new();
    let mut houses: Vec<House> = Vec::new();
    let mut queues = Vec::with_capacity(lists.len());
    let mut offered: Vec<BTreeSet<Hash>> = Vec::with_capacity(lists.len());
    let mut shown_by: BTreeMap<Hash, Vec<usize>> = BTreeMap::new();
    for (number, List { house, offers }) in lists.into_iter().enumerate() {
        let place = names.iter().position(|name| *name == house).unwrap_or_else(|| {
            names.push(house);
            houses.push(House { lists: Vec::new(), next: 0, bytes: 0 });
            houses.len() - 1
        });
        if let Some(house) = houses.get_mut(place) {
            house.lists.push(number);
        }
        let distinct: BTreeSet<Hash> = offers.iter().map(|offer| offer.is).collect();
        distinct.iter().for_each(|is| shown_by.entry(*is).or_default().push(number));
        offered.push(distinct);
        queues.push(VecDeque::from(offers));
    }
    let share = most.bytes / houses.len().max(1);
    let mut rest = Rest { queues, seen: BTreeSet::new(), share };
    let mut taken = Vec::new();
    loop {
        let before = taken.len();
        for house in &mut houses {
            if taken.len() == most.items {
                break;
            }
            if let Some((list, Offer { is, item, .. })) = rest.next(house) {
                let others = shown_by.get(&is).into_iter().flatten().copied();
                let lists = std::iter::once(list).chain(others.filter(|other| *other != list)).collect();
                taken.push(Taken { item, lists });
            }
        }
        if taken.len() == before {
            break;
        }
    }
    let left = offered.iter().map(|list| list.difference(&rest.seen).count()).collect();
    Merged { taken, left }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn offer(is: u8, bytes: usize) -> Offer<u8> {
        Offer { is: Hash::of(&[is]), bytes, item: is }
    }

    fn list(house: u8, items: &[u8]) -> List<u8, u8> {
        List { house, offers: items.iter().map(|item| offer(*item, 1)).collect() }
    }

    fn items(merged: &Merged<u8>) -> Vec<u8> {
        merged.taken.iter().map(|taken| taken.item).collect()
    }

    const WIDE: Most = Most { items: 100, bytes: 10_000 };

    #[test]
    fn each_house_gives_in_turn() {
        let merged = merge(vec![list(0, &[1, 2, 3]), list(1, &[11]), list(2, &[21, 22])], WIDE);
        assert_eq!(items(&merged), [1, 11, 21, 2, 22, 3]);
        assert_eq!(merged.left, [0, 0, 0]);
        let few = merge(vec![list(0, &[1, 2, 3]), list(1, &[11])], Most { items: 3, ..WIDE });
        assert_eq!((items(&few), few.left), (vec![1, 11, 2], vec![1, 0]));
    }

    /// Ten grants are one voice.
    #[test]
    fn more_lists_are_no_more_turns() {
        let mut lists = vec![list(0, &[1, 2, 3, 4])];
        lists.extend((1..=10).map(|number| list(9, &[number * 10, number * 10 + 1])));
        let merged = merge(lists, Most { items: 8, ..WIDE });
        assert_eq!(items(&merged), [1, 10, 2, 20, 3, 30, 4, 40]);
    }

    /// What two show is there once and names both, and neither loses a turn by it.
    #[test]
    fn what_several_show_is_there_once() {
        let merged = merge(vec![list(0, &[1, 2]), list(1, &[1, 11, 12])], WIDE);
        assert_eq!(items(&merged), [1, 11, 2, 12]);
        assert_eq!(merged.taken[0].lists, [0, 1]);
        let merged = merge(vec![list(0, &[1, 7]), list(1, &[7, 7, 7])], Most { items: 2, ..WIDE });
        assert_eq!(items(&merged), [1, 7]);
        assert_eq!((&merged.taken[1].lists[..], &merged.left[..]), (&[1, 0][..], &[0, 0][..]));
    }

    /// Whoever answers with books takes nothing from the others.
    #[test]
    fn bytes_are_shared_alike() {
        let long = List { house: 0, offers: vec![offer(1, 900), offer(2, 400), offer(3, 100)] };
        let short = List { house: 1, offers: vec![offer(11, 10), offer(12, 10)] };
        let merged = merge(vec![long, short], Most { items: 10, bytes: 1000 });
        assert_eq!((items(&merged), merged.left), (vec![2, 11, 3, 12], vec![1, 0]));
    }

    #[test]
    fn nothing_of_nothing() {
        let merged = merge(Vec::<List<u8, u8>>::new(), WIDE);
        assert!(merged.taken.is_empty() && merged.left.is_empty());
        assert!(merge(vec![list(0, &[1])], Most { items: 0, ..WIDE }).taken.is_empty());
    }

    /// Up to 6 lists of up to 4 houses, whose items overlap.
    fn worlds() -> impl Strategy<Value = (Vec<List<u8, u8>>, Most)> {
        let list =
            (0_u8..4, prop::collection::vec((0_u8..40, 0_usize..50), 0..12)).prop_map(|(house, offers)| {
                List { house, offers: offers.into_iter().map(|(is, bytes)| offer(is, bytes)).collect() }
            });
        let most = (0_usize..30, 0_usize..600).prop_map(|(items, bytes)| Most { items, bytes });
        (prop::collection::vec(list, 0..6), most)
    }

    proptest! {
        #[test]
        fn a_merge_is_fair((lists, most) in worlds()) {
            let merged = merge(lists.clone(), most);
            prop_assert!(merged.taken.len() <= most.items);
            // Each once.
            let distinct: BTreeSet<u8> = items(&merged).into_iter().collect();
            prop_assert_eq!(distinct.len(), merged.taken.len());
            for taken in &merged.taken {
                // It names exactly those that show it, the one that gave it first.
                let named: BTreeSet<usize> = taken.lists.iter().copied().collect();
                let shows = |list: &List<u8, u8>| list.offers.iter().any(|offer| offer.item == taken.item);
                let expected: BTreeSet<usize> = (0..lists.len()).filter(|number| shows(&lists[*number])).collect();
                prop_assert_eq!(named.len(), taken.lists.len());
                prop_assert_eq!(named, expected);
            }
            let gave = |number: usize| -> Vec<u8> {
                merged.taken.iter().filter(|taken| taken.lists[0] == number).map(|taken| taken.item).collect()
            };
            let houses: BTreeSet<u8> = lists.iter().map(|list| list.house).collect();
            let turns = |house: u8| -> usize {
                (0..lists.len()).filter(|number| lists[*number].house == house).map(|number| gave(number).len()).sum()
            };
            for (number, list) in lists.iter().enumerate() {
                // Its own order is kept: what it gave is a part of it, in order, by the first place of each.
                let mut places = gave(number).into_iter().map(|item| {
                    list.offers.iter().position(|offer| offer.item == item).unwrap()
                });
                let mut last = None;
                let in_order = places.all(|place| last.replace(place).is_none_or(|before| before < place));
                // One whose first copy was too long may come later, by a shorter one.
                let items: BTreeSet<_> = list.offers.iter().map(|offer| offer.item).collect();
                prop_assert!(in_order || items.len() < list.offers.len());
                let distinct: BTreeSet<u8> = list.offers.iter().map(|offer| offer.item).collect();
                let there = distinct.iter().filter(|item| merged.taken.iter().any(|taken| taken.item == **item));
                prop_assert_eq!(merged.left[number], distinct.len() - there.count());
            }
            // Nobody has more turns than another who had something left to give, the round that was cut off aside.
            for a in &houses {
                for b in &houses {
                    let had_more = lists.iter().enumerate().any(|(number, list)| {
                        list.house == *b && merged.left[number] > 0 && list.offers.iter().all(|offer| offer.bytes == 0)
                    });
                    if had_more {
                        prop_assert!(turns(*a) <= turns(*b) + 1, "{a} {b}");
                    }
                }
            }
        }

        /// What a source answers beyond its turn changes nothing for the others.
        #[test]
        fn more_answers_take_nothing_from_others(
            own in prop::collection::vec(0_u8..20, 0..8),
            theirs in prop::collection::vec(100_u8..120, 0..8),
            more in prop::collection::vec(120_u8..250, 0..30),
            items in 0_usize..20,
        ) {
            let most = Most { items, bytes: 10_000 };
            let before = merge(vec![list(0, &own), list(1, &theirs)], most);
            let longer: Vec<u8> = theirs.iter().chain(&more).copied().collect();
            let after = merge(vec![list(0, &own), list(1, &longer)], most);
            let of_own = |merged: &Merged<u8>| merged.taken.iter().filter(|taken| taken.lists[0] == 0).count();
            let distinct = own.iter().collect::<BTreeSet<_>>().len();
            // Its half stays its own, whatever the other answers.
            prop_assert!(of_own(&after) >= distinct.min(items / 2));
            prop_assert!(of_own(&after) <= of_own(&before));
        }
    }
}

//! What became of a view since a subscriber last said what it has (protocol section 17): a function of the view and of what that
//! subscriber has, and of nothing else.
//!
//! A [`Look`] is at all items, or at those alone that may differ since the one before: both find the same.

use crate::allowance::Allowance;
use crate::answer::{Found, list_among};
use crate::member::Member;
use crate::query::{DEFAULT_RESULTS, Query};
use crate::respond::Shown;
use crate::slice::Mark;
use crate::view::View;
use oap_identity::{Hash, ItemId};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// What a subscriber has of an item.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Has {
    /// This state of it: it said so.
    This {
        /// The number of the last link of its chain.
        last_link: u32,
        /// The commitment of the version in force.
        commitment: Hash,
    },
    /// Maybe nothing: it was sent one, and did not say whether it came.
    MaybeNone,
    /// Some state of it, or none any more: it was sent another, or told that the item is gone, and did not say whether that came.
    Some,
}

impl Has {
    /// What it has once another state of the item was sent.
    fn sent(of: Option<&Self>) -> Self {
        match of {
            None | Some(Self::MaybeNone) => Self::MaybeNone,
            Some(Self::This { .. } | Self::Some) => Self::Some,
        }
    }

    /// What it has where that is not sure any more.
    #[must_use]
    pub fn doubted(self) -> Self {
        Self::sent(Some(&self))
    }

    /// Whether it had some state of the item for sure.
    #[must_use]
    pub const fn is_sure(&self) -> bool {
        matches!(self, Self::This { .. } | Self::Some)
    }
}

/// What a subscriber has, by item.
pub type Holdings = BTreeMap<ItemId, Has>;

/// Whether a subscriber does not have an item as it is, for sure.
fn lacks(has: &Holdings, item: ItemId, last_link: u32, commitment: Hash) -> bool {
    has.get(&item) != Some(&Has::This { last_link, commitment })
}

/// What one push sent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sent {
    /// Its number; a later push has a higher one.
    pub sequence: u64,
    /// The items in it, each as it was: the number of its last link, its commitment.
    items: Vec<(ItemId, u32, Hash)>,
    /// Those that it named as gone.
    left: Vec<ItemId>,
}

impl Sent {
    /// What a push sends that shows this, and says that those left.
    #[must_use]
    pub fn of(sequence: u64, shown: &[Shown], left: &BTreeSet<ItemId>) -> Self {
        let items = shown.iter().map(|shown| (shown.item, shown.last_link, shown.commitment)).collect();
        Self { sequence, items, left: left.iter().copied().collect() }
    }

    /// The items that it names.
    pub fn named(&self) -> impl Iterator<Item = ItemId> {
        self.items.iter().map(|(item, ..)| *item).chain(self.left.iter().copied())
    }

    /// What its subscriber has once it came.
    pub fn arrives(&self, has: &mut Holdings) {
        for (item, last_link, commitment) in &self.items {
            has.insert(*item, Has::This { last_link: *last_link, commitment: *commitment });
        }
        for item in &self.left {
            has.remove(item);
        }
    }

    /// What its subscriber has once it was sent: it may come or not.
    pub fn leaves(&self, has: &mut Holdings) {
        for item in self.named() {
            let of = Has::sent(has.get(&item));
            has.insert(item, of);
        }
    }
}

/// What a subscriber has once it said that every push up to a number came, of those that are on their way. The others may have come or not.
pub fn acknowledge(has: &mut Holdings, underway: &[Sent], last: u64) {
    underway.iter().filter(|sent| sent.sequence <= last).for_each(|sent| sent.arrives(has));
    underway.iter().filter(|sent| sent.sequence > last).for_each(|sent| sent.leaves(has));
}

/// What became of a view.
#[derive(Debug)]
pub struct Delta {
    /// The items of the view that the subscriber does not have as they are.
    pub found: Found,
    /// Those that it has, or may have, and the view has not any more.
    pub left: BTreeSet<ItemId>,
    /// Whether more left than that.
    pub more_left: bool,
}

impl Delta {
    /// Whether there is nothing to tell.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.found.is_empty() && self.left.is_empty()
    }
}

/// Most items that are remembered as different from what a subscriber has. Where more are, the next look is at all items.
pub const MAX_DIFFERING: usize = 1_000;

/// What a look at a view found of what its subscriber has, for the next one.
#[derive(Debug, Clone)]
pub struct Compared {
    mark: Mark,
    /// Every item of which the subscriber did not have, for sure, what the view had.
    differing: BTreeSet<ItemId>,
}

/// Which items of a view are looked at, and how the view stood then.
#[derive(Debug)]
pub struct Look {
    mark: Mark,
    items: Option<BTreeSet<ItemId>>,
}

impl Look {
    /// At all items.
    #[must_use]
    pub fn at_all(view: &View) -> Self {
        Self { mark: view.slice().mark(), items: None }
    }

    /// At those that differed before, and those that came, changed or went since: no others differ, as long as what the subscriber has of
    /// any other is as it was. At all items where that is not known any more, as of a view that was built anew.
    #[must_use]
    pub fn after(view: &View, before: Option<&Compared>) -> Self {
        let since = before.and_then(|before| Some((before, view.slice().since(&before.mark)?)));
        let items = since.map(|(before, since)| before.differing.iter().copied().chain(since).collect());
        Self { items, ..Self::at_all(view) }
    }

    /// The items that are looked at; `None` for all. What their subscriber has of others need not be known.
    #[must_use]
    pub const fn items(&self) -> Option<&BTreeSet<ItemId>> {
        self.items.as_ref()
    }

    /// The items in the view that the subscriber does not have as they are.
    fn lacking<'a>(&'a self, view: &'a View, has: &'a Holdings) -> Box<dyn Iterator<Item = &'a Member> + 'a> {
        let slice = view.slice();
        let is_other =
            move |member: &&Member| lacks(has, member.id(), member.version.last_link, member.commitment);
        match &self.items {
            None => Box::new(slice.placed().map(|(_, member)| member).filter(is_other)),
            Some(items) => {
                Box::new(items.iter().filter_map(move |item| slice.member(*item)).filter(is_other))
            }
        }
    }

    /// What the next look goes on from: `has` is what the subscriber has of the items that are looked at, as far as it said so. `None`
    /// where more than [`MAX_DIFFERING`] differ. The view may have changed since the look began.
    #[must_use]
    pub fn compare(self, view: &View, has: &Holdings) -> Option<Compared> {
        let lacking = self.lacking(view, has).map(Member::id);
        let differing: BTreeSet<ItemId> = lacking.chain(gone(view, has)).take(MAX_DIFFERING + 1).collect();
        let mark = self.mark;
        (differing.len() <= MAX_DIFFERING).then_some(Compared { mark, differing })
    }
}

/// The items that a subscriber has, or may have, and the view has not.
fn gone<'a>(view: &'a View, has: &'a Holdings) -> impl Iterator<Item = ItemId> + 'a {
    has.keys().copied().filter(move |item| !view.contains(*item))
}

/// Finds what became of a view: at most as many items as `listing` asks for, in the order of a listing, at most `bytes` of them
/// written out, but one in any case; and at most as many that left. `has` is what the subscriber has of the items that are looked at.
#[must_use]
pub fn find_changes(
    view: &View,
    allowance: &Allowance,
    listing: &Query,
    has: &Holdings,
    look: &Look,
    bytes: usize,
) -> Delta {
    let found = list_among(view, allowance, listing, look.lacking(view, has)).within(bytes);
    let most = usize::from(listing.max_results.unwrap_or(DEFAULT_RESULTS));
    let mut gone = gone(view, has);
    let left: BTreeSet<ItemId> = gone.by_ref().take(most).collect();
    Delta { found, left, more_left: gone.next().is_some() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use oap_identity::random::{Seeded, bytes};

    /// What was not acknowledged is sent again, and what may be there is taken away again.
    #[test]
    fn what_was_sent_and_not_acknowledged() {
        let this = Has::This { last_link: 1, commitment: Hash::of(b"x") };
        assert_eq!(Has::sent(None), Has::MaybeNone);
        assert_eq!(Has::sent(Some(&Has::MaybeNone)), Has::MaybeNone);
        assert_eq!(Has::sent(Some(&this)), Has::Some);
        assert_eq!(Has::sent(Some(&Has::Some)), Has::Some);
        assert_eq!([this, Has::Some, Has::MaybeNone].map(|has| has.is_sure()), [true, true, false]);
    }

    /// Whatever is lost, and whether pushes are acknowledged one by one or follow each other: nothing stays with a subscriber that the view
    /// does not have and that is not known to be there, and in the end it has the view.
    #[test]
    fn whatever_is_lost_a_subscriber_ends_with_the_view() {
        for seed in 0..300 {
            let random = Seeded::new(seed);
            let id = |n: u8| ItemId::from_bytes([n % 6; 16]);
            let (mut view, mut theirs) = (BTreeMap::<ItemId, u32>::new(), BTreeMap::<ItemId, u32>::new());
            let (mut has, mut underway, mut came, mut links) = (Holdings::new(), Vec::<Sent>::new(), 0, 0);
            let mut sequence = 0;
            for step in 0..200 {
                let [what, which, luck] = bytes::<3>(&random);
                // At last everything comes, and nothing changes any more.
                let (calm, lucky) = (step >= 160, step >= 160 || luck % 3 > 0);
                if !calm && what % 3 == 0 {
                    links += 1;
                    view.insert(id(which), links);
                } else if !calm && what % 3 == 1 {
                    view.remove(&id(which));
                } else {
                    let mut known = has.clone();
                    underway.iter().for_each(|sent| sent.arrives(&mut known));
                    let missing = |(item, link): (&ItemId, &u32)| {
                        let commitment = Hash::of(&link.to_be_bytes());
                        lacks(&known, *item, *link, commitment).then_some((*item, *link, commitment))
                    };
                    let items: Vec<_> = view.iter().filter_map(missing).take(2).collect();
                    let gone = known.keys().filter(|item| !view.contains_key(item));
                    let left: Vec<ItemId> = gone.copied().take(2).collect();
                    if items.is_empty() && left.is_empty() {
                        continue;
                    }
                    sequence += 1;
                    let sent = Sent { sequence, items, left };
                    sent.leaves(&mut has);
                    underway.push(sent.clone());
                    if lucky {
                        came = sequence;
                        theirs.extend(sent.items.iter().map(|(item, link, _)| (*item, *link)));
                        theirs.retain(|item, _| !sent.left.contains(item));
                    }
                    // The next one follows on the same stream, or what came is said; where that is lost, nothing is.
                    if !lucky || luck >= 128 {
                        acknowledge(&mut has, &underway, if luck % 2 == 0 || calm { came } else { 0 });
                        underway.clear();
                    }
                }
                for item in theirs.keys().filter(|item| !view.contains_key(item)) {
                    assert!(has.contains_key(item), "{seed}.{step}");
                }
                for (item, of) in &has {
                    if let Has::This { commitment, .. } = of {
                        let link = theirs.get(item).map(|link| Hash::of(&link.to_be_bytes()));
                        assert_eq!(link, Some(*commitment), "{seed}.{step}");
                    }
                }
            }
            assert_eq!(theirs, view, "{seed}");
        }
    }
}

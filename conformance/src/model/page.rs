//! What a page holds: at most `max_results` items, never more new ones than the grants have left, from the cursor on.

use super::disclosed::{Disclosed, Walk};
use super::grant::Grant;
use super::rule::Paged;
use super::search::Found;
use super::view::Visible;
use oap_identity::time::MAX_SKEW;
use std::cmp::Reverse;
use std::collections::BTreeSet;

/// A page as far as it is determined.
#[derive(Debug, Clone, Default)]
pub(super) struct Page {
    /// The items that may be in it.
    pub items: BTreeSet<String>,
    /// Those that must be.
    pub certain: BTreeSet<String>,
    /// Those that must be in it where there is no more.
    pub at_end: BTreeSet<String>,
    pub order: Vec<Vec<String>>,
    pub more: Option<bool>,
    pub most: usize,
    /// Whether the best that a question finds is in it.
    pub has_best: bool,
    /// How many of its items were had before, where it is known.
    pub got: Option<usize>,
    /// Of each grant of the chain: the items that were disclosed, and how many others may be.
    pub rooms: Vec<(BTreeSet<String>, usize)>,
    /// Whether two of its items have one capture time.
    pub ties: bool,
    pub rules: Vec<Paged>,
}

/// What a page is taken from.
pub(super) struct Candidates<'a> {
    pub chain: &'a [&'a Grant],
    pub limit: usize,
    pub spent: &'a Disclosed,
    pub walk: Option<&'a Walk>,
    /// Whether the view has changed since the first page.
    pub moved: bool,
}

impl Candidates<'_> {
    fn rooms(&self) -> Vec<(BTreeSet<String>, usize)> {
        let room = |grant: &&Grant| {
            let had = self.spent.under(grant);
            let left = grant.max_items.saturating_sub(had.len());
            (had, left)
        };
        self.chain.iter().map(room).collect()
    }

    /// A page of a listing: newest first, ties by item id.
    pub fn list(&self, admitted: &[&Visible]) -> Page {
        let mut sorted: Vec<&Visible> = admitted.to_vec();
        sorted.sort_by_key(|visible| (Reverse(visible.captured), visible.id.clone()));
        // The gateway's own clock, which the model knows more or less.
        let near =
            |a: &Visible, b: &Visible| (a.clocked || b.clocked) && a.captured <= b.captured.plus(MAX_SKEW);
        if self.walk.is_none() && !sorted.windows(2).any(|pair| matches!(pair, [a, b] if near(a, b))) {
            return self.take(&sorted);
        }
        if let Some(walk) = self.walk {
            let place = (Reverse(walk.last.0), walk.last.1.clone());
            let is_clear = sorted.iter().all(|visible| !visible.clocked || walk.shown.contains(&visible.id));
            sorted.retain(|visible| {
                if visible.clocked {
                    !walk.shown.contains(&visible.id)
                } else {
                    (Reverse(visible.captured), visible.id.clone()) > place
                }
            });
            if is_clear && !self.moved {
                return self.take(&sorted);
            }
        }
        let ids: BTreeSet<String> = sorted.iter().map(|visible| visible.id.clone()).collect();
        let mut page = self.bounded(&Found { may: ids.clone(), must: ids });
        let mut groups: Vec<Vec<&Visible>> = Vec::new();
        for visible in sorted {
            match groups.last_mut() {
                Some(group) if group.last().is_some_and(|last| near(last, visible)) => group.push(visible),
                _ => groups.push(vec![visible]),
            }
        }
        page.order =
            groups.iter().map(|group| group.iter().map(|visible| visible.id.clone()).collect()).collect();
        page
    }

    /// A page of items whose order is known: that in which they come.
    pub fn take(&self, sorted: &[&Visible]) -> Page {
        let mut rooms = self.rooms();
        let mut page = Page { most: self.limit, more: Some(false), rooms: rooms.clone(), ..Page::default() };
        let (mut got, mut last) = (0, None);
        for visible in sorted {
            let fresh: Vec<bool> = rooms.iter().map(|(had, _)| !had.contains(&visible.id)).collect();
            let full = rooms.iter().zip(&fresh).position(|((_, left), fresh)| *fresh && *left == 0);
            if let Some(above) = full {
                page.rules.push(if above == 0 { Paged::CapLeavesOut } else { Paged::CapShared });
                continue;
            }
            if page.items.len() == self.limit {
                page.more = Some(true);
                break;
            }
            let exhausted = rooms.iter().any(|(_, left)| *left == 0);
            for ((_, left), fresh) in rooms.iter_mut().zip(&fresh) {
                *left -= usize::from(*fresh);
            }
            let had = !fresh.contains(&true);
            got += usize::from(had);
            page.rules.push(if had { Paged::Again } else { Paged::FirstDisclosed });
            if had && exhausted {
                page.rules.push(Paged::CapComesBack);
            }
            page.ties |= last == Some(visible.captured);
            last = Some(visible.captured);
            page.order.push(vec![visible.id.clone()]);
            page.items.insert(visible.id.clone());
        }
        page.got = Some(got);
        page.certain.clone_from(&page.items);
        page.at_end.clone_from(&page.items);
        page.rules.push(match (page.more, page.items.len() == self.limit) {
            (Some(true), _) => Paged::Full,
            (_, true) => Paged::Exact,
            _ => Paged::Whole,
        });
        page
    }

    /// A page of what a question finds: its order is the gateway's own.
    pub fn find(&self, found: &Found) -> Page {
        let Some(walk) = self.walk.filter(|_| !self.moved) else { return self.bounded(found) };
        let rest = |ids: &BTreeSet<String>| ids.difference(&walk.shown).cloned().collect();
        self.bounded(&Found { may: rest(&found.may), must: rest(&found.must) })
    }

    /// A page of items whose order is not known.
    fn bounded(&self, found: &Found) -> Page {
        let rooms = self.rooms();
        let room_for = |id: &&String| rooms.iter().all(|(had, left)| *left > 0 || had.contains(*id));
        let left_out = found.may.iter().any(|id| !room_for(&id));
        let only = |ids: &BTreeSet<String>| ids.iter().filter(room_for).cloned().collect();
        let found = &Found { may: only(&found.may), must: only(&found.must) };
        let fits = |(had, left): &(BTreeSet<String>, usize)| found.may.difference(had).count() <= *left;
        let free = rooms.iter().all(fits);
        let had = |id: &&String| rooms.iter().all(|(had, _)| had.contains(*id));
        // Without room for all that are new, those that were had before are sure alone.
        let sure: BTreeSet<String> = found.must.iter().filter(|id| free || had(id)).cloned().collect();
        let everything = found.may.len() <= self.limit;
        let more = if self.moved {
            None
        } else if everything {
            Some(false)
        } else if sure.len() > self.limit {
            Some(true)
        } else {
            None
        };
        let exact = everything && free && found.must == found.may && !self.moved;
        Page {
            got: exact.then(|| found.may.iter().filter(had).count()),
            certain: if everything && !self.moved { sure.clone() } else { BTreeSet::new() },
            at_end: if self.moved { BTreeSet::new() } else { sure },
            items: found.may.clone(),
            order: Vec::new(),
            more,
            most: self.limit,
            // What there is no room for is not in the view: nothing is better that is not there.
            has_best: self.walk.is_none() && free,
            rooms,
            ties: false,
            rules: if left_out { vec![Paged::CapLeavesOut] } else { Vec::new() },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn visible(id: &str, at: i64, clocked: bool) -> Visible {
        Visible {
            id: id.to_owned(),
            item: json!({}),
            free: [].into(),
            chain: Vec::new(),
            captured: oap_identity::Timestamp::from_seconds(at),
            clocked,
            text: String::new(),
            certain: String::new(),
            exportable: true,
        }
    }

    fn grant(max_items: usize) -> Grant {
        Grant { max_items, hash: max_items.to_string(), ..Grant::read(&json!({})) }
    }

    fn page(grant: &Grant, limit: usize, items: &[Visible]) -> Page {
        let items: Vec<&Visible> = items.iter().collect();
        let spent = Disclosed::default();
        Candidates { chain: &[grant], limit, spent: &spent, walk: None, moved: false }.list(&items)
    }

    #[test]
    fn newest_first_ties_by_id_and_no_more_than_the_limit() {
        let items = [visible("c", 1, false), visible("b", 2, false), visible("a", 1, false)];
        let two = page(&grant(9), 2, &items);
        assert_eq!((two.order, two.more), (vec![vec!["b".to_owned()], vec!["a".to_owned()]], Some(true)));
        let all = page(&grant(9), 3, &items);
        assert_eq!((all.order.len(), all.more, all.ties), (3, Some(false), true));
        assert!(all.rules.contains(&Paged::Exact));
    }

    #[test]
    fn max_items_leaves_out_what_was_never_disclosed() {
        let items = [visible("b", 2, false), visible("a", 1, false)];
        let one = page(&grant(1), 20, &items);
        assert_eq!((one.order, one.more), (vec![vec!["b".to_owned()]], Some(false)));
        assert!(one.rules.contains(&Paged::CapLeavesOut));
    }

    #[test]
    fn times_of_the_gateways_own_clock_leave_the_order_open() {
        let items = [visible("b", 2, true), visible("a", 1, true), visible("c", 100_000, false)];
        let all = page(&grant(9), 20, &items);
        assert_eq!(all.order, [vec!["c".to_owned()], vec!["b".to_owned(), "a".to_owned()]]);
        assert_eq!(all.certain.len(), 3);
        assert!(page(&grant(9), 2, &items).certain.is_empty());
    }
}

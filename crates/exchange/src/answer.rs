//! The answer to a query: a function of the view and the request, and of nothing else (protocol section 6).

use crate::allowance::Allowance;
use crate::item::ViewItem;
use crate::lens::Lens;
use crate::member::{Member, Version};
use crate::query::{DEFAULT_RESULTS, Integrity, Query};
use crate::respond::{Frame, Items, OPENING, Shown, Unsent};
use crate::setting::ViewError;
use crate::slice::Slice;
use crate::vector::{Vector, fuse};
use crate::view::View;
use crate::written::WrittenItems;
use oap_grants::VerifiedGrant;
use oap_identity::{Hash, ItemId, Timestamp};
use oap_memory::answer::output_hash;
use oap_memory::record::ItemRecord;
use std::cmp::{Ordering, Reverse};
use std::collections::{BTreeSet, BinaryHeap};
use std::sync::Arc;

/// Most bytes of the items of one answer; the rest is behind its cursor. One item is always answered with.
pub const MAX_ANSWER: usize = 16 << 20;

/// Where an answer ended: what came last.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Position {
    /// The rank of the last item: its score, or its capture time for a listing.
    pub rank: Rank,
    /// The last item.
    pub item: ItemId,
}

/// What items are ordered by, best first.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Rank {
    /// The score of a query.
    Score(f32),
    /// The capture time of a listing.
    Captured(Timestamp),
}

impl Rank {
    /// The score, 0 in a listing.
    const fn score(self) -> f32 {
        match self {
            Self::Score(score) => score,
            Self::Captured(_) => 0.0,
        }
    }

    /// A key that sorts best first.
    fn key(self) -> Reverse<i64> {
        Reverse(match self {
            // Scores are never negative, and the bits of such floats sort as they do.
            Self::Score(score) => i64::from(score.to_bits()),
            Self::Captured(at) => at.millis(),
        })
    }
}

/// An item that a query found.
#[derive(Debug, Clone)]
struct Hit {
    member: Member,
    rank: Rank,
    relevance: f64,
    /// Whether it was never disclosed before.
    is_new: bool,
}

/// What a query finds in a view, with nothing of it written out. [`find`] alone makes one; it does not hold on to the view.
#[derive(Debug)]
pub struct Found {
    grant: VerifiedGrant,
    lens: Arc<Lens>,
    key: Hash,
    hits: Vec<Hit>,
    /// Whether there is more behind the last one.
    more: bool,
    /// Whether items say where their vectors are.
    refers: bool,
    integrity: Integrity,
    /// Most bytes of the items; one is written out in any case.
    most: usize,
}

/// Finds in a view what a query asks for. `after` is the position of the query's cursor.
///
/// `meaning` is the vector of the query's text, where the view has vectors: then both rankings are fused.
///
/// Ties break by item id. At most as many items that were never disclosed are found as the
/// grant has left, and every grant that it was made from.
#[must_use]
pub fn find(
    view: &View,
    allowance: &Allowance,
    query: &Query,
    meaning: Option<&Vector>,
    after: Option<Position>,
) -> Found {
    let slice = view.slice();
    let ranked_otherwise = meaning.is_some() && slice.has_vectors();
    if query.is_listing() || query.narrows() || ranked_otherwise {
        return find_among(view, allowance, query, |_| true, meaning, after);
    }
    // Nothing is asked of a member but its words: those alone are looked at that may be among the first.
    let mut words = slice.matches(&query.query);
    let best = words.best();
    let most = limit(query) + 1;
    match after.map(|after| after.rank) {
        Some(Rank::Captured(_)) => {}
        _ if !allowance.room().is_left_for(most) => {}
        Some(Rank::Score(last)) => words.keep_first(most, Some(last)),
        None => words.keep_first(most, None),
    }
    let ranked = words.iter().filter_map(|(place, score)| Some(Ranked::scored(slice.at(place)?, score)));
    pick(view, allowance, query, ranked.collect(), best, after)
}

/// How many items an answer has at most.
fn limit(query: &Query) -> usize {
    usize::from(query.max_results.unwrap_or(DEFAULT_RESULTS))
}

/// Finds one item in a view, as a listing would that has it alone. What the view does not have is not found, as what is nowhere.
#[must_use]
pub fn find_item(view: &View, allowance: &Allowance, query: &Query, item: ItemId) -> Found {
    find_items(view, allowance, query, &[item])
}

/// Finds the items of a view that are named, as a listing would that has them alone.
#[must_use]
pub fn find_items(view: &View, allowance: &Allowance, query: &Query, items: &[ItemId]) -> Found {
    let items: BTreeSet<&ItemId> = items.iter().collect();
    if query.is_listing() {
        let members = items.into_iter().filter_map(|item| view.slice().member(*item));
        return list_among(view, allowance, query, members);
    }
    find_among(view, allowance, query, |member| items.contains(&member.id()), None, None)
}

/// Finds among the items of a view that are wanted.
fn find_among(
    view: &View,
    allowance: &Allowance,
    query: &Query,
    wanted: impl Fn(&Member) -> bool,
    meaning: Option<&Vector>,
    after: Option<Position>,
) -> Found {
    let mut ranked = rank(view.slice(), query, meaning);
    ranked.retain(|ranked| wanted(ranked.member));
    let best = ranked.iter().map(|ranked| ranked.rank.score()).fold(0.0, f32::max);
    pick(view, allowance, query, ranked, best, after)
}

/// Finds among these members of a view, in the order of a listing.
pub(crate) fn list_among<'v>(
    view: &'v View,
    allowance: &Allowance,
    listing: &Query,
    members: impl Iterator<Item = &'v Member>,
) -> Found {
    let admitted = members.filter(|member| admits(listing, member));
    pick(view, allowance, listing, admitted.map(Ranked::listed).collect(), 0.0, None)
}

/// Takes the first of what was ranked, behind a position. `best` is the highest score of all that comes into question, before it too.
fn pick(
    view: &View,
    allowance: &Allowance,
    query: &Query,
    mut ranked: Vec<Ranked<'_>>,
    best: f32,
    after: Option<Position>,
) -> Found {
    if let Some(after) = after {
        let place = (after.rank.key(), after.item);
        ranked.retain(|ranked| ranked.place() > place);
    }
    let mut ranked: BinaryHeap<Reverse<Ranked>> = ranked.into_iter().map(Reverse).collect();
    let mut room = allowance.room();
    let limit = limit(query);
    let (mut hits, mut more) = (Vec::new(), false);
    while let Some(Reverse(Ranked { rank, member })) = ranked.pop() {
        if !room.take(member.id()) {
            continue;
        }
        if hits.len() == limit {
            more = true;
            break;
        }
        let relevance = match rank {
            Rank::Score(score) => (f64::from(score) / f64::from(best) * 10_000.0).round() / 10_000.0,
            Rank::Captured(_) => 1.0,
        };
        let is_new = !allowance.contains(member.id());
        hits.push(Hit { member: member.clone(), rank, relevance, is_new });
    }
    Found {
        grant: view.grant().clone(),
        lens: view.slice().lens.clone(),
        key: view.key(),
        hits,
        more,
        refers: view.shows_vectors(),
        integrity: query.integrity,
        most: MAX_ANSWER,
    }
}

/// A member and its rank; the better one is less.
struct Ranked<'v> {
    rank: Rank,
    member: &'v Member,
}

impl<'v> Ranked<'v> {
    /// As a listing has it.
    const fn listed(member: &'v Member) -> Self {
        Self { rank: Rank::Captured(member.captured_at), member }
    }

    const fn scored(member: &'v Member, score: f32) -> Self {
        Self { rank: Rank::Score(score), member }
    }

    fn place(&self) -> (Reverse<i64>, ItemId) {
        (self.rank.key(), self.member.id())
    }
}

impl PartialEq for Ranked<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Ranked<'_> {}

impl PartialOrd for Ranked<'_> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Ranked<'_> {
    fn cmp(&self, other: &Self) -> Ordering {
        let by_id = || self.member.id().cmp(&other.member.id());
        self.rank.key().cmp(&other.rank.key()).then_with(by_id)
    }
}

/// The items that a query admits. A condition on a member that is hidden admits nothing.
fn rank<'v>(slice: &'v Slice, query: &Query, meaning: Option<&Vector>) -> Vec<Ranked<'v>> {
    let admitted = |member: &&Member| admits(query, member);
    if query.is_listing() {
        let members = slice.placed().map(|(_, member)| member).filter(admitted);
        return members.map(Ranked::listed).collect();
    }
    let words = slice.matches(&query.query);
    let scored = |place: u32, score: f32| Some(Ranked::scored(slice.at(place).filter(admitted)?, score));
    match meaning.filter(|_| slice.has_vectors()) {
        None => words.iter().filter_map(|(place, score)| scored(place, score)).collect(),
        Some(meaning) => {
            let admitted = slice.placed().filter(|(_, member)| admits(query, member));
            let admitted: Vec<_> = admitted.map(|(place, member)| (place as usize, member.id())).collect();
            let nearness = slice.nearness(meaning);
            let fused = fuse(&admitted, &words.by_place(nearness.len()), &nearness);
            fused.into_iter().filter_map(|(place, score)| scored(place as u32, score)).collect()
        }
    }
}

fn admits(query: &Query, item: &Member) -> bool {
    query.kinds.as_ref().is_none_or(|kinds| item.kind.is_some_and(|kind| kinds.contains(&kind)))
        && query.labels_any.as_ref().is_none_or(|any| any.iter().any(|label| item.labels.contains(label)))
        && query.min_confidence.is_none_or(|least| item.confidence.is_some_and(|c| c >= least))
}

impl Found {
    /// The same, of which no more than so many bytes of items are written out; one item is in any case.
    #[must_use]
    pub(crate) fn within(self, most: usize) -> Self {
        Self { most, ..self }
    }

    /// Whether nothing was found.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.hits.is_empty()
    }

    /// Whether it would disclose items that never were under the grant.
    #[must_use]
    pub fn discloses(&self) -> bool {
        self.hits.iter().any(|hit| hit.is_new)
    }

    /// Writes the items out, as they are kept or as `load` gives them. `None` when one of them is not the version any
    /// more that was found, or is gone: what is asked for is to be found anew.
    ///
    /// # Errors
    /// [`ViewError`].
    pub fn load<E>(
        self,
        written: &WrittenItems,
        mut load: impl FnMut(Version) -> Result<Option<ItemRecord>, E>,
    ) -> Result<Option<Answer>, ViewError<E>> {
        let Self { grant, lens, key, hits, mut more, refers, integrity, most } = self;
        let (mut items, mut bytes) = (Vec::with_capacity(hits.len()), 0);
        for hit in hits {
            let write = || match load(hit.member.version).map_err(ViewError::Store)? {
                Some(whole) => lens.write(&hit.member, &whole),
                None => Ok(None),
            };
            let Some(item) = written.get(key, hit.member.version, write)? else { return Ok(None) };
            let reference = lens.reference.as_ref().filter(|_| refers);
            let reference = reference.map(|reference| reference.member(item.id())).transpose()?;
            bytes += item.size() + reference.as_ref().map_or(0, String::len);
            if bytes > most && !items.is_empty() {
                more = true;
                break;
            }
            items.push(Loaded { hit, item, reference });
        }
        Ok(Some(Answer { grant, lens, items, more, integrity }))
    }
}

/// What an answer has beside the text of each item, of its receipt's tags for each, and beside all of them, in bytes, about.
const BESIDE_ITEM: usize = 64;
const TAG: usize = 110;
const BESIDE_ITEMS: usize = 3 << 10;

/// An item of an answer.
#[derive(Debug)]
struct Loaded {
    hit: Hit,
    item: Arc<ViewItem>,
    reference: Option<String>,
}

/// What a query found in a view, written out. [`Found::load`] alone makes one.
#[derive(Debug)]
pub struct Answer {
    grant: VerifiedGrant,
    lens: Arc<Lens>,
    items: Vec<Loaded>,
    more: bool,
    integrity: Integrity,
}

impl Answer {
    /// The items found, in order.
    pub fn items(&self) -> impl ExactSizeIterator<Item = ItemId> {
        self.items.iter().map(|item| item.hit.member.id())
    }

    /// The items that were never disclosed under the grant before.
    pub fn newly_disclosed(&self) -> impl Iterator<Item = ItemId> {
        self.items.iter().filter(|item| item.hit.is_new).map(|item| item.hit.member.id())
    }

    /// Where the next answer begins, if there is more.
    #[must_use]
    pub fn next(&self) -> Option<Position> {
        let last = self.items.last().filter(|_| self.more)?;
        Some(Position { rank: last.hit.rank, item: last.hit.member.id() })
    }

    /// Writes the answer out, under its name. What comes of it leaves with its receipt, and not before.
    #[must_use]
    pub fn write(self, frame: Frame) -> Unsent<Items> {
        let begun = self.begin();
        Unsent {
            shown: self.items.iter().map(|item| Shown::of(&item.hit.member)).collect(),
            output_hash: output_hash(&begun[OPENING.len()..], &frame.response_id),
            body: Items::new(begun, frame, self.grant.grant(), &self.lens.applied),
        }
    }

    /// The answer up to the end of its items, in canonical form, with room for the rest.
    fn begin(&self) -> String {
        let size = |Loaded { item, reference, .. }: &Loaded| {
            item.size() + reference.as_ref().map_or(0, String::len) + BESIDE_ITEM
        };
        let size = self.items.iter().map(size).sum::<usize>();
        let mut out = String::with_capacity(OPENING.len() + size + BESIDE_ITEMS + self.items.len() * TAG);
        out.push_str(OPENING);
        out.push('[');
        let sd_jwt = self.integrity == Integrity::Full;
        for (number, Loaded { hit, item, reference }) in self.items.iter().enumerate() {
            if number > 0 {
                out.push(',');
            }
            item.answer(reference.as_deref(), sd_jwt, hit.relevance, &mut out);
        }
        out.push(']');
        out
    }
}

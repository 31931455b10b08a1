//! The answer to a query: a function of the view and the request, and of nothing else (protocol section 6).

use crate::allowance::Allowance;
use crate::item::ViewItem;
use crate::query::{DEFAULT_RESULTS, Integrity, Query};
use crate::respond::{Frame, Items, Shown, Unsent};
use crate::vector::{Vector, fuse};
use crate::view::View;
use oap_identity::{ItemId, Timestamp};
use oap_memory::answer::output_hash;
use std::cmp::Reverse;

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
    /// A key that sorts best first.
    fn key(self) -> Reverse<i64> {
        Reverse(match self {
            // Scores are never negative, and the bits of such floats sort as they do.
            Self::Score(score) => i64::from(score.to_bits()),
            Self::Captured(at) => at.millis(),
        })
    }
}

/// An item of an answer.
#[derive(Debug, Clone, Copy)]
struct Found<'v> {
    item: &'v ViewItem,
    relevance: f64,
}

/// What a query finds in a view. [`answer`] alone makes one.
#[derive(Debug, Clone)]
pub struct Answer<'v> {
    view: &'v View,
    found: Vec<Found<'v>>,
    next: Option<Position>,
    newly_disclosed: Vec<ItemId>,
    integrity: Integrity,
}

/// Answers a query from a view. `after` is the position of the query's cursor.
///
/// `meaning` is the vector of the query's text, where the view has vectors: then both rankings are fused.
///
/// Ties break by item id. At most as many items that were never disclosed are shown as the
/// grant has left, and every grant that it was made from.
#[must_use]
pub fn answer<'v>(
    view: &'v View,
    allowance: &Allowance,
    query: &Query,
    meaning: Option<&Vector>,
    after: Option<Position>,
) -> Answer<'v> {
    let mut ranked = rank(view, query, meaning);
    let best = ranked.first().map_or(0.0, |(rank, _)| match rank {
        Rank::Score(score) => f64::from(*score),
        Rank::Captured(_) => 0.0,
    });
    if let Some(after) = after {
        let place = (after.rank.key(), after.item);
        ranked.retain(|(rank, item)| (rank.key(), item.id) > place);
    }
    let mut room = allowance.room();
    let mut newly_disclosed = Vec::new();
    let mut found = Vec::new();
    let mut next = None;
    let limit = usize::from(query.max_results.unwrap_or(DEFAULT_RESULTS));
    let mut last = None;
    let mut bytes = 0;
    for (rank, item) in ranked {
        if !room.take(item.id) {
            continue;
        }
        bytes += item.size();
        if found.len() == limit || (bytes > MAX_ANSWER && !found.is_empty()) {
            next = last;
            break;
        }
        if !allowance.contains(item.id) {
            newly_disclosed.push(item.id);
        }
        let relevance = match rank {
            Rank::Score(score) => (f64::from(score) / best * 10_000.0).round() / 10_000.0,
            Rank::Captured(_) => 1.0,
        };
        last = Some(Position { rank, item: item.id });
        found.push(Found { item, relevance });
    }
    Answer { view, found, next, newly_disclosed, integrity: query.integrity }
}

/// The items that a query admits, best first. A condition on a member that is hidden admits nothing.
fn rank<'v>(view: &'v View, query: &Query, meaning: Option<&Vector>) -> Vec<(Rank, &'v ViewItem)> {
    let admitted = view.items().iter().enumerate().filter(|(_, item)| admits(query, item));
    let mut ranked: Vec<(Rank, &ViewItem)> = if query.is_listing() {
        admitted.map(|(_, item)| (Rank::Captured(item.captured_at), item)).collect()
    } else {
        let words = view.index().score(&query.query);
        match meaning.filter(|_| !view.vectors().is_empty()) {
            None => admitted
                .filter(|(number, _)| words[*number] > 0.0)
                .map(|(number, item)| (Rank::Score(words[number]), item))
                .collect(),
            Some(meaning) => {
                let admitted: Vec<_> = admitted.map(|(number, item)| (number, item.id)).collect();
                let nearness: Vec<f32> = view.vectors().iter().map(|v| v.cosine(meaning)).collect();
                let fused = fuse(&admitted, &words, &nearness);
                fused.into_iter().map(|(number, score)| (Rank::Score(score), &view.items()[number])).collect()
            }
        }
    };
    ranked.sort_by_key(|(rank, item)| (rank.key(), item.id));
    ranked
}

fn admits(query: &Query, item: &ViewItem) -> bool {
    query.kinds.as_ref().is_none_or(|kinds| item.kind.is_some_and(|kind| kinds.contains(&kind)))
        && query.labels_any.as_ref().is_none_or(|any| any.iter().any(|label| item.labels.contains(label)))
        && query.min_confidence.is_none_or(|least| item.confidence.is_some_and(|c| c >= least))
}

impl<'v> Answer<'v> {
    /// The items found, in order.
    pub fn items(&self) -> impl ExactSizeIterator<Item = ItemId> {
        self.found.iter().map(|found| found.item.id)
    }

    /// The items that were never disclosed under the grant before.
    #[must_use]
    pub fn newly_disclosed(&self) -> &[ItemId] {
        &self.newly_disclosed
    }

    /// Where the next answer begins, if there is more.
    #[must_use]
    pub const fn next(&self) -> Option<Position> {
        self.next
    }

    /// Writes the answer out, under its name. What comes of it leaves with its receipt, and not before.
    #[must_use]
    pub fn write(self, frame: Frame) -> Unsent<Items> {
        let items = self.items_json();
        Unsent {
            shown: self.found.iter().map(|found| Shown::of(found.item)).collect(),
            got_before: self.found.len() - self.newly_disclosed.len(),
            output_hash: output_hash(&items, &frame.response_id),
            body: Items::new(items, frame, self.view),
        }
    }

    /// The items as they stand in the answer, in canonical form.
    fn items_json(&self) -> String {
        let mut out = String::from("[");
        for (number, found) in self.found.iter().enumerate() {
            if number > 0 {
                out.push(',');
            }
            write_item(found, self.integrity, &mut out);
        }
        out.push(']');
        out
    }
}

fn write_item(found: &Found, integrity: Integrity, out: &mut String) {
    let [before, between, after] = &found.item.members;
    out.push('{');
    out.push_str(before);
    out.push_str(r#","integrity":{"#);
    out.push_str(&found.item.chain);
    if integrity == Integrity::Full {
        out.push_str(r#","sd_jwt":""#);
        out.push_str(&found.item.sd_jwt);
        out.push('"');
    }
    out.push_str("},");
    out.push_str(between);
    out.push_str(r#","relevance":"#);
    // Four decimals: short enough to be written alike by every number formatter.
    out.push_str(&found.relevance.to_string());
    out.push(',');
    out.push_str(after);
    out.push('}');
}

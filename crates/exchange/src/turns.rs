//! The turns of conversations, in their order: which stand next to which.

use oap_identity::{ItemId, Timestamp};
use std::collections::BTreeMap;
use std::ops::Bound;
use std::time::Duration;

/// Turns further apart than this belong to different conversations.
const CONVERSATION_GAP: Duration = Duration::from_secs(30 * 60);
/// What the words of the turn before another count towards it, and of the one before that, in tenths: a question stands
/// before its answer.
const BEFORE: [u32; 2] = [7, 4];
/// What the words of the turn after another count towards it, and of the one behind that, in tenths.
const AFTER: [u32; 2] = [3, 1];

/// What turns are ordered by.
type When = (Timestamp, ItemId);

/// The turns around one, by place: the two before it and the two after, the nearer ones first.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Near {
    before: [Option<Place>; 2],
    after: [Option<Place>; 2],
}

/// A place, one higher, so that none takes no room.
type Place = std::num::NonZeroU32;

impl Near {
    /// Most of them.
    pub(crate) const MOST: usize = BEFORE.len() + AFTER.len();

    /// Their places, and what their words count towards this turn.
    pub(crate) fn context(&self) -> impl Iterator<Item = (u32, u32)> {
        self.weighted(BEFORE, AFTER)
    }

    /// Their places, and what the words of this turn count towards them.
    pub(crate) fn reach(&self) -> impl Iterator<Item = (u32, u32)> {
        // This turn stands after those before it.
        self.weighted(AFTER, BEFORE)
    }

    fn weighted(&self, before: [u32; 2], after: [u32; 2]) -> impl Iterator<Item = (u32, u32)> {
        let all = self.before.into_iter().zip(before).chain(self.after.into_iter().zip(after));
        all.filter_map(|(place, weight)| Some((place?.get() - 1, weight)))
    }
}

/// Turns by time, each with its place.
#[derive(Debug, Clone, Default)]
pub(crate) struct Turns(BTreeMap<When, u32>);

impl Turns {
    /// Adds a turn; whose context changes by it, itself among them.
    pub(crate) fn insert(&mut self, when: When, place: u32) -> Vec<(u32, Near)> {
        self.0.insert(when, place);
        self.changed(&when)
    }

    /// Takes a turn out; whose context changes by it. Of what is no turn nobody's does.
    pub(crate) fn remove(&mut self, when: &When) -> Vec<(u32, Near)> {
        if self.0.remove(when).is_some() { self.changed(when) } else { Vec::new() }
    }

    fn changed(&self, when: &When) -> Vec<(u32, Near)> {
        let here = self.0.get_key_value(when);
        let around = self.before(when).chain(here).chain(self.after(when));
        around.map(|(when, place)| (*place, self.near(when))).collect()
    }

    fn near(&self, when: &When) -> Near {
        let (earliest, latest) = (when.0, when.0.plus(CONVERSATION_GAP));
        let mut near = Near::default();
        let before = self.before(when).filter(|((at, _), _)| at.plus(CONVERSATION_GAP) >= earliest);
        for (place, (_, found)) in near.before.iter_mut().zip(before) {
            *place = Place::new(found.saturating_add(1));
        }
        let after = self.after(when).filter(|((at, _), _)| *at <= latest);
        for (place, (_, found)) in near.after.iter_mut().zip(after) {
            *place = Place::new(found.saturating_add(1));
        }
        near
    }

    /// The two before, the nearer one first.
    fn before(&self, when: &When) -> impl Iterator<Item = (&When, &u32)> {
        self.0.range(..when).rev().take(2)
    }

    /// The two after.
    fn after(&self, when: &When) -> impl Iterator<Item = (&When, &u32)> {
        self.0.range((Bound::Excluded(when), Bound::Unbounded)).take(2)
    }
}

//! How two devices of one owner stay in step (docs/federation-devices.md): which of two things that were said of an item is in force.
//!
//! Each item has three parts: its words (all but its labels), its labels, and whether it was taken back. What was said last of a part is in
//! force; where two devices said something at the same time, that of the greater DID is. So the outcome is a maximum, and in whatever order
//! devices hear of each other they come to the same. What is erased is erased, whatever was or will be said.

use oap_identity::time::MAX_SKEW;
use oap_identity::{Did, ItemId, Timestamp};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::time::Duration;

/// Most devices whose last words of an item are remembered.
pub const MAX_SEEN: usize = 16;
/// How much later than what it replaces something is at least said to be.
const TICK: Duration = Duration::from_millis(1);

/// When a part of an item was said, and on which device.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Stamp {
    /// When.
    pub at: Timestamp,
    /// The DID of the gateway on which the owner said it.
    pub device: Did,
}

/// When each part of an item was said.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Stamps {
    /// All that it says but its labels.
    pub words: Stamp,
    /// Its labels.
    pub labels: Stamp,
    /// Whether it was taken back.
    pub standing: Stamp,
}

/// A part of an item.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs, reason = "as in `Stamps`")]
pub enum Part {
    Words,
    Labels,
    Standing,
}

/// What a device says of an item that is there.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ItemState {
    /// When each part was said.
    pub stamps: Stamps,
    /// Whether it was taken back; then nothing of what it says is shown.
    pub retracted: bool,
    /// The number of the last link of its chain there.
    pub last_link: u32,
}

/// What a device says of an item.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StepEntry {
    /// Which item.
    pub item_id: ItemId,
    /// How it stands; absent where it was erased.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stands: Option<ItemState>,
}

impl StepEntry {
    /// Whether something of it is from later than now: then nobody's clock is right but that one's, or somebody lies.
    #[must_use]
    pub fn is_early(&self, now: Timestamp) -> bool {
        self.stands.as_ref().is_some_and(|stands| {
            let Stamps { words, labels, standing } = &stands.stamps;
            [words, labels, standing].iter().any(|stamp| stamp.at > now.plus(MAX_SKEW))
        })
    }
}

/// What is known of an item here.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LocalState {
    /// When each part that is in force was said.
    pub stamps: Stamps,
    /// The last words of each device that are in the chain here, in force or not; [`MAX_SEEN`] devices at most. The beginning of 1970 for one
    /// that has the item, and none of whose words are here.
    pub seen: BTreeMap<Did, Timestamp>,
}

/// What becomes of another device's words.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WordsOutcome {
    /// They are in the chain here, or are not shown.
    Leave,
    /// They are new here, and in force from now on.
    Win,
    /// They are new here, and what is in force was said later: both are kept in the chain, and what is in force stays.
    Lose,
}

/// What is taken over of what a device says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MergePlan {
    /// Its words.
    pub words: WordsOutcome,
    /// Whether its labels are in force from now on.
    pub labels: bool,
    /// Whether it is taken back, or put back, from now on as it is there.
    pub standing: bool,
}

impl MergePlan {
    /// Whether what the item says there is needed.
    #[must_use]
    pub fn needs_content(self) -> bool {
        self.words != WordsOutcome::Leave || self.labels
    }

    /// Whether nothing is taken over.
    #[must_use]
    pub fn is_nothing(self) -> bool {
        !self.needs_content() && !self.standing
    }
}

impl LocalState {
    /// What is known of an item whose parts were said so.
    #[must_use]
    pub fn of(stamps: Stamps) -> Self {
        let seen = BTreeMap::from([(stamps.words.device.clone(), stamps.words.at)]);
        Self { stamps, seen }
    }

    /// Notes that the owner says a part anew on this device: later than what it replaces, whatever the clocks say.
    pub fn say(&mut self, part: Part, device: &Did, now: Timestamp) {
        let stamp = match part {
            Part::Words => &mut self.stamps.words,
            Part::Labels => &mut self.stamps.labels,
            Part::Standing => &mut self.stamps.standing,
        };
        *stamp = Stamp { at: now.max(stamp.at.plus(TICK)), device: device.clone() };
        if part == Part::Words {
            let words = self.stamps.words.clone();
            self.see(&words);
        }
    }

    /// What is to be taken over of what a device says. `retracted` says whether the item is taken back here: what is so gets no words
    /// before it is put back.
    #[must_use]
    pub fn judge(&self, retracted: bool, told: &ItemState) -> MergePlan {
        let own = &self.stamps;
        let standing = told.stamps.standing > own.standing;
        let ends_retracted = if standing { told.retracted } else { retracted };
        if told.retracted || ends_retracted {
            return MergePlan { words: WordsOutcome::Leave, labels: false, standing };
        }
        let words = &told.stamps.words;
        let is_known = self.seen.get(&words.device).is_some_and(|at| words.at <= *at);
        let words = if is_known {
            WordsOutcome::Leave
        } else if *words > own.words {
            WordsOutcome::Win
        } else {
            WordsOutcome::Lose
        };
        MergePlan { words, labels: told.stamps.labels > own.labels, standing }
    }

    /// Notes that the standing of an item was taken over.
    pub fn take_standing(&mut self, told: &ItemState) {
        self.stamps.standing = told.stamps.standing.clone();
    }

    /// Notes that words and labels were taken over, as far as `take` says.
    pub fn take_content(&mut self, told: &ItemState, take: MergePlan) {
        if take.words != WordsOutcome::Leave {
            self.see(&told.stamps.words);
        }
        if take.words == WordsOutcome::Win {
            self.stamps.words = told.stamps.words.clone();
        }
        if take.labels {
            self.stamps.labels = told.stamps.labels.clone();
        }
    }

    /// Notes that an item is on a device, whosever words of it are there.
    pub fn note_holder(&mut self, device: &Did) {
        let never = Timestamp::from_millis(0);
        self.see(&Stamp { at: never, device: device.clone() });
    }

    fn see(&mut self, words: &Stamp) {
        let at = self.seen.entry(words.device.clone()).or_insert(words.at);
        *at = words.at.max(*at);
        while self.seen.len() > MAX_SEEN {
            let oldest = self.seen.iter().min_by_key(|(device, at)| (**at, *device));
            let Some(oldest) = oldest.map(|(device, _)| device.clone()) else { return };
            self.seen.remove(&oldest);
        }
    }
}

#[cfg(test)]
mod tests;

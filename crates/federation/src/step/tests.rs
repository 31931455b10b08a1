//! The rule, and a model of devices that apply it: whatever they do apart, and in whatever order they hear of each other, they come to
//! the same.

use super::*;
use proptest::prelude::*;
use std::collections::BTreeSet;

fn did(device: usize) -> Did {
    format!("did:web:device-{device}.example").parse().unwrap()
}

fn at(seconds: i64) -> Timestamp {
    Timestamp::from_seconds(1_777_636_800 + seconds)
}

fn stamp(seconds: i64, device: usize) -> Stamp {
    Stamp { at: at(seconds), device: did(device) }
}

fn own(words: Stamp) -> LocalState {
    LocalState::of(Stamps { words: words.clone(), labels: words.clone(), standing: words })
}

fn stands(words: Stamp) -> ItemState {
    ItemState { stamps: own(words).stamps, retracted: false, last_link: 0 }
}

#[test]
fn the_last_word_is_in_force_and_both_are_kept() {
    let (earlier, later) = (own(stamp(10, 0)), own(stamp(20, 1)));
    assert_eq!(earlier.judge(false, &stands(stamp(20, 1))).words, WordsOutcome::Win);
    assert_eq!(later.judge(false, &stands(stamp(10, 0))).words, WordsOutcome::Lose);
    // Said at the same time: on either side it is the same that wins.
    let (one, two) = (own(stamp(10, 0)), own(stamp(10, 1)));
    assert_eq!(one.judge(false, &stands(stamp(10, 1))).words, WordsOutcome::Win);
    assert_eq!(two.judge(false, &stands(stamp(10, 0))).words, WordsOutcome::Lose);
    // What is in the chain is not taken in twice.
    let mut later = later;
    let told = stands(stamp(10, 0));
    later.take_content(&told, later.judge(false, &told));
    assert!(later.judge(false, &told).is_nothing());
    assert_eq!(later.stamps.words, stamp(20, 1));
}

/// A correction that follows another device's is later than it, though the clock here is behind.
#[test]
fn what_is_said_of_something_is_later_than_it() {
    let mut own = own(stamp(100, 1));
    own.say(Part::Words, &did(0), at(40));
    assert!(own.stamps.words > stamp(100, 1) && own.stamps.words.device == did(0));
    assert_eq!(own.judge(false, &stands(stamp(100, 1))).words, WordsOutcome::Leave);
}

#[test]
fn what_is_from_the_future_is_seen() {
    let told = |seconds: i64| StepEntry {
        item_id: ItemId::from_bytes([1; 16]),
        stands: Some(ItemState { retracted: false, ..stands(stamp(seconds, 1)) }),
    };
    let skew = i64::try_from(MAX_SKEW.as_secs()).unwrap();
    assert!(!told(skew).is_early(at(0)) && told(skew + 1).is_early(at(0)));
    // Each of the three parts alone.
    for part in [Part::Words, Part::Labels, Part::Standing] {
        let mut stands = stands(stamp(0, 1));
        let mut changed = own(stamp(0, 1));
        changed.say(part, &did(1), at(skew + 1));
        stands.stamps = changed.stamps;
        assert!(StepEntry { stands: Some(stands), ..told(0) }.is_early(at(0)), "{part:?}");
    }
    assert!(!StepEntry { stands: None, ..told(0) }.is_early(at(0)));
}

/// A device that has an item by way of another is known to have it, and that says nothing of its words.
#[test]
fn whoever_has_an_item_is_noted_without_words() {
    let mut own = own(stamp(10, 0));
    own.note_holder(&did(1));
    own.note_holder(&did(0));
    assert!(own.seen.contains_key(&did(1)));
    assert_eq!(own.stamps.words, stamp(10, 0));
    assert_eq!(own.judge(false, &stands(stamp(20, 1))).words, WordsOutcome::Win);
    assert_eq!(own.judge(false, &stands(stamp(5, 1))).words, WordsOutcome::Lose);
    assert_eq!(own.judge(false, &stands(stamp(10, 0))).words, WordsOutcome::Leave);
}

/// Words of very many devices take no more room than those of a few.
#[test]
fn what_is_remembered_is_bounded() {
    let mut own = own(stamp(0, 0));
    for device in 1..100 {
        let told = stands(stamp(i64::try_from(device).unwrap(), device));
        own.take_content(&told, own.judge(false, &told));
    }
    assert_eq!(own.seen.len(), MAX_SEEN);
    assert!(own.seen.contains_key(&did(99)) && !own.seen.contains_key(&did(0)));
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Item {
    own: LocalState,
    words: u32,
    labels: u32,
    retracted: bool,
    /// Every word that was ever in force here or lost here.
    chain: Vec<u32>,
}

/// A device, with its journal of what changed.
#[derive(Debug, Clone)]
struct Device {
    number: usize,
    clock: i64,
    items: BTreeMap<u8, Item>,
    gone: BTreeSet<u8>,
    journal: Vec<u8>,
    /// How far it has read the journals of the others.
    cursors: BTreeMap<usize, usize>,
}

#[derive(Debug, Clone)]
enum Act {
    Write(u8),
    Correct(u8),
    Relabel(u8),
    Retract(u8),
    Restore(u8),
    Erase(u8),
    /// The clock goes on, by so much; each device has its own.
    Wait(u8),
    /// Reads so many entries of another's journal.
    Pull {
        from: usize,
        entries: usize,
    },
}

const DEVICES: usize = 3;

fn act() -> impl Strategy<Value = (usize, Act)> {
    let item = 0..3_u8;
    let acts = prop_oneof![
        2 => item.clone().prop_map(Act::Write),
        4 => item.clone().prop_map(Act::Correct),
        2 => item.clone().prop_map(Act::Relabel),
        1 => item.clone().prop_map(Act::Retract),
        1 => item.clone().prop_map(Act::Restore),
        1 => item.prop_map(Act::Erase),
        2 => (0..4_u8).prop_map(Act::Wait),
        3 => (0..DEVICES, 1..4_usize).prop_map(|(from, entries)| Act::Pull { from, entries }),
    ];
    (0..DEVICES, acts)
}

impl Device {
    fn new(number: usize) -> Self {
        Self {
            number,
            clock: 0,
            items: BTreeMap::new(),
            gone: BTreeSet::new(),
            journal: Vec::new(),
            cursors: BTreeMap::new(),
        }
    }

    /// What the owner does here; `said` is a word that was never said.
    fn act(&mut self, act: &Act, said: u32) {
        let (now, device) = (at(self.clock), did(self.number));
        let changed = match act {
            Act::Write(id) => {
                // An item is made once, on one device.
                let is_here = usize::from(*id) % DEVICES == self.number;
                if !is_here || self.items.contains_key(id) || self.gone.contains(id) {
                    return;
                }
                let stamp = Stamp { at: now, device };
                let item =
                    Item { own: own(stamp), words: said, labels: 0, retracted: false, chain: vec![said] };
                self.items.insert(*id, item);
                *id
            }
            Act::Correct(id) | Act::Relabel(id) | Act::Retract(id) | Act::Restore(id) => {
                let Some(item) = self.items.get_mut(id) else { return };
                match act {
                    Act::Correct(_) if !item.retracted => {
                        item.own.say(Part::Words, &device, now);
                        item.words = said;
                        item.chain.push(said);
                    }
                    Act::Relabel(_) if !item.retracted => {
                        item.own.say(Part::Labels, &device, now);
                        item.labels = said;
                    }
                    Act::Retract(_) if !item.retracted => {
                        item.own.say(Part::Standing, &device, now);
                        item.retracted = true;
                    }
                    Act::Restore(_) if item.retracted => {
                        item.own.say(Part::Standing, &device, now);
                        item.retracted = false;
                    }
                    _ => return,
                }
                *id
            }
            Act::Erase(id) => {
                if self.items.remove(id).is_none() {
                    return;
                }
                self.gone.insert(*id);
                *id
            }
            Act::Wait(by) => {
                self.clock += i64::from(*by);
                return;
            }
            Act::Pull { .. } => return,
        };
        self.journal.push(changed);
    }

    /// Takes in some of what another's journal says.
    fn pull(&mut self, from: &Self, entries: usize) {
        let cursor = self.cursors.entry(from.number).or_default();
        let ids: Vec<u8> = from.journal.iter().skip(*cursor).take(entries).copied().collect();
        *cursor += ids.len();
        for id in ids {
            if self.take(id, from) {
                self.journal.push(id);
            }
        }
    }

    /// Takes in what another says of an item; whether something changed.
    fn take(&mut self, id: u8, from: &Self) -> bool {
        let Some(theirs) = from.items.get(&id) else {
            // What was erased before it was known here does not come later either.
            self.gone.insert(id);
            return self.items.remove(&id).is_some();
        };
        if self.gone.contains(&id) {
            return false;
        }
        let told = ItemState { stamps: theirs.own.stamps.clone(), retracted: theirs.retracted, last_link: 0 };
        let Some(item) = self.items.get_mut(&id) else {
            if theirs.retracted {
                return false;
            }
            let own = LocalState::of(told.stamps);
            let (words, labels) = (theirs.words, theirs.labels);
            self.items.insert(id, Item { own, words, labels, retracted: false, chain: vec![words] });
            return true;
        };
        let take = item.own.judge(item.retracted, &told);
        if take.standing {
            item.retracted = told.retracted;
            item.own.take_standing(&told);
        }
        match take.words {
            WordsOutcome::Win => {
                item.words = theirs.words;
                item.chain.push(theirs.words);
            }
            // The loser, and what was in force once more.
            WordsOutcome::Lose => item.chain.extend([theirs.words, item.words]),
            WordsOutcome::Leave => {}
        }
        if take.labels {
            item.labels = theirs.labels;
        }
        item.own.take_content(&told, take);
        !take.is_nothing()
    }

    /// What is in force.
    fn current(&self) -> BTreeMap<u8, (u32, u32)> {
        let current = self.items.iter().filter(|(_, item)| !item.retracted);
        current.map(|(id, item)| (*id, (item.words, item.labels))).collect()
    }
}

/// Everybody hears of everything, in an order that the seed says, until nobody learns anything more.
fn settle(devices: &mut [Device], seed: usize) {
    let pairs: Vec<(usize, usize)> = (0..DEVICES)
        .flat_map(|to| (0..DEVICES).map(move |from| (to, from)))
        .filter(|(to, from)| to != from)
        .collect();
    for round in 0..100 {
        let mut quiet = true;
        for place in 0..pairs.len() {
            let (to, from) = pairs[(place * 5 + seed + round) % pairs.len()];
            let other = devices[from].clone();
            let behind = devices[to].cursors.get(&from).copied().unwrap_or_default() < other.journal.len();
            quiet &= !behind;
            devices[to].pull(&other, usize::MAX);
        }
        if quiet {
            return;
        }
    }
    panic!("the devices tell each other things for ever");
}

proptest! {
    /// Random histories, with everybody apart for as long as it happens, and each order of hearing of each other.
    #[test]
    fn devices_come_to_the_same(acts in prop::collection::vec(act(), 0..60), seed in 0..6_usize) {
        let mut devices: Vec<Device> = (0..DEVICES).map(Device::new).collect();
        let mut last_words: BTreeMap<u8, Vec<(Stamp, u32)>> = BTreeMap::new();
        for (said, (on, act)) in acts.iter().enumerate() {
            let said = u32::try_from(said + 1).unwrap();
            if let Act::Pull { from, entries } = act {
                if from != on {
                    let other = devices[*from].clone();
                    devices[*on].pull(&other, *entries);
                }
                continue;
            }
            devices[*on].act(act, said);
            if let Act::Write(id) | Act::Correct(id) = act
                && let Some(item) = devices[*on].items.get(id).filter(|item| item.words == said)
            {
                last_words.entry(*id).or_default().push((item.own.stamps.words.clone(), said));
            }
        }
        // Two orders of settling, one outcome.
        let mut others = devices.clone();
        settle(&mut devices, seed);
        settle(&mut others, seed + 3);
        let gone: BTreeSet<u8> = devices.iter().flat_map(|device| device.gone.clone()).collect();
        for device in devices.iter().chain(&others) {
            prop_assert_eq!(device.current(), devices[0].current());
            prop_assert!(device.items.keys().all(|id| !gone.contains(id)), "what was erased is back");
            for (id, item) in &device.items {
                // What is in force is what was said last.
                let last = last_words[id].iter().max().unwrap();
                if !item.retracted {
                    prop_assert_eq!(item.words, last.1);
                }
            }
        }
        // Heard once more, nothing changes.
        let settled = devices.clone();
        settle(&mut devices, seed);
        for (before, after) in settled.iter().zip(&devices) {
            prop_assert_eq!(&before.items, &after.items);
        }
    }

    /// Two devices alone: the words in force are in both chains, and those that lost are kept beside them.
    #[test]
    fn two_that_were_apart_keep_both_words(first in 0..2_usize, waits in (0..5_u8, 0..5_u8)) {
        let mut devices: Vec<Device> = (0..2).map(Device::new).collect();
        devices[0].act(&Act::Write(0), 1);
        let other = devices[0].clone();
        devices[1].pull(&other, usize::MAX);
        devices[0].act(&Act::Wait(waits.0), 0);
        devices[1].act(&Act::Wait(waits.1), 0);
        devices[0].act(&Act::Correct(0), 2);
        devices[1].act(&Act::Correct(0), 3);
        for turn in 0..4 {
            let (to, from) = if (turn + first) % 2 == 0 { (0, 1) } else { (1, 0) };
            let other = devices[from].clone();
            devices[to].pull(&other, usize::MAX);
        }
        prop_assert_eq!(devices[0].current(), devices[1].current());
        let lost = if devices[0].current()[&0].0 == 2 { 3 } else { 2 };
        // Whoever was overruled has both. Whoever was not took the other's in before its own, where it heard of them while they were in force.
        let chains: Vec<&Vec<u32>> = devices.iter().map(|device| &device.items[&0].chain).collect();
        let winner = devices[0].current()[&0].0;
        prop_assert!(chains.iter().all(|chain| chain.contains(&winner)));
        prop_assert!(chains.iter().any(|chain| chain.contains(&lost) && chain.contains(&winner)));
        prop_assert_eq!(chains[0].last(), chains[1].last());
    }
}

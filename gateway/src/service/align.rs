//! Records without ids of their own: which of them is an edit of one that was imported before.
//!
//! The lines of a note are told apart by what they say, so that moving one changes nothing. A line that was edited says
//! something else: it is found by the place between its neighbours, or else by the words that it shares.

use oap_identity::ItemId;
use std::collections::{BTreeMap, BTreeSet};

/// Least part of the words that two texts share for one to be an edit of the other, as twice the shared ones by all.
pub const SHARED: f64 = 0.5;

/// A record of a group, as it comes in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Incoming {
    /// It is here, as this item.
    Known(ItemId),
    /// It is new, and has this number.
    New(usize),
    /// It cannot be taken.
    Other,
}

/// Pairs new records with the former items that they are edits of. Both are in order; of a former item stands whether it
/// may be corrected. Between the same neighbours as many new ones as are gone are edits, one by one; of the others those
/// that share [`SHARED`] of their words.
pub fn edits(
    former: &[(ItemId, bool)],
    incoming: &[Incoming],
    text_of_item: impl Fn(ItemId) -> String,
    text_of_record: impl Fn(usize) -> String,
) -> Vec<(usize, ItemId)> {
    let known: BTreeSet<ItemId> = incoming
        .iter()
        .filter_map(|one| if let Incoming::Known(item) = one { Some(*item) } else { None })
        .collect();
    let gone = gaps(former.iter().map(|(item, gone)| match known.contains(item) {
        true => (Some(*item), None),
        false => (None, gone.then_some(*item)),
    }));
    let new = gaps(incoming.iter().map(|one| match one {
        Incoming::Known(item) => (Some(*item), None),
        Incoming::New(number) => (None, Some(*number)),
        Incoming::Other => (None, None),
    }));
    let mut pairs = Vec::new();
    let mut numbers = Vec::new();
    for (gap, found) in &new {
        match gone.get(gap) {
            Some(lost) if lost.len() == found.len() => {
                pairs.extend(found.iter().copied().zip(lost.iter().copied()));
            }
            _ => numbers.extend(found),
        }
    }
    let paired: BTreeSet<ItemId> = pairs.iter().map(|(_, item)| *item).collect();
    let items: Vec<ItemId> = gone.values().flatten().copied().filter(|item| !paired.contains(item)).collect();
    let said: Vec<BTreeSet<String>> = items.iter().map(|item| words(&text_of_item(*item))).collect();
    let mut alike: Vec<(f64, usize, usize)> = Vec::new();
    for number in numbers {
        let says = words(&text_of_record(number));
        for (place, said) in said.iter().enumerate() {
            let shared =
                2.0 * says.intersection(said).count() as f64 / (says.len() + said.len()).max(1) as f64;
            if shared >= SHARED {
                alike.push((shared, number, place));
            }
        }
    }
    alike.sort_by(|a, b| b.0.total_cmp(&a.0).then_with(|| (a.1, a.2).cmp(&(b.1, b.2))));
    let (mut used, mut taken) = (BTreeSet::new(), BTreeSet::new());
    for (_, number, place) in alike {
        if !used.contains(&number) && taken.insert(place) {
            used.insert(number);
            pairs.extend(items.get(place).map(|item| (number, *item)));
        }
    }
    pairs
}

/// Between which known neighbours.
type Gap = (Option<ItemId>, Option<ItemId>);

/// What stands in each gap between known items.
fn gaps<T>(entries: impl Iterator<Item = (Option<ItemId>, Option<T>)>) -> BTreeMap<Gap, Vec<T>> {
    let mut gaps = BTreeMap::new();
    let (mut before, mut between) = (None, Vec::new());
    for (known, other) in entries {
        match known {
            Some(known) => {
                gaps.insert((before, Some(known)), std::mem::take(&mut between));
                before = Some(known);
            }
            None => between.extend(other),
        }
    }
    gaps.insert((before, None), between);
    gaps.retain(|_, between| !between.is_empty());
    gaps
}

fn words(text: &str) -> BTreeSet<String> {
    text.split_whitespace().map(str::to_lowercase).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn item(number: u8) -> ItemId {
        format!("mem_01HX2QFXR0Q4S8T9V3W7X2Y0Z{number}").parse().unwrap()
    }

    fn pairs(former: &[(u8, &str)], incoming: &[&str]) -> Vec<(usize, ItemId)> {
        let find =
            |text: &str| former.iter().find(|(_, said)| *said == text).map(|(number, _)| item(*number));
        let lines: Vec<Incoming> = incoming
            .iter()
            .enumerate()
            .map(|(number, text)| find(text).map_or(Incoming::New(number), Incoming::Known))
            .collect();
        let gone: Vec<(ItemId, bool)> = former.iter().map(|(number, _)| (item(*number), true)).collect();
        let said = |id: ItemId| former.iter().find(|(number, _)| item(*number) == id).unwrap().1.to_owned();
        edits(&gone, &lines, said, |number| incoming[number].to_owned())
    }

    #[test]
    fn an_edit_is_found_by_its_neighbours_or_by_its_words() {
        let former = [(1, "tea at four"), (2, "rye from Ana"), (3, "closed on Mondays")];
        assert_eq!(pairs(&former, &["tea at four", "rye from Ana", "closed on Mondays"]), []);
        assert_eq!(pairs(&former, &["closed on Mondays", "tea at four", "rye from Ana"]), [], "moved");
        assert_eq!(pairs(&former, &["tea at four", "spelt", "closed on Mondays"]), [(1, item(2))]);
        assert_eq!(pairs(&former, &["new", "tea at four", "rye from Ana", "closed on Mondays"]), []);
        let both = ["new", "tea at five", "rye from Ana", "closed on Mondays"];
        assert_eq!(pairs(&former, &both), [(1, item(1))], "one above, and an edit");
        assert_eq!(pairs(&former, &["tea at four", "closed on Mondays"]), [], "a line that is gone");
        assert_eq!(pairs(&[], &["tea"]), []);
    }
}

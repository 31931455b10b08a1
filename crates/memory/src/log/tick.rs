//! The tree below one leaf of a log: the receipts of one tick, among hashes that stand for nothing (protocol section 16.2).
//!
//! It has 2^64 places, and each receipt stands at the one that the receipt before it in its chain gives it. Where nothing stands there is a
//! hash of the tick's secret seed. So every path has 64 siblings, and none of them tells whether anything is below it.

use oap_identity::Hash;
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;

/// How long every path is, in hashes.
pub const DEPTH: usize = 64;

/// Where the receipt stands that follows the entry of this hash in its chain: two that follow the same one have one place in a tick.
#[must_use]
pub fn slot(previous: &Hash) -> u64 {
    let (first, _) = previous.as_bytes().split_first_chunk::<8>().unwrap_or((&[0; 8], &[]));
    u64::from_be_bytes(*first)
}

fn entry(receipt: &Hash) -> Hash {
    Hash::from_bytes(Sha256::new().chain_update([2]).chain_update(receipt.as_bytes()).finalize().into())
}

fn parent(left: &Hash, right: &Hash) -> Hash {
    let node = Sha256::new().chain_update([3]).chain_update(left.as_bytes()).chain_update(right.as_bytes());
    Hash::from_bytes(node.finalize().into())
}

/// A receipt's hash, at its place.
type Entry = (u64, Hash);

/// A subtree: how deep it is, and its first place.
pub type Subtree = (u32, u64);

/// The receipts of a tick, by their places.
pub struct Tick {
    seed: [u8; 32],
    entries: Vec<Entry>,
}

/// What is kept of a tick beside its seed and its receipts.
pub struct Grown {
    /// Its root: what the log has as a leaf.
    pub root: Hash,
    /// The subtrees with two receipts or more.
    pub inner: Vec<(Subtree, Hash)>,
}

/// What stands in a subtree.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Below {
    /// No receipt.
    Nothing,
    /// One, at this place.
    One(u64, Hash),
    /// More: the hash of the subtree.
    More(Hash),
}

impl Tick {
    /// The tree of these receipts. The seed is drawn anew for each tick and told to nobody.
    #[must_use]
    pub fn new(seed: [u8; 32], entries: BTreeMap<u64, Hash>) -> Self {
        Self { seed, entries: entries.into_iter().collect() }
    }

    /// Hashes the tree: up to [`DEPTH`] hashes for each receipt, twice.
    #[must_use]
    pub fn grow(&self) -> Grown {
        let mut inner = Vec::new();
        let root = self.node(0, 0, &self.entries, &mut inner);
        Grown { root, inner }
    }

    /// The subtree at a depth whose first place is `first`, with these receipts in it.
    fn node(&self, depth: usize, first: u64, entries: &[Entry], inner: &mut Vec<(Subtree, Hash)>) -> Hash {
        match entries {
            [] => nothing(&self.seed, depth, first),
            [(slot, receipt)] => alone(&self.seed, depth, *slot, receipt),
            _ => {
                // Two receipts have two places, so that this is above the last depth.
                let middle = first | (1 << (DEPTH - 1 - depth));
                let (left, right) = entries.split_at(entries.partition_point(|(slot, _)| *slot < middle));
                let left = self.node(depth + 1, first, left, inner);
                let node = parent(&left, &self.node(depth + 1, middle, right, inner));
                inner.push(((depth_of(depth), first), node));
                node
            }
        }
    }
}

/// The siblings of a place, the lowest first: of each subtree beside the way is asked what is in it. So it takes the same however many
/// receipts the tick has.
///
/// # Errors
/// Those of `below`.
pub fn path<E>(
    seed: &[u8; 32],
    slot: u64,
    mut below: impl FnMut(Subtree) -> Result<Below, E>,
) -> Result<Vec<Hash>, E> {
    let mut siblings = Vec::with_capacity(DEPTH);
    for height in 0..DEPTH {
        let (depth, first) = (DEPTH - height, beside(slot, height));
        siblings.push(match below((depth_of(depth), first))? {
            Below::Nothing => nothing(seed, depth, first),
            Below::One(slot, receipt) => alone(seed, depth, slot, &receipt),
            Below::More(hash) => hash,
        });
    }
    Ok(siblings)
}

/// The first place of the subtree beside the one of this height that has a place.
const fn beside(slot: u64, height: usize) -> u64 {
    ((slot >> height) ^ 1) << height
}

/// The last place of a subtree.
#[must_use]
pub fn last_of((depth, first): Subtree) -> u64 {
    // At depth 0 everything.
    first | u64::MAX.checked_shr(depth).unwrap_or(0)
}

fn depth_of(depth: usize) -> u32 {
    u32::try_from(depth).unwrap_or(u32::MAX)
}

/// What stands where nothing does: without the seed it looks as anything else does.
fn nothing(seed: &[u8; 32], depth: usize, first: u64) -> Hash {
    let depth = u8::try_from(depth).unwrap_or(u8::MAX);
    let hash = Sha256::new().chain_update([4]).chain_update(seed).chain_update([depth]);
    Hash::from_bytes(hash.chain_update(first.to_be_bytes()).finalize().into())
}

/// A subtree with one receipt.
fn alone(seed: &[u8; 32], depth: usize, slot: u64, receipt: &Hash) -> Hash {
    (0..DEPTH - depth).fold(entry(receipt), |node, height| {
        join(node, slot, height, &nothing(seed, DEPTH - height, beside(slot, height)))
    })
}

/// A node of a height over the way to a place, and its sibling.
fn join(node: Hash, slot: u64, height: usize, sibling: &Hash) -> Hash {
    if (slot >> height) & 1 == 0 { parent(&node, sibling) } else { parent(sibling, &node) }
}

/// The root to which a receipt at a place leads; `None` where the path has not [`DEPTH`] hashes.
#[must_use]
pub fn root_of(receipt: &Hash, slot: u64, path: &[Hash]) -> Option<Hash> {
    if path.len() != DEPTH {
        return None;
    }
    let levels = path.iter().enumerate();
    Some(levels.fold(entry(receipt), |node, (height, sibling)| join(node, slot, height, sibling)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;
    use std::convert::Infallible;

    fn receipts(count: u8) -> BTreeMap<u64, Hash> {
        (0..count).map(|number| (slot(&Hash::of(&[number])), Hash::of(&[number, number]))).collect()
    }

    /// The path as a store would answer it.
    fn way(tick: &Tick, slot: u64) -> Vec<Hash> {
        let inner: BTreeMap<Subtree, Hash> = tick.grow().inner.into_iter().collect();
        let below = |subtree: Subtree| {
            let within = subtree.1..=last_of(subtree);
            let mut there = tick.entries.iter().filter(|(slot, _)| within.contains(slot));
            Ok::<_, Infallible>(match (there.next(), there.next()) {
                (None, _) => Below::Nothing,
                (Some((slot, receipt)), None) => Below::One(*slot, *receipt),
                (Some(_), Some(_)) => Below::More(inner[&subtree]),
            })
        };
        path(&tick.seed, slot, below).unwrap()
    }

    #[test]
    fn a_receipt_is_below_its_tick_and_nowhere_else() {
        for count in [1, 2, 3, 50] {
            let (entries, tick) = (receipts(count), Tick::new([7; 32], receipts(count)));
            let root = tick.grow().root;
            for (slot, receipt) in &entries {
                let path = way(&tick, *slot);
                assert_eq!(root_of(receipt, *slot, &path), Some(root), "{count}");
                assert_ne!(root_of(&Hash::of(b"another"), *slot, &path), Some(root));
                assert_ne!(root_of(receipt, slot ^ 1, &path), Some(root));
                assert_eq!(root_of(receipt, *slot, &path[1..]), None);
            }
            let free = slot(&Hash::of(b"free"));
            assert_ne!(root_of(&Hash::of(b"free"), free, &way(&tick, free)), Some(root));
        }
    }

    /// Places beside each other, the first and the last: where paths meet only at the bottom.
    #[test]
    fn neighbours_are_below_their_tick() {
        let places = [0, 1, 2, 1 << 63, u64::MAX - 1, u64::MAX];
        let entries: BTreeMap<u64, Hash> =
            places.iter().map(|at| (*at, Hash::of(&at.to_be_bytes()))).collect();
        let tick = Tick::new([7; 32], entries.clone());
        let Grown { root, inner } = tick.grow();
        for (slot, receipt) in &entries {
            assert_eq!(root_of(receipt, *slot, &way(&tick, *slot)), Some(root), "{slot}");
        }
        assert!(inner.contains(&((0, 0), root)));
        assert!(inner.iter().all(|((depth, first), _)| {
            let within = *first..=last_of((*depth, *first));
            entries.keys().filter(|slot| within.contains(slot)).count() > 1
        }));
        assert_eq!(last_of((0, 0)), u64::MAX);
        assert_eq!(last_of((64, 5)), 5);
        assert_eq!(last_of((1, 1 << 63)), u64::MAX);
        assert_eq!(last_of((63, 4)), 5);
    }

    /// How many there are is in no path: each is as long, and has no hash that another seed, another place or another number of receipts
    /// would repeat.
    #[test]
    fn a_path_tells_nothing_of_others() {
        let (alone, seed) = (receipts(1), [7; 32]);
        let (own, receipt) = alone.first_key_value().unwrap();
        let mut seen = BTreeSet::new();
        for (seed, entries) in [(seed, receipts(1)), ([8; 32], receipts(1)), ([9; 32], receipts(200))] {
            let tick = Tick::new(seed, entries);
            let path = way(&tick, *own);
            assert_eq!(path.len(), DEPTH);
            let root = tick.grow().root;
            assert_eq!(root_of(receipt, *own, &path), Some(root));
            assert!(path.iter().all(|hash| seen.insert(*hash)), "a hash that comes again tells something");
            assert!(seen.insert(root));
        }
        // A tick in which nothing was done, too.
        let empty = |seed| Tick::new(seed, BTreeMap::new()).grow().root;
        assert_ne!(empty([1; 32]), empty([2; 32]));
    }

    /// Two histories of one chain cannot both be in one tick.
    #[test]
    fn what_follows_the_same_entry_has_the_same_place() {
        let before = Hash::of(b"before");
        let mut entries = BTreeMap::from([(slot(&before), Hash::of(b"one history"))]);
        entries.insert(slot(&before), Hash::of(b"another"));
        let tick = Tick::new([7; 32], entries);
        let (path, root) = (way(&tick, slot(&before)), tick.grow().root);
        assert_ne!(root_of(&Hash::of(b"one history"), slot(&before), &path), Some(root));
        assert_eq!(root_of(&Hash::of(b"another"), slot(&before), &path), Some(root));
    }

    /// The bytes, spelled out: a tick with one receipt at place 0.
    #[test]
    fn the_bytes_are_those_of_the_page() {
        let (seed, receipt) = ([5_u8; 32], Hash::of(b"receipt"));
        let sha = |parts: &[&[u8]]| Hash::of(&parts.concat());
        let mut node = sha(&[&[2], receipt.as_bytes()]);
        for height in 0..64_u32 {
            let (depth, first) = (u8::try_from(64 - height).unwrap(), 1_u64 << height);
            let sibling = sha(&[&[4], &seed, &[depth], &first.to_be_bytes()]);
            node = sha(&[&[3], node.as_bytes(), sibling.as_bytes()]);
        }
        assert_eq!(Tick::new(seed, BTreeMap::from([(0, receipt)])).grow().root, node);
    }
}

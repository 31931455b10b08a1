//! The Merkle tree of RFC 6962, section 2.1: grown leaf by leaf, with the checks of RFC 9162, sections 2.1.3.2 and 2.1.4.2.
//!
//! What is kept of a tree is the hash of each full subtree, by its [`Place`]. Nothing here reads them by itself: every function takes
//! the way to them, and asks for at most some hundred.

use oap_identity::Hash;
use sha2::{Digest, Sha256};

/// A full subtree: how high it is (0 for a leaf), and how many of that height stand before it.
pub type Place = (u32, u64);

/// Longest path of a tree: one of 2^63 leaves.
pub const MAX_PATH: usize = 63;

/// Why a proof does not hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ProofError {
    /// The leaf is beyond the tree, or the tree that came before is larger than the one that came after.
    #[error("the sizes of the trees do not go together")]
    Size,
    /// It has too many hashes, or too few.
    #[error("the proof has not as many hashes as these trees need")]
    Length,
    /// It leads to another root.
    #[error("the proof leads to another root")]
    Root,
}

/// The hash of a leaf.
#[must_use]
pub fn leaf(data: &[u8]) -> Hash {
    Hash::from_bytes(Sha256::new().chain_update([0]).chain_update(data).finalize().into())
}

/// The hash of a node with these two below it.
#[must_use]
pub fn parent(left: &Hash, right: &Hash) -> Hash {
    let node = Sha256::new().chain_update([1]).chain_update(left.as_bytes()).chain_update(right.as_bytes());
    Hash::from_bytes(node.finalize().into())
}

/// The root of the tree without leaves.
#[must_use]
pub fn empty() -> Hash {
    Hash::of(b"")
}

/// The full subtrees that a leaf completes, its own first.
///
/// # Errors
/// Those of `read`.
pub fn append<E>(
    size: u64,
    leaf: Hash,
    mut read: impl FnMut(Place) -> Result<Hash, E>,
) -> Result<Vec<(Place, Hash)>, E> {
    let (mut level, mut index, mut node) = (0, size, leaf);
    let mut made = vec![((level, index), node)];
    while index % 2 == 1 {
        node = parent(&read((level, index - 1))?, &node);
        (level, index) = (level + 1, index / 2);
        made.push(((level, index), node));
    }
    Ok(made)
}

/// The root of a tree of so many leaves.
///
/// # Errors
/// Those of `read`.
pub fn root<E>(size: u64, mut read: impl FnMut(Place) -> Result<Hash, E>) -> Result<Hash, E> {
    if size == 0 { Ok(empty()) } else { hash(0, size, &mut read) }
}

/// The audit path of a leaf (RFC 6962 section 2.1.1), the lowest first; empty for one that is beyond the tree.
///
/// # Errors
/// Those of `read`.
pub fn inclusion<E>(
    index: u64,
    size: u64,
    mut read: impl FnMut(Place) -> Result<Hash, E>,
) -> Result<Vec<Hash>, E> {
    let (mut start, mut end, mut path) = (0, size, Vec::new());
    while index < size && end - start > 1 {
        let middle = start + split(end - start);
        if index < middle {
            path.push(hash(middle, end, &mut read)?);
            end = middle;
        } else {
            path.push(hash(start, middle, &mut read)?);
            start = middle;
        }
    }
    path.reverse();
    Ok(path)
}

/// The consistency proof between two sizes (RFC 6962 section 2.1.2); empty where there is nothing to prove.
///
/// # Errors
/// Those of `read`.
pub fn consistency<E>(
    from: u64,
    to: u64,
    mut read: impl FnMut(Place) -> Result<Hash, E>,
) -> Result<Vec<Hash>, E> {
    let (mut start, mut end, mut proof) = (0, to, Vec::new());
    if from == 0 || from >= to {
        return Ok(proof);
    }
    // The subtree that holds the last leaf of the earlier tree, until it is wholly of that tree.
    while from < end {
        let middle = start + split(end - start);
        if from <= middle {
            proof.push(hash(middle, end, &mut read)?);
            end = middle;
        } else {
            proof.push(hash(start, middle, &mut read)?);
            start = middle;
        }
    }
    // Whoever checks knows that root, where it is the whole earlier tree.
    if start > 0 {
        proof.push(hash(start, end, &mut read)?);
    }
    proof.reverse();
    Ok(proof)
}

/// Checks that a leaf is in a tree.
///
/// # Errors
/// [`ProofError`].
pub fn check_inclusion(
    leaf: Hash,
    index: u64,
    size: u64,
    path: &[Hash],
    root: &Hash,
) -> Result<(), ProofError> {
    if index >= size {
        return Err(ProofError::Size);
    }
    let (mut at, mut last, mut node) = (index, size - 1, leaf);
    for sibling in path {
        if last == 0 {
            return Err(ProofError::Length);
        }
        if at % 2 == 1 || at == last {
            node = parent(sibling, &node);
            rise(&mut at, &mut last);
        } else {
            node = parent(&node, sibling);
        }
        (at, last) = (at / 2, last / 2);
    }
    match last {
        0 if node == *root => Ok(()),
        0 => Err(ProofError::Root),
        _ => Err(ProofError::Length),
    }
}

/// Checks that a tree goes on from another.
///
/// # Errors
/// [`ProofError`].
pub fn check_consistency(
    from: u64,
    from_root: &Hash,
    to: u64,
    to_root: &Hash,
    proof: &[Hash],
) -> Result<(), ProofError> {
    if from > to {
        return Err(ProofError::Size);
    }
    if from == 0 || from == to {
        let before = if from == 0 { &empty() } else { to_root };
        return match proof {
            [_, ..] => Err(ProofError::Length),
            [] if before == from_root => Ok(()),
            [] => Err(ProofError::Root),
        };
    }
    let (mut at, mut last) = (from - 1, to - 1);
    while at % 2 == 1 {
        (at, last) = (at / 2, last / 2);
    }
    let (first, rest) = if from.is_power_of_two() {
        (from_root, proof)
    } else {
        proof.split_first().ok_or(ProofError::Length)?
    };
    let (mut before, mut after) = (*first, *first);
    for node in rest {
        if last == 0 {
            return Err(ProofError::Length);
        }
        if at % 2 == 1 || at == last {
            before = parent(node, &before);
            after = parent(node, &after);
            rise(&mut at, &mut last);
        } else {
            after = parent(&after, node);
        }
        (at, last) = (at / 2, last / 2);
    }
    match last {
        0 if (before, after) == (*from_root, *to_root) => Ok(()),
        0 => Err(ProofError::Root),
        _ => Err(ProofError::Length),
    }
}

/// Leaves out the levels at which the right edge of a tree has no sibling.
fn rise(at: &mut u64, last: &mut u64) {
    while at.is_multiple_of(2) && *at != 0 {
        (*at, *last) = (*at / 2, *last / 2);
    }
}

/// How many leaves of more than one stand on the left: the largest power of two that is less.
const fn split(leaves: u64) -> u64 {
    1 << (leaves - 1).ilog2()
}

/// The hash of the leaves from `start` to `end`, at least one, where they stand together below one node of a tree.
fn hash<E>(start: u64, end: u64, read: &mut impl FnMut(Place) -> Result<Hash, E>) -> Result<Hash, E> {
    let (mut start, mut full) = (start, Vec::new());
    while !(end - start).is_power_of_two() {
        let left = split(end - start);
        full.push(read((left.ilog2(), start / left))?);
        start += left;
    }
    let last = end - start;
    let mut node = read((last.ilog2(), start / last))?;
    while let Some(left) = full.pop() {
        node = parent(&left, &node);
    }
    Ok(node)
}

#[cfg(test)]
mod tests;

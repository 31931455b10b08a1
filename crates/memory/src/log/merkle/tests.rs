//! The values of RFC 6962's own test tree (certificate-transparency, `merkle_tree_test.cc`), and a slow tree that is the text of section 2.1.

use super::*;
use std::collections::BTreeMap;
use std::convert::Infallible;

/// The tree as section 2.1 defines it.
fn slow(leaves: &[Vec<u8>]) -> Hash {
    match leaves {
        [] => Hash::of(b""),
        [one] => leaf(one),
        more => {
            let (left, right) = more.split_at(more.len().next_power_of_two() / 2);
            parent(&slow(left), &slow(right))
        }
    }
}

/// `PATH(m, D[n])`.
fn slow_path(index: usize, leaves: &[Vec<u8>]) -> Vec<Hash> {
    if leaves.len() == 1 {
        return Vec::new();
    }
    let (left, right) = leaves.split_at(leaves.len().next_power_of_two() / 2);
    let (mut path, other) = if index < left.len() {
        (slow_path(index, left), slow(right))
    } else {
        (slow_path(index - left.len(), right), slow(left))
    };
    path.push(other);
    path
}

/// `SUBPROOF(m, D[n], b)`.
fn slow_proof(from: usize, leaves: &[Vec<u8>], known: bool) -> Vec<Hash> {
    if from == leaves.len() {
        return if known { Vec::new() } else { vec![slow(leaves)] };
    }
    let (left, right) = leaves.split_at(leaves.len().next_power_of_two() / 2);
    let (mut proof, other) = if from <= left.len() {
        (slow_proof(from, left, known), slow(right))
    } else {
        (slow_proof(from - left.len(), right, false), slow(left))
    };
    proof.push(other);
    proof
}

#[derive(Default)]
struct Kept(BTreeMap<Place, Hash>);

impl Kept {
    fn read(&self) -> impl FnMut(Place) -> Result<Hash, Infallible> + '_ {
        move |place| Ok(self.0[&place])
    }

    fn of(leaves: &[Vec<u8>]) -> Self {
        let mut kept = Self::default();
        for (size, data) in leaves.iter().enumerate() {
            let made = append(size as u64, leaf(data), kept.read()).unwrap();
            kept.0.extend(made);
        }
        kept
    }
}

fn numbered(count: usize) -> Vec<Vec<u8>> {
    (0..count).map(|number| number.to_be_bytes().to_vec()).collect()
}

fn hex(text: &str) -> Hash {
    format!("sha256:{text}").parse().unwrap()
}

fn published() -> Vec<Vec<u8>> {
    vec![
        vec![],
        vec![0],
        vec![0x10],
        vec![0x20, 0x21],
        vec![0x30, 0x31],
        (0x40..0x44).collect(),
        (0x50..0x58).collect(),
        (0x60..0x70).collect(),
    ]
}

#[test]
fn the_published_roots() {
    let kept = Kept::of(&published());
    for (size, expected) in [
        (0, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"),
        (1, "6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d"),
        (2, "fac54203e7cc696cf0dfcb42c92a1d9dbaf70ad9e621f4bd8d98662f00e3c125"),
        (3, "aeb6bcfe274b70a14fb067a5e5578264db0fa9b51af5e0ba159158f329e06e77"),
        (4, "d37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7"),
        (5, "4e3bbb1f7b478dcfe71fb631631519a3bca12c9aefca1612bfce4c13a86264d4"),
        (6, "76e67dadbcdf1e10e1b74ddc608abd2f98dfb16fbce75277b5232a127f2087ef"),
        (7, "ddb89be403809e325750d3d263cd78929c2942b7942a34b77e122c9594a74c8c"),
        (8, "5dc9da79a70659a9ad559cb701ded9a2ab9d823aad2f4960cfe370eff4604328"),
    ] {
        assert_eq!(root(size, kept.read()), Ok(hex(expected)), "{size}");
    }
}

#[test]
fn the_published_proofs() {
    let kept = Kept::of(&published());
    let path = inclusion(5, 8, kept.read()).unwrap();
    assert_eq!(
        path,
        [
            hex("bc1a0643b12e4d2d7c77918f44e0f4f79a838b6cf9ec5b5c283e1f4d88599e6b"),
            hex("ca854ea128ed050b41b35ffc1b87b8eb2bde461e9e3b5596ece6b9d5975a0ae0"),
            hex("d37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7"),
        ]
    );
    let proof = consistency(6, 8, kept.read()).unwrap();
    assert_eq!(
        proof,
        [
            hex("0ebc5d3437fbe2db158b9f126a1d118e308181031d0a949f8dededebc558ef6a"),
            hex("ca854ea128ed050b41b35ffc1b87b8eb2bde461e9e3b5596ece6b9d5975a0ae0"),
            hex("d37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7"),
        ]
    );
    let proof = consistency(2, 5, kept.read()).unwrap();
    assert_eq!(
        proof,
        [
            hex("5f083f0a1a33ca076a95279832580db3e0ef4584bdff1f54c8a360f50de3031e"),
            hex("bc1a0643b12e4d2d7c77918f44e0f4f79a838b6cf9ec5b5c283e1f4d88599e6b"),
        ]
    );
}

/// Every leaf and every pair of sizes of the trees up to 33 leaves: as the text says, and nothing else is taken for it.
#[test]
fn every_proof_of_small_trees_is_that_of_the_text() {
    const MOST: usize = 33;
    let leaves = numbered(MOST);
    let kept = Kept::of(&leaves);
    let other = Hash::of(b"another");
    for size in 1..=MOST {
        let (n, tree) = (size as u64, slow(&leaves[..size]));
        assert_eq!(root(n, kept.read()), Ok(tree));
        for index in 0..size {
            let (i, data) = (index as u64, leaf(&leaves[index]));
            let path = inclusion(i, n, kept.read()).unwrap();
            assert_eq!(path, slow_path(index, &leaves[..size]), "{index} of {size}");
            assert_eq!(check_inclusion(data, i, n, &path, &tree), Ok(()));
            assert_eq!(check_inclusion(other, i, n, &path, &tree), Err(ProofError::Root));
            assert_eq!(check_inclusion(data, i, n, &path, &other), Err(ProofError::Root));
            let long: Vec<Hash> = path.iter().copied().chain([other]).collect();
            assert_eq!(check_inclusion(data, i, n, &long, &tree), Err(ProofError::Length));
            if let [most @ .., _] = path.as_slice() {
                assert_eq!(check_inclusion(data, i, n, most, &tree), Err(ProofError::Length));
            }
            assert_eq!(check_inclusion(data, n, n, &path, &tree), Err(ProofError::Size));
        }
        for earlier in 1..=size {
            let (m, before) = (earlier as u64, slow(&leaves[..earlier]));
            let proof = consistency(m, n, kept.read()).unwrap();
            assert_eq!(proof, slow_proof(earlier, &leaves[..size], true), "{earlier} to {size}");
            assert_eq!(check_consistency(m, &before, n, &tree, &proof), Ok(()));
            assert!(check_consistency(m, &other, n, &tree, &proof).is_err(), "{earlier} to {size}");
            assert!(check_consistency(m, &before, n, &other, &proof).is_err(), "{earlier} to {size}");
            let long: Vec<Hash> = proof.iter().copied().chain([other]).collect();
            assert_eq!(check_consistency(m, &before, n, &tree, &long), Err(ProofError::Length));
            for spoiled in 0..proof.len() {
                let mut wrong = proof.clone();
                wrong[spoiled] = other;
                assert!(check_consistency(m, &before, n, &tree, &wrong).is_err(), "{earlier} to {size}");
            }
        }
    }
}

#[test]
fn nothing_comes_before_every_tree() {
    let tree = slow(&numbered(3));
    assert_eq!(check_consistency(0, &empty(), 3, &tree, &[]), Ok(()));
    assert_eq!(check_consistency(0, &tree, 3, &tree, &[]), Err(ProofError::Root));
    assert_eq!(check_consistency(0, &empty(), 3, &tree, &[tree]), Err(ProofError::Length));
    assert_eq!(check_consistency(3, &tree, 2, &tree, &[]), Err(ProofError::Size));
    assert_eq!(check_consistency(3, &tree, 5, &tree, &[]), Err(ProofError::Length));
}

/// Sizes that nobody's tree has: no number overflows, and no more is read than a path is long.
#[test]
fn the_largest_sizes_are_only_numbers() {
    let (tree, max) = (Hash::of(b"tree"), u64::MAX);
    let mut reads = 0;
    let mut read = |_: Place| {
        reads += 1;
        Ok::<_, Infallible>(tree)
    };
    let path = inclusion(max - 2, max - 1, &mut read).unwrap();
    assert!(path.len() <= 64);
    let proof = consistency(max - 2, max - 1, &mut read).unwrap();
    assert!(reads <= 64 * 64 * 2, "{reads}");
    assert!(check_inclusion(tree, max - 2, max - 1, &path, &tree).is_err());
    assert!(check_consistency(max - 2, &tree, max - 1, &tree, &proof).is_err());
    assert!(check_inclusion(tree, 0, max, &[tree; 3], &tree).is_err());
}

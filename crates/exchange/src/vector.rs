//! Embeddings of projected text, and how their ranking is joined with that of words (protocol section 6).

use oap_identity::ItemId;
use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::sync::Arc;

/// The constant of reciprocal rank fusion (Cormack, Clarke and Büttcher 2009).
const K: f32 = 60.0;
/// What nearness counts against words: a small model ranks conversations worse than words in their context do, and as an
/// equal partner makes the whole worse (`benches/retrieval`).
const NEARNESS: f32 = 0.25;
/// How many of the nearest items count in a fusion: beyond them nearness says nothing.
const NEAREST: usize = 100;

/// A vector of length one.
#[derive(Debug, Clone, PartialEq)]
pub struct Vector(Arc<[f32]>);

impl Vector {
    /// A vector of that direction; `None` where there is none, or a number that is none.
    #[must_use]
    pub fn new(mut values: Vec<f32>) -> Option<Self> {
        let length = values.iter().map(|v| v * v).sum::<f32>().sqrt();
        if !(length.is_finite() && length > 0.0) {
            return None;
        }
        values.iter_mut().for_each(|v| *v /= length);
        Some(Self(values.into()))
    }

    /// How many dimensions it has.
    #[must_use]
    pub fn dimensions(&self) -> usize {
        self.0.len()
    }

    /// The cosine of the angle between two vectors; 0 for different spaces.
    #[must_use]
    pub fn cosine(&self, other: &Self) -> f32 {
        if self.0.len() != other.0.len() {
            return 0.0;
        }
        self.0.iter().zip(&*other.0).map(|(a, b)| a * b).sum()
    }

    /// How much memory it takes, in bytes.
    pub(crate) fn bytes(&self) -> usize {
        size_of_val(&*self.0) + 32
    }

    /// As `vector_url` serves it: 32-bit floats, little-endian.
    #[must_use]
    pub(crate) fn to_bytes(&self) -> Vec<u8> {
        self.0.iter().flat_map(|v| v.to_le_bytes()).collect()
    }
}

/// Something that ranks: what it found, best first, with the number of each in the view.
type Ranked = Vec<(usize, ItemId)>;

/// Reciprocal rank fusion: for each item the weighted sum of `1 / (60 + rank)` over both rankings. `words` are the scores of
/// words, 0 where nothing matches; `nearness` the cosines. Ties break by item id.
#[must_use]
pub fn fuse(items: &[(usize, ItemId)], words: &[f32], nearness: &[f32]) -> BTreeMap<usize, f32> {
    let matching = items.iter().copied().filter(|(number, _)| words[*number] > 0.0).collect();
    let by_words = order(matching, words);
    let mut by_nearness = order(items.to_vec(), nearness);
    by_nearness.truncate(NEAREST);
    let mut fused = BTreeMap::new();
    for (weight, ranking) in [(1.0, by_words), (NEARNESS, by_nearness)] {
        for (rank, (number, _)) in ranking.into_iter().enumerate() {
            *fused.entry(number).or_default() += weight / (K + rank as f32 + 1.0);
        }
    }
    fused
}

fn order(mut items: Ranked, scores: &[f32]) -> Ranked {
    items.sort_by(|(a, one), (b, other)| match scores[*b].total_cmp(&scores[*a]) {
        Ordering::Equal => one.cmp(other),
        unequal => unequal,
    });
    items
}

#[cfg(test)]
mod tests {
    use super::*;
    use oap_identity::Timestamp;
    use oap_identity::random::Seeded;

    #[test]
    fn vectors_have_length_one() {
        let v = Vector::new(vec![3.0, 4.0]).unwrap();
        assert!((v.cosine(&v) - 1.0).abs() < 1e-6);
        assert_eq!(v.to_bytes().len(), 8);
        for none in [vec![], vec![0.0, 0.0], vec![f32::NAN, 1.0], vec![f32::INFINITY]] {
            assert_eq!(Vector::new(none), None);
        }
        assert_eq!(v.cosine(&Vector::new(vec![1.0]).unwrap()), 0.0);
    }

    #[test]
    fn what_both_rankings_find_comes_first() {
        let random = Seeded::new(1);
        let items: Vec<(usize, ItemId)> =
            (0..200).map(|n| (n, ItemId::new(Timestamp::from_millis(n as i64), &random))).collect();
        // The last item has most of the words and is the farthest, the first has fewer and is the nearest.
        let words: Vec<f32> =
            (0..200).map(|n| f32::from(u8::from(n == 0)) + 2.0 * f32::from(u8::from(n == 199))).collect();
        let nearness: Vec<f32> = (0..200).map(|n| 1.0 - n as f32 / 200.0).collect();
        let fused = fuse(&items, &words, &nearness);
        let mut best: Vec<_> = fused.iter().collect();
        best.sort_by(|a, b| b.1.total_cmp(a.1));
        assert_eq!((*best[0].0, *best[1].0), (0, 199));
        // What matches no word is found by nearness alone.
        assert!(fused.contains_key(&1) && !fused.contains_key(&150));
    }
}

//! Triples of numbered terms in three orders, so that what begins with any of their terms is found at once.

/// A triple of the numbers of its terms.
pub(crate) type Numbers = [u32; 3];

/// The orders: which place of a triple stands first, second and third.
const ORDERS: [[usize; 3]; 3] = [[0, 1, 2], [1, 2, 0], [2, 0, 1]];

/// A set of triples.
#[derive(Debug, Clone, Default)]
pub(crate) struct Triples {
    /// The same triples in each order, sorted.
    sorted: [Vec<Numbers>; 3],
}

impl Triples {
    /// The set of these triples.
    pub fn of(mut triples: Vec<Numbers>) -> Self {
        triples.sort_unstable();
        triples.dedup();
        let sorted = ORDERS.map(|order| {
            let mut turned: Vec<Numbers> = triples.iter().map(|triple| order.map(|at| triple[at])).collect();
            turned.sort_unstable();
            turned
        });
        Self { sorted }
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.sorted[0].len()
    }

    /// All of them, subject first.
    pub fn all(&self) -> &[Numbers] {
        &self.sorted[0]
    }

    /// Those that have these terms in these places.
    pub fn matching(&self, pattern: [Option<u32>; 3]) -> Matching<'_> {
        // The order in which what is asked for stands in front.
        let known = |order: &[usize; 3]| order.iter().take_while(|at| pattern[**at].is_some()).count();
        let best = (0..ORDERS.len()).max_by_key(|at| (known(&ORDERS[*at]), ORDERS.len() - at)).unwrap_or(0);
        let (order, all) = (ORDERS[best], &self.sorted[best]);
        let front: Vec<u32> = order.iter().map_while(|at| pattern[*at]).collect();
        let from = all.partition_point(|triple| triple[..front.len()] < front[..]);
        let to = all.partition_point(|triple| triple[..front.len()] <= front[..]);
        Matching { found: all[from..to].iter(), order }
    }
}

/// The triples that match, subject first.
pub(crate) struct Matching<'a> {
    found: std::slice::Iter<'a, Numbers>,
    order: [usize; 3],
}

impl Iterator for Matching<'_> {
    type Item = Numbers;

    fn next(&mut self) -> Option<Numbers> {
        let turned = self.found.next()?;
        let mut triple = [0; 3];
        for (at, number) in self.order.iter().zip(turned) {
            triple[*at] = *number;
        }
        Some(triple)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..Default::default() })]

        #[test]
        fn a_pattern_finds_what_a_search_of_all_finds(
            triples in prop::collection::vec(prop::array::uniform3(0u32..5), 0..60),
            pattern in prop::array::uniform3(prop::option::of(0u32..6)),
        ) {
            let fits = |triple: &Numbers| (0..3).all(|at| pattern[at].is_none_or(|term| term == triple[at]));
            let mut expected: Vec<Numbers> = triples.iter().copied().filter(fits).collect();
            expected.sort_unstable();
            expected.dedup();
            let set = Triples::of(triples);
            let mut found: Vec<Numbers> = set.matching(pattern).collect();
            found.sort_unstable();
            prop_assert_eq!(found, expected);
        }
    }
}

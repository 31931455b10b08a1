//! What one query may take.

use std::sync::Arc;

/// Longest query, in bytes.
pub const MAX_QUERY: usize = 16 * 1024;
/// Brackets of a query within each other.
pub const MAX_NESTING: usize = 12;
/// What makes a query deep without brackets: triples, operators, steps of paths, groups, filters, names that are given.
pub const MAX_JOINTS: usize = 400;
/// Variables of a query, its blank nodes and the steps of its paths among them.
pub const MAX_VARIABLES: usize = 64;
/// Triple patterns, paths and lists of values of a query: the time in which the evaluator plans goes with the fourth power of what is joined,
/// and nothing breaks it off.
pub const MAX_PATTERNS: usize = 50;
/// Longest pattern of REGEX and REPLACE, in bytes.
pub const MAX_PATTERN: usize = 256;
/// What such a pattern may take once it is compiled, in bytes.
pub const MAX_COMPILED: usize = 128 * 1024;
/// Graphs that a request may choose.
pub const MAX_GRAPHS: usize = 32;
/// Records that a graph is made of.
pub const MAX_RECORDS: usize = 200_000;
/// Triples of a graph, those of its named graphs among them.
pub const MAX_TRIPLES: usize = 8_000_000;
/// Solutions of a SELECT, and triples of a CONSTRUCT or DESCRIBE.
pub const MAX_ROWS: usize = 10_000;
/// An answer, in bytes.
pub const MAX_ANSWER: usize = 4 * 1024 * 1024;
/// Steps of one query: a term that is copied is one, and so are 16 bytes of text.
pub const MAX_STEPS: u64 = 50_000_000;
/// What the solutions that are held at once may take, in bytes.
pub const MAX_HELD: usize = 256 * 1024 * 1024;
/// One text that a query makes, in bytes.
pub const MAX_VALUE: usize = 1024 * 1024;
/// All texts that a query makes, in bytes.
pub const MAX_VALUES: usize = 16 * 1024 * 1024;
/// Steps between two looks at the clock.
pub(crate) const BETWEEN_LOOKS: u64 = 4096;

/// What one query may take, of what depends on who asks.
#[derive(Clone)]
pub struct Bounds {
    /// Whether the time of the query is over. It is asked every few thousand steps; the caller has the clock.
    pub over: Arc<dyn Fn() -> bool + Send + Sync>,
    /// Solutions or triples, [`MAX_ROWS`] at most.
    pub rows: usize,
    /// Bytes of the answer, [`MAX_ANSWER`] at most.
    pub answer: usize,
    /// Steps, [`MAX_STEPS`] at most.
    pub steps: u64,
    /// Bytes of solutions held at once, [`MAX_HELD`] at most.
    pub held: usize,
}

impl Bounds {
    /// The bounds of this room, and the end of the query's time.
    pub fn until(over: impl Fn() -> bool + Send + Sync + 'static) -> Self {
        Self { over: Arc::new(over), rows: MAX_ROWS, answer: MAX_ANSWER, steps: MAX_STEPS, held: MAX_HELD }
    }

    /// The same, and none above those of this room.
    pub(crate) fn checked(&self) -> Self {
        Self {
            over: Arc::clone(&self.over),
            rows: self.rows.min(MAX_ROWS),
            answer: self.answer.min(MAX_ANSWER),
            steps: self.steps.min(MAX_STEPS),
            held: self.held.min(MAX_HELD),
        }
    }
}

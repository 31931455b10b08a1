//! The bounds of this room, as rows that `docs/limits.md` is generated from.

use crate::bounds;
pub use oap_identity::limits::Limit;

const fn row(name: &'static str, value: u64, unit: &'static str, applies_to: &'static str) -> Limit {
    Limit { name, value, unit, applies_to }
}

/// Each row has the constant that is enforced.
pub const LIMITS: &[Limit] = &[
    row("bounds::MAX_QUERY", bounds::MAX_QUERY as u64, "bytes", "a SPARQL query, before it is parsed"),
    row("bounds::MAX_NESTING", bounds::MAX_NESTING as u64, "levels", "brackets of a query within each other"),
    row(
        "bounds::MAX_JOINTS",
        bounds::MAX_JOINTS as u64,
        "joints",
        "triples, operators, steps and groups of a query",
    ),
    row(
        "bounds::MAX_VARIABLES",
        bounds::MAX_VARIABLES as u64,
        "variables",
        "a query, blank nodes among them",
    ),
    row(
        "bounds::MAX_PATTERNS",
        bounds::MAX_PATTERNS as u64,
        "patterns",
        "triple patterns, paths and lists of values of a query",
    ),
    row("bounds::MAX_PATTERN", bounds::MAX_PATTERN as u64, "bytes", "a pattern of REGEX or REPLACE"),
    row("bounds::MAX_COMPILED", bounds::MAX_COMPILED as u64, "bytes", "such a pattern, compiled"),
    row("bounds::MAX_GRAPHS", bounds::MAX_GRAPHS as u64, "graphs", "the dataset that a request chooses"),
    row("bounds::MAX_RECORDS", bounds::MAX_RECORDS as u64, "records", "a graph"),
    row("bounds::MAX_TRIPLES", bounds::MAX_TRIPLES as u64, "triples", "a graph, with its named graphs"),
    row("bounds::MAX_ROWS", bounds::MAX_ROWS as u64, "rows", "solutions or triples of an answer"),
    row("bounds::MAX_ANSWER", bounds::MAX_ANSWER as u64, "bytes", "an answer"),
    row(
        "bounds::MAX_STEPS",
        bounds::MAX_STEPS,
        "steps",
        "terms that a query copies, and 16 bytes of text each",
    ),
    row("bounds::MAX_HELD", bounds::MAX_HELD as u64, "bytes", "solutions that a query holds at once"),
    row("bounds::MAX_VALUE", bounds::MAX_VALUE as u64, "bytes", "a text that a query makes"),
    row("bounds::MAX_VALUES", bounds::MAX_VALUES as u64, "bytes", "all texts that a query makes"),
];

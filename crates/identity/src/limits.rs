//! Bounds on foreign data, as rows that `docs/limits.md` is generated from.
//!
//! Every room has one table. A row refers to the constant that the code enforces, so that the page cannot say
//! something else.

use crate::{did, json, outgoing, resolve, signed};

/// One bound.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limit {
    /// The constant's path within its room, such as `json::MAX_DEPTH`. Unique in its table.
    pub name: &'static str,
    /// Its value, inclusive: so much is accepted, one more is refused.
    pub value: u64,
    /// What is counted: `bytes`, `characters`, `levels`, `members`.
    pub unit: &'static str,
    /// What it bounds, and when it is checked.
    pub applies_to: &'static str,
}

/// The bounds of this room.
pub const LIMITS: &[Limit] = &[
    Limit {
        name: "json::MAX_DEPTH",
        value: json::MAX_DEPTH as u64,
        unit: "levels",
        applies_to: "arrays and objects within each other, in every JSON text",
    },
    Limit {
        name: "json::FREE_NODES",
        value: json::FREE_NODES as u64,
        unit: "values",
        applies_to: "members and elements of a JSON text of any length",
    },
    Limit {
        name: "json::BYTES_PER_NODE",
        value: json::BYTES_PER_NODE as u64,
        unit: "bytes a value",
        applies_to: "a JSON text with more values than json::FREE_NODES",
    },
    Limit { name: "did::MAX_DID", value: did::MAX_DID as u64, unit: "bytes", applies_to: "a DID" },
    Limit {
        name: "signed::MAX_JWT",
        value: signed::MAX_JWT as u64,
        unit: "bytes",
        applies_to: "a JWT, before it is decoded",
    },
    Limit {
        name: "resolve::web::MAX_DOCUMENT",
        value: resolve::web::MAX_DOCUMENT as u64,
        unit: "bytes",
        applies_to: "a DID document from the network",
    },
    Limit {
        name: "outgoing::CONNECT",
        value: outgoing::CONNECT.as_secs(),
        unit: "seconds",
        applies_to: "our clients: connecting",
    },
    Limit {
        name: "outgoing::SILENCE",
        value: outgoing::SILENCE.as_secs(),
        unit: "seconds",
        applies_to: "our clients: no byte of an answer",
    },
];

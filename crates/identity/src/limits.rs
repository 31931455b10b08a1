//! Bounds on foreign data, as rows that `docs/limits.md` is generated from.
//!
//! Every room has one table. A row refers to the constant that the code enforces, so that the page cannot say
//! something else.

use crate::{did, http_signature, json, outgoing, resolve, signed, webvh};

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
        name: "http_signature::MAX_HEADER",
        value: http_signature::MAX_HEADER as u64,
        unit: "bytes",
        applies_to: "each of the headers by which an HTTP message is signed",
    },
    Limit {
        name: "http_signature::MAX_LIFE",
        value: http_signature::MAX_LIFE.as_secs(),
        unit: "seconds",
        applies_to: "the signature of an HTTP message, from created to expires",
    },
    Limit {
        name: "resolve::web::MAX_DOCUMENT",
        value: resolve::web::MAX_DOCUMENT as u64,
        unit: "bytes",
        applies_to: "a DID document from the network",
    },
    Limit {
        name: "webvh::MAX_LOG",
        value: webvh::MAX_LOG as u64,
        unit: "bytes",
        applies_to: "the log of a did:webvh",
    },
    Limit {
        name: "webvh::MAX_ENTRIES",
        value: webvh::MAX_ENTRIES as u64,
        unit: "entries",
        applies_to: "such a log",
    },
    Limit {
        name: "webvh::MAX_PROOFS",
        value: webvh::MAX_PROOFS as u64,
        unit: "proofs",
        applies_to: "each entry of a log",
    },
    Limit {
        name: "webvh::MAX_UPDATE_KEYS",
        value: webvh::MAX_UPDATE_KEYS as u64,
        unit: "keys",
        applies_to: "that may sign entries of a log at a time, and hashes of the next ones",
    },
    Limit {
        name: "webvh::MAX_WITNESSES",
        value: webvh::MAX_WITNESSES as u64,
        unit: "witnesses",
        applies_to: "of a did:webvh at a time",
    },
    Limit {
        name: "webvh::MAX_WITNESS_FILE",
        value: webvh::MAX_WITNESS_FILE as u64,
        unit: "bytes",
        applies_to: "the list of what witnesses signed",
    },
    Limit {
        name: "webvh::MAX_WITNESS_PROOFS",
        value: webvh::MAX_WITNESS_PROOFS as u64,
        unit: "proofs",
        applies_to: "such a list; one with more is refused",
    },
    Limit {
        name: "resolve::webvh::MAX_TIPS",
        value: resolve::webvh::MAX_TIPS.get() as u64,
        unit: "DIDs",
        applies_to: "those of did:webvh whose last version is remembered; the one asked for longest ago goes",
    },
    Limit {
        name: "outgoing::MAX_ETAG",
        value: outgoing::MAX_ETAG as u64,
        unit: "bytes",
        applies_to: "an entity tag that is remembered; of a longer one the document is fetched whole",
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

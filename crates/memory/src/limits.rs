//! The bounds of this room, as rows that `docs/limits.md` is generated from.

use crate::log::{checkpoint, merkle, note, submission, tick};
use crate::{answer, bundle, chain, detect, filter, item, sd_jwt, size, text};
pub use oap_identity::limits::Limit;

const fn row(name: &'static str, value: usize, unit: &'static str, applies_to: &'static str) -> Limit {
    Limit { name, value: value as u64, unit, applies_to }
}

/// Each row has the constant that is enforced.
pub const LIMITS: &[Limit] = &[
    row("note::MAX_NOTE", note::MAX_NOTE, "bytes", "a signed note"),
    row("note::MAX_NOTE_SIGNATURES", note::MAX_NOTE_SIGNATURES, "signatures", "a signed note"),
    row("submission::MAX_SUBMISSION", submission::MAX_SUBMISSION, "bytes", "what a witness is sent"),
    row("merkle::MAX_PATH", merkle::MAX_PATH, "hashes", "the consistency proof that a witness is sent"),
    row(
        "checkpoint::MAX_AGE",
        checkpoint::MAX_AGE.as_secs() as usize,
        "seconds",
        "the signature of a witness that counts",
    ),
    row(
        "checkpoint::MAX_DELAY",
        checkpoint::MAX_DELAY.as_secs() as usize,
        "seconds",
        "how long a receipt may be missing in a log that is witnessed",
    ),
    row("tick::DEPTH", tick::DEPTH, "hashes", "the path of a receipt within a tick, always as many"),
    row("item::MAX_TEXT", item::MAX_TEXT, "bytes", "content.text of an item"),
    row("item::MAX_STRUCTURED", item::MAX_STRUCTURED, "bytes", "content.structured of an item"),
    row("item::MAX_EXTENSIONS", item::MAX_EXTENSIONS, "bytes", "extensions of an item"),
    row(
        "item::MAX_PROVENANCE",
        item::MAX_PROVENANCE,
        "bytes",
        "provenance of an item, as its owner writes it",
    ),
    row("item::MAX_EMBEDDING", item::MAX_EMBEDDING, "bytes", "embedding of an item"),
    row("item::MAX_LABELS", item::MAX_LABELS, "labels", "an item"),
    row("item::MAX_DERIVED", item::MAX_DERIVED, "item ids", "derived_from of an item"),
    row("item::MAX_SHORT", item::MAX_SHORT, "characters", "a label or a subject of an item"),
    row("item::MAX_TTL_DAYS", item::MAX_TTL_DAYS as usize, "days", "ttl_days of an item"),
    row("size::MAX_DEPTH", size::MAX_DEPTH, "levels", "arrays and objects within each other in an item"),
    row("size::MAX_PARTS", size::MAX_PARTS, "members and elements", "an item without its text"),
    row("size::PARTS_FREE", size::PARTS_FREE, "bytes", "what the parts of an item take in its commitment"),
    row(
        "size::PARTS_RATIO",
        size::PARTS_RATIO,
        "bytes for each byte",
        "what they take beyond size::PARTS_FREE",
    ),
    row("size::MAX_PARTS_BYTES", size::MAX_PARTS_BYTES, "bytes", "what they take at most"),
    row(
        "size::COMMITTED_FREE",
        size::COMMITTED_FREE,
        "bytes",
        "the SD-JWT of an item; follows from the others",
    ),
    row(
        "size::COMMITTED_RATIO",
        size::COMMITTED_RATIO,
        "bytes for each byte",
        "the SD-JWT beyond size::COMMITTED_FREE",
    ),
    row("detect::FREE_SPANS", detect::FREE_SPANS, "spans", "a text of any length; more are joined"),
    row(
        "detect::BYTES_PER_SPAN",
        detect::BYTES_PER_SPAN,
        "bytes for each span",
        "a text with more than detect::FREE_SPANS",
    ),
    row(
        "detect::MAX_NUMBERS",
        detect::MAX_NUMBERS,
        "numbers",
        "telephone numbers looked up in a text; the rest count as such",
    ),
    row(
        "sd_jwt::MAX_DEPTH",
        sd_jwt::MAX_DEPTH,
        "levels",
        "parts within each other in an SD-JWT that is read",
    ),
    row("sd_jwt::MAX_DISCLOSURES", sd_jwt::MAX_DISCLOSURES, "disclosures", "an SD-JWT, made or read"),
    row(
        "text::MAX_WORD",
        text::MAX_WORD,
        "characters",
        "a word that is matched; longer ones by their beginning",
    ),
    row("answer::MAX_RESULTS", answer::MAX_RESULTS as usize, "items", "an answer"),
    row("filter::MAX_LIST", filter::MAX_LIST, "entries", "a list in a filter"),
    row("chain::MAX_LINKS", chain::MAX_LINKS, "links", "the chain of an item, as it is read"),
    row(
        "chain::MAX_CHANGES",
        chain::MAX_CHANGES,
        "links",
        "the chain of an item that is changed once more; beyond it 409",
    ),
    row("bundle::MAX_LINE", bundle::MAX_LINE, "bytes", "a line of a bundle"),
];

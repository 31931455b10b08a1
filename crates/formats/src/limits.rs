//! The bounds of this room, as rows that `docs/limits.md` is generated from.

use crate::{import, sources};
pub use oap_identity::limits::Limit;

const fn row(name: &'static str, value: usize, unit: &'static str, applies_to: &'static str) -> Limit {
    wide(name, value as u64, unit, applies_to)
}

const fn wide(name: &'static str, value: u64, unit: &'static str, applies_to: &'static str) -> Limit {
    Limit { name, value, unit, applies_to }
}

/// Each row has the constant that is enforced.
pub const LIMITS: &[Limit] = &[
    row(
        "import::MAX_TEXT",
        import::MAX_TEXT,
        "bytes",
        "the text of an imported record; longer ones become several",
    ),
    row("import::MAX_LINE", import::MAX_LINE, "bytes", "a line of CSV, JSON Lines or an MCP memory file"),
    row(
        "import::MAX_ELEMENT",
        import::MAX_ELEMENT,
        "bytes",
        "an element of a vendor's JSON, such as a conversation",
    ),
    row("import::MAX_NOTE", import::MAX_NOTE, "bytes", "a Markdown file"),
    row("import::MAX_FRONT_MATTER", import::MAX_FRONT_MATTER, "bytes", "the front matter of a note"),
    row("import::MAX_FRONT_DEPTH", import::MAX_FRONT_DEPTH, "levels", "the front matter of a note"),
    row(
        "import::MAX_TAG",
        import::MAX_TAG,
        "bytes",
        "a tag of an imported record's provenance; longer text is cut",
    ),
    row("import::MAX_ID", import::MAX_ID, "bytes", "the id of a vendor's thread"),
    row("sources::MAX_FILES", sources::MAX_FILES, "files", "an archive or a folder"),
    row("sources::MAX_DEPTH", sources::MAX_DEPTH, "folders", "folders within each other"),
    row("sources::MAX_NAME", sources::MAX_NAME, "bytes", "the name of an archive's entry"),
    wide("sources::MAX_ENTRY", sources::MAX_ENTRY, "bytes", "what an entry of an archive unfolds to"),
    wide("sources::MAX_UNFOLDED", sources::MAX_UNFOLDED, "bytes", "what an archive unfolds to"),
    wide(
        "sources::BOMB_BYTES",
        sources::BOMB_BYTES,
        "bytes",
        "an entry that unfolds to any multiple of its size",
    ),
    wide("sources::BOMB_RATIO", sources::BOMB_RATIO, "bytes for each byte", "what a larger entry unfolds to"),
];

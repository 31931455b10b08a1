//! What other vendors export, as items. Pure: bytes in, records out.
//!
//! Each format has a module, with an [`Importer`] that says what it looks like, how it is read, and what is kept, mapped and
//! dropped; [`FORMATS`] holds them all. A record carries a `source`, the same for the
//! same memory in every export of its account or file, so that importing again changes nothing; an [`Origin`] completes
//! it, so that what comes from elsewhere never changes it either; and a `place` for the report.

mod bounded;
mod chatgpt;
mod claude;
mod csv;
mod dates;
mod draft;
mod formats;
mod gemini;
mod json;
mod jsonl;
mod letta;
pub mod locomo;
mod looks;
mod markdown;
mod mcp;
mod mem0;
mod okf;
mod openintent;
mod origin;
mod table;
mod times;

pub use formats::{FORMATS, Format, Importer};
pub use looks::{LeftOut, Likeness, Looks, left_out, recognise};
pub(crate) use origin::names_account;
pub use origin::{MAX_ACCOUNT_FILE, Origin, Reach, account};
pub use table::{Mapping, MappingError};

use draft::Draft;
use serde_json::Value;
use std::io::Read;
use std::ops::ControlFlow;
use times::time;

/// Bytes of a file that [`recognise`] looks at.
pub const HEAD: usize = 64 * 1024;
/// Longest text of one item, in bytes; longer ones are cut into several.
pub const MAX_TEXT: usize = 32 * 1024;
/// Longest line of CSV, JSON Lines or an MCP memory file, in bytes.
pub const MAX_LINE: usize = 1 << 20;
/// Largest element of a vendor's JSON, in bytes: a conversation with all its messages.
pub const MAX_ELEMENT: usize = 16 << 20;
/// Largest Markdown file, in bytes.
pub const MAX_NOTE: usize = 8 << 20;
/// Largest front matter of a note, in bytes, as it is written and with its aliases resolved.
pub const MAX_FRONT_MATTER: usize = 16 << 10;
/// Deepest nesting of front matter.
pub const MAX_FRONT_DEPTH: usize = 16;
/// Longest tag of a record's provenance, in bytes; longer text is cut, anything else is left out.
pub const MAX_TAG: usize = 1024;
/// Longest id of a vendor's thread or account, in bytes.
pub const MAX_ID: usize = 256;

/// A memory that was found, as its owner would write it.
#[derive(Debug, Clone, PartialEq)]
#[allow(missing_docs, reason = "the names say it")]
pub struct Record {
    /// The same for the same memory in every export, as far as its reach goes.
    pub source: String,
    /// How far the source is unique.
    pub reach: Reach,
    /// The account at the vendor, where the record itself names it.
    pub account: Option<String>,
    /// What the record stands in without an id of its own, in order: one that was edited is found by its neighbours.
    pub group: Option<String>,
    /// Where it stands.
    pub place: String,
    pub item: Value,
}

/// What a reader finds.
#[derive(Debug, Clone, PartialEq)]
#[allow(missing_docs, reason = "where it stands and why, as the fields are named")]
pub enum Found {
    Record(Box<Record>),
    /// Something that is left out on purpose.
    Skipped {
        place: String,
        reason: String,
    },
    /// Something that cannot be read.
    Refused {
        place: String,
        reason: String,
    },
}

/// Takes what is found, one after the other; [`ControlFlow::Break`] ends the reading.
pub type Sink<'a> = &'a mut dyn FnMut(Found) -> ControlFlow<()>;

/// A file to read.
#[allow(missing_docs, reason = "the names say it")]
pub struct File<'a> {
    /// Its name, with the folders that it lies in, for the report and for formats whose names mean something.
    pub name: &'a str,
    pub bytes: &'a mut dyn Read,
    /// How columns become members, for tables.
    pub mapping: &'a Mapping,
}

/// The beginning of a text, of at most so many bytes.
fn start_of(text: &str, most: usize) -> &str {
    text.get(..text.floor_char_boundary(most)).unwrap_or(text)
}

fn text<'a>(value: &'a Value, name: &str) -> &'a str {
    value[name].as_str().unwrap_or_default()
}

fn refused(place: String, reason: impl ToString) -> Found {
    Found::Refused { place, reason: reason.to_string() }
}

fn skipped(place: String, reason: &str) -> Found {
    Found::Skipped { place, reason: reason.to_owned() }
}

//! What other vendors export, as items (issue: moving house). Pure: bytes in, records out.
//!
//! Each format has a module that says what is kept, mapped and dropped. A record carries a `source`, the same for the
//! same memory in every export of its account or file, so that importing again changes nothing; an [`Origin`] completes
//! it, so that what comes from elsewhere never changes it either; and a `place` for the report.

mod bounded;
mod chatgpt;
mod claude;
mod dates;
mod gemini;
mod json;
mod letta;
pub mod locomo;
mod markdown;
mod mcp;
mod mem0;
mod okf;
mod openintent;
mod origin;
mod recognise;
mod table;

pub use origin::{MAX_ACCOUNT_FILE, Origin, Reach, account};
pub use recognise::{left_out, recognise};
pub use table::Mapping;

use crate::item::closed_enum;
use oap_identity::Timestamp;
use serde_json::{Map, Value};
use std::io::Read;
use std::ops::ControlFlow;

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

closed_enum! {
    /// The formats that are read.
    Format {
        /// ChatGPT's data export.
        Chatgpt = "chatgpt",
        /// Claude's data export.
        Claude = "claude",
        /// Google Takeout's activity of Gemini Apps.
        Gemini = "gemini",
        /// mem0: `get_all` or its export.
        Mem0 = "mem0",
        /// Letta's agent file.
        Letta = "letta",
        /// The MCP reference server for memory.
        McpMemory = "mcp-memory",
        /// A folder of basic-memory or Obsidian.
        Notes = "notes",
        /// Concepts of the Open Knowledge Format.
        Okf = "okf",
        /// `CLAUDE.md`, `AGENTS.md`, `MEMORY.md`.
        AgentsMd = "agents-md",
        /// Conversations of LoCoMo.
        Locomo = "locomo",
        /// Entries of OpenIntent RFC-0015.
        OpenIntent = "openintent",
        /// A table with a header.
        Csv = "csv",
        /// One object a line.
        Jsonl = "jsonl",
    }
}

/// A memory that was found, as its owner would write it.
#[derive(Debug, Clone, PartialEq)]
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
    /// The item.
    pub item: Value,
}

/// What a reader finds.
#[derive(Debug, Clone, PartialEq)]
pub enum Found {
    /// A memory.
    Record(Box<Record>),
    /// Something that is left out on purpose.
    Skipped {
        /// Where.
        place: String,
        /// Why.
        reason: String,
    },
    /// Something that cannot be read.
    Refused {
        /// Where.
        place: String,
        /// Why.
        reason: String,
    },
}

/// Takes what is found, one after the other; [`ControlFlow::Break`] ends the reading.
pub type Sink<'a> = &'a mut dyn FnMut(Found) -> ControlFlow<()>;

/// A file to read.
pub struct File<'a> {
    /// Its name, with the folders that it lies in, for the report and for formats whose names mean something.
    pub name: &'a str,
    /// Its bytes.
    pub bytes: &'a mut dyn Read,
    /// How columns become members, for tables.
    pub mapping: &'a Mapping,
}

/// Reads a file of a format.
///
/// Whatever is wrong with it is told to the sink: a broken document ends the reading at its place, and what came before
/// stays.
pub fn read(format: Format, file: File, sink: Sink) {
    match format {
        Format::Chatgpt => chatgpt::read(file, sink),
        Format::Claude => claude::read(file, sink),
        Format::Gemini => gemini::read(file, sink),
        Format::Mem0 => mem0::read(file, sink),
        Format::Letta => letta::read(file, sink),
        Format::McpMemory => mcp::read(file, sink),
        Format::Notes => markdown::notes::read(file, sink),
        Format::Okf => okf::read(file, sink),
        Format::AgentsMd => markdown::agents::read(file, sink),
        Format::Locomo => locomo::read(file, sink),
        Format::OpenIntent => openintent::read(file, sink),
        Format::Csv => table::csv(file, sink),
        Format::Jsonl => table::jsonl(file, sink),
    }
}

/// What is kept, mapped and dropped of a format, for people.
#[must_use]
pub const fn about(format: Format) -> &'static str {
    match format {
        Format::Chatgpt => chatgpt::ABOUT,
        Format::Claude => claude::ABOUT,
        Format::Gemini => gemini::ABOUT,
        Format::Mem0 => mem0::ABOUT,
        Format::Letta => letta::ABOUT,
        Format::McpMemory => mcp::ABOUT,
        Format::Notes => markdown::notes::ABOUT,
        Format::Okf => okf::ABOUT,
        Format::AgentsMd => markdown::agents::ABOUT,
        Format::Locomo => locomo::ABOUT,
        Format::OpenIntent => openintent::ABOUT,
        Format::Csv | Format::Jsonl => table::ABOUT,
    }
}

/// An item under construction.
#[derive(Clone)]
struct Draft {
    item: Value,
    reach: Reach,
    account: Option<String>,
    group: Option<String>,
}

impl Draft {
    fn new(kind: &str, text: &str, label: &str) -> Self {
        Self {
            item: serde_json::json!({
                "kind": kind, "content": {"text": text}, "labels": [label],
                "provenance": {"imported_from": label},
            }),
            reach: Reach::File,
            account: None,
            group: None,
        }
    }

    /// How far the source is unique.
    const fn reach(mut self, reach: Reach) -> Self {
        self.reach = reach;
        self
    }

    /// The account at the vendor, where there is one.
    fn account(mut self, account: &Value) -> Self {
        self.account = account.as_str().filter(|id| (1..=MAX_ID).contains(&id.len())).map(str::to_owned);
        self
    }

    /// The list without ids that it stands in.
    fn group(mut self, group: Option<&str>) -> Self {
        self.group = group.map(str::to_owned);
        self
    }

    /// The size of its text, in bytes.
    fn size(&self) -> usize {
        self.item["content"]["text"].as_str().map_or(0, str::len)
    }

    /// A member of the provenance, where there is one.
    fn tag(mut self, name: &str, value: Option<&Value>) -> Self {
        let value = match value {
            None | Some(Value::Null) => None,
            Some(Value::String(text)) => Some(Value::from(start_of(text, MAX_TAG))).filter(|tag| *tag != ""),
            Some(value) => Some(value.clone()).filter(|value| value.to_string().len() <= MAX_TAG),
        };
        if let Some(value) = value {
            self.item["provenance"][name] = value;
        }
        self
    }

    fn at(mut self, at: Option<Timestamp>) -> Self {
        if let Some(at) = at {
            self.item["provenance"]["captured_at"] = serde_json::json!(at);
        }
        self
    }

    fn structured(mut self, members: Map<String, Value>) -> Self {
        if !members.is_empty() {
            self.item["content"]["structured"] = Value::Object(members);
        }
        self
    }

    fn confidence(mut self, confidence: f64) -> Self {
        self.item["provenance"]["confidence"] = serde_json::json!(confidence);
        self
    }

    fn subject(mut self, subject: Option<&str>) -> Self {
        if let Some(subject) = subject.map(|s| start_of(s, crate::item::MAX_SHORT)).filter(|s| !s.is_empty())
        {
            self.item["subject_entity_id"] = serde_json::json!(subject);
        }
        self
    }

    fn label(mut self, label: &str) -> Self {
        let label: String = label.trim().to_lowercase().chars().take(64).collect();
        if let Some(labels) = self.item["labels"].as_array_mut()
            && !label.is_empty()
            && labels.len() < 32
        {
            labels.push(Value::String(label));
        }
        self
    }

    /// Tells the sink; a text that is too long becomes several items, cut between lines or words.
    fn send(self, source: String, place: String, sink: Sink) -> ControlFlow<()> {
        let Self { item, reach, account, group } = self;
        let text = item["content"]["text"].as_str().unwrap_or_default();
        if text.len() <= MAX_TEXT {
            let mut item = item;
            if item["content"]["text"] == ""
                && let Some(content) = item["content"].as_object_mut()
            {
                content.remove("text");
            }
            return sink(Found::Record(Box::new(Record { source, reach, account, group, place, item })));
        }
        let pieces: Vec<String> = pieces(text).map(str::to_owned).collect();
        for (number, piece) in pieces.iter().enumerate() {
            let mut item = item.clone();
            item["content"]["text"] = Value::String(piece.clone());
            item["provenance"]["part"] = serde_json::json!(number + 1);
            let source = format!("{source}#{number}");
            let (account, place) = (account.clone(), place.clone());
            let record = Record { source, reach, account, group: None, place, item };
            sink(Found::Record(Box::new(record)))?;
        }
        ControlFlow::Continue(())
    }
}

/// The beginning of a text, of at most so many bytes.
fn start_of(text: &str, most: usize) -> &str {
    text.get(..text.floor_char_boundary(most)).unwrap_or(text)
}

/// Pieces of at most [`MAX_TEXT`] bytes.
fn pieces(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let mut end = rest.floor_char_boundary(MAX_TEXT.min(rest.len()));
        if end < rest.len()
            && let Some(space) = rest[..end].rfind(['\n', ' ']).filter(|space| *space > MAX_TEXT / 2)
        {
            end = space + 1;
        }
        let (piece, after) = rest.split_at(end);
        rest = after;
        Some(piece)
    })
}

/// A time as vendors write it: RFC 3339 with any offset, or seconds since 1970.
fn time(value: &Value) -> Option<Timestamp> {
    match value {
        Value::Number(seconds) => {
            let seconds = seconds.as_f64().filter(|s| s.is_finite() && *s > 0.0)?;
            // Some write milliseconds.
            let millis = if seconds > 1e11 { seconds } else { seconds * 1000.0 };
            #[expect(clippy::cast_possible_truncation, reason = "clamped by Timestamp")]
            Some(Timestamp::from_millis(millis as i64))
        }
        Value::String(text) => parse_time(text.trim()),
        _ => None,
    }
}

fn parse_time(text: &str) -> Option<Timestamp> {
    if let Ok(at) = text.parse() {
        return Some(at);
    }
    if let Ok(seconds) = text.parse::<f64>() {
        return time(&serde_json::json!(seconds));
    }
    let normal = text.replacen(' ', "T", 1);
    let zoned = chrono::DateTime::parse_from_rfc3339(&normal).map(|at| at.timestamp_millis());
    let naive = || {
        let forms = ["%Y-%m-%dT%H:%M:%S%.f", "%Y-%m-%dT%H:%M"];
        let time = forms.iter().find_map(|form| chrono::NaiveDateTime::parse_from_str(&normal, form).ok());
        let day = || chrono::NaiveDate::parse_from_str(text, "%Y-%m-%d").ok()?.and_hms_opt(0, 0, 0);
        Some(time.or_else(day)?.and_utc().timestamp_millis())
    };
    zoned.ok().or_else(naive).map(Timestamp::from_millis)
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

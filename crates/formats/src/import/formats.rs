//! The formats that are read: one entry a format, each made in the format's own file.

use super::{File, Likeness, Looks, Sink};
use super::{chatgpt, claude, csv, gemini, jsonl, letta, locomo, markdown, mcp, mem0, okf, openintent};
use oap_memory::closed_enum;

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

impl Format {
    /// How it is read.
    #[must_use]
    pub const fn importer(self) -> &'static Importer {
        &FORMATS[self as usize]
    }
}

/// One format.
#[derive(Debug)]
pub struct Importer {
    /// Which one.
    pub format: Format,
    /// What is kept, mapped and dropped, for people.
    pub about: &'static str,
    /// Whether files of other formats may look like it: among several files, one that the owner says is of some format is
    /// read as that one.
    pub general: bool,
    /// The member that holds the account's id, in the file that the vendor writes about the account.
    pub account_id: Option<&'static str>,
    /// Whether a file is of this format.
    pub recognises: fn(&Looks) -> Likeness,
    /// Reads a file. Whatever is wrong with it is told to the sink: a broken document ends the reading at its place, and
    /// what came before stays.
    pub read: fn(File, Sink),
}

/// All of them, in the order of [`Format`]. Of two that recognise a file equally well the first one reads it.
pub const FORMATS: &[Importer] = &[
    chatgpt::IMPORTER,
    claude::IMPORTER,
    gemini::IMPORTER,
    mem0::IMPORTER,
    letta::IMPORTER,
    mcp::IMPORTER,
    markdown::notes::IMPORTER,
    okf::IMPORTER,
    markdown::agents::IMPORTER,
    locomo::IMPORTER,
    openintent::IMPORTER,
    csv::IMPORTER,
    jsonl::IMPORTER,
];

const _: () = {
    assert!(FORMATS.len() == Format::ALL.len(), "a format without importer");
    let mut at = 0;
    while at < FORMATS.len() {
        assert!(FORMATS[at].format as usize == at, "an importer that is not at the place of its format");
        at += 1;
    }
};

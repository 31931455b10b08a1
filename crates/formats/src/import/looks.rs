//! What a file is, by its content and, for text, its name.

use super::{FORMATS, Format, HEAD, account, okf};
use std::borrow::Cow;

/// How surely a file is of a format.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Likeness {
    /// It is not.
    None,
    /// It may be, where no other format is sure.
    Perhaps,
    /// It has what only this format has.
    Sure,
}

impl Likeness {
    /// Sure, or none.
    pub(super) const fn sure(is: bool) -> Self {
        if is { Self::Sure } else { Self::None }
    }

    /// Perhaps, or none.
    pub(super) const fn perhaps(is: bool) -> Self {
        if is { Self::Perhaps } else { Self::None }
    }
}

/// What the name and the first characters say.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Shape {
    /// Markdown, by its name.
    Markdown,
    Html,
    /// A document or lines of it.
    Json,
    /// Anything else.
    Other,
}

/// The name and the beginning of a file, as recognisers need them.
#[derive(Debug)]
pub struct Looks<'a> {
    /// With the folders that it lies in.
    pub(super) name: &'a str,
    /// Its last part, in lower case.
    pub(super) base: String,
    /// At most the first [`HEAD`] bytes.
    pub(super) text: Cow<'a, str>,
    pub(super) shape: Shape,
    /// The text without white space: members of JSON are looked up in it.
    packed: String,
}

impl<'a> Looks<'a> {
    /// Of a name and the beginning of a file, of which [`HEAD`] bytes count.
    #[must_use]
    pub fn new(name: &'a str, head: &'a [u8]) -> Self {
        let base = name.rsplit('/').next().unwrap_or(name).to_lowercase();
        let text = String::from_utf8_lossy(head.get(..HEAD).unwrap_or(head));
        let shape = match start(&text).chars().next() {
            _ if base.ends_with(".md") || base.ends_with(".markdown") => Shape::Markdown,
            Some('<') => Shape::Html,
            Some('{' | '[') => Shape::Json,
            _ => Shape::Other,
        };
        let packed = match shape {
            Shape::Json => text.chars().filter(|c| !c.is_whitespace()).collect(),
            _ => String::new(),
        };
        Self { name, base, text, shape, packed }
    }

    /// The text from its first character on.
    pub(super) fn start(&self) -> &str {
        start(&self.text)
    }

    /// Whether a JSON text has these characters, white space aside.
    pub(super) fn has(&self, word: &str) -> bool {
        self.packed.contains(word)
    }

    /// Whether a JSON text has a member of this name, at whatever depth.
    pub(super) fn member(&self, name: &str) -> bool {
        self.packed.contains(&format!("\"{name}\":"))
    }

    /// Whether a JSON text begins so, white space aside.
    pub(super) fn begins(&self, word: &str) -> bool {
        self.packed.starts_with(word)
    }
}

fn start(text: &str) -> &str {
    text.trim_start_matches(['\u{feff}', ' ', '\t', '\r', '\n'])
}

/// The format of a file; none for what is no memory.
#[must_use]
pub fn recognise(name: &str, head: &[u8]) -> Option<Format> {
    if account(name, head).is_some() {
        return None;
    }
    let looks = Looks::new(name, head);
    let likeness = FORMATS.iter().map(|importer| ((importer.recognises)(&looks), importer.format));
    // The first of the surest.
    let (likeness, format) = likeness.rev().max_by_key(|(likeness, _)| *likeness)?;
    (likeness > Likeness::None).then_some(format)
}

/// Why a file is left out as a whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum LeftOut {
    /// It is hidden, or in a hidden folder.
    #[error("a hidden file")]
    Hidden,
    /// It says whose export it is.
    #[error("the account's own data: no memory")]
    Account,
    /// What Open Knowledge Format keeps beside concepts.
    #[error("an index or a log of Open Knowledge Format")]
    Index,
    /// It looks like nothing that is known.
    #[error("not of a format that is read here")]
    Unknown,
    /// It looks like another format than its owner named.
    #[error("of another format than --from says")]
    OtherFormat,
}

/// Why a file of an export or a folder is no memory, where that can be told; it is left out as a whole.
#[must_use]
pub fn left_out(name: &str, head: &[u8]) -> Option<LeftOut> {
    let hidden = |part: &str| part == "__MACOSX" || (part.starts_with('.') && part != "." && part != "..");
    if name.split('/').any(hidden) {
        return Some(LeftOut::Hidden);
    }
    if account(name, head).is_some() {
        return Some(LeftOut::Account);
    }
    let text = String::from_utf8_lossy(head.get(..4096).unwrap_or(head));
    okf::is_reserved(name, &text).then_some(LeftOut::Index)
}

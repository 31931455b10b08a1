//! Tables for people, JSON for programs.

use super::{CliError, screen, table};
use crate::api::items::Content;
use crate::system::files;
use comfy_table::{ContentArrangement, Table, presets};
use oap_identity::ItemId;
use oap_memory::Kind;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::fmt::Display;
use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};

/// Prints a value as JSON, or what `people` makes of it.
pub(super) fn print<T: Serialize>(json: bool, value: &T, people: impl FnOnce(&T) -> String) {
    let text = if json { pretty(value) } else { screen::plain(&people(value)) };
    // A closed pipe is the reader's way of saying enough.
    let _ = writeln!(std::io::stdout(), "{}", text.trim_end());
}

/// JSON for people who read JSON; what would act on a terminal stands in it as an escape.
pub(super) fn pretty<T: Serialize>(value: &T) -> String {
    // As a reader of the document has it: members in the order of their names, numbers in one form.
    let written = serde_json::to_vec(value).unwrap_or_default();
    let value = oap_identity::json::parse(&written).or_else(|_| serde_json::from_slice(&written));
    let value: Value = value.unwrap_or_default();
    screen::plain_json(&serde_json::to_string_pretty(&value).unwrap_or_default())
}

/// A list: one line a row, cut to the width of the screen.
pub(super) fn table(header: &[&str], rows: impl IntoIterator<Item = Vec<String>>) -> String {
    table::table(header, rows, screen::width())
}

/// A table of texts that are read whole: cells are wrapped, not cut; ids and times are shortened as in a list.
pub(super) fn wrapped(header: &[&str], rows: impl IntoIterator<Item = Vec<String>>) -> String {
    let mut rows: Vec<Vec<String>> = rows.into_iter().collect();
    if rows.is_empty() {
        return table::NONE.to_owned();
    }
    let mut table = Table::new();
    table.load_style(presets::NOTHING);
    if let Some(width) = screen::width() {
        table::shorten_all(&mut rows, header.len());
        table.set_content_arrangement(ContentArrangement::Dynamic);
        table.set_width(u16::try_from(width).unwrap_or(u16::MAX));
    }
    table.set_header(header.iter().copied());
    for row in rows {
        table.add_row(row.iter().map(|cell| screen::plain(cell)));
    }
    table.trim_fmt()
}

/// Lines cut to the width of the screen.
pub(super) fn fitted(text: &str) -> String {
    match screen::width() {
        None => text.to_owned(),
        Some(width) => text.lines().map(|line| screen::cut(line, width)).collect::<Vec<_>>().join("\n"),
    }
}

/// A member, empty where there is none.
pub(super) fn or_none<T: Display>(member: Option<T>) -> String {
    member.map(|member| member.to_string()).unwrap_or_default()
}

/// A text in one line of so many columns.
pub(super) fn short(text: &str, columns: usize) -> String {
    screen::cut(&screen::line(text), columns)
}

/// What a line on a screen says of an item, as a grantee sees it. The document itself stays as it came.
#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct VisibleItem {
    pub(super) item_id: Option<ItemId>,
    pub(super) kind: Option<Kind>,
    /// How well it fits the question, 0 to 1.
    pub(super) relevance: Option<f64>,
    /// The attitude that its source has to it.
    pub(super) epistemic: Option<String>,
    pub(super) content: Content,
}

impl VisibleItem {
    /// An item that shows nothing of this is an empty line.
    pub(super) fn of(item: &Value) -> Self {
        oap_identity::json::from_value(item.clone()).unwrap_or_default()
    }
}

/// What an item says, in one line.
pub(super) fn says(content: &Content) -> String {
    match (&content.text, &content.structured) {
        (Some(text), _) => text.clone(),
        (None, Some(structured)) => Value::Object(structured.clone()).to_string(),
        (None, None) => "(hidden)".to_owned(),
    }
}

/// Reads a file, or standard input for `-`.
pub(super) fn read(path: &Path) -> Result<Vec<u8>, CliError> {
    let read = if path == Path::new("-") {
        let mut bytes = Vec::new();
        std::io::Read::read_to_end(&mut std::io::stdin(), &mut bytes).map(|_| bytes)
    } else {
        std::fs::read(path)
    };
    read.map_err(|e| CliError::File(path.to_owned(), e.to_string()))
}

/// Reads a file of JSON.
pub(super) fn read_json(path: &Path) -> Result<Value, CliError> {
    let bytes = read(path)?;
    oap_identity::json::parse(&bytes).map_err(|e| CliError::File(path.to_owned(), e.to_string()))
}

/// The same of a flag: a wrong name is a wrong flag.
pub(super) fn read_json_of(flag: &str, path: &Path) -> Result<Value, CliError> {
    read_json(path).map_err(|e| CliError::Usage(format!("{flag}: {e}")))
}

/// A file that is made before the work and written after it: what cannot be written is found out before something is issued,
/// erased or spent for it. Its owner alone can read it.
pub(super) struct OutFile {
    path: PathBuf,
    to: To,
}

enum To {
    /// Beside the file, until it is whole.
    Beside(files::Pending),
    /// Something that is no file, such as a terminal or a pipe.
    Straight(File),
}

impl OutFile {
    /// Makes sure that the file can be written.
    pub(super) fn create(path: &Path) -> Result<Self, CliError> {
        let failed = |e: String| CliError::File(path.to_owned(), e);
        let to = match std::fs::metadata(path) {
            Ok(found) if found.is_dir() => return Err(failed("is a folder".to_owned())),
            Ok(found) if !found.is_file() => OpenOptions::new().write(true).open(path).map(To::Straight),
            _ => files::begin(path).map(To::Beside),
        };
        Ok(Self { path: path.to_owned(), to: to.map_err(|e| failed(e.to_string()))? })
    }

    /// Writes it.
    pub(super) fn write(self, bytes: &[u8]) -> Result<(), CliError> {
        let Self { path, to } = self;
        let written = match to {
            To::Beside(mut file) => file.write_all(bytes).and_then(|()| file.finish(&path)),
            To::Straight(mut file) => file.write_all(bytes),
        };
        written.map_err(|e| CliError::File(path, e.to_string()))
    }
}

/// Writes a file.
pub(super) fn write(path: &Path, text: &str) -> Result<(), CliError> {
    files::write(path, text.as_bytes()).map_err(|e| CliError::File(path.to_owned(), e.to_string()))
}

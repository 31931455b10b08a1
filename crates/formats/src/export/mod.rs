//! Items in the forms that other programs read. Pure: an item of a bundle in, text out.
//!
//! These forms carry no proofs: who needs them takes the bundle. Each form has a module, with an [`Exporter`] that says how
//! it is written; [`FORMS`] holds them all.

mod jsonl;
mod mcp;
mod mem0;
mod note;
mod okf;
mod rdf;

use oap_memory::closed_enum;
use serde_json::{Map, Value};

closed_enum! {
    /// The forms that are written.
    Form {
        /// mem0's JSON.
        Mem0 = "mem0",
        /// The graph of the MCP reference server for memory, as JSON Lines.
        McpMemory = "mcp-memory",
        /// A folder of markdown files, one an item, with front matter.
        Markdown = "markdown",
        /// A folder of concepts of the Open Knowledge Format 0.2, with an index.
        Okf = "okf",
        /// The items in their wire form, one a line.
        Jsonl = "jsonl",
        /// N-Quads with PROV-O.
        Rdf = "rdf",
    }
}

impl Form {
    /// How it is written.
    #[must_use]
    pub const fn exporter(self) -> &'static Exporter {
        &FORMS[self as usize]
    }
}

/// One form.
#[derive(Debug)]
pub struct Exporter {
    /// Which one.
    pub form: Form,
    /// Where the items go.
    pub layout: Layout,
    /// An item in this form, of a folder the file's text.
    pub write: fn(&Value) -> String,
}

/// Where the items go.
#[derive(Debug, Clone, Copy)]
pub enum Layout {
    /// Into one file.
    File {
        /// What stands before the items.
        before: &'static str,
        /// What stands between two of them.
        between: &'static str,
        /// What stands after them.
        after: &'static str,
    },
    /// Into a folder, a file each, perhaps with an index.
    Folder(Option<Index>),
}

/// The index of a folder.
#[derive(Debug, Clone, Copy)]
pub struct Index {
    /// The name of its file.
    pub name: &'static str,
    /// What it begins with.
    pub before: &'static str,
    /// The line of an item, and the name of the item's file.
    pub entry: fn(&Value, &str) -> String,
}

/// All of them, in the order of [`Form`].
pub const FORMS: &[Exporter] =
    &[mem0::EXPORTER, mcp::EXPORTER, note::EXPORTER, okf::EXPORTER, jsonl::EXPORTER, rdf::EXPORTER];

const _: () = {
    assert!(FORMS.len() == Form::ALL.len(), "a form without exporter");
    let mut at = 0;
    while at < FORMS.len() {
        assert!(FORMS[at].form as usize == at, "an exporter that is not at the place of its form");
        at += 1;
    }
};

/// Lines of JSON.
const LINES: Layout = Layout::File { before: "", between: "\n", after: "\n" };

/// What an item says, in words.
fn said(item: &Value) -> String {
    match item["content"]["text"].as_str() {
        Some(text) => text.to_owned(),
        None => item["content"]["structured"].to_string(),
    }
}

fn labels(item: &Value) -> Vec<&str> {
    item["labels"].as_array().into_iter().flatten().filter_map(Value::as_str).collect()
}

/// Members as YAML. Numbers of `serde_json` keep their text, which no other format knows: they are written as numbers.
fn front_matter(members: &Map<String, Value>) -> String {
    serde_yaml_ng::to_string(&yaml(&Value::Object(members.clone()))).unwrap_or_default()
}

fn yaml(value: &Value) -> serde_yaml_ng::Value {
    use serde_yaml_ng::Value as Yaml;
    match value {
        Value::Null => Yaml::Null,
        Value::Bool(value) => Yaml::Bool(*value),
        Value::Number(number) => match (number.as_i64(), number.as_f64()) {
            (Some(whole), _) => Yaml::Number(whole.into()),
            (None, Some(real)) => Yaml::Number(real.into()),
            (None, None) => Yaml::String(number.to_string()),
        },
        Value::String(text) => Yaml::String(text.clone()),
        Value::Array(values) => Yaml::Sequence(values.iter().map(yaml).collect()),
        Value::Object(members) => Yaml::Mapping(
            members.iter().map(|(name, value)| (Yaml::String(name.clone()), yaml(value))).collect(),
        ),
    }
}

//! Items in the forms that other programs read. Pure: an item of a bundle in, text out.
//!
//! These forms carry no proofs: who needs them takes the bundle.

mod mcp;
mod mem0;
mod note;
mod okf;
mod rdf;

use crate::item::closed_enum;
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

/// What stands before, between and after the items.
#[must_use]
pub const fn frame(form: Form) -> (&'static str, &'static str, &'static str) {
    match form {
        Form::Mem0 => ("{\"results\":[\n", ",\n", "\n]}\n"),
        Form::McpMemory | Form::Jsonl => ("", "\n", "\n"),
        Form::Rdf | Form::Markdown | Form::Okf => ("", "", ""),
    }
}

/// The name of a folder's index and what it begins with, for forms that have one.
#[must_use]
pub fn index(form: Form) -> Option<(&'static str, &'static str)> {
    (form == Form::Okf).then_some(("index.md", okf::INDEX))
}

/// The line of an item in the index of its folder.
#[must_use]
pub fn index_entry(item: &Value, file: &str) -> String {
    okf::entry(item, file)
}

/// An item in a form; for [`Form::Markdown`] and [`Form::Okf`] the file's text.
#[must_use]
pub fn write(form: Form, item: &Value) -> String {
    match form {
        Form::Mem0 => mem0::write(item).to_string(),
        Form::McpMemory => mcp::write(item).iter().map(Value::to_string).collect::<Vec<_>>().join("\n"),
        Form::Markdown => note::write(item),
        Form::Okf => okf::write(item),
        Form::Jsonl => bare(item).to_string(),
        Form::Rdf => rdf::write(item),
    }
}

/// The item without its proof.
fn bare(item: &Value) -> Value {
    let mut item = item.clone();
    if let Some(members) = item.as_object_mut() {
        members.remove("integrity");
    }
    item
}

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

//! The page: its fenced blocks, read and written.

use super::formula::Blocks;
use serde_json::Value;

/// The named blocks (```` ```json name ````) and the lines of its `check` blocks.
pub fn read(page: &str) -> (Blocks, Vec<String>) {
    let (mut blocks, mut checks) = (Blocks::new(), Vec::new());
    walk(page, |fence, body| {
        let mut words = fence.split_whitespace();
        match (words.next(), words.next()) {
            (Some("check"), None) => checks.extend(body.lines().map(str::to_owned)),
            (Some(_), Some(name)) => {
                assert!(blocks.insert(name.to_owned(), body.to_owned()).is_none(), "{name} stands twice");
            }
            _ => {}
        }
        body.to_owned()
    });
    checks.retain(|line| !line.trim().is_empty());
    (blocks, checks)
}

/// The page with other texts in its named blocks.
pub fn write(page: &str, blocks: &Blocks) -> String {
    walk(page, |fence, body| {
        let name = fence.split_whitespace().nth(1);
        name.and_then(|name| blocks.get(name)).cloned().unwrap_or_else(|| body.to_owned())
    })
}

fn walk(page: &str, mut each: impl FnMut(&str, &str) -> String) -> String {
    let (mut out, mut body, mut open) = (Vec::new(), Vec::new(), None);
    for line in page.lines() {
        match (open, line.strip_prefix("```")) {
            (None, Some(fence)) => {
                open = Some(fence);
                out.push(line.to_owned());
            }
            (Some(fence), Some("")) => {
                out.push(each(fence, &body.join("\n")));
                out.push(line.to_owned());
                (open, body) = (None, Vec::new());
            }
            (Some(_), _) => body.push(line),
            (None, None) => out.push(line.to_owned()),
        }
    }
    assert!(open.is_none(), "a fence is open at the end");
    out.join("\n") + "\n"
}

/// JSON for reading: what fits stands on one line.
pub fn pretty(value: &Value) -> String {
    let mut out = String::new();
    put(value, 0, 0, &mut out);
    out
}

const WIDTH: usize = 120;

fn put(value: &Value, depth: usize, before: usize, out: &mut String) {
    let short = value.to_string();
    let nested = matches!(value, Value::Object(m) if !m.is_empty())
        || matches!(value, Value::Array(a) if !a.is_empty());
    if !nested || (depth > 0 && before + short.len() <= WIDTH) {
        return out.push_str(&short);
    }
    let (open, close) = if value.is_object() { ('{', '}') } else { ('[', ']') };
    let indent = "  ".repeat(depth + 1);
    out.push(open);
    let mut first = true;
    let mut item = |name: Option<&String>, value: &Value, out: &mut String| {
        out.push_str(if first { "\n" } else { ",\n" });
        first = false;
        out.push_str(&indent);
        let mut before = indent.len();
        if let Some(name) = name {
            let name = Value::from(name.clone()).to_string();
            before += name.len() + 2;
            out.push_str(&name);
            out.push_str(": ");
        }
        put(value, depth + 1, before, out);
    };
    match value {
        Value::Object(members) => members.iter().for_each(|(name, value)| item(Some(name), value, out)),
        Value::Array(elements) => elements.iter().for_each(|value| item(None, value, out)),
        _ => {}
    }
    out.push('\n');
    out.push_str(&"  ".repeat(depth));
    out.push(close);
}

/// The members of a document with their types, whatever their values.
pub fn shape(value: &Value) -> std::collections::BTreeSet<String> {
    let mut found = std::collections::BTreeSet::new();
    collect(value, String::new(), &mut found);
    found
}

fn collect(value: &Value, place: String, found: &mut std::collections::BTreeSet<String>) {
    match value {
        Value::Object(members) => {
            found.insert(format!("{place} object"));
            members.iter().for_each(|(name, value)| collect(value, format!("{place}/{name}"), found));
        }
        Value::Array(elements) => {
            found.insert(format!("{place} array"));
            elements.iter().for_each(|value| collect(value, format!("{place}/*"), found));
        }
        Value::String(_) => drop(found.insert(format!("{place} text"))),
        Value::Number(_) => drop(found.insert(format!("{place} number"))),
        Value::Bool(_) => drop(found.insert(format!("{place} boolean"))),
        Value::Null => drop(found.insert(format!("{place} null"))),
    }
}

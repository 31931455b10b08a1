//! Markdown: what notes and instruction files have in common.

use super::{Draft, File, Sink, refused, skipped};
use serde_json::{Value, json};
use std::io::Read;
use std::ops::ControlFlow;

pub(super) mod agents;
pub(super) mod notes;

/// Largest file, in bytes.
const MAX_FILE: u64 = 8 << 20;
/// Most pieces of a file that are told apart by their neighbours, and the bytes of their text together: they go to the
/// gateway in one chunk.
const MAX_GROUP: usize = 500;
const MAX_GROUP_BYTES: usize = 1 << 20;

pub(super) fn load(file: File, sink: Sink) -> Option<String> {
    let mut bytes = Vec::new();
    let name = file.name.to_owned();
    let read = (&mut *file.bytes).take(MAX_FILE + 1).read_to_end(&mut bytes);
    let refusal = match read {
        Err(error) => error.to_string(),
        Ok(_) if bytes.len() as u64 > MAX_FILE => "the file is larger than 8 MiB".to_owned(),
        Ok(_) => match String::from_utf8(bytes) {
            Ok(text) => return Some(text.trim_start_matches('\u{feff}').replace("\r\n", "\n")),
            Err(_) => "not UTF-8".to_owned(),
        },
    };
    let _ = sink(refused(name, refusal));
    None
}

/// The front matter, and the rest.
#[derive(Debug, PartialEq)]
pub(super) struct Matter<'a> {
    /// An object; empty without front matter.
    pub values: Value,
    /// What comes after it.
    pub body: &'a str,
    /// Lines before the body.
    pub lines: usize,
    /// Whether there is front matter that cannot be read.
    pub broken: bool,
}

pub(super) fn front_matter(text: &str) -> Matter<'_> {
    let none = Matter { values: json!({}), body: text, lines: 0, broken: false };
    let Some(rest) = text.strip_prefix("---\n") else { return none };
    let ended = rest.strip_prefix("---").map(|after| ("", after));
    let Some((matter, after)) = ended.or_else(|| rest.split_once("\n---")) else { return none };
    // The fence is a line of its own.
    let Some(body) = after.trim_start_matches('-').strip_prefix('\n').or(after.is_empty().then_some(""))
    else {
        return none;
    };
    let body = body.trim_start_matches('\n');
    let lines = text[..text.len() - body.len()].matches('\n').count();
    match serde_yaml_ng::from_str::<Value>(matter) {
        Ok(values) if values.is_object() => Matter { values, body, lines, broken: false },
        Ok(Value::Null) => Matter { values: json!({}), body, lines, broken: false },
        _ => Matter { values: json!({}), body, lines, broken: true },
    }
}

/// Tells of front matter that was left out.
pub(super) fn tell_broken(matter: &Matter, name: &str, sink: Sink) -> ControlFlow<()> {
    match matter.broken {
        true => sink(skipped(format!("{name}:1"), "front matter that is no YAML; the rest was read")),
        false => ControlFlow::Continue(()),
    }
}

/// The tags of a file, as a list or a line.
pub(super) fn tags(matter: &Value) -> Vec<String> {
    match &matter["tags"] {
        Value::Array(tags) => tags.iter().filter_map(Value::as_str).map(hash_tag).collect(),
        Value::String(tags) => tags.split([',', ' ']).filter(|t| !t.is_empty()).map(hash_tag).collect(),
        _ => Vec::new(),
    }
}

fn hash_tag(tag: &str) -> String {
    tag.trim_start_matches('#').to_owned()
}

/// The level and the text of a heading.
fn heading(line: &str) -> Option<(usize, &str)> {
    let level = line.bytes().take_while(|byte| *byte == b'#').count();
    let title = line[level..].strip_prefix(' ')?;
    (1..=6).contains(&level).then(|| (level, title.trim()))
}

/// Pieces of a file: their source, place and item. Those in a group have no id of their own.
#[derive(Default)]
struct Pieces(Vec<(String, String, Draft)>);

impl Pieces {
    fn push(&mut self, source: String, place: String, draft: Draft) {
        self.0.push((source, place, draft));
    }

    /// Sends them all, first those in groups, each in order. Of a file with too many pieces each is told apart by what it
    /// says alone.
    fn send(mut self, sink: Sink) -> ControlFlow<()> {
        self.0.sort_by_key(|(_, _, draft)| draft.group.is_none());
        let grouped = || self.0.iter().filter(|(_, _, draft)| draft.group.is_some());
        let whole = grouped().count() <= MAX_GROUP
            && grouped().map(|(_, _, draft)| draft.size()).sum::<usize>() <= MAX_GROUP_BYTES;
        for (source, place, draft) in self.0 {
            let draft = if whole { draft } else { draft.group(None) };
            draft.send(source, place, sink)?;
        }
        ControlFlow::Continue(())
    }
}

//! Markdown: what notes and instruction files have in common.

use super::bounded::Budget;
use super::{Draft, File, MAX_FRONT_DEPTH, MAX_FRONT_MATTER, MAX_NOTE, Sink, refused, skipped, start_of};
use oap_memory::item::MAX_SHORT;
use serde_json::{Value, json};
use std::io::Read;
use std::ops::ControlFlow;

pub(super) mod agents;
pub(super) mod notes;

/// Most tags of a note that become labels.
const MAX_TAGS: usize = 32;
/// Most brackets that open a list or an object in front matter.
const MAX_FRONT_BRACKETS: usize = 1024;
/// Most pieces of a file that are told apart by their neighbours, and the bytes of their text together: they go to the
/// gateway in one chunk.
const MAX_GROUP: usize = 500;
const MAX_GROUP_BYTES: usize = 1 << 20;

pub(super) fn load(file: File, sink: Sink) -> Option<String> {
    let mut bytes = Vec::new();
    let name = file.name.to_owned();
    let read = (&mut *file.bytes).take(MAX_NOTE as u64 + 1).read_to_end(&mut bytes);
    let refusal = match read {
        Err(error) => error.to_string(),
        Ok(_) if bytes.len() > MAX_NOTE => format!("the file is larger than {MAX_NOTE} bytes"),
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
    /// Why there is front matter that was not read.
    pub broken: Option<Broken>,
}

/// Why front matter is not read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Broken {
    /// It is no YAML, or no object, or stands for more than is read.
    NoYaml,
    /// It is longer than [`MAX_FRONT_MATTER`].
    TooLong,
    /// It opens more than [`MAX_FRONT_BRACKETS`].
    TooManyBrackets,
}

pub(super) fn front_matter(text: &str) -> Matter<'_> {
    let none = Matter { values: json!({}), body: text, lines: 0, broken: None };
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
    let (values, broken) = match values(matter) {
        Ok(values) => (values, None),
        Err(broken) => (json!({}), Some(broken)),
    };
    Matter { values, body, lines, broken }
}

/// The values of front matter, within bounds.
fn values(matter: &str) -> Result<Value, Broken> {
    if matter.len() > MAX_FRONT_MATTER {
        return Err(Broken::TooLong);
    }
    // The library looks at every open bracket again for each token.
    let nested = matter.bytes().filter(|byte| matches!(byte, b'[' | b'{')).count();
    if nested > MAX_FRONT_BRACKETS {
        return Err(Broken::TooManyBrackets);
    }
    let budget = Budget::new(MAX_FRONT_MATTER, MAX_FRONT_DEPTH);
    match budget.read(serde_yaml_ng::Deserializer::from_str(matter)) {
        Ok(values) if values.is_object() => Ok(values),
        Ok(Value::Null) => Ok(json!({})),
        _ => Err(Broken::NoYaml),
    }
}

/// Tells of front matter that was left out.
pub(super) fn tell_broken(matter: &Matter, name: &str, sink: Sink) -> ControlFlow<()> {
    let place = format!("{name}:1");
    match matter.broken {
        None => ControlFlow::Continue(()),
        Some(Broken::NoYaml) => sink(skipped(place, "front matter that is no YAML; the rest was read")),
        Some(Broken::TooLong) => {
            sink(refused(place, format!("front matter: at most {MAX_FRONT_MATTER} bytes; the rest was read")))
        }
        Some(Broken::TooManyBrackets) => sink(refused(
            place,
            format!(
                "front matter: at most {MAX_FRONT_BRACKETS} lists and objects in brackets; the rest was read"
            ),
        )),
    }
}

/// The tags of a file, as a list or a line.
pub(super) fn tags(matter: &Value) -> Vec<String> {
    match &matter["tags"] {
        Value::Array(tags) => tags.iter().filter_map(Value::as_str).map(hash_tag).take(MAX_TAGS).collect(),
        Value::String(tags) => {
            let tags = tags.split([',', ' ']).filter(|tag| !tag.is_empty());
            tags.map(hash_tag).take(MAX_TAGS).collect()
        }
        _ => Vec::new(),
    }
}

fn hash_tag(tag: &str) -> String {
    tag.trim_start_matches('#').to_owned()
}

/// The level and the text of a heading.
fn heading(line: &str) -> Option<(usize, &str)> {
    let level = line.bytes().take_while(|byte| *byte == b'#').count();
    let title = line.get(level..)?.strip_prefix(' ')?;
    (1..=6).contains(&level).then(|| (level, start_of(title.trim(), MAX_SHORT)))
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

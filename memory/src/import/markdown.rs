//! Markdown: notes of basic-memory and Obsidian, and the instruction files of coding agents.

use super::bounded::Budget;
use super::{
    Draft, File, MAX_FRONT_DEPTH, MAX_FRONT_MATTER, MAX_NOTE, Sink, refused, skipped, start_of, time,
};
use crate::item::MAX_SHORT;
use serde_json::{Value, json};
use std::io::Read;
use std::ops::ControlFlow;

pub(super) const ABOUT_NOTES: &str = "observations (\"- [category] text #tag\") and relations (\"- type [[Note]]\") of basic-memory \
    become facts, the rest of a note one fact a section of level one or two; front matter, tags and titles are kept as \
    provenance and labels; embedded files are left out";
/// Most tags of a note that become labels.
const MAX_TAGS: usize = 32;
/// Most brackets that open a list or an object in front matter.
const MAX_FRONT_BRACKETS: usize = 1024;

pub(super) const ABOUT_AGENTS: &str = "each bullet and each paragraph becomes a preference (a fact in MEMORY.md), with the headings \
    above it as provenance; code blocks stay with what they belong to";

fn load(file: File, sink: Sink) -> Option<String> {
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

/// The front matter, and the rest. What is no YAML is text like the rest.
fn front_matter(text: &str) -> Result<(Value, &str), String> {
    let none = (json!({}), text);
    let Some((matter, body)) = text.strip_prefix("---\n").and_then(|rest| rest.split_once("\n---")) else {
        return Ok(none);
    };
    if matter.len() > MAX_FRONT_MATTER {
        return Err(format!("front matter: at most {MAX_FRONT_MATTER} bytes"));
    }
    // The library looks at every open bracket again for each token.
    let nested = matter.bytes().filter(|byte| matches!(byte, b'[' | b'{')).count();
    if nested > MAX_FRONT_BRACKETS {
        return Err(format!("front matter: at most {MAX_FRONT_BRACKETS} lists and objects in brackets"));
    }
    let budget = Budget::new(MAX_FRONT_MATTER, MAX_FRONT_DEPTH);
    match budget.read(serde_yaml_ng::Deserializer::from_str(matter)) {
        Ok(matter) if matter.is_object() => Ok((matter, body.trim_start_matches(['-', '\n']))),
        _ => Ok(none),
    }
}

pub(super) fn notes(file: File, sink: Sink) {
    let name = file.name.to_owned();
    if let Some(text) = load(file, sink) {
        let _ = note(&name, &text, sink);
    }
}

struct Note<'a> {
    name: &'a str,
    title: String,
    matter: Value,
    tags: Vec<String>,
}

impl Note<'_> {
    fn draft(&self, text: &str) -> Draft {
        let at = ["created", "created_at", "date", "modified", "updated"]
            .iter()
            .find_map(|n| time(&self.matter[*n]));
        let mut draft = Draft::new("fact", text, "notes")
            .tag("note", Some(&json!(self.name)))
            .tag("title", Some(&json!(self.title)))
            .tag("note_type", self.matter.get("type"))
            .tag("permalink", self.matter.get("permalink"))
            .at(at);
        for tag in &self.tags {
            draft = draft.label(tag);
        }
        draft
    }
}

fn note(name: &str, text: &str, sink: Sink) -> ControlFlow<()> {
    let (matter, body) = match front_matter(text) {
        Ok(parts) => parts,
        Err(reason) => return sink(refused(name.to_owned(), reason)),
    };
    let stem = name.rsplit('/').next().unwrap_or(name).trim_end_matches(".markdown").trim_end_matches(".md");
    let title = start_of(matter["title"].as_str().unwrap_or(stem), MAX_SHORT).to_owned();
    let mut tags: Vec<String> = match &matter["tags"] {
        Value::Array(tags) => tags.iter().filter_map(Value::as_str).map(hash_tag).collect(),
        Value::String(tags) => tags.split([',', ' ']).filter(|t| !t.is_empty()).map(hash_tag).collect(),
        _ => Vec::new(),
    };
    tags.truncate(MAX_TAGS);
    let note = Note { name, title, matter, tags };
    let mut section = (String::new(), String::new());
    let mut number = 0;
    let mut fenced = false;
    for (index, line) in body.lines().enumerate() {
        let place = format!("{name}:{}", index + 1);
        let trimmed = line.trim_start();
        if trimmed.starts_with("```") || trimmed.starts_with("~~~") {
            fenced = !fenced;
        }
        let heading = (!fenced).then(|| heading(line)).flatten();
        if let Some((level, title)) = heading.filter(|(level, _)| *level <= 2) {
            flush(&note, &mut section, &mut number, sink)?;
            let _ = level;
            section.0 = title.to_owned();
            continue;
        }
        let bullet =
            (!fenced).then(|| trimmed.strip_prefix("- ").or_else(|| trimmed.strip_prefix("* "))).flatten();
        if let Some(found) =
            bullet.and_then(|bullet| observation(&note, bullet).or_else(|| relation(&note, bullet)))
        {
            let source = format!("notes:{name}:{}", oap_identity::Hash::of(trimmed.as_bytes()));
            found.send(source, place, sink)?;
            continue;
        }
        section.1.push_str(line);
        section.1.push('\n');
    }
    flush(&note, &mut section, &mut number, sink)?;
    if number == 0 && body.trim().is_empty() {
        return sink(skipped(name.to_owned(), "an empty note"));
    }
    ControlFlow::Continue(())
}

/// Sends the text of a section, if it has any.
fn flush(note: &Note, section: &mut (String, String), number: &mut usize, sink: Sink) -> ControlFlow<()> {
    let (heading, text) = std::mem::take(section);
    let said = text.trim();
    if said.is_empty() || said.chars().all(|c| c == '-' || c.is_whitespace()) {
        return ControlFlow::Continue(());
    }
    let titled = if heading.is_empty() || heading == note.title {
        format!("{}\n{said}", note.title)
    } else {
        format!("{}: {heading}\n{said}", note.title)
    };
    *number += 1;
    let source = format!("notes:{}:{heading}:{number}", note.name);
    let draft = note.draft(&titled).tag("section", Some(&json!(heading)));
    draft.send(source, format!("{}#{heading}", note.name), sink)
}

fn hash_tag(tag: &str) -> String {
    tag.trim_start_matches('#').to_owned()
}

fn heading(line: &str) -> Option<(usize, &str)> {
    let level = line.bytes().take_while(|byte| *byte == b'#').count();
    let title = line.get(level..)?.strip_prefix(' ')?;
    (1..=6).contains(&level).then(|| (level, start_of(title.trim(), MAX_SHORT)))
}

/// `[category] text #tag (context)`; check boxes are none.
fn observation(note: &Note, bullet: &str) -> Option<Draft> {
    let (category, text) = bullet.strip_prefix('[')?.split_once("] ")?;
    if category.len() <= 1 || category.contains('[') || category.len() > 64 {
        return None;
    }
    let mut draft = note
        .draft(&format!("{}: {}", note.title, text.trim()))
        .tag("category", Some(&json!(category)))
        .subject(Some(&note.title))
        .label(category);
    for tag in text.split_whitespace().filter(|word| word.len() > 1 && word.starts_with('#')) {
        draft = draft.label(&hash_tag(tag));
    }
    Some(draft)
}

/// `relation_type [[Target]] (context)`
fn relation(note: &Note, bullet: &str) -> Option<Draft> {
    let (how, rest) = bullet.split_once("[[")?;
    let (target, _) = rest.split_once("]]")?;
    let how = how.trim();
    if how.is_empty() || how.len() > 64 || how.contains(['.', ',', ':']) {
        return None;
    }
    let members = [("from", note.title.as_str()), ("relationType", how), ("to", target)];
    let structured = members.iter().map(|(n, v)| ((*n).to_owned(), json!(v))).collect();
    let draft = note.draft(&format!("{} {} {target}", note.title, how.replace('_', " ")));
    Some(draft.structured(structured).subject(Some(&note.title)).label("relation"))
}

pub(super) fn agents(file: File, sink: Sink) {
    let name = file.name.to_owned();
    if let Some(text) = load(file, sink) {
        let _ = instructions(&name, &text, sink);
    }
}

fn instructions(name: &str, text: &str, sink: Sink) -> ControlFlow<()> {
    let base = name.rsplit('/').next().unwrap_or(name);
    let kind = if base.eq_ignore_ascii_case("memory.md") { "fact" } else { "preference" };
    let (_, body) = match front_matter(text) {
        Ok(parts) => parts,
        Err(reason) => return sink(refused(name.to_owned(), reason)),
    };
    let mut headings: Vec<(usize, String)> = Vec::new();
    let mut block = String::new();
    let mut began = 1;
    let mut fenced = false;
    let mut send = |block: &mut String, headings: &[(usize, String)], line: usize| {
        let said = std::mem::take(block);
        let said = said.trim();
        let said = said.strip_prefix("- ").or_else(|| said.strip_prefix("* ")).unwrap_or(said).trim();
        if said.is_empty() || said.chars().all(|c| matches!(c, '-' | '*' | '_')) {
            return ControlFlow::Continue(());
        }
        let path: Vec<&str> = headings.iter().map(|(_, title)| title.as_str()).collect();
        Draft::new(kind, said, "agents-md")
            .tag("file", Some(&json!(name)))
            .tag("section", Some(&json!(path.join(" > "))))
            .label(base)
            .send(
                format!("agents-md:{name}:{}:{}", path.join(">"), oap_identity::Hash::of(said.as_bytes())),
                format!("{name}:{line}"),
                sink,
            )
    };
    for (index, line) in body.lines().enumerate() {
        let fence = line.trim_start().starts_with("```");
        let new_bullet = !fenced && (line.starts_with("- ") || line.starts_with("* "));
        if !fenced && let Some((level, title)) = heading(line) {
            send(&mut block, &headings, began)?;
            headings.retain(|(above, _)| *above < level);
            headings.push((level, title.to_owned()));
            continue;
        }
        if !fenced && (line.trim().is_empty() || new_bullet) {
            send(&mut block, &headings, began)?;
        }
        if block.is_empty() {
            began = index + 1;
        }
        fenced ^= fence;
        if !line.trim().is_empty() || fenced {
            block.push_str(line);
            block.push('\n');
        }
    }
    send(&mut block, &headings, began)
}

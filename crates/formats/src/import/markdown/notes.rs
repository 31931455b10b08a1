//! Notes of basic-memory and Obsidian.

use super::{Pieces, front_matter, hash_tag, heading, load, tags, tell_broken};
use crate::import::{
    Draft, File, Format, Importer, Likeness, Looks, Reach, Sink, looks::Shape, skipped, start_of, time,
};
use oap_identity::Hash;
use oap_memory::item::MAX_SHORT;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::ops::ControlFlow;

const ABOUT: &str = "observations (\"- [category] text #tag\") and relations (\"- type [[Note]] \
    (context)\") of basic-memory become facts, the rest of a note one fact a section of level one or two; tasks and lines \
    with links stay text; front matter, tags and titles are kept as provenance and labels; an observation that was edited \
    is corrected, one that is gone stays; embedded and hidden files and canvases are left out";

const FROM: &str = "notes";

pub(in crate::import) const IMPORTER: Importer =
    Importer { format: Format::Notes, about: ABOUT, general: true, account_id: None, recognises, read };

fn recognises(looks: &Looks) -> Likeness {
    Likeness::perhaps(looks.shape == Shape::Markdown)
}

fn read(file: File, sink: Sink) {
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
        let mut draft = Draft::new("fact", text, FROM)
            .tag("note", Some(&json!(self.name)))
            .tag("title", Some(&json!(self.title)))
            .tag("note_type", self.matter.get("type"))
            .tag("permalink", self.matter.get("permalink"))
            .at(at)
            .reach(Reach::Path);
        for tag in &self.tags {
            draft = draft.label(tag);
        }
        draft
    }
}

fn note(name: &str, text: &str, sink: Sink) -> ControlFlow<()> {
    let matter = front_matter(text);
    tell_broken(&matter, name, sink)?;
    let stem = name.rsplit('/').next().unwrap_or(name).trim_end_matches(".markdown").trim_end_matches(".md");
    let title = start_of(matter.values["title"].as_str().unwrap_or(stem), MAX_SHORT).to_owned();
    let tags = tags(&matter.values);
    let (body, before) = (matter.body, matter.lines);
    let note = Note { name, title, matter: matter.values, tags };
    let mut pieces = Pieces::default();
    let mut section = Section::default();
    let mut known = BTreeMap::new();
    let mut fenced = false;
    for (index, line) in body.lines().enumerate() {
        let place = format!("{name}:{}", before + index + 1);
        let trimmed = line.trim_start();
        if trimmed.starts_with("```") || trimmed.starts_with("~~~") {
            fenced = !fenced;
        }
        let heading = (!fenced).then(|| heading(line)).flatten();
        if let Some((_, title)) = heading.filter(|(level, _)| *level <= 2) {
            section.end(&note, &mut known, &mut pieces);
            section.heading = title.to_owned();
            continue;
        }
        let bullet =
            (!fenced).then(|| trimmed.strip_prefix("- ").or_else(|| trimmed.strip_prefix("* "))).flatten();
        if is_embed(bullet.unwrap_or(trimmed)) && !fenced {
            sink(skipped(place, "an embedded file"))?;
            continue;
        }
        let found = |group: &str, draft: Option<Draft>| Some(draft?.group(Some(&format!("{FROM}:{group}"))));
        if let Some(draft) = bullet.and_then(|bullet| {
            found("observations", observation(&note, bullet))
                .or_else(|| found("relations", relation(&note, bullet)))
        }) {
            pieces.push(format!("{FROM}:{}", Hash::of(trimmed.as_bytes())), place, draft);
            continue;
        }
        section.text.push_str(line);
        section.text.push('\n');
    }
    section.end(&note, &mut known, &mut pieces);
    if pieces.0.is_empty() {
        return sink(skipped(name.to_owned(), "an empty note"));
    }
    pieces.send(sink)
}

/// The text under a heading, without the facts in it.
#[derive(Default)]
struct Section {
    heading: String,
    text: String,
}

impl Section {
    /// Makes a piece of it, if it has any text. It is told apart by its heading: the first of that name, the second.
    fn end(&mut self, note: &Note, known: &mut BTreeMap<String, usize>, pieces: &mut Pieces) {
        let Self { heading, text } = std::mem::take(self);
        let said = text.trim();
        if said.is_empty() || said.chars().all(|c| c == '-' || c.is_whitespace()) {
            return;
        }
        let titled = if heading.is_empty() || heading == note.title {
            format!("{}\n{said}", note.title)
        } else {
            format!("{}: {heading}\n{said}", note.title)
        };
        let number = known.entry(heading.clone()).or_default();
        *number += 1;
        let source = format!("{FROM}:section:{number}:{heading}");
        let draft = note.draft(&titled).tag("section", Some(&json!(heading)));
        pieces.push(source, format!("{}#{heading}", note.name), draft);
    }
}

/// Whether a line shows another file and says nothing itself: `![[a.pdf]]`, `![alt](a.png)`.
fn is_embed(line: &str) -> bool {
    let Some(rest) = line.trim().strip_prefix('!') else { return false };
    let wiki = rest.strip_prefix("[[").and_then(|r| r.strip_suffix("]]")).is_some_and(|r| !r.contains("]]"));
    let link = rest
        .strip_prefix('[')
        .and_then(|r| r.strip_suffix(')'))
        .is_some_and(|r| r.matches("](").count() == 1);
    wiki || link
}

/// `[category] text #tag (context)`; check boxes and links are none.
fn observation(note: &Note, bullet: &str) -> Option<Draft> {
    let (category, text) = bullet.strip_prefix('[')?.split_once("] ")?;
    if category.len() <= 1 || category.contains(['[', ']', '(']) || category.len() > 64 {
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

/// `relation_type [[Target]] (context)`, the type in quotes where it has several words; a line that says more is text.
fn relation(note: &Note, bullet: &str) -> Option<Draft> {
    let (how, rest) = bullet.split_once("[[")?;
    let (target, context) = rest.split_once("]]")?;
    let how = how.trim();
    let how = how.strip_prefix('"').and_then(|how| how.strip_suffix('"')).unwrap_or(how);
    if how.is_empty() || how.len() > 64 || how.contains(['.', ',', ':', '[', ']', '!', '"', '(']) {
        return None;
    }
    let context = context.trim();
    let inner = context.strip_prefix('(').and_then(|inner| inner.strip_suffix(')'));
    if inner.is_none() && !context.is_empty() {
        return None;
    }
    // Each piece of a long text has them.
    if target.len() > MAX_SHORT || context.len() > MAX_SHORT {
        return None;
    }
    let mut members = vec![("from", note.title.as_str()), ("relationType", how), ("to", target)];
    members.extend(inner.map(|inner| ("context", inner)));
    let structured = members.iter().map(|(n, v)| ((*n).to_owned(), json!(v))).collect();
    let said = format!("{} {} {target} {context}", note.title, how.replace('_', " "));
    let draft = note.draft(said.trim_end());
    Some(draft.structured(structured).subject(Some(&note.title)).label("relation"))
}

//! The Open Knowledge Format 0.2 (`okf/SPEC.md` of GoogleCloudPlatform/knowledge-catalog): a folder of markdown files
//! with front matter, one concept a file.

use super::markdown::{front_matter, load, tags, tell_broken};
use super::{Draft, File, Format, Importer, Likeness, Looks, Reach, Sink, looks::Shape, skipped, time};
use oap_memory::item::Kind;
use serde_json::{Map, Value, json};
use std::ops::ControlFlow;

const ABOUT: &str = "each concept becomes one fact, or the kind that its type names, with title and description before \
    the body; type, resource, sources, generated, verified, status, stale_after and all other front matter are kept as \
    structured content, tags as labels, generated.at (timestamp in 0.1) as time; index.md and log.md are left out";

const FROM: &str = "okf";
/// Front matter that only this format has; `type` alone says nothing.
const OWN: [&str; 7] =
    ["generated:", "verified:", "stale_after:", "sources:", "resource:", "okf_version:", "usage_window:"];

/// Whether the front matter is a concept's: a type, and something that no other notes have.
fn is_concept(text: &str) -> bool {
    let Some(matter) = matter_of(text) else { return false };
    let has = |name: &str| matter.lines().any(|line| line.starts_with(name));
    has("type:") && !has("permalink:") && OWN.iter().any(|name| has(name))
}

/// Whether a file is an index or a log of a bundle: by its name and, for other folders have such files too, its shape.
pub(super) fn is_reserved(name: &str, head: &str) -> bool {
    match name.rsplit('/').next().unwrap_or(name) {
        "index.md" => {
            matter_of(head).is_some_and(|matter| matter.lines().any(|l| l.starts_with("okf_version:")))
        }
        "log.md" => matter_of(head).is_none() && head.trim_start().starts_with("# Directory Update Log"),
        _ => false,
    }
}

fn matter_of(text: &str) -> Option<&str> {
    let rest = text.trim_start_matches('\u{feff}');
    let rest = rest.strip_prefix("---\n").or_else(|| rest.strip_prefix("---\r\n"))?;
    Some(rest.split_once("\n---")?.0)
}

pub(super) const IMPORTER: Importer =
    Importer { format: Format::Okf, about: ABOUT, general: true, account_id: None, recognises, read };

fn recognises(looks: &Looks) -> Likeness {
    Likeness::sure(looks.shape == Shape::Markdown && is_concept(&looks.text))
}

fn read(file: File, sink: Sink) {
    let name = file.name.to_owned();
    if let Some(text) = load(file, sink) {
        let _ = concept(&name, &text, sink);
    }
}

fn concept(name: &str, text: &str, sink: Sink) -> ControlFlow<()> {
    let base = name.rsplit('/').next().unwrap_or(name);
    if matches!(base, "index.md" | "log.md") {
        return sink(skipped(name.to_owned(), "an index or a log of Open Knowledge Format"));
    }
    let matter = front_matter(text);
    tell_broken(&matter, name, sink)?;
    let body = matter.body.trim();
    let Value::Object(mut values) = matter.values else { return ControlFlow::Continue(()) };
    let tags = tags(&Value::Object(values.clone()));
    let taken = |values: &mut Map<String, Value>, name: &str| match values.remove(name) {
        Some(Value::String(text)) => text,
        _ => String::new(),
    };
    let title = taken(&mut values, "title");
    let description = taken(&mut values, "description");
    let own_structured = match values.remove("structured") {
        Some(Value::Object(structured)) => structured,
        _ => Map::new(),
    };
    let said = match said(&title, &description, body) {
        said if said.is_empty() && own_structured.is_empty() => base.trim_end_matches(".md").to_owned(),
        said => said,
    };
    values.remove("tags");
    let concept = taken(&mut values, "type");
    let own = concept.parse::<Kind>().is_ok();
    let at = [values.get("generated").map(|generated| &generated["at"]), values.get("timestamp")];
    let at = at.into_iter().flatten().find_map(time);
    let confidence = values.get("confidence").and_then(Value::as_f64).filter(|c| (0.0..=1.0).contains(c));
    let subject = taken(&mut values, "subject");
    let kind = if own { concept.as_str() } else { "fact" };
    let mut draft = Draft::new(kind, &said, FROM)
        .tag("note", Some(&json!(name)))
        .tag("title", Some(&json!(title)))
        .subject(Some(&subject))
        .at(at)
        .reach(Reach::Path);
    if let Some(confidence) = confidence {
        values.remove("confidence");
        draft = draft.confidence(confidence);
    }
    if let Some(end) = values.remove("expires_at").as_ref().and_then(time) {
        draft.item["expires_at"] = json!(end);
    }
    for tag in tags.iter().filter(|tag| *tag != FROM) {
        draft = draft.label(tag);
    }
    if values.get("status") == Some(&json!("deprecated")) {
        draft = draft.label("deprecated");
    }
    if !own && !concept.is_empty() {
        values.insert("type".to_owned(), json!(concept));
    }
    if !description.is_empty() {
        values.insert("description".to_owned(), json!(description));
    }
    // Written by our own export, which made up what is not told.
    if values.get("generated").is_some_and(|generated| generated["by"] == "process:oap-memory") {
        values.remove("generated");
    }
    let mut structured = own_structured;
    if !values.is_empty() {
        structured.insert(FROM.to_owned(), Value::Object(values));
    }
    draft.structured(structured).send(FROM.to_owned(), name.to_owned(), sink)
}

/// The body under its title and description, where it does not begin with them.
fn said(title: &str, description: &str, body: &str) -> String {
    let plain = body.trim_start_matches(['#', ' ']);
    let above = |text: &str| !text.is_empty() && !plain.starts_with(text);
    let mut lines = Vec::new();
    lines.extend(above(title).then_some(title));
    lines.extend(above(description).then_some(description));
    lines.extend((!body.is_empty()).then_some(body));
    lines.join("\n")
}

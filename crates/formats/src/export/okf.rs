//! A concept of the Open Knowledge Format 0.2: a markdown file with front matter.
//!
//! What the format has no name for stands under names of ours (`subject`, `confidence`, `structured`, `expires_at`), as
//! it allows; front matter that came from such a file is written back.

use super::{Exporter, Form, Index, Layout, front_matter, labels};
use serde_json::{Map, Value, json};

pub(super) const EXPORTER: Exporter =
    Exporter { form: Form::Okf, layout: Layout::Folder(Some(INDEX)), write };

const INDEX: Index =
    Index { name: "index.md", before: "---\nokf_version: \"0.2\"\n---\n\n# Memory\n\n", entry };

/// The line of an item in the index of its folder.
fn entry(item: &Value, file: &str) -> String {
    let title = title(item).replace(['[', ']'], "");
    format!("* [{}]({file}) - {}\n", if title.is_empty() { file } else { &title }, word(&item["kind"]))
}

fn write(item: &Value) -> String {
    let structured = &item["content"]["structured"];
    let kept = structured["okf"].as_object().filter(|_| structured.as_object().is_some_and(|s| s.len() == 1));
    let mut matter: Map<String, Value> = kept.cloned().unwrap_or_default();
    let given = item["provenance"]["title"].as_str().unwrap_or_default();
    let mut body = word(&item["content"]["text"]);
    if kept.is_some() {
        // The lines that the import put above the body.
        for above in [given, matter.get("description").map_or("", word)] {
            body = match body.strip_prefix(above) {
                Some("") => "",
                Some(rest) => rest.strip_prefix('\n').unwrap_or(body),
                None => body,
            };
        }
    } else if structured.is_object() {
        matter.insert("structured".to_owned(), structured.clone());
    }
    matter.entry("type").or_insert_with(|| item["kind"].clone());
    matter.insert("title".to_owned(), json!(title(item)));
    matter.insert("tags".to_owned(), json!(labels(item)));
    matter
        .entry("generated")
        .or_insert_with(|| json!({"by": "process:oap-memory", "at": item["provenance"]["captured_at"]}));
    matter.insert("subject".to_owned(), item["subject_entity_id"].clone());
    matter.insert("confidence".to_owned(), item["provenance"]["confidence"].clone());
    matter.insert("expires_at".to_owned(), item["expires_at"].clone());
    matter.retain(|_, value| !value.is_null() && *value != "");
    let matter = front_matter(&matter);
    format!("---\n{matter}---\n\n{body}\n")
}

/// The title that the item came with, or else its first line.
fn title(item: &Value) -> String {
    let given = word(&item["provenance"]["title"]);
    let line = word(&item["content"]["text"]).lines().next().unwrap_or_default();
    let line = if given.is_empty() { line.trim_start_matches(['#', ' ']) } else { given };
    line.chars().take(60).collect::<String>().trim().to_owned()
}

fn word(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

//! A markdown file with front matter.

use super::{Exporter, Form, Layout, front_matter, labels, said};
use serde_json::{Value, json};

pub(super) const EXPORTER: Exporter = Exporter { form: Form::Markdown, layout: Layout::Folder(None), write };

fn write(item: &Value) -> String {
    let matter = json!({
        "title": title(item), "type": item["kind"], "permalink": item["item_id"], "tags": labels(item),
        "scope": item["scope_id"], "subject": item["subject_entity_id"],
        "created": item["provenance"]["captured_at"], "confidence": item["provenance"]["confidence"],
    });
    let members: serde_json::Map<String, Value> = matter
        .as_object()
        .into_iter()
        .flatten()
        .filter(|(_, v)| !v.is_null())
        .map(|(n, v)| (n.clone(), v.clone()))
        .collect();
    let matter = front_matter(&members);
    let mut text = format!("---\n{matter}---\n\n{}\n", said(item));
    if item["content"]["text"].is_string() && item["content"]["structured"].is_object() {
        let structured = serde_json::to_string_pretty(&item["content"]["structured"]).unwrap_or_default();
        text.push_str(&format!("\n```json\n{structured}\n```\n"));
    }
    text
}

fn title(item: &Value) -> String {
    let said = said(item);
    let line = said.lines().next().unwrap_or_default();
    line.chars().take(60).collect()
}

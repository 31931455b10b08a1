//! Entries of OpenIntent RFC-0015: a list, `{"entries": [...]}`, or one object a line.

use super::{Draft, File, Format, Importer, Likeness, Looks, Reach, Sink, json, skipped, text, time};
use serde_json::{Map, Value, json};
use std::ops::ControlFlow;

const ABOUT: &str = "episodic and semantic entries become facts with namespace, key and value as structured content, \
    tags as labels, and agent, tier, scope, version and times as provenance; expires_at is kept; working memory is a \
    scratch pad and is left out";

const FROM: &str = "openintent";

pub(super) const IMPORTER: Importer =
    Importer { format: Format::OpenIntent, about: ABOUT, general: false, account_id: None, recognises, read };

fn recognises(looks: &Looks) -> Likeness {
    Likeness::sure(looks.member("memory_type") && looks.member("namespace"))
}

fn read(file: File, sink: Sink) {
    let name = file.name.to_owned();
    json::each(file, &["entries", "items", "results", "memories"], sink, |_, number, value, sink| {
        let place = format!("{name}[{number}]");
        if value.get("namespace").is_none() && value.get("key").is_none() {
            return ControlFlow::Continue(());
        }
        entry(&value, &place, sink)
    });
}

fn entry(entry: &Value, place: &str, sink: Sink) -> ControlFlow<()> {
    let (agent, namespace, key) = (text(entry, "agent_id"), text(entry, "namespace"), text(entry, "key"));
    if namespace.is_empty() || key.is_empty() {
        return sink(super::refused(place.to_owned(), "an entry needs namespace and key"));
    }
    if entry["memory_type"] == "working" {
        return sink(skipped(place.to_owned(), "working memory"));
    }
    let structured = Map::from_iter([
        ("namespace".to_owned(), json!(namespace)),
        ("key".to_owned(), json!(key)),
        ("value".to_owned(), entry["value"].clone()),
    ]);
    let mut draft = Draft::new("fact", "", FROM)
        .structured(structured)
        .tag("agent", Some(&json!(agent)))
        .tag("tier", entry.get("memory_type"))
        .tag("context", entry.get("scope").filter(|s| s.as_object().is_some_and(|s| !s.is_empty())))
        .tag("entry", entry.get("id"))
        .tag("entry_version", entry.get("version"))
        .tag("changed_at", entry.get("updated_at"))
        .at(time(&entry["created_at"]))
        .confidence(0.8)
        .reach(Reach::of(agent, Reach::File));
    for tag in entry["tags"].as_array().into_iter().flatten().filter_map(Value::as_str) {
        draft = draft.label(tag);
    }
    if let Some(end) = time(&entry["expires_at"]) {
        draft.item["expires_at"] = json!(end);
    }
    draft.send(format!("{FROM}:{agent}:{namespace}:{key}"), place.to_owned(), sink)
}

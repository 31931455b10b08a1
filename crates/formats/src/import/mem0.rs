//! mem0: what `get_all` returns, or its export.

use super::{Draft, File, Format, Importer, Likeness, Looks, Reach, Sink, json, skipped, text, time};
use serde_json::{Map, Value, json};
use std::ops::ControlFlow;

const ABOUT: &str = "memories become facts (preferences where a category says so) with user, agent, run, metadata \
    and times as provenance, and expire when they did there; relations of the graph become facts; scores and hashes are left out";

const FROM: &str = "mem0";

pub(super) const IMPORTER: Importer =
    Importer { format: Format::Mem0, about: ABOUT, general: false, account_id: None, recognises, read };

/// Memories of somebody, in a list or not; or the export of none.
fn recognises(looks: &Looks) -> Likeness {
    let listed = looks.member("results") || looks.member("memories");
    let owned = looks.member("user_id") || looks.member("agent_id") || looks.member("hash");
    let memory = looks.member("memory") && (listed || owned);
    let data = looks.member("data") && looks.member("id") && owned;
    let empty = ["{\"results\":[]", "{\"memories\":[]"].iter().any(|empty| looks.begins(empty));
    Likeness::perhaps(memory || data || empty)
}

fn read(file: File, sink: Sink) {
    let name = file.name.to_owned();
    let mut found = false;
    json::each(file, &["results", "memories", "relations"], sink, |list, number, value, sink| {
        let list_name = if list.is_empty() { String::new() } else { format!(".{list}") };
        let place = format!("{name}{list_name}[{number}]");
        let told = text_of(&value).is_some();
        if list.is_empty() && !told && value.get("id").is_none() {
            // The document itself, without its lists: it comes last.
            return if found {
                ControlFlow::Continue(())
            } else {
                sink(skipped(name.clone(), "no memories in it"))
            };
        }
        found = true;
        if list == "relations" { relation(&value, &place, sink) } else { memory(&value, &place, sink) }
    });
}

/// What a memory says: `memory`, or in older exports and webhooks `data`.
fn text_of(memory: &Value) -> Option<&str> {
    let data = &memory["data"];
    let said =
        [&memory["memory"], data, &data["memory"], &memory["text"]].into_iter().filter_map(Value::as_str);
    said.map(str::trim).find(|said| !said.is_empty())
}

fn memory(memory: &Value, place: &str, sink: Sink) -> ControlFlow<()> {
    let Some(said) = text_of(memory) else { return sink(skipped(place.to_owned(), "no memory in it")) };
    let categories: Vec<&str> =
        memory["categories"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    let kind = if categories.iter().any(|c| c.contains("preference")) { "preference" } else { "fact" };
    let id = memory["id"]
        .as_str()
        .map_or_else(|| oap_identity::Hash::of(said.as_bytes()).to_string(), str::to_owned);
    let mut draft = Draft::new(kind, said, FROM)
        .tag("memory", memory.get("id"))
        .tag("user", memory.get("user_id"))
        .tag("agent", memory.get("agent_id"))
        .tag("run", memory.get("run_id"))
        .tag("metadata", memory.get("metadata").filter(|m| m.as_object().is_some_and(|m| !m.is_empty())))
        .tag("changed_at", memory.get("updated_at"))
        .at(time(&memory["created_at"]))
        .confidence(0.8)
        .reach(if memory["id"].is_string() { Reach::of(&id, Reach::File) } else { Reach::World })
        .account(&memory["user_id"]);
    if let Some(end) = time(&memory["expiration_date"]) {
        draft.item["expires_at"] = json!(end);
    }
    for category in categories {
        draft = draft.label(category);
    }
    draft.send(format!("{FROM}:{id}"), place.to_owned(), sink)
}

fn relation(relation: &Value, place: &str, sink: Sink) -> ControlFlow<()> {
    let end = |names: [&str; 2]| {
        names.iter().map(|n| text(relation, n)).find(|t| !t.is_empty()).unwrap_or_default()
    };
    let (from, how, to) =
        (end(["source", "source"]), end(["relationship", "relation"]), end(["target", "destination"]));
    if from.is_empty() || how.is_empty() || to.is_empty() {
        return sink(super::refused(place.to_owned(), "a relation needs source, relationship and target"));
    }
    let structured = [("source", from), ("relationship", how), ("target", to)];
    Draft::new("fact", &format!("{from} {} {to}", how.replace('_', " ")), FROM)
        .label("relation")
        .structured(structured.iter().map(|(n, v)| ((*n).to_owned(), json!(v))).collect::<Map<_, _>>())
        .subject(Some(from))
        .confidence(0.8)
        .send(format!("{FROM}:relation:{from}:{how}:{to}"), place.to_owned(), sink)
}

//! ChatGPT's data export: `conversations.json` (or its numbered parts) and `memory.json`.
//!
//! A conversation is a tree (`mapping`) of messages; `current_node` is the leaf of the thread that the person sees.

mod marks;
mod order;
mod own;

use super::{Draft, File, Format, Importer, Likeness, Looks, MAX_ID, Reach, Sink, json, skipped, text, time};
use oap_identity::Timestamp;
use oap_identity::json::parse_foreign;
use serde_json::{Map, Value, json};
use std::collections::BTreeSet;
use std::ops::ControlFlow;

const ABOUT: &str = "messages of user and assistant become conversation turns, on abandoned branches too \
    (label \"branch\"); titles, ids, parents, models and times are kept as provenance; citations become links or go; custom \
    instructions become preferences, saved memories facts, canvases document references; messages of the system or of \
    tools, calls of tools, what the vendor hides, images and audio are left out, and so is the account's own data \
    (user.json), but for its id, which tells two accounts apart";

const FROM: &str = "chatgpt";

pub(super) const IMPORTER: Importer = Importer {
    format: Format::Chatgpt,
    about: ABOUT,
    general: false,
    account_id: Some("id"),
    recognises,
    read,
};

/// The tree of a conversation; or the saved memories, which are told by the file's name.
fn recognises(looks: &Looks) -> Likeness {
    let known = ["current_node", "conversation_id", "create_time"];
    if looks.member("mapping") && known.iter().any(|name| looks.member(name)) {
        return Likeness::Sure;
    }
    let memories = looks.base.starts_with("memor") && looks.base.ends_with(".json");
    Likeness::perhaps(memories && looks.member("enabled"))
}

fn read(file: File, sink: Sink) {
    let name = file.name.to_owned();
    json::each(file, &["memories", "conversations"], sink, |_, number, value, sink| {
        let place = format!("{name}[{number}]");
        match value {
            Value::Object(members) if members.contains_key("mapping") => {
                conversation(&Value::Object(members), &place, sink)
            }
            Value::Object(members) if members.is_empty() => ControlFlow::Continue(()),
            Value::Object(members) => memory(&Value::Object(members), &place, sink),
            _ => sink(super::refused(place, "neither a conversation nor a memory")),
        }
    });
}

fn memory(memory: &Value, place: &str, sink: Sink) -> ControlFlow<()> {
    let said =
        ["content", "memory", "text"].iter().map(|name| text(memory, name)).find(|t| !t.trim().is_empty());
    let Some(said) = said else { return sink(skipped(place.to_owned(), "no memory in it")) };
    if memory["enabled"] == false {
        return sink(skipped(place.to_owned(), "a memory that was switched off"));
    }
    let at =
        ["created_at", "create_time", "updated_at", "timestamp"].iter().find_map(|name| time(&memory[*name]));
    let id = memory["id"]
        .as_str()
        .map_or_else(|| oap_identity::Hash::of(said.as_bytes()).to_string(), str::to_owned);
    let reach = if memory["id"].is_string() { Reach::of(&id, Reach::Account) } else { Reach::World };
    saved(said.trim(), at).tag("memory", Some(&memory["id"])).reach(reach).send(
        format!("{FROM}:memory:{id}"),
        place.to_owned(),
        sink,
    )
}

/// Something that ChatGPT remembered by itself.
fn saved(said: &str, at: Option<Timestamp>) -> Draft {
    Draft::new("fact", said, FROM).label("memory").at(at).confidence(0.8)
}

/// A conversation, as its messages need it.
struct Thread<'a> {
    id: &'a str,
    title: &'a Value,
    mapping: &'a Map<String, Value>,
    /// The nodes that the person sees.
    seen: BTreeSet<&'a str>,
}

fn conversation(conversation: &Value, place: &str, sink: Sink) -> ControlFlow<()> {
    let id = [&conversation["conversation_id"], &conversation["id"]].into_iter().find_map(Value::as_str);
    let Some(id) = id.filter(|id| id.len() <= MAX_ID) else {
        return sink(super::refused(place.to_owned(), "a conversation without id"));
    };
    let Some(mapping) = conversation["mapping"].as_object() else {
        return sink(super::refused(place.to_owned(), "mapping: must be an object"));
    };
    let thread =
        Thread { id, title: &conversation["title"], mapping, seen: thread_of(conversation, mapping) };
    let began = time(&conversation["create_time"]);
    for (id, at) in order::of(mapping) {
        let message = &mapping[id]["message"];
        if !message.is_null() {
            thread.message(id, message, at.or(began), &format!("{place}.mapping.{id}"), sink)?;
        }
    }
    ControlFlow::Continue(())
}

impl Thread<'_> {
    fn message(
        &self,
        id: &str,
        message: &Value,
        at: Option<Timestamp>,
        place: &str,
        sink: Sink,
    ) -> ControlFlow<()> {
        match message["content"]["content_type"].as_str() {
            Some("user_editable_context") => return own::instructions(message, place, sink),
            Some("model_editable_context") => return own::memories(&message["content"], place, sink),
            _ => {}
        }
        let role = text(&message["author"], "role");
        let said = marks::clean(&said(&message["content"]), &message["metadata"]);
        let said = said.trim();
        let recipient = message["recipient"].as_str().unwrap_or("all");
        let hidden = message["weight"].as_f64() == Some(0.0)
            || message["metadata"]["is_visually_hidden_from_conversation"] == true;
        let source = format!("{FROM}:{}:{id}", self.id);
        let why = match (role, recipient) {
            ("assistant", "bio") if !said.is_empty() => {
                return self.told(saved(said, at), id).send(source, place.to_owned(), sink);
            }
            ("user" | "assistant", _) if hidden => "hidden in the conversation",
            ("assistant", "canmore.create_textdoc") => return self.canvas(id, message, at, place, sink),
            ("assistant", to) if !matches!(to, "all" | "") => "a call of a tool",
            ("user" | "assistant", _) if said.is_empty() => "no text in it",
            ("user" | "assistant", _) => {
                let node = &self.mapping[id];
                let draft = Draft::new("conversation_turn", said, FROM)
                    .structured(Map::from_iter([("role".to_owned(), json!(role))]))
                    .tag("parent", parent(node, self.mapping).as_ref())
                    .tag("model", Some(&message["metadata"]["model_slug"]))
                    .at(at);
                return self.told(draft, id).send(source, place.to_owned(), sink);
            }
            _ => "a message of the system or of a tool",
        };
        sink(skipped(place.to_owned(), why))
    }

    /// With where in the conversation it was told.
    fn told(&self, draft: Draft, id: &str) -> Draft {
        let draft = draft
            .tag("thread", Some(&json!(self.id)))
            .tag("thread_title", Some(self.title))
            .tag("message", Some(&json!(id)))
            .reach(Reach::of(self.id, Reach::Account));
        if self.seen.contains(id) { draft } else { draft.label("branch") }
    }

    /// A document beside the conversation, as it was made; later changes are patches and are left out.
    fn canvas(
        &self,
        id: &str,
        message: &Value,
        at: Option<Timestamp>,
        place: &str,
        sink: Sink,
    ) -> ControlFlow<()> {
        let call = parse_foreign(&said(&message["content"])).unwrap_or_default();
        let content = text(&call, "content").trim();
        if content.is_empty() {
            return sink(skipped(place.to_owned(), "a call of a tool"));
        }
        let draft = Draft::new("document_reference", content, FROM)
            .tag("file_name", call.get("name"))
            .tag("document_type", call.get("type"))
            .at(at);
        self.told(draft, id).send(format!("{FROM}:{}:{id}:canvas", self.id), place.to_owned(), sink)
    }
}

/// The nodes on the way from the leaf that the person sees up to the root; all of them where no leaf is named.
fn thread_of<'a>(conversation: &'a Value, mapping: &'a Map<String, Value>) -> BTreeSet<&'a str> {
    let Some(mut node) = conversation["current_node"].as_str() else {
        return mapping.keys().map(String::as_str).collect();
    };
    let mut seen = BTreeSet::new();
    // Each node once: a forged tree may have rings.
    while seen.insert(node) {
        match mapping.get(node).and_then(|n| n["parent"].as_str()) {
            Some(parent) => node = parent,
            None => break,
        }
    }
    seen
}

/// Most nodes between a message and the one that it answers.
const MAX_STEPS: usize = 64;

/// The nearest node above that says something.
fn parent(node: &Value, mapping: &Map<String, Value>) -> Option<Value> {
    let mut at = node["parent"].as_str()?;
    for _ in 0..MAX_STEPS {
        let parent = mapping.get(at)?;
        let role = parent["message"]["author"]["role"].as_str();
        if matches!(role, Some("user" | "assistant")) {
            return Some(json!(at));
        }
        at = parent["parent"].as_str()?;
    }
    None
}

/// The text of a message: parts that are text, transcripts, and code.
fn said(content: &Value) -> String {
    match content["content_type"].as_str().unwrap_or("text") {
        "text" | "multimodal_text" => {
            let parts = content["parts"].as_array().map(Vec::as_slice).unwrap_or_default();
            let texts: Vec<&str> =
                parts.iter().filter_map(|part| part.as_str().or_else(|| part["text"].as_str())).collect();
            texts.join("\n")
        }
        "code" => text(content, "text").to_owned(),
        _ => String::new(),
    }
}

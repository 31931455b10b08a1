//! ChatGPT's data export: `conversations.json` (or its numbered parts) and `memory.json`.
//!
//! A conversation is a tree (`mapping`) of messages; `current_node` is the leaf of the thread that the person sees.

use super::{Draft, File, MAX_ID, Sink, json, skipped, text, time};
use serde_json::{Map, Value, json};
use std::collections::BTreeSet;
use std::ops::ControlFlow;

pub(super) const ABOUT: &str = "messages of user and assistant become conversation turns, on abandoned branches too \
    (label \"branch\"); titles, ids, parents, models and times are kept as provenance; custom instructions become \
    preferences, saved memories facts; system and tool messages, images and audio are left out";

const FROM: &str = "chatgpt";

pub(super) fn read(file: File, sink: Sink) {
    let name = file.name.to_owned();
    json::each(file, &["memories", "conversations"], sink, |_, number, value, sink| {
        let place = format!("{name}[{number}]");
        match value {
            Value::Object(members) if members.contains_key("mapping") => {
                conversation(&value_of(members), &place, sink)
            }
            Value::Object(members) if members.is_empty() => ControlFlow::Continue(()),
            Value::Object(members) => memory(&value_of(members), &place, sink),
            _ => sink(super::refused(place, "neither a conversation nor a memory")),
        }
    });
}

fn value_of(members: Map<String, Value>) -> Value {
    Value::Object(members)
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
    Draft::new("fact", said.trim(), FROM)
        .label("memory")
        .tag("memory", Some(&memory["id"]))
        .at(at)
        .confidence(0.8)
        .send(format!("{FROM}:memory:{id}"), place.to_owned(), sink)
}

fn conversation(conversation: &Value, place: &str, sink: Sink) -> ControlFlow<()> {
    let thread =
        [&conversation["conversation_id"], &conversation["id"]].into_iter().find(|id| id.is_string());
    let Some(thread) = thread.and_then(Value::as_str).filter(|id| id.len() <= MAX_ID) else {
        return sink(super::refused(place.to_owned(), "a conversation without id"));
    };
    let Some(mapping) = conversation["mapping"].as_object() else {
        return sink(super::refused(place.to_owned(), "mapping: must be an object"));
    };
    let seen = thread_of(conversation, mapping);
    let mut nodes: Vec<(&String, &Value)> = mapping.iter().collect();
    // In the order in which they were said; the map's own order means nothing.
    nodes.sort_by(|(a, one), (b, other)| {
        let at = |node: &Value| node["message"]["create_time"].as_f64().unwrap_or(0.0);
        at(one).total_cmp(&at(other)).then_with(|| a.cmp(b))
    });
    for (id, node) in nodes {
        let message = &node["message"];
        if message.is_null() {
            continue;
        }
        let place = format!("{place}.mapping.{id}");
        let role = message["author"]["role"].as_str().unwrap_or_default();
        if message["content"]["content_type"] == "user_editable_context" {
            instructions(message, thread, id, &place, sink)?;
            continue;
        }
        let said = said(&message["content"]);
        let why = match role {
            "user" | "assistant" if said.trim().is_empty() => Some("no text in it"),
            "user" | "assistant" => None,
            _ => Some("a message of the system or of a tool"),
        };
        if let Some(why) = why {
            sink(skipped(place, why))?;
            continue;
        }
        let mut draft = Draft::new("conversation_turn", said.trim(), FROM)
            .structured(Map::from_iter([("role".to_owned(), json!(role))]))
            .tag("thread", Some(&json!(thread)))
            .tag("thread_title", Some(&conversation["title"]))
            .tag("message", Some(&json!(id)))
            .tag("parent", parent(node, mapping).as_ref())
            .tag("model", Some(&message["metadata"]["model_slug"]))
            .at(time(&message["create_time"]).or_else(|| time(&conversation["create_time"])));
        if !seen.contains(id.as_str()) {
            draft = draft.label("branch");
        }
        draft.send(format!("{FROM}:{thread}:{id}"), place, sink)?;
    }
    ControlFlow::Continue(())
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

/// The text of a message: parts that are text, and code.
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

fn instructions(message: &Value, thread: &str, id: &str, place: &str, sink: Sink) -> ControlFlow<()> {
    for name in ["user_profile", "user_instructions"] {
        let said = text(&message["content"], name).trim();
        if said.is_empty() {
            continue;
        }
        Draft::new("preference", said, FROM)
            .label("custom_instructions")
            .tag("thread", Some(&json!(thread)))
            .tag("message", Some(&json!(id)))
            .at(time(&message["create_time"]))
            // The same instructions stand in every conversation.
            .send(
                format!("{FROM}:{name}:{}", oap_identity::Hash::of(said.as_bytes())),
                place.to_owned(),
                sink,
            )?;
    }
    ControlFlow::Continue(())
}

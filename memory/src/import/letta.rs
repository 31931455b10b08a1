//! Letta's agent file (`.af`): the first form with one agent, and the second with `agents` and `blocks`.

use super::{Draft, File, Sink, json, skipped, text, time};
use serde_json::{Map, Value, json};
use std::ops::ControlFlow;

pub(super) const ABOUT: &str = "memory blocks become summaries, archival passages facts, messages of user and assistant \
    conversation turns; agents, ids and times are kept as provenance; system prompts, tools, tool calls and model settings \
    are left out";

const FROM: &str = "letta";

pub(super) fn read(file: File, sink: Sink) {
    let name = file.name.to_owned();
    json::each(file, &["agents", "blocks"], sink, |list, number, value, sink| match list {
        "agents" => agent(&value, &format!("{name}.agents[{number}]"), sink),
        "blocks" => block(&value, "", &format!("{name}.blocks[{number}]"), sink),
        _ if value.get("core_memory").is_some() || value.get("messages").is_some() => {
            agent(&value, &name, sink)
        }
        _ => ControlFlow::Continue(()),
    });
}

fn agent(agent: &Value, place: &str, sink: Sink) -> ControlFlow<()> {
    let id = ["id", "name"].iter().map(|n| text(agent, n)).find(|t| !t.is_empty()).unwrap_or("agent");
    let id = super::start_of(id, super::MAX_ID).to_owned();
    for member in ["core_memory", "memory_blocks"] {
        for (number, found) in agent[member].as_array().into_iter().flatten().enumerate() {
            block(found, &id, &format!("{place}.{member}[{number}]"), sink)?;
        }
    }
    for (number, passage) in agent["archival_memory"].as_array().into_iter().flatten().enumerate() {
        let said = text(passage, "text").trim();
        if !said.is_empty() {
            Draft::new("fact", said, FROM)
                .tag("agent", Some(&json!(id)))
                .at(time(&passage["created_at"]))
                .confidence(0.8)
                .send(
                    format!("{FROM}:{id}:passage:{}", oap_identity::Hash::of(said.as_bytes())),
                    format!("{place}.archival_memory[{number}]"),
                    sink,
                )?;
        }
    }
    for (number, found) in agent["messages"].as_array().into_iter().flatten().enumerate() {
        message(found, &id, number, &format!("{place}.messages[{number}]"), sink)?;
    }
    ControlFlow::Continue(())
}

fn block(block: &Value, agent: &str, place: &str, sink: Sink) -> ControlFlow<()> {
    let said = text(block, "value").trim();
    if said.is_empty() {
        return sink(skipped(place.to_owned(), "an empty block"));
    }
    let label = text(block, "label");
    let id = block["id"].as_str().map_or_else(|| format!("{agent}:{label}"), str::to_owned);
    Draft::new("summary", said, FROM)
        .label(label)
        .tag("block", Some(&json!(label)))
        .tag("agent", Some(&json!(agent)))
        .tag("description", block.get("description"))
        .at(time(&block["created_at"]))
        .confidence(0.8)
        .send(format!("{FROM}:block:{id}"), place.to_owned(), sink)
}

fn message(message: &Value, agent: &str, number: usize, place: &str, sink: Sink) -> ControlFlow<()> {
    let role = text(message, "role");
    if !matches!(role, "user" | "assistant") {
        return sink(skipped(place.to_owned(), "a message of the system or of a tool"));
    }
    let said = said(message);
    if said.trim().is_empty() {
        return sink(skipped(place.to_owned(), "no text in it"));
    }
    let id = message["id"].as_str().map_or_else(|| number.to_string(), str::to_owned);
    Draft::new("conversation_turn", said.trim(), FROM)
        .structured(Map::from_iter([("role".to_owned(), json!(role))]))
        .tag("agent", Some(&json!(agent)))
        .tag("message", Some(&json!(id)))
        .at(time(&message["created_at"]))
        .send(format!("{FROM}:{agent}:{id}"), place.to_owned(), sink)
}

/// The text of a message. The first form wraps what a person says in JSON.
fn said(message: &Value) -> String {
    let parts = message["content"].as_array().map(Vec::as_slice).unwrap_or_default();
    let texts: Vec<&str> =
        parts.iter().filter(|p| p["type"] == "text").filter_map(|p| p["text"].as_str()).collect();
    let plain =
        || message["content"].as_str().or_else(|| message["text"].as_str()).unwrap_or_default().to_owned();
    let said = if texts.is_empty() { plain() } else { texts.join("\n") };
    if said.starts_with('{')
        && let Ok(wrapped) = serde_json::from_str::<Value>(&said)
        && let Some(kind) = wrapped["type"].as_str()
    {
        // Heartbeats and log-ins are the machine's own.
        let inner = wrapped["message"].as_str().filter(|_| kind == "user_message");
        return inner.unwrap_or_default().to_owned();
    }
    said
}

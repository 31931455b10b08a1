//! Letta's agent file (`.af`): the first form with one agent, and the second with `agents` and `blocks`.

use super::{Draft, File, Format, Importer, Likeness, Looks, Reach, Sink, json, skipped, text, time};
use oap_identity::json::parse_foreign;
use serde_json::{Map, Value, json};
use std::ops::ControlFlow;

const ABOUT: &str = "memory blocks become summaries, archival passages facts (those of calls of archival_memory_insert \
    too), messages of user and assistant conversation turns; where the assistant speaks with send_message, what it sent is \
    the turn, and the text beside a call, its thought, is left out; agents, ids and times are kept as provenance; system prompts, \
    tools, other tool calls and model settings are left out";

const FROM: &str = "letta";

pub(super) const IMPORTER: Importer =
    Importer { format: Format::Letta, about: ABOUT, general: false, account_id: None, recognises, read };

fn recognises(looks: &Looks) -> Likeness {
    Likeness::sure(looks.member("core_memory") || (looks.member("agents") && looks.member("blocks")))
}

fn read(file: File, sink: Sink) {
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
    // Newer agents speak in their text; the others speak with a call, and the text beside any call is what they think.
    let thinks_aloud = !["letta_v1_agent", "react_agent"].contains(&text(agent, "agent_type"));
    for (number, found) in agent["messages"].as_array().into_iter().flatten().enumerate() {
        let place = format!("{place}.messages[{number}]");
        message(found, &id, thinks_aloud, number, &place, sink)?;
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
        .reach(Reach::of(&id, Reach::File))
        .send(format!("{FROM}:block:{id}"), place.to_owned(), sink)
}

fn message(
    message: &Value,
    agent: &str,
    thinks_aloud: bool,
    number: usize,
    place: &str,
    sink: Sink,
) -> ControlFlow<()> {
    let role = text(message, "role");
    if !matches!(role, "user" | "assistant") {
        return sink(skipped(place.to_owned(), "a message of the system or of a tool"));
    }
    let id = message["id"].as_str().map_or_else(|| number.to_string(), str::to_owned);
    let source = format!("{FROM}:{agent}:{id}");
    let told = |draft: Draft| {
        draft
            .tag("agent", Some(&json!(agent)))
            .tag("message", Some(&json!(id)))
            .at(time(&message["created_at"]))
            .reach(Reach::of(&id, Reach::File))
    };
    let calls = calls(message);
    let mut sent = Vec::new();
    for (index, (name, arguments)) in calls.iter().enumerate() {
        let inserted = text(arguments, "content").trim();
        if name == "send_message" {
            sent.push(text(arguments, "message").trim());
        } else if name == "archival_memory_insert" && !inserted.is_empty() {
            told(Draft::new("fact", inserted, FROM)).confidence(0.8).send(
                format!("{source}:insert:{index}"),
                place.to_owned(),
                sink,
            )?;
        }
    }
    let said = match calls.is_empty() || (sent.is_empty() && !thinks_aloud) {
        true => said(message),
        false => sent.join("\n"),
    };
    if said.trim().is_empty() {
        let why = if calls.is_empty() { "no text in it" } else { "a call of a tool" };
        return sink(skipped(place.to_owned(), why));
    }
    told(Draft::new("conversation_turn", said.trim(), FROM))
        .structured(Map::from_iter([("role".to_owned(), json!(role))]))
        .send(source, place.to_owned(), sink)
}

/// The functions that a message calls, with their arguments.
fn calls(message: &Value) -> Vec<(String, Value)> {
    let calls = message["tool_calls"].as_array().map(Vec::as_slice).unwrap_or_default();
    let one = message.get("tool_call").filter(|call| call.is_object());
    let parts =
        message["content"].as_array().into_iter().flatten().filter(|part| part["type"] == "tool_call");
    calls
        .iter()
        .chain(one)
        .chain(parts)
        .map(|call| {
            let function = call.get("function").unwrap_or(call);
            let arguments = [&function["arguments"], &function["args"], &function["input"]];
            let arguments = arguments.into_iter().find(|arguments| !arguments.is_null());
            let read = |text: &str| parse_foreign(text).unwrap_or_default();
            let arguments = arguments.map_or(Value::Null, |a| a.as_str().map_or_else(|| a.clone(), read));
            (text(function, "name").to_owned(), arguments)
        })
        .collect()
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
        && let Ok(wrapped) = parse_foreign(&said)
        && let Some(kind) = wrapped["type"].as_str()
    {
        // Heartbeats and log-ins are the machine's own.
        let inner = wrapped["message"].as_str().filter(|_| kind == "user_message");
        return inner.unwrap_or_default().to_owned();
    }
    said
}

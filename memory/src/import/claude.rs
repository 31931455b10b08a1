//! Claude's data export: `conversations.json`, `projects.json`, `memories.json`.

use super::{Draft, File, MAX_ID, Sink, json, skipped, text, time};
use serde_json::{Map, Value, json};
use std::ops::ControlFlow;

pub(super) const ABOUT: &str = "messages become conversation turns with sender, thread, parent and times; text of \
    attachments becomes document references; project descriptions and memories become summaries, project instructions \
    preferences, project documents document references; thinking, tool calls and file bytes are left out";

const FROM: &str = "claude";

pub(super) fn read(file: File, sink: Sink) {
    let name = file.name.to_owned();
    json::each(file, &["conversations", "projects"], sink, |_, number, value, sink| {
        let place = format!("{name}[{number}]");
        if value.get("chat_messages").is_some() {
            conversation(&value, &place, sink)
        } else if value.get("conversations_memory").is_some() || value.get("project_memories").is_some() {
            memories(&value, &place, sink)
        } else if value.get("prompt_template").is_some() || value.get("docs").is_some() {
            project(&value, &place, sink)
        } else if value.as_object().is_some_and(Map::is_empty) {
            ControlFlow::Continue(())
        } else {
            sink(skipped(place, "neither a conversation, a project nor a memory"))
        }
    });
}

fn conversation(conversation: &Value, place: &str, sink: Sink) -> ControlFlow<()> {
    let thread = text(conversation, "uuid");
    if thread.is_empty() || thread.len() > MAX_ID {
        return sink(super::refused(place.to_owned(), "a conversation without uuid"));
    }
    let messages = conversation["chat_messages"].as_array().map(Vec::as_slice).unwrap_or_default();
    for (number, message) in messages.iter().enumerate() {
        let place = format!("{place}.chat_messages[{number}]");
        let id = message["uuid"].as_str().map_or_else(|| number.to_string(), str::to_owned);
        let at = time(&message["created_at"]).or_else(|| time(&conversation["created_at"]));
        let source = format!("{FROM}:{thread}:{id}");
        for (index, attachment) in message["attachments"].as_array().into_iter().flatten().enumerate() {
            let said = text(attachment, "extracted_content").trim();
            if !said.is_empty() {
                Draft::new("document_reference", said, FROM)
                    .tag("thread", Some(&json!(thread)))
                    .tag("message", Some(&json!(id)))
                    .tag("file_name", attachment.get("file_name"))
                    .at(at)
                    .send(
                        format!("{source}:attachment:{index}"),
                        format!("{place}.attachments[{index}]"),
                        sink,
                    )?;
            }
        }
        let said = said(message);
        if said.trim().is_empty() {
            sink(skipped(place, "no text in it"))?;
            continue;
        }
        let role = if message["sender"] == "human" { "user" } else { "assistant" };
        Draft::new("conversation_turn", said.trim(), FROM)
            .structured(Map::from_iter([("role".to_owned(), json!(role))]))
            .tag("thread", Some(&json!(thread)))
            .tag("thread_title", conversation.get("name"))
            .tag("message", Some(&json!(id)))
            .tag("parent", message.get("parent_message_uuid"))
            .at(at)
            .send(source, place, sink)?;
    }
    ControlFlow::Continue(())
}

/// The text blocks of a message; older exports have `text` alone.
fn said(message: &Value) -> String {
    let blocks = message["content"].as_array().map(Vec::as_slice).unwrap_or_default();
    let texts: Vec<&str> = blocks
        .iter()
        .filter(|block| block["type"] == "text")
        .filter_map(|block| block["text"].as_str())
        .collect();
    if texts.is_empty() { text(message, "text").to_owned() } else { texts.join("\n") }
}

fn memories(memories: &Value, place: &str, sink: Sink) -> ControlFlow<()> {
    let account = text(memories, "account_uuid").to_owned();
    let said = text(memories, "conversations_memory").trim();
    if !said.is_empty() {
        Draft::new("summary", said, FROM).label("memory").confidence(0.8).send(
            format!("{FROM}:memory:{account}"),
            format!("{place}.conversations_memory"),
            sink,
        )?;
    }
    for (project, said) in memories["project_memories"].as_object().into_iter().flatten() {
        let Some(said) = said.as_str().map(str::trim).filter(|said| !said.is_empty()) else { continue };
        Draft::new("summary", said, FROM)
            .label("memory")
            .tag("project", Some(&json!(project)))
            .confidence(0.8)
            .send(
                format!("{FROM}:memory:{account}:{project}"),
                format!("{place}.project_memories.{project}"),
                sink,
            )?;
    }
    ControlFlow::Continue(())
}

fn project(project: &Value, place: &str, sink: Sink) -> ControlFlow<()> {
    let id = text(project, "uuid");
    if id.is_empty() {
        return sink(super::refused(place.to_owned(), "a project without uuid"));
    }
    let at = time(&project["created_at"]);
    for (member, kind) in [("description", "summary"), ("prompt_template", "preference")] {
        let said = text(project, member).trim();
        if !said.is_empty() {
            Draft::new(kind, said, FROM)
                .label("project")
                .tag("project", Some(&json!(id)))
                .tag("project_name", project.get("name"))
                .at(at)
                .send(format!("{FROM}:project:{id}:{member}"), format!("{place}.{member}"), sink)?;
        }
    }
    for (number, doc) in project["docs"].as_array().into_iter().flatten().enumerate() {
        let place = format!("{place}.docs[{number}]");
        let said = text(doc, "content").trim();
        if said.is_empty() {
            sink(skipped(place, "no text in it"))?;
            continue;
        }
        let doc_id = doc["uuid"].as_str().map_or_else(|| number.to_string(), str::to_owned);
        Draft::new("document_reference", said, FROM)
            .label("project")
            .tag("project", Some(&json!(id)))
            .tag("project_name", project.get("name"))
            .tag("file_name", doc.get("filename"))
            .at(time(&doc["created_at"]).or(at))
            .send(format!("{FROM}:project:{id}:doc:{doc_id}"), place, sink)?;
    }
    ControlFlow::Continue(())
}

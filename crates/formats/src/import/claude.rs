//! Claude's data export: `conversations.json`, `projects.json`, `memories.json`.

use super::{Draft, File, Format, Importer, Likeness, Looks, MAX_ID, Reach, Sink, json, skipped, text, time};
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;

const ABOUT: &str = "messages become conversation turns with sender, thread, parent and times, on abandoned branches \
    too (label \"branch\"), voice notes as their transcript; text of attachments and artifacts as they were last become \
    document references; project descriptions and memories become summaries, project instructions preferences, project \
    documents document references; thinking, tool calls and file bytes are left out, and so are the users' own data \
    (users.json), but for the account's id";

const FROM: &str = "claude";
/// What stands for a block that the export does not show.
const UNSHOWN: &str = "This block is not supported on your current device yet.";

pub(super) const IMPORTER: Importer = Importer {
    format: Format::Claude,
    about: ABOUT,
    general: false,
    account_id: Some("uuid"),
    recognises,
    read,
};

fn recognises(looks: &Looks) -> Likeness {
    let project = looks.member("prompt_template") && looks.member("docs");
    Likeness::sure(looks.member("chat_messages") || looks.member("conversations_memory") || project)
}

fn read(file: File, sink: Sink) {
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
    let account = &conversation["account"]["uuid"];
    let reach = Reach::of(thread, Reach::Account);
    let messages = conversation["chat_messages"].as_array().map(Vec::as_slice).unwrap_or_default();
    let seen = thread_of(conversation, messages);
    let mut artifacts = BTreeMap::new();
    for (number, message) in messages.iter().enumerate() {
        let place = format!("{place}.chat_messages[{number}]");
        let id = message["uuid"].as_str().map_or_else(|| number.to_string(), str::to_owned);
        let at = time(&message["created_at"]).or_else(|| time(&conversation["created_at"]));
        let source = format!("{FROM}:{thread}:{id}");
        let abandoned = seen.as_ref().is_some_and(|seen| !seen.contains(id.as_str()));
        let told = |draft: Draft| {
            let draft = draft
                .tag("thread", Some(&json!(thread)))
                .tag("message", Some(&json!(id)))
                .at(at)
                .reach(reach)
                .account(account);
            if abandoned { draft.label("branch") } else { draft }
        };
        for (index, attachment) in message["attachments"].as_array().into_iter().flatten().enumerate() {
            let said = text(attachment, "extracted_content").trim();
            if !said.is_empty() {
                told(Draft::new("document_reference", said, FROM))
                    .tag("file_name", attachment.get("file_name"))
                    .send(
                        format!("{source}:attachment:{index}"),
                        format!("{place}.attachments[{index}]"),
                        sink,
                    )?;
            }
        }
        for block in blocks(message) {
            artifact(block, &told, &place, &mut artifacts);
        }
        let said = said(message);
        if said.trim().is_empty() {
            sink(skipped(place, "no text in it"))?;
            continue;
        }
        let role = if message["sender"] == "human" { "user" } else { "assistant" };
        told(Draft::new("conversation_turn", said.trim(), FROM))
            .structured(Map::from_iter([("role".to_owned(), json!(role))]))
            .tag("thread_title", conversation.get("name"))
            .tag("parent", message.get("parent_message_uuid"))
            .send(source, place, sink)?;
    }
    for (id, (draft, place)) in artifacts {
        if draft.size() > 0 {
            draft.send(format!("{FROM}:{thread}:artifact:{id}"), place, sink)?;
        }
    }
    ControlFlow::Continue(())
}

/// The messages on the way from the last one up; none where the export does not say what answers what.
fn thread_of<'a>(conversation: &'a Value, messages: &'a [Value]) -> Option<BTreeSet<&'a str>> {
    let parents: BTreeMap<&str, Option<&str>> = messages
        .iter()
        .filter_map(|message| Some((message["uuid"].as_str()?, message["parent_message_uuid"].as_str())))
        .collect();
    if parents.values().all(Option::is_none) {
        return None;
    }
    let last = || messages.iter().rev().find_map(|message| message["uuid"].as_str());
    let mut at = conversation["current_leaf_message_uuid"].as_str().or_else(last);
    // A message without a parent cannot be told to be abandoned.
    let mut seen: BTreeSet<&str> =
        parents.iter().filter(|(_, parent)| parent.is_none()).map(|(id, _)| *id).collect();
    let mut walked = BTreeSet::new();
    while let Some(id) = at.filter(|id| walked.insert(*id)) {
        at = parents.get(id).copied().flatten();
    }
    seen.append(&mut walked);
    Some(seen)
}

fn blocks(message: &Value) -> &[Value] {
    message["content"].as_array().map(Vec::as_slice).unwrap_or_default()
}

/// The text blocks and transcripts of a message; older exports have `text` alone.
fn said(message: &Value) -> String {
    if blocks(message).is_empty() {
        // What the export says in the place of a block that it does not show.
        return text(message, "text").replace(&format!("```\n{UNSHOWN}\n```"), "").replace(UNSHOWN, "");
    }
    let shown = |block: &&Value| block["type"] == "text" || block["type"] == "voice_note";
    let texts: Vec<&str> =
        blocks(message).iter().filter(shown).filter_map(|block| block["text"].as_str()).collect();
    texts.join("\n")
}

/// Takes what a call makes of an artifact: the whole of it, or a change.
fn artifact(
    block: &Value,
    told: &dyn Fn(Draft) -> Draft,
    place: &str,
    artifacts: &mut BTreeMap<String, (Draft, String)>,
) {
    let input = &block["input"];
    let id = text(input, "id");
    if block["type"] != "tool_use" || block["name"] != "artifacts" || id.is_empty() {
        return;
    }
    let content = match (input["content"].as_str(), artifacts.get(id)) {
        (Some(content), _) => content.to_owned(),
        (None, Some((was, _))) => {
            let was = text(&was.item["content"], "text");
            match text(input, "old_str") {
                "" => return,
                old => was.replacen(old, text(input, "new_str"), 1),
            }
        }
        (None, None) => return,
    };
    let title = input.get("title").cloned().or_else(|| {
        Some(artifacts.get(id)?.0.item["provenance"]["file_name"].clone()).filter(|title| !title.is_null())
    });
    let draft = told(Draft::new("document_reference", content.trim(), FROM))
        .tag("file_name", title.as_ref())
        .tag("artifact", Some(&json!(id)));
    artifacts.insert(id.to_owned(), (draft, place.to_owned()));
}

fn memories(memories: &Value, place: &str, sink: Sink) -> ControlFlow<()> {
    let account = text(memories, "account_uuid").to_owned();
    let said = text(memories, "conversations_memory").trim();
    if !said.is_empty() {
        Draft::new("summary", said, FROM)
            .label("memory")
            .confidence(0.8)
            .reach(Reach::Account)
            .account(&memories["account_uuid"])
            .send(format!("{FROM}:memory:{account}"), format!("{place}.conversations_memory"), sink)?;
    }
    for (project, said) in memories["project_memories"].as_object().into_iter().flatten() {
        let Some(said) = said.as_str().map(str::trim).filter(|said| !said.is_empty()) else { continue };
        Draft::new("summary", said, FROM)
            .label("memory")
            .tag("project", Some(&json!(project)))
            .confidence(0.8)
            .reach(Reach::of(project, Reach::Account))
            .account(&memories["account_uuid"])
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
                .reach(Reach::of(id, Reach::Account))
                .account(&project["creator"]["uuid"])
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
            .reach(Reach::of(id, Reach::Account))
            .account(&project["creator"]["uuid"])
            .send(format!("{FROM}:project:{id}:doc:{doc_id}"), place, sink)?;
    }
    ControlFlow::Continue(())
}

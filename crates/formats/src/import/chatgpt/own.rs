//! What ChatGPT keeps about a person beside the conversation: custom instructions and saved memories.
//!
//! Both stand in every conversation again, so that neither carries the conversation's ids or time.

use super::{FROM, saved};
use crate::import::{Draft, Reach, Sink, skipped, text, time};
use oap_identity::{Hash, Timestamp};
use serde_json::{Value, json};
use std::ops::ControlFlow;

/// Custom instructions, without the words that the vendor puts around them.
pub(super) fn instructions(message: &Value, place: &str, sink: Sink) -> ControlFlow<()> {
    let raw = &message["metadata"]["user_context_message_data"];
    for (name, raw_name) in
        [("user_profile", "about_user_message"), ("user_instructions", "about_model_message")]
    {
        let said = match text(raw, raw_name).trim() {
            "" => own_words(text(&message["content"], name)),
            said => said,
        };
        if !said.is_empty() {
            Draft::new("preference", said, FROM)
                .label("custom_instructions")
                .tag("instructions", Some(&json!(name)))
                .reach(Reach::World)
                .send(format!("{FROM}:{name}:{}", Hash::of(said.as_bytes())), place.to_owned(), sink)?;
        }
    }
    ControlFlow::Continue(())
}

/// The words between the fences, where the vendor wrote a prompt around them.
fn own_words(text: &str) -> &str {
    let fenced = || {
        let (_, rest) = text.split_once("```")?;
        Some(rest.rsplit_once("```").map_or(rest, |(words, _)| words).trim())
    };
    if text.trim_start().starts_with("The user provided") {
        fenced().unwrap_or(text).trim()
    } else {
        text.trim()
    }
}

/// Saved memories, as a numbered list with dates: `1. [2024-05-02]. Owns a bakery`.
pub(super) fn memories(content: &Value, place: &str, sink: Sink) -> ControlFlow<()> {
    let parts = || content["parts"].as_array()?.iter().find_map(Value::as_str);
    let whole = content["model_set_context"].as_str().or_else(parts).unwrap_or_default();
    if whole.trim().is_empty() {
        return sink(skipped(place.to_owned(), "no memory in it"));
    }
    for (said, at) in entries(whole) {
        let source = format!("{FROM}:saved:{}", Hash::of(said.as_bytes()));
        saved(&said, at).reach(Reach::World).send(source, place.to_owned(), sink)?;
    }
    ControlFlow::Continue(())
}

fn entries(whole: &str) -> Vec<(String, Option<Timestamp>)> {
    let mut entries: Vec<(String, Option<Timestamp>)> = Vec::new();
    for line in whole.lines() {
        match (numbered(line), entries.last_mut()) {
            (Some((said, at)), _) => entries.push((said.to_owned(), at)),
            (None, Some((said, _))) => {
                said.push('\n');
                said.push_str(line);
            }
            (None, None) if line.trim().is_empty() => {}
            (None, None) => entries.push((line.to_owned(), None)),
        }
    }
    let trimmed = entries.into_iter().map(|(said, at)| (said.trim().to_owned(), at));
    trimmed.filter(|(said, _)| !said.is_empty()).collect()
}

/// `1. [2024-05-02]. text`, with or without the date.
fn numbered(line: &str) -> Option<(&str, Option<Timestamp>)> {
    let (number, rest) = line.split_once(". ")?;
    if number.is_empty() || !number.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    let dated = || {
        let (date, said) = rest.strip_prefix('[')?.split_once(']')?;
        Some((said.trim_start_matches(['.', ' ']), Some(time(&json!(date))?)))
    };
    Some(dated().unwrap_or((rest, None)))
}

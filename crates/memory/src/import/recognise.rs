//! What a file is, by its content and, for text, its name.

use super::{Format, account};
use serde_json::Value;

/// The format of a file; none for what is no memory.
#[must_use]
pub fn recognise(name: &str, head: &[u8]) -> Option<Format> {
    let base = name.rsplit('/').next().unwrap_or(name).to_lowercase();
    let text = String::from_utf8_lossy(head);
    if base.ends_with(".md") || base.ends_with(".markdown") {
        let agents = ["claude.md", "agents.md", "memory.md", "gemini.md"].contains(&base.as_str());
        return Some(match () {
            () if agents => Format::AgentsMd,
            () if super::okf::is_concept(&text) => Format::Okf,
            () => Format::Notes,
        });
    }
    let start = text.trim_start_matches(['\u{feff}', ' ', '\t', '\r', '\n']);
    if start.starts_with('<') {
        let activity = text.contains("outer-cell") && (text.contains("Gemini") || name.contains("Gemini"));
        return activity.then_some(Format::Gemini);
    }
    if !start.starts_with(['{', '[']) {
        return (base.ends_with(".csv") || base.ends_with(".tsv")).then_some(Format::Csv);
    }
    if account(name, head).is_some() {
        return None;
    }
    vendor(&base, &text).or_else(|| is_lines(&base, start).then_some(Format::Jsonl))
}

fn vendor(base: &str, text: &str) -> Option<Format> {
    let packed: String = text.chars().filter(|c| !c.is_whitespace()).collect();
    let has = |word: &str| packed.contains(word);
    let member = |name: &str| packed.contains(&format!("\"{name}\":"));
    if member("mapping") && (member("current_node") || member("conversation_id") || member("create_time")) {
        return Some(Format::Chatgpt);
    }
    if member("chat_messages")
        || member("conversations_memory")
        || (member("prompt_template") && member("docs"))
    {
        return Some(Format::Claude);
    }
    if has("GeminiApps") || member("safeHtmlItem") || (has("Gemini") && member("header") && member("title")) {
        return Some(Format::Gemini);
    }
    if member("dia_id") || member("session_1") {
        return Some(Format::Locomo);
    }
    if member("core_memory") || (member("agents") && member("blocks")) {
        return Some(Format::Letta);
    }
    if member("memory_type") && member("namespace") {
        return Some(Format::OpenIntent);
    }
    if (has("\"type\":\"entity\"") && member("observations")) || has("\"type\":\"relation\"") {
        return Some(Format::McpMemory);
    }
    if base.starts_with("memor") && base.ends_with(".json") && member("enabled") {
        return Some(Format::Chatgpt);
    }
    let listed = member("results") || member("memories");
    let owned = member("user_id") || member("agent_id") || member("hash");
    if (member("memory") && (listed || owned)) || (member("data") && member("id") && owned) {
        return Some(Format::Mem0);
    }
    // An export of no memories.
    ["{\"results\":[]", "{\"memories\":[]"]
        .iter()
        .any(|empty| packed.starts_with(empty))
        .then_some(Format::Mem0)
}

/// Whether a text is JSON Lines: it says so in its name, or each of its first two lines is, or begins, an object of its
/// own. A document that nothing knows is no lines of anything.
fn is_lines(base: &str, start: &str) -> bool {
    if !start.starts_with('{') {
        return false;
    }
    if base.ends_with(".jsonl") || base.ends_with(".ndjson") {
        return true;
    }
    let mut lines = start.lines().filter(|line| !line.trim().is_empty());
    let whole = |line: &str| serde_json::from_str::<Value>(line).is_ok_and(|value| value.is_object());
    lines.next().is_some_and(whole) && lines.next().is_some_and(|line| line.starts_with('{'))
}

/// Why a file of an export or a folder is no memory, where that can be told; it is left out as a whole.
#[must_use]
pub fn left_out(name: &str, head: &[u8]) -> Option<&'static str> {
    let hidden = |part: &str| part == "__MACOSX" || (part.starts_with('.') && part != "." && part != "..");
    if name.split('/').any(hidden) {
        return Some("a hidden file");
    }
    if account(name, head).is_some() {
        return Some("the account's own data: no memory");
    }
    let text = String::from_utf8_lossy(head.get(..4096).unwrap_or(head));
    super::okf::is_reserved(name, &text).then_some("an index or a log of Open Knowledge Format")
}

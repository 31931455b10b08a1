//! Every importer on a small synthetic export in its vendor's shape (`examples/exports`), and on what is broken.

mod reading;

use oap_formats::import::{self, File, Format, Found, HEAD, Mapping};
use reading::*;
use std::ops::ControlFlow;
use std::path::PathBuf;

fn folder() -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/exports"))
}

fn bytes(path: &str) -> Vec<u8> {
    std::fs::read(folder().join(path)).unwrap()
}

fn read(path: &str) -> Read {
    let bytes = bytes(path);
    let format = import::recognise(path, &bytes[..bytes.len().min(HEAD)]).unwrap_or_else(|| panic!("{path}"));
    read_as(format, path, &bytes, &Mapping::default())
}

#[test]
fn formats_are_recognised_by_content() {
    for (path, format) in [
        ("chatgpt/conversations.json", Format::Chatgpt),
        ("chatgpt/memory.json", Format::Chatgpt),
        ("claude/conversations.json", Format::Claude),
        ("claude/projects.json", Format::Claude),
        ("claude/memories.json", Format::Claude),
        ("gemini/MyActivity.json", Format::Gemini),
        ("mem0/memories.json", Format::Mem0),
        ("letta/agent.af", Format::Letta),
        ("mcp/memory.jsonl", Format::McpMemory),
        ("notes/Sourdough.md", Format::Notes),
        ("okf/tables/orders.md", Format::Okf),
        ("agents/AGENTS.md", Format::AgentsMd),
        ("locomo/conversation.json", Format::Locomo),
        ("openintent/entries.json", Format::OpenIntent),
        ("table/notes.csv", Format::Csv),
        ("table/notes.jsonl", Format::Jsonl),
    ] {
        let bytes = bytes(path);
        assert_eq!(import::recognise(path, &bytes), Some(format), "{path}");
        // Whatever it is called.
        if ![Format::Notes, Format::Okf, Format::AgentsMd, Format::Csv].contains(&format)
            && path != "chatgpt/memory.json"
        {
            assert_eq!(import::recognise("export", &bytes), Some(format), "{path}, renamed");
        }
    }
    for nothing in [&b"\x89PNG\r\n"[..], b"", b"plain words", b"<html>"] {
        assert_eq!(import::recognise("export", nothing), None);
    }
}

#[test]
fn chatgpt_threads_branches_instructions_and_memories() {
    let found = read("chatgpt/conversations.json");
    assert_eq!(
        texts(&found),
        [
            "I run a small bakery.",
            "Answer briefly.",
            "Which colours suit a bakery?",
            "Bright green.",
            "Warm browns and cream.",
            "Like this photo",
            "Then cream and oak.",
        ]
    );
    let by_text = |text: &str| found.records.iter().find(|r| r.item["content"]["text"] == text).unwrap();
    let branch = by_text("Bright green.");
    assert_eq!(branch.item["labels"], serde_json::json!(["chatgpt", "branch"]));
    assert_eq!(by_text("Warm browns and cream.").item["labels"], serde_json::json!(["chatgpt"]));
    // Roles, times, threads and ids survive; a tool's message between is no parent.
    let last = by_text("Then cream and oak.");
    assert_eq!(last.item["content"]["structured"]["role"], "assistant");
    assert_eq!(provenance(last, "parent"), "n3");
    assert_eq!(provenance(last, "thread_title"), "Website colours");
    assert_eq!(provenance(last, "captured_at"), "2024-03-05T16:00:25.000Z");
    assert_eq!(by_text("Answer briefly.").item["kind"], "preference");
    assert_eq!(found.skipped.len(), 2, "{:?}", found.skipped);
    assert_eq!(found.refused, [("chatgpt/conversations.json[1]".into(), "a conversation without id".into())]);

    let memories = read("chatgpt/memory.json");
    assert_eq!(texts(&memories), ["Owns a bakery in Leipzig"]);
    assert_eq!(memories.skipped, ["a memory that was switched off"]);
}

#[test]
fn claude_conversations_projects_and_memories() {
    let found = read("claude/conversations.json");
    assert_eq!(
        texts(&found),
        ["Rhubarb tart, 4 EUR", "Ideas for a spring menu?", "Rhubarb, elderflower, asparagus."]
    );
    assert_eq!(provenance(&found.records[2], "parent"), "m-1");
    assert_eq!(found.records[1].item["content"]["structured"]["role"], "user");
    assert_eq!(found.skipped, ["no text in it"]);
    let projects = read("claude/projects.json");
    let kinds: Vec<&str> = projects.records.iter().map(|r| r.item["kind"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["summary", "preference", "document_reference"]);
    let memories = read("claude/memories.json");
    assert_eq!(texts(&memories), ["Runs a bakery; prefers short answers.", "The site launches in May."]);
}

#[test]
fn gemini_prompts_and_answers() {
    let found = read("gemini/MyActivity.json");
    assert_eq!(found.records.len(), 2);
    assert_eq!(texts(&found)[0], "How long does sourdough rise?");
    let answer = texts(&found)[1];
    assert!(
        answer.contains("About twelve hours.") && answer.contains("Cold: longer") && !answer.contains('<')
    );
    assert_eq!(found.skipped.len(), 2);
}

#[test]
fn mem0_memories_and_relations() {
    let found = read("mem0/memories.json");
    assert_eq!(
        texts(&found),
        ["Prefers morning meetings", "Works with Bob on the website", "ada works with bob"]
    );
    assert_eq!(found.records[0].item["kind"], "preference");
    assert_eq!(provenance(&found.records[0], "captured_at"), "2025-03-01T18:00:00.000Z");
    assert_eq!((found.skipped.len(), found.refused.len()), (1, 1));
}

#[test]
fn letta_blocks_and_messages_of_both_forms() {
    let found = read("letta/agent.af");
    assert_eq!(texts(&found), ["Remember my flour supplier", "I will.", "Ada runs a bakery."]);
    assert_eq!(found.records[2].item["kind"], "summary");
    let first = br#"{"agent_type": "memgpt_agent", "name": "old", "core_memory": [{"label": "human", "value": "Likes rye."}],
        "messages": [{"role": "user", "text": "Hello", "created_at": "2024-01-01T00:00:00Z"}], "system": "s"}"#;
    assert_eq!(import::recognise("x.af", first), Some(Format::Letta));
    assert_eq!(texts(&read_as(Format::Letta, "x.af", first, &Mapping::default())), ["Likes rye.", "Hello"]);
}

#[test]
fn mcp_entities_and_relations() {
    let found = read("mcp/memory.jsonl");
    assert_eq!(
        texts(&found),
        ["Ada: Runs a bakery", "Ada: Likes tea", "Bakery is a business", "Ada owns Bakery"]
    );
    assert_eq!(found.records[0].item["subject_entity_id"], "Ada");
    assert_eq!(found.refused.len(), 2);
    assert!(found.refused[1].0.ends_with(":5"));
}

#[test]
fn notes_with_observations_relations_and_sections() {
    let found = read("notes/Sourdough.md");
    let texts = texts(&found);
    assert!(texts.contains(&"Sourdough: Feed Otto twice a day #starter"), "{texts:?}");
    assert!(texts.contains(&"Sourdough requires Rye flour"));
    assert!(texts.iter().any(|t| t.contains("The starter is called Otto.")));
    assert!(texts.iter().any(|t| t.contains("buy rye flour")), "a check box stays text");
    let observation = found.records.iter().find(|r| provenance(r, "category") == "method").unwrap();
    assert_eq!(
        observation.item["labels"],
        serde_json::json!(["notes", "baking", "bread", "method", "starter"])
    );
    assert_eq!(provenance(observation, "captured_at"), "2025-05-01T07:00:00.000Z");
    assert_eq!(read("notes/ideas/Window.md").records.len(), 1);
}

#[test]
fn instructions_by_bullet_and_paragraph() {
    let found = read("agents/AGENTS.md");
    let texts = texts(&found);
    assert_eq!(texts[0], "Use tabs for indentation.");
    assert_eq!(texts[1], "Run `npm test` before each commit.");
    assert_eq!(provenance(&found.records[1], "section"), "Project > Tests");
    // A code block is one piece, its empty lines and all.
    assert_eq!(texts[3], "```sh\nnpm test\n\nnpm run lint\n```");
    assert!(found.records.iter().all(|r| r.item["kind"] == "preference"));
    assert_eq!(read("agents/MEMORY.md").records[0].item["kind"], "fact");
}

#[test]
fn locomo_and_openintent() {
    let found = read("locomo/conversation.json");
    assert_eq!(texts(&found), ["Ada: How is the oven?", "Bob: Repaired at last."]);
    assert_eq!(provenance(&found.records[0], "thread"), "conv-1");
    let found = read("openintent/entries.json");
    assert_eq!(found.records.len(), 1);
    assert_eq!(found.records[0].item["content"]["structured"]["key"], "stripe_thursdays");
    assert_eq!(found.skipped, ["working memory"]);
}

#[test]
fn tables_with_a_mapping() {
    let mapping = "text=body,captured_at=when,id=uuid".parse::<Mapping>().unwrap();
    let found = read_as(Format::Csv, "notes.csv", &bytes("table/notes.csv"), &mapping);
    assert_eq!(texts(&found), ["Flour, rye, 5 kg", "Oven service"]);
    assert_eq!(found.records[0].item["labels"], serde_json::json!(["csv", "stock", "flour"]));
    assert_eq!(found.records[0].item["content"]["structured"], serde_json::json!({"rating": "5"}));
    assert_eq!(provenance(&found.records[1], "captured_at"), "2025-06-02T08:00:00.000Z");
    assert_eq!(found.refused.len(), 1);
    assert!(found.refused[0].1.contains("yesterday"));
    for wrong in ["body", "colour=body"] {
        assert!(wrong.parse::<Mapping>().is_err(), "{wrong}");
    }
    let found = read("table/notes.jsonl");
    assert_eq!(texts(&found), ["Closed on Mondays", "No id here"]);
    assert_eq!(found.refused.len(), 2);
}

/// The same file gives the same sources, each once: what importing twice without change rests on.
#[test]
fn sources_are_stable_and_distinct() {
    for path in [
        "chatgpt/conversations.json",
        "claude/conversations.json",
        "claude/projects.json",
        "gemini/MyActivity.json",
        "mem0/memories.json",
        "letta/agent.af",
        "mcp/memory.jsonl",
        "notes/Sourdough.md",
        "agents/AGENTS.md",
        "locomo/conversation.json",
        "openintent/entries.json",
        "table/notes.jsonl",
    ] {
        let sources = |read: Read| read.records.into_iter().map(|r| r.source).collect::<Vec<_>>();
        let (one, two) = (sources(read(path)), sources(read(path)));
        assert_eq!(one, two, "{path}");
        assert_eq!(one.iter().collect::<std::collections::BTreeSet<_>>().len(), one.len(), "{path}");
    }
}

#[test]
fn long_texts_become_several_items() {
    let long = "word ".repeat(20_000);
    let line = serde_json::json!({"id": "x", "text": long}).to_string();
    let found = read_as(Format::Jsonl, "x.jsonl", line.as_bytes(), &Mapping::default());
    assert_eq!(found.records.len(), 4);
    let whole: String = texts(&found).concat();
    assert_eq!(whole.split_whitespace().count(), 20_000);
    assert_eq!(found.records[3].source, "jsonl:x#3");
}

/// Whatever the bytes, reading ends, and says what is wrong with them.
#[test]
fn broken_files_are_refused_at_their_place() {
    let deep = "[".repeat(100_000);
    for format in Format::ALL {
        for broken in [
            &b"\xff\xfe\xfd"[..],
            b"{\"a\": ",
            b"[1, 2",
            deep.as_bytes(),
            b"[{\"mapping\": 7, \"id\": \"x\"}]",
            b"null",
        ] {
            let found = read_as(*format, "broken", broken, &Mapping::default());
            assert!(found.records.len() <= 4, "{format}");
        }
    }
    let mut cut = bytes("chatgpt/conversations.json");
    cut.truncate(cut.len() - 10);
    let found = read_as(Format::Chatgpt, "cut.json", &cut, &Mapping::default());
    assert_eq!(found.records.len(), 7, "what came before the cut was read");
    assert!(found.refused.last().unwrap().1.contains("line"), "{:?}", found.refused);
    // A ring of parents ends.
    let ring = br#"[{"id": "r", "current_node": "a", "mapping": {
        "a": {"parent": "b", "message": {"author": {"role": "user"}, "content": {"parts": ["x"]}}},
        "b": {"parent": "a", "message": null}}}]"#;
    assert_eq!(read_as(Format::Chatgpt, "ring.json", ring, &Mapping::default()).records.len(), 1);
}

/// What a reader of a format makes of bytes without end, and how many of them it takes.
fn endless(format: Format, start: &str, fill: u8) -> (Read, usize) {
    struct Counting<R>(R, usize);
    impl<R: std::io::Read> std::io::Read for Counting<R> {
        fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
            let read = self.0.read(buffer)?;
            self.1 += read;
            assert!(self.1 <= 2 * import::MAX_ELEMENT, "it reads on and on");
            Ok(read)
        }
    }
    use std::io::Read as _;
    let mut bytes = Counting(start.as_bytes().chain(std::io::repeat(fill)), 0);
    let mut read = Read::default();
    let mapping = Mapping::default();
    (format.importer().read)(File { name: "x", bytes: &mut bytes, mapping: &mapping }, &mut |found| {
        match found {
            Found::Record(record) => read.records.push(*record),
            Found::Skipped { reason, .. } => read.skipped.push(reason),
            Found::Refused { place, reason } => read.refused.push((place, reason)),
        }
        // Lines are refused one by one, for as long as there are any.
        if read.refused.len() < 3 { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    });
    (read, bytes.1)
}

/// A field that unfolds to more than there is memory.
#[test]
fn what_never_ends_is_refused() {
    for (format, start, most) in [
        (Format::Mem0, r#"{"results": [{"memory": "One"}, {"memory": ""#, import::MAX_ELEMENT),
        (Format::Mem0, r#"{"rest": {"a": ""#, import::MAX_ELEMENT),
        (Format::Chatgpt, r#"[{"content": "One"}, {"mapping": {""#, import::MAX_ELEMENT),
        (Format::Csv, "text\nOne\n\"", import::MAX_LINE),
        (Format::Csv, "text,", import::MAX_LINE),
        (Format::Notes, "# One", import::MAX_NOTE),
        (Format::AgentsMd, "# One", import::MAX_NOTE),
    ] {
        let (read, taken) = endless(format, start, b'x');
        assert_eq!(read.refused.len(), 1, "{format}");
        assert!(read.refused[0].1.contains("larger than"), "{format}: {:?}", read.refused);
        assert!(taken <= most + (1 << 16), "{format}: {taken} bytes");
        if start.contains("One") && !start.starts_with('#') {
            assert_eq!(texts(&read), ["One"], "{format}: what came before was read");
        }
    }
}

#[test]
fn an_element_as_large_as_may_be() {
    let at = |length: usize| {
        let around = r#"[{"memory":""}]"#.len() - 2;
        let text = format!(r#"[{{"memory":"{}"}}]"#, "x".repeat(length - around));
        read_as(Format::Mem0, "x.json", text.as_bytes(), &Mapping::default())
    };
    // The list's own brackets count too.
    let found = at(import::MAX_ELEMENT - 2);
    assert!(found.refused.is_empty() && found.records.len() > 1, "{:?}", found.refused);
    assert_eq!(at(import::MAX_ELEMENT + 1).records, []);
}

/// An element of many small values is refused by itself, those around it are read.
#[test]
fn an_element_that_unfolds_in_memory_is_refused_by_itself() {
    let dense = format!(r#"{{"memory": "Two", "metadata": [{}0]}}"#, r#"{"a":0},"#.repeat(200_000));
    let text = format!(r#"[{{"memory": "One"}}, {dense}, {{"memory": "Three"}}]"#);
    let found = read_as(Format::Mem0, "x.json", text.as_bytes(), &Mapping::default());
    assert_eq!(texts(&found), ["One", "Three"]);
    assert_eq!(found.refused.len(), 1);
    assert!(found.refused[0].1.contains("too many values"), "{:?}", found.refused);
}

#[test]
fn front_matter_within_bounds() {
    let note = |matter: &str| {
        let text = format!("---\n{matter}\n---\nA note");
        read_as(Format::Notes, "x.md", text.as_bytes(), &Mapping::default())
    };
    let titled =
        |length: usize| note(&format!("title: T\nrest: {}", "x".repeat(length - "title: T\nrest: ".len())));
    assert_eq!(provenance(&titled(import::MAX_FRONT_MATTER - 64).records[0], "title"), "T");
    assert!(titled(import::MAX_FRONT_MATTER + 1).refused[0].1.contains("front matter"));
    for brackets in [1_025, 390 << 10] {
        assert!(note(&"[".repeat(brackets)).refused[0].1.contains("front matter"), "{brackets}");
    }
    let nested = |depth: usize| format!("title: T\na: {}0{}", "[".repeat(depth), "]".repeat(depth));
    assert_eq!(provenance(&note(&nested(import::MAX_FRONT_DEPTH - 1)).records[0], "title"), "T");
    assert_eq!(provenance(&note(&nested(import::MAX_FRONT_DEPTH)).records[0], "title"), "x");
    // Aliases of aliases: a few lines that stand for ten to the ninth. They are no front matter, but text.
    let bomb: String =
        (1..10).map(|n| format!("a{n}: &a{n} [{}]\n", vec![format!("*a{}", n - 1); 10].join(","))).collect();
    let found = note(&format!("title: T\na0: &a0 lol\n{bomb}"));
    assert_eq!(provenance(&found.records[0], "title"), "x");
}

/// What stands in every record of a file is short.
#[test]
fn what_is_repeated_is_short() {
    let long = "x".repeat(100_000);
    let text = format!("---\ntags: [{}]\n---\n# {long}\n- [fact] One\n", vec!["t"; 4_000].join(","));
    for format in [Format::Notes, Format::AgentsMd] {
        for record in read_as(format, "x.md", text.as_bytes(), &Mapping::default()).records {
            assert!(record.item.to_string().len() < 4_096, "{format}");
        }
    }
    let thread = serde_json::json!([{"id": "t", "title": long, "mapping": {
        "a": {"message": {"author": {"role": "user"}, "content": {"parts": ["One"]}}}}}]);
    let found = read_as(Format::Chatgpt, "x.json", thread.to_string().as_bytes(), &Mapping::default());
    assert!(found.records[0].item.to_string().len() < 4_096);
}

#[test]
fn html_nested_deeply_ends() {
    for tag in ["<div>", "<b>", "<table><tr><td>", "<ul><li>"] {
        let html = format!("{}deep", tag.repeat(5_000));
        let entry = serde_json::json!([{"header": "Gemini Apps", "title": "Prompted x", "time": "2026-05-01T12:00:00Z",
            "safeHtmlItem": [{"html": html}]}]);
        let found = read_as(Format::Gemini, "x.json", entry.to_string().as_bytes(), &Mapping::default());
        assert!(!found.records.is_empty(), "{tag}: {:?}", found.refused);
    }
}

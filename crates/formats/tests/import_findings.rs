//! What realistic exports showed of the importers: each loss with the smallest input that showed it.
//! Those that need a gateway are in `gateway/tests/import_findings.rs`.

mod reading;

use oap_formats::import::{self, Format, Mapping, Origin, Reach, Record};
use reading::*;
use serde_json::{Value, json};

/// A conversation of ChatGPT whose messages follow each other.
fn chatgpt(messages: &[Value]) -> Read {
    chatgpt_tree(
        messages.iter().enumerate().map(|(n, message)| (n.checked_sub(1), message.clone())).collect(),
        Some(1000.0),
    )
}

/// A conversation of ChatGPT whose messages each name the one that they answer.
fn chatgpt_tree(messages: Vec<(Option<usize>, Value)>, began: Option<f64>) -> Read {
    let id = |number: usize| format!("n{number:02}");
    let last = id(messages.len() - 1);
    let mapping: serde_json::Map<String, Value> = messages
        .into_iter()
        .enumerate()
        .map(|(number, (parent, message))| {
            let parent = parent.map(id);
            (id(number), json!({"id": id(number), "parent": parent, "children": [], "message": message}))
        })
        .collect();
    let whole =
        json!([{"id": "c1", "title": "T", "create_time": began, "current_node": last, "mapping": mapping}]);
    read_file("conversations.json", whole.to_string().as_bytes())
}

fn says(role: &str, text: &str) -> Value {
    json!({"author": {"role": role}, "create_time": 2000.0, "content": {"content_type": "text", "parts": [text]}})
}

fn with(mut message: Value, member: &str, value: Value) -> Value {
    message[member] = value;
    message
}

#[test]
fn chatgpt_the_account_is_left_out_once_and_tells_accounts_apart() {
    let user = br#"{"id": "user-a", "email": "ada@mail.example", "phone_number": "+49 30 901820", "birth_year": 1990}"#;
    let found = read_file("user.json", user);
    assert!(found.records.is_empty() && found.refused.is_empty(), "{found:?}");
    assert_eq!(found.skipped, ["the account's own data: no memory"]);
    assert_eq!(import::account("user.json", user), Some((Format::Chatgpt, "user-a".to_owned())));
    let users = br#"[{"uuid": "6f1a", "full_name": "Ada", "email_address": "ada@mail.example"}]"#;
    assert_eq!(import::account("data/users.json", users), Some((Format::Claude, "6f1a".to_owned())));
    assert_eq!(read_file("data/users.json", users).skipped.len(), 1);
    for none in [("users.csv", &users[..]), ("user.json", b"{}"), ("user.json", b"[]"), ("user.json", b"{")] {
        assert_eq!(import::account(none.0, none.1), None);
    }
}

#[test]
fn chatgpt_settings_are_left_out_once_a_file() {
    for name in ["user_settings.json", "sora.json", "shopping.json", "message_feedback.json"] {
        for text in
            ["{\n  \"a\": {\n    \"b\": 1\n  },\n  \"c\": []\n}\n", "{\"a\": 1}", "{\"text\": \"x\"}\n"]
        {
            let found = read_file(name, text.as_bytes());
            assert!(found.records.is_empty() && found.refused.is_empty(), "{name}: {found:?}");
            assert_eq!(found.skipped.len(), 1, "{name}");
        }
    }
    // What says that it is lines, by its name or by its shape, is.
    assert_eq!(import::recognise("x.jsonl", b"{\"text\": \"x\"}"), Some(Format::Jsonl));
    assert_eq!(import::recognise("x.json", b"{\"text\": \"x\"}\n{\"text\": \"y\"}"), Some(Format::Jsonl));
}

#[test]
fn chatgpt_saved_memories_of_a_conversation_are_facts() {
    let memories =
        "1. [2024-05-02]. Owns a bakery.\n\n2. [2024-06-01]. Has two cats\nand a dog.\n3. Likes rye.";
    let content = json!({"content_type": "model_editable_context", "model_set_context": memories});
    let message = json!({"author": {"role": "assistant"}, "create_time": null, "content": content,
        "metadata": {"is_visually_hidden_from_conversation": true}});
    let found = chatgpt(&[message.clone(), message]);
    assert_eq!(texts(&found)[..3], ["Owns a bakery.", "Has two cats\nand a dog.", "Likes rye."]);
    assert!(found.records.iter().all(|r| r.item["kind"] == "fact"));
    assert_eq!(provenance(&found.records[0], "captured_at"), "2024-05-02T00:00:00.000Z");
    assert_eq!(found.records[0].item["labels"], json!(["chatgpt", "memory"]));
    // The same list stands in every conversation: the same records.
    assert_eq!(
        found.records[..3].iter().map(|r| &r.source).collect::<Vec<_>>(),
        found.records[3..].iter().map(|r| &r.source).collect::<Vec<_>>()
    );
    assert_eq!(found.records[0].item, found.records[3].item);
}

#[test]
fn chatgpt_calls_of_tools_are_left_out_bio_is_a_fact_and_a_canvas_a_document() {
    let call = |to: &str, text: &str| {
        json!({"author": {"role": "assistant"}, "recipient": to, "create_time": 2000.0,
            "content": {"content_type": "code", "language": "unknown", "text": text}})
    };
    let canvas = r##"{"name": "Menu", "type": "document", "content": "# Menu\nRhubarb tart"}"##;
    let found = chatgpt(&[
        says("user", "Hello"),
        call("browser", "search(\"flour\")"),
        call("python", "print(1)"),
        with(says("assistant", "Owns a bakery in Leipzig."), "recipient", json!("bio")),
        call("canmore.create_textdoc", canvas),
        call("canmore.update_textdoc", r#"{"updates": []}"#),
        with(says("assistant", "Hello!"), "recipient", json!("all")),
    ]);
    assert_eq!(texts(&found), ["Hello", "Owns a bakery in Leipzig.", "# Menu\nRhubarb tart", "Hello!"]);
    let kinds: Vec<&str> = found.records.iter().map(|r| r.item["kind"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["conversation_turn", "fact", "document_reference", "conversation_turn"]);
    assert_eq!(provenance(&found.records[2], "file_name"), "Menu");
    assert_eq!(found.skipped, ["a call of a tool"; 3]);
}

#[test]
fn chatgpt_hidden_messages_are_left_out_and_counted() {
    let hidden =
        with(says("assistant", "b"), "metadata", json!({"is_visually_hidden_from_conversation": true}));
    let found = chatgpt(&[
        says("user", "seen"),
        with(says("user", "a"), "weight", json!(0.0)),
        hidden,
        says("user", "too"),
    ]);
    assert_eq!(texts(&found), ["seen", "too"]);
    assert_eq!(found.skipped, ["hidden in the conversation"; 2]);
}

#[test]
fn chatgpt_citations_become_links_or_go() {
    let mark = "\u{e200}cite\u{e202}turn0search3\u{e201}";
    let linked = |text: &str, metadata: Value| {
        let found = chatgpt(&[with(says("assistant", text), "metadata", metadata)]);
        texts(&found)[0].to_owned()
    };
    assert_eq!(linked(&format!("Rye rises {mark}. Slowly {mark}"), json!({})), "Rye rises. Slowly");
    assert_eq!(linked("Rye rises 【4†source】, slowly", json!({})), "Rye rises, slowly");
    assert_eq!(linked("A 【note】 stays", json!({})), "A 【note】 stays");
    let page = json!({"title": "Rye", "url": "https://rye.example/"});
    let references = json!({"content_references": [{"matched_text": mark, "items": [page]}]});
    assert_eq!(linked(&format!("Rye {mark}."), references), "Rye ([Rye](https://rye.example/)).");
    let citations = json!({"citations": [{"start_ix": 5, "end_ix": 15, "metadata": page}]});
    assert_eq!(linked("Äpfel【4†source】.", citations), "Äpfel([Rye](https://rye.example/)).");
    let own = "See \u{e200}url\u{e202}Rye\u{e202}https://rye.example/\u{e201} and \u{e200}entity\u{e202}[\"city\",\"Leipzig\"]\u{e201}";
    assert_eq!(linked(own, json!({})), "See [Rye](https://rye.example/) and Leipzig");
    // One that does not end, and a reference to nowhere.
    assert_eq!(linked("a \u{e200}cite b", json!({"citations": [{"start_ix": 9, "end_ix": 2}]})), "a cite b");
}

#[test]
fn chatgpt_custom_instructions_are_the_users_words_alone() {
    let wrapped = |said: &str| {
        format!("The user provided the following information about themselves. It is:\n```{said}```")
    };
    let message = |profile: &str, raw: Value| {
        json!({"author": {"role": "user"}, "create_time": null, "metadata": raw, "content": {
            "content_type": "user_editable_context", "user_profile": profile, "user_instructions": "Answer briefly."}})
    };
    let found = chatgpt(&[message(&wrapped("I run a bakery."), json!({}))]);
    assert_eq!(texts(&found), ["I run a bakery.", "Answer briefly."]);
    let raw = json!({"user_context_message_data": {"about_user_message": "I bake.", "about_model_message": "Be brief."}});
    let found = chatgpt(&[message(&wrapped("I bake."), raw)]);
    assert_eq!(texts(&found), ["I bake.", "Be brief."]);
    // They stand in each conversation, and are the same record.
    let twice = chatgpt(&[message("I bake.", json!({})), message("I bake.", json!({}))]);
    assert_eq!(twice.records[0].item, twice.records[2].item);
    assert_eq!(twice.records[0].source, twice.records[2].source);
}

#[test]
fn chatgpt_a_message_without_time_stands_between_its_neighbours() {
    let at = |message: Value, time: Value| with(message, "create_time", time);
    let found = chatgpt_tree(
        vec![
            (None, at(says("user", "zero"), json!(null))),
            (Some(0), at(says("user", "one"), json!(1000.0))),
            (Some(1), at(says("assistant", "two"), json!(null))),
            (Some(2), at(says("assistant", "three"), json!(null))),
            (Some(3), at(says("user", "four"), json!(1005.0))),
            (Some(4), at(says("assistant", "five"), json!(null))),
        ],
        None,
    );
    assert_eq!(texts(&found), ["zero", "one", "two", "three", "four", "five"]);
    let times: Vec<&str> =
        found.records.iter().map(|r| provenance(r, "captured_at").as_str().expect("no time")).collect();
    assert!(times.is_sorted_by(|a, b| a < b), "{times:?}");
    assert_eq!(times[2], "1970-01-01T00:16:40.001Z");
    // Where nothing says when, nothing is made up.
    let found = chatgpt_tree(vec![(None, at(says("user", "x"), json!(null)))], None);
    assert!(provenance(&found.records[0], "captured_at").is_null());
}

fn claude(messages: Value) -> Read {
    let whole = json!([{"uuid": "c1", "name": "T", "account": {"uuid": "a1"}, "chat_messages": messages}]);
    read_file("conversations.json", whole.to_string().as_bytes())
}

#[test]
fn claude_what_stands_for_a_block_that_is_not_shown_is_no_turn() {
    let unshown = "This block is not supported on your current device yet.";
    let use_of_tool = json!({"type": "tool_use", "name": "web_search", "input": {"query": "rye"}});
    for content in [json!([use_of_tool]), json!([])] {
        for text in [unshown.to_owned(), format!("```\n{unshown}\n```\n")] {
            let found =
                claude(json!([{"uuid": "m1", "sender": "assistant", "text": text, "content": content}]));
            assert_eq!(
                (found.records.len(), found.skipped.as_slice()),
                (0, &["no text in it".to_owned()][..])
            );
        }
    }
}

#[test]
fn claude_artifacts_are_documents_and_voice_notes_their_transcript() {
    let call = |input: Value| json!([{"type": "tool_use", "name": "artifacts", "input": input}]);
    let found = claude(json!([
        {"uuid": "m1", "sender": "human", "content": [{"type": "voice_note", "title": "Note", "text": "Make a menu"}]},
        {"uuid": "m2", "sender": "assistant", "content":
            call(json!({"id": "menu", "command": "create", "title": "Menu", "content": "Rhubarb tart, 4 EUR"}))},
        {"uuid": "m3", "sender": "assistant", "content":
            call(json!({"id": "menu", "command": "update", "old_str": "4 EUR", "new_str": "5 EUR"}))},
    ]));
    assert_eq!(texts(&found), ["Make a menu", "Rhubarb tart, 5 EUR"]);
    assert_eq!(found.records[0].item["content"]["structured"]["role"], "user");
    assert_eq!(found.records[1].item["kind"], "document_reference");
    assert_eq!(provenance(&found.records[1], "file_name"), "Menu");
}

#[test]
fn claude_an_edited_message_leaves_a_branch() {
    let message = |id: &str, parent: &str, text: &str| {
        json!({"uuid": id, "parent_message_uuid": parent, "sender": "human",
            "content": [{"type": "text", "text": text}]})
    };
    let root = "00000000-0000-4000-8000-000000000000";
    let found = claude(json!([
        message("m1", root, "first"),
        message("m2", "m1", "abandoned"),
        message("m3", "m1", "edited"),
        message("m4", "m3", "answer"),
    ]));
    let branches: Vec<bool> = found
        .records
        .iter()
        .map(|r| r.item["labels"].as_array().unwrap().contains(&json!("branch")))
        .collect();
    assert_eq!(texts(&found), ["first", "abandoned", "edited", "answer"]);
    assert_eq!(branches, [false, true, false, false]);
}

const ACTIVITY: &str = r#"<html><body><div class="mdl-grid">
<div class="outer-cell mdl-cell mdl-cell--12-col mdl-shadow--2dp"><div class="mdl-grid"><div class="header-cell mdl-cell mdl-cell--12-col"><p class="mdl-typography--title">Gemini Apps<br></p></div><div class="content-cell mdl-cell mdl-cell--6-col mdl-typography--body-1">Prompted&nbsp;<a href="https://gemini.google.com/app/abc">How long does rye rise?</a><br>Attached 1 file.<br>Apr 12, 2026, 3:34:31 PM EDT<br><p>About <b>twelve</b> hours.</p><div>Or more.</div></div><div class="content-cell mdl-cell mdl-cell--6-col mdl-typography--body-1 mdl-typography--text-right"></div></div></div>
<div class="outer-cell mdl-cell"><div class="mdl-grid"><div class="header-cell"><p class="mdl-typography--title">Gemini Apps<br></p></div><div class="content-cell mdl-typography--body-1">Prompted Hello<br>Apr 13, 2026, 9:00:00 AM UTC</div></div></div>
<div class="outer-cell mdl-cell"><div class="mdl-grid"><div class="header-cell"><p class="mdl-typography--title">Search<br></p></div><div class="content-cell mdl-typography--body-1">Searched for flour<br>Apr 13, 2026, 9:00:00 AM UTC</div></div></div>
<div class="outer-cell mdl-cell"><div class="mdl-grid"><div class="header-cell"><p class="mdl-typography--title">Gemini Apps<br></p></div><div class="content-cell mdl-typography--body-1">Gave feedback<br>Apr 13, 2026, 9:01:00 AM UTC</div></div></div>
</div></body></html>"#;

#[test]
fn gemini_html_is_imported() {
    let found = read_file("Takeout/My Activity/Gemini Apps/MyActivity.html", ACTIVITY.as_bytes());
    assert_eq!(texts(&found), ["How long does rye rise?", "About twelve hours.\n\nOr more.", "Hello"]);
    assert_eq!(provenance(&found.records[0], "captured_at"), "2026-04-12T19:34:31.000Z");
    assert_eq!(provenance(&found.records[1], "link"), "https://gemini.google.com/app/abc");
    assert_eq!(found.records[1].item["content"]["structured"]["role"], "assistant");
    assert_eq!(found.skipped, ["an activity of another product", "no prompt"]);
    assert!(found.refused.is_empty());
    // Any other page is left out.
    assert_eq!(read_file("chat.html", b"<html><body>Gemini</body></html>").skipped.len(), 1);
    // Cut anywhere, the rest is read.
    let entry = &ACTIVITY[..ACTIVITY.len() / 2];
    for end in (0..entry.len()).step_by(7) {
        read_as(Format::Gemini, "cut.html", &entry.as_bytes()[..end], &Mapping::default());
    }
}

#[test]
fn gemini_in_other_languages() {
    let entry = |title: &str, answer: Value| {
        json!({"header": "Gemini-Apps", "title": title, "time": "2025-02-01T09:30:00Z",
            "products": ["Gemini-Apps"], "safeHtmlItem": answer})
    };
    let whole = json!([
        entry("Gesendeter Prompt: Wie lange geht Roggen?", json!([{"html": "<p>Zwölf Stunden.</p>"}])),
        entry("Gesendeter Prompt: Und Dinkel: länger?", Value::Null),
        entry("Prompt envoyé : Et le seigle ?", Value::Null),
        entry("Feedback gegeben", Value::Null),
    ]);
    let found = read_file("MeineAktivitäten.json", whole.to_string().as_bytes());
    assert_eq!(
        texts(&found),
        ["Wie lange geht Roggen?", "Zwölf Stunden.", "Und Dinkel: länger?", "Et le seigle ?"]
    );
    assert_eq!(found.skipped, ["no prompt"]);
}

#[test]
fn mem0_without_memories_says_so() {
    for empty in ["{\"results\":[]}", "{ \"results\": [], \"relations\": [] }", "{\"memories\":[]}"] {
        let found = read_file("memories.json", empty.as_bytes());
        assert!(found.records.is_empty() && found.refused.is_empty(), "{found:?}");
        assert_eq!(found.skipped, ["no memories in it"], "{empty}");
    }
}

#[test]
fn mem0_a_memory_expires_when_it_did_there() {
    let memory =
        br#"[{"id": "1", "memory": "On holiday", "user_id": "ada", "expiration_date": "2030-08-31"}]"#;
    assert_eq!(read_file("m.json", memory).records[0].item["expires_at"], "2030-08-31T00:00:00.000Z");
}

#[test]
fn mem0_data_is_a_memory_too() {
    let memory = br#"[{"id": "1", "data": "Likes rye", "user_id": "ada"}]"#;
    assert_eq!(texts(&read_file("m.json", memory)), ["Likes rye"]);
    let event =
        br#"{"results": [{"id": "1", "data": {"memory": "Likes rye"}, "event": "ADD", "user_id": "a"}]}"#;
    assert_eq!(texts(&read_file("m.json", event)), ["Likes rye"]);
}

/// The sources of what a file holds, as an import from that place tells them apart.
fn sources_at(name: &str, bytes: &[u8], root: &str, as_name: Option<&str>) -> Vec<String> {
    let origin = Origin { name: as_name.map(str::to_owned), root: root.to_owned(), ..Origin::default() };
    let complete = |mut record: Record| {
        origin.complete(&mut record);
        record.source
    };
    read_file(name, bytes).records.into_iter().map(complete).collect()
}

#[test]
fn letta_two_files_with_the_same_ids_are_both_there() {
    let file = br#"{"agents": [{"id": "agent-0", "messages": [{"id": "message-2", "role": "user", "content": "Hi"}]}],
        "blocks": [{"id": "block-0", "label": "human", "value": "Ada"}]}"#;
    let (one, other) = (sources_at("a.af", file, "/x/a.af", None), sources_at("b.af", file, "/x/b.af", None));
    assert_eq!((one.len(), other.len()), (2, 2));
    assert!(one.iter().all(|source| !other.contains(source)), "{one:?} {other:?}");
    assert_eq!(one, sources_at("a.af", file, "/x/a.af", None));
    assert_eq!(
        sources_at("a.af", file, "/x/a.af", Some("helper")),
        sources_at("b.af", file, "/x/b.af", Some("helper")),
        "one name, one origin"
    );
}

#[test]
fn letta_the_reply_of_send_message_and_the_archival_insert() {
    let call = |name: &str, arguments: Value| json!({"function": {"name": name, "arguments": arguments.to_string()}});
    let message = json!({"id": "message-1", "role": "assistant", "content": [{"type": "text", "text": "They are hungry."}],
    "tool_calls": [
        call("archival_memory_insert", json!({"content": "Buys rye from Ana"})),
        call("send_message", json!({"message": "Bake bread!"})),
    ]});
    let silent = json!({"id": "message-2", "role": "assistant", "content": [{"type": "text", "text": "Let me look."}],
        "tool_calls": [call("conversation_search", json!({"query": "rye"}))]});
    let file = |agent_type: &str| {
        let agent = json!({"id": "agent-0", "agent_type": agent_type, "messages": [message, silent]});
        read_file("a.af", json!({"agents": [agent], "blocks": []}).to_string().as_bytes())
    };
    let found = file("memgpt_v2_agent");
    assert_eq!(texts(&found), ["Buys rye from Ana", "Bake bread!"]);
    assert_eq!(found.records[0].item["kind"], "fact");
    assert_eq!(found.skipped, ["a call of a tool"]);
    // Agents of the newest kind speak in their text.
    assert_eq!(texts(&file("letta_v1_agent")), ["Buys rye from Ana", "Bake bread!", "Let me look."]);
}

fn note(text: &str) -> Read {
    read_file("vault/Day.md", text.as_bytes())
}

#[test]
fn notes_a_line_with_a_link_is_kept_whole() {
    let found = note("- Meeting with [[Ana]] - moved the launch to 8 June\n");
    assert_eq!(texts(&found), ["Day\n- Meeting with [[Ana]] - moved the launch to 8 June"]);
}

#[test]
fn notes_a_task_is_text_and_an_embed_is_left_out() {
    let found = note("- [ ] Call [[X]]\n- ![[a.pdf]]\n![[b.png]]\n- [x] Done with [[Y]]\n");
    assert_eq!(texts(&found), ["Day\n- [ ] Call [[X]]\n- [x] Done with [[Y]]"]);
    assert_eq!(found.skipped, ["an embedded file"; 2]);
    assert!(found.records.iter().all(|r| r.item["content"]["structured"].is_null()), "no relations");
}

#[test]
fn notes_two_vaults_with_a_note_of_one_name_are_both_there() {
    let (one, other) = (b"# Inbox\nTea\n", b"# Inbox\nRye\n");
    let (one, other) = (
        sources_at("Inbox.md", one, "/home/Inbox.md", None),
        sources_at("Inbox.md", other, "/work/Inbox.md", None),
    );
    assert!(one != other && one.len() == 1 && other.len() == 1);
    // A vault that is given as a whole, and a note of it alone.
    let vault = Origin { root: "/home/vault".into(), file: "sub/Inbox.md".into(), ..Origin::default() };
    let alone = Origin { root: "/home/vault/sub/Inbox.md".into(), ..Origin::default() };
    let source = |origin: Origin| {
        let mut record = note("Tea\n").records.remove(0);
        origin.complete(&mut record);
        record.source
    };
    assert_eq!(source(vault), source(alone));
}

#[test]
fn notes_a_section_above_changes_nothing_below() {
    let sources = |text: &str| -> Vec<String> { note(text).records.into_iter().map(|r| r.source).collect() };
    let before = sources("# A\nOne\n## B\nTwo\n## B\nThree\n- [tip] Cold water\n");
    let after = sources("# New\nZero\n# A\nOne\n## B\nTwo\n## B\nThree\n- [tip] Cold water\n");
    assert!(before.iter().all(|source| after.contains(source)), "{before:?} {after:?}");
    assert_eq!(after.len(), before.len() + 1);
    // An observation has no id: it stands in a list, where the gateway finds it again when it was edited.
    let found = note("- [tip] Cold water\n- needs [[Rye]]\n");
    let groups: Vec<&str> = found.records.iter().map(|r| r.group.as_deref().unwrap()).collect();
    assert_eq!(groups, ["notes:observations", "notes:relations"]);
    // Too many to be compared are told apart by what they say.
    let many: String = (0..600).map(|n| format!("- [tip] Number {n}\n")).collect();
    assert!(note(&many).records.iter().all(|r| r.group.is_none()));
}

#[test]
fn notes_canvases_and_hidden_files_are_left_out_once() {
    for (name, bytes) in [
        ("Board.canvas", &b"{\n\t\"nodes\": [\n\t\t{\"id\": \"1\", \"text\": \"x\"}\n\t]\n}"[..]),
        ("vault/.obsidian/workspace.json", b"{\n  \"main\": {}\n}"),
        ("vault/.obsidian/notes.md", b"# x"),
        ("__MACOSX/._Inbox.md", b"\0\x05\x16\x07\0\x02"),
        ("__MACOSX/vault/Inbox.md", b"# x"),
        (".DS_Store", b"\0\0\0\x01Bud1"),
    ] {
        let found = read_file(name, bytes);
        assert_eq!((found.records.len(), found.refused.len(), found.skipped.len()), (0, 0, 1), "{name}");
    }
}

#[test]
fn notes_front_matter_that_does_not_parse_is_told() {
    let found = note("---\ntitle: a: b: [\n---\nThe starter is called Otto.\n");
    assert_eq!(texts(&found), ["Day\nThe starter is called Otto."]);
    assert_eq!(found.skipped, ["front matter that is no YAML; the rest was read"]);
    // A line is no front matter.
    assert_eq!(texts(&note("---\nOtto\n")), ["Day\n---\nOtto"]);
    assert!(note("---\n---\nOtto\n").skipped.is_empty());
}

#[test]
fn basic_memory_a_relation_in_quotes_and_its_context() {
    let found = note("- \"depends on\" [[X]] (flour photos)\n- part_of [[Y]]\n");
    assert_eq!(texts(&found), ["Day depends on X (flour photos)", "Day part of Y"]);
    let structured = &found.records[0].item["content"]["structured"];
    assert_eq!(
        structured,
        &json!({"from": "Day", "relationType": "depends on", "to": "X", "context": "flour photos"})
    );
}

#[test]
fn csv_two_tables_with_the_same_ids_are_both_there() {
    let (one, other) = (
        sources_at("a.csv", b"id,text\n1,Tea\n", "/x/a.csv", None),
        sources_at("b.csv", b"id,text\n1,Rye\n", "/x/b.csv", None),
    );
    assert!(one != other && one.len() == 1);
    // A newer export under another name is the same table where the owner says so.
    let (one, other) = (
        sources_at("a.csv", b"id,text\n1,Tea\n", "/x/a.csv", Some("shop")),
        sources_at("a-2.csv", b"id,text\n1,Rye\n", "/x/a-2.csv", Some("shop")),
    );
    assert_eq!(one, other);
}

#[test]
fn csv_separators_are_recognised() {
    for table in [
        "text;labels\nVrednost;x\n",
        "text\tlabels\nVrednost\tx\n",
        "text|labels\nVrednost|x\n",
        "text,labels\nVrednost,x\n",
        "\"text\";\"a,b,c\";labels\nVrednost;1;x\n",
    ] {
        let found = read_file("t.csv", table.as_bytes());
        assert_eq!(texts(&found), ["Vrednost"], "{table}");
        assert_eq!(found.records[0].item["labels"], json!(["csv", "x"]), "{table}");
    }
    assert_eq!(texts(&read_file("t.tsv", b"text\tlabels\nVrednost\tx\n")), ["Vrednost"]);
    assert_eq!(texts(&read_file("t.csv", b"text\nVrednost\n")), ["Vrednost"], "one column");
}

#[test]
fn okf_concepts_are_read() {
    let concept = "---\ntype: Metric\ntitle: Revenue\ndescription: What the shop took.\ntags: [sales]\nresource: https://x.example/\n\
        generated: { by: human:ada, at: 2026-05-28T14:30:00Z }\nverified: { by: human:ada, at: 2026-06-25T09:00:00Z }\n\
        stale_after: 2026-09-23\nstatus: deprecated\nfloor: 2\n---\n\n# Definition\n\nThe sum of `amount`.\n";
    let found = read_file("metrics/revenue.md", concept.as_bytes());
    assert_eq!(texts(&found), ["Revenue\nWhat the shop took.\n# Definition\n\nThe sum of `amount`."]);
    let item = &found.records[0].item;
    assert_eq!(item["labels"], json!(["okf", "sales", "deprecated"]));
    assert_eq!(provenance(&found.records[0], "captured_at"), "2026-05-28T14:30:00.000Z");
    let kept = &item["content"]["structured"]["okf"];
    assert_eq!(
        (&kept["type"], &kept["floor"], &kept["verified"]["by"]),
        (&json!("Metric"), &json!(2), &json!("human:ada"))
    );
    assert_eq!(kept["stale_after"], "2026-09-23", "stale is not expired");
    assert!(item.get("expires_at").is_none());
    // Reserved files are no concepts; other notes are no concepts either.
    assert_eq!(read_file("index.md", b"---\nokf_version: \"0.2\"\n---\n\n# Metrics\n").skipped.len(), 1);
    assert_eq!(
        read_file("log.md", b"# Directory Update Log\n\n## 2026-05-22\n* **Update**: x\n").skipped.len(),
        1
    );
    assert_eq!(import::recognise("a.md", b"---\ntype: note\npermalink: a\n---\nx"), Some(Format::Notes));
    assert_eq!(import::recognise("index.md", b"# Home\n[[A]]"), Some(Format::Notes));
    assert_eq!(import::left_out("log.md", b"# My log\nx"), None);
    // A type is all that a concept needs.
    let bare = read_as(Format::Okf, "x/Orders.md", b"---\ntype: BigQuery Table\n---\n", &Mapping::default());
    assert_eq!(texts(&bare), ["Orders"]);
}

/// What goes out as Open Knowledge Format comes in as it was.
#[test]
fn okf_round_trip() {
    use oap_formats::export::{Form, Layout};
    let items = [
        json!({"item_id": "mem_1", "kind": "preference", "content": {"text": "# Tea\nat four"}, "labels": ["a", "b"],
            "subject_entity_id": "Ada", "provenance": {"captured_at": "2026-05-28T14:30:00.000Z", "confidence": 0.5}}),
        json!({"item_id": "mem_2", "kind": "fact", "content": {"text": "---\ntitle: x\n---", "structured": {"a": {"b": [1, null]}}},
            "labels": [], "provenance": {"captured_at": "2026-05-28T14:30:00.000Z"}, "expires_at": "2030-01-01T00:00:00.000Z"}),
    ];
    for item in items {
        let file = (Form::Okf.exporter().write)(&item);
        assert_eq!(import::recognise("mem.md", file.as_bytes()), Some(Format::Okf), "{file}");
        let found = read_file("mem.md", file.as_bytes());
        let back = &found.records[0].item;
        for member in [
            "/kind",
            "/content/text",
            "/content/structured",
            "/subject_entity_id",
            "/expires_at",
            "/provenance/confidence",
            "/provenance/captured_at",
        ] {
            assert_eq!(back.pointer(member), item.pointer(member), "{member} of {file}");
        }
        let labels: Vec<&str> = back["labels"].as_array().unwrap().iter().filter_map(Value::as_str).collect();
        assert_eq!(json!(labels[1..]), item["labels"]);
    }
    // And a concept of others, through an item and out again.
    let concept = "---\ntype: Metric\ntitle: Revenue\ndescription: Took.\ngenerated:\n  by: human:ada\n  at: 2026-05-28T14:30:00Z\nfloor: 2\n---\n\nThe sum.\n";
    let mut item = read_file("r.md", concept.as_bytes()).records[0].item.clone();
    item["item_id"] = json!("mem_3");
    let again = read_file("r.md", (Form::Okf.exporter().write)(&item).as_bytes());
    assert_eq!(again.records[0].item["content"], item["content"]);
    let Layout::Folder(Some(index)) = Form::Okf.exporter().layout else { panic!("a folder with an index") };
    let name = index.name;
    let index = format!("{}{}", index.before, (index.entry)(&item, "mem_3.md"));
    assert!(index.ends_with("* [Revenue](mem_3.md) - fact\n"), "{index}");
    assert!(import::left_out(name, index.as_bytes()).is_some(), "an index is no concept");
}

/// Accounts, files and names: whose id is whose.
#[test]
fn origins_keep_accounts_apart_and_newer_exports_together() {
    let uuid = "8f3a2b1c-0000-4000-8000-000000000001";
    let record = |reach: Reach, account: Option<&str>| Record {
        source: format!("x:{uuid}"),
        reach,
        account: account.map(str::to_owned),
        group: Some("g".into()),
        place: String::new(),
        item: json!({"provenance": {}}),
    };
    let complete = |mut record: Record, name: Option<&str>, account: Option<&str>, root: &str, file: &str| {
        let owned = |text: Option<&str>| text.map(str::to_owned);
        let (name, account) = (owned(name), owned(account));
        Origin { name, account, root: root.into(), file: file.into() }.complete(&mut record);
        (record.source, record.item["provenance"]["origin"].clone())
    };
    for reach in [Reach::World, Reach::Account] {
        let of = |account, root| complete(record(reach, None), None, account, root, "a.json");
        assert_eq!(of(Some("a"), "/old.zip").0, of(Some("a"), "/new.zip").0, "a newer export of the account");
        assert_ne!(of(Some("a"), "/x.zip").0, of(Some("b"), "/x.zip").0, "another account");
        assert!(of(Some("a"), "/x.zip").1.as_str().unwrap().starts_with("account-"));
        assert_ne!(complete(record(reach, Some("c")), None, Some("a"), "/x", "").0, of(Some("a"), "/x").0);
    }
    let plain = |reach, root| complete(record(reach, None), None, None, root, "f").0;
    assert_eq!(plain(Reach::World, "/a"), plain(Reach::World, "/b"), "unique everywhere");
    for reach in [Reach::Account, Reach::File, Reach::Path] {
        assert_ne!(plain(reach, "/a"), plain(reach, "/b"));
        assert_eq!(plain(reach, "/a"), plain(reach, "/a"));
        assert!(!plain(reach, "/home/ada").contains("ada"), "paths are hashed");
    }
    let named = |reach, root, file| complete(record(reach, None), Some("n"), Some("a"), root, file);
    for reach in [Reach::World, Reach::Account, Reach::File, Reach::Path] {
        assert_eq!(named(reach, "/a", "f").0, named(reach, "/b", "f").0);
        assert_eq!(named(reach, "/a", "f").1, "n");
    }
    assert_eq!(named(Reach::File, "/a.csv", "").0, named(Reach::File, "/b.csv", "").0);
    assert_ne!(
        named(Reach::Path, "/a.md", "").0,
        named(Reach::Path, "/b.md", "").0,
        "notes are told apart by name"
    );
    assert_eq!(named(Reach::Path, "/v/a.md", "").0, named(Reach::Path, "/v", "a.md").0);
}

/// The records of several files, as a store holds them after importing them in that order.
fn held(files: &[(&str, Value)]) -> std::collections::BTreeMap<String, Value> {
    let read = files.iter().flat_map(|(name, file)| read_file(name, file.to_string().as_bytes()).records);
    read.map(|record| (record.source, record.item)).collect()
}

/// Importing a part of an account's conversations and then all of them is importing all of them, and the order of the
/// files of an export does not matter.
#[test]
fn a_part_and_then_the_whole_is_the_whole_in_any_order() {
    let read = |path: &str| -> Value {
        let path = format!("{}/../../examples/exports/{path}", env!("CARGO_MANIFEST_DIR"));
        serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap()
    };
    for (name, messages) in
        [("chatgpt/conversations.json", "mapping"), ("claude/conversations.json", "chat_messages")]
    {
        let whole = read(name);
        let mut other = whole.clone();
        // A second conversation with the same instructions.
        for id in ["conversation_id", "id", "uuid"] {
            if other[0][id].is_string() {
                other[0][id] = json!("8f3a2b1c-0000-4000-8000-00000000000f");
            }
        }
        let all = held(&[(name, whole.clone()), (name, other.clone())]);
        assert_eq!(all, held(&[(name, other.clone()), (name, whole.clone())]), "{name}");
        assert!(all.len() > held(&[(name, whole.clone())]).len(), "{name}");
        assert_eq!(
            all,
            held(&[(name, other.clone()), (name, whole.clone()), (name, other)]),
            "twice is once"
        );
        let mut part = whole.clone();
        match &mut part[0][messages] {
            Value::Array(messages) => messages.truncate(1),
            Value::Object(mapping) => drop(mapping.remove("n4")),
            _ => panic!("{name}"),
        }
        assert!(held(&[(name, part.clone())]).len() < held(&[(name, whole.clone())]).len());
        assert_eq!(held(&[(name, part), (name, whole.clone())]), held(&[(name, whole)]), "{name}");
    }
}

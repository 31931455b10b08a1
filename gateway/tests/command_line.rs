//! The form of the command line: what is typed wrongly, screens, grants by prefix and from drafts, the status.

use crate::program::*;
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Write};
use std::process::Stdio;

/// What is typed wrongly fails before anything is opened: this home is not there, which would be status 1.
#[test]
fn what_is_typed_wrongly_names_the_flag_and_the_fix() {
    let home = Home::empty();
    for (line, says) in [
        (
            "audit --since tomorow",
            "--since: \"tomorow\" is not a time; use 30d, 2w, 1h, 15m, 2026-06-30 or an RFC 3339 time",
        ),
        (
            "grant preview --to did:wbe:a.example --purpose p --until 30d",
            "--to: the DID method \"wbe\" is not known here",
        ),
        ("grant preview --to did:web:a.example --purpose p --until 30e", "--until: \"30e\" is not a time"),
        (
            "grant preview --to did:web:a.example --purpose p --until 30d --kind facts",
            "--kind: \"facts\" must be one of fact, ",
        ),
        ("grant show mem_1", "ID: "),
        ("item list --scope a/b", "--scope: a scope is"),
        ("keys revoke key-1 --since 2026-02-30", "--since: \"2026-02-30\" is not a time"),
        ("delete --all --yes --until never", "--until: \"never\" is not a time"),
        ("export bundle --since 1y", "--since: \"1y\" is not a time"),
        ("hold set mem_01J9V8B7H1ZK4D2A0M9R8F0KQX --until 99999999d", "--until: \"99999999d\" is too long"),
        ("bridge issue --from a --to b --category c --until x", "--until: \"x\" is not a time"),
        ("import file --from chatgtp", "--from: \"chatgtp\" must be one of chatgpt, "),
        ("import file --map text:body", "--map: \"text:body\": is no member=column"),
        ("import file --map said=body", "--map: \"said\": must be one of text, kind, label, "),
        ("import file --as \t", "--as: must be 1 to 128 bytes without control characters"),
        ("export file --to age1x", "--to: must be an age recipient, age1…: "),
        (
            "item retract --provenance chatgpt --yes",
            "--provenance: must be NAME=VALUE, such as imported_from=",
        ),
        (
            "query --grant g.json --purpose Web",
            "--purpose: must be a code of 1 to 64 characters a-z 0-9 _ . -",
        ),
        ("query --grant g.json --cursor é", "--cursor: must be what an answer says after --cursor"),
        ("job show mem_1", "JOB: must be a job's id, or the beginning of one, such as job_01J9V8B7"),
        ("unlock --for 13h", "--for: at most 12h"),
        ("init --did did:example:1", "--did: "),
        ("probe memory.example", "URL: must be a URL"),
        ("item list --nope", "--nope"),
        ("item list --limit 0", "--limit"),
        ("item list --since 1y", "--since: \"1y\" is not a time"),
        ("nope", "nope"),
    ] {
        let arguments: Vec<&str> = line.split(' ').collect();
        home.run(&arguments).failed(2, says);
        let ran = home.run(&[&arguments[..], &["--json"]].concat());
        let told: Value =
            serde_json::from_str(&ran.stderr).unwrap_or_else(|e| panic!("{line}: {e}: {}", ran.stderr));
        assert_eq!((ran.status, &told["status"], ran.stdout.as_str()), (2, &2.into(), ""), "{line}");
        assert!(told["error"].as_str().is_some_and(|error| error.contains(says)), "{line}: {told}");
    }
    home.run(&["grant", "--json"]).failed(2, "subcommand");
    assert!(home.run(&["grant", "--help", "--json"]).ok().contains("Examples:"));
}

const GRANTEE: &str = "did:web:contractor.example";

/// A home with two items.
fn filled() -> Home {
    let home = Home::key();
    let (text, evil) =
        ("Prefers meetings on Tuesday mornings, and none at all after four", "\u{1b}[2J東京\u{202e}\u{9b}1m");
    home.run(&["item", "add", "--kind", "preference", "--text", text, "--label", "website"]).ok();
    home.run(&["item", "add", "--kind", "fact", "--text", evil, "--label", "website"]).ok();
    home
}

fn terms<'a>(command: &'a str, more: &[&'a str]) -> Vec<&'a str> {
    let mut line =
        vec!["grant", command, "--to", GRANTEE, "--purpose", "Website redesign", "--trust-level", "2"];
    line.extend(["--label", "website"]);
    if !more.contains(&"--until") {
        line.extend(["--until", "30d"]);
    }
    line.extend(more);
    line
}

fn grant_id(info: &Value) -> String {
    info["grant"]["grant_id"].as_str().unwrap().to_owned()
}

#[test]
fn lists_fit_the_screen_and_are_whole_in_a_pipe() {
    let home = filled();
    let narrow = Home::finish(home.command(&["item", "list"]).env("COLUMNS", "40")).ok();
    assert!(
        narrow.contains('…') && !narrow.contains("Prefers meetings on Tuesday mornings, and none"),
        "{narrow}"
    );
    // Two columns for each of the two wide characters.
    assert!(
        narrow
            .lines()
            .all(|line| line.chars().count() + line.chars().filter(|c| "東京".contains(*c)).count() <= 40)
    );
    let whole = Home::finish(home.command(&["item", "list"]).env_remove("COLUMNS")).ok();
    let list = home.run(&["item", "list", "--json"]);
    for text in [&narrow, &whole, &list.stdout] {
        assert!(!text.contains(['\u{1b}', '\u{202e}', '\u{9b}']), "{text:?}");
    }
    let list = list.json();
    for item in list["items"].as_array().unwrap() {
        assert!(whole.contains(item["item_id"].as_str().unwrap()), "{whole}");
    }
    assert!(whole.contains("none at all after four"), "{whole}");
    // The same text, however it is written.
    assert!(list["items"].to_string().contains("東京\u{202e}"));
}

#[test]
fn grants_by_the_beginning_of_their_id_and_from_drafts() {
    let home = filled();
    let draft = home.path("draft.json");
    home.run(&terms("draft", &["--out", &draft])).ok();
    assert_eq!(
        home.run(&["grant", "list", "--json"]).json()["grants"],
        serde_json::json!([]),
        "a draft is no grant"
    );
    assert_eq!(home.run(&["grant", "preview", "--draft", &draft, "--json"]).json()["selected"], 2);
    let mut edited = read(&draft);
    edited["max_items"] = 7.into();
    write(&draft, &edited);
    let first = home.run(&["grant", "issue", "--draft", &draft, "--offline", "--json"]).json();
    assert_eq!((&first["grant"]["max_items"], &first["superseded"]), (&7.into(), &Value::Null));
    let second = home.run(&terms("issue", &["--offline", "--json", "--until", "3d"])).json();
    let (first, second) = (grant_id(&first), grant_id(&second));

    // One beginning for both, and one for each.
    home.run(&["grant", "show", "mgr_"]).failed(2, "ID: must be a grant's id, or the beginning of one");
    let both = home.run(&["grant", "show", &first[..6]]);
    assert!(both.stderr.contains(&first) && both.stderr.contains(&second), "{}", both.stderr);
    both.failed(2, "is the beginning of 2 grants' ids");
    home.run(&["grant", "revoke", "mgr_7ZZZZZ"]).failed(1, "no grant's id begins with mgr_7ZZZZZ");
    let short = first[..first.len() - 1].to_lowercase();
    let shown = home.run(&["grant", "show", &short]).ok();
    assert!(
        shown.contains(&first) && shown.contains("is active until") && shown.contains(GRANTEE),
        "{shown}"
    );

    // What is listed.
    let listed = |flags: &[&str]| -> Vec<String> {
        let list = home.run(&[&["grant", "list", "--json"], flags].concat()).json();
        list["grants"].as_array().unwrap().iter().map(grant_id).collect()
    };
    assert_eq!(listed(&["--to", GRANTEE]), [second.clone(), first.clone()]);
    assert!(listed(&["--to", "did:web:other.example"]).is_empty());
    assert_eq!(listed(&["--expiring", "14d"]), std::slice::from_ref(&second));

    // Another in its place: the old one ends once the new one stands and is written.
    home.run(&["grant", "edit", &short, "--out", &draft]).ok();
    let mut edited = read(&draft);
    assert_eq!((&edited["supersedes"], &edited["max_items"]), (&first.as_str().into(), &7.into()));
    edited["max_items"] = 0.into();
    write(&draft, &edited);
    home.run(&["grant", "issue", "--draft", &draft, "--offline"]).failed(2, "max_items");
    assert!(listed(&["--active"]).contains(&first), "nothing new stands, so the old one does");
    edited["max_items"] = 9.into();
    write(&draft, &edited);
    let new = home.path("new.json");
    let told = home.run(&["grant", "issue", "--draft", &draft, "--offline", "--out", &new]).ok();
    assert!(told.contains(&format!("{first} revoked")), "{told}");
    let third = read(&new)["grant_id"].as_str().unwrap().to_owned();
    assert_eq!(listed(&["--active"]), [third.clone(), second.clone()]);
    let again = home.path("again.json");
    home.run(&["grant", "show", &third, "--out", &again]).ok();
    assert_eq!(read(&again), read(&new));
    home.run(&["grant", "issue", "--draft", &draft, "--label", "x"]).failed(2, "--label");
    home.run(&["grant", "issue", "--purpose", "x", "--until", "1d"]).failed(2, "--to DID is needed");
}

#[test]
fn the_note_about_conversation_turns_needs_some() {
    let home = filled();
    let note = "Conversation turns are included";
    let preview = || home.run(&terms("preview", &[])).ok();
    assert!(!preview().contains(note));
    home.run(&["item", "add", "--kind", "conversation_turn", "--text", "tea?", "--label", "other"]).ok();
    assert!(!preview().contains(note), "that one is not selected");
    home.run(&["item", "add", "--kind", "conversation_turn", "--text", "tea?", "--label", "website"]).ok();
    assert!(preview().contains(note));
}

#[test]
fn the_status_on_one_screen() {
    let home = Home::web();
    home.run(&["item", "add", "--kind", "fact", "--text", "tea", "--label", "website"]).ok();
    let issued = home.run(&terms("issue", &["--offline", "--json", "--until", "3d"])).json();
    let status = home.run(&["status", "--json"]).json();
    assert_eq!((&status["items"]["kinds"]["fact"], &status["items"]["held"]), (&1.into(), &0.into()));
    assert_eq!(status["grants"]["states"]["active"], 1);
    assert_eq!(status["grants"]["next"]["grant_id"], grant_id(&issued));
    assert_eq!((&status["open_by"], &status["last_query"]), (&Value::Null, &Value::Null));
    let text = home.run(&["status"]).ok();
    for says in [
        "not serving",
        "1: 1 fact",
        "1 active, the next ends",
        " days left)",
        "soon   active grants",
        "MiB free",
    ] {
        assert!(text.contains(says), "{text} has no {says:?}");
    }
    let server = home.serve(&[]);
    let status = home.run(&["status", "--json"]).json();
    assert_eq!(
        (&status["open_by"]["command"], &status["open_by"]["pid"]),
        (&"serve".into(), &server.id().into())
    );
    let text = home.run(&["status"]).ok();
    assert!(text.contains(&format!("serving {} on 127.0.0.1:{}", home.origin(), home.port)), "{text}");
    assert!(text.contains("Certificate  ends "), "{text}");
}

#[test]
fn manual_pages_and_completions_have_the_values() {
    let home = Home::empty();
    let folder = home.path("man");
    home.run(&["man", "--out", &folder]).ok();
    let page = std::fs::read_to_string(format!("{folder}/oap-memory-grant-issue.1")).unwrap();
    assert!(page.contains("legitimate_interests"), "{page}");
    let version = env!("CARGO_PKG_VERSION");
    for says in [
        &format!(".TH oap-memory-grant-issue 1  \"oap-memory {version}\""),
        ".SH EXAMPLES\n.nf\n  oap\\-memory grant issue ",
        "\\fBoap\\-memory grant issue\\fR",
        "[\\-\\-until <TIME>]",
    ] {
        assert!(page.contains(says), "{says}: {page}");
    }
    let (_, examples) = page.split_once(".nf\n").unwrap();
    let (examples, _) = examples.split_once(".fi\n").unwrap();
    assert!(examples.contains("\\-\\-to did:web:") && !examples.contains("\n\n"), "{examples}");
    for shell in ["bash", "zsh", "fish"] {
        let script = home.run(&["completions", shell]).ok();
        for value in ["conversation_turn", "calendar_event.v1", "ongoing_dispute", "mcp-memory", "openintent"]
        {
            assert!(script.contains(value), "{shell}: {value}");
        }
    }
}

/// What bash offers for the last of these words.
fn completed(script: &str, words: &[&str]) -> Vec<String> {
    let (last, before) = words.split_last().unwrap();
    let ask = "source \"$1\"; shift; COMP_WORDS=(\"$@\"); COMP_CWORD=$(($# - 1)); \
        _oap__memory \"$1\" \"${COMP_WORDS[COMP_CWORD]}\" \"${COMP_WORDS[COMP_CWORD - 1]}\"; \
        printf '%s\\n' \"${COMPREPLY[@]}\"";
    let mut bash = std::process::Command::new("bash");
    bash.args(["--norc", "-c", ask, "bash", script]).args(before).arg(last);
    Home::finish(&mut bash).ok().lines().map(str::to_owned).collect()
}

#[test]
#[ignore = "needs bash"]
fn bash_completes_below_the_first_word() {
    let home = Home::empty();
    let script = home.path("oap-memory.bash");
    std::fs::write(&script, home.run(&["completions", "bash"]).ok()).unwrap();
    let offered = |words: &[&str]| completed(&script, words);
    assert_eq!(offered(&["oap-memory", "item", "li"]), ["list"]);
    let kinds = offered(&["oap-memory", "item", "list", "--kind", ""]);
    assert!(kinds.contains(&"fact".to_owned()) && kinds.contains(&"preference".to_owned()), "{kinds:?}");
    assert_eq!(offered(&["oap-memory", "item", "list", "--kind", "conv"]), ["conversation_turn"]);
    assert!(offered(&["oap-memory", "gra"]).contains(&"grant".to_owned()));
}

#[test]
fn ids_that_are_printed_are_of_use() {
    let home = Home::key();
    let file = home.path("items.jsonl");
    let line = |n: usize| format!("{{\"kind\":\"fact\",\"content\":{{\"text\":\"tea {n}\"}}}}\n");
    std::fs::write(&file, (0..4).map(line).collect::<String>()).unwrap();
    let narrow = |arguments: &[&str]| Home::finish(home.command(arguments).env("COLUMNS", "80")).ok();
    let written = narrow(&["item", "add", "--file", &file]);
    assert_eq!(written.lines().count(), 4, "{written}");
    for id in written.lines() {
        assert!(narrow(&["item", "show", id]).contains(id));
    }
    let listed = narrow(&["item", "list"]);
    for line in listed.lines().skip(1) {
        let id = line.split(' ').next().unwrap();
        assert!(id.len() >= "mem_".len() + 12, "{listed}");
        narrow(&["item", "show", id]);
    }
}

#[test]
fn what_is_searched_or_selected_fits_the_screen() {
    let home = Home::key();
    let text = "The website of the contractor goes live on the first of June and the old one is switched off";
    let label = ["--label", "website", "--label", "contractor", "--label", "dates"];
    home.run(&[&["item", "add", "--kind", "conversation_turn", "--text", text][..], &label].concat()).ok();
    let id = home.run(&["item", "list", "--json"]).json()["items"][0]["item_id"].as_str().unwrap().to_owned();
    for (arguments, says) in [
        (&["search", "website"][..], "item "),
        (&["delete", "--label", "website", "--dry-run"], "item "),
        (&["item", "retract", "--label", "website", "--dry-run"], "item "),
        (&["import", "--formats"], "chatgpt"),
        (&["clock", "show"], "latest time known"),
        (&["item", "show", &id, "--history"], "by did:key:"),
    ] {
        let shown = Home::finish(home.command(arguments).env("COLUMNS", "80")).ok();
        assert!(shown.contains(says), "{arguments:?}: {shown}");
        assert!(shown.lines().all(|line| line.chars().count() <= 80), "{arguments:?}: {shown}");
    }
    // What they would see is shown whole, and wrapped.
    let preview = Home::finish(home.command(&terms("preview", &[])).env("COLUMNS", "80")).ok();
    assert!(preview.lines().all(|line| line.chars().count() <= 80), "{preview}");
    assert!(!preview.contains('…'), "{preview}");
    for word in text.split(' ') {
        assert!(preview.contains(word), "{word}: {preview}");
    }
}

#[test]
fn items_are_listed_by_the_time_of_capture() {
    let home = Home::key();
    for (text, at) in [("a", "2026-01-01"), ("b", "2026-02-01"), ("c", "2026-03-01"), ("d", "2026-02-01")] {
        home.run(&["item", "add", "--kind", "fact", "--text", text, "--captured-at", at]).ok();
    }
    let page = |flags: &[&str]| home.run(&[&["item", "list", "--json"], flags].concat()).json();
    let texts = |page: &Value| -> Vec<String> {
        let items = page["items"].as_array().unwrap();
        items.iter().map(|item| item["content"]["text"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(texts(&page(&["--since", "2026-02-01"])), ["d", "c", "b"]);
    assert_eq!(texts(&page(&["--until", "2026-02-01"])), ["d", "b", "a"]);
    let first = page(&["--since", "2026-02-01", "--until", "2026-02-28", "--limit", "1"]);
    assert_eq!(texts(&first), ["d"]);
    let next = first["next"].as_str().unwrap();
    let second = page(&["--since", "2026-02-01", "--until", "2026-02-28", "--limit", "1", "--before", next]);
    assert_eq!((texts(&second), &second["next"]), (vec!["b".to_owned()], &Value::Null));
}

#[test]
fn an_empty_list_is_none() {
    let home = Home::key();
    for arguments in
        [["item", "list"], ["grant", "list"], ["hold", "list"], ["bridge", "list"], ["budget", "list"]]
    {
        assert_eq!(home.run(&arguments).ok(), "none\n", "{arguments:?}");
        let narrow = Home::finish(home.command(&arguments).env("COLUMNS", "80")).ok();
        assert_eq!(narrow, "none\n", "{arguments:?}");
    }
    assert_eq!(home.run(&["item", "list", "--json"]).json()["items"], serde_json::json!([]));
}

/// What the own gateway finds wrong is status 2 with the flag; what is not there is status 1.
#[test]
fn what_the_gateway_finds_wrong_names_the_flag() {
    let home = filled();
    for (more, says) in [
        (["--until", "400d"], "--until: a grant holds at most"),
        (["--until", "2020-01-01"], "--until: must be later"),
        (["--max-items", "0"], "--max-items: must be from 1"),
        (["--profile", "nosuch.v1"], "--profile: no profile of that name"),
    ] {
        home.run(&[&terms("issue", &more)[..], &["--offline"]].concat()).failed(2, says);
    }
    let whole = |prefix: &str| format!("{prefix}_01J9V8B7H1ZK4D2A0M9R8F0KQX");
    let none = home.path("nosuch.json");
    let (item, grant) = (whole("mem"), whole("mgr"));
    for (line, status, says) in [
        (
            vec!["delete", "--since", "2026-02-01", "--until", "2026-01-01", "--yes"],
            2,
            "--until: must be later",
        ),
        (vec!["item", "add", "--kind", "fact"], 2, "--text or --structured"),
        (vec!["item", "add", "--kind", "fact", "--structured", "[1]"], 2, "--structured: must be"),
        (vec!["item", "show", &item], 1, item.as_str()),
        (vec!["grant", "revoke", &grant], 1, grant.as_str()),
        (vec!["query", "--grant", &none], 2, "--grant: "),
        (vec!["grant", "issue", "--draft", &none], 2, "--draft: "),
        (vec!["query", "ftp://a.example", "--grant", &none], 2, "ftp://a.example"),
        (vec!["who", "did:wbe:a.example"], 2, "wbe"),
        (vec!["grant", "list", "--to", "did:wbe:a.example"], 2, "--to: "),
    ] {
        home.run(&line).failed(status, says);
    }
    let key = home.path("k2.key");
    home.run(&["key", "new", "--out", &key]).ok();
    home.run(&["query", "--grant", &key]).failed(2, "not a grant");
    home.run(&["grant", "show", "mgr_0", "--out", "/nonexistent/g.json"])
        .failed(1, "/nonexistent/g.json: No such");
}

#[test]
fn a_draft_takes_a_grants_place_once() {
    let home = filled();
    let (draft, out) = (home.path("draft.json"), home.path("grant.json"));
    let issued = home.run(&terms("issue", &["--offline", "--out", &out]));
    assert!(issued.stderr.contains("WARNING: the grant leads to https://127.0.0.1:"), "{}", issued.stderr);
    assert!(issued.ok().contains("it leads to https://127.0.0.1:"));
    let first = read(&out)["grant_id"].as_str().unwrap().to_owned();
    home.run(&["grant", "edit", &first, "--out", &draft]).ok();
    home.run(&["grant", "issue", "--draft", &draft, "--offline"]).ok();
    home.run(&["grant", "issue", "--draft", &draft, "--offline"]).failed(1, "is revoked");
    let active = home.run(&["grant", "list", "--active", "--json"]).json();
    assert_eq!(active["grants"].as_array().unwrap().len(), 1, "{active}");
}

#[test]
fn a_correction_of_nothing_makes_no_version() {
    let home = Home::key();
    let written = home.run(&["--json", "item", "add", "--kind", "fact", "--text", "tea"]).json();
    let id = written["items"][0]["item_id"].as_str().unwrap();
    home.run(&["item", "correct", id]).failed(2, "say what to correct");
    assert!(home.run(&["item", "correct", id, "--text", "tea"]).ok().contains("nothing changed"));
    let version = || home.run(&["--json", "item", "show", id]).json()["item"]["version"].clone();
    assert_eq!(version(), 1);
    home.run(&["item", "correct", id, "--text", "coffee"]).ok();
    assert_ne!(version(), 1);
}

/// What an agent wrote waits for its owner, who sees that it does, and what.
#[test]
fn what_waits_for_confirmation_is_shown() {
    let home = Home::key();
    let list = |more: &[&str]| home.run(&[&["item", "list", "--json"], more].concat()).json();
    home.run(&["item", "add", "--kind", "fact", "--text", "mine"]).ok();
    assert!(!home.run(&["item", "list"]).ok().contains("waits"));
    assert!(!home.run(&["status"]).ok().contains("confirmation"));
    let did = home.run(&["agent", "add", "scout", "--json"]).json()["did"].as_str().unwrap().to_owned();
    let mut scout = home.command(&["mcp", "--agent", "scout"]);
    let hello = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}});
    let ready = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
    let learn = json!({"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {"name": "memory_learn", "arguments": {"content": "tea is green"}}});
    let mut scout = scout.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let mut input = scout.stdin.take().unwrap();
    for line in [hello, ready, learn] {
        writeln!(input, "{line}").unwrap();
    }
    let mut answers = BufReader::new(scout.stdout.take().unwrap()).lines();
    let told = answers.by_ref().nth(1).unwrap().unwrap();
    assert!(told.contains("structuredContent"), "{told}");
    drop(input);
    assert!(scout.wait().unwrap().success());

    let waiting = list(&["--waiting"]);
    let waiting = waiting["items"].as_array().unwrap();
    assert_eq!(
        (waiting.len(), &waiting[0]["author"], &waiting[0]["waiting"]),
        (1, &json!(did), &json!(true))
    );
    let id = waiting[0]["item_id"].as_str().unwrap().to_owned();
    let all = list(&[]);
    let mine = &all["items"][1];
    assert_eq!((&mine["waiting"], &mine["author"]), (&json!(false), &mine["owner_did"]));
    let text = home.run(&["item", "list"]).ok();
    assert!(text.contains("waits") && text.contains("yes"), "{text}");
    let status = home.run(&["status"]).ok();
    let told = "1 item waits for your confirmation: oap-memory review";
    assert!(status.contains(told), "{status}");
    assert_eq!(home.run(&["status", "--json"]).json()["items"]["waiting"], 1);
    let shown = home.run(&["item", "show", &id]).ok();
    let says =
        format!("written by the agent {did}\nwaits for your confirmation: oap-memory item confirm {id}");
    assert!(shown.contains(&says), "{shown}");
    assert!(home.run(&["item", "show", mine["item_id"].as_str().unwrap()]).ok().contains("written by you\n"));

    home.run(&["item", "confirm", &id, "--if-version", "1"]).ok();
    assert_eq!(list(&["--waiting"])["items"], json!([]));
    assert_eq!(home.run(&["status", "--json"]).json()["items"]["waiting"], 0);
    assert!(!home.run(&["item", "show", &id]).ok().contains("waits"));
}

/// A refusal names what is wrong first, and what to do.
#[test]
fn refusals_say_what_to_do() {
    let home = Home::empty();
    // Where it is reached is where it listens.
    let did = format!("did:web:localhost%3A{}", home.port);
    home.run(&["init", "--did", &did, "--key-file", &home.path("key")]).ok();
    let status = home.run(&["status", "--json"]).json();
    assert_eq!(status["listen"], format!("127.0.0.1:{}", home.port));

    let add = |text: &str| home.run(&["item", "add", "--kind", "fact", "--text", text, "--label", "m"]).ok();
    let id = add("one").trim().to_owned();
    // Nobody is there to be asked, and that is not what is wrong.
    for command in [&["delete"][..], &["item", "retract"]] {
        home.run(command).failed(2, "say which items");
        home.run(&[command, &["--label", "nothing"]].concat()).failed(1, "nothing matched");
        home.run(&[command, &["--label", "m"]].concat()).failed(2, "there is no terminal to ask on");
    }
    home.run(&["item", "retract", &id]).ok();
    home.run(&["item", "retract", &id]).failed(3, "the item is retracted already");
    home.run(&["item", "restore", &id]).ok();

    let key = "did:key:z6MkhaXgBZDvotDkL5257faiztiGiC2QtKLGpbnnEGta2doK";
    let terms = ["--to", key, "--purpose", "p", "--until", "30d", "--trust-level", "2", "--label"];
    let issue = |label: &str| home.run(&[&["grant", "issue"], &terms[..], &[label]].concat());
    assert!(issue("nothing").stderr.contains("selects no item"));
    let ran = issue("m");
    assert!(!ran.stderr.contains("selects no item"), "{ran:?}");
    home.run(&["grant", "issue", "--to", key]).failed(2, "see `grant issue --help`");
    let grant = home.path("grant.json");
    std::fs::write(&grant, ran.ok()).unwrap();
    home.run(&["query", "--key", "nokey", "--grant", &grant]).failed(1, "nokey: ");
    let local = ["--allow-local-dids resolves it", "--did-document FILE names"];
    for fix in local {
        home.run(&["verify", &grant]).failed(1, fix);
    }
    let made = home.run(&["key", "new", "--out", &home.path("my.key"), "--json"]).json();
    let to = made["did"].as_str().unwrap();
    let mine = ["grant", "issue", "--to", to, "--purpose", "p", "--until", "30d", "--trust-level", "2"];
    std::fs::write(&grant, home.run(&mine).ok()).unwrap();
    home.run(&["query", "--key", &home.path("my.key"), "--grant", &grant]).failed(1, local[0]);

    let backup = home.path("backup");
    home.run(&["backup", &backup]).ok();
    home.run(&["backup", &backup]).failed(1, "name a new folder");
    let audit = |limit: &str| home.run(&["audit", "--limit", limit]).ok();
    assert!(audit("2").contains("--limit shows more"));
    assert_eq!(audit("2").lines().count(), audit("3").lines().count() - 1);
    assert!(!audit("1000").contains("--limit shows more"));

    let bundle = home.path("memory.bundle");
    home.run(&["export", &bundle, "--zstd"]).ok();
    let bytes = std::fs::read(&bundle).unwrap();
    std::fs::write(&bundle, &bytes[..bytes.len() - 20]).unwrap();
    home.run(&["verify", &bundle, "--trust-bundle"]).failed(4, "the file is cut short");
}

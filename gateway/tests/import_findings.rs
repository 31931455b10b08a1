//! What realistic exports showed of the importers, as far as it needs the real program;
//! what a reader alone can show is in `crates/formats/tests/import_findings.rs`.

use crate::program::*;
use serde_json::{Value, json};
use std::io::Write;
use std::path::{Path, PathBuf};

/// The report of an import, and its exit status.
fn import(home: &Home, arguments: &[&str]) -> (i32, Value) {
    let ran = home.run(&[&["--json", "import"], arguments].concat());
    let report = serde_json::from_str(&ran.stdout).unwrap_or_else(|_| panic!("{ran:?}"));
    (ran.status, report)
}

/// What the report counts: imported, updated, unchanged, refused.
fn counts(report: &Value) -> [u64; 4] {
    let number = |name: &str| report[name].as_u64().unwrap();
    let refused = report["refused"].as_array().unwrap().len() as u64;
    [number("imported"), number("updated"), number("unchanged"), refused]
}

/// The texts of all current items, sorted.
fn texts(home: &Home) -> Vec<String> {
    let listed = home.run(&["--json", "item", "list", "--limit", "1000"]).json();
    let all = listed["items"].as_array().unwrap();
    let mut texts: Vec<String> =
        all.iter().map(|item| item["content"]["text"].as_str().unwrap_or_default().to_owned()).collect();
    texts.sort();
    texts
}

fn write(home: &Home, name: &str, text: &str) -> String {
    let path = PathBuf::from(home.path(name));
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(&path, text).unwrap();
    path.to_string_lossy().into_owned()
}

fn zip(home: &Home, name: &str, entries: &[(&str, String)]) -> String {
    let path = home.path(name);
    let mut writer = zip::ZipWriter::new(std::fs::File::create(Path::new(&path)).unwrap());
    for (name, text) in entries {
        writer.start_file(*name, zip::write::SimpleFileOptions::default()).unwrap();
        writer.write_all(text.as_bytes()).unwrap();
    }
    writer.finish().unwrap();
    path
}

fn user(id: &str) -> (&'static str, String) {
    ("user.json", json!({"id": id, "email": format!("{id}@mail.example"), "birth_year": 1990}).to_string())
}

/// An export of ChatGPT with one conversation of these messages, always of the same ids.
fn chats(said: &[&str]) -> (&'static str, String) {
    let mapping: serde_json::Map<String, Value> = said
        .iter()
        .enumerate()
        .map(|(n, text)| {
            let message = json!({"author": {"role": "user"}, "create_time": 1000 + n,
                "content": {"content_type": "text", "parts": [text]}});
            (format!("n{n}"), json!({"id": format!("n{n}"), "message": message}))
        })
        .collect();
    let id = "8f3a2b1c-0000-4000-8000-000000000001";
    ("conversations.json", json!([{"id": id, "create_time": 1000, "mapping": mapping}]).to_string())
}

#[test]
fn chatgpt_nothing_of_an_archive_stays_after_its_deletion() {
    let home = Home::key();
    let settings = "{\n  \"a\": {\n    \"b\": 1\n  }\n}\n".to_owned();
    let export = zip(
        &home,
        "export.zip",
        &[
            user("user-a"),
            chats(&["Hello"]),
            ("user_settings.json", settings.clone()),
            ("sora.json", settings),
            ("chat.html", "<html>".into()),
            ("__MACOSX/._conversations.json", "\0\0".into()),
        ],
    );
    let (status, report) = import(&home, &[&export, "--verbose"]);
    assert_eq!((status, counts(&report)), (0, [1, 0, 0, 0]), "{report}");
    assert_eq!(report["skipped"]["the account's own data: no memory"], 1);
    assert_eq!(report["skipped"]["not of a format that is read here"], 3);
    // "Left out" names places.
    let places: Vec<&str> =
        report["left_out"].as_array().unwrap().iter().map(|left| left["place"].as_str().unwrap()).collect();
    let wanted =
        ["user.json", "user_settings.json", "sora.json", "chat.html", "__MACOSX/._conversations.json"];
    assert!(wanted.iter().all(|place| places.contains(place)), "{places:?}");
    let told = home.run(&["import", &export, "--verbose"]).ok();
    assert!(told.contains("user.json: the account's own data"), "{told}");
    assert!(!home.run(&["import", &export]).ok().contains("user_settings.json"));
    // Nothing that it brought is without its provenance.
    home.run(&["delete", "--provenance", "imported_from=chatgpt", "--yes"]).ok();
    assert_eq!(texts(&home), [""; 0]);
}

/// A newer export of an account adds and corrects; another account's export with the same ids touches nothing.
#[test]
fn accounts_of_one_vendor_never_update_each_other() {
    let home = Home::key();
    let first = zip(&home, "first.zip", &[user("user-a"), chats(&["Hello"])]);
    let newer = zip(&home, "newer.zip", &[chats(&["Hello!", "And rye?"]), user("user-a")]);
    let other = zip(&home, "other.zip", &[user("user-b"), chats(&["Good day"])]);
    assert_eq!(counts(&import(&home, &[&first]).1), [1, 0, 0, 0]);
    assert_eq!(counts(&import(&home, &[&first]).1), [0, 0, 1, 0]);
    assert_eq!(counts(&import(&home, &[&newer]).1), [1, 1, 0, 0], "the same account");
    assert_eq!(counts(&import(&home, &[&other]).1), [1, 0, 0, 0], "another account");
    assert_eq!(texts(&home), ["And rye?", "Good day", "Hello!"]);
    assert_eq!(counts(&import(&home, &[&newer]).1), [0, 0, 2, 0]);
    // Under a name of the owner's, whatever the export says.
    assert_eq!(counts(&import(&home, &[&first, "--as", "work"]).1), [1, 0, 0, 0]);
    assert_eq!(counts(&import(&home, &[&newer, "--as", "work"]).1), [1, 1, 0, 0]);
    home.run(&["delete", "--provenance", "origin=work", "--yes"]).ok();
    assert_eq!(texts(&home), ["And rye?", "Good day", "Hello!"]);
    for name in ["", "a\nb"] {
        home.run(&["import", &first, "--as", name]).failed(2, "--as");
    }
}

#[test]
fn letta_notes_and_csv_with_the_same_ids_are_both_there() {
    let home = Home::key();
    let agent = |said: &str| {
        json!({"agents": [{"id": "agent-0", "messages": [{"id": "message-2", "role": "user", "content": said}]}],
            "blocks": [{"id": "block-0", "label": "human", "value": format!("{said} block")}]})
        .to_string()
    };
    let pairs = [
        [write(&home, "a.af", &agent("One")), write(&home, "b.af", &agent("Two"))],
        [write(&home, "a.csv", "id,text\n1,Three\n"), write(&home, "b.csv", "id,text\n1,Four\n")],
        [write(&home, "private/v/Inbox.md", "Five\n"), write(&home, "work/v/Inbox.md", "Six\n")],
    ];
    let vault = |path: &String| path.trim_end_matches("/Inbox.md").to_owned();
    for [one, other] in &pairs {
        let (one, other) = (vault(one), vault(other));
        let (first, second) = (import(&home, &[&one]).1, import(&home, &[&other]).1);
        assert_eq!((&first["updated"], &second["updated"]), (&json!(0), &json!(0)), "{other}");
        assert_eq!(first["imported"], second["imported"], "{other}");
        let again = import(&home, &[&one]).1;
        assert_eq!((&again["unchanged"], &again["imported"]), (&first["imported"], &json!(0)), "{again}");
    }
    assert_eq!(
        texts(&home),
        ["Four", "Inbox\nFive", "Inbox\nSix", "One", "One block", "Three", "Two", "Two block"]
    );
    // The same file, edited, is corrected.
    write(&home, "a.csv", "id,text\n1,Three!\n2,New\n");
    assert_eq!(counts(&import(&home, &[&pairs[1][0]]).1), [1, 1, 0, 0]);
}

#[test]
fn notes_unchanged_lines_stay_and_an_edited_one_is_corrected() {
    let home = Home::key();
    let path = write(
        &home,
        "v/Bread.md",
        "- [tip] Cold water in summer\n- [method] Feed Otto twice a day\n\n# Times\nTwelve hours\n",
    );
    assert_eq!(counts(&import(&home, &[&path]).1), [3, 0, 0, 0]);
    let all = home.run(&["--json", "item", "list"]).json()["items"].as_array().unwrap().clone();
    let id_of = |text: &str| {
        let item = all.iter().find(|item| item["content"]["text"].as_str().unwrap().contains(text)).unwrap();
        item["item_id"].as_str().unwrap().to_owned()
    };
    write(
        &home,
        "v/Bread.md",
        "# Flour\nRye\n\n- [tip] Ice\n- [method] Feed Otto twice a day\n- [tip] Salt later\n\n# Times\nTwelve hours\n",
    );
    let (_, dry) = import(&home, &[&path, "--dry-run"]);
    assert_eq!(counts(&dry), [2, 1, 2, 0], "{dry}");
    assert_eq!(counts(&import(&home, &[&path]).1), [2, 1, 2, 0]);
    let now = [
        "Bread: Feed Otto twice a day",
        "Bread: Flour\nRye",
        "Bread: Ice",
        "Bread: Salt later",
        "Bread: Times\nTwelve hours",
    ];
    assert_eq!(texts(&home), now);
    let shown = home.run(&["--json", "item", "show", &id_of("Cold water")]).json();
    assert_eq!(
        (&shown["item"]["content"]["text"], &shown["item"]["version"]),
        (&json!("Bread: Ice"), &json!(2))
    );
    // Again changes nothing; back as it was is corrected again.
    assert_eq!(counts(&import(&home, &[&path]).1), [0, 0, 5, 0]);
    write(
        &home,
        "v/Bread.md",
        "- [tip] Cold water in summer\n- [method] Feed Otto twice a day\n- [tip] Salt later\n",
    );
    assert_eq!(counts(&import(&home, &[&path]).1), [0, 1, 2, 0]);
    assert!(texts(&home).contains(&"Bread: Cold water in summer".to_owned()));
    assert!(!texts(&home).contains(&"Bread: Ice".to_owned()));
}

#[test]
fn a_wrong_format_and_an_empty_file_fail() {
    let home = Home::key();
    let chats = write(&home, "conversations.json", &chats(&["Hello"]).1);
    for (name, text) in [("empty.json", ""), ("empty.csv", ""), ("none.json", "[]"), ("none.md", "")] {
        let path = write(&home, name, text);
        home.run(&["import", &path]).failed(1, "nothing to import was found");
    }
    let none = write(&home, "mem0.json", "{\"results\":[]}");
    let (status, report) = import(&home, &[&none]);
    assert_eq!((status, counts(&report)), (1, [0; 4]));
    assert_eq!(report["skipped"]["no memories in it"], 1, "{report}");
    for wrong in ["letta", "gemini", "openintent", "locomo"] {
        assert_eq!(import(&home, &[&chats, "--from", wrong]).0, 1, "{wrong}");
    }
    home.run(&["import", &chats, "--from", "letta"]).failed(1, "nothing of the format letta");
    assert_eq!(texts(&home), [""; 0]);
    // An archive of several formats, of which one is named.
    let export =
        zip(&home, "mixed.zip", &[self::chats(&["Hello"]), ("chat.html", "<html>".into()), user("user-a")]);
    assert_eq!(import(&home, &[&export, "--from", "letta"]).0, 1);
    assert_eq!(counts(&import(&home, &[&export, "--from", "chatgpt"]).1), [1, 0, 0, 0]);
}

#[test]
fn what_was_deleted_here_can_be_asked_back() {
    let home = Home::key();
    let path = write(&home, "a.csv", "id,text\n1,Three\n2,Four\n3,\n");
    import(&home, &[&path]);
    home.run(&["delete", "--provenance", "row=1", "--yes"]).ok();
    let (status, report) = import(&home, &[&path]);
    assert_eq!((status, counts(&report)), (0, [0, 0, 1, 0]), "{report}");
    assert_eq!(report["deleted"].as_array().unwrap().len(), 1, "{report}");
    let told = home.run(&["import", &path]).ok();
    assert!(told.contains("1 were deleted here and stay so; --again ID or --again all"), "{told}");
    let reason = report["deleted"][0]["reason"].as_str().unwrap();
    let id = reason.split_whitespace().find(|word| word.starts_with("mem_")).unwrap().trim_end_matches(',');
    assert!(reason.contains("erased here") && reason.contains(&format!("--again {id}")), "{reason}");
    let (_, dry) = import(&home, &[&path, "--again", id, "--dry-run"]);
    assert_eq!(counts(&dry), [1, 0, 1, 0]);
    assert_eq!(counts(&import(&home, &[&path, "--again", "all", "--dry-run"]).1), [1, 0, 1, 0]);
    // By the beginning of its id; one that is nobody's, or of nothing in the file, is told.
    let (cut, other) = (&id[..id.len() - 2], write(&home, "b.csv", "id,text\n1,Five\n"));
    assert_eq!(counts(&import(&home, &[&path, "--again", cut, "--dry-run"]).1), [1, 0, 1, 0]);
    home.run(&["import", &path, "--again", "mem_7ZZZZ"]).failed(1, "no deleted item's id begins so");
    import(&home, &[&other]);
    home.run(&["import", &other, "--again", id]).failed(1, "nothing in it was one of these items");
    let (status, report) = import(&home, &[&path, "--again", id]);
    assert_eq!((status, counts(&report)), (0, [1, 0, 1, 0]), "{report}");
    assert_eq!(texts(&home), ["Five", "Four", "Three"]);
    // It is another item: the deleted one stays deleted.
    let shown = home.run(&["--json", "item", "show", id]);
    assert!(!shown.stdout.contains("Three"), "{shown:?}");
    assert_eq!(counts(&import(&home, &[&path]).1), [0, 0, 2, 0]);
    home.run(&["import", &path, "--again", "nonsense"]).failed(2, "--again");
    home.run(&["audit", "verify"]).ok();
}

#[test]
fn okf_goes_out_and_comes_in() {
    let (home, next) = (Home::key(), Home::key());
    home.run(&["item", "add", "--kind", "preference", "--text", "Tea at four", "--label", "shared"]).ok();
    let folder = home.path("okf");
    home.run(&["export", &folder, "--as", "okf"]).ok();
    let index = std::fs::read_to_string(format!("{folder}/index.md")).unwrap();
    assert!(index.contains("okf_version: \"0.2\"") && index.contains("[Tea at four](mem_"), "{index}");
    let (status, report) = import(&next, &[&folder]);
    assert_eq!((status, counts(&report), &report["formats"]), (0, [1, 0, 0, 0], &json!(["okf"])), "{report}");
    let item = next.run(&["--json", "item", "list"]).json()["items"][0].clone();
    assert_eq!((&item["kind"], &item["labels"]), (&json!("preference"), &json!(["okf", "shared"])));
    assert_eq!(item["content"]["text"], "Tea at four");
}

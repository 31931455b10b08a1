//! What the pages say of the house is so: sections that comments cite, files that pages link to, and the arrows between rooms.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("..")
}

fn read(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

/// Every file of the project with one of these endings, by its path from the root.
fn files(endings: &[&str]) -> Vec<(String, String)> {
    let mut found = Vec::new();
    let mut folders = vec![root()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            if path.is_dir() {
                if !["target", ".git", "corpus", "seeds", "node_modules"].contains(&name.as_str()) {
                    folders.push(path);
                }
            } else if endings.iter().any(|ending| name.ends_with(ending)) {
                found.push((path.strip_prefix(root()).unwrap().display().to_string(), read(&path)));
            }
        }
    }
    found.sort();
    found
}

/// The numbers of a page's headings: `## 4. Items`, `### 4.1 Commitment`.
fn sections(page: &str) -> BTreeSet<String> {
    let headings = page.lines().filter(|line| line.starts_with('#'));
    let numbers = headings.filter_map(|line| line.trim_start_matches('#').split_whitespace().next());
    let numbers = numbers.map(|number| number.trim_end_matches('.').to_owned());
    numbers.filter(|number| number.starts_with(|c: char| c.is_ascii_digit())).collect()
}

/// The section numbers that stand behind a word: `section 5.1`, `sections 4.2 and 11`, `2, 3`.
fn numbers(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    for word in text.split_whitespace() {
        let end = word.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(word.len());
        let (number, rest) = word.split_at(end);
        if number.starts_with(|c: char| c.is_ascii_digit()) {
            found.push(number.trim_end_matches('.').to_owned());
            if number.ends_with('.') || !matches!(rest, "" | ",") {
                break;
            }
        } else if word != "and" && word != "to" {
            break;
        }
    }
    found
}

/// A comment's text on one line, without what marks it as one.
fn flat(text: &str) -> String {
    let lines = text.lines().map(|line| line.trim().trim_start_matches(['/', '!', '#', '*', ' ']));
    lines.collect::<Vec<_>>().join(" ")
}

/// Every "protocol section N" finds its section in `docs/protocol.md`.
#[test]
fn cited_sections_are_there() {
    let known = sections(&read(&root().join("docs/protocol.md")));
    let mut cited = 0;
    for (path, text) in files(&[".rs", ".md", ".toml", ".py", ".sh"]) {
        let text = flat(&text).replace("Protocol section", "protocol section");
        for (_, after) in
            text.match_indices("protocol section").map(|(at, word)| (at, &text[at + word.len()..]))
        {
            let numbers = numbers(after.strip_prefix('s').unwrap_or(after));
            cited += numbers.len();
            for number in numbers {
                assert!(known.contains(&number), "{path} cites protocol section {number}");
            }
        }
    }
    assert!(cited > 60, "{cited} citations were found");
}

#[test]
fn a_citation_is_read_as_it_is_written() {
    assert_eq!(numbers(" 5.1)."), ["5.1"]);
    assert_eq!(numbers(" 5 and 6)."), ["5", "6"]);
    assert_eq!(numbers(" 2). A 3"), ["2"]);
    assert_eq!(numbers(" N"), [""; 0]);
    assert!(
        sections("## 4. Items\n### 4.1 Commitment\n# The 3").is_superset(&["4".into(), "4.1".into()].into())
    );
}

/// A page's links to files of the project lead somewhere, and section numbers behind a link to `bytes.md` are there.
#[test]
fn links_lead_somewhere() {
    let bytes = sections(&read(&root().join("docs/bytes.md")));
    let mut followed = 0;
    for (path, text) in files(&[".md"]) {
        let folder = root().join(&path).parent().unwrap().to_owned();
        for (at, _) in text.match_indices("](") {
            let target = text[at + 2..].split([')', ' ']).next().unwrap();
            if target.contains("://") || target.starts_with('#') || target.is_empty() {
                continue;
            }
            let file = target.split('#').next().unwrap();
            assert!(folder.join(file).exists(), "{path} links to {target}");
            followed += 1;
            if file.ends_with("bytes.md") {
                for number in numbers(&text[at + 2 + target.len() + 1..]) {
                    assert!(bytes.contains(&number), "{path} cites section {number} of bytes.md");
                }
            }
        }
    }
    assert!(followed > 15, "{followed} links were followed");
}

/// The rooms of this workspace that a `Cargo.toml` depends on, dev-dependencies aside.
fn uses(manifest: &toml::Table) -> BTreeSet<String> {
    let names =
        manifest.get("dependencies").and_then(toml::Value::as_table).into_iter().flat_map(toml::Table::keys);
    names.filter_map(|name| name.strip_prefix("oap-")).map(str::to_owned).collect()
}

/// The table of rooms in `docs/architecture.md`: folder, and what it may use.
fn drawn(page: &str) -> BTreeMap<String, BTreeSet<String>> {
    let rows = page.lines().filter(|line| line.starts_with("| `") && line.split('|').count() == 6);
    let words = |cell: &str| cell.split('`').skip(1).step_by(2).map(str::to_owned).collect::<BTreeSet<_>>();
    rows.map(|row| {
        let cells: Vec<&str> = row.split('|').collect();
        let room = words(cells[1]).first().unwrap().trim_end_matches('/').to_owned();
        (room, words(cells[3]))
    })
    .collect()
}

/// Requests to others have one door: no room but `identity` has an HTTP client, and there one module makes them.
#[test]
fn requests_to_others_have_one_door() {
    const CLIENT: &str = "reqwest";
    let door = "crates/identity/src/outgoing/";
    let named = |text: &str| text.contains(CLIENT);
    let sources =
        files(&[".rs"]).into_iter().filter(|(path, text)| named(text) && !path.ends_with("papers.rs"));
    let sources: Vec<String> = sources.map(|(path, _)| path).collect();
    let outside: Vec<&String> = sources.iter().filter(|path| !path.starts_with(door)).collect();
    assert!(outside.is_empty(), "{outside:?} make requests: see {door}");
    assert!(!sources.is_empty(), "nobody makes requests");
    let rooms = files(&["Cargo.toml"]).into_iter().filter(|(_, text)| {
        let manifest: toml::Table = text.parse().unwrap();
        let tables =
            ["dependencies", "dev-dependencies", "build-dependencies"].map(|name| manifest.get(name));
        tables.into_iter().flatten().any(|table| table.get(CLIENT).is_some())
    });
    assert_eq!(rooms.map(|(path, _)| path).collect::<Vec<_>>(), ["crates/identity/Cargo.toml"]);
}

/// The rooms and the arrows between them are those of the workspace.
#[test]
fn the_rooms_are_as_drawn() {
    let workspace: toml::Table = read(&root().join("Cargo.toml")).parse().unwrap();
    let members = workspace["workspace"]["members"].as_array().unwrap();
    let built: BTreeMap<String, BTreeSet<String>> = members
        .iter()
        .map(|member| {
            let room = member.as_str().unwrap().to_owned();
            let manifest: toml::Table = read(&root().join(&room).join("Cargo.toml")).parse().unwrap();
            assert_eq!(
                manifest["package"]["name"].as_str().unwrap().strip_prefix("oap-"),
                room.rsplit('/').next(),
                "a package is named after its folder"
            );
            let uses = uses(&manifest);
            (room, uses)
        })
        .collect();
    assert_eq!(drawn(&read(&root().join("docs/architecture.md"))), built);
}

//! The gateway's rooms know each other in one direction, by their `use` lines. Those of the workspace are in the conformance tests (`papers`).

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// The gateway's rooms; each may use those before it. Two folders have two floors: below, what knows nothing of a gateway;
/// above, what opens and serves one.
const FLOORS: [(&str, &[&str]); 13] = [
    ("oauth", &["oauth"]),
    ("api", &["api"]),
    ("error", &["error"]),
    (
        "the machine",
        &[
            "system/address",
            "system/clock",
            "system/bundle_file",
            "system/config",
            "system/files",
            "system/panics",
            "system/tasks",
            "system/trails",
        ],
    ),
    ("embedding", &["embedding"]),
    ("state", &["state"]),
    ("service", &["service"]),
    ("mcp", &["mcp"]),
    ("http", &["http"]),
    (
        "the running gateway",
        &[
            "system/home",
            "system/lock",
            "system/outgoing",
            "system/outlook",
            "system/prometheus",
            "system/restore",
            "system/serve",
            "system/socket",
            "system/tls",
        ],
    ),
    ("client", &["client"]),
    ("limits", &["limits"]),
    ("cli", &["cli"]),
];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).to_owned()
}

fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            sources(&path, found);
        } else if path.extension().is_some_and(|end| end == "rs") {
            found.push(path);
        }
    }
}

/// The floor of a module's path, such as `state/owner`; `None` for what every floor may name: the root and what it re-exports.
fn floor(path: &str) -> Option<usize> {
    let is_in =
        |room: &&str| path == *room || path.strip_prefix(*room).is_some_and(|rest| rest.starts_with('/'));
    FLOORS.iter().position(|(_, rooms)| rooms.iter().any(&is_in))
}

/// The first word of a text.
fn word(text: &str) -> String {
    text.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect()
}

/// The members of a text that begins with a brace; otherwise itself alone.
fn members(text: &str) -> Vec<&str> {
    if !text.starts_with('{') {
        return vec![text];
    }
    let (mut members, mut depth, mut begin) = (Vec::new(), 0, 1);
    for (at, c) in text.char_indices() {
        match c {
            '{' => depth += 1,
            '}' => depth -= 1,
            _ => {}
        }
        if depth == 0 || (depth == 1 && c == ',') {
            members.push(text[begin..at].trim());
            begin = at + 1;
        }
        if depth == 0 {
            break;
        }
    }
    members
}

/// The paths after `crate::` in a text without its tests, as far as they name modules: `a::{b, c::D}` is `a/b` and `a/c`.
fn named(text: &str) -> BTreeSet<String> {
    let code = text.split("mod tests {").next().unwrap_or_default();
    let lines = code.lines().filter(|line| !line.trim_start().starts_with("//"));
    let code = lines.collect::<Vec<_>>().join(" ");
    let mut found = BTreeSet::new();
    for part in code.split("crate::").skip(1).flat_map(members) {
        let room = word(part);
        let rest = part[room.len()..].strip_prefix("::").unwrap_or_default();
        found.extend(members(rest).into_iter().map(|member| format!("{room}/{}", word(member))));
    }
    found
}

#[test]
fn paths_are_read_from_use_lines() {
    let text = "use crate::state::{owner::Owner, jobs};\n/// [`crate::cli`]\nuse crate::Error;\nlet x = crate::api::path();";
    let expected = ["Error/", "api/path", "state/jobs", "state/owner"].map(str::to_owned);
    assert_eq!(named(text), expected.into());
    let text = "#[cfg(test)]\nmod screens;\nuse crate::{Error, api::{items, jobs::Job}, state::owner::Owner};\nmod tests { use crate::cli::x; }";
    let expected = ["Error/", "api/items", "api/jobs", "state/owner"].map(str::to_owned);
    assert_eq!(named(text), expected.into());
}

#[test]
fn rooms_use_those_below_them_alone() {
    let root = root().join("src");
    let mut files = Vec::new();
    sources(&root, &mut files);
    let (mut wrong, mut looked) = (Vec::new(), 0);
    for file in files {
        let module = file.strip_prefix(&root).unwrap().with_extension("");
        let module = module.to_str().unwrap();
        // The root, the program, and a folder's own list of its files.
        let Some(here) = floor(module) else {
            let rooms = ["lib", "main", "forgeries", "system/mod"];
            assert!(rooms.contains(&module), "{module} has no floor");
            continue;
        };
        for path in named(&std::fs::read_to_string(&file).unwrap()) {
            looked += 1;
            if floor(&path).is_some_and(|there| there > here) {
                wrong.push(format!(
                    "{module} uses {path}: {} is above {}",
                    FLOORS[floor(&path).unwrap()].0,
                    FLOORS[here].0
                ));
            }
        }
    }
    assert!(looked > 300, "{looked}");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

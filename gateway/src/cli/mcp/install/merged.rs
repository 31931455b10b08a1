//! An assistant's file with one more server in it. Everything else stays as it was written: order, numbers, comments.

use super::super::clients::{Form, SERVER, Start};
use serde::de::{Deserializer, MapAccess, Visitor};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;
use std::fmt;
use toml_edit::DocumentMut;

/// An object as it was written: its members in order, each with its own text.
struct Members(Vec<(String, Box<RawValue>)>);

impl<'de> Deserialize<'de> for Members {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct InOrder;
        impl<'de> Visitor<'de> for InOrder {
            type Value = Members;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Members, A::Error> {
                let mut members = Vec::new();
                while let Some(member) = map.next_entry()? {
                    members.push(member);
                }
                Ok(Members(members))
            }
        }
        deserializer.deserialize_map(InOrder)
    }
}

impl Members {
    fn get(&self, name: &str) -> Option<&RawValue> {
        self.0.iter().rev().find(|(known, _)| known == name).map(|(_, value)| &**value)
    }

    fn set(&mut self, name: &str, value: String) -> Result<(), MergeError> {
        let value = RawValue::from_string(value).map_err(|_| MergeError::Lossy)?;
        match self.0.iter_mut().rev().find(|(known, _)| known == name) {
            Some((_, known)) => *known = value,
            None => self.0.push((name.to_owned(), value)),
        }
        Ok(())
    }

    /// As text, members indented by so much.
    fn text(&self, indent: usize) -> String {
        if self.0.is_empty() {
            return "{}".to_owned();
        }
        let (inside, end) = (" ".repeat(indent + 2), " ".repeat(indent));
        let members = self.0.iter().map(|(name, value)| format!("{inside}{}: {}", quoted(name), value.get()));
        format!("{{\n{}\n{end}}}", members.collect::<Vec<_>>().join(",\n"))
    }
}

fn quoted<T: Serialize + ?Sized>(value: &T) -> String {
    serde_json::to_string(value).unwrap_or_default()
}

impl Form {
    /// What is added to a file of this form, as a reader would add it.
    pub fn entry(self, start: &Start) -> String {
        match self {
            Self::Json { member, typed } => {
                let servers = format!("{{\n    {}: {}\n  }}", quoted(SERVER), json_server(start, typed, 4));
                format!("{{\n  {}: {servers}\n}}", quoted(member))
            }
            Self::Toml { table } => toml_server(table, start),
        }
    }
}

/// The members that say how a server is started, each as JSON.
fn json_start(start: &Start, typed: bool) -> impl Iterator<Item = (&'static str, String)> {
    let kind = typed.then(|| ("type", quoted("stdio")));
    kind.into_iter().chain([("command", quoted(&start.command)), ("args", quoted(&start.arguments))])
}

/// A server in JSON, indented by so much.
fn json_server(start: &Start, typed: bool, indent: usize) -> String {
    let mut members = Members(Vec::new());
    for (name, value) in json_start(start, typed) {
        // Each is JSON that was just written.
        let _ = members.set(name, value);
    }
    members.text(indent)
}

/// A server in TOML.
fn toml_server(table: &str, start: &Start) -> String {
    let text = |text: &str| toml::Value::String(text.to_owned()).to_string();
    let arguments: Vec<String> = start.arguments.iter().map(|argument| text(argument)).collect();
    format!("[{table}.{SERVER}]\ncommand = {}\nargs = [{}]\n", text(&start.command), arguments.join(", "))
}

/// Why a file is left as it is.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum MergeError {
    #[error("is no plain JSON object, or has comments in it")]
    NoJson,
    #[error("is no TOML")]
    NoToml,
    #[error("{0} is no object")]
    NoObject(String),
    #[error("{0} is no table")]
    NoTable(String),
    #[error("is no TOML that can be changed")]
    OtherToml,
    #[error("cannot be changed without losing something")]
    Lossy,
}

/// A file with the server in it. Of one of its name that is there, what says how it is started changes, and nothing else.
///
/// # Errors
/// [`MergeError`].
pub(super) fn merged(before: &str, form: Form, start: &Start) -> Result<String, MergeError> {
    match form {
        Form::Json { member, typed } => json_merged(before, member, typed, start),
        Form::Toml { table } => toml_merged(before, table, start),
    }
}

fn json_merged(before: &str, member: &str, typed: bool, start: &Start) -> Result<String, MergeError> {
    let no_json = |_| MergeError::NoJson;
    let no_object = |name: String| move |_| MergeError::NoObject(name);
    let text = if before.trim().is_empty() { "{}" } else { before };
    let mut file: Members = serde_json::from_str(text).map_err(no_json)?;
    let mut servers = match file.get(member) {
        None => Members(Vec::new()),
        Some(servers) => serde_json::from_str(servers.get()).map_err(no_object(member.to_owned()))?,
    };
    let mut server = match servers.get(SERVER) {
        None => Members(Vec::new()),
        Some(known) => serde_json::from_str(known.get()).map_err(no_object(format!("{member}.{SERVER}")))?,
    };
    // It says what it said, and how the server is started.
    let said: Value = serde_json::from_str(text).map_err(no_json)?;
    let mut expected = said.clone();
    for (name, value) in json_start(start, typed) {
        // Each is JSON that was just written.
        expected[member][SERVER][name] = serde_json::from_str(&value).unwrap_or_default();
        server.set(name, value)?;
    }
    if expected == said {
        return Ok(before.to_owned());
    }
    servers.set(SERVER, server.text(4))?;
    file.set(member, servers.text(2))?;
    let after = file.text(0) + "\n";
    match serde_json::from_str::<Value>(&after) {
        Ok(said) if said == expected => Ok(after),
        _ => Err(MergeError::Lossy),
    }
}

fn toml_merged(before: &str, table: &str, start: &Start) -> Result<String, MergeError> {
    let parsed = |text: &str| text.parse::<toml::Table>().map_err(|_| MergeError::NoToml);
    let said = parsed(before)?;
    let mut expected = said.clone();
    let tables = || toml::Value::Table(toml::Table::new());
    let servers = expected.entry(table.to_owned()).or_insert_with(tables).as_table_mut();
    let Some(servers) = servers else { return Err(MergeError::NoTable(table.to_owned())) };
    let is_there = servers.contains_key(SERVER);
    let server = servers.entry(SERVER.to_owned()).or_insert_with(tables).as_table_mut();
    let Some(server) = server else { return Err(MergeError::NoTable(format!("{table}.{SERVER}"))) };
    server.insert("command".to_owned(), start.command.as_str().into());
    server.insert("args".to_owned(), start.arguments.clone().into());
    if expected == said {
        return Ok(before.to_owned());
    }
    let after = if is_there {
        toml_restarted(before, table, start).ok_or(MergeError::OtherToml)?
    } else {
        let (kept, entry) = (before.trim_end(), toml_server(table, start));
        if kept.is_empty() { entry } else { format!("{kept}\n\n{entry}") }
    };
    match parsed(&after) {
        Ok(said) if said == expected => Ok(after),
        _ => Err(MergeError::Lossy),
    }
}

/// A file whose server is started in another way, with every comment where it was.
fn toml_restarted(before: &str, table: &str, start: &Start) -> Option<String> {
    let mut file: DocumentMut = before.parse().ok()?;
    let server = file.get_mut(table)?.get_mut(SERVER)?.as_table_like_mut()?;
    let arguments: toml_edit::Array = start.arguments.iter().map(String::as_str).collect();
    for (name, mut value) in
        [("command", toml_edit::Value::from(&start.command)), ("args", toml_edit::Value::from(arguments))]
    {
        match server.get_mut(name).and_then(toml_edit::Item::as_value_mut) {
            Some(known) => {
                known.decor().clone_into(value.decor_mut());
                *known = value;
            }
            None => drop(server.insert(name, toml_edit::Item::Value(value))),
        }
    }
    Some(file.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    const JSON: Form = Form::Json { member: "mcpServers", typed: false };
    const TOML: Form = Form::Toml { table: "mcp_servers" };

    fn start(agent: &str) -> Start {
        Start::of("/usr/bin/oap-memory".as_ref(), "/home/a \"b\"/.oap-memory".as_ref(), agent)
    }

    #[test]
    fn what_stands_there_stays_as_it_was_written() {
        let before = "{\n\t\"zebra\": 1.50,\n\t\"mcpServers\": {\n\t\t\"other\": {\"command\": \"x\", \"env\": {\"K\": \"s\"}}\n\t},\n\t\"alpha\": [1e400, {\"b\":2, \"a\":1}]\n}\n";
        let after = merged(before, JSON, &start("scout")).unwrap();
        for kept in [
            "\"zebra\": 1.50",
            "{\"command\": \"x\", \"env\": {\"K\": \"s\"}}",
            "[1e400, {\"b\":2, \"a\":1}]",
        ] {
            assert!(after.contains(kept), "{after}");
        }
        assert!(
            after.find("zebra") < after.find("mcpServers") && after.find("mcpServers") < after.find("alpha")
        );
        let said: Value = serde_json::from_str(&after).unwrap();
        assert_eq!(said["mcpServers"]["oap-memory"]["args"][4], "scout");
        // Again it changes nothing; for another agent, that server alone.
        assert_eq!(merged(&after, JSON, &start("scout")).unwrap(), after);
        let other = merged(&after, JSON, &start("else")).unwrap();
        assert!(
            other.contains("\"else\"") && !other.contains("\"scout\"") && other.contains("\"zebra\": 1.50")
        );
    }

    #[test]
    fn an_empty_file_and_none_are_begun() {
        for before in ["", " \n", "{}"] {
            let after = merged(before, JSON, &start("scout")).unwrap();
            assert_eq!(after, format!("{}\n", JSON.entry(&start("scout"))), "{before:?}");
        }
        assert_eq!(merged("", TOML, &start("scout")).unwrap(), TOML.entry(&start("scout")));
    }

    #[test]
    fn what_cannot_be_changed_is_left_alone() {
        for before in ["// a comment\n{}", "[]", "{\"mcpServers\": []}", "{\"a\": 1,}", "{"] {
            assert!(merged(before, JSON, &start("scout")).is_err(), "{before}");
        }
        for before in ["a = ", "mcp_servers = 1", "mcp_servers = {a = {command = \"x\"}}"] {
            assert!(merged(before, TOML, &start("scout")).is_err(), "{before}");
        }
    }

    #[test]
    fn what_was_set_of_the_server_stays() {
        let before = "{\"mcpServers\": {\"oap-memory\": {\"env\": {\"K\": 1.0}, \"command\": \"old\", \"disabled\": true}}}";
        let after = merged(before, JSON, &start("scout")).unwrap();
        assert!(after.contains("\"env\": {\"K\": 1.0}") && after.contains("\"disabled\": true"), "{after}");
        assert!(after.contains("/usr/bin/oap-memory") && !after.contains("old"), "{after}");
        assert_eq!(merged(&after, JSON, &start("scout")).unwrap(), after);
        assert!(merged("{\"mcpServers\": {\"oap-memory\": 1}}", JSON, &start("scout")).is_err());
    }

    #[test]
    fn comments_and_order_of_toml_stay() {
        let before = "# mine\nmodel = \"x\" # why\n\n# my memory\n[mcp_servers.oap-memory]\nenabled = false\ncommand = \"old\" # path\nargs = [\n  \"a\", # one\n]\n\n[mcp_servers.oap-memory.env]\nK = \"v\"\n\n# others\n[mcp_servers.other]\ncommand = \"y\"\n\n# screen\n[tui]\nb = 1\na = 2\n# end\n";
        let after = merged(before, TOML, &start("scout")).unwrap();
        for line in
            before.lines().filter(|line| !line.contains("old") && !line.contains("one") && *line != "]")
        {
            let kept = if line == "args = [" { "args = [\"--home\"" } else { line };
            assert!(after.contains(kept), "{line}: {after}");
        }
        assert!(
            after.contains("command = \"/usr/bin/oap-memory\" # path\n") && !after.contains("old"),
            "{after}"
        );
        assert_eq!(merged(&after, TOML, &start("scout")).unwrap(), after);
        // One that is not there yet stands at the end.
        let before = "# mine\n[tui]\na = 2\n# end\n";
        let after = merged(before, TOML, &start("scout")).unwrap();
        assert_eq!(after, format!("{before}\n{}", TOML.entry(&start("scout"))));
        // Within a line, too.
        let inline = "[mcp_servers]\noap-memory = { enabled = false, command = \"old\" }\n# end\n";
        let after = merged(inline, TOML, &start("scout")).unwrap();
        assert!(
            after.contains("enabled = false") && after.ends_with("# end\n") && !after.contains("old"),
            "{after}"
        );
    }
}

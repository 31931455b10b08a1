//! `oap-memory mcp install`: one more server in an assistant's list, and nothing else in its file changed.

mod merged;

use super::super::{CliError, Global, output};
use super::clients::{Assistant, Folders, Start};
use crate::api::agents::{AddAgent, AgentName, ListAgents, NewAgent};
use crate::api::permission::Permission;
use crate::system::files;
use clap::ValueEnum;
use merged::{MergeError, merged};
use serde::Serialize;
use serde_json::json;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

/// Longest file of an assistant that is changed, in bytes.
const MAX_FILE: u64 = 16 << 20;

/// Tell an assistant how to start this
#[derive(clap::Args)]
#[command(after_help = "Examples:
  oap-memory mcp install --client claude-desktop
  oap-memory mcp install --client claude-code --agent scout
  oap-memory mcp install --client codex --print

Makes the agent where there is none of that name, with the permission write, and adds the server to the assistant's own file.
Every other member keeps its text; the file as it was is kept beside it. Restart the assistant afterwards.")]
pub(in crate::cli) struct Install {
    /// The assistant
    #[arg(long, value_enum, value_name = "NAME")]
    client: Assistant,
    /// The agent that it is; named as the assistant if absent
    #[arg(long, value_name = "NAME")]
    agent: Option<AgentName>,
    /// Print what to add, and change nothing
    #[arg(long)]
    print: bool,
}

/// What was done.
#[derive(Serialize)]
struct Installed {
    client: &'static str,
    agent: String,
    file: PathBuf,
    /// What stands in the file now.
    added: String,
    /// The file as it was.
    #[serde(skip_serializing_if = "Option::is_none")]
    backup: Option<PathBuf>,
    changed: bool,
    /// Whether the agent was made now, and whether one of its name was removed before.
    #[serde(skip_serializing_if = "Option::is_none")]
    agent_made: Option<Made>,
}

/// How an agent came to be.
#[derive(Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
enum Made {
    /// Nobody had its name before.
    New,
    /// One of its name was removed.
    Anew,
}

impl Install {
    pub(in crate::cli) async fn run(self, global: &Global) -> Result<(), CliError> {
        let Self { client, agent, print } = self;
        let agent = agent.map_or_else(|| client.name().to_owned(), |agent| agent.to_string());
        let program = std::env::current_exe().map_err(|e| CliError::Other(format!("this program: {e}")))?;
        let home = global.home().path().to_owned();
        let home = std::path::absolute(&home).map_err(|e| CliError::File(home, e.to_string()))?;
        let start = Start::of(&program, &home, &agent);
        let file = client.file(&Folders::here());
        let added = client.form().entry(&start);
        if print {
            let first = format!("oap-memory agent add {agent}");
            let addition = json!({"client": client.name(), "first": first, "file": file, "add": added});
            output::print(global.json, &addition, |_| {
                format!(
                    "first, where there is no agent {agent}: {first}\nthen in {}:\n\n{added}",
                    file.display()
                )
            });
            return Ok(());
        }
        let failed = |e: std::io::Error| CliError::File(file.clone(), e.to_string());
        let merge = || {
            let before = read(&file).map_err(failed)?;
            let refused =
                |why: MergeError| CliError::File(file.clone(), format!("{why}; --print shows what to add"));
            let after =
                merged(before.as_deref().unwrap_or_default(), client.form(), &start).map_err(refused)?;
            Ok::<_, CliError>((before, after))
        };
        // Nothing is made for a file that cannot be changed.
        merge()?;
        // Before the file: an assistant that is started finds its agent. It may take a while, and the file is read after it.
        let agent_made = make_agent(global, &agent).await?;
        let (before, after) = merge()?;
        let changed = before.as_deref() != Some(after.as_str());
        let backup = if changed { replace(&file, before.as_deref(), &after).map_err(failed)? } else { None };
        let done = Installed { client: client.name(), agent, file, added, backup, changed, agent_made };
        output::print(global.json, &done, text);
        Ok(())
    }
}

fn text(done: &Installed) -> String {
    let Installed { client, agent, file, added, backup, changed, agent_made } = done;
    let made = match agent_made {
        None => String::new(),
        Some(Made::New) => format!("made the agent {agent} (write)\n"),
        Some(Made::Anew) => format!("made the agent {agent} anew (write): one of that name was removed\n"),
    };
    if !changed {
        return format!("{made}{} has it already", file.display());
    }
    let lines: Vec<String> = added.lines().map(|line| format!("+ {line}")).collect();
    let kept = backup.as_ref().map(|path| format!("as it was: {}\n", path.display())).unwrap_or_default();
    format!("{made}{}\n{}\n{kept}{client} is the agent {agent}; restart it", file.display(), lines.join("\n"))
}

/// The file, where there is one.
fn read(file: &Path) -> std::io::Result<Option<String>> {
    match std::fs::metadata(file) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
        Ok(about) if about.len() > MAX_FILE => {
            return Err(std::io::Error::other("is too large to be changed here"));
        }
        Ok(_) => {}
    }
    std::fs::read_to_string(file).map(Some)
}

/// Gives a file another text, unless it has not the one any more that this was made of; where the file as it was is kept.
fn replace(file: &Path, before: Option<&str>, after: &str) -> std::io::Result<Option<PathBuf>> {
    let backup = before.map(|before| keep(file, before)).transpose()?;
    if read(file)?.as_deref() != before {
        if let Some(backup) = backup {
            std::fs::remove_file(backup)?;
        }
        return Err(std::io::Error::other("was changed by another program meanwhile; run this again"));
    }
    write(file, after)?;
    Ok(backup)
}

/// Keeps a file as it was under a name that nobody has.
fn keep(file: &Path, text: &str) -> std::io::Result<PathBuf> {
    let name = file.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let mut number = 1_u32;
    loop {
        let path = file.with_file_name(format!("{name}.before-oap-memory-{number}"));
        if !path.exists() {
            write(&path, text)?;
            return Ok(path);
        }
        number += 1;
    }
}

/// Writes a file in one step, where a link leads, too. It may hold other servers' secrets: it is its owner's alone, unless it was
/// open to others before.
fn write(file: &Path, text: &str) -> std::io::Result<()> {
    let file = std::fs::canonicalize(file).unwrap_or_else(|_| file.to_owned());
    if let Some(folder) = file.parent() {
        std::fs::create_dir_all(folder)?;
    }
    let mode = std::fs::metadata(&file).map(|about| about.permissions()).ok();
    files::write(&file, text.as_bytes())?;
    match mode {
        Some(mode) => std::fs::set_permissions(&file, mode),
        None => Ok(()),
    }
}

/// Files of assistants that start the server as this agent, as it was installed.
pub(in crate::cli) fn still_starts(home: &Path, agent: &str) -> Vec<PathBuf> {
    let Ok((program, home)) =
        std::env::current_exe().and_then(|program| Ok((program, std::path::absolute(home)?)))
    else {
        return Vec::new();
    };
    let (start, folders) = (Start::of(&program, &home, agent), Folders::here());
    let starts = |client: &Assistant| {
        let text = read(&client.file(&folders)).ok().flatten();
        text.is_some_and(|text| merged(&text, client.form(), &start).is_ok_and(|after| after == text))
    };
    Assistant::value_variants()
        .iter()
        .filter(|client| starts(client))
        .map(|client| client.file(&folders))
        .collect()
}

/// Makes the agent, where there is none of its name; whether it was made.
async fn make_agent(global: &Global, name: &str) -> Result<Option<Made>, CliError> {
    let name: AgentName = name.parse().map_err(|e| CliError::Usage(format!("--agent: {e}")))?;
    let owner = global.owner().await?;
    let list = owner.get::<ListAgents>((), &()).await?;
    let mut named = list.agents.iter().filter(|agent| agent.name == name).peekable();
    let made = if named.peek().is_some() { Made::Anew } else { Made::New };
    if named.any(|agent| agent.removed_at.is_none()) {
        return Ok(None);
    }
    // Its API key is nobody's: an assistant on this machine needs none.
    owner.send::<AddAgent>((), &NewAgent::new(name, Permission::Write)).await?;
    Ok(Some(made))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_another_program_wrote_meanwhile_stays() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("mcp.json");
        let there = || std::fs::read_dir(folder.path()).unwrap().count();
        std::fs::write(&file, "theirs").unwrap();
        for before in [None, Some("as it was read")] {
            assert!(replace(&file, before, "ours").is_err());
            assert_eq!((read(&file).unwrap().as_deref(), there()), (Some("theirs"), 1));
        }
        let backup = replace(&file, Some("theirs"), "ours").unwrap().unwrap();
        assert_eq!((read(&file).unwrap().as_deref(), there()), (Some("ours"), 2));
        assert_eq!(read(&backup).unwrap().as_deref(), Some("theirs"));
        std::fs::remove_file(&file).unwrap();
        assert_eq!(replace(&file, None, "ours").unwrap(), None);
    }
}

//! `oap-memory completions`

use super::{CliError, help};
use clap_complete::Shell;
use std::io::Write;

/// Print shell completions
#[derive(clap::Args)]
#[command(after_help = "Examples:
  oap-memory completions bash > /etc/bash_completion.d/oap-memory
  oap-memory completions zsh > ~/.zfunc/_oap-memory
  oap-memory completions fish > ~/.config/fish/completions/oap-memory.fish")]
pub(super) struct Completions {
    /// The shell
    shell: Shell,
}

/// What clap_complete 4.6 calls a command below a program with a hyphen in its name where it lists the flags, and what it
/// calls it where it looks for the command: in bash no flag and no value would be found.
const BASH: [&str; 2] = ["oap__subcmd__memory", "oap__memory"];

/// Prints the completions of a shell.
pub(super) fn print(Completions { shell }: Completions) -> Result<(), CliError> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut help::command(), "oap-memory", &mut script);
    let mut script = String::from_utf8(script).map_err(|e| CliError::Other(e.to_string()))?;
    if shell == Shell::Bash {
        let [listed, looked_for] = BASH;
        script = script.replace(listed, looked_for);
    }
    // A closed pipe is the reader's way of saying enough.
    let _ = std::io::stdout().write_all(script.as_bytes());
    Ok(())
}

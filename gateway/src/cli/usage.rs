//! What was typed wrongly: said with the flag's name and the fix, as text or as JSON, with exit status 2.

use super::CliError;
use clap::ArgMatches;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use std::error::Error;
use std::process::ExitCode;

/// The names of a command and its subcommands.
pub(super) fn command_name(matches: &ArgMatches) -> String {
    let mut names = Vec::new();
    let mut level = matches;
    while let Some((name, below)) = level.subcommand() {
        names.push(name);
        level = below;
    }
    names.join(" ")
}

/// Says why a command line was refused, and the exit status. Asking for help or for the version is no error.
pub(super) fn refuse(error: &clap::Error) -> ExitCode {
    let json = wants_json(std::env::args_os());
    match (error.kind(), why(error)) {
        (ErrorKind::DisplayHelp | ErrorKind::DisplayVersion, _) | (_, None)
            if !(json && error.use_stderr()) =>
        {
            // A closed pipe is the reader's way of saying enough.
            let _ = error.print();
            ExitCode::from(u8::from(error.use_stderr()) * 2)
        }
        (_, told) => {
            CliError::Usage(told.unwrap_or_else(|| first(error))).tell(json);
            ExitCode::from(2)
        }
    }
}

/// Whether `--json` is among the arguments of a line that could not be parsed.
fn wants_json(arguments: impl Iterator<Item = std::ffi::OsString>) -> bool {
    arguments.skip(1).take_while(|argument| argument != "--").any(|argument| argument == "--json")
}

/// A value that does not fit: the flag or argument, and what it must be. `None` for errors that clap says well itself.
fn why(error: &clap::Error) -> Option<String> {
    let Some(ContextValue::String(argument)) = error.get(ContextKind::InvalidArg) else { return None };
    let flag = argument.split([' ', '=']).next().unwrap_or_default();
    let flag = flag.trim_matches(|c| matches!(c, '<' | '>' | '[' | ']' | '.'));
    let Some(ContextValue::String(value)) = error.get(ContextKind::InvalidValue) else { return None };
    match error.kind() {
        ErrorKind::ValueValidation => Some(format!("{flag}: {}", error.source()?)),
        ErrorKind::InvalidValue => {
            let Some(ContextValue::Strings(valid)) = error.get(ContextKind::ValidValue) else { return None };
            let valid = valid.join(", ");
            Some(match value.as_str() {
                "" => format!("{flag}: must be one of {valid}"),
                value => format!("{flag}: {value:?} must be one of {valid}"),
            })
        }
        _ => None,
    }
}

/// What clap says, without its usage and tips, in one line.
fn first(error: &clap::Error) -> String {
    if error.kind() == ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand {
        return "a subcommand is needed; see --help".to_owned();
    }
    let text = error.render().to_string();
    let said = text.split("\n\n").next().unwrap_or_default();
    let words: Vec<&str> = said.trim_start_matches("error: ").split_whitespace().collect();
    words.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::help;

    fn refused(line: &str) -> clap::Error {
        help::command().try_get_matches_from(line.split(' ')).unwrap_err()
    }

    #[test]
    fn the_flag_and_the_fix() {
        for (line, says) in [
            (
                "x audit --since tomorow",
                "--since: \"tomorow\" is not a time; use 30d, 2w, 1h, 15m, 2026-06-30 or",
            ),
            ("x audit --grantee did:wbe", "--grantee: a DID is did:<method>:<identifier>"),
            ("x ccc remove a/b", "SCOPE: a scope is 1 to 64"),
            ("x hold set mem_1 --until 2w", "ITEM: expected \"mem_\""),
            (
                "x hold set mem_01J9V8B7H1ZK4D2A0M9R8F0KQX --until 2w --reason x",
                "--reason: \"x\" must be one of legal_hold, ",
            ),
            (
                "x profile explain mem_01J9V8B7H1ZK4D2A0M9R8F0KQX --level 5",
                "--level: \"5\" must be one of 0, 1, 2",
            ),
            ("x probe ftp://x", "URL: must be a URL"),
            ("x export f --as", "--as: must be one of mem0, "),
        ] {
            let told = why(&refused(line)).unwrap_or_default();
            assert!(told.starts_with(says), "{line}: {told}");
        }
    }

    #[test]
    fn what_clap_says_in_one_line() {
        for (line, says) in [
            ("x no-such-command", "unrecognized subcommand 'no-such-command'"),
            ("x grant", "a subcommand is needed; see --help"),
            ("x audit --nope", "unexpected argument '--nope' found"),
            ("x bridge issue --from a", "the following required arguments were not provided: --to <SCOPE>"),
        ] {
            let told = first(&refused(line));
            assert!(told.starts_with(says) && !told.contains('\n'), "{line}: {told}");
        }
    }

    #[test]
    fn json_is_seen_in_a_line_that_is_wrong() {
        let wants = |line: &str| wants_json(line.split(' ').map(Into::into));
        assert!(wants("x --json item") && wants("x item --nope --json"));
        assert!(!wants("x item") && !wants("--json item") && !wants("x verify -- --json"));
    }
}

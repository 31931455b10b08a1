//! The help of every command ends with examples: its own, or those lines of its group's that are about it.

use super::Cli;
use clap::{Command, CommandFactory};

const HEADING: &str = "Examples:";
const PROGRAM: &str = "oap-memory";

/// The command line.
pub(super) fn command() -> Command {
    let mut command = Cli::command();
    let lines = examples(&command);
    for name in names(&command) {
        command =
            command.mut_subcommand(&name, |below| with_examples(below, &format!("{PROGRAM} {name}"), &lines));
    }
    command
}

fn names(command: &Command) -> Vec<String> {
    command.get_subcommands().map(|below| below.get_name().to_owned()).collect()
}

/// The command with the examples above it that are about it, where it and those below it have none.
fn with_examples(mut command: Command, path: &str, above: &[String]) -> Command {
    let mut lines = examples(&command);
    if lines.is_empty() {
        lines = above.iter().filter(|line| about(line, path)).cloned().collect();
        if !lines.is_empty() {
            let rest = command.get_after_help().map(|rest| format!("\n\n{rest}")).unwrap_or_default();
            command = command.after_help(format!("{HEADING}\n{}{rest}", lines.join("\n")));
        }
    }
    for name in names(&command) {
        command =
            command.mut_subcommand(&name, |below| with_examples(below, &format!("{path} {name}"), &lines));
    }
    command
}

/// Whether an example is one of this command.
fn about(line: &str, path: &str) -> bool {
    line.trim_start().strip_prefix(path).is_some_and(|rest| rest.is_empty() || rest.starts_with(' '))
}

/// The examples of a command's help, each with the lines that it goes on in.
fn examples(command: &Command) -> Vec<String> {
    let text = command.get_after_help().map(ToString::to_string).unwrap_or_default();
    let Some((_, after)) = text.split_once(HEADING) else { return Vec::new() };
    let mut examples: Vec<String> = Vec::new();
    for line in after.trim_start_matches('\n').lines().take_while(|line| line.starts_with("  ")) {
        match examples.last_mut().filter(|before| before.ends_with('\\')) {
            Some(before) => *before = format!("{before}\n{line}"),
            None => examples.push(line.to_owned()),
        }
    }
    examples
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::error::ErrorKind;

    /// Every command, with its path.
    fn walk(command: &Command, path: &str, see: &mut dyn FnMut(&str, &Command)) {
        see(path, command);
        for below in command.get_subcommands().filter(|c| c.get_name() != "help") {
            walk(below, &format!("{path} {}", below.get_name()), see);
        }
    }

    /// The words of a line, as a shell makes them; what stands in parentheses after it is a remark.
    fn words(line: &str) -> Vec<String> {
        let line = line.replace("\\\n", " ");
        let line = line.split("  (").next().unwrap_or_default().split(" > ").next().unwrap_or_default();
        let (mut words, mut word, mut quoted, mut any) = (Vec::new(), String::new(), false, false);
        for c in line.chars() {
            match c {
                '"' => (quoted, any) = (!quoted, true),
                c if c.is_whitespace() && !quoted => {
                    if any || !word.is_empty() {
                        words.push(std::mem::take(&mut word));
                    }
                    any = false;
                }
                c => word.push(c),
            }
        }
        if any || !word.is_empty() {
            words.push(word);
        }
        words
    }

    #[test]
    fn every_help_has_examples() {
        let mut without = Vec::new();
        walk(&command(), PROGRAM, &mut |path, command| {
            if examples(command).is_empty() {
                without.push(path.to_owned());
            }
        });
        assert!(without.is_empty(), "without Examples: {without:?}");
    }

    /// What `age1…` stands for: the recipient of age's own README.
    const RECIPIENT: &str = "age1ql3z7hjy54pw3hyww5ayyfg7zqgvc7w3j2elw8zmrj2kg5sfn9aqmcac8p";

    #[test]
    fn every_example_is_of_its_command_and_parses() {
        let mut seen = 0;
        walk(&command(), PROGRAM, &mut |path, command| {
            for example in examples(command) {
                let example = example.replace("01...", "01J9V8B7H1ZK4D2A0M9R8F0KQX");
                let words = words(&example.replace("age1…", RECIPIENT));
                // Those of other programs stand beside them.
                if words.first().is_none_or(|word| word != PROGRAM) {
                    continue;
                }
                seen += 1;
                let parsed = super::command().try_get_matches_from(&words);
                let error = parsed.err().filter(|error| error.kind() != ErrorKind::DisplayHelp);
                assert!(
                    error.is_none(),
                    "{path}: {example}\n{}",
                    error.map(|e| e.to_string()).unwrap_or_default()
                );
            }
        });
        assert!(seen > 100, "{seen}");
    }

    #[test]
    fn the_command_line_is_sound() {
        command().debug_assert();
    }
}

//! Examples in helps, so that they can be copied from a screen of 80 columns: a longer line goes on behind a `\`.

use clap::Command;

/// Columns of an example, its indentation included.
const COLUMNS: usize = 79;
/// Columns before what goes on.
const FURTHER: usize = 6;
/// The line before them.
pub(super) const HEAD: &str = "Examples:";

/// Folds the examples in the helps of a command and of those below it.
pub(super) fn folded(command: Command) -> Command {
    let folded_help = command.get_after_help().map(|help| fold(&help.to_string()));
    let command = match folded_help {
        Some(help) => command.after_help(help),
        None => command,
    };
    command.mut_subcommands(folded)
}

/// The lines between `Examples:` and the next empty one, folded; the rest as it is.
fn fold(help: &str) -> String {
    let mut inside = false;
    let mut lines = Vec::new();
    for line in help.lines() {
        inside = line == HEAD || (inside && !line.is_empty());
        if inside && line.chars().count() > COLUMNS {
            fold_line(line, &mut lines);
        } else {
            lines.push(line.to_owned());
        }
    }
    lines.join("\n")
}

/// Folds between its parts. What stands in parentheses behind a command goes above it.
fn fold_line(line: &str, lines: &mut Vec<String>) {
    let (command, note) = match line.trim_end().strip_suffix(')').and_then(|line| line.rsplit_once("  (")) {
        Some((command, note)) => (command.trim_end(), Some(note)),
        None => (line, None),
    };
    // A line that goes on anyway.
    let (command, end) = command.strip_suffix('\\').map_or((command, ""), |command| (command, " \\"));
    let indent: String = command.chars().take_while(|c| *c == ' ').collect();
    lines.extend(note.map(|note| format!("{indent}# {note}")));
    // As far in as a line that goes on by itself.
    let further = " ".repeat(indent.len().max(FURTHER));
    let mut current = indent;
    for part in parts(command) {
        let first = current.trim().is_empty();
        // Room for the backslash behind it.
        if !first && current.chars().count() + 1 + part.chars().count() + 2 > COLUMNS {
            lines.push(format!("{current} \\"));
            current = format!("{further}{part}");
        } else {
            current = format!("{current}{}{part}", if first { "" } else { " " });
        }
    }
    lines.push(current + end);
}

/// What stays together: a word, what stands in quotes, a flag with its value.
fn parts(line: &str) -> Vec<String> {
    let mut quoted = false;
    let between = |c: char| {
        quoted ^= c == '"';
        c == ' ' && !quoted
    };
    let mut parts: Vec<String> = Vec::new();
    for word in line.split(between).filter(|word| !word.is_empty()) {
        match parts.last_mut() {
            Some(flag) if flag.starts_with('-') && !flag.contains(' ') && !word.starts_with('-') => {
                *flag = format!("{flag} {word}");
            }
            _ => parts.push(word.to_owned()),
        }
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn becomes(examples: &str, expected: &str) {
        let rest = "A line of prose that is longer than a screen of eighty columns, which is wrapped elsewhere anyway.";
        let folded = fold(&format!("About.\n\nExamples:\n{examples}\n\n{rest}"));
        assert_eq!(folded, format!("About.\n\nExamples:\n{expected}\n\n{rest}"));
        assert!(expected.lines().all(|line| line.len() <= COLUMNS));
    }

    #[test]
    fn long_examples_go_on_behind_a_backslash() {
        becomes("  a short one   (why)", "  a short one   (why)");
        becomes(
            "  oap-memory grant issue --to did:web:contractor.example --purpose \"A purpose of words\" --until 30d",
            "  oap-memory grant issue --to did:web:contractor.example \\\n      --purpose \"A purpose of words\" --until 30d",
        );
        becomes(
            "  oap-memory serve --plain-http --listen 127.0.0.1:8080 --trusted-proxy 127.0.0.1     (behind a proxy)",
            "  # behind a proxy\n  oap-memory serve --plain-http --listen 127.0.0.1:8080 \\\n      --trusted-proxy 127.0.0.1",
        );
        becomes(
            "  oap-memory grant preview --to did:web:contractor.example --purpose \"Website redesign\" --label a \\\n      --last",
            "  oap-memory grant preview --to did:web:contractor.example \\\n      --purpose \"Website redesign\" --label a \\\n      --last",
        );
    }
}

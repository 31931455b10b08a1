//! The commands of a page, and of every help.

use crate::program::BINARY;
use std::process::Command;

/// A text and its commands, in order.
#[derive(Debug)]
pub struct Text {
    pub name: String,
    pub commands: Vec<String>,
}

/// A page of the project.
pub fn page(name: &str) -> Text {
    let path = format!("{}/../{name}", env!("CARGO_MANIFEST_DIR"));
    Text { name: name.to_owned(), commands: commands_of_page(&std::fs::read_to_string(path).unwrap()) }
}

/// What stands in `sh` blocks, and what a line names as `oap-memory …`.
pub fn commands_of_page(text: &str) -> Vec<String> {
    let mut commands = Vec::new();
    for (n, part) in text.split("```").enumerate() {
        // Between two fences every second part is a block.
        if n % 2 == 0 {
            let spans = part.split('`').enumerate().filter(|(n, _)| n % 2 == 1).map(|(_, span)| span);
            let spans = spans.map(|span| span.split_whitespace().collect::<Vec<_>>().join(" "));
            commands.extend(spans.filter(|span| span.starts_with("oap-memory ")));
        } else if let Some(block) = part.strip_prefix("sh\n") {
            commands.extend(lines(block.lines()).into_iter().filter(|line| !line.starts_with('#')));
        }
    }
    commands
}

/// Every command's help, the subcommands' too.
pub fn helps() -> Vec<Text> {
    let mut found = Vec::new();
    let mut todo = vec![Vec::<String>::new()];
    while let Some(command) = todo.pop() {
        let output = Command::new(BINARY).args(&command).arg("--help").env("COLUMNS", "80").output().unwrap();
        let help = String::from_utf8(output.stdout).unwrap();
        let name = ["oap-memory"].into_iter().chain(command.iter().map(String::as_str)).chain(["--help"]);
        let name = name.collect::<Vec<_>>().join(" ");
        assert!(output.status.success() && !help.is_empty(), "{name}");
        let below =
            help.lines().skip_while(|line| *line != "Commands:").skip(1).take_while(|l| !l.is_empty());
        let below = below.filter(|line| line.starts_with("  ") && !line.starts_with("   "));
        let below = below.filter_map(|line| line.split_whitespace().next()).filter(|name| *name != "help");
        todo.extend(below.map(|name| [&command[..], &[name.to_owned()]].concat()));
        let commands = commands_of_help(&help);
        if !commands.is_empty() {
            found.push(Text { name, commands });
        }
    }
    found
}

/// The lines under `Examples:`, without what stands in parentheses behind them.
pub fn commands_of_help(help: &str) -> Vec<String> {
    let examples = help.lines().skip_while(|line| *line != "Examples:").skip(1);
    let examples = lines(examples.take_while(|line| !line.trim().is_empty()));
    let examples = examples.into_iter().filter(|line| !line.starts_with('#')).collect::<Vec<_>>();
    let note = |line: &str| match line.rsplit_once("  (") {
        Some((command, note)) if note.ends_with(')') => command.trim_end().to_owned(),
        _ => line.to_owned(),
    };
    examples.iter().map(|line| note(line)).collect()
}

/// Whole commands: a line that ends with `\` goes on.
fn lines<'a>(lines: impl Iterator<Item = &'a str>) -> Vec<String> {
    let mut whole: Vec<String> = Vec::new();
    let mut goes_on = false;
    for line in lines.map(str::trim).filter(|line| !line.is_empty()) {
        let (text, more) = line.strip_suffix('\\').map_or((line, false), |text| (text.trim_end(), true));
        match whole.last_mut() {
            Some(last) if goes_on => *last = format!("{last} {text}"),
            _ => whole.push(text.to_owned()),
        }
        goes_on = more;
    }
    whole
}

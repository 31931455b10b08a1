//! `oap-memory man`: one page a command, named after the whole command.

use super::examples::{self, HEAD};
use super::{CliError, Global, help, output};
use clap::{Arg, Command};
use clap_mangen::Man;
use clap_mangen::roff::{Roff, roman};
use serde_json::json;
use std::io;
use std::path::Path;

/// Writes every page into a folder, and says so.
pub(super) fn run(global: &Global, out: &Path) -> Result<(), CliError> {
    let failed = |e: io::Error| CliError::File(out.to_owned(), e.to_string());
    write(examples::folded(help::command()), out).map_err(failed)?;
    output::print(global.json, &json!({"folder": out}), |_| format!("written to {}", out.display()));
    Ok(())
}

/// Writes the pages of a command and of those below it.
pub(super) fn write(command: Command, folder: &Path) -> io::Result<()> {
    let mut command = command.disable_help_subcommand(true);
    command.build();
    std::fs::create_dir_all(folder)?;
    below(&command, folder)
}

fn below(command: &Command, folder: &Path) -> io::Result<()> {
    for command in command.get_subcommands() {
        below(command, folder)?;
    }
    let name = command.get_display_name().unwrap_or(command.get_name());
    std::fs::write(folder.join(format!("{name}.1")), page(command, name)?)
}

/// The page of a command, whose examples stand as they are typed.
fn page(command: &Command, name: &str) -> io::Result<Vec<u8>> {
    let help = command.get_after_help().map(ToString::to_string).unwrap_or_default();
    let source = format!("oap-memory {}", env!("CARGO_PKG_VERSION"));
    let man = Man::new(command.clone().override_usage(synopsis(command))).title(name).source(source);
    let mut page = Vec::new();
    man.render_title(&mut page)?;
    man.render_name_section(&mut page)?;
    man.render_synopsis_section(&mut page)?;
    man.render_description_section(&mut page)?;
    man.render_options_section(&mut page)?;
    if command.has_subcommands() {
        man.render_subcommands_section(&mut page)?;
    }
    page.extend(after(&help).to_roff().into_bytes());
    man.render_version_section(&mut page)?;
    Ok(page)
}

/// The usage, with every flag that it calls `[OPTIONS]`.
fn synopsis(command: &Command) -> String {
    let usage = command.clone().render_usage().to_string();
    let usage = usage.trim_start_matches("Usage: ");
    // What is needed stands in the usage by itself.
    let named =
        |arg: &Arg| usage.split([' ', '<', '|', '>']).any(|word| arg.get_long() == word.strip_prefix("--"));
    let flags =
        command.get_arguments().filter(|arg| !arg.is_positional() && !arg.is_hide_set() && !named(arg));
    let flags: Vec<String> = flags.map(|arg| format!("[{arg}]")).collect();
    usage.replace("[OPTIONS]", &flags.join(" "))
}

/// What stands after the options: the examples line by line, the rest in paragraphs.
fn after(help: &str) -> Roff {
    let mut roff = Roff::new();
    let mut notes = false;
    for paragraph in help.split("\n\n") {
        if let Some(examples) = paragraph.strip_prefix(HEAD) {
            roff.control("SH", ["EXAMPLES"]).control("nf", []);
            for line in examples.lines().filter(|line| !line.is_empty()) {
                roff.text([roman(line)]);
            }
            roff.control("fi", []);
        } else if !paragraph.is_empty() {
            if std::mem::replace(&mut notes, true) {
                roff.control("PP", []);
            } else {
                roff.control("SH", ["NOTES"]);
            }
            for line in paragraph.lines() {
                roff.text([roman(line)]);
            }
        }
    }
    roff
}

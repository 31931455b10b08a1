//! Every command of README.md and docs/operate.md, and every example of every `--help`, runs as it is printed: in order, on
//! loopback, in a prepared world (`every_command/world.rs`). What stands for something else, such as a public name or an id, is
//! replaced by the tables of `every_command/tables.rs`; what cannot run is listed there with the reason.

mod tables;
mod texts;
mod world;

use std::collections::BTreeSet;
use std::sync::Mutex;
use tables::{Execution, Tables};
use texts::Text;
use world::{Place, World};

/// Texts that run at the same time.
const WORKERS: usize = 4;

#[test]
fn every_command_of_every_text_runs() {
    let world = World::new();
    let pages = [texts::page("README.md"), texts::page("docs/operate.md")];
    let mut all: Vec<Text> = pages.into_iter().chain(texts::helps()).collect();
    assert!(all[0].commands.len() > 30 && all[1].commands.len() > 10 && all.len() > 25, "{all:?}");
    // A way to look at one of them: OAP_TEXT=README.md
    let one = std::env::var("OAP_TEXT").ok();
    all.retain(|text| one.as_ref().is_none_or(|one| text.name.contains(one.as_str())));
    all.reverse();
    let (todo, wrong) = (Mutex::new(all), Mutex::new(Vec::new()));
    let tables = Tables::default();
    std::thread::scope(|scope| {
        for _ in 0..WORKERS {
            scope.spawn(|| {
                loop {
                    let next = todo.lock().unwrap().pop();
                    let Some(text) = next else { break };
                    let failed = run(&world, &text, &tables);
                    wrong.lock().unwrap().extend(failed);
                }
            });
        }
    });
    let mut wrong = wrong.into_inner().unwrap();
    if one.is_none() {
        wrong.extend(tables.unused().into_iter().map(|entry| format!("tables.rs: no text holds {entry:?}")));
    }
    assert!(wrong.is_empty(), "{} commands do not run as printed:\n\n{}", wrong.len(), wrong.join("\n\n"));
}

/// Runs the commands of a text in a place of its own; what went wrong.
fn run(world: &World, text: &Text, tables: &Tables) -> Vec<String> {
    let mut place = Place::new(world, &text.name);
    let mut wrong = Vec::new();
    for command in &text.commands {
        let (script, status) = match tables.execution(&text.name, command) {
            Execution::NotRun => continue,
            Execution::Run { script, status } => (place.filled(&script), status),
        };
        if let Err(why) = place.run(&script, status) {
            wrong.push(format!(
                "{}: {command}\n  run as: {script}\n  {}",
                text.name,
                why.replace('\n', "\n  ")
            ));
        }
    }
    wrong
}

/// The extraction sees what it must: a text without commands would pass.
#[test]
fn commands_are_found_in_blocks_lines_and_helps() {
    let page = "```sh\na --b \\\n    --c   # note\n# only a note\nd\n```\nSay `oap-memory x y` or `z`.\n```toml\nno = 1\n```\n";
    assert_eq!(texts::commands_of_page(page), ["a --b --c   # note", "d", "oap-memory x y"]);
    let help = "About\n\nUsage: oap-memory x\n\nExamples:\n  oap-memory x \\\n      --y     (why)\n  oap-memory z\n\nMore.\n";
    assert_eq!(texts::commands_of_help(help), ["oap-memory x --y", "oap-memory z"]);
    let names: BTreeSet<String> = texts::helps().into_iter().map(|text| text.name).collect();
    for name in ["oap-memory --help", "oap-memory query --help", "oap-memory key new --help"] {
        assert!(names.contains(name), "{names:?}");
    }
}

//! The instruction files of coding agents.

use super::{Pieces, front_matter, heading, load, tell_broken};
use crate::import::{Draft, File, Format, Importer, Likeness, Looks, Reach, Sink};
use oap_identity::Hash;
use serde_json::json;
use std::ops::ControlFlow;

const ABOUT: &str = "each bullet and each paragraph becomes a preference (a fact in MEMORY.md), with the \
    headings above it as provenance; code blocks stay with what they belong to; one that was edited is corrected";

const FROM: &str = "agents-md";

pub(in crate::import) const IMPORTER: Importer =
    Importer { format: Format::AgentsMd, about: ABOUT, general: true, account_id: None, recognises, read };

/// By the name that the agents give them, whatever is in them.
fn recognises(looks: &Looks) -> Likeness {
    Likeness::sure(["claude.md", "agents.md", "memory.md", "gemini.md"].contains(&looks.base.as_str()))
}

fn read(file: File, sink: Sink) {
    let name = file.name.to_owned();
    if let Some(text) = load(file, sink) {
        let _ = instructions(&name, &text, sink);
    }
}

fn instructions(name: &str, text: &str, sink: Sink) -> ControlFlow<()> {
    let base = name.rsplit('/').next().unwrap_or(name);
    let kind = if base.eq_ignore_ascii_case("memory.md") { "fact" } else { "preference" };
    let matter = front_matter(text);
    tell_broken(&matter, name, sink)?;
    let mut headings: Vec<(usize, String)> = Vec::new();
    let mut block = String::new();
    let mut began = 1;
    let mut fenced = false;
    let mut pieces = Pieces::default();
    let mut end = |block: &mut String, headings: &[(usize, String)], line: usize| {
        let said = std::mem::take(block);
        let said = said.trim();
        let said = said.strip_prefix("- ").or_else(|| said.strip_prefix("* ")).unwrap_or(said).trim();
        if said.is_empty() || said.chars().all(|c| matches!(c, '-' | '*' | '_')) {
            return;
        }
        let path: Vec<&str> = headings.iter().map(|(_, title)| title.as_str()).collect();
        let draft = Draft::new(kind, said, FROM)
            .tag("file", Some(&json!(name)))
            .tag("section", Some(&json!(path.join(" > "))))
            .label(base)
            .reach(Reach::Path)
            .group(Some(FROM));
        let source = format!("{FROM}:{}:{}", path.join(">"), Hash::of(said.as_bytes()));
        pieces.push(source, format!("{name}:{line}"), draft);
    };
    for (index, line) in matter.body.lines().enumerate() {
        let fence = line.trim_start().starts_with("```");
        let new_bullet = !fenced && (line.starts_with("- ") || line.starts_with("* "));
        if !fenced && let Some((level, title)) = heading(line) {
            end(&mut block, &headings, began);
            headings.retain(|(above, _)| *above < level);
            headings.push((level, title.to_owned()));
            continue;
        }
        if !fenced && (line.trim().is_empty() || new_bullet) {
            end(&mut block, &headings, began);
        }
        if block.is_empty() {
            began = matter.lines + index + 1;
        }
        fenced ^= fence;
        if !line.trim().is_empty() || fenced {
            block.push_str(line);
            block.push('\n');
        }
    }
    end(&mut block, &headings, began);
    pieces.send(sink)
}

//! `MyActivity.html`: one `div` of class `outer-cell` an activity. The page is read cell by cell.

use super::{Activity, of_gemini, plain};
use crate::import::{Sink, dates, refused, skipped};
use serde_json::json;
use std::io::Read;
use std::ops::ControlFlow;

/// Largest cell, in bytes.
const MAX_CELL: usize = 4 << 20;
/// What a cell begins with.
const CELL: &[u8] = b"<div class=\"outer-cell";
/// Bytes that are read at once.
const STEP: usize = 64 * 1024;

pub(super) fn read(name: &str, bytes: &mut dyn Read, sink: Sink) {
    let mut number = 0;
    let mut held: Vec<u8> = Vec::new();
    let mut step = vec![0; STEP];
    let mut looked = 0;
    let mut inside = false;
    loop {
        // The next cell's beginning ends this one.
        let from = looked.max(usize::from(inside));
        let next = held
            .get(from..)
            .and_then(|rest| rest.windows(CELL.len()).position(|w| w == CELL))
            .map(|at| at + from);
        if let Some(end) = next {
            if inside && cell(name, &mut number, &held[..end], sink).is_break() {
                return;
            }
            held.drain(..end);
            (inside, looked) = (true, 0);
            continue;
        }
        looked = held.len().saturating_sub(CELL.len());
        if !inside {
            held.drain(..looked);
            looked = 0;
        } else if held.len() > MAX_CELL {
            if sink(refused(format!("{name}[{number}]"), "the entry is larger than 4 MiB")).is_break() {
                return;
            }
            number += 1;
            (inside, looked) = (false, 0);
            continue;
        }
        match bytes.read(&mut step) {
            Ok(0) => break,
            Ok(read) => held.extend(step.get(..read).unwrap_or_default()),
            Err(error) => {
                let _ = sink(refused(name.to_owned(), error));
                return;
            }
        }
    }
    if inside {
        let _ = cell(name, &mut number, &held, sink);
    }
}

fn cell(name: &str, number: &mut usize, bytes: &[u8], sink: Sink) -> ControlFlow<()> {
    let place = format!("{name}[{number}]");
    *number += 1;
    let html = String::from_utf8_lossy(bytes);
    let product = between(&html, "mdl-typography--title\">", "<").unwrap_or(&html);
    if !of_gemini(product) {
        return sink(skipped(place, "an activity of another product"));
    }
    let Some(body) = html.split_once("mdl-typography--body-1\">").map(|(_, rest)| inner(rest)) else {
        return sink(skipped(place, "no prompt"));
    };
    // What was asked, a line break, the time, a line break, the answer.
    let mut said: Vec<String> = Vec::new();
    let mut rest = body;
    loop {
        let (line, after) = match line_break(rest) {
            Some((start, end)) => (&rest[..start], &rest[end..]),
            None => (rest, ""),
        };
        let line = match plain(&without_links(line)) {
            Ok(line) => line.trim().to_owned(),
            Err(error) => return sink(refused(place, error)),
        };
        if !said.is_empty()
            && let Some(at) = dates::parse(&line)
        {
            let title = said.join("\n");
            let answers = if after.trim().is_empty() { Vec::new() } else { vec![after] };
            let link = between(body, "href=\"https://gemini.google.com/app/", "\"");
            let link = link.map(|id| json!(format!("https://gemini.google.com/app/{id}")));
            return Activity { title: &title, when: &line, at: Some(at), link, answers }.send(&place, sink);
        }
        if !is_notice(&line) {
            said.push(line);
        }
        if after.is_empty() {
            return sink(skipped(place, "no prompt"));
        }
        rest = after;
    }
}

/// What Google says of attached and made files.
fn is_notice(line: &str) -> bool {
    let words: Vec<&str> = line.split_whitespace().take(5).collect();
    let counted = |word: &str| word.bytes().all(|b| b.is_ascii_digit());
    match words.as_slice() {
        ["Attached", count, "file." | "files."] => counted(count),
        [count, "generated", "image." | "images."] => counted(count),
        _ => false,
    }
}

/// A line without the tags of links: their text stays.
fn without_links(html: &str) -> String {
    let mut text = html.replace("</a>", "");
    while let Some(start) = text.find("<a ")
        && let Some(end) = text[start..].find('>')
    {
        text.replace_range(start..=start + end, "");
    }
    text
}

/// What stands between two marks.
fn between<'a>(text: &'a str, before: &str, after: &str) -> Option<&'a str> {
    Some(text.split_once(before)?.1.split_once(after)?.0)
}

/// Where the next `<br>` is.
fn line_break(html: &str) -> Option<(usize, usize)> {
    let start = html.find("<br")?;
    let end = html[start..].find('>')?;
    Some((start, start + end + 1))
}

/// What comes before the end of the `div` that the text stands in.
fn inner(html: &str) -> &str {
    let (mut depth, mut at) = (1_usize, 0);
    while let Some(found) = html[at..].find("<div").into_iter().chain(html[at..].find("</div")).min() {
        let start = at + found;
        if html[start..].starts_with("</div") {
            depth -= 1;
            if depth == 0 {
                return &html[..start];
            }
        } else {
            depth += 1;
        }
        at = start + 4;
    }
    html
}

//! JSON Lines: one object a line.

use super::looks::Shape;
use super::{File, Format, Importer, Likeness, Looks, MAX_LINE, Sink, refused, table};
use oap_identity::json::parse_foreign;
use oap_memory::lines::lines;
use serde_json::Value;
use std::ops::ControlFlow;

pub(super) const IMPORTER: Importer = Importer {
    format: Format::Jsonl,
    about: table::ABOUT,
    general: true,
    account_id: None,
    recognises,
    read,
};

/// It says so in its name, or each of its first two lines is, or begins, an object of its own. A document that nothing
/// knows is no lines of anything.
fn recognises(looks: &Looks) -> Likeness {
    let start = looks.start();
    if looks.shape != Shape::Json || !start.starts_with('{') {
        return Likeness::None;
    }
    let mut lines = start.lines().filter(|line| !line.trim().is_empty());
    let whole = |line: &str| parse_foreign(line).is_ok_and(|value| value.is_object());
    let mut two =
        || lines.next().is_some_and(whole) && lines.next().is_some_and(|line| line.starts_with('{'));
    Likeness::perhaps(looks.base.ends_with(".jsonl") || looks.base.ends_with(".ndjson") || two())
}

fn read(file: File, sink: Sink) {
    let (name, mapping) = (file.name.to_owned(), file.mapping);
    let read = lines(&mut *file.bytes, MAX_LINE, |number, line| {
        let place = format!("{name}:{number}");
        let Some(line) = line else { return sink(refused(place, "the line is too long")) };
        if line.trim_ascii().is_empty() {
            return ControlFlow::Continue(());
        }
        match oap_identity::json::parse(line) {
            Ok(Value::Object(row)) => table::one("jsonl", row, mapping, place, sink),
            Ok(_) => sink(refused(place, "the line is no object")),
            Err(error) => sink(refused(place, error)),
        }
    });
    if let Err(reason) = read {
        let _ = sink(refused(name, reason));
    }
}

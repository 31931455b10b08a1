//! Tables: CSV with a header, and JSON Lines, with a mapping of their columns.

use super::bounded::Bounded;
use super::{Draft, File, MAX_LINE, Reach, Sink, refused, skipped, time};
use crate::lines::lines;
use serde_json::{Map, Value, json};
use std::cell::Cell;
use std::collections::BTreeMap;
use std::io::Read;
use std::ops::ControlFlow;

pub(super) const ABOUT: &str = "columns become members as the mapping says (text, kind, label, subject, captured_at, confidence, \
    scope, id); columns that it does not name become structured content; commas, semicolons, tabs or bars separate columns; without an id a row is told apart by what it says";

/// Bytes of a table that its separator is told by.
const MAX_HEADER: u64 = 64 * 1024;
/// What separates columns, the likeliest first.
const SEPARATORS: [u8; 4] = [b',', b';', b'\t', b'|'];

/// Which column stands for which member.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Mapping(BTreeMap<String, String>);

/// The members that a column can stand for, and the names that are taken for them where no mapping says so.
const MEMBERS: [(&str, &[&str]); 8] = [
    ("text", &["text", "content", "memory", "body", "note"]),
    ("kind", &["kind"]),
    ("label", &["label", "labels", "tags"]),
    ("subject", &["subject", "subject_entity_id"]),
    ("captured_at", &["captured_at", "created_at", "date", "time", "timestamp"]),
    ("confidence", &["confidence"]),
    ("scope", &["scope", "scope_id"]),
    ("id", &["id", "uuid"]),
];

impl Mapping {
    /// Reads `text=body,label=tags`.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut mapping = BTreeMap::new();
        for pair in text.split(',').filter(|pair| !pair.trim().is_empty()) {
            let (member, column) =
                pair.split_once('=').ok_or_else(|| format!("{pair:?}: is no member=column"))?;
            if !MEMBERS.iter().any(|(known, _)| *known == member.trim()) {
                let known: Vec<&str> = MEMBERS.iter().map(|(known, _)| *known).collect();
                return Err(format!("{member:?}: must be one of {}", known.join(", ")));
            }
            mapping.insert(member.trim().to_owned(), column.trim().to_owned());
        }
        Ok(Self(mapping))
    }

    /// The column for a member in a row.
    fn column<'a>(&'a self, member: &str, row: &Map<String, Value>) -> Option<&'a str> {
        if let Some(column) = self.0.get(member) {
            return Some(column);
        }
        let names = MEMBERS.iter().find(|(known, _)| *known == member).map(|(_, names)| *names)?;
        names.iter().copied().find(|name| row.contains_key(*name))
    }
}

pub(super) fn csv(file: File, sink: Sink) {
    let (name, mapping) = (file.name.to_owned(), file.mapping);
    let left = Cell::new(MAX_LINE);
    let mut bytes = Bounded::new(file.bytes, MAX_LINE, &left);
    let mut head = Vec::new();
    if let Err(error) = (&mut bytes).take(MAX_HEADER).read_to_end(&mut head) {
        let _ = sink(refused(name, error));
        return;
    }
    let delimiter = delimiter(&head);
    let bytes = head.chain(bytes);
    let mut reader = csv::ReaderBuilder::new().flexible(false).delimiter(delimiter).from_reader(bytes);
    let header = match reader.byte_headers() {
        Ok(header) => header.clone(),
        Err(error) => {
            let _ = sink(refused(name, error));
            return;
        }
    };
    let header: Vec<String> = header.iter().map(|c| String::from_utf8_lossy(c).trim().to_owned()).collect();
    let mut record = csv::ByteRecord::new();
    loop {
        let line = reader.position().line();
        let place = format!("{name}:{line}");
        left.set(MAX_LINE);
        let told = match reader.read_byte_record(&mut record) {
            Ok(false) => return,
            Ok(true) => match row(&header, &record) {
                Ok(row) => one("csv", row, mapping, place, sink),
                Err(reason) => sink(refused(place, reason)),
            },
            Err(error) => {
                let fatal = matches!(error.kind(), csv::ErrorKind::Io(_));
                let told = sink(refused(place, error));
                if fatal { ControlFlow::Break(()) } else { told }
            }
        };
        if told.is_break() {
            return;
        }
    }
}

/// What separates the columns: the one of the usual characters that stands in the header most often, outside quotes.
fn delimiter(head: &[u8]) -> u8 {
    let mut counts = SEPARATORS.map(|separator| (0_usize, separator));
    let mut quoted = false;
    for byte in head {
        match byte {
            b'"' => quoted = !quoted,
            b'\n' if !quoted => break,
            byte if !quoted => {
                for (count, separator) in &mut counts {
                    *count += usize::from(separator == byte);
                }
            }
            _ => {}
        }
    }
    let most = counts.iter().map(|(count, _)| *count).max().unwrap_or_default();
    counts.iter().find(|(count, _)| *count == most).map_or(b',', |(_, separator)| *separator)
}

fn row(header: &[String], record: &csv::ByteRecord) -> Result<Map<String, Value>, &'static str> {
    let mut row = Map::new();
    for (column, field) in header.iter().zip(record.iter()) {
        let field = std::str::from_utf8(field).map_err(|_| "not UTF-8")?;
        if !field.trim().is_empty() {
            row.insert(column.clone(), json!(field));
        }
    }
    Ok(row)
}

pub(super) fn jsonl(file: File, sink: Sink) {
    let (name, mapping) = (file.name.to_owned(), file.mapping);
    let read = lines(&mut *file.bytes, MAX_LINE, |number, line| {
        let place = format!("{name}:{number}");
        let Some(line) = line else { return sink(refused(place, "the line is too long")) };
        if line.trim_ascii().is_empty() {
            return ControlFlow::Continue(());
        }
        match oap_identity::json::parse(line) {
            Ok(Value::Object(row)) => one("jsonl", row, mapping, place, sink),
            Ok(_) => sink(refused(place, "the line is no object")),
            Err(error) => sink(refused(place, error)),
        }
    });
    if let Err(reason) = read {
        let _ = sink(refused(name, reason));
    }
}

fn one(
    from: &str,
    mut row: Map<String, Value>,
    mapping: &Mapping,
    place: String,
    sink: Sink,
) -> ControlFlow<()> {
    if row.is_empty() {
        return sink(skipped(place, "an empty row"));
    }
    let says = oap_identity::Hash::of_canonical(&row).map(|hash| hash.to_string()).unwrap_or_default();
    let mut take = |member: &str| {
        let column = mapping.column(member, &row)?.to_owned();
        row.remove(&column)
    };
    let said = take("text");
    let (kind, labels, subject) = (take("kind"), take("label"), take("subject"));
    let (at, confidence, scope, id) = (take("captured_at"), take("confidence"), take("scope"), take("id"));
    let as_text = |value: &Option<Value>| match value {
        Some(Value::String(text)) => text.trim().to_owned(),
        Some(other) => other.to_string(),
        None => String::new(),
    };
    // It has a number or a label, and says nothing.
    if row.is_empty() && as_text(&said).is_empty() {
        return sink(skipped(place, "an empty row"));
    }
    let kind = if kind.is_some() { as_text(&kind) } else { "fact".to_owned() };
    let mut draft =
        Draft::new(&kind, &as_text(&said), from).structured(row).subject(Some(&as_text(&subject)));
    if let Some(at) = &at {
        match time(at) {
            Some(at) => draft = draft.at(Some(at)),
            None => return sink(refused(place, format!("captured_at: {at} is no time"))),
        }
    }
    if confidence.is_some() {
        match as_text(&confidence).parse::<f64>() {
            Ok(confidence) => draft = draft.confidence(confidence),
            Err(_) => return sink(refused(place, "confidence: must be a number from 0 to 1")),
        }
    }
    if scope.is_some() {
        draft.item["scope_id"] = json!(as_text(&scope));
    }
    match &labels {
        Some(Value::Array(all)) => {
            for label in all.iter().filter_map(Value::as_str) {
                draft = draft.label(label);
            }
        }
        labels => {
            for label in as_text(&labels.clone()).split([';', ',']) {
                draft = draft.label(label);
            }
        }
    }
    let source = match &id {
        Some(_) => format!("{from}:{}", as_text(&id)),
        None => format!("{from}:{says}"),
    };
    draft = draft.tag("row", id.as_ref()).reach(if id.is_some() { Reach::File } else { Reach::World });
    draft.send(source, place, sink)
}

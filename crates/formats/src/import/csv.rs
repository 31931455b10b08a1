//! CSV with a header.

use super::bounded::Bounded;
use super::looks::Shape;
use super::{File, Format, Importer, Likeness, Looks, MAX_LINE, Sink, refused, table};
use ::csv::{ByteRecord, ErrorKind, ReaderBuilder};
use serde_json::{Map, Value, json};
use std::cell::Cell;
use std::io::Read;
use std::ops::ControlFlow;
use std::str::Utf8Error;

/// Bytes of a table that its separator is told by.
const MAX_HEADER: u64 = 64 * 1024;
/// What separates columns, the likeliest first.
const SEPARATORS: [u8; 4] = [b',', b';', b'\t', b'|'];

pub(super) const IMPORTER: Importer =
    Importer { format: Format::Csv, about: table::ABOUT, general: true, account_id: None, recognises, read };

/// By its name: anything may be a table.
fn recognises(looks: &Looks) -> Likeness {
    let named = looks.base.ends_with(".csv") || looks.base.ends_with(".tsv");
    Likeness::perhaps(looks.shape == Shape::Other && named)
}

fn read(file: File, sink: Sink) {
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
    let mut reader = ReaderBuilder::new().flexible(false).delimiter(delimiter).from_reader(bytes);
    let header = match reader.byte_headers() {
        Ok(header) => header.clone(),
        Err(error) => {
            let _ = sink(refused(name, error));
            return;
        }
    };
    let header: Vec<String> = header.iter().map(|c| String::from_utf8_lossy(c).trim().to_owned()).collect();
    let mut record = ByteRecord::new();
    loop {
        let line = reader.position().line();
        let place = format!("{name}:{line}");
        left.set(MAX_LINE);
        let told = match reader.read_byte_record(&mut record) {
            Ok(false) => return,
            Ok(true) => match row(&header, &record) {
                Ok(row) => table::one("csv", row, mapping, place, sink),
                Err(_) => sink(refused(place, "not UTF-8")),
            },
            Err(error) => {
                let fatal = matches!(error.kind(), ErrorKind::Io(_));
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

fn row(header: &[String], record: &ByteRecord) -> Result<Map<String, Value>, Utf8Error> {
    let mut row = Map::new();
    for (column, field) in header.iter().zip(record.iter()) {
        let field = std::str::from_utf8(field)?;
        if !field.trim().is_empty() {
            row.insert(column.clone(), json!(field));
        }
    }
    Ok(row)
}

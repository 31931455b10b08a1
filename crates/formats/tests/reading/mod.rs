//! What an importer finds in bytes.

#![allow(dead_code)]

use oap_formats::import::{self, File, Format, Found, HEAD, Mapping, Record};
use serde_json::Value;
use std::ops::ControlFlow;

#[derive(Debug, Default)]
pub struct Read {
    pub records: Vec<Record>,
    pub skipped: Vec<String>,
    pub refused: Vec<(String, String)>,
}

pub fn read_as(format: Format, name: &str, mut bytes: &[u8], mapping: &Mapping) -> Read {
    let mut read = Read::default();
    (format.importer().read)(File { name, bytes: &mut bytes, mapping }, &mut |found| {
        match found {
            Found::Record(record) => read.records.push(*record),
            Found::Skipped { reason, .. } => read.skipped.push(reason),
            Found::Refused { place, reason } => read.refused.push((place, reason)),
        }
        ControlFlow::Continue(())
    });
    read
}

pub fn texts(read: &Read) -> Vec<&str> {
    read.records.iter().map(|r| r.item["content"]["text"].as_str().unwrap_or("")).collect()
}

pub fn provenance<'a>(record: &'a Record, name: &str) -> &'a Value {
    &record.item["provenance"][name]
}

/// Reads a file as what it is recognised as; one that is not is left out.
pub fn read_file(name: &str, bytes: &[u8]) -> Read {
    let head = &bytes[..bytes.len().min(HEAD)];
    match import::left_out(name, head) {
        Some(reason) => Read { skipped: vec![reason.to_string()], ..Read::default() },
        None => match import::recognise(name, head) {
            Some(format) => read_as(format, name, bytes, &Mapping::default()),
            None => Read { skipped: vec!["not of a format".to_owned()], ..Read::default() },
        },
    }
}

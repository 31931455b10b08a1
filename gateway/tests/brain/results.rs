//! The W3C's tests of result formats, asked of the endpoint. `tests/vectors/README.md` names their source.

use super::{made, sent};
use crate::common::*;
use axum::http::StatusCode;
use serde_json::{Value, json};
use std::collections::BTreeSet;

const VECTORS: &str = include_str!("../vectors/sparql-results.json");
const TSV: &str = "text/tab-separated-values";
/// Tests of the W3C's two manifests of result formats.
const TESTS: usize = 10;

/// The head and the rows of an answer, as its format writes them.
fn read(media_type: &str, answer: &Answer) -> (Value, Value) {
    let text = std::str::from_utf8(&answer.bytes).unwrap();
    let mut lines: Vec<Vec<String>> = match media_type {
        "text/csv" => {
            let rows = csv::ReaderBuilder::new().has_headers(false).from_reader(text.as_bytes());
            rows.into_records().map(|row| row.unwrap().iter().map(str::to_owned).collect()).collect()
        }
        TSV => {
            text.split_terminator('\n').map(|line| line.split('\t').map(str::to_owned).collect()).collect()
        }
        _ => return (answer.body["head"]["vars"].clone(), answer.body["results"]["bindings"].clone()),
    };
    let head = lines.remove(0);
    (json!(head), json!(lines))
}

/// Blank nodes in the order in which they first stand there: their names say nothing.
#[derive(Default)]
struct BlankNodes(Vec<String>);

impl BlankNodes {
    fn name(&mut self, name: &str) -> String {
        let known = self.0.iter().position(|known| known == name);
        let at = known.unwrap_or_else(|| {
            self.0.push(name.to_owned());
            self.0.len() - 1
        });
        format!("_:{at}")
    }
}

/// Rows that can be compared: with blank nodes by number, and with one way to write the exponent of a number in TSV.
fn comparable(mut rows: Value, media_type: &str) -> Value {
    let number = |text: &str| text.starts_with(|c: char| c.is_ascii_digit() || "+-.".contains(c));
    let mut blank = BlankNodes::default();
    for row in rows.as_array_mut().unwrap() {
        match row {
            Value::Array(cells) => {
                for cell in cells {
                    let text = cell.as_str().unwrap();
                    if text.starts_with("_:") {
                        *cell = blank.name(text).into();
                    } else if media_type == TSV && number(text) {
                        *cell = text.to_ascii_lowercase().into();
                    }
                }
            }
            Value::Object(terms) => {
                for term in terms.values_mut().filter(|term| term["type"] == "bnode") {
                    term["value"] = blank.name(term["value"].as_str().unwrap()).into();
                }
            }
            _ => panic!("{row}"),
        }
    }
    rows
}

#[tokio::test]
async fn results_are_written_as_the_w3c_expects() {
    let world = World::new().await;
    let key = made(&world, "scout").await;
    let vectors: Vec<Value> = serde_json::from_str(VECTORS).unwrap();
    let mut tests = BTreeSet::new();
    for vector in &vectors {
        let text = |member: &str| vector[member].as_str().unwrap();
        let (test, media_type) = (text("test"), text("media_type"));
        let headers = [("content-type", "application/sparql-query"), ("accept", media_type)];
        let answer = sent(&world, &key, &headers, text("query").to_owned()).await;
        assert_eq!(answer.status, StatusCode::OK, "{test}: {}", answer.body);
        let given = answer.media_type.as_deref().unwrap();
        assert_eq!(given.split(';').next(), Some(media_type), "{test}");
        if let Some(yes) = vector.get("boolean") {
            assert_eq!(answer.body, json!({"head": {}, "boolean": yes}), "{test}");
        } else {
            let (head, rows) = read(media_type, &answer);
            assert_eq!(head, vector["vars"], "{test}");
            let expected = comparable(vector["rows"].clone(), media_type);
            assert_eq!(comparable(rows, media_type), expected, "{test}");
        }
        tests.insert(test);
    }
    assert_eq!(tests.len(), TESTS);
}

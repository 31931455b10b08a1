//! N-Quads, with PROV-O for where an item comes from. The graph of every quad is the item.

use super::{Exporter, Form, Layout, labels, said};
use serde_json::Value;

const PROV: &str = "http://www.w3.org/ns/prov#";
const RDF: &str = "http://www.w3.org/1999/02/22-rdf-syntax-ns#";
const TERMS: &str = "http://purl.org/dc/terms/";
const XSD: &str = "http://www.w3.org/2001/XMLSchema#";
const OAP: &str = "https://openagentprotocol.eu/ns/memory#";

pub(super) const EXPORTER: Exporter = Exporter {
    form: Form::Rdf,
    layout: Layout::File { before: "", between: "", after: "" },
    write,
};

fn write(item: &Value) -> String {
    let id = iri("urn:oap:item:", item["item_id"].as_str().unwrap_or_default());
    let mut quads = Quads { graph: &id, text: String::new() };
    quads.iri(&id, &format!("{RDF}type"), &format!("<{PROV}Entity>"));
    quads.literal(&id, &format!("{OAP}kind"), item["kind"].as_str(), None);
    quads.literal(&id, &format!("{TERMS}description"), Some(&said(item)), None);
    quads.literal(&id, &format!("{OAP}scope"), item["scope_id"].as_str(), None);
    if let Some(owner) = item["owner_did"].as_str() {
        quads.iri(&id, &format!("{PROV}wasAttributedTo"), &iri("", owner));
    }
    if let Some(subject) = item["subject_entity_id"].as_str() {
        quads.iri(&id, &format!("{TERMS}subject"), &iri("urn:oap:entity:", subject));
    }
    for label in labels(item) {
        quads.literal(&id, &format!("{OAP}label"), Some(label), None);
    }
    let provenance = &item["provenance"];
    let time = Some("dateTime");
    quads.literal(&id, &format!("{PROV}generatedAtTime"), provenance["captured_at"].as_str(), time);
    if let Some(confidence) = provenance["confidence"].as_f64() {
        quads.literal(&id, &format!("{OAP}confidence"), Some(&confidence.to_string()), Some("decimal"));
    }
    if let Some(receipt) = provenance["source_receipt"].as_str() {
        quads.iri(&id, &format!("{PROV}wasGeneratedBy"), &iri("urn:oap:receipt:", receipt));
    }
    for source in item["derived_from"].as_array().into_iter().flatten().filter_map(Value::as_str) {
        quads.iri(&id, &format!("{PROV}wasDerivedFrom"), &iri("urn:oap:item:", source));
    }
    if item["content"]["structured"].is_object() {
        let structured = item["content"]["structured"].to_string();
        let json = format!("{RDF}JSON");
        quads.typed(&id, &format!("{OAP}structured"), &structured, &json);
    }
    quads.text
}

struct Quads<'a> {
    graph: &'a str,
    text: String,
}

impl Quads<'_> {
    fn iri(&mut self, subject: &str, predicate: &str, object: &str) {
        self.text.push_str(&format!("{subject} <{predicate}> {object} {} .\n", self.graph));
    }

    fn literal(&mut self, subject: &str, predicate: &str, value: Option<&str>, datatype: Option<&str>) {
        let Some(value) = value else { return };
        match datatype {
            Some(datatype) => self.typed(subject, predicate, value, &format!("{XSD}{datatype}")),
            None => self.iri(subject, predicate, &format!("\"{}\"", escape(value))),
        }
    }

    fn typed(&mut self, subject: &str, predicate: &str, value: &str, datatype: &str) {
        self.iri(subject, predicate, &format!("\"{}\"^^<{datatype}>", escape(value)));
    }
}

/// An IRI; characters that none may have are percent-encoded.
fn iri(prefix: &str, text: &str) -> String {
    let allowed = |c: char| c.is_alphanumeric() || "-._~:/?#[]@!$&'()*+,;=%".contains(c);
    let mut encoded = String::new();
    for c in text.chars() {
        if allowed(c) {
            encoded.push(c);
        } else {
            let mut buffer = [0; 4];
            c.encode_utf8(&mut buffer).bytes().for_each(|byte| encoded.push_str(&format!("%{byte:02X}")));
        }
    }
    format!("<{prefix}{encoded}>")
}

/// A literal of N-Quads.
fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\\' => escaped.push_str("\\\\"),
            '"' => escaped.push_str("\\\""),
            '\n' => escaped.push_str("\\n"),
            '\r' => escaped.push_str("\\r"),
            '\t' => escaped.push_str("\\t"),
            c if (c as u32) < 0x20 || c == '\u{7f}' => escaped.push_str(&format!("\\u{:04X}", c as u32)),
            c => escaped.push(c),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn literals_and_iris_stay_within_their_delimiters() {
        let item = json!({
            "item_id": "mem_01", "kind": "fact", "content": {"text": "a \"quote\" \\ and\na line"},
            "subject_entity_id": "Ada <script> \"x\"", "labels": ["l"], "provenance": {"confidence": 0.5},
        });
        let quads = write(&item);
        assert!(quads.contains(r#""a \"quote\" \\ and\na line""#), "{quads}");
        assert!(quads.contains("<urn:oap:entity:Ada%20%3Cscript%3E%20%22x%22>"));
        assert!(quads.lines().all(|line| line.ends_with(" <urn:oap:item:mem_01> .")));
    }
}

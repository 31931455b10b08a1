//! N-Quads, with PROV-O for where an item comes from. The graph of every quad is the item.

use super::{Exporter, Form, Layout, labels, said};
use oxrdf::vocab::{rdf, xsd};
use oxrdf::{Literal, NamedNode, NamedNodeRef, Quad, Term};
use serde_json::Value;

pub(super) const EXPORTER: Exporter =
    Exporter { form: Form::Rdf, layout: Layout::File { before: "", between: "", after: "" }, write };

const PROV: &str = "http://www.w3.org/ns/prov#";
const TERMS: &str = "http://purl.org/dc/terms/";
const OAP: &str = "https://openagentprotocol.eu/ns/memory#";
/// Of RDF 1.2; the library has it with all of that alone.
const JSON: NamedNodeRef = NamedNodeRef::new_unchecked("http://www.w3.org/1999/02/22-rdf-syntax-ns#JSON");

fn write(item: &Value) -> String {
    let mut quads = Quads {
        item: iri("urn:oap:item:", item["item_id"].as_str().unwrap_or_default()),
        text: String::new(),
    };
    quads.put(rdf::TYPE.into_owned(), Some(iri(PROV, "Entity")));
    quads.put(iri(OAP, "kind"), plain(&item["kind"]));
    quads.put(iri(TERMS, "description"), Some(Literal::from(said(item))));
    quads.put(iri(OAP, "scope"), plain(&item["scope_id"]));
    quads.put(iri(PROV, "wasAttributedTo"), named("", &item["owner_did"]));
    quads.put(iri(TERMS, "subject"), named("urn:oap:entity:", &item["subject_entity_id"]));
    for label in labels(item) {
        quads.put(iri(OAP, "label"), Some(Literal::from(label)));
    }
    let provenance = &item["provenance"];
    quads.put(iri(PROV, "generatedAtTime"), typed(provenance["captured_at"].as_str(), xsd::DATE_TIME));
    let confidence = provenance["confidence"].as_f64().map(|confidence| confidence.to_string());
    quads.put(iri(OAP, "confidence"), typed(confidence.as_deref(), xsd::DECIMAL));
    quads.put(iri(PROV, "wasGeneratedBy"), named("urn:oap:receipt:", &provenance["source_receipt"]));
    for source in item["derived_from"].as_array().into_iter().flatten() {
        quads.put(iri(PROV, "wasDerivedFrom"), named("urn:oap:item:", source));
    }
    let structured = &item["content"]["structured"];
    let structured = structured.is_object().then(|| structured.to_string());
    quads.put(iri(OAP, "structured"), typed(structured.as_deref(), JSON));
    quads.text
}

/// The quads of an item.
struct Quads {
    item: NamedNode,
    text: String,
}

impl Quads {
    /// One quad, where there is an object.
    fn put(&mut self, predicate: NamedNode, object: Option<impl Into<Term>>) {
        if let Some(object) = object {
            let quad = Quad::new(self.item.clone(), predicate, object, self.item.clone());
            self.text.push_str(&format!("{quad} .\n"));
        }
    }
}

fn plain(value: &Value) -> Option<Literal> {
    value.as_str().map(Literal::from)
}

fn typed(text: Option<&str>, datatype: NamedNodeRef) -> Option<Literal> {
    Some(Literal::new_typed_literal(text?, datatype))
}

fn named(prefix: &str, value: &Value) -> Option<NamedNode> {
    value.as_str().map(|text| iri(prefix, text))
}

/// An IRI; characters that none may have are percent-encoded.
fn iri(prefix: &str, text: &str) -> NamedNode {
    let allowed = |c: char| c.is_alphanumeric() || "-._~:/?#[]@!$&'()*+,;=%".contains(c);
    let mut encoded = prefix.to_owned();
    for c in text.chars() {
        if allowed(c) {
            encoded.push(c);
        } else {
            let mut buffer = [0; 4];
            c.encode_utf8(&mut buffer).bytes().for_each(|byte| encoded.push_str(&format!("%{byte:02X}")));
        }
    }
    NamedNode::new_unchecked(encoded)
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

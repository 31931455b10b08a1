//! The names of what is in a graph: Trails' `brain:`, PROV-O, and ours for the rest (`docs/brain.md`).

use oxiri::Iri;
use oxrdf::NamedNode;

/// Trails ADR-0051, section 1.
pub const BRAIN: &str = "https://trails.dev/ns/brain/v1#";
/// PROV-O.
pub const PROV: &str = "http://www.w3.org/ns/prov#";
/// Ours, as in the export as RDF.
pub const OAP: &str = "https://openagentprotocol.eu/ns/memory#";
/// What relates two things: the relationship of a link is the name.
pub const RELATION: &str = "https://openagentprotocol.eu/ns/relationship#";
/// SPARQL 1.1 Service Description.
pub const SERVICE: &str = "http://www.w3.org/ns/sparql-service-description#";

/// What the names of [`BRAIN`] and [`OAP`] mean, in Turtle: a copy to serve where nobody else does (TR-01).
pub const ONTOLOGY: &str = include_str!("brain.ttl");

/// The graph of what is in force, which is the default graph.
pub const CURRENT: &str = "urn:oap:brain:current";
/// The graph of what was corrected or taken back.
pub const HISTORY: &str = "urn:oap:brain:history";

/// A record whose id is no IRI.
pub const ITEM: &str = "urn:oap:item:";
/// Whoever has no DID.
pub const AGENT: &str = "urn:oap:agent:";
/// A topic.
pub const TOPIC: &str = "urn:oap:topic:";
/// A source that is no IRI.
pub const OTHER_SOURCE: &str = "urn:oap:source:";
/// The end of a link that is no IRI.
pub const OTHER: &str = "urn:oap:entity:";

/// A name of a vocabulary: `name` is one of ours.
pub(crate) fn term(vocabulary: &str, name: &str) -> NamedNode {
    NamedNode::new_unchecked(format!("{vocabulary}{name}"))
}

/// The text itself where it is an absolute IRI, and otherwise `prefix` and the text, percent-encoded.
pub(crate) fn iri_or(prefix: &str, text: &str) -> NamedNode {
    // RDF/XML and Turtle write what `oxiri` accepts; a scheme alone ("mailto:") is told from a word with a colon by nobody.
    match Iri::parse(text) {
        Ok(iri) => NamedNode::new_unchecked(iri.as_str()),
        Err(_) => encoded(prefix, text),
    }
}

/// `prefix` and the text, with everything percent-encoded but what every part of an IRI may have.
pub(crate) fn encoded(prefix: &str, text: &str) -> NamedNode {
    let mut iri = prefix.to_owned();
    for c in text.chars() {
        if c.is_ascii_alphanumeric() || matches!(c, '-' | '.' | '_' | '~') {
            iri.push(c);
        } else {
            let mut buffer = [0; 4];
            for byte in c.encode_utf8(&mut buffer).bytes() {
                iri.push_str(&format!("%{byte:02X}"));
            }
        }
    }
    NamedNode::new_unchecked(iri)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_iri_becomes_one() {
        assert_eq!(iri_or(ITEM, "https://g.example/fact/1").as_str(), "https://g.example/fact/1");
        assert_eq!(iri_or(ITEM, "mem_01").as_str(), "urn:oap:item:mem_01");
        assert_eq!(iri_or(ITEM, "a> <b").as_str(), "urn:oap:item:a%3E%20%3Cb");
        assert_eq!(encoded(TOPIC, "Über\u{0}uns").as_str(), "urn:oap:topic:%C3%9Cber%00uns");
        for text in ["", "\u{7}", "http://a b", "//x", "a\"b", "%", "x:\\", "http://[", "ex:\u{e000}"] {
            let made = iri_or(ITEM, text);
            assert!(NamedNode::new(made.as_str()).is_ok(), "{text:?} became {made}");
        }
    }
}

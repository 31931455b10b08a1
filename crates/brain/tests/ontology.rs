//! The ontology declares each name that a graph has of our vocabularies, and no other.

use oap_brain::record::{Former, Link, Target};
use oap_brain::vocabulary::{BRAIN, OAP, ONTOLOGY};
use oap_brain::{Asked, Bounds, Dataset, Graph, Outcome, Record, evaluate};
use oxrdf::Term;
use oxrdfio::{RdfFormat, RdfParser};
use std::collections::BTreeSet;

/// A record with everything that a record may have.
fn full(id: &str, retracted_at: Option<String>) -> Record {
    let said = Some("x".to_owned());
    let link = Link {
        relationship: "supports".into(),
        to: Target::Elsewhere("urn:x".into()),
        author: said.clone(),
        linked_at: said.clone(),
    };
    let former = Former {
        version: 1,
        content: "x".into(),
        author: said.clone(),
        learned_at: said.clone(),
        corrected_at: said.clone(),
    };
    Record {
        id: id.into(),
        content: said.clone(),
        topic: said.clone(),
        tags: vec!["x".into()],
        confidence: Some(0.5),
        level: said.clone(),
        author: said.clone(),
        source: said.clone(),
        learned_at: said.clone(),
        version: Some(2),
        said_at: said.clone(),
        corrections: vec![former],
        retracted_at,
        links: vec![link],
        human_verified: Some(true),
        scope: said,
    }
}

#[test]
fn every_name_is_declared_and_every_declaration_is_used() {
    let ours = |iri: &str| iri.starts_with(BRAIN) || iri.starts_with(OAP);
    let declared = RdfParser::from_format(RdfFormat::Turtle).for_slice(ONTOLOGY.as_bytes());
    let declared: BTreeSet<String> =
        declared.map(|quad| quad.unwrap().subject.to_string().replace(['<', '>'], "")).collect();
    let graph = Graph::of(&[full("a", None), full("b", Some("2026-11-01T00:00:00Z".into()))]).unwrap();
    let query = "SELECT DISTINCT ?x { { ?s ?x ?o } UNION { ?s a ?x } UNION { GRAPH ?g { { ?s ?x ?o } UNION { ?s a ?x } } } }";
    let asked = Asked::read(query, "").unwrap();
    let found = evaluate(&graph, &asked, &Dataset::default(), &Bounds::until(|| false)).unwrap();
    let Outcome::Solutions(_, rows) = found.outcome else { panic!() };
    let used = rows.into_iter().flatten().flatten().filter_map(|term| match term {
        Term::NamedNode(node) if ours(node.as_str()) => Some(node.into_string()),
        _ => None,
    });
    assert_eq!(used.collect::<BTreeSet<String>>(), declared);
}

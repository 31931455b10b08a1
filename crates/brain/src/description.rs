//! What the service says of itself (SPARQL 1.1 Service Description). It says the same to everybody: nothing in it depends on what is
//! remembered.

use crate::evaluate::Outcome;
use crate::vocabulary::{CURRENT, HISTORY, SERVICE, term};
use oxrdf::vocab::rdf;
use oxrdf::{BlankNode, NamedNode, NamedOrBlankNode, Term, Triple};

/// The formats that are offered, by their IRIs of the W3C.
const FORMATS: [&str; 7] = [
    "SPARQL_Results_JSON",
    "SPARQL_Results_XML",
    "SPARQL_Results_CSV",
    "SPARQL_Results_TSV",
    "Turtle",
    "N-Triples",
    "RDF_XML",
];

/// The description of the service at this address.
pub fn description(endpoint: &NamedNode) -> Outcome {
    let mut triples = Vec::new();
    let mut put = |subject: &NamedOrBlankNode, predicate: NamedNode, object: Term| {
        triples.push(Triple::new(subject.clone(), predicate, object));
    };
    let sd = |name| term(SERVICE, name);
    let named = |iri: &str| Term::from(NamedNode::new_unchecked(iri));
    let service = NamedOrBlankNode::from(endpoint.clone());
    put(&service, rdf::TYPE.into_owned(), sd("Service").into());
    put(&service, sd("endpoint"), endpoint.clone().into());
    put(&service, sd("supportedLanguage"), sd("SPARQL11Query").into());
    for format in FORMATS {
        put(&service, sd("resultFormat"), named(&format!("http://www.w3.org/ns/formats/{format}")));
    }
    let node = |name| NamedOrBlankNode::from(BlankNode::new_unchecked(name));
    let (dataset, default, history) = (node("dataset"), node("default"), node("history"));
    put(&service, sd("defaultDataset"), dataset.clone().into());
    put(&dataset, rdf::TYPE.into_owned(), sd("Dataset").into());
    put(&dataset, sd("defaultGraph"), default.clone().into());
    put(&default, rdf::TYPE.into_owned(), sd("Graph").into());
    put(&dataset, sd("namedGraph"), history.clone().into());
    put(&history, rdf::TYPE.into_owned(), sd("NamedGraph").into());
    put(&history, sd("name"), named(HISTORY));
    put(&default, term("http://purl.org/dc/terms/", "identifier"), oxrdf::Literal::from(CURRENT).into());
    Outcome::Triples(triples)
}

//! The query side of the W3C's tests of the SPARQL 1.1 Protocol (`w3c/rdf-tests`, `sparql/sparql11/protocol/manifest.ttl`), as far as they
//! are about what a request says. The graphs of the tests are sources here: what was learned from an address is the graph of that name.

use oap_brain::error::Sort;
use oap_brain::{Answer, Bounds, Error, Graph, Record, Request, Setting, respond};

const DATA: &str = "http://kasei.us/2009/09/sparql/data/data";
const FORM: Option<&str> = Some("application/x-www-form-urlencoded");
const DIRECT: Option<&str> = Some("application/sparql-query");
const BOOLEAN: &str = "application/sparql-results+json";

fn sources() -> Graph {
    let learned = |number: u32| Record {
        id: format!("mem_{number}"),
        source: Some(format!("{DATA}{number}.rdf")),
        version: Some(1),
        ..Record::default()
    };
    Graph::of(&[1, 2, 3].map(learned)).unwrap()
}

fn ask(method: &str, parameters: &str, content_type: Option<&str>, body: &[u8]) -> Result<Answer, Error> {
    let request = Request { method, parameters, content_type, body };
    let bounds = Bounds::until(|| false);
    let setting =
        Setting { endpoint: "https://g.example/sparql", now: "2026-11-23T08:00:00Z", bounds: &bounds };
    respond(&sources(), &request, None, &setting)
}

fn encoded(parameters: &[(&str, &str)]) -> String {
    form_urlencoded::Serializer::new(String::new()).extend_pairs(parameters).finish()
}

fn data(number: u32) -> String {
    format!("{DATA}{number}.rdf")
}

fn yes(answer: Result<Answer, Error>) {
    let answer = answer.unwrap();
    assert_eq!(answer.media_type, BOOLEAN);
    assert_eq!(String::from_utf8(answer.body).unwrap(), r#"{"head":{},"boolean":true}"#);
}

const BOTH: &str = "ASK { <http://kasei.us/2009/09/sparql/data/data1.rdf> a ?type . <http://kasei.us/2009/09/sparql/data/data2.rdf> a ?type . }";
const NAMED: &str = "{ GRAPH ?g1 { <http://kasei.us/2009/09/sparql/data/data1.rdf> a ?type } GRAPH ?g2 { <http://kasei.us/2009/09/sparql/data/data2.rdf> a ?type } }";

#[test]
fn a_query_comes_by_get_by_form_and_directly() {
    let graph = encoded(&[("default-graph-uri", &data(0))]);
    yes(ask("POST", &graph, FORM, b"query=ASK%20%7B%7D"));
    yes(ask("GET", &format!("query=ASK%20%7B%7D&{graph}"), None, b""));
    yes(ask("POST", "", DIRECT, b"ASK {}"));
    yes(ask("POST", "", Some("application/sparql-query; charset=UTF-8"), b"ASK {}"));
    // Clients send more than they need to.
    yes(ask("GET", "format=json&query=ASK%20%7B%7D&output=json&results=json", None, b""));
}

#[test]
fn the_dataset_of_the_request_is_asked() {
    let default = [("default-graph-uri", data(1)), ("default-graph-uri", data(2))];
    let default = default.each_ref().map(|(name, graph)| (*name, graph.as_str()));
    let named = [("named-graph-uri", data(1)), ("named-graph-uri", data(2))];
    let named = named.each_ref().map(|(name, graph)| (*name, graph.as_str()));
    // query_dataset_default_graphs_get, _post
    yes(ask("GET", &format!("{}&{}", encoded(&[("query", BOTH)]), encoded(&default)), None, b""));
    yes(ask("POST", &encoded(&default), DIRECT, BOTH.as_bytes()));
    // query_dataset_named_graphs_post, _get
    let query = format!("ASK {NAMED}");
    yes(ask("POST", &encoded(&named), DIRECT, query.as_bytes()));
    yes(ask("GET", &format!("{}&{}", encoded(&[("query", &query)]), encoded(&named)), None, b""));
    // query_dataset_full
    let query = "ASK { <http://kasei.us/2009/09/sparql/data/data3.rdf> a ?type . \
        GRAPH ?g1 { <http://kasei.us/2009/09/sparql/data/data1.rdf> a ?type } \
        GRAPH ?g2 { <http://kasei.us/2009/09/sparql/data/data2.rdf> a ?type } }";
    let all = format!("{}&{}", encoded(&[("default-graph-uri", &data(3))]), encoded(&named));
    yes(ask("POST", &all, DIRECT, query.as_bytes()));
    // query_multiple_dataset: that of the request goes before that of the query.
    let query = format!("ASK FROM <{}> {NAMED}", data(3));
    yes(ask("POST", &encoded(&named), DIRECT, query.as_bytes()));
    // Without one in the request it would have to be fetched.
    assert_eq!(ask("POST", "", DIRECT, query.as_bytes()), Err(Error::Fetch(data(3))));
}

#[test]
fn what_is_not_chosen_is_not_seen() {
    let no = |answer: Result<Answer, Error>| assert!(answer.unwrap().body.ends_with(b"false}"));
    no(ask("POST", &encoded(&[("default-graph-uri", &data(1))]), DIRECT, BOTH.as_bytes()));
    no(ask(
        "POST",
        &encoded(&[("default-graph-uri", "http://nowhere.example/")]),
        DIRECT,
        b"ASK { ?s ?p ?o }",
    ));
    no(ask("POST", &encoded(&[("named-graph-uri", &data(1))]), DIRECT, b"ASK { ?s ?p ?o }"));
    no(ask("POST", &encoded(&[("default-graph-uri", &data(1))]), DIRECT, b"ASK { GRAPH ?g { ?s ?p ?o } }"));
    yes(ask(
        "POST",
        &encoded(&[("named-graph-uri", "urn:oap:brain:current")]),
        DIRECT,
        b"ASK { GRAPH ?g { ?s ?p ?o } }",
    ));
}

#[test]
fn an_answer_has_the_type_of_its_form() {
    let given = |query: &[u8]| ask("POST", "", DIRECT, query).unwrap().media_type;
    assert_eq!(given(b"SELECT (1 AS ?value) {}"), "application/sparql-results+json");
    assert_eq!(given(b"ASK {}"), "application/sparql-results+json");
    assert_eq!(given(b"DESCRIBE <http://example.org/>"), "text/turtle");
    assert_eq!(given(b"CONSTRUCT { <s> <p> 1 } WHERE {}"), "text/turtle");
}

/// Method, parameters, content type and body of a request, and why it is refused.
type Bad<'a> = (&'a str, &'a str, Option<&'a str>, &'a [u8], Error);

#[test]
fn bad_requests_are_refused_for_what_they_are() {
    let cases: [Bad<'_>; 12] = [
        ("PUT", "query=ASK%20%7B%7D", FORM, b"", Error::Method),
        ("GET", "query=ASK%20%7B%7D&query=SELECT%20%2A%20%7B%7D", None, b"", Error::ManyQueries),
        ("POST", "query=ASK%20%7B%7D", DIRECT, b"ASK {}", Error::ManyQueries),
        ("POST", "", Some("text/plain"), b"ASK {}", Error::MediaType),
        ("POST", "", None, b"query=ASK%20%7B%7D", Error::MediaType),
        ("POST", "", None, b"ASK {}", Error::MediaType),
        ("POST", "", Some("application/sparql-query; charset=UTF-16"), b"\xfe\xff\0A\0S\0K", Error::NotUtf8),
        ("POST", "", DIRECT, b"ASK { \xff }", Error::NotUtf8),
        ("POST", "", FORM, b"", Error::NoQuery),
        ("GET", "query=ASK%7B%7D&default-graph-uri=nowhere", None, b"", Error::NoIri),
        ("GET", "query=ASK%7B%7D&as_of=2026-01-01T00:00:00Z", None, b"", Error::AsOf),
        ("POST", "", FORM, b"query=ASK%7B%7D&as_of=2026-01-01T00:00:00Z", Error::AsOf),
    ];
    for (method, parameters, content_type, body, expected) in cases {
        assert_eq!(
            ask(method, parameters, content_type, body),
            Err(expected),
            "{method} {parameters} {content_type:?}"
        );
    }
    let syntax = ask("GET", "query=ASK%20%7B", None, b"").unwrap_err();
    assert!(matches!(syntax, Error::Syntax(_)) && syntax.sort() == Sort::Wrong, "{syntax}");
}

#[test]
fn updates_are_refused_however_they_come() {
    for (content_type, body) in [
        (FORM, "update=CLEAR%20ALL"),
        (FORM, "query=CLEAR%20ALL"),
        (Some("application/sparql-update"), "CLEAR ALL"),
        (DIRECT, "DROP ALL"),
        (DIRECT, "PREFIX ex: <http://example.org/> INSERT DATA { ex:s ex:p ex:o }"),
        (DIRECT, "DELETE WHERE { ?s ?p ?o }"),
        (DIRECT, "LOAD <http://169.254.169.254/>"),
    ] {
        assert_eq!(ask("POST", "", content_type, body.as_bytes()), Err(Error::Update), "{body}");
    }
    assert_eq!(ask("GET", "update=CLEAR%20ALL", None, b""), Err(Error::Update));
    for (parameters, content_type, body) in [("", DIRECT, "\n"), ("", FORM, "query="), ("query=", FORM, "")] {
        assert_eq!(ask("POST", parameters, content_type, body.as_bytes()), Err(Error::NoQuery));
    }
}

#[test]
fn a_get_without_a_query_tells_what_the_service_is() {
    let described = ask("GET", "", None, b"").unwrap();
    assert_eq!(described.media_type, "text/turtle");
    let turtle = String::from_utf8(described.body).unwrap();
    for said in [
        "sparql-service-description#Service>",
        "#endpoint> <https://g.example/sparql>",
        "formats/SPARQL_Results_JSON>",
    ] {
        assert!(turtle.contains(said), "{turtle}");
    }
}

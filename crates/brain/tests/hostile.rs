//! Texts that were chosen to break out: each comes back from every format as it went in, or as XML can hold it.

use oap_brain::accept::Format;
use oap_brain::record::{Former, Link, Target};
use oap_brain::{Asked, Bounds, Dataset, Graph, Outcome, Record, evaluate};
use oxrdf::{Term, Triple};
use oxrdfio::{RdfFormat, RdfParser};
use proptest::prelude::*;
use sparesults::{QueryResultsFormat, QueryResultsParser, SliceQueryResultsParserOutput};
use std::collections::BTreeSet;

const TEXTS: [&str; 16] = [
    "\" . <urn:x> <urn:y> <urn:z> . \"",
    "'''\"\"\"\\",
    "\\u0022 \\\" \\n",
    "line\nbreak\r\nand\ttab",
    "\u{0}\u{1}\u{8}\u{b}\u{c}\u{1f}\u{7f}",
    "\u{85}\u{2028}\u{2029}\u{feff}\u{fffe}\u{ffff}",
    "</literal></binding></result><result>",
    "]]> <!-- --> <?xml?> &amp; &lt; &#0;",
    "=HYPERLINK(\"http://evil.example\"),+1,-1,@x",
    "a,b\tc\r\n\"d\"",
    "\u{202e}right to left",
    "e\u{301} é 漢字 🦀",
    "{\"head\":{}}",
    "<memory-item>",
    "",
    " ",
];

const NO_IRIS: [&str; 10] =
    ["", " ", "a b", "<x>", "\"", "http://a b", "x\u{0}y", "javascript:alert(1)", "//x", "http://[::1"];

/// An IRI that CSV has to quote.
const COMMA: &str = "https://page.example/a,b";

fn hostile(text: &str, iri: &str) -> Record {
    Record {
        id: format!("{iri}1"),
        content: Some(text.to_owned()),
        topic: Some(text.to_owned()),
        tags: vec![text.to_owned(), iri.to_owned()],
        confidence: Some(f64::NAN),
        level: Some(text.to_owned()),
        author: Some(iri.to_owned()),
        source: Some(iri.to_owned()),
        learned_at: Some(text.to_owned()),
        version: Some(2),
        said_at: Some(text.to_owned()),
        corrections: vec![Former { version: 1, content: text.to_owned(), ..Former::default() }],
        retracted_at: None,
        links: vec![
            Link {
                relationship: text.to_owned(),
                to: Target::Elsewhere(iri.to_owned()),
                author: None,
                linked_at: None,
            },
            Link {
                relationship: "1:.-".into(),
                to: Target::Elsewhere("urn:x".into()),
                author: Some(text.into()),
                linked_at: None,
            },
        ],
        human_verified: Some(false),
        scope: Some(text.to_owned()),
    }
}

fn ask(graph: &Graph, query: &str) -> Outcome {
    let asked = Asked::read(query, "2026-11-23T08:00:00Z").unwrap();
    evaluate(graph, &asked, &Dataset::default(), &Bounds::until(|| false)).unwrap().outcome
}

/// As XML can hold it.
fn xml(term: &Term) -> Term {
    let Term::Literal(literal) = term else { return term.clone() };
    let never = |c: char| (c < ' ' && !"\t\n\r".contains(c)) || "\u{fffe}\u{ffff}".contains(c);
    oxrdf::Literal::new_typed_literal(literal.value().replace(never, "\u{fffd}"), literal.datatype()).into()
}

fn comes_back(record: &Record) {
    let graph = Graph::of([record]).unwrap();
    let everything = "{ { ?s ?p ?o } UNION { GRAPH ?g { ?s ?p ?o } } }";

    let found = ask(&graph, &format!("SELECT ?s ?p ?o {everything}"));
    let Outcome::Solutions(_, rows) = &found else { panic!() };
    for format in [QueryResultsFormat::Json, QueryResultsFormat::Xml, QueryResultsFormat::Tsv] {
        let bytes = oap_brain::write::write(&found, Format::Results(format), 1 << 20).unwrap();
        let parsed = QueryResultsParser::from_format(format).for_slice(&bytes);
        let Ok(SliceQueryResultsParserOutput::Solutions(parsed)) = parsed else { panic!("{format:?}") };
        let parsed: Vec<Vec<Option<Term>>> = parsed
            .map(|row| row.map(|row| row.values().to_vec()).unwrap_or_else(|e| panic!("{format:?}: {e}")))
            .collect();
        assert_eq!(parsed.len(), rows.len(), "{format:?}");
        for (row, parsed) in rows.iter().zip(&parsed) {
            for (term, parsed) in row.iter().flatten().zip(parsed.iter().flatten()) {
                match format {
                    QueryResultsFormat::Xml => assert_eq!(&xml(term), parsed),
                    _ => assert_eq!(term, parsed, "{format:?}"),
                }
            }
        }
    }
    // CSV has no types, but as many fields as there are.
    let bytes = oap_brain::write::write(&found, Format::Results(QueryResultsFormat::Csv), 1 << 20).unwrap();
    assert_eq!(fields(std::str::from_utf8(&bytes).unwrap()), 3 * (rows.len() + 1));

    let found = ask(&graph, &format!("CONSTRUCT {{ ?s ?p ?o }} {everything}"));
    let Outcome::Triples(triples) = &found else { panic!() };
    for format in [RdfFormat::Turtle, RdfFormat::NTriples, RdfFormat::RdfXml] {
        let bytes = oap_brain::write::write(&found, Format::Rdf(format), 1 << 20).unwrap();
        let parsed = RdfParser::from_format(format).for_slice(&bytes);
        let parsed: BTreeSet<String> = parsed
            .map(|quad| {
                quad.unwrap_or_else(|e| panic!("{format:?}: {e}: {}", String::from_utf8_lossy(&bytes)))
            })
            .map(|quad| Triple::new(quad.subject, quad.predicate, quad.object).to_string())
            .collect();
        let as_is = |triple: &Triple| match format {
            RdfFormat::RdfXml => {
                Triple::new(triple.subject.clone(), triple.predicate.clone(), xml(&triple.object))
            }
            _ => triple.clone(),
        };
        let expected: BTreeSet<String> = triples.iter().map(|triple| as_is(triple).to_string()).collect();
        assert_eq!(parsed, expected, "{format:?}");
    }
}

/// The fields of a CSV text (RFC 4180).
fn fields(text: &str) -> usize {
    let (mut fields, mut quoted) = (0, false);
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        match c {
            '"' => quoted = !quoted,
            ',' if !quoted => fields += 1,
            '\r' if !quoted && rest.starts_with("\r\n") => fields += 1,
            _ => {}
        }
        rest = &rest[c.len_utf8()..];
    }
    assert!(!quoted);
    fields
}

#[test]
fn what_was_chosen_to_break_out_comes_back() {
    for text in TEXTS {
        for iri in NO_IRIS {
            comes_back(&hostile(text, iri));
        }
        comes_back(&hostile(text, COMMA));
    }
}

#[test]
fn a_text_is_found_by_itself_and_never_read_as_a_query() {
    for text in TEXTS {
        let graph = Graph::of(&[hostile(text, "mem_")]).unwrap();
        let literal = oxrdf::Literal::from(text).to_string();
        assert_eq!(
            ask(&graph, &format!("ASK {{ ?f brain:content {literal} }}")),
            Outcome::Boolean(true),
            "{literal}"
        );
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, cases: 128, ..Default::default() })]

    #[test]
    fn anything_comes_back(text in any::<String>(), iri in any::<String>()) {
        comes_back(&hostile(&text, &iri));
    }

    #[test]
    fn no_query_breaks_the_reader(query in any::<String>()) {
        let _ = Asked::read(&query, "");
    }

    #[test]
    fn no_pieces_of_queries_break_the_reader(pieces in prop::collection::vec(prop::sample::select(vec![
        "SELECT ", "ASK ", "CONSTRUCT ", "DESCRIBE ", "* ", "?x ", "{ ", "} ", "( ", ") ", "[ ", "] ", ". ", "; ", ", ", "FILTER", "EXISTS ",
        "OPTIONAL ", "UNION ", "MINUS ", "GRAPH ", "VALUES ", "BIND", "AS ", "GROUP BY ", "COUNT", "<urn:a> ", "\"a\" ", "'", "1 ", "+ ",
        "/ ", "| ", "^ ", "! ", "= ", "LIMIT 1 ", "ORDER BY ", "UNDEF ", "SERVICE ", "FROM ", "#", "\n", "rel:a ", "REGEX", "REPLACE",
    ]), 0..40)) {
        if let Ok(asked) = Asked::read(&pieces.concat(), "") {
            let graph = Graph::of(&[hostile("x", "mem_")]).unwrap();
            let _ = evaluate(&graph, &asked, &Dataset::default(), &Bounds { steps: 100_000, ..Bounds::until(|| false) });
        }
    }
}

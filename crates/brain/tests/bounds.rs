//! Every bound holds, and whatever a query costs is counted.

use oap_brain::bounds::{
    MAX_JOINTS, MAX_NESTING, MAX_PATTERN, MAX_PATTERNS, MAX_QUERY, MAX_ROWS, MAX_VARIABLES,
};
use oap_brain::record::{Link, Target};
use oap_brain::{Asked, Bounds, Dataset, Error, Graph, Outcome, Record, evaluate};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

const NOW: &str = "2026-11-23T08:00:00Z";

fn records(count: usize) -> Vec<Record> {
    let link = |to: usize| Link {
        relationship: "a".into(),
        to: Target::Record(format!("mem_{to}")),
        author: None,
        linked_at: None,
    };
    let record = |number: usize| Record {
        id: format!("mem_{number}"),
        content: Some(format!("fact number {number}")),
        source: Some("https://s.example/".into()),
        version: Some(1),
        links: vec![link((number + 1) % count), link((number * 7 + 3) % count)],
        ..Record::default()
    };
    (0..count).map(record).collect()
}

fn graph(count: usize) -> Graph {
    Graph::of(&records(count)).unwrap()
}

fn ask(graph: &Graph, query: &str, bounds: &Bounds) -> Result<Outcome, Error> {
    let asked = Asked::read(query, NOW)?;
    Ok(evaluate(graph, &asked, &Dataset::default(), bounds)?.outcome)
}

fn refused(query: &str) -> Error {
    Asked::read(query, NOW).map(|_| ()).expect_err(query)
}

/// Bounds whose time is over when it was looked at so often.
fn looks(most: usize) -> Bounds {
    let looked = Arc::new(AtomicUsize::new(0));
    Bounds::until(move || looked.fetch_add(1, Ordering::Relaxed) >= most)
}

/// Queries that would run for ever over any graph, one for each way in which solutions are made.
const ENDLESS: [&str; 14] = [
    "SELECT (COUNT(*) AS ?n) { ?a ?b ?c . ?d ?e ?f . ?g ?h ?i . ?j ?k ?l }",
    "ASK { ?a ?b ?c . ?d ?e ?f . ?g ?h ?i . ?j ?k ?l FILTER(STRLEN(CONCAT(STR(?c), STR(?f), STR(?i), STR(?l))) = 1) }",
    "SELECT (COUNT(*) AS ?n) { { SELECT ?v { ?s ?p ?o } } { SELECT ?w { ?s ?p ?o } } { SELECT ?x { ?s ?p ?o } } { SELECT ?y { ?s ?p ?o } } }",
    "SELECT ?n { ?s ?p ?o FILTER EXISTS { { SELECT ?v { ?s1 ?p1 ?o1 } } { SELECT ?w { ?s2 ?p2 ?o2 } } { SELECT ?x { ?s3 ?p3 ?o3 } } { SELECT ?y { ?s4 ?p4 ?o4 } } FILTER(COALESCE(?v, ?y, ?s) = 1) } }",
    "SELECT * { ?a ?b ?c . ?d ?e ?f . ?g ?h ?i . ?j ?k ?l } ORDER BY ?a ?l",
    "SELECT DISTINCT ?z { ?a ?b ?c . ?d ?e ?f . ?g ?h ?i . ?j ?k ?l }",
    "SELECT (MAX(?c) AS ?n) { ?a ?b ?c . ?d ?e ?f . ?g ?h ?i . ?j ?k ?l } GROUP BY ?z",
    "SELECT * { ?a ?b ?c . ?d ?e ?f . ?g ?h ?i . ?j ?k ?l } OFFSET 1000000000000 LIMIT 1",
    "CONSTRUCT { <urn:a> <urn:b> <urn:c> } WHERE { ?a ?b ?c . ?d ?e ?f . ?g ?h ?i . ?j ?k ?l }",
    "SELECT (COUNT(*) AS ?n) { ?s ?p ?o OPTIONAL { ?a ?b ?c } OPTIONAL { ?d ?e ?f } OPTIONAL { ?g ?h ?i } }",
    "SELECT (COUNT(*) AS ?n) { ?a ?b ?c . ?d ?e ?f . ?g ?h ?i MINUS { ?a ?x ?y . ?v ?w ?u } }",
    "SELECT (COUNT(*) AS ?n) { ?a (rel:a|rel:b)* ?b . ?c (rel:a|^rel:a)* ?d . ?e (!rel:z)* ?f }",
    "SELECT (COUNT(*) AS ?n) { GRAPH ?g { ?s ?p ?o } { ?a ?b ?c } { ?d ?e ?f } { ?h ?i ?j } }",
    "DESCRIBE ?a { ?a ?b ?c . ?d ?e ?f . ?g ?h ?i . ?j ?k ?l }",
];

/// The same, without a single triple.
fn endless_without_triples() -> Vec<String> {
    let empties = |one: &str| [one].repeat(12).join(" ");
    let undefined = format!("VALUES ?x {{ {} }}", "UNDEF ".repeat(20));
    let nothing = format!("VALUES () {{ {} }}", "() ".repeat(20));
    let numbers = |name: usize| format!("VALUES ?v{name} {{ {} }}", "1 2 3 4 5 6 7 8 9 0 ".repeat(2));
    let numbers = (0..12).map(numbers).collect::<Vec<_>>().join(" ");
    let union = ["{}"; 20].join(" UNION ");
    let selects = format!("{{ SELECT ?u {{ {undefined} }} }}");
    [empties(&undefined), empties(&nothing), numbers, empties(&format!("{{ {union} }}")), empties(&selects)]
        .iter()
        .map(|pattern| format!("SELECT (COUNT(*) AS ?n) {{ {pattern} }}"))
        .collect()
}

#[test]
fn the_end_of_the_time_ends_every_query() {
    let graph = graph(300);
    let without = endless_without_triples();
    for query in ENDLESS.iter().copied().chain(without.iter().map(String::as_str)) {
        // Who holds too much is stopped before.
        let answer = ask(&graph, query, &looks(200));
        assert!(matches!(answer, Err(Error::Time | Error::Held)), "{answer:?}: {query}");
    }
}

#[test]
fn the_last_step_ends_every_query() {
    let graph = graph(300);
    let bounds = Bounds { steps: 300_000, ..Bounds::until(|| false) };
    let without = endless_without_triples();
    for query in ENDLESS.iter().copied().chain(without.iter().map(String::as_str)) {
        assert_eq!(ask(&graph, query, &bounds), Err(Error::Steps), "{query}");
    }
}

#[test]
fn no_more_is_held_than_may_be() {
    let graph = graph(300);
    let bounds = Bounds { held: 4 << 20, ..Bounds::until(|| false) };
    for query in
        ["SELECT * { ?a ?b ?c . ?d ?e ?f } ORDER BY ?a ?f", "SELECT DISTINCT ?a ?d { ?a ?b ?c . ?d ?e ?f }"]
    {
        assert_eq!(ask(&graph, query, &bounds), Err(Error::Held), "{query}");
    }
    assert!(ask(&graph, "SELECT * { ?a brain:content ?c } ORDER BY ?c", &bounds).is_ok());
}

#[test]
fn rows_and_bytes_of_an_answer_have_a_bound() {
    let graph = graph(300);
    let all = "SELECT ?s ?p ?o { ?s ?p ?o }";
    let bounds = Bounds { rows: 10, ..Bounds::until(|| false) };
    assert_eq!(ask(&graph, all, &bounds), Err(Error::Rows(10)));
    assert_eq!(ask(&graph, "CONSTRUCT WHERE { ?s ?p ?o }", &bounds), Err(Error::Rows(10)));
    assert!(ask(&graph, &format!("{all} LIMIT 10"), &bounds).is_ok());
    let bounds = Bounds { answer: 100, ..Bounds::until(|| false) };
    assert_eq!(ask(&graph, all, &bounds), Err(Error::Answer(100)));
    // Nobody is given more than the room allows.
    let bounds = Bounds { rows: usize::MAX, ..Bounds::until(|| false) };
    assert_eq!(ask(&graph, "SELECT ?s ?t { ?s ?p ?o . ?t ?q ?r }", &bounds), Err(Error::Rows(MAX_ROWS)));
}

#[test]
fn no_text_grows_without_a_bound() {
    let graph = graph(300);
    let bounds = Bounds::until(|| false);
    let doubled = |with: &str| {
        let steps: Vec<String> = (0..30)
            .map(|at| with.replace("NEXT", &format!("?x{}", at + 1)).replace("LAST", &format!("?x{at}")))
            .collect();
        format!("SELECT ?x30 {{ BIND(\"ab\" AS ?x0) {} }}", steps.join(" "))
    };
    for query in [
        doubled("BIND(CONCAT(LAST, LAST) AS NEXT)"),
        doubled("BIND(REPLACE(LAST, \"[ab]\", \"abab\") AS NEXT)"),
        doubled("BIND(REPLACE(LAST, \"^(.*)$\", \"$1$1\", \"s\") AS NEXT)"),
        doubled("BIND(REPLACE(LAST, \"\", LAST) AS NEXT)"),
        "SELECT (GROUP_CONCAT(?o ; SEPARATOR=\"\") AS ?n) { ?s brain:content ?o . ?t brain:content ?p }".to_owned(),
        "SELECT ?s (GROUP_CONCAT(?o) AS ?n) { ?s a ?c . ?t brain:content ?o . ?u a brain:Fact } GROUP BY ?s ?u".to_owned(),
    ] {
        assert_eq!(ask(&graph, &query, &bounds), Err(Error::Value), "{query}");
    }
}

#[test]
fn our_own_functions_are_those_of_sparql() {
    let graph = graph(2);
    let value = |expression: &str| {
        let found =
            ask(&graph, &format!("SELECT (({expression}) AS ?x) {{}}"), &Bounds::until(|| false)).unwrap();
        let Outcome::Solutions(_, rows) = found else { panic!("{expression}") };
        rows[0][0].as_ref().map(ToString::to_string)
    };
    for (expression, expected) in [
        ("CONCAT(\"a\", \"b\")", Some("\"ab\"")),
        ("CONCAT(\"a\"@en, \"b\"@en)", Some("\"ab\"@en")),
        ("CONCAT(\"a\"@en, \"b\")", Some("\"ab\"")),
        ("CONCAT(\"a\", 1)", None),
        ("CONCAT()", Some("\"\"")),
        ("REPLACE(\"abcd\", \"b\", \"Z\")", Some("\"aZcd\"")),
        ("REPLACE(\"abab\"@en, \"B\", \"Z\", \"i\")", Some("\"aZaZ\"@en")),
        ("REPLACE(\"a.c\", \".\", \"-\", \"q\")", Some("\"a-c\"")),
        ("REPLACE(\"abcd\", \"(b)(c)\", \"$2$1\")", Some("\"acbd\"")),
        ("REPLACE(1, \"1\", \"2\")", None),
        ("REGEX(\"Tea\", \"^t\", \"i\")", Some("\"true\"^^<http://www.w3.org/2001/XMLSchema#boolean>")),
        ("NOW()", Some("\"2026-11-23T08:00:00Z\"^^<http://www.w3.org/2001/XMLSchema#dateTime>")),
        ("xsd:integer(\"7\")", Some("\"7\"^^<http://www.w3.org/2001/XMLSchema#integer>")),
    ] {
        assert_eq!(value(expression).as_deref(), expected, "{expression}");
    }
    let query = "SELECT (GROUP_CONCAT(?c ; SEPARATOR=\"|\") AS ?x) { { SELECT ?c { ?f brain:content ?c } ORDER BY ?c } }";
    let Ok(Outcome::Solutions(_, rows)) = ask(&graph, query, &Bounds::until(|| false)) else { panic!() };
    assert_eq!(rows[0][0].as_ref().unwrap().to_string(), "\"fact number 0|fact number 1\"");
}

#[test]
fn a_query_has_a_length_a_depth_and_joints() {
    assert_eq!(refused(&"a".repeat(MAX_QUERY + 1)), Error::Long);
    let nested = |open: &str, close: &str, within: &str, depth: usize| {
        format!("ASK {{ {}{within}{} }}", open.repeat(depth), close.repeat(depth))
    };
    assert_eq!(refused(&nested("{", "}", "?s ?p ?o", MAX_NESTING)), Error::Deep);
    assert_eq!(refused(&format!("ASK {{ FILTER({}1) }}", "!".repeat(MAX_JOINTS + 1))), Error::Complex);
    assert_eq!(refused(&format!("ASK {{ {} }}", "?s ?p ?o .".repeat(MAX_JOINTS + 1))), Error::Complex);
    for one in [
        "?s ?p ?o . ",
        "?s ?p* ?o . ".replace("?p", "rel:a").as_str(),
        "VALUES ?x { 1 } ",
        "{ SELECT * { ?s ?p ?o } } ",
    ] {
        assert_eq!(
            refused(&format!("ASK {{ {} }}", one.repeat(MAX_PATTERNS + 1))),
            Error::ManyPatterns,
            "{one}"
        );
    }
    let many: String = (0..=MAX_VARIABLES).map(|at| format!("?v{at} ")).collect();
    assert_eq!(refused(&format!("SELECT {many} {{}}")), Error::ManyVariables);
}

/// What is as deep and as many-jointed as it may be is answered, on a thread as small as those of the tests and of the gateway.
#[test]
fn a_query_at_its_bounds_is_answered() {
    let graph = graph(3);
    let bounds = looks(20_000);
    let joints = MAX_JOINTS - 10;
    let chain = |first: &str, more: &str, each: usize| format!("{first}{}", more.repeat(joints / each));
    let queries = [
        format!("ASK {{ FILTER({} > 0) }}", chain("1", "+1", 1)),
        format!("ASK {{ FILTER({}) }}", chain("true", "&&true", 2)),
        format!("ASK {{ FILTER({}) }}", chain("true", "||true", 2)),
        format!("ASK {{ FILTER({}) }}", chain("1=1", "||1=1", 3)),
        format!("ASK {{ ?s {} ?o }}", chain("rel:a", "/rel:a", 1)),
        format!("ASK {{ ?s ({})* ?o }}", chain("rel:a", "|rel:b", 1)),
        format!("ASK {{ {} }}", chain("{ ?s rel:z ?o }", " UNION { ?s rel:z ?o }", 1)),
        format!("ASK {{ {} }}", chain("?s a ?o", " OPTIONAL { ?s a ?o }", 1)),
        format!("ASK {{ {} }}", chain("?s rel:z ?o", " MINUS { ?s a ?o }", 1)),
        format!("ASK {{ {} }}", chain("?s rel:z ?o", ". ?s rel:z ?o", 1)),
        format!("ASK {{ {} }}", chain("?s a ?o", " FILTER(true)", 1)),
        format!("ASK {{ ?s ?p ?o {} }}", chain("", " FILTER EXISTS {?s ?p ?o}", 2)),
        format!("ASK {{ ?s a {} }}", chain("?o", ", ?o", 1)),
        format!("ASK {{ ?s ?p ?o FILTER(?o IN ({})) }}", chain("1", ",1", 1)),
        format!("ASK {{ {} }}", chain("", "{} ", 1)),
        // As many as may be joined.
        format!("ASK {{ {} }}", "?s rel:z ?o .".repeat(MAX_PATTERNS)),
        format!("ASK {{ {} }}", "{ ?s rel:z ?o }".repeat(MAX_PATTERNS)),
        format!("ASK {{ {} }}", "VALUES ?x { 1 }".repeat(MAX_PATTERNS)),
        format!("ASK {{ {} }}", "OPTIONAL { ?s rel:z ?o }".repeat(MAX_PATTERNS)),
        format!("ASK {{ {} }}", "MINUS { ?s rel:z ?o }".repeat(MAX_PATTERNS)),
        format!("ASK {{ {} }}", "{ SELECT ?s { ?s rel:z ?o } }".repeat(MAX_PATTERNS)),
        format!("ASK {{ {} {{}} }}", "{ ?s rel:z ?o } UNION ".repeat(MAX_PATTERNS)),
        format!("ASK {{ ?s ?p ?o {} }}", "FILTER EXISTS { ?s rel:z ?o }".repeat(MAX_PATTERNS - 1)),
        format!("SELECT (COUNT(*) AS ?n) {{}} GROUP BY {}", chain("?x", " ?x", 1)),
        format!("ASK {{ {} }}", chain("VALUES ?x { 1 }", " VALUES ?x { 1 }", 1)),
    ];
    for query in queries {
        match ask(&graph, &query, &bounds) {
            // Each step of a path is a variable, and joined with the others.
            Ok(_) | Err(Error::Time | Error::ManyVariables | Error::ManyPatterns) => {}
            Err(error) => panic!("{error}: {query}"),
        }
    }
}

/// The parser reads what is in the brackets of these twice, each time: no more than it can in a moment.
#[test]
fn brackets_are_read_twice_only_so_often() {
    let inner = MAX_NESTING - 2;
    let nested = |open: &str, close: &str| {
        let expression = format!("{}\"a\"{}", open.repeat(inner), close.repeat(inner));
        let _ = Asked::read(&format!("SELECT ({expression} AS ?x) {{}}"), NOW);
    };
    nested("SUBSTR(", ",1)");
    nested("REPLACE(", ",\"a\",\"b\")");
    nested("REGEX(", ",\"a\")");
    nested("GROUP_CONCAT(", ")");
    nested("GROUP_CONCAT(DISTINCT ", ")");
    nested("COUNT(", ")");
    nested("<urn:f>(", ")");
    nested("COALESCE(", ",1)");
    nested("(", ")");
    for (open, close, within) in [
        ("{", "}", "?s ?p ?o"),
        ("[ ?p ", "]", "?o"),
        ("OPTIONAL {", "}", "?s ?p ?o"),
        ("FILTER EXISTS {", "}", "?s ?p ?o"),
        ("GRAPH ?g {", "}", "?s ?p ?o"),
        ("{ SELECT * {", "}}", "?s ?p ?o"),
        ("?s (", ") ?o", "rel:a"),
        ("?s ?p (", ")", "1"),
    ] {
        for depth in 1..=inner {
            let _ =
                Asked::read(&format!("ASK {{ {}{within}{} }}", open.repeat(depth), close.repeat(depth)), NOW);
        }
    }
}

#[test]
fn patterns_are_written_out_and_small() {
    let regex = |pattern: &str| format!("ASK {{ ?s brain:content ?c FILTER(REGEX(?c, {pattern})) }}");
    assert_eq!(refused(&regex("?c")), Error::ComputedPattern);
    assert_eq!(refused(&regex("\"a\", ?c")), Error::ComputedPattern);
    assert_eq!(refused(&regex(&format!("\"{}\"", "a".repeat(MAX_PATTERN + 1)))), Error::Pattern);
    assert_eq!(refused(&regex("\"(a{1000}){1000}\"")), Error::Pattern);
    assert_eq!(refused(&regex("\"(\"")), Error::Pattern);
    assert_eq!(refused(&regex("\"a\", \"y\"")), Error::Pattern);
    assert_eq!(refused("ASK { FILTER(REPLACE(\"a\", STR(\"a\"), \"b\") = \"b\") }"), Error::ComputedPattern);
    let slow = "\"(a*)*(a*)*(a|a|a)*(\\\\w+\\\\s+)*zz\"";
    assert_eq!(ask(&graph(3), &regex(slow), &Bounds::until(|| false)), Ok(Outcome::Boolean(false)));
}

#[test]
fn what_would_leave_the_graph_is_refused() {
    for query in [
        "SELECT * { SERVICE <http://169.254.169.254/> { ?s ?p ?o } }",
        "SELECT * { SERVICE SILENT ?where { ?s ?p ?o } }",
        "ASK { FILTER EXISTS { SERVICE <https://peer.example/sparql> { ?s ?p ?o } } }",
        "ASK { { SELECT * { SERVICE <https://peer.example/sparql> { ?s ?p ?o } } } }",
    ] {
        assert_eq!(refused(query), Error::Service, "{query}");
    }
    for query in [
        "ASK FROM <http://169.254.169.254/> {}",
        "ASK FROM NAMED <https://a.example/> {}",
        "ASK FROM <file:///etc/passwd> {}",
    ] {
        assert!(matches!(ask(&graph(3), query, &Bounds::until(|| false)), Err(Error::Fetch(_))), "{query}");
    }
    for query in
        ["SELECT (RAND() AS ?x) {}", "ASK { BIND(UUID() AS ?x) }", "ASK { FILTER(STRUUID() = \"\") }"]
    {
        assert_eq!(refused(query), Error::Chance, "{query}");
    }
    assert_eq!(refused("ASK { FILTER(<urn:f>(1)) }"), Error::Function("urn:f".into()));
    assert_eq!(
        refused("ASK { FILTER(<urn:oap:brain:concat>(1)) }"),
        Error::Function("urn:oap:brain:concat".into())
    );
    // Each is refused as it is read, and not where it is evaluated.
    for wrong in ["anyURI(1)", "integer()", "integer(1, 2)"] {
        let query = format!("ASK {{ FILTER(xsd:{wrong}) }}");
        assert!(matches!(refused(&query), Error::Function(_)), "{query}");
    }
    for cast in ["boolean", "dateTime", "decimal", "double", "float", "integer", "string"] {
        let query = format!("ASK {{ BIND(xsd:{cast}(\"1\") AS ?x) }}");
        let answer = ask(&graph(1), &query, &Bounds::until(|| false));
        assert_eq!(answer, Ok(Outcome::Boolean(true)), "{query}");
    }
}

//! What a query finds follows from the records that it was given, each of them and no other: random records against a naive oracle.
//! Others exist elsewhere, and the records lead to them.

use oap_brain::record::{Former, Link, Target};
use oap_brain::{Asked, Bounds, Dataset, Found, Graph, Outcome, Record, evaluate};
use oxrdf::Term;
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};

/// Everything that exists; a caller sees some of it.
const ALL: usize = 14;

type Row = Vec<Option<String>>;

fn found(graph: &Graph, query: &str) -> Found {
    let asked = Asked::read(query, "2026-11-23T08:00:00Z").unwrap();
    evaluate(graph, &asked, &Dataset::default(), &Bounds::until(|| false)).unwrap()
}

/// The rows of a SELECT, in order of their texts.
fn rows(graph: &Graph, query: &str) -> Vec<Row> {
    let Outcome::Solutions(_, rows) = found(graph, query).outcome else { panic!("{query}") };
    let text = |term: &Term| match term {
        Term::Literal(literal) => literal.value().to_owned(),
        Term::NamedNode(node) => node.as_str().replace("urn:oap:item:", ""),
        Term::BlankNode(_) => panic!("{query}"),
    };
    let mut rows: Vec<Row> =
        rows.iter().map(|row| row.iter().map(|term| term.as_ref().map(text)).collect()).collect();
    rows.sort();
    rows
}

fn sorted(rows: impl IntoIterator<Item = Row>) -> Vec<Row> {
    let mut rows: Vec<Row> = rows.into_iter().collect();
    rows.sort();
    rows
}

fn id(number: usize) -> String {
    format!("mem_{number}")
}

fn record(number: usize) -> impl Strategy<Value = Record> {
    let content = prop::sample::select(vec!["tea", "a \"quote\" \\ \n", "\u{0}\u{7}", "<b> & é 漢", ""]);
    let topic = prop::option::of(prop::sample::select(vec!["home", "work & play", "<x>"]));
    let tags = prop::collection::btree_set(prop::sample::select(vec!["x", "y", "z"]), 0..3);
    let links = prop::collection::vec((prop::sample::select(vec!["a", "b", "c:1"]), 0..ALL), 0..4);
    let rest = (
        prop::option::of(0u8..=10),
        prop::option::of(any::<bool>()),
        prop::bool::weighted(0.2),
        0usize..3,
        prop::option::of(0..3u8),
        prop::option::of(0..3u8),
    );
    (content, topic, tags, links, rest).prop_map(move |(content, topic, tags, links, rest)| {
        let (confidence, human_verified, retracted, formers, author, source) = rest;
        let link = |(relationship, to): (&str, usize)| Link {
            relationship: relationship.to_owned(),
            to: Target::Record(id(to)),
            author: None,
            linked_at: None,
        };
        let former = |version| Former { version, content: format!("was {version}"), ..Former::default() };
        Record {
            id: id(number),
            content: Some(format!("{number} {content}")),
            topic: topic.map(str::to_owned),
            tags: tags.into_iter().map(str::to_owned).collect(),
            confidence: confidence.map(|tenths| f64::from(tenths) / 10.0),
            author: author.map(|author| format!("did:key:z{author}")),
            source: source.map(|source| format!("https://s{source}.example/")),
            version: Some(formers as u32 + 1),
            corrections: (1..=formers as u32).map(former).collect(),
            retracted_at: retracted.then(|| "2026-11-01T00:00:00Z".to_owned()),
            links: links.into_iter().map(link).collect(),
            human_verified,
            ..Record::default()
        }
    })
}

/// All records, and which of them the caller sees.
fn worlds() -> impl Strategy<Value = (Vec<Record>, Vec<bool>)> {
    let all: Vec<_> = (0..ALL).map(record).collect();
    (all, prop::collection::vec(prop::bool::weighted(0.7), ALL))
}

/// Who is reached from whom over links of these names, among what is seen and in force.
fn reached(seen: &[&Record], names: &[&str]) -> BTreeSet<(String, String)> {
    let there: BTreeSet<&str> = seen.iter().map(|record| record.id.as_str()).collect();
    let mut pairs = BTreeSet::new();
    for record in seen {
        for link in &record.links {
            let Target::Record(to) = &link.to else { continue };
            if names.contains(&link.relationship.as_str()) && there.contains(to.as_str()) {
                pairs.insert((record.id.clone(), to.clone()));
            }
        }
    }
    loop {
        let further: Vec<_> = pairs
            .iter()
            .flat_map(|(from, by)| {
                pairs.iter().filter(move |(at, _)| at == by).map(move |(_, to)| (from.clone(), to.clone()))
            })
            .collect();
        let before = pairs.len();
        pairs.extend(further);
        if pairs.len() == before {
            return pairs;
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..Default::default() })]

    #[test]
    fn a_query_sees_the_records_of_its_caller_alone((all, sees) in worlds()) {
        let list: Vec<&Record> = all.iter().zip(&sees).filter(|(_, sees)| **sees).map(|(record, _)| record).collect();
        let graph = Graph::of(list.iter().copied()).unwrap();
        let seen: Vec<&Record> = list.iter().copied().filter(|record| record.retracted_at.is_none()).collect();
        let ids = |records: Vec<&Record>| sorted(records.iter().map(|record| vec![Some(record.id.clone())]));
        let only = |keep: &dyn Fn(&Record) -> bool| ids(seen.iter().copied().filter(|record| keep(record)).collect());
        let number = |count: usize| vec![vec![Some(count.to_string())]];

        // COUNT
        prop_assert_eq!(rows(&graph, "SELECT (COUNT(?f) AS ?n) { ?f a brain:Fact }"), number(seen.len()));
        let mut topics: BTreeMap<&str, usize> = BTreeMap::new();
        seen.iter().filter_map(|record| record.topic.as_deref()).for_each(|topic| *topics.entry(topic).or_default() += 1);
        let expected = topics.iter().map(|(topic, count)| vec![Some((*topic).to_owned()), Some(count.to_string())]);
        let query = "SELECT ?t (COUNT(*) AS ?n) { ?f a brain:Fact ; brain:topic/rdfs:label ?t } GROUP BY ?t";
        prop_assert_eq!(rows(&graph, query), sorted(expected));
        // Everything that is said, word for word.
        let expected = seen.iter().map(|record| vec![Some(record.id.clone()), record.content.clone()]);
        prop_assert_eq!(rows(&graph, "SELECT ?f ?c { ?f brain:content ?c }"), sorted(expected));
        // FILTER
        let query = "SELECT ?f { ?f brain:confidence ?c FILTER(?c >= 0.5) }";
        prop_assert_eq!(rows(&graph, query), only(&|record| record.confidence.is_some_and(|sure| sure >= 0.5)));
        let query = "SELECT ?f { ?f brain:humanVerified true FILTER NOT EXISTS { ?f brain:confidence ?c } }";
        prop_assert_eq!(rows(&graph, query), only(&|record| record.human_verified == Some(true) && record.confidence.is_none()));
        // OPTIONAL
        let expected = seen.iter().map(|record| vec![Some(record.id.clone()), record.topic.clone()]);
        let query = "SELECT ?f ?t { ?f a brain:Fact OPTIONAL { ?f brain:topic/rdfs:label ?t } }";
        prop_assert_eq!(rows(&graph, query), sorted(expected));
        // MINUS
        let has = |record: &Record, tag: &str| record.tags.iter().any(|have| have == tag);
        let query = "SELECT ?f { ?f a brain:Fact MINUS { ?f oap:label \"x\" } }";
        prop_assert_eq!(rows(&graph, query), only(&|record| !has(record, "x")));
        // UNION, DISTINCT, inner SELECT, VALUES
        let query = "SELECT DISTINCT ?f { { SELECT ?f { ?f oap:label \"x\" } } UNION { VALUES ?l { \"y\" UNDEF } ?f oap:label ?l } }";
        prop_assert_eq!(rows(&graph, query), only(&|record| !record.tags.is_empty()));
        // Paths
        let pairs = |names: &[&str]| sorted(reached(&seen, names).into_iter().map(|(from, to)| vec![Some(from), Some(to)]));
        prop_assert_eq!(rows(&graph, "SELECT ?a ?b { ?a rel:a+ ?b }"), pairs(&["a"]));
        prop_assert_eq!(rows(&graph, "SELECT ?a ?b { ?a (rel:a|rel:b)+ ?b }"), pairs(&["a", "b"]));
        let query = "SELECT ?a ?b { ?a <https://openagentprotocol.eu/ns/relationship#c%3A1>+ ?b }";
        prop_assert_eq!(rows(&graph, query), pairs(&["c:1"]));
        // History
        let formers: usize = list.iter().map(|record| record.corrections.len()).sum();
        let query = "SELECT (COUNT(*) AS ?n) { GRAPH <urn:oap:brain:history> { ?w brain:content ?c } }";
        prop_assert_eq!(rows(&graph, query), number(formers + list.len() - seen.len()));
        let query = "SELECT ?f { GRAPH <urn:oap:brain:history> { ?f a brain:Retraction } }";
        prop_assert_eq!(rows(&graph, query), ids(list.iter().copied().filter(|record| record.retracted_at.is_some()).collect()));
        // Of what the caller does not see nothing is there, not even by its name.
        let everything: BTreeSet<String> = rows(&graph, "SELECT DISTINCT ?s ?o { { ?s ?p ?o } UNION { GRAPH ?g { ?s ?p ?o } } }")
            .into_iter().flatten().flatten().collect();
        for (record, sees) in all.iter().zip(&sees) {
            let named = everything.iter().any(|text| *text == record.id || text.starts_with(&format!("{}#", record.id)));
            prop_assert_eq!(named, *sees);
            let told = record.content.as_ref().is_some_and(|content| everything.contains(content));
            prop_assert_eq!(told, *sees);
        }
    }

    #[test]
    fn what_was_read_has_in_it_whatever_was_found((all, _) in worlds()) {
        let graph = Graph::of(&all).unwrap();
        let read = |query: &str| found(&graph, query).read;
        let having = |keep: &dyn Fn(&Record) -> bool| -> Vec<usize> {
            (0..all.len()).filter(|at| keep(&all[*at])).collect()
        };
        let live = |record: &Record| record.retracted_at.is_none();
        prop_assert_eq!(read("SELECT ?c { ?f brain:content ?c }"), having(&live));
        let tagged = having(&|record| live(record) && record.tags.iter().any(|tag| tag == "x"));
        prop_assert_eq!(read("SELECT (SUBSTR(?c, 1, 2) AS ?s) { ?f oap:label \"x\" ; brain:content ?c }"), tagged);
        // A topic and a source are told by whatever has them; what was taken back is among it where another has the same.
        let has = |read: Vec<usize>, all: Vec<usize>| all.iter().all(|at| read.contains(at));
        let topics = having(&|record| live(record) && record.topic.is_some());
        let topics = has(read("SELECT ?t { ?t a brain:Topic }"), topics);
        prop_assert!(topics);
        let sources = having(&|record| live(record) && record.source.is_some());
        let sources = has(read("SELECT ?g { GRAPH ?g {} }"), sources);
        prop_assert!(sources);
        prop_assert_eq!(read("ASK {}"), Vec::<usize>::new());
    }
}

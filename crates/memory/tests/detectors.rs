//! Precision and recall of every detector over a labelled corpus, as a confusion table.
//!
//! `cargo test -p oap-memory --test detectors -- --nocapture` prints the table and every sentence that went wrong.

use oap_memory::detect::{People, SpanClass, of_contact, segments};
use std::collections::BTreeMap;

const CORPUS: &str = include_str!("detectors/corpus.txt");

fn people() -> People {
    People::new([
        "Anna Müller",
        "anna@home.example",
        "anna.b@work.example",
        "+49 171 9876543",
        "Jonas",
        "Priya Raman",
        "Siobhán",
        "Zoë",
    ])
}

type Spans = Vec<(SpanClass, std::ops::Range<usize>)>;

/// A line's text, and the spans that are marked in it.
fn labelled(line: &str) -> (String, Spans) {
    let (mut text, mut spans, mut rest) = (String::new(), Vec::new(), line);
    while let Some((before, after)) = rest.split_once("{{") {
        text.push_str(before);
        let (marked, after) = after.split_once("}}").unwrap_or_else(|| panic!("no end: {line}"));
        let (class, span) = marked.split_once('|').unwrap_or_else(|| panic!("no class: {line}"));
        let start = text.len();
        text.push_str(span);
        spans.push((class.parse().unwrap(), start..text.len()));
        rest = after;
    }
    text.push_str(rest);
    (text, spans)
}

fn found(text: &str, people: &People) -> Spans {
    let mut at = 0;
    let mut spans = Vec::new();
    for segment in segments(text, people) {
        let range = at..at + segment.text.len();
        at = range.end;
        spans.extend(segment.class.map(|class| (class, range)));
    }
    spans
}

#[derive(Default)]
struct Count {
    right: usize,
    missed: usize,
    wrong: usize,
}

#[test]
fn precision_and_recall() {
    let people = people();
    let mut counts: BTreeMap<SpanClass, Count> = BTreeMap::new();
    let (mut lines, mut confused) = (0, BTreeMap::<(String, String), usize>::new());
    for line in CORPUS.lines().filter(|line| !line.starts_with('#') && !line.is_empty()) {
        lines += 1;
        let (text, wanted) = labelled(line);
        let found = found(&text, &people);
        for span in &wanted {
            let count = counts.entry(span.0).or_default();
            if found.contains(span) {
                count.right += 1;
            } else {
                count.missed += 1;
                let instead = found.iter().find(|f| f.1.start < span.1.end && span.1.start < f.1.end);
                let name = instead.map_or("nothing".to_owned(), |f| f.0.to_string());
                *confused.entry((span.0.to_string(), name)).or_default() += 1;
                println!("missed {}: {line}   found {found:?}", span.0);
            }
        }
        for span in found.iter().filter(|span| !wanted.contains(span)) {
            counts.entry(span.0).or_default().wrong += 1;
            println!("wrong {}: {:?} in {line}", span.0, &text[span.1.clone()]);
        }
    }
    println!(
        "{lines} sentences\n{:<16} {:>6} {:>6} {:>6} {:>9} {:>9}",
        "class", "right", "missed", "wrong", "recall", "precision"
    );
    let mut short = Vec::new();
    for (class, count) in &counts {
        let recall = count.right as f64 / (count.right + count.missed).max(1) as f64;
        let precision = count.right as f64 / (count.right + count.wrong).max(1) as f64;
        println!(
            "{:<16} {:>6} {:>6} {:>6} {recall:>9.3} {precision:>9.3}",
            class.to_string(),
            count.right,
            count.missed,
            count.wrong
        );
        let aim = match class {
            SpanClass::Phone | SpanClass::BirthDate => 0.95,
            SpanClass::NationalId | SpanClass::Address | SpanClass::ThirdParty => 0.9,
            _ => 0.98,
        };
        if recall < aim || precision < 0.95 {
            short.push(class.to_string());
        }
    }
    println!("taken for something else: {confused:?}");
    assert!(lines >= 300, "{lines} sentences are too few");
    // No detector makes a mixed span.
    assert_eq!(counts.len(), SpanClass::ALL.len() - 1, "a class without a sentence");
    assert!(short.is_empty(), "below the aim: {short:?}");
}

#[test]
fn the_street_address_of_a_contact_is_a_third_partys() {
    let contact = serde_json::json!({
        "entity_type": "oap.entity.contact", "names": {"given": "Zora"},
        "addresses": [
            "Hauptstraße 12a, 10115 Berlin",
            {"street": "12 Main Street", "city": "Anytown", "country": "US"},
            {"street": "Am Alten Markt", "number": "5", "city": "Köln"},
            {"city": "Ulm"},
        ],
    });
    let people = of_contact(contact.as_object().unwrap());
    let people = People::new(people.iter().map(String::as_str));
    let class = |text: &str| segments(text, &people).into_iter().find_map(|segment| segment.class);
    for text in [
        "moved to Hauptstraße 12a",
        "moved to Hauptstrasse 12a, 10115 Berlin",
        "moved to Hauptstraße 12a, 10115 Berlin.",
        "at 12 Main Street, Flat 2, London NW1 6XE",
        "at 12 Main Street",
        "Am Alten Markt 5, 50667 Köln",
    ] {
        assert_eq!(class(text), Some(SpanClass::ThirdParty), "{text}");
    }
    for text in ["moved to Hauptstraße 12", "at 112 Main Street", "at 12 Main Avenue", "Am Alten Markt 6"] {
        assert_eq!(class(text), Some(SpanClass::Address), "{text}");
    }
    for text in ["a train to Ulm", "Berlin and Anytown in the US"] {
        assert_eq!(class(text), None, "{text}");
    }
}

#[test]
fn a_name_beside_an_address_hides_both() {
    let people = people();
    let shown = |text: &str| {
        segments(text, &people)
            .iter()
            .map(|s| s.class.map_or_else(|| s.text.clone(), |class| class.placeholder()))
            .collect::<String>()
    };
    assert_eq!(shown("Anna anna@mail.example said"), "[third_party] said");
    assert_eq!(shown("jonas.berg@mail.example"), "[third_party]");
    assert_eq!(shown("password=jonas-1984!"), "password=[secret]");
}

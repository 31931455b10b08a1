//! Spans beside each other: where a level hides both, nothing of either is left.

use oap_memory::detect::{People, SpanClass, segments};
use oap_memory::profile::{Profile, TrustLevel};
use proptest::prelude::*;
use serde_json::Value;
use std::ops::Range;

/// What announces a span, and the span.
const SPANS: [(SpanClass, &str, &str); 30] = [
    (SpanClass::UrlCredentials, "", "https://user:secret@host.example/x"),
    (SpanClass::UrlCredentials, "", "https://host.example/x?access_token=abcd1234"),
    (SpanClass::Secret, "", "AKIAIOSFODNN7EXAMPLE"),
    (SpanClass::Secret, "password: ", "hunter2-and-more"),
    (SpanClass::Secret, "password is ", "Tr0ub4dor"),
    (SpanClass::Secret, "", "ghp_0123456789abcdefghijABCDEFGHIJ012345"),
    (SpanClass::Iban, "", "DE89 3704 0044 0532 0130 00"),
    (SpanClass::Iban, "", "GB82WEST12345698765432"),
    (SpanClass::Card, "", "4111 1111 1111 1111"),
    (SpanClass::Card, "", "5500-0000-0000-0004"),
    (SpanClass::NationalId, "", "536-90-4399"),
    (SpanClass::NationalId, "", "86 095 742 719"),
    (SpanClass::NationalId, "", "15070649C103"),
    (SpanClass::NationalId, "", "756.9217.0769.85"),
    (SpanClass::NationalId, "passport no. ", "C01X00T47"),
    (SpanClass::Email, "", "alice.b+x@mail.example"),
    (SpanClass::Ip, "", "192.0.2.7"),
    (SpanClass::Ip, "", "2001:db8::17"),
    (SpanClass::Phone, "", "+49 30 901820"),
    (SpanClass::Phone, "", "+4930901820"),
    (SpanClass::Phone, "", "030 901820"),
    (SpanClass::Phone, "", "(212) 555-2368"),
    (SpanClass::BirthDate, "born on ", "1984-03-17"),
    (SpanClass::BirthDate, "geboren am ", "17.3.1984"),
    (SpanClass::Address, "", "12 Main Street"),
    (SpanClass::Address, "", "Hauptstraße 12a, 10115 Berlin"),
    (SpanClass::ThirdParty, "", "Zora Quimby"),
    (SpanClass::ThirdParty, "", "zora.q@home.example"),
    (SpanClass::ThirdParty, "", "+49 171 9876543"),
    (SpanClass::ThirdParty, "", "0171 9876543"),
];

const SEPARATORS: [&str; 16] =
    [" ", ", ", ",", "\n", "\t", "; ", ";", ": ", " - ", "–", " / ", "/", " | ", "|", " and ", ") ("];

fn people() -> People {
    People::new(["Zora Quimby", "zora.q@home.example", "+49 171 9876543"])
}

/// What a level shows of a text: the places of the segments that stand in the clear.
fn shown(text: &str, people: &People, level: &dyn Fn(SpanClass) -> bool) -> Vec<Range<usize>> {
    let mut at = 0;
    let mut shown = Vec::new();
    for segment in segments(text, people) {
        let range = at..at + segment.text.len();
        at = range.end;
        if segment.class.is_none_or(level) {
            shown.push(range);
        }
    }
    shown
}

/// A span of a sentence of which a level that hides it shows a letter or a digit. Each piece with what stands before it.
fn readable(level: &dyn Fn(SpanClass) -> bool, before: &str, pieces: &[(&str, usize)]) -> Option<String> {
    let mut text = before.to_owned();
    let mut places = Vec::new();
    for (separator, piece) in pieces {
        let (class, announced, span) = SPANS[*piece];
        text.push_str(separator);
        text.push_str(announced);
        places.push((class, text.len()..text.len() + span.len()));
        text.push_str(span);
    }
    text.push_str(if before.is_empty() { "" } else { " and so on." });
    let shown = shown(&text, &people(), level);
    let left = places.iter().filter(|(class, _)| !level(*class)).find_map(|(class, place)| {
        shown.iter().find_map(|range| {
            let left = text.get(range.start.max(place.start)..range.end.min(place.end))?;
            left.contains(char::is_alphanumeric).then(|| format!("{class} {left:?}"))
        })
    })?;
    Some(format!("{left} of {text:?}"))
}

/// The levels at which `memory.v1` shows a text, and what of it.
fn each_level(check: impl Fn(&dyn Fn(SpanClass) -> bool) -> Vec<String>) {
    let profiles = Profile::built_in();
    let memory = profiles.iter().find(|p| p.name().ends_with("memory.v1")).unwrap();
    for level in TrustLevel::all() {
        let rule = memory.table(&Value::Null).text(level);
        let left = check(&|class| rule.shows(class));
        assert!(
            left.is_empty(),
            "level {}: {} left\n{}",
            level.get(),
            left.len(),
            left[..left.len().min(40)].join("\n")
        );
    }
}

#[test]
fn each_span_is_found_alone() {
    for (class, announced, span) in SPANS {
        let found: Vec<_> = segments(&format!("So {announced}{span}."), &people())
            .into_iter()
            .filter_map(|segment| Some((segment.class?, segment.text)))
            .collect();
        assert_eq!(found, [(class, span.to_owned())]);
    }
}

#[test]
fn nothing_of_two_spans_beside_each_other_is_left() {
    each_level(|level| {
        let mut left = Vec::new();
        for (first, second) in (0..SPANS.len()).flat_map(|a| (0..SPANS.len()).map(move |b| (a, b))) {
            for separator in SEPARATORS {
                for before in ["", "We wrote: ", "We wrote of it, "] {
                    left.extend(readable(level, before, &[("", first), (separator, second)]));
                }
            }
        }
        left
    });
}

#[test]
fn nothing_of_three_numbers_in_a_row_is_left() {
    let numbers: Vec<usize> = (0..SPANS.len())
        .filter(|n| SPANS[*n].2.starts_with(|c: char| "+(".contains(c) || c.is_ascii_digit()))
        .collect();
    each_level(|level| {
        let mut left = Vec::new();
        for (n, first) in numbers.iter().enumerate() {
            for (m, second) in numbers.iter().enumerate() {
                // Every pair, with a third that is another one each time.
                let third = numbers[(n * 7 + m * 3) % numbers.len()];
                for separator in [" ", " - "] {
                    left.extend(readable(
                        level,
                        "We wrote: ",
                        &[("", *first), (separator, *second), (separator, third)],
                    ));
                }
            }
        }
        left
    });
}

#[test]
fn a_span_is_cut_where_a_stronger_one_begins() {
    let read = |text: &str| -> String {
        segments(text, &people())
            .into_iter()
            .map(|segment| segment.class.map_or(segment.text, |class| class.placeholder()))
            .collect()
    };
    for (text, cut) in [
        ("pay 4111 1111 1111 1111 4111 1111 1111 1111", "pay [card] [card]"),
        ("call +4930901820 192.0.2.7", "call [phone] [ip]"),
        ("call +49 30 901820 4111 1111 1111 1111", "call [phone] [card]"),
        ("DE89 3704 0044 0532 0130 00 GB82WEST12345698765432", "[iban] [iban]"),
        ("at 12 Main Street, AKIAIOSFODNN7EXAMPLE", "at [street_address], [secret]"),
        ("at 12 Main Street, Hauptstraße 12a", "at [street_address] [street_address]"),
        ("passport no. C01X00T47 221 Baker Street", "passport no. [national_id] [street_address]"),
        ("password: password: hunter2-and-more", "password: [secret] [secret]"),
        ("call +49 30 901820 0171 9876543", "call [third_party]"),
    ] {
        assert_eq!(read(text), cut);
    }
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: std::env::var("OAP_TEXT_CASES").ok().and_then(|n| n.parse().ok()).unwrap_or(500),
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn nothing_of_spans_in_any_order_is_left(
        pieces in prop::collection::vec((prop::sample::select(SEPARATORS.to_vec()), 0..SPANS.len()), 2..7),
    ) {
        each_level(|level| readable(level, "We wrote", &pieces).into_iter().collect());
    }
}

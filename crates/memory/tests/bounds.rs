//! What is accepted at each bound of an item commits, verifies, and stays within the stated size; one more is refused.

mod support;

use oap_identity::json;
use oap_memory::Body;
use oap_memory::bundle::{self, ItemLine, Line, Reader};
use oap_memory::detect::{MAX_NUMBERS, People, segments};
use oap_memory::evidence;
use oap_memory::item::{
    Defaults, ItemError, MAX_DERIVED, MAX_EMBEDDING, MAX_EXTENSIONS, MAX_LABELS, MAX_PROVENANCE, MAX_SHORT,
    MAX_STRUCTURED, MAX_TEXT, MAX_TTL_DAYS,
};
use oap_memory::limits::LIMITS;
use oap_memory::record::ItemRecord;
use oap_memory::sd_jwt::MAX_DISCLOSURES;
use oap_memory::size::{COMMITTED_FREE, COMMITTED_RATIO, MAX_DEPTH, MAX_PARTS};
use serde_json::{Map, Value, json};
use support::{Owner, full, now};

fn parse(item: &Value) -> Result<Body, ItemError> {
    let scope = "personal".parse().unwrap();
    Body::parse(item, &Defaults { principal: &Owner::new(1).did(), scope: &scope, now: now() })
}

fn fact(content: Value) -> Value {
    json!({"kind": "fact", "content": content})
}

/// The item with everything shown, and its proof, as an answer or a bundle has it.
fn shown(whole: &ItemRecord) -> Value {
    let claims = whole.committed.claims().unwrap();
    let mut item = Value::Object(oap_memory::commitment::wire(&claims).unwrap());
    item["status"] = json!("current");
    item["version"] = json!(1);
    let stored = |text: &String| json::parse(text.as_bytes()).unwrap();
    item["integrity"] = json!({
        "sd_jwt": full(whole),
        "chain": whole.chain.iter().map(stored).collect::<Vec<_>>(),
        "capture_receipt": stored(&whole.capture_receipt),
    });
    item
}

/// Commits an item, and checks everything that must hold of one that was accepted.
fn holds(item: &Value, what: &str) {
    let owner = Owner::new(1);
    let (_, whole) = owner.capture(item);
    let sd_jwt = full(&whole);
    let size = json::canonical(item).unwrap().len();
    let most = COMMITTED_FREE + COMMITTED_RATIO * size;
    println!("{what}: {size} bytes, {} committed, at most {most}", sd_jwt.len());
    assert!(sd_jwt.len() <= most, "{what}: {} bytes of {size}", sd_jwt.len());
    let stored: usize =
        whole.committed.disclosures().unwrap().iter().map(|d| d.path().to_string().len()).sum();
    assert!(stored <= most, "{what}: {stored} bytes of places");
    assert!(whole.committed.disclosures().unwrap().len() <= MAX_DISCLOSURES, "{what}");

    let item = shown(&whole);
    evidence::item(&item, &owner.document()).unwrap_or_else(|e| panic!("{what}: {e}"));
    // What was accepted once is accepted when it is cut or signed anew.
    let mut again = item.clone();
    let members = again.as_object_mut().unwrap();
    for made in ["item_id", "version", "status", "integrity"] {
        members.remove(made);
    }
    members["provenance"].as_object_mut().unwrap().remove("source_receipt");
    parse(&again).unwrap_or_else(|e| panic!("{what}: {e}"));

    // As a line of a bundle, and in the documents that hold items: an answer, a chunk, an invocation.
    let line = Line::Item(Box::new(ItemLine { item: item.clone(), record: None, superseded: vec![] }));
    let bytes = bundle::write(&line).unwrap();
    assert!(bytes.len() <= bundle::MAX_LINE, "{what}: a line of {} bytes", bytes.len());
    Reader::default()
        .read(bytes.strip_suffix(b"\n").unwrap_or(&bytes))
        .map(drop)
        .or_else(first_is_header)
        .unwrap();
    for document in [
        json!({"items": [item]}),
        json!({"items": [{"item": item, "superseded": []}], "documents": [], "dry_run": false}),
        json!({"result": {"answer": {"items": [item]}}, "jsonrpc": "2.0"}),
        json!({"jsonrpc": "2.0", "result": {"structuredContent": {"result": {"items": [{"superseded": [item]}]}}}}),
    ] {
        let read = json::parse(&json::canonical(&document).unwrap());
        assert!(read.is_ok(), "{what}: {:?}", read.err());
    }
}

/// A reader that misses its header has read the line.
fn first_is_header(error: bundle::BundleError) -> Result<(), bundle::BundleError> {
    match error {
        bundle::BundleError::Malformed(_) | bundle::BundleError::TooLong => Err(error),
        _ => Ok(()),
    }
}

fn refused(item: &Value, member: &str) {
    let message = parse(item).map(drop).expect_err(member).to_string();
    assert!(message.starts_with(member) && message.len() < 300, "{member}: {message}");
}

/// An object of so many bytes of JSON.
fn object(bytes: usize) -> Value {
    let empty = json!({"a.b": ""}).to_string().len();
    json!({"a.b": "x".repeat(bytes - empty)})
}

fn nested(depth: usize) -> Value {
    (1..depth).fold(json!({"x": "x".repeat(1000)}), |inner, _| json!({ "a": inner }))
}

#[test]
fn each_bound_and_one_beyond() {
    for (member, most, at) in [
        ("content.text", MAX_TEXT, (|n| fact(json!({"text": "x".repeat(n)}))) as fn(usize) -> Value),
        ("content.structured", MAX_STRUCTURED, |n| fact(json!({"structured": object(n)}))),
        (
            "extensions",
            MAX_EXTENSIONS,
            |n| json!({"kind": "fact", "content": {"text": "x"}, "extensions": object(n)}),
        ),
        (
            "provenance",
            MAX_PROVENANCE,
            |n| json!({"kind": "fact", "content": {"text": "x"}, "provenance": object(n)}),
        ),
        (
            "embedding",
            MAX_EMBEDDING,
            |n| json!({"kind": "fact", "content": {"text": "x"}, "embedding": object(n)}),
        ),
        ("labels", MAX_LABELS, |n| {
            let labels: Vec<String> = (0..n).map(|i| format!("{i:0>width$}", width = MAX_SHORT)).collect();
            json!({"kind": "fact", "content": {"text": "x"}, "labels": labels})
        }),
        ("derived_from", MAX_DERIVED, |n| {
            let id = "mem_01HX2QFXR0Q4S8T9V3W7X2Y0Z1";
            json!({"kind": "fact", "content": {"text": "x"}, "derived_from": vec![id; n]})
        }),
        ("content", MAX_DEPTH - 2, |n| fact(json!({"structured": nested(n)}))),
        (
            "extensions",
            MAX_DEPTH - 2,
            |n| json!({"kind": "fact", "content": {"text": "x"}, "extensions": {"a.b": nested(n)}}),
        ),
        ("content.structured", MAX_PARTS, |n| {
            fact(
                json!({"structured": (0..n).map(|i| (format!("m{i:06}"), json!("x".repeat(20)))).collect::<Map<_, _>>()}),
            )
        }),
    ] {
        holds(&at(most), &format!("{member} {most}"));
        refused(&at(most + 1), member);
    }
}

#[test]
fn the_text_of_a_hostile_item() {
    let fill = |unit: &str| unit.repeat(MAX_TEXT / unit.len());
    for unit in [
        "a@b.cd ",
        "192.0.2.1 a@b.cd ",
        "Unter den Linden 77, ",
        "+49 30 901820 ",
        "\u{0}",
        "\"",
        "\u{1f600}",
    ] {
        holds(&fact(json!({"text": fill(unit)})), &format!("text {unit:?}"));
        holds(&fact(json!({"text": unit.repeat(32)})), &format!("short text {unit:?}"));
    }
}

/// Structured content of n parts of a shape, as large as is accepted.
fn most_of(shape: fn(usize) -> Value) -> Option<Value> {
    let at = |n: usize| fact(json!({"structured": shape(n)}));
    let (mut fits, mut beyond) = (0, 4 * MAX_PARTS);
    while beyond - fits > 1 {
        let n = (fits + beyond) / 2;
        if parse(&at(n)).is_ok() { fits = n } else { beyond = n }
    }
    refused(&at(beyond), "content");
    (fits > 0).then(|| at(fits))
}

#[test]
fn the_structure_of_a_hostile_item() {
    type Shape = fn(usize) -> Value;
    let shapes: [(&str, Shape); 6] = [
        ("numbers", |n| json!({"a": vec![0; n]})),
        ("empty lists", |n| json!({"a": vec![json!([]); n]})),
        ("small objects", |n| json!({"a": vec![json!({"a": 0}); n]})),
        ("points", |n| json!({"a": vec![json!([12.345_678, 48.123_456]); n]})),
        ("long names above small leaves", |n| {
            (0..40).fold(json!(vec![0; n]), |inner, _| json!({ "n".repeat(400): inner }))
        }),
        (
            "lists in lists",
            |n| json!({"a": (0..n).map(|_| (0..20).fold(json!(0), |inner, _| json!([inner]))).collect::<Vec<_>>()}),
        ),
    ];
    for (what, shape) in shapes {
        if let Some(item) = most_of(shape) {
            holds(&item, what);
        }
    }
}

#[test]
fn a_contact_of_many_channels_is_no_hostile_item() {
    let channels: Vec<Value> = (0..100)
        .map(|n| json!({"type": "email", "value": format!("alice.{n}@work.example"), "primary": n == 0}))
        .collect();
    holds(
        &fact(json!({"structured": {"entity_type": "oap.entity.contact", "channels": channels}})),
        "channels",
    );
}

#[test]
fn the_table_of_limits() {
    let mut names: Vec<&str> = LIMITS.iter().map(|limit| limit.name).collect();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), LIMITS.len(), "a name twice");
    assert!(
        LIMITS.iter().all(|limit| limit.value > 0 && !limit.unit.is_empty() && !limit.applies_to.is_empty())
    );
}

#[test]
fn the_life_of_an_item() {
    for (days, is_read) in [(1, true), (MAX_TTL_DAYS, true), (0, false), (MAX_TTL_DAYS + 1, false)] {
        let mut item = fact(json!({"text": "tea"}));
        item["ttl_days"] = json!(days);
        assert_eq!(parse(&item).is_ok(), is_read, "{days}");
    }
}

/// Numbers beyond the bound are taken for telephone numbers without a look: they are hidden, not shown.
#[test]
fn telephone_numbers_of_a_text() {
    let numbers = |n: usize| "020 7946 0000; ".repeat(n);
    for n in [MAX_NUMBERS, MAX_NUMBERS + 1] {
        let text = numbers(n);
        assert!(text.len() <= MAX_TEXT);
        let segments = segments(&text, &People::default());
        let plain = segments.iter().filter(|segment| segment.class.is_none());
        assert!(plain.clone().all(|segment| !segment.text.contains('7')), "{n}");
    }
}

//! Every single-byte change of a document of every kind. What is not refused is listed with its reason.
//!
//! Three other values a byte; `OAP_MUTATIONS=all` tries all 255.

use crate::fixture::{Fixture, Reader};
use crate::forge::{remove, seal, sealed};
use crate::receipts::one_of_every;
use crate::table::Document;
use oap_identity::json as strict;
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// The values that a byte is changed to: its lowest bit, its case, and one of the bytes that JSON is made of.
fn values(at: usize, byte: u8) -> Vec<u8> {
    if std::env::var("OAP_MUTATIONS").is_ok_and(|wanted| wanted == "all") {
        return (0..=255).filter(|value| *value != byte).collect();
    }
    let structure = b"\" ,:{}[]0A\n\\";
    let mut values = vec![byte ^ 1, byte ^ 0x20, structure[at % structure.len()]];
    values.retain(|value| *value != byte);
    values.dedup();
    values
}

/// The places whose change was not refused, by the member that they are in.
fn accepted(
    reader: &Reader,
    bytes: &[u8],
    read: &(dyn Fn(&[u8]) -> Option<Document> + Sync),
) -> (usize, BTreeMap<usize, u8>) {
    let halves = 2;
    let one = |half: usize| {
        let (mut tried, mut accepted) = (0, BTreeMap::new());
        for at in (half..bytes.len()).step_by(halves) {
            for value in values(at, bytes[at]) {
                let mut changed = bytes.to_vec();
                changed[at] = value;
                tried += 1;
                if read(&changed).is_some_and(|document| document.judge(reader).is_ok()) {
                    accepted.insert(at, value);
                }
            }
        }
        (tried, accepted)
    };
    let one = &one;
    std::thread::scope(|scope| {
        let all: Vec<_> = (0..halves).map(|half| scope.spawn(move || one(half))).collect();
        let mut sum = (0, BTreeMap::new());
        for part in all {
            let (tried, found) = part.join().unwrap();
            sum.0 += tried;
            sum.1.extend(found);
        }
        sum
    })
}

fn canonical(value: &Value) -> Vec<u8> {
    strict::canonical(value).unwrap()
}

/// An item with little to show, so that its bytes are few and of every kind.
fn small(fixture: &Fixture) -> Value {
    let items = fixture.answer["items"].as_array().unwrap();
    items.iter().min_by_key(|item| item.to_string().len()).unwrap().clone()
}

#[tokio::test]
async fn no_byte_can_be_changed() {
    let fixture = Fixture::new().await;
    let keys = fixture.world.gateway.keys();
    type Read<'a> = Box<dyn Fn(&[u8]) -> Option<Document> + Sync + 'a>;
    let json = |kind: fn(Value) -> Document| -> Read<'static> {
        Box::new(move |bytes| strict::parse(bytes).ok().map(kind))
    };
    let item = small(&fixture);
    let mut answer = fixture.answer.clone();
    answer["items"] = json!([item]);
    seal(&mut answer, keys.current());
    let bundle: Vec<Value> = fixture
        .bundle
        .iter()
        .filter(|line| line["type"] == "header" || line["item"]["item_id"] == item["item_id"])
        .cloned()
        .map(|mut line| {
            if line["type"] == "header" {
                line["items"] = json!(1);
            } else if line.get("superseded").is_some() {
                remove(&mut line, "", "superseded");
            }
            line
        })
        .collect();
    let mut documents: Vec<(String, Vec<u8>, Read)> = vec![
        ("item".into(), canonical(&item), json(Document::Item)),
        ("answer".into(), canonical(&answer), json(Document::Answer)),
        ("grant".into(), canonical(&fixture.grant), json(Document::Grant)),
        ("deletion receipt".into(), canonical(&fixture.deletion), json(Document::Deletion)),
        (
            "bundle".into(),
            sealed(&fixture, &bundle),
            Box::new(|bytes| Some(Document::Bundle(bytes.to_vec()))),
        ),
        (
            "status list".into(),
            fixture.list.clone().into_bytes(),
            Box::new(|bytes| String::from_utf8(bytes.to_vec()).ok().map(Document::List)),
        ),
    ];
    for receipt in one_of_every(&fixture) {
        let name = format!("receipt of {}", receipt["action_id"].as_str().unwrap());
        documents.push((name, canonical(&receipt), json(Document::Receipt)));
    }
    for (name, bytes, read) in &documents {
        let base = read(bytes).unwrap().judge(&fixture.reader);
        assert!(base.is_ok(), "{name}: {base:?}");
        let (tried, accepted) = accepted(&fixture.reader, bytes, read.as_ref());
        println!("{name}: {tried} changes of {} bytes, {} accepted", bytes.len(), accepted.len());
        assert!(tried >= 2 * bytes.len());
        for (at, value) in accepted {
            let before = &bytes[..at];
            let member = before.windows(12).rposition(|window| window == b"\"relevance\":");
            // Of a lone item, nobody signs its relevance: the verifier names it as outside the proof.
            let harmless = name == "item" && member.is_some_and(|place| at - place < 16);
            let around = String::from_utf8_lossy(&bytes[at.saturating_sub(30)..(at + 30).min(bytes.len())])
                .into_owned();
            assert!(harmless, "{name}: byte {at} as {:?} is accepted, in {around}", char::from(value));
        }
    }
}

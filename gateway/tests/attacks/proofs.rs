//! What comes with an item as proof must not be a way into what it hides.

use super::Target;
use crate::common::*;
use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use std::collections::BTreeSet;

fn decode(text: &str) -> Vec<u8> {
    URL_SAFE_NO_PAD.decode(text).unwrap()
}

/// Every digest in an answer, at whatever depth.
fn digests(value: &Value, found: &mut BTreeSet<String>) {
    match value {
        Value::Object(members) => {
            for (name, member) in members {
                match (name.as_str(), member) {
                    ("_sd", Value::Array(all)) => {
                        found.extend(all.iter().filter_map(|d| d.as_str().map(str::to_owned)));
                    }
                    ("...", Value::String(digest)) => {
                        found.insert(digest.clone());
                    }
                    _ => digests(member, found),
                }
            }
        }
        Value::Array(values) => values.iter().for_each(|v| digests(v, found)),
        _ => {}
    }
}

/// The digests and the salts of an item's proof.
fn opened(item: &Value) -> (BTreeSet<String>, Vec<Vec<u8>>) {
    let mut parts = item["integrity"]["sd_jwt"].as_str().unwrap().split('~');
    let mut found = BTreeSet::new();
    let payload = decode(parts.next().unwrap().split('.').nth(1).unwrap());
    digests(&serde_json::from_slice(&payload).unwrap(), &mut found);
    let mut salts = Vec::new();
    for part in parts.filter(|part| !part.is_empty()) {
        let disclosure: Value = serde_json::from_slice(&decode(part)).unwrap();
        digests(&disclosure, &mut found);
        salts.push(decode(disclosure[0].as_str().unwrap()));
    }
    (found, salts)
}

async fn items(level: u8) -> (Target, Vec<Value>) {
    let target = Target::at(level).await;
    let answer = target.query(json!({"query": ""})).await.ok();
    let items = answer["items"].as_array().unwrap().clone();
    (target, items)
}

/// The right guess, without its salt or with any salt that was shown, gives no digest of the proof.
#[tokio::test]
async fn guessing_what_a_digest_hides() {
    let (_, items) = items(2).await;
    let mut salts: Vec<Vec<u8>> = vec![vec![], vec![0; 16]];
    let mut known = BTreeSet::new();
    for item in &items {
        let (digests, shown) = opened(item);
        known.extend(digests);
        salts.extend(shown);
    }
    let guesses = [
        json!(["v", "bobby.tables@mail.example"]),
        json!(["v", "Xk29vvTTmQ81"]),
        json!(["codename", "zanzibar"]),
        json!(["confidence", 0.73]),
        json!(["floor", 7]),
        json!(["scope_id", "personal"]),
        json!(["zanzibar"]),
    ];
    for salt in &salts {
        for guess in &guesses {
            let mut disclosure = vec![json!(URL_SAFE_NO_PAD.encode(salt))];
            disclosure.extend(guess.as_array().unwrap().clone());
            for text in [json!(disclosure).to_string(), guess.to_string()] {
                let digest = URL_SAFE_NO_PAD.encode(Sha256::digest(URL_SAFE_NO_PAD.encode(text)));
                assert!(!known.contains(&digest), "{guess}");
            }
        }
    }
}

#[tokio::test]
async fn salts_that_repeat() {
    let (_, items) = items(3).await;
    let salts: Vec<Vec<u8>> = items.iter().flat_map(|item| opened(item).1).collect();
    assert!(salts.len() > 10 && salts.iter().all(|salt| salt.len() >= 16));
    assert_eq!(salts.iter().collect::<BTreeSet<_>>().len(), salts.len());
}

/// Equal hidden content has unequal digests and commitments: items cannot be joined on it.
#[tokio::test]
async fn joining_items_on_equal_hidden_content() {
    let world = World::new().await;
    let twin = note("The same, password: Xk29vvTTmQ81", &["shared"]);
    world.capture(&[twin.clone(), twin]).await;
    let answer = world.ask(&agent(2), &Target::draft(&world, 2), &json!({"query": ""})).await;
    let items = answer["items"].as_array().unwrap();
    let (one, other) = (opened(&items[0]).0, opened(&items[1]).0);
    assert!(one.is_disjoint(&other));
    let commitment = |item: &Value| item["integrity"]["chain"][0]["commitment"].clone();
    assert_ne!(commitment(&items[0]), commitment(&items[1]));
}

#[tokio::test]
async fn names_of_hidden_members_in_the_proof() {
    let (_, items) = items(3).await;
    for item in &items {
        let jwt = item["integrity"]["sd_jwt"].as_str().unwrap();
        let mut readable = item.to_string();
        for part in jwt.split(['~', '.']).filter(|part| !part.is_empty()) {
            readable.push_str(&String::from_utf8_lossy(&decode(part)));
        }
        for hidden in
            ["codename", "zanzibar", "floor", "quokka", "example.app", "Xk29", "confidence", "exportable"]
        {
            assert!(!readable.contains(hidden), "{hidden}");
        }
    }
}

/// A digest says what the whole proof is of: a disclosure of another item does not fit into it.
#[tokio::test]
async fn a_disclosure_of_another_item() {
    let (target, items) = items(2).await;
    let document = target.world.document();
    let mut forged = items[1].clone();
    let other = items[0]["integrity"]["sd_jwt"].as_str().unwrap();
    let stolen = other.split('~').rfind(|part| !part.is_empty()).unwrap();
    let joined = format!("{}{stolen}~", forged["integrity"]["sd_jwt"].as_str().unwrap());
    forged["integrity"]["sd_jwt"] = json!(joined);
    assert!(oap_memory::evidence::item(&items[1], &document).is_ok());
    assert!(oap_memory::evidence::item(&forged, &document).is_err());
}

#[tokio::test]
async fn the_capture_receipt_of_a_batch() {
    let (target, items) = items(2).await;
    for item in &items {
        let receipt = item["integrity"]["capture_receipt"].to_string();
        assert!(!receipt.contains(&target.outside) && !receipt.contains("private"), "{receipt}");
        assert_eq!(item["integrity"]["capture_receipt"]["provenance_tags_out"].as_array().unwrap().len(), 1);
    }
}

/// The chain of receipts does not say how many came between two that the grantee sees.
#[tokio::test]
async fn the_place_of_a_receipt_in_its_chain() {
    let target = Target::at(2).await;
    let mut previous = BTreeSet::new();
    for _ in 0..3 {
        let answer = target.query(json!({"query": ""})).await.ok();
        let receipt = &answer["receipt"];
        assert!(previous.insert(receipt["previous_receipt_hash"].to_string()));
        let own = oap_identity::Hash::of_canonical(&{
            let mut unsigned = receipt.clone();
            unsigned.as_object_mut().unwrap().remove("signatures");
            unsigned
        });
        // Even of two in a row, the second does not follow the first: a head stands between.
        assert!(!previous.contains(&format!("\"{}\"", own.unwrap())));
        assert!(receipt.get("length").is_none() && !receipt.to_string().contains("chain_head"));
    }
}

/// A vector that is served is the vector of what is visible: what it is inverted to was readable before.
#[tokio::test]
async fn inverting_an_embedding() {
    let mut vectors = Vec::new();
    for password in ["Xk29vvTTmQ81", "another9Secret77"] {
        let world = World::embedding(Box::new(crate::twins::Letters)).await;
        world.capture(&[note(&format!("Note this: password: {password}"), &["shared"])]).await;
        let mut draft = Target::draft(&world, 3);
        draft["embedding_access"] = json!(true);
        let grant = world.issue(&draft).await;
        let grant = oap_grants::grant::UnverifiedGrant::parse(grant).unwrap();
        let gateway = world.gateway.clone();
        let shown = tokio::task::spawn_blocking(move || gateway.would_show(grant.unverified()).unwrap());
        vectors.push(shown.await.unwrap().vectors()[0].clone());
    }
    assert_eq!(vectors[0], vectors[1]);
}

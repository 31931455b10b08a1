//! A house whose key was stolen, and the `reseal` links that vouch for what it signed after that (`docs/bytes.md` 4.2).

use crate::forge::*;
use crate::table::{By, Document::Item, Table};
use oap_identity::{Did, DidDocument, Hash, Signer, VerificationKey};
use serde_json::{Value, json};

pub const HOUSE: &str = "did:web:robbed.example";
/// The capture, and since when `key-1` is compromised: it was stolen just before.
const STOLEN: &str = "2026-05-01T12:00:00.000Z";
const RETIRED: &str = "2026-05-01T12:00:03.000Z";
const RESEALED: &str = "2026-05-01T12:00:04.000Z";
const BEFORE: &str = "2026-05-01T11:59:00.000Z";

/// The stolen one, the one in force, and one that was compromised later.
pub fn key(number: u8) -> Signer {
    let kid = format!("{HOUSE}#key-{number}").parse().unwrap();
    Signer::from_seed(kid, &[100 + number; 32]).unwrap()
}

/// What the house publishes after the theft.
pub fn document() -> DidDocument {
    let public = |number: u8| VerificationKey::new(key(number).kid().clone(), *key(number).public());
    let did: Did = HOUSE.parse().unwrap();
    let stolen = public(1).retired(RETIRED.parse().unwrap()).revoked(STOLEN.parse().unwrap());
    let later = public(3).revoked("2026-06-01T00:00:00.000Z".parse().unwrap());
    DidDocument::new(did, vec![public(2), stolen, later])
}

/// An item of one link, captured by the house at that time and signed with that key; its capture receipt with the new one.
fn captured(base: &Value, signer: &Signer, at: &str) -> Value {
    let mut item = base.clone();
    item["owner_did"] = json!(HOUSE);
    let integrity = &mut item["integrity"];
    integrity["chain"][0]["actor"] = json!(HOUSE);
    integrity["chain"][0]["at"] = json!(at);
    for member in ["principal_did", "agent_did", "tool_did"] {
        integrity["capture_receipt"][member] = json!(HOUSE);
    }
    integrity["capture_receipt"]["timestamp"] = json!(at);
    let mut opened = open(&item);
    opened.payload.insert("iss".into(), json!(HOUSE));
    opened.payload.insert("iat".into(), json!(seconds(at)));
    commit(&mut item, &opened.text(signer), signer);
    sign_receipt(&mut item["integrity"]["capture_receipt"], &key(2));
    item
}

fn seconds(at: &str) -> i64 {
    at.parse::<oap_identity::Timestamp>().unwrap().seconds()
}

/// The item with a version more, by that key.
pub fn versioned(item: &Value, event: &str, signer: &Signer, at: &str) -> Value {
    with(item, |item| {
        let mut link = next_link(item, event);
        let links = item["integrity"]["chain"].as_array().unwrap();
        let prev = Hash::of_canonical(links.last().unwrap()).unwrap();
        let mut opened = open(item);
        let place = [
            ("iss", json!(signer.did())),
            ("iat", json!(seconds(at))),
            ("seq", link["seq"].clone()),
            ("event", json!(event)),
            ("prev", json!(prev)),
        ];
        opened.payload.extend(place.map(|(name, value)| (name.to_owned(), value)));
        let text = opened.text(signer);
        link["at"] = json!(at);
        link["actor"] = json!(signer.did());
        link["prev"] = json!(prev);
        link["commitment"] = json!(Hash::of(text.split('~').next().unwrap().as_bytes()));
        item["version"] = json!(link["seq"].as_u64().unwrap() + 1);
        item["owner_did"] = json!(signer.did());
        item["integrity"]["sd_jwt"] = json!(text);
        sign(&mut link, signer);
        item["integrity"]["chain"].as_array_mut().unwrap().push(link);
    })
}

pub fn forge(table: &mut Table) {
    let (base, mallory) = (table.fixture.one.clone(), &table.fixture.mallory);
    let (stolen, new, later) = (key(1), key(2), key(3));
    let bare = captured(&base, &stolen, STOLEN);
    let sealed = versioned(&bare, "reseal", &new, RESEALED);
    let link = |item: &Value, number: usize| item["integrity"]["chain"][number].clone();
    let holds = |table: &mut Table, by, name: &str, item: Value| {
        table.named(by, name, "unchecked.chain_end", Item(item));
    };
    let refused = |table: &mut Table, by, name: &str, check, item: Value| {
        table.refused(by, name, &[check], Item(item));
    };

    holds(table, By::Owner, "signed with a stolen key, resealed with the new one", sealed.clone());
    let early = captured(&base, &stolen, BEFORE);
    holds(table, By::Owner, "signed with a stolen key before it was stolen", early.clone());
    let twice = versioned(
        &versioned(&bare, "correct", &stolen, "2026-05-01T12:00:01.000Z"),
        "reseal",
        &new,
        RESEALED,
    );
    holds(table, By::Owner, "two links of a stolen key under one reseal", twice);
    let on = versioned(&sealed, "correct", &new, "2026-05-01T12:00:05.000Z");
    holds(table, By::Owner, "corrected after the reseal", on);

    refused(table, By::Owner, "signed with a stolen key, not resealed", "chain.compromised", bare.clone());
    table.named(
        By::Owner,
        "signed with a stolen key, and backdated",
        "unchecked.dated_by_compromised_key",
        Item(captured(&table.fixture.one, &stolen, BEFORE)),
    );
    let own = versioned(&bare, "reseal", &stolen, "2026-05-01T12:00:01.000Z");
    refused(table, By::Owner, "a reseal by the stolen key itself", "chain.compromised", own.clone());
    let backdated = versioned(&bare, "reseal", &stolen, BEFORE);
    refused(table, By::Owner, "a reseal by the stolen key, dated before the theft", "chain.time", backdated);
    let backdated = versioned(&bare, "reseal", &new, BEFORE);
    refused(table, By::Owner, "a reseal by the new key, dated before the theft", "chain.time", backdated);
    let mixed = versioned(&early, "correct", &stolen, "2026-05-01T12:00:01.000Z");
    let mixed = versioned(&mixed, "reseal", &stolen, "2026-05-01T12:00:02.000Z");
    refused(table, By::Owner, "the thief goes on where the owner stopped", "chain.compromised", mixed);
    let weak = versioned(&bare, "reseal", &later, RESEALED);
    refused(table, By::Owner, "a reseal by a key that was compromised after it", "chain.compromised", weak);
    let corrected = versioned(&bare, "correct", &new, RESEALED);
    refused(
        table,
        By::Owner,
        "another event of the new key vouches for nothing",
        "chain.compromised",
        corrected,
    );
    let confirmed = and_then(&sealed, "confirm", &stolen);
    refused(table, By::Owner, "the thief goes on after the reseal", "chain.signature", confirmed);
    let late = versioned(&captured(&base, &stolen, RETIRED), "reseal", &new, RESEALED);
    refused(table, By::Owner, "signed with the stolen key after it was retired", "chain.signature", late);

    // Another history under the owner's reseal: the link as the thief would have it, the reseal as the owner made it.
    let mut forged = sealed.clone();
    let other = captured(
        &with(&base, |item| {
            item["integrity"]["capture_receipt"]["receipt_id"] =
                json!("urn:oap:receipt:01KQHPHXG0FN6AMW9YQM51XCBZ")
        }),
        &stolen,
        STOLEN,
    );
    let mut replaced = link(&other, 0);
    replaced["receipt"] = json!("urn:oap:receipt:01KQHPHXG0FN6AMW9YQM51XCBZ");
    sign(&mut replaced, &stolen);
    forged["integrity"]["chain"][0] = replaced.clone();
    refused(table, By::Owner, "a forged link under the owner's reseal", "chain.broken", forged.clone());
    forged["integrity"]["chain"][1]["prev"] = json!(Hash::of_canonical(&replaced).unwrap());
    refused(table, By::Owner, "a forged link, and prev of the reseal made to fit", "chain.signature", forged);
    let mut garbled = bare.clone();
    garbled["integrity"]["chain"][0]["signature"] = {
        let mut link = link(&bare, 0);
        link["receipt"] = json!("urn:oap:receipt:01KQHPHXG0FN6AMW9YQM51XCBZ");
        sign(&mut link, &stolen);
        link["signature"].clone()
    };
    let garbled = versioned(&garbled, "reseal", &new, RESEALED);
    refused(
        table,
        By::Owner,
        "a reseal over a link whose signature does not verify",
        "chain.signature",
        garbled,
    );
    let mut foreign = sealed.clone();
    foreign["integrity"]["chain"][1]["item_id"] = json!("mem_01KQHPHXG033Z5VBP3YV0FF0FZ");
    sign(&mut foreign["integrity"]["chain"][1], &new);
    refused(table, By::Owner, "the reseal of another item", "chain.other_item", foreign);
    let moved = and_then(&bare, "migrate", mallory);
    let moved = versioned(&moved, "reseal", mallory, RESEALED);
    refused(table, By::Mallory, "moved into another house, and resealed there", "chain.compromised", moved);
    let still = and_then(&bare, "reseal", &new);
    refused(table, By::Owner, "a reseal that commits to nothing new", "chain.repeated_commitment", still);
    let shown = with(&sealed, |item| {
        item["integrity"]["sd_jwt"] = bare["integrity"]["sd_jwt"].clone();
        item["version"] = json!(1);
    });
    refused(table, By::Owner, "the version of before the reseal shown", "commitment.signature", shown);
    let mixed = with(&bare, |item| {
        let text = open(item).text(&stolen);
        commit(item, &text, &new);
    });
    refused(
        table,
        By::Owner,
        "a link of the new key over a version of the stolen one",
        "commitment.signature",
        mixed,
    );
    let receipt = with(&sealed, |item| sign_receipt(&mut item["integrity"]["capture_receipt"], &stolen));
    refused(table, By::Owner, "a capture receipt by the stolen key", "receipt.signature", receipt);
}

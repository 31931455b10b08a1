//! Forgeries that one check alone tells apart: everything else about them is as it must be. `conformance/rogues/checks.py`
//! removes the checks one by one and asks whether a case disagrees.

use crate::forge::*;
use crate::reseals::versioned;
use crate::table::{By, Document, Table};
use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD as B64};
use oap_identity::{Hash, Signer, json as strict};
use serde_json::{Value, json};

pub fn forge(table: &mut Table) {
    let keys = table.fixture.world.gateway.keys();
    let owner = keys.current();
    chains(table, owner);
    versions(table, owner);
    claims(table, owner);
    receipts(table, owner);
    wholes(table, owner);
}

/// Another key under the owner's name.
fn impostor(owner: &Signer) -> Signer {
    Signer::from_seed(owner.kid().clone(), &[5; 32]).unwrap()
}

fn item(table: &mut Table, by: By, name: &str, check: &'static str, item: Value) {
    table.refused(by, name, &[check], Document::Item(item));
}

fn at(item: &Value) -> String {
    item["integrity"]["chain"][0]["at"].as_str().unwrap().to_owned()
}

fn chains(table: &mut Table, owner: &Signer) {
    let one = table.fixture.one.clone();
    let last = |item: &mut Value| item["integrity"]["chain"].as_array_mut().unwrap().pop().unwrap();
    let put = |item: &mut Value, link: Value| item["integrity"]["chain"].as_array_mut().unwrap().push(link);

    let ended = with(&and_then(&one, "erase", owner), |item| item["status"] = json!("erased"));
    item(table, By::Owner, "erased, and it says so, and there is content", "item.ended", ended);

    let confirmed = and_then(&one, "confirm", owner);
    let signed = |signer: &Signer| {
        with(&confirmed, |item| {
            let mut link = last(item);
            sign(&mut link, signer);
            put(item, link);
        })
    };
    let other = impostor(owner);
    item(
        table,
        By::Mallory,
        "a last link by another key of the owner's name",
        "chain.signature",
        signed(&other),
    );
    let mallory = signed(&table.fixture.mallory);
    item(table, By::Mallory, "a last link of the owner's, by another's key", "chain.signer", mallory);

    let first = with(&one, |item| {
        let mut opened = open(item);
        opened.payload.insert("event".into(), json!("confirm"));
        item["integrity"]["chain"][0]["event"] = json!("confirm");
        item["integrity"]["capture_receipt"]["action_id"] = json!("memory.confirm");
        commit(item, &opened.text(owner), owner);
    });
    item(table, By::Owner, "a chain that begins with confirm, all through", "chain.event", first);

    let back = with(&confirmed, |item| {
        let mut link = last(item);
        link["commitment"] = json!(Hash::of(b"for a while"));
        sign(&mut link, owner);
        put(item, link);
        let original = item["integrity"]["chain"][0]["commitment"].clone();
        let mut link = next_link(item, "confirm");
        link["commitment"] = original;
        put(item, link);
        relink(item, 2, owner);
    });
    item(table, By::Owner, "a commitment that changes and changes back", "chain.changed_commitment", back);

    let again = with(&and_then(&one, "correct", owner), |item| item["version"] = json!(2));
    item(table, By::Owner, "a correction to what it said before", "chain.repeated_commitment", again);
}

fn versions(table: &mut Table, owner: &Signer) {
    let (one, other) = (table.fixture.one.clone(), impostor(owner));
    let corrected = versioned(&one, "correct", owner, &at(&one));
    let old = with(&corrected, |item| item["integrity"]["sd_jwt"] = one["integrity"]["sd_jwt"].clone());
    item(table, By::Nobody, "the version before under a newer chain", "item.commitment", old);

    // The last link commits to a version that says that it is the first.
    let twice = with(&corrected, |item| {
        let mut opened = open(&one);
        let decoys: Vec<String> = opened.disclosures.iter().map(digest).collect();
        let decoy = opened.root().iter().find(|d| !decoys.iter().any(|known| *d == known)).unwrap().clone();
        opened.swap(decoy.as_str().unwrap(), &digest(&json!([SALT, "decoy", 1])));
        let text = opened.text(owner);
        item["integrity"]["chain"][1]["commitment"] =
            json!(Hash::of(text.split('~').next().unwrap().as_bytes()));
        item["integrity"]["sd_jwt"] = json!(text);
        relink(item, 1, owner);
    });
    item(table, By::Owner, "a second version that says that it is the first", "item.place", twice);

    let signed = |text: String| with(&one, |item| commit(item, &text, owner));
    let forged = signed(open(&one).text(&other));
    item(table, By::Owner, "committed to a version of another key", "commitment.signature", forged);
    let named = signed(open(&one).text(&table.fixture.mallory));
    item(table, By::Owner, "committed to a version by another in its own name", "commitment.issuer", named);
    let mut theirs = open(&one);
    theirs.payload.insert("iss".into(), json!(table.fixture.mallory.did()));
    let theirs = signed(theirs.text(&table.fixture.mallory));
    item(table, By::Owner, "committed to another's version", "item.place", theirs);

    let elsewhere = with(&one, |item| {
        let mut opened = open(item);
        opened.payload.insert("receipt".into(), json!("rec_01KQHPHXG0FN6AMW9YQM51XCBZ"));
        let hidden = ["provenance", "captured_at", "confidence", "source", "source_receipt"];
        opened.disclosures.retain(|disclosure| !hidden.iter().any(|name| disclosure[1] == *name));
        item.as_object_mut().unwrap().remove("provenance");
        commit(item, &opened.text(owner), owner);
    });
    item(table, By::Owner, "a version of another capture receipt", "item.place", elsewhere);

    let open_end = with(&one, |item| {
        let text = item["integrity"]["sd_jwt"].as_str().unwrap().trim_end_matches('~').to_owned();
        item["integrity"]["sd_jwt"] = json!(text);
    });
    table.refused(
        By::Nobody,
        "the last tilde cut off",
        &["sd_jwt.key_binding", "sd_jwt.malformed"],
        Document::Item(open_end),
    );
}

/// Changes a part of a disclosed claim, and what commits to it.
fn within(opened: &mut Opened, parent: &str, name: &str, change: impl FnOnce(&mut Value)) {
    let place = |opened: &Opened, name: &str| opened.disclosures.iter().position(|d| d[1] == *name).unwrap();
    let (at, above) = (place(opened, name), place(opened, parent));
    let (old, old_above) = (digest(&opened.disclosures[at]), digest(&opened.disclosures[above]));
    change(&mut opened.disclosures[at]);
    let new = digest(&opened.disclosures[at]);
    replace(&mut opened.disclosures[above][2]["_sd"], &old, &new);
    let new_above = digest(&opened.disclosures[above]);
    opened.swap(&old_above, &new_above);
}

fn replace(digests: &mut Value, old: &str, new: &str) {
    let digests = digests.as_array_mut().unwrap();
    *digests.iter_mut().find(|digest| **digest == *old).unwrap() = json!(new);
    digests.sort_by(|a, b| a.as_str().cmp(&b.as_str()));
}

/// Claims that are committed to and shown as they are, and are none of an item's.
fn claims(table: &mut Table, owner: &Signer) {
    let one = table.fixture.one.clone();
    let shape = &["commitment.claim", "commitment.item"];
    let kind = with(&recommitted(&one, owner, |o| o.change("kind", |d| d[2] = json!("rumour"))), |item| {
        item["kind"] = json!("rumour");
    });
    table.refused(By::Owner, "a kind that is none, shown", shape, Document::Item(kind));
    for (name, value, checks) in [
        ("captured_at", json!("yesterday"), &shape[..]),
        ("confidence", json!(2), &shape[..]),
        ("source_receipt", json!("rec_01KQHPHXG0FN6AMW9YQM51XCBZ"), &["commitment.source_receipt"][..]),
    ] {
        let item = recommitted(&one, owner, |o| within(o, "provenance", name, |d| d[2] = value.clone()));
        let item = with(&item, |item| item["provenance"][name] = value.clone());
        table.refused(By::Owner, format!("{name} {value}, shown"), checks, Document::Item(item));
    }
    let content =
        recommitted(&one, owner, |o| within(o, "content", "structured", |d| d[1] = json!("colour")));
    let content = with(&content, |item| {
        let members = item["content"].as_object_mut().unwrap();
        let structured = members.remove("structured").unwrap();
        members.insert("colour".into(), structured);
    });
    table.refused(By::Owner, "content of another member, shown", shape, Document::Item(content));

    let plain = recommitted(&one, owner, |opened| {
        let above = opened.disclosures.iter().position(|d| d[1] == "provenance").unwrap();
        let old = digest(&opened.disclosures[above]);
        opened.disclosures[above][2]["colour"] = json!("red");
        let new = digest(&opened.disclosures[above]);
        opened.swap(&old, &new);
    });
    let plain = with(&plain, |item| item["provenance"]["colour"] = json!("red"));
    item(table, By::Owner, "a member in the clear beside concealed ones, shown", "form.plain", plain);

    let twice = recommitted(&one, owner, |opened| {
        let known: Vec<String> = opened.disclosures.iter().map(digest).collect();
        let decoy = |digests: &Value| {
            let decoy =
                digests.as_array().unwrap().iter().find(|d| !known.iter().any(|k| **d == *k)).unwrap();
            decoy.as_str().unwrap().to_owned()
        };
        let root = decoy(&json!(opened.root()));
        let above = opened.disclosures.iter().position(|d| d[1] == "provenance").unwrap();
        let old = digest(&opened.disclosures[above]);
        let inner = decoy(&opened.disclosures[above][2]["_sd"]);
        replace(&mut opened.disclosures[above][2]["_sd"], &inner, &root);
        let new = digest(&opened.disclosures[above]);
        opened.swap(&old, &new);
    });
    item(table, By::Owner, "a digest in two places", "sd_jwt.repeated_digest", twice);
}

fn receipts(table: &mut Table, owner: &Signer) {
    let (one, mallory) = (table.fixture.one.clone(), &table.fixture.mallory);
    let foreign = with(&one, |item| {
        item["integrity"]["capture_receipt"]["principal_did"] = json!(mallory.did());
        sign_receipt(&mut item["integrity"]["capture_receipt"], mallory);
    });
    let twice = with(&table.fixture.answer["receipt"], |receipt| {
        let signature = receipt["signatures"][0].clone();
        receipt["signatures"] = json!([signature, signature]);
    });

    // The log goes on with two entries more.
    let log = table.fixture.log.clone();
    let goes_on = |signer: &Signer, is_head: bool, change: &dyn Fn(&mut Value)| {
        let mut log = log.clone();
        let pair = [log[log.len() - 2].clone(), log[log.len() - if is_head { 1 } else { 2 }].clone()];
        for mut entry in pair {
            let mut before = log.last().unwrap().clone();
            before.as_object_mut().unwrap().remove("signatures");
            entry["previous_receipt_hash"] = json!(Hash::of(&strict::canonical(&before).unwrap()));
            if entry["action_id"] == "memory.chain_head" {
                entry["policy_decisions"][0]["length"] = json!(log.len());
            }
            change(&mut entry);
            sign_receipt(&mut entry, signer);
            log.push(entry);
        }
        log
    };
    let alien = goes_on(mallory, true, &|entry| entry["principal_did"] = json!(mallory.did()));
    let headless = goes_on(owner, false, &|_| ());
    item(table, By::Mallory, "another's capture receipt of this very item", "capture.principal", foreign);
    table.refused(By::Nobody, "its signature twice", &["receipt.repeated_signer"], Document::Receipt(twice));
    table.refused(
        By::Mallory,
        "another goes on with the log",
        &["receipt.other_chain"],
        Document::Receipts(alien),
    );
    table.refused(By::Owner, "two entries without a head", &["receipt.head"], Document::Receipts(headless));
}

fn wholes(table: &mut Table, owner: &Signer) {
    let fixture = table.fixture;
    let future = with(&fixture.answer, |answer| {
        let receipt = &mut answer["items"][0]["integrity"]["capture_receipt"];
        receipt["timestamp"] = json!("2027-05-01T12:00:00.000Z");
        sign_receipt(receipt, owner);
        seal(answer, owner);
    });
    table.refused(By::Owner, "a capture receipt of the future", &["item.future"], Document::Answer(future));

    // An answer without items, so that nothing but its receipt is there to be another's.
    let empty = |change: &dyn Fn(&mut Value), signer: &Signer| {
        with(&fixture.answer, |answer| {
            answer["items"] = json!([]);
            change(&mut answer["receipt"]);
            seal(answer, signer);
            let receipt = &mut answer["receipt"];
            receipt.as_object_mut().unwrap().remove("provenance_tags_out");
            seal_receipt(answer, signer);
        })
    };
    let grant = fixture.grant.clone();
    let mallory = &fixture.mallory;
    let theirs = empty(
        &|receipt| {
            receipt["principal_did"] = json!(mallory.did());
            receipt["tool_did"] = json!(mallory.did());
        },
        mallory,
    );
    let name = "an answer of another's that names this grant";
    table.refused(By::Mallory, name, &["grant.granter"], Document::Under(theirs, grant.clone()));
    let elsewhere = empty(&|receipt| receipt["agent_did"] = json!(mallory.did()), owner);
    let name = "an answer to another that names this grant";
    table.refused(By::Owner, name, &["grant.grantee"], Document::Under(elsewhere, grant.clone()));
    let long = with(&grant, |grant| {
        grant["filter"]["labels_any"] = (0..257).map(|n| json!(n.to_string())).collect();
        sign(grant, owner);
    });
    table.refused(
        By::Owner,
        "a list of 257 labels",
        &["grant.limit", "grant.document"],
        Document::Grant(long),
    );
    let wordy = with(&grant, |grant| {
        grant["filter"]["labels_any"] = json!(["x".repeat(257)]);
        sign(grant, owner);
    });
    table.refused(
        By::Owner,
        "a label of 257 characters",
        &["grant.limit", "grant.document"],
        Document::Grant(wordy),
    );

    // A signature over a header that is none of ours.
    let headed = |more: Value| {
        with(&grant, |grant| {
            grant.as_object_mut().unwrap().remove("signature");
            let mut header = json!({"alg": "EdDSA", "kid": owner.kid()});
            header.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            let header = B64.encode(strict::canonical(&header).unwrap());
            let payload = B64.encode(strict::canonical(grant).unwrap());
            let value = owner.sign(format!("{header}.{payload}").as_bytes());
            grant["signature"] = json!(format!("{header}..{value}"));
        })
    };
    let any = &["grant.document"];
    for (name, more) in [
        ("signed as HS256", json!({"alg": "HS256"})),
        ("a header with crit", json!({"crit": ["exp"]})),
        ("a header with jku", json!({"jku": "https://mallory.example/keys"})),
    ] {
        table.refused(By::Owner, name, any, Document::Grant(headed(more)));
    }

    // A bundle of the owner's with a chain of receipts of another's, and of the future.
    let chain = |signer: &Signer, change: &dyn Fn(&mut Value)| {
        let mut lines = vec![fixture.bundle[0].clone()];
        lines[0]["items"] = json!(0);
        let mut previous = json!("genesis");
        for mut entry in fixture.log[..2].iter().cloned() {
            entry["previous_receipt_hash"] = previous;
            change(&mut entry);
            sign_receipt(&mut entry, signer);
            let mut unsigned = entry.clone();
            unsigned.as_object_mut().unwrap().remove("signatures");
            previous = json!(Hash::of(&strict::canonical(&unsigned).unwrap()));
            lines.push(json!({"type": "receipt", "receipt": entry}));
        }
        Document::Bundle(sealed(fixture, &lines))
    };
    let alien = chain(mallory, &|entry| entry["principal_did"] = json!(mallory.did()));
    table.refused(By::Owner, "receipts of another", &["bundle.receipt_principal"], alien);
    let late = chain(owner, &|entry| entry["timestamp"] = json!("2027-05-01T12:00:00.000Z"));
    table.refused(By::Owner, "receipts of the future", &["bundle.future"], late);

    // A grant that was passed on wider than it was.
    let parent = with(&grant, |grant| {
        grant["delegable"] = json!({"max_depth": 1});
        sign(grant, owner);
    });
    let child = with(&parent, |grant| {
        grant["parent"] = json!(Hash::of_canonical(&parent).unwrap());
        grant["grant_id"] = json!("mgr_01KQHPHXG0DS1TGWW4FJ6XZRRG");
        grant["grantee"] = json!(mallory.did());
        grant["max_items"] = json!(501);
        remove(grant, "", "delegable");
        remove(grant, "", "status");
        sign(grant, &fixture.grantee);
    });
    let mut header = fixture.bundle[0].clone();
    header["items"] = json!(0);
    let lines = [header, json!({"type": "grant", "grant": parent}), json!({"type": "grant", "grant": child})];
    let wider = Document::Bundle(sealed(fixture, &lines));
    table.refused(By::Mallory, "a grant that was passed on wider", &["grant.wider"], wider);
    let theirs = with(&fixture.deletion, |receipt| {
        receipt["tool_did"] = json!(mallory.did());
        sign_deletion(receipt, mallory);
    });
    let name = "another's word on the owner's memory";
    table.refused(By::Mallory, name, &["deletion.tool"], Document::Deletion(theirs));
    let held = with(&fixture.deletion, |receipt| {
        receipt["scope"]["cascade"]["held"] = receipt["scope"]["cascade"]["named"].clone();
        receipt["exceptions"] = json!([{"reason": "legal_hold", "retention_until": "2026-06-01"}]);
        sign_deletion(receipt, owner);
    });
    let name = "held and destroyed, with an exception";
    table.refused(By::Owner, name, &["deletion.cascade"], Document::Deletion(held));
    let garbled = with(&fixture.deletion, |receipt| {
        let named = receipt["scope"]["items"][0].as_str().unwrap().split('@').next().unwrap().to_owned();
        receipt["scope"]["items"][0] = json!(format!("{named}@sha256:x"));
        sign_deletion(receipt, owner);
    });
    table.refused(By::Owner, "a commitment that is none", &["deletion.items"], Document::Deletion(garbled));

    let mut bytes = sealed(fixture, &fixture.bundle);
    let start = bytes[..bytes.len() - 1].iter().rposition(|byte| *byte == b'\n').unwrap() + 1;
    let mut trailer = strict::parse(&bytes[start..bytes.len() - 1]).unwrap();
    trailer.as_object_mut().unwrap().remove("type");
    sign(&mut trailer, &impostor(owner));
    trailer["type"] = json!("trailer");
    bytes.truncate(start);
    bytes.extend(strict::canonical(&trailer).unwrap());
    bytes.push(b'\n');
    let name = "a trailer by another key of the owner's name";
    table.refused(By::Mallory, name, &["bundle.signature"], Document::Bundle(bytes));
}

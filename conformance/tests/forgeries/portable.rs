//! The forgeries, and what holds, as portable cases (`conformance/cases/proof-*.json`): JSON in, a verdict and the name of
//! the check that refuses out. `OAP_WRITE_CASES=1` writes the files anew;
//! `grants/tests/portable` judges what they hold.

use crate::entities;
use crate::fixture::Fixture;
use crate::forge::sign;
use crate::judge::{Holds, KINDS, documents, judge, path};
use crate::patch;
use crate::table::{By, Document, Table, Verdict};
use oap_identity::{DidDocument, Hash, Signer};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};

/// A case as it is made: a document with the reader's documents, where they are others than the file's.
struct Made {
    kind: &'static str,
    id: String,
    by: By,
    input: Value,
    documents: Option<Vec<Value>>,
}

fn input(document: &Document) -> (&'static str, Value) {
    let lines = |bytes: &[u8]| {
        let line = |line: &[u8]| json!(String::from_utf8(line.to_vec()).unwrap());
        bytes.split_inclusive(|byte| *byte == b'\n').map(line).collect::<Vec<_>>()
    };
    match document {
        Document::Item(item) => ("items", item.clone()),
        Document::Answer(answer) => ("answers", answer.clone()),
        Document::Under(answer, grant) => ("answers-under-grants", json!({"answer": answer, "grant": grant})),
        Document::Bundle(bytes) => ("bundles", json!(lines(bytes))),
        Document::Grant(grant) => ("grants", grant.clone()),
        Document::Receipt(receipt) => ("receipts", receipt.clone()),
        Document::Receipts(entries) => ("receipt-chains", json!(entries)),
        Document::Deletion(receipt) => ("deletion-receipts", receipt.clone()),
        Document::List(list) => ("status-lists", json!(list)),
    }
}

/// A DID document as it is published.
fn published(document: &DidDocument) -> Value {
    let id = document.id();
    let kids: Vec<_> = document.keys().iter().map(oap_identity::VerificationKey::kid).collect();
    let methods = document.keys().iter().map(|key| {
        let mut method = json!({
            "id": key.kid(), "type": "JsonWebKey2020", "controller": id, "publicKeyJwk": key.public().jwk(),
        });
        if let Some(at) = key.retired_at() {
            method["expires"] = json!(at);
        }
        if let Some(at) = key.revoked_at() {
            method["revoked"] = json!(at);
        }
        method
    });
    let mut published = json!({
        "id": id, "verificationMethod": methods.collect::<Vec<_>>(), "assertionMethod": kids,
        "authentication": kids,
    });
    if let Some(url) = document.service("OAPRevocationStatus") {
        let service = format!("{id}#OAPRevocationStatus");
        published["service"] =
            json!([{"id": service, "type": "OAPRevocationStatus", "serviceEndpoint": url}]);
    }
    published
}

#[tokio::test]
async fn portable_cases_are_written() {
    if std::env::var_os("OAP_WRITE_CASES").is_some() {
        write().await;
    }
}

async fn write() {
    let fixture = Fixture::new().await;
    let mut table = Table::new(&fixture);
    crate::items::forge(&mut table);
    crate::answers::forge(&mut table);
    crate::bundles::forge(&mut table);
    crate::receipts::forge(&mut table);
    crate::documents::forge(&mut table);
    crate::reseals::forge(&mut table);
    crate::alone::forge(&mut table);
    entities::forge(&mut table).await;
    let mut made: Vec<Made> = Vec::new();
    let mut bases: BTreeMap<&str, Vec<Value>> = BTreeMap::new();
    for base in table.bases() {
        let (kind, input) = input(&base);
        let known = bases.entry(kind).or_default();
        let id = format!("genuine-{}", known.len() + 1);
        known.push(input.clone());
        made.push(Made { kind, id, by: By::Nobody, input, documents: None });
    }
    for forgery in table.forgeries() {
        let (kind, input) = input(&forgery.document);
        let id = forgery.name.split_once(": ").map_or(forgery.name.as_str(), |(_, name)| name).to_owned();
        if let Verdict::Named("genuine") = forgery.verdict {
            bases.entry(kind).or_default().push(input.clone());
        }
        made.push(Made { kind, id, by: forgery.by, input, documents: None });
    }
    delegations(&fixture, &mut made, &mut bases);
    keys(&fixture, &mut made, &table.bases());
    for (kind, about) in KINDS {
        let bases = bases.remove(kind).unwrap_or_default();
        file(&fixture, kind, about, &bases, made.iter().filter(|case| case.kind == kind));
    }
}

fn file<'m>(
    fixture: &Fixture,
    kind: &str,
    about: &str,
    bases: &[Value],
    made: impl Iterator<Item = &'m Made>,
) {
    let mut cases = Vec::new();
    let mut ids = BTreeSet::new();
    for case in made {
        let patches = bases.iter().map(|base| patch::between(base, &case.input));
        let (base, patch) =
            patches.enumerate().min_by_key(|(_, patch)| json!(patch).to_string().len()).unwrap();
        assert_eq!(patch::apply(&bases[base], &patch), case.input);
        let reader = match &case.documents {
            Some(others) => Holds { documents: documents(others), now: fixture.now() },
            None => Holds { documents: fixture.reader.documents.clone(), now: fixture.now() },
        };
        let found = judge(kind, &case.input, &reader);
        let by = match case.by {
            By::Nobody => "nobody",
            By::Mallory => "mallory",
            By::Owner => "owner",
        };
        let mut id = case.id.clone();
        while !ids.insert(id.clone()) {
            id.push('\'');
        }
        let mut written =
            json!({"id": id, "valid": found.is_ok(), "by": by, "base": base.to_string(), "patch": patch});
        match found {
            Err(check) => written["check"] = json!(check),
            Ok(named) => {
                if let Some(name) = named.first() {
                    written["names"] = json!(name);
                }
            }
        }
        if let Some(documents) = &case.documents {
            written["documents"] = json!(documents);
        }
        cases.push(written);
    }
    let readers: Vec<Value> = fixture.reader.documents.values().map(|d| published(d)).collect();
    let bases: serde_json::Map<String, Value> =
        bases.iter().enumerate().map(|(n, base)| (n.to_string(), base.clone())).collect();
    // One case a line: a change of one shows as a change of one.
    let rows: Vec<String> = cases.iter().map(Value::to_string).collect();
    let text = format!(
        "{{\n\"about\": {},\n\"now\": {},\n\"documents\": {},\n\"bases\": {},\n\"cases\": [\n{}\n]\n}}\n",
        json!(about),
        json!(fixture.now()),
        json!(readers),
        json!(bases),
        rows.join(",\n")
    );
    std::fs::write(path(kind), text).unwrap();
}

/// Every kind of document, with the owner's key retired or revoked before and after, missing, or another.
fn keys(fixture: &Fixture, made: &mut Vec<Made>, bases: &[Document]) {
    let owner = crate::common::PRINCIPAL;
    let all: Vec<Value> = fixture.reader.documents.values().map(|d| published(d)).collect();
    let place = all.iter().position(|document| document["id"] == owner).unwrap();
    let with = |change: &dyn Fn(&mut Value)| {
        let mut all = all.clone();
        change(&mut all[place]);
        all
    };
    let marked = |marker: &'static str, at: &'static str| {
        move |d: &mut Value| d["verificationMethod"][0][marker] = json!(at)
    };
    let stranger = crate::common::agent(77);
    let changes: [(&str, Vec<Value>); 8] = [
        ("key retired later", with(&marked("expires", "2026-06-01T00:00:00.000Z"))),
        ("key retired before", with(&marked("expires", "2026-05-01T00:00:00.000Z"))),
        ("key revoked later", with(&marked("revoked", "2026-06-01T00:00:00.000Z"))),
        ("key revoked before", with(&marked("revoked", "2026-05-01T00:00:00.000Z"))),
        (
            "key of another name",
            with(&|d| {
                let kid = format!("{owner}#key-2");
                d["verificationMethod"][0]["id"] = json!(kid);
                d["assertionMethod"] = json!([kid]);
                d["authentication"] = json!([kid]);
            }),
        ),
        (
            "another key of the same name",
            with(&|d| {
                d["verificationMethod"][0]["publicKeyJwk"] = stranger.public().jwk();
            }),
        ),
        ("no keys", with(&|d| d["verificationMethod"] = json!([]))),
        ("no document", {
            let mut all = all.clone();
            all.remove(place);
            all
        }),
    ];
    for (number, base) in bases.iter().enumerate() {
        let (kind, input) = input(base);
        for (name, documents) in &changes {
            let id = format!("{name}, {number}");
            let (input, documents) = (input.clone(), Some(documents.clone()));
            made.push(Made { kind, id, by: By::Nobody, input, documents });
        }
    }
    let receipt = fixture.answer["receipt"].clone();
    for (name, documents) in &changes {
        let (id, documents) = ((*name).to_owned(), Some(documents.clone()));
        made.push(Made { kind: "receipts", id, by: By::Nobody, input: receipt.clone(), documents });
    }
}

/// A grant, passed on: within, wider in one member each, and broken.
fn delegations(fixture: &Fixture, made: &mut Vec<Made>, bases: &mut BTreeMap<&'static str, Vec<Value>>) {
    let keys = fixture.world.gateway.keys();
    let (owner, grantee, mallory) = (keys.current(), &fixture.grantee, &fixture.mallory);
    let signed = |mut grant: Value, signer: &Signer| {
        sign(&mut grant, signer);
        grant
    };
    let mut parent = fixture.grant.clone();
    parent["filter"] = json!({
        "labels_any": ["case", "tea"], "labels_all": ["case"], "exclude_labels": ["gone"], "kinds": ["fact"],
        "min_confidence": 0.5, "captured_after": "2026-05-01T00:00:00.000Z",
        "captured_before": "2026-06-01T00:00:00.000Z", "sensitivities": ["public", "internal"],
        "subject_entity_ids": ["ent_ann", "ent_bob"],
    });
    parent["delegable"] = json!({"max_depth": 2});
    parent["budget"] = json!({"queries": 5, "epsilon": 1});
    parent["purpose_codes"] = json!(["briefing"]);
    let parent = signed(parent, owner);
    let hash = |grant: &Value| json!(Hash::of_canonical(grant).unwrap());
    let mut child = parent.clone();
    child["parent"] = hash(&parent);
    child["grantee"] = json!(mallory.did());
    child["grant_id"] = json!("mgr_01KQHPHXG0DS1TGWW4FJ6XZRRG");
    child["delegable"] = json!({"max_depth": 1});
    child.as_object_mut().unwrap().remove("status");
    let child = signed(child, grantee);
    let pair = |grant: &Value, ancestors: &[&Value]| json!({"grant": grant, "ancestors": ancestors});
    let base = pair(&child, &[&parent]);
    let mut push = |id: &str, by: By, input: Value| {
        made.push(Made { kind: "delegations", id: id.to_owned(), by, input, documents: None });
    };
    push("as narrow as it was", By::Nobody, base.clone());
    push("the first one alone", By::Nobody, pair(&parent, &[]));
    push("without its ancestor", By::Nobody, pair(&child, &[]));
    push("under another", By::Nobody, pair(&child, &[&fixture.grant]));
    push("an ancestor too many", By::Nobody, pair(&parent, &[&parent]));
    push("an ancestor seven times", By::Nobody, pair(&child, &[&parent; 7]));
    let mut third = child.clone();
    third["parent"] = hash(&child);
    third["grantee"] = json!("did:web:third.example");
    third["grant_id"] = json!("mgr_01KQHPHXG0DS1TGWW4FJ6XZRRH");
    third.as_object_mut().unwrap().remove("delegable");
    let third = signed(third, mallory);
    push("passed on twice", By::Nobody, pair(&third, &[&parent, &child]));
    push("ancestors in another order", By::Nobody, pair(&third, &[&child, &parent]));
    let mut again = third.clone();
    again["delegable"] = json!({"max_depth": 1});
    push("passed on further than allowed", By::Mallory, pair(&signed(again, mallory), &[&parent, &child]));
    type Change = (&'static str, Value);
    let changes: [(&str, Vec<Change>); 30] = [
        ("fewer items", vec![("/max_items", json!(5))]),
        ("a lower level", vec![("/trust_level", json!(1))]),
        ("an earlier end", vec![("/expires_at", json!("2026-05-10T00:00:00.000Z"))]),
        ("more items", vec![("/max_items", json!(501))]),
        ("a later end", vec![("/expires_at", json!("2026-09-10T00:00:00.000Z"))]),
        ("another profile", vec![("/redaction_profile", json!("oap.profile.projection.full.v1"))]),
        ("another basis", vec![("/lawful_basis", json!("contract"))]),
        ("another granter", vec![("/granter", json!("did:web:mallory.example#personal"))]),
        ("another scope", vec![("/granter", json!("did:web:user.example#work"))]),
        ("one operation more", vec![("/operations", json!(["query", "export"]))]),
        ("embeddings", vec![("/embedding_access", json!(true))]),
        ("a bearer", vec![("/bearer", json!(true))]),
        ("as deep", vec![("/delegable/max_depth", json!(2))]),
        ("more queries", vec![("/budget/queries", json!(6))]),
        ("more epsilon", vec![("/budget/epsilon", json!(2))]),
        ("no budget", vec![("/budget", json!({}))]),
        ("another purpose code", vec![("/purpose_codes", json!(["briefing", "training"]))]),
        ("no purpose code", vec![("/purpose_codes", json!([]))]),
        ("a label more", vec![("/filter/labels_any", json!(["case", "tea", "private"]))]),
        ("fewer labels", vec![("/filter/labels_any", json!(["case"]))]),
        ("a required label less", vec![("/filter/labels_all", json!([]))]),
        ("a required label more", vec![("/filter/labels_all", json!(["case", "tea"]))]),
        ("an excluded label less", vec![("/filter/exclude_labels", json!([]))]),
        ("a kind more", vec![("/filter/kinds", json!(["fact", "preference"]))]),
        ("less sure", vec![("/filter/min_confidence", json!(0.25))]),
        ("older items", vec![("/filter/captured_after", json!("2026-04-01T00:00:00.000Z"))]),
        ("newer items", vec![("/filter/captured_before", json!("2026-07-01T00:00:00.000Z"))]),
        ("more sensitive", vec![("/filter/sensitivities", json!(["public", "confidential"]))]),
        ("a subject more", vec![("/filter/subject_entity_ids", json!(["ent_ann", "ent_eve"]))]),
        (
            "another scope in the filter",
            vec![("/filter/kinds", json!(["fact"])), ("/filter/scopes", json!(["work"]))],
        ),
    ];
    for (name, members) in changes {
        let mut grant = child.clone();
        for (pointer, value) in members {
            let (parent, member) = pointer.rsplit_once('/').unwrap();
            grant.pointer_mut(parent).unwrap()[member] = value;
        }
        let grant = signed(grant, grantee);
        push(name, By::Mallory, pair(&grant, &[&parent]));
    }
    let mut low = parent.clone();
    low["trust_level"] = json!(2);
    let low = signed(low, owner);
    let mut higher = child.clone();
    higher["parent"] = hash(&low);
    higher["trust_level"] = json!(3);
    push("a higher level", By::Mallory, pair(&signed(higher, grantee), &[&low]));
    for filter in [
        "labels_any",
        "kinds",
        "min_confidence",
        "captured_after",
        "captured_before",
        "labels_all",
        "exclude_labels",
        "sensitivities",
        "subject_entity_ids",
    ] {
        let mut grant = child.clone();
        grant["filter"].as_object_mut().unwrap().remove(filter);
        push(&format!("without {filter}"), By::Mallory, pair(&signed(grant, grantee), &[&parent]));
    }
    let mut begins = child.clone();
    begins["issued_at"] = json!("2026-04-30T00:00:00.000Z");
    push("beginning earlier", By::Mallory, pair(&signed(begins, grantee), &[&parent]));
    push("signed by its own grantee", By::Mallory, pair(&signed(child.clone(), mallory), &[&parent]));
    push("signed by the granter", By::Owner, pair(&signed(child.clone(), owner), &[&parent]));
    let mut closed = parent.clone();
    closed.as_object_mut().unwrap().remove("delegable");
    let closed = signed(closed, owner);
    let mut under = child.clone();
    under["parent"] = hash(&closed);
    under.as_object_mut().unwrap().remove("delegable");
    push("of one that is not delegable", By::Mallory, pair(&signed(under, grantee), &[&closed]));
    bases.insert("delegations", vec![base]);
}

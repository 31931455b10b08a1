//! The portable cases (`conformance/cases/`): our own verifiers run the files that other implementations run.
//!
//! `OAP_WRITE_CASES=1 cargo test --workspace --test cases` writes them anew from a gateway with a fixed seed and clock.

#[path = "../../gateway/tests/common/mod.rs"]
mod common;

use common::*;
use oap_grants::grant::UnverifiedGrant;
use oap_identity::signed::sign_document;
use oap_identity::{DidDocument, json as strict};
use oap_memory::{evidence, receipt};
use serde_json::{Value, json};
use std::path::PathBuf;

const FILES: [&str; 6] = ["grants", "grants-signed-anew", "items", "receipts", "chains", "projections"];

fn path(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("cases").join(format!("{name}.json"))
}

/// Whether our verifiers take an input, or why not.
fn judge(kind: &str, input: &Value, document: &DidDocument) -> Result<(), String> {
    match kind {
        "grants" | "grants-signed-anew" => {
            let grant = UnverifiedGrant::parse(input.clone()).map_err(|e| e.to_string())?;
            let issued = grant.unverified().issued_at;
            let signed = grant.verify(document, issued).map_err(|e| e.to_string())?;
            if signed.grant().granter.principal != *document.id() {
                return Err("signed by another than its granter".to_owned());
            }
            Ok(())
        }
        "items" => {
            let item = evidence::item(input, document).and_then(evidence::VerifiedItem::proved);
            item.map(drop).map_err(|e| e.to_string())
        }
        "receipts" => receipt::verify(input, document).map(drop).map_err(|e| e.to_string()),
        "chains" => {
            let entries = input.as_array().cloned().unwrap_or_default();
            receipt::verify_chain(entries, document).map(drop).map_err(|e| e.to_string())
        }
        other => panic!("{other}"),
    }
}

/// What a grantee sees of a captured item: the members that a profile decides on.
async fn visible(item: &Value, profile: &str, level: u64) -> Value {
    let world = World::new().await;
    world.capture(std::slice::from_ref(item)).await;
    let grantee = agent(7);
    let mut draft = world.draft(&grantee);
    draft["filter"] = json!({"labels_any": ["case"]});
    draft["redaction_profile"] = json!(profile);
    draft["trust_level"] = json!(level);
    let answer = world.ask(&grantee, &draft, &json!({"query": ""})).await;
    let members = ["kind", "content", "labels", "subject_entity_ids"];
    let shown = answer["items"][0].as_object().unwrap();
    Value::Object(members.iter().filter_map(|&m| Some((m.to_owned(), shown.get(m)?.clone()))).collect())
}

#[tokio::test]
async fn every_case_is_judged_as_its_file_says() {
    if std::env::var_os("OAP_WRITE_CASES").is_some() {
        write().await;
    }
    let (mut valid, mut invalid) = (0, 0);
    for name in FILES {
        let file = strict::parse(&std::fs::read(path(name)).unwrap()).unwrap();
        let did = file["document"]["id"].as_str().unwrap().parse().unwrap();
        let document = DidDocument::parse(file["document"].to_string().as_bytes(), &did).unwrap();
        let mut ids = std::collections::BTreeSet::new();
        for case in file["cases"].as_array().unwrap() {
            let id = case["id"].as_str().unwrap();
            assert!(ids.insert(id.to_owned()), "{name}: {id} stands twice");
            assert!(!case["why"].as_str().unwrap().is_empty());
            let found = if name == "projections" {
                let input = &case["input"];
                let (profile, level) = (input["profile"].as_str().unwrap(), input["level"].as_u64().unwrap());
                let shown = visible(&input["item"], profile, level).await;
                if shown == input["visible"] { Ok(()) } else { Err(format!("it shows {shown}")) }
            } else {
                judge(name, &case["input"], &document)
            };
            assert_eq!(found.is_ok(), case["valid"] == true, "{name}/{id}: {found:?}");
            *(if found.is_ok() { &mut valid } else { &mut invalid }) += 1;
        }
    }
    assert!(valid + invalid >= 100 && invalid >= 2 * valid, "{valid} valid, {invalid} invalid");
}

struct Cases(Vec<Value>);

impl Cases {
    fn valid(&mut self, id: &str, why: &str, input: &Value) {
        self.0.push(json!({"id": id, "valid": true, "why": why, "input": input}));
    }

    fn invalid(&mut self, id: &str, why: &str, base: &Value, change: impl FnOnce(&mut Value)) {
        let mut input = base.clone();
        change(&mut input);
        assert_ne!(&input, base, "{id} changes nothing");
        self.0.push(json!({"id": id, "valid": false, "why": why, "input": input}));
    }

    /// A member set to something else, each a case of its own.
    fn changed(&mut self, base: &Value, why: &str, members: &[(&str, Value)]) {
        for (pointer, value) in members {
            self.invalid(&format!("changed{}", pointer.replace('/', "-")), why, base, |v| {
                *v.pointer_mut(pointer).unwrap_or_else(|| panic!("{pointer}")) = value.clone();
            });
        }
    }

    fn write(self, name: &str, about: &str, document: &Value) {
        let file = json!({"about": about, "document": document, "cases": self.0});
        std::fs::create_dir_all(path(name).parent().unwrap()).unwrap();
        std::fs::write(path(name), serde_json::to_string_pretty(&file).unwrap() + "\n").unwrap();
    }
}

/// Another character at a place of a text, so that it stays the same alphabet.
fn flip(value: &mut Value, at: usize) {
    let mut text: Vec<u8> = value.as_str().unwrap().bytes().collect();
    text[at] = if text[at] == b'A' { b'B' } else { b'A' };
    *value = json!(String::from_utf8(text).unwrap());
}

fn header(kid: &str, more: &str) -> String {
    use base64::Engine;
    let text = format!(r#"{{"alg":"EdDSA","kid":"{kid}"{more}}}"#);
    base64::engine::general_purpose::URL_SAFE_NO_PAD.encode(text)
}

async fn write() {
    let world = World::new().await;
    let document = serde_json::to_value(&world.gateway.published().did).unwrap();
    let ids = world
        .capture(&[
            note("Tea at nine, write to ann@b.example", &["case"]),
            note("The budget is 400", &["case"]),
        ])
        .await;
    let correct = json!({"item": {"content": {"text": "Tea at ten, write to ann@b.example"}}});
    world.owner("POST", &format!("/oap/owner/items/{}/correct", ids[0]), Some(&correct)).await.ok();
    let grantee = agent(7);
    let mut draft = world.draft(&grantee);
    draft["filter"] = json!({"labels_any": ["case"]});
    draft["trust_level"] = json!(2);
    let grant = world.issue(&draft).await;
    let answer = world.ask(&grantee, &draft, &json!({"query": ""})).await;
    grants(&grant, &document);
    grants_signed_anew(&grant);
    let item = |id: &str| {
        answer["items"].as_array().unwrap().iter().find(|item| item["item_id"] == *id).unwrap().clone()
    };
    items(&item(&ids[0]), &item(&ids[1]), &document);
    let log = world.owner("GET", "/oap/audit?chain=personal&from=0&limit=1000", None).await.ok();
    receipts(&log["receipts"].as_array().unwrap().clone(), &document);
    projections(&document).await;
}

fn grants(grant: &Value, document: &Value) {
    let mut cases = Cases(Vec::new());
    cases.valid("good", "as it was issued", grant);
    let mut members: Vec<_> = grant.as_object().unwrap().iter().collect();
    members.reverse();
    let reordered: serde_json::Map<String, Value> =
        members.into_iter().map(|(k, v)| (k.clone(), v.clone())).collect();
    cases.valid("members-in-another-order", "the signature is over the canonical form", &json!(reordered));
    cases.changed(
        grant,
        "the member is signed",
        &[
            ("/grantee", json!("did:key:z6MkhaXgBZDvotDkL5257faiztiGiC2QtKLGpbnnEGta2doK")),
            ("/filter", json!({})),
            ("/filter/labels_any/0", json!("other")),
            ("/max_items", json!(501)),
            ("/expires_at", json!("2036-05-31T12:00:00.000Z")),
            ("/issued_at", json!("2026-04-01T12:00:00.000Z")),
            ("/redaction_profile", json!("oap.profile.projection.full.v1")),
            ("/trust_level", json!(4)),
            ("/purpose", json!("another")),
            ("/bearer", json!(true)),
            ("/embedding_access", json!(true)),
            ("/operations", json!(["query", "export"])),
            ("/lawful_basis", json!("contract")),
            ("/grant_id", json!("mgr_01KQHPHXG0DS1TGWW4FJ6XZRRG")),
            ("/granter", json!("did:web:somebody.example#personal")),
            ("/status/status_list/idx", json!(1)),
            ("/version", json!(2)),
        ],
    );
    for (id, why, value) in [
        ("unknown-member", "a reader must not ignore what it does not know", json!("x")),
        ("null-member", "null is no absent member", Value::Null),
    ] {
        cases.invalid(id, why, grant, |g| g["more"] = value);
    }
    cases.invalid("unknown-filter-field", "an unknown condition fails closed", grant, |g| {
        g["filter"]["colour"] = json!(["red"])
    });
    cases.invalid("filter-null", "a filter is an object", grant, |g| g["filter"] = Value::Null);
    cases.invalid("no-filter", "a grant without filter would grant everything", grant, |g| {
        drop(g.as_object_mut().unwrap().remove("filter"))
    });
    cases.invalid("negative-max-items", "at least one item", grant, |g| g["max_items"] = json!(-1));
    cases
        .invalid("unsigned", "no signature", grant, |g| drop(g.as_object_mut().unwrap().remove("signature")));
    cases.invalid("empty-signature", "no signature", grant, |g| g["signature"] = json!(""));
    cases.invalid("signature-flipped", "another signature", grant, |g| {
        let at = g["signature"].as_str().unwrap().len() - 10;
        flip(&mut g["signature"], at);
    });
    cases.invalid("signature-cut", "63 bytes are none", grant, |g| {
        let text = g["signature"].as_str().unwrap();
        g["signature"] = json!(text[..text.len() - 2]);
    });
    let tail = grant["signature"].as_str().unwrap().split("..").nth(1).unwrap().to_owned();
    let kid = format!("{}#key-1", document["id"].as_str().unwrap());
    for (id, why, header) in [
        ("header-crit", "crit is never understood", header(&kid, r#","crit":["b64"]"#)),
        ("header-b64", "the payload is always encoded", header(&kid, r#","b64":false"#)),
        (
            "header-jku",
            "keys come from the DID document alone",
            header(&kid, r#","jku":"https://evil.example""#),
        ),
        ("header-unknown-key", "no key of the granter", header("did:web:user.example#key-9", "")),
        ("header-other-signer", "another's key", header("did:web:evil.example#key-1", "")),
        ("header-none", "alg none is no signature", header(&kid, "").replace("FZERTQ", "Fub25l")),
    ] {
        cases.invalid(id, why, grant, |g| g["signature"] = json!(format!("{header}..{tail}")));
    }
    cases.invalid("payload-attached", "the payload is detached", grant, |g| {
        g["signature"] = json!(g["signature"].as_str().unwrap().replace("..", ".e30."));
    });
    cases.write(
        "grants",
        "Is this a grant that its granter signed? The key is in the document; the time is issued_at.",
        document,
    );
}

type Change = Box<dyn Fn(&mut Value)>;

/// Grants whose signature holds, so that nothing but the stated reason is against them.
fn grants_signed_anew(grant: &Value) {
    let granter = agent(8);
    let sign = |grant: &mut Value| {
        grant.as_object_mut().unwrap().remove("signature");
        sign_document(grant, &granter).unwrap();
    };
    let mut base = grant.clone();
    base["granter"] = json!(format!("{}#personal", granter.did()));
    sign(&mut base);
    let mut cases = Cases(Vec::new());
    cases.valid("good", "a granter whose DID is its key", &base);
    let without = |member: &'static str| move |g: &mut Value| drop(g.as_object_mut().unwrap().remove(member));
    let changes: Vec<(&str, &str, Change)> = vec![
        (
            "unknown-member",
            "a reader must not ignore what it does not know",
            Box::new(|g| g["more"] = json!("x")),
        ),
        (
            "unknown-filter-field",
            "an unknown condition fails closed",
            Box::new(|g| g["filter"]["colour"] = json!(["red"])),
        ),
        ("no-filter", "a grant without filter would grant everything", Box::new(without("filter"))),
        ("no-grantee", "a grant is for somebody", Box::new(without("grantee"))),
        ("no-expiry", "a grant ends", Box::new(without("expires_at"))),
        ("no-profile", "a grant projects", Box::new(without("redaction_profile"))),
        ("no-grant-id", "a grant has a name, to revoke it by", Box::new(without("grant_id"))),
        ("filter-null", "a filter is an object", Box::new(|g| g["filter"] = Value::Null)),
        ("filter-array", "a filter is an object", Box::new(|g| g["filter"] = json!([["case"]]))),
        ("labels-text", "labels are a list", Box::new(|g| g["filter"]["labels_any"] = json!("case"))),
        ("unknown-kind", "kinds are a closed list", Box::new(|g| g["filter"]["kinds"] = json!(["rumour"]))),
        (
            "unknown-operation",
            "operations are a closed list",
            Box::new(|g| g["operations"] = json!(["query", "write"])),
        ),
        (
            "unknown-basis",
            "lawful bases are a closed list",
            Box::new(|g| g["lawful_basis"] = json!("curiosity")),
        ),
        ("version-2", "version 1 is the one that is known", Box::new(|g| g["version"] = json!(2))),
        ("negative-max-items", "a count", Box::new(|g| g["max_items"] = json!(-1))),
        ("max-items-text", "a number", Box::new(|g| g["max_items"] = json!("500"))),
        ("max-items-fraction", "a whole number", Box::new(|g| g["max_items"] = json!(1.5))),
        ("level-5", "levels are 0 to 4", Box::new(|g| g["trust_level"] = json!(5))),
        ("no-time", "a time of RFC 3339", Box::new(|g| g["expires_at"] = json!("tomorrow"))),
        (
            "time-without-zone",
            "a time of RFC 3339",
            Box::new(|g| g["expires_at"] = json!("2026-05-31T12:00:00")),
        ),
        ("no-did", "a grantee is a DID", Box::new(|g| g["grantee"] = json!("ann@b.example"))),
        (
            "granter-without-scope",
            "a granter is a DID and a scope",
            Box::new(|g| {
                g["granter"] = json!(g["granter"].as_str().unwrap().split('#').next().unwrap());
            }),
        ),
        (
            "granter-another",
            "the key is another's than the granter's",
            Box::new(|g| g["granter"] = json!("did:web:user.example#personal")),
        ),
    ];
    for (id, why, change) in changes {
        cases.invalid(id, why, &base, |g| {
            change(g);
            sign(g);
        });
    }
    let document = json!({
        "@context": ["https://www.w3.org/ns/did/v1", "https://w3id.org/security/suites/jws-2020/v1"],
        "id": granter.did(),
        "verificationMethod": [{
            "id": granter.kid(), "type": "JsonWebKey2020", "controller": granter.did(),
            "publicKeyJwk": granter.public().jwk(),
        }],
        "assertionMethod": [granter.kid()], "authentication": [granter.kid()],
    });
    cases.write(
        "grants-signed-anew",
        "The same question, and every signature holds: what is wrong is in the content.",
        &document,
    );
}

fn items(item: &Value, other: &Value, document: &Value) {
    let mut cases = Cases(Vec::new());
    cases.valid("corrected", "a chain of two links; an e-mail address is hidden", item);
    cases.valid("captured", "a chain of one link", other);
    let links = |v: &mut Value, change: &dyn Fn(&mut Vec<Value>)| {
        change(v["integrity"]["chain"].as_array_mut().unwrap())
    };
    let jwt = |v: &mut Value, change: &dyn Fn(&mut Vec<String>)| {
        let sd_jwt = &mut v["integrity"]["sd_jwt"];
        let mut parts: Vec<String> = sd_jwt.as_str().unwrap().split('~').map(str::to_owned).collect();
        change(&mut parts);
        *sd_jwt = json!(parts.join("~"));
    };
    cases.changed(
        item,
        "the visible item is not what its disclosures show",
        &[
            ("/content/text", json!("Tea at noon")),
            ("/labels", json!(["case", "more"])),
            ("/kind", json!("preference")),
        ],
    );
    cases.changed(
        item,
        "it is another's, or another version, than the proof says",
        &[
            ("/item_id", other["item_id"].clone()),
            ("/owner_did", json!("did:web:evil.example")),
            ("/integrity/sd_jwt", other["integrity"]["sd_jwt"].clone()),
            ("/integrity/chain", other["integrity"]["chain"].clone()),
            ("/integrity/capture_receipt", other["integrity"]["capture_receipt"].clone()),
        ],
    );
    cases.invalid("content-added", "a member that nothing discloses", item, |v| {
        v["content"]["structured"] = json!({"a": 1})
    });
    cases.invalid("content-removed", "a disclosure that the item does not show", item, |v| {
        drop(v.as_object_mut().unwrap().remove("content"))
    });
    cases.invalid("disclosure-injected", "no digest asks for it", item, |v| {
        jwt(v, &|p| p.insert(1, "WyJhIiwiYiIsImMiXQ".to_owned()))
    });
    cases.invalid("disclosure-twice", "a disclosure stands once", item, |v| {
        jwt(v, &|p| p.insert(1, p[1].clone()))
    });
    cases.invalid("disclosure-left-out", "the item shows what is not disclosed", item, |v| {
        jwt(v, &|p| drop(p.remove(1)))
    });
    cases.invalid("disclosure-changed", "its digest is another", item, |v| {
        jwt(v, &|p| p[1] = format!("{}A", p[1]))
    });
    cases.invalid("disclosure-of-another", "its digest is not in this version", item, |v| {
        let foreign = other["integrity"]["sd_jwt"].as_str().unwrap().split('~').nth(1).unwrap().to_owned();
        jwt(v, &|p| p.insert(1, foreign.clone()));
    });
    cases.invalid("jwt-signature-cut", "an SD-JWT is signed", item, |v| {
        jwt(v, &|p| p[0] = p[0].rsplit_once('.').unwrap().0.to_owned() + ".")
    });
    cases.invalid("jwt-payload-flipped", "the payload is signed", item, |v| {
        let at = v["integrity"]["sd_jwt"].as_str().unwrap().find('.').unwrap() + 20;
        flip(&mut v["integrity"]["sd_jwt"], at);
    });
    cases.invalid("no-final-tilde", "the form of RFC 9901", item, |v| jwt(v, &|p| drop(p.pop())));
    cases.invalid("no-sd-jwt", "content without proof", item, |v| {
        drop(v["integrity"].as_object_mut().unwrap().remove("sd_jwt"))
    });
    cases.invalid("no-integrity", "content without proof", item, |v| {
        drop(v.as_object_mut().unwrap().remove("integrity"))
    });
    cases.invalid("no-capture-receipt", "nothing shows its capture", item, |v| {
        drop(v["integrity"].as_object_mut().unwrap().remove("capture_receipt"))
    });
    cases.invalid("chain-empty", "a chain begins with a capture", item, |v| links(v, &|l| l.clear()));
    cases.invalid("chain-tail-cut", "the SD-JWT is of a later version", item, |v| {
        links(v, &|l| drop(l.pop()))
    });
    cases
        .invalid("chain-head-cut", "a chain begins with genesis", item, |v| links(v, &|l| drop(l.remove(0))));
    cases.invalid("chain-reversed", "links stand in order", item, |v| links(v, &|l| l.reverse()));
    cases.invalid("chain-link-twice", "a link stands once", item, |v| links(v, &|l| l.push(l[1].clone())));
    cases.invalid("chain-spliced", "a link of another item", item, |v| {
        let foreign = other["integrity"]["chain"][0].clone();
        links(v, &|l| l[0] = foreign.clone());
    });
    cases.invalid("link-signature-stripped", "every link is signed", item, |v| {
        links(v, &|l| drop(l[0].as_object_mut().unwrap().remove("signature")))
    });
    cases.invalid("link-signature-moved", "a signature of another link", item, |v| {
        links(v, &|l| l[0]["signature"] = l[1]["signature"].clone())
    });
    for (member, value) in [
        ("at", json!("2026-04-01T00:00:00.000Z")),
        ("event", json!("reseal")),
        ("seq", json!(7)),
        ("actor", json!("did:web:evil.example")),
        ("more", json!("x")),
    ] {
        cases.invalid(&format!("link-{member}"), "a link is signed whole", item, |v| {
            links(v, &|l| l[1][member] = value.clone())
        });
    }
    cases.write(
        "items",
        "Is this item a part of what its owner captured? SD-JWT, visible item, chain, capture receipt.",
        document,
    );
}

fn receipts(log: &[Value], document: &Value) {
    // The owner's listing begins with the newest.
    let mut chain: Vec<Value> = log.to_vec();
    if chain.first().is_some_and(|entry| entry["previous_receipt_hash"] != "genesis") {
        chain.reverse();
    }
    let capture = chain.iter().find(|entry| entry["action_id"] == "memory.capture").unwrap();
    let mut cases = Cases(Vec::new());
    for (n, entry) in chain.iter().take(4).enumerate() {
        cases.valid(&format!("good-{n}"), "as it stands in the log", entry);
    }
    cases.changed(
        capture,
        "a receipt is signed whole",
        &[
            ("/receipt_id", json!("urn:oap:receipt:01KQHPHXG0VM6CZ04X0K9R7V07")),
            ("/agent_did", json!("did:web:evil.example")),
            ("/action_id", json!("memory.query")),
            ("/timestamp", json!("2026-04-01T00:00:00.000Z")),
            ("/output_hash", json!(oap_identity::Hash::of(b"x"))),
            ("/previous_receipt_hash", json!("genesis")),
            ("/provenance_tags_out/0", json!("mem_01KQHPHXG02CW2XQJR2ECTJ8N7@sha256:0")),
            ("/policy_decisions/0/outcome", json!("block")),
            ("/principal_did", json!("did:web:evil.example")),
            ("/signatures/0/by", json!("did:web:evil.example#key-1")),
            ("/signatures/0/alg", json!("none")),
            ("/signatures/0/value", json!("AAAA")),
            ("/signatures", json!([])),
        ],
    );
    cases.invalid("no-signatures", "a receipt is signed", capture, |r| {
        drop(r.as_object_mut().unwrap().remove("signatures"))
    });
    cases.invalid("unknown-member", "what is there is signed", capture, |r| r["more"] = json!(1));
    cases.write("receipts", "Is this a receipt that its principal signed?", document);

    let whole = json!(chain);
    let mut cases = Cases(Vec::new());
    cases.valid("whole", "from genesis to its head", &whole);
    let entries = |v: &mut Value, change: &dyn Fn(&mut Vec<Value>)| change(v.as_array_mut().unwrap());
    cases.invalid("empty", "a chain has its boot entry", &whole, |v| entries(v, &|e| e.clear()));
    cases.invalid("tail-cut", "it does not end with a head", &whole, |v| entries(v, &|e| drop(e.pop())));
    cases.invalid("head-cut", "it does not begin with genesis", &whole, |v| {
        entries(v, &|e| drop(e.remove(0)))
    });
    cases.invalid("middle-cut", "the hash of the entry before is another", &whole, |v| {
        entries(v, &|e| drop(e.remove(2)))
    });
    cases.invalid("pair-cut", "a receipt and its head, taken out", &whole, |v| {
        entries(v, &|e| drop(e.drain(2..4)))
    });
    cases.invalid("swapped", "entries stand in order", &whole, |v| entries(v, &|e| e.swap(1, 2)));
    cases.invalid("reversed", "the oldest first", &whole, |v| entries(v, &|e| e.reverse()));
    cases.invalid("entry-twice", "an entry stands once", &whole, |v| {
        entries(v, &|e| e.insert(2, e[1].clone()))
    });
    cases.invalid("signature-stripped", "every entry is signed", &whole, |v| {
        entries(v, &|e| e[2]["signatures"] = json!([]))
    });
    cases.invalid("signature-moved", "a signature of another entry", &whole, |v| {
        entries(v, &|e| e[2]["signatures"] = e[1]["signatures"].clone())
    });
    cases.invalid(
        "changed-and-stripped",
        "an entry without signature that says something else",
        &whole,
        |v| {
            entries(v, &|e| {
                e[2]["agent_did"] = json!("did:web:evil.example");
                e[2]["signatures"] = json!([]);
            })
        },
    );
    cases.write(
        "chains",
        "Is this the principal's chain of receipts, whole? A cut tail must show.",
        document,
    );
}

async fn projections(document: &Value) {
    let fact = json!({
        "kind": "fact", "labels": ["case"],
        "content": {"text": "Call me at +49 30 901820 or write to ann@b.example. My key is AKIAIOSFODNN7EXAMPLE."},
    });
    let contact = json!({
        "kind": "fact", "labels": ["case"],
        "content": {"structured": {
            "entity_type": "oap.entity.contact", "names": {"given": "Ann", "family": "Example"},
            "channels": [
                {"type": "email", "value": "ann@b.example", "primary": true},
                {"type": "phone", "value": "+4930901820", "primary": true},
            ],
            "affiliations": [{"organization": "Example", "role": "architect"}],
        }},
    });
    let mut cases = Cases(Vec::new());
    for (name, item, profile) in [
        ("fact", &fact, "oap.profile.projection.memory.v1"),
        ("contact", &contact, "oap.profile.projection.contact.v1"),
    ] {
        let mut all = Vec::new();
        for level in 0..=4 {
            all.push(visible(item, profile, level).await);
        }
        for (level, shown) in all.iter().enumerate() {
            let input = json!({"item": item, "profile": profile, "level": level, "visible": shown});
            cases.valid(&format!("{name}-{level}"), "what the profile's table says", &input);
            for (other, more) in all.iter().enumerate() {
                if more != shown {
                    let why = if other > level {
                        "it shows more than the level allows"
                    } else {
                        "it hides what the level shows"
                    };
                    cases.invalid(&format!("{name}-{level}-as-{other}"), why, &input, |v| {
                        v["visible"] = more.clone()
                    });
                }
            }
        }
    }
    cases.write(
        "projections",
        "An item as captured, a profile, a level: is this what a grantee sees of kind, content and labels?",
        document,
    );
}

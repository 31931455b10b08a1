//! `docs/bytes.md`: every formula of the page holds for its own examples, a changed example breaks one, our
//! verifiers take the examples, and what a gateway makes today has their form.
//!
//! `OAP_WRITE_DOCS=1 cargo test -p oap-conformance --test bytes` writes the examples anew.

#[path = "../../../gateway/tests/common/mod.rs"]
mod common;
mod formula;
mod maker;
mod page;
mod schemas;

use formula::Blocks;
use oap_exchange::bridge::SignedBridge;
use oap_grants::exchange::UnverifiedProof;
use oap_grants::grant::UnverifiedGrant;
use oap_grants::{dpop, status, token};
use oap_identity::{Did, DidDocument, Documents, Hash, Timestamp, json as strict};
use oap_memory::bundle::Reader;
use oap_memory::profile::Profile;
use oap_memory::receipt::ReceiptError;
use oap_memory::{evidence, receipt};
use serde_json::{Value, json};
use std::path::PathBuf;

fn path() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../docs/bytes.md")
}

fn page() -> (Blocks, Vec<String>) {
    page::read(&std::fs::read_to_string(path()).unwrap())
}

fn value(blocks: &Blocks, name: &str) -> Value {
    strict::parse(blocks[name].as_bytes()).unwrap_or_else(|e| panic!("{name}: {e}"))
}

fn at(blocks: &Blocks, name: &str, pointer: &str) -> String {
    value(blocks, name).pointer(pointer).and_then(Value::as_str).unwrap().to_owned()
}

fn broken<'a>(checks: &'a [String], blocks: &Blocks) -> Vec<&'a String> {
    checks.iter().filter(|line| formula::holds(line, blocks) != Some(true)).collect()
}

#[tokio::test]
async fn the_examples_have_the_form_that_is_made_today() {
    let text = std::fs::read_to_string(path()).unwrap();
    let (written, _) = page::read(&text);
    let made = maker::blocks().await;
    if std::env::var_os("OAP_WRITE_DOCS").is_some() {
        std::fs::write(path(), page::write(&text, &made)).unwrap();
        return;
    }
    let names = |blocks: &Blocks| blocks.keys().cloned().collect::<Vec<_>>();
    assert_eq!(names(&written), names(&made), "OAP_WRITE_DOCS=1 writes the examples anew");
    for (name, text) in &made {
        let forms = [text, &written[name]].map(|text| strict::parse(text.as_bytes()).ok());
        if let [Some(made), Some(written)] = forms {
            assert_eq!(page::shape(&made), page::shape(&written), "{name}: OAP_WRITE_DOCS=1 writes it anew");
        }
    }
}

#[test]
fn every_formula_of_the_page_holds() {
    let (blocks, checks) = page();
    assert!(checks.len() >= 60, "{}", checks.len());
    assert_eq!(broken(&checks, &blocks), Vec::<&String>::new());
}

#[test]
fn the_built_in_profiles_have_these_hashes() {
    let text = std::fs::read_to_string(path()).unwrap();
    let row = |profile: &Profile| {
        let name = profile.name().strip_prefix("oap.profile.projection.").unwrap();
        format!("| `{name}` | `{}` |", profile.hash())
    };
    let rows: Vec<String> = Profile::built_in().iter().map(row).collect();
    assert!(text.contains(&rows.join("\n")), "{}", rows.join("\n"));
}

/// What the formulas are not about: documents that nothing signs, and answers that repeat what is signed elsewhere.
const UNSIGNED: [&str; 6] =
    ["did-document", "did-document-rotated", "exchange-response", "state-response", "query", "any"];

#[test]
fn an_example_that_is_changed_breaks_a_formula() {
    let (blocks, checks) = page();
    for (name, text) in blocks.iter().filter(|(name, _)| !UNSIGNED.contains(&name.as_str())) {
        let about: Vec<String> = checks.iter().filter(|line| mentions(line, name)).cloned().collect();
        assert!(!about.is_empty(), "no formula is about {name}");
        let changes: Vec<String> = match strict::parse(text.as_bytes()) {
            Ok(value) => leaves(&value).iter().map(|leaf| changed(&value, leaf).to_string()).collect(),
            Err(_) => (0..text.len()).step_by(61).filter_map(|place| flipped(text, place)).collect(),
        };
        assert!(!changes.is_empty());
        for change in changes {
            let mut blocks = blocks.clone();
            blocks.insert(name.clone(), change.clone());
            assert!(!broken(&about, &blocks).is_empty(), "no formula sees this in {name}: {change}");
        }
    }
}

fn mentions(line: &str, name: &str) -> bool {
    line.split(|c: char| !(c.is_ascii_alphanumeric() || c == '-')).any(|word| word == name)
}

fn leaves(value: &Value) -> Vec<String> {
    let below = |name: String, value: &Value| {
        leaves(value).into_iter().map(move |rest| format!("/{name}{rest}")).collect::<Vec<_>>()
    };
    match value {
        Value::Object(members) => {
            members.iter().flat_map(|(name, v)| below(name.replace('/', "~1"), v)).collect()
        }
        Value::Array(elements) => {
            elements.iter().enumerate().flat_map(|(n, v)| below(n.to_string(), v)).collect()
        }
        _ => vec![String::new()],
    }
}

fn changed(value: &Value, leaf: &str) -> Value {
    let mut value = value.clone();
    if let Some(place) = value.pointer_mut(leaf) {
        *place = match &*place {
            // In the middle, so that no padding bits are hit.
            Value::String(text) => json!(flipped(text, text.len() / 2).unwrap_or_else(|| format!("{text}x"))),
            Value::Number(number) => json!(number.as_f64().unwrap_or_default() + 1.0),
            Value::Bool(yes) => json!(!yes),
            _ => json!("x"),
        };
    }
    strict::parse(&strict::canonical(&value).unwrap()).unwrap()
}

fn flipped(text: &str, place: usize) -> Option<String> {
    let mut bytes = text.as_bytes().to_vec();
    let byte = bytes.get_mut(place).filter(|byte| byte.is_ascii_alphanumeric())?;
    *byte = if *byte == b'A' { b'B' } else { b'A' };
    String::from_utf8(bytes).ok()
}

#[test]
fn our_verifiers_take_the_examples() {
    let (blocks, _) = page();
    let owner: Did = common::PRINCIPAL.parse().unwrap();
    let document = DidDocument::parse(blocks["did-document"].as_bytes(), &owner).unwrap();
    let key_of = |seed: u8| {
        let signer = common::agent(seed);
        let key = oap_identity::VerificationKey::new(signer.kid().clone(), *signer.public());
        DidDocument::new(signer.did().clone(), vec![key])
    };
    let grantee = key_of(7);
    evidence::answer(&value(&blocks, "answer"), &document).unwrap();
    for name in blocks.keys().filter(|name| name.starts_with("receipt-")) {
        let verified = receipt::verify(&value(&blocks, name), &document);
        // A head that another receipt of its group follows stands in its chain alone.
        match name.as_str() {
            "receipt-boot-head" => assert!(matches!(verified, Err(ReceiptError::Unsigned(0)))),
            _ => drop(verified.unwrap()),
        }
    }
    let time = |name: &str, pointer: &str| at(&blocks, name, pointer).parse::<Timestamp>().unwrap();
    let grant = |name: &str, document: &DidDocument| {
        let grant = UnverifiedGrant::parse(value(&blocks, name)).unwrap();
        grant.verify(document, time(name, "/issued_at")).unwrap()
    };
    let (parent, child) = (grant("grant", &document), grant("child-grant", &grantee));
    assert_eq!(child.grant().parent, Some(parent.hash()));
    let seconds = |name: &str| Timestamp::from_seconds(value(&blocks, name)["iat"].as_i64().unwrap());
    for (name, endpoint) in [
        ("grant-proof", "https://user.example/oap/memory/grant".to_owned()),
        ("state-proof", format!("https://user.example/oap/memory/grant/{}", parent.grant().grant_id)),
    ] {
        let now = seconds(&format!("{name}-payload"));
        UnverifiedProof::parse(&blocks[name])
            .unwrap()
            .verify(&grantee, &endpoint, parent.hash(), now)
            .unwrap();
    }
    let (claims, _) =
        token::check(&blocks["token"], &document, common::ORIGIN, seconds("token-payload")).unwrap();
    assert_eq!(claims.grant_hash, parent.hash());
    let request = dpop::Request { method: "POST", url: "https://user.example/oap/memory/query" };
    let now = seconds("dpop-proof-payload");
    let proof = dpop::check(&[&blocks["dpop-proof"]], request, &blocks["token"], now).unwrap();
    assert_eq!(claims.cnf.unwrap().jkt, proof.jkt);
    let list = |name: &str| {
        let place = value(&blocks, name)["status"]["status_list"]["idx"].as_u64().unwrap() as u32;
        let address = "https://user.example/oap/memory/status";
        status::is_revoked(&blocks["status-list"], place, address, &document, seconds("status-list-payload"))
    };
    assert_eq!((list("grant"), list("revoked-grant")), (Ok(false), Ok(true)));
    SignedBridge::verify(value(&blocks, "bridge"), &document).unwrap();
    let mut reader = Reader::default();
    for line in blocks["bundle"].lines() {
        reader.read(line.as_bytes()).unwrap();
    }
    reader.finish(&document).unwrap();
    let rotated = DidDocument::parse(blocks["did-document-rotated"].as_bytes(), &owner).unwrap();
    let first = rotated.key(&format!("{owner}#key-1").parse().unwrap()).unwrap();
    assert!(first.retired_at().is_some() && first.revoked_at().is_some());
    assert!(document.key_of(rotated.keys()[0].kid()).is_none());
    assert_eq!(Hash::of(b"").to_string().len(), 71);
}

//! The forger's tools: everything that a signature covers can be signed anew.

use crate::fixture::Fixture;
use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD as B64};
use oap_identity::signed::{sign_document, sign_jwt};
use oap_identity::{Hash, Signer, json as strict};
use oap_memory::answer::{answer_bytes, output_hash};
use oap_memory::bundle::{Line, Tally};
use oap_memory::commitment::TYP;
use serde_json::{Map, Value, json};

/// A salt of 16 bytes.
pub const SALT: &str = "AAAAAAAAAAAAAAAAAAAAAA";

/// The document with one change.
pub fn with(base: &Value, change: impl FnOnce(&mut Value)) -> Value {
    let mut document = base.clone();
    change(&mut document);
    assert_ne!(document, *base, "nothing was changed");
    document
}

pub fn set(document: &mut Value, pointer: &str, value: Value) {
    *document.pointer_mut(pointer).unwrap_or_else(|| panic!("{pointer}")) = value;
}

pub fn remove(document: &mut Value, parent: &str, member: &str) {
    document.pointer_mut(parent).unwrap().as_object_mut().unwrap().remove(member).unwrap();
}

/// Signs a document with a detached JWS anew.
pub fn sign(document: &mut Value, signer: &Signer) {
    document.as_object_mut().unwrap().remove("signature");
    sign_document(document, signer).unwrap();
}

/// Signs a receipt anew, by its principal alone.
pub fn sign_receipt(receipt: &mut Value, signer: &Signer) {
    let mut unsigned = receipt.clone();
    unsigned.as_object_mut().unwrap().remove("signatures");
    unsigned.as_object_mut().unwrap().remove("anchors");
    let value = signer.sign(&strict::canonical(&unsigned).unwrap());
    receipt["signatures"] = json!([{"by": signer.kid(), "alg": "EdDSA", "value": value}]);
}

/// Chains entries of receipts anew: hashes and signatures.
pub fn rechain(entries: &mut [Value], signer: &Signer) {
    for number in 0..entries.len() {
        if number > 0 {
            let mut before = entries[number - 1].clone();
            remove(&mut before, "", "signatures");
            entries[number]["previous_receipt_hash"] = json!(Hash::of(&strict::canonical(&before).unwrap()));
        }
        sign_receipt(&mut entries[number], signer);
    }
}

/// Signs a Deletion Receipt anew.
pub fn sign_deletion(receipt: &mut Value, signer: &Signer) {
    receipt.as_object_mut().unwrap().remove("signature");
    let value = signer.sign(&strict::canonical(receipt).unwrap());
    receipt["signature"] = json!({"alg": "EdDSA", "kid": signer.kid(), "value": value});
}

/// Chains the links of an item anew from one on: numbers, hashes, signatures.
pub fn relink(item: &mut Value, from: usize, signer: &Signer) {
    let links = item["integrity"]["chain"].as_array_mut().unwrap();
    for number in from..links.len() {
        if number > 0 {
            links[number]["prev"] = json!(Hash::of_canonical(&links[number - 1]).unwrap());
        }
        sign(&mut links[number], signer);
    }
}

/// A link that follows the last one, unsigned.
pub fn next_link(item: &Value, event: &str) -> Value {
    let mut link = item["integrity"]["chain"].as_array().unwrap().last().unwrap().clone();
    link["seq"] = json!(link["seq"].as_u64().unwrap() + 1);
    link["event"] = json!(event);
    link
}

/// The item with a link more.
pub fn and_then(item: &Value, event: &str, signer: &Signer) -> Value {
    with(item, |item| {
        let mut link = next_link(item, event);
        link["actor"] = json!(signer.did());
        let links = item["integrity"]["chain"].as_array_mut().unwrap();
        links.push(link);
        let last = links.len() - 1;
        relink(item, last, signer);
    })
}

/// Signs an answer anew: tags and hash of its receipt, its receipt, its envelope.
pub fn seal(answer: &mut Value, signer: &Signer) {
    let items = answer["items"].as_array().unwrap().clone();
    let tag = |item: &Value| {
        let last = item["integrity"]["chain"].as_array().unwrap().last().unwrap().clone();
        json!(format!("{}@{}", last["item_id"].as_str().unwrap(), last["commitment"].as_str().unwrap()))
    };
    answer["receipt"]["provenance_tags_out"] = items.iter().map(tag).collect();
    let text = String::from_utf8(strict::canonical(&items).unwrap()).unwrap();
    let response_id = answer["response_id"].as_str().unwrap().parse().unwrap();
    answer["receipt"]["output_hash"] = json!(output_hash(&text, &response_id));
    seal_receipt(answer, signer);
}

/// The same, with tags and hash as they are.
pub fn seal_receipt(answer: &mut Value, signer: &Signer) {
    sign_receipt(&mut answer["receipt"], signer);
    seal_envelope(answer, signer);
}

/// The envelope alone.
pub fn seal_envelope(answer: &mut Value, signer: &Signer) {
    let value = signer.sign(&answer_bytes(answer).unwrap());
    answer["signature"] = json!({"alg": "EdDSA", "kid": signer.kid(), "value": value});
}

/// A bundle of these lines, with a trailer of the owner's.
pub fn sealed(fixture: &Fixture, lines: &[Value]) -> Vec<u8> {
    let lines: Vec<Vec<u8>> = lines.iter().map(|line| strict::canonical(line).unwrap()).collect();
    sealed_raw(fixture, &lines)
}

/// The same of lines as they are to stand.
pub fn sealed_raw(fixture: &Fixture, lines: &[Vec<u8>]) -> Vec<u8> {
    sealed_by(fixture, lines, fixture.world.gateway.keys().current())
}

/// The same with another's trailer.
pub fn sealed_by(fixture: &Fixture, lines: &[Vec<u8>], signer: &Signer) -> Vec<u8> {
    let id = fixture.bundle[0]["bundle_id"].as_str().unwrap().parse().unwrap();
    let mut tally = Tally::default();
    let mut bytes = Vec::new();
    for line in lines {
        let kind = |line: &[u8]| {
            let value = strict::parse(line).ok()?;
            Some(match value["type"].as_str()? {
                "item" => strict::from_value::<Line>(value).ok()?,
                "grant" => Line::Grant { grant: Value::Null },
                "receipt" => Line::Receipt { receipt: Value::Null },
                _ => return None,
            })
        };
        match kind(line) {
            Some(kind) => tally.add(&kind, line),
            None => tally.skip(line),
        }
        bytes.extend_from_slice(line);
        bytes.push(b'\n');
    }
    let trailer = tally.trailer(id, fixture.now()).sign(signer).unwrap();
    bytes.extend(oap_memory::bundle::write(&trailer).unwrap());
    bytes.push(b'\n');
    bytes
}

/// An SD-JWT taken apart.
#[derive(Clone)]
pub struct Opened {
    pub payload: Map<String, Value>,
    pub disclosures: Vec<Value>,
}

pub fn encode(disclosure: &Value) -> String {
    B64.encode(strict::canonical(disclosure).unwrap())
}

pub fn digest(disclosure: &Value) -> String {
    B64.encode(Hash::of(encode(disclosure).as_bytes()).as_bytes())
}

pub fn open(item: &Value) -> Opened {
    let text = item["integrity"]["sd_jwt"].as_str().unwrap();
    let (jwt, rest) = text.split_once('~').unwrap();
    let payload = B64.decode(jwt.split('.').nth(1).unwrap()).unwrap();
    let Value::Object(payload) = strict::parse(&payload).unwrap() else { panic!() };
    let parse = |text: &str| strict::parse(&B64.decode(text).unwrap()).unwrap();
    Opened { payload, disclosures: rest.split_terminator('~').map(parse).collect() }
}

impl Opened {
    /// The digests of the root.
    pub fn root(&mut self) -> &mut Vec<Value> {
        self.payload.get_mut("_sd").unwrap().as_array_mut().unwrap()
    }

    /// Puts a digest in another's place, and everything in order.
    pub fn swap(&mut self, old: &str, new: &str) {
        let root = self.root();
        let place = root.iter_mut().find(|digest| **digest == old).unwrap();
        *place = json!(new);
        root.sort_by(|a, b| a.as_str().cmp(&b.as_str()));
    }

    /// Conceals and discloses one more claim, in a decoy's place.
    pub fn add(&mut self, name: &str, value: Value) {
        let disclosure = json!([SALT, name, value]);
        let known: Vec<String> = self.disclosures.iter().map(digest).collect();
        let decoy = self.root().iter().find(|d| !known.iter().any(|k| *d == k)).unwrap().clone();
        self.swap(decoy.as_str().unwrap(), &digest(&disclosure));
        self.disclosures.push(disclosure);
    }

    /// Changes the disclosure of a claim of the root.
    pub fn change(&mut self, name: &str, change: impl FnOnce(&mut Value)) {
        let place = self.disclosures.iter().position(|d| d[1] == name && d.as_array().unwrap().len() == 3);
        let place = place.unwrap_or_else(|| panic!("{name}"));
        let old = digest(&self.disclosures[place]);
        change(&mut self.disclosures[place]);
        let new = digest(&self.disclosures[place]);
        self.swap(&old, &new);
    }

    pub fn text(&self, signer: &Signer) -> String {
        self.text_as(TYP, signer)
    }

    pub fn text_as(&self, typ: &'static str, signer: &Signer) -> String {
        let mut text = sign_jwt(signer, typ, &self.payload).unwrap() + "~";
        for disclosure in &self.disclosures {
            text += &encode(disclosure);
            text.push('~');
        }
        text
    }
}

/// Puts an SD-JWT into an item of one link, with the link and the capture receipt that commit to it.
pub fn commit(item: &mut Value, sd_jwt: &str, signer: &Signer) {
    let commitment = Hash::of(sd_jwt.split('~').next().unwrap().as_bytes());
    let integrity = &mut item["integrity"];
    integrity["sd_jwt"] = json!(sd_jwt);
    integrity["chain"][0]["commitment"] = json!(commitment);
    let id = integrity["chain"][0]["item_id"].as_str().unwrap().to_owned();
    let receipt = &mut integrity["capture_receipt"];
    receipt["output_hash"] = json!(commitment);
    receipt["provenance_tags_out"] = json!([format!("{id}@{commitment}")]);
    sign_receipt(receipt, signer);
    relink(item, 0, signer);
}

/// The item with its version taken apart, changed, and committed to anew.
pub fn recommitted(item: &Value, signer: &Signer, change: impl FnOnce(&mut Opened)) -> Value {
    let mut opened = open(item);
    change(&mut opened);
    with(item, |item| commit(item, &opened.text(signer), signer))
}

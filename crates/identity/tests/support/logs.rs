//! Logs of did:webvh, made as the specification says, independently of the code that reads them.

#![allow(dead_code, reason = "no test uses all of it")]

use oap_identity::{Did, Signer, Timestamp, json};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

/// When every log of these tests begins.
pub const BEGAN: Timestamp = Timestamp::from_seconds(1_770_000_000);

/// So many hours after the beginning.
pub fn hours(count: u64) -> Timestamp {
    BEGAN.plus(std::time::Duration::from_secs(count * 3600))
}

pub fn signer(seed: u8) -> Signer {
    Signer::did_key(&[seed; 32]).unwrap()
}

/// A public key in multibase form.
pub fn multikey(of: &Signer) -> String {
    of.did().as_str().strip_prefix("did:key:").unwrap().to_owned()
}

/// Bytes in base58btc, without a prefix.
fn base58(bytes: &[u8]) -> String {
    const DIGITS: &[u8] = b"123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz";
    // The number in base 58, its lowest digit first.
    let mut number: Vec<usize> = Vec::new();
    for byte in bytes {
        let mut carry = usize::from(*byte);
        for digit in &mut number {
            carry += *digit << 8;
            *digit = carry % 58;
            carry /= 58;
        }
        while carry > 0 {
            number.push(carry % 58);
            carry /= 58;
        }
    }
    let zeros = bytes.iter().take_while(|byte| **byte == 0).count();
    let digits = number.iter().rev().map(|digit| char::from(DIGITS[*digit]));
    std::iter::repeat_n('1', zeros).chain(digits).collect()
}

pub fn multihash(bytes: &[u8]) -> String {
    base58(&[&[0x12, 0x20], Sha256::digest(bytes).as_slice()].concat())
}

/// The proof of a document by a key.
pub fn proof(document: &Value, by: &Signer) -> Value {
    let mut proof = json!({
        "type": "DataIntegrityProof", "cryptosuite": "eddsa-jcs-2022", "verificationMethod": by.kid(),
        "created": "2026-02-02T00:00:00Z", "proofPurpose": "assertionMethod",
    });
    let signed = [
        Sha256::digest(json::canonical(&proof).unwrap()).as_slice(),
        Sha256::digest(json::canonical(document).unwrap()).as_slice(),
    ]
    .concat();
    proof["proofValue"] = format!("z{}", base58(&by.signature(&signed))).into();
    proof
}

/// The document of a DID with some keys, each under its fragment.
pub fn state(did: &str, keys: &[(&str, &Signer)]) -> Value {
    let methods: Vec<Value> = keys
        .iter()
        .map(|(fragment, key)| {
            json!({
                "id": format!("{did}#{fragment}"), "type": "Multikey", "controller": did,
                "publicKeyMultibase": multikey(key),
            })
        })
        .collect();
    json!({"id": did, "verificationMethod": methods})
}

/// A log, and the DID that it is of.
#[derive(Clone)]
pub struct Made {
    pub did: Did,
    pub lines: Vec<Value>,
}

impl Made {
    /// The first entry: a domain and path, what its parameters say beside method, SCID and the key that signs, and its keys.
    pub fn new(place: &str, more: &Value, keys: &[(&str, &Signer)], by: &Signer) -> Self {
        let mut parameters =
            json!({"method": "did:webvh:1.0", "scid": "{SCID}", "updateKeys": [multikey(by)]});
        for (name, value) in more.as_object().unwrap() {
            parameters[name] = value.clone();
        }
        let did = format!("did:webvh:{{SCID}}:{place}");
        let preliminary = json!({
            "versionId": "{SCID}", "versionTime": hours(0).to_string(), "parameters": parameters,
            "state": state(&did, keys),
        });
        Self::of(&preliminary, by)
    }

    /// The log whose first entry is made of this one, with its placeholders.
    pub fn of(preliminary: &Value, by: &Signer) -> Self {
        let scid = multihash(&json::canonical(preliminary).unwrap());
        let text = json::canonical_text(preliminary).unwrap().replace("{SCID}", &scid);
        let mut entry = json::parse(text.as_bytes()).unwrap();
        entry["versionId"] = format!("1-{}", multihash(text.as_bytes())).into();
        entry["proof"] = json!([proof(&entry, by)]);
        Self { did: entry["state"]["id"].as_str().unwrap().parse().unwrap(), lines: vec![entry] }
    }

    /// One more entry, so many hours after the beginning.
    pub fn update(&mut self, at: u64, parameters: &Value, keys: &[(&str, &Signer)], by: &Signer) {
        let state = state(self.did.as_str(), keys);
        self.push(at, parameters, state, &[by]);
    }

    /// The same with any document, signed by any number of keys.
    pub fn push(&mut self, at: u64, parameters: &Value, state: Value, by: &[&Signer]) {
        let mut entry = json!({
            "versionId": self.tip(), "versionTime": hours(at).to_string(), "parameters": parameters, "state": state,
        });
        let hash = multihash(&json::canonical(&entry).unwrap());
        entry["versionId"] = format!("{}-{hash}", self.lines.len() + 1).into();
        let proofs: Vec<Value> = by.iter().map(|by| proof(&entry, by)).collect();
        entry["proof"] = proofs.into();
        self.lines.push(entry);
    }

    /// The id of the last version.
    pub fn tip(&self) -> &str {
        self.lines.last().unwrap()["versionId"].as_str().unwrap()
    }

    /// `did.jsonl`.
    pub fn bytes(&self) -> Vec<u8> {
        self.lines.iter().flat_map(|line| format!("{line}\n").into_bytes()).collect()
    }
}

/// An element of `did-witness.json`: some witnesses approve of a version.
pub fn approved(version: &str, by: &[&Signer]) -> Value {
    let proofs: Vec<Value> = by.iter().map(|by| proof(&json!({"versionId": version}), by)).collect();
    json!({"versionId": version, "proof": proofs})
}

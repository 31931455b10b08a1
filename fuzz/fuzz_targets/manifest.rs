//! What a foreign gateway publishes.

#![no_main]

use libfuzzer_sys::fuzz_target;
use oap_identity::{DidDocument, Signer, VerificationKey, json};
use oap_manifest::check;

fuzz_target!(|data: &[u8]| {
    let Ok(value) = json::parse(data) else { return };
    let key = Signer::did_key(&[7; 32]).unwrap();
    let document = DidDocument::new(key.did().clone(), vec![VerificationKey::new(key.kid().clone(), *key.public())]);
    let _ = check::memory(&value, &document, "https://user.example");
    let _ = check::tool(&value, &value, &document);
});

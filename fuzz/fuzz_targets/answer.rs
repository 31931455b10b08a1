//! An answer, an item, receipts and a chain, as a grantee gets them from a gateway that may lie.

#![no_main]

use libfuzzer_sys::fuzz_target;
use oap_identity::{DidDocument, Signer, VerificationKey, json};
use oap_memory::{chain, evidence, receipt};

fuzz_target!(|data: &[u8]| {
    let Ok(value) = json::parse(data) else { return };
    let key = Signer::did_key(&[7; 32]).unwrap();
    let document =
        DidDocument::new(key.did().clone(), vec![VerificationKey::new(key.kid().clone(), *key.public())]);
    let _ = evidence::answer(&value, &document);
    let _ = evidence::item(&value, &document);
    let _ = receipt::verify(&value, &document);
    if let Some(values) = value.as_array() {
        let _ = chain::verify(values, &document);
    }
});

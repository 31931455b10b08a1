//! A Deletion Receipt, and a Conformance Receipt: as they come, and as somebody signed them who may say anything.

#![no_main]

use libfuzzer_sys::fuzz_target;
use oap_conformance::receipt;
use oap_identity::{DetachedSignature, DidDocument, Signer, Timestamp, VerificationKey, json};
use oap_memory::deletion;
use serde_json::{Value, json};

fuzz_target!(|data: &[u8]| {
    let Ok(value) = json::parse(data) else { return };
    let key = Signer::did_key(&[7; 32]).unwrap();
    let document =
        DidDocument::new(key.did().clone(), vec![VerificationKey::new(key.kid().clone(), *key.public())]);
    let now = Timestamp::from_seconds(1_777_636_800);
    let _ = deletion::verify(&value, &document, now);
    let _ = receipt::check(&value, &document, &[], now);
    let Value::Object(mut members) = value else { return };
    members.remove("signature");
    members.insert("principal_did".to_owned(), json!(key.did()));
    members.insert("tool_did".to_owned(), json!(key.did()));
    let Ok(bytes) = json::canonical(&members) else { return };
    members.insert("signature".to_owned(), json!(DetachedSignature::sign(&bytes, &key)));
    let _ = deletion::verify(&Value::Object(members), &document, now);
});

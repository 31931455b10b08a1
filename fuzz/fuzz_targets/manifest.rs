//! What a foreign gateway publishes.

#![no_main]

use libfuzzer_sys::fuzz_target;
use oap_identity::{DidDocument, Signer, Timestamp, VerificationKey, json};
use oap_manifest::card::UnverifiedCard;
use oap_manifest::{check, handover};

fuzz_target!(|data: &[u8]| {
    let key = Signer::did_key(&[7; 32]).unwrap();
    let _ = handover::read(data, key.did());
    let Ok(value) = json::parse(data) else { return };
    let document =
        DidDocument::new(key.did().clone(), vec![VerificationKey::new(key.kid().clone(), *key.public())]);
    let _ = check::memory(&value, &document, "https://user.example");
    let _ = check::tool(&value, &value, &document);
    if let Ok(card) = UnverifiedCard::read(value) {
        let _ = card.verify(&document, Timestamp::from_seconds(1_777_636_800));
    }
});

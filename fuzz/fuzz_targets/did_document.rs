//! A foreign DID document.

#![no_main]

use libfuzzer_sys::fuzz_target;
use oap_identity::{Did, DidDocument};

fuzz_target!(|data: &[u8]| {
    let did: Did = "did:web:user.example".parse().unwrap();
    if let Ok(document) = DidDocument::parse(data, &did) {
        assert_eq!(document.id(), &did);
    }
});

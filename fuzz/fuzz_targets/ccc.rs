//! A confidentiality context, and a bridge.

#![no_main]

use libfuzzer_sys::fuzz_target;
use oap_exchange::bridge::SignedBridge;
use oap_exchange::ccc::Ccc;
use oap_identity::{DidDocument, json};

fuzz_target!(|data: &[u8]| {
    let Ok(value) = json::parse(data) else { return };
    let _ = Ccc::parse(value.clone());
    let nobody = DidDocument::new("did:web:user.example".parse().expect("a DID"), Vec::new());
    assert!(SignedBridge::verify(value, &nobody).is_err(), "nobody signed it");
});

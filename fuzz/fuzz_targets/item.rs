//! An item from the wire, and its text in segments.

#![no_main]

use libfuzzer_sys::fuzz_target;
use oap_identity::{Timestamp, json};
use oap_memory::Body;
use oap_memory::item::Defaults;

fuzz_target!(|data: &[u8]| {
    let Ok(value) = json::parse(data) else { return };
    let principal = "did:web:user.example".parse().unwrap();
    let scope = "personal".parse().unwrap();
    let now = Timestamp::from_seconds(1_777_636_800);
    let _ = Body::parse(&value, &Defaults { principal: &principal, scope: &scope, now });
});

//! Strict JSON and its canonical form.

#![no_main]

use libfuzzer_sys::fuzz_target;
use oap_identity::json;

fuzz_target!(|data: &[u8]| {
    let Ok(value) = json::parse(data) else { return };
    // What was read can be written, and what was written reads the same; numbers beyond 2^53 are refused there.
    let Ok(bytes) = json::canonical(&value) else { return };
    let again = json::parse(&bytes).unwrap();
    assert_eq!(json::canonical(&again).unwrap(), bytes);
});

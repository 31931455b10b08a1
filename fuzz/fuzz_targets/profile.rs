//! A projection profile of the owner's own.

#![no_main]

use libfuzzer_sys::fuzz_target;
use oap_memory::Profile;

fuzz_target!(|data: &[u8]| {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let _ = Profile::parse(text);
});

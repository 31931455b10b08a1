//! A presentation, and what its disclosures show.

#![no_main]

use libfuzzer_sys::fuzz_target;
use oap_memory::sd_jwt::Presentation;

fuzz_target!(|data: &[u8]| {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let Ok(presentation) = Presentation::parse(text) else { return };
    let _ = presentation.reveal();
});

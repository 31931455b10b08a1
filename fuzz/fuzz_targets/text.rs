//! Detectors and terms: segments put together again are the text.

#![no_main]

use libfuzzer_sys::fuzz_target;
use oap_memory::detect::{People, segments};
use oap_memory::text::{Language, terms};

fuzz_target!(|data: &[u8]| {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let whole: String = segments(text, &People::new(["Anna Müller", "anna@mail.example"]))
        .iter()
        .map(|segment| segment.text.as_str())
        .collect();
    assert_eq!(whole, text);
    let _ = terms(text, Language::English);
    let _ = terms(text, Language::Neutral);
});

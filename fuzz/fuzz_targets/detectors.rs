//! Detectors over text of all scripts: nothing is lost, spans are in order and bounded, and an item made of the text is
//! accepted again as it was committed.

#![no_main]

use libfuzzer_sys::fuzz_target;
use oap_memory::detect::{People, max_spans, segments};

fuzz_target!(|data: &[u8]| {
    let text = String::from_utf8_lossy(data);
    // Contacts come from the same hands.
    let (words, text) = text.split_once('\0').unwrap_or(("Anna Müller", &text));
    let people = People::new(words.split('\n').take(8));
    let segments = segments(text, &people);
    let whole: String = segments.iter().map(|segment| segment.text.as_str()).collect();
    assert_eq!(whole, text);
    assert!(segments.iter().all(|segment| !segment.text.is_empty()));
    assert!(segments.windows(2).all(|pair| pair.iter().any(|segment| segment.class.is_some())));
    assert!(segments.iter().filter(|segment| segment.class.is_some()).count() <= max_spans(text.len()));
});

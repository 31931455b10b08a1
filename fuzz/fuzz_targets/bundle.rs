//! A bundle, line by line.

#![no_main]

use libfuzzer_sys::fuzz_target;
use oap_identity::DidDocument;
use oap_memory::bundle::{self, Line, Reader};
use oap_memory::commitment::Committed;
use oap_memory::evidence;

fuzz_target!(|data: &[u8]| {
    let nobody = DidDocument::new("did:web:user.example".parse().expect("a DID"), Vec::new());
    let mut reader = Reader::default();
    for bytes in data.split(|byte| *byte == b'\n') {
        let Ok(line) = reader.read(bytes) else { continue };
        // What was read can be written.
        let _ = bundle::write(&line);
        if let Line::Item(item) = line {
            let _ = evidence::item(&item.item, &nobody);
            if let Some(text) = item.item["integrity"]["sd_jwt"].as_str() {
                let _ = Committed::read(text);
            }
        }
    }
    assert!(reader.finish(&nobody).is_err(), "nobody signed it");
});

//! Every importer: the first byte says which format, by its place in `FORMATS`; 255 reads the rest as what it looks like.
//! Whatever the bytes, what comes out is records that are items, or says why not.

#![no_main]

use libfuzzer_sys::fuzz_target;
use oap_formats::import::{FORMATS, File, Found, HEAD, Mapping, recognise};
use std::ops::ControlFlow;

fuzz_target!(|data: &[u8]| {
    let Some((which, mut bytes)) = data.split_first() else { return };
    let format = match which {
        255 => recognise("fuzz.json", bytes.get(..HEAD).unwrap_or(bytes)),
        which => Some(FORMATS[usize::from(*which) % FORMATS.len()].format),
    };
    let Some(format) = format else { return };
    let mapping = Mapping::default();
    let mut left = 10_000;
    let file = File { name: "fuzz", bytes: &mut bytes, mapping: &mapping };
    (format.importer().read)(file, &mut |found| {
        if let Found::Record(record) = found {
            assert!(!record.source.is_empty() && record.item["kind"].is_string());
        }
        left -= 1;
        if left == 0 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    });
});

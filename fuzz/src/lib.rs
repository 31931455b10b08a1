//! What several targets have in common.

use oap_memory::import::{self, File, Format, Found, Mapping};
use std::ops::ControlFlow;

/// Reads bytes as a format. A source is never empty, and an item is an object.
pub fn import(format: Format, data: &[u8]) {
    let mut bytes = data;
    let mapping = Mapping::default();
    let mut left = 10_000;
    import::read(format, File { name: "fuzz", bytes: &mut bytes, mapping: &mapping }, &mut |found| {
        if let Found::Record(record) = found {
            assert!(!record.source.is_empty() && record.item["kind"].is_string());
        }
        left -= 1;
        if left == 0 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    });
    let _ = import::recognise("fuzz.json", &data[..data.len().min(import::HEAD)]);
}

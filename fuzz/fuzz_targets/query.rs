//! A query.

#![no_main]

use libfuzzer_sys::fuzz_target;
use oap_exchange::Query;
use oap_identity::json;

fuzz_target!(|data: &[u8]| {
    if let Ok(query) = json::parse_as::<Query>(data) {
        let _ = (query.check(), query.binding());
    }
});

//! The importer of okf: whatever the bytes, what comes out is records that are items, or says why not.

#![no_main]

use libfuzzer_sys::fuzz_target;
use oap_memory::import::Format;

fuzz_target!(|data: &[u8]| oap_fuzz::import(Format::Okf, data));

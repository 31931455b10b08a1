//! DIDs, key ids, scopes, typed ids, hashes, times: what parses writes itself back.

#![no_main]

use libfuzzer_sys::fuzz_target;
use oap_identity::{Did, GrantId, Hash, ItemId, Kid, ReceiptId, RequestId, ScopeId, ScopedDid, Timestamp};

fuzz_target!(|data: &[u8]| {
    let Ok(text) = std::str::from_utf8(data) else { return };
    fn back<T: std::str::FromStr + std::fmt::Display>(text: &str) {
        if let Ok(value) = text.parse::<T>() {
            assert_eq!(
                value.to_string().parse::<T>().map_err(|_| ()).unwrap().to_string(),
                value.to_string()
            );
        }
    }
    back::<Did>(text);
    back::<Kid>(text);
    back::<ScopeId>(text);
    back::<ScopedDid>(text);
    back::<ItemId>(text);
    back::<GrantId>(text);
    back::<ReceiptId>(text);
    back::<RequestId>(text);
    back::<Hash>(text);
    back::<Timestamp>(text);
    if let Ok(did) = text.parse::<Did>() {
        let _ = did.document_url();
    }
});

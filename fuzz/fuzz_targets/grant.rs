//! A grant, and the request that exchanges it.

#![no_main]

use libfuzzer_sys::fuzz_target;
use oap_grants::exchange::ExchangeRequest;
use oap_grants::grant::UnverifiedGrant;
use oap_identity::json;

fuzz_target!(|data: &[u8]| {
    let Ok(value) = json::parse(data) else { return };
    let _ = json::from_value::<ExchangeRequest>(value.clone());
    if let Ok(grant) = UnverifiedGrant::parse(value) {
        let _ = grant.kid();
    }
});

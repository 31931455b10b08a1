//! Tokens and proofs, before any key is known.

#![no_main]

use libfuzzer_sys::fuzz_target;
use oap_grants::dpop;
use oap_grants::exchange::UnverifiedProof as ExchangeProof;
use oap_identity::Timestamp;
use oap_identity::signed::UnverifiedJwt;

fuzz_target!(|data: &[u8]| {
    let Ok(text) = std::str::from_utf8(data) else { return };
    if let Ok(jwt) = UnverifiedJwt::parse(text, "oap-memory-grant+jwt") {
        let _ = (jwt.kid(), jwt.jwk());
    }
    let _ = ExchangeProof::parse(text);
    let target = dpop::Request { method: "POST", url: "https://user.example/oap/memory/query" };
    let _ = dpop::check(&[text], target, "token", Timestamp::from_seconds(1_777_636_800));
});

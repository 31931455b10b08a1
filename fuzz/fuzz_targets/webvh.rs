//! The log of a did:webvh, and the list of what its witnesses signed: the bytes before the first NUL, and those behind it.

#![no_main]

use libfuzzer_sys::fuzz_target;
use oap_identity::webvh::Log;
use oap_identity::{Did, Timestamp};

/// That of the log in `seeds/webvh`, of the method's test suite: the fuzzer begins with one that holds.
const DID: &str = "did:webvh:QmaaKkr6nu7uSTpjSfAr3r7xBezNZGpWu6Gwtgqr6A4ynC:example.com";

fuzz_target!(|data: &[u8]| {
    let did: Did = DID.parse().unwrap();
    let mut parts = data.splitn(2, |c| *c == 0);
    let (log, witnesses) = (parts.next().unwrap_or_default(), parts.next());
    let Ok(log) = Log::read(log, &did, Timestamp::from_seconds(1_793_491_200)) else { return };
    if let Ok(history) = log.proven(witnesses) {
        assert!(history.length() > 0 && history.document().id() == &did);
        assert!(history.has(history.length(), history.tip()));
    }
});

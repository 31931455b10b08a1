//! Letters of other gateways, before their senders are known, and the replies to letters.

#![no_main]

use libfuzzer_sys::fuzz_target;
use oap_federation::{Reply, UnverifiedLetter};
use oap_identity::{DidDocument, Hash, Timestamp};

fuzz_target!(|data: &[u8]| {
    let now = Timestamp::from_seconds(1_777_636_800);
    if let Ok(letter) = UnverifiedLetter::parse(data) {
        let from = letter.from().clone();
        let _ = letter.check(&from, now);
        let _ = letter.verify(&DidDocument::new(from, Vec::new()), now);
    }
    let Ok(did) = "did:web:user.example".parse() else { return };
    let _ = Reply::verify(data, Hash::of(b"letter"), &DidDocument::new(did, Vec::new()), now);
});

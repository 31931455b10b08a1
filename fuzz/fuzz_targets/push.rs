//! Pushes of other gateways: the headers that sign them, before their senders are known, and their bodies.

#![no_main]

use libfuzzer_sys::fuzz_target;
use oap_federation::push::{Push, REPLY_TAG, TAG};
use oap_identity::http_signature::{Covered, Headers, UnverifiedMessage};
use oap_identity::{DidDocument, Timestamp};

fuzz_target!(|data: &[u8]| {
    let _ = Push::parse(data);
    let Ok(text) = std::str::from_utf8(data) else { return };
    let mut lines = text.lines();
    let [digest, input, signature] =
        [lines.next(), lines.next(), lines.next()].map(Option::unwrap_or_default);
    let (digest, input, signature) = ([digest], [input], [signature]);
    let headers = Headers { digest: &digest, input: &input, signature: &signature };
    let _ = UnverifiedMessage::answer(headers, REPLY_TAG);
    let Ok(message) = UnverifiedMessage::request(headers, TAG) else { return };
    let document = DidDocument::new(message.kid().did().clone(), Vec::new());
    let covered = Covered::Request { method: "POST", target: "/oap/peer/push/x" };
    assert!(message.verify(covered, &document, Timestamp::from_seconds(1_777_636_800)).is_err());
});

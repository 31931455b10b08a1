//! The bounds of this room, as rows that `docs/limits.md` is generated from.

use crate::{grantee, wire};
use oap_identity::limits::Limit;
use std::time::Duration;

const fn bytes(name: &'static str, value: usize, applies_to: &'static str) -> Limit {
    Limit { name, value: value as u64, unit: "bytes", applies_to }
}

const fn seconds(name: &'static str, value: Duration, applies_to: &'static str) -> Limit {
    Limit { name, value: value.as_secs(), unit: "seconds", applies_to }
}

/// The bounds of this room.
pub const LIMITS: &[Limit] = &[
    seconds("wire::WHOLE", wire::WHOLE, "request and answer"),
    seconds("wire::WHOLE_BUNDLE", wire::WHOLE_BUNDLE, "request and bundle"),
    seconds("wire::WHOLE_OWN", wire::WHOLE_OWN, "a call of the owner's to the own gateway"),
    bytes("wire::MAX_ANSWER", wire::MAX_ANSWER, "an answer"),
    bytes("wire::MAX_BUNDLE", wire::MAX_BUNDLE, "a bundle"),
    Limit {
        name: "grantee::MAX_SIGNERS",
        value: grantee::MAX_SIGNERS as u64,
        unit: "DIDs",
        applies_to: "signers that an answer names; its own signature is checked before any is resolved",
    },
];

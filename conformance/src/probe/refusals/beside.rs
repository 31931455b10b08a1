//! Violations of the conditions on countersignatures and on a grantee's questions of the log.

use super::cases::{Cases, OneOrMore};
use super::jws::{changed, lifted, resign};
use super::rules::{AckRule, LogRule};
use oap_identity::Signer;
use serde_json::{Value, json};

/// A countersignature that is not right.
pub(super) struct Signed {
    pub(super) what: &'static str,
    /// The statuses, one of which it must have: who may not know of a receipt is told the same whatever is wrong (protocol section 8).
    pub(super) statuses: &'static [u16],
    pub(super) change: fn(&mut Value, &Signer, &[u8]),
}

const SHAPE: &[u16] = &[400];
const ABSENT: &[u16] = &[404];
/// No id at all: its shape is not right, or it is of nothing.
const NO_ID: &[u16] = &[400, 404];

const fn signed(
    what: &'static str,
    statuses: &'static [u16],
    change: fn(&mut Value, &Signer, &[u8]),
) -> Signed {
    Signed { what, statuses, change }
}

/// The violations of a condition. The bytes are those that are signed.
pub(super) fn of_ack(rule: AckRule) -> OneOrMore<Signed> {
    match rule {
        AckRule::Shape => OneOrMore::one(signed("no receipt_id", SHAPE, |body, _, _| {
            drop(body.as_object_mut().map(|b| b.remove("receipt_id")))
        }))
        .and(signed("no signature", SHAPE, |body, _, _| {
            drop(body.as_object_mut().map(|b| b.remove("signature")))
        }))
        .and(signed("an unknown member", SHAPE, |body, _, _| body["colour"] = json!("red")))
        .and(signed("a signature as text", SHAPE, |body, _, _| body["signature"] = json!("x"))),
        AckRule::Receipt => OneOrMore::one(signed("another receipt", ABSENT, |body, _, _| {
            body["receipt_id"] = json!("urn:oap:receipt:01HX2QFXR0Q4S8T9V3W7X2Y0Z1");
        }))
        .and(signed("no id of a receipt", NO_ID, |body, _, _| body["receipt_id"] = json!("receipt"))),
        AckRule::Signature => OneOrMore::one(signed("another signature", ABSENT, |body, _, _| {
            resign(&mut body["signature"]["value"], changed);
        }))
        .and(signed("S + L", ABSENT, |body, _, _| resign(&mut body["signature"]["value"], lifted)))
        .and(signed("another algorithm", NO_ID, |body, _, _| body["signature"]["alg"] = json!("none")))
        .and(signed("somebody else's in the agent's name", ABSENT, |body, stranger, bytes| {
            body["signature"]["value"] = json!(stranger.sign(bytes));
        })),
        AckRule::Agent => OneOrMore::one(signed("somebody else", ABSENT, |body, stranger, bytes| {
            body["signature"] = json!({"by": stranger.kid(), "alg": "EdDSA", "value": stranger.sign(bytes)});
        })),
    }
}

/// What becomes of a question that is not right.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Must {
    Refuse,
    /// Refuse, or answer with no receipt but the grantee's own.
    TellNothingMore,
}

/// The questions of a condition, each with what it must come to where it is not right.
pub(super) fn of_log(rule: LogRule) -> Cases<Must> {
    use Must::{Refuse, TellNothingMore};
    match rule {
        LogRule::Limit => Cases::breaking("limit=0", Refuse)
            .right("limit=1", Refuse)
            .right("limit=1000", Refuse)
            .broken("limit=1001", Refuse)
            .broken("limit=x", Refuse),
        LogRule::Since => {
            Cases::breaking("since=yesterday", Refuse).right("since=2026-01-01T00:00:00Z", Refuse)
        }
        LogRule::Owners => Cases::breaking("chain=personal", TellNothingMore)
            .broken("chain=personal&from=0", TellNothingMore)
            .broken("grantee=did:web:somebody.example", TellNothingMore),
    }
}

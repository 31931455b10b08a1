//! Violations of the conditions on a grant that is exchanged. Nobody but the granter can sign one.

use super::cases::Cases;
use super::jws::{changed, lifted, resign};
use super::rules::DocumentRule;
use oap_identity::Signer;
use oap_identity::signed::sign_document;
use serde_json::{Value, json};

/// What makes a grant another than was issued.
pub(super) type Change = fn(&mut Value, &Signer);

/// What is brought for a condition.
pub(super) enum Violation {
    /// A grant that is not as it was issued.
    Altered(Cases<Change>),
    /// A first grant with others beside it.
    Beside,
    /// A child without those above it, or with others.
    Chained,
    /// One that is not in force.
    NotInForce,
}

fn altered(what: &'static str, change: Change) -> Cases<Change> {
    Cases::breaking(what, change)
}

fn bare(grant: &mut Value) {
    grant.as_object_mut().map(|members| members.remove("signature"));
}

/// The violations of a condition.
pub(super) fn violations(rule: DocumentRule) -> Violation {
    Violation::Altered(match rule {
        DocumentRule::Signature => altered("no signature", |grant, _| bare(grant))
            .broken("another signature", |grant, _| resign(&mut grant["signature"], changed))
            .broken("S + L", |grant, _| resign(&mut grant["signature"], lifted))
            .broken("alg none", |grant, _| grant["signature"] = json!("eyJhbGciOiJub25lIn0.."))
            .broken("signed by somebody else", |grant, stranger| {
                bare(grant);
                let _ = sign_document(grant, stranger);
            }),
        DocumentRule::Members => altered("more items", |grant, _| {
            grant["max_items"] = json!(grant["max_items"].as_u64().unwrap_or(0) + 1)
        })
        .broken("a higher level", |grant, _| grant["trust_level"] = json!(4))
        .broken("no filter", |grant, _| grant["filter"] = json!({}))
        .broken("a later end", |grant, _| grant["expires_at"] = json!("2099-01-01T00:00:00.000Z"))
        .broken("another profile", |grant, _| {
            grant["redaction_profile"] = json!("oap.profile.projection.full.v1");
        })
        .broken("another purpose", |grant, _| grant["purpose"] = json!("another"))
        .broken("another operation", |grant, _| grant["operations"] = json!(["query", "export", "subscribe"]))
        .broken("bearer", |grant, _| grant["bearer"] = json!(true))
        .broken("delegable", |grant, _| grant["delegable"] = json!({"max_depth": 5}))
        .broken("purpose codes", |grant, _| grant["purpose_codes"] = json!(["travel"]))
        .broken("another basis", |grant, _| grant["lawful_basis"] = json!("contract"))
        .broken("another beginning", |grant, _| grant["not_before"] = json!("2020-01-01T00:00:00.000Z"))
        .broken("another scope", |grant, _| {
            let did = grant["granter"].as_str().and_then(|g| g.split('#').next()).unwrap_or_default();
            grant["granter"] = json!(format!("{did}#another"));
        })
        .broken("another id", |grant, _| grant["grant_id"] = json!("mgr_01HX2QFXR0Q4S8T9V3W7X2Y0Z1")),
        DocumentRule::Unknown => altered("an unknown member", |grant, _| grant["colour"] = json!("red"))
            .broken("an unknown member of the filter", |grant, _| grant["filter"]["colour"] = json!(["red"])),
        DocumentRule::Shape => altered("max_items as text", |grant, _| grant["max_items"] = json!("5"))
            .broken("a level of 5", |grant, _| grant["trust_level"] = json!(5))
            .broken("an end that is no time", |grant, _| grant["expires_at"] = json!("tomorrow"))
            .broken("a filter that is a list", |grant, _| grant["filter"] = json!([]))
            .broken("a list", |grant, _| *grant = json!([grant.clone()])),
        DocumentRule::Known => altered("issued by somebody else of their own", |grant, stranger| {
            bare(grant);
            grant["granter"] = json!(format!("{}#personal", stranger.did()));
            let _ = sign_document(grant, stranger);
        }),
        DocumentRule::Chain => return Violation::Beside,
        DocumentRule::Above => return Violation::Chained,
        DocumentRule::InForce => return Violation::NotInForce,
    })
}

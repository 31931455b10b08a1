//! Violations of the conditions on a grant that is exchanged. Nobody but the granter can sign one.

use super::jws::changed;
use super::rules::DocumentRule;
use oap_identity::Signer;
use oap_identity::signed::sign_document;
use serde_json::{Value, json};

/// A grant that is not as it was issued.
pub(super) struct Altered {
    pub(super) what: &'static str,
    pub(super) change: fn(&mut Value, &Signer),
}

const fn altered(what: &'static str, change: fn(&mut Value, &Signer)) -> Altered {
    Altered { what, change }
}

fn bare(grant: &mut Value) {
    grant.as_object_mut().map(|members| members.remove("signature"));
}

/// The violations of a condition; those of what is not in the document itself are made by the caller.
pub(super) fn violations(rule: DocumentRule) -> Vec<Altered> {
    match rule {
        DocumentRule::Signature => vec![
            altered("no signature", |grant, _| bare(grant)),
            altered("another signature", |grant, _| {
                let text = grant["signature"].as_str().unwrap_or_default();
                let (signed, signature) = text.rsplit_once('.').unwrap_or((text, ""));
                grant["signature"] = json!(format!("{signed}.{}", changed(signature)));
            }),
            altered("alg none", |grant, _| grant["signature"] = json!("eyJhbGciOiJub25lIn0..")),
            altered("signed by somebody else", |grant, stranger| {
                bare(grant);
                let _ = sign_document(grant, stranger);
            }),
        ],
        DocumentRule::Members => vec![
            altered("more items", |grant, _| {
                grant["max_items"] = json!(grant["max_items"].as_u64().unwrap_or(0) + 1)
            }),
            altered("a higher level", |grant, _| grant["trust_level"] = json!(4)),
            altered("no filter", |grant, _| grant["filter"] = json!({})),
            altered("a later end", |grant, _| grant["expires_at"] = json!("2099-01-01T00:00:00.000Z")),
            altered("another profile", |grant, _| {
                grant["redaction_profile"] = json!("oap.profile.projection.full.v1");
            }),
            altered("another purpose", |grant, _| grant["purpose"] = json!("another")),
            altered("another operation", |grant, _| {
                grant["operations"] = json!(["query", "export", "subscribe"])
            }),
            altered("bearer", |grant, _| grant["bearer"] = json!(true)),
            altered("delegable", |grant, _| grant["delegable"] = json!({"max_depth": 5})),
            altered("purpose codes", |grant, _| grant["purpose_codes"] = json!(["travel"])),
            altered("another basis", |grant, _| grant["lawful_basis"] = json!("contract")),
            altered("another beginning", |grant, _| grant["not_before"] = json!("2020-01-01T00:00:00.000Z")),
            altered("another scope", |grant, _| {
                let did = grant["granter"].as_str().and_then(|g| g.split('#').next()).unwrap_or_default();
                grant["granter"] = json!(format!("{did}#another"));
            }),
            altered("another id", |grant, _| grant["grant_id"] = json!("mgr_01HX2QFXR0Q4S8T9V3W7X2Y0Z1")),
        ],
        DocumentRule::Unknown => vec![
            altered("an unknown member", |grant, _| grant["colour"] = json!("red")),
            altered("an unknown member of the filter", |grant, _| grant["filter"]["colour"] = json!(["red"])),
        ],
        DocumentRule::Shape => vec![
            altered("max_items as text", |grant, _| grant["max_items"] = json!("5")),
            altered("a level of 5", |grant, _| grant["trust_level"] = json!(5)),
            altered("an end that is no time", |grant, _| grant["expires_at"] = json!("tomorrow")),
            altered("a filter that is a list", |grant, _| grant["filter"] = json!([])),
            altered("a list", |grant, _| *grant = json!([grant.clone()])),
        ],
        DocumentRule::Known => vec![altered("issued by somebody else of their own", |grant, stranger| {
            bare(grant);
            grant["granter"] = json!(format!("{}#personal", stranger.did()));
            let _ = sign_document(grant, stranger);
        })],
        // Of what stands beside it, and of its state.
        DocumentRule::Chain | DocumentRule::Above | DocumentRule::InForce => vec![],
    }
}

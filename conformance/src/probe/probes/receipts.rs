//! Receipts: that answers have them, that they prove possession, and whom they are shown.

use super::super::context::{Context, expect};
use super::super::{Failed, Probe, Severity};
use super::{items, note, owned, probe};
use crate::possession;
use oap_identity::{Hash, Timestamp};
use serde_json::json;
use std::collections::BTreeSet;

pub(super) fn all() -> Vec<Probe> {
    use Severity::{Critical, Major};
    vec![
        owned(
            "memory-exchange-possession",
            &["ME-12", "ME-02", "RC-1", "CO-22"],
            Critical,
            probe!(possession_sound),
        ),
        owned("receipt-chain", &["RC-1", "CO-23", "CH-02"], Major, probe!(chain)),
        owned("receipts-of-others", &["RC-2"], Critical, probe!(receipts_of_others)),
    ]
}

async fn possession_sound(context: &Context<'_>) -> Result<(), Failed> {
    let label = context.word();
    let made = context
        .capture(&[note("the first of two notes", &[&label]), note("another note", &[&label])])
        .await?;
    if let Some(first) = made.first() {
        let correct =
            json!({"do": "correct", "item_id": first, "item": {"content": {"text": "the first, corrected"}}});
        context.owner(correct).await?;
    }
    let session = context.granted(&label, 2).await?;
    let mut answers = Vec::new();
    for query in ["note", "corrected", ""] {
        answers.push(context.answer(&session, &json!({"query": query})).await?);
    }
    expect(answers.iter().any(|answer| !items(answer).is_empty()), || "the grant shows nothing".to_owned())?;
    let audit = context.get_as(&session, "/oap/audit").await?;
    let audit = audit.json()["receipts"].as_array().cloned().unwrap_or_default();
    let document = context.document().await?;
    possession::of_all(&answers, &audit, &session.grant, &[], session.grantee.did(), &document)
        .map(drop)
        .map_err(|unsound| Failed::Wrong(unsound.to_string()))
}

/// Every receipt has a place of its own in a chain: no two follow the same one, and none is older than the one before.
/// What stands between two that a grantee sees it does not see.
async fn chain(context: &Context<'_>) -> Result<(), Failed> {
    let label = context.word();
    context.capture(&[note("a note", &[&label])]).await?;
    let session = context.granted(&label, 2).await?;
    let (mut ids, mut followed, mut last) = (BTreeSet::new(), BTreeSet::new(), None);
    for query in ["", "note", "nothing", ""] {
        let answer = context.answer(&session, &json!({"query": query})).await?;
        let receipt = &answer["receipt"];
        let id = receipt["receipt_id"].as_str().unwrap_or_default().to_owned();
        expect(ids.insert(id), || "two answers have the same receipt".to_owned())?;
        let previous = receipt["previous_receipt_hash"].as_str().unwrap_or_default().to_owned();
        expect(previous == "genesis" || previous.parse::<Hash>().is_ok(), || {
            format!("previous_receipt_hash is {previous:?}")
        })?;
        expect(followed.insert(previous), || "two receipts follow the same one".to_owned())?;
        let at: Option<Timestamp> = receipt["timestamp"].as_str().and_then(|at| at.parse().ok());
        expect(at.is_some() && at >= last, || "a receipt is older than the one before it".to_owned())?;
        last = at;
    }
    Ok(())
}

async fn receipts_of_others(context: &Context<'_>) -> Result<(), Failed> {
    let label = context.word();
    context.capture(&[note("a note", &[&label])]).await?;
    let (one, other) = (context.stranger(), context.stranger());
    let draft = context.draft(&one, &label, 2);
    let first = context.session(one, draft).await?;
    let draft = context.draft(&other, &label, 2);
    let second = context.session(other, draft).await?;
    context.answer(&first, &json!({"query": ""})).await?;
    context.answer(&second, &json!({"query": ""})).await?;
    let listing = context.get_as(&second, "/oap/audit").await?.json();
    let receipts = listing["receipts"].as_array().map(Vec::as_slice).unwrap_or_default();
    expect(!receipts.is_empty(), || "a grantee does not see its own receipts".to_owned())?;
    let own = receipts.iter().all(|receipt| receipt["agent_did"] == second.grantee.did().as_str());
    expect(own, || "a grantee sees receipts that do not name it".to_owned())
}

//! Receipts: that answers have them, that they prove possession, and whom they are shown.

use super::super::context::{Context, expect};
use super::super::{Failed, Probe, Severity};
use super::{items, note, owned, probe};
use crate::possession;
use oap_identity::{Hash, Timestamp, json as strict};
use oap_memory::receipt::verify_chain;
use serde_json::{Value, json};
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
        owned("whole-chain", &["RC-1", "CO-22", "CO-23", "CH-02", "ST-02"], Major, probe!(whole_chain)),
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
    let mut names = BTreeSet::new();
    for query in ["", "note", "nothing", ""] {
        let answer = context.answer(&session, &json!({"query": query})).await?;
        let receipt = &answer["receipt"];
        let id = receipt["receipt_id"].as_str().unwrap_or_default().to_owned();
        expect(ids.insert(id), || "two answers have the same receipt".to_owned())?;
        let name = answer["response_id"].as_str().unwrap_or_default().to_owned();
        expect(!name.is_empty() && names.insert(name), || "two answers have one response_id".to_owned())?;
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

/// The receipts that the owner's log answers.
async fn log(context: &Context<'_>, asked: Value) -> Result<Vec<Value>, Failed> {
    let log = context.owner(json!({"do": "audit", "asked": asked})).await?;
    Ok(log["receipts"].as_array().cloned().unwrap_or_default())
}

/// Whether a receipt is of an action, with this outcome.
fn is_of(receipt: &Value, action: &str, outcome: &str) -> bool {
    receipt["action_id"] == action && receipt["policy_decisions"][0]["outcome"] == outcome
}

/// The chain of a scope of its own, as the owner reads it: it holds from its beginning to a signed head, and has a receipt of all that was done.
async fn whole_chain(context: &Context<'_>) -> Result<(), Failed> {
    log(context, json!({"limit": 1})).await?;
    let (label, scope) = (context.word(), format!("probe-{}", context.word()));
    let mut item = note("a note", &[&label]);
    item["scope_id"] = json!(scope);
    let made = context.capture(&[item]).await?;
    let id = made.first().map_or("", String::as_str);
    let grantee = context.stranger();
    let mut draft = context.draft(&grantee, &label, 2);
    (draft["scope"], draft["operations"]) = (json!(scope), json!(["query", "export"]));
    let (session, exchanged) = context.session_and_reply(grantee, draft).await?;
    let mut answers = Vec::new();
    for query in ["", "note"] {
        answers.push(context.answer(&session, &json!({"query": query})).await?);
    }
    let export = context.export(&session).await?;
    expect(export.status == 200, || format!("an export that the grant permits: status {}", export.status))?;
    let trailer = export.bytes.split(|byte| *byte == b'\n').rfind(|line| !line.is_empty());
    let trailer = trailer.and_then(|line| strict::parse(line).ok()).unwrap_or_default();
    context.owner(json!({"do": "confirm", "item_id": id})).await?;
    context.owner(json!({"do": "revoke", "grant_id": session.grant["grant_id"]})).await?;
    let refused = context.query(&session, &json!({"query": ""})).await?;
    expect(refused.status == 403, || {
        format!("a query under a grant that was revoked: status {}", refused.status)
    })?;

    let asked = json!({"chain": scope, "from": 0, "limit": 1000});
    let entries = log(context, asked).await?;
    let document = context.document().await?;
    verify_chain(entries.iter().cloned(), &document)
        .map_err(|why| Failed::Wrong(format!("the chain of a scope, as its owner reads it: {why}")))?;
    let part = log(context, json!({"chain": scope, "from": 2, "limit": 3})).await?;
    expect(entries.get(2..5).is_some_and(|wanted| wanted == part), || {
        "three entries of a chain, from the third one on, are others than in the whole of it".to_owned()
    })?;
    let hash = |document: &Value| Hash::of_canonical(document).map(|hash| json!(hash)).unwrap_or_default();
    let (granted, receipt_id) = (hash(&session.grant), exchanged.json()["receipt_id"].clone());
    let of_item = |receipt: &Value| {
        let tag = receipt["provenance_tags_out"][0].as_str();
        tag.is_some_and(|tag| tag.starts_with(id))
    };
    let there = |what: &str, is: &dyn Fn(&Value) -> bool| {
        expect(entries.iter().any(is), || format!("the chain of the scope has no receipt of {what}"))
    };
    there("the capture", &|r| is_of(r, "memory.capture", "allow") && of_item(r))?;
    there("the grant", &|r| is_of(r, "memory.grant", "allow") && r["output_hash"] == granted)?;
    there("the exchange, as it was named", &|r| {
        is_of(r, "memory.exchange", "allow") && r["receipt_id"] == receipt_id
    })?;
    for answer in &answers {
        there("an answer, as it was given", &|receipt| *receipt == answer["receipt"])?;
    }
    there("the export, with the hash of its trailer", &|r| {
        is_of(r, "memory.export", "allow") && r["output_hash"] == trailer["hash"]
    })?;
    there("the confirmation", &|r| is_of(r, "memory.confirm", "allow") && of_item(r))?;
    there("the query that was refused", &|r| is_of(r, "memory.query", "block"))?;
    // What names the grant is found by it.
    let named = log(context, json!({"grant_id": session.grant["grant_id"], "limit": 1000})).await?;
    for (action, outcome) in [
        ("memory.grant", "allow"),
        ("memory.exchange", "allow"),
        ("memory.query", "allow"),
        ("memory.export", "allow"),
        ("memory.revoke", "allow"),
        ("memory.query", "block"),
    ] {
        let found = named.iter().find(|receipt| is_of(receipt, action, outcome));
        expect(found.is_some_and(|found| entries.contains(found)), || {
            format!("the owner's log, asked for a grant, has no {action} ({outcome}) of the scope's chain")
        })?;
    }
    let done = context.owner(json!({"do": "delete", "item_ids": made})).await?;
    let deleted = hash(&done["deletion_receipt"]);
    for made in &made {
        let of_item = log(context, json!({"item_id": made, "limit": 1000})).await?;
        expect(of_item.iter().any(|r| is_of(r, "memory.erase", "allow") && r["type"] == "deletion"), || {
            format!("the owner's log has no memory.erase of {made}, which was deleted")
        })?;
    }
    let newest = log(context, json!({"limit": 1000})).await?;
    expect(newest.iter().any(|r| r["type"] == "deletion" && r["output_hash"] == deleted), || {
        "no receipt of type deletion in the owner's log commits to the Deletion Receipt".to_owned()
    })
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

//! Living through a history: each step done, and what comes back compared with the model.

use super::super::Failed;
use super::Finding;
use super::ask::{ask, leaks};
use super::beside::{audit, export};
use super::fill::Lived;
use crate::model::Difference;
use crate::world::{Item, Step};
use oap_identity::json as strict;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::time::Duration;

/// What grantees keep of their last answers.
#[derive(Default)]
pub(super) struct Kept {
    /// By grant: the query and the cursor of its answer.
    cursors: BTreeMap<usize, Value>,
    /// By grant: the receipt.
    receipts: BTreeMap<usize, Value>,
}

/// One step. What cannot be done as things stand is left out.
pub(super) async fn step(
    lived: &mut Lived<'_>,
    kept: &mut Kept,
    step: &Step,
    findings: &mut Vec<Finding>,
) -> Result<(), Failed> {
    let world = lived.world;
    let item = |number: usize| world.items().nth(number);
    match *step {
        Step::Capture { item: number } => match item(number) {
            Some(item) if !lived.ids.contains_key(&number) => lived.capture(&[(number, item)]).await,
            _ => Ok(()),
        },
        Step::Correct { item: number, like } => match item(like) {
            Some(like) if item(number).is_some_and(|item| item.draft["content"] != like.draft["content"]) => {
                correct(lived, number, like).await
            }
            _ => Ok(()),
        },
        Step::Relabel { item: number, like } => {
            let labels = item(like).map(|like| like.draft["labels"].clone()).filter(Value::is_array);
            let labels = labels.unwrap_or_else(|| json!([]));
            let texts: Vec<String> = labels
                .as_array()
                .into_iter()
                .flatten()
                .filter_map(|l| l.as_str().map(str::to_owned))
                .collect();
            if let Some(id) = changed(lived, number, "relabel", json!({"labels": labels})).await? {
                lived.model.relabelled(&id, &texts, lived.context.now());
            }
            Ok(())
        }
        Step::Confirm { item } => {
            if let Some(id) = changed(lived, item, "confirm", json!({})).await? {
                lived.model.confirmed(&id, lived.context.now());
            }
            Ok(())
        }
        Step::Retract { item } => {
            if let Some(id) = changed(lived, item, "retract", json!({})).await? {
                lived.model.retracted(&id, lived.context.now());
            }
            Ok(())
        }
        Step::Restore { item } => {
            if let Some(id) = changed(lived, item, "restore", json!({})).await? {
                lived.model.restored(&id, lived.context.now());
            }
            Ok(())
        }
        Step::Delete { item } => {
            let Some(id) = lived.ids.get(&item).cloned() else { return Ok(()) };
            let command = json!({"do": "delete", "item_ids": [id]});
            if lived.context.try_owner(command).await?.is_ok() {
                lived.model.deleted(&[id], lived.context.now());
            }
            Ok(())
        }
        Step::Grant { grant } if may_be_granted(lived, grant) => lived.grant(grant).await,
        Step::Grant { .. } => Ok(()),
        Step::Revoke { grant } => revoke(lived, grant).await,
        Step::Query { grant, query } => {
            let query = world.grants.get(grant).and_then(|grant| grant.queries.get(query));
            asked(lived, kept, grant, query.cloned().unwrap_or_else(|| json!({})), findings).await
        }
        Step::Page { grant } => match kept.cursors.get(&grant).cloned() {
            Some(query) => asked(lived, kept, grant, query, findings).await,
            None => Ok(()),
        },
        Step::Export { grant } => export(lived, grant, findings).await,
        Step::Audit { grant } => audit(lived, grant, findings).await,
        Step::Ack { grant } => ack(lived, kept, grant, findings).await,
        Step::Wait { millis } => lived.context.wait(Duration::from_millis(millis.min(5_000))).await,
    }
}

/// The owner takes a grant back.
pub(in super::super) async fn revoke(lived: &mut Lived<'_>, grant: usize) -> Result<(), Failed> {
    let Some(live) = lived.grants.get(&grant) else { return Ok(()) };
    let id = live.id().to_owned();
    if lived.context.try_owner(json!({"do": "revoke", "grant_id": id})).await?.is_ok() {
        lived.model.revoked(&id, lived.context.now());
    }
    Ok(())
}

/// Whether a grant is not there yet, and what it is made from is in force.
fn may_be_granted(lived: &Lived<'_>, grant: usize) -> bool {
    let Some(planned) = lived.world.grants.get(grant) else { return false };
    let in_force = |parent: usize| {
        let now = lived.context.now();
        let ask = |id: &str| lived.model.query(id, &json!({}), now, &lived.disclosed);
        lived.grants.get(&parent).is_some_and(|live| ask(live.id()).answer().is_some())
    };
    !lived.grants.contains_key(&grant) && planned.parent.is_none_or(in_force)
}

/// A change of an item by its owner; its id, where it was made.
async fn changed(
    lived: &Lived<'_>,
    number: usize,
    what: &str,
    mut command: Value,
) -> Result<Option<String>, Failed> {
    let Some(id) = lived.ids.get(&number) else { return Ok(None) };
    command["do"] = json!(what);
    command["item_id"] = json!(id);
    Ok(lived.context.try_owner(command).await?.is_ok().then(|| id.clone()))
}

async fn correct(lived: &mut Lived<'_>, number: usize, like: &Item) -> Result<(), Failed> {
    // What the other does not have is taken away: the spans are those of the other alone.
    let content = &like.draft["content"];
    let changes = json!({"content": {"text": content["text"], "structured": content["structured"]}});
    if let Some(id) = changed(lived, number, "correct", json!({"item": changes})).await? {
        lived.model.corrected(&id, &changes, lived.context.now(), &like.planted);
    }
    Ok(())
}

async fn asked(
    lived: &mut Lived<'_>,
    kept: &mut Kept,
    grant: usize,
    mut query: Value,
    findings: &mut Vec<Finding>,
) -> Result<(), Failed> {
    let Some(answer) = ask(lived, grant, &query, findings).await? else { return Ok(()) };
    kept.cursors.remove(&grant);
    if let Some(cursor) = answer["next_cursor"].as_str() {
        query["cursor"] = json!(cursor);
        kept.cursors.insert(grant, query);
    }
    kept.receipts.insert(grant, answer["receipt"].clone());
    Ok(())
}

/// A receipt that its grantee signs too is joint, and says nothing new.
async fn ack(
    lived: &Lived<'_>,
    kept: &Kept,
    grant: usize,
    findings: &mut Vec<Finding>,
) -> Result<(), Failed> {
    let Some((receipt, live)) = kept.receipts.get(&grant).zip(lived.grants.get(&grant)) else {
        return Ok(());
    };
    let mut unsigned = receipt.clone();
    unsigned.as_object_mut().map(|members| members.remove("signatures"));
    let bytes = strict::canonical(&unsigned).map_err(|e| Failed::Skipped(e.to_string()))?;
    let grantee = &live.session.grantee;
    let signature = json!({"by": grantee.kid(), "alg": "EdDSA", "value": grantee.sign(&bytes)});
    let body = json!({"receipt_id": receipt["receipt_id"], "signature": signature});
    let reply = lived.context.post("/oap/memory/ack", &[], &body).await?;
    let mut differences = Vec::new();
    let signatures = reply.json()["receipt"]["signatures"].as_array().map_or(0, Vec::len);
    if reply.status != 200 || signatures != 2 {
        let why = format!("status {} with {signatures} signatures, must be a joint receipt", reply.status);
        differences.push(Difference { at: "/receipt/signatures".to_owned(), why });
    }
    leaks(lived, grant, &reply, None, &mut differences);
    findings.extend(differences.into_iter().map(|difference| Finding {
        seed: lived.world.seed,
        grant: format!("grant {grant}"),
        query: json!("an acknowledgement"),
        difference,
    }));
    Ok(())
}

//! Living through a history: each step done, and what comes back compared with the model.

use super::super::Failed;
use super::super::wire::Refused;
use super::Finding;
use super::ask::{ask, leaks};
use super::beside::{audit, export, vectors};
use super::fill::Lived;
use crate::model::Difference;
use crate::model::rule::Keys;
use crate::probe::refusals::read;
use crate::world::{Item, Step};
use oap_identity::signed::UnverifiedSignature;
use oap_identity::{DidDocument, json as strict};
use oap_memory::evidence;
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
    /// The principal's document after the last rotation of its keys.
    document: Option<DidDocument>,
    /// Whether every command to the owner's side is permitted as things stand, so that none may be refused.
    is_permitted: bool,
    /// Why the owner's side refused what is permitted at any time: a rotation of the keys.
    pub(super) refused: Option<String>,
}

/// Steps, one after the other, each of which is permitted as things stand then.
///
/// # Errors
/// [`Failed::Skipped`] where the owner's side refuses one; when the run is over.
pub(in super::super) async fn steps(
    lived: &mut Lived<'_>,
    all: &[Step],
    findings: &mut Vec<Finding>,
) -> Result<(), Failed> {
    let mut kept = Kept { is_permitted: true, ..Kept::default() };
    for one in all {
        step(lived, &mut kept, one, findings).await?;
    }
    Ok(())
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
                correct(lived, kept, number, like).await
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
            if let Some(id) = changed(lived, kept, number, "relabel", json!({"labels": labels})).await? {
                lived.model.relabelled(&id, &texts, lived.context.now());
            }
            Ok(())
        }
        Step::Confirm { item } => {
            if let Some(id) = changed(lived, kept, item, "confirm", json!({})).await? {
                lived.model.confirmed(&id, lived.context.now());
            }
            Ok(())
        }
        Step::Retract { item } => {
            if let Some(id) = changed(lived, kept, item, "retract", json!({})).await? {
                lived.model.retracted(&id, lived.context.now());
            }
            Ok(())
        }
        Step::Restore { item } => {
            if let Some(id) = changed(lived, kept, item, "restore", json!({})).await? {
                lived.model.restored(&id, lived.context.now());
            }
            Ok(())
        }
        Step::Delete { item } => {
            let Some(id) = lived.ids.get(&item).cloned() else { return Ok(()) };
            let command = json!({"do": "delete", "item_ids": [id]});
            if owner(lived, kept, command).await? {
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
        Step::Vectors { grant } => vectors(lived, grant, findings).await,
        Step::Rotate => rotate(lived, kept, findings).await,
        Step::Exchange { grant } => exchange(lived, grant, findings).await,
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

/// A command to the owner's side; whether it was done. Where steps come in random order what they ask for may be refused.
async fn owner(lived: &Lived<'_>, kept: &Kept, command: Value) -> Result<bool, Failed> {
    if kept.is_permitted {
        return lived.context.owner(command).await.map(|_| true);
    }
    Ok(lived.context.try_owner(command).await?.is_ok())
}

/// A change of an item by its owner; its id, where it was made.
async fn changed(
    lived: &Lived<'_>,
    kept: &Kept,
    number: usize,
    what: &str,
    mut command: Value,
) -> Result<Option<String>, Failed> {
    let Some(id) = lived.ids.get(&number) else { return Ok(None) };
    command["do"] = json!(what);
    command["item_id"] = json!(id);
    Ok(owner(lived, kept, command).await?.then(|| id.clone()))
}

fn found(lived: &Lived<'_>, what: &str, at: &str, why: String, findings: &mut Vec<Finding>) {
    findings.push(Finding {
        seed: lived.world.seed,
        grant: what.to_owned(),
        query: json!("after a rotation of the keys"),
        difference: Difference { at: at.to_owned(), why },
    });
}

/// The owner puts a new signing key into use: the DID document has it beside the former ones, and the manifest is signed with it.
async fn rotate(lived: &mut Lived<'_>, kept: &mut Kept, findings: &mut Vec<Finding>) -> Result<(), Failed> {
    let context = lived.context;
    if let Err(Refused(why)) = context.try_owner(json!({"do": "rotate"})).await? {
        kept.refused = Some(why);
        return Ok(());
    }
    lived.model.rotated(context.now());
    lived.read_keys(findings).await?;
    let document = context.document().await?;
    let manifest = context.get("/.well-known/oap-memory.json").await?;
    let signed = UnverifiedSignature::of(&manifest).map_err(|e| e.to_string()).and_then(|signature| {
        let in_use = lived.model.key_in_use().is_none_or(|kid| kid == signature.kid().to_string());
        let key = document.key(signature.kid()).filter(|_| in_use).ok_or("not by the key in use")?;
        signature.is_by(key).map_err(|e| e.to_string())
    });
    if let Err(why) = signed {
        found(lived, "the memory manifest", "/signature", why, findings);
    }
    kept.document = Some(document);
    Ok(())
}

/// A grantee exchanges its grant once more, and goes on with the token that it gets.
async fn exchange(lived: &mut Lived<'_>, grant: usize, findings: &mut Vec<Finding>) -> Result<(), Failed> {
    let Some(live) = lived.grants.get(&grant) else { return Ok(()) };
    let (key, document) = (&live.session.grantee, &live.session.grant);
    let reply = lived.context.present(key, document, document, &live.above).await?;
    let of = format!("grant {grant}");
    match lived.model.exchanged(live.id(), lived.context.now()) {
        Some(refused) => {
            for Difference { at, why } in refused.differences(reply.status, &reply.json()) {
                found(lived, &of, &at, format!("exchanged again: {why}"), findings);
            }
        }
        None if reply.status != 200 => {
            let why = format!("exchanged again, in force: is {}, must be 200", reply.status);
            found(lived, &of, "/status", why, findings);
        }
        None => {
            let answer = reply.json();
            let token = answer["memory_grant_jwt"].as_str().unwrap_or_default().to_owned();
            let by = read(&token, 0)["kid"].clone();
            if lived.model.key_in_use().is_some_and(|kid| by != kid) {
                found(lived, &of, "/memory_grant_jwt", format!("is signed by {by}"), findings);
            }
            let signed = document["signature"].as_str().map(|jws| read(jws, 0)["kid"].clone());
            if let Some(kid) = signed.as_ref().and_then(Value::as_str) {
                lived.model.holds(Keys::Exchanged, kid);
            }
            if let Some(live) = lived.grants.get_mut(&grant) {
                live.session.token = token;
            }
        }
    }
    Ok(())
}

/// After a rotation each answer verifies with the document as it is now, whichever key signed what is in it.
fn proved(lived: &Lived<'_>, kept: &Kept, grant: usize, answer: &Value, findings: &mut Vec<Finding>) {
    let Some(document) = &kept.document else { return };
    if let Err(unsound) = evidence::answer(answer, document) {
        found(lived, &format!("grant {grant}"), "the proofs", unsound.to_string(), findings);
    }
    let links = answer["items"].as_array().into_iter().flatten();
    for link in links.flat_map(|item| item["integrity"]["chain"].as_array().into_iter().flatten()) {
        if let Some(kid) = read(link["signature"].as_str().unwrap_or_default(), 0)["kid"].as_str() {
            lived.model.holds(Keys::Proved, kid);
        }
    }
    let token = lived.grants.get(&grant).map_or("", |live| live.session.token.as_str());
    if let Some(kid) = read(token, 0)["kid"].as_str() {
        lived.model.holds(Keys::Held, kid);
    }
}

async fn correct(lived: &mut Lived<'_>, kept: &Kept, number: usize, like: &Item) -> Result<(), Failed> {
    // What the other does not have is taken away: the spans are those of the other alone.
    let content = &like.draft["content"];
    let changes = json!({"content": {"text": content["text"], "structured": content["structured"]}});
    if let Some(id) = changed(lived, kept, number, "correct", json!({"item": changes})).await? {
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
    proved(lived, kept, grant, &answer, findings);
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

//! Living through a history: each step done, and what comes back compared with the model.

use super::super::Failed;
use super::super::wire::Refused;
use super::Finding;
use super::ask::{ask, leaks};
use super::beside::{audit, export, vectors};
use super::exchanged::{exchanged, state};
use super::fill::Lived;
use super::gates::{actual, signed_as_drafted};
use crate::model::rule::Keys;
use crate::model::{Difference, Leaves};
use crate::probe::refusals::read;
use crate::world::gated::FIRST_GRANTEE;
use crate::world::{Item, Step};
use oap_identity::DidDocument;
use oap_identity::signed::UnverifiedSignature;
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
    /// The bridges in force, the last one last, by their ids.
    bridges: Vec<String>,
    /// Whose turn it is to look where nobody sees a change.
    turn: usize,
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
        Step::Correct { item: number, like, what } => match item(number).zip(item(like)) {
            Some((item, like)) => match what.changes(&item.draft, &like.draft) {
                Some(changes) => correct(lived, kept, number, (&changes, like)).await,
                None => Ok(()),
            },
            None => Ok(()),
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
        Step::Grant { grant } if may_be_granted(lived, grant) => {
            lived.grant(grant, findings).await?;
            // Of what was not shown yet no vector is given.
            if lived.context.declared().embeddings {
                vectors(lived, grant, findings).await?;
            }
            Ok(())
        }
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
        Step::Context { context: ref document, grant } => context(lived, kept, document, grant).await,
        Step::Bridge { like } => bridge(lived, kept, like).await,
        Step::Unbridge => {
            let Some(id) = kept.bridges.pop() else { return Ok(()) };
            if owner(lived, kept, json!({"do": "unbridge", "bridge_id": id})).await? {
                lived.model.unbridged(&id);
            }
            Ok(())
        }
        Step::Consent { grant } => {
            let Some(id) = lived.grants.get(&grant).map(|live| live.id().to_owned()) else { return Ok(()) };
            if owner(lived, kept, json!({"do": "consent", "grant_id": id})).await? {
                lived.model.consented(&id);
            }
            Ok(())
        }
        Step::Exchange { grant } => exchange(lived, grant, findings).await,
        Step::State { grant, by_another } => state(lived, grant, by_another, findings).await,
        Step::Wait { millis } => lived.context.wait(Duration::from_millis(millis.min(5_000))).await,
    }
}

/// What each grantee must see in a listing, by the numbers of their grants: `None` where it must be refused. Grants with a budget are left
/// out: looking costs some of it.
pub(super) type Seen = BTreeMap<usize, Option<BTreeMap<String, (Leaves, Vec<&'static str>)>>>;

/// What is listed to see what a step did.
fn listing() -> Value {
    json!({"query": "", "max_results": 100})
}

/// What each grantee must see now.
pub(super) fn seen(lived: &Lived<'_>) -> Seen {
    // What is only thought of decides nothing.
    let model = lived.model.clone();
    let mut seen = Seen::new();
    for (number, live) in &lived.grants {
        if live.above.iter().chain([&live.session.grant]).any(|grant| !grant["budget"].is_null()) {
            continue;
        }
        let expected = model.query(live.id(), &listing(), lived.now(), &lived.disclosed);
        let items = expected.answer().map(|answer| {
            let chain = |id: &String| answer.chain.get(id).cloned().unwrap_or_default();
            answer.items.iter().map(|(id, leaves)| (id.clone(), (leaves.clone(), chain(id)))).collect()
        });
        seen.insert(*number, items);
    }
    seen
}

/// Most grantees that list what they see after one step.
const LOOKED: usize = 4;

/// After a step that may change views grantees list what they see: those to whom it gave another one, where there are some; else each in turn.
pub(super) async fn look(
    lived: &mut Lived<'_>,
    kept: &mut Kept,
    before: &Seen,
    findings: &mut Vec<Finding>,
) -> Result<(), Failed> {
    let after = seen(lived);
    let turns = after.keys().copied().cycle().skip(kept.turn % after.len().max(1)).take(after.len());
    let turns: Vec<usize> = turns.collect();
    let changed = turns.iter().filter(|grant| before.get(grant) != after.get(grant));
    let mut looking: Vec<usize> = changed.take(LOOKED).copied().collect();
    if looking.is_empty() {
        looking.extend(turns.iter().find(|grant| after.get(grant).is_some_and(Option::is_some)));
    }
    for grant in looking {
        kept.turn += 1;
        if let Some(answer) = ask(lived, grant, &listing(), findings).await? {
            proved(lived, kept, grant, &answer, findings);
        }
    }
    Ok(())
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
    // What is only thought of decides nothing.
    let model = lived.model.clone();
    let in_force = |parent: usize| {
        let now = lived.context.now();
        let ask = |id: &str| model.query(id, &json!({}), now, &lived.disclosed);
        lived.grants.get(&parent).is_some_and(|live| ask(live.id()).answer().is_some())
    };
    let is_bridged = planned.parent.is_some() || model.is_bridged(&planned.draft, lived.now());
    !lived.grants.contains_key(&grant) && is_bridged && planned.parent.is_none_or(in_force)
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
pub(super) async fn exchange(
    lived: &mut Lived<'_>,
    grant: usize,
    findings: &mut Vec<Finding>,
) -> Result<(), Failed> {
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
            let signed = document["signature"].as_str().map(|jws| read(jws, 0)["kid"].clone());
            exchanged(lived, grant, &reply, findings);
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

/// A correction, where it changes something.
async fn correct(
    lived: &mut Lived<'_>,
    kept: &Kept,
    number: usize,
    (changes, like): (&Value, &Item),
) -> Result<(), Failed> {
    if !lived.ids.get(&number).is_some_and(|id| lived.model.would_change(id, changes)) {
        return Ok(());
    }
    if let Some(id) = changed(lived, kept, number, "correct", json!({"item": changes})).await? {
        lived.model.corrected(&id, changes, lived.context.now(), &like.planted);
    }
    Ok(())
}

/// The owner sets the context of a scope of the world, about the grantee of a grant.
async fn context(lived: &mut Lived<'_>, kept: &Kept, document: &Value, grant: usize) -> Result<(), Failed> {
    let grantee = lived.world.grants.get(grant).map_or(0, |grant| grant.grantee);
    let document = actual(lived, document, [(FIRST_GRANTEE, grantee)])?;
    if owner(lived, kept, json!({"do": "context", "context": document})).await? {
        lived.model.context(&document);
    }
    Ok(())
}

/// How long a bridge of a history holds.
const BRIDGED: Duration = Duration::from_secs(86_400);

/// The owner signs a bridge from the world's second scope to its first one.
async fn bridge(lived: &mut Lived<'_>, kept: &mut Kept, like: usize) -> Result<(), Failed> {
    let world = lived.world;
    let item = world.items().nth(like).map_or(&Value::Null, |item| &item.draft);
    let labels = item["labels"].as_array().into_iter().flatten();
    let categories: Vec<&Value> = labels.chain([&item["kind"]]).collect();
    let draft = json!({
        "from_scope": world.beside(), "to_scope": world.scope, "data_categories": categories,
        "valid_until": lived.now().plus(BRIDGED),
    });
    let done = lived.context.try_owner(json!({"do": "bridge", "draft": draft})).await?;
    // Out of a privileged scope none leads.
    let Ok(done) = done else { return Ok(()) };
    let signed = signed_as_drafted(lived.context, &draft, &done["bridge"]).await?;
    kept.bridges.extend(signed["bridge_id"].as_str().map(str::to_owned));
    lived.model.bridged(&signed);
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
    let reply = lived.context.countersign(&live.session.grantee, receipt).await?;
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

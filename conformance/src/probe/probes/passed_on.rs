//! Grants that were made from others, and what is said of grants to whoever asks.

use super::super::context::{Context, expect};
use super::super::refusals::{child, signed};
use super::super::wire::Refused;
use super::super::{Failed, Probe, Severity};
use super::{ids, note, owned, probe, room_for};
use oap_identity::GrantId;
use oap_memory::bundle::{Line, Reader};
use serde_json::{Value, json};
use std::collections::BTreeSet;

pub(super) fn all() -> Vec<Probe> {
    use Severity::{Critical, Major};
    vec![
        owned("caps-above", &["ME-09", "SP-06", "DE-03"], Critical, probe!(caps_above)),
        owned("grants-of-every-basis", &["ME-08"], Major, probe!(of_every_basis)),
        owned("what-grantees-may-know", &["RC-2", "ME-08"], Critical, probe!(may_know)),
    ]
}

/// The items of a bundle.
fn exported(bytes: &[u8]) -> Result<BTreeSet<String>, Failed> {
    let (mut reader, mut found) = (Reader::default(), BTreeSet::new());
    for line in bytes.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
        let line = reader.read(line).map_err(|e| Failed::Wrong(format!("the bundle: {e}")))?;
        if let Line::Item(item) = line {
            found.extend(item.item["item_id"].as_str().map(str::to_owned));
        }
    }
    Ok(found)
}

/// What one grantee was shown counts for everybody below, and the other way round, in queries and exports (protocol 5.2).
async fn caps_above(context: &Context<'_>) -> Result<(), Failed> {
    room_for(context, 2)?;
    for (child_first, of_last) in [(false, false), (false, true), (true, false), (true, true)] {
        let label = context.word();
        let words = [context.word(), context.word(), context.word()];
        let made = context.capture(&words.each_ref().map(|word| note(word, &[&label]))).await?;
        // The one that is the first of an export, or the last.
        let mut by_id: Vec<(&String, &String)> = made.iter().zip(&words).collect();
        by_id.sort_unstable();
        // A listing, newest first, has them in another order than an export.
        for (day, (id, _)) in (1..).zip(&by_id) {
            let known = json!({"provenance": {"captured_at": format!("2021-03-0{day}T12:00:00Z")}});
            context.owner(json!({"do": "correct", "item_id": id, "item": known})).await?;
        }
        let shown = if of_last { by_id.last() } else { by_id.first() };
        let word = shown.map_or("", |(_, word)| word);
        let delegator = context.stranger();
        let mut draft = context.draft(&delegator, &label, 2);
        (draft["max_items"], draft["operations"]) = (json!(2), json!(["query", "export"]));
        draft["delegable"] = json!({"max_depth": 1});
        let first = context.session(delegator, draft).await?;
        let grantee = context.stranger();
        let mut made = child(context, &first.grant, &grantee)?;
        signed(&mut made, &first.grantee)?;
        let (second, _) = context.session_below(grantee, made, std::slice::from_ref(&first.grant)).await?;
        let (one, other) = if child_first { (&second, &first) } else { (&first, &second) };
        let answer = context.answer(one, &json!({"query": word, "max_results": 1})).await?;
        let shown: BTreeSet<String> = ids(&answer).into_iter().map(str::to_owned).collect();
        expect(shown.len() == 1, || format!("a word of one item finds {shown:?}, asked for one at most"))?;
        let export = context.export(other).await?;
        expect(export.status == 200, || format!("an export that is permitted: status {}", export.status))?;
        let whole = exported(&export.bytes)?;
        expect(whole.len() == 2 && whole.is_superset(&shown), || {
            format!(
                "of three items, one of them shown, an export under max_items 2 in the chain has {whole:?}, shown was {shown:?}"
            )
        })?;
        for session in [one, other] {
            let answer = context.answer(session, &json!({"query": "", "max_results": 100})).await?;
            let got: BTreeSet<String> = ids(&answer).into_iter().map(str::to_owned).collect();
            expect(got == whole, || {
                format!(
                    "under a max_items that an export in the chain has reached a query shows {got:?}, must be {whole:?}"
                )
            })?;
            let again = context.export(session).await?;
            expect(again.status == 200 && exported(&again.bytes)? == whole, || {
                format!("under a max_items that is reached an export shows other items than {whole:?}")
            })?;
        }
    }
    Ok(())
}

/// Each lawful basis can be that of a grant, and is what its receipts and answers say (protocol section 5).
async fn of_every_basis(context: &Context<'_>) -> Result<(), Failed> {
    // Who issues no grants at all refuses none for its basis.
    context.granted(&context.word(), 2).await?;
    for basis in
        ["consent", "contract", "legal_obligation", "vital_interests", "public_task", "legitimate_interests"]
    {
        let grantee = context.stranger();
        let mut draft = context.draft(&grantee, &context.word(), 2);
        draft["lawful_basis"] = json!(basis);
        let issued = context.try_session(grantee, draft).await?;
        let session =
            issued.map_err(|Refused(why)| Failed::Wrong(format!("a grant of {basis} is refused: {why}")))?;
        let answer = context.answer(&session, &json!({})).await?;
        let applied = &answer["projection_applied"]["lawful_basis"];
        let receipt = &answer["receipt"]["policy_decisions"][0]["lawful_basis"];
        expect(*applied == basis && *receipt == basis, || {
            format!("under a grant of {basis} an answer says {applied}, and its receipt {receipt}")
        })?;
    }
    Ok(())
}

/// A grantee asks for the state of its own grants alone, reads the log under a grant for whatever it is, and countersigns any receipt that names it.
async fn may_know(context: &Context<'_>) -> Result<(), Failed> {
    let label = context.word();
    context.capture(&[note("a note", &[&label])]).await?;
    let grantee = context.stranger();
    let mut draft = context.draft(&grantee, &label, 2);
    draft["operations"] = json!(["export"]);
    let (session, exchanged) = context.session_and_reply(grantee, draft).await?;
    let unknown = json!({"grant_id": GrantId::new(context.now(), context.random())});
    let reply = context.state_of(&session.grantee, &unknown).await?;
    let another = context.state_of(&context.stranger(), &session.grant).await?;
    let said = |reply: &Value| (reply["error"].clone(), reply["message"].clone());
    expect(
        reply.status == 404 && another.status == 404 && said(&reply.json()) == said(&another.json()),
        || {
            format!(
                "the state of a grant that there is not: status {}; of another's: {}; must be 404, and say the same",
                reply.status, another.status
            )
        },
    )?;
    let log = context.get_as(&session, "/oap/audit").await?;
    let receipts = log.json()["receipts"].as_array().cloned().unwrap_or_default();
    let named = receipts.iter().find(|receipt| receipt["receipt_id"] == exchanged.json()["receipt_id"]);
    expect(log.status == 200 && named.is_some(), || {
        format!(
            "the log under a grant for exports: status {}, its exchange there: {}",
            log.status,
            named.is_some()
        )
    })?;
    let reply = context.countersign(&session.grantee, named.unwrap_or(&Value::Null)).await?;
    let joint = reply.json()["receipt"]["signatures"].as_array().map_or(0, Vec::len);
    expect(reply.status == 200 && joint == 2, || {
        format!("the receipt of an exchange, countersigned: status {}, {joint} signatures", reply.status)
    })
}

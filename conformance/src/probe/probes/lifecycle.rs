//! What happens to items under a live grant: correction, deletion, export.

use super::super::context::{Context, Session, expect};
use super::super::{Failed, Probe, Severity};
use super::{ids, items, note, owned, probe};
use crate::world::{GENERAL, whole_name};
use oap_memory::bundle::{Line, Reader};
use oap_memory::evidence;
use serde_json::{Value, json};
use std::collections::BTreeSet;

pub(super) fn all() -> Vec<Probe> {
    use Severity::{Critical, Major};
    vec![
        owned("correction", &["ME-02", "ME-03"], Major, probe!(correction)),
        owned("deletion", &["ME-06", "CH-01"], Critical, probe!(deletion)),
        owned("deletion-receipt", &["ME-06", "CO-17", "CH-09"], Major, probe!(deletion_receipt)),
        owned("export", &["EX-1", "ME-01", "ST-06"], Critical, probe!(export)),
    ]
}

async fn correction(context: &Context<'_>) -> Result<(), Failed> {
    let (label, before, after) = (context.word(), context.word(), context.word());
    let made = context.capture(&[note(&format!("it says {before}"), &[&label])]).await?;
    let session = context.granted(&label, 2).await?;
    context.answer(&session, &json!({"query": before})).await?;
    let item = json!({"content": {"text": format!("it says {after}")}});
    context.owner(json!({"do": "correct", "item_id": made.first(), "item": item})).await?;
    let answer = context.answer(&session, &json!({"query": after})).await?;
    expect(ids(&answer).len() == 1, || "the corrected text is not found".to_owned())?;
    let chain = items(&answer)[0]["integrity"]["chain"].as_array().map_or(0, Vec::len);
    expect(chain == 2, || format!("the chain has {chain} links after capture and correction"))?;
    let answer = context.answer(&session, &json!({"query": before})).await?;
    expect(!answer.to_string().contains(&before), || "the former text is still shown".to_owned())?;
    // Where a model of embeddings ranks, anything may be near.
    let near = context.declared().embeddings;
    expect(items(&answer).is_empty() || near, || "the former text is still matched".to_owned())
}

async fn deletion(context: &Context<'_>) -> Result<(), Failed> {
    let (label, word) = (context.word(), context.word());
    let mut notes = vec![note(&format!("it says {word}"), &[&label]), note("it stays", &[&label])];
    // A grant may be for one item at most.
    notes.truncate(usize::try_from(context.declared().max_items).unwrap_or(usize::MAX));
    let made = context.capture(&notes).await?;
    let session = context.granted(&label, 2).await?;
    let before = context.answer(&session, &json!({"query": ""})).await?;
    expect(ids(&before).len() == made.len(), || "all items were to be seen".to_owned())?;
    let other = context.granted(&context.word(), 2).await?;
    let done = context.owner(json!({"do": "delete", "item_ids": [made.first()]})).await?;
    let shrunk =
        done["deletion_receipt"].pointer("/scope/cascade/grants_shrunk").cloned().unwrap_or_default();
    let names =
        |session: &Session| shrunk.as_array().is_some_and(|all| all.contains(&session.grant["grant_id"]));
    expect(names(&session) && !names(&other), || {
        format!(
            "the Deletion Receipt names {shrunk} as shrunk, not the one grant that had the item in its view"
        )
    })?;
    for query in ["", &word] {
        let answer = context.answer(&session, &json!({"query": query})).await?;
        expect(!answer.to_string().contains(&word), || {
            "the first answer after a deletion has the deleted item".to_owned()
        })?;
        let stays = made.get(1..).unwrap_or_default();
        expect(!query.is_empty() || ids(&answer) == stays, || {
            format!("after a deletion {:?} are there instead of {stays:?}", ids(&answer))
        })?;
    }
    at_whatever_distance(context).await
}

/// What was made of an item goes with it, and what was made of that; what was made of nothing stays.
async fn at_whatever_distance(context: &Context<'_>) -> Result<(), Failed> {
    let label = context.word();
    let mut made = Vec::new();
    for text in ["the first", "from the first", "from the second", "from the third"] {
        let mut item = note(text, &[&label]);
        if let Some(from) = made.last() {
            item["derived_from"] = json!([from]);
        }
        made.extend(context.capture(&[item]).await?);
    }
    let stays = context.capture(&[note("of its own", &[&label])]).await?;
    // What is erased is the version in force.
    let text = json!({"content": {"text": "from the first, corrected"}});
    context.owner(json!({"do": "correct", "item_id": made.get(1), "item": text})).await?;
    let before = context.granted(&label, 2).await?;
    let answer = context.answer(&before, &json!({"query": ""})).await?;
    let in_force = answer["receipt"]["provenance_tags_out"].as_array().into_iter().flatten();
    let mut in_force: Vec<&str> = in_force.filter_map(Value::as_str).collect();
    in_force.retain(|tag| tag.split('@').next().is_some_and(|id| made.iter().any(|made| made == id)));
    let done = context.owner(json!({"do": "delete", "item_ids": [made.first()]})).await?;
    let scope = &done["deletion_receipt"]["scope"];
    let erased: Vec<&str> =
        scope["items"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    let is_whole = erased.is_sorted() && erased.len() == made.len();
    // A gateway may grant fewer items than these.
    expect(is_whole && in_force.iter().all(|tag| erased.contains(tag)), || {
        format!("the Deletion Receipt's scope.items is {erased:?}, must be ascending, with {in_force:?}")
    })?;
    let (remaining, held) = (&scope["cascade"]["remaining"], &scope["cascade"]["held"]);
    expect(*remaining == 0 && *held == json!([]), || {
        format!("of what was erased {remaining} remain and {held} are held")
    })?;
    let told = |place: &str| -> BTreeSet<String> {
        let ids = done["deletion_receipt"].pointer(place).and_then(Value::as_array).into_iter().flatten();
        ids.filter_map(|id| id.as_str()?.split('@').next().map(str::to_owned)).collect()
    };
    let all = |ids: &[String]| ids.iter().cloned().collect::<BTreeSet<String>>();
    let (first, further) = made.split_at(made.len().min(1));
    for (place, must) in [
        ("/scope/items", all(&made)),
        ("/scope/cascade/named", all(first)),
        ("/scope/cascade/derived", all(further)),
    ] {
        let is = told(place);
        expect(is == must, || format!("the Deletion Receipt's {place} is {is:?}, must be {must:?}"))?;
    }
    let session = context.granted(&label, 2).await?;
    let answer = context.answer(&session, &json!({"query": ""})).await?;
    expect(ids(&answer) == stays, || {
        format!(
            "after an erasure of what the others were made from {:?} are there, must be {stays:?}",
            ids(&answer)
        )
    })
}

async fn deletion_receipt(context: &Context<'_>) -> Result<(), Failed> {
    let made = context.capture(&[note("short-lived", &[&context.word()])]).await?;
    let done = context.owner(json!({"do": "delete", "item_ids": made})).await?;
    let receipt = &done["deletion_receipt"];
    for member in ["receipt_id", "tool_did", "principal_did", "completed_at", "method", "scope", "signature"]
    {
        expect(!receipt[member].is_null(), || format!("the Deletion Receipt has no {member}"))?;
    }
    let document = context.document().await?;
    let kid = receipt["signature"]["kid"].as_str().and_then(|kid| kid.parse().ok());
    let key = kid.and_then(|kid| document.key(&kid).cloned());
    let key =
        key.ok_or_else(|| Failed::Wrong("the Deletion Receipt is signed by an unknown key".to_owned()))?;
    let mut unsigned = receipt.clone();
    unsigned.as_object_mut().map(|members| members.remove("signature"));
    let bytes = oap_identity::json::canonical(&unsigned).map_err(|e| Failed::Wrong(e.to_string()))?;
    use base64::Engine;
    let value = receipt["signature"]["value"].as_str().unwrap_or_default();
    let value = base64::engine::general_purpose::URL_SAFE_NO_PAD.decode(value).unwrap_or_default();
    key.verify(&bytes, &value, context.now())
        .map_err(|e| Failed::Wrong(format!("the Deletion Receipt's signature: {e}")))
}

async fn export(context: &Context<'_>) -> Result<(), Failed> {
    let (label, mailbox) = (context.word(), context.word());
    context.capture(&[note(&format!("write to {mailbox}@mail.example"), &[&label])]).await?;
    let session = context.granted(&label, 2).await?;
    let reply = context.export(&session).await?;
    expect(reply.status == 403, || format!("an export under a grant for queries: status {}", reply.status))?;
    let grantee = context.stranger();
    let mut draft = context.draft(&grantee, &label, 2);
    draft["operations"] = json!(["export"]);
    // Another profile than grants of probes have, where there is one.
    let known = GENERAL.map(whole_name).into_iter().rfind(|name| context.has_profile(name));
    draft["redaction_profile"] = json!(known.unwrap_or_else(|| context.profile()));
    let session = context.session(grantee, draft).await?;
    let reply = context.export(&session).await?;
    expect(reply.status == 200, || format!("an export that the grant allows: status {}", reply.status))?;
    // It reads no body, so that none is wrong.
    let beside = context.export_beside(&session, Some("{\"colour\": ")).await?.status;
    expect(beside == 200, || format!("an export with a body, which is not read: status {beside}"))?;
    expect(!String::from_utf8_lossy(&reply.bytes).contains(&mailbox), || {
        "the export is not projected".to_owned()
    })?;
    let document = context.document().await?;
    let wrong = |e: String| Failed::Wrong(format!("the bundle: {e}"));
    let mut reader = Reader::default();
    let mut count = 0;
    for line in reply.bytes.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
        if let Line::Item(item) = reader.read(line).map_err(|e| wrong(e.to_string()))? {
            evidence::item(&item.item, &document).map_err(|e| wrong(e.to_string()))?;
            count += 1;
        }
    }
    let header = reader.header().map(|header| json!(header)).unwrap_or_default();
    let (grant, projected) = (&session.grant, &header["projected"]);
    for (member, must) in [
        ("grant_id", &grant["grant_id"]),
        ("grantee", &grant["grantee"]),
        ("profile", &grant["redaction_profile"]),
        ("trust_level", &grant["trust_level"]),
    ] {
        expect(projected[member] == *must, || {
            format!("the bundle's header: projected.{member} is {}, must be {must}", projected[member])
        })?;
    }
    let scope = grant["granter"].as_str().and_then(|granter| granter.split('#').nth(1));
    let is_so = header["scopes"] == json!([scope]) && header["items"] == 1;
    expect(is_so && header["principal"] == document.id().as_str(), || {
        format!(
            "the bundle's header: {} items of {} of {}",
            header["items"], header["scopes"], header["principal"]
        )
    })?;
    let known = header["documents"].as_array().into_iter().flatten();
    expect(known.into_iter().any(|known| known["id"] == document.id().as_str()), || {
        "the bundle has not the document of who signed it".to_owned()
    })?;
    reader.finish(&document).map_err(|e| wrong(e.to_string()))?;
    expect(count == 1, || format!("the bundle has {count} items instead of 1"))
}

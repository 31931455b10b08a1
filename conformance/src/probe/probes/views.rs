//! What a grantee gets: filter, projection, ranking, caps, proof.

use super::super::context::{Context, expect};
use super::super::{Failed, Probe, Severity};
use super::{ids, items, note, owned, probe};
use crate::possession;
use serde_json::{Value, json};
use std::collections::BTreeSet;

pub(super) fn all() -> Vec<Probe> {
    use Severity::{Critical, Major};
    vec![
        owned("memory-exchange-possession", &["ME-12", "ME-02", "RC-1"], Critical, probe!(possession_sound)),
        owned("filter", &["ME-09", "ME-14"], Critical, probe!(filter)),
        owned("max-items", &["ME-09"], Critical, probe!(max_items)),
        owned("max-results", &["ME-09"], Major, probe!(max_results)),
        owned("projection", &["ME-01"], Critical, probe!(projection)),
        owned("salted-digests", &["CM-1"], Critical, probe!(salted)),
        owned("hidden-text-does-not-match", &["ME-01", "ME-13"], Critical, probe!(hidden_text)),
        owned("ranking-by-the-view-alone", &["ME-13"], Critical, probe!(ranking)),
        owned("labels-outside", &["ME-13", "ME-14"], Critical, probe!(labels_outside)),
        owned("embeddings-by-default", &["ME-05"], Critical, probe!(embeddings)),
        owned("cursors", &["ME-09"], Major, probe!(cursors)),
        owned("unknown-query-members", &["PM-4"], Major, probe!(unknown_members)),
        owned("receipts-of-others", &["RC-2"], Critical, probe!(receipts_of_others)),
        owned("belief-stays-belief", &["ME-13"], Major, probe!(belief)),
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
    let grantee = context.stranger();
    let draft = context.draft(&grantee, &label, 2);
    let session = context.session(grantee, draft).await?;
    let mut answers = Vec::new();
    for query in ["note", "corrected", ""] {
        answers.push(context.answer(&session, &json!({"query": query})).await?);
    }
    expect(answers.iter().any(|answer| !items(answer).is_empty()), || "the grant shows nothing".to_owned())?;
    let audit = context.get_as(&session, "/oap/audit").await?;
    let audit = audit.json()["receipts"].as_array().cloned().unwrap_or_default();
    let document = context.document().await?;
    possession::of_all(&answers, &audit, &session.grant, session.grantee.did(), &document)
        .map(drop)
        .map_err(|unsound| Failed::Wrong(unsound.to_string()))
}

async fn filter(context: &Context<'_>) -> Result<(), Failed> {
    let (inside, outside, never) = (context.word(), context.word(), context.word());
    let mut restricted = note("restricted", &[&inside]);
    restricted["sensitivity"] = json!("restricted");
    let mut kept = note("not exportable", &[&inside]);
    kept["exportable"] = json!(false);
    let mut expired = note("expired", &[&inside]);
    expired["expires_at"] = json!("2020-01-01T00:00:00Z");
    let mut elsewhere = note("in another scope", &[&inside]);
    elsewhere["scope_id"] = json!(format!("probe-{inside}"));
    let mut other_kind = note("of another kind", &[&inside]);
    other_kind["kind"] = json!("observation");
    let made = context
        .capture(&[
            note("inside", &[&inside]),
            note("outside", &[&outside]),
            note("excluded", &[&inside, &never]),
            restricted,
            kept,
            expired,
            elsewhere,
            other_kind,
        ])
        .await?;
    let grantee = context.stranger();
    let mut draft = context.draft(&grantee, &inside, 2);
    draft["filter"] = json!({"labels_any": [inside], "exclude_labels": [never], "kinds": ["fact"]});
    let session = context.session(grantee, draft).await?;
    for query in ["", "inside outside excluded restricted exportable expired scope kind"] {
        let answer = context.answer(&session, &json!({"query": query, "max_results": 100})).await?;
        let got: BTreeSet<&str> = ids(&answer).into_iter().collect();
        let admitted: BTreeSet<&str> = made.first().map(String::as_str).into_iter().collect();
        let more: Vec<&&str> = got.difference(&admitted).collect();
        expect(more.is_empty(), || {
            let place = made.iter().position(|id| more.first().is_some_and(|more| **more == id));
            format!("an item that the filter does not admit was shown (number {place:?} of the fixture)")
        })?;
    }
    let answer = context.answer(&session, &json!({"query": ""})).await?;
    expect(ids(&answer).len() == 1, || "the item that the filter admits was not shown".to_owned())
}

async fn max_items(context: &Context<'_>) -> Result<(), Failed> {
    let label = context.word();
    let words: Vec<String> = (0..6).map(|_| context.word()).collect();
    let notes: Vec<Value> = words.iter().map(|word| note(&format!("note of {word}"), &[&label])).collect();
    context.capture(&notes).await?;
    let grantee = context.stranger();
    let mut draft = context.draft(&grantee, &label, 2);
    draft["max_items"] = json!(2);
    let mut session = context.session(grantee, draft).await?;
    let mut seen: BTreeSet<String> = BTreeSet::new();
    for round in 0..3 {
        for (query, most) in words.iter().map(|word| (word.as_str(), 1)).chain([("", 100)]) {
            let answer = context.answer(&session, &json!({"query": query, "max_results": most})).await?;
            seen.extend(ids(&answer).into_iter().map(str::to_owned));
        }
        if round == 1 {
            // A new token is no new grant.
            let reply = context.exchange(&session.grantee, &session.grant).await?;
            session.token = reply.json()["memory_grant_jwt"].as_str().unwrap_or_default().to_owned();
        }
    }
    expect(seen.len() <= 2, || format!("{} distinct items were disclosed under max_items 2", seen.len()))
}

async fn max_results(context: &Context<'_>) -> Result<(), Failed> {
    let label = context.word();
    let notes: Vec<Value> = (0..5).map(|n| note(&format!("note {n}"), &[&label])).collect();
    context.capture(&notes).await?;
    let grantee = context.stranger();
    let draft = context.draft(&grantee, &label, 2);
    let session = context.session(grantee, draft).await?;
    let answer = context.answer(&session, &json!({"query": "note", "max_results": 3})).await?;
    expect(items(&answer).len() <= 3, || "more than max_results".to_owned())?;
    let relevance: Vec<f64> = items(&answer).iter().filter_map(|item| item["relevance"].as_f64()).collect();
    expect(relevance.is_sorted_by(|a, b| a >= b), || format!("not ranked by relevance: {relevance:?}"))?;
    expect(relevance.iter().all(|r| (0.0..=1.0).contains(r)), || {
        format!("relevance beyond 0..1: {relevance:?}")
    })?;
    for most in [json!(0), json!(101), json!(-1)] {
        let reply = context.query(&session, &json!({"query": "", "max_results": most})).await?;
        expect(reply.status == 400, || format!("max_results {most}: status {}", reply.status))?;
    }
    Ok(())
}

async fn projection(context: &Context<'_>) -> Result<(), Failed> {
    let (label, secret) = (context.word(), context.word());
    let mailbox = format!("{}@mail.example", context.word());
    let mut item = note(&format!("write to {mailbox} about the budget"), &[&label]);
    item["content"]["structured"] = json!({"codename": secret});
    item["subject_entity_id"] = json!(format!("urn:entity:{label}"));
    item["extensions"] = json!({"example.probe": {"trail": secret}});
    context.capture(&[item]).await?;
    for level in 0..=3u8 {
        let grantee = context.stranger();
        let draft = context.draft(&grantee, &label, level);
        let session = context.session(grantee, draft).await?;
        let reply = context.query(&session, &json!({"query": ""})).await?;
        let text = decoded(&reply.bytes);
        expect(!text.contains(&secret), || format!("level {level} shows structured content or extensions"))?;
        expect(level >= 3 || !text.contains(&mailbox), || format!("level {level} shows an e-mail address"))?;
        expect(level >= 2 || !text.contains("budget"), || format!("level {level} shows text"))?;
        expect(level >= 1 || !text.contains("urn:entity"), || format!("level {level} shows the subject"))?;
        let answer = reply.json();
        let applied = &answer["projection_applied"];
        expect(applied["trust_level"] == level, || "projection_applied names another level".to_owned())?;
        expect(level < 2 || text.contains("budget"), || format!("level {level} hides the text"))?;
    }
    Ok(())
}

/// The bytes of an answer, and whatever is base64url in it.
fn decoded(bytes: &[u8]) -> String {
    use base64::Engine;
    let mut text = String::from_utf8_lossy(bytes).into_owned();
    let parts: Vec<String> =
        text.split(['"', '~', '.']).filter(|part| part.len() > 16).map(str::to_owned).collect();
    for part in parts {
        if let Ok(inner) = base64::engine::general_purpose::URL_SAFE_NO_PAD.decode(&part) {
            text.push_str(&String::from_utf8_lossy(&inner));
        }
    }
    text
}

/// Two items that say the same: no salt and no digest of theirs may be the same, or one who guesses is told so.
async fn salted(context: &Context<'_>) -> Result<(), Failed> {
    use base64::Engine;
    let label = context.word();
    let decode =
        |part: &str| base64::engine::general_purpose::URL_SAFE_NO_PAD.decode(part).unwrap_or_default();
    context.capture(&[note("the same", &[&label]), note("the same", &[&label])]).await?;
    let grantee = context.stranger();
    let draft = context.draft(&grantee, &label, 3);
    let session = context.session(grantee, draft).await?;
    let answer = context.answer(&session, &json!({"query": ""})).await?;
    expect(items(&answer).len() == 2, || "both items were to be seen".to_owned())?;
    let (mut salts, mut digests) = (BTreeSet::new(), BTreeSet::new());
    for item in items(&answer) {
        let presented = item["integrity"]["sd_jwt"].as_str().unwrap_or_default();
        let mut parts = presented.split('~').filter(|part| !part.is_empty());
        let issued = parts.next().and_then(|jwt| jwt.split('.').nth(1)).map(decode).unwrap_or_default();
        let issued: Value = serde_json::from_slice(&issued).unwrap_or_default();
        let mut concealed: Vec<Value> = issued["_sd"].as_array().cloned().unwrap_or_default();
        for disclosure in parts {
            let disclosure: Value = serde_json::from_slice(&decode(disclosure)).unwrap_or_default();
            let salt = disclosure[0].as_str().unwrap_or_default().to_owned();
            expect(decode(&salt).len() >= 16, || format!("a salt of less than 128 bits: {salt:?}"))?;
            expect(salts.insert(salt), || "two parts are concealed with the same salt".to_owned())?;
            let value = disclosure.as_array().and_then(|parts| parts.last());
            concealed.extend(value.and_then(|v| v["_sd"].as_array()).into_iter().flatten().cloned());
        }
        for digest in concealed {
            expect(digests.insert(digest.to_string()), || "two items have a digest in common".to_owned())?;
        }
    }
    expect(!salts.is_empty(), || "the items have no SD-JWT with disclosures".to_owned())
}

async fn hidden_text(context: &Context<'_>) -> Result<(), Failed> {
    let (label, mailbox, code) = (context.word(), context.word(), context.word());
    let mut item = note(&format!("write to {mailbox}@mail.example soon"), &[&label]);
    item["content"]["structured"] = json!({"codename": code});
    context.capture(&[item]).await?;
    let grantee = context.stranger();
    let draft = context.draft(&grantee, &label, 2);
    let session = context.session(grantee, draft).await?;
    for word in [&mailbox, &code] {
        let answer = context.answer(&session, &json!({"query": word})).await?;
        expect(items(&answer).is_empty(), || "a query finds an item by a word that it hides".to_owned())?;
    }
    Ok(())
}

async fn ranking(context: &Context<'_>) -> Result<(), Failed> {
    let (inside, outside, rare, common) = (context.word(), context.word(), context.word(), context.word());
    context
        .capture(&[
            note(&format!("{rare} stands here"), &[&inside]),
            note(&format!("{common} stands here"), &[&inside]),
            note("neither of them", &[&inside]),
        ])
        .await?;
    let grantee = context.stranger();
    let draft = context.draft(&grantee, &inside, 2);
    let session = context.session(grantee, draft).await?;
    let query = json!({"query": format!("{rare} {common}")});
    let told = |answer: &Value| -> Vec<(String, String)> {
        items(answer).iter().map(|i| (i["item_id"].to_string(), i["relevance"].to_string())).collect()
    };
    let before = told(&context.answer(&session, &query).await?);
    let flood: Vec<Value> = (0..30).map(|_| note(&format!("{common} {common}"), &[&outside])).collect();
    context.capture(&flood).await?;
    let after = told(&context.answer(&session, &query).await?);
    expect(before == after, || "items outside the filter change order or relevance".to_owned())
}

async fn labels_outside(context: &Context<'_>) -> Result<(), Failed> {
    let (inside, outside) = (context.word(), context.word());
    context.capture(&[note("inside", &[&inside]), note("outside", &[&outside])]).await?;
    let grantee = context.stranger();
    let draft = context.draft(&grantee, &inside, 2);
    let session = context.session(grantee, draft).await?;
    let mut sizes = Vec::new();
    for label in [&outside, &context.word()] {
        let reply = context.query(&session, &json!({"query": "", "labels_any": [label]})).await?;
        let answer = reply.json();
        expect(items(&answer).is_empty(), || "a label outside the grant opens it".to_owned())?;
        sizes.push((reply.status, reply.bytes.len()));
    }
    expect(sizes[0] == sizes[1], || {
        format!("a label that exists and one that does not are told apart: {sizes:?}")
    })
}

async fn embeddings(context: &Context<'_>) -> Result<(), Failed> {
    let label = context.word();
    let made = context.capture(&[note("a note", &[&label])]).await?;
    let grantee = context.stranger();
    let draft = context.draft(&grantee, &label, 4);
    let session = context.session(grantee, draft).await?;
    let reply = context.query(&session, &json!({"query": "", "include_embeddings": true})).await?;
    expect(reply.status == 403, || {
        format!("embeddings asked for without the right: status {}", reply.status)
    })?;
    let answer = context.answer(&session, &json!({"query": ""})).await?;
    expect(!answer.to_string().contains("vector_url"), || "an answer names a vector".to_owned())?;
    let path = format!("/oap/memory/vec/{}", made.first().map_or("", String::as_str));
    let reply = context.get_as(&session, &path).await?;
    expect(reply.status >= 400, || format!("a vector is served without the right: status {}", reply.status))
}

async fn cursors(context: &Context<'_>) -> Result<(), Failed> {
    let label = context.word();
    let notes: Vec<Value> = (0..5).map(|n| note(&format!("note {n}"), &[&label])).collect();
    let made = context.capture(&notes).await?;
    let grantee = context.stranger();
    let draft = context.draft(&grantee, &label, 2);
    let session = context.session(grantee, draft).await?;
    let mut query = json!({"query": "", "max_results": 2});
    let mut seen = Vec::new();
    for _ in 0..5 {
        let answer = context.answer(&session, &query).await?;
        seen.extend(ids(&answer).into_iter().map(str::to_owned));
        match answer["next_cursor"].as_str() {
            Some(cursor) => query["cursor"] = json!(cursor),
            None => break,
        }
    }
    let distinct: BTreeSet<&String> = seen.iter().collect();
    expect(distinct.len() == seen.len() && seen.len() == made.len(), || {
        format!(
            "walking by cursors gave {} items, {} of them distinct, of {}",
            seen.len(),
            distinct.len(),
            made.len()
        )
    })?;
    for forged in [context.word(), "AAAA".to_owned()] {
        let reply = context.query(&session, &json!({"query": "", "cursor": forged})).await?;
        expect(reply.status == 400, || format!("a made-up cursor: status {}", reply.status))?;
    }
    Ok(())
}

async fn unknown_members(context: &Context<'_>) -> Result<(), Failed> {
    let label = context.word();
    context.capture(&[note("a note", &[&label])]).await?;
    let grantee = context.stranger();
    let draft = context.draft(&grantee, &label, 2);
    let session = context.session(grantee, draft).await?;
    for member in ["filter", "trust_level", "scopes"] {
        let reply = context.query(&session, &json!({"query": "", member: 4})).await?;
        expect(reply.status == 400, || {
            format!("a query with {member}: status {} instead of 400", reply.status)
        })?;
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

async fn belief(context: &Context<'_>) -> Result<(), Failed> {
    let label = context.word();
    let mut doubtful = note("perhaps", &[&label]);
    doubtful["provenance"] = json!({"confidence": 0.6});
    let mut unlikely = note("hardly", &[&label]);
    unlikely["provenance"] = json!({"confidence": 0.1});
    context.capture(&[doubtful, unlikely]).await?;
    let grantee = context.stranger();
    let draft = context.draft(&grantee, &label, 4);
    let session = context.session(grantee, draft).await?;
    let answer = context.answer(&session, &json!({"query": ""})).await?;
    for item in items(&answer) {
        let confidence = item["provenance"]["confidence"].as_f64().unwrap_or(1.0);
        let attitude = item["epistemic"].as_str().unwrap_or_default();
        let highest = if confidence >= 1.0 {
            "knowledge"
        } else if confidence >= 0.5 {
            "belief"
        } else {
            "possession"
        };
        let rank = |name: &str| ["possession", "belief", "knowledge"].iter().position(|n| *n == name);
        expect(rank(attitude).is_some() && rank(attitude) <= rank(highest), || {
            format!("confidence {confidence} is passed on as {attitude:?}")
        })?;
    }
    Ok(())
}

//! What a grantee gets: filter, ranking, caps.

use super::super::context::{Context, Session, expect, post};
use super::super::declared::Place;
use super::super::{Failed, Probe, Severity};
use super::{ids, items, note, owned, probe};
use serde_json::{Value, json};
use std::collections::BTreeSet;

pub(super) fn all() -> Vec<Probe> {
    use Severity::{Critical, Major};
    vec![
        owned("item-form", &["IT-1"], Major, probe!(item_form)),
        owned("filter", &["ME-09", "ME-14"], Critical, probe!(filter)),
        owned("max-items", &["ME-09", "SP-06"], Critical, probe!(max_items)),
        owned("max-results", &["ME-09"], Major, probe!(max_results)),
        owned("ranking-by-the-view-alone", &["ME-13", "CH-04"], Critical, probe!(ranking)),
        owned("ranking-by-words", &["ME-09", "CH-04"], Major, probe!(by_words)),
        owned("labels-outside", &["ME-13", "ME-14"], Critical, probe!(labels_outside)),
        owned("embeddings-by-default", &["ME-05"], Critical, probe!(embeddings)),
        owned("cursors", &["ME-09"], Major, probe!(cursors)),
        owned("unknown-query-members", &["PM-4", "CO-38"], Major, probe!(unknown_members)),
        owned("strict-json", &["PM-4"], Major, probe!(strict_json)),
        owned("belief-stays-belief", &["ME-13", "ME-11"], Major, probe!(belief)),
    ]
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
    // Labels are the bytes that they are.
    let near = [inside.to_uppercase(), format!("{inside}s"), inside.get(1..).unwrap_or_default().to_owned()];
    let near = near.each_ref().map(|label| note("of a label that is nearly the same", &[label]));
    let mut notes = vec![
        note("inside", &[&inside]),
        note("outside", &[&outside]),
        note("excluded", &[&inside, &never]),
        restricted,
        kept,
        expired,
        elsewhere,
        other_kind,
    ];
    notes.extend(near);
    let made = context.capture(&notes).await?;
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
    let limit = context.declared().max_items.min(2);
    draft["max_items"] = json!(limit);
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
    expect(seen.len() as u64 == limit, || {
        format!("{} distinct items were disclosed under max_items {limit}", seen.len())
    })?;
    // What was disclosed stays so: another version is no other item, and what is erased leaves no room.
    let all: Vec<String> = seen.iter().cloned().collect();
    let (Some(one), listing) = (all.first(), json!({"query": "", "max_results": 100})) else { return Ok(()) };
    let text = json!({"content": {"text": format!("note of {}", context.word())}});
    context.owner(json!({"do": "correct", "item_id": one, "item": text})).await?;
    let shown = context.answer(&session, &listing).await?;
    expect(
        ids(&shown).into_iter().collect::<BTreeSet<_>>() == seen.iter().map(String::as_str).collect(),
        || "after a correction of what was disclosed other items come under max_items".to_owned(),
    )?;
    context.owner(json!({"do": "delete", "item_ids": [one]})).await?;
    let shown = context.answer(&session, &listing).await?;
    expect(ids(&shown) == all.iter().skip(1).map(String::as_str).collect::<Vec<_>>(), || {
        "what was erased after it was disclosed leaves room under max_items".to_owned()
    })
}

async fn max_results(context: &Context<'_>) -> Result<(), Failed> {
    let label = context.word();
    let notes: Vec<Value> =
        (0..context.declared().max_items.min(5)).map(|n| note(&format!("note {n}"), &[&label])).collect();
    context.capture(&notes).await?;
    let session = context.granted(&label, 2).await?;
    let answer = context.answer(&session, &json!({"query": "note", "max_results": 3})).await?;
    let most = notes.len().min(3);
    expect(items(&answer).len() == most, || {
        format!("{} items instead of {most}, the max_results", items(&answer).len())
    })?;
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

async fn ranking(context: &Context<'_>) -> Result<(), Failed> {
    let (inside, outside, rare, common) = (context.word(), context.word(), context.word(), context.word());
    context
        .capture(&[
            note(&format!("{rare} stands here"), &[&inside]),
            // Twice as often: how rare a word is next to the other depends on how many items there are.
            note(&format!("{common} stands here"), &[&inside]),
            note(&format!("{common} stands there"), &[&inside]),
            note("neither of them", &[&inside]),
        ])
        .await?;
    let session = context.granted(&inside, 2).await?;
    let query = json!({"query": format!("{rare} {common}")});
    let told = |answer: &Value| -> Vec<(String, String)> {
        items(answer).iter().map(|i| (i["item_id"].to_string(), i["relevance"].to_string())).collect()
    };
    let before = told(&context.answer(&session, &query).await?);
    expect(!before.is_empty(), || "nothing is found by the words of items in the grant".to_owned())?;
    let flood: Vec<Value> = (0..30).map(|_| note(&format!("{common} {common}"), &[&outside])).collect();
    context.capture(&flood).await?;
    let after = told(&context.answer(&session, &query).await?);
    expect(before == after, || "items outside the filter change order or relevance".to_owned())
}

/// A short text that has a word three times, a long one that has it once, and one that has it not: what BM25 (k1 1.2, b 0.75) makes of them.
async fn by_words(context: &Context<'_>) -> Result<(), Failed> {
    /// The relevance of the long one, and how far it may be from that: it hangs a little on whether labels count as words of a text.
    const LONG: (f64, f64) = (0.37, 0.03);
    let (label, word) = (context.word(), context.word());
    let others = |count: usize| (0..count).map(|_| context.word()).collect::<Vec<_>>().join(" ");
    let long = format!("{} {word} {}", others(10), others(9));
    let short = format!("{word} {word} {word}");
    let made = context
        .capture(&[note(&long, &[&label]), note(&short, &[&label]), note(&others(4), &[&label])])
        .await?;
    let session = context.granted(&label, 2).await?;
    let answer = context.answer(&session, &json!({"query": word})).await?;
    let relevance: Vec<f64> = items(&answer).iter().filter_map(|item| item["relevance"].as_f64()).collect();
    expect(relevance.first().is_some_and(|best| *best >= 1.0), || {
        format!("the best that a word finds has not the relevance 1: {relevance:?}")
    })?;
    // With a model of embeddings vectors count as well.
    if context.declared().embeddings || context.declared().max_items < 2 {
        return Ok(());
    }
    let order = [made.get(1), made.first()].map(|id| id.map_or("", String::as_str));
    expect(ids(&answer) == order, || {
        format!(
            "a short text with a word three times, and a long one with it once: found are {:?}, must be {order:?}",
            ids(&answer)
        )
    })?;
    let (by_bm25, apart) = LONG;
    expect(relevance.get(1).is_some_and(|long| (long - by_bm25).abs() <= apart), || {
        format!("BM25 gives the second one {by_bm25}, give or take {apart}: relevance is {relevance:?}")
    })
}

async fn labels_outside(context: &Context<'_>) -> Result<(), Failed> {
    let (inside, outside) = (context.word(), context.word());
    context.capture(&[note("inside", &[&inside]), note("outside", &[&outside])]).await?;
    let session = context.granted(&inside, 2).await?;
    let answer = context.answer(&session, &json!({"query": "", "labels_any": [inside]})).await?;
    expect(items(&answer).len() == 1, || "a label inside the grant does not show its item".to_owned())?;
    let mut sizes = Vec::new();
    // Labels are the bytes that they are: neither case nor a beginning opens one.
    let others =
        [inside.to_uppercase(), format!("{inside}s"), inside.get(1..).unwrap_or_default().to_owned()];
    for label in [outside, context.word()].iter().chain(&others) {
        let reply = context.query(&session, &json!({"query": "", "labels_any": [label]})).await?;
        let answer = reply.json();
        expect(items(&answer).is_empty(), || "a label outside the grant opens it".to_owned())?;
        sizes.push((reply.status, reply.bytes.len()));
    }
    expect(sizes.windows(2).all(|two| two[0] == two[1]), || {
        format!("a label that exists and one that does not are told apart: {sizes:?}")
    })
}

async fn embeddings(context: &Context<'_>) -> Result<(), Failed> {
    let label = context.word();
    let made = context.capture(&[note("a note", &[&label])]).await?;
    let session = context.granted(&label, 4).await?;
    let reply = context.query(&session, &json!({"query": "", "include_embeddings": true})).await?;
    expect(reply.status == 403, || {
        format!("embeddings asked for without the right: status {}", reply.status)
    })?;
    let answer = context.answer(&session, &json!({"query": ""})).await?;
    expect(items(&answer).len() == 1, || "the item was to be seen".to_owned())?;
    expect(!answer.to_string().contains("vector_url"), || "an answer names a vector".to_owned())?;
    let path = format!("/oap/memory/vec/{}", made.first().map_or("", String::as_str));
    let reply = context.get_as(&session, &path).await?;
    expect(reply.status >= 400, || format!("a vector is served without the right: status {}", reply.status))
}

async fn cursors(context: &Context<'_>) -> Result<(), Failed> {
    let label = context.word();
    let notes: Vec<Value> =
        (0..context.declared().max_items.min(5)).map(|n| note(&format!("note {n}"), &[&label])).collect();
    let made = context.capture(&notes).await?;
    let session = context.granted(&label, 2).await?;
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
    let session = context.granted(&label, 2).await?;
    context.answer(&session, &json!({"query": ""})).await?;
    for member in ["filter", "trust_level", "scopes"] {
        let reply = context.query(&session, &json!({"query": "", member: 4})).await?;
        expect(reply.status == 400, || {
            format!("a query with {member}: status {} instead of 400", reply.status)
        })?;
    }
    // No refusal repeats what was sent (protocol section 1).
    for member in ["kinds", "cursor", "purpose", "integrity", "request_id", "colour"] {
        let word = format!("Q7{}", context.word());
        let mut query = json!({member: word});
        match member {
            "kinds" => query[member] = json!([word]),
            "colour" => query = json!({&word: 1}),
            _ => {}
        }
        let reply = context.query(&session, &query).await?;
        if reply.status == 200 {
            continue;
        }
        let body = String::from_utf8_lossy(&reply.bytes).into_owned();
        expect(!body.contains(&word), || {
            format!("the refusal of a query by {member} repeats what was sent: {body}")
        })?;
    }
    Ok(())
}

/// A body is JSON of either type, with or without parameters, and of no other (protocol section 1).
async fn media_types(context: &Context<'_>, session: &Session) -> Result<(), Failed> {
    for (media_type, must) in [
        ("application/json", 200),
        ("application/oap+json; charset=utf-8", 200),
        ("text/plain", 400),
        ("application/xml", 400),
    ] {
        let status = context.query_of_type(session, media_type).await?.status;
        expect(status == must, || {
            format!("a query of type {media_type}: status {status} instead of {must}")
        })?;
    }
    Ok(())
}

/// A proof of possession is used up whatever came of its request (protocol section 5.1).
async fn used_up(context: &Context<'_>, session: &Session) -> Result<(), Failed> {
    let path = context.at(Place::Query);
    let credentials = context.credentials(session, &session.grantee, "POST", path)?;
    let status = context.send(post(path, &credentials, r#"{"colour": 1}"#)).await?.status;
    if status != 400 {
        // It was waited for, and the proof with it.
        return Ok(());
    }
    let status = context.send(post(path, &credentials, "{}")).await?.status;
    expect(status == 401, || {
        format!("a query with the proof of one that was refused: status {status} instead of 401")
    })
}

/// A query takes over the name that its request has, and keeps one of its own (protocol section 1).
async fn named_requests(context: &Context<'_>, session: &Session) -> Result<(), Failed> {
    let [header, own] = ["01J9V8B7H1ZK4D2A0M9R8F0KQX", "01J9V8B7H1ZK4D2A0M9R8F0KQY"];
    for (query, name) in [(json!({}), header), (json!({"request_id": own}), own)] {
        let reply = context.query_named(session, header, &query).await?;
        let got = reply.json()["request_id"].as_str().unwrap_or_default().to_owned();
        expect(reply.status == 200 && got == name, || {
            format!("{query} in a request by name {header}: status {}, request_id {got:?}", reply.status)
        })?;
    }
    Ok(())
}

/// A body that two readers may understand differently, from a caller who is let in.
async fn strict_json(context: &Context<'_>) -> Result<(), Failed> {
    let label = context.word();
    context.capture(&[note("a note", &[&label])]).await?;
    let session = context.granted(&label, 2).await?;
    let receipt = context.answer(&session, &json!({"query": ""})).await?["receipt"].clone();
    for (what, body) in [
        ("a duplicate member", r#"{"query": "", "query": "note"}"#),
        ("a duplicate member, escaped", r#"{"query": "", "qu\u0065ry": "note"}"#),
        ("a second document", r#"{"query": ""} {"query": "note"}"#),
        ("a lone surrogate", r#"{"query": "\ud800"}"#),
        ("an array in place of the object", r#"["note", 5]"#),
    ] {
        let reply = context.query_text(&session, body).await?;
        expect(reply.status == 400, || format!("{what}: status {} instead of 400", reply.status))?;
    }
    strict_values(context, &receipt).await?;
    media_types(context, &session).await?;
    used_up(context, &session).await?;
    named_requests(context, &session).await
}

/// Levels and whole numbers, at their bounds. A query has no place for any value; the decision of a receipt has, and a receipt that was changed
/// is not there, where it can be read.
async fn strict_values(context: &Context<'_>, receipt: &Value) -> Result<(), Failed> {
    const VERIFY: &str = "/oap/receipt/verify";
    let status = context.post(VERIFY, &[], receipt).await?.status;
    if [404, 405].contains(&status) {
        return Ok(());
    }
    expect(status == 200, || format!("a receipt of an answer, at {VERIFY}: status {status} instead of 200"))?;
    // Receipt, decisions, decision: the arrays in it begin with the fourth level.
    let nested = |levels: usize| format!("{}{}", "[".repeat(levels - 3), "]".repeat(levels - 3));
    for (what, value, status) in [
        ("64 levels", nested(64), 404),
        ("65 levels", nested(65), 400),
        ("a whole number of 2^53-1", "9007199254740991".to_owned(), 404),
        ("a whole number of 2^53+1", "9007199254740993".to_owned(), 400),
        ("one with an exponent", "9007199254740993e0".to_owned(), 400),
    ] {
        let mut changed = receipt.clone();
        changed["policy_decisions"][0]["added"] = json!("HERE");
        let body = changed.to_string().replace("\"HERE\"", &value);
        let request = post(VERIFY, &[], &body);
        let reply = context.send(request).await?;
        expect(reply.status == status, || {
            format!("a receipt with {what}: status {} instead of {status}", reply.status)
        })?;
    }
    Ok(())
}

async fn belief(context: &Context<'_>) -> Result<(), Failed> {
    let label = context.word();
    let mut doubtful = note("perhaps", &[&label]);
    let threshold = context.declared().belief_threshold;
    doubtful["provenance"] = json!({"confidence": threshold});
    let mut unlikely = note("hardly", &[&label]);
    unlikely["provenance"] = json!({"confidence": threshold * 0.9});
    context.capture(&[doubtful, unlikely]).await?;
    let session = context.granted(&label, 4).await?;
    let answer = context.answer(&session, &json!({"query": ""})).await?;
    let most = usize::try_from(context.declared().max_items).unwrap_or(usize::MAX).min(2);
    expect(items(&answer).len() == most, || format!("{} items instead of {most}", items(&answer).len()))?;
    for item in items(&answer) {
        let confidence = item["provenance"]["confidence"].as_f64().unwrap_or(1.0);
        let attitude = item["epistemic"].as_str().unwrap_or_default();
        let highest = if confidence >= 1.0 {
            "knowledge"
        } else if confidence >= threshold {
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

/// Items are as RFC 0010 3.2 and protocol section 6 have them.
async fn item_form(context: &Context<'_>) -> Result<(), Failed> {
    let label = context.word();
    let manifest = context.get("/.well-known/oap-memory.json").await?;
    let kinds = manifest["kinds_supported"].as_array().cloned().unwrap_or_default();
    let notes: Vec<Value> = kinds
        .iter()
        .map(|kind| {
            let mut item = note("a note", &[&label]);
            item["kind"] = kind.clone();
            item
        })
        .collect();
    let made = context.capture(&notes).await?;
    let session = context.granted(&label, 4).await?;
    let answer = context.answer(&session, &json!({"query": "", "max_results": 100})).await?;
    let most = usize::try_from(context.declared().max_items).unwrap_or(usize::MAX);
    expect(items(&answer).len() == kinds.len().min(most), || {
        format!("of {} kinds in the manifest {} come back", kinds.len(), items(&answer).len())
    })?;
    for item in items(&answer) {
        let id = item["item_id"].as_str().unwrap_or_default();
        let wrong = |what: &str| format!("{id}: {what}");
        expect(made.iter().any(|made| made == id), || wrong("item_id is none that was given at capture"))?;
        expect(kinds.contains(&item["kind"]), || wrong("kind is none that the manifest names"))?;
        expect(item["content"]["text"] == "a note", || wrong("content.text is not what was captured"))?;
        expect(item["provenance"]["captured_at"].is_string(), || wrong("provenance.captured_at is missing"))?;
        let attitude = ["knowledge", "belief", "possession"].iter().any(|a| item["epistemic"] == *a);
        expect(attitude, || wrong("epistemic is not knowledge, belief or possession"))?;
        expect(item["relevance"].is_number(), || wrong("relevance is missing"))?;
    }
    Ok(())
}

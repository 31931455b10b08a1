//! What a question finds: by which words, by which days, in which order, and what of it hangs on pages.

use super::super::context::{Context, Session, expect};
use super::super::{Failed, Probe, Severity};
use super::{ids, items, note, owned, probe, room_for};
use oap_identity::Timestamp;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::time::Duration;

pub(super) fn all() -> Vec<Probe> {
    use Severity::Major;
    vec![
        owned("found-by-what-it-says", &["ME-09", "ME-02", "CH-04"], Major, probe!(by_what_it_says)),
        owned("found-by-days", &["ME-09", "CH-04"], Major, probe!(by_days)),
        owned("ranking-by-formula", &["ME-09", "CH-04"], Major, probe!(by_formula)),
        owned("turns-in-context", &["ME-09", "CH-04"], Major, probe!(in_context)),
        owned("pages-over-changes", &["ME-09", "ME-06"], Major, probe!(over_changes)),
    ]
}

/// What a question finds, in the order of the answer.
async fn found(context: &Context<'_>, session: &Session, question: &str) -> Result<Vec<String>, Failed> {
    let answer = context.answer(session, &json!({"query": question, "max_results": 100})).await?;
    Ok(ids(&answer).into_iter().map(str::to_owned).collect())
}

/// Where a model of embeddings ranks, anything may be near.
fn by_words_alone(context: &Context<'_>) -> Result<(), Failed> {
    if context.declared().embeddings {
        return Err(Failed::NotDeclared("ranking by words alone".to_owned()));
    }
    Ok(())
}

/// An item is found by each word that it shows, as it is now: not by one that it said before, and not while it is taken back.
async fn by_what_it_says(context: &Context<'_>) -> Result<(), Failed> {
    room_for(context, 2)?;
    let near = context.declared().embeddings;
    let (label, scope) = (context.word(), context.word());
    let said: Vec<String> = (0..4).map(|_| context.word()).collect();
    let now: Vec<String> = (0..4).map(|_| context.word()).collect();
    let item = |words: &[String]| {
        json!({
            "kind": "fact", "labels": [label, words[0]], "subject_entity_id": format!("urn:entity:{}", words[1]),
            "content": {"text": format!("it says {}", words[2]), "structured": {(scope.clone()): {"deep": [words[3]]}}},
        })
    };
    let made = context.capture(&[item(&said), note("another one", &[&label])]).await?;
    let id = made.first().cloned().unwrap_or_default();
    let session = context.granted(&label, 4).await?;
    let finds = async |when: &str, words: &[String], must: bool| {
        for word in words {
            let got = found(context, &session, word).await?;
            let is_so = match (must, near) {
                (true, true) => got.contains(&id),
                (true, false) => got == [id.clone()],
                (false, _) => near || got.is_empty(),
            };
            expect(is_so, || {
                let must = if must { "that item alone" } else { "nothing" };
                format!("{when}: {word:?} finds {got:?}, must find {must}")
            })?;
        }
        Ok::<(), Failed>(())
    };
    finds("captured", &said, true).await?;
    let changed = item(&now);
    context.owner(json!({"do": "relabel", "item_id": id, "labels": changed["labels"]})).await?;
    finds("relabelled", &said[..1], false).await?;
    finds("relabelled", &[now[0].clone(), said[1].clone()], true).await?;
    let correction =
        json!({"subject_entity_id": changed["subject_entity_id"], "content": changed["content"]});
    context.owner(json!({"do": "correct", "item_id": id, "item": correction})).await?;
    finds("corrected", &said, false).await?;
    finds("corrected", &now, true).await?;
    context.owner(json!({"do": "retract", "item_id": id})).await?;
    finds("taken back", &now, false).await?;
    context.owner(json!({"do": "restore", "item_id": id})).await?;
    finds("put back", &now, true).await
}

/// A note of a day, at noon.
fn of_day(day: &str, label: &str) -> Value {
    let mut item = note("lantern kettle", &[label]);
    item["provenance"] = json!({"captured_at": format!("{day}T12:00:00Z")});
    item
}

/// Items of a probe, by number.
type Numbers = &'static [usize];

/// A month or a day that a question names, of the years that it names (protocol section 6).
async fn by_days(context: &Context<'_>) -> Result<(), Failed> {
    room_for(context, 4)?;
    let near = context.declared().embeddings;
    let label = context.word();
    let days = ["2021-03-08", "2021-03-09", "2020-03-08", "2021-11-08"];
    let made = context.capture(&days.map(|day| of_day(day, &label))).await?;
    let session = context.granted(&label, 2).await?;
    // What must be first, what must be there, what must not: by number.
    let cases: [(&str, [Numbers; 3]); 12] = [
        ("8 March 2021", [&[0], &[0, 1], &[2]]),
        ("March 8, 2021", [&[0], &[0, 1], &[2]]),
        ("on 2021-03-08", [&[0], &[0, 1], &[2]]),
        ("the 9th of March 2021", [&[1], &[0, 1], &[2]]),
        // Each form for either of two that lie beside each other: what comes first must not be so by its id.
        ("9 March 2021", [&[1], &[0, 1], &[2]]),
        ("on 2021-03-09", [&[1], &[0, 1], &[2]]),
        ("the 8th of March 2021", [&[0], &[0, 1], &[2]]),
        ("8 March", [&[0, 2], &[0, 1, 2], &[3]]),
        ("in March", [&[0, 1, 2], &[0, 1, 2], &[3]]),
        ("in November 2021", [&[3], &[3], &[2]]),
        ("2020", [&[2], &[2], &[0, 1, 3]]),
        ("what was last week", [&[], &[], &[0, 1, 2, 3]]),
    ];
    for (question, [first, must, must_not]) in cases {
        let got = found(context, &session, question).await?;
        let id = |number: &usize| made.get(*number).cloned().unwrap_or_default();
        let is_first =
            got.get(..first.len()).is_some_and(|begun| first.iter().all(|n| begun.contains(&id(n))));
        let is_there = must.iter().all(|number| got.contains(&id(number)));
        let is_more = must_not.iter().any(|number| got.contains(&id(number)));
        expect(is_there && (near || (is_first && !is_more)), || {
            let place = |id: &String| made.iter().position(|made| made == id);
            let got: Vec<Option<usize>> = got.iter().map(place).collect();
            format!(
                "{question:?}, of notes of {days:?}: finds {got:?}, must find {must:?}, {first:?} first, and not \
                 {must_not:?}"
            )
        })?;
    }
    Ok(())
}

/// Okapi BM25, k1 1.2, b 0.75 (protocol section 6), of the number of items that have a word, of how many; of how often it stands in one, and how long
/// that is by the mean.
fn bm25(having: usize, of: usize, count: usize, length: f64) -> f64 {
    let (having, of, count) = (having as f64, of as f64, count as f64);
    let rarity = (1.0 + (of - having + 0.5) / (having + 0.5)).ln();
    rarity * count * 2.2 / (count + 1.2 * (0.25 + 0.75 * length))
}

/// `relevance` is the score by the best one, in four decimals.
async fn by_formula(context: &Context<'_>) -> Result<(), Failed> {
    by_words_alone(context)?;
    room_for(context, 5)?;
    let (label, filling) = (context.word(), context.word());
    let asked = [context.word(), context.word()];
    // How often each of two words stands in an item, and how many others.
    let counts: [(usize, usize, usize); 5] = [(1, 0, 2), (2, 0, 9), (0, 1, 0), (1, 2, 4), (0, 0, 7)];
    let text = |(one, other, more): (usize, usize, usize)| {
        let words = std::iter::repeat_n(&asked[0], one).chain(std::iter::repeat_n(&asked[1], other));
        words.chain(std::iter::repeat_n(&filling, more)).cloned().collect::<Vec<String>>().join(" ")
    };
    let notes: Vec<Value> = counts.iter().map(|counts| note(&text(*counts), &[&label])).collect();
    let made = context.capture(&notes).await?;
    let session = context.granted(&label, 2).await?;
    // Beside its text each has one word, its label.
    let lengths = counts.map(|(one, other, more)| (one + other + more + 1) as f64);
    let mean = lengths.iter().sum::<f64>() / lengths.len() as f64;
    let having = [
        counts.iter().filter(|counts| counts.0 > 0).count(),
        counts.iter().filter(|counts| counts.1 > 0).count(),
    ];
    let score = |((one, other, _), length): ((usize, usize, usize), f64)| {
        let of = |having: usize, count: usize| bm25(having, counts.len(), count, length / mean);
        of(having[0], one) + of(having[1], other)
    };
    let scores: Vec<f64> = counts.into_iter().zip(lengths).map(score).collect();
    let best = scores.iter().copied().fold(0.0, f64::max);
    let must: BTreeMap<&String, f64> = made
        .iter()
        .zip(&scores)
        .filter(|(_, score)| **score > 0.0)
        .map(|(id, score)| (id, score / best))
        .collect();
    let question = asked.join(" ");
    // A word counts once, however often and in whatever case it is asked for; and each page tells what the whole does.
    for (question, most) in [
        (question.clone(), 100),
        (format!("{question} {}, {question}", asked[1].to_uppercase()), 100),
        (question.to_uppercase(), 100),
        (question, 1),
    ] {
        let (mut got, mut cursor) = (BTreeMap::new(), Value::Null);
        for _ in 0..made.len() {
            let mut query = json!({"query": question, "max_results": most});
            if !cursor.is_null() {
                query["cursor"] = cursor;
            }
            let answer = context.answer(&session, &query).await?;
            for item in items(&answer) {
                let id = item["item_id"].as_str().unwrap_or_default().to_owned();
                got.insert(id, item["relevance"].as_f64().unwrap_or_default());
            }
            cursor = answer["next_cursor"].clone();
            if cursor.is_null() {
                break;
            }
        }
        let near = |id: &String, must: &f64| got.get(id).is_some_and(|got| (got - must).abs() <= 0.0002);
        expect(got.len() == must.len() && must.iter().all(|(id, must)| near(id, must)), || {
            format!("{question:?}, {most} a page: relevance is {got:?}, must be {must:?} (BM25)")
        })?;
    }
    Ok(())
}

/// Turns of a conversation so many seconds after its beginning, one of which has a word.
fn turns(label: &str, word: &str, says: usize, seconds: &[u64]) -> Result<Vec<Value>, Failed> {
    let begun: Timestamp =
        "2021-05-06T10:00:00Z".parse().map_err(|_| Failed::Skipped("a time".to_owned()))?;
    let turn = |(number, seconds): (usize, &u64)| {
        let text =
            if number == says { format!("they spoke of {word}") } else { format!("then number {number}") };
        json!({
            "kind": "conversation_turn", "content": {"text": text}, "labels": [label],
            "provenance": {"captured_at": begun.plus(Duration::from_secs(*seconds))},
        })
    };
    Ok(seconds.iter().enumerate().map(turn).collect())
}

/// A turn is found by a word of one of the two turns before it and after it, not further than half an hour away.
async fn in_context(context: &Context<'_>) -> Result<(), Failed> {
    by_words_alone(context)?;
    room_for(context, 6)?;
    // What a turn before says counts 0.7, of the one before that 0.4, of the one after 0.3, of the one behind that 0.1.
    for (says, seconds, must) in [
        (2, &[0, 60, 120, 180, 240, 300][..], &[2, 3, 4, 1, 0][..]),
        (0, &[0, 1_800, 3_600], &[0, 1]),
        (1, &[0, 1_801, 3_602], &[1]),
    ] {
        let (label, word) = (context.word(), context.word());
        let mut drafts = turns(&label, &word, says, seconds)?;
        if seconds.len() < 6 {
            // A note is no turn, however near.
            let mut beside = drafts[says].clone();
            (beside["kind"], beside["content"]) = (json!("fact"), json!({"text": "something else"}));
            drafts.push(beside);
        }
        let made = context.capture(&drafts).await?;
        let session = context.granted(&label, 2).await?;
        let got = found(context, &session, &word).await?;
        let place = |id: &String| made.iter().position(|made| made == id);
        let got: Vec<Option<usize>> = got.iter().map(place).collect();
        let must: Vec<Option<usize>> = must.iter().copied().map(Some).collect();
        expect(got == must, || {
            format!(
                "a word of turn {says}, of turns at {seconds:?} seconds, finds {got:?}, must find {must:?}, so ordered"
            )
        })?;
    }
    Ok(())
}

/// A page goes on after the place of the last item, whatever became of that item.
async fn over_changes(context: &Context<'_>) -> Result<(), Failed> {
    room_for(context, 5)?;
    let label = context.word();
    let days = ["2021-03-05", "2021-03-04", "2021-03-03", "2021-03-02", "2021-03-01"];
    let mut left = context.capture(&days.map(|day| of_day(day, &label))).await?;
    let session = context.granted(&label, 2).await?;
    let page = async |cursor: &Value| {
        let mut query = json!({"query": "", "max_results": 1});
        if !cursor.is_null() {
            query["cursor"] = cursor.clone();
        }
        let answer = context.answer(&session, &query).await?;
        let shown: Vec<String> = ids(&answer).into_iter().map(str::to_owned).collect();
        Ok::<_, Failed>((shown, answer["next_cursor"].clone()))
    };
    let (mut got, mut cursor) = page(&Value::Null).await?;
    // The first one goes: who leaves out as many as were shown misses one. The second one stays: who begins anew shows it again.
    for change in ["delete", "confirm", "retract", "relabel", ""] {
        expect(left.first() == got.first() && got.len() == 1, || {
            format!("behind an item that is gone a page has {got:?}, must have {:?}", left.first())
        })?;
        let last = left.remove(0);
        context
            .owner(match change {
                "" => break,
                "delete" => json!({"do": change, "item_ids": [last]}),
                "confirm" | "retract" => json!({"do": change, "item_id": last}),
                _ => json!({"do": change, "item_id": last, "labels": [context.word()]}),
            })
            .await?;
        (got, cursor) = page(&cursor).await?;
    }
    Ok(())
}

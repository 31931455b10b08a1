//! What an owner writes is what is shown, to the byte; and what may follow in the life of an item.

use super::super::context::{Context, expect, tagged};
use super::super::wire::Refused;
use super::super::{Failed, Probe, Severity};
use super::{ids, items, note, owned, probe};
use crate::world::whole_name;
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use oap_identity::Timestamp;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::time::Duration;

pub(super) fn all() -> Vec<Probe> {
    use Severity::{Critical, Major};
    vec![
        owned("text-as-written", &["ME-02", "IT-1"], Major, probe!(text_as_written)),
        owned("salts", &["ME-02", "CH-01"], Critical, probe!(salts)),
        owned("transitions", &["ME-03", "ME-06"], Major, probe!(transitions)),
        owned("times-to-come", &["ME-02"], Major, probe!(times_to_come)),
        owned("participants", &["ME-01"], Major, probe!(participants)),
        owned("contacts-of-every-scope", &["ME-01"], Critical, probe!(contacts_of_every_scope)),
    ]
}

/// Texts that are easily made others: by trimming, normalizing, other ends of lines.
const TEXTS: [&str; 10] = [
    " begins and ends with a space ",
    "ends with a line\n",
    "\r\nlines\r\nof two characters\r\n",
    "a\ttab, and two  spaces",
    "de\u{301}compose\u{301}d",
    "\u{fb01}ne \u{2126} \u{ff21}",
    "\u{feff}a mark before it",
    "a\u{a0}space that does not break\u{2028}",
    "\u{200b}nothing that is seen\u{200d}",
    "q\u{307}\u{323} \u{1f468}\u{200d}\u{1f467} \u{10ffff}",
];

/// Whether a text is one that a gateway takes is its own affair; what it takes it shows as it was written.
async fn text_as_written(context: &Context<'_>) -> Result<(), Failed> {
    let mut taken = 0;
    context.capture(&[note("plain", &[&context.word()])]).await?;
    for text in TEXTS {
        let label = context.word();
        let command = json!({"do": "capture", "items": [tagged(&note(text, &[&label]))]});
        if let Err(Refused(_)) = context.try_owner(command).await? {
            continue;
        }
        taken += 1;
        let session = context.granted(&label, 4).await?;
        let answer = context.answer(&session, &json!({})).await?;
        let shown = &answer["items"][0]["content"]["text"];
        expect(shown == text, || format!("a text is shown as {shown}, was written {text:?}"))?;
    }
    expect(taken > 0, || "no text that is not plain is taken".to_owned())
}

/// The salts of an item's disclosures.
fn salts_of(answer: &Value) -> Result<Vec<String>, Failed> {
    let presented = answer["items"][0]["integrity"]["sd_jwt"].as_str().unwrap_or_default();
    let disclosures = presented.split('~').skip(1).filter(|one| !one.is_empty());
    let salt = |disclosure: &str| {
        let bytes = URL_SAFE_NO_PAD.decode(disclosure).ok()?;
        serde_json::from_slice::<Value>(&bytes).ok()?[0].as_str().map(str::to_owned)
    };
    let all: Option<Vec<String>> = disclosures.map(salt).collect();
    let all = all.filter(|all| !all.is_empty());
    all.ok_or_else(|| Failed::Wrong("an item with disclosures that are none".to_owned()))
}

/// Each part of each version has a salt of its own: what stays the same from one version to the next, or from one item to another, does not tell so
/// to whoever is shown neither (protocol section 4.1).
async fn salts(context: &Context<'_>) -> Result<(), Failed> {
    let label = context.word();
    let item = || {
        let mut item = note("it says the same", &[&label, "twice"]);
        item["content"]["structured"] = json!({"a": "same", "b": "same", "c": ["same", "same"]});
        item["extensions"] = json!({"org.example": {"a": "same"}});
        item
    };
    let (mut known, mut versions) = (BTreeSet::new(), 0);
    for _ in 0..2 {
        let made = context.capture(&[item()]).await?;
        let session = context.granted(&label, 4).await?;
        for change in [
            Value::Null,
            json!({"do": "correct", "item": {"content": {"text": "it says the same, nearly"}}}),
            json!({"do": "relabel", "labels": [label, "twice", "more"]}),
        ] {
            if !change.is_null() {
                let mut command = change;
                command["item_id"] = json!(made.first());
                context.owner(command).await?;
            }
            let answer = context.answer(&session, &json!({})).await?;
            expect(items(&answer).len() == 1, || format!("{} items instead of 1", items(&answer).len()))?;
            versions += 1;
            for salt in salts_of(&answer)? {
                let length = URL_SAFE_NO_PAD.decode(&salt).map(|bytes| bytes.len()).unwrap_or_default();
                expect(length == 16, || format!("a salt of {length} bytes, must have 16"))?;
                expect(known.insert(salt), || {
                    format!("a salt stands twice in {versions} versions of two items")
                })?;
            }
        }
        context.owner(json!({"do": "delete", "item_ids": made})).await?;
    }
    Ok(())
}

/// What may follow in a chain, and nothing else (protocol section 4.2).
async fn transitions(context: &Context<'_>) -> Result<(), Failed> {
    let label = context.word();
    let made = context.capture(&[note("as it was", &[&label])]).await?;
    let id = made.first().cloned().unwrap_or_default();
    let command = |name: &str| match name {
        "correct" => json!({"do": name, "item_id": id, "item": {"content": {"text": "as it is"}}}),
        "relabel" => json!({"do": name, "item_id": id, "labels": [label, context.word()]}),
        "delete" => json!({"do": name, "item_ids": [id]}),
        _ => json!({"do": name, "item_id": id}),
    };
    for (state, then, refused) in [
        ("current", "confirm", &["restore"][..]),
        ("current", "retract", &["restore"]),
        ("retracted", "restore", &["retract", "correct", "relabel", "confirm"]),
        ("current", "retract", &["restore"]),
        ("retracted", "delete", &["retract", "correct", "relabel", "confirm"]),
        ("erased", "", &["retract", "restore", "correct", "relabel", "confirm"]),
    ] {
        for name in refused {
            let done = context.try_owner(command(name)).await?;
            expect(done.is_err(), || format!("{name} of an item that is {state} is done, must be refused"))?;
        }
        if !then.is_empty() {
            context.owner(command(then)).await?;
        }
    }
    // What is gone already is said to be gone, and is not deleted again.
    let other = context.capture(&[note("another", &[&label])]).await?;
    let ids = json!([id, other.first()]);
    let done = context.owner(json!({"do": "delete", "item_ids": ids})).await?;
    let cascade = &done["deletion_receipt"]["scope"]["cascade"];
    expect(cascade["not_found"] == json!([id]) && cascade["named"] == json!(other), || {
        format!("the Deletion Receipt of an item that is gone and one that is not: {cascade}")
    })
}

/// How far clocks may differ (protocol section 1), and more than that.
const SKEW: Duration = Duration::from_secs(300);

/// What became known in the future is refused, or at least not shown: a verifier refuses it, and the whole answer with it.
async fn times_to_come(context: &Context<'_>) -> Result<(), Failed> {
    let label = context.word();
    let mut ahead = note("tomorrow's news", &[&label]);
    ahead["provenance"] = json!({"captured_at": context.now().plus(3 * SKEW)});
    let command = json!({"do": "capture", "items": [tagged(&ahead)]});
    let taken = context.try_owner(command).await?.is_ok();
    let past = context.capture(&[note("today's news", &[&label])]).await?;
    let session = context.granted(&label, 2).await?;
    let answer = context.answer(&session, &json!({})).await?;
    let shown: Vec<&str> = ids(&answer);
    expect(shown == past, || {
        format!(
            "an item that became known in the future (taken: {taken}) is shown: {shown:?}, must be {past:?}"
        )
    })?;
    let item = json!({"provenance": ahead["provenance"]});
    let taken =
        context.try_owner(json!({"do": "correct", "item_id": past.first(), "item": item})).await?.is_ok();
    let answer = context.answer(&session, &json!({})).await?;
    let times = items(&answer).iter().map(|item| item["provenance"]["captured_at"].as_str());
    let last: Option<Timestamp> = times.filter_map(|at| at?.parse().ok()).max();
    expect(last.is_none_or(|last| last <= context.now().plus(2 * SKEW)), || {
        format!(
            "what was corrected to have become known in the future (taken: {taken}) is shown, of {last:?}"
        )
    })
}

/// Where a calendar event does not say how many take part, the longer of its two lists does (protocol section 7).
async fn participants(context: &Context<'_>) -> Result<(), Failed> {
    let profile = whole_name("calendar_event");
    if !context.has_profile(&profile) {
        return Err(Failed::NotDeclared(profile));
    }
    let list = |length: usize| {
        (0..length).map(|_| format!("did:web:{}.example", context.word())).collect::<Vec<_>>()
    };
    for (participants, dids, said, must) in [
        (Some(3), Some(1), None, json!(3)),
        (Some(1), Some(3), None, json!(3)),
        (Some(2), None, None, json!(2)),
        (None, Some(2), None, json!(2)),
        (Some(2), Some(2), Some(json!(7)), json!(7)),
        (None, None, None, Value::Null),
    ] {
        let label = context.word();
        let mut event = json!({"entity_type": "oap.entity.calendar_event", "start": "2026-05-01T10:00:00Z"});
        for (name, length) in [("participants", participants), ("participant_dids", dids)] {
            if let Some(length) = length {
                event[name] = json!(list(length));
            }
        }
        if let Some(said) = said {
            event["participants_count"] = said;
        }
        context
            .capture(&[json!({"kind": "fact", "content": {"structured": event}, "labels": [label]})])
            .await?;
        let grantee = context.stranger();
        let mut draft = context.draft(&grantee, &label, 2);
        draft["redaction_profile"] = json!(profile);
        let session = context.session(grantee, draft).await?;
        let answer = context.answer(&session, &json!({})).await?;
        let shown = &answer["items"][0]["content"]["structured"]["participants_count"];
        expect(*shown == must, || {
            format!("of lists of {participants:?} and {dids:?} participants_count is {shown}, must be {must}")
        })?;
    }
    Ok(())
}

/// A contact is the owner's in whatever scope it lies: what names it is hidden from those who are not trusted (protocol section 7).
async fn contacts_of_every_scope(context: &Context<'_>) -> Result<(), Failed> {
    let capital = |word: &str| {
        word.chars().take(1).flat_map(char::to_uppercase).chain(word.chars().skip(1)).collect::<String>()
    };
    let (given, family, box_of) = (capital(&context.word()), capital(&context.word()), context.word());
    let address = format!("{box_of}@mail.example");
    let contact = json!({
        "kind": "fact", "scope_id": format!("probe-{}", context.word()),
        "content": {"structured": {
            "entity_type": "oap.entity.contact", "names": {"given": given, "family": family},
            "channels": [{"type": "email", "value": address}],
        }},
    });
    context.capture(&[contact]).await?;
    let label = context.word();
    for (text, must) in [
        (format!("met {given} {family} there"), "met [third_party] there"),
        (format!("write to {address} today"), "write to [third_party] today"),
    ] {
        let made = context.capture(&[note(&text, &[&label])]).await?;
        let session = context.granted(&label, 3).await?;
        let answer = context.answer(&session, &json!({})).await?;
        let shown = answer["items"][0]["content"]["text"].as_str().unwrap_or_default();
        expect(shown == must, || {
            format!("a text that names a contact of another scope is {shown:?} at level 3, must be {must:?}")
        })?;
        context.owner(json!({"do": "delete", "item_ids": made})).await?;
    }
    Ok(())
}

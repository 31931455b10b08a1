//! Projection: what the levels of a profile show, and that nothing hidden shows otherwise.

use super::super::context::{Context, expect};
use super::super::{Failed, Probe, Severity};
use super::{items, note, owned, probe};
use crate::world::whole_name;
use serde_json::{Value, json};
use std::collections::BTreeSet;

pub(super) fn all() -> Vec<Probe> {
    use Severity::Critical;
    vec![
        owned("projection", &["ME-01"], Critical, probe!(projection)),
        owned("projection-tables", &["PR-1", "ME-01"], Critical, probe!(tables)),
        owned("salted-digests", &["CM-1"], Critical, probe!(salted)),
        owned("hidden-text-does-not-match", &["ME-01", "ME-13"], Critical, probe!(hidden_text)),
    ]
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
        let session = context.granted(&label, level).await?;
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

/// An entity of a profile of RFC 0007 3.3: its members by the level from which on they are shown.
struct Table {
    profile: &'static str,
    entity: Value,
    /// Values, each a word that stands nowhere else, and their levels.
    shown: Vec<(String, u8)>,
}

impl Table {
    /// An entity whose values say from which level on they are shown.
    fn of(
        context: &Context<'_>,
        profile: &'static str,
        entity: impl FnOnce(&mut dyn FnMut(u8) -> String) -> Value,
    ) -> Self {
        let mut shown = Vec::new();
        let entity = entity(&mut |level| {
            let word = context.word();
            shown.push((word.clone(), level));
            word
        });
        Self { profile, entity, shown }
    }
}

/// The normative tables: contact, calendar event, private calendar event, task.
fn normative(context: &Context<'_>) -> Vec<Table> {
    let contact = Table::of(context, "contact", |at| {
        json!({
            "entity_type": "oap.entity.contact",
            "names": {"given": at(0), "family": at(0), "middle": at(4)},
            "affiliations": [{"organization_id": at(1), "role": at(1), "department": at(4)}],
            "channels": [
                {"type": "email", "value": at(2), "primary": true},
                {"type": "email", "value": at(3), "primary": false},
                {"type": "messenger", "value": at(3), "primary": true},
            ],
            "languages": [at(2)], "addresses": [{"city": at(3)}], "social": [at(3)], "skills": [at(3)],
            "notes": at(4),
        })
    });
    let event = |visibility: &str, title: u8| {
        Table::of(context, "calendar_event", |at| {
            json!({
                "entity_type": "oap.entity.calendar_event",
                "start": "2026-06-01T09:00:00Z", "end": "2026-06-01T10:00:00Z", "transparency": "busy",
                "visibility": visibility, "title": at(title), "participant_dids": [at(3)],
                "location_general": at(3), "location_exact": at(4), "description": at(4),
            })
        })
    };
    let task = Table::of(context, "task", |at| {
        json!({
            "entity_type": "oap.entity.task", "status": at(0), "title": at(1), "due_at": at(1),
            "priority": at(2), "assignee_dids": [at(2)], "description": at(3), "linked_entities": [at(4)],
        })
    });
    vec![contact, event("public", 1), event("private", 4), task]
}

async fn tables(context: &Context<'_>) -> Result<(), Failed> {
    let mut known = normative(context);
    known.retain(|table| context.declared().has_profile(&whole_name(table.profile)));
    if known.is_empty() {
        return Err(Failed::NotDeclared("the manifest names none of the profiles of entities".to_owned()));
    }
    for Table { profile, entity, mut shown } in known {
        let (label, text) = (context.word(), context.word());
        let mut item = note(&text, &[&label]);
        item["content"]["structured"] = entity;
        if profile != "task" {
            // The tables of the other two hide the text below the whole.
            shown.push((text, 4));
        }
        context.capture(&[item]).await?;
        for level in 0..=4u8 {
            let grantee = context.stranger();
            let mut draft = context.draft(&grantee, &label, level);
            draft["redaction_profile"] = json!(whole_name(profile));
            let session = context.session(grantee, draft).await?;
            let reply = context.query(&session, &json!({"query": ""})).await?;
            let (all, answer) = (decoded(&reply.bytes), reply.json());
            expect(items(&answer).len() == 1, || {
                format!("{profile} at level {level}: the item is not there")
            })?;
            let visible = items(&answer)[0]["content"].to_string();
            for (word, from) in &shown {
                let place = format!("what {profile} shows from level {from} on");
                expect(level >= *from || !all.contains(word), || format!("level {level} shows {place}"))?;
                expect(level < *from || visible.contains(word), || format!("level {level} hides {place}"))?;
            }
        }
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
    // Under two grants where one is for one item at most.
    let other = if context.declared().max_items > 1 { label.clone() } else { context.word() };
    let decode =
        |part: &str| base64::engine::general_purpose::URL_SAFE_NO_PAD.decode(part).unwrap_or_default();
    context.capture(&[note("the same", &[&label]), note("the same", &[&other])]).await?;
    let mut shown = Vec::new();
    for label in BTreeSet::from([label, other]) {
        let session = context.granted(&label, 3).await?;
        let answer = context.answer(&session, &json!({"query": ""})).await?;
        shown.extend_from_slice(items(&answer));
    }
    expect(shown.len() == 2, || "both items were to be seen".to_owned())?;
    let (mut salts, mut digests) = (BTreeSet::new(), BTreeSet::new());
    for item in &shown {
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
    let session = context.granted(&label, 2).await?;
    let seen = context.answer(&session, &json!({"query": "soon"})).await?;
    expect(items(&seen).len() == 1, || "a query does not find an item by a word that it shows".to_owned())?;
    // Where a model of embeddings ranks, anything may be near: no more than a word that stands nowhere.
    let strange = context.answer(&session, &json!({"query": context.word()})).await?;
    let near = context.declared().embeddings && !items(&strange).is_empty();
    for word in [&mailbox, &code] {
        let answer = context.answer(&session, &json!({"query": word})).await?;
        expect(items(&answer).is_empty() || near, || {
            "a query finds an item by a word that it hides".to_owned()
        })?;
    }
    Ok(())
}

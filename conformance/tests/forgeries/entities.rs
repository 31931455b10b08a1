//! Canonical entities under their profiles, at every level; joint and Migration Receipts.

use crate::common::*;
use crate::forge::with;
use crate::items::leaves;
use crate::table::{By, Document, Table};
use oap_identity::json as strict;
use serde_json::{Value, json};

/// Adds what holds, named `genuine`, and what is forged of it.
pub async fn forge(table: &mut Table<'_>) {
    let contact = json!({
        "entity_type": "oap.entity.contact", "names": {"given": "Ann", "family": "Example"},
        "affiliations": [{"organization_id": "org_1", "role": "architect"}],
        "channels": [{"type": "email", "value": "ann@b.example", "primary": true}], "languages": ["en"],
        "addresses": [{"city": "Berlin"}], "skills": ["drawing"], "notes": "likes tea",
    });
    let event = json!({
        "entity_type": "oap.entity.calendar_event", "title": "Dentist", "start": "2026-06-01T09:00:00Z",
        "end": "2026-06-01T10:00:00Z", "transparency": "busy", "participant_dids": ["did:web:a.example"],
        "location_general": "Berlin", "description": "a check",
    });
    let mut private = event.clone();
    private["visibility"] = json!("private");
    let task = json!({
        "entity_type": "oap.entity.task", "title": "Tax", "status": "open", "due_at": "2026-06-01T09:00:00Z",
        "priority": "high", "assignee_dids": ["did:web:a.example"], "description": "send it",
        "linked_entities": ["ent_1"],
    });
    let other = json!({"entity_type": "oap.entity.document", "title": "Lease", "pages": [1, 2]});
    for (name, profile, entity) in [
        ("contact", "contact", &contact),
        ("event", "calendar_event", &event),
        ("private event", "calendar_event", &private),
        ("task", "task", &task),
        ("document", "memory", &other),
    ] {
        one(table, name, profile, entity).await;
    }
    receipts(table).await;
}

async fn one(table: &mut Table<'_>, name: &str, profile: &str, entity: &Value) {
    let world = &table.fixture.world;
    let label = name.replace(' ', "-");
    world.capture(&[json!({"kind": "fact", "labels": [label], "content": {"structured": entity}})]).await;
    for level in 0..=4 {
        let grantee = agent(2);
        let mut draft = world.draft(&grantee);
        draft["filter"] = json!({"labels_any": [label]});
        draft["redaction_profile"] = json!(format!("oap.profile.projection.{profile}.v1"));
        draft["trust_level"] = json!(level);
        let answer = world.ask(&grantee, &draft, &json!({})).await;
        let item = answer["items"][0].clone();
        table.named(By::Nobody, format!("{name} at level {level}"), "genuine", Document::Item(item.clone()));
        let mut shown = Vec::new();
        leaves(&item["content"], "/content", &mut shown);
        if let Some(at) = shown.iter().find(|at| item.pointer(at).is_some_and(Value::is_string)) {
            let changed = with(&item, |item| *item.pointer_mut(at).unwrap() = json!("forged"));
            let what = format!("{name} at level {level}: {at} changed");
            table.refused(By::Nobody, what, &["item.visible"], Document::Item(changed));
        }
        let more = with(&item, |item| item["content"]["structured"]["note"] = json!("forged"));
        let what = format!("{name} at level {level}: a member more");
        table.refused(By::Nobody, what, &["item.visible"], Document::Item(more));
        if item.get("content").is_some() {
            let less = with(&item, |item| drop(item.as_object_mut().unwrap().remove("content")));
            let what = format!("{name} at level {level}: no content");
            table.refused(By::Nobody, what, &["item.visible"], Document::Item(less));
        }
    }
}

async fn receipts(table: &mut Table<'_>) {
    let fixture = table.fixture;
    let receipt = &fixture.answer["receipt"];
    let mut unsigned = receipt.clone();
    unsigned.as_object_mut().unwrap().remove("signatures");
    let value = fixture.grantee.sign(&strict::canonical(&unsigned).unwrap());
    let joint = with(receipt, |receipt| {
        let entry = json!({"by": fixture.grantee.kid(), "alg": "EdDSA", "value": value});
        receipt["signatures"].as_array_mut().unwrap().push(entry);
    });
    table.named(By::Nobody, "a joint one", "genuine", Document::Receipt(joint.clone()));
    let alone = with(&joint, |receipt| drop(receipt["signatures"].as_array_mut().unwrap().remove(0)));
    table.refused(
        By::Nobody,
        "joint, without its principal",
        &["receipt.unsigned"],
        Document::Receipt(alone),
    );
    let finish = json!({
        "bundle_id": fixture.bundle[0]["bundle_id"], "principal": PRINCIPAL, "hash": crate::fixture::other_hash(),
        "counts": {"items": 1, "grants": 0, "receipts": 0}, "imported": 1, "unchanged": 0, "refused": 0,
    });
    let answer = fixture.world.owner("POST", "/oap/owner/import/finish", Some(&finish)).await.ok();
    let migration = answer["receipt"].clone();
    table.named(By::Nobody, "a Migration Receipt", "genuine", Document::Receipt(migration.clone()));
    for pointer in ["/input_hash", "/policy_decisions/0/from", "/policy_decisions/0/export_hash"] {
        let changed = with(&migration, |receipt| {
            let place = receipt.pointer_mut(pointer).unwrap();
            *place = match pointer {
                "/policy_decisions/0/from" => json!("did:web:mallory.example"),
                _ => json!(oap_identity::Hash::of(b"another")),
            };
        });
        let what = format!("a Migration Receipt: {pointer} changed");
        table.refused(By::Nobody, what, &["receipt.signature"], Document::Receipt(changed));
    }
}

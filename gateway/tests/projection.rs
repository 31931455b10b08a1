//! Projection over the owner's interface: profiles, third parties, resealing.

use crate::common::*;
use oap_memory::Profile;
use serde_json::{Value, json};

fn contact(given: &str, family: &str, email: &str) -> Value {
    json!({"kind": "fact", "labels": ["people"], "content": {"structured": {
        "entity_type": "oap.entity.contact", "names": {"given": given, "family": family},
        "channels": [{"type": "email", "value": email, "primary": true}],
    }}})
}

/// What a grantee with a label sees at a level, under a profile.
async fn seen(world: &World, profile: &str, level: u8, label: &str) -> Vec<Value> {
    let mut draft = world.draft(&agent(2));
    draft["redaction_profile"] = json!(format!("oap.profile.projection.{profile}"));
    draft["trust_level"] = json!(level);
    draft["filter"] = json!({"labels_any": [label]});
    let answer = world.ask(&agent(2), &draft, &json!({})).await;
    answer["items"].as_array().unwrap().clone()
}

#[tokio::test]
async fn the_owners_contacts_are_third_parties() {
    let world = World::new().await;
    // In one write, text first: the contact counts for it already.
    world
        .capture(&[
            note("Lunch with Siobhán, siobhan@home.example", &["x"]),
            contact("Siobhán", "Byrne", "siobhan@home.example"),
        ])
        .await;
    for level in [2, 3] {
        let items = seen(&world, "memory.v1", level, "x").await;
        assert_eq!(items[0]["content"]["text"], "Lunch with [third_party], [third_party]", "level {level}");
    }
    let items = seen(&world, "memory.v1", 4, "x").await;
    assert_eq!(items[0]["content"]["text"], "Lunch with Siobhán, siobhan@home.example");
}

#[tokio::test]
async fn resealing_hides_what_is_known_only_now() {
    let world = World::new().await;
    let ids = world.capture(&[note("Jonas likes tea", &["x"]), note("No names here", &["x"])]).await;
    let before = seen(&world, "memory.v1", 3, "x").await;
    assert!(before.iter().any(|item| item["content"]["text"] == "Jonas likes tea"));
    world.capture(&[contact("Jonas", "Berg", "jonas@home.example")]).await;
    let reseal = async |id: &str| {
        let path = format!("/oap/owner/items/{id}/reseal");
        world.owner("POST", &path, Some(&json!({}))).await.ok()["resealed"].clone()
    };
    assert_eq!(reseal(&ids[0]).await["version"], 2);
    assert!(reseal(&ids[1]).await.is_null(), "nothing to change, no version more");
    assert!(reseal(&ids[0]).await.is_null(), "once is enough");
    let items = seen(&world, "memory.v1", 3, "x").await;
    let item = items.iter().find(|item| item["item_id"] == *ids[0]).unwrap();
    assert_eq!(item["content"]["text"], "[third_party] likes tea");
    // The history stays: capture, then reseal.
    let events: Vec<&str> =
        item["integrity"]["chain"].as_array().unwrap().iter().map(|l| l["event"].as_str().unwrap()).collect();
    assert_eq!(events, ["capture", "reseal"]);
    oap_memory::evidence::item(item, &world.document()).unwrap();
}

#[tokio::test]
async fn events_and_tasks_by_the_tables_of_rfc_0007() {
    let world = World::new().await;
    let event = json!({"kind": "fact", "labels": ["cal"], "content": {"text": "Dr. appointment", "structured": {
        "entity_type": "oap.entity.calendar_event", "start": "2026-05-04T09:00:00Z", "end": "2026-05-04T10:00:00Z",
        "transparency": "busy", "title": "Dentist", "participants": ["a", "b", "c"],
        "participant_dids": ["did:web:a.example", "did:web:b.example"], "location_general": "Berlin",
        "location_precise": "Hauptstraße 1", "description": "bring the X-ray",
    }}});
    let mut private = event.clone();
    private["content"]["structured"]["visibility"] = json!("private");
    private["labels"] = json!(["private"]);
    let task = json!({"kind": "fact", "labels": ["task"], "content": {"structured": {
        "entity_type": "oap.entity.task", "status": "open", "title": "Ship it", "due_at": "2026-06-01T00:00:00Z",
        "priority": 1, "assignee_dids": ["did:web:a.example"], "description": "all of it", "linked_entities": ["ent_1"],
    }}});
    world.capture(&[event, private, task]).await;
    let members = async |profile: &str, level: u8, label: &str| {
        let items = seen(&world, profile, level, label).await;
        let structured = items[0]["content"]["structured"].as_object().unwrap().clone();
        structured.keys().cloned().collect::<Vec<_>>().join(" ")
    };
    let event =
        ["end start transparency", "title", "participants_count", "location_general participant_dids"];
    let mut expected: Vec<&str> = Vec::new();
    for (level, added) in event.iter().enumerate() {
        expected.extend(added.split(' '));
        expected.sort_unstable();
        assert_eq!(
            members("calendar_event.v1", level as u8, "cal").await,
            expected.join(" "),
            "level {level}"
        );
    }
    assert!(members("calendar_event.v1", 4, "cal").await.contains("location_precise"));
    assert_eq!(members("calendar_event.v1", 1, "private").await, "end start transparency");
    let task =
        ["status", "due_at title", "assignee_dids priority", "description", "entity_type linked_entities"];
    let mut expected: Vec<&str> = Vec::new();
    for (level, added) in task.iter().enumerate() {
        expected.extend(added.split(' '));
        expected.sort_unstable();
        assert_eq!(members("task.v1", level as u8, "task").await, expected.join(" "), "level {level}");
    }
    let counted = seen(&world, "calendar_event.v1", 2, "cal").await;
    assert_eq!(counted[0]["content"]["structured"]["participants_count"], 3);
}

#[tokio::test]
async fn profiles_are_listed_and_explained() {
    let world = World::new().await;
    let id = world.capture(&[note("Mail a@b.example", &["x"])]).await.remove(0);
    let list = world.owner("GET", "/oap/owner/profiles", None).await.ok();
    assert_eq!(list["profiles"].as_array().unwrap().len(), Profile::built_in().len());
    let explain = async |level: &str| {
        let path =
            format!("/oap/owner/items/{id}/explain?profile=oap.profile.projection.memory.v1&level={level}");
        world.owner("GET", &path, None).await
    };
    let answer = explain("2").await.ok();
    let rules = answer["rules"].as_array().unwrap();
    assert_eq!(rules.last().unwrap()["effect"], "shown; spans shown: none; spans hidden: email");
    assert!(rules.iter().any(|rule| rule["rule"] == "labels" && rule["effect"] == "shows labels"));
    assert!(rules.iter().any(|rule| rule["rule"] == "*" && rule["effect"] == "hidden: needs level 4"));
    assert_eq!(answer["visible"]["content"]["text"], "Mail [email]");
    explain("7").await.refused(400, "invalid_input");
}

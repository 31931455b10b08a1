//! Structured content: the entities of the profiles with every member that their tables name and more, and free forms.

use super::chance::{Chance, capital};
use super::text::{People, email, phone};
use oap_identity::Timestamp;
use serde_json::{Value, json};

/// How many forms there are.
pub(super) const FORMS: usize = 5;

/// Structured content of a form: contact, calendar event, task, another entity, no entity.
pub(super) fn make(chance: &mut Chance, form: usize) -> Value {
    match form {
        0 => contact(chance, None),
        1 => {
            let mut event = event(chance);
            chance.beside(|chance| more_of_event(chance, &mut event));
            event
        }
        2 => {
            let mut task = task(chance);
            chance.beside(|chance| more_of_task(chance, &mut task));
            task
        }
        3 => json!({
            "entity_type": "oap.entity.organization", "name": chance.canary(), "title": chance.canary(),
            "status": chance.canary(), "names": {"given": chance.canary()}, "languages": [chance.canary()],
        }),
        _ => {
            let key = chance.canary();
            json!({
                key: {"deep": [chance.canary(), {"deeper": [[chance.canary()], {}, []]}], "~/": chance.canary()},
                "title": chance.canary(), "yes": true, "none": null, "number": chance.number(), "half": chance.fraction(),
            })
        }
    }
}

/// A member, or not.
fn maybe(chance: &mut Chance, entity: &mut Value, name: &str, value: Value) {
    if !chance.leaves_out(4) {
        entity[name] = value;
    }
}

/// Whether, or nothing said.
fn flag(chance: &mut Chance, deck: &'static str) -> Value {
    chance.dealt(deck, &[json!(true), json!(false), Value::Null])
}

/// An entity without the members that say nothing.
fn said(mut value: Value) -> Value {
    if let Some(members) = value.as_object_mut() {
        members.retain(|_, member| !member.is_null());
    }
    value
}

/// A contact. With `people` it is one that texts may name.
pub(super) fn contact(chance: &mut Chance, mut people: Option<&mut People>) -> Value {
    let (given, family) = (capital(&chance.canary()), capital(&chance.canary()));
    let (address, second, number) = (email(chance), email(chance), phone(chance));
    if let Some(people) = &mut people {
        people.names.push((given.clone(), family.clone()));
        people.emails.push(address.clone());
        people.phones.push(number.clone());
    }
    let number = chance.planted(number);
    let channels: Vec<Value> = [
        ("email", address, "primary of mail"),
        ("email", second, "other mail"),
        ("phone", number, "primary of phones"),
        ("messenger", chance.canary(), "primary of messengers"),
    ]
    .into_iter()
    .map(|(kind, value, deck)| {
        said(json!({"type": kind, "value": value, "primary": flag(chance, deck), "label": chance.canary()}))
    })
    .collect();
    let mut contact =
        json!({"entity_type": "oap.entity.contact", "names": {"given": given, "family": family}});
    for name in ["middle", "nickname", "display"] {
        let word = capital(&chance.canary());
        match &mut people {
            // What texts name is there.
            Some(people) => {
                people.others.push(word.clone());
                contact["names"][name] = json!(word);
            }
            None => maybe(chance, &mut contact["names"], name, json!(word)),
        }
    }
    let affiliations: Vec<Value> = (0..chance.count(3))
        .map(|_| {
            json!({
                "organization_id": format!("urn:org:{}", chance.canary()), "role": chance.canary(),
                "department": chance.canary(),
            })
        })
        .collect();
    maybe(chance, &mut contact, "affiliations", json!(affiliations));
    match &people {
        Some(_) => contact["channels"] = json!(channels),
        None => maybe(chance, &mut contact, "channels", json!(channels)),
    }
    let languages = json!([chance.canary(), chance.canary()]);
    maybe(chance, &mut contact, "languages", languages);
    let (city, street, another) = (chance.canary(), chance.canary(), chance.canary());
    match people {
        Some(people) => {
            let street = format!("{}straße {}", capital(&street), 1 + chance.below(99));
            people.streets.push(street.clone());
            contact["addresses"] = json!([{"city": city, "street": street}, {"city": another}]);
        }
        None => {
            let addresses = json!([{"city": city, "street": street}, {"city": another}]);
            maybe(chance, &mut contact, "addresses", addresses);
        }
    }
    for name in ["social", "skills"] {
        let list = json!([chance.canary(), chance.canary()]);
        maybe(chance, &mut contact, name, list);
    }
    for name in ["notes", "relationship", "birthday"] {
        let word = json!(chance.canary());
        maybe(chance, &mut contact, name, word);
    }
    chance.beside(|chance| {
        let photo = json!({"url": format!("https://{}.example/photo", chance.canary())});
        maybe(chance, &mut contact, "photo", photo);
        every_entity(chance, &mut contact);
    });
    contact
}

/// A time of a month, `2026-06`, that is a canary.
fn moment_in(chance: &mut Chance, month: &str) -> Timestamp {
    let day = 1 + chance.below(28);
    chance.moment_of(&format!("{month}-{day:02}"))
}

/// The members that every entity may have (protocol section 7).
fn every_entity(chance: &mut Chance, entity: &mut Value) {
    for (name, value) in [
        ("id", json!(format!("urn:entity:{}", chance.canary()))),
        ("owner_did", json!(format!("did:web:{}.example", chance.canary()))),
        ("created_at", json!(moment_in(chance, "2026-01"))),
        ("updated_at", json!(moment_in(chance, "2026-02"))),
        ("external_ids", json!([{"system": chance.canary(), "id": chance.canary()}])),
        ("labels", json!([chance.canary(), chance.canary()])),
        ("extensions", json!({format!("example.{}", chance.canary()): {"note": chance.canary()}})),
    ] {
        maybe(chance, entity, name, value);
    }
}

/// The members of an event that no level below the last shows.
fn more_of_event(chance: &mut Chance, event: &mut Value) {
    let took_part: Vec<Value> =
        (0..chance.count(6)).map(|_| json!({"name": chance.canary(), "response": chance.canary()})).collect();
    for (name, value) in [
        ("participants", json!(took_part)),
        (
            "attachments",
            json!([{"title": chance.canary(), "url": format!("https://{}.example/", chance.canary())}]),
        ),
        ("recurrence", json!({"rule": chance.canary(), "until": chance.moment_of("2026-12-31")})),
        ("status", json!(chance.canary())),
        ("all_day", json!(chance.once_in(2))),
        ("timezone", json!(chance.canary())),
    ] {
        maybe(chance, event, name, value);
    }
    // It says that nothing is said.
    if chance.leaves_out(5) {
        event["participants_count"] = Value::Null;
    }
    every_entity(chance, event);
}

fn more_of_task(chance: &mut Chance, task: &mut Value) {
    for (name, value) in [
        ("parent", json!(format!("urn:entity:{}", chance.canary()))),
        ("completed_at", json!(moment_in(chance, "2026-09"))),
        ("project", json!(chance.canary())),
    ] {
        maybe(chance, task, name, value);
    }
    every_entity(chance, task);
}

fn event(chance: &mut Chance) -> Value {
    let mut event = said(json!({
        "entity_type": "oap.entity.calendar_event",
        "start": moment_in(chance, "2026-06"), "end": moment_in(chance, "2026-07"),
        "transparency": chance.dealt("transparency", &[json!("busy"), json!("free"), Value::Null]),
        "visibility": chance.dealt("visibility", &[json!("public"), json!("private"), json!("confidential"), Value::Null]),
        "private": flag(chance, "private"),
    }));
    for name in ["title", "location_general", "location_precise", "description", "organizer"] {
        let word = json!(chance.canary());
        maybe(chance, &mut event, name, word);
    }
    let dids: Vec<String> =
        (0..chance.count(4)).map(|_| format!("did:web:{}.example", chance.canary())).collect();
    maybe(chance, &mut event, "participant_dids", json!(dids));
    // Where the event does not say, its owner's gateway counts.
    let count = json!(chance.number());
    maybe(chance, &mut event, "participants_count", count);
    event
}

fn task(chance: &mut Chance) -> Value {
    let mut task = json!({"entity_type": "oap.entity.task"});
    for name in ["status", "title", "priority", "description"] {
        let word = json!(chance.canary());
        maybe(chance, &mut task, name, word);
    }
    let due = moment_in(chance, "2026-08");
    maybe(chance, &mut task, "due_at", json!(due));
    let assignees = json!([format!("did:web:{}.example", chance.canary())]);
    maybe(chance, &mut task, "assignee_dids", assignees);
    let linked = json!([format!("urn:entity:{}", chance.canary()), {"id": chance.canary()}]);
    maybe(chance, &mut task, "linked_entities", linked);
    task
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    /// The members that the table of `docs/protocol.md` has for an entity, and for every one.
    fn members(entity: &str) -> BTreeSet<&'static str> {
        let page = include_str!("../../../docs/protocol.md");
        let row = |begins: &str| page.lines().find_map(|line| line.strip_prefix(begins)).unwrap();
        let rows = [row("| every one |"), row(&format!("| `oap.entity.{entity}` |"))];
        rows.into_iter().flat_map(|row| row.split('`').skip(1).step_by(2)).collect()
    }

    #[test]
    fn each_entity_has_every_member_of_its_table() {
        let mut chance = Chance::new(1).whole();
        for (form, entity) in ["contact", "calendar_event", "task"].into_iter().enumerate() {
            let made: Vec<Value> = (0..20).map(|_| make(&mut chance, form)).collect();
            let has = |name: &str| made.iter().any(|entity| entity.get(name).is_some());
            let lacks: Vec<&str> = members(entity).into_iter().filter(|name| !has(name)).collect();
            assert!(lacks.is_empty(), "{entity}: {lacks:?}");
        }
    }

    /// Two lists of different lengths, counts that are null, and nothing that hangs on what is drawn beside.
    #[test]
    fn participants_are_counted_in_every_way() {
        let mut chance = Chance::new(1);
        let events: Vec<Value> = (0..200).map(|_| make(&mut chance, 1)).collect();
        let count = |event: &Value, name: &str| event[name].as_array().map(Vec::len);
        let uncounted = events.iter().filter(|event| event.get("participants_count").is_none());
        let (longer, shorter): (Vec<_>, Vec<_>) =
            uncounted.partition(|e| count(e, "participants") > count(e, "participant_dids"));
        assert!(!longer.is_empty() && !shorter.is_empty());
        assert!(events.iter().any(|event| event.get("participants_count").is_some_and(Value::is_null)));
    }
}

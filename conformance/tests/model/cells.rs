//! Profiles are data: each of their cells, changed alone, changes what some item of a few worlds shows. So a gateway whose tables are
//! wrong in one cell differs from the model in the worlds that the suite brings.

use super::support::{Owner, now};
use oap_conformance::world::{Setting, Size, World};
use oap_memory::commitment::Committed;
use oap_memory::detect::{People, SpanClass, of_contact};
use oap_memory::project::project;
use oap_memory::{Profile, TrustLevel};
use serde_json::Value;
use std::collections::BTreeMap;
use toml::Value as Toml;

/// Worlds whose items are shown.
const WORLDS: u64 = 6;

const DOCUMENTS: [&str; 5] = [
    include_str!("../../../crates/memory/profiles/memory.v1.toml"),
    include_str!("../../../crates/memory/profiles/contact.v1.toml"),
    include_str!("../../../crates/memory/profiles/calendar_event.v1.toml"),
    include_str!("../../../crates/memory/profiles/task.v1.toml"),
    include_str!("../../../crates/memory/profiles/full.v1.toml"),
];

/// What has tables of its own.
const ENTITIES: [&str; 3] = ["oap.entity.contact", "oap.entity.calendar_event", "oap.entity.task"];

/// Changes that nothing outside can see, by a part of their names, and why.
const EQUIVALENT: [(&str, &str); 1] = [(
    "full.v1\" general level 0: \"*\" at 1",
    "a grant needs level 4 to name it: the levels below show nothing to nobody",
)];

/// A profile with one cell changed.
struct Changed {
    what: String,
    document: Toml,
}

/// The levels of a table, `None` for the general one.
fn levels(document: &mut Toml, entity: bool) -> Option<&mut Vec<Toml>> {
    let table = if entity { document.get_mut("entity")? } else { document };
    table.get_mut("level")?.as_array_mut()
}

/// The documents in which one cell is another: the type of entity that a table of its own is for, the fields or the text of one level.
fn others(document: &Toml) -> Vec<Changed> {
    let mut all = Vec::new();
    let of = document.get("entity").and_then(|entity| entity.get("type"));
    for other in ENTITIES.map(Toml::from).into_iter().filter(|other| of.is_some_and(|of| of != other)) {
        let mut document = document.clone();
        document["entity"]["type"] = other.clone();
        all.push(Changed { what: format!("{} for {other}", document["name"]), document });
    }
    for entity in [false, true] {
        let mut original = document.clone();
        let Some(original) = levels(&mut original, entity).cloned() else { continue };
        let mut change = |what: String, change: &dyn Fn(&mut Vec<Toml>)| {
            let mut document = document.clone();
            if let Some(levels) = levels(&mut document, entity) {
                change(levels);
                let table = if entity { "entity" } else { "general" };
                all.push(Changed { what: format!("{} {table} {what}", document["name"]), document });
            }
        };
        let mut text = Toml::from("hidden");
        for (number, level) in original.iter().enumerate() {
            let fields = level.get("fields").and_then(Toml::as_array).cloned().unwrap_or_default();
            for (place, field) in fields.iter().enumerate() {
                let remove = |levels: &mut Vec<Toml>| {
                    levels[number]["fields"].as_array_mut().unwrap().remove(place);
                };
                change(format!("level {number}: without {field}"), &remove);
                for other in [number.wrapping_sub(1), number + 1].into_iter().filter(|n| *n < original.len())
                {
                    change(format!("level {number}: {field} at {other}"), &|levels| {
                        remove(levels);
                        let there = levels[other].as_table_mut().unwrap();
                        let there = there.entry("fields").or_insert_with(|| Toml::Array(Vec::new()));
                        there.as_array_mut().unwrap().push(field.clone());
                    });
                }
                for (what, other) in rewritten(field) {
                    change(format!("level {number}: {what}"), &|levels| {
                        levels[number]["fields"][place] = other.clone();
                    });
                }
            }
            text = level.get("text").cloned().unwrap_or(text);
            for other in texts(&text) {
                change(format!("level {number}: text {other} for {text}"), &|levels| {
                    levels[number].as_table_mut().unwrap().insert("text".to_owned(), other.clone());
                });
            }
        }
    }
    all
}

/// A field with its conditions changed, one at a time.
fn rewritten(field: &Toml) -> Vec<(String, Toml)> {
    let mut all = Vec::new();
    let path = field.as_str().or_else(|| field.get("path")?.as_str()).unwrap_or_default();
    if let (Some((before, rest)), true) = (path.split_once('['), field.is_str())
        && let Some((inside, after)) = rest.split_once(']')
    {
        for condition in inside.split(',').filter(|condition| !condition.is_empty()) {
            let kept: Vec<&str> = inside.split(',').filter(|other| *other != condition).collect();
            let other = format!("{before}[{}]{after}", kept.join(","));
            all.push((format!("{field} without {condition}"), Toml::from(other)));
        }
    }
    for (named, opposite) in [("when", "unless"), ("unless", "when")] {
        let conditions = field.get(named).and_then(Toml::as_array).cloned().unwrap_or_default();
        for place in 0..conditions.len() {
            let mut other = field.clone();
            let condition = other[named].as_array_mut().unwrap().remove(place);
            all.push((format!("{path} without {named} {condition}"), other.clone()));
            let table = other.as_table_mut().unwrap();
            let there = table.entry(opposite).or_insert_with(|| Toml::Array(Vec::new()));
            there.as_array_mut().unwrap().push(condition.clone());
            all.push((format!("{path} {opposite} {condition}"), other));
        }
    }
    all
}

/// Every other rule for the text: all, nothing, and one class of spans more or less.
fn texts(text: &Toml) -> Vec<Toml> {
    let mut all: Vec<Toml> = ["hidden", "full"].map(Toml::from).into_iter().filter(|t| t != text).collect();
    if let Some(shown) = text.get("spans").and_then(Toml::as_array) {
        for class in SpanClass::ALL {
            let class = Toml::from(class.as_str());
            let mut spans: Vec<Toml> = shown.iter().filter(|other| **other != class).cloned().collect();
            if spans.len() == shown.len() {
                spans.push(class);
            }
            all.push(Toml::Table([("spans".to_owned(), Toml::Array(spans))].into_iter().collect()));
        }
    } else {
        all.push(Toml::Table([("spans".to_owned(), Toml::Array(Vec::new()))].into_iter().collect()));
    }
    all
}

fn items() -> Vec<Committed> {
    let setting = Setting::of(&Value::Null, now());
    let owner = Owner::new(1);
    let mut items = Vec::new();
    for seed in 0..WORLDS {
        let world = World::new(seed, &setting, Size::default());
        let contacts = world.items().filter_map(|item| item.draft["content"]["structured"].as_object());
        let words: Vec<String> = contacts.flat_map(of_contact).collect();
        let people = People::new(words.iter().map(String::as_str));
        items.extend(world.items().map(|item| owner.committed_among(&item.draft, &people)));
    }
    items
}

#[test]
fn every_cell_of_every_profile_is_seen() {
    let items = items();
    let shown = |item: &Committed, profile: &Profile, level| {
        project(item, profile, level, true).unwrap().item().clone()
    };
    let (mut looked, mut refused, mut unseen) = (0, 0, Vec::new());
    for text in DOCUMENTS {
        let (profile, document) = (Profile::parse(text).unwrap(), text.parse::<toml::Table>().unwrap());
        let least = document.get("minimum_level").and_then(Toml::as_integer).unwrap_or(0);
        let levels: Vec<TrustLevel> =
            TrustLevel::all().filter(|level| i64::from(level.get()) >= least).collect();
        let before: BTreeMap<u8, Vec<_>> = levels
            .iter()
            .map(|level| (level.get(), items.iter().map(|item| shown(item, &profile, *level)).collect()))
            .collect();
        for Changed { what, document } in others(&Toml::Table(document)) {
            looked += 1;
            let Ok(other) = Profile::parse(&toml::to_string(&document).unwrap()) else {
                refused += 1;
                continue;
            };
            let differs = levels.iter().any(|level| {
                let before = &before[&level.get()];
                items.iter().zip(before).any(|(item, before)| shown(item, &other, *level) != *before)
            });
            let excused = EQUIVALENT.iter().any(|(part, _)| what.contains(part));
            if differs == excused {
                unseen.push(what);
            }
        }
    }
    println!("{looked} changes, {refused} of them no profile");
    assert!(unseen.is_empty(), "{} of {looked}: {unseen:#?}", unseen.len());
    assert!(looked - refused > 250, "{looked}, {refused}");
}

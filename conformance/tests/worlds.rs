//! That worlds are what they say: read in one way only, whole in their coverage, the same for the same seed.

use base64::Engine;
use oap_conformance::model::rule::List;
use oap_conformance::model::{Disclosed, Model, Rule};
use oap_conformance::world::*;
use oap_identity::Timestamp;
use oap_memory::detect::{FREE_SPANS, People as Contacts, of_contact, segments};
use serde_json::json;
use std::collections::BTreeSet;

fn setting() -> Setting {
    let kinds = ["fact", "preference", "conversation_turn", "summary", "observation", "document_reference"];
    Setting {
        now: "2026-05-01T12:00:00Z".parse().unwrap(),
        belief_threshold: 0.5,
        kinds: kinds.map(str::to_owned).to_vec(),
        profiles: Vec::new(),
        max_days: 90,
        max_items: 500,
        soon: Vec::new(),
    }
}

fn world(seed: u64) -> World {
    World::new(seed, &setting(), Size::default())
}

#[test]
fn a_seed_makes_one_world() {
    assert_eq!(world(3), world(3));
    assert_ne!(world(3).batches, world(4).batches);
}

/// What is planted is what the detectors of this repository find: a maker that is wrong there would blame gateways.
#[test]
fn spans_are_read_in_one_way_only() {
    for seed in 0..60 {
        planted_as_found(&world(seed), seed);
    }
}

fn planted_as_found(world: &World, seed: u64) {
    let words: Vec<String> = world
        .items()
        .filter_map(|item| item.draft["content"]["structured"].as_object())
        .flat_map(of_contact)
        .collect();
    let people = Contacts::new(words.iter().map(String::as_str));
    for item in world.items() {
        let Some(text) = item.draft["content"]["text"].as_str() else { continue };
        let found: Vec<(String, String)> = segments(text, &people)
            .into_iter()
            .filter_map(|s| Some((s.class?.as_str().to_owned(), s.text)))
            .collect();
        let spans = item.planted.spans.get("/content/text").cloned().unwrap_or_default();
        if spans.len() > FREE_SPANS {
            joined_as_found(text, &people, &spans);
            continue;
        }
        let planted: Vec<(String, String)> =
            spans.iter().map(|s| (s.class.clone(), s.text.clone())).collect();
        assert_eq!(planted, found, "seed {seed}: {text}");
        assert!(spans.iter().all(|s| text[s.start..s.end] == s.text));
    }
}

/// Of very many spans each is in one that is found, which begins and ends with some of them; and some are joined.
fn joined_as_found(text: &str, people: &Contacts, spans: &[Span]) {
    let (mut at, mut inside) = (0, 0);
    let mut mixed = false;
    for segment in segments(text, people) {
        let (from, to) = (at, at + segment.text.len());
        at = to;
        if let Some(class) = segment.class {
            assert!(spans.iter().any(|span| span.start == from) && spans.iter().any(|span| span.end == to));
            inside += spans.iter().filter(|span| from <= span.start && span.end <= to).count();
            mixed |= class.as_str() == "mixed";
        }
    }
    assert!(inside == spans.len() && mixed, "{inside} of {}", spans.len());
}

/// Every leaf that is free text, a time or a number has a canary, and each canary one place in its item: all but words of closed lists, what
/// lies at a bound that decides, and counts of days and dimensions. Two values, as flags have, are told apart by nothing.
#[test]
fn every_place_has_a_canary() {
    let fixed = [
        "kind",
        "scope_id",
        "sensitivity",
        "entity_type",
        "type",
        "transparency",
        "visibility",
        "confidence",
        "ttl_days",
        "dimensions",
    ];
    let now = setting().now.millis();
    let [after, before] = [40, 10].map(|days| now - days * 86_400_000);
    let bounds: BTreeSet<String> = [after - 1, after, after + 1, before - 1, before, before + 1, now - 1]
        .map(|at| Timestamp::from_millis(at).to_string())
        .into();
    let (mut times, mut numbers) = (0, 0);
    for seed in 0..8 {
        let world = world(seed);
        // What a text calls a contact is the contact's canary.
        let contacts: Vec<&String> =
            world.items().take(CONTACTS).flat_map(|item| item.planted.canaries.keys()).collect();
        for item in world.items() {
            for (at, leaf) in leaves(&item.draft) {
                let name = at.rsplit('/').next().unwrap_or_default();
                let text = leaf.as_str().map_or_else(|| leaf.to_string(), str::to_lowercase);
                let free = (leaf.is_string() && !bounds.contains(&text.to_uppercase())) || leaf.is_number();
                if !free || fixed.contains(&name) {
                    continue;
                }
                let mut known = item.planted.canaries.keys().chain(contacts.iter().copied());
                assert!(known.any(|word| text.contains(word.as_str())), "seed {seed}, {at}: {leaf}");
                times += usize::from(text.to_uppercase().parse::<Timestamp>().is_ok());
                numbers += usize::from(leaf.is_number());
            }
        }
    }
    assert!(times > 400 && numbers > 60, "{times} times, {numbers} numbers");
}

/// Over a few seeds every value of everything that is chosen turns up.
#[test]
fn coverage_is_whole() {
    let (mut seen, mut classes) = (BTreeSet::new(), BTreeSet::new());
    for seed in 0..24 {
        let world = world(seed);
        for grant in &world.grants {
            for (name, value) in grant.draft["filter"].as_object().into_iter().flatten() {
                let shape = match value.as_array().map(Vec::len) {
                    None => "value",
                    Some(0) => "empty",
                    Some(1) => "one",
                    Some(_) => "many",
                };
                seen.insert(format!("filter {name} {shape}"));
            }
            if grant.parent.is_none() {
                seen.insert(format!(
                    "{} {}",
                    grant.draft["redaction_profile"].as_str().unwrap(),
                    grant.draft["trust_level"]
                ));
            }
            for name in grant.queries.iter().flat_map(|q| q.as_object().unwrap().keys()) {
                seen.insert(format!("query {name}"));
            }
        }
        for item in world.items() {
            let text = item.draft["content"]["text"].as_str().unwrap_or_default();
            for span in item.planted.spans.values().flatten() {
                let place = match (span.start, span.end == text.len()) {
                    (0, _) => "start",
                    (_, true) => "end",
                    _ => "middle",
                };
                classes.insert(format!("{} {place}", span.class));
            }
            for name in item.draft.as_object().unwrap().keys() {
                seen.insert(format!("item {name}"));
            }
            seen.insert(format!("kind {}", item.draft["kind"]));
            seen.insert(format!("confidence {}", item.draft["provenance"]["confidence"]));
        }
    }
    for profile in ["memory", "contact", "calendar_event", "task"] {
        for level in 0..=4 {
            assert!(
                seen.contains(&format!("oap.profile.projection.{profile}.v1 {level}")),
                "{profile} {level}"
            );
        }
    }
    for name in ["labels_any", "labels_all", "exclude_labels", "kinds", "sensitivities", "subject_entity_ids"]
    {
        for shape in ["empty", "one", "many"] {
            assert!(seen.contains(&format!("filter {name} {shape}")), "{name} {shape}: {seen:#?}");
        }
    }
    for name in ["captured_after", "captured_before", "min_confidence"] {
        assert!(seen.contains(&format!("filter {name} value")), "{name}");
    }
    for name in [
        "query",
        "max_results",
        "kinds",
        "labels_any",
        "min_confidence",
        "integrity",
        "purpose",
        "include_embeddings",
    ] {
        assert!(seen.contains(&format!("query {name}")), "{name}");
    }
    let members = [
        "scope_id",
        "kind",
        "subject_entity_id",
        "content",
        "labels",
        "provenance",
        "ttl_days",
        "expires_at",
        "exportable",
        "sensitivity",
        "embedding",
        "extensions",
    ];
    for name in members {
        assert!(seen.contains(&format!("item {name}")), "{name}");
    }
    for class in CLASSES {
        for place in ["start", "middle", "end"] {
            // What is announced never stands first.
            let announced = class == "date_of_birth" && place == "start";
            assert!(announced || classes.contains(&format!("{class} {place}")), "{class} {place}");
        }
    }
}

/// Over many seeds every two fields of a filter stand in one.
#[test]
fn every_pair_of_fields_is_dealt() {
    let mut pairs = BTreeSet::new();
    for seed in 0..90 {
        for grant in world(seed).grants {
            let names: Vec<String> = grant.draft["filter"]
                .as_object()
                .into_iter()
                .flatten()
                .map(|(name, _)| name.clone())
                .collect();
            for one in &names {
                pairs.extend(names.iter().filter(|other| one < *other).map(|other| format!("{one} {other}")));
            }
        }
    }
    assert_eq!(pairs.len(), 45, "{pairs:?}");
}

#[test]
fn canaries_are_found_however_they_are_written() {
    let mut canaries = Canaries::default();
    canaries.add("bcfghjkmpqt", "an item's /content/text");
    let encode = |text: &str| base64::engine::general_purpose::URL_SAFE_NO_PAD.encode(text);
    let disclosure = encode(&json!(["salt", "text", "the Bcfghjkmpqt"]).to_string());
    let jwt = format!("x.{}.y", encode(&json!({"nested": disclosure}).to_string()));
    for (written, bytes) in [
        ("plain", "see bcfghjkmpqt there".to_owned()),
        ("capitals", "BCFGHJKMPQTstraße".to_owned()),
        ("escaped", r#"{"a": "\u0062cfghjkmpqt"}"#.to_owned()),
        ("escaped twice", r#"{"a": "{\"b\": \"\\u0062cfghjkmpqt\"}"}"#.to_owned()),
        ("behind a quotation mark", r#"{"a\\": "\u0062cfghjkmpqt""#.to_owned()),
        ("capitals among others", "É\u{130}BCFGHJKMPQT\u{1e9e}".to_owned()),
        ("percent", "/x?y=bcf%67hjkmpqt".to_owned()),
        ("base64", encode("a bcfghjkmpqt")),
        ("disclosure", format!("eyJ.e.s~{disclosure}~")),
        ("nested", jwt),
    ] {
        assert_eq!(canaries.find(bytes.as_bytes()).len(), 1, "{written}");
    }
    // Among bytes that are no text, and in hexadecimal.
    let sealed = [&[0xff, 0x00, 0xfe][..], b"bcfghjkmpqt", &[0x80]].concat();
    let hexadecimal: String = sealed.iter().map(|byte| format!("{byte:02x}")).collect();
    for written in [base64::engine::general_purpose::URL_SAFE_NO_PAD.encode(&sealed), hexadecimal] {
        assert_eq!(canaries.find(format!("\"{written}\"").as_bytes()).len(), 1, "{written}");
    }
    assert!(canaries.find(b"bcfghjkmpq t").is_empty());
    canaries.add("zo\u{eb}-bcf", "a name");
    assert_eq!(canaries.find("ZO\u{cb}-BCF".as_bytes()).len(), 1);
    let all = ["bcfghjkmpqt", "zo\u{eb}-bcf"].map(str::to_owned);
    for text in ["bcfghjkmpqt ZO\u{cb}-BCF", r#"{"a": "\u0062cfghjkmpqt", "b": "zo\u00eb-bcf"}"#] {
        assert!(canaries.among(&["bcfghjkmpqt"].into(), text).contains(&all[0]));
        assert_eq!(canaries.among(&["bcfghjkmpqt", "zo\u{eb}-bcf"].into(), text), all.clone().into());
    }
}

/// A model that was told all of a world, under ids that it has here.
fn told(world: &World) -> (Model, Vec<String>) {
    let manifest = json!({"belief_threshold": 0.5, "memory_exchange": {"max_grant_size_items": 500}});
    let mut model = Model::new("did:web:user.example".parse().unwrap(), &manifest, Vec::new());
    let id = |number: usize| format!("mem_{number:04}");
    for (number, item) in world.items().enumerate() {
        let mut draft = item.draft.clone();
        if !item.derived_from.is_empty() {
            draft["derived_from"] = item.derived_from.iter().map(|n| id(*n)).collect();
        }
        model.captured(&id(number), &draft, setting().now, &item.planted);
    }
    let grants = world.grants.iter().enumerate().map(|(number, grant)| {
        let mut document = grant.draft.clone();
        let scope = document["scope"].as_str().unwrap_or("personal").to_owned();
        document["granter"] = json!(format!("did:web:user.example#{scope}"));
        document["grantee"] = json!(format!("did:web:{}.example", grant.grantee));
        document["grant_id"] = json!(format!("mgr_{number}"));
        document["issued_at"] = json!(setting().now);
        model.granted(&document);
        format!("mgr_{number}")
    });
    let grants = grants.collect();
    (model, grants)
}

/// Every cell of every table and every case of every field of a filter decides something in one world.
#[test]
fn the_whole_world_exercises_every_cell_and_every_case_of_a_filter() {
    let (world, _) = World::whole(1, &setting());
    let (model, grants) = told(&world);
    for (id, grant) in grants.iter().zip(&world.grants) {
        for query in &grant.queries {
            let _ = model.query(id, query, setting().now, &Disclosed::default());
        }
    }
    let decided = model.decided();
    // Of many scopes none but one can be named without a bridge.
    let of_tables = |rule: &Rule| match rule {
        Rule::Filter(List::Scopes, case) => !case.as_str().contains("many"),
        rule => {
            matches!(
                rule,
                Rule::Cell(_)
                    | Rule::Filter(..)
                    | Rule::FilterBound(..)
                    | Rule::FilterPair(..)
                    | Rule::SpanPlace(..)
            )
        }
    };
    let never: Vec<String> = Rule::all()
        .into_iter()
        .filter(|rule| of_tables(rule) && !decided.contains_key(rule))
        .map(|r| r.to_string())
        .collect();
    assert!(never.is_empty(), "{} never: {never:#?}", never.len());
}

/// Contacts are named in every way: by each of their names, their channels and streets, and within another span.
#[test]
fn texts_name_contacts_in_every_way() {
    let mut seen = BTreeSet::new();
    for seed in 0..8 {
        let world = world(seed);
        let contacts: Vec<&serde_json::Value> =
            world.items().take(CONTACTS).map(|item| &item.draft["content"]["structured"]).collect();
        let spans = world.items().flat_map(|item| item.planted.spans.values().flatten());
        for span in spans.filter(|span| span.class == "third_party") {
            let is = |said: &serde_json::Value| said.as_str() == Some(&span.text);
            let names = ["given", "family", "middle", "nickname", "display"];
            for contact in &contacts {
                seen.extend(names.iter().filter(|name| is(&contact["names"][**name])).copied());
                let channels = contact["channels"].as_array().into_iter().flatten();
                seen.extend(
                    channels
                        .filter(|c| is(&c["value"]))
                        .filter_map(|c| c["type"].as_str())
                        .map(|kind| if kind == "email" { "email" } else { "phone" }),
                );
                let street = contact["addresses"][0]["street"].as_str().unwrap();
                match span.text.strip_prefix(street) {
                    Some("") => drop(seen.insert("street")),
                    Some(_) => drop(seen.insert("street and town")),
                    None => {}
                }
                let given = contact["names"]["given"].as_str().unwrap().to_lowercase();
                if span.text.starts_with(&given) && span.text.contains('@') {
                    seen.insert("an address that holds a name");
                }
                let family = contact["names"]["family"].as_str().unwrap();
                if span.text.ends_with(&format!("{family} Street")) {
                    seen.insert("a street that holds a name");
                }
            }
        }
    }
    assert_eq!(seen.len(), 11, "{seen:?}");
}

/// What is planted in that world is read in one way only, too.
#[test]
fn spans_of_the_whole_world_are_read_in_one_way_only() {
    for seed in 0..40 {
        planted_as_found(&World::whole(seed, &setting()).0, seed);
    }
}

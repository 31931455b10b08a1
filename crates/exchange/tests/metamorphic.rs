//! What must hold between two runs that differ in one thing.

mod support;

use oap_exchange::allowance::Disclosed;
use oap_exchange::answer::find;
use oap_exchange::respond::Frame;
use oap_exchange::{Allowance, Query, View};
use oap_identity::random::Seeded;
use oap_identity::{ItemId, RequestId};
use oap_memory::item::Kind;
use oap_memory::project::project;
use oap_memory::record::ItemRecord;
use oap_memory::{Confidence, Filter, Head, Profile, TrustLevel};
use proptest::prelude::*;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::sync::Arc;
use support::*;

const LABELS: [&str; 4] = ["a", "b", "c", "d"];

/// Items of every shape that a profile has a table for, with every sort of span in their text.
fn item() -> impl Strategy<Value = Value> {
    let entity = prop::sample::select(&["none", "contact", "calendar_event", "task"][..]);
    let kind = prop::sample::select(Kind::ALL);
    let labels = prop::collection::btree_set(prop::sample::select(&LABELS[..]), 0..3);
    let text = prop::collection::vec(
        prop::sample::select(
            &["tea", "budget", "a@b.example", "+49 30 901820", "password: Xk29vvTTmQ81", "10.0.0.1"][..],
        ),
        0..6,
    );
    let more = (any::<bool>(), any::<bool>(), 0..=100u8, 0..28u8, any::<bool>());
    (entity, kind, labels, text, more).prop_map(|(entity, kind, labels, text, more)| {
        let (subject, extension, confidence, day, primary) = more;
        let mut item = json!({
            "kind": kind, "content": {"text": text.join(" and ")}, "labels": labels,
            "provenance": {
                "confidence": f64::from(confidence) / 100.0,
                "captured_at": format!("2026-04-{:02}T10:00:00Z", day + 1),
            },
        });
        if text.is_empty() {
            item["content"] = json!({"structured": {"note": "nothing said"}});
        }
        match entity {
            "contact" => {
                item["content"]["structured"] = json!({
                    "entity_type": "oap.entity.contact", "names": {"given": "Ada", "family": "Byron"},
                    "channels": [{"type": "email", "value": "ada@b.example", "primary": primary}],
                    "affiliations": [{"organization_id": "ent_org", "role": "Lead"}], "languages": ["en"],
                });
            }
            "calendar_event" => {
                item["content"]["structured"] = json!({
                    "entity_type": "oap.entity.calendar_event", "title": "Review",
                    "visibility": if primary { "private" } else { "public" },
                    "start": "2026-05-02T10:00:00Z", "end": "2026-05-02T11:00:00Z", "transparency": "opaque",
                    "participant_dids": ["did:web:a.example"],
                });
            }
            "task" => {
                item["content"]["structured"] = json!({
                    "entity_type": "oap.entity.task", "status": "open", "title": "Write", "priority": "high",
                    "description": "All of it",
                });
            }
            _ => {}
        }
        if subject {
            item["subject_entity_id"] = json!("ent_ada");
        }
        if extension {
            item["extensions"] = json!({"example.app": {"colour": "blue"}});
        }
        item
    })
}

fn filter() -> impl Strategy<Value = Filter> {
    let labels = || prop::option::of(prop::collection::vec(prop::sample::select(&LABELS[..]), 0..3));
    let kinds = prop::option::of(prop::collection::vec(prop::sample::select(Kind::ALL), 0..4));
    let day = || prop::option::of(1..28u8);
    let subject = prop::option::of(prop::bool::ANY);
    let confidence = prop::option::of(0..=100u8);
    (labels(), labels(), labels(), kinds, (day(), day()), subject, confidence).prop_map(
        |(any, all, out, kinds, (after, before), subject, confidence)| {
            let own = |list: Option<Vec<&str>>| list.map(|l| l.into_iter().map(str::to_owned).collect());
            let at = |day: Option<u8>| day.map(|d| format!("2026-04-{d:02}T00:00:00Z").parse().unwrap());
            Filter {
                labels_any: own(any),
                labels_all: own(all),
                exclude_labels: own(out),
                kinds,
                captured_after: at(after),
                captured_before: at(before),
                subject_entity_ids: subject
                    .map(|ada| vec![if ada { "ent_ada" } else { "ent_bob" }.to_owned()]),
                min_confidence: confidence.map(|c| Confidence::try_from(f64::from(c) / 100.0).unwrap()),
                ..Filter::default()
            }
        },
    )
}

/// Both conditions at once, member by member.
fn both(one: &Filter, other: &Filter) -> Filter {
    fn join<T>(one: &Option<T>, other: &Option<T>, join: impl Fn(&T, &T) -> T) -> Option<T>
    where
        T: Clone,
    {
        match (one, other) {
            (Some(one), Some(other)) => Some(join(one, other)),
            (one, other) => one.clone().or_else(|| other.clone()),
        }
    }
    let common = |one: &Vec<String>, other: &Vec<String>| {
        one.iter().filter(|label| other.contains(label)).cloned().collect()
    };
    let all = |one: &Vec<String>, other: &Vec<String>| one.iter().chain(other).cloned().collect();
    Filter {
        labels_any: join(&one.labels_any, &other.labels_any, common),
        // An empty list admits nothing: joined with another it still does.
        labels_all: join(&one.labels_all, &other.labels_all, |one, other| {
            if one.is_empty() || other.is_empty() { Vec::new() } else { all(one, other) }
        }),
        exclude_labels: join(&one.exclude_labels, &other.exclude_labels, all),
        kinds: join(&one.kinds, &other.kinds, |a, b| a.iter().filter(|k| b.contains(k)).copied().collect()),
        captured_after: join(&one.captured_after, &other.captured_after, |a, b| *a.max(b)),
        captured_before: join(&one.captured_before, &other.captured_before, |a, b| *a.min(b)),
        subject_entity_ids: join(&one.subject_entity_ids, &other.subject_entity_ids, common),
        min_confidence: join(&one.min_confidence, &other.min_confidence, |a, b| if a >= b { *a } else { *b }),
        ..Filter::default()
    }
}

fn level() -> impl Strategy<Value = TrustLevel> {
    (0..=4u8).prop_map(|level| level.try_into().unwrap())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn raising_the_level_never_hides_a_field(item in item()) {
        let owner = Owner::new(5);
        let (_, whole) = owner.capture(&item);
        for profile in Profile::built_in() {
            let mut below = BTreeSet::new();
            for level in TrustLevel::all() {
                let shown = project(&whole.committed, &profile, level, true).unwrap();
                let shown: BTreeSet<String> = shown.chosen(&whole.committed).unwrap().map(|d| d.encoded()).collect();
                prop_assert!(below.is_subset(&shown), "{} at level {}", profile.name(), level.get());
                below = shown;
            }
        }
    }

    #[test]
    fn narrowing_a_filter_never_adds_an_item(items in prop::collection::vec(item(), 1..8), wide in filter(), more in filter()) {
        let owner = Owner::new(5);
        let heads: Vec<Head> = items.iter().map(|item| owner.capture(item).0).collect();
        let (scope, narrow) = ("personal".parse().unwrap(), both(&wide, &more));
        for head in &heads {
            let admits = |filter: &Filter| filter.admits(head, &scope, false, now());
            // Nor does it lose one that both conditions admit; an intersection of lists of "any" may.
            prop_assert!(!admits(&narrow) || (admits(&wide) && admits(&more)), "{narrow:?}");
        }
    }

    /// A query that asks for something of an item beside its text looks at all that matches, any other at what may be among the first.
    #[test]
    fn whoever_asks_for_every_kind_is_answered_as_who_asks_for_none(
        texts in prop::collection::vec(prop::sample::select(&["tea", "tea tea", "tea and budget", "budget", "coffee"][..]), 1..40),
        words in prop::sample::select(&["tea", "budget tea", "coffee", "zeppelin"][..]),
        max_results in 1..7u16,
        max_items in 0..24_usize,
        had in prop::collection::vec(any::<bool>(), 40),
    ) {
        let owner = Owner::new(5);
        let capture = |text: &&str| owner.capture(&json!({"kind": "fact", "content": {"text": text}}));
        let items: Vec<(Head, ItemRecord)> = texts.iter().map(capture).collect();
        let had = items.iter().zip(had).filter(|(_, had)| *had).map(|((head, _), _)| head.item_id);
        let allowance = Allowance::new(vec![Arc::new(Disclosed::new(max_items, had))]);
        let profiles = Profile::built_in();
        let grant = grant(&Filter::default(), "oap.profile.projection.memory.v1", 4.try_into().unwrap());
        let view = view(&items, &presented(&owner, grant), &profiles).unwrap();
        let plain = Query { query: words.to_owned(), max_results: Some(max_results), ..Query::default() };
        let every_kind = Query { kinds: Some(Kind::ALL.to_vec()), ..plain.clone() };
        let mut after = None;
        for _ in 0..5 {
            let [one, other] = [&plain, &every_kind].map(|query| {
                let answer = write_out(find(&view, &allowance, query, None, after), &items);
                let new: Vec<ItemId> = answer.newly_disclosed().collect();
                let name = || RequestId::new(now(), &Seeded::new(1));
                let frame = Frame { request_id: name(), response_id: name(), next_cursor: None };
                (answer.items().collect::<Vec<_>>(), new, answer.next(), answer.write(frame).output_hash())
            });
            prop_assert_eq!(&one, &other);
            after = one.2;
            if after.is_none() {
                break;
            }
        }
    }

    #[test]
    fn an_item_outside_changes_nothing(
        items in prop::collection::vec(item(), 1..8),
        outsider in item(),
        filter in filter(),
        level in level(),
        words in prop::sample::select(&["tea", "budget email", "a@b.example", "", "Xk29vvTTmQ81", "tea in April 2026", "2026-04-05"][..]),
    ) {
        let owner = Owner::new(5);
        let inside: Vec<(Head, ItemRecord)> = items.iter().map(|item| owner.capture(item)).collect();
        let outsider = owner.capture(&outsider);
        let scope = "personal".parse().unwrap();
        prop_assume!(!filter.admits(&outsider.0, &scope, false, now()));
        let mut with = inside.clone();
        with.insert(items.len() / 2, outsider);
        let profiles = Profile::built_in();
        for profile in profiles.iter().filter(|profile| level >= profile.minimum_level()) {
            let grant = presented(&owner, grant(&filter, profile.name(), level));
            let (one, other) = (view(&inside, &grant, &profiles).unwrap(), view(&with, &grant, &profiles).unwrap());
            let query = Query { query: words.to_owned(), ..Query::default() };
            let disclosed = Allowance::unused(1000);
            // The hash of all that it says.
            let says = |view: &View| {
                let name = || RequestId::new(now(), &Seeded::new(1));
                let frame = Frame { request_id: name(), response_id: name(), next_cursor: None };
                write_out(find(view, &disclosed, &query, None, None), &with).write(frame).output_hash()
            };
            prop_assert_eq!(says(&one), says(&other));
            prop_assert_eq!((one.ends(), one.len()), (other.ends(), other.len()));
        }
    }
}

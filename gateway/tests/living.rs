//! Views live: a view that follows what is written answers as one that is built, nobody is turned away while the owner writes,
//! and what a grantee may not see leaves their view alone.

use crate::common::*;
use oap_gateway::Config;
use oap_gateway::service::deletion::DeleteRequest;
use oap_gateway::service::{Deletions, Items};
use oap_gateway::state::owner::{Owner, mark::Admin};
use oap_gateway::state::views::{MAX_STEP, ViewWork};
use oap_identity::{ItemId, Signer};
use oap_memory::chain::Event;
use proptest::prelude::*;
use serde_json::{Value, json};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

const WORDS: [&str; 6] = ["tea", "budget", "lisbon", "garden", "write to ann@mail.example", "the"];
const LABELS: [&str; 4] = ["shared", "again", "sealed", "never"];
const HOUR: Duration = Duration::from_secs(3600);

/// What the owner does. Items are chosen by number.
#[derive(Debug, Clone)]
enum Change {
    Capture(Value),
    Correct(usize, Value),
    Relabel(usize, Vec<&'static str>),
    Mark(usize, Event),
    Erase(usize),
    Sweep,
    Context(bool),
    Bridge,
    Time(u32),
}

fn item() -> impl Strategy<Value = Value> {
    let kind = prop::sample::select(&["fact", "conversation_turn"][..]);
    let text = prop::collection::vec(prop::sample::select(&WORDS[..]), 1..5);
    let labels = prop::collection::vec(prop::sample::select(&LABELS[..]), 1..3);
    let days = prop::option::weighted(0.2, 1..4u32);
    (kind, text, labels, 0..59u32, days, prop::bool::weighted(0.2)).prop_map(
        |(kind, text, labels, minute, days, work)| {
            let mut item = note(&text.join(" "), &labels);
            item["kind"] = json!(kind);
            item["provenance"] = json!({"captured_at": format!("2026-05-01T11:{minute:02}:00Z")});
            if let Some(days) = days {
                item["ttl_days"] = json!(days);
            }
            if work {
                item["scope_id"] = json!("work");
            }
            item
        },
    )
}

fn change() -> impl Strategy<Value = Change> {
    let any_item = || 0..10usize;
    let event = prop::sample::select(vec![Event::Retract, Event::Restore, Event::Confirm]);
    let changes = item().prop_map(|item| json!({"labels": item["labels"], "content": item["content"]}));
    prop_oneof![
        5 => item().prop_map(Change::Capture),
        4 => (any_item(), changes).prop_map(|(number, changes)| Change::Correct(number, changes)),
        2 => (any_item(), prop::collection::vec(prop::sample::select(&LABELS[..]), 1..3))
            .prop_map(|(number, labels)| Change::Relabel(number, labels)),
        3 => (any_item(), event).prop_map(|(number, event)| Change::Mark(number, event)),
        2 => any_item().prop_map(Change::Erase),
        1 => Just(Change::Sweep),
        1 => any::<bool>().prop_map(Change::Context),
        1 => Just(Change::Bridge),
        1 => (1..20u32).prop_map(Change::Time),
    ]
}

async fn apply(world: &World, owner: &Owner<Admin>, known: &mut Vec<ItemId>, change: &Change) {
    let gateway = &world.gateway;
    let item = |number: usize| known.get(number % known.len().max(1)).copied();
    match change {
        Change::Capture(item) => {
            let written = Items(gateway).capture(owner, std::slice::from_ref(item)).await.unwrap();
            known.extend(written.iter().map(|written| written.item_id));
        }
        Change::Correct(number, changes) => {
            if let Some(item) = item(*number) {
                // Not where it was retracted or erased.
                drop(Items(gateway).correct(owner, item, changes.clone(), None, Event::Correct).await);
            }
        }
        Change::Relabel(number, labels) => {
            if let Some(item) = item(*number) {
                drop(
                    Items(gateway)
                        .correct(owner, item, json!({"labels": labels}), None, Event::Relabel)
                        .await,
                );
            }
        }
        Change::Mark(number, event) => {
            if let Some(item) = item(*number) {
                drop(Items(gateway).mark(owner, item, *event).await);
            }
        }
        Change::Erase(number) => {
            let items = item(*number).into_iter().collect();
            drop(Deletions(gateway).delete(owner, DeleteRequest { items, ..Default::default() }).await);
        }
        Change::Sweep => drop(Deletions(gateway).sweep().await.unwrap()),
        Change::Context(true) => {
            let nda = json!({
                "id": "nda:1", "counterparties": ["did:web:other.example"], "type": "mutual",
                "covered_categories": ["sealed"], "valid_from": "2026-01-01", "valid_until": "2027-01-01",
                "jurisdiction": "DE", "document_hash": format!("sha256:{}", "0".repeat(64)),
            });
            let context = json!({"ccc_version": "1.0", "scope_id": "personal", "active_ndas": [nda]});
            world.owner("POST", "/oap/owner/contexts", Some(&context)).await.ok();
        }
        Change::Context(false) => {
            // Where there is none it is not found.
            drop(world.owner("POST", "/oap/owner/contexts/personal/remove", None).await);
        }
        Change::Bridge => bridge(world, "shared", 20).await,
        Change::Time(hours) => world.clock.advance(*hours * HOUR),
    }
}

fn draft(world: &World, grantee: &Signer) -> Value {
    let mut draft = world.draft(grantee);
    draft["filter"] = json!({"labels_any": ["shared", "again", "sealed"], "exclude_labels": ["never"]});
    draft["trust_level"] = json!(2);
    draft
}

/// The same of two scopes, between which a bridge must lead.
fn wide(world: &World, grantee: &Signer) -> Value {
    let mut draft = draft(world, grantee);
    draft["filter"]["scopes"] = json!(["personal", "work"]);
    draft
}

async fn bridge(world: &World, category: &str, hours: u32) {
    let bridge = json!({
        "from_scope": "work", "to_scope": "personal", "data_categories": [category],
        "valid_until": world.now().plus(hours * HOUR),
    });
    world.owner("POST", "/oap/owner/bridges", Some(&bridge)).await.ok();
}

/// Everything that is found under a grant, page by page, without what is fresh.
async fn found(world: &World, grantee: &Signer, grant: &Value, words: &str) -> Vec<Value> {
    let token = world.token(grantee, grant).await;
    let mut query = json!({"query": words, "max_results": 3});
    let mut pages = Vec::new();
    loop {
        let answer = world.query(grantee, &token, &query).await.ok();
        query["cursor"] = answer["next_cursor"].clone();
        pages.push(answer["items"].clone());
        if query["cursor"].is_null() || pages.len() > 5 {
            return pages;
        }
    }
}

#[test]
fn a_view_that_follows_what_is_written_answers_as_one_that_is_built() {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let cases = std::env::var("OAP_CASES").ok().and_then(|n| n.parse().ok()).unwrap_or(24);
    let config = ProptestConfig { cases, failure_persistence: None, ..ProptestConfig::default() };
    let changes = prop::collection::vec((change(), prop::bool::weighted(0.6)), 3..20);
    let mut runner = proptest::test_runner::TestRunner::new(config);
    let steps = std::cell::Cell::new(0);
    let case = (changes, prop::sample::select(&WORDS[..]));
    runner
        .run(&case, |(changes, words)| {
            runtime.block_on(async {
                let config = Config { epsilon_per_grantee: 1e9, ..Config::default() };
                let world = World::with(1, config).await;
                let grantee = agent(2);
                bridge(&world, "again", 1000).await;
                let lives = world.issue(&wide(&world, &grantee)).await;
                found(&world, &grantee, &lives, words).await;
                let mut known = Vec::new();
                for (number, (change, asks)) in changes.iter().enumerate() {
                    let owner = world.proved().await;
                    apply(&world, &owner, &mut known, change).await;
                    if !asks {
                        continue;
                    }
                    // A grant of the same terms, whose view is built for this answer.
                    let built = world.issue(&wide(&world, &grantee)).await;
                    for words in [words, ""] {
                        let lives = found(&world, &grantee, &lives, words).await;
                        let built = found(&world, &grantee, &built, words).await;
                        assert_eq!(lives, built, "after change {number}, {change:?}: {words:?}");
                    }
                }
                steps.set(steps.get() + world.gateway.view_work().0.steps);
            });
            Ok(())
        })
        .unwrap();
    // A property of views that were all built would say nothing.
    assert!(steps.get() > u64::from(cases), "{} steps", steps.get());
}

/// The owner writes all the time: captures, corrects, relabels, confirms and erases items of the views that are asked.
#[test]
fn nobody_is_turned_away_while_the_owner_writes() {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    runtime.block_on(async {
        let config = Config { epsilon_per_grantee: 1e9, ..Config::default() };
        let world = Arc::new(World::with(1, config).await);
        for batch in 0..4 {
            let items: Vec<Value> = (0..50)
                .map(|n| note(&format!("tea {} in the garden", batch * 50 + n), &["shared"]))
                .collect();
            world.capture(&items).await;
        }
        let (one, other) = (agent(2), agent(3));
        let grants = [world.issue(&draft(&world, &one)).await, world.issue(&draft(&world, &other)).await];
        let over = Arc::new(AtomicBool::new(false));
        let mut readers = Vec::new();
        for (number, query) in [
            json!({"query": "tea garden"}),
            json!({"query": ""}),
            json!({"query": "green", "max_results": 5}),
        ]
        .into_iter()
        .enumerate()
        {
            let (world, over) = (world.clone(), over.clone());
            let (grantee, grant) =
                if number == 2 { (agent(3), grants[1].clone()) } else { (agent(2), grants[0].clone()) };
            readers.push(tokio::spawn(async move {
                let token = world.token(&grantee, &grant).await;
                let mut answers = Vec::new();
                while !over.load(Ordering::SeqCst) {
                    answers.push(world.query(&grantee, &token, &query).await);
                }
                answers
            }));
        }
        let owner = world.proved().await;
        let mut written: Vec<ItemId> = Vec::new();
        for number in 0..150 {
            let text = format!("green tea {number}");
            let items = [note(&text, &["shared"])];
            written.extend(
                Items(&world.gateway).capture(&owner, &items).await.unwrap().iter().map(|w| w.item_id),
            );
            let item = written[number / 2];
            let items = Items(&world.gateway);
            match number % 5 {
                0 => {
                    let changes = json!({"content": {"text": format!("green tea, {number} times")}});
                    drop(items.correct(&owner, item, changes, None, Event::Correct).await);
                }
                1 => {
                    let changes = json!({"labels": ["again"]});
                    drop(items.correct(&owner, item, changes, None, Event::Relabel).await);
                }
                2 => drop(items.mark(&owner, item, Event::Confirm).await),
                3 => {
                    let request = DeleteRequest { items: vec![item], ..Default::default() };
                    drop(Deletions(&world.gateway).delete(&owner, request).await);
                }
                _ => {}
            }
        }
        over.store(true, Ordering::SeqCst);
        for reader in readers {
            let answers = reader.await.unwrap();
            assert!(!answers.is_empty());
            for answer in answers {
                assert_eq!(answer.status, 200, "{}", answer.body);
            }
        }
        world.chains_hold().await;
    });
}

async fn work(world: &World, grantee: &Signer, token: &str) -> (ViewWork, usize) {
    world.query(grantee, token, &json!({"query": "tea"})).await.ok();
    world.gateway.view_work()
}

/// Every kind of change of an item that the grantee may not see: their view is neither built nor changed, and takes as much
/// memory as before; where the gates keep the item back, the owner's report counts it.
#[tokio::test]
async fn what_a_grantee_may_not_see_leaves_their_view_alone() {
    let world = World::new().await;
    let owner = world.proved().await;
    apply(&world, &owner, &mut Vec::new(), &Change::Context(true)).await;
    world.capture(&[note("tea in the garden", &["shared"])]).await;
    let grantee = agent(2);
    let grant = world.issue(&draft(&world, &grantee)).await;
    let token = world.token(&grantee, &grant).await;
    let before = work(&world, &grantee, &token).await;
    let mut elsewhere = note("tea", &["shared"]);
    elsewhere["scope_id"] = json!("work");
    let mut restricted = note("tea", &["shared"]);
    restricted["sensitivity"] = json!("restricted");
    let mut kept = note("tea", &["shared"]);
    kept["exportable"] = json!(false);
    let same = async |what: &str, item: &Value| {
        let after = work(&world, &grantee, &token).await;
        let counted = item["labels"][0] == "sealed" && what != "erased";
        assert_eq!(after.0, before.0, "{what}: {item}");
        assert_eq!(after.1 == before.1, !counted || what == "Retract", "{what}: {item}");
    };
    // Outside the filter, in a scope that no bridge leads from, restricted, not to leave, and kept back by the gates.
    let hidden = [note("tea", &["private"]), note("tea", &["shared", "never"]), elsewhere, restricted, kept]
        .into_iter()
        .chain([note("tea", &["sealed"])]);
    for item in hidden {
        let written = Items(&world.gateway).capture(&owner, std::slice::from_ref(&item)).await.unwrap();
        let id = written[0].item_id;
        same("captured", &item).await;
        let changes = json!({"content": {"text": "tea, and more tea"}});
        Items(&world.gateway).correct(&owner, id, changes, None, Event::Correct).await.unwrap();
        same("corrected", &item).await;
        for event in [Event::Confirm, Event::Retract, Event::Restore] {
            Items(&world.gateway).mark(&owner, id, event).await.unwrap();
            same(&format!("{event:?}"), &item).await;
        }
        let request = DeleteRequest { items: vec![id], ..Default::default() };
        Deletions(&world.gateway).delete(&owner, request).await.unwrap();
        same("erased", &item).await;
    }
    // What they may see is followed, and nothing is built.
    world.capture(&[note("green tea", &["shared"])]).await;
    let (after, _) = work(&world, &grantee, &token).await;
    assert_eq!(after, ViewWork { steps: before.0.steps + 1, ..before.0 });
}

/// What the gates keep back goes from a view, and comes back, without its being built anew.
#[tokio::test]
async fn a_view_follows_what_the_owner_owes() {
    let world = World::new().await;
    let owner = world.proved().await;
    let mut elsewhere = note("tea at work", &["shared"]);
    elsewhere["scope_id"] = json!("work");
    world.capture(&[note("tea", &["shared"]), note("tea under seal", &["sealed"]), elsewhere]).await;
    let grantee = agent(2);
    bridge(&world, "nothing", 1000).await;
    let grant = world.issue(&wide(&world, &grantee)).await;
    let token = world.token(&grantee, &grant).await;
    let query = json!({"query": "tea"});
    let found = async || {
        let answer = world.query(&grantee, &token, &query).await.ok();
        let (ViewWork { builds, steps }, _) = world.gateway.view_work();
        let decision = answer["receipt"]["policy_decisions"][0]["id"].as_str().unwrap();
        let path = format!("/oap/owner/decisions/{decision}");
        let said = world.owner("GET", &path, None).await.ok()["explanation"].as_str().unwrap().to_owned();
        (texts(&answer).len(), builds, steps, said)
    };
    let (items, builds, steps, said) = found().await;
    assert_eq!((items, said.as_str()), (2, "scope.no_bridge (1); 2 passed, 1 withheld"));
    for (change, items, more, said) in [
        (Change::Context(true), 1, 0, "scope.no_bridge (1), ccc.nda (1); 1 passed, 2 withheld"),
        (Change::Bridge, 2, 1, "scope.bridge (1), ccc.nda (1); 2 passed, 1 withheld"),
        (Change::Context(false), 3, 2, "scope.bridge (1); 3 passed, 0 withheld"),
    ] {
        apply(&world, &owner, &mut Vec::new(), &change).await;
        assert_eq!(found().await, (items, builds, steps + more, said.to_owned()), "{change:?}");
    }
}

/// What is erased is out of the memory at once, and not when somebody asks again.
#[tokio::test]
async fn nothing_of_an_erased_item_stays_in_a_view() {
    let world = World::new().await;
    let owner = world.proved().await;
    let grantee = agent(2);
    let grant = world.issue(&draft(&world, &grantee)).await;
    let token = world.token(&grantee, &grant).await;
    let (_, empty) = work(&world, &grantee, &token).await;
    let id: ItemId = world.capture(&[note("tea and zanzibar", &["shared"])]).await[0].parse().unwrap();
    let (_, full) = work(&world, &grantee, &token).await;
    assert!(full > empty && world.gateway.is_written(id));
    let request = DeleteRequest { items: vec![id], ..Default::default() };
    Deletions(&world.gateway).delete(&owner, request).await.unwrap();
    assert_eq!(world.gateway.view_work().1, empty);
    assert!(!world.gateway.is_written(id));
}

/// An item that is in the view before it is corrected, meanwhile and after is in every answer.
#[test]
fn an_item_that_is_corrected_is_never_missing() {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    runtime.block_on(async {
        let config = Config { epsilon_per_grantee: 1e9, ..Config::default() };
        let world = Arc::new(World::with(1, config).await);
        let item: ItemId = world.capture(&[note("steady tea", &["shared"])]).await[0].parse().unwrap();
        let grantee = agent(2);
        let grant = world.issue(&draft(&world, &grantee)).await;
        let over = Arc::new(AtomicBool::new(false));
        let reader = tokio::spawn({
            let (world, over) = (world.clone(), over.clone());
            async move {
                let token = world.token(&grantee, &grant).await;
                let mut answers = Vec::new();
                while !over.load(Ordering::SeqCst) || answers.is_empty() {
                    answers.push(world.query(&grantee, &token, &json!({"query": "steady"})).await.ok());
                }
                answers
            }
        });
        let owner = world.proved().await;
        for number in 0..60 {
            let changes = json!({"content": {"text": format!("steady tea, {number} times")}});
            let items = Items(&world.gateway);
            items.correct(&owner, item, changes, None, Event::Correct).await.unwrap();
        }
        over.store(true, Ordering::SeqCst);
        for answer in reader.await.unwrap() {
            assert_eq!(answer["items"].as_array().unwrap().len(), 1, "{answer}");
        }
    });
}

/// A version that the sweep destroys is out of the memory, though nobody asked since the item was corrected; the view of
/// somebody who may not see the item is left alone.
#[tokio::test]
async fn nothing_of_a_destroyed_version_stays_in_a_view() {
    let world = World::new().await;
    let owner = world.proved().await;
    let (one, other) = (agent(2), agent(3));
    let grant = world.issue(&draft(&world, &one)).await;
    let mut narrow = world.draft(&other);
    narrow["filter"] = json!({"labels_any": ["again"]});
    let narrow = world.issue(&narrow).await;
    world.capture(&[note("green tea", &["again"])]).await;
    let token = world.token(&other, &narrow).await;
    let (_, alone) = work(&world, &other, &token).await;
    let id: ItemId = world.capture(&[note("tea and zanzibar", &["shared"])]).await[0].parse().unwrap();
    let token = world.token(&one, &grant).await;
    let (_, both) = work(&world, &one, &token).await;
    let changes = json!({"content": {"text": "tea"}});
    Items(&world.gateway).correct(&owner, id, changes, None, Event::Correct).await.unwrap();
    assert_eq!(world.gateway.view_work().1, both);
    world.clock.advance(31 * 24 * HOUR);
    Deletions(&world.gateway).sweep().await.unwrap();
    assert!(both > alone && alone > 0);
    assert_eq!(world.gateway.view_work().1, alone);
}

/// Many changes are taken over in steps, so that nobody waits for all of them at once; and the next answer has them all.
#[tokio::test]
async fn many_changes_are_taken_over_in_steps() {
    let world = World::new().await;
    world.capture(&[note("tea before", &["shared"])]).await;
    let grantee = agent(2);
    let grant = world.issue(&world.draft(&grantee)).await;
    let token = world.token(&grantee, &grant).await;
    let asked = json!({"query": "tea", "max_results": 1});
    world.query(&grantee, &token, &asked).await.ok();
    let before = world.gateway.view_work().0;
    let many: Vec<Value> = (0..2 * MAX_STEP + 1).map(|n| note(&format!("tea {n}"), &["shared"])).collect();
    for some in many.chunks(100) {
        world.capture(some).await;
    }
    let answer = world.query(&grantee, &token, &asked).await.ok();
    let after = world.gateway.view_work().0;
    assert_eq!((after.builds, after.steps), (before.builds, before.steps + 3));
    assert_eq!(answer["items"].as_array().unwrap().len(), 1, "{answer}");
    let all = world.query(&grantee, &token, &json!({"query": format!("{}", 2 * MAX_STEP)})).await.ok();
    assert!(
        all["items"][0]["content"]["text"].as_str().unwrap().ends_with(&(2 * MAX_STEP).to_string()),
        "{all}"
    );
}

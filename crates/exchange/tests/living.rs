//! *A view that follows changes is the one that is built from scratch*: random histories of every kind of change, under random
//! filters, profiles, levels, gates and caps. After each change both give the same bytes, cursors and disclosed counts.

mod support;

use oap_exchange::allowance::Disclosed;
use oap_exchange::answer::{Position, find};
use oap_exchange::bridge::Bridge;
use oap_exchange::bundle::{bundle, select};
use oap_exchange::ccc::Ccc;
use oap_exchange::gate::Obligations;
use oap_exchange::respond::{Frame, vector};
use oap_exchange::{Allowance, Model, Query, Setting, Vector, Version, View, WrittenItems};
use oap_grants::VerifiedGrant;
use oap_identity::random::Seeded;
use oap_identity::{BridgeId, BundleId, Hash, ItemId, RequestId, Timestamp};
use oap_memory::record::{ItemRecord, Status};
use oap_memory::{Filter, Head, Kind, Profile};
use proptest::prelude::*;
use proptest::test_runner::TestRunner;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;
use support::*;

const WORDS: [&str; 9] =
    ["tea", "budget", "lisbon", "a@b.example", "the", "Xk29vvTTmQ81", "garden", "2026-04-30", "in May"];
const LABELS: [&str; 4] = ["a", "b", "sealed", "never"];

/// A change of an item, by its number, or of what is around it.
#[derive(Debug, Clone)]
enum Change {
    Capture(Value),
    Correct(usize, Value),
    Relabel(usize, Vec<&'static str>),
    Confirm(usize),
    Retract(usize),
    Restore(usize),
    Erase(usize),
    /// So many hours go by.
    Time(u64),
    /// What the owner owes.
    Gates(bool),
}

fn labels() -> impl Strategy<Value = Vec<&'static str>> {
    prop::collection::vec(prop::sample::select(&LABELS[..]), 0..3)
}

fn item() -> impl Strategy<Value = Value> {
    let kind =
        prop_oneof![3 => Just(Kind::ConversationTurn), 2 => Just(Kind::Fact), 1 => Just(Kind::Observation)];
    let text = prop::collection::vec(prop::sample::select(&WORDS[..]), 1..6);
    let more = (0..90u32, prop::option::of(1..3u32), any::<bool>(), 0..=10u8, prop::bool::weighted(0.2));
    (kind, labels(), text, more).prop_map(|(kind, labels, text, (minute, days, subject, sure, work))| {
        let day = if minute % 3 == 0 { "2026-04-30" } else { "2026-05-01" };
        let mut item = json!({
            "kind": kind, "content": {"text": text.join(" ")}, "labels": labels,
            "provenance": {
                "captured_at": format!("{day}T{:02}:{:02}:00Z", 10 + minute / 60, minute % 60),
                "confidence": f64::from(sure) / 10.0,
            },
        });
        if let Some(days) = days {
            item["ttl_days"] = json!(days);
        }
        if subject {
            item["subject_entity_id"] = json!("ent_ada");
        }
        if work {
            item["scope_id"] = json!("work");
        }
        item
    })
}

fn change() -> impl Strategy<Value = Change> {
    let any_item = || 0..12usize;
    prop_oneof![
        6 => item().prop_map(Change::Capture),
        3 => (any_item(), item()).prop_map(|(at, item)| Change::Correct(at, item)),
        3 => (any_item(), labels()).prop_map(|(at, labels)| Change::Relabel(at, labels)),
        1 => any_item().prop_map(Change::Confirm),
        1 => any_item().prop_map(Change::Retract),
        1 => any_item().prop_map(Change::Restore),
        2 => any_item().prop_map(Change::Erase),
        1 => (1..30u64).prop_map(Change::Time),
        1 => any::<bool>().prop_map(Change::Gates),
    ]
}

fn filter() -> impl Strategy<Value = Filter> {
    let own = |list: Vec<&str>| list.into_iter().map(str::to_owned).collect();
    (prop::option::weighted(0.3, labels()), any::<bool>(), prop::option::weighted(0.2, 0..=10u8)).prop_map(
        move |(any, work, least)| Filter {
            labels_any: any.map(own),
            exclude_labels: Some(vec!["never".to_owned()]),
            scopes: work.then(|| vec!["personal".parse().unwrap(), "work".parse().unwrap()]),
            min_confidence: least.map(|least| (f64::from(least) / 20.0).try_into().unwrap()),
            ..Filter::default()
        },
    )
}

/// The items of a store, as they change.
struct Store {
    owner: Owner,
    items: BTreeMap<ItemId, (Arc<Head>, ItemRecord)>,
    known: Vec<ItemId>,
    now: Timestamp,
    gated: bool,
}

impl Store {
    fn put(&mut self, head: Head, whole: ItemRecord) -> Option<ItemId> {
        let item = head.item_id;
        self.items.insert(item, (Arc::new(head), whole));
        Some(item)
    }

    fn of(&self, number: usize) -> Option<(Head, ItemRecord)> {
        let item = self.known.get(number % self.known.len().max(1))?;
        let (head, whole) = self.items.get(item)?;
        Some(((**head).clone(), whole.clone()))
    }

    /// A link that leaves the version as it is.
    fn link(&mut self, number: usize, change: impl FnOnce(&mut Head)) -> Option<ItemId> {
        let (mut head, mut whole) = self.of(number)?;
        head.seq += 1;
        whole.chain.push(format!(r#"{{"seq":{}}}"#, head.seq));
        change(&mut head);
        self.put(head, whole)
    }

    /// Does it; the item that changed.
    fn change(&mut self, change: &Change) -> Option<ItemId> {
        match change {
            Change::Capture(item) => {
                let (head, whole) = self.owner.capture(item);
                self.known.push(head.item_id);
                self.put(head, whole)
            }
            Change::Correct(number, item) => {
                let (mut head, mut whole) = self.of(*number)?;
                let (_, other) = self.owner.capture_as(head.item_id, item);
                whole.committed = other.committed;
                head.seq += 1;
                head.version_seq = head.seq;
                whole.chain.push(format!(r#"{{"seq":{}}}"#, head.seq));
                head.take(&self.owner.body(item));
                self.put(head, whole)
            }
            Change::Relabel(number, labels) => {
                let (head, whole) = self.of(*number)?;
                let mut item =
                    json!({"kind": head.kind, "content": {"text": "tea in the garden"}, "labels": labels});
                item["provenance"] = json!({"captured_at": head.captured_at, "confidence": head.confidence});
                drop(whole);
                self.change(&Change::Correct(*number, item))
            }
            Change::Confirm(number) => self.link(*number, |head| head.meta.human_verified = true),
            Change::Retract(number) => self.link(*number, |head| head.status = Status::Retracted),
            Change::Restore(number) => self.link(*number, |head| head.status = Status::Current),
            Change::Erase(number) => {
                let (head, _) = self.of(*number)?;
                self.items.remove(&head.item_id);
                Some(head.item_id)
            }
            Change::Time(hours) => {
                self.now = self.now.plus(Duration::from_secs(hours * 3600));
                None
            }
            Change::Gates(gated) => {
                self.gated = *gated;
                None
            }
        }
    }

    fn load(&self, version: Version) -> Result<Option<ItemRecord>, Infallible> {
        let found = self.items.get(&version.item).filter(|(head, _)| Version::of(head) == version);
        Ok(found.map(|(_, whole)| whole.clone()))
    }

    fn obligations(&self) -> Obligations {
        let mut obligations = Obligations::default();
        if self.gated {
            let nda = json!({
                "id": "nda:1", "counterparties": ["did:web:other.example"], "type": "mutual",
                "covered_categories": ["sealed"], "valid_from": "2026-01-01", "valid_until": "2027-01-01",
                "jurisdiction": "DE", "document_hash": format!("sha256:{}", "0".repeat(64)),
            });
            let ccc = json!({"ccc_version": "1.0", "scope_id": "personal", "active_ndas": [nda]});
            obligations.contexts.insert("personal".parse().unwrap(), Ccc::parse(ccc).unwrap());
        }
        obligations.bridges.push(Bridge {
            bridge_id: BridgeId::new(now(), &Seeded::new(1)),
            principal: self.owner.did(),
            from_scope: "work".parse().unwrap(),
            to_scope: "personal".parse().unwrap(),
            data_categories: vec!["a".to_owned(), "b".to_owned()],
            issued_at: now(),
            valid_until: now().plus(Duration::from_secs(40 * 3600)),
            revocable: true,
        });
        obligations
    }
}

/// A vector by the letters of a text.
fn embed(texts: Vec<String>) -> Option<Vec<Vector>> {
    let of = |text: String| {
        let mut letters = vec![1.0_f32; 8];
        text.bytes().for_each(|letter| letters[usize::from(letter % 8)] += 1.0);
        Vector::new(letters)
    };
    texts.into_iter().map(of).collect()
}

struct Grantee<'a> {
    grant: &'a VerifiedGrant,
    profiles: &'a [Profile],
    embeddings: bool,
    most: usize,
    disclosed: BTreeSet<ItemId>,
    /// Shared by both views: what one wrote out is what the other writes.
    written: WrittenItems,
}

impl Grantee<'_> {
    fn allowance(&self) -> Allowance {
        Allowance::new(vec![Arc::new(Disclosed::new(self.most, self.disclosed.iter().copied()))])
    }

    fn build(&self, store: &Store) -> View {
        let model = Model { name: "letters", dimensions: 8, url: "https://user.example/vec/", embed: &embed };
        let setting = Setting {
            embeddings: self.embeddings,
            model: self.embeddings.then_some(&model),
            obligations: store.obligations(),
            now: store.now,
            ..setting(self.profiles)
        };
        let heads = store.items.values().map(|(head, _)| &**head);
        View::build(self.grant, &self.allowance(), &setting, heads, |head| store.load(Version::of(head)))
            .unwrap()
    }

    /// Everything that a question finds, page by page.
    fn ask(
        &self,
        view: &View,
        store: &Store,
        query: &Query,
    ) -> Vec<(Hash, Vec<String>, usize, Option<Position>)> {
        let meaning = view.has_vectors().then(|| embed(vec![query.query.clone()]).unwrap().remove(0));
        let (mut pages, mut after) = (Vec::new(), None);
        while pages.len() < 4 {
            let found = find(view, &self.allowance(), query, meaning.as_ref(), after);
            let Some(answer) = found.load(&self.written, |version| store.load(version)).unwrap() else {
                return Vec::new();
            };
            let (next, new) = (answer.next(), answer.newly_disclosed().count());
            let got_before = answer.items().filter(|item| self.allowance().contains(*item)).count();
            let name = || RequestId::new(now(), &Seeded::new(1));
            let unsent = answer.write(Frame { request_id: name(), response_id: name(), next_cursor: None });
            assert_eq!(got_before + new, unsent.shown().len());
            pages.push((unsent.output_hash(), unsent.tags(), new, next));
            after = next;
            if after.is_none() {
                break;
            }
        }
        pages
    }

    fn export(&self, view: &View, store: &Store) -> Option<(Hash, Vec<String>)> {
        let id = BundleId::new(now(), &Seeded::new(1));
        let selected = select(view, &self.allowance());
        let unsent = bundle(selected, id, Vec::new(), now(), |version| store.load(version)).unwrap();
        unsent.map(|unsent| (unsent.output_hash(), unsent.tags()))
    }

    fn vectors(&self, view: &View) -> Vec<Option<Hash>> {
        let of = |item: &ItemId| vector(view, &self.allowance(), *item).map(|unsent| unsent.output_hash());
        self.disclosed.iter().map(of).collect()
    }
}

/// What the gateway does with a view before the next answer.
fn follow(view: &mut View, changed: &BTreeSet<ItemId>, store: &Store, expires: bool) {
    let head = |item: &ItemId| (*item, store.items.get(item).map(|(head, _)| head.clone()));
    let load = |head: &Head| store.load(Version::of(head));
    let step = view.renewal().step(changed.iter().map(head), Some(&embed), store.now, load).unwrap();
    assert!(view.take(step));
    if expires {
        view.expire(store.now);
    }
}

#[derive(Debug, Clone)]
struct Case {
    /// Each, and whether something is asked after it.
    changes: Vec<(Change, bool)>,
    filter: Filter,
    profile: usize,
    level: u8,
    most: usize,
    embeddings: bool,
    limit: u16,
    words: Vec<Vec<&'static str>>,
}

fn case() -> impl Strategy<Value = Case> {
    let words = prop::collection::vec(prop::sample::select(&WORDS[..]), 0..3);
    (
        prop::collection::vec((change(), prop::bool::weighted(0.7)), 4..40),
        filter(),
        (0..8usize, 0..=4u8),
        (1..20usize, any::<bool>(), 1..6u16),
        prop::collection::vec(words, 1..3),
    )
        .prop_map(|(changes, filter, (profile, level), (most, embeddings, limit), words)| Case {
            changes,
            filter,
            profile,
            level,
            most,
            embeddings,
            limit,
            words,
        })
}

/// Plays a history, without the changes that `leaves_out` names: the view is not told of them. Where the view that follows
/// and the one that is built differ.
fn play(case: &Case, leaves_out: impl Fn(&Change) -> bool) -> Result<(), String> {
    let profiles = Profile::built_in();
    let profile = &profiles[case.profile % profiles.len()];
    let level = profile.minimum_level().max(case.level.try_into().unwrap());
    let mut store =
        Store { owner: Owner::new(5), items: BTreeMap::new(), known: Vec::new(), now: now(), gated: false };
    let mut terms = grant(&case.filter, profile.name(), level);
    terms.embedding_access = case.embeddings;
    let grant = presented(&store.owner, terms);
    let mut grantee = Grantee {
        grant: &grant,
        profiles: &profiles,
        embeddings: case.embeddings,
        most: case.most,
        disclosed: BTreeSet::new(),
        written: WrittenItems::default(),
    };
    let mut view = grantee.build(&store);
    let mut changed = BTreeSet::new();
    let mut expires = true;
    let queries: Vec<Query> = case
        .words
        .iter()
        .flat_map(|words| {
            let query = Query { query: words.join(" "), max_results: Some(case.limit), ..Query::default() };
            let labelled = Query { labels_any: Some(vec!["a".to_owned()]), ..query.clone() };
            let sure = Query { min_confidence: Some(0.5.try_into().unwrap()), ..query.clone() };
            [query, labelled, sure]
        })
        .collect();
    for (number, (change, asks)) in case.changes.iter().enumerate() {
        expires &= !(matches!(change, Change::Time(_)) && leaves_out(change));
        if let Some(item) = store.change(change) {
            grantee.written.forget(item);
            let after = store.items.get(&item).map(|(head, _)| &**head);
            // A change that does not concern the view leaves it alone.
            let concerns = view.concerns(item, after, store.now) || view.is_noted(item, after, store.now);
            if concerns && !leaves_out(change) {
                changed.insert(item);
            }
        }
        // What the owner owes is no change of an item.
        if matches!(change, Change::Gates(_)) && !leaves_out(change) {
            let head = |item: ItemId| store.items.get(&item).map(|(head, _)| head.clone());
            let passing = view.oblige(&store.obligations(), false, store.now, head);
            changed.extend(passing.unwrap_or_default());
        }
        if view.is_over(&grantee.allowance(), store.now) {
            (view, changed) = (grantee.build(&store), BTreeSet::new());
        }
        if !asks {
            continue;
        }
        follow(&mut view, &std::mem::take(&mut changed), &store, expires);
        let built = grantee.build(&store);
        let differs = |what: &str| Err(format!("{what} after change {number}, {change:?}"));
        if (view.len(), view.ends(), view.report(store.now))
            != (built.len(), built.ends(), built.report(store.now))
        {
            return differs("what it holds");
        }
        for query in &queries {
            if grantee.ask(&view, &store, query) != grantee.ask(&built, &store, query) {
                return differs(&format!("the answer to {query:?}"));
            }
        }
        if grantee.export(&view, &store) != grantee.export(&built, &store) {
            return differs("the bundle");
        }
        if grantee.vectors(&view) != grantee.vectors(&built) {
            return differs("a vector");
        }
        // The first page is disclosed.
        let found = find(&built, &grantee.allowance(), &queries[0], None, None);
        let answer = found.load(&grantee.written, |version| store.load(version)).unwrap().unwrap();
        grantee.disclosed.extend(answer.items());
    }
    // Nothing of what went stays.
    for item in store.known {
        view.forget(item);
    }
    if view.bytes() == 0 { Ok(()) } else { Err(format!("{} bytes of nothing", view.bytes())) }
}

fn runner(cases: u32, max_shrink_iters: u32) -> TestRunner {
    TestRunner::new(ProptestConfig {
        cases,
        max_shrink_iters,
        failure_persistence: None,
        ..ProptestConfig::default()
    })
}

#[test]
fn a_view_that_follows_is_the_one_that_is_built() {
    let cases = std::env::var("OAP_CASES").ok().and_then(|n| n.parse().ok()).unwrap_or(150);
    let followed =
        runner(cases, 1000).run(&case(), |case| play(&case, |_| false).map_err(TestCaseError::fail));
    followed.unwrap();
}

/// Of each kind of change there is a history that shows when a view is not told of it.
#[test]
fn a_change_that_is_left_out_is_noticed() {
    type Kind = fn(&Change) -> bool;
    let kinds: [(&str, Kind); 9] = [
        ("capture", |change| matches!(change, Change::Capture(_))),
        ("correct", |change| matches!(change, Change::Correct(..))),
        ("relabel", |change| matches!(change, Change::Relabel(..))),
        ("confirm", |change| matches!(change, Change::Confirm(_))),
        ("retract", |change| matches!(change, Change::Retract(_))),
        ("restore", |change| matches!(change, Change::Restore(_))),
        ("erase", |change| matches!(change, Change::Erase(_))),
        ("expire", |change| matches!(change, Change::Time(_))),
        ("gates", |change| matches!(change, Change::Gates(_))),
    ];
    for (name, kind) in kinds {
        let noticed = runner(300, 0).run(&case(), |case| play(&case, kind).map_err(TestCaseError::fail));
        assert!(noticed.is_err(), "nothing shows that a view is not told of {name}");
    }
}

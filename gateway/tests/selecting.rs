//! What the owner selects, by which words, and what becomes of it: deletion, relabelling, retraction, search, and who saw what.

use crate::common::*;
use crate::program::Home;
use oap_identity::Timestamp;
use proptest::prelude::*;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::time::Duration;

const LABELS: [&str; 3] = ["a", "b", "c"];
const SUBJECTS: [&str; 2] = ["ent_p", "ent_q"];
const SOURCES: [&str; 2] = ["chatgpt", "claude"];

/// An item of the property: its labels, subject, source and day.
#[derive(Debug, Clone)]
struct Made {
    labels: BTreeSet<&'static str>,
    subject: Option<&'static str>,
    source: &'static str,
    scope: &'static str,
    day: u8,
}

impl Made {
    fn item(&self) -> Value {
        let labels: Vec<&str> = self.labels.iter().copied().collect();
        let mut item = note("x", &labels);
        item["provenance"] = json!({"imported_from": self.source, "captured_at": at(self.day)});
        item["scope_id"] = json!(self.scope);
        if let Some(subject) = self.subject {
            item["subject_entity_id"] = json!(subject);
        }
        item
    }
}

fn at(day: u8) -> Timestamp {
    format!("2026-04-{day:02}T00:00:00Z").parse().unwrap()
}

#[derive(Debug, Clone)]
struct Wanted {
    /// Numbers of items.
    items: BTreeSet<usize>,
    labels: BTreeSet<&'static str>,
    subjects: BTreeSet<&'static str>,
    sources: BTreeSet<&'static str>,
    scopes: BTreeSet<&'static str>,
    after: Option<u8>,
    before: Option<u8>,
}

impl Wanted {
    fn is_nothing(&self) -> bool {
        self.items.is_empty()
            && self.labels.is_empty()
            && self.subjects.is_empty()
            && self.sources.is_empty()
            && self.scopes.is_empty()
            && self.after.is_none()
            && self.before.is_none()
    }

    /// The rule, as the help says it.
    fn wants(&self, number: usize, made: &Made) -> bool {
        (self.items.is_empty() || self.items.contains(&number))
            && (self.labels.is_empty() || !self.labels.is_disjoint(&made.labels))
            && (self.subjects.is_empty()
                || made.subject.is_some_and(|subject| self.subjects.contains(subject)))
            && (self.sources.is_empty() || self.sources.contains(made.source))
            && (self.scopes.is_empty() || self.scopes.contains(made.scope))
            && self.after.is_none_or(|day| made.day >= day)
            && self.before.is_none_or(|day| made.day < day)
    }

    fn json(&self, ids: &[String]) -> Value {
        let items: Vec<&String> = self.items.iter().filter_map(|number| ids.get(*number)).collect();
        let tags: Vec<String> = self.sources.iter().map(|source| format!("imported_from={source}")).collect();
        let mut wanted = json!({
            "items": items, "labels": self.labels, "subjects": self.subjects, "scopes": self.scopes,
            "provenance_tags": tags,
        });
        for (member, day) in [("captured_after", self.after), ("captured_before", self.before)] {
            if let Some(day) = day {
                wanted[member] = json!(at(day));
            }
        }
        wanted
    }
}

fn some(of: &'static [&'static str], most: usize) -> impl Strategy<Value = BTreeSet<&'static str>> {
    proptest::collection::btree_set(proptest::sample::select(of), 0..=most)
}

fn made() -> impl Strategy<Value = Made> {
    let subject = proptest::option::of(proptest::sample::select(&SUBJECTS[..]));
    let source = proptest::sample::select(&SOURCES[..]);
    let scope = proptest::sample::select(&["personal", "work"][..]);
    (some(&LABELS, 3), subject, source, scope, 1u8..9)
        .prop_map(|(labels, subject, source, scope, day)| Made { labels, subject, source, scope, day })
}

fn wanted() -> impl Strategy<Value = Wanted> {
    let day = || proptest::option::weighted(0.3, 1u8..9);
    let items = proptest::collection::btree_set(0usize..12, 0..9);
    let items = proptest::option::weighted(0.3, items).prop_map(Option::unwrap_or_default);
    (
        items,
        some(&LABELS, 2),
        some(&SUBJECTS, 1),
        some(&SOURCES, 1),
        some(&["personal", "work"], 1),
        day(),
        day(),
    )
        .prop_map(|(items, labels, subjects, sources, scopes, after, before)| Wanted {
            items,
            labels,
            subjects,
            sources,
            scopes,
            after,
            before,
        })
        .prop_filter("names something, in order", |wanted| {
            !wanted.is_nothing()
                && wanted.after.zip(wanted.before).is_none_or(|(after, before)| after < before)
        })
}

async fn receipts(world: &World) -> usize {
    let log = world.owner("GET", "/oap/audit?limit=1000", None).await.ok();
    log["receipts"].as_array().unwrap().len()
}

async fn left(world: &World) -> BTreeSet<String> {
    let listed = world.owner("GET", "/oap/owner/items?limit=1000", None).await.ok();
    ids(&listed).into_iter().collect()
}

fn set(list: &Value) -> BTreeSet<String> {
    list.as_array().unwrap().iter().map(|id| id.as_str().unwrap().to_owned()).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    /// A deletion erases what fits every selector, and nothing else; what was shown before is what is erased.
    #[test]
    fn a_deletion_erases_exactly_the_intersection(
        made in proptest::collection::vec(made(), 12),
        wanted in wanted(),
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let world = World::new().await;
            let items: Vec<Value> = made.iter().map(Made::item).collect();
            let all = world.capture(&items).await;
            let expected: BTreeSet<String> = made
                .iter()
                .zip(&all)
                .enumerate()
                .filter(|(number, (made, _))| wanted.wants(*number, made))
                .map(|(_, (_, id))| id.clone())
                .collect();
            let wanted = wanted.json(&all);
            let select = json!({"selection": wanted});
            let shown = world.owner("POST", "/oap/owner/items/select", Some(&select)).await.ok();
            assert_eq!(set(&shown["items"]), expected);
            let before = receipts(&world).await;
            let answer = world.owner("POST", "/oap/data/delete", Some(&wanted)).await;
            if expected.is_empty() {
                answer.refused(404, "not_found");
                assert_eq!(receipts(&world).await, before, "nothing is recorded of nothing");
            } else {
                assert_eq!(set(&answer.ok()["cascade_report"]["erased"]), expected);
            }
            let kept: BTreeSet<String> = all.into_iter().filter(|id| !expected.contains(id)).collect();
            assert_eq!(left(&world).await, kept);
        });
    }
}

/// What was confirmed is named by id; of it only what still fits is taken, and nothing that came since.
#[tokio::test]
async fn what_changed_since_it_was_confirmed_is_left_alone() {
    let world = World::new().await;
    let all = world.capture(&[note("one", &["x"]), note("two", &["x"]), note("three", &["x"])]).await;
    let confirmed = json!({"items": [all[0], all[1]], "labels": ["x"]});
    let path = format!("/oap/owner/items/{}/relabel", all[1]);
    world.owner("POST", &path, Some(&json!({"labels": ["kept"]}))).await.ok();
    let came = world.capture(&[note("four", &["x"])]).await;
    let retracted = json!({"selection": confirmed});
    let answer = world.owner("POST", "/oap/owner/items/retract", Some(&retracted)).await.ok();
    assert_eq!((&answer["changed"], &answer["left"]), (&json!([all[0]]), &json!(1)));
    let answer = world.owner("POST", "/oap/data/delete", Some(&confirmed)).await.ok();
    assert_eq!(answer["cascade_report"]["erased"], json!([all[0]]));
    assert_eq!(left(&world).await, BTreeSet::from([all[1].clone(), all[2].clone(), came[0].clone()]));
    let both = json!({"all": true, "labels": ["x"]});
    world.owner("POST", "/oap/data/delete", Some(&both)).await.refused(400, "invalid_input");
}

#[tokio::test]
async fn labels_of_many_change_together_or_not_at_all() {
    let world = World::new().await;
    let mut many: Vec<Value> = (0..20).map(|n| note(&format!("n{n}"), &["web"])).collect();
    many.push(note("as it should be", &["website"]));
    let all = world.capture(&many).await;
    let full: Vec<String> = (0..64).map(|n| format!("l{n}")).collect();
    let labels = json!({"add": ["website"], "remove": ["web"]});
    let body = json!({"selection": {"items": all}, "labels": labels});
    let answer = world.owner("POST", "/oap/owner/items/relabel", Some(&body)).await.ok();
    assert_eq!((set(&answer["changed"]).len(), &answer["left"]), (20, &json!(1)));
    let listed = world.owner("GET", "/oap/owner/items?label=website&limit=100", None).await.ok();
    assert_eq!(ids(&listed).len(), 21);
    // The same again changes nothing, and leaves no receipt.
    let before = receipts(&world).await;
    let answer = world.owner("POST", "/oap/owner/items/relabel", Some(&body)).await.ok();
    assert_eq!((&answer["changed"], receipts(&world).await), (&json!([]), before));
    // One that cannot have a label more: none is changed.
    let path = format!("/oap/owner/items/{}/relabel", all[20]);
    world.owner("POST", &path, Some(&json!({"labels": full}))).await.ok();
    let body = json!({"selection": {"items": all}, "labels": {"add": ["one more"]}});
    world.owner("POST", "/oap/owner/items/relabel", Some(&body)).await.refused(400, "invalid_input");
    let listed = world.owner("GET", "/oap/owner/items?label=one+more", None).await.ok();
    assert_eq!(listed["items"], json!([]));
    for nothing in [
        json!({"selection": {"labels": ["web"]}, "labels": labels}),
        json!({"selection": {"items": all}, "labels": {}}),
    ] {
        world.owner("POST", "/oap/owner/items/relabel", Some(&nothing)).await.refused(400, "invalid_input");
    }
    world.chains_hold().await;
}

/// What somebody was shown, and to whom a version was shown, is told from the receipts.
#[tokio::test]
async fn who_saw_what() {
    let world = World::new().await;
    let grantee = agent(2);
    let all = world.capture(&[note("tea at four", &["team"]), note("coffee at nine", &["team"])]).await;
    let mut draft = world.draft(&grantee);
    draft["filter"] = json!({"labels_any": ["team"]});
    let grant = world.issue(&draft).await;
    let token = world.token(&grantee, &grant).await;
    world.query(&grantee, &token, &json!({})).await.ok();
    let first = world.now();
    world.clock.advance(Duration::from_secs(60));
    let path = format!("/oap/owner/items/{}/correct", all[0]);
    world.owner("POST", &path, Some(&json!({"item": {"content": {"text": "tea at five"}}}))).await.ok();
    world.query(&grantee, &token, &json!({"query": "tea"})).await.ok();
    let last = world.now();
    let gone = format!("/oap/owner/grants/{}/revoke", grant["grant_id"].as_str().unwrap());
    world.owner("POST", &gone, Some(&json!({}))).await.ok();
    world.query(&grantee, &token, &json!({})).await.refused(403, "policy_block");

    let who = |body: Value| {
        let world = &world;
        async move { world.owner("POST", "/oap/owner/who", Some(&body)).await }
    };
    let told = who(json!({"did": grantee.did()})).await.ok();
    assert_eq!(
        (&told["queries"], &told["refusals"], &told["shown_count"]),
        (&json!(2), &json!(1), &json!(2))
    );
    assert_eq!((&told["grants"][0]["state"], &told["grants_count"]), (&json!("revoked"), &json!(1)));
    assert_eq!(told["last_query"]["at"], json!(last));
    assert_eq!(told["complete"], true);
    let tea = told["shown"].as_array().unwrap().iter().find(|item| item["item_id"] == json!(all[0])).unwrap();
    assert_eq!((&tea["times"], &tea["first"], &tea["last"]), (&json!(2), &json!(first), &json!(last)));
    assert_eq!(tea["seen_at"], json!([{"level": 3, "profile": "oap.profile.projection.memory.v1"}]));
    assert_eq!(tea["gist"], "tea at five");
    // A page, and the next.
    let page = who(json!({"did": grantee.did(), "limit": 1})).await.ok();
    assert_eq!(page["shown"].as_array().unwrap().len(), 1);
    let rest = who(json!({"did": grantee.did(), "limit": 1, "before": page["next"]})).await.ok();
    assert_ne!(rest["shown"][0]["item_id"], page["shown"][0]["item_id"]);
    assert_eq!((rest["shown"].as_array().unwrap().len(), &rest["next"]), (1, &Value::Null));
    who(json!({"did": agent(9).did()})).await.refused(404, "not_found");
    // The owner's own entries disclose nothing to anybody.
    let own = who(json!({"did": PRINCIPAL})).await.ok();
    assert_eq!((&own["shown_count"], &own["queries"]), (&json!(0), &json!(0)));

    let history = |id: String| {
        let world = &world;
        async move { world.owner("GET", &format!("/oap/owner/items/{id}/history"), None).await }
    };
    let told = history(all[0].clone()).await.ok();
    assert_eq!(
        told["events"][1]["changes"]["text"],
        json!({"before": "tea at four", "after": "tea at five"})
    );
    let shown: Vec<(&Value, &Value)> =
        told["disclosed"].as_array().unwrap().iter().map(|d| (&d["version"], &d["times"])).collect();
    assert_eq!(shown, [(&json!(1), &json!(1)), (&json!(2), &json!(1))]);
    assert_eq!(told["disclosed"][0]["grantee"], json!(grantee.did()));
    world
        .owner("POST", &format!("/oap/owner/items/{}/relabel", all[1]), Some(&json!({"labels": ["x"]})))
        .await
        .ok();
    world.owner("POST", &format!("/oap/owner/items/{}/retract", all[1]), Some(&json!({}))).await.ok();
    let told = history(all[1].clone()).await.ok();
    let changes = &told["events"][1]["changes"];
    assert_eq!((&changes["labels_added"], &changes["labels_removed"]), (&json!(["x"]), &json!(["team"])));
    assert_eq!(told["events"][2]["event"], "retract");
    // Of an erased one the events stay, and what was disclosed; not what it said.
    world.owner("POST", "/oap/data/delete", Some(&json!({"items": [all[0]]}))).await.ok();
    let told = history(all[0].clone()).await.ok();
    assert_eq!(
        (&told["status"], &told["events"][0]["content"]),
        (&json!("erased"), &json!("not kept any more"))
    );
    assert!(!told.to_string().contains("tea at"));
    assert_eq!(told["disclosed"].as_array().unwrap().len(), 2);
    let told = who(json!({"did": grantee.did()})).await.ok();
    let tea = told["shown"].as_array().unwrap().iter().find(|item| item["item_id"] == json!(all[0])).unwrap();
    assert_eq!(tea["status"], "erased");
    history("mem_01HX2QFXR0Q4S8T9V3W7X2Y0Z1".to_owned()).await.refused(404, "not_found");
}

#[tokio::test]
async fn the_owners_search_finds_what_is_held() {
    let world = World::new().await;
    let all = world
        .capture(&[
            note("Prefers green tea in the morning", &["food"]),
            note("Tea, tea and tea again", &["other"]),
            note("Write to anna@private.example about the budget", &[]),
        ])
        .await;
    let before = receipts(&world).await;
    let search = |body: Value| {
        let world = &world;
        async move { world.owner("POST", "/oap/owner/items/search", Some(&body)).await }
    };
    let found = search(json!({"text": "teas"})).await.ok();
    assert_eq!(ids(&found), [all[1].clone(), all[0].clone()]);
    assert_eq!(
        (&found["matched"], &found["items"][1]["snippet"].as_str().unwrap().contains("green tea")),
        (&json!(2), &true)
    );
    let found = search(json!({"text": "tea", "selection": {"labels": ["food"]}})).await.ok();
    assert_eq!(ids(&found), [all[0].clone()]);
    assert_eq!(search(json!({"text": "tea", "kinds": ["preference"]})).await.ok()["matched"], 0);
    assert_eq!(ids(&search(json!({"text": "tea", "limit": 1})).await.ok()).len(), 1);
    // In the clear, as the owner holds it.
    assert_eq!(ids(&search(json!({"text": "anna"})).await.ok()), [all[2].clone()]);
    let retract = json!({"selection": {"items": [all[2]]}});
    world.owner("POST", "/oap/owner/items/retract", Some(&retract)).await.ok();
    assert_eq!(search(json!({"text": "anna"})).await.ok()["matched"], 0);
    search(json!({"text": " "})).await.refused(400, "invalid_input");
    search(json!({"text": "x".repeat(5000)})).await.refused(400, "invalid_input");
    assert_eq!(receipts(&world).await, before + 1, "the retraction's alone");
}

#[tokio::test]
async fn the_beginning_of_an_id_stands_for_it() {
    let world = World::new().await;
    let all = world.capture(&[note("one", &[]), note("two", &[])]).await;
    let resolve = |body: Value| {
        let world = &world;
        async move { world.owner("POST", "/oap/owner/items/resolve", Some(&body)).await }
    };
    let asked = json!({"ids": [all[0][..20], all[0][..10], all[1]]});
    let answer = resolve(asked).await.ok();
    let found: Vec<BTreeSet<String>> =
        answer["resolved"].as_array().unwrap().iter().map(|one| set(&one["found"])).collect();
    let both: BTreeSet<String> = all.iter().cloned().collect();
    assert_eq!(found, [BTreeSet::from([all[0].clone()]), both, BTreeSet::from([all[1].clone()])]);
    // An erased one is found where no other begins so, and where erased ones are meant.
    world.owner("POST", "/oap/data/delete", Some(&json!({"items": [all[0]]}))).await.ok();
    let answer = resolve(json!({"ids": [all[0][..20], all[0][..10]]})).await.ok();
    assert_eq!(answer["resolved"][0]["found"], json!([all[0]]));
    assert_eq!(answer["resolved"][1]["found"], json!([all[1]]));
    let answer = resolve(json!({"ids": [all[0][..10]], "erased": true})).await.ok();
    assert_eq!(answer["resolved"][0]["found"], json!([all[0]]));
    for bad in ["mem_01H", "01HX2QFX", "mem_"] {
        resolve(json!({"ids": [bad]})).await.refused(400, "invalid_input");
    }
}

// --- the program ---

fn add(home: &Home, arguments: &[&str]) -> String {
    let all = [&["--json", "item", "add", "--kind", "fact"], arguments].concat();
    home.run(&all).json()["items"][0]["item_id"].as_str().unwrap().to_owned()
}

fn log(home: &Home) -> usize {
    home.run(&["audit", "--json", "--limit", "1000"]).json()["receipts"].as_array().unwrap().len()
}

fn listed(home: &Home) -> BTreeSet<String> {
    ids(&home.run(&["item", "list", "--json", "--limit", "500"]).json()).into_iter().collect()
}

#[test]
fn deleting_by_selectors() {
    let home = Home::key();
    let both = add(&home, &["--text", "both of them", "--label", "a", "--subject", "ent_p"]);
    let label = add(&home, &["--text", "the label alone", "--label", "a"]);
    let subject = add(&home, &["--text", "the subject alone", "--subject", "ent_p"]);
    let before = log(&home);

    // Nothing is asked of nobody, and nothing done.
    home.run(&["delete", "--label", "a", "--subject", "ent_p"]).failed(2, "--yes");
    home.run(&["delete", "--all", "--label", "a", "--yes"]).failed(2, "--all");
    home.run(&["delete", "--yes"]).failed(2, "which items");
    home.run(&["delete", "--item", "nonsense", "--yes"]).failed(2, "mem_");
    let dry = home.run(&["delete", "--label", "a", "--subject", "ent_p", "--dry-run"]).ok();
    assert!(
        dry.contains("1 item would be deleted") && dry.contains("both of them") && dry.contains(&both),
        "{dry}"
    );
    let dry = home.run(&["delete", "--label", "a", "--dry-run", "--json"]).json();
    assert_eq!((&dry["count"], dry["samples"].as_array().unwrap().len()), (&json!(2), 2));
    // A typo erases nothing and is recorded nowhere; the receipt's file is not made.
    let receipt = home.path("receipt.json");
    home.run(&["delete", "--label", "aa", "--yes", "--receipt", &receipt]).failed(1, "nothing matched");
    assert!(!std::path::Path::new(&receipt).exists());
    assert_eq!((listed(&home).len(), log(&home)), (3, before));

    let done =
        home.run(&["delete", "--label", "a", "--subject", "ent_p", "--yes", "--receipt", &receipt, "--json"]);
    assert_eq!(done.json()["cascade_report"]["erased"], json!([both]));
    assert_eq!(crate::program::read(&receipt)["scope"]["cascade"]["named"], json!([both]));
    assert_eq!(listed(&home), BTreeSet::from([label.clone(), subject.clone()]));
    // The same selector twice is either.
    let made = add(&home, &["--text", "third", "--label", "b"]);
    home.run(&["item", "delete", "--label", "a", "--label", "b", "--yes"]).ok();
    assert_eq!(listed(&home), BTreeSet::from([subject.clone()]));
    assert!(!made.is_empty());
    home.run(&["item", "delete", &subject, "--yes"]).ok();
    home.run(&["delete", "--all", "--yes"]).failed(1, "nothing matched");
}

#[test]
fn what_goes_along_is_shown_before() {
    let home = Home::key();
    let source = add(&home, &["--text", "the source", "--label", "s"]);
    let file = home.path("made.json");
    crate::program::write(
        &file,
        &json!({"kind": "summary", "content": {"text": "made of it"}, "derived_from": [source]}),
    );
    home.run(&["item", "add", "--file", &file]).ok();
    let held = add(&home, &["--text", "evidence", "--label", "s"]);
    home.run(&["hold", "set", &held[..24], "--until", "90d"]).ok();
    let dry = home.run(&["delete", "--label", "s", "--dry-run"]).ok();
    for says in [
        "2 items would be deleted",
        "1 item made from them",
        "made of it",
        "under a legal hold",
        &held,
        "Nothing was written",
    ] {
        assert!(dry.contains(says), "{says} is not in {dry}");
    }
    let done = home.run(&["delete", "--label", "s", "--yes", "--json"]).json();
    let report = &done["cascade_report"];
    assert_eq!((&report["erased"], &report["held"]), (&json!([source]), &json!([held])));
    assert_eq!(report["derived"].as_array().unwrap().len(), 1);
}

#[test]
fn relabelling_and_retracting_many() {
    let home = Home::key();
    for n in 0..3 {
        add(&home, &["--text", &format!("n{n}"), "--label", "web"]);
    }
    let other = add(&home, &["--text", "other", "--label", "other"]);
    let count = |label: &str| ids(&home.run(&["item", "list", "--label", label, "--json"]).json()).len();

    // All labels go only on purpose.
    home.run(&["item", "relabel", &other]).failed(2, "--clear");
    assert_eq!(count("other"), 1);
    home.run(&["item", "relabel", &other, "--label", "x", "--label", "y"]).ok();
    assert_eq!((count("x"), count("y"), count("other")), (1, 1, 0));
    home.run(&["item", "relabel", &other[..24], "--clear"]).ok();
    assert_eq!(count("x"), 0);
    home.run(&["item", "relabel", &other, "--add", "z"]).ok();
    assert_eq!(count("z"), 1);

    let many = ["item", "relabel", "--with-label", "web", "--add", "website", "--remove", "web"];
    home.run(&many).failed(2, "--yes");
    let dry = home.run(&[&many[..], &["--dry-run"]].concat()).ok();
    assert!(dry.contains("3 items would be relabelled"), "{dry}");
    assert_eq!(count("web"), 3);
    let done = home.run(&[&many[..], &["--yes"]].concat()).ok();
    assert!(done.contains("3 item(s) relabelled"), "{done}");
    assert_eq!((count("web"), count("website")), (0, 3));
    home.run(&[&many[..], &["--yes"]].concat()).failed(1, "nothing matched");

    home.run(&["item", "retract", "--label", "website", "--dry-run"]).ok();
    assert_eq!(count("website"), 3);
    home.run(&["item", "retract", "--label", "website", "--yes"]).ok();
    assert_eq!((count("website"), listed(&home).len()), (0, 1));
    home.run(&["item", "retract"]).failed(2, "which items");
    home.run(&["item", "retract", &other]).ok();
    home.run(&["item", "retract", &other]).failed(3, "retracted already");
}

#[test]
fn a_text_does_not_leave_its_structure_behind() {
    let home = Home::key();
    let id = add(&home, &["--text", "Four chairs", "--structured", r#"{"chairs": 4}"#]);
    let content = || home.run(&["item", "show", &id, "--json"]).json()["item"]["content"].clone();
    home.run(&["item", "correct", &id, "--text", "Five chairs"]).failed(2, "--keep-structured");
    assert_eq!(content()["text"], "Four chairs");
    home.run(&["item", "correct", &id, "--text", "Five chairs", "--structured", r#"{"chairs": 5}"#]).ok();
    assert_eq!(content(), json!({"text": "Five chairs", "structured": {"chairs": 5}}));
    home.run(&["item", "correct", &id, "--text", "Five green chairs", "--keep-structured"]).ok();
    assert_eq!(content()["structured"], json!({"chairs": 5}));
    let ran = home.run(&["item", "correct", &id, "--structured", r#"{"chairs": 6}"#]);
    assert!(ran.stderr.contains("the text stays as it was"), "{}", ran.stderr);
    home.run(&["item", "correct", &id, "--text", "Some chairs", "--no-structured"]).ok();
    assert_eq!(content(), json!({"text": "Some chairs"}));
    // Where there is none, nothing has to be said.
    home.run(&["item", "correct", &id, "--text", "No chairs"]).ok();

    let told = home.run(&["item", "show", &id[..24], "--history"]).ok();
    for says in ["version 1", "- Four chairs", "+ Five chairs", "content.structured", "never shown"] {
        assert!(told.contains(says), "{says} is not in {told}");
    }
}

#[test]
fn searching_and_who() {
    let home = Home::key();
    let tea = add(&home, &["--text", "Prefers green tea", "--label", "food"]);
    add(&home, &["--text", "The budget is 8000"]);
    let found = home.run(&["search", "tea", "--label", "food"]).ok();
    let row = found.lines().nth(1).unwrap();
    let cells: Vec<&str> = row.split("  ").map(str::trim).filter(|cell| !cell.is_empty()).collect();
    assert_eq!(cells[3..], ["food", "Prefers green tea"], "{found}");
    assert!(row.starts_with(&tea), "{found}");
    assert_eq!(home.run(&["search", "tea", "--json"]).json()["items"][0]["item_id"], json!(tea));
    assert!(home.run(&["search", "zeppelin"]).ok().contains("nothing found"));
    home.run(&["search", " "]).failed(2, "TEXT");

    let grantee = agent(3).did().to_string();
    home.run(&["who", &grantee]).failed(1, "no grant");
    home.run(&["who", "did:wbe"]).failed(2, "DID");
    let file = home.path("grant.json");
    let issue = [
        "grant",
        "issue",
        "--to",
        &grantee,
        "--purpose",
        "test",
        "--until",
        "30d",
        "--trust-level",
        "2",
        "--out",
        &file,
    ];
    home.run(&issue).ok();
    let told = home.run(&["who", &grantee]).ok();
    assert!(told.contains("active") && told.contains("0 item(s) shown in 0 queries"), "{told}");
    assert_eq!(home.run(&["who", &grantee, "--json"]).json()["grants"][0]["state"], "active");
}

#[test]
fn the_beginning_of_an_id_is_enough() {
    let home = Home::key();
    let file = home.path("items.json");
    crate::program::write(&file, &json!([note("one", &[]), note("two", &[])]));
    let written = home.run(&["--json", "item", "add", "--file", &file]).json();
    let (one, two) =
        (written["items"][0]["item_id"].as_str().unwrap(), written["items"][1]["item_id"].as_str().unwrap());
    assert!(home.run(&["item", "show", &one[..24]]).ok().contains("one"));
    let ran = home.run(&["item", "show", &one[..10]]);
    assert!(ran.stderr.contains(one) && ran.stderr.contains(two), "{}", ran.stderr);
    ran.failed(2, "several");
    home.run(&["item", "show", "mem_7ZZZ"]).failed(1, "no item");
    home.run(&["item", "show", "mem_7Z"]).failed(2, "the first 4 or more");
    for command in [
        &["item", "confirm", &two[..24]][..],
        &["item", "reseal", &two[..24]],
        &["item", "retract", &two[..24]],
        &["item", "restore", &two[..24]],
        &["audit", "--item", &two[..24]],
        &["profile", "explain", &two[..24], "--level", "2"],
        &["item", "list", "--before", &two[..24]],
        &["hold", "set", &two[..24], "--until", "1d"],
        &["hold", "release", &two[..24]],
        &["delete", "--item", &two[..24], "--yes"],
    ] {
        home.run(command).ok();
    }
    assert_eq!(listed(&home), BTreeSet::from([one.to_owned()]));
}

//! The property *non-interference* (protocol section 0): two stores that agree on the view of a grant give
//! byte-identical answers to every request under it, save for the values of section 9.
//!
//! Each case fills two gateways with the same visible items. What the profile hides of them differs, and so do
//! the items outside the filter; the words of the queries are planted in both. Everything that the grantee can
//! do is done to both, and compared.

use crate::common::*;
use crate::granted::{calls, graphs};
use crate::twins::*;
use oap_gateway::embedding::EmbeddingModel;
use oap_gateway::service::deletion::DeleteRequest;
use oap_gateway::service::{Deletions, Items};
use oap_memory::chain::Event;
use proptest::prelude::*;
use serde_json::{Value, json};

/// Words of queries, of visible text, and of hidden places alike.
const WORDS: [&str; 8] = ["tea", "budget", "meeting", "lisbon", "secret", "cello", "website", "email"];

/// One visible item and two versions of what is hidden of it.
#[derive(Debug, Clone)]
struct Visible {
    kind: &'static str,
    words: Vec<&'static str>,
    label: &'static str,
    hour: u8,
    /// Whether it is a contact, whose channels the profile hides below level 3.
    contact: bool,
    /// Whether it lies in another scope and comes over a bridge.
    bridged: bool,
    hidden: [Hidden; 2],
}

/// What a profile hides at level 3 and below, and at level 2 of the text.
#[derive(Debug, Clone)]
struct Hidden {
    word: &'static str,
    mailbox: String,
    secret: String,
    confidence: u8,
    ttl: Option<u16>,
    confidential: bool,
    extension: bool,
    derived: bool,
}

/// An item outside the filter.
#[derive(Debug, Clone)]
struct Outside {
    why: u8,
    words: Vec<&'static str>,
    hour: u8,
}

fn word() -> impl Strategy<Value = &'static str> {
    prop::sample::select(&WORDS[..])
}

fn hidden() -> impl Strategy<Value = Hidden> {
    (
        (word(), "[a-z]{5}", "[a-zA-Z0-9]{12}", 50..=99u8),
        (prop::option::of(300..3000u16), any::<bool>(), any::<bool>(), any::<bool>()),
    )
        .prop_map(|((word, mailbox, secret, confidence), (ttl, confidential, extension, derived))| {
            Hidden { word, mailbox, secret, confidence, ttl, confidential, extension, derived }
        })
}

fn visible() -> impl Strategy<Value = Visible> {
    let kind = prop::sample::select(&["fact", "preference", "conversation_turn"][..]);
    let label = prop::sample::select(&["shared", "shared_too"][..]);
    (kind, prop::collection::vec(word(), 1..5), label, 0..12u8, any::<[bool; 2]>(), [hidden(), hidden()])
        .prop_map(|(kind, words, label, hour, [contact, bridged], hidden)| Visible {
            kind,
            words,
            label,
            hour,
            contact,
            bridged,
            hidden,
        })
}

fn outside() -> impl Strategy<Value = Outside> {
    (0..9u8, prop::collection::vec(word(), 1..5), 0..12u8).prop_map(|(why, words, hour)| Outside {
        why,
        words,
        hour,
    })
}

impl Visible {
    /// The item with one of its two hidden parts. Spans have the same length, for the text shows none of it.
    fn item(&self, side: usize) -> Value {
        let hidden = &self.hidden[side];
        let mut item = json!({
            "kind": self.kind,
            "content": {
                "text": format!(
                    "{} mail {}@{}.example password: {}",
                    self.words.join(" "), hidden.mailbox, hidden.mailbox, hidden.secret
                ),
                "structured": {"note": hidden.word, hidden.word: hidden.confidence},
            },
            "provenance": {
                "captured_at": format!("2026-04-01T{:02}:00:00Z", self.hour),
                "confidence": f64::from(hidden.confidence) / 100.0,
            },
            "labels": [self.label],
        });
        if self.contact {
            item["content"]["structured"] = json!({
                "entity_type": "oap.entity.contact", "names": {"given": "Quentin", "family": self.words[0]},
                "channels": [{"type": "email", "value": format!("x-{}@own.example", hidden.mailbox)}],
            });
        }
        if let Some(ttl) = hidden.ttl {
            item["ttl_days"] = json!(ttl);
        }
        if hidden.confidential {
            item["sensitivity"] = json!("confidential");
        }
        if hidden.extension {
            item["extensions"] = json!({"example.app": {hidden.word: 1}});
        }
        if hidden.derived {
            item["derived_from"] = json!(["mem_01HX2QFXR0Q4S8T9V3W7X2Y0Z1"]);
        }
        item
    }
}

impl Outside {
    fn item(&self) -> Value {
        let mut item = json!({
            "kind": "fact",
            "content": {"text": self.words.join(" ")},
            "provenance": {"captured_at": format!("2026-04-01T{:02}:30:00Z", self.hour), "confidence": 0.9},
            "labels": ["shared"],
        });
        match self.why {
            0 => item["labels"] = json!(["private"]),
            1 => item["labels"] = json!(["shared", "never"]),
            2 => item["scope_id"] = json!("work"),
            3 => item["sensitivity"] = json!("restricted"),
            4 => item["exportable"] = json!(false),
            5 => item["expires_at"] = json!("2026-04-30T00:00:00Z"),
            // These two are kept back by the gates alone, where there are any.
            6 => item["labels"] = json!(["shared", "sealed", "never"]),
            7 => {
                item["labels"] = json!(["shared", "unbridged"]);
                item["scope_id"] = json!("work");
            }
            _ => item["kind"] = json!("observation"),
        }
        item
    }
}

#[derive(Debug, Clone)]
struct Case {
    visible: Vec<Visible>,
    outside: [Vec<Outside>; 2],
    level: u8,
    profile: &'static str,
    gated: bool,
    embeddings: bool,
    budget: Option<u32>,
    max_items: u32,
    queries: Vec<Value>,
    /// What is asked of the items as a graph.
    sparql: &'static str,
    /// Written to one side alone between two rounds of the same queries, changed in every way, and erased.
    later: Outside,
}

fn query() -> impl Strategy<Value = Value> {
    let words = prop::collection::vec(word(), 0..3);
    let kinds = prop::option::weighted(0.2, prop::sample::select(&["fact", "preference", "observation"][..]));
    let label =
        prop::option::weighted(0.3, prop::sample::select(&["shared", "shared_too", "private", "never"][..]));
    let least = prop::option::weighted(0.2, 0..=10u8);
    let date = prop::option::weighted(0.3, prop::sample::select(&["in April 2026", "2026-04-01"][..]));
    (words, date, kinds, label, least, 1..8u16, any::<bool>()).prop_map(
        |(mut words, date, kind, label, least, most, chain)| {
            words.extend(date);
            let mut query = json!({
                "query": words.join(" "), "max_results": most, "request_id": "01J9V8B7H1ZK4D2A0M9R8F0KQX",
            });
            if let Some(kind) = kind {
                query["kinds"] = json!([kind]);
            }
            if let Some(label) = label {
                query["labels_any"] = json!([label]);
            }
            if let Some(least) = least {
                query["min_confidence"] = json!(f64::from(least) / 10.0);
            }
            if chain {
                query["integrity"] = json!("chain");
            }
            query
        },
    )
}

fn case() -> impl Strategy<Value = Case> {
    let profile = prop::sample::select(&["memory.v1", "contact.v1", "calendar_event.v1", "task.v1"][..]);
    let rules = (profile, any::<bool>(), any::<bool>(), prop::option::weighted(0.2, 1..6u32));
    (
        prop::collection::vec(visible(), 1..6),
        [prop::collection::vec(outside(), 0..5), prop::collection::vec(outside(), 0..5)],
        0..=3u8,
        rules,
        1..8u32,
        (prop::collection::vec(query(), 1..4), prop::sample::select(&graphs::CURIOUS[..])),
        outside(),
    )
        .prop_map(|(visible, outside, level, rules, max_items, (queries, sparql), later)| {
            let (profile, gated, embeddings, budget) = rules;
            Case {
                visible,
                outside,
                level,
                profile,
                gated,
                embeddings,
                budget,
                max_items,
                queries,
                sparql,
                later,
            }
        })
}

/// What the owner owes: on both sides the same, as far as it concerns the grant, and more on one of them.
async fn oblige(world: &World, index: usize, case: &Case) {
    let set = async |context: Value| {
        world.owner("POST", "/oap/owner/contexts", Some(&context)).await.ok();
    };
    if case.gated {
        let nda = json!({
            "id": "nda:1", "counterparties": ["did:web:other.example"], "type": "mutual",
            "covered_categories": ["sealed", "private", "never", "observation"],
            "valid_from": "2026-01-01", "valid_until": "2027-01-01", "jurisdiction": "DE",
            "document_hash": format!("sha256:{}", "0".repeat(64)),
        });
        set(json!({"ccc_version": "1.0", "scope_id": "personal", "active_ndas": [nda]})).await;
        let bridge = json!({
            "from_scope": "work", "to_scope": "personal", "data_categories": ["bridged"],
            "valid_until": "2026-12-31T00:00:00Z",
        });
        world.owner("POST", "/oap/owner/bridges", Some(&bridge)).await.ok();
    }
    if index == 1 {
        set(json!({"ccc_version": "1.0", "scope_id": "clinic", "embargo_list": ["did:web:other.example"]}))
            .await;
    }
}

/// Everything that a grantee gets, in order.
async fn observe(side: &Side, index: usize, case: &Case) -> Vec<(u16, usize, Value)> {
    let world = &side.world;
    // Hidden items before, between and after the visible ones.
    let mut others = case.outside[index].iter().enumerate();
    let mut seed = 10_000 * (index as u64 + 1);
    for (number, visible) in case.visible.iter().enumerate() {
        if let Some((_, outside)) = others.next() {
            seed += 1;
            side.capture(seed, &outside.item()).await;
        }
        // Level 3 shows e-mail addresses; there the two sides have the same one.
        let mut item = visible.item(index);
        if case.gated && visible.bridged {
            item["scope_id"] = json!("work");
            item["labels"] = json!([visible.label, "bridged"]);
        }
        if case.level == 3 {
            let same = visible.item(0)["content"]["text"].as_str().unwrap().to_owned();
            let secret = &visible.hidden[index].secret;
            let text = same.replace(&visible.hidden[0].secret, secret);
            item["content"]["text"] = json!(text);
            if visible.contact {
                item["content"]["structured"] = visible.item(0)["content"]["structured"].clone();
            }
        }
        side.capture(100 + number as u64, &item).await;
    }
    for (_, outside) in others {
        seed += 1;
        side.capture(seed, &outside.item()).await;
    }
    side.random.set(1);
    let grantee = agent(2);
    oblige(world, index, case).await;
    side.random.set(1);
    let mut draft = json!({
        "grantee": grantee.did(), "purpose": "testing", "max_items": case.max_items,
        "filter": {
            "labels_any": ["shared", "shared_too"], "exclude_labels": ["never"],
            "kinds": ["fact", "preference", "conversation_turn"],
        },
        "expires_at": "2026-06-30T23:59:59Z",
        "redaction_profile": format!("oap.profile.projection.{}", case.profile), "trust_level": case.level,
    });
    if case.gated {
        // What the gates keep back, the filter of these grants admits.
        draft["filter"]["scopes"] = json!(["personal", "work"]);
        draft["filter"]["exclude_labels"] = json!(["nothing"]);
    }
    if let Some(queries) = case.budget {
        draft["budget"] = json!({"queries": queries});
    }
    let grant = world.issue(&draft).await;
    side.random.set(2);
    let token = world.token(&grantee, &grant).await;
    let mut seen = Vec::new();
    let mut keep = |answer: Answer| {
        let mut body = answer.body;
        if body.get("error").is_some() {
            // The gateway's own name for the request.
            body["request_id"] = json!("");
        }
        mask(&mut body);
        seen.push((answer.status.as_u16(), answer.bytes.len(), body));
    };
    for round in 0..2 {
        for query in &case.queries {
            let answer = world.query(&grantee, &token, query).await;
            let cursor = answer.body["next_cursor"].clone();
            keep(answer);
            if cursor.is_string() {
                let mut next = query.clone();
                next["cursor"] = cursor;
                let mut answer = world.query(&grantee, &token, &next).await;
                // It covers the cursor, which is fresh.
                blank(&mut answer.body["receipt"]["input_hash"]);
                keep(answer);
            }
        }
        let graph = json!({"sparql": case.sparql});
        let mut answer = calls(world, &grantee, &token, "memory_query", graph).await;
        graphs::as_text(&mut answer.body);
        if let Some(told) = answer.body.pointer_mut("/result/structuredContent") {
            told["request_id"] = json!("");
            // The request's own name is in it.
            blank(&mut told["receipt"]["input_hash"]);
        }
        keep(answer);
        let mut vectors = case.queries[0].clone();
        vectors["include_embeddings"] = json!(true);
        keep(world.query(&grantee, &token, &vectors).await);
        let mut listing = world.as_agent(&grantee, &token, "GET", "/oap/audit", None).await;
        for receipt in listing.body["receipts"].as_array_mut().into_iter().flatten() {
            // Some cover a cursor; each was compared when it was answered with.
            blank(&mut receipt["input_hash"]);
        }
        keep(listing);
        keep(world.raw("GET", "/.well-known/oap-memory.json", &[], None).await);
        if round == 0 && index == 1 {
            hidden_life(side, &case.later.item()).await;
        }
    }
    // How often the views were built, and took changes over: what is hidden costs them nothing.
    let (work, _) = world.gateway.view_work();
    seen.push((0, 0, json!([work.builds, work.steps])));
    seen
}

/// Every kind of change of an item that the grantee does not see.
async fn hidden_life(side: &Side, item: &Value) {
    let world = &side.world;
    let id = side.capture(50_000, item).await;
    let owner = world.proved().await;
    let (items, item) = (Items(&world.gateway), id.parse().unwrap());
    let changes = json!({"content": {"text": WORDS.join(" ")}});
    items.correct(&owner, item, changes, None, Event::Correct).await.unwrap();
    for event in [Event::Confirm, Event::Retract, Event::Restore] {
        items.mark(&owner, item, event).await.unwrap();
    }
    let request = DeleteRequest { items: vec![item], ..DeleteRequest::default() };
    Deletions(&world.gateway).delete(&owner, request).await.unwrap();
}

fn cases() -> u32 {
    std::env::var("OAP_CASES").ok().and_then(|n| n.parse().ok()).unwrap_or(400)
}

/// So many random cases; how many items the grantee saw in them.
fn run(cases: u32) -> usize {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let config = ProptestConfig { cases, failure_persistence: None, ..ProptestConfig::default() };
    let mut runner = proptest::test_runner::TestRunner::new(config);
    let items_seen = std::cell::Cell::new(0);
    runner
        .run(&case(), |case| {
            let (left, right) = runtime.block_on(async {
                let model = || case.embeddings.then(|| Box::new(Letters) as Box<dyn EmbeddingModel>);
                let (a, b) = (Side::with(model()).await, Side::with(model()).await);
                (observe(&a, 0, &case).await, observe(&b, 1, &case).await)
            });
            prop_assert_eq!(left.len(), right.len());
            for (number, (l, r)) in left.iter().zip(&right).enumerate() {
                prop_assert!(l == r, "request {}: {}", number, difference(&l.2, &r.2, String::new()));
                items_seen.set(items_seen.get() + l.2["items"].as_array().map_or(0, Vec::len));
            }
            Ok(())
        })
        .unwrap();
    items_seen.get()
}

#[test]
fn non_interference() {
    let all = cases();
    let workers = std::thread::available_parallelism().map_or(1, |n| u32::try_from(n.get()).unwrap_or(1));
    // Gateways of their own: they know nothing of each other.
    let items_seen: usize = std::thread::scope(|scope| {
        let parts = (0..workers).map(|worker| all / workers + u32::from(worker < all % workers));
        let running: Vec<_> = parts.map(|part| scope.spawn(move || run(part))).collect();
        running.into_iter().map(|one| one.join().unwrap()).sum()
    });
    // A property over empty answers would say nothing.
    assert!(items_seen > all as usize, "{items_seen}");
}

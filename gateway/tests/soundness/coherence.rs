//! One memory in three dialects: whatever is written, corrected and taken back by the tools, over OpenIntent or by the owner, after each
//! commit every way of asking gives the same truth.

use super::{agents, key_of, uses};
use crate::common::*;
use oap_identity::Signer;
use proptest::prelude::*;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::time::Duration;

/// In which dialect something was first written.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Dialect {
    Tools,
    Entries,
    Items,
}

/// What is to be so.
#[derive(Debug, Clone)]
struct Thing {
    dialect: Dialect,
    /// The word that nothing else has.
    word: String,
    /// Whether it is in force.
    is_there: bool,
    /// Whether it is the owner's word.
    is_owners: bool,
}

struct Model {
    world: World,
    grantee: Signer,
    token: String,
    key: String,
    things: BTreeMap<String, Thing>,
    words: usize,
}

impl Model {
    async fn new() -> Self {
        let world = agents().await;
        let key = key_of(&world, "editor").await;
        let grantee = agent(7);
        let grant = world.issue(&world.draft(&grantee)).await;
        let token = world.token(&grantee, &grant).await;
        Self { world, grantee, token, key, things: BTreeMap::new(), words: 0 }
    }

    fn word(&mut self) -> String {
        self.words += 1;
        self.world.clock.advance(Duration::from_millis(1));
        // Letters alone, and no ending that a language has.
        let digits = self.words.to_string();
        let letters = digits.bytes().map(|digit| char::from(b"bcdfghjkmp"[usize::from(digit - b'0')]));
        format!("berry{}x", letters.collect::<String>())
    }

    fn put(&mut self, answer: &Value, member: &str, dialect: Dialect, word: String) {
        let id = answer[member].as_str().unwrap().to_owned();
        let is_owners = dialect == Dialect::Items;
        self.things.insert(id, Thing { dialect, word, is_there: true, is_owners });
    }

    async fn entry(&self, method: &str, path: &str, version: &str, body: Option<&Value>) -> Answer {
        let headers = [("x-api-key", self.key.as_str()), ("if-match", version)];
        self.world.raw(method, &format!("/api/v1/memory{path}"), &headers, body).await
    }

    async fn owner(&self, id: &str, what: &str, body: Option<&Value>) -> bool {
        let answer = self.world.owner("POST", &format!("/oap/owner/items/{id}/{what}"), body).await;
        answer.status.is_success()
    }

    /// Does one thing. What is refused changes nothing.
    async fn step(&mut self, step: u8, at: &prop::sample::Index) {
        let word = self.word();
        let says = format!("tea with {word}");
        match step {
            0 => {
                let learn = json!({"content": says, "level": "tool_verified"});
                let learned = uses(&self.world, "scout", "memory_learn", learn).await.ok();
                return self.put(&learned["structured"], "item_id", Dialect::Tools, word);
            }
            1 => {
                let new = json!({"namespace": "n", "key": word, "memory_type": "semantic", "value": {"note": says}});
                let made = self.entry("POST", "", "1", Some(&new)).await.ok();
                return self.put(&made, "id", Dialect::Entries, word);
            }
            2 => {
                let id = self.world.capture(&[note(&says, &[])]).await.remove(0);
                return self.put(&json!({"id": id}), "id", Dialect::Items, word);
            }
            _ => {}
        }
        if self.things.is_empty() {
            return;
        }
        let (id, mut thing) = {
            let all: Vec<_> = self.things.iter().collect();
            let (id, thing) = *at.get(&all);
            (id.clone(), thing.clone())
        };
        let done = match step {
            3 => {
                let change = json!({"item_id": id, "content": says, "level": "tool_verified"});
                uses(&self.world, "chief", "memory_correct", change).await.status.is_success()
            }
            4 => self.owner(&id, "correct", Some(&json!({"item": {"content": {"text": says}}}))).await,
            5 => {
                let shown = self.entry("GET", &format!("/{id}"), "1", None).await;
                if thing.dialect != Dialect::Entries || !shown.status.is_success() {
                    return;
                }
                let version = shown.ok()["version"].to_string();
                let change = json!({"value": {"note": says}});
                self.entry("PATCH", &format!("/{id}"), &version, Some(&change)).await.status.is_success()
            }
            6 => {
                uses(&self.world, "chief", "memory_forget", json!({"item_id": id})).await.status.is_success()
            }
            7 => self.owner(&id, "retract", None).await,
            _ => self.owner(&id, "restore", None).await,
        };
        if !done {
            return;
        }
        match step {
            3..=5 => (thing.word, thing.is_owners) = (word, step == 4),
            _ => thing.is_there = step > 7,
        }
        self.things.insert(id, thing);
    }

    /// Asks in every way.
    async fn holds(&self) {
        let there: BTreeMap<&String, &Thing> =
            self.things.iter().filter(|(_, thing)| thing.is_there).collect();
        let listed = uses(&self.world, "chief", "memory_query", json!({"limit": 100})).await.ok();
        let listed: BTreeMap<&str, &str> = listed["structured"]["facts"]
            .as_array()
            .unwrap()
            .iter()
            .map(|fact| (fact["item_id"].as_str().unwrap(), fact["content"].as_str().unwrap()))
            .collect();
        assert_eq!(
            listed.keys().copied().collect::<Vec<_>>(),
            there.keys().map(|id| id.as_str()).collect::<Vec<_>>()
        );
        let sparql = "SELECT ?fact ?what WHERE { ?fact a brain:Fact ; brain:content ?what }";
        let found = uses(&self.world, "chief", "memory_query", json!({"sparql": sparql})).await.ok();
        let rows = found["structured"]["sparql"]["results"]["bindings"].as_array().unwrap();
        let graph: BTreeMap<&str, &str> = rows
            .iter()
            .map(|row| (row["fact"]["value"].as_str().unwrap(), row["what"]["value"].as_str().unwrap()))
            .map(|(fact, what)| (fact.strip_prefix("urn:oap:item:").unwrap(), what))
            .collect();
        assert_eq!(graph.keys().collect::<Vec<_>>(), listed.keys().collect::<Vec<_>>());
        for (id, thing) in &there {
            assert!(graph[id.as_str()].contains(thing.word.as_str()), "{thing:?}");
        }
        for (id, thing) in &self.things {
            let Thing { dialect, word, is_there, .. } = thing;
            assert!(!is_there || listed[id.as_str()].contains(word.as_str()), "{thing:?}");
            let recalled = uses(&self.world, "chief", "memory_recall", json!({"query": word})).await.ok();
            let found = recalled["structured"]["facts"].as_array().unwrap();
            let is_found = found.iter().any(|fact| fact["item_id"] == json!(id));
            assert_eq!(is_found, *is_there, "{thing:?}");
            let explained = uses(&self.world, "chief", "memory_explain", json!({"item_id": id})).await;
            // Of what was taken back its author is told.
            if *is_there {
                let explained = explained.ok();
                let says = explained["structured"]["fact"]["content"].as_str().unwrap();
                assert!(says.contains(word.as_str()), "{thing:?}: {says}");
            }
            let stored = self.world.owner("GET", &format!("/oap/owner/items/{id}"), None).await.ok();
            assert_eq!(stored["item"]["status"] == "current", *is_there, "{thing:?}");
            assert!(stored["item"]["content"]["text"].as_str().unwrap().contains(word.as_str()), "{thing:?}");
            if *dialect == Dialect::Entries {
                let shown = self.entry("GET", &format!("/{id}"), "1", None).await;
                assert_eq!(shown.status.is_success(), *is_there, "{thing:?}");
                if *is_there {
                    assert!(shown.ok()["value"].to_string().contains(word.as_str()), "{thing:?}");
                }
            }
        }
        // A grantee is given what is shared and the owner's word, and of that what is so now.
        let mut given = texts(&self.world.query(&self.grantee, &self.token, &json!({})).await.ok());
        let granted = there.values().filter(|thing| thing.dialect == Dialect::Items && thing.is_owners);
        let mut granted: Vec<String> = granted.map(|thing| format!("tea with {}", thing.word)).collect();
        given.sort();
        granted.sort();
        assert_eq!(given, granted);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 8, ..ProptestConfig::default() })]

    #[test]
    fn every_way_of_asking_gives_the_same_truth(
        steps in prop::collection::vec((0..9_u8, any::<prop::sample::Index>()), 1..14),
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let mut model = Model::new().await;
            for (step, at) in &steps {
                model.step(*step, at).await;
                model.holds().await;
            }
            model.world.chains_hold().await;
        });
    }
}

//! What the model is told: what the network saw, and what a recall gave its owner.

use super::model::{Granted, text};
use super::play::{Play, pick};
use super::steps::Act;
use super::wire::Seen;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

impl Play {
    /// While somebody recalls, somebody else revokes, deletes, or locks down: what is asked for after that was said is not answered.
    pub(super) async fn meanwhile(&mut self, by: usize, owner: usize, act: Act, number: usize) {
        if by == owner {
            return;
        }
        let of_by = |grant: &Granted| grant.from == owner && grant.to == by && !grant.revoked;
        let grants = self.model.grants.iter().filter(|(_, grant)| of_by(grant));
        let grant = pick(grants.map(|(hash, _)| hash.clone()), number);
        let item = pick(self.model.houses[owner].items.iter().cloned(), number);
        let this = &*self;
        let acts = async {
            let said = match (act, &grant, &item) {
                (Act::Revoke, Some(hash), _) => {
                    this.revoke(owner, hash).await;
                    Value::Null
                }
                (Act::Delete, _, Some(item)) => this.delete(owner, item).await,
                (Act::LockDown, ..) => this.lock(owner).await,
                _ => return None,
            };
            Some((said, this.wire.moment()))
        };
        let (found, acted) = tokio::join!(this.recall(by), acts);
        let answers = self.wire.seen();
        let mut back = BTreeMap::new();
        for seen in &answers {
            let Seen::Query(seen) = seen else { panic!("a letter of a recall: {seen:?}") };
            let (hash, items) = self.model.query(seen);
            let ended = match act {
                Act::Revoke => grant.as_ref() == Some(&hash),
                Act::Delete => item.as_ref().is_some_and(|item| items.contains(item)),
                Act::LockDown => seen.to == owner,
            };
            let before = acted.as_ref().is_none_or(|(_, moment)| seen.began < *moment);
            assert!(!ended || before, "answered after {act:?} was acknowledged: {}", seen.answer);
            if seen.back {
                back.insert(hash, items);
            }
        }
        self.recalled(by, &found, &back, false);
        let Some((said, _)) = acted else { return };
        match (act, grant, item) {
            (Act::Revoke, Some(hash), _) => self.model.revoke(&hash),
            (Act::Delete, _, Some(item)) => self.deleted(owner, &item, &said),
            (Act::LockDown, ..) => self.locked(owner, &said).await,
            _ => {}
        }
    }

    /// The model hears what the network saw; the answers that went back, with what they showed.
    pub(super) fn hears(&mut self, failed: Option<usize>) -> BTreeMap<String, BTreeSet<String>> {
        let seen = self.wire.seen();
        let mut back = BTreeMap::new();
        let mut outboxes: BTreeMap<usize, BTreeMap<String, String>> = BTreeMap::new();
        for seen in seen {
            match seen {
                Seen::Letter(seen) => {
                    let from = self.model.number(&seen.letter["from"]);
                    let outbox = outboxes.entry(from).or_insert_with(|| {
                        let letters = self.houses[from].letters();
                        let state = |l: &Value| (text(&l["letter"]).to_owned(), text(&l["state"]).to_owned());
                        letters.iter().map(state).collect()
                    });
                    self.model.letter(&seen, outbox, failed == Some(from));
                }
                Seen::Query(seen) => {
                    let (hash, items) = self.model.query(&seen);
                    if seen.back {
                        back.insert(hash, items);
                    }
                }
            }
        }
        back
    }

    /// What a recall gave its owner: of every live grant what became of it, and nothing that was not answered now.
    pub(super) fn recalled(
        &mut self,
        by: usize,
        found: &Value,
        answered: &BTreeMap<String, BTreeSet<String>>,
        is_alone: bool,
    ) {
        let own: BTreeSet<&str> =
            found["items"].as_array().unwrap().iter().map(|i| text(&i["item_id"])).collect();
        let items = &self.model.houses[by].items;
        assert!(own.iter().all(|item| items.contains(*item)), "what is not there is recalled: {found}");
        let mut asked = BTreeSet::new();
        for peer in found["from_peers"]["peers"].as_array().unwrap() {
            let (hash, verdict) = (text(&peer["grant"]).to_owned(), text(&peer["verdict"]));
            let went_back = answered.contains_key(&hash);
            assert_ne!(verdict, "lied", "nobody lies here: {peer}");
            assert_eq!(verdict == "answered", went_back, "{peer}");
            let from = self.model.grants[&hash].from;
            if is_alone && self.model.answers(&hash) && self.wire.is_calm(by, from) {
                assert_eq!(verdict, "answered", "{peer}");
            }
            if went_back {
                self.model.houses[by].wallet.get_mut(&hash).unwrap().answers += 1;
            }
            asked.insert(hash);
        }
        assert_eq!(asked, self.model.live(by), "under whose grants was asked: {found}");
        for item in found["from_peers"]["items"].as_array().unwrap() {
            let shown = |via: &Value| {
                let items = answered.get(text(&via["grant"]));
                items.is_some_and(|items| items.contains(text(&item["item_id"])))
            };
            assert!(item["shown_by"].as_array().unwrap().iter().all(shown), "shown by nobody now: {item}");
        }
    }
}

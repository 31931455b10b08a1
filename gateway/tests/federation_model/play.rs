//! Three gateways that play a history, and the model beside them: after each step they have to agree.

use super::house::House;
use super::model::{Asked, DAY, Granted, Held, KEY, Model, Standing, Task, text, time};
use super::steps::{PAUSES, Step};
use super::wire::{Fault, HOUSES, SeenQuery, Wire};
use crate::common::*;
use oap_gateway::service::{Deletions, Letters};
use oap_identity::{Hash, Timestamp};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

/// Requests of one owner to another in a history: a gateway takes eight without an answer.
const MOST_ASKED: usize = 6;
/// How long a history lasts at most: within the time for which everything is kept that it looks at.
const LONGEST: Duration = Duration::from_secs(70 * 86_400);
/// What of the program's own time a recall has, on a machine that does much else.
const PATIENT: u64 = 25;

pub struct Play {
    pub model: Model,
    pub(super) wire: Arc<Wire>,
    pub(super) houses: Vec<House>,
    _folder: tempfile::TempDir,
    numbers: u32,
    waited: Duration,
}

/// The one of some that a number means.
pub(super) fn pick<T: Clone>(of: impl IntoIterator<Item = T>, number: usize) -> Option<T> {
    let of: Vec<T> = of.into_iter().collect();
    if of.is_empty() { None } else { of.get(number % of.len()).cloned() }
}

impl Play {
    pub async fn new(seed: u64, fault: Fault) -> Self {
        let now = Timestamp::from_millis(START);
        let (wire, folder) = (Wire::new(now, fault), tempfile::tempdir().unwrap());
        let mut houses = Vec::new();
        for number in 0..HOUSES {
            houses.push(House::new(number, seed, &wire, folder.path(), now).await);
        }
        let dids = std::array::from_fn(|number: usize| houses[number].did.clone());
        let model = Model::new(&dids, now);
        Self { model, wire, houses, _folder: folder, numbers: 0, waited: Duration::ZERO }
    }

    pub(super) fn world(&self, who: usize) -> &World {
        self.houses[who].world()
    }

    pub(super) async fn get(&self, who: usize, path: &str) -> Value {
        self.world(who).owner("GET", path, None).await.ok()
    }

    async fn post(&self, who: usize, path: &str, body: &Value) -> Answer {
        self.wire.acts(who);
        self.world(who).owner("POST", &format!("/oap/owner/{path}"), Some(body)).await
    }

    /// A request without a body.
    async fn act(&self, who: usize, path: &str) -> Answer {
        self.wire.acts(who);
        self.world(who).owner("POST", &format!("/oap/owner/{path}"), None).await
    }

    /// Plays a history to its end.
    pub async fn play(&mut self, steps: &[Step]) {
        for step in steps {
            self.step(*step).await;
        }
        self.ends().await;
    }

    async fn step(&mut self, step: Step) {
        let mut failing = None;
        match step {
            Step::Write { by } => self.write(by).await,
            Step::Ask { by, of, same, most, days } => self.ask(by, of, same, most, days).await,
            Step::Again { by, pick } => {
                if let Some(request) = self.waits(by, pick) {
                    self.act(by, &format!("asked/{request}/again")).await.ok();
                }
            }
            Step::Withdraw { by, pick } => {
                if let Some(request) = self.waits(by, pick) {
                    self.act(by, &format!("asked/{request}/withdraw")).await.ok();
                    self.model.houses[by].asked.get_mut(&request).unwrap().state = Standing::Withdrawn;
                }
            }
            Step::Approve { by, pick } => self.approve(by, pick).await,
            Step::Decline { by, pick } => self.decline(by, pick).await,
            Step::Give { by, to, most, days } => self.give(by, to, most, days).await,
            Step::Drop { by, pick: number } => {
                if let Some(hash) = pick(self.model.houses[by].wallet.keys().cloned(), number) {
                    self.act(by, &format!("received/{hash}/remove")).await.ok();
                    self.model.houses[by].wallet.remove(&hash);
                }
            }
            Step::Check { by, pick } => self.check(by, pick).await,
            Step::Recall { by } => {
                let found = self.recall(by).await;
                let answered = self.hears(failing);
                self.recalled(by, &found, &answered, true);
            }
            Step::KeyAsks { of } => self.key_asks(of).await,
            Step::Revoke { by, pick } => {
                if let Some(hash) = self.granted(by, pick) {
                    self.revoke(by, &hash).await;
                    self.model.revoke(&hash);
                }
            }
            Step::Delete { by, pick: number } => {
                if let Some(item) = pick(self.model.houses[by].items.iter().cloned(), number) {
                    let deleted = self.delete(by, &item).await;
                    self.deleted(by, &item, &deleted);
                }
            }
            Step::Meanwhile { by, owner, act, pick } => self.meanwhile(by, owner, act, pick).await,
            Step::LockDown { by } => {
                let locked = self.lock(by).await;
                self.locked(by, &locked).await;
            }
            Step::Lift { by } => self.lift(by).await,
            Step::Send { by } => self.send(by).await,
            Step::SendAndFail { by, who, after } => {
                self.houses[who].ends_after(after);
                self.wire.acts(by);
                // What a disk that ended does not take is refused.
                let _ = Letters(&self.world(by).gateway).send_due().await;
                self.kill(who).await;
                failing = Some(who);
            }
            Step::Sweep { who } => {
                Deletions(&self.world(who).gateway).sweep().await.unwrap();
                self.model.sweep(who);
            }
            Step::Kill { who } => self.kill(who).await,
            Step::Link { a, b, is } => self.wire.set(a, b, is),
            Step::Wait { pause } => self.wait(PAUSES[pause]),
        }
        self.hears(failing);
        self.agree();
    }

    /// An owner's request that waits for its answer, as far as is noted.
    fn waits(&self, by: usize, number: usize) -> Option<String> {
        let asked = self.model.houses[by].asked.iter();
        let waiting = asked.filter(|(_, asked)| asked.state == Standing::Pending);
        pick(waiting.map(|(request, _)| request.clone()), number)
    }

    fn granted(&self, by: usize, number: usize) -> Option<String> {
        let grants = self.model.grants.iter();
        let live = grants.filter(|(_, grant)| grant.from == by && !grant.revoked);
        pick(live.map(|(hash, _)| hash.clone()), number)
    }

    async fn write(&mut self, by: usize) {
        self.numbers += 1;
        let written = [note(&format!("Tea number {} of {by}", self.numbers), &["shared"])];
        let ids = self.world(by).capture(&written).await;
        self.model.houses[by].items.extend(ids);
    }

    async fn ask(&mut self, by: usize, of: usize, same: bool, most: u32, days: u64) {
        let before: Vec<Value> = {
            let asked = self.model.houses[by].asked.values();
            asked.filter(|asked| asked.to == of).map(|asked| asked.ask.clone()).collect()
        };
        if before.len() >= MOST_ASKED {
            return;
        }
        self.numbers += 1;
        let now = self.model.now;
        let new = json!({
            "purpose": format!("Ask {}", self.numbers), "filter": {"labels_any": ["shared"]},
            "max_items": most, "expires_at": now.plus(u32::try_from(days).unwrap() * DAY),
            "operations": ["query"], "redaction_profile": "oap.profile.projection.memory.v1", "trust_level": 3,
        });
        let alive = before.into_iter().rfind(|ask| same && time(&ask["expires_at"]) > now);
        let body = json!({"from": self.houses[of].did, "ask": alive.unwrap_or(new)});
        let asked = self.post(by, "asked", &body).await.ok();
        let state = Standing::Pending;
        let known = Asked { to: of, ask: asked["ask"].clone(), at: now, state, grant: None };
        self.model.houses[by].asked.insert(text(&asked["request"]).to_owned(), known);
    }

    /// A task that waits for its owner: the model's number, and how the gateway shows it.
    async fn task(&self, by: usize, number: usize) -> Option<(usize, Value)> {
        let (house, now) = (&self.model.houses[by], self.model.now);
        let pending = |task: &Task| task.stands(now) == Standing::Pending;
        let found = pick((0..house.tasks.len()).filter(|n| pending(&house.tasks[*n])), number)?;
        let task = &house.tasks[found];
        let inbox = self.get(by, "/oap/owner/inbox").await;
        let from = self.houses[task.from].did.as_str();
        let mut shown = inbox["asks"].as_array().unwrap().iter();
        let shown =
            shown.find(|ask| ask["state"] == "pending" && ask["from"] == from && ask["ask"] == task.ask);
        Some((
            found,
            shown.unwrap_or_else(|| panic!("a request that is not shown: {task:?}: {inbox}")).clone(),
        ))
    }

    async fn approve(&mut self, by: usize, number: usize) {
        let Some((found, shown)) = self.task(by, number).await else { return };
        let path = format!("inbox/{}/approve", text(&shown["task"]));
        let answer = self.post(by, &path, &shown["proposal"]).await;
        if self.model.houses[by].locked {
            answer.refused(409, "conflict");
            return;
        }
        let info = answer.ok();
        let now = self.model.now;
        let task = &mut self.model.houses[by].tasks[found];
        let (hash, to) = (text(&info["hash"]).to_owned(), task.from);
        task.ends(Standing::Approved, now);
        task.grant = Some(hash.clone());
        self.signed(by, to, hash, &info["grant"]);
    }

    fn signed(&mut self, from: usize, to: usize, hash: String, grant: &Value) {
        let id = text(&grant["grant_id"]).to_owned();
        let most = usize::try_from(grant["max_items"].as_u64().unwrap()).unwrap();
        let (ends, shown) = (time(&grant["expires_at"]), BTreeSet::new());
        let granted = Granted { id, from, to, ends, most, revoked: false, shown };
        assert!(self.model.grants.insert(hash, granted).is_none(), "a grant was signed twice");
    }

    async fn decline(&mut self, by: usize, number: usize) {
        let Some((found, shown)) = self.task(by, number).await else { return };
        self.post(by, &format!("inbox/{}/decline", text(&shown["task"])), &json!({})).await.ok();
        let now = self.model.now;
        self.model.houses[by].tasks[found].ends(Standing::Declined, now);
    }

    async fn give(&mut self, by: usize, to: usize, most: u32, days: u64) {
        let key = agent(7);
        let grantee = if to == by { key.did().to_string() } else { self.houses[to].did.clone() };
        let draft = json!({
            "grantee": grantee, "purpose": "By hand", "filter": {"labels_any": ["shared"]}, "max_items": most,
            "expires_at": self.model.now.plus(u32::try_from(days).unwrap() * DAY),
            "redaction_profile": "oap.profile.projection.memory.v1", "trust_level": 3,
        });
        let answer = self.post(by, "grants", &draft).await;
        if self.model.houses[by].locked {
            answer.refused(409, "conflict");
            return;
        }
        let info = answer.ok();
        let hash = Hash::of_canonical(&info["grant"]).unwrap().to_string();
        assert_eq!(info["hash"], hash.as_str());
        self.signed(by, if to == by { KEY } else { to }, hash.clone(), &info["grant"]);
        if to == by {
            return;
        }
        let answer = self.post(to, "received", &json!({"grant": info["grant"]})).await;
        if answer.status == 200 {
            self.model.houses[to].wallet.insert(hash, Held::default());
        } else {
            assert!(!self.wire.is_calm(by, to), "a grant is not taken: {}", answer.body);
        }
    }

    async fn check(&mut self, by: usize, number: usize) {
        let Some(hash) = pick(self.model.houses[by].wallet.keys().cloned(), number) else { return };
        let from = self.model.grants[&hash].from;
        let answer = self.act(by, &format!("received/{hash}/check")).await;
        if answer.status != 200 {
            assert!(!self.wire.is_calm(by, from), "a status list that cannot be read: {}", answer.body);
            return;
        }
        let held = self.model.houses[by].wallet.get_mut(&hash).unwrap();
        held.revoked |= self.model.grants[&hash].revoked;
    }

    /// Whoever has no gateway asks under each grant; not over the network, but at the same door.
    async fn key_asks(&mut self, of: usize) {
        let key = agent(7);
        let to_key = |grant: &Granted| grant.from == of && grant.to == KEY;
        let grants: Vec<String> =
            self.model.grants.iter().filter(|(_, g)| to_key(g)).map(|(hash, _)| hash.clone()).collect();
        for hash in grants {
            let path = format!("/oap/owner/grants/{}", self.model.grants[&hash].id);
            let document = self.get(of, &path).await["grant"].clone();
            let exchanged = self.world(of).exchange(&key, &document).await;
            if !self.model.answers(&hash) {
                assert_ne!(exchanged.status, 200, "a token for a grant that is over: {hash}");
                continue;
            }
            let token = text(&exchanged.ok()["memory_grant_jwt"]).to_owned();
            let answer = self.world(of).query(&key, &token, &json!({"query": "tea"})).await.ok();
            let (from, to, began, back) = (KEY, of, self.wire.moment(), true);
            self.model.query(&SeenQuery { from, to, began, answer, back });
        }
    }

    pub(super) async fn recall(&self, by: usize) -> Value {
        let query = json!({"text": "tea", "deadline": PATIENT, "limit": 100});
        self.post(by, "recall", &query).await.ok()
    }

    pub(super) async fn revoke(&self, by: usize, hash: &str) {
        let path = format!("/oap/owner/grants/{}/revoke", self.model.grants[hash].id);
        self.world(by).owner("POST", &path, None).await.ok();
    }

    pub(super) async fn delete(&self, by: usize, item: &str) -> Value {
        self.world(by).owner("POST", "/oap/data/delete", Some(&json!({"items": [item]}))).await.ok()
    }

    pub(super) fn deleted(&mut self, by: usize, item: &str, deleted: &Value) {
        let told = self.model.delete(by, item, text(&deleted["deletion_receipt"]["receipt_id"]));
        let named = |list: &Value| -> BTreeSet<String> {
            list.as_array().into_iter().flatten().map(|did| text(did).to_owned()).collect()
        };
        assert_eq!(named(&deleted["cascade_report"]["told"]), told, "who was shown {item}: {deleted}");
        let receipt = &deleted["deletion_receipt"]["scope"]["subprocessors_propagated_to"];
        assert_eq!(named(receipt), told, "{deleted}");
    }

    pub(super) async fn lock(&self, by: usize) -> Value {
        self.world(by).owner("POST", "/oap/owner/lockdown", Some(&json!({}))).await.ok()
    }

    pub(super) async fn locked(&mut self, by: usize, locked: &Value) {
        self.houses[by].renew(text(&locked["trust_token"])).await;
        self.model.lock(by);
    }

    pub(super) async fn lift(&mut self, by: usize) {
        let answer = self.post(by, "lockdown/lift", &json!({})).await;
        if self.model.houses[by].locked {
            answer.ok();
            self.model.houses[by].locked = false;
        } else {
            answer.refused(409, "conflict");
        }
    }

    pub(super) async fn send(&self, by: usize) {
        self.wire.acts(by);
        Letters(&self.world(by).gateway).send_due().await.unwrap();
    }

    pub(super) fn wait(&mut self, pause: Duration) {
        if self.waited + pause > LONGEST {
            return;
        }
        self.waited += pause;
        self.goes_on(pause);
    }

    pub(super) fn goes_on(&mut self, pause: Duration) {
        self.model.now = self.model.now.plus(pause);
        self.wire.goes_on(self.model.now);
        for house in &self.houses {
            house.world().clock.advance(pause);
        }
    }

    async fn kill(&mut self, who: usize) {
        self.houses[who].kill(who, &self.wire, self.model.now).await;
    }
}

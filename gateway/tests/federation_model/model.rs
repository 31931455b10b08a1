//! What three gateways are to do, after docs/protocol.md 13 and 14 and docs/federation-notices.md: small, and apart from the program. It hears
//! what the owners did and what the network saw, and says how every gateway has to stand then.

use super::wire::{HOUSES, SeenLetter, SeenQuery};
use oap_identity::Timestamp;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

pub const DAY: Duration = Duration::from_secs(86_400);
/// How long a request waits for an answer, and a letter is tried.
pub const MONTH: Duration = Duration::from_secs(30 * 86_400);
/// How long a letter is remembered after its end.
const SKEW: Duration = Duration::from_secs(300);
/// The grantee that is a key, and has no gateway.
pub const KEY: usize = HOUSES;

/// Where a request stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Standing {
    Pending,
    Approved,
    Declined,
    Withdrawn,
    Expired,
}

impl Standing {
    pub const fn text(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Approved => "approved",
            Self::Declined => "declined",
            Self::Withdrawn => "withdrawn",
            Self::Expired => "expired",
        }
    }

    fn named(text: &str) -> Self {
        let all = [Self::Pending, Self::Approved, Self::Declined, Self::Withdrawn, Self::Expired];
        all.into_iter().find(|standing| standing.text() == text).expect("a state")
    }
}

/// What somebody asked another.
#[derive(Debug, Clone)]
pub struct Asked {
    pub to: usize,
    pub ask: Value,
    pub at: Timestamp,
    pub state: Standing,
    pub grant: Option<String>,
}

/// The same, where it arrived.
#[derive(Debug, Clone)]
pub struct Task {
    pub from: usize,
    pub names: Vec<String>,
    pub ask: Value,
    pub at: Timestamp,
    pub state: Standing,
    pub over: Option<Timestamp>,
    /// The grant that answers it, by its hash.
    pub grant: Option<String>,
}

/// A grant in a wallet.
#[derive(Debug, Clone, Default)]
pub struct Held {
    pub revoked: bool,
    pub answers: u64,
}

/// A grant that was signed.
#[derive(Debug, Clone)]
pub struct Granted {
    pub id: String,
    pub from: usize,
    pub to: usize,
    pub ends: Timestamp,
    pub most: usize,
    pub revoked: bool,
    /// The items that left under it.
    pub shown: BTreeSet<String>,
}

/// What became of telling a grantee of a deletion.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Told {
    Waiting,
    /// By the receipt of this id.
    Confirmed(String),
    Refused,
    Unreachable,
    Unprovable,
}

impl Told {
    pub const fn text(&self) -> &'static str {
        match self {
            Self::Waiting => "waiting",
            Self::Confirmed(_) => "confirmed",
            Self::Refused => "refused",
            Self::Unreachable => "unreachable",
            Self::Unprovable => "unprovable",
        }
    }
}

#[derive(Debug, Clone)]
pub struct Deletion {
    pub by: usize,
    pub item: String,
    pub at: Timestamp,
    pub told: BTreeMap<usize, Told>,
}

/// A letter that was heard: until when it is remembered, and what was said.
type Heard = (Timestamp, Value);

#[derive(Debug, Clone, Default)]
pub struct House {
    pub did: String,
    pub locked: bool,
    pub items: BTreeSet<String>,
    pub asked: BTreeMap<String, Asked>,
    pub tasks: Vec<Task>,
    pub wallet: BTreeMap<String, Held>,
    /// What it signed to notices of deletions, by granter and body.
    pub confirmed: BTreeMap<(usize, String), Value>,
    /// The receipts of its answers.
    pub answers: BTreeSet<String>,
    heard: BTreeMap<(usize, String), Heard>,
}

/// Three gateways, and what they gave each other.
#[derive(Debug, Clone)]
pub struct Model {
    pub now: Timestamp,
    pub houses: [House; HOUSES],
    /// By hash.
    pub grants: BTreeMap<String, Granted>,
    /// By the id of the Deletion Receipt.
    pub deletions: BTreeMap<String, Deletion>,
}

pub fn time(value: &Value) -> Timestamp {
    value.as_str().unwrap_or_else(|| panic!("no time: {value}")).parse().unwrap()
}

pub fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_else(|| panic!("no text: {value}"))
}

/// Those of a list.
fn texts(value: &Value) -> BTreeSet<String> {
    value
        .as_array()
        .unwrap_or_else(|| panic!("no list: {value}"))
        .iter()
        .map(|t| text(t).to_owned())
        .collect()
}

/// Where a request that was made then stands now.
fn stands(state: Standing, ask: &Value, at: Timestamp, now: Timestamp) -> Standing {
    let until = time(&ask["expires_at"]).min(at.plus(MONTH));
    if state == Standing::Pending && until <= now { Standing::Expired } else { state }
}

impl Task {
    pub fn stands(&self, now: Timestamp) -> Standing {
        stands(self.state, &self.ask, self.at, now)
    }

    pub fn ends(&mut self, state: Standing, now: Timestamp) {
        (self.state, self.over) = (state, Some(now));
    }

    fn is_forgotten(&self, now: Timestamp) -> bool {
        let unanswered = matches!(self.stands(now), Standing::Expired | Standing::Withdrawn);
        let since = self.over.unwrap_or_else(|| time(&self.ask["expires_at"]).min(self.at.plus(MONTH)));
        since.plus(if unanswered { DAY } else { 3 * MONTH }) <= now
    }
}

impl Asked {
    pub fn stands(&self, now: Timestamp) -> Standing {
        stands(self.state, &self.ask, self.at, now)
    }
}

/// What a letter is to come to: outcome and reason.
type Expected = (&'static str, Option<&'static str>);

const TAKEN: Expected = ("taken", None);

const fn refused(reason: &'static str) -> Expected {
    ("refused", Some(reason))
}

impl Model {
    pub fn new(dids: &[String; HOUSES], now: Timestamp) -> Self {
        let houses = std::array::from_fn(|n| House { did: dids[n].clone(), ..House::default() });
        Self { now, houses, grants: BTreeMap::new(), deletions: BTreeMap::new() }
    }

    pub fn number(&self, did: &Value) -> usize {
        let found = self.houses.iter().position(|house| *did == house.did.as_str());
        found.unwrap_or_else(|| panic!("nobody's DID: {did}"))
    }

    /// The grants that somebody may read under, as far as they know.
    pub fn live(&self, who: usize) -> BTreeSet<String> {
        let wallet = self.houses[who].wallet.iter();
        let live = wallet.filter(|(hash, held)| !held.revoked && self.now < self.grants[*hash].ends);
        live.map(|(hash, _)| hash.clone()).collect()
    }

    /// Whether a granter answers under a grant.
    pub fn answers(&self, hash: &str) -> bool {
        let grant = &self.grants[hash];
        !grant.revoked && self.now < grant.ends && !self.houses[grant.from].locked
    }

    /// A gateway answered under a grant: it may, and shows nothing that is gone, nor more than it promised.
    pub fn query(&mut self, seen: &SeenQuery) -> (String, BTreeSet<String>) {
        let receipt = &seen.answer["receipt"];
        let hash = text(&receipt["policy_decisions"][0]["grant_hash"]).to_owned();
        assert!(self.grants.contains_key(&hash), "answered under a grant that nobody signed: {hash}");
        let items = seen.answer["items"].as_array().unwrap().iter();
        let items: BTreeSet<String> = items.map(|item| text(&item["item_id"]).to_owned()).collect();
        assert!(self.answers(&hash), "answered under a grant after it was revoked or had ended: {hash}");
        let grant = self.grants.get_mut(&hash).unwrap();
        assert_eq!((grant.from, grant.to), (seen.to, seen.from), "answered to another: {hash}");
        let granter = &mut self.houses[grant.from];
        let gone: Vec<&String> = items.difference(&granter.items).collect();
        assert!(gone.is_empty(), "showed what is not there, or not any more: {gone:?}");
        grant.shown.extend(items.iter().cloned());
        assert!(grant.shown.len() <= grant.most, "{} items of {} were shown", grant.shown.len(), grant.most);
        let id = text(&receipt["receipt_id"]).to_owned();
        assert!(granter.answers.insert(id), "two answers have one receipt");
        (hash, items)
    }

    /// A letter came to a gateway, which replied. `outbox` has the sender's letters by name and state; a sender whose disk ended may not have
    /// noted the reply.
    pub fn letter(&mut self, seen: &SeenLetter, outbox: &BTreeMap<String, String>, sender_failed: bool) {
        let SeenLetter { to, letter, reply, back, even } = seen;
        assert!(even, "what came twice was answered in two ways: {letter}");
        let from = self.number(&letter["from"]);
        assert_eq!(self.number(&letter["to"]), *to, "a letter came to another's gateway");
        self.is_meant(from, *to, letter);
        let Some(reply) = reply else { return };
        assert!(!self.houses[*to].locked, "a letter was taken during a lockdown: {letter}");
        let id = text(&letter["id"]).to_owned();
        let said = json!([reply["outcome"], reply["reason"], reply["access"], reply["deletion_receipt"]]);
        let heard = self.houses[*to].heard.get(&(from, id.clone()));
        if let Some((_, before)) = heard.filter(|(until, _)| *until > self.now) {
            assert_eq!(*before, said, "the same letter was answered otherwise: {letter}");
        } else {
            let expected = self.takes(from, *to, letter, reply);
            assert_eq!((text(&reply["outcome"]), reply["reason"].as_str()), expected, "{letter}: {reply}");
            let until = time(&letter["expires_at"]).plus(SKEW);
            self.houses[*to].heard.insert((from, id.clone()), (until, said));
        }
        if !back {
            return;
        }
        let stands = outbox.get(&id).map_or("forgotten", String::as_str);
        if sender_failed && stands == "waiting" {
            return;
        }
        let over = if reply["outcome"] == "taken" { "delivered" } else { "refused" };
        assert_eq!(stands, over, "a letter that was answered: {letter}: {reply}");
        self.settles(from, *to, letter, reply);
    }

    /// Whether the owner of a sender did what a letter tells.
    fn is_meant(&self, from: usize, to: usize, letter: &Value) {
        let body = &letter["body"];
        let asked = || {
            let asked = self.houses[from].asked.get(text(&body["request"]));
            asked.filter(|asked| asked.to == to).unwrap_or_else(|| panic!("nobody asked: {letter}"))
        };
        let answered = |state: Standing| {
            let tasks = self.houses[from].tasks.iter();
            let name = text(&body["request"]).to_owned();
            let mut tasks = tasks.filter(|task| task.from == to && task.names.contains(&name));
            tasks.find(|task| task.state == state).unwrap_or_else(|| panic!("no answer of hers: {letter}"))
        };
        match text(&letter["type"]) {
            "access_request" => {
                let asked = asked();
                assert_eq!(asked.ask, body["ask"], "something else was asked: {letter}");
                assert_ne!(asked.state, Standing::Withdrawn, "what was taken back is asked: {letter}");
            }
            "access_withdrawal" => assert_eq!(asked().state, Standing::Withdrawn, "{letter}"),
            "access_status" => {
                answered(Standing::Declined);
            }
            "grant_delivery" => {
                let (hash, grant) = self.grant_of(&body["grant"]);
                assert_eq!((grant.from, grant.to), (from, to), "{letter}");
                assert!(!grant.revoked, "a revoked grant is delivered: {letter}");
                assert_eq!(answered(Standing::Approved).grant.as_deref(), Some(hash), "{letter}");
            }
            "revocation_notice" => {
                for hash in texts(&body["grants"]) {
                    let grant = &self.grants[&hash];
                    assert!(grant.revoked && (grant.from, grant.to) == (from, to), "{letter}");
                }
            }
            "deletion_notice" => {
                let deletion = &self.deletions[text(&body["deletion"])];
                assert!(deletion.by == from && deletion.told.contains_key(&to), "{letter}");
                assert_eq!(texts(&body["items"]), BTreeSet::from([deletion.item.clone()]), "{letter}");
            }
            other => panic!("a letter of the type {other}"),
        }
    }

    fn grant_of(&self, document: &Value) -> (&str, &Granted) {
        let found = self.grants.iter().find(|(_, grant)| document["grant_id"] == grant.id.as_str());
        let (hash, grant) = found.unwrap_or_else(|| panic!("a grant that nobody signed: {document}"));
        (hash, grant)
    }

    /// The effect of a letter at its receiver; what is to be said to it.
    fn takes(&mut self, from: usize, to: usize, letter: &Value, reply: &Value) -> Expected {
        let (now, body) = (self.now, &letter["body"]);
        match text(&letter["type"]) {
            "access_request" => self.is_asked(from, to, body, &reply["access"]),
            "access_withdrawal" => {
                let name = text(&body["request"]).to_owned();
                let mut tasks = self.houses[to].tasks.iter_mut();
                let task = tasks.find(|task| task.from == from && task.names.contains(&name));
                if let Some(task) = task.filter(|task| task.stands(now) == Standing::Pending) {
                    if task.names.len() > 1 {
                        task.names.retain(|known| *known != name);
                    } else {
                        task.ends(Standing::Withdrawn, now);
                    }
                }
                TAKEN
            }
            "access_status" => {
                let asked = self.houses[to].asked.get_mut(text(&body["request"]));
                let Some(asked) = asked.filter(|asked| asked.to == from) else { return refused("not_asked") };
                if asked.state == Standing::Pending {
                    asked.state = Standing::Declined;
                }
                TAKEN
            }
            "grant_delivery" => {
                let hash = self.grant_of(&body["grant"]).0.to_owned();
                let house = &mut self.houses[to];
                let asked = house.asked.get_mut(text(&body["request"])).filter(|asked| asked.to == from);
                let is_there = house.wallet.contains_key(&hash);
                match asked {
                    Some(asked) if asked.state == Standing::Pending => {
                        (asked.state, asked.grant) = (Standing::Approved, Some(hash.clone()));
                        house.wallet.entry(hash).or_default();
                        TAKEN
                    }
                    Some(asked) if asked.grant.as_ref() == Some(&hash) => TAKEN,
                    _ if is_there => TAKEN,
                    _ => refused("not_asked"),
                }
            }
            "revocation_notice" => {
                let named = texts(&body["grants"]);
                let wallet = self.houses[to].wallet.iter_mut();
                let mut held = wallet.filter(|(hash, _)| named.contains(*hash)).peekable();
                let is_known = held.peek().is_some();
                held.for_each(|(_, held)| held.revoked = true);
                if is_known { TAKEN } else { refused("unknown") }
            }
            _ => self.is_told(from, to, body, &reply["deletion_receipt"]),
        }
    }

    fn is_asked(&mut self, from: usize, to: usize, body: &Value, access: &Value) -> Expected {
        let (now, ask, name) = (self.now, &body["ask"], text(&body["request"]).to_owned());
        let tasks = &self.houses[to].tasks;
        let known = tasks.iter().find(|task| task.from == from && task.names.contains(&name));
        if let Some(task) = known {
            let grant = task.grant.as_ref().filter(|hash| !self.grants[*hash].revoked);
            assert_eq!(access["state"], task.stands(now).text(), "{access}");
            assert_eq!(
                access["grant"]["grant_id"].as_str(),
                grant.map(|hash| self.grants[hash].id.as_str()),
                "{access}"
            );
            return TAKEN;
        }
        if time(&ask["expires_at"]) <= now {
            return refused("over");
        }
        assert_eq!(access["state"], "pending", "{access}");
        let mut tasks = self.houses[to].tasks.iter_mut();
        let same = tasks.find(|t| t.from == from && t.ask == *ask && t.stands(now) == Standing::Pending);
        if let Some(task) = same {
            task.names.push(name);
        } else {
            let (ask, names, state) = (ask.clone(), vec![name], Standing::Pending);
            self.houses[to].tasks.push(Task { from, names, ask, at: now, state, over: None, grant: None });
        }
        TAKEN
    }

    /// A deletion is confirmed once, whoever asks again; by nobody who was given nothing.
    fn is_told(&mut self, from: usize, to: usize, body: &Value, receipt: &Value) -> Expected {
        let key = (from, body.to_string());
        if let Some(before) = self.houses[to].confirmed.get(&key) {
            assert_eq!(before, receipt, "a deletion was confirmed twice");
            return TAKEN;
        }
        let has_granted = self.houses[to].wallet.keys().any(|hash| self.grants[hash].from == from);
        if !has_granted {
            return refused("unknown");
        }
        assert_eq!(texts(&receipt["scope"]["cascade"]["not_found"]), texts(&body["items"]), "{receipt}");
        assert_eq!(receipt["principal_did"], self.houses[to].did.as_str(), "{receipt}");
        self.houses[to].confirmed.insert(key, receipt.clone());
        TAKEN
    }

    /// What a reply means for the sender of a letter.
    fn settles(&mut self, from: usize, to: usize, letter: &Value, reply: &Value) {
        let body = &letter["body"];
        match text(&letter["type"]) {
            "access_request" => self.is_answered(from, text(&body["request"]), reply),
            "deletion_notice" => {
                let receipt = &reply["deletion_receipt"]["receipt_id"];
                let told = match reply["outcome"].as_str() {
                    Some("taken") => Told::Confirmed(text(receipt).to_owned()),
                    _ => Told::Refused,
                };
                self.deletions.get_mut(text(&body["deletion"])).unwrap().told.insert(to, told);
            }
            _ => {}
        }
    }

    fn is_answered(&mut self, who: usize, request: &str, reply: &Value) {
        let access = &reply["access"];
        let hash = access["grant"].as_object().map(|_| self.grant_of(&access["grant"]).0.to_owned());
        let house = &mut self.houses[who];
        let asked = house.asked.get_mut(request).unwrap();
        if asked.state != Standing::Pending {
            return;
        }
        let state = match (reply["outcome"].as_str(), reply["reason"].as_str()) {
            (Some("taken"), _) => Standing::named(text(&access["state"])),
            (_, Some("over")) => Standing::Expired,
            _ => Standing::Declined,
        };
        match (state, hash) {
            (Standing::Approved, Some(hash)) => {
                (asked.state, asked.grant) = (state, Some(hash.clone()));
                house.wallet.entry(hash).or_default();
            }
            (Standing::Declined | Standing::Expired, _) => asked.state = state,
            // Of a grant that was revoked before it came nobody hears.
            _ => {}
        }
    }

    /// What an owner's sweep forgets.
    pub fn sweep(&mut self, who: usize) {
        let now = self.now;
        self.houses[who].tasks.retain(|task| !task.is_forgotten(now));
    }

    pub fn revoke(&mut self, hash: &str) {
        self.grants.get_mut(hash).unwrap().revoked = true;
    }

    pub fn lock(&mut self, who: usize) {
        self.houses[who].locked = true;
        self.grants.values_mut().filter(|grant| grant.from == who).for_each(|grant| grant.revoked = true);
    }

    /// An item is deleted; who is told.
    pub fn delete(&mut self, by: usize, item: &str, id: &str) -> BTreeSet<String> {
        self.houses[by].items.remove(item);
        let shown = self.grants.values().filter(|grant| grant.from == by && grant.shown.contains(item));
        let told: BTreeMap<usize, Told> = shown
            .map(|grant| (grant.to, if grant.to == KEY { Told::Unprovable } else { Told::Waiting }))
            .collect();
        let houses = told.keys().filter(|to| **to != KEY).map(|to| self.houses[*to].did.clone()).collect();
        let deletion = Deletion { by, item: item.to_owned(), at: self.now, told };
        assert!(self.deletions.insert(id.to_owned(), deletion).is_none(), "two deletions have one name");
        houses
    }
}

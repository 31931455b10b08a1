//! *What an answer rests on is read again in the transaction that records it*: random interleavings of every pair of
//! operations. A scheduler, seeded, chooses which request goes on and when the store's writer does. Afterwards a model
//! walks the receipts in the order in which they were committed: each must have been right where it stands, and what
//! was answered must be what its receipt says.
//!
//! `OAP_HISTORIES` sets how many histories are run, `OAP_HISTORY_SEED` where they begin. The seed gives the scheduler's choices; threads of
//! the runtime may still be quicker or slower, so that a finding may need a few runs of its seed.

use crate::common::*;
use oap_gateway::Error;
use oap_gateway::service::conformance::AttestRequest;
use oap_gateway::service::deletion::DeleteRequest;
use oap_gateway::service::export::{PageRequest, Part, Selection};
use oap_gateway::service::grants::GrantDraft;
use oap_gateway::service::holds::{HoldReason, HoldRequest};
use oap_gateway::service::import::{Record, RecordChunk};
use oap_gateway::service::{
    Attestations, Audit, Budgets, Deletions, Exports, Gates, Grants, Imports, Items, Keys,
};
use oap_gateway::state::owner::{Owner, mark::Admin};
use oap_grants::grant::UnverifiedGrant;
use oap_identity::signed::sign_document;
use oap_identity::{GrantId, Hash, ItemId, Signer, Timestamp};
use oap_memory::chain::Event;
use oap_memory::evidence;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

/// Small numbers from a seed.
pub struct Dice(pub u64);

impl Dice {
    pub fn roll(&mut self, sides: usize) -> usize {
        // splitmix64
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) % sides as u64) as usize
    }
}

/// What can happen at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Op {
    QueryRoot,
    QueryChild,
    QueryOther,
    Page,
    ExportRoot,
    ExchangeRoot,
    ExchangeChild,
    ExchangeSecond,
    GrantState,
    Vector,
    Capture,
    CaptureContact,
    Correct,
    RelabelOut,
    RelabelIn,
    Retract,
    Restore,
    Confirm,
    Reseal,
    Delete,
    DeleteLabel,
    Hold,
    Sweep,
    Import,
    Revoke,
    RevokeChild,
    Issue,
    Rotate,
    RevokeKey,
    Consent,
    Withdraw,
    Refill,
    Preview,
    Status,
    SetContext,
    RemoveContext,
    Attest,
    AcceptClock,
}

const OPS: [Op; 38] = [
    Op::QueryRoot,
    Op::QueryChild,
    Op::QueryOther,
    Op::Page,
    Op::ExportRoot,
    Op::ExchangeRoot,
    Op::ExchangeChild,
    Op::ExchangeSecond,
    Op::GrantState,
    Op::Vector,
    Op::Capture,
    Op::CaptureContact,
    Op::Correct,
    Op::RelabelOut,
    Op::RelabelIn,
    Op::Retract,
    Op::Restore,
    Op::Confirm,
    Op::Reseal,
    Op::Delete,
    Op::DeleteLabel,
    Op::Hold,
    Op::Sweep,
    Op::Import,
    Op::Revoke,
    Op::RevokeChild,
    Op::Issue,
    Op::Rotate,
    Op::RevokeKey,
    Op::Consent,
    Op::Withdraw,
    Op::Refill,
    Op::Preview,
    Op::Status,
    Op::SetContext,
    Op::RemoveContext,
    Op::Attest,
    Op::AcceptClock,
];

/// What came of an operation.
enum Done {
    /// To a grantee or a stranger.
    Answered(Answer),
    /// To the owner: what was written, where it says more than that it was.
    Owner(Result<Value, Error>),
}

type Running<'a> = Pin<Box<dyn Future<Output = Done> + 'a>>;

/// Grants that are in force when a history begins, and what their grantees hold.
struct Stage {
    root: Value,
    child: Value,
    second: Value,
    other: Value,
    tokens: [String; 3],
    items: Vec<String>,
    cursor: Option<String>,
}

fn child_of(parent: &Value, delegator: &Signer, grantee: &Signer, id: GrantId) -> Value {
    let mut child = parent.clone();
    let members = child.as_object_mut().unwrap();
    for made in ["signature", "delegable", "status"] {
        members.remove(made);
    }
    child["grant_id"] = json!(id);
    child["grantee"] = json!(grantee.did());
    child["parent"] = json!(Hash::of_canonical(parent).unwrap());
    sign_document(&mut child, delegator).unwrap();
    child
}

struct Play {
    world: World,
    /// The owner, proved when the last history began.
    owner: Owner<Admin>,
    dice: Dice,
    /// Commitments of versions whose labels keep them out of every grant.
    out: BTreeSet<String>,
    /// What was answered with a receipt: the answer, and what was done.
    answers: Vec<(Op, Value)>,
    grants: BTreeMap<String, Value>,
    /// Keys that were compromised while in use, by number: a revocation put the next one into use.
    compromised: BTreeSet<u64>,
    issued: u64,
    /// How far the clock goes on with each step of the writer.
    step: Duration,
}

const MAX_ITEMS: u32 = 3;
const QUERIES: u64 = 4;
/// The context in which every answer needs the owner's consent.
fn asking() -> Value {
    json!({"ccc_version": "1.0", "scope_id": "personal", "professional_codes": ["bar:de"]})
}

/// The number of a key of `did#key-number`.
fn number_of(kid: &Value) -> u64 {
    kid.as_str().unwrap().rsplit('-').next().unwrap().parse().unwrap()
}

impl Play {
    async fn new(seed: u64) -> Self {
        let world = World::with(seed, oap_gateway::system::config::Config::default()).await;
        let play = Self {
            owner: world.proved().await,
            world,
            dice: Dice(seed),
            out: BTreeSet::new(),
            answers: Vec::new(),
            grants: BTreeMap::new(),
            compromised: BTreeSet::new(),
            issued: 0,
            step: Duration::from_millis(if seed.is_multiple_of(3) { 700 } else { 2 }),
        };
        if seed.is_multiple_of(4) {
            Gates(&play.world.gateway).set_context(&play.owner, asking()).await.unwrap();
        }
        play
    }

    /// Grants, tokens and items for the next history.
    async fn stage(&mut self) -> Stage {
        self.owner = self.world.proved().await;
        let owner = self.owner.clone();
        let world = &self.world;
        let texts =
            ["green tea in the morning", "coffee after lunch", "call Anna about the garden", "tea for two"];
        let items: Vec<Value> = texts
            .iter()
            .map(|text| {
                json!({
                    "kind": "fact", "content": {"text": text}, "labels": ["shared"],
                })
            })
            .collect();
        let written = Items(&world.gateway).capture(&owner, &items).await.unwrap();
        let items: Vec<String> = written.iter().map(|w| w.item_id.to_string()).collect();
        let mut draft = world.draft(&agent(2));
        draft["filter"] = json!({"labels_any": ["shared"]});
        draft["delegable"] = json!({"max_depth": 2});
        draft["max_items"] = json!(MAX_ITEMS);
        draft["operations"] = json!(["query", "export"]);
        draft["trust_level"] = json!(4);
        if self.issued.is_multiple_of(2) {
            draft["budget"] = json!({"queries": 1});
        }
        let root = self.issue(&draft).await;
        draft["grantee"] = json!(agent(5).did());
        draft["budget"] = json!({"queries": QUERIES});
        draft["max_items"] = json!(100);
        draft.as_object_mut().unwrap().remove("delegable");
        if self.step > Duration::from_millis(100) {
            // It ends while the history runs.
            draft["expires_at"] = json!(self.world.now().plus(Duration::from_secs(4)));
        }
        let other = self.issue(&draft).await;
        self.issued += 1;
        let id = |n: u64| GrantId::new(self.world.now(), &oap_identity::random::Seeded::new(n));
        let child = child_of(&root, &agent(2), &agent(3), id(self.issued * 2));
        let second = child_of(&root, &agent(2), &agent(4), id(self.issued * 2 + 1));
        for grant in [&child, &second] {
            self.grants.insert(Hash::of_canonical(grant).unwrap().to_string(), grant.clone());
        }
        if Gates(&self.world.gateway).context_list(&owner).unwrap().len() == 1 {
            for grant in [&root, &other] {
                let id = grant["grant_id"].as_str().unwrap().parse().unwrap();
                Gates(&self.world.gateway).consent(&owner, id, true).await.unwrap();
            }
        }
        let world = &self.world;
        let tokens = [
            world.token(&agent(2), &root).await,
            world.token(&agent(3), &child).await,
            world.token(&agent(5), &other).await,
        ];
        let first = world.query(&agent(5), &tokens[2], &json!({"max_results": 1})).await;
        let cursor = first.body["next_cursor"].as_str().map(str::to_owned);
        if first.status == 200 {
            self.answers.push((Op::QueryOther, first.body));
        }
        Stage { root, child, second, other, tokens, items, cursor }
    }

    async fn issue(&mut self, draft: &Value) -> Value {
        let draft = serde_json::from_value(draft.clone()).unwrap();
        let grant = Grants(&self.world.gateway).issue(&self.owner, draft).await.unwrap();
        self.grants.insert(grant.hash().to_string(), grant.document().clone());
        grant.document().clone()
    }

    /// One history: some operations at once, in an order that the dice give.
    fn history(&mut self, runtime: &tokio::runtime::Runtime, ops: &[Op]) {
        let stage = runtime.block_on(self.stage());
        let mut dice = Dice(self.dice.roll(usize::MAX) as u64);
        // Often the same item.
        let picks: Vec<usize> = ops.iter().map(|_| dice.roll(stage.items.len()) / 2).collect();
        let done = {
            let running: Vec<Running> = ops
                .iter()
                .zip(&picks)
                .map(|(op, pick)| start(&self.world, &self.owner, &stage, *op, *pick))
                .collect();
            schedule(&self.world, &mut dice, running, self.step)
        };
        for (op, done) in ops.iter().zip(done) {
            self.note(*op, done);
        }
    }

    /// What may be answered at all, and what the model needs of it.
    fn note(&mut self, op: Op, done: Done) {
        match done {
            Done::Answered(answer) => {
                let status = answer.status.as_u16();
                let known = match op {
                    Op::GrantState | Op::Vector => matches!(status, 200 | 401 | 403 | 404),
                    Op::ExchangeRoot | Op::ExchangeChild | Op::ExchangeSecond => matches!(status, 200 | 403),
                    _ => matches!(status, 200 | 401 | 403 | 429),
                };
                assert!(known, "{op:?}: {status} {}", answer.body);
                if status == 200 && answer.body.get("receipt").is_some() {
                    self.answers.push((op, answer.body));
                }
            }
            Done::Owner(Ok(written)) => {
                if op == Op::RelabelOut {
                    self.out.insert(written["commitment"].as_str().unwrap().to_owned());
                }
                if op == Op::RevokeKey {
                    let keys = written["keys"].as_array().unwrap();
                    let current = keys.iter().find(|key| key["state"] == "current").unwrap();
                    let made_way = |key: &&Value| key["revoked_at"] == current["created_at"];
                    let number = |key: &Value| number_of(&key["kid"]);
                    self.compromised.extend(keys.iter().filter(made_way).map(number));
                }
                if op == Op::Issue {
                    self.grants.insert(Hash::of_canonical(&written).unwrap().to_string(), written);
                }
            }
            Done::Owner(Err(Error::NotFound | Error::NothingMatched | Error::Conflict(_))) => {}
            Done::Owner(Err(error)) => panic!("{op:?}: {error}"),
        }
    }

    /// Walks the receipts in the order of commits.
    fn check(&mut self) {
        let receipts = self.receipts();
        let mut model = Model {
            grants: &self.grants,
            out: &self.out,
            items: BTreeMap::new(),
            held: BTreeSet::new(),
            accepted: BTreeSet::new(),
            revoked: BTreeSet::new(),
            consented: BTreeSet::new(),
            asks_for_consent: false,
            disclosed: BTreeMap::new(),
            answers: BTreeMap::new(),
            compromised: &self.compromised,
            signed_by: 0,
        };
        for receipt in &receipts {
            model.take(receipt);
        }
        let ids: BTreeMap<&str, &Value> =
            receipts.iter().map(|r| (r["receipt_id"].as_str().unwrap(), r)).collect();
        let known = self.world.document();
        for (op, answer) in &std::mem::take(&mut self.answers) {
            let id = answer["receipt"]["receipt_id"].as_str().unwrap();
            let stored = ids.get(id).unwrap_or_else(|| panic!("{op:?}: an answer without a stored receipt"));
            assert_eq!(stored["provenance_tags_out"], answer["receipt"]["provenance_tags_out"], "{op:?}");
            if let Err(error) = evidence::answer(answer, &known) {
                panic!("{op:?}: an answer that cannot be verified: {error}");
            }
        }
    }

    /// That every event of an item that has a receipt has its link, and the other way round.
    fn check_links(&self) {
        let mut events: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        for receipt in self.receipts() {
            let action = receipt["action_id"].as_str().unwrap_or_default();
            let event = action.strip_prefix("memory.").and_then(|event| event.parse::<Event>().ok());
            if event.is_some_and(|event| event != Event::Import) {
                let (item, _) = receipt["provenance_tags_out"][0].as_str().unwrap().split_once('@').unwrap();
                let id = receipt["receipt_id"].as_str().unwrap().rsplit([':', '_']).next().unwrap();
                assert!(events.entry(item.to_owned()).or_default().insert(id.to_owned()));
            }
        }
        for (item, receipts) in events {
            let shown = Items(&self.world.gateway).item(&self.owner, item.parse().unwrap()).unwrap();
            let named: BTreeSet<String> = shown
                .chain
                .iter()
                .map(|link| link.whole()["receipt"].as_str().unwrap())
                .map(|receipt| receipt.rsplit([':', '_']).next().unwrap().to_owned())
                .collect();
            assert_eq!(named, receipts, "{item}: links and receipts differ");
        }
    }

    /// The receipts of the scope's chain, oldest first.
    fn receipts(&self) -> Vec<Value> {
        let mut receipts = Vec::new();
        let mut after = None;
        loop {
            let request = PageRequest { part: Part::Receipts, selection: Selection::default(), after };
            let page = Exports(&self.world.gateway).export_page(&self.owner, &request).unwrap();
            for line in page.lines.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
                let line: Value = serde_json::from_slice(line).unwrap();
                receipts.push(line["receipt"].clone());
            }
            after = page.head.next;
            if after.is_none() {
                return receipts;
            }
        }
    }
}

/// What the receipts say so far.
struct Model<'a> {
    grants: &'a BTreeMap<String, Value>,
    out: &'a BTreeSet<String>,
    /// The commitment in force of every item, and whether it is current.
    items: BTreeMap<String, (String, bool)>,
    held: BTreeSet<String>,
    accepted: BTreeSet<String>,
    revoked: BTreeSet<String>,
    consented: BTreeSet<String>,
    asks_for_consent: bool,
    disclosed: BTreeMap<String, BTreeSet<String>>,
    answers: BTreeMap<String, u64>,
    compromised: &'a BTreeSet<u64>,
    /// The number of the key that signed the last receipt.
    signed_by: u64,
}

impl Model<'_> {
    fn chain(&self, hash: &str) -> Vec<String> {
        let mut chain = vec![hash.to_owned()];
        while let Some(parent) = self.grants.get(chain.last().unwrap()).and_then(|g| g["parent"].as_str()) {
            chain.push(parent.to_owned());
        }
        chain
    }

    fn take(&mut self, receipt: &Value) {
        let action = receipt["action_id"].as_str().unwrap_or_default();
        let decision = &receipt["policy_decisions"][0];
        if action == "memory.boot" {
            // Another chain begins.
            self.signed_by = 0;
        }
        // Within a group a head is unsigned; what follows it is not.
        let is_open = action == "memory.chain_head" && receipt["signatures"] == json!([]);
        let signed_by = if is_open { self.signed_by } else { number_of(&receipt["signatures"][0]["by"]) };
        assert!(signed_by >= self.signed_by, "{action} was signed by a key after it was replaced");
        self.signed_by = signed_by;
        let allowed = decision["outcome"] == "allow";
        let tags: Vec<(String, String)> = receipt["provenance_tags_out"]
            .as_array()
            .map(Vec::as_slice)
            .unwrap_or_default()
            .iter()
            .map(|tag| tag.as_str().unwrap().split_once('@').unwrap())
            .map(|(item, commitment)| (item.to_owned(), commitment.to_owned()))
            .collect();
        let grant = decision["grant_hash"].as_str().unwrap_or_default().to_owned();
        match action {
            "memory.capture" | "memory.correct" | "memory.relabel" | "memory.reseal" | "memory.confirm"
            | "memory.retract" | "memory.restore" | "memory.erase" | "memory.expire" => {
                let (item, commitment) = tags[0].clone();
                let current = match action {
                    "memory.retract" => false,
                    "memory.erase" | "memory.expire" => {
                        assert!(!self.held.contains(&item), "{item} was erased while it was held");
                        assert!(self.items.remove(&item).is_some(), "{item} was erased twice");
                        return;
                    }
                    "memory.capture" => {
                        assert!(!self.items.contains_key(&item), "{item} was captured twice");
                        true
                    }
                    _ => {
                        let before = self.items.get(&item);
                        let (_, current) =
                            before.unwrap_or_else(|| panic!("{action} of {item}, which is gone"));
                        assert!(
                            *current || action == "memory.restore",
                            "{action} of {item}, which is not current"
                        );
                        true
                    }
                };
                self.items.insert(item, (commitment, current));
            }
            "memory.hold" => {
                self.held.insert(decision["item_id"].as_str().unwrap().to_owned());
            }
            "memory.ccc" => self.asks_for_consent = true,
            "memory.ccc_remove" => self.asks_for_consent = false,
            "memory.consent" | "memory.consent_withdraw" => {
                let about = receipt["output_hash"].as_str().unwrap().to_owned();
                if action == "memory.consent" {
                    self.consented.insert(about);
                } else {
                    self.consented.remove(&about);
                }
            }
            "memory.grant" => assert!(self.accepted.insert(grant), "issued twice"),
            "memory.delegate" if allowed => {
                for above in &self.chain(&grant)[1..] {
                    assert!(!self.revoked.contains(above), "delegated from a revoked grant");
                }
                assert!(self.accepted.insert(grant), "a delegated grant was accepted twice");
            }
            "memory.revoke" => assert!(self.revoked.insert(grant), "revoked twice"),
            "memory.exchange" if allowed => self.in_force(&grant, receipt, "a token was made for"),
            "memory.query" | "memory.export" if allowed && decision.get("consumed_grant_id").is_some() => {
                self.in_force(&grant, receipt, "answered under");
                self.disclose(&grant, &tags);
            }
            _ => {}
        }
    }

    fn in_force(&self, grant: &str, receipt: &Value, what: &str) {
        for grant in self.chain(grant) {
            let document = &self.grants[&grant];
            let at = |value: &Value| value.as_str().unwrap().parse::<Timestamp>().unwrap();
            assert!(at(&receipt["timestamp"]) < at(&document["expires_at"]), "{what} a grant that had ended");
            if document.get("parent").is_none() {
                let kid = UnverifiedGrant::parse(document.clone()).unwrap().kid().unwrap();
                let key = number_of(&json!(kid));
                let is_void = self.compromised.contains(&key) && self.signed_by > key;
                assert!(!is_void, "{what} a grant after the key that signed it was revoked");
            }
            assert!(self.accepted.contains(&grant), "{what} a grant that is not here: {grant}");
            assert!(!self.revoked.contains(&grant), "{what} a grant after it, or one above, was revoked");
        }
    }

    fn disclose(&mut self, grant: &str, tags: &[(String, String)]) {
        for (item, commitment) in tags {
            let now = self.items.get(item);
            assert_eq!(now, Some(&(commitment.clone(), true)), "{item} was shown as it was not");
            assert!(!self.out.contains(commitment), "{item} was shown after it was relabelled");
            assert!(
                !self.asks_for_consent || self.consented.contains(grant),
                "{item} was shown without the consent that its context asks for"
            );
        }
        for grant in self.chain(grant) {
            let shown = self.disclosed.entry(grant.clone()).or_default();
            shown.extend(tags.iter().map(|(item, _)| item.clone()));
            let most = self.grants[&grant]["max_items"].as_u64().unwrap();
            assert!(shown.len() as u64 <= most, "{} items were shown of {most}", shown.len());
            let answers = self.answers.entry(grant.clone()).or_default();
            *answers += 1;
            let budget = self.grants[&grant]["budget"]["queries"].as_u64();
            assert!(budget.is_none_or(|most| *answers <= most), "{answers} answers of {budget:?}");
        }
    }
}

fn start<'a>(
    world: &'a World,
    proved: &'a Owner<Admin>,
    stage: &'a Stage,
    op: Op,
    pick: usize,
) -> Running<'a> {
    let gateway = &world.gateway;
    let item = || stage.items[pick].clone();
    let id = move || stage.items[pick].parse::<ItemId>().unwrap();
    let grant_id = |grant: &Value| grant["grant_id"].as_str().unwrap().parse::<GrantId>().unwrap();
    let query = move |who: u8, token: &'a str, query: Value| -> Running<'a> {
        Box::pin(async move { Done::Answered(world.query(&agent(who), token, &query).await) })
    };
    // Asked again with another credential where a change of keys ended the one before.
    macro_rules! owner {
        (|$owner:ident| $work:expr) => {
            Box::pin(async move {
                let mut proved = proved.clone();
                loop {
                    let $owner = &proved;
                    match $work.await {
                        Err(Error::Owner(_)) => proved = world.proved().await,
                        done => {
                            break Done::Owner(done.map(|value| serde_json::to_value(value).unwrap()));
                        }
                    }
                }
            })
        };
    }
    let mark = |event| -> Running<'a> { owner!(|owner| Items(gateway).mark(owner, id(), event)) };
    let correct = |changes: Value, event| -> Running<'a> {
        owner!(|owner| Items(gateway).correct(owner, id(), changes.clone(), None, event))
    };
    match op {
        Op::SetContext => owner!(|owner| Gates(gateway).set_context(owner, asking())),
        Op::RemoveContext => {
            owner!(|owner| Gates(gateway).remove_context(owner, "personal".parse().unwrap()))
        }
        Op::Attest => {
            let request: AttestRequest = serde_json::from_value(json!({"levels": ["L0"]})).unwrap();
            owner!(|owner| Attestations(gateway).attest(owner, request.clone()))
        }
        Op::AcceptClock => owner!(|owner| gateway.accept_clock(owner)),
        Op::QueryRoot => query(2, &stage.tokens[0], json!({"query": "tea"})),
        Op::QueryChild => query(3, &stage.tokens[1], json!({"query": "coffee garden"})),
        Op::QueryOther => query(5, &stage.tokens[2], json!({})),
        Op::Page => query(5, &stage.tokens[2], json!({"max_results": 1, "cursor": stage.cursor})),
        Op::ExportRoot => Box::pin(async move {
            let answer = world
                .as_agent(&agent(2), &stage.tokens[0], "POST", "/oap/memory/export", Some(&json!({})))
                .await;
            Done::Answered(answer)
        }),
        Op::ExchangeRoot => {
            Box::pin(async move { Done::Answered(world.exchange(&agent(2), &stage.root).await) })
        }
        Op::ExchangeChild => {
            Box::pin(async move { Done::Answered(world.exchange(&agent(3), &stage.child).await) })
        }
        Op::ExchangeSecond => {
            Box::pin(async move { Done::Answered(world.exchange(&agent(4), &stage.second).await) })
        }
        Op::GrantState => {
            let path = format!("/oap/memory/grant/{}", stage.root["grant_id"].as_str().unwrap());
            Box::pin(async move { Done::Answered(world.raw("GET", &path, &[], None).await) })
        }
        Op::Vector => {
            let path = format!("/oap/memory/vec/{}", item());
            Box::pin(async move {
                Done::Answered(world.as_agent(&agent(5), &stage.tokens[2], "GET", &path, None).await)
            })
        }
        Op::Capture => {
            let items = [note("tea with milk", &["shared"])];
            owner!(|owner| Items(gateway).capture(owner, &items))
        }
        Op::CaptureContact => {
            let items = [json!({
                "kind": "fact", "labels": ["people"],
                "content": {"structured": {
                    "entity_type": "oap.entity.contact", "names": {"given": "Anna", "family": "Schmidt"},
                }},
            })];
            owner!(|owner| Items(gateway).capture(owner, &items))
        }
        Op::Correct => correct(json!({"content": {"text": "green tea, now with lemon"}}), Event::Correct),
        Op::RelabelOut => correct(json!({"labels": ["kept"]}), Event::Relabel),
        Op::RelabelIn => correct(json!({"labels": ["shared", "again"]}), Event::Relabel),
        Op::Retract => mark(Event::Retract),
        Op::Restore => mark(Event::Restore),
        Op::Confirm => mark(Event::Confirm),
        Op::Reseal => owner!(|owner| Items(gateway).reseal(owner, id(), pick == 0, None)),
        Op::Delete => {
            let request = DeleteRequest { items: vec![id()], ..DeleteRequest::default() };
            owner!(|owner| Deletions(gateway).delete(owner, request.clone()))
        }
        Op::DeleteLabel => {
            let request = DeleteRequest { labels: vec!["again".into()], ..DeleteRequest::default() };
            owner!(|owner| Deletions(gateway).delete(owner, request.clone()))
        }
        Op::Hold => {
            let until = world.now().plus(Duration::from_secs(86_400));
            let request = HoldRequest { items: vec![id()], reason: HoldReason::LegalHold, until };
            owner!(|owner| Deletions(gateway).hold(owner, request.clone()))
        }
        Op::Sweep => {
            Box::pin(async move { Done::Owner(Deletions(gateway).sweep().await.map(|_| Value::Null)) })
        }
        Op::Import => {
            let text = format!("imported {pick}");
            let records =
                vec![Ok(Record { source: "test/1".into(), group: None, item: note(&text, &["shared"]) })];
            let chunk = RecordChunk { records, again: Vec::new(), again_all: false, dry_run: false };
            owner!(|owner| Imports(gateway).import_records(owner, chunk.clone()))
        }
        Op::Revoke => {
            let id = grant_id(&stage.root);
            owner!(|owner| Grants(gateway).revoke(owner, id))
        }
        Op::RevokeChild => {
            let id = grant_id(&stage.child);
            owner!(|owner| Grants(gateway).revoke(owner, id))
        }
        Op::Issue => {
            let draft: GrantDraft = serde_json::from_value(world.draft(&agent(7))).unwrap();
            owner!(|owner| async {
                Grants(gateway).issue(owner, draft.clone()).await.map(|signed| signed.document().clone())
            })
        }
        Op::Rotate => owner!(|owner| Keys(gateway).rotate_keys(owner)),
        Op::RevokeKey => {
            let fragment = gateway.keys().current().kid().fragment().to_owned();
            owner!(|owner| Keys(gateway).revoke_key(owner, fragment.clone(), None))
        }
        Op::Consent | Op::Withdraw => {
            let id = grant_id(&stage.other);
            owner!(|owner| Gates(gateway).consent(owner, id, op == Op::Consent))
        }
        Op::Refill => {
            let refill =
                oap_gateway::service::budget::Refill { grantee: agent(2).did().clone(), grant: None };
            owner!(|owner| Budgets(gateway).refill(owner, refill.clone()))
        }
        Op::Preview => {
            let draft: GrantDraft = serde_json::from_value(world.draft(&agent(7))).unwrap();
            owner!(|owner| async { Grants(gateway).preview(owner, draft.clone()).await.map(|_| Value::Null) })
        }
        Op::Status => {
            Box::pin(async move { Done::Answered(world.raw("GET", "/oap/memory/status", &[], None).await) })
        }
    }
}

/// Says that a request can go on.
struct Woken {
    flag: AtomicBool,
    clock: Arc<TestClock>,
}

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.flag.store(true, Ordering::SeqCst);
        self.clock.gate.happened();
    }
}

/// Runs requests at once. At each step the dice choose one that can go on, or the store's writer.
fn schedule(world: &World, dice: &mut Dice, mut running: Vec<Running>, step: Duration) -> Vec<Done> {
    let gate = &world.clock.gate;
    gate.close();
    let woken: Vec<Arc<Woken>> = running
        .iter()
        .map(|_| Arc::new(Woken { flag: AtomicBool::new(true), clock: world.clock.clone() }))
        .collect();
    let mut done: Vec<Option<Done>> = running.iter().map(|_| None).collect();
    while done.iter().any(Option::is_none) {
        let events = gate.events();
        let mut choices: Vec<Option<usize>> = (0..running.len())
            .filter(|n| done[*n].is_none() && woken[*n].flag.load(Ordering::SeqCst))
            .map(Some)
            .collect();
        if gate.waits() {
            choices.push(None);
        }
        if choices.is_empty() {
            assert!(gate.wait(events, Duration::from_secs(60)), "nothing goes on any more");
            continue;
        }
        match choices[dice.roll(choices.len())] {
            None => {
                world.clock.advance(step);
                gate.let_on();
            }
            Some(number) => {
                woken[number].flag.store(false, Ordering::SeqCst);
                let waker = Waker::from(woken[number].clone());
                let mut context = Context::from_waker(&waker);
                if let Poll::Ready(value) = running[number].as_mut().poll(&mut context) {
                    done[number] = Some(value);
                }
            }
        }
    }
    gate.open();
    done.into_iter().flatten().collect()
}

/// Histories of one world: beyond, its items and grants slow it down.
const PER_WORLD: usize = 8;

/// The histories of one world, from the one of this number on.
fn world_of_histories(runtime: &tokio::runtime::Runtime, first: usize) {
    let mut play = runtime.block_on(Play::new(first as u64 / PER_WORLD as u64));
    for number in first..first + PER_WORLD {
        // Every pair in turn, in both orders of starting; now and then with a third.
        let pair = number * 419 % (OPS.len() * OPS.len());
        let mut ops = vec![OPS[pair % OPS.len()], OPS[pair / OPS.len()]];
        if play.dice.roll(3) == 0 {
            ops.push(OPS[play.dice.roll(OPS.len())]);
        }
        play.history(runtime, &ops);
        let published = play.world.gateway.published().did.to_string();
        let key = play.world.gateway.keys().current().kid().to_string();
        assert!(published.contains(&key), "history {number}: {ops:?}: former keys are published");
        let checked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| play.check()));
        assert!(checked.is_ok(), "history {number}: {ops:?}");
    }
    assert!(!Audit(&play.world.gateway).verify_audit(&play.owner, &Default::default()).unwrap().is_empty());
    play.check_links();
}

#[test]
fn every_receipt_is_right_where_it_stands() {
    let number = |name: &str, otherwise: usize| {
        std::env::var(name).ok().and_then(|value| value.parse().ok()).unwrap_or(otherwise)
    };
    let (histories, first) = (number("OAP_HISTORIES", 400), number("OAP_HISTORY_SEED", 0));
    let left = Mutex::new((first..).step_by(PER_WORLD).take(histories.div_ceil(PER_WORLD)));
    // Worlds know nothing of each other.
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(|| {
                let mut runtime = tokio::runtime::Builder::new_multi_thread();
                let runtime = runtime.worker_threads(1).enable_all().build().unwrap();
                let _entered = runtime.enter();
                loop {
                    let Some(first) = left.lock().unwrap().next() else { break };
                    world_of_histories(&runtime, first);
                }
            });
        }
    });
}

//! What was answered so far: what `max_items`, budgets and cursors count.

use super::Model;
use super::grant::Grant;
use super::query::Query;
use super::rule::{Beside, Refusal, Rule};
use oap_identity::{Hash, Timestamp};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};

/// What an answer costs, in millionths of ε (protocol section 6).
const BASE: u64 = 10_000;
/// What each item adds that the grantee got before, in millionths of ε.
const AGAIN: u64 = 1_000;

/// What was disclosed so far, under which grant and to whom. The caller notes every answer, in the order in which they came.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Disclosed {
    /// By hash of the grant: the distinct items.
    items: BTreeMap<String, BTreeSet<String>>,
    /// By hash of the grant: queries, and millionths of ε.
    grants: BTreeMap<String, (u64, u64)>,
    /// By grantee: millionths of ε.
    grantees: BTreeMap<String, u64>,
    /// What a grantee may spend over all grants, as answers told it: at least so much, as somebody did.
    least: u64,
    /// And as a refusal told it: less than this. Nothing that is published says how much it is.
    below: Option<u64>,
    /// By cursor, as it came.
    pub(super) cursors: BTreeMap<String, Walk>,
    /// The receipts of answers and exchanges: their ids, and what is known of them.
    pub(super) receipts: Vec<Value>,
    /// The same of exports and vectors, whose ids are told to nobody.
    pub(super) unnamed: Vec<Value>,
}

/// What was answered up to a cursor.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Walk {
    pub grant: String,
    pub binding: String,
    /// The last item, and the capture time that it was shown with.
    pub last: (Timestamp, String),
    pub shown: BTreeSet<String>,
    /// What the view was at the first page.
    pub view: Hash,
    /// Whether `max_items` of a grant of the chain was reached before it. Where it is reached on the way, the view is another one (protocol section 0).
    pub full: bool,
}

impl Disclosed {
    /// Notes the answer to a query under a grant, as it came. The model is as it was when it was answered.
    pub fn answered(&mut self, model: &Model, grant_id: &str, query: &Value, answer: &Value) {
        let chain = model.chain(grant_id);
        let items = answer["items"].as_array().map(Vec::as_slice).unwrap_or_default();
        let Some(grant) = chain.first() else { return };
        let full = self.is_full(&chain);
        self.note(&chain, items);
        if answer["receipt"]["receipt_id"].is_string() {
            self.receipts.push(answer["receipt"].clone());
        }
        let at = super::item::time(&answer["receipt"]["timestamp"]).unwrap_or(Timestamp::from_millis(0));
        if let (Some(cursor), Some(last), Ok(query)) =
            (answer["next_cursor"].as_str(), items.last(), Query::read(query))
        {
            let before = query.cursor.as_ref().and_then(|cursor| self.cursors.get(cursor));
            let shown = items.iter().filter_map(id);
            let captured = super::item::time(&last["provenance"]["captured_at"]);
            let walk = Walk {
                grant: grant.hash.clone(),
                binding: query.binding(),
                last: (captured.unwrap_or(Timestamp::from_millis(0)), id(last).unwrap_or_default()),
                shown: before.iter().flat_map(|walk| walk.shown.clone()).chain(shown).collect(),
                view: before.map_or_else(|| model.fingerprint(&chain, at), |walk| walk.view),
                full: before.map_or(full, |walk| walk.full),
            };
            self.cursors.insert(cursor.to_owned(), walk);
        }
    }

    /// Whether `max_items` of a grant of a chain is reached: only what was disclosed comes back.
    pub(super) fn is_full(&self, chain: &[&Grant]) -> bool {
        chain.iter().any(|grant| self.under(grant).len() >= grant.max_items)
    }

    /// Notes the receipt that the exchange of a grant named.
    pub fn exchanged(&mut self, model: &Model, grant_id: &str, receipt_id: &str) {
        let mut receipt = known(&model.chain(grant_id), "memory.exchange");
        receipt["receipt_id"] = json!(receipt_id);
        self.receipts.push(receipt);
    }

    /// Notes the lines of an export under a grant, as they came.
    pub fn exported(&mut self, model: &Model, grant_id: &str, lines: &[Value]) {
        let chain = model.chain(grant_id);
        let items: Vec<Value> =
            lines.iter().filter(|line| line["type"] == "item").map(|line| line["item"].clone()).collect();
        self.note(&chain, &items);
        let mut receipt = known(&chain, "memory.export");
        receipt["output_hash"] = lines.last().map_or(Value::Null, |trailer| trailer["hash"].clone());
        // Without items it has no tags (bytes 6.1).
        if !items.is_empty() {
            receipt["provenance_tags_out"] = items.iter().map(tag).collect();
        }
        self.unnamed.push(receipt);
    }

    /// Notes the vector of an item that was given under a grant: it costs what an answer with that item does.
    pub fn given(&mut self, model: &Model, grant_id: &str, item_id: &str, vector: &[u8]) {
        let chain = model.chain(grant_id);
        self.note(&chain, &[json!({"item_id": item_id})]);
        let mut receipt = known(&chain, "memory.vector");
        receipt["output_hash"] = json!(Hash::of(vector));
        self.unnamed.push(receipt);
    }

    fn note(&mut self, chain: &[&Grant], items: &[Value]) {
        let ids: BTreeSet<String> = items.iter().filter_map(id).collect();
        let got = ids.iter().filter(|id| self.had(chain, id)).count();
        let cost = cost(got);
        for grant in chain {
            self.items.entry(grant.hash.clone()).or_default().extend(ids.iter().cloned());
            let spent = self.grants.entry(grant.hash.clone()).or_default();
            *spent = (spent.0 + 1, spent.1 + cost);
        }
        for grantee in chain.iter().map(|grant| grant.grantee.clone()).collect::<BTreeSet<_>>() {
            let account = self.grantees.entry(grantee).or_default();
            *account += cost;
            self.least = self.least.max(*account);
        }
    }

    /// Notes that an answer was refused because the account of a grantee is spent; whether that may be: it has spent something, and nobody was
    /// given more.
    pub fn account_spent(&mut self, model: &Model, grant_id: &str) -> bool {
        let chain = model.chain(grant_id);
        // What it asked for holds at most what it had before.
        let had = chain.first().map_or(0, |grant| self.under(grant).len());
        let accounts = chain.iter().filter_map(|grant| self.grantees.get(&grant.grantee));
        let Some(most) = accounts.max().map(|account| account + cost(had)) else { return false };
        if most <= self.least {
            return false;
        }
        self.below = Some(self.below.map_or(most, |below| below.min(most)));
        model.decided.note(Rule::Beside(Beside::AccountSpent));
        true
    }

    /// The distinct items that were disclosed under a grant.
    pub(super) fn under(&self, grant: &Grant) -> BTreeSet<String> {
        self.items.get(&grant.hash).cloned().unwrap_or_default()
    }

    /// Whether an item was disclosed before, under every grant of a chain.
    pub(super) fn had(&self, chain: &[&Grant], id: &str) -> bool {
        chain.iter().all(|grant| self.items.get(&grant.hash).is_some_and(|items| items.contains(id)))
    }

    /// What refuses an answer that holds so many items that were had before.
    pub(super) fn spent(&self, chain: &[&Grant], got: usize) -> Option<Refusal> {
        let cost = cost(got);
        for (above, grant) in chain.iter().enumerate() {
            let (queries, epsilon) = self.grants.get(&grant.hash).copied().unwrap_or_default();
            let refusal = |own: Refusal| if above == 0 { own } else { Refusal::BudgetAbove };
            if grant.queries.is_some_and(|most| queries >= most) {
                return Some(refusal(Refusal::BudgetQueries));
            }
            if grant.epsilon.is_some_and(|most| (epsilon + cost) as f64 > (most * 1_000_000.0).round()) {
                return Some(refusal(Refusal::BudgetEpsilon));
            }
            let account = self.grantees.get(&grant.grantee).copied().unwrap_or_default();
            if self.below.is_some_and(|below| account + cost >= below) {
                return Some(refusal(Refusal::BudgetEpsilon));
            }
        }
        None
    }
}

const fn cost(got: usize) -> u64 {
    BASE + AGAIN * got as u64
}

fn id(item: &Value) -> Option<String> {
    item["item_id"].as_str().map(str::to_owned)
}

/// How a receipt names an item that was shown: with the commitment in force.
pub(super) fn tag(item: &Value) -> Value {
    let links = item["integrity"]["chain"].as_array();
    let last = links.and_then(|chain| chain.last()).and_then(|link| link["commitment"].as_str());
    json!(format!("{}@{}", item["item_id"].as_str().unwrap_or_default(), last.unwrap_or_default()))
}

/// What is known of the receipt of something that was done under the first grant of a chain.
fn known(chain: &[&Grant], action: &str) -> Value {
    let (agent, id) = chain.first().map(|grant| (&grant.grantee, &grant.id)).unzip();
    json!({"action_id": action, "agent_did": agent, "policy_decisions": [{"consumed_grant_id": id}]})
}

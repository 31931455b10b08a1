//! The reference model: what a gateway must answer in any world, and which rule says so.
//!
//! It is written from `docs/protocol.md` and `docs/bytes.md`, apart from the product: of its rooms it uses `oap-identity` alone
//! (times, hashes, JSON). It is small and slow on purpose: it keeps all that the owner has done as plain data, and computes each answer anew.
//!
//! The model does not detect personal spans: the maker of the world says what it planted.
//!
//! ```
//! use oap_conformance::model::{Disclosed, Model};
//! use oap_conformance::world::Planted;
//! use serde_json::json;
//!
//! let manifest = json!({"belief_threshold": 0.5, "memory_exchange": {"max_grant_size_items": 1000}});
//! let mut model = Model::new("did:web:user.example".parse()?, &manifest, Vec::new());
//! let now = "2026-05-01T12:00:00Z".parse()?;
//! let draft = json!({"kind": "fact", "content": {"text": "Tea at ten"}, "labels": ["tea"]});
//! model.captured("mem_01KQHPHXG033Z5VBP3YV0FF0F3", &draft, now, &Planted::default());
//! model.granted(&json!({
//!     "grant_id": "mgr_01KQHPHZEGM1WM4B469VB76N6E", "granter": "did:web:user.example#personal", "grantee": "did:web:b.example",
//!     "purpose": "testing", "filter": {"labels_any": ["tea"]}, "max_items": 5, "trust_level": 1,
//!     "redaction_profile": "oap.profile.projection.memory.v1",
//!     "issued_at": "2026-05-01T12:00:00.000Z", "expires_at": "2026-05-31T12:00:00.000Z",
//! }));
//! let expected = model.query("mgr_01KQHPHZEGM1WM4B469VB76N6E", &json!({}), now, &Disclosed::default());
//! let shown = &expected.answer().ok_or("refused")?.items["mem_01KQHPHXG033Z5VBP3YV0FF0F3"];
//! assert_eq!(shown["/labels/0"], "tea");
//! assert!(!shown.contains_key("/content/text"), "level 1 shows no text");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod answer;
mod audit;
mod check;
mod coverage;
mod disclosed;
mod exchange;
mod expected;
mod export;
mod filter;
mod gates;
mod grant;
mod granting;
mod item;
mod keys;
mod page;
pub mod profile;
mod query;
pub mod rule;
mod search;
mod vectors;
mod view;

pub use check::Difference;
pub use coverage::{report, undecided};
pub use disclosed::Disclosed;
pub use exchange::{ExpectedExchange, ExpectedState};
pub use expected::{Expected, ExpectedAnswer, ExpectedAudit, ExpectedExport, ExpectedReceipt, Form, Leaves};
pub use rule::Rule;
pub use vectors::{ExpectedVector, Refers};

use crate::world::Planted;
use coverage::Decided;
use gates::Gates;
use grant::Grant;
use granting::Limits;
use item::{Correction, Item, State};
use keys::Published;
use oap_identity::{Did, Timestamp};
use profile::Document;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use vectors::Named;

/// The text of a profile document (TOML), one of the owner's own. The built-in profiles are part of the model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProfileText(pub String);

/// Who reads the audit log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names say it")]
pub enum Reader<'a> {
    /// The owner, with a token.
    Owner,
    /// A grantee with its token, by its DID.
    Grantee(&'a str),
    Nobody,
}

/// The scope of an item that names none, until [`Model::default_scope`] says otherwise.
const DEFAULT_SCOPE: &str = "personal";
/// The belief threshold of a manifest that names none.
const BELIEF_THRESHOLD: f64 = 0.5;

/// All that the owner has done so far, as plain data.
#[derive(Debug, Clone)]
pub struct Model {
    principal: Did,
    belief_threshold: f64,
    /// The gateway's models of embeddings.
    embeddings: Vec<Named>,
    /// The origin of the query endpoint, where what the manifest does not name is too (protocol section 2).
    origin: String,
    /// Where the status list is.
    revocation: String,
    default_scope: String,
    /// Whether the times that it is told are the gateway's own to the millisecond.
    exact_clock: bool,
    limits: Limits,
    profiles: Vec<Document>,
    items: BTreeMap<String, Item>,
    grants: BTreeMap<String, Grant>,
    gates: Gates,
    keys: Published,
    decided: Decided,
}

impl Model {
    /// A model of an empty gateway, with the thresholds and profiles that its memory manifest declares.
    #[must_use]
    pub fn new(principal: Did, manifest: &Value, profiles: Vec<ProfileText>) -> Self {
        Self {
            principal,
            belief_threshold: manifest["belief_threshold"].as_f64().unwrap_or(BELIEF_THRESHOLD),
            embeddings: Named::read(manifest),
            origin: origin(manifest),
            revocation: manifest["endpoints"]["revocation"]
                .as_str()
                .map_or_else(|| format!("{}/oap/memory/status", origin(manifest)), str::to_owned),
            default_scope: DEFAULT_SCOPE.to_owned(),
            exact_clock: false,
            limits: Limits::read(manifest),
            profiles: profiles.iter().filter_map(|text| Document::read(&text.0)).collect(),
            items: BTreeMap::new(),
            grants: BTreeMap::new(),
            gates: Gates::default(),
            keys: Published::default(),
            decided: Decided::default(),
        }
    }

    /// The scope of items that name none.
    pub fn default_scope(&mut self, scope: &str) {
        scope.clone_into(&mut self.default_scope);
    }

    /// The times that it is told are the gateway's own to the millisecond: one clock drives both.
    pub fn clock_is_exact(&mut self) {
        self.exact_clock = true;
    }

    /// The same, with a count of its own of what decides.
    fn unheard(&self) -> Self {
        Self { decided: Decided::default(), ..self.clone() }
    }

    /// The owner captured an item: the draft as it was sent, when, and what was planted in it.
    pub fn captured(&mut self, item_id: &str, draft: &Value, at: Timestamp, planted: &Planted) {
        let version = item::version(draft, &self.default_scope, at, planted);
        let item = Item {
            draft: draft.clone(),
            version,
            committed: 0,
            events: vec!["capture"],
            state: State::Current,
            at,
            correction: None,
        };
        self.items.insert(item_id.to_owned(), item);
    }

    /// Whether a correction of an item would leave it another one than it is.
    #[must_use]
    pub fn would_change(&self, item_id: &str, changes: &Value) -> bool {
        self.items.get(item_id).is_some_and(|item| {
            let draft = item::corrected(&item.draft, changes);
            let version = item::version(&draft, &self.default_scope, item.at, &Planted::default());
            version.whole != item.version.whole
        })
    }

    /// The owner corrected an item: the members that change, as they were sent. `planted` is of the text that they bring along, if any.
    pub fn corrected(&mut self, item_id: &str, changes: &Value, at: Timestamp, planted: &Planted) {
        // The text that stays has the spans that it had.
        let planted = changes.pointer("/content/text").map(|_| planted);
        self.rewritten(item_id, changes, at, planted, "correct");
    }

    /// The owner gave an item these labels, and no others.
    pub fn relabelled(&mut self, item_id: &str, labels: &[String], at: Timestamp) {
        self.rewritten(item_id, &json!({"labels": labels}), at, None, "relabel");
    }

    fn rewritten(
        &mut self,
        item_id: &str,
        changes: &Value,
        at: Timestamp,
        planted: Option<&Planted>,
        event: &'static str,
    ) {
        let Some(item) = self.items.get_mut(item_id).filter(|item| item.state == State::Current) else {
            return;
        };
        let draft = item::corrected(&item.draft, changes);
        // What the first version had of the gateway's clock stays.
        let mut version =
            item::version(&draft, &self.default_scope, item.at, planted.unwrap_or(&Planted::default()));
        if planted.is_none() {
            version.spans.clone_from(&item.version.spans);
        }
        let _ = at;
        item.draft = draft;
        let former = std::mem::replace(&mut item.version, version);
        item.correction = (event == "correct").then(|| Box::new(Correction::of(changes, former)));
        item.committed = item.events.len();
        item.events.push(event);
    }

    /// The owner confirmed an item.
    pub fn confirmed(&mut self, item_id: &str, at: Timestamp) {
        self.marked(item_id, at, "confirm", State::Current, State::Current);
    }

    /// The owner took an item back.
    pub fn retracted(&mut self, item_id: &str, at: Timestamp) {
        self.marked(item_id, at, "retract", State::Current, State::Retracted);
    }

    /// The owner put an item back.
    pub fn restored(&mut self, item_id: &str, at: Timestamp) {
        self.marked(item_id, at, "restore", State::Retracted, State::Current);
    }

    fn marked(&mut self, item_id: &str, _: Timestamp, event: &'static str, from: State, to: State) {
        if let Some(item) = self.items.get_mut(item_id).filter(|item| item.state == from) {
            item.events.push(event);
            item.state = to;
        }
    }

    /// The owner deleted items; what was derived from them follows, at whatever distance.
    pub fn deleted(&mut self, item_ids: &[String], at: Timestamp) {
        let _ = at;
        let mut open: Vec<(String, State)> = item_ids.iter().map(|id| (id.clone(), State::Erased)).collect();
        while let Some((id, state)) = open.pop() {
            let Some(item) = self.items.get_mut(&id) else { continue };
            if matches!(item.state, State::Erased | State::DerivedErased) {
                continue;
            }
            item.state = state;
            item.events.push("erase");
            let made = |item: &Item| item.version.texts("derived_from").contains(&id.as_str());
            let derived = self.items.iter().filter(|(_, item)| made(item)).map(|(id, _)| id.clone());
            open.extend(derived.map(|id| (id, State::DerivedErased)));
        }
    }

    /// The owner issued a grant, or a grantee delegated one that was exchanged: the signed grant.
    pub fn granted(&mut self, grant: &Value) {
        let grant = Grant::read(grant);
        self.grants.insert(grant.id.clone(), grant);
    }

    /// The owner revoked a grant.
    pub fn revoked(&mut self, grant_id: &str, at: Timestamp) {
        if let Some(grant) = self.grants.get_mut(grant_id) {
            grant.revoked.get_or_insert(at);
        }
    }

    /// The owner set the confidentiality context of a scope (`oap-ccc.schema.json`).
    pub fn context(&mut self, context: &Value) {
        let scope = context["scope_id"].as_str().unwrap_or_default().to_owned();
        self.gates.contexts.insert(scope, context.clone());
    }

    /// The owner signed a Cross Scope Bridge: the document.
    pub fn bridged(&mut self, bridge: &Value) {
        let id = bridge["bridge_id"].as_str().unwrap_or_default().to_owned();
        self.gates.bridges.insert(id, bridge.clone());
    }

    /// The owner took a bridge back.
    pub fn unbridged(&mut self, bridge_id: &str) {
        self.gates.bridges.remove(bridge_id);
    }

    /// The owner consented to a grant.
    pub fn consented(&mut self, grant_id: &str) {
        self.gates.consented.insert(grant_id.to_owned());
    }

    /// A sanctions list is at hand on the gateway: whom it names.
    pub fn screened(&mut self, list: &str, named: &[String]) {
        self.gates.sanctions.insert(list.to_owned(), named.iter().cloned().collect());
    }

    /// A sanctions list is not at hand any more.
    pub fn unscreened(&mut self, list: &str) {
        self.gates.sanctions.remove(list);
    }

    /// A grant and those that it was made from, its first one last. Empty where one of them is not known.
    fn chain(&self, grant_id: &str) -> Vec<&Grant> {
        let mut chain: Vec<&Grant> = self.grants.get(grant_id).into_iter().collect();
        while let Some(parent) = chain.last().and_then(|grant| grant.parent.as_ref()) {
            match self.grants.values().find(|grant| grant.hash == *parent) {
                Some(above) if chain.len() <= self.grants.len() => chain.push(above),
                _ => return Vec::new(),
            }
        }
        chain
    }

    /// What a query under a grant must be answered with, by its grantee with a token that holds. `spent` is what was
    /// answered before.
    #[must_use]
    pub fn query(&self, grant_id: &str, query: &Value, at: Timestamp, spent: &Disclosed) -> Expected {
        self.answer(grant_id, query, at, spent)
    }

    /// When items end, those that are over too.
    pub fn ends(&self) -> impl Iterator<Item = Timestamp> {
        self.items.values().filter_map(|item| Some(item.version.end()?.0))
    }

    /// How often each rule decided something so far.
    #[must_use]
    pub fn decided(&self) -> BTreeMap<Rule, u64> {
        self.decided.counts()
    }
}

/// The origin of the query endpoint that a manifest names.
fn origin(manifest: &Value) -> String {
    let query = manifest["endpoints"]["query"].as_str().unwrap_or_default();
    let (scheme, rest) = query.split_once("://").unwrap_or(("https", query));
    format!("{scheme}://{}", rest.split('/').next().unwrap_or_default())
}

#[cfg(test)]
mod tests;

//! The reference model: what a gateway must answer in any world, and which rule says so.
//!
//! It is written from `docs/protocol.md` and `docs/bytes.md`, apart from the product: of its rooms it uses `oap-identity` alone
//! (times, hashes, JSON). It is small and slow on purpose: it keeps all that the owner has done as plain data, and computes each answer anew.
//!
//! The model does not detect personal spans: the maker of the world says what it planted.
//!
//! ```
//! use oap_conformance::model::{Disclosed, Model};
//! use serde_json::json;
//!
//! let manifest = json!({"belief_threshold": 0.5, "memory_exchange": {"max_grant_size_items": 1000}});
//! let model = Model::new("did:web:user.example".parse()?, &manifest, Vec::new());
//! let expected = model.query("mgr_unknown", &json!({}), "2026-05-01T12:00:00Z".parse()?, &Disclosed::default());
//! assert!(expected.answer().is_none());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod coverage;
mod disclosed;
mod expected;
pub mod profile;
pub mod rule;

pub use coverage::{report, undecided};
pub use disclosed::Disclosed;
pub use expected::{Expected, ExpectedAnswer, ExpectedAudit, ExpectedExport, ExpectedReceipt, Form, Leaves};
pub use rule::Rule;

use crate::world::Planted;
use coverage::Decided;
use oap_identity::{Did, Timestamp};
use serde_json::Value;
use std::collections::BTreeMap;

/// The text of a profile document (TOML), one of the owner's own. The built-in profiles are part of the model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProfileText(pub String);

/// Who reads the audit log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reader<'a> {
    /// The owner, with a token.
    Owner,
    /// A grantee with its token, by its DID.
    Grantee(&'a str),
    /// Anybody.
    Nobody,
}

/// All that the owner has done so far, as plain data.
#[derive(Debug, Clone)]
pub struct Model {
    principal: Did,
    grants: BTreeMap<String, Value>,
    decided: Decided,
}

impl Model {
    /// A model of an empty gateway, with the limits, thresholds and profiles that its memory manifest declares.
    #[must_use]
    pub fn new(principal: Did, manifest: &Value, profiles: Vec<ProfileText>) -> Self {
        let _ = (manifest, profiles);
        Self { principal, grants: BTreeMap::new(), decided: Decided::default() }
    }

    /// The owner captured an item: the draft as it was sent, when, and what was planted in it.
    pub fn captured(&mut self, item_id: &str, draft: &Value, at: Timestamp, planted: &Planted) {
        let _ = (item_id, draft, at, planted);
    }

    /// The owner corrected an item: the members that change, as they were sent. `planted` is of the draft as it now is.
    pub fn corrected(&mut self, item_id: &str, changes: &Value, at: Timestamp, planted: &Planted) {
        let _ = (item_id, changes, at, planted);
    }

    /// The owner gave an item these labels, and no others.
    pub fn relabelled(&mut self, item_id: &str, labels: &[String], at: Timestamp) {
        let _ = (item_id, labels, at);
    }

    /// The owner confirmed an item.
    pub fn confirmed(&mut self, item_id: &str, at: Timestamp) {
        let _ = (item_id, at);
    }

    /// The owner took an item back.
    pub fn retracted(&mut self, item_id: &str, at: Timestamp) {
        let _ = (item_id, at);
    }

    /// The owner put an item back.
    pub fn restored(&mut self, item_id: &str, at: Timestamp) {
        let _ = (item_id, at);
    }

    /// The owner deleted items, and what was derived from them.
    pub fn deleted(&mut self, item_ids: &[String], at: Timestamp) {
        let _ = (item_ids, at);
    }

    /// The owner issued a grant, or a grantee delegated one that was exchanged: the signed grant.
    pub fn granted(&mut self, grant: &Value) {
        let id = grant["grant_id"].as_str().unwrap_or_default().to_owned();
        self.grants.insert(id, grant.clone());
    }

    /// The owner revoked a grant.
    pub fn revoked(&mut self, grant_id: &str, at: Timestamp) {
        let _ = (grant_id, at);
    }

    /// What a query under a grant must be answered with, by its grantee with a token that holds. `spent` is what was
    /// answered before.
    #[must_use]
    pub fn query(&self, grant_id: &str, query: &Value, at: Timestamp, spent: &Disclosed) -> Expected {
        let _ = (query, at, spent, &self.principal);
        if self.grants.contains_key(grant_id) {
            return Expected::Answer(Box::default());
        }
        let rule = Rule::Refusal(rule::Refusal::UnknownGrant);
        self.decided.note(rule);
        Expected::Refused { codes: &["auth_required", "policy_block"], status: &[401, 403], rule }
    }

    /// What an export under a grant must be.
    #[must_use]
    pub fn export(&self, grant_id: &str, at: Timestamp, spent: &Disclosed) -> ExpectedExport {
        let _ = (grant_id, at, spent);
        ExpectedExport::Bundle(Box::default())
    }

    /// What a reader of the audit log may see.
    #[must_use]
    pub fn audit(&self, reader: Reader<'_>) -> ExpectedAudit {
        let _ = reader;
        ExpectedAudit::default()
    }

    /// How often each rule decided something so far.
    #[must_use]
    pub fn decided(&self) -> BTreeMap<Rule, u64> {
        self.decided.counts()
    }
}

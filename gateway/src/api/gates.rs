//! The gates before every grant: confidentiality contexts, bridges between scopes, and what they decided.

use super::document::{Signed, Submitted};
use super::{Document, Done, endpoints};
use oap_exchange::bridge::Bridge;
use oap_exchange::ccc::Ccc;
use oap_identity::{BridgeId, DecisionId, ScopeId, Timestamp};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;

endpoints! {
    /// Every confidentiality context.
    ListContexts: GET "/oap/owner/contexts" needs Admin answers(Contexts);
    /// Sets the context of the scope that a document of `oap-ccc.schema.json` names.
    SetContext: POST "/oap/owner/contexts" needs Admin body(Submitted<Ccc>) answers(Done);
    /// Takes the context of a scope away.
    RemoveContext: POST "/oap/owner/contexts/{scope}/remove" at(ScopeId) needs Admin answers(Done);
    /// Every bridge.
    ListBridges: GET "/oap/owner/bridges" needs Admin answers(Bridges);
    /// Signs a bridge.
    IssueBridge: POST "/oap/owner/bridges" needs Admin body(BridgeDraft) answers(Document<Signed<Bridge>>);
    /// Takes a bridge back. It takes effect before the next answer leaves.
    RevokeBridge: POST "/oap/owner/bridges/{id}/revoke" at(BridgeId) needs Admin answers(Done);
    /// The Decision Record of a decision (OAP-CORE 18.3).
    ShowDecision: GET "/oap/owner/decisions/{id}" at(DecisionId) needs Admin answers(Document<DecisionRecord>);
}

/// Every context.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Contexts {
    /// Documents of `oap-ccc.schema.json`.
    pub contexts: Vec<Document<Ccc>>,
}

/// Every bridge.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[allow(missing_docs, reason = "the names say it")]
pub struct Bridges {
    pub bridges: Vec<BridgeInfo>,
}

/// A bridge as its owner asks for it.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct BridgeDraft {
    /// Where the items are.
    pub from_scope: ScopeId,
    /// The scope of the grants that may show them.
    pub to_scope: ScopeId,
    /// The labels and kinds that may pass.
    pub data_categories: Vec<String>,
    /// Until when it holds.
    pub valid_until: Timestamp,
}

/// A bridge as its owner sees it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct BridgeInfo {
    /// The signed document.
    pub bridge: Document<Signed<Bridge>>,
    /// `active`, `expired` or `revoked`.
    pub state: Cow<'static, str>,
    /// When it was taken back.
    pub revoked_at: Option<Timestamp>,
}

/// What is read of a Decision Record.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[allow(missing_docs, reason = "the names say it")]
pub struct DecisionRecord {
    pub decision_id: DecisionId,
    /// What happened, in a sentence for the owner.
    pub explanation_for_principal: String,
}

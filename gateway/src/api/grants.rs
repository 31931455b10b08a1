//! Grants: previewed, issued, listed, consented to, taken back.

use super::document::Signed;
use super::{Document, Done, endpoints};
use oap_grants::grant::{Budget, Delegable};
use oap_grants::{Grant, GrantState, LawfulBasis, Operation};
use oap_identity::{Did, GrantId, Hash, ScopeId, Timestamp};
use oap_memory::{Filter, TrustLevel};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

endpoints! {
    /// Every grant, newest first.
    ListGrants: GET "/oap/owner/grants" needs Admin answers(GrantList);
    /// Signs and stores a grant.
    IssueGrant: POST "/oap/owner/grants" needs Admin query(Issuing) body(GrantDraft) answers(GrantInfo);
    /// What a grant would show, were it issued now. Nothing is signed.
    PreviewGrant: POST "/oap/owner/grants/preview" needs Admin body(GrantDraft) answers(Preview);
    /// A grant, and where it stands.
    ShowGrant: GET "/oap/owner/grants/{id}" at(GrantId) needs Admin answers(GrantInfo);
    /// Takes a grant back. It takes effect before the next answer leaves.
    RevokeGrant: POST "/oap/owner/grants/{id}/revoke" at(GrantId) needs Admin answers(GrantInfo);
    /// Lets grants answer again after a restore, as they stand.
    ResumeGrants: POST "/oap/owner/grants/resume" needs Admin answers(Done);
    /// Consents to what a confidentiality context would withhold from a grant, or takes the consent back.
    ConsentToGrant: POST "/oap/owner/grants/{id}/consent" at(GrantId) needs Admin body(Consent) answers(Done);
}

fn stranger() -> TrustLevel {
    TrustLevel::STRANGER
}

fn query_only() -> BTreeSet<Operation> {
    BTreeSet::from([Operation::Query])
}

/// A grant as its owner asks for it; the gateway adds id, granter, times and status.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[allow(missing_docs, reason = "the names say it")]
pub struct GrantDraft {
    /// Who may see it.
    pub grantee: Did,
    /// What for, in words.
    pub purpose: String,
    /// What for, in codes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub purpose_codes: Vec<String>,
    /// The scope; the default one if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scope: Option<ScopeId>,
    /// What is selected.
    #[serde(default)]
    pub filter: Filter,
    /// Most distinct items ever disclosed.
    pub max_items: u32,
    /// From when on it holds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub not_before: Option<Timestamp>,
    /// Until when it holds.
    pub expires_at: Timestamp,
    /// The projection profile.
    pub redaction_profile: String,
    /// The trust level; 0 if absent.
    #[serde(default = "stranger")]
    pub trust_level: TrustLevel,
    #[serde(default)]
    pub lawful_basis: LawfulBasis,
    /// What the grantee may do; queries alone if absent.
    #[serde(default = "query_only")]
    pub operations: BTreeSet<Operation>,
    /// Whether embeddings may be seen.
    #[serde(default)]
    pub embedding_access: bool,
    /// Whether and how far it may be passed on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delegable: Option<Delegable>,
    /// How much may be asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub budget: Option<Budget>,
    /// Whether a plain bearer token is allowed.
    #[serde(default)]
    pub bearer: bool,
}

/// How a grant is issued.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Issuing {
    /// Whether to issue without looking whether the grantee's DID has a document.
    #[serde(default)]
    pub offline: bool,
}

/// A grant as its owner sees it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[allow(missing_docs, reason = "the names say it")]
pub struct GrantInfo {
    pub grant: Document<Signed<Grant>>,
    pub hash: Hash,
    /// Where it stands.
    pub state: GrantState,
    /// When it was revoked.
    pub revoked_at: Option<Timestamp>,
    /// How many distinct items were disclosed.
    pub disclosed: usize,
    /// Whether it was delegated by a grantee.
    pub delegated: bool,
}

/// All grants that the owner gave.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct GrantList {
    /// Newest first.
    pub grants: Vec<GrantInfo>,
}

/// What a grant would show.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Preview {
    /// How many items it selects.
    pub selected: usize,
    /// How many distinct ones it can ever disclose.
    pub max_items: u32,
    /// How many of each kind, by the owner's reading.
    pub kinds: BTreeMap<String, usize>,
    /// The first of them, as the grantee would see them.
    pub items: Vec<PreviewItem>,
    /// How often each member is hidden over all selected items.
    pub hidden: BTreeMap<String, usize>,
    /// How many items the filter selects that the gates withhold.
    pub withheld: u32,
    /// How many items each rule of the gates fired for.
    pub rules: BTreeMap<String, u32>,
    /// What the owner should look at twice.
    pub warnings: Vec<String>,
}

/// One item of a preview.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PreviewItem {
    /// What the grantee would see, without proof.
    pub visible: Value,
    /// The places that they would not see.
    pub hidden: Vec<String>,
}

/// Whether the owner consents.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Consent {
    /// False takes it back.
    pub given: bool,
}

//! A whole answer: who disclosed what to whom, under which grant.

use super::{EvidenceError, VerifiedItem, item};
use crate::answer::{MAX_RESULTS, answer_bytes, output_hash};
use crate::profile::TrustLevel;
use crate::receipt::{self, Action, Receipt, item_tag};
use crate::record::Status;
use crate::unchecked::Unchecked;
use oap_identity::signed::SignedError;
use oap_identity::time::MAX_SKEW;
use oap_identity::{
    DetachedSignature, Did, Documents, GrantId, Hash, ItemId, RequestId, ScopeId, Timestamp, json,
};
use serde::Deserialize;
use serde_json::Value;
use std::collections::BTreeSet;
use std::time::Duration;

crate::reasons! {
    /// Why an answer was refused, beside its items.
    #[allow(missing_docs, reason = "the names say it")]
    AnswerError {
        /// A member that is missing, unknown or of the wrong shape; the text names it.
        #[error("{0}")]
        Malformed(String) = "answer.malformed",
        /// The signature of another than its receipt's principal.
        #[error("signature: it is by another than the principal of its receipt")]
        Signer = "answer.signer",
        #[error("signature: {0}")]
        Signature(SignedError) = "answer.signature",
        /// The receipt is of another action.
        #[error("receipt: action_id must be memory.query")]
        Action = "answer.action",
        /// The receipt names no grantee.
        #[error("receipt: agent_did must be the grantee's DID")]
        Grantee = "answer.grantee",
        /// Another gateway.
        #[error("receipt: tool_did must be the principal")]
        Tool = "answer.tool",
        /// The receipt does not name its grant.
        #[error("receipt: its decision must name consumed_grant_id, grant_hash, scope_id, trust_level, profile, profile_hash, lawful_basis")]
        NoGrant = "answer.no_grant",
        /// The receipt does not say what was asked.
        #[error("receipt: input_hash is missing")]
        InputHash = "answer.input_hash",
        /// `projection_applied` is not what the receipt says.
        #[error("projection_applied: {0} is not what the receipt says")]
        Projection(&'static str) = "answer.projection",
        /// The receipt does not cover the items.
        #[error("the receipt does not cover these items: output_hash differs")]
        OutputHash = "answer.output_hash",
        /// The receipt names other items.
        #[error("the receipt does not cover these items: provenance_tags_out differs")]
        Tags = "answer.tags",
        /// More items than an answer may have.
        #[error("items: at most {MAX_RESULTS}")]
        TooMany = "answer.too_many",
        /// An item twice.
        #[error("item {0} appears twice")]
        Repeated(ItemId) = "answer.repeated",
        /// An item that is not current.
        #[error("item {0} is {1}: only current items are disclosed")]
        NotCurrent(ItemId, Status) = "answer.not_current",
        /// An item whose time was over.
        #[error("item {0}: its time was over when it was answered with: expires_at, or captured_at and ttl_days")]
        Expired(ItemId) = "answer.expired",
        /// An item that is younger than the answer.
        #[error("item {0} is younger than the answer")]
        Younger(ItemId) = "answer.younger",
    }
}

/// What a receipt says of the grant that it consumed.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[allow(missing_docs, reason = "the names say it")]
pub struct Disclosure {
    #[serde(rename = "consumed_grant_id")]
    pub grant_id: GrantId,
    /// The hash of the grant document.
    pub grant_hash: Hash,
    /// The scope of the grant.
    pub scope_id: ScopeId,
    /// The trust level applied.
    pub trust_level: TrustLevel,
    /// The profile applied.
    pub profile: String,
    /// The hash of the profile's document.
    pub profile_hash: Hash,
    /// The lawful basis.
    pub lawful_basis: String,
    /// The grants that it was made from, first one first.
    #[serde(default)]
    pub delegation: Vec<Hash>,
}

/// A whole answer whose proof was checked. Only [`answer()`] makes one.
#[derive(Debug, Clone)]
#[allow(missing_docs, reason = "the names say it")]
pub struct VerifiedAnswer {
    /// Who disclosed: the signer of the answer, the principal of its receipt, and the holder of every item.
    pub discloser: Did,
    /// To whom.
    pub grantee: Did,
    /// Under which grant, as the receipt says; the grant itself is not part of an answer.
    pub disclosure: Disclosure,
    /// Its items, in order.
    pub items: Vec<VerifiedItem>,
    pub receipt: Receipt,
    /// What was not checked, beside that of the items.
    pub unchecked: Vec<Unchecked>,
}

impl VerifiedAnswer {
    /// The same answer, where nothing in it is later than that time, 5 minutes of skew aside.
    ///
    /// # Errors
    /// [`EvidenceError::Future`].
    pub fn as_of(self, now: Timestamp) -> Result<Self, EvidenceError> {
        let at = self.receipt.timestamp;
        if at > now.plus(MAX_SKEW) {
            return Err(EvidenceError::Future(at));
        }
        for item in &self.items {
            item.clone().as_of(now)?;
        }
        Ok(self)
    }

    /// The same answer, where the content of every item is proved.
    ///
    /// # Errors
    /// [`EvidenceError::Unproved`].
    pub fn proved(self) -> Result<Self, EvidenceError> {
        if self.items.iter().all(|item| item.claims.is_some()) {
            Ok(self)
        } else {
            Err(EvidenceError::Unproved)
        }
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Envelope {
    #[serde(rename = "request_id")]
    _request_id: RequestId,
    response_id: RequestId,
    items: Vec<Value>,
    projection_applied: Projection,
    #[serde(rename = "next_cursor")]
    _next_cursor: Option<String>,
    receipt: Value,
    signature: DetachedSignature,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Projection {
    trust_level: TrustLevel,
    profile: String,
    #[serde(rename = "redacted_field_count")]
    _redacted_field_count: u32,
    lawful_basis: String,
}

/// Checks a whole answer: the gateway's signature, its receipt, that the receipt covers exactly these items under this
/// projection, every item, and that who disclosed them holds them.
///
/// # Errors
/// [`EvidenceError`].
pub fn answer(answer: &Value, documents: &dyn Documents) -> Result<VerifiedAnswer, EvidenceError> {
    let malformed = |e: json::JsonError| AnswerError::Malformed(e.to_string());
    let envelope: Envelope = json::from_value(answer.clone()).map_err(malformed)?;
    if envelope.items.len() > usize::from(MAX_RESULTS) {
        return Err(AnswerError::TooMany.into());
    }
    let receipt = receipt::verify(&envelope.receipt, documents)?;
    let mut unchecked = receipt.unchecked;
    let receipt = receipt.receipt;
    if let Some(since) = check_signature(answer, &envelope.signature, documents, &receipt)? {
        let dated = Unchecked::DatedByCompromisedKey { kid: envelope.signature.kid.clone(), since };
        if !unchecked.contains(&dated) {
            unchecked.push(dated);
        }
    }
    let (grantee, disclosure) = check_receipt(&receipt)?;
    check_projection(&envelope.projection_applied, &disclosure)?;
    if receipt.output_hash
        != Some(output_hash(&json::canonical_text(&envelope.items)?, &envelope.response_id))
    {
        return Err(AnswerError::OutputHash.into());
    }
    let items = envelope.items.iter().map(|i| item(i, documents)).collect::<Result<Vec<_>, _>>()?;
    let mut seen = BTreeSet::new();
    for item in &items {
        check_item(item, &receipt)?;
        if !seen.insert(item.item_id) {
            return Err(AnswerError::Repeated(item.item_id).into());
        }
    }
    let tag = |item: &VerifiedItem| item_tag(item.item_id, item.chain.last().commitment);
    if !receipt.provenance_tags_out.iter().cloned().eq(items.iter().map(tag)) {
        return Err(AnswerError::Tags.into());
    }
    unchecked.push(Unchecked::Query);
    unchecked.push(Unchecked::Grant(disclosure.grant_id));
    Ok(VerifiedAnswer {
        discloser: receipt.principal_did.clone(),
        grantee,
        disclosure,
        items,
        receipt,
        unchecked,
    })
}

fn check_signature(
    answer: &Value,
    signature: &DetachedSignature,
    documents: &dyn Documents,
    receipt: &Receipt,
) -> Result<Option<Timestamp>, EvidenceError> {
    if *signature.kid.did() != receipt.principal_did {
        return Err(AnswerError::Signer.into());
    }
    let verified = signature.verify(&answer_bytes(answer)?, documents, receipt.timestamp);
    Ok(verified.map_err(AnswerError::Signature)?.revoked_at())
}

/// What the receipt of an answer says beside what every receipt of a query does. A refusal's covers no items.
fn check_receipt(receipt: &Receipt) -> Result<(Did, Disclosure), AnswerError> {
    if receipt.action_id.as_deref() != Some(Action::Query.as_str()) {
        return Err(AnswerError::Action);
    }
    let grantee = receipt.agent_did.parse().map_err(|_| AnswerError::Grantee)?;
    if receipt.tool_did.as_ref().is_some_and(|tool| *tool != receipt.principal_did) {
        return Err(AnswerError::Tool);
    }
    if receipt.input_hash.is_none() {
        return Err(AnswerError::InputHash);
    }
    let decision = receipt.policy_decisions.first().ok_or(AnswerError::NoGrant)?;
    let said = Value::Object(decision.more.clone());
    let disclosure = json::from_value(said).map_err(|_| AnswerError::NoGrant)?;
    Ok((grantee, disclosure))
}

fn check_projection(applied: &Projection, said: &Disclosure) -> Result<(), AnswerError> {
    if applied.trust_level != said.trust_level {
        return Err(AnswerError::Projection("trust_level"));
    }
    if applied.profile != said.profile {
        return Err(AnswerError::Projection("profile"));
    }
    if applied.lawful_basis != said.lawful_basis {
        return Err(AnswerError::Projection("lawful_basis"));
    }
    Ok(())
}

fn check_item(item: &VerifiedItem, receipt: &Receipt) -> Result<(), EvidenceError> {
    if item.holder != receipt.principal_did {
        let (holder, discloser) = (item.holder.clone(), receipt.principal_did.clone());
        return Err(EvidenceError::Copied(item.item_id, holder, discloser));
    }
    if item.status != Status::Current {
        return Err(AnswerError::NotCurrent(item.item_id, item.status).into());
    }
    // One house has one clock; only the links of a former house are of another.
    let skew = if item.chain.moves().next().is_some() { MAX_SKEW } else { Duration::ZERO };
    if item.chain.last().at > receipt.timestamp.plus(skew) {
        return Err(AnswerError::Younger(item.item_id).into());
    }
    if item.end_of_life().is_some_and(|end| end <= receipt.timestamp) {
        return Err(AnswerError::Expired(item.item_id).into());
    }
    Ok(())
}

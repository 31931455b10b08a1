//! Possession soundness, P1 (RFC 0010 A.3), from the grantee's side: for every item that it has, there is a grant that
//! names it and admits the item as far as it is visible, a signed receipt of the query that contains it, and a chain to
//! its capture receipt.
//!
//! What the protocol's own chain tool lets pass is told apart here: a signature on every entry is required, and the
//! signed head that follows the grantee's newest receipt says how long the chain was, so that a cut tail shows.

use oap_grants::SignedGrant;
use oap_grants::evidence::{self as terms, TermsError, admits};
use oap_grants::grant::{GrantError, UnverifiedGrant};
use oap_identity::{Did, Documents, Hash, ItemId, Timestamp};
use oap_memory::evidence::{self, EvidenceError, VerifiedAnswer};
use oap_memory::filter::NotAdmitted;
use oap_memory::receipt::{self, ReceiptError, VerifiedReceipt, item_tag};
use serde_json::Value;

/// Why possession is not sound.
#[derive(Debug, thiserror::Error)]
pub enum Unsound {
    /// The answer's own proofs.
    #[error("the answer: {0}")]
    Evidence(#[from] EvidenceError),
    /// The grant's signature or shape.
    #[error("the grant: {0}")]
    Grant(#[from] GrantError),
    /// A grant that was passed on.
    #[error("the grant: {0}")]
    Terms(#[from] TermsError),
    /// A grant by somebody else than the gateway's principal.
    #[error("the grant was given by {0}, and {1} answered")]
    Granter(Did, Did),
    /// A grant or receipt for somebody else.
    #[error("{0} names {1}, not the grantee {2}")]
    Grantee(&'static str, String, Did),
    /// A receipt under another grant.
    #[error("the receipt names another grant than the one asked under")]
    OtherGrant,
    /// An answer outside the grant's time.
    #[error("the answer was given at {0}, when the grant did not hold")]
    Time(Timestamp),
    /// An item that the filter does not admit.
    #[error("item {0}: the grant's filter does not admit it: {1}")]
    Filter(ItemId, NotAdmitted),
    /// More items than the grant allows.
    #[error("{0} distinct items were disclosed, and the grant allows {1}")]
    TooMany(usize, u32),
    /// A listed receipt.
    #[error("the audit log: {0}")]
    Receipt(#[from] ReceiptError),
    /// The log does not have the receipt of an answer, or has another.
    #[error("the audit log does not have the receipt of this answer as it was given")]
    Missing,
}

/// What was established of one answer.
#[derive(Debug)]
pub struct Possession {
    /// The answer, verified.
    pub answer: VerifiedAnswer,
    /// Its items.
    pub items: Vec<ItemId>,
}

/// Checks one answer under one grant, with the grants that this one was made from, first one first.
///
/// # Errors
/// [`Unsound`].
pub fn of_answer(
    answer: &Value,
    grant: &Value,
    ancestors: &[Value],
    grantee: &Did,
    documents: &dyn Documents,
) -> Result<Possession, Unsound> {
    let verified = evidence::answer(answer, documents)?.proved()?;
    let (principal, at) = (verified.receipt.principal_did.clone(), verified.receipt.timestamp);
    let (signed, delegation, own_agent) = if ancestors.is_empty() {
        let signed = verify_grant(grant, &principal, documents, at)?;
        let own_agent = signed.grant().grantee == principal;
        (signed, Vec::new(), own_agent)
    } else {
        let terms = terms::grant(grant, ancestors, documents, at)?;
        (terms.grant, terms.ancestors, terms.own_agent)
    };
    let terms = signed.grant();
    if terms.granter.principal != principal {
        return Err(Unsound::Granter(terms.granter.principal.clone(), principal));
    }
    if verified.disclosure.delegation != delegation {
        return Err(Unsound::OtherGrant);
    }
    if terms.grantee != *grantee {
        return Err(Unsound::Grantee("the grant", terms.grantee.to_string(), grantee.clone()));
    }
    if verified.receipt.agent_did != grantee.as_str() {
        return Err(Unsound::Grantee("the receipt", verified.receipt.agent_did.clone(), grantee.clone()));
    }
    let decision = verified.receipt.policy_decisions.first();
    let names = |member: &str| decision.and_then(|d| d.more.get(member)).and_then(Value::as_str);
    if names("consumed_grant_id") != Some(&terms.grant_id.to_string())
        || names("grant_hash").is_some_and(|hash| hash != signed.hash().to_string())
    {
        return Err(Unsound::OtherGrant);
    }
    if at < terms.begins() || at >= terms.expires_at {
        return Err(Unsound::Time(at));
    }
    let items = answer["items"].as_array().map(Vec::as_slice).unwrap_or_default();
    for (item, verified) in items.iter().zip(&verified.items) {
        admits(terms, own_agent, item).map_err(|why| Unsound::Filter(verified.item_id, why))?;
    }
    let items = verified.items.iter().map(|item| item.item_id).collect();
    Ok(Possession { answer: verified, items })
}

fn verify_grant(
    grant: &Value,
    principal: &Did,
    documents: &dyn Documents,
    at: Timestamp,
) -> Result<SignedGrant, Unsound> {
    let unverified = UnverifiedGrant::parse(grant.clone())?;
    let granter = unverified.unverified().granter.principal.clone();
    if granter != *principal {
        return Err(Unsound::Granter(granter, principal.clone()));
    }
    let document =
        documents.document(&granter).ok_or_else(|| Unsound::Granter(granter.clone(), principal.clone()))?;
    Ok(unverified.verify(document, at)?)
}

/// Checks everything that a grantee got under one grant: each answer, no more distinct items than the grant allows, and
/// the gateway's audit log as the grantee sees it: every receipt signed, and those of the answers among them, unchanged.
///
/// # Errors
/// [`Unsound`].
pub fn of_all(
    answers: &[Value],
    audit: &[Value],
    grant: &Value,
    ancestors: &[Value],
    grantee: &Did,
    documents: &dyn Documents,
) -> Result<Vec<Possession>, Unsound> {
    let mut listed: Vec<(Hash, Vec<String>)> = Vec::new();
    for entry in audit {
        let VerifiedReceipt { receipt, hash, .. } = receipt::verify(entry, documents)?;
        if receipt.agent_did != grantee.as_str() {
            return Err(Unsound::Grantee("a listed receipt", receipt.agent_did, grantee.clone()));
        }
        listed.push((hash, receipt.provenance_tags_out));
    }
    let mut possessions = Vec::with_capacity(answers.len());
    let mut distinct = std::collections::BTreeSet::new();
    let mut allowed = 0;
    for answer in answers {
        let possession = of_answer(answer, grant, ancestors, grantee, documents)?;
        let hash = possession.answer.receipt.hash().map_err(|e| Unsound::Receipt(e.into()))?;
        let tags: Vec<String> = possession.answer.items.iter().filter_map(tag).collect();
        if !listed.iter().any(|(known, contained)| *known == hash && *contained == tags) {
            return Err(Unsound::Missing);
        }
        distinct.extend(possession.items.iter().copied());
        allowed = grant["max_items"].as_u64().and_then(|n| u32::try_from(n).ok()).unwrap_or(0);
        possessions.push(possession);
    }
    if !answers.is_empty() && distinct.len() > allowed as usize {
        return Err(Unsound::TooMany(distinct.len(), allowed));
    }
    Ok(possessions)
}

fn tag(item: &evidence::VerifiedItem) -> Option<String> {
    Some(item_tag(item.item_id, item.chain.links().last()?.commitment))
}

//! What a receiver checks of a grant, offline: the document with those that it was made from, and whether an answer was
//! given under it.

use crate::attenuate::{self, Wider};
use crate::grant::{Grant, GrantError, Operation, SignedGrant, UnverifiedGrant};
use crate::limits::{LimitError, MAX_DEPTH, check_sound};
use oap_identity::time::MAX_SKEW;
use oap_identity::{Did, Documents, Hash, ItemId, ScopeId, Timestamp};
use oap_memory::evidence::VerifiedAnswer;
use oap_memory::filter::{NotAdmitted, Shown};
use oap_memory::item::Confidence;
use oap_memory::profile::Profile;
use oap_memory::unchecked::Unchecked;
use serde_json::Value;

oap_memory::reasons! {
    /// Why a grant was refused, or an answer that was not given under it.
    TermsError {
        /// The document or its signature.
        #[error("{0}")]
        Grant(#[from] GrantError) = "grant.document",
        /// Signed by somebody whose document is not at hand.
        #[error("the DID document of {0}, who must have signed it, is not at hand")]
        NoDocument(Did) = "grant.no_document",
        /// Beyond what any grant may be.
        #[error("{0}")]
        Limit(#[from] LimitError) = "grant.limit",
        /// Issued in the future.
        #[error("issued_at: is in the future")]
        Future = "grant.future",
        /// A delegated grant without the one that it was made from.
        #[error("parent: give the grants that it was made from, the first one first")]
        NoParent = "grant.no_parent",
        /// Grants that were not made one from the other.
        #[error("parent: is not the hash of the grant before")]
        Parent = "grant.parent",
        /// Too many.
        #[error("a grant can be passed on {MAX_DEPTH} times at most")]
        Depth = "grant.depth",
        /// Not narrower.
        #[error("{0}")]
        Wider(#[from] Wider) = "grant.wider",
        /// Of another granter than who answered.
        #[error("the grant was given by {0}, and {1} answered")]
        Granter(Did, Did) = "grant.granter",
        /// Of another grantee than who was answered.
        #[error("the grant names {0}, and the answer is for {1}")]
        Grantee(Did, Did) = "grant.grantee",
        /// The receipt names another grant.
        #[error("the receipt names another grant than this one")]
        OtherGrant = "grant.other",
        /// The receipt names other ancestors.
        #[error("the receipt names another delegation than this one")]
        Delegation = "grant.delegation",
        /// Outside its time.
        #[error("the answer was given at {0}, when the grant did not hold")]
        Time(Timestamp) = "grant.time",
        /// Without the right to ask.
        #[error("operations: the grant does not allow queries")]
        Operation = "grant.operation",
        /// Another projection.
        #[error("projection_applied: {0} is not what the grant says")]
        Projection(&'static str) = "grant.projection",
        /// The receipt names another scope.
        #[error("the receipt names scope {0}, and the grant is of {1}")]
        Scope(ScopeId, ScopeId) = "grant.scope",
        /// The receipt names another document than the built-in profile.
        #[error("profile_hash: the receipt names another document than the built-in profile {0}")]
        ProfileHash(String) = "grant.profile_hash",
        /// More items than the grant allows.
        #[error("{0} items, and the grant allows {1}")]
        TooMany(usize, u32) = "grant.too_many",
        /// Embeddings without the right to them.
        #[error("item {0}: embedding_ref without embedding_access")]
        Embedding(ItemId) = "grant.embedding",
        /// An item that the filter does not admit.
        #[error("item {0}: the grant's filter does not admit it: {1}")]
        Filter(ItemId, NotAdmitted) = "grant.filter",
    }
}

/// A grant whose signature, and those of all grants that it was made from, were checked. Only [`grant`] makes one.
#[derive(Debug, Clone)]
#[allow(missing_docs, reason = "the names say it")]
pub struct VerifiedTerms {
    pub grant: SignedGrant,
    /// The hashes of the grants that it was made from, first one first.
    pub ancestors: Vec<Hash>,
    /// Whether the grantee is the granter's own agent, and nobody else stands between.
    pub own_agent: bool,
    /// What was not checked.
    pub unchecked: Vec<Unchecked>,
}

impl VerifiedTerms {
    /// Who signed it: the granter, or the grantee that passed it on.
    #[must_use]
    pub fn signer(&self) -> &Did {
        self.grant.kid().did()
    }
}

/// Checks a grant, with those that it was made from, first one first.
///
/// # Errors
/// [`TermsError`].
pub fn grant(
    document: &Value,
    ancestors: &[Value],
    documents: &dyn Documents,
    now: Timestamp,
) -> Result<VerifiedTerms, TermsError> {
    if ancestors.len() > usize::from(MAX_DEPTH) {
        return Err(TermsError::Depth);
    }
    let mut above: Option<SignedGrant> = None;
    let (mut hashes, mut own_agent) = (Vec::new(), true);
    for document in ancestors.iter().chain([document]) {
        let signed = step(document, above.as_ref(), documents, now)?;
        if let Some(above) = &above {
            hashes.push(above.hash());
        }
        own_agent &= signed.grant().grantee == signed.grant().granter.principal;
        above = Some(signed);
    }
    let grant = above.ok_or(TermsError::NoParent)?;
    let state = Unchecked::State(grant.grant().grant_id);
    Ok(VerifiedTerms { grant, ancestors: hashes, own_agent, unchecked: vec![state] })
}

fn step(
    document: &Value,
    above: Option<&SignedGrant>,
    documents: &dyn Documents,
    now: Timestamp,
) -> Result<SignedGrant, TermsError> {
    let unverified = UnverifiedGrant::parse(document.clone())?;
    let claimed = unverified.unverified();
    let signer = match (claimed.parent, above) {
        (None, None) => claimed.granter.principal.clone(),
        (Some(parent), Some(above)) if parent == above.hash() => above.grant().grantee.clone(),
        (Some(_), None) => return Err(TermsError::NoParent),
        _ => return Err(TermsError::Parent),
    };
    let issued = claimed.issued_at;
    let known = documents.document(&signer).ok_or_else(|| TermsError::NoDocument(signer.clone()))?;
    let signed = unverified.verify(known, issued)?;
    if let Some(above) = above {
        attenuate::check(above.grant(), signed.grant())?;
    }
    check_sound(signed.grant())?;
    if issued > now.plus(MAX_SKEW) {
        return Err(TermsError::Future);
    }
    Ok(signed)
}

/// Checks that an answer was given under a grant: by its granter, to its grantee, in its time, as it projects, and with
/// nothing that its filter does not admit, as far as that is visible. What of its projection was not checked.
///
/// # Errors
/// [`TermsError`].
pub fn under(
    answer: &VerifiedAnswer,
    items: &[Value],
    terms: &VerifiedTerms,
) -> Result<Vec<Unchecked>, TermsError> {
    let grant = terms.grant.grant();
    let said = &answer.disclosure;
    if grant.granter.principal != answer.discloser {
        return Err(TermsError::Granter(grant.granter.principal.clone(), answer.discloser.clone()));
    }
    if grant.grantee != answer.grantee {
        return Err(TermsError::Grantee(grant.grantee.clone(), answer.grantee.clone()));
    }
    if said.grant_id != grant.grant_id || said.grant_hash != terms.grant.hash() {
        return Err(TermsError::OtherGrant);
    }
    if said.delegation != terms.ancestors {
        return Err(TermsError::Delegation);
    }
    let at = answer.receipt.timestamp;
    if at < grant.begins() || at >= grant.expires_at {
        return Err(TermsError::Time(at));
    }
    if !grant.operations.contains(&Operation::Query) {
        return Err(TermsError::Operation);
    }
    if said.scope_id != grant.granter.scope {
        return Err(TermsError::Scope(said.scope_id.clone(), grant.granter.scope.clone()));
    }
    if said.trust_level != grant.trust_level {
        return Err(TermsError::Projection("trust_level"));
    }
    if said.profile != grant.redaction_profile {
        return Err(TermsError::Projection("profile"));
    }
    if said.lawful_basis != grant.lawful_basis.as_str() {
        return Err(TermsError::Projection("lawful_basis"));
    }
    let mut unchecked = vec![Unchecked::Projection(said.profile.clone())];
    let built_in = Profile::built_in().into_iter().find(|profile| profile.name() == said.profile);
    if built_in.is_none() {
        unchecked.push(Unchecked::Profile(said.profile.clone()));
    }
    if built_in.is_some_and(|profile| profile.hash() != said.profile_hash) {
        return Err(TermsError::ProfileHash(said.profile.clone()));
    }
    if answer.items.len() > grant.max_items as usize {
        return Err(TermsError::TooMany(answer.items.len(), grant.max_items));
    }
    for (item, verified) in items.iter().zip(&answer.items) {
        if !grant.embedding_access && verified.outside.contains(&"embedding_ref") {
            return Err(TermsError::Embedding(verified.item_id));
        }
        admits(grant, terms.own_agent, item).map_err(|why| TermsError::Filter(verified.item_id, why))?;
    }
    Ok(unchecked)
}

/// Whether the grant's filter admits an item as far as the item is visible, for a grantee who is the granter's own agent or
/// not: a member that is hidden decides nothing.
///
/// # Errors
/// [`NotAdmitted`].
pub fn admits(grant: &Grant, own_agent: bool, item: &Value) -> Result<(), NotAdmitted> {
    let labels = item["labels"].as_array().map(|labels| {
        labels.iter().filter_map(|label| label.as_str().map(str::to_owned)).collect::<Vec<_>>()
    });
    let provenance = &item["provenance"];
    let shown = Shown {
        scope_id: item["scope_id"].as_str(),
        kind: item["kind"].as_str().and_then(|kind| kind.parse().ok()),
        subject_entity_id: item["subject_entity_id"].as_str().map(Some),
        labels: labels.as_deref(),
        captured_at: provenance["captured_at"].as_str().and_then(|at| at.parse().ok()),
        confidence: provenance["confidence"].as_f64().and_then(|c| Confidence::try_from(c).ok()),
        sensitivity: item["sensitivity"].as_str().and_then(|sensitivity| sensitivity.parse().ok()),
        exportable: item["exportable"].as_bool(),
    };
    grant.filter.check(&shown, &grant.granter.scope, own_agent)
}

/// The stable names of the checks of grants and bundles.
pub fn checks() -> impl Iterator<Item = &'static str> {
    TermsError::CHECKS.iter().chain(crate::bundle::LineError::CHECKS).copied()
}

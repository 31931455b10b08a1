//! Where a grant is used, from the grant alone.
//!
//! Nothing unsigned leads anywhere: the grant's signature, and those of the grants that it was made from, are checked first.
//! Then the granter's DID document says where their gateway is (`OAPMemoryExchange`, protocol section 2). A did:key has no
//! such entry: there the place of the grant's state says it, `status.status_list.uri`, which the granter signed. Whoever
//! signed is a stranger all the same: see [`WebPolicy::allows`]. And what answers there must be signed by the granter:
//! see [`Remote::discover`](crate::grantee::Remote::discover).

use crate::error::ClientError;
use crate::grantee::verified_terms;
use oap_grants::evidence::TermsError;
use oap_grants::exchange::MAX_CHAIN;
use oap_grants::grant::UnverifiedGrant;
use oap_identity::document::MEMORY_EXCHANGE;
use oap_identity::origin::Origin;
use oap_identity::outgoing::WebPolicy;
use oap_identity::resolve::Resolver;
use oap_identity::{Did, DidDocument, ScopedDid, Timestamp};
use oap_manifest::path;
use serde_json::Value;
use std::collections::BTreeMap;
use url::Url;

/// The granter that a grant names, not verified.
///
/// # Errors
/// [`ClientError::Malformed`].
pub fn granter(grant: &Value) -> Result<Did, ClientError> {
    let scoped: Option<ScopedDid> = grant["granter"].as_str().and_then(|text| text.parse().ok());
    let malformed = || ClientError::Malformed("the grant".to_owned(), "it names no granter".to_owned());
    Ok(scoped.ok_or_else(malformed)?.principal)
}

/// The origin of the gateway where a grant is used, once its signatures hold.
///
/// # Errors
/// [`ClientError::Terms`] for a grant that does not hold, [`ClientError::Resolve`], [`ClientError::NoPlace`],
/// [`ClientError::NotPublic`].
pub async fn origin(
    grant: &Value,
    chain: &[Value],
    resolver: &Resolver,
    policy: WebPolicy,
    now: Timestamp,
) -> Result<Origin, ClientError> {
    if chain.len() >= MAX_CHAIN {
        return Err(TermsError::Depth.into());
    }
    let first = chain.first().unwrap_or(grant);
    let principal = granter(first)?;
    let document = resolver.resolve(&principal).await?;
    let known = BTreeMap::from([(principal, document.clone())]);
    verified_terms(grant, chain, known, resolver, now).await?;
    let origin = published(&document).or_else(|| signed(first)).ok_or(ClientError::NoPlace)?;
    let public = Url::parse(origin.as_str()).is_ok_and(|url| policy.allows(&url));
    if public { Ok(origin) } else { Err(ClientError::NotPublic(origin.to_string())) }
}

/// What the granter's document says.
fn published(document: &DidDocument) -> Option<Origin> {
    document.service(MEMORY_EXCHANGE)?.strip_suffix(path::MEMORY_MANIFEST)?.parse().ok()
}

/// What the granter signed: the origin of the list that has the grant's state.
fn signed(grant: &Value) -> Option<Origin> {
    let grant = UnverifiedGrant::parse(grant.clone()).ok()?;
    let status = grant.unverified().status.as_ref()?;
    Url::parse(&status.status_list.uri).ok()?.origin().ascii_serialization().parse().ok()
}

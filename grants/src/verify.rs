//! The one place where a request with a token becomes a [`VerifiedGrant`].

use crate::attenuate;
use crate::checked::CheckedTokens;
use crate::dpop::{self, DpopError, Request};
use crate::grant::{Grant, GrantError, Operation, SignedGrant, UnverifiedGrant};
use crate::limits::{LimitError, Limits, MAX_BELOW, MAX_DEPTH};
use crate::token::{MAX_LIFE, TokenClaims, TokenError};
use oap_identity::{Did, DidDocument, GrantId, Hash, Kid, Timestamp};
use oap_memory::closed_enum;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

closed_enum! {
    /// Where a grant stands (protocol section 5).
    #[allow(missing_docs, reason = "the names say it")]
    GrantState {
        /// Not yet in force.
        Draft = "draft",
        /// In force.
        Active = "active",
        Expired = "expired",
        /// Taken back.
        Revoked = "revoked",
    }
}

/// What a gateway remembers of a grant that it issued or accepted.
#[derive(Debug, Clone)]
#[allow(missing_docs, reason = "the names say it")]
pub struct GrantRecord {
    pub grant: Arc<SignedGrant>,
    /// When it was taken back, if it was.
    pub revoked_at: Option<Timestamp>,
}

impl GrantRecord {
    /// Where the grant stands, by the gateway's clock and the state of the key that signed it. Ancestors are
    /// not asked.
    #[must_use]
    pub fn state(&self, own: &DidDocument, now: Timestamp) -> GrantState {
        let grant = self.grant.grant();
        let key_revoked = own.key(self.grant.kid()).is_some_and(|key| key.revoked_at().is_some());
        if self.revoked_at.is_some() || key_revoked {
            GrantState::Revoked
        } else if grant.expires_at <= now {
            GrantState::Expired
        } else if grant.begins() > now {
            GrantState::Draft
        } else {
            GrantState::Active
        }
    }
}

/// What the gateway knows of grants. Asked anew for every request, and once more in the transaction that records the
/// answer, so that a revocation takes effect before the next answer.
pub trait GrantBook {
    /// The grant of that hash.
    fn by_hash(&self, hash: Hash) -> Option<GrantRecord>;
}

/// The proofs that were seen.
pub trait Replay {
    /// Remembers a proof for [`crate::freshness::REMEMBERED`]; `false` when it was there already.
    fn first_use(&self, key: [u8; 32], now: Timestamp) -> bool;
}

/// What a caller presented.
#[derive(Debug, Clone, Copy)]
pub struct Presented<'a> {
    /// The values of its `Authorization` headers.
    pub authorization: &'a [&'a str],
    /// The values of its `DPoP` headers.
    pub dpop: &'a [&'a str],
    /// The request itself.
    pub request: Request<'a>,
}

/// Why a caller is nobody: no token, or none that counts. No receipt is made; the answer is 401.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs, reason = "the names say it")]
pub enum Unauthenticated {
    /// No `Authorization`, several, or another scheme.
    #[error("an Authorization header with a DPoP or Bearer token is needed; get one at the grant endpoint")]
    NoToken,
    #[error(transparent)]
    Token(#[from] TokenError),
    /// The proof of possession.
    #[error(transparent)]
    Dpop(#[from] DpopError),
    /// A bound token without its proof, or a proof with a token that is not bound.
    #[error(
        "send a token that is bound to a key as \"Authorization: DPoP\" with a proof, and one that is bound to none as \"Bearer\" without"
    )]
    Scheme,
}

/// Why a caller with a valid token is refused. A receipt is made; the answer is 403.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// Unknown here, or another document under the same id.
    #[error("the grant is not known here")]
    UnknownGrant,
    /// Not in force.
    #[error("the grant is {}", .0.as_str())]
    Inactive(GrantState),
    /// One of the grants that it was made from is not in force.
    #[error("a grant that this one was made from is {}", .0.as_str())]
    Ancestor(GrantState),
    /// The token was made for another grantee or granter.
    #[error("the token does not fit its grant")]
    Mismatch,
    /// The token, or the key that signed it, ended while the request was answered.
    #[error("the token has ended; exchange the grant for a new one")]
    Token,
    /// A bearer token for a grant that allows none.
    #[error("the grant allows no bearer token")]
    Bearer,
    /// An operation that the grant does not name.
    #[error("the grant does not allow this operation")]
    Operation(Operation),
    /// A purpose that the grant does not name.
    #[error("purpose: not one that the grant names")]
    Purpose,
    /// Embeddings without the right to.
    #[error("include_embeddings: the grant gives no access to embeddings")]
    Embeddings,
    /// The inference budget is spent.
    #[error("the budget is spent; the granter can refill it")]
    Budget,
    /// A profile that is not known, or not at this level.
    #[error(transparent)]
    Profile(#[from] LimitError),
}

/// A caller whose token and proof were checked, and the grant that it names, not yet judged.
#[derive(Debug, Clone)]
pub struct Authenticated {
    claims: TokenClaims,
    /// The key that signed the token.
    kid: Kid,
}

#[allow(missing_docs, reason = "the names say it")]
impl Authenticated {
    #[must_use]
    pub const fn grantee(&self) -> &Did {
        &self.claims.sub
    }

    /// The grant that the token was made for.
    #[must_use]
    pub const fn grant_id(&self) -> GrantId {
        self.claims.grant_id
    }

    /// The hash of that grant.
    #[must_use]
    pub const fn grant_hash(&self) -> Hash {
        self.claims.grant_hash
    }

    /// Whether the token is bound to no key: whoever has it can present it.
    #[must_use]
    pub const fn is_bearer(&self) -> bool {
        self.claims.cnf.is_none()
    }

    /// That the token still counts: it was good when it came, but it, or the key that signed it, may have ended while the
    /// request was answered.
    ///
    /// # Errors
    /// [`Refused::Token`].
    pub fn still(&self, own: &DidDocument, now: Timestamp) -> Result<(), Refused> {
        let made = Timestamp::from_seconds(self.claims.iat);
        let key = own.key(&self.kid).filter(|key| key.usable_at(made).is_ok());
        if key.is_none() || self.claims.exp <= now.seconds() { Err(Refused::Token) } else { Ok(()) }
    }
}

/// A grantee who proved who it is, for as long as its grant is in force: what a subscription is kept with. The gateway that made it stores
/// it, and nobody else's is ever read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Subscriber {
    claims: TokenClaims,
    kid: Kid,
}

impl Subscriber {
    /// Who presented a token with the proof of its key; `None` for a bearer token, which is whoever's has it.
    #[must_use]
    pub fn of(caller: &Authenticated) -> Option<Self> {
        let Authenticated { claims, kid } = caller.clone();
        claims.cnf.is_some().then_some(Self { claims, kid })
    }

    /// The same caller, as if its token were given out anew, and the grant is still to be judged. Once the key that signed the token is known
    /// as compromised, since whenever, the token has ended: who had the key could have made it.
    #[must_use]
    pub fn caller(&self, own: &DidDocument, now: Timestamp) -> Authenticated {
        let mut claims = self.claims.clone();
        let is_good = own.key(&self.kid).is_some_and(|key| key.revoked_at().is_none());
        claims.exp = if is_good { now.seconds().saturating_add(MAX_LIFE) } else { claims.iat };
        Authenticated { claims, kid: self.kid.clone() }
    }
}

/// Checks token and proof: the first of two steps to a [`VerifiedGrant`]. The proof is used up. The signature of a token that was
/// checked before is not checked again while its key is the same.
///
/// # Errors
/// [`Unauthenticated`].
pub fn authenticate(
    presented: &Presented,
    tokens: &CheckedTokens,
    own: &DidDocument,
    audience: &str,
    replay: &dyn Replay,
    now: Timestamp,
) -> Result<Authenticated, Unauthenticated> {
    let [authorization] = presented.authorization else { return Err(Unauthenticated::NoToken) };
    let (scheme, token) = authorization.split_once(' ').ok_or(Unauthenticated::NoToken)?;
    let bound = match scheme {
        s if s.eq_ignore_ascii_case("dpop") => true,
        s if s.eq_ignore_ascii_case("bearer") => false,
        _ => return Err(Unauthenticated::NoToken),
    };
    let (claims, kid) = tokens.check(token.trim(), own, audience, now)?;
    match (&claims.cnf, bound) {
        (Some(cnf), true) => {
            let proof = dpop::check(presented.dpop, presented.request, token.trim(), now)?;
            if proof.jkt != cnf.jkt {
                return Err(DpopError::Key.into());
            }
            if !replay.first_use(proof.replay_key, now) {
                return Err(DpopError::Replayed.into());
            }
        }
        (None, false) => {}
        _ => return Err(Unauthenticated::Scheme),
    }
    Ok(Authenticated { claims, kid })
}

/// A grant in force, presented by its grantee, for an operation that it allows. Only [`verify`] makes one.
///
/// ```
/// # use oap_grants::{GrantBook, Operation, VerifiedGrant, verify::{Authenticated, Refused, verify}};
/// # use oap_identity::{DidDocument, Timestamp};
/// # fn judge(caller: &Authenticated, book: &dyn GrantBook, own: &DidDocument, now: Timestamp) -> Result<(), Refused> {
/// let grant: VerifiedGrant = verify(caller, Operation::Query, book, own, now)?;
/// # Ok(())
/// # }
/// ```
/// ```compile_fail,E0451
/// # use oap_grants::{SignedGrant, VerifiedGrant};
/// # use std::sync::Arc;
/// # fn judge(signed: Arc<SignedGrant>) {
/// let grant = VerifiedGrant { grant: signed, ancestors: Vec::new() };
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct VerifiedGrant {
    grant: Arc<SignedGrant>,
    ancestors: Vec<Arc<SignedGrant>>,
}

impl VerifiedGrant {
    /// The grant.
    #[must_use]
    pub fn grant(&self) -> &Grant {
        self.grant.grant()
    }

    /// Its hash.
    #[must_use]
    pub fn hash(&self) -> Hash {
        self.grant.hash()
    }

    /// The hashes of the grants that it was made from, first one first.
    #[must_use]
    pub fn ancestors(&self) -> Vec<Hash> {
        self.ancestors.iter().map(|grant| grant.hash()).collect()
    }

    /// The grant and those that it was made from, itself first: whatever one of them limits, limits what is answered.
    pub fn chain(&self) -> impl Iterator<Item = &SignedGrant> {
        std::iter::once(&*self.grant).chain(self.ancestors.iter().rev().map(|grant| &**grant))
    }

    /// Everybody through whose hands it came, its grantee first.
    pub fn grantees(&self) -> impl Iterator<Item = &Did> {
        self.chain().map(|grant| &grant.grant().grantee)
    }

    /// Whether the grantee is the principal's own agent, and nobody else stands between.
    #[must_use]
    pub fn is_own_agent(&self) -> bool {
        self.grantees().all(|grantee| *grantee == self.grant().granter.principal)
    }
}

/// Judges the grant of an authenticated caller: known, in force with all its ancestors, and allowing the
/// operation. Everything is read anew.
///
/// # Errors
/// [`Refused`].
pub fn verify(
    caller: &Authenticated,
    operation: Operation,
    book: &dyn GrantBook,
    own: &DidDocument,
    now: Timestamp,
) -> Result<VerifiedGrant, Refused> {
    let record = book.by_hash(caller.grant_hash()).ok_or(Refused::UnknownGrant)?;
    let grant = record.grant.grant();
    if grant.grant_id != caller.grant_id() {
        return Err(Refused::UnknownGrant);
    }
    if grant.grantee != caller.claims.sub || grant.granter.principal != caller.claims.iss {
        return Err(Refused::Mismatch);
    }
    let ancestors = live(&record, book, own, now)?;
    if caller.claims.cnf.is_none() && !grant.bearer {
        return Err(Refused::Bearer);
    }
    if !grant.operations.contains(&operation) {
        return Err(Refused::Operation(operation));
    }
    Ok(VerifiedGrant { grant: record.grant, ancestors })
}

/// That a grant and everything that it was made from is in force; the grants that it was made from, first one first.
///
/// # Errors
/// [`Refused::Inactive`], [`Refused::Ancestor`], [`Refused::UnknownGrant`].
pub fn live(
    record: &GrantRecord,
    book: &dyn GrantBook,
    own: &DidDocument,
    now: Timestamp,
) -> Result<Vec<Arc<SignedGrant>>, Refused> {
    match record.state(own, now) {
        GrantState::Active => {}
        state => return Err(Refused::Inactive(state)),
    }
    let mut ancestors = Vec::new();
    let mut parent = record.grant.grant().parent;
    while let Some(hash) = parent {
        let above = book.by_hash(hash).ok_or(Refused::UnknownGrant)?;
        match above.state(own, now) {
            GrantState::Active => {}
            state => return Err(Refused::Ancestor(state)),
        }
        parent = above.grant.grant().parent;
        ancestors.push(above.grant);
        if ancestors.len() > usize::from(MAX_DEPTH) {
            return Err(Refused::UnknownGrant);
        }
    }
    ancestors.reverse();
    Ok(ancestors)
}

/// Why a delegated grant is not accepted.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DelegationError {
    /// The document or its signature.
    #[error(transparent)]
    Grant(#[from] GrantError),
    /// Not made from the grant above it.
    #[error("the chain is broken: parent is not the hash of the grant above")]
    Broken,
    /// Not narrower.
    #[error(transparent)]
    Wider(#[from] attenuate::Wider),
    /// A place in the status list, which the gateway gives.
    #[error("status: the gateway gives a delegated grant its place in the status list; leave it out")]
    Status,
    /// Too many.
    #[error("at most {MAX_BELOW} grants can be made from one, those made from them included")]
    TooMany,
    /// The delegator gave that id to another grant.
    #[error("grant_id: another grant was made from the same one under this id; choose a new one")]
    Taken,
    /// Beyond what any grant may be.
    #[error(transparent)]
    Limit(#[from] LimitError),
}

/// Checks one step of a delegation: `child`, signed by the grantee of `parent` with a key in force now, lies
/// within it.
///
/// # Errors
/// [`DelegationError`].
pub fn delegate(
    parent: &SignedGrant,
    child: UnverifiedGrant,
    delegator: &DidDocument,
    limits: &Limits,
    now: Timestamp,
) -> Result<SignedGrant, DelegationError> {
    if child.unverified().parent != Some(parent.hash()) {
        return Err(DelegationError::Broken);
    }
    if child.unverified().status.is_some() {
        return Err(DelegationError::Status);
    }
    if delegator.id() != &parent.grant().grantee {
        let expected = parent.grant().grantee.clone();
        return Err(GrantError::Signer { expected, found: delegator.id().clone() }.into());
    }
    let child = child.verify(delegator, now)?;
    attenuate::check(parent.grant(), child.grant())?;
    limits.check_delegated(child.grant(), now)?;
    Ok(child)
}

//! The short-lived token that a grant is exchanged for (protocol section 5.1).

use crate::grant::SignedGrant;
use oap_identity::jwk::PublicKey;
use oap_identity::random::{self, Random};
use oap_identity::signed::{SignedError, UnverifiedJwt, sign_jwt};
use oap_identity::time::MAX_SKEW;
use oap_identity::{Did, DidDocument, GrantId, Hash, Kid, Signer, Timestamp};
use serde::{Deserialize, Serialize};

/// The `typ` of a token.
pub const TYP: &str = "oap-memory-grant+jwt";
/// Longest life of a token, in seconds.
pub const MAX_LIFE: i64 = 600;

/// The confirmation claim: the key that the token is bound to (RFC 9449 section 6).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Confirmation {
    /// The thumbprint of the key.
    pub jkt: String,
}

/// The claims of a `memory_grant_jwt`. Times are seconds since 1970.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[allow(missing_docs, reason = "the names say it")]
pub struct TokenClaims {
    /// The granter's DID.
    pub iss: Did,
    /// The grantee's DID.
    pub sub: Did,
    /// The origin of the query endpoint.
    pub aud: String,
    /// Made at.
    pub iat: i64,
    /// Valid from.
    pub nbf: i64,
    /// Valid until.
    pub exp: i64,
    pub jti: String,
    pub grant_id: GrantId,
    /// The hash of the grant.
    pub grant_hash: Hash,
    /// The granter's scope.
    pub oap_scope: String,
    /// The key that must be used with it; absent in a plain bearer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cnf: Option<Confirmation>,
}

/// Why a token was refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TokenError {
    /// The JWT or its signature.
    #[error("the token: {0}")]
    Jwt(#[from] SignedError),
    /// Not this gateway's token, or not for this gateway.
    #[error("the token is for another gateway: {0} differs")]
    Elsewhere(&'static str),
    /// Too old.
    #[error("the token has expired; exchange the grant for a new one")]
    Expired,
    /// Not valid yet.
    #[error("the token is not valid yet")]
    Early,
    /// Longer than a token lives.
    #[error("the token's life is longer than {MAX_LIFE} seconds")]
    Life,
}

/// Makes a token for a grant: bound to a key, or a plain bearer where `jkt` is absent.
///
/// Its life is ten minutes, and ends with the grant's. Returns the token and its life in seconds.
///
/// # Errors
/// [`SignedError`] when the claims are not JSON.
pub fn mint(
    grant: &SignedGrant,
    jkt: Option<String>,
    audience: &str,
    signer: &Signer,
    now: Timestamp,
    random: &dyn Random,
) -> Result<(String, i64), SignedError> {
    let iat = now.seconds();
    let exp = (iat + MAX_LIFE).min(grant.grant().expires_at.seconds());
    let id = random::bytes::<16>(random);
    let claims = TokenClaims {
        iss: grant.grant().granter.principal.clone(),
        sub: grant.grant().grantee.clone(),
        aud: audience.to_owned(),
        iat,
        nbf: iat,
        exp,
        jti: Hash::of(&id).to_string()[7..39].to_owned(),
        grant_id: grant.grant().grant_id,
        grant_hash: grant.hash(),
        oap_scope: grant.grant().granter.scope.to_string(),
        cnf: jkt.map(|jkt| Confirmation { jkt }),
    };
    Ok((sign_jwt(signer, TYP, &claims)?, exp - iat))
}

/// Checks a token that this gateway made: signature by one of its own keys, audience, times by its own clock. Says
/// which key signed it, too.
///
/// # Errors
/// [`TokenError`].
pub fn check(
    token: &str,
    own: &DidDocument,
    audience: &str,
    now: Timestamp,
) -> Result<(TokenClaims, Kid), TokenError> {
    let signed = verify(token, own)?;
    signed.counts(own, audience, now)?;
    Ok(signed.says())
}

/// A token whose signature was checked. [`verify`] alone makes one.
#[derive(Debug)]
pub(crate) struct Signed {
    claims: TokenClaims,
    kid: Kid,
    /// The key that it was checked with.
    key: PublicKey,
}

/// Checks the signature of a token, and nothing else.
pub(crate) fn verify(token: &str, own: &DidDocument) -> Result<Signed, TokenError> {
    let jwt = UnverifiedJwt::parse(token, TYP)?;
    let kid = jwt.kid()?;
    let key = *own.key(&kid).ok_or(TokenError::Elsewhere("kid"))?.public();
    Ok(Signed { claims: jwt.verify_with(&key)?, kid, key })
}

impl Signed {
    /// Checks all but the signature: that its key is the same and was in use, who it is from and for, and its times.
    pub(crate) fn counts(&self, own: &DidDocument, audience: &str, now: Timestamp) -> Result<(), TokenError> {
        let claims = &self.claims;
        let key = own.key(&self.kid).filter(|key| *key.public() == self.key);
        key.ok_or(TokenError::Elsewhere("kid"))?.usable_at(Timestamp::from_seconds(claims.iat))?;
        if claims.iss != *own.id() {
            return Err(TokenError::Elsewhere("iss"));
        }
        if claims.aud != audience {
            return Err(TokenError::Elsewhere("aud"));
        }
        // The gateway made the token with its own clock, so that no skew is forgiven at its end.
        let at = now.seconds();
        if claims.exp <= at {
            return Err(TokenError::Expired);
        }
        let skew = MAX_SKEW.as_secs() as i64;
        if claims.nbf > at + skew || claims.iat > at + skew {
            return Err(TokenError::Early);
        }
        if claims.exp.saturating_sub(claims.iat) > MAX_LIFE {
            return Err(TokenError::Life);
        }
        Ok(())
    }

    /// Its claims, and the key that signed it.
    pub(crate) fn says(&self) -> (TokenClaims, Kid) {
        (self.claims.clone(), self.kid.clone())
    }

    /// When it ends, in seconds since 1970.
    pub(crate) const fn ends(&self) -> i64 {
        self.claims.exp
    }
}

//! From grant to token: the grantee proves control of its DID (protocol section 5.1).

use crate::freshness::{self, Freshness};
use crate::grant::StatusRef;
use oap_identity::random::{self, Random};
use oap_identity::signed::{SignedError, UnsignedJwt, UnverifiedJwt};
use oap_identity::{Did, DidDocument, Hash, Kid, Signer, Timestamp};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;
use sha2::{Digest, Sha256};

/// The `typ` of a proof.
pub const TYP: &str = "oap-grant-proof+jwt";
/// Longest life of a proof, in seconds.
pub const MAX_LIFE: i64 = 60;
/// Longest `jti` of a proof, in bytes; DPoP proofs included.
pub const MAX_JTI: usize = 256;
/// Most grants in a chain, the first one included.
pub const MAX_CHAIN: usize = crate::limits::MAX_DEPTH as usize + 1;

/// The body of the request.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[allow(missing_docs, reason = "the names say it")]
pub struct ExchangeRequest {
    pub grant: Value,
    /// The grants that it was made from, first one first, where it is a delegated one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub chain: Vec<Value>,
    /// The grantee's proof.
    pub proof: String,
}

/// What a gateway gives for a grant.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[allow(missing_docs, reason = "the names say it")]
pub struct ExchangeResponse {
    pub memory_grant_jwt: String,
    /// Its life, in seconds.
    pub expires_in: i64,
    /// `DPoP` or `Bearer`.
    pub token_type: String,
    /// The receipt of the exchange.
    pub receipt_id: String,
    /// Of a delegated grant, where its state is published: the gateway gave it the place.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<StatusRef>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
struct ProofClaims {
    iss: Did,
    sub: Did,
    aud: String,
    jti: String,
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "stated")]
    nbf: Option<i64>,
    iat: i64,
    exp: i64,
    /// Which grant the proof is for.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "stated")]
    grant_hash: Option<Hash>,
}

/// A claim that may be left out; where it stands it has a value, and `null` is none.
pub(crate) fn stated<'de, D: Deserializer<'de>, T: Deserialize<'de>>(
    claim: D,
) -> Result<Option<T>, D::Error> {
    T::deserialize(claim).map(Some)
}

/// Why a proof was refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ProofError {
    /// The JWT or its signature.
    #[error("the proof: {0}")]
    Jwt(#[from] SignedError),
    /// Not by the grantee.
    #[error("the proof's {0} must be the grantee")]
    Grantee(&'static str),
    /// For another endpoint.
    #[error("the proof's aud must be {0}")]
    Audience(String),
    /// For another grant.
    #[error("the proof is for another grant")]
    OtherGrant,
    /// Too old, too long, or from the future.
    #[error("the proof must be made now and live at most {MAX_LIFE} seconds")]
    Time,
    /// An empty or endless `jti`.
    #[error("the proof's jti must have 1 to {MAX_JTI} bytes")]
    Jti,
    /// Seen before.
    #[error("the proof was used before")]
    Replayed,
}

/// A proof as received, not verified.
#[derive(Debug)]
pub struct UnverifiedProof<'a> {
    jwt: UnverifiedJwt<'a>,
    kid: Kid,
}

/// A proof that passed every check but the one for replay.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Proof {
    /// The thumbprint of the key that signed it.
    pub jkt: String,
    /// What replay is recognized by: grantee and `jti`.
    pub replay_key: [u8; 32],
}

impl<'a> UnverifiedProof<'a> {
    /// Reads a proof.
    ///
    /// # Errors
    /// [`ProofError::Jwt`].
    pub fn parse(proof: &'a str) -> Result<Self, ProofError> {
        let jwt = UnverifiedJwt::parse(proof, TYP)?;
        let kid = jwt.kid()?;
        Ok(Self { jwt, kid })
    }

    /// The key that it says it is signed with: whose proof it would be.
    #[must_use]
    pub const fn kid(&self) -> &Kid {
        &self.kid
    }

    /// Checks it: signed by a key that the grantee's document has now, for this endpoint and grant, fresh.
    ///
    /// # Errors
    /// [`ProofError`].
    pub fn verify(
        &self,
        grantee: &DidDocument,
        endpoint: &str,
        grant: Hash,
        now: Timestamp,
    ) -> Result<Proof, ProofError> {
        if self.kid.did() != grantee.id() {
            return Err(ProofError::Grantee("kid"));
        }
        let key = grantee.key(&self.kid).ok_or(SignedError::OtherKey)?;
        let claims: ProofClaims = self.jwt.verify(key, now)?;
        self.check(&claims, grantee.id(), endpoint, grant, now)?;
        let replay_key = Sha256::digest(format!("{}\n{}", grantee.id(), claims.jti)).into();
        Ok(Proof { jkt: key.public().thumbprint(), replay_key })
    }

    /// Checks what it says, without its signature: what fails here need not be looked into any further, so that no DID
    /// document is fetched for it. What passes is not proved.
    ///
    /// # Errors
    /// [`ProofError`].
    pub fn plausible(
        &self,
        grantee: &Did,
        endpoint: &str,
        grant: Hash,
        now: Timestamp,
    ) -> Result<(), ProofError> {
        let claims: ProofClaims = self.jwt.unverified_claims()?;
        self.check(&claims, grantee, endpoint, grant, now)
    }

    fn check(
        &self,
        claims: &ProofClaims,
        grantee: &Did,
        endpoint: &str,
        grant: Hash,
        now: Timestamp,
    ) -> Result<(), ProofError> {
        if self.kid.did() != grantee {
            return Err(ProofError::Grantee("kid"));
        }
        if claims.iss != *grantee {
            return Err(ProofError::Grantee("iss"));
        }
        if claims.sub != *grantee {
            return Err(ProofError::Grantee("sub"));
        }
        if claims.aud != endpoint {
            return Err(ProofError::Audience(endpoint.to_owned()));
        }
        if claims.grant_hash.is_some_and(|hash| hash != grant) {
            return Err(ProofError::OtherGrant);
        }
        // `exp` is the first second in which it has ended.
        let fresh = Freshness::of(claims.iat, claims.exp.saturating_sub(1), MAX_LIFE - 1);
        let is_fresh =
            fresh.is_some_and(|fresh| fresh.contains(now)) && freshness::holds(claims.nbf, None, now);
        if claims.exp <= claims.iat || !is_fresh {
            return Err(ProofError::Time);
        }
        if !(1..=MAX_JTI).contains(&claims.jti.len()) {
            return Err(ProofError::Jti);
        }
        Ok(())
    }
}

/// Makes a proof, as a grantee does.
///
/// # Errors
/// [`SignedError`] when the claims are not JSON.
pub fn prove(
    signer: &Signer,
    endpoint: &str,
    grant: Hash,
    now: Timestamp,
    random: &dyn Random,
) -> Result<String, SignedError> {
    Ok(unsigned(signer.kid(), endpoint, grant, now, random)?.signed_by(signer))
}

/// The same for a key that signs elsewhere.
///
/// # Errors
/// [`SignedError`] when the claims are not JSON.
pub fn unsigned(
    kid: &Kid,
    endpoint: &str,
    grant: Hash,
    now: Timestamp,
    random: &dyn Random,
) -> Result<UnsignedJwt, SignedError> {
    let claims = ProofClaims {
        iss: kid.did().clone(),
        sub: kid.did().clone(),
        aud: endpoint.to_owned(),
        jti: Hash::of(&random::bytes::<16>(random)).to_string()[7..39].to_owned(),
        nbf: None,
        iat: now.seconds(),
        exp: now.seconds() + MAX_LIFE,
        grant_hash: Some(grant),
    };
    UnsignedJwt::with_kid(kid, TYP, &claims)
}

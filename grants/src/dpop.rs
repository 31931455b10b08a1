//! Proof of possession (RFC 9449). The checks of its section 4.3, in its order, are marked with their numbers.

use crate::exchange::{MAX_JTI, stated};
use crate::freshness::{self, Freshness};
use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use oap_identity::jwk::PublicKey;
use oap_identity::random::{self, Random};
use oap_identity::signed::{SignedError, UnsignedJwt, UnverifiedJwt};
use oap_identity::{Signer, Timestamp};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use url::Url;

/// The `typ` of a proof.
pub const TYP: &str = "dpop+jwt";

/// The claims of a proof.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct ProofClaims {
    jti: String,
    htm: String,
    htu: String,
    iat: i64,
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "stated")]
    nbf: Option<i64>,
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "stated")]
    exp: Option<i64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    ath: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "stated")]
    nonce: Option<String>,
}

/// Why a proof was refused, by the number of the check in RFC 9449 section 4.3.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DpopError {
    /// 1: none, or more than one.
    #[error("exactly one DPoP header is needed")]
    Headers,
    /// 2 to 7: not a JWT of the right kind, or its signature does not verify.
    #[error("the DPoP proof: {0}")]
    Jwt(#[from] SignedError),
    /// 3: an empty or endless `jti`.
    #[error("the DPoP proof's jti must have 1 to {MAX_JTI} bytes")]
    Jti,
    /// 8: for another method.
    #[error("the DPoP proof's htm is not this request's method")]
    Method,
    /// 9: for another place.
    #[error("the DPoP proof's htu is not this request's URL without query and fragment")]
    Url,
    /// 10: a nonce that nobody gave out.
    #[error("the DPoP proof has a nonce, and this gateway gives out none")]
    Nonce,
    /// 11: too old or from the future.
    #[error("the DPoP proof's iat is more than five minutes from the gateway's time")]
    Time,
    /// 11: by what it says of itself.
    #[error("the DPoP proof's nbf or exp says that it does not hold now")]
    Ended,
    /// 12: for another token.
    #[error("the DPoP proof's ath is not the hash of the token")]
    Ath,
    /// 12: by another key.
    #[error("the DPoP proof is signed by another key than the one that the token is bound to")]
    Key,
    /// By a key that the caller of [`check_key`] does not know: the signature was not looked at.
    #[error("the DPoP proof is signed by a key that is nobody's here")]
    Unknown,
    /// Seen before (section 11.1).
    #[error("the DPoP proof was used before")]
    Replayed,
}

/// The request that a proof is for.
#[derive(Debug, Clone, Copy)]
pub struct Request<'a> {
    /// Its method, such as `POST`.
    pub method: &'a str,
    /// Its URL as the gateway publishes it, never as the caller's headers say.
    pub url: &'a str,
}

/// A proof that passed every check but the one for replay.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Proof {
    /// The thumbprint of its key.
    pub jkt: String,
    /// When it was made, as it says, in seconds since 1970.
    pub iat: i64,
    /// What replay is recognized by: key and `jti`.
    pub replay_key: [u8; 32],
}

/// Checks a proof for a request that carries a token.
///
/// # Errors
/// [`DpopError`].
pub fn check(headers: &[&str], request: Request, token: &str, now: Timestamp) -> Result<Proof, DpopError> {
    judge(headers, request, |_| true, |ath| ath == Some(hash(token).as_str()), now).map(|(_, proof)| proof)
}

/// Checks a proof for a request that asks for a token (RFC 9449 section 5).
///
/// # Errors
/// [`DpopError`].
pub fn check_without_token(headers: &[&str], request: Request, now: Timestamp) -> Result<Proof, DpopError> {
    judge(headers, request, |_| true, |_| true, now).map(|(_, proof)| proof)
}

/// Checks a proof by a key that is known, for a request with a token or without one; the key is who proves. A proof for a token
/// proves nothing without it, and one by another key is not looked at further.
///
/// # Errors
/// [`DpopError`].
pub fn check_key(
    headers: &[&str],
    request: Request,
    token: Option<&str>,
    is_known: impl FnOnce(&PublicKey) -> bool,
    now: Timestamp,
) -> Result<(PublicKey, Proof), DpopError> {
    judge(headers, request, is_known, |ath| ath == token.map(hash).as_deref(), now)
}

/// Checks a proof whose key and whose `ath` are what they must be.
fn judge(
    headers: &[&str],
    request: Request,
    is_known: impl FnOnce(&PublicKey) -> bool,
    is_ath: impl FnOnce(Option<&str>) -> bool,
    now: Timestamp,
) -> Result<(PublicKey, Proof), DpopError> {
    let [header] = headers else { return Err(DpopError::Headers) }; // 1
    let jwt = UnverifiedJwt::parse(header, TYP)?; // 2, 4, 5
    let key: PublicKey = jwt.jwk()?; // 7
    if !is_known(&key) {
        return Err(DpopError::Unknown);
    }
    // What is no signature at all is told like one that does not verify.
    let claims: ProofClaims = jwt.verify_with(&key).map_err(|error| match error {
        SignedError::Malformed => SignedError::BadSignature,
        error => error,
    })?; // 3, 6
    if !(1..=MAX_JTI).contains(&claims.jti.len()) {
        return Err(DpopError::Jti);
    }
    if claims.htm != request.method {
        return Err(DpopError::Method); // 8
    }
    if !same_place(&claims.htu, request.url) {
        return Err(DpopError::Url); // 9
    }
    if claims.nonce.is_some() {
        return Err(DpopError::Nonce); // 10
    }
    if !Freshness::of(claims.iat, claims.iat, 0).is_some_and(|fresh| fresh.contains(now)) {
        return Err(DpopError::Time); // 11
    }
    if !freshness::holds(claims.nbf, claims.exp, now) {
        return Err(DpopError::Ended); // 11
    }
    if !is_ath(claims.ath.as_deref()) {
        return Err(DpopError::Ath); // 12, first half; the key is compared with the token's by the caller
    }
    let jkt = key.thumbprint();
    let replay_key = Sha256::digest(format!("{jkt}\n{}", claims.jti)).into();
    Ok((key, Proof { jkt, iat: claims.iat, replay_key }))
}

/// Whether two URLs name the same place, queries and fragments aside.
fn same_place(htu: &str, url: &str) -> bool {
    let place = |text: &str| {
        let mut url = Url::parse(text).ok()?;
        url.set_query(None);
        url.set_fragment(None);
        Some(url)
    };
    place(htu).is_some_and(|htu| Some(htu) == place(url))
}

/// The `ath` of a token: base64url of its SHA-256.
#[must_use]
pub fn hash(token: &str) -> String {
    URL_SAFE_NO_PAD.encode(Sha256::digest(token))
}

/// Makes a proof for a request, as a client does.
///
/// # Errors
/// [`SignedError`] when the claims are not JSON.
pub fn prove(
    signer: &Signer,
    request: Request,
    token: &str,
    now: Timestamp,
    random: &dyn Random,
) -> Result<String, SignedError> {
    Ok(unsigned(signer.public(), request, token, now, random)?.signed_by(signer))
}

/// The same for a request without a token, which the key alone says who it is from.
///
/// # Errors
/// [`SignedError`] when the claims are not JSON.
pub fn prove_key(
    signer: &Signer,
    request: Request,
    now: Timestamp,
    random: &dyn Random,
) -> Result<String, SignedError> {
    Ok(claimed(signer.public(), request, None, now, random)?.signed_by(signer))
}

/// The same for a key that signs elsewhere.
///
/// # Errors
/// [`SignedError`] when the claims are not JSON.
pub fn unsigned(
    key: &PublicKey,
    request: Request,
    token: &str,
    now: Timestamp,
    random: &dyn Random,
) -> Result<UnsignedJwt, SignedError> {
    claimed(key, request, Some(token), now, random)
}

fn claimed(
    key: &PublicKey,
    request: Request,
    token: Option<&str>,
    now: Timestamp,
    random: &dyn Random,
) -> Result<UnsignedJwt, SignedError> {
    let claims = ProofClaims {
        jti: URL_SAFE_NO_PAD.encode(random::bytes::<16>(random)),
        htm: request.method.to_owned(),
        htu: request.url.to_owned(),
        iat: now.seconds(),
        nbf: None,
        exp: None,
        ath: token.map(hash),
        nonce: None,
    };
    UnsignedJwt::with_jwk(key, TYP, &claims)
}

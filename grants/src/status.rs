//! The state of every grant, published so that others can check (Token Status List, RFC draft
//! `ietf-oauth-status-list`): one bit a grant, at a random place, so that the list does not count grants.

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use flate2::Compression;
use flate2::read::ZlibDecoder;
use flate2::write::ZlibEncoder;
use oap_identity::random::{self, Random};
use oap_identity::signed::{SignedError, UnverifiedJwt, sign_jwt};
use oap_identity::time::MAX_SKEW;
use oap_identity::{Did, DidDocument, Documents, Kid, Signer, Timestamp};
use serde::{Deserialize, Serialize};
use std::io::{Read, Write};

/// The `typ` of a status list.
pub const TYP: &str = "statuslist+jwt";
/// Places in a list.
pub const SIZE: u32 = 1 << 17;
/// How long a list may be used, in seconds (OAP-CORE 22.1, RFC 0003 section 3.5).
pub const TTL: i64 = 300;

/// Why a list was refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum StatusError {
    /// The JWT or its signature.
    #[error(transparent)]
    Jwt(#[from] SignedError),
    /// Not a list of one bit a place.
    #[error("not a status list of one bit a place")]
    Malformed,
    /// Not by the issuer, not for this address, or too old.
    #[error("the status list's {0} does not fit")]
    Claim(&'static str),
}

impl StatusError {
    /// The stable name of the check that failed.
    #[must_use]
    pub const fn id(&self) -> &'static str {
        match self {
            Self::Jwt(_) => "status.jwt",
            Self::Malformed => "status.malformed",
            Self::Claim(_) => "status.claim",
        }
    }
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Claims {
    iss: String,
    sub: String,
    iat: i64,
    exp: i64,
    ttl: i64,
    status_list: List,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct List {
    bits: u8,
    lst: String,
}

/// A free place, chosen at random.
#[must_use]
pub fn choose(mut taken: impl FnMut(u32) -> bool, random: &dyn Random) -> Option<u32> {
    (0..1000)
        .map(|_| u32::from_le_bytes(random::bytes(random)) % SIZE)
        .find(|place| !taken(*place))
        .or_else(|| (0..SIZE).find(|place| !taken(*place)))
}

/// The signed list at an address, with the places of revoked grants set.
///
/// # Errors
/// [`SignedError`] when the claims are not JSON.
pub fn publish(
    revoked: impl Iterator<Item = u32>,
    address: &str,
    signer: &Signer,
    now: Timestamp,
) -> Result<String, SignedError> {
    let mut bits = vec![0u8; (SIZE / 8) as usize];
    for place in revoked {
        if let Some(byte) = bits.get_mut((place / 8) as usize) {
            *byte |= 1 << (place % 8);
        }
    }
    let mut encoder = ZlibEncoder::new(Vec::new(), Compression::best());
    let packed = encoder.write_all(&bits).and_then(|()| encoder.finish());
    let packed = packed.map_err(|e| SignedError::Claims(e.to_string()))?;
    let claims = Claims {
        iss: signer.did().to_string(),
        sub: address.to_owned(),
        iat: now.seconds(),
        exp: now.seconds() + TTL,
        ttl: TTL,
        status_list: List { bits: 1, lst: URL_SAFE_NO_PAD.encode(packed) },
    };
    sign_jwt(signer, TYP, &claims)
}

/// A status list whose signature, issuer and times were checked. Only [`read`] makes one.
#[derive(Debug, Clone)]
pub struct VerifiedList {
    /// Whose grants.
    pub issuer: Did,
    /// Where it is published.
    pub address: String,
    /// When it was made.
    pub issued_at: Timestamp,
    /// Until when it may be used.
    pub expires_at: Timestamp,
    bits: Vec<u8>,
}

impl VerifiedList {
    /// Whether the grant at a place is revoked.
    ///
    /// # Errors
    /// [`StatusError::Malformed`] for a place that the list does not have.
    pub fn is_revoked(&self, place: u32) -> Result<bool, StatusError> {
        let byte = self.bits.get((place / 8) as usize).ok_or(StatusError::Malformed)?;
        Ok(byte >> (place % 8) & 1 == 1)
    }

    /// How many places are set.
    #[must_use]
    pub fn revoked(&self) -> u32 {
        self.bits.iter().map(|byte| byte.count_ones()).sum()
    }
}

/// The issuer that a list names; nothing is verified.
///
/// # Errors
/// [`StatusError::Jwt`].
pub fn claimed_issuer(list: &str) -> Result<Did, StatusError> {
    Ok(claimed_key(list)?.did().clone())
}

/// The key that a list names as its issuer's; nothing is verified.
///
/// # Errors
/// [`StatusError::Jwt`].
pub fn claimed_key(list: &str) -> Result<Kid, StatusError> {
    Ok(UnverifiedJwt::parse(list, TYP)?.kid()?)
}

/// Reads and checks a list.
///
/// # Errors
/// [`StatusError`].
pub fn read(list: &str, documents: &dyn Documents, now: Timestamp) -> Result<VerifiedList, StatusError> {
    let jwt = UnverifiedJwt::parse(list, TYP)?;
    let kid = jwt.kid()?;
    let issuer = documents.document(kid.did()).ok_or(SignedError::OtherKey)?;
    let key = issuer.key(&kid).ok_or(SignedError::OtherKey)?;
    let claims: Claims = jwt.verify(key, now)?;
    if claims.iss != issuer.id().as_str() {
        return Err(StatusError::Claim("iss"));
    }
    if issuer.service("OAPRevocationStatus").is_some_and(|published| published != claims.sub) {
        return Err(StatusError::Claim("sub"));
    }
    let (issued_at, expires_at) = (Timestamp::from_seconds(claims.iat), Timestamp::from_seconds(claims.exp));
    if issued_at > now.plus(MAX_SKEW) {
        return Err(StatusError::Claim("iat"));
    }
    if claims.exp <= now.seconds() || claims.exp <= claims.iat {
        return Err(StatusError::Claim("exp"));
    }
    if claims.status_list.bits != 1 {
        return Err(StatusError::Malformed);
    }
    let packed = URL_SAFE_NO_PAD.decode(&claims.status_list.lst).map_err(|_| StatusError::Malformed)?;
    let mut bits = Vec::new();
    let limit = u64::from(SIZE / 8) * 8;
    ZlibDecoder::new(packed.as_slice())
        .take(limit)
        .read_to_end(&mut bits)
        .map_err(|_| StatusError::Malformed)?;
    Ok(VerifiedList { issuer: issuer.id().clone(), address: claims.sub, issued_at, expires_at, bits })
}

/// Reads and checks a list that was fetched from an address.
///
/// # Errors
/// [`StatusError`].
pub fn read_at(
    list: &str,
    address: &str,
    issuer: &DidDocument,
    now: Timestamp,
) -> Result<VerifiedList, StatusError> {
    let list = read(list, issuer, now)?;
    if list.address != address {
        return Err(StatusError::Claim("sub"));
    }
    Ok(list)
}

/// Whether the grant at a place is revoked, according to a list that was fetched from an address.
///
/// # Errors
/// [`StatusError`].
pub fn is_revoked(
    list: &str,
    place: u32,
    address: &str,
    issuer: &DidDocument,
    now: Timestamp,
) -> Result<bool, StatusError> {
    read_at(list, address, issuer, now)?.is_revoked(place)
}

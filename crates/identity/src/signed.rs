//! Two envelopes for a signature: a document with a detached JWS (protocol section 3), and a JWT.
//!
//! Both start unverified. The unverified types give away the key id, so that the caller can find the key,
//! and nothing else before the signature is checked.

use crate::did::Kid;
use crate::document::VerificationKey;
use crate::jwk::{KeyError, PublicKey};
use crate::key::Signer;
use crate::time::Timestamp;
use crate::{jose, json};
use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use jsonwebtoken::{Algorithm, DecodingKey, Header, Validation};
use serde::Serialize;
use serde::de::{DeserializeOwned, IgnoredAny};
use serde_json::{Value, json};

/// Longest JWT that is read, in bytes.
pub const MAX_JWT: usize = 16 * 1024;

/// Why a signed thing was refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SignedError {
    /// Not three base64url parts with a JSON header.
    #[error("not a compact JWS of three base64url parts")]
    Malformed,
    /// `alg` is not EdDSA.
    #[error("alg must be EdDSA")]
    Algorithm,
    /// `typ` is not the one of this kind of token.
    #[error("typ must be {0}")]
    Type(&'static str),
    /// A header member that changes the meaning (`crit`, `b64`), or one that must not be there.
    #[error("header member {0:?} is not accepted")]
    Header(&'static str),
    /// No usable `kid`.
    #[error("the header needs a kid: <did>#<key>")]
    Kid,
    /// The key is not the one that the header names.
    #[error("the key is not the one that kid names")]
    OtherKey,
    /// The key had been retired when the signature was made.
    #[error("the key was retired on {0}")]
    Retired(Timestamp),
    /// The key is marked as compromised since then.
    #[error("the key is compromised since {0}")]
    Revoked(Timestamp),
    /// The key was not listed yet when the signature was made.
    #[error("the key was not listed before {0}")]
    NotYet(Timestamp),
    /// The signature does not verify.
    #[error("the signature does not verify")]
    BadSignature,
    /// The document has no `signature` of text.
    #[error("the document needs a \"signature\"")]
    Missing,
    /// The claims are not JSON of the expected shape; the text names the member.
    #[error("claims: {0}")]
    Claims(String),
}

impl From<KeyError> for SignedError {
    fn from(_: KeyError) -> Self {
        Self::BadSignature
    }
}

/// Adds `signature` to a document: a compact JWS with detached payload (RFC 7515 appendix F) over the
/// RFC 8785 bytes of the document without `signature`.
///
/// # Errors
/// [`SignedError::Claims`] when the document is no object or has no canonical form.
pub fn sign_document(document: &mut Value, signer: &Signer) -> Result<(), SignedError> {
    document["signature"] = sign_detached(&unsigned(document)?, signer).into();
    Ok(())
}

/// A document's `signature`, read but not checked.
#[derive(Debug)]
pub struct UnverifiedSignature<'a> {
    document: &'a Value,
    kid: Kid,
    header: &'a str,
    signature: Vec<u8>,
}

impl<'a> UnverifiedSignature<'a> {
    /// Reads the `signature` member.
    ///
    /// # Errors
    /// Any of [`SignedError`] but the ones about a key's state.
    pub fn of(document: &'a Value) -> Result<Self, SignedError> {
        let compact = document.get("signature").and_then(Value::as_str).ok_or(SignedError::Missing)?;
        let mut parts = compact.split('.');
        let (Some(header), Some(""), Some(signature), None) =
            (parts.next(), parts.next(), parts.next(), parts.next())
        else {
            return Err(SignedError::Malformed);
        };
        let members = header_members(header)?;
        let kid = kid(&members)?;
        let signature = URL_SAFE_NO_PAD.decode(signature).map_err(|_| SignedError::Malformed)?;
        Ok(Self { document, kid, header, signature })
    }

    /// The key that the signature names.
    #[must_use]
    pub const fn kid(&self) -> &Kid {
        &self.kid
    }

    /// Checks the signature against that key, as it stood at the time of signing.
    ///
    /// # Errors
    /// [`SignedError::OtherKey`], [`SignedError::Retired`], [`SignedError::Revoked`], [`SignedError::BadSignature`].
    pub fn verify(&self, key: &VerificationKey, signed_at: Timestamp) -> Result<(), SignedError> {
        key.usable_at(signed_at)?;
        self.is_by(key)
    }

    /// Checks the signature alone: whether that key made it, not whether it counts.
    ///
    /// # Errors
    /// [`SignedError::OtherKey`], [`SignedError::BadSignature`].
    pub fn is_by(&self, key: &VerificationKey) -> Result<(), SignedError> {
        if *key.kid() != self.kid {
            return Err(SignedError::OtherKey);
        }
        let input = signing_input(self.header, &URL_SAFE_NO_PAD.encode(unsigned(self.document)?));
        Ok(key.public().verify(input.as_bytes(), &self.signature)?)
    }
}

/// A compact JWS with detached payload over these bytes, as [`sign_document`] puts it into a document whose RFC 8785 form, without
/// `signature`, they are.
#[must_use]
pub fn sign_detached(canonical: &[u8], signer: &Signer) -> String {
    let header = URL_SAFE_NO_PAD.encode(json!({"alg": "EdDSA", "kid": signer.kid()}).to_string());
    let signature = signer.sign(signing_input(&header, &URL_SAFE_NO_PAD.encode(canonical)).as_bytes());
    format!("{header}..{signature}")
}

/// The RFC 8785 bytes of a document without `signature`.
fn unsigned(document: &Value) -> Result<Vec<u8>, SignedError> {
    let Value::Object(members) = document else {
        return Err(SignedError::Claims("the document is not an object".into()));
    };
    let mut unsigned = members.clone();
    unsigned.remove("signature");
    json::canonical(&unsigned).map_err(|e| SignedError::Claims(e.to_string()))
}

fn signing_input(header: &str, payload: &str) -> String {
    format!("{header}.{payload}")
}

fn header_members(header: &str) -> Result<Value, SignedError> {
    let bytes = URL_SAFE_NO_PAD.decode(header).map_err(|_| SignedError::Malformed)?;
    let members = json::parse(&bytes).map_err(|_| SignedError::Malformed)?;
    if members["alg"] != "EdDSA" {
        return Err(SignedError::Algorithm);
    }
    for name in ["crit", "b64", "jku", "x5u", "x5c", "zip"] {
        if members.get(name).is_some() {
            return Err(SignedError::Header(name));
        }
    }
    Ok(members)
}

fn kid(members: &Value) -> Result<Kid, SignedError> {
    members["kid"].as_str().and_then(|kid| kid.parse().ok()).ok_or(SignedError::Kid)
}

/// A JWT that lacks its signature: for a key that signs elsewhere.
#[derive(Debug, Clone)]
pub struct UnsignedJwt(String);

impl UnsignedJwt {
    /// Claims of that `typ`, to be signed with the key of that id.
    ///
    /// # Errors
    /// [`SignedError::Claims`] when the claims are not JSON.
    pub fn with_kid<C: Serialize>(kid: &Kid, typ: &'static str, claims: &C) -> Result<Self, SignedError> {
        let mut header = Header::new(Algorithm::EdDSA);
        header.typ = Some(typ.to_owned());
        header.kid = Some(kid.to_string());
        Self::of(&header, claims)
    }

    /// The same with the public key itself in the header, as DPoP has it (RFC 9449 section 4.2).
    ///
    /// # Errors
    /// [`SignedError::Claims`] when the claims are not JSON.
    pub fn with_jwk<C: Serialize>(
        key: &PublicKey,
        typ: &'static str,
        claims: &C,
    ) -> Result<Self, SignedError> {
        Self::of(&json!({"alg": "EdDSA", "jwk": key.jwk(), "typ": typ}), claims)
    }

    fn of<H: Serialize, C: Serialize>(header: &H, claims: &C) -> Result<Self, SignedError> {
        let invalid = |e: serde_json::Error| SignedError::Claims(e.to_string());
        let header = URL_SAFE_NO_PAD.encode(serde_json::to_vec(header).map_err(invalid)?);
        let claims = URL_SAFE_NO_PAD.encode(serde_json::to_vec(claims).map_err(invalid)?);
        Ok(Self(format!("{header}.{claims}")))
    }

    /// What is to be signed.
    #[must_use]
    pub const fn message(&self) -> &[u8] {
        self.0.as_bytes()
    }

    /// The JWT with the signature of its message.
    #[must_use]
    pub fn signed(self, signature: &[u8; 64]) -> String {
        format!("{}.{}", self.0, URL_SAFE_NO_PAD.encode(signature))
    }

    /// The JWT, signed with a key that is here.
    #[must_use]
    pub fn signed_by(self, signer: &Signer) -> String {
        let signature = signer.signature(self.message());
        self.signed(&signature)
    }
}

/// Signs claims as a JWT of that `typ`, with the signer's `kid`.
///
/// # Errors
/// [`SignedError::Claims`] when the claims are not JSON.
pub fn sign_jwt<C: Serialize>(signer: &Signer, typ: &'static str, claims: &C) -> Result<String, SignedError> {
    Ok(UnsignedJwt::with_kid(signer.kid(), typ, claims)?.signed_by(signer))
}

/// A JWT, read but not checked.
#[derive(Debug)]
pub struct UnverifiedJwt<'a> {
    token: &'a str,
    header: Value,
}

impl<'a> UnverifiedJwt<'a> {
    /// Reads the header: three parts, EdDSA, the expected `typ`, nothing critical.
    ///
    /// # Errors
    /// [`SignedError::Malformed`], [`SignedError::Algorithm`], [`SignedError::Type`], [`SignedError::Header`].
    pub fn parse(token: &'a str, typ: &'static str) -> Result<Self, SignedError> {
        jose::install();
        if token.len() > MAX_JWT {
            return Err(SignedError::Malformed);
        }
        let mut parts = token.split('.');
        let (Some(header), Some(_), Some(_), None) = (parts.next(), parts.next(), parts.next(), parts.next())
        else {
            return Err(SignedError::Malformed);
        };
        let header = header_members(header)?;
        if header["typ"] != typ {
            return Err(SignedError::Type(typ));
        }
        Ok(Self { token, header })
    }

    /// The key that the header names.
    ///
    /// # Errors
    /// [`SignedError::Kid`] when it names none.
    pub fn kid(&self) -> Result<Kid, SignedError> {
        kid(&self.header)
    }

    /// The key that the header carries.
    ///
    /// # Errors
    /// [`SignedError::Header`] when it carries none, or one that is private or of another kind.
    pub fn jwk(&self) -> Result<PublicKey, SignedError> {
        PublicKey::from_jwk(&self.header["jwk"]).map_err(|_| SignedError::Header("jwk"))
    }

    /// The claims, once the signature is checked against the key of the header's `kid` as it stands now.
    ///
    /// # Errors
    /// As [`UnverifiedSignature::verify`], and [`SignedError::Claims`].
    pub fn verify<C: DeserializeOwned>(
        &self,
        key: &VerificationKey,
        now: Timestamp,
    ) -> Result<C, SignedError> {
        if *key.kid() != self.kid()? {
            return Err(SignedError::OtherKey);
        }
        key.usable_at(now)?;
        self.verify_with(key.public())
    }

    /// The claims, once the signature is checked against a bare key.
    ///
    /// # Errors
    /// [`SignedError::BadSignature`], [`SignedError::Claims`].
    pub fn verify_with<C: DeserializeOwned>(&self, key: &PublicKey) -> Result<C, SignedError> {
        let mut validation = Validation::new(Algorithm::EdDSA);
        // Times are compared with the gateway's clock by the caller; the library would read its own.
        validation.validate_exp = false;
        validation.validate_nbf = false;
        validation.validate_aud = false;
        validation.required_spec_claims.clear();
        let key = DecodingKey::from_ed_der(key.as_bytes());
        use jsonwebtoken::errors::ErrorKind;
        jsonwebtoken::decode::<IgnoredAny>(self.token, &key, &validation).map_err(|e| match e.kind() {
            ErrorKind::InvalidSignature => SignedError::BadSignature,
            _ => SignedError::Malformed,
        })?;
        // The library reads claims as JSON allows; the wire allows less.
        self.unverified_claims()
    }

    /// The claims, whoever signed them: to refuse what is not worth a look at the signature, and for nothing else.
    ///
    /// # Errors
    /// [`SignedError::Malformed`], [`SignedError::Claims`].
    pub fn unverified_claims<C: DeserializeOwned>(&self) -> Result<C, SignedError> {
        let payload = self.token.split('.').nth(1).unwrap_or_default();
        let payload = URL_SAFE_NO_PAD.decode(payload).map_err(|_| SignedError::Malformed)?;
        json::parse_as(&payload).map_err(|e| SignedError::Claims(e.to_string()))
    }
}

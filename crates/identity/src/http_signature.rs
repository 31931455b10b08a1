//! HTTP messages signed by a key of a DID (RFC 9421): one profile, written and read strictly (protocol section 17.3).
//!
//! The profile is that of draft-ietf-wimse-http-signature as far as it goes without workload tokens: a request covers `@method`,
//! `@request-target` and `content-digest`, its answer `@status`, the first two of the request, and its own `content-digest`. The
//! parameters are `created`, `expires`, `nonce`, `keyid` (a verification method) and `tag`, in this order; there is one signature, named
//! `oap`, by Ed25519. An answer has the nonce of its request. Whatever else there is makes a message unsigned: nothing is left to choose
//! for whoever writes one.
//!
//! ```text
//! Content-Digest: sha-256=:<base64>:
//! Signature-Input: oap=("@method" "@request-target" "content-digest");created=1;expires=61;nonce="…";keyid="did:web:a.example#key-1";tag="…"
//! Signature: oap=:<base64>:
//! ```

use crate::did::Kid;
use crate::document::DidDocument;
use crate::hash::Hash;
use crate::key::Signer;
use crate::random::{self, Random};
use crate::signed::SignedError;
use crate::time::{MAX_SKEW, Timestamp};
use base64::{Engine, engine::general_purpose::STANDARD, engine::general_purpose::URL_SAFE_NO_PAD};
use std::fmt;
use std::time::Duration;

/// Longest value of each of the three headers, in bytes. A key id has a DID of 512.
pub const MAX_HEADER: usize = 1024;
/// Longest life of a signature, from `created` to `expires`.
pub const MAX_LIFE: Duration = Duration::from_secs(60);
/// Shortest and longest nonce, in characters of base64url.
pub const NONCE: std::ops::RangeInclusive<usize> = 22..=64;

/// What a request covers.
const OF_REQUEST: &str = r#"("@method" "@request-target" "content-digest")"#;
/// What the answer to it covers.
const OF_ANSWER: &str = r#"("@status" "@method";req "@request-target";req "content-digest")"#;

/// Why a message is not believed to be signed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum HttpSignatureError {
    /// A header is missing, there twice, or too long.
    #[error("{0}: must be there once, with at most {MAX_HEADER} bytes")]
    Header(&'static str),
    /// Not of the profile.
    #[error("{0}: is not of the form that protocol section 17.3 has")]
    Form(&'static str),
    /// For another purpose.
    #[error("Signature-Input: tag must be {0:?}")]
    Tag(&'static str),
    /// From later than now, over, or of too long a life.
    #[error("Signature-Input: created and expires must be around now, at most {} seconds apart", MAX_LIFE.as_secs())]
    Time,
    /// The answer to another request.
    #[error("Signature-Input: nonce must be that of the request")]
    Nonce,
    /// No key of the document, or one that does not count.
    #[error("Signature: {0}")]
    Signature(#[from] SignedError),
    /// Another body than was signed.
    #[error("Content-Digest: is not that of the body")]
    Digest,
}

/// A name for one message, which nobody can guess.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Nonce(String);

impl Nonce {
    /// A fresh one, of 32 random bytes.
    #[must_use]
    pub fn new(random: &dyn Random) -> Self {
        Self(URL_SAFE_NO_PAD.encode(random::bytes::<32>(random)))
    }

    /// The characters.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    fn parse(text: &str) -> Option<Self> {
        let fits = |c: u8| c.is_ascii_alphanumeric() || matches!(c, b'-' | b'_');
        (NONCE.contains(&text.len()) && text.bytes().all(fits)).then(|| Self(text.to_owned()))
    }
}

/// What of a message is signed beside its body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Covered<'a> {
    /// A request.
    #[allow(missing_docs, reason = "the names say it")]
    Request { method: &'a str, target: &'a str },
    /// The answer to one.
    #[allow(missing_docs, reason = "the names say it")]
    Answer { status: u16, method: &'a str, target: &'a str },
}

impl Covered<'_> {
    const fn components(self) -> &'static str {
        match self {
            Self::Request { .. } => OF_REQUEST,
            Self::Answer { .. } => OF_ANSWER,
        }
    }

    /// What is signed (RFC 9421 section 2.5).
    fn base(self, digest: &str, parameters: &str) -> String {
        let head = match self {
            Self::Request { method, target } => {
                format!("\"@method\": {method}\n\"@request-target\": {target}\n")
            }
            Self::Answer { status, method, target } => format!(
                "\"@status\": {status}\n\"@method\";req: {method}\n\"@request-target\";req: {target}\n"
            ),
        };
        format!("{head}\"content-digest\": {digest}\n\"@signature-params\": {parameters}")
    }
}

/// The values of the three headers of a signed message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SignedHeaders {
    /// `Content-Digest`.
    pub digest: String,
    /// `Signature-Input`.
    pub input: String,
    /// `Signature`.
    pub signature: String,
}

impl SignedHeaders {
    /// The headers with their names.
    #[must_use]
    pub fn named(&self) -> [(&'static str, &str); 3] {
        [("Content-Digest", &self.digest), ("Signature-Input", &self.input), ("Signature", &self.signature)]
    }
}

fn digest(body: &[u8]) -> String {
    format!("sha-256=:{}:", STANDARD.encode(Hash::of(body).as_bytes()))
}

/// What a signature says of itself.
struct Parameters<'a> {
    created: i64,
    expires: i64,
    nonce: &'a Nonce,
    kid: &'a Kid,
    tag: &'a str,
}

impl fmt::Display for Parameters<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { created, expires, nonce, kid, tag } = self;
        let nonce = nonce.as_str();
        write!(f, ";created={created};expires={expires};nonce=\"{nonce}\";keyid=\"{kid}\";tag=\"{tag}\"")
    }
}

/// Signs a message for [`MAX_LIFE`] from now.
#[must_use]
pub fn sign(
    covered: Covered<'_>,
    body: &[u8],
    nonce: &Nonce,
    tag: &str,
    signer: &Signer,
    now: Timestamp,
) -> SignedHeaders {
    let created = now.seconds();
    let expires = now.plus(MAX_LIFE).seconds();
    let parameters = Parameters { created, expires, nonce, kid: signer.kid(), tag };
    let parameters = format!("{}{parameters}", covered.components());
    let digest = digest(body);
    let signature = signer.signature(covered.base(&digest, &parameters).as_bytes());
    SignedHeaders {
        digest,
        input: format!("oap={parameters}"),
        signature: format!("oap=:{}:", STANDARD.encode(signature)),
    }
}

/// The values of the three headers as they came, each as often as it did.
#[derive(Debug, Clone, Copy)]
#[allow(missing_docs, reason = "as in `SignedHeaders`")]
pub struct Headers<'a> {
    pub digest: &'a [&'a str],
    pub input: &'a [&'a str],
    pub signature: &'a [&'a str],
}

/// The signature of a message, read and not checked.
#[derive(Debug, Clone)]
pub struct UnverifiedMessage {
    digest: String,
    /// With the components, as they are signed.
    parameters: String,
    created: i64,
    expires: i64,
    nonce: Nonce,
    kid: Kid,
    signature: [u8; 64],
    is_answer: bool,
}

/// A message whose signature holds; of its body only the digest is known. [`UnverifiedMessage::verify`] alone makes one.
#[derive(Debug, Clone)]
pub struct VerifiedMessage {
    digest: String,
    nonce: Nonce,
    kid: Kid,
}

fn once<'a>(name: &'static str, values: &[&'a str]) -> Result<&'a str, HttpSignatureError> {
    match values {
        [value] if value.len() <= MAX_HEADER => Ok(value),
        _ => Err(HttpSignatureError::Header(name)),
    }
}

fn bytes<const N: usize>(text: &str, before: &str) -> Option<[u8; N]> {
    let text = text.strip_prefix(before)?.strip_prefix(':')?.strip_suffix(':')?;
    STANDARD.decode(text).ok()?.try_into().ok()
}

fn seconds(text: &str) -> Option<i64> {
    let digits = (1..=12).contains(&text.len()) && text.bytes().all(|c| c.is_ascii_digit());
    let number: i64 = text.parse().ok().filter(|_| digits)?;
    (number.to_string() == text).then_some(number)
}

/// Takes a parameter from the front.
fn parameter<'a>(from: &mut &'a str, before: &str, end: &str) -> Option<&'a str> {
    let (value, rest) = from.strip_prefix(before)?.split_once(end)?;
    *from = rest;
    Some(value)
}

impl UnverifiedMessage {
    /// Reads the headers of a request of that tag.
    ///
    /// # Errors
    /// [`HttpSignatureError::Header`], [`HttpSignatureError::Form`], [`HttpSignatureError::Tag`].
    pub fn request(headers: Headers<'_>, tag: &'static str) -> Result<Self, HttpSignatureError> {
        Self::parse(headers, tag, false)
    }

    /// Reads the headers of an answer of that tag.
    ///
    /// # Errors
    /// As [`UnverifiedMessage::request`].
    pub fn answer(headers: Headers<'_>, tag: &'static str) -> Result<Self, HttpSignatureError> {
        Self::parse(headers, tag, true)
    }

    fn parse(headers: Headers<'_>, tag: &'static str, is_answer: bool) -> Result<Self, HttpSignatureError> {
        let form = |name| move || HttpSignatureError::Form(name);
        let digest = once("Content-Digest", headers.digest)?;
        bytes::<32>(digest, "sha-256=").ok_or_else(form("Content-Digest"))?;
        let signature = once("Signature", headers.signature)?;
        let signature = bytes::<64>(signature, "oap=").ok_or_else(form("Signature"))?;
        let input = once("Signature-Input", headers.input)?;
        let malformed = form("Signature-Input");
        let parameters = input.strip_prefix("oap=").ok_or_else(malformed)?;
        let components = if is_answer { OF_ANSWER } else { OF_REQUEST };
        let mut rest = parameters.strip_prefix(components).ok_or_else(malformed)?;
        let created = parameter(&mut rest, ";created=", ";").and_then(seconds).ok_or_else(malformed)?;
        let expires = parameter(&mut rest, "expires=", ";").and_then(seconds).ok_or_else(malformed)?;
        let nonce = parameter(&mut rest, "nonce=\"", "\";").and_then(Nonce::parse).ok_or_else(malformed)?;
        let kid = parameter(&mut rest, "keyid=\"", "\";").and_then(|kid| kid.parse::<Kid>().ok());
        let kid = kid.ok_or_else(malformed)?;
        let said =
            rest.strip_prefix("tag=\"").and_then(|rest| rest.strip_suffix('"')).ok_or_else(malformed)?;
        if said != tag {
            return Err(HttpSignatureError::Tag(tag));
        }
        let (digest, parameters) = (digest.to_owned(), parameters.to_owned());
        // A key id has one spelling.
        if !parameters.ends_with(&Parameters { created, expires, nonce: &nonce, kid: &kid, tag }.to_string())
        {
            return Err(malformed());
        }
        Ok(Self { digest, parameters, created, expires, nonce, kid, signature, is_answer })
    }

    /// The key that it names.
    #[must_use]
    pub const fn kid(&self) -> &Kid {
        &self.kid
    }

    /// Checks its time, and its signature with the key that it names, as that is in force now.
    ///
    /// # Errors
    /// [`HttpSignatureError::Time`], [`HttpSignatureError::Signature`].
    pub fn verify(
        self,
        covered: Covered<'_>,
        document: &DidDocument,
        now: Timestamp,
    ) -> Result<VerifiedMessage, HttpSignatureError> {
        if self.is_answer != matches!(covered, Covered::Answer { .. }) {
            return Err(HttpSignatureError::Form("Signature-Input"));
        }
        let (skew, life) = (MAX_SKEW.as_secs() as i64, MAX_LIFE.as_secs() as i64);
        let lasts = self.expires - self.created;
        let early = self.created > now.seconds() + skew;
        if early || self.expires + skew <= now.seconds() || !(1..=life).contains(&lasts) {
            return Err(HttpSignatureError::Time);
        }
        if self.kid.did() != document.id() {
            return Err(SignedError::OtherKey.into());
        }
        let key = document.key(&self.kid).ok_or(SignedError::OtherKey)?;
        // A compromised key speaks for nobody, whatever time it states.
        if let Some(at) = key.revoked_at() {
            return Err(SignedError::Revoked(at).into());
        }
        key.verify(covered.base(&self.digest, &self.parameters).as_bytes(), &self.signature, now)?;
        Ok(VerifiedMessage { digest: self.digest, nonce: self.nonce, kid: self.kid })
    }
}

impl VerifiedMessage {
    /// That this is the body that was signed.
    ///
    /// # Errors
    /// [`HttpSignatureError::Digest`].
    pub fn covers(&self, body: &[u8]) -> Result<(), HttpSignatureError> {
        if digest(body) == self.digest { Ok(()) } else { Err(HttpSignatureError::Digest) }
    }

    /// That this is the answer to a request with that nonce.
    ///
    /// # Errors
    /// [`HttpSignatureError::Nonce`].
    pub fn answers(&self, nonce: &Nonce) -> Result<(), HttpSignatureError> {
        if self.nonce == *nonce { Ok(()) } else { Err(HttpSignatureError::Nonce) }
    }

    /// Its nonce.
    #[must_use]
    pub const fn nonce(&self) -> &Nonce {
        &self.nonce
    }

    /// By what its nonce is remembered: the key that signed it, and the nonce.
    #[must_use]
    pub fn replay_key(&self) -> [u8; 32] {
        *Hash::of(format!("http-signature\n{}\n{}", self.kid, self.nonce.as_str()).as_bytes()).as_bytes()
    }
}

#[cfg(test)]
mod tests;

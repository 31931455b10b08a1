//! The envelope of a letter (protocol section 13.1): from bytes to what a signature stands for, each step before the one that costs more.

use crate::content::{Content, ContentError, LetterKind};
use oap_identity::json::{self, JsonError};
use oap_identity::signed::SignedError;
use oap_identity::time::MAX_SKEW;
use oap_identity::{DetachedSignature, Did, DidDocument, Hash, Kid, LetterId, Signer, Timestamp};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::time::Duration;

/// Longest letter, in bytes.
pub const MAX_LETTER: usize = 64 << 10;
/// How long a letter lives at most, from `issued_at` to `expires_at`.
pub const MAX_LIFE: Duration = Duration::from_secs(600);
/// The version of the envelope.
pub const VERSION: &str = "1.0";

/// Why a letter was refused. The text names the member and the fix.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LetterError {
    /// More than [`MAX_LETTER`] bytes.
    #[error("a letter has at most {MAX_LETTER} bytes")]
    TooLong,
    /// Not JSON that the wire allows, or not of the shape of a letter.
    #[error("the letter: {0}")]
    Json(#[from] JsonError),
    /// A version that is not read here.
    #[error("oap: must be {VERSION}")]
    Version,
    /// The body is not of the type.
    #[error(transparent)]
    Content(#[from] ContentError),
    /// Signed with another algorithm.
    #[error("signature.alg: must be EdDSA")]
    Algorithm,
    /// The key is not the sender's.
    #[error("signature.kid: must be a key of from")]
    OtherKey,
    /// For somebody else.
    #[error("to: is not the principal of this gateway")]
    OtherReceiver,
    /// From the principal of this gateway to itself.
    #[error("from: is the principal of this gateway")]
    Own,
    /// It lives too long, or ends before it begins.
    #[error("expires_at: must be later than issued_at, by at most {} seconds", MAX_LIFE.as_secs())]
    Life,
    /// From the future.
    #[error("issued_at: must not be later than now")]
    Early,
    /// Over.
    #[error("expires_at: must be later than now; sign the letter anew")]
    Expired,
    /// The signature does not hold.
    #[error("the letter's signature: {0}")]
    Signature(#[from] SignedError),
}

/// What a letter says, and from whom to whom.
#[derive(Debug, Clone, PartialEq)]
pub struct Letter {
    /// Its name. One that is signed anew keeps it, and has its effect once.
    pub id: LetterId,
    /// Who writes.
    pub from: Did,
    /// Who is to read it.
    pub to: Did,
    /// When it was signed.
    pub issued_at: Timestamp,
    /// Until when it is taken, at most [`MAX_LIFE`] later.
    pub expires_at: Timestamp,
    /// What it says.
    pub content: Content,
}

/// The letter on the wire, without its signature.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Envelope {
    oap: String,
    #[serde(rename = "type")]
    kind: LetterKind,
    id: LetterId,
    from: Did,
    to: Did,
    issued_at: Timestamp,
    expires_at: Timestamp,
    body: Value,
}

/// A letter with its signature.
#[derive(Debug, Clone)]
pub struct SignedLetter {
    bytes: Vec<u8>,
    hash: Hash,
}

impl SignedLetter {
    /// Signs a letter.
    ///
    /// # Errors
    /// [`LetterError::TooLong`], [`LetterError::Content`], [`LetterError::Json`].
    pub fn sign(letter: &Letter, signer: &Signer) -> Result<Self, LetterError> {
        letter.content.check()?;
        let envelope = Envelope {
            oap: VERSION.to_owned(),
            kind: letter.content.kind(),
            id: letter.id,
            from: letter.from.clone(),
            to: letter.to.clone(),
            issued_at: letter.issued_at,
            expires_at: letter.expires_at,
            body: letter.content.body()?,
        };
        let mut document = value(&envelope)?;
        let signature = DetachedSignature::sign(&json::canonical(&document)?, signer);
        document["signature"] = value(&signature)?;
        let bytes = json::canonical(&document)?;
        if bytes.len() > MAX_LETTER {
            return Err(LetterError::TooLong);
        }
        let hash = Hash::of(&bytes);
        Ok(Self { bytes, hash })
    }

    /// The letter in RFC 8785 form.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The hash of these bytes, by which its reply names it.
    #[must_use]
    pub const fn hash(&self) -> Hash {
        self.hash
    }
}

/// A letter as it came: its shape was checked, its signature not.
#[derive(Debug, Clone)]
pub struct UnverifiedLetter {
    letter: Letter,
    signature: DetachedSignature,
    /// What the signature is over.
    signed: Vec<u8>,
    hash: Hash,
    says: Hash,
}

impl UnverifiedLetter {
    /// Reads a letter: size, strict JSON, shape, and that the key it names is its sender's.
    ///
    /// # Errors
    /// [`LetterError`], but those of times, receiver and signature.
    pub fn parse(bytes: &[u8]) -> Result<Self, LetterError> {
        if bytes.len() > MAX_LETTER {
            return Err(LetterError::TooLong);
        }
        let mut document = json::parse(bytes)?;
        let hash = Hash::of_canonical(&document)?;
        let signature = document.as_object_mut().and_then(|members| members.remove("signature"));
        let signature = signature.ok_or(SignedError::Missing)?;
        let signed = json::canonical(&document)?;
        let envelope: Envelope = json::from_value(document)?;
        if envelope.oap != VERSION {
            return Err(LetterError::Version);
        }
        let signature: DetachedSignature = json::from_value(signature)?;
        if !signature.is_eddsa() {
            return Err(LetterError::Algorithm);
        }
        if *signature.kid.did() != envelope.from {
            return Err(LetterError::OtherKey);
        }
        let says = Hash::of_canonical(&(envelope.kind, &envelope.body))?;
        let letter = Letter {
            id: envelope.id,
            from: envelope.from,
            to: envelope.to,
            issued_at: envelope.issued_at,
            expires_at: envelope.expires_at,
            content: Content::read(envelope.kind, envelope.body)?,
        };
        Ok(Self { letter, signature, signed, hash, says })
    }

    /// Checks that it is for this principal, from another, and alive.
    ///
    /// # Errors
    /// [`LetterError::OtherReceiver`], [`LetterError::Own`], [`LetterError::Life`], [`LetterError::Early`], [`LetterError::Expired`].
    pub fn check(&self, principal: &Did, now: Timestamp) -> Result<(), LetterError> {
        let letter = &self.letter;
        if letter.to != *principal {
            return Err(LetterError::OtherReceiver);
        }
        if letter.from == *principal {
            return Err(LetterError::Own);
        }
        if letter.expires_at <= letter.issued_at || letter.expires_at > letter.issued_at.plus(MAX_LIFE) {
            return Err(LetterError::Life);
        }
        if letter.issued_at > now.plus(MAX_SKEW) {
            return Err(LetterError::Early);
        }
        if letter.expires_at.plus(MAX_SKEW) <= now { Err(LetterError::Expired) } else { Ok(()) }
    }

    /// Who says that they wrote it: to find their document, and for nothing else.
    #[must_use]
    pub const fn from(&self) -> &Did {
        &self.letter.from
    }

    /// The key that the signature names.
    #[must_use]
    pub const fn kid(&self) -> &Kid {
        &self.signature.kid
    }

    /// The hash of the letter, signature included.
    #[must_use]
    pub const fn hash(&self) -> Hash {
        self.hash
    }

    /// Checks the signature with the sender's document, as its key stands now. A key that was revoked signs no letter, whenever.
    ///
    /// # Errors
    /// [`LetterError::OtherKey`] for another's document, [`LetterError::Signature`].
    pub fn verify(self, sender: &DidDocument, now: Timestamp) -> Result<ReadLetter, LetterError> {
        if *sender.id() != self.letter.from {
            return Err(LetterError::OtherKey);
        }
        if let Some(at) = sender.key(&self.signature.kid).and_then(|key| key.revoked_at()) {
            return Err(SignedError::Revoked(at).into());
        }
        self.signature.verify(&self.signed, sender, now)?;
        Ok(ReadLetter { letter: self.letter, kid: self.signature.kid, hash: self.hash, says: self.says })
    }
}

/// A letter whose signature was checked. [`UnverifiedLetter::verify`] alone makes one.
#[derive(Debug, Clone)]
pub struct ReadLetter {
    letter: Letter,
    kid: Kid,
    hash: Hash,
    says: Hash,
}

impl ReadLetter {
    /// What it says.
    #[must_use]
    pub const fn letter(&self) -> &Letter {
        &self.letter
    }

    /// The key that signed it.
    #[must_use]
    pub const fn kid(&self) -> &Kid {
        &self.kid
    }

    /// The hash of the letter, signature included.
    #[must_use]
    pub const fn hash(&self) -> Hash {
        self.hash
    }

    /// The hash of type and body: two letters of one name must agree in it.
    #[must_use]
    pub const fn says(&self) -> Hash {
        self.says
    }

    /// Until when it is to be remembered, so that it is taken once: no letter of these bytes is taken later.
    #[must_use]
    pub fn until(&self) -> Timestamp {
        self.letter.expires_at.plus(MAX_SKEW)
    }
}

fn value<T: Serialize>(of: &T) -> Result<Value, JsonError> {
    serde_json::to_value(of).map_err(|e| JsonError::NotCanonical(e.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ask::AccessWithdrawal;
    use oap_identity::{AskId, VerificationKey};
    use serde_json::json;

    fn now() -> Timestamp {
        Timestamp::from_seconds(1_777_636_800)
    }

    fn signer(seed: u8) -> Signer {
        Signer::did_key(&[seed; 32]).unwrap()
    }

    fn document(of: &Signer) -> DidDocument {
        DidDocument::new(of.did().clone(), vec![VerificationKey::new(of.kid().clone(), *of.public())])
    }

    fn letter() -> Letter {
        Letter {
            id: LetterId::from_bytes([1; 16]),
            from: signer(1).did().clone(),
            to: signer(2).did().clone(),
            issued_at: now(),
            expires_at: now().plus(MAX_LIFE),
            content: Content::AccessWithdrawal(AccessWithdrawal { request: AskId::from_bytes([3; 16]) }),
        }
    }

    fn signed(letter: &Letter) -> SignedLetter {
        SignedLetter::sign(letter, &signer(1)).unwrap()
    }

    fn changed(change: impl Fn(&mut Value)) -> Result<UnverifiedLetter, LetterError> {
        let mut document: Value = json::parse(signed(&letter()).bytes()).unwrap();
        change(&mut document);
        UnverifiedLetter::parse(document.to_string().as_bytes())
    }

    #[test]
    fn a_letter_is_read_as_it_was_written() {
        let signed = signed(&letter());
        let read = UnverifiedLetter::parse(signed.bytes()).unwrap();
        assert_eq!((read.hash(), read.from()), (signed.hash(), signer(1).did()));
        read.check(signer(2).did(), now()).unwrap();
        let read = read.verify(&document(&signer(1)), now()).unwrap();
        assert_eq!((read.letter(), read.hash()), (&letter(), signed.hash()));
        // Signed anew it has another hash, and says the same.
        let later = Letter { issued_at: now().plus(Duration::from_secs(1)), ..letter() };
        let again = UnverifiedLetter::parse(tests::signed(&later).bytes()).unwrap();
        let again = again.verify(&document(&signer(1)), now()).unwrap();
        assert!(again.hash() != read.hash() && again.says() == read.says());
    }

    #[test]
    fn each_refusal_alone() {
        let is_json =
            |refused: Result<UnverifiedLetter, LetterError>| matches!(refused, Err(LetterError::Json(_)));
        assert!(matches!(UnverifiedLetter::parse(&[b' '; MAX_LETTER + 1]), Err(LetterError::TooLong)));
        for bytes in [&b""[..], b"{", b"\xff", b"{\"a\":1,\"a\":2}"] {
            assert!(is_json(UnverifiedLetter::parse(bytes)), "{bytes:?}");
        }
        for bytes in [&b"{}"[..], b"[]", b"null"] {
            let refused = UnverifiedLetter::parse(bytes);
            assert!(matches!(refused, Err(LetterError::Signature(SignedError::Missing))), "{bytes:?}");
        }
        for member in ["oap", "type", "id", "from", "to", "issued_at", "expires_at", "body"] {
            assert!(is_json(changed(|d| drop(d.as_object_mut().unwrap().remove(member)))), "{member}");
            assert!(is_json(changed(|d| d[member] = json!([]))) || member == "body", "{member}");
        }
        assert!(is_json(changed(|d| d["more"] = json!(1))));
        assert!(is_json(changed(|d| d["type"] = json!("anything"))));
        assert!(is_json(changed(|d| d["signature"] = json!("a.b.c"))));
        assert!(matches!(changed(|d| d["oap"] = json!("2.0")), Err(LetterError::Version)));
        assert!(matches!(changed(|d| d["body"]["request"] = json!("x")), Err(LetterError::Content(_))));
        assert!(matches!(changed(|d| d["body"]["more"] = json!(1)), Err(LetterError::Content(_))));
        assert!(matches!(changed(|d| d["signature"]["alg"] = json!("none")), Err(LetterError::Algorithm)));
        let other = signer(5).kid().to_string();
        assert!(matches!(changed(|d| d["signature"]["kid"] = json!(other)), Err(LetterError::OtherKey)));
    }

    #[test]
    fn whom_it_is_for_and_how_long_it_lives() {
        let me = signer(2);
        let check = |letter: Letter, at: Timestamp| {
            UnverifiedLetter::parse(signed(&letter).bytes()).unwrap().check(me.did(), at)
        };
        let second = Duration::from_secs(1);
        assert_eq!(
            check(Letter { to: signer(3).did().clone(), ..letter() }, now()),
            Err(LetterError::OtherReceiver)
        );
        let own = SignedLetter::sign(&Letter { from: me.did().clone(), ..letter() }, &me).unwrap();
        let own = UnverifiedLetter::parse(own.bytes()).unwrap();
        assert_eq!(own.check(me.did(), now()), Err(LetterError::Own));
        let long = Letter { expires_at: now().plus(MAX_LIFE + second), ..letter() };
        assert_eq!(check(long, now()), Err(LetterError::Life));
        assert_eq!(check(Letter { expires_at: now(), ..letter() }, now()), Err(LetterError::Life));
        assert_eq!(check(letter(), now().minus(MAX_SKEW)), Ok(()));
        assert_eq!(check(letter(), now().minus(MAX_SKEW + second)), Err(LetterError::Early));
        let end = now().plus(MAX_LIFE + MAX_SKEW);
        assert_eq!(check(letter(), end.minus(second)), Ok(()));
        assert_eq!(check(letter(), end), Err(LetterError::Expired));
    }

    #[test]
    fn whose_signature_counts() {
        let read = || UnverifiedLetter::parse(signed(&letter()).bytes()).unwrap();
        let key = || VerificationKey::new(signer(1).kid().clone(), *signer(1).public());
        let with = |key: VerificationKey| DidDocument::new(signer(1).did().clone(), vec![key]);
        assert!(matches!(read().verify(&document(&signer(5)), now()), Err(LetterError::OtherKey)));
        let none = DidDocument::new(signer(1).did().clone(), Vec::new());
        assert!(matches!(read().verify(&none, now()), Err(LetterError::Signature(SignedError::OtherKey))));
        let stolen = VerificationKey::new(signer(1).kid().clone(), *signer(5).public());
        assert!(matches!(read().verify(&with(stolen), now()), Err(LetterError::Signature(_))));
        assert!(read().verify(&with(key().retired(now().minus(Duration::from_secs(1)))), now()).is_err());
        // Of a compromised key not even what says that it was signed before.
        let later = now().plus(Duration::from_secs(60));
        assert!(read().verify(&with(key().revoked(later)), now()).is_err());
        for member in ["id", "to", "issued_at", "expires_at"] {
            let forged = changed(|d| {
                d[member] = match member {
                    "id" => json!(LetterId::from_bytes([9; 16])),
                    "to" => json!(signer(3).did()),
                    _ => json!(now().plus(Duration::from_secs(2))),
                }
            });
            assert!(forged.unwrap().verify(&document(&signer(1)), now()).is_err(), "{member}");
        }
    }
}

//! The reply to a letter (protocol section 13.2): signed, and bound to the letter by its hash. Nothing else that answers is believed.

use crate::ask::AskState;
use crate::letter::VERSION;
use crate::plain::Plain;
use oap_identity::json::{self, JsonError};
use oap_identity::signed::SignedError;
use oap_identity::{DetachedSignature, Did, DidDocument, Hash, Kid, Signer, Timestamp};
use oap_memory::closed_enum;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Longest reply, in bytes: a grant, and what stands around it.
pub const MAX_REPLY: usize = 96 << 10;
/// The `type` of a reply.
pub const TYPE: &str = "reply";

closed_enum! {
    /// What became of a letter.
    Outcome {
        /// It had its effect, now or before.
        Taken = "taken",
        /// It has none, and will have none if it is sent again.
        Refused = "refused",
        /// Not now: send it again later.
        Later = "later",
    }
}

closed_enum! {
    /// Why a letter has no effect.
    Reason {
        /// A letter of this name said something else.
        OtherLetter = "other_letter",
        /// Nobody here asked for it.
        NotAsked = "not_asked",
        /// There is no room for more.
        Full = "full",
        /// The grant does not hold.
        GrantNotSound = "grant_not_sound",
        /// It names what is not known here.
        Unknown = "unknown",
        /// It is over.
        Over = "over",
        /// It does not follow what was said before.
        NotNext = "not_next",
        /// The gateway takes no letters of this type.
        NotSupported = "not_supported",
    }
}

/// What a granter answers to a request for access.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AccessReply {
    /// What became of the request so far.
    pub state: AskState,
    /// The signed grant, where it was approved.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub grant: Option<Value>,
    /// A word of the granter's, where it was declined with one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub word: Option<Plain>,
}

/// A reply, without its signature.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Reply {
    /// The version of the envelope.
    pub oap: String,
    /// `reply`.
    #[serde(rename = "type")]
    pub kind: String,
    /// The hash of the letter, signature included.
    pub to: Hash,
    /// Who replies: the letter's receiver.
    pub from: Did,
    /// When.
    pub at: Timestamp,
    /// What became of the letter.
    pub outcome: Outcome,
    /// Why it has no effect, where it has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<Reason>,
    /// What became of the request, of an `access_request`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub access: Option<AccessReply>,
    /// The receiver's signed Deletion Receipt, of a `deletion_notice`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deletion_receipt: Option<Value>,
}

/// Why a reply is not believed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ReplyError {
    /// More than [`MAX_REPLY`] bytes.
    #[error("a reply has at most {MAX_REPLY} bytes")]
    TooLong,
    /// Not JSON that the wire allows, or not of the shape of a reply.
    #[error("the reply: {0}")]
    Json(#[from] JsonError),
    /// Another version or type.
    #[error("the reply is no reply of version {VERSION}")]
    Version,
    /// To another letter.
    #[error("to: is not the hash of the letter that was sent")]
    OtherLetter,
    /// By somebody else.
    #[error("from: is not the receiver of the letter")]
    OtherSender,
    /// The signature does not hold.
    #[error("the reply's signature: {0}")]
    Signature(#[from] SignedError),
}

/// What a letter came to, before it is said in a reply.
#[derive(Debug, Clone, PartialEq)]
#[allow(missing_docs, reason = "as in `Reply`")]
pub struct LetterResult {
    pub outcome: Outcome,
    pub reason: Option<Reason>,
    pub access: Option<AccessReply>,
    pub deletion_receipt: Option<Value>,
}

impl LetterResult {
    /// It had its effect.
    #[must_use]
    pub const fn taken() -> Self {
        Self { outcome: Outcome::Taken, reason: None, access: None, deletion_receipt: None }
    }

    /// It has none, for a reason.
    #[must_use]
    pub const fn refused(reason: Reason) -> Self {
        Self { outcome: Outcome::Refused, reason: Some(reason), access: None, deletion_receipt: None }
    }

    /// It had its effect, and the request stands so.
    #[must_use]
    pub const fn access(access: AccessReply) -> Self {
        Self { outcome: Outcome::Taken, reason: None, access: Some(access), deletion_receipt: None }
    }
}

impl Reply {
    /// The reply that says this of a letter.
    #[must_use]
    pub fn new(said: LetterResult, letter: Hash, from: Did, at: Timestamp) -> Self {
        let LetterResult { outcome, reason, access, deletion_receipt } = said;
        let (oap, kind) = (VERSION.to_owned(), TYPE.to_owned());
        Self { oap, kind, to: letter, from, at, outcome, reason, access, deletion_receipt }
    }

    /// Its RFC 8785 form, signed.
    ///
    /// # Errors
    /// [`ReplyError::Json`], [`ReplyError::TooLong`].
    pub fn sign(&self, signer: &Signer) -> Result<Vec<u8>, ReplyError> {
        let value = |e: serde_json::Error| JsonError::NotCanonical(e.to_string());
        let mut document = serde_json::to_value(self).map_err(value)?;
        let signature = DetachedSignature::sign(&json::canonical(&document)?, signer);
        document["signature"] = serde_json::to_value(&signature).map_err(value)?;
        let bytes = json::canonical(&document)?;
        if bytes.len() > MAX_REPLY { Err(ReplyError::TooLong) } else { Ok(bytes) }
    }

    /// Reads the reply to a letter, and believes it: as [`UnverifiedReply::verify`].
    ///
    /// # Errors
    /// [`ReplyError`].
    pub fn verify(bytes: &[u8], letter: Hash, by: &DidDocument, now: Timestamp) -> Result<Self, ReplyError> {
        UnverifiedReply::parse(bytes)?.verify(letter, by, now)
    }
}

/// A reply as it came. It gives away the key that it names, so that the caller can find it, and nothing else.
#[derive(Debug, Clone)]
pub struct UnverifiedReply {
    /// Without its signature.
    document: Value,
    signature: DetachedSignature,
}

impl UnverifiedReply {
    /// Reads the envelope.
    ///
    /// # Errors
    /// [`ReplyError::TooLong`], [`ReplyError::Json`], [`ReplyError::Signature`] where there is none.
    pub fn parse(bytes: &[u8]) -> Result<Self, ReplyError> {
        if bytes.len() > MAX_REPLY {
            return Err(ReplyError::TooLong);
        }
        let mut document = json::parse(bytes)?;
        let signature = document.as_object_mut().and_then(|members| members.remove("signature"));
        let signature = json::from_value(signature.ok_or(SignedError::Missing)?)?;
        Ok(Self { document, signature })
    }

    /// The key that the signature names.
    #[must_use]
    pub const fn kid(&self) -> &Kid {
        &self.signature.kid
    }

    /// Believes the reply to a letter: signed by the letter's receiver with a key that is in force now.
    ///
    /// # Errors
    /// [`ReplyError`].
    pub fn verify(self, letter: Hash, by: &DidDocument, now: Timestamp) -> Result<Reply, ReplyError> {
        let Self { document, signature } = self;
        let signed = json::canonical(&document)?;
        let reply: Reply = json::from_value(document)?;
        if reply.oap != VERSION || reply.kind != TYPE {
            return Err(ReplyError::Version);
        }
        if reply.to != letter {
            return Err(ReplyError::OtherLetter);
        }
        if reply.from != *by.id() || signature.kid.did() != by.id() {
            return Err(ReplyError::OtherSender);
        }
        if let Some(at) = by.key(&signature.kid).and_then(|key| key.revoked_at()) {
            return Err(SignedError::Revoked(at).into());
        }
        signature.verify(&signed, by, now)?;
        Ok(reply)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use oap_identity::VerificationKey;

    fn signer(seed: u8) -> Signer {
        Signer::did_key(&[seed; 32]).unwrap()
    }

    fn document(of: &Signer) -> DidDocument {
        DidDocument::new(of.did().clone(), vec![VerificationKey::new(of.kid().clone(), *of.public())])
    }

    /// A reply is believed of the letter's receiver, to this letter, whole.
    #[test]
    fn what_is_believed() {
        let (now, letter) = (Timestamp::from_seconds(1_777_636_800), Hash::of(b"letter"));
        let me = signer(1);
        let reply = Reply::new(LetterResult::refused(Reason::Over), letter, me.did().clone(), now);
        let bytes = reply.sign(&me).unwrap();
        assert_eq!(Reply::verify(&bytes, letter, &document(&me), now), Ok(reply.clone()));
        let other = Reply::verify(&bytes, Hash::of(b"other"), &document(&me), now);
        assert_eq!(other, Err(ReplyError::OtherLetter));
        assert_eq!(Reply::verify(&bytes, letter, &document(&signer(2)), now), Err(ReplyError::OtherSender));
        let borrowed = reply.sign(&signer(2)).unwrap();
        assert_eq!(Reply::verify(&borrowed, letter, &document(&me), now), Err(ReplyError::OtherSender));
        let text = String::from_utf8(bytes).unwrap();
        let turned = text.replace("\"refused\"", "\"taken\"");
        assert!(matches!(
            Reply::verify(turned.as_bytes(), letter, &document(&me), now),
            Err(ReplyError::Signature(_))
        ));
        let more = text.replacen('{', "{\"more\":1,", 1);
        assert!(matches!(
            Reply::verify(more.as_bytes(), letter, &document(&me), now),
            Err(ReplyError::Json(_))
        ));
        for bytes in [&b""[..], b"{}", b"[]"] {
            assert!(Reply::verify(bytes, letter, &document(&me), now).is_err());
        }
        let long = vec![b' '; MAX_REPLY + 1];
        assert_eq!(Reply::verify(&long, letter, &document(&me), now), Err(ReplyError::TooLong));
    }
}

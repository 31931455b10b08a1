//! Items that no grantee could verify, because a key that signed something of them was compromised before it did: they
//! are held back from every view, and `doctor` lists them.

use oap_identity::signed::UnverifiedSignature;
use oap_identity::{DidDocument, Kid, Timestamp};
use oap_memory::view::Whole;
use serde::Deserialize;
use serde_json::Value;

/// The principal's keys, as far as some signatures of theirs do not count.
pub struct Endorsed<'a> {
    own: &'a DidDocument,
    /// Whether a key was compromised at all: else nothing need be looked at.
    compromised: bool,
}

#[derive(Deserialize)]
struct SignedReceipt {
    timestamp: Timestamp,
    signatures: Vec<Signed>,
}

#[derive(Deserialize)]
struct Signed {
    by: Kid,
}

impl<'a> Endorsed<'a> {
    /// By the keys of a principal.
    #[must_use]
    pub fn by(own: &'a DidDocument) -> Self {
        Self { own, compromised: own.keys().iter().any(|key| key.revoked_at().is_some()) }
    }

    /// Whether no key was ever compromised, so that every item stands.
    #[must_use]
    pub const fn are_all(&self) -> bool {
        !self.compromised
    }

    /// Whether no signature of an item was made with a compromised key: of its links, with which its versions are signed,
    /// and of its capture receipt. What another house signed is not judged here.
    #[must_use]
    pub fn stands(&self, whole: &Whole) -> bool {
        !self.compromised
            || (whole.chain.iter().all(|link| self.link(link)) && self.receipt(&whole.capture_receipt))
    }

    fn link(&self, link: &str) -> bool {
        let Ok(link) = serde_json::from_str::<Value>(link) else { return false };
        let at = link["at"].as_str().and_then(|at| at.parse().ok());
        let signature = UnverifiedSignature::of(&link);
        at.zip(signature.ok()).is_some_and(|(at, signature)| self.counts(signature.kid(), at))
    }

    fn receipt(&self, receipt: &str) -> bool {
        let Ok(SignedReceipt { timestamp, signatures }) = serde_json::from_str(receipt) else { return false };
        signatures.iter().all(|signed| self.counts(&signed.by, timestamp))
    }

    fn counts(&self, kid: &Kid, at: Timestamp) -> bool {
        kid.did() != self.own.id() || self.own.key(kid).is_some_and(|key| key.usable_at(at).is_ok())
    }
}

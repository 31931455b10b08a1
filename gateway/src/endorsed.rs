//! Items that no grantee could verify, because a key that signed something of them was compromised before it did, and no
//! `reseal` vouches for that: they are held back from every view, and `doctor` lists them.

use oap_identity::signed::UnverifiedSignature;
use oap_identity::{DidDocument, Kid, Timestamp};
use oap_memory::chain::Link;
use oap_memory::view::Whole;
use oap_memory::vouch::Vouching;
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

fn signed_link(link: &str) -> Option<(Link, Kid)> {
    let value: Value = serde_json::from_str(link).ok()?;
    let kid = UnverifiedSignature::of(&value).ok()?.kid().clone();
    Some((serde_json::from_value(value).ok()?, kid))
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

    /// Whether every signature of an item counts, or is vouched for by a later `reseal`: of its links, with which its
    /// versions are signed, and of its capture receipt. What another house signed is not judged here.
    #[must_use]
    pub fn stands(&self, whole: &Whole) -> bool {
        !self.compromised || (self.chain(&whole.chain) && self.receipt(&whole.capture_receipt))
    }

    fn chain(&self, links: &[String]) -> bool {
        let mut vouching = Vouching::default();
        let read = links.iter().all(|link| self.link(link, &mut vouching).is_some());
        read && vouching.missing().is_none()
    }

    fn link(&self, link: &str, vouching: &mut Vouching) -> Option<()> {
        let (link, kid) = signed_link(link)?;
        if kid.did() == self.own.id() { vouching.read(&link, self.own.key(&kid)?).ok() } else { Some(()) }
    }

    /// The principal's links of a chain whose signatures do not count by themselves.
    #[must_use]
    pub fn doubtful(&self, links: &[String]) -> Vec<Link> {
        if !self.compromised {
            return Vec::new();
        }
        let signed = links.iter().filter_map(|link| signed_link(link));
        signed.filter(|(link, kid)| !self.counts(kid, link.at)).map(|(link, _)| link).collect()
    }

    /// Whether every signature of the principal's under a receipt counts.
    pub(crate) fn receipt(&self, receipt: &str) -> bool {
        let Ok(SignedReceipt { timestamp, signatures }) = serde_json::from_str(receipt) else { return false };
        signatures.iter().all(|signed| self.counts(&signed.by, timestamp))
    }

    /// Whether a signature of that time counts; those of others always do.
    pub(crate) fn counts(&self, kid: &Kid, at: Timestamp) -> bool {
        kid.did() != self.own.id() || self.own.key(kid).is_some_and(|key| key.usable_at(at).is_ok())
    }
}

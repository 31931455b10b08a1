//! What changed at a peer since it was pinned, and what of it the owner is asked about (protocol section 15).
//!
//! Nobody signs a DID document, and whoever has the host of a peer can show another one. So trust is never added on its word: a
//! new key counts where a pinned key signed for it, and what a manifest newly says where a key that counts signed it. What only
//! takes trust away is taken over. Everything else waits for the owner.

use crate::pin::{CheckedDocuments, Pin};
use oap_identity::{Kid, Timestamp, VerificationKey};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// What changed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum What {
    /// It is another principal's.
    Principal,
    /// A key that was not there.
    KeyAdded(Kid),
    /// A key in force that is not there any more.
    KeyGone(Kid),
    /// A key that had ended, or that named its successor, and is not there any more.
    KeyDropped(Kid),
    /// A key that has ended, or ended earlier than was known.
    KeyEnded(Kid),
    /// A key that had ended, and has not any more, or later.
    KeyRevived(Kid),
    /// Another key under an id that is known.
    KeyReplaced(Kid),
    /// An address of that name that is new, another, or gone: as it was, as it is.
    Endpoint(String, Option<String>, Option<String>),
    /// A conformance level that is not claimed any more.
    ClaimLowered(String),
    /// A conformance level that was not claimed.
    ClaimRaised(String),
    /// The memory manifest is older than the one that is known: when each was published.
    Older(Timestamp, Timestamp),
    /// A manifest says something else, signed by that key.
    Manifest(Kid),
}

/// Why a change is taken over without asking.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Reason {
    /// A key that was pinned, or that one of those named in turn, signed for the new one.
    HandedOver(Kid),
    /// A key that was pinned, or that one of those named, signed the manifest that says it.
    SignedBy(Kid),
    /// It takes trust away.
    Narrower,
}

/// What becomes of a change.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Verdict {
    /// It is taken over.
    Accepted(Reason),
    /// It waits for the owner.
    AsksTheOwner,
}

/// One change.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[allow(missing_docs, reason = "the names say it")]
pub struct Change {
    pub what: What,
    pub verdict: Verdict,
}

impl Change {
    const fn accepted(what: What, reason: Reason) -> Self {
        Self { what, verdict: Verdict::Accepted(reason) }
    }

    const fn asks(what: What) -> Self {
        Self { what, verdict: Verdict::AsksTheOwner }
    }

    /// Whether it waits for the owner.
    #[must_use]
    pub fn asks_the_owner(&self) -> bool {
        self.verdict == Verdict::AsksTheOwner
    }

    /// Whether a handover could settle it.
    #[must_use]
    pub fn wants_a_handover(&self) -> bool {
        self.asks_the_owner() && matches!(self.what, What::KeyAdded(_) | What::KeyGone(_) | What::Manifest(_))
    }
}

/// What changed, key by key, address by address. Empty where nothing did that matters.
#[must_use]
pub fn compare(pinned: &Pin, seen: &CheckedDocuments) -> Vec<Change> {
    let mut changes = Vec::new();
    if pinned.did != seen.pin.did {
        changes.push(Change::asks(What::Principal));
    }
    let named = Named::of(pinned, seen);
    former_keys(pinned, seen, &named, &mut changes);
    for key in &seen.pin.keys {
        let kid = key.key().kid();
        if pinned.key(kid).is_none() {
            let what = What::KeyAdded(kid.clone());
            changes.push(match named.by.get(kid) {
                Some(by) => Change::accepted(what, Reason::HandedOver(by.clone())),
                None => Change::asks(what),
            });
        }
    }
    let names: BTreeSet<&String> = pinned.endpoints.keys().chain(seen.pin.endpoints.keys()).collect();
    for name in names {
        let (was, is) = (pinned.endpoints.get(name), seen.pin.endpoints.get(name));
        if was != is {
            changes.push(Change::asks(What::Endpoint(name.clone(), was.cloned(), is.cloned())));
        }
    }
    let signed = || match counts(pinned, seen, &named) {
        true => Verdict::Accepted(Reason::SignedBy(seen.signed_by.clone())),
        false => Verdict::AsksTheOwner,
    };
    for claim in pinned.claims.difference(&seen.pin.claims) {
        changes.push(Change::asks(What::ClaimLowered(claim.clone())));
    }
    for claim in seen.pin.claims.difference(&pinned.claims) {
        changes.push(Change { what: What::ClaimRaised(claim.clone()), verdict: signed() });
    }
    let (was, is) = (pinned.published_at, seen.pin.published_at);
    if is < was {
        changes.push(Change::asks(What::Older(was, is)));
    }
    let (old, new) = (&pinned.digests, &seen.pin.digests);
    if (old.memory, old.tool) != (new.memory, new.tool) {
        changes.push(Change { what: What::Manifest(seen.signed_by.clone()), verdict: signed() });
    }
    changes
}

/// What became of the keys that were pinned.
fn former_keys(pinned: &Pin, seen: &CheckedDocuments, named: &Named, changes: &mut Vec<Change>) {
    for known in &pinned.keys {
        let kid = known.key().kid();
        let Some(now) = seen.pin.key(kid).map(|now| now.key()) else {
            let is_over = !known.is_in_force() || named.successors_of.contains(kid);
            changes.push(match is_over {
                true => Change::accepted(What::KeyDropped(kid.clone()), Reason::Narrower),
                false => Change::asks(What::KeyGone(kid.clone())),
            });
            continue;
        };
        if now.public() != known.key().public() {
            changes.push(Change::asks(What::KeyReplaced(kid.clone())));
            continue;
        }
        let retired = Move::of(known.key().retired_at(), now.retired_at());
        let revoked = Move::of(known.key().revoked_at(), now.revoked_at());
        if retired == Move::Later || revoked == Move::Later {
            changes.push(Change::asks(What::KeyRevived(kid.clone())));
        } else if retired == Move::Earlier || revoked == Move::Earlier {
            changes.push(Change::accepted(What::KeyEnded(kid.clone()), Reason::Narrower));
        }
    }
}

/// How an end moved; none at all is the latest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Move {
    Earlier,
    Not,
    Later,
}

impl Move {
    fn of(was: Option<Timestamp>, is: Option<Timestamp>) -> Self {
        match (was, is) {
            (Some(was), Some(is)) if is < was => Self::Earlier,
            (Some(was), Some(is)) if is > was => Self::Later,
            (None, Some(_)) => Self::Earlier,
            (Some(_), None) => Self::Later,
            _ => Self::Not,
        }
    }
}

/// The new keys that pinned keys named, one after the other.
#[derive(Default)]
struct Named {
    /// Who named each.
    by: BTreeMap<Kid, Kid>,
    /// Who named any.
    successors_of: BTreeSet<Kid>,
}

impl Named {
    fn of(pinned: &Pin, seen: &CheckedDocuments) -> Self {
        // A key speaks for another while it is in force as far as is known here, and nobody calls it compromised. When it spoke is
        // held against its end as it is published now.
        let speaks = |key: &VerificationKey| match seen.pin.key(key.kid()).map(|now| now.key()) {
            Some(now) if now.public() == key.public() && now.revoked_at().is_none() => Some(now.clone()),
            Some(_) => None,
            None => Some(key.clone()),
        };
        let in_force = pinned.keys.iter().filter(|key| key.is_in_force());
        let mut speakers: Vec<VerificationKey> = in_force.filter_map(|key| speaks(key.key())).collect();
        let mut named = Self::default();
        // Each handover is verified once at most: when its key may speak.
        let mut left: Vec<_> = seen.handovers.iter().collect();
        while let Some(speaker) = speakers.pop() {
            let (said, others): (Vec<_>, Vec<_>) =
                left.into_iter().partition(|handover| handover.by() == speaker.kid());
            left = others;
            for handover in said {
                let kid = handover.kid();
                let Some(next) = seen.pin.key(kid).map(|next| next.key()) else { continue };
                let is_new = pinned.key(kid).is_none() && !named.by.contains_key(kid);
                let is_it = next.public() == handover.public() && next.revoked_at().is_none();
                if is_new && is_it && handover.holds(&speaker) {
                    named.by.insert(kid.clone(), speaker.kid().clone());
                    named.successors_of.insert(speaker.kid().clone());
                    speakers.push(next.clone());
                }
            }
        }
        named
    }
}

/// Whether the key that signed the memory manifest counts: pinned and not ended by then, or named by one that was pinned.
fn counts(pinned: &Pin, seen: &CheckedDocuments, named: &Named) -> bool {
    let now = seen.pin.key(&seen.signed_by).map(|key| key.key());
    let at = seen.pin.published_at;
    let known = pinned.key(&seen.signed_by).map(|key| key.key());
    let is_pinned = known.is_some_and(|known| {
        known.usable_at(at).is_ok() && now.is_some_and(|now| now.public() == known.public())
    });
    (is_pinned || named.by.contains_key(&seen.signed_by)) && now.is_some_and(|now| now.usable_at(at).is_ok())
}

#[cfg(test)]
mod tests;

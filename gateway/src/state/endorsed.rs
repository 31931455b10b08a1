//! Items that no grantee could verify, because a key that signed something of them was compromised before it did, and no
//! `reseal` vouches for that: they are held back from every view, and `doctor` lists them.

use crate::error::Error;
use crate::state::gateway::Gateway;
use crate::state::keyring::Keyring;
use crate::state::schema::FORMER;
use oap_identity::signed::UnverifiedSignature;
use oap_identity::{Did, DidDocument, Documents, Kid, Timestamp};
use oap_memory::chain::{self, Link};
use oap_memory::record::ItemRecord;
use serde::Deserialize;
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::Arc;

/// The documents of all who signed what is kept here, as far as some signatures by their keys do not count.
pub struct Endorsed {
    houses: BTreeMap<Did, Arc<DidDocument>>,
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

impl Endorsed {
    /// By the documents of the principal and of former houses.
    #[must_use]
    pub fn by(houses: BTreeMap<Did, Arc<DidDocument>>) -> Self {
        let mut keys = houses.values().flat_map(|house| house.keys());
        Self { compromised: keys.any(|key| key.revoked_at().is_some()), houses }
    }

    /// Whether no key was ever compromised, so that every item stands.
    #[must_use]
    pub const fn are_all(&self) -> bool {
        !self.compromised
    }

    /// Whether a grantee would take an item: every signature of its links, with which its versions are signed, and of its
    /// capture receipt counts, or a later `reseal` vouches for it.
    #[must_use]
    pub fn stands(&self, whole: &ItemRecord) -> bool {
        !self.compromised || (self.chain(&whole.chain) && self.receipt(&whole.capture_receipt))
    }

    /// Whether a chain holds. Where every signature counts by itself, that was seen when it was written or taken in;
    /// else it is checked as its reader will check it.
    #[must_use]
    pub fn chain(&self, links: &[String]) -> bool {
        if !self.compromised {
            return true;
        }
        let signed: Option<Vec<(Link, Kid)>> = links.iter().map(|link| signed_link(link)).collect();
        let Some(signed) = signed else { return false };
        signed.iter().all(|(link, kid)| self.counts(kid, link.at)) || {
            let read: Option<Vec<Value>> = links.iter().map(|link| serde_json::from_str(link).ok()).collect();
            read.is_some_and(|links| chain::verify(&links, &self.houses).is_ok())
        }
    }

    /// The links of a chain whose signatures do not count by themselves.
    #[must_use]
    pub fn doubtful(&self, links: &[String]) -> Vec<Link> {
        if !self.compromised {
            return Vec::new();
        }
        let signed = links.iter().filter_map(|link| signed_link(link));
        signed.filter(|(link, kid)| !self.counts(kid, link.at)).map(|(link, _)| link).collect()
    }

    /// Whether every signature under a receipt counts.
    pub(crate) fn receipt(&self, receipt: &str) -> bool {
        let Ok(SignedReceipt { timestamp, signatures }) = serde_json::from_str(receipt) else { return false };
        signatures.iter().all(|signed| self.counts(&signed.by, timestamp))
    }

    /// Whether a signature of that time counts; those of whose document is not at hand always do.
    pub(crate) fn counts(&self, kid: &Kid, at: Timestamp) -> bool {
        let Some(house) = self.houses.document(kid.did()) else { return true };
        house.key(kid).is_some_and(|key| key.usable_at(at).is_ok())
    }
}

impl Gateway {
    /// The documents of all who signed what is kept here, parsed: its own, as it was last committed, and those of former houses.
    pub(crate) fn houses(&self) -> Result<BTreeMap<Did, Arc<DidDocument>>, Error> {
        self.houses_with(&*self.keys_in(&self.store)?)
    }

    /// The same, with these keys of its own.
    pub(crate) fn houses_with(&self, keys: &Keyring) -> Result<BTreeMap<Did, Arc<DidDocument>>, Error> {
        let mut known: BTreeMap<Did, Arc<DidDocument>> = BTreeMap::new();
        for row in FORMER.scan(&self.store) {
            let (_, raw) = row?;
            let document = oap_identity::json::parse(&raw)?;
            if let Some(did) = document["id"].as_str().and_then(|did| did.parse::<Did>().ok())
                && let Ok(parsed) = DidDocument::parse(&raw, &did)
            {
                known.insert(did, Arc::new(parsed));
            }
        }
        known.insert(self.principal.clone(), Arc::new(keys.document().clone()));
        Ok(known)
    }

    /// What of them counts, by what is known of their keys here.
    ///
    /// # Errors
    /// [`Error::Store`], [`Error::Corrupt`].
    pub(crate) fn endorsed(&self) -> Result<Endorsed, Error> {
        Ok(Endorsed::by(self.houses()?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use oap_identity::{Hash, ItemId, ReceiptId, Signer, VerificationKey};
    use oap_memory::chain::Event::{self, Capture, Confirm, Migrate, Reseal};

    fn key(house: &str, number: u8) -> Signer {
        let kid = format!("did:web:{house}.example#key-{number}").parse().unwrap();
        Signer::from_seed(kid, &[number; 32]).unwrap()
    }

    fn at(second: u8) -> Timestamp {
        format!("2026-05-01T12:00:{second:02}.000Z").parse().unwrap()
    }

    /// A document whose `key-1` is compromised since second 10; `key-2` is in force.
    fn house(name: &str) -> (Did, Arc<DidDocument>) {
        let public =
            |number| VerificationKey::new(key(name, number).kid().clone(), *key(name, number).public());
        let did = key(name, 1).did().clone();
        (did.clone(), Arc::new(DidDocument::new(did, vec![public(1).revoked(at(10)), public(2)])))
    }

    fn links(steps: &[(Event, &str, u8, u8)]) -> Vec<String> {
        let mut before: Option<Link> = None;
        let mut links = Vec::new();
        for (number, (event, house, by, second)) in steps.iter().enumerate() {
            let signer = key(house, *by);
            let commitment = match &before {
                Some(before) if !event.commits() => before.commitment,
                _ => Hash::of(&[number as u8]),
            };
            let link = Link {
                item_id: ItemId::from_bytes([1; 16]),
                seq: number as u32,
                event: *event,
                at: at(*second),
                actor: signer.did().clone(),
                commitment,
                prev: Link::write_prev(before.as_ref().map(|before| before.hash().unwrap())),
                receipt: ReceiptId::from_bytes([2; 16]),
                signature: String::new(),
            };
            let link = link.signed(&signer).unwrap();
            links.push(serde_json::to_string(&link).unwrap());
            before = Some(link);
        }
        links
    }

    /// Nobody vouches for what was signed before a change of house, and a former house's key counts no more than one's own.
    #[test]
    fn a_chain_stands_where_its_reader_takes_it() {
        let endorsed = Endorsed::by(BTreeMap::from([house("own"), house("former")]));
        for (stands, steps) in [
            (true, &[(Capture, "own", 1, 9)][..]),
            (false, &[(Capture, "own", 1, 10)]),
            (true, &[(Capture, "own", 1, 10), (Reseal, "own", 2, 20)]),
            (false, &[(Capture, "own", 1, 10), (Reseal, "own", 1, 20)]),
            (true, &[(Capture, "former", 1, 9), (Migrate, "own", 2, 20)]),
            (false, &[(Capture, "former", 1, 10), (Migrate, "own", 2, 20)]),
            (false, &[(Capture, "former", 1, 10), (Migrate, "own", 2, 20), (Reseal, "own", 2, 30)]),
            (true, &[(Capture, "former", 1, 10), (Reseal, "former", 2, 12), (Migrate, "own", 2, 20)]),
            (
                false,
                &[
                    (Capture, "own", 1, 10),
                    (Migrate, "former", 2, 20),
                    (Migrate, "own", 2, 30),
                    (Reseal, "own", 2, 40),
                ],
            ),
            (true, &[(Capture, "own", 1, 9), (Confirm, "own", 2, 20)]),
        ] {
            assert_eq!(endorsed.chain(&links(steps)), stands, "{steps:?}");
        }
    }
}

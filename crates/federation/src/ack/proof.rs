//! Acknowledgements that are handed on: a receipt with everything that was signed over it, checked by whoever was no part of it.

use super::{AckError, Acknowledgement, Chain, Countersignature, Taken};
use oap_identity::time::MAX_SKEW;
use oap_identity::{Did, DidDocument, Timestamp, json};
use oap_memory::receipt::VerifiedReceipt;
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::Arc;

impl Chain {
    /// Checks everything that was signed over the receipt of an answer (protocol section 8.1): the grantee's signature first, then the
    /// statements in their order. Each counts as of the time that it states; the first states none, and counts as of its receipt's.
    ///
    /// # Errors
    /// [`AckError`]; [`AckError::NoDocument`] where the document of one of the two is not among `documents`.
    pub fn verify(
        receipt: &VerifiedReceipt,
        signed: &[Value],
        documents: &BTreeMap<Did, Arc<DidDocument>>,
        now: Timestamp,
    ) -> Result<Self, AckError> {
        let (hash, receipt) = (receipt.hash, &receipt.receipt);
        let grantee: Did = receipt.agent_did.parse().map_err(|_| AckError::OtherReceipt)?;
        let mut chain = Self::new(receipt.receipt_id, hash, receipt.principal_did.clone(), grantee);
        for (place, document) in signed.iter().enumerate() {
            let number = place + 1;
            let by = documents.get(chain.whose(number)).ok_or(AckError::NoDocument)?;
            let link = if number == 1 {
                let signature = json::from_value(document.clone())?;
                let first = Countersignature { receipt: receipt.receipt_id, receipt_hash: hash, signature };
                first.verify(receipt, by)?
            } else {
                let statement = Acknowledgement { acknowledgement: document.clone() };
                let at = statement.read()?.0.at;
                if at > now.plus(MAX_SKEW) {
                    return Err(AckError::Early);
                }
                statement.verify(by, at)?
            };
            if chain.take(&link, now) != Taken::Next {
                return Err(AckError::DoesNotFollow(number));
            }
        }
        Ok(chain)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ack::MAX_LINKS;
    use oap_identity::{Hash, ReceiptId, Signer, VerificationKey};
    use oap_memory::receipt::{self, Receipt};
    use serde_json::json;
    use std::time::Duration;

    fn now() -> Timestamp {
        Timestamp::from_seconds(1_777_636_800)
    }

    fn signer(seed: u8) -> Signer {
        Signer::did_key(&[seed; 32]).unwrap()
    }

    fn key(of: &Signer) -> VerificationKey {
        VerificationKey::new(of.kid().clone(), *of.public())
    }

    fn known(keys: [VerificationKey; 2]) -> BTreeMap<Did, Arc<DidDocument>> {
        let document = |key: VerificationKey| {
            let did = key.kid().did().clone();
            (did.clone(), Arc::new(DidDocument::new(did, vec![key])))
        };
        keys.map(document).into()
    }

    fn both() -> BTreeMap<Did, Arc<DidDocument>> {
        known([key(&signer(1)), key(&signer(2))])
    }

    /// A receipt of the first signer's to the second.
    fn receipt(number: u8) -> Receipt {
        let mut receipt: Receipt = serde_json::from_value(json!({
            "receipt_id": ReceiptId::from_bytes([number; 16]), "type": "invocation", "timestamp": now(),
            "principal_did": signer(1).did(), "agent_did": signer(2).did(), "action_id": "org.example.answer",
            "previous_receipt_hash": "genesis",
        }))
        .unwrap();
        receipt.sign(&signer(1)).unwrap();
        receipt
    }

    fn verified(number: u8) -> VerifiedReceipt {
        receipt::verify(&serde_json::to_value(receipt(number)).unwrap(), &both()).unwrap()
    }

    /// What both sign over a receipt, so many times, a minute after each other.
    fn signed(number: u8, links: usize) -> Vec<Value> {
        let receipt = receipt(number);
        let hash = receipt.hash().unwrap();
        let (granter, grantee) = (signer(1), signer(2));
        let mut chain = Chain::new(receipt.receipt_id, hash, granter.did().clone(), grantee.did().clone());
        chain.countersign(&receipt, &grantee, now()).unwrap();
        for number in 2..=links {
            let by = if number % 2 == 0 { &granter } else { &grantee };
            chain.sign_next(by, now().plus(Duration::from_secs(60 * number as u64))).unwrap();
        }
        chain.links().iter().map(|link| serde_json::from_str(&link.document).unwrap()).collect()
    }

    fn read(signed: &[Value]) -> Result<usize, AckError> {
        let later = now().plus(Duration::from_secs(3600));
        Chain::verify(&verified(7), signed, &both(), later).map(|chain| chain.links().len())
    }

    #[test]
    fn everything_that_was_signed_is_checked() {
        assert_eq!(read(&[]), Ok(0));
        for links in [1, 2, 3, MAX_LINKS] {
            assert_eq!(read(&signed(7, links)), Ok(links));
        }
    }

    /// The attacks: less in the middle, another order, one twice, what was changed, what is of another receipt, one more than there can be.
    #[test]
    fn what_was_not_signed_so_is_refused() {
        let good = signed(7, 4);
        let without = |place: usize| {
            let mut signed = good.clone();
            signed.remove(place);
            read(&signed)
        };
        assert!(matches!(without(0), Err(AckError::Json(_))));
        assert_eq!(without(1), Err(AckError::OtherKey));
        assert_eq!(
            read(&[good[0].clone(), good[1].clone(), good[2].clone(), good[1].clone()]),
            Err(AckError::DoesNotFollow(4))
        );
        assert_eq!(read(&[good[0].clone(), good[3].clone()]), Err(AckError::DoesNotFollow(2)));
        let changed = |place: usize, member: &str, value: Value| {
            let mut signed = good.clone();
            signed[place][member] = value;
            read(&signed)
        };
        assert!(matches!(changed(0, "value", json!("AAAA")), Err(AckError::Signature(_))));
        assert!(matches!(changed(3, "at", json!(now())), Err(AckError::Signature(_))));
        assert!(matches!(changed(3, "of", json!(Hash::of(b"x"))), Err(AckError::Signature(_))));
        assert!(matches!(changed(0, "more", json!(1)), Err(AckError::Json(_))));
        let other = signed(8, 2);
        assert!(matches!(read(&other), Err(AckError::Signature(_))));
        assert_eq!(read(&[good[0].clone(), other[1].clone()]), Err(AckError::DoesNotFollow(2)));
        let whole = signed(7, MAX_LINKS);
        assert_eq!(read(&[whole.clone(), whole[14..15].to_vec()].concat()), Err(AckError::DoesNotFollow(17)));
        let late = Chain::verify(&verified(7), &good, &both(), now().minus(Duration::from_secs(600)));
        assert_eq!(late, Err(AckError::Early));
    }

    /// A key that was retired since counts for what it signed before, one that is compromised for nothing.
    #[test]
    fn the_keys_as_they_stand() {
        let (good, later) = (signed(7, 3), now().plus(Duration::from_secs(3600)));
        let with = |granter: VerificationKey, grantee: VerificationKey| {
            Chain::verify(&verified(7), &good, &known([granter, grantee]), later).map(drop)
        };
        let (granter, grantee) = (key(&signer(1)), key(&signer(2)));
        assert_eq!(with(granter.clone().retired(later), grantee.clone().retired(later)), Ok(()));
        let early = now().plus(Duration::from_secs(1));
        assert!(matches!(with(granter.clone().retired(early), grantee.clone()), Err(AckError::Signature(_))));
        assert!(matches!(with(granter.clone(), grantee.revoked(later)), Err(AckError::Signature(_))));
        let alone = BTreeMap::from([(
            signer(1).did().clone(),
            Arc::new(DidDocument::new(signer(1).did().clone(), vec![granter])),
        )]);
        let refused = Chain::verify(&verified(7), &good, &alone, later);
        assert_eq!(refused, Err(AckError::NoDocument));
    }
}

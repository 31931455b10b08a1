//! What a granter tells the gateways of its grantees (OAP-CORE 17.3, RFC 0010 section 5.3): a grant ended, items are gone.

use oap_identity::time::MAX_SKEW;
use oap_identity::{DeletionId, Did, Hash, ItemId, Timestamp};
use oap_memory::deletion::DeletionReceipt;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// Most grants or items that one notice names.
pub const MAX_NAMED: usize = 256;

/// Grants that were revoked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RevocationNotice {
    /// The hashes of their documents; 1 to [`MAX_NAMED`].
    pub grants: Vec<Hash>,
    /// Since when they are void.
    pub revoked_at: Timestamp,
}

/// Items that were deleted, and that the receiver was shown.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DeletionNotice {
    /// The granter's own Deletion Receipt.
    pub deletion: DeletionId,
    /// The items; 1 to [`MAX_NAMED`].
    pub items: Vec<ItemId>,
    /// When they were deleted.
    pub deleted_at: Timestamp,
}

/// The list of a notice is empty, or too long.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{0}: name 1 to {MAX_NAMED}")]
pub struct NotNamed(pub &'static str);

impl RevocationNotice {
    /// Checks its list.
    ///
    /// # Errors
    /// [`NotNamed`].
    pub fn check(&self) -> Result<(), NotNamed> {
        named("body.grants", self.grants.len())
    }
}

impl DeletionNotice {
    /// Checks its list.
    ///
    /// # Errors
    /// [`NotNamed`].
    pub fn check(&self) -> Result<(), NotNamed> {
        named("body.items", self.items.len())
    }

    /// Whether a Deletion Receipt whose signature was checked says of every item that its receiver has it no more: it is the receiver's
    /// own, made after the deletion, and each item was destroyed or not there, and none is held. What an older one says was destroyed the
    /// receiver may have been shown again since.
    #[must_use]
    pub fn is_confirmed_by(&self, receipt: &DeletionReceipt, receiver: &Did) -> bool {
        let cascade = &receipt.scope.cascade;
        let gone: BTreeSet<&ItemId> =
            cascade.named.iter().chain(&cascade.derived).chain(&cascade.not_found).collect();
        receipt.principal_did == *receiver
            && receipt.completed_at.plus(MAX_SKEW) >= self.deleted_at
            && cascade.remaining == 0
            && self.items.iter().all(|item| gone.contains(item) && !cascade.held.contains(item))
    }
}

fn named(member: &'static str, length: usize) -> Result<(), NotNamed> {
    if (1..=MAX_NAMED).contains(&length) { Ok(()) } else { Err(NotNamed(member)) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use oap_memory::deletion::{Cascade, DeletionScope, Method};
    use std::time::Duration;

    fn item(n: u8) -> ItemId {
        ItemId::from_bytes([n; 16])
    }

    fn receipt(by: &str, cascade: Cascade) -> DeletionReceipt {
        let (did, at): (Did, _) = (by.parse().unwrap(), Timestamp::from_millis(5));
        DeletionReceipt {
            receipt_id: DeletionId::from_bytes([7; 16]),
            tool_did: did.clone(),
            principal_did: did,
            scope_id: None,
            request_received_at: at,
            completed_at: at,
            method: Method::CryptographicErasure,
            scope: DeletionScope {
                data_classes: Vec::new(),
                provenance_tags: Vec::new(),
                subprocessors_propagated_to: Vec::new(),
                items: Vec::new(),
                cascade,
            },
            exceptions: Vec::new(),
        }
    }

    #[test]
    fn what_confirms_a_deletion() {
        let notice = DeletionNotice {
            deletion: DeletionId::from_bytes([1; 16]),
            items: vec![item(1), item(2)],
            deleted_at: Timestamp::from_millis(1),
        };
        let receiver = "did:web:b.example".parse().unwrap();
        let confirms = |by: &str, cascade: Cascade| notice.is_confirmed_by(&receipt(by, cascade), &receiver);
        let all = Cascade { named: vec![item(1)], not_found: vec![item(2)], ..Cascade::default() };
        assert!(confirms("did:web:b.example", all.clone()));
        // Another's receipt, one item missing, one that is kept, one that is to come.
        assert!(!confirms("did:web:c.example", all.clone()));
        assert!(!confirms("did:web:b.example", Cascade { not_found: Vec::new(), ..all.clone() }));
        assert!(!confirms("did:web:b.example", Cascade { held: vec![item(2)], ..all.clone() }));
        assert!(!confirms("did:web:b.example", Cascade { remaining: 1, ..all.clone() }));
        // One of before, which says nothing of what the receiver was shown since.
        let later = |by: Duration| {
            let deleted_at = Timestamp::from_millis(5).plus(MAX_SKEW + by);
            let notice = DeletionNotice { deleted_at, ..notice.clone() };
            notice.is_confirmed_by(&receipt("did:web:b.example", all.clone()), &receiver)
        };
        assert!(later(Duration::ZERO) && !later(Duration::from_millis(1)));
    }
}

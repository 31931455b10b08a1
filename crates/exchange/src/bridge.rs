//! Cross Scope Bridges (RFC 0006 section 3.6): the owner's signed word that some of one scope may be shown under
//! another.

use oap_identity::UnverifiedDocument;
use oap_identity::json::JsonError;
use oap_identity::signed::{SignedError, sign_document};
use oap_identity::{BridgeId, Did, DidDocument, ScopeId, Signer, Timestamp};
use oap_memory::Head;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Most categories of a bridge.
pub const MAX_CATEGORIES: usize = 64;

/// What a bridge says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
#[allow(missing_docs, reason = "the names say it")]
pub struct Bridge {
    pub bridge_id: BridgeId,
    /// Whose scopes.
    pub principal: Did,
    /// Where the items are.
    pub from_scope: ScopeId,
    /// The scope of the grants that may show them.
    pub to_scope: ScopeId,
    /// The labels and kinds that may pass.
    pub data_categories: Vec<String>,
    /// (+) When it was signed.
    pub issued_at: Timestamp,
    /// Until when it holds.
    pub valid_until: Timestamp,
    /// Whether it can be taken back; always.
    pub revocable: bool,
}

/// Why a bridge was refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs, reason = "the names say it")]
pub enum BridgeError {
    /// Not a bridge.
    #[error("the bridge is malformed: {0}")]
    Malformed(#[from] JsonError),
    /// From a scope to itself.
    #[error("to_scope: must differ from from_scope")]
    SameScope,
    /// Nothing may pass, or too much is listed.
    #[error("data_categories: name 1 to {MAX_CATEGORIES} labels or kinds")]
    Categories,
    /// It has ended.
    #[error("valid_until: must be later than now")]
    Ended,
    /// It could not be taken back.
    #[error("revocable: must be true")]
    Irrevocable,
    /// Somebody else's.
    #[error("principal: is not the signer")]
    Principal,
    #[error("the bridge's signature: {0}")]
    Signature(#[from] SignedError),
}

/// A bridge whose signature was checked. [`SignedBridge::sign`] and [`SignedBridge::verify`] alone make one.
#[derive(Debug, Clone)]
pub struct SignedBridge {
    bridge: Bridge,
    document: Value,
}

impl SignedBridge {
    /// Signs a bridge.
    ///
    /// # Errors
    /// [`BridgeError`].
    pub fn sign(bridge: Bridge, signer: &Signer) -> Result<Self, BridgeError> {
        check(&bridge)?;
        if bridge.valid_until <= bridge.issued_at {
            return Err(BridgeError::Ended);
        }
        let mut document =
            serde_json::to_value(&bridge).map_err(|e| JsonError::NotCanonical(e.to_string()))?;
        sign_document(&mut document, signer)?;
        Ok(Self { bridge, document })
    }

    /// Checks a signed bridge against its principal's document.
    ///
    /// # Errors
    /// [`BridgeError`].
    pub fn verify(document: Value, principal: &DidDocument) -> Result<Self, BridgeError> {
        let parsed = UnverifiedDocument::<Bridge>::parse(document)?;
        let claimed = parsed.unverified();
        check(claimed)?;
        if claimed.principal != *principal.id() || parsed.kid()?.did() != principal.id() {
            return Err(BridgeError::Principal);
        }
        let issued_at = claimed.issued_at;
        let (document, bridge) = parsed.verify(principal, issued_at)?;
        Ok(Self { bridge, document })
    }

    /// What it says.
    #[must_use]
    pub const fn bridge(&self) -> &Bridge {
        &self.bridge
    }

    /// The signed document.
    #[must_use]
    pub const fn document(&self) -> &Value {
        &self.document
    }
}

fn check(bridge: &Bridge) -> Result<(), BridgeError> {
    if bridge.from_scope == bridge.to_scope {
        return Err(BridgeError::SameScope);
    }
    if !(1..=MAX_CATEGORIES).contains(&bridge.data_categories.len()) {
        return Err(BridgeError::Categories);
    }
    if bridge.revocable { Ok(()) } else { Err(BridgeError::Irrevocable) }
}

impl Bridge {
    /// Whether an item may pass to a scope over it at that time.
    #[must_use]
    pub fn carries(&self, head: &Head, to: &ScopeId, now: Timestamp) -> bool {
        self.from_scope == *head.scope_id
            && self.to_scope == *to
            && self.issued_at <= now
            && now < self.valid_until
            && covers(&self.data_categories, head)
    }
}

/// Whether one of the categories is a label or the kind of the item.
pub(crate) fn covers(categories: &[String], head: &Head) -> bool {
    categories.iter().any(|category| head.labels.contains(category) || head.kind.as_str() == category)
}

#[cfg(test)]
mod tests {
    use super::*;
    use oap_identity::VerificationKey;
    use oap_identity::random::Seeded;

    fn at() -> Timestamp {
        Timestamp::from_seconds(1_777_636_800)
    }

    fn signer(seed: u8) -> Signer {
        Signer::did_key(&[seed; 32]).unwrap()
    }

    fn document(of: &Signer) -> DidDocument {
        DidDocument::new(of.did().clone(), vec![VerificationKey::new(of.kid().clone(), *of.public())])
    }

    fn bridge() -> Bridge {
        Bridge {
            bridge_id: BridgeId::new(at(), &Seeded::new(1)),
            principal: signer(1).did().clone(),
            from_scope: "work".parse().unwrap(),
            to_scope: "personal".parse().unwrap(),
            data_categories: vec!["fact".to_owned()],
            issued_at: at(),
            valid_until: at().plus(std::time::Duration::from_millis(1)),
            revocable: true,
        }
    }

    /// The document of a bridge that was signed without a look at what it says.
    fn forced(bridge: &Bridge, signer: &Signer) -> Value {
        let mut document = serde_json::to_value(bridge).unwrap();
        sign_document(&mut document, signer).unwrap();
        document
    }

    #[test]
    fn what_may_not_be_a_bridge_is_neither_signed_nor_taken() {
        let good = bridge();
        assert!(SignedBridge::sign(good.clone(), &signer(1)).is_ok());
        assert!(SignedBridge::verify(forced(&good, &signer(1)), &document(&signer(1))).is_ok());
        let circular = Bridge { to_scope: good.from_scope.clone(), ..good.clone() };
        let empty = Bridge { data_categories: Vec::new(), ..good.clone() };
        let lasting = Bridge { revocable: false, ..good };
        for (bad, why) in [
            (circular, BridgeError::SameScope),
            (empty, BridgeError::Categories),
            (lasting, BridgeError::Irrevocable),
        ] {
            assert_eq!(SignedBridge::sign(bad.clone(), &signer(1)).unwrap_err(), why);
            let taken = SignedBridge::verify(forced(&bad, &signer(1)), &document(&signer(1)));
            assert_eq!(taken.unwrap_err(), why);
        }
    }

    /// One that has ended is still what was signed; it carries nothing.
    #[test]
    fn a_bridge_that_has_ended_is_not_signed() {
        let ended = Bridge { valid_until: at(), ..bridge() };
        assert_eq!(SignedBridge::sign(ended, &signer(1)).unwrap_err(), BridgeError::Ended);
    }

    /// The attacks: a bridge of somebody else's in the owner's name, and the owner's own in somebody else's.
    #[test]
    fn a_bridge_is_its_principals() {
        let (owner, other) = (signer(1), signer(2));
        let others = Bridge { principal: other.did().clone(), ..bridge() };
        for (bridge, by, of) in
            [(&bridge(), &other, &owner), (&others, &owner, &owner), (&others, &other, &owner)]
        {
            let taken = SignedBridge::verify(forced(bridge, by), &document(of));
            assert_eq!(taken.unwrap_err(), BridgeError::Principal);
        }
    }
}

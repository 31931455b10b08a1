//! That a receipt is in a log which so many witnesses signed (protocol section 16.4).

use super::checkpoint::{Checkpoint, CheckpointError};
use super::merkle::{self, ProofError};
use super::note::{Note, NoteError};
use super::tick;
use oap_identity::json;
use oap_identity::{DidDocument, Hash, ReceiptId, Timestamp};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Why a receipt is not believed to be in the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum InclusionError {
    /// The checkpoint is no note.
    #[error("the checkpoint: {0}")]
    Note(#[from] NoteError),
    /// The checkpoint is not the log's.
    #[error("the checkpoint: {0}")]
    Checkpoint(#[from] CheckpointError),
    /// The path below the leaf is too short or too long.
    #[error("the path within the tick has not {} hashes", tick::DEPTH)]
    Siblings,
    /// The receipt is not below the root that was signed.
    #[error("the receipt is not in the log: {0}")]
    Path(#[from] ProofError),
}

/// What a receipt is known by to whoever wants to see it in the log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Known {
    /// Its id.
    pub receipt_id: ReceiptId,
    /// Its hash.
    pub hash: Hash,
    /// The hash of the entry before it.
    pub previous: Hash,
    /// When it was made.
    pub at: Timestamp,
}

impl Known {
    /// What is to be kept of a receipt that was verified, as it came; `None` where it has not the members of one, or begins its chain.
    #[must_use]
    pub fn of(receipt: &Value) -> Option<Self> {
        let text = |name: &str| receipt.get(name)?.as_str();
        let mut unsigned = receipt.clone();
        let members = unsigned.as_object_mut()?;
        members.remove("signatures");
        members.remove("anchors");
        Some(Self {
            receipt_id: text("receipt_id")?.parse().ok()?,
            previous: text("previous_receipt_hash")?.parse().ok()?,
            at: text("timestamp")?.parse().ok()?,
            hash: Hash::of(&json::canonical(&unsigned).ok()?),
        })
    }
}

/// The way from a receipt to a checkpoint, as `GET /oap/memory/witnessed/{receipt_id}` answers it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Inclusion {
    /// The signed note, with the signatures of witnesses.
    pub checkpoint: String,
    /// Which leaf of the log, from 0 on.
    pub tick: u64,
    /// The siblings within the tick, the lowest first: 64.
    pub siblings: Vec<Hash>,
    /// The siblings of the leaf, the lowest first.
    pub path: Vec<Hash>,
}

impl Inclusion {
    /// Checks that a receipt is in the log of a principal; the note, whose witnesses are to be counted.
    ///
    /// # Errors
    /// [`InclusionError`].
    pub fn check(
        &self,
        receipt: &Known,
        principal: &DidDocument,
        now: Timestamp,
    ) -> Result<Note, InclusionError> {
        let note = Note::parse(self.checkpoint.as_bytes())?;
        let checkpoint = Checkpoint::verify(&note, principal, now)?;
        let root = tick::root_of(&receipt.hash, tick::slot(&receipt.previous), &self.siblings);
        let leaf = merkle::leaf(root.ok_or(InclusionError::Siblings)?.as_bytes());
        merkle::check_inclusion(leaf, self.tick, checkpoint.size, &self.path, &checkpoint.root)?;
        Ok(note)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::log::tick::Tick;
    use oap_identity::{Signer, VerificationKey};
    use serde_json::json;
    use std::collections::BTreeMap;
    use std::convert::Infallible;

    #[test]
    fn a_receipt_is_in_the_log_or_not() {
        let signer = Signer::from_seed("did:web:user.example#key-1".parse().unwrap(), &[1; 32]).unwrap();
        let key = VerificationKey::new(signer.kid().clone(), *signer.public());
        let principal = DidDocument::new(signer.did().clone(), vec![key]);
        let now: Timestamp = "2026-05-01T12:00:00Z".parse().unwrap();
        let receipt = json!({
            "receipt_id": ReceiptId::from_bytes([1; 16]), "timestamp": now, "signatures": [],
            "previous_receipt_hash": Hash::of(b"head"),
        });
        let known = Known::of(&receipt).unwrap();
        // Signatures are no part of it.
        let mut signed = receipt.clone();
        signed["signatures"] = json!([{"by": "x"}]);
        assert_eq!(Known::of(&signed), Some(known.clone()));
        assert_eq!(Known::of(&json!({"previous_receipt_hash": "genesis"})), None);

        let tick = Tick::new([3; 32], BTreeMap::from([(tick::slot(&known.previous), known.hash)]));
        let leaves =
            [Hash::of(b"0"), tick.grow().root, Hash::of(b"2")].map(|root| merkle::leaf(root.as_bytes()));
        let mut nodes: BTreeMap<merkle::Place, Hash> = BTreeMap::new();
        for (size, leaf) in (0..).zip(leaves) {
            nodes.extend(merkle::append(size, leaf, |place| Ok::<_, Infallible>(nodes[&place])).unwrap());
        }
        let read = |place: merkle::Place| Ok::<_, Infallible>(nodes[&place]);
        let root = merkle::root(3, read).unwrap();
        let checkpoint = Checkpoint { origin: signer.did().to_string(), size: 3, root };
        let inclusion = Inclusion {
            checkpoint: checkpoint.sign(&signer).to_string(),
            tick: 1,
            // It is alone there.
            siblings: tick::path(&[3; 32], tick::slot(&known.previous), |_| {
                Ok::<_, Infallible>(tick::Below::Nothing)
            })
            .unwrap(),
            path: merkle::inclusion(1, 3, read).unwrap(),
        };
        assert!(inclusion.check(&known, &principal, now).is_ok());
        for other in [
            Known { hash: Hash::of(b"other"), ..known.clone() },
            Known { previous: Hash::of(b"other"), ..known.clone() },
        ] {
            let refused = inclusion.check(&other, &principal, now);
            assert_eq!(refused.err(), Some(InclusionError::Path(ProofError::Root)));
        }
        let moved = Inclusion { tick: 0, ..inclusion.clone() }.check(&known, &principal, now);
        assert_eq!(moved.err(), Some(InclusionError::Path(ProofError::Root)));
        let short = Inclusion { siblings: Vec::new(), ..inclusion.clone() }.check(&known, &principal, now);
        assert_eq!(short.err(), Some(InclusionError::Siblings));
        // Of a log that somebody else signed.
        let other = Signer::from_seed(signer.kid().clone(), &[2; 32]).unwrap();
        let forged = Inclusion { checkpoint: checkpoint.sign(&other).to_string(), ..inclusion };
        let unsigned = InclusionError::Checkpoint(CheckpointError::Unsigned);
        assert_eq!(forged.check(&known, &principal, now).err(), Some(unsigned));
    }
}

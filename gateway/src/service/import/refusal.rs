//! Why an item or a record is not taken in.

use super::MAX_SOURCE;
use oap_identity::ItemId;
use oap_identity::json::JsonError;
use oap_memory::commitment::CommitmentError;
use oap_memory::evidence::EvidenceError;

/// Why one item of a bundle, or one record, is not taken in.
#[derive(Debug, thiserror::Error)]
pub enum ImportRefusal {
    /// Not of the expected shape.
    #[error(transparent)]
    Json(#[from] JsonError),
    /// A proof of the item does not hold.
    #[error(transparent)]
    Evidence(#[from] EvidenceError),
    /// Its version in force cannot be read.
    #[error(transparent)]
    Commitment(#[from] CommitmentError),
    /// A replaced version does not hold, has no place in the chain or is none of an item.
    #[error("superseded: {0}")]
    Superseded(Box<Self>),
    /// What it says is no item of this gateway.
    #[error(transparent)]
    Item(#[from] Box<crate::Error>),
    /// What every version has, or a span of its text, is not disclosed: read without it, the item would be another one.
    #[error("integrity.sd_jwt: does not disclose {0}; an item comes in with every disclosure")]
    HeldBack(&'static str),
    /// Somebody else's item.
    #[error("owner: its chain ends with another than the bundle's principal")]
    OtherOwner,
    /// An entry whose key another one has.
    #[error("another entry in force has its namespace and key")]
    EntryKey,
    /// An item of a bundle that was erased.
    #[error("it was erased here, and an import does not bring it back")]
    Erased,
    /// A record whose item was erased: it can be asked back.
    #[error("it was erased here, and an import does not bring it back: say --again {0}, if you want it")]
    ErasedRecord(ItemId),
    /// A record of the same place as one whose item was erased.
    #[error(
        "something of the same place was erased here, and nothing is kept that could tell whether this is it; if you want \
         it, write it with `item add`, or say --again {0} for all of that place"
    )]
    ErasedPlace(ItemId),
    /// The item that it is, is held.
    #[error("it is under a hold here; end the hold first")]
    Held,
    /// The item that it is has gone another way here.
    #[error("another item of the same id, or another history of it, is here")]
    OtherHistory,
    /// Another item's receipt, or another house's, has the id of its capture receipt.
    #[error("integrity.capture_receipt: another receipt of the same id is here")]
    OtherReceipt,
    /// The item that it is was retracted.
    #[error("it was taken back here")]
    Retracted,
    /// The item that it is stands in another scope.
    #[error("scope_id: it was imported into another scope before")]
    OtherScope,
    /// Nothing says where the record comes from, or too much.
    #[error("source: must be 1 to {MAX_SOURCE} bytes")]
    Source,
    /// The name of its list is too long.
    #[error("group: at most {MAX_SOURCE} bytes")]
    Group,
}

impl From<crate::Error> for ImportRefusal {
    fn from(error: crate::Error) -> Self {
        Self::Item(Box::new(error))
    }
}

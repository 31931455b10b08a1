//! What of the store, or of the program, is not what the program made it.

use crate::error::ListError;
use oap_identity::ItemId;
use oap_identity::did::DidError;
use oap_identity::jwk::KeyError;
use oap_memory::commitment::CommitmentError;
use oap_memory::receipt::ReceiptError;
use std::io;

/// What cannot be read, though the program wrote it. The owner's log alone tells it.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the names say it")]
pub enum Corrupt {
    /// A value in the compact form.
    #[error(transparent)]
    Compact(#[from] postcard::Error),
    #[error(transparent)]
    Json(#[from] serde_json::Error),
    /// A version of an item.
    #[error(transparent)]
    Commitment(#[from] CommitmentError),
    /// A version of an item, while a view is made.
    #[error("{0}: {1}")]
    Version(ItemId, CommitmentError),
    /// The receipt of an item's capture is gone.
    #[error("{0}: its capture receipt is not there")]
    NoCaptureReceipt(ItemId),
    /// A document that is no text.
    #[error("a stored document is not UTF-8")]
    NotUtf8,
    /// No keys are stored.
    #[error("the store has no keys")]
    NoKeys,
    /// A stored key is none.
    #[error("keys: {0}")]
    Key(KeyError),
    /// A stored key has a name that is none.
    #[error("keys: {0}")]
    KeyName(DidError),
    /// Every stored key is retired or revoked.
    #[error("keys: no key is in use")]
    NoKeyInUse,
    /// The key that a grant was accepted with is none.
    #[error("a grant: {0}")]
    GrantKey(KeyError),
    /// A receipt chain does not hold.
    #[error("chain {0}: {1}")]
    Chain(String, ReceiptError),
    /// A receipt chain was cut, or its state was.
    #[error("chain {0} is not as long as its state says")]
    ChainLength(String),
    /// More receipt chains were begun than there are numbers.
    #[error("more receipt chains than numbers")]
    TooManyChains,
    /// The log lacks a part of its tree, or its checkpoint is none.
    #[error("the log is not whole")]
    Log,
    /// The account of a grantee without a DID.
    #[error("a grantee's account without a DID")]
    Account,
    /// The list of erasures does not hold, and cannot be put aside.
    #[error("the list of erasures: {0}; {1}")]
    ListNotPutAside(ListError, io::Error),
    /// The list of erasures cannot be written.
    #[error("the list of erasures: {0}")]
    ListFile(io::Error),
    /// A request that no layer gave a name to.
    #[error("a request without name")]
    NoRequestName,
    /// A body that two handlers read.
    #[error("a body is read twice")]
    BodyReadTwice,
}

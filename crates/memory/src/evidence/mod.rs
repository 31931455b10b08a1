//! What the receiver checks (protocol section 4.2), offline, with the DID documents of those who signed.
//!
//! What comes in is foreign JSON. What comes out says what was proved, what was derived from the proof, what stands
//! outside it, and what was not checked: a [`VerifiedItem`] of [`item()`], a [`VerifiedAnswer`] of [`answer()`].

mod answer;
mod explain;
mod item;

pub use answer::{AnswerError, Disclosure, VerifiedAnswer, answer};
pub use explain::explain;
pub use item::{CaptureError, VerifiedItem, check_place, item};

use crate::chain::ChainError;
use crate::commitment::CommitmentError;
use crate::epistemic::Epistemic;
use crate::form::FormError;
use crate::receipt::ReceiptError;
use crate::record::Status;
use crate::sd_jwt::SdJwtError;
use oap_identity::json::JsonError;
use oap_identity::{Did, ItemId, Timestamp};

crate::reasons! {
    /// Why an item or an answer was refused.
    EvidenceError {
        /// A member that must be there.
        #[error("member {0:?} is missing or has the wrong shape")]
        Member(&'static str) = "item.member",
        /// A member of `integrity` that it does not have.
        #[error("integrity: unknown member{0}")]
        UnknownMember(String) = "item.unknown_member",
        /// The visible item says something that was not disclosed, or not all that was.
        #[error("the visible item is not what its disclosures show; member{0} differs")]
        Visible(String) = "item.visible",
        /// `owner_did` is not the issuer.
        #[error("owner_did: must be the issuer of the SD-JWT")]
        Owner = "item.owner",
        /// `version` is not the one in force.
        #[error("version: the chain says {0}")]
        Version(u32) = "item.version",
        /// `status` is not that of the chain.
        #[error("status: the chain says {0}")]
        Status(Status) = "item.status",
        /// An attitude that the chain or the confidence does not allow.
        #[error("epistemic: {0} needs the owner's confirmation in the chain, and confidence 1")]
        Epistemic(Epistemic) = "item.epistemic",
        /// The chain ended, and there can be no content.
        #[error("the chain says that the item was erased")]
        Ended = "item.ended",
        /// The chain does not end with this version.
        #[error("the last link commits to another version than the SD-JWT")]
        Commitment = "item.commitment",
        /// The SD-JWT stands at another place of the chain than it says.
        #[error("the SD-JWT and its link disagree on {0}")]
        Place(&'static str) = "item.place",
        /// Something in it is from the future.
        #[error("it is from the future: {0}")]
        Future(Timestamp) = "item.future",
        /// No SD-JWT: the chain holds, and nothing ties the content to it.
        #[error(
            "member \"integrity.sd_jwt\" is missing: nothing proves what the item shows; query with full integrity"
        )]
        Unproved = "item.unproved",
        /// No canonical form.
        #[error("{0}")]
        Json(#[from] JsonError) = "item.json",
        /// Somebody else's item.
        #[error("item {0} is held by {1}, and {2} disclosed it: it was copied on, not disclosed by its owner")]
        Copied(ItemId, Did, Did) = "answer.copied",
    }
    within {
        #[error("sd_jwt: {0}")]
        SdJwt(#[from] CommitmentError),
        #[error("chain: {0}")]
        Chain(#[from] ChainError),
        /// The capture receipt, or the answer's.
        #[error("receipt: {0}")]
        Receipt(#[from] ReceiptError),
        /// The capture receipt is not one of this chain.
        #[error("the capture receipt does not belong to this chain: {0}")]
        Capture(#[from] CaptureError),
        /// The answer as a whole.
        #[error("the answer: {0}")]
        Answer(#[from] AnswerError),
    }
}

/// The stable names of all checks of items, answers and receipts, those of the parts included.
pub fn checks() -> impl Iterator<Item = &'static str> {
    [
        EvidenceError::CHECKS,
        AnswerError::CHECKS,
        CaptureError::CHECKS,
        ChainError::CHECKS,
        CommitmentError::CHECKS,
        FormError::CHECKS,
        SdJwtError::CHECKS,
        ReceiptError::CHECKS,
        crate::deletion::DeletionError::CHECKS,
        crate::bundle::BundleError::CHECKS,
    ]
    .into_iter()
    .flatten()
    .copied()
}

//! What a letter can be of. A new type is a new variant here, and does not compile without its handler in the gateway.

use crate::ack::{AckError, Acknowledgement, Countersignature};
use crate::ask::{AccessRequest, AccessStatus, AccessWithdrawal, AskError, GrantDelivery};
use crate::notice::{DeletionNotice, NotNamed, RevocationNotice};
use crate::pairing::Pairing;
use oap_identity::json::{self, JsonError};
use oap_memory::closed_enum;
use serde::Serialize;
use serde_json::Value;

closed_enum! {
    /// The `type` of a letter.
    LetterKind {
        /// Somebody asks for access. It gives none.
        AccessRequest = "access_request",
        /// What became of such a request.
        AccessStatus = "access_status",
        /// Whoever asked takes it back.
        AccessWithdrawal = "access_withdrawal",
        /// A signed grant, for the gateway of its grantee.
        GrantDelivery = "grant_delivery",
        /// Grants that were revoked.
        RevocationNotice = "revocation_notice",
        /// Items that were deleted.
        DeletionNotice = "deletion_notice",
        /// A grantee's signature under the receipt of an answer.
        Countersignature = "countersignature",
        /// A signature over the one that the receiver made last.
        Acknowledgement = "acknowledgement",
        /// A step on the way to being devices of one owner.
        DevicePairing = "device_pairing",
    }
}

/// What a letter says.
#[derive(Debug, Clone, PartialEq)]
#[allow(missing_docs, reason = "the types say it")]
pub enum Content {
    AccessRequest(Box<AccessRequest>),
    AccessStatus(AccessStatus),
    AccessWithdrawal(AccessWithdrawal),
    GrantDelivery(GrantDelivery),
    RevocationNotice(RevocationNotice),
    DeletionNotice(DeletionNotice),
    Countersignature(Box<Countersignature>),
    Acknowledgement(Acknowledgement),
    DevicePairing(Pairing),
}

/// Why the body of a letter was refused. The text names the member.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs, reason = "the names say it")]
pub enum ContentError {
    #[error("body: {0}")]
    Json(#[from] JsonError),
    #[error(transparent)]
    Ask(#[from] AskError),
    #[error(transparent)]
    Notice(#[from] NotNamed),
    #[error(transparent)]
    Ack(#[from] AckError),
}

impl Content {
    /// Its type.
    #[must_use]
    pub const fn kind(&self) -> LetterKind {
        match self {
            Self::AccessRequest(_) => LetterKind::AccessRequest,
            Self::AccessStatus(_) => LetterKind::AccessStatus,
            Self::AccessWithdrawal(_) => LetterKind::AccessWithdrawal,
            Self::GrantDelivery(_) => LetterKind::GrantDelivery,
            Self::RevocationNotice(_) => LetterKind::RevocationNotice,
            Self::DeletionNotice(_) => LetterKind::DeletionNotice,
            Self::Countersignature(_) => LetterKind::Countersignature,
            Self::Acknowledgement(_) => LetterKind::Acknowledgement,
            Self::DevicePairing(_) => LetterKind::DevicePairing,
        }
    }

    /// Reads the body of a letter of a type, and checks all that needs no time and no state.
    ///
    /// # Errors
    /// [`ContentError`].
    pub fn read(kind: LetterKind, body: Value) -> Result<Self, ContentError> {
        let content = match kind {
            LetterKind::AccessRequest => Self::AccessRequest(json::from_value(body)?),
            LetterKind::AccessStatus => Self::AccessStatus(json::from_value(body)?),
            LetterKind::AccessWithdrawal => Self::AccessWithdrawal(json::from_value(body)?),
            LetterKind::GrantDelivery => Self::GrantDelivery(json::from_value(body)?),
            LetterKind::RevocationNotice => Self::RevocationNotice(json::from_value(body)?),
            LetterKind::DeletionNotice => Self::DeletionNotice(json::from_value(body)?),
            LetterKind::Countersignature => Self::Countersignature(json::from_value(body)?),
            LetterKind::Acknowledgement => Self::Acknowledgement(json::from_value(body)?),
            LetterKind::DevicePairing => Self::DevicePairing(json::from_value(body)?),
        };
        content.check()?;
        Ok(content)
    }

    /// Checks all that needs no time and no state.
    ///
    /// # Errors
    /// [`ContentError`].
    pub fn check(&self) -> Result<(), ContentError> {
        match self {
            Self::AccessRequest(request) => Ok(request.ask.check()?),
            Self::RevocationNotice(notice) => Ok(notice.check()?),
            Self::DeletionNotice(notice) => Ok(notice.check()?),

            Self::Acknowledgement(acknowledgement) => Ok(acknowledgement.check()?),
            Self::AccessStatus(_)
            | Self::AccessWithdrawal(_)
            | Self::GrantDelivery(_)
            | Self::Countersignature(_)
            | Self::DevicePairing(_) => Ok(()),
        }
    }

    /// The body of a letter that says it.
    ///
    /// # Errors
    /// [`ContentError::Json`] for a number that JSON cannot say.
    pub fn body(&self) -> Result<Value, ContentError> {
        Ok(match self {
            Self::AccessRequest(request) => written(request)?,
            Self::AccessStatus(status) => written(status)?,
            Self::AccessWithdrawal(withdrawal) => written(withdrawal)?,
            Self::GrantDelivery(delivery) => written(delivery)?,
            Self::RevocationNotice(notice) => written(notice)?,
            Self::DeletionNotice(notice) => written(notice)?,
            Self::Countersignature(countersignature) => written(countersignature)?,
            Self::Acknowledgement(acknowledgement) => written(acknowledgement)?,
            Self::DevicePairing(pairing) => written(pairing)?,
        })
    }
}

fn written<T: Serialize>(body: &T) -> Result<Value, JsonError> {
    serde_json::to_value(body).map_err(|e| JsonError::NotCanonical(e.to_string()))
}

//! What a receipt can be of, and what that makes of the rest of it (`docs/bytes.md` 6.1). The gateway drafts its receipts by
//! this table, and the verifier judges them by it.

use super::ReceiptType;
use crate::chain::Event;
use crate::item::closed_enum;

closed_enum! {
    /// The `action_id` of a receipt.
    Action {
        /// A chain was opened.
        Boot = "memory.boot",
        /// A head: how long the chain is.
        ChainHead = "memory.chain_head",
        /// An item was captured.
        Capture = "memory.capture",
        /// An item was corrected.
        Correct = "memory.correct",
        /// An item got other labels, terms or scope.
        Relabel = "memory.relabel",
        /// An item was concealed and signed anew.
        Reseal = "memory.reseal",
        /// The owner said that an item is right.
        Confirm = "memory.confirm",
        /// An item took in another.
        Merge = "memory.merge",
        /// An item was taken back.
        Retract = "memory.retract",
        /// An item is current again.
        Restore = "memory.restore",
        /// An item came from another program.
        Import = "memory.import",
        /// An item came from another house; without items, a whole bundle did (the Migration Receipt).
        Migrate = "memory.migrate",
        /// An item's time was over.
        Expire = "memory.expire",
        /// An item's keys were destroyed.
        Erase = "memory.erase",
        /// A deletion was done.
        Delete = "memory.delete",
        /// The tool said what it is.
        Describe = "memory.describe",
        /// A grant became a token.
        Exchange = "memory.exchange",
        /// A query was answered.
        Query = "memory.query",
        /// A bundle was written.
        Export = "memory.export",
        /// A vector was handed out.
        Vector = "memory.vector",
        /// A backup was made.
        Backup = "memory.backup",
        /// A Conformance Receipt was signed.
        Attest = "memory.attest",
        /// An audit of what is memorized was declared.
        AuditMemorization = "memory.audit_memorization",
        /// A grant was issued.
        Grant = "memory.grant",
        /// A grant was taken back.
        Revoke = "memory.revoke",
        /// A grant was passed on.
        Delegate = "memory.delegate",
        /// A context was set.
        Ccc = "memory.ccc",
        /// A context was removed.
        CccRemove = "memory.ccc_remove",
        /// A bridge was opened.
        Bridge = "memory.bridge",
        /// A bridge was closed.
        BridgeRevoke = "memory.bridge_revoke",
        /// Consent was given where a context asks for it.
        Consent = "memory.consent",
        /// Such consent was withdrawn.
        ConsentWithdraw = "memory.consent_withdraw",
        /// An account was set back.
        Refill = "memory.refill",
        /// An item is kept.
        Hold = "memory.hold",
        /// The clock was set right.
        ClockAccept = "memory.clock_accept",
        /// A chain goes on from a backup.
        RestoreBackup = "memory.restore_backup",
        /// The owner ended every grant and credential at once (OAP-CORE 22.3).
        Lockdown = "memory.lockdown",
        /// The owner lets the gateway answer again.
        LiftLockdown = "memory.lockdown_lift",
        /// A gateway became a device of the owner's.
        AddDevice = "memory.device_add",
        /// A device is none any more.
        RemoveDevice = "memory.device_remove",
        /// A device was told what changed, or what it told was taken over.
        SyncDevice = "memory.device_sync",
        /// There is a new key.
        RotateKey = "keys.rotate",
        /// A key is compromised.
        RevokeKey = "keys.revoke",
        /// An incident was reported.
        Incident = "incident.report",
    }
}

/// What `output_hash` and `provenance_tags_out` of a receipt are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names say it")]
pub enum Covers {
    /// One version of an item: its tag, and its commitment.
    Version,
    /// What was handed out: its hash, and a tag for each item in it.
    Disclosure,
    /// A document: its hash.
    Document,
    Nothing,
}

impl Action {
    /// The `type` of its receipts.
    #[must_use]
    pub const fn kind(self) -> ReceiptType {
        match self {
            Self::Boot
            | Self::ChainHead
            | Self::Capture
            | Self::Correct
            | Self::Relabel
            | Self::Reseal
            | Self::Confirm
            | Self::Merge
            | Self::Retract
            | Self::Restore
            | Self::Import
            | Self::Migrate
            | Self::Describe
            | Self::Exchange
            | Self::Query
            | Self::Export
            | Self::Vector
            | Self::Backup
            | Self::Attest
            | Self::AuditMemorization
            | Self::SyncDevice => ReceiptType::Invocation,
            Self::Grant
            | Self::Revoke
            | Self::Delegate
            | Self::Ccc
            | Self::CccRemove
            | Self::Bridge
            | Self::BridgeRevoke
            | Self::Consent
            | Self::ConsentWithdraw
            | Self::Refill
            | Self::Hold
            | Self::ClockAccept
            | Self::RestoreBackup
            | Self::Lockdown
            | Self::LiftLockdown
            | Self::AddDevice
            | Self::RemoveDevice
            | Self::RotateKey
            | Self::RevokeKey => ReceiptType::Consent,
            Self::Expire | Self::Erase | Self::Delete => ReceiptType::Deletion,
            Self::Incident => ReceiptType::Incident,
        }
    }

    /// What its receipts cover, where it was done and not refused.
    #[must_use]
    pub const fn covers(self) -> Covers {
        match self {
            Self::Capture
            | Self::Correct
            | Self::Relabel
            | Self::Reseal
            | Self::Confirm
            | Self::Merge
            | Self::Retract
            | Self::Restore
            | Self::Import
            | Self::Migrate
            | Self::Expire
            | Self::Erase => Covers::Version,
            Self::Query | Self::Export | Self::Vector => Covers::Disclosure,
            Self::Delete
            | Self::Describe
            | Self::Backup
            | Self::Attest
            | Self::AuditMemorization
            | Self::Grant
            | Self::Ccc
            | Self::CccRemove
            | Self::Bridge
            | Self::BridgeRevoke
            | Self::Consent
            | Self::ConsentWithdraw
            | Self::SyncDevice
            | Self::Incident => Covers::Document,
            Self::Boot
            | Self::ChainHead
            | Self::Exchange
            | Self::Revoke
            | Self::Delegate
            | Self::Refill
            | Self::Hold
            | Self::ClockAccept
            | Self::RestoreBackup
            | Self::Lockdown
            | Self::LiftLockdown
            | Self::AddDevice
            | Self::RemoveDevice
            | Self::RotateKey
            | Self::RevokeKey => Covers::Nothing,
        }
    }

    /// Whether a caller asks for it and can be refused with a receipt, whose outcome is `block`.
    #[must_use]
    pub const fn can_be_refused(self) -> bool {
        matches!(self, Self::Exchange | Self::Query | Self::Export | Self::Vector)
    }
}

impl From<Event> for Action {
    fn from(event: Event) -> Self {
        match event {
            Event::Capture => Self::Capture,
            Event::Correct => Self::Correct,
            Event::Relabel => Self::Relabel,
            Event::Reseal => Self::Reseal,
            Event::Confirm => Self::Confirm,
            Event::Merge => Self::Merge,
            Event::Retract => Self::Retract,
            Event::Restore => Self::Restore,
            Event::Import => Self::Import,
            Event::Migrate => Self::Migrate,
            Event::Expire => Self::Expire,
            Event::Erase => Self::Erase,
        }
    }
}

//! Where a gateway keeps what it must not lose, and what it must be able to lose for good.
//!
//! - [`Store`]: serializable transactions, one writer, group commit. What was acknowledged survives `kill -9`.
//! - [`Table`], [`Single`], [`Counter`]: what is stored, with types.
//! - [`Engine`]: what a database has to offer; [`RedbEngine`] on disk, or [`SledEngine`]; [`MemoryEngine`] in tests.
//! - [`Space`]: what is free on the disk, checked before each write, and a reserve for what must be finished.
//! - [`Vault`]: one key a version of an item, in a file of fixed slots. Overwriting a slot is what makes deletion
//!   real on a store that only ever appends.
//!
//! Every value is sealed with XChaCha20-Poly1305, bound to its table and key.

#![warn(clippy::unwrap_used)]

mod disk;
mod engine;
mod key;
mod memory;
mod seal;
mod space;
mod store;
mod table;
mod vault;

pub use disk::{EngineKind, RedbEngine, SledEngine};
pub use engine::{Engine, Op};
pub use key::Key;
pub use memory::MemoryEngine;
pub use space::{BESIDE, Disk, MAX_RESERVE, MIN_RESERVE, RESERVE_SHARE, Space};
pub use store::{SCHEMA, Store, Tx};
pub use table::{AsKey, Codec, Compact, Counter, Range, Raw, Rows, Single, Table, Under};
pub use vault::{Master, Slot, Vault};

/// Why the store refused or failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum StoreError {
    /// The database failed; the text is its own.
    #[error("the store failed: {0}")]
    Engine(String),
    /// The disk is full, but for the reserve; nothing was written.
    #[error("the disk is full: free {} MB more, or delete something, and try again", mb(*.missing))]
    Full {
        /// Bytes that are missing at least.
        missing: u64,
    },
    /// Another process has the store open.
    #[error("the store is in use by another process")]
    Locked,
    /// Written by another version of the program.
    #[error(
        "the store has schema version {found}, and this program knows {known}: use the version that wrote it"
    )]
    Schema {
        /// What the store says.
        found: u32,
        /// What this program knows.
        known: u32,
    },
    /// The vault file is missing, cut off or not a vault.
    #[error("the vault: {0}")]
    Vault(String),
    /// The passphrase or key file does not open the vault.
    #[error("the passphrase or key file does not open this vault")]
    WrongKey,
    /// The key of the value was destroyed.
    #[error("the value's key was destroyed")]
    Erased,
    /// The value is not what was written there.
    #[error("a stored value does not open: the store was changed from outside")]
    Tampered,
    /// A key that is none of its table's.
    #[error("a key of table {table} is not one")]
    Key {
        /// The table's number.
        table: u8,
    },
    /// A value that is none of its table's type: another program wrote it.
    #[error("a stored value cannot be read: table {table}: {reason}")]
    Value {
        /// The table's number.
        table: u8,
        /// What the reader of the compact form says.
        reason: postcard::Error,
    },
    /// A commit failed before; nothing is taken until a restart.
    #[error("the store stopped after a failed commit; restart the gateway")]
    Stopped,
    /// A transaction panicked: nothing of it was written, and the store goes on.
    #[error("a transaction failed inside the program; nothing of it was written")]
    Panicked,
}

/// Bytes as MB with one digit, rounded up: what is freed is then enough.
fn mb(bytes: u64) -> String {
    let tenths = bytes.div_ceil(100_000).max(1);
    format!("{}.{}", tenths / 10, tenths % 10)
}

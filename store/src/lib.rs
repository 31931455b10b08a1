//! Where a gateway keeps what it must not lose, and what it must be able to lose for good.
//!
//! - [`Store`]: serializable transactions, one writer, group commit. What was acknowledged survives `kill -9`.
//! - [`Engine`]: what a database has to offer; [`SledEngine`] on disk, [`MemoryEngine`] in tests.
//! - [`Vault`]: one key a version of an item, in a file of fixed slots. Overwriting a slot is what makes deletion
//!   real on a store that only ever appends.
//!
//! Every value is sealed with XChaCha20-Poly1305, bound to its table and key.

#![warn(clippy::unwrap_used)]

mod engine;
mod memory;
mod seal;
mod sled;
mod store;
mod vault;

pub use crate::sled::SledEngine;
pub use engine::{Engine, Op};
pub use memory::MemoryEngine;
pub use store::{SCHEMA, Store, Table, Tx};
pub use vault::{Master, Slot, Vault};

/// Why the store refused or failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum StoreError {
    /// The database failed; the text is its own.
    #[error("the store failed: {0}")]
    Engine(String),
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
    /// A commit failed before; nothing is taken until a restart.
    #[error("the store stopped after a failed commit; restart the gateway")]
    Stopped,
    /// A transaction panicked: nothing of it was written, and the store goes on.
    #[error("a transaction failed inside the program; nothing of it was written")]
    Panicked,
}

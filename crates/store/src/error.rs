//! Why the store refused or failed.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;

/// Why the store refused or failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum StoreError {
    /// The database or its disk failed.
    #[error("the store failed: {0}")]
    Engine(#[from] EngineError),
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
    Vault(#[from] VaultError),
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
    #[error("a key of table {table} cannot be read")]
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

/// What failed below the store.
///
/// Two are equal when they say the same: what the system and the databases report cannot be compared otherwise.
#[derive(Debug, Clone, thiserror::Error)]
pub enum EngineError {
    #[allow(missing_docs, reason = "named after the engine")]
    #[error("{0}")]
    Redb(Arc<redb::Error>),
    #[allow(missing_docs, reason = "named after the engine")]
    #[error("{0}")]
    Sled(sled::Error),
    /// A file of the database, or the folder that it is in.
    #[error("{0}")]
    File(Arc<io::Error>),
    /// The lock of a folder.
    #[error("{}: {error}", folder.display())]
    #[allow(missing_docs, reason = "the names say it")]
    Folder {
        folder: PathBuf,
        /// What the system says.
        error: Arc<io::Error>,
    },
    /// What is free on the disk cannot be told: nothing is written blindly.
    #[error("free space: {0}")]
    Space(Arc<io::Error>),
    /// The writer's thread cannot be started.
    #[error("{0}")]
    Writer(Arc<io::Error>),
    /// The disk was full while a snapshot was read, and the database was opened anew: what the snapshot stood on is no more.
    #[error("the disk was full meanwhile, and the database was opened anew: try again")]
    Superseded,
    /// Batches that were acknowledged are neither in the database nor in a journal: the files are not of one time, or the disk lost some.
    #[error("{file} begins with batch {first}, and those after {after} are missing: restore a backup")]
    #[allow(missing_docs, reason = "the names say it")]
    Lost { file: &'static str, after: u64, first: u64 },
    /// More bytes than a seal takes.
    #[error("a value is too large to seal")]
    TooLarge,
}

impl PartialEq for EngineError {
    fn eq(&self, other: &Self) -> bool {
        std::mem::discriminant(self) == std::mem::discriminant(other) && self.to_string() == other.to_string()
    }
}

impl Eq for EngineError {}

/// What is wrong with a vault.
#[derive(Debug, Clone, thiserror::Error)]
#[allow(missing_docs, reason = "the names say it")]
pub enum VaultError {
    #[error("{0}")]
    File(Arc<io::Error>),
    /// The file ends before its header.
    #[error("the file is cut off")]
    CutOff,
    /// More slots than numbers.
    #[error("too many slots")]
    TooManySlots,
    /// The file is something else.
    #[error("not a vault of version 1")]
    NotAVault,
    /// The parameters of the passphrase's derivation are none.
    #[error("{0}")]
    Derivation(argon2::Error),
    /// A passphrase was given.
    #[error("opens with a key file, not with a passphrase")]
    WantsKeyFile,
    /// A key file was given.
    #[error("opens with a passphrase, not with a key file")]
    WantsPassphrase,
}

impl PartialEq for VaultError {
    fn eq(&self, other: &Self) -> bool {
        std::mem::discriminant(self) == std::mem::discriminant(other) && self.to_string() == other.to_string()
    }
}

impl Eq for VaultError {}

/// Bytes as MB with one digit, rounded up: what is freed is then enough.
fn mb(bytes: u64) -> String {
    let tenths = bytes.div_ceil(100_000).max(1);
    format!("{}.{}", tenths / 10, tenths % 10)
}

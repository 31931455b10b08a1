//! Where a gateway keeps what it must not lose, and what it must be able to lose for good.
//!
//! - [`Store`]: serializable transactions, one writer, group commit. What was acknowledged survives `kill -9`.
//! - [`Table`], [`Single`], [`Counter`]: what is stored, with types.
//! - [`Engine`]: what a database has to offer; [`RedbEngine`] on disk, or [`SledEngine`]; [`MemoryEngine`] in tests.
//! - [`Space`]: what is free on the disk, checked before each write, and a reserve for what must be finished.
//! - [`Vault`]: one key a version of an item; [`FileVault`] keeps them in a file of fixed slots. Overwriting a slot is
//!   what makes deletion real on a store that only ever appends.
//!
//! Every value is sealed with XChaCha20-Poly1305, bound to its table and key.

#![warn(clippy::unwrap_used)]

mod disk;
mod engine;
mod error;
mod key;
mod memory;
mod seal;
mod space;
mod store;
mod table;
mod vault;

pub use disk::{EngineKind, RedbEngine, SledEngine};
pub use engine::{Engine, Op};
pub use error::{EngineError, StoreError, VaultError};
pub use key::Key;
pub use memory::MemoryEngine;
pub use space::{BESIDE, Disk, MAX_RESERVE, MIN_RESERVE, RESERVE_SHARE, Space};
pub use store::{SCHEMA, Store, Tx};
pub use table::{AsKey, Codec, Compact, Counter, Range, Raw, Rows, Single, Table, Under};
pub use vault::{ContentKey, FileVault, Master, Slot, Vault};

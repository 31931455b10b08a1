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
//!
//! ```
//! use oap_identity::random::Seeded;
//! use oap_store::{Store, StoreError, Table};
//! use std::sync::Arc;
//!
//! const ITEMS: Table = Table(2);
//!
//! # let runtime = tokio::runtime::Runtime::new().unwrap();
//! # runtime.block_on(async {
//! let store = Store::in_memory(Arc::new(Seeded::new(1)))?;
//! // A value under a key of its own, in a slot of the vault: all of the transaction or nothing.
//! let written = store.transact(|tx| {
//!     let slot = tx.new_slot()?;
//!     tx.put_in(slot, ITEMS, b"tea", b"at nine")?;
//!     Ok::<_, StoreError>(slot)
//! });
//! let slot = written.await?;
//! assert_eq!(store.get(ITEMS, b"tea")?.as_deref(), Some(&b"at nine"[..]));
//!
//! // Erased: the slot is overwritten, and what the engine still has of the value is noise.
//! let erased = store.transact(move |tx| {
//!     tx.delete(ITEMS, b"tea");
//!     tx.wipe(slot);
//!     Ok::<_, StoreError>(())
//! });
//! erased.await?;
//! assert_eq!(store.get(ITEMS, b"tea")?, None);
//! # Ok::<(), StoreError>(())
//! # }).unwrap();
//! ```

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

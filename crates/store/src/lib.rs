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
//! use oap_identity::ItemId;
//! use oap_identity::random::Seeded;
//! use oap_store::{Store, StoreError, Table};
//! use std::sync::Arc;
//!
//! /// What items say, by item.
//! const TEXTS: Table<ItemId, String> = Table::new(2);
//!
//! # let runtime = tokio::runtime::Runtime::new().unwrap();
//! # runtime.block_on(async {
//! let random = Arc::new(Seeded::new(1));
//! let item = ItemId::new("2026-05-01T12:00:00Z".parse()?, &*random);
//! let store = Store::in_memory(random)?;
//!
//! // A value under a key of its own, in a slot of the vault: all of the transaction or nothing.
//! let written = store.transact(move |tx| {
//!     let slot = tx.new_slot()?;
//!     TEXTS.put_in(tx, slot, &item, &"Tea at nine".to_owned())?;
//!     Ok::<_, StoreError>(slot)
//! });
//! let slot = written.await?;
//! assert_eq!(TEXTS.get(&store, &item)?.as_deref(), Some("Tea at nine"));
//!
//! // Erased: the slot is overwritten, and what the engine still has of the value is noise.
//! let erased = store.transact(move |tx| {
//!     TEXTS.delete(tx, &item);
//!     tx.wipe(slot);
//!     Ok::<_, StoreError>(())
//! });
//! erased.await?;
//! assert_eq!(TEXTS.get(&store, &item)?, None);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! # }).unwrap();
//! ```

#![warn(clippy::unwrap_used)]

mod disk;
mod engine;
mod error;
mod key;
mod memory;
pub mod seal;
mod space;
mod store;
mod table;
mod vault;

pub use disk::{EngineKind, RedbEngine, SledEngine};
pub use engine::{Engine, Op, OwnedPairs, Pairs};
pub use error::{EngineError, StoreError, VaultError};
pub use key::Key;
pub use memory::MemoryEngine;
pub use space::{BESIDE, Disk, MAX_RESERVE, MIN_RESERVE, RESERVE_SHARE, Space};
pub use store::{MAX_LAST, MAX_LATER, OLDEST_SCHEMA, SCHEMA, Snapshot, Store, Tx};
pub use table::{AsKey, Codec, Compact, Counter, Encoded, Range, Raw, Rows, Single, Table, Under, padded};
pub use vault::{ContentKey, FileVault, Master, Slot, Vault};

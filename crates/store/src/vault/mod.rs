//! The keys of values: each in a slot of its own, and destroyed for good when it is told to be.

mod file;

pub use file::FileVault;

use crate::StoreError;
use oap_identity::Random;
use zeroize::Zeroizing;

/// The number of a slot. 0 is the store's own key.
pub type Slot = u32;

/// A key that values are sealed with, wiped when it is dropped.
pub type ContentKey = Zeroizing<[u8; 32]>;

/// What opens a vault.
pub enum Master {
    /// 32 random bytes from a file, for unattended start.
    KeyFile(Zeroizing<[u8; 32]>),
    /// What a person remembers.
    Passphrase(Zeroizing<String>),
}

/// Where a store's keys are: numbered slots, each with a key or empty. Slot 0 holds the store's own and is never
/// emptied.
///
/// One writer calls [`Vault::allocate`] and [`Vault::wipe`]; any number of readers call [`Vault::key`], at any time.
pub trait Vault: Send + Sync + 'static {
    /// The key in a slot.
    ///
    /// # Errors
    /// [`StoreError::Erased`] when there is none, [`StoreError::Tampered`] when it is not what was put there.
    fn key(&self, slot: Slot) -> Result<ContentKey, StoreError>;

    /// A slot that nothing used, with a fresh key that is durable.
    ///
    /// # Errors
    /// [`StoreError::Full`], [`StoreError::Vault`].
    fn allocate(&self, random: &dyn Random) -> Result<(Slot, ContentKey), StoreError>;

    /// Destroys the keys in these slots, but for 0: nobody can have them back once it has returned.
    ///
    /// # Errors
    /// [`StoreError::Vault`].
    fn wipe(&self, slots: &[Slot]) -> Result<(), StoreError>;

    /// The slots that hold a key, but for 0 and those with a key that nobody has been given.
    fn used(&self) -> Vec<Slot>;

    /// All of it as a backup keeps it, of no use without the master key.
    ///
    /// # Errors
    /// [`StoreError::Vault`].
    fn image(&self) -> Result<Vec<u8>, StoreError>;
}

//! A vault in a file of fixed slots, each a content key sealed under the master key.
//!
//! | offset | bytes | what |
//! |---|---|---|
//! | 0 | 8 | `OAPVAULT` |
//! | 8 | 1 | version, 1 |
//! | 9 | 1 | how the master key comes: 0 key file, 1 passphrase through Argon2id |
//! | 10 | 12 | Argon2id memory (KiB), passes, lanes; little-endian |
//! | 22 | 16 | salt |
//! | 38 | 16 | the vault's own id |
//! | 54 | 74 | zero |
//! | 128 | 72 each | slots: nonce, sealed key; zeros where there is none |
//!
//! Slot 0 holds the store's own key. A slot's seal is bound to the vault and the slot's number.
//!
//! What a thief of the vault file gains: nothing without the master key. What one who controls it gains: they can
//! destroy keys, and with them content; they cannot read any, nor put a key of their own in the place of one.

use super::{ContentKey, Master, Slot, Vault};
use crate::seal::{self, OVERHEAD};
use crate::space::is_full;
use crate::{StoreError, VaultError};
use argon2::{Algorithm, Argon2, Params, Version};
use oap_identity::random::{self, Random};
use std::collections::BTreeSet;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, RwLock};
use zeroize::Zeroizing;

const MAGIC: &[u8; 8] = b"OAPVAULT";
const HEADER: usize = 128;
const SLOT: usize = 32 + OVERHEAD;
/// Argon2id: 64 MiB, three passes, one lane (RFC 9106, second recommended option).
const MEMORY_KIB: u32 = 64 * 1024;
const PASSES: u32 = 3;

/// Keys that are made durable at once, ahead of those who take them: a sync for each would be most of what an item costs.
const AHEAD: usize = 256;
/// Slots that are read at once when a vault is opened.
const READ_AT_ONCE: usize = 4096;

/// The keys of a store, in a file.
pub struct FileVault {
    backing: Backing,
    master: ContentKey,
    id: [u8; 16],
    free: Mutex<Free>,
    /// The key in slot 0, which is never destroyed and opens most values.
    own: OnceLock<ContentKey>,
}

/// Slots that nothing uses: those with a key that is ready, gaps, and everything from `end` on.
struct Free {
    /// Durable, and nobody's yet. Opening the vault's store destroys those that a program left.
    ready: Vec<(Slot, ContentKey)>,
    gaps: BTreeSet<Slot>,
    end: Slot,
}

impl Free {
    fn from(gaps: BTreeSet<Slot>, end: Slot) -> Mutex<Self> {
        Mutex::new(Self { ready: Vec::new(), gaps, end })
    }

    /// The next slots without a key, the first ones first.
    fn take(&mut self, most: usize) -> Vec<Slot> {
        let mut taken: Vec<Slot> = std::iter::from_fn(|| self.gaps.pop_first()).take(most).collect();
        for _ in taken.len()..most {
            taken.push(self.end);
            self.end += 1;
        }
        taken
    }
}

enum Backing {
    File(File),
    Memory(RwLock<Vec<u8>>),
}

impl Backing {
    fn read(&self, buffer: &mut [u8], offset: u64) -> io::Result<()> {
        match self {
            Self::File(file) => file.read_exact_at(buffer, offset),
            Self::Memory(bytes) => {
                let bytes = bytes.read().unwrap_or_else(PoisonError::into_inner);
                let start = usize::try_from(offset).unwrap_or(usize::MAX);
                let found = bytes.get(start..start.saturating_add(buffer.len()));
                buffer.copy_from_slice(found.ok_or(io::ErrorKind::UnexpectedEof)?);
                Ok(())
            }
        }
    }

    fn write(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        match self {
            Self::File(file) => file.write_all_at(bytes, offset),
            Self::Memory(all) => {
                let mut all = all.write().unwrap_or_else(PoisonError::into_inner);
                let start = usize::try_from(offset).unwrap_or(usize::MAX);
                let end = start + bytes.len();
                if all.len() < end {
                    all.resize(end, 0);
                }
                all[start..end].copy_from_slice(bytes);
                Ok(())
            }
        }
    }

    fn sync(&self) -> io::Result<()> {
        match self {
            Self::File(file) => file.sync_data(),
            Self::Memory(_) => Ok(()),
        }
    }

    fn len(&self) -> io::Result<u64> {
        match self {
            Self::File(file) => Ok(file.metadata()?.len()),
            Self::Memory(bytes) => Ok(bytes.read().unwrap_or_else(PoisonError::into_inner).len() as u64),
        }
    }
}

fn failed(error: io::Error) -> StoreError {
    VaultError::File(Arc::new(error)).into()
}

fn offset(slot: Slot) -> u64 {
    (HEADER + slot as usize * SLOT) as u64
}

impl FileVault {
    /// Makes a vault with the store's key in slot 0. The file, readable by its owner alone, must not be there.
    ///
    /// # Errors
    /// [`StoreError::Vault`].
    pub fn create(path: &Path, master: &Master, random: &dyn Random) -> Result<(), StoreError> {
        let file = OpenOptions::new().read(true).write(true).create_new(true).mode(0o600).open(path);
        let vault = Self::fill(Backing::File(file.map_err(failed)?), master, random)?;
        if let Backing::File(file) = &vault.backing {
            file.sync_all().map_err(failed)?;
        }
        Ok(())
    }

    /// A vault in memory, for tests.
    ///
    /// # Errors
    /// [`StoreError::Vault`].
    pub fn in_memory(random: &dyn Random) -> Result<Self, StoreError> {
        let master = Master::KeyFile(Zeroizing::new(random::bytes(random)));
        Self::fill(Backing::Memory(RwLock::default()), &master, random)
    }

    fn fill(backing: Backing, master: &Master, random: &dyn Random) -> Result<Self, StoreError> {
        let mut header = [0; HEADER];
        header[..8].copy_from_slice(MAGIC);
        header[8] = 1;
        if let Master::Passphrase(_) = master {
            header[9] = 1;
            header[10..14].copy_from_slice(&MEMORY_KIB.to_le_bytes());
            header[14..18].copy_from_slice(&PASSES.to_le_bytes());
            header[18..22].copy_from_slice(&1u32.to_le_bytes());
        }
        header[22..38].copy_from_slice(&random::bytes::<16>(random));
        header[38..54].copy_from_slice(&random::bytes::<16>(random));
        backing.write(&header, 0).map_err(failed)?;
        let (key, id) = read_header(&header, master)?;
        let vault =
            Self { backing, master: key, id, free: Free::from(BTreeSet::new(), 1), own: OnceLock::new() };
        vault.put(0, &Zeroizing::new(random::bytes(random)), random)?;
        vault.sync()?;
        vault.keep_own(vault.unseal(0)?);
        Ok(vault)
    }

    /// Opens a vault.
    ///
    /// # Errors
    /// [`StoreError::WrongKey`], [`StoreError::Vault`].
    pub fn open(path: &Path, master: &Master) -> Result<Self, StoreError> {
        let file = OpenOptions::new().read(true).write(true).open(path).map_err(failed)?;
        let backing = Backing::File(file);
        let mut header = [0; HEADER];
        backing.read(&mut header, 0).map_err(|_| VaultError::CutOff)?;
        let (master, id) = read_header(&header, master)?;
        let slots = (backing.len().map_err(failed)?.saturating_sub(HEADER as u64)) / SLOT as u64;
        let end = Slot::try_from(slots).map_err(|_| VaultError::TooManySlots)?;
        let vault =
            Self { backing, master, id, free: Free::from(BTreeSet::new(), end), own: OnceLock::new() };
        vault.keep_own(vault.unseal(0).map_err(|_| StoreError::WrongKey)?);
        let mut gaps = BTreeSet::new();
        let mut read = Vec::new();
        for first in (1..end).step_by(READ_AT_ONCE) {
            read.resize((end - first).min(READ_AT_ONCE as Slot) as usize * SLOT, 0);
            vault.backing.read(&mut read, offset(first)).map_err(failed)?;
            let is_empty = |(_, sealed): &(Slot, &[u8])| sealed.iter().all(|byte| *byte == 0);
            gaps.extend((first..).zip(read.chunks(SLOT)).filter(is_empty).map(|(slot, _)| slot));
        }
        vault.free().gaps = gaps;
        Ok(vault)
    }

    fn free(&self) -> MutexGuard<'_, Free> {
        self.free.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Makes keys ready: as many as the disk takes, one at least.
    fn make_ready(&self, free: &mut Free, random: &dyn Random) -> Result<(), StoreError> {
        let slots = free.take(AHEAD);
        let mut ready = Vec::with_capacity(slots.len());
        let put = slots.iter().try_for_each(|slot| {
            let key = Zeroizing::new(random::bytes(random));
            self.put(*slot, &key, random)?;
            ready.push((*slot, key));
            Ok(())
        });
        let refused = put.err().filter(|_| ready.is_empty());
        let synced = refused.map_or_else(|| self.sync(), Err);
        // What is not durable is written anew before anybody is given it.
        if synced.is_err() {
            ready.clear();
        }
        free.gaps.extend(&slots[ready.len()..]);
        // The last one is taken first.
        ready.reverse();
        free.ready = ready;
        synced
    }

    fn unseal(&self, slot: Slot) -> Result<ContentKey, StoreError> {
        let sealed = self.read(slot)?;
        if sealed.iter().all(|byte| *byte == 0) {
            return Err(StoreError::Erased);
        }
        let plain = Zeroizing::new(seal::open(&self.master, &self.place(slot), &sealed)?);
        let bytes: &[u8; 32] = plain.as_slice().try_into().map_err(|_| StoreError::Tampered)?;
        Ok(Zeroizing::new(*bytes))
    }

    fn keep_own(&self, key: ContentKey) {
        let _ = self.own.set(key);
    }

    fn sync(&self) -> Result<(), StoreError> {
        self.backing.sync().map_err(failed)
    }

    fn put(&self, slot: Slot, key: &ContentKey, random: &dyn Random) -> Result<(), StoreError> {
        let sealed = seal::seal(&self.master, &self.place(slot), key.as_slice(), random)?;
        self.backing.write(&sealed, offset(slot)).map_err(|error| match is_full(&error) {
            true => StoreError::Full { missing: SLOT as u64 },
            false => failed(error),
        })
    }

    fn read(&self, slot: Slot) -> Result<[u8; SLOT], StoreError> {
        let mut sealed = [0; SLOT];
        match self.backing.read(&mut sealed, offset(slot)) {
            Ok(()) => Ok(sealed),
            Err(e) if e.kind() == io::ErrorKind::UnexpectedEof => Err(StoreError::Erased),
            Err(e) => Err(failed(e)),
        }
    }

    fn place(&self, slot: Slot) -> Vec<u8> {
        [b"vault".as_slice(), &self.id, &slot.to_le_bytes()].concat()
    }
}

impl Vault for FileVault {
    fn key(&self, slot: Slot) -> Result<ContentKey, StoreError> {
        match self.own.get() {
            Some(own) if slot == 0 => Ok(own.clone()),
            _ => self.unseal(slot),
        }
    }

    fn allocate(&self, random: &dyn Random) -> Result<(Slot, ContentKey), StoreError> {
        let mut free = self.free();
        if free.ready.is_empty() {
            self.make_ready(&mut free, random)?;
        }
        // A disk that took none said so.
        free.ready.pop().ok_or(StoreError::Full { missing: SLOT as u64 })
    }

    fn wipe(&self, slots: &[Slot]) -> Result<(), StoreError> {
        for slot in slots.iter().filter(|slot| **slot != 0) {
            self.backing.write(&[0; SLOT], offset(*slot)).map_err(failed)?;
        }
        self.sync()?;
        self.free().gaps.extend(slots.iter().filter(|slot| **slot != 0));
        Ok(())
    }

    fn used(&self) -> Vec<Slot> {
        let free = self.free();
        let ready: BTreeSet<Slot> = free.ready.iter().map(|(slot, _)| *slot).collect();
        (1..free.end).filter(|slot| !free.gaps.contains(slot) && !ready.contains(slot)).collect()
    }

    fn image(&self) -> Result<Vec<u8>, StoreError> {
        let free = self.free();
        let length = usize::try_from(self.backing.len().map_err(failed)?).unwrap_or(usize::MAX);
        let mut bytes = vec![0; length];
        self.backing.read(&mut bytes, 0).map_err(failed)?;
        // Whoever gets one that is ready comes later: a copy of its key would outlive its erasure.
        for (slot, _) in &free.ready {
            let place = usize::try_from(offset(*slot)).unwrap_or(usize::MAX);
            bytes.get_mut(place..).into_iter().flatten().take(SLOT).for_each(|byte| *byte = 0);
        }
        Ok(bytes)
    }
}

fn read_header(header: &[u8; HEADER], master: &Master) -> Result<(ContentKey, [u8; 16]), StoreError> {
    if header[..8] != *MAGIC || header[8] != 1 {
        return Err(VaultError::NotAVault.into());
    }
    let number = |at: usize| u32::from_le_bytes([header[at], header[at + 1], header[at + 2], header[at + 3]]);
    let mut id = [0; 16];
    id.copy_from_slice(&header[38..54]);
    let key = match (header[9], master) {
        (0, Master::KeyFile(key)) => key.clone(),
        (1, Master::Passphrase(passphrase)) => {
            let wrong = VaultError::Derivation;
            let params = Params::new(number(10), number(14), number(18), Some(32)).map_err(wrong)?;
            let mut key = Zeroizing::new([0; 32]);
            Argon2::new(Algorithm::Argon2id, Version::V0x13, params)
                .hash_password_into(passphrase.as_bytes(), &header[22..38], key.as_mut_slice())
                .map_err(wrong)?;
            key
        }
        (0, _) => return Err(VaultError::WantsKeyFile.into()),
        _ => return Err(VaultError::WantsPassphrase.into()),
    };
    Ok((key, id))
}

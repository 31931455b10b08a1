//! Items that were written out for an answer, kept for the next one.

use crate::item::ViewItem;
use crate::member::Version;
use oap_identity::{Hash, ItemId};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Memory for written items, of all views together, in bytes.
pub const MAX_WRITTEN: usize = 64 << 20;
/// What a written item takes beside its text, in bytes, about.
const BESIDE: usize = 400;

/// What a written item is kept by: the item first, so that all that is kept of one stands together. How long an answer
/// takes must not tell one grantee what another one asked for: each sees their own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Key {
    version: Version,
    lens: Hash,
}

/// The items that were written out last, of all views of a gateway. What was not asked for longest goes first.
#[derive(Debug)]
pub struct WrittenItems {
    kept: Mutex<Kept>,
    max_bytes: usize,
}

#[derive(Debug, Default)]
struct Kept {
    items: BTreeMap<Key, (u64, Arc<ViewItem>)>,
    /// By last use.
    uses: BTreeMap<u64, Key>,
    count: u64,
    bytes: usize,
    /// Items that are being written out.
    writing: BTreeMap<ItemId, Writing>,
}

/// How many write an item out, and whether it was forgotten since: then what they wrote is not kept.
#[derive(Debug, Default)]
struct Writing {
    tasks: usize,
    forgotten: bool,
}

impl Default for WrittenItems {
    fn default() -> Self {
        Self::new(MAX_WRITTEN)
    }
}

impl WrittenItems {
    /// Of none, for so many bytes.
    #[must_use]
    pub fn new(max_bytes: usize) -> Self {
        Self { kept: Mutex::default(), max_bytes }
    }

    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// An item as it is kept, or as `write` gives it.
    pub(crate) fn get<E>(
        &self,
        lens: Hash,
        version: Version,
        write: impl FnOnce() -> Result<Option<ViewItem>, E>,
    ) -> Result<Option<Arc<ViewItem>>, E> {
        let key = Key { version, lens };
        {
            let mut kept = self.kept();
            if let Some(item) = kept.used(&key) {
                return Ok(Some(item));
            }
            kept.writing.entry(version.item).or_default().tasks += 1;
        }
        let mut ends = Ends { of: self, item: version.item, written: None };
        let item = write()?.map(Arc::new);
        ends.written = item.clone().map(|item| (key, item));
        Ok(item)
    }

    /// Lets go of an item: nothing of it stays, nor of what is being written of it.
    pub fn forget(&self, item: ItemId) {
        let mut kept = self.kept();
        let kept = &mut *kept;
        let first =
            Key { version: Version { item, number: 0, last_link: 0 }, lens: Hash::from_bytes([0; 32]) };
        let of = |(key, _): &(&Key, &(u64, Arc<ViewItem>))| key.version.item == item;
        let keys: Vec<Key> = kept.items.range(first..).take_while(of).map(|(key, _)| *key).collect();
        keys.iter().for_each(|key| kept.drop(key));
        if let Some(writing) = kept.writing.get_mut(&item) {
            writing.forgotten = true;
        }
    }

    /// Lets go of everything.
    pub fn clear(&self) {
        let mut kept = self.kept();
        let mut writing = std::mem::take(&mut kept.writing);
        writing.values_mut().for_each(|writing| writing.forgotten = true);
        *kept = Kept { writing, ..Kept::default() };
    }

    /// How much memory they take, in bytes, about.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.kept().bytes
    }

    /// Whether something of an item is kept.
    #[must_use]
    pub fn holds(&self, item: ItemId) -> bool {
        self.kept().items.keys().any(|key| key.version.item == item)
    }
}

/// The end of writing an item out, however it comes.
struct Ends<'a> {
    of: &'a WrittenItems,
    item: ItemId,
    written: Option<(Key, Arc<ViewItem>)>,
}

impl Drop for Ends<'_> {
    fn drop(&mut self) {
        let mut kept = self.of.kept();
        let Some(writing) = kept.writing.get_mut(&self.item) else { return };
        writing.tasks -= 1;
        let (over, forgotten) = (writing.tasks == 0, writing.forgotten);
        if over {
            kept.writing.remove(&self.item);
        }
        if let Some((key, item)) = self.written.take().filter(|_| !forgotten) {
            kept.put(key, item, self.of.max_bytes);
        }
    }
}

impl Kept {
    fn used(&mut self, key: &Key) -> Option<Arc<ViewItem>> {
        let (used, item) = self.items.get_mut(key)?;
        self.uses.remove(used);
        self.count += 1;
        *used = self.count;
        self.uses.insert(self.count, *key);
        Some(item.clone())
    }

    fn put(&mut self, key: Key, item: Arc<ViewItem>, max_bytes: usize) {
        self.drop(&key);
        self.count += 1;
        self.bytes += item.size() + BESIDE;
        self.uses.insert(self.count, key);
        self.items.insert(key, (self.count, item));
        while self.bytes > max_bytes
            && let Some((_, oldest)) = self.uses.first_key_value()
        {
            let oldest = *oldest;
            self.drop(&oldest);
        }
    }

    fn drop(&mut self, key: &Key) {
        if let Some((used, item)) = self.items.remove(key) {
            self.uses.remove(&used);
            self.bytes -= item.size() + BESIDE;
        }
    }
}

//! Where imported items came from: known while they are here, and of an erased one no more than that something from there was erased.
//!
//! What an item came from and what it said is a row of its own, sealed with the item's key, and goes with it. What stays of an erased item is
//! its id under the keyed hash of the identity of its source: format, account, thread and record id. Some formats have no ids, and their importers put a
//! hash of the record's content in the place of one; that is cut out of what stays, so that it never tells content.

use crate::error::Error;
use crate::state::commits::Writing;
use crate::state::gateway::Gateway;
use crate::state::schema::{self, FORMER_SOURCES, HEADS, SAID, SOURCES};
use hmac::{Hmac, Mac};
use oap_identity::{Hash, ItemId};
use oap_store::StoreError;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::collections::HashMap;
use std::sync::{PoisonError, RwLock};

/// How a hash is written in a source.
const HASH: &str = "sha256:";
/// Its hex digits.
const DIGITS: usize = 64;
/// Rows of the former form that one transaction takes.
const BATCH: usize = 2_000;
/// Bytes of a key of the former form.
const FORMER: usize = 20;

/// A keyed hash.
pub type Tag = [u8; 32];

/// A source, as it is stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct SourceTag {
    /// Of the whole source.
    pub(crate) whole: Tag,
    /// Of what of it may outlive the item; `None` for an item that was imported before this was kept.
    pub(crate) identity: Option<Tag>,
    /// Whether that is the whole source, so that it names one record.
    pub(crate) is_exact: bool,
}

/// What an imported item came from, and the hash of what it said.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[allow(missing_docs, reason = "the names say it")]
pub struct Said {
    pub(crate) source: SourceTag,
    /// What it said.
    pub(crate) says: Hash,
}

/// The items that are here, by source: by the first eight bytes of its tag, which tell apart what a memory has. What is found is looked
/// up in [`SAID`], which has the whole tag. Only here, and in no row: a row that is deleted may stay on a disk for a while.
#[derive(Debug, Default)]
pub(crate) struct Sources(RwLock<HashMap<u64, [u8; 16]>>);

fn short(whole: &Tag) -> u64 {
    let [a, b, c, d, e, f, g, h, ..] = *whole;
    u64::from_le_bytes([a, b, c, d, e, f, g, h])
}

impl Sources {
    /// The item that came from a source, as last committed.
    pub(crate) fn get(&self, whole: &Tag) -> Option<ItemId> {
        let sources = self.0.read().unwrap_or_else(PoisonError::into_inner);
        sources.get(&short(whole)).copied().map(ItemId::from_bytes)
    }

    fn put(&self, whole: Tag, item: ItemId) {
        self.0.write().unwrap_or_else(PoisonError::into_inner).insert(short(&whole), item.to_bytes());
    }

    /// Removes a source that another item has not taken since.
    fn remove_of(&self, whole: &Tag, item: ItemId) {
        let mut sources = self.0.write().unwrap_or_else(PoisonError::into_inner);
        if sources.get(&short(whole)) == Some(&item.to_bytes()) {
            sources.remove(&short(whole));
        }
    }
}

/// A source without the hashes of content in it.
fn identity(source: &str) -> String {
    let mut kept = String::with_capacity(source.len());
    let mut rest = source;
    while let Some(at) = rest.find(HASH) {
        let (before, after) = rest.split_at(at + HASH.len());
        kept.push_str(before);
        let digits = after.bytes().take_while(u8::is_ascii_hexdigit).count();
        rest = if digits >= DIGITS { after.get(DIGITS..).unwrap_or_default() } else { after };
    }
    kept + rest
}

impl Gateway {
    /// The keyed hashes of a source.
    pub(crate) fn source_tag(&self, source: &str) -> SourceTag {
        let key = self.keys().source_key();
        let digest = Sha256::digest(source.as_bytes());
        let kept = identity(source);
        SourceTag {
            whole: whole(&key, &digest),
            identity: Some(tag(&key, b"identity", kept.as_bytes())),
            is_exact: kept == source,
        }
    }

    /// The item that came from a source, and what it said, as last committed.
    pub(crate) fn known_source(&self, source: &SourceTag) -> Result<Option<(ItemId, Said)>, Error> {
        let Some(item) = self.sources.get(&source.whole) else { return Ok(None) };
        let said = self.said(item)?;
        Ok(said.filter(|said| said.source.whole == source.whole).map(|said| (item, said)))
    }

    /// What an item came from and what it said, as last committed.
    pub(crate) fn said(&self, item: ItemId) -> Result<Option<Said>, Error> {
        match SAID.get(&self.store, &item) {
            Ok(said) => Ok(said),
            Err(StoreError::Erased) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// The last item of the identity of a source that was erased here, as last committed.
    pub(crate) fn was_erased(&self, source: &SourceTag) -> Result<Option<ItemId>, Error> {
        let erased = source.identity.map(|identity| SOURCES.get(&self.store, &identity)).transpose()?;
        Ok(erased.flatten())
    }

    /// What a list of records without ids is told apart by, as it is stored.
    pub(crate) fn list_tag(&self, group: &str) -> Tag {
        tag(&self.keys().source_key(), b"list", group.as_bytes())
    }

    /// Brings rows of the former form, which held hashes of content, into this one; how many.
    ///
    /// # Errors
    /// [`Error::Store`], [`Error::Corrupt`].
    pub(crate) async fn convert_sources(self: &std::sync::Arc<Self>) -> Result<u64, Error> {
        let mut former = Vec::new();
        for row in FORMER_SOURCES.scan(&self.store) {
            match row {
                Ok(row) => former.push(row),
                // A row of today's form.
                Err(StoreError::Key { .. }) => {}
                Err(error) => return Err(error.into()),
            }
        }
        for batch in former.chunks(BATCH) {
            let batch = batch.to_vec();
            self.commit_own(move |w| {
                let secret = w.keys.source_key();
                for (key, (item, says)) in batch {
                    FORMER_SOURCES.delete(w.tx, &key);
                    // Of an erased one nothing stays: whether its source tells content cannot be seen any more.
                    if HEADS.get(w.tx, &item)?.is_some() {
                        let source =
                            SourceTag { whole: whole(&secret, &key), identity: None, is_exact: false };
                        w.put_said(item, Said { source, says })?;
                    }
                }
                Ok(())
            })
            .await?;
        }
        Ok(former.len() as u64)
    }

    /// Reads the sources of all items.
    ///
    /// # Errors
    /// [`Error::Store`].
    pub(crate) fn load_sources(&self) -> Result<(), Error> {
        for row in SAID.scan(&self.store) {
            match row {
                Ok((item, said)) => self.sources.put(said.source.whole, item),
                // Destroyed by a sweep that finished a deletion after a crash.
                Err(StoreError::Erased) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }
}

/// Of the first bytes of the digest of a source, which is what the former form had.
fn whole(key: &[u8; 32], digest: &[u8]) -> Tag {
    tag(key, b"whole", digest.get(..FORMER).unwrap_or(digest))
}

fn tag(key: &[u8; 32], what: &[u8], of: &[u8]) -> Tag {
    let mut mac = <Hmac<Sha256> as Mac>::new_from_slice(key)
        .unwrap_or_else(|_| unreachable!("HMAC takes a key of any length"));
    mac.update(what);
    mac.update(&[0]);
    mac.update(of);
    mac.finalize().into_bytes().into()
}

impl Writing<'_, '_> {
    /// The item that came from a source, and what it said, as it stands in this transaction.
    pub(crate) fn imported_from(&mut self, source: &SourceTag) -> Result<Option<(ItemId, Said)>, Error> {
        // What was written before in the same batch is not in memory yet.
        let mut pending = match self.sources.take() {
            Some(pending) => pending,
            None => self.pending_sources()?,
        };
        let found = pending.get(&source.whole).copied().or_else(|| self.gateway.sources.get(&source.whole));
        self.sources = Some(std::mem::take(&mut pending));
        let Some(item) = found else { return Ok(None) };
        Ok(self.said(item)?.filter(|said| said.source.whole == source.whole).map(|said| (item, said)))
    }

    fn pending_sources(&self) -> Result<HashMap<Tag, ItemId>, Error> {
        let mut pending = HashMap::new();
        for item in SAID.written(self.tx) {
            if let Some(said) = self.said(item)? {
                pending.insert(said.source.whole, item);
            }
        }
        Ok(pending)
    }

    /// What an item came from and what it said, as it stands in this transaction.
    pub(crate) fn said(&self, item: ItemId) -> Result<Option<Said>, Error> {
        Ok(SAID.get(self.tx, &item)?)
    }

    /// The last item of the identity of a source that was erased here, as it stands in this transaction.
    pub(crate) fn was_erased(&self, source: &SourceTag) -> Result<Option<ItemId>, Error> {
        let erased = source.identity.map(|identity| SOURCES.get(self.tx, &identity)).transpose()?;
        Ok(erased.flatten())
    }

    /// Remembers what an item came from, under the item's key.
    pub(crate) fn put_said(&mut self, item: ItemId, said: Said) -> Result<(), Error> {
        let (slot, _) = schema::head(self.tx, item)?;
        SAID.put_in(self.tx, slot, &item, &said)?;
        if let Some(pending) = &mut self.sources {
            pending.insert(said.source.whole, item);
        }
        let gateway = self.gateway.clone();
        self.tx.on_commit(move || gateway.sources.put(said.source.whole, item));
        Ok(())
    }

    /// Forgets what an item came from that comes from elsewhere by now.
    pub(crate) fn leave_source(&mut self, item: ItemId, former: &SourceTag) {
        let (gateway, whole) = (self.gateway.clone(), former.whole);
        self.tx.on_commit(move || gateway.sources.remove_of(&whole, item));
    }

    /// Forgets what an erased item came from, but for the identity of its source and the item's id.
    pub(crate) fn forget_source(&mut self, item: ItemId) -> Result<(), Error> {
        let Some(Said { source, .. }) = self.said(item)? else { return Ok(()) };
        SAID.delete(self.tx, &item);
        if let Some(identity) = &source.identity {
            SOURCES.put(self.tx, identity, &item)?;
        }
        let gateway = self.gateway.clone();
        self.tx.on_commit(move || gateway.sources.remove_of(&source.whole, item));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::identity;
    use oap_identity::Hash;

    #[test]
    fn an_identity_has_no_hash_of_content_in_it() {
        let (a, b) = (Hash::of(b"1234").to_string(), Hash::of(b"5678").to_string());
        assert_eq!(identity(&format!("mcp:entity:PIN:{a}")), identity(&format!("mcp:entity:PIN:{b}")));
        assert_eq!(identity(&format!("x:{a}:user#{b}#2")), "x:sha256::user#sha256:#2");
        // Nothing else is cut.
        for plain in ["chatgpt:t:m", "sha256:abc", "", "sha256:", "x:sha256:sha256:1"] {
            assert_eq!(identity(plain), plain);
        }
        // Longer digits and other scripts neither panic nor hide the digest.
        assert_eq!(identity(&format!("{a}ff·é")), "sha256:ff·é");
    }
}

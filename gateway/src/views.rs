//! From a [`VerifiedGrant`] to its view, cached.
//!
//! A view stays until an item that it holds, or that it would hold, changes. A change to any other item leaves it
//! alone, so that how long an answer takes does not tell a grantee that something was written which they may not
//! see.

use crate::error::Error;
use crate::gateway::Gateway;
use crate::tables::{self, LINKS, RECEIPTS};
use lru::LruCache;
use oap_grants::limits::{self, LimitError};
use oap_grants::{Grant, VerifiedGrant};
use oap_identity::{Hash, ItemId, Timestamp};
use oap_memory::View;
use oap_memory::chain::Link;
use oap_memory::record::Head;
use oap_memory::view::{Disclosed, Terms, ViewError, Whole};
use oap_store::Store;
use serde_json::Value;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// Times a view is built anew because an item changed meanwhile, before the caller is told to try again.
const ATTEMPTS: usize = 5;
/// Most views at once, whatever their size.
const MAX_VIEWS: usize = 1024;

type Key = (Hash, bool);

/// The views in memory.
pub struct Views {
    cache: Mutex<LruCache<Key, Arc<Entry>>>,
    max_bytes: usize,
}

struct Entry {
    grant: VerifiedGrant,
    /// Goes up with every change that concerns the view.
    changes: AtomicU64,
    built: tokio::sync::Mutex<Option<(u64, Arc<View>)>>,
    bytes: AtomicU64,
}

impl Views {
    /// An empty cache.
    #[must_use]
    pub fn new(max_bytes: usize) -> Self {
        Self { cache: Mutex::new(LruCache::unbounded()), max_bytes }
    }

    /// Tells every view that it concerns of an item's change.
    pub fn changed(&self, item: ItemId, before: Option<&Head>, after: Option<&Head>, now: Timestamp) {
        let cache = self.cache.lock().unwrap_or_else(PoisonError::into_inner);
        for (_, entry) in cache.iter() {
            let grant = entry.grant.grant();
            let admits = |head: Option<&Head>| {
                head.is_some_and(|head| {
                    grant.filter.admits(head, &grant.granter.scope, entry.grant.is_own_agent(), now)
                })
            };
            let held = || {
                let built = entry.built.try_lock();
                // A view that is being built may have taken the item in already.
                built.is_err() || built.is_ok_and(|b| b.as_ref().is_some_and(|(_, view)| view.contains(item)))
            };
            if admits(before) || admits(after) || held() {
                entry.changes.fetch_add(1, Ordering::AcqRel);
            }
        }
    }

    /// Forgets every view.
    pub fn clear(&self) {
        self.cache.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }

    fn entry(&self, grant: &VerifiedGrant, embeddings: bool) -> Arc<Entry> {
        let mut cache = self.cache.lock().unwrap_or_else(PoisonError::into_inner);
        let new = || {
            Arc::new(Entry {
                grant: grant.clone(),
                changes: AtomicU64::new(0),
                built: tokio::sync::Mutex::new(None),
                bytes: AtomicU64::new(0),
            })
        };
        cache.get_or_insert((grant.hash(), embeddings), new).clone()
    }

    /// Drops the views that were not asked for longest, until the rest fits.
    fn trim(&self) {
        let mut cache = self.cache.lock().unwrap_or_else(PoisonError::into_inner);
        let size = |cache: &LruCache<Key, Arc<Entry>>| -> u64 {
            cache.iter().map(|(_, entry)| entry.bytes.load(Ordering::Acquire)).sum()
        };
        while cache.len() > 1 && (size(&cache) > self.max_bytes as u64 || cache.len() > MAX_VIEWS) {
            cache.pop_lru();
        }
    }
}

impl Gateway {
    /// The view of a grant.
    ///
    /// # Errors
    /// [`Error::Store`], [`Error::Corrupt`]; [`Error::Conflict`] when items change faster than views are built.
    pub async fn view(
        self: &Arc<Self>,
        grant: &VerifiedGrant,
        embeddings: bool,
        disclosed: &Arc<Disclosed>,
    ) -> Result<Arc<View>, Error> {
        let entry = self.views.entry(grant, embeddings);
        let mut built = entry.built.lock().await;
        let now = self.clock.now();
        if let Some((changes, view)) = built.as_ref()
            && *changes == entry.changes.load(Ordering::Acquire)
            && view.ends().is_none_or(|end| now < end)
            && view.is_capped() == (disclosed.remaining() == 0)
        {
            return Ok(view.clone());
        }
        for _ in 0..ATTEMPTS {
            let before = entry.changes.load(Ordering::Acquire);
            let (gateway, owned, disclosed) = (self.clone(), grant.clone(), disclosed.clone());
            let view =
                tokio::task::spawn_blocking(move || gateway.build_view(&owned, embeddings, &disclosed))
                    .await
                    .map_err(|_| Error::Corrupt("building a view failed".into()))?;
            let unchanged = before == entry.changes.load(Ordering::Acquire);
            match view {
                Ok(view) if unchanged => {
                    let view = Arc::new(view);
                    entry.bytes.store(view.bytes() as u64, Ordering::Release);
                    *built = Some((before, view.clone()));
                    drop(built);
                    self.views.trim();
                    return Ok(view);
                }
                Err(error) if unchanged => return Err(error),
                _ => {}
            }
        }
        Err(Error::Conflict("the memory is changing; try again"))
    }

    fn build_view(
        &self,
        grant: &VerifiedGrant,
        embeddings: bool,
        disclosed: &Disclosed,
    ) -> Result<View, Error> {
        let own_agent = grant.is_own_agent();
        let grant = grant.grant();
        let embeddings = embeddings && grant.embedding_access;
        self.slice(grant, own_agent, embeddings, disclosed)
    }

    /// The slice of memory that a grant opens, whatever its state: for the owner's preview. What answers a
    /// grantee goes through [`Gateway::view`], which asks for a [`VerifiedGrant`].
    ///
    /// # Errors
    /// [`Error::Store`], [`Error::Corrupt`], [`Error::Limit`] for an unknown profile.
    pub fn slice(
        &self,
        grant: &Grant,
        own_agent: bool,
        embeddings: bool,
        disclosed: &Disclosed,
    ) -> Result<View, Error> {
        let profile = self.profile(&grant.redaction_profile);
        limits::check_profile(grant, profile)?;
        let profile = profile.ok_or_else(|| LimitError::UnknownProfile(grant.redaction_profile.clone()))?;
        let terms = Terms {
            filter: &grant.filter,
            scope: &grant.granter.scope,
            profile,
            level: grant.trust_level,
            own_agent,
            disclosed,
            embeddings,
            belief_threshold: self.config.belief_threshold,
            language: self.config.language.into(),
            now: self.clock.now(),
        };
        let heads = self.catalog.all();
        View::build(&terms, heads.iter().map(|head| &**head), |head| load(&self.store, head)).map_err(
            |error| match error {
                ViewError::Store(error) => error,
                ViewError::Commitment(item, error) => Error::Corrupt(format!("{item}: {error}")),
                ViewError::Json(error) => error.into(),
            },
        )
    }
}

/// The whole of an item: the version in force, its chain, the receipt of its capture.
///
/// # Errors
/// [`Error::NotFound`] when it was erased meanwhile, [`Error::Store`], [`Error::Corrupt`].
pub fn load(store: &Store, head: &Head) -> Result<Whole, Error> {
    let committed = tables::version(store, head.item_id, head.version_seq)?;
    let chain = stored_links(store, head.item_id)?;
    let first: Link = serde_json::from_str(chain.first().ok_or(Error::NotFound)?)?;
    let receipt = tables::receipt_id(first.receipt);
    let place = store.get(tables::RECEIPT_PLACES, &receipt)?.ok_or(Error::NotFound)?;
    let capture_receipt = store.get(RECEIPTS, &place)?.ok_or(Error::NotFound)?;
    Ok(Whole { committed, chain, capture_receipt: canonical(capture_receipt)? })
}

/// The chain of an item, oldest link first.
///
/// # Errors
/// [`Error::Store`], [`Error::Corrupt`].
pub fn links(store: &Store, item: ItemId) -> Result<Vec<Value>, Error> {
    stored_links(store, item)?.iter().map(|link| Ok(serde_json::from_str(link)?)).collect()
}

fn stored_links(store: &Store, item: ItemId) -> Result<Vec<String>, Error> {
    store.scan(LINKS, &item.to_bytes(), None, false).map(|pair| canonical(pair?.1)).collect()
}

/// A document that is stored in its canonical form.
fn canonical(bytes: Vec<u8>) -> Result<String, Error> {
    String::from_utf8(bytes).map_err(|_| Error::Corrupt("a stored document is not UTF-8".into()))
}

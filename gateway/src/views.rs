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
use oap_manifest::path;
use oap_memory::chain::Link;
use oap_memory::gate::{Gate, Report};
use oap_memory::record::Head;
use oap_memory::view::{Disclosed, Model, Terms, ViewError, Whole};
use oap_memory::{Query, Vector, View};
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

/// A view, and what its owner knows of how it came about.
pub struct Seen {
    /// All that a grantee can learn.
    pub view: View,
    /// The gates that its items passed.
    pub gate: Gate,
    /// What they decided of all items that the grant selects.
    pub report: Report,
    /// When.
    pub at: Timestamp,
    /// What the owner owed then: goes up with every change of a context or a bridge.
    pub obligations: u64,
}

struct Entry {
    grant: VerifiedGrant,
    /// Goes up with every change that concerns the view.
    changes: AtomicU64,
    built: tokio::sync::Mutex<Option<(u64, Arc<Seen>)>>,
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
            let admits = |head: &&Head| {
                grant.filter.admits(head, &grant.granter.scope, entry.grant.is_own_agent(), now)
            };
            let concerned = match entry.built.try_lock() {
                // A view that is being built may have taken the item in already.
                Err(_) => true,
                Ok(built) => built.as_ref().is_some_and(|(_, seen)| {
                    let enters = |head: Option<&Head>| {
                        head.filter(admits).is_some_and(|head| seen.gate.judge(head).passes)
                    };
                    seen.view.contains(item) || enters(before) || enters(after)
                }),
            };
            if concerned {
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
    ) -> Result<Arc<Seen>, Error> {
        let entry = self.views.entry(grant, embeddings);
        let mut built = entry.built.lock().await;
        let now = self.clock.now();
        if let Some((changes, seen)) = built.as_ref()
            && *changes == entry.changes.load(Ordering::Acquire)
            && seen.view.ends().is_none_or(|end| now < end)
            && seen.view.is_capped() == (disclosed.remaining() == 0)
        {
            return Ok(seen.clone());
        }
        for _ in 0..ATTEMPTS {
            let before = entry.changes.load(Ordering::Acquire);
            let (gateway, owned, disclosed) = (self.clone(), grant.clone(), disclosed.clone());
            let build = move || {
                let embeddings = embeddings && owned.grant().embedding_access;
                gateway.slice(owned.grant(), owned.is_own_agent(), embeddings, &disclosed)
            };
            let seen = tokio::task::spawn_blocking(build)
                .await
                .map_err(|_| Error::Corrupt("building a view failed".into()))?;
            let unchanged = before == entry.changes.load(Ordering::Acquire);
            match seen {
                Ok(seen) if unchanged => {
                    let seen = Arc::new(seen);
                    entry.bytes.store(seen.view.bytes() as u64, Ordering::Release);
                    *built = Some((before, seen.clone()));
                    drop(built);
                    self.views.trim();
                    return Ok(seen);
                }
                Err(error) if unchanged => return Err(error),
                _ => {}
            }
        }
        Err(Error::Conflict("the memory is changing; try again"))
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
    ) -> Result<Seen, Error> {
        let profile = self.profile(&grant.redaction_profile);
        limits::check_profile(grant, profile)?;
        let profile = profile.ok_or_else(|| LimitError::UnknownProfile(grant.redaction_profile.clone()))?;
        let now = self.clock.now();
        let (obligations, gate) = self.gate(grant, profile, own_agent, now)?;
        let terms = Terms {
            filter: &grant.filter,
            scope: &grant.granter.scope,
            profile,
            level: grant.trust_level,
            own_agent,
            disclosed,
            embeddings,
            model: None,
            belief_threshold: self.config.belief_threshold,
            gate: &gate,
            language: self.config.language.into(),
            now,
        };
        let embed = |texts: Vec<String>| self.vectors(grant, texts);
        let url = self.url(path::VECTORS);
        let model = self.embeddings.as_ref().map(|embeddings| Model {
            name: embeddings.model().name(),
            dimensions: embeddings.model().dimensions(),
            url: &url,
            embed: &embed,
        });
        let terms = Terms { model: model.as_ref(), ..terms };
        let heads = self.catalog.all();
        let built = View::build(&terms, heads.iter().map(|head| &**head), |head| load(&self.store, head));
        let (view, report) = built.map_err(|error| match error {
            ViewError::Store(error) => error,
            ViewError::Commitment(item, error) => Error::Corrupt(format!("{item}: {error}")),
            ViewError::Json(error) => error.into(),
        })?;
        Ok(Seen { view, gate, report, at: now, obligations })
    }
}

impl Gateway {
    /// The vectors of texts that the grantee of a grant sees; `None` while the model is out of reach. Called where
    /// waiting is allowed.
    fn vectors(&self, grant: &Grant, texts: Vec<String>) -> Option<Vec<Vector>> {
        let embeddings = self.embeddings.as_ref()?;
        let vectors = tokio::runtime::Handle::current().block_on(embeddings.of(space(grant), texts));
        vectors.map_err(|error| tracing::warn!(%error, "no vectors: ranking by words alone")).ok()
    }

    /// The vector of what a grantee asks, where the view has vectors.
    pub(crate) async fn meaning(&self, seen: &Seen, grant: &Grant, query: &Query) -> Option<Vector> {
        let embeddings = self.embeddings.as_ref().filter(|_| !seen.view.vectors().is_empty())?;
        if query.is_listing() {
            return None;
        }
        let vectors = embeddings.of(space(grant), vec![query.query.clone()]).await;
        let vectors = vectors.map_err(|error| tracing::warn!(%error, "no vector: ranking by words alone"));
        vectors.ok()?.pop()
    }
}

/// What separates the cached vectors of one grant from those of the others.
fn space(grant: &Grant) -> Hash {
    Hash::of(&grant.grant_id.to_bytes())
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
    let capture_receipt = match store.get(tables::RECEIPT_PLACES, &receipt)? {
        Some(place) => store.get(RECEIPTS, &place)?,
        None => store.get(tables::FOREIGN_RECEIPTS, &receipt)?,
    };
    let capture_receipt = capture_receipt.ok_or(Error::NotFound)?;
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

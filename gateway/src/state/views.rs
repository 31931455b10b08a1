//! From a [`VerifiedGrant`] to its view, cached.
//!
//! A view stays until an item that it holds, or that it would hold, changes. A change to any other item leaves it
//! alone, so that how long an answer takes does not tell a grantee that something was written which they may not
//! see. A view may be behind by what is committed while it is built or answered from: what an answer shows is read
//! again where its receipt is written.

use crate::error::{Corrupt, Error};
use crate::state::gateway::{Gateway, blocking};
use crate::state::grant_book::GrantKey;
use crate::state::schema::{self, LINKS, RECEIPTS};
use lru::LruCache;
use oap_exchange::allowance::Allowance;
use oap_exchange::gate::{Obligations, Report};
use oap_exchange::{Model, Preview, Query, Setting, Vector, View, ViewError};
use oap_grants::{Grant, VerifiedGrant};
use oap_identity::{Hash, ItemId, Timestamp};
use oap_manifest::path;
use oap_memory::chain::Link;
use oap_memory::record::{Head, Whole};
use oap_store::{Range, Store, StoreError};
use serde_json::Value;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::oneshot;

/// Most views at once, whatever their size.
const MAX_VIEWS: usize = 1024;
/// Most changes that are kept while a view is built, to be looked at once it is; beyond it counts as changed.
const MAX_MISSED: usize = 10_000;

type Key = (Hash, bool);

/// The views in memory.
pub struct Views {
    cache: Mutex<LruCache<Key, Arc<Entry>>>,
    max_bytes: usize,
}

/// A view, and what its owner knows of how it came about.
#[allow(missing_docs, reason = "the names say it")]
pub struct BuiltView {
    /// All that a grantee can learn.
    pub view: View,
    /// What the gates decided of all items that the grant selects.
    pub report: Report,
    pub at: Timestamp,
    /// The revision of what the owner owed then.
    pub obligations: u64,
}

/// What the gates before a grant's items rest on.
pub(crate) struct GateBasis {
    /// Its revision: goes up with every change of a context, bridge or consent.
    pub(crate) revision: u64,
    /// Contexts, bridges, lists.
    pub(crate) obligations: Obligations,
    /// Whether the owner consented to the grant.
    pub(crate) consented: bool,
}

struct Entry {
    grant: VerifiedGrant,
    /// Held by the one task that builds.
    building: tokio::sync::Mutex<()>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    built: Option<Arc<BuiltView>>,
    /// Whether something that concerns the view changed since it was begun.
    stale: bool,
    /// What changed while it is built; `None` while it is not.
    missed: Option<Vec<Change>>,
}

/// A change of an item.
#[derive(Clone)]
struct Change {
    item: ItemId,
    before: Option<Arc<Head>>,
    after: Option<Arc<Head>>,
    at: Timestamp,
}

impl Change {
    fn concerns(&self, built: &BuiltView) -> bool {
        built.view.concerns(self.item, self.before.as_deref(), self.after.as_deref(), self.at)
    }
}

impl Entry {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn changed(&self, change: &Change) {
        let mut state = self.state();
        let state = &mut *state;
        match (&mut state.missed, &state.built) {
            (Some(missed), _) if missed.len() < MAX_MISSED => missed.push(change.clone()),
            (Some(_), _) => state.stale = true,
            // Nothing of an item that was erased stays until somebody asks again.
            (None, Some(built)) if change.concerns(built) => {
                state.stale = true;
                state.built = None;
            }
            (None, _) => {}
        }
    }

    /// The view, where it can be answered from.
    fn fresh(&self, allowance: &Allowance, now: Timestamp) -> Option<Arc<BuiltView>> {
        let state = self.state();
        let built = state.built.as_ref().filter(|_| !state.stale)?;
        let holds =
            built.view.ends().is_none_or(|end| now < end) && *built.view.exhausted() == allowance.exhausted();
        holds.then(|| built.clone())
    }

    fn begin(&self) {
        let mut state = self.state();
        state.stale = false;
        state.missed = Some(Vec::new());
    }

    fn finish(&self, built: Option<Arc<BuiltView>>) {
        let mut state = self.state();
        let missed = state.missed.take().unwrap_or_default();
        if let Some(built) = &built {
            state.stale |= missed.iter().any(|change| change.concerns(built));
        }
        state.built = built.filter(|_| !state.stale);
    }

    fn bytes(&self) -> usize {
        self.state().built.as_ref().map_or(0, |built| built.view.bytes())
    }
}

impl Views {
    /// An empty cache.
    #[must_use]
    pub fn new(max_bytes: usize) -> Self {
        Self { cache: Mutex::new(LruCache::unbounded()), max_bytes }
    }

    fn cache(&self) -> MutexGuard<'_, LruCache<Key, Arc<Entry>>> {
        self.cache.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Tells every view that it concerns of an item's change.
    pub fn changed(&self, item: ItemId, before: Option<Arc<Head>>, after: Option<Arc<Head>>, at: Timestamp) {
        let change = Change { item, before, after, at };
        let entries: Vec<Arc<Entry>> = self.cache().iter().map(|(_, entry)| entry.clone()).collect();
        entries.iter().for_each(|entry| entry.changed(&change));
    }

    /// Forgets every view.
    pub fn clear(&self) {
        self.cache().clear();
    }

    fn entry(&self, grant: &VerifiedGrant, embeddings: bool) -> Arc<Entry> {
        let new = || {
            Arc::new(Entry { grant: grant.clone(), building: Default::default(), state: Default::default() })
        };
        self.cache().get_or_insert((grant.hash(), embeddings), new).clone()
    }

    /// Drops the views that were not asked for longest, until the rest fits.
    fn trim(&self) {
        let mut cache = self.cache();
        let mut bytes: usize = cache.iter().map(|(_, entry)| entry.bytes()).sum();
        while cache.len() > 1 && (bytes > self.max_bytes || cache.len() > MAX_VIEWS) {
            let dropped = cache.pop_lru();
            bytes = bytes.saturating_sub(dropped.map_or(0, |(_, entry)| entry.bytes()));
        }
    }
}

impl Gateway {
    /// The view of a grant: as it stands when it is asked for, or later.
    ///
    /// # Errors
    /// [`Error::Store`], [`Error::Corrupt`].
    pub async fn view(
        self: &Arc<Self>,
        grant: &VerifiedGrant,
        embeddings: bool,
        allowance: &Allowance,
    ) -> Result<Arc<BuiltView>, Error> {
        let entry = self.views.entry(grant, embeddings);
        if let Some(built) = entry.fresh(allowance, self.clock.now()) {
            return Ok(built);
        }
        let (gateway, allowance) = (self.clone(), allowance.clone());
        let (done, built) = oneshot::channel();
        // A task of its own: a build whose caller goes away is finished for the next one, and never made twice at
        // once.
        tokio::spawn(async move {
            let _turn = entry.building.lock().await;
            if done.is_closed() {
                return;
            }
            let built = match entry.fresh(&allowance, gateway.clock.now()) {
                Some(built) => Ok(built),
                None => gateway.build(&entry, embeddings, allowance).await,
            };
            drop(done.send(built));
        });
        built.await.unwrap_or(Err(Error::Panicked))
    }

    async fn build(
        self: &Arc<Self>,
        entry: &Arc<Entry>,
        embeddings: bool,
        allowance: Allowance,
    ) -> Result<Arc<BuiltView>, Error> {
        entry.begin();
        let (gateway, grant) = (self.clone(), entry.grant.clone());
        let build = move || {
            let (basis, now) = (gateway.gate_basis(grant.grant())?, gateway.clock.now());
            let revision = basis.revision;
            let (view, report) =
                gateway.sliced(grant.grant(), basis, embeddings, now, |setting, heads, load| {
                    View::build(&grant, &allowance, setting, heads, load)
                })?;
            Ok(BuiltView { view, report, at: now, obligations: revision })
        };
        let built = blocking(build).await.map(Arc::new);
        entry.finish(built.as_ref().ok().cloned());
        self.views.trim();
        built
    }

    /// What a grant would show, whatever its state, and what the gates decided: for the owner.
    ///
    /// # Errors
    /// [`Error::Store`], [`Error::Corrupt`], [`Error::Limit`] for an unknown profile.
    pub fn would_show(&self, grant: &Grant) -> Result<(Preview, Report), Error> {
        let (basis, now) = (self.gate_basis(grant)?, self.clock.now());
        self.sliced(grant, basis, true, now, |setting, heads, load| {
            Preview::build(grant, setting, heads, load)
        })
    }

    /// Everything that a view or a preview of a grant is built with.
    fn sliced<T>(
        &self,
        grant: &Grant,
        GateBasis { obligations, consented, .. }: GateBasis,
        embeddings: bool,
        now: Timestamp,
        build: impl FnOnce(&Setting, &mut dyn Iterator<Item = &Head>, Load<'_>) -> Result<T, ViewError<Error>>,
    ) -> Result<T, Error> {
        let embed = |texts: Vec<String>| self.vectors(grant, texts);
        let url = self.url(path::VECTORS);
        let model = self.embeddings.as_ref().map(|embeddings| Model {
            name: embeddings.model().name(),
            dimensions: embeddings.model().dimensions(),
            url: &url,
            embed: &embed,
        });
        let setting = Setting {
            profiles: &self.profiles,
            obligations,
            consented,
            embeddings,
            model: model.as_ref(),
            belief_threshold: self.config.belief_threshold,
            language: self.config.language.into(),
            now,
        };
        let endorsed = self.endorsed()?;
        let heads = self.heads.all();
        let mut heads = heads.iter().map(|head| &**head);
        let built = build(&setting, &mut heads, &mut |head| {
            match load(&self.store, head) {
                Ok(whole) => Ok(Some(whole).filter(|whole| endorsed.stands(whole))),
                // Erased since its head was read.
                Err(Error::NotFound | Error::Store(StoreError::Erased)) => Ok(None),
                Err(error) => Err(error),
            }
        });
        built.map_err(|error| match error {
            ViewError::Profile(error) => error.into(),
            ViewError::Store(error) => error,
            ViewError::Commitment(item, error) => Corrupt::Version(item, error).into(),
            ViewError::Json(error) => error.into(),
        })
    }
}

/// Reads a whole item; `None` when it was erased since its head was read.
type Load<'a> = &'a mut dyn FnMut(&Head) -> Result<Option<Whole>, Error>;

impl Gateway {
    /// The vectors of texts that the grantee of a grant sees; `None` while the model is out of reach. Called where
    /// waiting is allowed.
    fn vectors(&self, grant: &Grant, texts: Vec<String>) -> Option<Vec<Vector>> {
        let embeddings = self.embeddings.as_ref()?;
        let vectors = tokio::runtime::Handle::current().block_on(embeddings.of(space(grant), texts));
        vectors.map_err(|error| tracing::warn!(%error, "no vectors: ranking by words alone")).ok()
    }

    /// The vector of what a grantee asks, where the view has vectors.
    pub(crate) async fn meaning(&self, built: &BuiltView, grant: &Grant, query: &Query) -> Option<Vector> {
        let embeddings = self.embeddings.as_ref().filter(|_| built.view.has_vectors())?;
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
    // Not by its id alone: a delegator chooses the ids of the grants that it makes.
    Hash::of(GrantKey::of(grant).bytes())
}

/// The whole of an item: the version that its head names, its chain, the receipt of its capture.
///
/// # Errors
/// [`Error::NotFound`] when it was erased meanwhile, [`Error::Store`], [`Error::Corrupt`].
pub fn load(store: &Store, head: &Head) -> Result<Whole, Error> {
    let committed = schema::version(store, head.item_id, head.version_seq)?;
    let chain = stored_links(store, head.item_id)?;
    let first: Link = serde_json::from_str(chain.first().ok_or(Error::NotFound)?)?;
    let capture_receipt = match schema::RECEIPT_PLACES.get(store, &first.receipt)? {
        Some(place) => RECEIPTS.get(store, &place)?,
        None => schema::FOREIGN_RECEIPTS.get(store, &first.receipt)?,
    };
    let capture_receipt = capture_receipt.ok_or(Corrupt::NoCaptureReceipt(head.item_id))?;
    Ok(Whole { committed, chain, capture_receipt: canonical(capture_receipt)? })
}

/// The chain of an item, oldest link first.
///
/// # Errors
/// [`Error::Store`], [`Error::Corrupt`].
pub fn links(store: &Store, item: ItemId) -> Result<Vec<Value>, Error> {
    stored_links(store, item)?.iter().map(|link| Ok(serde_json::from_str(link)?)).collect()
}

/// The same, each link in its canonical form.
pub(crate) fn stored_links(store: &Store, item: ItemId) -> Result<Vec<String>, Error> {
    LINKS.range(store, Range::under(&item)).map(|row| canonical(row?.1)).collect()
}

/// A document that is stored in its canonical form.
fn canonical(bytes: Vec<u8>) -> Result<String, Error> {
    Ok(String::from_utf8(bytes).map_err(|_| Corrupt::NotUtf8)?)
}

//! From a [`VerifiedGrant`] to its view, cached.
//!
//! A view follows the changes of items, and of contexts, bridges and consents (`state/living.rs`). What its grant's terms rest on beside
//! them (keys, a clock that was set) empties the cache. A view may be behind by what is committed while an answer is
//! made of it: what an answer shows is read again where its receipt is written.

use crate::error::{Corrupt, Error};
use crate::state::endorsed::Endorsed;
use crate::state::gateway::{Gateway, blocking};
use crate::state::grant_book::GrantKey;
use crate::state::living::{Absent, BuiltView, Change, Entry, ViewStatus};
use crate::state::schema::{self, HEADS, LINKS, RECEIPTS};
use lru::LruCache;
use oap_exchange::allowance::Allowance;
use oap_exchange::gate::Obligations;
use oap_exchange::{Embed, Model, Preview, Query, Setting, Vector, Version, View, ViewError, WrittenItems};
use oap_grants::{Grant, VerifiedGrant};
use oap_identity::{Hash, ItemId, Timestamp};
use oap_manifest::path;
use oap_memory::chain::Link;
use oap_memory::commitment::Committed;
use oap_memory::record::{Head, ItemRecord};
use oap_store::{Range, Store, StoreError};
use serde_json::Value;
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::oneshot;

/// Most views at once, whatever their size.
pub const MAX_VIEWS: usize = 1024;
/// Most items that a view takes over at once: so long its readers wait, and the store's writer with its next change.
pub const MAX_STEP: usize = 256;
/// How often a view waits for what the store says and the heads do not yet, or looks at what came to be owed meanwhile.
const WAITS: usize = 4;

type Key = (Hash, bool);

/// The views in memory.
pub struct Views {
    cache: Mutex<LruCache<Key, Arc<Entry>>>,
    max_bytes: usize,
    /// What was written out of them for answers.
    pub(crate) written: WrittenItems,
    builds: AtomicU64,
    steps: AtomicU64,
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

/// How a step ended.
enum Stepped {
    /// All that changed is taken over.
    Done,
    /// These have moved on meanwhile: they are left to another step.
    Moved(BTreeSet<ItemId>),
    /// The view was dropped meanwhile.
    Dropped,
}

/// How much work views took.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ViewWork {
    /// How often one was built from all items.
    pub builds: u64,
    /// How often one took changes over.
    pub steps: u64,
}

impl Views {
    /// An empty cache.
    #[must_use]
    pub fn new(max_bytes: usize) -> Self {
        Self {
            cache: Mutex::new(LruCache::unbounded()),
            max_bytes,
            written: WrittenItems::default(),
            builds: AtomicU64::new(0),
            steps: AtomicU64::new(0),
        }
    }

    fn cache(&self) -> MutexGuard<'_, LruCache<Key, Arc<Entry>>> {
        self.cache.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Tells every view of an item's change.
    pub(crate) fn changed(&self, change: Change) {
        self.written.forget(change.item);
        let entries: Vec<Arc<Entry>> = self.cache().iter().map(|(_, entry)| entry.clone()).collect();
        entries.iter().for_each(|entry| entry.changed(&change));
    }

    /// Tells every view that a version of an item was destroyed that may have been in force when it last followed.
    pub(crate) fn version_destroyed(&self, item: ItemId) {
        let entries: Vec<Arc<Entry>> = self.cache().iter().map(|(_, entry)| entry.clone()).collect();
        entries.iter().for_each(|entry| entry.version_destroyed(item));
    }

    /// Tells every view of what the owner owes since a commit, whose clock said `now`. One that is just being built goes: nobody
    /// knows yet by which gates.
    ///
    /// # Errors
    /// [`Error::Store`], [`Error::Corrupt`]: then some views are as they were.
    fn obliged(&self, gateway: &Gateway, now: Timestamp) -> Result<(), Error> {
        let (revision, obligations) = (gateway.obligations_revision()?, gateway.obligations()?);
        let entries: Vec<(Key, Arc<Entry>)> =
            self.cache().iter().map(|(key, entry)| (*key, entry.clone())).collect();
        let mut basis = GateBasis { revision, obligations, consented: false };
        for (key, entry) in entries {
            basis.consented = gateway.consented(entry.grant.grant())?;
            if !entry.obliged(&basis, now, &gateway.heads) {
                self.cache().pop(&key);
            }
        }
        Ok(())
    }

    /// Forgets every view.
    pub fn clear(&self) {
        self.cache().clear();
        self.written.clear();
    }

    fn entry(&self, grant: &VerifiedGrant, embeddings: bool) -> Arc<Entry> {
        let new = || Arc::new(Entry::new(grant.clone(), embeddings));
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

    /// How much work they took since the start, and how much memory they take now, in bytes, about.
    #[must_use]
    pub fn work(&self) -> (ViewWork, usize) {
        let [builds, steps] = [&self.builds, &self.steps].map(|count| count.load(Ordering::Relaxed));
        (ViewWork { builds, steps }, self.cache().iter().map(|(_, entry)| entry.bytes()).sum())
    }
}

impl Gateway {
    /// The view of a grant: as it stands when it is asked for, or later.
    ///
    /// # Errors
    /// [`Error::Overtaken`] when its items change faster than it follows; [`Error::Store`], [`Error::Corrupt`].
    pub async fn view(
        self: &Arc<Self>,
        grant: &VerifiedGrant,
        embeddings: bool,
        allowance: &Allowance,
    ) -> Result<Arc<BuiltView>, Error> {
        let entry = self.views.entry(grant, embeddings);
        if let ViewStatus::Ready(built) = entry.stands(allowance, self.clock.now()) {
            return Ok(built);
        }
        let (gateway, allowance) = (self.clone(), allowance.clone());
        let (done, built) = oneshot::channel();
        // A task of its own: what its caller goes away from is finished for the next one, and never done twice at once.
        tokio::spawn(async move {
            let _turn = entry.working.lock().await;
            if done.is_closed() {
                return;
            }
            let built = match entry.stands(&allowance, gateway.clock.now()) {
                ViewStatus::Ready(built) => Ok(built),
                ViewStatus::Behind(built) => gateway.follow(&entry, built).await,
                ViewStatus::Over => gateway.build(&entry, allowance).await,
            };
            drop(done.send(built));
        });
        built.await.unwrap_or(Err(Error::Panicked))
    }

    async fn build(
        self: &Arc<Self>,
        entry: &Arc<Entry>,
        allowance: Allowance,
    ) -> Result<Arc<BuiltView>, Error> {
        entry.begin();
        self.views.builds.fetch_add(1, Ordering::Relaxed);
        let (gateway, grant, embeddings) = (self.clone(), entry.grant.clone(), entry.embeddings);
        let build = move || {
            let (basis, now) = (gateway.gate_basis(grant.grant())?, gateway.clock.now());
            let revision = basis.revision;
            let mut absent = Absent::default();
            let view = gateway.sliced(
                grant.grant(),
                basis,
                embeddings,
                now,
                &mut absent,
                |setting, heads, endorsed, absent| {
                    let load = |head: &Head| gateway.committed_standing(head, endorsed, absent);
                    View::build(&grant, &allowance, setting, heads, load)
                },
            )?;
            Ok((Arc::new(BuiltView::new(view, now, revision)), absent))
        };
        let built = blocking(build).await;
        let (built, absent) = match built {
            Ok(built) => built,
            Err(error) => {
                entry.lose();
                return Err(error);
            }
        };
        let has_moved = !absent.moved.is_empty();
        let kept = entry.finish(built.clone(), absent, &self.heads);
        self.views.trim();
        if !kept {
            return Err(Error::Overtaken);
        }
        if has_moved {
            self.caught_up().await?;
        }
        if entry.is_behind() { self.follow(entry, built).await } else { Ok(built) }
    }

    /// Lets a view take over what changed since it was built, or last did, in steps of [`MAX_STEP`] items.
    async fn follow(
        self: &Arc<Self>,
        entry: &Arc<Entry>,
        built: Arc<BuiltView>,
    ) -> Result<Arc<BuiltView>, Error> {
        let (mut left, mut waits) = (entry.noted(), 0);
        loop {
            self.views.steps.fetch_add(1, Ordering::Relaxed);
            let rest = left.iter().nth(MAX_STEP).copied();
            let rest = rest.map(|first| left.split_off(&first)).unwrap_or_default();
            let items = std::mem::replace(&mut left, rest);
            let (gateway, of, view) = (self.clone(), entry.clone(), built.clone());
            let stepped = match blocking(move || gateway.step(&of, &view, &items)).await {
                Ok(stepped) => stepped,
                Err(error) => {
                    entry.lose();
                    return Err(error);
                }
            };
            self.views.trim();
            match stepped {
                Stepped::Done => {}
                Stepped::Dropped => return Err(Error::Overtaken),
                Stepped::Moved(_) if waits == WAITS => return Err(Error::Overtaken),
                // What the store says already, the heads say in a moment.
                Stepped::Moved(items) => {
                    self.caught_up().await?;
                    left.extend(items);
                    waits += 1;
                }
            }
            if left.is_empty() {
                // What came to be owed meanwhile.
                left = entry.owed();
                if left.is_empty() {
                    return Ok(built);
                }
                if waits == WAITS {
                    return Err(Error::Overtaken);
                }
                waits += 1;
            }
        }
    }

    /// One step, which takes over what became of some items.
    fn step(
        &self,
        entry: &Entry,
        built: &Arc<BuiltView>,
        items: &BTreeSet<ItemId>,
    ) -> Result<Stepped, Error> {
        let now = self.clock.now();
        entry.begin_step(items);
        let endorsed = self.endorsed()?;
        let mut absent = Absent::default();
        let embed = |texts: Vec<String>| self.vectors(entry.grant.grant(), texts);
        let embed: Option<Embed<'_>> = self.embeddings.as_ref().map(|_| &embed as Embed<'_>);
        let heads = items.iter().map(|item| (*item, self.heads.get(*item)));
        let missing = Mutex::new(&mut absent);
        let load = |head: &Head| self.committed_standing(head, &endorsed, &missing);
        let step = built.renewal().step(heads, embed, now, load).map_err(why)?;
        let moved = absent.moved.clone();
        if !entry.finish_step(built, step, absent, &self.heads, now) {
            return Ok(Stepped::Dropped);
        }
        Ok(if moved.is_empty() { Stepped::Done } else { Stepped::Moved(moved) })
    }

    /// Lets every view take over what the owner owes since a commit: from a hook of its transaction.
    pub(crate) fn oblige_views(&self, now: Timestamp) {
        if let Err(error) = self.views.obliged(self, now) {
            tracing::error!(%error, "views cannot follow what the owner owes, and are built anew");
            self.views.clear();
        }
    }

    /// Waits until what is in memory knows of all that is committed by now.
    pub(crate) async fn caught_up(&self) -> Result<(), Error> {
        self.store.transact(|_| Ok(())).await
    }

    /// How much work the views took since the start, and how much memory they take now, in bytes, about.
    #[must_use]
    pub fn view_work(&self) -> (ViewWork, usize) {
        self.views.work()
    }

    /// Whether an item is kept as it was written out for an answer.
    #[must_use]
    pub fn is_written(&self, item: ItemId) -> bool {
        self.views.written.holds(item)
    }

    /// What a grant would show, whatever its state, and what the gates decided: for the owner.
    ///
    /// # Errors
    /// [`Error::Overtaken`] when an item is just being changed; [`Error::Store`], [`Error::Corrupt`], [`Error::Limit`] for an
    /// unknown profile.
    pub fn would_show(&self, grant: &Grant) -> Result<Preview, Error> {
        let (basis, now, mut absent) = (self.gate_basis(grant)?, self.clock.now(), Absent::default());
        let shown =
            self.sliced(grant, basis, true, now, &mut absent, |setting, heads, endorsed, absent| {
                let load = |head: &Head| self.load_standing(head, endorsed, absent);
                Preview::build(grant, setting, heads, load)
            })?;
        if absent.moved.is_empty() { Ok(shown) } else { Err(Error::Overtaken) }
    }

    /// Everything that a view or a preview of a grant is built with. `absent` gets the items that passed and are not in it.
    fn sliced<T>(
        &self,
        grant: &Grant,
        GateBasis { obligations, consented, .. }: GateBasis,
        embeddings: bool,
        now: Timestamp,
        absent: &mut Absent,
        build: impl FnOnce(
            &Setting,
            &mut dyn Iterator<Item = &Head>,
            &Endorsed,
            &Missing<'_>,
        ) -> Result<T, ViewError<Error>>,
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
        build(&setting, &mut heads, &endorsed, &Mutex::new(absent)).map_err(why)
    }

    /// The version of an item that its head names, where a grantee would take the item: all that a view needs of it. `None` as for
    /// [`Gateway::load_standing`].
    fn committed_standing(
        &self,
        head: &Head,
        endorsed: &Endorsed,
        absent: &Missing<'_>,
    ) -> Result<Option<Committed>, Error> {
        // Who signed its links and its receipt matters only where a key was compromised.
        if !endorsed.are_all() {
            return Ok(self.load_standing(head, endorsed, absent)?.map(|whole| whole.committed));
        }
        let committed = match schema::version(&self.store, head.item_id, head.version_seq) {
            Ok(committed) => Some(committed),
            Err(Error::NotFound | Error::Store(StoreError::Erased)) => None,
            Err(error) => return Err(error),
        };
        // Read after it: what is in force now was in force when it was read.
        let stored = match HEADS.get(&self.store, &head.item_id) {
            Ok(stored) => stored,
            Err(StoreError::Erased) => None,
            Err(error) => return Err(error.into()),
        };
        let Some(stored) = stored else { return Ok(None) };
        if Version::of(&stored) == Version::of(head) {
            return Ok(committed);
        }
        absent.lock().unwrap_or_else(PoisonError::into_inner).moved.insert(head.item_id);
        Ok(None)
    }

    /// An item whole, where a grantee would take it; `None` too when it has moved on since its head was
    /// read: the store is ahead of the heads until a commit has told of itself.
    fn load_standing(
        &self,
        head: &Head,
        endorsed: &Endorsed,
        absent: &Missing<'_>,
    ) -> Result<Option<ItemRecord>, Error> {
        let absent = || absent.lock().unwrap_or_else(PoisonError::into_inner);
        let whole = self.load(Version::of(head))?;
        if whole.is_none() && self.has_moved_on(head)? {
            absent().moved.insert(head.item_id);
        }
        let Some(whole) = whole else { return Ok(None) };
        if endorsed.stands(&whole) {
            return Ok(Some(whole));
        }
        absent().doubtful.insert(head.item_id);
        Ok(None)
    }

    /// Whether the store has another state of an item; not where it was erased.
    fn has_moved_on(&self, head: &Head) -> Result<bool, Error> {
        match HEADS.get(&self.store, &head.item_id) {
            Ok(stored) => Ok(stored.is_some_and(|stored| Version::of(&stored) != Version::of(head))),
            Err(StoreError::Erased) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    /// A version whole, as it was found in a view; `None` when it is not in force any more.
    pub(crate) fn load(&self, found: Version) -> Result<Option<ItemRecord>, Error> {
        let whole = match whole(&self.store, found) {
            Ok(whole) => whole,
            Err(Error::NotFound | Error::Store(StoreError::Erased)) => return Ok(None),
            Err(error) => return Err(error),
        };
        let links = u32::try_from(whole.chain.len()).ok();
        Ok(Some(whole).filter(|_| links == found.last_link.checked_add(1)))
    }
}

/// Why a view could not be built, or answered from.
pub(crate) fn why(error: ViewError<Error>) -> Error {
    match error {
        ViewError::Profile(error) => error.into(),
        ViewError::Store(error) => error,
        ViewError::Commitment(item, error) => Corrupt::Version(item, error).into(),
        ViewError::Json(error) => error.into(),
    }
}

/// Where items are noted that passed and are not in a view.
type Missing<'a> = Mutex<&'a mut Absent>;

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
        let embeddings = self.embeddings.as_ref().filter(|_| built.has_vectors())?;
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
pub fn load(store: &Store, head: &Head) -> Result<ItemRecord, Error> {
    whole(store, Version::of(head))
}

/// The same of any version.
fn whole(store: &Store, Version { item, number, .. }: Version) -> Result<ItemRecord, Error> {
    let committed = schema::version(store, item, number)?;
    let chain = stored_links(store, item)?;
    let first: Link = serde_json::from_str(chain.first().ok_or(Error::NotFound)?)?;
    let capture_receipt = match schema::RECEIPT_PLACES.get(store, &first.receipt)? {
        Some(place) => RECEIPTS.get(store, &place)?,
        None => schema::FOREIGN_RECEIPTS.get(store, &first.receipt)?,
    };
    let capture_receipt = capture_receipt.ok_or(Corrupt::NoCaptureReceipt(item))?;
    Ok(ItemRecord { committed, chain, capture_receipt: canonical(capture_receipt)? })
}

/// The chain of an item, oldest link first.
///
/// # Errors
/// [`Error::Store`], [`Error::Corrupt`].
pub fn links(store: &Store, item: ItemId) -> Result<Vec<Value>, Error> {
    stored_links(store, item)?.iter().map(|link| Ok(serde_json::from_str(link)?)).collect()
}

/// The last links of an item, so many at most: the oldest of them first.
///
/// # Errors
/// [`Error::Store`], [`Error::Corrupt`].
pub(crate) fn latest_links(store: &Store, item: ItemId, most: usize) -> Result<Vec<Link>, Error> {
    let rows = LINKS.range(store, Range::under(&item).descending()).take(most);
    let mut links: Vec<Link> =
        rows.map(|row| Ok(serde_json::from_slice(&row?.1)?)).collect::<Result<_, Error>>()?;
    links.reverse();
    Ok(links)
}

/// Every link of an item, oldest first, each in its canonical form.
pub(crate) fn stored_links(store: &Store, item: ItemId) -> Result<Vec<String>, Error> {
    LINKS.range(store, Range::under(&item)).map(|row| canonical(row?.1)).collect()
}

/// A document that is stored in its canonical form.
fn canonical(bytes: Vec<u8>) -> Result<String, Error> {
    Ok(String::from_utf8(bytes).map_err(|_| Corrupt::NotUtf8)?)
}

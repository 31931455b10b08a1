//! A principal's running gateway: what its services share.

pub use crate::state::published::Published;

use crate::embedding::{EmbeddingModel, Embeddings};
use crate::error::{Conflict, Corrupt, Error};
use crate::state::agents::{AgentKeys, MAX_LOOKING, Shared};
use crate::state::asking::Asking;
use crate::state::believed::Believed;
use crate::state::brains::Brains;
use crate::state::clock::WatchedClock;
use crate::state::commits::ANONYMOUS;
use crate::state::concluded::Concluded;
use crate::state::confirmed::Confirmed;
use crate::state::contacts::ContactNames;
use crate::state::corpora::Corpora;
use crate::state::documents::Documents;
use crate::state::erasures::Erasures;
use crate::state::grant_book::StoredGrants;
use crate::state::heads::Heads;
use crate::state::heard::Heard;
use crate::state::jobs::Jobs;
use crate::state::keyring::{Keyring, StoredKeys};
use crate::state::listening::{ASKED_AGAIN, ASKED_EVERY};
use crate::state::lockdown;
use crate::state::outbox::Outbox;
use crate::state::own_home::OwnHome;
use crate::state::proving::Proving;
use crate::state::published::{conformance_in_force, last_memorization_audit, publish};
use crate::state::put_off::PutOff;
use crate::state::refusals::Refusals;
use crate::state::remotes::Remotes;
use crate::state::replay::UsedProofs;
use crate::state::schema::{CHAINS, EPOCH, KEYS, PAUSED};
use crate::state::sources::Sources;
use crate::state::subscriptions::Schedule;
use crate::state::tips;
use crate::state::views::Views;
use crate::state::waiting::Waiting;
use crate::state::wallet::CHECKED_EVERY;
use crate::system::config::Config;
use crate::system::tasks;
use arc_swap::ArcSwap;
use oap_exchange::gate::Sanctions;
use oap_grants::CheckedTokens;
use oap_identity::resolve::Resolver;
use oap_identity::{Clock, Did, DidDocument, Hash, Kid, Random, SubscriptionId, random};
use oap_memory::Profile;
use oap_store::Store;
use rayon::prelude::*;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;
use tokio::sync::{Mutex, Semaphore};

/// Fewest items of a batch that another core is worth.
const MIN_SHARE: usize = 16;

/// What a gateway is made of.
#[allow(missing_docs, reason = "the names say it")]
pub struct Parts {
    pub config: Config,
    pub principal: Did,
    /// The store, with the principal's keys in it.
    pub store: Store,
    pub clock: Arc<dyn Clock>,
    /// The source of randomness.
    pub random: Arc<dyn Random>,
    /// The way to foreign DID documents.
    pub resolver: Arc<Resolver>,
    /// Projection profiles.
    pub profiles: Vec<Profile>,
    /// Sanctions lists.
    pub sanctions: Sanctions,
    /// The model of embeddings, where one is set up.
    pub embeddings: Option<Box<dyn EmbeddingModel>>,
    /// Where the list of erasures is kept, apart from backups.
    pub erasures: Option<PathBuf>,
    /// The home that it is opened in.
    pub home: Option<Box<dyn OwnHome>>,
}

/// A running gateway.
pub struct Gateway {
    pub(crate) config: Config,
    pub(crate) principal: Did,
    pub(crate) origin: String,
    pub(crate) store: Store,
    pub(crate) clock: Arc<WatchedClock>,
    pub(crate) random: Arc<dyn Random>,
    pub(crate) resolver: Arc<Resolver>,
    pub(crate) profiles: Vec<Profile>,
    pub(crate) sanctions: ArcSwap<Sanctions>,
    pub(crate) embeddings: Option<Embeddings>,
    pub(crate) erasures: Option<Erasures>,
    pub(crate) home: Option<Box<dyn OwnHome>>,
    /// Whether no grant answers, until the owner has looked at what a restore brought back.
    pub(crate) paused: AtomicBool,
    /// Whether nobody but the owner is answered. Transactions read the row.
    pub(crate) locked_down: AtomicBool,
    pub(crate) heads: Heads,
    pub(crate) contact_names: ContactNames,
    pub(crate) sources: Sources,
    pub(crate) grant_book: StoredGrants,
    pub(crate) used_proofs: UsedProofs,
    pub(crate) tokens: CheckedTokens,
    pub(crate) refusals: Refusals,
    pub(crate) jobs: Jobs,
    pub(crate) agent_keys: AgentKeys,
    /// The permissions of namespaces: by what an agent acts. Whether they are so still is read again in its transactions.
    pub(crate) sharing: ArcSwap<Shared>,
    /// The metadata documents of clients of OAuth.
    pub(crate) documents: Documents,
    /// Clients of OAuth that wait for the owner.
    pub(crate) waiting: Waiting,
    /// Letters to other gateways.
    pub outbox: Outbox,
    /// Letters of other gateways.
    pub(crate) heard: Heard,
    /// Deletions of others that were confirmed.
    pub(crate) confirmed: Confirmed,
    /// What is pushed to grantees, and when.
    pub(crate) subscriptions: Schedule,
    /// When the granters of the owner's own subscriptions are asked whether these stand.
    pub(crate) asked_whether: PutOff<SubscriptionId>,
    /// When granters are asked where their grants in the wallet stand.
    pub(crate) status_lists: PutOff<Did>,
    /// Other gateways that are asked.
    pub(crate) remotes: Remotes,
    /// The turn of whoever asks a device of the owner's.
    pub(crate) pulling: Mutex<()>,
    /// Those of them whose senders are being proved.
    pub(crate) proving: Proving,
    /// The turns of memory tools that look at the owner's memory.
    pub(crate) looking: Arc<Semaphore>,
    /// Whose word old records are, for those agents.
    pub(crate) believed: Believed,
    pub(crate) views: Views,
    /// What the owner's agents see, by words.
    pub corpora: Corpora,
    /// What agents concluded, by its words.
    pub(crate) concluded: Concluded,
    /// The same as graphs.
    pub brains: Brains,
    /// The turns of SPARQL queries.
    pub(crate) asking: Asking,
    /// Those of grantees.
    pub(crate) asking_granted: Asking,
    keys: ArcSwap<Keyring>,
    published: ArcSwap<Published>,
}

#[allow(missing_docs, reason = "the names say it")]
impl Gateway {
    /// Puts the keys of a new principal into an empty store.
    ///
    /// # Errors
    /// [`Error::Conflict`] when there are keys already.
    pub async fn init(store: &Store, keys: &StoredKeys) -> Result<(), Error> {
        let encoded = keys.encode()?;
        store
            .transact(move |tx| {
                if KEYS.get(tx)?.is_some() {
                    return Err(Error::Conflict(Conflict::HasKeys));
                }
                Ok(KEYS.put(tx, &encoded)?)
            })
            .await
    }

    /// Ends every trust token of a store that comes out of a backup: whoever has one from before is nobody there. For a
    /// store that no gateway has open.
    ///
    /// # Errors
    /// [`Error::Store`].
    pub async fn end_tokens(store: &Store, random: &dyn Random) -> Result<(), Error> {
        let epoch = Hash::of(&random::bytes::<32>(random));
        store.transact(move |tx| Ok(EPOCH.put(tx, &epoch)?)).await
    }

    /// Opens a gateway: loads keys, heads, grants and proofs; starts the anonymous chain if it is new.
    ///
    /// # Errors
    /// [`Error::Store`], [`Error::Corrupt`].
    pub async fn open(parts: Parts) -> Result<Arc<Self>, Error> {
        let Parts {
            config,
            principal,
            store,
            clock,
            random,
            resolver,
            profiles,
            sanctions,
            embeddings,
            erasures,
            home,
        } = parts;
        let keys = Self::stored_keys(&store, &principal)?;
        let clock = Arc::new(WatchedClock::load(clock, &store)?);
        let origin = config.origin();
        let erasures = erasures.map(|path| Erasures::open(&path, &keys, clock.now())).transpose()?;
        let (erasures, listed) = erasures.unzip();
        let embeddings = embeddings.map(Embeddings::new);
        let audit = last_memorization_audit(&store)?;
        let conformance = conformance_in_force(&store, clock.now())?;
        let published = publish(
            &config,
            &principal,
            &origin,
            &profiles,
            embeddings.as_ref(),
            audit,
            conformance,
            &keys,
            &*clock,
        )?;
        let gateway = Arc::new(Self {
            paused: AtomicBool::new(PAUSED.get(&store)? == Some(true)),
            locked_down: AtomicBool::new(lockdown::lasts(&store)?),
            heads: Heads::load(&store)?,
            contact_names: ContactNames::load(&store)?,
            grant_book: StoredGrants::load(&store)?,
            used_proofs: UsedProofs::load(&store)?,
            tokens: CheckedTokens::default(),
            refusals: Refusals::default(),
            jobs: Jobs::default(),
            agent_keys: AgentKeys::load(&store)?,
            sharing: ArcSwap::from_pointee(Shared::load(&store)?),
            documents: Documents::default(),
            waiting: Waiting::default(),
            outbox: Outbox::default(),
            heard: Heard::load(&store)?,
            confirmed: Confirmed::default(),
            subscriptions: Schedule::load(&store, clock.now())?,
            asked_whether: PutOff::new(ASKED_EVERY, clock.now().plus(ASKED_AGAIN)),
            status_lists: PutOff::new(CHECKED_EVERY, clock.now()),
            remotes: Remotes::default(),
            pulling: Mutex::default(),
            proving: Proving::default(),
            looking: Arc::new(Semaphore::new(MAX_LOOKING)),
            believed: Believed::default(),
            corpora: Corpora::default(),
            concluded: Concluded::default(),
            brains: Brains::default(),
            asking: Asking::default(),
            asking_granted: Asking::default(),
            views: Views::new(config.view_cache_bytes),
            keys: ArcSwap::from_pointee(keys),
            published: ArcSwap::from_pointee(published),
            config,
            principal,
            origin,
            store,
            clock,
            random,
            resolver,
            profiles,
            sanctions: ArcSwap::from_pointee(sanctions),
            embeddings,
            erasures,
            home,
            sources: Sources::default(),
        });
        gateway.bring_forward().await?;
        gateway.load_sources()?;
        tips::load(&gateway)?;
        if let Some(listed) = listed {
            gateway.complete_erasures(&listed)?;
        }
        if CHAINS.get(&gateway.store, &ANONYMOUS.to_owned())?.is_none() {
            gateway.commit_own(|w| w.chain(ANONYMOUS)).await?;
        }
        Ok(gateway)
    }

    /// The keys in a principal's store.
    ///
    /// # Errors
    /// [`Error::Corrupt`] when there are none, or another's.
    pub fn stored_keys(store: &Store, principal: &Did) -> Result<Keyring, Error> {
        let stored = KEYS.get(store)?.ok_or(Corrupt::NoKeys)?;
        Keyring::read(principal, &stored)
    }

    /// The turns of memory tools that look at the owner's memory, [`MAX_LOOKING`] of them.
    #[must_use]
    pub const fn looking(&self) -> &Arc<Semaphore> {
        &self.looking
    }

    /// How many transactions wait for the store's writer; the one that it runs is none of them.
    #[must_use]
    pub fn waiting_writes(&self) -> usize {
        self.store.waiting()
    }

    /// The keys in use.
    #[must_use]
    pub fn keys(&self) -> Arc<Keyring> {
        self.keys.load_full()
    }

    /// The published documents.
    #[must_use]
    pub fn published(&self) -> Arc<Published> {
        self.published.load_full()
    }

    #[must_use]
    pub const fn principal(&self) -> &Did {
        &self.principal
    }

    /// Where the gateway is reached.
    #[must_use]
    pub fn origin(&self) -> &str {
        &self.origin
    }

    /// The address of one of its paths.
    #[must_use]
    pub fn url(&self, path: &str) -> String {
        format!("{}{path}", self.origin)
    }

    /// Every profile.
    #[must_use]
    pub fn profiles(&self) -> &[Profile] {
        &self.profiles
    }

    /// The profile of a name.
    #[must_use]
    pub fn profile(&self, name: &str) -> Option<&Profile> {
        self.profiles.iter().find(|profile| profile.name() == name)
    }

    /// The document of a DID: the principal's own from memory, any other resolved.
    ///
    /// # Errors
    /// [`Error::Resolve`].
    pub async fn document(&self, did: &Did) -> Result<Arc<DidDocument>, Error> {
        if *did == self.principal {
            return Ok(Arc::new(self.keys().document().clone()));
        }
        Ok(self.resolver.resolve(did).await?)
    }

    /// The document of a DID that signs with a key: read anew where what is at hand is older than `age` and lacks the key.
    ///
    /// # Errors
    /// [`Error::Resolve`].
    pub async fn document_with(
        &self,
        did: &Did,
        kid: &Kid,
        age: Duration,
    ) -> Result<Arc<DidDocument>, Error> {
        let known = self.document(did).await?;
        if known.key(kid).is_some() || *did == self.principal {
            return Ok(known);
        }
        Ok(self.resolver.newer(did, age).await.unwrap_or(known))
    }

    /// The document of a DID that is known without asking anybody: the principal's own, a did:key, one that was resolved
    /// lately.
    pub async fn document_at_hand(&self, did: &Did) -> Option<Arc<DidDocument>> {
        if *did == self.principal {
            return Some(Arc::new(self.keys().document().clone()));
        }
        self.resolver.at_hand(did).await
    }

    /// Takes new keys and what is published with them into use, once they are durable. The trust of every view's grant
    /// may rest on a key.
    pub(crate) fn use_keys(&self, keys: Arc<Keyring>, published: Published) {
        // What another change of the same batch published is durable only now.
        self.published.store(Arc::new(self.published_with(&keys).unwrap_or(published)));
        let current = keys.current().kid().clone();
        self.keys.store(keys);
        self.jobs.cancel_all_but_by(&current);
        self.views.clear();
        if let Some(home) = &self.home {
            home.credential_ended(self);
        }
    }

    /// Makes the published documents anew with the keys in use: from a hook of the transaction that changed what they say, so that
    /// none is made of keys that a later transaction has replaced.
    pub(crate) fn publish(&self) {
        match self.published_with(&self.keys()) {
            Ok(published) => self.published.store(Arc::new(published)),
            Err(error) => tracing::error!(%error, "the published documents cannot be made anew"),
        }
    }

    /// The published documents, signed with these keys.
    pub(crate) fn published_with(&self, keys: &Keyring) -> Result<Published, Error> {
        publish(
            &self.config,
            &self.principal,
            &self.origin,
            &self.profiles,
            self.embeddings.as_ref(),
            last_memorization_audit(&self.store)?,
            conformance_in_force(&self.store, self.clock.now())?,
            keys,
            &*self.clock,
        )
    }
}

/// Does for each item of a batch what takes long, on all cores; a few items on one.
pub(crate) fn on_all_cores<T: Send, R: Send>(items: Vec<T>, each: impl Fn(T) -> R + Send + Sync) -> Vec<R> {
    items.into_par_iter().with_min_len(MIN_SHARE).map(each).collect()
}

/// Runs work of the gateway's that takes long where waiting is allowed.
///
/// # Errors
/// Its own; [`Error::Panicked`].
pub(crate) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, Error> + Send + 'static,
) -> Result<T, Error> {
    tasks::blocking(work).await
}

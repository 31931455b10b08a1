//! The clock that is believed (docs/decisions.md, "Time").
//!
//! The gateway keeps the latest time that it acted at, across restarts. Its time never goes back: while the clock is a little behind, the
//! mark is the time. A clock that is further behind, or that has leapt ahead, is not believed: time stands still at the mark, grants are not
//! served and nothing is swept, until the clock is back or the owner accepts it.

pub use crate::api::health::{ClockInfo, Standing};
use crate::error::{Error, Unavailable};
use crate::state::commits::ANONYMOUS;
use crate::state::gateway::Gateway;
use crate::state::owner::Owner;
use crate::state::owner::mark::{Admin, Permits};
use crate::state::schema::{CHAINS, CLOCK};
use oap_identity::time::MAX_SKEW;
use oap_identity::{Clock, Timestamp};
use oap_memory::receipt::Action;
use oap_store::{Range, Store, Tx};
use serde_json::json;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

/// How far the clock may have gone on since the latest time that is known. More is taken for a wrong clock: a gateway that was off for
/// longer asks its owner.
pub const MAX_LEAP: Duration = Duration::from_secs(400 * 86_400);
/// How much later than the kept mark a commit keeps its own time.
const KEEP: Duration = Duration::from_secs(1);
/// How old the kept mark may get while nothing is committed.
const KEEP_IDLE: Duration = Duration::from_secs(3600);

/// A clock, and the latest time that it was believed at.
pub struct WatchedClock {
    inner: Arc<dyn Clock>,
    /// Milliseconds since 1970.
    mark: AtomicI64,
    /// The mark as the store has it.
    kept: AtomicI64,
}

impl WatchedClock {
    /// The clock of a store: its mark, or where it has none the latest entry of its receipt chains.
    ///
    /// # Errors
    /// [`Error::Store`], [`Error::Corrupt`].
    pub fn load(inner: Arc<dyn Clock>, store: &Store) -> Result<Self, Error> {
        let kept = CLOCK.get(store)?;
        let mut mark = kept;
        if mark.is_none() {
            for row in CHAINS.scan(store) {
                let (_, chain) = row?;
                mark = mark.max(Some(chain.at));
            }
        }
        let mark = mark.unwrap_or_else(|| inner.now()).millis();
        let kept = kept.map_or(i64::MIN, Timestamp::millis);
        Ok(Self { inner, mark: AtomicI64::new(mark), kept: AtomicI64::new(kept) })
    }

    /// What the clock itself says, believed or not.
    #[must_use]
    pub fn raw(&self) -> Timestamp {
        self.inner.now()
    }

    /// The time that is believed. It never goes back, but for [`Gateway::accept_clock`].
    #[must_use]
    pub fn now(&self) -> Timestamp {
        self.believed(self.info())
    }

    fn believed(&self, ClockInfo { clock, mark, standing }: ClockInfo) -> Timestamp {
        if standing != Standing::Believed {
            return mark;
        }
        let before = self.mark.fetch_max(clock.millis(), Ordering::AcqRel);
        Timestamp::from_millis(before).max(clock)
    }

    /// Where the clock stands.
    #[must_use]
    pub fn info(&self) -> ClockInfo {
        let (clock, mark) = (self.raw(), Timestamp::from_millis(self.mark.load(Ordering::Acquire)));
        let standing = if clock.plus(MAX_SKEW) < mark {
            Standing::Behind
        } else if clock > mark.plus(MAX_LEAP) {
            Standing::Ahead
        } else {
            Standing::Believed
        };
        ClockInfo { clock, mark, standing }
    }

    /// That the clock is believed.
    ///
    /// # Errors
    /// [`Error::Unavailable`].
    pub fn believe(&self) -> Result<(), Error> {
        match self.info().standing {
            Standing::Believed => Ok(()),
            _ => Err(Error::Unavailable(Unavailable::Clock)),
        }
    }

    /// The time of a transaction. Where one before it in the same batch took a clock that is behind the mark for right, the
    /// mark in memory is not the time any more. And what the clock itself says at that moment.
    pub(crate) fn now_in(&self, tx: &Tx) -> Result<(Timestamp, Timestamp), Error> {
        let info = self.info();
        let now = match CLOCK.get(tx)? {
            Some(mark) if mark.millis() < self.kept.load(Ordering::Acquire) => info.clock.max(mark),
            _ => self.believed(info),
        };
        Ok((now, info.clock))
    }

    /// Keeps the time of a commit in the store.
    pub(crate) fn keep(self: &Arc<Self>, tx: &mut Tx, now: Timestamp) -> Result<(), Error> {
        let kept = self.kept.load(Ordering::Acquire);
        if now.minus(KEEP).millis() >= kept {
            self.set(tx, now)?;
        }
        Ok(())
    }

    fn set(self: &Arc<Self>, tx: &mut Tx, at: Timestamp) -> Result<(), Error> {
        CLOCK.put(tx, &at)?;
        let clock = self.clone();
        tx.on_commit(move || clock.kept.store(at.millis(), Ordering::Release));
        Ok(())
    }

    /// Makes a time the mark, wherever the mark is.
    fn adopt(self: &Arc<Self>, tx: &mut Tx, at: Timestamp) -> Result<(), Error> {
        self.set(tx, at)?;
        let clock = self.clone();
        tx.on_commit(move || clock.mark.store(at.millis(), Ordering::Release));
        Ok(())
    }

    /// Whether the kept mark has grown old.
    pub(crate) fn is_kept_old(&self) -> bool {
        self.now().minus(KEEP_IDLE).millis() > self.kept.load(Ordering::Acquire)
    }
}

impl Clock for WatchedClock {
    fn now(&self) -> Timestamp {
        self.now()
    }
}

impl Gateway {
    /// What the owner is told of the clock.
    #[must_use]
    pub fn clock_info(&self, _: &Owner<impl Permits<Admin>>) -> ClockInfo {
        self.clock.info()
    }

    /// Takes the clock as it is: the owner says that it is right. Every receipt chain whose end is later than the clock is told so by an
    /// entry of its own, the only one that may be older than the one before it.
    ///
    /// # Errors
    /// [`Error::Store`].
    pub async fn accept_clock(
        self: &Arc<Self>,
        owner: &Owner<impl Permits<Admin>>,
    ) -> Result<ClockInfo, Error> {
        self.commit_as(owner, |w| {
            let gateway = w.gateway.clone();
            let ClockInfo { clock, mark, .. } = gateway.clock.info();
            w.now = clock;
            let mut chains = w.chain_names()?;
            chains.retain(|name| name != ANONYMOUS);
            // Where everybody sees it, whether it is late or not.
            chains.insert(0, ANONYMOUS.to_owned());
            for name in chains {
                let mut chain = w.chain(&name)?;
                if chain.at <= clock && name != ANONYMOUS {
                    continue;
                }
                let mut draft = gateway.draft(Action::ClockAccept, gateway.principal.as_str());
                draft.rules = vec!["principal".to_owned()];
                draft.more.insert("from".to_owned(), json!(chain.at.max(mark)));
                draft.more.insert("to".to_owned(), json!(clock));
                chain.at = chain.at.min(clock);
                w.append(&name, &mut chain, draft)?;
            }
            gateway.clock.adopt(w.tx, clock)
        })
        .await?;
        self.views.clear();
        self.corpora.clear();
        self.concluded.clear();
        self.brains.clear();
        self.subscriptions.plan_all(&self.store, self.clock.now())?;
        Ok(self.clock.info())
    }

    /// Takes the clock as it is without a word: what a restore does, whose own entry in every chain has its time.
    pub(crate) async fn go_by_clock(self: &Arc<Self>) -> Result<ClockInfo, Error> {
        self.commit_own(|w| {
            let watched = w.gateway.clock.clone();
            w.now = watched.raw();
            watched.adopt(w.tx, w.now)
        })
        .await?;
        Ok(self.clock.info())
    }
}

impl crate::state::commits::Writing<'_, '_> {
    /// The names of all chains at this point.
    pub(crate) fn chain_names(&self) -> Result<Vec<String>, Error> {
        let mut names = CHAINS.written(self.tx);
        for name in CHAINS.keys(&self.gateway.store, Range::all()) {
            names.insert(name?);
        }
        Ok(names.into_iter().collect())
    }
}

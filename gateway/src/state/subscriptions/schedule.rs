//! When which subscription is pushed next, and who reads which as events: in memory alone.

use super::{MAX_AT_ONCE, MAX_STREAMS, MAX_STREAMS_PER_FIRST, SubscriptionKey};
use crate::error::Error;
use crate::state::schema::SUBSCRIPTIONS;
use oap_exchange::changes::Compared;
use oap_identity::{Hash, Timestamp};
use oap_store::Store;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::Semaphore;
use tokio::sync::oneshot::{self, error::TryRecvError};

/// When which subscription is pushed next, and which of them are read as events.
pub struct Schedule {
    known: Mutex<Known>,
    /// The places of pushes.
    pub(crate) places: Arc<Semaphore>,
}

impl Default for Schedule {
    fn default() -> Self {
        Self { known: Mutex::default(), places: Arc::new(Semaphore::new(MAX_AT_ONCE)) }
    }
}

#[derive(Default)]
struct Known {
    ticks: BTreeSet<(Timestamp, SubscriptionKey)>,
    at: BTreeMap<SubscriptionKey, Timestamp>,
    /// The newest reader of each that is read.
    readers: BTreeMap<SubscriptionKey, ReaderHandle>,
    /// Who makes a push or reads what was acknowledged holds it.
    turns: BTreeMap<SubscriptionKey, Arc<Turn>>,
}

/// The turn of a subscription: whoever makes a push or writes down what came holds it, one at a time.
#[derive(Default)]
pub(crate) struct Turn {
    one_by_one: tokio::sync::Mutex<()>,
    /// What the last look at its view found; none before the first one, and where that says nothing any more.
    compared: Mutex<Option<Compared>>,
}

impl Turn {
    /// Waits for the turn.
    pub(crate) async fn hold(&self) -> tokio::sync::MutexGuard<'_, ()> {
        self.one_by_one.lock().await
    }

    /// What the last look at the view found.
    pub(crate) fn compared(&self) -> Option<Compared> {
        self.known().clone()
    }

    /// Remembers what a look at the view found; none has the next look be at all of it.
    pub(crate) fn remember(&self, compared: Option<Compared>) {
        *self.known() = compared;
    }

    fn known(&self) -> MutexGuard<'_, Option<Compared>> {
        self.compared.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A reader of a subscription, as it is told that its place is another's. Once it reads no more, its place is free.
struct ReaderHandle {
    /// The first grant of those that the subscription's was made from.
    first: Hash,
    over: oneshot::Sender<()>,
}

/// The place of a reader of a subscription, until another one takes it or the subscription is over.
pub(crate) struct Place(oneshot::Receiver<()>);

impl Place {
    /// Whether it is this reader's still.
    pub(crate) fn is_held(&mut self) -> bool {
        matches!(self.0.try_recv(), Err(TryRecvError::Empty))
    }

    /// Waits until it is not.
    pub(crate) async fn lost(&mut self) {
        // Nothing is ever sent: it is dropped.
        let _ = (&mut self.0).await;
    }
}

impl Schedule {
    /// Plans what is stored.
    ///
    /// # Errors
    /// [`Error::Store`].
    pub fn load(store: &Store, now: Timestamp) -> Result<Self, Error> {
        let this = Self::default();
        this.plan_all(store, now)?;
        Ok(this)
    }

    /// Plans the next tick of each that is stored, whatever was planned before.
    ///
    /// # Errors
    /// [`Error::Store`].
    pub(crate) fn plan_all(&self, store: &Store, now: Timestamp) -> Result<(), Error> {
        for row in SUBSCRIPTIONS.scan(store) {
            let (key, row) = row?;
            if row.ended.is_none() && row.url.is_some() {
                self.plan(key, row.tick(now));
            }
        }
        Ok(())
    }

    /// Those whose tick has come, the oldest tick first, so many at most. Each is planned again by what becomes of it.
    pub(crate) fn due(&self, now: Timestamp, most: usize) -> Vec<SubscriptionKey> {
        let mut known = self.known();
        let due: Vec<_> = known.ticks.iter().take_while(|(at, _)| *at <= now).take(most).copied().collect();
        for tick in &due {
            known.ticks.remove(tick);
            known.at.remove(&tick.1);
        }
        due.into_iter().map(|(_, key)| key).collect()
    }

    /// Plans the next tick of one.
    pub(crate) fn plan(&self, key: SubscriptionKey, at: Timestamp) {
        let mut known = self.known();
        if let Some(before) = known.at.insert(key, at) {
            known.ticks.remove(&(before, key));
        }
        known.ticks.insert((at, key));
    }

    /// Forgets one that is over.
    pub(super) fn forget(&self, key: SubscriptionKey) {
        let mut known = self.known();
        if let Some(before) = known.at.remove(&key) {
            known.ticks.remove(&(before, key));
        }
        known.readers.remove(&key);
        known.turns.remove(&key);
    }

    /// Of one, no two pushes are made at once.
    pub(crate) fn turn(&self, key: SubscriptionKey) -> Arc<Turn> {
        self.known().turns.entry(key).or_default().clone()
    }

    /// A new reader takes the place of the one before it; none where there is no place. `first` is the first grant of those that the
    /// subscription's was made from.
    pub(crate) fn reads(&self, key: SubscriptionKey, first: Hash) -> Option<Place> {
        let mut known = self.known();
        known.readers.remove(&key);
        known.readers.retain(|_, reader| !reader.over.is_closed());
        let of_first = known.readers.values().filter(|reader| reader.first == first).count();
        if known.readers.len() >= MAX_STREAMS || of_first >= MAX_STREAMS_PER_FIRST {
            return None;
        }
        let (over, lost) = oneshot::channel();
        known.readers.insert(key, ReaderHandle { first, over });
        Some(Place(lost))
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use oap_identity::SubscriptionId;

    fn key(n: u8) -> SubscriptionKey {
        (Hash::from_bytes([n; 32]), SubscriptionId::from_bytes([n; 16]))
    }

    #[test]
    fn each_is_planned_once() {
        let at = Timestamp::from_millis;
        let planned = Schedule::default();
        planned.plan(key(1), at(10));
        planned.plan(key(2), at(5));
        planned.plan(key(1), at(3));
        assert_eq!(planned.due(at(4), 9), [key(1)]);
        assert_eq!(planned.due(at(10), 9), [key(2)]);
        assert_eq!(planned.due(at(99), 9), []);
        planned.plan(key(1), at(1));
        planned.forget(key(1));
        assert_eq!(planned.due(at(99), 9), []);
    }

    /// The attack: one grantee opens stream after stream, or passes its grant on to itself, until nobody else can read.
    #[test]
    fn a_new_reader_takes_the_place_and_nobody_takes_all() {
        let read = Schedule::default();
        let grant = |n: u8| Hash::from_bytes([n; 32]);
        let mut held: Vec<Place> = (0..200).map(|_| read.reads(key(1), grant(1)).unwrap()).collect();
        assert!(held.pop().unwrap().is_held() && held.iter_mut().all(|place| !place.is_held()));
        held.clear();
        let more = u8::try_from(MAX_STREAMS_PER_FIRST).unwrap();
        held.extend((1..=more).map(|n| read.reads(key(n), grant(1)).unwrap()));
        assert!(read.reads(key(99), grant(1)).is_none());
        let all = u8::try_from(MAX_STREAMS).unwrap();
        held.extend((more + 1..=all).map(|n| read.reads(key(n), grant(n)).unwrap()));
        assert!(read.reads(key(100), grant(100)).is_none());
        // One that reads no more leaves its place; one that is over is told.
        held.remove(0);
        held.push(read.reads(key(100), grant(100)).unwrap());
        assert!(held.iter_mut().all(Place::is_held));
        read.forget(key(100));
        assert!(!held.last_mut().unwrap().is_held());
    }
}

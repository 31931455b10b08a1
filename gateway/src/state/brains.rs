//! What each of the owner's agents sees, as a graph, in memory (docs/brain.md): made at an agent's query, and thrown away at the first change
//! that this agent could see. A change that it could not see costs it nothing, so that no query is slower for one.

use crate::error::{Error, Unavailable};
use crate::state::agents::Agent;
use crate::state::commits::Writing;
use crate::state::edges::EdgePlace;
use crate::state::owner::mark::Read;
use lru::LruCache;
use oap_brain::Graph;
use oap_identity::{Did, ItemId, Timestamp};
use oap_memory::Head;
use oap_soundness::trust::Decay;
use std::cmp::Ordering;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Most graphs that are kept, those asked for last; another one is made anew.
pub const MAX_BRAINS: usize = 8;
/// Most triples of all that are kept, unless it is one graph: beyond it those are let go that were not asked for longest.
pub const MAX_BRAIN_TRIPLES: usize = 4_000_000;

/// What an agent sees as a graph, and what an answer rests on that read of its records.
#[derive(Debug, Default)]
pub(crate) struct Brain {
    pub graph: Graph,
    /// One for each record of the graph, in its order.
    pub records: Vec<Rests>,
    /// When the first of the records ends, or is less sure.
    pub ends: Option<Timestamp>,
}

/// What an answer rests on that read of a record.
#[derive(Debug)]
pub(crate) struct Rests {
    pub item: ItemId,
    /// The last link of its chain.
    pub last_link: u32,
    /// The tags of its version in force, and of the former ones that the graph has.
    pub tags: Vec<String>,
    /// The links that begin there.
    pub links: Vec<EdgePlace>,
    /// The records at their other ends, with the last link of each chain.
    pub named: Vec<(ItemId, u32)>,
}

/// The graphs of the owner's agents: of each at most two, by whether its view changes all.
pub struct Brains(Mutex<LruCache<(Did, bool), Arc<Kept>>>);

struct Kept {
    /// Whose view it is, by the permissions of namespaces as they are.
    agent: Agent<Read>,
    /// How what it sees is believed.
    decay: Decay,
    /// One at a time makes it.
    making: Mutex<()>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    brain: Option<Arc<Brain>>,
    /// Changes that the agent could see.
    changes: u64,
}

fn lock<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Kept {
    /// Throws the graph away.
    fn changed(&self) {
        let gone = {
            let mut state = lock(&self.state);
            state.changes += 1;
            state.brain.take()
        };
        drop(gone);
    }

    /// The graph, where it is there and none of its records has ended.
    fn there(&self, now: Timestamp) -> Option<Arc<Brain>> {
        let brain = lock(&self.state).brain.clone()?;
        brain.ends.is_none_or(|end| now < end).then_some(brain)
    }

    fn triples(&self) -> usize {
        lock(&self.state).brain.as_ref().map_or(0, |brain| brain.graph.size())
    }
}

impl Default for Brains {
    fn default() -> Self {
        Self(Mutex::new(LruCache::unbounded()))
    }
}

impl Brains {
    /// Throws away the graphs of the agents that see one of these heads, which are of one item before and after a change.
    pub(crate) fn changed(&self, heads: &[Option<Arc<Head>>]) {
        self.gone(|agent| heads.iter().flatten().any(|head| agent.sight().sees(head)));
    }

    /// Throws away the graphs of the agents that see both ends of a link; an end elsewhere everybody sees.
    pub(crate) fn linked(&self, ends: &[Arc<Head>]) {
        self.gone(|agent| ends.iter().all(|head| agent.sight().sees(head)));
    }

    fn gone(&self, concerns: impl Fn(&Agent<Read>) -> bool) {
        let kept: Vec<Arc<Kept>> = lock(&self.0).iter().map(|(_, kept)| kept.clone()).collect();
        kept.iter().filter(|kept| concerns(&kept.agent)).for_each(|kept| kept.changed());
    }

    /// Forgets them all.
    pub fn clear(&self) {
        lock(&self.0).clear();
    }

    /// The graph of what an agent sees now, believed by this decay; `make` makes it, of what is there when it begins.
    ///
    /// # Errors
    /// Those of `make`; [`Error::Overtaken`] where the graph was let go meanwhile; [`Error::Unavailable`] where permissions of namespaces were
    /// changed since.
    pub(crate) fn of(
        &self,
        agent: &Agent<Read>,
        decay: Decay,
        now: Timestamp,
        make: impl FnOnce() -> Result<Brain, Error>,
    ) -> Result<Arc<Brain>, Error> {
        let (changes_all, times) = agent.sees_by();
        let place = (agent.did().clone(), changes_all);
        let kept = {
            let mut all = lock(&self.0);
            match all.peek(&place).map(|kept| (kept.agent.sees_by().1.cmp(&times), kept.decay)) {
                Some((Ordering::Less, _)) => drop(all.pop(&place)),
                Some((Ordering::Greater, _)) => return Err(Error::Unavailable(Unavailable::Permissions)),
                Some((Ordering::Equal, by)) if by != decay => drop(all.pop(&place)),
                Some((Ordering::Equal, _)) | None => {}
            }
            let new = || {
                Arc::new(Kept {
                    agent: agent.clone(),
                    decay,
                    making: Mutex::default(),
                    state: Mutex::default(),
                })
            };
            all.get_or_insert(place.clone(), new).clone()
        };
        let brain = {
            let _turn = lock(&kept.making);
            match kept.there(now) {
                Some(brain) => brain,
                None => {
                    let before = lock(&kept.state).changes;
                    let made = Arc::new(make()?);
                    // What changed meanwhile, it may have or not: it is good for this answer, whose receipt reads all of it again, and for
                    // no other.
                    let mut state = lock(&kept.state);
                    if state.changes == before {
                        state.brain = Some(made.clone());
                    }
                    made
                }
            }
        };
        self.trim();
        // One that was let go meanwhile hears of no change.
        let is_kept = lock(&self.0).peek(&place).is_some_and(|there| Arc::ptr_eq(there, &kept));
        if is_kept { Ok(brain) } else { Err(Error::Overtaken) }
    }

    /// Lets go of those that were not asked for longest, until the rest fits.
    fn trim(&self) {
        let mut all = lock(&self.0);
        let mut triples: usize = all.iter().map(|(_, kept)| kept.triples()).sum();
        while all.len() > MAX_BRAINS || (all.len() > 1 && triples > MAX_BRAIN_TRIPLES) {
            let gone = all.pop_lru().map(|(_, kept)| kept);
            triples = triples.saturating_sub(gone.map_or(0, |kept| kept.triples()));
        }
    }
}

impl Writing<'_, '_> {
    /// Tells the graphs of a new link between these items, once it is durable.
    pub(crate) fn announce_link(&mut self, ends: Vec<ItemId>) {
        let gateway = self.gateway.clone();
        self.tx.on_commit(move || {
            let ends: Vec<_> = ends.into_iter().filter_map(|item| gateway.heads.get(item)).collect();
            gateway.brains.linked(&ends);
        });
    }
}

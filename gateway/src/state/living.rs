//! One view of the cache, and how it follows what is committed.
//!
//! A change that concerns the view is noted when it is durable, and taken over before the next answer. What was erased is
//! taken out at once, and so is what the gates keep back from now on. A change of any other item costs the view nothing, so that
//! how long an answer takes does not tell a grantee that something was written which they may not see.

use crate::state::decided::Decided;
use crate::state::heads::Heads;
use crate::state::views::GateBasis;
use oap_exchange::{Allowance, Renewal, Step, View};
use oap_grants::VerifiedGrant;
use oap_identity::{Hash, ItemId, Timestamp};
use oap_memory::record::Head;
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};

/// Most items that changed since the last answer; beyond it a view is built anew.
pub const MAX_CHANGED: usize = 100_000;

/// How much memory the id of a doubtful item takes, in bytes, in nodes that are half full.
const DOUBTFUL: usize = 2 * size_of::<ItemId>();

/// A view, and what its owner knows of how it came about.
pub struct BuiltView {
    current: RwLock<Current>,
    bytes: AtomicUsize,
}

struct Current {
    view: View,
    /// When it last changed.
    at: Timestamp,
    /// The revision of what the owner owes, by which its gates decide.
    obligations: u64,
}

/// What an answer from a view rests on, as it was when the answer was found.
#[derive(Debug, Clone)]
pub struct ViewBasis {
    /// The grant, as it was verified when the view was built.
    pub grant: VerifiedGrant,
    /// The profile that was applied.
    pub profile_hash: Hash,
    /// When the first of its items ends, or a gate may decide otherwise.
    pub ends: Option<Timestamp>,
    /// The revision of what the owner owes, by which its gates decided.
    pub obligations: u64,
    /// What the gates decided.
    pub decided: Decided,
}

impl BuiltView {
    pub(crate) fn new(view: View, at: Timestamp, obligations: u64) -> Self {
        let bytes = AtomicUsize::new(view.bytes());
        Self { current: RwLock::new(Current { view, at, obligations }), bytes }
    }

    fn read<T>(&self, read: impl FnOnce(&Current) -> T) -> T {
        read(&self.current.read().unwrap_or_else(PoisonError::into_inner))
    }

    fn write<T>(&self, write: impl FnOnce(&mut View) -> T) -> T {
        let mut current = self.current.write().unwrap_or_else(PoisonError::into_inner);
        let written = write(&mut current.view);
        self.bytes.store(current.view.bytes(), Ordering::Relaxed);
        written
    }

    /// Changes what is noted for the owner alone: nobody who reads the view waits for that.
    fn note(&self, note: impl FnOnce(&View)) {
        self.read(|Current { view, .. }| {
            note(view);
            self.bytes.store(view.bytes(), Ordering::Relaxed);
        });
    }

    /// Finds something in the view, and says what that rests on. The view waits: nothing is loaded meanwhile.
    pub fn find<T>(&self, find: impl FnOnce(&View) -> T) -> (T, ViewBasis) {
        self.read(|Current { view, at, obligations }| {
            let grant = view.grant().clone();
            let basis = ViewBasis {
                profile_hash: view.profile_hash(),
                ends: view.ends(),
                obligations: *obligations,
                decided: Decided::of(&view.report(*at), *at, grant.grant()),
                grant,
            };
            (find(view), basis)
        })
    }

    /// Looks at the view as it is now.
    pub(crate) fn look<T>(&self, look: impl FnOnce(&View) -> T) -> T {
        self.read(|current| look(&current.view))
    }

    /// Whether an item is in the view.
    pub(crate) fn contains(&self, item: ItemId) -> bool {
        self.read(|current| current.view.contains(item))
    }

    /// Whether its items have vectors, so that a question is ranked by its own, too.
    #[must_use]
    pub fn has_vectors(&self) -> bool {
        self.read(|current| current.view.has_vectors())
    }

    /// What it takes to follow changes.
    pub(crate) fn renewal(&self) -> Renewal {
        self.read(|current| current.view.renewal())
    }
}

/// What became of an item.
#[derive(Clone)]
pub(crate) struct Change {
    pub(crate) item: ItemId,
    /// Its head, where it is still there.
    pub(crate) after: Option<Arc<Head>>,
    /// Whether its last link may vouch for those before it.
    pub(crate) vouches: bool,
    pub(crate) at: Timestamp,
}

/// Items that passed, and are not in the view all the same.
#[derive(Debug, Default)]
pub(crate) struct Absent {
    /// They have moved on since their heads were read.
    pub(crate) moved: BTreeSet<ItemId>,
    /// No grantee would take them: a compromised key signed something of them.
    pub(crate) doubtful: BTreeSet<ItemId>,
}

/// The place of a view in the cache.
pub(crate) struct Entry {
    pub(crate) grant: VerifiedGrant,
    pub(crate) embeddings: bool,
    /// Held by the one task that builds it or takes changes over.
    pub(crate) working: tokio::sync::Mutex<()>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    built: Option<Arc<BuiltView>>,
    /// Whether it is being built: then every change is noted, for nobody knows yet which concern it.
    building: bool,
    /// Items whose change is to be taken over.
    changed: BTreeSet<ItemId>,
    /// Those that are being taken over.
    stepping: BTreeSet<ItemId>,
    /// Items of which a version was destroyed while it is being built.
    destroyed: BTreeSet<ItemId>,
    /// Items that pass, and that no grantee would take: only who vouches for one makes it concern the view.
    doubtful: BTreeSet<ItemId>,
    /// Whether more changed than is noted.
    overflown: bool,
    /// Items that are to be looked at before the view is the one of what the owner owes now, and the revision of that.
    owed: Option<(u64, BTreeSet<ItemId>)>,
}

/// How a view stands.
pub(crate) enum ViewStatus {
    /// It can be answered from.
    Ready(Arc<BuiltView>),
    /// Changes are to be taken over.
    Behind(Arc<BuiltView>),
    /// It is to be built.
    Over,
}

impl State {
    fn note(&mut self, item: ItemId) {
        if self.changed.len() < MAX_CHANGED {
            self.changed.insert(item);
        } else {
            self.overflown = true;
            self.changed = BTreeSet::new();
            self.built = None;
        }
    }
}

impl Entry {
    pub(crate) fn new(grant: VerifiedGrant, embeddings: bool) -> Self {
        Self { grant, embeddings, working: Default::default(), state: Default::default() }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes a change that is durable.
    pub(crate) fn changed(&self, Change { item, after, vouches, at }: &Change) {
        let (item, after) = (*item, after.as_deref());
        let mut state = self.state();
        if state.building {
            return state.note(item);
        }
        let Some(built) = state.built.clone() else { return };
        let doubtful = !vouches && state.doubtful.contains(&item);
        let (concerns, noted) = built.read(|Current { view, .. }| {
            let concerns = if doubtful { view.contains(item) } else { view.concerns(item, after, *at) };
            (concerns, view.is_noted(item, after, *at))
        });
        if after.is_none() {
            state.doubtful.remove(&item);
        }
        if concerns || state.stepping.contains(&item) || state.changed.contains(&item) {
            state.note(item);
        }
        match after {
            // Nothing of an item that was erased stays until somebody asks again.
            None if concerns => built.write(|view| view.forget(item)),
            None if noted => built.note(|view| view.let_go(item)),
            // For the owner alone: no answer is another by it.
            Some(head) if noted && !concerns => built.note(|view| view.keep_back(head, *at)),
            _ => {}
        }
    }

    /// Drops the view where it holds, or is about to take over, a version of an item that was destroyed: its change is noted, and
    /// nobody may ask for long.
    pub(crate) fn version_destroyed(&self, item: ItemId) {
        let mut state = self.state();
        if state.building {
            state.note(item);
            if !state.overflown {
                state.destroyed.insert(item);
            }
        } else if state.changed.contains(&item) || state.stepping.contains(&item) {
            state.built = None;
        }
    }

    /// Takes over what the owner owes since a commit; whether the view may stay. A member that the gates keep back from now on goes at
    /// once: an answer that has it was found by the revision before, and does not leave.
    pub(crate) fn obliged(&self, basis: &GateBasis, now: Timestamp, heads: &Heads) -> bool {
        let mut state = self.state();
        if state.building {
            return false;
        }
        let Some(built) = state.built.clone() else { return true };
        let mut current = built.current.write().unwrap_or_else(PoisonError::into_inner);
        let now = now.max(current.at);
        let head = |item: ItemId| heads.get(item);
        let passing = current.view.oblige(&basis.obligations, basis.consented, now, head);
        // Nobody has judged the doubtful ones anew.
        let stays = passing.is_none() || state.doubtful.is_empty();
        let mut owed = state.owed.take().map(|(_, owed)| owed).unwrap_or_default();
        if let Some(passing) = passing {
            current.at = now;
            built.bytes.store(current.view.bytes(), Ordering::Relaxed);
            // A step that was begun is one of the gates before, and is not taken.
            owed.extend(state.stepping.iter().copied().chain(passing));
            owed.iter().for_each(|item| state.note(*item));
        }
        if owed.is_empty() {
            current.obligations = basis.revision;
        } else {
            // No answer leaves that was found before all of them were looked at.
            state.owed = Some((basis.revision, owed));
        }
        stays
    }

    /// The items that are to be looked at before the view is the one of what the owner owes now.
    pub(crate) fn owed(&self) -> BTreeSet<ItemId> {
        self.state().owed.as_ref().map(|(_, items)| items.clone()).unwrap_or_default()
    }

    /// How the view stands.
    pub(crate) fn stands(&self, allowance: &Allowance, now: Timestamp) -> ViewStatus {
        let state = self.state();
        let Some(built) = state.built.clone() else { return ViewStatus::Over };
        let is_behind = !state.changed.is_empty() || !state.stepping.is_empty();
        drop(state);
        let (over, ends) = built.read(|Current { view, .. }| (view.is_over(allowance, now), view.ends()));
        match (over, is_behind || ends.is_some_and(|end| end <= now)) {
            (true, _) => ViewStatus::Over,
            (false, true) => ViewStatus::Behind(built),
            (false, false) => ViewStatus::Ready(built),
        }
    }

    /// Begins to build the view.
    pub(crate) fn begin(&self) {
        *self.state() = State { building: true, ..State::default() };
    }

    /// Ends building it; whether it is kept. What was erased meanwhile is taken out; what else concerns the view is left to its
    /// first step, and so is what moved on while it was built.
    pub(crate) fn finish(&self, built: Arc<BuiltView>, absent: Absent, heads: &Heads) -> bool {
        let mut state = self.state();
        absent.moved.into_iter().for_each(|item| state.note(item));
        state.doubtful = absent.doubtful;
        state.building = false;
        if !state.overflown {
            let at = built.read(|current| current.at);
            built.write(|view| {
                state.changed.retain(|item| match heads.get(*item) {
                    None => {
                        view.forget(*item);
                        false
                    }
                    Some(head) if view.concerns(*item, Some(&head), at) => true,
                    Some(head) => {
                        view.keep_back(&head, at);
                        false
                    }
                });
            });
            // As in `version_destroyed`.
            let destroyed = std::mem::take(&mut state.destroyed);
            state.built = Some(built).filter(|_| destroyed.is_disjoint(&state.changed));
        }
        state.destroyed.clear();
        state.overflown = false;
        state.built.is_some()
    }

    /// The items whose change is to be taken over.
    pub(crate) fn noted(&self) -> BTreeSet<ItemId> {
        self.state().changed.clone()
    }

    /// Begins to take over the changes of these items.
    pub(crate) fn begin_step(&self, items: &BTreeSet<ItemId>) {
        let mut state = self.state();
        for item in items {
            state.changed.remove(item);
        }
        state.stepping = items.clone();
    }

    /// Takes over what became of the items. One that changed again meanwhile is in the next step as well; whoever asked before that is answered by
    /// what this one found. Of one that moved on it found nothing: it is left to the next step. Nothing comes back of what was erased meanwhile.
    /// `false`, and nothing done, where the view was dropped meanwhile.
    pub(crate) fn finish_step(
        &self,
        built: &Arc<BuiltView>,
        mut step: Step,
        absent: Absent,
        heads: &Heads,
        now: Timestamp,
    ) -> bool {
        let mut state = self.state();
        for item in std::mem::take(&mut state.stepping) {
            state.doubtful.remove(&item);
        }
        state.doubtful.extend(absent.doubtful);
        absent.moved.iter().for_each(|item| state.note(*item));
        if !state.built.as_ref().is_some_and(|known| Arc::ptr_eq(known, built)) {
            return false;
        }
        step.leave_out(|item| absent.moved.contains(&item) || heads.get(item).is_none());
        let mut current = built.current.write().unwrap_or_else(PoisonError::into_inner);
        current.view.take(step);
        current.view.expire(now);
        current.at = now;
        built.bytes.store(current.view.bytes(), Ordering::Relaxed);
        if let Some((revision, owed)) = state.owed.take() {
            let left: BTreeSet<ItemId> = owed.intersection(&state.changed).copied().collect();
            if left.is_empty() {
                current.obligations = revision;
            } else {
                state.owed = Some((revision, left));
            }
        }
        true
    }

    /// Lets go of a view that could not follow.
    pub(crate) fn lose(&self) {
        *self.state() = State::default();
    }

    /// Whether changes wait to be taken over.
    pub(crate) fn is_behind(&self) -> bool {
        !self.state().changed.is_empty()
    }

    pub(crate) fn bytes(&self) -> usize {
        let state = self.state();
        let built = state.built.as_ref().map_or(0, |built| built.bytes.load(Ordering::Relaxed));
        built + state.doubtful.len() * DOUBTFUL
    }
}

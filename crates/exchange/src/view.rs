//! A grant is a view (protocol section 0):
//!
//! ```text
//! View(grant) = cap( project( gate( select(store, grant.filter) ), profile, trust_level ), max_items )
//! ```
//!
//! [`View::build`] makes one of committed versions, and keeps of each what selecting, ranking, filters and cursors need. Everything
//! that answers a grantee works on the view it made.

use crate::allowance::Allowance;
use crate::gate::{Obligations, Report};
use crate::lens::Terms;
use crate::member::Member;
use crate::renewal::{Renewal, Step};
use crate::setting::{Setting, ViewError};
use crate::slice::Slice;
use crate::vector::Vector;
use oap_grants::VerifiedGrant;
use oap_identity::{Hash, ItemId, Timestamp};
use oap_memory::commitment::Committed;
use oap_memory::record::Head;
use std::borrow::Borrow;
use std::sync::Arc;

/// All that a grantee can learn under one grant. [`View::build`] alone makes one, of a [`VerifiedGrant`].
#[derive(Debug)]
pub struct View {
    grant: VerifiedGrant,
    slice: Slice,
    /// What its written items are kept by.
    key: Hash,
}

impl View {
    /// Selects, passes the gates, projects and caps. What is selected and shown, to whom and how much of it, is what
    /// the grant says. Items are loaded only when they passed; one that `load` finds no more was erased meanwhile, and
    /// is in no view.
    ///
    /// # Errors
    /// [`ViewError`]; a view that cannot be built whole is not built.
    pub fn build<'h, E: Send, W: Borrow<Committed>>(
        grant: &VerifiedGrant,
        allowance: &Allowance,
        setting: &Setting,
        heads: impl Iterator<Item = &'h Head>,
        load: impl Fn(&Head) -> Result<Option<W>, E> + Sync,
    ) -> Result<Self, ViewError<E>> {
        let (slice, _) =
            Slice::build(Terms::verified(grant), allowance, setting, heads, load, |_, _, _| Ok(()))?;
        Ok(Self { grant: grant.clone(), key: slice.lens.key(grant.hash()), slice })
    }

    /// The grant, as it was verified when the view was built.
    #[must_use]
    pub const fn grant(&self) -> &VerifiedGrant {
        &self.grant
    }

    /// The hash of the profile that was applied.
    #[must_use]
    pub fn profile_hash(&self) -> Hash {
        self.slice.lens.applied.hash
    }

    /// How many items it has.
    #[must_use]
    pub fn len(&self) -> usize {
        self.slice.len()
    }

    /// Whether it has none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether the item is in the view.
    #[must_use]
    pub fn contains(&self, item: ItemId) -> bool {
        self.slice.contains(item)
    }

    /// Whether a change of an item at that time changes the view: it holds the item, or is to hold it.
    #[must_use]
    pub fn concerns(&self, item: ItemId, after: Option<&Head>, at: Timestamp) -> bool {
        self.contains(item) || after.is_some_and(|head| self.slice.lens.admits(head, at))
    }

    /// Whether a change of an item that does not concern the view changes what the gates decided, which is for the owner.
    #[must_use]
    pub fn is_noted(&self, item: ItemId, after: Option<&Head>, at: Timestamp) -> bool {
        self.slice.keeps_back(item) || after.is_some_and(|head| self.slice.lens.selects(head, at))
    }

    /// What it takes to follow changes of items.
    #[must_use]
    pub fn renewal(&self) -> Renewal {
        Renewal::of(&self.slice)
    }

    /// Takes over what became of items; `false`, and nothing done, for the step of another view.
    pub fn take(&mut self, step: Step) -> bool {
        step.take(&mut self.slice)
    }

    /// Takes an item out that is gone for good.
    pub fn forget(&mut self, item: ItemId) {
        self.slice.remove(item);
    }

    /// Notes an item that is not in the view as the gates judge it now, which is for the owner.
    pub fn keep_back(&self, head: &Head, at: Timestamp) {
        self.slice.keep_back(head, at);
    }

    /// Lets go of an item that is not in the view, and was noted for the owner.
    pub fn let_go(&self, item: ItemId) {
        self.slice.let_go(item);
    }

    /// Takes over what the owner owes now, and whether they consented to the grant. Items that the gates keep back now are taken out;
    /// what is given back may come in, and is to be looked at in a step. `None`, and nothing done, where nothing changed that its gates
    /// ask: the view is the same, and so are steps that were begun.
    pub fn oblige(
        &mut self,
        obligations: &Obligations,
        consented: bool,
        now: Timestamp,
        head: impl Fn(ItemId) -> Option<Arc<Head>>,
    ) -> Option<Vec<ItemId>> {
        let gate = self.slice.lens.gate.changed(obligations, consented, now)?;
        Some(self.slice.judge_anew(gate, head))
    }

    /// Takes out the items whose end has come.
    pub fn expire(&mut self, now: Timestamp) {
        self.slice.expire(now);
    }

    /// Whether following changes is not enough at that time, so that it must be built again: a gate may decide otherwise,
    /// the model of embeddings is asked again, or a grant has nothing more to give, so that only what was disclosed before
    /// is left.
    #[must_use]
    pub fn is_over(&self, allowance: &Allowance, now: Timestamp) -> bool {
        self.slice.rebuilt_at().is_some_and(|end| end <= now)
            || self.slice.lens.exhausted() != allowance.exhausted()
    }

    /// When the first of its items ends, or following changes is not enough any more: it must not be answered from as it is
    /// from then on.
    #[must_use]
    pub fn ends(&self) -> Option<Timestamp> {
        self.slice.next_end().into_iter().chain(self.slice.rebuilt_at()).min()
    }

    /// How much memory it takes, in bytes, about.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.slice.bytes()
    }

    /// Whether its items have vectors, so that a question is ranked by its own, too.
    #[must_use]
    pub fn has_vectors(&self) -> bool {
        self.slice.has_vectors()
    }

    /// What the gates decided of all items that the grant selects: for the owner alone.
    #[must_use]
    pub fn report(&self, now: Timestamp) -> Report {
        self.slice.report(now)
    }

    pub(crate) const fn slice(&self) -> &Slice {
        &self.slice
    }

    pub(crate) const fn key(&self) -> Hash {
        self.key
    }

    /// Whether its grantee may see vectors, and there are some.
    pub(crate) fn shows_vectors(&self) -> bool {
        self.slice.lens.reference.is_some() && self.has_vectors()
    }

    /// An item, with its vector, where the grantee may see that.
    pub(crate) fn with_vector(&self, item: ItemId) -> Option<(&Member, &Vector)> {
        let member = self.slice.member(item).filter(|_| self.shows_vectors())?;
        Some((member, member.vector.as_ref()?))
    }
}

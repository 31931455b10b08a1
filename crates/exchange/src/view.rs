//! A grant is a view (protocol section 0):
//!
//! ```text
//! View(grant) = cap( project( gate( select(store, grant.filter) ), profile, trust_level ), max_items )
//! ```
//!
//! [`View::build`] sees whole items. Everything that answers a grantee works on the view it made.

use crate::allowance::Allowance;
use crate::gate::Report;
use crate::item::ViewItem;
use crate::rank::Index;
use crate::slice::{Applied, Setting, Slice, Terms, ViewError};
use crate::vector::Vector;
use oap_grants::VerifiedGrant;
use oap_identity::{Hash, ItemId, Timestamp};
use oap_memory::record::{Head, Whole};

/// All that a grantee can learn under one grant. [`View::build`] alone makes one, of a [`VerifiedGrant`].
#[derive(Debug)]
pub struct View {
    grant: VerifiedGrant,
    slice: Slice,
}

impl View {
    /// Selects, passes the gates, projects and caps. What is selected and shown, to whom and how much of it, is what
    /// the grant says. Items are loaded only when they passed; one that `load` finds no more was erased meanwhile, and
    /// is in no view. Beside the view it says what the gates decided, which is for the owner alone.
    ///
    /// # Errors
    /// [`ViewError`]; a view that cannot be built whole is not built.
    pub fn build<'h, E>(
        grant: &VerifiedGrant,
        allowance: &Allowance,
        setting: &Setting,
        heads: impl Iterator<Item = &'h Head>,
        load: impl FnMut(&Head) -> Result<Option<Whole>, E>,
    ) -> Result<(Self, Report), ViewError<E>> {
        let (slice, report) = Slice::build(Terms::verified(grant), allowance, setting, heads, load)?;
        Ok((Self { grant: grant.clone(), slice }, report))
    }

    /// The grant, as it was verified when the view was built.
    #[must_use]
    pub const fn grant(&self) -> &VerifiedGrant {
        &self.grant
    }

    /// The hash of the profile that was applied.
    #[must_use]
    pub const fn profile_hash(&self) -> Hash {
        self.slice.applied.hash
    }

    /// How many items it has.
    #[must_use]
    pub fn len(&self) -> usize {
        self.slice.items.len()
    }

    /// Whether it has none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.slice.items.is_empty()
    }

    /// Whether the item is in the view.
    #[must_use]
    pub fn contains(&self, item: ItemId) -> bool {
        self.slice.contains(item)
    }

    /// Whether a change of an item at that time changes the view: it holds the item, or would have before, or after.
    #[must_use]
    pub fn concerns(&self, item: ItemId, before: Option<&Head>, after: Option<&Head>, at: Timestamp) -> bool {
        let (grant, own_agent) = (self.grant.grant(), self.grant.is_own_agent());
        let enters = |head: &&Head| {
            grant.filter.admits(head, &grant.granter.scope, own_agent, at)
                && self.slice.gate.judge(head).passes
        };
        self.contains(item)
            || before.is_some_and(|head| enters(&head))
            || after.is_some_and(|head| enters(&head))
    }

    /// When the first of its items expires or a gate may decide otherwise: the view must not be used from then on.
    #[must_use]
    pub const fn ends(&self) -> Option<Timestamp> {
        self.slice.ends
    }

    /// How much memory it takes, in bytes: items, index and vectors, about.
    #[must_use]
    pub const fn bytes(&self) -> usize {
        self.slice.bytes
    }

    /// Which grants had no more to give when it was built: under those it holds only what was disclosed before. A view
    /// that was built before that came to be is to be built again.
    #[must_use]
    pub fn exhausted(&self) -> &[bool] {
        &self.slice.exhausted
    }

    /// Whether its items have vectors, so that a question is ranked by its own, too.
    #[must_use]
    pub fn has_vectors(&self) -> bool {
        !self.slice.vectors.is_empty()
    }

    pub(crate) fn items(&self) -> &[ViewItem] {
        &self.slice.items
    }

    pub(crate) const fn index(&self) -> &Index {
        &self.slice.index
    }

    /// The vectors of the items, in their order; none without a model.
    pub(crate) fn vectors(&self) -> &[Vector] {
        &self.slice.vectors
    }

    pub(crate) const fn applied(&self) -> &Applied {
        &self.slice.applied
    }

    /// An item, with its vector, where the grantee may see that.
    pub(crate) fn with_vector(&self, item: ItemId) -> Option<(&ViewItem, &Vector)> {
        self.slice.item(item).zip(self.slice.vector(item)).filter(|_| self.slice.shows_vectors)
    }
}

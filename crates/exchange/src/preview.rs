//! What a grant would show: for its owner, before it is given.

use crate::allowance::Allowance;
use crate::gate::Report;
use crate::item::ViewItem;
use crate::lens::Terms;
use crate::setting::{Setting, ViewError};
use crate::slice::Slice;
use crate::vector::Vector;
use oap_grants::Grant;
use oap_identity::{ItemId, Timestamp};
use oap_memory::record::{Head, ItemRecord};

/// What a grant that nobody presented would show, selected and projected by the code that makes a [`crate::View`], and
/// written out. Nothing can be answered from it.
#[derive(Debug)]
pub struct Preview {
    slice: Slice,
    items: Vec<ViewItem>,
    vectors: Vec<Vector>,
}

impl Preview {
    /// Selects, passes the gates, projects and caps, as if nothing had been disclosed and the grantee asked for all that
    /// the grant gives.
    ///
    /// # Errors
    /// [`ViewError`].
    pub fn build<'h, E: Send>(
        grant: &Grant,
        setting: &Setting,
        heads: impl Iterator<Item = &'h Head>,
        load: impl Fn(&Head) -> Result<Option<ItemRecord>, E> + Sync,
    ) -> Result<Self, ViewError<E>> {
        let allowance = Allowance::unused(grant.max_items as usize);
        let (slice, mut items) = Slice::build(
            Terms::proposed(grant),
            &allowance,
            setting,
            heads,
            load,
            |of, projected, whole| {
                let member = &of.member;
                let written = ViewItem::write(member.id(), member.attitude, projected, whole);
                written.map_err(|error| ViewError::Commitment(member.id(), error))
            },
        )?;
        if let Some(reference) = slice.lens.reference.as_ref().filter(|_| slice.has_vectors()) {
            items.iter_mut().try_for_each(|item| item.refer(reference))?;
        }
        let vectors = slice.members().filter_map(|member| member.vector.clone()).collect();
        Ok(Self { slice, items, vectors })
    }

    /// The items, in the order of their ids.
    #[must_use]
    pub fn items(&self) -> &[ViewItem] {
        &self.items
    }

    /// One of them.
    #[must_use]
    pub fn item(&self, item: ItemId) -> Option<&ViewItem> {
        self.items.get(self.items.binary_search_by_key(&item, ViewItem::id).ok()?)
    }

    /// What the gates decided of all items that the grant selects.
    #[must_use]
    pub fn report(&self, now: Timestamp) -> Report {
        self.slice.report(now)
    }

    /// How many items the words of a query match.
    #[must_use]
    pub fn matching(&self, query: &str) -> usize {
        self.slice.matches(query).len()
    }

    /// The vectors of the items, in their order; none without a model.
    #[must_use]
    pub fn vectors(&self) -> &[Vector] {
        &self.vectors
    }
}

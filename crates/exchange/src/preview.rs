//! What a grant would show: for its owner, before it is given.

use crate::allowance::Allowance;
use crate::gate::Report;
use crate::item::ViewItem;
use crate::slice::{Setting, Slice, Terms, ViewError};
use crate::vector::Vector;
use oap_grants::Grant;
use oap_identity::ItemId;
use oap_memory::record::{Head, Whole};

/// What a grant that nobody presented would show, selected and projected by the code that makes a [`crate::View`]. Nothing
/// can be answered from it.
#[derive(Debug)]
pub struct Preview(Slice);

impl Preview {
    /// Selects, passes the gates, projects and caps, as if nothing had been disclosed and the grantee asked for all that
    /// the grant gives. Beside it, what the gates decided.
    ///
    /// # Errors
    /// [`ViewError`].
    pub fn build<'h, E>(
        grant: &Grant,
        setting: &Setting,
        heads: impl Iterator<Item = &'h Head>,
        load: impl FnMut(&Head) -> Result<Option<Whole>, E>,
    ) -> Result<(Self, Report), ViewError<E>> {
        let allowance = Allowance::unused(grant.max_items as usize);
        let (slice, report) = Slice::build(Terms::proposed(grant), &allowance, setting, heads, load)?;
        Ok((Self(slice), report))
    }

    /// The items, in the order of their ids.
    #[must_use]
    pub fn items(&self) -> &[ViewItem] {
        &self.0.items
    }

    /// One of them.
    #[must_use]
    pub fn item(&self, item: ItemId) -> Option<&ViewItem> {
        self.0.item(item)
    }

    /// How many items the words of a query match.
    #[must_use]
    pub fn matching(&self, query: &str) -> usize {
        self.0.index.score(query).into_iter().filter(|score| *score > 0.0).count()
    }

    /// The vectors of the items, in their order; none without a model.
    #[must_use]
    pub fn vectors(&self) -> &[Vector] {
        &self.0.vectors
    }

    /// How much memory it takes, in bytes, about.
    #[must_use]
    pub const fn bytes(&self) -> usize {
        self.0.bytes
    }
}

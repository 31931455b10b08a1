//! What is kept in step with the owner's devices, as an item's head says, and what a device has of it.

use crate::error::Error;
use crate::state::commits::Writing;
use crate::state::gateway::Gateway;
use crate::state::grant_book::GrantEntry;
use crate::state::schema::HEADS;
use crate::state::steps;
use oap_identity::{Did, ItemId, ScopeId};
use oap_memory::record::{Head, Status, Tier, Visibility};
use oap_store::{Rows, StoreError};

/// Whether an item is one that is kept in step: what a grant that shows everything reaches, and what was taken back of that.
pub(super) fn is_kept_in_step(head: &Head, scope: &ScopeId) -> bool {
    *head.scope_id == *scope
        && head.exportable
        && head.meta.visibility == Visibility::Shared
        && head.meta.tier != Tier::Working
        && !head.meta.needs_verification
        && head.meta.private_to.is_none()
        && matches!(head.status, Status::Current | Status::Retracted)
}

/// Whether an item was shown to a device, or came from one: what is erased there is erased here, and nothing else is.
///
/// # Errors
/// [`Error::Store`], [`Error::Corrupt`].
pub(super) fn is_of_both(
    gateway: &Gateway,
    rows: &impl Rows,
    device: &Did,
    item: ItemId,
) -> Result<bool, Error> {
    let shown =
        |entry: &GrantEntry| entry.record.grant.grant().grantee == *device && entry.has_disclosed(item);
    let was_shown = gateway.grant_book.all().iter().any(shown);
    Ok(was_shown || steps::came(rows, item, &gateway.principal)?)
}

impl Writing<'_, '_> {
    /// The head of an item in this transaction, where it is there and kept in step.
    ///
    /// # Errors
    /// [`Error::Store`], [`Error::Corrupt`].
    pub(super) fn kept_in_step(&self, item: ItemId) -> Result<Option<Head>, Error> {
        let head = match HEADS.get(self.tx, &item) {
            Err(StoreError::Erased) => None,
            head => head?,
        };
        Ok(head.filter(|head| is_kept_in_step(head, &self.gateway.config.default_scope)))
    }
}

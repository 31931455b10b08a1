//! Who was told of a deletion, and what became of it. Kept with the deletion: it is the owner's proof of who confirmed and who did not.

pub use crate::api::deletion::ToldState;
use crate::error::Error;
use crate::state::commits::Writing;
use crate::state::schema::{TOLD, TOLD_BY};
use oap_identity::{DeletionId, Did, ItemId, LetterId, Timestamp, json};
use oap_store::Rows;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// What one grantee was told of a deletion, in one letter at most.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct StoredDeletionNotice {
    pub(crate) to: Did,
    pub(crate) items: Vec<ItemId>,
    pub(crate) state: ToldState,
    /// Since when it is so.
    pub(crate) since: Timestamp,
    pub(crate) letter: Option<LetterId>,
    /// The grantee's Deletion Receipt, in canonical form.
    pub(crate) receipt: Option<String>,
}

/// Who was told of a deletion, in the order of their DIDs.
///
/// # Errors
/// [`Error::Store`], [`Error::Corrupt`].
pub(crate) fn of(rows: &impl Rows, deletion: DeletionId) -> Result<Vec<StoredDeletionNotice>, Error> {
    let mut notices = Vec::new();
    for number in 0_u32.. {
        match TOLD.get(rows, &(deletion, number))? {
            Some(row) => notices.push(row),
            None => break,
        }
    }
    Ok(notices)
}

impl Writing<'_, '_> {
    /// Stores what a grantee was told of a deletion, under the number that it has among its notices, from 0.
    pub(crate) fn put_deletion_notice(
        &mut self,
        deletion: DeletionId,
        number: u32,
        notice: &StoredDeletionNotice,
    ) -> Result<(), Error> {
        if let Some(letter) = notice.letter {
            TOLD_BY.put(self.tx, &letter, &(deletion, number))?;
        }
        Ok(TOLD.put(self.tx, &(deletion, number), notice)?)
    }

    /// Notes what became of a letter that told of a deletion.
    pub(crate) fn settle_deletion_notice(
        &mut self,
        letter: LetterId,
        state: ToldState,
        receipt: Option<&Value>,
    ) -> Result<(), Error> {
        let Some(place) = TOLD_BY.get(self.tx, &letter)? else { return Ok(()) };
        let Some(mut notice) = TOLD.get(self.tx, &place)? else { return Ok(()) };
        (notice.state, notice.since) = (state, self.now);
        notice.receipt = receipt.map(json::canonical_text).transpose()?;
        TOLD_BY.delete(self.tx, &letter);
        Ok(TOLD.put(self.tx, &place, &notice)?)
    }
}

//! What an agent was answered to a call that it may repeat (protocol section 11): by its own key for the call, for as long as the version
//! that the call wrote is there.

use crate::error::{Conflict, Error};
use crate::state::commits::Writing;
use crate::state::schema::{ANSWERED, ANSWERED_OF};
use oap_identity::{Did, Hash, ItemId};
use oap_store::StoreError;
use serde::{Deserialize, Serialize};

/// A call that can be repeated: whose it is and under what name, and what it asks.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Repeatable {
    name: Hash,
    asked: Hash,
}

impl Repeatable {
    /// The call of an agent under a key.
    pub fn new<T: Serialize>(agent: &Did, key: &str, asked: &T) -> Result<Self, Error> {
        let name = Hash::of_canonical(&(agent, key))?;
        Ok(Self { name, asked: Hash::of_canonical(asked)? })
    }
}

/// An answer as it is stored, sealed with a key of its own that goes with the first version of the item: the hash of the call would tell its
/// words to whoever guesses.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Answered {
    asked: Hash,
    /// The answer, in JSON.
    answer: Vec<u8>,
}

impl Writing<'_, '_> {
    /// What was answered to the same call, if it was made before.
    ///
    /// # Errors
    /// [`Error::Conflict`] where another call has its key.
    pub(crate) fn answered(&self, call: &Repeatable) -> Result<Option<Vec<u8>>, Error> {
        match ANSWERED.get(self.tx, &call.name) {
            Ok(Some(before)) if before.asked == call.asked => Ok(Some(before.answer)),
            Ok(Some(_)) => Err(Error::Conflict(Conflict::OtherCall)),
            Ok(None) | Err(StoreError::Erased) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Keeps the answer to a call, which wrote an item.
    pub(crate) fn keep_answer(
        &mut self,
        call: &Repeatable,
        item: ItemId,
        answer: Vec<u8>,
    ) -> Result<(), Error> {
        let slot = self.tx.new_slot()?;
        ANSWERED.put_in(self.tx, slot, &call.name, &Answered { asked: call.asked, answer })?;
        Ok(ANSWERED_OF.put(self.tx, &item, &call.name)?)
    }

    /// Destroys the answer to the call that wrote an item.
    pub(crate) fn drop_answer(&mut self, item: ItemId) -> Result<(), Error> {
        let Some(name) = ANSWERED_OF.get(self.tx, &item)? else { return Ok(()) };
        ANSWERED_OF.delete(self.tx, &item);
        let stored = match ANSWERED.get_with_slot(self.tx, &name) {
            Ok(stored) => stored,
            // Destroyed by a sweep that finished a deletion after a crash.
            Err(StoreError::Erased) => None,
            Err(error) => return Err(error.into()),
        };
        ANSWERED.delete(self.tx, &name);
        if let Some((slot, _)) = stored {
            self.tx.wipe(slot);
        }
        Ok(())
    }
}

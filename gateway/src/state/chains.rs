//! The receipt chains of a store.

use crate::error::Error;
use crate::state::commits::Chain;
use crate::state::gateway::Gateway;
use crate::state::schema::CHAINS;

impl Gateway {
    /// Every chain, by its name, as last committed.
    ///
    /// # Errors
    /// [`Error::Store`], [`Error::Corrupt`].
    pub(crate) fn chains(&self) -> Result<Vec<(String, Chain)>, Error> {
        CHAINS.scan(&self.store).map(|row| Ok(row?)).collect()
    }
}

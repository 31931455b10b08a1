//! What a device of the owner's asks, as any grantee does: its grant is judged, and judged again where the answer is recorded.

use super::{Caller, Only};
use crate::error::Error;
use crate::service::Exchange;
use crate::state::commits::Writing;
use crate::state::grant_book::GrantEntry;
use crate::state::replay::REMEMBERED;
use crate::state::schema::PROOFS;
use oap_exchange::Query;
use oap_grants::Operation;
use oap_grants::verify::verify;
use oap_identity::ItemId;
use oap_memory::receipt::Action;

impl Caller {
    /// That the token and its grant hold still in a transaction, whose answer uses the proof up.
    ///
    /// # Errors
    /// [`Error::Judged`].
    pub(crate) fn holds_in(
        &self,
        w: &mut Writing<'_, '_>,
        chain: Vec<GrantEntry>,
        operation: Operation,
    ) -> Result<(), Error> {
        let standing = w.standing(chain)?;
        verify(&self.authenticated, operation, &standing, w.keys.document(), w.now).map_err(Error::Judged)?;
        self.authenticated.still(w.keys.document(), w.now).map_err(Error::Judged)?;
        if let Some(key) = self.proof {
            PROOFS.put(w.tx, &key, &w.now.plus(REMEMBERED))?;
        }
        Ok(())
    }
}

impl Exchange<'_> {
    /// Answers a device of the owner's that names items: the same way, but for the price, which would tell nobody anything.
    ///
    /// # Errors
    /// As [`Exchange::query`].
    pub(crate) async fn named(
        self,
        caller: &Caller,
        query: Query,
        items: &[ItemId],
    ) -> Result<Vec<u8>, Error> {
        self.ask(caller, query, Some(Only::Items(items))).await
    }

    /// What became of a transaction that judged a caller's grant again: one that it refused has its receipt.
    ///
    /// # Errors
    /// The transaction's own; [`Error::Refused`].
    pub(crate) async fn judged<T>(
        self,
        caller: &Caller,
        action: Action,
        committed: Result<T, Error>,
    ) -> Result<T, Error> {
        match committed {
            Err(Error::Judged(refused)) => Err(self.refuse_caller(caller, action, refused).await?),
            committed => committed,
        }
    }
}

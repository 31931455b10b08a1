//! Where an answer goes on: sealed, so that it tells nothing, and bound to one grant and one query.

use crate::error::Error;
use crate::service::Exchange;
use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use oap_exchange::answer::{Position, Rank};
use oap_grants::VerifiedGrant;
use oap_identity::{Hash, ItemId, Timestamp};
use oap_store::seal;

impl Exchange<'_> {
    /// The cursor of a place in the answers to a query.
    ///
    /// # Errors
    /// None in practice.
    pub(crate) fn seal_cursor(
        self,
        at: Position,
        grant: &VerifiedGrant,
        binding: Hash,
    ) -> Result<String, Error> {
        let (kind, rank) = match at.rank {
            Rank::Score(score) => (0u8, i64::from(score.to_bits())),
            Rank::Captured(time) => (1, time.millis()),
        };
        let plain = [&[kind], rank.to_be_bytes().as_slice(), &at.item.to_bytes()].concat();
        let keys = self.0.keys();
        let sealed = seal::seal(keys.cursor_key(), &bound(grant, binding), &plain, &*self.0.random)?;
        Ok(URL_SAFE_NO_PAD.encode(sealed))
    }

    /// The place that a cursor stands for.
    ///
    /// # Errors
    /// [`Error::Cursor`] for one of another grant or query, or none.
    pub(crate) fn open_cursor(
        self,
        cursor: &str,
        grant: &VerifiedGrant,
        binding: Hash,
    ) -> Result<Position, Error> {
        let sealed = URL_SAFE_NO_PAD.decode(cursor).map_err(|_| Error::Cursor)?;
        let keys = self.0.keys();
        let plain = seal::open(keys.cursor_key(), &bound(grant, binding), &sealed);
        let plain = plain.map_err(|_| Error::Cursor)?;
        let (kind, rest) = plain.split_first().ok_or(Error::Cursor)?;
        let (rank, item) = rest.split_first_chunk::<8>().ok_or(Error::Cursor)?;
        let rank = i64::from_be_bytes(*rank);
        let item = item.first_chunk::<16>().ok_or(Error::Cursor)?;
        let rank = match kind {
            0 => Rank::Score(f32::from_bits(u32::try_from(rank).map_err(|_| Error::Cursor)?)),
            _ => Rank::Captured(Timestamp::from_millis(rank)),
        };
        Ok(Position { rank, item: ItemId::from_bytes(*item) })
    }
}

/// What a cursor belongs to: one grant, one query.
fn bound(grant: &VerifiedGrant, binding: Hash) -> Vec<u8> {
    [b"cursor".as_slice(), grant.hash().as_bytes(), binding.as_bytes()].concat()
}

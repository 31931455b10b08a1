//! Deletions of others that this gateway confirmed, with what it signed.
//!
//! A granter whose reply was lost sends its notice for 30 days, and letters are remembered for minutes ([`crate::state::heard`]). So what a
//! notice came to is kept by what it names: it is confirmed once, and the same again has the same receipt.

use crate::error::Error;
use crate::state::commits::Writing;
use crate::state::schema::{self, AgentKey, CONFIRMED};
use oap_federation::notice::DeletionNotice;
use oap_federation::retry::TRIED_FOR;
use oap_identity::{DeletionId, Did, Hash, ItemId, Timestamp, json};
use oap_memory::deletion::{self, DeletionReceipt};
use oap_store::{Range, Store};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// Most notices of one granter whose receipts are kept: as many letters as wait to one gateway. Beyond it the first one goes.
pub const MAX_CONFIRMED_PER_GRANTER: usize = 1_000;
/// Receipts that one sweep looks at.
const MAX_SWEPT: usize = MAX_CONFIRMED_PER_GRANTER;
/// How long a receipt is kept: for as long as its notice is sent, and a gateway that was off meanwhile sends it once more.
const KEPT: Duration = Duration::from_secs(3 * TRIED_FOR.as_secs());

/// The granter, the deletion, and the first of its items: a deletion of many items is told in several notices.
pub(crate) type ConfirmedKey = (AgentKey, (DeletionId, ItemId));

/// What was signed, as it is stored.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct StoredConfirmed {
    /// The hash of the notice.
    pub(crate) says: Hash,
    /// The Deletion Receipt, in canonical form.
    pub(crate) receipt: String,
    /// Until when it is kept.
    pub(crate) until: Timestamp,
}

fn key(granter: &Did, notice: &DeletionNotice) -> Option<ConfirmedKey> {
    let first = notice.items.first()?;
    Some((schema::agent(granter.as_str()), (notice.deletion, *first)))
}

/// What was signed when this very notice came before. What holds no more, for its key was compromised, is signed anew and says the same.
///
/// # Errors
/// [`Error::Store`], [`Error::Json`].
pub(crate) fn find(
    w: &Writing<'_, '_>,
    granter: &Did,
    notice: &DeletionNotice,
) -> Result<Option<Value>, Error> {
    let Some(key) = key(granter, notice) else { return Ok(None) };
    let says = Hash::of_canonical(notice)?;
    let Some(kept) = CONFIRMED.get(w.tx, &key)?.filter(|kept| kept.says == says) else { return Ok(None) };
    let mut receipt = json::parse(kept.receipt.as_bytes())?;
    if deletion::verify(&receipt, w.keys.document(), w.now).is_ok() {
        return Ok(Some(receipt));
    }
    if let Some(members) = receipt.as_object_mut() {
        members.remove("signature");
    }
    let says: DeletionReceipt = json::from_value(receipt)?;
    Ok(Some(says.sign(w.keys.current())?))
}

/// Keeps what was signed to a notice.
///
/// # Errors
/// [`Error::Store`], [`Error::Json`].
pub(crate) fn keep(
    w: &mut Writing<'_, '_>,
    granter: &Did,
    notice: &DeletionNotice,
    receipt: &Value,
) -> Result<(), Error> {
    let Some(key) = key(granter, notice) else { return Ok(()) };
    let stored = CONFIRMED.keys(&w.gateway.store, Range::under(&key.0));
    let mut there: BTreeSet<ConfirmedKey> = stored.collect::<Result<_, _>>()?;
    there.extend(CONFIRMED.written(w.tx).into_iter().filter(|(whose, _)| *whose == key.0));
    there.remove(&key);
    while there.len() >= MAX_CONFIRMED_PER_GRANTER
        && let Some(first) = there.pop_first()
    {
        CONFIRMED.delete(w.tx, &first);
    }
    let (says, receipt) = (Hash::of_canonical(notice)?, json::canonical_text(receipt)?);
    Ok(CONFIRMED.put(w.tx, &key, &StoredConfirmed { says, receipt, until: w.now.plus(KEPT) })?)
}

/// Where the next sweep goes on.
#[derive(Default)]
pub(crate) struct Confirmed(Mutex<Option<ConfirmedKey>>);

impl Confirmed {
    /// Those that were kept long enough, among the next [`MAX_SWEPT`]: each sweep goes on where the one before it stopped, and behind the
    /// last one from the first one on. So it costs the same, however many granters there are.
    ///
    /// # Errors
    /// [`Error::Store`].
    pub(crate) fn over(&self, store: &Store, now: Timestamp) -> Result<Vec<ConfirmedKey>, Error> {
        let mut next = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let from = next.as_ref().map_or_else(Range::all, |key| Range::all().from(key));
        let mut rows = CONFIRMED.range(store, from);
        let mut over = Vec::new();
        for row in rows.by_ref().take(MAX_SWEPT) {
            let (key, kept) = row?;
            if kept.until <= now {
                over.push(key);
            }
        }
        *next = rows.next().transpose()?.map(|(key, _)| key);
        Ok(over)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use oap_identity::random::Seeded;
    use oap_store::StoreError;
    use std::sync::Arc;

    /// The attack: many granters have many notices confirmed, and each sweep reads what was signed to all of them.
    #[tokio::test]
    async fn a_sweep_looks_at_so_many_and_comes_round() {
        const ROWS: usize = 2 * MAX_SWEPT + 10;
        let store = Store::in_memory(Arc::new(Seeded::new(1))).unwrap();
        let key = |n: usize| -> ConfirmedKey {
            let mut id = [0; 16];
            id[..8].copy_from_slice(&(n as u64).to_be_bytes());
            ([n as u8 % 3; 16], (DeletionId::from_bytes(id), ItemId::from_bytes([0; 16])))
        };
        let put = move |tx: &mut oap_store::Tx<'_>| {
            for n in 0..ROWS {
                let until = Timestamp::from_millis(if n % 2 == 0 { 10 } else { 20 });
                let kept = StoredConfirmed { says: Hash::of(b""), receipt: String::new(), until };
                CONFIRMED.put(tx, &key(n), &kept)?;
            }
            Ok::<_, StoreError>(())
        };
        store.transact(put).await.unwrap();
        let confirmed = Confirmed::default();
        let sweep = || confirmed.over(&store, Timestamp::from_millis(10)).unwrap();
        let sweeps = [sweep(), sweep(), sweep()];
        assert!(sweeps.iter().all(|over| over.len() < MAX_SWEPT));
        let over: BTreeSet<ConfirmedKey> = sweeps.iter().flatten().copied().collect();
        assert_eq!(over, (0..ROWS).step_by(2).map(key).collect::<BTreeSet<_>>());
        assert_eq!(sweep(), sweeps[0]);
    }
}

//! What the grants of an earlier version's store have used: counted when a gateway opens it.

use crate::error::Error;
use crate::state::gateway::Gateway;
use crate::state::grant_book::Usage;
use crate::state::schema::{DISCLOSED, PLACES, USAGE};
use oap_grants::GrantRecord;
use std::sync::Arc;

impl Gateway {
    /// Counts what grants that are stored already have used, and notes their places in the status list: for stores in
    /// which an earlier version kept neither.
    ///
    /// # Errors
    /// [`Error::Store`], [`Error::Corrupt`].
    pub(crate) async fn count_grants(self: &Arc<Self>) -> Result<(), Error> {
        let mut uncounted = Vec::new();
        for entry in self.grant_book.all() {
            if USAGE.get(&self.store, &entry.key)?.is_none() {
                uncounted.push(entry);
            }
        }
        if uncounted.is_empty() {
            return Ok(());
        }
        let gateway = self.clone();
        self.commit(move |w| {
            for entry in &uncounted {
                if !USAGE.contains(w.tx, &entry.key)? {
                    USAGE.put(w.tx, &entry.key, &Usage::default())?;
                }
                if let (false, Some(place)) = (entry.delegated, place(&entry.record)) {
                    PLACES.put(w.tx, &place, &entry.key)?;
                }
            }
            for entry in &uncounted {
                let chain = gateway.grant_book.chain(entry.record.grant.hash());
                for above in chain.iter().skip(1) {
                    let mut usage = w.usage(above.key)?;
                    usage.below += 1;
                    USAGE.put(w.tx, &above.key, &usage)?;
                }
                for above in &chain {
                    let mut usage = w.usage(above.key)?;
                    for item in entry.items() {
                        let place = (above.key, item);
                        if above.key == entry.key || !DISCLOSED.contains(w.tx, &place)? {
                            DISCLOSED.put(w.tx, &place, &())?;
                            usage.disclosed += 1;
                        }
                    }
                    USAGE.put(w.tx, &above.key, &usage)?;
                }
            }
            Ok(())
        })
        .await?;
        self.grant_book.reload(&self.store)
    }
}

fn place(record: &GrantRecord) -> Option<u32> {
    record.grant.grant().status.as_ref().map(|status| status.status_list.idx)
}

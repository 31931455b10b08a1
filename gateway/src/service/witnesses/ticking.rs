//! The own log grows by a leaf each minute, whatever was done in it (protocol section 16.2).

use crate::error::{Corrupt, Error};
use crate::service::Witnesses;
use crate::state::commits::Writing;
use crate::state::gateway::blocking;
use crate::state::schema::{
    LOG, LOG_ENTRIES, LOG_INNER, LOG_NODES, LOG_SEEDS, LOG_STRETCHES, LOGGED, RECEIPTS, ReceiptPlace,
    WITNESSES,
};
use crate::state::witnessing::{MAX_TICK, Stretch, TICK};
use oap_identity::{Hash, json, random};
use oap_memory::Receipt;
use oap_memory::log::merkle;
use oap_memory::log::tick::{self, Grown};
use oap_store::Range;
use std::collections::BTreeMap;

/// What came since the last tick: which part of which chain, and the receipts in it by their places.
#[derive(Default)]
struct Gathered {
    stretches: Vec<(ReceiptPlace, u64)>,
    entries: BTreeMap<u64, Hash>,
}

impl Witnesses<'_> {
    /// Makes the leaf of this minute, where the log has witnesses and no leaf of it; whether one was made. The leaves of minutes in which
    /// nobody asked are left out.
    ///
    /// # Errors
    /// [`Error::Unavailable`] while the clock is not believed; [`Error::Store`], [`Error::Corrupt`].
    pub async fn tick(self) -> Result<bool, Error> {
        self.0.clock.believe()?;
        let Some(log) = LOG.get(&self.0.store)? else { return Ok(false) };
        // Read after the log: it is earlier than the last leaf's only where the owner set a wrong clock right.
        let minute = self.0.clock.now().seconds().div_euclid(TICK);
        if log.minute == minute {
            return Ok(false);
        }
        if WITNESSES.keys(&self.0.store, Range::all()).next().is_none() {
            return Ok(false);
        }
        let (gateway, seed) = (self.0.clone(), random::bytes::<32>(&*self.0.random));
        let (gathered, Grown { root, inner }) = blocking(move || {
            let gathered = Witnesses(&gateway).gather()?;
            let grown = tick::Tick::new(seed, gathered.entries.clone()).grow();
            Ok((gathered, grown))
        })
        .await?;
        let grown = move |w: &mut Writing<'_, '_>| {
            let mut now = LOG.get(w.tx)?.ok_or(Corrupt::Log)?;
            if now != log {
                return Ok(false);
            }
            let leaf = merkle::leaf(root.as_bytes());
            let nodes = merkle::append(now.size, leaf, |place| {
                LOG_NODES.get(w.tx, &place)?.ok_or(Error::Corrupt(Corrupt::Log))
            })?;
            for (place, node) in &nodes {
                LOG_NODES.put(w.tx, place, node)?;
            }
            let tick = now.size;
            LOG_SEEDS.put(w.tx, &tick, &seed)?;
            for (slot, receipt) in &gathered.entries {
                LOG_ENTRIES.put(w.tx, &(tick, *slot), receipt)?;
            }
            for ((depth, first), node) in &inner {
                LOG_INNER.put(w.tx, &(tick, *depth, *first), node)?;
            }
            for ((chain, from), end) in &gathered.stretches {
                LOG_STRETCHES.put(w.tx, &(*chain, *from), &Stretch { tick, end: *end })?;
                LOGGED.put(w.tx, chain, end)?;
            }
            (now.size, now.minute) = (tick + 1, minute);
            now.root = merkle::root(now.size, |place| {
                LOG_NODES.get(w.tx, &place)?.ok_or(Error::Corrupt(Corrupt::Log))
            })?;
            LOG.put(w.tx, &now)?;
            Ok(true)
        };
        self.0.commit_own(grown).await
    }

    /// What was committed since the last tick, at most [`MAX_TICK`] receipts. Heads are left out: nobody is shown one; and so is what begins
    /// a chain.
    fn gather(self) -> Result<Gathered, Error> {
        let mut gathered = Gathered::default();
        for (_, chain) in self.0.chains()? {
            let from = LOGGED.get(&self.0.store, &chain.index)?.unwrap_or(0);
            if from >= chain.length || gathered.entries.len() >= MAX_TICK {
                continue;
            }
            let mut end = from;
            let range = Range::under(&chain.index).from(&(chain.index, from));
            for row in RECEIPTS.range(&self.0.store, range) {
                let ((_, number), bytes) = row?;
                if number >= chain.length || gathered.entries.len() >= MAX_TICK {
                    break;
                }
                end = number + 1;
                let receipt: Receipt = json::parse_as(&bytes)?;
                if receipt.head_length().is_some() {
                    continue;
                }
                if let Ok(previous) = receipt.previous_receipt_hash.parse() {
                    gathered.entries.entry(tick::slot(&previous)).or_insert(receipt.hash()?);
                }
            }
            gathered.stretches.push(((chain.index, from), end));
        }
        Ok(gathered)
    }
}
